// SPDX-License-Identifier: MIT
//
// Resize (opset 10 to 19) and Upsample (7, 9): one pass per axis that changes.
//
//     [N, C, H, W] --W--> [N, C, H, W'] --H--> [N, C, H', W']
//
// Shrinking axes go first and growing ones inside out, which keeps what lies between small; that lives in the
// workspace. Nearest moves bytes of any dtype, linear and cubic are served for float32.
#include <math.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/ops.h"

// ---- the node ----
//
// Opset 10 and Upsample know scales only and one fixed rule; opset 11 adds roi, sizes and the rules; 18 adds axes and
// keep_aspect_ratio_policy.

typedef enum resize_coord {
    RESIZE_HALF_PIXEL,
    RESIZE_HALF_PIXEL_SYMMETRIC,
    RESIZE_PYTORCH_HALF_PIXEL,
    RESIZE_ALIGN_CORNERS,
    RESIZE_ASYMMETRIC,
    RESIZE_TF_HALF_PIXEL_FOR_NN,
    RESIZE_TF_CROP_AND_RESIZE,
} resize_coord;

typedef enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } resize_mode;

typedef enum resize_nearest {
    RESIZE_ROUND_PREFER_FLOOR,
    RESIZE_ROUND_PREFER_CEIL,
    RESIZE_FLOOR,
    RESIZE_CEIL,
    RESIZE_CEIL_WHERE_SHRUNK, ///< else floor: opset 10 by ONNX's own cases
} resize_nearest;

enum { RESIZE_MAX_TAPS = 4 };

/// What all axes share.
typedef struct resize_rule {
    resize_coord coord;
    resize_mode mode;
    resize_nearest nearest;
    float cubic_a;
    bool exclude_outside; ///< cubic: elements outside the input get no weight instead of the edge's value
} resize_rule;

typedef struct resize_axis {
    int32_t axis;
    int64_t in, out; ///< extents
    float scale;     ///< out / in, or as given
    float roi_start, roi_end;
} resize_axis;

/// Elements and weights of one output position.
typedef struct resize_tap {
    int64_t at[RESIZE_MAX_TAPS];
    float weight[RESIZE_MAX_TAPS];
    bool outside; ///< tf_crop_and_resize: beyond the input, takes the extrapolation value
} resize_tap;

/// What a node asks for.
typedef struct resize_spec {
    resize_rule rule;
    resize_axis axes[TIDE_MAX_RANK]; ///< [rank]
} resize_spec;

/// The operands' positions: opset 10 and Upsample 9 have only X and scales.
enum { ROI = 1, SCALES = 2, SIZES = 3, SCALES_10 = 1 };

static tide_status choose(const tide_node *node, const char *attr, const char *absent, const char *const *names,
                          size_t n, int *out, tide_error *err) {
    const char *const name = tide_node_attr_string(node, attr, absent);
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (int)i;
            return TIDE_OK;
        }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s '%s' is not known", attr, name);
}

#define CHOOSE(node, attr, absent, names, out, err)                                                                    \
    TIDE_TRY(choose(node, attr, absent, names, sizeof names / sizeof *names, out, err))

static tide_status read_rule(const tide_node *node, resize_rule *rule, tide_error *err) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coords[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    int mode = 0, coord = 0, nearest = 0;
    const bool old = node->opset < 11; // Upsample and Resize 10: always the same rule
    CHOOSE(node, "mode", "nearest", modes, &mode, err);
    CHOOSE(node, old ? "" : "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel", coords, &coord, err);
    CHOOSE(node, old ? "" : "nearest_mode", old ? "floor" : "round_prefer_floor", nearests, &nearest, err);
    if (tide_node_attr_int(node, "antialias", 0) != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "antialias is not served");
    *rule = (resize_rule){.coord = (resize_coord)coord,
                          .mode = (resize_mode)mode,
                          .nearest = old ? RESIZE_CEIL_WHERE_SHRUNK : (resize_nearest)nearest,
                          .cubic_a = tide_node_attr_float(node, "cubic_coeff_a", -0.75f),
                          .exclude_outside = tide_node_attr_int(node, "exclude_outside", 0) != 0};
    return TIDE_OK;
}

