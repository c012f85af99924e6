// SPDX-License-Identifier: MIT
//
// stream_caching: segments from a device, split and merged; freed memory is kept by stream, and kept back while another
// stream still uses it.
//
//     small segment, 2 MiB   |out| idle |out|pending|.............. idle .............|    requests up to 1 MiB
//     large segment, 20 MiB  |.... out ....|........ idle ........|..... out .....|        up to 10 MiB
//     own segment            |........................ out .......................|rest|   above, in steps of 2 MiB
//
//     stream a's free list:  idle chunks of small and of large segments, each by (size, address)
//     stream b's free list:  ...
//     shared free list:      chunks of streams that are gone
//     stream b's queue:      [use of a pending chunk, event] -> ...
//     pool's free list:      chunks for captured work
//
// The rules (PyTorch's CUDA caching allocator, whose sizes these are, and RMM's stream-ordered pools):
//   1  A block belongs to the stream it was allocated on. Freed, it serves there again at once: stream order protects
//      it. Use by another stream must be declared (record_use), or be the stream it is released on.
//   2  Freed with other uses: one event per such stream; the chunk is pending until all are done. They are looked at on
//      the next allocation, oldest first per stream, up to the first that is not done. The host does not wait.
//   3  Before a new segment is taken, a pending chunk that fits goes to the asking stream, which waits for its events.
//   4  Streams are known by ids that are never used twice; events are used again; a stream that goes leaves its chunks
//      to all streams.
//   5  While a stream is captured no event is recorded or asked about: that is made up for when the capture has ended.
//      Captured work allocates from a pool of its own, which no other work gets until it is released.
//   6  Steps of 512 B. Best fit by (stream, size, address). A rest is cut off from 512 B on (small), above 1 MiB
//      (large). Only idle neighbours of one home merge.
//   7  Out of memory: take back, try again, wait for pending uses, give back idle segments, try again, fail with the
//      numbers.
//   8  The device is asked for memory without the lock; what may make it wait (giving back) happens on trim and out of
//      memory only.
//   9  An allocator that the driver brings along (cudaMallocAsync) is a device's own business and no part of this.
//  10  The numbers below, in every out-of-memory message.
//
// The numbers: requested is what live blocks asked for; active is chunks that are out or pending, rounding and rests
// that were not cut off included; cached is idle chunks; reserved is segments, always active + cached. Largest free is
// the longest idle chunk of any list. Active - requested is rounding and pending; cached is what fragmentation can
// keep from serving: one small live chunk keeps its whole segment.
//
// Under AddressSanitizer idle bytes of host memory are off limits, unless work of the stream they were freed on may
// still touch them, which it may.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"
#include "core/memory/poison.h"

// ---- check: walks all segments, free lists and queues and compares them with the counters ----

/// What a walk over the segments finds.
typedef struct census {
    uint64_t n_idle, n_pending, n_stealable; // chunks
    uint64_t idle_bytes, active_bytes, pending_bytes, reserved_bytes;
    uint64_t mapped_bytes; ///< of the segment that is looked at
} census;

#define BROKEN(err, ...) TIDE_FAIL((err), TIDE_ERR_RUNTIME, __VA_ARGS__)

static tide_status check_uses(const tide__sc *a, const tide__chunk *p, tide_error *err) {
    uint32_t n = p->unsure && p->state == TIDE__CHUNK_PENDING ? 1 : 0;
    for (const tide__use *u = p->uses; u != NULL; u = u->sibling, n++) {
        if (u->chunk != p) return BROKEN(err, "%s: a use of chunk %p is that of another", a->name, (void *)p->addr);
    }
    const bool waits = p->state == TIDE__CHUNK_PENDING;
    if (n != p->n_uses || (p->state == TIDE__CHUNK_IDLE && n != 0) || (waits && n == 0))
        return BROKEN(err, "%s: chunk %p counts %" PRIu32 " uses and has %" PRIu32, a->name, (void *)p->addr, p->n_uses,
                      n);
    return TIDE_OK;
}

