// SPDX-License-Identifier: MIT
//
// Softmax and LogSoftmax, float32. The operand is seen as [outer, n, inner] and normalised over n. Before opset 13 the
// axis only says where the shape is cut into a matrix: everything from it on is normalised together.
//
// inner == 1 runs on oneDNN ("jit:avx512_core"). For inner > 1 oneDNN 2.6 has only its reference, 50 ns per element
// on [1, 1000, 49]; the loop here takes rows of `inner` at once and keeps two of them as scratch.
#include <math.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

typedef struct softmax_state {
    tide_dnnl_prim prim; ///< without a primitive the loop runs
    int64_t outer, n, inner;
    bool log;
} softmax_state;

static tide_status view(const tide_node *node, const tide_shape *s, bool flatten, softmax_state *v, tide_error *err) {
    int32_t axis;
    TIDE_TRY(tide_op_axis(node, tide_node_attr_int(node, "axis", flatten ? 1 : -1), s->rank, &axis, err));
    v->outer = tide_op_count(s, 0, axis);
    v->n = flatten ? tide_op_count(s, axis, s->rank) : s->rank == 0 ? 1 : s->dims[axis];
    v->inner = flatten ? 1 : tide_op_count(s, axis + 1, s->rank);
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, bool flatten, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "input", TIDE_F32, err));
    softmax_state v;
    TIDE_TRY(view(x->node, &x->in[0].shape, flatten, &v, err));
    return tide_op_infer_same(x, err);
}
static tide_status infer_1(const tide_infer *x, tide_error *err) { return infer(x, true, err); }
static tide_status infer_13(const tide_infer *x, tide_error *err) { return infer(x, false, err); }

static tide_status make_prim(const tide_node *node, softmax_state *s, tide_error *err) {
    dnnl_memory_desc_t md;
    TIDE_TRY(tide_dnnl_md(node, 2, (const int64_t[]){s->outer, s->n}, NULL, &md, err));
    dnnl_softmax_v2_desc_t d;
    const dnnl_status_t ds = tide__dnnl_softmax_v2_forward_desc_init(
        &d, dnnl_forward_inference, s->log ? dnnl_softmax_log : dnnl_softmax_accurate, &md, &md, 1);
    if (ds != dnnl_success) return tide_dnnl_fail(err, node, ds, "softmax");
    static const tide_dnnl_bind binds[] = {{DNNL_ARG_SRC, false, 0}, {DNNL_ARG_DST, true, 0}};
    return tide_dnnl_prim_init(node, &d, NULL, binds, 2, &s->prim, err);
}

static tide_status prepare(const tide_prepare *x, bool flatten, tide_kernel *k, tide_error *err) {
    softmax_state v = {.log = x->node->op_type[0] == 'L'};
    TIDE_TRY(view(x->node, &x->in[0].shape, flatten, &v, err));
    if (tide_op_numel(&x->in[0].shape) == 0) return TIDE_OK;
    softmax_state *s;
    TIDE_TRY(TIDE_OP_NEW(&s, x->node, err));
    *s = v;
    if (s->inner == 1) {
        const tide_status st = make_prim(x->node, s, err);
        if (st != TIDE_OK) {
            tide_host_free(s);
            return st;
        }
        k->workspace_bytes = s->prim.scratch_bytes;
    } else {
        k->workspace_bytes = (size_t)s->inner * 2 * sizeof(float); // fits: inner * 4 < 2^63
    }
    k->state = s;
    return TIDE_OK;
}
static tide_status prepare_1(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    return prepare(x, true, k, err);
}
static tide_status prepare_13(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    return prepare(x, false, k, err);
}

// One [n, inner] slab. `max` and `sum` are rows of `inner`; x and y may be the same.
static void slab(const softmax_state *s, const float *x, float *y, float *max, float *sum) {
    const int64_t n = s->n, inner = s->inner;
    memcpy(max, x, (size_t)inner * sizeof *max);
    for (int64_t r = 1; r < n; r++)
        for (int64_t i = 0; i < inner; i++) max[i] = x[r * inner + i] > max[i] ? x[r * inner + i] : max[i];
    memset(sum, 0, (size_t)inner * sizeof *sum);
    for (int64_t r = 0; r < n; r++) {
        for (int64_t i = 0; i < inner; i++) {
            const float shifted = x[r * inner + i] - max[i], e = expf(shifted);
            sum[i] += e;
            y[r * inner + i] = s->log ? shifted : e;
        }
    }
    for (int64_t i = 0; i < inner; i++) sum[i] = s->log ? logf(sum[i]) : 1.0f / sum[i];
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < inner; i++)
            y[r * inner + i] = s->log ? y[r * inner + i] - sum[i] : y[r * inner + i] * sum[i];
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const softmax_state *s = k->state;
    if (s == NULL) return TIDE_OK;
    if (s->prim.desc != NULL) return tide_dnnl_kernel_run(k, args, err);
    const float *x = args->in[0].data;
    float *y = args->out[0].data, *rows = args->workspace;
    const int64_t slab_len = s->n * s->inner;
    for (int64_t o = 0; o < s->outer; o++) slab(s, x + o * slab_len, y + o * slab_len, rows, rows + s->inner);
    return TIDE_OK;
}

#define ROW(row, name_, since_, until_, infer_, prepare_)                                                              \
    const tide_op_def tide_op_##row = {                                                                                \
        .domain = "",                                                                                                  \
        .name = name_,                                                                                                 \
        .since = since_,                                                                                               \
        .until = until_,                                                                                               \
        .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),                                                                   \
        .inplace_inputs = 1u << 0,                                                                                     \
        .min_inputs = 1,                                                                                               \
        .max_inputs = 1,                                                                                               \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .infer = infer_,                                                                                               \
        .prepare = prepare_,                                                                                           \
        .destroy = tide_dnnl_kernel_destroy,                                                                           \
        .exec_create = tide_dnnl_kernel_exec_create,                                                                   \
        .exec_destroy = tide_dnnl_kernel_exec_destroy,                                                                 \
        .run = run,                                                                                                    \
    };
ROW(softmax_1, "Softmax", 1, 12, infer_1, prepare_1)
ROW(softmax_13, "Softmax", 13, 0, infer_13, prepare_13)
ROW(log_softmax_1, "LogSoftmax", 1, 12, infer_1, prepare_1)
ROW(log_softmax_13, "LogSoftmax", 13, 0, infer_13, prepare_13)
