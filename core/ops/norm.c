// SPDX-License-Identifier: MIT
//
// Normalisation, float32: each may work in place.
//
//     BatchNormalization     y = (x - mean) * scale / sqrt(var + epsilon) + bias per channel, mean and var given, or in
//                            training mode (opset 14) those of the batch, which move the given ones; fused activation
//     InstanceNormalization  the same with the mean and variance of each channel of each item
//     LayerNormalization     everything from `axis` on by its mean and variance, then Scale and B element by element;
//                            Mean and InvStdDev are written where they are asked for
//
// Loops bound by memory: oneDNN's plain-layout kernel of the first would do the same passes. A row's mean and variance
// are taken before it is written.
#include <math.h>

#include "core/ops/act.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { LANES = 8 }; // running sums: breaks the chain of dependent additions, in an order that is ours

static double total(const double *part) {
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

/// Mean and biased variance of n > 0 floats, in double and in two passes: no cancellation, a fixed order.
static void moments(const float *x, int64_t n, double *mean, double *variance) {
    double part[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) part[j] += (double)x[i + j];
    for (int j = 0; i < n; i++, j++) part[j] += (double)x[i];
    const double m = total(part) / (double)n;
    double square[LANES] = {0};
    for (i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) square[j] += ((double)x[i + j] - m) * ((double)x[i + j] - m);
    for (int j = 0; i < n; i++, j++) square[j] += ((double)x[i] - m) * ((double)x[i] - m);
    *mean = m;
    *variance = total(square) / (double)n;
}

/// X of float32 with channels, and one float32 for each channel in each of the other inputs.
static tide_status check_channels(const tide_infer *x, const char *const *names, size_t n, tide_error *err) {
    for (size_t i = 1; i < n; i++) {
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[i], names[i], &(tide_shape){1, {x->in[0].shape.dims[1]}}, err));
    }
    return tide_op_infer_same(x, err);
}

// ---- BatchNormalization ----

/// Since opset 14 a node says so, and has the running statistics as its outputs 1 and 2.
static bool is_training(const tide_node *node) {
    return node->opset >= 14 && tide_node_attr_int(node, "training_mode", 0) != 0;
}

static tide_status check_mode(const tide_infer *x, tide_error *err) {
    const tide_node *node = x->node;
    if (is_training(node)) return TIDE_OK;
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

static tide_status batch_infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"X", "scale", "B", "mean", "var"};
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], names[0], TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], names[0], 2, TIDE_MAX_RANK, err));
    TIDE_TRY(check_mode(x, err));
    for (size_t i = 1; i < x->n_out; i++)
        if (tide_op_has_out(x, i)) TIDE_TRY(tide_op_set_out(x, i, TIDE_F32, 1, &x->in[0].shape.dims[1], err));
    return check_channels(x, names, 5, err);
}

/// Mean and biased variance of channel `c` over all items, in double and in two passes.
static void channel_moments(const tide_shape *s, const float *x, int64_t c, double *mean, double *variance) {
    const int64_t len = tide_op_count(s, 2, s->rank), n = s->dims[0] * len;
    double sum = 0, square = 0;
    for (int64_t b = 0; b < s->dims[0]; b++)
        for (int64_t i = 0; i < len; i++) sum += (double)x[(b * s->dims[1] + c) * len + i];
    *mean = sum / (double)n;
    for (int64_t b = 0; b < s->dims[0]; b++) {
        for (int64_t i = 0; i < len; i++) {
            const double d = (double)x[(b * s->dims[1] + c) * len + i] - *mean;
            square += d * d;
        }
    }
    *variance = square / (double)n;
}

/// The statistics of this batch normalise it, and move the running ones, which the outputs are.
static void batch_train(const tide_kernel *k, const tide_kernel_args *args) {
    const tide_shape *s = &args->in[0].shape;
    const int64_t channels = s->dims[1], len = tide_op_count(s, 2, s->rank);
    const float *x = args->in[0].data, *scale = args->in[1].data, *bias = args->in[2].data;
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-5f);
    const double kept = (double)tide_node_attr_float(k->node, "momentum", 0.9f);
    float *y = args->out[0].data;
    for (int64_t c = 0; c < channels; c++) {
        double moment[2]; // mean and variance
        channel_moments(s, x, c, &moment[0], &moment[1]);
        const float m = (float)moment[0], factor = (float)((double)scale[c] / sqrt(moment[1] + epsilon)),
                    shift = bias[c];
        for (int64_t b = 0; b < s->dims[0]; b++) {
            const int64_t at = (b * channels + c) * len;
            for (int64_t i = at; i < at + len; i++) y[i] = (x[i] - m) * factor + shift;
            tide_act_apply(&k->node->activation, y + at, len);
        }
        for (size_t i = 1; i < 3; i++) {
            if (i >= args->n_out || !tide_operand_present(&args->out[i])) continue;
            const double before = (double)((const float *)args->in[2 + i].data)[c];
            ((float *)args->out[i].data)[c] = (float)(before * kept + moment[i - 1] * (1 - kept));
        }
    }
}

static tide_status batch_run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    if (is_training(k->node)) {
        batch_train(k, args);
        return TIDE_OK;
    }
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
    .attrs =
        TIDE_ATTRS(TIDE_ATTR(FLOAT, "epsilon"), TIDE_ATTR(INT, "is_test", .until = 6), TIDE_ATTR(FLOAT, "momentum"),
                   TIDE_ATTR(INT, "spatial", .until = 8), TIDE_ATTR(INT, "training_mode", .since = 14)),
    .flags = TIDE_OP_FUSES_ACT,
    .inplace_inputs = 1u << 0,
    .min_inputs = 5,
    .max_inputs = 5,
    .min_outputs = 1,
    .max_outputs = 5,
    .infer = batch_infer,
    .run = batch_run,
};

// ---- InstanceNormalization ----

static tide_status instance_infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"input", "scale", "B"};
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], names[0], TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], names[0], 2, TIDE_MAX_RANK, err));
    return check_channels(x, names, 3, err);
}

static tide_status instance_run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const tide_shape *s = &args->in[0].shape;
    const int64_t channels = s->dims[1], len = tide_op_count(s, 2, s->rank);
    const float *x = args->in[0].data, *scale = args->in[1].data, *bias = args->in[2].data;
    float *y = args->out[0].data;
    const double epsilon = (double)tide_node_attr_float(k->node, "epsilon", 1e-5f);
    if (len == 0) return TIDE_OK;
    for (int64_t p = 0; p < s->dims[0] * channels; p++, x += len, y += len) {
        double mean, variance;
        moments(x, len, &mean, &variance);
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
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "epsilon")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 3,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = instance_infer,
    .run = instance_run,
};

// ---- LayerNormalization ----

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

static tide_status layer_infer(const tide_infer *x, tide_error *err) {
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

static tide_status layer_run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
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
        moments(x, len, &mean, &variance);
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
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(FLOAT, "epsilon"), TIDE_ATTR(INT, "stash_type")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 2,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 3,
    .infer = layer_infer,
    .run = layer_run,
};
