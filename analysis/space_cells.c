// SPDX-License-Identifier: MIT
//
// The picture of space: which item, hole or nothing fills most of each cell.
//
// Every rectangle in the window is put on the grid once: what of each cell it fills, and at which of 64 moments of the
// column it is there. A hole is what is free at a moment at which something lies above it in the same region; from the
// top row down each cell learns at which moments that is so.
//
//     row 2   [ item ]            moments of the top row      1111....
//     row 1   (hole) [ item ]     something lies above at     1111....   and is taken at  ......11
//     row 0   [ item         ]
#include "analysis/space_internal.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

/// An entry of a window: a rectangle or a block.
typedef struct space_entry {
    int64_t begin, end;
    uint64_t lo, hi; // on the axis
    uint32_t item, region;
} space_entry;

static void each_rectangle(const tide_space *sp, int64_t t0, int64_t t1,
                           void (*take)(void *ctx, const space_entry *entry), void *ctx) {
    const tide__space_index *x = tide__space_index_read(sp);
    for (size_t i = 0; i < x->n_rectangles; i++) {
        if (i % TIDE__SPACE_CHUNK == 0 && x->rectangle_ends[i / TIDE__SPACE_CHUNK] <= t0) {
            i += TIDE__SPACE_CHUNK - 1;
            continue;
        }
        const tide__rectangle *p = &x->rectangles[i];
        if (p->begin >= t1) break;
        if (p->end <= t0) continue;
        const uint64_t at = sp->regions[p->region].at;
        const space_entry entry = {p->begin, p->end, at + p->lo, at + p->hi, p->item, p->region};
        take(ctx, &entry);
    }
}

/// A block of no length at all was there for less than the clock can tell.
static int64_t end_of(const tide_items *items, size_t i) {
    return tide_items_end(items, i) > tide_items_begin(items, i) ? tide_items_end(items, i)
                                                                 : tide_items_begin(items, i) + 1;
}

static void each_entry(const tide_space *sp, const tide_items *items, int64_t t0, int64_t t1,
                       void (*take)(void *ctx, const space_entry *entry), void *ctx) {
    const tide__space_index *x = tide__space_index_read(sp);
    each_rectangle(sp, t0, t1, take, ctx);
    if (x->region_of == NULL || items == NULL || items->place == NULL) return;
    for (size_t i = 0; i < x->n_items; i++) {
        if (i % TIDE__SPACE_CHUNK == 0 && x->block_ends[i / TIDE__SPACE_CHUNK] < t0) {
            i += TIDE__SPACE_CHUNK - 1;
            continue;
        }
        if (tide_items_begin(items, i) >= t1) break;
        if (end_of(items, i) <= t0 || x->region_of[i] == TIDE__NO_REGION) continue;
        const tide_item_shape *shape = tide_items_shape(items, i);
        if (shape->is_planned) continue; // its rectangles are there
        const tide_region *r = &sp->regions[x->region_of[i]];
        const uint64_t lo = r->at + (items->place[i] - r->base);
        const space_entry entry = {tide_items_begin(items, i), end_of(items, i), lo,
                                   lo + shape->reserved_bytes, (uint32_t)i,      x->region_of[i]};
        take(ctx, &entry);
    }
}

enum { N_MOMENTS = 64 };
static const double snap = 1e-9; // of a cell: what sticks out by less is the rounding of the arithmetic

typedef struct cell {
    uint64_t tops; // moments at which something ends in this row that belongs to a region going on below it
    float best;    // share of the cell that `item` fills
    float taken;   // sum of shares over the moments: of 64
    float there;   // share that lies in a region whose holes are known
    uint32_t item;
    bool is_shared;
} cell;

/// A row of the grid.
typedef struct row {
    uint64_t above;     // region that goes on above it; SIZE_MAX: none
    bool goes_on;       // that region goes on below it too
    double above_share; // of the row, that lies in it
} row;

