// SPDX-License-Identifier: MIT
//
// GroupNormalization, float32: the channels of an item in groups, each group with the mean 0 and the deviation 1, then
// scale and bias: of each group up to opset 20, of each channel from 21 on. May work in place: a group's moments are
// taken before it is written.
#include <math.h>

#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"X", "scale", "bias"};
    const tide_shape *s = &x->in[0].shape;
    for (size_t i = 0; i < 3; i++) TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], names[0], 2, TIDE_MAX_RANK, err));
    const int64_t groups = tide_node_attr_int(x->node, "num_groups", 0), channels = s->dims[1];
    if (groups < 1 || channels % groups != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "num_groups is %lld, which does not divide %lld channels",
                            (long long)groups, (long long)channels);
    if (tide_node_attr_int(x->node, "stash_type", 1) != TIDE_F32)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "stash_type other than float32");
    const tide_shape want = {1, {x->node->opset < 21 ? groups : channels}};
    for (size_t i = 1; i < 3; i++) TIDE_TRY(tide_op_require_shape(x->node, &x->in[i], names[i], &want, err));
    return tide_op_infer_same(x, err);
}

static void moments(const float *x, int64_t n, double *mean, double *deviation, double epsilon) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) square += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    *deviation = sqrt(square / (double)n + epsilon);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const tide_shape *s = &args->in[0].shape;
    const int64_t groups = tide_node_attr_int(k->node, "num_groups", 0), per_group = s->dims[1] / groups;
    const int64_t len = tide_op_count(s, 2, s->rank);
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-5f);
    const float *x = args->in[0].data, *scale = args->in[1].data, *bias = args->in[2].data;
    float *y = args->out[0].data;
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t g = 0; g < s->dims[0] * groups; g++) {
        double mean, deviation;
        moments(x, per_group * len, &mean, &deviation, epsilon);
        for (int64_t c = 0; c < per_group; c++, x += len, y += len) {
            const int64_t at = k->node->opset < 21 ? g % groups : g % groups * per_group + c;
            const float m = (float)mean, factor = (float)((double)scale[at] / deviation);
            for (int64_t i = 0; i < len; i++) y[i] = (x[i] - m) * factor + bias[at];
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_group_norm = {
    .domain = "",
    .name = "GroupNormalization",
    .since = 18,
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "epsilon"), TIDE_ATTR(INT, "num_groups"),
                        TIDE_ATTR(INT, "stash_type", .since = 21)),
    .inplace_inputs = 1u << 0,
    .min_inputs = 3,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run,
};
