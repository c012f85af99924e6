// SPDX-License-Identifier: MIT
//
// The graph itself: values, nodes, edges, attributes, and what it refuses.
#include "tests/graph/graph_fixture.h"

static void test_values_and_nodes(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    const uint32_t conv = add_op(g, "Conv", "c", "x,w,", "y");
    const uint32_t split = add_op(g, "Split", NULL, "y", "p,q");
    assert_int_equal(g->n_nodes, 2);
    assert_string_equal(g->nodes[split].name, "Split_1");
    assert_string_equal(g->nodes[split].domain, "");
    assert_int_equal(g->nodes[conv].n_inputs, 2);
    const tide_value *q = &g->values[tide_graph_find_value(g, "q")];
    assert_int_equal(q->producer, split);
    assert_int_equal(q->producer_port, 1);
    assert_int_equal(tide_graph_count_uses(g, tide_graph_find_value(g, "y")), 1);
    assert_int_equal(tide_graph_find_value(g, "nobody"), TIDE_NO_VALUE);
    tide_graph_destroy(g);
    tide_graph_destroy(NULL);
}

static void test_omitted_operand(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    const uint32_t n = add_op(g, "Clip", "c", "x,,max", "y");
    assert_int_equal(g->nodes[n].n_inputs, 3);
    assert_int_equal(g->nodes[n].inputs[1], TIDE_NO_VALUE);
    tide_graph_destroy(g);
}

static void test_uses_count_positions(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    add_op(g, "Mul", "square", "x,x", "y");
    const uint32_t dead = add_op(g, "Relu", "dead", "x", "z");
    g->nodes[dead].dead = true;
    assert_int_equal(tide_graph_count_uses(g, value_of(g, "x")), 2);
    tide_graph_destroy(g);
}

static void test_duplicates_are_refused(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    uint32_t i;
    add_op(g, "Relu", "first", "x", "y");
    add_input_f32(g, "in", 0, NULL);
    const float one = 1;
    add_constant_of(g, "k", TIDE_F32, 0, NULL, &one);
    const size_t n_nodes = g->n_nodes;

    assert_tide_status(tide_graph_add_value(g, "x", &i, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "'x'");
    assert_tide_status(tide_graph_add_value(g, "", &i, &err), TIDE_ERR_BAD_INPUT);
    static const struct {
        const char *outputs;
        const char *says;
    } bad[] = {{"y", "'first' and 'second' both produce 'y'"},
               {"in", "'in', which is a graph input"},
               {"k", "'k', which is a constant"},
               {"z,z", "'z' twice"}};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        uint32_t out[2];
        const size_t n_out = values_of(g, bad[k].outputs, out, 2);
        assert_tide_status(tide_graph_add_node(g, "second", "Relu", "", 13, NULL, 0, out, n_out, &i, &err),
                           TIDE_ERR_BAD_INPUT);
        assert_text_has(err.msg, bad[k].says);
        assert_int_equal(g->n_nodes, n_nodes);
    }
    assert_int_equal(g->values[value_of(g, "z")].producer, TIDE_NO_NODE);
    assert_tide_status(tide_graph_add_input(g, value_of(g, "in"), &err), TIDE_ERR_BAD_INPUT);
    assert_tide_status(tide_graph_add_input(g, value_of(g, "y"), &err), TIDE_ERR_BAD_INPUT);
    add_output_named(g, "y");
    assert_tide_status(tide_graph_add_output(g, value_of(g, "y"), &err), TIDE_ERR_BAD_INPUT);
    assert_int_equal(g->n_outputs, 1);
    tide_graph_destroy(g);
}

