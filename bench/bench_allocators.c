// SPDX-License-Identifier: MIT
//
// bench_allocators: ns per allocate+free for every allocator of the house beside glibc, mimalloc and jemalloc, in one
// run on one machine. It prints and never judges.
//
// Work: a pair allocates and frees one size over and over; the mix keeps 64 blocks of 64 B to 1 MiB alive and replaces
// them in a fixed pseudo-random order. The memory is never written, so the allocator is measured and not the kernel's
// pages. Each figure is the median of the rounds; a round is about a hundred thousand pairs, or a fifth of a
// second, per thread; contenders take turns within a round, so that a slow moment of the machine meets all alike.
//
//     bench_allocators [--json] [--cpu] [--rounds N] [--threads 1,2,4] [--only TEXT]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "core/base/host_alloc.h"
#include "core/memory/block.h"

enum { MAX_ROUNDS = 99, N_WORKS = 5 };

static const struct {
    const char *name;
    size_t size_bytes; // 0: the mix
} works[N_WORKS] = {
    {"64 B", 64}, {"4 KiB", 4 << 10}, {"64 KiB", 64 << 10}, {"1 MiB", 1 << 20}, {"mix", 0},
};

// ---- rounds ----

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Pairs per thread: as many as fit into a fifth of a second, a hundred thousand at most.
static size_t pairs_for(const bench_contender *c, size_t size_bytes) {
    double wall, cpu;
    bench_run_round(c, size_bytes, 1, 200, &wall, &cpu);
    if (wall <= 0) return 200;
    const double n = 2e8 / wall;
    return n > 100000 ? 100000 : n < 200 ? 200 : (size_t)n;
}

static bool is_possible(const bench_contender *c, int work_i) {
    if (c->max_bytes == 0) return true;
    return works[work_i].size_bytes != 0 && works[work_i].size_bytes <= c->max_bytes;
}

typedef struct options {
    bool json, by_cpu;
    int n_rounds;
    int threads[BENCH_MAX_THREADS];
    int n_threads;
    const char *only;
} options;

/// Fills results for one piece of work with so many threads, one per contender.
static void run_work_rounds(const bench_contender *all, size_t n_all, int work_i, int n_threads, int n_rounds,
                            bench_result *results) {
    static double walls[BENCH_MAX_CONTENDERS][MAX_ROUNDS], cpus[BENCH_MAX_CONTENDERS][MAX_ROUNDS];
    size_t n_pairs[BENCH_MAX_CONTENDERS];
    for (size_t k = 0; k < n_all; k++) {
        n_pairs[k] = is_possible(&all[k], work_i) ? pairs_for(&all[k], works[work_i].size_bytes) : 0;
    }
    for (int r = 0; r < n_rounds; r++) {
        for (size_t k = 0; k < n_all; k++) {
            if (n_pairs[k] > 0)
                bench_run_round(&all[k], works[work_i].size_bytes, n_threads, n_pairs[k], &walls[k][r], &cpus[k][r]);
        }
    }
    for (size_t k = 0; k < n_all; k++) {
        const bool ran = n_pairs[k] > 0;
        results[k] = (bench_result){.contender = &all[k],
                                    .work = works[work_i].name,
                                    .n_threads = n_threads,
                                    .wall_ns = ran ? median(walls[k], n_rounds) : -1,
                                    .cpu_ns = ran ? median(cpus[k], n_rounds) : -1};
    }
}

// ---- PT-7: write access ----

static double access_round(tide_block *b, bool checked, size_t n) {
    uint64_t sum = 0;
    const double start = bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < n; i++) {
        void *p = b->mem.data;
        if (checked && tide_block_write(b, &p, NULL) != TIDE_OK) abort();
        sum += *(volatile unsigned char *)p;
        __asm__ volatile("" : : : "memory"); // each turn looks anew, as separate callers would
    }
    const double ns = (bench_now_ns(CLOCK_THREAD_CPUTIME_ID) - start) / (double)n;
    return sum == UINT64_MAX ? -1 : ns;
}

static bool measure_access(bench_access *out, int n_rounds) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL;
    tide_block *b = NULL;
    tide_status st = tide_cpu_allocator_create(&cpu, &err);
    if (st == TIDE_OK) st = tide_block_create(cpu, 64, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err);
    double block[MAX_ROUNDS], bare[MAX_ROUNDS];
    if (st == TIDE_OK) {
        memset(b->mem.data, 1, 64);
        for (int r = 0; r < n_rounds; r++) {
            block[r] = access_round(b, true, 2000000);
            bare[r] = access_round(b, false, 2000000);
        }
        *out = (bench_access){.block_write_ns = median(block, n_rounds), .bare_read_ns = median(bare, n_rounds)};
    }
    tide_block_unref(b);
    tide_allocator_unref(cpu);
    return st == TIDE_OK;
}

// ---- the command ----

static bool parse_threads(const char *text, options *o) {
    o->n_threads = 0;
    for (const char *p = text; *p != '\0' && o->n_threads < BENCH_MAX_THREADS;) {
        char *end;
        const long n = strtol(p, &end, 10);
        if (end == p || n < 1 || n > BENCH_MAX_THREADS || (*end != ',' && *end != '\0')) return false;
        o->threads[o->n_threads++] = (int)n;
        p = *end == ',' ? end + 1 : end;
    }
    return o->n_threads > 0;
}

static bool parse(int argc, char **argv, options *o) {
    *o = (options){.n_rounds = 7, .threads = {1, 2, 4}, .n_threads = 3};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
        } else if (strcmp(argv[i], "--cpu") == 0) {
            o->by_cpu = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && value != NULL) {
            o->n_rounds = (int)strtol(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--threads") == 0 && value != NULL && parse_threads(value, o)) {
            i++;
        } else if (strcmp(argv[i], "--only") == 0 && value != NULL) {
            o->only = value;
            i++;
        } else {
            return false;
        }
    }
    return o->n_rounds >= 1 && o->n_rounds <= MAX_ROUNDS;
}

/// Those whose name has the text; the others are closed. mimalloc stays: it is the measure.
static size_t keep_only(bench_contender *all, size_t n, const char *text) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (strstr(all[i].name, text) != NULL || strcmp(all[i].name, "mimalloc") == 0) {
            all[kept++] = all[i];
        } else {
            bench_close_all(&all[i], 1);
        }
    }
    return kept;
}

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: bench_allocators [--json] [--cpu] [--rounds N] [--threads 1,2,4] [--only TEXT]\n");
        return 2;
    }
    bench_make_room_for_rivals(argv);
    static bench_contender all[BENCH_MAX_CONTENDERS];
    static bench_result results[BENCH_MAX_RESULTS];
    size_t n_all = bench_open_all(all), n_results = 0;
    if (o.only != NULL) n_all = keep_only(all, n_all, o.only);
    bench_start_threads();
    for (int t = 0; t < o.n_threads; t++) {
        for (int w = 0; w < N_WORKS && n_results + n_all <= BENCH_MAX_RESULTS; w++) {
            run_work_rounds(all, n_all, w, o.threads[t], o.n_rounds, &results[n_results]);
            n_results += n_all;
        }
    }
    bench_stop_threads();
    bench_access access = {.block_write_ns = -1, .bare_read_ns = -1};
    if (!measure_access(&access, o.n_rounds)) fprintf(stderr, "bench: no block to measure access with\n");
    if (o.json) {
        bench_print_json(results, n_results, &access);
    } else {
        bench_print_table(results, n_results, &access, o.by_cpu);
    }
    bench_close_all(all, n_all);
    return 0;
}
