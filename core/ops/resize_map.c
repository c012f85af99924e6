// SPDX-License-Identifier: MIT
//
// resize_map: the coordinate rules of ONNX's Resize. Calculated in float, as the exporters' own runtimes do, so that
// positions that fall exactly between two elements fall to the same side.
#include "core/ops/resize_map.h"

#include <math.h>

int tide_resize_n_taps(tide_resize_mode mode) {
    return mode == TIDE_RESIZE_NEAREST ? 1 : mode == TIDE_RESIZE_LINEAR ? 2 : 4;
}

/// Position on the input's axis, in elements; outside of it is possible.
static float original(const tide_resize_rule *rule, const tide_resize_axis *a, int64_t x) {
    const float at = (float)x;
    switch (rule->coord) {
    case TIDE_RESIZE_HALF_PIXEL:
        return (at + 0.5f) / a->scale - 0.5f;
    case TIDE_RESIZE_HALF_PIXEL_SYMMETRIC: {
        const float adjustment = (float)a->out / (a->scale * (float)a->in);
        return (float)a->in / 2.0f * (1.0f - adjustment) + (at + 0.5f) / a->scale - 0.5f;
    }
    case TIDE_RESIZE_PYTORCH_HALF_PIXEL:
        return a->out > 1 ? (at + 0.5f) / a->scale - 0.5f : 0.0f;
    case TIDE_RESIZE_ALIGN_CORNERS:
        return a->out > 1 ? at * (float)(a->in - 1) / (float)(a->out - 1) : 0.0f;
    case TIDE_RESIZE_ASYMMETRIC:
        return at / a->scale;
    case TIDE_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (at + 0.5f) / a->scale;
    case TIDE_RESIZE_TF_CROP_AND_RESIZE: {
        const float span = (float)(a->in - 1);
        return a->out > 1 ? a->roi_start * span + at * (a->roi_end - a->roi_start) * span / (float)(a->out - 1)
                          : 0.5f * (a->roi_start + a->roi_end) * span;
    }
    }
    return at;
}

static float nearest(tide_resize_nearest how, float at) {
    switch (how) {
    case TIDE_RESIZE_ROUND_PREFER_FLOOR:
        return at == floorf(at) + 0.5f ? floorf(at) : roundf(at);
    case TIDE_RESIZE_ROUND_PREFER_CEIL:
        return roundf(at);
    case TIDE_RESIZE_FLOOR:
        return floorf(at);
    case TIDE_RESIZE_CEIL:
        return ceilf(at);
    }
    return at;
}

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

/// Keys, "Cubic convolution interpolation for digital image processing", 1981, equations 15 and 16, with its free
/// coefficient a (-1/2 there, -3/4 by default in ONNX). `t` is the distance past the second of the four elements.
static void cubic_weights(float a, float t, float w[4]) {
    const float u = 1.0f - t;
    w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
    w[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

static void exclude_outside(int64_t first, int64_t n, float w[4]) {
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        if (first + i < 0 || first + i >= n) w[i] = 0;
        sum += w[i];
    }
    for (int i = 0; i < 4; i++) w[i] /= sum;
}

void tide_resize_tap_at(const tide_resize_rule *rule, const tide_resize_axis *axis, int64_t x, tide_resize_tap *out) {
    // Far outside is as good as just outside; and every float in between has an integer.
    const float far = (float)axis->in + 4.0f;
    const float at = fminf(fmaxf(original(rule, axis, x), -4.0f), far);
    const int64_t floor_i = (int64_t)floorf(at);
    const float t = at - floorf(at);
    *out = (tide_resize_tap){.weight = {1.0f}};
    out->outside = rule->coord == TIDE_RESIZE_TF_CROP_AND_RESIZE && (at < 0 || at > (float)(axis->in - 1));
    switch (rule->mode) {
    case TIDE_RESIZE_NEAREST:
        out->at[0] = clamp((int64_t)nearest(rule->nearest, at), axis->in);
        return;
    case TIDE_RESIZE_LINEAR:
        for (int i = 0; i < 2; i++) out->at[i] = clamp(floor_i + i, axis->in);
        out->weight[0] = 1.0f - t;
        out->weight[1] = t;
        return;
    case TIDE_RESIZE_CUBIC:
        for (int i = 0; i < 4; i++) out->at[i] = clamp(floor_i - 1 + i, axis->in);
        cubic_weights(rule->cubic_a, t, out->weight);
        if (rule->exclude_outside) exclude_outside(floor_i - 1, axis->in, out->weight);
        return;
    }
}
