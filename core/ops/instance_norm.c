// SPDX-License-Identifier: MIT
//
// InstanceNormalization: every channel of every item by its own mean and variance. float32, may work in place.
#include <math.h>

#include "core/ops/moments.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"input", "scale", "B"};
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], names[0], TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], names[0], 2, TIDE_MAX_RANK, err));
    for (size_t i = 1; i < 3; i++) {
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
    float *y = args->out[0].data;
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-5f);
    if (len == 0) return TIDE_OK;
    for (int64_t p = 0; p < s->dims[0] * channels; p++, x += len, y += len) {
        double mean, variance;
        tide_moments(x, len, &mean, &variance);
        const float m = (float)mean, factor = (float)((double)scale[p % channels] / sqrt(variance + epsilon));
        const float shift = bias[p % channels];
        for (int64_t i = 0; i < len; i++) y[i] = (x[i] - m) * factor + shift;
    }
    return TIDE_OK;
}

const tide_op_def tide_op_instance_norm = {
    .domain = "",
    .name = "InstanceNormalization",
    .since = 6,
    .inplace_inputs = 1u << 0,
    .min_inputs = 3,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run,
};
