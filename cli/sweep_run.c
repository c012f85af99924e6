// SPDX-License-Identifier: MIT
//
// Points that are run too, one at a time: a run counts all of the process' blocks. See sweep.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/session.h"
#include "cli/sweep.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"

/// The result of a run.
typedef struct outcome {
    bool ran, out_of_memory;
    uint64_t peak_bytes, time_ns;
    tide_error why; // unless it ran
} outcome;

static tide_status run_planned(const cli_sweep_job *job, const cli_sweep_task *task, cli_planning *planning,
                               cli_session *session, outcome *out, tide_error *err) {
    const cli_sweep_model *m = &job->models[task->model];
    cli_input in = m->in; // bytes are borrowed and kept
    cli_plans plans;
    planning->weights_registry = cli_session_registry(session);
    planning->mapped = cli_session_mapped(session);
    TIDE_TRY(cli_plans_make(&in, planning, &plans, err));
    const cli_session_spec spec = {.program = plans.program,
                                   .plan = plans.plans[0],
                                   .mode = TIDE_RUN_PLANNED,
                                   .device = TIDE_CPU,
                                   .runs = (size_t)job->o->runs,
                                   .contexts = 1,
                                   .seed = planning->seed,
                                   .source = m->path};
    cli_session_result result = {0};
    const tide_status st = cli_session_run(session, &spec, &result, err);
    if (st == TIDE_OK) {
        out->peak_bytes = result.total_peak_bytes;
        out->time_ns = result.time_median_ns;
    }
    cli_session_result_deinit(&result);
    cli_plans_deinit(&plans);
    return st;
}

static tide_status run_in_session(const cli_sweep_job *job, const cli_sweep_task *task, cli_planning *planning,
                                  uint64_t limit_bytes, outcome *out, tide_error *err) {
    const cli_session_options opt = {.allocator = "cpu", .limit_bytes = limit_bytes};
    cli_session *session = NULL;
    TIDE_TRY(cli_session_open(&opt, &session, err));
    const tide_status st = run_planned(job, task, planning, session, out, err);
    tide_oom_report report;
    cli_session_end(session);
    out->out_of_memory = st == TIDE_ERR_NOMEM && cli_session_oom(session, &report);
    cli_session_close(session);
    return st;
}

/// Fails only if this program itself has no memory.
static tide_status run_at(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, const char *strategy,
                          uint64_t limit_bytes, outcome *out, tide_error *err) {
    char **extents = NULL;
    size_t n = 0;
    *out = (outcome){0};
    TIDE_TRY(cli__sweep_extents(job, task, value, &extents, &n, err));
    cli_planning planning = cli__sweep_planning(job, task, extents, n, strategy);
    out->ran = run_in_session(job, task, &planning, limit_bytes, out, &out->why) == TIDE_OK;
    cli_extents_free(&extents, &n);
    return TIDE_OK;
}

static void print_progress(const cli_sweep_job *job, const char *what, uint64_t value) {
    if (job->o->shows_progress) fprintf(stderr, "\rrunning %s at %" PRIu64 "\x1b[K", what, value);
}

static void measure(tide_sweep_point *p, const outcome *of) {
    p->measured = true;
    p->measured_peak_bytes = of->peak_bytes;
    p->time_ns = of->time_ns;
}

static tide_sweep_point *point_at(cli_sweep_task *t, const char *strategy, uint64_t value) {
    for (size_t i = 0; i < t->n_points; i++) {
        if (t->points[i].value == value && strcmp(t->points[i].strategy, strategy) == 0) return &t->points[i];
    }
    return NULL;
}

static void print_failure(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, uint64_t budget,
                          const char *what, const tide_error *why) {
    char model[256], size[24];
    if (job->o->shows_progress) fputs("\r\x1b[K", stderr);
    fprintf(stderr, "error: %s at %s=%" PRIu64 " within %s: %s\n",
            cli_clean(job->models[task->model].path, model, sizeof model), cli_sweep_swept(job->o)->name, value,
            tide_format_bytes(budget, size, sizeof size), what);
    if (why != NULL) cli_print_error(why);
}

