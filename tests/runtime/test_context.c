// SPDX-License-Identifier: MIT
//
// A context: its buffer, its inputs and its outputs (S27-5 to S27-9, S27-12, S28-17).
#include "core/memory/poison.h"
#include "rt_util.h"

typedef struct set {
    rt_rig rig;
    tide_program *p;
    tide_memory_plan *m;
    tide_inference_plan *ip;
} set;

static void open_set_planned(set *s, tide_graph *g, const char *strategy, unsigned passes) {
    rt_rig_open(&s->rig);
    s->p = rt_build(g);
    s->m = rt_plan_aliased(s->p, strategy, passes, NULL);
    s->ip = rt_inference(&s->rig, s->p, s->m);
}

static void open_set(set *s, tide_graph *g) { open_set_planned(s, g, "greedy_by_size", 0); }

static void close_set(set *s) {
    tide_inference_plan_unref(s->ip);
    tide_memory_plan_destroy(s->m);
    tide_program_unref(s->p);
    rt_rig_close(&s->rig);
}

static const tide_run_mode modes[] = {TIDE_RUN_NAIVE, TIDE_RUN_PLANNED};

// ---- the buffer ----

/// S27-7: one block of exactly the planned size at the planned alignment; none in naive mode; X-8 and S27-8: its
/// content.
static void test_buffer_S27_7_S27_8(void **state) {
    (void)state;
    set s;
    open_set(&s, rt_graph_long());
    for (int fill = TIDE_FILL_ZERO; fill <= TIDE_FILL_POISON; fill++) {
        tide_meter_kind before, after;
        tide_meter_get(s.rig.meter, TIDE_KIND_WORKSPACE, &before);
        tide_context *c = rt_context(s.ip, TIDE_RUN_PLANNED, (tide_fill)fill);
        tide_meter_get(s.rig.meter, TIDE_KIND_WORKSPACE, &after);
        assert_int_equal(after.n_allocs - before.n_allocs, 1);
        assert_int_equal(after.live_bytes - before.live_bytes, s.m->bytes);
        const unsigned char *base = tide_context_buffer(c);
        assert_non_null(base);
        tide_asan_unpoison(base, s.m->bytes); // the test reads bytes without an owner
        assert_int_equal((uintptr_t)base % 256, 0);
        for (uint64_t i = 0; i < s.m->bytes && fill != TIDE_FILL_NONE; i++)
            assert_int_equal(base[i], fill == TIDE_FILL_ZERO ? 0x00 : 0xFF);
        tide_context_stats st;
        tide_context_get_stats(c, &st);
        assert_int_equal(st.buffer_bytes, s.m->bytes);
        tide_context_destroy(c);
    }
    tide_context *c = rt_context(s.ip, TIDE_RUN_NAIVE, TIDE_FILL_ZERO);
    assert_null(tide_context_buffer(c));
    assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), 0);
    tide_context_destroy(c);
    close_set(&s);
}

/// a context is of one request: several live at once, each with a buffer of its own. The registry is one for all,
/// and neither makes nor keeps them.
static void test_two_names_two_objects_X1(void **state) {
    (void)state;
    set s;
    open_set(&s, rt_graph_long());
    tide_registry *const registry = tide_registry_default();
    tide_context *one = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    tide_context *two = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    assert_ptr_not_equal(one, two);
    assert_ptr_not_equal(tide_context_buffer(one), tide_context_buffer(two));
    assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), 2 * s.m->bytes);
    assert_ptr_equal(tide_registry_default(), registry);
    tide_context_destroy(one);
    assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), s.m->bytes);
    rt_feed(two, s.p, &s.rig, 1);
    rt_run(two);
    tide_context_destroy(two);
    assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), 0);
    assert_ptr_equal(tide_registry_default(), registry);
    tide_allocator *a = NULL;
    assert_tide_status(tide_registry_get(registry, TIDE_CPU, TIDE_KIND_WORKSPACE, &a, NULL), TIDE_OK);
    close_set(&s);
}

/// What has a place of its own lies at a multiple of 256 (S28-17); an alias where its target makes it, of 64.
static void assert_bound(const set *s, const tide_context *c) {
    for (size_t i = 0; i < s->m->lifetimes.n; i++) {
        const tide_lifetime *lt = &s->m->lifetimes.items[i];
        if (lt->role != TIDE_ROLE_INTERMEDIATE) continue;
        const char *want = (const char *)tide_context_buffer(c) + s->m->offsets[i];
        assert_ptr_equal(tide_tensor_const_data(tide_context_value(c, lt->value)), want);
        assert_int_equal((uintptr_t)want % (lt->alias == TIDE_ALIAS_NONE ? 256 : 64), 0);
    }
}

