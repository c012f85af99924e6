// SPDX-License-Identifier: MIT
//
// Pools of a plan while its executions go on. See pool_internal.h.
//
//     execution     | 0 |  1  | 2 |        | 0 |  1  | 2 |     steps, at the times when they ran
//     pool          | a |  b  | c |  none  | a |  b  | c |     what the plan has in it at that step
#include "analysis/pool_internal.h"
#include "profiler/lives.h"

/// The buffer that an execution works in, among what is alive when it begins; NULL: it is not known.
static const tide_live *buffer_of(const tide_executions *x, const tide_execution *e, const tide_live_set *set) {
    for (size_t i = 0; i < set->n; i++) {
        const tide_live *l = &set->items[i];
        const bool is_it = e->buffer_block != 0
                               ? l->block_id == e->buffer_block
                               : tide_executions_buffer(x, l->kind, l->device, l->requested_bytes) != NULL;
        if (is_it) return l;
    }
    return NULL;
}

/// When the buffer of an execution that was never left was freed.
static tide_status find_gone(tide_trace *t, const tide_executions *x, const tide_execution *e, tide_moment *out,
                             tide_error *err) {
    tide_live_set set;
    tide_trace_event event;
    uint64_t freed = UINT64_MAX;
    size_t n;
    TIDE_TRY(tide_trace_live_set_after(t, e->first_event, &set, err));
    const tide_live *l = buffer_of(x, e, &set);
    tide_status st = TIDE_OK;
    if (l != NULL) st = tide_trace_free_event(t, l->block_id, l->alloc_event, &freed, err);
    tide_live_set_deinit(&set);
    if (st != TIDE_OK || freed == UINT64_MAX) return st;
    TIDE_TRY(tide_trace_events(t, freed, &event, 1, &n, err));
    if (n == 1) *out = (tide_moment){.t = (int64_t)event.t_ns, .event = freed};
    return TIDE_OK;
}

tide_status tide__run_pools_of(tide_subject *s, tide__run_pools *out, tide_error *err) {
    *out = (tide__run_pools){0};
    if (s->trace == NULL || s->facts.run_id == 0 || tide__subject_plan(s) == NULL) return TIDE_OK;
    TIDE_TRY(tide_trace_executions(s->trace, s->facts.run_id, &out->x, err));
    if (out->x->plan == NULL) return TIDE_OK;
    TIDE_TRY(tide__subject_plan_pools(s, &out->pools, err));
    out->n_lanes = out->x->n_lanes < TIDE__POOL_LANES ? out->x->n_lanes : TIDE__POOL_LANES;
    for (size_t i = 0; i < out->n_lanes; i++) out->gone[i] = (tide_moment){INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < out->x->n; i++) {
        const tide_execution *e = &out->x->items[i];
        if (e->lane < out->n_lanes && e->last_event == UINT64_MAX)
            TIDE_TRY(find_gone(s->trace, out->x, e, &out->gone[e->lane], err));
    }
    return TIDE_OK;
}

static bool is_gone(const tide__run_pools *r, size_t lane, tide_moment at) {
    const tide_moment *g = &r->gone[lane];
    return at.event > 0 ? at.event >= g->event : at.t >= g->t;
}

static const tide_execution *execution_at(const tide__run_pools *r, size_t lane, tide_moment at) {
    if (is_gone(r, lane, at)) return NULL;
    const size_t i = at.event > 0 ? tide_executions_at(r->x, (uint32_t)lane, at.event)
                                  : tide_executions_at_ns(r->x, (uint32_t)lane, at.t > 0 ? (uint64_t)at.t : 0);
    return i != SIZE_MAX ? &r->x->items[i] : NULL;
}

/// The index in its steps of the one that runs then; SIZE_MAX: none.
static size_t step_index(const tide__run_pools *r, const tide_execution *e, tide_moment at) {
    return at.event > 0 ? tide_execution_step_at(r->x, e, at.event)
                        : tide_execution_step_at_ns(r->x, e, at.t > 0 ? (uint64_t)at.t : 0);
}

int64_t tide__run_pools_step(const tide__run_pools *r, size_t lane, tide_moment at) {
    const tide_execution *e = execution_at(r, lane, at);
    const size_t i = e != NULL ? step_index(r, e, at) : SIZE_MAX;
    return i != SIZE_MAX ? tide_execution_steps(r->x, e)[i].step : INT64_MIN;
}

static uint64_t cached_at(const tide__run_pools *r, size_t k, int64_t step) {
    return r->pools->pools[k].bytes - tide__plan_pool_at(r->pools, k, step)->active;
}

/// When a step ends: the next one begins, or the last one is left.
static uint64_t end_of(const tide__run_pools *r, const tide_execution *e, size_t i) {
    if (i + 1 < e->n_steps) return tide_execution_steps(r->x, e)[i + 1].t_ns;
    const uint64_t end = e->idle_ns < e->end_ns ? e->idle_ns : e->end_ns;
    return end == UINT64_MAX ? (uint64_t)r->gone[e->lane].t : end;
}

/// The last step of the execution, before step `end`, with less than `bytes` cached; SIZE_MAX: none.
static size_t last_with_less(const tide__run_pools *r, const tide_execution *e, size_t end, size_t k, uint64_t bytes) {
    const tide_execution_step *steps = tide_execution_steps(r->x, e);
    for (size_t i = end; i-- > 0;)
        if (cached_at(r, k, steps[i].step) < bytes) return i;
    return SIZE_MAX;
}

