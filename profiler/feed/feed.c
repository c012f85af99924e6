// SPDX-License-Identifier: MIT
//
// Life of a feed, its statistics, its first error. See feed.h.
#include "profiler/feed/feed.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/feed/feed_internal.h"

static uint64_t round_up_slots(size_t asked) {
    if (asked == 0) return TIDE__FEED_DEFAULT_SLOTS;
    uint64_t n = TIDE__FEED_MIN_SLOTS;
    while (n < asked && n < TIDE__FEED_MAX_SLOTS) n *= 2;
    return n;
}

static void free_feed(tide__feed *f, bool remove) {
    tide__feed_file_close(f, remove);
    tide__feed_names_deinit(f);
    while (f->producers != NULL) {
        tide__producer *p = f->producers;
        f->producers = p->next;
        tide__producer_free(p);
    }
    if (!f->file.is_child) { // there the locks may be held for ever
        pthread_mutex_destroy(&f->lock);
        pthread_mutex_destroy(&f->watch_lock);
    }
    tide_host_free(f);
}

tide_status tide__feed_create(const tide__feed_options *opt, tide__feed **out, tide_error *err) {
    tide__feed *f;
    TIDE_TRY(TIDE_NEW(&f, 1, err, "for a feed beside '%s'", opt->trace_path));
    pthread_mutex_init(&f->lock, NULL);
    pthread_mutex_init(&f->watch_lock, NULL);
    f->file.fd = -1;
    f->drops = opt->drop_when_full;
    f->max_wait_ns = opt->max_wait_ns != 0 ? opt->max_wait_ns : UINT64_MAX;
    f->ring_slots = round_up_slots(opt->ring_slots);
    tide_status st;
    TIDE_TRY_OR(fail, st, tide__feed_names_init(f, err));
    TIDE_TRY_OR(fail, st, tide__feed_file_create(f, opt, err));
    TIDE_TRY_OR(fail, st, tide__feed_names_begin(f, opt->command, err));
    TIDE_TRY_OR(fail, st, tide__feed_file_publish(f, err));
    TIDE_TRY_OR(fail, st, tide__feed_enter(f, err));
    *out = f;
    return TIDE_OK;
fail:
    free_feed(f, true);
    return st;
}

const char *tide__feed_path(const tide__feed *f) { return f->path; }
tide__feed_header *tide__feed_head(tide__feed *f) { return f->head; }
bool tide__feed_is_child(const tide__feed *f) { return f->file.is_child; }

void tide__feed_set_watch(tide__feed *f, bool (*drain_lives)(void *ctx), void *ctx) {
    f->watch = drain_lives;
    f->watch_ctx = ctx;
}

void tide__feed_on_stall(tide__feed *f, void (*stalls)(void *ctx), void *ctx) {
    f->stalls = stalls;
    f->stalls_ctx = ctx;
}

/// The drain's message ends with a zero byte or with the field.
static tide_status drain_error(const tide__feed_header *h, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "%.*s", (int)strnlen(h->error, sizeof h->error), h->error);
}

tide_status tide__feed_error(const tide__feed *feed, tide_error *err) {
    tide__feed *f = (tide__feed *)(uintptr_t)feed; // a lock is no change
    if (f->file.is_child) return TIDE_OK;
    pthread_mutex_lock(&f->lock);
    const tide_error kept = f->error;
    pthread_mutex_unlock(&f->lock);
    if (kept.status != TIDE_OK) {
        if (err != NULL) *err = kept;
        return kept.status;
    }
    if (atomic_load_explicit(&f->head->drain, memory_order_acquire) == TIDE__DRAIN_FAILED)
        return drain_error(f->head, err);
    return TIDE_OK;
}

void tide__feed_get_stats(const tide__feed *feed, tide__feed_stats *out) {
    tide__feed *f = (tide__feed *)(uintptr_t)feed; // a lock is no change
    *out = (tide__feed_stats){0};
    if (f->file.is_child) return;
    pthread_mutex_lock(&f->lock);
    out->n_refused = atomic_load_explicit(&f->n_refused, memory_order_relaxed);
    out->file_bytes = f->file_bytes - (TIDE__FEED_HEADER_BYTES - f->header_bytes);
    out->n_rings = f->n_producers;
    for (const tide__producer *p = f->producers; p != NULL; p = p->next) {
        // All in our own memory: the file may have been cut short. What was dropped has no slot.
        const uint64_t n_lost = atomic_load_explicit(&p->n_lost, memory_order_relaxed);
        const uint64_t n_control = atomic_load_explicit(&p->n_control, memory_order_acquire);
        const uint64_t head = __atomic_load_n(&p->head, __ATOMIC_RELAXED);
        TIDE_ASSERT(n_control <= head);
        out->n_events += head - n_control + n_lost;
        out->n_lost += n_lost;
        out->blocked_ns += atomic_load_explicit(&p->blocked_ns, memory_order_relaxed);
    }
    pthread_mutex_unlock(&f->lock);
}

tide_status tide__feed_heads(const tide__feed *feed, uint64_t **heads, size_t *n, tide_error *err) {
    tide__feed *f = (tide__feed *)(uintptr_t)feed; // a lock is no change
    pthread_mutex_lock(&f->lock);
    *n = f->n_producers;
    *heads = tide_host_calloc(*n + 1, sizeof **heads);
    for (const tide__producer *p = f->producers; *heads != NULL && p != NULL; p = p->next)
        if (p->number < *n) (*heads)[p->number] = __atomic_load_n(&p->head, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&f->lock);
    return *heads != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "to flush '%s'", f->path);
}

bool tide__feed_has_given(const tide__feed *feed, const uint64_t *heads, size_t n) {
    tide__feed *f = (tide__feed *)(uintptr_t)feed;
    bool has_given = true;
    pthread_mutex_lock(&f->lock);
    for (const tide__producer *p = f->producers; p != NULL; p = p->next)
        if (p->number < n && atomic_load_explicit(&p->ring->tail, memory_order_acquire) < heads[p->number])
            has_given = false;
    pthread_mutex_unlock(&f->lock);
    return has_given;
}

void tide__feed_say_ending(tide__feed *f, tide__feed_ending ending) {
    if (f->file.is_child) return;
    atomic_store_explicit(&f->head->ending_ns, (int64_t)tide_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&f->head->ending, (uint32_t)ending, memory_order_release);
}

void tide__feed_end(tide__feed *f) {
    if (f->file.is_child || atomic_exchange(&f->is_ended, true)) return;
    tide__feed_retire(f);
    for (tide__producer *p = f->producers; p != NULL; p = p->next) tide__feed_put_gap(f, p);
    tide__feed_stats s;
    tide__feed_get_stats(f, &s);
    f->head->n_heard = s.n_events;
    f->head->n_dropped = s.n_lost;
    atomic_store_explicit(&f->head->state, TIDE__FEED_CLOSED, memory_order_release);
}

void tide__feed_destroy(tide__feed *f, bool remove) {
    if (f == NULL) return;
    tide__feed_leave(f);
    free_feed(f, remove && !f->file.is_child);
}
