// SPDX-License-Identifier: MIT
//
// What lies in each pool of a plan, from step to step. See plan_pools.h.
#include "analysis/plan_pools.h"

#include <stdlib.h>

#include "analysis/bisect.h"
#include "analysis/subject_internal.h"
#include "core/base/block_tree.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "profiler/lives.h"

/// At a step bytes [lo, hi) of a pool begin or end to be used; or tensors without bytes of their own here.
typedef struct change {
    uint32_t pool;
    int64_t step;
    bool is_begin;
    uint64_t lo, hi, rounding;
    uint32_t n_tensors;
} change;

typedef struct maker {
    const tide_memory_plan *plan;
    tide__plan_pools *out;
    tide_occupied *occupied; // [n], owned
    size_t n;
    change *changes; // [n_changes], owned
    size_t n_changes, cap_changes, n_stretches, cap_stretches;
    tide_block_tree free;
} maker;

// ---- pools ----

static uint32_t buffer_of(const tide_memory_plan *plan, const tide_lifetime *l) {
    for (uint32_t i = 0; i < plan->n_buffers; i++) {
        if (plan->buffers[i].kind == l->kind && tide_device_equal(plan->buffers[i].device, l->device)) return i;
    }
    return UINT32_MAX;
}

uint32_t tide__plan_pool_of(const tide_memory_plan *plan, uint32_t root) {
    if (plan->n_pools > 0) return plan->pools[root] >= 0 ? (uint32_t)plan->pools[root] : UINT32_MAX;
    return buffer_of(plan, &plan->lifetimes.items[root]);
}

static uint64_t begin_of(const tide_memory_plan *plan, uint32_t pool) {
    return plan->n_pools > 0 ? plan->pool_list[pool].offset_bytes : 0;
}

static tide_status make_pools(maker *m) {
    const tide_memory_plan *plan = m->plan;
    const size_t n = plan->n_pools > 0 ? plan->n_pools : plan->n_buffers;
    m->out->pools = tide_host_calloc(n + 1, sizeof *m->out->pools);
    if (m->out->pools == NULL) return TIDE_ERR_NOMEM;
    m->out->n = n;
    for (uint32_t i = 0; i < n; i++) {
        const bool is_pool = plan->n_pools > 0;
        m->out->pools[i].bytes = is_pool ? plan->pool_list[i].size_bytes : plan->buffers[i].bytes;
        m->out->pools[i].buffer = is_pool ? plan->pool_list[i].buffer : i;
    }
    return TIDE_OK;
}

// ---- changes ----

static int by_pool(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (int)x->is_begin - (int)y->is_begin; // at a step what ends gives its bytes first
}

static tide_status add_both(maker *m, const change *c, int64_t begin, int64_t end) {
    TIDE_TRY(tide_host_grow(&m->changes, &m->cap_changes, m->n_changes + 2, sizeof *m->changes));
    m->changes[m->n_changes] = *c;
    m->changes[m->n_changes].step = begin;
    m->changes[m->n_changes++].is_begin = true;
    m->changes[m->n_changes] = *c;
    m->changes[m->n_changes++].step = end;
    return TIDE_OK;
}

static int by_root(const void *a, const void *b) {
    const tide_occupied *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    return (x->begin_step > y->begin_step) - (x->begin_step < y->begin_step);
}

/// A tensor counts once however many rectangles it has at a step: occupied[first, end) are its own.
static tide_status add_tensor(maker *m, uint32_t pool, size_t first, size_t end) {
    const change one = {.pool = pool, .n_tensors = 1};
    int64_t from = m->occupied[first].begin_step, to = m->occupied[first].end_step;
    for (size_t i = first + 1; i < end; i++) {
        const tide_occupied *o = &m->occupied[i];
        if (o->begin_step > to) {
            TIDE_TRY(add_both(m, &one, from, to));
            from = o->begin_step;
        }
        if (o->end_step > to) to = o->end_step;
    }
    TIDE_TRY(add_both(m, &one, from, to));
    const tide_lifetime *l = &m->plan->lifetimes.items[m->occupied[first].root];
    const change rounding = {.pool = pool, .rounding = tide_lifetime_aligned_bytes(l) - l->size_bytes};
    return l->n_gaps == 0 && rounding.rounding > 0 ? add_both(m, &rounding, l->begin_step, l->end_step) : TIDE_OK;
}

