// SPDX-License-Identifier: MIT
//
// windows: see local_windows.h. A large neighbourhood search (Shaw 1998) whose neighbourhoods are stretches of time and
// whose repair is a short run of climbs.
#include "planner/search/local_windows.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "planner/search/local_climbs.h"
#include "planner/search/local_window.h"

enum { STARTS = 6, RUNS = 40 }; // of one window

typedef struct windows {
    const tide_problem *problem;
    tide_local_budget *budget;
    uint64_t target_bytes;
    uint64_t *offsets;
    tide_rng rng;
    uint64_t widening; // by how many halves of itself a top item's span is extended to each side
} windows;

/// The item with the highest end, or, every third time, any that ends above the target; SIZE_MAX: none does.
static size_t choose_top(windows *w) {
    const bool any = tide_rng_below(&w->rng, 3) == 0;
    size_t best = SIZE_MAX, n = 0;
    uint64_t best_end = 0;
    for (size_t i = 0; i < w->problem->n; i++) {
        const tide_item *item = &w->problem->items[i];
        const uint64_t end = w->offsets[i] + item->size_bytes;
        if (end <= w->target_bytes || item->fixed_offset != TIDE_NO_OFFSET) continue;
        n++;
        if (any ? tide_rng_below(&w->rng, n) != 0 : end <= best_end) continue;
        best = i;
        best_end = end;
    }
    return best;
}

typedef struct by_offset {
    uint64_t offset;
    uint32_t item;
} by_offset;

static int compare_offsets(const void *a, const void *b) {
    const by_offset *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/// From the bottom upwards: first fit then leads to the plan that is there, or to one that lies lower.
static tide_status order_by_offset(const windows *w, const tide_window *part, uint32_t **out, tide_error *err) {
    by_offset *list = tide_host_calloc(part->problem.n, sizeof *list);
    uint32_t *order = tide_host_calloc(part->problem.n, sizeof *order);
    if (list == NULL || order == NULL) {
        tide_host_free(list);
        tide_host_free(order);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to sort %zu tensors", part->problem.n);
    }
    for (size_t k = 0; k < part->problem.n; k++)
        list[k] = (by_offset){k < part->n_free ? w->offsets[part->items[k]] : 0, (uint32_t)k};
    qsort(list, part->problem.n, sizeof *list, compare_offsets);
    for (size_t k = 0; k < part->problem.n; k++) order[k] = list[k].item;
    tide_host_free(list);
    *out = order;
    return TIDE_OK;
}

static uint64_t excess_of(const windows *w, const tide_window *part) {
    uint64_t excess = 0;
    for (size_t k = 0; k < part->n_free; k++) {
        const uint64_t end = w->offsets[part->items[k]] + part->problem.items[k].size_bytes;
        if (end > w->target_bytes) excess += end - w->target_bytes;
    }
    return excess;
}

/// Place the items of the window anew. *changed: no worse than before and taken over; *better: less excess.
static tide_status improve(windows *w, const tide_window *part, bool *changed, bool *better, tide_error *err) {
    tide_climbs climbs;
    uint32_t *order = NULL;
    const uint64_t before = excess_of(w, part), nodes = part->n_free * (uint64_t)RUNS;
    TIDE_TRY(tide__climbs_init(&climbs, &part->problem, w->budget, w->target_bytes, tide_rng_u64(&w->rng), err));
    tide_status st = order_by_offset(w, part, &order, err);
    if (st == TIDE_OK) st = tide__climbs_start(&climbs, order, TIDE_GAP_RULE_FIRST, err);
    if (st == TIDE_OK) st = tide__climbs_start_all(&climbs, STARTS, *w->budget, err);
    if (st == TIDE_OK) tide__climbs_run(&climbs, nodes);
    if (st == TIDE_OK && climbs.n > 0 && climbs.list[climbs.best].excess <= before) {
        const tide_climb *best = &climbs.list[climbs.best];
        *changed = true;
        *better = best->excess < before;
        for (size_t k = 0; k < part->n_free; k++) w->offsets[part->items[k]] = best->offsets[k];
    }
    tide__climbs_deinit(&climbs);
    return st;
}

static tide_status step(windows *w, const tide_item *top, bool *changed, tide_error *err) {
    const uint64_t more = (uint64_t)(top->end - top->begin) * w->widening / 2;
    const uint32_t begin = more < top->begin ? (uint32_t)(top->begin - more) : 0;
    const uint32_t end = more < w->problem->n_ticks - top->end ? (uint32_t)(top->end + more) : w->problem->n_ticks;
    tide_window part;
    TIDE_TRY(tide__window_make(w->problem, w->offsets, begin, end, &part, err));
    bool better = false;
    const tide_status st = improve(w, &part, changed, &better, err);
    tide__window_deinit(&part);
    const bool whole = begin == 0 && end == w->problem->n_ticks;
    w->widening = better || whole ? 1 : 2 * w->widening;
    return st;
}

tide_status tide__local_windows(const tide_problem *problem, tide_local_budget *budget, uint64_t target_bytes,
                                uint64_t seed, uint64_t *offsets, void (*changed)(void *self, const uint64_t *offsets),
                                void *self, tide_error *err) {
    windows w = {.problem = problem,
                 .budget = budget,
                 .target_bytes = target_bytes,
                 .offsets = offsets,
                 .rng = {seed},
                 .widening = 1};
    while (!tide__local_is_over(budget)) {
        const size_t top = choose_top(&w);
        if (top == SIZE_MAX) return TIDE_OK;
        bool is_changed = false;
        TIDE_TRY(step(&w, &problem->items[top], &is_changed, err));
        if (is_changed) changed(self, offsets);
        budget->n_nodes++; // so that a limit on nodes ends it whatever happens
    }
    return TIDE_OK;
}
