// SPDX-License-Identifier: MIT
//
// strided_copy: the data movement under most shape-changing operators.
//
// The nest is merged, then cut into planes of the two innermost loops. In a plane the destination runs densely
// along its rows; where the source runs densely along the plane's columns instead, it is a transposition:
//
//     dst  a b c d | e f g h      rows of dst are columns of src: walk tiles of 16 x 16, so that the cache lines
//     src  a e . . | b f . .      that a tile touches on either side stay in the first-level cache
#include "core/ops/strided_copy.h"

#include <string.h>

enum { DST, SRC };
enum { TILE = 16 };

typedef struct plane {
    int64_t rows, cols;       ///< extents
    int64_t dst_row, dst_col; ///< strides, elements
    int64_t src_row, src_col;
} plane;

#define DEFINE_PLANE(name, T)                                                                                          \
    static void name##_tile(const plane *p, int64_t n_rows, int64_t n_cols, T *restrict dst, const T *restrict src) {  \
        for (int64_t r = 0; r < n_rows; r++)                                                                           \
            for (int64_t c = 0; c < n_cols; c++)                                                                       \
                dst[r * p->dst_row + c * p->dst_col] = src[r * p->src_row + c * p->src_col];                           \
    }                                                                                                                  \
    static void name(const plane *p, void *dst_base, const void *src_base) {                                           \
        T *const dst = dst_base;                                                                                       \
        const T *const src = src_base;                                                                                 \
        if (p->dst_col == 1 && p->src_col == 1) {                                                                      \
            for (int64_t r = 0; r < p->rows; r++)                                                                      \
                memcpy(dst + r * p->dst_row, src + r * p->src_row, (size_t)p->cols * sizeof(T));                       \
            return;                                                                                                    \
        }                                                                                                              \
        if (p->dst_col == 1 && p->src_col == 0) {                                                                      \
            for (int64_t r = 0; r < p->rows; r++) {                                                                    \
                const T v = src[r * p->src_row];                                                                       \
                for (int64_t c = 0; c < p->cols; c++) dst[r * p->dst_row + c] = v;                                     \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        if (p->src_row != 1) {                                                                                         \
            name##_tile(p, p->rows, p->cols, dst, src);                                                                \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t r = 0; r < p->rows; r += TILE)                                                                    \
            for (int64_t c = 0; c < p->cols; c += TILE)                                                                \
                name##_tile(p, p->rows - r < TILE ? p->rows - r : TILE, p->cols - c < TILE ? p->cols - c : TILE,       \
                            dst + r * p->dst_row + c * p->dst_col, src + r * p->src_row + c * p->src_col);             \
    }

DEFINE_PLANE(plane_1, uint8_t)
DEFINE_PLANE(plane_2, uint16_t)
DEFINE_PLANE(plane_4, uint32_t)
DEFINE_PLANE(plane_8, uint64_t)

typedef void (*plane_fn)(const plane *p, void *dst, const void *src);

static plane_fn plane_of(size_t elem_bytes) {
    return elem_bytes == 1 ? plane_1 : elem_bytes == 2 ? plane_2 : elem_bytes == 4 ? plane_4 : plane_8;
}

/// Loops may be exchanged freely: put loop `from` next to the innermost one.
static void move_next_to_inner(tide_loops *l, int32_t from) {
    for (int32_t d = from; d < l->rank - 2; d++) {
        const int64_t dim = l->dims[d];
        l->dims[d] = l->dims[d + 1];
        l->dims[d + 1] = dim;
        for (int32_t op = 0; op < l->n_operands; op++) {
            const int64_t stride = l->strides[op][d];
            l->strides[op][d] = l->strides[op][d + 1];
            l->strides[op][d + 1] = stride;
        }
    }
}

static void prefer_dense_source(tide_loops *l) {
    const int32_t inner = l->rank - 1;
    if (l->strides[SRC][inner] == 1 || l->strides[SRC][inner] == 0) return;
    for (int32_t d = 0; d < inner; d++)
        if (l->strides[SRC][d] == 1) {
            move_next_to_inner(l, d);
            return;
        }
}

void tide_strided_copy(size_t elem_bytes, int32_t rank, const int64_t *dims, void *dst, const int64_t *dst_strides,
                       const void *src, const int64_t *src_strides) {
    tide_loops l;
    const int64_t *const strides[] = {dst_strides, src_strides};
    if (!tide_loops_init(&l, rank, dims, 2, strides)) return;
    prefer_dense_source(&l);

    const int32_t inner = l.rank - 1;
    plane p = {.rows = 1, .cols = l.dims[inner], .dst_col = l.strides[DST][inner], .src_col = l.strides[SRC][inner]};
    if (l.rank > 1) {
        p.rows = l.dims[inner - 1];
        p.dst_row = l.strides[DST][inner - 1];
        p.src_row = l.strides[SRC][inner - 1];
    }
    const plane_fn copy = plane_of(elem_bytes);
    tide_loops_pos pos = {0};
    do copy(&p, (char *)dst + pos.at[DST] * (int64_t)elem_bytes, (const char *)src + pos.at[SRC] * (int64_t)elem_bytes);
    while (tide_loops_next(&l, 2, &pos));
}
