// SPDX-License-Identifier: MIT
//
// The end of a trace: missing leaves and snapshots, counts, sums, state, one plain file. A trace that cannot be
// finished stays as it was.
#include <fcntl.h>

#include "tests/profiler/finish_fixture.h"

// ---- missing leaves and snapshots ----

static void test_missing_leaves_and_snapshots_are_made(void **state) {
    (void)state;
    tmp_dir with, without;
    tmp_dir_make(&with);
    tmp_dir_make(&without);
    make_history(33, 50000);
    tide__store *s = open_new(&with);
    put_as_a_drain(s, 50000, true);
    finish(s, NULL);
    s = open_new(&without);
    put_as_a_drain(s, 50000, false);
    finish(s, NULL);
    static const char *const queries[] = {"SELECT * FROM leaf", "SELECT * FROM series",
                                          "SELECT event_id, t_ns, blocks, requested_bytes, hex(data) FROM snapshot",
                                          "SELECT * FROM block"};
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        tide_text a = {0}, b = {0};
        sqlite3 *db = sql_open(with.file);
        sql_print(db, queries[i], false, &a);
        sqlite3_close(db);
        db = sql_open(without.file);
        sql_print(db, queries[i], false, &b);
        sqlite3_close(db);
        assert_true(a.len > 10);
        if (strcmp(tide_text_str(&a), tide_text_str(&b)) != 0) fail_msg("%s differs", queries[i]);
        tide_text_deinit(&a);
        tide_text_deinit(&b);
    }
    tmp_dir_remove(&with);
    tmp_dir_remove(&without);
}

// ---- meta ----

static void test_counts_and_sums_are_those_of_the_tables(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    put_scopes(s);
    make_history(34, 5000);
    put(s, 0, 5000, 5000, false);
    exec(s,
         "INSERT INTO position VALUES(1, 1, 5, 1, 3), (1, 2, 5, 1, 4);"
         "INSERT INTO problem VALUES(1, 17, 2, 'x');"
         "INSERT INTO run(id, process_id, model, mode, device, contexts, begin_ns) VALUES(1, 1, 'm', 'naive', 'cpu', "
         "1, 0)");
    finish(s, NULL);
    static const char *const facts[][2] = {
        {"n_events", "SELECT max(id) FROM event"},
        {"n_scope_events", "SELECT count(*) FROM event WHERE op IN (16, 17)"},
        {"n_blocks", "SELECT count(*) FROM block"},
        {"requested_bytes", "SELECT sum(requested_bytes) FROM block"},
        {"freed_bytes", "SELECT sum(requested_bytes) FROM block WHERE free_event IS NOT NULL"},
        {"n_runs", "SELECT 1"},
        {"n_names", "SELECT 3"},
        {"n_scopes", "SELECT 8"},
        {"n_lost", "SELECT 7"},
        {"n_problems", "SELECT 1"},
        {"n_orphan_frees", "SELECT 0"},
        {"first_kept_event", "SELECT 1"},
        {"state", "SELECT 'complete'"},
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        char query[300];
        snprintf(query, sizeof query, "SELECT '%s', count(*) FROM meta WHERE key = '%s' AND value = CAST((%s) AS TEXT)",
                 facts[i][0], facts[i][0], facts[i][1]);
        char expected[100];
        snprintf(expected, sizeof expected, "%s|1\n", facts[i][0]);
        assert_sql(d.file, query, expected);
    }
    assert_sql(d.file, "SELECT count(*) FROM meta WHERE key IN ('reason', 'totals')", "0\n");
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    tmp_dir_remove(&d);
}

static void test_a_recording_that_ended_early_says_why(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    make_history(35, 100);
    put(s, 0, 100, 100, true);
    exec(s, "INSERT INTO meta VALUES('n_orphan_frees', '12')");
    finish(s, "disk full");
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'reason', 'n_orphan_frees') ORDER BY key",
               "12\ndisk full\ncut short\n");
    tmp_dir_remove(&d);
}

// ---- totals ----

/// What processes heard, as the model says; `change` then.
static void check_totals(const char *change, const char *totals, const char *problems) {
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    make_history(36, 4000);
    put(s, 0, 4000, 1000, true);
    model_blocks(4000);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_begin(s, &err), &err);
    for (int process = 1; process <= 2; process++) {
        for (int device = 1; device < MODEL_DEVICES; device++) {
            for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
                // The first process has heard 5 allocs of 1 byte and 2 frees less than all.
                if (m.n_allocs[device][kind] == 0) continue;
                const uint64_t part = process == 1 ? 5 : 0;
                const tide__ring_total t = {.n_allocs = process == 1 ? (uint64_t)m.n_allocs[device][kind] - 5 : 5,
                                            .n_frees = process == 1 ? (uint64_t)m.n_frees[device][kind] - 2 : 2,
                                            .requested_bytes =
                                                process == 1 ? (uint64_t)m.requested[device][kind] - part : 5,
                                            .freed_bytes = process == 1 ? (uint64_t)m.freed[device][kind] - 2 : 2};
                assert_tide_ok(tide__store_write_total(s, process, (int16_t)device, (uint8_t)kind, &t, &err), &err);
            }
        }
    }
    assert_tide_ok(tide__store_end(s, TIDE_OK, &err), &err);
    exec(s, "INSERT INTO process(id, pid, begin_ns, how) VALUES(1, 10, 0, 'closed'), (2, 11, 0, 'closed')");
    exec(s, change);
    finish(s, NULL);
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'totals'", totals);
    assert_sql(d.file, "SELECT event_id, problem, what FROM problem WHERE problem <> 2", problems);
    assert_sql(d.file, "SELECT value = (SELECT count(*) FROM problem) FROM meta WHERE key = 'n_problems'", "1\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
    tmp_dir_remove(&d);
}

