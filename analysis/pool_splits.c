// SPDX-License-Identifier: MIT
//
// Whose blocks split the free memory of a pool. See pools.h.
//
//     segment   [ a ][ free ][ b ][ c ][ free ][ d ]      b and c split it: free memory is before and behind them
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_pools.h"
#include "analysis/pools.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

/// Bytes [lo, hi) of a segment or pool that something holds.
typedef struct span {
    uint64_t lo, hi;
    const char *name, *owner; // borrowed
    uint64_t id;
} span;

typedef struct finder {
    span *list; // [n], owned: of one segment or pool
    size_t n;
    tide_pool_splits *out;
    size_t cap;
} finder;

static int by_lo(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    return (x->hi > y->hi) - (x->hi < y->hi);
}

static int by_size(const void *a, const void *b) {
    const tide_pool_blocker *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

void tide_pool_splits_deinit(tide_pool_splits *p) {
    for (size_t i = 0; i < p->n; i++) {
        tide_host_free(p->items[i].name);
        tide_host_free(p->items[i].owner);
    }
    tide_host_free(p->items);
    *p = (tide_pool_splits){0};
}

static tide_status add(finder *f, const span *s) {
    TIDE_TRY(tide_host_grow(&f->out->items, &f->cap, f->out->n + 1, sizeof *f->out->items));
    tide_pool_blocker *b = &f->out->items[f->out->n++];
    *b = (tide_pool_blocker){tide_host_strdup(s->name), tide_host_strdup(s->owner), s->id, s->hi - s->lo};
    return b->name != NULL && b->owner != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
}

/// Of those in `list`, which is by address and lies in `bytes` bytes: behind the first free stretch and before the
/// last.
static tide_status add_splitters(finder *f, const span *list, size_t n, uint64_t bytes) {
    uint64_t at = 0, first_end = UINT64_MAX, last_begin = 0;
    for (size_t i = 0; i <= n; i++) {
        const uint64_t lo = i < n ? list[i].lo : bytes;
        if (lo > at) {
            last_begin = at;
            if (first_end == UINT64_MAX) first_end = lo;
        }
        if (i < n && list[i].hi > at) at = list[i].hi;
    }
    for (size_t i = 0; i < n; i++)
        if (list[i].lo >= first_end && list[i].hi <= last_begin) TIDE_TRY(add(f, &list[i]));
    return TIDE_OK;
}

// ---- a plan ----

/// What is there at the step, by address; parts of one tensor that meet are one.
static void take_occupied(finder *f, const tide_memory_plan *plan, const tide_occupied *o, size_t n, size_t pool,
                          int64_t step) {
    const uint64_t begin = plan->n_pools > 0 ? plan->pool_list[pool].offset_bytes : 0;
    for (size_t i = 0; i < n; i++) {
        const bool is_there = o[i].begin_step <= step && step < o[i].end_step && o[i].hi_bytes > o[i].lo_bytes;
        if (!is_there || tide__plan_pool_of(plan, o[i].root) != pool) continue;
        const uint64_t at = plan->offsets[o[i].root] - begin;
        f->list[f->n++] =
            (span){at + o[i].lo_bytes, at + o[i].hi_bytes, plan->lifetimes.items[o[i].root].name, "", o[i].root};
    }
    if (f->n > 1) qsort(f->list, f->n, sizeof *f->list, by_lo);
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++) {
        span *last = kept > 0 ? &f->list[kept - 1] : NULL;
        if (last != NULL && last->id == f->list[i].id && f->list[i].lo <= last->hi) {
            if (f->list[i].hi > last->hi) last->hi = f->list[i].hi;
        } else {
            f->list[kept++] = f->list[i];
        }
    }
    f->n = kept;
}

static tide_status splits_of_plan(finder *f, const tide__plan_pools *p, size_t pool, int64_t step, tide_error *err) {
    tide_occupied *occupied;
    size_t n;
    if (pool >= p->n) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no pool %zu: the plan has %zu", pool, p->n);
    TIDE_TRY(tide_lifetimes_occupied(&p->plan->lifetimes, &occupied, &n, err));
    tide_status st = TIDE_NEW(&f->list, n + 1, err, "for what splits a pool");
    if (st == TIDE_OK) {
        take_occupied(f, p->plan, occupied, n, pool, step);
        if (add_splitters(f, f->list, f->n, p->pools[pool].bytes) != TIDE_OK)
            st = TIDE_NO_MEMORY(err, "for what splits a pool");
    }
    tide_host_free(occupied);
    return st;
}

// ---- an allocator ----

static bool is_of(const tide_trace_pool *p, const tide_trace_segment *seg, uint64_t event) {
    return p->tells_segments && p->kind == seg->kind && strcmp(p->allocator, seg->allocator) == 0 &&
           strcmp(p->device, seg->device) == 0 && seg->begin_event <= event && event < seg->end_event;
}

