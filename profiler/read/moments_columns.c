// SPDX-License-Identifier: MIT
//
// Peaks of a window and columns of a timeline. See moments.h.
//
//     columns   |        |        |        |
//     leaves      [---][----][--][---][----]     a leaf that lies inside a column counts by its min and max; one on an
//     inside                ^^^^                 edge shows in both (fast), or is read event by event (exact)
#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

enum {
    EXACT_LEAVES = 8, // a window of so few is answered exactly in either mode: it costs next to nothing
};

// ---- peaks ----

tide_status tide_trace_peak_between(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1,
                                    uint64_t *bytes, uint64_t *event, uint64_t *t_ns, tide_error *err) {
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    tide__curve *c;
    int64_t before, last, high, high_event, high_ns = t0 > INT64_MAX ? INT64_MAX : (int64_t)t0;
    TIDE_TRY(tide__trace_curve(t, kind, device, &c, err));
    TIDE_TRY(tide__trace_event_before(t, t0, &before, err));
    TIDE_TRY(tide__trace_event_at(t, t1, &last, err));
    TIDE_TRY(tide__curve_peak(t, c, before + 1, last, &high, &high_event, &high_ns, err));
    *bytes = (uint64_t)high;
    if (event != NULL) *event = (uint64_t)high_event;
    if (t_ns != NULL) *t_ns = (uint64_t)high_ns;
    return TIDE_OK;
}

// ---- columns ----

typedef struct columns {
    tide_trace *t;
    tide__curve *c;
    bool is_exact;
    size_t at; // first leaf that ends in the column or behind it
    int64_t low, high;
} columns;

static void take(columns *k, int64_t bytes) {
    if (bytes < k->low) k->low = bytes;
    if (bytes > k->high) k->high = bytes;
}

/// A leaf by its min and max. Bounds of several series are settled first where they would count: no spike may be made
/// up. Of events that are gone the bounds are all there is.
static tide_status take_leaf(columns *k, size_t leaf_i, tide_error *err) {
    const tide__leaf *l = &k->c->leaves[leaf_i];
    if (l->min_bytes >= k->low && l->max_bytes <= k->high) return TIDE_OK;
    if (k->is_exact || l->first_event >= k->t->first_event) TIDE_TRY(tide__curve_settle(k->t, k->c, leaf_i, err));
    take(k, l->min_bytes);
    take(k, l->max_bytes);
    return TIDE_OK;
}

/// A column of fast mode, [lo, hi): every leaf that meets it, and what held before the first of them.
static tide_status fast_column(columns *k, int64_t lo, int64_t hi, tide_error *err) {
    const tide__curve *c = k->c;
    while (k->at < c->n && c->leaves[k->at].end_ns < lo) k->at++;
    take(k, tide__curve_before(c, k->at));
    for (size_t i = k->at; i < c->n && c->leaves[i].begin_ns < hi; i++) TIDE_TRY(take_leaf(k, i, err));
    return TIDE_OK;
}

/// The points of leaf `leaf_i` within [lo, hi). *carried: what holds when the column begins; a point at `lo` itself
/// takes its place.
static tide_status exact_leaf(columns *k, size_t leaf_i, int64_t lo, int64_t hi, int64_t *carried, bool *is_carried,
                              tide_error *err) {
    TIDE_TRY(tide__curve_points(k->t, k->c, leaf_i, err));
    const tide__point *p = k->c->points;
    size_t first = 0, end = k->c->n_points;
    while (first < end) { // the first at or behind lo
        const size_t mid = first + (end - first) / 2;
        if (p[mid].t_ns < lo) {
            first = mid + 1;
        } else {
            end = mid;
        }
    }
    if (first > 0) *carried = p[first - 1].bytes;
    for (size_t i = first; i < k->c->n_points && p[i].t_ns < hi; i++) {
        if (p[i].t_ns == lo) *is_carried = false;
        take(k, p[i].bytes);
    }
    return TIDE_OK;
}

static tide_status exact_column(columns *k, int64_t lo, int64_t hi, tide_error *err) {
    tide__curve *c = k->c;
    while (k->at < c->n && c->leaves[k->at].end_ns < lo) k->at++;
    int64_t carried = tide__curve_before(c, k->at);
    bool is_carried = true;
    for (size_t i = k->at; i < c->n && c->leaves[i].begin_ns < hi; i++) {
        const tide__leaf *l = &c->leaves[i];
        if (l->begin_ns <= lo || l->end_ns >= hi) {
            TIDE_TRY(exact_leaf(k, i, lo, hi, &carried, &is_carried, err));
            continue;
        }
        TIDE_TRY(take_leaf(k, i, err));
    }
    if (is_carried) take(k, carried);
    return TIDE_OK;
}

/// t0 + part / n of the length, without overflow: both factors of the rest are at most n.
static int64_t column_edge(uint64_t t0, uint64_t len, size_t part, size_t n) {
    const uint64_t at = t0 + (len / n * part + len % n * part / n);
    return at > INT64_MAX ? INT64_MAX : (int64_t)at;
}

/// Whether the window is small enough to be read event by event.
static bool is_small(const tide_trace *t, const tide__curve *c, uint64_t t0, uint64_t t1) {
    size_t n = 0, lo = 0, hi = c->n;
    while (lo < hi) { // the first leaf that ends at or behind t0
        const size_t mid = lo + (hi - lo) / 2;
        if ((uint64_t)c->leaves[mid].end_ns < t0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    for (size_t i = lo; i < c->n && (uint64_t)c->leaves[i].begin_ns < t1; i++) {
        const tide__leaf *l = &c->leaves[i];
        if (l->first_event < t->first_event || l->last_event - l->first_event >= TIDE__LEAF_EVENTS) return false;
        if (++n > EXACT_LEAVES) return false;
    }
    return true;
}

tide_status tide_trace_columns(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1, size_t n,
                               tide_columns_mode mode, uint64_t *min_bytes, uint64_t *max_bytes, tide_error *err) {
    columns k = {.t = t, .is_exact = mode == TIDE_COLUMNS_EXACT};
    TIDE_TRY(tide__trace_curve(t, kind, device, &k.c, err));
    if (!k.is_exact) k.is_exact = is_small(t, k.c, t0, t1);
    const uint64_t len = t1 > t0 ? t1 - t0 : 0;
    int64_t before = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const int64_t lo = column_edge(t0, len, i, n);
        int64_t hi = column_edge(t0, len, i + 1, n);
        if (hi <= lo) hi = lo < INT64_MAX ? lo + 1 : lo;
        if (i > 0 && lo == before) { // narrower than the unit
            min_bytes[i] = min_bytes[i - 1];
            max_bytes[i] = max_bytes[i - 1];
            continue;
        }
        before = lo;
        k.low = INT64_MAX;
        k.high = -1;
        TIDE_TRY(k.is_exact ? exact_column(&k, lo, hi, err) : fast_column(&k, lo, hi, err));
        min_bytes[i] = (uint64_t)k.low;
        max_bytes[i] = (uint64_t)k.high;
    }
    return TIDE_OK;
}
