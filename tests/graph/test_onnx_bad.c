// SPDX-License-Identifier: MIT
//
// ONNX import of files that are wrong: each is an error that names file and place, none crashes, leaks or takes the
// memory that it claims.
#include "core/base/text.h"
#include "tests/graph/onnx_fixture.h"

// ---- broken bytes ----

/// Import from a buffer of exactly `len` bytes, so that ASan sees the first one read too many.
static tide_status import_bytes(const char *data, size_t len, tide_error *err) {
    char *copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, data, len);
    tide_graph *g = NULL;
    const tide_status st = tide_graph_from_onnx(copy, len, "broken.onnx", &g, err);
    if (st != TIDE_OK) assert_null(g);
    tide_graph_destroy(g);
    free(copy);
    return st;
}

static bool read_shared(const char *below, char **data, size_t *len) {
    char buf[512];
    const char *path = tide_shared_path(below, buf, sizeof buf);
    if (path == NULL) return false;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(path, 0, data, len, &err), &err);
    return true;
}

static void test_truncated_model(void **state) {
    (void)state;
    char *data;
    size_t len;
    if (!read_shared("models/mnist-8/model.onnx", &data, &len)) return;
    size_t n_with_byte = 0;
    for (size_t i = 0; i < 230; i++) {
        // 200 lengths over the file, then its last 30 bytes one by one.
        const size_t cut = i < 200 ? len * i / 200 : len - 1 - (i - 200);
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(import_bytes(data, cut, &err), TIDE_ERR_BAD_INPUT);
        assert_text_has(err.msg, "not an ONNX model");
        assert_text_has(err.where, "broken.onnx");
        n_with_byte += strstr(err.where, "byte ") != NULL;
    }
    assert_true(n_with_byte > 190);
    tide_host_free(data);
}