static int by_address(const void *a, const void *b) {
    const tide_live *x = *(const tide_live *const *)a, *y = *(const tide_live *const *)b;
    return (x->address > y->address) - (x->address < y->address);
}

/// The first of `live`, which is by address, at or behind the address.
static size_t first_at(const tide_live *const *live, size_t n, uint64_t address) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (live[mid]->address < address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/// The blocks of one segment, by address.
static tide_status splits_of_segment(finder *f, const tide_live *const *live, size_t n, const tide_trace_segment *seg) {
    f->n = 0;
    for (size_t i = first_at(live, n, seg->address); i < n && live[i]->address - seg->address < seg->bytes; i++) {
        const tide_live *l = live[i];
        if (l->reserved_bytes == 0 || l->alloc_event < seg->begin_event || strcmp(l->device, seg->device) != 0 ||
            tide_trace_process_of(l->block_id) != seg->process)
            continue;
        const uint64_t lo = l->address - seg->address, left = seg->bytes - lo;
        f->list[f->n++] =
            (span){lo, lo + (l->reserved_bytes < left ? l->reserved_bytes : left), l->name, l->scope, l->block_id};
    }
    return add_splitters(f, f->list, f->n, seg->bytes);
}

static tide_status splits_of_live(finder *f, const tide_live_set *set, const tide_trace_segment *segments,
                                  size_t n_segments, const tide_trace_pool *pool) {
    const tide_live **live = tide_host_alloc((set->n + 1) * sizeof *live);
    f->list = tide_host_alloc((set->n + 1) * sizeof *f->list);
    tide_status st = live != NULL && f->list != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t i = 0; st == TIDE_OK && i < set->n; i++) live[i] = &set->items[i];
    if (st == TIDE_OK && set->n > 1) qsort(live, set->n, sizeof *live, by_address);
    for (size_t i = 0; st == TIDE_OK && i < n_segments; i++)
        if (is_of(pool, &segments[i], set->event_id)) st = splits_of_segment(f, live, set->n, &segments[i]);
    tide_host_free(live);
    return st;
}

static tide_status splits_of_allocator(finder *f, tide_trace *t, const tide_trace_pool *pool, uint64_t event,
                                       tide_error *err) {
    const tide_trace_segment *segments;
    size_t n;
    tide_live_set set;
    TIDE_TRY(tide_trace_live_set_after(t, event, &set, err));
    tide_status st = tide_trace_segments(t, NULL, &segments, &n, err);
    if (st == TIDE_OK && splits_of_live(f, &set, segments, n, pool) != TIDE_OK)
        st = TIDE_NO_MEMORY(err, "for what splits a pool");
    tide_live_set_deinit(&set);
    return st;
}

static tide_status splits_of_trace(finder *f, tide_subject *s, tide_moment at, size_t pool, tide_error *err) {
    tide_trace_pool *pools;
    size_t n;
    uint64_t event = at.event;
    tide__run_pools r;
    if (event == 0) TIDE_TRY(tide_trace_event_at(s->trace, at.t > 0 ? (uint64_t)at.t : 0, &event, err));
    TIDE_TRY(tide_trace_pool_list(s->trace, s->facts.run_id, NULL, &pools, &n, err));
    const tide_status st = pool < n ? splits_of_allocator(f, s->trace, &pools[pool], event, err) : TIDE_OK;
    tide_host_free(pools);
    if (pool < n) return st;
    TIDE_TRY(tide__run_pools_of(s, &r, err));
    if (r.n_lanes == 0 || pool - n >= r.n_lanes * r.pools->n)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no pool %zu", pool);
    const int64_t step = tide__run_pools_step(&r, (pool - n) / r.pools->n, at);
    return splits_of_plan(f, r.pools, (pool - n) % r.pools->n, step, err);
}

static tide_status splits_of_a_plan(finder *f, tide_subject *s, int64_t step, size_t pool, tide_error *err) {
    const tide__plan_pools *p;
    if (tide__subject_plan(s) == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no plan");
    TIDE_TRY(tide__subject_plan_pools(s, &p, err));
    return splits_of_plan(f, p, pool, step, err);
}

tide_status tide_pools_splits(tide_subject *s, tide_moment at, size_t pool, tide_pool_splits *out, tide_error *err) {
    *out = (tide_pool_splits){0};
    finder f = {.out = out};
    const tide_status st =
        s->trace != NULL ? splits_of_trace(&f, s, at, pool, err) : splits_of_a_plan(&f, s, at.t, pool, err);
    tide_host_free(f.list);
    if (st != TIDE_OK) tide_pool_splits_deinit(out);
    if (out->n > 1) qsort(out->items, out->n, sizeof *out->items, by_size);
    return st;
}
