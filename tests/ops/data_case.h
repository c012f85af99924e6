// SPDX-License-Identifier: MIT
//
// One operator under test: a graph of one node whose inputs are constants (or left open), evaluated by folding.
// Used by test_data_ops and test_data_oracle.
#ifndef TIDE_TESTS_OPS_DATA_CASE_H
#define TIDE_TESTS_OPS_DATA_CASE_H

#include "tests/tide_test.h"

#include "core/graph/passes.h"
#include "core/ops/data_util.h"
#include "core/ops/ops.h"

enum { CASE_MAX = 8 };

typedef struct op_case {
    const char *op, *domain;
    int opset;
    tide_graph *g;
    uint32_t in[CASE_MAX], out[CASE_MAX];
    size_t n_in, n_out;
    tide_attr attrs[CASE_MAX]; ///< owned until the node takes them
    size_t n_attrs;
    tide_error err;
} op_case;

/// n extents as two arguments: DIMS(2, 3) for [2x3], DIMS0 for a scalar.
#define DIMS(...)                                                                                                      \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define DIMS0 0, NULL

static inline op_case case_begin(const char *op, int opset) {
    op_case c = {.op = op, .domain = "", .opset = opset};
    assert_tide_ok(tide_graph_create("case", "", &c.g, &c.err), &c.err);
    return c;
}

static inline uint32_t case_value(op_case *c, const char *prefix, size_t i) {
    char name[32];
    uint32_t value_i;
    snprintf(name, sizeof name, "%s%zu", prefix, i);
    assert_tide_ok(tide_graph_add_value(c->g, name, &value_i, &c->err), &c->err);
    return value_i;
}

/// A constant input; `data` is copied.
static inline void case_in(op_case *c, tide_dtype dtype, int32_t rank, const int64_t *dims, const void *data) {
    const tide_tensor_spec spec = {.dtype = dtype, .shape = tide_shape_make(rank, dims), .device = TIDE_CPU};
    tide_tensor *t = NULL;
    assert_tide_ok(tide_tensor_create(&spec, &t, &c->err), &c->err);
    if (data != NULL && tide_tensor_size_bytes(t) != 0) memcpy(tide_tensor_data(t), data, tide_tensor_size_bytes(t));
    c->in[c->n_in] = case_value(c, "in", c->n_in);
    tide_graph_set_constant(c->g, c->in[c->n_in++], t);
    tide_tensor_unref(t);
}

/// An input of which only type and shape are known.
static inline void case_open(op_case *c, tide_dtype dtype, int32_t rank, const int64_t *dims) {
    const uint32_t value_i = case_value(c, "in", c->n_in);
    c->g->values[value_i].dtype = dtype;
    c->g->values[value_i].has_shape = true;
    c->g->values[value_i].shape = tide_shape_make(rank, dims);
    assert_tide_ok(tide_graph_add_input(c->g, value_i, &c->err), &c->err);
    c->in[c->n_in++] = value_i;
}

static inline void case_omit(op_case *c) { c->in[c->n_in++] = TIDE_NO_VALUE; }

static inline tide_attr *case_attr(op_case *c, const char *name, tide_attr_type type) {
    tide_attr *const a = &c->attrs[c->n_attrs++];
    *a = (tide_attr){.name = tide_host_strdup(name), .type = type};
    return a;
}
static inline void case_int(op_case *c, const char *name, int64_t v) { case_attr(c, name, TIDE_ATTR_INT)->i = v; }
static inline void case_float(op_case *c, const char *name, float v) { case_attr(c, name, TIDE_ATTR_FLOAT)->f = v; }
static inline void case_string(op_case *c, const char *name, const char *v) {
    case_attr(c, name, TIDE_ATTR_STRING)->s = tide_host_strdup(v);
}
static inline void case_ints(op_case *c, const char *name, int32_t n, const int64_t *v) {
    tide_attr *const a = case_attr(c, name, TIDE_ATTR_INTS);
    a->n = (size_t)n;
    a->ints = tide_host_calloc((size_t)n + 1, sizeof *a->ints);
    assert_non_null(a->ints);
    for (int32_t i = 0; i < n; i++) a->ints[i] = v[i];
}

/// Make the node with `n_out` outputs, infer and fold. c->err says what went wrong.
static inline tide_status case_try(op_case *c, size_t n_out) {
    uint32_t node_i;
    c->n_out = n_out;
    for (size_t i = 0; i < n_out; i++) c->out[i] = case_value(c, "out", i);
    assert_tide_ok(tide_graph_add_node(c->g, "the_node", c->op, c->domain, c->opset, c->in, c->n_in, c->out, n_out,
                                       &node_i, &c->err),
                   &c->err);
    for (size_t i = 0; i < c->n_attrs; i++)
        assert_tide_ok(tide_graph_add_attr(c->g, node_i, &c->attrs[i], &c->err), &c->err);
    c->n_attrs = 0;
    for (size_t i = 0; i < n_out; i++) assert_tide_ok(tide_graph_add_output(c->g, c->out[i], &c->err), &c->err);
    TIDE_TRY(tide_ops_resolve(c->g, &c->err));
    tide_order order = {0};
    TIDE_TRY(tide_graph_sort(c->g, &order, &c->err));
    const tide_status st = tide_graph_infer(c->g, &order, true, &c->err);
    tide_order_deinit(&order);
    return st;
}

static inline const tide_value *case_out(const op_case *c, size_t i) { return &c->g->values[c->out[i]]; }

static inline void case_end(op_case *c) {
    for (size_t i = 0; i < c->n_attrs; i++) tide_attr_deinit(&c->attrs[i]);
    tide_graph_destroy(c->g);
}

/// Run and compare output 0 with what is wanted, bit by bit; ends the case.
static inline void case_want(op_case *c, tide_dtype dtype, int32_t rank, const int64_t *dims, const void *want) {
    assert_tide_ok(case_try(c, 1), &c->err);
    const tide_value *const out = case_out(c, 0);
    const tide_shape shape = tide_shape_make(rank, dims);
    char a[192], b[192];
    if (out->dtype != dtype || !tide_shape_equal(&out->shape, &shape))
        fail_msg("%s: %s%s instead of %s%s", c->op, tide_dtype_name(out->dtype),
                 tide_shape_format(&out->shape, a, sizeof a), tide_dtype_name(dtype),
                 tide_shape_format(&shape, b, sizeof b));
    assert_non_null(out->constant);
    const size_t bytes = tide_tensor_size_bytes(out->constant);
    for (size_t i = 0; bytes != 0 && i < bytes / tide_dtype_size(dtype); i++)
        if (memcmp((const char *)tide_tensor_const_data(out->constant) + i * tide_dtype_size(dtype),
                   (const char *)want + i * tide_dtype_size(dtype), tide_dtype_size(dtype)) != 0)
            fail_msg("%s: element %zu is %g instead of %g", c->op, i,
                     tide_data_load_f64(dtype, tide_tensor_const_data(out->constant), (int64_t)i),
                     tide_data_load_f64(dtype, want, (int64_t)i));
    case_end(c);
}

/// Run and expect an error whose words contain `text`; ends the case.
static inline void case_refused(op_case *c, tide_status want, const char *text) {
    assert_tide_status(case_try(c, 1), want);
    assert_text_has(c->err.msg, text);
    assert_text_has(c->err.msg, "the_node");
    case_end(c);
}

#endif
