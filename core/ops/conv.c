// SPDX-License-Identifier: MIT
//
// Conv: 1-D, 2-D and 3-D, groups, dilations, optional bias, fused activation; float32, plain layouts. Over one or two
// extents on one thread by direct_conv.h, else by oneDNN.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "core/ops/direct_conv.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"
#include "core/ops/ops.h"

typedef struct conv_state {
    tide_dnnl_prim prim;     ///< without a primitive `direct` runs
    tide_direct_conv direct; ///< owned
} conv_state;

static tide_status check_kernel_shape(const tide_node *node, const tide_shape *w, tide_error *err) {
    size_t n = 0;
    const int64_t *list = tide_node_attr_ints(node, "kernel_shape", &n);
    if (list == NULL) return TIDE_OK;
    bool same = n == (size_t)(w->rank - 2);
    for (size_t i = 0; same && i < n; i++) same = list[i] == w->dims[i + 2];
    if (same) return TIDE_OK;
    char s[192];
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "kernel_shape does not agree with the weights %s",
                        tide_shape_format(w, s, sizeof s));
}

static tide_status check_channels(const tide_infer *x, int64_t group, tide_error *err) {
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    char in_s[192], w_s[192];
    if (group >= 1 && group <= in->dims[1] && in->dims[1] % group == 0 && in->dims[1] / group == w->dims[1] &&
        w->dims[0] % group == 0)
        return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                        "X is %s, W is %s, group is %" PRId64
                        ": W must be [M, C/group, ...] with M a multiple of group",
                        tide_shape_format(in, in_s, sizeof in_s), tide_shape_format(w, w_s, sizeof w_s), group);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_node *node = x->node;
    TIDE_TRY(tide_op_require_dtype(node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_dtype(node, &x->in[1], "W", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(node, &x->in[0], "X", 3, 2 + TIDE_WINDOW_MAX, err));
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    TIDE_TRY(tide_op_require_rank(node, &x->in[1], "W", in->rank, in->rank, err));
    TIDE_TRY(check_channels(x, tide_node_attr_int(node, "group", 1), err));
    TIDE_TRY(check_kernel_shape(node, w, err));
    if (tide_op_has_in(x, 2)) {
        TIDE_TRY(tide_op_require_dtype(node, &x->in[2], "B", TIDE_F32, err));
        TIDE_TRY(tide_op_require_shape(node, &x->in[2], "B", &(tide_shape){1, {w->dims[0]}}, err));
    }
    tide_window win;
    TIDE_TRY(tide_op_window(node, in, w->dims + 2, &win, err));
    int64_t dims[TIDE_MAX_RANK] = {in->dims[0], w->dims[0]};
    for (int32_t i = 0; i < win.n; i++) dims[i + 2] = win.out[i];
    return tide_op_set_out(x, 0, TIDE_F32, in->rank, dims, err);
}

static double work(const tide_infer *x) {
    const tide_shape *w = &x->in[1].shape;
    return (double)tide_op_numel(&x->out[0].shape) * (double)tide_op_count(w, 1, w->rank);
}

// W as oneDNN wants it: [g, M/g, C/g, ...] when there are groups.
static tide_status weights_md(const tide_prepare *x, int64_t group, dnnl_memory_desc_t *md, tide_error *err) {
    const tide_shape *w = &x->in[1].shape;
    if (group == 1) return tide_dnnl_md(x->node, w->rank, w->dims, NULL, md, err);
    int64_t dims[TIDE_MAX_RANK] = {group, w->dims[0] / group};
    for (int32_t i = 1; i < w->rank; i++) dims[i + 1] = w->dims[i];
    return tide_dnnl_md(x->node, w->rank + 1, dims, NULL, md, err);
}

// oneDNN counts dilation from 0 and takes the end padding that makes the sizes meet, which may be less than ONNX's
// (a floor leaves a rest that is not read).
static void window_params(const tide_window *w, int64_t *stride, int64_t *dilation, int64_t *begin, int64_t *end) {
    for (int32_t i = 0; i < w->n; i++) {
        stride[i] = w->stride[i];
        dilation[i] = w->dilation[i] - 1;
        begin[i] = w->pad_begin[i];
        end[i] = (w->out[i] - 1) * w->stride[i] + tide_window_span(w, i) - w->in[i] - w->pad_begin[i];
    }
}

static tide_status make_prim(const tide_prepare *x, const tide_window *w, int64_t group, tide_dnnl_prim *out,
                             tide_error *err) {
    const bool bias = x->n_in > 2 && tide_operand_present(&x->in[2]);
    dnnl_memory_desc_t src, wei, bia, dst;
    TIDE_TRY(tide_dnnl_md(x->node, x->in[0].shape.rank, x->in[0].shape.dims, NULL, &src, err));
    TIDE_TRY(weights_md(x, group, &wei, err));
    TIDE_TRY(tide_dnnl_md(x->node, 1, x->in[1].shape.dims, NULL, &bia, err));
    TIDE_TRY(tide_dnnl_md(x->node, x->out[0].shape.rank, x->out[0].shape.dims, NULL, &dst, err));
    dnnl_dims_t stride, dilation, begin, end;
    window_params(w, stride, dilation, begin, end);
    dnnl_convolution_desc_t d;
    const dnnl_status_t ds =
        tide__dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_direct, &src,
                                                         &wei, bias ? &bia : NULL, &dst, stride, dilation, begin, end);
    if (ds != dnnl_success) return tide_dnnl_fail(err, x->node, ds, "convolution");
    static const tide_dnnl_bind binds[] = {
        {DNNL_ARG_SRC, false, 0}, {DNNL_ARG_WEIGHTS, false, 1}, {DNNL_ARG_DST, true, 0}, {DNNL_ARG_BIAS, false, 2}};
    const tide_dnnl_post post = {.scale = 1.0f, .act = x->node->activation};
    return tide_dnnl_prim_init(x->node, &d, &post, binds, bias ? 4 : 3, out, err);
}

