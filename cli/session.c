// SPDX-License-Identifier: MIT
//
// A session: its allocators and what observes them, measured runs in it (contexts, threads, times), which allocations
// came in steady state, and which blocks were not given back. Inputs are made in session_inputs.c. See session.h.
//
//     meter, ledger, recorder  <- observers of ->  instrumented -> (limit ->) plain      one such chain per kind
//
// The limits share one budget. A limit wraps the allocator that takes memory from the system: the pages of a KV cache
// lie above it (decode.c), so that the slabs they are cut from are counted.
#include "cli/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"
#include "core/ops/ops.h"

/// A list of blocks, their texts in the ledger.
typedef struct block_list {
    tide_live_block *items; // [n], owned
    size_t n, cap;
} block_list;

/// Allocations since it was armed, by who made them. Zero-initialise.
typedef struct warm_watch {
    atomic_bool is_armed;
    pthread_mutex_t lock; // of what follows
    cli_warm_site *sites; // [n], owned
    size_t n, cap;
} warm_watch;

struct cli_session {
    tide_meter *meter;
    tide_ledger *ledger;
    tide_observer meter_obs, ledger_obs, recorder_obs, named, all; // named: ledger and recorder
    tide_observer_pair named_pair, all_pair;
    warm_watch warm; // hears with keeps_warm_sites
    tide_observer warm_obs, watched;
    tide_observer_pair watched_pair;
    tide_recorder *recorder; // borrowed; may be NULL
    tide_error record_err;   // the first of its errors in a run
    tide_registry *registry; // NULL: the session has ended
    tide_allocator *mapped;  // of weights that stay in their file
    uint64_t limit_bytes;    // 0: none
    tide_allocator *limit;   // the first of those that share one budget; NULL: none
    block_list at_end, late;
    uint64_t n_leaked, end_ns;
    bool ran; // a run has ended: peaks are counted anew from there
};

bool cli_parse_fill(const cli_command *cmd, const char *text, tide_fill *out) {
    for (int i = TIDE_FILL_ZERO; i <= TIDE_FILL_POISON; i++) {
        if (strcmp(text, tide_fill_name((tide_fill)i)) != 0) continue;
        *out = (tide_fill)i;
        return true;
    }
    cli_usage(cmd, "--fill: '%s' is none of zero, none, poison", text);
    return false;
}

// ---- allocations in steady state ----

static cli_warm_site *site_of(warm_watch *w, const char *tag, const char *op) {
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(w->sites[i].tag, tag) == 0 && strcmp(w->sites[i].op, op) == 0) return &w->sites[i];
    }
    cli_warm_site site = {.tag = tide_host_strdup(tag), .op = tide_host_strdup(op)};
    if (site.tag == NULL || site.op == NULL ||
        tide_host_grow(&w->sites, &w->cap, w->n + 1, sizeof *w->sites) != TIDE_OK) {
        tide_host_free(site.tag);
        tide_host_free(site.op);
        return NULL; // the run's counter has it all the same
    }
    w->sites[w->n] = site;
    return &w->sites[w->n++];
}

/// The innermost scope that is no run, as in the ledger.
static const char *op_of(const tide_memory_event *e) {
    const tide_scope *s = e->scope;
    while (s != NULL && s->kind == TIDE_SCOPE_RUN) s = s->parent;
    return s != NULL ? s->name : "";
}

static void on_memory_event(void *self, const tide_memory_event *e) {
    warm_watch *w = self;
    if (e->op != TIDE_MEM_ALLOC || !atomic_load(&w->is_armed)) return;
    pthread_mutex_lock(&w->lock);
    cli_warm_site *site = site_of(w, e->tag != NULL ? e->tag : "", op_of(e));
    if (site != NULL) {
        site->kind = e->kind;
        site->n++;
        if (e->requested_bytes > site->largest_bytes) site->largest_bytes = e->requested_bytes;
    }
    pthread_mutex_unlock(&w->lock);
}

static tide_observer warm_observer(warm_watch *w) {
    return (tide_observer){.self = w, .on_memory = on_memory_event, .no_time = true};
}

static void warm_reset(warm_watch *w) {
    atomic_store(&w->is_armed, false);
    for (size_t i = 0; i < w->n; i++) {
        tide_host_free(w->sites[i].tag);
        tide_host_free(w->sites[i].op);
    }
    w->n = 0;
}

static void warm_arm(warm_watch *w, bool is_armed) { atomic_store(&w->is_armed, is_armed); }

static void warm_deinit(warm_watch *w) {
    warm_reset(w);
    tide_host_free(w->sites);
    pthread_mutex_destroy(&w->lock);
}

// ---- a session's life ----

