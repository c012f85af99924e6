// SPDX-License-Identifier: MIT
//
// neighbourhood: see neighbourhood.h.
#include "planner/search/neighbourhood.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"

// ---- a stretch of ticks as a problem of its own ----

typedef struct cutting {
    const tide_problem *parent;
    const uint64_t *offsets;
    uint32_t begin, end;
    tide_neighbourhood *out;
    size_t cap_items, cap_rects, cap_free;
} cutting;

static bool is_within(const cutting *c, const tide_item *item) {
    return item->begin >= c->begin && item->end <= c->end && item->fixed_offset == TIDE_NO_OFFSET;
}

/// The part of the item's shape inside the stretch.
static tide_status add_rects(cutting *c, const tide_item *item, tide_item *copy) {
    tide_problem *p = &c->out->problem;
    copy->first_rect = (uint32_t)p->n_rects;
    copy->n_rects = 0;
    copy->begin = UINT32_MAX;
    copy->end = 0;
    for (uint32_t r = 0; r < item->n_rects; r++) {
        tide_rect rect = tide__rects_of(c->parent, item)[r];
        if (rect.end <= c->begin || c->end <= rect.begin) continue;
        rect.begin = (rect.begin > c->begin ? rect.begin : c->begin) - c->begin;
        rect.end = (rect.end < c->end ? rect.end : c->end) - c->begin;
        if (tide_host_grow(&p->rects, &c->cap_rects, p->n_rects + 1, sizeof *p->rects) != TIDE_OK)
            return TIDE_ERR_NOMEM;
        p->rects[p->n_rects++] = rect;
        copy->n_rects++;
        if (rect.begin < copy->begin) copy->begin = rect.begin;
        if (rect.end > copy->end) copy->end = rect.end;
    }
    return TIDE_OK;
}

static tide_status add_item(cutting *c, size_t item_i, bool may_move) {
    tide_problem *p = &c->out->problem;
    tide_item copy = c->parent->items[item_i];
    TIDE_TRY(add_rects(c, &c->parent->items[item_i], &copy));
    if (copy.n_rects == 0) return TIDE_OK; // only a gap of the item is in the stretch
    if (!may_move) copy.fixed_offset = c->offsets[item_i];
    if (tide_host_grow(&p->items, &c->cap_items, p->n + 1, sizeof *p->items) != TIDE_OK) return TIDE_ERR_NOMEM;
    p->items[p->n++] = copy;
    if (!may_move) return TIDE_OK;
    if (tide_host_grow(&c->out->items, &c->cap_free, c->out->n_free + 1, sizeof *c->out->items) != TIDE_OK)
        return TIDE_ERR_NOMEM;
    c->out->items[c->out->n_free++] = (uint32_t)item_i;
    return TIDE_OK;
}

static tide_status cut(cutting *c) {
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < c->parent->n; i++) {
            const tide_item *item = &c->parent->items[i];
            if (item->end <= c->begin || c->end <= item->begin || is_within(c, item) != (pass == 0)) continue;
            TIDE_TRY(add_item(c, i, pass == 0));
        }
    }
    return TIDE_OK;
}

tide_status tide__neighbourhood_make(const tide_problem *parent, const uint64_t *offsets, uint32_t begin, uint32_t end,
                                     tide_neighbourhood *out, tide_error *err) {
    *out = (tide_neighbourhood){
        .problem = {.n_ticks = end - begin, .align_bytes = parent->align_bytes, .has_fixed = true}};
    cutting c = {.parent = parent, .offsets = offsets, .begin = begin, .end = end, .out = out};
    if (cut(&c) == TIDE_OK) return TIDE_OK;
    tide__neighbourhood_deinit(out);
    return TIDE_NO_MEMORY(err, "for a part of %zu tensors", parent->n);
}

void tide__neighbourhood_deinit(tide_neighbourhood *w) {
    tide__problem_deinit(&w->problem);
    tide_host_free(w->items);
    *w = (tide_neighbourhood){0};
}

// ---- large neighbourhood search ----

enum { STARTS = 6, RUNS = 40 }; // of one window

typedef struct lns {
    const tide_problem *problem;
    tide_local_budget *budget;
    uint64_t target_bytes;
    uint64_t *offsets;
    tide_rng rng;
    uint64_t widening; // by how many halves of itself a top item's span is extended to each side
} lns;

/// The item with the highest end, or, every third time, any that ends above the target; SIZE_MAX: none does.
static size_t choose_top(lns *w) {
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
static tide_status order_by_offset(const lns *w, const tide_neighbourhood *part, uint32_t **out, tide_error *err) {
    by_offset *list = tide_host_calloc(part->problem.n, sizeof *list);
    uint32_t *order = tide_host_calloc(part->problem.n, sizeof *order);
    if (list == NULL || order == NULL) {
        tide_host_free(list);
        tide_host_free(order);
        return TIDE_NO_MEMORY(err, "to sort %zu tensors", part->problem.n);
    }
    for (size_t k = 0; k < part->problem.n; k++)
        list[k] = (by_offset){k < part->n_free ? w->offsets[part->items[k]] : 0, (uint32_t)k};
    qsort(list, part->problem.n, sizeof *list, compare_offsets);
    for (size_t k = 0; k < part->problem.n; k++) order[k] = list[k].item;
    tide_host_free(list);
    *out = order;
    return TIDE_OK;
}

static uint64_t excess_of(const lns *w, const tide_neighbourhood *part) {
    uint64_t excess = 0;
    for (size_t k = 0; k < part->n_free; k++) {
        const uint64_t end = w->offsets[part->items[k]] + part->problem.items[k].size_bytes;
        if (end > w->target_bytes) excess += end - w->target_bytes;
    }
    return excess;
}

/// Place the items of the stretch anew. *changed: no worse than before and taken over; *better: less excess.
static tide_status improve(lns *w, const tide_neighbourhood *part, bool *changed, bool *better, tide_error *err) {
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

static tide_status step(lns *w, const tide_item *top, bool *changed, tide_error *err) {
    const uint64_t more = (uint64_t)(top->end - top->begin) * w->widening / 2;
    const uint32_t begin = more < top->begin ? (uint32_t)(top->begin - more) : 0;
    const uint32_t end = more < w->problem->n_ticks - top->end ? (uint32_t)(top->end + more) : w->problem->n_ticks;
    tide_neighbourhood part;
    TIDE_TRY(tide__neighbourhood_make(w->problem, w->offsets, begin, end, &part, err));
    bool better = false;
    const tide_status st = improve(w, &part, changed, &better, err);
    tide__neighbourhood_deinit(&part);
    const bool whole = begin == 0 && end == w->problem->n_ticks;
    w->widening = better || whole ? 1 : 2 * w->widening;
    return st;
}

tide_status tide__improve_by_neighbourhoods(const tide_problem *problem, tide_local_budget *budget,
                                            uint64_t target_bytes, uint64_t seed, uint64_t *offsets,
                                            void (*changed)(void *self, const uint64_t *offsets), void *self,
                                            tide_error *err) {
    lns w = {.problem = problem,
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