/// The axes that the lists of sizes, scales and roi speak of (opset 18); all of them by default.
static tide_status read_axes(const tide_infer *x, int32_t axes[TIDE_MAX_RANK], size_t *n, tide_error *err) {
    const int32_t rank = x->in[0].shape.rank;
    const int64_t *const list = tide_node_attr_ints(x->node, "axes", n);
    if (list == NULL) {
        *n = (size_t)rank;
        for (int32_t d = 0; d < rank; d++) axes[d] = d;
        return TIDE_OK;
    }
    if (*n > TIDE_MAX_RANK) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu axes", *n);
    for (size_t i = 0; i < *n; i++) TIDE_TRY(tide_op_axis(x->node, list[i], rank, &axes[i], err));
    return TIDE_OK;
}

static bool has_content(const tide_infer *x, size_t i) {
    return tide_op_has_in(x, i) && tide_op_numel(&x->in[i].shape) != 0;
}

/// `n` floats of an operand or, before Upsample 9, of an attribute.
static tide_status read_floats(const tide_infer *x, size_t operand, const char *what, size_t n, float *out,
                               tide_error *err) {
    const tide_operand *const o = &x->in[operand];
    TIDE_TRY(tide_op_require_const(x->node, o, what, err));
    if (tide_op_numel(&o->shape) != (int64_t)n)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'%s' has %lld elements, %zu expected", what,
                            (long long)tide_op_numel(&o->shape), n);
    for (size_t i = 0; i < n; i++) out[i] = (float)tide_data_load_f64(o->dtype, o->data, (int64_t)i);
    return TIDE_OK;
}

static tide_status apply_scales(const tide_infer *x, resize_spec *s, const float *scales, const int32_t *axes, size_t n,
                                tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        resize_axis *const a = &s->axes[axes[i]];
        const float span = s->rule.coord == RESIZE_TF_CROP_AND_RESIZE ? a->roi_end - a->roi_start : 1.0f;
        const float extent = floorf((float)a->in * span * scales[i]);
        if (!(scales[i] > 0) || !(extent >= 0) || extent >= 0x1p62f)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d of %lld cannot be scaled by %g", axes[i],
                                (long long)a->in, (double)scales[i]);
        a->scale = scales[i];
        a->out = (int64_t)extent;
    }
    return TIDE_OK;
}

/// Opset 18: one scale for all axes, so that nothing is larger (or smaller) than asked.
static void keep_aspect(resize_spec *s, const int32_t *axes, size_t n, bool not_larger) {
    float scale = not_larger ? INFINITY : 0;
    for (size_t i = 0; i < n; i++) {
        const float own = s->axes[axes[i]].scale;
        scale = not_larger ? fminf(scale, own) : fmaxf(scale, own);
    }
    for (size_t i = 0; i < n; i++) {
        resize_axis *const a = &s->axes[axes[i]];
        a->scale = scale;
        const float extent = roundf(scale * (float)a->in);
        a->out = extent < 0x1p62f ? (int64_t)extent : INT64_MAX; // which is refused as an extent
    }
}

static tide_status apply_sizes(const tide_infer *x, resize_spec *s, const int32_t *axes, size_t n, tide_error *err) {
    int64_t sizes[TIDE_MAX_RANK];
    size_t n_sizes;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[SIZES], "sizes", TIDE_MAX_RANK, sizes, &n_sizes, err));
    if (n_sizes != n)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'sizes' has %zu elements, %zu expected", n_sizes, n);
    for (size_t i = 0; i < n; i++) {
        resize_axis *const a = &s->axes[axes[i]];
        if (sizes[i] < 0 || (a->in == 0 && sizes[i] != 0))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d of %lld cannot become %lld", axes[i],
                                (long long)a->in, (long long)sizes[i]);
        a->out = sizes[i];
        a->scale = a->in != 0 ? (float)sizes[i] / (float)a->in : 1.0f;
    }
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int policy = 0;
    CHOOSE(x->node, "keep_aspect_ratio_policy", "stretch", policies, &policy, err);
    if (policy != 0) keep_aspect(s, axes, n, policy == 1);
    return TIDE_OK;
}

