// SPDX-License-Identifier: MIT
//
// Recordings that end badly: the trace is removed, the disk is full, another process changes the trace, memory runs
// out. The recorded program goes on, close reports what happened, and the part that was kept can be read.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "core/base/log.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

// ---- one clear line ----

typedef struct lines {
    int n;
    char last[1024];
} lines;

static void keep_line(void *ctx, tide_log_level level, const char *line) {
    lines *l = ctx;
    (void)level;
    l->n++;
    snprintf(l->last, sizeof l->last, "%s", line);
}

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

/// Put events in until the drain has told the feed that it gave up: begin_run says so.
static tide_status feed_until_told(feeder *f, tide_error *err) {
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    for (;;) {
        f->now++;
        feed(f, f->now, TIDE_MEM_OOM, 0, TIDE_KIND_DEFAULT, 8, "more");
        const tide_status st = tide_recorder_begin_run(f->rec, &info, NULL, NULL, err);
        if (st != TIDE_OK) return st;
        if (tide_recorder_end_run(f->rec, err) != TIDE_OK) return err->status;
    }
}

// ---- the trace goes away ----

static void test_trace_is_removed_while_recording(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    lines log = {0};
    tide_log_set(keep_line, &log, TIDE_LOG_WARN);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, NULL);
    assert_int_equal(unlink(d.file), 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_WRITE);
    tide_log_set(NULL, NULL, TIDE_LOG_WARN);
    assert_text_has(err.msg, "the trace was removed");
    char wal[400], shm[400];
    snprintf(wal, sizeof wal, "%s-wal", d.file);
    snprintf(shm, sizeof shm, "%s-shm", d.file);
    unlink(wal); // SQLite leaves the log of a file that is gone
    unlink(shm);
    assert_int_equal(tmp_dir_count(&d), 0); // neither a feed nor a lock
    tmp_dir_remove(&d);
}

static void test_trace_is_removed_and_events_go_on(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    lines log = {0};
    tide_log_set(keep_line, &log, TIDE_LOG_WARN);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    assert_int_equal(unlink(d.file), 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(feed_until_told(&f, &err), TIDE_ERR_WRITE);
    for (uint64_t i = 1; i < 200000; i++)
        feed(&f, i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 8, NULL); // three rings full
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_WRITE);
    tide_log_set(NULL, NULL, TIDE_LOG_WARN);
    assert_int_equal(log.n, 1);
    assert_text_has(log.last, "ended early");
    assert_text_has(log.last, d.file);
    tmp_dir_remove(&d);
}

static void test_folder_is_moved_while_recording(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char folder[600], path[700], moved[600], command[800];
    snprintf(folder, sizeof folder, "%s/in", d.path);
    snprintf(moved, sizeof moved, "%s/out", d.path);
    snprintf(path, sizeof path, "%s/trace.db", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    feeder f;
    feeder_open(&f, path, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, NULL);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    assert_int_equal(rename(folder, moved), 0);
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, path);
    // What was kept is there, under its new name.
    snprintf(path, sizeof path, "%s/trace.db", moved);
    assert_int_equal(sql_number(path, "SELECT count(*) FROM event"), 1);
    snprintf(command, sizeof command, "rm -rf '%s'", moved);
    assert_int_equal(system(command), 0);
    tmp_dir_remove(&d);
}

// ---- the disk is full ----

/// A limit on the size of files stands for a full disk. Its signal has no handler: it would end the program.
static void record_below_limit(const char *path, int *n_lines) {
    lines log = {0};
    tide_log_set(keep_line, &log, TIDE_LOG_WARN);
    feeder f;
    feeder_open(&f, path, 100, false);
    feed(&f, 1, TIDE_MEM_OOM, 0, TIDE_KIND_DEFAULT, 8, "block"); // the ring has its place on the disk
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    limit.rlim_cur = 1 << 20;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(3);
    tide_error err = TIDE_ERROR_INIT;
    static char big[2 << 20];
    memset(big, 'x', sizeof big - 1);
    if (tide_recorder_put_meta(f.rec, "big", big, &err) == TIDE_OK) _exit(6); // on this thread, not on the drain's
    for (uint64_t i = 1; i <= 100000; i++) feed(&f, i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 8, "block");
    const tide_status st = tide_recorder_close(f.rec, &err);
    *n_lines = log.n;
    if (st != TIDE_ERR_WRITE || strstr(err.msg, path) == NULL) _exit(4);
}

