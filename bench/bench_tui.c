// SPDX-License-Identifier: MIT
//
// bench_tui: waiting times of a user who looks at a large trace or plan: opening, curves, the live set, the table of
// items, rows of a Gantt chart and the queries of a frame. It prints and never judges.
//
//     bench_tui [--dir DIR] [--events N] [--tensors N] [--trace FILE] [--only WORD]
//
// --trace: this one instead of a trace of N events by two threads that is thrown away; it is made when it is not there.
// --only: the parts whose name holds that word. Each part runs in a process of its own, so that its memory is its own.
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pools.h"
#include "analysis/rows.h"
#include "analysis/subject.h"
#include "bench/bench_recorder.h"
#include "bench/bench_tui.h"
#include "bench/planner_child.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/planner.h"

enum { N_PRODUCERS = 2, COLUMNS = 200, ROWS = 50, FRAMES = 200, LIMIT_S = 900 };

typedef struct tui_job {
    char path[320];
    uint64_t n_events, n_tensors;
} tui_job;

// ---- times ----

static double now_ms(void) { return bench_cpu_ns(CLOCK_MONOTONIC) / 1e6; }
/// Processor time, for repeated work: other programs may use the machine at the same time.
static double cpu_ms(void) { return bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) / 1e6; }
double bench_tui_ms(void) { return now_ms(); }

static void print_once(const char *what, double ms) { bench_tui_print_once(what, ms); }

void bench_tui_print_once(const char *what, double ms) {
    printf("%-44s %10.1f ms   memory %6.1f MB, at its highest %6.1f MB\n", what, ms, bench_rss_mb(),
           bench_peak_rss_mb());
}

static void print_samples(const char *what, bench_samples *s) {
    const double median = bench_quantile(s, 0.5), p99 = bench_quantile(s, 0.99), most = bench_quantile(s, 1);
    printf("%-44s %10.3f ms   p99 %8.3f ms, max %8.3f ms\n", what, median, p99, most);
    s->n = 0;
}

// ---- a trace ----

typedef struct producer {
    tide_observer obs;
    bench_stream *s;
    uint64_t n_events;
    pthread_t id;
} producer;

static void *produce(void *arg) {
    producer *p = arg;
    for (uint64_t i = 0; i < p->n_events; i++) p->obs.on_memory(p->obs.self, bench_next(p->s));
    return NULL;
}

static void make_child(void *arg, bench_answer *out) {
    const tui_job *j = arg;
    const tide_recorder_options opt = {.form = TIDE_RECORD_CHUNKS};
    tide_recorder *rec = NULL;
    tide_error err = TIDE_ERROR_INIT;
    producer p[N_PRODUCERS];
    bench_must(tide_recorder_open(j->path, &opt, &rec, &err), &err, "open");
    for (uint32_t i = 0; i < N_PRODUCERS; i++) {
        p[i] = (producer){.obs = tide_recorder_observer(rec), .n_events = j->n_events / N_PRODUCERS};
        p[i].s = bench_stream_new(21, i);
        if (p[i].s == NULL || pthread_create(&p[i].id, NULL, produce, &p[i]) != 0) exit(3);
    }
    for (int i = 0; i < N_PRODUCERS; i++) pthread_join(p[i].id, NULL);
    bench_must(tide_recorder_close(rec, &err), &err, "close");
    out->done = true;
}

/// A window of a thousandth up to all of the axis, anywhere.
static void some_window(const tide_subject_facts *f, tide_rng *rng, int64_t *t0, int64_t *t1) {
    const uint64_t all = (uint64_t)(f->end - f->begin);
    uint64_t len = all >> tide_rng_below(rng, 11);
    if (len == 0) len = 1;
    *t0 = f->begin + (int64_t)tide_rng_below(rng, all - len + 1);
    *t1 = *t0 + (int64_t)len;
}

static void time_columns(tide_subject *s, tide_curve_key key, const char *what) {
    static uint64_t low[COLUMNS], high[COLUMNS];
    static bench_samples samples;
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {5};
    double begin = cpu_ms();
    bench_must(tide_subject_columns(s, key, f->begin, f->end, COLUMNS, low, high, &err), &err, what);
    printf("%-44s %10.3f ms   the first time\n", what, cpu_ms() - begin);
    for (int i = 0; i < FRAMES; i++) {
        int64_t t0, t1;
        some_window(f, &rng, &t0, &t1);
        begin = cpu_ms();
        bench_must(tide_subject_columns(s, key, t0, t1, COLUMNS, low, high, &err), &err, what);
        bench_add(&samples, cpu_ms() - begin);
    }
    print_samples("    a window", &samples);
}

