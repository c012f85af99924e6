// SPDX-License-Identifier: MIT
//
// ONNX import of models that are right: real ones (node counts as their README lists them) and small ones for each
// freedom that the format leaves.
#include "tests/graph/onnx_fixture.h"

#include "core/base/log.h"
#include "core/graph/passes.h"

// ---- real models ----

typedef struct model_row {
    const char *name;
    size_t n_nodes; // without Constant
    size_t n_inputs, n_outputs;
    tide_status st;
    const char *says;
} model_row;

static const model_row models[] = {
    {"mnist-8", 12, 1, 1, TIDE_OK, NULL},
    {"crepe-tiny", 30, 1, 1, TIDE_OK, NULL},
    {"kws-m-qdq", 60, 1, 1, TIDE_OK, NULL},
    {"mobilenetv2-qdq", 724, 1, 1, TIDE_OK, NULL},
    {"qdq-conv-external", 7, 1, 1, TIDE_OK, NULL}, // weights in a second file
    {"ultraface-rfb-320", 211, 1, 2, TIDE_OK, NULL},
    {"fastestdet", 218, 1, 1, TIDE_OK, NULL},
    {"yunet-n-dynamic", 163, 1, 12, TIDE_OK, NULL},
    {"nms-fastestdet", 37, 1, 1, TIDE_OK, NULL},
    {"selfie-segmentation", 181, 1, 1, TIDE_OK, NULL},
    {"superres-espcn", 8, 1, 1, TIDE_OK, NULL},
    {"gtcrn-stream", 415, 4, 4, TIDE_OK, NULL},
    {"bidi-lstm-bytes", 23, 1, 1, TIDE_OK, NULL},
    {"g2p-lstm-it", 66, 3, 1, TIDE_OK, NULL},
    {"basic-pitch", 248, 1, 3, TIDE_OK, NULL},
    {"magika-v2", 72, 1, 1, TIDE_OK, NULL},
    {"bert-toy", 310, 3, 2, TIDE_OK, NULL}, // not sorted
    {"vit-pgd-2-3-16", 103, 1, 1, TIDE_OK, NULL},
    {"gpt2-past", 2238, 13, 13, TIDE_OK, NULL}, // not sorted
    {"gpt2-contrib-past", 39, 8, 6, TIDE_OK, NULL},
    {"light-resnet50", 415, 1, 1, TIDE_OK, NULL},
    {"light-squeezenet", 105, 1, 1, TIDE_OK, NULL},
    {"light-shufflenet", 446, 1, 1, TIDE_OK, NULL},
    {"light-bvlc-alexnet", 40, 1, 1, TIDE_OK, NULL},
    {"light-inception-v1", 237, 1, 1, TIDE_OK, NULL},
    {"light-densenet121", 1746, 1, 1, TIDE_OK, NULL},
    // With a node that closes each body: 50, 4 and 1 of them.
    {"silero-vad", 348 + 50, 3, 2, TIDE_OK, NULL},
    {"scan-lstm-cntk", 96 + 4, 1, 9, TIDE_OK, NULL},
    {"loop-crop-resize", 25 + 1, 2, 1, TIDE_OK, NULL},
    {"tiny-llm-kv", 25 + 2, 5, 3, TIDE_OK, NULL}, // a call, and the two nodes of its function
};

static tide_status import_file(const char *path, tide_graph **out, tide_error *err) {
    char *data;
    size_t len;
    assert_tide_ok(tide_read_file(path, 0, &data, &len, err), err);
    const tide_status st = tide_graph_from_onnx(data, len, path, out, err);
    tide_host_free(data);
    return st;
}

static void check_names(const tide_graph *g) {
    tide_strmap seen = {0};
    for (size_t i = 0; i < g->n_nodes; i++) {
        assert_true(g->nodes[i].name[0] != '\0');
        assert_false(tide_strmap_get(&seen, g->nodes[i].name, NULL));
        assert_int_equal(tide_strmap_put(&seen, g->nodes[i].name, i), TIDE_OK);
    }
    tide_strmap_deinit(&seen);
}

static void check_order(const tide_graph *g) {
    tide_error err = TIDE_ERROR_INIT;
    tide_order o = {0};
    assert_tide_ok(tide_graph_sort(g, &o, &err), &err);
    assert_int_equal(o.n, g->n_nodes);
    size_t *place = calloc(g->n_nodes, sizeof *place);
    assert_non_null(place);
    for (size_t i = 0; i < o.n; i++) place[o.nodes[i]] = i;
    for (size_t i = 0; i < g->n_nodes; i++) {
        for (size_t k = 0; k < g->nodes[i].n_inputs; k++) {
            const uint32_t v = g->nodes[i].inputs[k];
            if (v == TIDE_NO_VALUE || g->values[v].producer == TIDE_NO_NODE) continue;
            assert_true(place[g->values[v].producer] < place[i]);
        }
    }
    free(place);
    tide_order_deinit(&o);
}

