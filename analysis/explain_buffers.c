// SPDX-License-Identifier: MIT
//
// explain, of tensors in the buffers of planned runs. A buffer is held from begin to end, whatever lies in it: without
// a tensor it is as much smaller as the plan that is made of the rest. The curve is lower by that while the buffers of
// the run that are held at the moment live.
//
//     events    first ...... +-------------------------------------+ .... last
//     lower by               | buffer of context 0    +------------+
//                            |                        | context 1  |
#include "analysis/explain_internal.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"

typedef struct tide__buffer_block {
    int64_t run_id;
    uint64_t first, behind; ///< events: it lives in [first, behind)
    tide_device device;
    tide_memory_kind kind;
} buffer_block;

typedef struct asker {
    tide_subject *s;
    uint64_t first, last;
    size_t max;
    tide__reporter *reporter;
    tide_explanation *e;
    tide__buffer_less *out;
    tide_error *err;
} asker;

void tide__buffer_less_deinit(tide__buffer_less *l) {
    tide_host_free(l->less);
    tide_host_free(l->of);
    *l = (tide__buffer_less){0};
}

// ---- which blocks are buffers ----

/// The end of every buffer is an item of its own, for bytes that no tensor uses.
static tide_status add_block(asker *a, const tide_live *unused) {
    buffer_block b = {.run_id = unused->plan_run_id, .first = unused->alloc_event, .kind = unused->kind};
    TIDE_TRY(tide_device_parse(unused->device, &b.device, a->err));
    TIDE_TRY(tide_trace_end_event(a->s->trace, unused->block_id, unused->alloc_event, &b.behind, a->err));
    a->out->less[a->out->n] = (tide_trace_less){.block_id = unused->block_id, .alloc_event = unused->alloc_event};
    a->out->of[a->out->n++] = b;
    return TIDE_OK;
}

static tide_status find_blocks(asker *a, uint64_t event) {
    tide_live_set set;
    TIDE_TRY(tide_trace_live_set_after(a->s->trace, event, &set, a->err));
    tide_status st = tide_trace_expand_buffers(a->s->trace, &set, a->err);
    if (st == TIDE_OK) st = TIDE_NEW(&a->out->less, set.n + 1, a->err, "to explain what is held");
    if (st == TIDE_OK) st = TIDE_NEW(&a->out->of, set.n + 1, a->err, "to explain what is held");
    for (size_t i = 0; st == TIDE_OK && i < set.n; i++) {
        if (set.items[i].is_unused) st = add_block(a, &set.items[i]);
    }
    tide_live_set_deinit(&set);
    return st;
}

// ---- the curve with smaller buffers ----

