// SPDX-License-Identifier: MIT
//
// bounds_util: what rules of bounds ask of operands and how they answer. See bounds.h.
#ifndef TIDE_CORE_OPS_BOUNDS_UTIL_H
#define TIDE_CORE_OPS_BOUNDS_UTIL_H

#include "core/graph/op_def.h"

static inline bool tide_bounds_has_in(const tide_bounds *x, size_t k) {
    return k < x->n_in && tide_operand_present(&x->in[k]);
}
/// There is such an operand, and its extents have bounds.
static inline bool tide_bounds_has_shape(const tide_bounds *x, size_t k) {
    return k < x->n_in && x->state[k] == TIDE_BOUND_SHAPE && tide_operand_present(&x->in[k]);
}
/// Its content is a constant, or there is nothing in it.
static inline bool tide_bounds_has_content(const tide_bounds *x, size_t k) {
    return tide_bounds_has_shape(x, k) && x->in[k].data != NULL;
}
/// Its extents are known.
static inline bool tide_bounds_is_exact(const tide_bounds *x, size_t k) {
    return tide_bounds_has_shape(x, k) && tide_shape_equal(&x->in[k].shape, &x->least[k]);
}

/// Between which the numbers of operand `k` lie; n 0: nothing is known of them.
static inline const tide_intervals *tide_bounds_numbers(const tide_bounds *x, size_t k) {
    static const tide_intervals none = {.n = 0};
    return x->in_numbers != NULL && tide_bounds_has_in(x, k) ? &x->in_numbers[k] : &none;
}

/// Result `k` is of this type, and no extent is larger or smaller. A result that the node leaves out is passed over.
static inline void tide_bounds_set(tide_bounds *x, size_t k, tide_dtype dtype, int32_t rank, const int64_t *most,
                                   const int64_t *least) {
    if (k >= x->n_out || x->node->outputs[k] == TIDE_NO_VALUE) return;
    x->out[k].dtype = dtype;
    x->out[k].shape = tide_shape_make(rank, most);
    x->out_least[k] = tide_shape_make(rank, least);
    x->out_state[k] = TIDE_BOUND_SHAPE;
}

#endif
