// SPDX-License-Identifier: MIT
//
// Traces of versions 1 and 2 become traces of today: every number that the old file's own views give is the number that
// the new file gives, by SQL and by the query API; and an old file that somebody changed is refused, with nothing
// written.
#include "profiler/query.h"
#include "tests/profiler/old_trace.h"

typedef struct two_files {
    tmp_dir d;
    char out[340];
} two_files;

static void two_files_make(two_files *f) {
    tmp_dir_make(&f->d);
    snprintf(f->out, sizeof f->out, "%s/new.db", f->d.path);
}

static void convert(const two_files *f) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_convert(f->d.file, f->out, &err);
    if (st != TIDE_OK) fail_msg("%s: %s [%s] (%s)", tide_status_name(st), err.msg, err.where, err.note);
}

static void expect_same(const two_files *f, const char *old_query, const char *new_query) {
    tide_text old = {0}, new = {0};
    sqlite3 *db = sql_open(f->d.file);
    sql_print(db, old_query, true, &old);
    sqlite3_close(db);
    db = sql_open(f->out);
    sql_print(db, new_query != NULL ? new_query : old_query, true, &new);
    sqlite3_close(db);
    if (strcmp(tide_text_str(&old), tide_text_str(&new)) != 0)
        fail_msg("%s\nold:\n%snew:\n%s", old_query, tide_text_str(&old), tide_text_str(&new));
    assert_non_null(strchr(tide_text_str(&old), '\n'));
    tide_text_deinit(&old);
    tide_text_deinit(&new);
}

/// Everything but numbers of events, which count scope events too in the new file.
static void expect_same_numbers(const two_files *f) {
    static const char *const both[] = {
        "SELECT * FROM kind ORDER BY id",
        "SELECT * FROM device ORDER BY id",
        "SELECT * FROM name ORDER BY id",
        "SELECT * FROM scope ORDER BY id",
        "SELECT id, run_id, alloc_ns, free_requested_ns, free_ns, kind, device, stream, requested_bytes, "
        "reserved_bytes, address, thread, allocator_id, tag_id, scope_id FROM block ORDER BY id",
        "SELECT run_id, t_ns, kind, device, kind_bytes, kind_reserved_bytes, total_bytes FROM live_bytes "
        "WHERE run_id = 0 ORDER BY run_id, event_id",
        "SELECT run_id, peak_bytes, t_ns FROM peak ORDER BY run_id",
        "SELECT run_id, kind, device, peak_bytes, t_ns FROM peak_by_kind ORDER BY run_id, kind, device",
        "SELECT * FROM bytes_by_kind ORDER BY run_id, kind, device",
        "SELECT run_id, block_id, name, scope, step, kind, device, requested_bytes, reserved_bytes, alloc_ns, free_ns "
        "FROM live_at_peak ORDER BY run_id, block_id",
        "SELECT run_id, block_id, name, scope, step, kind, device, requested_bytes, alloc_ns, thread FROM leaks "
        "ORDER BY block_id",
        "SELECT * FROM top_scopes ORDER BY run_id, requested_bytes DESC, scope, scope_kind, step",
        "SELECT run_id, t_ns, enter, scope, scope_kind, step, thread FROM scopes ORDER BY scope_event_id",
        "SELECT run_id, step, name, begin_ns, end_ns FROM steps ORDER BY run_id, step",
        "SELECT id, model, source, mode, strategy, device, begin_ns, end_ns, plan_bytes, plan_naive_bytes, "
        "plan_lower_bound_bytes FROM run ORDER BY id",
        "SELECT run_id, model, strategy, form, bytes, align_bytes, naive_bytes, lower_bound_bytes, proven, verified, "
        "time_ns, n_steps, n_tensors, n_pools FROM plan ORDER BY run_id",
        "SELECT run_id, idx, name, kind, role, persistent, size_bytes, aligned_bytes, begin_step, end_step, pool, "
        "offset_bytes, begin_step_name FROM plan_tensors ORDER BY run_id, idx",
        "SELECT run_id, pool, size_bytes, offset_bytes, members FROM plan_pool ORDER BY run_id, pool",
        "SELECT * FROM plan_step ORDER BY run_id, step",
        "SELECT * FROM predicted_vs_measured ORDER BY run_id, kind, device",
        "SELECT run_id, t_ns, requested_bytes, kind, device, allocator, name, scope, thread FROM oom_attempts "
        "ORDER BY event_id",
        "SELECT key, value FROM meta WHERE key IN ('schema', 'created_by', 'created_utc', 'clock', 'n_blocks', "
        "'n_runs', 'n_names', 'n_scopes', 'n_scope_events', 'requested_bytes', 'freed_bytes', 'n_orphan_frees') "
        "ORDER BY key",
    };
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) expect_same(f, both[i], NULL);
    char old_query[400], new_query[400];
    // An event of no block has none in the new file.
    snprintf(old_query, sizeof old_query,
             "SELECT run_id, t_ns, op, nullif(block_id, 0) AS block_id, kind, device, stream, requested_bytes, "
             "nullif(reserved_bytes, 0) AS reserved_bytes, nullif(address, 0) AS address, thread, allocator, name, "
             "scope, step FROM events ORDER BY event_id");
    snprintf(new_query, sizeof new_query,
             "SELECT run_id, t_ns, op, block_id, kind, device, stream, requested_bytes, "
             "nullif(reserved_bytes, 0) AS reserved_bytes, nullif(address, 0) AS address, thread, allocator, name, "
             "scope, step FROM events WHERE op NOT LIKE 'scope_%%' ORDER BY event_id");
    expect_same(f, old_query, new_query);
}

