// SPDX-License-Identifier: MIT
//
// shape engine: one request that comes in many sizes. It keeps a program and a context for each size that was met, all
// of them in one buffer and one set of outputs, by one memory plan that is made for the largest.
//
//     profile     x: 1x64 … 8x64                 what may come
//     plan        every tensor as large as it is at any size of the profile (planner/points.h)
//     sizes met   x = 8x64 | x = 1x64 | …        program, inference plan, context; weights are there once
//     memory      | buffer | outputs |           of the first context, taken over by all others
//
// A size that is as it was costs a comparison of shapes. One that was met before costs nothing else either. A new one
// is inferred and its kernels are prepared, while the present size stays as it is until all of that has gone well.
#ifndef TIDE_CORE_RUNTIME_SHAPE_ENGINE_H
#define TIDE_CORE_RUNTIME_SHAPE_ENGINE_H

#include "core/runtime/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What may come for one input, both ends included. An extent of -1 (TIDE_DIM_UNKNOWN) in any of the three is not
/// checked.
typedef struct tide_shape_range {
    const char *name;
    tide_shape min, opt, max;
} tide_shape_range;

/// The ranges say something that can be: equal ranks, min <= opt <= max. TIDE_ERR_INVALID naming input and extent.
tide_status tide_shape_range_check(const tide_shape_range *range, tide_error *err) TIDE_NODISCARD;
/// Whether a shape lies in it. TIDE_ERR_INVALID naming input, extent and what is allowed.
tide_status tide_shape_range_admits(const tide_shape_range *range, const tide_shape *shape,
                                    tide_error *err) TIDE_NODISCARD;

typedef struct tide_shape_engine tide_shape_engine;

typedef struct tide_shape_engine_options {
    /// Makes the program for such inputs, in the order that the memory plan names: tide_program_build and
    /// tide_program_follow. `weights_of` is a program of another size, for tide_program_options.weights_of; NULL at
    /// first.
    tide_status (*build)(void *ctx, const tide_shape_binding *shapes, size_t n, const tide_program *weights_of,
                         tide_program **out, tide_error *err);
    void *build_ctx;
    const tide_shape_range *profile; ///< [n_ranges], copied but for the names; inputs without a range are not checked
    size_t n_ranges;
    const tide_memory_plan *memory_plan; ///< for the largest sizes; borrowed
    tide_registry *registry;             ///< borrowed; NULL: the process's
    tide_fill fill;
    const tide_observer *observer; ///< borrowed; may be NULL
    size_t max_sizes;              ///< kept at once, beside the largest; 0: 16. The one that was not used longest goes
    bool profiles;                 ///< changes of size are logged as INFO, else as DEBUG
} tide_shape_engine_options;

/**
 * Build for the largest sizes of the profile, of which each range must have one, and take the memory.
 *
 * @return TIDE_ERR_INVALID for a profile that cannot be; what build, tide_inference_plan_create and tide_context_create
 *         return
 */
tide_status tide_shape_engine_create(const tide_shape_engine_options *opt, tide_shape_engine **out,
                                     tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_shape_engine_destroy(tide_shape_engine *e);

/**
 * Set the inputs, [n] in the order of the graph, and with them the size.
 *
 * @return TIDE_ERR_INVALID outside the profile, and as tide_context_set_inputs; TIDE_ERR_RUNTIME naming the tensor
 * where one has no room in its place; what build returns. Nothing has changed after any of them.
 */
tide_status tide_shape_engine_set_inputs(tide_shape_engine *e, tide_tensor *const *tensors, size_t n,
                                         tide_error *err) TIDE_NODISCARD;
/// tide_context_run of the present size.
tide_status tide_shape_engine_run(tide_shape_engine *e, tide_error *err) TIDE_NODISCARD;
/// The context of the present size; borrowed, valid until the next call that sets inputs.
tide_context *tide_shape_engine_context(const tide_shape_engine *e);

typedef struct tide_shape_engine_stats {
    size_t n_sizes;       ///< kept now, the largest included
    uint64_t n_inferred;  ///< programs that were built since it was made, the largest included
    uint64_t n_changes;   ///< of the size
    uint64_t n_unchanged; ///< inputs that came in the size that there was
} tide_shape_engine_stats;
void tide_shape_engine_get_stats(const tide_shape_engine *e, tide_shape_engine_stats *out);

#ifdef __cplusplus
}
#endif
#endif
