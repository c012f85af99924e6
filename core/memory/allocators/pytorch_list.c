// SPDX-License-Identifier: MIT
//
// Segments of the allocator pytorch: their list, and what is counted of them. See pytorch.c.
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/pytorch_internal.h"

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
    a->stats.reserved_bytes -= bytes;
    a->stats.cached_bytes -= bytes;
    if (a->listener.on_segment != NULL) a->listener.on_segment(a->listener.self, false, id, at, bytes);
}
