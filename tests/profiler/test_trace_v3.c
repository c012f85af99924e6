// SPDX-License-Identifier: MIT
//
// Traces of version 3, whose chunks have format 1: opened and asked, checked, expanded, recovered and converted like
// those of today, and finished, with chunks of today's format beside the old ones, when their program was killed.
#include "profiler/moments.h"
#include "profiler/query.h"
#include "profiler/store/finish.h"
#include "tests/profiler/chunk_v1_encode.h"
#include "tests/profiler/drain_fixture.h"
#include "tests/profiler/history_fixture.h"

// ---- a trace of version 3 ----

/// All chunks of the file in format 1, and the number 3 where the version stands: what tidemark wrote then.
static void make_version_3(const char *path) {
    static tide__event events[TIDE__CHUNK_MAX_EVENTS];
    static uint8_t bytes[TIDE__CHUNK_MAX_BYTES];
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *all, *put;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT first_event, data FROM event_chunk", -1, &all, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "UPDATE event_chunk SET data = ?2 WHERE first_event = ?1", -1, &put, NULL),
                     SQLITE_OK);
    while (sqlite3_step(all) == SQLITE_ROW) {
        const uint8_t *data = sqlite3_column_blob(all, 1);
        size_t n;
        assert_int_equal(data[0], 2);
        assert_true(tide__chunk_decode(data, (size_t)sqlite3_column_bytes(all, 1), events, &n));
        sqlite3_bind_int64(put, 1, sqlite3_column_int64(all, 0));
        sqlite3_bind_blob(put, 2, bytes, (int)v1_encode(events, n, bytes), SQLITE_STATIC);
        assert_int_equal(sqlite3_step(put), SQLITE_DONE);
        sqlite3_reset(put);
    }
    sqlite3_finalize(all);
    sqlite3_finalize(put);
    sqlite3_close(db);
    sql_exec(path, "UPDATE meta SET value = '3' WHERE key = 'version'; PRAGMA user_version = 3");
}

static const char formats[] = "SELECT DISTINCT hex(substr(data, 1, 1)) FROM event_chunk ORDER BY 1";
static const char version[] = "SELECT value FROM meta WHERE key = 'version'";

/// Answers that take all events, all blocks and the curve.
static char *answers(const char *path) {
    static const char *const queries[] = {"SELECT * FROM event",    "SELECT * FROM block ORDER BY id",
                                          "SELECT * FROM peak",     "SELECT * FROM bytes_by_kind",
                                          "SELECT * FROM timeline", "SELECT * FROM problem"};
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    tide_text out = {0};
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    assert_tide_ok(tide_trace_check(t, &err), &err);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        assert_tide_ok(tide_trace_sql(t, queries[i], "|", 0, &out, &err), &err);
    tide_live_set s;
    for (uint64_t id = 1000; id < 9000; id += 1000) {
        assert_tide_ok(tide_trace_live_set_after(t, id, &s, &err), &err);
        tide_text_addf(&out, "%zu %" PRIu64 "\n", s.n, (uint64_t)s.requested_bytes);
        tide_live_set_deinit(&s);
    }
    tide_trace_close(t);
    assert_true(out.len > 100000);
    return out.data;
}

/// The same history as trace of today (d->file) and of version 3 (*old). @return the answers of the former
static char *record_both(tmp_dir *d, char *old, size_t old_bytes) {
    static history h;
    tmp_dir_make(d);
    snprintf(old, old_bytes, "%s/old.db", d->path);
    h_record(&h, d->file, 3, 12000, H_MIXED);
    h_deinit(&h);
    h_record(&h, old, 3, 12000, H_MIXED);
    h_deinit(&h);
    make_version_3(old);
    assert_sql(d->file, formats, "02\n");
    assert_sql(old, formats, "01\n");
    return answers(d->file);
}

static void expect_answers(const char *path, const char *want) {
    char *got = answers(path);
    if (strcmp(got, want) != 0) fail_msg("%s answers otherwise", path);
    tide_host_free(got);
}

// ---- tests ----

static void test_it_is_asked_as_it_is(void **state) {
    (void)state;
    tmp_dir d;
    char old[340];
    char *want = record_both(&d, old, sizeof old);
    expect_answers(old, want);
    assert_sql(old, "PRAGMA user_version", "3\n"); // who reads it does not change it
    assert_sql(old, formats, "01\n");
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_expand(old, &err), &err);
    assert_sql(old, "SELECT count(*) FROM event_chunk", "0\n");
    expect_answers(old, want);
    tide_host_free(want);
    tmp_dir_remove(&d);
}

static void test_it_is_converted(void **state) {
    (void)state;
    tmp_dir d;
    char old[340], new[340];
    char *want = record_both(&d, old, sizeof old);
    snprintf(new, sizeof new, "%s/new.db", d.path);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_convert(old, new, &err), &err);
    assert_sql(new, "PRAGMA user_version; ", "4\n");
    assert_sql(new, version, "4\n");
    assert_sql(new, "SELECT value FROM meta WHERE key = 'converted_from_version'", "3\n");
    assert_sql(new, "PRAGMA journal_mode", "delete\n");
    assert_sql(old, "PRAGMA user_version", "3\n");
    assert_int_equal(tmp_dir_count(&d), 3); // nothing else is left there
    expect_answers(new, want);
    // One of today is refused, and so is one whose pages are no trace.
    assert_tide_status(tide_trace_convert(new, old, &err), TIDE_ERR_BAD_INPUT);
    sql_exec(old, "UPDATE event_chunk SET data = zeroblob(100) WHERE first_event = (SELECT max(first_event) FROM "
                  "event_chunk)");
    sql_exec(old, "DROP TABLE leaf");
    assert_tide_status(tide_trace_convert(old, new, &err), TIDE_ERR_BAD_INPUT);
    expect_answers(new, want);
    tide_host_free(want);
    tmp_dir_remove(&d);
}

