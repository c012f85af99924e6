// SPDX-License-Identifier: MIT
//
// Expandable segments of the allocator pytorch: a range of addresses for each stream and pool, which gets memory page
// by page (2 MiB for small requests, 20 MiB for large ones) and gives free pages back. See pytorch.c.
//
//     base                                                             1.125 times the device's memory
//     | out | free | out |    free    |  bare                                                         |
//     | page      | page      | page  |  request of more than is free: pages behind it, from the lowest on
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/device/sim_device.h"
#include "core/memory/allocators/pytorch_internal.h"

/// Of addresses, where the device has as much memory as is asked for.
#define UNKNOWN_RANGE_BYTES ((uint64_t)1 << 40)

static const tide_device_ops *calls_of(const tide__pt *a) {
    void *self = NULL;
    const tide_device_ops *ops = tide_device_find(a->device, &self);
    TIDE_ASSERT(ops != NULL && ops->vm_reserve != NULL);
    return ops;
}

static size_t page_of(const tide__segment *seg, const char *at) { return (size_t)(at - seg->base) / seg->unit_bytes; }

// ---- a page ----

static tide_status map_page(tide__pt *a, tide__segment *seg, size_t page, tide_error *err) {
    char *at = seg->base + page * seg->unit_bytes;
    TIDE_TRY(calls_of(a)->vm_map(NULL, a->device.index, at, seg->unit_bytes, err));
    seg->units[page] = tide__sc_new_ids(1);
    seg->mapped_bytes += seg->unit_bytes;
    tide__pt_count_taken(a, seg->units[page], at, seg->unit_bytes);
    return TIDE_OK;
}

static void unmap_page(tide__pt *a, tide__segment *seg, size_t page) {
    char *at = seg->base + page * seg->unit_bytes;
    calls_of(a)->vm_unmap(NULL, a->device.index, at, seg->unit_bytes);
    tide__pt_count_given(a, seg->units[page], at, seg->unit_bytes);
    seg->units[page] = 0;
    seg->mapped_bytes -= seg->unit_bytes;
}

// ---- a range ----

/// Bytes of addresses that a range has.
static uint64_t room_of_range(void) {
    const uint64_t total = tide_sim_device_bytes();
    return total > 0 ? total + total / 8 : UNKNOWN_RANGE_BYTES;
}

/// A range without memory at `base`. A header is there.
static tide_status add_range(tide__pt *a, void *base, size_t n_units, bool large, tide__free_list *list,
                             tide__segment **out, tide_error *err) {
    tide__segment *seg = NULL;
    const size_t unit = large ? TIDE__SC_LARGE_SEGMENT : TIDE__SC_SMALL_SEGMENT;
    TIDE_TRY(TIDE_NEW(&seg, 1, err, "for a range of allocator 'pytorch'"));
    const tide_status st = TIDE_NEW(&seg->units, n_units, err, "for the pages of a range");
    if (st != TIDE_OK) {
        tide_host_free(seg);
        return st;
    }
    seg->id = tide__sc_new_ids(1);
    seg->base = base;
    seg->size_bytes = n_units * unit;
    seg->large = large;
    seg->unit_bytes = unit;
    seg->owner = list;
    tide__chunk *p = tide__pt_new_chunk(a);
    p->addr = base;
    p->size_bytes = seg->size_bytes;
    p->state = TIDE__CHUNK_BARE;
    p->segment = seg;
    p->home = list;
    seg->first = p;
    tide__pt_link(a, seg);
    *out = seg;
    return TIDE_OK;
}

static tide_status new_range(tide__pt *a, const tide__pt_plan *plan, tide__chunk **out, tide_error *err) {
    const size_t unit = plan->large ? TIDE__SC_LARGE_SEGMENT : TIDE__SC_SMALL_SEGMENT;
    const size_t n_units = (size_t)(room_of_range() / unit + 1);
    tide__segment *seg = NULL;
    void *base = NULL;
    if (plan->need_bytes > n_units * unit)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "%zu B are more than a range of addresses has", plan->need_bytes);
    TIDE_TRY(calls_of(a)->vm_reserve(NULL, a->device.index, n_units * unit, &base, err));
    TIDE_TRY(add_range(a, base, n_units, plan->large, plan->list, &seg, err)); // a place alone is nothing to give back
    *out = seg->first;
    return TIDE_OK;
}