static void test_real_models(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const model_row *m = &models[i];
        char below[128], buf[512];
        snprintf(below, sizeof below, "models/%s/model.onnx", m->name);
        const char *path = tide_shared_path(below, buf, sizeof buf);
        if (path == NULL) continue;
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g = NULL;
        const tide_status st = import_file(path, &g, &err);
        if (st != m->st) fail_msg("%s: %s: %s", m->name, tide_status_name(st), err.msg);
        if (st != TIDE_OK) {
            assert_text_has(err.msg, m->says);
            assert_text_has(err.where, "node ");
            continue;
        }
        if (g->n_nodes != m->n_nodes) fail_msg("%s: %zu nodes, not %zu", m->name, g->n_nodes, m->n_nodes);
        assert_int_equal(g->n_inputs, m->n_inputs);
        assert_int_equal(g->n_outputs, m->n_outputs);
        check_names(g);
        check_order(g);
        tide_graph_destroy(g);
    }
}

/// input_0.pb of ONNX's test layout: name, type and content.
static void test_pb_file(void **state) {
    (void)state;
    char buf[512];
    const char *path = tide_shared_path("models/mnist-8/test_data_set_0/input_0.pb", buf, sizeof buf);
    if (path == NULL) return;
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = NULL;
    char *name = NULL;
    assert_tide_ok(tide_tensor_from_pb_file(path, NULL, TIDE_KIND_DEFAULT, &t, &name, &err), &err);
    assert_int_equal(tide_tensor_dtype(t), TIDE_F32);
    assert_int_equal(tide_tensor_kind(t), TIDE_KIND_DEFAULT);
    assert_int_equal(tide_tensor_size_bytes(t), 28 * 28 * 4);
    const float *x = tide_tensor_const_data(t);
    float top = 0;
    for (size_t i = 0; i < 28 * 28; i++) {
        assert_true(x[i] >= 0 && x[i] <= 255);
        if (x[i] > top) top = x[i];
    }
    assert_true(top > 0);
    assert_non_null(name);
    tide_host_free(name);
    tide_tensor_unref(t);
    path = tide_shared_path("models/mnist-8/model.onnx", buf, sizeof buf);
    assert_tide_status(tide_tensor_from_pb_file(path, NULL, TIDE_KIND_DEFAULT, &t, NULL, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.where, "model.onnx");
    assert_tide_status(tide_tensor_from_pb_file("/nowhere.pb", NULL, TIDE_KIND_DEFAULT, &t, NULL, &err), TIDE_ERR_IO);
}

// ---- what the format allows ----

static tide_graph *import_good(const model_fixture *m) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    assert_tide_ok(import_fixture(m, &g, &err), &err);
    return g;
}

static const tide_value *value_named(const tide_graph *g, const char *name) {
    const uint32_t i = tide_graph_find_value(g, name);
    assert_true(i != TIDE_NO_VALUE);
    return &g->values[i];
}

static void test_small_model(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    m.model.producer_name = TEXT("maker");
    m.model.producer_version = TEXT("1.2");
    tide_graph *g = import_good(&m);
    assert_string_equal(g->name, "small");
    assert_string_equal(g->source, "dir/small.onnx");
    assert_string_equal(g->comment, "maker 1.2");
    assert_int_equal(g->n_nodes, 1);
    assert_string_equal(g->nodes[0].op_type, "Add");
    assert_int_equal(g->nodes[0].opset, 13);
    const tide_value *w = value_named(g, "w");
    assert_memory_equal(tide_tensor_const_data(w->constant), m.data, sizeof m.data);
    assert_int_equal(tide_tensor_kind(w->constant), TIDE_KIND_HOST_PAGEABLE);
    const tide_value *x = value_named(g, "x");
    assert_true(x->is_input && x->has_shape && x->dtype == TIDE_F32 && x->shape.dims[1] == 4);
    assert_true(value_named(g, "y")->is_output);
    tide_graph_destroy(g);
}

static void test_initialiser_listed_as_input_is_a_constant(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    const int64_t dims[] = {1, 4};
    value_init(&m.input[1], "w", 1, 2, dims);
    m.graph.n_input = 2;
    tide_graph *g = import_good(&m);
    assert_int_equal(g->n_inputs, 1);
    assert_false(value_named(g, "w")->is_input);
    tide_graph_destroy(g);
    m.input[1].dims[1].dim_value = 5;
    assert_refused(&m, TIDE_ERR_BAD_INPUT, "'w' is declared otherwise");
}

