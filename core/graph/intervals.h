// SPDX-License-Identifier: MIT
//
// intervals: between which whole numbers the few elements of a tensor lie that shapes are made of, where their content
// is known only while running. Bounds of sizes follow from them (bounds.h).
#ifndef TIDE_CORE_GRAPH_INTERVALS_H
#define TIDE_CORE_GRAPH_INTERVALS_H

#include "core/tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_INTERVALS_MAX = 16 };

/// Element i is at least least[i] and at most most[i].
typedef struct tide_intervals {
    size_t n; ///< elements; 0: the tensor has none, too many, no known number of them, or is not of whole numbers
    int64_t least[TIDE_INTERVALS_MAX], most[TIDE_INTERVALS_MAX];
} tide_intervals;

/// All that `n` elements of the type can be. n 0 for uint64, for a type that is not of whole numbers (bool counts as 0
/// and 1), and for more elements than TIDE_INTERVALS_MAX.
tide_intervals tide_intervals_any(tide_dtype dtype, int64_t n);
/// What `n` elements of a content are.
tide_intervals tide_intervals_of(tide_dtype dtype, const void *data, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