/// Read Resize (opset 10 on) or Upsample (7, 9): its attributes and the content of roi, scales and sizes.
/// @return TIDE_ERR_UNKNOWN_SIZE naming an operand whose content is not known; TIDE_ERR_BAD_INPUT;
///         TIDE_ERR_NOT_IMPLEMENTED (antialias; linear and cubic on anything but float32)
static tide_status read_spec(const tide_infer *x, resize_spec *s, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    int32_t axes[TIDE_MAX_RANK];
    size_t n;
    float floats[2 * TIDE_MAX_RANK];
    TIDE_TRY(read_rule(x->node, &s->rule, err));
    TIDE_TRY(read_axes(x, axes, &n, err));
    if (s->rule.mode != RESIZE_NEAREST && x->in[0].dtype != TIDE_F32)
        return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    for (int32_t d = 0; d < in->rank; d++)
        s->axes[d] = (resize_axis){.axis = d, .in = in->dims[d], .out = in->dims[d], .scale = 1, .roi_end = 1};

    if (strcmp(x->node->op_type, "Upsample") == 0 && x->node->opset < 9) {
        size_t n_scales;
        const float *const scales = tide_node_attr_floats(x->node, "scales", &n_scales);
        if (n_scales != n)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu scales for rank %d", n_scales, in->rank);
        return apply_scales(x, s, scales, axes, n, err);
    }
    if (x->node->opset < 11) {
        TIDE_TRY(read_floats(x, SCALES_10, "scales", n, floats, err));
        return apply_scales(x, s, floats, axes, n, err);
    }
    if (s->rule.coord == RESIZE_TF_CROP_AND_RESIZE) {
        if (!has_content(x, ROI)) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'roi' is missing");
        TIDE_TRY(read_floats(x, ROI, "roi", 2 * n, floats, err));
        for (size_t i = 0; i < n; i++) {
            s->axes[axes[i]].roi_start = floats[i];
            s->axes[axes[i]].roi_end = floats[n + i];
        }
    }
    if (has_content(x, SIZES)) return apply_sizes(x, s, axes, n, err);
    if (!has_content(x, SCALES))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "neither 'scales' nor 'sizes' is given");
    TIDE_TRY(read_floats(x, SCALES, "scales", n, floats, err));
    return apply_scales(x, s, floats, axes, n, err);
}

// ---- coordinates ----
//
// Where on the input each output position of an axis lies, and which input elements with which weights make it. An axis
// is independent of the others. Calculated in float, as the exporters' own runtimes do, so that positions that fall
// exactly between two elements fall to the same side.

/// Taps that a mode uses: 1, 2 or 4.
static int n_taps_of(resize_mode mode) { return mode == RESIZE_NEAREST ? 1 : mode == RESIZE_LINEAR ? 2 : 4; }

/// Position on the input's axis, in elements; outside of it is possible.
static float original(const resize_rule *rule, const resize_axis *a, int64_t x) {
    const float at = (float)x;
    switch (rule->coord) {
    case RESIZE_HALF_PIXEL:
        return (at + 0.5f) / a->scale - 0.5f;
    case RESIZE_HALF_PIXEL_SYMMETRIC: {
        const float adjustment = (float)a->out / (a->scale * (float)a->in);
        return (float)a->in / 2.0f * (1.0f - adjustment) + (at + 0.5f) / a->scale - 0.5f;
    }
    case RESIZE_PYTORCH_HALF_PIXEL:
        return a->out > 1 ? (at + 0.5f) / a->scale - 0.5f : 0.0f;
    case RESIZE_ALIGN_CORNERS:
        return a->out > 1 ? at * (float)(a->in - 1) / (float)(a->out - 1) : 0.0f;
    case RESIZE_ASYMMETRIC:
        return at / a->scale;
    case RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (at + 0.5f) / a->scale;
    case RESIZE_TF_CROP_AND_RESIZE: {
        const float span = (float)(a->in - 1);
        return a->out > 1 ? a->roi_start * span + at * (a->roi_end - a->roi_start) * span / (float)(a->out - 1)
                          : 0.5f * (a->roi_start + a->roi_end) * span;
    }
    }
    return at;
}

