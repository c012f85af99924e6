// SPDX-License-Identifier: MIT
//
// plan live: which tensors of a plan are alive at a step, and how many bytes each of them keeps, so that the parts sum
// to what is alive.
#ifndef TIDE_PLANNER_PLAN_LIVE_H
#define TIDE_PLANNER_PLAN_LIVE_H

#include "planner/planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the answers for all steps of a plan are made of.
typedef struct tide_plan_live {
    tide_occupied *occupied; ///< [n_occupied] owned, of the whole plan
    size_t n_occupied;
    uint32_t *root;       ///< [n tensors] owned
    uint64_t *root_bytes; ///< [n tensors] how far it lies inside its root; owned
    int64_t *changes;     ///< [n_changes] steps at which something begins or ends, rising; owned
    size_t n_changes;
} tide_plan_live;

/// O(n log n). TIDE_ERR_NOMEM; TIDE_ERR_OVERFLOW as of tide_lifetimes_occupied.
tide_status tide_plan_live_make(const tide_memory_plan *plan, tide_plan_live *out, tide_error *err) TIDE_NODISCARD;
void tide_plan_live_deinit(tide_plan_live *l);
/// What each tensor that is alive at `step` adds to the sum there: counts [n tensors], 0 for all others; of what
/// persists its aligned bytes. O(n).
tide_status tide_plan_live_counts(const tide_memory_plan *plan, const tide_plan_live *l, int64_t step, uint64_t *counts,
                                  tide_error *err) TIDE_NODISCARD;

/// What tensor `tensor` alone keeps of its buffer at steps [begin_step, end_step): of bytes that aliases share one of
/// them has all, so that the parts of a step sum to what is alive there. 0 bytes: all of it belongs to others.
typedef struct tide_plan_part {
    uint32_t tensor;
    int64_t begin_step, end_step;
    uint64_t bytes;
} tide_plan_part;
/// The same as tide_plan_live_counts at every step, of what does not persist, by tensor and step: *out [*n],
/// tide_host_free; NULL when there are none. O(n log n + c^2) for classes of c aliases in one place. TIDE_ERR_NOMEM.
tide_status tide_plan_live_parts(const tide_memory_plan *plan, const tide_plan_live *l, tide_plan_part **out, size_t *n,
                                 tide_error *err) TIDE_NODISCARD;
/// The sum of what of one buffer is alive at each step: bytes [lifetimes.n_steps], zero-filled by the call. O(n +
/// steps).
void tide_plan_live_bytes(const tide_memory_plan *plan, const tide_plan_live *l, const tide_plan_buffer *buffer,
                          uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
