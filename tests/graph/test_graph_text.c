// SPDX-License-Identifier: MIT
//
// Graph text: what docs/graph-text.md promises, and every way to get it wrong.
#include <dirent.h>
#include <math.h>

#include "core/graph/import.h"
#include "core/graph/passes.h"
#include "tests/tide_test.h"

static tide_status import_text(const char *text, tide_graph **g, tide_error *err) {
    return tide_graph_from_json(text, strlen(text), "g.json", g, err);
}

static tide_graph *import_good(const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    assert_tide_ok(import_text(text, &g, &err), &err);
    return g;
}

static const tide_value *value_named(const tide_graph *g, const char *name) {
    const uint32_t i = tide_graph_find_value(g, name);
    assert_true(i != TIDE_NO_VALUE);
    return &g->values[i];
}

#define HEAD "{\"schema\":\"tidemark.graph\",\"version\":1,"

static void test_example(void **state) {
    (void)state;
    tide_graph *g = import_good(
        HEAD "\"name\":\"lenet5\",\"comment\":\"what it shows\",\"opset\":11,"
             "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[\"N\",1,28,28]}],"
             "\"initializers\":[{\"name\":\"w\",\"dtype\":\"float32\",\"shape\":[6,1,5,5],"
             "\"random\":{\"seed\":1,\"low\":-0.2,\"high\":0.2}}],"
             "\"nodes\":[{\"op\":\"Conv\",\"name\":\"conv1\",\"inputs\":[\"x\",\"w\",\"\"],\"outputs\":[\"y\"],"
             "\"attrs\":{\"strides\":[1,1],\"pads\":[2,2,2,2]}},"
             "{\"op\":\"Relu\",\"inputs\":[\"y\"],\"outputs\":[\"z\"]}],"
             "\"outputs\":[\"z\"]}");
    assert_string_equal(g->name, "lenet5");
    assert_string_equal(g->source, "g.json");
    assert_string_equal(g->comment, "what it shows");
    assert_int_equal(g->n_nodes, 2);
    assert_string_equal(g->nodes[1].name, "Relu_1");
    assert_int_equal(g->nodes[0].opset, 11);
    assert_int_equal(g->nodes[0].inputs[2], TIDE_NO_VALUE);
    size_t len;
    assert_int_equal(tide_node_attr_ints(&g->nodes[0], "pads", &len)[3], 2);
    assert_int_equal(len, 4);
    const tide_value *x = value_named(g, "x");
    assert_true(x->is_input && x->dtype == TIDE_F32 && x->shape.rank == 4);
    assert_int_equal(x->shape.dims[0], TIDE_DIM_UNKNOWN);
    assert_string_equal(x->dim_names[0], "N");
    assert_null(x->dim_names[1]);
    const float *w = tide_tensor_const_data(value_named(g, "w")->constant);
    double sum = 0;
    for (size_t i = 0; i < 150; i++) {
        assert_true(w[i] >= -0.2f && w[i] <= 0.2f);
        sum += fabs((double)w[i]);
    }
    assert_true(sum > 150 * 0.05);
    tide_graph_destroy(g);
}

/// A graph around one initialiser "k" with the given body.
static tide_status import_initializer(const char *body, tide_graph **g, tide_error *err) {
    tide_text t = {0};
    tide_text_addf(&t,
                   HEAD "\"initializers\":[{\"name\":\"k\",%s}],"
                        "\"nodes\":[{\"op\":\"Relu\",\"inputs\":[\"k\"],\"outputs\":[\"y\"]}],\"outputs\":[\"y\"]}",
                   body);
    const tide_status st = import_text(t.data, g, err);
    tide_text_deinit(&t);
    return st;
}

static void check_content(const char *body, tide_dtype dtype, const void *want, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    assert_tide_ok(import_initializer(body, &g, &err), &err);
    const tide_tensor *k = value_named(g, "k")->constant;
    assert_int_equal(tide_tensor_dtype(k), dtype);
    assert_int_equal(tide_tensor_size_bytes(k), len);
    if (len > 0) assert_memory_equal(tide_tensor_const_data(k), want, len);
    tide_graph_destroy(g);
}

