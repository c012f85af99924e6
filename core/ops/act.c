// SPDX-License-Identifier: MIT
//
// Activations in plain loops. See act.h. Comparisons are written so that a NaN falls through them.
#include "core/ops/act.h"

#include "core/ops/clones.h"
#include "core/ops/vector_math.h"

TIDE_CLONES static void relu(float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

/// Where the bounds cross, the upper one wins.
TIDE_CLONES static void clip(float *y, int64_t n, float a, float b) {
    for (int64_t i = 0; i < n; i++) {
        const float low = y[i] < a ? a : y[i];
        y[i] = low > b ? b : low;
    }
}

TIDE_CLONES static void leaky_relu(float *y, int64_t n, float a) {
    for (int64_t i = 0; i < n; i++) y[i] = y[i] > 0.0f ? y[i] : a * y[i];
}

void tide_act_apply(const tide_activation *act, float *y, int64_t n) {
    switch (act->kind) {
    case TIDE_ACT_NONE:
        return;
    case TIDE_ACT_RELU:
        relu(y, n);
        return;
    case TIDE_ACT_CLIP:
        clip(y, n, act->alpha, act->beta);
        return;
    case TIDE_ACT_SIGMOID:
        tide_sigmoid_row(y, y, n);
        return;
    case TIDE_ACT_TANH:
        tide_tanh_row(y, y, n);
        return;
    case TIDE_ACT_LEAKY_RELU:
        leaky_relu(y, n, act->alpha);
        return;
    }
}
