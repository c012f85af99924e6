// SPDX-License-Identifier: MIT
//
// The strategy `linear_scan`, for the table of strategies. Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_LINEAR_SCAN_H
#define TIDE_PLANNER_STRATEGIES_LINEAR_SCAN_H

#include "planner/planner.h"
#include "planner/problem.h"

/// A tide_strategy.place; neither `self` nor `opt` is used.
tide_status tide__linear_scan(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                              tide_placement *out, tide_error *err) TIDE_NODISCARD;

#endif
