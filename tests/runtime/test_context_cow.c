// SPDX-License-Identifier: MIT
//
// Lazy clones around a run: of outputs, of inputs that are written meanwhile, of planned tensors and of constants.
#include "context_test.h"

static tide_tensor *lazy(tide_tensor *t, bool want_copied) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *clone;
    bool copied = !want_copied;
    assert_tide_ok(tide_tensor_lazy_clone(t, NULL, &clone, &copied, &err), &err);
    assert_int_equal(copied, want_copied);
    return clone;
}

/// A lazy clone of an output keeps its bytes over the next run: the output gets memory of its own, once.
static void test_clone_of_an_output_keeps_its_bytes(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        set s;
        open_set(&s, two_steps(), modes[k]);
        tide_tensor *y = tide_context_output(s.c, 0);
        tide_tensor *x1 = rt_tensor("4x15", 1), *x2 = rt_tensor("4x15", 2);
        set_x(&s, x1);
        rt_run(s.c);
        tide_tensor *kept = lazy(y, false);
        assert_ptr_equal(floats(kept), floats(y));
        const uint64_t n_copies = tide_block_n_copies();
        set_x(&s, x2);
        rt_run(s.c);
        assert_int_equal(tide_block_n_copies(), n_copies + 1);
        assert_ptr_not_equal(floats(kept), floats(y));
        assert_ptr_equal(y, tide_context_output(s.c, 0)); // the same handle
        assert_is_two_steps_of(kept, floats(x1));
        assert_is_two_steps_of(y, floats(x2));
        const uint64_t n_allocs = rt_n_allocs(&s.rig);
        rt_run(s.c);
        if (modes[k] == TIDE_RUN_PLANNED) assert_int_equal(rt_n_allocs(&s.rig), n_allocs);
        assert_int_equal(tide_block_n_copies(), n_copies + 1);
        tide_tensor_unref(kept);
        tide_tensor_unref(x1);
        tide_tensor_unref(x2);
        close_set(&s);
    }
}

/// The clone may be the next input: a loop feeds outputs back without a copy.
static void test_clone_of_an_output_is_an_input(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        set s;
        open_set(&s, two_steps(), modes[k]);
        tide_tensor *x = rt_tensor("4x15", 1);
        set_x(&s, x);
        rt_run(s.c);
        for (int turn = 0; turn < 3; turn++) {
            tide_tensor *clone = lazy(tide_context_output(s.c, 0), false);
            set_x(&s, clone);
            float was[N];
            memcpy(was, floats(clone), sizeof was);
            rt_run(s.c);
            assert_is_two_steps_of(tide_context_output(s.c, 0), was);
            tide_tensor_unref(clone);
        }
        tide_tensor_unref(x);
        close_set(&s);
    }
}

/// An input that was written after it was set, and moved by that, is seen.
static void test_written_input_is_seen(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (size_t k = 0; k < 2; k++) {
        set s;
        open_set(&s, two_steps(), modes[k]);
        tide_tensor *x = rt_tensor("4x15", 1);
        set_x(&s, x);
        rt_run(s.c);
        tide_tensor *old = lazy(x, false);
        void *data;
        const void *before = floats(x);
        assert_tide_ok(tide_tensor_write(x, &data, &err), &err);
        assert_ptr_not_equal(data, before);
        for (size_t i = 0; i < N; i++) ((float *)data)[i] = 0.01f * (float)i;
        rt_run(s.c);
        assert_is_two_steps_of(tide_context_output(s.c, 0), data);
        tide_tensor_unref(old);
        tide_tensor_unref(x);
        close_set(&s);
    }
}

