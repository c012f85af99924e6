// SPDX-License-Identifier: MIT
//
// Rows: filter, sort, group. See rows.h; groups are in rows_group.c, what a row is in a column in rows_spans.c.
#include "analysis/rows.h"

#include <string.h>

#include "analysis/filter_internal.h"
#include "analysis/items_order.h"
#include "analysis/rows_internal.h"
#include "core/base/host_alloc.h"

enum { RADIX_ITEMS = 1000000 }; // more are merged in place: 32 bytes each would be too much memory

static const char *const sorts[TIDE_N_ROW_SORTS] = {
#define XX(name, text) text,
    TIDE_ROW_SORT_MAP(XX)
#undef XX
};
const char *tide_row_sort_name(tide_row_sort sort) { return (unsigned)sort < TIDE_N_ROW_SORTS ? sorts[sort] : ""; }

static const char *const groups[TIDE_N_ROW_GROUPS] = {
#define XX(name, text) text,
    TIDE_ROW_GROUP_MAP(XX)
#undef XX
};
const char *tide_row_group_name(tide_row_group group) {
    return (unsigned)group < TIDE_N_ROW_GROUPS ? groups[group] : "";
}

bool tide__rows_tell(const tide_progress *progress, double share, const char *what) {
    return progress == NULL || progress->tell == NULL || progress->tell(progress->ctx, share, what);
}

// ---- keys ----

static uint64_t life_of(const tide_items *items, uint32_t i) {
    return (uint64_t)tide_items_end(items, i) - (uint64_t)tide_items_begin(items, i);
}

static uint32_t rank_of(const tide_items *items, uint32_t i) {
    const tide__site_names *names = tide__items_names(items);
    const uint32_t site = tide_items_site_of(items, i);
    return names != NULL ? names->rank[site] : site;
}

void tide__row_values_of(const tide_items *items, uint32_t i, tide_row_sort sort, tide__row_values *out) {
    const tide_item_shape *s = tide_items_shape(items, i);
    *out = (tide__row_values){.bytes = s->size_bytes, .persistent = s->persistent, .fill = (uint8_t)s->fill};
    if (sort == TIDE_ROW_SORT_BEGIN) out->begin = tide_items_begin(items, i);
    if (sort == TIDE_ROW_SORT_OFFSET) out->place = items->place != NULL ? items->place[i] : TIDE_NO_OFFSET;
    if (sort == TIDE_ROW_SORT_NAME) out->rank = rank_of(items, i);
    if (sort == TIDE_ROW_SORT_LIFE) out->life = life_of(items, i);
    if (sort != TIDE_ROW_SORT_AREA) return;
    const unsigned __int128 area = (unsigned __int128)s->size_bytes * life_of(items, i);
    out->area[0] = (uint64_t)(area >> 64);
    out->area[1] = (uint64_t)area;
}

void tide__row_values_add(tide__row_values *v, const tide__row_values *more) {
    const unsigned __int128 a = (unsigned __int128)v->area[0] << 64 | v->area[1];
    const unsigned __int128 b = (unsigned __int128)more->area[0] << 64 | more->area[1];
    if (more->begin < v->begin) v->begin = more->begin;
    if (more->place < v->place) v->place = more->place;
    if (__builtin_add_overflow(v->bytes, more->bytes, &v->bytes)) v->bytes = UINT64_MAX;
    if (more->life > v->life) v->life = more->life;
    if (more->rank < v->rank) v->rank = more->rank;
    v->area[0] = (uint64_t)((a + b) >> 64);
    v->area[1] = (uint64_t)(a + b);
    v->persistent = v->persistent && more->persistent;
    if (v->fill != more->fill) v->fill = TIDE_N_ITEM_FILLS;
}

/// The upper 63 bits of 128, or the number itself where it has no more: rising, and exact below 2^63.
static uint64_t area_key(const uint64_t area[2]) {
    const uint64_t top = UINT64_C(1) << 63;
    if (area[0] == 0 && area[1] < top) return area[1];
    return top | area[0] >> 1;
}