/// Of a budget for the process: what is left for what the run allocates. A run that allocates nothing needs nothing,
/// but a limit of 0 would be none.
static uint64_t left_for_blocks(const tide_sweep_point *p, uint64_t budget) {
    TIDE_ASSERT(p->base_bytes <= budget);
    return budget > p->base_bytes ? budget - p->base_bytes : 1;
}

static tide_status run_answer(const cli_sweep_job *job, cli_sweep_task *task, cli_sweep_found *found, tide_error *err) {
    tide_sweep_answer *a = &found->answer;
    outcome of;
    tide_sweep_point *p = point_at(task, found->strategy, a->value);
    print_progress(job, job->models[task->model].path, a->value);
    TIDE_TRY(run_at(job, task, a->value, found->strategy, left_for_blocks(p, a->budget_bytes), &of, err));
    a->ran = of.ran;
    if (!of.ran) print_failure(job, task, a->value, a->budget_bytes, "should fit, but the run failed", &of.why);
    if (of.ran) measure(p, &of);
    return TIDE_OK;
}

static tide_status run_next(const cli_sweep_job *job, cli_sweep_task *task, cli_sweep_found *found, tide_error *err) {
    tide_sweep_answer *a = &found->answer;
    outcome of;
    const tide_sweep_point *p = point_at(task, found->strategy, a->next_value);
    // A limit on what is allocated says nothing about loading, and nothing where the program alone is too much.
    a->next_is_untried =
        p == NULL || p->base_bytes >= a->budget_bytes || p->total_bytes <= left_for_blocks(p, a->budget_bytes);
    if (a->next_is_untried) return TIDE_OK;
    print_progress(job, job->models[task->model].path, a->next_value);
    TIDE_TRY(run_at(job, task, a->next_value, found->strategy, left_for_blocks(p, a->budget_bytes), &of, err));
    a->next_ran = of.out_of_memory;
    if (!of.out_of_memory)
        print_failure(job, task, a->next_value, a->budget_bytes,
                      of.ran ? "should not fit, but it ran" : "the run failed, but not for want of memory",
                      of.ran ? NULL : &of.why);
    return TIDE_OK;
}

/// Runs the answer within its budget, which must succeed, and the next value, which must run out of memory.
static tide_status run_neighbours(const cli_sweep_job *job, cli_sweep_task *task, cli_sweep_found *found,
                                  tide_error *err) {
    found->answer.tried = true;
    if (!found->answer.none_fits) TIDE_TRY(run_answer(job, task, found, err));
    if (!found->answer.is_open) TIDE_TRY(run_next(job, task, found, err));
    if (found->answer.none_fits && found->answer.next_is_untried) found->answer.tried = false;
    return TIDE_OK;
}

/// Whether the point is run: with budgets only if it fits one of them.
static bool is_wanted(const cli_sweep_options *o, const tide_sweep_point *p) {
    if (p->error != NULL || p->measured) return false;
    for (size_t b = 0; b < o->n_budgets; b++) {
        if (tide_sweep_needs(p) <= o->budgets[b]) return true;
    }
    return o->n_budgets == 0;
}

static tide_status run_points(const cli_sweep_job *job, cli_sweep_task *task, tide_error *err) {
    for (size_t i = 0; i < task->n_points; i++) {
        tide_sweep_point *p = &task->points[i];
        outcome of;
        if (!is_wanted(job->o, p)) continue;
        print_progress(job, p->model, p->value);
        TIDE_TRY(run_at(job, task, p->value, p->strategy, 0, &of, err));
        if (of.ran)
            measure(p, &of);
        else
            TIDE_TRY(cli__sweep_set_error(p, &of.why, err));
    }
    return TIDE_OK;
}

tide_status cli_sweep_run(cli_sweep_job *job, tide_error *err) {
    for (size_t i = 0; job->o->run != CLI_SWEEP_RUN_NONE && i < job->n_tasks; i++) {
        cli_sweep_task *t = &job->tasks[i];
        if (t->rank != job->rank) continue;
        for (size_t k = 0; k < t->n_found; k++) TIDE_TRY(run_neighbours(job, t, &t->found[k], err));
        if (job->o->run == CLI_SWEEP_RUN_ALL) TIDE_TRY(run_points(job, t, err));
    }
    if (job->o->run != CLI_SWEEP_RUN_NONE && job->o->shows_progress) fputs("\r\x1b[K", stderr);
    return TIDE_OK;
}
