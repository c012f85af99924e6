// SPDX-License-Identifier: MIT
//
// What the files of core/runtime share of program, inference plan and context. Private to core/runtime and its tests.
#ifndef TIDE_CORE_RUNTIME_RUNTIME_INTERNAL_H
#define TIDE_CORE_RUNTIME_RUNTIME_INTERNAL_H

#include "core/ops/ops.h"
#include "core/runtime/context.h"
#include "core/runtime/inference_plan.h"
#include "core/runtime/places.h"
#include "core/runtime/program.h"
#include "core/runtime/sharing.h"

// ---- program ----

/// Prepare the kernel of `node`: k->def and k->node are set, the sizes of all operands known; of a dynamic node nothing
/// is prepared, each run does, but k->workspace_bytes is what the largest operands take, where that is known. On
/// failure there is nothing to destroy.
tide_status tide__program_prepare_kernel(const tide_graph *g, const tide_node *node, tide_kernel *k,
                                         tide_error *err) TIDE_NODISCARD;
/// What prepare made; one that was never prepared has no state.
static inline void tide__program_destroy_kernel(tide_kernel *k) {
    if (k->def->destroy != NULL && k->state != NULL) k->def->destroy(k);
}

/// What every whole program promises: one step for each node of the order, and kernels that know their nodes. For
/// assertions.
bool tide__program_holds(const tide_program *p);

// ---- inference plan ----

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

// ---- context ----
//
// Every value has one row in two tables of n_values: its tensor and the address its data has now. Tensors of
// intermediates are made once, without memory; planned mode binds them at creation, naive mode binds each when its step
// begins and unbinds it after its last use, so that the two modes differ in nothing else.

typedef struct tide__context_step {
    tide_kernel_args args; ///< `in` and `out` are the two arrays below
    tide_operand *in;      ///< [node->n_inputs], part of context.operands
    tide_operand *out;     ///< [node->n_outputs], part of context.operands
    tide_scope scope;
    char *scratch_tag;  ///< owned; NULL without scratch
    bool dynamic;       ///< shapes are inferred and the kernel prepared in each run (context_dynamic.c)
    bool has_kernel;    ///< of a dynamic step: `kernel` is good for the present shapes of its operands
    tide_kernel kernel; ///< … and args.exec belongs to it
    bool control;       ///< opens or closes a region (context_region.c)
    bool again;         ///< it closed an iteration, and there is another one
    bool overwrites;    ///< under poison: an input may be gone once the kernel has run …
    bool had_nan;       ///< … so this is what the inputs were asked before
} tide__context_step;

/// A tensor of one size in this program, and room for more in a plan for several sizes.
typedef struct tide__planned_size {
    uint32_t value, tensor; ///< in the graph; in the plan
    uint64_t room_bytes;
} tide__planned_size;

struct tide_context {
    tide_inference_plan *plan; ///< referenced
    tide_run_mode mode;
    tide_fill fill;
    const tide_observer *observer; ///< borrowed; may be NULL
    tide_allocator *workspace;     ///< referenced: serves the buffer, and naive births while running
    tide_allocator *dynamic;       ///< referenced: serves what is sized while running; NULL: nothing is
    tide_allocator *caller;        ///< referenced: serves outputs too, out of the caller's memory; NULL: the registry
    const tide_context *places_of; ///< borrowed, while the context is made: whose blocks it takes over
    const char *memory;            ///< borrowed: the caller's
    size_t memory_bytes;           ///< of it that this context uses
    tide_block *buffer;            ///< referenced; NULL in naive mode and when nothing is planned
    tide_block *scratch;           ///< naive mode: of the step that runs now
    tide_tensor **values;          ///< [n_values], referenced; NULL: fed, constant, or dynamic and not there now
    void **data;                   ///< [n_values]; NULL: none now
    tide_tensor **inputs;          ///< [n_inputs], referenced; NULL until set
    tide_tensor **next_inputs;     ///< [n_inputs], borrowed: candidates while they are checked
    tide_tensor **outputs;         ///< [n_outputs], referenced; NULL: dynamic and not made yet
    uint64_t *output_blocks;       ///< [n_outputs] ids of the blocks the runtime made, as it last knew them
    tide__context_step *steps;     ///< [n_steps]
    tide_operand *operands;        ///< operands of all steps, one behind the other
    bool *sized;                   ///< [n_values] bounded ones that this run has made; NULL: there are none
    tide_context_bounded *bounded; ///< [n_bounded] what came out in the runs so far
    size_t n_bounded;
    tide__planned_size *smaller; ///< [n_smaller] those that have more room in the plan than they take at this size
    size_t n_smaller;
    bool inputs_set;
    bool *ran; ///< [n_steps] of a program with regions: which steps this run has done; else NULL
    tide_scope run_scope;
    tide_context_stats stats;
};