static tide_status make_changes(maker *m) {
    if (m->n > 1) qsort(m->occupied, m->n, sizeof *m->occupied, by_root);
    for (size_t first = 0, end; first < m->n; first = end) {
        const uint32_t root = m->occupied[first].root, pool = tide__plan_pool_of(m->plan, root);
        for (end = first; end < m->n && m->occupied[end].root == root; end++) {
            const tide_occupied *o = &m->occupied[end];
            if (pool == UINT32_MAX || o->hi_bytes == o->lo_bytes) continue;
            const uint64_t at = m->plan->offsets[root] - begin_of(m->plan, pool);
            const change c = {.pool = pool, .lo = at + o->lo_bytes, .hi = at + o->hi_bytes};
            TIDE_TRY(add_both(m, &c, o->begin_step, o->end_step));
        }
        if (pool != UINT32_MAX) TIDE_TRY(add_tensor(m, pool, first, end));
    }
    if (m->n_changes > 1) qsort(m->changes, m->n_changes, sizeof *m->changes, by_pool);
    return TIDE_OK;
}

// ---- stretches ----

static tide_status apply(maker *m, const change *c, tide__pool_stretch *now) {
    const tide_block_span span = {c->lo, c->hi - c->lo, 0};
    tide_status st = TIDE_OK;
    if (c->is_begin) {
        now->active += span.bytes;
        now->requested += span.bytes - c->rounding;
        now->n_tensors += c->n_tensors;
    } else {
        now->active -= span.bytes;
        now->requested -= span.bytes - c->rounding;
        now->n_tensors -= c->n_tensors;
    }
    if (span.bytes == 0 || now->largest_free == TIDE_UNKNOWN_BYTES) return TIDE_OK;
    st = c->is_begin ? tide_block_tree_take(&m->free, span) : tide_block_tree_give(&m->free, span);
    now->largest_free = st == TIDE_OK ? tide_block_tree_largest(&m->free) : TIDE_UNKNOWN_BYTES;
    return st == TIDE_ERR_NOT_FOUND ? TIDE_OK : st;
}

static tide_status add_stretch(maker *m, tide__plan_pool *p, const tide__pool_stretch *s) {
    TIDE_TRY(tide_host_grow(&m->out->stretches, &m->cap_stretches, m->n_stretches + 1, sizeof *m->out->stretches));
    m->out->stretches[m->n_stretches++] = *s;
    p->n++;
    return TIDE_OK;
}

/// The changes of pool `k` from changes[i] on; *i: behind them.
static tide_status make_stretches(maker *m, size_t k, size_t *i) {
    tide__plan_pool *p = &m->out->pools[k];
    tide__pool_stretch now = {.step = INT64_MIN, .largest_free = p->bytes};
    p->first = m->n_stretches;
    tide_block_tree_deinit(&m->free);
    if (p->bytes > 0) TIDE_TRY(tide_block_tree_give(&m->free, (tide_block_span){0, p->bytes, 0}));
    TIDE_TRY(add_stretch(m, p, &now));
    while (*i < m->n_changes && m->changes[*i].pool == k) {
        now.step = m->changes[*i].step;
        for (; *i < m->n_changes && m->changes[*i].pool == k && m->changes[*i].step == now.step; ++*i)
            TIDE_TRY(apply(m, &m->changes[*i], &now));
        TIDE_TRY(add_stretch(m, p, &now));
    }
    return TIDE_OK;
}

static tide_status make(maker *m) {
    TIDE_TRY(make_pools(m));
    TIDE_TRY(make_changes(m));
    for (size_t k = 0, i = 0; k < m->out->n; k++) TIDE_TRY(make_stretches(m, k, &i));
    return TIDE_OK;
}

tide_status tide__plan_pools_make(const tide_memory_plan *plan, tide__plan_pools *out, tide_error *err) {
    *out = (tide__plan_pools){.plan = plan};
    maker m = {.plan = plan, .out = out};
    tide_status st = tide_lifetimes_occupied(&plan->lifetimes, &m.occupied, &m.n, err);
    if (st == TIDE_OK && make(&m) != TIDE_OK) st = TIDE_NO_MEMORY(err, "for pools");
    tide_block_tree_deinit(&m.free);
    tide_host_free(m.changes);
    tide_host_free(m.occupied);
    if (st != TIDE_OK) tide__plan_pools_deinit(out);
    return st;
}