typedef struct grid {
    const tide_space *sp;
    int64_t t0, t1;
    uint64_t lo, hi;
    double columns_per_t, rows_per_byte;
    size_t n_columns, n_rows;
    cell *cells;        // [n_rows][n_columns], owned
    row *rows;          // [n_rows], owned
    size_t over_region; // region that goes on above the window; SIZE_MAX: none
    uint64_t *over;     // [n_columns] moments at which something lies in it above the window; owned
} grid;

/// [a, b) as a range of cells [*first, *end) of `n`: at least one.
static void to_cells(double a, double b, size_t n, size_t *first, size_t *end) {
    const double f = a + snap, e = b - snap;
    *first = f > 0 ? (size_t)f : 0;
    *end = e < (double)n ? (e > 0 ? (size_t)e + ((double)(size_t)e < e) : 0) : n;
    if (*first >= n) *first = n - 1;
    if (*end <= *first) *end = *first + 1;
}

/// Of cell `i`, what [a, b) covers.
static double share_of(double a, double b, size_t i) {
    const double from = a > (double)i ? a : (double)i, to = b < (double)i + 1 ? b : (double)i + 1;
    return to > from ? to - from : 0;
}

/// The whole number at or above a small one that is not negative.
static int up(double x) {
    const int whole = (int)(x < N_MOMENTS ? x : N_MOMENTS);
    return whole + ((double)whole < x);
}

/// Moments (k + 1/2) / 64 of cell `i` that lie in [a, b).
static uint64_t moments_of(double a, double b, size_t i) {
    const double from = (a - (double)i) * N_MOMENTS, to = (b - (double)i) * N_MOMENTS;
    const int first = from > 0.5 ? up(from - 0.5) : 0;
    const int end = to < N_MOMENTS ? (to > 0.5 ? up(to - 0.5) : 0) : N_MOMENTS;
    if (end <= first || first >= N_MOMENTS) return 0;
    const uint64_t below_end = end == N_MOMENTS ? UINT64_MAX : (UINT64_C(1) << end) - 1;
    return below_end & ~((UINT64_C(1) << first) - 1);
}

static double column_at(const grid *g, int64_t t) { return ((double)t - (double)g->t0) * g->columns_per_t; }
static double row_at(const grid *g, uint64_t at) { return ((double)at - (double)g->lo) * g->rows_per_byte; }
/// The place on the axis where row `r` begins.
static double row_begin(const grid *g, size_t r) {
    return (double)g->lo + ((double)g->hi - (double)g->lo) * (double)r / (double)g->n_rows;
}

// ---- filling the grid ----

static void fill_cell(cell *c, uint32_t item, double share, double moments) {
    if (share <= 0) return;
    c->taken += (float)moments;
    if (c->best > 0) c->is_shared = true;
    if (share <= (double)c->best) return;
    c->best = (float)share;
    c->item = item;
}

/// What lies above the window makes holes in it.
static void put_over(grid *g, const space_entry *entry) {
    if (entry->region != g->over_region || g->sp->regions[entry->region].is_guessed) return;
    const double x0 = column_at(g, entry->begin), x1 = column_at(g, entry->end);
    size_t c0, c1;
    to_cells(x0, x1, g->n_columns, &c0, &c1);
    for (size_t c = c0; c < c1; c++) g->over[c] |= moments_of(x0, x1, c);
}

