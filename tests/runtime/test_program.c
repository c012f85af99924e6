// SPDX-License-Identifier: MIT
//
// Building a program: its stages, their log and their failures (S27-31), resolving once (S27-20).
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/ops/ops.h"
#include "rt_util.h"

static void keep_line(void *ctx, tide_log_level level, const char *line) {
    (void)level;
    tide_text_add(ctx, line);
    tide_text_add(ctx, "\n");
}

/// S27-31: every stage that passes leaves a line, in order.
static void test_stage_log(void **state) {
    (void)state;
    tide_text log = {0};
    tide_log_set(keep_line, &log, TIDE_LOG_INFO);
    tide_program *p = rt_build(rt_graph_conv());
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    static const char *const want[] = {
        "validate", "resolve operators", "bind inputs", "sort:",         "infer shapes",   "fuse",
        "prune",    "sort again",        "fix sizes",   "place weights", "prepare kernels"};
    const char *at = tide_text_str(&log);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        at = strstr(at, want[i]);
        if (at == NULL) fail_msg("stage '%s' is missing or out of order in:\n%s", want[i], tide_text_str(&log));
        at += strlen(want[i]);
    }
    tide_text_deinit(&log);
    tide_program_unref(p);
}

static void test_facts(void **state) {
    (void)state;
    tide_program *p = rt_build(rt_graph_conv());
    assert_true(p->runnable);
    assert_int_equal(p->n_nodes_before, 7);
    assert_int_equal(p->n_steps, p->order.n);
    assert_int_equal(p->n_steps + p->fused.n_activation, 7); // nothing else was merged away
    assert_int_equal(p->n_folded, 0);
    // w1, b1, w2, w3, b3 and the shape of Reshape
    assert_int_equal(p->n_weights, 6);
    assert_int_equal(p->weight_bytes, (216 + 8 + 288 + 1960 + 10) * 4 + 16);
    tide_program_unref(p);
}

/// A node on constants only is run at build and takes no step.
static void test_fold(void **state) {
    (void)state;
    tide_graph *g = rt_graph("fold");
    rt_input(g, "x", "4");
    rt_weight(g, "a", "4", 1, 1);
    rt_weight(g, "b", "4", 10, 0);
    rt_node(g, "Add", "sum", "a,b", "c");
    rt_node(g, "Mul", "scale", "x,c", "y");
    rt_output(g, "y");
    tide_program *p = rt_build(g);
    assert_int_equal(p->n_folded, 1);
    assert_int_equal(p->n_steps, 1);
    assert_int_equal(p->n_weights, 1);
    tide_program_unref(p);
}

static void test_no_fuse(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const tide_program_options opt = {.no_fuse = true};
    tide_program *p;
    assert_tide_ok(tide_program_build(rt_graph_conv(), &opt, &p, &err), &err);
    assert_int_equal(p->n_steps, 7);
    assert_int_equal(p->fused.n_activation, 0);
    tide_program_unref(p);
}

// ---- S27-31: each stage's failure is reported with the stage's name ----

static void expect_failure(tide_graph *g, const tide_program_options *opt, tide_status want, const char *stage,
                           const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = NULL;
    assert_tide_status(tide_program_build(g, opt, &p, &err), want);
    assert_null(p);
    assert_text_has(err.msg, stage);
    if (name != NULL) assert_text_has(err.msg, name);
    assert_int_equal(strncmp(err.msg, "program: ", 9), 0);
    assert_int_equal(err.status, want);
}

static void test_fail_validate(void **state) {
    (void)state;
    tide_graph *g = rt_graph("broken");
    rt_input(g, "x", "4");
    rt_node(g, "Add", "sum", "x,nowhere", "y");
    rt_output(g, "y");
    expect_failure(g, NULL, TIDE_ERR_BAD_INPUT, "validate", "nowhere");
}

/// S27-20: a missing operator fails the build, not the run.
static void test_fail_resolve(void **state) {
    (void)state;
    tide_graph *g = rt_graph("unknown");
    rt_input(g, "x", "4");
    rt_node(g, "Frobnicate", "frob", "x", "y");
    rt_output(g, "y");
    expect_failure(g, NULL, TIDE_ERR_NOT_IMPLEMENTED, "resolve operators", "frob");
}

static void test_fail_bind(void **state) {
    (void)state;
    const int64_t dims[] = {5};
    const tide_shape_binding binding = {.name = "nobody", .shape = tide_shape_make(1, dims)};
    const tide_program_options opt = {.shapes = &binding, .n_shapes = 1};
    expect_failure(rt_graph_diamond(), &opt, TIDE_ERR_NOT_FOUND, "bind inputs", "nobody");
}

static void test_fail_sort(void **state) {
    (void)state;
    tide_graph *g = rt_graph("cycle");
    rt_input(g, "x", "4");
    rt_node(g, "Add", "one", "x,b", "a");
    rt_node(g, "Relu", "two", "a", "b");
    rt_output(g, "b");
    expect_failure(g, NULL, TIDE_ERR_CYCLE, "sort", "two");
}

static void test_fail_infer(void **state) {
    (void)state;
    tide_graph *g = rt_graph("mismatch");
    rt_input(g, "x", "4");
    rt_input(g, "z", "5");
    rt_node(g, "Add", "sum", "x,z", "y");
    rt_output(g, "y");
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = NULL;
    assert_int_not_equal(tide_program_build(g, NULL, &p, &err), TIDE_OK);
    assert_text_has(err.msg, "program: infer shapes");
    assert_text_has(err.msg, "sum");
}

/// An open extent is never guessed; a binding closes it.
static void test_open_extent(void **state) {
    (void)state;
    for (int bound = 0; bound < 2; bound++) {
        tide_graph *g = rt_graph_diamond();
        g->values[0].shape.dims[0] = TIDE_DIM_UNKNOWN;
        if (!bound) {
            expect_failure(g, NULL, TIDE_ERR_UNKNOWN_SIZE, "infer shapes", "x");
            continue;
        }
        const int64_t dims[] = {2, 64};
        const tide_shape_binding binding = {.name = "x", .shape = tide_shape_make(2, dims)};
        const tide_program_options opt = {.shapes = &binding, .n_shapes = 1};
        tide_error err = TIDE_ERROR_INIT;
        tide_program *p;
        assert_tide_ok(tide_program_build(g, &opt, &p, &err), &err);
        assert_int_equal(p->graph->values[tide_graph_find_value(p->graph, "y")].shape.dims[0], 2);
        tide_program_unref(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_stage_log),   tide_unit_test(test_facts),         tide_unit_test(test_fold),
        tide_unit_test(test_no_fuse),     tide_unit_test(test_fail_validate), tide_unit_test(test_fail_resolve),
        tide_unit_test(test_fail_bind),   tide_unit_test(test_fail_sort),     tide_unit_test(test_fail_infer),
        tide_unit_test(test_open_extent),
    };
    // What the process keeps for good (its registry) is made before anything is counted.
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