static float nearest(resize_nearest how, float scale, float at) {
    switch (how) {
    case RESIZE_ROUND_PREFER_FLOOR:
        return at == floorf(at) + 0.5f ? floorf(at) : roundf(at);
    case RESIZE_ROUND_PREFER_CEIL:
        return roundf(at);
    case RESIZE_FLOOR:
        return floorf(at);
    case RESIZE_CEIL:
        return ceilf(at);
    case RESIZE_CEIL_WHERE_SHRUNK:
        return scale < 1 ? ceilf(at) : floorf(at);
    }
    return at;
}

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

/// Keys, "Cubic convolution interpolation for digital image processing", 1981, equations 15 and 16, with its free
/// coefficient a (-1/2 there, -3/4 by default in ONNX). `t` is the distance past the second of the four elements.
static void cubic_weights(float a, float t, float w[4]) {
    const float u = 1.0f - t;
    w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
    w[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

static void exclude_outside(int64_t first, int64_t n, float w[4]) {
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        if (first + i < 0 || first + i >= n) w[i] = 0;
        sum += w[i];
    }
    for (int i = 0; i < 4; i++) w[i] /= sum;
}

/// The taps of output position `x`.
static void tap_at(const resize_rule *rule, const resize_axis *axis, int64_t x, resize_tap *out) {
    // Far outside is as good as just outside; and every float in between has an integer.
    const float far = (float)axis->in + 4.0f;
    const float at = fminf(fmaxf(original(rule, axis, x), -4.0f), far);
    const int64_t floor_i = (int64_t)floorf(at);
    const float t = at - floorf(at);
    *out = (resize_tap){.weight = {1.0f}};
    out->outside = rule->coord == RESIZE_TF_CROP_AND_RESIZE && (at < 0 || at > (float)(axis->in - 1));
    switch (rule->mode) {
    case RESIZE_NEAREST:
        out->at[0] = clamp((int64_t)nearest(rule->nearest, axis->scale, at), axis->in);
        return;
    case RESIZE_LINEAR:
        for (int i = 0; i < 2; i++) out->at[i] = clamp(floor_i + i, axis->in);
        out->weight[0] = 1.0f - t;
        out->weight[1] = t;
        return;
    case RESIZE_CUBIC:
        for (int i = 0; i < 4; i++) out->at[i] = clamp(floor_i - 1 + i, axis->in);
        cubic_weights(rule->cubic_a, t, out->weight);
        if (rule->exclude_outside) exclude_outside(floor_i - 1, axis->in, out->weight);
        return;
    }
}

// ---- passes ----

/// Positions are floats, as in the runtimes that exporters test with: from here on they miss elements.
enum { EXTENT_LIMIT = 1 << 24 };

typedef struct pass {
    resize_axis axis;
    int64_t outer, inner; ///< extents around the axis when this pass runs
    const int64_t *at;    ///< [n_taps][axis.out], elements of the input's axis
    const float *weight;  ///< [n_taps][axis.out]
    const bool *outside;  ///< [axis.out]: takes the extrapolation value; NULL: none does
} pass;

typedef struct resize_state {
    resize_rule rule;
    float extrapolation;
    int n_passes;
    pass passes[TIDE_MAX_RANK];
    size_t buffer_bytes[2]; ///< what passes of even and of odd number leave between them
    int64_t tables[];       ///< all passes' at, then all weights, then all outside flags
} resize_state;

/// Rules by which a scale of 1 leaves every position where it is, without looking at them all.
static bool keeps_place(const resize_spec *s, const resize_axis *a) {
    return a->in == a->out && a->scale == 1.0f && s->rule.coord != RESIZE_TF_HALF_PIXEL_FOR_NN &&
           s->rule.coord != RESIZE_TF_CROP_AND_RESIZE;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    resize_spec s;
    TIDE_TRY(read_spec(x, &s, err));
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0; d < x->in[0].shape.rank; d++) {
        const resize_axis *const a = &s.axes[d];
        if (!keeps_place(&s, a) && (a->in > EXTENT_LIMIT || a->out > EXTENT_LIMIT))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED,
                                "axis %d goes from %lld to %lld: float positions end at %d", d, (long long)a->in,
                                (long long)a->out, EXTENT_LIMIT);
        dims[d] = a->out;
    }
    return tide_op_set_out(x, 0, x->in[0].dtype, x->in[0].shape.rank, dims, err);
}

