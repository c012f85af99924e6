// SPDX-License-Identifier: MIT
//
// colouring, stage 3 of 4: a colour is a pool that holds one tensor at a time. Private to the planner; the order and
// the rule are parameters so that tests can show what they do (S23-12, S23-13).
//
//     steps ->        0    1    2    3
//     pool 0 (1 MiB)  [conv1  ]  [fc1 ]
//     pool 1 (½ MiB)       [pool1  ]
#ifndef TIDE_PLANNER_COLORING_H
#define TIDE_PLANNER_COLORING_H

#include "planner/worklist.h"

typedef enum tide_pool_rule {
    TIDE_POOL_RULE_FIRST, ///< the lowest pool id without a conflicting member
    TIDE_POOL_RULE_BEST,  ///< the smallest such pool that is large enough; else the one that grows least
} tide_pool_rule;

/**
 * Colour the interference graph of the plan's lifetimes, taken in `order`; sets pools, pool_list, n_pools, offsets
 * and bytes. The graph is asked edge by edge (placed_index) and never built: 100,000 tensors may have 5 * 10^9 edges.
 *
 * A pool is as large as its largest aligned member and grows when a larger one joins. Where members differ in
 * alignment the pool has the strictest, and its size is a multiple of that.
 * Cost O((n + edges) log n + n pools) time where conflicts are few, O(n^2) where they are many; O(n) memory.
 */
tide_status tide__plan_color(tide_memory_plan *plan, tide_worklist_order *order, tide_pool_rule rule,
                             tide_error *err) TIDE_NODISCARD;

#endif
