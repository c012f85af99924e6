// SPDX-License-Identifier: MIT
//
// The rows of the strategy table, one declaration each. A new strategy is one .c file, one line here and one in
// strategies.c. Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_STRATEGIES_H
#define TIDE_PLANNER_STRATEGIES_STRATEGIES_H

#include "planner/planner.h"
#include "planner/problem.h"

extern const tide_strategy tide__strategy_naive;
extern const tide_strategy tide__strategy_greedy_color;
extern const tide_strategy tide__strategy_greedy_color_best;
extern const tide_strategy tide__strategy_greedy_color_given;
extern const tide_strategy tide__strategy_linear_scan;
extern const tide_strategy tide__strategy_greedy_by_breadth;
extern const tide_strategy tide__strategy_greedy_by_size;
extern const tide_strategy tide__strategy_greedy_by_size_best;
extern const tide_strategy tide__strategy_greedy_by_conflicts;
extern const tide_strategy tide__strategy_boxed;
extern const tide_strategy tide__strategy_sim_caching;
extern const tide_strategy tide__strategy_sim_bfc;
extern const tide_strategy tide__strategy_sim_arena;

#endif
