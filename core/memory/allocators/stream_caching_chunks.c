// SPDX-License-Identifier: MIT
//
// Chunks of stream_caching: the tree they are found in, which one fits a request, cutting it, merging it back (rule 6).
//
//     before   |.............. idle, 8192 ..............|        a request of 1000 B, aligned to 4096
//     after    |.. idle 3072 ..| out 1024 |. idle 4096 .|        front: up to the alignment; rest: at least one step
//
// A front is always cut off, whatever its size: a block begins where its chunk begins.
#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"
#include "core/memory/poison.h"

// ---- the tree ----
//
// Chunks in order of size, then address, so that the first one from a size on is the
// best fit.
//
//              (2048, a) rank 9             in order of (size, address) from left to right,
//              /               \            in order of rank from top to bottom
//      (512, c) 7            (4096, b) 8
//             \              /
//        (1024, d) 2    (2048, e) 5
//
// A treap: the rank is a fixed scramble of the header's address, so the tree has the shape of a random one and expected
// depth O(log n), without a state or any rebalancing. Source: Seidel and Aragon, "Randomized Search Trees",
// Algorithmica 16, 1996, section 3; insertion by splitting and removal by joining are their section 3 as well.

static bool is_before(const tide__chunk *p, size_t size_bytes, const char *addr) {
    return p->size_bytes != size_bytes ? p->size_bytes < size_bytes : (uintptr_t)p->addr < (uintptr_t)addr;
}

static bool is_in_tree(const tide__chunk *root, const tide__chunk *p) {
    const tide__chunk *at = root;
    while (at != NULL && at != p) at = is_before(at, p->size_bytes, p->addr) ? at->more : at->less;
    return at != NULL;
}

void tide__tree_insert(tide__chunk **root, tide__chunk *p) {
    TIDE_ASSERT(p->less == NULL && p->more == NULL);
    tide__chunk **at = root;
    TIDE_ASSERT_SLOW(!is_in_tree(*root, p));
    while (*at != NULL && (*at)->rank >= p->rank)
        at = is_before(*at, p->size_bytes, p->addr) ? &(*at)->more : &(*at)->less;
    // What is below goes to the left or the right of p.
    tide__chunk *below = *at, **less = &p->less, **more = &p->more;
    while (below != NULL) {
        if (is_before(below, p->size_bytes, p->addr)) {
            *less = below;
            less = &below->more;
            below = *less;
        } else {
            *more = below;
            more = &below->less;
            below = *more;
        }
    }
    *less = *more = NULL;
    *at = p;
}

void tide__tree_remove(tide__chunk **root, tide__chunk *p) {
    tide__chunk **at = root;
    while (*at != p) {
        TIDE_ASSERT(*at != NULL); // else it is not in this tree
        at = is_before(*at, p->size_bytes, p->addr) ? &(*at)->more : &(*at)->less;
    }
    tide__chunk *less = p->less, *more = p->more;
    while (less != NULL && more != NULL) {
        if (less->rank >= more->rank) {
            *at = less;
            at = &less->more;
            less = *at;
        } else {
            *at = more;
            at = &more->less;
            more = *at;
        }
    }
    *at = less != NULL ? less : more;
    p->less = p->more = NULL;
}

tide__chunk *tide__tree_from(tide__chunk *root, size_t size_bytes, const char *addr) {
    tide__chunk *found = NULL;
    while (root != NULL) {
        if (is_before(root, size_bytes, addr)) {
            root = root->more;
        } else {
            found = root;
            root = root->less;
        }
    }
    return found;
}

tide__chunk *tide__tree_last(tide__chunk *root) {
    while (root != NULL && root->more != NULL) root = root->more;
    return root;
}

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
    TIDE_ASSERT(need >= req->size_bytes && segment >= worst && worst >= need);
    return true;
}

/// Bytes of the chunk before the first address of that alignment.
static size_t front_bytes(const tide__chunk *p, size_t align_bytes) {
    return (size_t)(-(uintptr_t)p->addr & (align_bytes - 1));
}

tide__chunk *tide__sc_fit(tide__chunk *root, const tide__sc_plan *plan) {
    tide__chunk *p = tide__tree_from(root, plan->need_bytes, NULL);
    if (plan->slack_bytes == 0 || p == NULL) return p;
    // Of those too short for every place only the best is tried: no walk over all of them.
    if (front_bytes(p, plan->align_bytes) <= p->size_bytes - plan->need_bytes) return p;
    return tide__tree_from(root, plan->need_bytes + plan->slack_bytes, NULL);
}

tide__chunk *tide__sc_find_idle(const tide__sc *a, const tide__sc_plan *plan) {
    tide__sc_stream *s = tide__sc_find_stream(a, plan->stream);
    const tide__free_list *list = s != NULL ? tide__sc_list_of(s) : &a->shared;
    tide__chunk *p = tide__sc_fit(list->idle[plan->large], plan);
    if (p == NULL && s != NULL && s->pool == NULL) p = tide__sc_fit(a->shared.idle[plan->large], plan);
    return p;
}

// ---- headers ----

