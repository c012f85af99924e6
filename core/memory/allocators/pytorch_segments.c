// SPDX-License-Identifier: MIT
//
// Segments of the allocator pytorch: taken from the device, given back, adopted. See pytorch.c.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/device/sim_device.h"
#include "core/memory/allocators/pytorch_internal.h"

// ---- taken ----

/// Rule 2.
static size_t segment_bytes(const tide__pt_plan *plan) {
    if (!plan->large) return TIDE__SC_SMALL_SEGMENT;
    if (plan->need_bytes < TIDE__SC_LARGE_BYTES) return TIDE__SC_LARGE_SEGMENT;
    return (plan->need_bytes + TIDE__SC_SEGMENT_STEP - 1) / TIDE__SC_SEGMENT_STEP * TIDE__SC_SEGMENT_STEP;
}

/// [base, base + bytes) as a segment of one free chunk; `seg` is taken.
static tide__chunk *add_segment(tide__pt *a, tide__segment *seg, void *base, size_t bytes, bool large,
                                tide__free_list *list) {
    *seg = (tide__segment){.id = tide__sc_new_ids(1),
                           .base = base,
                           .size_bytes = bytes,
                           .mapped_bytes = bytes,
                           .large = large,
                           .owner = list};
    tide__chunk *p = tide__pt_new_chunk(a);
    p->addr = base;
    p->size_bytes = bytes;
    p->segment = seg;
    p->home = list;
    seg->first = p;
    tide__pt_link(a, seg);
    tide__pt_count_taken(a, seg->id, base, bytes);
    return tide__pt_put(a, p);
}

tide_status tide__pt_grow(tide__pt *a, const tide__pt_plan *plan, tide__chunk **out, tide_error *err) {
    enum { HEADERS = 4 };
    if (!tide__pt_make_spare(a, HEADERS)) return TIDE_NO_MEMORY(err, "for chunks of allocator 'pytorch'");
    if (a->options.expandable_segments) return tide__pt_range_grow(a, plan, out, err);
    tide__segment *seg;
    void *base = NULL;
    const size_t bytes = segment_bytes(plan);
    TIDE_TRY(TIDE_NEW(&seg, 1, err, "for a segment of allocator 'pytorch'"));
    const tide_status st = tide_device_mem_alloc(a->device, bytes, TIDE__SC_STEP_BYTES, &base, err);
    if (st == TIDE_OK)
        *out = add_segment(a, seg, base, bytes, plan->large, plan->list);
    else
        tide_host_free(seg);
    return st;
}

// ---- given back ----

/// A chunk that is all of its segment, which is no range.
static bool is_whole(const tide__chunk *p) {
    return p->state == TIDE__CHUNK_IDLE && p->before == NULL && p->after == NULL && p->segment->unit_bytes == 0;
}

static void give_back(tide__pt *a, tide__segment *seg) {
    tide__pt_take(seg->first);
    tide__pt_drop_chunk(a, seg->first);
    tide__pt_unlink(a, seg);
    tide__pt_count_given(a, seg->id, seg->base, seg->size_bytes);
    tide_device_mem_free(a->device, seg->base);
    tide_host_free(seg);
}

void tide__pt_release_free(tide__pt *a) {
    for (tide__segment *seg = a->segments, *next; seg != NULL; seg = next) {
        next = seg->next;
        if (seg->unit_bytes > 0)
            tide__pt_range_shrink(a, seg);
        else if (is_whole(seg->first))
            give_back(a, seg);
    }
}

bool tide__pt_release_oversize(tide__pt *a, const tide__pt_plan *plan) {
    const size_t most = (size_t)a->options.max_split_bytes;
    if (most == 0 || !plan->large) return false;
    const size_t wanted = plan->need_bytes < most ? most : plan->need_bytes;
    tide__chunk *one = tide__tree_from(plan->list->idle[1], wanted, NULL);
    if (one != NULL && is_whole(one)) {
        give_back(a, one->segment);
        return true;
    }
    size_t released = 0;
    while (released < wanted) { // the largest first
        tide__chunk *p = tide__tree_last(plan->list->idle[1]);
        if (p == NULL || p->size_bytes < most || !is_whole(p)) return false;
        released += p->size_bytes;
        give_back(a, p->segment);
    }
    return true;
}

