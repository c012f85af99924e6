// SPDX-License-Identifier: MIT
//
// The rows of the strategy table, one declaration each. A new strategy is one .c file, one line here and one in
// strategies.c. Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_H
#define TIDE_PLANNER_STRATEGIES_H

#include "planner/planner.h"

extern const tide_strategy tide__strategy_naive;
extern const tide_strategy tide__strategy_greedy_color;
extern const tide_strategy tide__strategy_greedy_color_best;
extern const tide_strategy tide__strategy_linear_scan;
extern const tide_strategy tide__strategy_greedy_by_breadth;
extern const tide_strategy tide__strategy_greedy_by_size;
extern const tide_strategy tide__strategy_greedy_by_size_best;

#endif
