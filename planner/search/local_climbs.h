// SPDX-License-Identifier: MIT
//
// climbs: several hill climbs (local_climb.h) over one problem, from different orders, which share what may be spent:
// run times are heavy-tailed, so none of them is followed for long at a time. Private to local_search.
#ifndef TIDE_PLANNER_SEARCH_LOCAL_CLIMBS_H
#define TIDE_PLANNER_SEARCH_LOCAL_CLIMBS_H

#include "planner/search/local_climb.h"

enum { TIDE_MAX_CLIMBS = 4, TIDE_MAX_STARTS = 12 };

typedef struct tide_climbs {
    tide_climber climber;
    tide_climb list[TIDE_MAX_CLIMBS]; ///< the least excess first, as of their starts
    size_t n;
    size_t best; ///< the one with the least excess now
    /// Called with every plan that is complete and may be better than those before.
    void (*found)(void *self, const tide_climb *climb);
    void *self;
} tide_climbs;

tide_status tide__climbs_init(tide_climbs *s, const tide_problem *problem, tide_local_budget *budget,
                              uint64_t target_bytes, uint64_t seed, tide_error *err) TIDE_NODISCARD;
void tide__climbs_deinit(tide_climbs *s);
/// Try `order` [n], which it takes, as a start.
tide_status tide__climbs_start(tide_climbs *s, uint32_t *order, tide_gap_rule rule, tide_error *err) TIDE_NODISCARD;
/// Try the known orders, at most `n_starts` of them, until one of them has no excess or the share is over.
tide_status tide__climbs_start_all(tide_climbs *s, size_t n_starts, tide_local_budget share,
                                   tide_error *err) TIDE_NODISCARD;
/// Climb until there is no excess, the budget is over or `max_nodes` more items were placed.
void tide__climbs_run(tide_climbs *s, uint64_t max_nodes);
static inline bool tide__climbs_are_done(const tide_climbs *s) { return s->n > 0 && s->list[s->best].excess == 0; }

#endif
