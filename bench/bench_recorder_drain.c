// SPDX-License-Identifier: MIT
//
// Section drain: what it takes to get an event out of its ring and into the trace, as rows and as chunks, beside a bare
// loop of inserts of the same form into the same table, run after run by turns. Processor time: two producers send as
// fast as the rings let them, and what they use is subtracted from what the process uses.
#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_recorder.h"
#include "bench/planner_child.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/event.h"
#include "profiler/store/chunk.h"

enum { N_PRODUCERS = 2, BATCH = 32768, ROW_EVENTS = 4000000, CHUNK_EVENTS = 20000000 };

typedef struct producer {
    tide_observer obs;
    uint32_t index;
    uint64_t n_events;
    double cpu_ns;
    pthread_t id;
} producer;

static void *produce(void *arg) {
    producer *p = arg;
    bench_stream *s = bench_stream_new(11, p->index);
    if (s == NULL) exit(3);
    const double t0 = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < p->n_events; i++) p->obs.on_memory(p->obs.self, bench_next(s));
    p->cpu_ns = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - t0;
    tide_host_free(s);
    return NULL;
}

// ---- one recording, in a process of its own ----

enum { DRAIN_CPU, DRAIN_WALL, FINISH_CPU, FINISH_WALL, FILE_BYTES, BLOCKED, PRODUCER_CPU };

typedef struct drain_job {
    const char *path;
    tide_record_form form;
    uint64_t n_events;
} drain_job;

static void drain_child(void *arg, bench_answer *out) {
    const drain_job *j = arg;
    const tide_recorder_options opt = {.form = j->form};
    tide_recorder *rec = NULL;
    tide_error err = TIDE_ERROR_INIT;
    producer p[N_PRODUCERS];
    tide_recorder_stats stats;
    bench_must(tide_recorder_open(j->path, &opt, &rec, &err), &err, "open");
    const double cpu0 = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID), wall0 = bench_cpu_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < N_PRODUCERS; i++) {
        p[i] = (producer){.obs = tide_recorder_observer(rec), .index = i, .n_events = j->n_events / N_PRODUCERS};
        if (pthread_create(&p[i].id, NULL, produce, &p[i]) != 0) exit(3);
    }
    double producers = 0;
    for (int i = 0; i < N_PRODUCERS; i++) {
        pthread_join(p[i].id, NULL);
        producers += p[i].cpu_ns;
    }
    bench_must(tide_recorder_flush(rec, &err), &err, "flush");
    const double cpu1 = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID), wall1 = bench_cpu_ns(CLOCK_MONOTONIC);
    tide_recorder_get_stats(rec, &stats);
    bench_must(tide_recorder_close(rec, &err), &err, "close");
    const double cpu2 = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID), wall2 = bench_cpu_ns(CLOCK_MONOTONIC);
    out->n[DRAIN_CPU] = (uint64_t)(cpu1 - cpu0 - producers);
    out->n[DRAIN_WALL] = (uint64_t)(wall1 - wall0);
    out->n[FINISH_CPU] = (uint64_t)(cpu2 - cpu1);
    out->n[FINISH_WALL] = (uint64_t)(wall2 - wall1);
    out->n[FILE_BYTES] = bench_file_bytes(j->path);
    out->n[BLOCKED] = stats.blocked_ns;
    out->n[PRODUCER_CPU] = (uint64_t)producers;
    out->done = true;
}

// ---- the bare loops ----

static void sql_do(sqlite3 *db, const char *text) {
    if (sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK) return;
    fprintf(stderr, "bench_recorder: %s: %s\n", text, sqlite3_errmsg(db));
    exit(3);
}

