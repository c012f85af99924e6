// SPDX-License-Identifier: MIT
//
// worklist: what a strategy places, in its order. See worklist.h.
#include "planner/worklist.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"

bool tide__takes_space(const tide_lifetime *item) { return !item->persistent && item->size_bytes > 0; }

tide_status tide__worklist_make(const tide_lifetimes *lt, tide_worklist_order *order, tide_worklist *out,
                                tide_error *err) {
    *out = (tide_worklist){.items = tide_host_calloc(lt->n, sizeof *out->items)};
    if (out->items == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to sort %zu lifetimes", lt->n);
    for (size_t i = 0; i < lt->n; i++) {
        if (tide__takes_space(&lt->items[i])) out->items[out->n++] = &lt->items[i];
    }
    qsort(out->items, out->n, sizeof *out->items, order);
    return TIDE_OK;
}

void tide__worklist_deinit(tide_worklist *w) {
    tide_host_free(w->items);
    *w = (tide_worklist){0};
}

static const tide_lifetime *at(const void *element) { return *(const tide_lifetime *const *)element; }

static int compare_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }
static int compare_i64(int64_t a, int64_t b) { return (a > b) - (a < b); }

int tide__compare_names(const tide_lifetime *a, const tide_lifetime *b) { return strcmp(a->name, b->name); }

int tide__by_size_desc(const void *a, const void *b) {
    const int c = compare_u64(tide_lifetime_aligned_bytes(at(b)), tide_lifetime_aligned_bytes(at(a)));
    return c != 0 ? c : tide__compare_names(at(a), at(b));
}

int tide__by_birth(const void *a, const void *b) {
    const int c = compare_i64(at(a)->begin_step, at(b)->begin_step);
    return c != 0 ? c : tide__by_size_desc(a, b);
}

int tide__by_align_desc(const void *a, const void *b) {
    int c = compare_u64(at(b)->align_bytes, at(a)->align_bytes);
    if (c == 0) c = compare_i64(at(a)->begin_step, at(b)->begin_step);
    return c != 0 ? c : tide__compare_names(at(a), at(b));
}
