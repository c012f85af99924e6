// SPDX-License-Identifier: MIT
//
// pytorch: the caching allocator of PyTorch, on the simulated device: which segments it would take and where in them
// each block would lie. No byte is touched, as there is none.
//
//     small pool   2 MiB    |out| free |out|........... free ...........|    requests up to 1 MiB
//     large pool   20 MiB   |... out ...|......... free ........|. out .|    below 10 MiB
//                  own      |.................. out .................|rest|  above, in steps of 2 MiB
//
// The rules, as c10/cuda/CUDACachingAllocator.cpp has them:
//   1  A request is rounded up to 512 B, or with roundup_power2_divisions=N to the next of N steps between two powers
//      of two, above N times 512 B; N may differ by size.
//   2  It is served from the free chunks of its stream and its pool: the smallest that holds it, the lowest of these.
//      Else a segment is taken from the device, as large as drawn above.
//   3  With max_split_size=M a request below M gets no chunk of M or more, and one of M or more gets none that is
//      20 MiB larger, or more.
//   4  What is left over of a chunk is cut off: in the small pool from 512 B on; in the large one above 1 MiB, and of
//      requests below M alone.
//   5  A free chunk merges with free neighbours of its segment.
//   6  With garbage_collection_threshold=T, when a segment is needed and more than T of the device's memory is taken:
//      free segments of the large pool go back that are as old as their mean or older, in rounds, until what was too
//      much is gone. Age is counted in requests to the pool since the chunk became free.
//   7  Out of memory: with M, free chunks of M or more of the stream go back, as many as the request needs; then all
//      free segments; then it fails.
//   8  With expandable_segments each pool of a stream is a range of addresses that gets memory in pages of 2 and 20
//      MiB (pytorch_ranges.c); what is left over is cut off from 512 B on.
//
// What the device has is what tide_sim_device_set_bytes says; without it rules 6 and 7 never come to pass. A use by
// another stream delays nothing: no work is ever under way on a simulated device, and a replay releases a block when
// its free was completed.
//
// The numbers: active is chunks that are out; cached is free chunks; reserved is segments and pages, always active +
// cached.
#include "core/memory/allocators/pytorch.h"

#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/device/sim_device.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/pytorch_internal.h"

// ---- streams ----

static tide__free_list *list_of(tide__pt *a, tide_stream_id id) {
    for (tide__pt_stream **at = &a->streams; *at != NULL; at = &(*at)->next) {
        tide__pt_stream *s = *at;
        if (s->id != id) continue;
        *at = s->next;
        s->next = a->streams;
        a->streams = s;
        return &s->list;
    }
    tide__pt_stream *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->id = id;
    s->next = a->streams;
    a->streams = s;
    return &s->list;
}

// ---- requests ----

/// Rules 2, 6 and 7: a free chunk for the request.
static tide_status obtain(tide__pt *a, const tide__pt_plan *plan, tide__chunk **out, tide_error *err) {
    *out = tide__pt_find(a, plan);
    if (*out != NULL) {
        a->stats.n_hits++;
        return TIDE_OK;
    }
    if (a->options.gc_threshold > 0) tide__pt_collect(a);
    tide_status st = tide__pt_grow(a, plan, out, err);
    if (st == TIDE_ERR_NOMEM && tide__pt_release_oversize(a, plan)) {
        tide_error_clear(err);
        st = tide__pt_grow(a, plan, out, err);
    }
    if (st == TIDE_ERR_NOMEM) {
        tide_error_clear(err);
        tide__pt_release_free(a);
        st = tide__pt_grow(a, plan, out, err);
    }
    return st;
}

/// Where a block of the recorded program lay. @return NULL: not there
static tide__chunk *take_place(tide__pt *a, size_t size_bytes) {
    const char *at = a->place;
    const size_t bytes = a->place_bytes;
    a->place = NULL;
    tide__chunk *p = at != NULL && bytes >= size_bytes ? tide__pt_free_at(a, at, bytes) : NULL;
    if (p == NULL) return NULL;
    tide__pt_take(p);
    p->state = TIDE__CHUNK_OUT;
    if (at > p->addr) {
        tide__chunk *front = p;
        p = tide__pt_cut(a, p, (size_t)(at - p->addr));
        tide__pt_put(a, front);
    }
    if (p->size_bytes > bytes) tide__pt_put(a, tide__pt_cut(a, p, bytes));
    a->stats.cached_bytes -= p->size_bytes;
    a->stats.n_hits++;
    return p;
}

