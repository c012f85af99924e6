// SPDX-License-Identifier: MIT
//
// Small graphs for the tests of core/graph, and operators of the tests' own: the passes must work for any table, so
// none of the real one is used here.
#ifndef TIDE_TESTS_GRAPH_GRAPH_FIXTURE_H
#define TIDE_TESTS_GRAPH_GRAPH_FIXTURE_H

#include "core/graph/passes.h"
#include "tests/tide_test.h"

// Each test uses some of these.
#define FIXTURE static inline TIDE_UNUSED

FIXTURE tide_graph *new_graph(void) {
    tide_graph *g = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_graph_create("test", "test.json", &g, &err), &err);
    return g;
}

FIXTURE uint32_t value_of(tide_graph *g, const char *name) {
    uint32_t i = TIDE_NO_VALUE;
    tide_error err = TIDE_ERROR_INIT;
    if (name[0] == '\0') return TIDE_NO_VALUE;
    assert_tide_ok(tide_graph_intern_value(g, name, &i, &err), &err);
    return i;
}

/// "a,b,,c" to value indices; an empty part is an omitted operand, an empty text is no operand at all.
FIXTURE size_t values_of(tide_graph *g, const char *names, uint32_t *out, size_t max) {
    size_t n = 0;
    while (*names != '\0') {
        char name[64];
        const size_t len = strcspn(names, ",");
        assert_true(len < sizeof name && n < max);
        memcpy(name, names, len);
        name[len] = '\0';
        out[n++] = value_of(g, name);
        names += len;
        if (*names == ',') names++;
    }
    return n;
}

FIXTURE uint32_t add_op(tide_graph *g, const char *op, const char *name, const char *inputs, const char *outputs) {
    uint32_t in[8], out[8], node_i = TIDE_NO_NODE;
    tide_error err = TIDE_ERROR_INIT;
    const size_t n_in = values_of(g, inputs, in, 8), n_out = values_of(g, outputs, out, 8);
    assert_tide_ok(tide_graph_add_node(g, name, op, "", 13, in, n_in, out, n_out, &node_i, &err), &err);
    return node_i;
}

FIXTURE void set_type(tide_graph *g, const char *name, tide_dtype dtype, int32_t rank, const int64_t *dims) {
    tide_value *v = &g->values[value_of(g, name)];
    v->dtype = dtype;
    v->shape = tide_shape_make(rank, dims);
    v->has_shape = true;
}

FIXTURE void add_input_f32(tide_graph *g, const char *name, int32_t rank, const int64_t *dims) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_graph_add_input(g, value_of(g, name), &err), &err);
    set_type(g, name, TIDE_F32, rank, dims);
}

FIXTURE void add_output_named(tide_graph *g, const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_graph_add_output(g, value_of(g, name), &err), &err);
}

/// A constant with its content copied from `data`.
FIXTURE void add_constant_of(tide_graph *g, const char *name, tide_dtype dtype, int32_t rank, const int64_t *dims,
                             const void *data) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = NULL;
    const tide_tensor_spec spec = {
        .dtype = dtype, .shape = tide_shape_make(rank, dims), .device = TIDE_CPU, .kind = TIDE_KIND_HOST_PAGEABLE};
    assert_tide_ok(tide_tensor_create(&spec, &t, &err), &err);
    if (data != NULL) memcpy(tide_tensor_data(t), data, tide_tensor_size_bytes(t));
    tide_graph_set_constant(g, value_of(g, name), t);
    tide_tensor_unref(t);
}

FIXTURE void add_attr_float(tide_graph *g, uint32_t node_i, const char *name, float f) {
    tide_error err = TIDE_ERROR_INIT;
    tide_attr a = {.name = tide_host_strdup(name), .type = TIDE_ATTR_FLOAT, .f = f};
    assert_tide_ok(tide_graph_add_attr(g, node_i, &a, &err), &err);
}

FIXTURE void add_attr_int(tide_graph *g, uint32_t node_i, const char *name, int64_t i) {
    tide_error err = TIDE_ERROR_INIT;
    tide_attr a = {.name = tide_host_strdup(name), .type = TIDE_ATTR_INT, .i = i};
    assert_tide_ok(tide_graph_add_attr(g, node_i, &a, &err), &err);
}

FIXTURE size_t n_live(const tide_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i].dead;
    return n;
}

FIXTURE const float *floats_of(const tide_graph *g, const char *name) {
    const uint32_t i = tide_graph_find_value(g, name);
    assert_true(i != TIDE_NO_VALUE && g->values[i].constant != NULL);
    return tide_tensor_const_data(g->values[i].constant);
}

#endif
