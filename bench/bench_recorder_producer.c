// SPDX-License-Identifier: MIT
//
// Section producer: what an event costs the thread that it happens on, beside a line of a CSV log and an insert into
// SQLite, each under a lock, as such tools do it.
//
// Threads send in bursts that fit into their rings, and the recorder is let catch up between them: a thread that waits
// for room would measure the drain. Counted is the processor time of the sending threads, all that the callback does;
// and their page faults, which would say that a mapped ring has to be fetched again.
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bench_recorder.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/clock.h"

enum { BURST = 30000, RING = 65536, MAX_THREADS = 4, N_BURSTS = 60 };

typedef struct contender {
    const char *name;
    int n_bursts;
    void (*open)(const char *dir);
    tide_observer (*observer)(void);
    void (*catch_up)(void); // NULL: nothing to wait for
    void (*close)(void);
} contender;

// ---- nothing ----

static void nothing(void *self, const tide_memory_event *event) {
    __asm__ volatile("" : : "r"(self), "r"(event) : "memory");
}
static void open_nothing(const char *dir) { (void)dir; }
static tide_observer nothing_observer(void) { return (tide_observer){.on_memory = nothing, .no_time = true}; }
static void close_nothing(void) {}

// ---- the recorder ----

static tide_recorder *recorder;

static void open_recorder(const char *dir) {
    char path[320];
    tide_error err = TIDE_ERROR_INIT;
    const tide_recorder_options opt = {.form = TIDE_RECORD_CHUNKS, .ring_events = RING};
    snprintf(path, sizeof path, "%s/trace.db", dir);
    bench_must(tide_recorder_open(path, &opt, &recorder, &err), &err, "open");
}
static tide_observer recorder_observer(void) { return tide_recorder_observer(recorder); }
static void catch_up(void) {
    tide_error err = TIDE_ERROR_INIT;
    bench_must(tide_recorder_flush(recorder, &err), &err, "flush");
}
static void close_recorder(void) {
    tide_error err = TIDE_ERROR_INIT;
    bench_must(tide_recorder_close(recorder, &err), &err, "close");
}

// ---- a CSV line under a lock ----
//
// As allocator logs of the field write them: thread, time of day, action, pointer, size, stream. Digits are put by
// hand and the buffer is written as a whole: what such a line costs at least.

static struct {
    pthread_mutex_t lock;
    FILE *file;
} csv = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *put_number(char *p, uint64_t v) {
    char digits[20];
    int n = 0;
    do digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    while (n > 0) *p++ = digits[--n];
    return p;
}
static char *put_hex(char *p, uint64_t v) {
    *p++ = '0';
    *p++ = 'x';
    for (int shift = 44; shift >= 0; shift -= 4) *p++ = "0123456789abcdef"[v >> shift & 15];
    return p;
}
static char *put_two(char *p, uint64_t v) {
    *p++ = (char)('0' + v / 10 % 10);
    *p++ = (char)('0' + v % 10);
    return p;
}

static void csv_line(void *self, const tide_memory_event *e) {
    char line[128], *p = line;
    struct timespec now;
    (void)self;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t s = (uint64_t)now.tv_sec % 86400;
    p = put_number(p, e->thread);
    *p++ = ',';
    p = put_two(p, s / 3600);
    *p++ = ':';
    p = put_two(p, s / 60 % 60);
    *p++ = ':';
    p = put_two(p, s % 60);
    *p++ = ':';
    p = put_number(p, (uint64_t)now.tv_nsec / 1000);
    *p++ = ',';
    const char *action = e->op == TIDE_MEM_ALLOC ? "allocate," : "free,";
    const size_t n = strlen(action);
    memcpy(p, action, n);
    p = put_hex(p + n, e->address);
    *p++ = ',';
    p = put_number(p, e->requested_bytes);
    *p++ = ',';
    p = put_number(p, e->stream);
    *p++ = '\n';
    pthread_mutex_lock(&csv.lock);
    fwrite(line, 1, (size_t)(p - line), csv.file);
    pthread_mutex_unlock(&csv.lock);
}
static void open_csv(const char *dir) {
    char path[320];
    snprintf(path, sizeof path, "%s/log.csv", dir);
    csv.file = fopen(path, "w");
    if (csv.file == NULL) exit(3);
    setvbuf(csv.file, NULL, _IOFBF, 1 << 16);
}
static tide_observer csv_observer(void) { return (tide_observer){.on_memory = csv_line, .no_time = true}; }
static void close_csv(void) { fclose(csv.file); }

// ---- an insert under a lock ----

