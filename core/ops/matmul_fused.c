// SPDX-License-Identifier: MIT
//
// FusedMatMul and TransposeMatMul of com.microsoft, float32: MatMul of operands whose axes change places first, times
// alpha, on oneDNN. Nothing is turned round in memory, places are strides.
//
//     transA       the last two axes of A change places
//     transBatchA  A [d0, d1 … dn, k] is read as [d1 … dn, d0, k]
//
// The same of B; an operand of rank 1 stays as it is.
#include <string.h>

#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

/// An operand as it is read.
typedef struct turned {
    tide_shape shape;
    int64_t strides[TIDE_MAX_RANK + 1];
} turned;

static void swap(turned *t, int32_t i, int32_t j) {
    const int64_t extent = t->shape.dims[i], stride = t->strides[i];
    t->shape.dims[i] = t->shape.dims[j];
    t->strides[i] = t->strides[j];
    t->shape.dims[j] = extent;
    t->strides[j] = stride;
}

static turned turn(const tide_node *node, const tide_shape *s, bool is_a) {
    turned t = {.shape = *s};
    int64_t step = 1;
    for (int32_t i = s->rank; i-- > 0; step *= s->dims[i]) t.strides[i] = step;
    if (s->rank < 2) return t;
    if (tide_node_attr_int(node, is_a ? "transBatchA" : "transBatchB", 0) != 0)
        for (int32_t i = 0; i + 2 < s->rank; i++) swap(&t, i, i + 1);
    if (tide_node_attr_int(node, is_a ? "transA" : "transB", 0) != 0) swap(&t, s->rank - 2, s->rank - 1);
    return t;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"A", "B"};
    for (size_t i = 0; i < 2; i++) {
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
        TIDE_TRY(tide_op_require_rank(x->node, &x->in[i], names[i], 1, TIDE_MAX_RANK, err));
    }
    const turned a = turn(x->node, &x->in[0].shape, true), b = turn(x->node, &x->in[1].shape, false);
    tide_product p;
    TIDE_TRY(tide_op_product(x->node, &a.shape, &b.shape, &p, err));
    return tide_op_set_product(x, TIDE_F32, &p, err);
}

static double work(const tide_infer *x) {
    const turned a = turn(x->node, &x->in[0].shape, true);
    return (double)tide_op_numel(&x->out[0].shape) * (double)a.shape.dims[a.shape.rank - 1];
}

/// The descriptor of [batch, rows, columns]. `t` NULL: the output, without gaps.
static tide_status describe(const tide_node *node, const tide_shape *batch, int64_t rows, int64_t columns,
                            const turned *t, bool is_row, dnnl_memory_desc_t *md, tide_error *err) {
    int64_t dims[TIDE_MAX_RANK + 2], strides[TIDE_MAX_RANK + 2];
    const int32_t n = batch->rank;
    for (int32_t i = 0; i < n; i++) dims[i] = batch->dims[i];
    dims[n] = rows;
    dims[n + 1] = columns;
    if (t == NULL) return tide_dnnl_md(node, n + 2, dims, NULL, md, err);
    if (t->shape.rank == 1) {
        strides[n] = is_row ? columns : 1;
        strides[n + 1] = 1;
    } else {
        strides[n] = t->strides[t->shape.rank - 2];
        strides[n + 1] = t->strides[t->shape.rank - 1];
    }
    const int64_t whole = tide_op_numel(&t->shape);
    for (int32_t i = 0; i < n; i++) { // axes that the operand does not have are of extent 1
        const int32_t own = i - (n - (t->shape.rank > 2 ? t->shape.rank - 2 : 0));
        strides[i] = own < 0 ? whole : t->strides[own];
    }
    return tide_dnnl_md(node, n + 2, dims, strides, md, err);
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const turned a = turn(x->node, &x->in[0].shape, true), b = turn(x->node, &x->in[1].shape, false);
    tide_product p;
    TIDE_TRY(tide_op_product(x->node, &a.shape, &b.shape, &p, err));
    if (tide_op_numel(&x->out[0].shape) == 0 || p.k == 0) return TIDE_OK;
    dnnl_memory_desc_t src, wei, dst;
    TIDE_TRY(describe(x->node, &p.a, p.m, p.k, &a, true, &src, err));
    TIDE_TRY(describe(x->node, &p.b, p.k, p.n, &b, false, &wei, err));
    TIDE_TRY(describe(x->node, &p.out, p.m, p.n, NULL, false, &dst, err));
    dnnl_matmul_desc_t d;
    const dnnl_status_t ds = tide__dnnl_matmul_desc_init(&d, &src, &wei, NULL, &dst);
    if (ds != dnnl_success) return tide_dnnl_fail(err, x->node, ds, "matmul");
    static const tide_dnnl_bind binds[] = {
        {DNNL_ARG_SRC, false, 0}, {DNNL_ARG_WEIGHTS, false, 1}, {DNNL_ARG_DST, true, 0}};
    const tide_dnnl_post post = {.scale = tide_node_attr_float(x->node, "alpha", 1)};
    return tide_dnnl_kernel_set(k, &d, &post, binds, 3, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    if (k->state != NULL) return tide_dnnl_kernel_run(k, args, err);
    // An inner extent of 0: every element is the empty sum.
    if (args->out[0].size_bytes > 0) memset(args->out[0].data, 0, args->out[0].size_bytes);
    return TIDE_OK;
}

#define ROW(row, name_)                                                                                                \
    const tide_op_def tide_op_##row = {                                                                                \
        .domain = "com.microsoft",                                                                                     \
        .name = name_,                                                                                                 \
        .since = 1,                                                                                                    \
        .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "alpha"), TIDE_ATTR(INT, "transA"), TIDE_ATTR(INT, "transB"),             \
                            TIDE_ATTR(INT, "transBatchA"), TIDE_ATTR(INT, "transBatchB")),                             \
        .min_inputs = 2,                                                                                               \
        .max_inputs = 2,                                                                                               \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .infer = infer,                                                                                                \
        .work = work,                                                                                                  \
        .prepare = prepare,                                                                                            \
        .destroy = tide_dnnl_kernel_destroy,                                                                           \
        .exec_create = tide_dnnl_kernel_exec_create,                                                                   \
        .exec_destroy = tide_dnnl_kernel_exec_destroy,                                                                 \
        .run = run,                                                                                                    \
    };
ROW(fused_matmul, "FusedMatMul")
ROW(transpose_matmul, "TransposeMatMul")
