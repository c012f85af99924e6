// SPDX-License-Identifier: MIT
//
// Section heaptrack: the same loop of malloc and free plain, under heaptrack, and telling the recorder (whose collector
// is a process of its own, as heaptrack's interpreter is).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_recorder.h"
#include "bench/planner_child.h"
#include "core/base/host_alloc.h"

enum { EVENTS = 2000000, ROWS = 4 };

typedef struct heap_row {
    const char *name;
    bench_samples cpu, wall, all;
    double bytes;
} heap_row;

static bool is_there(const char *program) {
    const char *path = getenv("PATH");
    char name[600];
    while (path != NULL && *path != '\0') {
        const size_t n = strcspn(path, ":");
        snprintf(name, sizeof name, "%.*s/%s", (int)n, path, program);
        if (access(name, X_OK) == 0) return true;
        path += n + (path[n] == ':');
    }
    return false;
}

/// Runs the victim once, behind `front` (NULL-terminated words), and reads what it measured.
static bool run_once(const bench_options *o, const char *dir, const char *const *front, const char *how, int n_threads,
                     heap_row *row) {
    char words[16][340], *argv[17];
    char result[340];
    size_t n = 0;
    bench_cost cost = {0};
    double cpu = 0, wall = 0;
    snprintf(result, sizeof result, "%s/result", dir);
    remove(result);
    for (; front != NULL && front[n] != NULL; n++) snprintf(words[n], sizeof words[n], "%s", front[n]);
    snprintf(words[n++], sizeof words[0], "%s/bench_heap_victim", o->programs);
    snprintf(words[n++], sizeof words[0], "%s", result);
    snprintf(words[n++], sizeof words[0], "%s", how);
    snprintf(words[n++], sizeof words[0], "%d", n_threads);
    snprintf(words[n++], sizeof words[0], "%d", EVENTS / n_threads);
    for (size_t i = 0; i < n; i++) argv[i] = words[i];
    argv[n] = NULL;
    if (bench_run_program(argv, 600, &cost) != 0) return false;
    FILE *f = fopen(result, "r");
    const bool got = f != NULL && fscanf(f, "%lf %lf", &cpu, &wall) == 2;
    if (f != NULL) fclose(f);
    if (!got) return false;
    bench_add(&row->cpu, cpu);
    bench_add(&row->wall, wall);
    bench_add(&row->all, cost.cpu_s * 1e9 / EVENTS);
    return true;
}

static bool run_row(const bench_options *o, int which, int n_threads, heap_row *row) {
    char dir[300], path[340];
    bench_make_dir(o, dir, sizeof dir);
    snprintf(path, sizeof path, "%s/out", dir);
    const char *const packed[] = {"heaptrack", "-o", path, NULL};
    const char *const raw[] = {"heaptrack", "--raw", "-o", path, NULL};
    const char *const *const fronts[ROWS] = {NULL, packed, raw, NULL};
    const bool ok = run_once(o, dir, fronts[which], which == 3 ? path : "plain", n_threads, row);
    row->bytes = which > 0 ? (double)bench_dir_bytes(dir, "out") / EVENTS : 0;
    bench_remove_dir(dir);
    return ok;
}

void bench_heap(const bench_options *o) {
    static const char *const names[ROWS] = {"plain", "heaptrack", "heaptrack --raw", "tidemark recorder"};
    printf("\n== heaptrack: %d malloc and free, ns per event: CPU of the program's threads, wall, CPU of everything\n",
           EVENTS);
    if (!is_there("heaptrack")) puts("heaptrack: absent (scripts/deps.sh bench installs it)");
    printf("%-20s %-34s %-34s\n", "", "1 thread", "2 threads");
    printf("%-20s %8s %8s %8s %8s  %8s %8s %8s %8s\n", "", "CPU", "wall", "all", "B/event", "CPU", "wall", "all",
           "B/event");
    for (int which = 0; which < ROWS; which++) {
        if ((which == 1 || which == 2) && !is_there("heaptrack")) continue;
        printf("%-20s", names[which]);
        for (int n_threads = 1; n_threads <= 2; n_threads++) {
            heap_row *row = tide_host_calloc(1, sizeof *row);
            if (row == NULL) exit(3);
            for (int k = 0; k < o->repeats; k++)
                if (!run_row(o, which, n_threads, row)) break;
            printf(" %8.1f %8.1f %8.1f %8.1f ", bench_quantile(&row->cpu, 0.5), bench_quantile(&row->wall, 0.5),
                   bench_quantile(&row->all, 0.5), row->bytes);
            fflush(stdout);
            tide_host_free(row);
        }
        printf("\n");
    }
}