static tide_status serve(tide__pt *a, const tide_alloc_request *req, tide__chunk **out, tide_error *err) {
    enum { HEADERS = 4 };
    const uint64_t need = tide_pytorch_round(&a->options, req->size_bytes);
    if (need > PTRDIFF_MAX - TIDE__SC_SEGMENT_STEP)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%zu B are more than there can be", req->size_bytes);
    if (!tide__pt_make_spare(a, HEADERS)) return TIDE_NO_MEMORY(err, "for chunks of allocator 'pytorch'");
    *out = take_place(a, req->size_bytes);
    if (*out != NULL) return TIDE_OK;
    const tide__pt_plan plan = {
        .need_bytes = (size_t)need, .large = need > TIDE__SC_SMALL_BYTES, .list = list_of(a, req->stream)};
    if (plan.list == NULL) return TIDE_NO_MEMORY(err, "for a stream of allocator 'pytorch'");
    TIDE_TRY(obtain(a, &plan, out, err));
    if (!tide__pt_make_spare(a, 1)) return TIDE_NO_MEMORY(err, "for chunks of allocator 'pytorch'");
    tide__pt_give_out(a, *out, plan.need_bytes);
    return TIDE_OK;
}

static void prefix(const tide__pt *a, const tide_alloc_request *req, tide_error *err) {
    char active[24], reserved[24];
    tide_error_prefix(err, "allocator 'pytorch': '%s' asked %zu B, %s active, %s reserved",
                      req->tag != NULL ? req->tag : "(no name)", req->size_bytes,
                      tide_format_bytes(a->stats.active_bytes, active, sizeof active),
                      tide_format_bytes(a->stats.reserved_bytes, reserved, sizeof reserved));
}

static tide_status pytorch_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    tide__pt *a = self;
    tide__chunk *p = NULL;
    pthread_mutex_lock(&a->lock);
    const tide_status st = serve(a, req, &p, err);
    if (st == TIDE_OK) {
        out->data = p->addr;
        out->reserved_bytes = p->size_bytes;
        out->context = p;
        tide__count_alloc(&a->stats, req->size_bytes, p->size_bytes);
    } else {
        a->stats.n_failed++;
        prefix(a, req, err);
    }
    pthread_mutex_unlock(&a->lock);
    return st;
}

static void pytorch_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    tide__pt *a = self;
    tide__chunk *p = mem->context;
    pthread_mutex_lock(&a->lock);
    tide__count_free(&a->stats, mem->requested_bytes, mem->reserved_bytes);
    a->stats.cached_bytes += p->size_bytes;
    if (a->listener.on_free_completed != NULL) a->listener.on_free_completed(a->listener.self, mem, last_stream);
    tide__pt_put(a, p);
    pthread_mutex_unlock(&a->lock);
}

static void pytorch_trim(void *self) {
    tide__pt *a = self;
    pthread_mutex_lock(&a->lock);
    tide__pt_release_free(a);
    pthread_mutex_unlock(&a->lock);
}

/// There is nothing to wait for.
static void pytorch_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    (void)self;
    (void)mem;
    (void)stream;
}

static void pytorch_listen(void *self, const tide_allocator_listener *listener) {
    tide__pt *a = self;
    pthread_mutex_lock(&a->lock);
    a->listener = listener != NULL ? *listener : (tide_allocator_listener){0};
    pthread_mutex_unlock(&a->lock);
}

// ---- numbers ----

static void pytorch_stats(const void *self, tide_allocator_stats *out) {
    tide__pt *a = tide__mutable(self);
    pthread_mutex_lock(&a->lock);
    *out = a->stats;
    out->largest_free_bytes = 0;
    for (const tide__pt_stream *s = a->streams; s != NULL; s = s->next) {
        for (int large = 0; large < 2; large++) {
            const tide__chunk *p = tide__tree_last(s->list.idle[large]);
            if (p != NULL && p->size_bytes > out->largest_free_bytes) out->largest_free_bytes = p->size_bytes;
        }
    }
    const uint64_t total = tide_sim_device_bytes();
    out->headroom_bytes = total == 0                        ? TIDE_UNKNOWN_BYTES
                          : total > a->stats.reserved_bytes ? total - a->stats.reserved_bytes
                                                            : 0;
    pthread_mutex_unlock(&a->lock);
}

static void pytorch_props(const void *self, tide_allocator_props *out) {
    (void)self;
    out->what = "what PyTorch's caching allocator would take; addresses without memory";
    out->align_bytes = TIDE__SC_STEP_BYTES;
    out->max_align_bytes = TIDE__SC_STEP_BYTES;
    out->keeps_freed = true;
    out->stream_aware = true;
}

static tide_status check_segment(const tide__segment *seg, uint64_t *active, uint64_t *cached, tide_error *err) {
    const char *at = seg->base;
    uint64_t mapped = 0;
    for (const tide__chunk *p = seg->first; p != NULL; at += p->size_bytes, p = p->after) {
        const bool is_free = p->state == TIDE__CHUNK_IDLE;
        if (p->addr != at || p->segment != seg || (p->after != NULL && p->after->before != p))
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'pytorch': chunk %p is out of place", (void *)p->addr);
        if (p->after != NULL && p->state != TIDE__CHUNK_OUT && p->after->state == p->state)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'pytorch': %p was not merged", (void *)p->addr);
        if (is_free && tide__tree_from(p->home->idle[seg->large], p->size_bytes, p->addr) != p)
            return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'pytorch': %p is on no list", (void *)p->addr);
        *(is_free ? cached : active) += p->state == TIDE__CHUNK_BARE ? 0 : p->size_bytes;
        mapped += p->state == TIDE__CHUNK_BARE ? 0 : p->size_bytes;
    }
    if (at == seg->base + seg->size_bytes && mapped == seg->mapped_bytes) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'pytorch': the chunks of segment %p do not fill it",
                     (void *)seg->base);
}

