// SPDX-License-Identifier: MIT
//
// greedy_by_breadth: offsets in one buffer; the step with the most live bytes first, there the largest tensor first,
// each into the smallest gap that fits.
//
// Source: Pisarchyk & Lee 2020, Greedy by Breadth for offset calculation. The paper walks over the operators; here a
// tensor's turn is computed at once: it is placed with the broadest of the sections it lives in. A section is a
// maximal run of steps in which nothing is born and nothing dies, so time may be sparse (a million steps, 154
// tensors). The broadest section of a range comes from a sparse table:
//
//     best[k][s] = broadest of sections s … s + 2^k - 1
//
// Cost O(n log n) for the order, then as placed_list.
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/placed_list.h"
#include "planner/strategies.h"

typedef struct sections {
    int64_t *begins;   // [n] first step of each, ascending
    uint64_t *breadth; // [n] live bytes
    size_t n;
    uint32_t *best; // [n_levels * n]
} sections;

typedef struct turn {
    const tide_lifetime *item;
    uint64_t breadth;
    int64_t step; // where that breadth is
} turn;

static void sections_deinit(sections *s) {
    tide_host_free(s->begins);
    tide_host_free(s->breadth);
    tide_host_free(s->best);
}

static int compare_steps(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static size_t section_of(const sections *s, int64_t step) {
    size_t lo = 0, hi = s->n;
    while (lo + 1 < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->begins[mid] <= step) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/// Cut time where something is born or dies. The last cut begins an empty section.
static tide_status cut_time(sections *s, const tide_worklist *work) {
    size_t room;
    if (!tide_mul_size(work->n, 2, &room)) return TIDE_ERR_NOMEM;
    s->begins = tide_host_calloc(room, sizeof *s->begins);
    s->breadth = tide_host_calloc(room, sizeof *s->breadth);
    if (s->begins == NULL || s->breadth == NULL) return TIDE_ERR_NOMEM;
    for (size_t k = 0; k < work->n; k++) {
        s->begins[2 * k] = work->items[k]->begin_step;
        s->begins[2 * k + 1] = work->items[k]->end_step;
    }
    qsort(s->begins, room, sizeof *s->begins, compare_steps);
    for (size_t i = 0; i < room; i++) {
        if (s->n == 0 || s->begins[i] != s->begins[s->n - 1]) s->begins[s->n++] = s->begins[i];
    }
    return TIDE_OK;
}

/// Sums of differences, modulo 2^64: what is alive at a step does not overflow, the lower bound has seen to that.
static void measure_breadth(sections *s, const tide_worklist *work) {
    for (size_t k = 0; k < work->n; k++) {
        const uint64_t bytes = tide_lifetime_aligned_bytes(work->items[k]);
        s->breadth[section_of(s, work->items[k]->begin_step)] += bytes;
        s->breadth[section_of(s, work->items[k]->end_step)] -= bytes;
    }
    for (size_t i = 1; i < s->n; i++) s->breadth[i] += s->breadth[i - 1];
}

/// The broader section, the earlier one of equals (a <= b).
static uint32_t broader(const sections *s, uint32_t a, uint32_t b) { return s->breadth[b] > s->breadth[a] ? b : a; }

static tide_status build_table(sections *s) {
    size_t n_levels = 1;
    while (((size_t)1 << n_levels) <= s->n) n_levels++;
    size_t room;
    if (s->n > UINT32_MAX || !tide_mul_size(n_levels, s->n, &room)) return TIDE_ERR_NOMEM;
    s->best = tide_host_calloc(room, sizeof *s->best);
    if (s->best == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < s->n; i++) s->best[i] = (uint32_t)i;
    for (size_t k = 1; k < n_levels; k++) {
        const size_t half = (size_t)1 << (k - 1);
        const uint32_t *below = s->best + (k - 1) * s->n;
        for (size_t i = 0; i + 2 * half <= s->n; i++) s->best[k * s->n + i] = broader(s, below[i], below[i + half]);
    }
    return TIDE_OK;
}

/// Broadest of sections first … last, both inclusive: two overlapping powers of two cover the range.
static uint32_t broadest(const sections *s, size_t first, size_t last) {
    size_t k = 0;
    while (((size_t)2 << k) <= last - first + 1) k++;
    const uint32_t *level = s->best + k * s->n;
    return broader(s, level[first], level[last + 1 - ((size_t)1 << k)]);
}

static int compare_turns(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->breadth != y->breadth) return x->breadth > y->breadth ? -1 : 1;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return tide__by_size_desc(&x->item, &y->item);
}

/// Reorder `work` by turns.
static tide_status order_by_breadth(tide_worklist *work) {
    sections s = {0};
    turn *turns = tide_host_calloc(work->n, sizeof *turns);
    tide_status st = turns == NULL ? TIDE_ERR_NOMEM : cut_time(&s, work);
    if (st == TIDE_OK) {
        measure_breadth(&s, work);
        st = build_table(&s);
    }
    for (size_t k = 0; k < work->n && st == TIDE_OK; k++) {
        const tide_lifetime *item = work->items[k];
        const uint32_t at = broadest(&s, section_of(&s, item->begin_step), section_of(&s, item->end_step) - 1);
        turns[k] = (turn){item, s.breadth[at], s.begins[at]};
    }
    if (st == TIDE_OK) {
        qsort(turns, work->n, sizeof *turns, compare_turns);
        for (size_t k = 0; k < work->n; k++) work->items[k] = turns[k].item;
    }
    tide_host_free(turns);
    sections_deinit(&s);
    return st;
}

static tide_status place(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    tide_worklist work;
    TIDE_TRY(tide__worklist_make(&plan->lifetimes, tide__by_size_desc, &work, err));
    tide_status st = order_by_breadth(&work);
    if (st != TIDE_OK) {
        st = TIDE_FAIL(err, st, "no memory to order %zu tensors by breadth", work.n);
    } else {
        st = tide__place_in_order(plan, &work, TIDE_GAP_RULE_BEST, err);
    }
    tide__worklist_deinit(&work);
    return st;
}

const tide_strategy tide__strategy_greedy_by_breadth = {
    .name = "greedy_by_breadth",
    .what = "offsets, broadest step first, there largest tensor first, smallest gap that fits",
    .source = "Pisarchyk & Lee 2020, Greedy by Breadth for offsets",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