/// S27-12, S28-19: the plan gives offsets, the context takes one buffer, every tensor is bound at base + offset, also
/// while running, and nothing is copied. S28-17: the address of each that has a place of its own is a multiple of 256.
/// So with every strategy, and with and without aliases.
static void test_zero_copy_S27_12(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n_strategies = tide_strategies(&all);
    for (size_t k = 0; k < 4 * 2 * n_strategies; k++) {
        set s;
        open_set_planned(&s, rt_graph_nth(k % 4), all[k / 8]->name, k / 4 % 2 != 0 ? RT_ALL_ALIASES : 0);
        tide_context *c = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
        rt_feed(c, s.p, &s.rig, k);
        for (int run = 0; run < 3; run++) {
            assert_bound(&s, c);
            rt_run(c);
        }
        tide_context_stats st;
        tide_context_get_stats(c, &st);
        assert_int_equal(st.n_copied_bytes, 0);
        assert_int_equal(st.n_runs, 3);
        tide_context_destroy(c);
        close_set(&s);
    }
}

static void test_planned_needs_plan(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(rt_graph_diamond());
    tide_inference_plan *ip = rt_inference(&rig, p, NULL);
    const tide_context_options opt = {.mode = TIDE_RUN_PLANNED};
    tide_context *c = NULL;
    assert_tide_status(tide_context_create(ip, &opt, &c, &err), TIDE_ERR_INVALID);
    assert_null(c);
    assert_text_has(err.msg, "no memory plan");
    tide_inference_plan_unref(ip);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

/// One step that writes the graph's output: nothing to place, no buffer, and planned mode works all the same.
static void test_nothing_to_place(void **state) {
    (void)state;
    tide_graph *g = rt_graph("single");
    rt_input(g, "x", "4");
    rt_node(g, "Tanh", "t", "x", "y");
    rt_output(g, "y");
    set s;
    open_set(&s, g);
    assert_int_equal(s.m->bytes, 0);
    tide_context *c = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_POISON);
    assert_null(tide_context_buffer(c));
    rt_feed(c, s.p, &s.rig, 1);
    rt_run(c);
    assert_true(((const float *)tide_tensor_const_data(tide_context_output(c, 0)))[0] <= 1.0f);
    tide_context_destroy(c);
    close_set(&s);
}

// ---- inputs (S27-5) ----

