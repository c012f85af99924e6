// SPDX-License-Identifier: MIT
//
// plan: making a plan without places, for plan.c and for the reader of plan files. Private to the planner.
#ifndef TIDE_PLANNER_PLAN_H
#define TIDE_PLANNER_PLAN_H

#include "planner/planner.h"
#include "planner/problem.h"

/// Count an entry into the planner.
void tide__planner_entered(void);
/// A plan with a copy of the lifetimes and no place for any of them.
tide_status tide__plan_new(const tide_lifetimes *lt, const char *strategy, tide_plan_form form, tide_memory_plan **out,
                           tide_error *err) TIDE_NODISCARD;
/// Give the plan its buffers, from its own lifetimes, for a plan that was read and not made. Bytes are 0, proved_bytes
/// what the bounds say.
tide_status tide__plan_settle(tide_memory_plan *plan, tide_error *err) TIDE_NODISCARD;
/// Once roots have their offsets: place aliases where their targets are, and empty tensors at 0; then sum up the
/// buffers into the plan's totals and `proven`. TIDE_ERR_OVERFLOW when the buffers together pass 2^63 - 1.
tide_status tide__plan_close(tide_memory_plan *plan, tide_error *err) TIDE_NODISCARD;
/// Of several buffers the proof that took the most.
tide_proof tide__plan_proof(const tide_memory_plan *plan);

#endif
