// SPDX-License-Identifier: MIT
//
// GlobalAveragePool and GlobalMaxPool, float32: one number per channel.
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *s = &x->in[0].shape;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 2, TIDE_MAX_RANK, err));
    if (tide_op_count(s, 2, s->rank) == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "X has no elements per channel to pool over");
    int64_t dims[TIDE_MAX_RANK] = {s->dims[0], s->dims[1]};
    for (int32_t i = 2; i < s->rank; i++) dims[i] = 1;
    return tide_op_set_out(x, 0, TIDE_F32, s->rank, dims, err);
}

// Eight running sums, added up in a fixed order: fast without letting the compiler reorder.
static float mean(const float *x, int64_t n) {
    double part[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) part[j] += (double)x[i + j];
    double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    for (; i < n; i++) sum += (double)x[i];
    return (float)(sum / (double)n);
}

static float largest(const float *x, int64_t n) {
    float best = x[0];
    for (int64_t i = 1; i < n; i++) best = x[i] > best ? x[i] : best;
    return best;
}

static tide_status run(const tide_kernel_args *args, float (*pool)(const float *, int64_t)) {
    const tide_shape *s = &args->in[0].shape;
    const int64_t planes = s->dims[0] * s->dims[1], len = tide_op_count(s, 2, s->rank);
    const float *x = args->in[0].data;
    float *y = args->out[0].data;
    for (int64_t p = 0; p < planes; p++) y[p] = pool(x + p * len, len);
    return TIDE_OK;
}

static tide_status run_average(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k, (void)err;
    return run(args, mean);
}

static tide_status run_max(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k, (void)err;
    return run(args, largest);
}

const tide_op_def tide_op_global_average_pool = {
    .domain = "",
    .name = "GlobalAveragePool",
    .since = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run_average,
};
const tide_op_def tide_op_global_max_pool = {
    .domain = "",
    .name = "GlobalMaxPool",
    .since = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run_max,
};