static void test_inputs_in_order_S27_5(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    set s;
    open_set(&s, rt_graph_long()); // inputs x, z: 8x32
    tide_context *c = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    assert_tide_status(tide_context_run(c, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "inputs");
    tide_tensor *x = rt_tensor("8x32", 1), *z = rt_tensor("8x32", 2), *odd = rt_tensor("32x8", 3);
    tide_tensor *one[] = {x}, *two[] = {x, z}, *wrong[] = {z, odd};
    assert_tide_status(tide_context_set_inputs(c, one, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "2 inputs");
    assert_text_has(err.msg, "got 1");
    assert_tide_status(tide_context_set_inputs(c, wrong, 2, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'z'");
    assert_text_has(err.msg, "[8x32]");
    assert_text_has(err.msg, "[32x8]");
    // Nothing was half set.
    assert_tide_status(tide_context_run(c, &err), TIDE_ERR_INVALID);
    assert_tide_ok(tide_context_set_inputs(c, two, 2, &err), &err);
    assert_ptr_equal(tide_context_value(c, tide_graph_find_value(s.p->graph, "z")), z); // referenced, not copied
    assert_tide_status(tide_context_set_inputs(c, wrong, 2, &err), TIDE_ERR_INVALID);
    assert_ptr_equal(tide_context_value(c, tide_graph_find_value(s.p->graph, "x")), x);
    assert_ptr_equal(tide_context_value(c, tide_graph_find_value(s.p->graph, "z")), z);
    rt_run(c);
    tide_context_destroy(c);
    tide_tensor_unref(x);
    tide_tensor_unref(z);
    tide_tensor_unref(odd);
    close_set(&s);
}

static void test_inputs_by_name_S27_5(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    set s;
    open_set(&s, rt_graph_long());
    tide_context *a = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    tide_context *b = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    tide_tensor *x = rt_tensor("8x32", 1), *z = rt_tensor("8x32", 2);
    tide_tensor *in_order[] = {x, z}, *swapped[] = {z, x};
    static const char *const names[] = {"z", "x"}, *const unknown[] = {"z", "q"}, *const twice[] = {"z", "z"};
    assert_tide_status(tide_context_set_inputs_by_name(b, unknown, swapped, 2, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'q'");
    assert_tide_status(tide_context_set_inputs_by_name(b, twice, swapped, 2, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "twice");
    assert_tide_status(tide_context_set_inputs_by_name(b, names, swapped, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'x' is missing");
    assert_tide_ok(tide_context_set_inputs(a, in_order, 2, &err), &err);
    assert_tide_ok(tide_context_set_inputs_by_name(b, names, swapped, 2, &err), &err);
    rt_run(a);
    rt_run(b);
    rt_assert_same_outputs(a, b);
    tide_context_destroy(a);
    tide_context_destroy(b);
    tide_tensor_unref(x);
    tide_tensor_unref(z);
    close_set(&s);
}

static void test_input_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    set s;
    open_set(&s, rt_graph_diamond()); // x: 4x64
    tide_context *c = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    const int64_t dims[] = {4, 64};
    const tide_shape shape = tide_shape_make(2, dims);
    tide_tensor *t;
    int64_t raw[4 * 64] = {0};
    assert_tide_ok(tide_tensor_borrow(raw, sizeof raw, TIDE_I64, &shape, TIDE_KIND_DEFAULT, &t, &err), &err);
    assert_tide_status(tide_context_set_inputs(c, &t, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "float32");
    assert_text_has(err.msg, "int64");
    tide_tensor_unref(t);
    assert_tide_ok(tide_tensor_create_unbound(TIDE_F32, &shape, TIDE_CPU, &t, &err), &err);
    assert_tide_status(tide_context_set_inputs(c, &t, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "no memory");
    tide_tensor_unref(t);
    // What the run writes cannot be what it reads.
    tide_tensor *own = tide_context_output(c, 0),
                *planned = tide_context_value(c, tide_graph_find_value(s.p->graph, "a"));
    assert_tide_status(tide_context_set_inputs(c, &own, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.hint, "clone");
    assert_tide_status(tide_context_set_inputs(c, &planned, 1, &err), TIDE_ERR_INVALID);
    t = NULL;
    assert_tide_status(tide_context_set_inputs(c, &t, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "missing");
    tide_context_destroy(c);
    close_set(&s);
}

// ---- outputs (S27-6, S27-9) ----

/// S27-6: by order and by name the same tensor; after a second run the same tensor with new content.
static void test_outputs_S27_6(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        set s;
        open_set(&s, rt_graph_early_output());
        tide_context *c = rt_context(s.ip, modes[k], TIDE_FILL_POISON);
        assert_int_equal(tide_context_n_outputs(c), 2);
        tide_tensor *early = tide_context_output(c, 0), *late = tide_context_output_by_name(c, "late");
        assert_ptr_equal(early, tide_context_output_by_name(c, "early"));
        assert_ptr_equal(late, tide_context_output(c, 1));
        assert_null(tide_context_output(c, 2));
        assert_null(tide_context_output_by_name(c, "nobody"));
        rt_feed(c, s.p, &s.rig, 1);
        rt_run(c);
        const float first = ((const float *)tide_tensor_const_data(early))[0];
        rt_feed(c, s.p, &s.rig, 2);
        rt_run(c);
        assert_ptr_equal(early, tide_context_output(c, 0));
        assert_true(first != ((const float *)tide_tensor_const_data(early))[0]);
        tide_context_destroy(c);
        close_set(&s);
    }
}

/// S27-9: an output held past its context and its plan stays readable; its block goes back once.
static void test_output_outlives_context_S27_9(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        set s;
        open_set(&s, rt_graph_early_output());
        tide_context *c = rt_context(s.ip, modes[k], TIDE_FILL_POISON);
        rt_feed(c, s.p, &s.rig, 1);
        rt_run(c);
        tide_tensor *held = tide_tensor_ref(tide_context_output(c, 0));
        size_t n;
        char *want = rt_output_bytes(c, &n);
        tide_context_destroy(c);
        tide_inference_plan_unref(s.ip);
        s.ip = NULL;
        assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), 0); // the buffer is gone, the output is not
        assert_int_equal(rt_live(&s.rig, TIDE_KIND_DEFAULT), 1024);
        assert_memory_equal(tide_tensor_const_data(held), want, tide_tensor_size_bytes(held));
        tide_tensor_unref(held);
        assert_int_equal(rt_live(&s.rig, TIDE_KIND_DEFAULT), 0);
        tide_host_free(want);
        close_set(&s);
    }
}

/// An intermediate that the caller still holds keeps the buffer alive; the buffer is freed once, when it is released.
static void test_buffer_outlives_context_S27_9(void **state) {
    (void)state;
    set s;
    open_set(&s, rt_graph_diamond());
    tide_context *c = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO);
    rt_feed(c, s.p, &s.rig, 1);
    rt_run(c);
    tide_tensor *held = tide_tensor_ref(tide_context_value(c, tide_graph_find_value(s.p->graph, "b")));
    tide_context_destroy(c);
    assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), s.m->bytes);
    assert_true(((const float *)tide_tensor_const_data(held))[0] >= 0.0f);
    tide_tensor_unref(held);
    assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), 0);
    close_set(&s);
}

/// Outputs that no step writes are copied into blocks of their own after each run.
static void test_outputs_handed_through(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        tide_graph *g = rt_graph("through");
        rt_input(g, "x", "4");
        rt_weight(g, "w", "4", 7, 1);
        rt_node(g, "Tanh", "t", "x", "a");
        rt_node(g, "Tanh", "u", "a", "y");
        rt_output(g, "x");
        rt_output(g, "w");
        rt_output(g, "y");
        set s;
        open_set(&s, g);
        tide_context *c = rt_context(s.ip, modes[k], TIDE_FILL_POISON);
        rt_feed(c, s.p, &s.rig, 5);
        rt_run(c);
        const tide_tensor *x = tide_context_output(c, 0), *w = tide_context_output(c, 1);
        const tide_tensor *fed = tide_context_value(c, tide_graph_find_value(s.p->graph, "x"));
        assert_ptr_not_equal(x, fed);
        assert_memory_equal(tide_tensor_const_data(x), tide_tensor_const_data(fed), 16);
        assert_true(((const float *)tide_tensor_const_data(w))[3] == 10.0f);
        tide_context_stats st;
        tide_context_get_stats(c, &st);
        assert_int_equal(st.n_copied_bytes, 32);
        assert_int_equal(rt_peak(&s.rig, TIDE_KIND_DEFAULT), tide_memory_plan_predicted(s.m, TIDE_KIND_DEFAULT));
        tide_context_destroy(c);
        close_set(&s);
    }
}

/// Everything folded away: no input, no step, one constant output.
static void test_all_folded(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        tide_graph *g = rt_graph("constant");
        rt_weight(g, "a", "3", 1, 1);
        rt_weight(g, "b", "3", 10, 10);
        rt_node(g, "Add", "sum", "a,b", "y");
        rt_output(g, "y");
        set s;
        open_set(&s, g);
        assert_int_equal(s.p->n_steps, 0);
        tide_context *c = rt_context(s.ip, modes[k], TIDE_FILL_POISON);
        rt_run(c);
        assert_true(((const float *)tide_tensor_const_data(tide_context_output(c, 0)))[2] == 33.0f);
        tide_context_destroy(c);
        close_set(&s);
    }
}

/// Tensors without elements take no memory and no place.
static void test_no_elements(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        tide_graph *g = rt_graph("empty");
        rt_input(g, "x", "0x4");
        rt_node(g, "Tanh", "t", "x", "a");
        rt_node(g, "Tanh", "u", "a", "y");
        rt_output(g, "y");
        set s;
        open_set(&s, g);
        tide_context *c = rt_context(s.ip, modes[k], TIDE_FILL_POISON);
        rt_feed(c, s.p, &s.rig, 1);
        rt_run(c);
        assert_null(tide_tensor_const_data(tide_context_output(c, 0)));
        assert_int_equal(rt_n_allocs(&s.rig), 0);
        tide_context_destroy(c);
        close_set(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_buffer_S27_7_S27_8),
        tide_unit_test(test_two_names_two_objects_X1),
        tide_unit_test(test_zero_copy_S27_12),
        tide_unit_test(test_planned_needs_plan),
        tide_unit_test(test_nothing_to_place),
        tide_unit_test(test_inputs_in_order_S27_5),
        tide_unit_test(test_inputs_by_name_S27_5),
        tide_unit_test(test_input_refused),
        tide_unit_test(test_outputs_S27_6),
        tide_unit_test(test_output_outlives_context_S27_9),
        tide_unit_test(test_buffer_outlives_context_S27_9),
        tide_unit_test(test_outputs_handed_through),
        tide_unit_test(test_all_folded),
        tide_unit_test(test_no_elements),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
