// SPDX-License-Identifier: MIT
//
// Ends of the members of grouped rows, in order, for counting who has ended:
//
//     members  2 5 7 9 | 1 3 | 4 6 8        of each row by begin
//     reach    5 2 9 7 | 3 1 | 8 4 6        the same items of each row, by end
//
// Of many millions that would be as much memory again, so that only every eighth end is kept then, and the latest end
// of each 64 members. They are found in parts: a histogram of the ends says where to cut time so that no part has too
// many.
#include <string.h>

#include "analysis/items_order.h"
#include "analysis/rows_internal.h"
#include "core/base/host_alloc.h"

enum { RADIX_MEMBERS = 1 << 18, N_CUTS = 4096, N_PARTS = 16, TELL_MEMBERS = 1 << 20 };

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
        tide__sorting telling = {.progress = e->progress, .what = "grouping"};
        telling.from = share_of(e, e->r->first[row]);
        telling.to = share_of(e, e->r->first[row + 1]);
        telling.total = n;
        return tide__merge_sort(reach, n, ends_before, e->items, &telling);
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
    if (!tide__rows_tell(e->progress, share_of(e, r->first[row]), "grouping")) return TIDE_ERR_CANCELLED;
    const uint64_t width = (high - low) / N_CUTS + 1;
    for (uint32_t k = r->first[row]; k < r->first[row + 1]; k++) count[(key_of(e, r->members[k]) - low) / width]++;
    for (size_t c = 0, from = 0; c < N_CUTS; c++) {
        n_part += count[c];
        if (c + 1 < N_CUTS && n_part + count[c + 1] <= most) continue;
        const uint64_t lo = low + from * width, hi = c + 1 < N_CUTS ? low + (c + 1) * width - 1 : high;
        if (n_part > 0) TIDE_TRY(take_part(e, row, lo, hi, n_part, &n_done));
        if (!tide__rows_tell(e->progress, share_of(e, r->first[row] + n_done), "grouping")) return TIDE_ERR_CANCELLED;
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
    size_t told = 0;
    for (size_t row = 0; st == TIDE_OK && row < r->n; row++) {
        st = with_reach ? row_reach(&e, row) : row_late(&e, row);
        if (r->first[row + 1] - told < TELL_MEMBERS) continue;
        told = r->first[row + 1];
        if (st == TIDE_OK && !tide__rows_tell(progress, share_of(&e, told), "grouping")) st = TIDE_ERR_CANCELLED;
    }
    tide_host_free(e.keys);
    return st;
}