uint64_t tide__row_key(const tide_rows_options *opt, const tide__row_values *v) {
    const uint64_t upper = UINT64_C(1) << 63;
    uint64_t key = 0;
    switch (opt->sort) {
    case TIDE_ROW_SORT_BEGIN:
        key = v->begin > 0 ? (uint64_t)v->begin : 0; // axes begin at 0 or later
        if (opt->reverse) key = upper - 1 - key;
        return opt->persistent_last && v->persistent ? key | upper : key;
    case TIDE_ROW_SORT_OFFSET:
        if (v->place == TIDE_NO_OFFSET) return UINT64_MAX; // those without one are last either way
        return opt->reverse ? UINT64_MAX - 1 - v->place : v->place;
    case TIDE_ROW_SORT_NAME:
        return opt->reverse ? UINT64_MAX - v->rank : v->rank;
    case TIDE_ROW_SORT_SIZE:
        key = v->bytes;
        break;
    case TIDE_ROW_SORT_LIFE:
        key = v->life;
        break;
    default:
        key = area_key(v->area);
        break;
    }
    return opt->reverse ? key : UINT64_MAX - key;
}

// ---- sorting items ----

typedef struct order_ctx {
    const tide_items *items;
    const tide_rows_options *opt;
} order_ctx;

static uint64_t item_key(const order_ctx *x, uint32_t i) {
    tide__row_values v;
    tide__row_values_of(x->items, i, x->opt->sort, &v);
    return tide__row_key(x->opt, &v);
}

static uint64_t number_key(const void *ctx, uint32_t i) { return item_key(ctx, i); }

