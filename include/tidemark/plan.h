// SPDX-License-Identifier: MIT
//
// plan: lifetimes in, memory plan out. Which tensor needs how many bytes from which step to which; where each of them
// lies in one buffer, so that no two that are needed at one step share bytes; and how small any such plan can be.
//
//     tide_lifetimes lt = {0};                                      in C++: {}
//     tide_lifetime x = tide_lifetime_make("x", 4096, 64, 0, 2);    needed in steps 0 and 1
//     tide_lifetimes_add(&lt, &x, &err);  …                         one call for each tensor
//     tide_plan_make(&lt, tide_strategy_default(), NULL, &plan, &err);
//     plan->bytes, plan->offsets[0], plan->lower_bound_bytes, …
//     tide_memory_plan_destroy(plan);
//     tide_lifetimes_deinit(&lt);
#ifndef TIDEMARK_PLAN_H
#define TIDEMARK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tidemark/memory.h"
#include "tidemark/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- lifetimes ----

/// enum suffix, value (stable: plan files hold it), printable name
#define TIDE_ROLE_MAP(XX)                                                                                              \
    XX(INTERMEDIATE, 0, "intermediate")                                                                                \
    XX(SCRATCH, 1, "scratch")                                                                                          \
    XX(INPUT, 2, "input")                                                                                              \
    XX(OUTPUT, 3, "output")                                                                                            \
    XX(WEIGHT, 4, "weight")
/// What a tensor is in its program: for reports. tide_plan_make does not look at it.
typedef enum tide_role {
#define XX(name, value, text) TIDE_ROLE_##name = (value),
    TIDE_ROLE_MAP(XX)
#undef XX
} tide_role;

#define TIDE_NO_INDEX UINT32_MAX ///< no such node, output or value

/// A stretch of a lifetime in which only bytes [lo_bytes, hi_bytes) of the tensor are needed; lo == hi: none of them.
typedef struct tide_gap {
    int64_t begin_step, end_step; ///< half-open, inside the lifetime
    uint64_t lo_bytes, hi_bytes;
} tide_gap;

/// enum suffix, printable name
#define TIDE_ALIAS_MAP(XX)                                                                                             \
    XX(NONE, "none")                                                                                                   \
    XX(VIEW, "view")         /* the same bytes under another shape */                                                  \
    XX(IN_PLACE, "in-place") /* its operator overwrites the other, which dies there */                                 \
    XX(PART, "part")         /* one of the inputs that lie side by side inside a Concat's output */                    \
    XX(SLICE, "slice")       /* a stretch of the other without gaps: Split, Slice */                                   \
    XX(GIVEN, "given")       /* a lifetimes file says so, or a program */
/// Why a tensor lies inside another one: for reports. tide_plan_make asks only whether it is TIDE_ALIAS_NONE.
typedef enum tide_alias_kind {
#define XX(name, text) TIDE_ALIAS_##name,
    TIDE_ALIAS_MAP(XX)
#undef XX
} tide_alias_kind;

/// When a tensor is needed: half-open [begin_step, end_step) in steps of the execution order. Two tensors conflict
/// when their lifetimes meet. What its pointers point to is the table's, once it is in one.
typedef struct tide_lifetime {
    char *name;           ///< unique in the table, which is not checked
    uint64_t size_bytes;  ///< as the shape says, before rounding
    uint64_t align_bytes; ///< power of two
    int64_t begin_step, end_step;
    tide_memory_kind kind;
    tide_device device;
    tide_role role;
    bool persistent; ///< takes no part in reuse: graph inputs, outputs, weights
    uint32_t node;   ///< producer's node index in the graph; TIDE_NO_INDEX: none
    uint32_t port;   ///< which output of it; for scratch TIDE_NO_INDEX
    uint32_t value;  ///< value index in the graph; TIDE_NO_INDEX: scratch or no graph

    bool unrounded;              ///< occupies size_bytes as they are (lifetime files); else rounded up to align_bytes
    bool fixed;                  ///< lies at fixed_offset_bytes, which the user has given
    uint64_t fixed_offset_bytes; ///< with `fixed`
    uint32_t apart_set;          ///< members of one set never share a byte, also when never alive together; 0: no set
    tide_gap *gaps;              ///< [n_gaps] by begin_step, disjoint
    uint32_t n_gaps;
    uint64_t *point_bytes; ///< [lifetimes.n_points] size at each profile point; NULL: size_bytes at all of them
    char *bound;           ///< of a tensor that is sized while running: the most that it can be ("[300x6]", "64
                           ///< elements"), for reports; size_bytes is room for it. NULL: its size is known

    // Set by tide_lifetimes_alias. An alias has no place of its own: it lies alias_offset_bytes into item `alias_of`,
    // which may itself be an alias. It is as aligned as that makes it. While any alias is alive its bytes belong to
    // all; in a root that is rounded up they count in whole multiples of the root's alignment.
    tide_alias_kind alias;
    uint32_t alias_of;
    uint64_t alias_offset_bytes;
} tide_lifetime;

