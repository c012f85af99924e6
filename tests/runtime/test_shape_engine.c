// SPDX-License-Identifier: MIT
//
// One request in many sizes: the profile (S27-22), a change of size (S27-24), what goes wrong (S27-25, S27-26), one
// engine for each request (S27-21).
#include <string.h>

#include "core/base/log.h"
#include "core/runtime/runtime_internal.h"
#include "core/runtime/shape_engine.h"
#include "planner/passes.h"
#include "planner/plan.h"
#include "rt_util.h"

/// x -> MatMul by w -> a -> Relu -> b -> Add c -> y, and b -> Sigmoid -> z: x is [n x 8].
static tide_graph *rows_graph(void) {
    tide_graph *g = rt_graph("rows");
    rt_input(g, "x", "4x8");
    g->values[tide_graph_find_value(g, "x")].shape.dims[0] = TIDE_DIM_UNKNOWN;
    rt_weight(g, "w", "8x6", -0.3f, 0.02f);
    rt_weight(g, "c", "6", 0.5f, 0.25f);
    rt_node(g, "MatMul", "mm", "x,w", "a");
    rt_node(g, "Relu", "relu", "a", "b");
    rt_node(g, "Add", "add", "b,c", "y");
    rt_node(g, "Sigmoid", "sig", "b", "z");
    rt_output(g, "y");
    rt_output(g, "z");
    return g;
}

typedef struct set {
    rt_rig rig;
    tide_memory_plan *plan; ///< for 16 rows
    tide_shape_range range;
    uint64_t n_built;
} set;

static tide_status build(void *ctx, const tide_shape_binding *shapes, size_t n, const tide_program *weights_of,
                         tide_program **out, tide_error *err) {
    set *s = ctx;
    const tide_program_options opt = {.shapes = shapes,
                                      .n_shapes = n,
                                      .no_fuse = true,
                                      .weights_registry = s->rig.registry,
                                      .weights_of = weights_of};
    s->n_built++;
    return tide_program_build(rows_graph(), &opt, out, err);
}

static tide_shape rows(int64_t n) { return tide_shape_make(2, (int64_t[]){n, 8}); }

static void open_set(set *s) {
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p;
    *s = (set){.range = {"x", rows(1), rows(4), rows(16)}};
    rt_rig_open(&s->rig);
    const tide_shape_binding largest = {"x", rows(16)};
    assert_tide_ok(build(s, &largest, 1, NULL, &p, &err), &err);
    s->plan = rt_plan_aliased(p, "greedy_by_size", RT_ALL_ALIASES, NULL);
    tide_program_unref(p);
    s->n_built = 0;
}

static void close_set(set *s) {
    tide_memory_plan_destroy(s->plan);
    rt_rig_close(&s->rig);
}

static tide_shape_engine *open_engine(set *s, size_t max_sizes) {
    const tide_shape_engine_options opt = {.build = build,
                                           .build_ctx = s,
                                           .profile = &s->range,
                                           .n_ranges = 1,
                                           .memory_plan = s->plan,
                                           .registry = s->rig.registry,
                                           .fill = TIDE_FILL_POISON,
                                           .max_sizes = max_sizes};
    tide_error err = TIDE_ERROR_INIT;
    tide_shape_engine *e;
    assert_tide_ok(tide_shape_engine_create(&opt, &e, &err), &err);
    return e;
}

static tide_tensor *numbers(int64_t n, uint64_t seed) {
    char shape[32];
    snprintf(shape, sizeof shape, "%lldx8", (long long)n);
    return rt_tensor(shape, seed);
}

static tide_status feed(tide_shape_engine *e, int64_t n, uint64_t seed, tide_error *err) {
    tide_tensor *x = numbers(n, seed);
    const tide_status st = tide_shape_engine_set_inputs(e, &x, 1, err);
    tide_tensor_unref(x);
    return st;
}

/// What a context of its own, of exactly that size, gives.
static void assert_answers(const tide_shape_engine *e, int64_t n, uint64_t seed) {
    tide_graph *g = rows_graph();
    g->values[tide_graph_find_value(g, "x")].shape = rows(n);
    tide_program *p = rt_build(g);
    tide_inference_plan *ip = rt_inference(&(rt_rig){0}, p, NULL);
    tide_context *c = rt_context(ip, TIDE_RUN_NAIVE, TIDE_FILL_ZERO);
    tide_tensor *x = numbers(n, seed);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_context_set_inputs(c, &x, 1, &err), &err);
    rt_run(c);
    rt_assert_same_outputs(c, tide_shape_engine_context(e));
    tide_tensor_unref(x);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_program_unref(p);
}

