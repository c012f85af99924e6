// SPDX-License-Identifier: MIT
//
// Planning the tasks of a sweep: a point (the model at one size), the search for the largest size that fits a budget,
// and the threads that take this rank's tasks one after another. See sweep.h.
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/sweep.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

void cli__sweep_point_free(tide_sweep_point *p) {
    tide_host_free(p->model);
    tide_host_free(p->sizes);
    tide_host_free(p->strategy);
    tide_host_free(p->error);
    *p = (tide_sweep_point){0};
}

// ---- names and sizes of a point ----

static uint64_t value_of(const cli_sweep_job *job, const cli_sweep_task *task, size_t axis, uint64_t swept) {
    return axis == 0 ? swept : job->places[task->place].others[axis];
}

/// All that was given about sizes: extents, the swept one first, then shapes.
static char *sizes_of(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value) {
    const cli_sweep_options *o = job->o;
    tide_text text = {0};
    for (size_t k = 0; k < o->n_axes; k++)
        tide_text_addf(&text, "%s%s=%" PRIu64, k > 0 ? " " : "", o->axes[k].name, value_of(job, task, k, value));
    for (size_t i = 0; i < o->planning.shapes.n; i++) {
        const tide_shape_binding *b = &o->planning.shapes.items[i];
        char shape[256];
        tide_text_addf(&text, "%s%s=%s", text.len > 0 ? " " : "", b->name,
                       cli_shape_text(&b->shape, shape, sizeof shape));
    }
    if (text.data == NULL && !text.failed) return tide_host_strdup("");
    if (!text.failed) return text.data; // moved out
    tide_text_deinit(&text);
    return NULL;
}

tide_status cli__sweep_point(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, const char *strategy,
                             tide_sweep_point *out, tide_error *err) {
    const uint64_t align = job->o->aligns[task->align];
    *out = (tide_sweep_point){.model = tide_host_strdup(job->models[task->model].path),
                              .sizes = sizes_of(job, task, value),
                              .strategy = tide_host_strdup(strategy),
                              .align_bytes = align != 0 ? align : TIDE_DEFAULT_ALIGN,
                              .value = value,
                              .rank = job->rank};
    if (out->model != NULL && out->sizes != NULL && out->strategy != NULL) return TIDE_OK;
    cli__sweep_point_free(out);
    return TIDE_NO_MEMORY(err, "for a point");
}

static tide_status keep_point(cli_sweep_task *task, tide_sweep_point *p, tide_error *err) {
    if (tide_host_grow(&task->points, &task->cap_points, task->n_points + 1, sizeof *task->points) != TIDE_OK) {
        cli__sweep_point_free(p);
        return TIDE_NO_MEMORY(err, "for a point");
    }
    task->points[task->n_points++] = *p;
    *p = (tide_sweep_point){0};
    return TIDE_OK;
}

// ---- options of a point ----

static tide_status add_extent(char **list, size_t *n, const char *name, uint64_t value, tide_error *err) {
    tide_text text = {0};
    tide_text_addf(&text, "%s=%" PRIu64, name, value);
    if (text.failed) {
        tide_text_deinit(&text);
        return TIDE_NO_MEMORY(err, "for a point");
    }
    list[(*n)++] = text.data;
    return TIDE_OK;
}

tide_status cli__sweep_extents(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, char ***list,
                               size_t *n, tide_error *err) {
    const cli_sweep_model *m = &job->models[task->model];
    const cli_sweep_options *o = job->o;
    *n = 0;
    TIDE_TRY(TIDE_NEW(list, o->n_axes * (m->n_batch + 1) + 1, err, "for a point"));
    tide_status st = TIDE_OK;
    for (size_t k = 0; st == TIDE_OK && k < o->n_axes; k++) {
        const uint64_t at = value_of(job, task, k, value);
        if (!o->axes[k].is_batch) st = add_extent(*list, n, o->axes[k].name, at, err);
        for (size_t i = 0; st == TIDE_OK && o->axes[k].is_batch && i < m->n_batch; i++)
            st = add_extent(*list, n, m->batch[i], at, err);
    }
    if (st != TIDE_OK) cli_extents_free(list, n);
    return st;
}

cli_planning cli__sweep_planning(const cli_sweep_job *job, const cli_sweep_task *task, char **extents, size_t n,
                                 const char *strategy) {
    cli_planning p = job->o->planning; // shapes are borrowed
    p.strategy = strategy;
    p.align_bytes = job->o->aligns[task->align];
    p.extents = (const char *const *)extents;
    p.n_extents = n;
    return p;
}

