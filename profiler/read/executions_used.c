// SPDX-License-Identifier: MIT
//
// Live bytes over time with plans' buffers counted by what lies in them. See executions.h.
//
//     live    ________________________________      used = live - the parts of buffers that no tensor needs
//     used        __--_  __--_     __--_
//
// A walk over the events keeps the list of live buffers; what lies in them changes where a step begins.
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/lives.h"
#include "profiler/read/executions_internal.h"

/// A run by its plan.
typedef struct planned {
    const tide_executions *x;
    const tide_plan_buffer *buffer; // of Workspace; a program's runs have no other
    const char *device;             // its name in the trace; NULL: the trace has none of it
    uint64_t *used;                 // [steps] bytes alive in it; owned
} planned;

typedef struct live_buffer {
    int64_t block_id;
    size_t run; // of `planned`
} live_buffer;

typedef struct walker {
    tide_trace *t;
    planned *runs; // [n_runs], owned
    size_t n_runs, cap_runs;
    live_buffer *buffers; // [n_buffers] that are live, owned
    size_t n_buffers, cap_buffers;
    uint64_t next_change; // the next event at which what lies in a buffer changes
    uint64_t unused;      // bytes of live buffers now
    uint64_t last_bytes, last_live;
    tide_status (*fn)(void *ctx, const tide_trace_used *used);
    void *ctx;
} walker;

// ---- plans ----

static tide_status add_run(walker *w, int64_t run_id, tide_error *err) {
    planned p = {0};
    TIDE_TRY(tide_trace_executions(w->t, run_id, &p.x, err));
    if (p.x->plan == NULL) return TIDE_OK;
    for (size_t i = 0; i < p.x->plan->n_buffers; i++)
        if (p.x->plan->buffers[i].kind == TIDE_KIND_WORKSPACE) p.buffer = &p.x->plan->buffers[i];
    if (p.buffer == NULL || p.buffer->bytes == 0) return TIDE_OK;
    char text[32];
    tide_device_format(p.buffer->device, text, sizeof text);
    const int64_t device = tide__trace_device_find(w->t, text);
    if (device == 0) return TIDE_OK;
    p.device = tide__trace_device(w->t, device);
    TIDE_TRY(TIDE_GROW(&w->runs, &w->cap_runs, w->n_runs + 1, err, "for the runs of '%s'", w->t->path));
    TIDE_TRY(TIDE_NEW(&p.used, (size_t)p.x->plan->lifetimes.n_steps + 1, err, "for the steps of '%s'", w->t->path));
    tide_plan_live_bytes(p.x->plan, tide__executions_live(p.x), p.buffer, p.used);
    w->runs[w->n_runs++] = p;
    return TIDE_OK;
}

