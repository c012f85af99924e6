// SPDX-License-Identifier: MIT
//
// The strategies by number. A new one is a number here and a row in strategies.c: an order and a rule of greedy.h, or
// a function in a file of its own. Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_STRATEGIES_H
#define TIDE_PLANNER_STRATEGIES_STRATEGIES_H

#include "planner/planner.h"

typedef enum tide_strategy_id {
    TIDE_STRATEGY_NAIVE,
    TIDE_STRATEGY_GREEDY_COLOR,
    TIDE_STRATEGY_GREEDY_COLOR_BEST,
    TIDE_STRATEGY_GREEDY_COLOR_GIVEN,
    TIDE_STRATEGY_LINEAR_SCAN,
    TIDE_STRATEGY_GREEDY_BY_BREADTH,
    TIDE_STRATEGY_GREEDY_BY_SIZE,
    TIDE_STRATEGY_GREEDY_BY_SIZE_BEST,
    TIDE_STRATEGY_GREEDY_BY_CONFLICTS,
    TIDE_STRATEGY_BOXED,
    TIDE_STRATEGY_SIM_CACHING,
    TIDE_STRATEGY_SIM_BFC,
    TIDE_STRATEGY_SIM_ARENA,
    TIDE_STRATEGY_SEARCH,
    TIDE_N_STRATEGIES
} tide_strategy_id;

const tide_strategy *tide__strategy(tide_strategy_id id);

#endif
