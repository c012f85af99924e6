// SPDX-License-Identifier: MIT
//
// Convolution of one channel by one filter of few taps, row by row and without a tile: what lies in the padding is left
// out of a vector load by a mask. Part of direct_conv_body.h, for kinds of instructions that have such loads; besides
// what that wants a file defines
//
//     MASK              type of a mask
//     MASK_OF(lo, hi)   lanes lo … hi - 1, 0 <= lo, hi <= LANES; none where hi <= lo
//     LOAD(p, mask)     a vector: p[lane] of the lanes in the mask, 0 in all others, whose memory is not touched
//     STORE(p, mask, v)
//     EVENS(a, b)       lanes 0, 2, 4 … of a, then those of b
//
// The sum has the order of block(): the same bits.

enum { DEPTHWISE_TAPS = 8 }; ///< in a row, at most

/// Where the taps of LANES outputs next to each other read: masks of the first and, for stride 2, the second vector.
typedef struct tap_masks {
    MASK first[DEPTHWISE_TAPS], second[DEPTHWISE_TAPS];
    int64_t at[DEPTHWISE_TAPS]; ///< column of lane 0
} tap_masks;

KIND static inline __attribute__((always_inline)) MASK mask_inside(int64_t at, int64_t len) {
    const int64_t lo = at < 0 ? (-at > LANES ? LANES : -at) : 0;
    const int64_t hi = len - at > LANES ? LANES : (len - at < 0 ? 0 : len - at);
    return MASK_OF(lo, hi);
}

KIND static inline __attribute__((always_inline)) vector load_tap(const tap_masks *t, const float *row, int k,
                                                                  const int stride) {
    const float *p = row + t->at[k];
    const vector a = LOAD(p, t->first[k]);
    if (stride == 1) return a;
    const vector b = LOAD(p + LANES, t->second[k]);
    return EVENS(a, b);
}

/// Where the taps of the outputs from column `col` on read.
KIND static inline __attribute__((always_inline)) void find_taps(const tide_direct_conv *c, int64_t col, int n_w,
                                                                 const int stride, tap_masks *t) {
#pragma GCC unroll 5
    for (int k = 0; k < n_w; k++) {
        t->at[k] = col * stride + k * c->dilation[1] - c->pad[1];
        t->first[k] = mask_inside(t->at[k], c->in[1]);
        if (stride > 1) t->second[k] = mask_inside(t->at[k] + LANES, c->in[1]);
    }
}

/// Columns `col` … of the rows [from, to), one at a time, as c says. Rows of taps in the padding are left out.
KIND static inline __attribute__((always_inline)) void strip_of_any(const tide_direct_conv *c, const float *x,
                                                                    const float *w, float bias, float *y, int64_t col,
                                                                    int64_t from, int64_t to, const int stride) {
    const MASK out = mask_inside(0, c->out[1] - col);
    const int n_w = (int)c->kernel[1];
    tap_masks t;
    find_taps(c, col, n_w, stride, &t);
    for (int64_t r = from; r < to; r++) {
        vector sum = {0};
        for (int64_t h = 0; h < c->kernel[0]; h++) {
            const int64_t at = r * stride + h * c->dilation[0] - c->pad[0];
            if (at < 0 || at >= c->in[0]) continue;
            for (int k = 0; k < n_w; k++)
                sum = ADD_PRODUCT(sum, load_tap(&t, x + at * c->in[1], k, stride), w[h * n_w + k] - (vector){0});
        }
        STORE(y + r * c->out[1] + col, out, sum + bias);
    }
}