#define CHECK_VALUES(dtype_text, dtype, type, list, ...)                                                               \
    do {                                                                                                               \
        const type want[] = {__VA_ARGS__};                                                                             \
        char body[256];                                                                                                \
        snprintf(body, sizeof body, "\"dtype\":\"%s\",\"shape\":[%zu],\"values\":%s", dtype_text,                      \
                 sizeof want / sizeof want[0], list);                                                                  \
        check_content(body, dtype, want, sizeof want);                                                                 \
    } while (0)

static void test_values_of_every_type(void **state) {
    (void)state;
    CHECK_VALUES("float32", TIDE_F32, float, "[1,-0.5,2.5]", 1, -0.5f, 2.5f);
    CHECK_VALUES("float64", TIDE_F64, double, "[0.1,1e300]", 0.1, 1e300);
    CHECK_VALUES("int8", TIDE_I8, int8_t, "[-128,127]", -128, 127);
    CHECK_VALUES("uint8", TIDE_U8, uint8_t, "[0,255]", 0, 255);
    CHECK_VALUES("int16", TIDE_I16, int16_t, "[-32768,32767]", -32768, 32767);
    CHECK_VALUES("uint16", TIDE_U16, uint16_t, "[65535]", 65535);
    CHECK_VALUES("int32", TIDE_I32, int32_t, "[-2147483648,3.0]", INT32_MIN, 3);
    CHECK_VALUES("uint32", TIDE_U32, uint32_t, "[4294967295]", UINT32_MAX);
    CHECK_VALUES("int64", TIDE_I64, int64_t, "[-9223372036854775808,9223372036854775807]", INT64_MIN, INT64_MAX);
    CHECK_VALUES("uint64", TIDE_U64, uint64_t, "[7]", 7);
    CHECK_VALUES("bool", TIDE_BOOL, uint8_t, "[true,false,1,0]", 1, 0, 1, 0);
    // Half precision: exact, subnormal, ties to even, overflow, signed zero.
    CHECK_VALUES("float16", TIDE_F16, uint16_t,
                 "[1,-2,65504,65519,65520,5.960464477539063e-08,2.9802322387695312e-08,-0.0]", 0x3C00, 0xC000, 0x7BFF,
                 0x7BFF, 0x7C00, 0x0001, 0x0000, 0x8000);
    CHECK_VALUES("float16", TIDE_F16, uint16_t, "[2049,2051,0.00006103515625,0.000060975551605224609]", 0x6800, 0x6802,
                 0x0400, 0x03FF);
    CHECK_VALUES("bfloat16", TIDE_BF16, uint16_t, "[1,-2,1.00390625,1.01171875]", 0x3F80, 0xC000, 0x3F80, 0x3F82);
}

static void test_fill_and_scalars(void **state) {
    (void)state;
    const float three[] = {3, 3, 3, 3};
    check_content("\"dtype\":\"float32\",\"shape\":[2,2],\"fill\":3", TIDE_F32, three, sizeof three);
    const int64_t nine = 9;
    check_content("\"dtype\":\"int64\",\"shape\":[],\"fill\":9", TIDE_I64, &nine, sizeof nine);
    const uint8_t yes[] = {1, 1};
    check_content("\"dtype\":\"bool\",\"shape\":[2],\"fill\":true", TIDE_BOOL, yes, sizeof yes);
    check_content("\"dtype\":\"float32\",\"shape\":[0,5],\"fill\":1", TIDE_F32, NULL, 0);
    check_content("\"dtype\":\"int64\",\"shape\":[0],\"values\":[]", TIDE_I64, NULL, 0);
}

static void copy_random(const char *body, void *out, size_t len) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    assert_tide_ok(import_initializer(body, &g, &err), &err);
    assert_int_equal(tide_tensor_size_bytes(value_named(g, "k")->constant), len);
    memcpy(out, tide_tensor_const_data(value_named(g, "k")->constant), len);
    tide_graph_destroy(g);
}

