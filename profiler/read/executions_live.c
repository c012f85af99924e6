// SPDX-License-Identifier: MIT
//
// Live sets by tensors: in place of a plan's buffer what lies in it. See executions.h.
//
//     plan buffer  [################################]   one block, as it was recorded
//     at step 7    [ conv1_out ][ pool1 ][..........]   tensors alive at that step, and one item for the rest
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/read/executions_internal.h"

/// A block of the set that is a plan's buffer, and the execution that works in it.
typedef struct buffer {
    size_t item; // of the set
    const tide_executions *x;
    const tide_plan_buffer *of;
    size_t execution; // SIZE_MAX: none works in it now
    size_t step_i;    // of its steps; SIZE_MAX: none runs
    uint64_t *counts; // [tensors] what each keeps; owned; NULL: none is alive
    size_t n_alive;
} buffer;

typedef struct expander {
    tide_trace *t;
    const tide_live_set *set;
    buffer *buffers; // [n], owned
    size_t n, cap;
    tide_error *err;
} expander;

// ---- which blocks are buffers ----

static const tide_plan_buffer *buffer_of(const tide_executions *x, const tide_live *b) {
    return b->in_buffer ? NULL : tide_executions_buffer(x, b->kind, b->device, b->requested_bytes);
}

/// The execution that works in the block after the set's event; SIZE_MAX: none.
static size_t execution_in(const expander *e, const tide_executions *x, uint64_t block_id) {
    for (uint32_t lane = 0; lane < x->n_lanes; lane++) {
        const size_t i = tide_executions_at(x, lane, e->set->event_id);
        if (i != SIZE_MAX && x->items[i].buffer_block == block_id) return i;
    }
    return SIZE_MAX;
}

static tide_status add(expander *e, size_t item, const tide_executions *x, size_t execution) {
    TIDE_TRY(TIDE_GROW(&e->buffers, &e->cap, e->n + 1, e->err, "for what lies in a plan's buffer"));
    const size_t step_i =
        execution != SIZE_MAX ? tide_execution_step_at(x, &x->items[execution], e->set->event_id) : SIZE_MAX;
    e->buffers[e->n++] = (buffer){
        .item = item, .x = x, .of = buffer_of(x, &e->set->items[item]), .execution = execution, .step_i = step_i};
    return TIDE_OK;
}

/// Runs that do not say in which block they work: it is known where there is one such block, and one execution.
static tide_status add_only_one(expander *e, const tide_executions *x) {
    size_t found = SIZE_MAX, execution = SIZE_MAX;
    for (size_t i = 0; i < e->set->n; i++) {
        const tide_live *b = &e->set->items[i];
        if (b->run_id != x->run_id || b->kind != TIDE_KIND_WORKSPACE || buffer_of(x, b) == NULL) continue;
        if (found != SIZE_MAX) return TIDE_OK;
        found = i;
    }
    for (uint32_t lane = 0; lane < x->n_lanes; lane++) {
        const size_t i = tide_executions_at(x, lane, e->set->event_id);
        if (i == SIZE_MAX) continue;
        if (execution != SIZE_MAX) return TIDE_OK;
        execution = i;
    }
    return found != SIZE_MAX ? add(e, found, x, execution) : TIDE_OK;
}

static tide_status add_buffers(expander *e, const tide_executions *x) {
    if (x->plan == NULL) return TIDE_OK;
    if (!tide_executions_say_buffers(x)) return add_only_one(e, x);
    for (size_t i = 0; i < e->set->n; i++) {
        const tide_live *b = &e->set->items[i];
        if (tide_executions_works_in(x, b->block_id) && buffer_of(x, b) != NULL)
            TIDE_TRY(add(e, i, x, execution_in(e, x, b->block_id)));
    }
    return TIDE_OK;
}

/// Whether the run can have a buffer in the set: the moment lies in it, or a block of it is still there.
static bool concerns(const expander *e, int64_t run_id, int64_t first, int64_t last) {
    if ((uint64_t)first <= e->set->event_id + 1 && e->set->event_id <= (uint64_t)last) return true;
    for (size_t i = 0; i < e->set->n; i++)
        if (e->set->items[i].run_id == run_id && e->set->items[i].kind == TIDE_KIND_WORKSPACE) return true;
    return false;
}

/// Runs with a plan that they run by.
static tide_status list_runs(expander *e, int64_t **out, size_t *n) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&e->t->sql,
                               "SELECT r.id, r.first_event, coalesce(r.last_event, 9223372036854775807) FROM main.run "
                               "r JOIN main.plan p ON p.run_id = r.id WHERE r.mode <> 'naive' AND r.first_event > 0",
                               &stmt, e->err));
    size_t cap = 0;
    bool has_row;
    tide_status st;
    while ((st = tide__sql_step(&e->t->sql, stmt, &has_row, e->err)) == TIDE_OK && has_row) {
        const int64_t id = sqlite3_column_int64(stmt, 0);
        if (!concerns(e, id, sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2))) continue;
        TIDE_TRY_OR(done, st, TIDE_GROW(out, &cap, *n + 1, e->err, "for the runs of '%s'", e->t->path));
        (*out)[(*n)++] = id;
    }
done:
    sqlite3_finalize(stmt);
    return st;
}

static tide_status find_buffers(expander *e) {
    int64_t *runs = NULL;
    size_t n = 0;
    bool has_workspace = false;
    for (size_t i = 0; i < e->set->n; i++)
        has_workspace = has_workspace || e->set->items[i].kind == TIDE_KIND_WORKSPACE;
    tide_status st = has_workspace ? list_runs(e, &runs, &n) : TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        const tide_executions *x;
        st = tide_trace_executions(e->t, runs[i], &x, e->err);
        if (st == TIDE_OK) st = add_buffers(e, x);
    }
    tide_host_free(runs);
    return st;
}

