// SPDX-License-Identifier: MIT
//
// Pieces of stream_caching: which one fits a request, cutting it, merging it back (rule 6).
//
//     before   |.............. idle, 8192 ..............|        a request of 1000 B, aligned to 4096
//     after    |.. idle 3072 ..| out 1024 |. idle 4096 .|        front: up to the alignment; rest: at least one step
//
// A front is always cut off, whatever its size: a block begins where its piece begins.
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"
#include "core/memory/poison.h"

bool tide__sc_plan_request(const tide_alloc_request *req, tide__sc_plan *out) {
    const size_t align = req->align_bytes > TIDE__SC_STEP_BYTES ? req->align_bytes : TIDE__SC_STEP_BYTES;
    uint64_t need, segment;
    size_t worst;
    if (!tide_align_up(req->size_bytes, TIDE__SC_STEP_BYTES, &need)) return false;
    if (!tide_add_size((size_t)need, align - TIDE__SC_STEP_BYTES, &worst)) return false;
    if (!tide_align_up(worst, TIDE__SC_SEGMENT_STEP, &segment) || segment > PTRDIFF_MAX) return false;
    if (worst <= TIDE__SC_LARGE_BYTES) segment = TIDE__SC_LARGE_SEGMENT;
    if (worst <= TIDE__SC_SMALL_BYTES) segment = TIDE__SC_SMALL_SEGMENT;
    *out = (tide__sc_plan){.need_bytes = (size_t)need,
                           .align_bytes = align,
                           .slack_bytes = align - TIDE__SC_STEP_BYTES,
                           .segment_bytes = (size_t)segment,
                           .large = worst > TIDE__SC_SMALL_BYTES,
                           .stream = req->stream};
    return true;
}

/// Bytes of the piece before the first address of that alignment.
static size_t front_bytes(const tide__piece *p, size_t align_bytes) {
    return (size_t)(-(uintptr_t)p->addr & (align_bytes - 1));
}

tide__piece *tide__sc_fit(tide__piece *root, const tide__sc_plan *plan) {
    tide__piece *p = tide__tree_from(root, plan->need_bytes, NULL);
    if (plan->slack_bytes == 0 || p == NULL) return p;
    // Of those too short for every place only the best is tried: no walk over all of them.
    if (front_bytes(p, plan->align_bytes) <= p->size_bytes - plan->need_bytes) return p;
    return tide__tree_from(root, plan->need_bytes + plan->slack_bytes, NULL);
}

tide__piece *tide__sc_find_idle(const tide__sc *a, const tide__sc_plan *plan) {
    tide__sc_stream *s = tide__sc_find_stream(a, plan->stream);
    const tide__shelf *shelf = s != NULL ? tide__sc_shelf_of(s) : &a->shared;
    tide__piece *p = tide__sc_fit(shelf->idle[plan->large], plan);
    if (p == NULL && s != NULL && s->pool == NULL) p = tide__sc_fit(a->shared.idle[plan->large], plan);
    return p;
}

// ---- headers ----

