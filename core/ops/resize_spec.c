// SPDX-License-Identifier: MIT
//
// resize_spec: what a Resize or Upsample node asks for. Opset 10 and Upsample know scales only and one fixed rule;
// opset 11 adds roi, sizes and the rules; 18 adds axes and keep_aspect_ratio_policy.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/resize_map.h"

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

static tide_status read_rule(const tide_node *node, tide_resize_rule *rule, tide_error *err) {
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
    *rule = (tide_resize_rule){.coord = (tide_resize_coord)coord,
                               .mode = (tide_resize_mode)mode,
                               .nearest = (tide_resize_nearest)nearest,
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
    return tide_op_has_in(x, i) && tide_data_numel(&x->in[i].shape) != 0;
}

/// `n` floats of an operand or, before Upsample 9, of an attribute.
static tide_status read_floats(const tide_infer *x, size_t operand, const char *what, size_t n, float *out,
                               tide_error *err) {
    const tide_operand *const o = &x->in[operand];
    TIDE_TRY(tide_op_require_const(x->node, o, what, err));
    if (tide_data_numel(&o->shape) != (int64_t)n)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'%s' has %lld elements, %zu expected", what,
                            (long long)tide_data_numel(&o->shape), n);
    for (size_t i = 0; i < n; i++) out[i] = (float)tide_data_load_f64(o->dtype, o->data, (int64_t)i);
    return TIDE_OK;
}

static tide_status apply_scales(const tide_infer *x, tide_resize_spec *s, const float *scales, const int32_t *axes,
                                size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        tide_resize_axis *const a = &s->axes[axes[i]];
        const float span = s->rule.coord == TIDE_RESIZE_TF_CROP_AND_RESIZE ? a->roi_end - a->roi_start : 1.0f;
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
static void keep_aspect(tide_resize_spec *s, const int32_t *axes, size_t n, bool not_larger) {
    float scale = not_larger ? INFINITY : 0;
    for (size_t i = 0; i < n; i++) {
        const float own = s->axes[axes[i]].scale;
        scale = not_larger ? fminf(scale, own) : fmaxf(scale, own);
    }
    for (size_t i = 0; i < n; i++) {
        tide_resize_axis *const a = &s->axes[axes[i]];
        a->scale = scale;
        const float extent = roundf(scale * (float)a->in);
        a->out = extent < 0x1p62f ? (int64_t)extent : INT64_MAX; // which is refused as an extent
    }
}

static tide_status apply_sizes(const tide_infer *x, tide_resize_spec *s, const int32_t *axes, size_t n,
                               tide_error *err) {
    int64_t sizes[TIDE_MAX_RANK];
    size_t n_sizes;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[SIZES], "sizes", TIDE_MAX_RANK, sizes, &n_sizes, err));
    if (n_sizes != n)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'sizes' has %zu elements, %zu expected", n_sizes, n);
    for (size_t i = 0; i < n; i++) {
        tide_resize_axis *const a = &s->axes[axes[i]];
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

tide_status tide_resize_read_spec(const tide_infer *x, tide_resize_spec *s, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    int32_t axes[TIDE_MAX_RANK];
    size_t n;
    float floats[2 * TIDE_MAX_RANK];
    TIDE_TRY(read_rule(x->node, &s->rule, err));
    TIDE_TRY(read_axes(x, axes, &n, err));
    if (s->rule.mode != TIDE_RESIZE_NEAREST && x->in[0].dtype != TIDE_F32)
        return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    for (int32_t d = 0; d < in->rank; d++)
        s->axes[d] = (tide_resize_axis){.axis = d, .in = in->dims[d], .out = in->dims[d], .scale = 1, .roi_end = 1};

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
    if (s->rule.coord == TIDE_RESIZE_TF_CROP_AND_RESIZE) {
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
