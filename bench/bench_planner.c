// SPDX-License-Identifier: MIT
//
// bench_planner: how small the planner's plans are, what proves that they cannot be smaller, and what they cost. It
// prints and never judges.
//
//     bench_planner [--shared DIR] [--samples DIR] [--seconds S] [SECTION…]
//
// Sections: capacity, minimise (MiniMalloc's challenging instances), dsa (real programs), graphs (all samples and
// shared models), passes (the lower bound, passes off and on), scale (many random lifetimes), growth (each heuristic,
// from 10^3 to 10^6 lifetimes). None named: all of them.
//
// Each row runs in a process of its own: CPU seconds and peak memory (RSS) are that row's, reading the file included.
// MiniMalloc's own program is run beside, when the environment variable TIDE_MINIMALLOC names it.
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/planner_child.h"
#include "bench/planner_models.h"
#include "bench/planner_work.h"
#include "core/base/host_alloc.h"
#include "planner/passes.h"

typedef struct options {
    const char *shared, *samples;
    double seconds;         // of search, where a section has a time limit
    const char *minimalloc; // the program; NULL: not here
} options;

enum { MAX_FILES = 64 };
typedef struct files {
    char paths[MAX_FILES][BENCH_PATH_BYTES];
    size_t n;
} files;

// ---- files ----

static int compare_paths(const void *a, const void *b) { return strcmp(a, b); }

/// The CSVs of a folder below the shared one, by name.
static void list_files(const options *o, const char *folder, files *out) {
    char path[BENCH_PATH_BYTES];
    out->n = 0;
    snprintf(path, sizeof path, "%.200s/data/%.60s", o->shared, folder);
    DIR *dir = opendir(path);
    if (dir == NULL) return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL && out->n < MAX_FILES;) {
        if (strstr(e->d_name, ".csv") == NULL) continue;
        snprintf(out->paths[out->n++], BENCH_PATH_BYTES, "%.300s/%.200s", path, e->d_name);
    }
    closedir(dir);
    qsort(out->paths, out->n, sizeof out->paths[0], compare_paths);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/// The capacity that a name ends with: "A.1048576.csv"; 0: none.
static uint64_t capacity_of(const char *path) {
    const char *end = strstr(path, ".csv"), *at = end;
    while (at != NULL && at > path && at[-1] >= '0' && at[-1] <= '9') at--;
    return at != NULL && at < end ? strtoull(at, NULL, 10) : 0;
}

static tide_status read_list(const char *path, tide_lifetimes *out, tide_error *err) {
    char *data;
    size_t len;
    TIDE_TRY(tide_read_file(path, 0, &data, &len, err));
    const tide_status st = tide_lifetimes_from_csv(data, len, path, 0, out, err);
    tide_host_free(data);
    return st;
}

// ---- one plan, in the child ----

enum { N_ITEMS, BYTES, BOUND, PROVED, NAIVE, TIME_NS, VERIFY_NS };

typedef struct plan_job {
    const char *path; // a list; NULL: `n` lifetimes by chance
    size_t n;
    uint32_t density;
    const char *strategy; // NULL: the default
    tide_strategy_options opt;
} plan_job;

static tide_status make_plan(const plan_job *j, bench_answer *out, tide_error *err) {
    tide_lifetimes lt = {0};
    tide_memory_plan *plan = NULL;
    const tide_strategy *strategy = tide_strategy_default();
    if (j->path != NULL)
        TIDE_TRY(read_list(j->path, &lt, err));
    else
        TIDE_TRY(tide_planner_work_make(1, j->n, j->density, &lt, err));
    if (j->strategy != NULL) TIDE_TRY(tide_strategy_find(j->strategy, &strategy, err));
    TIDE_TRY(tide_plan_make(&lt, strategy, &j->opt, &plan, err));
    const uint64_t t0 = tide_now_ns();
    TIDE_TRY(tide_plan_verify(plan, NULL, err));
    const uint64_t numbers[] = {
        lt.n,          plan->bytes,       plan->lower_bound_bytes, plan->proved_bytes, plan->naive_bytes,
        plan->time_ns, tide_now_ns() - t0};
    memcpy(out->n, numbers, sizeof numbers);
    return TIDE_OK; // the process ends here: nothing is given back
}

static void plan_child(void *arg, bench_answer *out) {
    tide_error err = TIDE_ERROR_INIT;
    out->done = make_plan(arg, out, &err) == TIDE_OK;
    snprintf(out->text, sizeof out->text, "%.150s", err.msg);
}

static double ratio(uint64_t a, uint64_t b) { return b > 0 ? (double)a / (double)b : 1; }

