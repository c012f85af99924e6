// SPDX-License-Identifier: MIT
//
// Merging runs of 1, 2, 4, … indices. See index_sort.h.
#include "core/ops/index_sort.h"

#include <string.h>

static void merge(const int64_t *from, int64_t *to, int64_t lo, int64_t mid, int64_t hi, tide_index_order order,
                  const void *ctx) {
    int64_t a = lo, b = mid;
    for (int64_t i = lo; i < hi; i++) {
        const bool takes_a = a < mid && (b >= hi || order(ctx, from[a], from[b]) <= 0);
        to[i] = takes_a ? from[a++] : from[b++];
    }
}

void tide_index_sort(int64_t *list, int64_t *spare, int64_t n, tide_index_order order, const void *ctx) {
    int64_t *from = list, *to = spare;
    for (int64_t width = 1; width<n; width = width> n / 2 ? n : 2 * width) {
        for (int64_t lo = 0; lo < n;) {
            const int64_t mid = n - lo > width ? lo + width : n, hi = n - mid > width ? mid + width : n;
            merge(from, to, lo, mid, hi, order, ctx);
            lo = hi;
        }
        int64_t *const other = from;
        from = to;
        to = other;
    }
    if (from != list) memcpy(list, from, (size_t)n * sizeof *list);
}
