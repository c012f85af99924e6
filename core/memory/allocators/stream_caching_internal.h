// SPDX-License-Identifier: MIT
//
// stream_caching, inside: segments, their chunks, the free lists that idle chunks lie on, the uses that pending ones
// wait for. How they hang together is drawn in stream_caching.c. Included by stream_caching*.c, pinned.c and their
// tests; pytorch*.c takes chunks, segments and the tree from here.
//
// Everything here is guarded by tide__sc.lock; functions are called with the lock held unless they say otherwise.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_STREAM_CACHING_INTERNAL_H
#define TIDE_CORE_MEMORY_ALLOCATORS_STREAM_CACHING_INTERNAL_H

#include <pthread.h>

#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"

enum {
    TIDE__SC_STEP_BYTES = 512,           ///< all sizes and addresses of chunks are multiples of it
    TIDE__SC_SMALL_BYTES = 1 << 20,      ///< up to here a request is small: it lives in small segments
    TIDE__SC_SMALL_SEGMENT = 2 << 20,    ///< bytes
    TIDE__SC_LARGE_BYTES = 10 << 20,     ///< up to here it shares a large segment
    TIDE__SC_LARGE_SEGMENT = 20 << 20,   ///< bytes
    TIDE__SC_SEGMENT_STEP = 2 << 20,     ///< above, a segment is the request rounded up to this
    TIDE__SC_LARGE_REST_BYTES = 1 << 20, ///< a large chunk is cut only when more than this is left
    TIDE__SC_MAX_ALIGN_BYTES = 2 << 20,
    TIDE__SC_N_CHAINS = 64,
};

/// OUT: a block has it. PENDING: released, and some stream may still use it. In ranges alone (stream_caching_ranges.c):
/// HELD: idle, and a thread that maps memory beside it has it. BARE: addresses without memory. MOVING: a thread maps or
/// unmaps it just now.
typedef enum tide__chunk_state {
    TIDE__CHUNK_IDLE,
    TIDE__CHUNK_OUT,
    TIDE__CHUNK_PENDING,
    TIDE__CHUNK_HELD,
    TIDE__CHUNK_BARE,
    TIDE__CHUNK_MOVING
} tide__chunk_state;

/// A part of a segment. The header lies in host memory: the host may not be able to touch the device's.
typedef struct tide__chunk {
    char *addr;
    size_t size_bytes;
    struct tide__chunk *less, *more; ///< in a tree: of its free list (idle), of tide__sc.pending (pending)
    uint32_t rank;                   ///< of the tree: a parent's is never below its children's
    tide__chunk_state state;
    bool unsure;                        ///< a use could not be written down: it never serves again
    struct tide__chunk *before, *after; ///< neighbours in the segment; NULL at its ends
    struct tide__segment *segment;
    struct tide__free_list *home; ///< where it lies when idle: what touches it comes in the order of its stream's work
    uint64_t idle_since;          ///< tide__sc.clock
    tide_stream_id stream;        ///< it was allocated on; of no meaning while idle
    struct tide__use *uses;       ///< by other streams
    uint32_t n_uses;              ///< reasons to wait: uses, and a function that is still counting them
    tide_memory mem;              ///< pending: as it was released
    tide_stream_id last_stream;
} tide__chunk;

/// Memory of the source, tiled by chunks. While `pool` is not NULL its memory is for that pool alone. A range is one
/// whose memory comes and goes in units.
typedef struct tide__segment {
    uint64_t id; ///< unique in the process
    char *base;
    size_t size_bytes;
    size_t mapped_bytes; ///< with memory behind them: size_bytes, but in ranges
    bool large;
    struct tide__sc_pool *pool;
    tide__chunk *first;
    size_t n_busy;     ///< chunks that are neither idle nor bare
    size_t unit_bytes; ///< of a range; 0: no range
    uint64_t *units;   ///< of a range: id of each mapped unit as its segment events say it, 0: not mapped; owned
    struct tide__free_list *owner; ///< of a range: whose requests it grows for
    struct tide__segment *prev, *next;
} tide__segment;

/// Idle chunks by (size, address), of small [0] and large [1] segments. They may be used again on `stream` without any
/// wait, and on every stream when it is NULL.
typedef struct tide__free_list {
    tide__chunk *idle[2];
    struct tide__sc_stream *stream;
} tide__free_list;

