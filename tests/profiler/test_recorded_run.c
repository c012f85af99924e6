// SPDX-License-Identifier: MIT
//
// Real graphs through the real runtime into a trace: naive and planned, and back out. Predicted equals measured for
// every kind that the plan speaks of, the planned tensors are where the plan put them (S28-19), and nothing is
// left alive.
#include "core/base/text.h"
#include "core/graph/import.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/registry.h"
#include "core/runtime/context.h"
#include "planner/planner.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

static tide_program *load_program(const char *below) {
    char path[512];
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *graph;
    tide_program *program;
    assert_tide_ok(tide_read_file(tide_source_path(below, path, sizeof path), 0, &data, &len, &err), &err);
    assert_tide_ok(tide_graph_from_json(data, len, path, &graph, &err), &err);
    tide_host_free(data);
    assert_tide_ok(tide_program_build(graph, NULL, &program, &err), &err);
    return program;
}

static tide_memory_plan *make_plan(const tide_program *program) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    tide_memory_plan *plan;
    assert_tide_ok(tide_liveness(program, TIDE_DEFAULT_ALIGN, &lt, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, tide_strategy_default(), NULL, &plan, &err), &err);
    tide_lifetimes_deinit(&lt);
    return plan;
}

static tide_registry *observed_registry(const tide_observer *obs) {
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *registry;
    assert_tide_ok(tide_registry_create(&registry, &err), &err);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        tide_allocator *plain, *observed;
        assert_tide_ok(tide_cpu_allocator_create(&plain, &err), &err);
        assert_tide_ok(tide_instrumented_create(plain, obs, &observed, &err), &err);
        assert_tide_ok(tide_registry_add(registry, (tide_memory_kind)kind, observed, 0, &err), &err);
        tide_allocator_unref(plain);
        tide_allocator_unref(observed);
    }
    return registry;
}

static void set_inputs(tide_context *c, const tide_program *program, tide_registry *registry) {
    const tide_graph *g = program->graph;
    tide_tensor *inputs[8];
    assert_true(g->n_inputs <= 8);
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        const tide_tensor_spec spec = {.dtype = v->dtype,
                                       .shape = v->shape,
                                       .device = TIDE_CPU,
                                       .kind = TIDE_KIND_DEFAULT,
                                       .registry = registry,
                                       .tag = v->name};
        assert_tide_ok(tide_tensor_create(&spec, &inputs[i], &err), &err);
    }
    assert_tide_ok(tide_context_set_inputs(c, inputs, g->n_inputs, &err), &err);
    for (size_t i = 0; i < g->n_inputs; i++) tide_tensor_unref(inputs[i]);
}

/// The third step of S28-19 where it happens. @return address of the one buffer; 0 in a naive run
static uint64_t assert_bound(const tide_context *c, const tide_memory_plan *plan) {
    const char *base = tide_context_buffer(c);
    for (size_t i = 0; base != NULL && i < plan->lifetimes.n; i++) {
        const tide_lifetime *lt = &plan->lifetimes.items[i];
        if (lt->role == TIDE_ROLE_INTERMEDIATE)
            assert_ptr_equal(tide_tensor_const_data(tide_context_value(c, lt->value)), base + plan->offsets[i]);
    }
    return (uint64_t)(uintptr_t)base;
}

/// @return address of the buffer; 0 in a naive run
static uint64_t record_mode(tide_recorder *rec, tide_program *program, const tide_memory_plan *plan,
                            tide_run_mode mode) {
    tide_error err = TIDE_ERROR_INIT;
    int64_t run_id;
    const tide_run_info info = {.model = program->graph->name,
                                .mode = mode == TIDE_RUN_NAIVE ? "naive" : "planned",
                                .strategy = mode == TIDE_RUN_NAIVE ? NULL : plan->strategy,
                                .device = "cpu"};
    assert_tide_ok(tide_recorder_begin_run(rec, &info, plan, &run_id, &err), &err);
    const tide_observer obs = tide_recorder_observer(rec);
    tide_registry *registry = observed_registry(&obs);
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = registry, .memory_plan = plan};
    tide_inference_plan *ip;
    assert_tide_ok(tide_inference_plan_create(program, &opt, &ip, &err), &err);
    const tide_context_options copt = {.mode = mode, .observer = &obs};
    tide_context *c;
    assert_tide_ok(tide_context_create(ip, &copt, &c, &err), &err);
    set_inputs(c, program, registry);
    for (int i = 0; i < 3; i++) assert_tide_ok(tide_context_run(c, &err), &err);
    const uint64_t base = assert_bound(c, plan);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_registry_destroy(registry);
    assert_tide_ok(tide_recorder_end_run(rec, &err), &err);
    return base;
}

