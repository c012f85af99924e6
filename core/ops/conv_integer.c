// SPDX-License-Identifier: MIT
//
// ConvInteger and QLinearConv: convolutions of 8-bit numbers, 1-D to 3-D, with groups and dilations.
//
//     ConvInteger   y = sum (x - x_zero) * (w - w_zero)                        int32, which wraps
//     QLinearConv   y = saturate(round((sum + bias) * x_scale * w_scale / y_scale) + y_zero)
//
// What is padded is x_zero, so it adds nothing. Scale and zero point of W are one, or one for each output channel. One
// row of the output at a time, in the output itself or in the scratch: each number of W adds a row of X to it.
#include "core/base/checked.h"
#include "core/ops/op_util.h"
#include "core/ops/requantize.h"

/// Which inputs hold what; -1: the operator has none.
typedef struct operands {
    int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} operands;

static const operands integer_in = {
    .x = 0, .x_scale = -1, .x_zero = 2, .w = 1, .w_scale = -1, .w_zero = 3, .y_scale = -1, .y_zero = -1, .bias = -1};
static const operands linear_in = {
    .x = 0, .x_scale = 1, .x_zero = 2, .w = 3, .w_scale = 4, .w_zero = 5, .y_scale = 6, .y_zero = 7, .bias = 8};

static bool has(const tide_infer *x, int i) { return i >= 0 && tide_op_has_in(x, (size_t)i); }

static tide_status check_channels(const tide_infer *x, const tide_shape *in, const tide_shape *w, tide_error *err) {
    const int64_t group = tide_node_attr_int(x->node, "group", 1);
    char in_s[192], w_s[192];
    if (group >= 1 && group <= in->dims[1] && in->dims[1] % group == 0 && in->dims[1] / group == w->dims[1] &&
        w->dims[0] % group == 0)
        return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                        "x is %s, w is %s, group is %lld: w must be [M, C/group, ...] with M a multiple of group",
                        tide_shape_format(in, in_s, sizeof in_s), tide_shape_format(w, w_s, sizeof w_s),
                        (long long)group);
}

static tide_status check_kernel_shape(const tide_node *node, const tide_shape *w, tide_error *err) {
    size_t n = 0;
    const int64_t *list = tide_node_attr_ints(node, "kernel_shape", &n);
    bool same = list == NULL || n == (size_t)(w->rank - 2);
    for (size_t i = 0; list != NULL && same && i < n; i++) same = list[i] == w->dims[i + 2];
    if (same) return TIDE_OK;
    char s[192];
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "kernel_shape does not agree with the weights %s",
                        tide_shape_format(w, s, sizeof s));
}

/// A scale (float32) or zero point: one, or with `n` > 1 also one for each output channel.
static tide_status check_parameter(const tide_infer *x, int i, const char *what, tide_dtype dtype, int64_t n,
                                   tide_error *err) {
    if (!has(x, i)) return TIDE_OK;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], what, dtype, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[i], what, 0, 1, err));
    const int64_t have = tide_op_numel(&x->in[i].shape);
    if (have == 1 || have == n) return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%s has %lld elements, must have 1%s", what, (long long)have,
                        n > 1 ? ", or one for each output channel" : "");
}

