// SPDX-License-Identifier: MIT
//
// Out of memory as a loop, from a run that is recorded to the report of it: the n-th allocation of our own fails, for
// every n. The status is right, nothing is left behind in memory or in the folder, and what was there before serves on.
#include "core/graph/import.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/meter.h"
#include "core/memory/registry.h"
#include "core/runtime/context.h"
#include "planner/planner.h"
#include "reports/reports.h"
#include "tests/profiler/trace_fixture.h"

enum { MAX_FAILURES = 50000 };

/// @return whether that was the last round
/// Memory that is only given back sooner may fail to be had without harm: nothing fails any more when so many in a row
/// do no harm.
enum { GOOD_IN_A_ROW = 12 };

static bool judge(int64_t n, tide_status st, const tide_error *err) {
    if (st == TIDE_OK) {
        assert_true(n > 0);
        return true;
    }
    if (st != TIDE_ERR_NOMEM) fail_msg("allocation %lld: %s: %s", (long long)n, tide_status_name(st), err->msg);
    assert_true(err->msg[0] != '\0');
    assert_true(n < MAX_FAILURES);
    return false;
}

static uint64_t n_host_live(void) {
    tide_host_stats s;
    tide_host_get_stats(&s);
    return s.n_live;
}

// ---- what is recorded ----

typedef struct model {
    tide_program *program;
    tide_memory_plan *plan;
    tide_tensor *x;
} model;

static void model_open(model *m) {
    tide_error err = TIDE_ERROR_INIT;
    char path[512], *data;
    size_t len;
    tide_graph *g;
    tide_lifetimes lt;
    assert_tide_ok(
        tide_read_file(tide_source_path("sample_graphs/diamond.json", path, sizeof path), 0, &data, &len, &err), &err);
    assert_tide_ok(tide_graph_from_json(data, len, path, &g, &err), &err);
    tide_host_free(data);
    assert_tide_ok(tide_program_build(g, NULL, &m->program, &err), &err);
    assert_tide_ok(tide_liveness(m->program, TIDE_DEFAULT_ALIGN, &lt, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, tide_strategy_default(), NULL, &m->plan, &err), &err);
    tide_lifetimes_deinit(&lt);
    const tide_value *v = &g->values[g->inputs[0]];
    const tide_tensor_spec spec = {.dtype = v->dtype, .shape = v->shape, .kind = TIDE_KIND_DEFAULT, .tag = "x"};
    assert_tide_ok(tide_tensor_create(&spec, &m->x, &err), &err);
    memset(tide_tensor_data(m->x), 0, tide_tensor_size_bytes(m->x));
}

static void model_close(model *m) {
    tide_tensor_unref(m->x);
    tide_memory_plan_destroy(m->plan);
    tide_program_unref(m->program);
}

typedef struct bench {
    tide_meter *meter;
    tide_observer meter_obs, rec_obs, both;
    tide_observer_pair pair;
    tide_recorder *rec;
    tide_registry *registry;
    tide_allocator *fail; ///< behind the registry: fails the n-th block
    tide_inference_plan *ip;
    tide_context *c;
} bench;

static tide_status set_up(bench *b, int64_t fail_block, tide_error *err) {
    b->rec_obs = tide_recorder_observer(b->rec);
    TIDE_TRY(tide_meter_create(&b->meter, err));
    b->meter_obs = tide_meter_observer(b->meter);
    b->pair = (tide_observer_pair){.a = &b->meter_obs, .b = &b->rec_obs};
    b->both = tide_observer_both(&b->pair);
    TIDE_TRY(tide_registry_create(&b->registry, err));
    tide_allocator *plain = NULL, *observed = NULL;
    TIDE_TRY(tide_cpu_allocator_create(&plain, err));
    tide_status st = tide_fail_nth_create(plain, fail_block, &b->fail, err);
    tide_allocator_unref(plain);
    if (st != TIDE_OK) return st;
    TIDE_TRY(tide_instrumented_create(b->fail, &b->both, &observed, err));
    for (int k = 0; k < TIDE_N_KINDS && st == TIDE_OK; k++)
        st = tide_registry_add(b->registry, (tide_memory_kind)k, observed, 0, err);
    tide_allocator_unref(observed);
    return st;
}

static tide_status run_mode(bench *b, const model *m, tide_run_mode mode, tide_error *err) {
    int64_t run_id;
    const tide_run_info info = {.model = m->program->graph->name,
                                .mode = mode == TIDE_RUN_NAIVE ? "naive" : "planned",
                                .strategy = mode == TIDE_RUN_NAIVE ? NULL : m->plan->strategy,
                                .device = "cpu"};
    TIDE_TRY(tide_recorder_begin_run(b->rec, &info, m->plan, &run_id, err));
    const tide_inference_plan_options opt = {.registry = b->registry, .memory_plan = m->plan};
    TIDE_TRY(tide_inference_plan_create(m->program, &opt, &b->ip, err));
    const tide_context_options copt = {.mode = mode, .observer = &b->both};
    TIDE_TRY(tide_context_create(b->ip, &copt, &b->c, err));
    tide_tensor *x = m->x;
    TIDE_TRY(tide_context_set_inputs(b->c, &x, 1, err));
    TIDE_TRY(tide_context_run(b->c, err));
    return tide_context_run(b->c, err);
}

