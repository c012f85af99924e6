// SPDX-License-Identifier: MIT
//
// plan pools: what lies in each pool of a plan, or in each buffer of a plan that has no pools, from step to step.
// Private to analysis/.
//
//     steps     0    1    2    3    4    5
//     pool 0    [ a  a  a ][  free  ][ b ]      stretches: 0, 3, 5: between two of them nothing changes
#ifndef TIDE_ANALYSIS_PLAN_POOLS_H
#define TIDE_ANALYSIS_PLAN_POOLS_H

#include "analysis/subject.h"
#include "profiler/holdings.h"

/// From a step on.
typedef struct tide__pool_stretch {
    int64_t step;
    uint64_t active, requested; ///< bytes of tensors with and without rounding
    uint64_t largest_free;      ///< TIDE_UNKNOWN_BYTES: tensors lie in one another
    size_t n_tensors;           ///< aliases do not count
} tide__pool_stretch;

typedef struct tide__plan_pool {
    uint64_t bytes;  ///< its size
    uint32_t buffer; ///< of the plan
    size_t first, n; ///< its stretches; the first is before all steps
} tide__plan_pool;

typedef struct tide__plan_pools {
    const tide_memory_plan *plan;
    tide__plan_pool *pools; ///< [n], owned
    size_t n;
    tide__pool_stretch *stretches; ///< owned
} tide__plan_pools;

/// O(n log n) for n tensors. @return TIDE_ERR_NOMEM, and what tide_lifetimes_occupied returns
tide_status tide__plan_pools_make(const tide_memory_plan *plan, tide__plan_pools *out, tide_error *err) TIDE_NODISCARD;
void tide__plan_pools_deinit(tide__plan_pools *p);
/// What holds at a step. O(log n).
const tide__pool_stretch *tide__plan_pool_at(const tide__plan_pools *p, size_t pool, int64_t step);
/// The stretches of a pool: [p->pools[pool].n].
static inline const tide__pool_stretch *tide__plan_pool_stretches(const tide__plan_pools *p, size_t pool) {
    return &p->stretches[p->pools[pool].first];
}
/// The pool or buffer that a tensor lies in, which is no alias; UINT32_MAX: none.
uint32_t tide__plan_pool_of(const tide_memory_plan *plan, uint32_t root);
/// A stretch as extremes: the same in all of it.
tide_trace_pool_column tide__pool_stretch_column(uint64_t pool_bytes, const tide__pool_stretch *s);

// ---- in a run ----
//
//     execution     | 0 |  1  | 2 |        | 0 |  1  | 2 |     steps, at the times when they ran
//     pool          | a |  b  | c |  none  | a |  b  | c |     what the plan has in it at that step
//
//     numbers       0 .. n_trace - 1         allocators of the trace
//                   n_trace + lane * n + k   pool k of the plan, in the context of that lane

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
/// The least that is cached of pool `k` at any moment of [t0, t1); its size: the run did nothing then.
uint64_t tide__run_pools_least(const tide__run_pools *r, size_t lane, size_t k, uint64_t t0, uint64_t t1);
/// The first moment behind `at` at which pool `k` has room for `bytes`; false: none.
bool tide__run_pools_next(const tide__run_pools *r, size_t lane, size_t k, tide_moment at, uint64_t bytes,
                          tide_moment *out);

#endif
