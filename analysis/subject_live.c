// SPDX-License-Identifier: MIT
//
// What is alive at a moment. The list sums to the curve: of a plan's buffer the tensors in it and the rest. See
// subject.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

void tide_live_items_deinit(tide_live_items *l) {
    tide_host_free(l->items);
    *l = (tide_live_items){0};
}

/// What an order needs of an item, and where it lies: items are large.
typedef struct place {
    uint64_t bytes, id;
    size_t i;
} place;

static int by_bytes(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/// In order, with their sum. No overflow: the curve is as high. On failure the list is empty.
static tide_status finish(tide_live_items *l, tide_error *err) {
    place *order = tide_host_alloc((l->n + 1) * sizeof *order);
    tide_live_item *sorted = tide_host_alloc((l->n + 1) * sizeof *sorted);
    const bool good = order != NULL && sorted != NULL;
    l->bytes = 0;
    for (size_t i = 0; good && i < l->n; i++) {
        l->bytes += l->items[i].counts_bytes;
        order[i] = (place){l->items[i].counts_bytes, l->items[i].id, i};
    }
    if (good && l->n > 1) qsort(order, l->n, sizeof *order, by_bytes);
    for (size_t i = 0; good && i < l->n; i++) sorted[i] = l->items[order[i].i];
    tide_host_free(order);
    tide_host_free(l->items);
    l->items = sorted;
    if (good) return TIDE_OK;
    tide_live_items_deinit(l);
    return TIDE_NO_MEMORY(err, "for what is alive");
}

// ---- a plan ----

static void fill_tensor(const tide_subject *s, size_t i, uint64_t counts, tide_live_item *out) {
    const tide_lifetimes *lt = &s->plan->lifetimes;
    const tide_lifetime *l = &lt->items[i];
    const bool has_owner = !l->persistent && l->begin_step >= 0;
    const bool has_name = has_owner && (uint64_t)l->begin_step < lt->n_step_names;
    *out = (tide_live_item){.item = s->items != NULL ? tide_items_find(tide_subject_items(s), i) : TIDE_NO_ITEM,
                            .id = i,
                            .site = {.name = l->name,
                                     .owner = has_name ? lt->step_names[l->begin_step] : "",
                                     .step = has_owner ? l->begin_step : -1},
                            .shape = tide__shape_of_tensor(l),
                            .counts_bytes = counts,
                            .place = s->plan->offsets[i],
                            .address = s->plan->offsets[i],
                            .begin = l->begin_step};
    out->shape.device = tide__subject_device(s, l->device);
}

static tide_status live_of_plan(tide_subject *s, tide_moment at, tide_live_items *out, tide_error *err) {
    const tide_lifetimes *lt = &s->plan->lifetimes;
    const tide_plan_live *live;
    TIDE_TRY(tide__subject_plan_live(s, &live, err));
    uint64_t *counts = tide_host_alloc((lt->n + 1) * sizeof *counts);
    tide_status st = counts != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for what is alive");
    if (st == TIDE_OK) st = tide_plan_live_counts(s->plan, live, at.t, counts, err);
    size_t n = 0;
    for (size_t i = 0; st == TIDE_OK && i < lt->n; i++)
        n += lt->items[i].begin_step <= at.t && at.t < lt->items[i].end_step;
    tide_live_items l = {.at = {.t = at.t}};
    if (st == TIDE_OK) l.items = tide_host_alloc((n + 1) * sizeof *l.items);
    if (st == TIDE_OK && l.items == NULL) st = TIDE_NO_MEMORY(err, "for what is alive");
    for (size_t i = 0; st == TIDE_OK && i < lt->n; i++) {
        if (lt->items[i].begin_step <= at.t && at.t < lt->items[i].end_step)
            fill_tensor(s, i, counts[i], &l.items[l.n++]);
    }
    tide_host_free(counts);
    if (st != TIDE_OK) return st;
    TIDE_TRY(finish(&l, err));
    *out = l;
    return TIDE_OK;
}

// ---- a trace ----

static uint32_t item_of(const tide_subject *s, uint64_t id, int64_t begin, uint64_t size_bytes) {
    const tide_items *items = tide_subject_items(s);
    return items != NULL ? tide_items_find_at(items, id, begin, size_bytes) : TIDE_NO_ITEM;
}

/// Which lies in a plan's buffer.
static void fill_buffer_tensor(const tide_subject *s, const tide_memory_plan *plan, const tide_live *b,
                               tide_live_item *out) {
    const tide_lifetime *l = &plan->lifetimes.items[b->tensor];
    *out = (tide_live_item){.id = tide_planned_id(b->plan_run_id, b->execution, b->tensor),
                            .site = {.name = b->name, .owner = b->scope, .step = b->scope_index},
                            .shape = tide__shape_of_tensor(l),
                            .counts_bytes = b->requested_bytes,
                            .place = plan->offsets[b->tensor],
                            .address = plan->offsets[b->tensor] != TIDE_NO_OFFSET ? b->address : TIDE_NO_OFFSET,
                            .begin = tide__cut(s->facts.begin, s->facts.end, b->alloc_ns)};
    out->shape.device = b->device;
    out->item = item_of(s, out->id, out->begin, l->size_bytes);
}

static void fill_block(const tide_subject *s, const tide_live *b, tide_live_item *out) {
    const tide_lifetime *tensor = tide__run_plan_tensor(&s->run, b->name);
    const int64_t begin = tide__cut(s->facts.begin, s->facts.end, b->alloc_ns);
    *out = (tide_live_item){.item = TIDE_NO_ITEM,
                            .id = b->block_id,
                            .site = {.name = b->name, .owner = b->scope, .step = b->scope_index},
                            .shape = {.size_bytes = b->requested_bytes,
                                      .reserved_bytes = b->reserved_bytes,
                                      .device = b->device,
                                      .allocator = b->allocator,
                                      .kind = b->kind,
                                      .role = tensor != NULL ? tensor->role : TIDE_ROLE_INTERMEDIATE},
                            .counts_bytes = b->requested_bytes,
                            .place = b->address,
                            .address = b->address,
                            .begin = begin,
                            .free_requested = b->free_requested,
                            .is_unused = b->is_unused};
    tide__shape_classify(&out->shape, tensor != NULL && tensor->persistent);
    if (!b->is_unused) out->item = item_of(s, b->block_id, begin, b->requested_bytes);
}

static tide_status fill_all(tide_subject *s, const tide_live_set *set, tide_live_item *items, tide_error *err) {
    const tide__planned_runs *planned = NULL;
    for (size_t i = 0; i < set->n; i++) {
        const tide_live *b = &set->items[i];
        if (!b->in_buffer || b->is_unused) {
            fill_block(s, b, &items[i]);
            continue;
        }
        // Of a run that is looked at the buffers of others may be alive too.
        const tide_executions *x = NULL;
        if (planned == NULL) TIDE_TRY(tide__subject_planned(s, &planned, err));
        x = tide__planned_run(planned, b->plan_run_id);
        if (x == NULL) TIDE_TRY(tide_trace_executions(s->trace, b->plan_run_id, &x, err));
        fill_buffer_tensor(s, x->plan, b, &items[i]);
    }
    return TIDE_OK;
}

static tide_status live_of_trace(tide_subject *s, tide_moment at, tide_live_items *out, tide_error *err) {
    tide_live_set set;
    TIDE_TRY(at.event > 0 ? tide_trace_live_set_after(s->trace, at.event, &set, err)
                          : tide_trace_live_set(s->trace, at.t > 0 ? (uint64_t)at.t : 0, &set, err));
    tide_live_items l = {0};
    tide_status st = tide_trace_expand_buffers(s->trace, &set, err);
    if (st == TIDE_OK) st = TIDE_NEW(&l.items, set.n + 1, err, "for what is alive");
    if (st == TIDE_OK) st = fill_all(s, &set, l.items, err);
    l.at = (tide_moment){.t = at.t, .event = set.event_id};
    l.n = set.n;
    tide_live_set_deinit(&set); // its texts are the trace's
    if (st != TIDE_OK) tide_live_items_deinit(&l);
    if (st == TIDE_OK) st = finish(&l, err);
    TIDE_TRY(st);
    *out = l;
    return TIDE_OK;
}

tide_status tide_subject_live(tide_subject *s, tide_moment at, tide_live_items *out, tide_error *err) {
    const tide_sizes *sizes;
    TIDE_TRY(tide__subject_sizes(s, &sizes, err));
    TIDE_TRY(s->trace != NULL ? live_of_trace(s, at, out, err) : live_of_plan(s, at, out, err));
    for (size_t i = 0; i < out->n; i++) out->items[i].size = tide_sizes_find(sizes, out->items[i].id);
    return TIDE_OK;
}

// ---- changes ----

// ---- from moment to moment: the next change, the next peak ----

static tide_status change_of_plan(tide_subject *s, tide_moment from, int dir, tide_moment *out, tide_error *err) {
    const tide_plan_live *l;
    TIDE_TRY(tide__subject_plan_live(s, &l, err));
    size_t lo = 0, hi = l->n_changes;
    while (lo < hi) { // the first at or behind from
        const size_t mid = lo + (hi - lo) / 2;
        if (l->changes[mid] < from.t) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (dir > 0 && lo < l->n_changes && l->changes[lo] == from.t) lo++;
    if (dir > 0 && lo < l->n_changes) out->t = l->changes[lo];
    if (dir <= 0 && lo > 0) out->t = l->changes[lo - 1];
    return TIDE_OK;
}

// ---- changes inside of a plan's buffer: where a step begins, and where the last one is over ----

static bool changes_at(const tide_memory_plan *plan, int64_t step) {
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        if (!l->persistent && (l->begin_step == step || l->end_step == step)) return true;
    }
    return false;
}

/// Change `k` of an execution: that of its step k, behind the last one that the buffer is empty. False: it is none.
static bool change_of(const tide_executions *x, const tide_execution *e, size_t k, tide_moment *out) {
    if (k == e->n_steps) {
        *out = (tide_moment){(int64_t)e->idle_ns, e->idle_event};
        return e->idle_event != UINT64_MAX && e->n_steps > 0;
    }
    const tide_execution_step *step = &tide_execution_steps(x, e)[k];
    *out = (tide_moment){(int64_t)step->t_ns, e->first_event + step->event};
    return changes_at(x->plan, step->step);
}

static bool first_behind(const tide_executions *x, const tide_execution *e, uint64_t event, tide_moment *out) {
    for (size_t k = 0; k <= e->n_steps; k++) {
        const bool is_behind = k == e->n_steps || e->first_event + tide_execution_steps(x, e)[k].event > event;
        if (is_behind && change_of(x, e, k, out) && out->event > event) return true;
    }
    return false;
}

static bool last_before(const tide_executions *x, const tide_execution *e, uint64_t event, tide_moment *out) {
    for (size_t k = e->n_steps + 1; k-- > 0;) {
        const bool is_before = k == e->n_steps || e->first_event + tide_execution_steps(x, e)[k].event < event;
        if (is_before && change_of(x, e, k, out) && out->event < event) return true;
    }
    return false;
}

/// The first change behind `event` in any lane.
static bool next_in_plan(const tide_executions *x, uint64_t event, tide_moment *out) {
    bool found = false;
    for (uint32_t lane = 0; lane < x->n_lanes; lane++) {
        tide_moment m;
        size_t i = tide_executions_at(x, lane, event);
        bool is_found = i != SIZE_MAX && first_behind(x, &x->items[i], event, &m);
        for (i = tide_executions_next(x, lane, event); !is_found && i != SIZE_MAX;
             i = tide_executions_next(x, lane, x->items[i].first_event))
            is_found = first_behind(x, &x->items[i], event, &m);
        if (is_found && (!found || m.event < out->event)) *out = m;
        found = found || is_found;
    }
    return found;
}

/// The last change before `event` in any lane.
static bool previous_in_plan(const tide_executions *x, uint64_t event, tide_moment *out) {
    bool found = false;
    for (uint32_t lane = 0; lane < x->n_lanes; lane++) {
        tide_moment m;
        bool is_found = false;
        for (size_t i = tide_executions_before(x, lane, event); !is_found && i != SIZE_MAX;
             i = tide_executions_before(x, lane, x->items[i].first_event))
            is_found = last_before(x, &x->items[i], event, &m);
        if (is_found && (!found || m.event > out->event)) *out = m;
        found = found || is_found;
    }
    return found;
}

// ---- both ----

static bool is_inside_axis(const tide_subject *s, int64_t t) { return t >= s->facts.begin && t < s->facts.end; }

tide_status tide_subject_next_change(tide_subject *s, tide_moment from, int dir, tide_moment *out, tide_error *err) {
    *out = from;
    if (s->trace == NULL) return change_of_plan(s, from, dir, out, err);
    const tide_executions *x = s->facts.executions;
    uint64_t event = from.event, to, t_ns;
    if (event == 0) TIDE_TRY(tide_trace_event_at(s->trace, from.t > 0 ? (uint64_t)from.t : 0, &event, err));
    // By time the moment is just behind its last event: going back, that one is the first.
    const uint64_t back_from = from.event == 0 && event < UINT64_MAX ? event + 1 : event;
    const uint64_t start = dir > 0 ? event : back_from;
    tide_error own = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_next_change(s->trace, start, dir, &to, &t_ns, &own);
    if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) {
        if (err != NULL) *err = own;
        return st;
    }
    bool found = st == TIDE_OK && is_inside_axis(s, (int64_t)t_ns);
    tide_moment m;
    if (found) *out = (tide_moment){(int64_t)t_ns, to};
    if (x == NULL || x->plan == NULL) return TIDE_OK;
    if (!(dir > 0 ? next_in_plan(x, start, &m) : previous_in_plan(x, start, &m))) return TIDE_OK;
    const bool is_nearer = !found || (dir > 0 ? m.event < out->event : m.event > out->event);
    if (is_nearer && is_inside_axis(s, m.t)) *out = m;
    return TIDE_OK;
}

