// SPDX-License-Identifier: MIT
//
// What a row is in each column. See rows.h.
//
// A grouped row has two orders of its members, by begin and by end, so that counting takes two searches a
// column however many members there are:
//
//     alive somewhere in [lo, hi)  =  begun before hi  -  ended at or before lo
//
// Of many millions of members only every eighth end is there, and the latest end of each 64 members. Then the members
// that are alive in the window are counted one by one where they are few; where they are many, the eighth ends are near
// enough.
#include <string.h>

#include "analysis/items_internal.h"
#include "analysis/rows.h"
#include "analysis/step_curve.h"

enum {
    LOOK_AT = 6,      // members on each side that are looked at for the fill of a column
    MOST_OPEN = 4096, // and at most so many at the end of the axis for one that is freed there
    FEW = 1000,
    MOST_ALIVE = 255,
};

typedef struct row_view {
    const tide_items *items;
    const uint32_t *by_begin; // [n]
    const uint32_t *by_end;   // [n]; NULL: only late is there
    const int64_t *late;      // [(n + 7) / 8] every eighth end
    const int64_t *latest;    // [2 * (n + 63) / 64] latest end and first begin of 64 members
    size_t n;
    uint8_t fill;
} row_view;

/// The window, cut into columns.
typedef struct window {
    int64_t t0, t1;
    size_t n;
} window;

static void column_of(const window *w, size_t i, int64_t *lo, int64_t *hi) {
    const uint64_t len = w->t1 > w->t0 ? (uint64_t)w->t1 - (uint64_t)w->t0 : 0;
    *lo = tide__column_edge(w->t0, len, i, w->n);
    *hi = tide__column_edge(w->t0, len, i + 1, w->n);
    if (*hi <= *lo) *hi = *lo < INT64_MAX ? *lo + 1 : *lo;
}

/// Where the last column ends.
static int64_t window_end(const window *w) { return w->t1 > w->t0 ? w->t1 : (w->t0 < INT64_MAX ? w->t0 + 1 : w->t0); }

/// Whether item `i` begins before `t`. Mostly the chunks tell: items stand in order of their begin, so that none begins
/// behind the first of the next chunk.
static bool begins_before(const tide_items *items, uint32_t i, int64_t t) {
    const size_t c = i >> TIDE_ITEMS_CHUNK_BITS;
    if (items->chunks[c].begin >= t) return false;
    if ((c + 1) << TIDE_ITEMS_CHUNK_BITS < items->n && items->chunks[c + 1].begin < t) return true;
    return tide_items_begin(items, i) < t;
}

/// Whether it has ended by then. Where all of its chunk end later, the item is not read.
static bool is_gone_at(const tide_items *items, uint32_t i, int64_t t) {
    return items->chunks[i >> TIDE_ITEMS_CHUNK_BITS].end <= t && tide__item_gone(items, i) <= t;
}

/// Members that begin before `t`, known to be at least `from` and at most `to`.
static size_t begun(const row_view *v, int64_t t, size_t from, size_t to) {
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (begins_before(v->items, v->by_begin[mid], t)) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from;
}

/// Members that end at or before `t`, known to be at least `from` and at most `to`.
static size_t ended(const row_view *v, int64_t t, size_t from, size_t to) {
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (is_gone_at(v->items, v->by_end[mid], t)) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from;
}

// ---- the same with every eighth end ----

/// Number of values below `t` (at or below with `equal`) in a rising array of which every `stride`-th counts, known to
/// be at least `from`. The next one asked for is mostly near: steps that double, then halves.
static size_t gallop(const int64_t *values, size_t stride, size_t n, int64_t t, bool equal, size_t from) {
    size_t step = 8, to = n;
    for (; from + step < n; step *= 2) {
        const int64_t x = values[(from + step) * stride];
        if (x > t || (x == t && !equal)) {
            to = from + step;
            break;
        }
        from += step + 1;
    }
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        const int64_t x = values[mid * stride];
        if (x < t || (x == t && equal)) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from;
}

/// Every eighth ends that lie at or before `t`.
static size_t late_at(const row_view *v, int64_t t, size_t from) {
    return gallop(v->late, 1, (v->n + TIDE_ROWS_LATE - 1) / TIDE_ROWS_LATE, t, true, from);
}
/// At least so many members have ended, and at most 7 more.
static size_t ended_by(size_t late) { return late > 0 ? (late - 1) * TIDE_ROWS_LATE + 1 : 0; }

