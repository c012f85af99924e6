// SPDX-License-Identifier: MIT
//
// placed list: finding gaps among placed tensors. See placed_list.h.
#include "planner/placed_list.h"

#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"

/// The place for `bytes` at `align` among the placed that live together with `item`; false when it overflows.
/// `floor` runs along the highest end seen so far, so overlapping placed tensors (they live at different times)
/// are one obstacle.
static bool find_gap(const tide_placed_list *list, const tide_lifetime *item, uint64_t bytes, tide_gap_rule rule,
                     uint64_t *out) {
    uint64_t floor = 0, best_gap = UINT64_MAX, best = 0;
    for (size_t i = 0; i < list->n; i++) {
        const tide_placed_item *p = &list->items[i];
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

/// Number of items that begin at or below `begin_bytes`: where the new one is entered.
static size_t entry_point(const tide_placed_list *list, uint64_t begin_bytes) {
    size_t lo = 0, hi = list->n;
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

tide_status tide__placed_list_put(tide_placed_list *list, const tide_lifetime *item, tide_gap_rule rule,
                                  uint64_t *offset, tide_error *err) {
    const uint64_t bytes = tide_lifetime_aligned_bytes(item);
    uint64_t at = 0;
    if (!find_gap(list, item, bytes, rule, &at))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "no offset below 2^64 is left for tensor '%s' of %llu bytes",
                         item->name, (unsigned long long)bytes);
    if (tide_host_grow(&list->items, &list->cap, list->n + 1, sizeof *list->items) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to place tensor '%s'", item->name);
    const size_t i = entry_point(list, at);
    memmove(list->items + i + 1, list->items + i, (list->n - i) * sizeof *list->items);
    list->items[i] = (tide_placed_item){at, at + bytes, item->begin_step, item->end_step};
    list->n++;
    *offset = at;
    return TIDE_OK;
}

void tide__placed_list_deinit(tide_placed_list *list) {
    tide_host_free(list->items);
    *list = (tide_placed_list){0};
}

tide_status tide__place_in_order(tide_memory_plan *plan, const tide_worklist *work, tide_gap_rule rule,
                                 tide_error *err) {
    tide_placed_list list = {0};
    tide_status st = TIDE_OK;
    plan->bytes = 0;
    for (size_t k = 0; k < work->n && st == TIDE_OK; k++) {
        const tide_lifetime *item = work->items[k];
        uint64_t at;
        st = tide__placed_list_put(&list, item, rule, &at, err);
        if (st != TIDE_OK) break;
        plan->offsets[item - plan->lifetimes.items] = at;
        const uint64_t end = at + tide_lifetime_aligned_bytes(item);
        if (end > plan->bytes) plan->bytes = end;
    }
    tide__placed_list_deinit(&list);
    return st;
}