static void time_moments(tide_subject *s) {
    static bench_samples live, change, peak, bytes;
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {6};
    size_t n_live = 0;
    for (int i = 0; i < FRAMES; i++) {
        tide_moment at = {f->begin + (int64_t)tide_rng_below(&rng, (uint64_t)(f->end - f->begin)), 0}, next;
        tide_live_items l;
        double begin = cpu_ms();
        bench_must(tide_subject_live(s, at, &l, &err), &err, "live");
        bench_add(&live, cpu_ms() - begin);
        n_live = l.n;
        tide_live_items_deinit(&l);
        begin = cpu_ms();
        bench_must(tide_subject_next_change(s, at, i % 2 == 0 ? 1 : -1, &next, &err), &err, "change");
        bench_add(&change, cpu_ms() - begin);
        begin = cpu_ms();
        const tide_curve_key all = {TIDE_CURVE_LIVE, -1, NULL};
        const tide_status st = tide_subject_next_peak(s, all, at.t, 1, f->begin, f->end, COLUMNS, &next, &err);
        if (st != TIDE_ERR_NOT_FOUND) bench_must(st, &err, "peak");
        bench_add(&peak, cpu_ms() - begin);
        uint64_t value;
        begin = cpu_ms();
        bench_must(tide_subject_bytes_at(s, (tide_curve_key){TIDE_CURVE_LIVE, -1, NULL}, at, &value, &err), &err, "at");
        bench_add(&bytes, cpu_ms() - begin);
    }
    char what[64];
    snprintf(what, sizeof what, "who is alive anywhere (%zu)", n_live);
    print_samples(what, &live);
    print_samples("bytes anywhere", &bytes);
    print_samples("next change", &change);
    print_samples("next peak", &peak);
}

static void time_spans(tide_subject *s, const tide_rows *r, const char *what) {
    static tide_row_span spans[COLUMNS];
    static bench_samples samples;
    const tide_subject_facts *f = tide_subject_get_facts(s);
    const tide_items *items = tide_subject_items(s);
    tide_rng rng = {7};
    for (int i = 0; i < FRAMES && r->n > 0; i++) {
        int64_t t0, t1;
        some_window(f, &rng, &t0, &t1);
        const size_t n = r->n < ROWS ? r->n : ROWS, top = (size_t)tide_rng_below(&rng, r->n - n + 1);
        const double begin = cpu_ms();
        for (size_t k = 0; k < n; k++) tide_rows_spans(r, items, top + k, t0, t1, COLUMNS, spans);
        bench_add(&samples, cpu_ms() - begin);
    }
    print_samples(what, &samples);
}

static void time_rows(tide_subject *s, tide_row_group group, tide_row_sort sort, const char *filter, const char *what) {
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_filter *parsed = NULL;
    tide_error err = TIDE_ERROR_INIT;
    if (filter != NULL) bench_must(tide_filter_parse(filter, f->axis, &parsed, &err), &err, filter);
    const tide_filter *const list[] = {parsed};
    const tide_rows_options opt = {
        .group = group, .sort = sort, .filters = list, .n_filters = filter != NULL, .only_group_of = TIDE_NO_ITEM};
    tide_rows r = {0};
    const double begin = cpu_ms();
    bench_must(tide_rows_make(s, &opt, NULL, &r, &err), &err, what);
    const double took = cpu_ms() - begin;
    char line[120];
    snprintf(line, sizeof line, "%s: %zu rows", what, r.n);
    print_once(line, took);
    time_spans(s, &r, "    a frame of 50 rows, 200 columns");
    tide_rows_deinit(&r);
    tide_filter_destroy(parsed);
}

/// Pools over time: the first question reads the run; then windows of all widths, down to what is decoded exactly.
static void time_pools(tide_subject *s) {
    enum { POOL_COLUMNS = 1000 };
    static bench_samples samples;
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {17};
    samples.n = 0;
    for (int i = -1; i < FRAMES; i++) {
        const uint64_t span = (uint64_t)(f->end - f->begin), width = span >> (i < 0 ? 0 : i % 16);
        const int64_t t0 = f->begin + (int64_t)tide_rng_below(&rng, span - width + 1);
        tide_pool_history h;
        const double begin = i < 0 ? now_ms() : cpu_ms();
        bench_must(tide_pools_over(s, t0, t0 + (int64_t)width, POOL_COLUMNS, NULL, &h, &err), &err, "pools");
        if (i < 0) print_once("pools over time, the first question", now_ms() - begin);
        if (i >= 0) bench_add(&samples, cpu_ms() - begin);
        tide_pool_history_deinit(&h);
    }
    print_samples("    1000 columns of a window", &samples);
}