static struct {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *insert;
    uint64_t n;
} sql = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void sql_do(const char *text) {
    if (sqlite3_exec(sql.db, text, NULL, NULL, NULL) == SQLITE_OK) return;
    fprintf(stderr, "bench_recorder: %s: %s\n", text, sqlite3_errmsg(sql.db));
    exit(3);
}
static void open_sql(const char *dir) {
    char path[320];
    snprintf(path, sizeof path, "%s/bare.db", dir);
    if (sqlite3_open(path, &sql.db) != SQLITE_OK) exit(3);
    sql_do("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
           "CREATE TABLE event(id INTEGER PRIMARY KEY, t_ns INTEGER, op INTEGER, block_id INTEGER, kind INTEGER, "
           "device INTEGER, stream INTEGER, requested_bytes INTEGER, reserved_bytes INTEGER, address INTEGER, "
           "thread INTEGER, tag TEXT) STRICT; BEGIN");
    if (sqlite3_prepare_v2(sql.db, "INSERT INTO event VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?)", -1, &sql.insert, NULL) !=
        SQLITE_OK)
        exit(3);
}
static void sql_insert(void *self, const tide_memory_event *e) {
    (void)self;
    const uint64_t numbers[] = {tide_now_ns(), (uint64_t)e->op,    e->block_id,       (uint64_t)e->kind, 0,
                                e->stream,     e->requested_bytes, e->reserved_bytes, e->address,        e->thread};
    pthread_mutex_lock(&sql.lock);
    for (int i = 0; i < 10; i++) sqlite3_bind_int64(sql.insert, i + 1, (sqlite3_int64)numbers[i]);
    sqlite3_bind_text(sql.insert, 11, e->tag, -1, SQLITE_STATIC);
    sqlite3_step(sql.insert);
    sqlite3_reset(sql.insert);
    if (++sql.n % 10000 == 0) sql_do("COMMIT; BEGIN");
    pthread_mutex_unlock(&sql.lock);
}
static tide_observer sql_observer(void) { return (tide_observer){.on_memory = sql_insert, .no_time = true}; }
static void close_sql(void) {
    sql_do("COMMIT");
    sqlite3_finalize(sql.insert);
    sqlite3_close(sql.db);
}

// ---- the measurement ----

static const contender contenders[] = {
    {"(loop alone)", N_BURSTS, open_nothing, nothing_observer, NULL, close_nothing},
    {"tidemark ring", N_BURSTS, open_recorder, recorder_observer, catch_up, close_recorder},
    {"CSV line, lock", N_BURSTS / 4, open_csv, csv_observer, NULL, close_csv},
    {"SQLite insert, lock", N_BURSTS / 12, open_sql, sql_observer, NULL, close_sql},
};
enum { N_CONTENDERS = sizeof contenders / sizeof contenders[0] };

typedef struct crew {
    const contender *c;
    tide_observer obs;
    pthread_barrier_t before, after;
    int n_threads;
    double burst_ns[MAX_THREADS]; // of the burst just done
    long n_faults[MAX_THREADS];   // of the thread so far
} crew;
typedef struct member {
    crew *all;
    uint32_t index;
    pthread_t id;
} member;

static long faults_of_thread(void) {
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_minflt + used.ru_majflt : 0;
}

static void *bursts(void *arg) {
    const member *m = arg;
    crew *all = m->all;
    bench_stream *s = bench_stream_new(7, m->index);
    if (s == NULL) exit(3);
    for (int b = 0; b < all->c->n_bursts; b++) {
        pthread_barrier_wait(&all->before);
        const double t0 = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < BURST; i++) all->obs.on_memory(all->obs.self, bench_next(s));
        all->burst_ns[m->index] = (bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - t0) / BURST;
        all->n_faults[m->index] = faults_of_thread();
        pthread_barrier_wait(&all->after);
    }
    tide_host_free(s);
    return NULL;
}

/// *n_faults: added to, page faults of the bursts that are counted.
static void measure(const char *dir, const contender *c, int n_threads, bench_samples *out, long *n_faults) {
    crew all = {.c = c, .n_threads = n_threads};
    member members[MAX_THREADS];
    c->open(dir);
    all.obs = c->observer();
    pthread_barrier_init(&all.before, NULL, (unsigned)n_threads + 1);
    pthread_barrier_init(&all.after, NULL, (unsigned)n_threads + 1);
    for (int i = 0; i < n_threads; i++) {
        members[i] = (member){.all = &all, .index = (uint32_t)i};
        if (pthread_create(&members[i].id, NULL, bursts, &members[i]) != 0) exit(3);
    }
    for (int b = 0; b < c->n_bursts; b++) {
        pthread_barrier_wait(&all.before);
        pthread_barrier_wait(&all.after);
        // the first burst makes rings and names
        for (int i = 0; i < n_threads && b > 0; i++) bench_add(out, all.burst_ns[i]);
        for (int i = 0; i < n_threads && b == 0; i++) *n_faults -= all.n_faults[i];
        if (c->catch_up != NULL) c->catch_up();
    }
    for (int i = 0; i < n_threads; i++) {
        pthread_join(members[i].id, NULL);
        *n_faults += all.n_faults[i];
    }
    pthread_barrier_destroy(&all.before);
    pthread_barrier_destroy(&all.after);
    c->close();
}