static void run_and_check(tide_shape_engine *e, int64_t n, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(feed(e, n, seed, &err), &err);
    assert_tide_ok(tide_shape_engine_run(e, &err), &err);
    assert_answers(e, n, seed);
}

// ---- S27-22 ----

static void ranges_S27_22(void **state) {
    (void)state;
    static const struct {
        int64_t min, opt, max;
        bool good;
    } rows_of[] = {{1, 1, 1, true},  {0, 4, 9, true},  {1, 4, 3, false}, {5, 4, 9, false},
                   {-1, 4, 9, true}, {1, -1, 9, true}, {1, 4, -1, true}, {-7, 4, 9, false}};
    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
        const tide_shape_range r = {"x", rows(rows_of[i].min), rows(rows_of[i].opt), rows(rows_of[i].max)};
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_shape_range_check(&r, &err);
        assert_int_equal(st, rows_of[i].good ? TIDE_OK : TIDE_ERR_INVALID);
        if (st != TIDE_OK) assert_text_has(err.msg, "'x': extent 0 goes from");
    }
    const tide_shape_range ranks = {"x", rows(1), rows(1), tide_shape_make(1, (int64_t[]){1})};
    assert_int_equal(tide_shape_range_check(&ranks, NULL), TIDE_ERR_INVALID);
    const tide_shape_range r = {"x", rows(2), rows(3), rows(5)}, open = {"x", rows(2), rows(3), rows(-1)};
    for (int64_t n = 0; n < 8; n++) {
        const tide_shape shape = rows(n);
        assert_int_equal(tide_shape_range_admits(&r, &shape, NULL), n >= 2 && n <= 5 ? TIDE_OK : TIDE_ERR_INVALID);
        assert_int_equal(tide_shape_range_admits(&open, &shape, NULL), TIDE_OK);
    }
    const tide_shape other = tide_shape_make(2, (int64_t[]){3, 7}), flat = tide_shape_make(1, (int64_t[]){3});
    assert_int_equal(tide_shape_range_admits(&r, &other, NULL), TIDE_ERR_INVALID);
    assert_int_equal(tide_shape_range_admits(&r, &flat, NULL), TIDE_ERR_INVALID);
}

// ---- S27-23, S27-24 ----

static void every_size_in_one_place_S27_24(void **state) {
    (void)state;
    set s;
    open_set(&s);
    tide_shape_engine *e = open_engine(&s, 0);
    const uint64_t n_blocks = rt_n_allocs(&s.rig);
    const void *buffer = tide_context_buffer(tide_shape_engine_context(e));
    const void *y = tide_tensor_const_data(tide_context_output(tide_shape_engine_context(e), 0));
    const void *z = tide_tensor_const_data(tide_context_output(tide_shape_engine_context(e), 1));
    for (int round = 0; round < 2; round++) {
        for (int64_t n = 1; n <= 16; n++) {
            run_and_check(e, n, (uint64_t)n + 100);
            const tide_context *c = tide_shape_engine_context(e);
            assert_ptr_equal(tide_context_buffer(c), buffer);
            assert_ptr_equal(tide_tensor_const_data(tide_context_output(c, 0)), y);
            assert_ptr_equal(tide_tensor_const_data(tide_context_output(c, 1)), z);
        }
    }
    assert_int_equal(rt_n_allocs(&s.rig), n_blocks); // no block beside those of the first context
    tide_shape_engine_stats stats;
    tide_shape_engine_get_stats(e, &stats);
    assert_int_equal(stats.n_inferred, 16);
    assert_int_equal(s.n_built, 16);
    assert_int_equal(stats.n_sizes, 16);
    // It began with 16 rows, and each of the 32 inputs has other rows than the one before.
    assert_int_equal(stats.n_changes, 32);
    assert_int_equal(stats.n_unchanged, 0);
    for (int i = 0; i < 5; i++) run_and_check(e, 16, 7);
    tide_shape_engine_get_stats(e, &stats);
    assert_int_equal(stats.n_changes, 32);
    assert_int_equal(stats.n_unchanged, 5);
    assert_int_equal(s.n_built, 16);
    tide_shape_engine_destroy(e);
    close_set(&s);
}

