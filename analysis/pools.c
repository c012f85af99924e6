// SPDX-License-Identifier: MIT
//
// Pools of plans and traces, and leaks. See pools.h.
#include "analysis/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "analysis/plan_pools.h"
#include "analysis/subject_internal.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/devices.h"
#include "profiler/holdings.h"

static uint64_t not_negative(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

// ---- pools of a plan ----

/// "pool 3" or "buffer"; NULL: no memory.
static char *name_of(const tide_memory_plan *plan, size_t pool) {
    if (plan->n_pools == 0) return tide_host_strdup("buffer");
    char name[32];
    snprintf(name, sizeof name, "pool %zu", pool);
    return tide_host_strdup(name);
}

/// What a pool of a plan is at any step.
static tide_status put_plan_pool(const tide__plan_pools *pools, size_t k, tide_pool *p, tide_error *err) {
    const tide_memory_plan *plan = pools->plan;
    const tide__plan_pool *from = &pools->pools[k];
    *p = (tide_pool){.name = name_of(plan, k),
                     .number = k,
                     .kind = plan->buffers[from->buffer].kind,
                     .tells_segments = true,
                     .n_segments = 1,
                     .reserved_bytes = from->bytes,
                     .peak_reserved_bytes = from->bytes,
                     .is_planned = true,
                     .colour = plan->n_pools > 0 ? (uint32_t)k : TIDE_NO_COLOUR};
    tide_device_format(plan->buffers[from->buffer].device, p->device, sizeof p->device);
    return p->name != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for pools");
}

static void set_stretch(tide_pool *p, const tide__pool_stretch *s) {
    p->active_bytes = s->active;
    p->requested_bytes = s->requested;
    p->cached_bytes = p->reserved_bytes - s->active;
    p->largest_free_bytes = s->largest_free;
    p->n_blocks = s->n_tensors;
}

__extension__ typedef unsigned __int128 u128;

/// The steps in which stretch `i` of a pool holds.
static void steps_of(const tide__plan_pools *pools, size_t k, size_t i, int64_t *begin, int64_t *end) {
    const tide__pool_stretch *list = tide__plan_pool_stretches(pools, k);
    *begin = i > 0 ? list[i].step : 0;
    *end = i + 1 < pools->pools[k].n ? list[i + 1].step : pools->plan->lifetimes.n_steps;
}

/// Over all steps of the plan: the peak, and the mean of what is left.
static void sum_steps(const tide__plan_pools *pools, size_t k, tide_pool *p) {
    u128 sum = 0, steps = 0;
    for (size_t i = 0; i < pools->pools[k].n; i++) {
        const uint64_t active = tide__plan_pool_stretches(pools, k)[i].active;
        int64_t begin, end;
        steps_of(pools, k, i, &begin, &end);
        if (begin >= end) continue;
        if (active > p->peak_active_bytes) p->peak_active_bytes = active;
        sum += (u128)(p->reserved_bytes - active) * (uint64_t)(end - begin);
        steps += (uint64_t)(end - begin);
    }
    p->wasted_bytes = steps > 0 ? (uint64_t)(sum / steps) : 0;
}

/// Of a plan alone: the least that is left in a window of steps, and since when no less was than at step `at`.
static void find_unused(const tide__plan_pools *pools, size_t k, int64_t at, int64_t t0, int64_t t1, tide_pool *p) {
    p->unused_bytes = p->reserved_bytes;
    p->unused_since = 0;
    for (size_t i = 0; i < pools->pools[k].n; i++) {
        const uint64_t cached = p->reserved_bytes - tide__plan_pool_stretches(pools, k)[i].active;
        int64_t begin, end;
        steps_of(pools, k, i, &begin, &end);
        if (begin >= end) continue;
        if (begin <= t1 && end > t0 && cached < p->unused_bytes) p->unused_bytes = cached;
        if (begin <= at && cached < p->cached_bytes) p->unused_since = end;
    }
}

/// The plan's pools as they are in each context of a run.
static tide_status add_run_pools(tide_subject *s, int64_t t0, int64_t t1, tide_pools *out, tide_error *err) {
    tide__run_pools r;
    TIDE_TRY(tide__run_pools_of(s, &r, err));
    const size_t first = out->n, n = r.n_lanes > 0 ? r.n_lanes * r.pools->n : 0;
    TIDE_TRY(TIDE_GROW(&out->items, &out->cap, out->n + n + 1, err, "for pools"));
    for (size_t i = 0; i < n; i++, out->n++) {
        const size_t lane = i / r.pools->n, k = i % r.pools->n;
        tide_pool *p = &out->items[out->n];
        TIDE_TRY(put_plan_pool(r.pools, k, p, err));
        p->number = first + i;
        p->context = r.n_lanes > 1 ? (uint32_t)lane + 1 : 0;
        sum_steps(r.pools, k, p);
        set_stretch(p, tide__plan_pool_at(r.pools, k, tide__run_pools_step(&r, lane, out->at)));
        p->unused_bytes = tide__run_pools_least(&r, lane, k, not_negative(t0), not_negative(t1) + 1);
        p->unused_since = tide__run_pools_since(&r, lane, k, out->at, s->facts.begin);
    }
    return TIDE_OK;
}

static tide_status of_plan(tide_subject *s, int64_t t0, int64_t t1, tide_pools *out, tide_error *err) {
    const tide__plan_pools *pools;
    if (tide__subject_plan(s) == NULL) return TIDE_OK;
    TIDE_TRY(tide__subject_plan_pools(s, &pools, err));
    TIDE_TRY(TIDE_NEW(&out->items, pools->n + 1, err, "for pools"));
    for (; out->n < pools->n; out->n++) {
        tide_pool *p = &out->items[out->n];
        TIDE_TRY(put_plan_pool(pools, out->n, p, err));
        sum_steps(pools, out->n, p);
        set_stretch(p, tide__plan_pool_at(pools, out->n, out->at.t));
        find_unused(pools, out->n, out->at.t, t0, t1, p);
    }
    return TIDE_OK;
}

void tide_pools_deinit(tide_pools *p) {
    for (size_t i = 0; i < p->n; i++) tide_host_free(p->items[i].name);
    tide_host_free(p->items);
    *p = (tide_pools){0};
}

/// What is not known comes last.
static int by_reserved(const void *a, const void *b) {
    const tide_pool *x = a, *y = b;
    const bool x_known = x->reserved_bytes != TIDE_UNKNOWN_BYTES, y_known = y->reserved_bytes != TIDE_UNKNOWN_BYTES;
    if (x->is_planned != y->is_planned) return x->is_planned ? 1 : -1;
    if (x->context != y->context) return x->context < y->context ? -1 : 1;
    if (x_known != y_known) return x_known ? -1 : 1;
    if (!x_known && x->active_bytes != y->active_bytes) return x->active_bytes > y->active_bytes ? -1 : 1;
    if (x->reserved_bytes != y->reserved_bytes) return x->reserved_bytes > y->reserved_bytes ? -1 : 1;
    int c = strcmp(x->device, y->device);
    if (c == 0) c = (x->kind > y->kind) - (x->kind < y->kind);
    return c != 0 ? c : strcmp(x->name, y->name);
}

/// The sum of what is not known and anything is not known.
static uint64_t sum_of(uint64_t a, uint64_t b) {
    return a == TIDE_UNKNOWN_BYTES || b == TIDE_UNKNOWN_BYTES ? TIDE_UNKNOWN_BYTES : a + b;
}

static void finish(tide_pools *p) {
    if (p->n > 1) qsort(p->items, p->n, sizeof *p->items, by_reserved);
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].is_planned && !p->items[0].is_planned) break; // they lie in those before them
        p->reserved_bytes = sum_of(p->reserved_bytes, p->items[i].reserved_bytes);
        p->active_bytes += p->items[i].active_bytes;
        p->requested_bytes += p->items[i].requested_bytes;
        p->cached_bytes = sum_of(p->cached_bytes, p->items[i].cached_bytes);
    }
}

