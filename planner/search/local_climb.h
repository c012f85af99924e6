// SPDX-License-Identifier: MIT
//
// climb: hill climbing over insertion orders. A candidate is an order; the placer makes a plan of it. A step moves a
// few items forward in the order, those that end too high or lie below them, places all items again, and keeps the new
// order unless it is worse. Private to local_search.
//
// Worse is measured by the excess, the sum of what all ends have above the target; the height alone does not show a
// step in the right direction:
//
//     ---------------------- target      excess: 3 + 1
//        |xx|   |x|
//        |##|   |#| ####
#ifndef TIDE_PLANNER_SEARCH_LOCAL_CLIMB_H
#define TIDE_PLANNER_SEARCH_LOCAL_CLIMB_H

#include "core/base/text.h"
#include "planner/problem.h"
#include "planner/strategies/placer.h"

/// What the whole local search may still spend.
typedef struct tide_local_budget {
    uint64_t deadline_ns; ///< 0: none
    uint64_t node_limit;  ///< 0: none
    uint64_t n_nodes;     ///< items placed
    _Atomic bool *stop;   ///< may be NULL
} tide_local_budget;

bool tide__local_is_over(const tide_local_budget *budget);

/// Orders of one problem and what all climbs over it share.
typedef struct tide_climber {
    const tide_problem *problem;
    tide_local_budget *budget; ///< borrowed
    uint64_t target_bytes;     ///< good enough
    tide_placer *placer;       ///< owned, as are the following
    uint32_t *order;           ///< [n] the order on trial
    uint32_t *position;        ///< [n] its inverse
    uint64_t *offsets;         ///< [n] what it leads to
    uint32_t *list;            ///< [n] candidates
    tide_rng rng;
} tide_climber;

/// One climb: an order, and the plan that it leads to.
typedef struct tide_climb {
    uint32_t *order;   ///< [n] owned
    uint64_t *offsets; ///< [n] owned
    tide_gap_rule rule;
    uint64_t height, excess;
} tide_climb;

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
