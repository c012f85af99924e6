// SPDX-License-Identifier: MIT
//
// Streams and pools of stream_caching (rules 4 and 5), and the uses of chunks by streams (rules 2, 3 and 5).
//
// A stream is known by its id, which the process never uses twice: memory of a stream that is gone is never mistaken
// for memory of a younger one. When a stream goes, its work is done: idle chunks move to the shared list, live ones
// will go there.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/stream_caching_internal.h"
#include "core/memory/poison.h"

// ---- streams ----

static tide__sc_stream **chain_of(tide__sc *a, tide_stream_id id) { return &a->streams[id % TIDE__SC_N_CHAINS]; }

tide__sc_stream *tide__sc_stream_of(tide__sc *a, tide_stream_id id) {
    tide__sc_stream *s = tide__sc_find_stream(a, id);
    if (s == NULL) {
        s = tide_host_calloc(1, sizeof *s);
        if (s == NULL) return NULL;
        s->id = id;
        s->number = ++a->n_streams;
        s->list.stream = s;
        s->chain = *chain_of(a, id);
        *chain_of(a, id) = s;
    }
    a->recent = s;
    return s;
}

/// An idle chunk changes its home. @return what it became there
static tide__chunk *move_idle(tide__sc *a, tide__chunk *p, tide__free_list *to) {
    TIDE_ASSERT(p->state == TIDE__CHUNK_IDLE);
    tide__tree_remove(&p->home->idle[p->segment->large], p);
    p->home = to;
    if (to->stream == NULL && a->source.host_memory) tide_asan_poison(p->addr, p->size_bytes);
    return tide__sc_put_idle(a, p);
}

/// Every chunk whose home is `from` lives at `to` from now on.
static void move_home(tide__sc *a, const tide__free_list *from, tide__free_list *to) {
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (seg->owner == from) seg->owner = to;
        for (tide__chunk *p = seg->first; p != NULL; p = p->after) {
            if (p->home != from) continue;
            // Merging may swallow p into the one before it, and the one after it: go on from what it became.
            if (p->state == TIDE__CHUNK_IDLE) {
                p = move_idle(a, p, to);
            } else {
                p->home = to;
            }
        }
    }
}

/// What was declared of blocks that are still out: the stream is done with them.
static void undeclare_all(tide__sc *a, const tide__sc_stream *s) {
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        for (tide__chunk *p = seg->first; p != NULL; p = p->after) {
            if (p->state == TIDE__CHUNK_OUT) tide__sc_undeclare(a, p, s);
        }
    }
}

/// The stream is gone: its uses are over, its chunks serve every stream.
static void forget_stream(tide__sc *a, tide__sc_stream *s) {
    tide__sc_finish_uses(a, s);
    undeclare_all(a, s);
    move_home(a, &s->list, &a->shared);
    for (tide__sc_pool *pool = a->pools; pool != NULL; pool = pool->next) {
        if (pool->list.stream == s) pool->list.stream = NULL;
    }
    TIDE_ASSERT(s->first == NULL && s->n_unrecorded == 0 && s->list.idle[0] == NULL && s->list.idle[1] == NULL);
    tide__sc_stream **at = chain_of(a, s->id);
    while (*at != s) at = &(*at)->chain;
    *at = s->chain;
    if (a->recent == s) a->recent = NULL;
    tide_host_free(s);
}

void tide__sc_on_stream_destroyed(void *self, tide_device device, tide_stream_id stream) {
    tide__sc *a = self;
    if (!tide_device_equal(device, a->device)) return;
    pthread_mutex_lock(&a->lock);
    tide__sc_stream *s = tide__sc_find_stream(a, stream);
    if (s != NULL) forget_stream(a, s);
    pthread_mutex_unlock(&a->lock);
}

// ---- pools ----

void tide__sc_release_pool(tide__sc *a, tide__sc_pool *pool) {
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (seg->pool != pool) continue;
        seg->pool = NULL;
        for (tide__chunk *p = seg->first; p != NULL; p = p->after) {
            if (p->state == TIDE__CHUNK_PENDING && !p->unsure) tide__tree_insert(&a->pending[seg->large], p);
        }
    }
    tide__sc_stream *s = pool->list.stream;
    if (s != NULL && s->pool == pool) s->pool = NULL;
    move_home(a, &pool->list, s != NULL ? &s->list : &a->shared);
    TIDE_ASSERT(pool->list.idle[0] == NULL && pool->list.idle[1] == NULL);
    tide__sc_pool **at = &a->pools;
    while (*at != pool) at = &(*at)->next;
    *at = pool->next;
    tide_host_free(pool);
}

