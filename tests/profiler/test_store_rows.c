// SPDX-License-Identifier: MIT
//
// What is in the file is what was put in: events as rows and as chunks, blocks.
#include "profiler/store/cursor.h"
#include "profiler/store/rows.h"
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

// ---- rows ----

static int64_t any_number(tide_rng *rng, bool all_bits) {
    const int64_t n = (int64_t)(tide_rng_u64(rng) >> tide_rng_below(rng, 64));
    return all_bits || n >= 0 ? n : 0;
}

static int32_t any_id(tide_rng *rng) { return (int32_t)(any_number(rng, false) % INT32_MAX); }

static tide__event any_event(tide_rng *rng, int64_t id, int64_t t_ns) {
    static const uint8_t ops[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18};
    tide__event e = {.id = id, .t_ns = t_ns, .op = ops[tide_rng_below(rng, sizeof ops)]};
    const bool of_block = e.op >= TIDE_MEM_ALLOC && e.op <= TIDE_MEM_FREE_COMPLETED;
    e.kind = of_block || tide_rng_below(rng, 2) == 0 ? (uint8_t)tide_rng_below(rng, TIDE_N_KINDS) : TIDE__NO_KIND;
    e.device = (int16_t)(of_block ? 1 + tide_rng_below(rng, 1000) : tide_rng_below(rng, 3));
    e.block_id = any_number(rng, false);
    e.requested_bytes = tide_rng_below(rng, 4) == 0 ? 0 : any_number(rng, false);
    e.reserved_bytes = tide_rng_below(rng, 4) == 0 ? 0 : any_number(rng, false);
    e.address = tide_rng_below(rng, 4) == 0 ? 0 : any_number(rng, true);
    e.stream = tide_rng_below(rng, 2) == 0 ? 0 : any_number(rng, true);
    e.run_id = any_id(rng);
    e.thread = any_id(rng);
    e.scope_id = any_id(rng);
    e.tag_id = any_id(rng);
    e.allocator_id = any_id(rng);
    return e;
}

/// A column that is NULL exactly when `is_null`, else `value`.
static void check_column(sqlite3_stmt *row, int i, bool is_null, int64_t value) {
    assert_int_equal(sqlite3_column_type(row, i), is_null ? SQLITE_NULL : SQLITE_INTEGER);
    if (!is_null) assert_int_equal(sqlite3_column_int64(row, i), value);
}

static bool is_one_of(int op, const char *ops) { return strchr(ops, 'a' + op) != NULL; }

/// By the documented rules: an absent value is NULL, and so is a field that the operation does not use (unless the
/// event set it).
static void check_row(sqlite3_stmt *row, const tide__event *e) {
    check_column(row, 0, false, e->id);
    check_column(row, 1, e->run_id == 0, e->run_id);
    check_column(row, 2, false, e->t_ns);
    check_column(row, 3, false, e->op);
    check_column(row, 4, e->block_id == 0, e->block_id);
    check_column(row, 5, e->kind == 255, e->kind);
    check_column(row, 6, e->device == 0, e->device);
    check_column(row, 7, e->stream == 0 && !is_one_of(e->op, "bcdefgh"), e->stream);
    check_column(row, 8, e->requested_bytes == 0 && !is_one_of(e->op, "bcdefgs"), e->requested_bytes);
    check_column(row, 9, e->reserved_bytes == 0 && !is_one_of(e->op, "bcdefh"), e->reserved_bytes);
    check_column(row, 10, e->address == 0 && !is_one_of(e->op, "bcdefh"), e->address);
    check_column(row, 11, false, e->thread);
    check_column(row, 12, e->allocator_id == 0, e->allocator_id);
    check_column(row, 13, e->tag_id == 0, e->tag_id);
    check_column(row, 14, e->scope_id == 0, e->scope_id);
}

enum { N_ANY = 5000 };