void bench_producer(const bench_options *o) {
    printf("\n== producer: CPU ns per event on the thread that it happens on, full event with time (bursts of %d)\n",
           BURST);
    printf("%-22s %-24s %-24s %-24s\n", "", "1 thread", "2 threads", "4 threads");
    printf("%-22s %-24s %-24s %-24s\n", "", "median    min faults/burst", "median    min faults/burst",
           "median    min faults/burst");
    for (size_t c = 0; c < N_CONTENDERS; c++) {
        printf("%-22s", contenders[c].name);
        for (int n = 1; n <= MAX_THREADS; n *= 2) {
            char dir[300];
            bench_samples *s = tide_host_calloc(1, sizeof *s);
            long n_faults = 0;
            if (s == NULL) exit(3);
            for (int k = 0; k < o->repeats; k++) {
                bench_make_dir(o, dir, sizeof dir);
                measure(dir, &contenders[c], n, s, &n_faults);
                bench_remove_dir(dir);
            }
            printf(" %6.1f %6.1f %9.1f ", bench_quantile(s, 0.5), bench_quantile(s, 0),
                   (double)n_faults / (double)(s->n > 0 ? s->n : 1));
            fflush(stdout);
            tide_host_free(s);
        }
        printf("\n");
    }
}

// ---- single pushes ----

enum { LATENCY_BUCKETS = 4096 }; // of 1/16 of a power of two ns

static int bucket_of(double ns) {
    const int b = ns <= 1 ? 0 : (int)(log2(ns) * 64);
    return b < LATENCY_BUCKETS ? b : LATENCY_BUCKETS - 1;
}
static double bucket_ns(int b) { return exp2((b + 0.5) / 64); }

static void print_latency(const char *name, const uint64_t *counts, uint64_t n, double max_ns, uint64_t n_over) {
    static const double quantiles[] = {0.5, 0.99, 0.999, 0.9999};
    printf("%-22s", name);
    for (size_t q = 0; q < sizeof quantiles / sizeof quantiles[0]; q++) {
        uint64_t seen = 0;
        int b = 0;
        while (b < LATENCY_BUCKETS - 1 && (seen += counts[b]) < (uint64_t)(quantiles[q] * (double)n)) b++;
        printf(" %9.0f", bucket_ns(b));
    }
    printf(" %11.0f %14" PRIu64 "\n", max_ns, n_over);
}

/// Ticks of the counter per ns, where there is one.
static double ticks_per_ns(void) {
    const uint64_t t0 = tide_now_ns(), c0 = tide__ticks();
    while (tide_now_ns() - t0 < 50000000) continue;
    return (double)(tide__ticks() - c0) / (double)(tide_now_ns() - t0);
}

static void latency_of(const bench_options *o, const char *name, const contender *c) {
    char dir[300];
    bench_stream *s = bench_stream_new(9, 0);
    uint64_t *counts = tide_host_calloc(LATENCY_BUCKETS, sizeof *counts), n_over = 0;
    if (s == NULL || counts == NULL) exit(3);
    const bool has_ticks = tide__clock_has_ticks();
    const double rate = has_ticks ? ticks_per_ns() : 1;
    double max_ns = 0;
    bench_make_dir(o, dir, sizeof dir);
    c->open(dir);
    const tide_observer obs = c->observer();
    for (int i = 0; i < 20000; i++) obs.on_memory(obs.self, bench_next(s)); // rings and names
    const uint64_t begin = has_ticks ? tide__ticks() : tide_now_ns();
    for (uint64_t i = 0; i < o->latency_events; i++) {
        const uint64_t due = begin + (uint64_t)((double)i * 1000 * rate);
        uint64_t t0;
        const tide_memory_event *e = bench_next(s);
        do t0 = has_ticks ? tide__ticks() : tide_now_ns();
        while (t0 < due);
        obs.on_memory(obs.self, e);
        const double ns = (double)((has_ticks ? tide__ticks() : tide_now_ns()) - t0) / rate;
        counts[bucket_of(ns)]++;
        if (ns > max_ns) max_ns = ns;
        n_over += ns > 10000;
    }
    c->close();
    bench_remove_dir(dir);
    print_latency(name, counts, o->latency_events, max_ns, n_over);
    tide_host_free(s);
    tide_host_free(counts);
}

void bench_latency(const bench_options *o) {
    printf("\n== latency: ns of single calls at 1 M/s, %" PRIu64 " of each (with two readings of the clock around)\n",
           o->latency_events);
    printf("%-22s %9s %9s %9s %9s %11s %14s\n", "", "p50", "p99", "p99.9", "p99.99", "max", "over 10 us");
    latency_of(o, "(nothing is called)", &contenders[0]);
    latency_of(o, "tidemark ring", &contenders[1]);
    latency_of(o, "CSV line, lock", &contenders[2]);
}
