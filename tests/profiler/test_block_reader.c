// SPDX-License-Identifier: MIT
//
// Traces whose blocks are packed: each question about blocks is answered as from rows, old traces of chunks are read as
// before, and chunks of blocks that are damaged, or not those of their events, are found.
#include "profiler/store/block_chunk.h"
#include "tests/profiler/finish_fixture.h"

enum { N = 40000 };

/// Events in chunks, finished: hundreds of chunks, so that many blocks end when theirs is in the table.
static void make(const tmp_dir *d, unsigned lies) {
    static program p;
    p = (program){.rng.state = 71, .scopes = 20, .discards = 1, .lies = lies, .requests = true, .want_live = 3000};
    for (size_t i = 0; i < N; i++) events[i] = program_next(&p);
    tide__store *s = open_new(d);
    put_scopes(s);
    exec(s, "WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < 50) "
            "INSERT INTO name SELECT i, 'name ' || i FROM n; INSERT INTO scope VALUES(9, 1, 'region', NULL, NULL); "
            "INSERT INTO device VALUES(1, 'cpu')");
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_begin(s, &err), &err);
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < N; i += 200) st = tide__store_write_events(s, &events[i], 200, true, &err);
    assert_tide_ok(tide__store_end(s, st, &err), &err);
    finish(s, NULL);
    model_blocks(N);
}

static void test_every_question(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    make(&d, 20);
    assert_sql(d.file, "PRAGMA user_version", "2\n");
    assert_sql(d.file, "SELECT count(*) FROM block", "0\n");
    assert_sql(d.file, "SELECT count(*) FROM meta WHERE key = 'packed' AND value LIKE '%--expand%'", "1\n");
    sqlite3 *db = sql_open(d.file);
    assert_all_blocks(db);
    sqlite3_stmt *by_id, *by_alloc;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM all_blocks WHERE id = ?", -1, &by_id, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM all_blocks WHERE alloc_event = ?", -1, &by_alloc, NULL),
                     SQLITE_OK);
    size_t n_open = 0;
    for (size_t i = 0; i < n_want; i++) {
        n_open += want[i].free_event == 0;
        if (i % (size_t)tide_test_rounds(29, 7) != 0) continue;
        sqlite3_bind_int64(by_alloc, 1, want[i].b.alloc_event);
        assert_int_equal(sqlite3_step(by_alloc), SQLITE_ROW);
        assert_block_row(by_alloc, &want[i]);
        sqlite3_bind_int64(by_id, 1, sqlite3_column_int64(by_alloc, 0));
        assert_int_equal(sqlite3_step(by_id), SQLITE_ROW);
        assert_block_row(by_id, &want[i]);
        assert_int_equal(sqlite3_step(by_alloc), SQLITE_DONE);
        assert_int_equal(sqlite3_step(by_id), SQLITE_DONE);
        sqlite3_reset(by_alloc);
        sqlite3_reset(by_id);
    }
    sqlite3_finalize(by_id);
    sqlite3_finalize(by_alloc);
    char text[64];
    snprintf(text, sizeof text, "%zu\n", n_open);
    tide_text got = {0};
    sql_print(db, "SELECT count(*) FROM all_blocks WHERE free_event IS NULL", false, &got);
    assert_string_equal(tide_text_str(&got), text);
    got.len = 0;
    sql_print(db, "SELECT count(*) FROM all_blocks WHERE id IN ('x', 1.5, NULL) OR alloc_event < 0", false, &got);
    assert_string_equal(tide_text_str(&got), "0\n");
    tide_text_deinit(&got);
    sqlite3_close(db);
    tmp_dir_remove(&d);
}

static tide_status opened_and_checked(const char *path, tide_error *err) {
    tide_trace *t;
    tide_error_clear(err);
    TIDE_TRY(tide_trace_open(path, &t, err));
    const tide_status st = tide_trace_check(t, err);
    tide_trace_close(t);
    return st;
}

