// SPDX-License-Identifier: MIT
//
// What the tests of the profiler share: a folder for traces, a hand on the recorder's clock and events, a small plan
// made by hand, and the demo trace whose every number is known.
#ifndef TIDE_TESTS_PROFILER_TRACE_FIXTURE_H
#define TIDE_TESTS_PROFILER_TRACE_FIXTURE_H

#include <dirent.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "tests/tide_test.h"
#include "tidemark/record.h"

// ---- a folder of its own ----

typedef struct tmp_dir {
    char path[256];
    char file[320]; ///< a trace in it
} tmp_dir;

static inline void tmp_dir_make(tmp_dir *d) {
    const char *base = getenv("TMPDIR");
    snprintf(d->path, sizeof d->path, "%.200s/tide-trace-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(d->path));
    snprintf(d->file, sizeof d->file, "%s/trace.db", d->path);
}

/// Number of files in the folder: a closed or failed recording must not leave strays.
static inline int tmp_dir_count(const tmp_dir *d) {
    DIR *dir = opendir(d->path);
    assert_non_null(dir);
    int n = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static inline void tmp_dir_remove(const tmp_dir *d) {
    DIR *dir = opendir(d->path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char name[600];
        snprintf(name, sizeof name, "%s/%s", d->path, e->d_name);
        if (e->d_name[0] != '.') remove(name);
    }
    closedir(dir);
    rmdir(d->path);
}

// ---- events by hand ----

typedef struct feeder {
    tide_recorder *rec;
    tide_observer obs;
    uint64_t now;
    const tide_scope *scope; ///< scope of the events that follow
    uint32_t thread;
} feeder;

static inline uint64_t feeder_now(void *ctx) { return ((const feeder *)ctx)->now; }

static inline void feeder_open(feeder *f, const char *path, size_t batch_events, bool attached_late) {
    *f = (feeder){.thread = 1};
    const tide_recorder_options opt = {
        .batch_events = batch_events, .attached_late = attached_late, .now = feeder_now, .now_ctx = f};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(path, &opt, &f->rec, &err), &err);
    f->obs = tide_recorder_observer(f->rec);
}

static inline void feeder_close(feeder *f) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_close(f->rec, &err), &err);
}

/// Any event; reserved bytes are the next multiple of 64.
static inline void feed(feeder *f, uint64_t t_ns, tide_memory_op op, uint64_t id, tide_memory_kind kind, uint64_t bytes,
                        const char *tag) {
    const tide_memory_event event = {.op = op,
                                     .t_ns = t_ns,
                                     .block_id = id,
                                     .device = TIDE_CPU,
                                     .kind = kind,
                                     .requested_bytes = bytes,
                                     .reserved_bytes = op == TIDE_MEM_OOM ? 0 : (bytes + 63) / 64 * 64,
                                     .address = op == TIDE_MEM_OOM ? 0 : 0x7f0000000000u + id * 4096,
                                     .thread = f->thread,
                                     .allocator = "cpu",
                                     .tag = tag,
                                     .scope = f->scope};
    f->now = t_ns;
    f->obs.on_memory(f->obs.self, &event);
}

static inline void feed_free(feeder *f, uint64_t t_ns, uint64_t id, tide_memory_kind kind, uint64_t bytes,
                             const char *tag) {
    feed(f, t_ns - 1, TIDE_MEM_FREE_REQUESTED, id, kind, bytes, tag);
    feed(f, t_ns, TIDE_MEM_FREE_COMPLETED, id, kind, bytes, tag);
}

static inline void feed_scope(feeder *f, uint64_t t_ns, bool enter, const tide_scope *scope) {
    const tide_scope_event event = {.enter = enter, .t_ns = t_ns, .thread = f->thread, .scope = scope};
    f->now = t_ns;
    f->obs.on_scope(f->obs.self, &event);
    f->scope = enter ? scope : scope->parent;
}

static inline int64_t feed_begin_run(feeder *f, uint64_t t_ns, const tide_run_info *info,
                                     const tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    int64_t run_id = 0;
    f->now = t_ns;
    assert_tide_ok(tide_recorder_begin_run(f->rec, info, plan, &run_id, &err), &err);
    return run_id;
}

static inline void feed_end_run(feeder *f, uint64_t t_ns) {
    tide_error err = TIDE_ERROR_INIT;
    f->now = t_ns;
    assert_tide_ok(tide_recorder_end_run(f->rec, &err), &err);
}