tide__piece *tide__sc_new_piece(tide__sc *a) {
    tide__piece *p = a->spare_pieces;
    if (p != NULL) {
        a->spare_pieces = p->after;
    } else {
        p = tide_host_alloc(sizeof *p);
        if (p == NULL) return NULL;
    }
    // Knuth's multiplicative hash of where the header lies: neighbours in memory get ranks far apart.
    *p = (tide__piece){.rank = (uint32_t)(((uintptr_t)p >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32)};
    return p;
}

void tide__sc_drop_piece(tide__sc *a, tide__piece *p) {
    p->after = a->spare_pieces;
    a->spare_pieces = p;
}

// ---- cut ----

static void put_after(tide__piece *p, tide__piece *after) {
    after->before = p;
    after->after = p->after;
    if (p->after != NULL) p->after->before = after;
    p->after = after;
}

/// Cut `p`, which is on no shelf, at `bytes` from its begin. @return the second part, `second` filled in
static tide__piece *cut_at(tide__piece *p, size_t bytes, tide__piece *second) {
    second->addr = p->addr + bytes;
    second->size_bytes = p->size_bytes - bytes;
    second->state = TIDE__PIECE_IDLE;
    second->segment = p->segment;
    second->home = p->home;
    second->idle_since = p->idle_since;
    p->size_bytes = bytes;
    put_after(p, second);
    return second;
}

tide_status tide__sc_cut(tide__sc *a, tide__piece *from, const tide__sc_plan *plan, tide__piece **out) {
    const size_t front = plan->slack_bytes == 0 ? 0 : front_bytes(from, plan->align_bytes);
    const size_t rest = from->size_bytes - front - plan->need_bytes;
    const bool cut_rest = from->segment->large ? rest > TIDE__SC_LARGE_REST_BYTES : rest >= TIDE__SC_STEP_BYTES;
    tide__piece *second = NULL, *third = NULL;
    if (front > 0 && (second = tide__sc_new_piece(a)) == NULL) return TIDE_ERR_NOMEM;
    if (cut_rest && (third = tide__sc_new_piece(a)) == NULL) {
        if (second != NULL) tide__sc_drop_piece(a, second);
        return TIDE_ERR_NOMEM;
    }
    tide__piece **shelf = &from->home->idle[plan->large];
    tide__tree_remove(shelf, from);
    tide__piece *p = from;
    if (second != NULL) {
        p = cut_at(from, front, second);
        tide__tree_insert(shelf, from);
    }
    if (third != NULL) tide__tree_insert(shelf, cut_at(p, plan->need_bytes, third));
    p->state = TIDE__PIECE_OUT;
    p->segment->n_busy++;
    a->stats.cached_bytes -= p->size_bytes;
    tide__sc_stream *s = tide__sc_find_stream(a, plan->stream);
    p->home = s != NULL ? tide__sc_shelf_of(s) : &a->shared;
    p->stream = plan->stream;
    *out = p;
    return TIDE_OK;
}

// ---- back again ----

/// `p` takes in what follows it, which is on no shelf any more.
static void swallow_next(tide__sc *a, tide__piece *p) {
    tide__piece *next = p->after;
    p->size_bytes += next->size_bytes;
    if (next->idle_since > p->idle_since) p->idle_since = next->idle_since;
    p->after = next->after;
    if (next->after != NULL) next->after->before = p;
    tide__sc_drop_piece(a, next);
}

static bool is_idle_at(const tide__piece *p, const tide__shelf *home) {
    return p != NULL && p->state == TIDE__PIECE_IDLE && p->home == home;
}

tide__piece *tide__sc_shelve(tide__sc *a, tide__piece *p) {
    tide__piece **shelf = &p->home->idle[p->segment->large];
    if (is_idle_at(p->after, p->home)) {
        tide__tree_remove(shelf, p->after);
        swallow_next(a, p);
    }
    if (is_idle_at(p->before, p->home)) {
        p = p->before;
        tide__tree_remove(shelf, p);
        swallow_next(a, p);
    }
    tide__tree_insert(shelf, p);
    return p;
}

tide__piece *tide__sc_complete(tide__sc *a, tide__piece *p) {
    if (p->state == TIDE__PIECE_PENDING) {
        if (p->segment->pool == NULL && !p->unsure) tide__tree_remove(&a->pending[p->segment->large], p);
        a->stats.pending_bytes -= p->size_bytes;
        a->stats.n_pending--;
    }
    if (a->listener.on_free_completed != NULL) a->listener.on_free_completed(a->listener.self, &p->mem, p->last_stream);
    // Nobody's work can touch it any more, or only that of a stream that still has some: then it may.
    const bool is_quiet = p->home->stream == NULL || tide__sc_is_host(a, p->home->stream->id);
    if (a->source.host_memory && is_quiet) tide_asan_poison(p->addr, p->size_bytes);
    a->stats.active_bytes -= p->size_bytes;
    a->stats.cached_bytes += p->size_bytes;
    p->state = TIDE__PIECE_IDLE;
    p->segment->n_busy--;
    p->idle_since = ++a->clock;
    return tide__sc_shelve(a, p);
}
