// SPDX-License-Identifier: MIT
//
// lifetimes and memory plan: the two types that pass between the planner and the runtime.
//
// This header is one of the two inversions of the house: it defines the type of a memory plan; planner/ makes one;
// the runtime is handed one and never asks how it was made.
#ifndef TIDE_CORE_RUNTIME_MEMORY_PLAN_H
#define TIDE_CORE_RUNTIME_MEMORY_PLAN_H

#include "core/memory/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a tensor is in its program.
#define TIDE_ROLE_MAP(XX)                                                                                              \
    XX(INTERMEDIATE, 0, "intermediate")                                                                                \
    XX(SCRATCH, 1, "scratch")                                                                                          \
    XX(INPUT, 2, "input")                                                                                              \
    XX(OUTPUT, 3, "output")                                                                                            \
    XX(WEIGHT, 4, "weight")
typedef enum tide_role {
#define XX(name, value, text) TIDE_ROLE_##name = (value),
    TIDE_ROLE_MAP(XX)
#undef XX
} tide_role;
const char *tide_role_name(tide_role role);
tide_status tide_role_parse(const char *text, tide_role *out, tide_error *err) TIDE_NODISCARD;

#define TIDE_NO_INDEX UINT32_MAX

/// A stretch of a lifetime in which only bytes [lo_bytes, hi_bytes) of the tensor are needed; lo == hi: none of them.
typedef struct tide_gap {
    int64_t begin_step, end_step; ///< half-open, inside the lifetime
    uint64_t lo_bytes, hi_bytes;
} tide_gap;

/// Why a tensor lies inside another one.
#define TIDE_ALIAS_MAP(XX)                                                                                             \
    XX(NONE, "none")                                                                                                   \
    XX(VIEW, "view")         /* the same bytes under another shape */                                                  \
    XX(IN_PLACE, "in-place") /* its operator overwrites the other, which dies there */                                 \
    XX(PART, "part")         /* one of the inputs that lie side by side inside a Concat's output */                    \
    XX(SLICE, "slice")       /* a stretch of the other without gaps: Split, Slice */                                   \
    XX(GIVEN, "given")       /* a lifetimes file says so */
typedef enum tide_alias_kind {
#define XX(name, text) TIDE_ALIAS_##name,
    TIDE_ALIAS_MAP(XX)
#undef XX
} tide_alias_kind;
const char *tide_alias_kind_name(tide_alias_kind kind);
tide_status tide_alias_kind_parse(const char *text, tide_alias_kind *out, tide_error *err) TIDE_NODISCARD;

/// When a tensor is needed: half-open [begin_step, end_step) in steps of the execution order. Two tensors conflict
/// when their lifetimes meet. The seeds' closed birth and death are begin_step and end_step - 1.
typedef struct tide_lifetime {
    char *name;           ///< owned by the table; unique in it
    uint64_t size_bytes;  ///< as the shape says, before rounding
    uint64_t align_bytes; ///< power of two
    int64_t begin_step, end_step;
    tide_memory_kind kind;
    tide_device device;
    tide_role role;
    bool persistent; ///< takes no part in reuse: graph inputs, outputs, weights (S23-6)
    uint32_t node;   ///< producer's node index in the graph; TIDE_NO_INDEX: none
    uint32_t port;   ///< which output of it; for scratch TIDE_NO_INDEX
    uint32_t value;  ///< value index in the graph; TIDE_NO_INDEX: scratch or no graph

    bool unrounded;              ///< occupies size_bytes as they are (lifetime files); else rounded up to align_bytes
    bool fixed;                  ///< lies at fixed_offset_bytes, which the user has given
    uint64_t fixed_offset_bytes; ///< with `fixed`
    uint32_t apart_set;          ///< members of one set never share a byte, also when never alive together; 0: no set
    tide_gap *gaps;              ///< [n_gaps] by begin_step, disjoint; owned by the table
    uint32_t n_gaps;
    uint64_t *point_bytes; ///< [lifetimes.n_points] size at each profile point, owned; NULL: size_bytes at all of them

    // An alias has no place of its own: it lies alias_offset_bytes into item `alias_of`, which may itself be an alias.
    // It is as aligned as that makes it. While any alias is alive its bytes belong to all; in a root that is rounded up
    // they count in whole multiples of the root's alignment.
    tide_alias_kind alias;
    uint32_t alias_of;
    uint64_t alias_offset_bytes;
} tide_lifetime;

typedef struct tide_lifetimes {
    char *model;          ///< name for reports; owned
    tide_lifetime *items; ///< [n]
    size_t n, cap;
    int64_t n_steps;     ///< steps are 0 … n_steps-1
    char **step_names;   ///< [n_step_names], owned: what runs at each step
    size_t n_step_names; ///< n_steps, or 0 when a bare list has no names
    char **recomputed;   ///< [n_recomputed], owned: nodes that run twice; step "<name>.again" is the second run, and
                         ///< every reader after it reads what that one makes
    size_t n_recomputed;
    char **point_names; ///< [n_points], owned: sizes for which a dynamic model is planned ("batch=1", …)
    size_t n_points;    ///< 0: one size only. size_bytes of each item is the maximum over the points (S27-23)
} tide_lifetimes;

