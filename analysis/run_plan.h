// SPDX-License-Identifier: MIT
//
// run plan: what a run of a trace has to do with its plan: which block is the plan's buffer, when each planned tensor
// was there, which role a block's tensor has. Private to analysis/.
#ifndef TIDE_ANALYSIS_RUN_PLAN_H
#define TIDE_ANALYSIS_RUN_PLAN_H

#include "core/base/map.h"
#include "profiler/query.h"

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
/// Whether the run has planned tensors in place of a buffer.
bool tide__run_plan_has_buffer(const tide__run_plan *r);
/// The plan's buffer that a block of the run may be: one of Workspace and of exactly its size; NULL: none.
const tide_plan_buffer *tide__run_plan_buffer_of(const tide__run_plan *r, tide_memory_kind kind, const char *device,
                                                 uint64_t requested_bytes);
/// When the tensor was there: from the begin of its first step to the end of its last one, as far as they ran. *owner:
/// the first of them, borrowed. False: none of them ran.
bool tide__run_plan_times(const tide__run_plan *r, const tide_lifetime *l, uint64_t *begin_ns, uint64_t *end_ns,
                          const char **owner);

#endif
