// SPDX-License-Identifier: MIT
//
// The plan of a run as pools of the trace: what the files of pools share. Private to analysis/.
//
//     numbers   0 .. n_trace - 1         allocators of the trace
//               n_trace + lane * n + k   pool k of the plan, in the context of that lane
#ifndef TIDE_ANALYSIS_POOL_INTERNAL_H
#define TIDE_ANALYSIS_POOL_INTERNAL_H

#include "analysis/plan_pools.h"
#include "analysis/pools.h"
#include "analysis/subject_internal.h"

/// Contexts beyond these are not listed.
enum { TIDE__POOL_LANES = 16 };

/// The plan's pools of a run in a trace; n_lanes 0: it has none.
typedef struct tide__run_pools {
    const tide_executions *x;
    const tide__plan_pools *pools;
    size_t n_lanes;
    tide_moment gone[TIDE__POOL_LANES]; ///< when the buffer was freed that an execution never left; INT64_MAX: it was
                                        ///< left, or the buffer stayed
} tide__run_pools;
tide_status tide__run_pools_of(tide_subject *s, tide__run_pools *out, tide_error *err) TIDE_NODISCARD;
/// The step that runs in a lane after the moment; INT64_MIN: none.
int64_t tide__run_pools_step(const tide__run_pools *r, size_t lane, tide_moment at);
/// Since when pool `k` never had less cached than after the moment; `begin`: it never had.
int64_t tide__run_pools_since(const tide__run_pools *r, size_t lane, size_t k, tide_moment at, int64_t begin);
/// Extremes of pool `k` in columns of [t0, t1): joined into out[n], n <= t1 - t0.
void tide__run_pools_fill(const tide__run_pools *r, size_t lane, size_t k, uint64_t t0, uint64_t t1, size_t n,
                          tide_trace_pool_column *out);
/// The first moment behind `at` at which pool `k` has room for `bytes`; false: none.
bool tide__run_pools_next(const tide__run_pools *r, size_t lane, size_t k, tide_moment at, uint64_t bytes,
                          tide_moment *out);

#endif
