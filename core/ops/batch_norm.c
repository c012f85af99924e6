// SPDX-License-Identifier: MIT
//
// BatchNormalization in test mode: y = (x - mean) * scale / sqrt(var + epsilon) + bias per channel. float32, may work
// in place, fused activation. A loop bound by memory: oneDNN's plain-layout kernel would do the same passes.
#include <math.h>

#include "core/ops/act.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static tide_status check_mode(const tide_infer *x, tide_error *err) {
    const tide_node *node = x->node;
    if (tide_node_attr_int(node, "training_mode", 0) != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "training_mode is 1; only test mode is implemented");
    if (node->opset < 7 && tide_node_attr_int(node, "is_test", 0) == 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "is_test is 0; only test mode is implemented");
    if (tide_node_attr_int(node, "spatial", 1) != 1)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED,
                            "spatial is 0; only statistics per channel are "
                            "implemented");
    for (size_t i = 1; i < x->n_out; i++)
        if (tide_op_has_out(x, i))
            return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED,
                                "output %zu belongs to training mode, which is not "
                                "implemented",
                                i);
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"X", "scale", "B", "mean", "var"};
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], names[0], TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], names[0], 2, TIDE_MAX_RANK, err));
    TIDE_TRY(check_mode(x, err));
    for (size_t i = 1; i < 5; i++) {
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[i], names[i], &(tide_shape){1, {x->in[0].shape.dims[1]}}, err));
    }
    return tide_op_infer_same(x, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const tide_shape *s = &args->in[0].shape;
    const int64_t channels = s->dims[1], len = tide_op_count(s, 2, s->rank);
    const float *x = args->in[0].data, *scale = args->in[1].data, *bias = args->in[2].data;
    const float *mean = args->in[3].data, *var = args->in[4].data;
    float *y = args->out[0].data;
    const float epsilon = tide_node_attr_float(k->node, "epsilon", 1e-5f);
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t b = 0; b < s->dims[0]; b++) {
        for (int64_t c = 0; c < channels; c++, x += len, y += len) {
            const float factor = scale[c] / sqrtf(var[c] + epsilon), m = mean[c], shift = bias[c];
            for (int64_t i = 0; i < len; i++) y[i] = (x[i] - m) * factor + shift;
            tide_act_apply(&k->node->activation, y, len);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_batch_norm = {
    .domain = "",
    .name = "BatchNormalization",
    .since = 6,
    .flags = TIDE_OP_FUSES_ACT,
    .inplace_inputs = 1u << 0,
    .min_inputs = 5,
    .max_inputs = 5,
    .min_outputs = 1,
    .max_outputs = 5,
    .infer = infer,
    .run = run,
};
