// SPDX-License-Identifier: MIT
//
// run plan: a run of a trace, its steps, and its plan by the names of the tensors. Private to analysis/.
#ifndef TIDE_ANALYSIS_RUN_PLAN_H
#define TIDE_ANALYSIS_RUN_PLAN_H

#include "core/base/map.h"
#include "profiler/executions.h"

/// The plan of a run; everything owned. Zero for the whole trace.
typedef struct tide__run_plan {
    tide_trace_run run;
    tide_trace_step *steps; ///< [n_steps]
    size_t n_steps;
    tide_memory_plan *plan; ///< NULL: none
    tide_strmap index;      ///< name of a planned tensor -> index
} tide__run_plan;

/// run_id 0: nothing to read.
tide_status tide__run_plan_read(tide_trace *trace, int64_t run_id, tide__run_plan *out, tide_error *err) TIDE_NODISCARD;
void tide__run_plan_deinit(tide__run_plan *r);

/// The tensor that a block is named after; NULL.
const tide_lifetime *tide__run_plan_tensor(const tide__run_plan *r, const char *name);

/// Executions of a run (0: of all runs) that lie in plans' buffers.
typedef struct tide__planned_runs {
    const tide_executions **items; ///< [n] each with a plan; the array is owned, what it points to is the trace's
    size_t n;
} tide__planned_runs;
tide_status tide__planned_runs_read(tide_trace *trace, int64_t run_id, tide__planned_runs *out,
                                    tide_error *err) TIDE_NODISCARD;
void tide__planned_runs_deinit(tide__planned_runs *p);
/// Those of one run; NULL: none.
const tide_executions *tide__planned_run(const tide__planned_runs *p, int64_t run_id);
/// Those of the run whose executions work in that block; NULL: none.
const tide_executions *tide__planned_in(const tide__planned_runs *p, uint64_t block_id);
/// When a tensor was there in an execution: from the begin of the first of its steps that ran to the begin of the next
/// one behind them, or to the end of the last. False: none of them ran. *end_ns UINT64_MAX: it still is there.
bool tide__planned_times(const tide_executions *x, const tide_execution *e, const tide_lifetime *l, uint64_t *begin_ns,
                         uint64_t *end_ns);

#endif
