// SPDX-License-Identifier: MIT
//
// The strategy `search`, for the table of strategies. Private to the planner.
#ifndef TIDE_PLANNER_SEARCH_STRATEGY_SEARCH_H
#define TIDE_PLANNER_SEARCH_STRATEGY_SEARCH_H

#include "planner/planner.h"

extern const tide_strategy tide__strategy_search;

#endif