// ---- peaks ----

typedef struct peaks {
    tide_subject *s;
    tide_curve_key key;
    int64_t t0, t1;
    size_t n;
    uint64_t *low, *high; // [n + 2]: what is left of the window, its columns, what is right of it
} peaks;

/// Outside of the axis there is nothing; outside of the window one column more.
static tide_status read_columns(peaks *p, tide_error *err) {
    const int64_t width = (p->t1 - p->t0) / (int64_t)p->n + 1;
    const tide_subject_facts *f = &p->s->facts;
    TIDE_TRY(tide_subject_columns(p->s, p->key, p->t0, p->t1, p->n, p->low + 1, p->high + 1, err));
    p->high[0] = p->high[p->n + 1] = 0;
    if (p->t0 > f->begin) {
        const int64_t from = p->t0 - f->begin > width ? p->t0 - width : f->begin;
        TIDE_TRY(tide_subject_columns(p->s, p->key, from, p->t0, 1, p->low, p->high, err));
    }
    if (p->t1 < f->end) {
        const int64_t to = f->end - p->t1 > width ? p->t1 + width : f->end;
        TIDE_TRY(tide_subject_columns(p->s, p->key, p->t1, to, 1, p->low + p->n + 1, p->high + p->n + 1, err));
    }
    return TIDE_OK;
}

