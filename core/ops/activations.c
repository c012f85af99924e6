// SPDX-License-Identifier: MIT
//
// Activations of one float32 operand: LeakyRelu, Elu, Sigmoid, Tanh, HardSwish, Softplus, Mish, Swish,
// Gelu on oneDNN's eltwise;
// Relu, whose NaN oneDNN makes 0, and HardSigmoid, which oneDNN 2.6 does not have, as loops. All may work in place.
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static tide_status infer_f32(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    return tide_op_infer_same(x, err);
}

static tide_status set_eltwise(const tide_prepare *x, dnnl_alg_kind_t alg, float alpha, tide_kernel *k,
                               tide_error *err) {
    const int64_t n = tide_op_numel(&x->in[0].shape);
    if (n == 0) return TIDE_OK;
    dnnl_memory_desc_t md;
    TIDE_TRY(tide_dnnl_md(x->node, 1, &n, NULL, &md, err));
    dnnl_eltwise_desc_t d;
    const dnnl_status_t ds = tide__dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, alg, &md, alpha, 0.0f);
    if (ds != dnnl_success) return tide_dnnl_fail(err, x->node, ds, "eltwise");
    static const tide_dnnl_bind binds[] = {{DNNL_ARG_SRC, false, 0}, {DNNL_ARG_DST, true, 0}};
    return tide_dnnl_kernel_set(k, &d, NULL, binds, 2, err);
}

/// An activation of oneDNN; its alpha is an attribute or a constant.
typedef struct eltwise {
    dnnl_alg_kind_t alg;
    const char *attr; ///< NULL: alpha is `alpha`
    float alpha;      ///< when absent
} eltwise;

static tide_status prepare_eltwise(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const eltwise *const e = k->def->family;
    const float alpha = e->attr != NULL ? tide_node_attr_float(x->node, e->attr, e->alpha) : e->alpha;
    return set_eltwise(x, e->alg, alpha, k, err);
}

// XX(row, ONNX name, since, oneDNN algorithm, the attribute that is its alpha and its default)
#define ACTIVATIONS(XX)                                                                                                \
    XX(leaky_relu, "LeakyRelu", 1, dnnl_eltwise_relu, "alpha", 0.01f)                                                  \
    XX(elu, "Elu", 1, dnnl_eltwise_elu, "alpha", 1.0f)                                                                 \
    XX(sigmoid, "Sigmoid", 1, dnnl_eltwise_logistic, NULL, 0.0f)                                                       \
    XX(tanh, "Tanh", 1, dnnl_eltwise_tanh, NULL, 0.0f)                                                                 \
    XX(hard_swish, "HardSwish", 14, dnnl_eltwise_hardswish, NULL, 0.0f)                                                \
    XX(softplus, "Softplus", 1, dnnl_eltwise_soft_relu, NULL, 0.0f)                                                    \
    XX(mish, "Mish", 18, dnnl_eltwise_mish, NULL, 0.0f)                                                                \
    XX(swish, "Swish", 24, dnnl_eltwise_swish, "alpha", 1.0f)

#define XX(row, name_, since_, alg_, attr_, absent_)                                                                   \
    static const eltwise row##_family = {alg_, attr_, absent_};                                                        \
    const tide_op_def tide_op_##row = {                                                                                \
        .domain = "",                                                                                                  \
        .name = name_,                                                                                                 \
        .since = since_,                                                                                               \
        .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, attr_)),                                                                  \
        .inplace_inputs = 1u << 0,                                                                                     \
        .min_inputs = 1,                                                                                               \
        .max_inputs = 1,                                                                                               \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .family = &row##_family,                                                                                       \
        .infer = infer_f32,                                                                                            \
        .prepare = prepare_eltwise,                                                                                    \
        .destroy = tide_dnnl_kernel_destroy,                                                                           \
        .exec_create = tide_dnnl_kernel_exec_create,                                                                   \
        .exec_destroy = tide_dnnl_kernel_exec_destroy,                                                                 \
        .run = tide_dnnl_kernel_run,                                                                                   \
    };
ACTIVATIONS(XX)
#undef XX

// ---- Gelu: the algorithm is an attribute ----

static tide_status gelu_kind(const tide_node *node, dnnl_alg_kind_t *out, tide_error *err) {
    const char *s = tide_node_attr_string(node, "approximate", "none");
    if (strcmp(s, "none") != 0 && strcmp(s, "tanh") != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "approximate is '%s', must be none or tanh", s);
    *out = s[0] == 't' ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf;
    return TIDE_OK;
}

static tide_status infer_gelu(const tide_infer *x, tide_error *err) {
    dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
    TIDE_TRY(gelu_kind(x->node, &alg, err));
    return infer_f32(x, err);
}

static tide_status prepare_gelu(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
    TIDE_TRY(gelu_kind(x->node, &alg, err));
    return set_eltwise(x, alg, 0.0f, k, err);
}

const tide_op_def tide_op_gelu = {
    .domain = "",
    .name = "Gelu",
    .since = 20,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "approximate")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_gelu,
    .prepare = prepare_gelu,
    .destroy = tide_dnnl_kernel_destroy,
    .exec_create = tide_dnnl_kernel_exec_create,
    .exec_destroy = tide_dnnl_kernel_exec_destroy,
    .run = tide_dnnl_kernel_run,
};

// ---- Relu and HardSigmoid ----

static tide_status run_relu(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k, (void)err;
    const int64_t n = tide_op_numel(&args->in[0].shape);
    const float *x = args->in[0].data;
    float *y = args->out[0].data;
    TIDE_IVDEP
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0.0f ? 0.0f : x[i];
    return TIDE_OK;
}

const tide_op_def tide_op_relu = {
    .domain = "",
    .name = "Relu",
    .since = 1,
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_f32,
    .run = run_relu,
};

static tide_status run_hard_sigmoid(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const float alpha = tide_node_attr_float(k->node, "alpha", 0.2f),
                beta = tide_node_attr_float(k->node, "beta", 0.5f);
    const int64_t n = tide_op_numel(&args->in[0].shape);
    const float *x = args->in[0].data;
    float *y = args->out[0].data;
    for (int64_t i = 0; i < n; i++) {
        const float v = alpha * x[i] + beta, low = v < 0.0f ? 0.0f : v;
        y[i] = low > 1.0f ? 1.0f : low;
    }
    return TIDE_OK;
}

const tide_op_def tide_op_hard_sigmoid = {
    .domain = "",
    .name = "HardSigmoid",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "alpha"), TIDE_ATTR(FLOAT, "beta")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_f32,
    .run = run_hard_sigmoid,
};
