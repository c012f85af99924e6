// SPDX-License-Identifier: MIT
//
// Who plans: threads that take the tasks of this rank one after another. See sweep.h.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/sweep.h"
#include "core/base/host_alloc.h"

static atomic_size_t n_planned;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

void cli__sweep_tick(const cli_sweep_job *job) {
    const size_t n = atomic_fetch_add(&n_planned, 1) + 1;
    if (!job->o->shows_progress) return;
    pthread_mutex_lock(&print_lock);
    fprintf(stderr, "\r%zu points planned\x1b[K", n);
    fflush(stderr);
    pthread_mutex_unlock(&print_lock);
}

typedef struct crew {
    cli_sweep_job *job;
    atomic_size_t next; // task
    atomic_bool stop;   // somebody failed
} crew;

typedef struct worker {
    crew *crew;
    tide_status st;
    tide_error err;
} worker;

static tide_status do_task(cli_sweep_job *job, cli_sweep_task *task, tide_error *err) {
    if (job->o->n_budgets > 0) return cli__sweep_search(job, task, err);
    if (task->n_points > 0) return TIDE_OK; // it was the first one
    const tide_status st = cli__sweep_plan_at(job, task, task->value, NULL, err);
    for (size_t i = 0; i < task->n_points; i++) cli__sweep_tick(job);
    return st;
}

static void *work(void *arg) {
    worker *w = arg;
    crew *c = w->crew;
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

/// One point before there are threads: oneDNN makes what its kernels share when it makes the first one.
static tide_status plan_first(cli_sweep_job *job, tide_error *err) {
    for (size_t i = 0; i < job->n_tasks; i++) {
        cli_sweep_task *t = &job->tasks[i];
        if (t->rank != job->rank) continue;
        return job->o->n_budgets > 0 ? cli__sweep_search_begin(job, t, err) : do_task(job, t, err);
    }
    return TIDE_OK;
}

tide_status cli_sweep_plan(cli_sweep_job *job, tide_error *err) {
    TIDE_TRY(plan_first(job, err));
    size_t n = job->o->jobs < job->n_tasks ? (size_t)job->o->jobs : job->n_tasks;
    if (n == 0) n = 1;
    crew c = {.job = job};
    worker *workers = tide_host_calloc(n, sizeof *workers);
    pthread_t *threads = tide_host_calloc(n, sizeof *threads);
    tide_status st = TIDE_OK;
    if (workers == NULL || threads == NULL) st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu threads", n);
    size_t started = 0; // beside this one; what the system does not give is done by those that are there
    if (st == TIDE_OK) {
        for (size_t i = 0; i < n; i++) workers[i].crew = &c;
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