// ---- by age ----

static uint64_t age_of(const tide__pt *a, const tide__chunk *p) { return a->n_lookups[1] - p->idle_since; }

static bool is_collectable(const tide__segment *seg) { return seg->large && is_whole(seg->first); }

/// Sum of the ages of what could go; *n: how many.
static uint64_t ages(const tide__pt *a, uint64_t *n) {
    uint64_t sum = 0;
    *n = 0;
    for (const tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (!is_collectable(seg)) continue;
        sum += age_of(a, seg->first);
        ++*n;
    }
    return sum;
}

void tide__pt_collect(tide__pt *a) {
    const double allowed = a->options.gc_threshold * (double)tide_sim_device_bytes();
    if (allowed <= 0 || (double)a->stats.reserved_bytes <= allowed) return;
    const uint64_t target = a->stats.reserved_bytes - (uint64_t)allowed, before = a->stats.reserved_bytes;
    uint64_t n, sum = ages(a, &n);
    while (n > 0 && before - a->stats.reserved_bytes < target) {
        const double oldest = (double)sum / (double)n;
        const uint64_t n_before = n;
        for (tide__segment *seg = a->segments, *next; seg != NULL; seg = next) {
            next = seg->next;
            if (is_collectable(seg) && (double)age_of(a, seg->first) >= oldest) give_back(a, seg);
        }
        sum = ages(a, &n);
        if (n == n_before) return;
    }
}

void tide__pt_release_all(tide__pt *a) {
    while (a->segments != NULL) {
        tide__segment *seg = a->segments;
        tide__pt_unlink(a, seg);
        for (tide__chunk *p = seg->first, *next; p != NULL; p = next) {
            next = p->after;
            tide_host_free(p);
        }
        if (seg->unit_bytes > 0) {
            tide__pt_range_free(a, seg);
        } else {
            tide_device_mem_free(a->device, seg->base);
            tide_host_free(seg);
        }
    }
}

// ---- what was there before ----

tide_status tide__pt_adopt(tide__pt *a, tide__free_list *list, void *address, size_t size_bytes, tide_error *err) {
    tide__segment *seg;
    if (size_bytes == 0 || size_bytes % TIDE__SC_STEP_BYTES != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a segment of %zu B is none of PyTorch's", size_bytes);
    if (!tide__pt_make_spare(a, 1)) return TIDE_NO_MEMORY(err, "for chunks of allocator 'pytorch'");
    TIDE_TRY(TIDE_NEW(&seg, 1, err, "for a segment of allocator 'pytorch'"));
    const tide_status st = tide_sim_device_take_at(address, size_bytes, err);
    if (st == TIDE_OK)
        add_segment(a, seg, address, size_bytes, size_bytes != TIDE__SC_SMALL_SEGMENT, list);
    else
        tide_host_free(seg);
    return st;
}

static bool lies_in(const char *at, size_t bytes, const char *base, size_t size_bytes) {
    const uintptr_t first = (uintptr_t)at, begin = (uintptr_t)base;
    return first >= begin && first - begin < size_bytes && bytes <= size_bytes - (first - begin);
}

tide__chunk *tide__pt_free_at(tide__pt *a, const char *at, size_t bytes) {
    tide__segment *const from = a->cursor != NULL ? a->cursor : a->segments;
    tide__segment *seg = from;
    while (seg != NULL && !lies_in(at, bytes, seg->base, seg->size_bytes)) {
        seg = seg->next != NULL ? seg->next : a->segments;
        if (seg == from) return NULL;
    }
    if (seg == NULL) return NULL;
    a->cursor = seg;
    tide__chunk *p = seg->first;
    while (p != NULL && !lies_in(at, bytes, p->addr, p->size_bytes)) p = p->after;
    return p != NULL && p->state == TIDE__CHUNK_IDLE ? p : NULL;
}