static void drop_run(bench *b) {
    tide_context_destroy(b->c);
    tide_inference_plan_unref(b->ip);
    b->c = NULL;
    b->ip = NULL;
}

static tide_status run_both(bench *b, const model *m, tide_error *err) {
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        const tide_status st = run_mode(b, m, (tide_run_mode)mode, err);
        drop_run(b);
        if (st != TIDE_OK) return st;
        TIDE_TRY(tide_recorder_end_run(b->rec, err));
    }
    return TIDE_OK;
}

static void tear_down(bench *b) {
    if (b->fail != NULL) {
        tide_allocator_stats stats;
        tide_allocator_get_stats(b->fail, &stats);
        assert_int_equal(stats.requested_bytes, 0);
    }
    if (b->meter != NULL) {
        tide_meter_kind total;
        tide_meter_total(b->meter, &total);
        assert_int_equal(total.live_bytes, 0);
    }
    tide_registry_destroy(b->registry);
    tide_allocator_unref(b->fail);
    tide_meter_destroy(b->meter);
}

/// Record both modes into `path`.
static tide_status record(const model *m, const char *path, int64_t fail_block, tide_error *err) {
    bench b = {0};
    TIDE_TRY(tide_recorder_open(path, NULL, &b.rec, err));
    tide_status st = set_up(&b, fail_block, err);
    if (st == TIDE_OK) st = run_both(&b, m, err);
    tear_down(&b);
    if (st == TIDE_OK) return tide_recorder_close(b.rec, err);
    tide_recorder_abandon(b.rec);
    return st;
}

static void test_recording(void **state) {
    (void)state;
    model m;
    model_open(&m);
    tmp_dir d;
    tmp_dir_make(&d);
    // Some failures harm nothing (a command line that is not known): many in a row mean that none happened.
    int64_t n_failed = 0;
    int64_t n = 0;
    for (int n_good = 0; n_good < tide_test_rounds(GOOD_IN_A_ROW, 64); n = tide_test_next_failure(n)) {
        tide_error err = TIDE_ERROR_INIT;
        const uint64_t live = n_host_live();
        tide_host_fail_after(n);
        const tide_status st = record(&m, d.file, -1, &err);
        tide_host_fail_after(-1);
        assert_int_equal(n_host_live(), live);
        // What the drain had no memory for ends the recording; runs that begin afterwards pass its words on.
        if (st != TIDE_OK && st != TIDE_ERR_NOMEM && strstr(err.msg, "memory") == NULL)
            fail_msg("allocation %lld: %s: %s", (long long)n, tide_status_name(st), err.msg);
        n_good = st == TIDE_OK ? n_good + 1 : 0;
        n_failed += st != TIDE_OK;
        assert_true(n < MAX_FAILURES);
    }
    print_message("%lld of the first %lld allocations failed one by one\n", (long long)n_failed, (long long)n);
    assert_true(n_failed > tide_test_rounds(15, 150));
    assert_sql(d.file, "SELECT count(*) FROM leaks", "0\n");
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
    model_close(&m);
}

