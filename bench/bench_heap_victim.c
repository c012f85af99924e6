// SPDX-License-Identifier: MIT
//
// bench_heap_victim: malloc and free in a loop, plain, under heaptrack, or telling tidemark's recorder. 512 places per
// thread, sizes log-uniform from 64 bytes to 1 MiB, called through four functions so that a stack has something to
// walk.
//
//     bench_heap_victim RESULT plain|TRACE THREADS EVENTS      writes "CPU-ns-per-event wall-ns-per-event" to RESULT
//     bench_heap_victim collect ...                            the collector that it starts for itself
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_recorder.h"
#include "core/base/text.h"
#include "profiler/collector.h"

enum { PLACES = 512, MAX_THREADS = 8 };

typedef struct place {
    void *data;
    uint64_t id;
    size_t bytes;
} place;

typedef struct worker {
    const tide_observer *obs; // NULL: no observer
    uint64_t n_events, next_id;
    tide_rng rng;
    place places[PLACES];
    double cpu_ns;
    pthread_t id;
} worker;

static void tell(const worker *w, tide_memory_op op, const place *p) {
    const tide_memory_event event = {.op = op,
                                     .block_id = p->id,
                                     .device = TIDE_CPU,
                                     .kind = TIDE_KIND_HOST_PAGEABLE,
                                     .requested_bytes = p->bytes,
                                     .reserved_bytes = p->bytes,
                                     .address = (uint64_t)(uintptr_t)p->data,
                                     .thread = tide_thread_id(),
                                     .allocator = "malloc",
                                     .tag = "loop",
                                     .scope = tide_scope_current()};
    w->obs->on_memory(w->obs->self, &event);
}

__attribute__((noinline)) static void depth_4(worker *w, place *p, size_t bytes) {
    if (p->data == NULL) {
        *p = (place){.data = malloc(bytes), .id = w->next_id++, .bytes = bytes};
        if (w->obs != NULL) tell(w, TIDE_MEM_ALLOC, p);
        return;
    }
    if (w->obs != NULL) tell(w, TIDE_MEM_FREE_COMPLETED, p);
    free(p->data);
    p->data = NULL;
}
__attribute__((noinline)) static void depth_3(worker *w, place *p, size_t bytes) {
    depth_4(w, p, bytes);
    __asm__ volatile("");
}
__attribute__((noinline)) static void depth_2(worker *w, place *p, size_t bytes) {
    depth_3(w, p, bytes);
    __asm__ volatile("");
}

static void *work(void *arg) {
    worker *w = arg;
    const double t0 = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < w->n_events; i++) {
        const uint64_t r = tide_rng_u64(&w->rng);
        const size_t top = (size_t)64 << (r >> 16) % 14;
        depth_2(w, &w->places[r % PLACES], top + (size_t)(r >> 32) % top);
    }
    w->cpu_ns = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - t0;
    for (size_t i = 0; i < PLACES; i++) free(w->places[i].data);
    return NULL;
}

static int run(const char *result, const char *trace, int n_threads, uint64_t n_events) {
    static worker w[MAX_THREADS];
    tide_recorder *rec = NULL;
    tide_observer obs = {0};
    tide_error err = TIDE_ERROR_INIT;
    double cpu = 0;
    if (trace != NULL) {
        const tide_recorder_options opt = {.drain = TIDE_RECORD_PROCESS, .ring_events = 1 << 18};
        if (tide_recorder_open(trace, &opt, &rec, &err) != TIDE_OK) {
            fprintf(stderr, "bench_heap_victim: %s\n", err.msg);
            return 3;
        }
        obs = tide_recorder_observer(rec);
    }
    const double t0 = bench_cpu_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < n_threads; i++) {
        w[i] = (worker){.obs = trace != NULL ? &obs : NULL,
                        .n_events = n_events,
                        .next_id = ((uint64_t)(i + 1) << 40) + 1,
                        .rng = {.state = (uint64_t)i + 1}};
        if (pthread_create(&w[i].id, NULL, work, &w[i]) != 0) return 3;
    }
    for (int i = 0; i < n_threads; i++) {
        pthread_join(w[i].id, NULL);
        cpu += w[i].cpu_ns;
    }
    const double wall = bench_cpu_ns(CLOCK_MONOTONIC) - t0, n = (double)n_events * n_threads;
    if (rec != NULL && tide_recorder_close(rec, &err) != TIDE_OK) fprintf(stderr, "bench_heap_victim: %s\n", err.msg);
    FILE *f = fopen(result, "w");
    if (f == NULL) return 3;
    fprintf(f, "%.3f %.3f\n", cpu / n, wall / n);
    return fclose(f) == 0 ? 0 : 3;
}

int main(int argc, char **argv) {
    tide_collector_hook(argc, argv);
    if (argc != 5) return 2;
    const int n_threads = (int)strtol(argv[3], NULL, 10);
    if (n_threads < 1 || n_threads > MAX_THREADS) return 2;
    return run(argv[1], strcmp(argv[2], "plain") == 0 ? NULL : argv[2], n_threads, strtoull(argv[4], NULL, 10));
}