static void test_it_is_recovered(void **state) {
    (void)state;
    tmp_dir d;
    char old[340], new[340];
    char *want = record_both(&d, old, sizeof old);
    snprintf(new, sizeof new, "%s/new.db", d.path);
    tide_error err = TIDE_ERROR_INIT;
    uint64_t n_lost;
    assert_tide_ok(tide_trace_recover(old, new, &n_lost, &err), &err);
    assert_int_equal(n_lost, 0);
    assert_sql(new, version, "4\n");
    assert_sql(new, formats, "02\n");
    tide_host_free(want);
    char *got = answers(new); // names have other numbers now: as in what is recovered from the trace of today
    assert_tide_ok(tide_trace_recover(d.file, new, &n_lost, &err), &err);
    assert_int_equal(n_lost, 0);
    expect_answers(new, got);
    tide_host_free(got);
    // Without the list of its tables only pages are left, where chunks of format 1 are found as well.
    FILE *f = fopen(old, "rb+");
    assert_non_null(f);
    static const char nothing[8192];
    assert_int_equal(fwrite(nothing, sizeof nothing, 1, f), 1);
    fclose(f);
    assert_tide_ok(tide_trace_recover(old, new, &n_lost, &err), &err);
    assert_sql(d.file, "SELECT value > 11000 FROM meta WHERE key = 'n_events'", "1\n");
    tide_trace *t;
    assert_tide_ok(tide_trace_open(new, &t, &err), &err);
    assert_tide_ok(tide_trace_check(t, &err), &err);
    tide_text text = {0};
    assert_tide_ok(tide_trace_sql(t, "SELECT count(*) > 11000 FROM event WHERE op <> 18", "|", 0, &text, &err), &err);
    assert_non_null(strstr(text.data, "\n1\n"));
    tide_text_deinit(&text);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

/// As a program of then left it when it was killed: chunks of format 1 in the trace, more events in the feed.
static void leave_unfinished(rig *r, uint64_t n_drained, uint64_t n_left) {
    const tide__drain_options opt = {.form = TIDE_RECORD_CHUNKS};
    rig_open(r, 1 << 14, false, &opt);
    for (uint64_t i = 1; i <= n_drained; i++) rig_put(r->feed, i, TIDE_MEM_ALLOC, i, 8 * i, "x");
    assert_int_equal(rig_rounds(r), n_drained);
    for (uint64_t i = 1; i <= n_left; i++) rig_put(r->feed, n_drained + i, TIDE_MEM_FREE_COMPLETED, i, 8 * i, "x");
    tide__drain_close(r->drain);
    r->drain = NULL;
    tide__feed_destroy(r->feed, false);
    r->feed = NULL;
    make_version_3(r->dir.file);
    assert_sql(r->dir.file, formats, "01\n");
}

static void expect_finished(const char *path, const char *want_formats) {
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    assert_tide_ok(tide_trace_check(t, &err), &err);
    tide_text text = {0};
    assert_tide_ok(
        tide_trace_sql(t, "SELECT op, count(*), sum(requested_bytes) FROM event GROUP BY op", "|", 0, &text, &err),
        &err);
    assert_string_equal(text.data, "op|count(*)|sum(requested_bytes)\n1|5000|100020000\n3|3000|36012000\n");
    tide_text_deinit(&text);
    tide_trace_close(t);
    assert_sql(path, "PRAGMA user_version", "4\n");
    assert_sql(path, version, "4\n");
    assert_sql(path, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
    assert_sql(path, formats, want_formats);
    unsigned char head[64]; // what programs look at that do not ask SQLite
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, sizeof head, 1, f), 1);
    fclose(f);
    assert_int_equal(head[63], 4);
}

static void test_one_that_was_left_is_finished(void **state) {
    (void)state;
    rig r;
    leave_unfinished(&r, 5000, 3000);
    expect_finished(r.dir.file, ""); // few events: all are rows in the end
    rig_close(&r);
}

static void test_it_goes_on_as_one_of_today(void **state) {
    (void)state;
    rig r;
    leave_unfinished(&r, 5000, 3000);
    rig_open_drain(&r); // a collector of today
    assert_sql(r.dir.file, version, "4\n");
    assert_int_equal(rig_rounds(&r), 3000);
    assert_sql(r.dir.file, formats, "01\n02\n"); // old chunks beside new ones
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__drain_finish(r.drain, &err), &err);
    tide__drain_close(r.drain);
    r.drain = NULL;
    expect_finished(r.dir.file, "01\n02\n");
    rig_close(&r);
}

/// tidemark trace --recover of one that was left: into a new file, what is in the feed with it.
static void test_one_that_was_left_is_recovered(void **state) {
    (void)state;
    rig r;
    leave_unfinished(&r, 5000, 3000);
    char new[400];
    snprintf(new, sizeof new, "%s/new.db", r.dir.path);
    tide_error err = TIDE_ERROR_INIT;
    uint64_t n_lost;
    assert_tide_ok(tide_trace_recover(r.dir.file, new, &n_lost, &err), &err);
    assert_int_equal(n_lost, 0);
    expect_finished(new, "");
    assert_sql(r.dir.file, "PRAGMA user_version", "3\n");
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_it_is_asked_as_it_is),
        tide_unit_test(test_it_is_converted),
        tide_unit_test(test_it_is_recovered),
        tide_unit_test(test_one_that_was_left_is_finished),
        tide_unit_test(test_it_goes_on_as_one_of_today),
        tide_unit_test(test_one_that_was_left_is_recovered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
