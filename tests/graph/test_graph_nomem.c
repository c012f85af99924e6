// SPDX-License-Identifier: MIT
//
// Out of memory as a loop: the 1st, 2nd, 3rd … allocation of an operation fails until none is left. Each time the
// answer is TIDE_ERR_NOMEM and nothing leaks.
#include "tests/graph/fake_ops.h"
#include "tests/graph/onnx_fixture.h"

typedef tide_status (*operation)(void *ctx, tide_error *err);

static uint64_t host_blocks(void) {
    tide_host_stats s;
    tide_host_get_stats(&s);
    return s.n_live;
}

/// Runs `op` with a failure at ever later allocations. @return how many failures it took
static int fail_each(operation op, void *ctx) {
    for (int n = 0; n < 10000; n++) {
        tide_error err = TIDE_ERROR_INIT;
        const uint64_t before = host_blocks();
        tide_host_fail_after(n);
        const tide_status st = op(ctx, &err);
        tide_host_fail_after(-1);
        if (host_blocks() != before) fail_msg("failure %d leaks", n);
        if (st == TIDE_OK) return n;
        if (st != TIDE_ERR_NOMEM) fail_msg("failure %d: %s: %s", n, tide_status_name(st), err.msg);
        assert_true(err.msg[0] != '\0');
    }
    fail_msg("no end");
    return 0;
}

static tide_status op_import_onnx(void *ctx, tide_error *err) {
    tide_graph *g = NULL;
    const tide_status st = import_fixture(ctx, &g, err);
    if (st != TIDE_OK) assert_null(g);
    tide_graph_destroy(g);
    return st;
}

