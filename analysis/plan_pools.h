// SPDX-License-Identifier: MIT
//
// plan pools: what lies in each pool of a plan, or in each buffer of a plan that has no pools, from step to step.
// Private to analysis/.
//
//     steps     0    1    2    3    4    5
//     pool 0    [ a  a  a ][  free  ][ b ]      stretches: 0, 3, 5: between two of them nothing changes
#ifndef TIDE_ANALYSIS_PLAN_POOLS_H
#define TIDE_ANALYSIS_PLAN_POOLS_H

#include "core/runtime/memory_plan.h"
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

#endif