/// A run's events are those between its first and its last, and no others.
static void expect_runs_in_place(const two_files *f) {
    assert_sql(f->out,
               "SELECT count(*) FROM event e JOIN run r ON e.id BETWEEN r.first_event AND r.last_event "
               "WHERE e.run_id IS NOT r.id",
               "0\n");
    assert_sql(f->out,
               "SELECT count(*) FROM event e JOIN run r ON r.id = e.run_id "
               "WHERE e.id NOT BETWEEN r.first_event AND r.last_event",
               "0\n");
    assert_sql(f->out, "SELECT count(*) FROM event WHERE run_id NOT IN (SELECT id FROM run)", "0\n");
}

static void expect_sound(const two_files *f) {
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = tide_trace_open(f->out, &t, &err);
    if (st != TIDE_OK) fail_msg("%s: %s (%s)", tide_status_name(st), err.msg, err.note);
    st = tide_trace_check(t, &err);
    if (st != TIDE_OK) fail_msg("%s: %s (%s)", tide_status_name(st), err.msg, err.note);
    tide_trace_info info;
    assert_tide_ok(tide_trace_get_info(t, &info, &err), &err);
    assert_int_equal(info.state, TIDE_TRACE_COMPLETE);
    tide_trace_close(t);
    assert_sql(f->out, "PRAGMA integrity_check", "ok\n");
    assert_sql(f->out, "PRAGMA journal_mode", "delete\n");
    assert_int_equal(tmp_dir_count(&f->d), 2);
}

// ---- the demo trace ----

