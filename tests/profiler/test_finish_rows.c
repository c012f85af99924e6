// SPDX-License-Identifier: MIT
//
// Rows written in batches of different sizes: the same rows, whatever is in them, in whatever order and however often.
#include "profiler/store/rows.h"
#include "tests/profiler/store_fixture.h"

enum { N_ROWS = 10000, SMALL = 500, CHUNK = 4096 };

typedef struct file {
    tmp_dir dir;
    tide__store *store;
    const tide__sql *sql;
    tide__rows *rows;
} file;

static void file_open(file *f) {
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir_make(&f->dir);
    assert_tide_ok(tide__store_create(f->dir.file, &err), &err);
    assert_tide_ok(tide__store_open(f->dir.file, &f->store, &err), &err);
    f->sql = tide__store_sql(f->store);
    assert_tide_ok(tide__rows_open(f->sql, &f->rows, &err), &err);
}

static void file_close(file *f) {
    tide__rows_close(f->rows);
    tide__store_close(f->store);
    tmp_dir_remove(&f->dir);
}

static int64_t number(const file *f, const char *query) {
    tide_error err = TIDE_ERROR_INIT;
    int64_t n;
    assert_tide_ok(tide__sql_int(f->sql, query, -1, &n, &err), &err);
    return n;
}

static void exec(const file *f, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__sql_exec(f->sql, text, &err), &err);
}

// ---- rows ----

/// Numbers about where one takes a byte more, of both signs.
static int64_t any_number(tide_rng *rng) {
    const int64_t edge = (int64_t)(UINT64_C(1) << tide_rng_below(rng, 64));
    const int64_t n = (int64_t)((uint64_t)edge + tide_rng_below(rng, 5) - 2);
    return tide_rng_below(rng, 4) == 0 ? (int64_t)tide_rng_below(rng, 3) : n;
}

static int32_t any_id(tide_rng *rng) { return (int32_t)(any_number(rng) & INT32_MAX); }

static tide__block_row any_block(tide_rng *rng, int64_t id, int64_t alloc_event) {
    return (tide__block_row){.id = id,
                             .run_id = any_id(rng),
                             .alloc_event = alloc_event,
                             .free_event = tide_rng_below(rng, 3) == 0 ? 0 : any_number(rng),
                             .alloc_ns = any_number(rng),
                             .free_requested_ns = any_number(rng),
                             .free_ns = any_number(rng),
                             .requested_bytes = any_number(rng),
                             .reserved_bytes = any_number(rng),
                             .address = any_number(rng),
                             .stream = any_number(rng),
                             .thread = any_id(rng),
                             .scope_id = any_id(rng),
                             .tag_id = any_id(rng),
                             .allocator_id = any_id(rng),
                             .device = (int16_t)tide_rng_below(rng, 1024),
                             .kind = (uint8_t)tide_rng_below(rng, TIDE_N_KINDS)};
}

static tide__event any_event(tide_rng *rng, int64_t id) {
    static const uint8_t ops[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18};
    return (tide__event){.id = id,
                         .t_ns = any_number(rng),
                         .block_id = any_number(rng),
                         .requested_bytes = any_number(rng),
                         .reserved_bytes = any_number(rng),
                         .address = any_number(rng),
                         .stream = any_number(rng),
                         .run_id = any_id(rng),
                         .thread = any_id(rng),
                         .scope_id = any_id(rng),
                         .tag_id = any_id(rng),
                         .allocator_id = any_id(rng),
                         .device = (int16_t)tide_rng_below(rng, 1024),
                         .op = ops[tide_rng_below(rng, sizeof ops)],
                         .kind = (uint8_t)(tide_rng_below(rng, 2) == 0 ? TIDE__NO_KIND : 3)};
}

static void put_blocks(const file *f, const tide__block_row *blocks, size_t n, size_t piece) {
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n; i += piece)
        assert_tide_ok(tide__rows_insert_blocks(f->rows, false, &blocks[i], n - i < piece ? n - i : piece, &err), &err);
}

static void put_events(const file *f, const tide__event *events, size_t n, size_t piece) {
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n; i += piece)
        assert_tide_ok(tide__rows_insert_events(f->rows, &events[i], n - i < piece ? n - i : piece, &err), &err);
}