// ---- preparation ----

/// Same extent and every position on its own element.
static bool untouched(const resize_spec *s, const resize_axis *a) {
    if (a->in != a->out) return false;
    if (keeps_place(s, a)) return true;
    for (int64_t i = 0; i < a->out; i++) {
        resize_tap tap;
        tap_at(&s->rule, a, i, &tap);
        const int own = s->rule.mode == RESIZE_CUBIC ? 1 : 0;
        if (tap.outside || tap.at[own] != i || tap.weight[own] != 1.0f) return false;
    }
    return true;
}

/// Whether `a` goes before `b`: the one that shrinks more, or of equals the inner one.
static bool goes_before(const resize_axis *a, const resize_axis *b) {
    const double ra = (double)a->out / (double)a->in, rb = (double)b->out / (double)b->in;
    return ra != rb ? ra < rb : a->axis > b->axis;
}

static int order_axes(const resize_spec *s, int32_t rank, resize_axis out[TIDE_MAX_RANK]) {
    int n = 0;
    for (int32_t d = 0; d < rank; d++) {
        if (untouched(s, &s->axes[d])) continue;
        int at = n++;
        for (; at > 0 && goes_before(&s->axes[d], &out[at - 1]); at--) out[at] = out[at - 1];
        out[at] = s->axes[d];
    }
    return n;
}

/// Where the tables of the next pass go.
typedef struct tables {
    int64_t *at;
    float *weight;
    bool *outside;
} tables;

/// Fill one axis' tables and move on behind them.
static void fill_tables(const resize_rule *rule, const resize_axis *axis, pass *p, tables *to) {
    const int n_taps = n_taps_of(rule->mode);
    bool any_outside = false;
    for (int64_t i = 0; i < axis->out; i++) {
        resize_tap tap;
        tap_at(rule, axis, i, &tap);
        for (int t = 0; t < n_taps; t++) {
            to->at[t * axis->out + i] = tap.at[t];
            to->weight[t * axis->out + i] = tap.weight[t];
        }
        to->outside[i] = tap.outside;
        any_outside = any_outside || tap.outside;
    }
    p->at = to->at;
    p->weight = to->weight;
    p->outside = any_outside ? to->outside : NULL;
    to->at += n_taps * axis->out;
    to->weight += n_taps * axis->out;
    to->outside += axis->out;
}

static tide_status plan_passes(const tide_prepare *x, resize_state *st, const resize_axis *axes, tables to,
                               tide_error *err) {
    tide_shape shape = x->in[0].shape;
    for (int p = 0; p < st->n_passes; p++) {
        const int32_t d = axes[p].axis;
        st->passes[p] = (pass){
            .axis = axes[p], .outer = tide_op_count(&shape, 0, d), .inner = tide_op_count(&shape, d + 1, shape.rank)};
        fill_tables(&st->rule, &axes[p], &st->passes[p], &to);
        shape.dims[d] = axes[p].out;
        size_t bytes;
        TIDE_TRY(tide_shape_bytes(&shape, x->in[0].dtype, &bytes, err));
        if (p + 1 < st->n_passes && bytes > st->buffer_bytes[p % 2]) st->buffer_bytes[p % 2] = bytes;
    }
    return TIDE_OK;
}

static size_t aligned(size_t bytes) {
    return (bytes + TIDE_WORKSPACE_ALIGN - 1) / TIDE_WORKSPACE_ALIGN * TIDE_WORKSPACE_ALIGN;
}