static tide_status check_chunk(const tide__sc *a, const tide__chunk *p, census *c, tide_error *err) {
    const bool steps = p->size_bytes > 0 && p->size_bytes % TIDE__SC_STEP_BYTES == 0;
    if (!steps) return BROKEN(err, "%s: a chunk of %zu B", a->name, p->size_bytes);
    TIDE_TRY(check_uses(a, p, err));
    const tide__chunk *next = p->after;
    if (p->state == TIDE__CHUNK_BARE && next != NULL && next->state == TIDE__CHUNK_BARE)
        return BROKEN(err, "%s: bare neighbours %p and %p were not merged", a->name, (void *)p->addr,
                      (void *)next->addr);
    if (p->state == TIDE__CHUNK_BARE || p->state == TIDE__CHUNK_MOVING) return TIDE_OK;
    c->mapped_bytes += p->size_bytes;
    if (p->state == TIDE__CHUNK_HELD) c->idle_bytes += p->size_bytes;
    if (p->state == TIDE__CHUNK_HELD) return TIDE_OK;
    if (p->state == TIDE__CHUNK_IDLE && next != NULL && next->state == TIDE__CHUNK_IDLE && next->home == p->home)
        return BROKEN(err, "%s: idle neighbours %p and %p were not merged", a->name, (void *)p->addr,
                      (void *)next->addr);
    if (p->state == TIDE__CHUNK_IDLE) {
        c->n_idle++;
        c->idle_bytes += p->size_bytes;
        return TIDE_OK;
    }
    c->active_bytes += p->size_bytes;
    if (p->state == TIDE__CHUNK_OUT) return TIDE_OK;
    c->n_pending++;
    c->pending_bytes += p->size_bytes;
    if (p->segment->pool == NULL && !p->unsure) c->n_stealable++;
    return TIDE_OK;
}

/// Chunks tile the segment without a hole.
static tide_status check_segment(const tide__sc *a, const tide__segment *seg, census *c, tide_error *err) {
    const char *at = seg->base;
    const tide__chunk *before = NULL;
    size_t n_busy = 0;
    c->mapped_bytes = 0;
    for (const tide__chunk *p = seg->first; p != NULL; before = p, p = p->after) {
        if (p->addr != at || p->before != before || p->segment != seg)
            return BROKEN(err, "%s: segment %" PRIu64 " is damaged at chunk %p", a->name, seg->id, (void *)p->addr);
        TIDE_TRY(check_chunk(a, p, c, err));
        if (p->state != TIDE__CHUNK_IDLE && p->state != TIDE__CHUNK_BARE) n_busy++;
        at += p->size_bytes;
    }
    if (at != seg->base + seg->size_bytes || n_busy != seg->n_busy)
        return BROKEN(err, "%s: segment %" PRIu64 ": chunks end at %p, %zu of them are busy; it says %p and %zu",
                      a->name, seg->id, (const void *)at, n_busy, (void *)(seg->base + seg->size_bytes), seg->n_busy);
    if (c->mapped_bytes != seg->mapped_bytes)
        return BROKEN(err, "%s: segment %" PRIu64 " has %" PRIu64 " B mapped and counts %zu", a->name, seg->id,
                      c->mapped_bytes, seg->mapped_bytes);
    c->reserved_bytes += seg->mapped_bytes;
    return TIDE_OK;
}

/// All chunks of a tree are in order, in that state, and at home there (`home` NULL: anywhere).
static tide_status check_tree(const tide__sc *a, tide__chunk *root, tide__chunk_state state,
                              const tide__free_list *home, uint64_t *n, tide_error *err) {
    for (const tide__chunk *p = tide__tree_from(root, 0, NULL); p != NULL;
         p = tide__tree_from(root, p->size_bytes, p->addr + 1), (*n)++) {
        const bool heap =
            (p->less == NULL || p->less->rank <= p->rank) && (p->more == NULL || p->more->rank <= p->rank);
        if (p->state != state || (home != NULL && p->home != home) || !heap)
            return BROKEN(err, "%s: chunk %p does not belong where it lies", a->name, (void *)p->addr);
    }
    return TIDE_OK;
}

