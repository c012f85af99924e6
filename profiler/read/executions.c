// SPDX-License-Identifier: MIT
//
// The executions of a run, found in its scopes. See executions.h.
//
// The events are read once, in order; each thread is in at most one execution:
//
//     enter run          an execution begins
//     enter operator     a step begins, if the operator lies in that run and in no other operator
//     leave operator     of the last step: the buffer is idle, until another step begins
//     leave run          it is over, and so it is when its buffer is freed
//
// Operators that lie in no run, and those of a run whose beginning was dropped, make executions of their own: a new one
// wherever the steps begin again.
#include "profiler/executions.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/read/executions_internal.h"

/// A thread: what it executes, and what it has executed.
typedef struct lane {
    int32_t thread;
    bool is_open; // the last of `items` goes on
    bool has_run; // that has a scope of its own
    int32_t run_scope;
    int32_t last_scope; // operator of its last step
    int64_t last_step;
    size_t *items; // [n] executions of this lane, rising; owned
    size_t n, cap;
    tide_execution_step *steps; // [n_steps] of all of them, one after the other; owned
    size_t n_steps, cap_steps;
} lane;

struct tide__run_executions {
    tide_executions shown;
    tide_memory_plan *plan; // owned; NULL: the run has none, or is naive
    tide_plan_live live;    // of it
    tide_execution *items;  // owned
    size_t cap;
    lane *lanes; // [shown.n_lanes], owned
    size_t cap_lanes;
    tide_map lane_of;   // thread -> lane
    tide_map buffers;   // block ids that executions work in
    int64_t next_event; // the first that was not read
    uint32_t refs;      // traces that have it, and takers of tide_trace_share; changed atomically
    bool is_whole;      // of a finished trace, all of it: nothing changes any more
};

typedef struct lane_entry { // of a tide_map
    uint64_t thread;        // + 1, never 0
    uint64_t lane;
} lane_entry;
typedef struct buffer_entry {
    uint64_t block_id, zero;
} buffer_entry;

static struct tide__run_executions *inside(const tide_executions *x) {
    return (struct tide__run_executions *)(uintptr_t)x; // `shown` is its first member
}

/// As if nothing had been read; the plan stays, for its texts are lent to callers.
static void reset(struct tide__run_executions *r) {
    for (size_t i = 0; i < r->shown.n_lanes; i++) {
        tide_host_free(r->lanes[i].items);
        tide_host_free(r->lanes[i].steps);
    }
    tide_host_free(r->lanes);
    tide_host_free(r->items);
    tide_map_deinit(&r->lane_of);
    tide_map_deinit(&r->buffers);
    r->lanes = NULL;
    r->items = NULL;
    r->cap = r->cap_lanes = 0;
    r->next_event = 1;
    r->shown = (tide_executions){.run_id = r->shown.run_id};
}

static void destroy(struct tide__run_executions *r) {
    if (r == NULL || __atomic_fetch_sub(&r->refs, 1, __ATOMIC_ACQ_REL) > 1) return; // others have it still
    reset(r);
    if (r->plan != NULL) tide_plan_live_deinit(&r->live);
    tide_memory_plan_destroy(r->plan);
    tide_host_free(r);
}

void tide__executions_drop(struct tide__run_executions **executions, size_t n) {
    for (size_t i = 0; i < n; i++) destroy(executions[i]);
    tide_host_free(executions);
}

static void forget(tide_trace *t) {
    tide__executions_drop(t->executions, t->n_executions);
    t->executions = NULL;
    t->n_executions = t->cap_executions = 0;
}

tide_status tide__executions_share(struct tide__run_executions *const *executions, size_t n,
                                   struct tide__run_executions ***out, size_t *n_out, tide_error *err) {
    *n_out = 0;
    TIDE_TRY(TIDE_NEW(out, n + 1, err, "to share executions"));
    for (size_t i = 0; i < n; i++) {
        if (!executions[i]->is_whole) continue;
        __atomic_fetch_add(&executions[i]->refs, 1, __ATOMIC_RELAXED);
        (*out)[(*n_out)++] = executions[i];
    }
    return TIDE_OK;
}