/// what the plan predicts for a kind is what the trace measured.
static void check_kinds(tide_trace *t, int64_t run_id, const tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_kind *k;
    size_t n;
    bool has_workspace = false;
    assert_tide_ok(tide_trace_kinds(t, run_id, &k, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        if (k[i].predicted_bytes != k[i].peak_bytes)
            fail_msg("%s, run %" PRId64 ", %s: predicted %" PRIu64 ", measured %" PRIu64, plan->lifetimes.model, run_id,
                     tide_memory_kind_name(k[i].kind), k[i].predicted_bytes, k[i].peak_bytes);
        assert_int_equal(k[i].live_at_end_bytes, 0);
        if (k[i].kind != TIDE_KIND_WORKSPACE) continue;
        has_workspace = true;
        assert_int_equal(k[i].peak_bytes, run_id == 1 ? plan->lower_bound_bytes : plan->bytes);
    }
    assert_true(has_workspace);
    tide_trace_kinds_free(k);
}

/// S28-19: the trace of one run shows the three steps: the offsets of the plan, one buffer for them, taken before the
/// first operator begins, and (check_planned_tensors) every tensor at its offset.
static void check_three_steps(const char *file, const tide_memory_plan *plan, uint64_t base) {
    tide_text want = {0};
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        if (plan->lifetimes.items[i].persistent) continue;
        tide_text_addf(&want, "%s|%" PRIu64 "\n", plan->lifetimes.items[i].name, plan->offsets[i]);
    }
    assert_sql(file, "SELECT name, offset_bytes FROM plan_tensor WHERE run_id = 2 AND NOT persistent ORDER BY idx",
               tide_text_str(&want));
    tide_text_deinit(&want);
    char line[96];
    snprintf(line, sizeof line, "%" PRIu64 "|%" PRIu64 "\n", base, plan->bytes);
    assert_sql(file, "SELECT address, requested_bytes FROM blocks WHERE run_id = 2 AND kind = 'Workspace'", line);
    assert_sql(file,
               "SELECT count(*) FROM blocks b JOIN scopes s ON s.run_id = 2 AND s.scope_kind = 'operator' AND "
               "s.t_ns < b.alloc_ns WHERE b.run_id = 2 AND b.kind = 'Workspace'",
               "0\n");
    assert_sql(file, "SELECT count(*) > 0 FROM scopes WHERE run_id = 2 AND scope_kind = 'operator'", "1\n");
}

/// When a step ran first, from begin to end.
static const tide_trace_step *step_of(const tide_trace_step *steps, size_t n, int64_t index) {
    for (size_t i = 0; i < n; i++)
        if (steps[i].index == index) return &steps[i];
    fail_msg("step %d did not run", (int)index);
    return NULL;
}

/// Two tensors that are live in one step of the run share no byte. Times come from the run, places from the trace's own
/// table.
static void check_apart(const tide_trace_step *steps, size_t n_steps, const tide_lifetime *a, uint64_t a_at,
                        const tide_lifetime *b, uint64_t b_at) {
    const uint64_t a_begin = step_of(steps, n_steps, a->begin_step)->begin_ns;
    const uint64_t b_begin = step_of(steps, n_steps, b->begin_step)->begin_ns;
    const uint64_t a_end = step_of(steps, n_steps, a->end_step - 1)->end_ns;
    const uint64_t b_end = step_of(steps, n_steps, b->end_step - 1)->end_ns;
    if (a_begin >= b_end || b_begin >= a_end) return;
    assert_true(a_at + tide_lifetime_aligned_bytes(a) <= b_at || b_at + tide_lifetime_aligned_bytes(b) <= a_at);
}