// context_caller.c: memory of the caller

/// Take the memory that `opt` brings as the allocator of buffer and outputs. Before any of them is made.
tide_status tide__context_open_caller(tide_context *c, const tide_context_options *opt, tide_error *err) TIDE_NODISCARD;
/// A tensor for a graph output in that memory.
tide_status tide__context_caller_output(tide_context *c, uint32_t value_i, tide_tensor **out,
                                        tide_error *err) TIDE_NODISCARD;
/// Whether bytes of `t` lie in it.
bool tide__context_is_in_caller(const tide_context *c, const tide_tensor *t);
/// Once buffer and outputs are made: they fill what was said to be needed, to the byte. For assertions.
bool tide__context_caller_is_full(const tide_context *c);

/// Alignment of the one buffer: kernels count on more than some plans ask for.
static inline size_t tide__plan_buffer_align(const tide_plan_buffer *b) {
    return b->align_bytes > TIDE_WORKSPACE_ALIGN ? (size_t)b->align_bytes : TIDE_WORKSPACE_ALIGN;
}

// context_memory.c: outputs

/// Take all outputs for writing: settle what they share with lazy clones, and take their present addresses. Under
/// poison their old content goes.
tide_status tide__context_write_outputs(tide_context *c, tide_error *err) TIDE_NODISCARD;
/// Copy what no step writes.
tide_status tide__context_copy_outputs(tide_context *c, tide_error *err) TIDE_NODISCARD;

// context_poison.c: all of these do nothing unless the fill mode is poison

/// Once the buffer is there.
void tide__poison_open(tide_context *c);
/// Before step `step_i`, after its memory was allocated: what it will write must be untouched; from now on it is in
/// use.
tide_status tide__poison_before_step(tide_context *c, size_t step_i, tide_error *err) TIDE_NODISCARD;
/// Steps up to `next` - 1 are left out: `value_i`, which one of them is the last to read, goes now.
tide_status tide__poison_end_value(tide_context *c, uint32_t value_i, size_t next, tide_error *err) TIDE_NODISCARD;
/// After step `step_i`: its results are its own, nothing was written behind them or behind what is freed here.
tide_status tide__poison_after_step(tide_context *c, size_t step_i, tide_error *err) TIDE_NODISCARD;
/// Before the first step: the outputs' old content goes.
void tide__poison_begin(tide_context *c);
/// After the last step.
tide_status tide__poison_end(tide_context *c, tide_error *err) TIDE_NODISCARD;
/// After a failed run, before naive mode frees: all is poison again.
void tide__poison_abandon(tide_context *c);
/// Before memory is given back: all of it is open.
void tide__poison_close(tide_context *c);

/// Whether value `value_i` is needed no more once step `step_i` is done: the last to read it, but for values from
/// outside of a body that has another iteration.
static inline bool tide__value_ends(const tide_context *c, uint32_t value_i, size_t step_i) {
    const tide__need *need = &c->plan->needs[value_i];
    if (need->last_step != (int64_t)step_i) return false;
    return !c->steps[step_i].again || need->birth_step > (int64_t)c->plan->program->steps[step_i].opened_by;
}

// context_region.c: steps that open or close a region

/// Do step `step_i`. *next: the step to go on with. What it makes has memory by now, but for what is dynamic.
tide_status tide__context_run_control(tide_context *c, size_t step_i, size_t *next, tide_error *err);

// context_dynamic.c: tensors that are sized while running