/// Append one; name, gaps and point_bytes are copied. An alias must be made with tide_lifetimes_alias afterwards.
/// TIDE_ERR_INVALID naming it for begin >= end, an alignment that is no power of two, a size that overflows when
/// rounded up, gaps that are unsorted, overlap or lie outside, a fixed offset that is misaligned or overflows.
tide_status tide_lifetimes_add(tide_lifetimes *lt, const tide_lifetime *item, tide_error *err) TIDE_NODISCARD;
tide_status tide_lifetimes_copy(const tide_lifetimes *lt, tide_lifetimes *out, tide_error *err) TIDE_NODISCARD;
void tide_lifetimes_deinit(tide_lifetimes *lt);
/// What the item occupies in memory of its own: size_bytes rounded up to align_bytes, or as they are when unrounded;
/// cannot overflow for items that were added.
uint64_t tide_lifetime_aligned_bytes(const tide_lifetime *item);
/**
 * From now on item `i` lies `offset_bytes` into item `of`.
 *
 * @return TIDE_ERR_INVALID naming both when one is persistent, `i` is an alias already, has gaps, a fixed offset or an
 *         apart set (those are the target's to have), they differ in device or kind, `i` would end outside `of`, or
 *         `of` is `i` or lies inside `i`
 */
tide_status tide_lifetimes_alias(tide_lifetimes *lt, uint32_t i, tide_alias_kind kind, uint32_t of,
                                 uint64_t offset_bytes, tide_error *err) TIDE_NODISCARD;
/// The item that has the place, and how far item `i` lies inside it (may be NULL). O(length of the chain).
uint32_t tide_lifetimes_root(const tide_lifetimes *lt, uint32_t i, uint64_t *offset_bytes);

typedef enum tide_plan_form { TIDE_PLAN_POOLS, TIDE_PLAN_OFFSETS } tide_plan_form;

#define TIDE_NO_OFFSET UINT64_MAX ///< the invalid-offset sentinel (S23-14, S27-11)
#define TIDE_NO_POOL (-1)         ///< the invalid-pool sentinel (S23-3)

typedef struct tide_plan_pool {
    uint64_t size_bytes;   ///< largest aligned member
    uint64_t offset_bytes; ///< of the pool when all of its buffer are laid end to end
    size_t n_members;      ///< items that have the place; their aliases are not counted
    uint32_t buffer;       ///< index into the plan's buffers
} tide_plan_pool;

/// What proves that no plan is smaller than proved_bytes.
#define TIDE_PROOF_MAP(XX)                                                                                             \
    XX(LIVE_SUM, "live sum")   /* the lower bound itself */                                                            \
    XX(ALIGNMENT, "alignment") /* padding that no order of the live tensors avoids */                                  \
    XX(FIXED, "fixed offset")  /* a tensor with a given offset ends there */                                           \
    XX(APART, "kept apart")    /* tensors that must not share, never alive together */                                 \
    XX(SEARCH, "search")       /* the tree of all smaller plans was searched to its end */
typedef enum tide_proof {
#define XX(name, text) TIDE_PROOF_##name,
    TIDE_PROOF_MAP(XX)
#undef XX
} tide_proof;
const char *tide_proof_name(tide_proof proof);
tide_status tide_proof_parse(const char *text, tide_proof *out, tide_error *err) TIDE_NODISCARD;

/// Each (device, kind) is planned apart: one buffer each.
typedef struct tide_plan_buffer {
    tide_device device;
    tide_memory_kind kind;
    uint64_t align_bytes;                                                    ///< the strictest of its lifetimes'
    uint64_t bytes;                                                          ///< its size
    uint64_t naive_bytes, naive_peak_bytes, lower_bound_bytes, proved_bytes; ///< as of the plan
    tide_proof proof;                                                        ///< of proved_bytes
} tide_plan_buffer;

/// A memory plan: where every non-persistent tensor lives in the buffer of its device and kind. Immutable once made;
/// contains its lifetimes, so that it can be saved, verified and shown alone.
typedef struct tide_memory_plan {
    char *strategy; ///< "greedy_color", "greedy_by_size", …; owned
    tide_plan_form form;
    tide_lifetimes lifetimes;  ///< owned copy
    uint64_t *offsets;         ///< [lifetimes.n] bytes from the start of its buffer; TIDE_NO_OFFSET for persistent ones
    int32_t *pools;            ///< [lifetimes.n]; TIDE_NO_POOL in an offset plan, for persistent ones and aliases
    tide_plan_pool *pool_list; ///< [n_pools]; empty in an offset plan
    size_t n_pools;
    tide_plan_buffer *buffers; ///< [n_buffers] by device, then kind, owned; none when nothing takes space
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

/// A copy of all there is; `plan` is as it was. @return TIDE_OK, TIDE_ERR_NOMEM
tide_status tide_memory_plan_copy(const tide_memory_plan *plan, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_memory_plan_destroy(tide_memory_plan *p);
/// The plan's buffer of that device and kind; NULL: nothing of it takes space. O(buffers).
const tide_plan_buffer *tide_memory_plan_buffer(const tide_memory_plan *p, tide_device device, tide_memory_kind kind);
/// What the tensors of the model as it was given need apart: naive_bytes without what second runs
/// (lifetimes.recomputed) make. O(n).
uint64_t tide_memory_plan_original_bytes(const tide_memory_plan *p);
/// 1 - bytes / tide_memory_plan_original_bytes; 0 when nothing is planned.
double tide_memory_plan_saving(const tide_memory_plan *p);
/// Requested bytes the plan says a run of `planned` mode holds at its peak, per kind: the buffer counts as Workspace;
/// persistent tensors by their own kind, rounded up.
uint64_t tide_memory_plan_predicted(const tide_memory_plan *p, tide_memory_kind kind);
/// The same for any run: weights and inputs once, the rest per context. A naive run has no buffer and frees at the last
/// use, so its Workspace peaks at naive_peak_bytes; when those peaks of several naive contexts meet is not planned:
/// TIDE_UNKNOWN_BYTES then.
uint64_t tide_memory_plan_predicted_run(const tide_memory_plan *p, tide_memory_kind kind, bool naive,
                                        uint64_t n_contexts);

#ifdef __cplusplus
}
#endif
#endif
