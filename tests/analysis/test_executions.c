// SPDX-License-Identifier: MIT
//
// What lies in plans' buffers, held against plain SQL over the trace (view holders) at every event of random
// recordings: several contexts, executions that are cut short, operators inside operators, plans with aliases and gaps.
#include "analysis/pools.h"
#include "planner/plan_live.h"
#include "tests/analysis/planned_fixture.h"

// ---- the same by SQL ----

static uint64_t sql_number(sqlite3 *db, const char *query) {
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, query, -1, &stmt, NULL) != SQLITE_OK) fail_msg("%s: %s", query, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const uint64_t value = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return value;
}

/// Rows of `holders` are kept in a table: the view is made anew for each question.
static sqlite3 *open_holders(const char *path) {
    sqlite3 *db = sql_open(path);
    assert_int_equal(sqlite3_exec(db, "CREATE TEMP TABLE held AS SELECT * FROM holders", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK); // one look at the file for all questions
    return db;
}

static uint64_t held_by(sqlite3 *db, uint64_t event, const char *name, int64_t execution) {
    char query[400];
    snprintf(
        query, sizeof query,
        "SELECT coalesce(sum(bytes), 0) FROM held WHERE begin_event <= %d AND (end_event IS NULL OR end_event > %d) "
        "AND name = '%s' AND coalesce(execution, -1) = %d",
        (int)event, (int)event, name, (int)execution);
    return sql_number(db, query);
}

static uint64_t rows_at(sqlite3 *db, uint64_t event) {
    char query[400];
    snprintf(
        query, sizeof query,
        "SELECT count(*) FROM (SELECT 1 FROM held WHERE begin_event <= %d AND (end_event IS NULL OR end_event > %d) "
        "GROUP BY block_id, execution, idx, name)",
        (int)event, (int)event);
    return sql_number(db, query);
}

static tide_live_set live_after(tide_trace *t, uint64_t event, bool expanded) {
    tide_live_set set;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_live_set_after(t, event, &set, &err), &err);
    if (expanded) assert_tide_ok(tide_trace_expand_buffers(t, &set, &err), &err);
    return set;
}

/// At one event: every tensor of every context as SQL has it, and the sums as they were. @return used bytes
static uint64_t check_event(tide_trace *t, sqlite3 *db, uint64_t event) {
    tide_live_set before = live_after(t, event, false), set = live_after(t, event, true);
    uint64_t sum = 0, reserved = 0, unused = 0, unused_by_sql = 0;
    bool has_unused = false;
    for (size_t i = 0; i < set.n; i++) {
        const tide_live *b = &set.items[i];
        sum += b->requested_bytes;
        reserved += b->reserved_bytes;
        if (b->is_unused) unused += b->requested_bytes;
        has_unused = has_unused || b->is_unused;
        if (!b->in_buffer || b->is_unused) continue;
        const uint64_t by_sql = held_by(db, event, b->name, (int64_t)b->execution);
        if (b->requested_bytes != by_sql)
            fail_msg("event %d: %s of execution %d keeps %d bytes, by SQL %d", (int)event, b->name, (int)b->execution,
                     (int)b->requested_bytes, (int)by_sql);
    }
    assert_int_equal(sum, before.requested_bytes);
    assert_int_equal(reserved, before.reserved_bytes);
    if (has_unused) unused_by_sql = held_by(db, event, "unused in the buffer", -1);
    if (unused != unused_by_sql)
        fail_msg("event %d: %d bytes are unused, by SQL %d", (int)event, (int)unused, (int)unused_by_sql);
    assert_int_equal(set.n, rows_at(db, event));
    tide_live_set_deinit(&before);
    tide_live_set_deinit(&set);
    return sum - unused;
}

typedef struct used_list {
    uint64_t at[1024]; // by event; UINT64_MAX: no change
    uint64_t first;
} used_list;

static tide_status take_used(void *ctx, const tide_trace_used *used) {
    used_list *l = ctx;
    assert_true(used->event < 1024 && used->bytes <= used->live_bytes);
    l->at[used->event] = used->bytes;
    return TIDE_OK;
}