static void expect_api(const two_files *f) {
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_open(f->out, &t, &err), &err);
    tide_trace_run *runs;
    size_t n;
    assert_tide_ok(tide_trace_runs(t, &runs, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_string_equal(runs[0].model, "demo");
    assert_true(runs[1].has_plan);
    assert_int_equal(runs[1].plan_bytes, DEMO_BYTES);
    tide_host_free(runs);
    uint64_t bytes, t_ns;
    assert_tide_ok(tide_trace_peak(t, 1, -1, &bytes, &t_ns, &err), &err);
    assert_int_equal(bytes, 5120);
    assert_int_equal(t_ns, 1320);
    assert_tide_ok(tide_trace_live_at(t, TIDE_KIND_WORKSPACE, 1380, &bytes, &err), &err);
    assert_int_equal(bytes, 1792);
    for (int64_t run = 1; run <= 2; run++) {
        tide_memory_plan *plan, *want = demo_plan_make();
        assert_tide_ok(tide_trace_plan(t, run, &plan, &err), &err);
        assert_int_equal(plan->bytes, want->bytes);
        assert_int_equal(plan->naive_peak_bytes, want->naive_peak_bytes);
        assert_int_equal(plan->proved_bytes, want->proved_bytes);
        assert_int_equal(plan->align_bytes, want->align_bytes);
        assert_int_equal(plan->n_buffers, 1);
        assert_int_equal(plan->buffers[0].kind, TIDE_KIND_WORKSPACE);
        assert_int_equal(plan->buffers[0].bytes, want->buffers[0].bytes);
        assert_true(plan->verified && plan->proven);
        assert_memory_equal(plan->offsets, want->offsets, N_DEMO * sizeof *want->offsets);
        tide_memory_plan_destroy(want);
        tide_memory_plan_destroy(plan);
    }
    tide_trace_step *steps;
    assert_tide_ok(tide_trace_steps(t, 2, &steps, &n, &err), &err);
    assert_int_equal(n, N_DEMO_STEPS);
    assert_string_equal(steps[2].name, "conv2");
    assert_int_equal(steps[2].begin_ns, 2200);
    assert_int_equal(steps[2].end_ns, 2240);
    tide_trace_steps_free(steps, n);
    tide_trace_close(t);
}

static void test_demo_of_each_version(void **state) {
    (void)state;
    for (int version = 1; version <= 2; version++) {
        two_files f;
        two_files_make(&f);
        old_record(f.d.file, version);
        sql_exec(f.d.file, "INSERT INTO meta VALUES('weather', 'rain')");
        char *before, *after;
        size_t n_before, n_after;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_read_file(f.d.file, 0, &before, &n_before, &err), &err);
        convert(&f);
        assert_tide_ok(tide_read_file(f.d.file, 0, &after, &n_after, &err), &err);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before);
        tide_host_free(before);
        tide_host_free(after);
        expect_sound(&f);
        expect_same_numbers(&f);
        expect_runs_in_place(&f);
        expect_api(&f);
        assert_sql(f.out, "SELECT value FROM meta WHERE key = 'weather'", "rain\n");
        char want[16];
        snprintf(want, sizeof want, "%d\n", version);
        assert_sql(f.out, "SELECT value FROM meta WHERE key = 'converted_from_version'", want);
        assert_sql(f.out, "SELECT count(*) FROM problem", "0\n");
        assert_sql(f.out, "SELECT id, how FROM process", "1|closed\n");
        assert_sql(f.out, "SELECT id, process_id, number FROM thread", "1|1|1\n");
        assert_sql(f.out, "SELECT first_event, last_event FROM run", "1|34\n35|68\n");
        tmp_dir_remove(&f.d);
    }
}

/// The first files of version 1 had no column for contexts.
static void test_runs_without_contexts(void **state) {
    (void)state;
    two_files f;
    two_files_make(&f);
    old_record(f.d.file, 1);
    sql_exec(f.d.file, "DROP VIEW predicted_vs_measured; ALTER TABLE run DROP COLUMN contexts");
    convert(&f);
    assert_sql(f.out, "SELECT id, contexts FROM run", "1|1\n2|1\n");
    assert_sql(f.d.file, "UPDATE meta SET value = 2 WHERE key = 'n_runs'", "");
    tmp_dir_remove(&f.d);
}

/// A free of a block that was allocated before recording began was counted, and is counted still.
static void test_orphan_frees(void **state) {
    (void)state;
    two_files f;
    two_files_make(&f);
    old_record(f.d.file, 2);
    sql_exec(f.d.file, "INSERT INTO event SELECT 39, NULL, 2901, 2, 77, 0, 1, 0, 64, 64, 1, 1, NULL, NULL, NULL; "
                       "INSERT INTO event SELECT 40, NULL, 2902, 3, 77, 0, 1, 0, 64, 64, 1, 1, NULL, NULL, NULL; "
                       "UPDATE meta SET value = 40 WHERE key = 'n_events'; "
                       "UPDATE meta SET value = 2 WHERE key = 'n_orphan_frees'");
    convert(&f);
    expect_sound(&f);
    expect_same_numbers(&f);
    assert_sql(f.out, "SELECT count(*) FROM problem", "0\n");
    tmp_dir_remove(&f.d);
}

