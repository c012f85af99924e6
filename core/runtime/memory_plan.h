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
} tide_lifetime;

typedef struct tide_lifetimes {
    char *model;          ///< name for reports; owned
    tide_lifetime *items; ///< [n]
    size_t n, cap;
    int64_t n_steps;     ///< steps are 0 … n_steps-1
    char **step_names;   ///< [n_step_names], owned: what runs at each step
    size_t n_step_names; ///< n_steps, or 0 when a bare list has no names
} tide_lifetimes;

/// Append one; the name is copied. TIDE_ERR_INVALID naming it for begin >= end, an alignment that is no power of two,
/// or a size that overflows when rounded up.
tide_status tide_lifetimes_add(tide_lifetimes *lt, const tide_lifetime *item, tide_error *err) TIDE_NODISCARD;
tide_status tide_lifetimes_copy(const tide_lifetimes *lt, tide_lifetimes *out, tide_error *err) TIDE_NODISCARD;
void tide_lifetimes_deinit(tide_lifetimes *lt);
/// size_bytes rounded up to align_bytes; cannot overflow for items that were added.
uint64_t tide_lifetime_aligned_bytes(const tide_lifetime *item);

typedef enum tide_plan_form { TIDE_PLAN_POOLS, TIDE_PLAN_OFFSETS } tide_plan_form;

#define TIDE_NO_OFFSET UINT64_MAX ///< the invalid-offset sentinel (S23-14, S27-11)
#define TIDE_NO_POOL (-1)         ///< the invalid-pool sentinel (S23-3)

typedef struct tide_plan_pool {
    uint64_t size_bytes;   ///< largest aligned member
    uint64_t offset_bytes; ///< of the pool when all are laid end to end
    size_t n_members;
} tide_plan_pool;

/// A memory plan: where every non-persistent tensor lives in one buffer. Immutable once made; contains its lifetimes,
/// so that it can be saved, verified and shown alone.
typedef struct tide_memory_plan {
    char *strategy; ///< "greedy_color", "greedy_by_size", …; owned
    tide_plan_form form;
    tide_lifetimes lifetimes;  ///< owned copy
    uint64_t *offsets;         ///< [lifetimes.n] bytes from the buffer's start; TIDE_NO_OFFSET for persistent ones
    int32_t *pools;            ///< [lifetimes.n]; TIDE_NO_POOL in an offset plan and for persistent ones
    tide_plan_pool *pool_list; ///< [n_pools]; empty in an offset plan
    size_t n_pools;
    uint64_t align_bytes; ///< of the buffer: the strictest of the lifetimes'
    uint64_t bytes;       ///< size of the buffer
    uint64_t naive_bytes; ///< sum of aligned non-persistent sizes
    uint64_t lower_bound_bytes;
    bool proven;      ///< bytes == lower_bound_bytes: no plan of these lifetimes is smaller
    bool verified;    ///< passed the independent verifier; the runtime takes no other
    uint64_t time_ns; ///< the strategy's own time
} tide_memory_plan;

/// A copy of all there is; `plan` is as it was. @return TIDE_OK, TIDE_ERR_NOMEM
tide_status tide_memory_plan_copy(const tide_memory_plan *plan, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_memory_plan_destroy(tide_memory_plan *p);
/// 1 - bytes / naive_bytes; 0 when nothing is planned.
double tide_memory_plan_saving(const tide_memory_plan *p);
/// Requested bytes the plan says a run of `planned` mode holds at its peak, per kind: the buffer counts as Workspace;
/// persistent tensors by their own kind, rounded up.
uint64_t tide_memory_plan_predicted(const tide_memory_plan *p, tide_memory_kind kind);
/// The same for any run: weights and inputs once, the rest per context. A naive run has no buffer and frees at the last
/// use, so its Workspace peaks at the lower bound; when those peaks of several naive contexts meet is not planned:
/// TIDE_UNKNOWN_BYTES then.
uint64_t tide_memory_plan_predicted_run(const tide_memory_plan *p, tide_memory_kind kind, bool naive,
                                        uint64_t n_contexts);

#ifdef __cplusplus
}
#endif
#endif
