// SPDX-License-Identifier: MIT
//
// strided_copy: move elements between two strided views of the same extents. Transpose, Slice, Concat, Split, Expand,
// Tile, Pad, DepthToSpace and SpaceToDepth are this one function with different strides.
#ifndef TIDE_CORE_OPS_STRIDED_COPY_H
#define TIDE_CORE_OPS_STRIDED_COPY_H

#include "core/ops/loops.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * dst[sum of index * dst_strides] = src[sum of index * src_strides] for every index below `dims`.
 *
 * @param elem_bytes  1, 2, 4 or 8
 * @param rank        0 … TIDE_LOOPS_MAX_RANK
 * @param dst_strides elements; no two indices may name the same element of dst
 * @param src_strides elements; 0 repeats, negative walks back from `src`
 *
 * Rows that are dense on both sides go by memcpy; a transposition goes in square tiles so that both sides use whole
 * cache lines. Allocates nothing. dst and src must not overlap.
 */
void tide_strided_copy(size_t elem_bytes, int32_t rank, const int64_t *dims, void *dst, const int64_t *dst_strides,
                       const void *src, const int64_t *src_strides);

#ifdef __cplusplus
}
#endif
#endif