// ---- within one nanosecond ----

/// One thing that a recorded program did, in the order in which it did it.
typedef struct deed {
    bool is_scope, enter;
    int thread, run, scope;
    uint64_t block, t_ns;
    int op;
} deed;

enum { MAX_DEEDS = 4000, N_THREADS = 3, N_SCOPES = 6, MAX_LIVE = 64 };

typedef struct world {
    tide_rng rng;
    deed deeds[MAX_DEEDS];
    size_t n;
    int depth[N_THREADS], stack[N_THREADS][8]; // numbers of table scope; below is 0
    uint64_t live[MAX_LIVE];
    size_t n_live;
    uint64_t last_block, t_ns;
    int run, n_runs;
} world;

static deed *act(world *w, int thread) {
    if (tide_rng_below(&w->rng, 3) == 0) w->t_ns += tide_rng_below(&w->rng, 4); // most share their nanosecond
    deed *d = &w->deeds[w->n++];
    *d = (deed){.thread = thread, .run = w->run, .t_ns = w->t_ns, .scope = w->stack[thread][w->depth[thread]]};
    return d;
}

static void act_scope(world *w, int thread) {
    const bool enter = w->depth[thread] == 0 || (w->depth[thread] < N_SCOPES && tide_rng_below(&w->rng, 2) == 0);
    // Scope k lies in scope k - 1: as deep as its number.
    const int scope = enter ? w->depth[thread] + 1 : w->stack[thread][w->depth[thread]];
    if (enter) {
        w->stack[thread][++w->depth[thread]] = scope;
    } else {
        w->depth[thread]--;
    }
    deed *d = act(w, thread);
    d->is_scope = true;
    d->enter = enter;
    d->scope = scope;
}

static void act_memory(world *w, int thread) {
    if (w->n_live < MAX_LIVE && (w->n_live == 0 || tide_rng_below(&w->rng, 2) == 0)) {
        deed *d = act(w, thread);
        d->op = TIDE_MEM_ALLOC;
        d->block = w->live[w->n_live++] = ++w->last_block;
        return;
    }
    const size_t i = (size_t)tide_rng_below(&w->rng, w->n_live);
    const uint64_t block = w->live[i];
    w->live[i] = w->live[--w->n_live];
    for (int op = TIDE_MEM_FREE_REQUESTED; op <= TIDE_MEM_FREE_COMPLETED; op++) {
        deed *d = act(w, thread);
        d->op = op;
        d->block = block;
    }
}

/// Into a file of version 2. Runs begin and end at the time of the deed before.
static void world_write(const world *w, const char *path) {
    old_empty(path, 2);
    sql_exec(path, "INSERT INTO device VALUES(1, 'cpu'); INSERT INTO name VALUES(1, 'cpu'), (2, 'one'), (3, 'two'), "
                   "(4, 'three'), (5, 'four'), (6, 'five'), (7, 'six'); "
                   "INSERT INTO scope VALUES(1, 2, 'region', NULL, NULL), (2, 3, 'region', NULL, 1), "
                   "(3, 4, 'operator', 0, 2), (4, 5, 'operator', 1, 3), (5, 6, 'operator', 2, 4), "
                   "(6, 7, 'region', NULL, 5)");
    tide_text sql = {0};
    tide_text_add(&sql, "BEGIN;\n");
    int n_events = 0, n_scope_events = 0, run = 0;
    for (size_t i = 0; i <= w->n; i++) {
        const deed *d = &w->deeds[i];
        const int next_run = i < w->n ? d->run : 0;
        const uint64_t before = i > 0 ? w->deeds[i - 1].t_ns : 0;
        if (next_run != run && run != 0)
            tide_text_addf(&sql, "UPDATE run SET end_ns = %" PRIu64 ", last_event = %d WHERE id = %d;\n", before,
                           n_events, run);
        if (next_run != run && next_run != 0)
            tide_text_addf(&sql,
                           "INSERT INTO run(id, model, mode, device, contexts, begin_ns, first_event) "
                           "VALUES(%d, 'm', 'naive', 'cpu', 1, %" PRIu64 ", %d);\n",
                           next_run, before, n_events + 1);
        run = next_run;
        if (i == w->n) break;
        char run_text[16] = "NULL", scope_text[16] = "NULL";
        if (d->run != 0) snprintf(run_text, sizeof run_text, "%d", d->run);
        if (d->scope != 0) snprintf(scope_text, sizeof scope_text, "%d", d->scope);
        if (d->is_scope)
            tide_text_addf(&sql, "INSERT INTO scope_event VALUES(%d, %s, %" PRIu64 ", %d, %d, %d);\n", ++n_scope_events,
                           run_text, d->t_ns, d->enter, d->scope, d->thread);
        else
            tide_text_addf(&sql,
                           "INSERT INTO event VALUES(%d, %s, %" PRIu64 ", %d, %" PRIu64 ", 2, 1, 0, 100, 128, %" PRIu64
                           ", %d, 1, NULL, %s);\n",
                           ++n_events, run_text, d->t_ns, d->op, d->block, d->block * 4096, d->thread, scope_text);
    }
    tide_text_add(&sql, "COMMIT");
    assert_false(sql.failed);
    sql_exec(path, sql.data);
    tide_text_deinit(&sql);
    old_close(path);
}