static void put_entry(void *ctx, const space_entry *entry) {
    grid *g = ctx;
    if (entry->hi > g->hi) put_over(g, entry);
    if (entry->hi <= g->lo || entry->lo >= g->hi || entry->lo >= entry->hi) return;
    const double x0 = column_at(g, entry->begin), x1 = column_at(g, entry->end);
    const double y0 = row_at(g, entry->lo), y1 = row_at(g, entry->hi);
    size_t c0, c1, r0, r1;
    to_cells(x0, x1, g->n_columns, &c0, &c1);
    to_cells(y0, y1, g->n_rows, &r0, &r1);
    const tide_region *region = &g->sp->regions[entry->region];
    // Above everything in its own row the region is not there; a stretch whose holes are not known has none.
    const bool has_below = !region->is_guessed && (double)region->at + snap < row_begin(g, r1 - 1);
    for (size_t c = c0; c < c1; c++) {
        const double width = share_of(x0, x1, c);
        const uint64_t moments = moments_of(x0, x1, c);
        const double n_moments = (double)__builtin_popcountll(moments);
        for (size_t r = r0; r < r1; r++) {
            const double height = share_of(y0, y1, r);
            fill_cell(&g->cells[r * g->n_columns + c], entry->item, width * height, n_moments * height);
        }
        if (has_below) g->cells[(r1 - 1) * g->n_columns + c].tops |= moments;
    }
}

static void put_region(grid *g, const tide_region *region, int64_t begin, int64_t end) {
    if (region->at + region->bytes <= g->lo || region->at >= g->hi || begin >= g->t1 || end <= g->t0) return;
    const double x0 = column_at(g, begin), x1 = column_at(g, end);
    const double y0 = row_at(g, region->at), y1 = row_at(g, region->at + region->bytes);
    size_t c0, c1, r0, r1;
    to_cells(x0, x1, g->n_columns, &c0, &c1);
    to_cells(y0, y1, g->n_rows, &r0, &r1);
    for (size_t r = r0; r < r1; r++) {
        const double height = share_of(y0, y1, r);
        for (size_t c = c0; c < c1; c++) g->cells[r * g->n_columns + c].there += (float)(height * share_of(x0, x1, c));
    }
}

static void put_regions(grid *g) {
    const tide__space_index *x = tide__space_index_read(g->sp);
    if (x->n_presences == 0) return;
    for (size_t i = 0; i < x->n_presences; i++)
        put_region(g, &g->sp->regions[x->presences[i].region], x->presences[i].begin, x->presences[i].end);
}

// ---- holes ----

/// Which regions cross the upper border of each row.
static void make_rows(grid *g) {
    for (size_t r = 0; r < g->n_rows; r++) {
        row *w = &g->rows[r];
        const double begin = row_begin(g, r), end = row_begin(g, r + 1);
        const size_t i = end < (double)g->sp->bytes ? tide_space_region_at(g->sp, (uint64_t)end) : SIZE_MAX;
        w->above = SIZE_MAX;
        if (i == SIZE_MAX || (double)g->sp->regions[i].at >= end - snap * (end - begin)) continue;
        const double base = (double)g->sp->regions[i].at;
        w->above = i;
        w->goes_on = base < begin;
        w->above_share = w->goes_on ? 1 : (end - base) / (end - begin);
    }
}

static tide_space_cell decide(const cell *c, double hole) {
    if (c->best > 0 && hole <= (double)c->best) return (tide_space_cell){c->item, c->is_shared};
    if (c->best > 0) return (tide_space_cell){TIDE_SPACE_HOLE, true};
    if (c->there <= 0) return (tide_space_cell){TIDE_SPACE_OUTSIDE, false};
    return (tide_space_cell){2 * hole >= (double)c->there ? TIDE_SPACE_HOLE : TIDE_SPACE_FREE, false};
}

static void decide_column(const grid *g, size_t column, tide_space_cell *out) {
    // moments at which something lies above this row, in the region that crosses its border
    uint64_t above = g->over[column];
    for (size_t r = g->n_rows; r-- > 0;) {
        const cell *c = &g->cells[r * g->n_columns + column];
        const row *w = &g->rows[r];
        if (w->above == SIZE_MAX) above = 0;
        const double hole =
            (double)__builtin_popcountll(above) / N_MOMENTS * w->above_share - (double)c->taken / N_MOMENTS;
        out[r * g->n_columns + column] = decide(c, hole > 0 ? hole : 0);
        above = c->tops | (w->above != SIZE_MAX && w->goes_on ? above : 0);
    }
}