static void test_disk_full_leaves_the_program_running(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGXFSZ, SIG_DFL);
        int n_lines = 0;
        record_below_limit(d.file, &n_lines);
        _exit(n_lines == 1 ? 0 : 5);
    }
    int how;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    // What was kept is whole, and there is some.
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    assert_true(sql_number(d.file, "SELECT position FROM position") > 1000); // rows, or chunks
    // With room again, opening it makes the tables of the end; it says that it is not all.
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

// ---- another process writes ----

static void test_changed_rows_are_noticed_at_close(void **state) {
    (void)state;
    static const char *const changes[] = {
        "DELETE FROM event WHERE id = 9",
        "UPDATE event SET requested_bytes = 1 WHERE id = 1",
        "UPDATE event SET op = 4 WHERE id = 9",
        "UPDATE event SET kind = 3 WHERE id = 2",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        feeder f;
        feeder_open(&f, d.file, 0, false);
        demo_naive_run(&f, NULL);
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
        sql_exec(d.file, changes[i]);
        assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_RUNTIME);
        assert_text_has(err.msg, "does not hold what was recorded");
        tmp_dir_remove(&d);
    }
}

/// A user's shell has a transaction open: events wait in their rings, and nothing is lost.
static void test_a_writer_is_waited_for(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 1, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, "a");
    sqlite3 *db = sql_open(d.file);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (uint64_t i = 2; i <= 1000; i++) feed(&f, i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 8, "a");
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    feeder_close(&f);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM event"), 1000);
    tmp_dir_remove(&d);
}

// ---- memory ----

static bool is_no_memory(tide_status st, const tide_error *err) {
    return st == TIDE_ERR_NOMEM || (st != TIDE_OK && strstr(err->msg, "memory") != NULL);
}

/// Every allocation of ours fails once, on whatever thread: the right status, no leak (the fixture counts), a file that
/// can be read or none.
static void test_out_of_memory_everywhere(void **state) {
    (void)state;
    int64_t n = 0, n_opened = 0;
    // Some failures harm nothing (a command line that is not known): many in a row mean that none happened.
    for (int n_good = 0; n_good < tide_test_rounds(12, 64) && n < 3000; n = tide_test_next_failure(n)) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide_memory_plan *plan = demo_plan_make();
        tide_error err = TIDE_ERROR_INIT;
        tide_recorder *rec = NULL;
        tide_host_fail_after(n);
        feeder f = {.thread = 1};
        const tide_recorder_options opt = {.batch_events = 4, .now = feeder_now, .now_ctx = &f};
        tide_status st = tide_recorder_open(d.file, &opt, &rec, &err), begun = st;
        if (st == TIDE_OK) {
            n_opened++;
            f.rec = rec;
            f.obs = tide_recorder_observer(rec);
            const tide_run_info info = {.model = "demo", .mode = "planned", .device = "cpu"};
            int64_t run_id;
            begun = tide_recorder_begin_run(rec, &info, plan, &run_id, &err);
            const tide_scope scope = {.name = "op", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
            feed_scope(&f, 10, true, &scope);
            for (uint64_t i = 1; i <= 40; i++) feed(&f, 10 + i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 8, "block");
            feed_scope(&f, 60, false, &scope);
            if (begun != TIDE_OK && !is_no_memory(begun, &err)) fail_msg("%" PRId64 ": %s", n, err.msg);
            st = tide_recorder_close(rec, &err);
        }
        tide_host_fail_after(-1);
        tide_memory_plan_destroy(plan);
        n_good = st == TIDE_OK && begun == TIDE_OK ? n_good + 1 : 0;
        if (st != TIDE_OK && !is_no_memory(st, &err)) fail_msg("%" PRId64 ": %s: %s", n, tide_status_name(st), err.msg);
        if (rec == NULL) {
            assert_int_equal(tmp_dir_count(&d), 0);
        } else {
            assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
        }
        tmp_dir_remove(&d);
    }
    assert_true(n < 3000);
    print_message("up to allocation %" PRId64 ", %" PRId64 " failed behind open\n", n, n_opened);
    assert_true(n > 100 && n_opened > tide_test_rounds(10, 20)); // the loop did reach the inside
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_trace_is_removed_while_recording),
        tide_unit_test(test_trace_is_removed_and_events_go_on),
        tide_unit_test(test_folder_is_moved_while_recording),
        tide_unit_test(test_disk_full_leaves_the_program_running),
        tide_unit_test(test_changed_rows_are_noticed_at_close),
        tide_unit_test(test_a_writer_is_waited_for),
        tide_unit_test(test_out_of_memory_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