static tide_status check_parameters(const tide_infer *x, const operands *o, tide_error *err) {
    const int64_t n = x->in[o->w].shape.dims[0];
    TIDE_TRY(check_parameter(x, o->x_zero, "x_zero_point", x->in[o->x].dtype, 1, err));
    TIDE_TRY(check_parameter(x, o->w_zero, "w_zero_point", x->in[o->w].dtype, n, err));
    if (o->y_scale < 0) return TIDE_OK;
    TIDE_TRY(check_parameter(x, o->x_scale, "x_scale", TIDE_F32, 1, err));
    TIDE_TRY(check_parameter(x, o->w_scale, "w_scale", TIDE_F32, n, err));
    TIDE_TRY(check_parameter(x, o->y_scale, "y_scale", TIDE_F32, 1, err));
    if (!tide_is_quantised(x->in[o->y_zero].dtype)) return tide_data_no_dtype(x->node, x->in[o->y_zero].dtype, err);
    TIDE_TRY(check_parameter(x, o->y_zero, "y_zero_point", x->in[o->y_zero].dtype, 1, err));
    if (!has(x, o->bias)) return TIDE_OK;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[o->bias], "B", TIDE_I32, err));
    return tide_op_require_shape(x->node, &x->in[o->bias], "B", &(tide_shape){1, {n}}, err);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const operands *o = x->node->def->family;
    const tide_operand *in = &x->in[o->x], *w = &x->in[o->w];
    tide_window win;
    if (!tide_is_quantised(in->dtype)) return tide_data_no_dtype(x->node, in->dtype, err);
    if (!tide_is_quantised(w->dtype)) return tide_data_no_dtype(x->node, w->dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, in, "x", 3, 2 + TIDE_WINDOW_MAX, err));
    TIDE_TRY(tide_op_require_rank(x->node, w, "w", in->shape.rank, in->shape.rank, err));
    TIDE_TRY(check_channels(x, &in->shape, &w->shape, err));
    TIDE_TRY(check_kernel_shape(x->node, &w->shape, err));
    TIDE_TRY(check_parameters(x, o, err));
    TIDE_TRY(tide_op_window(x->node, &in->shape, w->shape.dims + 2, &win, err));
    int64_t dims[TIDE_MAX_RANK] = {in->shape.dims[0], w->shape.dims[0]};
    for (int32_t i = 0; i < win.n; i++) dims[i + 2] = win.out[i];
    return tide_op_set_out(x, 0, o->y_zero >= 0 ? x->in[o->y_zero].dtype : TIDE_I32, in->shape.rank, dims, err);
}

static double work(const tide_infer *x) {
    const operands *o = x->node->def->family;
    const tide_shape *w = &x->in[o->w].shape;
    return (double)tide_op_numel(&x->out[0].shape) * (double)tide_op_count(w, 1, w->rank);
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const operands *o = x->node->def->family;
    const tide_shape *out = &x->out[0].shape;
    if (o->y_scale < 0 || tide_op_numel(out) == 0) return TIDE_OK;
    if (!tide_mul_size((size_t)out->dims[out->rank - 1], sizeof(uint32_t), &k->workspace_bytes))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "a row of the output is too long");
    return TIDE_OK;
}

// ---- the loops ----

/// What a run works on; the window is widened to three dimensions.
typedef struct job {
    tide_window w;
    int64_t channels; ///< of one group
    const tide_operand *x, *weights;
    int32_t x_zero;
} job;

static int32_t zero_at(const tide_kernel_args *a, int i, int64_t channel) {
    if (i < 0 || (size_t)i >= a->n_in || !tide_operand_present(&a->in[i])) return 0;
    const bool one = tide_op_numel(&a->in[i].shape) == 1;
    return (int32_t)tide_data_load_i64(a->in[i].dtype, a->in[i].data, one ? 0 : channel);
}

static float scale_at(const tide_operand *o, int64_t channel) {
    return ((const float *)o->data)[tide_op_numel(&o->shape) == 1 ? 0 : channel];
}

/// sum [out] += the row of X under tap `kw` of the last dimension, times `factor`.
static void add_tap(const job *j, uint32_t *sum, int64_t row, int64_t kw, int32_t factor) {
    const tide_window *w = &j->w;
    const int64_t s = w->stride[2], shift = kw * w->dilation[2] - w->pad_begin[2], last = w->in[2] - 1 - shift;
    const int64_t begin = shift >= 0 ? 0 : (-shift + s - 1) / s;
    const int64_t end = last < 0 ? 0 : last / s + 1 < w->out[2] ? last / s + 1 : w->out[2];
    if (begin >= end || factor == 0) return;
    tide_add_products(j->x->dtype, sum + begin, tide_data_const_at(j->x->data, row * w->in[2] + begin * s + shift, 1),
                      end - begin, s, factor, j->x_zero);
}

/// The input row that tap `k` of dimension `d` reads for output `o`; -1: it is padding.
static int64_t row_under(const tide_window *w, int32_t d, int64_t o, int64_t k) {
    const int64_t at = o * w->stride[d] + k * w->dilation[d] - w->pad_begin[d];
    return at >= 0 && at < w->in[d] ? at : -1;
}

