// SPDX-License-Identifier: MIT
//
// From targets to cases. Targets that are run are measured one after the other, those that are only planned by
// several threads.
#include <pthread.h>
#include <stdatomic.h>

#include "cli/check.h"
#include "cli/measure.h"
#include "cli/sweep_cases.h"
#include "core/base/host_alloc.h"

/// A target and its result.
typedef struct slot {
    const tide_gate_target *target;
    bool scratch_apart;
    tide_gate_case c;
    bool is_sweep;
    tide_gate_cases several; // with is_sweep, in place of `c`
    tide_status st;
    tide_error err;
} slot;

typedef struct work_queue {
    slot **slots; // [n]
    size_t n;
    atomic_size_t next;
} work_queue;

static tide_status note_empty(tide_gate_case *c, const tide_gate_target *t, tide_error *err) {
    tide_text text = {0};
    tide_text_addf(&text, "%s of %s; take it out, or bring the files back", t->why_empty, t->origin);
    tide_host_free(c->error);
    c->error = text.data; // moved
    return text.failed ? TIDE_NO_MEMORY(err, "for case '%s'", c->key) : TIDE_OK;
}

static void measure(slot *s) {
    s->is_sweep = cli_sweep_cases_is(s->target->path);
    if (s->is_sweep) {
        s->st = cli_sweep_cases_read(s->target->path, &s->several, &s->err);
        return;
    }
    tide_gate_plan_settings settings = s->target->settings;
    settings.scratch_apart = s->scratch_apart;
    s->st = cli_measure(s->target->path, s->target->key, &settings, &s->c, &s->err);
    if (s->st == TIDE_OK && s->target->why_empty != NULL) s->st = note_empty(&s->c, s->target, &s->err);
}

static void *work(void *arg) {
    work_queue *c = arg;
    for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;) measure(c->slots[i]);
    return NULL;
}

/// The calling thread works too, so the work is done even if the system gives no thread.
static void run_threads(work_queue *c, uint64_t jobs) {
    enum { MOST = 256 };
    pthread_t threads[MOST];
    size_t started = 0;
    while (started + 1 < jobs && started + 1 < c->n && started < MOST &&
           pthread_create(&threads[started], NULL, work, c) == 0)
        started++;
    work(c);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

static tide_status take_several(tide_gate_cases *from, tide_gate_cases *out, tide_error *err) {
    for (size_t i = 0; i < from->n; i++) TIDE_TRY(tide_gate_cases_add(out, &from->items[i], err));
    return TIDE_OK;
}

static tide_status collect(slot *slots, size_t n, tide_gate_cases *out, tide_error *err) {
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n; i++) {
        if (st == TIDE_OK && slots[i].st != TIDE_OK) {
            st = slots[i].st;
            if (err != NULL) *err = slots[i].err;
        }
        if (st == TIDE_OK && slots[i].is_sweep)
            st = take_several(&slots[i].several, out, err);
        else if (st == TIDE_OK)
            st = tide_gate_cases_add(out, &slots[i].c, err);
        else
            tide_gate_case_deinit(&slots[i].c);
        tide_gate_cases_deinit(&slots[i].several);
    }
    return st;
}

/// Finishes the trace of a killed program while no other thread runs, with a note on stderr. A trace that cannot be
/// opened is reported when it is measured.
static void finish_killed(const char *path) {
    tide_trace *t;
    if (cli_input_is_trace(path) && cli_trace_open(path, &t, NULL) == TIDE_OK) tide_trace_close(t);
}

tide_status cli_check_measure(const tide_gate_target *targets, size_t n, bool scratch_apart, uint64_t jobs,
                              tide_gate_cases *out, tide_error *err) {
    slot *slots = tide_host_calloc(n + 1, sizeof *slots);
    work_queue c = {.slots = tide_host_calloc(n + 1, sizeof(slot *))};
    tide_status st = TIDE_OK;
    if (slots == NULL || c.slots == NULL) {
        st = TIDE_NO_MEMORY(err, "for %zu cases", n);
    } else {
        for (size_t i = 0; i < n; i++) {
            slots[i].target = &targets[i];
            slots[i].scratch_apart = scratch_apart;
            finish_killed(targets[i].path);
            if (!targets[i].settings.run) c.slots[c.n++] = &slots[i];
        }
        run_threads(&c, jobs);
        for (size_t i = 0; i < n; i++) {
            if (targets[i].settings.run) measure(&slots[i]);
        }
        st = collect(slots, n, out, err);
    }
    tide_host_free(slots);
    tide_host_free(c.slots);
    return st;
}

// ---- a plan, a model or a trace as baseline ----

/// The plan of a trace's last run, for comparing with a plan or a model.
static tide_status plan_of_trace(const char *path, const char *key, tide_gate_case *out, tide_error *err) {
    const cli_planning planning = {0};
    tide_memory_plan *plan = NULL;
    TIDE_TRY(cli_plan_of_file(path, &planning, &plan, err));
    *out = (tide_gate_case){.key = tide_host_strdup(key)};
    const tide_status st =
        out->key != NULL ? tide_gate_case_of_plan(plan, NULL, out, err) : TIDE_NO_MEMORY(err, "for case '%s'", key);
    tide_memory_plan_destroy(plan);
    return st;
}

tide_status cli_check_measure_other(const tide_gate_target *target, const char *path, bool *scratch_apart,
                                    tide_gate_cases *out, tide_error *err) {
    tide_gate_case c = {0};
    tide_gate_plan_settings settings = target->settings;
    *scratch_apart = false;
    if (cli_sweep_cases_is(path)) return cli_sweep_cases_read(path, out, err);
    settings.scratch_apart = true;
    tide_status st = cli_input_is_trace(path) && !cli_input_is_trace(target->path)
                         ? plan_of_trace(path, target->key, &c, err)
                         : cli_measure(path, target->key, &settings, &c, err);
    *scratch_apart = tide_gate_case_has_machine(&c); // a model with kernels: the only one whose plan is made here
    if (st == TIDE_OK && c.error != NULL)
        st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "cannot measure the baseline '%s': %s", path, c.error);
    if (st == TIDE_OK) return tide_gate_cases_add(out, &c, err);
    tide_gate_case_deinit(&c);
    return st;
}

/// Only those settings that `base` has too.
static void keep_settings(tide_gate_case *c, const tide_gate_case *base) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n_settings; i++) {
        if (tide_gate_case_setting(base, c->settings[i].key) != NULL) {
            c->settings[kept++] = c->settings[i];
        } else {
            tide_host_free(c->settings[i].key);
            tide_host_free(c->settings[i].value);
        }
    }
    c->n_settings = kept;
}

void cli_check_match_words(const tide_gate_cases *baseline, tide_gate_cases *cases) {
    for (size_t i = 0; i < cases->n; i++) {
        tide_gate_case *c = &cases->items[i];
        const tide_gate_case *base = tide_gate_cases_find(baseline, c->key);
        if (base == NULL || c->error != NULL) continue;
        if (base->signature[0] == '\0') c->signature[0] = '\0';
        if (base->inputs[0] == '\0') c->inputs[0] = '\0';
        keep_settings(c, base);
    }
}
