// SPDX-License-Identifier: MIT
//
// Pools of a plan: each of its pools, or each buffer of an offset plan, over the steps.
//
//     occupied    [====]  [=======]     rectangles of bytes x steps, disjoint (planner.h)
//     changes      +   -   +      -     of one pool, by step: between two of them its bytes stay the same
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pools_internal.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

typedef struct change {
    uint32_t pool;
    int64_t step;
    uint64_t bytes;
    bool is_begin;
} change;

typedef struct maker {
    const tide_memory_plan *plan;
    tide_pools *out;
    tide_occupied *occupied; // [n], owned
    size_t n;
    change *changes;   // [2 n], owned
    uint64_t *offsets; // [pools] where each begins in its buffer; owned
} maker;

static uint32_t buffer_of(const tide_memory_plan *plan, const tide_lifetime *l) {
    for (uint32_t i = 0; i < plan->n_buffers; i++) {
        if (plan->buffers[i].kind == l->kind && tide_device_equal(plan->buffers[i].device, l->device)) return i;
    }
    return UINT32_MAX;
}

/// The pool of a root, or its buffer.
static uint32_t pool_of(const tide_memory_plan *plan, uint32_t root) {
    if (plan->n_pools > 0) return plan->pools[root] >= 0 ? (uint32_t)plan->pools[root] : UINT32_MAX;
    return buffer_of(plan, &plan->lifetimes.items[root]);
}

static tide_status add_pool(maker *m, uint64_t bytes, uint64_t offset, const tide_plan_buffer *b, size_t number,
                            tide_error *err) {
    tide_text name = {0};
    if (m->plan->n_pools > 0)
        tide_text_addf(&name, "pool %zu", number);
    else
        tide_text_add(&name, "buffer");
    if (name.data == NULL || name.failed) {
        tide_text_deinit(&name);
        return tide__pools_no_memory(err);
    }
    m->offsets[m->out->n] = offset;
    tide_pool *p = &m->out->items[m->out->n++];
    *p = (tide_pool){.name = name.data,
                     .kind = b->kind,
                     .tells_segments = true,
                     .n_segments = 1,
                     .reserved_bytes = bytes,
                     .peak_reserved_bytes = bytes};
    tide_device_format(b->device, p->device, sizeof p->device);
    return TIDE_OK;
}

static tide_status add_pools(maker *m, tide_error *err) {
    const tide_memory_plan *plan = m->plan;
    const size_t n = plan->n_pools > 0 ? plan->n_pools : plan->n_buffers;
    m->out->items = tide_host_calloc(n + 1, sizeof *m->out->items);
    m->offsets = tide_host_calloc(n + 1, sizeof *m->offsets);
    if (m->out->items == NULL || m->offsets == NULL) return tide__pools_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (plan->n_pools > 0) {
            const tide_plan_pool *pool = &plan->pool_list[i];
            TIDE_TRY(add_pool(m, pool->size_bytes, pool->offset_bytes, &plan->buffers[pool->buffer], i, err));
        } else {
            TIDE_TRY(add_pool(m, plan->buffers[i].bytes, 0, &plan->buffers[i], i, err));
        }
    }
    return TIDE_OK;
}

// ---- over the steps ----

static int by_pool(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

static size_t make_changes(maker *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        const tide_occupied *o = &m->occupied[i];
        const uint32_t pool = pool_of(m->plan, o->root);
        if (pool == UINT32_MAX) continue;
        m->changes[n++] = (change){pool, o->begin_step, o->hi_bytes - o->lo_bytes, true};
        m->changes[n++] = (change){pool, o->end_step, o->hi_bytes - o->lo_bytes, false};
    }
    if (n > 1) qsort(m->changes, n, sizeof *m->changes, by_pool);
    return n;
}

/// The pool holds `active` bytes in steps [begin, end).
static void take_stretch(tide_pool *p, int64_t at, int64_t t0, int64_t t1, int64_t begin, int64_t end,
                         uint64_t active) {
    if (begin >= end) return;
    const uint64_t cached = p->reserved_bytes - active;
    if (active > p->peak_active_bytes) p->peak_active_bytes = active;
    if (begin <= t1 && end > t0 && cached < p->unused_bytes) p->unused_bytes = cached;
    if (begin <= at && at < end) {
        p->active_bytes = active;
        p->cached_bytes = cached;
    }
}

typedef void (*stretch_fn)(tide_pool *p, int64_t at, int64_t t0, int64_t t1, int64_t begin, int64_t end,
                           uint64_t active);

/// After the moment is known: the last stretch before it in which less was left.
static void find_since(tide_pool *p, int64_t at, int64_t t0, int64_t t1, int64_t begin, int64_t end, uint64_t active) {
    (void)t0;
    (void)t1;
    if (begin >= end || begin > at || p->reserved_bytes - active >= p->cached_bytes) return;
    p->unused_since = end;
}