// ---- a plan by hand ----
//
//     step           0 conv      1 relu      2 conv2     3 add
//     a              [=========================================]  1024 @ 0
//     conv.scratch   [=======]                                     768 @ 1024
//     b                          [===================]             512 @ 1024
//     c                                      [=================]   768 @ 1536
//     conv2.scratch                          [=======]             256 @ 2304
//     sum            1792        1536        2560        1792      buffer 2560: as small as can be

enum { DEMO_BYTES = 2560, DEMO_NAIVE_BYTES = 3328, N_DEMO = 8, N_DEMO_STEPS = 4 };

static const char *const demo_steps[N_DEMO_STEPS] = {"conv", "relu", "conv2", "add"};

typedef struct demo_tensor {
    const char *name;
    uint64_t size_bytes;
    int64_t begin, end;
    tide_memory_kind kind;
    tide_role role;
    uint64_t offset; ///< TIDE_NO_OFFSET: persistent
} demo_tensor;

static const demo_tensor demo_tensors[N_DEMO] = {
    {"x", 1000, 0, 4, TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT, TIDE_NO_OFFSET},
    {"w", 300, 0, 4, TIDE_KIND_PERSISTENT, TIDE_ROLE_WEIGHT, TIDE_NO_OFFSET},
    {"a", 1000, 0, 4, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 0},
    {"conv.scratch", 600, 0, 1, TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH, 1024},
    {"b", 500, 1, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 1024},
    {"c", 700, 2, 4, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 1536},
    {"conv2.scratch", 200, 2, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH, 2304},
    {"y", 1000, 0, 4, TIDE_KIND_DEFAULT, TIDE_ROLE_OUTPUT, TIDE_NO_OFFSET},
};

static inline tide_memory_plan *demo_plan_make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *p = tide_host_calloc(1, sizeof *p);
    assert_non_null(p);
    p->strategy = tide_host_strdup("by_hand");
    p->form = TIDE_PLAN_OFFSETS;
    p->lifetimes.model = tide_host_strdup("demo");
    p->offsets = tide_host_calloc(N_DEMO, sizeof *p->offsets);
    p->pools = tide_host_calloc(N_DEMO, sizeof *p->pools);
    for (size_t i = 0; i < N_DEMO; i++) {
        const demo_tensor *d = &demo_tensors[i];
        char name[32];
        snprintf(name, sizeof name, "%s", d->name);
        const bool persistent = d->offset == TIDE_NO_OFFSET;
        const tide_lifetime item = {.name = name,
                                    .size_bytes = d->size_bytes,
                                    .align_bytes = 256,
                                    .begin_step = d->begin,
                                    .end_step = d->end,
                                    .kind = d->kind,
                                    .device = TIDE_CPU,
                                    .role = d->role,
                                    .persistent = persistent,
                                    .node = persistent ? TIDE_NO_INDEX : (uint32_t)d->begin,
                                    .port = d->role == TIDE_ROLE_INTERMEDIATE ? 0 : TIDE_NO_INDEX,
                                    .value = d->role == TIDE_ROLE_SCRATCH ? TIDE_NO_INDEX : (uint32_t)i};
        assert_tide_ok(tide_lifetimes_add(&p->lifetimes, &item, &err), &err);
        p->offsets[i] = d->offset;
        p->pools[i] = TIDE_NO_POOL;
    }
    p->lifetimes.n_steps = N_DEMO_STEPS;
    p->lifetimes.step_names = tide_host_calloc(N_DEMO_STEPS, sizeof *p->lifetimes.step_names);
    for (size_t i = 0; i < N_DEMO_STEPS; i++) p->lifetimes.step_names[i] = tide_host_strdup(demo_steps[i]);
    p->lifetimes.n_step_names = N_DEMO_STEPS;
    p->align_bytes = 256;
    p->bytes = DEMO_BYTES;
    p->naive_bytes = DEMO_NAIVE_BYTES;
    p->naive_peak_bytes = DEMO_BYTES;
    p->lower_bound_bytes = DEMO_BYTES;
    p->proved_bytes = DEMO_BYTES;
    p->n_buffers = 1;
    p->buffers = tide_host_calloc(1, sizeof *p->buffers);
    assert_non_null(p->buffers);
    p->buffers[0] = (tide_plan_buffer){.device = TIDE_CPU,
                                       .kind = TIDE_KIND_WORKSPACE,
                                       .align_bytes = 256,
                                       .bytes = DEMO_BYTES,
                                       .naive_bytes = DEMO_NAIVE_BYTES,
                                       .naive_peak_bytes = DEMO_BYTES,
                                       .lower_bound_bytes = DEMO_BYTES,
                                       .proved_bytes = DEMO_BYTES,
                                       .proof = TIDE_PROOF_LIVE_SUM};
    p->proven = true;
    p->verified = true;
    p->time_ns = 4321;
    return p;
}