/// A file as the trace is while it is recorded, with the trace's own table `table` and nothing else.
static sqlite3 *open_bare(const char *path, const char *trace, const char *table) {
    sqlite3 *db = NULL, *from = NULL;
    sqlite3_stmt *stmt = NULL;
    char query[128];
    snprintf(query, sizeof query, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = '%s'", table);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        exit(3);
    sql_do(db, "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
               "PRAGMA wal_autocheckpoint = 10000");
    if (sqlite3_open(trace, &from) != SQLITE_OK || sqlite3_prepare_v2(from, query, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW) {
        fprintf(stderr, "bench_recorder: no table '%s' in a trace\n", table);
        exit(3);
    }
    sql_do(db, (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    sqlite3_close(from);
    return db;
}

/// Events as they come out of the producers' rings.
static void fill(tide__event *events, size_t n, bench_stream *s, int64_t *id) {
    for (size_t i = 0; i < n; i++) {
        const tide_memory_event *e = bench_next(s);
        events[i] = (tide__event){.id = ++*id,
                                  .t_ns = 1000000000 + *id * 61,
                                  .block_id = (int64_t)e->block_id,
                                  .requested_bytes = (int64_t)e->requested_bytes,
                                  .reserved_bytes = (int64_t)e->reserved_bytes,
                                  .address = (int64_t)e->address,
                                  .thread = 1 + (int32_t)(*id & 1),
                                  .scope_id = 1,
                                  .tag_id = 1 + (int32_t)(e->block_id % BENCH_TAGS),
                                  .allocator_id = 1,
                                  .device = 1,
                                  .op = (uint8_t)e->op,
                                  .kind = (uint8_t)e->kind};
    }
}

static void insert_rows(sqlite3 *db, sqlite3_stmt *stmt, const tide__event *events, size_t n) {
    sql_do(db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < n; i++) {
        const tide__event *e = &events[i];
        // id, run_id, t_ns, op, block_id, kind, device, stream, requested, reserved, address, thread, allocator, tag,
        // scope
        const int64_t v[] = {e->id,
                             0,
                             e->t_ns,
                             e->op,
                             e->block_id,
                             e->kind,
                             e->device,
                             e->stream,
                             e->requested_bytes,
                             e->reserved_bytes,
                             e->address,
                             e->thread,
                             e->allocator_id,
                             e->tag_id,
                             e->scope_id};
        for (int c = 0; c < 15; c++) {
            if (c == 1)
                sqlite3_bind_null(stmt, c + 1);
            else
                sqlite3_bind_int64(stmt, c + 1, v[c]);
        }
        if (sqlite3_step(stmt) != SQLITE_DONE) {
            fprintf(stderr, "bench_recorder: insert: %s\n", sqlite3_errmsg(db));
            exit(3);
        }
        sqlite3_reset(stmt);
    }
    sql_do(db, "COMMIT");
}

static void insert_chunk(sqlite3 *db, sqlite3_stmt *stmt, const tide__event *first, const tide__event *last,
                         const uint8_t *bytes, size_t n) {
    sqlite3_bind_int64(stmt, 1, first->id);
    sqlite3_bind_int64(stmt, 2, last->id);
    sqlite3_bind_int64(stmt, 3, first->t_ns);
    sqlite3_bind_int64(stmt, 4, last->t_ns);
    sqlite3_bind_blob(stmt, 5, bytes, (int)n, SQLITE_STATIC);
    if (sqlite3_step(stmt) != SQLITE_DONE) {
        fprintf(stderr, "bench_recorder: insert: %s\n", sqlite3_errmsg(db));
        exit(3);
    }
    sqlite3_reset(stmt);
}

typedef enum bare_form { BARE_ROWS, BARE_BLOBS, BARE_ENCODED } bare_form;
typedef struct bare_job {
    const char *path, *trace;
    bare_form form;
    uint64_t n_events;
} bare_job;

static void bare_chunks(sqlite3 *db, sqlite3_stmt *stmt, const bare_job *j, const tide__event *events, uint8_t *bytes,
                        size_t *n_bytes) {
    sql_do(db, "BEGIN IMMEDIATE");
    for (size_t at = 0; at < BATCH; at += TIDE__CHUNK_MAX_EVENTS) {
        // ready-made bytes are those of the first chunk: how they came about is not what is measured
        if (j->form == BARE_ENCODED || *n_bytes == 0)
            *n_bytes = tide__chunk_encode(&events[at], TIDE__CHUNK_MAX_EVENTS, bytes);
        insert_chunk(db, stmt, &events[at], &events[at + TIDE__CHUNK_MAX_EVENTS - 1], bytes, *n_bytes);
    }
    sql_do(db, "COMMIT");
}

static void bare_child(void *arg, bench_answer *out) {
    const bare_job *j = arg;
    const bool rows = j->form == BARE_ROWS;
    sqlite3 *db = open_bare(j->path, j->trace, rows ? "event" : "event_chunk");
    sqlite3_stmt *stmt = NULL;
    tide__event *events = tide_host_calloc(BATCH, sizeof *events);
    uint8_t *bytes = tide_host_alloc(TIDE__CHUNK_MAX_BYTES);
    bench_stream *s = bench_stream_new(11, 0);
    const char *insert = rows ? "INSERT INTO event(id, run_id, t_ns, op, block_id, kind, device, stream, "
                                "requested_bytes, reserved_bytes, address, thread, allocator_id, tag_id, scope_id) "
                                "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
                              : "INSERT INTO event_chunk VALUES (?,?,?,?,?)";
    double cpu = 0;
    int64_t id = 0;
    size_t n_bytes = 0;
    if (events == NULL || bytes == NULL || s == NULL ||
        sqlite3_prepare_v3(db, insert, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        fprintf(stderr, "bench_recorder: %s\n", sqlite3_errmsg(db));
        exit(3);
    }
    for (uint64_t n = 0; n < j->n_events; n += BATCH) {
        fill(events, BATCH, s, &id);
        const double t0 = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        if (rows)
            insert_rows(db, stmt, events, BATCH);
        else
            bare_chunks(db, stmt, j, events, bytes, &n_bytes);
        cpu += bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - t0;
    }
    out->n[0] = (uint64_t)(cpu * 1000 / (double)id); // ps per event
    out->done = true;                                // the process ends here: nothing is given back
}

// ---- by turns ----

typedef struct drain_sums {
    bench_samples drain, wall, finish, bare[3], ratio[3];
    double bytes, rss_mb;
} drain_sums;

static double bare_once(const char *dir, const char *trace, bare_form form, uint64_t n_events) {
    char path[320];
    bench_cost cost = {0};
    bare_job j = {.path = path, .trace = trace, .form = form, .n_events = n_events};
    snprintf(path, sizeof path, "%s/bare.db", dir);
    const bench_answer a = bench_run_child(bare_child, &j, 600, &cost);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        char name[340];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        remove(name);
    }
    return a.done ? (double)a.n[0] / 1000 : 0;
}

static bool drain_once(const bench_options *o, drain_job *j, drain_sums *sums) {
    char dir[300], path[320];
    bench_cost cost = {0};
    bench_make_dir(o, dir, sizeof dir);
    snprintf(path, sizeof path, "%s/trace.db", dir);
    j->path = path;
    const bench_answer a = bench_run_child(drain_child, j, 900, &cost);
    if (!a.done) {
        printf("no measurement: %s\n", a.text);
        bench_remove_dir(dir);
        return false;
    }
    const double n = (double)j->n_events, ns = (double)a.n[DRAIN_CPU] / n;
    bench_add(&sums->drain, ns);
    bench_add(&sums->wall, (double)a.n[DRAIN_WALL] / n);
    bench_add(&sums->finish, (double)a.n[FINISH_CPU] / n);
    sums->bytes = (double)a.n[FILE_BYTES] / n;
    if (cost.rss_mb > sums->rss_mb) sums->rss_mb = cost.rss_mb;
    for (int f = 0; f < 3; f++) {
        if ((f == BARE_ROWS) != (j->form == TIDE_RECORD_ROWS)) continue;
        const double bare = bare_once(dir, path, (bare_form)f, j->n_events);
        bench_add(&sums->bare[f], bare);
        bench_add(&sums->ratio[f], bare / ns);
    }
    bench_remove_dir(dir);
    return true;
}

static void print_bare(const char *name, drain_sums *sums, bare_form form) {
    if (sums->bare[form].n == 0) return;
    const double median = bench_quantile(&sums->bare[form], 0.5);
    printf("  %-34s %8.1f %8.1f %10.2f %33s drain reaches %.0f %% (worst %.0f %%)\n", name, median,
           bench_quantile(&sums->bare[form], 0), 1000 / median, "", 100 * bench_quantile(&sums->ratio[form], 0.5),
           100 * bench_quantile(&sums->ratio[form], 0));
}

static void drain_form(const bench_options *o, const char *name, tide_record_form form, uint64_t n_events) {
    drain_job j = {.form = form, .n_events = n_events};
    drain_sums *sums = tide_host_calloc(1, sizeof *sums);
    if (sums == NULL) exit(3);
    for (int k = 0; k < o->repeats; k++)
        if (!drain_once(o, &j, sums)) break;
    if (sums->drain.n > 0) {
        const double median = bench_quantile(&sums->drain, 0.5);
        printf("%-36s %8.1f %8.1f %10.2f %10.1f %10.1f %11.1f\n", name, median, bench_quantile(&sums->drain, 0),
               1000 / median, sums->bytes, bench_quantile(&sums->finish, 0.5), sums->rss_mb);
        print_bare("bare: prepared row inserts", sums, BARE_ROWS);
        print_bare("bare: ready-made blobs", sums, BARE_BLOBS);
        print_bare("bare: encode, insert blob", sums, BARE_ENCODED);
    }
    fflush(stdout);
    tide_host_free(sums);
}

void bench_drain(const bench_options *o) {
    printf("\n== drain: CPU ns per event from ring to file (%d producers at full speed, %d runs by turns)\n",
           N_PRODUCERS, o->repeats);
    printf("%-36s %8s %8s %10s %10s %10s %11s\n", "", "median", "min", "M/s (CPU)", "B/event", "finish ns",
           "peak RSS MB");
    drain_form(o, "rows", TIDE_RECORD_ROWS, ROW_EVENTS);
    drain_form(o, "chunks", TIDE_RECORD_CHUNKS, CHUNK_EVENTS);
}
