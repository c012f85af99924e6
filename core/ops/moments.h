// SPDX-License-Identifier: MIT
//
// moments: mean and variance of a row, for InstanceNormalization and LayerNormalization.
#ifndef TIDE_CORE_OPS_MOMENTS_H
#define TIDE_CORE_OPS_MOMENTS_H

#include <stdint.h>

/// Mean and biased variance of n > 0 floats, in double and in two passes: no cancellation, a fixed order.
void tide_moments(const float *x, int64_t n, double *mean, double *variance);

#endif
