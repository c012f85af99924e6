// SPDX-License-Identifier: MIT
//
// Section query: questions to a trace of ten million events, kept as rows and kept as chunks, at random moments. Each
// form runs in a process of its own, so that memory is measured for each. Printed are processor time, and wall time as
// the user waits for it.
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_recorder.h"
#include "bench/planner_child.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/holdings.h"
#include "profiler/moments.h"

enum { N_PRODUCERS = 2, N_COLUMNS = 1000, MANY = 200, FEW = 20 };
/// Each thread's blocks lie in segments that are taken at its begin.
enum { SEGMENT_BYTES = 64 << 20, N_SEGMENTS = BENCH_SLOTS / 64 };

typedef struct producer {
    tide_observer obs;
    bench_stream *s;
    uint64_t n_events;
    pthread_t id;
} producer;

static void *produce(void *arg) {
    producer *p = arg;
    const tide_memory_event first = *bench_next(p->s);
    for (uint64_t i = 0; i < N_SEGMENTS; i++) {
        tide_memory_event e = first;
        e.op = TIDE_MEM_SEGMENT_ALLOC;
        e.block_id = 0;
        e.address = p->s->address + i * SEGMENT_BYTES;
        e.requested_bytes = e.reserved_bytes = SEGMENT_BYTES;
        p->obs.on_memory(p->obs.self, &e);
    }
    p->obs.on_memory(p->obs.self, &first);
    for (uint64_t i = N_SEGMENTS + 1; i < p->n_events; i++) p->obs.on_memory(p->obs.self, bench_next(p->s));
    return NULL;
}

typedef struct make_job {
    char path[320];
    tide_record_form form;
    uint64_t n_events, seed;
} make_job;

static void make_child(void *arg, bench_answer *out) {
    const make_job *j = arg;
    const tide_recorder_options opt = {.form = j->form};
    tide_recorder *rec = NULL;
    tide_error err = TIDE_ERROR_INIT;
    producer p[N_PRODUCERS];
    bench_must(tide_recorder_open(j->path, &opt, &rec, &err), &err, "open");
    for (uint32_t i = 0; i < N_PRODUCERS; i++) {
        p[i] = (producer){.obs = tide_recorder_observer(rec), .n_events = j->n_events / N_PRODUCERS};
        p[i].s = bench_stream_new(j->seed, i);
        if (p[i].s == NULL || pthread_create(&p[i].id, NULL, produce, &p[i]) != 0) exit(3);
    }
    for (int i = 0; i < N_PRODUCERS; i++) pthread_join(p[i].id, NULL);
    const double t0 = bench_cpu_ns(CLOCK_MONOTONIC), cpu0 = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    bench_must(tide_recorder_close(rec, &err), &err, "close");
    out->n[0] = (uint64_t)(bench_cpu_ns(CLOCK_MONOTONIC) - t0);
    out->n[1] = (uint64_t)(bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu0);
    out->done = true;
}

// ---- questions ----

typedef struct asker {
    tide_trace *trace;
    tide_trace_info info;
    tide_rng rng;
    uint64_t peak_event;
    size_t n_live; // of the last answer
} asker;

static uint64_t some_time(asker *a) {
    return a->info.begin_ns + tide_rng_below(&a->rng, a->info.end_ns - a->info.begin_ns + 1);
}
/// A window of a thousandth up to all of the trace.
static void some_window(asker *a, uint64_t *t0, uint64_t *t1) {
    const uint64_t all = a->info.end_ns - a->info.begin_ns, len = all >> tide_rng_below(&a->rng, 11);
    *t0 = a->info.begin_ns + tide_rng_below(&a->rng, all - len + 1);
    *t1 = *t0 + len;
}

