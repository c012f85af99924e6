// SPDX-License-Identifier: MIT
//
// Shape inference, folding and the binding of open shapes, with operators of the test's own.
#include "tests/graph/fake_ops.h"

static const int64_t dims23[] = {2, 3};

static void assert_shape(const tide_graph *g, const char *name, const char *want) {
    char got[192];
    const tide_value *v = &g->values[tide_graph_find_value(g, name)];
    assert_true(v->has_shape);
    assert_string_equal(tide_shape_format(&v->shape, got, sizeof got), want);
}

static void test_types_flow(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    add_input_f32(g, "x", 2, dims23);
    add_op(g, "Double", "second", "a", "b"); // before its producer
    add_op(g, "Double", "first", "x", "a");
    add_output_named(g, "b");
    assert_tide_ok(sort_and_infer(g, true, &err), &err);
    assert_shape(g, "b", "[2x3]");
    assert_int_equal(g->values[value_of(g, "b")].dtype, TIDE_F32);
    assert_int_equal(n_live(g), 2);
    assert_int_equal(fake_calls.run, 0);
    tide_graph_destroy(g);
}

/// x -> Shape -> Fill -> Sum(x, .): Shape needs no data, so Fill's operand is known.
static tide_graph *shape_chain(void) {
    tide_graph *g = new_graph();
    add_input_f32(g, "x", 2, dims23);
    add_op(g, "Shape", "shape", "x", "s");
    add_op(g, "Fill", "fill", "s", "f");
    add_op(g, "Sum", "sum", "x,f", "y");
    add_output_named(g, "y");
    return g;
}

static void test_fold(void **state) {
    (void)state;
    tide_graph *g = shape_chain();
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(sort_and_infer(g, true, &err), &err);
    assert_shape(g, "f", "[2x3]");
    assert_int_equal(n_live(g), 1);
    assert_true(g->nodes[0].dead && g->nodes[1].dead);
    assert_true(floats_of(g, "f")[5] == 7.0f);
    assert_int_equal(g->values[value_of(g, "f")].producer, TIDE_NO_NODE);
    assert_null(g->values[value_of(g, "y")].constant);
    assert_tide_ok(tide_graph_validate(g, &err), &err);
    assert_int_equal(fake_calls.run, 2);
    size_t killed;
    assert_tide_ok(tide_graph_prune(g, &killed, &err), &err);
    assert_null(g->values[value_of(g, "s")].constant); // only Fill read it
    assert_non_null(g->values[value_of(g, "f")].constant);
    tide_graph_destroy(g);
}

static void test_without_fold_shapes_are_known_and_nodes_live(void **state) {
    (void)state;
    tide_graph *g = shape_chain();
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(sort_and_infer(g, false, &err), &err);
    assert_shape(g, "y", "[2x3]");
    assert_int_equal(n_live(g), 3);
    assert_null(g->values[value_of(g, "s")].constant);
    assert_null(g->values[value_of(g, "f")].constant);
    assert_tide_ok(tide_graph_validate(g, &err), &err);
    tide_graph_destroy(g);
}

static void test_fold_of_constants(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    const float data[6] = {1, 2, 3, 4, 5, 6};
    add_constant_of(g, "k", TIDE_F32, 2, dims23, data);
    add_op(g, "Double", "d", "k", "a");
    add_op(g, "Sum", "s", "a,,k", "b"); // an omitted operand does not stop folding
    add_op(g, "Random", "r", "k", "c");
    add_op(g, "Planned", "p", "k", "d");
    add_output_named(g, "b");
    add_output_named(g, "c");
    add_output_named(g, "d");
    assert_tide_ok(sort_and_infer(g, true, &err), &err);
    assert_true(floats_of(g, "b")[5] == 18.0f);
    assert_int_equal(n_live(g), 2);
    assert_null(g->values[value_of(g, "c")].constant);
    assert_null(g->values[value_of(g, "d")].constant);
    assert_tide_ok(tide_graph_validate(g, &err), &err); // a graph output may be a constant
    tide_graph_destroy(g);
}

static void test_constant_of_no_elements_is_known(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    const int64_t none[] = {0};
    add_constant_of(g, "s", TIDE_I64, 1, none, NULL); // the shape of a scalar
    add_op(g, "Fill", "fill", "s", "f");
    add_output_named(g, "f");
    assert_tide_ok(sort_and_infer(g, true, &err), &err);
    assert_shape(g, "f", "[]");
    assert_true(floats_of(g, "f")[0] == 7.0f);
    tide_graph_destroy(g);
}