/// The direct convolution where it is one thread's work and a shape that it takes; else oneDNN.
static tide_status choose(const tide_prepare *x, conv_state *s, size_t *scratch_bytes, tide_error *err) {
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    const int64_t group = tide_node_attr_int(x->node, "group", 1);
    tide_window win;
    TIDE_TRY(tide_op_window(x->node, in, w->dims + 2, &win, err));
    const tide_window wide = tide_window_widen(&win);
    s->direct = (tide_direct_conv){.batch = in->dims[0],
                                   .groups = group,
                                   .channels = w->dims[1],
                                   .filters = w->dims[0] / group,
                                   .act = x->node->activation};
    bool ours = false;
    if (tide_ops_threads() == 1) TIDE_TRY(tide_direct_conv_init(&s->direct, &wide, x->node, &ours, err));
    if (!ours) TIDE_TRY(make_prim(x, &win, group, &s->prim, err));
    *scratch_bytes = ours ? s->direct.scratch_bytes : s->prim.scratch_bytes;
    return TIDE_OK;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    conv_state *s;
    TIDE_TRY(TIDE_OP_NEW(&s, x->node, err));
    const tide_status st = choose(x, s, &k->workspace_bytes, err);
    if (st != TIDE_OK) {
        tide_host_free(s);
        return st;
    }
    k->state = s;
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    conv_state *s = k->state;
    if (s != NULL) tide_direct_conv_deinit(&s->direct);
    tide_dnnl_kernel_destroy(k);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const conv_state *s = k->state;
    if (s == NULL) return TIDE_OK;
    if (s->prim.desc != NULL) return tide_dnnl_kernel_run(k, args, err);
    const float *bias = args->n_in > 2 && tide_operand_present(&args->in[2]) ? args->in[2].data : NULL;
    tide_direct_conv_run(&s->direct, args->in[0].data, args->in[1].data, bias, args->out[0].data, args->workspace);
    return TIDE_OK;
}

const tide_op_def tide_op_conv = {
    .domain = "",
    .name = "Conv",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "auto_pad"), TIDE_ATTR(INTS, "dilations"), TIDE_ATTR(INT, "group"),
                        TIDE_ATTR(INTS, "kernel_shape"), TIDE_ATTR(INTS, "pads"), TIDE_ATTR(INTS, "strides")),
    .flags = TIDE_OP_FUSES_ACT,
    .min_inputs = 2,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .exec_create = tide_dnnl_kernel_exec_create,
    .exec_destroy = tide_dnnl_kernel_exec_destroy,
    .run = run,
};
