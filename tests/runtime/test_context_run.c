// SPDX-License-Identifier: MIT
//
// Running: the two modes give the same bytes, predicted is measured, nothing is allocated while warm, and a failing
// operator is named (S27-14, S27-16, S27-17, X-5, X-7, X-8). What poison finds is in test_context_poison.c.
#include <inttypes.h>
#include <math.h>

#include "core/memory/observer.h"
#include "rt_util.h"

static const char *const strategies[] = {"naive", "greedy_by_size", "greedy_color"};
enum { N_STRATEGIES = 3 };

static float at(const tide_context *c, size_t output, size_t i) {
    return ((const float *)tide_tensor_const_data(tide_context_output(c, output)))[i];
}

// ---- the two modes ----

/// Naive and planned runs give the same bytes, under every fill and with every plan.
static void test_modes_agree_X8(void **state) {
    (void)state;
    for (size_t k = 0;; k++) {
        tide_graph *g = rt_graph_nth(k);
        if (g == NULL) break;
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(g);
        tide_inference_plan *plain = rt_inference(&rig, p, NULL);
        tide_context *naive = rt_context(plain, TIDE_RUN_NAIVE, TIDE_FILL_POISON);
        rt_feed(naive, p, &rig, k);
        rt_run(naive);
        for (size_t i = 0; i < N_STRATEGIES; i++) {
            tide_memory_plan *m = rt_plan(p, strategies[i]);
            tide_inference_plan *ip = rt_inference(&rig, p, m);
            for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
                tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, (tide_fill)fill);
                rt_feed(c, p, &rig, k);
                rt_run(c);
                rt_assert_same_outputs(c, naive);
                rt_run(c); // again, over what the first run left in the buffer
                rt_assert_same_outputs(c, naive);
                tide_context_destroy(c);
            }
            tide_inference_plan_unref(ip);
            tide_memory_plan_destroy(m);
        }
        tide_context_destroy(naive);
        tide_inference_plan_unref(plain);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

/// what the plan predicts is what the meter measures, for every kind; and a naive run peaks at the lower bound.
static void test_predicted_is_measured_X7(void **state) {
    (void)state;
    for (size_t k = 0;; k++) {
        tide_graph *g = rt_graph_nth(k);
        if (g == NULL) break;
        tide_program *p = rt_build(g);
        for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
            rt_rig rig;
            rt_rig_open(&rig);
            tide_memory_plan *m = rt_plan(p, "greedy_by_size");
            tide_inference_plan *ip = rt_inference(&rig, p, m);
            tide_context *c = rt_context(ip, (tide_run_mode)mode, TIDE_FILL_ZERO);
            rt_feed(c, p, &rig, k);
            rt_run(c);
            rt_run(c);
            for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
                const uint64_t want = mode == TIDE_RUN_NAIVE && kind == TIDE_KIND_WORKSPACE
                                          ? m->lower_bound_bytes
                                          : tide_memory_plan_predicted(m, (tide_memory_kind)kind);
                assert_int_equal(rt_peak(&rig, (tide_memory_kind)kind), want);
            }
            if (mode == TIDE_RUN_NAIVE) assert_int_equal(rt_live(&rig, TIDE_KIND_WORKSPACE), 0);
            tide_context_destroy(c);
            tide_inference_plan_unref(ip);
            tide_memory_plan_destroy(m);
            rt_rig_close(&rig);
        }
        tide_program_unref(p);
    }
}

/// a graph output that is born first and read again last is right at the end, in every mode and plan.
static void test_early_output_X5(void **state) {
    (void)state;
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(rt_graph_early_output());
    for (size_t i = 0; i <= N_STRATEGIES; i++) {
        tide_memory_plan *m = i < N_STRATEGIES ? rt_plan(p, strategies[i]) : NULL;
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *c = rt_context(ip, m != NULL ? TIDE_RUN_PLANNED : TIDE_RUN_NAIVE, TIDE_FILL_POISON);
        rt_feed(c, p, &rig, 9);
        const float *x = tide_tensor_const_data(tide_context_value(c, p->graph->inputs[0]));
        rt_run(c);
        for (size_t e = 0; e < 256; e++) {
            const float early = 1.0f / (1.0f + expf(-x[e]));
            const float b = 1.0f / (1.0f + expf(-tanhf(early)));
            assert_float_equal(at(c, 0, e), early, 1e-5);
            assert_float_equal(at(c, 1, e), tanhf(b) * b + early, 1e-5);
        }
        tide_context_destroy(c);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
    }
    tide_program_unref(p);
    rt_rig_close(&rig);
}