/// The moment of the plateau of columns first to last (from 1), when it lies on the asked side of `from`.
static tide_status moment_of(const peaks *p, size_t first, size_t last, int64_t from, int dir, tide_moment *out,
                             bool *found, tide_error *err) {
    const uint64_t len = (uint64_t)p->t1 - (uint64_t)p->t0;
    const int64_t lo = tide__column_edge(p->t0, len, first - 1, p->n);
    int64_t hi = tide__column_edge(p->t0, len, last, p->n) - 1;
    if (hi < lo) hi = lo;
    uint64_t bytes;
    tide_moment m;
    if (dir > 0 ? hi <= from : lo >= from) return TIDE_OK;
    TIDE_TRY(tide_subject_peak_between(p->s, p->key, lo, hi, &bytes, &m, err));
    *found = dir > 0 ? m.t > from : m.t < from;
    if (*found) *out = m;
    return TIDE_OK;
}

static tide_status find(const peaks *p, int64_t from, int dir, tide_moment *out, bool *found, tide_error *err) {
    *found = false;
    for (size_t i = dir > 0 ? 1 : p->n; i >= 1 && i <= p->n;) {
        size_t first = i, last = i;
        while (first > 1 && p->high[first - 1] == p->high[i]) first--;
        while (last < p->n && p->high[last + 1] == p->high[i]) last++;
        const bool is_peak = p->high[first - 1] < p->high[i] && p->high[last + 1] < p->high[i];
        if (is_peak) TIDE_TRY(moment_of(p, first, last, from, dir, out, found, err));
        if (*found) return TIDE_OK;
        i = dir > 0 ? last + 1 : first - 1;
    }
    return TIDE_OK;
}

tide_status tide_subject_next_peak(tide_subject *s, tide_curve_key key, int64_t from, int dir, int64_t t0, int64_t t1,
                                   size_t n, tide_moment *out, tide_error *err) {
    if (t1 <= t0 || n == 0 || n > INT32_MAX) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window without columns");
    peaks p = {.s = s, .key = key, .t0 = t0, .t1 = t1, .n = n};
    p.low = tide_host_alloc((n + 2) * sizeof *p.low);
    p.high = tide_host_alloc((n + 2) * sizeof *p.high);
    bool found = false;
    tide_status st = p.low != NULL && p.high != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for peaks");
    if (st == TIDE_OK) st = read_columns(&p, err);
    if (st == TIDE_OK) st = find(&p, from, dir, out, &found, err);
    tide_host_free(p.low);
    tide_host_free(p.high);
    if (st == TIDE_OK && !found)
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no %s peak", dir > 0 ? "further" : "earlier");
    return st;
}
