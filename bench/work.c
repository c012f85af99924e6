// SPDX-License-Identifier: MIT
//
// What the threads of the measurement do: pairs of one size, or the mix, and how long it took them.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/bench.h"

enum { N_LIVE = 64, N_TRACE = 4096 };

double bench_now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// ---- one thread's work ----

typedef struct trace_step {
    uint32_t slot, size_bytes;
} trace_step;

static trace_step trace[N_TRACE];

/// 64 B to 1 MiB, all magnitudes alike.
static void make_trace(void) {
    uint64_t x = 0x9E3779B97F4A7C15u;
    for (int i = 0; i < N_TRACE; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const uint32_t low = 64u << ((x >> 33) % 14);
        trace[i] = (trace_step){.slot = (uint32_t)(x >> 40) % N_LIVE, .size_bytes = low + (uint32_t)(x >> 20) % low};
    }
}

typedef struct job {
    const bench_contender *c;
    size_t size_bytes;
    size_t n;
    pthread_barrier_t *start;
    double wall_ns, cpu_ns;
    bool failed;
} job;

/// The arena is full: there is room again when all threads have freed their blocks and one of them resets the arena.
static __attribute__((noinline)) bool make_room(const bench_contender *c, bench_piece *live, size_t n_live) {
    if (!c->needs_reset) return false;
    for (size_t i = 0; i < n_live; i++) {
        tide_allocator_release(c->a, &live[i], 0);
        live[i].data = NULL;
    }
    if (tide_allocator_reset(c->a, NULL) != TIDE_OK) sched_yield();
    return true;
}

static inline bool take(const bench_contender *c, size_t size_bytes, bench_piece *out, bench_piece *live,
                        size_t n_live) {
    if (c->a == NULL) {
        out->data = c->alloc(BENCH_ALIGN_BYTES, size_bytes);
        return out->data != NULL;
    }
    const tide_alloc_request req = {.size_bytes = size_bytes, .align_bytes = BENCH_ALIGN_BYTES, .block_id = 1};
    while (tide_allocator_alloc(c->a, &req, out, NULL) != TIDE_OK) {
        if (!make_room(c, live, n_live)) return false;
    }
    return true;
}

static inline void give(const bench_contender *c, bench_piece *piece) {
    if (c->a != NULL) {
        tide_allocator_release(c->a, piece, 0);
    } else {
        c->free(piece->data);
    }
    piece->data = NULL;
}

static void run_pairs(job *j) {
    bench_piece piece = {0};
    for (size_t i = 0; i < j->n; i++) {
        if (!take(j->c, j->size_bytes, &piece, NULL, 0)) {
            j->failed = true;
            return;
        }
        give(j->c, &piece);
    }
}

static void run_mix(job *j) {
    bench_piece live[N_LIVE] = {{0}};
    for (size_t i = 0; i < j->n && !j->failed; i++) {
        const trace_step *step = &trace[i % N_TRACE];
        bench_piece *slot = &live[step->slot];
        if (slot->data != NULL) give(j->c, slot);
        j->failed = !take(j->c, step->size_bytes, slot, live, N_LIVE);
    }
    for (size_t i = 0; i < N_LIVE; i++) {
        if (live[i].data != NULL) give(j->c, &live[i]);
    }
}

static void run_work(job *j) {
    if (j->size_bytes != 0) {
        run_pairs(j);
    } else {
        run_mix(j);
    }
}

static void run_timed(job *j) {
    const size_t n = j->n;
    j->n = n / 8 + 1; // warms the caches of the allocator and of the processor
    run_work(j);
    j->n = n;
    pthread_barrier_wait(j->start);
    const double wall = bench_now_ns(CLOCK_MONOTONIC), cpu = bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
    run_work(j);
    j->wall_ns = (bench_now_ns(CLOCK_MONOTONIC) - wall) / (double)n;
    j->cpu_ns = (bench_now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)n;
}

// ---- the threads: as in a program that runs for a while, the same ones do all the work ----

typedef struct worker {
    pthread_t thread;
    job job;
    bool is_told; // guarded by told_lock
} worker;

static worker workers[BENCH_MAX_THREADS];
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;

static void *serve(void *arg) {
    worker *w = arg;
    for (;;) {
        pthread_mutex_lock(&told_lock);
        while (!w->is_told) pthread_cond_wait(&told, &told_lock);
        pthread_mutex_unlock(&told_lock);
        if (w->job.c == NULL) return NULL;
        run_timed(&w->job);
        pthread_mutex_lock(&told_lock);
        w->is_told = false;
        pthread_cond_signal(&done);
        pthread_mutex_unlock(&told_lock);
    }
}

void bench_start_threads(void) {
    make_trace();
    for (int i = 0; i < BENCH_MAX_THREADS; i++) {
        if (pthread_create(&workers[i].thread, NULL, serve, &workers[i]) == 0) continue;
        fprintf(stderr, "bench: no thread to be had\n");
        exit(1);
    }
}

/// Each of the first `n` does the job once.
static void tell_workers(const job *what, int n) {
    pthread_mutex_lock(&told_lock);
    for (int i = 0; i < n; i++) {
        workers[i].job = *what;
        workers[i].is_told = true;
    }
    pthread_cond_broadcast(&told);
    for (int i = 0; i < n && what->c != NULL; i++) {
        while (workers[i].is_told) pthread_cond_wait(&done, &told_lock);
    }
    pthread_mutex_unlock(&told_lock);
}

void bench_stop_threads(void) {
    tell_workers(&(job){.c = NULL}, BENCH_MAX_THREADS);
    for (int i = 0; i < BENCH_MAX_THREADS; i++) pthread_join(workers[i].thread, NULL);
}

/// Mean over the threads of one round; wall < 0: not possible.
void bench_run_round(const bench_contender *c, size_t size_bytes, int n_threads, size_t n, double *wall_ns,
                     double *cpu_ns) {
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)n_threads);
    tell_workers(&(job){.c = c, .size_bytes = size_bytes, .n = n, .start = &start}, n_threads);
    pthread_barrier_destroy(&start);
    *wall_ns = *cpu_ns = 0;
    bool failed = false;
    for (int i = 0; i < n_threads; i++) {
        *wall_ns += workers[i].job.wall_ns / n_threads;
        *cpu_ns += workers[i].job.cpu_ns / n_threads;
        failed = failed || workers[i].job.failed;
    }
    if (failed) *wall_ns = *cpu_ns = -1;
}
