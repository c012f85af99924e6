// SPDX-License-Identifier: MIT
//
// placed list: finding gaps among placed tensors. See placed_list.h.
//
// Two ways to those that are alive beside the new one, in order of offset. Are they few, the index by time names them
// and they are sorted; are they many, sorting would cost more than a walk over everything placed, which is kept sorted
// for that. What was placed since the last walk waits unsorted at the end:
//
//     items  | by begin_bytes ........... | as they came |
//            0                         n_sorted          n
#include "planner/placed_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/placed_index.h"

typedef struct placed_item {
    uint64_t begin_bytes, end_bytes; // half-open
    int64_t begin_step, end_step;
} placed_item;

typedef struct placed_list {
    const tide_worklist *work;
    tide_placed_index index;
    placed_item *places; // [work->n] by position in the worklist
    placed_item *items;  // [work->n] see above
    size_t n, n_sorted;
    uint32_t *near_i;        // [max_near] scratch
    placed_item *near_items; // [max_near] scratch
    size_t max_near;
} placed_list;

/// As many neighbours as may be sorted in the time of a walk over `n` items (measured: a walk costs about 1.5 ns an
/// item, sorting about 100 ns an item).
static size_t few_of(size_t n) { return 32 + n / 64; }

static tide_status list_init(placed_list *list, const tide_worklist *work) {
    *list = (placed_list){.work = work, .max_near = few_of(work->n)};
    TIDE_TRY(tide__placed_index_init(&list->index, work));
    list->places = tide_host_calloc(work->n, sizeof *list->places);
    list->items = tide_host_calloc(work->n, sizeof *list->items);
    list->near_i = tide_host_calloc(list->max_near, sizeof *list->near_i);
    list->near_items = tide_host_calloc(list->max_near, sizeof *list->near_items);
    const bool good = list->places != NULL && list->items != NULL && list->near_i != NULL && list->near_items != NULL;
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

static void list_deinit(placed_list *list) {
    tide__placed_index_deinit(&list->index);
    tide_host_free(list->places);
    tide_host_free(list->items);
    tide_host_free(list->near_i);
    tide_host_free(list->near_items);
}

// ---- order of offset ----

static int by_offset(const void *a, const void *b) {
    const placed_item *x = a, *y = b;
    return (x->begin_bytes > y->begin_bytes) - (x->begin_bytes < y->begin_bytes);
}

/// Number of sorted items that begin at or below `begin_bytes`: where a new one is entered.
static size_t entry_point(const placed_list *list, uint64_t begin_bytes) {
    size_t lo = 0, hi = list->n_sorted;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (list->items[mid].begin_bytes <= begin_bytes) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void sort_rest(placed_list *list) {
    enum { FEW_MOVES = 128 }; // beyond that sorting everything is cheaper than entering one by one
    if (list->n - list->n_sorted > FEW_MOVES) {
        qsort(list->items, list->n, sizeof *list->items, by_offset);
        list->n_sorted = list->n;
    }
    for (; list->n_sorted < list->n; list->n_sorted++) {
        const placed_item item = list->items[list->n_sorted];
        const size_t i = entry_point(list, item.begin_bytes);
        memmove(list->items + i + 1, list->items + i, (list->n_sorted - i) * sizeof item);
        list->items[i] = item;
    }
}

// ---- gaps ----

/// The place for `bytes` at `align` among those of `items`, in order of offset, that live together with `item`; false
/// when it overflows. `floor` runs along the highest end seen so far, so overlapping placed tensors (they live at
/// different times) are one obstacle.
static bool find_gap(const placed_item *items, size_t n, const tide_lifetime *item, uint64_t bytes, tide_gap_rule rule,
                     uint64_t *out) {
    uint64_t floor = 0, best_gap = UINT64_MAX, best = 0;
    for (size_t i = 0; i < n; i++) {
        const placed_item *p = &items[i];
        if (p->end_step <= item->begin_step || item->end_step <= p->begin_step) continue;
        uint64_t at, end;
        if (!tide_align_up(floor, item->align_bytes, &at) || !tide_add_u64(at, bytes, &end)) return false;
        if (end <= p->begin_bytes && p->begin_bytes - at < best_gap) {
            best_gap = p->begin_bytes - at;
            best = at;
            if (rule == TIDE_GAP_RULE_FIRST) break;
        }
        if (p->end_bytes > floor) floor = p->end_bytes;
    }
    if (best_gap != UINT64_MAX) {
        *out = best;
        return true;
    }
    uint64_t end;
    return tide_align_up(floor, item->align_bytes, out) && tide_add_u64(*out, bytes, &end);
}

static bool choose_place(placed_list *list, const tide_lifetime *item, uint64_t bytes, tide_gap_rule rule,
                         uint64_t *out) {
    const size_t max = few_of(list->n);
    const size_t n = tide__placed_index_find(&list->index, item, list->near_i, max);
    if (n > max) {
        sort_rest(list);
        return find_gap(list->items, list->n, item, bytes, rule, out);
    }
    for (size_t k = 0; k < n; k++) list->near_items[k] = list->places[list->near_i[k]];
    qsort(list->near_items, n, sizeof *list->near_items, by_offset);
    return find_gap(list->near_items, n, item, bytes, rule, out);
}

static void enter(placed_list *list, size_t work_i, uint64_t at, uint64_t bytes) {
    const tide_lifetime *item = list->work->items[work_i];
    const placed_item placed = {at, at + bytes, item->begin_step, item->end_step};
    list->places[work_i] = placed;
    list->items[list->n++] = placed;
    tide__placed_index_add(&list->index, list->work, work_i);
}

static tide_status place_all(placed_list *list, tide_memory_plan *plan, tide_gap_rule rule, tide_error *err) {
    for (size_t k = 0; k < list->work->n; k++) {
        const tide_lifetime *item = list->work->items[k];
        const uint64_t bytes = tide_lifetime_aligned_bytes(item);
        uint64_t at = 0;
        if (!choose_place(list, item, bytes, rule, &at))
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "no offset below 2^64 is left for tensor '%s' of %llu bytes",
                             item->name, (unsigned long long)bytes);
        enter(list, k, at, bytes);
        plan->offsets[item - plan->lifetimes.items] = at;
        if (at + bytes > plan->bytes) plan->bytes = at + bytes;
    }
    return TIDE_OK;
}

tide_status tide__place_in_order(tide_memory_plan *plan, const tide_worklist *work, tide_gap_rule rule,
                                 tide_error *err) {
    placed_list list;
    plan->bytes = 0;
    tide_status st = list_init(&list, work);
    if (st != TIDE_OK) {
        st = TIDE_FAIL(err, st, "no memory to place %zu tensors", work->n);
    } else {
        st = place_all(&list, plan, rule, err);
    }
    list_deinit(&list);
    return st;
}
