// SPDX-License-Identifier: MIT
//
// Resize (opset 10 to 19) and Upsample (7, 9): one pass per axis that changes.
//
//     [N, C, H, W] --W--> [N, C, H, W'] --H--> [N, C, H', W']
//
// Shrinking axes go first and growing ones inside out, which keeps what lies between small; that lives in the
// workspace. Nearest moves bytes of any dtype, linear and cubic are served for float32.
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/ops.h"
#include "core/ops/resize_map.h"

/// Positions are floats, as in the runtimes that exporters test with: from here on they miss elements.
enum { EXTENT_LIMIT = 1 << 24 };

typedef struct pass {
    tide_resize_axis axis;
    int64_t outer, inner; ///< extents around the axis when this pass runs
    const int64_t *at;    ///< [n_taps][axis.out], elements of the input's axis
    const float *weight;  ///< [n_taps][axis.out]
    const bool *outside;  ///< [axis.out]: takes the extrapolation value; NULL: none does
} pass;

typedef struct resize_state {
    tide_resize_rule rule;
    float extrapolation;
    int n_passes;
    pass passes[TIDE_MAX_RANK];
    size_t buffer_bytes[2]; ///< what passes of even and of odd number leave between them
    int64_t tables[];       ///< all passes' at, then all weights, then all outside flags
} resize_state;

/// Rules by which a scale of 1 leaves every position where it is, without looking at them all.
static bool keeps_place(const tide_resize_spec *s, const tide_resize_axis *a) {
    return a->in == a->out && a->scale == 1.0f && s->rule.coord != TIDE_RESIZE_TF_HALF_PIXEL_FOR_NN &&
           s->rule.coord != TIDE_RESIZE_TF_CROP_AND_RESIZE;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    tide_resize_spec s;
    TIDE_TRY(tide_resize_read_spec(x, &s, err));
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0; d < x->in[0].shape.rank; d++) {
        const tide_resize_axis *const a = &s.axes[d];
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
static bool untouched(const tide_resize_spec *s, const tide_resize_axis *a) {
    if (a->in != a->out) return false;
    if (keeps_place(s, a)) return true;
    for (int64_t i = 0; i < a->out; i++) {
        tide_resize_tap tap;
        tide_resize_tap_at(&s->rule, a, i, &tap);
        const int own = s->rule.mode == TIDE_RESIZE_CUBIC ? 1 : 0;
        if (tap.outside || tap.at[own] != i || tap.weight[own] != 1.0f) return false;
    }
    return true;
}

/// Whether `a` goes before `b`: the one that shrinks more, or of equals the inner one.
static bool goes_before(const tide_resize_axis *a, const tide_resize_axis *b) {
    const double ra = (double)a->out / (double)a->in, rb = (double)b->out / (double)b->in;
    return ra != rb ? ra < rb : a->axis > b->axis;
}

static int order_axes(const tide_resize_spec *s, int32_t rank, tide_resize_axis out[TIDE_MAX_RANK]) {
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
static void fill_tables(const tide_resize_rule *rule, const tide_resize_axis *axis, pass *p, tables *to) {
    const int n_taps = tide_resize_n_taps(rule->mode);
    bool any_outside = false;
    for (int64_t i = 0; i < axis->out; i++) {
        tide_resize_tap tap;
        tide_resize_tap_at(rule, axis, i, &tap);
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

static tide_status plan_passes(const tide_prepare *x, resize_state *st, const tide_resize_axis *axes, tables to,
                               tide_error *err) {
    tide_shape shape = x->in[0].shape;
    for (int p = 0; p < st->n_passes; p++) {
        const int32_t d = axes[p].axis;
        st->passes[p] = (pass){.axis = axes[p],
                               .outer = tide_data_extent(&shape, 0, d),
                               .inner = tide_data_extent(&shape, d + 1, shape.rank)};
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
    tide_resize_spec s;
    TIDE_TRY(tide_resize_read_spec(&again, &s, err));
    if (tide_data_numel(&x->out[0].shape) == 0) return TIDE_OK;
    tide_resize_axis axes[TIDE_MAX_RANK];
    const int n = order_axes(&s, x->in[0].shape.rank, axes);
    size_t n_out = 0, n_taps, bytes;
    bool fits = true;
    for (int p = 0; p < n; p++) fits = fits && tide_add_size(n_out, (size_t)axes[p].out, &n_out);
    const size_t tap_bytes = sizeof(int64_t) + sizeof(float);
    fits = fits && tide_mul_size(n_out, (size_t)tide_resize_n_taps(s.rule.mode), &n_taps) &&
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
        if (st->rule.mode == TIDE_RESIZE_NEAREST)
            pass_nearest(&st->passes[p], tide_dtype_size(a->in[0].dtype), in, out);
        else
            pass_weighted(&st->passes[p], tide_resize_n_taps(st->rule.mode), in, out);
        extrapolate(&st->passes[p], st->extrapolation, a->in[0].dtype, out);
        in = out;
    }
    return TIDE_OK;
}

#define OP_DEF(row_name, text, since_version, until_version, least_inputs, most_inputs)                                \
    const tide_op_def tide_op_##row_name = {.name = text,                                                              \
                                            .domain = "",                                                              \
                                            .since = since_version,                                                    \
                                            .until = until_version,                                                    \
                                            .min_inputs = least_inputs,                                                \
                                            .max_inputs = most_inputs,                                                 \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 1,                                                          \
                                            .infer = infer,                                                            \
                                            .prepare = prepare,                                                        \
                                            .destroy = destroy,                                                        \
                                            .run = run};
OP_DEF(upsample_7, "Upsample", 7, 8, 1, 1)
OP_DEF(upsample_9, "Upsample", 9, 9, 2, 2)
OP_DEF(resize_10, "Resize", 10, 10, 2, 2)
OP_DEF(resize_11, "Resize", 11, 0, 1, 4)
