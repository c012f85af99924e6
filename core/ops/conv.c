// SPDX-License-Identifier: MIT
//
// Conv: 1-D, 2-D and 3-D, groups, dilations, optional bias, fused activation; float32, plain layouts. Runs on oneDNN,
// depthwise ones on our own loop.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "core/ops/act.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

// ---- depthwise ----
//
// oneDNN's plain layout runs convolutions with one input channel per group as one tiny matrix product per channel: 3 to
// 6 GFLOP/s here, and an im2col scratch of its own; its fast kernel wants channels last, that is two reorders and a
// second copy of both operands. The loop here takes one output row at a time and adds kernel taps as shifted rows,
// which the compiler turns into vector code.

/// Convolve [batch, groups, in…] with [groups * multiplier, 1, kernel…] into [batch, groups * multiplier, out…].
typedef struct depthwise {
    int64_t batch, groups, multiplier;
    tide_window window; ///< widened
    tide_activation act;
} depthwise;

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

// Outputs ow whose tap reads inside the row: 0 <= ow * stride + shift < in.
static void tap_range(const tide_window *w, int64_t shift, int64_t *begin, int64_t *end) {
    const int64_t s = w->stride[2], last = w->in[2] - 1 - shift;
    *begin = shift >= 0 ? 0 : (-shift + s - 1) / s;
    *end = last < 0 ? 0 : min_i64(w->out[2], last / s + 1);
}

// y[ow] += f * x[ow * stride + shift] wherever that is inside.
static void add_tap(const tide_window *w, const float *restrict x, float f, int64_t shift, float *restrict y) {
    int64_t begin, end;
    tap_range(w, shift, &begin, &end);
    const int64_t s = w->stride[2];
    if (s == 1) {
        for (int64_t i = begin; i < end; i++) y[i] += f * x[i + shift];
    } else if (s == 2) {
        for (int64_t i = begin; i < end; i++) y[i] += f * x[2 * i + shift];
    } else {
        for (int64_t i = begin; i < end; i++) y[i] += f * x[i * s + shift];
    }
}

// Three neighbouring taps in one pass over the interior: a third of the loads and stores of y. The order of additions
// per element is that of three add_tap calls.
static void add_taps_3(const tide_window *w, const float *restrict x, const float *f, int64_t shift,
                       float *restrict y) {
    const int64_t s = w->stride[2], d = w->dilation[2];
    int64_t begin, end, unused;
    tap_range(w, shift, &begin, &unused);
    tap_range(w, shift + 2 * d, &unused, &end);
    begin = min_i64(begin, w->out[2]);
    end = max_i64(begin, end);
    const float f0 = f[0], f1 = f[1], f2 = f[2];
    if (s == 1)
        for (int64_t i = begin; i < end; i++)
            y[i] = ((y[i] + f0 * x[i + shift]) + f1 * x[i + shift + d]) + f2 * x[i + shift + 2 * d];
    else if (s == 2)
        for (int64_t i = begin; i < end; i++)
            y[i] = ((y[i] + f0 * x[2 * i + shift]) + f1 * x[2 * i + shift + d]) + f2 * x[2 * i + shift + 2 * d];
    else
        for (int64_t i = begin; i < end; i++)
            y[i] = ((y[i] + f0 * x[i * s + shift]) + f1 * x[i * s + shift + d]) + f2 * x[i * s + shift + 2 * d];
    for (int64_t i = 0; i < w->out[2]; i++) {
        if (i == begin) i = end;
        if (i >= w->out[2]) break;
        for (int64_t t = 0; t < 3; t++) {
            const int64_t at = i * s + shift + t * d;
            if (at >= 0 && at < w->in[2]) y[i] += f[t] * x[at];
        }
    }
}

static void add_row(const tide_window *w, const float *x, const float *f, float *y) {
    int64_t k = 0;
    for (; k + 3 <= w->kernel[2]; k += 3) add_taps_3(w, x, f + k, k * w->dilation[2] - w->pad_begin[2], y);
    for (; k < w->kernel[2]; k++) add_tap(w, x, f[k], k * w->dilation[2] - w->pad_begin[2], y);
}

