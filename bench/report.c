// SPDX-License-Identifier: MIT
//
// The figures as a table for people and as JSON for programs.
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "bench/bench.h"

/// The same work with as many threads by mimalloc; < 0: it is not here.
static double measure_of(const bench_result *results, size_t n, const bench_result *r, bool by_cpu) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(results[i].contender->name, "mimalloc") == 0 && results[i].n_threads == r->n_threads &&
            strcmp(results[i].work, r->work) == 0)
            return by_cpu ? results[i].cpu_ns : results[i].wall_ns;
    }
    return -1;
}

static void print_cell(const bench_result *results, size_t n, const bench_result *r, bool by_cpu) {
    const double ns = by_cpu ? r->cpu_ns : r->wall_ns, measure = measure_of(results, n, r, by_cpu);
    if (ns < 0) {
        printf(" %14s", "-");
    } else if (measure <= 0) {
        printf(" %8.1f      ", ns);
    } else {
        printf(" %8.1f %4.2fx", ns, ns / measure);
    }
}

static void print_threads(const bench_result *results, size_t n, int n_threads, bool by_cpu) {
    const bench_result *first = NULL;
    printf("%d thread%s: ns per allocate+free%s, and the ratio to mimalloc\n", n_threads, n_threads == 1 ? "" : "s",
           by_cpu ? " of the processor" : "");
    for (size_t i = 0; i < n && first == NULL; i++) {
        if (results[i].n_threads == n_threads) first = &results[i];
    }
    if (first == NULL) return;
    printf("%-24s", "");
    for (size_t i = 0; i < n; i++) {
        if (results[i].n_threads == n_threads && results[i].contender == first->contender)
            printf(" %14s", results[i].work);
    }
    printf("\n");
    for (const bench_result *row = first; row < results + n && row->n_threads == n_threads; row++) {
        if (strcmp(row->work, first->work) != 0) break;
        printf("%-24s", row->contender->name);
        for (size_t i = 0; i < n; i++) {
            if (results[i].n_threads == n_threads && results[i].contender == row->contender)
                print_cell(results, n, &results[i], by_cpu);
        }
        printf("\n");
    }
    printf("\n");
}

void bench_print_table(const bench_result *results, size_t n, const bench_access *access, bool by_cpu) {
    int last = 0;
    for (size_t i = 0; i < n; i++) {
        if (results[i].n_threads == last) continue;
        last = results[i].n_threads;
        print_threads(results, n, last, by_cpu);
    }
    printf("write access to a plain block: %.2f ns; reading a bare pointer: %.2f ns\n", access->block_write_ns,
           access->bare_read_ns);
}

/// Numbers that are not there are null.
static json_t *number(double ns) { return ns < 0 ? json_null() : json_real(ns); }

void bench_print_json(const bench_result *results, size_t n, const bench_access *access) {
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++) {
        const bench_result *r = &results[i];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:i, s:o, s:o}", "allocator", r->contender->name, "work",
                                              r->work, "threads", r->n_threads, "wall_ns", number(r->wall_ns), "cpu_ns",
                                              number(r->cpu_ns)));
    }
    json_t *document = json_pack("{s:s, s:i, s:o, s:{s:o, s:o}}", "schema", "tidemark.bench_allocators", "version", 1,
                                 "results", rows, "write_access", "block_write_ns", number(access->block_write_ns),
                                 "bare_read_ns", number(access->bare_read_ns));
    if (document != NULL) json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(document);
}
