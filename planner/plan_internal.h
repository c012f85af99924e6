// SPDX-License-Identifier: MIT
//
// Making the shell of a plan, shared by the strategies' runner and the reader of plan files. Private to the planner.
#ifndef TIDE_PLANNER_PLAN_INTERNAL_H
#define TIDE_PLANNER_PLAN_INTERNAL_H

#include "planner/planner.h"

/// A plan with a copy of the lifetimes and no place for any of them.
tide_status tide__plan_new(const tide_lifetimes *lt, const char *strategy, tide_plan_form form, tide_memory_plan **out,
                           tide_error *err) TIDE_NODISCARD;
/// Compute from the lifetimes what does not depend on the placement: align_bytes, naive_bytes, lower_bound_bytes.
tide_status tide__plan_settle(tide_memory_plan *plan, tide_error *err) TIDE_NODISCARD;

#endif
