// SPDX-License-Identifier: MIT
//
// Heights of the rectangles, summed per tick and dealt out to the steps of each. See alias_live.h.
#include "planner/passes/alias_live.h"

#include "core/base/host_alloc.h"
#include "planner/problem.h"

/// First the changes from tick to tick, then their running sum: rises and falls wrap around and meet again.
static void sum_ticks(const tide_problem *p, uint64_t *live) {
    for (size_t r = 0; r < p->n_rects; r++) {
        const uint64_t bytes = p->rects[r].hi_bytes - p->rects[r].lo_bytes;
        live[p->rects[r].begin] += bytes;
        live[p->rects[r].end] -= bytes;
    }
    for (uint32_t t = 1; t < p->n_ticks; t++) live[t] += live[t - 1];
}

static int64_t step_of(const tide_problem *p, uint32_t tick, int64_t n_steps) {
    if (tick >= p->n_ticks) return n_steps;
    const int64_t step = p->tick_steps != NULL ? p->tick_steps[tick] : (int64_t)tick;
    return step < 0 || step > n_steps ? n_steps : step; // no step: of things that are only kept apart
}

static tide_status deal_out(const tide_problem *p, int64_t n_steps, uint64_t *out) {
    uint64_t *live = tide_host_calloc((size_t)p->n_ticks + 1, sizeof *live);
    if (live == NULL) return TIDE_ERR_NOMEM;
    sum_ticks(p, live);
    for (uint32_t t = 0; t < p->n_ticks; t++) {
        for (int64_t s = step_of(p, t, n_steps); s < step_of(p, t + 1, n_steps); s++) out[s] = live[t];
    }
    tide_host_free(live);
    return TIDE_OK;
}

tide_status tide__alias_live_bytes(const tide_lifetimes *lt, uint64_t **out, tide_error *err) {
    tide_problems problems;
    TIDE_TRY(tide__problems_make(lt, &problems, err));
    uint64_t *live = tide_host_calloc((size_t)lt->n_steps + 1, sizeof *live);
    tide_status st = live != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t i = 0; i < problems.n && st == TIDE_OK; i++) {
        if (problems.list[i].kind == TIDE_KIND_WORKSPACE) st = deal_out(&problems.list[i], lt->n_steps, live);
    }
    tide__problems_deinit(&problems);
    if (st != TIDE_OK) {
        tide_host_free(live);
        return TIDE_FAIL(err, st, "no memory for the bytes alive at %lld steps", (long long)lt->n_steps);
    }
    *out = live;
    return TIDE_OK;
}
