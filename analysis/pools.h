// SPDX-License-Identifier: MIT
//
// pools: what allocators hold at a moment and how much of it anybody uses; and where leaks began.
#ifndef TIDE_ANALYSIS_POOLS_H
#define TIDE_ANALYSIS_POOLS_H

#include "analysis/subject.h"
#include "profiler/holdings.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One allocator on one device for one kind; of a plan one pool, or the buffer.
typedef struct tide_pool {
    char *name;    ///< "stream_caching", "pool 3"; owned
    size_t number; ///< of all pools of the subject, whatever the moment: see tide_pools_columns
    char device[16];
    tide_memory_kind kind;
    bool tells_segments; ///< false: it does not record segments. Of one that takes each block from the system by itself
                         ///< (cpu, caller, mapped, device, cuMemAlloc) reserved is what its blocks hold; of others
                         ///< reserved, cached and unused bytes and the reserved peak are TIDE_UNKNOWN_BYTES
    size_t n_segments, n_blocks;
    uint64_t reserved_bytes;     ///< taken from the system; of a plan's pool its size
    uint64_t active_bytes;       ///< held by live blocks, rounding included
    uint64_t requested_bytes;    ///< that they asked for
    uint64_t cached_bytes;       ///< reserved - active
    uint64_t largest_free_bytes; ///< largest stretch without a live block; TIDE_UNKNOWN_BYTES: not known
    uint64_t peak_reserved_bytes, peak_active_bytes; ///< over the whole subject
    uint64_t unused_bytes; ///< least cached at any moment from the first to the last of the window at which it held
                           ///< anything: no block used it
    int64_t unused_since;  ///< the last moment before `at` with less cached than now; the begin: never
    bool is_planned;       ///< a plan's own, which lies in memory of another pool, or in none: of a plan without a run
    uint32_t context;      ///< is_planned, in a run of several contexts: which, from 1; else 0
    uint64_t wasted_bytes; ///< is_planned: the mean of what is cached, over all steps of the plan; else 0
    uint32_t colour;       ///< which pool of a colouring plan; TIDE_NO_COLOUR: none
} tide_pool;
enum { TIDE_NO_COLOUR = UINT32_MAX };
typedef struct tide_pools {
    tide_moment at;
    tide_pool *items; ///< [n] largest reserved first, what is not known last; behind them those of the plan of a run,
                      ///< by context
    size_t n, cap;
    uint64_t reserved_bytes, active_bytes, requested_bytes, cached_bytes; ///< sums, unknown where one of them
                                                                          ///< is; without what lies in another pool
} tide_pools;
/// [t0, t1]: the window for unused_bytes. Of a trace this reads all events of the run the first time, 0.2 us each
/// (progress); another moment or window takes some milliseconds.
tide_status tide_pools_at(tide_subject *s, tide_moment at, int64_t t0, int64_t t1, const tide_progress *progress,
                          tide_pools *out, tide_error *err) TIDE_NODISCARD;
void tide_pools_deinit(tide_pools *p);

/// A tensor in a pool of a colouring plan, with others before and after it.
typedef struct tide_pool_tensor {
    char *name;         ///< owned
    uint32_t colour;    ///< its pool
    int64_t begin, end; ///< steps
    uint64_t bytes;     ///< as the item says it takes: rounding included, but for an alias
    uint64_t left_over; ///< least of its pool while it is there: what it shares its bytes with counts, each byte once
} tide_pool_tensor;
typedef struct tide_pool_tensors {
    tide_pool_tensor *items; ///< [n] by pool, then the largest first, then by begin; owned
    size_t n;
    size_t *first; ///< [n_pools + 1] of each pool; owned
    size_t n_pools;
} tide_pool_tensors;
/// All whose bytes lie in a pool: an alias (a result in place, a view) in that of the tensor it lies in. Nothing where
/// the subject has no plan, or one of offsets. O(n log n). TIDE_ERR_NOMEM, or what reading a trace returns
tide_status tide_pools_tensors(tide_subject *s, tide_pool_tensors *out, tide_error *err) TIDE_NODISCARD;
void tide_pool_tensors_deinit(tide_pool_tensors *t);

/// An allocator took a segment from the system, or gave it back.
typedef struct tide_pool_mark {
    size_t pool; ///< its number
    int64_t t;
    uint64_t event, bytes;
    bool is_growth;
    char why[64];        ///< of a growth: name of the block that was allocated in it first, cut; "" unknown
    int64_t spare_since; ///< of a growth: from here on, until that memory was given back or to the end, the pool never
                         ///< used as much as it could without it; INT64_MAX: it did to the end; INT64_MIN: not asked,
                         ///< as of all but the last TIDE_POOL_SPARES
} tide_pool_mark;
enum { TIDE_POOL_SPARES = 32 };
/// Pools over time.
typedef struct tide_pool_history {
    tide_trace_pool_column *columns; ///< [n_pools][n_columns], by the pools' numbers; owned
    size_t n_pools, n_columns;
    tide_pool_mark *marks; ///< [n_marks] up to t1, by time; owned
    size_t n_marks;
} tide_pool_history;
/**
 * Every pool of the subject in `n` equal columns of [t0, t1), each at least one step or ns wide, exactly as
 * tide_trace_pool_columns says; a plan's pools exactly. A pool of the plan of a run is there from the run's first to
 * its last execution of each context; between two executions it is empty.
 *
 * @return TIDE_ERR_INVALID for a window without time, TIDE_ERR_NOMEM, and the errors of reading a trace
 *
 * Of a trace the first question reads all events of the run, like tide_pools_at; then some milliseconds, and 0.02 us
 * for each step of each execution in the window.
 */
