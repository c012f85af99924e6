// SPDX-License-Identifier: MIT
//
// Gemm: Y = act(alpha * A' * B' + beta * C), float32. Runs on oneDNN's matmul, transposition by strides.
//
// A row vector C with alpha == beta == 1 is oneDNN's bias. Any other C is first spread over Y, scaled by beta; the
// product is then added to it (the "sum" post-operation): no scratch for a broadcast C. Opset 6's attribute `broadcast`
// is not read: what it forbids is accepted.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/ops/act.h"
#include "core/ops/dnnl_guard.h"
#include "core/ops/dnnl_prim.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

typedef struct gemm_state {
    tide_dnnl_prim prim; ///< there is no primitive when k == 0
    int64_t m, k, n;
    bool trans_a, trans_b;
    float alpha, beta;
    bool spread_c; ///< Y starts as beta * C
    bool bias;     ///< C is oneDNN's bias
} gemm_state;

static bool has_c(const tide_operand *in, size_t n_in) { return n_in > 2 && tide_operand_present(&in[2]); }

static tide_status analyse(const tide_node *node, const tide_operand *in, size_t n_in, gemm_state *s, tide_error *err) {
    s->trans_a = tide_node_attr_int(node, "transA", 0) != 0;
    s->trans_b = tide_node_attr_int(node, "transB", 0) != 0;
    s->alpha = tide_node_attr_float(node, "alpha", 1.0f);
    s->beta = tide_node_attr_float(node, "beta", 1.0f);
    const int64_t *a = in[0].shape.dims, *b = in[1].shape.dims;
    s->m = a[s->trans_a ? 1 : 0];
    s->k = a[s->trans_a ? 0 : 1];
    s->n = b[s->trans_b ? 0 : 1];
    char as[192], bs[192], cs[192];
    if (b[s->trans_b ? 1 : 0] != s->k)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                            "A is %s, B is %s, transA %d, transB %d: the inner extents must be equal",
                            tide_shape_format(&in[0].shape, as, sizeof as),
                            tide_shape_format(&in[1].shape, bs, sizeof bs), s->trans_a, s->trans_b);
    if (!has_c(in, n_in)) return TIDE_OK;
    const tide_shape y = {2, {s->m, s->n}}, *c = &in[2].shape;
    tide_shape both;
    if (tide_op_broadcast(node, c, &y, &both, NULL) != TIDE_OK || !tide_shape_equal(&both, &y))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "C is %s, must broadcast to %s",
                            tide_shape_format(c, cs, sizeof cs), tide_shape_format(&y, as, sizeof as));
    const bool row = tide_op_numel(c) == s->n && (c->rank == 1 || (c->rank == 2 && c->dims[0] == 1));
    s->bias = row && s->alpha == 1.0f && s->beta == 1.0f;
    s->spread_c = !s->bias && s->beta != 0.0f;
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"A", "B", "C"};
    for (size_t i = 0; i < x->n_in; i++) {
        if (!tide_operand_present(&x->in[i])) continue;
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
        TIDE_TRY(tide_op_require_rank(x->node, &x->in[i], names[i], i < 2 ? 2 : 0, 2, err));
    }
    gemm_state s = {0};
    TIDE_TRY(analyse(x->node, x->in, x->n_in, &s, err));
    return tide_op_set_out(x, 0, TIDE_F32, 2, (const int64_t[]){s.m, s.n}, err);
}

static double work(const tide_infer *x) {
    const bool trans_a = tide_node_attr_int(x->node, "transA", 0) != 0;
    return (double)tide_op_numel(&x->out[0].shape) * (double)x->in[0].shape.dims[trans_a ? 0 : 1];
}

static tide_status matrix_md(const tide_node *node, int64_t rows, int64_t cols, bool trans, dnnl_memory_desc_t *md,
                             tide_error *err) {
    const int64_t strides[] = {trans ? 1 : cols, trans ? rows : 1};
    return tide_dnnl_md(node, 2, (const int64_t[]){rows, cols}, strides, md, err);
}

static tide_status make_prim(const tide_node *node, gemm_state *s, tide_error *err) {
    dnnl_memory_desc_t a, b, bias, y;
    TIDE_TRY(matrix_md(node, s->m, s->k, s->trans_a, &a, err));
    TIDE_TRY(matrix_md(node, s->k, s->n, s->trans_b, &b, err));
    TIDE_TRY(matrix_md(node, 1, s->n, false, &bias, err));
    TIDE_TRY(matrix_md(node, s->m, s->n, false, &y, err));
    dnnl_matmul_desc_t d;
    const dnnl_status_t ds = tide__dnnl_matmul_desc_init(&d, &a, &b, s->bias ? &bias : NULL, &y);
    if (ds != dnnl_success) return tide_dnnl_fail(err, node, ds, "matmul");
    static const tide_dnnl_bind binds[] = {
        {DNNL_ARG_SRC, false, 0}, {DNNL_ARG_WEIGHTS, false, 1}, {DNNL_ARG_DST, true, 0}, {DNNL_ARG_BIAS, false, 2}};
    const tide_dnnl_post post = {.scale = s->alpha, .sum = s->spread_c, .act = node->activation};
    return tide_dnnl_prim_init(node, &d, &post, binds, s->bias ? 4 : 3, &s->prim, err);
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    if (tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    gemm_state *s;
    TIDE_TRY(TIDE_OP_NEW(&s, x->node, err));
    tide_status st = analyse(x->node, x->in, x->n_in, s, err);
    if (st == TIDE_OK && s->k > 0) st = make_prim(x->node, s, err);
    if (st != TIDE_OK) {
        tide_host_free(s);
        return st;
    }
    k->workspace_bytes = s->prim.scratch_bytes;
    k->state = s;
    return TIDE_OK;
}

// Y = beta * C, C stretched over Y.
static void spread(const gemm_state *s, const tide_operand *c, float *y) {
    const tide_shape y_shape = {2, {s->m, s->n}};
    int64_t step[2];
    tide_op_broadcast_strides(&c->shape, &y_shape, step);
    const float *from = c->data;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) y[i * s->n + j] = s->beta * from[i * step[0] + j * step[1]];
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const gemm_state *s = k->state;
    if (s == NULL) return TIDE_OK;
    if (s->spread_c || (s->prim.desc == NULL && s->bias)) spread(s, &args->in[2], args->out[0].data);
    if (s->prim.desc != NULL) return tide_dnnl_kernel_run(k, args, err);
    // An inner extent of 0: only C is left.
    if (!s->spread_c && !s->bias) memset(args->out[0].data, 0, (size_t)(s->m * s->n) * sizeof(float));
    tide_act_apply(&k->node->activation, args->out[0].data, s->m * s->n);
    return TIDE_OK;
}

const tide_op_def tide_op_gemm = {
    .domain = "",
    .name = "Gemm",
    .since = 6,
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "alpha"), TIDE_ATTR(FLOAT, "beta"), TIDE_ATTR(INT, "broadcast", .until = 6),
                        TIDE_ATTR(INT, "transA"), TIDE_ATTR(INT, "transB")),
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
