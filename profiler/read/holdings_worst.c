// SPDX-License-Identifier: MIT
//
// After which event a pool is fragmented most. See holdings.h.
//
//     window      |-------------------------------------|     events
//     intervals   [    ][    ][    ][    ][    ][    ][    ]   the highest share of each is known
//     walked      ######            ######            ######   the first and the last, and the first that has the
//                                                              highest share of all
#include "profiler/read/holdings_internal.h"

#include "core/base/host_alloc.h"

typedef struct question {
    tide_trace *t;
    const tide_trace_pool_worst_question *of;
    tide__span span;
    tide__pool_sums *sums;
    size_t pool;         // as the sums number it
    int64_t after, last; // events of the window: the state after `after` counts too
    tide__pool_walk walk;
    bool counts_begin; // the state that the present walk begins with is part of the window
    tide_trace_pool_worst *out;
    tide_error *err;
} question;

static int64_t first_of(const question *q, int64_t interval) {
    return q->sums->first_event + interval * q->sums->interval_events;
}

static tide_status on_change(tide__pool_walk *w) {
    question *q = w->ctx;
    const tide__pool *p = &w->pools[q->pool];
    tide_trace_pool_column now;
    if (!p->has_changed || (w->now_event == 0 && !q->counts_begin)) return TIDE_OK;
    tide__pool_see_now(p, &now);
    if (now.fragmentation <= q->out->share) return TIDE_OK;
    const bool is_begin = w->now_event == 0;
    *q->out = (tide_trace_pool_worst){.event = is_begin ? (uint64_t)q->after : w->now_event,
                                      .t_ns = is_begin ? q->of->t0_ns : w->now_ns,
                                      .share = now.fragmentation,
                                      .free_bytes = now.cached_bytes,
                                      .largest_free_bytes = now.most_free_bytes};
    return TIDE_OK;
}

/// Events of the window in interval `k`; with counts_begin also the state before them.
static tide_status look_through(question *q, int64_t k) {
    const int64_t begin = first_of(q, k) - 1, end = first_of(q, k + 1) - 1;
    tide__pool_walk_reset(&q->walk);
    q->walk.on_change = on_change;
    q->walk.ctx = q;
    const tide_status st =
        tide__pool_walk_to(&q->walk, begin > q->after ? begin : q->after, end < q->last ? end : q->last, NULL, q->err);
    q->counts_begin = false;
    return st;
}

/// The first of intervals `from` to `to`, without `to`, that has the highest share of them, if that is higher than what
/// was found; -1: none.
static int64_t worst_interval(const question *q, int64_t from, int64_t to) {
    const tide__kept_pool *p = &q->sums->pools[q->pool];
    float most = q->out->share;
    int64_t found = -1;
    for (int64_t k = from; k < to && (size_t)k < p->n_intervals; k++) {
        if (p->intervals[k].fragmentation <= most) continue;
        most = p->intervals[k].fragmentation;
        found = k;
    }
    return found;
}

static tide_status look(question *q) {
    const int64_t first = q->after >= q->sums->first_event ? tide__interval_of(q->sums, q->after) : 0;
    const int64_t last = q->last >= q->sums->first_event ? tide__interval_of(q->sums, q->last) : 0;
    q->counts_begin = true;
    TIDE_TRY(look_through(q, first));
    const int64_t worst = worst_interval(q, first + 1, last);
    if (worst >= 0) TIDE_TRY(look_through(q, worst));
    return last > first ? look_through(q, last) : TIDE_OK;
}

static tide_status prepare(question *q, const tide_reading *reading) {
    size_t *order;
    if (q->of->t1_ns <= q->of->t0_ns) return TIDE_FAIL(q->err, TIDE_ERR_INVALID, "a window that holds no time");
    TIDE_TRY(tide__pool_sums_of(q->t, q->of->run_id, reading, &q->span, &q->sums, q->err));
    if (q->of->pool >= q->sums->n)
        return TIDE_FAIL(q->err, TIDE_ERR_NOT_FOUND, "there is no pool %zu: the run has %zu", q->of->pool, q->sums->n);
    TIDE_TRY(tide__pool_order(q->sums, &order, q->err));
    q->pool = order[q->of->pool];
    tide_host_free(order);
    if (q->of->t0_ns > 0) TIDE_TRY(tide__trace_event_at(q->t, q->of->t0_ns - 1, &q->after, q->err));
    TIDE_TRY(tide__trace_event_at(q->t, q->of->t1_ns - 1, &q->last, q->err));
    q->after = tide__cut_to_span(q->after, &q->span);
    q->last = tide__cut_to_span(q->last, &q->span);
    TIDE_TRY(tide__pool_walk_init(q->t, q->sums, &q->walk, q->err));
    q->walk.keeps_free = true;
    return TIDE_OK;
}

tide_status tide_trace_pool_find_worst(tide_trace *t, const tide_trace_pool_worst_question *of,
                                       const tide_reading *reading, tide_trace_pool_worst *out, tide_error *err) {
    question q = {.t = t, .of = of, .out = out, .err = err};
    *out = (tide_trace_pool_worst){.share = -1};
    tide_status st = prepare(&q, reading);
    if (st == TIDE_OK) st = look(&q);
    tide__pool_walk_deinit(&q.walk);
    if (st == TIDE_OK && out->share < 0)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "nothing is known of free bytes then");
    return st;
}