/// A use of a chunk by another stream. The event is created once and stays with the record when that is used again.
typedef struct tide__use {
    struct tide__use *next;    ///< in the queue of `by`, or the next spare one
    struct tide__use *sibling; ///< of the same chunk
    tide__chunk *chunk;        ///< NULL: the chunk is served already, only the event is still on its way
    struct tide__sc_stream *by;
    tide_event_id event;
    bool recorded;
} tide__use;

/// A stream that the allocator knows.
typedef struct tide__sc_stream {
    tide_stream_id id;
    uint64_t number; ///< of tide__sc.n_streams: they are walked in this order while others come and go
    struct tide__sc_stream *chain;
    tide__free_list list;
    struct tide__sc_pool *pool; ///< allocations go there; NULL: to the segments for all
    tide__use *first, *last;    ///< uses of released chunks, oldest first
    size_t n_unrecorded;        ///< of these, without an event in the stream yet
    struct tide__sc_stream *next_waiting;
    uint64_t quiet_until; ///< the host has waited for all its work on chunks idle since then or earlier
} tide__sc_stream;

/// Memory for captured work. list.stream is the stream it was begun on, NULL once that is gone.
typedef struct tide__sc_pool {
    uint64_t id;
    tide__free_list list;
    struct tide__sc_pool *next;
} tide__sc_pool;

/// Where segments come from. Called without the lock.
typedef struct tide__sc_source {
    tide_status (*take)(tide_device device, size_t size_bytes, void **out, tide_error *err);
    void (*give_back)(tide_device device, void *base);
    bool host_memory; ///< the host can touch it: idle bytes are barred under AddressSanitizer
    bool page_locked;
    size_t unit_bytes[2]; ///< of ranges for small [0] and large [1] requests; 0: segments are taken whole, by `take`
    uint64_t range_bytes; ///< of addresses reserved for a range
    uint64_t total_bytes; ///< of the device's memory; 0: unknown
} tide__sc_source;

typedef struct tide__sc {
    pthread_mutex_t lock;
    const char *name;   ///< of the allocator, for errors
    tide_device device; ///< of the streams and events
    tide__sc_source source;
    bool no_deferral; ///< the planted fault
    tide_allocator_listener listener;
    tide_stream_listener streams_end;
    tide__sc_stream *streams[TIDE__SC_N_CHAINS]; ///< by id
    tide__sc_stream *recent;                     ///< the one asked for last; may be NULL
    tide__sc_stream *waiting;                    ///< those with a queue
    tide__free_list shared;                      ///< of streams that are gone
    tide__chunk *pending[2];                     ///< of segments for all, those that another stream may take over
    tide__segment *segments;
    tide__sc_pool *pools;
    uint64_t n_pools; ///< begun so far
    tide__chunk *spare_chunks;
    tide__use *spare_uses;
    uint64_t clock;       ///< counts chunks that became idle
    uint64_t n_streams;   ///< known so far
    size_t n_asking;      ///< threads that take from the source or give back to it just now
    uint64_t n_asked;     ///< so often one came back with something changed
    pthread_cond_t asked; ///< one came back
    tide_allocator_stats stats;
} tide__sc;

/// A request in the allocator's own sizes.
typedef struct tide__sc_plan {
    size_t need_bytes; ///< of the chunk
    size_t align_bytes;
    size_t slack_bytes;   ///< a chunk of need + slack holds it wherever it lies
    size_t segment_bytes; ///< of a segment taken for it
    bool large;
    tide_stream_id stream;
} tide__sc_plan;

// stream_caching.c
typedef enum tide__sc_name { TIDE__SC_STREAM_CACHING, TIDE__SC_PINNED, TIDE__SC_VMM, TIDE__SC_N_NAMES } tide__sc_name;
/// @param name        TIDE__SC_PINNED: an allocator of the CPU; else one of `streams_of`
/// @param streams_of  whose streams use the memory
tide_status tide__sc_create(tide__sc_name name, tide_device streams_of, const tide__sc_source *source,
                            const tide_stream_caching_options *opt, tide_allocator **out,
                            tide_error *err) TIDE_NODISCARD;
