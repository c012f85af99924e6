// SPDX-License-Identifier: MIT
//
// ConvTranspose: 1-D, 2-D and 3-D, groups, dilations, output_padding, output_shape, optional bias, fused activation;
// float32. Runs on oneDNN's deconvolution ("gemm:jit"), with ONNX's weights [C, M/group, ...] read through strides.
#include <inttypes.h>

#include "core/base/checked.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

typedef struct spatial {
    int32_t n;
    int64_t stride[TIDE_WINDOW_MAX], dilation[TIDE_WINDOW_MAX]; ///< dilation 1: dense
    int64_t begin[TIDE_WINDOW_MAX];                             ///< rows cut from the full result in front
    int64_t full[TIDE_WINDOW_MAX];                              ///< of the result before cutting
    int64_t out[TIDE_WINDOW_MAX];
} spatial;

// Split the rows to cut: SAME_UPPER leaves the odd one at the end, everything else in front (opset 11's text).
static void cut(spatial *s, int32_t i, int64_t padded_full, bool upper) {
    int64_t total = padded_full - s->out[i];
    if (total < 0) total = 0; // a larger output_shape than there is: the rest is bias, at the end
    s->begin[i] = upper ? total / 2 : total - total / 2;
}

static tide_status extents(const tide_node *node, const tide_shape *x, const tide_shape *w, spatial *s,
                           tide_error *err) {
    s->n = x->rank - 2;
    const size_t n = (size_t)s->n;
    int64_t pads[2 * TIDE_WINDOW_MAX], extra[TIDE_WINDOW_MAX], shape[TIDE_WINDOW_MAX];
    tide_auto_pad auto_pad;
    TIDE_TRY(tide_op_ints_attr(node, "strides", n, 1, 1, s->stride, err));
    TIDE_TRY(tide_op_ints_attr(node, "dilations", n, 1, 1, s->dilation, err));
    TIDE_TRY(tide_op_ints_attr(node, "pads", 2 * n, 0, 0, pads, err));
    TIDE_TRY(tide_op_ints_attr(node, "output_padding", n, 0, 0, extra, err));
    TIDE_TRY(tide_op_ints_attr(node, "output_shape", n, 0, 1, shape, err));
    TIDE_TRY(tide_op_auto_pad(node, &auto_pad, err));
    const bool same = auto_pad == TIDE_AUTO_PAD_SAME_UPPER || auto_pad == TIDE_AUTO_PAD_SAME_LOWER;
    for (int32_t i = 0; i < s->n; i++) {
        const int64_t in = x->dims[i + 2], k = w->dims[i + 2];
        const int64_t all[] = {in, k, s->stride[i], s->dilation[i], extra[i], shape[i], pads[i], pads[(size_t)i + n]};
        if (k < 1 || in < 1)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                                "spatial dimension %d: input %" PRId64 ", kernel %" PRId64 ", both must be at least 1",
                                (int)i, in, k);
        TIDE_TRY(tide_op_window_limits(node, all, sizeof all / sizeof all[0], i, err));
        s->full[i] = (in - 1) * s->stride[i] + (k - 1) * s->dilation[i] + 1;
        TIDE_TRY(tide_op_window_limits(node, &s->full[i], 1, i, err));
        const int64_t padded_full = s->full[i] + extra[i];
        if (shape[i] > 0 || same) {
            s->out[i] = shape[i] > 0 ? shape[i] : in * s->stride[i];
            cut(s, i, padded_full, auto_pad == TIDE_AUTO_PAD_SAME_UPPER);
            continue;
        }
        const bool valid = auto_pad == TIDE_AUTO_PAD_VALID;
        s->begin[i] = valid ? 0 : pads[i];
        const int64_t end = valid ? 0 : pads[(size_t)i + n];
        if (s->begin[i] >= padded_full || end >= padded_full - s->begin[i])
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                                "spatial dimension %d: pads %" PRId64 " and %" PRId64 " leave nothing of %" PRId64,
                                (int)i, s->begin[i], end, padded_full);
        s->out[i] = padded_full - s->begin[i] - end;
    }
    return TIDE_OK;
}