/// What is known: proven, or how far the plan may be from what is.
static const char *certificate(const bench_answer *a, char *buf, size_t buf_bytes) {
    if (a->n[BYTES] == a->n[PROVED]) return "proven";
    snprintf(buf, buf_bytes, "<= +%.3f %%", 100 * (ratio(a->n[BYTES], a->n[PROVED]) - 1));
    return buf;
}

// ---- MiniMalloc's own program ----

static void run_minimalloc(const options *o, const char *path, uint64_t capacity, char *buf, size_t buf_bytes) {
    char capacity_arg[64], input_arg[BENCH_PATH_BYTES + 16], program[BENCH_PATH_BYTES];
    char output_arg[] = "--output=/dev/null", timeout_arg[] = "--timeout=120s";
    bench_cost cost;
    if (o->minimalloc == NULL) {
        snprintf(buf, buf_bytes, "absent");
        return;
    }
    snprintf(program, sizeof program, "%s", o->minimalloc);
    snprintf(capacity_arg, sizeof capacity_arg, "--capacity=%" PRIu64, capacity);
    snprintf(input_arg, sizeof input_arg, "--input=%s", path);
    char *const argv[] = {program, capacity_arg, input_arg, output_arg, timeout_arg, NULL};
    const int code = bench_run_program(argv, 150, &cost);
    if (code < 0)
        snprintf(buf, buf_bytes, "no answer");
    else
        snprintf(buf, buf_bytes, "%.3f s%s", cost.cpu_s, code == 0 ? "" : " (none)");
}

// ---- sections ----

static void capacity(const options *o) {
    files list;
    double total = 0;
    printf("\n== capacity: does it fit into what the name says? (%s)\n", "search, 120 s at most, all processors");
    printf("%-22s %6s %10s %10s %-8s %9s %9s %8s  %s\n", "instance", "n", "capacity", "height", "answer", "CPU s",
           "wall s", "RSS MB", "MiniMalloc CPU");
    list_files(o, "minimalloc", &list);
    for (size_t i = 0; i < list.n; i++) {
        const uint64_t limit = capacity_of(list.paths[i]);
        plan_job job = {.path = list.paths[i], .opt = {.capacity_bytes = limit, .time_limit_ns = 120000000000u}};
        bench_cost cost = {0};
        const bench_answer a = bench_run_child(plan_child, &job, 150, &cost);
        char theirs[48];
        run_minimalloc(o, list.paths[i], limit, theirs, sizeof theirs);
        total += cost.cpu_s;
        if (a.done)
            printf("%-22s %6" PRIu64 " %10" PRIu64 " %10" PRIu64 " %-8s %9.3f %9.3f %8.1f  %s\n",
                   base_name(list.paths[i]), a.n[N_ITEMS], limit, a.n[BYTES],
                   a.n[BYTES] <= limit   ? "fits"
                   : a.n[PROVED] > limit ? "cannot"
                                         : "unknown",
                   cost.cpu_s, cost.wall_s, cost.rss_mb, theirs);
        else
            printf("%-22s %s\n", base_name(list.paths[i]), a.text);
    }
    printf("%-22s %39s %18.3f\n", "together", "", total);
}

static void plan_rows(const files *list, const plan_job *with, unsigned limit_s) {
    printf("%-42s %7s %14s %14s %8s %-14s %9s %9s %8s\n", "instance", "n", "height", "lower bound", "ratio",
           "certificate", "CPU s", "wall s", "RSS MB");
    for (size_t i = 0; i < list->n; i++) {
        plan_job job = *with;
        bench_cost cost = {0};
        char buf[32];
        job.path = list->paths[i];
        const bench_answer a = bench_run_child(plan_child, &job, limit_s, &cost);
        if (a.done)
            printf("%-42s %7" PRIu64 " %14" PRIu64 " %14" PRIu64 " %8.5f %-14s %9.3f %9.3f %8.1f\n",
                   base_name(list->paths[i]), a.n[N_ITEMS], a.n[BYTES], a.n[BOUND], ratio(a.n[BYTES], a.n[BOUND]),
                   certificate(&a, buf, sizeof buf), cost.cpu_s, cost.wall_s, cost.rss_mb);
        else
            printf("%-42s %s\n", base_name(list->paths[i]), a.text);
    }
}

static void minimise(const options *o) {
    files list;
    const plan_job job = {.opt = {.time_limit_ns = (uint64_t)(o->seconds * 1e9)}};
    printf("\n== minimise: the smallest height, no capacity told (search, %g s each)\n", o->seconds);
    list_files(o, "minimalloc", &list);
    plan_rows(&list, &job, (unsigned)o->seconds + 60);
}

