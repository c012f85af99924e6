// SPDX-License-Identifier: MIT
//
// Streams and pools of stream_caching (rules 4 and 5).
//
// A stream is known by its id, which the process never uses twice: memory of a stream that is gone is never mistaken
// for memory of a younger one. When a stream goes, its work is done: idle pieces move to the shared shelf, live ones
// will go there.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "core/memory/allocators/stream_caching_internal.h"
#include "core/memory/poison.h"

// ---- streams ----

static tide__sc_stream **chain_of(tide__sc *a, tide_stream_id id) { return &a->streams[id % TIDE__SC_N_CHAINS]; }

tide__sc_stream *tide__sc_find_stream(const tide__sc *a, tide_stream_id id) {
    if (a->recent != NULL && a->recent->id == id) return a->recent;
    tide__sc_stream *s = a->streams[id % TIDE__SC_N_CHAINS];
    while (s != NULL && s->id != id) s = s->chain;
    return s;
}

tide__sc_stream *tide__sc_stream_of(tide__sc *a, tide_stream_id id) {
    tide__sc_stream *s = tide__sc_find_stream(a, id);
    if (s == NULL) {
        s = tide_host_calloc(1, sizeof *s);
        if (s == NULL) return NULL;
        s->id = id;
        s->number = ++a->n_streams;
        s->shelf.stream = s;
        s->chain = *chain_of(a, id);
        *chain_of(a, id) = s;
    }
    a->recent = s;
    return s;
}

tide__piece *tide__sc_move_idle(tide__sc *a, tide__piece *p, tide__shelf *to) {
    tide__tree_remove(&p->home->idle[p->segment->large], p);
    p->home = to;
    if (to->stream == NULL && a->source.host_memory) tide_asan_poison(p->addr, p->size_bytes);
    return tide__sc_shelve(a, p);
}

/// Every piece whose home is `from` lives at `to` from now on.
static void move_home(tide__sc *a, const tide__shelf *from, tide__shelf *to) {
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        for (tide__piece *p = seg->first; p != NULL; p = p->after) {
            if (p->home != from) continue;
            // Merging may swallow p into the one before it, and the one after it: go on from what it became.
            if (p->state == TIDE__PIECE_IDLE) {
                p = tide__sc_move_idle(a, p, to);
            } else {
                p->home = to;
            }
        }
    }
}

/// What was declared of blocks that are still out: the stream is done with them.
static void undeclare_all(tide__sc *a, const tide__sc_stream *s) {
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        for (tide__piece *p = seg->first; p != NULL; p = p->after) {
            if (p->state == TIDE__PIECE_OUT) tide__sc_undeclare(a, p, s);
        }
    }
}

void tide__sc_forget_stream(tide__sc *a, tide__sc_stream *s) {
    tide__sc_finish_uses(a, s);
    undeclare_all(a, s);
    move_home(a, &s->shelf, &a->shared);
    for (tide__sc_pool *pool = a->pools; pool != NULL; pool = pool->next) {
        if (pool->shelf.stream == s) pool->shelf.stream = NULL;
    }
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
    if (s != NULL) tide__sc_forget_stream(a, s);
    pthread_mutex_unlock(&a->lock);
}

// ---- pools ----

void tide__sc_release_pool(tide__sc *a, tide__sc_pool *pool) {
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (seg->pool != pool) continue;
        seg->pool = NULL;
        for (tide__piece *p = seg->first; p != NULL; p = p->after) {
            if (p->state == TIDE__PIECE_PENDING && !p->unsure) tide__tree_insert(&a->pending[seg->large], p);
        }
    }
    tide__sc_stream *s = pool->shelf.stream;
    if (s != NULL && s->pool == pool) s->pool = NULL;
    move_home(a, &pool->shelf, s != NULL ? &s->shelf : &a->shared);
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

static bool is_open(const tide__sc_pool *pool) {
    return pool->shelf.stream != NULL && pool->shelf.stream->pool == pool;
}

static tide_status begin_pool(tide__sc *a, tide_stream_id stream, uint64_t *id, tide_error *err) {
    tide__sc_stream *s = tide__sc_stream_of(a, stream);
    tide__sc_pool *pool = s != NULL ? tide_host_calloc(1, sizeof *pool) : NULL;
    if (pool == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%s: no host memory for a pool", a->name);
    if (s->pool != NULL) {
        tide_host_free(pool);
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "%s: stream %" PRIu64 " allocates from pool %" PRIu64 " already", a->name,
                         stream, s->pool->id);
    }
    *pool = (tide__sc_pool){.id = ++a->n_pools, .shelf = {.stream = s}, .next = a->pools};
    a->pools = pool;
    s->pool = pool;
    *id = pool->id;
    return TIDE_OK;
}

static tide_status end_pool(tide__sc *a, uint64_t id, tide_error *err) {
    tide__sc_pool *pool = find_pool(a, id);
    if (pool == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "%s: there is no pool %" PRIu64, a->name, id);
    // A stream that went took the end with it.
    if (!is_open(pool)) {
        if (pool->shelf.stream == NULL) return TIDE_OK;
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%s: pool %" PRIu64 " has ended already", a->name, id);
    }
    pool->shelf.stream->pool = NULL;
    return TIDE_OK;
}

static tide_status release_pool(tide__sc *a, uint64_t id, tide_error *err) {
    tide__sc_pool *pool = find_pool(a, id);
    if (pool == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "%s: there is no pool %" PRIu64, a->name, id);
    if (is_open(pool))
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "%s: pool %" PRIu64 " has not ended: stream %" PRIu64 " allocates from it",
                         a->name, id, pool->shelf.stream->id);
    tide__sc_release_pool(a, pool);
    return TIDE_OK;
}

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
    const tide_status st = begin_pool(sc, stream, pool, err);
    pthread_mutex_unlock(&sc->lock);
    return st;
}

tide_status tide_stream_caching_end_pool(tide_allocator *a, uint64_t pool, tide_error *err) {
    tide__sc *sc = lock_state(a, err);
    if (sc == NULL) return TIDE_ERR_INVALID;
    const tide_status st = end_pool(sc, pool, err);
    pthread_mutex_unlock(&sc->lock);
    return st;
}

tide_status tide_stream_caching_release_pool(tide_allocator *a, uint64_t pool, tide_error *err) {
    tide__sc *sc = lock_state(a, err);
    if (sc == NULL) return TIDE_ERR_INVALID;
    const tide_status st = release_pool(sc, pool, err);
    pthread_mutex_unlock(&sc->lock);
    return st;
}