static tide__event *any_events(void) {
    tide_rng rng = {.state = 42};
    tide__event *events = tide_host_calloc(N_ANY, sizeof *events);
    assert_non_null(events);
    int64_t t_ns = 5;
    for (int i = 0; i < N_ANY; i++)
        events[i] = any_event(&rng, i + 1, t_ns += (int64_t)(tide_rng_u64(&rng) >> (33 + tide_rng_below(&rng, 31))));
    return events;
}

static void test_rows_say_what_went_in(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    tide__store *s = open_store(d.file);
    tide__event *events = any_events();
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_begin(s, &err), &err);
    tide_status st = tide__store_write_events(s, events, 0, false, &err);
    if (st == TIDE_OK) st = tide__store_write_events(s, events, 1, false, &err);
    if (st == TIDE_OK) st = tide__store_write_events(s, events + 1, N_ANY - 1, false, &err);
    assert_tide_ok(tide__store_end(s, st, &err), &err);
    tide__store_close(s);
    sqlite3 *db = sql_open(d.file);
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM event ORDER BY id", -1, &row, NULL), SQLITE_OK);
    int n = 0;
    for (; sqlite3_step(row) == SQLITE_ROW; n++) check_row(row, &events[n]);
    assert_int_equal(n, N_ANY);
    sqlite3_finalize(row);
    sqlite3_close(db);
    tide_host_free(events);
    tmp_dir_remove(&d);
}

/// Rows and chunks give the events back as they were.
static void test_events_come_back_from_rows_and_chunks(void **state) {
    (void)state;
    tide__event *events = any_events();
    for (int as_chunks = 0; as_chunks < 2; as_chunks++) {
        tmp_dir d;
        tmp_dir_make(&d);
        create(d.file);
        tide__store *s = open_store(d.file);
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__store_begin(s, &err), &err);
        tide_status st = tide__store_write_events(s, events, N_ANY, as_chunks, &err);
        assert_tide_ok(tide__store_end(s, st, &err), &err);
        assert_sql(d.file, "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM event_chunk)",
                   as_chunks ? "0|2\n" : "5000|0\n");
        tide__cursor *c;
        assert_tide_ok(tide__cursor_open(tide__store_sql(s), 1, INT64_MAX, &c, &err), &err);
        const tide__event *got;
        size_t n = 0, total = 0;
        for (;;) {
            assert_tide_ok(tide__cursor_next(c, &got, &n, &err), &err);
            if (n == 0) break;
            assert_true(total + n <= N_ANY);
            assert_memory_equal(got, &events[total], n * sizeof *got);
            total += n;
        }
        assert_int_equal(total, N_ANY);
        tide__cursor_close(c);
        tide__store_close(s);
        tmp_dir_remove(&d);
    }
    tide_host_free(events);
}

/// Rows that follow each other are numbered by SQLite; others must get their own numbers all the same.
static void test_rows_behind_and_within_gaps(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    tide__store *s = open_store(d.file);
    tide__event *events = any_events();
    static const int parts[][2] = {{100, 10}, {110, 1}, {200, 50}, {150, 20}, {10, 5}, {250, 3}}; // first index, number
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        assert_tide_ok(tide__store_write_events(s, &events[parts[i][0]], (size_t)parts[i][1], false, &err), &err);
    // The middle one is missing: the others keep their numbers.
    const tide__event apart[] = {events[300], events[302]};
    assert_tide_ok(tide__store_write_events(s, apart, 2, false, &err), &err);
    sqlite3_stmt *row;
    const tide__sql *sql = tide__store_sql(s);
    assert_tide_ok(tide__sql_prepare(sql, "SELECT * FROM event ORDER BY id", &row, &err), &err);
    int n = 0;
    for (; sqlite3_step(row) == SQLITE_ROW; n++) check_row(row, &events[sqlite3_column_int64(row, 0) - 1]);
    assert_int_equal(n, 10 + 1 + 50 + 20 + 5 + 3 + 2);
    sqlite3_finalize(row);
    tide__store_close(s);
    tide_host_free(events);
    tmp_dir_remove(&d);
}

