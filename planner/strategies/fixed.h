// SPDX-License-Identifier: MIT
//
// fixed: what the strategies share about items with offsets that the user has given. Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_FIXED_H
#define TIDE_PLANNER_STRATEGIES_FIXED_H

#include "planner/problem.h"

/// TIDE_ERR_NOT_IMPLEMENTED, saying that `what` ("a pool plan") cannot honour given offsets, where there are any.
tide_status tide__refuse_fixed(const tide_problem *problem, const char *what, tide_error *err) TIDE_NODISCARD;

#endif
