// SPDX-License-Identifier: MIT
//
// The run of a direct convolution, for one kind of instructions. A file defines, then includes this:
//
//     KIND     attribute of its functions: which instructions the compiler may use
//     RUN      name of the function
//     LANES    numbers in a vector
//     WIDE     filters of the largest block: 4 or 8
//     BLOCKS   XX(filters, vectors) of each block that there is; of each number of filters up to WIDE (1, 2, 4, 8) the
//              largest number of vectors first, down to 1
//
// It belongs to direct_conv.c and is included by nothing else.
#include <string.h>

#include "core/base/assert.h"
#include "core/ops/act.h"
#include "core/ops/direct_conv.h"

typedef float vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/// What a block reads and where its results go.
typedef struct block_args {
    const float *x;    ///< at the first output of the block, channel 0
    const float *w;    ///< at the first filter
    const float *bias; ///< at the first filter; NULL: none
    float *y;          ///< row of the first filter
    int64_t y_step;    ///< to the row of the next one
} block_args;

/// One block: `filters` rows of `vectors` vectors, summed up in registers. Both are constants where it is inlined.
KIND static inline __attribute__((always_inline)) void block(const tide_direct_conv *c, const block_args *a,
                                                             const int filters, const int vectors) {
    vector sum[8][8];
    const int64_t n_taps = c->n_taps, w_step = c->channels * n_taps;
    const int64_t *taps = c->taps;
#pragma GCC unroll 8
    for (int m = 0; m < filters; m++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sum[m][v] = (vector){0};
    const float *w = a->w, *x = a->x;
    for (int64_t i = 0; i < c->channels; i++, x += c->channel_step) {
        for (int64_t t = 0; t < n_taps; t++, w++) {
            const float *at = x + taps[t];
            vector in[8];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) in[v] = *(const vector *)(at + v * LANES);
#pragma GCC unroll 8
            for (int m = 0; m < filters; m++) {
                const vector f = w[m * w_step] - (vector){0};
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++) sum[m][v] = ADD_PRODUCT(sum[m][v], in[v], f);
            }
        }
    }
    // The bias comes last, as it does behind a product of matrices: so quantised models round as elsewhere.
#pragma GCC unroll 8
    for (int m = 0; m < filters; m++) {
        const float bias = a->bias != NULL ? a->bias[m] : 0.0f;
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) *(vector *)(a->y + m * a->y_step + v * LANES) = sum[m][v] + bias;
    }
}

#define XX(filters, vectors)                                                                                           \
    KIND static void block_##filters##_##vectors(const tide_direct_conv *c, const block_args *a) {                     \
        block(c, a, filters, vectors);                                                                                 \
    }
BLOCKS
#undef XX

typedef struct block_row {
    int filters, vectors;
    void (*run)(const tide_direct_conv *c, const block_args *a);
} block_row;
#define XX(filters, vectors) {filters, vectors, block_##filters##_##vectors},
static const block_row blocks[] = {BLOCKS};
#undef XX

/// The block of so many filters with the most vectors, but no more than `n`.
static const block_row *pick(int filters, int64_t n) {
    const block_row *row = blocks;
    if (filters == 8 && n == 4) n = 2; // 2 + 2 and not 3 + 1, which waits for its loads
    while (row->filters != filters || row->vectors > n) row++;
    return row;
}

// ---- the tile ----

/// to[i] = from[first + i * step] for n elements; 0 where that is outside of [0, len).
KIND static inline void fill_row(float *restrict to, const float *restrict from, int64_t n, int64_t first, int64_t step,
                                 int64_t len) {
    int64_t begin = first >= 0 ? 0 : (-first + step - 1) / step;
    int64_t end = first >= len ? 0 : (len - 1 - first) / step + 1;
    if (begin > n) begin = n;
    if (end > n) end = n;
    if (end < begin) end = begin;
    for (int64_t i = 0; i < begin; i++) to[i] = 0.0f;
    if (step == 1)
        for (int64_t i = begin; i < end; i++) to[i] = from[first + i];
    else if (step == 2)
        for (int64_t i = begin; i < end; i++) to[i] = from[first + 2 * i];
    else
        for (int64_t i = begin; i < end; i++) to[i] = from[first + i * step];
    for (int64_t i = end; i < n; i++) to[i] = 0.0f;
}

/// The tile of the outputs from (row, col) on: [channel][phase of rows][phase of columns][row][column].
KIND static void fill_tile(const tide_direct_conv *c, const float *x, int64_t row, int64_t col, float *tile) {
    const int64_t plane = c->in[0] * c->in[1];
    for (int64_t i = 0; i < c->channels; i++, x += plane) {
        for (int64_t ph = 0; ph < c->phases[0]; ph++) {
            for (int64_t pw = 0; pw < c->phases[1]; pw++) {
                const int64_t first = col * c->stride[1] + pw - c->pad[1];
                for (int64_t r = 0; r < c->tile_rows; r++, tile += c->pitch) {
                    const int64_t h = (row + r) * c->stride[0] + ph - c->pad[0];
                    if (h < 0 || h >= c->in[0])
                        memset(tile, 0, (size_t)c->pitch * sizeof *tile);
                    else
                        fill_row(tile, x + h * c->in[1], c->pitch, first, c->stride[1], c->in[1]);
                }
            }
        }
    }
    memset(tile, 0, TIDE_DIRECT_CONV_SLACK * sizeof *tile);
}

