// SPDX-License-Identifier: MIT
//
// A timeline from a memory plan: its tensors over the steps of the execution order. See timeline.h.
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator.h"
#include "planner/planner.h"
#include "profiler/timeline_internal.h"

static tide_status add_items(tide__timeline_builder *b, const tide_memory_plan *plan, bool include_persistent,
                             tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        if (l->persistent && !include_persistent) continue;
        const uint64_t bytes = l->alias == TIDE_ALIAS_NONE ? tide_lifetime_aligned_bytes(l) : l->size_bytes;
        // Persistent ones live for all steps: their first step says nothing about who made them.
        const bool has_owner = !l->persistent && (uint64_t)l->begin_step < lt->n_step_names;
        char none[] = "";
        const tide_timeline_item item = {.name = l->name,
                                         .owner = has_owner ? lt->step_names[l->begin_step] : none,
                                         .size_bytes = bytes,
                                         .reserved_bytes = bytes,
                                         .begin = l->begin_step,
                                         .end = l->end_step,
                                         .kind = l->kind,
                                         .role = l->role,
                                         .persistent = l->persistent,
                                         .pool = plan->pools[i],
                                         .offset_bytes = plan->offsets[i],
                                         .is_planned = true,
                                         .alias = l->alias,
                                         .alias_of = l->alias_of,
                                         .id = i};
        TIDE_TRY(tide__timeline_add_item(b, &item, err));
    }
    return TIDE_OK;
}

// ---- the curve ----

typedef struct step_change {
    int64_t step;
    uint64_t bytes;
    bool is_begin;
} step_change;

static int by_step(const void *a, const void *b) {
    const step_change *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

/// One point per step at which the sum changes, the first at step 0.
static tide_status add_points(tide__timeline_builder *b, const step_change *changes, size_t n, tide_error *err) {
    uint64_t in = 0, out = 0; // all that began and ended so far: neither passes the sum of all
    TIDE_TRY(tide__timeline_add_point(b, 0, 0, err));
    for (size_t i = 0; i < n;) {
        const int64_t step = changes[i].step;
        for (; i < n && changes[i].step == step; i++) {
            uint64_t *sum = changes[i].is_begin ? &in : &out;
            *sum += changes[i].bytes;
        }
        tide_timeline *tl = b->tl;
        if (tl->curve[tl->n_points - 1].bytes == in - out) continue;
        if (step == 0) {
            tl->curve[0].bytes = in - out;
        } else {
            TIDE_TRY(tide__timeline_add_point(b, step, in - out, err));
        }
    }
    return TIDE_OK;
}

static void add_change(step_change *changes, size_t *n, int64_t begin, int64_t end, uint64_t bytes) {
    changes[(*n)++] = (step_change){begin, bytes, true};
    changes[(*n)++] = (step_change){end, bytes, false};
}

/// Persistent items that are drawn have memory of their own; the rest is what the buffer holds.
static tide_status add_curve(tide__timeline_builder *b, const tide_memory_plan *plan, tide_error *err) {
    const tide_timeline *tl = b->tl;
    tide_occupied *occupied;
    size_t n_occupied, n = 0;
    TIDE_TRY(tide_lifetimes_occupied(&plan->lifetimes, &occupied, &n_occupied, err));
    step_change *changes = tide_host_calloc(2 * (tl->n_items + n_occupied), sizeof *changes);
    tide_status st = changes != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a timeline");
    uint64_t sum = plan->naive_bytes;
    for (size_t i = 0; st == TIDE_OK && i < n_occupied; i++)
        add_change(changes, &n, occupied[i].begin_step, occupied[i].end_step,
                   occupied[i].hi_bytes - occupied[i].lo_bytes);
    for (size_t i = 0; st == TIDE_OK && i < tl->n_items; i++) {
        const tide_timeline_item *item = &tl->items[i];
        if (!item->persistent) continue;
        add_change(changes, &n, item->begin, item->end, item->size_bytes);
        if (!tide_add_u64(sum, item->size_bytes, &sum))
            st = TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the tensors of '%s' add up to more than 2^64 bytes", tl->model);
    }
    if (st == TIDE_OK && n > 0) qsort(changes, n, sizeof *changes, by_step);
    if (st == TIDE_OK) st = add_points(b, changes, n, err);
    tide_host_free(changes);
    tide_host_free(occupied);
    return st;
}

// ---- kinds ----

static void name_device(const tide_memory_plan *plan, tide_memory_kind kind, char *out, size_t out_bytes) {
    tide_device device = TIDE_CPU;
    for (size_t i = plan->lifetimes.n; i-- > 0;) {
        if (plan->lifetimes.items[i].kind == kind) device = plan->lifetimes.items[i].device;
    }
    tide_device_format(device, out, out_bytes);
}

static tide_status add_kinds(tide__timeline_builder *b, const tide_memory_plan *plan, tide_error *err) {
    tide_timeline *tl = b->tl;
    tl->kinds = tide_host_calloc(TIDE_N_KINDS, sizeof *tl->kinds);
    if (tl->kinds == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a timeline");
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        const uint64_t bytes = tide_memory_plan_predicted(plan, (tide_memory_kind)kind);
        if (bytes == 0) continue;
        tide_trace_kind *row = &tl->kinds[tl->n_kinds++];
        *row = (tide_trace_kind){.kind = (tide_memory_kind)kind,
                                 .requested_bytes = TIDE_UNKNOWN_BYTES,
                                 .peak_bytes = TIDE_UNKNOWN_BYTES,
                                 .peak_reserved_bytes = TIDE_UNKNOWN_BYTES,
                                 .predicted_bytes = bytes,
                                 .n_allocs = TIDE_UNKNOWN_BYTES,
                                 .n_frees = TIDE_UNKNOWN_BYTES,
                                 .live_at_end_bytes = TIDE_UNKNOWN_BYTES};
        name_device(plan, row->kind, row->device, sizeof row->device);
    }
    return TIDE_OK;
}

static tide_status add_steps(tide__timeline_builder *b, const tide_lifetimes *lt, tide_error *err) {
    TIDE_TRY(tide__timeline_reserve_steps(b, lt->n_step_names, err));
    for (size_t i = 0; i < lt->n_step_names; i++)
        TIDE_TRY(tide__timeline_add_step(b, lt->step_names[i], (int64_t)i, err));
    return TIDE_OK;
}

tide_status tide_timeline_from_plan(const tide_memory_plan *plan, bool include_persistent, tide_timeline **out,
                                    tide_error *err) {
    tide__timeline_builder b;
    TIDE_TRY(tide__timeline_begin(&b, TIDE_AXIS_STEPS, plan->lifetimes.model != NULL ? plan->lifetimes.model : "",
                                  "plan", plan->strategy != NULL ? plan->strategy : "", err));
    b.tl->begin = 0;
    b.tl->end = plan->lifetimes.n_steps;
    tide_memory_plan *copy = NULL;
    tide_status st = tide_memory_plan_copy(plan, &copy, err);
    if (st == TIDE_OK) {
        tide__timeline_set_plan(&b, copy);
        st = add_items(&b, copy, include_persistent, err);
    }
    if (st == TIDE_OK) st = add_curve(&b, copy, err);
    if (st == TIDE_OK) st = add_steps(&b, &copy->lifetimes, err);
    if (st == TIDE_OK) st = add_kinds(&b, copy, err);
    if (st != TIDE_OK) {
        tide_timeline_destroy(b.tl);
        return st;
    }
    *out = tide__timeline_finish(&b);
    return TIDE_OK;
}