static void test_kernel_is_undone_after_folding(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        tide_graph *g = new_graph();
        tide_error err = TIDE_ERROR_INIT;
        const float data[6] = {1, 2, 3, 4, 5, 6};
        add_constant_of(g, "k", TIDE_F32, 2, dims23, data);
        add_op(g, "Scratch", "scratchy", "k", "a");
        add_output_named(g, "a");
        tide_order o = {0};
        resolve_fakes(g);
        fake_calls.run_status = fails ? TIDE_ERR_BACKEND : TIDE_OK;
        assert_tide_ok(tide_graph_sort(g, &o, &err), &err);
        assert_tide_status(tide_graph_infer(g, &o, true, &err), fake_calls.run_status);
        if (fails) {
            assert_text_has(err.msg, "Scratch 'scratchy': no luck");
            assert_text_has(err.where, "test.json: node 'scratchy'");
        } else {
            assert_true(floats_of(g, "a")[5] == 6.0f);
        }
        assert_int_equal(fake_calls.prepare, 1);
        assert_int_equal(fake_calls.destroy, 1);
        assert_int_equal(fake_calls.exec_create, 1);
        assert_int_equal(fake_calls.exec_destroy, 1);
        tide_order_deinit(&o);
        tide_graph_destroy(g);
    }
}

// ---- sizes are never guessed ----

static void open_input(tide_graph *g, const char *name, const char *symbol) {
    const int64_t dims[] = {TIDE_DIM_UNKNOWN, 3, TIDE_DIM_UNKNOWN};
    add_input_f32(g, name, 3, dims);
    tide_value *v = &g->values[value_of(g, name)];
    v->dim_names = tide_host_calloc(3, sizeof *v->dim_names);
    v->dim_names[0] = tide_host_strdup(symbol);
}

static void test_unknown_size_names_the_tensor_S23_19(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    open_input(g, "images", "batch");
    add_op(g, "Double", "d", "images", "y");
    add_output_named(g, "y");
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_UNKNOWN_SIZE);
    assert_text_has(err.msg, "'images'");
    assert_text_has(err.note, "[?x3x?]");
    assert_text_has(err.note, "batch");
    assert_string_equal(err.hint, "give a number for each ?: --shape images=?x3x?");
    assert_int_equal(fake_calls.infer, 0);
    assert_false(g->values[value_of(g, "y")].has_shape);
    tide_graph_destroy(g);
}

static void test_input_without_shape_or_type_S23_19(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    add_input_f32(g, "x", 0, NULL);
    tide_value *x = &g->values[value_of(g, "x")];
    add_op(g, "Double", "d", "x", "y");
    x->has_shape = false;
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_UNKNOWN_SIZE);
    assert_text_has(err.note, "'x' has no shape");
    assert_text_has(err.hint, "--shape x=1x3x224x224");
    x->dtype = TIDE_DTYPE_UNDEFINED;
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_UNKNOWN_SIZE);
    assert_text_has(err.msg, "'x'");
    tide_graph_destroy(g);
}

static void test_size_that_depends_on_data_S23_19(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    add_input_f32(g, "x", 2, dims23);
    add_op(g, "Open", "nonzero", "x", "rows");
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_UNKNOWN_SIZE);
    assert_text_has(err.msg, "'rows'");
    assert_text_has(err.msg, "'nonzero'");
    tide_graph_destroy(g);

    g = new_graph(); // Fill's operand is an activation: the operator itself says so
    add_input_f32(g, "x", 2, dims23);
    add_op(g, "Double", "d", "x", "s");
    add_op(g, "Fill", "fill", "s", "y");
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_UNKNOWN_SIZE);
    assert_text_has(err.msg, "Fill 'fill'");
    tide_graph_destroy(g);
}

static void test_operator_that_answers_nothing(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    add_input_f32(g, "x", 2, dims23);
    add_op(g, "Lazy", "lazy", "x", "y");
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_RUNTIME);
    assert_text_has(err.msg, "Lazy 'lazy'");
    assert_text_has(err.msg, "'y'");
    tide_graph_destroy(g);
}

static void test_file_contradicts_operator(void **state) {
    (void)state;
    const int64_t open[] = {TIDE_DIM_UNKNOWN, 3}, wrong[] = {2, 4};
    static const struct {
        tide_dtype dtype;
        int32_t rank;
        bool good;
    } rows[] = {{TIDE_F32, 2, true}, {TIDE_DTYPE_UNDEFINED, 2, true}, {TIDE_F16, 2, false}, {TIDE_F32, 1, false}};
    for (size_t i = 0; i < 5; i++) {
        tide_graph *g = new_graph();
        tide_error err = TIDE_ERROR_INIT;
        add_input_f32(g, "x", 2, dims23);
        add_op(g, "Double", "d", "x", "y");
        bool good = false;
        if (i < 4) {
            set_type(g, "y", rows[i].dtype, rows[i].rank, open);
            good = rows[i].good;
        } else {
            set_type(g, "y", TIDE_F32, 2, wrong);
        }
        assert_tide_status(sort_and_infer(g, true, &err), good ? TIDE_OK : TIDE_ERR_BAD_INPUT);
        if (!good) {
            assert_text_has(err.msg, "'y' comes out as float32 [2x3]");
            assert_text_has(err.msg, "Double 'd'");
        }
        tide_graph_destroy(g);
    }
}

