// SPDX-License-Identifier: MIT
//
// What the tests of finish share: traces written through the store alone, in any form, and what a model says of them.
#ifndef TIDE_TESTS_PROFILER_FINISH_FIXTURE_H
#define TIDE_TESTS_PROFILER_FINISH_FIXTURE_H

#include "profiler/store/block_reader.h"
#include "profiler/store/finish.h"
#include "profiler/store/store.h"
#include "tests/profiler/event_fixture.h"
#include "tests/profiler/replay_model.h"
#include "tests/profiler/trace_fixture.h"

// ---- a trace ----

enum { MAX_EVENTS = 300000 };

static tide__event *events; // [MAX_EVENTS], see finish_room

static inline tide__store *open_new(const tmp_dir *d) {
    tide_error err = TIDE_ERROR_INIT;
    tide__store *s;
    assert_tide_ok(tide__store_create(d->file, &err), &err);
    assert_tide_ok(tide__store_open(d->file, &s, &err), &err);
    return s;
}

static inline void exec(const tide__store *s, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__sql_exec(tide__store_sql(s), text, &err), &err);
}

static inline int64_t number(const tide__store *s, const char *query) {
    tide_error err = TIDE_ERROR_INIT;
    int64_t out;
    assert_tide_ok(tide__sql_int(tide__store_sql(s), query, -1, &out, &err), &err);
    return out;
}

/// Eight scopes: two operators of one step, two more steps, an operator without one, a run and regions.
static inline void put_scopes(const tide__store *s) {
    exec(s, "INSERT INTO name VALUES(1, 'conv'), (2, 'relu'), (3, 'other');"
            "INSERT INTO scope VALUES(1, 1, 'operator', 0, NULL), (2, 2, 'operator', 1, NULL),"
            "(3, 3, 'operator', 0, 4), (4, 3, 'run', 0, NULL), (5, 3, 'region', NULL, NULL),"
            "(6, 3, 'operator', NULL, NULL), (7, 1, 'operator', 7, 4), (8, 2, 'region', 3, NULL)");
}

/// Events [first, first + n) in pieces of `piece`, every second one as a chunk where `mixed`.
static inline void put(tide__store *s, size_t first, size_t n, size_t piece, bool mixed) {
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n; i += piece) {
        const size_t len = n - i < piece ? n - i : piece;
        assert_tide_ok(tide__store_begin(s, &err), &err);
        const bool as_chunks = mixed && i / piece % 2 == 1;
        assert_tide_ok(tide__store_end(s, tide__store_write_events(s, &events[first + i], len, as_chunks, &err), &err),
                       &err);
    }
}

static inline void finish(tide__store *s, const char *reason) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__finish(s, reason, &err), &err);
}

// ---- what the model says ----

typedef struct want_block {
    tide__live_block b;
    int64_t free_event, free_ns;
} want_block;

static model m;
static want_block *want; // [MAX_EVENTS]
static size_t n_want;

/// Set up and torn down with the group of tests: as static arrays they would be looked through for pointers, 55 MB of
/// them, at the end of every process that starts from this test program.
static inline int finish_room(void **state) {
    (void)state;
    events = calloc(MAX_EVENTS, sizeof *events);
    want = calloc(MAX_EVENTS, sizeof *want);
    return events != NULL && want != NULL ? 0 : -1;
}

static inline int finish_room_free(void **state) {
    (void)state;
    free(events);
    free(want);
    return 0;
}

static inline int by_alloc(const void *a, const void *b) {
    const int64_t x = ((const want_block *)a)->b.alloc_event, y = ((const want_block *)b)->b.alloc_event;
    return (x > y) - (x < y);
}

/// All blocks of events[n], by their allocs, into want[].
static inline void model_blocks(size_t n) {
    memset(&m, 0, sizeof m);
    n_want = 0;
    for (size_t i = 0; i < n; i++) {
        model_apply(&m, &events[i]);
        for (size_t k = 0; k < m.n_gone; k++) want[n_want++] = (want_block){m.gone[k], events[i].id, events[i].t_ns};
    }
    for (size_t k = 0; k < m.n; k++) want[n_want++] = (want_block){.b = m.live[k]};
    qsort(want, n_want, sizeof want[0], by_alloc);
}

static inline void assert_column(sqlite3_stmt *row, int i, int64_t value, bool null) {
    const bool is_null = sqlite3_column_type(row, i) == SQLITE_NULL;
    if (is_null != null || sqlite3_column_int64(row, i) != (null ? 0 : value))
        fail_msg("block %s: %s is %s, not %lld", tide__sql_text(row, 0), sqlite3_column_name(row, i),
                 tide__sql_text(row, i), (long long)value);
}

