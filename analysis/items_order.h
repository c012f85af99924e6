// SPDX-License-Identifier: MIT
//
// Orders of many items by a key of 64 bits, in little memory. Private to analysis/.
#ifndef TIDE_ANALYSIS_ITEMS_ORDER_H
#define TIDE_ANALYSIS_ITEMS_ORDER_H

#include "analysis/items.h"

/// Sort by begin, then size descending, then number, blocks before planned tensors, but for the one that stands at
/// `without` (SIZE_MAX: none), which is left out. Runs that are in order already are merged: n log (number of runs),
/// and 6 bytes each while it lasts.
tide_status tide__items_sort(tide_items *items, const tide_progress *progress) TIDE_NODISCARD;
/// Items by number, blocks before planned tensors; NULL when there are more than a million.
tide_status tide__items_index(const tide_items *items, uint32_t **out) TIDE_NODISCARD;

/// Sorting that reports its progress every few milliseconds and can be cancelled then. NULL: no report.
typedef struct tide__sorting {
    const tide_progress *progress; ///< borrowed
    const char *what;
    double from, to;       ///< shares at its begin and its end
    size_t total;          ///< numbers to be looked at
    size_t done, reported; ///< 0 at the begin
} tide__sorting;
/// `n` more were looked at. False: cancelled.
bool tide__sorting_goes_on(tide__sorting *s, size_t n);

/// Whether a stands before b or level with it.
typedef bool (*tide__in_order_fn)(const void *ctx, uint32_t a, uint32_t b);
/// Sort numbers by merging the runs that are there; stable. It looks at n. TIDE_ERR_CANCELLED: they are lost.
tide_status tide__merge_sort(uint32_t *numbers, size_t n, tide__in_order_fn in_order, const void *ctx,
                             tide__sorting *reporter) TIDE_NODISCARD;

typedef struct tide__keyed {
    uint64_t key;
    uint32_t number, zero;
} tide__keyed;
/// Sort by key, stable: by digits. `spare` [n] is overwritten.
void tide__keyed_sort(tide__keyed *keys, tide__keyed *spare, size_t n);

/// The key of a number.
typedef uint64_t (*tide__key_fn)(const void *ctx, uint32_t number);
/// The numbers below `n_all` whose bits are set (NULL: all), `n` of them, by key, stable; for many: they are dealt out
/// to buckets of near keys, each of which is sorted then. Costs 32 bytes each of the
/// fullest bucket while it lasts, or, where that has more than a million, 2. *out [n] is the caller's. It looks at
/// 3 n_all + n.
tide_status tide__bucket_sort(const uint8_t *bits, size_t n_all, size_t n, tide__key_fn key, const void *ctx,
                              tide__sorting *reporter, uint32_t **out) TIDE_NODISCARD;

#endif
