// SPDX-License-Identifier: MIT
//
// MaxPool (float32, int8, uint8) and AveragePool (float32), 1-D to 3-D, in plain loops; at the end the
// global ones.
//
// One output row at a time: the input rows under it are first folded into one row (vertical, contiguous, vectorised),
// which the window then slides over:
//
//     input rows under the window   a a a a a a      fold     m m m m m m      slide     y y y
//                                   b b b b b b     ------>   (scratch)       ------>
//
// oneDNN's pooling of plain layouts transposes through a scratchpad three quarters the size of its input (2.4 MB for
// [1, 64, 112, 112], where conv models have their memory peak) and falls to its reference for dilations; this one needs
// a row, for twice the time of one thread of oneDNN. All that a row of the output is made of is in the scratch before
// that row is written, so that a pool whose windows move on may write over its own input from the front. Averages
// divide by what lies inside the padded input, as PyTorch and ONNX do since opset 19: not by the overhang that
// ceil_mode leaves at the end, which oneDNN would count.
#include <float.h>
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "core/ops/clones.h"
#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

typedef struct pool_state {
    tide_window window; ///< 3-D
    int64_t planes;     ///< batch * channels
    bool include_pad;
} pool_state;

static tide_status read_window(const tide_node *node, const tide_shape *x, tide_window *w, tide_error *err) {
    int64_t kernel[TIDE_WINDOW_MAX];
    size_t n;
    if (tide_node_attr_ints(node, "kernel_shape", &n) == NULL)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "attribute 'kernel_shape' is missing");
    TIDE_TRY(tide_op_ints_attr(node, "kernel_shape", (size_t)(x->rank - 2), 1, 1, kernel, err));
    return tide_op_window(node, x, kernel, w, err);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 3, 2 + TIDE_WINDOW_MAX, err));
    tide_window w;
    TIDE_TRY(read_window(x->node, &x->in[0].shape, &w, err));
    int64_t dims[TIDE_MAX_RANK] = {x->in[0].shape.dims[0], x->in[0].shape.dims[1]};
    for (int32_t i = 0; i < w.n; i++) dims[i + 2] = w.out[i];
    return tide_op_set_out(x, 0, x->in[0].dtype, x->in[0].shape.rank, dims, err);
}

static tide_status infer_max(const tide_infer *x, tide_error *err) {
    const tide_dtype t = x->in[0].dtype;
    if (t != TIDE_F32 && t != TIDE_I8 && t != TIDE_U8)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED,
                            "X is %s; this kernel takes float32, int8 and uint8", tide_dtype_name(t));
    TIDE_TRY(infer(x, err));
    return tide_op_has_out(x, 1) ? tide_op_set_out(x, 1, TIDE_I64, x->out[0].shape.rank, x->out[0].shape.dims, err)
                                 : TIDE_OK;
}

static tide_status infer_average(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    return infer(x, err);
}

/// Rows and planes of the output are behind what is still to be read: a window starts where at least as many rows have
/// been left behind as are written. The padding lets the first windows start late, by less than one stride.
static bool overwrites(const tide_infer *x, size_t in_i) {
    tide_window w;
    if (tide_op_has_out(x, 1)) return false; // places are looked up in the input, window by window
    if (in_i != 0 || read_window(x->node, &x->in[0].shape, &w, NULL) != TIDE_OK) return false;
    const tide_window v = tide_window_widen(&w);
    for (int32_t d = 0; d < 2; d++) {
        if (v.out[d] > 1 && v.pad_begin[d] >= v.stride[d]) return false;
    }
    return v.out[2] <= v.in[2] && v.out[1] * v.out[2] <= v.in[1] * v.in[2] &&
           tide_op_numel(&x->out[0].shape) <= tide_op_numel(&x->in[0].shape);
}