/// Both have the same rows in `table`, `n` of them, and pages that SQLite finds in order.
static void assert_same(const file *a, const file *b, const char *table, int64_t n) {
    char text[1000];
    snprintf(text, sizeof text, "ATTACH '%s' AS other", b->dir.file);
    exec(a, text);
    snprintf(text, sizeof text, "SELECT count(*) FROM main.%s", table);
    assert_int_equal(number(a, text), n);
    snprintf(text, sizeof text, "SELECT count(*) FROM other.%s", table);
    assert_int_equal(number(a, text), n);
    snprintf(text, sizeof text, "SELECT count(*) FROM (SELECT * FROM main.%s EXCEPT SELECT * FROM other.%s)", table,
             table);
    assert_int_equal(number(a, text), 0);
    exec(a, "DETACH other");
    assert_int_equal(
        number(a, "SELECT count(*) FROM pragma_integrity_check WHERE schema = 'main' AND integrity_check <> 'ok'"), 0);
}

// ---- tests ----

static void test_large_and_small_batches_are_the_same_rows(void **state) {
    (void)state;
    static const size_t pieces[] = {1024, 1025, CHUNK, CHUNK + 1, N_ROWS};
    tide_rng rng = {.state = 7};
    tide__block_row *blocks = tide_host_calloc(N_ROWS, sizeof *blocks);
    tide__event *events = tide_host_calloc(N_ROWS, sizeof *events);
    assert_true(blocks != NULL && events != NULL);
    for (int64_t i = 0; i < N_ROWS; i++) { // two processes by turns
        blocks[i] = any_block(&rng, i % 3 == 0 ? (INT64_C(1) << 48) + i : i, i + 1);
        events[i] = any_event(&rng, 1 + i);
    }
    for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++) {
        file large, small;
        file_open(&large);
        file_open(&small);
        put_blocks(&large, blocks, N_ROWS, pieces[k]);
        put_events(&large, events, N_ROWS, pieces[k]);
        put_blocks(&small, blocks, N_ROWS, SMALL);
        put_events(&small, events, N_ROWS, SMALL);
        assert_same(&large, &small, "block", N_ROWS);
        assert_same(&large, &small, "event", N_ROWS);
        file_close(&large);
        file_close(&small);
    }
    tide_host_free(blocks);
    tide_host_free(events);
}

static void test_numbers_that_are_taken(void **state) {
    (void)state;
    enum { N = 3 * CHUNK, TWICE_IN_BATCH = 5000, TWICE_IN_TABLE = 9000 };
    tide_rng rng = {.state = 9};
    tide__block_row *blocks = tide_host_calloc(N, sizeof *blocks);
    assert_true(blocks != NULL);
    for (int64_t i = 0; i < N; i++) blocks[i] = any_block(&rng, 10 + i, 1 + i);
    blocks[TWICE_IN_BATCH].id = blocks[TWICE_IN_BATCH - 1].id;
    blocks[TWICE_IN_TABLE].id = blocks[3].id;
    file large, small;
    file_open(&large);
    file_open(&small);
    put_blocks(&large, blocks, N, N);
    put_blocks(&small, blocks, N, SMALL);
    assert_same(&large, &small, "block", N);
    assert_int_equal(number(&large, "SELECT count(*) FROM block WHERE id < 0"), 2);
    char text[100];
    snprintf(text, sizeof text, "SELECT id FROM block WHERE alloc_event = %d", TWICE_IN_TABLE + 1);
    assert_int_equal(number(&large, text), -(TWICE_IN_TABLE + 1));
    file_close(&large);
    file_close(&small);
    tide_host_free(blocks);
}

/// Many transactions, some of which are rolled back.
static void test_batches_in_transactions(void **state) {
    (void)state;
    tide_rng rng = {.state = 11};
    tide__event *events = tide_host_calloc(N_ROWS, sizeof *events);
    assert_true(events != NULL);
    for (int64_t i = 0; i < N_ROWS; i++) events[i] = any_event(&rng, 1 + i);
    file large, small;
    tide_error err = TIDE_ERROR_INIT;
    file_open(&large);
    file_open(&small);
    put_events(&small, events, N_ROWS, SMALL);
    for (size_t i = 0; i < N_ROWS; i += 2000) {
        for (int turn = 0; turn < 2; turn++) {
            exec(&large, "BEGIN IMMEDIATE");
            put_events(&large, &events[i], 2000, 2000);
            exec(&large, turn == 0 ? "ROLLBACK" : "COMMIT");
        }
    }
    // Events that are there already are refused, and nothing changes.
    assert_tide_status(tide__rows_insert_events(large.rows, events, 2000, &err), TIDE_ERR_WRITE);
    assert_same(&large, &small, "event", N_ROWS);
    file_close(&large);
    file_close(&small);
    tide_host_free(events);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_large_and_small_batches_are_the_same_rows),
        tide_unit_test(test_numbers_that_are_taken),
        tide_unit_test(test_batches_in_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
