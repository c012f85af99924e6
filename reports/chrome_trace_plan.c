// SPDX-License-Identifier: MIT
//
// A plan in the Trace Event Format: one step is a microsecond. See chrome_trace.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "reports/chrome_pen.h"
#include "reports/chrome_trace.h"

enum { NS_OF_STEP = 1000, STEPS = 1 }; // threads of the one process

/// Times end with 64 bits, and steps may come near that.
static uint64_t ns_of(int64_t step) {
    return (uint64_t)step <= UINT64_MAX / NS_OF_STEP ? (uint64_t)step * NS_OF_STEP : UINT64_MAX;
}

static tide__chrome_place at_step(uint32_t thread, int64_t step) {
    return (tide__chrome_place){TIDE__CHROME_MEMORY, thread, ns_of(step)};
}

/// "cpu Workspace" as everywhere.
static const char *buffer_name(tide_device device, tide_memory_kind kind, char *buf, size_t buf_bytes) {
    char text[32];
    snprintf(buf, buf_bytes, "%s %s", tide_device_format(device, text, sizeof text), tide_memory_kind_name(kind));
    return buf;
}

static void add_steps(tide__chrome *c, const tide_lifetimes *lt) {
    for (size_t i = 0; i < lt->n_step_names; i++) {
        tide__chrome_open(c, "X", lt->step_names[i], "step", at_step(STEPS, (int64_t)i));
        tide_json_raw(&c->json, "dur", "1.000");
        tide__chrome_args(c);
        tide_json_u64(&c->json, "step", i);
        tide__chrome_close(c);
    }
}

static void add_tensor(tide__chrome *c, const tide_memory_plan *plan, size_t i) {
    const tide_lifetime *item = &plan->lifetimes.items[i];
    const char *cat = tide_role_name(item->role);
    char buffer[64];
    tide_json_out *j = &c->json;
    tide__chrome_open(c, "b", item->name, cat, at_step(STEPS, item->begin_step));
    tide__chrome_id(c, 't', i);
    tide__chrome_args(c);
    tide_json_u64(j, "bytes", item->size_bytes);
    tide_json_u64(j, "aligned_bytes", tide_lifetime_aligned_bytes(item));
    tide_json_text(j, "buffer", buffer_name(item->device, item->kind, buffer, sizeof buffer));
    tide_json_bool(j, "persistent", item->persistent);
    if (plan->offsets[i] != TIDE_NO_OFFSET) tide_json_u64(j, "offset", plan->offsets[i]);
    if (plan->pools[i] != TIDE_NO_POOL) tide_json_i64(j, "pool", plan->pools[i]);
    if (item->alias != TIDE_ALIAS_NONE) tide_json_text(j, "alias_of", plan->lifetimes.items[item->alias_of].name);
    tide__chrome_close(c);
    tide__chrome_open(c, "e", item->name, cat, at_step(STEPS, item->end_step));
    tide__chrome_id(c, 't', i);
    tide__chrome_close(c);
}

// ---- live bytes ----

/// Bytes of a buffer come or go at a step.
typedef struct change {
    int64_t step;
    uint32_t buffer;
    bool comes;
    uint64_t bytes;
} change;

static int compare_changes(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->buffer != y->buffer) return x->buffer < y->buffer ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

static void add_count(tide__chrome *c, const tide_plan_buffer *buffer, int64_t step, uint64_t live) {
    char name[64];
    tide__chrome_open(c, "C", buffer_name(buffer->device, buffer->kind, name, sizeof name), NULL, at_step(0, step));
    tide__chrome_args(c);
    tide_json_u64(&c->json, "live", live);
    tide__chrome_close(c);
}

/// `changes` in order: a count at each step at which one of its buffer stands.
static void add_counts(tide__chrome *c, const tide_memory_plan *plan, const change *changes, size_t n) {
    uint64_t comes = 0, goes = 0;
    for (size_t i = 0; i < n; i++) {
        const bool is_first = i == 0 || changes[i - 1].buffer != changes[i].buffer;
        if (is_first) comes = goes = 0;
        *(changes[i].comes ? &comes : &goes) += changes[i].bytes;
        const bool goes_on =
            i + 1 < n && changes[i + 1].buffer == changes[i].buffer && changes[i + 1].step == changes[i].step;
        if (!goes_on) add_count(c, &plan->buffers[changes[i].buffer], changes[i].step, comes - goes);
    }
}

static tide_status add_live(tide__chrome *c, const tide_memory_plan *plan, tide_error *err) {
    tide_occupied *occupied = NULL;
    change *changes = NULL;
    size_t n, n_changes = 0;
    TIDE_TRY(tide_lifetimes_occupied(&plan->lifetimes, &occupied, &n, err));
    tide_status st = TIDE_NEW(&changes, 2 * n, err, "for the live bytes of %zu tensors", plan->lifetimes.n);
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        const tide_occupied *o = &occupied[i];
        const tide_lifetime *root = &plan->lifetimes.items[o->root];
        const tide_plan_buffer *buffer = tide_memory_plan_buffer(plan, root->device, root->kind);
        const uint64_t bytes = o->hi_bytes - o->lo_bytes;
        if (buffer == NULL || bytes == 0) continue;
        const uint32_t b = (uint32_t)(buffer - plan->buffers);
        changes[n_changes++] = (change){o->begin_step, b, true, bytes};
        changes[n_changes++] = (change){o->end_step, b, false, bytes};
    }
    if (n_changes > 1) qsort(changes, n_changes, sizeof *changes, compare_changes);
    if (st == TIDE_OK) add_counts(c, plan, changes, n_changes);
    tide_host_free(changes);
    tide_host_free(occupied);
    return st;
}

tide_status tide_chrome_trace_of_plan(const tide_memory_plan *plan, tide_output *out, tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    tide__chrome c;
    tide_text title = {0};
    tide__chrome_begin(&c, out, err);
    tide_text_addf(&title, "plan of %s: %s (a step is shown as 1 us)", lt->model != NULL ? lt->model : "a list",
                   plan->strategy != NULL ? plan->strategy : "");
    tide__chrome_name(&c, TIDE__CHROME_MEMORY, 0, tide_text_str(&title));
    tide__chrome_name(&c, TIDE__CHROME_MEMORY, STEPS, "steps");
    add_steps(&c, lt);
    for (size_t i = 0; i < lt->n && c.st == TIDE_OK; i++) add_tensor(&c, plan, i);
    tide_status st = c.st == TIDE_OK ? add_live(&c, plan, err) : c.st;
    if (title.failed && st == TIDE_OK) st = TIDE_NO_MEMORY(err, "for a title");
    tide_text_deinit(&title);
    if (c.st == TIDE_OK) c.st = st;
    return tide__chrome_end(&c);
}