void tide__pt_range_free(tide__pt *a, tide__segment *seg) {
    for (size_t i = 0; i < seg->size_bytes / seg->unit_bytes; i++)
        if (seg->units[i] != 0) unmap_page(a, seg, i);
    calls_of(a)->vm_release(NULL, a->device.index, seg->base, seg->size_bytes);
    tide_host_free(seg->units);
    tide_host_free(seg);
}

// ---- grow ----

/// Whether free and bare chunks from `p` on hold the request.
static bool has_room(const tide__chunk *p, size_t need_bytes) {
    size_t room = 0;
    for (; p != NULL && room < need_bytes && (p->state == TIDE__CHUNK_IDLE || p->state == TIDE__CHUNK_BARE);
         p = p->after)
        room += p->size_bytes;
    return room >= need_bytes;
}

/// The lowest place of the plan's ranges that can become large enough; NULL: there is none.
static tide__chunk *place_for(const tide__pt *a, const tide__pt_plan *plan) {
    for (const tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        if (seg->unit_bytes == 0 || seg->owner != plan->list || seg->large != plan->large) continue;
        for (tide__chunk *p = seg->first; p != NULL; p = p->after) {
            if (p->state != TIDE__CHUNK_BARE) continue;
            tide__chunk *from = p->before != NULL && p->before->state == TIDE__CHUNK_IDLE ? p->before : p;
            if (has_room(from, plan->need_bytes)) return from;
        }
    }
    return NULL;
}

/// Memory for the first `bytes` of a bare chunk, in whole pages. @return the free chunk that it is part of; NULL: the
/// device has not so much, nothing changed
static tide__chunk *map(tide__pt *a, tide__chunk *p, size_t bytes, tide_error *err) {
    tide__segment *seg = p->segment;
    const size_t first = page_of(seg, p->addr), n = (bytes + seg->unit_bytes - 1) / seg->unit_bytes;
    for (size_t i = 0; i < n; i++) {
        if (map_page(a, seg, first + i, err) == TIDE_OK) continue;
        while (i > 0) unmap_page(a, seg, first + --i);
        return NULL;
    }
    if (n * seg->unit_bytes < p->size_bytes) tide__pt_cut(a, p, n * seg->unit_bytes);
    return tide__pt_put(a, p);
}

tide_status tide__pt_range_grow(tide__pt *a, const tide__pt_plan *plan, tide__chunk **out, tide_error *err) {
    tide__chunk *p = place_for(a, plan);
    if (p == NULL) TIDE_TRY(new_range(a, plan, &p, err));
    if (p->state == TIDE__CHUNK_BARE) {
        p = map(a, p, p->size_bytes < plan->need_bytes ? p->size_bytes : plan->need_bytes, err);
        if (p == NULL) return TIDE_ERR_NOMEM;
    }
    while (p->size_bytes < plan->need_bytes) {
        if (!tide__pt_make_spare(a, 2)) return TIDE_NO_MEMORY(err, "for chunks of allocator 'pytorch'");
        tide__chunk *next = p->after;
        const size_t left = plan->need_bytes - p->size_bytes;
        p = map(a, next, next->size_bytes < left ? next->size_bytes : left, err);
        if (p == NULL) return TIDE_ERR_NOMEM;
    }
    *out = p;
    return TIDE_OK;
}

// ---- what was there before ----

/// Whether the parts are whole pages of one range, one behind the other.
static bool are_pages(const tide_pytorch_part *parts, size_t n, size_t unit) {
    const uintptr_t base = (uintptr_t)parts[0].address;
    uintptr_t end = base;
    for (size_t i = 0; i < n; i++) {
        const uintptr_t at = (uintptr_t)parts[i].address;
        if (at < end || (at - base) % unit != 0 || parts[i].bytes == 0 || parts[i].bytes % unit != 0) return false;
        if (parts[i].bytes > UINTPTR_MAX - at) return false;
        end = at + parts[i].bytes;
    }
    return true;
}

/// Bytes from `base` to the range that was adopted next above it, at most those that a range has.
static uint64_t room_from(const tide__pt *a, uintptr_t base) {
    uint64_t room = room_of_range();
    for (const tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        const uintptr_t other = (uintptr_t)seg->base;
        if (other > base && other - base < room) room = other - base;
    }
    return room;
}

