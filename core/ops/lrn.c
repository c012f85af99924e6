// SPDX-License-Identifier: MIT
//
// LRN across channels (Krizhevsky et al. 2012, section 3.3): y = x / (bias + alpha / size * sum of squares)^beta, over
// the channels c - floor((size - 1) / 2) … c + ceil((size - 1) / 2). float32.
//
// A loop of ours: oneDNN takes odd sizes only. The usual beta of 0.75 needs no pow: x^-3/4 = 1 / (sqrt(x)
// sqrt(sqrt(x))). May work in place: of a chunk of positions it goes through all channels and keeps those that later
// ones still look back at, before they are overwritten:
//
//     channels  0 1 2 | 3 4 | 5 | 6 7 ...
//               done    kept  now  read where they are
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { CHUNK = 256 }; // elements summed at a time, on the stack

static tide_status infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 2, TIDE_MAX_RANK, err));
    const int64_t size = tide_node_attr_int(x->node, "size", 0);
    if (size < 1)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "attribute 'size' is %" PRId64 ", must be at least 1",
                            size);
    return tide_op_infer_same(x, err);
}

static double work(const tide_infer *x) {
    const int64_t size = tide_node_attr_int(x->node, "size", 0), channels = x->in[0].shape.dims[1];
    return (double)tide_op_numel(&x->in[0].shape) * (double)(size < channels ? size : channels);
}

typedef struct lrn_params {
    int64_t channels, len, size;
    int64_t n_kept; ///< channels that are looked back at
    float alpha, beta, bias;
} lrn_params;

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

static lrn_params params_of(const tide_node *node, const tide_shape *s) {
    lrn_params p = {.channels = s->dims[1],
                    .len = tide_op_count(s, 2, s->rank),
                    .size = tide_node_attr_int(node, "size", 0),
                    .alpha = tide_node_attr_float(node, "alpha", 1e-4f),
                    .beta = tide_node_attr_float(node, "beta", 0.75f),
                    .bias = tide_node_attr_float(node, "bias", 1.0f)};
    p.n_kept = min_i64((p.size - 1) / 2, p.channels - 1);
    return p;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    const lrn_params p = params_of(x->node, &x->in[0].shape);
    const size_t row = (size_t)min_i64(p.len, CHUNK) * sizeof(float);
    if (!tide_mul_size((size_t)p.n_kept, row, &k->workspace_bytes))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "%" PRId64 " channels to look back at", p.n_kept);
    return TIDE_OK;
}

// Normalise elements [begin, begin + n) of channel c; `x` and `y` are the item's first channel. kept[o % n_kept] is
// channel o as it was, for those before c.
static void chunk(const lrn_params *p, const float *x, float *y, float *kept, int64_t c, int64_t begin, int64_t n) {
    float sum[CHUNK] = {0};
    const int64_t before = (p->size - 1) / 2, after = p->size - 1 - before;
    const int64_t first = c > before ? c - before : 0, last = c < p->channels - 1 - after ? c + after : p->channels - 1;
    for (int64_t o = first; o <= last; o++) {
        const float *v = o < c ? kept + o % p->n_kept * n : x + o * p->len + begin;
        for (int64_t i = 0; i < n; i++) sum[i] += v[i] * v[i];
    }
    const float *v = x + c * p->len + begin;
    if (p->n_kept > 0) memcpy(kept + c % p->n_kept * n, v, (size_t)n * sizeof *v);
    float *out = y + c * p->len + begin;
    const float factor = p->alpha / (float)p->size;
    if (p->beta == 0.75f) {
        for (int64_t i = 0; i < n; i++) {
            const float root = sqrtf(p->bias + factor * sum[i]);
            out[i] = v[i] / (root * sqrtf(root));
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = v[i] / powf(p->bias + factor * sum[i], p->beta);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const tide_shape *s = &args->in[0].shape;
    const lrn_params p = params_of(k->node, s);
    const float *x = args->in[0].data;
    float *y = args->out[0].data;
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t b = 0; b < s->dims[0]; b++, x += p.channels * p.len, y += p.channels * p.len)
        for (int64_t i = 0; i < p.len; i += CHUNK)
            for (int64_t c = 0; c < p.channels; c++) chunk(&p, x, y, args->workspace, c, i, min_i64(p.len - i, CHUNK));
    return TIDE_OK;
}

const tide_op_def tide_op_lrn = {
    .domain = "",
    .name = "LRN",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "alpha"), TIDE_ATTR(FLOAT, "beta"), TIDE_ATTR(FLOAT, "bias"),
                        TIDE_ATTR(INT, "size")),
    .inplace_inputs = 1u << 0,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .run = run,
};