tide__chunk *tide__sc_new_chunk(tide__sc *a) {
    tide__chunk *p = a->spare_chunks;
    if (p != NULL) {
        a->spare_chunks = p->after;
    } else {
        p = tide_host_alloc(sizeof *p);
        if (p == NULL) return NULL;
    }
    // Knuth's multiplicative hash of where the header lies: neighbours in memory get ranks far apart.
    *p = (tide__chunk){.rank = (uint32_t)(((uintptr_t)p >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32)};
    return p;
}

void tide__sc_drop_chunk(tide__sc *a, tide__chunk *p) {
    TIDE_ASSERT(p->less == NULL && p->more == NULL && p->uses == NULL);
    p->after = a->spare_chunks;
    a->spare_chunks = p;
}

// ---- cut ----

static void put_after(tide__chunk *p, tide__chunk *after) {
    TIDE_ASSERT(p->addr + p->size_bytes == after->addr);
    after->before = p;
    after->after = p->after;
    if (p->after != NULL) p->after->before = after;
    p->after = after;
}

tide__chunk *tide__sc_cut_at(tide__chunk *p, size_t bytes, tide__chunk *second) {
    TIDE_ASSERT(bytes > 0 && bytes < p->size_bytes && bytes % TIDE__SC_STEP_BYTES == 0);
    second->addr = p->addr + bytes;
    second->size_bytes = p->size_bytes - bytes;
    second->state = TIDE__CHUNK_IDLE;
    second->segment = p->segment;
    second->home = p->home;
    second->idle_since = p->idle_since;
    p->size_bytes = bytes;
    put_after(p, second);
    return second;
}

tide_status tide__sc_cut(tide__sc *a, tide__chunk *from, const tide__sc_plan *plan, tide__chunk **out) {
    const size_t front = plan->slack_bytes == 0 ? 0 : front_bytes(from, plan->align_bytes);
    const size_t rest = from->size_bytes - front - plan->need_bytes;
    const bool cut_rest = from->segment->large ? rest > TIDE__SC_LARGE_REST_BYTES : rest >= TIDE__SC_STEP_BYTES;
    tide__chunk *second = NULL, *third = NULL;
    if (front > 0 && (second = tide__sc_new_chunk(a)) == NULL) return TIDE_ERR_NOMEM;
    if (cut_rest && (third = tide__sc_new_chunk(a)) == NULL) {
        if (second != NULL) tide__sc_drop_chunk(a, second);
        return TIDE_ERR_NOMEM;
    }
    TIDE_ASSERT(front + plan->need_bytes <= from->size_bytes && from->segment->large == plan->large);
    tide__chunk **list = &from->home->idle[plan->large];
    tide__tree_remove(list, from);
    tide__chunk *p = from;
    if (second != NULL) {
        p = tide__sc_cut_at(from, front, second);
        tide__tree_insert(list, from);
    }
    if (third != NULL) tide__tree_insert(list, tide__sc_cut_at(p, plan->need_bytes, third));
    p->state = TIDE__CHUNK_OUT;
    p->segment->n_busy++;
    TIDE_ASSERT((uintptr_t)p->addr % plan->align_bytes == 0 && p->size_bytes >= plan->need_bytes);
    TIDE_ASSERT(a->stats.cached_bytes >= p->size_bytes && p->n_uses == 0 && p->uses == NULL);
    a->stats.cached_bytes -= p->size_bytes;
    tide__sc_stream *s = tide__sc_find_stream(a, plan->stream);
    p->home = s != NULL ? tide__sc_list_of(s) : &a->shared;
    p->stream = plan->stream;
    *out = p;
    return TIDE_OK;
}

// ---- releasing and merging ----

void tide__sc_absorb_next(tide__sc *a, tide__chunk *p) {
    tide__chunk *next = p->after;
    TIDE_ASSERT(next->before == p && p->addr + p->size_bytes == next->addr && p->segment == next->segment);
    TIDE_ASSERT(next->less == NULL && next->more == NULL && next->n_uses == 0);
    p->size_bytes += next->size_bytes;
    if (next->idle_since > p->idle_since) p->idle_since = next->idle_since;
    p->after = next->after;
    if (next->after != NULL) next->after->before = p;
    tide__sc_drop_chunk(a, next);
}

static bool is_idle_at(const tide__chunk *p, const tide__free_list *home) {
    return p != NULL && p->state == TIDE__CHUNK_IDLE && p->home == home;
}

tide__chunk *tide__sc_put_idle(tide__sc *a, tide__chunk *p) {
    TIDE_ASSERT(p->state == TIDE__CHUNK_IDLE && p->n_uses == 0);
    tide__chunk **list = &p->home->idle[p->segment->large];
    if (is_idle_at(p->after, p->home)) {
        tide__tree_remove(list, p->after);
        tide__sc_absorb_next(a, p);
    }
    if (is_idle_at(p->before, p->home)) {
        p = p->before;
        tide__tree_remove(list, p);
        tide__sc_absorb_next(a, p);
    }
    tide__tree_insert(list, p);
    return p;
}

tide__chunk *tide__sc_complete(tide__sc *a, tide__chunk *p) {
    TIDE_ASSERT(p->state != TIDE__CHUNK_IDLE && p->n_uses == 0 && p->uses == NULL && p->segment->n_busy > 0);
    if (p->state == TIDE__CHUNK_PENDING) {
        if (p->segment->pool == NULL && !p->unsure) tide__tree_remove(&a->pending[p->segment->large], p);
        TIDE_ASSERT(a->stats.pending_bytes >= p->size_bytes && a->stats.n_pending > 0);
        a->stats.pending_bytes -= p->size_bytes;
        a->stats.n_pending--;
    }
    if (a->listener.on_free_completed != NULL) a->listener.on_free_completed(a->listener.self, &p->mem, p->last_stream);
    // Poisoned when no work can touch it any more. Work of its own stream still may.
    const bool is_quiet = p->home->stream == NULL || tide__sc_is_host(a, p->home->stream->id);
    if (a->source.host_memory && is_quiet) tide_asan_poison(p->addr, p->size_bytes);
    TIDE_ASSERT(a->stats.active_bytes >= p->size_bytes);
    a->stats.active_bytes -= p->size_bytes;
    a->stats.cached_bytes += p->size_bytes;
    p->state = TIDE__CHUNK_IDLE;
    p->segment->n_busy--;
    p->idle_since = ++a->clock;
    return tide__sc_put_idle(a, p);
}
