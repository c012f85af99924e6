// SPDX-License-Identifier: MIT
//
// Chunks of the allocator pytorch: which one a request gets, where it is cut, how it merges; and the list of segments
// that they lie in. See pytorch.c.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/pytorch_internal.h"

// ---- headers ----

bool tide__pt_make_spare(tide__pt *a, size_t n) {
    while (a->n_spare < n) {
        tide__chunk *p = tide_host_alloc(sizeof *p);
        if (p == NULL) return false;
        *p = (tide__chunk){.after = a->spare};
        a->spare = p;
        a->n_spare++;
    }
    return true;
}

tide__chunk *tide__pt_new_chunk(tide__pt *a) {
    tide__chunk *p = a->spare;
    TIDE_ASSERT(p != NULL); // tide__pt_make_spare came before
    a->spare = p->after;
    a->n_spare--;
    *p = (tide__chunk){.rank = (uint32_t)(((uintptr_t)p >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32)};
    return p;
}

void tide__pt_drop_chunk(tide__pt *a, tide__chunk *p) {
    p->after = a->spare;
    a->spare = p;
    a->n_spare++;
}

// ---- fit ----

/// Of a chunk in a range: with the addresses behind it that could get memory.
static size_t size_grown(const tide__chunk *p) {
    const tide__chunk *next = p->after;
    return p->size_bytes + (next != NULL && next->state == TIDE__CHUNK_BARE ? next->size_bytes : 0);
}

static tide__chunk *next_in(tide__chunk *root, const tide__chunk *p) {
    return tide__tree_from(root, p->size_bytes, p->addr + 1);
}

/// Rule 3.
static bool may_have(const tide__pt *a, const tide__pt_plan *plan, const tide__chunk *p) {
    const uint64_t most = a->options.max_split_bytes;
    if (most == 0) return true;
    if (plan->need_bytes < most) return p->size_bytes < most;
    return p->size_bytes < plan->need_bytes + TIDE__SC_LARGE_SEGMENT;
}

tide__chunk *tide__pt_find(tide__pt *a, const tide__pt_plan *plan) {
    tide__chunk *root = plan->list->idle[plan->large];
    a->n_lookups[plan->large]++;
    tide__chunk *p = tide__tree_from(root, plan->need_bytes, NULL);
    if (p == NULL) return NULL;
    for (tide__chunk *next = next_in(root, p);
         p->segment->unit_bytes > 0 && next != NULL && size_grown(next) < size_grown(p); next = next_in(root, next))
        p = next;
    return may_have(a, plan, p) ? p : NULL;
}

// ---- cut and merge ----

void tide__pt_take(tide__chunk *p) { tide__tree_remove(&p->home->idle[p->segment->large], p); }

tide__chunk *tide__pt_cut(tide__pt *a, tide__chunk *p, size_t bytes) {
    TIDE_ASSERT(bytes > 0 && bytes < p->size_bytes);
    tide__chunk *second = tide__pt_new_chunk(a);
    second->addr = p->addr + bytes;
    second->size_bytes = p->size_bytes - bytes;
    second->state = p->state;
    second->segment = p->segment;
    second->home = p->home;
    second->stream = p->stream;
    second->before = p;
    second->after = p->after;
    if (p->after != NULL) p->after->before = second;
    p->after = second;
    p->size_bytes = bytes;
    return second;
}

void tide__pt_absorb(tide__pt *a, tide__chunk *p) {
    tide__chunk *gone = p->after;
    TIDE_ASSERT(gone != NULL && gone->segment == p->segment && gone->addr == p->addr + p->size_bytes);
    p->size_bytes += gone->size_bytes;
    p->after = gone->after;
    if (p->after != NULL) p->after->before = p;
    tide__pt_drop_chunk(a, gone);
}

tide__chunk *tide__pt_put(tide__pt *a, tide__chunk *p) {
    if (p->after != NULL && p->after->state == TIDE__CHUNK_IDLE) {
        tide__pt_take(p->after);
        tide__pt_absorb(a, p);
    }
    if (p->before != NULL && p->before->state == TIDE__CHUNK_IDLE) {
        p = p->before;
        tide__pt_take(p);
        tide__pt_absorb(a, p);
    }
    p->state = TIDE__CHUNK_IDLE;
    p->idle_since = a->n_lookups[p->segment->large];
    tide__tree_insert(&p->home->idle[p->segment->large], p);
    return p;
}

void tide__pt_give_out(tide__pt *a, tide__chunk *p, size_t need_bytes) {
    TIDE_ASSERT(p->state == TIDE__CHUNK_IDLE && p->size_bytes >= need_bytes);
    tide__pt_take(p);
    p->state = TIDE__CHUNK_OUT;
    const size_t held = (size_t)tide_pytorch_held(&a->options, p->size_bytes, need_bytes, p->segment->large);
    if (held < p->size_bytes) tide__pt_put(a, tide__pt_cut(a, p, held));
    p->segment->n_busy++;
    a->stats.cached_bytes -= p->size_bytes;
}

// ---- segments ----

void tide__pt_link(tide__pt *a, tide__segment *seg) {
    seg->prev = a->last;
    if (a->last != NULL)
        a->last->next = seg;
    else
        a->segments = seg;
    a->last = seg;
}

void tide__pt_unlink(tide__pt *a, tide__segment *seg) {
    if (seg->prev != NULL)
        seg->prev->next = seg->next;
    else
        a->segments = seg->next;
    if (seg->next != NULL)
        seg->next->prev = seg->prev;
    else
        a->last = seg->prev;
    if (a->cursor == seg) a->cursor = NULL;
}

void tide__pt_count_taken(tide__pt *a, uint64_t id, const void *at, size_t bytes) {
    tide__count_reserve(&a->stats, bytes);
    a->stats.cached_bytes += bytes;
    if (a->listener.on_segment != NULL) a->listener.on_segment(a->listener.self, true, id, at, bytes);
}

void tide__pt_count_given(tide__pt *a, uint64_t id, const void *at, size_t bytes) {
    TIDE_ASSERT(a->stats.reserved_bytes >= bytes && a->stats.cached_bytes >= bytes);
    a->stats.reserved_bytes -= bytes;
    a->stats.cached_bytes -= bytes;
    if (a->listener.on_segment != NULL) a->listener.on_segment(a->listener.self, false, id, at, bytes);
}