static double work(const tide_infer *x) {
    size_t n;
    const int64_t *kernel = tide_node_attr_ints(x->node, "kernel_shape", &n);
    double taps = 1;
    for (size_t i = 0; i < n; i++) { // the rest of a window lies in the padding
        const int64_t in = x->in[0].shape.dims[i + 2];
        taps *= (double)(kernel[i] < in ? kernel[i] : in);
    }
    return (double)tide_op_numel(&x->out[0].shape) * taps;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    tide_window w;
    TIDE_TRY(read_window(x->node, &x->in[0].shape, &w, err));
    pool_state *s;
    TIDE_TRY(TIDE_OP_NEW(&s, x->node, err));
    s->window = tide_window_widen(&w);
    s->planes = x->in[0].shape.dims[0] * x->in[0].shape.dims[1];
    s->include_pad = tide_node_attr_int(x->node, "count_include_pad", 0) != 0;
    k->state = s;
    k->workspace_bytes = (size_t)s->window.in[2] * tide_dtype_size(x->in[0].dtype);
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    tide_host_free(k->state);
    k->state = NULL;
}

// Taps of output `o` in dimension `dim` that lie inside the input: [begin, end) of the kernel; may be empty.
typedef struct tap_span {
    int64_t begin, end, first;
} tap_span; // first: input index of tap 0, may be negative

static tap_span taps_inside(const tide_window *w, int32_t dim, int64_t o) {
    const int64_t first = o * w->stride[dim] - w->pad_begin[dim], d = w->dilation[dim];
    int64_t begin = first >= 0 ? 0 : (-first + d - 1) / d;
    int64_t end = first >= w->in[dim] ? 0 : (w->in[dim] - 1 - first) / d + 1;
    if (end > w->kernel[dim]) end = w->kernel[dim];
    if (begin > end) begin = end;
    return (tap_span){begin, end, first};
}

// Taps that an average divides by in one dimension.
static int64_t taps_counted(const tide_window *w, int32_t dim, int64_t o, bool include_pad) {
    const tap_span t = taps_inside(w, dim, o);
    if (!include_pad) return t.end - t.begin;
    const int64_t room = w->in[dim] + w->pad_end[dim] - 1 - t.first;
    const int64_t n = room < 0 ? 0 : room / w->dilation[dim] + 1;
    return n < w->kernel[dim] ? n : w->kernel[dim];
}

// Outputs of the innermost dimension whose taps are all inside: [begin, end).
static void whole_windows(const tide_window *w, int64_t *begin, int64_t *end) {
    const int64_t s = w->stride[2], room = w->in[2] + w->pad_begin[2] - tide_window_span(w, 2);
    *begin = (w->pad_begin[2] + s - 1) / s;
    *end = room < 0 ? 0 : room / s + 1;
    if (*end > w->out[2]) *end = w->out[2];
    if (*begin > *end) *begin = *end;
}