static tide_status add_runs(walker *w, int64_t run_id, tide_error *err) {
    if (run_id != 0) return add_run(w, run_id, err);
    tide_trace_run *runs;
    size_t n;
    TIDE_TRY(tide_trace_runs(w->t, &runs, &n, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++)
        if (runs[i].has_plan && strcmp(runs[i].mode, "naive") != 0) st = add_run(w, runs[i].id, err);
    tide_host_free(runs);
    return st;
}

static void free_runs(walker *w) {
    for (size_t i = 0; i < w->n_runs; i++) tide_host_free(w->runs[i].used);
    tide_host_free(w->runs);
}

// ---- which blocks are buffers ----

static bool can_be(const walker *w, const planned *p, const tide__live_block *b) {
    return b->kind == TIDE_KIND_WORKSPACE && (uint64_t)b->requested_bytes == p->buffer->bytes &&
           tide__trace_device(w->t, b->device) == p->device;
}

static tide_status see_alloc(walker *w, const tide__live_block *b) {
    for (size_t i = 0; i < w->n_runs; i++) {
        const planned *p = &w->runs[i];
        const bool is_buffer = tide_executions_say_buffers(p->x) ? tide_executions_works_in(p->x, (uint64_t)b->block_id)
                                                                 : b->run_id == p->x->run_id;
        if (!is_buffer || !can_be(w, p, b)) continue;
        TIDE_TRY(tide_host_grow(&w->buffers, &w->cap_buffers, w->n_buffers + 1, sizeof *w->buffers));
        w->buffers[w->n_buffers++] = (live_buffer){b->block_id, i};
        return TIDE_OK;
    }
    return TIDE_OK;
}

static void see_free(walker *w, int64_t block_id) {
    for (size_t i = 0; i < w->n_buffers; i++) {
        if (w->buffers[i].block_id != block_id) continue;
        w->buffers[i] = w->buffers[--w->n_buffers];
        return;
    }
}

// ---- what lies in them ----

/// The next event behind `event` at which something changes in the lane.
static uint64_t next_of_lane(const tide_executions *x, uint32_t lane, uint64_t event) {
    const size_t i = tide_executions_next(x, lane, event);
    uint64_t next = i != SIZE_MAX ? x->items[i].first_event : UINT64_MAX;
    const size_t now = tide_executions_at(x, lane, event);
    if (now == SIZE_MAX) return next;
    const tide_execution *e = &x->items[now];
    const tide_execution_step *steps = tide_execution_steps(x, e);
    const size_t step_i = tide_execution_step_at(x, e, event);
    size_t k = step_i != SIZE_MAX ? step_i + 1 : 0;
    if (e->idle_event <= event) k = e->n_steps;
    if (k < e->n_steps && e->first_event + steps[k].event < next) next = e->first_event + steps[k].event;
    if (e->idle_event > event && e->idle_event < next) next = e->idle_event;
    if (e->last_event > event && e->last_event < next) next = e->last_event;
    return next;
}

/// Bytes alive in what execution `i` works in; more than the buffer has, of a plan that nothing has verified: all of
/// it.
static uint64_t used_by(const planned *p, size_t i, uint64_t event) {
    const tide_execution *e = &p->x->items[i];
    const size_t step_i = tide_execution_step_at(p->x, e, event);
    if (step_i == SIZE_MAX) return 0;
    const int64_t step = tide_execution_steps(p->x, e)[step_i].step;
    const uint64_t used = step < p->x->plan->lifetimes.n_steps ? p->used[step] : 0;
    return used < p->buffer->bytes ? used : p->buffer->bytes;
}

/// Unused bytes of the live buffers of a run that does not say which execution works in which.
static uint64_t unused_of_only(const walker *w, size_t run, uint64_t event) {
    const planned *p = &w->runs[run];
    size_t n = 0, found = SIZE_MAX;
    for (size_t i = 0; i < w->n_buffers; i++) n += w->buffers[i].run == run;
    if (n != 1) return 0;
    for (uint32_t lane = 0; lane < p->x->n_lanes; lane++) {
        const size_t i = tide_executions_at(p->x, lane, event);
        if (i == SIZE_MAX) continue;
        if (found != SIZE_MAX) return 0;
        found = i;
    }
    return p->buffer->bytes - (found != SIZE_MAX ? used_by(p, found, event) : 0);
}

static uint64_t unused_of(const walker *w, size_t run, uint64_t event) {
    const planned *p = &w->runs[run];
    uint64_t unused = 0;
    if (!tide_executions_say_buffers(p->x)) return unused_of_only(w, run, event);
    for (size_t i = 0; i < w->n_buffers; i++)
        if (w->buffers[i].run == run) unused += p->buffer->bytes;
    for (uint32_t lane = 0; lane < p->x->n_lanes; lane++) {
        const size_t i = tide_executions_at(p->x, lane, event);
        if (i == SIZE_MAX) continue;
        for (size_t k = 0; k < w->n_buffers; k++)
            if ((uint64_t)w->buffers[k].block_id == p->x->items[i].buffer_block) unused -= used_by(p, i, event);
    }
    return unused;
}

static void settle(walker *w, uint64_t event) {
    w->unused = 0;
    w->next_change = UINT64_MAX;
    for (size_t run = 0; run < w->n_runs; run++) {
        const tide_executions *x = w->runs[run].x;
        w->unused += unused_of(w, run, event);
        for (uint32_t lane = 0; lane < x->n_lanes; lane++) {
            const uint64_t next = next_of_lane(x, lane, event);
            TIDE_ASSERT(next > event);
            if (next < w->next_change) w->next_change = next;
        }
    }
}

// ---- the walk ----

static tide_status give(walker *w, const tide__replay *r, int64_t event, int64_t t_ns, bool always) {
    const uint64_t live = (uint64_t)r->series[0].live_bytes;
    TIDE_ASSERT(w->unused <= live);
    const tide_trace_used used = {(uint64_t)event, (uint64_t)t_ns, live - w->unused, live};
    if (!always && used.bytes == w->last_bytes && live == w->last_live) return TIDE_OK;
    w->last_bytes = used.bytes;
    w->last_live = live;
    return w->fn(w->ctx, &used);
}

static tide_status on_begin(void *ctx, const tide__replay *r) {
    walker *w = ctx;
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) TIDE_TRY(see_alloc(w, b));
    settle(w, (uint64_t)r->last_event);
    return give(w, r, r->last_event, r->last_ns, true);
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    walker *w = ctx;
    const size_t n = w->n_buffers;
    if (e->op == TIDE_MEM_ALLOC && series > 0) {
        const tide__live_block *b = tide__replay_find(r, e->block_id);
        if (b != NULL && b->alloc_event == e->id) TIDE_TRY(see_alloc(w, b));
    } else if (e->op == TIDE_MEM_FREE_COMPLETED && series > 0) {
        see_free(w, e->block_id);
    } else if (tide__event_is_of_process(e)) {
        for (size_t i = 0; i < w->n_buffers;)
            if (tide__replay_find(r, w->buffers[i].block_id) == NULL)
                w->buffers[i] = w->buffers[--w->n_buffers];
            else
                i++;
    }
    if (n != w->n_buffers || (uint64_t)e->id >= w->next_change) settle(w, (uint64_t)e->id);
    return give(w, r, e->id, e->t_ns, false);
}

