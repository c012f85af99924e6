// SPDX-License-Identifier: MIT
//
// holdings: what allocators hold, by their events: the segments that they took from the system, and per pool
// how much of them live blocks used at a moment, and how much was never used.
#ifndef TIDE_PROFILER_HOLDINGS_H
#define TIDE_PROFILER_HOLDINGS_H

#include "profiler/moments.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Memory that an allocator took from the system. Texts are borrowed from the trace.
typedef struct tide_trace_segment {
    const char *allocator, *device;
    tide_memory_kind kind; ///< of the request that it was taken for
    uint32_t process;      ///< whose addresses these are
    uint64_t address, bytes;
    uint64_t begin_event, end_event; ///< end UINT64_MAX: never given back
    uint64_t begin_ns, end_ns;
} tide_trace_segment;
/// All of them in the order in which they were taken; *out [*n] is the trace's, valid until the next question, refresh
/// or close. Looks at every event the first time: 0.05 us each in rows, 0.1 us in chunks. `reading` may be NULL. Those
/// that were taken in events that were dropped since are not known.
tide_status tide_trace_segments(tide_trace *t, const tide_reading *reading, const tide_trace_segment **out, size_t *n,
                                tide_error *err) TIDE_NODISCARD;
/// The process whose block that is.
uint32_t tide_trace_process_of(uint64_t block_id);

/**
 * What one allocator on one device holds for one kind. A block that lies in a segment counts for the segment's pool,
 * whatever its own kind: what is left of a segment is then exact.
 */
typedef struct tide_trace_pool {
    const char *allocator, *device; ///< borrowed from the trace
    tide_memory_kind kind;
    bool tells_segments;         ///< false: reserved is what its blocks hold, for it never told what it took
    size_t n_segments, n_blocks; ///< these and the following at the moment
    uint64_t reserved_bytes, active_bytes, requested_bytes;
    uint64_t largest_free_bytes; ///< inside one segment; TIDE_UNKNOWN_BYTES without segments, and where blocks that lie
                                 ///< in one another, or not whole in their segment, leave it open
    uint64_t peak_reserved_bytes, peak_active_bytes; ///< over the whole run
    uint64_t unused_bytes; ///< least reserved - active from t0 to t1, the moment t0 itself included; moments at which
                           ///< it held nothing do not count
    uint64_t unused_since_ns; ///< since when reserved - active never was below what it is at the moment; the begin of
                              ///< the run: it never was
} tide_trace_pool;
/// What it took and no block holds; 0 where blocks that lie in one another hold more than it took.
static inline uint64_t tide_trace_pool_cached(const tide_trace_pool *p) {
    return p->reserved_bytes > p->active_bytes ? p->reserved_bytes - p->active_bytes : 0;
}
typedef struct tide_trace_pools_question {
    int64_t run_id;        ///< 0: the whole trace
    uint64_t at_event;     ///< the moment: just after this event; cut to the run
    uint64_t t0_ns, t1_ns; ///< window of unused_bytes
} tide_trace_pools_question;
/// Every pool of the run, in order of allocator, device and kind, also those that hold nothing at the moment. The first
/// question about a run is a replay of it, 0.2 us an event, and what came since is added when it grows; another moment
/// or window then takes some milliseconds, and for each pool with segments that lie idle as much again.
/// TIDE_ERR_NOT_FOUND for a run that is not there and for events that were dropped;
/// TIDE_ERR_INVALID when t1 < t0. *out [*n], tide_host_free.
tide_status tide_trace_pools(tide_trace *t, const tide_trace_pools_question *q, const tide_reading *reading,
                             tide_trace_pool **out, size_t *n, tide_error *err) TIDE_NODISCARD;