// ---- S27-14: nothing is allocated while running ----

static void test_no_allocation_while_warm_S27_14(void **state) {
    (void)state;
    for (size_t k = 0;; k++) {
        tide_graph *g = rt_graph_nth(k);
        if (g == NULL) break;
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(g);
        tide_memory_plan *m = rt_plan(p, "greedy_by_size");
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
        rt_feed(c, p, &rig, 1);
        rt_run(c);
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        const uint64_t n_allocs = rt_n_allocs(&rig);
        for (int run = 0; run < 1000; run++) rt_run(c);
        tide_host_get_stats(&after);
        assert_int_equal(after.n_allocs, before.n_allocs);
        assert_int_equal(after.n_frees, before.n_frees);
        assert_int_equal(rt_n_allocs(&rig), n_allocs);
        tide_context_destroy(c);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

// ---- S27-16, S27-17: how nodes are fed ----

/// Inputs in another order than they were made, and one value in two slots.
static void test_permuted_and_repeated_S27_16(void **state) {
    (void)state;
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        tide_graph *g = rt_graph("ports");
        rt_input(g, "x", "4");
        rt_input(g, "z", "4");
        rt_node(g, "Tanh", "ta", "x", "a");
        rt_node(g, "Tanh", "tb", "z", "b");
        rt_node(g, "Sub", "ba", "b,a", "d");
        rt_node(g, "Mul", "sq", "d,d", "e");
        rt_node(g, "Sub", "out", "e,a", "y");
        rt_output(g, "y");
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(g);
        tide_memory_plan *m = rt_plan(p, "greedy_by_size");
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *c = rt_context(ip, (tide_run_mode)mode, TIDE_FILL_POISON);
        rt_feed(c, p, &rig, 4);
        const float *x = tide_tensor_const_data(tide_context_value(c, p->graph->inputs[0]));
        const float *z = tide_tensor_const_data(tide_context_value(c, p->graph->inputs[1]));
        rt_run(c);
        for (size_t i = 0; i < 4; i++) {
            const float d = tanhf(z[i]) - tanhf(x[i]);
            assert_float_equal(at(c, 0, i), d * d - tanhf(x[i]), 1e-5);
        }
        tide_context_destroy(c);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

/// A three-input node with a weight in slot 2, then with an edge there.
static void test_weights_in_slots_S27_17(void **state) {
    (void)state;
    for (int edge = 0; edge < 2; edge++) {
        tide_graph *g = rt_graph("slots");
        rt_input(g, "x", "1x2");
        rt_weight(g, "w", "2x2", 1, 1); // 1 2 / 3 4
        if (edge) {
            rt_input(g, "q", "2");
            rt_node(g, "Tanh", "bias", "q", "b");
        } else {
            rt_weight(g, "b", "2", 100, 1);
        }
        rt_node(g, "Gemm", "gemm", "x,w,b", "h");
        rt_node(g, "Mul", "twice", "h,h", "y");
        rt_output(g, "y");
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(g);
        assert_int_equal(p->n_weights, edge ? 1 : 2);
        tide_memory_plan *m = rt_plan(p, "greedy_by_size");
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *c = rt_context(ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
        rt_feed(c, p, &rig, 4);
        const float *x = tide_tensor_const_data(tide_context_value(c, p->graph->inputs[0]));
        const float *q = edge ? tide_tensor_const_data(tide_context_value(c, p->graph->inputs[1])) : NULL;
        rt_run(c);
        for (size_t i = 0; i < 2; i++) {
            const float bias = edge ? tanhf(q[i]) : 100.0f + (float)i;
            const float h = x[0] * (1.0f + (float)i) + x[1] * (3.0f + (float)i) + bias;
            assert_float_equal(at(c, 0, i), h * h, 1e-2);
        }
        tide_context_destroy(c);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

// ---- operators that misbehave: one step's row is replaced by one of ours ----

static int calls_left; // of the failing kernel below

static tide_status run_failing(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k;
    if (calls_left-- > 0) {
        memset(args->out[0].data, 0, args->out[0].size_bytes);
        return TIDE_OK;
    }
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "planted");
}

/// A failing operator is named, frees what the naive run held, and the context runs again after it.
static void test_failing_operator(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        rt_rig rig;
        rt_rig_open(&rig);
        tide_program *p = rt_build(rt_graph_diamond());
        const tide_op_def *def = p->steps[2].kernel.def;
        tide_op_def failing = {.domain = def->domain, .name = def->name, .run = run_failing};
        p->steps[2].kernel.def = &failing;
        tide_memory_plan *m = rt_plan(p, "greedy_by_size");
        tide_inference_plan *ip = rt_inference(&rig, p, m);
        tide_context *c = rt_context(ip, (tide_run_mode)mode, TIDE_FILL_ZERO);
        rt_feed(c, p, &rig, 4);
        calls_left = 0;
        assert_tide_status(tide_context_run(c, &err), TIDE_ERR_BACKEND);
        assert_text_has(err.msg, p->steps[2].kernel.node->name);
        assert_text_has(err.msg, p->steps[2].kernel.node->op_type);
        assert_text_has(err.msg, "planted");
        if (mode == TIDE_RUN_NAIVE) assert_int_equal(rt_live(&rig, TIDE_KIND_WORKSPACE), 0);
        assert_null(tide_scope_current());
        calls_left = 1;
        rt_run(c);
        tide_context_destroy(c);
        tide_inference_plan_unref(ip);
        tide_memory_plan_destroy(m);
        p->steps[2].kernel.def = def;
        tide_program_unref(p);
        rt_rig_close(&rig);
    }
}

// ---- scopes ----

typedef struct heard {
    size_t n_run, n_op, depth, max_depth;
    char names[160];
} heard;

static void hear_nothing(void *self, const tide_memory_event *e) {
    (void)self;
    (void)e;
}

static void hear_scope(void *self, const tide_scope_event *e) {
    heard *h = self;
    if (!e->enter) {
        h->depth--;
        return;
    }
    if (++h->depth > h->max_depth) h->max_depth = h->depth;
    if (e->scope->kind == TIDE_SCOPE_RUN) h->n_run++;
    if (e->scope->kind != TIDE_SCOPE_OPERATOR) return;
    assert_int_equal(e->scope->index, h->n_op % 4);
    assert_int_equal(e->scope->parent->kind, TIDE_SCOPE_RUN);
    h->n_op++;
    const size_t used = strlen(h->names);
    snprintf(h->names + used, sizeof h->names - used, "%s ", e->scope->name);
}

/// The observer hears one scope per run and inside it one per operator, with name and step.
static void test_scopes(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(rt_graph_diamond());
    assert_int_equal(p->n_steps, 4);
    tide_inference_plan *ip = rt_inference(&rig, p, NULL);
    heard h = {0};
    const tide_observer obs = {.self = &h, .on_memory = hear_nothing, .on_scope = hear_scope};
    const tide_context_options opt = {.mode = TIDE_RUN_NAIVE, .observer = &obs};
    tide_context *c;
    assert_tide_ok(tide_context_create(ip, &opt, &c, &err), &err);
    rt_feed(c, p, &rig, 1);
    rt_run(c);
    rt_run(c);
    assert_int_equal(h.n_run, 2);
    assert_int_equal(h.n_op, 8);
    assert_int_equal(h.depth, 0);
    assert_int_equal(h.max_depth, 2);
    assert_string_equal(h.names, "top left right join top left right join ");
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_modes_agree_X8),
        tide_unit_test(test_predicted_is_measured_X7),
        tide_unit_test(test_early_output_X5),
        tide_unit_test(test_no_allocation_while_warm_S27_14),
        tide_unit_test(test_permuted_and_repeated_S27_16),
        tide_unit_test(test_weights_in_slots_S27_17),
        tide_unit_test(test_failing_operator),
        tide_unit_test(test_scopes),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
