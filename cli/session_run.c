// SPDX-License-Identifier: MIT
//
// Measured runs of a program in a session: inputs, contexts, threads, times. See session.h.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/session_internal.h"
#include "core/base/host_alloc.h"
#include "core/graph/import.h"

/// What one run makes; given back in reverse.
typedef struct job {
    cli_session *s;
    const cli_session_spec *spec;
    tide_inference_plan *plan;
    cli_session_mark mark;
    tide_tensor **inputs; // [n_inputs]
    size_t n_inputs;
    uint64_t *times;      // [contexts * runs]
    atomic_size_t n_warm; // contexts whose first turn is over
} job;

/// One thread of a run: a context of its own, all its turns after each other.
typedef struct worker {
    job *j;
    size_t index;
    tide_context *context;
    uint64_t allocs_after_first; // meter's count once the first turn is over
    tide_status st;
    tide_error err;
} worker;

// ---- inputs ----

/// Floats uniform in [0, 1), everything else 0: indices stay in range whatever the model does with them.
static void draw_input(tide_tensor *t, tide_rng *rng) {
    void *data = tide_tensor_data(t);
    const size_t bytes = tide_tensor_size_bytes(t);
    if (bytes == 0) return;
    if (tide_tensor_dtype(t) == TIDE_F32) {
        float *values = data;
        for (size_t i = 0; i < bytes / sizeof *values; i++) values[i] = (float)tide_rng_f64(rng);
    } else if (tide_tensor_dtype(t) == TIDE_F64) {
        double *values = data;
        for (size_t i = 0; i < bytes / sizeof *values; i++) values[i] = tide_rng_f64(rng);
    } else {
        memset(data, 0, bytes);
    }
}

/// As the plan has it, so that what a block takes is what was planned; 0, the rule of its kind, where no plan tells.
static size_t input_align(const cli_session_spec *spec, const char *name) {
    const tide_lifetimes *lt = spec->plan != NULL ? &spec->plan->lifetimes : NULL;
    for (size_t i = 0; lt != NULL && i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        if (l->role == TIDE_ROLE_INPUT && strcmp(l->name, name) == 0) return (size_t)l->align_bytes;
    }
    return 0;
}

/// The tensor of input file `i` in the place that `spec` describes. The file's own copy is no part of what is measured.
static tide_status read_input(const char *input_dir, size_t i, const tide_tensor_spec *spec, tide_tensor **out,
                              tide_error *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s/input_%zu.pb", input_dir, i);
    tide_tensor *of_file = NULL;
    TIDE_TRY(tide_tensor_from_pb_file(path, NULL, TIDE_KIND_HOST_PAGEABLE, &of_file, NULL, err));
    const tide_status st = tide_tensor_clone(of_file, spec, out, err);
    tide_tensor_unref(of_file);
    return st;
}

static tide_status make_input(job *j, size_t i, tide_rng *rng, tide_error *err) {
    const tide_graph *g = j->spec->program->graph;
    const tide_value *value = &g->values[g->inputs[i]];
    const tide_tensor_spec spec = {.dtype = value->dtype,
                                   .shape = value->shape,
                                   .device = j->spec->device,
                                   .kind = TIDE_KIND_DEFAULT,
                                   .align_bytes = input_align(j->spec, value->name),
                                   .registry = j->s->registry,
                                   .tag = value->name};
    if (j->spec->input_dir != NULL) return read_input(j->spec->input_dir, i, &spec, &j->inputs[i], err);
    TIDE_TRY(tide_tensor_create(&spec, &j->inputs[i], err));
    draw_input(j->inputs[i], rng);
    return TIDE_OK;
}

