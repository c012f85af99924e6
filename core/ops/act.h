// SPDX-License-Identifier: MIT
//
// act: activations in plain loops, fused or by themselves. A NaN stays one in all of them, as in numpy and in ONNX's
// reference: an operator and its fused form then agree on every input.
#ifndef TIDE_CORE_OPS_ACT_H
#define TIDE_CORE_OPS_ACT_H

#include "core/graph/graph.h"

/// y[i] = act(y[i]) for n elements.
void tide_act_apply(const tide_activation *act, float *y, int64_t n);

#endif
