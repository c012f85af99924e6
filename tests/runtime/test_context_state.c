// SPDX-License-Identifier: MIT
//
// What a context holds and says of itself (S27-2), and the status of each way in which one fails (S27-30).
#include "context_test.h"
#include "core/memory/allocators/allocators.h"

static void has_line(const tide_context *c, const char *line) {
    tide_text text = {0};
    tide_context_describe(c, &text);
    assert_false(text.failed);
    assert_text_has(tide_text_str(&text), line);
    tide_text_deinit(&text);
}

/// Plan, buffer and its size, tables, inputs and runs are in it; the tables are those of the begin after a thousand
/// runs.
static void a_context_says_what_it_holds_S27_2(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        set s;
        char line[160];
        open_set(&s, rt_graph_conv(), modes[i]);
        const bool planned = modes[i] == TIDE_RUN_PLANNED;
        has_line(s.c, planned ? "mode         planned, fresh memory: poison\n"
                              : "mode         naive, fresh memory: poison\n");
        snprintf(line, sizeof line, "plan         greedy_by_size, %llu bytes", (unsigned long long)s.m->bytes);
        has_line(s.c, line);
        if (planned)
            snprintf(line, sizeof line, "buffer       %llu bytes at %p from instrumented\n",
                     (unsigned long long)s.m->bytes, tide_context_buffer(s.c));
        has_line(s.c, planned ? line : "buffer       none: tensors are allocated when born\n");
        size_t n_weights;
        uint64_t weight_bytes;
        tide_inference_plan_weights(s.ip, &n_weights, &weight_bytes);
        snprintf(line, sizeof line, "weights      %zu, %llu bytes", n_weights, (unsigned long long)weight_bytes);
        has_line(s.c, line);
        tide_context_stats stats;
        tide_context_get_stats(s.c, &stats);
        snprintf(line, sizeof line, "tensors      %zu bound, 0 failed, %zu not tried\n", stats.n_bound,
                 stats.n_not_tried);
        has_line(s.c, line);
        has_line(s.c, "device       cpu\n");
        has_line(s.c, ", not set\n");
        has_line(s.c, "runs         0\n");
        const set before = s;
        tide_tensor **values = s.c->values;
        void **data = s.c->data;
        tide_tensor **outputs = s.c->outputs;
        rt_feed(s.c, s.p, &s.rig, 1);
        tide_host_stats host, after;
        rt_run(s.c);
        tide_host_get_stats(&host);
        for (int run = 1; run < 1000; run++) rt_run(s.c);
        tide_host_get_stats(&after);
        assert_int_equal(host.n_live, after.n_live);
        assert_ptr_equal(values, s.c->values);
        assert_ptr_equal(data, s.c->data);
        assert_ptr_equal(outputs, s.c->outputs);
        assert_ptr_equal(before.ip, s.c->plan);
        has_line(s.c, "inputs       1, set\n");
        has_line(s.c, "runs         1000\n");
        close_set(&s);
    }
}

static tide_status run_failing(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k;
    (void)args;
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "planted");
}

/// Names, and for each status a failure that has it and no other.
static void each_failure_has_its_own_status_S27_30(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    assert_string_equal(tide_status_name(TIDE_OK), "OK");
    assert_string_equal(tide_status_name(TIDE_ERR_UNKNOWN), "ERR_UNKNOWN");
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    // an argument: before the inputs are set, and a wrong number of them
    assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_context_set_inputs(s.c, NULL, 0, &err), TIDE_ERR_INVALID);
    // a device that this build does not have
    const tide_inference_plan_options elsewhere = {.device = {TIDE_DEVICE_CUDA, 0}, .memory_plan = s.m};
    tide_inference_plan *ip = NULL;
    assert_tide_status(tide_inference_plan_create(s.p, &elsewhere, &ip, &err), TIDE_ERR_NOT_IMPLEMENTED);
    // the strict rule: a tensor without an entry in the plan
    tide_memory_plan *lacking = rt_plan(s.p, "greedy_by_size");
    const size_t entry = rt_entry(lacking, "a");
    lacking->lifetimes.items[entry].name[0] = 'b';
    const tide_inference_plan_options strict = {.device = TIDE_CPU, .memory_plan = lacking};
    assert_tide_status(tide_inference_plan_create(s.p, &strict, &ip, &err), TIDE_ERR_RUNTIME);
    lacking->lifetimes.items[entry].name[0] = 'a';
    tide_memory_plan_destroy(lacking);
    // an operator that fails
    tide_tensor *x = rt_tensor("4x15", 1);
    set_x(&s, x);
    const tide_op_def *def = s.p->steps[1].kernel.def;
    tide_op_def failing = *def;
    failing.run = run_failing;
    s.p->steps[1].kernel.def = &failing;
    assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_BACKEND);
    s.p->steps[1].kernel.def = def;
    rt_run(s.c); // success
    tide_tensor_unref(x);
    // memory
    tide_allocator *cpu, *none;
    tide_registry *poor;
    assert_tide_ok(tide_allocator_create_by_name("cpu", &cpu, &err), &err);
    assert_tide_ok(tide_fail_nth_create(cpu, 1, &none, &err), &err);
    assert_tide_ok(tide_registry_create(&poor, &err), &err);
    for (int k = 0; k < TIDE_N_KINDS; k++)
        assert_tide_ok(tide_registry_add(poor, (tide_memory_kind)k, none, 0, &err), &err);
    const tide_inference_plan_options poorly = {.device = TIDE_CPU, .memory_plan = s.m, .registry = poor};
    assert_tide_ok(tide_inference_plan_create(s.p, &poorly, &ip, &err), &err); // no weights: nothing is taken yet
    const tide_context_options opt = {.mode = TIDE_RUN_PLANNED};
    tide_context *c = NULL;
    assert_tide_status(tide_context_create(ip, &opt, &c, &err), TIDE_ERR_NOMEM);
    tide_inference_plan_unref(ip);
    tide_registry_destroy(poor);
    tide_allocator_unref(none);
    tide_allocator_unref(cpu);
    close_set(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_context_says_what_it_holds_S27_2),
        tide_unit_test(each_failure_has_its_own_status_S27_30),
    };
    return cmocka_run_group_tests_name("context_state", tests, NULL, NULL);
}