static inline void assert_block_row(sqlite3_stmt *row, const want_block *w) {
    const tide__live_block *b = &w->b;
    const int64_t id = sqlite3_column_int64(row, 0);
    assert_true(id == b->block_id || id == -b->alloc_event); // a number that was handed out twice
    assert_column(row, 1, b->run_id, b->run_id == 0);
    assert_column(row, 2, b->alloc_event, false);
    assert_column(row, 3, w->free_event, w->free_event == 0);
    assert_column(row, 4, b->alloc_ns, false);
    assert_column(row, 5, b->free_requested_ns, b->free_requested_ns == 0);
    assert_column(row, 6, w->free_ns, w->free_event == 0);
    assert_column(row, 7, b->kind, false);
    assert_column(row, 8, b->device, false);
    assert_column(row, 9, b->stream, false);
    assert_column(row, 10, b->requested_bytes, false);
    assert_column(row, 11, b->reserved_bytes, false);
    assert_column(row, 12, b->address, false);
    assert_column(row, 13, b->thread, false);
    assert_column(row, 14, b->allocator_id, b->allocator_id == 0);
    assert_column(row, 15, b->tag_id, b->tag_id == 0);
    assert_column(row, 16, b->scope_id, b->scope_id == 0);
}

/// Table `table` holds want[], nothing else.
static inline void assert_blocks(sqlite3 *db, const char *table) {
    char text[100];
    snprintf(text, sizeof text, "SELECT * FROM %s ORDER BY alloc_event", table);
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &row, NULL), SQLITE_OK);
    size_t n = 0;
    while (sqlite3_step(row) == SQLITE_ROW) {
        assert_true(n < n_want);
        assert_block_row(row, &want[n++]);
    }
    sqlite3_finalize(row);
    assert_int_equal(n, n_want);
}

/// Tables block and block_chunk together do.
static inline void assert_all_blocks(sqlite3 *db) {
    const tide__sql s = {.db = db, .path = "the test's"};
    tide_error err = TIDE_ERROR_INIT;
    bool is_packed;
    assert_tide_ok(tide__blocks_are_packed(&s, &is_packed, &err), &err);
    if (is_packed) assert_tide_ok(tide__block_table_register(&s, &err), &err);
    assert_blocks(db, is_packed ? "all_blocks" : "main.block");
}

/// A replay, its leaves and snapshots, as a drain makes them.
static inline void put_as_a_drain(tide__store *s, size_t n, bool leaves_too) {
    static tide__replay r;
    tide__leaves l = {0};
    tide_error err = TIDE_ERROR_INIT;
    int64_t last_snapshot = 0;
    assert_tide_ok(tide__replay_init(&r), &err);
    for (size_t i = 0; i < n; i++) {
        tide__problem problem;
        size_t series;
        assert_tide_ok(tide__replay_apply(&r, &events[i], &problem, &series), &err);
        assert_tide_ok(tide__leaves_add(&l, &r, &events[i], series), &err);
        if (i % 1024 != 1023 && i + 1 < n) continue;
        assert_tide_ok(tide__store_begin(s, &err), &err);
        const size_t first = i / 1024 * 1024;
        tide_status st = tide__store_write_events(s, &events[first], i + 1 - first, i / 1024 % 3 == 1, &err);
        if (st == TIDE_OK && i + 1 == n) st = tide__leaves_end(&l);
        if (st == TIDE_OK && leaves_too) st = tide__store_write_leaves(s, &r, l.done, l.n_done, &err);
        l.n_done = 0;
        if (st == TIDE_OK && leaves_too && i % 1024 == 1023 && (int64_t)i + 1 - last_snapshot >= 16384) {
            st = tide__store_write_snapshot(s, &r, &err);
            last_snapshot = (int64_t)i + 1;
        }
        assert_tide_ok(tide__store_end(s, st, &err), &err);
    }
    tide__leaves_deinit(&l);
    tide__replay_deinit(&r);
}

static inline void make_history(uint64_t seed, size_t n) {
    static program p;
    p = (program){.rng.state = seed, .want_live = 400, .scopes = 50, .n_kinds = 3, .n_devices = 2, .requests = true};
    for (size_t i = 0; i < n; i++) events[i] = program_next(&p);
}

#endif