/// Sums of output row (od, oh) of channel `m`, whose group begins at plane `plane` of X.
static void row_of_sums(const job *j, int64_t plane, int64_t m, int32_t w_zero, int64_t od, int64_t oh, uint32_t *sum) {
    const tide_window *w = &j->w;
    int64_t at = m * j->channels * w->kernel[0] * w->kernel[1] * w->kernel[2];
    memset(sum, 0, (size_t)w->out[2] * sizeof *sum);
    for (int64_t c = 0; c < j->channels; c++)
        for (int64_t kd = 0; kd < w->kernel[0]; kd++)
            for (int64_t kh = 0; kh < w->kernel[1]; kh++, at += w->kernel[2]) {
                const int64_t id = row_under(w, 0, od, kd), ih = row_under(w, 1, oh, kh);
                if (id < 0 || ih < 0) continue;
                for (int64_t kw = 0; kw < w->kernel[2]; kw++) {
                    const int64_t v = tide_data_load_i64(j->weights->dtype, j->weights->data, at + kw);
                    add_tap(j, sum, ((plane + c) * w->in[0] + id) * w->in[1] + ih, kw, (int32_t)v - w_zero);
                }
            }
}

static void write_row(const operands *o, const tide_kernel_args *a, int64_t m, int64_t at, int64_t n,
                      const uint32_t *sum) {
    const float scale =
        scale_at(&a->in[o->x_scale], 0) * scale_at(&a->in[o->w_scale], m) / scale_at(&a->in[o->y_scale], 0);
    const int32_t zero = zero_at(a, o->y_zero, 0);
    const bool has_bias = (size_t)o->bias < a->n_in && tide_operand_present(&a->in[o->bias]);
    const uint32_t bias = has_bias ? (uint32_t)((const int32_t *)a->in[o->bias].data)[m] : 0;
    for (int64_t i = 0; i < n; i++)
        tide_requantize(a->out[0].dtype, a->out[0].data, at + i, sum[i] + bias, scale, zero);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const operands *o = k->def->family;
    const tide_shape *in = &a->in[o->x].shape, *ws = &a->in[o->w].shape;
    tide_window win;
    TIDE_TRY(tide_op_window(k->node, in, ws->dims + 2, &win, err));
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    const job j = {tide_window_widen(&win), ws->dims[1], &a->in[o->x], &a->in[o->w], zero_at(a, o->x_zero, 0)};
    const int64_t group = tide_node_attr_int(k->node, "group", 1), per_group = ws->dims[0] / group;
    const int64_t n_rows = j.w.out[0] * j.w.out[1], n = j.w.out[2];
    for (int64_t p = 0; p < in->dims[0] * ws->dims[0]; p++) {
        const int64_t b = p / ws->dims[0], m = p % ws->dims[0];
        const int64_t plane = b * in->dims[1] + m / per_group * j.channels;
        for (int64_t r = 0; r < n_rows; r++) {
            const int64_t at = (p * n_rows + r) * n;
            uint32_t *sum = o->y_scale >= 0 ? a->workspace : (uint32_t *)a->out[0].data + at;
            row_of_sums(&j, plane, m, zero_at(a, o->w_zero, m), r / j.w.out[1], r % j.w.out[1], sum);
            if (o->y_scale >= 0) write_row(o, a, m, at, n, sum);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_conv_integer = {
    .name = "ConvInteger",
    .domain = "",
    .since = 10,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "auto_pad"), TIDE_ATTR(INTS, "dilations"), TIDE_ATTR(INT, "group"),
                        TIDE_ATTR(INTS, "kernel_shape"), TIDE_ATTR(INTS, "pads"), TIDE_ATTR(INTS, "strides")),
    .min_inputs = 2,
    .max_inputs = 4,
    .min_outputs = 1,
    .max_outputs = 1,
    .family = &integer_in,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .run = run};
const tide_op_def tide_op_qlinear_conv = {
    .name = "QLinearConv",
    .domain = "",
    .since = 10,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "auto_pad"), TIDE_ATTR(INTS, "dilations"), TIDE_ATTR(INT, "group"),
                        TIDE_ATTR(INTS, "kernel_shape"), TIDE_ATTR(INTS, "pads"), TIDE_ATTR(INTS, "strides")),
    .min_inputs = 8,
    .max_inputs = 9,
    .min_outputs = 1,
    .max_outputs = 1,
    .family = &linear_in,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .run = run};
