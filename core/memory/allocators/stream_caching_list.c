// SPDX-License-Identifier: MIT
//
// The list of segments of stream_caching, and the way to the source and back: what whole segments and ranges share.
#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/memory/allocators/stream_caching_internal.h"

uint64_t tide__sc_new_ids(uint64_t n) {
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, n, memory_order_relaxed) + 1;
}

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

void tide__sc_unlist_segment(tide__sc *a, tide__segment *seg) {
    if (seg->prev != NULL) {
        seg->prev->next = seg->next;
    } else {
        a->segments = seg->next;
    }
    if (seg->next != NULL) seg->next->prev = seg->prev;
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

bool tide__sc_is_quiet(const tide__chunk *p) {
    TIDE_ASSERT(p->state == TIDE__CHUNK_IDLE);
    const tide__sc_stream *s = p->home->stream;
    return s == NULL || p->idle_since <= s->quiet_until;
}
