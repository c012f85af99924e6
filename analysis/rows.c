// SPDX-License-Identifier: MIT
//
// Rows: filter, sort, group. See rows.h; what a row is in a column of a picture is in rows_spans.c.
#include "analysis/rows.h"

#include <string.h>

#include "analysis/filter_internal.h"
#include "analysis/items_internal.h"
#include "analysis/items_order.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"

/// What rows are sorted by: of the values below those that the sort needs, the others 0; bytes and fill always.
typedef struct row_values {
    int64_t begin;
    uint64_t place;   // lowest
    uint64_t bytes;   // sum of sizes
    uint64_t life;    // of the longest
    uint64_t area[2]; // sum of size x life: high, low
    uint32_t rank;    // by name
    bool persistent;  // all members are
    uint8_t fill;     // of all members; TIDE_N_ITEM_FILLS: they differ
} row_values;

/// Which power of two a size belongs to: 0 for 0, else 1 + the place of its highest bit.
static unsigned size_class(uint64_t bytes) { return bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes); }

// ---- ends of the members of grouped rows ----
// In order, to count how many have ended:
//
//     members  2 5 7 9 | 1 3 | 4 6 8        of each row by begin
//     reach    5 2 9 7 | 3 1 | 8 4 6        the same items of each row, by end
//
// Of many millions that would be as much memory again. Then only every eighth end is kept, and the latest end of each
// 64 members. They are found in parts: a histogram of the ends says where to cut time so that no part has too many.

enum { RADIX_MEMBERS = 1 << 18, N_CUTS = 4096, N_PARTS = 16, REPORT_MEMBERS = 1 << 20 };

typedef struct ender {
    const tide_items *items;
    tide_rows *r;
    tide__keyed *keys; // [2 * cap] to sort; the second half is spare
    size_t cap;
    size_t part; // ends that are sorted at once
    const tide_progress *progress;
} ender;

/// How far it has come when so many members are done: ends are the last part of grouping.
static double share_of(const ender *e, size_t n_done) {
    return 0.6 + 0.4 * (double)n_done / (double)(e->r->n_members + 1);
}

static uint64_t key_of(const ender *e, uint32_t i) {
    return (uint64_t)tide__item_gone(e->items, i) ^ UINT64_C(1) << 63; // signed order as unsigned
}

/// Room for `n` keys and as many to spare.
static tide_status make_room(ender *e, size_t n) {
    if (n <= e->cap) return TIDE_OK;
    tide_host_free(e->keys);
    e->cap = 0;
    e->keys = tide_host_alloc(2 * n * sizeof *e->keys);
    if (e->keys == NULL) return TIDE_ERR_NOMEM;
    e->cap = n;
    return TIDE_OK;
}

// ---- all of them ----

static bool ends_before(const void *ctx, uint32_t a, uint32_t b) {
    return tide__item_gone(ctx, a) <= tide__item_gone(ctx, b);
}

static tide_status row_reach(ender *e, size_t row) {
    const uint32_t *members = e->r->members + e->r->first[row];
    uint32_t *reach = e->r->reach + e->r->first[row];
    const size_t n = e->r->first[row + 1] - e->r->first[row];
    if (n > RADIX_MEMBERS) {
        memcpy(reach, members, n * sizeof *reach);
        tide__sorting reporter = {.progress = e->progress, .what = "grouping"};
        reporter.from = share_of(e, e->r->first[row]);
        reporter.to = share_of(e, e->r->first[row + 1]);
        reporter.total = n;
        return tide__merge_sort(reach, n, ends_before, e->items, &reporter);
    }
    TIDE_TRY(make_room(e, n));
    for (size_t i = 0; i < n; i++) e->keys[i] = (tide__keyed){.key = key_of(e, members[i]), .number = members[i]};
    tide__keyed_sort(e->keys, e->keys + n, n);
    for (size_t i = 0; i < n; i++) reach[i] = e->keys[i].number;
    return TIDE_OK;
}

// ---- every eighth ----