tide_status tide__subject_plan_pools(tide_subject *s, const tide__plan_pools **out, tide_error *err) {
    if (!s->has_pools) TIDE_TRY(tide__plan_pools_make(tide__subject_plan(s), &s->pools, err));
    s->has_pools = true;
    *out = &s->pools;
    return TIDE_OK;
}

void tide__plan_pools_deinit(tide__plan_pools *p) {
    tide_host_free(p->pools);
    tide_host_free(p->stretches);
    *p = (tide__plan_pools){0};
}

const tide__pool_stretch *tide__plan_pool_at(const tide__plan_pools *p, size_t pool, int64_t step) {
    const tide__pool_stretch *list = tide__plan_pool_stretches(p, pool);
    size_t lo = 1, hi = p->pools[pool].n; // the first one always holds
    TIDE_BISECT(lo, hi, list[mid].step <= step);
    return &list[lo - 1];
}

// ---- extremes ----

tide_trace_pool_column tide__pool_stretch_column(uint64_t pool_bytes, const tide__pool_stretch *s) {
    const uint64_t cached = pool_bytes > s->active ? pool_bytes - s->active : 0;
    const bool is_known = s->largest_free != TIDE_UNKNOWN_BYTES;
    return (tide_trace_pool_column){
        .reserved_bytes = pool_bytes,
        .active_bytes = s->active,
        .requested_bytes = s->requested,
        .cached_bytes = cached,
        .least_cached_bytes = cached,
        .most_free_bytes = is_known ? s->largest_free : 0,
        .least_free_bytes = s->largest_free,
        .fragmentation = !is_known || pool_bytes == 0 ? -1.0F
                         : cached == 0                ? 0
                                                      : (float)(1 - (double)s->largest_free / (double)cached),
    };
}

// ---- in a run ----

/// The buffer that an execution works in, among what is alive when it begins; NULL: it is not known.
static const tide_live *find_buffer(const tide_executions *x, const tide_execution *e, const tide_live_set *set) {
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
    const tide_live *l = find_buffer(x, e, &set);
    tide_status st = TIDE_OK;
    if (l != NULL) st = tide_trace_end_event(t, l->block_id, l->alloc_event, &freed, err);
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

static void join_columns(uint64_t t0, uint64_t t1, size_t n, uint64_t from, uint64_t to,
                         const tide_trace_pool_column *c, tide_trace_pool_column *out) {
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
        join_columns(t0, t1, n, idle_since < e->begin_ns ? idle_since : e->begin_ns, first, &empty, out);
        for (size_t i = 0; end_of(r, e, e->n_steps) >= t0 && i < e->n_steps; i++) {
            const tide_trace_pool_column c = column_at(r, k, steps[i].step);
            join_columns(t0, t1, n, steps[i].t_ns, end_of(r, e, i), &c, out);
        }
        idle_since = e->n_steps > 0 ? end_of(r, e, e->n_steps - 1) : e->end_ns;
        if (idle_since < UINT64_MAX && e->end_ns < UINT64_MAX)
            join_columns(t0, t1, n, idle_since, e->end_ns, &empty, out);
    }
}

/// An execution that lies in the window from end to end had every step: no other one can leave less. Others are looked
/// through.
uint64_t tide__run_pools_least(const tide__run_pools *r, size_t lane, size_t k, uint64_t t0, uint64_t t1) {
    const uint64_t size = r->pools->pools[k].bytes;
    for (size_t x = 0; x < r->x->n; x++) {
        const tide_execution *e = &r->x->items[x];
        if (e->lane != lane || e->begin_ns < t0 || e->end_ns >= t1) continue;
        if ((int64_t)e->n_steps < r->x->plan->lifetimes.n_steps) continue;
        uint64_t most = 0;
        for (size_t i = 0; i < r->pools->pools[k].n; i++) {
            const uint64_t active = tide__plan_pool_stretches(r->pools, k)[i].active;
            if (active > most) most = active;
        }
        return size - most;
    }
    tide_trace_pool_column window = tide_trace_pool_column_none();
    tide__run_pools_fill(r, lane, k, t0, t1, 1, &window);
    return window.least_cached_bytes < size ? window.least_cached_bytes : size;
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
