// SPDX-License-Identifier: MIT
//
// The figures as a table for people and as JSON for programs.
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/base/json_out.h"

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
static void add_ns(tide_json_out *j, const char *key, double ns) {
    if (ns < 0)
        tide_json_null(j, key);
    else
        tide_json_number(j, key, ns, 6);
}

void bench_print_json(const bench_result *results, size_t n, const bench_access *access) {
    tide_text text = {0};
    tide_json_out doc = {.out = &text, .indent = true}, *const j = &doc;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", "tidemark.bench_allocators");
    tide_json_i64(j, "version", 1);
    tide_json_open(j, "results", '[');
    for (size_t i = 0; i < n; i++) {
        const bench_result *r = &results[i];
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "allocator", r->contender->name);
        tide_json_text(j, "work", r->work);
        tide_json_i64(j, "threads", r->n_threads);
        add_ns(j, "wall_ns", r->wall_ns);
        add_ns(j, "cpu_ns", r->cpu_ns);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
    tide_json_open(j, "write_access", '{');
    add_ns(j, "block_write_ns", access->block_write_ns);
    add_ns(j, "bare_read_ns", access->bare_read_ns);
    tide_json_close(j, '}');
    tide_json_close(j, '}');
    if (!text.failed) puts(tide_text_str(&text));
    tide_text_deinit(&text);
}
