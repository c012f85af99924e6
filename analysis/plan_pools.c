// SPDX-License-Identifier: MIT
//
// What lies in each pool of a plan, from step to step. See plan_pools.h.
#include "analysis/plan_pools.h"

#include <stdlib.h>

#include "analysis/bisect.h"
#include "core/base/block_tree.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

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
