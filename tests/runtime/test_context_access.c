// SPDX-License-Identifier: MIT
//
// What a run asks of the tensors before its first step: guards, tensors that others changed meanwhile, strided ones;
// and that its kernels take no memory. Lazy clones are in test_context_cow.c.
#include "context_test.h"
#include "core/runtime/value_operand.h"

// ---- guards ----

static tide_block *block_of(const tide_tensor *t) { return tide_tensor_storage(t)->block; }

/// A guard on anything the run needs stops it before the first step, with the name; without it the run goes on.
static void test_guards_are_named(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    tide_tensor *x = rt_tensor("4x15", 1), *x2 = rt_tensor("4x15", 2);
    set_x(&s, x);
    const struct {
        tide_block *block;
        uint32_t guard;
        const char *name;
    } cases[] = {
        {block_of(x), TIDE_BLOCK_FAIL_ACCESS, "input 'x'"},
        {block_of(tide_context_output(s.c, 0)), TIDE_BLOCK_FAIL_WRITE, "output 'y'"},
        {block_of(tide_context_output(s.c, 0)), TIDE_BLOCK_FAIL_ACCESS, "output 'y'"},
        {s.c->buffer, TIDE_BLOCK_FAIL_WRITE, "plan buffer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_block_set_guard(cases[i].block, cases[i].guard, 0);
        assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_BUSY);
        assert_text_has(err.msg, cases[i].name);
        assert_null(tide_scope_current());
        tide_block_set_guard(cases[i].block, 0, cases[i].guard);
        rt_run(s.c);
        assert_is_two_steps_of(tide_context_output(s.c, 0), floats(x));
    }
    tide_block_set_guard(block_of(x), TIDE_BLOCK_FAIL_WRITE, 0); // reading is all a run wants of an input
    rt_run(s.c);
    tide_block_set_guard(block_of(x2), TIDE_BLOCK_FAIL_ACCESS, 0);
    assert_tide_status(tide_context_set_inputs(s.c, &x2, 1, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "input 'x'");
    rt_run(s.c);
    assert_is_two_steps_of(tide_context_output(s.c, 0), floats(x));
    tide_block_set_guard(block_of(x2), 0, TIDE_BLOCK_FAIL_ACCESS);
    tide_tensor_unref(x);
    tide_tensor_unref(x2);
    close_set(&s);
}

// ---- what others did to the tensors meanwhile ----

/// Inputs and outputs are in other hands between runs: what no longer fits is refused, never read past its end.
static void test_changed_tensors_are_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const int64_t as_made[] = {4, 15}, smaller[] = {4, 10};
    const tide_shape fits = tide_shape_make(2, as_made), small = tide_shape_make(2, smaller);
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    tide_tensor *x = rt_tensor("4x15", 1), *y = tide_context_output(s.c, 0);
    set_x(&s, x);
    assert_tide_ok(tide_tensor_set_shape(x, &small, &err), &err);
    assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "input 'x' wants shape [4x15], got [4x10]");
    assert_tide_ok(tide_tensor_set_shape(x, &fits, &err), &err);
    assert_tide_ok(tide_tensor_set_shape(y, &small, &err), &err);
    assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "output 'y' was changed");
    assert_text_has(err.msg, "[4x10]");
    assert_tide_ok(tide_tensor_set_shape(y, &fits, &err), &err);
    rt_run(s.c);
    tide_tensor_unbind(y);
    assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "without memory");
    // Memory of the caller's own will do, and what lies behind it in the caller's block is not touched.
    float room[N + 4] = {0};
    room[N] = 42;
    tide_data_ptr ptr = tide_data_ptr_bare(room, TIDE_CPU);
    assert_tide_ok(tide_tensor_bind_external(y, &ptr, sizeof room, TIDE_KIND_DEFAULT, "mine", &err), &err);
    rt_run(s.c);
    assert_ptr_equal(floats(y), room);
    assert_is_two_steps_of(y, floats(x));
    assert_true(room[N] == 42);
    // It must not be the input's, though.
    assert_tide_ok(tide_tensor_bind(y, tide_tensor_storage(x), 0, &err), &err);
    assert_tide_status(tide_context_run(s.c, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "lies in memory that the same context writes");
    tide_tensor_unref(x);
    close_set(&s);
}

// ---- LT-6 ----

