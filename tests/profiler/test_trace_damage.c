// SPDX-License-Identifier: MIT
//
// Files that are no traces, traces of other versions, and traces that are cut, changed or built to mislead: each is
// refused with the file's name and the reason, or read safely, without a crash or a leak.
#include "tests/profiler/ask_all.h"

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

/// Refused as bad input; the message names the file, the note has `words`.
static void expect_refused(const char *path, const char *words) {
    tide_trace *t = NULL;
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_open(path, &t, &err);
    tide_trace_close(t);
    if (st != TIDE_ERR_BAD_INPUT) fail_msg("'%s' wanted: %s: %s", words, tide_status_name(st), err.msg);
    assert_text_has(err.msg, path);
    assert_text_has(err.note, words);
}

// ---- other files ----

static void test_files_that_are_no_traces(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_trace *t = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_trace_open(d.file, &t, &err), TIDE_ERR_IO); // not there
    assert_text_has(err.msg, "No such file");
    assert_tide_status(tide_trace_open(d.path, &t, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "is a directory");
    assert_tide_status(tide_trace_open("/dev/null", &t, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "not a regular file");
    write_file(d.file, "", 0);
    expect_refused(d.file, "empty");
    write_file(d.file, "{\"schema\": \"tidemark.plan\"}\n", 27);
    expect_refused(d.file, "no SQLite database");
    write_file(d.file, "SQLite format 3", 16); // and nothing behind it
    expect_refused(d.file, "no SQLite database");
    remove(d.file);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(d.file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE event(id)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_refused(d.file, "another program");
    tmp_dir_remove(&d);
}

static void test_other_versions(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    for (int version = 0; version <= 5; version++) {
        if (version == TIDE_TRACE_VERSION || version == TIDE_TRACE_VERSION_PACKED) continue;
        char change[64];
        snprintf(change, sizeof change, "PRAGMA user_version = %d", version);
        sql_exec(d.file, change);
        expect_refused(d.file, "reads versions 1 and 2");
        tide_error_clear(&err);
        assert_tide_status(tide_trace_open(d.file, &t, &err), TIDE_ERR_BAD_INPUT);
        snprintf(change, sizeof change, "version %d", version);
        assert_text_has(err.msg, change);
        if (version > TIDE_TRACE_VERSION) assert_text_has(err.hint, "newer tidemark");
        if (version < TIDE_TRACE_VERSION) assert_string_equal(err.hint, "");
    }
    tmp_dir_remove(&d);
}

// ---- changed rows ----

/// The demo trace in a fresh folder; recorded once, since each recording waits for the disk.
static void demo_copy(tmp_dir *d) {
    static char *data;
    static size_t len;
    tmp_dir_make(d);
    if (data == NULL) {
        demo_record(d->file, 0);
        tide_error err = TIDE_ERROR_INIT;
        char *read;
        assert_tide_ok(tide_read_file(d->file, 0, &read, &len, &err), &err);
        data = malloc(len); // outlives the test that counts
        assert_non_null(data);
        memcpy(data, read, len);
        tide_host_free(read);
    }
    write_file(d->file, data, len);
}

static void expect_after(const char *change, const char *words) {
    tmp_dir d;
    demo_copy(&d);
    sql_exec(d.file, change);
    print_message("%.70s\n", change);
    expect_refused(d.file, words);
    tmp_dir_remove(&d);
}

/// A dropped event is noticed.
static void test_missing_and_added_rows(void **state) {
    (void)state;
    expect_after("DELETE FROM event WHERE id = 17", "damaged");
    expect_after("DELETE FROM event WHERE id = 68", "damaged");
    expect_after("DELETE FROM event WHERE id = 1", "damaged");
    expect_after("DELETE FROM event", "damaged");
    expect_after("INSERT INTO event SELECT 69, run_id, 2900, op, 77, kind, device, stream, requested_bytes, "
                 "reserved_bytes, address, thread, allocator_id, tag_id, scope_id FROM event WHERE id = 1",
                 "damaged");
    expect_after("DELETE FROM block WHERE id = 15", "damaged: 13 blocks recorded, 12 found");
    expect_after("DELETE FROM run WHERE id = 2", "damaged: 2 runs recorded, 1 found");
    expect_after("DELETE FROM name WHERE id = 1", "names recorded");
    expect_after("INSERT INTO scope VALUES(99, 1, 'run', NULL, NULL)", "damaged: 10 scopes recorded, 11 found");
    expect_after("UPDATE block SET requested_bytes = requested_bytes + 1 WHERE id = 15", "requested bytes recorded");
    expect_after("UPDATE block SET free_event = NULL WHERE id = 14", "freed bytes recorded");
    expect_after("DELETE FROM meta WHERE key = 'n_events'", "no number 'n_events'");
    expect_after("UPDATE meta SET value = '68 ' WHERE key = 'n_events'", "no number 'n_events'");
    expect_after("UPDATE meta SET value = '67' WHERE key = 'n_events'", "67 events recorded, 68 found");
    expect_after("UPDATE meta SET value = '99999999999999999999999999' WHERE key = 'n_events'", "no number 'n_events'");
    expect_after("UPDATE meta SET value = 'tidemark.plan' WHERE key = 'schema'", "tidemark.trace");
    expect_after("UPDATE block SET requested_bytes = 9223372036854775807", "damaged");
}

/// A table of another make, and a view in the place of a table that would compute for ever.
static void test_tables_of_another_make(void **state) {
    (void)state;
    expect_after("DROP VIEW blocks; DROP VIEW live_bytes; DROP TABLE plan_pool", "table plan_pool is missing");
    expect_after("ALTER TABLE run ADD COLUMN more INTEGER", "table run is not the one of this version");
    expect_after("ALTER TABLE event RENAME TO was; CREATE VIEW event AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL "
                 "SELECT id + 1 FROM r) SELECT id FROM r",
                 "table event is missing");
    expect_after("DROP TABLE event; CREATE TABLE event(id INTEGER PRIMARY KEY, requested_bytes ANY)",
                 "table event is not the one");
}

/// What people add for themselves does not disturb.
static void test_own_tables_beside_ours(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    sql_exec(d.file, "CREATE TABLE note(text); INSERT INTO note VALUES('mine'); CREATE INDEX by_time ON event(t_ns); "
                     "DROP VIEW leaks; CREATE VIEW leaks AS SELECT 1");
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(ask_all(d.file, true, &err), &err);
    tmp_dir_remove(&d);
}

/// Values no recorder writes, at places that the totals do not see.
static void test_values_out_of_range(void **state) {
    (void)state;
    static const char *const changes[] = {
        "UPDATE block SET kind = 200 WHERE id = 3",
        "UPDATE block SET kind = -1 WHERE id = 3",
        "UPDATE block SET device = 0 WHERE id = 3",
        "UPDATE block SET device = 7 WHERE id = 3",
        "UPDATE block SET reserved_bytes = -5 WHERE id = 3",
        "UPDATE block SET alloc_event = 0 WHERE id = 3",
        "UPDATE block SET free_event = alloc_event WHERE id = 3",
        "UPDATE block SET free_ns = alloc_ns - 1 WHERE id = 3",
        "UPDATE block SET alloc_ns = -1 WHERE id = 3",
        "UPDATE block SET alloc_ns = 1400 WHERE id = 3",
        "UPDATE block SET alloc_ns = 1, free_ns = 2 WHERE id = 3",
        "UPDATE block SET thread = -1 WHERE id = 3",
        "UPDATE block SET thread = 4294967296 WHERE id = 3",
        "UPDATE block SET run_id = -1 WHERE id = 3",
        "UPDATE run SET end_ns = begin_ns - 1 WHERE id = 1",
        "UPDATE run SET first_event = 0 WHERE id = 1",
        "UPDATE run SET plan_bytes = -1 WHERE id = 1",
        "UPDATE run SET id = -7 WHERE id = 1",
        "UPDATE event SET t_ns = -9 WHERE op = 16 AND scope_id = 2",
        "UPDATE event SET t_ns = 0 WHERE op = 17 AND scope_id = 2",
        "UPDATE event SET op = 0 WHERE id = 20",
        "UPDATE event SET op = 15 WHERE id = 20",
        "UPDATE event SET op = 300 WHERE id = 20",
        "UPDATE event SET kind = 77 WHERE id = 6",
        "UPDATE event SET kind = NULL WHERE id = 6",
        "UPDATE event SET device = NULL WHERE id = 6",
        "UPDATE event SET device = 9 WHERE id = 6",
        "UPDATE event SET device = 70000 WHERE id = 6",
        "UPDATE event SET requested_bytes = -1 WHERE id = 6",
        "UPDATE event SET requested_bytes = requested_bytes + 1 WHERE id = 6",
        "UPDATE event SET reserved_bytes = -1 WHERE id = 6",
        "UPDATE event SET block_id = -1 WHERE id = 6",
        "UPDATE event SET block_id = 1 WHERE id = 6",
        "UPDATE event SET thread = -1 WHERE id = 6",
        "UPDATE event SET thread = 4294967296 WHERE id = 6",
        "UPDATE event SET t_ns = 99999 WHERE id = 6",
        "UPDATE event SET run_id = -1 WHERE id = 6",
        "UPDATE event SET tag_id = -1 WHERE id = 6",
        "UPDATE event SET scope_id = 4294967298 WHERE id = 6",
        "UPDATE leaf SET max_bytes = max_bytes + 1 WHERE series = 1",
        "UPDATE leaf SET max_bytes = max_bytes + 1 WHERE series = 0",
        "UPDATE leaf SET min_bytes = -1 WHERE series = 0",
        "UPDATE leaf SET max_event = 9999 WHERE series = 0",
        "UPDATE leaf SET max_ns = 1 WHERE series = 0",
        "UPDATE leaf SET last_event = 9223372036854775807 WHERE series = 0",
        "UPDATE leaf SET first_event = 60 WHERE series = 0",
        "UPDATE leaf SET begin_ns = 5000 WHERE series = 0",
        "UPDATE leaf SET last_bytes = last_bytes + 1 WHERE series = 0",
        "UPDATE leaf SET last_bytes = last_bytes + 1 WHERE series = 2",
        "UPDATE leaf SET max_reserved_bytes = 1 WHERE series = 0",
        "UPDATE leaf SET series = 9 WHERE series = 2",
        "UPDATE series SET device = 7 WHERE id = 1",
        "UPDATE series SET kind = 9 WHERE id = 1",
        "DELETE FROM series WHERE id = 1",
        "INSERT INTO snapshot VALUES(10, 1110, 4, 4000, x'00112233445566778899')",
        "INSERT INTO event_chunk VALUES(69, 70, 3000, 3000, x'0011223344')",
        "INSERT INTO event_chunk VALUES(10, 20, 1110, 1200, x'0011223344')",
        "UPDATE plan SET form = 'both' WHERE run_id = 1",
        "UPDATE plan SET bytes = -1 WHERE run_id = 1",
        "UPDATE plan SET bytes = 0 WHERE run_id = 1",
        "UPDATE plan SET n_tensors = 4611686018427387904 WHERE run_id = 1",
        "UPDATE plan SET n_pools = 4611686018427387904 WHERE run_id = 1",
        "UPDATE plan SET n_steps = 3 WHERE run_id = 1",
        "DELETE FROM plan_tensor WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET idx = 70 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET kind = 200 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET role = 'guest' WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET device = 'abacus' WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET name = '' WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET align_bytes = 3 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET aligned_bytes = 1 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET size_bytes = 9223372036854775807 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET begin_step = end_step WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET end_step = 9223372036854775807 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET offset_bytes = 0 WHERE run_id = 1 AND idx = 4", // on a tensor that lives then
        "UPDATE plan SET proven = 0 WHERE run_id = 1",
        "UPDATE plan_tensor SET offset_bytes = 2304 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET offset_bytes = 9223372036854775807 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET pool = 0 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET node = 4294967295 WHERE run_id = 1 AND idx = 4",
        "INSERT INTO plan_pool VALUES(1, 0, 5, 0, 1, 0)",
        "UPDATE plan SET naive_peak_bytes = -1 WHERE run_id = 1",
        "UPDATE plan SET naive_peak_bytes = naive_peak_bytes + 1 WHERE run_id = 1",
        "UPDATE plan SET proved_bytes = proved_bytes + 1 WHERE run_id = 1",
        "UPDATE plan SET n_buffers = 0 WHERE run_id = 1",
        "DELETE FROM plan_buffer WHERE run_id = 1",
        "INSERT INTO plan_buffer SELECT run_id, 1, device, kind, 0, 1, 0, 0, 0, 0, proof FROM plan_buffer WHERE run_id "
        "= 1",
        "UPDATE plan_buffer SET buffer = 1 WHERE run_id = 1",
        "UPDATE plan_buffer SET bytes = bytes + 256 WHERE run_id = 1",
        "UPDATE plan_buffer SET kind = 77 WHERE run_id = 1",
        "UPDATE plan_buffer SET device = 'abacus' WHERE run_id = 1",
        "UPDATE plan_buffer SET proof = 'hope' WHERE run_id = 1",
        "UPDATE plan_tensor SET fixed_offset_bytes = 1 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET fixed_offset_bytes = 256 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET fixed_offset_bytes = -256 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET apart_set = 0 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET apart_set = 4294967296 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET alias = 'twin', alias_of = 2, alias_offset_bytes = 0 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET alias = 'view' WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET alias = 'view', alias_of = 4, alias_offset_bytes = 0 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET alias = 'view', alias_of = 99, alias_offset_bytes = 0 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET alias = 'view', alias_of = 2, alias_offset_bytes = 900 WHERE run_id = 1 AND idx = 4",
        "UPDATE plan_tensor SET alias = 'view', alias_of = 2, alias_offset_bytes = 0 WHERE run_id = 1 AND idx = 4",
        "INSERT INTO plan_gap VALUES(1, 4, 1, 1, 2, 0, 0)",
        "INSERT INTO plan_gap VALUES(1, 4, 0, 1, 1, 0, 0)",
        "INSERT INTO plan_gap VALUES(1, 4, 0, 0, 9, 0, 0)",
        "INSERT INTO plan_gap VALUES(1, 99, 0, 1, 2, 0, 0)",
        "INSERT INTO plan_point_size VALUES(1, 4, 0, 500)",
        "INSERT INTO plan_point VALUES(1, 1, 'p')",
        "INSERT INTO plan_recomputed VALUES(1, 1, 'conv')",
        "DELETE FROM plan_step WHERE run_id = 1 AND step = 0",
    };
    int n_missed = 0;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tmp_dir d;
        demo_copy(&d);
        sql_exec(d.file, changes[i]);
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = ask_all(d.file, true, &err);
        // A run that is not there any more may also be said to be not found.
        const bool good = st == TIDE_ERR_BAD_INPUT || (st == TIDE_ERR_NOT_FOUND && strstr(changes[i], "id = -7"));
        if (!good) print_message("%s: %s: %s\n", changes[i], tide_status_name(st), err.msg);
        n_missed += !good;
        if (good) assert_text_has(err.msg, d.file);
        tmp_dir_remove(&d);
    }
    assert_int_equal(n_missed, 0);
}

/// Operators that are entered and never left: each ends with the run, and looking for its end costs no pass over the
/// file of its own (20,000 of them would take many seconds then).
static void test_many_steps_that_never_end(void **state) {
    (void)state;
    enum { N = 20000 };
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    feed_begin_run(&f, 1000, &info, NULL);
    for (int i = 0; i < N; i++) {
        const tide_scope op = {.name = "op", .kind = TIDE_SCOPE_OPERATOR, .index = i};
        feed_scope(&f, 1550, true, &op);
    }
    feed_end_run(&f, 1600);
    feeder_close(&f);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    tide_trace_step *s;
    size_t n;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    const uint64_t t0 = tide_now_ns();
    assert_tide_ok(tide_trace_steps(t, 1, &s, &n, &err), &err);
    print_message("20,000 steps: %.1f ms\n", (double)(tide_now_ns() - t0) / 1e6);
    assert_int_equal(n, N);
    assert_int_equal(s[n - 1].begin_ns, 1550);
    assert_int_equal(s[n - 1].end_ns, 1600);
    tide_trace_steps_free(s, n);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

// ---- changed bytes ----

/// Cut at every length of a grid and around each page: always refused.
static void test_truncated_files(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(d.file, 0, &data, &len, &err), &err);
    for (size_t n = 0; n < len; n += n % 8192 < 2 || n % 8192 > 8189 ? 1 : 911) {
        write_file(d.file, data, n);
        tide_error own = TIDE_ERROR_INIT;
        const tide_status st = ask_all(d.file, false, &own);
        if (st != TIDE_ERR_BAD_INPUT) fail_msg("cut at %zu of %zu: %s", n, len, tide_status_name(st));
        assert_text_has(own.msg, d.file);
    }
    tide_host_free(data);
    tmp_dir_remove(&d);
}

/// Random bytes at random places: refused, or answered with numbers that are in range; never a crash.
static void test_random_damage(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(d.file, 0, &data, &len, &err), &err);
    char *copy = tide_host_alloc(len);
    assert_non_null(copy);
    int n_refused = 0;
    tide_rng rng = {20240229};
    print_message("seed %" PRIu64 "\n", rng.state);
    const int n_rounds = tide_test_rounds(25, 300);
    for (int round = 0; round < n_rounds; round++) {
        memcpy(copy, data, len);
        const uint64_t n_changes = 1 + tide_rng_below(&rng, 40);
        for (uint64_t i = 0; i < n_changes; i++) {
            // Half of them where the headers of the pages are.
            size_t at = (size_t)tide_rng_below(&rng, len);
            if (tide_rng_below(&rng, 2) == 0) at = at / 8192 * 8192 + (size_t)tide_rng_below(&rng, 120);
            if (at < len) copy[at] = (char)tide_rng_u64(&rng);
        }
        write_file(d.file, copy, len);
        tide_error own = TIDE_ERROR_INIT;
        n_refused += ask_all(d.file, true, &own) != TIDE_OK;
    }
    assert_true(n_refused > n_rounds / 3);
    tide_host_free(copy);
    tide_host_free(data);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_files_that_are_no_traces),
        tide_unit_test(test_other_versions),
        tide_unit_test(test_missing_and_added_rows),
        tide_unit_test(test_tables_of_another_make),
        tide_unit_test(test_own_tables_beside_ours),
        tide_unit_test(test_values_out_of_range),
        tide_unit_test(test_many_steps_that_never_end),
        tide_unit_test(test_truncated_files),
        tide_unit_test(test_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
