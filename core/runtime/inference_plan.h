// SPDX-License-Identifier: MIT
//
// inference plan: the immutable product that many contexts share: program + memory plan + weights in Persistent memory.
#ifndef TIDE_CORE_RUNTIME_INFERENCE_PLAN_H
#define TIDE_CORE_RUNTIME_INFERENCE_PLAN_H

#include "core/runtime/memory_plan.h"
#include "core/runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_inference_plan tide_inference_plan;

typedef struct tide_inference_plan_options {
    tide_device device;      ///< must be one this build has (S27-4)
    tide_registry *registry; ///< where weights and contexts allocate; borrowed, outlives the plan; NULL: the process's
    const tide_memory_plan *memory_plan; ///< borrowed for the call (copied); NULL: contexts can run naive only
    size_t align_bytes; ///< of weights, outputs, naive blocks; 0: the smallest in the memory plan, or 256 without one
} tide_inference_plan_options;

/**
 * Check the memory plan against the program and hold the weights in Persistent blocks, one each: copies, or the
 * program's own where it has moved them there (tide_program_options.weights_registry).
 *
 * Strict rule (S27-13): every non-constant value a node writes, and every kernel's scratch, must have an entry of
 * enough bytes at a valid place inside the buffer, on the device of the run and for at least the steps in which the
 * program needs it; a missing one fails here, at build, naming node and port. Entries are found by name (a value's
 * name; "<node>.scratch", with ".2", ".3" … after it where that name is taken), so that a plan read from a file serves.
 * A plan that is not marked as verified is refused. Whether live entries overlap only where the operators allow it
 * (views, slices, parts of a Concat, in place) is found out here all the same, by bytes and steps: see sharing.h.
 *
 * @return TIDE_ERR_RUNTIME (strict rule: missing, misaligned, on another device, of another kind, too short a life, not
 *         where the plan says that an alias lies; or a step would overwrite what a later step needs), TIDE_ERR_NO_SPACE
 *         (entry too small or outside the buffer), TIDE_ERR_NOT_IMPLEMENTED (device, or an operator without a kernel),
 *         TIDE_ERR_INVALID (alignment, plan not verified), TIDE_ERR_NOMEM
 */
tide_status tide_inference_plan_create(tide_program *program, const tide_inference_plan_options *opt,
                                       tide_inference_plan **out, tide_error *err) TIDE_NODISCARD;
tide_inference_plan *tide_inference_plan_ref(tide_inference_plan *p);
/// Freed with the last reference: contexts hold one each (S27-1).
void tide_inference_plan_unref(tide_inference_plan *p);

/// The plan's own copy; NULL when it was made without one.
const tide_memory_plan *tide_inference_plan_memory(const tide_inference_plan *p);
/// Weights preloaded: their number and requested bytes (S27-31).
void tide_inference_plan_weights(const tide_inference_plan *p, size_t *n, uint64_t *bytes);
/// A hash over everything a run reads (order, shapes, offsets, weight bytes): unchanged by any number of runs (S27-1).
uint64_t tide_inference_plan_hash(const tide_inference_plan *p);

#ifdef __cplusplus
}
#endif
#endif