static void test_onnx_import(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    int64_t ints[] = {1, 2};
    ProtobufCBinaryData strings[] = {{1, (uint8_t *)TEXT("a")}, {1, (uint8_t *)TEXT("b")}};
    int32_t halves[] = {0x3C00};
    const int64_t one[] = {1};
    m.model.producer_name = TEXT("maker");
    m.input[0].dims[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    m.input[0].dims[0].dim_param = TEXT("batch");
    node_init(&m, 1, "Relu", "", "y", NULL, "z");
    node_init(&m, 2, "Constant", "", NULL, NULL, "k");
    node_init(&m, 3, "Relu", "relu", "k", NULL, "q");
    m.graph.n_node = 4;
    Onnx__AttributeProto *a = attach_attr(&m, 0, "ints", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = 2, a->ints = ints;
    a = attach_attr(&m, 1, "strings", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    a->n_strings = 2, a->strings = strings;
    a = attach_attr(&m, 2, "value_ints", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = 2, a->ints = ints;
    tensor_init(&m, 1, "half", TIDE_F16, 1, one);
    m.tensor[1].n_int32_data = 1, m.tensor[1].int32_data = halves;
    m.graph.n_initializer = 2;
    assert_true(fail_each(op_import_onnx, &m) > 60);
}

static tide_status op_import_json(void *ctx, tide_error *err) {
    tide_graph *g = NULL;
    const tide_status st = tide_graph_from_json(ctx, strlen(ctx), "g.json", &g, err);
    if (st != TIDE_OK) assert_null(g);
    tide_graph_destroy(g);
    return st;
}

static void test_json_import(void **state) {
    (void)state;
    static char text[] =
        "{\"schema\":\"tidemark.graph\",\"version\":1,\"comment\":\"c\","
        "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[\"N\",2]}],"
        "\"initializers\":[{\"name\":\"w\",\"dtype\":\"float32\",\"shape\":[2],\"random\":{}}],"
        "\"nodes\":[{\"op\":\"Add\",\"inputs\":[\"x\",\"w\"],\"outputs\":[\"y\"],\"attrs\":{\"a\":[1],\"b\":[1.5],"
        "\"c\":[\"s\",\"t\"],\"d\":\"s\",\"e\":{\"dtype\":\"int8\",\"shape\":[],\"fill\":1}}},"
        "{\"op\":\"Opaque\",\"name\":\"o\",\"inputs\":[\"y\"],\"outputs\":[\"z\"],\"output_types\":[{\"dtype\":"
        "\"int8\",\"shape\":[3]}]}],"
        "\"outputs\":[\"z\"]}";
    assert_true(fail_each(op_import_json, text) > 40);
}

// The passes change a graph: each try gets a fresh one, made before the failure is planted.

static int fail_each_pass(tide_graph *(*make)(void), tide_status (*run)(tide_graph *g, tide_error *err)) {
    for (int n = 0; n < 10000; n++) {
        tide_graph *g = make();
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = run(g, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK && st != TIDE_ERR_NOMEM) fail_msg("failure %d: %s: %s", n, tide_status_name(st), err.msg);
        if (st != TIDE_OK) assert_tide_ok(tide_graph_validate(g, &err), &err);
        tide_graph_destroy(g);
        if (st == TIDE_OK) return n;
    }
    fail_msg("no end");
    return 0;
}

static tide_graph *make_chain(void) {
    tide_graph *g = new_graph();
    const int64_t dims[] = {2, 3};
    const float data[6] = {1, 2, 3, 4, 5, 6};
    add_input_f32(g, "x", 2, dims);
    add_constant_of(g, "k", TIDE_F32, 2, dims, data);
    add_op(g, "Double", "double", "k", "a");
    add_op(g, "Shape", "shape", "x", "s");
    add_op(g, "Fill", "fill", "s", "f");
    add_op(g, "Sum", "sum", "x,f,a", "y");
    add_output_named(g, "y");
    resolve_fakes(g);
    return g;
}

static tide_status run_sort(tide_graph *g, tide_error *err) {
    tide_order o = {0};
    const tide_status st = tide_graph_sort(g, &o, err);
    tide_order_deinit(&o);
    return st;
}

static tide_status run_infer(tide_graph *g, bool fold, tide_error *err) {
    tide_order o = {0};
    tide_status st = tide_graph_sort(g, &o, err);
    if (st == TIDE_OK) st = tide_graph_infer(g, &o, fold, err);
    tide_order_deinit(&o);
    return st;
}
static tide_status run_infer_fold(tide_graph *g, tide_error *err) { return run_infer(g, true, err); }
static tide_status run_infer_only(tide_graph *g, tide_error *err) { return run_infer(g, false, err); }
static tide_status run_prune(tide_graph *g, tide_error *err) { return tide_graph_prune(g, NULL, err); }
static tide_status run_fuse(tide_graph *g, tide_error *err) { return tide_graph_fuse(g, NULL, err); }

static tide_graph *make_conv_bn(void) {
    tide_graph *g = new_graph();
    const int64_t w_dims[] = {2, 1, 1, 1}, c_dims[] = {2}, x_dims[] = {1, 1, 2, 2}, y_dims[] = {1, 2, 2, 2};
    const float two[2] = {1, 2};
    add_input_f32(g, "x", 4, x_dims);
    add_constant_of(g, "w", TIDE_F32, 4, w_dims, two);
    add_constant_of(g, "c", TIDE_F32, 1, c_dims, two);
    add_op(g, "Conv", "conv", "x,w", "y");
    add_op(g, "BatchNormalization", "bn", "y,c,c,c,c", "z");
    add_op(g, "Relu", "relu", "z", "r");
    add_output_named(g, "r");
    set_type(g, "y", TIDE_F32, 4, y_dims);
    set_type(g, "z", TIDE_F32, 4, y_dims);
    resolve_fakes(g);
    return g;
}

static tide_graph *make_cycle(void) {
    tide_graph *g = new_graph();
    add_op(g, "Relu", "a", "vb", "va");
    add_op(g, "Relu", "b", "va", "vb");
    return g;
}

static tide_status run_cycle(tide_graph *g, tide_error *err) {
    tide_order o = {0};
    const tide_status st = tide_graph_sort(g, &o, err);
    return st == TIDE_ERR_CYCLE ? TIDE_OK : st;
}

static void test_passes(void **state) {
    (void)state;
    assert_true(fail_each_pass(make_chain, run_sort) >= 4);
    assert_true(fail_each_pass(make_chain, run_infer_fold) > 15);
    assert_true(fail_each_pass(make_chain, run_infer_only) > 15);
    assert_true(fail_each_pass(make_chain, run_prune) >= 3);
    assert_true(fail_each_pass(make_conv_bn, run_fuse) > 8);
    assert_true(fail_each_pass(make_cycle, run_cycle) > 5);
}

static tide_status op_build(void *ctx, tide_error *err) {
    (void)ctx;
    tide_graph *g = NULL;
    uint32_t in, out;
    tide_status st = tide_graph_create("g", "s", &g, err);
    if (st == TIDE_OK) st = tide_graph_intern_value(g, "x", &in, err);
    if (st == TIDE_OK) st = tide_graph_intern_value(g, "y", &out, err);
    if (st == TIDE_OK) {
        st = tide_graph_add_node(g, NULL, "Relu", "", 13, &in, 1, &out, 1, NULL, err);
        assert_int_equal(g->n_nodes, st == TIDE_OK);
    }
    if (st == TIDE_OK) st = tide_graph_add_input(g, in, err);
    if (st == TIDE_OK) st = tide_graph_add_output(g, out, err);
    tide_graph_destroy(g);
    return st;
}

static void test_building(void **state) {
    (void)state;
    assert_true(fail_each(op_build, NULL) > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_onnx_import),
        tide_unit_test(test_json_import),
        tide_unit_test(test_passes),
        tide_unit_test(test_building),
    };
    (void)tide_registry_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