static void test_blocks_with_the_same_number(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    tide__store *s = open_store(d.file);
    tide__rows *rows;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__rows_open(tide__store_sql(s), &rows, &err), &err);
    const tide__block_row first[] = {
        {.id = 7,
         .alloc_event = 1,
         .alloc_ns = 10,
         .free_event = 2,
         .free_ns = 20,
         .free_requested_ns = 15,
         .requested_bytes = 5,
         .reserved_bytes = 64,
         .address = -1,
         .stream = -2,
         .thread = 3,
         .scope_id = 4,
         .tag_id = 5,
         .allocator_id = 6,
         .device = 1,
         .kind = 2,
         .run_id = 8},
        {.id = 3,
         .alloc_event = 3,
         .alloc_ns = 30,
         .requested_bytes = 6,
         .reserved_bytes = 64,
         .thread = 1,
         .device = 1},
    };
    const tide__block_row again[] = {
        {.id = 9, .alloc_event = 4, .alloc_ns = 40, .thread = 1, .device = 1},
        {.id = 7, .alloc_event = 5, .alloc_ns = 50, .thread = 1, .device = 1},
        {.id = 9, .alloc_event = 6, .alloc_ns = 60, .thread = 1, .device = 1},
    };
    assert_tide_ok(tide__rows_insert_blocks(rows, false, first, 2, &err), &err);
    assert_tide_ok(tide__rows_insert_blocks(rows, false, again, 3, &err), &err);
    assert_sql(d.file, "SELECT * FROM block ORDER BY alloc_event",
               "7|8|1|2|10|15|20|2|1|-2|5|64|-1|3|6|5|4\n3||3||30|||0|1|0|6|64|0|1|||\n9||4||40|||0|1|0|0|0|0|1|||\n"
               "-5||5||50|||0|1|0|0|0|0|1|||\n-6||6||60|||0|1|0|0|0|0|1|||\n");
    assert_tide_ok(
        tide__sql_exec(tide__store_sql(s), "CREATE TEMP TABLE block AS SELECT * FROM main.block WHERE 0", &err), &err);
    assert_tide_ok(tide__rows_insert_blocks(rows, true, first, 2, &err), &err);
    int64_t n;
    assert_tide_ok(tide__sql_int(tide__store_sql(s), "SELECT count(*) FROM temp.block", 0, &n, &err), &err);
    assert_int_equal(n, 2);
    tide__rows_close(rows);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

// ---- no memory ----

/// A transaction that ran out of memory somewhere is as if it had not been, and can be made again.
static void test_writing_without_memory(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    writer_run(&w, 3000);
    tide__store_close(w.s);
    int64_t n = 0;
    for (tide_status st = TIDE_ERR_NOMEM; st != TIDE_OK; n++) {
        w.s = open_store(d.file); // its buffers and statements are new
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__store_begin(w.s, &err), &err);
        tide_host_fail_after(n);
        st = tide__store_write_names(w.s, &w.names, &err);
        if (st == TIDE_OK) st = tide__store_write_events(w.s, w.batch, 1500, false, &err);
        if (st == TIDE_OK) st = tide__store_write_events(w.s, w.batch + 1500, 1500, true, &err);
        if (st == TIDE_OK) st = tide__store_write_leaves(w.s, &w.replay, w.leaves.done, w.leaves.n_done, &err);
        if (st == TIDE_OK) st = tide__store_write_snapshot(w.s, &w.replay, &err);
        tide_host_fail_after(-1);
        assert_int_equal(tide__store_end(w.s, st, &err), st);
        tide__store_close(w.s);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_true(err.msg[0] != '\0');
        assert_sql(d.file, "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM name), count(*) FROM leaf",
                   "0|0|0\n");
    }
    assert_true(n >= 4);
    w.s = NULL;
    assert_sql(d.file,
               "SELECT (SELECT count(*) FROM event), count(*), sum(last_event - first_event + 1) FROM event_chunk",
               "1500|1|1500\n");
    writer_close(&w);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_rows_say_what_went_in),       tide_unit_test(test_events_come_back_from_rows_and_chunks),
        tide_unit_test(test_rows_behind_and_within_gaps), tide_unit_test(test_blocks_with_the_same_number),
        tide_unit_test(test_writing_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
