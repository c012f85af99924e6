// SPDX-License-Identifier: MIT
//
// A run and its plan. See run_plan.h; the rules are those of items.h.
#include "analysis/run_plan.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/bisect.h"
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

bool tide__run_plan_has_buffer(const tide__run_plan *r) {
    return r->plan != NULL && r->n_steps > 0 && strcmp(r->run.mode, "naive") != 0;
}

const tide_plan_buffer *tide__run_plan_buffer_of(const tide__run_plan *r, tide_memory_kind kind, const char *device,
                                                 uint64_t requested_bytes) {
    tide_device d;
    if (kind != TIDE_KIND_WORKSPACE || requested_bytes == 0 || tide_device_parse(device, &d, NULL) != TIDE_OK)
        return NULL;
    const tide_plan_buffer *buffer = tide_memory_plan_buffer(r->plan, d, kind);
    return buffer != NULL && buffer->bytes == requested_bytes ? buffer : NULL;
}

/// Index of the first step that ran and is not before `step`; n_steps: none. Steps are in order of their index.
static size_t first_step_from(const tide__run_plan *r, int64_t step) {
    size_t lo = 0, hi = r->n_steps;
    TIDE_BISECT(lo, hi, r->steps[mid].index < step);
    return lo;
}

bool tide__run_plan_times(const tide__run_plan *r, const tide_lifetime *l, uint64_t *begin_ns, uint64_t *end_ns,
                          const char **owner) {
    const size_t first = first_step_from(r, l->begin_step), end = first_step_from(r, l->end_step);
    if (first >= end) return false;
    *begin_ns = r->steps[first].begin_ns;
    *end_ns = r->steps[end - 1].end_ns;
    if (*end_ns < *begin_ns) *end_ns = *begin_ns; // steps that ran side by side on several threads
    *owner = r->steps[first].name;
    return true;
}