/// Ends with keys in [lo, hi], in order; those whose place in the row is a multiple of eight are kept. *n_done: places
/// before them.
static tide_status take_part(ender *e, size_t row, uint64_t lo, uint64_t hi, size_t n_part, size_t *n_done) {
    const tide_rows *r = e->r;
    int64_t *late = r->late + r->first[row] / TIDE_ROWS_LATE + row;
    size_t n = 0;
    TIDE_TRY(make_room(e, n_part));
    for (uint32_t k = r->first[row]; k < r->first[row + 1]; k++) {
        const uint64_t key = key_of(e, r->members[k]);
        if (lo <= key && key <= hi) e->keys[n++] = (tide__keyed){.key = key};
    }
    tide__keyed_sort(e->keys, e->keys + n, n);
    for (size_t i = 0; i < n; i++) {
        const size_t place = *n_done + i;
        if (place % TIDE_ROWS_LATE == 0) late[place / TIDE_ROWS_LATE] = (int64_t)(e->keys[i].key ^ UINT64_C(1) << 63);
    }
    *n_done += n;
    return TIDE_OK;
}

static void row_latest(const ender *e, size_t row) {
    const tide_rows *r = e->r;
    int64_t *latest = r->latest + 2 * (r->first[row] / TIDE_ROWS_LATEST + row);
    for (uint32_t k = 0; k < r->first[row + 1] - r->first[row]; k++) {
        const int64_t gone = tide__item_gone(e->items, r->members[r->first[row] + k]);
        int64_t *block = &latest[2 * (k / TIDE_ROWS_LATEST)];
        if (k % TIDE_ROWS_LATEST == 0) block[1] = tide_items_begin(e->items, r->members[r->first[row] + k]);
        if (k % TIDE_ROWS_LATEST == 0 || gone > block[0]) block[0] = gone;
    }
}

static tide_status row_late(ender *e, size_t row) {
    const tide_rows *r = e->r;
    const size_t n = r->first[row + 1] - r->first[row], most = n / N_PARTS > e->part ? n / N_PARTS : e->part;
    size_t n_done = 0, n_part = 0;
    row_latest(e, row);
    if (n <= most) return take_part(e, row, 0, UINT64_MAX, n, &n_done);
    uint64_t low = UINT64_MAX, high = 0;
    uint32_t count[N_CUTS] = {0};
    for (uint32_t k = r->first[row]; k < r->first[row + 1]; k++) {
        const uint64_t key = key_of(e, r->members[k]);
        if (key < low) low = key;
        if (key > high) high = key;
    }
    if (!tide_progress_goes_on(e->progress, share_of(e, r->first[row]), "grouping")) return TIDE_ERR_CANCELLED;
    const uint64_t width = (high - low) / N_CUTS + 1;
    for (uint32_t k = r->first[row]; k < r->first[row + 1]; k++) count[(key_of(e, r->members[k]) - low) / width]++;
    for (size_t c = 0, from = 0; c < N_CUTS; c++) {
        n_part += count[c];
        if (c + 1 < N_CUTS && n_part + count[c + 1] <= most) continue;
        const uint64_t lo = low + from * width, hi = c + 1 < N_CUTS ? low + (c + 1) * width - 1 : high;
        if (n_part > 0) TIDE_TRY(take_part(e, row, lo, hi, n_part, &n_done));
        if (!tide_progress_goes_on(e->progress, share_of(e, r->first[row] + n_done), "grouping"))
            return TIDE_ERR_CANCELLED;
        from = c + 1;
        n_part = 0;
    }
    return TIDE_OK;
}

// ---- all rows ----

tide_status tide__rows_make_ends(const tide_items *items, bool with_reach, size_t part, const tide_progress *progress,
                                 tide_rows *r) {
    ender e = {.items = items, .r = r, .part = part, .progress = progress};
    if (with_reach) r->reach = tide_host_alloc((r->n_members + 1) * sizeof *r->reach);
    if (!with_reach) r->late = tide_host_alloc((r->n_members / TIDE_ROWS_LATE + r->n + 1) * sizeof *r->late);
    if (!with_reach) r->latest = tide_host_alloc(2 * (r->n_members / TIDE_ROWS_LATEST + r->n + 1) * sizeof *r->latest);
    const bool good = with_reach ? r->reach != NULL : r->late != NULL && r->latest != NULL;
    tide_status st = good ? TIDE_OK : TIDE_ERR_NOMEM;
    size_t reported = 0;
    for (size_t row = 0; st == TIDE_OK && row < r->n; row++) {
        st = with_reach ? row_reach(&e, row) : row_late(&e, row);
        if (r->first[row + 1] - reported < REPORT_MEMBERS) continue;
        reported = r->first[row + 1];
        if (st == TIDE_OK && !tide_progress_goes_on(progress, share_of(&e, reported), "grouping"))
            st = TIDE_ERR_CANCELLED;
    }
    tide_host_free(e.keys);
    return st;
}