static void plane(const depthwise *d, const float *x, const float *f, float bias, float *y) {
    const tide_window *w = &d->window;
    for (int64_t od = 0; od < w->out[0]; od++) {
        for (int64_t oh = 0; oh < w->out[1]; oh++, y += w->out[2]) {
            for (int64_t i = 0; i < w->out[2]; i++) y[i] = bias;
            for (int64_t kd = 0; kd < w->kernel[0]; kd++) {
                const int64_t id = od * w->stride[0] + kd * w->dilation[0] - w->pad_begin[0];
                if (id < 0 || id >= w->in[0]) continue;
                for (int64_t kh = 0; kh < w->kernel[1]; kh++) {
                    const int64_t ih = oh * w->stride[1] + kh * w->dilation[1] - w->pad_begin[1];
                    if (ih < 0 || ih >= w->in[1]) continue;
                    add_row(w, x + (id * w->in[1] + ih) * w->in[2], f + (kd * w->kernel[1] + kh) * w->kernel[2], y);
                }
            }
            tide_act_apply(&d->act, y, w->out[2]);
        }
    }
}

/// `bias` may be NULL. Single-threaded, needs no scratch, adds in a fixed order.
static void depthwise_run(const depthwise *d, const float *x, const float *w, const float *bias, float *y) {
    const tide_window *v = &d->window;
    const int64_t in_len = v->in[0] * v->in[1] * v->in[2], out_len = v->out[0] * v->out[1] * v->out[2];
    const int64_t taps = v->kernel[0] * v->kernel[1] * v->kernel[2], n_out = d->groups * d->multiplier;
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t c = 0; c < n_out; c++) {
            const float *plane_x = x + (b * d->groups + c / d->multiplier) * in_len;
            plane(d, plane_x, w + c * taps, bias != NULL ? bias[c] : 0.0f, y + (b * n_out + c) * out_len);
        }
    }
}

// ---- Conv ----

// One input channel per group and at most this many outputs of it: our loop. From there on a matrix product pays again.
// A single channel into a single channel counts too: oneDNN has only its reference for it (197 ms for a row of 44098
// under a kernel of 256 with stride 2; the loop takes 0.6).
enum { MULTIPLIER_MAX = 4 };

typedef struct conv_state {
    tide_dnnl_prim prim; ///< without a primitive `depthwise` runs
    depthwise depthwise;
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

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    const tide_shape *in = &x->in[0].shape, *w = &x->in[1].shape;
    const int64_t group = tide_node_attr_int(x->node, "group", 1);
    tide_window win;
    TIDE_TRY(tide_op_window(x->node, in, w->dims + 2, &win, err));
    conv_state *s;
    TIDE_TRY(TIDE_OP_NEW(&s, x->node, err));
    if (w->dims[1] == 1 && w->dims[0] / group <= MULTIPLIER_MAX) {
        s->depthwise =
            (depthwise){in->dims[0], group, w->dims[0] / group, tide_window_widen(&win), x->node->activation};
    } else {
        const tide_status st = make_prim(x, &win, group, &s->prim, err);
        if (st != TIDE_OK) {
            tide_host_free(s);
            return st;
        }
        k->workspace_bytes = s->prim.scratch_bytes;
    }
    k->state = s;
    return TIDE_OK;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const conv_state *s = k->state;
    if (s == NULL) return TIDE_OK;
    if (s->prim.desc != NULL) return tide_dnnl_kernel_run(k, args, err);
    const float *bias = args->n_in > 2 && tide_operand_present(&args->in[2]) ? args->in[2].data : NULL;
    depthwise_run(&s->depthwise, args->in[0].data, args->in[1].data, bias, args->out[0].data);
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
    .destroy = tide_dnnl_kernel_destroy,
    .exec_create = tide_dnnl_kernel_exec_create,
    .exec_destroy = tide_dnnl_kernel_exec_destroy,
    .run = run,
};