static void the_oldest_goes(void **state) {
    (void)state;
    set s;
    open_set(&s);
    tide_shape_engine *e = open_engine(&s, 2);
    for (int64_t n = 1; n <= 6; n++) run_and_check(e, n, 1);
    tide_shape_engine_stats stats;
    tide_shape_engine_get_stats(e, &stats);
    assert_int_equal(stats.n_sizes, 3);
    run_and_check(e, 5, 2); // is there still
    assert_int_equal(s.n_built, 7);
    run_and_check(e, 1, 2); // is not
    assert_int_equal(s.n_built, 8);
    run_and_check(e, 16, 2); // always is
    assert_int_equal(s.n_built, 8);
    tide_shape_engine_destroy(e);
    close_set(&s);
}

// ---- S27-25, S27-26 ----

static void errors_change_nothing_S27_25(void **state) {
    (void)state;
    set s;
    open_set(&s);
    tide_shape_engine *e = open_engine(&s, 0);
    tide_error err = TIDE_ERROR_INIT;
    run_and_check(e, 3, 1);
    assert_tide_status(feed(e, 17, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'x': extent 0 is 17, its profile goes from 1 to 16");
    tide_tensor *wrong = rt_tensor("3x7", 1);
    assert_tide_status(tide_shape_engine_set_inputs(e, &wrong, 1, &err), TIDE_ERR_INVALID);
    tide_tensor_unref(wrong);
    assert_tide_status(tide_shape_engine_set_inputs(e, NULL, 0, &err), TIDE_ERR_INVALID);
    assert_tide_ok(tide_shape_engine_run(e, &err), &err);
    assert_answers(e, 3, 1);
    tide_shape_engine_destroy(e);
    close_set(&s);
}

/// A plan that has too little for one tensor at 9 rows and more: an error that names it, and nothing is written.
static void room_is_the_tensors_own_place_S27_26(void **state) {
    (void)state;
    set s;
    open_set(&s);
    tide_shape_engine *e = open_engine(&s, 0);
    tide_error err = TIDE_ERROR_INIT;
    run_and_check(e, 2, 1);
    s.plan->lifetimes.items[rt_entry(s.plan, "b")].size_bytes = 8 * 6 * 4;
    s.plan->lifetimes.items[rt_entry(s.plan, "a")].size_bytes = 8 * 6 * 4;
    assert_tide_status(feed(e, 9, 1, &err), TIDE_ERR_RUNTIME);
    assert_text_has(err.msg, "needs 216 B, but its entry in plan");
    assert_tide_ok(tide_shape_engine_run(e, &err), &err);
    assert_answers(e, 2, 1);
    run_and_check(e, 8, 3);
    tide_shape_engine_destroy(e);
    close_set(&s);
}

// ---- S27-21 ----

static size_t n_lines[4];
static void count_lines(void *ctx, tide_log_level level, const char *line) {
    (void)ctx;
    n_lines[level] += strstr(line, "shape engine") != NULL;
}

static void one_for_each_request_S27_21(void **state) {
    (void)state;
    set s;
    open_set(&s);
    tide_shape_engine *a = open_engine(&s, 0), *b = open_engine(&s, 0);
    for (int64_t n = 1; n <= 5; n++) {
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(feed(a, n, 1, &err), &err);
        assert_tide_ok(feed(b, 6 - n, 2, &err), &err);
        assert_tide_ok(tide_shape_engine_run(b, &err), &err);
        assert_tide_ok(tide_shape_engine_run(a, &err), &err);
        assert_answers(a, n, 1);
        assert_answers(b, 6 - n, 2);
    }
    tide_log_set(count_lines, NULL, TIDE_LOG_DEBUG);
    run_and_check(a, 9, 1);
    assert_int_equal(n_lines[TIDE_LOG_INFO], 0);
    assert_int_equal(n_lines[TIDE_LOG_DEBUG], 1);
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    tide_shape_engine_destroy(a);
    tide_shape_engine_destroy(b);
    close_set(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(ranges_S27_22),
        tide_unit_test(every_size_in_one_place_S27_24),
        tide_unit_test(the_oldest_goes),
        tide_unit_test(errors_change_nothing_S27_25),
        tide_unit_test(room_is_the_tensors_own_place_S27_26),
        tide_unit_test(one_for_each_request_S27_21),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
