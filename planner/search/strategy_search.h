// SPDX-License-Identifier: MIT
//
// The strategy `search`, for the table of strategies. Private to the planner.
#ifndef TIDE_PLANNER_SEARCH_STRATEGY_SEARCH_H
#define TIDE_PLANNER_SEARCH_STRATEGY_SEARCH_H

#include "planner/planner.h"
#include "planner/problem.h"

/// A tide_strategy.place; `self` is not used, and `opt` may be NULL.
tide_status tide__search_place(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) TIDE_NODISCARD;

#endif