static tide_status check_list(const tide__sc *a, const tide__free_list *list, uint64_t *n, tide_error *err) {
    TIDE_TRY(check_tree(a, list->idle[0], TIDE__CHUNK_IDLE, list, n, err));
    return check_tree(a, list->idle[1], TIDE__CHUNK_IDLE, list, n, err);
}

static tide_status check_queue(const tide__sc *a, const tide__sc_stream *s, tide_error *err) {
    size_t n_unrecorded = 0;
    for (const tide__use *u = s->first; u != NULL; u = u->next) {
        if (u->by != s || (u->next == NULL && u != s->last) ||
            (u->chunk != NULL && u->chunk->state != TIDE__CHUNK_PENDING))
            return BROKEN(err, "%s: the queue of stream %" PRIu64 " is damaged", a->name, s->id);
        if (!u->recorded) n_unrecorded++;
    }
    bool listed = false;
    for (const tide__sc_stream *w = a->waiting; w != NULL; w = w->next_waiting) listed = listed || w == s;
    if (n_unrecorded != s->n_unrecorded || listed != (s->first != NULL))
        return BROKEN(err, "%s: stream %" PRIu64 " waits for %zu records and counts %zu", a->name, s->id, n_unrecorded,
                      s->n_unrecorded);
    return TIDE_OK;
}

static tide_status check_lists(const tide__sc *a, uint64_t *n_idle, tide_error *err) {
    TIDE_TRY(check_list(a, &a->shared, n_idle, err));
    for (const tide__sc_pool *pool = a->pools; pool != NULL; pool = pool->next)
        TIDE_TRY(check_list(a, &pool->list, n_idle, err));
    for (int i = 0; i < TIDE__SC_N_CHAINS; i++) {
        for (const tide__sc_stream *s = a->streams[i]; s != NULL; s = s->chain) {
            TIDE_TRY(check_list(a, &s->list, n_idle, err));
            TIDE_TRY(check_queue(a, s, err));
        }
    }
    return TIDE_OK;
}

static tide_status check_all(const tide__sc *a, tide_error *err) {
    census c = {0};
    uint64_t n_idle = 0, n_stealable = 0;
    for (const tide__segment *seg = a->segments; seg != NULL; seg = seg->next) TIDE_TRY(check_segment(a, seg, &c, err));
    TIDE_TRY(check_lists(a, &n_idle, err));
    TIDE_TRY(check_tree(a, a->pending[0], TIDE__CHUNK_PENDING, NULL, &n_stealable, err));
    TIDE_TRY(check_tree(a, a->pending[1], TIDE__CHUNK_PENDING, NULL, &n_stealable, err));
    const tide_allocator_stats *s = &a->stats;
    if (n_idle != c.n_idle || n_stealable != c.n_stealable || c.idle_bytes != s->cached_bytes ||
        c.active_bytes != s->active_bytes || c.pending_bytes != s->pending_bytes || c.n_pending != s->n_pending ||
        c.reserved_bytes != s->reserved_bytes)
        return BROKEN(err, "%s: segments, free lists and counters disagree", a->name);
    tide_allocator_stats all = *s;
    all.largest_free_bytes = tide__sc_largest_free(a);
    return tide__counters_check(&all, a->name, err);
}

// ---- allocating ----

static tide_status refuse(tide__sc *a, const tide_alloc_request *req, tide_error *err) {
    pthread_mutex_lock(&a->lock);
    a->stats.n_failed++;
    pthread_mutex_unlock(&a->lock);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: %zu B (alignment %zu) for '%.80s' are more than there can be", a->name,
                     req->size_bytes, req->align_bytes, req->tag != NULL ? req->tag : "(no name)");
}

