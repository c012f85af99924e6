// SPDX-License-Identifier: MIT
//
// A run and its plan. See run_plan.h; the rules are those of items.h.
#include "analysis/run_plan.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"

static tide_status find_run(tide_trace *trace, int64_t run_id, tide_trace_run *out, tide_error *err) {
    tide_trace_run *runs;
    size_t n, i = 0;
    TIDE_TRY(tide_trace_runs(trace, &runs, &n, err));
    while (i < n && runs[i].id != run_id) i++;
    if (i < n) *out = runs[i];
    tide_trace_runs_free(runs);
    return i < n ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the trace has no run %" PRId64, run_id);
}

static tide_status read_plan(tide_trace *trace, tide__run_plan *r, tide_error *err) {
    TIDE_TRY(tide_trace_plan(trace, r->run.id, &r->plan, err));
    for (size_t i = 0; i < r->plan->lifetimes.n; i++) {
        if (tide_strmap_put(&r->index, r->plan->lifetimes.items[i].name, i) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "for the plan of run %" PRId64, r->run.id);
    }
    return TIDE_OK;
}

tide_status tide__run_plan_read(tide_trace *trace, int64_t run_id, tide__run_plan *out, tide_error *err) {
    *out = (tide__run_plan){0};
    if (run_id == 0) return TIDE_OK;
    tide_status st = find_run(trace, run_id, &out->run, err);
    if (st == TIDE_OK) st = tide_trace_steps(trace, run_id, &out->steps, &out->n_steps, err);
    if (st == TIDE_OK && out->run.has_plan) st = read_plan(trace, out, err);
    if (st != TIDE_OK) tide__run_plan_deinit(out);
    return st;
}

void tide__run_plan_deinit(tide__run_plan *r) {
    tide_trace_steps_free(r->steps, r->n_steps);
    tide_memory_plan_destroy(r->plan);
    tide_strmap_deinit(&r->index);
    *r = (tide__run_plan){0};
}

const tide_lifetime *tide__run_plan_tensor(const tide__run_plan *r, const char *name) {
    uint64_t i;
    if (r->plan == NULL || !tide_strmap_get(&r->index, name, &i)) return NULL;
    return &r->plan->lifetimes.items[i];
}

// ---- executions ----

tide_status tide__planned_runs_read(tide_trace *trace, int64_t run_id, tide__planned_runs *out, tide_error *err) {
    tide_trace_run *runs;
    size_t n;
    *out = (tide__planned_runs){0};
    TIDE_TRY(tide_trace_runs(trace, &runs, &n, err));
    tide_status st = TIDE_NEW(&out->items, n + 1, err, "for the runs of a trace");
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        const tide_executions *x;
        if ((run_id != 0 && runs[i].id != run_id) || !runs[i].has_plan || strcmp(runs[i].mode, "naive") == 0) continue;
        st = tide_trace_executions(trace, runs[i].id, &x, err);
        if (st == TIDE_OK && x->plan != NULL) out->items[out->n++] = x;
    }
    tide_host_free(runs);
    if (st != TIDE_OK) tide__planned_runs_deinit(out);
    return st;
}

void tide__planned_runs_deinit(tide__planned_runs *p) {
    tide_host_free(p->items);
    *p = (tide__planned_runs){0};
}

const tide_executions *tide__planned_run(const tide__planned_runs *p, int64_t run_id) {
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i]->run_id == run_id) return p->items[i];
    return NULL;
}

const tide_executions *tide__planned_in(const tide__planned_runs *p, uint64_t block_id) {
    for (size_t i = 0; i < p->n; i++)
        if (tide_executions_works_in(p->items[i], block_id)) return p->items[i];
    return NULL;
}

bool tide__planned_times(const tide_executions *x, const tide_execution *e, const tide_lifetime *l, uint64_t *begin_ns,
                         uint64_t *end_ns) {
    const tide_execution_step *steps = tide_execution_steps(x, e);
    size_t first, behind;
    tide_execution_range(x, e, l->begin_step, l->end_step, &first, &behind);
    if (first >= behind) return false;
    *begin_ns = steps[first].t_ns;
    *end_ns = behind < e->n_steps ? steps[behind].t_ns : (e->idle_ns < e->end_ns ? e->idle_ns : e->end_ns);
    return true;
}