/// What comes next of thread `thread`, of scopes or of memory, in the order in which it was done.
static const deed *next_deed(const world *w, size_t at[2][N_THREADS], bool is_scope, int thread) {
    for (size_t *i = &at[is_scope][thread]; *i < w->n;) {
        const deed *d = &w->deeds[(*i)++];
        if (d->thread == thread && d->is_scope == is_scope) return d;
    }
    return NULL;
}

/// The order of each thread is as it was, and every event lies in the scope that it names. Which of an event and a
/// scope event came first where both orders are true, nobody can say.
static void expect_order(const world *w, const char *path) {
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT e.op, coalesce(e.block_id, 0), coalesce(e.scope_id, 0), t.number, "
                                        "e.t_ns, coalesce(e.run_id, 0) FROM event e JOIN thread t ON t.id = e.thread "
                                        "ORDER BY e.id",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    size_t at[2][N_THREADS] = {0}, n = 0;
    int64_t scope[N_THREADS] = {0};
    for (; sqlite3_step(stmt) == SQLITE_ROW; n++) {
        const int64_t op = sqlite3_column_int64(stmt, 0), id = sqlite3_column_int64(stmt, 2);
        // Thread 0 of a foreign program has got a number of its own.
        const int64_t number = sqlite3_column_int64(stmt, 3);
        const int thread = number == INT32_MAX ? 0 : (int)number;
        assert_in_range(thread, 0, N_THREADS - 1);
        const deed *d = next_deed(w, at, op >= 16, thread);
        assert_non_null(d);
        assert_int_equal(op, !d->is_scope ? d->op : d->enter ? 16 : 17);
        assert_int_equal(sqlite3_column_int64(stmt, 1), d->block);
        assert_int_equal(id, d->scope);
        assert_int_equal(sqlite3_column_int64(stmt, 4), d->t_ns);
        assert_int_equal(sqlite3_column_int64(stmt, 5), d->run);
        if (op < 16) assert_int_equal(id, scope[thread]);
        if (op == 16) scope[thread] = id;
        if (op == 17) scope[thread] = id - 1;
    }
    assert_int_equal(n, w->n);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static void test_order_within_a_nanosecond(void **state) {
    (void)state;
    static world w;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        memset(&w, 0, sizeof w);
        w.rng.state = seed;
        w.t_ns = 1000;
        while (w.n + 4 < MAX_DEEDS) {
            const int thread = (int)tide_rng_below(&w.rng, N_THREADS);
            // A run takes a nanosecond at least, or nobody could say which of its events came before it.
            if (tide_rng_below(&w.rng, 40) == 0) {
                w.t_ns++;
                w.run = w.run != 0 ? 0 : ++w.n_runs;
            }
            if (tide_rng_below(&w.rng, 3) == 0) {
                act_scope(&w, thread);
            } else {
                act_memory(&w, thread);
            }
        }
        two_files f;
        two_files_make(&f);
        world_write(&w, f.d.file);
        convert(&f);
        print_message("seed %" PRIu64 ": %zu events, %d runs\n", seed, w.n, w.n_runs);
        expect_sound(&f);
        expect_order(&w, f.out);
        expect_runs_in_place(&f);
        expect_same(&f, "SELECT run_id, peak_bytes, t_ns FROM peak ORDER BY run_id", NULL);
        expect_same(&f, "SELECT * FROM bytes_by_kind ORDER BY run_id, kind, device", NULL);
        tmp_dir_remove(&f.d);
    }
}

