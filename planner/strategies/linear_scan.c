// SPDX-License-Identifier: MIT
//
// linear_scan: offsets by walking through time once with a free list, as an allocator would see the run.
//
// At each tick the items that died give their bytes back first (lifetimes are half-open), neighbouring free blocks
// merge, then the tick's new items take the lowest free block that holds them, larger ones first; when none does, the
// buffer grows, beginning with the free block at its end. Items with given offsets keep their bytes for all of time.
//
//     |  free 0..512  | a | b |  free  ]<- end of buffer
//
// Source: linear scan register allocation, Poletto & Sarkar 1999, with sized blocks instead of registers.
// Cost O(n log n).
#include "planner/strategies/linear_scan.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/block_tree.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/strategies/timeline.h"

typedef struct scan {
    const tide_problem *problem;
    uint64_t *offsets;
    tide_block_tree free; // by address; never touching each other
    uint64_t end;         // of the buffer so far
} scan;

static tide_status give_back(scan *s, uint64_t begin, uint64_t end) {
    TIDE_ASSERT(begin <= end && end <= s->end);
    return begin == end ? TIDE_OK : tide_block_tree_give(&s->free, (tide_block_span){begin, end - begin, 0});
}

/// Grow the buffer so that its end holds the item; a free block there is used up first.
static tide_status grow(scan *s, const tide_item *item, uint64_t *out, tide_error *err) {
    tide_block_span last;
    uint64_t from = s->end, end;
    if (tide_block_tree_before(&s->free, (tide_block_span){.begin = s->end}, &last) &&
        last.begin + last.bytes == s->end) {
        tide_block_tree_remove(&s->free, last);
        from = last.begin;
    }
    if (!tide_align_up(from, item->align_bytes, out) || !tide_add_u64(*out, item->size_bytes, &end))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "no offset below 2^64 is left for a tensor of %llu bytes",
                         (unsigned long long)item->size_bytes);
    TIDE_ASSERT(*out >= from && end > s->end);
    s->end = end;
    return give_back(s, from, *out);
}

static tide_status take(scan *s, const tide_item *item, uint64_t *out, tide_error *err) {
    tide_block_span block;
    if (!tide_block_tree_lowest_fit(&s->free, item->size_bytes, item->align_bytes, &block))
        return grow(s, item, out, err);
    *out = (block.begin + item->align_bytes - 1) & ~(item->align_bytes - 1);
    return tide_block_tree_take(&s->free, (tide_block_span){*out, item->size_bytes, 0});
}

static tide_status born(void *self, uint32_t item_i, tide_error *err) {
    scan *s = self;
    const tide_item *item = &s->problem->items[item_i];
    if (item->fixed_offset != TIDE_NO_OFFSET) return TIDE_OK;
    const tide_status st = take(s, item, &s->offsets[item_i], err);
    return st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(err, "to place %zu tensors", s->problem->n) : st;
}

static tide_status died(void *self, uint32_t item_i, tide_error *err) {
    scan *s = self;
    const tide_item *item = &s->problem->items[item_i];
    if (item->fixed_offset != TIDE_NO_OFFSET) return TIDE_OK;
    const uint64_t at = s->offsets[item_i];
    TIDE_ASSERT(at + item->size_bytes <= s->end);
    if (give_back(s, at, at + item->size_bytes) == TIDE_OK) return TIDE_OK;
    return TIDE_NO_MEMORY(err, "to place %zu tensors", s->problem->n);
}

static int by_offset(const void *a, const void *b) {
    const tide_item *x = *(const tide_item *const *)a, *y = *(const tide_item *const *)b;
    return (x->fixed_offset > y->fixed_offset) - (x->fixed_offset < y->fixed_offset);
}

/// The buffer begins with the items that have given offsets and what is free between them.
static tide_status keep_fixed(scan *s) {
    if (!s->problem->has_fixed) return TIDE_OK;
    const tide_item **fixed = tide_host_calloc(s->problem->n, sizeof *fixed);
    if (fixed == NULL) return TIDE_ERR_NOMEM;
    size_t n = 0;
    for (size_t i = 0; i < s->problem->n; i++) {
        if (s->problem->items[i].fixed_offset != TIDE_NO_OFFSET) fixed[n++] = &s->problem->items[i];
    }
    qsort(fixed, n, sizeof *fixed, by_offset);
    tide_status st = TIDE_OK;
    for (size_t k = 0; k < n && st == TIDE_OK; k++) {
        const uint64_t begin = fixed[k]->fixed_offset, end = begin + fixed[k]->size_bytes;
        const uint64_t before = s->end;
        if (end > s->end) s->end = end;
        if (begin > before) st = give_back(s, before, begin);
        s->offsets[fixed[k] - s->problem->items] = begin;
    }
    tide_host_free(fixed);
    return st;
}

tide_status tide__linear_scan(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                              tide_placement *out, tide_error *err) {
    (void)self;
    (void)opt;
    scan s = {.problem = problem, .offsets = out->offsets};
    tide_status st = TIDE_OK;
    if (keep_fixed(&s) != TIDE_OK) st = TIDE_NO_MEMORY(err, "to place %zu tensors", problem->n);
    if (st == TIDE_OK) st = tide__timeline_walk(problem, TIDE_ORDER_BIRTH, born, died, &s, err);
    out->bytes = s.end;
    tide_block_tree_deinit(&s.free);
    return st;
}