/// One that is planned: an intermediate tensor of kind Workspace on the CPU, without a graph. Change in it what is
/// different, then tide_lifetimes_add, which checks it; `name` is borrowed until then.
tide_lifetime tide_lifetime_make(const char *name, uint64_t size_bytes, uint64_t align_bytes, int64_t begin_step,
                                 int64_t end_step);

/// What a process that runs the program takes beside the tensors of the table; all 0: not known, as of a bare list.
typedef struct tide_process_facts {
    uint64_t program_bytes;   ///< code of the program and its libraries, code of kernels, threads
    uint64_t own_bytes;       ///< graph, program, plan: tidemark's own bookkeeping
    uint64_t constants_bytes; ///< the most that constants take while the model is loaded
    uint64_t mapped_bytes;    ///< of the weights: those that stay in their file
} tide_process_facts;

typedef enum tide_body_kind { TIDE_BODY_THEN, TIDE_BODY_ELSE, TIDE_BODY_LOOP, TIDE_BODY_SCAN } tide_body_kind;
/// A body of an If, a Loop or a Scan: a stretch of the steps that a run may leave out or go through again.
typedef struct tide_plan_region {
    tide_body_kind kind;
    int64_t open_step;  ///< the step that decides whether it runs
    int64_t begin_step; ///< its first step
    int64_t end_step;   ///< behind its last one, which decides whether it runs again
} tide_plan_region;
/// "then", "else", "loop", "scan".
const char *tide_plan_region_name(const tide_plan_region *r);

/// A table of them; all zero is an empty one. Read it as you like; only the functions below may change it, because all
/// it points to is its own and freed by tidemark.
typedef struct tide_lifetimes {
    char *model;          ///< name for reports; NULL: none
    tide_lifetime *items; ///< [n]
    size_t n, cap;
    int64_t n_steps;     ///< steps are 0 … n_steps-1
    char **step_names;   ///< [n_step_names]: what runs at each step
    size_t n_step_names; ///< n_steps, or 0 when a bare list has no names
    char **recomputed;   ///< [n_recomputed]: nodes that run twice; step "<name>.again" is the second run, and
                         ///< every reader after it reads what that one makes
    size_t n_recomputed;
    char **dynamic; ///< [n_dynamic]: tensors that are sized while running; they have no place in any plan, and what
                    ///< they take comes on top
    size_t n_dynamic;
    tide_plan_region *regions; ///< [n_regions] by open_step: an outer one before those in it, then before else
    size_t n_regions;
    char **point_names;        ///< [n_points]: sizes for which a dynamic model is planned ("batch=1", …)
    size_t n_points;           ///< 0: one size only. size_bytes of each item is the maximum over the points
    uint64_t given_plan_bytes; ///< what the plan needs that came with the list, in a file of another compiler; 0: none
    tide_process_facts process;
} tide_lifetimes;

/**
 * Append one; its number is lt->n - 1 afterwards.
 *
 * @param item  borrowed; name, gaps, point_bytes and bound are copied. No alias: tide_lifetimes_alias makes it one
 * afterwards
 * @return TIDE_ERR_INVALID naming it for no name, begin >= end, an alignment that is no power of two, a size that
 *         overflows when rounded up, gaps that are unsorted, overlap or lie outside, a fixed offset that is misaligned
 *         or overflows; TIDE_ERR_NOMEM. The table is as it was then
 * Costs a copy of the item.
 */
tide_status tide_lifetimes_add(tide_lifetimes *lt, const tide_lifetime *item, tide_error *err) TIDE_NODISCARD;
/**
 * From now on item `i` lies `offset_bytes` into item `of`.
 *
 * @return TIDE_ERR_INVALID naming both when one is persistent, `i` is an alias already, has gaps, a fixed offset or an
 *         apart set (those are the target's to have), they differ in device or kind, `i` would end outside `of`, or
 *         `of` is `i` or lies inside `i`
 * Costs O(length of the chain of aliases).
 */
tide_status tide_lifetimes_alias(tide_lifetimes *lt, uint32_t i, tide_alias_kind kind, uint32_t of,
                                 uint64_t offset_bytes, tide_error *err) TIDE_NODISCARD;
/// Free what the table owns; it is empty then.
void tide_lifetimes_deinit(tide_lifetimes *lt);

