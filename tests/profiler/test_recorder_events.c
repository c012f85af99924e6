// SPDX-License-Identifier: MIT
//
// Events that a recorder is told and that cannot be, or contradict each other: what no program can do is refused, what
// a program did wrong is kept and told.
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

static int64_t sql_number(const char *path, const char *query) {
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

/// Threads that have no number, or one that is no number of the file.
static void test_threads_of_no_number(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const uint32_t threads[] = {0, 5, UINT32_MAX, 6};
    for (uint64_t i = 0; i < 4; i++) {
        f.thread = threads[i];
        feed(&f, 10 + i, TIDE_MEM_ALLOC, 1 + i, TIDE_KIND_DEFAULT, 8, "a");
    }
    feeder_close(&f);
    assert_sql(d.file, "SELECT id, thread FROM event", "1|0\n2|5\n3|0\n4|6\n");
    assert_sql(d.file, "SELECT count(*) FROM problem", "0\n");
    tmp_dir_remove(&d);
}

// ---- events that cannot be true ----

/// What no program can do is refused and reported at close; the rest of the recording is whole.
static void expect_refused(const tide_memory_event *event, const char *words) {
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    f.obs.on_memory(f.obs.self, event);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_put_meta(f.rec, "k", "v", &err), &err); // the recording goes on
    feed(&f, 1, TIDE_MEM_ALLOC, 77, TIDE_KIND_DEFAULT, 8, NULL);
    tide_recorder_stats stats;
    tide_recorder_get_stats(f.rec, &stats);
    assert_int_equal(stats.n_refused, 1);
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, words);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_sql(d.file, "SELECT block_id FROM event", "77\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'k') ORDER BY key", "v\ncomplete\n");
    tmp_dir_remove(&d);
}

static void test_impossible_events_are_refused(void **state) {
    (void)state;
    const tide_memory_event good = {.op = TIDE_MEM_ALLOC, .block_id = 1, .requested_bytes = 8, .reserved_bytes = 8};
    tide_memory_event bad = good;
    bad.kind = (tide_memory_kind)TIDE_N_KINDS;
    expect_refused(&bad, "no such memory kind");
    bad = good;
    bad.op = (tide_memory_op)11;
    expect_refused(&bad, "no such operation");
    bad.op = TIDE_MEM_SIZED;
    bad.requested_bytes = bad.reserved_bytes + 1;
    expect_refused(&bad, "a tensor that takes more bytes than it has");
    bad = good;
    bad.requested_bytes = UINT64_MAX;
    expect_refused(&bad, "passes 2^63");
    bad = good;
    bad.t_ns = (uint64_t)INT64_MAX + 1;
    expect_refused(&bad, "passes 2^63");
    bad = good;
    bad.block_id = UINT64_C(1) << 48;
    expect_refused(&bad, "passes 2^48");
    tide_scope a = {.name = "a"}, b = {.name = "b", .parent = &a};
    a.parent = &b;
    bad = good;
    bad.scope = &a; // a circle
    expect_refused(&bad, "scope");
}

/// Events that contradict each other are what a profiler is there to show.
static void test_contradictions_are_kept(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, "a");
    feed(&f, 110, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 16, "twice");
    feed_free(&f, 120, 1, TIDE_KIND_DEFAULT, 16, "twice");
    feed(&f, 130, TIDE_MEM_FREE_COMPLETED, 1, TIDE_KIND_DEFAULT, 16, "again");
    feed(&f, 140, TIDE_MEM_FREE_REQUESTED, 9, TIDE_KIND_DEFAULT, 16, "never");
    feed(&f, 150, TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 8, "b");
    feed(&f, 160, TIDE_MEM_FREE_REQUESTED, 2, TIDE_KIND_DEFAULT, 8, "b");
    feed(&f, 170, TIDE_MEM_FREE_REQUESTED, 2, TIDE_KIND_DEFAULT, 8, "b");
    feed(&f, 180, TIDE_MEM_ALLOC, 0, TIDE_KIND_DEFAULT, 8, "nobody");
    feeder_close(&f); // no error
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM event"), 10);
    assert_sql(d.file, "SELECT event_id, problem FROM problem ORDER BY event_id", "2|1\n5|2\n6|3\n9|4\n10|5\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('n_problems', 'n_orphan_frees', 'state') ORDER BY key",
               "0\n5\ncomplete\n");
    tmp_dir_remove(&d);
}

static void test_attached_late_keeps_orphan_frees(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, true);
    feed_free(&f, 100, 7, TIDE_KIND_DEFAULT, 64, "before us");
    feed(&f, 110, TIDE_MEM_ALLOC, 8, TIDE_KIND_DEFAULT, 8, "after");
    feeder_close(&f);
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'n_orphan_frees'", "2\n");
    assert_sql(d.file, "SELECT count(*) FROM event", "3\n");
    assert_sql(d.file, "SELECT kind, peak_bytes FROM bytes_by_kind", "Default|8\n");
    assert_sql(d.file, "SELECT count(*) FROM problem", "0\n");
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_threads_of_no_number),
        tide_unit_test(test_impossible_events_are_refused),
        tide_unit_test(test_contradictions_are_kept),
        tide_unit_test(test_attached_late_keeps_orphan_frees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