/// The state behind `a`; NULL when it is neither "stream_caching" nor "pinned". Without the lock.
tide__sc *tide__sc_of(tide_allocator *a);

/// NULL when the stream is not known, or is gone.
static inline tide__sc_stream *tide__sc_find_stream(const tide__sc *a, tide_stream_id id) {
    if (a->recent != NULL && a->recent->id == id) return a->recent;
    tide__sc_stream *s = a->streams[id % TIDE__SC_N_CHAINS];
    while (s != NULL && s->id != id) s = s->chain;
    return s;
}
/// Where allocations of the stream come from now.
static inline tide__free_list *tide__sc_list_of(tide__sc_stream *s) {
    return s->pool != NULL ? &s->pool->list : &s->list;
}

// stream_caching_chunks.c: chunks by (size, address)
void tide__tree_insert(tide__chunk **root, tide__chunk *p);
/// `p` must be in the tree.
void tide__tree_remove(tide__chunk **root, tide__chunk *p);
/// The first in order that is not before (size_bytes, addr); NULL when there is none.
tide__chunk *tide__tree_from(tide__chunk *root, size_t size_bytes, const char *addr);
tide__chunk *tide__tree_last(tide__chunk *root);

// stream_caching_chunks.c: fit, cut, merge
/// False when the sizes do not fit into a size_t. Pure.
bool tide__sc_plan_request(const tide_alloc_request *req, tide__sc_plan *out);
/// The best fit of a tree: the smallest chunk that holds the request, the lowest of these.
tide__chunk *tide__sc_fit(tide__chunk *root, const tide__sc_plan *plan);
/// The best fit among idle chunks that the plan's stream may have at once; its own before those of streams gone.
tide__chunk *tide__sc_find_idle(const tide__sc *a, const tide__sc_plan *plan);
/// Cut the plan's chunk out of idle `from`; it is OUT then. TIDE_ERR_NOMEM (host memory): nothing changed.
tide_status tide__sc_cut(tide__sc *a, tide__chunk *from, const tide__sc_plan *plan, tide__chunk **out) TIDE_NODISCARD;
/// The memory of an OUT or PENDING chunk can serve again: the listener is told, and it is idle. @return what it became
tide__chunk *tide__sc_complete(tide__sc *a, tide__chunk *p);
/// Lay an idle chunk that is on no free list onto its home, merged with its idle neighbours there. @return what it
/// became
tide__chunk *tide__sc_put_idle(tide__sc *a, tide__chunk *p);
/// Cut `p`, which is on no list, at `bytes` from its begin. @return the second part, `second` filled in: idle
tide__chunk *tide__sc_cut_at(tide__chunk *p, size_t bytes, tide__chunk *second);
/// `p` takes in what follows it; neither is on a free list.
void tide__sc_absorb_next(tide__sc *a, tide__chunk *p);
/// NULL when there is no host memory.
tide__chunk *tide__sc_new_chunk(tide__sc *a);
void tide__sc_drop_chunk(tide__sc *a, tide__chunk *p);

// stream_caching_streams.c: uses by other streams, events
/// Write down that `stream` uses the chunk. False: no host memory, nothing changed.
bool tide__sc_declare(tide__sc *a, tide__chunk *p, tide_stream_id stream);
/// Forget the uses of a chunk that is not released yet; those of `by` alone when it is not NULL.
void tide__sc_undeclare(tide__sc *a, tide__chunk *p, const tide__sc_stream *by);
/// Keep the released chunk until its uses are over.
void tide__sc_defer(tide__sc *a, tide__chunk *p);
/// Take back what the device says is done, oldest first, without waiting.
void tide__sc_reclaim(tide__sc *a);
/// All uses by `by` are over, whatever their events say.
void tide__sc_finish_uses(tide__sc *a, tide__sc_stream *by);
/// A pending chunk that fits, handed to the plan's stream, which waits for the streams that still use it; the chunk is
/// idle on its list. NULL: there is none.
tide__chunk *tide__sc_take_over(tide__sc *a, const tide__sc_plan *plan);
/// An idle chunk of another stream that fits, in the same way.
tide__chunk *tide__sc_take_idle(tide__sc *a, const tide__sc_plan *plan);
/// Wait for every pending use. Opens the lock meanwhile.
void tide__sc_sync_uses(tide__sc *a);
/// What the device answers for a stream that has no work left because it, or the device itself, is not there.
static inline bool tide__sc_is_gone(tide_status st) {
    return st == TIDE_ERR_INVALID || st == TIDE_ERR_NOT_FOUND || st == TIDE_ERR_NOT_IMPLEMENTED;
}
/// The work of `stream` is done when the call returns: the host itself.
static inline bool tide__sc_is_host(const tide__sc *a, tide_stream_id stream) {
    return stream == 0 && a->device.type == TIDE_DEVICE_CPU;
}

