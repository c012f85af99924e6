// SPDX-License-Identifier: MIT
//
// Sizes of items that are sized while running. See sizes.h.
#include "analysis/sizes.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "analysis/items.h"
#include "core/base/host_alloc.h"
#include "profiler/sizes.h"

typedef struct collector {
    tide_sizes out;
    size_t cap;
    const tide__planned_runs *planned;
    const tide_memory_plan *plan; // of the run that is looked at; NULL
    int64_t run_id;
    const tide_executions *x; // the last one asked
    uint32_t thread, lane;    // of it
} collector;

static bool has_bounds(const tide_memory_plan *plan) {
    for (size_t i = 0; plan != NULL && i < plan->lifetimes.n; i++) {
        if (plan->lifetimes.items[i].bound != NULL) return true;
    }
    return false;
}

static tide_status add(collector *c, const tide_size *size) {
    TIDE_TRY(tide_host_grow(&c->out.items, &c->cap, c->out.n + 1, sizeof *c->out.items));
    c->out.items[c->out.n++] = *size;
    return TIDE_OK;
}

/// Of which nothing has come out.
static tide_size unknown(uint64_t id, const char *bound) {
    return (tide_size){.id = id,
                       .bound = bound,
                       .extents = "",
                       .bytes = TIDE_UNKNOWN_BYTES,
                       .least_bytes = TIDE_UNKNOWN_BYTES,
                       .most_bytes = TIDE_UNKNOWN_BYTES};
}

// ---- a plan ----

tide_status tide_sizes_of_plan(const tide_memory_plan *plan, tide_sizes *out, tide_error *err) {
    collector c = {.out = {NULL, 0}};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        if (l->bound == NULL) continue;
        const tide_size size = unknown(i, l->bound);
        st = add(&c, &size);
    }
    *out = c.out;
    if (st == TIDE_OK) return st;
    tide_sizes_deinit(out);
    return TIDE_NO_MEMORY(err, "for the sizes of a plan");
}

// ---- a trace ----

/// The lane of the thread in the run, found once for many events.
static uint32_t lane_of(collector *c, const tide_executions *x, uint32_t thread) {
    if (c->x == x && c->thread == thread) return c->lane;
    c->x = x;
    c->thread = thread;
    c->lane = UINT32_MAX;
    for (size_t i = 0; i < x->n && c->lane == UINT32_MAX; i++) {
        if (x->items[i].thread == thread) c->lane = x->items[i].lane;
    }
    return c->lane;
}

/// The tensor of the plan that an event is about; NULL: none that is sized while running.
static const tide_lifetime *tensor_of(const tide_memory_plan *plan, const tide_trace_size *e) {
    if (plan == NULL || e->tensor >= plan->lifetimes.n) return NULL;
    const tide_lifetime *l = &plan->lifetimes.items[e->tensor];
    return l->bound != NULL && e->bytes <= l->size_bytes ? l : NULL;
}

/// The number of the item; 0: it is none.
static uint64_t item_of(collector *c, const tide_executions *x, const tide_lifetime *l, const tide_trace_size *e) {
    if (x == NULL || l->persistent) return e->block_id;
    const uint32_t lane = lane_of(c, x, e->thread);
    const size_t i = lane != UINT32_MAX ? tide_executions_at(x, lane, e->event) : SIZE_MAX;
    return i != SIZE_MAX && tide_planned_id_fits(x->run_id, i, e->tensor) ? tide_planned_id(x->run_id, i, e->tensor)
                                                                          : 0;
}

static tide_status take(collector *c, const tide_trace_size *e) {
    const tide_executions *x = tide__planned_run(c->planned, e->run_id);
    const tide_lifetime *l = tensor_of(x != NULL ? x->plan : e->run_id == c->run_id ? c->plan : NULL, e);
    const uint64_t id = l != NULL ? item_of(c, x, l, e) : 0;
    if (id == 0) return TIDE_OK;
    const tide_size size = {id, l->bound, e->extents, e->bytes, e->bytes, e->bytes, 1};
    return add(c, &size);
}

/// By item, then in order of events, which `n` holds meanwhile.
static int by_id(const void *a, const void *b) {
    const tide_size *x = a, *y = b;
    if (x->id != y->id) return x->id > y->id ? 1 : -1;
    return (x->n > y->n) - (x->n < y->n);
}

/// What came out of one item several times becomes one.
static void merge(tide_sizes *s) {
    for (size_t i = 0; i < s->n; i++) s->items[i].n = i; // their order
    if (s->n > 1) qsort(s->items, s->n, sizeof *s->items, by_id);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        tide_size now = s->items[i];
        now.n = 1;
        if (n > 0 && s->items[n - 1].id == now.id) {
            const tide_size *before = &s->items[--n];
            now.n += before->n;
            if (before->least_bytes < now.least_bytes) now.least_bytes = before->least_bytes;
            if (before->most_bytes > now.most_bytes) now.most_bytes = before->most_bytes;
        }
        s->items[n++] = now;
    }
    s->n = n;
}

static bool any_bounds(const tide__planned_runs *planned, const tide_memory_plan *plan) {
    for (size_t r = 0; r < planned->n; r++) {
        if (has_bounds(planned->items[r]->plan)) return true;
    }
    return has_bounds(plan);
}

tide_status tide_sizes_of_trace(tide_trace *t, int64_t run_id, const tide__planned_runs *planned,
                                const tide_memory_plan *plan, tide_sizes *out, tide_error *err) {
    *out = (tide_sizes){NULL, 0};
    if (!any_bounds(planned, plan)) return TIDE_OK;
    collector c = {.planned = planned, .plan = plan, .run_id = run_id};
    tide_trace_size *events = NULL;
    size_t n = 0;
    TIDE_TRY(tide_trace_sizes(t, &events, &n, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        if (run_id == 0 || events[i].run_id == run_id) st = take(&c, &events[i]);
    }
    tide_host_free(events);
    merge(&c.out);
    *out = c.out;
    if (st == TIDE_OK) return st;
    tide_sizes_deinit(out);
    return TIDE_NO_MEMORY(err, "for the sizes of a trace");
}

void tide_sizes_deinit(tide_sizes *s) {
    tide_host_free(s->items);
    *s = (tide_sizes){NULL, 0};
}

tide_size tide_sizes_find(const tide_sizes *s, uint64_t id) {
    size_t lo = 0, hi = s->n;
    TIDE_BISECT(lo, hi, s->items[mid].id < id);
    if (lo < s->n && s->items[lo].id == id) return s->items[lo];
    return unknown(id, "");
}