static void destroy(tide_kernel *k) {
    tide_host_free(k->state);
    k->state = NULL;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const tide_infer again = {.node = x->node, .in = x->in, .n_in = x->n_in};
    resize_spec s;
    TIDE_TRY(read_spec(&again, &s, err));
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    resize_axis axes[TIDE_MAX_RANK];
    const int n = order_axes(&s, x->in[0].shape.rank, axes);
    size_t n_out = 0, n_taps, bytes;
    bool fits = true;
    for (int p = 0; p < n; p++) fits = fits && tide_add_size(n_out, (size_t)axes[p].out, &n_out);
    const size_t tap_bytes = sizeof(int64_t) + sizeof(float);
    fits = fits && tide_mul_size(n_out, (size_t)n_taps_of(s.rule.mode), &n_taps) &&
           tide_mul_size(n_taps, tap_bytes, &bytes) && tide_add_size(bytes, n_out * sizeof(bool), &bytes) &&
           tide_add_size(bytes, sizeof(resize_state), &bytes);
    if (!fits) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "the output is too large");
    resize_state *const st = tide_host_calloc(1, bytes);
    if (st == NULL) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOMEM, "%zu B for the coordinates", bytes);
    float *const weights = (float *)(st->tables + n_taps);
    const tables to = {.at = st->tables, .weight = weights, .outside = (bool *)(weights + n_taps)};
    st->rule = s.rule;
    st->extrapolation = tide_node_attr_float(x->node, "extrapolation_value", 0);
    st->n_passes = n;
    const tide_status status = plan_passes(x, st, axes, to, err);
    if (status != TIDE_OK) {
        tide_host_free(st);
        return status;
    }
    k->state = st;
    k->workspace_bytes = aligned(st->buffer_bytes[0]) + aligned(st->buffer_bytes[1]);
    return TIDE_OK;
}

// ---- the passes ----

/// One line of an innermost axis: single elements by index.
#define DEFINE_PICK(fn, T)                                                                                             \
    static void fn(const pass *p, const void *in, void *out) {                                                         \
        const T *const x = in;                                                                                         \
        T *const o = out;                                                                                              \
        for (int64_t i = 0; i < p->axis.out; i++) o[i] = x[p->at[i]];                                                  \
    }
DEFINE_PICK(pick_1, uint8_t)
DEFINE_PICK(pick_2, uint16_t)
DEFINE_PICK(pick_4, uint32_t)
DEFINE_PICK(pick_8, uint64_t)

/// Lines of whole rows.
static void pick_rows(const pass *p, size_t row_bytes, const char *in, char *out) {
    for (int64_t i = 0; i < p->axis.out; i++)
        memcpy(out + (size_t)i * row_bytes, in + (size_t)p->at[i] * row_bytes, row_bytes);
}

static void pass_nearest(const pass *p, size_t elem, const void *in, void *out) {
    void (*const pick)(const pass *, const void *, void *) = elem == 1   ? pick_1
                                                             : elem == 2 ? pick_2
                                                             : elem == 4 ? pick_4
                                                                         : pick_8;
    for (int64_t o = 0; o < p->outer; o++) {
        const void *const from = tide_data_const_at(in, o * p->axis.in * p->inner, elem);
        void *const to = tide_data_at(out, o * p->axis.out * p->inner, elem);
        if (p->inner == 1)
            pick(p, from, to);
        else
            pick_rows(p, (size_t)p->inner * elem, from, to);
    }
}

/// out = sum over taps of weight * in, for one line of an innermost axis.
static void weigh_line(const pass *p, int n_taps, const float *in, float *restrict out) {
    const int64_t n = p->axis.out;
    const int64_t *const at = p->at;
    const float *const w = p->weight;
    for (int64_t i = 0; i < n; i++) out[i] = in[at[i]] * w[i] + in[at[n + i]] * w[n + i];
    if (n_taps == 2) return;
    for (int64_t i = 0; i < n; i++) out[i] += in[at[2 * n + i]] * w[2 * n + i] + in[at[3 * n + i]] * w[3 * n + i];
}

