// SPDX-License-Identifier: MIT
//
// Gelu, BiasGelu, FastGelu and QuickGelu of com.microsoft, float32: a bias for each element of the last axis is added
// first, then oneDNN's eltwise goes over the output.
//
//     Gelu, BiasGelu   x * (1 + erf(x / sqrt 2)) / 2
//     FastGelu         the same by tanh
//     QuickGelu        x * sigmoid(alpha * x)
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

typedef struct gelu_family {
    dnnl_alg_kind_t alg;
    float alpha; ///< of attribute alpha, when absent
} gelu_family;

static tide_status infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_infer_same(x, err));
    if (!tide_op_has_in(x, 1)) return TIDE_OK;
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 1, TIDE_MAX_RANK, err));
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[1], "bias", TIDE_F32, err));
    const tide_shape want = {1, {x->in[0].shape.dims[x->in[0].shape.rank - 1]}};
    return tide_op_require_shape(x->node, &x->in[1], "bias", &want, err);
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const gelu_family *const f = k->def->family;
    const int64_t n = tide_op_numel(&x->in[0].shape);
    if (n == 0) return TIDE_OK;
    dnnl_memory_desc_t md;
    TIDE_TRY(tide_dnnl_md(x->node, 1, &n, NULL, &md, err));
    dnnl_eltwise_desc_t d;
    const float alpha = f->alpha != 0 ? tide_node_attr_float(x->node, "alpha", f->alpha) : 0;
    const dnnl_status_t ds = tide__dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, f->alg, &md, alpha, 0.0f);
    if (ds != dnnl_success) return tide_dnnl_fail(err, x->node, ds, "eltwise");
    const bool has_bias = x->n_in > 1 && tide_operand_present(&x->in[1]);
    const tide_dnnl_bind binds[] = {{DNNL_ARG_SRC, has_bias, 0}, {DNNL_ARG_DST, true, 0}};
    return tide_dnnl_kernel_set(k, &d, NULL, binds, 2, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    if (k->state == NULL) return TIDE_OK;
    if (args->n_in > 1 && tide_operand_present(&args->in[1])) {
        const int64_t n = args->in[1].shape.dims[0], n_rows = tide_op_numel(&args->in[0].shape) / n;
        const float *x = args->in[0].data, *bias = args->in[1].data;
        float *y = args->out[0].data;
        for (int64_t r = 0; r < n_rows; r++, x += n, y += n) {
            TIDE_IVDEP
            for (int64_t i = 0; i < n; i++) y[i] = x[i] + bias[i];
        }
    }
    return tide_dnnl_kernel_run(k, args, err);
}

// XX(row, name, oneDNN algorithm, alpha, fewest and most inputs)
#define GELUS(XX)                                                                                                      \
    XX(gelu_fused, "Gelu", dnnl_eltwise_gelu_erf, NULL, 0, 1, 1)                                                       \
    XX(bias_gelu, "BiasGelu", dnnl_eltwise_gelu_erf, NULL, 0, 2, 2)                                                    \
    XX(fast_gelu, "FastGelu", dnnl_eltwise_gelu_tanh, NULL, 0, 1, 2)                                                   \
    XX(quick_gelu, "QuickGelu", dnnl_eltwise_swish, "alpha", 1.702f, 1, 1)

#define XX(row, name_, alg_, attr_, alpha_, min_, max_)                                                                \
    static const gelu_family row##_family = {alg_, alpha_};                                                            \
    const tide_op_def tide_op_##row = {                                                                                \
        .domain = "com.microsoft",                                                                                     \
        .name = name_,                                                                                                 \
        .since = 1,                                                                                                    \
        .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, attr_)),                                                                  \
        .inplace_inputs = 1u << 0,                                                                                     \
        .min_inputs = min_,                                                                                            \
        .max_inputs = max_,                                                                                            \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .family = &row##_family,                                                                                       \
        .infer = infer,                                                                                                \
        .prepare = prepare,                                                                                            \
        .destroy = tide_dnnl_kernel_destroy,                                                                           \
        .exec_create = tide_dnnl_kernel_exec_create,                                                                   \
        .exec_destroy = tide_dnnl_kernel_exec_destroy,                                                                 \
        .run = run,                                                                                                    \
    };
GELUS(XX)
#undef XX