tide_status tide__executions_take(tide_trace *t, struct tide__run_executions *const *executions, size_t n,
                                  tide_error *err) {
    TIDE_ASSERT(t->executions == NULL);
    TIDE_TRY(tide__executions_share(executions, n, &t->executions, &t->n_executions, err));
    t->cap_executions = n + 1;
    t->forget[TIDE__KEPT_EXECUTIONS] = forget;
    return TIDE_OK;
}

// ---- events ----

typedef struct reader {
    const tide_trace *t;
    struct tide__run_executions *r;
} reader;

static tide_execution *last_of(const struct tide__run_executions *r, const lane *l) {
    return &r->items[l->items[l->n - 1]];
}

static tide_status lane_of_thread(struct tide__run_executions *r, int32_t thread, lane **out) {
    const lane_entry *found = tide_map_find(&r->lane_of, (uint64_t)thread + 1);
    if (found != NULL) {
        *out = &r->lanes[found->lane];
        return TIDE_OK;
    }
    const lane_entry entry = {(uint64_t)thread + 1, r->shown.n_lanes};
    TIDE_TRY(tide_host_grow(&r->lanes, &r->cap_lanes, r->shown.n_lanes + 1, sizeof *r->lanes));
    if (!tide_map_put(&r->lane_of, &entry)) return TIDE_ERR_NOMEM;
    *out = &r->lanes[r->shown.n_lanes++];
    **out = (lane){.thread = thread};
    return TIDE_OK;
}

static void end(struct tide__run_executions *r, lane *l, const tide__event *e) {
    if (!l->is_open) return;
    tide_execution *x = last_of(r, l);
    x->last_event = (uint64_t)e->id;
    x->end_ns = (uint64_t)e->t_ns;
    l->is_open = false;
}

/// `run_scope` 0: the execution has no scope of its own.
static tide_status begin(const reader *in, lane *l, const tide__event *e, int32_t run_scope, bool has_run) {
    struct tide__run_executions *r = in->r;
    end(r, l, e); // it was never left: what follows on its thread has begun
    TIDE_TRY(tide_host_grow(&r->items, &r->cap, r->shown.n + 1, sizeof *r->items));
    TIDE_TRY(tide_host_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items));
    const uint64_t block = has_run ? (uint64_t)e->block_id : 0;
    const buffer_entry buffer = {.block_id = block};
    if (block != 0 && tide_map_find(&r->buffers, block) == NULL && !tide_map_put(&r->buffers, &buffer))
        return TIDE_ERR_NOMEM;
    r->items[r->shown.n] = (tide_execution){.number = tide__trace_scope_of(in->t, run_scope).step,
                                            .thread = (uint32_t)l->thread,
                                            .lane = (uint32_t)(l - r->lanes),
                                            .buffer_block = block,
                                            .first_event = (uint64_t)e->id,
                                            .last_event = UINT64_MAX,
                                            .begin_ns = (uint64_t)e->t_ns,
                                            .end_ns = UINT64_MAX,
                                            .idle_event = UINT64_MAX,
                                            .idle_ns = UINT64_MAX,
                                            .first_step = l->n_steps};
    l->items[l->n++] = r->shown.n++;
    l->is_open = true;
    l->has_run = has_run;
    l->run_scope = run_scope;
    l->last_scope = 0;
    l->last_step = -1;
    return TIDE_OK;
}