// ---- refused ----

static void expect_refused(const two_files *f, tide_status want, const char *words, const char *what) {
    const int n_files = tmp_dir_count(&f->d);
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_convert(f->d.file, f->out, &err);
    if (st != want) fail_msg("%s: %s: %s (%s)", what, tide_status_name(st), err.msg, err.note);
    if (strstr(err.msg, words) == NULL && strstr(err.note, words) == NULL && strstr(err.where, words) == NULL)
        fail_msg("%s: '%s' is not in '%s' [%s] (%s)", what, words, err.msg, err.where, err.note);
    assert_text_has(err.msg, f->d.path);
    assert_int_equal(tmp_dir_count(&f->d), n_files); // nothing half-written
}

static void test_changed_rows(void **state) {
    (void)state;
    static const struct {
        const char *change, *words;
    } all[] = {
        {"DELETE FROM event WHERE id = 17", "table event, row 18"},
        {"DELETE FROM event WHERE id = 38", "38 events recorded, 37 found"},
        {"DELETE FROM scope_event WHERE id = 30", "30 scope events recorded, 29 found"},
        {"DELETE FROM scope_event WHERE id = 3", "table scope_event, row 4"},
        {"DELETE FROM run WHERE id = 2", "table event"},
        {"DELETE FROM name WHERE id = 17", "table event, row 30"},
        {"DELETE FROM scope WHERE id = 10", "scope"},
        {"DELETE FROM device", "table event, row 1"},
        {"DELETE FROM meta WHERE key = 'n_blocks'", "no number 'n_blocks'"},
        {"UPDATE meta SET value = 12 WHERE key = 'n_blocks'", "12 blocks recorded, 13 found"},
        {"UPDATE meta SET value = value + 1 WHERE key = 'requested_bytes'", "requested bytes recorded"},
        {"UPDATE meta SET value = value - 1 WHERE key = 'freed_bytes'", "freed bytes recorded"},
        {"UPDATE meta SET value = 'tidemark.plan' WHERE key = 'schema'", "tidemark.trace"},
        {"UPDATE event SET kind = 6 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET kind = -1 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET op = 7 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET op = 16 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET op = 0 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET op = 257 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET device = 0 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET device = 2 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET device = 70000 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET t_ns = -1 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET t_ns = 9999 WHERE id = 5", "table event, row"},
        {"UPDATE event SET requested_bytes = -5 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET reserved_bytes = -5 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET block_id = -5 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET thread = -1 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET thread = 4294967296 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET tag_id = 99 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET allocator_id = 99 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET scope_id = 99 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET run_id = 9 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET run_id = 2 WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET run_id = NULL WHERE id = 5", "table event, row 5"},
        {"UPDATE event SET id = -3 WHERE id = 1", "table event, row -3"},
        {"UPDATE event SET requested_bytes = 9223372036854775807", "all requests pass"},
        {"UPDATE scope_event SET t_ns = -9 WHERE id = 2", "table scope_event, row 2"},
        {"UPDATE scope_event SET enter = 2 WHERE id = 2", "table scope_event, row 2"},
        {"UPDATE scope_event SET scope_id = 77 WHERE id = 2", "table scope_event, row 2"},
        {"UPDATE scope_event SET run_id = 7 WHERE id = 2", "table scope_event, row 2"},
        {"UPDATE scope_event SET run_id = 2 WHERE id = 2", "table event, row"},
        {"UPDATE scope SET parent_id = 9 WHERE id = 3", "table scope, row 3"},
        {"UPDATE scope SET parent_id = 3 WHERE id = 3", "table scope, row 3"},
        {"UPDATE scope SET name_id = 99 WHERE id = 3", "table scope, row 3"},
        {"UPDATE scope SET kind = 'place' WHERE id = 3", "table scope, row 3"},
        {"UPDATE scope SET step = -4 WHERE id = 3", "table scope, row 3"},
        {"UPDATE run SET end_ns = NULL WHERE id = 1", "table run, row 1"},
        {"UPDATE run SET end_ns = begin_ns - 1 WHERE id = 1", "table run, row 1"},
        {"UPDATE run SET first_event = 0 WHERE id = 1", "table run, row 1"},
        {"UPDATE run SET first_event = 3 WHERE id = 1", "table event, row 1"},
        {"UPDATE run SET last_event = NULL WHERE id = 1", "table run, row 1"},
        {"UPDATE run SET last_event = 10 WHERE id = 1", "table event, row 11"},
        {"UPDATE run SET last_event = 30 WHERE id = 1", "table run, row 2"},
        {"UPDATE run SET contexts = 0 WHERE id = 1", "table run, row 1"},
        {"UPDATE run SET plan_bytes = -1 WHERE id = 1", "table run, row 1"},
        {"UPDATE run SET id = 7 WHERE id = 2", "table run, row 7"},
        {"DELETE FROM plan WHERE run_id = 1", "table plan has none"},
        {"UPDATE plan SET form = 'both' WHERE run_id = 1", "table plan"},
        {"UPDATE plan SET n_tensors = 4611686018427387904 WHERE run_id = 1", "table plan"},
        {"UPDATE plan_tensor SET kind = 200 WHERE run_id = 1 AND idx = 4", "table plan_tensor"},
        {"UPDATE plan_tensor SET device = 'abacus' WHERE run_id = 1 AND idx = 4", "table plan_tensor"},
        {"UPDATE plan_tensor SET offset_bytes = 0 WHERE run_id = 1 AND idx = 4", "marked as verified"},
        {"DROP TABLE scope_event", "table scope_event is missing"},
        {"DROP TABLE event; CREATE TABLE event(id INTEGER PRIMARY KEY, run_id INTEGER) STRICT", "no such column"},
        {"ALTER TABLE event RENAME TO was; CREATE VIEW event AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT "
         "id + 1 FROM r) SELECT id, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 FROM r",
         "table event is missing or none of ours"},
        {"DROP TABLE name; CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT AS ('x'))",
         "table name is missing or none of ours"},
    };
    for (int version = 1; version <= 2; version++) {
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            two_files f;
            two_files_make(&f);
            old_record(f.d.file, version);
            // Views that read what is changed would be in the way.
            sqlite3 *db = sql_open(f.d.file);
            sqlite3_exec(db,
                         "PRAGMA synchronous = OFF; PRAGMA writable_schema = ON; "
                         "DELETE FROM sqlite_schema WHERE type = 'view'",
                         NULL, NULL, NULL);
            sqlite3_close(db);
            sql_exec(f.d.file, all[i].change);
            expect_refused(&f, TIDE_ERR_BAD_INPUT, all[i].words, all[i].change);
            tmp_dir_remove(&f.d);
        }
    }
}