static tide__sc_pool *find_pool(const tide__sc *a, uint64_t id) {
    tide__sc_pool *pool = a->pools;
    while (pool != NULL && pool->id != id) pool = pool->next;
    return pool;
}

static bool is_open(const tide__sc_pool *pool) { return pool->list.stream != NULL && pool->list.stream->pool == pool; }

tide_status tide__sc_begin_pool(tide__sc *a, tide_stream_id stream, uint64_t *id, tide_error *err) {
    tide__sc_stream *s = tide__sc_stream_of(a, stream);
    tide__sc_pool *pool = s != NULL ? tide_host_calloc(1, sizeof *pool) : NULL;
    if (pool == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a pool", a->name);
    if (s->pool != NULL) {
        tide_host_free(pool);
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "%s: stream %" PRIu64 " allocates from pool %" PRIu64 " already", a->name,
                         stream, s->pool->id);
    }
    *pool = (tide__sc_pool){.id = ++a->n_pools, .list = {.stream = s}, .next = a->pools};
    a->pools = pool;
    s->pool = pool;
    *id = pool->id;
    return TIDE_OK;
}

tide_status tide__sc_end_pool(tide__sc *a, uint64_t id, tide_error *err) {
    tide__sc_pool *pool = find_pool(a, id);
    if (pool == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "%s: there is no pool %" PRIu64, a->name, id);
    // A stream that went took the end with it.
    if (!is_open(pool)) {
        if (pool->list.stream == NULL) return TIDE_OK;
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%s: pool %" PRIu64 " has ended already", a->name, id);
    }
    pool->list.stream->pool = NULL;
    return TIDE_OK;
}

tide_status tide__sc_release_pool_by_id(tide__sc *a, uint64_t id, tide_error *err) {
    tide__sc_pool *pool = find_pool(a, id);
    if (pool == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "%s: there is no pool %" PRIu64, a->name, id);
    if (is_open(pool))
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "%s: pool %" PRIu64 " has not ended: stream %" PRIu64 " allocates from it",
                         a->name, id, pool->list.stream->id);
    tide__sc_release_pool(a, pool);
    return TIDE_OK;
}

// ---- uses ----
//
// Which other streams use a chunk, and when that is over.
//
//     chunk P, allocated on stream a, also used by b and c; released
//
//     queue of b:  [use of O, event 7 done] -> [use of P, event 9] -> ...       looked at from the front; the first one
//     queue of c:  [use of P, event 8]                                          that is not done ends the look
//                                  \_ P is pending until both are gone
//
// While a stream is captured no event can be put into it: such a use waits in the same queue without an event until the
// capture has ended. Events of a queue are in stream order, or, where one came late, later than they need be.

// ---- records of uses ----

static tide__use *new_use(tide__sc *a, tide__sc_stream *by) {
    tide__use *u = a->spare_uses;
    if (u != NULL) {
        a->spare_uses = u->next;
    } else {
        u = tide_host_alloc(sizeof *u);
        if (u == NULL) return NULL;
        u->event = 0;
    }
    *u = (tide__use){.by = by, .event = u->event};
    return u;
}

static void drop_use(tide__sc *a, tide__use *u) {
    u->next = a->spare_uses;
    a->spare_uses = u;
}

static void unlink_from_chunk(tide__use *u) {
    TIDE_ASSERT(u->chunk != NULL && u->chunk->n_uses > 0);
    tide__use **at = &u->chunk->uses;
    while (*at != u) at = &(*at)->sibling;
    *at = u->sibling;
}

bool tide__sc_declare(tide__sc *a, tide__chunk *p, tide_stream_id stream) {
    if (tide__sc_is_host(a, stream)) return true;
    for (const tide__use *u = p->uses; u != NULL; u = u->sibling) {
        if (u->by->id == stream) return true;
    }
    tide__sc_stream *by = tide__sc_stream_of(a, stream);
    tide__use *u = by != NULL ? new_use(a, by) : NULL;
    if (u == NULL) return false;
    u->chunk = p;
    u->sibling = p->uses;
    p->uses = u;
    p->n_uses++;
    return true;
}

void tide__sc_undeclare(tide__sc *a, tide__chunk *p, const tide__sc_stream *by) {
    for (tide__use *u = p->uses, *next; u != NULL; u = next) {
        next = u->sibling;
        if (by != NULL && u->by != by) continue;
        unlink_from_chunk(u);
        p->n_uses--;
        drop_use(a, u);
    }
}

// ---- events ----

typedef enum progress { ON_ITS_WAY, LATER, GONE } progress;

