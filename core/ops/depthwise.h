// SPDX-License-Identifier: MIT
//
// depthwise: convolution with one input channel per group, in plain loops. Used by Conv.
#ifndef TIDE_CORE_OPS_DEPTHWISE_H
#define TIDE_CORE_OPS_DEPTHWISE_H

#include "core/ops/op_util.h"

/// Convolve [batch, groups, in…] with [groups * multiplier, 1, kernel…] into [batch, groups * multiplier, out…].
typedef struct tide_depthwise {
    int64_t batch, groups, multiplier;
    tide_window window; ///< of 1 to 3 dimensions; shorter ones are padded in front by depthwise_init
    tide_activation act;
} tide_depthwise;

/// `w` may have 1 to 3 dimensions.
void tide_depthwise_init(tide_depthwise *d, int64_t batch, int64_t groups, int64_t multiplier, const tide_window *w,
                         const tide_activation *act);
/// `bias` may be NULL. Single-threaded, needs no scratch, adds in a fixed order.
void tide_depthwise_run(const tide_depthwise *d, const float *x, const float *w, const float *bias, float *y);

/// A window of `w->n` dimensions as one of TIDE_WINDOW_MAX: extents of 1 in front.
tide_window tide_window_widen(const tide_window *w);

#endif
