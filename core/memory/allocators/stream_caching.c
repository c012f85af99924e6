// SPDX-License-Identifier: MIT
//
// stream_caching: segments from a device, split and merged; freed memory is kept by stream, and kept back while another
// stream still uses it.
//
//     small segment, 2 MiB   |out| idle |out|pending|.............. idle .............|    requests up to 1 MiB
//     large segment, 20 MiB  |.... out ....|........ idle ........|..... out .....|        up to 10 MiB
//     own segment            |........................ out .......................|rest|   above, in steps of 2 MiB
//
//     stream a's shelf:  idle pieces of small and of large segments, each by (size, address)
//     stream b's shelf:  ...
//     shared shelf:      pieces of streams that are gone
//     stream b's queue:  [use of a pending piece, event] -> ...
//     pool's shelf:      pieces for captured work
//
// The rules (PyTorch's CUDA caching allocator, whose sizes these are, and RMM's stream-ordered pools):
//   1  A block belongs to the stream it was allocated on. Freed, it serves there again at once: stream order protects
//      it. Use by another stream must be declared (record_use), or be the stream it is released on.
//   2  Freed with other uses: one event per such stream; the piece is pending until all are done. They are looked at on
//      the next allocation, oldest first per stream, up to the first that is not done. The host does not wait.
//   3  Before a new segment is taken, a pending piece that fits goes to the asking stream, which waits for its events.
//   4  Streams are known by ids that are never used twice; events are used again; a stream that goes leaves its pieces
//      to everybody.
//   5  While a stream is captured no event is recorded or asked about: that is made up for when the capture has ended.
//      Captured work allocates from a pool of its own, which nobody else gets until it is released.
//   6  Steps of 512 B. Best fit by (stream, size, address). A rest is cut off from 512 B on (small), above 1 MiB
//      (large). Only idle neighbours of one home merge.
//   7  Out of memory: take back, try again, wait for pending uses, give back idle segments, try again, fail with the
//      numbers.
//   8  The device is asked for memory without the lock; what may make it wait (giving back) happens on trim and out of
//      memory only.
//   9  An allocator that the driver brings along (cudaMallocAsync) is a device's own business and no part of this.
//  10  The numbers below, in every out-of-memory message.
//
// The numbers: requested is what live blocks asked for; active is pieces that are out or pending, rounding and rests
// that were not cut off included; cached is idle pieces; reserved is segments, always active + cached. Largest free is
// the longest idle piece of any shelf. Active - requested is rounding and pending; cached is what fragmentation can
// keep from serving: one small live piece keeps its whole segment.
//
// Under AddressSanitizer idle bytes of host memory are off limits, unless work of the stream they were freed on may
// still touch them, which it may.
#include "core/memory/allocators/stream_caching_internal.h"

#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/poison.h"

// ---- allocating ----

static tide_status refuse(tide__sc *a, const tide_alloc_request *req, tide_error *err) {
    pthread_mutex_lock(&a->lock);
    a->stats.n_failed++;
    pthread_mutex_unlock(&a->lock);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: %zu B (alignment %zu) for '%.80s' are more than there can be", a->name,
                     req->size_bytes, req->align_bytes, req->tag != NULL ? req->tag : "(no name)");
}

static tide_status serve(tide__sc *a, const tide__sc_plan *plan, const tide_alloc_request *req, tide__piece **out,
                         tide_error *err) {
    if (a->waiting != NULL) tide__sc_reclaim(a);
    tide__sc_stream *s = tide__sc_stream_of(a, plan->stream);
    if (s == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a stream", a->name);
    bool taken = false;
    tide__piece *from = tide__sc_find_idle(a, plan);
    if (from == NULL) TIDE_TRY(tide__sc_refill(a, plan, req, &from, &taken, err));
    if (tide__sc_cut(a, from, plan, out) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a piece", a->name);
    if (!taken) a->stats.n_hits++;
    return TIDE_OK;
}

static tide_status sc_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    tide__sc *a = self;
    tide__sc_plan plan;
    if (!tide__sc_plan_request(req, &plan)) return refuse(a, req, err);
    tide__piece *p = NULL;
    pthread_mutex_lock(&a->lock);
    const tide_status st = serve(a, &plan, req, &p, err);
    if (st == TIDE_OK) {
        tide__count_alloc(&a->stats, req->size_bytes, p->size_bytes);
        if (a->source.host_memory) tide_asan_unpoison(p->addr, req->size_bytes);
        out->data = p->addr;
        out->reserved_bytes = p->size_bytes;
        out->context = p;
    } else {
        a->stats.n_failed++;
    }
    pthread_mutex_unlock(&a->lock);
    return st;
}

// ---- releasing ----

/// Declare a use. Without host memory to write it down the host waits for the stream here; can it not do that either,
/// the piece never serves again.
static void declare(tide__sc *a, tide__piece *p, tide_stream_id stream) {
    if (stream == p->stream || tide__sc_declare(a, p, stream)) return;
    pthread_mutex_unlock(&a->lock);
    const tide_status st = tide_stream_sync(a->device, stream, NULL);
    pthread_mutex_lock(&a->lock);
    if (st != TIDE_OK && !tide__sc_is_gone(st)) p->unsure = true;
}

static void sc_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    tide__sc *a = self;
    pthread_mutex_lock(&a->lock);
    declare(a, mem->context, stream);
    pthread_mutex_unlock(&a->lock);
}

