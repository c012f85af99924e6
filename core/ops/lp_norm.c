// SPDX-License-Identifier: MIT
//
// LpNormalization and GlobalLpPool, float32: the p-norm of each row along an axis, or of each channel.
#include <math.h>

#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

/// Of n elements, `step` apart.
static double norm(const float *x, int64_t n, int64_t step, int64_t p) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs((double)x[i * step]);
        sum += p == 1 ? v : p == 2 ? v * v : pow(v, (double)p);
    }
    return p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / (double)p);
}

static tide_status check_p(const tide_infer *x, int64_t most, tide_error *err) {
    const int64_t p = tide_node_attr_int(x->node, "p", 2);
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    if (p >= 1 && p <= most) return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "p is %lld, must be %s", (long long)p,
                        most == 2 ? "1 or 2" : "1 or more");
}

// ---- LpNormalization: each row divided by its norm; of a row of zeros zeros remain ----

static tide_status infer(const tide_infer *x, tide_error *err) {
    int32_t axis;
    TIDE_TRY(check_p(x, 2, err));
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", -1), x->in[0].shape.rank, &axis, err));
    return tide_op_infer_same(x, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_shape *s = &args->in[0].shape;
    const int64_t p = tide_node_attr_int(k->node, "p", 2);
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", -1), s->rank, &axis, err));
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    const int64_t n = s->rank > 0 ? s->dims[axis] : 1, step = s->rank > 0 ? tide_op_count(s, axis + 1, s->rank) : 1;
    const int64_t outer = tide_op_numel(s) / (n * step);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < step; i++) {
            const float *x = (const float *)args->in[0].data + o * n * step + i;
            float *y = (float *)args->out[0].data + o * n * step + i;
            const double by = norm(x, n, step, p);
            for (int64_t j = 0; j < n; j++) y[j * step] = by > 0 ? (float)((double)x[j * step] / by) : 0.0f;
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_lp_norm = {
    .domain = "",
    .name = "LpNormalization",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(INT, "p")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run,
};

// ---- GlobalLpPool ----

static tide_status global_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *s = &x->in[0].shape;
    TIDE_TRY(check_p(x, INT64_MAX, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 2, TIDE_MAX_RANK, err));
    int64_t dims[TIDE_MAX_RANK] = {s->dims[0], s->dims[1]};
    for (int32_t i = 2; i < s->rank; i++) dims[i] = 1;
    return tide_op_set_out(x, 0, TIDE_F32, s->rank, dims, err);
}

static tide_status global_run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const tide_shape *s = &args->in[0].shape;
    const int64_t p = tide_node_attr_int(k->node, "p", 2), len = tide_op_count(s, 2, s->rank);
    const float *x = args->in[0].data;
    float *y = args->out[0].data;
    for (int64_t c = 0; c < s->dims[0] * s->dims[1]; c++) y[c] = (float)norm(x + c * len, len, 1, p);
    return TIDE_OK;
}

const tide_op_def tide_op_global_lp_pool = {
    .domain = "",
    .name = "GlobalLpPool",
    .since = 2,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "p")),
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = global_infer,
    .run = global_run,
};