/// The same for a kernel of taps x taps without gaps between rows: `rows` rows of outputs share what they read. All of
/// `taps`, `stride` and `rows` are constants where it is inlined.
KIND static inline __attribute__((always_inline)) void strip_of(const tide_direct_conv *c, const float *x,
                                                                const float *w, float bias, float *y, int64_t col,
                                                                int64_t from, int64_t to, const int taps,
                                                                const int stride, const int rows) {
    const MASK out = mask_inside(0, c->out[1] - col);
    tap_masks t;
    find_taps(c, col, taps, stride, &t);
    vector f[25];
#pragma GCC unroll 25
    for (int i = 0; i < taps * taps; i++) f[i] = w[i] - (vector){0};
    for (int64_t r = from; r + rows <= to; r += rows) {
        vector sum[4];
#pragma GCC unroll 4
        for (int m = 0; m < rows; m++) sum[m] = (vector){0};
#pragma GCC unroll 16
        for (int h = 0; h < taps + (rows - 1) * stride; h++) {
            const int64_t at = r * stride + h - c->pad[0];
            if (at < 0 || at >= c->in[0]) continue;
#pragma GCC unroll 5
            for (int k = 0; k < taps; k++) {
                const vector in = load_tap(&t, x + at * c->in[1], k, stride);
#pragma GCC unroll 4
                for (int m = 0; m < rows; m++)
                    if (h >= m * stride && h - m * stride < taps)
                        sum[m] = ADD_PRODUCT(sum[m], in, f[(h - m * stride) * taps + k]);
            }
        }
#pragma GCC unroll 4
        for (int m = 0; m < rows; m++) STORE(y + (r + m) * c->out[1] + col, out, sum[m] + bias);
    }
}

enum { DEPTHWISE_ROWS = 8 }; ///< gone through column by column: their inputs stay in the first cache

#define DEFINE_DEPTHWISE(taps, stride, rows)                                                                           \
    KIND static void depthwise_##taps##_##stride(const tide_direct_conv *c, const float *x, const float *w,            \
                                                 float bias, float *y) {                                               \
        for (int64_t r = 0; r < c->out[0]; r += DEPTHWISE_ROWS) {                                                      \
            const int64_t to = r + DEPTHWISE_ROWS < c->out[0] ? r + DEPTHWISE_ROWS : c->out[0];                        \
            const int64_t rest = (to - r) % (rows);                                                                    \
            for (int64_t col = 0; col < c->out[1]; col += LANES) {                                                     \
                strip_of(c, x, w, bias, y, col, r, to - rest, taps, stride, rows);                                     \
                if (rest > 0) strip_of(c, x, w, bias, y, col, to - rest, to, taps, stride, 1);                         \
            }                                                                                                          \
        }                                                                                                              \
    }
DEFINE_DEPTHWISE(3, 1, 4)
DEFINE_DEPTHWISE(3, 2, 4)
DEFINE_DEPTHWISE(5, 1, 2)
DEFINE_DEPTHWISE(5, 2, 2)

#define DEFINE_ANY(stride)                                                                                             \
    KIND static void depthwise_any_##stride(const tide_direct_conv *c, const float *x, const float *w, float bias,     \
                                            float *y) {                                                                \
        for (int64_t r = 0; r < c->out[0]; r += DEPTHWISE_ROWS) {                                                      \
            const int64_t to = r + DEPTHWISE_ROWS < c->out[0] ? r + DEPTHWISE_ROWS : c->out[0];                        \
            for (int64_t col = 0; col < c->out[1]; col += LANES) strip_of_any(c, x, w, bias, y, col, r, to, stride);   \
        }                                                                                                              \
    }
DEFINE_ANY(1)
DEFINE_ANY(2)

/// Whether planes are gone through here: one filter of few taps for each channel, both strides 1 or both 2.
static bool is_depthwise(const tide_direct_conv *c) {
    return c->channels == 1 && c->filters == 1 && !c->in_place && c->stride[0] == c->stride[1] && c->stride[0] <= 2 &&
           c->kernel[1] <= DEPTHWISE_TAPS && c->out[1] > 1;
}

KIND static void run_depthwise(const tide_direct_conv *c, const float *x, const float *w, const float *bias, float *y) {
    const int64_t in = c->in[0] * c->in[1], out = c->out[0] * c->out[1];
    const bool two = c->stride[0] == 2, square = c->kernel[0] == c->kernel[1] && c->dilation[0] == 1;
    void (*plane)(const tide_direct_conv *, const float *, const float *, float, float *) =
        two ? depthwise_any_2 : depthwise_any_1;
    if (square && c->kernel[0] == 3) plane = two ? depthwise_3_2 : depthwise_3_1;
    if (square && c->kernel[0] == 5) plane = two ? depthwise_5_2 : depthwise_5_1;
    for (int64_t i = 0; i < c->batch * c->groups; i++, x += in, y += out) {
        const int64_t g = i % c->groups;
        plane(c, x, w + g * c->n_taps, bias != NULL ? bias[g] : 0.0f, y);
        tide_act_apply(&c->act, y, out);
    }
}
