// SPDX-License-Identifier: MIT
//
// A trace that is kept small: the oldest events go, what they did to memory does not.
#include "profiler/store/cursor.h"
#include "profiler/store/finish.h"
#include "tests/profiler/store_fixture.h"

enum { MAX_BYTES = 4 << 20 };

static void create(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_create(path, &err), &err);
}

static int64_t number(const tide__store *s, const char *query) {
    int64_t n;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__sql_int(tide__store_sql(s), query, -1, &n, &err), &err);
    return n;
}

static int64_t thin(writer *w, uint64_t max_bytes) {
    int64_t kept_from;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_thin(w->s, max_bytes, &kept_from, &err), &err);
    return kept_from;
}

/// Live blocks and sums after the base snapshot and the events that are left are those of the whole replay.
static void check_live(const writer *w, int64_t first_kept) {
    tide_error err = TIDE_ERROR_INIT;
    const tide__store_state base = {.snapshot_event = first_kept - 1};
    tide__replay r;
    assert_tide_ok(tide__replay_init(&r), &err);
    assert_tide_ok(tide__store_load_replay(w->s, &base, &r, &err), &err);
    tide__cursor *c;
    assert_tide_ok(tide__cursor_open(tide__store_sql(w->s), first_kept, INT64_MAX, &c, &err), &err);
    const tide__event *events;
    int64_t next = first_kept;
    for (size_t n = 1; n > 0;) {
        assert_tide_ok(tide__cursor_next(c, &events, &n, &err), &err);
        for (size_t i = 0; i < n; i++) {
            tide__problem problem;
            size_t series;
            assert_int_equal(events[i].id, next++);
            assert_tide_ok(tide__replay_apply(&r, &events[i], &problem, &series), &err);
        }
    }
    tide__cursor_close(c);
    assert_int_equal(next, w->last_event + 1);
    assert_int_equal(tide__replay_n_live(&r), tide__replay_n_live(&w->replay));
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(&w->replay, &i)) != NULL;)
        assert_memory_equal(tide__replay_find(&r, b->block_id), b, sizeof *b);
    tide__replay_deinit(&r);
}

/// Rows that table block would have if the recording ended now, by what was there when each interval of 1024 events
/// ended.
typedef struct ends {
    int64_t n_allocs[1024], n_live[1024]; ///< [interval]
} ends;

static void run_noting(writer *w, size_t n, ends *e) {
    for (size_t i = 0; i < n; i++) {
        writer_run(w, 1);
        if (w->last_event % 1024 != 0) continue;
        assert_true(w->last_event / 1024 < 1024);
        e->n_allocs[w->last_event / 1024] = w->n_blocks;
        e->n_live[w->last_event / 1024] = (int64_t)tide__replay_n_live(&w->replay);
    }
}

static int64_t n_block_rows(const writer *w, const ends *e, int64_t kept_from) {
    const int64_t at = (kept_from - 1) / 1024;
    return e->n_live[at] + w->n_blocks - e->n_allocs[at];
}