static tide_status render_all(tide_subject *subject, tide_error *err) {
    for (int f = 0; f < TIDE_N_REPORT_FORMATS; f++) {
        tide_text out = {0};
        const tide_status st = tide_report_render(subject, NULL, NULL, (tide_report_format)f, &out, err);
        if (st == TIDE_OK) assert_true(out.len > 0);
        tide_text_deinit(&out);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

/// Every run that was begun has its reports, however it ended.
static void report_all(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    tide_trace_run *runs = NULL;
    size_t n_runs = 0;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    assert_tide_ok(tide_trace_runs(t, &runs, &n_runs, &err), &err);
    tide_trace_close(t);
    assert_true(n_runs >= 1);
    for (size_t i = 0; i < n_runs; i++) {
        tide_subject *subject = NULL;
        assert_tide_ok(tide_subject_of_trace(path, runs[i].id, &subject, &err), &err);
        assert_tide_ok(render_all(subject, &err), &err);
        tide_subject_destroy(subject);
    }
    tide_trace_runs_free(runs);
}

/// A block that fails is no failure of the recording: the trace is closed as usual, has the attempt in it, and can be
/// reported.
static void test_failed_blocks_are_recorded(void **state) {
    (void)state;
    model m;
    model_open(&m);
    bool done = false;
    for (int64_t n = 0; !done; n = tide_test_next_failure(n)) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide_error err = TIDE_ERROR_INIT;
        bench b = {0};
        assert_tide_ok(tide_recorder_open(d.file, NULL, &b.rec, &err), &err);
        assert_tide_ok(set_up(&b, n, &err), &err);
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st = run_both(&b, &m, &why);
        tear_down(&b);
        assert_tide_ok(tide_recorder_close(b.rec, &err), &err);
        assert_sql(d.file, "SELECT count(*) FROM events WHERE op = 'oom'", st == TIDE_OK ? "0\n" : "1\n");
        assert_sql(d.file, "SELECT count(*) FROM leaks", "0\n");
        report_all(d.file);
        tmp_dir_remove(&d);
        done = judge(n, st, &why);
    }
    model_close(&m);
}

// ---- reading it back ----

static tide_status ask(tide_trace *t, tide_error *err) {
    tide_trace_run *runs = NULL;
    tide_trace_kind *kinds = NULL;
    tide_trace_block *blocks = NULL;
    tide_trace_step *steps = NULL;
    size_t n_runs = 0, n_kinds = 0, n_blocks = 0, n_steps = 0;
    uint64_t bytes, t_ns;
    tide_memory_plan *plan = NULL;
    tide_status st;
    TIDE_TRY_OR(done, st, tide_trace_runs(t, &runs, &n_runs, err));
    TIDE_TRY_OR(done, st, tide_trace_kinds(t, 2, &kinds, &n_kinds, err));
    TIDE_TRY_OR(done, st, tide_trace_blocks(t, 0, &blocks, &n_blocks, err));
    TIDE_TRY_OR(done, st, tide_trace_steps(t, 2, &steps, &n_steps, err));
    TIDE_TRY_OR(done, st, tide_trace_peak(t, 1, -1, &bytes, &t_ns, err));
    TIDE_TRY_OR(done, st, tide_trace_live_at(t, -1, t_ns, &bytes, err));
    TIDE_TRY_OR(done, st, tide_trace_plan(t, 2, &plan, err));
    assert_int_equal(n_runs, 2);
    assert_true(n_kinds > 0 && n_blocks > 0 && n_steps > 0);
done:
    tide_trace_runs_free(runs);
    tide_trace_kinds_free(kinds);
    tide_trace_blocks_free(blocks, n_blocks);
    tide_trace_steps_free(steps, n_steps);
    tide_memory_plan_destroy(plan);
    return st;
}

static tide_status read_back(const char *path, tide_error *err) {
    tide_trace *t = NULL;
    TIDE_TRY(tide_trace_open(path, &t, err));
    tide_subject *subject = NULL;
    tide_status st = ask(t, err);
    tide_trace_close(t);
    if (st == TIDE_OK) st = tide_subject_of_trace(path, 2, &subject, err);
    if (st == TIDE_OK) st = render_all(subject, err);
    tide_subject_destroy(subject);
    return st;
}

static void test_reading_and_reporting(void **state) {
    (void)state;
    model m;
    model_open(&m);
    tmp_dir d;
    tmp_dir_make(&d);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(record(&m, d.file, -1, &err), &err);
    int n_good = 0;
    for (int64_t n = 0; n_good < GOOD_IN_A_ROW;
         n = tide_test_next_failure(n)) { // thousands: each of the first, some of the later
        const uint64_t live = n_host_live();
        tide_host_fail_after(n);
        const tide_status st = read_back(d.file, &err);
        tide_host_fail_after(-1);
        assert_int_equal(n_host_live(), live);
        assert_int_equal(tmp_dir_count(&d), 1);
        n_good = judge(n, st, &err) ? n_good + 1 : 0;
    }
    tmp_dir_remove(&d);
    model_close(&m);
}

/// An open trace answers as before after an answer for which there was no memory.
static void test_same_trace_after_failures(void **state) {
    (void)state;
    model m;
    model_open(&m);
    tmp_dir d;
    tmp_dir_make(&d);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(record(&m, d.file, -1, &err), &err);
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    bool done = false;
    for (int64_t n = 0; !done; n = tide_test_next_failure(n)) {
        const uint64_t live = n_host_live();
        tide_host_fail_after(n);
        const tide_status st = ask(t, &err);
        tide_host_fail_after(-1);
        assert_int_equal(n_host_live(), live);
        tide_error again = TIDE_ERROR_INIT;
        assert_tide_ok(ask(t, &again), &again);
        done = judge(n, st, &err);
    }
    tide_trace_close(t);
    tmp_dir_remove(&d);
    model_close(&m);
}

static void test_report_of_a_plan(void **state) {
    (void)state;
    model m;
    model_open(&m);
    int n_good = 0;
    for (int64_t n = 0; n_good < GOOD_IN_A_ROW; n = tide_test_next_failure(n)) {
        tide_error err = TIDE_ERROR_INIT;
        tide_subject *subject = NULL;
        tide_memory_plan *plan = NULL;
        const uint64_t live = n_host_live();
        tide_host_fail_after(n);
        tide_status st = tide_memory_plan_copy(m.plan, &plan, &err);
        if (st == TIDE_OK) st = tide_subject_of_plan(plan, NULL, &subject, &err); // takes the plan
        if (st == TIDE_OK) st = render_all(subject, &err);
        tide_subject_destroy(subject);
        tide_host_fail_after(-1);
        assert_int_equal(n_host_live(), live);
        n_good = judge(n, st, &err) ? n_good + 1 : 0;
    }
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_recording),
        tide_unit_test(test_failed_blocks_are_recorded),
        tide_unit_test(test_reading_and_reporting),
        tide_unit_test(test_same_trace_after_failures),
        tide_unit_test(test_report_of_a_plan),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
