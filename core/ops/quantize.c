// SPDX-License-Identifier: MIT
//
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, literally: each reads and writes whole tensors.
//
//     q = saturate(round(x / scale) + zero)      round: to nearest, halves to even
//     x = (q - zero) * scale
//
// Scale and zero point are one each, or, from opset 13 on, one for each index of `axis`, or, from opset 21 on, one for
// each `block_size` indices of it at each place of the other axes. Where the operand is seen as [outer, n, inner], n is
// that axis.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/quant_rows.h"

typedef struct axis_view {
    int64_t outer, n, inner;
    int64_t block; ///< indices of n that share a scale; 0: each has its own, for all of outer and inner
} axis_view;

static int64_t block_size_of(const tide_node *node) {
    return node->opset >= 21 ? tide_node_attr_int(node, "block_size", 0) : 0;
}

/// Scale has the shape of `x`, but fewer on the axis.
static tide_status check_blocks(const tide_node *node, const tide_operand *x, const tide_operand *scale, int32_t axis,
                                int64_t block, tide_error *err) {
    tide_shape want = x->shape;
    want.dims[axis] = want.dims[axis] / block + (want.dims[axis] % block != 0);
    return tide_op_require_shape(node, scale, "scale", &want, err);
}

/// How `scale` lies over `x`; TIDE_ERR_BAD_INPUT where it does not.
static tide_status view_of(const tide_node *node, const tide_operand *x, const tide_operand *scale, axis_view *v,
                           tide_error *err) {
    const int64_t block = block_size_of(node);
    int32_t axis;
    *v = (axis_view){1, 1, tide_op_numel(&x->shape), 0};
    if (block < 0 || (block > 0 && x->shape.rank == 0))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "block_size is %lld for rank %d", (long long)block,
                            x->shape.rank);
    if (block == 0) TIDE_TRY(tide_op_require_rank(node, scale, "scale", 0, 1, err));
    if (scale->shape.rank <= 1 && tide_op_numel(&scale->shape) == 1) return TIDE_OK; // [1] is a scalar in many files
    TIDE_TRY(
        tide_op_axis(node, node->opset >= 13 ? tide_node_attr_int(node, "axis", 1) : 1, x->shape.rank, &axis, err));
    const int64_t n = x->shape.rank == 0 ? 1 : x->shape.dims[axis];
    if (block != 0) TIDE_TRY(check_blocks(node, x, scale, axis, block, err));
    if (block == 0 && tide_op_numel(&scale->shape) != n)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "'scale' has %lld elements, axis %d has %lld",
                            (long long)tide_op_numel(&scale->shape), axis, (long long)n);
    *v = (axis_view){tide_op_count(&x->shape, 0, axis), n, tide_op_count(&x->shape, axis + 1, x->shape.rank), block};
    return TIDE_OK;
}

/// The type that the node itself asks for, ONNX's number; 0: none.
static int64_t asked_type(const tide_node *node, int since) {
    return node->opset >= since ? tide_node_attr_int(node, "output_dtype", 0) : 0;
}

static tide_status check_asked(const tide_node *node, int since, tide_dtype out, tide_error *err) {
    const int64_t asked = asked_type(node, since);
    if (asked == 0 || asked == (int64_t)out) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "output_dtype is %lld, what is served is %d (%s)",
                        (long long)asked, (int)out, tide_dtype_name(out));
}

/// Scale and zero point of `x`, for both directions.
static tide_status check(const tide_infer *x, tide_error *err) {
    axis_view v;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[1], "scale", TIDE_F32, err));
    const bool is_one = tide_op_numel(&x->in[1].shape) == 1;
    if (tide_op_has_in(x, 2) && !(is_one && tide_op_numel(&x->in[2].shape) == 1))
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[2], "zero_point", &x->in[1].shape, err));
    return view_of(x->node, &x->in[0], &x->in[1], &v, err);
}

static tide_status infer_quantize(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    if (in->dtype != TIDE_F32 && in->dtype != TIDE_I32) return tide_data_no_dtype(x->node, in->dtype, err);
    const tide_dtype asked = (tide_dtype)asked_type(x->node, 21);
    const tide_dtype without = tide_is_quantized_type(asked) ? asked : TIDE_U8;
    const tide_dtype out = tide_op_has_in(x, 2) ? x->in[2].dtype : without;
    if (!tide_is_quantized_type(out)) return tide_data_no_dtype(x->node, out, err);
    TIDE_TRY(check_asked(x->node, 21, out, err));
    const int64_t precision = tide_node_attr_int(x->node, "precision", 0);
    if (precision != 0 && precision != TIDE_F32)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "precision is %lld; it is divided in 1, float32",
                            (long long)precision);
    TIDE_TRY(check(x, err));
    return tide_op_set_out(x, 0, out, in->shape.rank, in->shape.dims, err);
}

