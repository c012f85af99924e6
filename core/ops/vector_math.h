// SPDX-License-Identifier: MIT
//
// vector_math: exp, sigmoid, tanh and erf of rows of float32, without branches, so that a compiler makes vectors of
// them. Within 3 units in the last place of the exact value (sigmoid and erf: within 2e-7), NaN stays NaN, the ends are
// 0, 1, -1 and infinity. Every element has the same bits wherever it stands in a row, and on every processor.
#ifndef TIDE_CORE_OPS_VECTOR_MATH_H
#define TIDE_CORE_OPS_VECTOR_MATH_H

#include <stdint.h>

/// y[i] = f(x[i]) for n elements; y may be x.
void tide_exp_row(float *y, const float *x, int64_t n);
void tide_sigmoid_row(float *y, const float *x, int64_t n);
void tide_tanh_row(float *y, const float *x, int64_t n);
void tide_erf_row(float *y, const float *x, int64_t n);

#endif