/// Steps of the execution that are over at the moment; a step that runs is not.
static size_t steps_over(const tide__run_pools *r, const tide_execution *e, tide_moment at) {
    const size_t i = step_index(r, e, at);
    if (i != SIZE_MAX || e->n_steps == 0) return i != SIZE_MAX ? i : 0;
    const tide_execution_step *first = tide_execution_steps(r->x, e);
    const bool has_begun = at.event > 0 ? e->first_event + first->event <= at.event : (int64_t)first->t_ns <= at.t;
    return has_begun ? e->n_steps : 0;
}

int64_t tide__run_pools_since(const tide__run_pools *r, size_t lane, size_t k, tide_moment at, int64_t begin) {
    const uint64_t bytes = cached_at(r, k, tide__run_pools_step(r, lane, at));
    for (size_t x = r->x->n; x-- > 0;) {
        const tide_execution *e = &r->x->items[x];
        const bool has_begun = at.event > 0 ? e->first_event <= at.event : (int64_t)e->begin_ns <= at.t;
        if (e->lane != lane || !has_begun) continue;
        const size_t end = steps_over(r, e, at), i = last_with_less(r, e, end, k, bytes);
        if (i != SIZE_MAX) return (int64_t)end_of(r, e, i);
        // others before it ran the same steps
        if (end == e->n_steps && (int64_t)end >= r->x->plan->lifetimes.n_steps) break;
    }
    return begin;
}

// ---- columns ----

static void join(uint64_t t0, uint64_t t1, size_t n, uint64_t from, uint64_t to, const tide_trace_pool_column *c,
                 tide_trace_pool_column *out) {
    if (to < t0 || from >= t1 || to < from) return;
    const size_t first = from <= t0 ? 0 : tide_trace_column_of(t0, t1, n, from);
    const size_t last = to >= t1 ? n - 1 : tide_trace_column_of(t0, t1, n, to);
    for (size_t i = first; i <= last; i++) tide_trace_pool_column_join(&out[i], c);
}

static tide_trace_pool_column column_at(const tide__run_pools *r, size_t k, int64_t step) {
    return tide__pool_stretch_column(r->pools->pools[k].bytes, tide__plan_pool_at(r->pools, k, step));
}

void tide__run_pools_fill(const tide__run_pools *r, size_t lane, size_t k, uint64_t t0, uint64_t t1, size_t n,
                          tide_trace_pool_column *out) {
    const tide_trace_pool_column empty = column_at(r, k, INT64_MIN);
    uint64_t idle_since = UINT64_MAX; // before the first execution there is no pool
    for (size_t x = 0; x < r->x->n; x++) {
        const tide_execution *e = &r->x->items[x];
        if (e->lane != lane) continue;
        if (e->begin_ns >= t1 && idle_since >= t1) return;
        const tide_execution_step *steps = tide_execution_steps(r->x, e);
        const uint64_t first = e->n_steps > 0 ? steps[0].t_ns : e->begin_ns;
        join(t0, t1, n, idle_since < e->begin_ns ? idle_since : e->begin_ns, first, &empty, out);
        for (size_t i = 0; end_of(r, e, e->n_steps) >= t0 && i < e->n_steps; i++) {
            const tide_trace_pool_column c = column_at(r, k, steps[i].step);
            join(t0, t1, n, steps[i].t_ns, end_of(r, e, i), &c, out);
        }
        idle_since = e->n_steps > 0 ? end_of(r, e, e->n_steps - 1) : e->end_ns;
        if (idle_since < UINT64_MAX && e->end_ns < UINT64_MAX) join(t0, t1, n, idle_since, e->end_ns, &empty, out);
    }
}

bool tide__run_pools_next(const tide__run_pools *r, size_t lane, size_t k, tide_moment at, uint64_t bytes,
                          tide_moment *out) {
    if (is_gone(r, lane, at)) return false;
    for (size_t x = 0; bytes <= r->pools->pools[k].bytes && x < r->x->n; x++) {
        const tide_execution *e = &r->x->items[x];
        if (e->lane != lane || (at.event > 0 ? e->last_event <= at.event : e->end_ns <= (uint64_t)at.t)) continue;
        const tide_execution_step *steps = tide_execution_steps(r->x, e);
        for (size_t i = 0; i < e->n_steps; i++) {
            const tide_moment m = {.t = (int64_t)steps[i].t_ns, .event = e->first_event + steps[i].event};
            if (at.event > 0 ? m.event <= at.event : m.t <= at.t) continue;
            const uint64_t free = tide__plan_pool_at(r->pools, k, steps[i].step)->largest_free;
            if (free != TIDE_UNKNOWN_BYTES && free >= bytes) {
                *out = m;
                return true;
            }
        }
        const uint64_t idle = e->idle_event < e->last_event ? e->idle_event : e->last_event;
        if (idle == UINT64_MAX) continue;
        *out = (tide_moment){.t = (int64_t)(e->idle_ns < e->end_ns ? e->idle_ns : e->end_ns), .event = idle};
        return true;
    }
    return false;
}
