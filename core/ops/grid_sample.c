// SPDX-License-Identifier: MIT
//
// GridSample: X [N, C, spatial ...] read at the places that grid [N, out ..., n] names, one for each of its n spatial
// axes, the last axis first, from -1 to 1. What lies under a place, elements and weights, is the same for all channels:
// it is worked out once and summed over each of them.
//
// A place is worked out in the type of the grid, as ONNX Runtime does: where it falls in the middle between two
// elements `nearest` would decide otherwise.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

typedef enum sample_mode { LINEAR, NEAREST, CUBIC } sample_mode;
typedef enum sample_padding { ZEROS, BORDER, REFLECTION } sample_padding;

enum { MAX_TAPS = 64 }; ///< 4 in each of 3 axes

typedef struct sampler {
    sample_mode mode;
    sample_padding padding;
    bool align_corners;
    int32_t n; ///< spatial axes
    int64_t in[TIDE_WINDOW_MAX];
} sampler;

static tide_status choose(const tide_node *node, const char *attr, const char *const *names, int n, int *out,
                          tide_error *err) {
    const char *name = tide_node_attr_string(node, attr, names[0]);
    for (int i = 0; i < n; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = i;
        return TIDE_OK;
    }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s '%s' is not known", attr, name);
}

static tide_status sampler_of(const tide_node *node, const tide_shape *x, sampler *s, tide_error *err) {
    static const char *const old_modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    int mode = 0, padding = 0;
    TIDE_TRY(choose(node, "mode", node->opset < 20 ? old_modes : modes, 3, &mode, err));
    TIDE_TRY(choose(node, "padding_mode", paddings, 3, &padding, err));
    *s = (sampler){.mode = (sample_mode)mode,
                   .padding = (sample_padding)padding,
                   .align_corners = tide_node_attr_int(node, "align_corners", 0) != 0,
                   .n = x->rank - 2};
    for (int32_t i = 0; i < s->n; i++) s->in[i] = x->dims[i + 2];
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *in = &x->in[0].shape, *grid = &x->in[1].shape;
    sampler s;
    if (!tide_dtype_is_float(x->in[0].dtype)) return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    if (!tide_dtype_is_float(x->in[1].dtype)) return tide_data_no_dtype(x->node, x->in[1].dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", x->node->opset < 20 ? 4 : 3,
                                  x->node->opset < 20 ? 4 : 2 + TIDE_WINDOW_MAX, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[1], "grid", in->rank, in->rank, err));
    TIDE_TRY(sampler_of(x->node, in, &s, err));
    int64_t dims[TIDE_MAX_RANK] = {in->dims[0], in->dims[1]};
    tide_shape want = {.rank = in->rank, .dims = {in->dims[0]}};
    for (int32_t i = 0; i < s.n; i++) dims[i + 2] = want.dims[i + 1] = grid->dims[i + 1];
    want.dims[in->rank - 1] = s.n;
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[1], "grid", &want, err));
    TIDE_TRY(tide_op_set_out(x, 0, x->in[0].dtype, in->rank, dims, err));
    if (tide_op_numel(in) == 0 && tide_op_numel(&x->out[0].shape) != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "X has no element to read");
    return TIDE_OK;
}

static double work(const tide_infer *x) {
    const int64_t per_axis = strstr(tide_node_attr_string(x->node, "mode", ""), "cubic") != NULL ? 4 : 2;
    return (double)tide_op_numel(&x->out[0].shape) * pow((double)per_axis, (double)(x->in[0].shape.rank - 2));
}

// ---- places ----

/// -1 … 1 to elements; what is no number, or far from everything, is a place outside.
static double denormalise(const sampler *s, tide_dtype grid, double at, int64_t len) {
    double place;
    if (grid == TIDE_F64) {
        place = s->align_corners ? (at + 1) / 2 * (double)(len - 1) : ((at + 1) * (double)len - 1) / 2;
    } else {
        const float g = (float)at, n = (float)len;
        place = (double)(s->align_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2);
    }
    return place > -0x1p40 && place < 0x1p40 ? place : place > 0 ? 0x1p40 : -0x1p40;
}

/// Turned back at `lo` and `hi` as often as it takes.
static double reflect(double at, double lo, double hi) {
    const double range = hi - lo;
    if (range <= 0) return lo;
    if (at >= lo && at <= hi) return at;
    const double past = at < lo ? lo - at : at - hi;
    const double turns = floor(past / range), rest = past - turns * range;
    const bool back = (fmod(turns, 2) == 0) == (at < lo);
    return back ? lo + rest : hi - rest;
}

static double bound(const sampler *s, double at, int64_t len) {
    const double lo = s->align_corners ? 0 : -0.5, hi = (double)len - (s->align_corners ? 1 : 0.5);
    if ((at >= lo && at <= hi) || s->padding == ZEROS) return at;
    return s->padding == REFLECTION ? reflect(at, lo, hi) : at < 0 ? 0 : (double)(len - 1);
}