static void test_random_is_seeded(void **state) {
    (void)state;
    float a[64], b[64];
    copy_random("\"dtype\":\"float32\",\"shape\":[64],\"random\":{\"seed\":5}", a, sizeof a);
    copy_random("\"dtype\":\"float32\",\"shape\":[64],\"random\":{\"seed\":5}", b, sizeof b);
    assert_memory_equal(a, b, sizeof a);
    // The documented generator: splitmix64, low + (high - low) * u, so that other programs can make the same weights.
    tide_rng rng = {5};
    for (size_t i = 0; i < 64; i++) assert_true(a[i] == (float)(-1.0 + 2.0 * tide_rng_f64(&rng)));
    copy_random("\"dtype\":\"float32\",\"shape\":[64],\"random\":{\"seed\":6}", b, sizeof b);
    assert_true(memcmp(a, b, sizeof a) != 0);
    copy_random("\"dtype\":\"float32\",\"shape\":[64],\"random\":{}", a, sizeof a); // seed: hash of the name
    copy_random("\"dtype\":\"float32\",\"shape\":[64],\"random\":{}", b, sizeof b);
    assert_memory_equal(a, b, sizeof a);
    int8_t whole[200];
    bool seen[4] = {false};
    copy_random("\"dtype\":\"int8\",\"shape\":[200],\"random\":{\"low\":-2,\"high\":2}", whole, sizeof whole);
    for (size_t i = 0; i < 200; i++) {
        assert_true(whole[i] >= -2 && whole[i] < 2);
        seen[whole[i] + 2] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

static void test_attributes(void **state) {
    (void)state;
    tide_graph *g = import_good(
        HEAD
        "\"nodes\":[{\"op\":\"Op\",\"outputs\":[\"y\"],\"attrs\":{\"i\":-3,\"f\":2.0,\"s\":\"text\",\"ints\":[1,2],"
        "\"floats\":[1,2.5],\"strings\":[\"a\",\"b\"],\"none\":[],"
        "\"t\":{\"dtype\":\"int64\",\"shape\":[1],\"values\":[7]}}}],\"outputs\":[\"y\"]}");
    const tide_node *n = &g->nodes[0];
    size_t len;
    assert_int_equal(tide_node_attr(n, "i")->type, TIDE_ATTR_INT);
    assert_int_equal(tide_node_attr_int(n, "i", 0), -3);
    assert_true(tide_node_attr_float(n, "i", 0) == -3.0f);
    assert_int_equal(tide_node_attr(n, "f")->type, TIDE_ATTR_FLOAT);
    assert_string_equal(tide_node_attr_string(n, "s", ""), "text");
    assert_int_equal(tide_node_attr_ints(n, "ints", &len)[1], 2);
    assert_true(tide_node_attr_floats(n, "ints", &len)[1] == 2.0f); // scales may be written [1, 2]
    assert_int_equal(tide_node_attr(n, "floats")->type, TIDE_ATTR_FLOATS);
    assert_true(tide_node_attr_floats(n, "floats", &len)[1] == 2.5f);
    assert_null(tide_node_attr_ints(n, "floats", &len));
    assert_string_equal(tide_node_attr_strings(n, "strings", &len)[1], "b");
    assert_non_null(tide_node_attr_ints(n, "none", &len));
    assert_int_equal(len, 0);
    assert_int_equal(*(const int64_t *)tide_tensor_const_data(tide_node_attr(n, "t")->tensor), 7);
    tide_graph_destroy(g);
}

static void test_opaque_output_types(void **state) {
    (void)state;
    tide_graph *g = import_good(HEAD "\"nodes\":[{\"op\":\"Opaque\",\"outputs\":[\"a\",\"b\"],\"output_types\":["
                                     "{\"dtype\":\"float32\",\"shape\":[1,64,56,56]},{\"dtype\":\"int8\",\"shape\":[]}]"
                                     "}],\"outputs\":[\"a\",\"b\"]}");
    const tide_node *n = &g->nodes[0];
    assert_string_equal(n->domain, "tidemark");
    assert_int_equal(n->opset, 1);
    size_t len;
    const int64_t *dtypes = tide_node_attr_ints(n, "tide_dtypes", &len);
    assert_int_equal(len, 2);
    assert_true(dtypes[0] == TIDE_F32 && dtypes[1] == TIDE_I8);
    static const int64_t want[] = {4, 1, 64, 56, 56, 0};
    const int64_t *shapes = tide_node_attr_ints(n, "tide_shapes", &len);
    assert_int_equal(len, 6);
    assert_memory_equal(shapes, want, sizeof want);
    tide_graph_destroy(g);
}

static void test_made_up_names_yield_to_given_ones(void **state) {
    (void)state;
    tide_graph *g = import_good(
        HEAD
        "\"nodes\":[{\"op\":\"Relu\",\"outputs\":[\"a\"]},{\"op\":\"Relu\",\"name\":\"Relu_0\",\"outputs\":[\"b\"]}],"
        "\"outputs\":[\"b\",\"a\"]}");
    assert_string_equal(g->nodes[0].name, "Relu_0_2");
    assert_string_equal(g->nodes[1].name, "Relu_0");
    assert_string_equal(g->name, "g.json"); // a graph without a name is called after its file
    assert_int_equal(g->outputs[0], tide_graph_find_value(g, "b"));
    tide_graph_destroy(g);
}

// ---- wrong texts ----

#define NODE "\"nodes\":[{\"op\":\"Relu\",\"inputs\":[\"x\"],\"outputs\":[\"y\"]}],\"outputs\":[\"y\"]"
#define INPUT "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[2]}],"

typedef struct bad_row {
    const char *text;
    const char *says;  // in msg
    const char *where; // in where
} bad_row;

static const bad_row bad_texts[] = {
    {"", "not JSON", "g.json:1:0"},
    {"{\n\"schema\": \"tidemark.graph\",\n  oops}", "not JSON", "g.json:3:"},
    {"{\"schema\":\"tidemark.graph\",\"schema\":\"x\"}", "not JSON: duplicate object key", "g.json:1:"},
    {HEAD INPUT NODE "} trailing", "not JSON", "g.json:1:"},
    {HEAD "\"opset\":99999999999999999999," INPUT NODE "}", "not JSON: too big integer", "g.json:1:"},
    {"[]", "a graph text is a JSON object", "g.json"},
    {"{}", "'schema' is missing", "g.json"},
    {"{\"schema\":\"tidemark.plan\",\"version\":1}", "'schema' is 'tidemark.plan'", "g.json"},
    {"{\"schema\":\"tidemark.graph\"}", "no 'version'", "g.json"},
    {"{\"schema\":\"tidemark.graph\",\"version\":2}", "version 2", "g.json"},
    {"{\"schema\":\"tidemark.graph\",\"version\":\"1\"}", "'version' of the graph is a string", "g.json"},
    {HEAD INPUT NODE ",\"layers\":[]}", "unknown key 'layers'", "g.json"},
    {HEAD INPUT NODE ",\"opset\":0}", "opset 0", "g.json"},
    {HEAD INPUT NODE ",\"opset\":25}", "opset 25", "g.json"},
    {HEAD INPUT NODE ",\"name\":5}", "'name' of the graph is a whole number", "g.json"},
    {HEAD "\"outputs\":[\"y\"]}", "the graph has no 'nodes'", "g.json"},
    {HEAD INPUT "\"nodes\":[],\"outputs\":[\"x\"]}", "the graph has no nodes", "g.json"},
    {HEAD INPUT "\"nodes\":{},\"outputs\":[\"x\"]}", "'nodes' of the graph is an object", "g.json"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"Relu\",\"inputs\":[\"x\"],\"outputs\":[\"y\"]}]}", "no 'outputs'", "g.json"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"Relu\",\"inputs\":[\"x\"],\"outputs\":[\"y\"]}],\"outputs\":[]}", "no outputs",
     "g.json"},
    {HEAD INPUT "\"nodes\":[3],\"outputs\":[\"y\"]}", "nodes[0] is a whole number, it should be an object", "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"name\":\"n\",\"outputs\":[\"y\"]}],\"outputs\":[\"y\"]}", "has no 'op'", "nodes[0] 'n'"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"\",\"outputs\":[\"y\"]}],\"outputs\":[\"y\"]}", "has no operator", "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\"}],\"outputs\":[\"y\"]}", "has no 'outputs'", "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"name\":\"n\",\"outputs\":[\"y\"],\"atrs\":{}}],\"outputs\":[\"y\"]}",
     "unknown key 'atrs'", "nodes[0] 'n'"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"inputs\":[1],\"outputs\":[\"y\"]}],\"outputs\":[\"y\"]}", "are names",
     "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"inputs\":[\"hole\"],\"outputs\":[\"y\"]}],\"outputs\":[\"y\"]}",
     "'hole', which nothing produces", "node 'R_0'"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"outputs\":[\"x\"]}],\"outputs\":[\"x\"]}", "'x', which is a graph input",
     "nodes[0]"},
    {HEAD "\"nodes\":[{\"op\":\"R\",\"name\":\"a\",\"outputs\":[\"y\"]},{\"op\":\"R\",\"name\":\"b\",\"outputs\":"
          "[\"y\"]}],\"outputs\":[\"y\"]}",
     "nodes 'a' and 'b' both produce 'y'", "nodes[1] 'b'"},
    {HEAD "\"nodes\":[{\"op\":\"R\",\"name\":\"a\",\"outputs\":[\"y\"]},{\"op\":\"R\",\"name\":\"a\",\"outputs\":"
          "[\"z\"]}],\"outputs\":[\"y\"]}",
     "'a' is given to two nodes", "nodes[1] 'a'"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"outputs\":[\"y\"],\"attrs\":{\"a\":true}}],\"outputs\":[\"y\"]}",
     "attribute 'a' of nodes[0]", "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"outputs\":[\"y\"],\"attrs\":{\"a\":[1,\"b\"]}}],\"outputs\":[\"y\"]}",
     "attribute 'a' of nodes[0]", "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"outputs\":[\"y\"],\"attrs\":{\"a\":{\"dtype\":\"int64\"}}}],\"outputs\":"
                "[\"y\"]}",
     "a has no 'shape'", "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"Opaque\",\"outputs\":[\"y\"],\"output_types\":[]}],\"outputs\":[\"y\"]}",
     "1 outputs and 0 output types", "nodes[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"Opaque\",\"outputs\":[\"y\"],\"output_types\":[{\"dtype\":\"float32\",\"shape\":"
                "[\"N\"]}]}],\"outputs\":[\"y\"]}",
     "extent 0", "nodes[0]"},
    {HEAD INPUT NODE ",\"initializers\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[],\"fill\":0}]}",
     "'x' is given to two values", "initializers[0] 'x'"},
    {HEAD "\"inputs\":[{\"dtype\":\"float32\",\"shape\":[2]}]," NODE "}", "has no 'name'", "inputs[0]"},
    {HEAD "\"inputs\":[{\"name\":\"\",\"dtype\":\"float32\",\"shape\":[2]}]," NODE "}", "has no name", "inputs[0]"},
    {HEAD "\"inputs\":[{\"name\":\"x\",\"shape\":[2]}]," NODE "}", "has no 'dtype'", "inputs[0] 'x'"},
    {HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"flaot32\",\"shape\":[2]}]," NODE "}", "element type 'flaot32'",
     "inputs[0] 'x'"},
    {HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\"}]," NODE "}", "has no 'shape'", "inputs[0] 'x'"},
    {HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[-1]}]," NODE "}", "extent 0", "inputs[0] 'x'"},
    {HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[1.5]}]," NODE "}", "extent 0", "inputs[0] 'x'"},
    {HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[\"\"]}]," NODE "}", "extent 0",
     "inputs[0] 'x'"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"outputs\":[\"y\"]}],\"outputs\":[\"z\"]}", "graph output 'z'",
     "outputs[0]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"outputs\":[\"y\"]}],\"outputs\":[\"y\",\"y\"]}", "'y' is listed twice",
     "outputs[1]"},
    {HEAD INPUT "\"nodes\":[{\"op\":\"R\",\"outputs\":[\"y\"]}],\"outputs\":[7]}", "outputs[0] should be a name",
     "outputs[0]"},
};

