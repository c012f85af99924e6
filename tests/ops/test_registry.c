// SPDX-License-Identifier: MIT
//
// The operator registry: rows are well-formed and disjoint, nodes find theirs, and a node that finds none is told why.
#include "core/ops/ops.h"
#include "tests/tide_test.h"

/// Two rows of one name never serve the same opset, and every row can be called.
static void test_table_is_sound(void **state) {
    (void)state;
    const tide_op_def *const *t;
    const size_t n = tide_op_table(&t);
    assert_true(n > 20);
    for (size_t i = 0; i < n; i++) {
        assert_non_null(t[i]->domain);
        assert_non_null(t[i]->infer);
        assert_true(t[i]->since >= 1);
        assert_true(t[i]->until == 0 || t[i]->until >= t[i]->since);
        assert_true(t[i]->max_inputs == 0 || t[i]->max_inputs >= t[i]->min_inputs);
        assert_true(t[i]->max_outputs == 0 || t[i]->max_outputs >= t[i]->min_outputs);
        if ((t[i]->flags & (TIDE_OP_PLAN_ONLY | TIDE_OP_CONTROL)) == 0 && t[i]->run == NULL)
            fail_msg("%s has no kernel", t[i]->name);
        if (t[i]->exec_create != NULL && t[i]->exec_destroy == NULL) fail_msg("%s leaks its exec", t[i]->name);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(t[i]->name, t[j]->name) != 0 || strcmp(t[i]->domain, t[j]->domain) != 0) continue;
            const bool before = t[i]->until != 0 && t[i]->until < t[j]->since;
            const bool after = t[j]->until != 0 && t[j]->until < t[i]->since;
            if (!before && !after) fail_msg("%s has two rows for one opset", t[i]->name);
        }
    }
}

static void test_find_by_opset(void **state) {
    (void)state;
    assert_string_equal(tide_op_find("", "Softmax", 12)->name, "Softmax");
    assert_int_equal(tide_op_find("", "Softmax", 12)->until, 12);
    assert_int_equal(tide_op_find("", "Softmax", 13)->since, 13);
    assert_int_equal(tide_op_find("", "Clip", 10)->max_inputs, 1);
    assert_int_equal(tide_op_find("", "Clip", 11)->max_inputs, 3);
    assert_ptr_equal(tide_op_find(NULL, "Conv", 11), tide_op_find("", "Conv", 7));
    assert_null(tide_op_find("", "LayerNormalization", 16));
    assert_null(tide_op_find("com.example", "Conv", 11));
    assert_null(tide_op_find("", "conv", 11));
}

// A graph of one node with `n_in` inputs.
static tide_graph *one_node(const char *op, const char *domain, int opset, size_t n_in, size_t n_out) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g;
    assert_tide_ok(tide_graph_create("one", "", &g, &err), &err);
    uint32_t in[8], out[8], node;
    char name[32];
    for (size_t i = 0; i < n_in; i++) {
        snprintf(name, sizeof name, "in%zu", i);
        assert_tide_ok(tide_graph_add_value(g, name, &in[i], &err), &err);
        assert_tide_ok(tide_graph_add_input(g, in[i], &err), &err);
    }
    for (size_t i = 0; i < n_out; i++) {
        snprintf(name, sizeof name, "out%zu", i);
        assert_tide_ok(tide_graph_add_value(g, name, &out[i], &err), &err);
    }
    assert_tide_ok(tide_graph_add_node(g, "the_node", op, domain, opset, in, n_in, out, n_out, &node, &err), &err);
    return g;
}

typedef struct miss {
    const char *op, *domain;
    int opset;
    size_t n_in, n_out;
    tide_status want;
    const char *msg, *hint;
} miss;

