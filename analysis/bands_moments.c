// SPDX-License-Identifier: MIT
//
// When most lives in each column of a window. See bands.h.
//
// Of a trace a moment is an event. A planned run is as high as long as it holds its buffer; of these moments it is the
// one with most in the buffer:
//
//     live    ______________________________
//     filled  __--__-_|_____---__|_-_           the fullest of column 1, of column 2, ...
//                ^           ^
#include "analysis/bands.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "profiler/lives.h"

/// Events of a column: after each of first to last its bytes are what the column shows.
typedef struct column {
    uint64_t first, last;
    uint64_t filled; // most that lay in buffers where the curve was as high as it is at all
} column;

typedef struct finder {
    tide_subject *s;
    const tide_bands_options *opt;
    tide_moment *at;
    uint64_t *bytes;
    bool *is_dropped;
    column *columns; // [n], owned
    size_t i;        // first column that ends at the filling or behind it
    const tide_progress *progress;
    tide_error *err;
} finder;

static int64_t begin_of(const tide_bands_options *o, size_t i) {
    return tide__column_edge(o->t0, (uint64_t)o->t1 - (uint64_t)o->t0, i, o->n);
}

static int64_t end_of(const tide_bands_options *o, size_t i) {
    const int64_t lo = begin_of(o, i), hi = begin_of(o, i + 1);
    return hi > lo ? hi : lo + 1;
}

static tide_status goes_on(const finder *f, size_t i) {
    const bool good =
        i % 16 != 0 || tide_progress_goes_on(f->progress, 0.3 * (double)i / (double)f->opt->n, "adding up");
    return good ? TIDE_OK : TIDE_FAIL(f->err, TIDE_ERR_CANCELLED, "cancelled");
}

// ---- a plan: moments are steps ----

static tide_status moments_of_plan(finder *f) {
    const tide_curve_key key = {TIDE_CURVE_LIVE, f->opt->kind, NULL};
    for (size_t i = 0; i < f->opt->n; i++) {
        TIDE_TRY(goes_on(f, i));
        TIDE_TRY(tide_subject_peak_between(f->s, key, begin_of(f->opt, i), end_of(f->opt, i) - 1, &f->bytes[i],
                                           &f->at[i], f->err));
    }
    return TIDE_OK;
}

// ---- a trace: moments are events ----

/// TIDE_OK for what was dropped, too: *dropped.
static tide_status or_dropped(const finder *f, tide_status st, const tide_error *own, bool *dropped) {
    if (st == TIDE_ERR_NOT_FOUND) *dropped = true;
    if (st == TIDE_OK || st == TIDE_ERR_NOT_FOUND) return TIDE_OK;
    if (f->err != NULL) *f->err = *own;
    return st;
}

static tide_status event_at(const finder *f, int64_t t, uint64_t *event, bool *dropped) {
    tide_error own = TIDE_ERROR_INIT;
    *event = 0;
    return t < 0 ? TIDE_OK : or_dropped(f, tide_trace_event_at(f->s->trace, (uint64_t)t, event, &own), &own, dropped);
}

/// `at`: event, and its time where that is later than at->t is.
static tide_status peak_of(const finder *f, uint64_t first, uint64_t last, uint64_t *high, tide_moment *at,
                           bool *dropped) {
    tide_error own = TIDE_ERROR_INIT;
    uint64_t t_ns = 0;
    if (*dropped) return TIDE_OK;
    const tide_status st =
        tide_trace_peak_of_events(f->s->trace, f->opt->kind, NULL, first, last, high, &at->event, &t_ns, &own);
    if (st == TIDE_OK && (int64_t)t_ns > at->t) at->t = (int64_t)t_ns;
    return or_dropped(f, st, &own, dropped);
}

/// The first event of column `i` after which the curve is as high as the column. What holds when the column begins does
/// not count if something changes right there; then it is passed over.
static tide_status find_event(const finder *f, size_t i) {
    const int64_t lo = begin_of(f->opt, i);
    column *c = &f->columns[i];
    uint64_t high = 0, at_begin;
    tide_moment at = {.t = lo};
    bool *dropped = &f->is_dropped[i];
    if (i > 0 && end_of(f->opt, i - 1) == lo && !f->is_dropped[i - 1])
        c->first = c[-1].last;
    else
        TIDE_TRY(event_at(f, lo - 1, &c->first, dropped));
    TIDE_TRY(event_at(f, lo, &at_begin, dropped));
    TIDE_TRY(event_at(f, end_of(f->opt, i) - 1, &c->last, dropped));
    TIDE_TRY(peak_of(f, c->first, c->last, &high, &at, dropped));
    while (!*dropped && high > f->bytes[i] && c->first < at_begin) {
        c->first = (at.event > c->first ? at.event : c->first) + 1;
        at.t = lo;
        TIDE_TRY(peak_of(f, c->first, c->last, &high, &at, dropped));
    }
    if (!*dropped) f->bytes[i] = high; // lower where the bytes of the column are those of a whole leaf
    f->at[i] = at;
    return TIDE_OK;
}

