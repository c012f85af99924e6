// SPDX-License-Identifier: MIT
//
// pairs, the list: which items meet in time and how they may lie to each other. See pairs.h.
//
// Two rectangles that share a tick forbid an open interval of distances between their items; what several rectangles
// forbid is a union of those, and what is left between them are the ways of the pair:
//
//     distance a - b    … a below b ]   (forbidden)   [ a hooked into b ]   (forbidden)   [ a above b …
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "planner/search/pairs_internal.h"

// ---- ways ----

/// Whole distances from lo to hi, both inclusive, at which two rectangles overlap.
typedef struct forbidden {
    int64_t lo, hi;
} forbidden;

typedef struct lister {
    tide_pairs *out;
    forbidden *list; // scratch
    size_t n, cap;
} lister;

static int compare_forbidden(const void *a, const void *b) {
    const forbidden *x = a, *y = b;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    return (x->hi > y->hi) - (x->hi < y->hi);
}

static tide_status list_forbidden(lister *l, const tide_item *a, const tide_item *b) {
    const tide_problem *p = l->out->problem;
    l->n = 0;
    for (uint32_t i = 0; i < a->n_rects; i++) {
        const tide_rect *r = &tide__rects_of(p, a)[i];
        for (uint32_t k = 0; k < b->n_rects; k++) {
            const tide_rect *s = &tide__rects_of(p, b)[k];
            if (r->end <= s->begin || s->end <= r->begin) continue;
            TIDE_TRY(tide_host_grow(&l->list, &l->cap, l->n + 1, sizeof *l->list));
            l->list[l->n++] = (forbidden){(int64_t)s->lo_bytes - (int64_t)r->hi_bytes + 1,
                                          (int64_t)s->hi_bytes - (int64_t)r->lo_bytes - 1};
        }
    }
    if (l->n > 1) qsort(l->list, l->n, sizeof *l->list, compare_forbidden);
    return TIDE_OK;
}

static tide_status add_way(tide_pairs *out, int64_t lo, int64_t hi) {
    if (lo > hi) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&out->ways, &out->cap_ways, out->n_ways + 1, sizeof *out->ways));
    out->ways[out->n_ways++] = (tide_pair_way){lo, hi};
    return TIDE_OK;
}

static bool are_twins(const tide_problem *p, const tide_item *a, const tide_item *b) {
    if (a->size_bytes != b->size_bytes || a->align_bytes != b->align_bytes || a->n_rects != b->n_rects) return false;
    if (a->fixed_offset != TIDE_NO_OFFSET || b->fixed_offset != TIDE_NO_OFFSET) return false;
    for (uint32_t i = 0; i < a->n_rects; i++) {
        const tide_rect *r = &tide__rects_of(p, a)[i], *s = &tide__rects_of(p, b)[i];
        if (r->begin != s->begin || r->end != s->end || r->lo_bytes != s->lo_bytes || r->hi_bytes != s->hi_bytes)
            return false;
    }
    return true;
}

static tide_status add_pair(lister *l, uint32_t a, uint32_t b) {
    tide_pairs *out = l->out;
    const tide_item *x = &out->problem->items[a], *y = &out->problem->items[b];
    if (x->end <= y->begin || y->end <= x->begin) return TIDE_OK;
    TIDE_TRY(list_forbidden(l, x, y));
    if (l->n == 0) return TIDE_OK;
    const size_t first = out->n_ways;
    int64_t from = -TIDE_PAIR_FAR;
    for (size_t k = 0; k < l->n; k++) {
        TIDE_TRY(add_way(out, from, l->list[k].lo - 1));
        if (l->list[k].hi + 1 > from) from = l->list[k].hi + 1;
    }
    TIDE_TRY(add_way(out, from, TIDE_PAIR_FAR));
    // Twins may change places: the first of them lies no higher.
    size_t n = out->n_ways - first;
    if (are_twins(out->problem, x, y)) {
        while (n > 1 && out->ways[first + n - 1].lo > 0) n--;
    }
    TIDE_TRY(tide_host_grow(&out->pairs, &out->cap_pairs, out->n_pairs + 1, sizeof *out->pairs));
    out->pairs[out->n_pairs++] = (tide_pair){a, b, (uint32_t)first, (uint32_t)n};
    return TIDE_OK;
}

static tide_status list_pairs(tide_pairs *out) {
    lister l = {.out = out};
    tide_status st = TIDE_OK;
    for (uint32_t a = 0; a < out->problem->n && st == TIDE_OK; a++) {
        for (uint32_t b = a + 1; b < out->problem->n && st == TIDE_OK; b++) st = add_pair(&l, a, b);
    }
    tide_host_free(l.list);
    return st;
}

