// SPDX-License-Identifier: MIT
//
// attend: what one query makes of keys and values. Used by Attention of both domains.
//
//     score[j] = scale * (q · key[j])    weight = softmax(score)    y = sum of weight[j] * value[j]
//
// Keys and values lie in two stretches, those of a cache and those of now, so that they need not be put together.
// float32; one row of scores is all the scratch there is.
#ifndef TIDE_CORE_OPS_ATTEND_H
#define TIDE_CORE_OPS_ATTEND_H

#include "core/ops/op_util.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_attend_rows {
    const float *past, *now;
    int64_t n_past;
    int64_t past_step, now_step; ///< elements from one row to the next
} tide_attend_rows;

/// score[n] from the first n keys of `d` elements each.
void tide_attend_scores(const float *q, const tide_attend_rows *keys, int64_t n, int64_t d, float scale, float *score);
/// In place. Where all are -infinity, or there is none, nothing is attended to: all become 0.
void tide_attend_softmax(float *score, int64_t n);
/// y[d] from the first n values.
void tide_attend_values(const float *weight, const tide_attend_rows *values, int64_t n, int64_t d, float *y);
/// to [n_past + n_now, d] = the rows of both stretches.
void tide_attend_join(const tide_attend_rows *rows, int64_t n_now, int64_t d, float *to);

/// Which keys com.microsoft's operators leave out, in four forms: [batch] lengths; [2 * batch] ends, then begins;
/// [batch, total] and [batch, seq, total] with 0 for what is masked.
typedef enum tide_attend_form {
    TIDE_ATTEND_ALL, ///< no mask
    TIDE_ATTEND_ENDS,
    TIDE_ATTEND_ENDS_AND_BEGINS,
    TIDE_ATTEND_KEYS,
    TIDE_ATTEND_PAIRS,
} tide_attend_form;
typedef struct tide_attend_mask {
    tide_attend_form form;
    int64_t batch, seq, total;
    const int32_t *data; ///< NULL until a run
} tide_attend_mask;
/// The form of input `name`; batch, seq and total of `mask` are set. TIDE_ERR_BAD_INPUT, TIDE_ERR_NOT_IMPLEMENTED.
tide_status tide_attend_mask_read(const tide_node *node, const tide_operand *o, const char *name,
                                  tide_attend_mask *mask, tide_error *err) TIDE_NODISCARD;
/// Whether query `i` of item `b` must not see key `j`.
bool tide_attend_is_masked(const tide_attend_mask *mask, int64_t b, int64_t i, int64_t j);

#ifdef __cplusplus
}
#endif
#endif
