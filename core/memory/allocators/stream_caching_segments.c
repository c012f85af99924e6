// SPDX-License-Identifier: MIT
//
// Segments of stream_caching: taking one from the source, giving idle ones back, and what is tried before a request
// fails (rules 7 and 8).
//
//     no idle chunk fits
//       -> a pending chunk that fits, behind its events (rule 3)
//       -> a new segment                                          the source is asked without the lock
//       -> out of memory: take back what is done, look again
//       -> wait for all pending uses, look again                  the only places where the host waits
//       -> give back the segments that are idle as a whole
//       -> a new segment once more
//       -> an idle chunk of another stream, behind an event there
//       -> other threads are at the source: wait for the first that changes something, and from the top again
//       -> fail, with the numbers
//
// Memory on its way to or from the source is in no count: a thread that failed because of it must look again.
//
// An idle chunk may still be touched by work of its own stream. So a segment goes back only when the host has waited
// for that work; the moment is kept per stream, and a chunk that became idle later counts as not waited for.
#include <inttypes.h>
#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"
#include "core/memory/poison.h"

uint64_t tide__sc_new_ids(uint64_t n) {
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, n, memory_order_relaxed) + 1;
}

// ---- taking from the source ----

void tide__sc_list_segment(tide__sc *a, const tide__sc_plan *plan, tide__segment *seg, tide__chunk *whole) {
    tide__sc_stream *s = tide__sc_find_stream(a, plan->stream); // it may have gone meanwhile
    TIDE_ASSERT((uintptr_t)seg->base % TIDE__SC_STEP_BYTES == 0);
    seg->pool = s != NULL ? s->pool : NULL;
    seg->first = whole;
    seg->next = a->segments;
    if (seg->next != NULL) seg->next->prev = seg;
    a->segments = seg;
    whole->addr = seg->base;
    whole->size_bytes = seg->size_bytes;
    whole->segment = seg;
    whole->home = s != NULL ? tide__sc_list_of(s) : &a->shared;
}

/// The taken memory becomes a segment with one idle chunk, at the place that the plan's stream allocates from by now.
static tide__chunk *link_segment(tide__sc *a, const tide__sc_plan *plan, tide__segment *seg, tide__chunk *p) {
    TIDE_ASSERT(seg->size_bytes == plan->segment_bytes);
    seg->id = tide__sc_new_ids(1);
    seg->mapped_bytes = seg->size_bytes;
    tide__sc_list_segment(a, plan, seg, p);
    tide__count_reserve(&a->stats, seg->size_bytes);
    a->stats.cached_bytes += seg->size_bytes;
    TIDE_ASSERT(a->stats.reserved_bytes == a->stats.active_bytes + a->stats.cached_bytes);
    if (a->source.host_memory) tide_asan_poison(seg->base, seg->size_bytes);
    if (a->listener.on_segment != NULL)
        a->listener.on_segment(a->listener.self, true, seg->id, seg->base, seg->size_bytes);
    return tide__sc_put_idle(a, p);
}

void tide__sc_leave(tide__sc *a) {
    a->n_asking++;
    pthread_mutex_unlock(&a->lock);
}

void tide__sc_come_back(tide__sc *a, bool changed) {
    pthread_mutex_lock(&a->lock);
    TIDE_ASSERT(a->n_asking > 0);
    a->n_asking--;
    if (changed) a->n_asked++;
    pthread_cond_broadcast(&a->asked);
}

/// Another thread changed something since `seen`, or one that is at the source does so now.
static bool others_changed(tide__sc *a, uint64_t seen) {
    while (a->n_asked == seen && a->n_asking > 0) pthread_cond_wait(&a->asked, &a->lock);
    return a->n_asked != seen;
}

static tide_status take(tide__sc *a, const tide__sc_plan *plan, tide__segment *seg, tide_error *err) {
    void *base = NULL;
    tide__sc_leave(a);
    const tide_status st = a->source.take(a->device, plan->segment_bytes, &base, err);
    tide__sc_come_back(a, st == TIDE_OK);
    seg->base = base;
    return st;
}

