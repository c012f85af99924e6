// SPDX-License-Identifier: MIT
//
// What the tests of the search share: small problems by chance of which many have no plan at the bound, their optimum
// by trying every order, and larger ones cut from a full rectangle, whose optimum is known.
#ifndef TIDE_TESTS_PLANNER_SEARCH_CASE_H
#define TIDE_TESTS_PLANNER_SEARCH_CASE_H

#include "core/base/text.h"
#include "planner/problem.h"
#include "tests/tide_test.h"

enum { CASE_MAX_ITEMS = 512, CASE_MAX_TICKS = 16 };

static inline int compare_case_items(const void *a, const void *b) {
    const tide_item *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    if (x->size_bytes != y->size_bytes) return x->size_bytes < y->size_bytes ? -1 : 1;
    return x->align_bytes < y->align_bytes ? -1 : x->align_bytes > y->align_bytes;
}

static inline tide_item case_item(uint32_t begin, uint32_t end, uint64_t size_bytes) {
    return (tide_item){
        .size_bytes = size_bytes, .align_bytes = 1, .fixed_offset = TIDE_NO_OFFSET, .begin = begin, .end = end};
}

static inline tide_problem case_problem(tide_item *items, size_t n) {
    tide_problem p;
    tide_error err = TIDE_ERROR_INIT;
    qsort(items, n, sizeof *items, compare_case_items);
    assert_tide_ok(tide__problem_of_items(items, n, &p, &err), &err);
    return p;
}

/// Up to `max_n` items on a few ticks, most ticks filled up to the highest live sum: no byte may be lost there.
static inline tide_problem tight_problem(tide_rng *rng, size_t max_n, bool aligned) {
    tide_item items[CASE_MAX_ITEMS];
    const uint32_t n_ticks = 3 + (uint32_t)tide_rng_below(rng, 4);
    const uint64_t max_bytes = 1 + tide_rng_below(rng, 10);
    size_t n = 3 + tide_rng_below(rng, max_n - 4);
    uint64_t sums[CASE_MAX_TICKS] = {0}, highest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t length = 1 + (uint32_t)tide_rng_below(rng, 3);
        const uint32_t begin = (uint32_t)tide_rng_below(rng, n_ticks - length + 1);
        items[i] = case_item(begin, begin + length, 1 + tide_rng_below(rng, max_bytes));
        if (aligned) items[i].align_bytes = UINT64_C(1) << tide_rng_below(rng, 4);
        for (uint32_t t = begin; t < begin + length; t++) sums[t] += items[i].size_bytes;
    }
    for (uint32_t t = 0; t < n_ticks; t++) highest = sums[t] > highest ? sums[t] : highest;
    for (uint32_t t = 0; t < n_ticks && n < max_n; t++) {
        if (sums[t] == 0 || sums[t] == highest || tide_rng_below(rng, 4) == 0) continue;
        items[n++] = case_item(t, t + 1, highest - sums[t]);
    }
    return case_problem(items, n);
}

/// `n` items on a few ticks and one more on each tick, which fills it up or leaves a little: a few in a hundred have no
/// plan at the bound.
static inline tide_problem loose_problem(tide_rng *rng, size_t n) {
    tide_item items[CASE_MAX_ITEMS];
    const uint32_t n_ticks = 4 + (uint32_t)tide_rng_below(rng, 8);
    const uint64_t max_bytes = 2 + tide_rng_below(rng, 12);
    const bool fills = tide_rng_below(rng, 3) > 0;
    uint64_t sums[CASE_MAX_TICKS] = {0}, highest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t length = 1 + (uint32_t)tide_rng_below(rng, 4);
        const uint32_t begin = (uint32_t)tide_rng_below(rng, n_ticks - length + 1);
        items[i] = case_item(begin, begin + length, 1 + tide_rng_below(rng, max_bytes));
        for (uint32_t t = begin; t < begin + length; t++) sums[t] += items[i].size_bytes;
    }
    for (uint32_t t = 0; t < n_ticks; t++) highest = sums[t] > highest ? sums[t] : highest;
    for (uint32_t t = 0; t < n_ticks; t++) {
        if (sums[t] == 0 || sums[t] == highest) continue;
        const uint64_t size = fills ? highest - sums[t] : 1 + tide_rng_below(rng, highest - sums[t]);
        items[n++] = case_item(t, t + 1, size);
    }
    return case_problem(items, n);
}

/// Two found among 80,000 by chance: their best plans leave bytes free under an item that another one carries.
static const uint32_t CARRIED[2][17][3] = {{{0, 1, 13},
                                            {0, 2, 6},
                                            {1, 3, 3},
                                            {1, 3, 4},
                                            {1, 3, 6},
                                            {2, 3, 1},
                                            {2, 6, 5},
                                            {3, 4, 14},
                                            {4, 5, 11},
                                            {4, 7, 1},
                                            {4, 7, 2},
                                            {5, 6, 3},
                                            {5, 6, 5},
                                            {5, 9, 3},
                                            {6, 7, 13},
                                            {7, 8, 16},
                                            {8, 9, 16}},
                                           {{1, 2, 2},
                                            {1, 2, 7},
                                            {1, 2, 16},
                                            {3, 4, 20},
                                            {3, 6, 5},
                                            {4, 5, 13},
                                            {4, 7, 4},
                                            {4, 8, 1},
                                            {4, 8, 2},
                                            {5, 7, 6},
                                            {5, 9, 3},
                                            {5, 9, 4},
                                            {6, 7, 5},
                                            {7, 8, 15},
                                            {8, 9, 18},
                                            {0, 0, 0},
                                            {0, 0, 0}}};
static const uint32_t CARRIED_OPTIMUM[2] = {21, 27}; ///< their bounds are 19 and 25