static tide_status serve(tide__sc *a, const tide__sc_plan *plan, const tide_alloc_request *req, tide__chunk **out,
                         tide_error *err) {
    if (a->waiting != NULL) tide__sc_reclaim(a);
    tide__sc_stream *s = tide__sc_stream_of(a, plan->stream);
    if (s == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a stream", a->name);
    bool taken = false;
    tide__chunk *from = tide__sc_find_idle(a, plan);
    if (from == NULL) TIDE_TRY(tide__sc_refill(a, plan, req, &from, &taken, err));
    TIDE_ASSERT(from->state == TIDE__CHUNK_IDLE && from->segment->large == plan->large);
    if (tide__sc_cut(a, from, plan, out) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a chunk", a->name);
    if (!taken) a->stats.n_hits++;
    return TIDE_OK;
}

static tide_status sc_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    tide__sc *a = self;
    tide__sc_plan plan;
    if (!tide__sc_plan_request(req, &plan)) return refuse(a, req, err);
    tide__chunk *p = NULL;
    pthread_mutex_lock(&a->lock);
    const tide_status st = serve(a, &plan, req, &p, err);
    if (st == TIDE_OK) {
        TIDE_ASSERT(p->state == TIDE__CHUNK_OUT && p->stream == req->stream && p->size_bytes >= req->size_bytes);
        tide__count_alloc(&a->stats, req->size_bytes, p->size_bytes);
        if (a->source.host_memory) tide_asan_unpoison(p->addr, req->size_bytes);
        out->data = p->addr;
        out->reserved_bytes = p->size_bytes;
        out->context = p;
    } else {
        a->stats.n_failed++;
    }
    TIDE_ASSERT_SLOW(check_all(a, NULL) == TIDE_OK);
    pthread_mutex_unlock(&a->lock);
    return st;
}

// ---- releasing ----

/// Declare a use. Without host memory to write it down the host waits for the stream here; where it cannot do that
/// either, the chunk never serves again.
static void declare(tide__sc *a, tide__chunk *p, tide_stream_id stream) {
    if (stream == p->stream || tide__sc_declare(a, p, stream)) return;
    pthread_mutex_unlock(&a->lock);
    const tide_status st = tide_stream_sync(a->device, stream, NULL);
    pthread_mutex_lock(&a->lock);
    if (st != TIDE_OK && !tide__sc_is_gone(st)) p->unsure = true;
}

static void sc_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    tide__sc *a = self;
    pthread_mutex_lock(&a->lock);
    TIDE_ASSERT(((const tide__chunk *)mem->context)->state == TIDE__CHUNK_OUT);
    declare(a, mem->context, stream);
    pthread_mutex_unlock(&a->lock);
}

static void sc_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    tide__sc *a = self;
    tide__chunk *p = mem->context;
    pthread_mutex_lock(&a->lock);
    TIDE_ASSERT(p->state == TIDE__CHUNK_OUT && p->addr == mem->data && p->size_bytes == mem->reserved_bytes);
    declare(a, p, last_stream);
    tide__count_free(&a->stats, mem->requested_bytes, 0);
    p->mem = *mem;
    p->mem.tag = NULL;
    p->last_stream = last_stream;
    if (a->no_deferral) tide__sc_undeclare(a, p, NULL);
    if (p->unsure) p->n_uses++;
    if (p->n_uses == 0) {
        tide__sc_complete(a, p);
    } else {
        tide__sc_defer(a, p);
    }
    TIDE_ASSERT_SLOW(check_all(a, NULL) == TIDE_OK);
    pthread_mutex_unlock(&a->lock);
}

// ---- other calls ----

static void sc_stats(const void *self, tide_allocator_stats *out) {
    tide__sc *a = tide__mutable(self);
    pthread_mutex_lock(&a->lock);
    TIDE_ASSERT(a->stats.reserved_bytes == a->stats.active_bytes + a->stats.cached_bytes);
    TIDE_ASSERT(a->stats.pending_bytes <= a->stats.active_bytes);
    *out = a->stats;
    out->largest_free_bytes = tide__sc_largest_free(a);
    pthread_mutex_unlock(&a->lock);
    out->headroom_bytes = TIDE_UNKNOWN_BYTES;
}

