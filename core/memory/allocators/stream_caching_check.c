// SPDX-License-Identifier: MIT
//
// check() of stream_caching: walks all segments, shelves and queues and compares them with the counters.
#include <inttypes.h>

#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"

/// What a walk over the segments finds.
typedef struct census {
    uint64_t n_idle, n_pending, n_stealable; // pieces
    uint64_t idle_bytes, active_bytes, pending_bytes, reserved_bytes;
} census;

#define BROKEN(err, ...) TIDE_FAIL((err), TIDE_ERR_RUNTIME, __VA_ARGS__)

static tide_status check_uses(const tide__sc *a, const tide__piece *p, tide_error *err) {
    uint32_t n = p->unsure && p->state == TIDE__PIECE_PENDING ? 1 : 0;
    for (const tide__use *u = p->uses; u != NULL; u = u->sibling, n++) {
        if (u->piece != p) return BROKEN(err, "%s: a use of piece %p is that of another", a->name, (void *)p->addr);
    }
    const bool waits = p->state == TIDE__PIECE_PENDING;
    if (n != p->n_uses || (p->state == TIDE__PIECE_IDLE && n != 0) || (waits && n == 0))
        return BROKEN(err, "%s: piece %p counts %" PRIu32 " uses and has %" PRIu32, a->name, (void *)p->addr, p->n_uses,
                      n);
    return TIDE_OK;
}

static tide_status check_piece(const tide__sc *a, const tide__piece *p, census *c, tide_error *err) {
    const bool steps = p->size_bytes > 0 && p->size_bytes % TIDE__SC_STEP_BYTES == 0;
    if (!steps) return BROKEN(err, "%s: a piece of %zu B", a->name, p->size_bytes);
    TIDE_TRY(check_uses(a, p, err));
    const tide__piece *next = p->after;
    if (p->state == TIDE__PIECE_IDLE && next != NULL && next->state == TIDE__PIECE_IDLE && next->home == p->home)
        return BROKEN(err, "%s: idle neighbours %p and %p were not merged", a->name, (void *)p->addr,
                      (void *)next->addr);
    if (p->state == TIDE__PIECE_IDLE) {
        c->n_idle++;
        c->idle_bytes += p->size_bytes;
        return TIDE_OK;
    }
    c->active_bytes += p->size_bytes;
    if (p->state == TIDE__PIECE_OUT) return TIDE_OK;
    c->n_pending++;
    c->pending_bytes += p->size_bytes;
    if (p->segment->pool == NULL && !p->unsure) c->n_stealable++;
    return TIDE_OK;
}

/// Pieces tile the segment without a hole.
static tide_status check_segment(const tide__sc *a, const tide__segment *seg, census *c, tide_error *err) {
    const char *at = seg->base;
    const tide__piece *before = NULL;
    size_t n_busy = 0;
    for (const tide__piece *p = seg->first; p != NULL; before = p, p = p->after) {
        if (p->addr != at || p->before != before || p->segment != seg)
            return BROKEN(err, "%s: segment %" PRIu64 " is damaged at piece %p", a->name, seg->id, (void *)p->addr);
        TIDE_TRY(check_piece(a, p, c, err));
        if (p->state != TIDE__PIECE_IDLE) n_busy++;
        at += p->size_bytes;
    }
    if (at != seg->base + seg->size_bytes || n_busy != seg->n_busy)
        return BROKEN(err, "%s: segment %" PRIu64 ": pieces end at %p, %zu of them are busy; it says %p and %zu",
                      a->name, seg->id, (const void *)at, n_busy, (void *)(seg->base + seg->size_bytes), seg->n_busy);
    c->reserved_bytes += seg->size_bytes;
    return TIDE_OK;
}

/// All pieces of a tree are in order, in that state, and at home there (`home` NULL: anywhere).
static tide_status check_tree(const tide__sc *a, tide__piece *root, tide__piece_state state, const tide__shelf *home,
                              uint64_t *n, tide_error *err) {
    for (const tide__piece *p = tide__tree_from(root, 0, NULL); p != NULL;
         p = tide__tree_from(root, p->size_bytes, p->addr + 1), (*n)++) {
        const bool heap =
            (p->less == NULL || p->less->rank <= p->rank) && (p->more == NULL || p->more->rank <= p->rank);
        if (p->state != state || (home != NULL && p->home != home) || !heap)
            return BROKEN(err, "%s: piece %p does not belong where it lies", a->name, (void *)p->addr);
    }
    return TIDE_OK;
}

static tide_status check_shelf(const tide__sc *a, const tide__shelf *shelf, uint64_t *n, tide_error *err) {
    TIDE_TRY(check_tree(a, shelf->idle[0], TIDE__PIECE_IDLE, shelf, n, err));
    return check_tree(a, shelf->idle[1], TIDE__PIECE_IDLE, shelf, n, err);
}

static tide_status check_queue(const tide__sc *a, const tide__sc_stream *s, tide_error *err) {
    size_t n_unrecorded = 0;
    for (const tide__use *u = s->first; u != NULL; u = u->next) {
        if (u->by != s || (u->next == NULL && u != s->last) ||
            (u->piece != NULL && u->piece->state != TIDE__PIECE_PENDING))
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

static tide_status check_shelves(const tide__sc *a, uint64_t *n_idle, tide_error *err) {
    TIDE_TRY(check_shelf(a, &a->shared, n_idle, err));
    for (const tide__sc_pool *pool = a->pools; pool != NULL; pool = pool->next)
        TIDE_TRY(check_shelf(a, &pool->shelf, n_idle, err));
    for (int i = 0; i < TIDE__SC_N_CHAINS; i++) {
        for (const tide__sc_stream *s = a->streams[i]; s != NULL; s = s->chain) {
            TIDE_TRY(check_shelf(a, &s->shelf, n_idle, err));
            TIDE_TRY(check_queue(a, s, err));
        }
    }
    return TIDE_OK;
}

tide_status tide__sc_check(const tide__sc *a, tide_error *err) {
    census c = {0};
    uint64_t n_idle = 0, n_stealable = 0;
    for (const tide__segment *seg = a->segments; seg != NULL; seg = seg->next) TIDE_TRY(check_segment(a, seg, &c, err));
    TIDE_TRY(check_shelves(a, &n_idle, err));
    TIDE_TRY(check_tree(a, a->pending[0], TIDE__PIECE_PENDING, NULL, &n_stealable, err));
    TIDE_TRY(check_tree(a, a->pending[1], TIDE__PIECE_PENDING, NULL, &n_stealable, err));
    const tide_allocator_stats *s = &a->stats;
    if (n_idle != c.n_idle || n_stealable != c.n_stealable || c.idle_bytes != s->cached_bytes ||
        c.active_bytes != s->active_bytes || c.pending_bytes != s->pending_bytes || c.n_pending != s->n_pending ||
        c.reserved_bytes != s->reserved_bytes)
        return BROKEN(err, "%s: segments, shelves and counters disagree", a->name);
    tide_allocator_stats all = *s;
    all.largest_free_bytes = tide__sc_largest_free(a);
    return tide__counters_check(&all, a->name, err);
}