static tide_status enter_step(const reader *in, lane *l, const tide__event *e, const tide__trace_scope *scope) {
    const bool goes_on = l->is_open && l->run_scope == scope->run && (l->has_run || scope->step > l->last_step);
    if (!goes_on) TIDE_TRY(begin(in, l, e, scope->run, false));
    tide_execution *x = last_of(in->r, l);
    TIDE_ASSERT((uint64_t)e->id >= x->first_event && x->last_event == UINT64_MAX);
    if ((uint64_t)e->id - x->first_event > UINT32_MAX) return TIDE_ERR_OVERFLOW;
    TIDE_TRY(tide_host_grow(&l->steps, &l->cap_steps, l->n_steps + 1, sizeof *l->steps));
    l->steps[l->n_steps++] =
        (tide_execution_step){(uint64_t)e->t_ns, (uint32_t)((uint64_t)e->id - x->first_event), (int32_t)scope->step};
    x->n_steps++;
    x->goes_back = x->goes_back || scope->step <= l->last_step;
    x->idle_event = x->idle_ns = UINT64_MAX;
    l->last_scope = e->scope_id;
    l->last_step = scope->step;
    return TIDE_OK;
}

static void leave(struct tide__run_executions *r, lane *l, const tide__event *e, const tide__trace_scope *scope) {
    if (!l->is_open) return;
    if (e->scope_id == l->run_scope) {
        end(r, l, e);
    } else if (scope->is_step && e->scope_id == l->last_scope) {
        tide_execution *x = last_of(r, l);
        x->idle_event = (uint64_t)e->id;
        x->idle_ns = (uint64_t)e->t_ns;
    }
}

static tide_status on_event(const reader *in, const tide__event *e) {
    const tide__trace_scope scope = tide__trace_scope_of(in->t, e->scope_id);
    const bool is_run = e->scope_id != 0 && scope.run == e->scope_id;
    lane *l;
    if (!is_run && !scope.is_step) return TIDE_OK;
    TIDE_TRY(lane_of_thread(in->r, e->thread, &l));
    if (e->op == TIDE__OP_SCOPE_LEAVE) {
        leave(in->r, l, e, &scope);
        return TIDE_OK;
    }
    return is_run ? begin(in, l, e, e->scope_id, true) : enter_step(in, l, e, &scope);
}

/// An execution that was never left is over when its buffer goes.
static void on_free(struct tide__run_executions *r, const tide__event *e) {
    if (tide_map_find(&r->buffers, (uint64_t)e->block_id) == NULL) return;
    for (size_t i = 0; i < r->shown.n_lanes; i++) {
        lane *l = &r->lanes[i];
        if (l->is_open && last_of(r, l)->buffer_block == (uint64_t)e->block_id) end(r, l, e);
    }
}

/// The same of all that its process was at.
static void on_process_end(struct tide__run_executions *r, const tide__event *e) {
    for (size_t i = 0; i < r->shown.n_lanes; i++) {
        lane *l = &r->lanes[i];
        const uint64_t block = l->is_open ? last_of(r, l)->buffer_block : 0;
        if (block != 0 && (block ^ (uint64_t)e->block_id) >> TIDE__BLOCK_ID_BITS == 0) end(r, l, e);
    }
}

static tide_status on_events(void *ctx, const tide__event *events, size_t n) {
    const reader *in = ctx;
    for (size_t i = 0; i < n; i++) {
        const tide__event *e = &events[i];
        const bool is_scope = e->op == TIDE__OP_SCOPE_ENTER || e->op == TIDE__OP_SCOPE_LEAVE;
        if (is_scope && e->run_id == in->r->shown.run_id) TIDE_TRY(on_event(in, e));
        if (e->op == TIDE_MEM_FREE_COMPLETED && in->r->buffers.n > 0 && e->block_id != 0) on_free(in->r, e);
        if (e->op == TIDE__OP_PROCESS_END) on_process_end(in->r, e);
    }
    return TIDE_OK;
}

// ---- a run ----