static tide_status highest_values(const finder *f) {
    uint64_t *low;
    const tide_bands_options *o = f->opt;
    const uint64_t t0 = o->t0 > 0 ? (uint64_t)o->t0 : 0, t1 = o->t1 > 0 ? (uint64_t)o->t1 : 0;
    tide_error own = TIDE_ERROR_INIT;
    TIDE_TRY(TIDE_NEW(&low, o->n, f->err, "for bands"));
    tide_status st =
        tide_trace_columns(f->s->trace, o->kind, NULL, t0, t1, o->n, TIDE_COLUMNS_EXACT, low, f->bytes, &own);
    if (st == TIDE_ERR_NOT_FOUND) { // of events that were dropped the leaves are left
        tide_error_clear(&own);
        st = tide_trace_columns(f->s->trace, o->kind, NULL, t0, t1, o->n, TIDE_COLUMNS_FAST, low, f->bytes, &own);
    }
    if (st != TIDE_OK && f->err != NULL) *f->err = own;
    tide_host_free(low);
    return st;
}

/// Columns that meet the filling and where more lies in buffers than before: are they as high there?
static tide_status on_filling(void *ctx, const tide_trace_filling *x) {
    finder *f = ctx;
    while (f->i < f->opt->n && f->columns[f->i].last < x->first) f->i++;
    for (size_t i = f->i; i < f->opt->n && f->columns[i].first <= x->last; i++) {
        column *c = &f->columns[i];
        const uint64_t first = c->first > x->first ? c->first : x->first, last = c->last < x->last ? c->last : x->last;
        uint64_t high;
        tide_moment at = {.t = begin_of(f->opt, i)};
        bool dropped = false;
        if (f->is_dropped[i] || x->bytes <= c->filled || last < first) continue;
        TIDE_TRY(peak_of(f, first, last, &high, &at, &dropped));
        if (dropped || high < f->bytes[i]) continue;
        c->filled = x->bytes;
        f->at[i] = at;
    }
    return tide_progress_goes_on(f->progress, 0.3, "adding up") ? TIDE_OK
                                                                : TIDE_FAIL(f->err, TIDE_ERR_CANCELLED, "cancelled");
}

static tide_status moments_of_trace(finder *f) {
    const tide_bands_options *o = f->opt;
    const tide__planned_runs *planned;
    TIDE_TRY(highest_values(f));
    for (size_t i = 0; i < o->n; i++) {
        TIDE_TRY(goes_on(f, i));
        if (i > 0 && begin_of(o, i) == begin_of(o, i - 1)) { // narrower than the unit
            f->columns[i] = f->columns[i - 1];
            f->at[i] = f->at[i - 1];
            f->bytes[i] = f->bytes[i - 1];
            f->is_dropped[i] = f->is_dropped[i - 1];
            continue;
        }
        TIDE_TRY(find_event(f, i));
    }
    TIDE_TRY(tide__subject_planned(f->s, &planned, f->err));
    return planned->n == 0 ? TIDE_OK
                           : tide_trace_each_filling(f->s->trace, f->s->facts.run_id, f->columns[0].first,
                                                     f->columns[o->n - 1].last, on_filling, f, f->err);
}

tide_status tide__bands_moments(tide_subject *s, const tide_bands_options *opt, tide_moment *at, uint64_t *bytes,
                                bool *is_dropped, const tide_progress *progress, tide_error *err) {
    finder f = {
        .s = s, .opt = opt, .at = at, .bytes = bytes, .is_dropped = is_dropped, .progress = progress, .err = err};
    if (s->trace == NULL) return moments_of_plan(&f);
    TIDE_TRY(TIDE_NEW(&f.columns, opt->n, err, "for bands"));
    const tide_status st = moments_of_trace(&f);
    tide_host_free(f.columns);
    return st;
}