/// S27-20: a missing operator fails the build, with what to do about it.
static void test_resolve_says_why(void **state) {
    (void)state;
    static const miss rows[] = {
        {"Convv", "", 11, 2, 1, TIDE_ERR_NOT_IMPLEMENTED, "operator 'Convv' of node 'the_node'", "'Conv'"},
        {"relu", "", 11, 1, 1, TIDE_ERR_NOT_IMPLEMENTED, "'relu'", "'Relu'"},
        {"LayerNormalization", "", 16, 2, 1, TIDE_ERR_NOT_IMPLEMENTED, "for opset 16", "served for opset 17 and later"},
        {"Clip", "", 5, 1, 1, TIDE_ERR_NOT_IMPLEMENTED, "for opset 5", "6 to 10, 11 and later"},
        {"Zzyzx", "", 11, 1, 1, TIDE_ERR_NOT_IMPLEMENTED, "'Zzyzx'", ""},
        {"Conv", "com.example", 1, 2, 1, TIDE_ERR_NOT_IMPLEMENTED, "'com.example.Conv'", "'Conv'"},
        {"Conv", "", 11, 4, 1, TIDE_ERR_BAD_INPUT, "Conv 'the_node' has 4 inputs, the operator takes 2 to 3", ""},
        {"Relu", "", 11, 1, 2, TIDE_ERR_BAD_INPUT, "Relu 'the_node' has 2 outputs, the operator takes 1", ""},
        {"MatMul", "", 11, 1, 1, TIDE_ERR_BAD_INPUT, "MatMul 'the_node' has 1 input, the operator takes 2", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_graph *g = one_node(rows[i].op, rows[i].domain, rows[i].opset, rows[i].n_in, rows[i].n_out);
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_ops_resolve(g, &err), rows[i].want);
        assert_text_has(err.msg, rows[i].msg);
        assert_text_has(err.hint, rows[i].hint);
        assert_null(g->nodes[0].def);
        tide_graph_destroy(g);
    }
}