// ---- figures of a point ----

/// Bytes of `kind` outside of the plan's buffers.
static uint64_t beside_buffers(const tide_memory_plan *plan, tide_memory_kind kind) {
    uint64_t bytes = tide_memory_plan_predicted(plan, kind);
    for (size_t b = 0; b < plan->n_buffers; b++) bytes -= plan->buffers[b].kind == kind ? plan->buffers[b].bytes : 0;
    return bytes;
}

static tide_status fill(const tide_memory_plan *plan, tide_sweep_point *p, tide_error *err) {
    uint64_t total = plan->bytes, other = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const uint64_t bytes = beside_buffers(plan, (tide_memory_kind)k);
        if (!tide_add_u64(total, bytes, &total) || total > INT64_MAX)
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "everything together is more than 2^63 bytes");
        if (k != TIDE_KIND_PERSISTENT && k != TIDE_KIND_DEFAULT) other += bytes;
    }
    p->planned_bytes = plan->bytes;
    p->weights_bytes = beside_buffers(plan, TIDE_KIND_PERSISTENT);
    p->io_bytes = beside_buffers(plan, TIDE_KIND_DEFAULT);
    p->other_bytes = other;
    p->total_bytes = total;
    if (tide_process_is_known(&plan->lifetimes)) {
        const tide_process_need need = tide_process_need_of(plan, 1);
        p->process_bytes = need.peak_bytes;
        p->base_bytes = need.program_bytes + need.own_bytes;
        if (p->process_bytes > INT64_MAX)
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the process takes more than 2^63 bytes");
    }
    p->naive_bytes = tide_memory_plan_original_bytes(plan);
    p->lower_bound_bytes = plan->lower_bound_bytes;
    p->proved_bytes = plan->proved_bytes;
    p->proven = plan->proven;
    p->plan_time_ns = plan->time_ns;
    return TIDE_OK;
}

/// The message of a failure in one line.
static char *one_line(const tide_error *why) {
    tide_text text = {0};
    tide_text_add(&text, why->msg[0] != '\0' ? why->msg : tide_status_text(why->status));
    if (why->note[0] != '\0') tide_text_addf(&text, "; %s", why->note);
    if (!text.failed) return text.data; // moved out
    tide_text_deinit(&text);
    return NULL;
}

tide_status cli__sweep_set_error(tide_sweep_point *p, const tide_error *why, tide_error *err) {
    p->measured = false;
    if (why->status == TIDE_ERR_NOMEM) cli_ran_out(why->msg);
    p->error = one_line(why);
    return p->error != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for a point");
}

static tide_status plan_one(const cli_planning *p, const cli_sweep_model *m, const tide_lifetimes *lt, const char *name,
                            tide_sweep_point *point, tide_error *err) {
    const tide_strategy_options opt = cli_strategy_options(p);
    const tide_strategy *strategy;
    tide_memory_plan *plan = NULL;
    TIDE_TRY(tide_strategy_find(name, &strategy, err));
    TIDE_TRY(tide_plan_make(lt, strategy, &opt, &plan, err));
    const tide_status st = fill(plan, point, err);
    // A lifetimes file says itself how things are aligned, unless --align asks for more.
    const bool is_graph = m->in.kind == CLI_INPUT_ONNX || m->in.kind == CLI_INPUT_GRAPH;
    if (st == TIDE_OK && p->align_bytes == 0 && !is_graph && plan->n_buffers > 0)
        point->align_bytes = plan->align_bytes;
    tide_memory_plan_destroy(plan);
    return st;
}

/// A point of each strategy, with figures or, when `made` says that there are no lifetimes, with `why`.
static tide_status points_of(const cli_sweep_job *job, cli_sweep_task *task, uint64_t value, const char *strategy,
                             const cli_planning *planning, const tide_lifetimes *lt, tide_status made, tide_error *why,
                             tide_error *err) {
    for (size_t s = 0; s < job->o->n_strategies; s++) {
        const char *name = job->o->strategies[s];
        if (strategy != NULL && strcmp(strategy, name) != 0) continue;
        tide_sweep_point p;
        TIDE_TRY(cli__sweep_point(job, task, value, name, &p, err));
        const tide_status st =
            made == TIDE_OK ? plan_one(planning, &job->models[task->model], lt, name, &p, why) : made;
        const tide_status noted = st == TIDE_OK ? TIDE_OK : cli__sweep_set_error(&p, why, err);
        if (noted != TIDE_OK) {
            cli__sweep_point_free(&p);
            return noted;
        }
        task->last = st;
        TIDE_TRY(keep_point(task, &p, err));
    }
    return TIDE_OK;
}