tide_status tide_trace_each_used(tide_trace *t, int64_t run_id, uint64_t first, uint64_t last,
                                 tide_status (*fn)(void *ctx, const tide_trace_used *used), void *ctx,
                                 tide_error *err) {
    walker w = {.t = t, .fn = fn, .ctx = ctx};
    tide_status st = add_runs(&w, run_id, err);
    if (st == TIDE_OK) st = tide__trace_walk(t, (int64_t)first, (int64_t)last, on_begin, on_event, &w, err);
    free_runs(&w);
    tide_host_free(w.buffers);
    return st;
}

// ---- the fullest moment ----

typedef struct highest {
    tide_trace_used at;
    uint64_t begin_ns;
    bool found;
} highest;

static tide_status take_higher(void *ctx, const tide_trace_used *used) {
    highest *h = ctx;
    const bool is_as_high = h->found && used->live_bytes == h->at.live_bytes;
    if (h->found && (is_as_high ? used->bytes <= h->at.bytes : used->live_bytes < h->at.live_bytes)) return TIDE_OK;
    h->at = *used;
    if (h->at.t_ns < h->begin_ns) h->at.t_ns = h->begin_ns; // it was so when the stretch began
    h->found = true;
    return TIDE_OK;
}

/// The events and times that are looked at.
static tide_status extent_of(tide_trace *t, int64_t run_id, size_t execution, tide_trace_extent *out, tide_error *err) {
    const tide_executions *x;
    TIDE_TRY(tide_trace_get_extent(t, run_id, out, err));
    if (out->first_event == 0) out->first_event = 1;
    if (execution == SIZE_MAX) return TIDE_OK;
    TIDE_TRY(tide_trace_executions(t, run_id, &x, err));
    if (execution >= x->n)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "run %lld has %zu executions, 0 is the first: there is no %zu",
                         (long long)run_id, x->n, execution);
    const tide_execution *e = &x->items[execution];
    out->first_event = e->first_event;
    out->begin_ns = e->begin_ns;
    if (e->last_event <= out->last_event) out->last_event = e->last_event - 1;
    return TIDE_OK;
}

static tide_status is_planned(tide_trace *t, int64_t run_id, bool *out, tide_error *err) {
    tide_trace_run *runs;
    size_t n;
    *out = false;
    TIDE_TRY(tide_trace_runs(t, &runs, &n, err));
    for (size_t i = 0; i < n; i++)
        if (run_id == 0 || runs[i].id == run_id)
            *out = *out || (runs[i].has_plan && strcmp(runs[i].mode, "naive") != 0);
    tide_host_free(runs);
    return TIDE_OK;
}

// ---- of a whole run, without a walk ----

/// Live bytes and what of them no tensor uses at an event.
static tide_status look_at(tide_trace *t, uint64_t event, tide_trace_used *out, tide_error *err) {
    tide_live_set set;
    TIDE_TRY(tide_trace_live_set_after(t, event, &set, err));
    const tide_status st = tide_trace_expand_buffers(t, &set, err);
    if (st == TIDE_OK) {
        out->bytes = out->live_bytes = set.requested_bytes;
        for (size_t i = 0; i < set.n; i++)
            if (set.items[i].is_unused) out->bytes -= set.items[i].requested_bytes;
    }
    tide_live_set_deinit(&set);
    return st;
}