// stream_caching_streams.c: streams, pools
/// The same; makes it. NULL when there is no host memory.
tide__sc_stream *tide__sc_stream_of(tide__sc *a, tide_stream_id id);
void tide__sc_release_pool(tide__sc *a, tide__sc_pool *pool);
/// The allocator's part of tide_stream_caching_begin_pool and the two that follow it.
tide_status tide__sc_begin_pool(tide__sc *a, tide_stream_id stream, uint64_t *id, tide_error *err);
tide_status tide__sc_end_pool(tide__sc *a, uint64_t id, tide_error *err);
tide_status tide__sc_release_pool_by_id(tide__sc *a, uint64_t id, tide_error *err);
/// The listener of tide_stream_listen. Without the lock.
void tide__sc_on_stream_destroyed(void *self, tide_device device, tide_stream_id stream);

// stream_caching_segments.c and stream_caching_list.c: segments, and what happens when there is no more memory
/// An idle chunk for a request that no idle chunk fits: rules 3, 7 and 8. Opens the lock meanwhile.
tide_status tide__sc_refill(tide__sc *a, const tide__sc_plan *plan, const tide_alloc_request *req, tide__chunk **out,
                            bool *taken, tide_error *err) TIDE_NODISCARD;
/// Unique in the process: `n` numbers from the one returned on.
uint64_t tide__sc_new_ids(uint64_t n);
/// Put a segment with one chunk `whole` for all its bytes on the list, for the plan's stream.
void tide__sc_list_segment(tide__sc *a, const tide__sc_plan *plan, tide__segment *seg, tide__chunk *whole);
/// Take it off the list; its chunks are dropped before.
void tide__sc_unlist_segment(tide__sc *a, tide__segment *seg);
/// To the source: the lock is open from here on. And back; `changed`: there is more memory now, or a segment that the
/// caller links before it opens the lock again.
void tide__sc_leave(tide__sc *a);
void tide__sc_come_back(tide__sc *a, bool changed);
/// The host has waited for all work that may touch the idle chunk.
bool tide__sc_is_quiet(const tide__chunk *p);
/// Give back every segment that is idle as a whole, and idle units of ranges. Waits for the streams that order it;
/// opens the lock meanwhile.
void tide__sc_give_back_idle(tide__sc *a);
/// Give back all segments, whatever is in them.
void tide__sc_give_back_all(tide__sc *a);
uint64_t tide__sc_largest_free(const tide__sc *a);

// stream_caching_ranges.c: addresses that are reserved at once and get memory in units
/// Headers that growing may need, so that host memory ends before anything is changed.
typedef struct tide__sc_headers {
    tide__segment *range; ///< NULL: growing needs none
    tide__chunk *one, *two;
} tide__sc_headers;
/// False: no host memory.
bool tide__sc_take_headers(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h);
void tide__sc_drop_headers(tide__sc *a, tide__sc_headers *h);
/// Map what the plan's chunk lacks where that is least: *out is idle then and holds it. TIDE_ERR_NOMEM: nothing is
/// mapped. Opens the lock meanwhile.
tide_status tide__sc_grow(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h, tide__chunk **out,
                          tide_error *err) TIDE_NODISCARD;
/// Whole units lie in the idle chunk of a range, so that they could go.
bool tide__sc_has_units(const tide__chunk *p);
/// Unmap units that are idle and quiet, and give ranges back that have nothing mapped. Opens the lock meanwhile.
void tide__sc_shrink(tide__sc *a);
/// The same for all of a range that is off the list, whatever is in it. Without the lock.
void tide__sc_free_range(const tide__sc *a, tide__segment *seg);

#endif