/**
 * Largest sum of aligned bytes of non-persistent tensors live at one step, what aliases share counted once: no plan of
 * these lifetimes is smaller. Over several buffers the sum of each one's.
 *
 * @param step  out: the first such step, over several buffers that of the largest; may be NULL
 * @return TIDE_ERR_OVERFLOW when the sizes of one buffer pass 2^63 - 1, or that sum 2^64 - 1; TIDE_ERR_NOMEM
 * Costs O(n log n).
 */
tide_status tide_lower_bound(const tide_lifetimes *lt, uint64_t *bytes, int64_t *step, tide_error *err) TIDE_NODISCARD;

// ---- the plan ----

/// Pools: each holds one tensor at a time. Offsets: every tensor has its own place in one buffer.
typedef enum tide_plan_form { TIDE_PLAN_POOLS, TIDE_PLAN_OFFSETS } tide_plan_form;

#define TIDE_NO_OFFSET UINT64_MAX ///< the invalid-offset sentinel
#define TIDE_NO_POOL (-1)         ///< the invalid-pool sentinel

/// Of a pool plan.
typedef struct tide_plan_pool {
    uint64_t size_bytes;   ///< largest aligned member
    uint64_t offset_bytes; ///< of the pool when all of its buffer are laid end to end
    size_t n_members;      ///< items that have the place; their aliases are not counted
    uint32_t buffer;       ///< index into the plan's buffers
} tide_plan_pool;

/// enum suffix, printable name
#define TIDE_PROOF_MAP(XX)                                                                                             \
    XX(LIVE_SUM, "live sum")   /* the lower bound itself */                                                            \
    XX(ALIGNMENT, "alignment") /* padding that no order of the live tensors avoids */                                  \
    XX(FIXED, "fixed offset")  /* a tensor with a given offset ends there */                                           \
    XX(APART, "kept apart")    /* tensors that must not share, never alive together */                                 \
    XX(SEARCH, "search")       /* the tree of all smaller plans was searched to its end */
/// What proves that no plan is smaller than proved_bytes.
typedef enum tide_proof {
#define XX(name, text) TIDE_PROOF_##name,
    TIDE_PROOF_MAP(XX)
#undef XX
} tide_proof;

/// Each (device, kind) is planned apart: one buffer each.
typedef struct tide_plan_buffer {
    tide_device device;
    tide_memory_kind kind;
    uint64_t align_bytes;                                                    ///< the strictest of its lifetimes'
    uint64_t bytes;                                                          ///< its size
    uint64_t naive_bytes, naive_peak_bytes, lower_bound_bytes, proved_bytes; ///< as of the plan
    tide_proof proof;                                                        ///< of proved_bytes
} tide_plan_buffer;

/// A memory plan: where every non-persistent tensor lives in the buffer of its device and kind. Owns all it points to,
/// is read and never changed, by several threads if need be; contains its lifetimes, so that it can be saved, verified
/// and shown alone.
typedef struct tide_memory_plan {
    char *strategy; ///< "greedy_color", "greedy_by_size", …
    tide_plan_form form;
    tide_lifetimes lifetimes;  ///< a copy
    uint64_t *offsets;         ///< [lifetimes.n] bytes from the start of its buffer; TIDE_NO_OFFSET for persistent ones
    int32_t *pools;            ///< [lifetimes.n]; TIDE_NO_POOL in an offset plan, for persistent ones and aliases
    tide_plan_pool *pool_list; ///< [n_pools]; empty in an offset plan
    size_t n_pools;
    tide_plan_buffer *buffers; ///< [n_buffers] by device, then kind; none when nothing takes space
    size_t n_buffers;
    // The following are sums over the buffers, but for align_bytes, which is the strictest.
    uint64_t align_bytes;
    uint64_t bytes;
    uint64_t naive_bytes;       ///< sum of aligned non-persistent sizes, aliases too
    uint64_t naive_peak_bytes;  ///< largest sum alive at one step where every tensor, aliases too, has its own memory
    uint64_t lower_bound_bytes; ///< largest sum of bytes alive at one step; what aliases share counts once
    uint64_t proved_bytes;      ///< no plan of these lifetimes is smaller; at least lower_bound_bytes
    bool proven;                ///< bytes == proved_bytes: no plan of these lifetimes is smaller
    bool verified;              ///< passed the independent verifier; the runtime takes no other
    uint64_t time_ns;           ///< the strategy's own time
} tide_memory_plan;

/// Free a plan with all it contains. Takes NULL.
void tide_memory_plan_destroy(tide_memory_plan *p);

// ---- planning ----