static void trace_child(void *arg, bench_answer *out) {
    const tui_job *j = arg;
    tide_subject *s = NULL;
    tide_error err = TIDE_ERROR_INIT;
    double begin = now_ms();
    bench_must(tide_subject_of_trace(j->path, 0, &s, &err), &err, "open");
    const tide_subject_facts *f = tide_subject_get_facts(s);
    print_once("open, with facts", now_ms() - begin);
    time_columns(s, (tide_curve_key){TIDE_CURVE_LIVE, -1, NULL}, "200 columns, all");
    time_columns(s, (tide_curve_key){TIDE_CURVE_LIVE, TIDE_KIND_WORKSPACE, NULL}, "200 columns, one kind");
    time_moments(s);
    begin = now_ms();
    bench_must(tide_subject_load(s, NULL, &err), &err, "load");
    char what[64];
    const tide_items *items = tide_subject_items(s);
    snprintf(what, sizeof what, "table of %zu items, %.2f us each", items->n,
             (now_ms() - begin) * 1e3 / (double)items->n);
    print_once(what, now_ms() - begin);
    printf("%zu sites, %zu shapes, %" PRIu64 " events\n", items->n_sites, items->n_shapes, f->n_events);
    time_moments(s);
    time_rows(s, TIDE_ROW_GROUP_NAME, TIDE_ROW_SORT_BEGIN, NULL, "rows by name");
    time_rows(s, TIDE_ROW_GROUP_KIND, TIDE_ROW_SORT_SIZE, NULL, "rows by kind");
    time_rows(s, TIDE_ROW_GROUP_NAME, TIDE_ROW_SORT_SIZE, "kind=workspace size>=64KiB life>1ms", "three conditions");
    time_rows(s, TIDE_ROW_GROUP_NONE, TIDE_ROW_SORT_SIZE, "top=1000", "the 1000 largest");
    time_rows(s, TIDE_ROW_GROUP_NONE, TIDE_ROW_SORT_BEGIN, NULL, "a row each, by begin");
    time_rows(s, TIDE_ROW_GROUP_NONE, TIDE_ROW_SORT_SIZE, NULL, "a row each, by size");
    begin = now_ms();
    const tide_curve_key reserved = {TIDE_CURVE_RESERVED, -1, NULL};
    uint64_t bytes;
    bench_must(tide_subject_bytes_at(s, reserved, f->peak, &bytes, &err), &err, "reserved");
    print_once("reserved bytes, the first time", now_ms() - begin);
    time_columns(s, reserved, "200 columns, reserved");
    time_pools(s);
    tide_subject_destroy(s);
    fflush(stdout);
    out->done = true;
}

// ---- a plan ----

/// Tensors of a wide net: short lives, some long ones, names as importers give them.
static tide_memory_plan *make_plan(uint64_t n) {
    tide_rng rng = {11};
    tide_error err = TIDE_ERROR_INIT;
    const int64_t n_steps = (int64_t)(n / 2 + 1);
    tide_lifetimes lt = {.model = tide_host_strdup("wide"), .n_steps = n_steps};
    for (uint64_t i = 0; i < n; i++) {
        char name[96];
        const int64_t begin = (int64_t)(i / 2);
        const uint64_t left = (uint64_t)(n_steps - begin), life = 1 + tide_rng_below(&rng, i % 97 == 0 ? 2000 : 6);
        snprintf(name, sizeof name, "/features/block.%" PRIu64 "/conv%" PRIu64 "/Conv_output_%" PRIu64, i / 64, i % 64,
                 i);
        const tide_lifetime item = {.name = name,
                                    .size_bytes = 64 + tide_rng_below(&rng, 1 << 20),
                                    .align_bytes = 64,
                                    .begin_step = begin,
                                    .end_step = begin + (int64_t)(life < left ? life : left),
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .device = TIDE_CPU,
                                    .role = i % 5 == 0 ? TIDE_ROLE_SCRATCH : TIDE_ROLE_INTERMEDIATE,
                                    .node = TIDE_NO_INDEX,
                                    .port = TIDE_NO_INDEX,
                                    .value = TIDE_NO_INDEX};
        bench_must(tide_lifetimes_add(&lt, &item, &err), &err, "lifetimes");
    }
    const tide_strategy *strategy = NULL;
    tide_memory_plan *plan = NULL;
    bench_must(tide_strategy_find("greedy_by_size", &strategy, &err), &err, "strategy");
    bench_must(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err, "plan");
    tide_lifetimes_deinit(&lt);
    return plan;
}

