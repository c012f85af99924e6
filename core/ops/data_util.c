// SPDX-License-Identifier: MIT
//
// data_util: scalars of any dtype, checked indices, fused activations. Used by every operator in plain loops.
#include "core/ops/data_util.h"

#include <inttypes.h>

#include "core/ops/act.h"
#include "core/ops/op_util.h"

bool tide_dtype_is_float(tide_dtype dtype) {
    return dtype == TIDE_F32 || dtype == TIDE_F64 || dtype == TIDE_F16 || dtype == TIDE_BF16;
}

double tide_data_load_f64(tide_dtype dtype, const void *base, int64_t i) {
    switch (dtype) {
#define XX(DT, sfx, S, C)                                                                                              \
    case TIDE_##DT:                                                                                                    \
        return (double)TIDE_LOAD_##sfx(((const S *)base)[i]);
        TIDE_TYPES_NUMERIC(XX)
        TIDE_TYPES_BOOL(XX)
#undef XX
    default:
        return 0;
    }
}

int64_t tide_data_f64_to_i64(double v) {
    if (isnan(v)) return 0;
    if (v >= 0x1p63) return INT64_MAX;
    if (v <= -0x1p63) return INT64_MIN;
    return (int64_t)v;
}

int64_t tide_data_load_i64(tide_dtype dtype, const void *base, int64_t i) {
    switch (dtype) {
#define XX(DT, sfx, S, C)                                                                                              \
    case TIDE_##DT:                                                                                                    \
        return (int64_t)((const S *)base)[i];
        TIDE_TYPES_INT(XX)
        TIDE_TYPES_BOOL(XX)
#undef XX
    default:
        return tide_data_f64_to_i64(tide_data_load_f64(dtype, base, i));
    }
}

static int64_t clamp_i64(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

void tide_data_store_f64(tide_dtype dtype, void *base, int64_t i, double v) {
    const int64_t whole = tide_data_f64_to_i64(rint(v));
    switch (dtype) {
    case TIDE_F32:
        ((float *)base)[i] = (float)v;
        return;
    case TIDE_F64:
        ((double *)base)[i] = v;
        return;
    case TIDE_F16:
        ((uint16_t *)base)[i] = tide_f32_to_f16(tide_f64_to_f32_odd(v));
        return;
    case TIDE_BF16:
        ((uint16_t *)base)[i] = tide_f32_to_bf16(tide_f64_to_f32_odd(v));
        return;
    case TIDE_I8:
        ((int8_t *)base)[i] = (int8_t)clamp_i64(whole, INT8_MIN, INT8_MAX);
        return;
    case TIDE_I16:
        ((int16_t *)base)[i] = (int16_t)clamp_i64(whole, INT16_MIN, INT16_MAX);
        return;
    case TIDE_I32:
        ((int32_t *)base)[i] = (int32_t)clamp_i64(whole, INT32_MIN, INT32_MAX);
        return;
    case TIDE_I64:
        ((int64_t *)base)[i] = whole;
        return;
    case TIDE_U8:
        ((uint8_t *)base)[i] = (uint8_t)clamp_i64(whole, 0, UINT8_MAX);
        return;
    case TIDE_U16:
        ((uint16_t *)base)[i] = (uint16_t)clamp_i64(whole, 0, UINT16_MAX);
        return;
    case TIDE_U32:
        ((uint32_t *)base)[i] = (uint32_t)clamp_i64(whole, 0, UINT32_MAX);
        return;
    case TIDE_U64:
        ((uint64_t *)base)[i] = v >= 0x1p64   ? UINT64_MAX
                                : v >= 0x1p63 ? (uint64_t)rint(v)
                                              : (uint64_t)clamp_i64(whole, 0, INT64_MAX);
        return;
    case TIDE_BOOL:
        ((uint8_t *)base)[i] = (uint8_t)(v != 0);
        return;
    default:
        return;
    }
}

tide_status tide_data_no_dtype(const tide_node *node, tide_dtype dtype, tide_error *err) {
    return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "not served for elements of type %s",
                        tide_dtype_name(dtype));
}

tide_status tide_data_same_dtype(const tide_infer *x, size_t a, size_t b, tide_error *err) {
    if (x->in[a].dtype == x->in[b].dtype) return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "input %zu is %s, input %zu is %s: they must be the same", a,
                        tide_dtype_name(x->in[a].dtype), b, tide_dtype_name(x->in[b].dtype));
}

tide_status tide_data_require_indices(const tide_node *node, const tide_operand *o, const char *what, tide_error *err) {
    if (o->dtype == TIDE_I64 || o->dtype == TIDE_I32) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "'%s' is %s, int32 or int64 expected", what,
                        tide_dtype_name(o->dtype));
}

tide_status tide_data_index(const tide_node *node, const tide_operand *indices, int64_t i, int64_t extent, int64_t *out,
                            tide_error *err) {
    const int64_t given =
        indices->dtype == TIDE_I32 ? ((const int32_t *)indices->data)[i] : ((const int64_t *)indices->data)[i];
    const int64_t at = given < 0 ? given + extent : given;
    if (at < 0 || at >= extent)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_RUNTIME,
                            "index %" PRId64 " (number %" PRId64 " of the indices) is outside an extent of %" PRId64,
                            given, i, extent);
    *out = at;
    return TIDE_OK;
}

static double activate_f64(const tide_activation *act, double v) {
    switch (act->kind) {
    case TIDE_ACT_RELU:
        return v < 0 ? 0 : v;
    case TIDE_ACT_CLIP:
        return v < act->alpha ? act->alpha : v > act->beta ? act->beta : v;
    case TIDE_ACT_SIGMOID:
        return 1 / (1 + exp(-v));
    case TIDE_ACT_TANH:
        return tanh(v);
    case TIDE_ACT_LEAKY_RELU:
        return v < 0 ? v * act->alpha : v;
    case TIDE_ACT_NONE:
        break;
    }
    return v;
}

void tide_data_activate(const tide_activation *act, tide_dtype dtype, void *data, int64_t n) {
    if (act->kind == TIDE_ACT_NONE) return;
    if (dtype == TIDE_F32) {
        tide_act_apply(act, data, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        tide_data_store_f64(dtype, data, i, activate_f64(act, tide_data_load_f64(dtype, data, i)));
}

tide_status tide_data_run_view(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k, (void)err;
    if (args->out[0].data != args->in[0].data && args->out[0].size_bytes != 0)
        memcpy(args->out[0].data, args->in[0].data, args->out[0].size_bytes);
    return TIDE_OK;
}