// ---- of a trace ----

static bool report(void *ctx, double share) {
    const tide_progress *progress = ctx;
    return progress->tell(progress->ctx, share, "adding up pools");
}

/// Allocators that take each block from the system by itself and keep none: what their blocks hold is all they have.
/// So do the functions of a driver. Others may keep what was freed; where one does not tell its segments, a trace does
/// not say how much.
static bool keeps_nothing(const char *allocator) {
    static const char *const names[] = {"cpu", "caller", "mapped", "device"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], allocator) == 0) return true;
    return tide_allocator_is_driver(allocator);
}

static void forget_reserved(tide_pool *p) {
    p->reserved_bytes = p->cached_bytes = p->unused_bytes = p->peak_reserved_bytes = TIDE_UNKNOWN_BYTES;
}

static tide_status put(tide_pools *out, const tide_trace_pool *from, tide_error *err) {
    tide_pool *p = &out->items[out->n];
    *p = (tide_pool){.name = tide_host_strdup(from->allocator),
                     .number = out->n,
                     .kind = from->kind,
                     .tells_segments = from->tells_segments,
                     .n_segments = from->n_segments,
                     .n_blocks = from->n_blocks,
                     .reserved_bytes = from->reserved_bytes,
                     .active_bytes = from->active_bytes,
                     .requested_bytes = from->requested_bytes,
                     .cached_bytes = tide_trace_pool_cached(from),
                     .largest_free_bytes = from->largest_free_bytes,
                     .peak_reserved_bytes = from->peak_reserved_bytes,
                     .peak_active_bytes = from->peak_active_bytes,
                     .unused_bytes = from->unused_bytes,
                     .unused_since = (int64_t)from->unused_since_ns,
                     .colour = TIDE_NO_COLOUR};
    if (p->name == NULL) return TIDE_NO_MEMORY(err, "for pools");
    snprintf(p->device, sizeof p->device, "%s", from->device);
    if (!from->tells_segments && !keeps_nothing(from->allocator)) forget_reserved(p);
    out->n++;
    return TIDE_OK;
}