/// Plans one value of a task with one strategy or all of them (NULL). Errors are points too.
static tide_status plan_at(const cli_sweep_job *job, cli_sweep_task *task, uint64_t value, const char *strategy,
                           tide_error *err) {
    const cli_sweep_model *m = &job->models[task->model];
    char **extents = NULL;
    size_t n = 0;
    TIDE_TRY(cli__sweep_extents(job, task, value, &extents, &n, err));
    const cli_planning planning = cli__sweep_planning(job, task, extents, n, NULL);
    tide_lifetimes lt = {0};
    tide_error why = m->err;
    cli_input in = m->in; // bytes are borrowed and kept
    tide_status made = why.status != TIDE_OK ? why.status : cli_lifetimes_of_input(&in, &planning, &lt, &why);
    const bool is_model = m->in.kind == CLI_INPUT_ONNX || m->in.kind == CLI_INPUT_GRAPH; // a list is as it is
    if (made == TIDE_OK && is_model) made = cli_must_be_bounded(&lt, &why);
    const tide_status st = points_of(job, task, value, strategy, &planning, &lt, made, &why, err);
    tide_lifetimes_deinit(&lt);
    cli_extents_free(&extents, &n);
    return st;
}

// ---- progress ----

static atomic_size_t n_planned;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

/// Counts a planned point, with a line on stderr if the user looks. From any thread.
static void tick(const cli_sweep_job *job) {
    const size_t n = atomic_fetch_add(&n_planned, 1) + 1;
    if (!job->o->shows_progress) return;
    pthread_mutex_lock(&print_lock);
    fprintf(stderr, "\r%zu points planned\x1b[K", n);
    fflush(stderr);
    pthread_mutex_unlock(&print_lock);
}

// ---- searching the largest value that fits ----

/// So many values above the answer are planned too, because memory need not grow at each step.
enum { N_BEYOND = 4 };

typedef struct search_state {
    const cli_sweep_job *job;
    cli_sweep_task *task;
    const char *strategy;
    bool failed; // a value could not be planned: there is no answer, and its point has the error
} search_state;

static const tide_sweep_point *planned_before(const cli_sweep_task *t, uint64_t value) {
    for (size_t i = 0; i < t->n_points; i++) {
        if (t->points[i].value == value) return &t->points[i];
    }
    return NULL;
}

static tide_status plan_value(search_state *a, uint64_t value, tide_error *err) {
    TIDE_TRY(plan_at(a->job, a->task, value, a->strategy, err));
    tick(a->job);
    return TIDE_OK;
}

/// Removes a point whose size is above 2^63: it does not fit, and a point cannot hold it.
static tide_status drop_last(cli_sweep_task *t, uint64_t *needs_bytes) {
    cli__sweep_point_free(&t->points[--t->n_points]);
    *needs_bytes = INT64_MAX;
    return TIDE_OK;
}

static tide_status plan_for_search(void *ctx, uint64_t value, uint64_t *needs_bytes, tide_error *err) {
    search_state *a = ctx;
    const tide_sweep_point *p = planned_before(a->task, value);
    if (p == NULL) {
        TIDE_TRY(plan_value(a, value, err));
        if (a->task->last == TIDE_ERR_OVERFLOW) return drop_last(a->task, needs_bytes);
        p = &a->task->points[a->task->n_points - 1];
    }
    if (p->error != NULL) {
        a->failed = true;
        return TIDE_ERR_CANCELLED;
    }
    *needs_bytes = tide_sweep_needs(p);
    return TIDE_OK;
}

static tide_status keep_answer(cli_sweep_task *t, const tide_sweep_answer *answer, const char *strategy,
                               tide_error *err) {
    TIDE_TRY(TIDE_GROW(&t->found, &t->cap_found, t->n_found + 1, err, "for an answer"));
    t->found[t->n_found++] = (cli_sweep_found){.answer = *answer, .strategy = strategy};
    return TIDE_OK;
}