// ---- the demo trace ----

/// Run 1, naive, 1000 … 1600 ns: blocks 1 … 8. Workspace peaks at 1320 with 2560 bytes, everything with 5120.
static inline void demo_naive_run(feeder *f, const tide_memory_plan *plan) {
    const tide_run_info info = {.model = "demo", .source = "demo.json", .mode = "naive", .device = "cpu"};
    assert_int_equal(feed_begin_run(f, 1000, &info, plan), 1);
    feed(f, 1010, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 1024, "x");
    feed(f, 1020, TIDE_MEM_ALLOC, 2, TIDE_KIND_PERSISTENT, 512, "w");
    feed(f, 1030, TIDE_MEM_ALLOC, 3, TIDE_KIND_DEFAULT, 1024, "y");
    const tide_scope run = {.name = "demo", .kind = TIDE_SCOPE_RUN, .index = 0};
    tide_scope op[N_DEMO_STEPS];
    for (int i = 0; i < N_DEMO_STEPS; i++)
        op[i] = (tide_scope){.name = demo_steps[i], .kind = TIDE_SCOPE_OPERATOR, .index = i, .parent = &run};
    feed_scope(f, 1090, true, &run);
    feed_scope(f, 1100, true, &op[0]);
    feed(f, 1110, TIDE_MEM_ALLOC, 4, TIDE_KIND_WORKSPACE, 1024, "a");
    feed(f, 1120, TIDE_MEM_ALLOC, 5, TIDE_KIND_WORKSPACE, 768, "conv.scratch");
    feed_free(f, 1180, 5, TIDE_KIND_WORKSPACE, 768, "conv.scratch");
    feed_scope(f, 1190, false, &op[0]);
    feed_scope(f, 1200, true, &op[1]);
    feed(f, 1210, TIDE_MEM_ALLOC, 6, TIDE_KIND_WORKSPACE, 512, "b");
    feed_scope(f, 1290, false, &op[1]);
    feed_scope(f, 1300, true, &op[2]);
    feed(f, 1310, TIDE_MEM_ALLOC, 7, TIDE_KIND_WORKSPACE, 768, "c");
    feed(f, 1320, TIDE_MEM_ALLOC, 8, TIDE_KIND_WORKSPACE, 256, "conv2.scratch");
    feed_free(f, 1370, 8, TIDE_KIND_WORKSPACE, 256, "conv2.scratch");
    feed_free(f, 1380, 6, TIDE_KIND_WORKSPACE, 512, "b");
    feed_scope(f, 1390, false, &op[2]);
    feed_scope(f, 1400, true, &op[3]);
    feed_free(f, 1470, 7, TIDE_KIND_WORKSPACE, 768, "c");
    feed_free(f, 1480, 4, TIDE_KIND_WORKSPACE, 1024, "a");
    feed_scope(f, 1490, false, &op[3]);
    feed_scope(f, 1495, false, &run);
    feed_free(f, 1500, 3, TIDE_KIND_DEFAULT, 1024, "y");
    feed_free(f, 1510, 2, TIDE_KIND_PERSISTENT, 512, "w");
    feed_free(f, 1520, 1, TIDE_KIND_DEFAULT, 1024, "x");
    feed_end_run(f, 1600);
}

