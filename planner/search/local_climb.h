// SPDX-License-Identifier: MIT
//
// climb: hill climbing over insertion orders. An order is all there is to a plan: the placer turns it into places. A
// step gives a few items an earlier turn, those that end too high or lie below them, places everything anew, and
// keeps the new order unless it is worse. Private to local_search.
//
// Worse is measured by the excess, the sum of what all ends have above the target; the height alone would not tell a
// step in the right direction from one that leads nowhere:
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
    uint32_t *turns;           ///< [n] its inverse
    uint64_t *offsets;         ///< [n] what it leads to
    uint32_t *list;            ///< [n] candidates
    tide_rng rng;
} tide_climber;

/// One way up.
typedef struct tide_climb {
    uint32_t *order;   ///< [n] owned
    uint64_t *offsets; ///< [n] owned
    tide_gap_rule rule;
    uint64_t height, excess;
} tide_climb;

tide_status tide__climber_init(tide_climber *c, const tide_problem *problem, tide_local_budget *budget,
                               uint64_t target_bytes, uint64_t seed, tide_error *err) TIDE_NODISCARD;
void tide__climber_deinit(tide_climber *c);

/// From `order` [n], which it takes. *complete is false when the budget ended before all items had a place.
tide_status tide__climb_init(tide_climb *climb, tide_climber *c, uint32_t *order, tide_gap_rule rule, bool *complete,
                             tide_error *err) TIDE_NODISCARD;
void tide__climb_deinit(tide_climb *climb);
/// One step. @return whether the plan is another one now, no worse than before
bool tide__climb_step(tide_climb *climb, tide_climber *c);

#endif