static tide_status of_trace(tide_subject *s, int64_t t0, int64_t t1, const tide_progress *progress, tide_pools *out,
                            tide_error *err) {
    tide_trace *trace = tide_subject_trace(s);
    tide_trace_pools_question q = {.run_id = tide_subject_get_facts(s)->run_id,
                                   .at_event = out->at.event,
                                   .t0_ns = not_negative(t0),
                                   .t1_ns = not_negative(t1)};
    if (q.at_event == 0) TIDE_TRY(tide_trace_event_at(trace, not_negative(out->at.t), &q.at_event, err));
    tide_progress copy = progress != NULL ? *progress : (tide_progress){0};
    const tide_reading reading = {report, &copy};
    tide_trace_pool *list;
    size_t n;
    TIDE_TRY(tide_trace_pools(trace, &q, progress != NULL ? &reading : NULL, &list, &n, err));
    out->items = tide_host_calloc(n + 1, sizeof *out->items);
    tide_status st = out->items != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for pools");
    for (size_t i = 0; st == TIDE_OK && i < n; i++) st = put(out, &list[i], err);
    tide_host_free(list);
    out->cap = n + 1;
    return st == TIDE_OK ? add_run_pools(s, t0, t1, out, err) : st;
}

tide_status tide_pools_at(tide_subject *s, tide_moment at, int64_t t0, int64_t t1, const tide_progress *progress,
                          tide_pools *out, tide_error *err) {
    *out = (tide_pools){.at = at};
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    const tide_status st =
        tide_subject_get_facts(s)->is_trace ? of_trace(s, t0, t1, progress, out, err) : of_plan(s, t0, t1, out, err);
    if (st == TIDE_OK) {
        finish(out);
    } else {
        tide_pools_deinit(out);
    }
    return st;
}

// ---- leaks ----
// Blocks that were never freed, by who made them:
//
//     items -> (name and owner of the site) x (kind and device of the shape) -> a leak each

enum { N_TENTHS = 10, GROWS_FROM = 3, NONE = UINT32_MAX };

typedef struct finder {
    const tide_subject_facts *facts;
    const tide_items *items;
    bool skips_persistent;
    tide_trace_run *runs; // [n_runs] by begin; owned
    size_t n_runs;
    uint32_t *names;   // [n_sites] of each site, sites of one name and owner share a number; owned
    uint32_t *classes; // [n_shapes] the same by kind and device; owned
    uint32_t n_names, n_classes;
    uint32_t *leak_of;     // [n_names * n_classes] place in out; owned
    uint32_t *n_allocated; // [n_names * n_classes]; owned
    struct spread {
        uint64_t tenths; // bit by tenth of the axis
        size_t last_run, n_runs;
    } * spread; // [out->n], owned
    size_t cap_spread, cap;
    tide_leaks *out;
} finder;