static tide_status sort_items(const order_ctx *x, uint32_t *members, size_t n) {
    tide__keyed *keys = tide_host_alloc((n + 1) * sizeof *keys), *spare = tide_host_alloc((n + 1) * sizeof *spare);
    const bool good = keys != NULL && spare != NULL;
    for (size_t i = 0; good && i < n; i++)
        keys[i] = (tide__keyed){.key = item_key(x, members[i]), .number = members[i]};
    if (good) tide__keyed_sort(keys, spare, n);
    for (size_t i = 0; good && i < n; i++) members[i] = keys[i].number;
    tide_host_free(keys);
    tide_host_free(spare);
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

// ---- making ----

/// What only_group_of leaves out is hidden too.
static tide_status keep_site(const tide_items *items, uint32_t site, uint8_t **bits) {
    if (*bits == NULL) {
        *bits = tide_host_alloc(items->n / 8 + 1);
        if (*bits == NULL) return TIDE_ERR_NOMEM;
        memset(*bits, 0xff, items->n / 8 + 1);
    }
    tide__items_some sites;
    for (uint32_t i = 0; i < items->n; i++)
        if (tide__items_each(items, i, TIDE_ITEMS_SITE, &sites) != site) (*bits)[i / 8] &= (uint8_t) ~(1u << (i % 8));
    return TIDE_OK;
}

/// What is hidden is counted.
static void count_hidden(const tide_items *items, const uint8_t *bits, tide_rows *r) {
    r->n_members = items->n;
    tide__items_some shapes;
    for (uint32_t i = 0; bits != NULL && i < items->n; i++) {
        const uint32_t shape = tide__items_each(items, i, TIDE_ITEMS_SHAPE, &shapes);
        if (tide__bit(bits, i)) continue;
        const uint64_t bytes = items->shapes[shape].size_bytes;
        if (__builtin_add_overflow(r->hidden_bytes, bytes, &r->hidden_bytes)) r->hidden_bytes = UINT64_MAX;
        r->n_hidden++;
    }
    r->n_members -= r->n_hidden;
}

/// A row for each item that passes.
static tide_status make_single(const tide_items *items, const tide_rows_options *opt, const uint8_t *bits,
                               const tide_progress *progress, tide_rows *r) {
    const order_ctx x = {items, opt};
    tide__sorting telling = {
        .progress = progress, .what = "sorting", .from = 0.5, .to = 1, .total = 3 * items->n + r->n_members};
    const bool sorted = opt->sort == TIDE_ROW_SORT_BEGIN && !opt->reverse && !opt->persistent_last;
    r->n = r->n_members;
    if (!sorted && r->n > RADIX_ITEMS)
        return tide__bucket_sort(bits, items->n, r->n, number_key, &x, &telling, &r->members);
    r->members = tide_host_alloc((r->n + 1) * sizeof *r->members);
    if (r->members == NULL) return TIDE_ERR_NOMEM;
    size_t n = 0;
    for (uint32_t i = 0; i < items->n; i++)
        if (bits == NULL || tide__bit(bits, i)) r->members[n++] = i;
    return sorted ? TIDE_OK : sort_items(&x, r->members, n);
}

static bool has_conditions(const tide_rows_options *opt) {
    for (size_t i = 0; i < opt->n_filters; i++)
        if (opt->filters[i]->n > 0) return true;
    return false;
}

static tide_status make(tide_subject *s, const tide_rows_options *opt, const tide_progress *progress, tide_rows *r,
                        tide_error *err) {
    const tide_items *items = tide_subject_items(s);
    uint8_t *bits = NULL;
    if (has_conditions(opt))
        TIDE_TRY(tide__filters_apply(s, opt->filters, opt->n_filters, opt->cursor, progress, &bits, err));
    tide_status st = TIDE_OK;
    if (opt->group == TIDE_ROW_GROUP_NONE && opt->only_group_of < items->n)
        st = keep_site(items, tide_items_site_of(items, opt->only_group_of), &bits);
    if (st == TIDE_OK) count_hidden(items, bits, r);
    if (st == TIDE_OK && !tide__rows_tell(progress, 0.5, "sorting")) st = TIDE_ERR_CANCELLED;
    if (st == TIDE_OK)
        st = opt->group != TIDE_ROW_GROUP_NONE
                 ? tide__rows_group(items, tide_subject_get_facts(s)->is_trace, opt, bits, progress, r)
                 : make_single(items, opt, bits, progress, r);
    tide_host_free(bits);
    if (st == TIDE_ERR_CANCELLED) return TIDE_FAIL(err, st, "sorting was cancelled");
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for %zu rows", items->n);
}

tide_status tide_rows_make(tide_subject *s, const tide_rows_options *opt, const tide_progress *progress, tide_rows *out,
                           tide_error *err) {
    const tide_items *items = tide_subject_items(s);
    tide_rows r = {0};
    if (items == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot make rows: the items are not loaded");
    if (opt->sort == TIDE_ROW_SORT_OFFSET && items->place == NULL && items->n > 0)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND,
                         "cannot sort by offset: the addresses of more than %d blocks are not kept",
                         (int)TIDE_ITEMS_KEEP_PLACES);
    const tide_status st = make(s, opt, progress, &r, err);
    if (st != TIDE_OK) {
        tide_rows_deinit(&r);
        return st;
    }
    *out = r;
    return TIDE_OK;
}

void tide_rows_deinit(tide_rows *r) {
    if (r->keys != NULL) tide_host_free(r->keys[r->n]); // all texts in one piece
    tide_host_free(r->keys);
    tide_host_free(r->members);
    tide_host_free(r->first);
    tide_host_free(r->bytes);
    tide_host_free(r->reach);
    tide_host_free(r->late);
    tide_host_free(r->latest);
    tide_host_free(r->fill);
    *r = (tide_rows){0};
}

size_t tide_rows_find(const tide_rows *r, uint32_t item) {
    size_t at = 0;
    while (at < r->n_members && r->members[at] != item) at++;
    if (at == r->n_members) return SIZE_MAX;
    if (r->first == NULL) return at;
    size_t lo = 0, hi = r->n; // the last row that begins at or before it
    while (lo + 1 < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (r->first[mid] <= at) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}
