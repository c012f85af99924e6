// SPDX-License-Identifier: MIT
//
// context: what belongs to one request: the buffer, the tensors bound into it, inputs and outputs.
#ifndef TIDE_CORE_RUNTIME_CONTEXT_H
#define TIDE_CORE_RUNTIME_CONTEXT_H

#include "core/base/text.h"
#include "core/memory/observer.h"
#include "core/runtime/inference_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_context tide_context;

typedef enum tide_run_mode {
    TIDE_RUN_NAIVE,   ///< every tensor is allocated when born and freed when dead
    TIDE_RUN_PLANNED, ///< every tensor is bound into one buffer, nothing is allocated while running
} tide_run_mode;

/// What memory holds before it is written. A correct program gives the same bytes under all three.
typedef enum tide_fill {
    TIDE_FILL_ZERO, ///< zeroed once: planned: at creation; naive: at each birth
    TIDE_FILL_NONE, ///< as the allocator gave it
    /// Every place is poison (core/memory/poison.h) from end to end while no value owns it, in both modes: before the
    /// first write of a run, after the last use, behind a tensor's last byte. Runs check that it still is and name the
    /// tensor where it is not; results that hold the poison are refused too. Outputs are poisoned when a run begins.
    /// Under AddressSanitizer what no value owns is off limits. Costs some passes over each tensor's bytes per run.
    TIDE_FILL_POISON,
} tide_fill;

/// "zero", "none", "poison".
const char *tide_fill_name(tide_fill fill);

/// What binding a tensor to the buffer ended in (S27-10).
typedef enum tide_bind_result { TIDE_BIND_NOT_TRIED, TIDE_BIND_BOUND, TIDE_BIND_FAILED } tide_bind_result;

/// The memory of one context in planned mode: the buffer of the memory plan, whatever the form of the plan, and behind
/// it the graph outputs, each rounded up to its alignment.
typedef struct tide_context_need {
    uint64_t bytes;        ///< of all together, padding included; 0: nothing is needed
    size_t align_bytes;    ///< of its first byte; 1 when nothing is needed
    uint64_t buffer_bytes; ///< of the planned buffer
    uint64_t output_bytes; ///< of the outputs, each rounded up
} tide_context_need;

/**
 * How much memory a context of this plan takes in planned mode, and how it is to be aligned. It is known from the plan
 * alone: nothing is allocated, and no context need be there. A process needs it once per context.
 *
 * @param out  filled on TIDE_OK
 * @return TIDE_ERR_INVALID for a plan without a memory plan; TIDE_ERR_OVERFLOW when the sum passes 2^64 - 1
 * Thread-safe. Cost O(values).
 */
tide_status tide_context_need_of(const tide_inference_plan *plan, tide_context_need *out,
                                 tide_error *err) TIDE_NODISCARD;

typedef struct tide_context_options {
    tide_run_mode mode;
    tide_fill fill;
    /// Gets run and operator scopes, what came out of tensors that are sized while running, and the blocks in `memory`;
    /// borrowed, outlives the context, and with `memory`
    /// every output that is still held; may be NULL.
    const tide_observer *observer;
    /// Memory of the caller's for all that tide_context_need_of counts, at least that much and so aligned; the context
    /// then takes nothing from the registry. Planned mode only. Borrowed: for this context alone as long as it lives,
    /// and until no output of it is held any more. Only its first `need.bytes` bytes are touched. NULL: memory of the
    /// registry.
    void *memory;
    size_t memory_bytes;
    /// Take no memory, but the buffer and the output blocks of this context, of the same model at another size: each
    /// must be large enough here (TIDE_ERR_NO_SPACE). Planned mode only, and not with `memory`. The two must not run at
    /// the same time, and what one run left in the outputs the next one overwrites. Borrowed for the call.
    const tide_context *places_of;
} tide_context_options;

/**
 * Make a context; takes a reference to the plan. Planned mode takes the one buffer (kind Workspace, exactly the
 * planned bytes) and binds every tensor; graph outputs get blocks of their own (kind Default) in both modes. With
 * opt->memory both lie there, as blocks of the allocator "caller"; what tidemark keeps for itself (tables, names, state
 * of kernels) does not. A copy of an output that is asked for without a place for it is refused then
 * (TIDE_ERR_NO_SPACE): no allocator stands behind that memory.
 *
 * @return TIDE_ERR_INVALID (planned mode of a plan without a memory plan; memory in naive mode, without an address or
 *         misaligned), TIDE_ERR_NO_SPACE (less memory than is needed; the message has both numbers),
 *         TIDE_ERR_NOT_IMPLEMENTED (memory for another device than the CPU), TIDE_ERR_NOMEM, TIDE_ERR_RUNTIME; nothing
 *         is leaked on any of them
 */
tide_status tide_context_create(tide_inference_plan *plan, const tide_context_options *opt, tide_context **out,
                                tide_error *err) TIDE_NODISCARD;