void tide_leaks_deinit(tide_leaks *l) {
    for (size_t i = 0; i < l->n; i++) {
        tide_host_free(l->items[i].name);
        tide_host_free(l->items[i].owner);
    }
    tide_host_free(l->items);
    *l = (tide_leaks){0};
}

// ---- numbers for names and classes ----

static tide_status number_names(finder *f) {
    tide_strmap map = {0};
    tide_text key = {0};
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < f->items->n_sites; i++) {
        const tide_item_site *site = &f->items->sites[i];
        key.len = 0;
        tide_text_addf(&key, "%s\n%s", site->name, site->owner);
        uint64_t number = f->n_names;
        if (key.failed) {
            st = TIDE_ERR_NOMEM;
        } else if (!tide_strmap_get(&map, key.data, &number)) {
            st = tide_strmap_put(&map, key.data, f->n_names++);
        }
        f->names[i] = (uint32_t)number;
    }
    tide_strmap_deinit(&map);
    tide_text_deinit(&key);
    return st;
}

/// Few of them: kinds times devices. `known`: a shape of each class so far, for sizes make many shapes.
static tide_status number_classes(finder *f) {
    const tide_item_shape **known = NULL;
    size_t cap = 0;
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < f->items->n_shapes; i++) {
        const tide_item_shape *shape = &f->items->shapes[i];
        uint32_t k = 0;
        while (k < f->n_classes && (known[k]->kind != shape->kind || strcmp(known[k]->device, shape->device) != 0)) k++;
        f->classes[i] = k;
        if (k < f->n_classes) continue;
        st = tide_host_grow(&known, &cap, (size_t)f->n_classes + 1, sizeof *known);
        if (st == TIDE_OK) known[f->n_classes++] = shape;
    }
    tide_host_free(known);
    return st;
}

static tide_status prepare(finder *f) {
    f->names = tide_host_alloc((f->items->n_sites + 1) * sizeof *f->names);
    f->classes = tide_host_alloc((f->items->n_shapes + 1) * sizeof *f->classes);
    if (f->names == NULL || f->classes == NULL) return TIDE_ERR_NOMEM;
    TIDE_TRY(number_names(f));
    TIDE_TRY(number_classes(f));
    size_t n;
    if (!tide_mul_size((size_t)f->n_names + 1, (size_t)f->n_classes + 1, &n)) return TIDE_ERR_NOMEM;
    f->leak_of = tide_host_alloc(n * sizeof *f->leak_of);
    f->n_allocated = tide_host_calloc(n, sizeof *f->n_allocated);
    if (f->leak_of == NULL || f->n_allocated == NULL) return TIDE_ERR_NOMEM;
    memset(f->leak_of, 0xFF, n * sizeof *f->leak_of);
    return TIDE_OK;
}

// ---- items ----

static size_t run_at(const finder *f, int64_t t) {
    size_t lo = 0, hi = f->n_runs;
    TIDE_BISECT(lo, hi, f->runs[mid].begin_ns <= (uint64_t)t);
    return lo > 0 && f->runs[lo - 1].end_ns > (uint64_t)t ? lo - 1 : SIZE_MAX;
}

static void note_time(finder *f, struct spread *s, int64_t t) {
    const double share = ((double)t - (double)f->facts->begin) / ((double)f->facts->end - (double)f->facts->begin);
    const int tenth = share < 1 ? (int)(share * N_TENTHS) : N_TENTHS - 1;
    s->tenths |= UINT64_C(1) << tenth;
    const size_t run = run_at(f, t);
    if (run == SIZE_MAX || run == s->last_run) return;
    s->last_run = run;
    s->n_runs++;
}

