// SPDX-License-Identifier: MIT
//
// index_sort: indices in the order of what they stand for; equal ones stay in their order. For operators whose order
// depends on operands, which qsort cannot hand to its comparison.
#ifndef TIDE_CORE_OPS_INDEX_SORT_H
#define TIDE_CORE_OPS_INDEX_SORT_H

#include <stdbool.h>
#include <stdint.h>

/// < 0: `a` goes before `b`.
typedef int (*tide_index_order)(const void *ctx, int64_t a, int64_t b);
/// Sort list[n]; `spare` [n] is scratch. Allocates nothing. O(n log n).
void tide_index_sort(int64_t *list, int64_t *spare, int64_t n, tide_index_order order, const void *ctx);

#endif