static tide_status deal_out(tide_pairs *out) {
    const size_t n = out->problem->n;
    out->first_of_item = tide_host_calloc(n + 2, sizeof *out->first_of_item);
    out->of_item = tide_host_calloc(2 * out->n_pairs + 1, sizeof *out->of_item);
    if (out->first_of_item == NULL || out->of_item == NULL) return TIDE_ERR_NOMEM;
    uint32_t *end = out->first_of_item + 1; // of each item, while they are dealt out; then the next one's first
    for (size_t k = 0; k < out->n_pairs; k++) {
        end[out->pairs[k].a + 1]++;
        end[out->pairs[k].b + 1]++;
    }
    for (size_t i = 0; i < n; i++) end[i + 1] += end[i];
    for (size_t k = 0; k < out->n_pairs; k++) {
        out->of_item[end[out->pairs[k].a]++] = (uint32_t)k;
        out->of_item[end[out->pairs[k].b]++] = (uint32_t)k;
    }
    return TIDE_OK;
}

// ---- ticks whose crowd is no part of the next one's ----

/// Whether anything dies at the end of tick `t`: where nothing does, all that is alive is alive at the next one too.
static bool is_peak(const tide_problem *p, uint32_t t) {
    for (size_t r = 0; r < p->n_rects; r++) {
        if (p->rects[r].end == t + 1) return true;
    }
    return false;
}

static tide_status add_peak(tide_pairs *out, uint32_t t) {
    const tide_problem *p = out->problem;
    TIDE_TRY(tide_host_grow(&out->peaks, &out->cap_peaks, out->n_peaks + 1, sizeof *out->peaks));
    out->peaks[out->n_peaks] = t;
    out->first_alive[out->n_peaks++] = (uint32_t)out->n_alive;
    for (uint32_t r = 0; r < p->n_rects; r++) {
        if (p->rects[r].begin > t || p->rects[r].end <= t) continue;
        TIDE_TRY(tide_host_grow(&out->alive, &out->cap_alive, out->n_alive + 1, sizeof *out->alive));
        out->alive[out->n_alive++] = r;
    }
    out->first_alive[out->n_peaks] = (uint32_t)out->n_alive;
    return TIDE_OK;
}

static tide_status list_peaks(tide_pairs *out) {
    const tide_problem *p = out->problem;
    out->first_alive = tide_host_calloc((size_t)p->n_ticks + 1, sizeof *out->first_alive);
    out->item_of = tide_host_calloc(p->n_rects, sizeof *out->item_of);
    if (out->first_alive == NULL || out->item_of == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t i = 0; i < p->n; i++) {
        for (uint32_t r = 0; r < p->items[i].n_rects; r++) out->item_of[p->items[i].first_rect + r] = i;
    }
    for (uint32_t t = 0; t < p->n_ticks; t++) {
        if (is_peak(p, t)) TIDE_TRY(add_peak(out, t));
    }
    return TIDE_OK;
}

// ---- the whole ----

tide_status tide__pairs_create(const tide_problem *problem, tide_pairs **out, tide_error *err) {
    if (problem->n > TIDE_PAIRS_MAX_ITEMS)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "%zu items are more than %d to search pair by pair", problem->n,
                         TIDE_PAIRS_MAX_ITEMS);
    tide_pairs *pairs = tide_host_calloc(1, sizeof *pairs);
    tide_status st = TIDE_ERR_NOMEM;
    if (pairs != NULL) {
        pairs->problem = problem;
        st = list_pairs(pairs);
        if (st == TIDE_OK) st = deal_out(pairs);
        if (st == TIDE_OK) st = list_peaks(pairs);
    }
    if (st != TIDE_OK) {
        tide__pairs_destroy(pairs);
        return TIDE_FAIL(err, st, "no memory for the pairs of %zu items", problem->n);
    }
    *out = pairs;
    return TIDE_OK;
}

void tide__pairs_destroy(tide_pairs *pairs) {
    if (pairs == NULL) return;
    tide_host_free(pairs->pairs);
    tide_host_free(pairs->ways);
    tide_host_free(pairs->of_item);
    tide_host_free(pairs->first_of_item);
    tide_host_free(pairs->peaks);
    tide_host_free(pairs->alive);
    tide_host_free(pairs->first_alive);
    tide_host_free(pairs->item_of);
    tide_host_free(pairs);
}
