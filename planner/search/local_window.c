// SPDX-License-Identifier: MIT
//
// window: see local_window.h.
#include "planner/search/local_window.h"

#include "core/base/host_alloc.h"

typedef struct cutting {
    const tide_problem *parent;
    const uint64_t *offsets;
    uint32_t begin, end;
    tide_window *out;
    size_t cap_items, cap_rects, cap_free;
} cutting;

static bool is_within(const cutting *c, const tide_item *item) {
    return item->begin >= c->begin && item->end <= c->end && item->fixed_offset == TIDE_NO_OFFSET;
}

/// The part of the item's shape that the window shows.
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
    if (copy.n_rects == 0) return TIDE_OK; // a gap looks out of the window
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

tide_status tide__window_make(const tide_problem *parent, const uint64_t *offsets, uint32_t begin, uint32_t end,
                              tide_window *out, tide_error *err) {
    *out = (tide_window){.problem = {.n_ticks = end - begin, .align_bytes = parent->align_bytes, .has_fixed = true}};
    cutting c = {.parent = parent, .offsets = offsets, .begin = begin, .end = end, .out = out};
    if (cut(&c) == TIDE_OK) return TIDE_OK;
    tide__window_deinit(out);
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a part of %zu tensors", parent->n);
}

void tide__window_deinit(tide_window *w) {
    tide__problem_deinit(&w->problem);
    tide_host_free(w->items);
    *w = (tide_window){0};
}