/// Put the use's event into its stream. LATER: not now (a capture, no events left); GONE: there is no such stream.
static progress record(const tide__sc *a, tide__use *u) {
    if (u->event == 0 && tide_event_create(a->device, &u->event, NULL) != TIDE_OK) {
        u->event = 0;
        return LATER;
    }
    const tide_status st = tide_event_record(a->device, u->event, u->by->id, NULL);
    if (tide__sc_is_gone(st)) return GONE;
    if (st != TIDE_OK) return LATER;
    u->recorded = true;
    return ON_ITS_WAY;
}

/// Append to the queue of its stream and record; the queue keeps it when that must wait.
static progress enqueue(tide__sc *a, tide__use *u) {
    TIDE_ASSERT(!u->recorded && u->next == NULL);
    tide__sc_stream *by = u->by;
    if (by->first == NULL) {
        by->first = u;
        by->next_waiting = a->waiting;
        a->waiting = by;
    } else {
        by->last->next = u;
    }
    by->last = u;
    const progress got = record(a, u);
    if (got != ON_ITS_WAY) by->n_unrecorded++;
    return got;
}

/// Events for those that got none when they were released.
static progress record_late(const tide__sc *a, tide__sc_stream *by) {
    for (tide__use *u = by->first; by->n_unrecorded > 0 && u != NULL; u = u->next) {
        if (u->recorded) continue;
        const progress got = record(a, u);
        if (got != ON_ITS_WAY) return got;
        by->n_unrecorded--;
    }
    return ON_ITS_WAY;
}

/// The first use of the queue is over.
static void finish_first(tide__sc *a, tide__sc_stream *by) {
    TIDE_ASSERT(by->first != NULL && by->first->by == by);
    tide__use *u = by->first;
    by->first = u->next;
    if (!u->recorded) by->n_unrecorded--;
    TIDE_ASSERT((by->first == NULL) == (u == by->last) && (by->first != NULL || by->n_unrecorded == 0));
    tide__chunk *p = u->chunk;
    if (p != NULL) {
        unlink_from_chunk(u);
        if (--p->n_uses == 0) tide__sc_complete(a, p);
    }
    drop_use(a, u);
}

void tide__sc_finish_uses(tide__sc *a, tide__sc_stream *by) {
    if (by->first == NULL) return;
    while (by->first != NULL) finish_first(a, by);
    tide__sc_stream **at = &a->waiting;
    while (*at != by) at = &(*at)->next_waiting;
    *at = by->next_waiting;
}

// ---- deferring and taking back ----

void tide__sc_defer(tide__sc *a, tide__chunk *p) {
    TIDE_ASSERT(p->state == TIDE__CHUNK_OUT && p->n_uses > 0);
    p->state = TIDE__CHUNK_PENDING;
    a->stats.pending_bytes += p->size_bytes;
    a->stats.n_pending++;
    if (p->segment->pool == NULL && !p->unsure) tide__tree_insert(&a->pending[p->segment->large], p);
    p->n_uses++; // of this function: a stream that turns out to be gone must not complete the chunk meanwhile
    for (tide__use *u = p->uses, *next; u != NULL; u = next) {
        next = u->sibling;
        if (enqueue(a, u) == GONE) forget_stream(a, u->by);
    }
    if (--p->n_uses == 0) tide__sc_complete(a, p);
}

/// Take back what is done at the front of one queue. LATER: the device does not answer now.
static progress settle(tide__sc *a, tide__sc_stream *by) {
    if (by->n_unrecorded > 0 && record_late(a, by) == GONE) return GONE;
    while (by->first != NULL && by->first->recorded) {
        bool done = false;
        const tide_status st = tide_event_query(a->device, by->first->event, &done, NULL);
        if (st == TIDE_ERR_BUSY) return LATER;
        if (st != TIDE_OK || !done) break;
        finish_first(a, by);
    }
    return ON_ITS_WAY;
}

void tide__sc_reclaim(tide__sc *a) {
    tide__sc_stream **at = &a->waiting;
    while (*at != NULL) {
        tide__sc_stream *by = *at;
        const progress got = settle(a, by);
        if (got == GONE) {
            forget_stream(a, by); // takes it off the list, too
        } else if (by->first == NULL) {
            *at = by->next_waiting;
        } else {
            at = &by->next_waiting;
        }
        if (got == LATER) return; // a capture somewhere: no event may be asked about
    }
}

// ---- taking over from other streams ----