static tide_status check_weights(const tide_infer *x, int64_t group, tide_error *err) {
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    size_t n = 0;
    const int64_t *list = tide_node_attr_ints(x->node, "kernel_shape", &n);
    bool same = list == NULL || n == (size_t)(w->rank - 2);
    for (size_t i = 0; list != NULL && same && i < n; i++) same = list[i] == w->dims[i + 2];
    int64_t m;
    char in_s[192], w_s[192];
    if (same && group >= 1 && in->dims[1] >= group && in->dims[1] % group == 0 && w->dims[0] == in->dims[1] &&
        tide_mul_i64(w->dims[1], group, &m))
        return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                        "X is %s, W is %s, group is %" PRId64
                        ": W must be [C, M/group, ...] with C a multiple of group, and agree with kernel_shape",
                        tide_shape_format(in, in_s, sizeof in_s), tide_shape_format(w, w_s, sizeof w_s), group);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_node *node = x->node;
    TIDE_TRY(tide_op_require_dtype(node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_dtype(node, &x->in[1], "W", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(node, &x->in[0], "X", 3, 2 + TIDE_WINDOW_MAX, err));
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    TIDE_TRY(tide_op_require_rank(node, &x->in[1], "W", in->rank, in->rank, err));
    const int64_t group = tide_node_attr_int(node, "group", 1);
    TIDE_TRY(check_weights(x, group, err));
    const int64_t m = w->dims[1] * group;
    if (tide_op_has_in(x, 2)) {
        TIDE_TRY(tide_op_require_dtype(node, &x->in[2], "B", TIDE_F32, err));
        TIDE_TRY(tide_op_require_shape(node, &x->in[2], "B", &(tide_shape){1, {m}}, err));
    }
    spatial s = {0};
    TIDE_TRY(extents(node, in, w, &s, err));
    int64_t dims[TIDE_MAX_RANK] = {in->dims[0], m};
    for (int32_t i = 0; i < s.n; i++) {
        dims[i + 2] = s.out[i];
        // oneDNN lets the result be longer than what the input reaches by less than one stride.
        if (s.out[i] + s.begin[i] - s.full[i] >= s.stride[i])
            return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED,
                                "output extent %" PRId64 " of spatial dimension %d is "
                                "a stride or more past the %" PRId64 " that the input reaches",
                                s.out[i], (int)i, s.full[i]);
    }
    return tide_op_set_out(x, 0, TIDE_F32, in->rank, dims, err);
}

static double work(const tide_infer *x) {
    const tide_shape *w = &x->in[1].shape;
    return (double)tide_op_numel(&x->in[0].shape) * (double)tide_op_count(w, 1, w->rank);
}

// ONNX [C, M/g, k...] as oneDNN's (g,) M/g, C/g, k...
static tide_status weights_md(const tide_prepare *x, int64_t group, dnnl_memory_desc_t *md, tide_error *err) {
    const tide_shape *w = &x->in[1].shape;
    const int64_t taps = tide_op_count(w, 2, w->rank), m = w->dims[1], c = w->dims[0] / group;
    int64_t dims[TIDE_MAX_RANK], strides[TIDE_MAX_RANK];
    int n = 0;
    if (group > 1) {
        dims[n] = group;
        strides[n++] = c * m * taps;
    }
    dims[n] = m;
    strides[n++] = taps;
    dims[n] = c;
    strides[n++] = m * taps;
    for (int32_t i = 2; i < w->rank; i++) {
        dims[n] = w->dims[i];
        strides[n++] = tide_op_count(w, i + 1, w->rank);
    }
    return tide_dnnl_md(x->node, n, dims, strides, md, err);
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    const bool bias = x->n_in > 2 && tide_operand_present(&x->in[2]);
    spatial s = {0};
    TIDE_TRY(extents(x->node, &x->in[0].shape, &x->in[1].shape, &s, err));
    dnnl_memory_desc_t src, wei, bia, dst;
    TIDE_TRY(tide_dnnl_md(x->node, x->in[0].shape.rank, x->in[0].shape.dims, NULL, &src, err));
    TIDE_TRY(weights_md(x, tide_node_attr_int(x->node, "group", 1), &wei, err));
    TIDE_TRY(tide_dnnl_md(x->node, 1, &x->out[0].shape.dims[1], NULL, &bia, err));
    TIDE_TRY(tide_dnnl_md(x->node, x->out[0].shape.rank, x->out[0].shape.dims, NULL, &dst, err));
    dnnl_dims_t stride, dilation, begin, end;
    for (int32_t i = 0; i < s.n; i++) {
        stride[i] = s.stride[i];
        dilation[i] = s.dilation[i] - 1;
        begin[i] = s.begin[i];
        end[i] = s.full[i] - s.begin[i] - s.out[i];
    }
    dnnl_deconvolution_desc_t d;
    const dnnl_status_t ds = tide__dnnl_dilated_deconvolution_forward_desc_init(
        &d, dnnl_forward_inference, dnnl_deconvolution_direct, &src, &wei, bias ? &bia : NULL, &dst, stride, dilation,
        begin, end);
    if (ds != dnnl_success) return tide_dnnl_fail(err, x->node, ds, "deconvolution");
    static const tide_dnnl_bind binds[] = {
        {DNNL_ARG_SRC, false, 0}, {DNNL_ARG_WEIGHTS, false, 1}, {DNNL_ARG_DST, true, 0}, {DNNL_ARG_BIAS, false, 2}};
    const tide_dnnl_post post = {.scale = 1.0f, .act = x->node->activation};
    return tide_dnnl_kernel_set(k, &d, &post, binds, bias ? 4 : 3, err);
}

const tide_op_def tide_op_conv_transpose = {
    .domain = "",
    .name = "ConvTranspose",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "auto_pad"), TIDE_ATTR(INTS, "dilations"), TIDE_ATTR(INT, "group"),
                        TIDE_ATTR(INTS, "kernel_shape"), TIDE_ATTR(INTS, "output_padding"),
                        TIDE_ATTR(INTS, "output_shape"), TIDE_ATTR(INTS, "pads"), TIDE_ATTR(INTS, "strides")),
    .flags = TIDE_OP_FUSES_ACT,
    .min_inputs = 2,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .destroy = tide_dnnl_kernel_destroy,
    .exec_create = tide_dnnl_kernel_exec_create,
    .exec_destroy = tide_dnnl_kernel_exec_destroy,
    .run = tide_dnnl_kernel_run,
};
