// SPDX-License-Identifier: MIT
//
// Step curves. See step_curve.h.
#include "analysis/step_curve.h"

#include "analysis/bisect.h"
#include "analysis/items_order.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

void tide__step_curve_deinit(tide__step_curve *c) {
    tide_host_free(c->points);
    *c = (tide__step_curve){0};
}

tide_status tide__step_curve_add(tide__step_curve *c, int64_t t, uint64_t event, uint64_t bytes) {
    TIDE_TRY(tide_host_grow(&c->points, &c->cap, c->n + 1, sizeof *c->points));
    c->points[c->n++] = (tide__step_point){t, event, bytes};
    return TIDE_OK;
}

// ---- from changes ----

/// Order of an end among those that share its time: by event, else all at once.
static uint64_t key_of(int64_t t) { return (uint64_t)t ^ (UINT64_C(1) << 63); } // signed order as unsigned

static tide_status add_up(const tide__step_change *changes, const tide__keyed *ends, size_t n, bool whole_events,
                          tide__step_curve *out) {
    uint64_t in = 0, gone = 0; // neither passes the sum of all
    for (size_t i = 0; i < n; i++) {
        const tide__step_change *c = &changes[ends[i].number / 2];
        const bool is_end = ends[i].number % 2 != 0;
        const int64_t t = is_end ? c->end : c->begin;
        const uint64_t event = is_end ? c->end_event : c->begin_event;
        if (is_end) gone += c->bytes;
        if (!is_end) in += c->bytes;
        const bool same = out->n > 0 && out->points[out->n - 1].t == t;
        if (same && !whole_events) {
            out->points[out->n - 1].bytes = in - gone;
        } else {
            TIDE_TRY(tide__step_curve_add(out, t, event, in - gone));
        }
    }
    return TIDE_OK;
}

tide_status tide__step_curve_make(const tide__step_change *changes, size_t n, bool whole_events,
                                  tide__step_curve *out) {
    *out = (tide__step_curve){0};
    uint64_t sum = 0;
    if (n > UINT32_MAX / 2) return TIDE_ERR_OVERFLOW;
    for (size_t i = 0; i < n; i++)
        if (!tide_add_u64(sum, changes[i].bytes, &sum)) return TIDE_ERR_OVERFLOW;
    tide__keyed *ends = tide_host_alloc((2 * n + 1) * sizeof *ends),
                *spare = tide_host_alloc((2 * n + 1) * sizeof *spare);
    tide_status st = ends != NULL && spare != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (uint32_t i = 0; st == TIDE_OK && i < n; i++) {
        // by event first where there are events: the second, stable sort by time keeps that order
        ends[2 * i] = (tide__keyed){.key = changes[i].begin_event, .number = 2 * i};
        ends[2 * i + 1] = (tide__keyed){.key = changes[i].end_event, .number = 2 * i + 1};
    }
    if (st == TIDE_OK && whole_events) tide__keyed_sort(ends, spare, 2 * n);
    for (size_t i = 0; st == TIDE_OK && i < 2 * n; i++) {
        const tide__step_change *c = &changes[ends[i].number / 2];
        ends[i].key = key_of(ends[i].number % 2 != 0 ? c->end : c->begin);
    }
    if (st == TIDE_OK) {
        tide__keyed_sort(ends, spare, 2 * n);
        st = add_up(changes, ends, 2 * n, whole_events, out);
    }
    tide_host_free(ends);
    tide_host_free(spare);
    if (st != TIDE_OK) tide__step_curve_deinit(out);
    return st;
}

// ---- questions ----

/// Number of points before `t`.
static size_t points_before(const tide__step_curve *c, int64_t t) {
    size_t lo = 0, hi = c->n;
    TIDE_BISECT(lo, hi, c->points[mid].t < t);
    return lo;
}

uint64_t tide__step_curve_at(const tide__step_curve *c, int64_t t, uint64_t event) {
    size_t n = t == INT64_MAX ? c->n : points_before(c, t + 1);
    // of what happened at t only what happened up to the event
    while (event > 0 && n > 0 && c->points[n - 1].t == t && c->points[n - 1].event > event) n--;
    return n > 0 ? c->points[n - 1].bytes : 0;
}

int64_t tide__column_edge(int64_t begin, uint64_t len, size_t part, size_t n) {
    return (int64_t)((uint64_t)begin + (len / n * part + len % n * part / n));
}

void tide__step_curve_columns(const tide__step_curve *c, int64_t t0, int64_t t1, size_t n, uint64_t *min_bytes,
                              uint64_t *max_bytes) {
    const uint64_t len = t1 > t0 ? (uint64_t)t1 - (uint64_t)t0 : 0;
    size_t at = points_before(c, t0);
    for (size_t i = 0; i < n; i++) {
        const int64_t lo = tide__column_edge(t0, len, i, n);
        int64_t hi = tide__column_edge(t0, len, i + 1, n);
        if (hi <= lo) hi = lo == INT64_MAX ? lo : lo + 1;
        // Columns narrower than the unit share points: go back to the first of this one.
        if (at > 0 && c->points[at - 1].t >= lo) at = points_before(c, lo);
        while (at < c->n && c->points[at].t < lo) at++;
        const bool is_carried = at == c->n || c->points[at].t > lo;
        const uint64_t carried = at > 0 ? c->points[at - 1].bytes : 0;
        uint64_t low = is_carried ? carried : UINT64_MAX, high = is_carried ? carried : 0;
        for (; at < c->n && c->points[at].t < hi; at++) {
            if (c->points[at].bytes < low) low = c->points[at].bytes;
            if (c->points[at].bytes > high) high = c->points[at].bytes;
        }
        min_bytes[i] = low;
        max_bytes[i] = high;
    }
}

void tide__step_curve_peak(const tide__step_curve *c, int64_t t0, int64_t t1, uint64_t *bytes, int64_t *t,
                           uint64_t *event) {
    size_t i = points_before(c, t0);
    const bool is_carried = i == c->n || c->points[i].t > t0;
    *bytes = is_carried && i > 0 ? c->points[i - 1].bytes : 0;
    *event = is_carried && i > 0 ? c->points[i - 1].event : 0;
    *t = t0;
    for (bool first = !is_carried; i < c->n && c->points[i].t <= t1; i++, first = false) {
        if (!first && c->points[i].bytes <= *bytes) continue;
        *bytes = c->points[i].bytes;
        *t = c->points[i].t;
        *event = c->points[i].event;
    }
}