static void time_search(const tide_subject *s, const char *regex) {
    uint8_t *bits = NULL;
    size_t n = 0;
    tide_error err = TIDE_ERROR_INIT;
    const double begin = cpu_ms();
    bench_must(tide_items_search(tide_subject_items(s), regex, &bits, &n, &err), &err, regex);
    printf("search '%s': %zu%*s %10.3f ms\n", regex, n, (int)(28 - strlen(regex)), "", cpu_ms() - begin);
    tide_host_free(bits);
}

static void plan_child(void *arg, bench_answer *out) {
    const tui_job *j = arg;
    tide_subject *s = NULL;
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = make_plan(j->n_tensors);
    double begin = now_ms();
    bench_must(tide_subject_of_plan(plan, NULL, &s, &err), &err, "subject");
    print_once("facts", now_ms() - begin);
    time_columns(s, (tide_curve_key){TIDE_CURVE_LIVE, -1, NULL}, "200 columns");
    begin = now_ms();
    bench_must(tide_subject_load(s, NULL, &err), &err, "load");
    print_once("table of items", now_ms() - begin);
    time_moments(s);
    for (int sort = 0; sort < TIDE_N_ROW_SORTS; sort++) {
        char what[64];
        snprintf(what, sizeof what, "a row each, by %s", tide_row_sort_name((tide_row_sort)sort));
        time_rows(s, TIDE_ROW_GROUP_NONE, (tide_row_sort)sort, NULL, what);
    }
    time_rows(s, TIDE_ROW_GROUP_OWNER, TIDE_ROW_SORT_SIZE, NULL, "rows by owner");
    time_rows(s, TIDE_ROW_GROUP_NAME, TIDE_ROW_SORT_SIZE, NULL, "rows by name");
    time_rows(s, TIDE_ROW_GROUP_SIZE, TIDE_ROW_SORT_SIZE, NULL, "rows by size");
    static const char *const filters[] = {"conv13",  "!conv13 size>=64KiB", "name~conv1[0-9]/", "alive@peak",
                                          "top=100", "life>3 role=scratch"};
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        time_rows(s, TIDE_ROW_GROUP_NONE, TIDE_ROW_SORT_BEGIN, filters[i], filters[i]);
    time_search(s, "conv13");
    time_search(s, "block.1[0-9]*/conv");
    time_search(s, "(conv1|conv2)/");
    tide_subject_destroy(s);
    fflush(stdout);
    out->done = true;
}

// ---- the view ----

static void trace_view_child(void *arg, bench_answer *out) {
    const tui_job *j = arg;
    bench_tui_view(j->path, NULL);
    out->done = true;
}

static void plan_view_child(void *arg, bench_answer *out) {
    const tui_job *j = arg;
    bench_tui_view(NULL, make_plan(j->n_tensors));
    out->done = true;
}

// ---- ----

static const char *only = ""; ///< parts whose name holds it

static void run(const char *what, bench_work work, tui_job *j) {
    bench_cost cost = {0};
    if (strstr(what, only) == NULL) return;
    printf("\n== %s\n", what);
    fflush(stdout);
    const bench_answer a = bench_run_child(work, j, LIMIT_S, &cost);
    if (!a.done) printf("not done: %s\n", a.text);
    if (a.done) printf("%.2f s, %.2f s CPU, %.1f MB at its highest\n", cost.wall_s, cost.cpu_s, cost.rss_mb);
}

int main(int argc, char **argv) {
    tide_host_return_large();
    bench_options o = {.dir = "/tmp"};
    static tui_job j = {.n_events = 10000000, .n_tensors = 100000};
    const char *trace = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0) o.dir = argv[i + 1];
        if (strcmp(argv[i], "--trace") == 0) trace = argv[i + 1];
        if (strcmp(argv[i], "--only") == 0) only = argv[i + 1];
        if (strcmp(argv[i], "--events") == 0) j.n_events = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--tensors") == 0) j.n_tensors = strtoull(argv[i + 1], NULL, 10);
    }
    char dir[300];
    bench_make_dir(&o, dir, sizeof dir);
    snprintf(j.path, sizeof j.path, "%s/trace.db", dir);
    if (trace != NULL) snprintf(j.path, sizeof j.path, "%s", trace);
    if (bench_file_bytes(j.path) == 0) run("a trace is made", make_child, &j);
    printf("%s: %.1f MB\n", j.path, (double)bench_file_bytes(j.path) / 1048576);
    run("a trace", trace_child, &j);
    run("a plan", plan_child, &j);
    run("the view of the trace", trace_view_child, &j);
    run("the view of the plan", plan_view_child, &j);
    bench_remove_dir(dir);
    return 0;
}
