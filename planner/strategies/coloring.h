// SPDX-License-Identifier: MIT
//
// colouring, stage 3 of 4: a colour is a pool that holds one tensor at a time. Private to the planner; the order and
// the rule are parameters so that tests can show what they do (S23-12, S23-13).
//
//     steps ->        0    1    2    3
//     pool 0 (1 MiB)  [conv1  ]  [fc1 ]
//     pool 1 (½ MiB)       [pool1  ]
#ifndef TIDE_PLANNER_STRATEGIES_COLORING_H
#define TIDE_PLANNER_STRATEGIES_COLORING_H

#include "planner/problem.h"

typedef enum tide_pool_rule {
    TIDE_POOL_RULE_FIRST, ///< the lowest pool id without a conflicting member
    TIDE_POOL_RULE_BEST,  ///< the smallest such pool that is large enough; else the one that grows least
} tide_pool_rule;

/**
 * Colour the interference graph of `problem`, taking its items in `order` (a permutation of their indices); sets
 * pools, pool_list, n_pools, offsets and bytes.
 *
 * Two items conflict when the spans from birth to death in which they hold the pool meet, gaps in them included, or
 * when both belong to one apart set. A pool is as large as its largest member and grows when a larger one joins. Where
 * members differ in alignment the pool has the strictest, and its size is a multiple of that. Of equal pools the best
 * one is the newest.
 * Cost O(n log n) questions to a space of pool ids; best fit looks at every free pool where pools are not in descending
 * order of size.
 *
 * @return TIDE_ERR_NOT_IMPLEMENTED when an item has a given offset; TIDE_ERR_OVERFLOW; TIDE_ERR_NOMEM
 */
tide_status tide__color(const tide_problem *problem, const uint32_t *order, tide_pool_rule rule, tide_placement *out,
                        tide_error *err) TIDE_NODISCARD;

#endif