/// Takes NULL. Output tensors that are still held stay readable (S27-9).
void tide_context_destroy(tide_context *c);

/**
 * Set the graph inputs. Tensors are referenced, not copied (zero copy), until replaced.
 *
 * @return TIDE_ERR_INVALID for a missing or unknown name, a wrong count (both counts in the message), dtype, shape or
 *         device, a tensor that is strided (LT-6), or one that lies in memory this context writes (its buffer, one of
 * its outputs, the caller's memory: clone those, lazily will do); TIDE_ERR_BUSY when a guard forbids reading it;
 * nothing is changed then
 */
tide_status tide_context_set_inputs(tide_context *c, tide_tensor *const *tensors, size_t n,
                                    tide_error *err) TIDE_NODISCARD;
tide_status tide_context_set_inputs_by_name(tide_context *c, const char *const *names, tide_tensor *const *tensors,
                                            size_t n, tide_error *err) TIDE_NODISCARD;

/**
 * Run all steps once. Not for two threads at once on one context.
 *
 * Before the first step every output is taken for writing and every input for reading: a lazy clone of an output that
 * is held keeps its bytes (the output gets memory of its own), and an input that was written since is seen.
 *
 * @return TIDE_ERR_INVALID (inputs not set, or an input or output that was changed so that it no longer fits the
 *         graph), TIDE_ERR_BUSY (a guard forbids access), TIDE_ERR_NOMEM (a copy by write; a naive birth): all name the
 *         tensor. An operator's own failure names node and operator. TIDE_ERR_RUNTIME under TIDE_FILL_POISON: memory
 *         was touched by code that does not own it. The context can run again after any of them.
 */
tide_status tide_context_run(tide_context *c, tide_error *err) TIDE_NODISCARD;

/// Graph outputs in file order / by name; borrowed, valid until the context is destroyed (take a reference to keep
/// one longer; take a lazy clone to keep its bytes past the next run); content is of the last run and is overwritten by
/// the next. Before the first run: content as `fill` says. One that is sized while running is NULL until a run has made
/// it, and after a run that failed; within a bound it is the same tensor each time, of another shape.
size_t tide_context_n_outputs(const tide_context *c);
tide_tensor *tide_context_output(const tide_context *c, size_t i);
tide_tensor *tide_context_output_by_name(const tide_context *c, const char *name); ///< NULL: no such output

typedef struct tide_context_stats {
    tide_run_mode mode;
    uint64_t buffer_bytes;                 ///< the planned buffer; 0 in naive mode
    size_t n_bound, n_failed, n_not_tried; ///< node outputs by bind result; graph outputs are not tried (X-5)
    uint64_t n_runs;
    uint64_t n_copied_bytes; ///< copied by the runtime itself, not by operators: outputs that are inputs or constants
    /// Copied by operators only because their operands have places of their own: views, contiguous slices, and parts of
    /// a Concat that could be made in it. A plan with aliases brings it down, to 0 for a view of an intermediate.
    uint64_t n_view_bytes;
} tide_context_stats;
void tide_context_get_stats(const tide_context *c, tide_context_stats *out);
/// What the context is made of, for people, one line each: model and plan, mode and fill, the buffer and who served it,
/// weights that it shares, its tables and what binding them ended in, inputs, outputs, runs.
void tide_context_describe(const tide_context *c, tide_text *out);
/// A tensor that is sized while running within a bound: what came out in the runs so far, in a body in its last
/// iteration. Texts are the graph's.
typedef struct tide_context_bounded {
    uint32_t value;  ///< in the graph
    uint32_t tensor; ///< in the memory plan; TIDE_NO_INDEX: there is none
    const char *name;
    tide_dtype dtype;
    tide_shape bound;     ///< no extent is larger …
    bool is_count;        ///< … or: [n], it has at most n elements
    uint64_t bound_bytes; ///< of its place, before rounding
    uint64_t n_runs;      ///< that made it; 0: the rest is nothing
    tide_shape last;      ///< of the last of them
    uint64_t last_bytes, least_bytes, most_bytes;
} tide_context_bounded;
/// All of them in the order of the graph's values; borrowed, as of the last run. @return their number
size_t tide_context_list_bounded(const tide_context *c, const tide_context_bounded **out);
/// Which steps the last run went through, those of bodies too: [n_steps]; NULL: there are no bodies, all of them.
const bool *tide_context_ran(const tide_context *c);
/// Address of the planned buffer and the tensor of a value (NULL: none now), for tests and views. The buffer never
/// moves: a lazy clone of a tensor in it is a copy. Under TIDE_FILL_POISON there is nothing to see between runs.
const void *tide_context_buffer(const tide_context *c);
tide_tensor *tide_context_value(const tide_context *c, uint32_t value_i);

#ifdef __cplusplus
}
#endif
#endif