static const char *what(const tide__sc *a) {
    if (a->source.page_locked) return "page-locked host memory, cached; frees wait for streams";
    if (a->source.unit_bytes[0] > 0) return "device memory mapped into ranges that grow; frees wait for streams";
    if (a->source.host_memory) return "segments of host memory, split and merged; frees wait for streams";
    return "segments of device memory, split and merged; frees wait for streams";
}

static void sc_props(const void *self, tide_allocator_props *out) {
    const tide__sc *a = self;
    out->what = what(a);
    out->align_bytes = TIDE__SC_STEP_BYTES;
    out->max_align_bytes = TIDE__SC_MAX_ALIGN_BYTES;
    out->keeps_freed = true;
    out->stream_aware = true;
    out->page_locked = a->source.page_locked;
}

/// Waits for the streams: what is pending or idle now shall be gone afterwards.
static void sc_trim(void *self) {
    tide__sc *a = self;
    pthread_mutex_lock(&a->lock);
    tide__sc_sync_uses(a);
    tide__sc_give_back_idle(a);
    TIDE_ASSERT_SLOW(check_all(a, NULL) == TIDE_OK);
    pthread_mutex_unlock(&a->lock);
}

static tide_status sc_check(const void *self, tide_error *err) {
    tide__sc *a = tide__mutable(self);
    pthread_mutex_lock(&a->lock);
    const tide_status st = check_all(a, err);
    pthread_mutex_unlock(&a->lock);
    return st;
}

static void sc_listen(void *self, const tide_allocator_listener *listener) {
    tide__sc *a = self;
    pthread_mutex_lock(&a->lock);
    a->listener = listener != NULL ? *listener : (tide_allocator_listener){0};
    pthread_mutex_unlock(&a->lock);
}

// ---- creating and destroying ----

/// Uses without an event (the device refused, or is gone): the host waits for their streams.
static void end_uses(tide__sc *a) {
    while (a->waiting != NULL) {
        tide__sc_stream *s = a->waiting;
        (void)!tide_stream_sync(a->device, s->id, NULL);
        tide__sc_finish_uses(a, s);
    }
}

static void free_records(tide__sc *a) {
    for (tide__use *u = a->spare_uses, *next; u != NULL; u = next) {
        next = u->next;
        if (u->event != 0) tide_event_destroy(a->device, u->event);
        tide_host_free(u);
    }
    for (tide__chunk *p = a->spare_chunks, *next; p != NULL; p = next) {
        next = p->after;
        tide_host_free(p);
    }
    for (int i = 0; i < TIDE__SC_N_CHAINS; i++) {
        for (tide__sc_stream *s = a->streams[i], *next; s != NULL; s = next) {
            next = s->chain;
            tide_host_free(s);
        }
    }
}

static void sc_destroy(void *self) {
    tide__sc *a = self;
    tide_stream_unlisten(&a->streams_end); // without the lock: a call that is running wants it
    pthread_mutex_lock(&a->lock);
    tide__sc_sync_uses(a);
    end_uses(a);
    while (a->pools != NULL) tide__sc_release_pool(a, a->pools);
    tide__sc_give_back_idle(a); // waits for the streams
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        for (tide__chunk *p = seg->first; p != NULL; p = p->after) tide__sc_undeclare(a, p, NULL);
    }
    tide__sc_give_back_all(a);
    TIDE_ASSERT(a->segments == NULL && a->waiting == NULL && a->pools == NULL && a->stats.reserved_bytes == 0);
    pthread_mutex_unlock(&a->lock);
    free_records(a);
    pthread_cond_destroy(&a->asked);
    pthread_mutex_destroy(&a->lock);
    tide_host_free(a);
}