/// LT-6: a strided input is refused with the reason and the way out; its packed copy is taken.
static void test_strided_input_is_refused_LT_6(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const int32_t swap[] = {1, 0};
    static const int64_t full[] = {4, 15};
    const tide_shape shape = tide_shape_make(2, full);
    tide_tensor *tall = rt_tensor("15x4", 1), *row = rt_tensor("1x15", 2), *wide = rt_tensor("4x30", 3);
    tide_tensor *strided[3];
    assert_tide_ok(tide_tensor_permute(tall, swap, &strided[0], &err), &err);
    assert_tide_ok(tide_tensor_expand(row, &shape, &strided[1], &err), &err);
    assert_tide_ok(tide_tensor_slice(wide, 1, 0, 30, 2, &strided[2], &err), &err);
    static const char *const strides[] = {"[1x4]", "[0x1]", "[30x2]"};
    set s;
    open_set(&s, two_steps(), TIDE_RUN_PLANNED);
    for (size_t i = 0; i < 3; i++) {
        assert_tide_status(tide_context_set_inputs(s.c, &strided[i], 1, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, "input 'x' is not contiguous");
        assert_text_has(err.msg, strides[i]);
        assert_text_has(err.hint, "tide_tensor_contiguous");
        tide_tensor *packed;
        assert_tide_ok(tide_tensor_contiguous(strided[i], &packed, &err), &err);
        set_x(&s, packed);
        rt_run(s.c);
        assert_is_two_steps_of(tide_context_output(s.c, 0), floats(packed));
        tide_tensor_unref(packed);
        tide_tensor_unref(strided[i]);
    }
    tide_tensor_unref(tall);
    tide_tensor_unref(row);
    tide_tensor_unref(wide);
    close_set(&s);
}

/// LT-6: a strided constant is refused while the program is built.
static void test_strided_constant_is_refused_LT_6(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const int32_t swap[] = {1, 0};
    tide_tensor *tall = rt_tensor("3x2", 1), *strided;
    assert_tide_ok(tide_tensor_permute(tall, swap, &strided, &err), &err);
    tide_graph *g = rt_graph("strided");
    rt_input(g, "x", "4x2");
    uint32_t w;
    assert_tide_ok(tide_graph_add_value(g, "w", &w, &err), &err);
    tide_graph_set_constant(g, w, strided);
    rt_node(g, "MatMul", "m", "x,w", "y");
    rt_output(g, "y");
    tide_program *p = NULL;
    assert_tide_status(tide_program_build(g, NULL, &p, &err), TIDE_ERR_INVALID);
    assert_null(p);
    assert_text_has(err.msg, "constant 'w' is not contiguous");
    assert_text_has(err.hint, "tide_tensor_contiguous");
    tide_tensor_unref(strided);
    tide_tensor_unref(tall);
}

// ---- constants in other hands ----

/// x (4x3) * w (3x2); `w` stays in the caller's hands too.
static tide_graph *one_product(tide_tensor *w) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = rt_graph("product");
    rt_input(g, "x", "4x3");
    uint32_t w_i;
    assert_tide_ok(tide_graph_add_value(g, "w", &w_i, &err), &err);
    tide_graph_set_constant(g, w_i, w);
    rt_node(g, "MatMul", "m", "x,w", "y");
    rt_output(g, "y");
    return g;
}

/// A constant that its holder changed after the graph took it, or guards, is refused while the program is built.
static void test_changed_constants_are_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const int64_t less[] = {2, 2};
    const tide_shape smaller = tide_shape_make(2, less);
    static const char *const says[] = {"constant 'w' was changed: the graph has float32 [3x2], it is float32 [2x2]",
                                       "constant 'w' was changed: the graph has float32 [3x2], it is int32 [3x2]",
                                       "constant 'w' has no memory", "constant 'w': block"};
    for (int i = 0; i < 4; i++) {
        tide_tensor *w = rt_tensor("3x2", 1);
        tide_graph *g = one_product(w);
        if (i == 0) assert_tide_ok(tide_tensor_set_shape(w, &smaller, &err), &err);
        if (i == 1) assert_tide_ok(tide_tensor_set_dtype(w, TIDE_I32, &err), &err);
        if (i == 2) tide_tensor_unbind(w);
        if (i == 3) tide_block_set_guard(block_of(w), TIDE_BLOCK_FAIL_ACCESS, 0);
        tide_program *p = NULL;
        assert_tide_status(tide_program_build(g, NULL, &p, &err), i < 3 ? TIDE_ERR_INVALID : TIDE_ERR_BUSY);
        assert_text_has(err.msg, says[i]);
        tide_tensor_unref(w);
    }
}