static void test_size_that_overflows(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    const int64_t huge[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    add_input_f32(g, "x", 2, huge);
    add_op(g, "Double", "d", "x", "y");
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_OVERFLOW);
    assert_text_has(err.msg, "tensor 'x'");
    tide_graph_destroy(g);
}

/// Operators multiply some of the extents: beside a 0, too, all others must stay within 63 bits.
static void test_extents_beside_a_zero_that_overflow(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const int64_t empty[] = {INT64_C(1) << 40, 0, INT64_C(1) << 40};
    tide_graph *g = new_graph();
    add_input_f32(g, "x", 3, empty);
    add_op(g, "Double", "d", "x", "y");
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_OVERFLOW);
    assert_text_has(err.msg, "tensor 'x': shape [1099511627776x0x1099511627776] is empty");
    tide_graph_destroy(g);

    g = new_graph(); // the same as an output
    add_constant_of(g, "s", TIDE_I64, 1, (const int64_t[]){3}, empty);
    add_op(g, "Fill", "f", "s", "y");
    assert_tide_status(sort_and_infer(g, true, &err), TIDE_ERR_OVERFLOW);
    assert_text_has(err.msg, "tensor 'y': shape [1099511627776x0x1099511627776] is empty");
    tide_graph_destroy(g);
}

// ---- the budget of folding ----

/// Twelve bytes of file ask for 16 GiB: the node stays one, and memory for it is the plan's business.
static void test_large_results_are_not_folded(void **state) {
    (void)state;
    const int64_t extents[] = {65536, 65536}, n = 2;
    for (int fold = 0; fold < 2; fold++) {
        tide_graph *g = new_graph();
        tide_error err = TIDE_ERROR_INIT;
        add_constant_of(g, "s", TIDE_I64, 1, &n, extents);
        add_op(g, "Fill", "fill", "s", "f");
        add_op(g, "Double", "double", "f", "y");
        add_op(g, "Shape", "shape", "y", "z"); // goes on: it reads no content
        assert_tide_ok(sort_and_infer(g, fold, &err), &err);
        assert_shape(g, "y", "[65536x65536]");
        assert_int_equal(n_live(g), fold ? 2 : 3);
        assert_int_equal(fake_calls.run, 1);
        assert_null(g->values[value_of(g, "f")].constant);
        tide_graph_destroy(g);
    }
}

/// To the byte: what is just as large as the limit is folded, and what follows from a shape alone goes on behind what
/// stays.
static void test_a_limit_of_one_constant(void **state) {
    (void)state;
    const int64_t extent = 1000, n = 1;
    for (uint64_t limit = 3999; limit <= 4000; limit++) {
        tide_graph *g = new_graph();
        tide_error err = TIDE_ERROR_INIT;
        g->fold_max_bytes = limit;
        add_constant_of(g, "s", TIDE_I64, 1, &n, &extent);
        add_op(g, "Fill", "fill", "s", "f");
        add_op(g, "Double", "double", "f", "y");
        add_op(g, "Shape", "shape", "y", "z");
        assert_tide_ok(sort_and_infer(g, true, &err), &err);
        assert_shape(g, "y", "[1000]");
        assert_int_equal(n_live(g), limit == 3999 ? 2 : 0);
        assert_non_null(g->values[value_of(g, "z")].constant);
        tide_graph_destroy(g);
    }
}

/// Results that would each fit are counted together.
static void test_folding_has_one_budget(void **state) {
    (void)state;
    const int64_t extents[] = {150, 1024, 1024}, n = 3; // 600 MiB; the second does not fit into 1 GiB
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    add_constant_of(g, "s", TIDE_I64, 1, &n, extents);
    add_op(g, "Blank", "first", "s", "a");
    add_op(g, "Blank", "second", "s", "b");
    assert_tide_ok(sort_and_infer(g, true, &err), &err);
    assert_int_equal(n_live(g), 1);
    assert_non_null(g->values[value_of(g, "a")].constant);
    assert_null(g->values[value_of(g, "b")].constant);
    tide_graph_destroy(g);
}