static int by_event(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/// By how much each buffer of the run is smaller in `rest`.
static void shrink(const asker *a, int64_t run_id, const tide_memory_plan *plan, const tide_memory_plan *rest) {
    for (size_t i = 0; i < a->out->n; i++) {
        const buffer_block *b = &a->out->of[i];
        if (b->run_id != run_id) continue;
        const tide_plan_buffer *was = tide_memory_plan_buffer(plan, b->device, b->kind),
                               *now = tide_memory_plan_buffer(rest, b->device, b->kind);
        const uint64_t was_bytes = was != NULL ? was->bytes : 0, now_bytes = now != NULL ? now->bytes : 0;
        // Buffers together are no larger; one of several could be, and is left as it was then.
        a->out->less[i].bytes = was_bytes > now_bytes ? was_bytes - now_bytes : 0;
    }
}

/// How much is less after `event`, of one run.
static uint64_t less_at(const asker *a, int64_t run_id, uint64_t event) {
    uint64_t sum = 0;
    for (size_t i = 0; i < a->out->n; i++) {
        const buffer_block *b = &a->out->of[i];
        if (b->run_id == run_id && b->first <= event && event < b->behind) sum += a->out->less[i].bytes;
    }
    return sum;
}

static tide_status look(const asker *a, int64_t run_id, uint64_t from, uint64_t behind, tide_without *w, bool *found) {
    uint64_t bytes, event;
    if (from >= behind) return TIDE_OK;
    TIDE_TRY(tide_trace_peak_of_events(a->s->trace, -1, NULL, from, behind - 1, &bytes, &event, NULL, a->err));
    const uint64_t less = less_at(a, run_id, from);
    bytes = bytes > less ? bytes - less : 0;
    if (*found && bytes <= w->peak_bytes) return TIDE_OK;
    *found = true;
    w->peak_bytes = bytes;
    w->at.event = event;
    return TIDE_OK;
}

/// From edge to edge nothing changes but the curve.
static tide_status find_peak(const asker *a, int64_t run_id, tide_without *w) {
    uint64_t *edges;
    size_t n = 0;
    bool found = false;
    TIDE_TRY(TIDE_NEW(&edges, 2 * a->out->n + 2, a->err, "to explain what is held"));
    edges[n++] = a->first - 1; // the last event before the run is the state that it begins with
    edges[n++] = a->last + 1;
    for (size_t i = 0; i < a->out->n; i++) {
        const buffer_block *b = &a->out->of[i];
        if (b->first > edges[0] && b->first <= a->last) edges[n++] = b->first;
        if (b->behind > edges[0] && b->behind <= a->last) edges[n++] = b->behind;
    }
    qsort(edges, n, sizeof *edges, by_event);
    tide_status st = TIDE_OK;
    for (size_t i = 1; st == TIDE_OK && i < n; i++) st = look(a, run_id, edges[i - 1], edges[i], w, &found);
    tide_host_free(edges);
    return st;
}

// ---- run by run ----

/// Takes `plan`, which may be NULL: *best is the smaller of both.
static void keep_smaller(tide_memory_plan **best, tide_memory_plan *plan) {
    const bool is_better = plan != NULL && (*best == NULL || plan->bytes < (*best)->bytes);
    tide_memory_plan_destroy(is_better ? *best : plan);
    if (is_better) *best = plan;
}

static tide_status explain_one(const asker *a, int64_t run_id, tide__rest *r, tide_without *w,
                               tide_memory_plan **best) {
    tide_memory_plan *rest;
    TIDE_TRY(tide__rest_without(r, w, &rest, a->err));
    if (rest == NULL) { // what is known is that it is no more than it was
        w->peak_bytes = a->s->facts.peak_bytes;
        w->at = a->s->facts.peak;
        return TIDE_OK;
    }
    shrink(a, run_id, r->plan, rest);
    keep_smaller(best, rest);
    return find_peak(a, run_id, w);
}

static tide_status explain_run(const asker *a, int64_t run_id) {
    tide_explanation *e = a->e;
    const tide_executions *x;
    tide__rest r;
    tide_memory_plan *best = NULL, *all = NULL; // what is left of a plan without one is a plan without all
    const size_t before = e->n_without;
    TIDE_TRY(tide_trace_executions(a->s->trace, run_id, &x, a->err));
    if (x->plan == NULL) return TIDE_OK;
    tide__list_storages(x->plan, run_id, before + a->max, e);
    if (e->n_without == before) return TIDE_OK;
    TIDE_TRY(tide__rest_begin(&r, a->s, x->plan, a->err));
    tide_status st = TIDE_OK;
    for (size_t k = before; st == TIDE_OK && k < e->n_without; k++) {
        st = tide__report_share(a->reporter, 0.4 + 0.2 * (double)k / (double)e->n_without, a->err);
        if (st == TIDE_OK) st = explain_one(a, run_id, &r, &e->without[k], &best);
    }
    if (st == TIDE_OK) st = tide__rest_without_all(&r, run_id, e, &all, a->err);
    keep_smaller(&best, all);
    if (st == TIDE_OK) shrink(a, run_id, x->plan, best);
    tide_memory_plan_destroy(best);
    tide__rest_end(&r);
    return st;
}

tide_status tide__explain_buffers(tide_subject *s, const tide_live_set *set, uint64_t first, uint64_t last, size_t max,
                                  tide__reporter *reporter, tide_explanation *e, tide__buffer_less *out,
                                  tide_error *err) {
    asker a = {.s = s, .first = first, .last = last, .max = max, .reporter = reporter, .e = e, .out = out, .err = err};
    *out = (tide__buffer_less){0};
    tide_status st = find_blocks(&a, set->event_id);
    for (size_t i = 0; st == TIDE_OK && i < out->n; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i; k++) is_new = is_new && out->of[k].run_id != out->of[i].run_id;
        if (is_new) st = explain_run(&a, out->of[i].run_id);
    }
    if (st != TIDE_OK) tide__buffer_less_deinit(out);
    return st;
}