/// A range below that has addresses of this one gives them up: it has no memory there.
static bool make_way(tide__pt *a, uintptr_t base) {
    for (tide__segment *seg = a->segments; seg != NULL; seg = seg->next) {
        const uintptr_t other = (uintptr_t)seg->base;
        if (other > base || base - other >= seg->size_bytes) continue;
        tide__chunk *last = seg->first;
        while (last->after != NULL) last = last->after;
        const size_t keep = (base - other) / seg->unit_bytes * seg->unit_bytes, gone = seg->size_bytes - keep;
        if (last->state != TIDE__CHUNK_BARE || last->size_bytes <= gone) return false;
        last->size_bytes -= gone;
        seg->size_bytes = keep;
    }
    return true;
}

/// Memory for one part: it is cut out of the bare chunk that it lies in.
static tide_status map_part(tide__pt *a, tide__segment *seg, const tide_pytorch_part *part, tide_error *err) {
    tide__chunk *p = seg->first;
    char *const at = part->address;
    while (p->addr + p->size_bytes <= at) p = p->after;
    TIDE_ASSERT(p->state == TIDE__CHUNK_BARE && p->addr <= at);
    if (!tide__pt_make_spare(a, 2)) return TIDE_NO_MEMORY(err, "for chunks of allocator 'pytorch'");
    if (p->addr < at) p = tide__pt_cut(a, p, (size_t)(at - p->addr));
    return map(a, p, part->bytes, err) != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
}

tide_status tide__pt_range_adopt(tide__pt *a, tide__free_list *list, const tide_pytorch_part *parts, size_t n,
                                 bool is_small, tide_error *err) {
    const size_t unit = is_small ? TIDE__SC_SMALL_SEGMENT : TIDE__SC_LARGE_SEGMENT;
    tide__segment *seg = NULL;
    TIDE_ASSERT(n > 0);
    const uintptr_t base = (uintptr_t)parts[0].address, end = (uintptr_t)parts[n - 1].address + parts[n - 1].bytes;
    const size_t n_units = (size_t)(room_from(a, base) / unit);
    if (!are_pages(parts, n, unit) || !make_way(a, base) || n_units == 0 || end - base > n_units * unit)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the segments at %p are no pages of one range", parts[0].address);
    if (!tide__pt_make_spare(a, 1)) return TIDE_NO_MEMORY(err, "for chunks of allocator 'pytorch'");
    TIDE_TRY(add_range(a, parts[0].address, n_units, !is_small, list, &seg, err));
    for (size_t i = 0; i < n; i++) TIDE_TRY(map_part(a, seg, &parts[i], err));
    return TIDE_OK;
}

// ---- shrink ----

/// Bare neighbours become one.
static tide__chunk *put_bare(tide__pt *a, tide__chunk *p) {
    p->state = TIDE__CHUNK_BARE;
    if (p->after != NULL && p->after->state == TIDE__CHUNK_BARE) tide__pt_absorb(a, p);
    if (p->before != NULL && p->before->state == TIDE__CHUNK_BARE) {
        p = p->before;
        tide__pt_absorb(a, p);
    }
    return p;
}

/// The whole pages of a free chunk go back. @return what lies there now
static tide__chunk *unmap(tide__pt *a, tide__chunk *p) {
    tide__segment *seg = p->segment;
    const size_t first = page_of(seg, p->addr + seg->unit_bytes - 1), end = page_of(seg, p->addr + p->size_bytes);
    if (first >= end || !tide__pt_make_spare(a, 2)) return p;
    char *begin = seg->base + first * seg->unit_bytes;
    const size_t bytes = (end - first) * seg->unit_bytes;
    tide__pt_take(p);
    p->state = TIDE__CHUNK_HELD; // on no list, and no neighbour merges with it
    if (p->addr < begin) {
        tide__chunk *front = p;
        p = tide__pt_cut(a, p, (size_t)(begin - p->addr));
        tide__pt_put(a, front);
    }
    if (p->size_bytes > bytes) tide__pt_put(a, tide__pt_cut(a, p, bytes));
    for (size_t i = first; i < end; i++) unmap_page(a, seg, i);
    return put_bare(a, p);
}

void tide__pt_range_shrink(tide__pt *a, tide__segment *seg) {
    for (tide__chunk *p = seg->first; p != NULL; p = p->after)
        if (p->state == TIDE__CHUNK_IDLE) p = unmap(a, p);
    if (seg->mapped_bytes > 0) return;
    TIDE_ASSERT(seg->first->after == NULL);
    tide__pt_drop_chunk(a, seg->first);
    tide__pt_unlink(a, seg);
    tide__pt_range_free(a, seg);
}
