// SPDX-License-Identifier: MIT
//
// The moment at which a pool is fragmented most. See pools.h.
//
//     an allocator of a trace   events: the profiler finds it
//     a pool of a plan          steps: from stretch to stretch
//     the same in a run         the steps of each execution of its context, by their first events
#include <string.h>

#include "analysis/plan_pools.h"
#include "analysis/pools.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

static uint64_t not_negative(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

/// What holds from a moment on, if it is worse than all before it.
static void take_worse(uint64_t pool_bytes, const tide__pool_stretch *s, tide_moment at, tide_pool_worst *out) {
    const tide_trace_pool_column c = tide__pool_stretch_column(pool_bytes, s);
    if (c.fragmentation <= out->share) return;
    *out = (tide_pool_worst){
        .at = at, .share = c.fragmentation, .free_bytes = c.cached_bytes, .largest_free_bytes = c.most_free_bytes};
}

// ---- a plan ----

static tide_status worst_of_plan(tide_subject *s, size_t pool, int64_t t0, int64_t t1, tide_pool_worst *out,
                                 tide_error *err) {
    const tide__plan_pools *p;
    if (tide__subject_plan(s) == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no plan");
    TIDE_TRY(tide__subject_plan_pools(s, &p, err));
    if (pool >= p->n) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no pool %zu: the plan has %zu", pool, p->n);
    const tide__pool_stretch *list = tide__plan_pool_stretches(p, pool);
    const int64_t first = t0 > s->facts.begin ? t0 : s->facts.begin, end = t1 < s->facts.end ? t1 : s->facts.end;
    for (size_t i = 0; i < p->pools[pool].n; i++) {
        const int64_t from = list[i].step > first ? list[i].step : first;
        const int64_t to = i + 1 < p->pools[pool].n && list[i + 1].step < end ? list[i + 1].step : end;
        if (from < to) take_worse(p->pools[pool].bytes, &list[i], (tide_moment){.t = from}, out);
    }
    return TIDE_OK;
}

// ---- a plan in a run ----

typedef struct window {
    uint64_t first, last; // events: what holds after `first` counts too
    int64_t t0;
} window;

static tide_status window_of(tide_subject *s, int64_t t0, int64_t t1, window *out, tide_error *err) {
    *out = (window){.t0 = t0};
    if (t0 > 0) TIDE_TRY(tide_trace_event_at(s->trace, (uint64_t)t0 - 1, &out->first, err));
    return tide_trace_event_at(s->trace, not_negative(t1) - 1, &out->last, err);
}

/// Events `from` to `to`, without `to`, that the window has a part of: its first moment.
static bool first_moment(const window *w, uint64_t from, int64_t t, uint64_t to, tide_moment *out) {
    if (from > w->last || to <= w->first || from >= to) return false;
    *out = from > w->first ? (tide_moment){t, from} : (tide_moment){w->t0, w->first};
    return true;
}

/// The steps of one execution, from event to event; behind the last one and before the first the pool is empty.
static void look_at_execution(const tide__run_pools *r, const tide_execution *e, size_t k, const window *w,
                              tide_pool_worst *out) {
    const tide__plan_pool *p = &r->pools->pools[k];
    const tide_execution_step *steps = tide_execution_steps(r->x, e);
    const uint64_t gone = r->gone[e->lane].event, end = e->idle_event < e->last_event ? e->idle_event : e->last_event;
    tide_moment at;
    if (first_moment(w, e->first_event, (int64_t)e->begin_ns, e->last_event, &at))
        take_worse(p->bytes, tide__plan_pool_stretches(r->pools, k), at, out);
    for (size_t i = 0; i < e->n_steps; i++) {
        const uint64_t next = i + 1 < e->n_steps ? e->first_event + steps[i + 1].event : end < gone ? end : gone;
        if (first_moment(w, e->first_event + steps[i].event, (int64_t)steps[i].t_ns, next, &at))
            take_worse(p->bytes, tide__plan_pool_at(r->pools, k, steps[i].step), at, out);
    }
}

static tide_status worst_in_run(tide_subject *s, size_t number, int64_t t0, int64_t t1, tide_pool_worst *out,
                                tide_error *err) {
    tide__run_pools r;
    window w;
    TIDE_TRY(tide__run_pools_of(s, &r, err));
    if (r.n_lanes == 0 || number >= r.n_lanes * r.pools->n)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no such pool");
    TIDE_TRY(window_of(s, t0, t1, &w, err));
    for (size_t i = 0; i < r.x->n; i++)
        if (r.x->items[i].lane == number / r.pools->n)
            look_at_execution(&r, &r.x->items[i], number % r.pools->n, &w, out);
    return TIDE_OK;
}

// ---- a trace ----

static bool report(void *ctx, double share) {
    const tide_progress *progress = ctx;
    return progress->tell(progress->ctx, share, "adding up pools");
}

static tide_status worst_of_allocator(tide_subject *s, const tide_trace_pool_worst_question *q, const tide_reading *how,
                                      tide_pool_worst *out, tide_error *err) {
    tide_trace_pool_worst found;
    TIDE_TRY(tide_trace_pool_find_worst(s->trace, q, how, &found, err));
    *out = (tide_pool_worst){.at = {(int64_t)found.t_ns, found.event},
                             .share = found.share,
                             .free_bytes = found.free_bytes,
                             .largest_free_bytes = found.largest_free_bytes};
    return TIDE_OK;
}

static tide_status worst_of_trace(tide_subject *s, size_t pool, int64_t t0, int64_t t1, const tide_progress *progress,
                                  tide_pool_worst *out, tide_error *err) {
    tide_progress copy = progress != NULL ? *progress : (tide_progress){0};
    const tide_reading reading = {report, &copy}, *how = progress != NULL ? &reading : NULL;
    tide_trace_pool *pools;
    size_t n;
    TIDE_TRY(tide_trace_pool_list(s->trace, s->facts.run_id, how, &pools, &n, err));
    tide_host_free(pools);
    if (pool >= n) return worst_in_run(s, pool - n, t0, t1, out, err);
    const tide_trace_pool_worst_question q = {
        .run_id = s->facts.run_id, .pool = pool, .t0_ns = not_negative(t0), .t1_ns = not_negative(t1)};
    return worst_of_allocator(s, &q, how, out, err);
}

tide_status tide_pools_worst(tide_subject *s, size_t pool, int64_t t0, int64_t t1, const tide_progress *progress,
                             tide_pool_worst *out, tide_error *err) {
    *out = (tide_pool_worst){.share = -1};
    if (t1 <= t0 || t1 <= 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that holds no time");
    TIDE_TRY(s->trace != NULL ? worst_of_trace(s, pool, t0, t1, progress, out, err)
                              : worst_of_plan(s, pool, t0, t1, out, err));
    return out->share >= 0 ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "nothing is known of free bytes then");
}