/// views inside a plan are copies, each with a place and a lifetime of its own, or aliases, which share one
/// lifetime and copy nothing; under reuse the chain is right.
static void test_view_chain_X6(void **state) {
    (void)state;
    static const int64_t three_four[] = {3, 4}, from[] = {1}, to[] = {3}, axis[] = {0};
    for (size_t k = 0; k < 4; k++) {
        tide_graph *g = rt_graph("views");
        rt_input(g, "x", "12");
        rt_weight_i64(g, "shape", three_four, 2);
        rt_weight_i64(g, "starts", from, 1);
        rt_weight_i64(g, "ends", to, 1);
        rt_weight_i64(g, "axes", axis, 1);
        rt_node(g, "Tanh", "source", "x", "a");
        rt_node(g, "Reshape", "reshape", "a,shape", "b");
        rt_node(g, "Slice", "slice", "b,starts,ends,axes", "c"); // rows 1 and 2
        rt_node(g, "Identity", "identity", "c", "d");
        rt_node(g, "Tanh", "other", "a", "e"); // the source is read again behind its views
        rt_node(g, "Reshape", "again", "e,shape", "f");
        rt_node(g, "Slice", "cut", "f,starts,ends,axes", "h");
        rt_node(g, "Sub", "sink", "d,h", "y");
        rt_output(g, "y");
        set s;
        open_set_aliased(&s, g, modes[k % 2], k < 2 ? 0 : RT_ALL_ALIASES);
        tide_tensor *x = rt_tensor("12", 5);
        set_x(&s, x);
        for (int run = 0; run < 2; run++) {
            rt_run(s.c);
            for (size_t i = 0; i < 8; i++) {
                const float t = tanhf(floats(x)[4 + i]);
                assert_float_equal(floats(tide_context_output(s.c, 0))[i], t - tanhf(t), 1e-6);
            }
        }
        assert_true(s.m->bytes < s.m->naive_bytes); // there was reuse
        tide_context_stats st;
        tide_context_get_stats(s.c, &st);
        // Two of 12 floats, three of 8. Rows of 16 B: the slices begin where no alias may, and stay copies.
        const bool aliased = k == 3;
        assert_int_equal(st.n_view_bytes, 2 * (aliased ? 2 * 32 : 2 * 48 + 3 * 32));
        tide_tensor_unref(x);
        close_set(&s);
    }
}

/// X-6, PT-21: a planned slice is not simple: its lazy clone is a copy, and the buffer stays where it is.
static void test_clone_of_a_planned_tensor_copies_X6(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    tide_context_destroy(s.c);
    s.c = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO); // intermediates stay to be looked at
    tide_tensor *x = rt_tensor("4x15", 1), *x2 = rt_tensor("4x15", 2);
    set_x(&s, x);
    rt_run(s.c);
    const char *base = tide_context_buffer(s.c);
    tide_tensor *a = tide_context_value(s.c, tide_graph_find_value(s.p->graph, "a"));
    tide_tensor *clone = lazy(a, true);
    const char *at = (const char *)floats(clone);
    assert_true(at < base || at >= base + s.m->bytes);
    assert_false(tide_tensor_is_cow(a));
    set_x(&s, x2);
    rt_run(s.c);
    assert_ptr_equal(tide_context_buffer(s.c), base);
    for (size_t i = 0; i < N; i++) {
        assert_float_equal(floats(clone)[i], tanhf(floats(x)[i]), 1e-5);
        assert_float_equal(floats(a)[i], tanhf(floats(x2)[i]), 1e-5);
    }
    void *unused;
    assert_tide_ok(tide_tensor_write(a, &unused, &err), &err);
    assert_ptr_equal(tide_context_buffer(s.c), base);
    tide_tensor_unref(clone);
    tide_tensor_unref(x);
    tide_tensor_unref(x2);
    close_set(&s);
}

