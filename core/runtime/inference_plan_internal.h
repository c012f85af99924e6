// SPDX-License-Identifier: MIT
//
// inference plan, inside (private to core/runtime): what contexts read of it.
#ifndef TIDE_CORE_RUNTIME_INFERENCE_PLAN_INTERNAL_H
#define TIDE_CORE_RUNTIME_INFERENCE_PLAN_INTERNAL_H

#include "core/runtime/inference_plan.h"
#include "core/runtime/places.h"
#include "core/runtime/sharing.h"

/// Immutable once created, but for the reference count.
struct tide_inference_plan {
    _Atomic uint32_t refs;
    tide_program *program; ///< referenced
    tide_device device;
    tide_registry *registry; ///< borrowed, never NULL
    size_t align_bytes;
    tide_memory_plan *memory;       ///< own copy; NULL: naive only
    const tide_plan_buffer *buffer; ///< of `memory`: Workspace on `device`, all that a run takes; NULL: nothing
    tide__need *needs;              ///< [n_values]
    tide__place *places;            ///< [n_values]; NULL without a memory plan
    tide__place *scratch;           ///< [n_steps]; NULL without a memory plan
    tide__sharing sharing;          ///< whose bytes are whose too
    tide_tensor **weights;          ///< [n_values], referenced; NULL where a value is no weight
    size_t n_weights;
    size_t n_shared_weights; ///< of these, taken over from the program without a copy
    uint64_t weight_bytes;   ///< requested from the allocator, rounding included
};

#endif
