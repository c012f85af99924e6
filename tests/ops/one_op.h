// SPDX-License-Identifier: MIT
//
// One operator without a graph around it, so that a test decides itself where each operand lies. Used by test_op_alias
// and test_inplace.
#ifndef TIDE_TESTS_OPS_ONE_OP_H
#define TIDE_TESTS_OPS_ONE_OP_H

#include "core/base/text.h"
#include "core/ops/data_util.h"
#include "core/ops/ops.h"
#include "tests/tide_test.h"

enum { ONE_MAX = 40 };

typedef struct one_op {
    tide_node node;
    tide_attr attrs[8];
    uint32_t inputs[ONE_MAX], outputs[ONE_MAX];
    tide_operand in[ONE_MAX], out[ONE_MAX]; ///< data is the test's own
    tide_error err;
} one_op;

static inline one_op *one_begin_in(one_op *o, const char *domain, const char *name, int opset, size_t n_in,
                                   size_t n_out) {
    memset(o, 0, sizeof *o);
    o->node = (tide_node){.name = tide_host_strdup("the_node"),
                          .op_type = tide_host_strdup(name),
                          .domain = tide_host_strdup(domain),
                          .opset = opset,
                          .attrs = o->attrs,
                          .inputs = o->inputs,
                          .n_inputs = n_in,
                          .outputs = o->outputs,
                          .n_outputs = n_out,
                          .def = tide_op_find(domain, name, opset)};
    if (o->node.def == NULL) fail_msg("no operator %s at opset %d", name, opset);
    for (uint32_t i = 0; i < n_in; i++) o->inputs[i] = i;
    for (uint32_t i = 0; i < n_out; i++) o->outputs[i] = ONE_MAX + i;
    return o;
}
static inline one_op *one_begin(one_op *o, const char *name, int opset, size_t n_in, size_t n_out) {
    return one_begin_in(o, "", name, opset, n_in, n_out);
}

static inline void one_end(one_op *o) {
    for (size_t i = 0; i < o->node.n_attrs; i++) tide_attr_deinit(&o->attrs[i]);
    tide_host_free(o->node.op_type);
    tide_host_free(o->node.name);
    tide_host_free(o->node.domain);
}

static inline tide_attr *one_attr(one_op *o, const char *name, tide_attr_type type) {
    tide_attr *a = &o->attrs[o->node.n_attrs++];
    *a = (tide_attr){.name = tide_host_strdup(name), .type = type};
    return a;
}
static inline void one_int(one_op *o, const char *name, int64_t v) { one_attr(o, name, TIDE_ATTR_INT)->i = v; }
static inline void one_ints(one_op *o, const char *name, size_t n, const int64_t *v) {
    tide_attr *a = one_attr(o, name, TIDE_ATTR_INTS);
    a->n = n;
    a->ints = tide_host_calloc(n + 1, sizeof *a->ints);
    assert_non_null(a->ints);
    for (size_t i = 0; i < n; i++) a->ints[i] = v[i];
}

/// Input `i`: its type and shape; `data` may be NULL (not known at inference).
static inline void one_in(one_op *o, size_t i, tide_dtype dtype, tide_shape shape, void *data) {
    o->in[i] = (tide_operand){.dtype = dtype, .shape = shape, .data = data};
    assert_tide_ok(tide_shape_bytes(&shape, dtype, &o->in[i].size_bytes, &o->err), &o->err);
}

static inline tide_infer one_facts(one_op *o) {
    return (tide_infer){
        .node = &o->node, .in = o->in, .n_in = o->node.n_inputs, .out = o->out, .n_out = o->node.n_outputs};
}

/// Infer the outputs. @return what inference says
static inline tide_status one_infer(one_op *o) {
    tide_infer x = one_facts(o);
    TIDE_TRY(o->node.def->infer(&x, &o->err));
    for (size_t i = 0; i < o->node.n_outputs; i++)
        if (tide_operand_present(&o->out[i]))
            TIDE_TRY(tide_shape_bytes(&o->out[i].shape, o->out[i].dtype, &o->out[i].size_bytes, &o->err));
    return TIDE_OK;
}

static inline tide_op_alias one_alias(one_op *o, size_t in_i, size_t out_i) {
    const tide_infer x = one_facts(o);
    return tide_op_alias_of(o->node.def, &x, in_i, out_i);
}

static inline bool one_may_overwrite(one_op *o, size_t in_i) {
    const tide_infer x = one_facts(o);
    return tide_op_may_overwrite(o->node.def, &x, in_i);
}

/// Prepare and run once on the operands' data.
static inline void one_run(one_op *o) {
    const tide_op_def *def = o->node.def;
    tide_kernel k = {.def = def, .node = &o->node};
    tide_operand out[ONE_MAX];
    memcpy(out, o->out, sizeof out);
    for (size_t i = 0; i < ONE_MAX; i++) out[i].data = NULL;
    const tide_prepare x = {&o->node, o->in, o->node.n_inputs, out, o->node.n_outputs};
    if (def->prepare != NULL) assert_tide_ok(def->prepare(&x, &k, &o->err), &o->err);
    void *exec = NULL, *work = NULL;
    if (def->exec_create != NULL) assert_tide_ok(def->exec_create(&k, &exec, &o->err), &o->err);
    if (k.workspace_bytes > 0 && posix_memalign(&work, 64, k.workspace_bytes) != 0) fail_msg("no memory");
    const tide_kernel_args args = {o->in, o->node.n_inputs, o->out, o->node.n_outputs, exec, work};
    assert_tide_ok(def->run(&k, &args, &o->err), &o->err);
    free(work);
    if (def->exec_destroy != NULL && exec != NULL) def->exec_destroy(&k, exec);
    if (def->destroy != NULL) def->destroy(&k);
}

static inline tide_shape one_shape(const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_shape s;
    assert_tide_ok(tide_shape_parse(text, &s, &err), &err);
    return s;
}

#endif