/// A long recording: file and log stay below their limits all the time, and every peak is remembered.
static void check_long_recording(bool as_chunks, size_t batch, int n_batches, ptrdiff_t n_leaked) {
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    tide_error err = TIDE_ERROR_INIT;
    const tide_run_info info = {.model = "long", .mode = "naive"};
    int64_t run, kept_from = 1;
    ends noted = {0};
    assert_tide_ok(tide__store_add_run(w.s, 1, &info, NULL, 1, &run, &err), &err);
    assert_tide_ok(tide__store_run(w.s, true, 1, 0, 1, &err), &err);
    writer_put(&w, writer_event(TIDE_MEM_FREE_COMPLETED, 1 << 20, 1)); // contradicts: a problem, at the very beginning
    w.as_chunks = as_chunks;
    for (int i = 0; i < n_batches; i++) {
        w.want_live = (i == 3 ? 3000 : 100) + i * n_leaked; // without leaks, the highest peak is early
        run_noting(&w, batch, &noted);
        writer_flush(&w);
        const int64_t from = thin(&w, MAX_BYTES);
        assert_true(from >= kept_from);
        kept_from = from;
        uint64_t in_use, log;
        assert_tide_ok(tide__store_bytes(w.s, &in_use, &log, &err), &err);
        assert_true(as_chunks || in_use + (uint64_t)n_block_rows(&w, &noted, from) * 64 <= MAX_BYTES);
        assert_true(log <= MAX_BYTES / 2);
        assert_true(number(w.s, "PRAGMA page_count") * 8192 <= MAX_BYTES);
    }
    assert_true(kept_from > w.last_event / 2);
    assert_true(kept_from < w.last_event - 20000);
    assert_int_equal(number(w.s, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_kept_event'"), kept_from);
    assert_int_equal(number(w.s, "SELECT coalesce(min(id), 0) FROM event"), as_chunks ? 0 : kept_from);
    assert_int_equal(number(w.s, "SELECT coalesce(min(first_event), 0) FROM event_chunk"), as_chunks ? kept_from : 0);
    // The first one is where a replay begins, but for the one of the peak.
    assert_int_equal(number(w.s,
                            "SELECT min(event_id) FROM snapshot WHERE event_id NOT IN (SELECT max_event FROM leaf "
                            "WHERE series = 0 AND max_bytes = (SELECT max(max_bytes) FROM leaf WHERE series = 0))"),
                     kept_from - 1);
    check_live(&w, kept_from);
    assert_int_equal(tide__leaves_end(&w.leaves), TIDE_OK);
    writer_flush(&w);
    assert_tide_ok(tide__finish(w.s, NULL, &err), &err);
    w.s = NULL;
    writer_close(&w);
    struct stat file;
    assert_int_equal(stat(d.file, &file), 0);
    assert_true(file.st_size <= MAX_BYTES); // with the tables of the end
    assert_sql(d.file,
               as_chunks ? "SELECT (SELECT count(*) FROM block) + (SELECT sum(blocks) FROM block_chunk) = value FROM "
                           "meta WHERE key = 'n_blocks'"
                         : "SELECT count(*) = (SELECT value FROM meta WHERE key = 'n_blocks') FROM block",
               "1\n");
    assert_sql(d.file, "SELECT count(*), min(event_id) FROM problem", "1|1\n");
    assert_sql(d.file, "SELECT first_event FROM run", "1\n");
    assert_sql(d.file, "SELECT count(*) FROM name", "2\n");
    assert_sql(d.file, "SELECT first_event FROM leaf WHERE series = 0 LIMIT 1", "1\n");
    assert_sql(d.file, "SELECT run_id, first_event, begin_ns FROM span WHERE run_id = 0", "0|1|10\n");
    tide_text query = {0};
    tide_text_addf(&query, "SELECT event_id < %d, peak_bytes > 3000 * 1000 FROM peak WHERE run_id = 0", (int)batch * 5);
    assert_sql(d.file, query.data, n_leaked == 0 ? "1|1\n" : "0|1\n");
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    tide_text_deinit(&query);
    tmp_dir_remove(&d);
}

static void test_rows_of_a_long_recording(void **state) {
    (void)state;
    check_long_recording(false, 5000, 60, 0);
}

/// Batches of 5000 events: chunks end where no snapshot is, and are cut there.
static void test_chunks_of_a_long_recording(void **state) {
    (void)state;
    check_long_recording(true, 5000, 120, 0);
}

/// The more blocks live, the more room is left for the table of them.
static void test_a_long_recording_of_a_program_that_leaks(void **state) {
    (void)state;
    check_long_recording(true, 5000, 100, 120);
}

static void test_the_peak_is_the_one_that_was(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    int64_t peak = 0, event = 0;
    for (int i = 0; i < 120000; i++) {
        writer_run(&w, 1);
        if (w.replay.series[0].live_bytes > peak) {
            peak = w.replay.series[0].live_bytes;
            event = w.last_event;
        }
        if (w.n_batch < 4096) continue;
        writer_flush(&w);
        thin(&w, MAX_BYTES);
    }
    assert_int_equal(tide__leaves_end(&w.leaves), TIDE_OK);
    writer_flush(&w);
    assert_true(thin(&w, MAX_BYTES) > 1);
    writer_close(&w);
    char want[64];
    snprintf(want, sizeof want, "%" PRId64 "|%" PRId64 "\n", peak, event);
    assert_sql(d.file, "SELECT peak_bytes, event_id FROM peak WHERE run_id = 0", want);
    tmp_dir_remove(&d);
}

static void test_what_fits_is_kept(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    writer_run(&w, 40000);
    writer_flush(&w);
    assert_int_equal(thin(&w, 0), 1);
    assert_int_equal(thin(&w, 64 << 20), 1);
    assert_int_equal(number(w.s, "SELECT count(*) FROM event"), 40000);
    // Nothing can be dropped before there is a snapshot to begin from, and nothing behind the last one.
    writer young;
    char path[400];
    snprintf(path, sizeof path, "%s/young.db", d.path);
    create(path);
    writer_open(&young, path);
    writer_run(&young, 3000);
    writer_flush(&young);
    assert_int_equal(thin(&young, 8192), 1);
    assert_int_equal(thin(&w, 8192), w.last_snapshot + 1);
    assert_int_equal(thin(&w, 8192), w.last_snapshot + 1);
    assert_int_equal(number(w.s, "SELECT count(*) FROM event"), 40000 - w.last_snapshot);
    writer_close(&young);
    writer_close(&w);
    tmp_dir_remove(&d);
}

/// A reader of the trace does not delay thinning and sees the events that were there when its transaction began.
static void test_thinning_while_a_reader_is_open(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    writer_run(&w, 60000);
    writer_flush(&w);
    sqlite3 *db = sql_open(d.file);
    tide_text got = {0};
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL), SQLITE_OK);
    assert_true(thin(&w, 1 << 20) > 1);
    sql_print(db, "SELECT count(*) FROM event", false, &got);
    assert_string_equal(tide_text_str(&got), "60000\n");
    tide_text_deinit(&got);
    sqlite3_close(db);
    writer_close(&w);
    tmp_dir_remove(&d);
}