/// Plans only the value that a search begins with.
static tide_status search_begin(const cli_sweep_job *job, cli_sweep_task *task, tide_error *err) {
    const cli_sweep_axis *swept = cli_sweep_swept(job->o);
    search_state a = {.job = job, .task = task, .strategy = job->o->strategies[task->strategy]};
    return plan_value(&a, swept->n > 0 ? swept->values[0] : swept->lo, err);
}

/// Plans the listed values of a task and finds the largest values that fit the budgets, into task->found.
static tide_status search(const cli_sweep_job *job, cli_sweep_task *task, tide_error *err) {
    const cli_sweep_axis *swept = cli_sweep_swept(job->o);
    search_state a = {.job = job, .task = task, .strategy = job->o->strategies[task->strategy]};
    for (size_t i = 0; i < swept->n; i++) {
        if (planned_before(task, swept->values[i]) == NULL) TIDE_TRY(plan_value(&a, swept->values[i], err));
    }
    for (size_t b = 0; b < job->o->n_budgets && !a.failed; b++) {
        tide_sweep_answer answer = {0};
        const tide_status st =
            tide_sweep_largest(swept->lo, swept->hi, job->o->budgets[b], N_BEYOND, plan_for_search, &a, &answer, err);
        if (st == TIDE_ERR_CANCELLED && a.failed) break;
        TIDE_TRY(st);
        TIDE_TRY(keep_answer(task, &answer, a.strategy, err));
    }
    return TIDE_OK;
}

// ---- threads ----

typedef struct task_queue {
    cli_sweep_job *job;
    atomic_size_t next; // task
    atomic_bool stop;   // a worker has failed
} task_queue;

typedef struct worker {
    task_queue *task_queue;
    tide_status st;
    tide_error err;
} worker;

static tide_status do_task(cli_sweep_job *job, cli_sweep_task *task, tide_error *err) {
    if (job->o->n_budgets > 0) return search(job, task, err);
    if (task->n_points > 0) return TIDE_OK; // it was the first one
    const tide_status st = plan_at(job, task, task->value, NULL, err);
    for (size_t i = 0; i < task->n_points; i++) tick(job);
    return st;
}

static void *work(void *arg) {
    worker *w = arg;
    task_queue *c = w->task_queue;
    while (!atomic_load(&c->stop)) {
        const size_t i = atomic_fetch_add(&c->next, 1);
        if (i >= c->job->n_tasks) break;
        if (c->job->tasks[i].rank != c->job->rank) continue;
        w->st = do_task(c->job, &c->job->tasks[i], &w->err);
        if (w->st == TIDE_OK) continue;
        atomic_store(&c->stop, true);
        break;
    }
    return NULL;
}

/// Plans one point before threads start, because oneDNN creates shared state with its first kernel.
static tide_status plan_first(cli_sweep_job *job, tide_error *err) {
    for (size_t i = 0; i < job->n_tasks; i++) {
        cli_sweep_task *t = &job->tasks[i];
        if (t->rank != job->rank) continue;
        return job->o->n_budgets > 0 ? search_begin(job, t, err) : do_task(job, t, err);
    }
    return TIDE_OK;
}

tide_status cli_sweep_plan(cli_sweep_job *job, tide_error *err) {
    TIDE_TRY(plan_first(job, err));
    size_t n = job->o->jobs < job->n_tasks ? (size_t)job->o->jobs : job->n_tasks;
    if (n == 0) n = 1;
    task_queue c = {.job = job};
    worker *workers = tide_host_calloc(n, sizeof *workers);
    pthread_t *threads = tide_host_calloc(n, sizeof *threads);
    tide_status st = TIDE_OK;
    if (workers == NULL || threads == NULL) st = TIDE_NO_MEMORY(err, "for %zu threads", n);
    size_t started = 0; // beside this thread; if the system gives fewer threads, these do all the work
    if (st == TIDE_OK) {
        for (size_t i = 0; i < n; i++) workers[i].task_queue = &c;
        while (started + 1 < n && pthread_create(&threads[started], NULL, work, &workers[started + 1]) == 0) started++;
        work(&workers[0]);
    }
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; st == TIDE_OK && i <= started; i++) {
        st = workers[i].st;
        if (st != TIDE_OK && err != NULL) *err = workers[i].err;
    }
    if (job->o->shows_progress) fputs("\r\x1b[K", stderr);
    tide_host_free(workers);
    tide_host_free(threads);
    return st;
}