static void test_heavy_nodes_are_not_folded(void **state) {
    (void)state;
    float data[20000] = {0}; // 2e10 steps at a million each; the budget is 2^34
    for (int n = 2; n <= 20000; n *= 100) {
        const int64_t extent = n;
        tide_graph *g = new_graph();
        tide_error err = TIDE_ERROR_INIT;
        add_constant_of(g, "c", TIDE_F32, 1, &extent, data);
        add_op(g, "Heavy", "heavy", "c", "y");
        assert_tide_ok(sort_and_infer(g, true, &err), &err);
        assert_int_equal(n_live(g), n == 20000);
        tide_graph_destroy(g);
    }
}

static void test_unresolved_operator(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    tide_order o = {0};
    add_input_f32(g, "x", 2, dims23);
    add_op(g, "Double", "d", "x", "y");
    assert_tide_ok(tide_graph_sort(g, &o, &err), &err);
    assert_tide_status(tide_graph_infer(g, &o, true, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "Double 'd'");
    tide_order_deinit(&o);
    tide_graph_destroy(g);
}

// ---- binding ----

static tide_status bind(tide_graph *g, const char *name, int32_t rank, const int64_t *dims, tide_error *err) {
    const tide_shape_binding b = {.name = name, .shape = tide_shape_make(rank, dims)};
    return tide_graph_bind_shapes(g, &b, 1, err);
}

static void test_bind_shapes(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    const int64_t good[] = {4, 3, 8}, wrong[] = {4, 5, 8}, open[] = {4, 3, TIDE_DIM_UNKNOWN};
    open_input(g, "images", "batch");
    add_op(g, "Double", "d", "images", "y");

    assert_tide_status(bind(g, "imges", 3, good, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "'imges'");
    assert_text_has(err.note, "images[?x3x?]");
    assert_tide_status(bind(g, "y", 3, good, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(bind(g, "images", 2, good, &err), TIDE_ERR_INVALID);
    assert_tide_status(bind(g, "images", 3, wrong, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "extent 1");
    assert_tide_status(bind(g, "images", 3, open, &err), TIDE_ERR_INVALID);
    const tide_shape_binding twice[] = {{"images", tide_shape_make(3, good)}, {"images", tide_shape_make(3, wrong)}};
    assert_tide_status(tide_graph_bind_shapes(g, twice, 2, &err), TIDE_ERR_INVALID);
    assert_shape(g, "images", "[?x3x?]"); // nothing of all this left a trace

    assert_tide_ok(bind(g, "images", 3, good, &err), &err);
    assert_tide_ok(sort_and_infer(g, true, &err), &err);
    assert_shape(g, "y", "[4x3x8]");
    tide_graph_destroy(g);
}

static void test_symbols_spread_to_other_inputs(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    const int64_t four[] = {4, 3, 8}, five[] = {5, 3, 8};
    open_input(g, "a", "batch");
    open_input(g, "b", "batch");
    open_input(g, "c", "other");
    assert_tide_ok(bind(g, "a", 3, four, &err), &err);
    assert_shape(g, "b", "[4x3x?]");
    assert_shape(g, "c", "[?x3x?]");
    open_input(g, "d", "batch");
    g->values[value_of(g, "b")].shape.dims[0] = 5; // two answers are none
    assert_tide_ok(bind(g, "c", 3, five, &err), &err);
    assert_shape(g, "d", "[?x3x?]");
    tide_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_types_flow),
        tide_unit_test(test_fold),
        tide_unit_test(test_without_fold_shapes_are_known_and_nodes_live),
        tide_unit_test(test_fold_of_constants),
        tide_unit_test(test_constant_of_no_elements_is_known),
        tide_unit_test(test_kernel_is_undone_after_folding),
        tide_unit_test(test_unknown_size_names_the_tensor_S23_19),
        tide_unit_test(test_input_without_shape_or_type_S23_19),
        tide_unit_test(test_size_that_depends_on_data_S23_19),
        tide_unit_test(test_operator_that_answers_nothing),
        tide_unit_test(test_file_contradicts_operator),
        tide_unit_test(test_size_that_overflows),
        tide_unit_test(test_extents_beside_a_zero_that_overflow),
        tide_unit_test(test_large_results_are_not_folded),
        tide_unit_test(test_a_limit_of_one_constant),
        tide_unit_test(test_folding_has_one_budget),
        tide_unit_test(test_heavy_nodes_are_not_folded),
        tide_unit_test(test_unresolved_operator),
        tide_unit_test(test_bind_shapes),
        tide_unit_test(test_symbols_spread_to_other_inputs),
    };
    // The registry of the process is made on first use and stays: outside the leak count.
    (void)tide_registry_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