static void test_thinning_without_memory(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    w.as_chunks = true;
    for (int i = 0; i < 8; i++) {
        writer_run(&w, 5000);
        writer_flush(&w);
    }
    tide__store_close(w.s); // its buffers are new
    int64_t n = 0, kept_from = 0;
    for (tide_status st = TIDE_ERR_NOMEM; st != TIDE_OK; n++) {
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__store_open(d.file, &w.s, &err), &err);
        tide_host_fail_after(n);
        st = tide__store_thin(w.s, 64 << 10, &kept_from, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_int_equal(number(w.s, "SELECT min(first_event) FROM event_chunk"), 1);
        assert_int_equal(number(w.s, "SELECT count(*) FROM meta WHERE key = 'first_kept_event'"), 0);
        tide__store_close(w.s);
    }
    assert_true(n >= 1);
    assert_int_equal(kept_from, 32769);
    check_live(&w, kept_from);
    writer_close(&w);
    tmp_dir_remove(&d);
}

// ---- leaves ----

enum { N_LEAVES = 140001 };

/// Leaf i of series 1: between two of them lies an interval that changed nothing.
static tide__leaf made_up_leaf(int64_t i) {
    const int64_t at = i / 3 * 37 % 10007; // some are as high as the one before
    return (tide__leaf){.series = 1,
                        .first_event = i * 2048 + 1,
                        .last_event = i * 2048 + 1024,
                        .begin_ns = i * 100,
                        .end_ns = i * 100 + 50,
                        .min_bytes = 20000 + at,
                        .max_bytes = 50000 + at,
                        .max_event = i * 2048 + 7,
                        .max_ns = i * 100 + 3,
                        .max_reserved_bytes = 60000 + at,
                        .last_bytes = 30000 + at,
                        .last_reserved_bytes = 40000 + at};
}

static void test_the_oldest_leaves_are_merged(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    writer_put(&w, writer_event(TIDE_MEM_ALLOC, 1, 100)); // makes series 1
    tide_error err = TIDE_ERROR_INIT;
    tide__leaf *leaves = tide_host_calloc(N_LEAVES, sizeof *leaves);
    assert_non_null(leaves);
    for (int64_t i = 0; i < N_LEAVES; i++) leaves[i] = made_up_leaf(i);
    assert_tide_ok(tide__store_begin(w.s, &err), &err);
    assert_tide_ok(tide__store_end(w.s, tide__store_write_leaves(w.s, &w.replay, leaves, N_LEAVES, &err), &err), &err);
    thin(&w, 0);
    sqlite3 *db = sql_open(d.file);
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM leaf ORDER BY first_event", -1, &row, NULL), SQLITE_OK);
    int64_t next = 0, n_rows = 0;
    while (sqlite3_step(row) == SQLITE_ROW) {
        // Each row is what it takes in, seen as one.
        const tide__leaf *a = &leaves[next], *top = a;
        assert_int_equal(sqlite3_column_int64(row, 1), a->first_event);
        assert_int_equal(sqlite3_column_int64(row, 3), a->begin_ns);
        int64_t min_bytes = a->min_bytes;
        while (leaves[next].last_event < sqlite3_column_int64(row, 2)) {
            const tide__leaf *b = &leaves[++next];
            if (b->max_bytes > top->max_bytes) top = b;
            if (b->min_bytes < min_bytes) min_bytes = b->min_bytes;
        }
        const tide__leaf *last = &leaves[next++];
        const int64_t want[] = {last->last_event, a->begin_ns,
                                last->end_ns,     min_bytes,
                                top->max_bytes,   top->max_event,
                                top->max_ns,      top->max_reserved_bytes,
                                last->last_bytes, last->last_reserved_bytes};
        for (int i = 0; i < 10; i++) assert_int_equal(sqlite3_column_int64(row, i + 2), want[i]);
        n_rows++;
    }
    sqlite3_finalize(row);
    sqlite3_close(db);
    assert_int_equal(next, N_LEAVES);
    assert_true(n_rows <= 65536);
    assert_true(n_rows > 32768);
    // The younger half is as fine as it was; the next call finds nothing to do.
    assert_int_equal(number(w.s, "SELECT count(*) FROM leaf WHERE last_event - first_event = 1023 "
                                 "AND first_event > (SELECT max(last_event) FROM leaf) / 2") > 20000,
                     1);
    thin(&w, 0);
    assert_int_equal(number(w.s, "SELECT count(*) FROM leaf"), n_rows);
    tide_host_free(leaves);
    writer_close(&w);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_rows_of_a_long_recording),
        tide_unit_test(test_chunks_of_a_long_recording),
        tide_unit_test(test_a_long_recording_of_a_program_that_leaks),
        tide_unit_test(test_the_peak_is_the_one_that_was),
        tide_unit_test(test_what_fits_is_kept),
        tide_unit_test(test_thinning_while_a_reader_is_open),
        tide_unit_test(test_thinning_without_memory),
        tide_unit_test(test_the_oldest_leaves_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