/// Blocks of 64 members of which the first begins before `t`: all members of all but the last of them do.
static size_t blocks_at(const row_view *v, int64_t t, size_t from) {
    return gallop(v->latest + 1, 2, (v->n + TIDE_ROWS_LATEST - 1) / TIDE_ROWS_LATEST, t, false, from);
}
static size_t begun_of(const row_view *v, int64_t t, size_t blocks) {
    if (blocks == 0) return 0;
    const size_t end = blocks * TIDE_ROWS_LATEST;
    return begun(v, t, end - TIDE_ROWS_LATEST + 1, end < v->n ? end : v->n);
}

// ---- many members: how many are alive ----

/// Members among the first `n_begun` that are alive behind `t`, given to `fn`; at most `most` are counted.
static size_t each_alive(const row_view *v, size_t n_begun, int64_t t, size_t most,
                         void (*fn)(void *ctx, uint32_t item), void *ctx) {
    size_t n = 0;
    for (size_t b = (n_begun + TIDE_ROWS_LATEST - 1) / TIDE_ROWS_LATEST; b-- > 0 && n < most;) {
        if (v->latest[2 * b] <= t) continue;
        const size_t from = b * TIDE_ROWS_LATEST, end = from + TIDE_ROWS_LATEST;
        for (size_t k = from; k < end && k < n_begun && n < most; k++) {
            if (tide__item_gone(v->items, v->by_begin[k]) <= t) continue;
            if (fn != NULL) fn(ctx, v->by_begin[k]);
            n++;
        }
    }
    return n;
}

static void note_item(void *ctx, uint32_t item) { *(uint32_t *)ctx = item; }

// ---- fills ----

typedef struct largest {
    uint64_t bytes;
    const tide_item_shape *shape; // NULL: none yet
} largest;

static void look_at(const row_view *v, uint32_t i, int64_t lo, int64_t hi, largest *best) {
    if (tide_items_begin(v->items, i) >= hi || tide__item_gone(v->items, i) <= lo) return;
    const tide_item_shape *s = tide_items_shape(v->items, i);
    if (best->shape != NULL && s->size_bytes <= best->bytes) return;
    best->bytes = s->size_bytes;
    best->shape = s;
}

/// The fill of the largest of those alive in [lo, hi), `n_begun` of which began before its end and `n_ended` ended
/// before it: of the last ones to begin, and the next ones to end.
static uint8_t fill_of(const row_view *v, int64_t lo, int64_t hi, size_t n_begun, size_t n_ended) {
    if (v->fill != TIDE_N_ITEM_FILLS) return v->fill;
    largest best = {0};
    for (size_t k = 0; k < LOOK_AT && k < n_begun; k++) look_at(v, v->by_begin[n_begun - 1 - k], lo, hi, &best);
    for (size_t k = 0; v->by_end != NULL && k < LOOK_AT && n_ended + k < v->n; k++)
        look_at(v, v->by_end[n_ended + k], lo, hi, &best);
    uint32_t any = TIDE_NO_ITEM;
    if (best.shape == NULL && v->latest != NULL) each_alive(v, n_begun, lo, 1, note_item, &any);
    if (any != TIDE_NO_ITEM) look_at(v, any, lo, hi, &best);
    for (size_t k = n_begun; best.shape == NULL && v->latest == NULL && k-- > 0;)
        look_at(v, v->by_begin[k], lo, hi, &best);
    return best.shape != NULL ? (uint8_t)best.shape->fill : 0;
}

/// Whether one of the members that end in a column dies there: not those that are never freed, all of which end with
/// the axis.
static bool dies(const row_view *v, size_t ended_lo, size_t ended_hi) {
    for (size_t k = ended_lo; k < ended_hi && k - ended_lo < MOST_OPEN; k++)
        if (!tide_items_is_open_ended(v->items, v->by_end[k])) return true;
    return false;
}

// ---- by searches ----