/// In a planned run every step ran, and each planned tensor lies at the offset that the trace says of it; no two that
/// live at one time share a byte.
static void check_planned_tensors(const char *file, tide_trace *t, const tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_step *steps;
    size_t n_steps;
    char count[32];
    assert_tide_ok(tide_trace_steps(t, 2, &steps, &n_steps, &err), &err);
    assert_int_equal(n_steps, plan->lifetimes.n_steps);
    for (size_t i = 0; i < n_steps; i++) assert_string_equal(steps[i].name, plan->lifetimes.step_names[i]);
    tide_memory_plan *kept;
    assert_tide_ok(tide_trace_plan(t, 2, &kept, &err), &err);
    const tide_lifetimes *lt = &kept->lifetimes;
    size_t n = 0;
    assert_int_equal(lt->n, plan->lifetimes.n);
    for (size_t i = 0; i < lt->n; i++) {
        if (lt->items[i].persistent) continue;
        n++;
        assert_string_equal(lt->items[i].name, plan->lifetimes.items[i].name);
        assert_int_equal(kept->offsets[i], plan->offsets[i]);
        assert_true(kept->offsets[i] + tide_lifetime_aligned_bytes(&lt->items[i]) <= plan->bytes);
        for (size_t k = 0; k < i; k++)
            if (!lt->items[k].persistent)
                check_apart(steps, n_steps, &lt->items[i], kept->offsets[i], &lt->items[k], kept->offsets[k]);
    }
    snprintf(count, sizeof count, "%zu\n", n);
    assert_sql(file, "SELECT count(*) FROM plan_tensor WHERE run_id = 2 AND NOT persistent", count);
    tide_memory_plan_destroy(kept);
    tide_trace_steps_free(steps, n_steps);
}

static void run_graph(const char *below) {
    tmp_dir d;
    tmp_dir_make(&d);
    tide_error err = TIDE_ERROR_INIT;
    tide_program *program = load_program(below);
    tide_memory_plan *plan = make_plan(program);
    tide_recorder *rec;
    assert_tide_ok(tide_recorder_open(d.file, NULL, &rec, &err), &err);
    assert_int_equal(record_mode(rec, program, plan, TIDE_RUN_NAIVE), 0);
    const uint64_t base = record_mode(rec, program, plan, TIDE_RUN_PLANNED);
    assert_tide_ok(tide_recorder_close(rec, &err), &err);
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    check_kinds(t, 1, plan);
    check_kinds(t, 2, plan);
    check_planned_tensors(d.file, t, plan);
    tide_trace_close(t);
    check_three_steps(d.file, plan, base);
    assert_sql(d.file, "SELECT count(*) FROM leaks", "0\n");
    assert_sql(d.file, "SELECT count(*) FROM predicted_vs_measured WHERE difference_bytes <> 0", "0\n");
    assert_sql(d.file, "SELECT count(*) FROM blocks WHERE name = ''", "0\n"); // PT-26: every allocation has a name
    // A planned run allocates nothing inside an operator.
    assert_sql(d.file, "SELECT count(*) FROM blocks WHERE run_id = 2 AND scope <> '' AND step IS NOT NULL", "0\n");
    tide_memory_plan_destroy(plan);
    tide_program_unref(program);
    tmp_dir_remove(&d);
}

static void test_teaching_graphs(void **state) {
    (void)state;
    run_graph("sample_graphs/diamond.json");
    run_graph("sample_graphs/long_skip.json");
    run_graph("sample_graphs/early_output.json");
}

static void test_lenet(void **state) {
    (void)state;
    run_graph("sample_graphs/lenet5.json");
}

static void test_squeezenet(void **state) {
    (void)state;
    run_graph("sample_graphs/squeezenet1_1.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_teaching_graphs),
        cmocka_unit_test(test_lenet),
        cmocka_unit_test(test_squeezenet),
    };
    return cmocka_run_group_tests(tests, tide_leak_setup, tide_leak_teardown);
}