static void dsa(const options *o) {
    files list;
    const plan_job job = {.opt = {.time_limit_ns = 5000000000u}};
    printf("\n== dsa: lifetimes of real programs (search, 5 s each)\n");
    list_files(o, "dsa", &list);
    plan_rows(&list, &job, 120);
}

// ---- models, in the child ----

enum { M_STEPS = VERIFY_NS + 1, M_OFF_BOUND, M_PASS_NS, M_AFTER };

static tide_status plan_model(const bench_model *m, bench_answer *out, tide_error *err) {
    tide_program *program = NULL;
    tide_lifetimes lt = {0};
    tide_memory_plan *plan = NULL;
    tide_pass_report report;
    const tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN};
    TIDE_TRY(bench_build_model(m, &program, err));
    const uint64_t t0 = tide_now_ns();
    TIDE_TRY(tide_passes_run(program, &opt, &lt, &report, err));
    const uint64_t t1 = tide_now_ns();
    TIDE_TRY(tide_plan_make(&lt, tide_strategy_default(), NULL, &plan, err));
    const uint64_t numbers[] = {
        lt.n,          plan->bytes, plan->lower_bound_bytes, plan->proved_bytes, plan->naive_bytes,
        plan->time_ns, 0,           program->n_steps,        report.given_bytes, t1 - t0};
    memcpy(out->n, numbers, sizeof numbers);
    for (int p = 0; p < TIDE_N_PASSES && M_AFTER + p < BENCH_NUMBERS; p++)
        out->n[M_AFTER + p] = report.gains[p].before_bytes - report.gains[p].after_bytes;
    return TIDE_OK;
}

static void model_child(void *arg, bench_answer *out) {
    tide_error err = TIDE_ERROR_INIT;
    out->done = plan_model(arg, out, &err) == TIDE_OK;
    snprintf(out->text, sizeof out->text, "%.150s", err.msg);
}

typedef void (*print_model)(const bench_model *m, const bench_answer *a, const bench_cost *cost);

static void for_models(const options *o, print_model print) {
    bench_model *models = tide_host_calloc(BENCH_MAX_MODELS, sizeof *models);
    const size_t n = models != NULL ? bench_list_models(o->samples, o->shared, models) : 0;
    for (size_t i = 0; i < n; i++) {
        bench_cost cost = {0};
        const bench_answer a = bench_run_child(model_child, &models[i], 120, &cost);
        if (a.done)
            print(&models[i], &a, &cost);
        else
            printf("%-24s %.100s\n", models[i].name, a.text);
    }
    tide_host_free(models);
}

static void print_graph(const bench_model *m, const bench_answer *a, const bench_cost *cost) {
    char buf[32];
    printf("%-24s %6" PRIu64 " %7" PRIu64 " %12" PRIu64 " %12" PRIu64 " %-14s %10.3f %10.3f %9.3f %8.1f\n", m->name,
           a->n[M_STEPS], a->n[N_ITEMS], a->n[BYTES], a->n[BOUND], certificate(a, buf, sizeof buf),
           (double)a->n[TIME_NS] / 1e6, (double)a->n[M_PASS_NS] / 1e6, cost->cpu_s, cost->rss_mb);
}

static void graphs(const options *o) {
    printf("\n== graphs: all samples and shared models (search, passes on; CPU and RSS with the import)\n");
    printf("%-24s %6s %7s %12s %12s %-14s %10s %10s %9s %8s\n", "model", "steps", "tensors", "bytes", "lower bound",
           "certificate", "search ms", "passes ms", "CPU s", "RSS MB");
    for_models(o, print_graph);
}

static double percent(uint64_t saved, uint64_t of) {
    return saved > 0 && of > 0 ? -100 * (double)saved / (double)of : 0;
}

static void print_passes(const bench_model *m, const bench_answer *a, const bench_cost *cost) {
    (void)cost;
    const uint64_t given = a->n[M_OFF_BOUND];
    printf("%-24s %12" PRIu64 " %12" PRIu64 " %7.1f %%", m->name, given, a->n[BOUND],
           percent(given - a->n[BOUND], given));
    for (int p = 0; p < TIDE_PASS_RECOMPUTE; p++) printf(" %8.1f", percent(a->n[M_AFTER + p], given));
    printf("\n");
}