static void test_symbolic_and_open_extents(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    m.input[0].dims[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    m.input[0].dims[0].dim_param = TEXT("batch");
    m.input[0].dims[1].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
    m.output[0].tensor.shape = NULL;
    tide_graph *g = import_good(&m);
    const tide_value *x = value_named(g, "x");
    assert_int_equal(x->shape.dims[0], TIDE_DIM_UNKNOWN);
    assert_int_equal(x->shape.dims[1], TIDE_DIM_UNKNOWN);
    assert_string_equal(x->dim_names[0], "batch");
    assert_null(x->dim_names[1]);
    assert_false(value_named(g, "y")->has_shape);
    tide_graph_destroy(g);
}

static void test_value_info_gives_types(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    const int64_t dims[] = {1, 4};
    node_init(&m, 0, "Add", "add", "x", "w", "mid");
    node_init(&m, 1, "Relu", "relu", "mid", NULL, "y");
    m.graph.n_node = 2;
    value_init(&m.info[0], "mid", 1, 2, dims);
    value_init(&m.info[1], "gone", 1, 2, dims); // of a node that an exporter optimised away
    m.graph.n_value_info = 2;
    tide_graph *g = import_good(&m);
    assert_int_equal(value_named(g, "mid")->shape.dims[1], 4);
    assert_int_equal(tide_graph_find_value(g, "gone"), TIDE_NO_VALUE);
    tide_graph_destroy(g);
}

static void test_node_names_are_made_unique(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    node_init(&m, 0, "Relu", NULL, "x", NULL, "a");
    node_init(&m, 1, "Relu", "same", "a", NULL, "b");
    node_init(&m, 2, "Relu", "same", "b", NULL, "c");
    node_init(&m, 3, "Relu", "Relu_0", "c", NULL, "y"); // what node 0 would be called
    m.graph.n_node = 4;
    tide_graph *g = import_good(&m);
    assert_string_equal(g->nodes[0].name, "Relu_0_2");
    assert_string_equal(g->nodes[1].name, "same");
    assert_string_equal(g->nodes[2].name, "Relu_2");
    assert_string_equal(g->nodes[3].name, "Relu_0");
    tide_graph_destroy(g);
}

static void test_omitted_operands_and_domain(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    m.node[0].op_type = TEXT("Clip");
    m.node[0].domain = TEXT("ai.onnx");
    m.node[0].input[1] = TEXT("");
    m.node[0].input[2] = TEXT("w");
    m.node[0].n_input = 3;
    m.opset.domain = TEXT("ai.onnx");
    tide_graph *g = import_good(&m);
    assert_string_equal(g->nodes[0].domain, "");
    assert_int_equal(g->nodes[0].opset, 13);
    assert_int_equal(g->nodes[0].inputs[1], TIDE_NO_VALUE);
    assert_true(g->nodes[0].inputs[2] != TIDE_NO_VALUE);
    tide_graph_destroy(g);
}

static void test_attributes(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    int64_t ints[] = {3, -1};
    float floats[] = {0.5f};
    ProtobufCBinaryData strings[] = {{4, (uint8_t *)TEXT("Tanh")}, {0, NULL}};
    Onnx__AttributeProto a[7], *list[7];
    static const char *const names[] = {"i", "f", "s", "ints", "floats", "strings", "t"};
    for (size_t k = 0; k < 7; k++) {
        onnx__attribute_proto__init(&a[k]);
        a[k].name = TEXT(names[k]);
        a[k].has_type = k != 1; // "f" is of IR version 1: no type
        list[k] = &a[k];
    }
    a[0].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, a[0].has_i = 1, a[0].i = -7;
    a[1].has_f = 1, a[1].f = 2.5f;
    a[2].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, a[2].has_s = 1, a[2].s = strings[0];
    a[3].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, a[3].n_ints = 2, a[3].ints = ints;
    a[4].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, a[4].n_floats = 1, a[4].floats = floats;
    a[5].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS, a[5].n_strings = 2, a[5].strings = strings;
    a[6].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, a[6].t = &m.tensor[0];
    m.node[0].n_attribute = 7;
    m.node[0].attribute = list;
    tide_graph *g = import_good(&m);
    const tide_node *n = &g->nodes[0];
    size_t len;
    assert_int_equal(tide_node_attr_int(n, "i", 0), -7);
    assert_true(tide_node_attr_float(n, "f", 0) == 2.5f);
    assert_string_equal(tide_node_attr_string(n, "s", ""), "Tanh");
    assert_int_equal(tide_node_attr_ints(n, "ints", &len)[1], -1);
    assert_int_equal(len, 2);
    assert_true(tide_node_attr_floats(n, "floats", &len)[0] == 0.5f);
    assert_string_equal(tide_node_attr_strings(n, "strings", &len)[0], "Tanh");
    assert_string_equal(tide_node_attr_strings(n, "strings", &len)[1], "");
    assert_int_equal(len, 2);
    assert_memory_equal(tide_tensor_const_data(tide_node_attr(n, "t")->tensor), m.data, sizeof m.data);
    tide_graph_destroy(g);
}

/// A Constant in front of the Add, with the given attribute as its value.
static tide_graph *import_constant(model_fixture *m, const char *name, Onnx__AttributeProto__AttributeType type,
                                   void (*fill)(model_fixture *m, Onnx__AttributeProto *a)) {
    model_init(m);
    node_init(m, 0, "Add", "add", "x", "k", "y"); // uses it before it is made
    node_init(m, 1, "Constant", NULL, NULL, NULL, "k");
    m->graph.n_node = 2;
    fill(m, attach_attr(m, 1, name, type));
    return import_good(m);
}
static void fill_tensor(model_fixture *m, Onnx__AttributeProto *a) { a->t = &m->tensor[0]; }
static void fill_int(model_fixture *m, Onnx__AttributeProto *a) { (void)m, a->has_i = 1, a->i = 41; }
static void fill_float(model_fixture *m, Onnx__AttributeProto *a) { (void)m, a->has_f = 1, a->f = 1.5f; }
static int64_t three_ints[] = {5, 6, 7};
static void fill_ints(model_fixture *m, Onnx__AttributeProto *a) { (void)m, a->n_ints = 3, a->ints = three_ints; }
static void fill_floats(model_fixture *m, Onnx__AttributeProto *a) { a->n_floats = 4, a->floats = m->data; }

static void test_constant_nodes(void **state) {
    (void)state;
    model_fixture m;
    tide_graph *g = import_constant(&m, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, fill_tensor);
    assert_int_equal(g->n_nodes, 1);
    assert_memory_equal(tide_tensor_const_data(value_named(g, "k")->constant), m.data, sizeof m.data);
    tide_graph_destroy(g);
    g = import_constant(&m, "value_int", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, fill_int);
    assert_int_equal(value_named(g, "k")->dtype, TIDE_I64);
    assert_int_equal(value_named(g, "k")->shape.rank, 0);
    assert_int_equal(*(const int64_t *)tide_tensor_const_data(value_named(g, "k")->constant), 41);
    tide_graph_destroy(g);
    g = import_constant(&m, "value_float", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, fill_float);
    assert_true(*(const float *)tide_tensor_const_data(value_named(g, "k")->constant) == 1.5f);
    tide_graph_destroy(g);
    g = import_constant(&m, "value_ints", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, fill_ints);
    assert_int_equal(value_named(g, "k")->shape.dims[0], 3);
    assert_int_equal(((const int64_t *)tide_tensor_const_data(value_named(g, "k")->constant))[2], 7);
    tide_graph_destroy(g);
    g = import_constant(&m, "value_floats", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, fill_floats);
    assert_memory_equal(tide_tensor_const_data(value_named(g, "k")->constant), m.data, sizeof m.data);
    tide_graph_destroy(g);
}

static void count_lines(void *ctx, tide_log_level level, const char *line) {
    assert_int_equal(level, TIDE_LOG_WARN);
    assert_text_has(line, "'k'");
    ++*(int *)ctx;
}

static void test_last_of_two_constants_holds(void **state) {
    (void)state;
    model_fixture m;
    int n_lines = 0;
    model_init(&m);
    node_init(&m, 0, "Add", "add", "x", "k", "y");
    node_init(&m, 1, "Constant", NULL, NULL, NULL, "k");
    node_init(&m, 2, "Constant", NULL, NULL, NULL, "k");
    m.graph.n_node = 3;
    for (size_t i = 1; i < 3; i++) {
        Onnx__AttributeProto *a = attach_attr(&m, i, "value_int", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
        a->has_i = 1;
        a->i = (int64_t)i;
    }
    tide_log_set(count_lines, &n_lines, TIDE_LOG_WARN);
    tide_graph *g = import_good(&m);
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    assert_int_equal(n_lines, 1);
    assert_int_equal(*(const int64_t *)tide_tensor_const_data(value_named(g, "k")->constant), 2);
    tide_graph_destroy(g);
}

static void test_old_file_without_opsets(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    m.model.ir_version = 2;
    m.model.n_opset_import = 0;
    tide_graph *g = import_good(&m);
    assert_int_equal(g->nodes[0].opset, 1);
    tide_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_real_models),
        tide_unit_test(test_pb_file),
        tide_unit_test(test_small_model),
        tide_unit_test(test_initialiser_listed_as_input_is_a_constant),
        tide_unit_test(test_symbolic_and_open_extents),
        tide_unit_test(test_value_info_gives_types),
        tide_unit_test(test_node_names_are_made_unique),
        tide_unit_test(test_omitted_operands_and_domain),
        tide_unit_test(test_attributes),
        tide_unit_test(test_constant_nodes),
        tide_unit_test(test_last_of_two_constants_holds),
        tide_unit_test(test_old_file_without_opsets),
    };
    (void)tide_registry_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
