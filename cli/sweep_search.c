// SPDX-License-Identifier: MIT
//
// A task with budgets: one series, whose listed values are planned and whose largest values that fit are searched. See
// sweep.h.
#include <stdlib.h>
#include <string.h>

#include "cli/sweep.h"
#include "core/base/host_alloc.h"

/// Memory need not grow at each step: so many values above the answer are planned too.
enum { N_BEYOND = 4 };

typedef struct asker {
    const cli_sweep_job *job;
    cli_sweep_task *task;
    const char *strategy;
    bool failed; // a value could not be planned: there is no answer, and its point says why
} asker;

static const tide_sweep_point *planned_before(const cli_sweep_task *t, uint64_t value) {
    for (size_t i = 0; i < t->n_points; i++) {
        if (t->points[i].value == value) return &t->points[i];
    }
    return NULL;
}

static tide_status plan_value(asker *a, uint64_t value, tide_error *err) {
    TIDE_TRY(cli__sweep_plan_at(a->job, a->task, value, a->strategy, err));
    cli__sweep_tick(a->job);
    return TIDE_OK;
}

/// Sizes past 2^63 do not fit, and are no figures of a point.
static tide_status drop_last(cli_sweep_task *t, uint64_t *total_bytes) {
    cli__sweep_point_free(&t->points[--t->n_points]);
    *total_bytes = INT64_MAX;
    return TIDE_OK;
}

static tide_status ask(void *ctx, uint64_t value, uint64_t *total_bytes, tide_error *err) {
    asker *a = ctx;
    const tide_sweep_point *p = planned_before(a->task, value);
    if (p == NULL) {
        TIDE_TRY(plan_value(a, value, err));
        if (a->task->last == TIDE_ERR_OVERFLOW) return drop_last(a->task, total_bytes);
        p = &a->task->points[a->task->n_points - 1];
    }
    if (p->error != NULL) {
        a->failed = true;
        return TIDE_ERR_CANCELLED;
    }
    *total_bytes = p->total_bytes;
    return TIDE_OK;
}

static tide_status keep_answer(cli_sweep_task *t, const tide_sweep_answer *answer, const char *strategy,
                               tide_error *err) {
    if (tide_host_grow(&t->found, &t->cap_found, t->n_found + 1, sizeof *t->found) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for an answer");
    t->found[t->n_found++] = (cli_sweep_found){.answer = *answer, .strategy = strategy};
    return TIDE_OK;
}

tide_status cli__sweep_search_begin(const cli_sweep_job *job, cli_sweep_task *task, tide_error *err) {
    const cli_sweep_axis *swept = cli_sweep_swept(job->o);
    asker a = {.job = job, .task = task, .strategy = job->o->strategies[task->strategy]};
    return plan_value(&a, swept->n > 0 ? swept->values[0] : swept->lo, err);
}

tide_status cli__sweep_search(const cli_sweep_job *job, cli_sweep_task *task, tide_error *err) {
    const cli_sweep_axis *swept = cli_sweep_swept(job->o);
    asker a = {.job = job, .task = task, .strategy = job->o->strategies[task->strategy]};
    for (size_t i = 0; i < swept->n; i++) {
        if (planned_before(task, swept->values[i]) == NULL) TIDE_TRY(plan_value(&a, swept->values[i], err));
    }
    for (size_t b = 0; b < job->o->n_budgets && !a.failed; b++) {
        tide_sweep_answer answer = {0};
        const tide_status st =
            tide_sweep_largest(swept->lo, swept->hi, job->o->budgets[b], N_BEYOND, ask, &a, &answer, err);
        if (st == TIDE_ERR_CANCELLED && a.failed) break;
        TIDE_TRY(st);
        TIDE_TRY(keep_answer(task, &answer, a.strategy, err));
    }
    return TIDE_OK;
}
