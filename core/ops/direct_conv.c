// SPDX-License-Identifier: MIT
//
// How a convolution is cut into tiles, and which instructions run it. See direct_conv.h.
#include "core/ops/direct_conv.h"

#include <stdatomic.h>

#include "core/base/assert.h"

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- cutting ----

enum {
    TILE_LEAST = 8 * 1024,    ///< bytes that a tile may always take …
    TILE_MOST = 272 * 1024,   ///< … and that it takes at most where it can be cut so far: it lies in the second cache
    TILE_REFUSED = 1 << 20,   ///< a tile of one output takes more: oneDNN does it
    LINE_LEAST = 64,          ///< outputs in a row that are not cut any further
    FEW_WEIGHTS = 32 * 1024,  ///< bytes: they lie in the first cache
    MANY_WEIGHTS = 512 * 1024 ///< bytes: they lie in no near cache
};

/// Bytes that a tile shall take. It counts to the peak of a plan, and all weights are read again for each tile: so it
/// is small beside what the operator reads and writes where there are few weights, and as large as that where there are
/// many.
static int64_t budget_bytes(const tide_direct_conv *c) {
    const double elements = (double)c->batch * (double)c->groups *
                            ((double)c->channels * (double)c->in[0] * (double)c->in[1] +
                             (double)c->filters * (double)c->out[0] * (double)c->out[1]);
    const double weights = (double)c->filters * (double)c->channels * (double)c->n_taps * sizeof(float);
    const double parts = weights <= FEW_WEIGHTS ? 32 : weights <= MANY_WEIGHTS ? 4 : 1;
    const double share = c->groups > 1 && c->channels == 1 ? 0 : elements * sizeof(float) / parts;
    return share < TILE_LEAST ? TILE_LEAST : share > TILE_MOST ? TILE_MOST : (int64_t)share;
}

/// Sizes of a tile of `rows` x `cols` outputs. @return its bytes
static int64_t size_tile(tide_direct_conv *c, int64_t rows, int64_t cols) {
    c->rows = rows;
    c->cols = cols;
    c->tile_rows = rows + (c->kernel[0] - 1) * c->dilation[0] / c->stride[0];
    c->pitch = cols + (c->kernel[1] - 1) * c->dilation[1] / c->stride[1];
    c->channel_step = c->phases[0] * c->phases[1] * c->tile_rows * c->pitch;
    return (c->channels * c->channel_step + TIDE_DIRECT_CONV_SLACK) * (int64_t)sizeof(float);
}

/// Whether even the tile of one output is too large; counted in double, for extents may be anything.
static bool is_too_wide(const tide_direct_conv *c) {
    double bytes = (double)c->channels * sizeof(float);
    for (int i = 0; i < 2; i++) {
        const double span = (double)((c->kernel[i] - 1) * c->dilation[i] / c->stride[i] + 1);
        bytes *= span * (double)c->phases[i];
    }
    return bytes > TILE_REFUSED;
}

/// The largest tile within the budget: whole rows where one fits, in parts that are about equal.
static void cut(tide_direct_conv *c) {
    const int64_t budget = budget_bytes(c);
    int64_t rows = 1, cols = c->out[1];
    while (cols > LINE_LEAST && size_tile(c, 1, cols) > budget) cols = ceil_div(cols, 2);
    while (rows < c->out[0] && cols == c->out[1] && size_tile(c, min_i64(2 * rows, c->out[0]), cols) <= budget)
        rows = min_i64(2 * rows, c->out[0]);
    for (int64_t step = rows / 2; step > 0 && cols == c->out[1]; step /= 2)
        if (rows + step <= c->out[0] && size_tile(c, rows + step, cols) <= budget) rows += step;
    rows = ceil_div(c->out[0], ceil_div(c->out[0], rows));
    c->scratch_bytes = (size_t)size_tile(c, rows, cols);
}

static void place_taps(tide_direct_conv *c) {
    int64_t *to = c->taps;
    for (int64_t kh = 0; kh < c->kernel[0]; kh++) {
        for (int64_t kw = 0; kw < c->kernel[1]; kw++) {
            const int64_t h = kh * c->dilation[0], w = kw * c->dilation[1];
            const int64_t phase = h % c->stride[0] * c->phases[1] + w % c->stride[1];
            *to++ = (phase * c->tile_rows + h / c->stride[0]) * c->pitch + w / c->stride[1];
        }
    }
}