/// The fullest moment of all events that are as high as the peak, by looking at each.
static void check_fullest(tide_trace *t, const uint64_t *used, uint64_t n_events) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_used got;
    tide_trace_extent x;
    uint64_t peak = 0, best = 0, at = 0;
    assert_tide_ok(tide_trace_get_extent(t, 1, &x, &err), &err);
    for (uint64_t e = x.first_event; e <= n_events; e++) {
        tide_live_set set = live_after(t, e, false);
        const bool is_higher = set.requested_bytes > peak;
        if (is_higher || (set.requested_bytes == peak && used[e] > best)) {
            peak = set.requested_bytes;
            best = used[e];
            at = e;
        }
        tide_live_set_deinit(&set);
    }
    assert_tide_ok(tide_trace_fullest(t, 1, SIZE_MAX, &got, &err), &err);
    assert_int_equal(got.live_bytes, peak);
    assert_int_equal(got.bytes, best);
    assert_int_equal(got.event, at);
}

/// The most fragmented that each pool of the plan was, and after which event first, by looking at each.
typedef struct worst_seen {
    float share[64];
    uint64_t event[64];
} worst_seen;

static void see_pool(worst_seen *w, const tide_pool *p, uint64_t event) {
    assert_true(p->number < 64);
    if (p->largest_free_bytes == TIDE_UNKNOWN_BYTES) return;
    const float share = p->cached_bytes == 0 ? 0 : (float)(1 - (double)p->largest_free_bytes / (double)p->cached_bytes);
    if (share <= w->share[p->number]) return;
    w->share[p->number] = share;
    w->event[p->number] = event;
}

static void check_worst(tide_subject *s, const worst_seen *seen) {
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    for (size_t i = 0; i < 64; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_pool_worst w;
        if (seen->share[i] <= 0) continue;
        assert_tide_ok(tide_pools_worst(s, i, facts->begin, facts->end, NULL, &w, &err), &err);
        assert_true(w.share == seen->share[i]);
        assert_int_equal(w.at.event, seen->event[i]);
    }
}

/// What lies in the pools of the plan, in all contexts, is what lies in the buffers; and a window of one nanosecond
/// behind an event has no less than what holds after it.
static void check_plan_pools(const char *path, const uint64_t *in_buffers, uint64_t n_events) {
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *s;
    assert_tide_ok(tide_subject_of_trace(path, 1, &s, &err), &err);
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    worst_seen worst = {0};
    for (uint64_t e = 1; e <= n_events; e++) {
        tide_trace_event event;
        size_t n;
        assert_tide_ok(tide_trace_events(tide_subject_trace(s), e, &event, 1, &n, &err), &err);
        const tide_moment at = {(int64_t)event.t_ns, e};
        if (at.t < facts->begin || at.t >= facts->end) continue;
        tide_pools pools;
        tide_pool_history h;
        uint64_t active = 0;
        assert_tide_ok(tide_pools_at(s, at, facts->begin, facts->end, NULL, &pools, &err), &err);
        assert_tide_ok(tide_pools_over(s, at.t, at.t + 1, 1, NULL, &h, &err), &err);
        assert_int_equal(h.n_pools, pools.n);
        for (size_t i = 0; i < pools.n; i++) {
            const tide_pool *p = &pools.items[i];
            if (!p->is_planned) continue;
            active += p->active_bytes;
            see_pool(&worst, p, e);
            assert_true(h.columns[p->number].active_bytes >= p->active_bytes);
            assert_true(h.columns[p->number].least_cached_bytes <= p->cached_bytes);
            assert_true(p->unused_since <= at.t);
        }
        if (active != in_buffers[e])
            fail_msg("event %d: %d bytes in the plan's pools, not %d", (int)e, (int)active, (int)in_buffers[e]);
        tide_pool_history_deinit(&h);
        tide_pools_deinit(&pools);
    }
    check_worst(s, &worst);
    tide_subject_destroy(s);
}

static uint64_t bytes_in_buffers(tide_trace *t, uint64_t event) {
    tide_live_set set = live_after(t, event, true);
    uint64_t sum = 0;
    for (size_t i = 0; i < set.n; i++)
        if (set.items[i].in_buffer && !set.items[i].is_unused) sum += set.items[i].requested_bytes;
    tide_live_set_deinit(&set);
    return sum;
}

/// The highest of what is live after each event of an execution, by looking at each.
static uint64_t highest_in(tide_trace *t, const tide_execution *e, uint64_t n_events) {
    uint64_t most = 0;
    for (uint64_t at = e->first_event; at <= n_events && at < e->last_event; at++) {
        tide_live_set set = live_after(t, at, false);
        if (set.requested_bytes > most) most = set.requested_bytes;
        tide_live_set_deinit(&set);
    }
    return most;
}