static void test_bad_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g = NULL;
        const tide_status st = import_text(bad_texts[i].text, &g, &err);
        if (st != TIDE_ERR_BAD_INPUT) fail_msg("%s: got %s (%s)", bad_texts[i].text, tide_status_name(st), err.msg);
        assert_null(g);
        assert_text_has(err.msg, bad_texts[i].says);
        assert_text_has(err.where, bad_texts[i].where);
    }
}

static void test_hint_for_a_misspelt_key(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    assert_tide_status(import_text(HEAD INPUT NODE ",\"initialisers\":[]}", &g, &err), TIDE_ERR_BAD_INPUT);
    assert_string_equal(err.hint, "did you mean 'initializers'?");
    assert_tide_status(
        import_text(HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"flaot32\",\"shape\":[]}]," NODE "}", &g, &err),
        TIDE_ERR_BAD_INPUT);
    assert_string_equal(err.hint, "did you mean 'float32'?");
    assert_tide_status(import_text(HEAD INPUT NODE ",\"zzzzzzzzzz\":[]}", &g, &err), TIDE_ERR_BAD_INPUT);
    assert_string_equal(err.hint, "");
}

static void test_bad_initializers(void **state) {
    (void)state;
    static const struct {
        const char *body, *says;
    } rows[] = {
        {"\"dtype\":\"float32\",\"shape\":[2]", "needs one of"},
        {"\"dtype\":\"float32\",\"shape\":[2],\"fill\":0,\"values\":[1,2]", "needs one of"},
        {"\"dtype\":\"float32\",\"shape\":[2],\"values\":[1]", "1 values, its shape has 2"},
        {"\"dtype\":\"float32\",\"shape\":[2],\"values\":[1,\"2\"]", "element 1"},
        {"\"dtype\":\"float32\",\"shape\":[2],\"values\":[1,true]", "element 1"},
        {"\"dtype\":\"int8\",\"shape\":[1],\"values\":[128]", "is no int8"},
        {"\"dtype\":\"int8\",\"shape\":[1],\"values\":[1.5]", "is no int8"},
        {"\"dtype\":\"uint64\",\"shape\":[1],\"values\":[-1]", "is no uint64"},
        {"\"dtype\":\"int64\",\"shape\":[1],\"values\":[1e19]", "is no int64"},
        {"\"dtype\":\"uint8\",\"shape\":[1],\"fill\":-1", "is no uint8"},
        {"\"dtype\":\"float32\",\"shape\":[\"N\"],\"fill\":0", "extent 0"},
        {"\"dtype\":\"string\",\"shape\":[1],\"fill\":0", "element type 'string'"},
        {"\"dtype\":\"float32\",\"shape\":[2],\"random\":{\"sed\":1}", "unknown key 'sed'"},
        {"\"dtype\":\"float32\",\"shape\":[2],\"random\":{\"low\":\"a\"}", "'low'"},
        {"\"dtype\":\"float32\",\"shape\":[2],\"random\":{\"low\":1,\"high\":1}", "low 1 is not below high 1"},
        {"\"dtype\":\"float64\",\"shape\":[2],\"random\":{\"low\":-1e308,\"high\":1e308}", "no finite distance"},
        {"\"dtype\":\"int8\",\"shape\":[2],\"random\":{\"low\":1000,\"high\":2000}", "is no int8"},
        {"\"dtype\":\"float32\",\"shape\":[4294967296,4294967296],\"fill\":0", "initializers[0] 'k'"},
        {"\"dtype\":\"float32\",\"shape\":[65536,16385],\"fill\":0", "limited to 4 GiB"},
        {"\"dtype\":\"float64\",\"shape\":[1152921504606846976],\"fill\":0", "initializers[0] 'k'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g = NULL;
        const tide_status st = import_initializer(rows[i].body, &g, &err);
        if (st != TIDE_ERR_BAD_INPUT) fail_msg("%s: got %s", rows[i].body, tide_status_name(st));
        assert_null(g);
        assert_text_has(err.msg, rows[i].says);
        assert_text_has(err.where, "g.json: initializers[0] 'k'");
    }
}

/// A refused tensor is never made: the allocator behind constants hears nothing of it.
static void test_limit_is_checked_before_memory_is_taken(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    tide_allocator *cpu = NULL;
    tide_allocator_stats before, after;
    assert_tide_ok(tide_registry_get(tide_registry_default(), TIDE_CPU, TIDE_KIND_HOST_PAGEABLE, &cpu, &err), &err);
    tide_allocator_get_stats(cpu, &before);
    assert_tide_status(import_initializer("\"dtype\":\"int8\",\"shape\":[4294967297],\"fill\":0", &g, &err),
                       TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "limited to 4 GiB");
    // Two that fit one by one and not together: the first one is small, the second is all of the limit.
    assert_tide_status(import_initializer("\"dtype\":\"int8\",\"shape\":[1],\"fill\":0},{\"name\":\"big\","
                                          "\"dtype\":\"int8\",\"shape\":[4294967296],\"fill\":0",
                                          &g, &err),
                       TIDE_ERR_BAD_INPUT);
    assert_text_has(err.where, "initializers[1] 'big'");
    tide_allocator_get_stats(cpu, &after);
    assert_int_equal(after.n_allocs, before.n_allocs + 1); // the one byte
    assert_int_equal(after.active_bytes, before.active_bytes);
}

static void test_truncated_text(void **state) {
    (void)state;
    const char *text = HEAD INPUT NODE "}";
    for (size_t len = 0; len < strlen(text); len++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g = NULL;
        assert_tide_status(tide_graph_from_json(text, len, "g.json", &g, &err), TIDE_ERR_BAD_INPUT);
        assert_text_has(err.where, "g.json:1:");
    }
}

static void test_deeply_nested_text(void **state) {
    (void)state;
    tide_text t = {0};
    for (int i = 0; i < 100000; i++) tide_text_add(&t, "[");
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    assert_tide_status(import_text(t.data, &g, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "not JSON");
    tide_text_deinit(&t);
}

// ---- the graphs of the project ----

static void check_sample(const char *path) {
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = NULL;
    tide_order o = {0};
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    assert_tide_ok(tide_graph_from_json(data, len, path, &g, &err), &err);
    assert_tide_ok(tide_graph_sort(g, &o, &err), &err);
    assert_int_equal(o.n, g->n_nodes);
    if (g->comment == NULL || g->comment[0] == '\0') fail_msg("%s does not say what it shows", path);
    tide_order_deinit(&o);
    tide_graph_destroy(g);
    tide_host_free(data);
}

static void test_sample_graphs(void **state) {
    (void)state;
    char folder[512], path[1024];
    DIR *dir = opendir(tide_source_path("sample_graphs", folder, sizeof folder));
    size_t n_found = 0;
    for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (suffix == NULL || strcmp(suffix, ".json") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_sample(path);
        n_found++;
    }
    if (dir != NULL) closedir(dir);
    if (n_found == 0) print_message("[  SKIPPED ] there are no sample graphs in %s\n", folder);
}

/// The graph that docs/graph-text.md shows is one.
static void test_documented_example(void **state) {
    (void)state;
    char path[512], *doc;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(tide_source_path("docs/graph-text.md", path, sizeof path), 0, &doc, &len, &err),
                   &err);
    char *begin = strstr(doc, "```json\n");
    assert_non_null(begin);
    begin += strlen("```json\n");
    char *end = strstr(begin, "```");
    assert_non_null(end);
    *end = '\0';
    tide_graph *g = import_good(begin);
    assert_int_equal(g->n_nodes, 3);
    assert_int_equal(g->nodes[0].opset, 13);
    tide_graph_destroy(g);
    tide_host_free(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_example),
        tide_unit_test(test_values_of_every_type),
        tide_unit_test(test_fill_and_scalars),
        tide_unit_test(test_random_is_seeded),
        tide_unit_test(test_attributes),
        tide_unit_test(test_opaque_output_types),
        tide_unit_test(test_made_up_names_yield_to_given_ones),
        tide_unit_test(test_bad_texts),
        tide_unit_test(test_hint_for_a_misspelt_key),
        tide_unit_test(test_bad_initializers),
        tide_unit_test(test_limit_is_checked_before_memory_is_taken),
        tide_unit_test(test_truncated_text),
        tide_unit_test(test_deeply_nested_text),
        tide_unit_test(test_sample_graphs),
        tide_unit_test(test_documented_example),
    };
    (void)tide_registry_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