// ---- filters over a tile ----

/// A part of the output: of so many rows and columns, from `y` (row and column of filter 0) on.
typedef struct part {
    const float *x; ///< tile, or the input itself
    float *y;
    int64_t rows, cols;
} part;

/// Numbers of a block that lie in one row of the output.
typedef struct run_of {
    int64_t from, to, n;
} run_of;

/// The outputs among `n` positions from `at` on, row by row. @return how many runs
static int64_t find_runs(const tide_direct_conv *c, const part *p, int64_t at, int64_t n, run_of *runs) {
    int64_t n_runs = 0, row = at / c->pitch, col = at % c->pitch;
    for (int64_t i = 0; i < n && row < p->rows; row++, col = 0) {
        const int64_t here = c->pitch - col < n - i ? c->pitch - col : n - i;
        const int64_t some = p->cols - col < here ? p->cols - col : here;
        if (some > 0) runs[n_runs++] = (run_of){i, row * c->out[1] + col, some};
        i += here;
    }
    return n_runs;
}

/// `filters` (1, 2, 4 or 8) filters over a part.
KIND static void filters_over(const tide_direct_conv *c, const part *p, const float *w, const float *bias, float *y,
                              int filters) {
    enum { MOST = TIDE_DIRECT_CONV_SLACK };
    float kept[8 * MOST] __attribute__((aligned(64)));
    run_of runs[MOST];
    const int64_t n = (p->rows - 1) * c->pitch + p->cols, plane = c->out[0] * c->out[1];
    const bool is_dense = c->pitch == c->out[1] && p->cols == c->pitch; // rows follow each other as in the output
    for (int64_t at = 0; at < n;) {
        const int64_t left = n - at, whole = c->in_place ? left / LANES : (left + LANES - 1) / LANES;
        const block_row *row = pick(filters, whole < 1 ? 1 : whole);
        const int64_t size = (int64_t)row->vectors * LANES;
        const int64_t from = c->in_place && left < size ? n - size : at; // the last one goes back into what is done
        const bool is_direct = (is_dense && left >= size) || c->in_place;
        const block_args a = {p->x + from, w, bias, is_direct ? y + from : kept, is_direct ? plane : MOST};
        TIDE_ASSERT(size <= MOST && from >= 0);
        row->run(c, &a);
        if (!is_direct) {
            const int64_t n_runs = find_runs(c, p, at, size, runs);
            for (int m = 0; m < filters; m++)
                for (int64_t i = 0; i < n_runs; i++)
                    for (int64_t k = 0; k < runs[i].n; k++)
                        y[m * plane + runs[i].to + k] = kept[m * MOST + runs[i].from + k];
        }
        at = from + size;
    }
}

/// All filters of a group over a part, WIDE at a time, and then the activation while the results are near.
KIND static void group_over(const tide_direct_conv *c, const part *p, const float *w, const float *bias) {
    const int64_t plane = c->out[0] * c->out[1], w_step = c->channels * c->n_taps;
    for (int64_t m = 0; m < c->filters;) {
        int some = WIDE;
        while (some > c->filters - m) some /= 2;
        filters_over(c, p, w + m * w_step, bias != NULL ? bias + m : NULL, p->y + m * plane, some);
        for (int i = 0; i < some && c->act.kind != TIDE_ACT_NONE; i++) {
            float *y = p->y + (m + i) * plane;
            if (p->cols == c->out[1])
                tide_act_apply(&c->act, y, p->rows * p->cols);
            else
                for (int64_t r = 0; r < p->rows; r++) tide_act_apply(&c->act, y + r * c->out[1], p->cols);
        }
        m += some;
    }
}

#ifdef MASK
#include "core/ops/depthwise_body.h"
#endif

KIND void RUN(const tide_direct_conv *c, const float *x, const float *w, const float *bias, float *y, float *scratch) {
    const int64_t in = c->channels * c->in[0] * c->in[1], plane = c->out[0] * c->out[1];
#ifdef MASK
    if (is_depthwise(c)) {
        run_depthwise(c, x, w, bias, y);
        return;
    }
#endif
    for (int64_t g = 0; g < c->batch * c->groups; g++, x += in, y += c->filters * plane) {
        const int64_t filter = g % c->groups * c->filters;
        const float *const w_g = w + filter * c->channels * c->n_taps;
        const float *const bias_g = bias != NULL ? bias + filter : NULL;
        for (int64_t row = 0; row < c->out[0]; row += c->rows) {
            for (int64_t col = 0; col < c->out[1]; col += c->cols) {
                part p = {scratch, y + row * c->out[1] + col, c->rows, c->cols};
                if (p.rows > c->out[0] - row) p.rows = c->out[0] - row;
                if (p.cols > c->out[1] - col) p.cols = c->out[1] - col;
                if (c->in_place && c->out[1] - col - p.cols < TIDE_DIRECT_CONV_STEP) p.cols = c->out[1] - col;
                if (c->in_place)
                    p.x = x + col;
                else
                    fill_tile(c, x, row, col, scratch);
                group_over(c, &p, w_g, bias_g);
                if (p.cols > c->cols) break; // the rest went with this part
            }
        }
    }
}
