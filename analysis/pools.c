// SPDX-License-Identifier: MIT
//
// Pools of plans and traces, and leaks. See pools.h.
#include "analysis/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bisect.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/planner.h"
#include "profiler/holdings.h"

// ---- pools of a plan ----
// Each pool of the plan, or each buffer of an offset plan, over the steps.
//
//     occupied    [====]  [=======]     rectangles of bytes x steps, disjoint (planner.h)
//     changes      +   -   +      -     of one pool, by step: between two of them its bytes stay the same

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
        return TIDE_NO_MEMORY(err, "for pools");
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
    if (m->out->items == NULL || m->offsets == NULL) return TIDE_NO_MEMORY(err, "for pools");
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
    stretch *list;
    TIDE_TRY(TIDE_NEW(&list, m->n + 1, err, "for pools"));
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

static tide_status of_plan(tide_subject *s, int64_t t0, int64_t t1, tide_pools *out, tide_error *err) {
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    maker m = {.plan = facts->plan, .out = out};
    if (m.plan == NULL) return TIDE_OK;
    tide_status st = tide_lifetimes_occupied(&m.plan->lifetimes, &m.occupied, &m.n, err);
    if (st == TIDE_OK) st = add_pools(&m, err);
    if (st == TIDE_OK) {
        m.changes = tide_host_alloc((2 * m.n + 1) * sizeof *m.changes);
        if (m.changes == NULL) st = TIDE_NO_MEMORY(err, "for pools");
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

void tide_pools_deinit(tide_pools *p) {
    for (size_t i = 0; i < p->n; i++) tide_host_free(p->items[i].name);
    tide_host_free(p->items);
    *p = (tide_pools){0};
}

static int by_reserved(const void *a, const void *b) {
    const tide_pool *x = a, *y = b;
    if (x->reserved_bytes != y->reserved_bytes) return x->reserved_bytes > y->reserved_bytes ? -1 : 1;
    int c = strcmp(x->device, y->device);
    if (c == 0) c = (x->kind > y->kind) - (x->kind < y->kind);
    return c != 0 ? c : strcmp(x->name, y->name);
}

static void finish(tide_pools *p) {
    if (p->n > 1) qsort(p->items, p->n, sizeof *p->items, by_reserved);
    for (size_t i = 0; i < p->n; i++) {
        p->reserved_bytes += p->items[i].reserved_bytes;
        p->active_bytes += p->items[i].active_bytes;
        p->requested_bytes += p->items[i].requested_bytes;
        p->cached_bytes += p->items[i].cached_bytes;
    }
}

// ---- of a trace ----

static bool report(void *ctx, double share) {
    const tide_progress *progress = ctx;
    return progress->tell(progress->ctx, share, "adding up pools");
}

static uint64_t not_negative(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

static tide_status put(tide_pools *out, const tide_trace_pool *from, tide_error *err) {
    tide_pool *p = &out->items[out->n];
    *p = (tide_pool){.name = tide_host_strdup(from->allocator),
                     .kind = from->kind,
                     .tells_segments = from->tells_segments,
                     .n_segments = from->n_segments,
                     .n_blocks = from->n_blocks,
                     .reserved_bytes = from->reserved_bytes,
                     .active_bytes = from->active_bytes,
                     .requested_bytes = from->requested_bytes,
                     .cached_bytes = from->reserved_bytes - from->active_bytes,
                     .largest_free_bytes = from->largest_free_bytes,
                     .peak_reserved_bytes = from->peak_reserved_bytes,
                     .peak_active_bytes = from->peak_active_bytes,
                     .unused_bytes = from->unused_bytes,
                     .unused_since = (int64_t)from->unused_since_ns};
    if (p->name == NULL) return TIDE_NO_MEMORY(err, "for pools");
    snprintf(p->device, sizeof p->device, "%s", from->device);
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
    return st;
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
    if (!tide_items_is_open_ended(f->items, i) || (f->skips_persistent && shape->persistent)) return TIDE_OK;
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