/// One of them, with sizes times `scale` plus `more`.
static inline tide_problem carried_problem(int which, uint64_t scale, uint64_t more) {
    tide_item items[17];
    size_t n = 0;
    for (; n < 17 && CARRIED[which][n][2] > 0; n++) {
        items[n] = case_item(CARRIED[which][n][0], CARRIED[which][n][1], CARRIED[which][n][2] * scale + more);
    }
    return case_problem(items, n);
}

// ---- the optimum by trying every order ----

typedef struct brute {
    const tide_problem *p;
    uint64_t offsets[CASE_MAX_ITEMS];
    uint64_t floor[CASE_MAX_TICKS], rest[CASE_MAX_TICKS];
    uint64_t best;
} brute;

/// Every order of dropping is tried; only what cannot become lower than the best is left out.
static inline void brute_drop(brute *b, uint32_t placed, uint64_t height) {
    const tide_problem *p = b->p;
    for (uint32_t t = 0; t < p->n_ticks; t++) {
        if (b->floor[t] + b->rest[t] >= b->best) return;
    }
    if (placed == (UINT32_C(1) << p->n) - 1) b->best = height;
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (placed >> i & 1) continue;
        uint64_t at = 0, floor[CASE_MAX_TICKS];
        memcpy(floor, b->floor, sizeof floor);
        for (uint32_t t = item->begin; t < item->end; t++) at = b->floor[t] > at ? b->floor[t] : at;
        at = (at + item->align_bytes - 1) / item->align_bytes * item->align_bytes;
        const uint64_t top = at + item->size_bytes;
        for (uint32_t t = item->begin; t < item->end; t++) {
            b->floor[t] = top;
            b->rest[t] -= item->size_bytes;
        }
        brute_drop(b, placed | UINT32_C(1) << i, top > height ? top : height);
        for (uint32_t t = item->begin; t < item->end; t++) b->rest[t] += item->size_bytes;
        memcpy(b->floor, floor, sizeof floor);
    }
}

static inline uint64_t brute_optimum(const tide_problem *p) {
    brute b = {.p = p, .best = UINT64_MAX};
    assert_true(p->n_ticks <= CASE_MAX_TICKS && p->n < 32);
    for (size_t i = 0; i < p->n; i++) {
        for (uint32_t t = p->items[i].begin; t < p->items[i].end; t++) b.rest[t] += p->items[i].size_bytes;
    }
    brute_drop(&b, 0, 0);
    return b.best;
}

// ---- larger ones ----

typedef struct piece {
    uint32_t begin, end, lo, hi;
} piece;

/// Cut one piece into two, or into a pinwheel of five, which no straight cuts make. @return pieces it became
static inline size_t cut_piece(tide_rng *rng, piece p, piece *out) {
    const uint32_t w = p.end - p.begin, h = p.hi - p.lo;
    if (w > 3 && h > 3 && tide_rng_below(rng, 4) == 0) {
        const uint32_t a = p.begin + 1 + (uint32_t)tide_rng_below(rng, w - 2);
        const uint32_t b = a + 1 + (uint32_t)tide_rng_below(rng, p.end - a - 1);
        const uint32_t c = p.lo + 1 + (uint32_t)tide_rng_below(rng, h - 2);
        const uint32_t d = c + 1 + (uint32_t)tide_rng_below(rng, p.hi - c - 1);
        out[0] = (piece){p.begin, b, p.lo, c};
        out[1] = (piece){b, p.end, p.lo, d};
        out[2] = (piece){a, p.end, d, p.hi};
        out[3] = (piece){p.begin, a, c, p.hi};
        out[4] = (piece){a, b, c, d};
        return 5;
    }
    const bool in_time = tide_rng_below(rng, 2) == 0;
    if (in_time && w > 1) {
        const uint32_t at = p.begin + 1 + (uint32_t)tide_rng_below(rng, w - 1);
        out[0] = (piece){p.begin, at, p.lo, p.hi};
        out[1] = (piece){at, p.end, p.lo, p.hi};
        return 2;
    }
    if (h < 2) return 0;
    const uint32_t at = p.lo + 1 + (uint32_t)tide_rng_below(rng, h - 1);
    out[0] = (piece){p.begin, p.end, p.lo, at};
    out[1] = (piece){p.begin, p.end, at, p.hi};
    return 2;
}

/// About `n` pieces of a rectangle of `n_ticks` x 1024 KiB: its height is the optimum.
static inline tide_problem cut_problem(tide_rng *rng, size_t n, uint32_t n_ticks) {
    piece pieces[CASE_MAX_ITEMS + 8];
    tide_item items[CASE_MAX_ITEMS + 8];
    size_t n_pieces = 1;
    pieces[0] = (piece){0, n_ticks, 0, 1024};
    while (n_pieces < n) {
        size_t at = tide_rng_below(rng, n_pieces);
        const size_t other = tide_rng_below(rng, n_pieces);
        if ((uint64_t)(pieces[other].end - pieces[other].begin) * (pieces[other].hi - pieces[other].lo) >
            (uint64_t)(pieces[at].end - pieces[at].begin) * (pieces[at].hi - pieces[at].lo))
            at = other;
        piece cut[5];
        const size_t n_cut = cut_piece(rng, pieces[at], cut);
        if (n_cut == 0) continue;
        pieces[at] = cut[0];
        for (size_t k = 1; k < n_cut; k++) pieces[n_pieces++] = cut[k];
    }
    for (size_t i = 0; i < n_pieces; i++) {
        items[i] = case_item(pieces[i].begin, pieces[i].end, (uint64_t)(pieces[i].hi - pieces[i].lo) * 1024);
    }
    return case_problem(items, n_pieces);
}

#endif
