// SPDX-License-Identifier: MIT
//
// A trace file while it is written: made whole or not at all, refused where it must be, whole after every transaction.
#include <fcntl.h>
#include <pthread.h>

#include "core/base/output.h"
#include "profiler/feed/feed.h"
#include "profiler/feed/reader.h"
#include "tests/profiler/store_fixture.h"

static void create(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_create(path, &err), &err);
}

static tide__store *open_store(const char *path) {
    tide__store *s;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_open(path, &s, &err), &err);
    return s;
}

// ---- create ----

static void test_a_new_trace_is_one_whole_file(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    assert_int_equal(tmp_dir_count(&d), 1);
    char *head;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(d.file, 0, &head, &len, &err), &err);
    assert_true(tide_trace_recognise(head, len));
    const unsigned char want[] = {0x20, 0x00, 2, 2}; // pages of 8192 bytes, written and read with a log
    assert_memory_equal(head + 16, want, sizeof want);
    assert_int_equal(head[63], TIDE_TRACE_VERSION);
    tide_host_free(head);
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('schema', 'version', 'state') ORDER BY key",
               "tidemark.trace\nrecording\n1\n");
    assert_sql(d.file, "SELECT id, name FROM op WHERE id >= 7",
               "7|pool_discard\n8|snapshot\n9|device_usage\n10|sized\n16|scope_enter\n17|scope_leave\n18|gap\n"
               "19|process_end\n");
    assert_sql(d.file, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT%'", "0\n");
    assert_sql(d.file, "SELECT * FROM series", "0||\n");
    tmp_dir_remove(&d);
}

/// The words of a create that must fail.
static void create_fails(const char *path, tide_status want, const char *words) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__store_create(path, &err), want);
    assert_text_has(err.msg, words);
    assert_text_has(err.msg, path);
}

static void test_what_cannot_be_a_trace_is_refused(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create_fails("", TIDE_ERR_INVALID, "not a stream");
    create_fails("-", TIDE_ERR_INVALID, "not a stream");
    create_fails(d.path, TIDE_ERR_WRITE, "it is a directory");
    create_fails("/dev/null", TIDE_ERR_WRITE, "not a regular file");
    char path[400];
    snprintf(path, sizeof path, "%s/missing/trace.db", d.path);
    create_fails(path, TIDE_ERR_WRITE, "cannot");
    snprintf(path, sizeof path, "%s/pipe", d.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    create_fails(path, TIDE_ERR_WRITE, "not a regular file");
    assert_int_equal(tmp_dir_count(&d), 1); // the pipe
    tmp_dir_remove(&d);
}

static void test_a_name_that_means_something_to_sqlite_is_a_file(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char cwd[512];
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(d.path), 0);
    const char *const names[] = {":memory:", "file:x?mode=memory", "-x", "a b'c%d"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        create(names[i]);
        tide__store_close(open_store(names[i]));
        assert_int_equal(access(names[i], F_OK), 0);
    }
    assert_int_equal(tmp_dir_count(&d), 4);
    assert_int_equal(chdir(cwd), 0);
    tmp_dir_remove(&d);
}

static void copy_file(const char *from, const char *to) {
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(from, 0, &data, &len, &err), &err);
    assert_tide_ok(tide_write_file(to, data, len, &err), &err);
    tide_host_free(data);
}

/// What a killed recorder leaves: the file and its log, which holds all of it.
static void leave_log(const char *path, const char *aside) {
    char log[400], aside_log[400];
    snprintf(log, sizeof log, "%s-wal", path);
    snprintf(aside_log, sizeof aside_log, "%s-wal", aside);
    create(path);
    writer w;
    writer_open(&w, path);
    writer_run(&w, 100);
    writer_flush(&w);
    copy_file(path, aside);
    copy_file(log, aside_log);
    writer_close(&w);
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(rename(aside_log, log), 0);
}

static void test_an_old_log_is_not_played_into_a_new_trace(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char aside[400];
    snprintf(aside, sizeof aside, "%s/aside", d.path);
    leave_log(d.file, aside);
    assert_sql(d.file, "SELECT count(*) FROM event", "100\n"); // the log counts, until ...
    leave_log(d.file, aside);
    create(d.file);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_sql(d.file, "SELECT count(*) FROM event", "0\n");
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    tmp_dir_remove(&d);
}

static tide__feed *make_feed(const char *path) {
    const tide__feed_options opt = {.trace_path = path, .rank = -1, .ring_slots = 64};
    tide__feed *f;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_create(&opt, &f, &err), &err);
    return f;
}