static tide_status live_set(asker *a, tide_error *err) {
    tide_live_set set;
    TIDE_TRY(tide_trace_live_set(a->trace, some_time(a), &set, err));
    a->n_live = set.n;
    tide_live_set_deinit(&set);
    return TIDE_OK;
}
static tide_status live_at(asker *a, tide_error *err) {
    uint64_t bytes;
    return tide_trace_live_at(a->trace, -1, some_time(a), &bytes, err);
}
static tide_status alive_between(asker *a, tide_error *err) {
    tide_live_set set;
    const uint64_t t0 = some_time(a), len = (a->info.end_ns - a->info.begin_ns) / 1000;
    TIDE_TRY(tide_trace_alive_between(a->trace, t0, t0 + len, &set, err));
    tide_live_set_deinit(&set);
    return TIDE_OK;
}
static tide_status peak(asker *a, tide_error *err) {
    uint64_t bytes, t_ns;
    return tide_trace_peak(a->trace, 0, -1, &bytes, &t_ns, err);
}
static tide_status kinds(asker *a, tide_error *err) {
    tide_trace_kind *k = NULL;
    size_t n;
    TIDE_TRY(tide_trace_kinds(a->trace, 0, &k, &n, err));
    tide_trace_kinds_free(k);
    return TIDE_OK;
}
static tide_status peak_between(asker *a, tide_error *err) {
    uint64_t t0, t1, bytes, t_ns;
    some_window(a, &t0, &t1);
    return tide_trace_peak_between(a->trace, -1, NULL, t0, t1, &bytes, &a->peak_event, &t_ns, err);
}
static tide_status columns(asker *a, bool whole, tide_columns_mode mode, int kind, tide_error *err) {
    static uint64_t low[N_COLUMNS], high[N_COLUMNS];
    uint64_t t0 = a->info.begin_ns, t1 = a->info.end_ns;
    if (!whole) some_window(a, &t0, &t1);
    return tide_trace_columns(a->trace, kind, NULL, t0, t1, N_COLUMNS, mode, low, high, err);
}
static tide_status columns_all(asker *a, tide_error *err) { return columns(a, true, TIDE_COLUMNS_FAST, -1, err); }
static tide_status columns_kind(asker *a, tide_error *err) {
    return columns(a, true, TIDE_COLUMNS_FAST, TIDE_KIND_WORKSPACE, err);
}
static tide_status columns_window(asker *a, tide_error *err) { return columns(a, false, TIDE_COLUMNS_FAST, -1, err); }
static tide_status exact_all(asker *a, tide_error *err) { return columns(a, true, TIDE_COLUMNS_EXACT, -1, err); }
static tide_status exact_window(asker *a, tide_error *err) { return columns(a, false, TIDE_COLUMNS_EXACT, -1, err); }
static tide_status groups(asker *a, tide_error *err) {
    tide_live_set set;
    TIDE_TRY(tide_trace_live_set(a->trace, some_time(a), &set, err));
    for (int by = TIDE_BY_KIND; by <= TIDE_BY_RUN; by++) {
        tide_group *g = NULL;
        size_t n = 0;
        TIDE_TRY(tide_live_set_group(&set, (tide_group_by)by, &g, &n, err));
        tide_groups_free(g, n);
    }
    tide_live_set_deinit(&set);
    return TIDE_OK;
}
static tide_status some_events(asker *a, tide_error *err) {
    static tide_trace_event events[1000];
    size_t n;
    return tide_trace_events(a->trace, 1 + tide_rng_below(&a->rng, a->info.n_events), events, 1000, &n, err);
}

static tide_status pools_columns(asker *a, bool whole, tide_error *err) {
    tide_trace_pool_columns_question q = {.t0_ns = a->info.begin_ns, .t1_ns = a->info.end_ns, .n = N_COLUMNS};
    tide_trace_pool_column *out = NULL;
    size_t n_pools;
    if (!whole) {
        some_window(a, &q.t0_ns, &q.t1_ns);
        if (q.t1_ns < q.t0_ns + N_COLUMNS) q.t1_ns = q.t0_ns + N_COLUMNS;
    }
    TIDE_TRY(tide_trace_pool_columns(a->trace, &q, NULL, &out, &n_pools, err));
    tide_host_free(out);
    return TIDE_OK;
}
static tide_status pools_all(asker *a, tide_error *err) { return pools_columns(a, true, err); }
static tide_status pools_window(asker *a, tide_error *err) { return pools_columns(a, false, err); }

static const struct {
    const char *name;
    tide_status (*ask)(asker *a, tide_error *err);
    int times;
} questions[] = {
    {"live bytes at t", live_at, MANY},
    {"live set at t", live_set, MANY},
    {"its groups, all nine kinds", groups, FEW},
    {"alive in a window of 1/1000", alive_between, FEW},
    {"peak", peak, MANY},
    {"peak and sums per kind", kinds, FEW},
    {"peak in a window", peak_between, MANY},
    {"1000 columns, whole run", columns_all, FEW},
    {"1000 columns, one kind", columns_kind, FEW},
    {"1000 columns, a window", columns_window, MANY},
    {"1000 exact columns, whole run", exact_all, FEW / 4},
    {"1000 exact columns, a window", exact_window, FEW},
    {"1000 columns of each pool, whole run", pools_all, FEW},
    {"1000 columns of each pool, a window", pools_window, FEW},
    {"1000 events from anywhere", some_events, MANY},
};

/// Times of repeated answers to one query.
typedef struct times {
    bench_samples cpu, wall;
    double cpu0, wall0;
} times;

static void start_clocks(times *t) {
    t->wall0 = bench_cpu_ns(CLOCK_MONOTONIC);
    t->cpu0 = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}
static void stop_clocks(times *t) {
    bench_add(&t->cpu, bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - t->cpu0);
    bench_add(&t->wall, bench_cpu_ns(CLOCK_MONOTONIC) - t->wall0);
}

static void print_times(const char *name, times *t) {
    printf("%-36s %10.3f %10.3f %10.3f %10.3f\n", name, bench_quantile(&t->cpu, 0.5) / 1e6,
           bench_quantile(&t->cpu, 1) / 1e6, bench_quantile(&t->wall, 0.5) / 1e6, bench_quantile(&t->wall, 1) / 1e6);
    t->cpu.n = t->wall.n = 0;
}