/// The same pools in the same order with what is known of them at any moment: names, kind, tells_segments, peaks; the
/// rest is 0. Costs nothing once another question about the run was answered. *out [*n], tide_host_free.
tide_status tide_trace_pool_list(tide_trace *t, int64_t run_id, const tide_reading *reading, tide_trace_pool **out,
                                 size_t *n, tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_spare_question {
    int64_t run_id;
    size_t pool;       ///< as tide_trace_pools numbers them
    uint64_t at_event; ///< up to just after this event; cut to the run
    uint64_t bytes;
} tide_trace_spare_question;
/// Since when a pool had at least `bytes` cached at every event, up to at_event: so long it did not need them. Begin of
/// the run: it always had; UINT64_MAX: it has less then, or nothing is known of it. Costs what tide_trace_pools costs.
/// TIDE_ERR_NOT_FOUND for a pool or a run that is not there.
tide_status tide_trace_pool_spare_since(tide_trace *t, const tide_trace_spare_question *of, const tide_reading *reading,
                                        uint64_t *since_ns, tide_error *err) TIDE_NODISCARD;

// ---- pools over time ----
//
//     reserved  ____________________----------------      taken from the system
//     active    __--__----__--__----__--__----__--__      held by blocks; what lies between both is cached
//     largest   ---__--____--__--____------_____----      free block: the largest request that is served without
//     growing

/// What a pool held in a stretch of time: its extremes, each of which may be of another moment.
typedef struct tide_trace_pool_column {
    uint64_t reserved_bytes, active_bytes, requested_bytes; ///< highest
    uint64_t cached_bytes, least_cached_bytes;              ///< highest and lowest reserved - active
    uint64_t most_free_bytes, least_free_bytes; ///< of its largest free block; 0 and TIDE_UNKNOWN_BYTES: without
                                                ///< segments, or where blocks that lie in one another leave it open
    float fragmentation; ///< highest share of the cached bytes outside of the largest free block, 0 to 1; -1: not
                         ///< known, or it held nothing
} tide_trace_pool_column;
/// The extremes of both.
void tide_trace_pool_column_join(tide_trace_pool_column *into, const tide_trace_pool_column *from);
/// Extremes of no moment, which any other ones replace.
static inline tide_trace_pool_column tide_trace_pool_column_none(void) {
    return (tide_trace_pool_column){
        .least_cached_bytes = UINT64_MAX, .least_free_bytes = TIDE_UNKNOWN_BYTES, .fragmentation = -1};
}
/// The column of [t0, t1) that `t` lies in, of `n` <= t1 - t0 equal ones: column i begins at t0 + i * (t1 - t0) / n.
size_t tide_trace_column_of(uint64_t t0, uint64_t t1, size_t n, uint64_t t);
/// From `from` columns of each of `n_pools` to `n`, in place: [n_pools][n], of which [n_pools][from] are filled.
void tide_trace_pool_columns_widen(tide_trace_pool_column *columns, size_t n_pools, size_t from, size_t n);
typedef struct tide_trace_pool_columns_question {
    int64_t run_id;        ///< 0: the whole trace
    uint64_t t0_ns, t1_ns; ///< [t0, t1), cut into `n` equal columns, each at least 1 ns wide; t1 > t0
    size_t n;
} tide_trace_pool_columns_question;
/**
 * Every pool over time, in the order of tide_trace_pools. What holds when a column begins counts; before the first
 * event of the run and behind its last one the pool holds nothing.
 *
 * Columns of many events are put together from intervals of 64 or more of them, so that an extreme may also show in the
 * next column; a window of at most 16,384 events is answered exactly. No extreme is lost, and none is made up.
 *
 * @param out  [*n_pools][q->n], owned: tide_host_free; NULL when there is no pool
 * @return TIDE_ERR_INVALID; TIDE_ERR_NOT_FOUND for a run that is not there and for events that were dropped
 *
 * The first question about a run costs what tide_trace_pools costs, then 0.01 us for each interval and pool, and of an
 * exact one 0.3 us an event.
 */
tide_status tide_trace_pool_columns(tide_trace *t, const tide_trace_pool_columns_question *q,
                                    const tide_reading *reading, tide_trace_pool_column **out, size_t *n_pools,
                                    tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_pool_worst_question {
    int64_t run_id;
    size_t pool;           ///< as tide_trace_pools numbers them
    uint64_t t0_ns, t1_ns; ///< [t0, t1); what holds when it begins counts
} tide_trace_pool_worst_question;
typedef struct tide_trace_pool_worst {
    uint64_t event, t_ns; ///< just after this event
    float share;          ///< of the cached bytes outside of the largest free block, 0 to 1
    uint64_t free_bytes, largest_free_bytes;
} tide_trace_pool_worst;
/// The first event of the window, and of the run, after which a pool is fragmented most; shares are compared as
/// `float`. TIDE_ERR_NOT_FOUND for a pool or a run that is not there, and where nothing is known of free bytes then.
/// Costs what tide_trace_pool_columns costs.
tide_status tide_trace_pool_find_worst(tide_trace *t, const tide_trace_pool_worst_question *of,
                                       const tide_reading *reading, tide_trace_pool_worst *out,
                                       tide_error *err) TIDE_NODISCARD;

/// How a pool would serve a request.
typedef enum tide_trace_fit {
    TIDE_FIT_FREE,    ///< from a free block
    TIDE_FIT_BLOCKED, ///< a segment is large enough, and blocks stand in the way
    TIDE_FIT_GROW,    ///< no segment is that large, or it has none: it would have to take more from the system
} tide_trace_fit;
typedef struct tide_trace_request_question {
    int64_t run_id;
    size_t pool;       ///< as tide_trace_pools numbers them
    uint64_t at_event; ///< the moment: just after this event; cut to the run
    uint64_t bytes;
} tide_trace_request_question;
typedef struct tide_trace_request {
    tide_trace_fit fit;
    uint64_t address;       ///< FREE: the lowest place; BLOCKED: where the fewest bytes are in the way
    uint64_t segment_bytes; ///< of the segment around it; 0: GROW
    uint64_t *blocks;       ///< [n_blocks] BLOCKED: numbers of the blocks in the way, by address; owned
    size_t n_blocks;
    uint64_t blocked_bytes; ///< that they hold
    uint64_t next_event;    ///< BLOCKED, GROW: after which event of the run it would be served first; UINT64_MAX: none
    uint64_t next_ns;       ///< when that is
} tide_trace_request;
/// Would a request of `bytes`, of any alignment, be served at that moment, whichever stream it came from? Costs what
/// tide_trace_pool_columns costs. TIDE_ERR_NOT_FOUND for a pool or a run that is not there; TIDE_ERR_INVALID for 0
/// bytes.
tide_status tide_trace_pool_request(tide_trace *t, const tide_trace_request_question *q, const tide_reading *reading,
                                    tide_trace_request *out, tide_error *err) TIDE_NODISCARD;
void tide_trace_request_deinit(tide_trace_request *r);

#ifdef __cplusplus
}
#endif
#endif
