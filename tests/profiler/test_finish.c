// SPDX-License-Identifier: MIT
//
// Tables block and step against what a model and plain SQL say of the same events, however the events are kept.
#include "tests/profiler/finish_fixture.h"

// ---- blocks and steps of any history ----

static const char steps_by_sql[] =
    "WITH told AS ("
    "  SELECT e.id, e.run_id, e.t_ns, e.op = 16 AS enter, e.thread, s.step, s.name_id,"
    "         lead(e.op = 16) OVER turn AS next_enter, lead(e.t_ns) OVER turn AS next_ns"
    "  FROM event e JOIN scope s ON s.id = e.scope_id"
    "  WHERE e.op IN (16, 17) AND e.run_id IS NOT NULL AND s.kind = 'operator' AND s.step IS NOT NULL"
    "  WINDOW turn AS (PARTITION BY e.run_id, e.thread, e.scope_id ORDER BY e.id)),"
    "began AS ("
    "  SELECT *, first_value(thread) OVER (PARTITION BY run_id ORDER BY id) AS first_thread FROM told WHERE enter),"
    "placed AS ("
    "  SELECT *, row_number() OVER (PARTITION BY run_id, step ORDER BY thread <> first_thread, id) AS place FROM began)"
    "SELECT run_id, step, name_id, thread, t_ns, CASE WHEN next_enter = 0 THEN next_ns END FROM placed WHERE place = 1";

static void assert_steps(const tide__store *s, const char *table) {
    char text[4096];
    snprintf(text, sizeof text, "SELECT count(*) FROM (SELECT * FROM %s EXCEPT SELECT * FROM (%s))", table,
             steps_by_sql);
    assert_int_equal(number(s, text), 0);
    snprintf(text, sizeof text, "SELECT count(*) FROM (SELECT * FROM (%s) EXCEPT SELECT * FROM %s)", steps_by_sql,
             table);
    assert_int_equal(number(s, text), 0);
}

static void check_history(program p, size_t n) {
    static program q;
    q = p;
    for (size_t i = 0; i < n; i++) events[i] = program_next(&q);
    model_blocks(n);
    tide_error err = TIDE_ERROR_INIT;
    for (int mixed = 0; mixed < 2; mixed++) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide__store *s = open_new(&d);
        put_scopes(s);
        put(s, 0, n, 777, mixed != 0);
        assert_tide_ok(tide__finish_tables(tide__store_sql(s), true, &err), &err);
        assert_blocks(tide__store_sql(s)->db, "temp.block");
        if (!mixed) assert_steps(s, "temp.step");
        assert_int_equal(number(s, "SELECT count(*) FROM main.block"), 0);
        assert_tide_ok(tide__finish_tables(tide__store_sql(s), true, &err), &err); // again: what was there goes
        assert_blocks(tide__store_sql(s)->db, "temp.block");
        for (int turn = 0; turn < 2; turn++) {
            assert_tide_ok(tide__finish_tables(tide__store_sql(s), false, &err), &err);
            assert_all_blocks(tide__store_sql(s)->db);
            if (!mixed) assert_steps(s, "main.step");
        }
        assert_int_equal(number(s, "SELECT count(*) FROM (SELECT * FROM temp.step EXCEPT SELECT * FROM main.step)"), 0);
        assert_int_equal(number(s, "SELECT count(*) FROM (SELECT * FROM main.step EXCEPT SELECT * FROM temp.step)"), 0);
        tide__store_close(s);
        tmp_dir_remove(&d);
    }
}

static void test_tables_say_what_happened(void **state) {
    (void)state;
    check_history((program){.rng.state = 1, .want_live = 50}, 6000);
    check_history((program){.rng.state = 2, .want_live = 500, .n_kinds = 6, .n_devices = 3, .requests = true}, 12000);
    check_history((program){.rng.state = 3, .scopes = 700, .n_runs = 3, .n_threads = 3}, 8000);
    check_history((program){.rng.state = 4, .scopes = 900, .n_runs = 4, .n_threads = 1}, 3000);
    check_history((program){.rng.state = 5,
                            .want_live = 300,
                            .lies = 200,
                            .discards = 10,
                            .scopes = 100,
                            .n_kinds = 4,
                            .n_devices = 3,
                            .n_runs = 2,
                            .requests = true},
                  12000);
    check_history((program){.rng.state = 6, .want_live = 4, .lies = 900, .discards = 90}, 3000);
    check_history((program){.rng.state = 7}, 0);
}

