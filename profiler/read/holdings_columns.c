// SPDX-License-Identifier: MIT
//
// Pools over time, in columns. See holdings.h.
//
//     intervals   [    0    |   1   |     2      |  3  |    of events: their ends are at any time
//     columns     |   0   |   1   |   2   |   3   |         an interval counts for each column that it reaches into
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/read/holdings_internal.h"

/// A window of at most so many events is walked through.
enum { EXACT_EVENTS = 16384 };

typedef struct columns {
    tide_trace *t;
    uint64_t t0, t1;
    size_t n; // at most one for each nanosecond
    tide__span span;
    tide__pool_sums *sums;
    size_t *order;               // [n pools], owned
    tide_trace_pool_column *out; // [n pools][n], owned
    // of an exact answer
    tide__pool_walk walk;
    tide_trace_pool_column *now; // [n pools] after the last event, owned
    size_t at;                   // the column that it lies in
} columns;

__extension__ typedef unsigned __int128 u128;

size_t tide_trace_column_of(uint64_t t0, uint64_t t1, size_t n, uint64_t t) {
    TIDE_ASSERT(t >= t0 && t < t1 && n > 0 && n <= t1 - t0);
    const u128 d = (u128)(t - t0) + 1, len = t1 - t0;
    return (size_t)((d * n + len - 1) / len) - 1;
}

static size_t column_of(const columns *c, uint64_t t_ns) { return tide_trace_column_of(c->t0, c->t1, c->n, t_ns); }

/// All columns that the times from `from` to `to` reach into; false: none.
static bool columns_of(const columns *c, uint64_t from, uint64_t to, size_t *first, size_t *last) {
    if (to < c->t0 || from >= c->t1 || to < from) return false;
    *first = from <= c->t0 ? 0 : column_of(c, from);
    *last = to >= c->t1 ? c->n - 1 : column_of(c, to);
    return true;
}

static void join_into(columns *c, size_t pool, size_t column, const tide_trace_pool_column *from) {
    tide_trace_pool_column_join(&c->out[pool * c->n + column], from);
}

// ---- from intervals ----

static void fill_from_intervals(columns *c) {
    const tide__pool_sums *s = c->sums;
    size_t first = 0, last = 0;
    uint64_t from = c->span.begin_ns;
    for (size_t k = 0; k <= s->n_ends; k++) {
        const bool is_behind = k == s->n_ends; // nothing changes behind the last event
        const uint64_t end = is_behind ? c->span.end_ns : s->ends_ns[k], to = end > from ? end : from;
        const bool is_seen = columns_of(c, from, to, &first, &last);
        for (size_t i = 0; is_seen && i < s->n; i++) {
            const tide__kept_pool *p = &s->pools[c->order[i]];
            if (!is_behind && k >= p->n_intervals) continue;
            for (size_t column = first; column <= last; column++)
                join_into(c, i, column, is_behind ? &p->last : &p->intervals[k]);
        }
        from = to;
    }
}

// ---- exactly ----

/// Columns up to `column` begin with what the pools held after the last event.
static void begin_columns(columns *c, size_t column) {
    while (c->at < column) {
        c->at++;
        for (size_t i = 0; i < c->sums->n; i++) join_into(c, i, c->at, &c->now[i]);
    }
}

static tide_status on_change(tide__pool_walk *w) {
    columns *c = w->ctx;
    TIDE_ASSERT(w->n == c->sums->n); // the sums know every pool
    begin_columns(c, w->now_ns <= c->t0 ? 0 : w->now_ns >= c->t1 ? c->n - 1 : column_of(c, w->now_ns));
    for (size_t i = 0; i < c->sums->n; i++) {
        const tide__pool *p = &w->pools[c->order[i]];
        if (!p->has_changed) continue;
        tide__pool_see_now(p, &c->now[i]);
        join_into(c, i, c->at, &c->now[i]);
    }
    return TIDE_OK;
}

/// Events behind `after` up to `last`.
static tide_status fill_exactly(columns *c, int64_t after, int64_t last, tide_error *err) {
    size_t first_column, last_column;
    if (!columns_of(c, c->span.begin_ns, c->span.end_ns, &first_column, &last_column)) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&c->now, c->sums->n + 1, err, "for the pools of '%s'", c->t->path));
    TIDE_TRY(tide__pool_walk_init(c->t, c->sums, &c->walk, err));
    c->walk.keeps_free = true;
    c->walk.on_change = on_change;
    c->walk.ctx = c;
    c->at = first_column;
    TIDE_TRY(tide__pool_walk_to(&c->walk, after, last, NULL, err));
    begin_columns(c, last_column);
    return TIDE_OK;
}

// ---- the question ----

static tide_status fill(columns *c, tide_error *err) {
    int64_t after = 0, last;
    if (c->t0 > 0) TIDE_TRY(tide__trace_event_at(c->t, c->t0 - 1, &after, err));
    TIDE_TRY(tide__trace_event_at(c->t, c->t1 - 1, &last, err));
    after = tide__cut_to_span(after, &c->span);
    last = tide__cut_to_span(last, &c->span);
    if (last - after <= EXACT_EVENTS) return fill_exactly(c, after, last, err);
    fill_from_intervals(c);
    return TIDE_OK;
}

static tide_status prepare(columns *c, const tide_trace_pool_columns_question *q, const tide_reading *reading,
                           tide_error *err) {
    if (q->n == 0 || q->t1_ns <= q->t0_ns)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "columns of a window that holds no time, or none of them");
    TIDE_TRY(tide__pool_sums_of(c->t, q->run_id, reading, &c->span, &c->sums, err));
    TIDE_TRY(tide__pool_order(c->sums, &c->order, err));
    const uint64_t len = q->t1_ns - q->t0_ns;
    c->n = q->n < len ? q->n : (size_t)len;
    TIDE_TRY(TIDE_NEW(&c->out, (c->sums->n + 1) * q->n, err, "for the columns of '%s'", c->t->path));
    for (size_t i = 0; i < c->sums->n * c->n; i++) c->out[i] = tide_trace_pool_column_none();
    return TIDE_OK;
}

void tide_trace_pool_columns_widen(tide_trace_pool_column *list, size_t n_pools, size_t from, size_t n) {
    for (size_t i = n_pools; from < n && i-- > 0;) // from the last one on: none is written before it was read
        for (size_t k = n; k-- > 0;) list[i * n + k] = list[i * from + (size_t)((u128)k * from / n)];
}

tide_status tide_trace_pool_columns(tide_trace *t, const tide_trace_pool_columns_question *q,
                                    const tide_reading *reading, tide_trace_pool_column **out, size_t *n_pools,
                                    tide_error *err) {
    columns c = {.t = t, .t0 = q->t0_ns, .t1 = q->t1_ns};
    tide_status st = prepare(&c, q, reading, err);
    if (st == TIDE_OK) st = fill(&c, err);
    tide__pool_walk_deinit(&c.walk);
    tide_host_free(c.now);
    tide_host_free(c.order);
    for (size_t i = 0; st == TIDE_OK && i < c.sums->n * c.n; i++)
        if (c.out[i].least_cached_bytes > c.out[i].cached_bytes) c.out[i].least_cached_bytes = 0; // of no moment
    if (st == TIDE_OK) tide_trace_pool_columns_widen(c.out, c.sums->n, c.n, q->n);
    if (st != TIDE_OK || c.sums->n == 0) {
        tide_host_free(c.out);
        c.out = NULL;
    }
    *out = c.out;
    *n_pools = st == TIDE_OK ? c.sums->n : 0;
    return st;
}