/// Only version 1 had one buffer for everything.
static void test_plans_that_version_1_could_not_make(void **state) {
    (void)state;
    two_files f;
    two_files_make(&f);
    old_record(f.d.file, 1);
    sql_exec(f.d.file, "UPDATE plan_tensor SET kind = 3 WHERE idx = 4");
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "one buffer", "two kinds");
    tmp_dir_remove(&f.d);
}

/// Of another program.
static void make_database(const char *path) {
    remove(path);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE event(id)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_other_files(void **state) {
    (void)state;
    two_files f;
    two_files_make(&f);
    expect_refused(&f, TIDE_ERR_IO, "No such file", "nothing");
    mkfifo(f.d.file, 0600);
    expect_refused(&f, TIDE_ERR_IO, "not a regular file", "a pipe");
    remove(f.d.file);
    FILE *file = fopen(f.d.file, "wb");
    assert_non_null(file);
    fclose(file);
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "empty", "an empty file");
    make_database(f.d.file);
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "another program", "a foreign database");
    tmp_dir_remove(&f.d);
}

static void test_versions(void **state) {
    (void)state;
    two_files f;
    two_files_make(&f);
    old_record(f.d.file, 2);
    sql_exec(f.d.file, "PRAGMA user_version = 3"); // with the tables of version 2
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "damaged", "of version 3");
    sql_exec(f.d.file, "PRAGMA user_version = 4");
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "version 4", "of today");
    sql_exec(f.d.file, "PRAGMA user_version = 5");
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "version 5", "of tomorrow");
    sql_exec(f.d.file, "PRAGMA user_version = 0");
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "version 0", "of no version");
    sql_exec(f.d.file, "PRAGMA user_version = 2; PRAGMA application_id = 7");
    expect_refused(&f, TIDE_ERR_BAD_INPUT, "another program", "of another program");
    // tide_trace_open says how to go on.
    sql_exec(f.d.file, "PRAGMA application_id = 1953064037");
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_trace_open(f.d.file, &t, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.hint, "--convert");
    tmp_dir_remove(&f.d);
}