#define STREAM_CACHING_OPS(text)                                                                                       \
    {                                                                                                                  \
        .abi = TIDE_ALLOCATOR_ABI, .name = (text), .alloc = sc_alloc, .release = sc_release, .stats = sc_stats,        \
        .props = sc_props, .destroy = sc_destroy, .trim = sc_trim, .check = sc_check, .record_use = sc_record_use,     \
        .listen = sc_listen                                                                                            \
    }
static const tide_allocator_ops tables[TIDE__SC_N_NAMES] = {
    [TIDE__SC_STREAM_CACHING] = STREAM_CACHING_OPS("stream_caching"),
    [TIDE__SC_PINNED] = STREAM_CACHING_OPS("pinned"),
    [TIDE__SC_VMM] = STREAM_CACHING_OPS("cuda_vmm"),
};

tide__sc *tide__sc_of(tide_allocator *a) { return a->ops->alloc == sc_alloc ? a->self : NULL; }

tide_status tide__sc_create(tide__sc_name name, tide_device streams_of, const tide__sc_source *source,
                            const tide_stream_caching_options *opt, tide_allocator **out, tide_error *err) {
    const tide_allocator_ops *ops = &tables[name];
    tide__sc *a;
    TIDE_TRY(TIDE_NEW(&a, 1, err, "for the state of allocator '%s'", ops->name));
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->asked, NULL);
    a->name = ops->name;
    a->device = streams_of;
    a->source = *source;
    a->no_deferral = opt != NULL && opt->unsafe_no_deferral;
    a->streams_end = (tide_stream_listener){.on_destroyed = tide__sc_on_stream_destroyed, .self = a};
    tide_stream_listen(&a->streams_end);
    return tide_allocator_create(ops, a, name == TIDE__SC_PINNED ? TIDE_CPU : streams_of, out, err);
}

static tide_status take_from_device(tide_device device, size_t size_bytes, void **out, tide_error *err) {
    return tide_device_mem_alloc(device, size_bytes, TIDE__SC_STEP_BYTES, out, err);
}

tide_status tide_stream_caching_create(tide_device device, const tide_stream_caching_options *opt, tide_allocator **out,
                                       tide_error *err) {
    TIDE_TRY(tide_device_require(device, err));
    const tide__sc_source source = {
        .take = take_from_device, .give_back = tide_device_mem_free, .host_memory = device.type == TIDE_DEVICE_CPU};
    return tide__sc_create(TIDE__SC_STREAM_CACHING, device, &source, opt, out, err);
}

// ---- pools ----

/// The state behind an allocator, locked; NULL (and the reason in *err) when it has no pools.
static tide__sc *lock_state(tide_allocator *a, tide_error *err) {
    tide__sc *sc = tide__sc_of(a);
    if (sc != NULL) {
        pthread_mutex_lock(&sc->lock);
    } else {
        (void)!TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s' has no pools", tide_allocator_name(a));
    }
    return sc;
}

tide_status tide_stream_caching_begin_pool(tide_allocator *a, tide_stream_id stream, uint64_t *pool, tide_error *err) {
    tide__sc *sc = lock_state(a, err);
    if (sc == NULL) return TIDE_ERR_INVALID;
    const tide_status st = tide__sc_begin_pool(sc, stream, pool, err);
    pthread_mutex_unlock(&sc->lock);
    return st;
}

tide_status tide_stream_caching_end_pool(tide_allocator *a, uint64_t pool, tide_error *err) {
    tide__sc *sc = lock_state(a, err);
    if (sc == NULL) return TIDE_ERR_INVALID;
    const tide_status st = tide__sc_end_pool(sc, pool, err);
    pthread_mutex_unlock(&sc->lock);
    return st;
}

tide_status tide_stream_caching_release_pool(tide_allocator *a, uint64_t pool, tide_error *err) {
    tide__sc *sc = lock_state(a, err);
    if (sc == NULL) return TIDE_ERR_INVALID;
    const tide_status st = tide__sc_release_pool_by_id(sc, pool, err);
    pthread_mutex_unlock(&sc->lock);
    return st;
}