/// A kernel of 1 x 1 that reads each input once: the input as it lies is the tile, as one long row.
static bool needs_no_tile(const tide_direct_conv *c) {
    enum { LEAST = 16 }; // a vector of the widest kind: the last block of a row starts so far before its end
    for (int i = 0; i < 2; i++)
        if (c->kernel[i] != 1 || c->stride[i] != 1 || c->out[i] != c->in[i]) return false;
    return c->in[0] * c->in[1] >= LEAST;
}

static void cut_in_place(tide_direct_conv *c) {
    enum { BYTES = 384 * 1024 }; // of what stays in the second cache
    const int64_t len = c->in[0] * c->in[1];
    const int64_t fit = BYTES / (int64_t)sizeof(float) / c->channels / TIDE_DIRECT_CONV_STEP * TIDE_DIRECT_CONV_STEP;
    c->in_place = true;
    c->in[0] = c->out[0] = c->rows = c->tile_rows = 1;
    c->in[1] = c->out[1] = c->pitch = c->channel_step = len;
    c->cols = min_i64(len, fit < TIDE_DIRECT_CONV_STEP ? TIDE_DIRECT_CONV_STEP : fit);
}

/// A single column is a single row.
static void turn(tide_direct_conv *c) {
    if (c->in[1] != 1 || c->kernel[1] != 1 || c->out[1] != 1 || c->pad[1] != 0) return;
    int64_t *const all[] = {c->in, c->out, c->kernel, c->stride, c->dilation, c->pad};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const int64_t kept = all[i][0];
        all[i][0] = all[i][1];
        all[i][1] = kept;
    }
}

tide_status tide_direct_conv_init(tide_direct_conv *c, const tide_window *w, const tide_node *node, bool *ours,
                                  tide_error *err) {
    *ours = false;
    if (w->in[0] != 1 || w->kernel[0] != 1 || w->out[0] != 1 || w->pad_begin[0] != 0) return TIDE_OK;
    for (int i = 0; i < 2; i++) {
        c->in[i] = w->in[i + 1];
        c->out[i] = w->out[i + 1];
        c->kernel[i] = w->kernel[i + 1];
        c->stride[i] = w->stride[i + 1];
        c->dilation[i] = w->dilation[i + 1];
        c->pad[i] = w->pad_begin[i + 1];
    }
    turn(c);
    for (int i = 0; i < 2; i++) c->phases[i] = min_i64(c->stride[i], (c->kernel[i] - 1) * c->dilation[i] + 1);
    if (c->channels < 1 || is_too_wide(c)) return TIDE_OK;
    c->n_taps = c->kernel[0] * c->kernel[1];
    TIDE_TRY(TIDE_NEW(&c->taps, (size_t)c->n_taps, err, "for the taps of '%s'", node->name));
    if (needs_no_tile(c))
        cut_in_place(c);
    else
        cut(c);
    place_taps(c);
    TIDE_ASSERT(c->rows >= 1 && c->rows <= c->tile_rows && c->cols >= 1 && c->in_place == (c->scratch_bytes == 0));
    TIDE_ASSERT(c->taps[0] == 0 && c->taps[c->n_taps - 1] < c->channel_step);
    *ours = true;
    return TIDE_OK;
}

void tide_direct_conv_deinit(tide_direct_conv *c) {
    tide_host_free(c->taps);
    c->taps = NULL;
}

// ---- instructions ----

tide_direct_conv_kind tide_direct_conv_best(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) return TIDE_DIRECT_CONV_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return TIDE_DIRECT_CONV_AVX2;
#endif
    return TIDE_DIRECT_CONV_PLAIN;
}

static atomic_int wanted = -1; // -1: the best

bool tide_direct_conv_use(tide_direct_conv_kind kind) {
    if (kind > tide_direct_conv_best()) return false;
    atomic_store(&wanted, (int)kind);
    return true;
}

void tide_direct_conv_run(const tide_direct_conv *c, const float *x, const float *w, const float *bias, float *y,
                          float *scratch) {
    TIDE_ASSERT(c->taps != NULL && (scratch != NULL || c->scratch_bytes == 0) && (uintptr_t)scratch % 64 == 0);
    const int said = atomic_load(&wanted);
    switch (said >= 0 ? (tide_direct_conv_kind)said : tide_direct_conv_best()) {
#ifdef __x86_64__
    case TIDE_DIRECT_CONV_AVX512:
        tide__direct_conv_avx512(c, x, w, bias, y, scratch);
        return;
    case TIDE_DIRECT_CONV_AVX2:
        tide__direct_conv_avx2(c, x, w, bias, y, scratch);
        return;
#endif
    default:
        tide__direct_conv_plain(c, x, w, bias, y, scratch);
    }
}