/// A run begins, or a step failed: what is dynamic is given back, of outputs too.
void tide__context_drop_dynamic(tide_context *c);
/// A step whose operands are not all known before: infer their shapes, take memory for what it makes and for scratch,
/// prepare the kernel, run it.
tide_status tide__context_run_dynamic(tide_context *c, size_t step_i, tide_error *err) TIDE_NODISCARD;
/// Free dynamic values whose last step is `step_i`. TIDE_ERR_RUNTIME under poison: bytes behind one were written.
tide_status tide__context_free_dynamic(tide_context *c, size_t step_i, tide_error *err) TIDE_NODISCARD;
/// The value of a dynamic value for now: a new tensor of this type and shape, `o` gets its size and address.
tide_status tide__context_make_dynamic(tide_context *c, uint32_t value_i, tide_operand *o,
                                       tide_error *err) TIDE_NODISCARD;
// context_bounded.c: tensors that are sized while running, in their places

/// The tables of a context whose program has such tensors.
tide_status tide__context_open_bounded(tide_context *c, tide_error *err) TIDE_NODISCARD;
/// Which tensors of the plan may take less than their places have room for. After tide__context_open_bounded.
tide_status tide__context_find_sizes(tide_context *c, tide_error *err) TIDE_NODISCARD;
/// A run has begun: tell the observer what those take that have one size in this program, and more room in the plan.
void tide__context_tell_sizes(const tide_context *c);
/// A run begins, or has failed: nothing has come out.
void tide__context_forget_sizes(tide_context *c);
/// A run has ended well: note what came out.
void tide__context_note_sizes(tide_context *c);
/// A bounded value has this type and shape for now; `o` gets its address. TIDE_ERR_NO_SPACE naming it where the shape
/// is past a bound that was given, TIDE_ERR_RUNTIME past one of its operator's rule; it is as before then.
tide_status tide__context_size_bounded(tide_context *c, uint32_t value_i, tide_operand *o,
                                       tide_error *err) TIDE_NODISCARD;
/// Give back kernels that were kept for the next run.
void tide__context_drop_kernels(tide_context *c);
/// A dynamic value is `t` from now on, which other values may be too: nothing writes into it any more. NULL: nothing
/// is.
void tide__context_set_dynamic(tide_context *c, uint32_t value_i, tide_tensor *t);
/// A dynamic graph output has its last value of this run.
void tide__context_note_output(tide_context *c, uint32_t value_i);
/// Any value as it is now.
tide_status tide__context_operand(const tide_context *c, uint32_t value_i, tide_operand *out,
                                  tide_error *err) TIDE_NODISCARD;
/// The steps from `step_i` + 1 up to `next` - 1 are left out: what they were the last to read goes.
tide_status tide__context_skip(tide_context *c, size_t step_i, size_t next, tide_error *err) TIDE_NODISCARD;

// context_memory.c

/// A block of `size_bytes` rounded up, filled as the context is.
tide_status tide__context_take_block(tide_context *c, tide_allocator *from, tide_memory_kind kind, uint64_t size_bytes,
                                     size_t align_bytes, const char *tag, tide_block **out,
                                     tide_error *err) TIDE_NODISCARD;
/// Make the tensors and give them the memory they have from the start (buffer, outputs).
tide_status tide__context_take_memory(tide_context *c, tide_error *err) TIDE_NODISCARD;
/// Naive mode: the memory of one intermediate goes back.
void tide__context_free_value(tide_context *c, uint32_t value_i);
void tide__context_drop_memory(tide_context *c);
/// Bind the tensor of a value into the planned buffer (S27-10); FAILED fills err.
tide_bind_result tide__context_bind(tide_context *c, uint32_t value_i, tide_error *err);
/// Naive mode: memory for what step `step_i` writes, and for its scratch. On error some may have been given.
tide_status tide__context_alloc_step(tide_context *c, size_t step_i, tide_error *err) TIDE_NODISCARD;
/// Naive mode: free the scratch and all whose last step is `step_i`.
void tide__context_free_step(tide_context *c, size_t step_i);
/// Naive mode, after a failed step: free what is still allocated.
void tide__context_free_rest(tide_context *c);

#endif