/// A built program owns its constants: resizing the caller's tensor does not move them. X-6: the bytes that a run reads
/// stay at their address.
static void test_constants_stay_where_they_are(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const int64_t more[] = {300, 200};
    const tide_shape larger = tide_shape_make(2, more);
    tide_tensor *w = rt_tensor("3x2", 1), *was;
    assert_tide_ok(tide_tensor_clone(w, NULL, &was, &err), &err);
    const void *const before = floats(w);
    tide_program *p = NULL;
    for (int64_t n = 0; p == NULL; n++) { // and each piece of memory that this takes may be missing
        tide_graph *fresh = one_product(w);
        tide_host_fail_after(n);
        const tide_status st = tide_program_build(fresh, NULL, &p, &err);
        tide_host_fail_after(-1);
        assert_true(st == TIDE_OK ? n > 3 : st == TIDE_ERR_NOMEM);
    }
    assert_tide_ok(tide_tensor_resize(w, &larger, NULL, &err), &err); // moves to other memory
    assert_ptr_not_equal(floats(w), before);
    tide_tensor_unref(w);
    tide_operand at;
    assert_tide_ok(tide__value_operand(p->graph, tide_graph_find_value(p->graph, "w"), &at, &err), &err);
    assert_ptr_equal(at.data, before);
    assert_memory_equal(at.data, floats(was), tide_tensor_size_bytes(was));
    tide_tensor_unref(was);
    tide_program_unref(p);
}

/// The hash covers the weights; a guard on them does not change it.
static void test_hash_of_guarded_weights(void **state) {
    (void)state;
    set s;
    open_set(&s, rt_graph_conv(), TIDE_RUN_PLANNED);
    const uint64_t hash = tide_inference_plan_hash(s.ip);
    for (uint32_t v = 0; v < s.p->graph->n_values; v++) {
        if (s.ip->weights[v] != NULL) tide_block_set_guard(block_of(s.ip->weights[v]), TIDE_BLOCK_FAIL_ACCESS, 0);
    }
    assert_true(tide_inference_plan_hash(s.ip) == hash);
    close_set(&s);
}

// ---- LT-31 ----

enum { MAX_HOOKED = 128 };
static struct {
    const tide_op_def *real[MAX_HOOKED];
    const set *s;
    size_t n_calls;
} hook;

/// Around the real kernel: neither tensor memory nor memory of ours is taken inside.
static tide_status run_hooked(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    size_t step_i = 0;
    while (&hook.s->p->steps[step_i].kernel != k) step_i++;
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    const uint64_t n_allocs = rt_n_allocs(&hook.s->rig);
    const tide_status st = hook.real[step_i]->run(k, args, err);
    tide_host_get_stats(&after);
    assert_int_equal(after.n_allocs, before.n_allocs);
    assert_int_equal(rt_n_allocs(&hook.s->rig), n_allocs);
    hook.n_calls++;
    return st;
}

/// Every kernel of `g` under the hook, twice in both modes.
static void assert_kernels_take_no_memory(tide_graph *g) {
    static tide_op_def hooked[MAX_HOOKED];
    set s;
    open_set(&s, g, TIDE_RUN_PLANNED);
    assert_true(s.p->n_steps <= MAX_HOOKED);
    for (size_t k = 0; k < s.p->n_steps; k++) {
        hook.real[k] = s.p->steps[k].kernel.def;
        hooked[k] = *hook.real[k];
        hooked[k].run = run_hooked;
        s.p->steps[k].kernel.def = &hooked[k];
    }
    hook.s = &s;
    hook.n_calls = 0;
    for (int mode = 0; mode < 2; mode++) {
        tide_context *c = rt_context(s.ip, modes[mode], TIDE_FILL_ZERO);
        rt_feed(c, s.p, &s.rig, 1);
        rt_run(c);
        rt_run(c);
        tide_context_destroy(c);
    }
    assert_int_equal(hook.n_calls, 4 * s.p->n_steps);
    for (size_t k = 0; k < s.p->n_steps; k++) s.p->steps[k].kernel.def = hook.real[k];
    close_set(&s);
}

/// LT-31: kernels never choose memory: they write what the plan, a birth or the caller gives them. Hand-made graphs and
/// models with convolutions, attention, normalisation, pooling and joins.
static void test_kernels_take_no_memory_LT_31(void **state) {
    (void)state;
    for (size_t i = 0;; i++) {
        tide_graph *g = rt_graph_nth(i);
        if (g == NULL) break;
        assert_kernels_take_no_memory(g);
    }
    static const char *const models[] = {"lenet5", "transformer_encoder", "inception_block", "split_two_outputs",
                                         "view_chain"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        assert_kernels_take_no_memory(rt_graph_sample(models[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_guards_are_named),
        tide_unit_test(test_changed_tensors_are_refused),
        tide_unit_test(test_strided_input_is_refused_LT_6),
        tide_unit_test(test_strided_constant_is_refused_LT_6),
        tide_unit_test(test_changed_constants_are_refused),
        tide_unit_test(test_constants_stay_where_they_are),
        tide_unit_test(test_hash_of_guarded_weights),
        tide_unit_test(test_kernels_take_no_memory_LT_31),
    };
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