static void passes(const options *o) {
    printf("\n== passes: the lower bound without and with them, and what each gained (%% of the bound without)\n");
    printf("%-24s %12s %12s %9s", "model", "off", "on", "");
    for (int p = 0; p < TIDE_PASS_RECOMPUTE; p++) printf(" %8s", tide_pass_name((tide_pass)p));
    printf("\n");
    for_models(o, print_passes);
}

// ---- size ----

static void print_size(const char *what, size_t n, const bench_answer *a, const bench_cost *cost) {
    if (a->done)
        printf("%-22s %8zu %9.5f %12.3f %9.3f %9.1f %10.3f\n", what, n, ratio(a->n[BYTES], a->n[BOUND]),
               (double)a->n[TIME_NS] / 1e6, cost->cpu_s, cost->rss_mb, (double)a->n[VERIFY_NS] / 1e6);
    else
        printf("%-22s %8zu %s\n", what, n, a->text);
}

static void print_size_heads(const char *first) {
    printf("%-22s %8s %9s %12s %9s %9s %10s\n", first, "n", "ratio", "plan ms", "CPU s", "RSS MB", "verify ms");
}

static void scale(const options *o) {
    (void)o;
    printf("\n== scale: random lifetimes with the size mix of real traces (search, default limits)\n");
    print_size_heads("alive together");
    static const uint32_t densities[] = {30, 300};
    static const size_t sizes[] = {10000, 1000000};
    for (size_t d = 0; d < 2; d++) {
        for (size_t k = 0; k < 2; k++) {
            plan_job job = {.n = sizes[k], .density = densities[d]};
            bench_cost cost = {0};
            char what[32];
            const bench_answer a = bench_run_child(plan_child, &job, 120, &cost);
            snprintf(what, sizeof what, "about %" PRIu32, densities[d]);
            print_size(what, sizes[k], &a, &cost);
        }
    }
}

static void growth(const options *o) {
    (void)o;
    const tide_strategy *const *all;
    const size_t n_all = tide_strategies(&all);
    printf("\n== growth: each strategy from 10^3 to 10^6 random lifetimes, about 100 alive together\n");
    print_size_heads("strategy");
    for (size_t s = 0; s < n_all; s++) {
        for (size_t n = 1000; n <= 1000000; n *= 10) {
            plan_job job = {.n = n, .density = 100, .strategy = all[s]->name};
            bench_cost cost = {0};
            const bench_answer a = bench_run_child(plan_child, &job, 90, &cost);
            print_size(all[s]->name, n, &a, &cost);
        }
    }
}

// ---- the program ----

static const struct {
    const char *name;
    void (*run)(const options *o);
} sections[] = {{"capacity", capacity}, {"minimise", minimise}, {"dsa", dsa},      {"graphs", graphs},
                {"passes", passes},     {"scale", scale},       {"growth", growth}};
enum { N_SECTIONS = sizeof sections / sizeof sections[0] };

static int usage(void) {
    fputs("usage: bench_planner [--shared DIR] [--samples DIR] [--seconds S] [SECTION…]\nsections:", stderr);
    for (size_t s = 0; s < N_SECTIONS; s++) fprintf(stderr, " %s", sections[s].name);
    fputc('\n', stderr);
    return 2;
}

static bool take_section(const char *name, bool *wanted) {
    for (size_t s = 0; s < N_SECTIONS; s++) {
        if (strcmp(name, sections[s].name) != 0) continue;
        wanted[s] = true;
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    const char *shared = getenv("TIDE_SHARED_DIR");
    options o = {.shared = shared != NULL ? shared : "../shared",
                 .samples = "sample_graphs",
                 .seconds = 10,
                 .minimalloc = getenv("TIDE_MINIMALLOC")};
    bool wanted[N_SECTIONS] = {false}, some = false;
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--shared") == 0 && has_value)
            o.shared = argv[++i];
        else if (strcmp(argv[i], "--samples") == 0 && has_value)
            o.samples = argv[++i];
        else if (strcmp(argv[i], "--seconds") == 0 && has_value)
            o.seconds = strtod(argv[++i], NULL);
        else if (take_section(argv[i], wanted))
            some = true;
        else
            return usage();
    }
    if (!(o.seconds > 0 && o.seconds < 3600)) return usage();
    printf("planner: heights in bytes; CPU seconds and peak memory of one process each; %ld processors\n",
           sysconf(_SC_NPROCESSORS_ONLN));
    if (o.minimalloc == NULL) puts("MiniMalloc: absent (name its program in TIDE_MINIMALLOC)");
    for (size_t s = 0; s < N_SECTIONS; s++) {
        if (wanted[s] || !some) sections[s].run(&o);
    }
    return 0;
}
