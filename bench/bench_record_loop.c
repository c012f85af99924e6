// SPDX-License-Identifier: MIT
//
// A program that knows nothing of tidemark and allocates: what bench_record.py runs alone, recorded and under
// heaptrack.
//
//     bench_record_loop THREADS EVENTS ROUNDS DEPTH    ns of the processor for an event of the quickest round, of the
//                                                      slowest of its threads; bytes resident at most
//
// A round is a burst of allocations, each freed 64 later, below DEPTH calls. Between two rounds there is a rest, in
// which what the burst left in a ring can be taken.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_THREADS = 1024, KEPT = 64 };

static int n_events, n_rounds, depth;

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void burst(void **kept) {
    for (int i = 0; i < n_events / 2; i++) {
        void **slot = &kept[i % KEPT];
        free(*slot);
        *slot = malloc(16 + (size_t)(i * 7 % 256));
        __asm__ volatile("" ::"r"(*slot) : "memory");
    }
}

// NOLINTNEXTLINE(misc-no-recursion) // the depth of the stack is what is asked for
static __attribute__((noinline)) void below(int calls, void **kept) {
    if (calls <= 0)
        burst(kept);
    else
        below(calls - 1, kept);
    __asm__ volatile("" ::: "memory"); // no tail call
}

static void *run(void *least) {
    void *kept[KEPT] = {0};
    double best = 1e18;
    for (int r = 0; r < n_rounds; r++) {
        const double t0 = cpu_ns();
        below(depth, kept);
        const double ns = n_events > 0 ? (cpu_ns() - t0) / n_events : 0;
        if (ns < best) best = ns;
        if (r + 1 < n_rounds) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    for (int i = 0; i < KEPT; i++) free(kept[i]);
    *(double *)least = best;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    const int n_threads = (int)strtol(argv[1], NULL, 10);
    n_events = (int)strtol(argv[2], NULL, 10);
    n_rounds = (int)strtol(argv[3], NULL, 10);
    depth = (int)strtol(argv[4], NULL, 10);
    static pthread_t ids[MAX_THREADS];
    static double least[MAX_THREADS];
    if (n_threads < 1 || n_threads > MAX_THREADS) return 2;
    for (int i = 1; i < n_threads; i++)
        if (pthread_create(&ids[i], NULL, run, &least[i]) != 0) return 3;
    run(&least[0]);
    double worst = least[0];
    for (int i = 1; i < n_threads; i++) {
        pthread_join(ids[i], NULL);
        if (least[i] > worst) worst = least[i];
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%.2f %ld\n", worst, used.ru_maxrss * 1024);
    return 0;
}
