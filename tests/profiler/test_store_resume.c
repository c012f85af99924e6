// SPDX-License-Identifier: MIT
//
// A recording goes on from what is in the file, and from nothing that no recorder wrote.
#include "profiler/store/cursor.h"
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

// ---- going on ----

/// A replay's live blocks and sums are those of `want`.
static void assert_same_live(const tide__replay *got, const tide__replay *want) {
    assert_int_equal(tide__replay_n_live(got), tide__replay_n_live(want));
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(want, &i)) != NULL;) {
        const tide__live_block *same = tide__replay_find(got, b->block_id);
        assert_non_null(same);
        assert_memory_equal(same, b, sizeof *b);
    }
    assert_int_equal(got->n_series, want->n_series);
    for (size_t i = 0; i < want->n_series; i++) {
        assert_int_equal(got->series[i].live_bytes, want->series[i].live_bytes);
        assert_int_equal(got->series[i].live_reserved_bytes, want->series[i].live_reserved_bytes);
        assert_int_equal(got->series[i].device, want->series[i].device);
        assert_int_equal(got->series[i].kind, want->series[i].kind);
    }
}

/// As a drain does it that finds an unfinished trace.
static void replay_from_file(const tide__store *s, tide__store_state *state, tide__replay *r) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_get_state(s, state, &err), &err);
    assert_tide_ok(tide__replay_init(r), &err);
    assert_tide_ok(tide__store_load_replay(s, state, r, &err), &err);
    assert_int_equal(r->last_event, state->snapshot_event);
    tide__cursor *c;
    assert_tide_ok(tide__cursor_open(tide__store_sql(s), state->snapshot_event + 1, INT64_MAX, &c, &err), &err);
    const tide__event *events;
    for (size_t n = 1; n > 0;) {
        assert_tide_ok(tide__cursor_next(c, &events, &n, &err), &err);
        for (size_t i = 0; i < n; i++) {
            tide__problem problem;
            size_t series;
            assert_tide_ok(tide__replay_apply(r, &events[i], &problem, &series), &err);
        }
    }
    tide__cursor_close(c);
}

static void test_a_recording_goes_on_where_it_was(void **state) {
    (void)state;
    for (int as_chunks = 0; as_chunks < 2; as_chunks++) {
        tmp_dir d;
        tmp_dir_make(&d);
        create(d.file);
        writer w;
        writer_open(&w, d.file);
        w.as_chunks = as_chunks;
        for (int i = 0; i < 9; i++) {
            writer_run(&w, 5000);
            writer_flush(&w);
        }
        tide__store *s = open_store(d.file);
        tide__store_state at;
        tide__replay r;
        replay_from_file(s, &at, &r);
        assert_int_equal(at.last_event, 45000);
        assert_int_equal(at.last_ns, w.last_ns);
        assert_int_equal(at.snapshot_event, w.last_snapshot);
        assert_int_equal(at.snapshot_event, 32768);
        assert_int_equal(at.leaf_event, 45000 / 1024 * 1024);
        assert_int_equal(at.n_problems, 0);
        assert_same_live(&r, &w.replay);
        tide__replay_deinit(&r);
        tide__store_close(s);
        writer_close(&w);
        tmp_dir_remove(&d);
    }
}

/// A series that has no leaf yet has its row when a later one has: their numbers have no holes.
static void test_series_are_written_without_holes(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    tide__store *s = open_store(d.file);
    tide__replay r;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__replay_init(&r), &err);
    assert_int_equal(tide__replay_series(&r, 1, 2), 1);
    assert_int_equal(tide__replay_series(&r, 3, 0), 2);
    assert_int_equal(tide__replay_series(&r, 1, 1), 3);
    const tide__leaf leaf = {.series = 3, .first_event = 1, .last_event = 1024};
    assert_tide_ok(tide__store_write_leaves(s, &r, &leaf, 1, &err), &err);
    assert_sql(d.file, "SELECT * FROM series", "0||\n1|1|2\n2|3|0\n3|1|1\n");
    tide__replay_deinit(&r);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

/// Intervals that change no memory have no leaf; a snapshot behind them says that they are complete.
static void test_a_snapshot_behind_the_last_leaf(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    writer_put(&w, writer_event(TIDE_MEM_ALLOC, 1, 100));
    for (int i = 0; i < 20000; i++)
        writer_put(&w, (tide__event){.op = TIDE__OP_SCOPE_ENTER, .kind = TIDE__NO_KIND, .thread = 1, .scope_id = 1});
    writer_flush(&w);
    tide__store_state at;
    tide__replay r;
    replay_from_file(w.s, &at, &r);
    assert_int_equal(at.snapshot_event, 16384);
    assert_int_equal(at.leaf_event, 16384);
    assert_sql(d.file, "SELECT max(last_event) FROM leaf", "1024\n");
    assert_same_live(&r, &w.replay);
    tide__replay_deinit(&r);
    writer_close(&w);
    tmp_dir_remove(&d);
}

