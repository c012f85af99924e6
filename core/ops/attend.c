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

// ---- masks ----

static tide_status refuse_mask(const tide_node *node, const tide_operand *o, const char *name,
                               const tide_attend_mask *m, tide_error *err) {
    char s[192];
    tide_shape_format(&o->shape, s, sizeof s);
    if (o->shape.rank == 4)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "%s is %s; masks of rank 4 are not implemented", name,
                            s);
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                        "%s is %s, must be [%lld], [%lld], [%lldx%lld] or [%lldx%lldx%lld]", name, s,
                        (long long)m->batch, (long long)(2 * m->batch), (long long)m->batch, (long long)m->total,
                        (long long)m->batch, (long long)m->seq, (long long)m->total);
}

tide_status tide_attend_mask_read(const tide_node *node, const tide_operand *o, const char *name, tide_attend_mask *m,
                                  tide_error *err) {
    const tide_shape ends = {1, {m->batch}}, both = {1, {2 * m->batch}};
    const tide_shape keys = {2, {m->batch, m->total}}, pairs = {3, {m->batch, m->seq, m->total}};
    TIDE_TRY(tide_op_require_dtype(node, o, name, TIDE_I32, err));
    if (tide_shape_equal(&o->shape, &ends))
        m->form = TIDE_ATTEND_ENDS;
    else if (tide_shape_equal(&o->shape, &both))
        m->form = TIDE_ATTEND_ENDS_AND_BEGINS;
    else if (tide_shape_equal(&o->shape, &keys))
        m->form = TIDE_ATTEND_KEYS;
    else if (tide_shape_equal(&o->shape, &pairs))
        m->form = TIDE_ATTEND_PAIRS;
    else
        return refuse_mask(node, o, name, m, err);
    return TIDE_OK;
}

bool tide_attend_is_masked(const tide_attend_mask *m, int64_t b, int64_t i, int64_t j) {
    switch (m->form) {
    case TIDE_ATTEND_ALL:
        return false;
    case TIDE_ATTEND_ENDS:
        return j >= m->data[b];
    case TIDE_ATTEND_ENDS_AND_BEGINS:
        return j >= m->data[b] || j < m->data[m->batch + b];
    case TIDE_ATTEND_KEYS:
        return m->data[b * m->total + j] <= 0;
    case TIDE_ATTEND_PAIRS:
        return m->data[(b * m->seq + i) * m->total + j] <= 0;
    }
    return false;
}