static void by_searches(const row_view *v, const window *w, tide_row_span *out) {
    size_t begun_lo = begun(v, w->t0, 0, v->n), ended_lo = ended(v, w->t0, 0, v->n);
    const size_t begun_all = begun(v, window_end(w), begun_lo, v->n);
    const size_t ended_all = ended(v, window_end(w), ended_lo, v->n);
    size_t begun_hi = begun_lo, ended_hi = ended_lo;
    int64_t before_lo = w->t0, before_hi = w->t0;
    for (size_t i = 0; i < w->n; i++) {
        int64_t lo, hi;
        column_of(w, i, &lo, &hi);
        if (lo == before_hi) { // else, narrower than the unit, it begins where the last one did
            begun_lo = begun_hi;
            ended_lo = ended_hi;
        } else if (lo > before_lo) {
            begun_lo = begun(v, lo, begun_lo, begun_all);
            ended_lo = ended(v, lo, ended_lo, ended_all);
        }
        before_lo = lo;
        before_hi = hi;
        begun_hi = begun(v, hi, begun_lo, begun_all);
        ended_hi = ended(v, hi, ended_lo, ended_all);
        const size_t alive = begun_hi - ended_lo;
        out[i] = (tide_row_span){.n = alive < MOST_ALIVE ? (uint32_t)alive : MOST_ALIVE};
        if (alive == 0) continue;
        out[i].fill = fill_of(v, lo, hi, begun_hi, ended_lo);
        out[i].starts = begun_hi > begun_lo;
        out[i].ends = ended_hi > ended_lo && dies(v, ended_lo, ended_hi);
    }
}

// ---- of many, by searches in every eighth end ----

/// A column of a row of many: `blocks` as of blocks_at at its begin and end, `late` as of late_at.
static void column_of_many(const row_view *v, int64_t lo, int64_t hi, const size_t blocks[2], const size_t late[2],
                           tide_row_span *out) {
    const int64_t last = v->late[(v->n - 1) / TIDE_ROWS_LATE];
    *out = (tide_row_span){.n = MOST_ALIVE, .starts = true};
    // Many begin in it: how many does not matter then.
    const bool crowded = blocks[1] >= blocks[0] + 2 + MOST_ALIVE / TIDE_ROWS_LATEST;
    size_t begun_hi = blocks[1] > 0 ? (blocks[1] - 1) * TIDE_ROWS_LATEST + 1 : 0;
    if (!crowded) {
        begun_hi = begun_of(v, hi, blocks[1]);
        out->starts = begun_hi > begun_of(v, lo, blocks[0]);
        size_t alive = begun_hi - ended_by(late[0]);
        // Where every eighth end alone might make one up, they are counted.
        if (alive < 2 * TIDE_ROWS_LATE) alive = each_alive(v, begun_hi, lo, 2 * TIDE_ROWS_LATE, NULL, NULL);
        if (alive < MOST_ALIVE) out->n = (uint32_t)alive;
        if (alive == 0) return;
    }
    out->fill = fill_of(v, lo, hi, begun_hi, 0);
    // Those that are never freed end with the axis, as the last one then does.
    out->ends = late[1] > late[0] && v->late[late[0]] < last;
}

static void of_many(const row_view *v, const window *w, tide_row_span *out) {
    size_t blocks[2] = {0}, late[2] = {0};
    blocks[1] = blocks_at(v, w->t0, 0);
    late[1] = late_at(v, w->t0, 0);
    int64_t before_lo = w->t0, before_hi = w->t0;
    for (size_t i = 0; i < w->n; i++) {
        int64_t lo, hi;
        column_of(w, i, &lo, &hi);
        if (lo == before_hi) {
            blocks[0] = blocks[1];
            late[0] = late[1];
        } else if (lo > before_lo) {
            blocks[0] = blocks_at(v, lo, blocks[0]);
            late[0] = late_at(v, lo, late[0]);
        }
        before_lo = lo;
        before_hi = hi;
        blocks[1] = blocks_at(v, hi, blocks[0]);
        late[1] = late_at(v, hi, late[0]);
        column_of_many(v, lo, hi, blocks, late, &out[i]);
    }
}

// ---- one by one ----