/// What lies in the buffers of all executions that go on after `event`, and up to which event that holds.
static tide_trace_filling filling_at(const walker *w, uint64_t event, uint64_t last) {
    tide_trace_filling f = {.first = event, .last = last};
    for (size_t run = 0; run < w->n_runs; run++) {
        const planned *p = &w->runs[run];
        for (uint32_t lane = 0; lane < p->x->n_lanes; lane++) {
            const size_t i = tide_executions_at(p->x, lane, event);
            const uint64_t change = next_of_lane(p->x, lane, event);
            if (i != SIZE_MAX) f.bytes += used_by(p, i, event);
            if (change <= f.last) f.last = change - 1;
        }
    }
    return f;
}

tide_status tide_trace_each_filling(tide_trace *t, int64_t run_id, uint64_t first, uint64_t last,
                                    tide_status (*fn)(void *ctx, const tide_trace_filling *filling), void *ctx,
                                    tide_error *err) {
    walker w = {.t = t};
    tide_status st = add_runs(&w, run_id, err);
    for (uint64_t event = first; st == TIDE_OK && event <= last;) {
        const tide_trace_filling f = filling_at(&w, event, last);
        st = fn(ctx, &f);
        if (f.last == UINT64_MAX) break;
        event = f.last + 1;
    }
    free_runs(&w);
    return st;
}

/// From change to change of what lies in the run's buffers: where more lies in them than ever before, is the run as
/// high there as anywhere? Executions are alike, so that few of these questions are asked.
static tide_status find_fullest(const walker *w, const tide_trace_extent *span, tide_trace_used *best,
                                tide_error *err) {
    const uint64_t peak = best->live_bytes;
    uint64_t most = 0, next;
    for (uint64_t event = span->first_event; event <= span->last_event; event = next) {
        uint64_t high, at, t_ns;
        const tide_trace_filling f = filling_at(w, event, span->last_event);
        next = f.last + 1;
        if (f.bytes <= most) continue;
        TIDE_TRY(tide_trace_peak_of_events(w->t, -1, NULL, event, f.last, &high, &at, NULL, err));
        if (high < peak) continue;
        tide_trace_event e;
        size_t n;
        TIDE_TRY(tide_trace_events(w->t, at, &e, 1, &n, err));
        t_ns = n == 1 ? e.t_ns : best->t_ns;
        most = f.bytes;
        *best = (tide_trace_used){.event = at, .t_ns = t_ns, .live_bytes = high};
    }
    return TIDE_OK;
}

static tide_status fullest_of_run(tide_trace *t, int64_t run_id, const tide_trace_extent *span, tide_trace_used *out,
                                  tide_error *err) {
    walker w = {.t = t};
    TIDE_TRY(tide_trace_run_peak(t, run_id, -1, NULL, &out->live_bytes, &out->event, &out->t_ns, err));
    tide_status st = add_runs(&w, run_id, err);
    if (st == TIDE_OK && w.n_runs > 0) st = find_fullest(&w, span, out, err);
    free_runs(&w);
    TIDE_TRY(st);
    const uint64_t t_ns = out->t_ns;
    TIDE_TRY(look_at(t, out->event, out, err));
    out->t_ns = t_ns;
    return TIDE_OK;
}

tide_status tide_trace_fullest(tide_trace *t, int64_t run_id, size_t execution, tide_trace_used *out, tide_error *err) {
    tide_trace_extent span;
    bool by_plan;
    TIDE_TRY(extent_of(t, run_id, execution, &span, err));
    TIDE_TRY(is_planned(t, run_id, &by_plan, err));
    if (!by_plan && execution == SIZE_MAX) {
        TIDE_TRY(tide_trace_run_peak(t, run_id, -1, NULL, &out->live_bytes, &out->event, &out->t_ns, err));
        out->bytes = out->live_bytes;
        return TIDE_OK;
    }
    if (execution == SIZE_MAX) return fullest_of_run(t, run_id, &span, out, err);
    highest h = {.begin_ns = span.begin_ns};
    TIDE_TRY(tide_trace_each_used(t, run_id, span.first_event, span.last_event, take_higher, &h, err));
    *out = h.at;
    return TIDE_OK;
}