/// An attribute under another type is not taken for an absent one, whose default would stand in for it.
static void test_resolve_holds_attributes_to_their_types(void **state) {
    (void)state;
    static const struct {
        const char *op, *name;
        tide_attr_type type;
        size_t n; ///< of a list
        const char *says;
    } rows[] = {
        {"Softmax", "axis", TIDE_ATTR_INT, 0, NULL},
        {"Softmax", "axis", TIDE_ATTR_STRING, 0, "attribute 'axis' is a string, must be an integer"},
        {"Softmax", "axis", TIDE_ATTR_FLOAT, 0, "attribute 'axis' is a number, must be an integer"},
        {"Softmax", "axis", TIDE_ATTR_INTS, 1, "attribute 'axis' is a list of integers, must be an integer"},
        {"Elu", "alpha", TIDE_ATTR_INT, 0, NULL}, // graph text writes 2.0 as 2
        {"Elu", "alpha", TIDE_ATTR_STRING, 0, "must be a number"},
        {"Transpose", "perm", TIDE_ATTR_FLOATS, 0, NULL}, // a list of nothing
        {"Transpose", "perm", TIDE_ATTR_INT, 0, "must be a list of integers"},
        {"DepthToSpace", "mode", TIDE_ATTR_INT, 0, "must be a string"},
        {"ConstantOfShape", "value", TIDE_ATTR_FLOAT, 0, "attribute 'value' is a number, must be a tensor"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_graph *g = one_node(rows[i].op, "", 13, 1, 1);
        tide_error err = TIDE_ERROR_INIT;
        tide_attr a = {.name = tide_host_strdup(rows[i].name), .type = rows[i].type, .n = rows[i].n};
        assert_tide_ok(tide_graph_add_attr(g, 0, &a, &err), &err);
        assert_tide_status(tide_ops_resolve(g, &err), rows[i].says == NULL ? TIDE_OK : TIDE_ERR_BAD_INPUT);
        if (rows[i].says != NULL) assert_text_has(err.msg, rows[i].says);
        if (rows[i].says != NULL) assert_text_has(err.msg, "'the_node'");
        tide_graph_destroy(g);
    }
}

/// An attribute that the operator does not have, or not in this version, would be passed over in silence.
static void test_resolve_refuses_attributes_that_are_not_the_operators(void **state) {
    (void)state;
    static const struct {
        const char *op, *domain, *name;
        int opset;
        size_t n_in;
        const char *says, *hint; ///< NULL: it is taken
    } rows[] = {
        {"Softmax", "", "axiss", 13, 1, "Softmax 'the_node': the operator has no attribute 'axiss'", "is 'axis'"},
        {"Conv", "", "stride", 11, 2, "the operator has no attribute 'stride'", "the nearest that it has is 'strides'"},
        {"Gemm", "", "zzyzx", 11, 3, "no attribute 'zzyzx'", "it has: alpha, beta, transA, transB"},
        {"Relu", "", "unheard_of", 13, 1, "no attribute 'unheard_of'", "it has none in opset 13"},
        {"Relu", "", "", 13, 1, "no attribute ''", "it has none"},
        {"GRU", "", "input_forget", 14, 3, "no attribute 'input_forget'", ""}, // an LSTM has it
        {"QuickGelu", "com.microsoft", "alph", 1, 1, "no attribute 'alph'", "'alpha'"},
        {"FastGelu", "com.microsoft", "alpha", 1, 1, "no attribute 'alpha'", "it has none"},
        // Of another version of the row, then of another row.
        {"MaxPool", "", "dilations", 9, 1, "attribute 'dilations' is there from opset 10, the node is of opset 9",
         "later"},
        {"MaxPool", "", "dilations", 10, 1, NULL, NULL},
        {"Add", "", "broadcast", 7, 2, "attribute 'broadcast' is there up to opset 6, the node is of opset 7",
         "earlier"},
        {"Add", "", "broadcast", 6, 2, NULL, NULL},
        {"Squeeze", "", "axes", 13, 1, "attribute 'axes' is there up to opset 12, the node is of opset 13", "earlier"},
        {"ReduceMax", "", "noop_with_empty_axes", 17, 1, "is there from opset 18, the node is of opset 17", "later"},
        {"DFT", "", "axis", 20, 1, "attribute 'axis' is there up to opset 19, the node is of opset 20", "earlier"},
        // What every node may have.
        {"Relu", "", "__note", 13, 1, NULL, NULL},
        {"Relu", "", "_note", 13, 1, "no attribute '_note'", ""},
        {"Relu", "", "consumed_inputs", 5, 1, NULL, NULL},
        {"Relu", "", "consumed_inputs", 6, 1, "no attribute 'consumed_inputs'", "it has none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_graph *g = one_node(rows[i].op, rows[i].domain, rows[i].opset, rows[i].n_in, 1);
        tide_error err = TIDE_ERROR_INIT;
        tide_attr a = {.name = tide_host_strdup(rows[i].name), .type = TIDE_ATTR_INT};
        const bool is_list = strcmp(rows[i].name, "dilations") == 0;
        if (is_list) a.type = TIDE_ATTR_INTS;
        assert_tide_ok(tide_graph_add_attr(g, 0, &a, &err), &err);
        assert_tide_status(tide_ops_resolve(g, &err), rows[i].says == NULL ? TIDE_OK : TIDE_ERR_BAD_INPUT);
        if (rows[i].says != NULL) assert_text_has(err.msg, rows[i].says);
        if (rows[i].says != NULL) assert_text_has(err.hint, rows[i].hint);
        tide_graph_destroy(g);
    }
}

/// Lists of attributes are well-formed: names once, versions that the row serves, and the list ends.
static void test_declared_attributes_are_sound(void **state) {
    (void)state;
    const tide_op_def *const *t;
    const size_t n = tide_op_table(&t);
    size_t n_attrs = 0;
    for (size_t i = 0; i < n; i++) {
        for (const tide_attr_def *a = t[i]->attrs; a != NULL && a->name != NULL; a++, n_attrs++) {
            if (a->since != 0 && (a->since <= t[i]->since || (t[i]->until != 0 && a->since > t[i]->until)))
                fail_msg("%s: '%s' begins outside of what the row serves", t[i]->name, a->name);
            if (a->until != 0 && (a->until < t[i]->since || (t[i]->until != 0 && a->until >= t[i]->until)))
                fail_msg("%s: '%s' ends outside of what the row serves", t[i]->name, a->name);
            for (const tide_attr_def *b = t[i]->attrs; b < a; b++)
                if (strcmp(a->name, b->name) == 0) fail_msg("%s has '%s' twice", t[i]->name, a->name);
        }
    }
    assert_true(n_attrs > 200);
}

static void test_resolve_sets_def(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = one_node("Conv", "", 11, 3, 1);
    assert_tide_ok(tide_ops_resolve(g, &err), &err);
    assert_ptr_equal(g->nodes[0].def, tide_op_find("", "Conv", 11));
    // Left out at the end is fine, left out where the operator needs it is not.
    g->nodes[0].inputs[2] = TIDE_NO_VALUE;
    assert_tide_ok(tide_ops_resolve(g, &err), &err);
    g->nodes[0].inputs[0] = TIDE_NO_VALUE;
    assert_tide_status(tide_ops_resolve(g, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "input 0 is left out");
    tide_graph *two = one_node("Unique", "", 13, 1, 2); // the second output may be left out, the first may not
    two->nodes[0].outputs[1] = TIDE_NO_VALUE;
    assert_tide_ok(tide_ops_resolve(two, &err), &err);
    two->nodes[0].outputs[1] = two->nodes[0].outputs[0];
    two->nodes[0].outputs[0] = TIDE_NO_VALUE;
    assert_tide_status(tide_ops_resolve(two, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "output 0 is left out");
    tide_graph_destroy(two);
    // Dead nodes are not checked.
    g->nodes[0].dead = true;
    assert_tide_ok(tide_ops_resolve(g, &err), &err);
    tide_graph_destroy(g);
}

// ---- operators of a program's own ----

static tide_status infer_nothing(const tide_infer *x, tide_error *err) {
    (void)x;
    (void)err;
    return TIDE_OK;
}

static tide_status run_nothing(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k;
    (void)args;
    (void)err;
    return TIDE_OK;
}

static tide_status create_nothing(const tide_kernel *k, void **exec, tide_error *err) {
    (void)k;
    (void)err;
    *exec = NULL;
    return TIDE_OK;
}

static const tide_op_def own = {
    .domain = "com.example", .name = "Own", .since = 1, .infer = infer_nothing, .run = run_nothing};

/// They are found from then on, by version, until they are taken back; the table's own stay.
static void test_own_operators(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_op_def first = own, second = own, standard = own;
    first.until = 4;
    second.since = 5;
    standard.domain = "";
    standard.name = "Ours";
    const tide_op_def *const *t;
    const size_t n = tide_op_table(&t);
    assert_null(tide_op_find("com.example", "Own", 1));
    assert_tide_ok(tide_ops_add((const tide_op_def *const[]){&first}, 1, &err), &err);
    assert_tide_ok(tide_ops_add((const tide_op_def *const[]){&second, &standard}, 2, &err), &err);
    assert_ptr_equal(tide_op_find("com.example", "Own", 4), &first);
    assert_ptr_equal(tide_op_find("com.example", "Own", 5), &second);
    assert_ptr_equal(tide_op_find("", "Ours", 20), &standard);
    assert_string_equal(tide_op_find("", "Conv", 11)->name, "Conv");
    assert_int_equal(tide_op_table(&t), n + 3);
    tide_graph *g = one_node("Own", "com.example", 5, 1, 1);
    assert_tide_ok(tide_ops_resolve(g, &err), &err);
    assert_ptr_equal(g->nodes[0].def, &second);
    tide_graph_destroy(g);
    g = one_node("Owm", "com.example", 5, 1, 1);
    assert_tide_status(tide_ops_resolve(g, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.hint, "'com.example.Own'");
    tide_graph_destroy(g);
    tide_ops_remove_added();
    tide_ops_remove_added();
    assert_int_equal(tide_op_table(&t), n);
    assert_null(tide_op_find("com.example", "Own", 5));
}

/// What cannot be an operator is refused by name, and then none of those beside it is added.
static void test_no_operators(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    enum { N_BAD = 12 };
    tide_op_def good = own, planned_only = own, bad[N_BAD];
    good.name = "Good";
    planned_only.run = NULL;
    planned_only.flags = TIDE_OP_PLAN_ONLY;
    for (size_t i = 0; i < N_BAD; i++) bad[i] = own;
    bad[0].name = "";
    bad[1].domain = NULL;
    bad[2].infer = NULL;
    bad[3].run = NULL;
    bad[4].since = 0;
    bad[5].since = 3, bad[5].until = 2;
    bad[6].min_inputs = 2, bad[6].max_inputs = 1;
    bad[7].min_outputs = 2, bad[7].max_outputs = 1;
    bad[8].exec_create = create_nothing;
    bad[9].domain = "ai.onnx";
    bad[10].domain = "", bad[10].name = "Conv";
    bad[11].name = "Good", bad[11].until = 7;
    static const char *const says[N_BAD] = {"no name",          "no domain",    "no infer",       "no kernel",
                                            "no version",       "no version",   "fewer inputs",   "fewer outputs",
                                            "does not destroy", "written \"\"", "served already", "served already"};
    for (size_t i = 0; i < N_BAD; i++) {
        assert_tide_status(tide_ops_add((const tide_op_def *const[]){&good, &bad[i]}, 2, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, says[i]);
        assert_null(tide_op_find("com.example", "Good", 1));
    }
    assert_tide_ok(tide_ops_add((const tide_op_def *const[]){&planned_only, &good}, 2, &err), &err);
    tide_ops_remove_added();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_table_is_sound),
        tide_unit_test(test_find_by_opset),
        tide_unit_test(test_own_operators),
        tide_unit_test(test_no_operators),
        tide_unit_test(test_resolve_says_why),
        tide_unit_test(test_resolve_holds_attributes_to_their_types),
        tide_unit_test(test_resolve_refuses_attributes_that_are_not_the_operators),
        tide_unit_test(test_declared_attributes_are_sound),
        tide_unit_test(test_resolve_sets_def),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