/// More than the queue holds: some blocks live through it all, some end late, most at once.
static void test_blocks_that_outlive_the_queue_are_all_there(void **state) {
    (void)state;
    tide_rng rng = {.state = 6};
    size_t n = 0;
    int64_t block = 0;
    n_want = 0;
    static size_t open[64]; // want[] of blocks that live long
    size_t n_open = 0;
    while (n + 2 < MAX_EVENTS) {
        block++;
        want_block *w = &want[n_want++];
        tide__event e = {.id = 1 + (int64_t)n,
                         .op = TIDE_MEM_ALLOC,
                         .t_ns = (int64_t)n,
                         .block_id = block,
                         .device = 1,
                         .requested_bytes = block % 100,
                         .address = block * 64,
                         .thread = 1};
        events[n++] = e;
        *w = (want_block){.b = {.block_id = block,
                                .alloc_event = e.id,
                                .alloc_ns = e.t_ns,
                                .device = 1,
                                .requested_bytes = e.requested_bytes,
                                .address = e.address,
                                .thread = 1}};
        if (tide_rng_below(&rng, 4000) == 0 && n_open < 64) {
            open[n_open++] = n_want - 1;
            continue;
        }
        if (n_open > 20 && tide_rng_below(&rng, 8000) == 0) w = &want[open[--n_open]];
        e.op = TIDE_MEM_FREE_COMPLETED;
        e.id = w->free_event = 1 + (int64_t)n;
        e.t_ns = w->free_ns = (int64_t)n;
        e.block_id = w->b.block_id;
        events[n++] = e;
    }
    assert_true(n_open > 10 && n_want > 2 * 65536);
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    put(s, 0, n, 65536, true);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__finish_tables(tide__store_sql(s), false, &err), &err);
    assert_all_blocks(tide__store_sql(s)->db);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

/// Few blocks, but so many events of scopes that a waiting block is not found any more: others do not wait for it.
static void test_a_block_that_is_lost_in_the_queue_is_written(void **state) {
    (void)state;
    enum { N = 290000, TWIN = 5 + (1 << 18) };
    for (size_t i = 0; i < N; i++) {
        const int64_t id = 1 + (int64_t)i;
        events[i] =
            (tide__event){.op = TIDE__OP_SCOPE_ENTER, .kind = TIDE__NO_KIND, .id = id, .t_ns = id, .scope_id = 5};
    }
    static const struct {
        int64_t id, block;
        int op;
    } all[] = {{5, 1, TIDE_MEM_ALLOC},
               {6, 2, TIDE_MEM_ALLOC},
               {TWIN, 3, TIDE_MEM_ALLOC}, // takes the place of block 1
               {TWIN + 1, 3, TIDE_MEM_FREE_COMPLETED},
               {TWIN + 2, 1, TIDE_MEM_FREE_COMPLETED},
               {TWIN + 3, 4, TIDE_MEM_ALLOC},
               {TWIN + 4, 4, TIDE_MEM_FREE_COMPLETED}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        events[all[i].id - 1] = (tide__event){.op = (uint8_t)all[i].op,
                                              .id = all[i].id,
                                              .t_ns = all[i].id,
                                              .block_id = all[i].block,
                                              .device = 1,
                                              .requested_bytes = 10};
    model_blocks(N);
    assert_int_equal(n_want, 4);
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    put_scopes(s);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_begin(s, &err), &err);
    assert_tide_ok(tide__store_end(s, tide__store_write_events(s, events, N, true, &err), &err), &err);
    assert_tide_ok(tide__finish_tables(tide__store_sql(s), false, &err), &err);
    assert_all_blocks(tide__store_sql(s)->db);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

/// More steps than are kept in memory: those of the runs that are over are written before the end.
static void test_steps_beyond_what_memory_keeps_are_written(void **state) {
    (void)state;
    enum { N_STEPS = 1 << 18, N = N_STEPS + 2000 };
    for (size_t i = 0; i < N; i++)
        events[i] = (tide__event){.op = TIDE__OP_SCOPE_ENTER,
                                  .kind = TIDE__NO_KIND,
                                  .id = 1 + (int64_t)i,
                                  .t_ns = (int64_t)i,
                                  .run_id = i < N_STEPS ? 1 : 2,
                                  .thread = 1,
                                  .scope_id = (int32_t)(1 + i % N_STEPS)};
    events[N - 1].op = TIDE__OP_SCOPE_LEAVE;
    events[N - 1].scope_id = 7;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    exec(s, "INSERT INTO name VALUES(1, 'step');"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 262144)"
            "INSERT INTO scope SELECT i, 1, 'operator', i - 1, NULL FROM n");
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_begin(s, &err), &err);
    assert_tide_ok(tide__store_end(s, tide__store_write_events(s, events, N, true, &err), &err), &err);
    assert_tide_ok(tide__finish_tables(tide__store_sql(s), false, &err), &err);
    assert_int_equal(number(s, "SELECT count(*) FROM step WHERE run_id = 1 AND begin_ns = step AND thread = 1"),
                     N_STEPS);
    assert_int_equal(number(s, "SELECT count(*) FROM step WHERE run_id = 2 AND begin_ns = step + 262144"), 1999);
    assert_int_equal(number(s, "SELECT step FROM step WHERE end_ns IS NOT NULL"), 6);
    assert_int_equal(number(s, "SELECT count(*) FROM step"), N_STEPS + 1999);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