/// Make `to` wait for all that may still touch the chunk. False: it cannot, or not now; no harm is done then.
static bool follow(tide__sc *a, tide__chunk *p, const tide__sc_stream *to) {
    for (const tide__use *u = p->uses; u != NULL; u = u->sibling) {
        if (!u->recorded) return false;
    }
    tide__sc_stream *home = p->home->stream;
    if (home != NULL && home != to && !tide__sc_is_host(a, home->id)) {
        // The stream of the allocation needs no event for itself; the new one must wait for its work as well.
        tide__use *mark = home->n_unrecorded == 0 ? new_use(a, home) : NULL; // else it takes no events at present
        if (mark == NULL) return false;
        const progress got = enqueue(a, mark);
        if (got == GONE) forget_stream(a, home);
        if (got != ON_ITS_WAY) return false;
        if (tide_stream_wait_event(a->device, to->id, mark->event, NULL) != TIDE_OK) return false;
    }
    for (const tide__use *u = p->uses; u != NULL; u = u->sibling) {
        if (u->by != to && tide_stream_wait_event(a->device, to->id, u->event, NULL) != TIDE_OK) return false;
    }
    return true;
}

/// The stream that asks, when it is one that can be made to wait: the host must not wait here, and captured work cannot
/// wait for what is outside.
static tide__sc_stream *stream_that_can_wait(const tide__sc *a, const tide__sc_plan *plan) {
    tide__sc_stream *s = tide__sc_find_stream(a, plan->stream);
    return s != NULL && s->pool == NULL && !tide__sc_is_host(a, s->id) ? s : NULL;
}

tide__chunk *tide__sc_take_over(tide__sc *a, const tide__sc_plan *plan) {
    tide__sc_stream *s = stream_that_can_wait(a, plan);
    tide__chunk *p = s != NULL ? tide__sc_fit(a->pending[plan->large], plan) : NULL;
    if (p == NULL || !follow(a, p, s)) return NULL;
    for (tide__use *u = p->uses; u != NULL; u = u->sibling) u->chunk = NULL;
    p->uses = NULL;
    p->n_uses = 0;
    TIDE_ASSERT(p->state == TIDE__CHUNK_PENDING && p->segment->pool == NULL && !p->unsure);
    p->home = &s->list;
    return tide__sc_complete(a, p);
}

/// The best fit on the free lists of all streams.
static tide__chunk *fit_anywhere(const tide__sc *a, const tide__sc_plan *plan) {
    tide__chunk *best = NULL;
    for (int i = 0; i < TIDE__SC_N_CHAINS; i++) {
        for (const tide__sc_stream *s = a->streams[i]; s != NULL; s = s->chain) {
            tide__chunk *p = tide__sc_fit(s->list.idle[plan->large], plan);
            if (p == NULL) continue;
            const bool tie = best != NULL && p->size_bytes == best->size_bytes;
            if (best == NULL || p->size_bytes < best->size_bytes || (tie && (uintptr_t)p->addr < (uintptr_t)best->addr))
                best = p;
        }
    }
    return best;
}

tide__chunk *tide__sc_take_idle(tide__sc *a, const tide__sc_plan *plan) {
    tide__sc_stream *s = stream_that_can_wait(a, plan);
    tide__chunk *p = s != NULL ? fit_anywhere(a, plan) : NULL;
    if (p == NULL || !follow(a, p, s)) return NULL;
    p->idle_since = ++a->clock; // a wait for s before this was no wait for the stream it comes from
    return move_idle(a, p, &s->list);
}

/// The next stream with a queue after number `after`.
static tide__sc_stream *next_waiting(const tide__sc *a, uint64_t after) {
    tide__sc_stream *next = NULL;
    for (tide__sc_stream *s = a->waiting; s != NULL; s = s->next_waiting) {
        if (s->number > after && (next == NULL || s->number < next->number)) next = s;
    }
    return next;
}

/// The youngest event in the stream: those before it are done when it is. 0: none.
static tide_event_id last_event(const tide__sc_stream *s) {
    tide_event_id event = 0;
    for (const tide__use *u = s->first; u != NULL; u = u->next) {
        if (u->recorded) event = u->event;
    }
    return event;
}

void tide__sc_sync_uses(tide__sc *a) {
    uint64_t at = 0;
    for (tide__sc_stream *s; (s = next_waiting(a, at)) != NULL;) {
        at = s->number;
        if (record_late(a, s) == GONE) {
            forget_stream(a, s);
            continue;
        }
        const tide_event_id event = last_event(s);
        if (event == 0) continue;
        // The record may serve another use meanwhile: then we wait for a younger event, which does no harm.
        pthread_mutex_unlock(&a->lock);
        (void)!tide_event_sync(a->device, event, NULL);
        pthread_mutex_lock(&a->lock);
    }
    tide__sc_reclaim(a);
}
