// SPDX-License-Identifier: MIT
//
// Questions to a table of items. See items.h; how it is made is in items_build.c.
#include "analysis/items.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/items_internal.h"
#include "core/base/host_alloc.h"

void tide_items_deinit(tide_items *items) {
    tide__items_inside *in = items->inside;
    tide__items_unpack(items);
    tide_host_free(items->place);
    tide_host_free(items->sites);
    tide_host_free(items->shapes);
    if (in != NULL) {
        for (size_t i = 0; i < in->n_pages; i++) tide_host_free(in->pages[i]);
        tide_host_free(in->pages);
        tide_host_free(in->by_id);
        tide_host_free(in->reach);
        tide_host_free(in->site_items);
        tide__site_names_deinit(&in->names);
        tide_host_free(in);
    }
    *items = (tide_items){0};
}

static bool is_planned(const tide_items *items, uint32_t i) { return tide_items_shape(items, i)->is_planned; }

/// First place in by_id with that number or a larger one; a planned tensor stands behind the block of its number.
static size_t place_of_id(const tide_items *items, const uint32_t *by_id, uint64_t id) {
    size_t lo = 0, hi = items->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (tide_items_id(items, by_id[mid]) < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

uint32_t tide_items_find(const tide_items *items, uint64_t id) {
    const tide__items_inside *in = items->inside;
    if (in != NULL && in->by_id != NULL) {
        const size_t at = place_of_id(items, in->by_id, id);
        return at < items->n && tide_items_id(items, in->by_id[at]) == id ? in->by_id[at] : TIDE_NO_ITEM;
    }
    uint32_t tensor = TIDE_NO_ITEM;
    for (uint32_t i = 0; i < items->n; i++) {
        if (tide_items_id(items, i) != id) continue;
        if (!is_planned(items, i)) return i;
        if (tensor == TIDE_NO_ITEM) tensor = i;
    }
    return tensor;
}

uint32_t tide_items_find_tensor(const tide_items *items, uint64_t index) {
    const tide__items_inside *in = items->inside;
    if (in != NULL && in->by_id != NULL) {
        for (size_t at = place_of_id(items, in->by_id, index);
             at < items->n && tide_items_id(items, in->by_id[at]) == index; at++)
            if (is_planned(items, in->by_id[at])) return in->by_id[at];
        return TIDE_NO_ITEM;
    }
    for (uint32_t i = 0; i < items->n; i++)
        if (tide_items_id(items, i) == index && is_planned(items, i)) return i;
    return TIDE_NO_ITEM;
}

uint32_t tide_items_find_at(const tide_items *items, uint64_t id, int64_t begin, uint64_t size_bytes) {
    size_t lo = 0, hi = items->n;
    while (lo < hi) { // the first that does not stand before (begin, size, id)
        const size_t mid = lo + (hi - lo) / 2;
        const uint64_t size = tide_items_shape(items, mid)->size_bytes;
        const bool before = tide_items_begin(items, mid) != begin
                                ? tide_items_begin(items, mid) < begin
                                : (size != size_bytes ? size > size_bytes : tide_items_id(items, (uint32_t)mid) < id);
        if (before) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    const bool found = lo < items->n && tide_items_begin(items, lo) == begin &&
                       tide_items_id(items, (uint32_t)lo) == id &&
                       tide_items_shape(items, lo)->size_bytes == size_bytes;
    return found ? (uint32_t)lo : TIDE_NO_ITEM;
}

/// Number of items that begin before `t`.
static uint32_t begun_before(const tide_items *items, int64_t t) {
    size_t lo = 0, hi = items->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (tide_items_begin(items, mid) < t) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return (uint32_t)lo;
}

void tide_items_range(const tide_items *items, int64_t t0, int64_t t1, uint32_t *from, uint32_t *to) {
    const tide__items_inside *in = items->inside;
    size_t lo = 0, hi = in != NULL && in->reach != NULL ? items->n / TIDE__REACH_ITEMS : 0;
    while (lo < hi) { // the first stretch up to whose end something lives on
        const size_t mid = lo + (hi - lo) / 2;
        if (in->reach[mid] <= t0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    *from = (uint32_t)(lo * TIDE__REACH_ITEMS);
    *to = begun_before(items, t1);
    if (*from > *to) *from = *to;
}

bool tide_items_alive_at(const tide_items *items, uint32_t i, int64_t t) {
    return tide_items_begin(items, i) <= t && t < tide_items_end(items, i);
}

const tide__site_names *tide__items_names(const tide_items *items) {
    const tide__items_inside *in = items->inside;
    return in != NULL ? &in->names : NULL;
}