static tide_status create(tide_trace *t, int64_t run_id, struct tide__run_executions **out, tide_error *err) {
    tide_trace_run *runs;
    size_t n, i = 0;
    TIDE_TRY(tide_trace_runs(t, &runs, &n, err));
    while (i < n && runs[i].id != run_id) i++;
    const bool is_planned = i < n && strcmp(runs[i].mode, "naive") != 0;
    tide_host_free(runs);
    if (i == n) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the trace has no run %lld", (long long)run_id);
    struct tide__run_executions *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "for the executions of run %lld", (long long)run_id));
    r->refs = 1;
    r->shown.run_id = run_id;
    r->lane_of = (tide_map)TIDE_MAP(lane_entry);
    r->buffers = (tide_map)TIDE_MAP(buffer_entry);
    r->next_event = 1;
    tide_memory_plan *plan = NULL;
    tide_status st = is_planned ? tide__trace_plan_or_null(t, run_id, &plan, err) : TIDE_OK;
    if (st == TIDE_OK && plan != NULL) st = tide_plan_live_make(plan, &r->live, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        destroy(r);
        return st;
    }
    r->plan = plan;
    *out = r;
    return TIDE_OK;
}

static tide_status read_on(tide_trace *t, struct tide__run_executions *r, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, r->shown.run_id, &span, err));
    const int64_t first = span.first_event > r->next_event ? span.first_event : r->next_event;
    reader in = {.t = t, .r = r};
    TIDE_TRY(tide__trace_each(t, TIDE__READ_SCOPES, first, span.last_event, on_events, &in, err));
    if (span.last_event >= first) r->next_event = span.last_event + 1;
    r->shown.items = r->items;
    r->shown.plan = r->plan;
    r->is_whole = t->state != TIDE_TRACE_RECORDING;
    return TIDE_OK;
}

tide_status tide_trace_executions(tide_trace *t, int64_t run_id, const tide_executions **out, tide_error *err) {
    size_t i = 0;
    while (i < t->n_executions && t->executions[i]->shown.run_id != run_id) i++;
    if (i == t->n_executions) {
        t->forget[TIDE__KEPT_EXECUTIONS] = forget;
        TIDE_TRY(
            TIDE_GROW(&t->executions, &t->cap_executions, t->n_executions + 1, err, "for the runs of '%s'", t->path));
        TIDE_TRY(create(t, run_id, &t->executions[i], err));
        t->n_executions++;
    }
    *out = &t->executions[i]->shown;
    if (t->executions[i]->is_whole) return TIDE_OK;
    const tide_status st = read_on(t, t->executions[i], err);
    if (st != TIDE_OK) reset(t->executions[i]); // what was read is half of something
    return st;
}

// ---- questions ----

const tide_execution_step *tide_execution_steps(const tide_executions *x, const tide_execution *e) {
    return inside(x)->lanes[e->lane].steps + e->first_step;
}