static void sc_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    tide__sc *a = self;
    tide__piece *p = mem->context;
    pthread_mutex_lock(&a->lock);
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
    pthread_mutex_unlock(&a->lock);
}

// ---- the rest of the table ----

static void sc_stats(const void *self, tide_allocator_stats *out) {
    tide__sc *a = tide__mutable(self);
    pthread_mutex_lock(&a->lock);
    *out = a->stats;
    out->largest_free_bytes = tide__sc_largest_free(a);
    pthread_mutex_unlock(&a->lock);
    out->headroom_bytes = TIDE_UNKNOWN_BYTES;
}

static const char *what(const tide__sc *a) {
    if (a->source.page_locked) return "page-locked host memory, cached; frees wait for streams";
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
    pthread_mutex_unlock(&a->lock);
}

static tide_status sc_check(const void *self, tide_error *err) {
    tide__sc *a = tide__mutable(self);
    pthread_mutex_lock(&a->lock);
    const tide_status st = tide__sc_check(a, err);
    pthread_mutex_unlock(&a->lock);
    return st;
}

static void sc_listen(void *self, const tide_allocator_listener *listener) {
    tide__sc *a = self;
    pthread_mutex_lock(&a->lock);
    a->listener = listener != NULL ? *listener : (tide_allocator_listener){0};
    pthread_mutex_unlock(&a->lock);
}

// ---- beginning and end ----

/// Uses that no event told of (the device refused, or is gone): the host waits for their streams.
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
    for (tide__piece *p = a->spare_pieces, *next; p != NULL; p = next) {
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
        for (tide__piece *p = seg->first; p != NULL; p = p->after) tide__sc_undeclare(a, p, NULL);
    }
    tide__sc_give_back_all(a);
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
static const tide_allocator_ops stream_caching_ops = STREAM_CACHING_OPS("stream_caching");
static const tide_allocator_ops pinned_ops = STREAM_CACHING_OPS("pinned");

tide__sc *tide__sc_of(tide_allocator *a) {
    return a->ops == &stream_caching_ops || a->ops == &pinned_ops ? a->self : NULL;
}

tide_status tide__sc_create(bool pinned, tide_device streams_of, const tide__sc_source *source,
                            const tide_stream_caching_options *opt, tide_allocator **out, tide_error *err) {
    const tide_allocator_ops *ops = pinned ? &pinned_ops : &stream_caching_ops;
    tide__sc *a = tide_host_calloc(1, sizeof *a);
    if (a == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of allocator '%s'", ops->name);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->asked, NULL);
    a->name = ops->name;
    a->device = streams_of;
    a->source = *source;
    a->no_deferral = opt != NULL && opt->unsafe_no_deferral;
    a->streams_end = (tide_stream_listener){.on_destroyed = tide__sc_on_stream_destroyed, .self = a};
    tide_stream_listen(&a->streams_end);
    return tide_allocator_create(ops, a, pinned ? TIDE_CPU : streams_of, out, err);
}

static tide_status take_from_device(tide_device device, size_t size_bytes, void **out, tide_error *err) {
    return tide_device_mem_alloc(device, size_bytes, TIDE__SC_STEP_BYTES, out, err);
}

tide_status tide_stream_caching_create(tide_device device, const tide_stream_caching_options *opt, tide_allocator **out,
                                       tide_error *err) {
    TIDE_TRY(tide_device_require(device, err));
    const tide__sc_source source = {
        .take = take_from_device, .give_back = tide_device_mem_free, .host_memory = device.type == TIDE_DEVICE_CPU};
    return tide__sc_create(false, device, &source, opt, out, err);
}
