// SPDX-License-Identifier: MIT
//
// repeats: the tensors in the buffer of a planned run are the same in each execution, at other times. The page carries
// them once, and of each execution when its steps began. See gather.h.
//
//     items       conv1.out @ 10 us   relu1.out @ 12 us   conv1.out @ 90 us   relu1.out @ 93 us
//     tensors     conv1.out, step 0   relu1.out, step 1
//     executions  10 us, +2 us        90 us, +3 us
#include <string.h>

#include "core/base/host_alloc.h"
#include "reports/gather.h"

/// A tensor of the plan: between which steps of an execution it is there; `to` n_steps: until its last step is left.
typedef struct span {
    bool is_there;
    size_t from, to;
} span;

bool tide_report_has_all_steps(const tide_subject_facts *f, const tide_execution *e) {
    const tide_execution_step *steps = tide_execution_steps(f->executions, e);
    if (e->n_steps != f->n_steps) return false;
    for (size_t i = 0; i < e->n_steps; i++)
        if (steps[i].step != f->step_number[i]) return false;
    return true;
}

/// Execution and tensor of an item that lies in the buffer of the run; false: it is another one.
static bool lies_in_buffer(const tide_report_side *s, uint32_t item, size_t *execution, size_t *tensor) {
    const tide_executions *x = s->facts->executions;
    const uint64_t id = tide_items_id(s->items, item);
    if (!tide_id_is_planned(id) || tide_planned_run(id) != x->run_id) return false;
    *execution = (size_t)tide_planned_execution(id);
    *tensor = (size_t)tide_planned_tensor(id);
    return *execution < x->n && *tensor < x->plan->lifetimes.n;
}

/// Whether the item is there from the begin of one step to the begin of the other one.
static bool is_there_then(const tide_report_side *s, uint32_t item, const tide_execution *e, const span *p) {
    const tide_execution_step *steps = tide_execution_steps(s->facts->executions, e);
    if (p->from >= e->n_steps || tide_items_is_open_ended(s->items, item)) return false;
    const uint64_t end = p->to < e->n_steps ? steps[p->to].t_ns : e->idle_ns;
    return tide_items_begin(s->items, item) == (int64_t)steps[p->from].t_ns &&
           tide_items_end(s->items, item) == (int64_t)end;
}

/// Those of execution `first` are what is repeated.
static tide_status list_tensors(tide_report_side *s, size_t first, span *spans, tide_error *err) {
    const tide_executions *x = s->facts->executions;
    size_t execution, tensor;
    TIDE_TRY(TIDE_NEW(&s->repeats.tensors, x->plan->lifetimes.n + 1, err, "for the report"));
    for (uint32_t i = 0; i < s->items->n; i++) {
        if (!lies_in_buffer(s, i, &execution, &tensor) || execution != first || spans[tensor].is_there) continue;
        const tide_lifetime *t = &x->plan->lifetimes.items[tensor];
        spans[tensor].is_there = true;
        tide_execution_range(x, &x->items[first], t->begin_step, t->end_step, &spans[tensor].from, &spans[tensor].to);
        s->repeats.tensors[s->repeats.n++] = i;
    }
    return TIDE_OK;
}

/// An execution repeats them when it has each of them, at the times of its own steps.
static void compare_executions(tide_report_side *s, const span *spans, size_t *n_alike) {
    const tide_executions *x = s->facts->executions;
    size_t execution, tensor;
    for (uint32_t i = 0; i < s->items->n; i++) {
        if (!lies_in_buffer(s, i, &execution, &tensor)) continue;
        const bool alike = s->repeats.is_repeated[execution] && spans[tensor].is_there &&
                           is_there_then(s, i, &x->items[execution], &spans[tensor]);
        s->repeats.is_repeated[execution] = alike;
        n_alike[execution] += alike;
    }
    for (size_t e = 0; e < x->n; e++)
        s->repeats.is_repeated[e] = s->repeats.is_repeated[e] && n_alike[e] == s->repeats.n;
}

static tide_status find(tide_report_side *s, span *spans, size_t *n_alike, tide_error *err) {
    const tide_executions *x = s->facts->executions;
    size_t first = SIZE_MAX;
    for (size_t e = x->n; e-- > 0;) {
        s->repeats.is_repeated[e] =
            x->items[e].idle_event != UINT64_MAX && tide_report_has_all_steps(s->facts, &x->items[e]);
        if (s->repeats.is_repeated[e]) first = e;
    }
    if (first == SIZE_MAX) return TIDE_OK;
    TIDE_TRY(list_tensors(s, first, spans, err));
    compare_executions(s, spans, n_alike);
    if (!s->repeats.is_repeated[first]) { // a tensor more than once in it, say
        s->repeats.n = 0;
        memset(s->repeats.is_repeated, 0, x->n * sizeof *s->repeats.is_repeated);
    }
    return TIDE_OK;
}

tide_status tide_report_find_repeats(tide_report_side *s, tide_error *err) {
    const tide_executions *x = s->facts->executions;
    if (x == NULL || x->plan == NULL || x->n == 0 || x->n > TIDE_REPORT_MAX_EXECUTIONS || s->live != NULL)
        return TIDE_OK;
    span *spans = tide_host_calloc(x->plan->lifetimes.n + 1, sizeof *spans);
    size_t *n_alike = tide_host_calloc(x->n, sizeof *n_alike);
    s->repeats.is_repeated = tide_host_calloc(x->n, sizeof *s->repeats.is_repeated);
    tide_status st = TIDE_NO_MEMORY(err, "for the report");
    if (spans != NULL && n_alike != NULL && s->repeats.is_repeated != NULL) st = find(s, spans, n_alike, err);
    tide_host_free(spans);
    tide_host_free(n_alike);
    return st;
}

bool tide_report_is_repeated(const tide_report_side *s, uint32_t item) {
    size_t execution, tensor;
    return s->repeats.n > 0 && lies_in_buffer(s, item, &execution, &tensor) && s->repeats.is_repeated[execution];
}

void tide_report_repeats_deinit(tide_report_side *s) {
    tide_host_free(s->repeats.tensors);
    tide_host_free(s->repeats.is_repeated);
}
