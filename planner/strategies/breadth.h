// SPDX-License-Identifier: MIT
//
// breadth: how many bytes are alive at each tick, and which tick of any span has the most, in O(1) after O(n log n).
// Used by the order "breadth". Private to the planner.
//
// Ticks are ranked once, the broadest first, the earlier one of equals. The best rank of a span comes from a sparse
// table over the ranks:
//
//     best[k][t] = least rank of ticks t … t + 2^k - 1
#ifndef TIDE_PLANNER_STRATEGIES_BREADTH_H
#define TIDE_PLANNER_STRATEGIES_BREADTH_H

#include "planner/problem.h"

typedef struct tide_breadth {
    uint32_t *best; ///< [n_levels * n_ticks], owned
    size_t n_ticks, n_levels;
} tide_breadth;

/// @return TIDE_ERR_NOMEM
tide_status tide__breadth_init(tide_breadth *b, const tide_problem *p) TIDE_NODISCARD;
void tide__breadth_deinit(tide_breadth *b);
/// Rank of the broadest tick of [begin, end): 0 is the broadest of all.
uint32_t tide__breadth_rank(const tide_breadth *b, uint32_t begin, uint32_t end);

#endif
