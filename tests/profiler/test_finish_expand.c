// SPDX-License-Identifier: MIT
//
// Chunks that become rows: the same events afterwards, and never fewer.
#include "profiler/store/cursor.h"
#include "profiler/store/finish.h"
#include "tests/profiler/event_fixture.h"
#include "tests/profiler/trace_fixture.h"

enum { N_EVENTS = 30000 };

static tide__event events[N_EVENTS];

/// Rows, chunks, rows, a hole, chunks.
static void make_trace(const tmp_dir *d) {
    static program p;
    p = (program){.rng.state = 5, .want_live = 300, .scopes = 100, .n_kinds = 3, .requests = true};
    for (size_t i = 0; i < N_EVENTS; i++) events[i] = program_next(&p);
    tide_error err = TIDE_ERROR_INIT;
    tide__store *s;
    assert_tide_ok(tide__store_create(d->file, &err), &err);
    assert_tide_ok(tide__store_open(d->file, &s, &err), &err);
    assert_tide_ok(tide__store_begin(s, &err), &err);
    tide_status st = tide__store_write_events(s, events, 5000, false, &err);
    if (st == TIDE_OK) st = tide__store_write_events(s, &events[5000], 9000, true, &err);
    if (st == TIDE_OK) st = tide__store_write_events(s, &events[14000], 1000, false, &err);
    if (st == TIDE_OK) st = tide__store_write_events(s, &events[16000], N_EVENTS - 16000, true, &err);
    assert_tide_ok(tide__store_end(s, st, &err), &err);
    assert_tide_ok(tide__finish(s, NULL, &err), &err);
}

static void exec(const tmp_dir *d, const char *text) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(d->file, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", text, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/// The cursor gives all events that were written.
static void assert_all_there(const tmp_dir *d) {
    tide_error err = TIDE_ERROR_INIT;
    tide__sql s = {.path = d->file, .db = sql_open(d->file)};
    tide__cursor *c;
    assert_tide_ok(tide__cursor_open(&s, 1, INT64_MAX, &c, &err), &err);
    size_t at = 0, n;
    const tide__event *got;
    while (true) {
        assert_tide_ok(tide__cursor_next(c, &got, &n, &err), &err);
        if (n == 0) break;
        for (size_t i = 0; i < n; i++) {
            if (at == 15000) at = 16000;
            assert_event_equal(&got[i], &events[at++]);
        }
    }
    assert_int_equal(at, N_EVENTS);
    tide__cursor_close(c);
    sqlite3_close(s.db);
}

static void test_the_same_events_as_rows(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    make_trace(&d);
    assert_sql(d.file, "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM event_chunk)", "6000|7\n");
    assert_all_there(&d);
    tide_error err = TIDE_ERROR_INIT;
    for (int turn = 0; turn < 2; turn++) { // the second time there is nothing to do
        assert_tide_ok(tide__finish_expand(d.file, &err), &err);
        assert_sql(d.file, "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM event_chunk)", "29000|0\n");
        assert_all_there(&d);
        assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    }
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
}

static void test_what_cannot_be_expanded_stays(void **state) {
    (void)state;
    static const struct {
        const char *damage, *repair, *words;
    } all[] = {
        {"CREATE TABLE kept AS SELECT * FROM event_chunk WHERE first_event = 20097;"
         "UPDATE event_chunk SET data = x'00' WHERE first_event = 20097",
         "UPDATE event_chunk SET data = (SELECT data FROM kept) WHERE first_event = 20097", "damaged"},
        {"INSERT INTO event(id, t_ns, op, thread) VALUES(16500, 0, 8, 1)", "DELETE FROM event WHERE id = 16500",
         "UNIQUE"},
        {"UPDATE event_chunk SET first_event = 15500 WHERE first_event = 16001",
         "UPDATE event_chunk SET first_event = 16001 WHERE first_event = 15500", "damaged"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        make_trace(&d);
        exec(&d, all[i].damage);
        tide_error err = TIDE_ERROR_INIT;
        assert_true(tide__finish_expand(d.file, &err) != TIDE_OK);
        assert_text_has(err.msg, d.file);
        assert_text_has(err.msg, all[i].words);
        exec(&d, all[i].repair);
        assert_all_there(&d);
        assert_tide_ok(tide__finish_expand(d.file, &err), &err);
        assert_all_there(&d);
        tmp_dir_remove(&d);
    }
}

static void test_no_file_and_no_memory(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__finish_expand(d.file, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, d.file);
    assert_int_equal(tmp_dir_count(&d), 0);
    make_trace(&d);
    int fail = 0;
    for (;; fail++) {
        tide_host_fail_after(fail);
        const tide_status st = tide__finish_expand(d.file, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_text_has(err.msg, d.file);
        assert_all_there(&d);
    }
    assert_true(fail >= 3);
    assert_sql(d.file, "SELECT count(*) FROM event_chunk", "0\n");
    assert_all_there(&d);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_the_same_events_as_rows),
        tide_unit_test(test_what_cannot_be_expanded_stays),
        tide_unit_test(test_no_file_and_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