/// The same of one that shares its bytes: the clone is of its own, whatever is written over the tensor afterwards.
static void test_clone_of_an_alias_copies_X6(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const int64_t flat[] = {-1};
    tide_graph *g = rt_graph("shared");
    rt_input(g, "x", "4x15");
    rt_weight_i64(g, "flat", flat, 1);
    rt_node(g, "Tanh", "make", "x", "a");
    rt_node(g, "Reshape", "view", "a,flat", "b");
    rt_node(g, "Neg", "over", "b", "c"); // takes their place
    rt_node(g, "Sigmoid", "last", "c", "y");
    rt_output(g, "y");
    set s;
    open_set_aliased(&s, g, TIDE_RUN_PLANNED, RT_ALL_ALIASES);
    tide_context_destroy(s.c);
    s.c = rt_context(s.ip, TIDE_RUN_PLANNED, TIDE_FILL_ZERO); // intermediates stay to be looked at
    tide_tensor *x = rt_tensor("4x15", 1), *x2 = rt_tensor("4x15", 2);
    set_x(&s, x);
    rt_run(s.c);
    tide_tensor *a = tide_context_value(s.c, tide_graph_find_value(s.p->graph, "a"));
    tide_tensor *b = tide_context_value(s.c, tide_graph_find_value(s.p->graph, "b"));
    tide_tensor *c = tide_context_value(s.c, tide_graph_find_value(s.p->graph, "c"));
    assert_ptr_equal(floats(a), floats(b));
    assert_ptr_equal(floats(a), floats(c));
    tide_tensor *clone = lazy(b, true);
    const char *base = tide_context_buffer(s.c), *at = (const char *)floats(clone);
    assert_true(at < base || at >= base + s.m->bytes);
    void *unused;
    assert_tide_ok(tide_tensor_write(a, &unused, &err), &err); // not simple, not shared: it stays where it is
    assert_ptr_equal(floats(a), floats(b));
    set_x(&s, x2);
    rt_run(s.c);
    for (size_t i = 0; i < N; i++) assert_float_equal(floats(clone)[i], -tanhf(floats(x)[i]), 1e-5); // as c left it
    tide_tensor_unref(clone);
    tide_tensor_unref(x);
    tide_tensor_unref(x2);
    close_set(&s);
}

/// Kernels hold the addresses of constants: those are fixed, and one that shared its memory gets its own first.
static void test_constants_are_fixed(void **state) {
    (void)state;
    tide_graph *g = rt_graph_conv();
    tide_tensor *mine = lazy(g->values[tide_graph_find_value(g, "w1")].constant, false);
    set s;
    open_set(&s, g, TIDE_RUN_PLANNED);
    const uint32_t w1 = tide_graph_find_value(s.p->graph, "w1");
    tide_tensor *weight = s.ip->weights[w1], *constant = s.p->graph->values[w1].constant;
    assert_non_null(weight);
    assert_false(tide_tensor_is_cow(constant));
    assert_false(tide_tensor_is_alias(constant, mine));
    assert_memory_equal(floats(constant), floats(mine), tide_tensor_size_bytes(mine));
    tide_tensor *copy = lazy(weight, true);
    assert_memory_equal(floats(copy), floats(mine), tide_tensor_size_bytes(mine));
    rt_feed(s.c, s.p, &s.rig, 1);
    rt_run(s.c);
    tide_tensor_unref(copy);
    tide_tensor_unref(mine);
    close_set(&s);
}

/// S28-20: reuse allocates nothing, owners share, and what is held past the context is readable until it is let go.
static void test_output_past_its_context_S28_20(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        set s;
        open_set(&s, two_steps(), modes[k]);
        tide_tensor *x = rt_tensor("4x15", 1);
        set_x(&s, x);
        rt_run(s.c);
        tide_tensor *held = tide_tensor_ref(tide_context_output(s.c, 0)), *clone = lazy(held, false);
        assert_int_equal(rt_live(&s.rig, TIDE_KIND_DEFAULT), 256);
        tide_context_destroy(s.c);
        s.c = NULL;
        assert_int_equal(rt_live(&s.rig, TIDE_KIND_WORKSPACE), 0);
        assert_is_two_steps_of(held, floats(x));
        tide_tensor_unref(held);
        assert_is_two_steps_of(clone, floats(x));
        assert_int_equal(rt_live(&s.rig, TIDE_KIND_DEFAULT), 256);
        tide_tensor_unref(clone);
        assert_int_equal(rt_live(&s.rig, TIDE_KIND_DEFAULT), 0);
        tide_tensor_unref(x);
        close_set(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_clone_of_an_output_keeps_its_bytes),
        tide_unit_test(test_clone_of_an_output_is_an_input),
        tide_unit_test(test_written_input_is_seen),
        tide_unit_test(test_view_chain_X6),
        tide_unit_test(test_clone_of_a_planned_tensor_copies_X6),
        tide_unit_test(test_clone_of_an_alias_copies_X6),
        tide_unit_test(test_constants_are_fixed),
        tide_unit_test(test_output_past_its_context_S28_20),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
