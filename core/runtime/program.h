// SPDX-License-Identifier: MIT
//
// program: a graph made ready to run, short of its memory: optimised, sorted, sized, with its kernels prepared.
//
//     graph --(validate, resolve operators, bind inputs, sort, infer shapes, fuse, prune, sort again, quantised
//              tensors, fix sizes, place weights, prepare kernels)--> program
//     program + memory plan --(check memory plan, preload weights)--> inference plan --> contexts
//
// The planner reads a program (graph, order, workspace) and makes the memory plan; the runtime is handed both.
#ifndef TIDE_CORE_RUNTIME_PROGRAM_H
#define TIDE_CORE_RUNTIME_PROGRAM_H

#include "core/graph/passes.h"
#include "core/ops/quantised.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_program_options {
    bool no_fuse; ///< leave operators unfused
    bool no_qdq;  ///< dequantise and quantise by nodes of their own, tensor by tensor, as the file says it
    /// Prepare none: sizes can be planned, without any scratch, and nothing can be run. What is planned so depends on
    /// the graph alone and not on the processor.
    bool no_kernels;
    /// Constants that folding would make larger than this are made by their operators in each run; 0: none are.
    uint64_t fold_max_bytes;
    /// Tensors whose size hangs on data are sized while running, and have no place in any plan; false: they are
    /// refused.
    bool allow_dynamic;
    /// Such a tensor has a place all the same, with room for its bound, where that takes at most so many bytes or is
    /// given by the file or by `bounds`. 0: only where `bounds` has it.
    uint64_t bound_limit_bytes;
    const tide_bound_given *bounds; ///< [n_bounds], borrowed for the call
    size_t n_bounds;
    const tide_shape_binding *shapes; ///< [n_shapes] for open extents; borrowed for the call
    size_t n_shapes;
    /// Move the weights into the Persistent memory of this registry while building: the graph's own copies are freed
    /// one by one and an inference plan with the same registry and alignment shares what it finds, so that a weight is
    /// held once. NULL: the graph keeps its constants, and every inference plan copies them (weights are then held
    /// twice). Borrowed, outlives the program.
    tide_registry *weights_registry;
    size_t weights_align_bytes; ///< of those blocks; 0: 256
    /// A program of the same model at another size: weights that are equal to its own are its own, and not held twice.
    /// Borrowed for the call.
    const struct tide_program *weights_of;
    /// Weights that lie in a mapped file stay there, with exactly their bytes, and are not moved like the others.
    bool keeps_mapped;
    /// With weights_registry and keeps_mapped: their blocks come from this allocator ("mapped", or one around it);
    /// NULL: they are moved all the same. Borrowed for the call.
    tide_allocator *mapped;
} tide_program_options;

/// The kind of memory that dynamic tensors lie in, and the scratch of their steps: no plan counts it.
#define TIDE_DYNAMIC_KIND TIDE_KIND_HOST_PAGEABLE

typedef struct tide_program_step {
    uint32_t node;      ///< index in the graph
    tide_kernel kernel; ///< prepared; of a step that opens or closes a region it only knows its node
    /// Where a run may go on instead of at the next step: behind a branch or a body, or at its first step again. 0: the
    /// step opens and closes no region.
    uint32_t jump;
    uint32_t opened_by; ///< of a step that closes a region: the step that opens it
} tide_program_step;

/// A node that runs twice, and the node that is its second run.
typedef struct tide_program_twin {
    uint32_t first, again; ///< indices in the graph
} tide_program_twin;

/// Immutable after build, but for reorder, repeat and follow, which want it for themselves; reference-counted; shared
/// by inference plans and their contexts.
typedef struct tide_program {
    _Atomic uint32_t refs;
    tide_graph *graph; ///< owned
    tide_order order;
    tide_program_step *steps; ///< [n_steps], in order of execution
    size_t n_steps;
    bool runnable; ///< false: some operator is TIDE_OP_PLAN_ONLY, or there are no kernels
    bool no_kernels;
    bool keeps_mapped; ///< weights that lie in a mapped file stay there
    tide_fuse_stats fused;
    tide_quantise_stats quantised;
    size_t n_folded;          ///< nodes evaluated at build
    size_t n_nodes_before;    ///< live nodes of the file
    size_t n_dynamic;         ///< tensors that steps make and that are sized while running, without a place
    size_t n_bounded;         ///< the same, with a place that has room for their bounds
    size_t n_weights;         ///< constants that a step reads or that are graph outputs
    uint64_t weight_bytes;    ///< of these, as their shapes say
    tide_program_twin *twins; ///< [n_twins] in the order in which they were repeated
    size_t n_twins;
} tide_program;

/**
 * Build a program. `graph` is taken, also on failure. Constants that a step reads get memory that cannot be moved any
 * more (tide_block_fix): kernels keep its address.
 *
 * @return the status of the first stage that fails; the message begins with the stage's name
 */
tide_status tide_program_build(tide_graph *graph, const tide_program_options *opt, tide_program **out,
                               tide_error *err) TIDE_NODISCARD;
/**
 * Run the steps in another order: step k is what was step order[k]. Before the program is shared. What a repeated node
 * makes is read from its last run before the reader, so readers may change from one run to the other. Steps that open
 * or close a body stay where they are, and others between the same two of them.
 *
 * @param order  [n_steps] a permutation
 * @return TIDE_ERR_INVALID, naming both nodes, when a step would run before one that makes what it reads, when it is no
 *         permutation, when a step would leave its body, when a second run would stand before the first or have no
 *         reader, or when others hold the program; then nothing has changed
 */
tide_status tide_program_reorder(tide_program *p, const uint32_t *order, tide_error *err) TIDE_NODISCARD;
/**
 * Run the node of step `step` a second time, as a new step "<name>.again" before present step `before`; every reader
 * from there on reads what the second run makes. Before the program is shared.
 *
 * @return TIDE_ERR_INVALID when the program has bodies of If, Loop or Scan, when it has a graph output, when it has
 * been repeated already or has no name of its own, when two runs may differ (TIDE_OP_NO_FOLD), when no step reads it
 * there or its inputs are not there; then nothing has changed
 */
tide_status tide_program_repeat(tide_program *p, uint32_t step, uint32_t before, tide_error *err) TIDE_NODISCARD;
/// Bring the program into the order of `names` ([n], as lifetimes.step_names), after repeating the nodes in
/// `recomputed`: what a plan file says about the program it was made for. Second runs that the program has and `names`
/// does not are dropped, which is how repeats are undone. TIDE_ERR_INCOMPARABLE naming what differs; nothing has
/// changed then.
tide_status tide_program_follow(tide_program *p, char *const *names, size_t n, char *const *recomputed,
                                size_t n_recomputed, tide_error *err) TIDE_NODISCARD;
/// Whether a step that makes none but bounded tensors takes scratch of which no plan knows.
bool tide_program_has_open_scratch(const tide_program *p, size_t step);
/// Whether the constant `value_i` is used where it lies in a file: no private memory is taken for it.
bool tide_program_is_mapped(const tide_program *p, uint32_t value_i);
tide_program *tide_program_ref(tide_program *p);
void tide_program_unref(tide_program *p);

#ifdef __cplusplus
}
#endif
#endif
