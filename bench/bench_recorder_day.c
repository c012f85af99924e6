// SPDX-License-Identifier: MIT
//
// Section day: a program that records for a day and must not fill the disk: many events (a billion, when asked) through
// rings of a fixed size into a trace of a fixed size. Looked at over time: memory and disk; at the end: the sums.
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_recorder.h"
#include "bench/planner_child.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/moments.h"

enum { N_PRODUCERS = 2, MAX_BYTES = 256 << 20, N_LOOKS = 10 };

typedef struct producer {
    tide_observer obs;
    uint32_t index;
    uint64_t n_events;
    _Atomic uint64_t sent;
    bench_stream *s;
    uint64_t live[TIDE_N_KINDS], peak[TIDE_N_KINDS]; ///< of its own kinds: no other thread's
    pthread_t id;
} producer;

static void *produce(void *arg) {
    producer *p = arg;
    for (uint64_t i = 0; i < p->n_events; i++) {
        const tide_memory_event *e = bench_next(p->s);
        p->obs.on_memory(p->obs.self, e);
        uint64_t *live = &p->live[e->kind];
        *live = e->op == TIDE_MEM_ALLOC ? *live + e->requested_bytes : *live - e->requested_bytes;
        if (*live > p->peak[e->kind]) p->peak[e->kind] = *live;
        if (i % 4096 == 0) atomic_store_explicit(&p->sent, i, memory_order_relaxed);
    }
    atomic_store(&p->sent, p->n_events);
    return NULL;
}

typedef struct look {
    uint64_t file, log, feeds;
    double rss_mb;
} look;

static void take_look(const char *dir, const char *trace, look *now, look *highest) {
    char path[340];
    now->file = bench_file_bytes(trace);
    snprintf(path, sizeof path, "%s-wal", trace);
    now->log = bench_file_bytes(path);
    now->feeds = bench_dir_bytes(dir, ".feed-");
    now->rss_mb = bench_rss_mb();
    if (now->file > highest->file) highest->file = now->file;
    if (now->log > highest->log) highest->log = now->log;
    if (now->feeds > highest->feeds) highest->feeds = now->feeds;
    if (now->rss_mb > highest->rss_mb) highest->rss_mb = now->rss_mb;
}

static void print_look(const char *what, uint64_t n, double seconds, const look *l) {
    printf("%-10s %14" PRIu64 " %9.1f %10.1f %10.1f %10.1f %10.1f\n", what, n, seconds, (double)l->file / 1048576,
           (double)l->log / 1048576, (double)l->feeds / 1048576, l->rss_mb);
    fflush(stdout);
}

static uint64_t sent_by(const producer *p) {
    uint64_t n = 0;
    for (int i = 0; i < N_PRODUCERS; i++) n += atomic_load_explicit(&p[i].sent, memory_order_relaxed);
    return n;
}

static void watch(const char *dir, const char *trace, const producer *p, uint64_t n_events) {
    look now = {0}, highest = {0};
    const double t0 = bench_cpu_ns(CLOCK_MONOTONIC);
    uint64_t next = n_events / N_LOOKS;
    for (uint64_t n = 0; n < n_events;) {
        const struct timespec nap = {.tv_nsec = 20000000};
        nanosleep(&nap, NULL);
        n = sent_by(p);
        take_look(dir, trace, &now, &highest);
        if (n < next) continue;
        print_look("", n, (bench_cpu_ns(CLOCK_MONOTONIC) - t0) / 1e9, &now);
        next += n_events / N_LOOKS;
    }
    print_look("highest", n_events, (bench_cpu_ns(CLOCK_MONOTONIC) - t0) / 1e9, &highest);
}

// ---- the end ----

static void check_sums(tide_trace *t, const producer *p) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_kind *kinds = NULL;
    size_t n = 0;
    bool peaks = true;
    uint64_t allocs = 0, frees = 0, bytes = 0, live = 0, want_allocs = 0, want_frees = 0, want_bytes = 0, want_live = 0;
    bench_must(tide_trace_kinds(t, 0, &kinds, &n, &err), &err, "kinds");
    for (size_t k = 0; k < n; k++) {
        allocs += kinds[k].n_allocs;
        frees += kinds[k].n_frees;
        bytes += kinds[k].requested_bytes;
        live += kinds[k].live_at_end_bytes;
        uint64_t peak = 0;
        for (int i = 0; i < N_PRODUCERS; i++) peak += p[i].peak[kinds[k].kind]; // one of them has it
        peaks = peaks && kinds[k].peak_bytes == peak;
    }
    tide_trace_kinds_free(kinds);
    for (int i = 0; i < N_PRODUCERS; i++) {
        want_allocs += p[i].s->n_allocs;
        want_frees += p[i].s->n_frees;
        want_bytes += p[i].s->requested_bytes;
        want_live += p[i].s->requested_bytes - p[i].s->freed_bytes;
    }
    const bool same = allocs == want_allocs && frees == want_frees && bytes == want_bytes && live == want_live;
    printf("totals: %" PRIu64 " allocs, %" PRIu64 " frees, %" PRIu64 " bytes, %" PRIu64 " live at the end: %s\n",
           allocs, frees, bytes, live, same ? "exact" : "NOT what was sent");
    printf("peaks of %zu kinds: %s\n", n, peaks ? "exact" : "NOT those of the program");
    if (!same)
        printf("  sent: %" PRIu64 " allocs, %" PRIu64 " frees, %" PRIu64 " bytes, %" PRIu64 " live\n", want_allocs,
               want_frees, want_bytes, want_live);
}