/// The same where each position is a row of `inner` elements.
static void weigh_row(const pass *p, int n_taps, int64_t i, const float *in, float *restrict out) {
    const int64_t n = p->axis.out;
    for (int t = 0; t < n_taps; t += 2) {
        const float *const a = in + p->at[t * n + i] * p->inner;
        const float *const b = in + p->at[(t + 1) * n + i] * p->inner;
        const float wa = p->weight[t * n + i], wb = p->weight[(t + 1) * n + i];
        for (int64_t j = 0; j < p->inner; j++) out[j] = (t == 0 ? 0 : out[j]) + (a[j] * wa + b[j] * wb);
    }
}

static void pass_weighted(const pass *p, int n_taps, const float *in, float *out) {
    for (int64_t o = 0; o < p->outer; o++) {
        const float *const from = in + o * p->axis.in * p->inner;
        float *const to = out + o * p->axis.out * p->inner;
        if (p->inner == 1)
            weigh_line(p, n_taps, from, to);
        else
            for (int64_t i = 0; i < p->axis.out; i++) weigh_row(p, n_taps, i, from, to + i * p->inner);
    }
}

/// tf_crop_and_resize: positions beyond the input take a value of their own.
static void extrapolate(const pass *p, float value, tide_dtype dtype, void *out) {
    for (int64_t o = 0; p->outside != NULL && o < p->outer; o++)
        for (int64_t i = 0; i < p->axis.out; i++)
            for (int64_t j = 0; p->outside[i] && j < p->inner; j++)
                tide_data_store_f64(dtype, out, (o * p->axis.out + i) * p->inner + j, (double)value);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const resize_state *const st = k->state;
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    if (st->n_passes == 0) return tide_data_run_view(k, a, err);
    const size_t second = aligned(st->buffer_bytes[0]);
    const void *in = a->in[0].data;
    for (int p = 0; p < st->n_passes; p++) {
        const bool last = p + 1 == st->n_passes; // with one pass there is no workspace
        void *const out = last ? a->out[0].data : (char *)a->workspace + (p % 2 == 0 ? 0 : second);
        if (st->rule.mode == RESIZE_NEAREST)
            pass_nearest(&st->passes[p], tide_dtype_size(a->in[0].dtype), in, out);
        else
            pass_weighted(&st->passes[p], n_taps_of(st->rule.mode), in, out);
        extrapolate(&st->passes[p], st->extrapolation, a->in[0].dtype, out);
        in = out;
    }
    return TIDE_OK;
}

#define OP_DEF(row_name, text, since_version, until_version, least_inputs, most_inputs, op_attrs)                      \
    const tide_op_def tide_op_##row_name = {.name = text,                                                              \
                                            .domain = "",                                                              \
                                            .since = since_version,                                                    \
                                            .until = until_version,                                                    \
                                            .attrs = op_attrs,                                                         \
                                            .min_inputs = least_inputs,                                                \
                                            .max_inputs = most_inputs,                                                 \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 1,                                                          \
                                            .infer = infer,                                                            \
                                            .prepare = prepare,                                                        \
                                            .destroy = destroy,                                                        \
                                            .run = run};
OP_DEF(upsample_7, "Upsample", 7, 8, 1, 1, TIDE_ATTRS(TIDE_ATTR(STRING, "mode"), TIDE_ATTR(FLOATS, "scales")))
OP_DEF(upsample_9, "Upsample", 9, 9, 2, 2, TIDE_ATTRS(TIDE_ATTR(STRING, "mode")))
OP_DEF(resize_10, "Resize", 10, 10, 2, 2, TIDE_ATTRS(TIDE_ATTR(STRING, "mode")))
OP_DEF(resize_11, "Resize", 11, 0, 1, 4,
       TIDE_ATTRS(TIDE_ATTR(STRING, "mode"), TIDE_ATTR(STRING, "coordinate_transformation_mode"),
                  TIDE_ATTR(FLOAT, "cubic_coeff_a"), TIDE_ATTR(INT, "exclude_outside"),
                  TIDE_ATTR(FLOAT, "extrapolation_value"), TIDE_ATTR(STRING, "nearest_mode"),
                  TIDE_ATTR(INT, "antialias", .since = 18), TIDE_ATTR(INTS, "axes", .since = 18),
                  TIDE_ATTR(STRING, "keep_aspect_ratio_policy", .since = 18)))