// ---- giving back to the source ----

bool tide__sc_is_quiet(const tide__chunk *p) {
    TIDE_ASSERT(p->state == TIDE__CHUNK_IDLE);
    const tide__sc_stream *s = p->home->stream;
    return s == NULL || p->idle_since <= s->quiet_until;
}

static bool is_spare(const tide__segment *seg) { return seg->n_busy == 0 && seg->pool == NULL && seg->unit_bytes == 0; }

/// The chunk, or a part of it, could go if no work touched it.
static bool could_go(const tide__chunk *p) {
    if (p->state != TIDE__CHUNK_IDLE) return false;
    return is_spare(p->segment) || (p->segment->unit_bytes > 0 && p->segment->pool == NULL && tide__sc_has_units(p));
}

/// The next stream after number `after` to wait for before spare segments and units can go.
static tide__sc_stream *next_unquiet(const tide__sc *a, uint64_t after) {
    tide__sc_stream *next = NULL;
    for (const tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (!is_spare(seg) && seg->unit_bytes == 0) continue;
        for (const tide__chunk *p = seg->first; p != NULL; p = p->after) {
            if (!could_go(p) || tide__sc_is_quiet(p) || p->home->stream->number <= after) continue;
            if (next == NULL || p->home->stream->number < next->number) next = p->home->stream;
        }
    }
    return next;
}

/// Wait for the work of every stream that orders a chunk that could go.
static void sync_homes(tide__sc *a) {
    uint64_t at = 0;
    for (tide__sc_stream *s; (s = next_unquiet(a, at)) != NULL;) {
        const tide_stream_id id = s->id;
        const uint64_t now = a->clock;
        at = s->number;
        pthread_mutex_unlock(&a->lock);
        const tide_status st = tide_stream_sync(a->device, id, NULL);
        pthread_mutex_lock(&a->lock);
        s = tide__sc_find_stream(a, id); // it may have gone meanwhile
        if (s != NULL && (st == TIDE_OK || tide__sc_is_gone(st))) s->quiet_until = now;
    }
}

void tide__sc_unlist_segment(tide__sc *a, tide__segment *seg) {
    if (seg->prev != NULL) {
        seg->prev->next = seg->next;
    } else {
        a->segments = seg->next;
    }
    if (seg->next != NULL) seg->next->prev = seg->prev;
}

static void tell_gone(const tide__sc *a, const tide__segment *seg) {
    if (a->listener.on_segment == NULL) return;
    if (seg->unit_bytes == 0) a->listener.on_segment(a->listener.self, false, seg->id, seg->base, seg->size_bytes);
    for (size_t i = 0; seg->unit_bytes > 0 && i < seg->size_bytes / seg->unit_bytes; i++) {
        if (seg->units[i] == 0) continue;
        a->listener.on_segment(a->listener.self, false, seg->units[i], seg->base + i * seg->unit_bytes,
                               seg->unit_bytes);
    }
}

/// Take a segment out of everything; its header remains.
static void unlink_segment(tide__sc *a, tide__segment *seg) {
    for (tide__chunk *p = seg->first, *after; p != NULL; p = after) {
        after = p->after;
        if (p->state == TIDE__CHUNK_IDLE) {
            tide__tree_remove(&p->home->idle[seg->large], p);
            TIDE_ASSERT(a->stats.cached_bytes >= p->size_bytes);
            a->stats.cached_bytes -= p->size_bytes;
        } else if (p->state != TIDE__CHUNK_BARE) {
            a->stats.active_bytes -= p->size_bytes;
        }
        tide__sc_drop_chunk(a, p);
    }
    tide__sc_unlist_segment(a, seg);
    TIDE_ASSERT(a->stats.reserved_bytes >= seg->mapped_bytes);
    a->stats.reserved_bytes -= seg->mapped_bytes;
    TIDE_ASSERT(a->stats.reserved_bytes == a->stats.active_bytes + a->stats.cached_bytes);
    if (a->source.host_memory) tide_asan_unpoison(seg->base, seg->size_bytes);
    tell_gone(a, seg);
}