static void each_stretch(const maker *m, size_t n_changes, int64_t t0, int64_t t1, const tide_subject_facts *facts,
                         stretch_fn take) {
    size_t i = 0;
    for (uint32_t pool = 0; pool < m->out->n; pool++) {
        uint64_t in = 0, out = 0; // sums of all that began and ended: neither can pass the sum of all
        int64_t from = facts->begin;
        while (i < n_changes && m->changes[i].pool == pool) {
            const int64_t step = m->changes[i].step;
            take(&m->out->items[pool], m->out->at.t, t0, t1, from, step, in - out);
            for (; i < n_changes && m->changes[i].pool == pool && m->changes[i].step == step; i++)
                *(m->changes[i].is_begin ? &in : &out) += m->changes[i].bytes;
            from = step;
        }
        take(&m->out->items[pool], m->out->at.t, t0, t1, from, facts->end, in - out);
    }
}

// ---- at the moment ----

typedef struct stretch {
    uint32_t pool, root;
    uint64_t lo, hi; // in its buffer
} stretch;

static int by_place(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/// What rounding adds to a root that is alive.
static uint64_t rounding_of(const tide_lifetime *l, int64_t step) {
    const bool is_alive = l->begin_step <= step && step < l->end_step && l->n_gaps == 0;
    return is_alive ? tide_lifetime_aligned_bytes(l) - l->size_bytes : 0;
}

static int by_root(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
    return (x->root > y->root) - (x->root < y->root);
}

static void count_blocks(const maker *m, stretch *list, size_t n) {
    if (n > 1) qsort(list, n, sizeof *list, by_root);
    for (uint32_t i = 0; i < m->out->n; i++) m->out->items[i].requested_bytes = m->out->items[i].active_bytes;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && list[i].root == list[i - 1].root) continue;
        tide_pool *p = &m->out->items[list[i].pool];
        p->n_blocks++;
        p->requested_bytes -= rounding_of(&m->plan->lifetimes.items[list[i].root], m->out->at.t);
    }
}

static tide_status find_free(const maker *m, tide_error *err) {
    stretch *list = tide_host_alloc((m->n + 1) * sizeof *list);
    if (list == NULL) return tide__pools_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        const tide_occupied *o = &m->occupied[i];
        const uint32_t pool = pool_of(m->plan, o->root);
        if (pool == UINT32_MAX || o->begin_step > m->out->at.t || o->end_step <= m->out->at.t) continue;
        const uint64_t offset = m->plan->offsets[o->root];
        list[n++] = (stretch){pool, o->root, offset + o->lo_bytes, offset + o->hi_bytes};
    }
    count_blocks(m, list, n);
    if (n > 1) qsort(list, n, sizeof *list, by_place);
    size_t i = 0;
    for (uint32_t pool = 0; pool < m->out->n; pool++) {
        tide_pool *p = &m->out->items[pool];
        uint64_t end = m->offsets[pool];
        for (; i < n && list[i].pool == pool; i++) {
            if (list[i].lo > end && list[i].lo - end > p->largest_free_bytes) p->largest_free_bytes = list[i].lo - end;
            if (list[i].hi > end) end = list[i].hi;
        }
        const uint64_t rest = m->offsets[pool] + p->reserved_bytes - end;
        if (rest > p->largest_free_bytes) p->largest_free_bytes = rest;
    }
    tide_host_free(list);
    return TIDE_OK;
}

tide_status tide__pools_of_plan(tide_subject *s, int64_t t0, int64_t t1, tide_pools *out, tide_error *err) {
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    maker m = {.plan = facts->plan, .out = out};
    if (m.plan == NULL) return TIDE_OK;
    tide_status st = tide_lifetimes_occupied(&m.plan->lifetimes, &m.occupied, &m.n, err);
    if (st == TIDE_OK) st = add_pools(&m, err);
    if (st == TIDE_OK) {
        m.changes = tide_host_alloc((2 * m.n + 1) * sizeof *m.changes);
        if (m.changes == NULL) st = tide__pools_no_memory(err);
    }
    if (st == TIDE_OK) {
        const size_t n = make_changes(&m);
        for (size_t i = 0; i < out->n; i++) {
            out->items[i].unused_bytes = out->items[i].reserved_bytes;
            out->items[i].unused_since = facts->begin;
        }
        each_stretch(&m, n, t0, t1, facts, take_stretch);
        each_stretch(&m, n, t0, t1, facts, find_since);
        st = find_free(&m, err);
    }
    tide_host_free(m.changes);
    tide_host_free(m.offsets);
    tide_host_free(m.occupied);
    return st;
}
