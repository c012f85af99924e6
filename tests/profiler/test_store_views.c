// SPDX-License-Identifier: MIT
//
// What the views say of the whole trace, which they take from leaves, is what they say of a run over all of it, which
// they take from blocks; and they are quick enough to be asked.
#include "profiler/store/finish.h"
#include "tests/profiler/store_fixture.h"

/// A finished trace with runs 1 (all of it), 2 (a part) and 3 (never begun).
static void make_trace(const char *path, bool as_chunks) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_create(path, &err), &err);
    writer w;
    writer_open(&w, path);
    w.as_chunks = as_chunks;
    const tide_run_info info = {.model = "demo", .mode = "naive"};
    int64_t run;
    for (int i = 0; i < 3; i++) assert_tide_ok(tide__store_add_run(w.s, 1, &info, NULL, 1, &run, &err), &err);
    assert_tide_ok(tide__store_run(w.s, true, 1, 0, 10, &err), &err);
    writer_run(&w, 3000);
    assert_tide_ok(tide__store_run(w.s, true, 2, w.last_event, w.last_ns, &err), &err);
    w.want_live = 300;
    writer_run(&w, 3000);
    // All blocks of one range at once: a change of several kinds in one event.
    writer_put(&w, (tide__event){.op = TIDE_MEM_POOL_DISCARD,
                                 .device = 1,
                                 .kind = 0,
                                 .thread = 1,
                                 .address = 0x7f0000000000 + w.live[0] * 4096,
                                 .reserved_bytes = 400 * 4096});
    writer_put(&w, (tide__event){.op = TIDE_MEM_SNAPSHOT, .kind = 0, .thread = 1, .tag_id = 2});
    for (int i = 0; i < 500; i++) writer_put(&w, writer_event(TIDE_MEM_ALLOC, ++w.n_blocks, 3000));
    // The highest of all, and as high once more.
    writer_put(&w, writer_event(TIDE_MEM_FREE_COMPLETED, w.n_blocks, 3000));
    writer_put(&w, writer_event(TIDE_MEM_ALLOC, w.n_blocks + 3, 3000));
    assert_tide_ok(tide__store_run(w.s, false, 2, w.last_event, w.last_ns, &err), &err);
    writer_put(&w, (tide__event){.op = TIDE__OP_GAP, .kind = TIDE__NO_KIND, .thread = 1, .requested_bytes = 77});
    // Behind the last leaf.
    for (int i = 0; i < 1100; i++)
        writer_put(&w, (tide__event){.op = TIDE__OP_SCOPE_LEAVE, .kind = TIDE__NO_KIND, .thread = 1, .scope_id = 1});
    assert_int_equal(tide__leaves_end(&w.leaves), TIDE_OK);
    writer_flush(&w);
    assert_tide_ok(tide__store_run(w.s, false, 1, w.last_event, w.last_ns, &err), &err);
    assert_tide_ok(tide__finish(w.s, NULL, &err), &err);
    w.s = NULL;
    writer_close(&w);
    if (as_chunks) assert_tide_ok(tide__finish_expand(path, &err), &err); // for a shell without our tables
}

/// A query with %d for the run says the same of runs 0 and 1.
static void assert_same(const char *path, const char *query) {
    tide_text all = {0}, run = {0}, q = {0};
    sqlite3 *db = sql_open(path);
    tide_text_addf(&q, "%s 0", query);
    sql_print(db, tide_text_str(&q), false, &all);
    q.len = 0;
    tide_text_addf(&q, "%s 1", query);
    sql_print(db, tide_text_str(&q), false, &run);
    if (all.len == 0 || strcmp(tide_text_str(&all), tide_text_str(&run)) != 0)
        fail_msg("%s\nof the trace:\n%sof the run:\n%s", query, tide_text_str(&all), tide_text_str(&run));
    sqlite3_close(db);
    tide_text_deinit(&all);
    tide_text_deinit(&run);
    tide_text_deinit(&q);
}