/// Give back the segments that `gone` says, with the lock open: giving back may wait for the device.
static void give_back_where(tide__sc *a, bool (*gone)(const tide__segment *seg)) {
    tide__segment *list = NULL;
    for (tide__segment *seg = a->segments, *next; seg != NULL; seg = next) {
        next = seg->next;
        if (!gone(seg)) continue;
        unlink_segment(a, seg);
        seg->next = list;
        list = seg;
    }
    if (list == NULL) return;
    tide__sc_leave(a);
    for (tide__segment *seg = list, *next; seg != NULL; seg = next) {
        next = seg->next;
        if (seg->unit_bytes > 0) {
            tide__sc_free_range(a, seg);
        } else {
            a->source.give_back(a->device, seg->base);
            tide_host_free(seg);
        }
    }
    tide__sc_come_back(a, true);
}

static bool can_go(const tide__segment *seg) {
    if (!is_spare(seg)) return false;
    for (const tide__chunk *p = seg->first; p != NULL; p = p->after) {
        if (!tide__sc_is_quiet(p)) return false;
    }
    return true;
}

static bool must_go(const tide__segment *seg) {
    (void)seg;
    return true;
}

void tide__sc_give_back_idle(tide__sc *a) {
    sync_homes(a);
    give_back_where(a, can_go);
    tide__sc_shrink(a);
}

void tide__sc_give_back_all(tide__sc *a) { give_back_where(a, must_go); }

// ---- out of memory ----

static void raise(uint64_t *largest, const tide__free_list *list) {
    for (int i = 0; i < 2; i++) {
        const tide__chunk *p = tide__tree_last(list->idle[i]);
        if (p != NULL && p->size_bytes > *largest) *largest = p->size_bytes;
    }
}

uint64_t tide__sc_largest_free(const tide__sc *a) {
    uint64_t largest = 0;
    raise(&largest, &a->shared);
    for (const tide__sc_pool *pool = a->pools; pool != NULL; pool = pool->next) raise(&largest, &pool->list);
    for (int i = 0; i < TIDE__SC_N_CHAINS; i++) {
        for (const tide__sc_stream *s = a->streams[i]; s != NULL; s = s->chain) raise(&largest, &s->list);
    }
    return largest;
}

typedef struct tally {
    uint64_t n_segments, reserved_bytes, cached_bytes;
} tally;

/// Numbers per pool: small segments, large ones, those kept for captured work.
static void tally_segments(const tide__sc *a, tally out[3]) {
    for (const tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        tally *t = &out[seg->pool != NULL ? 2 : seg->large];
        t->n_segments++;
        t->reserved_bytes += seg->mapped_bytes;
        for (const tide__chunk *p = seg->first; p != NULL; p = p->after) {
            if (p->state == TIDE__CHUNK_IDLE) t->cached_bytes += p->size_bytes;
        }
    }
}

