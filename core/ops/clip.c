// SPDX-License-Identifier: MIT
//
// Clip on every numeric type of the list. Bounds are attributes up to opset 10, optional operands (which need not be
// constants) from 11 on. Where the bounds cross, the upper one wins, and a NaN stays one, as in numpy.
#include <float.h>

#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

/// dtype suffix, C type, lowest, highest
#define CLIP_TYPES(XX)                                                                                                 \
    XX(F32, float, -FLT_MAX, FLT_MAX)                                                                                  \
    XX(F64, double, -DBL_MAX, DBL_MAX)                                                                                 \
    XX(I8, int8_t, INT8_MIN, INT8_MAX)                                                                                 \
    XX(U8, uint8_t, 0, UINT8_MAX)                                                                                      \
    XX(I16, int16_t, INT16_MIN, INT16_MAX)                                                                             \
    XX(U16, uint16_t, 0, UINT16_MAX)                                                                                   \
    XX(I32, int32_t, INT32_MIN, INT32_MAX)                                                                             \
    XX(U32, uint32_t, 0, UINT32_MAX)                                                                                   \
    XX(I64, int64_t, INT64_MIN, INT64_MAX)                                                                             \
    XX(U64, uint64_t, 0, UINT64_MAX)

static bool dtype_known(tide_dtype dtype) {
    switch (dtype) {
#define XX(name, type, lowest, highest) case TIDE_##name:
        CLIP_TYPES(XX)
#undef XX
        return true;
    default:
        return false;
    }
}

static tide_status check_bound(const tide_infer *x, size_t i, const char *what, tide_error *err) {
    if (!tide_op_has_in(x, i)) return TIDE_OK;
    if (x->in[i].dtype != x->in[0].dtype)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%s is %s and the input is %s", what,
                            tide_dtype_name(x->in[i].dtype), tide_dtype_name(x->in[0].dtype));
    // A vector of one element is not what the text asks for, but exporters write it.
    if (tide_op_numel(&x->in[i].shape) == 1) return TIDE_OK;
    char s[192];
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%s is %s, must be a scalar", what,
                        tide_shape_format(&x->in[i].shape, s, sizeof s));
}

static tide_status infer_11(const tide_infer *x, tide_error *err) {
    if (!dtype_known(x->in[0].dtype))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED,
                            "input is %s; this kernel takes float32, float64 "
                            "and integers",
                            tide_dtype_name(x->in[0].dtype));
    TIDE_TRY(check_bound(x, 1, "min", err));
    TIDE_TRY(check_bound(x, 2, "max", err));
    return tide_op_infer_same(x, err);
}

static tide_status infer_6(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "input", TIDE_F32, err));
    return tide_op_infer_same(x, err);
}

#define XX(name, type, lowest, highest)                                                                                \
    static void clip_##name(const type *x, type *y, int64_t n, const type *min, const type *max) {                     \
        const type low = min != NULL ? *min : (type)(lowest), high = max != NULL ? *max : (type)(highest);             \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type v = x[i] < low ? low : x[i];                                                                    \
            y[i] = v > high ? high : v;                                                                                \
        }                                                                                                              \
    }
CLIP_TYPES(XX)
#undef XX

static tide_status run_11(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const int64_t n = tide_op_numel(&args->in[0].shape);
    const void *x = args->in[0].data;
    const void *min = args->n_in > 1 && tide_operand_present(&args->in[1]) ? args->in[1].data : NULL;
    const void *max = args->n_in > 2 && tide_operand_present(&args->in[2]) ? args->in[2].data : NULL;
    switch (args->in[0].dtype) {
#define XX(name, type, lowest, highest)                                                                                \
    case TIDE_##name:                                                                                                  \
        clip_##name(x, args->out[0].data, n, min, max);                                                                \
        return TIDE_OK;
        CLIP_TYPES(XX)
#undef XX
    default:
        return TIDE_OP_FAIL(err, k->node, TIDE_ERR_NOT_IMPLEMENTED, "input is %s", tide_dtype_name(args->in[0].dtype));
    }
}

static tide_status run_6(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const float min = tide_node_attr_float(k->node, "min", -FLT_MAX),
                max = tide_node_attr_float(k->node, "max", FLT_MAX);
    clip_F32(args->in[0].data, args->out[0].data, tide_op_numel(&args->in[0].shape), &min, &max);
    return TIDE_OK;
}

const tide_op_def tide_op_clip_6 = {
    .domain = "",
    .name = "Clip",
    .since = 6,
    .until = 10,
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "max"), TIDE_ATTR(FLOAT, "min")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_6,
    .run = run_6,
};
const tide_op_def tide_op_clip_11 = {
    .domain = "",
    .name = "Clip",
    .since = 11,
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_11,
    .run = run_11,
};