tide_status tide_space_cells(const tide_space *sp, const tide_items *items, int64_t t0, int64_t t1, uint64_t lo,
                             uint64_t hi, size_t n_columns, size_t n_rows, tide_space_cell *cells, tide_error *err) {
    if (t0 >= t1 || lo >= hi) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a map of addresses of an empty window");
    grid g = {.sp = sp, .t0 = t0, .t1 = t1, .lo = lo, .hi = hi, .n_columns = n_columns, .n_rows = n_rows};
    size_t n;
    if (!tide_mul_size(n_columns, n_rows, &n) || n == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a map of addresses of no cells");
    g.columns_per_t = (double)n_columns / ((double)t1 - (double)t0);
    g.rows_per_byte = (double)n_rows / ((double)hi - (double)lo);
    g.cells = tide_host_calloc(n, sizeof *g.cells);
    g.rows = tide_host_calloc(n_rows, sizeof *g.rows);
    g.over = tide_host_calloc(n_columns, sizeof *g.over);
    const bool has_all = g.cells != NULL && g.rows != NULL && g.over != NULL;
    const tide_status st = has_all ? TIDE_OK : TIDE_NO_MEMORY(err, "for a map of addresses");
    if (st == TIDE_OK) {
        put_regions(&g);
        make_rows(&g);
        g.over_region = g.rows[n_rows - 1].above;
        each_entry(sp, items, t0, t1, put_entry, &g);
        for (size_t c = 0; c < n_columns; c++) decide_column(&g, c, cells);
    }
    tide_host_free(g.cells);
    tide_host_free(g.rows);
    tide_host_free(g.over);
    return st;
}

// ---- the neighbours of an item at a moment ----

typedef struct looking {
    const tide_space *sp;
    uint32_t item, region;
    uint64_t lo, hi; // what the item and all it shares bytes with take
    bool is_growing; // first time round: find out how far that goes
    uint64_t below_end, above_begin;
    uint32_t below, above;
} looking;

static void look(void *ctx, const space_entry *entry) {
    looking *l = ctx;
    if (entry->region != l->region) return;
    const bool overlaps = entry->lo < l->hi && entry->hi > l->lo;
    if (l->is_growing) {
        if (overlaps && entry->lo < l->lo) l->lo = entry->lo;
        if (overlaps && entry->hi > l->hi) l->hi = entry->hi;
        return;
    }
    if (overlaps) return;
    if (entry->hi <= l->lo && (l->below == TIDE_NO_ITEM || entry->hi > l->below_end)) {
        l->below = entry->item;
        l->below_end = entry->hi;
    }
    if (entry->lo >= l->hi && (l->above == TIDE_NO_ITEM || entry->lo < l->above_begin)) {
        l->above = entry->item;
        l->above_begin = entry->lo;
    }
}

tide_status tide_space_neighbours(const tide_space *sp, const tide_items *items, uint32_t item, int64_t t,
                                  uint32_t *below, uint64_t *gap_below, uint32_t *above, uint64_t *gap_above,
                                  tide_error *err) {
    looking l = {.sp = sp, .item = item, .is_growing = true, .below = TIDE_NO_ITEM, .above = TIDE_NO_ITEM};
    *below = *above = TIDE_NO_ITEM;
    *gap_below = *gap_above = 0;
    if (!tide_space_of_item(sp, items, item, &l.lo, &l.hi))
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "that has no place in a buffer and no address");
    l.region = (uint32_t)tide_space_region_at(sp, l.lo);
    const tide_region *r = &sp->regions[l.region];
    each_entry(sp, items, t, t + 1, look, &l);
    l.is_growing = false;
    each_entry(sp, items, t, t + 1, look, &l);
    *gap_below = l.lo - (l.below != TIDE_NO_ITEM ? l.below_end : r->at);
    *gap_above = (l.above != TIDE_NO_ITEM ? l.above_begin : r->at + r->bytes) - l.hi;
    if (*gap_below == 0) *below = l.below;
    if (*gap_above == 0) *above = l.above;
    return TIDE_OK;
}