static tide_status fail_with_numbers(const tide__sc *a, const tide__sc_plan *plan, const tide_alloc_request *req,
                                     const char *source_words, tide_error *err) {
    const tide_allocator_stats *s = &a->stats;
    tally t[3] = {{0}};
    tally_segments(a, t);
    char device[32], asked[24], active[24], pending[24], cached[24], reserved[24], largest[24];
#define BYTES(value, buf) tide_format_bytes((value), (buf), sizeof(buf))
    (void)!TIDE_FAIL(err, TIDE_ERR_NOMEM,
                     "%s on %s: no memory for '%.80s': asked %s (%zu B, alignment %zu) on stream %" PRIu64
                     "; active %s, of these pending %s in %" PRIu64 " block%s; cached %s, reserved %s, largest free %s",
                     a->name, tide_device_format(a->device, device, sizeof device),
                     req->tag != NULL ? req->tag : "(no name)", BYTES(req->size_bytes, asked), req->size_bytes,
                     plan->align_bytes, req->stream, BYTES(s->active_bytes, active), BYTES(s->pending_bytes, pending),
                     s->n_pending, s->n_pending == 1 ? "" : "s", BYTES(s->cached_bytes, cached),
                     BYTES(s->reserved_bytes, reserved), BYTES(tide__sc_largest_free(a), largest));
    char bytes[6][24];
    tide_error_note(err,
                    "small: %" PRIu64 " segments, %s, cached %s; large: %" PRIu64 ", %s, cached %s; kept for "
                    "captured work: %" PRIu64 ", %s, cached %s; %s",
                    t[0].n_segments, BYTES(t[0].reserved_bytes, bytes[0]), BYTES(t[0].cached_bytes, bytes[1]),
                    t[1].n_segments, BYTES(t[1].reserved_bytes, bytes[2]), BYTES(t[1].cached_bytes, bytes[3]),
                    t[2].n_segments, BYTES(t[2].reserved_bytes, bytes[4]), BYTES(t[2].cached_bytes, bytes[5]),
                    source_words);
#undef BYTES
    return TIDE_ERR_NOMEM;
}

/// Memory from the source as an idle chunk: a segment, or units of a range.
static tide_status take_more(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h, tide__chunk **out,
                             tide_error *err) {
    if (a->source.unit_bytes[0] > 0) return tide__sc_grow(a, plan, h, out, err);
    TIDE_TRY(take(a, plan, h->range, err));
    *out = link_segment(a, plan, h->range, h->one);
    h->range = NULL;
    h->one = NULL;
    return TIDE_OK;
}

/// Everything that may bring memory, short of failing. `taken`: it came from the source.
static tide_status climb(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h, tide__chunk **out, bool *taken,
                         tide_error *err) {
    for (;;) {
        tide__sc_reclaim(a);
        if ((*out = tide__sc_find_idle(a, plan)) != NULL) return TIDE_OK;
        tide__sc_sync_uses(a);
        if ((*out = tide__sc_find_idle(a, plan)) != NULL) return TIDE_OK;
        tide__sc_give_back_idle(a);
        const uint64_t seen = a->n_asked;
        const tide_status st = take_more(a, plan, h, out, err);
        *taken = st == TIDE_OK;
        if (st != TIDE_ERR_NOMEM) return st;
        *out = tide__sc_take_idle(a, plan);
        if (*out == NULL) *out = tide__sc_find_idle(a, plan); // the stream it lay on may have turned out to be gone
        if (*out != NULL) return TIDE_OK;
        if (!others_changed(a, seen)) return st;
    }
}

/// Host memory first: without it nothing is to be changed.
static bool take_headers(tide__sc *a, const tide__sc_plan *plan, tide__sc_headers *h) {
    if (a->source.unit_bytes[0] > 0) return tide__sc_take_headers(a, plan, h);
    h->range = tide_host_calloc(1, sizeof *h->range);
    h->one = h->range != NULL ? tide__sc_new_chunk(a) : NULL;
    if (h->one == NULL) {
        tide_host_free(h->range);
        return false;
    }
    h->range->size_bytes = plan->segment_bytes;
    h->range->large = plan->large;
    return true;
}

tide_status tide__sc_refill(tide__sc *a, const tide__sc_plan *plan, const tide_alloc_request *req, tide__chunk **out,
                            bool *taken, tide_error *err) {
    *taken = false;
    if ((*out = tide__sc_take_over(a, plan)) != NULL) return TIDE_OK;
    tide__sc_headers h = {0};
    if (!take_headers(a, plan, &h)) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a segment", a->name);
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = take_more(a, plan, &h, out, &why);
    *taken = st == TIDE_OK;
    if (st == TIDE_ERR_NOMEM) st = climb(a, plan, &h, out, taken, &why);
    tide__sc_drop_headers(a, &h);
    if (st == TIDE_OK) return TIDE_OK;
    if (st == TIDE_ERR_NOMEM) return fail_with_numbers(a, plan, req, why.msg, err);
    if (err != NULL) *err = why;
    return st;
}
