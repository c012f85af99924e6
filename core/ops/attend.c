// SPDX-License-Identifier: MIT
//
// What one query makes of keys and values. See attend.h.
#include "core/ops/attend.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 }; // running sums: breaks the chain of dependent additions, in an order that is ours

static float dot(const float *restrict a, const float *restrict b, int64_t n) {
    float part[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) part[k] += a[i + k] * b[i + k];
    for (int k = 0; i < n; i++, k++) part[k] += a[i] * b[i];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) part[k] += part[k + half];
    return part[0];
}

static const float *row_of(const tide_attend_rows *r, int64_t j) {
    return j < r->n_past ? r->past + j * r->past_step : r->now + (j - r->n_past) * r->now_step;
}

void tide_attend_scores(const float *q, const tide_attend_rows *keys, int64_t n, int64_t d, float scale, float *score) {
    for (int64_t j = 0; j < n; j++) score[j] = d > 0 ? scale * dot(q, row_of(keys, j), d) : 0;
}

void tide_attend_softmax(float *score, int64_t n) {
    float top = -INFINITY;
    for (int64_t j = 0; j < n; j++) top = score[j] > top || isnan(score[j]) ? score[j] : top; // a NaN stays one
    if (top == -INFINITY) {
        for (int64_t j = 0; j < n; j++) score[j] = 0;
        return;
    }
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        score[j] = expf(score[j] - top);
        sum += (double)score[j];
    }
    const float factor = (float)(1 / sum);
    for (int64_t j = 0; j < n; j++) score[j] *= factor;
}

void tide_attend_values(const float *weight, const tide_attend_rows *values, int64_t n, int64_t d, float *restrict y) {
    for (int64_t i = 0; i < d; i++) y[i] = 0;
    for (int64_t j = 0; d > 0 && j < n; j++) {
        const float *restrict v = row_of(values, j);
        const float w = weight[j];
        for (int64_t i = 0; i < d; i++) y[i] += w * v[i];
    }
}

void tide_attend_join(const tide_attend_rows *rows, int64_t n_now, int64_t d, float *to) {
    for (int64_t j = 0; d > 0 && j < rows->n_past + n_now; j++)
        memcpy(to + j * d, row_of(rows, j), (size_t)d * sizeof *to);
}