static tide_status begin_leak(finder *f, uint32_t item, uint32_t *place) {
    tide_leaks *out = f->out;
    TIDE_TRY(tide_host_grow(&out->items, &f->cap, out->n + 1, sizeof *out->items));
    TIDE_TRY(tide_host_grow(&f->spread, &f->cap_spread, out->n + 1, sizeof *f->spread));
    const tide_item_site *site = tide_items_site(f->items, item);
    const tide_item_shape *shape = tide_items_shape(f->items, item);
    tide_leak *l = &out->items[out->n];
    *l = (tide_leak){.name = tide_host_strdup(site->name),
                     .owner = tide_host_strdup(site->owner),
                     .kind = shape->kind,
                     .first = tide_items_begin(f->items, item),
                     .first_item = item};
    f->spread[out->n] = (struct spread){.last_run = SIZE_MAX};
    if (l->name == NULL || l->owner == NULL) {
        tide_host_free(l->name);
        tide_host_free(l->owner);
        return TIDE_ERR_NOMEM;
    }
    snprintf(l->device, sizeof l->device, "%s", shape->device);
    *place = (uint32_t)out->n++;
    return TIDE_OK;
}

static tide_status take_item(finder *f, uint32_t i) {
    const tide_item_shape *shape = tide_items_shape(f->items, i);
    if (shape->is_planned) return TIDE_OK;
    const size_t at =
        (size_t)f->names[tide_items_site_of(f->items, i)] * f->n_classes + f->classes[tide_items_shape_of(f->items, i)];
    f->n_allocated[at]++;
    if (!tide_items_is_never_freed(f->items, i) || (f->skips_persistent && shape->persistent)) return TIDE_OK;
    if (f->leak_of[at] == NONE) TIDE_TRY(begin_leak(f, i, &f->leak_of[at]));
    tide_leak *l = &f->out->items[f->leak_of[at]];
    l->n++;
    l->bytes += shape->size_bytes;
    l->last = tide_items_begin(f->items, i); // items come by begin
    f->out->bytes += shape->size_bytes;
    note_time(f, &f->spread[f->leak_of[at]], l->last);
    return TIDE_OK;
}

static void finish_leaks(finder *f) {
    const size_t n = (size_t)f->n_names * f->n_classes;
    for (size_t i = 0; i < n; i++) {
        if (f->leak_of[i] == NONE) continue;
        tide_leak *l = &f->out->items[f->leak_of[i]];
        const struct spread *s = &f->spread[f->leak_of[i]];
        l->n_allocated = f->n_allocated[i];
        if (l->last > l->first) l->per_second = (double)l->bytes / ((double)(l->last - l->first) / 1e9);
        l->grows = s->n_runs >= GROWS_FROM || __builtin_popcountll(s->tenths) >= GROWS_FROM;
    }
}

static int by_weight(const void *a, const void *b) {
    const tide_leak *x = a, *y = b;
    if (x->grows != y->grows) return x->grows ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    int c = strcmp(x->name, y->name);
    if (c == 0) c = strcmp(x->owner, y->owner);
    return c != 0 ? c : (x->first_item > y->first_item) - (x->first_item < y->first_item);
}

// ---- the answer ----

static tide_status find(finder *f, tide_trace *trace, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(trace, &info, err));
    TIDE_TRY(tide_trace_runs(trace, &f->runs, &f->n_runs, err));
    f->skips_persistent = info.state != TIDE_TRACE_COMPLETE;
    if (prepare(f) != TIDE_OK) return TIDE_NO_MEMORY(err, "for leaks");
    for (uint32_t i = 0; i < f->items->n; i++) {
        if (take_item(f, i) != TIDE_OK) return TIDE_NO_MEMORY(err, "for leaks");
    }
    finish_leaks(f);
    if (f->out->n > 1) qsort(f->out->items, f->out->n, sizeof *f->out->items, by_weight);
    return TIDE_OK;
}

tide_status tide_leaks_find(tide_subject *s, tide_leaks *out, tide_error *err) {
    *out = (tide_leaks){0};
    finder f = {.facts = tide_subject_get_facts(s), .items = tide_subject_items(s), .out = out};
    if (f.items == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "leaks need the table of items");
    if (!f.facts->is_trace) return TIDE_OK; // everything in a plan ends
    out->n_lost = f.facts->n_lost;
    const tide_status st = find(&f, tide_subject_trace(s), err);
    tide_trace_runs_free(f.runs);
    tide_host_free(f.names);
    tide_host_free(f.classes);
    tide_host_free(f.leak_of);
    tide_host_free(f.n_allocated);
    tide_host_free(f.spread);
    if (st != TIDE_OK) tide_leaks_deinit(out);
    return st;
}