// ---- what lies in them ----

static bool is_in(const tide_lifetime *l, const tide_plan_buffer *b, int64_t step) {
    return !l->persistent && l->kind == b->kind && tide_device_equal(l->device, b->device) && l->begin_step <= step &&
           step < l->end_step;
}

static int64_t step_of(const buffer *b) {
    return tide_execution_steps(b->x, &b->x->items[b->execution])[b->step_i].step;
}

/// A plan that was not verified may have more alive than its buffer holds: nothing is known of it then.
static tide_status count(buffer *b, tide_error *err) {
    const tide_lifetimes *lt = &b->x->plan->lifetimes;
    uint64_t sum = 0;
    if (b->step_i == SIZE_MAX) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&b->counts, lt->n + 1, err, "for what lies in a plan's buffer"));
    const int64_t step = step_of(b);
    TIDE_TRY(tide_plan_live_counts(b->x->plan, tide__executions_live(b->x), step, b->counts, err));
    for (size_t i = 0; i < lt->n; i++) {
        if (!is_in(&lt->items[i], b->of, step)) continue;
        b->n_alive++;
        sum += b->counts[i] <= b->of->bytes ? b->counts[i] : b->of->bytes + 1;
        if (sum <= b->of->bytes) continue;
        tide_host_free(b->counts);
        b->counts = NULL;
        b->n_alive = 0;
        return TIDE_OK;
    }
    return TIDE_OK;
}

static tide_live tensor_of(const buffer *b, const tide_live *block, size_t i) {
    const tide_lifetimes *lt = &b->x->plan->lifetimes;
    const tide_lifetime *l = &lt->items[i];
    const tide_execution *e = &b->x->items[b->execution];
    const size_t since = tide_execution_since(b->x, e, b->step_i, l->begin_step, l->end_step);
    const tide_execution_step *born = &tide_execution_steps(b->x, e)[since];
    const bool has_name = l->begin_step >= 0 && (uint64_t)l->begin_step < lt->n_step_names;
    tide_live out = *block;
    out.name = l->name;
    out.scope = has_name ? lt->step_names[l->begin_step] : "";
    out.scope_index = l->begin_step;
    out.thread = e->thread;
    out.run_id = out.plan_run_id = b->x->run_id;
    out.requested_bytes = out.reserved_bytes = b->counts[i];
    out.address = block->address + (b->x->plan->offsets[i] != TIDE_NO_OFFSET ? b->x->plan->offsets[i] : 0);
    out.alloc_event = e->first_event + born->event;
    out.alloc_ns = born->t_ns;
    out.in_buffer = true;
    out.tensor = (uint32_t)i;
    out.execution = b->execution;
    return out;
}

/// In place of one block; `out` has room for b->n_alive + 1. @return how many
static size_t put_tensors(const buffer *b, const tide_live *block, tide_live *out) {
    const tide_lifetimes *lt = &b->x->plan->lifetimes;
    size_t n = 0;
    uint64_t used = 0;
    for (size_t i = 0; b->counts != NULL && i < lt->n; i++) {
        if (!is_in(&lt->items[i], b->of, step_of(b))) continue;
        out[n++] = tensor_of(b, block, i);
        used += b->counts[i];
    }
    TIDE_ASSERT(n == b->n_alive && used <= block->requested_bytes);
    out[n] = *block;
    out[n].name = "unused in the buffer";
    out[n].requested_bytes -= used;
    out[n].reserved_bytes -= used;
    out[n].in_buffer = out[n].is_unused = true;
    out[n].plan_run_id = b->x->run_id;
    out[n].execution = b->execution;
    return n + 1;
}

static tide_status replace(const expander *e, tide_live_set *set) {
    size_t n = set->n, at = 0;
    for (size_t i = 0; i < e->n; i++) n += e->buffers[i].n_alive;
    tide_live *items;
    TIDE_TRY(TIDE_NEW(&items, n + 1, e->err, "for what lies in a plan's buffer"));
    size_t *buffer_at;
    const tide_status st = TIDE_NEW(&buffer_at, set->n + 1, e->err, "for what lies in a plan's buffer");
    if (st != TIDE_OK) {
        tide_host_free(items);
        return st;
    }
    for (size_t i = 0; i < e->n; i++) buffer_at[e->buffers[i].item] = i + 1;
    for (size_t i = 0; i < set->n; i++) {
        if (buffer_at[i] == 0)
            items[at++] = set->items[i];
        else
            at += put_tensors(&e->buffers[buffer_at[i] - 1], &set->items[i], &items[at]);
    }
    TIDE_ASSERT(at <= n);
    tide_host_free(buffer_at);
    tide_host_free(set->items);
    set->items = items;
    set->n = at;
    return TIDE_OK;
}

tide_status tide_trace_expand_buffers(tide_trace *t, tide_live_set *set, tide_error *err) {
    expander e = {.t = t, .set = set, .err = err};
    tide_status st = find_buffers(&e);
    for (size_t i = 0; st == TIDE_OK && i < e.n; i++) st = count(&e.buffers[i], err);
    if (st == TIDE_OK && e.n > 0) st = replace(&e, set);
    for (size_t i = 0; i < e.n; i++) tide_host_free(e.buffers[i].counts);
    tide_host_free(e.buffers);
    return st;
}