/// What an older program wrote: events in chunks, blocks in rows.
static void test_an_older_trace(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    make(&d, 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(opened_and_checked(d.file, &err), &err);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(d.file, &db), SQLITE_OK);
    assert_all_blocks(db);
    assert_int_equal(sqlite3_exec(db,
                                  "INSERT INTO block SELECT * FROM all_blocks ORDER BY id; DROP TABLE block_chunk; "
                                  "DELETE FROM meta WHERE key = 'packed'; PRAGMA user_version = 1; "
                                  "UPDATE meta SET value = '1' WHERE key = 'version'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_all_blocks(db);
    sqlite3_close(db);
    assert_tide_ok(opened_and_checked(d.file, &err), &err);
    assert_tide_ok(tide_trace_expand(d.file, &err), &err);
    assert_tide_ok(opened_and_checked(d.file, &err), &err);
    assert_sql(d.file, "SELECT count(*) > 0 FROM event", "1\n");
    tmp_dir_remove(&d);
}

static void test_expanded_it_is_a_plain_trace(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    make(&d, 20);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_expand(d.file, &err), &err);
    assert_sql(d.file, "PRAGMA user_version", "1\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('packed', 'version')", "1\n");
    assert_sql(d.file, "SELECT (SELECT count(*) FROM event_chunk) + (SELECT count(*) FROM block_chunk)", "0\n");
    sqlite3 *db = sql_open(d.file);
    assert_blocks(db, "block");
    sqlite3_close(db);
    assert_tide_ok(opened_and_checked(d.file, &err), &err);
    tmp_dir_remove(&d);
}

// ---- damage ----

static void change_row(const char *path, void (*change)(tide__block_ends *b)) {
    static tide__block_ends b;
    static uint8_t bytes[TIDE__BLOCK_CHUNK_MAX_BYTES];
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT data FROM block_chunk WHERE first_event = 2001", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_true(tide__block_chunk_decode(sqlite3_column_blob(stmt, 0), (size_t)sqlite3_column_bytes(stmt, 0), &b));
    sqlite3_finalize(stmt);
    change(&b);
    assert_int_equal(
        sqlite3_prepare_v2(db, "UPDATE block_chunk SET data = ? WHERE first_event = 2001", -1, &stmt, NULL), SQLITE_OK);
    sqlite3_bind_blob64(stmt, 1, bytes, tide__block_chunk_encode(&b, bytes), SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static tide__block_end *one_that_ended(tide__block_ends *b) {
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i].behind_ns > 0) return &b->items[i];
    fail_msg("no block of the chunk ended behind it");
    return NULL;
}

static void another_event(tide__block_ends *b) { one_that_ended(b)->distance++; }
static void another_time(tide__block_ends *b) { one_that_ended(b)->behind_ns++; }
static void another_request(tide__block_ends *b) { one_that_ended(b)->requested_ns += 3; }
static void a_block_less(tide__block_ends *b) { b->n--; }
static void all_later(tide__block_ends *b) { b->first_event++; }
/// An event that is no alloc: all allocs have their blocks.
static void another_place(tide__block_ends *b) {
    size_t i = 0;
    while (i + 1 < b->n && b->items[i + 1].at == b->items[i].at + 1) i++;
    b->items[i].at++;
}

/// Good bytes that say something else.
static void test_chunks_that_lie(void **state) {
    (void)state;
    void (*const changes[])(tide__block_ends *) = {another_event, another_time, another_request,
                                                   a_block_less,  all_later,    another_place};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        make(&d, 0);
        change_row(d.file, changes[i]);
        tide_error err = TIDE_ERROR_INIT;
        if (opened_and_checked(d.file, &err) != TIDE_ERR_BAD_INPUT) fail_msg("change %zu was not found", i);
        assert_text_has(err.msg, d.file);
        tmp_dir_remove(&d);
    }
}

static tide_status read_all(tide_trace *t, tide_error *err) {
    tide_trace_block *blocks = NULL;
    size_t n;
    const tide_status st = tide_trace_blocks(t, 0, &blocks, &n, err);
    if (st == TIDE_OK) tide_trace_blocks_free(blocks, n);
    return st;
}

static tide_status count(void *ctx, const tide_trace_block_row *rows, size_t n) {
    (void)rows;
    *(size_t *)ctx += n;
    return TIDE_OK;
}

/// Every way to read blocks refuses them, with the place.
static void test_chunks_that_are_damaged(void **state) {
    (void)state;
    static const char *const changes[] = {
        "UPDATE block_chunk SET data = substr(data, 1, length(data) - 1) WHERE first_event = 2001",
        "UPDATE block_chunk SET data = x'' WHERE first_event = 2001",
        "UPDATE block_chunk SET data = (SELECT data FROM block_chunk WHERE first_event = 2201) WHERE first_event = "
        "2001",
        "UPDATE block_chunk SET blocks = blocks + 1 WHERE first_event = 2001",
        "UPDATE block_chunk SET never_freed = never_freed + 1 WHERE first_event = 2001",
        "UPDATE block_chunk SET min_id = min_id + 1 WHERE first_event = 2001",
        "UPDATE block_chunk SET max_id = 9223372036854775807 WHERE first_event = 2001",
        "UPDATE block_chunk SET first_event = 2002 WHERE first_event = 2001",
        "DELETE FROM event_chunk WHERE first_event = 2001",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        make(&d, 0);
        tide_error err = TIDE_ERROR_INIT;
        tide_trace *t;
        assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
        sql_exec(d.file, changes[i]);
        size_t n = 0;
        if (read_all(t, &err) != TIDE_ERR_BAD_INPUT) fail_msg("%s: list", changes[i]);
        if (tide_trace_each_block(t, 0, count, &n, &err) != TIDE_ERR_BAD_INPUT) fail_msg("%s: each", changes[i]);
        assert_text_has(err.where, "row 200"); // 2001, or 2002
        tide_text out = {0};
        if (tide_trace_sql(t, "SELECT sum(requested_bytes) FROM blocks", "|", 0, &out, &err) != TIDE_ERR_BAD_INPUT &&
            err.status != TIDE_ERR_INVALID)
            fail_msg("%s: sql", changes[i]);
        tide_text_deinit(&out);
        tide_trace_close(t);
        if (opened_and_checked(d.file, &err) != TIDE_ERR_BAD_INPUT) fail_msg("%s: check", changes[i]);
        if (tide_trace_expand(d.file, &err) != TIDE_ERR_BAD_INPUT && i < 3) fail_msg("%s: expand", changes[i]);
        tmp_dir_remove(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_every_question),
        tide_unit_test(test_an_older_trace),
        tide_unit_test(test_expanded_it_is_a_plain_trace),
        tide_unit_test(test_chunks_that_lie),
        tide_unit_test(test_chunks_that_are_damaged),
    };
    return cmocka_run_group_tests(tests, finish_room, finish_room_free);
}