static void check_live(tide_trace *t, const tide_trace_info *info, const producer *p) {
    tide_error err = TIDE_ERROR_INIT;
    tide_live_set set;
    bool same = true;
    size_t want = 0;
    bench_must(tide_trace_live_set_after(t, info->n_events, &set, &err), &err, "live set");
    for (int i = 0; i < N_PRODUCERS; i++)
        for (size_t k = 0; k < BENCH_SLOTS; k++) want += p[i].s->slots[k].id != 0;
    for (size_t i = 0; i < set.n; i++) {
        const tide_live *b = &set.items[i];
        const uint64_t owner = (b->block_id >> 40) - 1;
        const uint64_t place = owner < N_PRODUCERS ? (b->address - p[owner].s->address) >> 20 : BENCH_SLOTS;
        same = same && place < BENCH_SLOTS && p[owner].s->slots[place].id == b->block_id &&
               p[owner].s->slots[place].bytes == b->requested_bytes;
    }
    printf("live at the end: %zu blocks: %s\n", set.n, same && set.n == want ? "those of the program" : "WRONG");
    tide_live_set_deinit(&set);
    const tide_status st = tide_trace_live_set_after(t, 1, &set, &err);
    printf("who was live after event 1: %s\n", st == TIDE_OK ? "answered" : err.msg);
    if (st == TIDE_OK) tide_live_set_deinit(&set);
}

static void check_end(const char *trace, const producer *p) {
    tide_trace *t = NULL;
    tide_trace_info info;
    tide_error err = TIDE_ERROR_INIT;
    const double t0 = bench_cpu_ns(CLOCK_MONOTONIC);
    bench_must(tide_trace_open(trace, &t, &err), &err, "open");
    const double t1 = bench_cpu_ns(CLOCK_MONOTONIC);
    bench_must(tide_trace_get_info(t, &info, &err), &err, "info");
    printf("opened in %.1f ms: %" PRIu64 " events heard, kept from %" PRIu64 " on, lost %" PRIu64 ", problems %" PRIu64
           ", %.1f MB\n",
           (t1 - t0) / 1e6, info.n_events, info.first_kept_event, info.n_lost, info.n_problems,
           (double)info.file_bytes / 1048576);
    check_sums(t, p);
    check_live(t, &info, p);
    tide_trace_close(t);
}

void bench_day(const bench_options *o) {
    char dir[300], path[320];
    tide_error err = TIDE_ERROR_INIT;
    tide_recorder *rec = NULL;
    const tide_recorder_options opt = {.max_bytes = MAX_BYTES};
    static producer p[N_PRODUCERS];
    printf("\n== day: %" PRIu64 " events of %d threads, rings of 65536, --max-trace 256 MiB\n", o->day_events,
           N_PRODUCERS);
    printf("%-10s %14s %9s %10s %10s %10s %10s\n", "", "events", "s", "trace MB", "log MB", "feeds MB", "RSS MB");
    bench_make_dir(o, dir, sizeof dir);
    snprintf(path, sizeof path, "%s/trace.db", dir);
    bench_must(tide_recorder_open(path, &opt, &rec, &err), &err, "open");
    const double cpu0 = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t i = 0; i < N_PRODUCERS; i++) {
        p[i] = (producer){.obs = tide_recorder_observer(rec), .index = i, .n_events = o->day_events / N_PRODUCERS};
        p[i].s = bench_stream_new(17, i);
        if (p[i].s != NULL) p[i].s->first_kind = i * 2; // two kinds of its own: their peaks hang on no other thread
        if (p[i].s != NULL) p[i].s->n_kinds = 2;
        if (p[i].s == NULL || pthread_create(&p[i].id, NULL, produce, &p[i]) != 0) exit(3);
    }
    watch(dir, path, p, o->day_events / N_PRODUCERS * N_PRODUCERS);
    for (int i = 0; i < N_PRODUCERS; i++) pthread_join(p[i].id, NULL);
    const double t0 = bench_cpu_ns(CLOCK_MONOTONIC);
    bench_must(tide_recorder_close(rec, &err), &err, "close");
    printf("closed in %.2f s; %.1f CPU ns per event in all, producers and drain\n",
           (bench_cpu_ns(CLOCK_MONOTONIC) - t0) / 1e9,
           (bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu0) / (double)o->day_events);
    check_end(path, p);
    for (int i = 0; i < N_PRODUCERS; i++) tide_host_free(p[i].s);
    bench_remove_dir(dir);
}
