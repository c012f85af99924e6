// SPDX-License-Identifier: MIT
//
// quant_rows: stretches of numbers to quantised ones and back, for QuantizeLinear and DequantizeLinear as nodes and for
// operators that read and write quantised tensors (quantised.c). One way to calculate, so that both have the same bits.
//
//     q = saturate(round(x / scale) + zero)      round: to nearest, halves to even; NaN becomes the lowest
//     x = (q - zero) * scale
#ifndef TIDE_CORE_OPS_QUANT_ROWS_H
#define TIDE_CORE_OPS_QUANT_ROWS_H

#include "core/ops/data_util.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool tide_is_8_bit(tide_dtype t) { return t == TIDE_U8 || t == TIDE_I8; }
/// Types that QuantizeLinear makes.
static inline bool tide_is_quantized_type(tide_dtype t) { return tide_is_8_bit(t) || t == TIDE_U16 || t == TIDE_I16; }

/// `n` numbers at `in`, of a type that QuantizeLinear makes or int32, to float32. `out` and `in` do not overlap.
void tide_dequantize_row(tide_dtype dtype, float *restrict out, const void *restrict in, int64_t n, float scale,
                         int64_t zero);
/// The same but of int32, each number with a scale of its own and, if `zero` is not NULL, a zero point.
void tide_dequantize_columns(tide_dtype dtype, float *restrict out, const void *restrict in, int64_t n,
                             const float *restrict scale, const void *restrict zero);
/// `n` numbers at `in`, of type `from` (float32 or int32), to a type that QuantizeLinear makes. `out` may begin where
/// `in` does.
void tide_quantize_row(tide_dtype from, tide_dtype dtype, void *out, const void *in, int64_t n, float scale,
                       int64_t zero);

// 16-bit floats

static inline bool tide_is_narrow(tide_dtype dtype) { return dtype == TIDE_F16 || dtype == TIDE_BF16; }
/// Elements of a 16-bit float type as float32, and back.
void tide_widen_row(tide_dtype dtype, float *to, const void *from, int64_t n);
void tide_narrow_row(tide_dtype dtype, void *to, const float *from, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