static void test_a_trace_in_recording_is_left_alone(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    sql_exec(d.file, "INSERT INTO meta VALUES('mine', '1')");
    tide__feed *feed = make_feed(d.file);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__store_create(d.file, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "another process records into it");
    assert_true(err.hint[0] != '\0');
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'mine'", "1\n");
    assert_int_equal(tmp_dir_count(&d), 2);
    // The feed of a program that is gone goes with the trace that it was for.
    tide__feed_end(feed);
    tide__feed_destroy(feed, false);
    assert_int_equal(tmp_dir_count(&d), 2);
    create(d.file);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_sql(d.file, "SELECT count(*) FROM meta WHERE key = 'mine'", "0\n");
    tmp_dir_remove(&d);
}

static void test_create_without_memory_leaves_what_was_there(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    sql_exec(d.file, "INSERT INTO meta VALUES('mine', '1')");
    int64_t n = 0;
    for (tide_status st = TIDE_ERR_NOMEM; st != TIDE_OK; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        st = tide__store_create(d.file, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_true(err.msg[0] != '\0');
        assert_int_equal(tmp_dir_count(&d), 1);
        assert_sql(d.file, "SELECT value FROM meta WHERE key = 'mine'", "1\n");
    }
    assert_true(n > 5);
    assert_sql(d.file, "SELECT count(*) FROM meta WHERE key = 'mine'", "0\n");
    tmp_dir_remove(&d);
}

/// What cannot be put in place is taken away again.
static void test_a_trace_that_gets_no_name_leaves_nothing(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char log[400];
    snprintf(log, sizeof log, "%s-wal", d.file);
    assert_int_equal(mkdir(log, 0700), 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__store_create(d.file, &err), TIDE_ERR_WRITE);
    assert_text_has(err.note, "is in the way");
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_int_equal(rmdir(log), 0);
    create(d.file);
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
}

// ---- open ----

static void open_fails(const char *path, const char *words) {
    tide__store *s;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__store_open(path, &s, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, words);
}

static void test_only_an_unfinished_trace_of_this_version_is_opened(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__store_open(d.file, &s, &err), TIDE_ERR_WRITE);
    assert_tide_ok(tide_write_file(d.file, "no database, but some text", 26, &err), &err);
    open_fails(d.file, "file is not a database");
    create(d.file);
    sql_exec(d.file, "PRAGMA application_id = 7");
    open_fails(d.file, "not a tidemark trace");
    create(d.file);
    sql_exec(d.file, "PRAGMA user_version = 3");
    open_fails(d.file, "version 3, not 1");
    for (int i = 0; i < 2; i++) {
        create(d.file);
        sql_exec(d.file, i == 0 ? "UPDATE meta SET value = 'complete' WHERE key = 'state'"
                                : "UPDATE meta SET value = 'cut short' WHERE key = 'state'");
        open_fails(d.file, "that recording has ended");
    }
    create(d.file);
    sql_exec(d.file, "DELETE FROM meta");
    open_fails(d.file, "state");
    create(d.file);
    sql_exec(d.file, "DROP TABLE leaf");
    open_fails(d.file, "cannot record");
    create(d.file);
    sql_exec(d.file, "ALTER TABLE event ADD COLUMN extra INTEGER");
    open_fails(d.file, "cannot record");
    tmp_dir_remove(&d);
}

static void test_triggers_of_a_file_are_not_run(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    sql_exec(d.file, "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM meta; END");
    writer w;
    writer_open(&w, d.file);
    writer_run(&w, 10);
    writer_flush(&w);
    writer_close(&w);
    assert_sql(d.file, "SELECT (SELECT count(*) FROM event), count(*) > 0 FROM meta", "10|1\n");
    tmp_dir_remove(&d);
}

static void test_open_without_memory(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    int64_t n = 0;
    for (;; n++) {
        tide__store *s;
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = tide__store_open(d.file, &s, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) tide__store_close(s);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
    }
    assert_true(n >= 3);
    tmp_dir_remove(&d);
}

// ---- transactions ----

