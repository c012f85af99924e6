// SPDX-License-Identifier: MIT
//
// How far two tensors are apart: element by element, with both tolerances, and bit by bit.
#ifndef TIDE_CORE_TENSOR_COMPARE_H
#define TIDE_CORE_TENSOR_COMPARE_H

#include "core/tensor/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tensor_diff {
    bool bitwise_equal;
    double max_abs;       ///< largest |got - want|
    double max_rel;       ///< largest |got - want| / |want| where want is not 0
    bool pass;            ///< every element: |got - want| <= atol + rtol * |want|; NaN equals NaN, infinity itself
    int64_t n_failed;     ///< elements outside the tolerance
    int64_t first_failed; ///< flat index; -1: none
} tide_tensor_diff;

/**
 * Compare two contiguous CPU tensors of the same dtype and shape. Integers and bools are compared as numbers too.
 *
 * @return TIDE_ERR_INCOMPARABLE naming both when dtype or shape differ; TIDE_ERR_INVALID (strided, no memory, another
 * device), TIDE_ERR_BUSY (a guard) Cost O(elements).
 */
tide_status tide_tensor_compare(const tide_tensor *got, const tide_tensor *want, double rtol, double atol,
                                tide_tensor_diff *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
