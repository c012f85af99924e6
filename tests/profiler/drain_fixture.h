// SPDX-License-Identifier: MIT
//
// What the tests of the drain share: a trace, a feed beside it, and a drain that takes its rounds when the test says.
#ifndef TIDE_TESTS_PROFILER_DRAIN_FIXTURE_H
#define TIDE_TESTS_PROFILER_DRAIN_FIXTURE_H

#include <fcntl.h>
#include <pthread.h>

#include "profiler/drain/drain.h"
#include "profiler/feed/feed.h"
#include "profiler/feed/reader.h"
#include "profiler/feed/registration.h"
#include "profiler/store/store.h"
#include "tests/profiler/trace_fixture.h"

typedef struct rig {
    tmp_dir dir;
    tide__feed *feed;
    tide__drain *drain;
    tide__drain_options opt;
} rig;

/// A run into the log of a feed. @return its number
static inline int64_t rig_add_run(tide__feed *f) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text bytes = {0};
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    assert_tide_ok(tide__registration_put_run(&bytes, &info, NULL, 1, &err), &err);
    assert_tide_ok(tide__feed_register(f, TIDE__LOG_RUN, bytes.data, bytes.len, &err), &err);
    tide_text_deinit(&bytes);
    return (int64_t)tide__feed_n_registered(f); // there are no facts in these
}

static inline tide__feed *rig_add_feed(const char *path, size_t ring_slots, bool drop) {
    tide_error err = TIDE_ERROR_INIT;
    tide__feed *f;
    const tide__feed_options opt = {
        .trace_path = path, .command = "test", .rank = -1, .ring_slots = ring_slots, .drop_when_full = drop};
    assert_tide_ok(tide__feed_create(&opt, &f, &err), &err);
    return f;
}

static inline void rig_open_drain(rig *r) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__drain_open(&r->opt, &r->drain, &err), &err);
}

static inline void rig_open(rig *r, size_t ring_slots, bool drop, const tide__drain_options *opt) {
    tide_error err = TIDE_ERROR_INIT;
    *r = (rig){0};
    tmp_dir_make(&r->dir);
    if (opt != NULL) r->opt = *opt;
    r->opt.trace_path = r->dir.file;
    r->opt.quiet = true;
    if (r->opt.hold_back_ms == 0)
        r->opt.hold_back_ms = TIDE_RECORD_NO_HOLD_BACK; // these events have times of their own
    assert_tide_ok(tide__store_create(r->dir.file, &err), &err);
    r->feed = rig_add_feed(r->dir.file, ring_slots, drop);
    rig_open_drain(r);
}

/// One round. @return events taken
static inline size_t rig_round(rig *r) {
    tide_error err = TIDE_ERROR_INIT;
    size_t n = 0, n_alive = 0;
    assert_tide_ok(tide__drain_round(r->drain, &n, &n_alive, &err), &err);
    return n;
}

/// Rounds until nothing is left. @return events taken
static inline size_t rig_rounds(rig *r) {
    size_t n, sum = 0;
    while ((n = rig_round(r)) > 0) sum += n;
    return sum;
}

/// The producer ends, the drain takes the rest and finishes.
static inline void rig_finish(rig *r) {
    tide_error err = TIDE_ERROR_INIT;
    if (r->feed != NULL) tide__feed_end(r->feed);
    rig_rounds(r);
    assert_tide_ok(tide__drain_finish(r->drain, &err), &err);
    tide__drain_close(r->drain);
    r->drain = NULL;
    tide__feed_destroy(r->feed, false);
    r->feed = NULL;
}

static inline void rig_close(rig *r) {
    tide__drain_close(r->drain);
    if (r->feed != NULL) tide__feed_end(r->feed);
    tide__feed_destroy(r->feed, true);
    tmp_dir_remove(&r->dir);
}

/// An event of the cpu; t_ns 0: now.
static inline void rig_put(tide__feed *f, uint64_t t_ns, tide_memory_op op, uint64_t block_id, uint64_t bytes,
                           const char *tag) {
    const tide_memory_event e = {.op = op,
                                 .t_ns = t_ns,
                                 .block_id = block_id,
                                 .device = TIDE_CPU,
                                 .kind = TIDE_KIND_WORKSPACE,
                                 .requested_bytes = bytes,
                                 .reserved_bytes = bytes,
                                 .address = 0x10000 + block_id * 64,
                                 .thread = tide_thread_id(),
                                 .allocator = "cpu",
                                 .tag = tag};
    tide__feed_memory(f, &e);
}

static inline int64_t rig_number(const rig *r, const char *query) {
    sqlite3 *db = sql_open(r->dir.file);
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, query, -1, &stmt, NULL) != SQLITE_OK) fail_msg("%s: %s", query, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

/// Run `work` on a thread of its own, to its end: its events come from another ring.
static inline void rig_on_thread(void *(*work)(void *), void *arg) {
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, work, arg), 0);
    pthread_join(t, NULL);
}

#endif
