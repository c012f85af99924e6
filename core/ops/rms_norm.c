// SPDX-License-Identifier: MIT
//
// RMSNormalization (opset 23) and SimplifiedLayerNormalization, as ONNX Runtime calls it, float32: everything from
// `axis` on divided by the root of its mean square, times scale. May work in place: a row's mean square is taken before
// it is written.
#include <math.h>

#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { LANES = 8 }; // running sums: breaks the chain of dependent additions, in an order that is ours

static double mean_square(const float *x, int64_t n) {
    double part[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) part[k] += (double)x[i + k] * (double)x[i + k];
    for (int k = 0; i < n; i++, k++) part[k] += (double)x[i] * (double)x[i];
    const double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    return sum / (double)n;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *s = &x->in[0].shape, *scale = &x->in[1].shape;
    int32_t axis;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[1], "scale", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 1, TIDE_MAX_RANK, err));
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", -1), s->rank, &axis, err));
    if (tide_node_attr_int(x->node, "stash_type", TIDE_F32) != TIDE_F32)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "stash_type other than float32");
    tide_shape tail = {.rank = s->rank - axis};
    for (int32_t d = axis; d < s->rank; d++) tail.dims[d - axis] = s->dims[d];
    tide_shape both;
    TIDE_TRY(tide_op_broadcast(x->node, scale, &tail, &both, err));
    if (scale->rank > tail.rank || !tide_shape_equal(&both, &tail))
        return tide_op_require_shape(x->node, &x->in[1], "scale", &tail, err);
    TIDE_TRY(tide_op_infer_same(x, err));
    if (!tide_op_has_out(x, 1)) return TIDE_OK;
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0; d < s->rank; d++) dims[d] = d < axis ? s->dims[d] : 1;
    return tide_op_set_out(x, 1, TIDE_F32, s->rank, dims, err);
}

/// Element of scale for element `i` of a row: its place in each axis, where scale has one.
static int64_t scale_at(const tide_shape *x, const tide_shape *scale, int64_t i) {
    int64_t at = 0, step = 1;
    for (int32_t d = scale->rank - 1, e = x->rank - 1; d >= 0; d--, e--) {
        if (scale->dims[d] != 1) at += i % x->dims[e] * step;
        step *= scale->dims[d];
        i /= x->dims[e];
    }
    return at;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_shape *s = &args->in[0].shape, *scale_shape = &args->in[1].shape;
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", -1), s->rank, &axis, err));
    const bool has_inverse = args->n_out > 1 && tide_operand_present(&args->out[1]);
    float *inverse = has_inverse ? args->out[1].data : NULL;
    if (args->out[0].size_bytes == 0 && inverse == NULL) return TIDE_OK;
    const int64_t rows = tide_op_count(s, 0, axis), len = tide_op_count(s, axis, s->rank);
    const bool is_whole = tide_op_numel(scale_shape) == len;
    const float *x = args->in[0].data, *scale = args->in[1].data;
    float *y = args->out[0].data;
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-5f);
    for (int64_t r = 0; r < rows; r++, x += len, y += len) {
        const float factor = (float)(1 / sqrt(mean_square(x, len) + epsilon));
        if (inverse != NULL) inverse[r] = factor;
        if (is_whole)
            for (int64_t i = 0; i < len; i++) y[i] = x[i] * factor * scale[i];
        else
            for (int64_t i = 0; i < len; i++) y[i] = x[i] * factor * scale[scale_at(s, scale_shape, i)];
    }
    return TIDE_OK;
}

const tide_op_def tide_op_rms_norm = {
    .domain = "",
    .name = "RMSNormalization",
    .since = 23,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(FLOAT, "epsilon"), TIDE_ATTR(INT, "stash_type")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run,
};

const tide_op_def tide_op_simplified_layer_norm = {
    .domain = "",
    .name = "SimplifiedLayerNormalization",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(FLOAT, "epsilon"), TIDE_ATTR(INT, "stash_type")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 2,
    .infer = infer,
    .run = run,
};
