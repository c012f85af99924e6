// SPDX-License-Identifier: MIT
//
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, literally: each reads and writes whole tensors.
//
//     q = saturate(round(x / scale) + zero)      round: to nearest, halves to even
//     x = (q - zero) * scale
//
// Scale and zero point are one each, or, from opset 13 on, one for each index of `axis`. Where the operand is seen as
// [outer, n, inner], n is that axis.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

typedef struct axis_view {
    int64_t outer, n, inner;
} axis_view;

/// How `scale` lies over `x`; TIDE_ERR_BAD_INPUT where it does not.
static tide_status view_of(const tide_node *node, const tide_operand *x, const tide_operand *scale, axis_view *v,
                           tide_error *err) {
    int32_t axis;
    *v = (axis_view){1, 1, tide_op_numel(&x->shape)};
    TIDE_TRY(tide_op_require_rank(node, scale, "scale", 0, 1, err));
    if (tide_op_numel(&scale->shape) == 1) return TIDE_OK; // [1] stands for a scalar in many files
    TIDE_TRY(
        tide_op_axis(node, node->opset >= 13 ? tide_node_attr_int(node, "axis", 1) : 1, x->shape.rank, &axis, err));
    const int64_t n = x->shape.rank == 0 ? 1 : x->shape.dims[axis];
    if (tide_op_numel(&scale->shape) != n)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "'scale' has %lld elements, axis %d has %lld",
                            (long long)tide_op_numel(&scale->shape), axis, (long long)n);
    *v = (axis_view){tide_op_count(&x->shape, 0, axis), n, tide_op_count(&x->shape, axis + 1, x->shape.rank)};
    return TIDE_OK;
}

static bool is_quantised(tide_dtype t) { return t == TIDE_U8 || t == TIDE_I8; }

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
    const tide_dtype out = tide_op_has_in(x, 2) ? x->in[2].dtype : TIDE_U8;
    if (!is_quantised(out)) return tide_data_no_dtype(x->node, out, err);
    TIDE_TRY(check(x, err));
    return tide_op_set_out(x, 0, out, in->shape.rank, in->shape.dims, err);
}

static tide_status infer_dequantize(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    if (!is_quantised(in->dtype) && in->dtype != TIDE_I32) return tide_data_no_dtype(x->node, in->dtype, err);
    if (tide_op_has_in(x, 2)) TIDE_TRY(tide_data_same_dtype(x, 0, 2, err));
    TIDE_TRY(check(x, err));
    return tide_op_set_out(x, 0, TIDE_F32, in->shape.rank, in->shape.dims, err);
}

// ---- loops ----

/// NaN becomes the lowest: no comparison holds for it.
static inline float saturate(float v, float lo, float hi) {
    v = v >= lo ? v : lo;
    return v <= hi ? v : hi;
}

#define DEFINE_QUANTIZE(sfx, S, T, LO, HI)                                                                             \
    static void quantize_##sfx(void *out, const void *in, int64_t n, float scale, float zero) {                        \
        T *const o = out;                                                                                              \
        const S *const x = in;                                                                                         \
        for (int64_t i = 0; i < n; i++) o[i] = (T)saturate(rintf((float)x[i] / scale) + zero, LO, HI);                 \
    }
DEFINE_QUANTIZE(f32_u8, float, uint8_t, 0, UINT8_MAX)
DEFINE_QUANTIZE(f32_i8, float, int8_t, INT8_MIN, INT8_MAX)
DEFINE_QUANTIZE(i32_u8, int32_t, uint8_t, 0, UINT8_MAX)
DEFINE_QUANTIZE(i32_i8, int32_t, int8_t, INT8_MIN, INT8_MAX)

#define DEFINE_DEQUANTIZE(sfx, S)                                                                                      \
    static void dequantize_##sfx(void *out, const void *in, int64_t n, float scale, float zero) {                      \
        float *const o = out;                                                                                          \
        const S *const x = in;                                                                                         \
        const int32_t z = (int32_t)zero;                                                                               \
        for (int64_t i = 0; i < n; i++) o[i] = (float)((int32_t)x[i] - z) * scale;                                     \
    }
DEFINE_DEQUANTIZE(u8, uint8_t)
DEFINE_DEQUANTIZE(i8, int8_t)

/// A zero point of 32 bits may be any number: float has not all of them.
static void dequantize_i32(float *out, const int32_t *x, int64_t n, float scale, int64_t zero) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)((int64_t)x[i] - zero) * scale;
}

typedef void (*row_fn)(void *out, const void *in, int64_t n, float scale, float zero);

static row_fn quantize_row(tide_dtype in, tide_dtype out) {
    if (in == TIDE_F32) return out == TIDE_U8 ? quantize_f32_u8 : quantize_f32_i8;
    return out == TIDE_U8 ? quantize_i32_u8 : quantize_i32_i8;
}

/// Each stretch of `inner` elements has one scale and one zero point.
static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *in = &a->in[0], *out = &a->out[0], *zero = a->n_in > 2 ? &a->in[2] : NULL;
    const bool has_zero = zero != NULL && tide_operand_present(zero), dequantizes = out->dtype == TIDE_F32;
    const size_t in_bytes = tide_dtype_size(in->dtype), out_bytes = tide_dtype_size(out->dtype);
    const float *scale = a->in[1].data;
    axis_view v;
    TIDE_TRY(view_of(k->node, in, &a->in[1], &v, err));
    if (out->size_bytes == 0) return TIDE_OK;
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t c = 0; c < v.n; c++) {
            const int64_t at = (o * v.n + c) * v.inner;
            const int64_t z = has_zero ? tide_data_load_i64(zero->dtype, zero->data, c) : 0;
            void *to = tide_data_at(out->data, at, out_bytes);
            const void *from = tide_data_const_at(in->data, at, in_bytes);
            if (!dequantizes)
                quantize_row(in->dtype, out->dtype)(to, from, v.inner, scale[c], (float)z);
            else if (in->dtype == TIDE_I32)
                dequantize_i32(to, from, v.inner, scale[c], z);
            else
                (in->dtype == TIDE_U8 ? dequantize_u8 : dequantize_i8)(to, from, v.inner, scale[c], (float)z);
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
    const float zero = saturate(rintf(0.0f - lo / scale), 0, UINT8_MAX);
    if (n > 0) quantize_f32_u8(a->out[0].data, x, n, scale, zero);
    *(float *)a->out[1].data = scale;
    *(uint8_t *)a->out[2].data = (uint8_t)zero;
    return TIDE_OK;
}

const tide_op_def tide_op_quantize_linear = {.name = "QuantizeLinear",
                                             .domain = "",
                                             .since = 10,
                                             .min_inputs = 2,
                                             .max_inputs = 3,
                                             .min_outputs = 1,
                                             .max_outputs = 1,
                                             .infer = infer_quantize,
                                             .run = run};
const tide_op_def tide_op_dequantize_linear = {.name = "DequantizeLinear",
                                               .domain = "",
                                               .since = 10,
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