static uint64_t sql_of_execution(sqlite3 *db, const char *what, const tide_execution *e) {
    char query[400];
    snprintf(query, sizeof query,
             "SELECT coalesce(sum(%s), 0) FROM events WHERE thread = %d AND event_id >= %d AND (%d OR event_id < %d)",
             what, (int)e->thread, (int)e->first_event, e->last_event == UINT64_MAX, (int)e->last_event);
    return sql_number(db, query);
}

/// Peak, allocations and what was taken of each execution, though others overlap with it and events share times.
static void check_sums(tide_trace *t, sqlite3 *db, const tide_executions *x, uint64_t n_events) {
    tide_error err = TIDE_ERROR_INIT;
    tide_execution_sum *sums;
    assert_tide_ok(tide_trace_execution_sums(t, 1, &sums, &err), &err);
    for (size_t i = 0; i < x->n; i++) {
        tide_trace_used fullest;
        assert_tide_ok(tide_trace_fullest(t, 1, i, &fullest, &err), &err);
        assert_memory_equal(&sums[i].peak, &fullest, sizeof fullest);
        assert_int_equal(sums[i].peak.live_bytes, highest_in(t, &x->items[i], n_events));
        assert_int_equal(sums[i].n_allocs, sql_of_execution(db, "op = 'alloc'", &x->items[i]));
        assert_int_equal(sums[i].taken_bytes,
                         sql_of_execution(db, "iif(op = 'segment_alloc', reserved_bytes, 0)", &x->items[i]));
    }
    tide_host_free(sums);
}

static void check_recording(uint64_t seed) {
    static used_list list;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    tide_memory_plan *plan = random_plan(seed, 5 + seed % 17, N_STEPS);
    record_random(d.file, seed, plan);
    tide_memory_plan_destroy(plan);
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    tide_trace_info info;
    assert_tide_ok(tide_trace_get_info(t, &info, &err), &err);
    assert_true(info.n_events < 1024);
    memset(list.at, 0xFF, sizeof list.at);
    assert_tide_ok(tide_trace_each_used(t, 1, 1, info.n_events, take_used, &list, &err), &err);
    sqlite3 *db = open_holders(d.file);
    const tide_executions *x;
    assert_tide_ok(tide_trace_executions(t, 1, &x, &err), &err);
    assert_int_equal(x->n, sql_number(db, "SELECT count(*) FROM executions"));
    const bool says = sql_number(db, "SELECT count(*) FROM buffers") > 0;
    uint64_t used[1024], in_buffers[1024], last = 0;
    for (uint64_t e = 1; e <= info.n_events; e++) {
        // Without the numbers of blocks SQL leaves buffers as they are.
        used[e] = says ? check_event(t, db, e) : 0;
        in_buffers[e] = bytes_in_buffers(t, e);
        if (list.at[e] != UINT64_MAX) last = list.at[e];
        if (used[e] > 0) assert_int_equal(used[e], last);
        used[e] = last;
    }
    check_fullest(t, used, info.n_events);
    check_sums(t, db, x, info.n_events);
    sqlite3_close(db);
    tide_trace_close(t);
    check_plan_pools(d.file, in_buffers, info.n_events);
    tmp_dir_remove(&d);
}

static void random_recordings(void **state) {
    (void)state;
    // Ten to fourteen: of one context, with and without the numbers of buffers, of two and of three.
    const uint64_t first = (uint64_t)tide_test_rounds(10, 0), n = (uint64_t)tide_test_rounds(3, 400);
    for (uint64_t seed = first; seed < first + n; seed++) check_recording(seed);
}

// ---- parts of a plan ----

