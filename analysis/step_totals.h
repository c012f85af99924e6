// SPDX-License-Identifier: MIT
//
// step totals: what each step makes and frees, and how high the curve is while it runs. Of a run in the first
// execution.
#ifndef TIDE_ANALYSIS_STEP_TOTALS_H
#define TIDE_ANALYSIS_STEP_TOTALS_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Weights, inputs and outputs aside. Blocks count what they asked for, tensors in a plan's buffer the bytes that they
/// take of it; those that share bytes count together: a Concat makes nothing whose parts were made in its place, and
/// bytes that an in-place result goes on with are not freed. So the sums of all steps up to one, made less freed, are
/// what the buffer holds then.
typedef struct tide_step_total {
    int64_t begin, end; ///< while it runs
    uint64_t makes_bytes, frees_bytes;
    uint64_t
        live_bytes; ///< highest that is live while it runs; of a planned run its buffer counts by the tensors in it
} tide_step_total;

/// *out: [n_steps of the subject's facts], tide_host_free. The items must be loaded. What later executions make is
/// counted for no step. TIDE_ERR_CANCELLED by `progress`, which may be NULL; the errors of reading a trace.
tide_status tide_step_totals_make(tide_subject *s, const tide_progress *progress, tide_step_total **out,
                                  tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
