// SPDX-License-Identifier: MIT
//
// What grouped rows are called, for people. See rows.h.
#include "analysis/rows_internal.h"
#include "core/base/host_alloc.h"

static void print_size_class(uint64_t bytes, tide_text *t) {
    const unsigned c = tide__size_class(bytes);
    char lo[24], hi[24];
    if (c == 0) {
        tide_text_add(t, "0 B");
    } else if (c == 64) {
        tide_text_addf(t, "%s and more", tide_format_bytes(UINT64_C(1) << 63, lo, sizeof lo));
    } else {
        tide_text_addf(t, "%s to %s", tide_format_bytes(UINT64_C(1) << (c - 1), lo, sizeof lo),
                       tide_format_bytes((UINT64_C(1) << c) - 1, hi, sizeof hi));
    }
}

static void print_key(const tide_items *items, tide_row_group by, bool is_trace, uint32_t item, tide_text *t) {
    const tide_item_site *s = tide_items_site(items, item);
    const tide_item_shape *shape = tide_items_shape(items, item);
    if (by == TIDE_ROW_GROUP_KIND) {
        tide_text_add(t, tide_memory_kind_name(shape->kind));
    } else if (by == TIDE_ROW_GROUP_SIZE) {
        print_size_class(shape->size_bytes, t);
    } else if (by == TIDE_ROW_GROUP_OWNER) {
        tide_text_add(t, s->owner[0] != '\0' ? s->owner : (is_trace ? "(outside all scopes)" : "(no operator)"));
    } else {
        tide_text_add(t, s->name[0] != '\0' ? s->name : "(no name)");
        if (s->owner[0] != '\0') tide_text_addf(t, " in %s", s->owner);
        if (s->owner[0] != '\0' && s->step >= 0) tide_text_addf(t, " #%lld", (long long)s->step);
    }
}

/// All texts in one piece, which stands behind the last key.
tide_status tide__rows_make_keys(const tide_items *items, tide_row_group by, bool is_trace, tide_rows *r) {
    tide_text all = {0};
    r->keys = tide_host_calloc(r->n + 1, sizeof *r->keys);
    size_t *at = tide_host_alloc((r->n + 1) * sizeof *at);
    tide_status st = r->keys != NULL && at != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t row = 0; st == TIDE_OK && row < r->n; row++) {
        at[row] = all.len;
        print_key(items, by, is_trace, r->members[r->first[row]], &all);
        tide_text_add_n(&all, "", 1);
    }
    if (all.failed) st = TIDE_ERR_NOMEM;
    for (size_t row = 0; st == TIDE_OK && row < r->n; row++) r->keys[row] = all.data + at[row];
    if (st == TIDE_OK) {
        r->keys[r->n] = all.data;
    } else {
        tide_text_deinit(&all);
    }
    tide_host_free(at);
    return st;
}
