// SPDX-License-Identifier: MIT
//
// What else is known of a run's executions, for executions_live.c. Private to profiler/.
#ifndef TIDE_PROFILER_READ_EXECUTIONS_INTERNAL_H
#define TIDE_PROFILER_READ_EXECUTIONS_INTERNAL_H

#include "planner/plan_live.h"
#include "profiler/executions.h"
#include "profiler/read/moments_internal.h"

/// What the plan has alive; only where there is a plan.
const tide_plan_live *tide__executions_live(const tide_executions *x);
/// The lane of a thread of the trace; UINT32_MAX: it executes nothing of the run.
uint32_t tide__executions_lane(const tide_executions *x, int32_t thread);

#endif