/// Run 2, planned, 2000 … 2900 ns: blocks 11 … 15, one execution of the steps after the other; block 15, "kept", is
/// never freed, and one request fails.
static inline void demo_planned_run(feeder *f, const tide_memory_plan *plan) {
    const tide_run_info info = {
        .model = "demo", .source = "demo.json", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    assert_int_equal(feed_begin_run(f, 2000, &info, plan), 2);
    feed(f, 2010, TIDE_MEM_ALLOC, 11, TIDE_KIND_DEFAULT, 1024, "x");
    feed(f, 2020, TIDE_MEM_ALLOC, 12, TIDE_KIND_PERSISTENT, 512, "w");
    feed(f, 2030, TIDE_MEM_ALLOC, 13, TIDE_KIND_DEFAULT, 1024, "y");
    feed(f, 2040, TIDE_MEM_ALLOC, 14, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    for (int k = 0; k < 2; k++) {
        const uint64_t t = 2100 + 400 * (uint64_t)k;
        const tide_scope run = {.name = "demo", .kind = TIDE_SCOPE_RUN, .index = k, .block_id = 14};
        feed_scope(f, t - 10, true, &run);
        for (int i = 0; i < N_DEMO_STEPS; i++) {
            const tide_scope op = {.name = demo_steps[i], .kind = TIDE_SCOPE_OPERATOR, .index = i, .parent = &run};
            feed_scope(f, t + 50 * (uint64_t)i, true, &op);
            if (k == 1 && i == 3) {
                feed(f, 2660, TIDE_MEM_ALLOC, 15, TIDE_KIND_DEFAULT, 40, "kept");
                feed(f, 2670, TIDE_MEM_OOM, 0, TIDE_KIND_WORKSPACE, 1000000, "too much");
            }
            feed_scope(f, t + 50 * (uint64_t)i + 40, false, &op);
        }
        feed_scope(f, t + 200, false, &run);
    }
    feed_free(f, 2800, 14, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed_free(f, 2810, 13, TIDE_KIND_DEFAULT, 1024, "y");
    feed_free(f, 2820, 12, TIDE_KIND_PERSISTENT, 512, "w");
    feed_free(f, 2830, 11, TIDE_KIND_DEFAULT, 1024, "x");
    feed_end_run(f, 2900);
}

enum { N_DEMO_EVENTS = 8 + 2 * 8 + 5 + 2 * 4 + 1, N_DEMO_SCOPE_EVENTS = 10 + 20, N_DEMO_BLOCKS = 13 };

static inline void demo_record(const char *path, size_t batch_events) {
    feeder f;
    feeder_open(&f, path, batch_events, false);
    tide_memory_plan *plan = demo_plan_make();
    demo_naive_run(&f, plan);
    demo_planned_run(&f, plan);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
}

// ---- plain SQL beside the query API ----

static inline sqlite3 *sql_open(const char *path) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000); // a drain may hold the file: other writers wait their turn
    return db;
}

static inline void sql_exec(const char *path, const char *text) {
    sqlite3 *db = sql_open(path);
    char *words = NULL;
    sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL); // a test's file need not survive a power cut
    if (sqlite3_exec(db, text, NULL, NULL, &words) != SQLITE_OK) fail_msg("%s: %s", text, words);
    sqlite3_close(db);
}

/// Rows as the sqlite3 shell prints them, `a|b`, one per line; with a line of column names first when asked.
static inline void sql_print(sqlite3 *db, const char *query, bool with_names, tide_text *out) {
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, query, -1, &stmt, NULL) != SQLITE_OK) fail_msg("%s: %s", query, sqlite3_errmsg(db));
    const int n = sqlite3_column_count(stmt);
    for (int i = 0; with_names && i < n; i++)
        tide_text_addf(out, "%s%s", i > 0 ? "|" : "", sqlite3_column_name(stmt, i));
    if (with_names) tide_text_add(out, "\n");
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < n; i++) {
            const unsigned char *text = sqlite3_column_text(stmt, i);
            tide_text_addf(out, "%s%s", i > 0 ? "|" : "", text != NULL ? (const char *)text : "");
        }
        tide_text_add(out, "\n");
    }
    if (rc != SQLITE_DONE) fail_msg("%s: %s", query, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    assert_false(out->failed);
}

/// The query's rows are exactly `want`.
static inline void assert_sql(const char *path, const char *query, const char *want) {
    sqlite3 *db = sql_open(path);
    tide_text got = {0};
    sql_print(db, query, false, &got);
    sqlite3_close(db);
    if (strcmp(tide_text_str(&got), want) != 0) fail_msg("%s\ngot:\n%swant:\n%s", query, tide_text_str(&got), want);
    tide_text_deinit(&got);
}

#endif
