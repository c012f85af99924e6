// SPDX-License-Identifier: MIT
//
// The loops of quantising and dequantising. See quant_rows.h.
#include "core/ops/quant_rows.h"

#include "core/base/assert.h"
#include "core/ops/clones.h"
#include "core/tensor/half.h"

#define DEFINE_DEQUANTIZE(sfx, S)                                                                                      \
    TIDE_CLONES static void dequantize_##sfx(float *restrict out, const S *restrict in, int64_t n, float scale,        \
                                             int32_t zero) {                                                           \
        for (int64_t i = 0; i < n; i++) out[i] = (float)((int32_t)in[i] - zero) * scale;                               \
    }
DEFINE_DEQUANTIZE(u8, uint8_t)
DEFINE_DEQUANTIZE(i8, int8_t)
DEFINE_DEQUANTIZE(u16, uint16_t)
DEFINE_DEQUANTIZE(i16, int16_t)

#define DEFINE_COLUMNS(sfx, S)                                                                                         \
    TIDE_CLONES static void columns_##sfx(float *restrict out, const S *restrict in, int64_t n,                        \
                                          const float *restrict scale, const S *restrict zero) {                       \
        if (zero == NULL)                                                                                              \
            for (int64_t i = 0; i < n; i++) out[i] = (float)in[i] * scale[i];                                          \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++) out[i] = (float)((int32_t)in[i] - zero[i]) * scale[i];                     \
    }
DEFINE_COLUMNS(u8, uint8_t)
DEFINE_COLUMNS(i8, int8_t)
DEFINE_COLUMNS(u16, uint16_t)
DEFINE_COLUMNS(i16, int16_t)

void tide_dequantize_columns(tide_dtype dtype, float *restrict out, const void *restrict in, int64_t n,
                             const float *restrict scale, const void *restrict zero) {
    if (dtype == TIDE_U8)
        columns_u8(out, in, n, scale, zero);
    else if (dtype == TIDE_I8)
        columns_i8(out, in, n, scale, zero);
    else if (dtype == TIDE_U16)
        columns_u16(out, in, n, scale, zero);
    else
        columns_i16(out, in, n, scale, zero);
}

/// A zero point of 32 bits may be any number: float has not all of them.
static void dequantize_i32(float *restrict out, const int32_t *restrict in, int64_t n, float scale, int64_t zero) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)((int64_t)in[i] - zero) * scale;
}

void tide_dequantize_row(tide_dtype dtype, float *restrict out, const void *restrict in, int64_t n, float scale,
                         int64_t zero) {
    if (dtype == TIDE_U8)
        dequantize_u8(out, in, n, scale, (int32_t)zero);
    else if (dtype == TIDE_I8)
        dequantize_i8(out, in, n, scale, (int32_t)zero);
    else if (dtype == TIDE_U16)
        dequantize_u16(out, in, n, scale, (int32_t)zero);
    else if (dtype == TIDE_I16)
        dequantize_i16(out, in, n, scale, (int32_t)zero);
    else
        dequantize_i32(out, in, n, scale, zero);
}

/// To nearest, halves to even, of a number that is less than 2^22 either way: above 1.5 * 2^23 a float has no room for
/// a fraction. A call of rintf would be one for each number where the processor is not known to round.
static inline float round_small(float v) {
    const float shift = 12582912.0f;
    return (v + shift) - shift;
}

/// What saturates does so before it is rounded: the ends are whole numbers. NaN becomes the lowest, since no comparison
/// holds for it.
#define DEFINE_QUANTIZE(sfx, S, T, LO, HI)                                                                             \
    TIDE_CLONES static void quantize_##sfx(T *out, const S *in, int64_t n, float scale, float zero) {                  \
        const float lo = (LO)-zero, hi = (HI)-zero;                                                                    \
        TIDE_IVDEP                                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            float v = (float)in[i] / scale;                                                                            \
            v = v >= lo ? v : lo;                                                                                      \
            v = v <= hi ? v : hi;                                                                                      \
            out[i] = (T)(int32_t)(round_small(v) + zero);                                                              \
        }                                                                                                              \
    }
/// name, enum suffix, type, lowest, highest
#define QUANTIZED_TYPES(XX)                                                                                            \
    XX(u8, U8, uint8_t, 0.0f, 255.0f)                                                                                  \
    XX(i8, I8, int8_t, -128.0f, 127.0f)                                                                                \
    XX(u16, U16, uint16_t, 0.0f, 65535.0f)                                                                             \
    XX(i16, I16, int16_t, -32768.0f, 32767.0f)
#define XX(sfx, DT, T, LO, HI)                                                                                         \
    DEFINE_QUANTIZE(f32_##sfx, float, T, LO, HI)                                                                       \
    DEFINE_QUANTIZE(i32_##sfx, int32_t, T, LO, HI)
QUANTIZED_TYPES(XX)
#undef XX

void tide_quantize_row(tide_dtype from, tide_dtype dtype, void *out, const void *in, int64_t n, float scale,
                       int64_t zero) {
    const float z = (float)zero;
    switch (dtype) {
#define XX(sfx, DT, T, LO, HI)                                                                                         \
    case TIDE_##DT:                                                                                                    \
        if (from == TIDE_F32)                                                                                          \
            quantize_f32_##sfx(out, in, n, scale, z);                                                                  \
        else                                                                                                           \
            quantize_i32_##sfx(out, in, n, scale, z);                                                                  \
        break;
        QUANTIZED_TYPES(XX)
#undef XX
    default:
        TIDE_ASSERT(false);
    }
}

// ---- 16-bit floats ----

TIDE_CLONES static void widen_row(tide_dtype dtype, float *to, const void *from, int64_t n) {
    const uint16_t *x = from;
    if (dtype == TIDE_F16) {
        for (int64_t i = 0; i < n; i++) to[i] = tide_f16_to_f32(x[i]);
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = tide_bf16_to_f32(x[i]);
    }
}

TIDE_CLONES static void narrow_row(tide_dtype dtype, void *to, const float *from, int64_t n) {
    uint16_t *y = to;
    if (dtype == TIDE_F16) {
        for (int64_t i = 0; i < n; i++) y[i] = tide_f32_to_f16(from[i]);
    } else {
        for (int64_t i = 0; i < n; i++) y[i] = tide_f32_to_bf16(from[i]);
    }
}

void tide_widen_row(tide_dtype dtype, float *to, const void *from, int64_t n) { widen_row(dtype, to, from, n); }
void tide_narrow_row(tide_dtype dtype, void *to, const float *from, int64_t n) { narrow_row(dtype, to, from, n); }