/// Place in the lane of the first that begins behind the event.
static size_t behind(const tide_executions *x, const lane *l, uint64_t event) {
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (x->items[l->items[mid]].first_event <= event) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t tide_executions_at(const tide_executions *x, uint32_t lane_i, uint64_t event) {
    const lane *l = &inside(x)->lanes[lane_i];
    const size_t i = behind(x, l, event);
    return i > 0 && x->items[l->items[i - 1]].last_event > event ? l->items[i - 1] : SIZE_MAX;
}

size_t tide_executions_next(const tide_executions *x, uint32_t lane_i, uint64_t event) {
    const lane *l = &inside(x)->lanes[lane_i];
    const size_t i = behind(x, l, event);
    return i < l->n ? l->items[i] : SIZE_MAX;
}

size_t tide_executions_before(const tide_executions *x, uint32_t lane_i, uint64_t event) {
    const lane *l = &inside(x)->lanes[lane_i];
    const size_t i = event > 0 ? behind(x, l, event - 1) : 0;
    return i > 0 ? l->items[i - 1] : SIZE_MAX;
}

size_t tide_execution_step_at(const tide_executions *x, const tide_execution *e, uint64_t event) {
    const tide_execution_step *steps = tide_execution_steps(x, e);
    if (event < e->first_event || event >= e->idle_event || event >= e->last_event) return SIZE_MAX;
    size_t lo = 0, hi = e->n_steps;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (e->first_event + steps[mid].event <= event) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo > 0 ? lo - 1 : SIZE_MAX;
}

size_t tide_executions_at_ns(const tide_executions *x, uint32_t lane_i, uint64_t t_ns) {
    const lane *l = &inside(x)->lanes[lane_i];
    size_t lo = 0, hi = l->n;
    while (lo < hi) { // the first that begins later
        const size_t mid = lo + (hi - lo) / 2;
        if (x->items[l->items[mid]].begin_ns <= t_ns) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo > 0 && x->items[l->items[lo - 1]].end_ns > t_ns ? l->items[lo - 1] : SIZE_MAX;
}

size_t tide_execution_step_at_ns(const tide_executions *x, const tide_execution *e, uint64_t t_ns) {
    const tide_execution_step *steps = tide_execution_steps(x, e);
    size_t lo = 0, hi = e->n_steps;
    if (t_ns < e->begin_ns || t_ns >= e->idle_ns || t_ns >= e->end_ns) return SIZE_MAX;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (steps[mid].t_ns <= t_ns) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo > 0 ? lo - 1 : SIZE_MAX;
}

const tide_plan_live *tide__executions_live(const tide_executions *x) { return &inside(x)->live; }

uint32_t tide__executions_lane(const tide_executions *x, int32_t thread) {
    const lane_entry *found = tide_map_find(&inside(x)->lane_of, (uint64_t)thread + 1);
    return found != NULL ? (uint32_t)found->lane : UINT32_MAX;
}

bool tide_executions_works_in(const tide_executions *x, uint64_t block_id) {
    return block_id != 0 && tide_map_find(&inside(x)->buffers, block_id) != NULL;
}

bool tide_executions_say_buffers(const tide_executions *x) { return inside(x)->buffers.n > 0; }

const tide_plan_buffer *tide_executions_buffer(const tide_executions *x, tide_memory_kind kind, const char *device,
                                               uint64_t requested_bytes) {
    tide_device d;
    if (x->plan == NULL || requested_bytes == 0 || tide_device_parse(device, &d, NULL) != TIDE_OK) return NULL;
    const tide_plan_buffer *b = tide_memory_plan_buffer(x->plan, d, kind);
    return b != NULL && b->bytes == requested_bytes ? b : NULL;
}

/// The first of the steps of `e`, which does not go back, that is not before `step`; e->n_steps: none.
static size_t first_not_before(const tide_executions *x, const tide_execution *e, int64_t step) {
    const tide_execution_step *steps = tide_execution_steps(x, e);
    size_t lo = 0, hi = e->n_steps;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (steps[mid].step < step) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

void tide_execution_range(const tide_executions *x, const tide_execution *e, int64_t begin, int64_t end, size_t *first,
                          size_t *behind) {
    if (!e->goes_back) {
        *first = first_not_before(x, e, begin);
        *behind = first_not_before(x, e, end);
        return;
    }
    const tide_execution_step *steps = tide_execution_steps(x, e);
    *first = *behind = e->n_steps;
    for (size_t i = 0; i < e->n_steps; i++) {
        if (steps[i].step < begin || steps[i].step >= end) continue;
        if (*first == e->n_steps) *first = i;
        *behind = i + 1;
    }
}

size_t tide_execution_since(const tide_executions *x, const tide_execution *e, size_t at, int64_t begin, int64_t end) {
    const tide_execution_step *steps = tide_execution_steps(x, e);
    TIDE_ASSERT(at < e->n_steps && steps[at].step >= begin && steps[at].step < end);
    if (!e->goes_back) return first_not_before(x, e, begin);
    while (at > 0 && steps[at - 1].step >= begin && steps[at - 1].step < end) at--;
    return at;
}
