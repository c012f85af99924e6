// SPDX-License-Identifier: MIT
//
// passes: all of them in their order, each measured by what it does to the lower bound. See passes.h.
//
//     given order -> views -> slices -> in-place -> parts      what the order pass has to beat
//     new order   -> views -> slices -> in-place -> parts      kept only when the lower bound is smaller
//     recompute   -> views -> slices -> in-place -> parts
#include "planner/passes.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/passes/pass_alias.h"
#include "planner/passes/pass_recompute.h"

typedef struct pipeline {
    tide_program *program;
    const tide_pass_options *opt;
    tide_pass_report report;
    uint64_t bare_bytes; // lower bound without aliases of what was analysed last
} pipeline;

/// Lifetimes of the program as it is now, with all aliases. *bytes: their lower bound.
static tide_status analyse(pipeline *p, tide_lifetimes *out, uint64_t *bytes, tide_error *err) {
    return tide__alias_passes_run(p->program, p->opt, p->report.gains, out, &p->bare_bytes, bytes, err);
}

static size_t count_moved(const uint32_t *order, size_t n) {
    size_t moved = 0;
    for (size_t k = 0; k < n; k++) moved += order[k] != k;
    return moved;
}

static tide_status reorder_back(tide_program *program, const uint32_t *order, uint32_t *inverse, tide_error *err) {
    for (size_t k = 0; k < program->n_steps; k++) inverse[order[k]] = (uint32_t)k;
    return tide_program_reorder(program, inverse, err);
}

/// Try `order`; *lt and *bytes become those of the better of the two.
static tide_status try_order(pipeline *p, const uint32_t *order, uint32_t *inverse, tide_lifetimes *lt, uint64_t *bytes,
                             tide_error *err) {
    const tide_pass_report as_given = p->report;
    tide_lifetimes other;
    uint64_t other_bytes;
    TIDE_TRY(tide_program_reorder(p->program, order, err));
    TIDE_TRY(analyse(p, &other, &other_bytes, err));
    if (other_bytes < *bytes) {
        tide_lifetimes_deinit(lt);
        *lt = other;
        p->report = as_given; // reported: what aliases gain in the given order, and what this one adds
        p->report.gains[TIDE_PASS_ORDER] = (tide_pass_gain){.ran = true,
                                                            .before_bytes = *bytes,
                                                            .after_bytes = other_bytes,
                                                            .n = count_moved(order, p->program->n_steps)};
        *bytes = other_bytes;
        return TIDE_OK;
    }
    tide_lifetimes_deinit(&other);
    p->report = as_given;
    return reorder_back(p->program, order, inverse, err);
}

static tide_status run_order(pipeline *p, tide_lifetimes *lt, uint64_t *bytes, tide_error *err) {
    p->report.gains[TIDE_PASS_ORDER] = (tide_pass_gain){.ran = true, .before_bytes = *bytes, .after_bytes = *bytes};
    const size_t n = p->program->n_steps;
    uint32_t *order = tide_host_calloc(n + 1, 2 * sizeof *order);
    if (order == NULL) return TIDE_NO_MEMORY(err, "for the order of %zu steps", n);
    uint64_t unused;
    tide_status st = tide_pass_order(p->program, p->opt, order, &unused, err);
    if (st == TIDE_OK && count_moved(order, n) > 0) st = try_order(p, order, order + n, lt, bytes, err);
    tide_host_free(order);
    return st;
}

/// A new order may suit the second runs better; its gain counts as recompute's.
static tide_status take_recomputed(pipeline *p, tide_lifetimes *lt, uint64_t *bytes, tide_error *err) {
    const tide_pass_report as_given = p->report;
    tide_lifetimes other;
    TIDE_TRY(analyse(p, &other, bytes, err));
    tide_lifetimes_deinit(lt);
    *lt = other;
    if (!p->opt->off[TIDE_PASS_ORDER]) TIDE_TRY(run_order(p, lt, bytes, err));
    p->report = as_given;
    return TIDE_OK;
}

/// The pass itself never makes the lower bound larger.
static tide_status run_recompute(pipeline *p, tide_lifetimes *lt, uint64_t *bytes, tide_error *err) {
    tide_pass_gain gain = {.ran = true, .before_bytes = *bytes, .after_bytes = *bytes};
    double extra_work = 0;
    bool is_cut = false;
    TIDE_TRY(tide_pass_recompute(p->program, p->opt, &gain.n, &extra_work, &is_cut, err));
    if (gain.n > 0) TIDE_TRY(take_recomputed(p, lt, bytes, err));
    gain.after_bytes = *bytes;
    p->report.gains[TIDE_PASS_RECOMPUTE] = gain;
    p->report.extra_work = extra_work;
    p->report.recompute_is_cut = is_cut;
    return TIDE_OK;
}

static tide_status run(pipeline *p, tide_lifetimes *lt, tide_error *err) {
    uint64_t bytes;
    const bool has_bodies = p->program->graph->n_regions > 0;
    TIDE_TRY(analyse(p, lt, &bytes, err));
    p->report.given_bytes = p->bare_bytes;
    tide_status st = tide__program_work(p->program, p->opt, NULL, &p->report.work, err);
    if (st == TIDE_OK && !p->opt->off[TIDE_PASS_ORDER]) st = run_order(p, lt, &bytes, err);
    const bool wants_recompute = p->opt->recompute_share > 0 && !p->opt->off[TIDE_PASS_RECOMPUTE];
    if (st == TIDE_OK && wants_recompute && !has_bodies) st = run_recompute(p, lt, &bytes, err);
    p->report.has_bodies = has_bodies;
    if (wants_recompute) p->report.allowed_share = p->opt->recompute_share;
    if (st != TIDE_OK) tide_lifetimes_deinit(lt);
    TIDE_ASSERT(st != TIDE_OK || bytes <= p->report.given_bytes);
    p->report.final_bytes = bytes;
    return st;
}

tide_status tide_passes_run(tide_program *program, const tide_pass_options *opt, tide_lifetimes *out,
                            tide_pass_report *report, tide_error *err) {
    pipeline p = {.program = program, .opt = opt};
    tide_lifetimes lt = {0};
    TIDE_TRY(run(&p, &lt, err));
    *out = lt;
    p.report.quantised = program->quantised;
    if (report != NULL) *report = p.report;
    return TIDE_OK;
}