static void test_names_come_back(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    writer w;
    writer_open(&w, d.file);
    tide_error err = TIDE_ERROR_INIT;
    int64_t id;
    const tide_device gpu = {.type = TIDE_DEVICE_CUDA, .index = 3};
    assert_tide_ok(tide__names_device(&w.names, gpu, &id), &err);
    assert_tide_ok(tide__names_text(&w.names, "", &id), &err);
    const tide__scope_row inner = {.name_id = 3, .parent_id = 1, .kind = TIDE_SCOPE_OPERATOR, .step = 5};
    assert_tide_ok(tide__names_scope_row(&w.names, &inner, &id), &err);
    assert_int_equal(id, 2);
    writer_flush(&w);
    // The second process has a thread 1 too; a name that comes later replaces what was written.
    assert_tide_ok(tide__names_thread(&w.names, 2, 1, NULL, &id), &err);
    assert_int_equal(id, 2);
    assert_tide_ok(tide__names_thread(&w.names, 2, 7, "", &id), &err);
    assert_int_equal(id, 7);
    assert_tide_ok(tide__names_thread(&w.names, 2, 2, "worker", &id), &err);
    assert_int_equal(id, 3);
    assert_tide_ok(tide__names_thread(&w.names, 1, 1, "renamed", &id), &err);
    assert_int_equal(id, 1);
    assert_tide_ok(tide__names_thread(&w.names, 1, 1, "", &id), &err); // says nothing new
    assert_tide_ok(tide__names_text(&w.names, "later", &id), &err);
    writer_flush(&w);
    assert_int_equal(w.names.n_threads_unwritten, 0);
    assert_sql(d.file, "SELECT * FROM thread", "1|1|1|renamed\n2|2|1|\n3|2|2|worker\n7|2|7|\n");
    assert_sql(d.file, "SELECT * FROM scope", "1|2|region||\n2|3|operator|5|1\n");
    assert_sql(d.file, "SELECT * FROM name", "1|cpu\n2|tensor\n3|\n4|later\n");

    tide__names n = {0};
    assert_tide_ok(tide__store_load_names(w.s, &n, &err), &err);
    assert_int_equal(n.n_texts, 4);
    assert_int_equal(n.n_fresh, 0);
    assert_int_equal(n.n_scopes, 2);
    assert_int_equal(n.n_scopes_written, 2);
    assert_int_equal(n.n_devices_written, 2);
    assert_true(tide_device_equal(n.devices[1], gpu));
    assert_int_equal(n.n_threads_unwritten, 0);
    assert_tide_ok(tide__names_text(&n, "tensor", &id), &err);
    assert_int_equal(id, 2);
    assert_tide_ok(tide__names_scope_row(&n, &inner, &id), &err);
    assert_int_equal(id, 2);
    assert_tide_ok(tide__names_thread(&n, 2, 2, NULL, &id), &err);
    assert_int_equal(id, 3);
    assert_tide_ok(tide__names_thread(&n, 3, 2, NULL, &id), &err); // 2 is taken, 1 to 3 too
    assert_int_equal(id, 4);
    tide__names_deinit(&n);
    writer_close(&w);
    tmp_dir_remove(&d);
}

