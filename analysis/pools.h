// SPDX-License-Identifier: MIT
//
// pools: what allocators hold at a moment and how much of it anybody uses; and where leaks began.
#ifndef TIDE_ANALYSIS_POOLS_H
#define TIDE_ANALYSIS_POOLS_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One allocator on one device for one kind; of a plan one pool, or the buffer.
typedef struct tide_pool {
    char *name; ///< "stream_caching", "pool 3"; owned
    char device[16];
    tide_memory_kind kind;
    bool tells_segments; ///< false: it does not record segments, so reserved is what its blocks hold
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
} tide_pool;
typedef struct tide_pools {
    tide_moment at;
    tide_pool *items; ///< [n] largest reserved first
    size_t n;
    uint64_t reserved_bytes, active_bytes, requested_bytes, cached_bytes;
} tide_pools;
/// [t0, t1]: the window for unused_bytes. Of a trace this reads all events of the run the first time, 0.2 us each
/// (progress); another moment or window takes some milliseconds.
tide_status tide_pools_at(tide_subject *s, tide_moment at, int64_t t0, int64_t t1, const tide_progress *progress,
                          tide_pools *out, tide_error *err) TIDE_NODISCARD;
void tide_pools_deinit(tide_pools *p);

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
