// SPDX-License-Identifier: MIT
//
// MatMul with numpy's rules: vectors are promoted, batch extents broadcast. float32, fused activation. Runs on
// oneDNN's matmul in the smallest rank that says the same: a shared right operand is one 2-D product.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/ops/act.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "A", TIDE_F32, err));
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[1], "B", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "A", 1, TIDE_MAX_RANK, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[1], "B", 1, TIDE_MAX_RANK, err));
    tide_product p;
    TIDE_TRY(tide_op_product(x->node, &x->in[0].shape, &x->in[1].shape, &p, err));
    return tide_op_set_product(x, TIDE_F32, &p, err);
}

static double work(const tide_infer *x) {
    const tide_shape *a = &x->in[0].shape;
    return (double)tide_op_numel(&x->out[0].shape) * (double)a->dims[a->rank - 1];
}

// Join neighbouring batch extents that broadcast the same way, drop those of 1, and fold a's batch into its rows when
// b has none: [8, 12, 128, 64] x [64, 64] is [12288, 64] x [64, 64].
static void collapse(tide_product *p) {
    tide_shape a = {0}, b = {0}, out = {0};
    for (int32_t i = 0; i < p->out.rank; i++) {
        if (p->out.dims[i] == 1) continue;
        const int32_t last = out.rank - 1;
        const bool a_one = p->a.dims[i] == 1, b_one = p->b.dims[i] == 1;
        if (last >= 0 && a_one == (a.dims[last] == 1) && b_one == (b.dims[last] == 1)) {
            a.dims[last] *= p->a.dims[i];
            b.dims[last] *= p->b.dims[i];
            out.dims[last] *= p->out.dims[i];
            continue;
        }
        a.dims[out.rank] = p->a.dims[i];
        b.dims[out.rank] = p->b.dims[i];
        out.dims[out.rank++] = p->out.dims[i];
    }
    if (out.rank == 1 && b.dims[0] == 1 && out.dims[0] <= INT32_MAX / p->m) {
        p->m *= out.dims[0];
        out.rank = 0;
    }
    a.rank = b.rank = out.rank;
    p->a = a;
    p->b = b;
    p->out = out;
}

static tide_status matrix_md(const tide_node *node, const tide_shape *batch, int64_t rows, int64_t cols,
                             dnnl_memory_desc_t *md, tide_error *err) {
    int64_t dims[TIDE_MAX_RANK + 2];
    for (int32_t i = 0; i < batch->rank; i++) dims[i] = batch->dims[i];
    dims[batch->rank] = rows;
    dims[batch->rank + 1] = cols;
    return tide_dnnl_md(node, batch->rank + 2, dims, NULL, md, err);
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    tide_product p;
    TIDE_TRY(tide_op_product(x->node, &x->in[0].shape, &x->in[1].shape, &p, err));
    if (tide_op_numel(&x->out[0].shape) == 0 || p.k == 0) return TIDE_OK;
    collapse(&p);
    dnnl_memory_desc_t src, wei, dst;
    TIDE_TRY(matrix_md(x->node, &p.a, p.m, p.k, &src, err));
    TIDE_TRY(matrix_md(x->node, &p.b, p.k, p.n, &wei, err));
    TIDE_TRY(matrix_md(x->node, &p.out, p.m, p.n, &dst, err));
    dnnl_matmul_desc_t d;
    const dnnl_status_t ds = tide__dnnl_matmul_desc_init(&d, &src, &wei, NULL, &dst);
    if (ds != dnnl_success) return tide_dnnl_fail(err, x->node, ds, "matmul");
    static const tide_dnnl_bind binds[] = {
        {DNNL_ARG_SRC, false, 0}, {DNNL_ARG_WEIGHTS, false, 1}, {DNNL_ARG_DST, true, 0}};
    const tide_dnnl_post post = {.scale = 1.0f, .act = x->node->activation};
    return tide_dnnl_kernel_set(k, &d, &post, binds, 3, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    if (k->state != NULL) return tide_dnnl_kernel_run(k, args, err);
    // An inner extent of 0: every element is the empty sum.
    const int64_t n = tide_op_numel(&args->out[0].shape);
    if (n == 0) return TIDE_OK;
    memset(args->out[0].data, 0, (size_t)n * sizeof(float));
    tide_act_apply(&k->node->activation, args->out[0].data, n);
    return TIDE_OK;
}

const tide_op_def tide_op_matmul = {
    .domain = "",
    .name = "MatMul",
    .since = 1,
    .flags = TIDE_OP_FUSES_ACT,
    .min_inputs = 2,
    .max_inputs = 2,
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
