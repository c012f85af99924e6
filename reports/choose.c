// SPDX-License-Identifier: MIT
//
// choose: which items the page shows without a script, and in which order; which ones its script knows. See gather.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "core/base/host_alloc.h"
#include "reports/gather.h"

/// Items in the order of how much they matter: of a higher rank, then larger, then earlier.
typedef struct order {
    const tide_report_side *side;
    bool by_rank; ///< false: all are of one rank
} order;

static bool is_alive(const tide_report_side *s, uint32_t i) {
    return tide_items_alive_at(s->items, i, s->facts->peak.t);
}

bool tide_report_is_folded(const tide_report_side *s, uint32_t item) {
    return s->weights.folded && tide_items_shape(s->items, item)->kind == TIDE_KIND_PERSISTENT && is_alive(s, item);
}

static int rank_of(const order *o, uint32_t i) {
    return o->by_rank && is_alive(o->side, i) && !tide_report_is_folded(o->side, i);
}

static bool is_smaller(const order *o, uint32_t a, uint32_t b) {
    const int rank_a = rank_of(o, a), rank_b = rank_of(o, b);
    if (rank_a != rank_b) return rank_a < rank_b;
    const uint64_t x = tide_items_shape(o->side->items, a)->size_bytes;
    const uint64_t y = tide_items_shape(o->side->items, b)->size_bytes;
    return x != y ? x < y : a > b;
}

/// A heap of the first so far, the last of them on top.
static void sift_down(const order *o, uint32_t *heap, size_t n) {
    for (size_t at = 0, child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_smaller(o, heap[child + 1], heap[child])) child++;
        if (!is_smaller(o, heap[child], heap[at])) return;
        const uint32_t item = heap[at];
        heap[at] = heap[child];
        heap[child] = item;
    }
}

static void sift_up(const order *o, uint32_t *heap, size_t at) {
    for (; at > 0 && is_smaller(o, heap[at], heap[(at - 1) / 2]); at = (at - 1) / 2) {
        const uint32_t item = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = item;
    }
}

static int by_number(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/// The first `max` items in the order of the items, all when there are no more; *rest_bytes: sum of the others' sizes.
static tide_status find_first(const order *o, size_t max, uint32_t **out, size_t *n, uint64_t *rest_bytes,
                              tide_error *err) {
    const tide_items *items = o->side->items;
    if (max > items->n) max = items->n;
    *n = 0;
    *rest_bytes = 0;
    if (max == 0) return TIDE_OK;
    uint32_t *heap;
    TIDE_TRY(TIDE_NEW(&heap, max, err, "for the report"));
    for (uint32_t i = 0; i < items->n; i++) {
        *rest_bytes += tide_items_shape(items, i)->size_bytes;
        if (*n < max) {
            heap[*n] = i;
            sift_up(o, heap, (*n)++);
        } else if (is_smaller(o, heap[0], i)) {
            heap[0] = i;
            sift_down(o, heap, max);
        }
    }
    for (size_t k = 0; k < max; k++) *rest_bytes -= tide_items_shape(items, heap[k])->size_bytes;
    qsort(heap, max, sizeof *heap, by_number);
    *out = heap;
    return TIDE_OK;
}

/// What is alive at the peak goes to the front, by size; folded weights go to the end.
static void put_in_order(tide_report_side *s) {
    const order o = {s, false};
    uint32_t sorted[TIDE_REPORT_MAX_STILL];
    size_t n = 0;
    for (size_t k = 0; k < s->n_largest; k++) {
        if (is_alive(s, s->largest[k]) && !tide_report_is_folded(s, s->largest[k])) sorted[n++] = s->largest[k];
    }
    s->n_alive = n;
    for (size_t k = 1; k < n; k++) { // at most TIDE_REPORT_MAX_STILL
        const uint32_t item = sorted[k];
        size_t at = k;
        for (; at > 0 && is_smaller(&o, sorted[at - 1], item); at--) sorted[at] = sorted[at - 1];
        sorted[at] = item;
    }
    for (size_t k = 0; k < s->n_largest; k++)
        if (!is_alive(s, s->largest[k])) sorted[n++] = s->largest[k];
    s->n_not_alive = n - s->n_alive;
    for (size_t k = 0; k < s->n_largest; k++)
        if (tide_report_is_folded(s, s->largest[k])) sorted[n++] = s->largest[k];
    if (n > 0) memcpy(s->largest, sorted, n * sizeof *sorted);
}

/// Sums the weights that are alive at the peak.
static void sum_weights(tide_report_side *s) {
    tide_report_weights *w = &s->weights;
    for (size_t k = 0; k < s->why.live.n; k++) {
        const tide_live_item *x = &s->why.live.items[k];
        if (x->shape.kind == TIDE_KIND_PERSISTENT) w->bytes += x->counts_bytes;
    }
    for (uint32_t i = 0; i < s->items->n; i++) {
        const tide_item_shape *shape = tide_items_shape(s->items, i);
        if (shape->kind != TIDE_KIND_PERSISTENT || !is_alive(s, i)) continue;
        const int64_t begin = tide_items_begin(s->items, i), end = tide_items_end(s->items, i);
        w->begin = w->n == 0 || begin < w->begin ? begin : w->begin;
        w->end = w->n == 0 || end > w->end ? end : w->end;
        w->size_bytes += shape->size_bytes;
        w->reserved_bytes += shape->reserved_bytes;
        w->n++;
    }
    const uint64_t others = s->facts->peak_bytes - w->bytes;
    w->folded = w->n > 1 && others > 0 && w->bytes > others;
}

tide_status tide_report_choose(tide_report_side *s, tide_error *err) {
    const order by_rank = {s, true}, by_size = {s, false};
    sum_weights(s);
    TIDE_TRY(find_first(&by_rank, TIDE_REPORT_MAX_STILL, &s->largest, &s->n_largest, &s->rest_bytes, err));
    put_in_order(s);
    s->n_live = s->items->n;
    if (s->items->n <= TIDE_REPORT_MAX_LIVE) return TIDE_OK;
    return find_first(&by_size, TIDE_REPORT_MAX_LIVE, &s->live, &s->n_live, &s->live_rest_bytes, err);
}

size_t tide_report_live_index(const tide_report_side *s, uint32_t item) {
    if (s->live == NULL) return item;
    size_t lo = 0, hi = s->n_live;
    TIDE_BISECT(lo, hi, s->live[mid] < item);
    return lo < s->n_live && s->live[lo] == item ? lo : SIZE_MAX;
}