/// Part by part what tide_plan_live_counts says step by step, and the sums of the steps.
static void parts_are_the_counts_of_each_step(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_memory_plan *plan = random_plan(seed, 1 + seed, 9);
        const size_t n = plan->lifetimes.n;
        tide_plan_live live;
        tide_plan_part *parts;
        size_t n_parts;
        assert_tide_ok(tide_plan_live_make(plan, &live, &err), &err);
        assert_tide_ok(tide_plan_live_parts(plan, &live, &parts, &n_parts, &err), &err);
        uint64_t *counts = tide_host_calloc(n, sizeof *counts), *by_parts = tide_host_calloc(n, sizeof *by_parts);
        uint64_t bytes[9];
        tide_plan_live_bytes(plan, &live, &plan->buffers[0], bytes);
        for (int64_t step = 0; step < 9; step++) {
            uint64_t sum = 0;
            assert_tide_ok(tide_plan_live_counts(plan, &live, step, counts, &err), &err);
            memset(by_parts, 0, n * sizeof *by_parts);
            for (size_t i = 0; i < n_parts; i++) {
                assert_true(parts[i].begin_step < parts[i].end_step);
                if (parts[i].begin_step <= step && step < parts[i].end_step) {
                    assert_int_equal(by_parts[parts[i].tensor], 0);
                    by_parts[parts[i].tensor] = parts[i].bytes;
                }
            }
            for (size_t i = 0; i < n; i++) {
                if (plan->lifetimes.items[i].persistent) continue;
                assert_int_equal(by_parts[i], counts[i]);
                sum += counts[i];
            }
            if (plan->n_buffers > 0) assert_int_equal(sum, bytes[step]);
        }
        tide_host_free(by_parts);
        tide_host_free(counts);
        tide_host_free(parts);
        tide_plan_live_deinit(&live);
        tide_memory_plan_destroy(plan);
    }
}

// ---- what a recording may look like ----

static void a_trace_without_runs(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 10, TIDE_MEM_ALLOC, 1, TIDE_KIND_WORKSPACE, 64, "alone");
    feeder_close(&f);
    tide_trace *t;
    const tide_executions *x;
    tide_trace_used used;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    assert_tide_status(tide_trace_executions(t, 1, &x, &err), TIDE_ERR_NOT_FOUND);
    tide_live_set set = live_after(t, 1, true);
    assert_int_equal(set.n, 1);
    assert_false(set.items[0].in_buffer);
    tide_live_set_deinit(&set);
    assert_tide_ok(tide_trace_fullest(t, 0, SIZE_MAX, &used, &err), &err);
    assert_int_equal(used.live_bytes, 64);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

/// Operators that lie in no run: a new execution begins where the steps begin again.
static void operators_without_a_run(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_memory_plan *plan = demo_plan_make();
    const tide_run_info info = {.model = "demo", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    feed_begin_run(&f, 10, &info, plan);
    feed(&f, 20, TIDE_MEM_ALLOC, 1, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    for (uint64_t i = 0; i < 2 * N_DEMO_STEPS; i++) {
        const int step = (int)(i % N_DEMO_STEPS);
        const tide_scope op = {.name = demo_steps[step], .kind = TIDE_SCOPE_OPERATOR, .index = step};
        feed_scope(&f, 30 + 10 * i, true, &op);
        feed_scope(&f, 35 + 10 * i, false, &op);
    }
    feed_end_run(&f, 200);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
    tide_trace *t;
    const tide_executions *x;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    assert_tide_ok(tide_trace_executions(t, 1, &x, &err), &err);
    assert_int_equal(x->n, 2);
    assert_int_equal(x->n_lanes, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(x->items[i].number, -1);
        assert_int_equal(x->items[i].n_steps, N_DEMO_STEPS);
        assert_int_equal(x->items[i].begin_ns, 30 + 40 * i);
    }
    tide_live_set set = live_after(t, 2, true); // conv runs
    assert_int_equal(set.n, 3);                 // a, conv.scratch, unused
    tide_live_set_deinit(&set);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    bool failed = true;
    for (int64_t n = 0; failed; n = tide_test_next_failure(n)) {
        tide_trace *t;
        tide_trace_used used;
        tide_live_set set = {0};
        assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
        tide_host_fail_after(n);
        tide_status st = tide_trace_fullest(t, 2, SIZE_MAX, &used, &err);
        if (st == TIDE_OK) st = tide_trace_live_set_after(t, used.event, &set, &err);
        if (st == TIDE_OK) st = tide_trace_expand_buffers(t, &set, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) assert_int_equal(set.requested_bytes, 5160);
        tide_live_set_deinit(&set);
        if (failed) { // and the trace can be asked again
            assert_tide_ok(tide_trace_fullest(t, 2, SIZE_MAX, &used, &err), &err);
            assert_int_equal(used.live_bytes, 5160);
        }
        tide_trace_close(t);
        assert_true(n < 2000);
    }
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(random_recordings),    tide_unit_test(parts_are_the_counts_of_each_step),
        tide_unit_test(a_trace_without_runs), tide_unit_test(operators_without_a_run),
        tide_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests_name("executions", tests, NULL, NULL);
}