static void ask_all(asker *a, times *t) {
    tide_error err = TIDE_ERROR_INIT;
    for (size_t q = 0; q < sizeof questions / sizeof questions[0]; q++) {
        for (int i = 0; i < questions[q].times; i++) {
            start_clocks(t);
            bench_must(questions[q].ask(a, &err), &err, questions[q].name);
            stop_clocks(t);
        }
        print_times(questions[q].name, t);
    }
}

/// Two traces: who was live at the peak of each, compared by all groupings; opening both included.
static void compare(const char *path_a, const char *path_b, times *took) {
    const char *const paths[] = {path_a, path_b};
    tide_trace *t[2];
    tide_live_set set[2];
    tide_error err = TIDE_ERROR_INIT;
    start_clocks(took);
    for (int i = 0; i < 2; i++) {
        tide_trace_info info;
        uint64_t bytes, event, t_ns;
        bench_must(tide_trace_open(paths[i], &t[i], &err), &err, "open");
        bench_must(tide_trace_get_info(t[i], &info, &err), &err, "info");
        bench_must(tide_trace_peak_between(t[i], -1, NULL, info.begin_ns, info.end_ns, &bytes, &event, &t_ns, &err),
                   &err, "peak");
        bench_must(tide_trace_live_set_after(t[i], event, &set[i], &err), &err, "live set");
    }
    for (int by = TIDE_BY_KIND; by <= TIDE_BY_RUN; by++) {
        tide_group_change *changes = NULL;
        size_t n = 0;
        bench_must(tide_live_set_compare(&set[0], &set[1], (tide_group_by)by, &changes, &n, &err), &err, "compare");
        tide_group_changes_free(changes, n);
    }
    stop_clocks(took);
    for (int i = 0; i < 2; i++) {
        tide_live_set_deinit(&set[i]);
        tide_trace_close(t[i]);
    }
}

static void ask_child(void *arg, bench_answer *out) {
    const make_job *j = arg; // [2]
    asker a = {.rng = {.state = 5}};
    tide_error err = TIDE_ERROR_INIT;
    times *t = tide_host_calloc(1, sizeof *t);
    if (t == NULL) exit(3);
    for (int i = 0; i < 5; i++) {
        tide_trace_close(a.trace);
        start_clocks(t);
        bench_must(tide_trace_open(j[0].path, &a.trace, &err), &err, "open");
        stop_clocks(t);
    }
    print_times("open", t);
    bench_must(tide_trace_get_info(a.trace, &a.info, &err), &err, "info");
    ask_all(&a, t);
    for (int i = 0; i < 5; i++) compare(j[0].path, j[1].path, t);
    print_times("two traces compared, opened first", t);
    printf("live blocks in the last set: %zu; peak memory of the reader: %.1f MB\n", a.n_live, bench_peak_rss_mb());
    const double t0 = bench_cpu_ns(CLOCK_MONOTONIC);
    bench_must(tide_trace_check(a.trace, &err), &err, "check");
    printf("every event, chunk and sum checked: %.2f s\n", (bench_cpu_ns(CLOCK_MONOTONIC) - t0) / 1e9);
    tide_trace_close(a.trace);
    fflush(stdout);
    out->done = true;
}

static void query_form(const bench_options *o, const char *name, tide_record_form form) {
    char dir[300];
    static make_job jobs[2];
    bench_cost cost = {0};
    bench_make_dir(o, dir, sizeof dir);
    for (int i = 0; i < 2; i++) {
        jobs[i] = (make_job){.form = form, .n_events = o->query_events, .seed = 21 + (uint64_t)i};
        snprintf(jobs[i].path, sizeof jobs[i].path, "%s/%c.db", dir, 'a' + i);
        const bench_answer a = bench_run_child(make_child, &jobs[i], 900, &cost);
        if (!a.done) printf("no trace: %s\n", a.text);
        if (i == 0)
            printf("\n%s: %.1f MB, %.1f bytes per event, %.2f s to finish (%.2f s CPU)\n", name,
                   (double)bench_file_bytes(jobs[0].path) / 1048576,
                   (double)bench_file_bytes(jobs[0].path) / (double)o->query_events, (double)a.n[0] / 1e9,
                   (double)a.n[1] / 1e9);
    }
    printf("%-36s %10s %10s %10s %10s\n", "ms", "CPU median", "max", "median", "max");
    const bench_answer a = bench_run_child(ask_child, jobs, 900, &cost);
    if (!a.done) printf("no answers: %s\n", a.text);
    bench_remove_dir(dir);
}

void bench_query(const bench_options *o) {
    printf("\n== query: %" PRIu64 " events of %d threads, file in the page cache\n", o->query_events, N_PRODUCERS);
    query_form(o, "rows", TIDE_RECORD_ROWS);
    query_form(o, "chunks", TIDE_RECORD_CHUNKS);
}