static void test_place_of_a_truncation(void **state) {
    (void)state;
    model_fixture m;
    uint8_t data[1024];
    model_init(&m);
    const size_t len = onnx__model_proto__pack(&m.model, data);
    assert_true(len < sizeof data);
    tide_error err = TIDE_ERROR_INIT;
    // A length inside the initialiser that reaches past its end: "raw_data" (field 9) of 16 bytes says 100.
    for (size_t i = 0; i + 1 < len; i++) {
        if (data[i] == (9u << 3 | 2) && data[i + 1] == 16) data[i + 1] = 100;
    }
    assert_tide_status(import_bytes((const char *)data, len, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "truncated");
    assert_text_has(err.where, "byte ");
    assert_text_has(err.where, "graph 'small'.initializer[0] 'w'.raw_data");
}

static void test_empty_and_random_bytes(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(import_bytes("", 0, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "not an ONNX model: the file is empty");
    assert_tide_status(import_bytes("{\"schema\": 1}", 13, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "not an ONNX model");
    tide_rng rng = {2024};
    for (int run = 0; run < 2000; run++) {
        char bytes[512];
        const size_t len = 1 + (size_t)tide_rng_below(&rng, sizeof bytes);
        for (size_t i = 0; i < len; i++) bytes[i] = (char)tide_rng_u64(&rng);
        assert_tide_status(import_bytes(bytes, len, &err), TIDE_ERR_BAD_INPUT);
        assert_text_has(err.msg, "not an ONNX model");
    }
}

/// One to four bytes of a good model changed: whatever comes of it, it is a graph or an error with words.
static void test_mutated_model(void **state) {
    (void)state;
    char *data;
    size_t len;
    if (!read_shared("models/qdq-conv-external/model.onnx", &data, &len)) return;
    tide_rng rng = {99};
    size_t n_refused = 0;
    for (int run = 0; run < 4000; run++) {
        char *copy = malloc(len);
        assert_non_null(copy);
        memcpy(copy, data, len);
        const size_t n = 1 + (size_t)tide_rng_below(&rng, 4);
        for (size_t i = 0; i < n; i++) copy[tide_rng_below(&rng, len)] = (char)tide_rng_u64(&rng);
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = import_bytes(copy, len, &err);
        if (st != TIDE_OK) {
            n_refused++;
            assert_true(err.msg[0] != '\0' && err.where[0] != '\0');
            assert_int_equal(st, err.status);
        }
        free(copy);
    }
    assert_true(n_refused > 0);
    tide_host_free(data);
}

/// Subgraphs in subgraphs, by hand: GraphProto.node (1) > NodeProto.attribute (5) > AttributeProto.g (6) > …
static void test_deep_nesting(void **state) {
    (void)state;
    enum { DEPTH = 60000, MAX = DEPTH * 6 };
    static uint8_t bytes[MAX];
    static const uint8_t fields[] = {7, 1, 5, 6, 1, 5, 6};
    size_t at = MAX, len = 0;
    // From the inside out: the tag and length of each level in front of what it holds.
    for (size_t level = DEPTH; level-- > 0;) {
        uint8_t head[8];
        size_t n = 0;
        const uint8_t field = level == 0 ? fields[0] : fields[1 + (level - 1) % 3];
        head[n++] = (uint8_t)(field << 3 | 2);
        size_t v = len;
        for (; v >= 0x80; v >>= 7) head[n++] = (uint8_t)(v | 0x80);
        head[n++] = (uint8_t)v;
        if (n > at) break;
        at -= n;
        memcpy(bytes + at, head, n);
        len += n;
        if (level == 0) break;
    }
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(import_bytes((const char *)bytes + at, len, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "nested too deep");
}

// ---- sizes ----

static uint64_t peak_of_refusal(const model_fixture *m, tide_status want, const char *says) {
    tide_host_stats stats;
    tide_host_get_stats(&stats);
    const uint64_t before = stats.live_bytes;
    tide_host_reset_peak();
    assert_refused(m, want, says);
    tide_host_get_stats(&stats);
    return stats.peak_bytes - before;
}

static void test_two_gigabytes_in_one_kilobyte(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    const int64_t dims[] = {1 << 15, 1 << 14}; // 2 GiB of float32
    tensor_init(&m, 0, "w", 1, 2, dims);
    m.tensor[0].has_raw_data = 1;
    m.tensor[0].raw_data.data = (uint8_t *)m.data;
    m.tensor[0].raw_data.len = sizeof m.data;
    assert_true(onnx__model_proto__get_packed_size(&m.model) < 1024);
    const char *says = "tensor 'w' claims float32 [32768x16384] = 2147483648 bytes, 16 bytes are there";
    assert_true(peak_of_refusal(&m, TIDE_ERR_BAD_INPUT, says) < 64 * 1024);
    // The same with typed data, and with none at all.
    m.tensor[0].has_raw_data = 0;
    m.tensor[0].n_float_data = 4;
    m.tensor[0].float_data = m.data;
    assert_true(peak_of_refusal(&m, TIDE_ERR_BAD_INPUT, says) < 64 * 1024);
    m.tensor[0].n_float_data = 0;
    assert_true(peak_of_refusal(&m, TIDE_ERR_BAD_INPUT, "0 bytes are there") < 64 * 1024);
    // And in a Constant.
    model_init(&m);
    node_init(&m, 1, "Constant", NULL, NULL, NULL, "k");
    m.graph.n_node = 2;
    tensor_init(&m, 1, NULL, 1, 2, dims);
    attach_attr(&m, 1, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = &m.tensor[1];
    assert_true(peak_of_refusal(&m, TIDE_ERR_BAD_INPUT, "tensor 'k' claims") < 64 * 1024);
}

static void test_sizes_that_overflow_or_are_negative(void **state) {
    (void)state;
    static const int64_t bad[][3] = {{INT64_C(1) << 33, INT64_C(1) << 33, 1},
                                     {INT64_MAX, 2, 1},
                                     {INT64_C(1) << 62, 1, 1}, // fits as elements, not as bytes
                                     {-4, 1, 1},
                                     {-1, -4, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        model_fixture m;
        model_init(&m);
        tensor_init(&m, 0, "w", 1, 3, bad[i]);
        assert_refused(&m, TIDE_ERR_BAD_INPUT, "tensor 'w'");
    }
    model_fixture m;
    model_init(&m);
    const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 4};
    tensor_init(&m, 0, "w", 1, 9, ones);
    assert_refused(&m, TIDE_ERR_NOT_IMPLEMENTED, "tensor 'w' has 9 extents");
    model_init(&m);
    value_init(&m.input[0], "x", 1, 9, ones);
    assert_refused(&m, TIDE_ERR_NOT_IMPLEMENTED, "'x' has 9 extents");
}

static void test_content_of_the_wrong_length(void **state) {
    (void)state;
    model_fixture m;
    model_init(&m);
    m.tensor[0].raw_data.len = 15;
    assert_refused(&m, TIDE_ERR_BAD_INPUT, "tensor 'w' claims float32 [1x4] = 16 bytes, 15 bytes are there");
    model_init(&m);
    m.tensor_dims[0][1] = 3; // more than is claimed
    assert_refused(&m, TIDE_ERR_BAD_INPUT, "16 bytes are there");
    model_init(&m);
    m.tensor[0].has_raw_data = 0; // int64 data in a float32 tensor
    int64_t longs[2] = {1, 2};
    m.tensor[0].n_int64_data = 2;
    m.tensor[0].int64_data = longs;
    assert_refused(&m, TIDE_ERR_BAD_INPUT, "0 bytes are there");
}

// ---- models that say nonsense ----

static void no_graph(model_fixture *m) { m->model.graph = NULL; }
static void no_nodes(model_fixture *m) { m->graph.n_node = 0; }
static void no_outputs(model_fixture *m) { m->graph.n_output = 0; }
static void no_opset(model_fixture *m) { m->model.n_opset_import = 0; }
static void opset_zero(model_fixture *m) { m->opset.version = 0; }
static void opset_99(model_fixture *m) { m->opset.version = 99; }
static void unknown_domain(model_fixture *m) { m->node[0].domain = TEXT("com.example"); }
static void no_operator(model_fixture *m) { m->node[0].op_type = NULL; }
static void dtype_unknown(model_fixture *m) { m->tensor[0].data_type = 77; }
static void dtype_none(model_fixture *m) { m->tensor[0].has_data_type = 0; }
static void dtype_string(model_fixture *m) { m->tensor[0].data_type = 8; }
static void dtype_int4(model_fixture *m) { m->tensor[0].data_type = 22; }
static void input_dtype_string(model_fixture *m) { m->input[0].tensor.elem_type = 8; }
static void input_dtype_unknown(model_fixture *m) { m->input[0].tensor.elem_type = 55; }
static void unnamed_initialiser(model_fixture *m) { m->tensor[0].name = NULL; }
static void unnamed_input(model_fixture *m) { m->input[0].info.name = NULL; }
static void segmented(model_fixture *m) {
    static Onnx__TensorProto__Segment segment = ONNX__TENSOR_PROTO__SEGMENT__INIT;
    m->tensor[0].segment = &segment;
}
static void initialiser_twice(model_fixture *m) {
    m->tensor[1] = m->tensor[0];
    m->tensor_list[1] = &m->tensor[1];
    m->graph.n_initializer = 2;
}
static void input_twice(model_fixture *m) {
    m->input_list[1] = m->input_list[0];
    m->graph.n_input = 2;
}
static void output_twice(model_fixture *m) {
    m->output_list[1] = m->output_list[0];
    m->graph.n_output = 2;
}
static void output_without_producer(model_fixture *m) { m->output[0].info.name = TEXT("z"); }
static void input_without_producer(model_fixture *m) { m->node[0].input[1] = TEXT("hole"); }
static void two_producers(model_fixture *m) {
    node_init(m, 1, "Relu", "relu", "x", NULL, "y");
    m->graph.n_node = 2;
}
static void produces_input(model_fixture *m) { m->node[0].output[0] = TEXT("x"); }
static void produces_initialiser(model_fixture *m) { m->node[0].output[0] = TEXT("w"); }
static void constant_over_initialiser(model_fixture *m) {
    node_init(m, 1, "Constant", "k", NULL, NULL, "w");
    attach_attr(m, 1, "value_int", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    m->graph.n_node = 2;
}
static void constant_without_value(model_fixture *m) {
    node_init(m, 1, "Constant", "k", NULL, NULL, "k");
    m->graph.n_node = 2;
}
static void constant_string(model_fixture *m) {
    constant_without_value(m);
    attach_attr(m, 1, "value_string", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
}
static void attr_twice(model_fixture *m) {
    static Onnx__AttributeProto *two[2];
    two[0] = two[1] = attach_attr(m, 0, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    m->node[0].n_attribute = 2;
    m->node[0].attribute = two;
}
static void attr_unnamed(model_fixture *m) { attach_attr(m, 0, "", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT); }
static void attr_subgraph(model_fixture *m) {
    attach_attr(m, 0, "then_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = NULL;
}
static void attr_tensor_missing(model_fixture *m) {
    attach_attr(m, 0, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
}
static void attr_of_function(model_fixture *m) {
    attach_attr(m, 0, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)->ref_attr_name = TEXT("outer");
}
static void sparse_initialiser(model_fixture *m) {
    static Onnx__SparseTensorProto sparse = ONNX__SPARSE_TENSOR_PROTO__INIT, *list[1] = {&sparse};
    sparse.values = &m->tensor[0];
    m->graph.n_sparse_initializer = 1;
    m->graph.sparse_initializer = list;
}
static void input_is_a_sequence(model_fixture *m) {
    static Onnx__TypeProto__Sequence sequence = ONNX__TYPE_PROTO__SEQUENCE__INIT;
    m->input[0].type.value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    m->input[0].type.sequence_type = &sequence;
}

static void test_nonsense(void **state) {
    (void)state;
    static const struct {
        void (*spoil)(model_fixture *m);
        tide_status st;
        const char *says;
    } rows[] = {
        {no_graph, TIDE_ERR_BAD_INPUT, "there is no graph in it"},
        {no_nodes, TIDE_ERR_BAD_INPUT, "has no nodes"},
        {no_outputs, TIDE_ERR_BAD_INPUT, "has no outputs"},
        {no_opset, TIDE_ERR_BAD_INPUT, "names no opset"},
        {opset_zero, TIDE_ERR_BAD_INPUT, "opset version 0"},
        {opset_99, TIDE_ERR_NOT_IMPLEMENTED, "opset 99"},
        {unknown_domain, TIDE_ERR_BAD_INPUT, "'com.example' of operator Add"},
        {no_operator, TIDE_ERR_BAD_INPUT, "node 0 'add' has no operator"},
        {dtype_unknown, TIDE_ERR_BAD_INPUT, "'w' has the unknown element type 77"},
        {dtype_none, TIDE_ERR_BAD_INPUT, "'w' has the unknown element type 0"},
        {dtype_string, TIDE_ERR_NOT_IMPLEMENTED, "'w' has the element type string"},
        {dtype_int4, TIDE_ERR_NOT_IMPLEMENTED, "'w' has the element type int4"},
        {input_dtype_string, TIDE_ERR_NOT_IMPLEMENTED, "'x' has the element type string"},
        {input_dtype_unknown, TIDE_ERR_BAD_INPUT, "'x' has the unknown element type 55"},
        {unnamed_initialiser, TIDE_ERR_BAD_INPUT, "initialiser 0 has no name"},
        {unnamed_input, TIDE_ERR_BAD_INPUT, "graph input 0 has no name"},
        {segmented, TIDE_ERR_NOT_IMPLEMENTED, "tensor 'w' comes in segments"},
        {initialiser_twice, TIDE_ERR_BAD_INPUT, "'w' is given to two values"},
        {input_twice, TIDE_ERR_BAD_INPUT, "'x' is listed twice"},
        {output_twice, TIDE_ERR_BAD_INPUT, "'y' is listed twice"},
        {output_without_producer, TIDE_ERR_BAD_INPUT, "nothing produces the graph output 'z'"},
        {input_without_producer, TIDE_ERR_BAD_INPUT, "node 'add' (Add) is 'hole', which nothing produces"},
        {two_producers, TIDE_ERR_BAD_INPUT, "nodes 'add' and 'relu' both produce 'y'"},
        {produces_input, TIDE_ERR_BAD_INPUT, "'x', which is a graph input"},
        {produces_initialiser, TIDE_ERR_BAD_INPUT, "'w', which is a constant"},
        {constant_over_initialiser, TIDE_ERR_BAD_INPUT, "a Constant produces 'w'"},
        {constant_without_value, TIDE_ERR_BAD_INPUT, "Constant for 'k'"},
        {constant_string, TIDE_ERR_NOT_IMPLEMENTED, "Constant for 'k' has a 'value_string'"},
        {attr_twice, TIDE_ERR_BAD_INPUT, "two attributes 'axis'"},
        {attr_unnamed, TIDE_ERR_BAD_INPUT, "node 'add' has an attribute without a name"},
        {attr_subgraph, TIDE_ERR_NOT_IMPLEMENTED, "attribute 'then_branch' of node 'add' is a subgraph"},
        {attr_tensor_missing, TIDE_ERR_BAD_INPUT, "attribute 'value' of node 'add' has no tensor"},
        {attr_of_function, TIDE_ERR_BAD_INPUT, "attribute 'axis' of node 'add' refers"},
        {sparse_initialiser, TIDE_ERR_NOT_IMPLEMENTED, "initialiser 'w' is a sparse tensor"},
        {input_is_a_sequence, TIDE_ERR_NOT_IMPLEMENTED, "'x' is a sequence"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        model_fixture m;
        model_init(&m);
        rows[i].spoil(&m);
        assert_refused(&m, rows[i].st, rows[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_truncated_model),
        tide_unit_test(test_place_of_a_truncation),
        tide_unit_test(test_empty_and_random_bytes),
        tide_unit_test(test_mutated_model),
        tide_unit_test(test_deep_nesting),
        tide_unit_test(test_two_gigabytes_in_one_kilobyte),
        tide_unit_test(test_sizes_that_overflow_or_are_negative),
        tide_unit_test(test_content_of_the_wrong_length),
        tide_unit_test(test_nonsense),
    };
    (void)tide_registry_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