/// Memory for the planner's own tables, instead of malloc's. Each function gets `ctx`; blocks are aligned to 16 bytes
/// at least. Called by several threads at once where a search has several.
typedef struct tide_plan_memory {
    void *(*take)(void *ctx, size_t bytes);                ///< NULL: there is none
    void *(*resize)(void *ctx, void *block, size_t bytes); ///< as realloc, of a block that is not NULL
    void (*give_back)(void *ctx, void *block);             ///< of a block that is not NULL
    void *ctx;
} tide_plan_memory;

/// From now on the planner takes its memory there (NULL: from malloc, as at first). All that was taken before,
/// lifetimes and plans too, has to be given back by then, and no other thread may be planning. In the archive
/// libtidemark.a it is the memory of all parts.
void tide_plan_set_memory(const tide_plan_memory *memory);

/// An algorithm that makes plans; static.
typedef struct tide_strategy tide_strategy;

/// By its name on the command line: "search", "greedy_by_size", … (`tidemark plan --all` prints them, docs/planner.md
/// explains them). *out is static. @return TIDE_ERR_INVALID for another name, with the list as note and the nearest as
/// hint
tide_status tide_strategy_find(const char *name, const tide_strategy **out, tide_error *err) TIDE_NODISCARD;
/// The one that is used where none is named, "search": the best of all heuristics, and from there on until a plan is
/// proven or the limits are met. Static.
const tide_strategy *tide_strategy_default(void);

/// Limits of strategies that search; the others ignore them.
typedef struct tide_strategy_options {
    uint64_t seed;           ///< for strategies that draw; 0 is a seed like any other
    uint64_t time_limit_ns;  ///< for all buffers, verifying included; 0: no clock ends it, and the plan depends on
                             ///< nothing but lifetimes and these options without n_threads: the same on every machine
    uint64_t node_limit;     ///< nodes of search; 0 with no time limit either: an amount of work of its own
    uint32_t work_percent;   ///< of that amount; 0: all of it
    uint64_t capacity_bytes; ///< 0: look for the smallest plan. Else: a plan of at most this, or a proof that there
                             ///< is none (proved_bytes > capacity); the plan is the best found either way
    uint32_t n_threads;      ///< 0: as many as there are processors
    /// Asked now and then, by every thread that works on the plan: true ends the work with TIDE_ERR_CANCELLED. A
    /// heuristic's single pass and the verifier run to their ends. NULL: never.
    bool (*is_cancelled)(void *ctx);
    void *cancel_ctx;
} tide_strategy_options;

/**
 * Make a plan: each (device, kind) gets a buffer, every tensor that is not persistent a place in it, aliases the one in
 * their target. A verifier that shares no code with any strategy has looked at the plan before it is returned.
 *
 * @param lt   borrowed, copied into the plan
 * @param opt  NULL: all zero
 * @param out  owned: tide_memory_plan_destroy
 * @return TIDE_ERR_VERIFY when the verifier refuses what the strategy made; TIDE_ERR_NOT_IMPLEMENTED from a strategy
 *         that cannot keep fixed offsets; TIDE_ERR_OVERFLOW when the sizes pass 2^63 - 1; TIDE_ERR_CANCELLED when
 *         opt->is_cancelled said so; TIDE_ERR_NOMEM. *out is made by success alone
 *
 * Costs about O(n log n) for heuristics. "search" ends when its plan is proven, otherwise with its limits: some seconds
 * for ten thousand lifetimes that leave no room. It starts opt->n_threads threads and has joined them when it returns.
 */
tide_status tide_plan_make(const tide_lifetimes *lt, const tide_strategy *strategy, const tide_strategy_options *opt,
                           tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;

/// How good the offsets of tide_plan_arrays are; the fields are those of tide_memory_plan.
typedef struct tide_plan_result {
    uint64_t bytes, proved_bytes, naive_bytes;
} tide_plan_result;

/**
 * The same with numbers alone, for other languages (examples/python): lifetime i needs sizes[i] bytes from step
 * begins[i] to before ends[i], all on one device and of one kind, and gets offsets[i]. The strategy is the default one.
 *
 * @param n              of each array; 0 is a plan of 0 bytes
 * @param aligns         powers of two; NULL: 64 each
 * @param time_limit_ns  0: no clock ends it, and the offsets are the same on every machine
 * @param offsets        out: [n]
 * @param result         out; may be NULL
 * @return as tide_lifetimes_add, which calls a lifetime by its number, and tide_plan_make
 */
tide_status tide_plan_arrays(size_t n, const uint64_t *sizes, const uint64_t *aligns, const int64_t *begins,
                             const int64_t *ends, uint64_t time_limit_ns, uint64_t *offsets, tide_plan_result *result,
                             tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