// ---- names of grouped rows, for people ----

static void print_size_class(uint64_t bytes, tide_text *t) {
    const unsigned c = size_class(bytes);
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

/// All texts are in one allocation, which stands behind the last key.
static tide_status make_keys(const tide_items *items, tide_row_group by, bool is_trace, tide_rows *r) {
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

// ---- keys ----

static uint64_t life_of(const tide_items *items, uint32_t i) {
    return (uint64_t)tide_items_end(items, i) - (uint64_t)tide_items_begin(items, i);
}

static uint32_t rank_of(const tide_items *items, uint32_t i) {
    const tide__site_names *names = tide__items_names(items);
    const uint32_t site = tide_items_site_of(items, i);
    return names != NULL ? names->rank[site] : site;
}

static void values_of(const tide_items *items, uint32_t i, tide_row_sort sort, row_values *out) {
    const tide_item_shape *s = tide_items_shape(items, i);
    *out = (row_values){.bytes = s->size_bytes, .persistent = s->persistent, .fill = (uint8_t)s->fill};
    if (sort == TIDE_ROW_SORT_BEGIN) out->begin = tide_items_begin(items, i);
    if (sort == TIDE_ROW_SORT_OFFSET) out->place = items->place != NULL ? items->place[i] : TIDE_NO_OFFSET;
    if (sort == TIDE_ROW_SORT_NAME) out->rank = rank_of(items, i);
    if (sort == TIDE_ROW_SORT_LIFE) out->life = life_of(items, i);
    if (sort != TIDE_ROW_SORT_AREA) return;
    const unsigned __int128 area = (unsigned __int128)s->size_bytes * life_of(items, i);
    out->area[0] = (uint64_t)(area >> 64);
    out->area[1] = (uint64_t)area;
}

/// Take another item into a row's values.
static void values_add(row_values *v, const row_values *more) {
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

/// A number that rises in the order of the rows; equal ones stay in the order of items.
static uint64_t row_key(const tide_rows_options *opt, const row_values *v) {
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
    row_values v;
    values_of(x->items, i, x->opt->sort, &v);
    return row_key(x->opt, &v);
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

// ---- grouped rows ----
// Each site or shape has a group number. Items are counted by it and dealt out, so that the members of a row stay in
// order of their begin:
//
//     members  2 5 7 9 | 1 3 | 4 6 8        first  0 4 6 9

enum { N_SIZES = 65, REPORT_ITEMS = 1 << 16 };

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

static uint64_t owner_hash(const void *items, uint32_t site) {
    return tide_hash_text(TIDE_HASH_START, ((const tide_items *)items)->sites[site].owner);
}

static bool is_owner(const void *items, uint32_t site, const void *owner) {
    return strcmp(((const tide_items *)items)->sites[site].owner, owner) == 0;
}

/// Number the owners in the order in which they are met.
static tide_status group_owners(const tide_items *items, grouping *g) {
    tide_index firsts = {0}; // of each owner, its first site
    tide_status st = TIDE_OK;
    for (uint32_t i = 0; st == TIDE_OK && i < items->n_sites; i++) {
        const uint32_t first = tide_index_find(&firsts, owner_hash(items, i), items, is_owner, items->sites[i].owner);
        if (first == TIDE_INDEX_NONE) st = tide_index_put(&firsts, i, items, owner_hash);
        g->group[i] = first == TIDE_INDEX_NONE ? (uint32_t)g->n++ : g->group[first];
    }
    tide_index_deinit(&firsts);
    return st;
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
        if (by == TIDE_ROW_GROUP_SIZE) g->group[i] = size_class(items->shapes[i].size_bytes);
    }
    g->n = by == TIDE_ROW_GROUP_KIND ? (size_t)TIDE_N_KINDS : (by == TIDE_ROW_GROUP_SIZE ? (size_t)N_SIZES : n);
    return TIDE_OK;
}

// ---- rows of groups ----

typedef struct rows_of {
    row_values *values; // [n groups]
    uint32_t *count;    // [n groups] members
    uint32_t *row;      // [n groups] its row
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
                                 tide__sorting *reporter, rows_of *x) {
    tide__items_some some;
    for (uint32_t i = 0; i < items->n; i++) {
        if (i % REPORT_ITEMS == 0 && !tide__sorting_goes_on(reporter, REPORT_ITEMS)) return TIDE_ERR_CANCELLED;
        const uint32_t group = group_of(g, items, i, &some);
        if (bits != NULL && !tide__bit(bits, i)) continue;
        row_values v;
        values_of(items, i, sort, &v);
        if (x->count[group]++ == 0) {
            x->values[group] = v;
        } else {
            values_add(&x->values[group], &v);
        }
    }
    return TIDE_OK;
}

/// Rows in their order, with where each begins.
static tide_status order_rows(const tide_rows_options *opt, size_t n_groups, rows_of *x, tide_rows *r) {
    for (uint32_t g = 0; g < n_groups; g++) {
        if (x->count[g] > 0) x->keys[r->n++] = (tide__keyed){.key = row_key(opt, &x->values[g]), .number = g};
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
                            tide__sorting *reporter, tide_rows *r) {
    uint32_t *next = tide_host_alloc((r->n + 1) * sizeof *next);
    r->members = tide_host_alloc((r->n_members + 1) * sizeof *r->members);
    const bool good = next != NULL && r->members != NULL;
    if (good) memcpy(next, r->first, r->n * sizeof *next);
    bool goes_on = true;
    tide__items_some some;
    for (uint32_t i = 0; good && goes_on && i < items->n; i++) {
        if (i % REPORT_ITEMS == 0) goes_on = tide__sorting_goes_on(reporter, REPORT_ITEMS);
        const uint32_t row = x->row[group_of(g, items, i, &some)];
        if (bits == NULL || tide__bit(bits, i)) r->members[next[row]++] = i;
    }
    tide_host_free(next);
    if (!goes_on) return TIDE_ERR_CANCELLED;
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

/// Group the rows->n_members items whose bits are set (NULL: all) into rows. TIDE_ERR_NOMEM, TIDE_ERR_CANCELLED.
static tide_status make_groups(const tide_items *items, bool is_trace, const tide_rows_options *opt,
                               const uint8_t *bits, const tide_progress *progress, tide_rows *rows) {
    grouping g = {0};
    rows_of x = {0};
    tide_status st = grouping_make(items, opt->group, &g);
    if (st == TIDE_OK) st = rows_of_make(&x, g.n);
    tide__sorting reporter = {.progress = progress, .what = "grouping", .from = 0.5, .to = 0.6, .total = 2 * items->n};
    if (st == TIDE_OK) st = count_members(items, &g, bits, opt->sort, &reporter, &x);
    if (st == TIDE_OK) st = order_rows(opt, g.n, &x, rows);
    if (st == TIDE_OK) st = deal_out(items, &g, bits, &x, &reporter, rows);
    tide_host_free(g.group);
    rows_of_deinit(&x);
    if (st == TIDE_OK) st = make_keys(items, opt->group, is_trace, rows);
    if (st != TIDE_OK) return st;
    const bool with_reach = rows->n_members <= TIDE_ROWS_WITH_REACH;
    return tide__rows_make_ends(items, with_reach, TIDE__ROWS_PART, progress, rows);
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
    tide__sorting reporter = {
        .progress = progress, .what = "sorting", .from = 0.5, .to = 1, .total = 3 * items->n + r->n_members};
    const bool sorted = opt->sort == TIDE_ROW_SORT_BEGIN && !opt->reverse && !opt->persistent_last;
    r->n = r->n_members;
    if (!sorted && r->n > RADIX_ITEMS)
        return tide__bucket_sort(bits, items->n, r->n, number_key, &x, &reporter, &r->members);
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
    if (st == TIDE_OK && !tide_progress_goes_on(progress, 0.5, "sorting")) st = TIDE_ERR_CANCELLED;
    if (st == TIDE_OK)
        st = opt->group != TIDE_ROW_GROUP_NONE
                 ? make_groups(items, tide_subject_get_facts(s)->is_trace, opt, bits, progress, r)
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
    if (r->keys != NULL) tide_host_free(r->keys[r->n]); // all texts in one allocation
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