/// The column that a moment of the window lies in: of several that share it, the last.
static size_t column_at(const window *w, int64_t t) {
    const uint64_t len = w->t1 > w->t0 ? (uint64_t)w->t1 - (uint64_t)w->t0 : 1, from = (uint64_t)t - (uint64_t)w->t0;
    const unsigned __int128 share = (unsigned __int128)from * w->n / len;
    size_t c = share < w->n ? (size_t)share : w->n - 1;
    int64_t lo, hi;
    column_of(w, c, &lo, &hi);
    while (c > 0 && lo > t) column_of(w, --c, &lo, &hi);
    for (int64_t next; c + 1 < w->n; c++) {
        column_of(w, c + 1, &next, &hi);
        if (next > t) break;
    }
    return c;
}

typedef struct drawing {
    const row_view *v;
    const window *w;
    tide_row_span *out; // n holds how many more are alive than in the column before
} drawing;

/// A member that is alive somewhere in the window.
static void draw_member(void *ctx, uint32_t i) {
    const drawing *d = ctx;
    const int64_t begin = tide_items_begin(d->v->items, i), gone = tide__item_gone(d->v->items, i);
    int64_t lo, hi;
    size_t first = begin > d->w->t0 ? column_at(d->w, begin) : 0;
    if (begin >= d->w->t0) { // all columns that share its moment
        column_of(d->w, first, &lo, &hi);
        for (size_t c = first;; c--) {
            column_of(d->w, c, &lo, &hi);
            if (hi <= begin) break;
            first = c;
            if (lo <= begin) d->out[c].starts = true;
            if (c == 0) break;
        }
    }
    const size_t last = gone < window_end(d->w) ? column_at(d->w, gone - 1) : d->w->n - 1;
    d->out[first].n++;
    if (last + 1 < d->w->n) d->out[last + 1].n--;
    if (tide_items_is_open_ended(d->v->items, i)) return;
    for (size_t c = last;; c--) { // all columns that share its end
        column_of(d->w, c, &lo, &hi);
        if (gone > hi) break;
        d->out[c].ends = true;
        if (c == first) break;
    }
}

static void one_by_one(const row_view *v, const window *w, size_t begun_lo, size_t begun_all, tide_row_span *out) {
    drawing d = {v, w, out};
    memset(out, 0, w->n * sizeof *out);
    each_alive(v, begun_lo, w->t0, SIZE_MAX, draw_member, &d);
    for (size_t k = begun_lo; k < begun_all; k++) draw_member(&d, v->by_begin[k]);
    uint32_t alive = 0;
    for (size_t i = 0; i < w->n; i++) {
        alive += out[i].n;
        out[i].n = alive < MOST_ALIVE ? alive : MOST_ALIVE;
        if (alive == 0 || v->fill != TIDE_N_ITEM_FILLS) {
            out[i].fill = alive > 0 ? v->fill : 0;
            continue;
        }
        int64_t lo, hi;
        column_of(w, i, &lo, &hi);
        out[i].fill = fill_of(v, lo, hi, begun(v, hi, begun_lo, begun_all), 0);
    }
}

void tide_rows_spans(const tide_rows *r, const tide_items *items, size_t row, int64_t t0, int64_t t1, size_t n,
                     tide_row_span *out) {
    const window w = {.t0 = t0, .t1 = t1, .n = n};
    row_view v = {.items = items, .by_begin = r->members + row, .by_end = r->members + row, .n = 1};
    v.fill = TIDE_N_ITEM_FILLS;
    if (r->first != NULL) {
        const uint32_t first = r->first[row];
        v.by_begin = r->members + first;
        v.by_end = r->reach != NULL ? r->reach + first : NULL;
        if (r->late != NULL) v.late = r->late + first / TIDE_ROWS_LATE + row;
        if (r->latest != NULL) v.latest = r->latest + 2 * (first / TIDE_ROWS_LATEST + row);
        v.n = r->first[row + 1] - first;
        v.fill = r->fill[row];
    }
    if (n == 0) return;
    if (v.by_end != NULL) {
        by_searches(&v, &w, out);
        return;
    }
    const size_t begun_lo = begun(&v, t0, 0, v.n), begun_all = begun(&v, window_end(&w), begun_lo, v.n);
    if (begun_all - ended_by(late_at(&v, t0, 0)) <= FEW) {
        one_by_one(&v, &w, begun_lo, begun_all, out);
    } else {
        of_many(&v, &w, out);
    }
}
