// SPDX-License-Identifier: MIT
//
// act: a fused activation in plain loops, for kernels of ours that honour node->activation without oneDNN.
#ifndef TIDE_CORE_OPS_ACT_H
#define TIDE_CORE_OPS_ACT_H

#include "core/graph/graph.h"

/// y[i] = act(y[i]) for n elements.
void tide_act_apply(const tide_activation *act, float *y, int64_t n);

#endif