tide_status cli_session_within_limit(cli_session *s, tide_allocator *plain, tide_allocator **out, tide_error *err) {
    if (s->limit_bytes == 0) {
        *out = tide_allocator_ref(plain);
        return TIDE_OK;
    }
    if (s->limit != NULL) return tide_limit_create_shared(plain, s->limit, out, err);
    TIDE_TRY(tide_limit_create(plain, s->limit_bytes, out, err));
    s->limit = tide_allocator_ref(*out);
    return TIDE_OK;
}

tide_status cli_session_serve(cli_session *s, tide_memory_kind kind, tide_allocator *a, tide_error *err) {
    tide_allocator *observed = NULL;
    TIDE_TRY(tide_instrumented_create(a, &s->all, &observed, err));
    const tide_status st = tide_registry_add(s->registry, kind, observed, 0, err);
    tide_allocator_unref(observed);
    return st;
}

static tide_status serve_by_name(cli_session *s, tide_memory_kind kind, const char *name, tide_error *err) {
    tide_allocator *plain = NULL, *limited = NULL;
    TIDE_TRY(tide_allocator_create_by_name(name, &plain, err));
    tide_status st = cli_session_within_limit(s, plain, &limited, err);
    tide_allocator_unref(plain);
    if (st != TIDE_OK) return st;
    st = cli_session_serve(s, kind, limited, err);
    tide_allocator_unref(limited);
    return st;
}

static tide_status open_mapped(cli_session *s, tide_error *err) {
    tide_allocator *plain = NULL, *limited = NULL;
    TIDE_TRY(tide_mapped_create(&plain, err));
    tide_status st = cli_session_within_limit(s, plain, &limited, err);
    tide_allocator_unref(plain);
    if (st != TIDE_OK) return st;
    st = tide_instrumented_create(limited, &s->all, &s->mapped, err);
    tide_allocator_unref(limited);
    return st;
}

static tide_status open_parts(cli_session *s, const cli_session_options *opt, tide_error *err) {
    TIDE_TRY(tide_meter_create(&s->meter, err));
    TIDE_TRY(tide_ledger_create(&s->ledger, err));
    s->meter_obs = tide_meter_observer(s->meter);
    s->ledger_obs = tide_ledger_observer(s->ledger);
    s->named_pair.a = &s->ledger_obs;
    if (s->recorder != NULL) {
        s->recorder_obs = tide_recorder_observer(s->recorder);
        s->named_pair.b = &s->recorder_obs;
    }
    s->named = tide_observer_both(&s->named_pair);
    s->warm_obs = warm_observer(&s->warm);
    s->watched_pair = (tide_observer_pair){.a = &s->named, .b = opt->keeps_warm_sites ? &s->warm_obs : NULL};
    s->watched = tide_observer_both(&s->watched_pair);
    s->all_pair = (tide_observer_pair){.a = &s->meter_obs, .b = &s->watched};
    s->all = tide_observer_both(&s->all_pair);
    char threads[16];
    snprintf(threads, sizeof threads, "%u", (unsigned)tide_ops_threads());
    if (s->recorder != NULL) TIDE_TRY(tide_recorder_put_meta(s->recorder, "kernel_threads", threads, err));
    TIDE_TRY(tide_registry_create(&s->registry, err));
    for (int k = 0; k < TIDE_N_KINDS; k++) TIDE_TRY(serve_by_name(s, (tide_memory_kind)k, opt->allocator, err));
    return open_mapped(s, err);
}

