// SPDX-License-Identifier: MIT
//
// Activations in plain loops. See act.h. Comparisons are written so that a NaN falls through them.
#include "core/ops/act.h"

#include <math.h>

void tide_act_apply(const tide_activation *act, float *y, int64_t n) {
    const float a = act->alpha, b = act->beta;
    switch (act->kind) {
    case TIDE_ACT_NONE:
        return;
    case TIDE_ACT_RELU:
        for (int64_t i = 0; i < n; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
        return;
    case TIDE_ACT_CLIP:
        for (int64_t i = 0; i < n; i++) {
            const float low = y[i] < a ? a : y[i];
            y[i] = low > b ? b : low; // where the bounds cross, the upper one wins
        }
        return;
    case TIDE_ACT_SIGMOID:
        for (int64_t i = 0; i < n; i++) y[i] = 1.0f / (1.0f + expf(-y[i]));
        return;
    case TIDE_ACT_TANH:
        for (int64_t i = 0; i < n; i++) y[i] = tanhf(y[i]);
        return;
    case TIDE_ACT_LEAKY_RELU:
        for (int64_t i = 0; i < n; i++) y[i] = y[i] > 0.0f ? y[i] : a * y[i];
        return;
    }
}
