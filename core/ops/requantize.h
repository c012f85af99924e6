// SPDX-License-Identifier: MIT
//
// requantize: what MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv share: sums of products of 8-bit numbers
// less their zero points, in 32 bits that wrap, and the way back to 8 bits.
#ifndef TIDE_CORE_OPS_REQUANTIZE_H
#define TIDE_CORE_OPS_REQUANTIZE_H

#include <math.h>

#include "core/ops/data_util.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool tide_is_quantised(tide_dtype t) { return t == TIDE_U8 || t == TIDE_I8; }

/// sum[i] += factor * (x[i * step] - zero); `dtype` is int8 or uint8.
static inline void tide_add_products(tide_dtype dtype, uint32_t *restrict sum, const void *x, int64_t n, int64_t step,
                                     int32_t factor, int32_t zero) {
    const int8_t *const s = x;
    const uint8_t *const u = x;
    if (dtype == TIDE_I8 && step == 1)
        for (int64_t i = 0; i < n; i++) sum[i] += (uint32_t)(factor * (s[i] - zero));
    else if (dtype == TIDE_I8)
        for (int64_t i = 0; i < n; i++) sum[i] += (uint32_t)(factor * (s[i * step] - zero));
    else if (step == 1)
        for (int64_t i = 0; i < n; i++) sum[i] += (uint32_t)(factor * (u[i] - zero));
    else
        for (int64_t i = 0; i < n; i++) sum[i] += (uint32_t)(factor * (u[i * step] - zero));
}

/// out[i] = saturate(round(sum * scale) + zero), halves to even; float as in ONNX Runtime.
static inline void tide_requantize(tide_dtype dtype, void *out, int64_t i, uint32_t sum, float scale, int32_t zero) {
    const float lo = dtype == TIDE_I8 ? INT8_MIN : 0, hi = dtype == TIDE_I8 ? INT8_MAX : UINT8_MAX;
    float v = rintf((float)(int32_t)sum * scale) + (float)zero;
    v = v >= lo ? v : lo; // NaN becomes the lowest
    v = v <= hi ? v : hi;
    if (dtype == TIDE_I8)
        ((int8_t *)out)[i] = (int8_t)v;
    else
        ((uint8_t *)out)[i] = (uint8_t)v;
}

#ifdef __cplusplus
}
#endif
#endif
