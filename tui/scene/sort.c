// SPDX-License-Identifier: MIT
//
// Lists in the order of one of their columns: copies of the rows, made when the order or the rows change. Whatever
// reads a list afterwards (drawing, the selection, documents) reads the copy. See scene_parts.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"
#include "tui/scene/tables.h"

static uint64_t key_of(const tide__frame *f, tide_tui_list list, int result, const tide_table *t, size_t column) {
    const tide__query_result *r = &f->cache->results[result];
    uint64_t key = tide__key(tide__key(tide__key(1, r->key), r->a_serial), (uintptr_t)t->rows);
    key = tide__key(tide__key(key, t->n_rows), f->cache->items_serial);
    return tide__key(tide__key(key, column), f->st->orders[list].reverse) | 1;
}

static tide_status copy_in_order(tide__frame *f, const tide_table *t, const uint32_t *order, tide__sorted_list *out) {
    TIDE_TRY(TIDE_GROW(&out->rows, &out->cap_bytes, t->n_rows * t->row_bytes, f->err, "to sort a list"));
    for (size_t i = 0; i < t->n_rows; i++)
        memcpy(out->rows + i * t->row_bytes, (const char *)t->rows + order[i] * t->row_bytes, t->row_bytes);
    out->n = t->n_rows;
    return TIDE_OK;
}

static tide_status sort_rows(tide__frame *f, tide_tui_list list, const tide_table *t, size_t column,
                             tide__sorted_list *out) {
    uint32_t *order;
    TIDE_TRY(TIDE_NEW(&order, t->n_rows, f->err, "to sort a list"));
    tide_status st = tide_table_order(t, column, f->st->orders[list].reverse, order, f->err);
    if (st == TIDE_OK) st = copy_in_order(f, t, order, out);
    tide_host_free(order);
    return st;
}

tide_status tide__scene_sort(tide__frame *f, tide_tui_list list, int result, void **rows) {
    const tide_tui_list_order *order = &f->st->orders[list];
    tide__sorted_list *sorted = &f->cache->sorted[list];
    tide_table t;
    f->out->sorted[list].column = "";
    if (order->column[0] == 0 || !tide_tui_table_of_list(f->out, list, &t) || t.n_rows == 0 ||
        t.n_rows > TIDE_TUI_MAX_SORTED)
        return TIDE_OK;
    const size_t column = tide_tui_column_named(&t, order->column);
    if (column == SIZE_MAX) return TIDE_OK;
    const uint64_t key = key_of(f, list, result, &t, column);
    if (sorted->key != key || sorted->n != t.n_rows) {
        sorted->key = 0;
        TIDE_TRY(sort_rows(f, list, &t, column, sorted));
        sorted->key = key;
    }
    f->out->sorted[list].column = t.columns[column].key;
    f->out->sorted[list].falls = tide_unit_falls(t.columns[column].unit) != order->reverse;
    *rows = sorted->rows;
    return TIDE_OK;
}