static tide_status infer_dequantize(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    if (!tide_is_quantized_type(in->dtype) && in->dtype != TIDE_I32) return tide_data_no_dtype(x->node, in->dtype, err);
    if (tide_op_has_in(x, 2)) TIDE_TRY(tide_data_same_dtype(x, 0, 2, err));
    TIDE_TRY(check_asked(x->node, 23, TIDE_F32, err));
    TIDE_TRY(check(x, err));
    return tide_op_set_out(x, 0, TIDE_F32, in->shape.rank, in->shape.dims, err);
}

// ---- loops ----

/// A stretch of `n` elements from `at` on with number `p` of the scales and zero points.
static void run_stretch(const tide_kernel_args *a, int64_t at, int64_t n, int64_t p) {
    const tide_operand *in = &a->in[0], *out = &a->out[0], *zero = a->n_in > 2 ? &a->in[2] : NULL;
    const bool has_zero = zero != NULL && tide_operand_present(zero);
    const float scale = ((const float *)a->in[1].data)[p];
    const int64_t z = has_zero ? tide_data_load_i64(zero->dtype, zero->data, p) : 0;
    void *to = tide_data_at(out->data, at, tide_dtype_size(out->dtype));
    const void *from = tide_data_const_at(in->data, at, tide_dtype_size(in->dtype));
    if (out->dtype != TIDE_F32)
        tide_quantize_row(in->dtype, out->dtype, to, from, n, scale, z);
    else
        tide_dequantize_row(in->dtype, to, from, n, scale, z);
}

/// Each stretch of `inner` elements has one scale and one zero point; with blocks each element of it has.
static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    axis_view v;
    TIDE_TRY(view_of(k->node, &a->in[0], &a->in[1], &v, err));
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    const int64_t n_blocks = v.block > 0 ? v.n / v.block + (v.n % v.block != 0) : 0;
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t c = 0; c < v.n; c++) {
            const int64_t at = (o * v.n + c) * v.inner;
            if (v.block == 0) run_stretch(a, at, v.inner, c);
            for (int64_t i = 0; v.block > 0 && i < v.inner; i++)
                run_stretch(a, at + i, 1, (o * n_blocks + c / v.block) * v.inner + i);
        }
    return TIDE_OK;
}

// ---- scale and zero point from the data ----

static tide_status infer_dynamic(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    TIDE_TRY(tide_op_require_dtype(x->node, in, "x", TIDE_F32, err));
    TIDE_TRY(tide_op_set_out(x, 0, TIDE_U8, in->shape.rank, in->shape.dims, err));
    TIDE_TRY(tide_op_set_out(x, 1, TIDE_F32, 0, NULL, err));
    return tide_op_set_out(x, 2, TIDE_U8, 0, NULL, err);
}

/// The range has 0 in it, so that 0 has a number of its own. Without a range (all 0, or no element) the scale is 1.
static tide_status run_dynamic(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k;
    (void)err;
    const float *x = a->in[0].data;
    const int64_t n = tide_op_numel(&a->in[0].shape);
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
    }
    const float scale = lo == hi ? 1.0f : (hi - lo) / UINT8_MAX;
    const float from_lowest = rintf(0.0f - lo / scale); // NaN becomes the lowest
    const float zero = from_lowest >= 0 ? fminf(from_lowest, UINT8_MAX) : 0;
    if (n > 0) tide_quantize_row(TIDE_F32, TIDE_U8, a->out[0].data, x, n, scale, (int64_t)zero);
    *(float *)a->out[1].data = scale;
    *(uint8_t *)a->out[2].data = (uint8_t)zero;
    return TIDE_OK;
}

const tide_op_def tide_op_quantize_linear = {
    .name = "QuantizeLinear",
    .domain = "",
    .since = 10,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis", .since = 13), TIDE_ATTR(INT, "saturate", .since = 19),
                        TIDE_ATTR(INT, "block_size", .since = 21), TIDE_ATTR(INT, "output_dtype", .since = 21),
                        TIDE_ATTR(INT, "precision", .since = 23)),
    .min_inputs = 2,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_quantize,
    .run = run};
const tide_op_def tide_op_dequantize_linear = {.name = "DequantizeLinear",
                                               .domain = "",
                                               .since = 10,
                                               .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis", .since = 13),
                                                                   TIDE_ATTR(INT, "block_size", .since = 21),
                                                                   TIDE_ATTR(INT, "output_dtype", .since = 23)),
                                               .min_inputs = 2,
                                               .max_inputs = 3,
                                               .min_outputs = 1,
                                               .max_outputs = 1,
                                               .infer = infer_dequantize,
                                               .run = run};
const tide_op_def tide_op_dynamic_quantize_linear = {.name = "DynamicQuantizeLinear",
                                                     .domain = "",
                                                     .since = 11,
                                                     .min_inputs = 1,
                                                     .max_inputs = 1,
                                                     .min_outputs = 3,
                                                     .max_outputs = 3,
                                                     .infer = infer_dynamic,
                                                     .run = run_dynamic};