static void test_numbers_that_no_file_has_are_no_names(void **state) {
    (void)state;
    tide__names n = {0};
    int64_t id;
    assert_tide_status(tide__names_text(&n, "a", &id), TIDE_OK);
    const tide__scope_row bad[] = {
        {.name_id = 0, .step = -1},
        {.name_id = 2, .step = -1},
        {.name_id = 1, .parent_id = 1, .step = -1},
        {.name_id = 1, .parent_id = -1, .step = -1},
        {.name_id = 1, .kind = TIDE_SCOPE_FRAME + 1, .step = -1},
        {.name_id = 1, .kind = -1, .step = -1},
        {.name_id = 1, .step = -2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_tide_status(tide__names_scope_row(&n, &bad[i], &id), TIDE_ERR_INVALID);
    assert_tide_status(tide__names_thread(&n, 0, 1, NULL, &id), TIDE_ERR_INVALID);
    assert_tide_status(tide__names_thread(&n, 1, 0, NULL, &id), TIDE_ERR_INVALID);
    assert_tide_status(tide__names_thread(&n, 1, INT64_C(1) << 31, NULL, &id), TIDE_ERR_INVALID);
    assert_tide_status(tide__names_put_thread(&n, 5, 1, 1, NULL), TIDE_OK);
    assert_tide_status(tide__names_put_thread(&n, 5, 1, 2, NULL), TIDE_ERR_BAD_INPUT);
    assert_tide_status(tide__names_put_thread(&n, 6, 1, 1, NULL), TIDE_ERR_BAD_INPUT);
    assert_tide_status(tide__names_put_thread(&n, 0, 1, 3, NULL), TIDE_ERR_BAD_INPUT);
    assert_int_equal(n.n_threads, 1);
    tide__names_deinit(&n);
}

static void test_processes_runs_positions_and_totals(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    create(d.file);
    tide__store *s = open_store(d.file);
    tide_error err = TIDE_ERROR_INIT;
    int64_t a, b, run;
    const tide_run_info info = {.model = "demo", .mode = "planned", .device = "cuda", .n_contexts = 2};
    tide_memory_plan *plan = demo_plan_make();
    assert_tide_ok(tide__store_begin(s, &err), &err);
    const tide__process_row first = {.pid = 4711,
                                     .rank = -1,
                                     .command = "prog --x",
                                     .feed = "trace.db.feed-4711-0",
                                     .boot_id = "0f",
                                     .has_wall = true,
                                     .wall_ns = -3,
                                     .begin_ns = 5},
                            second = {.pid = 4712,
                                      .rank = 3,
                                      .feed = "trace.db.feed-4712-0",
                                      .label = "host b",
                                      .begin_ns = 6};
    assert_tide_ok(tide__store_add_process(s, &first, &a, &err), &err);
    assert_tide_ok(tide__store_add_process(s, &second, &b, &err), &err);
    assert_tide_ok(tide__store_add_run(s, b, &info, plan, 7, &run, &err), &err);
    assert_int_equal(a, 1);
    assert_int_equal(b, 2);
    assert_int_equal(run, 1);
    assert_tide_ok(tide__store_end(s, TIDE_OK, &err), &err);
    assert_sql(d.file, "SELECT * FROM process",
               "1|4711||prog --x|trace.db.feed-4711-0|5||||0f|-3\n2|4712|3||trace.db.feed-4712-0|6|||host b||\n");
    assert_sql(d.file,
               "SELECT id, process_id, model, device, contexts, begin_ns, end_ns, first_event, plan_bytes FROM run",
               "1|2|demo|cuda:0|2|7|||2560\n");
    assert_sql(d.file, "SELECT count(*) FROM plan_tensor", "8\n");
    assert_sql(d.file, "SELECT * FROM span", "0|1|0|0|0\n"); // a run that has not begun spans nothing

    const tide__ring_total total = {.n_allocs = 3, .n_frees = 2, .requested_bytes = 100, .freed_bytes = UINT64_MAX};
    tide__position p = {.process_id = 2, .ring = 1, .position = 10, .thread = 4, .n_lost = 5};
    assert_tide_ok(tide__store_run(s, true, 1, 41, 8, &err), &err);
    assert_tide_ok(tide__store_run(s, false, 1, 50, 9, &err), &err);
    assert_tide_status(tide__store_run(s, false, 2, 50, 9, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "no run 2");
    assert_tide_ok(tide__store_write_position(s, &p, &err), &err);
    p.position = 20;
    assert_tide_ok(tide__store_write_position(s, &p, &err), &err);
    assert_tide_ok(tide__store_write_total(s, 2, 1, 2, &total, &err), &err);
    assert_tide_ok(tide__store_write_total(s, 2, 1, 2, &total, &err), &err);
    assert_tide_ok(tide__store_end_process(s, 2, "killed", 99, &err), &err);
    assert_sql(d.file, "SELECT begin_ns, end_ns, first_event, last_event FROM run", "8|9|42|50\n");
    assert_sql(d.file, "SELECT * FROM total", "2|1|2|3|2|100|9223372036854775807\n");
    assert_sql(d.file, "SELECT how, end_ns FROM process", "|\nkilled|99\n");
    assert_tide_ok(tide__store_end_process(s, 2, NULL, 99, &err), &err);
    assert_sql(d.file, "SELECT how, end_ns FROM process WHERE id = 2", "|\n");
    tide__position *got;
    size_t n;
    assert_tide_ok(tide__store_load_positions(s, &got, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_memory_equal(got, &p, sizeof p);
    tide_host_free(got);
    tide_memory_plan_destroy(plan);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

// ---- damage, no memory ----

/// All that is read to go on.
static tide_status load_all(const tide__store *s, tide_error *err) {
    tide__store_state at;
    TIDE_TRY(tide__store_get_state(s, &at, err));
    tide__names n = {0};
    tide_status st = tide__store_load_names(s, &n, err);
    tide__names_deinit(&n);
    TIDE_TRY(st);
    tide__replay r;
    TIDE_TRY(tide__replay_init(&r));
    st = tide__store_load_replay(s, &at, &r, err);
    tide__replay_deinit(&r);
    TIDE_TRY(st);
    tide__position *positions;
    size_t n_positions;
    TIDE_TRY(tide__store_load_positions(s, &positions, &n_positions, err));
    tide_host_free(positions);
    return TIDE_OK;
}

static void make_whole(const tmp_dir *d, writer *w) {
    create(d->file);
    writer_open(w, d->file);
    writer_run(w, 20000);
    writer_flush(w);
    const tide__position p = {.process_id = 1, .position = 20000, .thread = 1};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_write_position(w->s, &p, &err), &err);
}

static void test_what_no_recorder_writes_is_not_gone_on_from(void **state) {
    (void)state;
    static const char *const damage[] = {
        "UPDATE event SET t_ns = -1 WHERE id = 20000",
        "INSERT INTO event_chunk VALUES(20001, 20002, 0, -5, x'00')",
        "UPDATE leaf SET last_event = 20001 WHERE last_event = (SELECT max(last_event) FROM leaf)",
        "UPDATE leaf SET end_ns = 9223372036854775807",
        "UPDATE snapshot SET event_id = 20001",
        "UPDATE snapshot SET t_ns = 9223372036854775807",
        "UPDATE snapshot SET blocks = blocks + 1",
        "UPDATE snapshot SET requested_bytes = requested_bytes - 1",
        "UPDATE snapshot SET data = x'0011223344'",
        "UPDATE snapshot SET data = x''",
        "UPDATE name SET id = 9 WHERE id = 2",
        "UPDATE name SET text = 'cpu'",
        "INSERT INTO name VALUES(3, 'cpu')",
        "UPDATE scope SET name_id = 3",
        "UPDATE scope SET parent_id = 1",
        "UPDATE scope SET kind = 'none'",
        "UPDATE scope SET step = -1",
        "UPDATE scope SET step = 4294967296",
        "UPDATE device SET name = 'toaster'",
        "UPDATE device SET id = 2",
        "INSERT INTO device VALUES(2, 'cpu')",
        "UPDATE thread SET id = 4294967297",
        "UPDATE thread SET process_id = 0",
        "INSERT INTO thread VALUES(2, 1, 1, NULL)",
        "UPDATE series SET id = 7 WHERE id = 2",
        "DELETE FROM series WHERE id > 0",
        "UPDATE series SET device = 1024 WHERE id = 1",
        "UPDATE series SET kind = 200 WHERE id = 1",
        "UPDATE series SET kind = 1, device = 1 WHERE id > 0",
        "UPDATE position SET position = -1",
        "UPDATE position SET ring = -2",
        "UPDATE position SET thread = 2147483648",
        "UPDATE position SET process_id = 0",
    };
    tmp_dir d;
    tmp_dir_make(&d);
    writer w;
    make_whole(&d, &w);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(load_all(w.s, &err), &err);
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        assert_tide_ok(tide__store_begin(w.s, &err), &err);
        assert_tide_ok(tide__sql_exec(tide__store_sql(w.s), damage[i], &err), &err);
        const tide_status st = load_all(w.s, &err);
        if (st != TIDE_ERR_BAD_INPUT) fail_msg("%s: %s", damage[i], tide_status_name(st));
        assert_text_has(err.note, "damaged");
        assert_tide_status(tide__store_end(w.s, st, &err), TIDE_ERR_BAD_INPUT);
    }
    assert_tide_ok(load_all(w.s, &err), &err);
    writer_close(&w);
    tmp_dir_remove(&d);
}

static void test_loading_without_memory(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    writer w;
    make_whole(&d, &w);
    int64_t n = 0;
    for (;; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = load_all(w.s, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
    }
    assert_true(n > 10);
    writer_close(&w);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_a_recording_goes_on_where_it_was),
        tide_unit_test(test_series_are_written_without_holes),
        tide_unit_test(test_a_snapshot_behind_the_last_leaf),
        tide_unit_test(test_names_come_back),
        tide_unit_test(test_numbers_that_no_file_has_are_no_names),
        tide_unit_test(test_processes_runs_positions_and_totals),
        tide_unit_test(test_what_no_recorder_writes_is_not_gone_on_from),
        tide_unit_test(test_loading_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