static void test_totals_are_compared_with_the_received_events(void **state) {
    (void)state;
    check_totals("SELECT 1", "equal\n", "");
    // Once the events are not all there, or contradict each other, nothing can be said.
    check_totals("UPDATE process SET how = 'killed' WHERE id = 2", "", "");
    check_totals("UPDATE process SET how = NULL WHERE id = 2", "", "");
    check_totals("INSERT INTO position VALUES(1, 1, 1, 1, 1)", "", "");
    check_totals("INSERT INTO problem VALUES(1, 1, 2, 'x')", "", "");
    check_totals("DELETE FROM total", "", "");
    static const char *const columns[] = {"n_allocs", "n_frees", "requested_bytes", "freed_bytes"};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        char change[200], words[200];
        snprintf(change, sizeof change, "UPDATE total SET %s = %s + 1 WHERE process_id = 2 AND device = 2 AND kind = 1",
                 columns[i], columns[i]);
        snprintf(words, sizeof words,
                 "4000|7|what is in the file is not what was heard: device 2, kind 1: %lld of %lld allocs, %lld of "
                 "%lld frees\n",
                 (long long)m.n_allocs[2][1], (long long)m.n_allocs[2][1] + (i == 0), (long long)m.n_frees[2][1],
                 (long long)m.n_frees[2][1] + (i == 1));
        check_totals(change, "different\n", words);
    }
    // Events of an unknown device.
    char words[200];
    snprintf(words, sizeof words, "4000|7|what is in the file is not what was heard: %lld of %lld allocs\n",
             (long long)n_want, (long long)((int64_t)n_want - m.n_allocs[1][0]));
    check_totals("DELETE FROM total WHERE device = 1 AND kind = 0", "different\n", words);
}

// ---- one plain file ----

static int journal_version(const char *path) {
    unsigned char head[20];
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, head, sizeof head), sizeof head);
    close(fd);
    return head[18];
}

static void test_it_is_one_plain_file_unless_a_reader_has_it_open(void **state) {
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide__store *s = open_new(&d);
        make_history(37, 3000);
        put(s, 0, 3000, 500, true);
        sqlite3 *db = reads ? sql_open(d.file) : NULL;
        if (reads) assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT * FROM event", NULL, NULL, NULL), SQLITE_OK);
        finish(s, NULL);
        assert_int_equal(journal_version(d.file), reads ? 2 : 1); // 2: a write-ahead log
        if (reads) assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
        assert_int_equal(tmp_dir_count(&d), 1);
        tmp_dir_remove(&d);
    }
}

// ---- failures ----

static void test_what_cannot_be_finished_stays_as_it_was(void **state) {
    (void)state;
    static const char *const damages[] = {"UPDATE event SET op = 77 WHERE id = 1500",
                                          "UPDATE event_chunk SET data = x'01' WHERE first_event > 2000",
                                          "INSERT INTO series VALUES(2, 1, 1)", "INSERT INTO series VALUES(1, 5000, 1)",
                                          "INSERT INTO scope VALUES(100, 1, 'run', 0, NULL)"};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide__store *s = open_new(&d);
        make_history(38, 5000);
        put(s, 0, 5000, 500, true);
        exec(s, damages[i]);
        tide_error err = TIDE_ERROR_INIT;
        if (tide__finish_tables(tide__store_sql(s), true, &err) != TIDE_ERR_BAD_INPUT) fail_msg("%s", damages[i]);
        assert_true(sqlite3_get_autocommit(tide__store_sql(s)->db)); // no transaction stays open
        assert_tide_status(tide__finish(s, NULL, &err), TIDE_ERR_BAD_INPUT);
        assert_text_has(err.msg, d.file);
        assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "recording\n");
        assert_sql(d.file, "SELECT (SELECT count(*) FROM block) + (SELECT count(*) FROM leaf)", "0\n");
        tmp_dir_remove(&d);
    }
}

static void test_without_memory_it_stays_as_it_was(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    put_scopes(s);
    static program p;
    p = (program){.rng.state = 39, .scopes = 300, .n_runs = 1, .want_live = 60};
    for (size_t i = 0; i < 2500; i++) events[i] = program_next(&p);
    put(s, 0, 2500, 500, true);
    tide_error err = TIDE_ERROR_INIT;
    int fail = 0;
    for (;; fail++) {
        tide_host_fail_after(fail);
        const tide_status st = tide__finish(s, NULL, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_text_has(err.msg, "memory");
        assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "recording\n");
        assert_sql(d.file, "SELECT count(*) FROM block", "0\n");
        assert_tide_ok(tide__store_open(d.file, &s, &err), &err);
    }
    assert_true(fail > 8);
    model_blocks(2500);
    sqlite3 *db = sql_open(d.file);
    assert_all_blocks(db);
    sqlite3_close(db);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_missing_leaves_and_snapshots_are_made),
        tide_unit_test(test_counts_and_sums_are_those_of_the_tables),
        tide_unit_test(test_a_recording_that_ended_early_says_why),
        tide_unit_test(test_totals_are_compared_with_the_received_events),
        tide_unit_test(test_it_is_one_plain_file_unless_a_reader_has_it_open),
        tide_unit_test(test_what_cannot_be_finished_stays_as_it_was),
        tide_unit_test(test_without_memory_it_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, finish_room, finish_room_free);
}