static void test_a_failed_transaction_leaves_nothing(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_begin(w.s, &err), &err);
    writer_run(&w, 3000);
    tide_status st = tide__store_write_events(w.s, w.batch, w.n_batch, false, &err);
    if (st == TIDE_OK) st = tide__store_write_leaves(w.s, &w.replay, w.leaves.done, w.leaves.n_done, &err);
    assert_tide_ok(st, &err);
    assert_true(w.leaves.n_done > 0);
    assert_tide_status(tide__store_end(w.s, TIDE_ERR_RUNTIME, &err), TIDE_ERR_RUNTIME);
    assert_sql(d.file, "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM leaf), count(*) FROM series",
               "0|0|1\n");
    // The same again, and the same event twice: the second time is an error of the whole.
    writer_flush(&w);
    assert_sql(d.file, "SELECT count(*), max(id) FROM event", "3000|3000\n");
    assert_sql(d.file, "SELECT count(*) FROM leaf l LEFT JOIN series s ON s.id = l.series WHERE s.id IS NULL", "0\n");
    assert_tide_ok(tide__store_begin(w.s, &err), &err);
    const tide__event twice[] = {{.id = 3001, .op = 1, .thread = 1}, {.id = 3001, .op = 1, .thread = 1}};
    st = tide__store_write_events(w.s, twice, 2, false, &err);
    assert_int_not_equal(tide__store_end(w.s, st, &err), TIDE_OK);
    assert_sql(d.file, "SELECT count(*), max(id) FROM event", "3000|3000\n");
    writer_close(&w);
    tmp_dir_remove(&d);
}

/// A transaction holds the write lock from its beginning, so a conflict shows at the begin and not at a later write.
static void test_a_transaction_has_the_trace_from_its_beginning(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    tide__store *s = open_store(d.file);
    sqlite3 *other = sql_open(d.file);
    sqlite3_busy_timeout(other, 0); // it asks, and does not wait
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_begin(s, &err), &err);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    assert_tide_ok(tide__store_end(s, TIDE_OK, &err), &err);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

typedef struct connection {
    const char *path;
    int n_written;
} connection;

/// What a recorded process writes itself, while the drain writes too.
static void *connection_main(void *arg) {
    connection *k = arg;
    tide__store *s;
    if (tide__store_open(k->path, &s, NULL) != TIDE_OK) return NULL;
    for (int i = 0; i < 20; i++) {
        const tide_run_info info = {.model = "demo", .mode = "naive"};
        int64_t run_id;
        tide_status st = tide__store_begin(s, NULL);
        if (st == TIDE_OK) {
            st = tide__store_add_run(s, 1, &info, NULL, i, &run_id, NULL);
            st = tide__store_end(s, st, NULL);
        }
        k->n_written += st == TIDE_OK;
    }
    tide__store_close(s);
    return NULL;
}

static void test_several_connections_write_one_trace(void **state) {
    (void)state;
    enum { N_CONNECTIONS = 4, N_BATCHES = 30 };
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    connection connections[N_CONNECTIONS];
    pthread_t threads[N_CONNECTIONS];
    for (int i = 0; i < N_CONNECTIONS; i++) { // all of them find a file that is in no write-ahead mode yet
        connections[i] = (connection){.path = d.file};
        assert_int_equal(pthread_create(&threads[i], NULL, connection_main, &connections[i]), 0);
    }
    writer w;
    writer_open(&w, d.file);
    for (int i = 0; i < N_BATCHES; i++) {
        writer_run(&w, 500);
        writer_flush(&w);
    }
    for (int i = 0; i < N_CONNECTIONS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(connections[i].n_written, 20);
    }
    writer_close(&w);
    assert_int_equal(tmp_dir_count(&d), 1); // the last one that goes folds the log in
    assert_sql(d.file, "SELECT (SELECT count(*) FROM event), count(*), min(id), max(id) FROM run", "15000|80|1|80\n");
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_a_new_trace_is_one_whole_file),
        tide_unit_test(test_what_cannot_be_a_trace_is_refused),
        tide_unit_test(test_a_name_that_means_something_to_sqlite_is_a_file),
        tide_unit_test(test_an_old_log_is_not_played_into_a_new_trace),
        tide_unit_test(test_a_trace_in_recording_is_left_alone),
        tide_unit_test(test_create_without_memory_leaves_what_was_there),
        tide_unit_test(test_a_trace_that_gets_no_name_leaves_nothing),
        tide_unit_test(test_only_an_unfinished_trace_of_this_version_is_opened),
        tide_unit_test(test_triggers_of_a_file_are_not_run),
        tide_unit_test(test_open_without_memory),
        tide_unit_test(test_a_failed_transaction_leaves_nothing),
        tide_unit_test(test_a_transaction_has_the_trace_from_its_beginning),
        tide_unit_test(test_several_connections_write_one_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
