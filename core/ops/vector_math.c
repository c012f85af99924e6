// SPDX-License-Identifier: MIT
//
// Polynomials through Chebyshev's points of each interval, calculated in double and rounded. See vector_math.h.
#include "core/ops/vector_math.h"

#include <math.h>
#include <string.h>

#include "core/ops/clones.h"
#include "core/ops/data_util.h"

static inline float from_bits(int32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/// 2^n * e^r with |r| <= ln(2) / 2. The power in two steps: its ends lie beyond what one exponent can say.
static inline float exp_of(float x) {
    const float shift = 12582912.0f; // 1.5 * 2^23: what is added to it loses its fraction
    const float above = x < -104.0f ? -104.0f : x, v = above > 89.0f ? 89.0f : above;
    const float near = (v * 1.44269504f + shift) - shift, n = near == near ? near : 0.0f;
    const float r = (v - n * 0.693359375f) + n * 2.12194440e-4f;
    const float p =
        1.0f +
        r * (1.0f + r * (0.5f + r * (0.166664155f + r * (0.0416663529f + r * (0.0083751264f + r * 0.00139411084f)))));
    const int32_t whole = (int32_t)n, half = whole >> 1;
    return p * from_bits((half + 127) * (1 << 23)) * from_bits((whole - half + 127) * (1 << 23));
}

static inline float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

static inline float tanh_of(float x) {
    const float a = fabsf(x), s = x * x;
    const float p =
        -0.333333331f +
        s * (0.133333001f + s * (-0.0539584616f + s * (0.0217625029f + s * (-0.008323187f + s * 0.00226950164f))));
    const float far = copysignf(1.0f - 2.0f / (exp_of(2.0f * a) + 1.0f), x);
    return a < 0.625f ? x * (1.0f + s * p) : far;
}

/// Up to 1 by itself, up to 4 by what e^(x*x) makes of its complement, which is next to nothing from there on.
static inline float erf_of(float x) {
    const float a = fabsf(x), s = x * x, u = ((a > 4.0f ? 4.0f : a) - 2.5f) * (2.0f / 3.0f);
    const float p =
        1.12837917f +
        s * (-0.376126267f +
             s * (0.112835947f +
                  s * (-0.026854212f + s * (0.00518908742f + s * (-0.000801686428f + s * 7.87587505e-05f)))));
    const float q =
        0.210806364f +
        u * (-0.111521391f +
             u * (0.056110628f +
                  u * (-0.0269979374f +
                       u * (0.0124866996f +
                            u * (-0.00561123364f +
                                 u * (0.00241838423f +
                                      u * (-0.000916272603f +
                                           u * (0.000376477275f + u * (-0.000245186452f + u * 9.2949743e-05f)))))))));
    const float far = copysignf(1.0f - exp_of(-(a * a)) * q, x);
    return a < 1.0f ? x * p : far;
}

#define DEFINE_ROW(name)                                                                                               \
    TIDE_CLONES static void name##_row(float *y, const float *x, int64_t n) {                                          \
        TIDE_IVDEP                                                                                                     \
        for (int64_t i = 0; i < n; i++) y[i] = name##_of(x[i]);                                                        \
    }                                                                                                                  \
    void tide_##name##_row(float *y, const float *x, int64_t n) { name##_row(y, x, n); }
DEFINE_ROW(exp)
DEFINE_ROW(sigmoid)
DEFINE_ROW(tanh)
DEFINE_ROW(erf)