tide_status cli_session_open(const cli_session_options *opt, cli_session **out, tide_error *err) {
    cli_session *s;
    TIDE_TRY(TIDE_NEW(&s, 1, err, "for a session"));
    s->recorder = opt->recorder;
    s->limit_bytes = opt->limit_bytes;
    pthread_mutex_init(&s->warm.lock, NULL);
    const tide_status st = open_parts(s, opt, err);
    if (st != TIDE_OK) {
        cli_session_close(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

tide_registry *cli_session_registry(cli_session *s) { return s->registry; }
tide_allocator *cli_session_mapped(cli_session *s) { return s->mapped; }
const tide_observer *cli_session_observer(const cli_session *s) { return &s->all; }
const tide_error *cli_session_record_error(const cli_session *s) { return &s->record_err; }

void cli_session_mark_warm(cli_session *s) {
    warm_arm(&s->warm, true);
    if (s->recorder != NULL) tide_recorder_mark(s->recorder, "warm");
}

// ---- what was not given back ----

/// Append the live blocks born after `after_id`. @return how many are missing for want of memory
static size_t list_live(cli_session *s, uint64_t after_id, block_list *list) {
    const size_t n = tide_ledger_largest(s->ledger, after_id, NULL, 0);
    if (n == 0 || tide_host_grow(&list->items, &list->cap, list->n + n, sizeof *list->items) != TIDE_OK) return n;
    const size_t found = tide_ledger_largest(s->ledger, after_id, list->items + list->n, n);
    list->n += found < n ? found : n;
    return 0;
}

/// Notes the blocks born after `after_id` that are alive although their run has given everything back.
static void note_late(cli_session *s, uint64_t after_id) { s->n_leaked += list_live(s, after_id, &s->late); }

static int by_id(const void *a, const void *b) {
    const uint64_t x = ((const tide_live_block *)a)->block_id, y = ((const tide_live_block *)b)->block_id;
    return (x > y) - (x < y);
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = ((const tide_live_block *)a)->requested_bytes, y = ((const tide_live_block *)b)->requested_bytes;
    return x != y ? (x < y) - (x > y) : by_id(a, b);
}

/// Leaves each late block once in its list, and none that is also in the list of blocks alive at the end.
static void remove_duplicates(cli_session *s) {
    block_list *late = &s->late, *end = &s->at_end;
    if (late->n == 0) return;
    if (end->n > 0) qsort(end->items, end->n, sizeof *end->items, by_id);
    qsort(late->items, late->n, sizeof *late->items, by_id);
    size_t kept = 0;
    for (size_t i = 0; i < late->n; i++) {
        const tide_live_block *b = &late->items[i];
        const bool again = kept > 0 && late->items[kept - 1].block_id == b->block_id;
        const bool still = end->n > 0 && bsearch(b, end->items, end->n, sizeof *b, by_id) != NULL;
        if (!again && !still) late->items[kept++] = *b;
    }
    late->n = kept;
    if (kept > 0) qsort(late->items, kept, sizeof *late->items, by_size);
    if (end->n > 0) qsort(end->items, end->n, sizeof *end->items, by_size);
}

void cli_session_end(cli_session *s) {
    if (s == NULL || s->registry == NULL) return;
    tide_registry_destroy(s->registry);
    tide_allocator_unref(s->mapped);
    s->registry = NULL;
    s->mapped = NULL;
    tide_allocator_unref(s->limit);
    s->limit = NULL;
    s->end_ns = tide_now_ns();
    (void)list_live(s, 0, &s->at_end); // blocks that cannot be listed are counted by the meter
    remove_duplicates(s);
    tide_meter_kind total;
    tide_meter_total(s->meter, &total);
    s->n_leaked += total.n_live + s->late.n;
}

void cli_session_get_leaks(const cli_session *s, cli_leaks *out) {
    *out = (cli_leaks){.at_end = s->at_end.items,
                       .n_at_end = s->at_end.n,
                       .late = s->late.items,
                       .n_late = s->late.n,
                       .n_blocks = s->n_leaked,
                       .now_ns = s->end_ns};
}

const cli_warm_site *cli_session_warm_sites(const cli_session *s, size_t *n) {
    *n = s->warm.n;
    return s->warm.sites;
}

bool cli_session_oom(const cli_session *s, tide_oom_report *out) { return tide_ledger_oom(s->ledger, out); }

void cli_session_close(cli_session *s) {
    if (s == NULL) return;
    cli_session_end(s);
    tide_allocator_unref(s->limit);
    tide_host_free(s->at_end.items);
    tide_host_free(s->late.items);
    warm_deinit(&s->warm);
    tide_meter_destroy(s->meter);
    tide_ledger_destroy(s->ledger);
    tide_host_free(s);
}

// ---- measured runs ----

/// What one run makes; given back in reverse.
typedef struct job {
    cli_session *s;
    const cli_session_spec *spec;
    tide_inference_plan *plan;
    cli_session_mark mark;
    cli_buffer_file file; // the contexts' memory; all zero: it is allocated
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

// ---- running ----

uint64_t cli_session_n_allocated(const cli_session *s) {
    tide_meter_kind total;
    tide_meter_total(s->meter, &total);
    return total.n_allocs;
}

static tide_status make_context(worker *w, tide_error *err) {
    const job *j = w->j;
    const tide_context_options opt = {.mode = j->spec->mode,
                                      .fill = j->spec->fill,
                                      .observer = &j->s->all,
                                      .memory = cli_buffer_file_part(&j->file, w->index),
                                      .memory_bytes = j->file.part_bytes};
    TIDE_TRY(tide_context_create(j->plan, &opt, &w->context, err));
    return tide_context_set_inputs(w->context, j->inputs, j->n_inputs, err);
}

/// The mark stands behind the first turns of all contexts; with several of them warm turns may come before it.
static void end_first_turn(worker *w) {
    const cli_session_spec *spec = w->j->spec;
    w->allocs_after_first = cli_session_n_allocated(w->j->s);
    if (atomic_fetch_add(&w->j->n_warm, 1) + 1 == spec->contexts && spec->runs > 1) cli_session_mark_warm(w->j->s);
}

static void *work(void *arg) {
    worker *w = arg;
    const size_t runs = w->j->spec->runs;
    for (size_t r = 0; r < runs && w->st == TIDE_OK; r++) {
        const uint64_t begin = tide_now_ns();
        w->st = tide_context_run(w->context, &w->err);
        w->j->times[w->index * runs + r] = tide_now_ns() - begin;
        if (r == 0) end_first_turn(w);
    }
    return NULL;
}

/// Run all workers; with one context on the calling thread, so that a trace has one thread.
static tide_status run_workers(worker *workers, size_t n, tide_error *err) {
    if (n == 1) {
        work(&workers[0]);
    } else {
        pthread_t *threads;
        TIDE_TRY(TIDE_NEW(&threads, n, err, "for %zu threads", n));
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
    TIDE_TRY(TIDE_NEW(&out->outputs, n + 1, err, "for %zu outputs", n));
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
    if (workers == NULL || j->times == NULL) st = TIDE_NO_MEMORY(err, "for %zu contexts", n);
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
        out->warm_allocations = cli_session_n_allocated(j->s) - mark;
        warm_arm(&j->s->warm, false); // copies of outputs do not count
        if (j->spec->keep_outputs) st = copy_outputs(workers[0].context, out, err);
        for (size_t i = 0; i < n && st == TIDE_OK; i++) st = cli_bounded_add(&out->bounded, workers[i].context, err);
        const bool *ran = tide_context_ran(workers[0].context);
        if (st == TIDE_OK && ran != NULL && j->spec->plan != NULL)
            st = tide_memory_plan_naive_peak(j->spec->plan, ran, &out->path_peak_bytes, err);
    }
    for (size_t i = 0; workers != NULL && i < n; i++) tide_context_destroy(workers[i].context);
    tide_host_free(workers);
    return st;
}

/// A run goes on when its trace fails; the first error is kept.
static bool keep_record_error(cli_session *s, tide_status st, const tide_error *err) {
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
    warm_reset(&s->warm);
    *mark = (cli_session_mark){.begun = true, .last_id = tide_ledger_last_id(s->ledger)};
    if (s->recorder == NULL) return;
    tide_error record_err = TIDE_ERROR_INIT;
    mark->recorded = keep_record_error(s, record_begin(s, spec, &record_err), &record_err);
}

void cli_session_read(const cli_session *s, cli_session_result *out) {
    for (int k = 0; k < TIDE_N_KINDS; k++) tide_meter_get(s->meter, (tide_memory_kind)k, &out->kinds[k]);
    tide_meter_kind total;
    tide_meter_total(s->meter, &total);
    out->total_peak_bytes = total.peak_bytes;
}

void cli_session_finish(cli_session *s, const cli_session_mark *mark, cli_session_result *out) {
    if (!mark->begun) return;
    note_late(s, mark->last_id);
    cli_session_read(s, out);
    s->ran = true;
    tide_error record_err = TIDE_ERROR_INIT;
    if (mark->recorded) (void)keep_record_error(s, tide_recorder_end_run(s->recorder, &record_err), &record_err);
}

static tide_status open_buffer_file(job *j, tide_error *err) {
    if (j->spec->buffer_file == NULL) return TIDE_OK;
    tide_context_need need;
    TIDE_TRY(tide_context_need_of(j->plan, &need, err));
    const tide_graph *g = j->spec->program->graph;
    for (size_t i = 0; i < g->n_files; i++)
        if (cli_same_file(g->files[i], j->spec->buffer_file))
            return TIDE_FAIL(err, TIDE_ERR_WRITE, "buffer file '%s' is in use by this run: it would be overwritten",
                             j->spec->buffer_file);
    return cli_buffer_file_open(j->spec->buffer_file, &need, j->spec->contexts, &j->file, err);
}

static tide_status begin(job *j, tide_error *err) {
    cli_session_begin(j->s, j->spec, &j->mark);
    const tide_inference_plan_options opt = {
        .device = j->spec->device, .registry = j->s->registry, .memory_plan = j->spec->plan};
    TIDE_TRY(tide_inference_plan_create(j->spec->program, &opt, &j->plan, err));
    TIDE_TRY(open_buffer_file(j, err));
    j->n_inputs = j->spec->program->graph->n_inputs;
    TIDE_TRY(TIDE_NEW(&j->inputs, j->n_inputs + 1, err, "for %zu inputs", j->n_inputs));
    return cli_session_make_inputs(j->s->registry, j->spec, j->inputs, err);
}

/// Give back what the run made, then read what it held at most.
static void end(job *j, cli_session_result *out) {
    for (size_t i = 0; i < j->n_inputs && j->inputs != NULL; i++) tide_tensor_unref(j->inputs[i]);
    tide_host_free(j->inputs);
    tide_inference_plan_unref(j->plan);
    tide_host_free(j->times);
    out->buffer_file = j->file.use;
    cli_buffer_file_close(&j->file);
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
    cli_bounded_deinit(&r->bounded);
}
