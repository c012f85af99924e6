// SPDX-License-Identifier: MIT
//
// Grouped rows. Each site or shape has a group number; items are counted by it and dealt out, so that the members of a
// row stay in order of their begin:
//
//     members  2 5 7 9 | 1 3 | 4 6 8        first  0 4 6 9
#include <string.h>

#include "analysis/filter_internal.h"
#include "analysis/items_order.h"
#include "analysis/rows_internal.h"
#include "core/base/host_alloc.h"

enum { N_SIZES = 65, TELL_ITEMS = 1 << 16 };

// ---- which group ----

/// Groups of sites or of shapes.
typedef struct grouping {
    bool by_site;
    uint32_t *group; // [n_sites or n_shapes]; owned
    size_t n;        // groups
} grouping;

/// Of one item after the other.
static uint32_t group_of(const grouping *g, const tide_items *items, uint32_t i, tide__items_some *some) {
    return g->group[tide__items_each(items, i, g->by_site ? TIDE_ITEMS_SITE : TIDE_ITEMS_SHAPE, some)];
}

static uint64_t hash_text(const char *text) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); // FNV-1a
    for (; *text != '\0'; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

/// Number the owners in the order in which they are met.
static tide_status group_owners(const tide_items *items, grouping *g) {
    size_t n_slots = 64;
    while (n_slots < 2 * items->n_sites) n_slots *= 2;
    uint32_t *slots = tide_host_calloc(n_slots, sizeof *slots); // site + 1 that has the owner first
    if (slots == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t i = 0; i < items->n_sites; i++) {
        size_t at = (size_t)hash_text(items->sites[i].owner) & (n_slots - 1);
        while (slots[at] != 0 && strcmp(items->sites[slots[at] - 1].owner, items->sites[i].owner) != 0)
            at = (at + 1) & (n_slots - 1);
        if (slots[at] == 0) {
            slots[at] = i + 1;
            g->group[i] = (uint32_t)g->n++;
        } else {
            g->group[i] = g->group[slots[at] - 1];
        }
    }
    tide_host_free(slots);
    return TIDE_OK;
}

static tide_status grouping_make(const tide_items *items, tide_row_group by, grouping *g) {
    g->by_site = by == TIDE_ROW_GROUP_NAME || by == TIDE_ROW_GROUP_OWNER;
    const size_t n = g->by_site ? items->n_sites : items->n_shapes;
    g->group = tide_host_alloc((n + 1) * sizeof *g->group);
    if (g->group == NULL) return TIDE_ERR_NOMEM;
    if (by == TIDE_ROW_GROUP_OWNER) return group_owners(items, g);
    for (uint32_t i = 0; i < n; i++) {
        g->group[i] = i;
        if (by == TIDE_ROW_GROUP_KIND) g->group[i] = (uint32_t)items->shapes[i].kind;
        if (by == TIDE_ROW_GROUP_SIZE) g->group[i] = tide__size_class(items->shapes[i].size_bytes);
    }
    g->n = by == TIDE_ROW_GROUP_KIND ? (size_t)TIDE_N_KINDS : (by == TIDE_ROW_GROUP_SIZE ? (size_t)N_SIZES : n);
    return TIDE_OK;
}

// ---- rows of groups ----

typedef struct rows_of {
    tide__row_values *values; // [n groups]
    uint32_t *count;          // [n groups] members
    uint32_t *row;            // [n groups] its row
    tide__keyed *keys, *spare;
} rows_of;

static void rows_of_deinit(rows_of *x) {
    tide_host_free(x->values);
    tide_host_free(x->count);
    tide_host_free(x->row);
    tide_host_free(x->keys);
    tide_host_free(x->spare);
}

static tide_status rows_of_make(rows_of *x, size_t n) {
    x->values = tide_host_alloc((n + 1) * sizeof *x->values);
    x->count = tide_host_calloc(n + 1, sizeof *x->count);
    x->row = tide_host_calloc(n + 1, sizeof *x->row);
    x->keys = tide_host_alloc((n + 1) * sizeof *x->keys);
    x->spare = tide_host_alloc((n + 1) * sizeof *x->spare);
    const bool good = x->values != NULL && x->count != NULL && x->row != NULL && x->keys != NULL && x->spare != NULL;
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

static tide_status count_members(const tide_items *items, const grouping *g, const uint8_t *bits, tide_row_sort sort,
                                 tide__sorting *telling, rows_of *x) {
    tide__items_some some;
    for (uint32_t i = 0; i < items->n; i++) {
        if (i % TELL_ITEMS == 0 && !tide__sorting_goes_on(telling, TELL_ITEMS)) return TIDE_ERR_CANCELLED;
        const uint32_t group = group_of(g, items, i, &some);
        if (bits != NULL && !tide__bit(bits, i)) continue;
        tide__row_values v;
        tide__row_values_of(items, i, sort, &v);
        if (x->count[group]++ == 0) {
            x->values[group] = v;
        } else {
            tide__row_values_add(&x->values[group], &v);
        }
    }
    return TIDE_OK;
}

/// Rows in their order, with where each begins.
static tide_status order_rows(const tide_rows_options *opt, size_t n_groups, rows_of *x, tide_rows *r) {
    for (uint32_t g = 0; g < n_groups; g++) {
        if (x->count[g] > 0) x->keys[r->n++] = (tide__keyed){.key = tide__row_key(opt, &x->values[g]), .number = g};
    }
    tide__keyed_sort(x->keys, x->spare, r->n);
    r->first = tide_host_alloc((r->n + 1) * sizeof *r->first);
    r->bytes = tide_host_alloc((r->n + 1) * sizeof *r->bytes);
    r->fill = tide_host_alloc(r->n + 1);
    if (r->first == NULL || r->bytes == NULL || r->fill == NULL) return TIDE_ERR_NOMEM;
    uint32_t at = 0;
    for (uint32_t row = 0; row < r->n; row++) {
        const uint32_t g = x->keys[row].number;
        x->row[g] = row;
        r->first[row] = at;
        r->bytes[row] = x->values[g].bytes;
        r->fill[row] = x->values[g].fill;
        at += x->count[g];
    }
    r->first[r->n] = at;
    return TIDE_OK;
}

/// From the order of items to that of rows.
static tide_status deal_out(const tide_items *items, const grouping *g, const uint8_t *bits, const rows_of *x,
                            tide__sorting *telling, tide_rows *r) {
    uint32_t *next = tide_host_alloc((r->n + 1) * sizeof *next);
    r->members = tide_host_alloc((r->n_members + 1) * sizeof *r->members);
    const bool good = next != NULL && r->members != NULL;
    if (good) memcpy(next, r->first, r->n * sizeof *next);
    bool goes_on = true;
    tide__items_some some;
    for (uint32_t i = 0; good && goes_on && i < items->n; i++) {
        if (i % TELL_ITEMS == 0) goes_on = tide__sorting_goes_on(telling, TELL_ITEMS);
        const uint32_t row = x->row[group_of(g, items, i, &some)];
        if (bits == NULL || tide__bit(bits, i)) r->members[next[row]++] = i;
    }
    tide_host_free(next);
    if (!goes_on) return TIDE_ERR_CANCELLED;
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

tide_status tide__rows_group(const tide_items *items, bool is_trace, const tide_rows_options *opt, const uint8_t *bits,
                             const tide_progress *progress, tide_rows *rows) {
    grouping g = {0};
    rows_of x = {0};
    tide_status st = grouping_make(items, opt->group, &g);
    if (st == TIDE_OK) st = rows_of_make(&x, g.n);
    tide__sorting telling = {.progress = progress, .what = "grouping", .from = 0.5, .to = 0.6, .total = 2 * items->n};
    if (st == TIDE_OK) st = count_members(items, &g, bits, opt->sort, &telling, &x);
    if (st == TIDE_OK) st = order_rows(opt, g.n, &x, rows);
    if (st == TIDE_OK) st = deal_out(items, &g, bits, &x, &telling, rows);
    tide_host_free(g.group);
    rows_of_deinit(&x);
    if (st == TIDE_OK) st = tide__rows_make_keys(items, opt->group, is_trace, rows);
    if (st != TIDE_OK) return st;
    const bool with_reach = rows->n_members <= TIDE_ROWS_WITH_REACH;
    return tide__rows_make_ends(items, with_reach, TIDE__ROWS_PART, progress, rows);
}