tide_status tide_pools_over(tide_subject *s, int64_t t0, int64_t t1, size_t n, const tide_progress *progress,
                            tide_pool_history *out, tide_error *err) TIDE_NODISCARD;
void tide_pool_history_deinit(tide_pool_history *h);

/// The moment at which a pool is fragmented most.
typedef struct tide_pool_worst {
    tide_moment at; ///< of a trace an event: just after it
    float share;    ///< of its free bytes outside of the largest free stretch, 0 to 1
    uint64_t free_bytes, largest_free_bytes;
} tide_pool_worst;
/**
 * The first moment of [t0, t1) at which that is so. Views and reports ask this one function, so that all of them name
 * the same moment. Of a trace: between the first and the last event of the subject's run.
 *
 * @return TIDE_ERR_NOT_FOUND where nothing is known of its free bytes then. Costs what tide_pools_over costs
 */
tide_status tide_pools_worst(tide_subject *s, size_t pool, int64_t t0, int64_t t1, const tide_progress *progress,
                             tide_pool_worst *out, tide_error *err) TIDE_NODISCARD;

/// What is in the way of a request.
typedef struct tide_pool_blocker {
    char *name, *owner; ///< owned
    uint64_t id;        ///< of the block, or of a plan the tensor
    uint64_t bytes;
} tide_pool_blocker;
/// Whether a pool would serve a request; see tide_trace_request.
typedef struct tide_pool_request {
    uint64_t bytes;
    tide_trace_fit fit;
    uint64_t address;            ///< of a plan's pool counted from its begin
    uint64_t room_bytes;         ///< of the segment or pool around it
    tide_pool_blocker *blockers; ///< [n_blockers] by address; owned
    size_t n_blockers;
    uint64_t blocked_bytes;
    bool has_next; ///< when it is not served now: it would be later, first at
    tide_moment next;
} tide_pool_request;
/// Costs what tide_pools_over costs. `pool`: its number. TIDE_ERR_INVALID for 0 bytes, TIDE_ERR_NOT_FOUND for a pool
/// that is not there.
tide_status tide_pools_request(tide_subject *s, tide_moment at, size_t pool, uint64_t bytes,
                               const tide_progress *progress, tide_pool_request *out, tide_error *err) TIDE_NODISCARD;
void tide_pool_request_deinit(tide_pool_request *r);

/// Blocks with free memory on both sides, in their segment or pool: they split it.
typedef struct tide_pool_splits {
    tide_pool_blocker *items; ///< [n] the largest first; owned
    size_t n;
} tide_pool_splits;
/// Those of a pool at a moment. TIDE_ERR_NOT_FOUND for a pool that is not there; O(n log n) for what is live then.
tide_status tide_pools_splits(tide_subject *s, tide_moment at, size_t pool, tide_pool_splits *out,
                              tide_error *err) TIDE_NODISCARD;
void tide_pool_splits_deinit(tide_pool_splits *p);

/// Blocks of one site that were never freed.
typedef struct tide_leak {
    char *name, *owner; ///< owned
    tide_memory_kind kind;
    char device[16];
    size_t n;
    uint64_t bytes;
    int64_t first, last; ///< when the first and the last of them were allocated
    uint32_t first_item; ///< TIDE_NO_ITEM while items are not loaded
    size_t n_allocated;  ///< of this site in all: 3 of 100 leak, or all
    double per_second;   ///< bytes per second from the first to the last; 0: a single one
    bool grows; ///< at least three, in at least three different runs or tenths of the time between begin and end
} tide_leak;
typedef struct tide_leaks {
    tide_leak *items; ///< [n] those that grow first, then by bytes
    size_t n;
    uint64_t bytes;
    uint64_t n_lost; ///< events that were lost: a free may be among them, and what it freed is listed here all the same
} tide_leaks;
/// Persistent kinds (weights) are not leaks while the trace goes on; in a complete trace everything that was never
/// freed is. Items must be loaded.
tide_status tide_leaks_find(tide_subject *s, tide_leaks *out, tide_error *err) TIDE_NODISCARD;
void tide_leaks_deinit(tide_leaks *l);

#ifdef __cplusplus
}
#endif
#endif
