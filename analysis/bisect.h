// SPDX-License-Identifier: MIT
//
// bisect: binary search, written once. Private to analysis/ and reports/.
#ifndef TIDE_ANALYSIS_BISECT_H
#define TIDE_ANALYSIS_BISECT_H

/// Moves `lo` (a variable) to the first index of [lo, hi) for which `condition` is false; to `hi` where there is none.
/// `condition` is about the index `mid`, and true for all up to some index, then false.
///
///     size_t lo = 0, hi = n;
///     TIDE_BISECT(lo, hi, begin[mid] <= t); // lo: the first that begins after t
#define TIDE_BISECT(lo, hi, condition)                                                                                 \
    do {                                                                                                               \
        while (lo < hi) {                                                                                              \
            const size_t mid = lo + (hi - lo) / 2;                                                                     \
            if (condition)                                                                                             \
                lo = mid + 1;                                                                                          \
            else                                                                                                       \
                hi = mid;                                                                                              \
        }                                                                                                              \
    } while (0)

#endif