static tide_status pytorch_check(const void *self, tide_error *err) {
    tide__pt *a = tide__mutable(self);
    tide_allocator_stats s;
    uint64_t active = 0, cached = 0;
    pytorch_stats(self, &s);
    TIDE_TRY(tide__counters_check(&s, "pytorch", err));
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&a->lock);
    for (const tide__segment *seg = a->segments; seg != NULL && st == TIDE_OK; seg = seg->next)
        st = check_segment(seg, &active, &cached, err);
    const bool same = active == a->stats.active_bytes && cached == a->stats.cached_bytes &&
                      active + cached == a->stats.reserved_bytes;
    pthread_mutex_unlock(&a->lock);
    if (st == TIDE_OK && !same)
        st = TIDE_FAIL(err, TIDE_ERR_RUNTIME,
                       "allocator 'pytorch': its chunks hold %" PRIu64 " and %" PRIu64 " B, it counts %" PRIu64
                       " and %" PRIu64,
                       active, cached, s.active_bytes, s.cached_bytes);
    return st;
}

// ---- begin and end ----

static void pytorch_destroy(void *self) {
    tide__pt *a = self;
    a->listener = (tide_allocator_listener){0};
    tide__pt_release_all(a);
    for (tide__pt_stream *s = a->streams, *next; s != NULL; s = next) {
        next = s->next;
        tide_host_free(s);
    }
    for (tide__chunk *p = a->spare, *next; p != NULL; p = next) {
        next = p->after;
        tide_host_free(p);
    }
    pthread_mutex_destroy(&a->lock);
    tide_host_free(a);
}

static const tide_allocator_ops pytorch_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                               .name = "pytorch",
                                               .alloc = pytorch_alloc,
                                               .release = pytorch_release,
                                               .stats = pytorch_stats,
                                               .props = pytorch_props,
                                               .destroy = pytorch_destroy,
                                               .trim = pytorch_trim,
                                               .check = pytorch_check,
                                               .record_use = pytorch_record_use,
                                               .listen = pytorch_listen};

tide_status tide_pytorch_create(tide_device device, const tide_pytorch_options *opt, tide_allocator **out,
                                tide_error *err) {
    if (!tide_sim_device_is(device)) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED,
                                         "allocator 'pytorch' gives addresses without "
                                         "memory: it is there on a simulated device alone");
        tide_error_hint(err, "--device sim");
        return st;
    }
    tide__pt *a;
    TIDE_TRY(TIDE_NEW(&a, 1, err, "for the state of allocator 'pytorch'"));
    a->device = device;
    if (opt != NULL) a->options = *opt;
    pthread_mutex_init(&a->lock, NULL);
    return tide_allocator_create(&pytorch_ops, a, device, out, err);
}

bool tide_pytorch_is(const tide_allocator *a) { return a->ops == &pytorch_ops; }

tide_status tide_pytorch_adopt(tide_allocator *a, void *address, size_t size_bytes, tide_stream_id stream,
                               tide_error *err) {
    tide__pt *p = a->self;
    pthread_mutex_lock(&p->lock);
    tide__free_list *list = list_of(p, stream);
    const tide_status st = list != NULL ? tide__pt_adopt(p, list, address, size_bytes, err)
                                        : TIDE_NO_MEMORY(err, "for a stream of allocator 'pytorch'");
    pthread_mutex_unlock(&p->lock);
    return st;
}

tide_status tide_pytorch_adopt_range(tide_allocator *a, const tide_pytorch_part *parts, size_t n, bool is_small,
                                     tide_stream_id stream, tide_error *err) {
    tide__pt *p = a->self;
    pthread_mutex_lock(&p->lock);
    tide__free_list *list = list_of(p, stream);
    const tide_status st = list != NULL ? tide__pt_range_adopt(p, list, parts, n, is_small, err)
                                        : TIDE_NO_MEMORY(err, "for a stream of allocator 'pytorch'");
    pthread_mutex_unlock(&p->lock);
    return st;
}

void tide_pytorch_place_next(tide_allocator *a, const void *address, size_t held_bytes) {
    tide__pt *p = a->self;
    pthread_mutex_lock(&p->lock);
    p->place = address;
    p->place_bytes = held_bytes;
    pthread_mutex_unlock(&p->lock);
}