static void test_validate(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    add_input_f32(g, "x", 0, NULL);
    add_op(g, "Add", "sum", "x,hole", "y");
    add_output_named(g, "y");
    assert_tide_status(tide_graph_validate(g, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "'sum'");
    assert_text_has(err.msg, "'hole'");
    const float one = 1;
    add_constant_of(g, "hole", TIDE_F32, 0, NULL, &one);
    assert_tide_ok(tide_graph_validate(g, &err), &err);
    add_output_named(g, "nothing");
    assert_tide_status(tide_graph_validate(g, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "'nothing'");
    tide_graph_destroy(g);
}

static void test_validate_sees_dead_producers(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    add_input_f32(g, "x", 0, NULL);
    const uint32_t first = add_op(g, "Relu", "first", "x", "y");
    add_op(g, "Relu", "second", "y", "z");
    add_output_named(g, "z");
    assert_tide_ok(tide_graph_validate(g, &err), &err);
    g->nodes[first].dead = true;
    assert_tide_status(tide_graph_validate(g, &err), TIDE_ERR_BAD_INPUT);
    tide_graph_destroy(g);
}

static void test_attributes(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    const uint32_t i = add_op(g, "Op", "n", "x", "y");
    add_attr_int(g, i, "axis", -1);
    add_attr_float(g, i, "alpha", 0.5f);
    tide_attr text = {.name = tide_host_strdup("mode"), .type = TIDE_ATTR_STRING, .s = tide_host_strdup("same")};
    assert_tide_ok(tide_graph_add_attr(g, i, &text, &err), &err);
    const tide_node *n = &g->nodes[i];
    size_t len = 99;
    assert_int_equal(tide_node_attr_int(n, "axis", 7), -1);
    assert_int_equal(tide_node_attr_int(n, "other", 7), 7);
    assert_int_equal(tide_node_attr_int(n, "alpha", 7), 7);
    assert_true(tide_node_attr_float(n, "alpha", 0) == 0.5f);
    assert_true(tide_node_attr_float(n, "axis", 0) == -1.0f);
    assert_string_equal(tide_node_attr_string(n, "mode", "x"), "same");
    assert_string_equal(tide_node_attr_string(n, "axis", "x"), "x");
    assert_null(tide_node_attr_ints(n, "axis", &len));
    assert_int_equal(len, 0);
    tide_attr again = {.name = tide_host_strdup("axis"), .type = TIDE_ATTR_INT, .i = 3};
    assert_tide_status(tide_graph_add_attr(g, i, &again, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "'axis'");
    assert_int_equal(tide_node_attr_int(&g->nodes[i], "axis", 7), -1);
    tide_graph_destroy(g);
}

static void test_constant_sets_type(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    const int64_t dims[] = {2, 3};
    const int64_t data[6] = {1, 2, 3, 4, 5, 6};
    add_constant_of(g, "k", TIDE_I64, 2, dims, data);
    const tide_value *v = &g->values[value_of(g, "k")];
    assert_int_equal(v->dtype, TIDE_I64);
    assert_true(v->has_shape && v->shape.rank == 2 && v->shape.dims[1] == 3);
    add_constant_of(g, "k", TIDE_I64, 1, dims, data); // replaces, frees the first
    assert_int_equal(g->values[value_of(g, "k")].shape.rank, 1);
    tide_graph_destroy(g);
}

static void test_prune(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    tide_error err = TIDE_ERROR_INIT;
    const float one = 1;
    size_t killed = 99;
    add_input_f32(g, "x", 0, NULL);
    add_constant_of(g, "used", TIDE_F32, 0, NULL, &one);
    add_constant_of(g, "unused", TIDE_F32, 0, NULL, &one);
    add_constant_of(g, "of_dead", TIDE_F32, 0, NULL, &one);
    add_constant_of(g, "output", TIDE_F32, 0, NULL, &one);
    const uint32_t keep = add_op(g, "Add", "keep", "x,used", "y");
    const uint32_t side = add_op(g, "Add", "side", "y,of_dead", "s");
    const uint32_t tail = add_op(g, "Relu", "tail", "s", "t");
    add_output_named(g, "y");
    add_output_named(g, "output");
    assert_tide_ok(tide_graph_prune(g, &killed, &err), &err);
    assert_int_equal(killed, 2);
    assert_false(g->nodes[keep].dead);
    assert_true(g->nodes[side].dead && g->nodes[tail].dead);
    assert_non_null(g->values[value_of(g, "used")].constant);
    assert_non_null(g->values[value_of(g, "output")].constant);
    assert_null(g->values[value_of(g, "unused")].constant);
    assert_null(g->values[value_of(g, "of_dead")].constant);
    assert_tide_ok(tide_graph_prune(g, &killed, &err), &err);
    assert_int_equal(killed, 0);
    tide_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_values_and_nodes),
        tide_unit_test(test_omitted_operand),
        tide_unit_test(test_uses_count_positions),
        tide_unit_test(test_duplicates_are_refused),
        tide_unit_test(test_validate),
        tide_unit_test(test_validate_sees_dead_producers),
        tide_unit_test(test_attributes),
        tide_unit_test(test_constant_sets_type),
        tide_unit_test(test_prune),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