static void test_places_to_write(void **state) {
    (void)state;
    two_files f;
    two_files_make(&f);
    old_record(f.d.file, 2);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_trace_convert(f.d.file, "", &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_trace_convert(f.d.file, "-", &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_trace_convert(f.d.file, f.d.path, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "a directory");
    assert_tide_status(tide_trace_convert(f.d.file, "/dev/null", &err), TIDE_ERR_WRITE);
    assert_tide_status(tide_trace_convert(f.d.file, f.d.file, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "file that is read");
    char nowhere[400];
    snprintf(nowhere, sizeof nowhere, "%s/nowhere/new.db", f.d.path);
    assert_tide_status(tide_trace_convert(f.d.file, nowhere, &err), TIDE_ERR_WRITE);
    assert_int_equal(tmp_dir_count(&f.d), 1);
    // What is there is replaced, with what belonged to it, once the new file is whole.
    char wal[400];
    snprintf(wal, sizeof wal, "%s-wal", f.out);
    make_database(f.out);
    FILE *file = fopen(wal, "wb");
    assert_non_null(file);
    fputs("something of an older file", file);
    fclose(file);
    convert(&f);
    expect_sound(&f);
    tmp_dir_remove(&f.d);
}

/// No memory at any of its allocations: an error that says so, and nothing is left behind.
static void test_no_memory(void **state) {
    (void)state;
    two_files f;
    two_files_make(&f);
    for (int version = 1; version <= 2; version++) {
        old_record(f.d.file, version);
        int n_failed = 0;
        // A failure may come where it does no harm; behind the last allocation none comes.
        for (int64_t n = 0, n_good = 0; n_good < tide_test_rounds(8, 50); n = tide_test_next_failure(n)) {
            tide_error err = TIDE_ERROR_INIT;
            tide_host_fail_after(n);
            const tide_status st = tide_trace_convert(f.d.file, f.out, &err);
            tide_host_fail_after(-1);
            n_good = st == TIDE_OK ? n_good + 1 : 0;
            if (st == TIDE_OK) continue;
            if (st != TIDE_ERR_NOMEM) fail_msg("allocation %" PRId64 ": %s: %s", n, tide_status_name(st), err.msg);
            assert_int_equal(err.status, TIDE_ERR_NOMEM);
            n_failed++;
            remove(f.out); // of a round before
            assert_int_equal(tmp_dir_count(&f.d), 1);
        }
        print_message("%d allocations failed\n", n_failed);
        assert_true(n_failed > tide_test_rounds(30, 100));
        assert_int_equal(tmp_dir_count(&f.d), 2);
        remove(f.out);
    }
    tmp_dir_remove(&f.d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_demo_of_each_version), tide_unit_test(test_runs_without_contexts),
        tide_unit_test(test_orphan_frees),         tide_unit_test(test_order_within_a_nanosecond),
        tide_unit_test(test_changed_rows),         tide_unit_test(test_plans_that_version_1_could_not_make),
        tide_unit_test(test_other_files),          tide_unit_test(test_versions),
        tide_unit_test(test_places_to_write),      tide_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
