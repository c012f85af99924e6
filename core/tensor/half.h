// SPDX-License-Identifier: MIT
//
// half: float16 and bfloat16 as bit patterns to float and back, rounding to nearest even. Both types are stored as
// uint16_t everywhere in the house; operators on them calculate in float.
//
//     float16   | s | eeeee (bias 15) | mmmmmmmmmm |         IEEE 754-2008 binary16
//     bfloat16  | s | eeeeeeee (bias 127) | mmmmmmm |        the upper half of a float
#ifndef TIDE_CORE_TENSOR_HALF_H
#define TIDE_CORE_TENSOR_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float tide_bits_to_f32(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t tide_f32_to_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float tide_f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu;
    const uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0x1fu) return tide_bits_to_f32(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0) return tide_bits_to_f32(sign | (exponent + 112u) << 23 | mantissa << 13);
    const float subnormal = (float)mantissa * 0x1p-24f;
    return sign != 0 ? -subnormal : subnormal;
}

static inline uint16_t tide_f32_to_f16(float f) {
    const uint32_t bits = tide_f32_to_bits(f);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); // 65520 and more round to infinity
    if (magnitude < 0x38800000u)                                     // below 2^-14: subnormal, in units of 2^-24
        return (uint16_t)(sign | (uint16_t)rintf(fabsf(f) * 0x1p24f));
    const uint32_t even = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + even) >> 13);
}

static inline float tide_bf16_to_f32(uint16_t h) { return tide_bits_to_f32((uint32_t)h << 16); }

static inline uint16_t tide_f32_to_bf16(float f) {
    const uint32_t bits = tide_f32_to_bits(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); // a NaN stays one
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// double to float rounding to odd: a second rounding to a shorter format then gives what one rounding would
/// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008, section 2).
static inline float tide_f64_to_f32_odd(double d) {
    const float f = (float)d;
    if ((double)f == d || isnan(d)) return f;
    uint32_t bits = tide_f32_to_bits(f);
    if (fabs((double)f) > fabs(d)) bits--; // back towards zero; also from infinity to the largest number
    return tide_bits_to_f32(bits | 1u);
}

#endif