/// The element that tap `i` of an axis reads; -1: none.
static int64_t element(const sampler *s, int64_t i, int64_t len) {
    if (i >= 0 && i < len) return i;
    if (s->padding == ZEROS) return -1;
    const int64_t at = s->padding == BORDER ? i : (int64_t)bound(s, (double)i, len);
    return at < 0 ? 0 : at >= len ? len - 1 : at;
}

/// Elements and weights of one axis.
typedef struct axis_taps {
    int n;
    int64_t at[4];
    double weight[4];
} axis_taps;

/// Keys, "Cubic convolution interpolation for digital image processing", 1981, with the coefficient -3/4.
static void cubic_weights(double t, double w[4]) {
    const double a = -0.75, u = 1 - t;
    w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
    w[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

static axis_taps taps_of(const sampler *s, tide_dtype grid, double at, int64_t len) {
    axis_taps t = {.n = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4, .weight = {1}};
    double place = denormalise(s, grid, at, len);
    if (s->mode == NEAREST) place = rint(place);
    // Of cubic each of the four elements is bounded by itself, as PyTorch and ONNX Runtime do; ONNX's own reference
    // bounds the place first, which with `border` is another number.
    if (s->mode != CUBIC) place = bound(s, place, len);
    const double base = floor(place), past = place - base;
    if (s->mode == LINEAR) {
        t.weight[0] = 1 - past;
        t.weight[1] = past;
    } else if (s->mode == CUBIC) {
        cubic_weights(past, t.weight);
    }
    // A reflected half lies between two elements: nearest takes the one below.
    const int64_t first = (int64_t)base - (s->mode == CUBIC ? 1 : 0);
    for (int i = 0; i < t.n; i++) t.at[i] = element(s, first + i, len);
    return t;
}

/// Elements of one plane, and their weights. @return their number; those outside are left out
static int spread(const sampler *s, const axis_taps *axes, int64_t *at, double *weight) {
    int n = 1;
    at[0] = 0;
    weight[0] = 1;
    for (int32_t d = 0; d < s->n; d++) {
        int64_t next_at[MAX_TAPS];
        double next_weight[MAX_TAPS];
        int m = 0;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < axes[d].n; k++) {
                if (axes[d].at[k] < 0) continue;
                next_at[m] = at[i] * s->in[d] + axes[d].at[k];
                next_weight[m++] = weight[i] * axes[d].weight[k];
            }
        n = m;
        memcpy(at, next_at, (size_t)n * sizeof *at);
        memcpy(weight, next_weight, (size_t)n * sizeof *weight);
    }
    return n;
}

// ---- the loops ----

#define XX(DT, sfx, S, C)                                                                                              \
    static void sum_##sfx(const void *plane, void *out, int64_t i, int n, const int64_t *at, const double *weight) {   \
        const S *const x = plane;                                                                                      \
        double sum = 0;                                                                                                \
        for (int t = 0; t < n; t++) sum += weight[t] * (double)TIDE_LOAD_##sfx(x[at[t]]);                              \
        ((S *)out)[i] = TIDE_STORE_##sfx((C)sum);                                                                      \
    }
TIDE_TYPES_FLOAT(XX)
#undef XX

static void (*const sums[TIDE_DTYPE_LIMIT])(const void *, void *, int64_t, int, const int64_t *, const double *) = {
#define XX(DT, sfx, S, C) [TIDE_##DT] = sum_##sfx,
    TIDE_TYPES_FLOAT(XX)
#undef XX
};

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *x = &a->in[0], *grid = &a->in[1], *out = &a->out[0];
    const size_t elem = tide_dtype_size(x->dtype);
    sampler s;
    TIDE_TRY(sampler_of(k->node, &x->shape, &s, err));
    if (out->size_bytes == 0) return TIDE_OK;
    const int64_t channels = x->shape.dims[1], plane = tide_op_count(&x->shape, 2, x->shape.rank);
    const int64_t n_out = tide_op_count(&out->shape, 2, out->shape.rank);
    for (int64_t b = 0; b < x->shape.dims[0]; b++)
        for (int64_t o = 0; o < n_out; o++) {
            axis_taps axes[TIDE_WINDOW_MAX];
            int64_t at[MAX_TAPS];
            double weight[MAX_TAPS];
            for (int32_t d = 0; d < s.n; d++) {
                const int64_t i = (b * n_out + o) * s.n + s.n - 1 - d;
                axes[d] = taps_of(&s, grid->dtype, tide_data_load_f64(grid->dtype, grid->data, i), s.in[d]);
            }
            const int n = spread(&s, axes, at, weight);
            for (int64_t p = b * channels; p < (b + 1) * channels; p++)
                sums[x->dtype](tide_data_const_at(x->data, p * plane, elem), out->data, p * n_out + o, n, at, weight);
        }
    return TIDE_OK;
}

const tide_op_def tide_op_grid_sample = {
    .name = "GridSample",
    .domain = "",
    .since = 16,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "align_corners"), TIDE_ATTR(STRING, "mode"), TIDE_ATTR(STRING, "padding_mode")),
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .work = work,
    .run = run};
