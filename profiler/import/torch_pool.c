// SPDX-License-Identifier: MIT
//
// Blocks of PyTorch's caching allocator by address. See torch_pool.h.
#include "profiler/import/torch_pool.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

enum { SMALL_REQUEST = 1 << 20 };
#define NO_SEGMENT UINT64_MAX // of a block that lies where no segment is known: it leaves nothing behind

// ---- ranges ----

/// The first range that ends behind `at`, or touches it there; r->n: none.
static size_t first_behind(const tide__torch_ranges *r, uint64_t at) {
    size_t lo = 0, hi = r->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (r->items[mid].behind < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/// Items [i, j) become the `n` of `parts`.
static tide_status put_parts(tide__torch_ranges *r, size_t i, size_t j, const struct tide__torch_range *parts,
                             size_t n) {
    TIDE_ASSERT(i <= j && j <= r->n && n <= 2);
    TIDE_TRY(tide_host_grow(&r->items, &r->cap, r->n + 2, sizeof *r->items));
    memmove(&r->items[i + n], &r->items[j], (r->n - j) * sizeof *r->items);
    for (size_t k = 0; k < n; k++) r->items[i + k] = parts[k];
    r->n += n;
    r->n -= j - i;
    return TIDE_OK;
}

tide_status tide__torch_ranges_add(tide__torch_ranges *r, uint64_t first, uint64_t behind) {
    struct tide__torch_range all = {first, behind};
    const size_t i = first_behind(r, first);
    size_t j = i;
    if (first >= behind) return TIDE_OK;
    for (; j < r->n && r->items[j].first <= behind; j++) {
        if (r->items[j].first < all.first) all.first = r->items[j].first;
        if (r->items[j].behind > all.behind) all.behind = r->items[j].behind;
    }
    return put_parts(r, i, j, &all, 1);
}

tide_status tide__torch_ranges_cut(tide__torch_ranges *r, uint64_t first, uint64_t behind) {
    struct tide__torch_range left[2];
    size_t n = 0, i = first_behind(r, first);
    if (first >= behind) return TIDE_OK;
    size_t j = i;
    for (; j < r->n && r->items[j].first < behind; j++) {
        if (r->items[j].first < first) left[n++] = (struct tide__torch_range){r->items[j].first, first};
        if (r->items[j].behind > behind) left[n++] = (struct tide__torch_range){behind, r->items[j].behind};
    }
    return put_parts(r, i, j, left, n);
}

bool tide__torch_ranges_gap(const tide__torch_ranges *r, uint64_t *first, uint64_t behind, uint64_t *end) {
    size_t i = first_behind(r, *first);
    for (; i < r->n && r->items[i].first <= *first; i++)
        if (r->items[i].behind > *first) *first = r->items[i].behind;
    *end = i < r->n && r->items[i].first < behind ? r->items[i].first : behind;
    return *first < behind;
}

void tide__torch_ranges_deinit(tide__torch_ranges *r) { tide_host_free(r->items); }

// ---- the two maps ----

static tide__pool_block *block_at(const tide__torch_pool *p, uint64_t address) {
    return tide_map_find(&p->blocks, address + 1);
}

static tide_status put(tide__torch_pool *p, const tide__pool_block *b) {
    const tide__pool_end end = {.key = b->key + b->bytes, .begin = b->key};
    TIDE_ASSERT(b->key > 0 && end.key >= b->key); // the snapshot's ranges end below 2^64
    if (b->bytes == 0) return TIDE_OK;
    tide__pool_end *old = tide_map_find(&p->ends, end.key);
    if (old != NULL) tide_map_take(&p->ends, old);
    if (!tide_map_put(&p->blocks, b)) return TIDE_ERR_NOMEM;
    return tide_map_put(&p->ends, &end) ? TIDE_OK : TIDE_ERR_NOMEM;
}

static void take(tide__torch_pool *p, tide__pool_block *b) {
    tide__pool_end *end = tide_map_find(&p->ends, b->key + b->bytes);
    if (end != NULL && end->begin == b->key) tide_map_take(&p->ends, end);
    tide_map_take(&p->blocks, b);
}

/// Put a free block, together with the free ones on both sides of it in its segment.
static tide_status put_free(tide__torch_pool *p, tide__pool_block b) {
    TIDE_ASSERT(b.segment != NO_SEGMENT);
    b.is_free = true;
    tide__pool_block *after = tide_map_find(&p->blocks, b.key + b.bytes);
    if (after != NULL && after->is_free && after->segment == b.segment) {
        b.bytes += after->bytes;
        take(p, after);
    }
    const tide__pool_end *end = tide_map_find(&p->ends, b.key);
    tide__pool_block *before = end != NULL ? tide_map_find(&p->blocks, end->begin) : NULL;
    if (before != NULL && before->is_free && before->segment == b.segment) {
        b.key = before->key;
        b.bytes += before->bytes;
        take(p, before);
    }
    return put(p, &b);
}

// ---- segments ----

tide_status tide__torch_pool_add(tide__torch_pool *p, uint64_t address, uint64_t bytes, bool is_expandable) {
    const tide__pool_block b = {.key = address + 1, .bytes = bytes, .segment = is_expandable ? 0 : p->next_segment++};
    tide__pool_block *old = block_at(p, address);
    if (old != NULL) take(p, old);
    return put_free(p, b);
}

tide_status tide__torch_pool_remove(tide__torch_pool *p, uint64_t address, uint64_t bytes) {
    tide__pool_block *b = block_at(p, address);
    if (b == NULL) { // a range inside of a free block of an expandable segment: the block that ends behind it
        const tide__pool_end *end = tide_map_find(&p->ends, address + bytes + 1);
        b = end != NULL ? tide_map_find(&p->blocks, end->begin) : NULL;
        if (b == NULL || b->key > address + 1) return TIDE_OK;
    }
    const tide__pool_block was = *b;
    take(p, b);
    const uint64_t first = address + 1, behind = first + bytes;
    if (was.key < first) TIDE_TRY(put(p, &(tide__pool_block){was.key, first - was.key, was.segment, was.is_free}));
    if (was.key + was.bytes > behind)
        TIDE_TRY(put(p, &(tide__pool_block){behind, was.key + was.bytes - behind, was.segment, was.is_free}));
    return TIDE_OK;
}

// ---- blocks ----

/// Cuts [address, address + bytes) out of the free block `b`, which holds it.
static tide_status cut(tide__torch_pool *p, tide__pool_block *b, uint64_t address, uint64_t bytes) {
    const tide__pool_block was = *b;
    const uint64_t first = address + 1, behind = first + bytes;
    TIDE_ASSERT(was.is_free && was.key <= first && behind <= was.key + was.bytes);
    take(p, b);
    if (was.key < first) TIDE_TRY(put(p, &(tide__pool_block){was.key, first - was.key, was.segment, true}));
    if (was.key + was.bytes > behind)
        TIDE_TRY(put(p, &(tide__pool_block){behind, was.key + was.bytes - behind, was.segment, true}));
    return put(p, &(tide__pool_block){first, bytes, was.segment, false});
}

tide_status tide__torch_pool_put(tide__torch_pool *p, uint64_t free_begin, uint64_t address, uint64_t bytes) {
    tide__pool_block *b = block_at(p, free_begin);
    const uint64_t before = address - free_begin;
    if (b != NULL && b->is_free && address >= free_begin && before <= b->bytes && b->bytes - before >= bytes)
        return cut(p, b, address, bytes);
    b = block_at(p, address);
    if (b != NULL) take(p, b);
    return put(p, &(tide__pool_block){address + 1, bytes, NO_SEGMENT, false});
}

/// What the block of a request holds of a free block of `bytes`.
static uint64_t held_of(const tide_pytorch_options *settings, uint64_t requested, uint64_t bytes, bool is_expandable) {
    tide_pytorch_options o = *settings;
    o.expandable_segments = o.expandable_segments || is_expandable;
    const uint64_t rounded = tide_pytorch_round(&o, requested);
    return bytes <= rounded ? bytes : tide_pytorch_held(&o, bytes, rounded, rounded > SMALL_REQUEST);
}

tide_status tide__torch_pool_alloc(tide__torch_pool *p, uint64_t address, uint64_t requested, uint64_t *held) {
    tide__pool_block *b = block_at(p, address);
    *held = tide_pytorch_round(p->settings, requested);
    if (b == NULL || !b->is_free || b->bytes < requested) {
        p->n_elsewhere++;
        if (b != NULL) take(p, b);
        return put(p, &(tide__pool_block){address + 1, *held, NO_SEGMENT, false});
    }
    *held = held_of(p->settings, requested, b->bytes, b->segment == 0);
    return cut(p, b, address, *held);
}

tide_status tide__torch_pool_free(tide__torch_pool *p, uint64_t address) {
    tide__pool_block *b = block_at(p, address);
    if (b == NULL || b->is_free) return TIDE_OK;
    const tide__pool_block was = *b;
    take(p, b);
    return was.segment != NO_SEGMENT ? put_free(p, was) : TIDE_OK;
}

void tide__torch_pool_deinit(tide__torch_pool *p) {
    tide_map_deinit(&p->blocks);
    tide_map_deinit(&p->ends);
}