// ---- a trace whose beginning is gone ----

static void test_blocks_from_before_the_first_event_are_there(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    put_scopes(s);
    make_history(31, 60000);
    put_as_a_drain(s, 60000, true);
    assert_int_equal(number(s, "SELECT count(*) FROM snapshot"), 3);
    exec(s, "DELETE FROM event WHERE id <= 32768; DELETE FROM event_chunk WHERE first_event <= 32768;"
            "DELETE FROM snapshot WHERE event_id < 32768; DELETE FROM leaf WHERE last_event <= 40960;"
            "INSERT INTO process(id, pid, begin_ns, how) VALUES(1, 10, 0, 'closed');"
            "INSERT INTO total VALUES(1, 1, 0, 1, 0, 1, 0)");
    model_blocks(60000);
    size_t n = 0; // those that had gone by then are not known any more
    for (size_t i = 0; i < n_want; i++)
        if (want[i].free_event == 0 || want[i].free_event > 32768) want[n++] = want[i];
    n_want = n;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__finish_tables(tide__store_sql(s), true, &err), &err);
    assert_blocks(tide__store_sql(s)->db, "temp.block");
    finish(s, NULL);
    sqlite3 *db = sql_open(d.file);
    assert_all_blocks(db);
    sqlite3_close(db);
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('n_events', 'first_kept_event') ORDER BY key",
               "32769\n60000\n");
    assert_sql(d.file, "SELECT count(*) FROM meta WHERE key = 'totals'", "0\n"); // the totals are unknown
    assert_sql(d.file, "SELECT count(*), max(last_event) FROM leaf WHERE series = 0", "19|60000\n");
    tmp_dir_remove(&d);
}

/// All events gone, but for a snapshot.
static void test_a_trace_of_one_snapshot_has_its_blocks(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    make_history(32, 16384);
    put_as_a_drain(s, 16384, true);
    exec(s, "DELETE FROM event; DELETE FROM event_chunk");
    model_blocks(16384);
    size_t n = 0;
    for (size_t i = 0; i < n_want; i++)
        if (want[i].free_event == 0) want[n++] = want[i];
    n_want = n;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__finish_tables(tide__store_sql(s), true, &err), &err);
    assert_blocks(tide__store_sql(s)->db, "temp.block");
    tide__store_close(s);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_tables_say_what_happened),
        tide_unit_test(test_blocks_that_outlive_the_queue_are_all_there),
        tide_unit_test(test_a_block_that_is_lost_in_the_queue_is_written),
        tide_unit_test(test_steps_beyond_what_memory_keeps_are_written),
        tide_unit_test(test_blocks_from_before_the_first_event_are_there),
        tide_unit_test(test_a_trace_of_one_snapshot_has_its_blocks),
    };
    return cmocka_run_group_tests(tests, finish_room, finish_room_free);
}