#define DEFINE_MAX(name, type, lowest)                                                                                 \
    /* row = the largest of the input rows under output row (od, oh) */                                                \
    TIDE_CLONES static void fold_##name(const tide_window *w, const type *x, int64_t od, int64_t oh,                   \
                                        type *restrict row) {                                                          \
        const tap_span td = taps_inside(w, 0, od), th = taps_inside(w, 1, oh);                                         \
        for (int64_t i = 0; i < w->in[2]; i++) row[i] = (lowest);                                                      \
        for (int64_t kd = td.begin; kd < td.end; kd++) {                                                               \
            for (int64_t kh = th.begin; kh < th.end; kh++) {                                                           \
                const int64_t id = td.first + kd * w->dilation[0], ih = th.first + kh * w->dilation[1];                \
                const type *restrict from = x + (id * w->in[1] + ih) * w->in[2];                                       \
                for (int64_t i = 0; i < w->in[2]; i++) row[i] = from[i] > row[i] ? from[i] : row[i];                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static type edge_##name(const tide_window *w, const type *row, int64_t ow) {                                       \
        const tap_span t = taps_inside(w, 2, ow);                                                                      \
        type best = (lowest);                                                                                          \
        for (int64_t k = t.begin; k < t.end; k++) {                                                                    \
            const type v = row[t.first + k * w->dilation[2]];                                                          \
            best = v > best ? v : best;                                                                                \
        }                                                                                                              \
        return best;                                                                                                   \
    }                                                                                                                  \
    /* y[i] = the largest of p[i * s], p[i * s + d] … */                                                             \
    static inline void slide_whole_##name(const type *restrict p, type *restrict y, int64_t count, int64_t n,          \
                                          int64_t d, int64_t s) {                                                      \
        for (int64_t i = 0; i < count; i++, p += s) {                                                                  \
            type best = p[0];                                                                                          \
            for (int64_t k = 1; k < n; k++) best = p[k * d] > best ? p[k * d] : best;                                  \
            y[i] = best;                                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    TIDE_CLONES static void slide_##name(const tide_window *w, const type *restrict row, type *restrict y) {           \
        const int64_t n = w->kernel[2], d = w->dilation[2], s = w->stride[2];                                          \
        int64_t begin, end;                                                                                            \
        whole_windows(w, &begin, &end);                                                                                \
        for (int64_t ow = 0; ow < begin; ow++) y[ow] = edge_##name(w, row, ow);                                        \
        const type *const p = row + (begin * s - w->pad_begin[2]);                                                     \
        if (n == 2 && s == 2 && d == 1)                                                                                \
            slide_whole_##name(p, y + begin, end - begin, 2, 1, 2);                                                    \
        else if (n == 3 && s == 2 && d == 1)                                                                           \
            slide_whole_##name(p, y + begin, end - begin, 3, 1, 2);                                                    \
        else if (n == 3 && s == 1 && d == 1)                                                                           \
            slide_whole_##name(p, y + begin, end - begin, 3, 1, 1);                                                    \
        else                                                                                                           \
            slide_whole_##name(p, y + begin, end - begin, n, d, s);                                                    \
        for (int64_t ow = end; ow < w->out[2]; ow++) y[ow] = edge_##name(w, row, ow);                                  \
    }                                                                                                                  \
    static void max_##name(const pool_state *s, const type *x, type *y, type *row) {                                   \
        const tide_window *w = &s->window;                                                                             \
        for (int64_t p = 0; p < s->planes; p++, x += w->in[0] * w->in[1] * w->in[2]) {                                 \
            for (int64_t od = 0; od < w->out[0]; od++) {                                                               \
                for (int64_t oh = 0; oh < w->out[1]; oh++, y += w->out[2]) {                                           \
                    fold_##name(w, x, od, oh, row);                                                                    \
                    slide_##name(w, row, y);                                                                           \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
DEFINE_MAX(f32, float, -FLT_MAX)
DEFINE_MAX(i8, int8_t, INT8_MIN)
DEFINE_MAX(u8, uint8_t, 0)

/// Where the first of the largest elements under output (o[0], o[1], o[2]) of a plane lies in it; -1: no element does.
/// Rows one after the other, or columns where `by_column`.
static int64_t place_of_max(const tide_window *w, tide_dtype dtype, const void *x, const int64_t *o, bool by_column) {
    const tap_span td = taps_inside(w, 0, o[0]), th = taps_inside(w, 1, o[1]), tw = taps_inside(w, 2, o[2]);
    double best = 0;
    int64_t place = -1;
    for (int64_t kd = td.begin; kd < td.end; kd++)
        for (int64_t kh = th.begin; kh < th.end; kh++)
            for (int64_t kw = tw.begin; kw < tw.end; kw++) {
                const int64_t d = td.first + kd * w->dilation[0], h = th.first + kh * w->dilation[1];
                const int64_t c = tw.first + kw * w->dilation[2];
                const double v = tide_data_load_f64(dtype, x, (d * w->in[1] + h) * w->in[2] + c);
                if (place >= 0 && !(v > best)) continue;
                best = v;
                place = by_column ? (c * w->in[1] + h) * w->in[0] + d : (d * w->in[1] + h) * w->in[2] + c;
            }
    return place;
}

static void run_indices(const tide_kernel *k, const tide_kernel_args *args) {
    const pool_state *s = k->state;
    const tide_window *w = &s->window;
    const tide_dtype dtype = args->in[0].dtype;
    const bool by_column = tide_node_attr_int(k->node, "storage_order", 0) != 0;
    const int64_t plane = w->in[0] * w->in[1] * w->in[2];
    int64_t *to = args->out[1].data, o[3];
    for (int64_t p = 0; p < s->planes; p++) {
        const void *x = tide_data_const_at(args->in[0].data, p * plane, tide_dtype_size(dtype));
        for (o[0] = 0; o[0] < w->out[0]; o[0]++)
            for (o[1] = 0; o[1] < w->out[1]; o[1]++)
                for (o[2] = 0; o[2] < w->out[2]; o[2]++) {
                    const int64_t place = place_of_max(w, dtype, x, o, by_column);
                    *to++ = place >= 0 ? p * plane + place : -1;
                }
    }
}

static tide_status run_max(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const pool_state *s = k->state;
    if (s == NULL) return TIDE_OK;
    const void *x = args->in[0].data;
    void *y = args->out[0].data;
    if (args->n_out > 1 && tide_operand_present(&args->out[1])) run_indices(k, args);
    if (args->in[0].dtype == TIDE_F32)
        max_f32(s, x, y, args->workspace);
    else if (args->in[0].dtype == TIDE_I8)
        max_i8(s, x, y, args->workspace);
    else
        max_u8(s, x, y, args->workspace);
    return TIDE_OK;
}

TIDE_CLONES static void fold_sum(const tide_window *w, const float *x, int64_t od, int64_t oh, float *restrict row) {
    const tap_span td = taps_inside(w, 0, od), th = taps_inside(w, 1, oh);
    for (int64_t i = 0; i < w->in[2]; i++) row[i] = 0.0f;
    for (int64_t kd = td.begin; kd < td.end; kd++) {
        for (int64_t kh = th.begin; kh < th.end; kh++) {
            const int64_t id = td.first + kd * w->dilation[0], ih = th.first + kh * w->dilation[1];
            const float *restrict from = x + (id * w->in[1] + ih) * w->in[2];
            for (int64_t i = 0; i < w->in[2]; i++) row[i] += from[i];
        }
    }
}

static float edge_average(const pool_state *s, const float *row, double above, int64_t ow) {
    const tide_window *w = &s->window;
    const tap_span t = taps_inside(w, 2, ow);
    float sum = 0.0f;
    for (int64_t k = t.begin; k < t.end; k++) sum += row[t.first + k * w->dilation[2]];
    const double n = above * (double)taps_counted(w, 2, ow, s->include_pad);
    return n > 0 ? sum / (float)n : 0.0f; // 0: a window wholly inside the padding
}

// `above`: rows that the sum in `row` counts for; a whole number, in double since three huge extents do not multiply in
// 63 bits.
static void slide_average(const pool_state *s, const float *restrict row, double above, float *restrict y) {
    const tide_window *w = &s->window;
    const float count = (float)(above * (double)w->kernel[2]);
    int64_t begin, end;
    whole_windows(w, &begin, &end);
    if (above == 0) begin = end = 0;
    for (int64_t ow = 0; ow < begin; ow++) y[ow] = edge_average(s, row, above, ow);
    for (int64_t ow = begin; ow < end; ow++) {
        const float *p = row + (ow * w->stride[2] - w->pad_begin[2]);
        float sum = p[0];
        for (int64_t k = 1; k < w->kernel[2]; k++) sum += p[k * w->dilation[2]];
        y[ow] = sum / count;
    }
    for (int64_t ow = end; ow < w->out[2]; ow++) y[ow] = edge_average(s, row, above, ow);
}

static tide_status run_average(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const pool_state *s = k->state;
    if (s == NULL) return TIDE_OK;
    const tide_window *w = &s->window;
    const float *x = args->in[0].data;
    float *y = args->out[0].data;
    for (int64_t p = 0; p < s->planes; p++, x += w->in[0] * w->in[1] * w->in[2]) {
        for (int64_t od = 0; od < w->out[0]; od++) {
            for (int64_t oh = 0; oh < w->out[1]; oh++, y += w->out[2]) {
                fold_sum(w, x, od, oh, args->workspace);
                const double above =
                    (double)taps_counted(w, 0, od, s->include_pad) * (double)taps_counted(w, 1, oh, s->include_pad);
                slide_average(s, args->workspace, above, y);
            }
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_max_pool = {
    .domain = "",
    .name = "MaxPool",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "auto_pad"), TIDE_ATTR(INTS, "kernel_shape"), TIDE_ATTR(INTS, "pads"),
                        TIDE_ATTR(INTS, "strides"), TIDE_ATTR(INT, "storage_order", .since = 8),
                        TIDE_ATTR(INT, "ceil_mode", .since = 10), TIDE_ATTR(INTS, "dilations", .since = 10)),
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 2,
    .infer = infer_max,
    .overwrites = overwrites,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .run = run_max,
};
const tide_op_def tide_op_average_pool = {
    .domain = "",
    .name = "AveragePool",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "auto_pad"), TIDE_ATTR(INTS, "kernel_shape"), TIDE_ATTR(INTS, "pads"),
                        TIDE_ATTR(INTS, "strides"), TIDE_ATTR(INT, "count_include_pad", .since = 7),
                        TIDE_ATTR(INT, "ceil_mode", .since = 10), TIDE_ATTR(INTS, "dilations", .since = 19)),
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_average,
    .overwrites = overwrites,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .run = run_average,
};

// ---- GlobalAveragePool and GlobalMaxPool, float32: one number per channel ----

static tide_status global_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *s = &x->in[0].shape;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 2, TIDE_MAX_RANK, err));
    if (tide_op_count(s, 2, s->rank) == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "X has no elements per channel to pool over");
    int64_t dims[TIDE_MAX_RANK] = {s->dims[0], s->dims[1]};
    for (int32_t i = 2; i < s->rank; i++) dims[i] = 1;
    return tide_op_set_out(x, 0, TIDE_F32, s->rank, dims, err);
}

// Eight running sums, added up in a fixed order: fast without letting the compiler reorder.
static float mean(const float *x, int64_t n) {
    double part[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) part[j] += (double)x[i + j];
    double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    for (; i < n; i++) sum += (double)x[i];
    return (float)(sum / (double)n);
}

static float largest(const float *x, int64_t n) {
    float best = x[0];
    for (int64_t i = 1; i < n; i++) best = x[i] > best ? x[i] : best;
    return best;
}

static tide_status global_run(const tide_kernel_args *args, float (*pool)(const float *, int64_t)) {
    const tide_shape *s = &args->in[0].shape;
    const int64_t planes = s->dims[0] * s->dims[1], len = tide_op_count(s, 2, s->rank);
    const float *x = args->in[0].data;
    float *y = args->out[0].data;
    for (int64_t p = 0; p < planes; p++) y[p] = pool(x + p * len, len);
    return TIDE_OK;
}

static tide_status global_run_average(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k, (void)err;
    return global_run(args, mean);
}

static tide_status global_run_max(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)k, (void)err;
    return global_run(args, largest);
}

const tide_op_def tide_op_global_average_pool = {
    .domain = "",
    .name = "GlobalAveragePool",
    .since = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = global_infer,
    .run = global_run_average,
};
const tide_op_def tide_op_global_max_pool = {
    .domain = "",
    .name = "GlobalMaxPool",
    .since = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = global_infer,
    .run = global_run_max,
};
