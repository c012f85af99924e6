// SPDX-License-Identifier: MIT
//
// linear_scan: offsets by walking through time once with a free list, as an allocator would see the run.
//
// At each step the tensors that died give their bytes back first (lifetimes are half-open), neighbouring free blocks
// merge, then the step's new tensors take the lowest free block that holds them, larger ones first; when none does,
// the buffer grows, beginning with the free block at its end.
//
//     |  free 0..512  | a | b |  free  ]<- end of buffer
//
// Source: linear scan register allocation, Poletto & Sarkar 1999, with sized blocks instead of registers.
// Cost O(n log n + n free blocks).
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/strategies.h"
#include "planner/worklist.h"

typedef struct free_block {
    uint64_t begin, end;
} free_block;

typedef struct scan {
    tide_memory_plan *plan;
    free_block *blocks; // [n] by begin; never touching each other
    size_t n, cap;
    uint64_t end; // of the buffer so far
} scan;

static void remove_block(scan *s, size_t i) {
    memmove(s->blocks + i, s->blocks + i + 1, (s->n - i - 1) * sizeof *s->blocks);
    s->n--;
}

static tide_status insert_block(scan *s, size_t i, free_block block) {
    TIDE_TRY(tide_host_grow(&s->blocks, &s->cap, s->n + 1, sizeof *s->blocks));
    memmove(s->blocks + i + 1, s->blocks + i, (s->n - i) * sizeof *s->blocks);
    s->blocks[i] = block;
    s->n++;
    return TIDE_OK;
}

/// Enter [begin, end) and merge it with the free blocks it touches.
static tide_status give_back(scan *s, uint64_t begin, uint64_t end) {
    if (begin == end) return TIDE_OK;
    size_t i = 0;
    while (i < s->n && s->blocks[i].begin < begin) i++;
    const bool joins_left = i > 0 && s->blocks[i - 1].end == begin;
    const bool joins_right = i < s->n && s->blocks[i].begin == end;
    if (joins_left && joins_right) {
        s->blocks[i - 1].end = s->blocks[i].end;
        remove_block(s, i);
    } else if (joins_left) {
        s->blocks[i - 1].end = end;
    } else if (joins_right) {
        s->blocks[i].begin = begin;
    } else {
        return insert_block(s, i, (free_block){begin, end});
    }
    return TIDE_OK;
}

/// Cut [at, at + bytes) out of free block `i`, which holds it.
static tide_status cut(scan *s, size_t i, uint64_t at, uint64_t bytes) {
    const free_block block = s->blocks[i];
    remove_block(s, i);
    TIDE_TRY(give_back(s, at + bytes, block.end));
    return give_back(s, block.begin, at);
}

/// Grow the buffer so that its end holds the tensor; a free block there is used up first.
static tide_status grow(scan *s, const tide_lifetime *item, uint64_t bytes, uint64_t *out, tide_error *err) {
    const bool free_at_end = s->n > 0 && s->blocks[s->n - 1].end == s->end;
    const uint64_t from = free_at_end ? s->blocks[s->n - 1].begin : s->end;
    uint64_t at, end;
    if (!tide_align_up(from, item->align_bytes, &at) || !tide_add_u64(at, bytes, &end))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "no offset below 2^64 is left for tensor '%s'", item->name);
    if (free_at_end) s->n--;
    s->end = end;
    *out = at;
    return give_back(s, from, at);
}

static tide_status take(scan *s, const tide_lifetime *item, uint64_t *out, tide_error *err) {
    const uint64_t bytes = tide_lifetime_aligned_bytes(item);
    for (size_t i = 0; i < s->n; i++) {
        uint64_t at, end;
        if (!tide_align_up(s->blocks[i].begin, item->align_bytes, &at) || !tide_add_u64(at, bytes, &end)) continue;
        if (end > s->blocks[i].end) continue;
        *out = at;
        return cut(s, i, at, bytes);
    }
    return grow(s, item, bytes, out, err);
}

static int by_death(const void *a, const void *b) {
    const tide_lifetime *x = *(const tide_lifetime *const *)a, *y = *(const tide_lifetime *const *)b;
    if (x->end_step != y->end_step) return x->end_step < y->end_step ? -1 : 1;
    return tide__compare_names(x, y);
}

static tide_status release_dead(scan *s, const tide_worklist *deaths, size_t *next, int64_t step) {
    for (; *next < deaths->n && deaths->items[*next]->end_step <= step; (*next)++) {
        const tide_lifetime *dead = deaths->items[*next];
        const uint64_t at = s->plan->offsets[dead - s->plan->lifetimes.items];
        TIDE_TRY(give_back(s, at, at + tide_lifetime_aligned_bytes(dead)));
    }
    return TIDE_OK;
}

static tide_status walk(scan *s, const tide_worklist *births, const tide_worklist *deaths, tide_error *err) {
    size_t next_death = 0;
    for (size_t k = 0; k < births->n; k++) {
        const tide_lifetime *item = births->items[k];
        tide_status st = release_dead(s, deaths, &next_death, item->begin_step);
        if (st == TIDE_OK) st = take(s, item, &s->plan->offsets[item - s->plan->lifetimes.items], err);
        if (st == TIDE_ERR_NOMEM) return TIDE_FAIL(err, st, "no memory to place tensor '%s'", item->name);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

static tide_status place(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    tide_worklist births = {0}, deaths = {0};
    scan s = {.plan = plan};
    tide_status st = tide__worklist_make(&plan->lifetimes, tide__by_birth, &births, err);
    if (st == TIDE_OK) st = tide__worklist_make(&plan->lifetimes, by_death, &deaths, err);
    if (st == TIDE_OK) st = walk(&s, &births, &deaths, err);
    plan->bytes = s.end;
    tide_host_free(s.blocks);
    tide__worklist_deinit(&births);
    tide__worklist_deinit(&deaths);
    return st;
}

const tide_strategy tide__strategy_linear_scan = {
    .name = "linear_scan",
    .what = "offsets, in order of birth, from a free list that merges neighbours",
    .source = "Poletto & Sarkar 1999, with sized blocks for registers",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