static void test_the_whole_trace_is_a_run_over_all_of_it(void **state) {
    (void)state;
    for (int as_chunks = 0; as_chunks < 2; as_chunks++) {
        tmp_dir d;
        tmp_dir_make(&d);
        make_trace(d.file, as_chunks);
        assert_same(d.file, "SELECT first_event, last_event, begin_ns, end_ns FROM span WHERE run_id =");
        assert_same(d.file, "SELECT peak_bytes, t_ns, event_id FROM peak WHERE run_id =");
        // As many rows as there are kinds. Each kind is compared for itself, as the order of rows is not guaranteed.
        for (int kind = 0; kind < 3; kind++) {
            char query[240];
            snprintf(query, sizeof query,
                     "SELECT kind, device, peak_bytes, t_ns, event_id FROM peak_by_kind "
                     "WHERE kind = (SELECT name FROM kind WHERE id = %d) AND run_id =",
                     kind);
            assert_same(d.file, query);
        }
        assert_same(d.file, "SELECT kind, device, allocations, frees, requested_bytes, peak_bytes, "
                            "peak_reserved_bytes, live_at_end_bytes FROM bytes_by_kind WHERE run_id =");
        assert_same(d.file, "SELECT count(*), sum(requested_bytes), sum(block_id) FROM live_at_peak WHERE run_id =");
        assert_same(d.file, "SELECT count(*), sum(kind_bytes), sum(total_bytes) FROM live_bytes WHERE run_id =");
        assert_same(d.file, "SELECT scope, allocations, requested_bytes, largest_bytes FROM top_scopes WHERE run_id =");
        assert_sql(d.file, "SELECT run_id, first_event, last_event FROM span WHERE run_id > 1", "2|3001|6504\n");
        assert_sql(d.file, "SELECT count(*) FROM peak_by_kind", "9\n");
        tmp_dir_remove(&d);
    }
}

static void test_marks_gaps_and_blocks_that_went_at_once(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    make_trace(d.file, false);
    assert_sql(d.file, "SELECT event_id, t_ns, name FROM marks", "6002|60020|tensor\n");
    assert_sql(d.file, "SELECT event_id, lost, thread FROM gaps", "6505|77|1\n");
    assert_sql(d.file, "SELECT count(*) > 50 FROM block WHERE free_event = 6001", "1\n");
    assert_sql(d.file, "SELECT count(*), min(block_id), max(scope) FROM events WHERE op = 'gap'", "1||\n");
    assert_sql(d.file, "SELECT count(*) = (SELECT count(*) FROM event) FROM events", "1\n");
    assert_sql(d.file,
               "SELECT sum(enter) = (SELECT count(*) FROM event WHERE op = 16), sum(NOT enter) FROM scope_event",
               "1|1100\n");
    assert_sql(d.file, "SELECT count(*), min(coalesce(kind, 'sum')), max(last_event) FROM timeline WHERE series = 0",
               "7|sum|7168\n");
    tmp_dir_remove(&d);
}

/// Asking for one run does not mean working through all of them: SQLite pushes the question down through the views.
static void test_only_what_is_asked_for_is_computed(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    make_trace(d.file, false);
    static const char *const views[] = {"peak", "peak_by_kind", "bytes_by_kind"};
    sqlite3 *db = sql_open(d.file);
    for (size_t i = 0; i < 3; i++) {
        char query[128];
        int steps[2];
        for (int run = 0; run < 2; run++) {
            snprintf(query, sizeof query, "SELECT * FROM %s WHERE run_id = %d", views[i], run);
            sqlite3_stmt *stmt;
            assert_int_equal(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK);
            while (sqlite3_step(stmt) == SQLITE_ROW) continue;
            steps[run] = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 0);
            sqlite3_finalize(stmt);
        }
        assert_true(steps[0] < steps[1] / 10);   // of the whole trace: no window over its blocks
        if (i < 2) assert_true(steps[0] < 5000); // no block at all
    }
    sqlite3_close(db);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_the_whole_trace_is_a_run_over_all_of_it),
        tide_unit_test(test_marks_gaps_and_blocks_that_went_at_once),
        tide_unit_test(test_only_what_is_asked_for_is_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