static tide_status make_inputs(job *j, tide_error *err) {
    j->n_inputs = j->spec->program->graph->n_inputs;
    j->inputs = tide_host_calloc(j->n_inputs + 1, sizeof(tide_tensor *));
    if (j->inputs == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu inputs", j->n_inputs);
    tide_rng rng = {j->spec->seed};
    for (size_t i = 0; i < j->n_inputs; i++) TIDE_TRY(make_input(j, i, &rng, err));
    return TIDE_OK;
}

// ---- running ----

static uint64_t blocks_allocated(const cli_session *s) {
    tide_meter_kind total;
    tide_meter_total(s->meter, &total);
    return total.n_allocs;
}

static tide_status make_context(worker *w, tide_error *err) {
    const job *j = w->j;
    const tide_context_options opt = {.mode = j->spec->mode, .fill = j->spec->fill, .observer = &j->s->all};
    TIDE_TRY(tide_context_create(j->plan, &opt, &w->context, err));
    return tide_context_set_inputs(w->context, j->inputs, j->n_inputs, err);
}

/// The mark stands behind the first turns of all contexts; with several of them warm turns may come before it.
static void first_turn_is_over(worker *w) {
    const cli_session_spec *spec = w->j->spec;
    w->allocs_after_first = blocks_allocated(w->j->s);
    if (atomic_fetch_add(&w->j->n_warm, 1) + 1 == spec->contexts && spec->runs > 1) cli_session_mark_warm(w->j->s);
}

static void *work(void *arg) {
    worker *w = arg;
    const size_t runs = w->j->spec->runs;
    for (size_t r = 0; r < runs && w->st == TIDE_OK; r++) {
        const uint64_t begin = tide_now_ns();
        w->st = tide_context_run(w->context, &w->err);
        w->j->times[w->index * runs + r] = tide_now_ns() - begin;
        if (r == 0) first_turn_is_over(w);
    }
    return NULL;
}

/// Run all workers; with one context on the calling thread, so that a trace has one thread.
static tide_status run_workers(worker *workers, size_t n, tide_error *err) {
    if (n == 1) {
        work(&workers[0]);
    } else {
        pthread_t *threads = tide_host_calloc(n, sizeof *threads);
        if (threads == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu threads", n);
        size_t started = 0;
        while (started < n && pthread_create(&threads[started], NULL, work, &workers[started]) == 0) started++;
        for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
        tide_host_free(threads);
        if (started < n) return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "the system gave %zu of %zu threads", started, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (workers[i].st == TIDE_OK) continue;
        if (err != NULL) *err = workers[i].err;
        return workers[i].st;
    }
    return TIDE_OK;
}

static int by_time(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void read_times(job *j, cli_session_result *out) {
    const size_t n = j->spec->runs * j->spec->contexts;
    qsort(j->times, n, sizeof *j->times, by_time);
    out->time_min_ns = j->times[0];
    out->time_median_ns = j->times[n / 2];
    out->time_max_ns = j->times[n - 1];
}

static tide_status copy_outputs(const tide_context *c, cli_session_result *out, tide_error *err) {
    const size_t n = tide_context_n_outputs(c);
    out->outputs = tide_host_calloc(n + 1, sizeof(tide_tensor *));
    if (out->outputs == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu outputs", n);
    out->n_outputs = n;
    for (size_t i = 0; i < n; i++) {
        const tide_tensor_spec where = {.device = TIDE_CPU, .kind = TIDE_KIND_HOST_PAGEABLE};
        TIDE_TRY(tide_tensor_clone(tide_context_output(c, i), &where, &out->outputs[i], err));
    }
    return TIDE_OK;
}

static tide_status run_contexts(job *j, cli_session_result *out, tide_error *err) {
    const size_t n = j->spec->contexts;
    worker *workers = tide_host_calloc(n, sizeof *workers);
    j->times = tide_host_calloc(n * j->spec->runs, sizeof *j->times);
    tide_status st = TIDE_OK;
    if (workers == NULL || j->times == NULL) st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu contexts", n);
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        workers[i].j = j;
        workers[i].index = i;
        st = make_context(&workers[i], err);
    }
    if (st == TIDE_OK) st = run_workers(workers, n, err);
    if (st == TIDE_OK) {
        read_times(j, out);
        // With several contexts first turns overlap warm ones: only the last of the firsts is a safe mark.
        uint64_t mark = 0;
        for (size_t i = 0; i < n; i++)
            mark = workers[i].allocs_after_first > mark ? workers[i].allocs_after_first : mark;
        out->warm_allocations = blocks_allocated(j->s) - mark;
        cli__warm_watch_arm(&j->s->warm, false); // outputs that are kept are no part of it
        if (j->spec->keep_outputs) st = copy_outputs(workers[0].context, out, err);
    }
    for (size_t i = 0; workers != NULL && i < n; i++) tide_context_destroy(workers[i].context);
    tide_host_free(workers);
    return st;
}

/// The run goes on without its trace; what was wrong with it is kept.
static bool recorded(cli_session *s, tide_status st, const tide_error *err) {
    if (st != TIDE_OK && s->record_err.status == TIDE_OK) s->record_err = *err;
    return st == TIDE_OK;
}

static tide_status record_begin(cli_session *s, const cli_session_spec *spec, tide_error *err) {
    const bool planned = spec->mode == TIDE_RUN_PLANNED;
    char device[32];
    const tide_run_info info = {
        .model = spec->program->graph->name,
        .source = spec->source,
        .mode = planned ? "planned" : "naive",
        .strategy = planned && spec->plan != NULL ? spec->plan->strategy : NULL,
        .device = tide_device_format(spec->device, device, sizeof device),
        .n_contexts = (uint32_t)spec->contexts,
    };
    int64_t run_id;
    return tide_recorder_begin_run(s->recorder, &info, spec->plan, &run_id, err);
}

void cli_session_begin(cli_session *s, const cli_session_spec *spec, cli_session_mark *mark) {
    if (s->ran) tide_meter_reset_peaks(s->meter);
    cli__warm_watch_begin(&s->warm);
    *mark = (cli_session_mark){.begun = true, .last_id = tide_ledger_last_id(s->ledger)};
    if (s->recorder == NULL) return;
    tide_error record_err = TIDE_ERROR_INIT;
    mark->recorded = recorded(s, record_begin(s, spec, &record_err), &record_err);
}

void cli_session_read(const cli_session *s, cli_session_result *out) {
    for (int k = 0; k < TIDE_N_KINDS; k++) tide_meter_get(s->meter, (tide_memory_kind)k, &out->kinds[k]);
    tide_meter_kind total;
    tide_meter_total(s->meter, &total);
    out->total_peak_bytes = total.peak_bytes;
}

void cli_session_finish(cli_session *s, const cli_session_mark *mark, cli_session_result *out) {
    if (!mark->begun) return;
    cli__session_note_late(s, mark->last_id);
    cli_session_read(s, out);
    s->ran = true;
    tide_error record_err = TIDE_ERROR_INIT;
    if (mark->recorded) (void)recorded(s, tide_recorder_end_run(s->recorder, &record_err), &record_err);
}

static tide_status begin(job *j, tide_error *err) {
    cli_session_begin(j->s, j->spec, &j->mark);
    const tide_inference_plan_options opt = {
        .device = j->spec->device, .registry = j->s->registry, .memory_plan = j->spec->plan};
    TIDE_TRY(tide_inference_plan_create(j->spec->program, &opt, &j->plan, err));
    return make_inputs(j, err);
}

/// Give back what the run made, then read what it held at most.
static void end(job *j, cli_session_result *out) {
    for (size_t i = 0; i < j->n_inputs && j->inputs != NULL; i++) tide_tensor_unref(j->inputs[i]);
    tide_host_free(j->inputs);
    tide_inference_plan_unref(j->plan);
    tide_host_free(j->times);
    cli_session_finish(j->s, &j->mark, out);
}

tide_status cli_session_run(cli_session *s, const cli_session_spec *spec, cli_session_result *out, tide_error *err) {
    *out = (cli_session_result){0};
    job j = {.s = s, .spec = spec};
    tide_status st = begin(&j, err);
    if (st == TIDE_OK) st = run_contexts(&j, out, err);
    end(&j, out);
    if (st != TIDE_OK) cli_session_result_deinit(out);
    return st;
}

void cli_session_result_deinit(cli_session_result *r) {
    for (size_t i = 0; i < r->n_outputs; i++) tide_tensor_unref(r->outputs[i]);
    tide_host_free(r->outputs);
    r->outputs = NULL;
    r->n_outputs = 0;
}

tide_status cli_session_shapes_of_dir(const char *input_dir, const tide_graph *graph, tide_shape_binding **bindings,
                                      size_t *n, tide_error *err) {
    tide_shape_binding *items = tide_host_calloc(graph->n_inputs + 1, sizeof *items);
    if (items == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu shapes", graph->n_inputs);
    tide_status st = TIDE_OK;
    size_t count = 0;
    for (size_t i = 0; i < graph->n_inputs && st == TIDE_OK; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/input_%zu.pb", input_dir, i);
        tide_tensor *t = NULL;
        st = tide_tensor_from_pb_file(path, NULL, TIDE_KIND_HOST_PAGEABLE, &t, NULL, err);
        if (st == TIDE_OK) {
            items[count++] =
                (tide_shape_binding){.name = graph->values[graph->inputs[i]].name, .shape = *tide_tensor_shape(t)};
            tide_tensor_unref(t);
        }
    }
    if (st != TIDE_OK) {
        tide_host_free(items);
        return st;
    }
    *bindings = items;
    *n = count;
    return TIDE_OK;
}
