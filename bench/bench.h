// SPDX-License-Identifier: MIT
//
// bench: what the measurements of allocators share. A contender is one allocator, ours or another's, behind two calls;
// a result is what one contender needed for one piece of work with some threads.
#ifndef TIDE_BENCH_BENCH_H
#define TIDE_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "core/memory/allocators/allocators.h"
#include "core/memory/meter.h"

/// One piece of memory as a thread of the measurement holds it: ours needs the whole struct to be freed, theirs `data`.
typedef tide_memory bench_piece;

typedef struct bench_contender {
    const char *name;
    tide_allocator *a;                                     ///< owned; NULL: one of the others
    tide_meter *meter;                                     ///< owned; may be NULL
    size_t max_bytes;                                      ///< largest request; 0: no limit
    bool needs_reset;                                      ///< room comes back with reset alone
    void *(*alloc)(size_t align_bytes, size_t size_bytes); ///< of the others
    void (*free)(void *data);
    const char *version; ///< of the others: which file was loaded
} bench_contender;

enum { BENCH_MAX_CONTENDERS = 32, BENCH_ALIGN_BYTES = 64 };

/// All of ours that can be made here, then glibc, mimalloc and jemalloc, as far as they are there. @return how many
size_t bench_open_all(bench_contender *out);
void bench_close_all(bench_contender *all, size_t n);
/// The others alone, appended to `out`. @return how many
size_t bench_open_rivals(bench_contender *out);
/// jemalloc wants more thread-local memory than a library loaded late is given: starts the program again with room for
/// it, once. Call first.
void bench_make_room_for_rivals(char **argv);

typedef struct bench_result {
    const bench_contender *contender;
    const char *work; ///< "64 B", …, "mix"
    int n_threads;
    double wall_ns; ///< per allocate+free, median of the rounds; < 0: not possible
    double cpu_ns;  ///< the same in time of the processor: without what other programs took
} bench_result;

enum { BENCH_MAX_RESULTS = 1024, BENCH_MAX_THREADS = 16 };

double bench_now_ns(clockid_t clock);
/// The threads that do all the work, from start to stop: as in a program that runs for a while.
void bench_start_threads(void);
void bench_stop_threads(void);
/// `n` pairs of `size_bytes` (0: steps of the mix) by each of `n_threads` at once; the mean over the threads, per pair.
/// wall < 0: not possible.
void bench_run_round(const bench_contender *c, size_t size_bytes, int n_threads, size_t n, double *wall_ns,
                     double *cpu_ns);

/// PT-7: ns of one write access to a plain block, and of reading a bare pointer.
typedef struct bench_access {
    double block_write_ns, bare_read_ns;
} bench_access;

void bench_print_table(const bench_result *results, size_t n, const bench_access *access, bool by_cpu);
void bench_print_json(const bench_result *results, size_t n, const bench_access *access);

#endif
