// SPDX-License-Identifier: MIT
//
// LayerNormalization: everything from `axis` on by its mean and variance, then Scale and B element by element. float32;
// Mean and InvStdDev are written where they are asked for. May work in place: a row's moments are taken before it is
// written.
#include <math.h>

#include "core/ops/moments.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static tide_status check_parameter(const tide_infer *x, size_t i, const char *what, int32_t axis, tide_error *err) {
    const tide_shape *s = &x->in[0].shape;
    tide_shape tail = {.rank = s->rank - axis};
    for (int32_t d = axis; d < s->rank; d++) tail.dims[d - axis] = s->dims[d];
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], what, TIDE_F32, err));
    if (tide_shape_equal(&x->in[i].shape, &tail)) return TIDE_OK;
    tide_shape both;
    TIDE_TRY(tide_op_broadcast(x->node, &x->in[i].shape, &tail, &both, err));
    char got[192], want[192];
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "%s is %s; this kernel takes %s", what,
                        tide_shape_format(&x->in[i].shape, got, sizeof got),
                        tide_shape_format(&tail, want, sizeof want));
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *s = &x->in[0].shape;
    int32_t axis;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 1, TIDE_MAX_RANK, err));
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", -1), s->rank, &axis, err));
    if (tide_node_attr_int(x->node, "stash_type", 1) != TIDE_F32)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "stash_type other than float32");
    TIDE_TRY(check_parameter(x, 1, "Scale", axis, err));
    if (tide_op_has_in(x, 2)) TIDE_TRY(check_parameter(x, 2, "B", axis, err));
    TIDE_TRY(tide_op_infer_same(x, err));
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0; d < s->rank; d++) dims[d] = d < axis ? s->dims[d] : 1;
    for (size_t i = 1; i < x->n_out; i++)
        if (tide_op_has_out(x, i)) TIDE_TRY(tide_op_set_out(x, i, TIDE_F32, s->rank, dims, err));
    return TIDE_OK;
}

static float *optional_out(const tide_kernel_args *args, size_t i) {
    return i < args->n_out && tide_operand_present(&args->out[i]) ? args->out[i].data : NULL;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_shape *s = &args->in[0].shape;
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", -1), s->rank, &axis, err));
    const int64_t rows = tide_op_count(s, 0, axis), len = tide_op_count(s, axis, s->rank);
    const float *x = args->in[0].data, *scale = args->in[1].data;
    const float *bias = args->n_in > 2 && tide_operand_present(&args->in[2]) ? args->in[2].data : NULL;
    float *y = args->out[0].data, *means = optional_out(args, 1), *inverses = optional_out(args, 2);
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-5f);
    // Rows of no elements still have a mean where it is asked for: NaN.
    if (args->out[0].size_bytes == 0 && means == NULL && inverses == NULL) return TIDE_OK;
    for (int64_t r = 0; r < rows; r++, x += len, y += len) {
        double mean, variance;
        tide_moments(x, len, &mean, &variance);
        const float m = (float)mean, inverse = (float)(1.0 / sqrt(variance + epsilon));
        if (bias != NULL)
            for (int64_t i = 0; i < len; i++) y[i] = (x[i] - m) * inverse * scale[i] + bias[i];
        else
            for (int64_t i = 0; i < len; i++) y[i] = (x[i] - m) * inverse * scale[i];
        if (means != NULL) means[r] = m;
        if (inverses != NULL) inverses[r] = inverse;
    }
    return TIDE_OK;
}

const tide_op_def tide_op_layer_norm = {
    .domain = "",
    .name = "LayerNormalization",
    .since = 17,
    .inplace_inputs = 1u << 0,
    .min_inputs = 2,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 3,
    .infer = infer,
    .run = run,
};
