// SPDX-License-Identifier: MIT
//
// MatMulInteger and QLinearMatMul: matrix products of 8-bit numbers. A zero point or scale is one number, one for each
// row of A (column of B), or one for each of every matrix: [..., M, 1] and [..., 1, N].
//
//     MatMulInteger   y = sum (a - a_zero) * (b - b_zero)                      int32, which wraps
//     QLinearMatMul   y = saturate(round(sum * a_scale * b_scale / y_scale) + y_zero)
//
// A row of sums at a time, in the output itself or in the scratch.
#include "core/base/checked.h"
#include "core/ops/op_util.h"
#include "core/ops/requantize.h"

/// Which inputs hold what; -1: the operator has none.
typedef struct operands {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero;
} operands;

static const operands integer_in = {
    .a = 0, .a_scale = -1, .a_zero = 2, .b = 1, .b_scale = -1, .b_zero = 3, .y_scale = -1, .y_zero = -1};
static const operands linear_in = {
    .a = 0, .a_scale = 1, .a_zero = 2, .b = 3, .b_scale = 4, .b_zero = 5, .y_scale = 6, .y_zero = 7};

/// A scale or zero point of rows (`is_row`) or columns: one, a list of them, or a list for each matrix.
static tide_status check_parameter(const tide_infer *x, int i, const char *what, const tide_shape *matrix, bool is_row,
                                   tide_error *err) {
    if (i < 0 || !tide_op_has_in(x, (size_t)i)) return TIDE_OK;
    const tide_shape *s = &x->in[i].shape;
    const int32_t line = is_row ? matrix->rank - 2 : matrix->rank - 1;
    if (s->rank <= 1 && tide_op_numel(s) == 1) return TIDE_OK;
    if (s->rank == 1 && line >= 0 && matrix->rank > 1 && s->dims[0] == matrix->dims[line]) return TIDE_OK;
    tide_shape want = {1, {1}}; // a vector is one row or column
    if (matrix->rank > 1) want = *matrix;
    if (matrix->rank > 1) want.dims[is_row ? want.rank - 1 : want.rank - 2] = 1;
    return tide_op_require_shape(x->node, &x->in[i], what, &want, err);
}

static tide_status check_side(const tide_infer *x, int matrix, int scale, int zero, bool is_row, tide_error *err) {
    const char *const name = is_row ? "A" : "B";
    const tide_operand *m = &x->in[matrix];
    if (!tide_is_quantised(m->dtype)) return tide_data_no_dtype(x->node, m->dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, m, name, 1, TIDE_MAX_RANK, err));
    if (scale >= 0) TIDE_TRY(tide_op_require_dtype(x->node, &x->in[scale], "a scale", TIDE_F32, err));
    if (tide_op_has_in(x, (size_t)zero)) TIDE_TRY(tide_data_same_dtype(x, (size_t)matrix, (size_t)zero, err));
    TIDE_TRY(check_parameter(x, scale, is_row ? "a_scale" : "b_scale", &m->shape, is_row, err));
    return check_parameter(x, zero, is_row ? "a_zero_point" : "b_zero_point", &m->shape, is_row, err);
}

static tide_status check_one(const tide_infer *x, size_t i, const char *what, tide_error *err) {
    if (tide_op_numel(&x->in[i].shape) == 1) return TIDE_OK;
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "%s has %lld elements; one is served", what,
                        (long long)tide_op_numel(&x->in[i].shape));
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const operands *o = x->node->def->family;
    tide_product p;
    tide_dtype out = TIDE_I32;
    TIDE_TRY(check_side(x, o->a, o->a_scale, o->a_zero, true, err));
    TIDE_TRY(check_side(x, o->b, o->b_scale, o->b_zero, false, err));
    TIDE_TRY(tide_op_product(x->node, &x->in[o->a].shape, &x->in[o->b].shape, &p, err));
    if (o->y_scale >= 0) {
        out = x->in[o->y_zero].dtype;
        if (!tide_is_quantised(out)) return tide_data_no_dtype(x->node, out, err);
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[o->y_scale], "y_scale", TIDE_F32, err));
        TIDE_TRY(check_one(x, (size_t)o->y_scale, "y_scale", err));
        TIDE_TRY(check_one(x, (size_t)o->y_zero, "y_zero_point", err));
    }
    return tide_op_set_product(x, out, &p, err);
}

static double work(const tide_infer *x) {
    const operands *o = x->node->def->family;
    const tide_shape *a = &x->in[o->a].shape;
    return (double)tide_op_numel(&x->out[0].shape) * (double)a->dims[a->rank - 1];
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const operands *o = x->node->def->family;
    tide_product p;
    TIDE_TRY(tide_op_product(x->node, &x->in[o->a].shape, &x->in[o->b].shape, &p, err));
    if (o->y_scale < 0 || tide_op_numel(&x->out[0].shape) == 0) return TIDE_OK;
    if (!tide_mul_size((size_t)p.n, sizeof(uint32_t), &k->workspace_bytes))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "a row of the output is too long");
    return TIDE_OK;
}

// ---- the loops ----

/// Number `line` of matrix `matrix` out of scales or zero points: of `n` lines in each matrix.
static int64_t at_line(const tide_operand *o, int64_t matrix, int64_t line, int64_t n) {
    const int64_t have = tide_op_numel(&o->shape);
    return have == 1 ? 0 : o->shape.rank == 1 ? line : matrix * n + line;
}

static const tide_operand *input(const tide_kernel_args *a, int i) {
    return i >= 0 && (size_t)i < a->n_in && tide_operand_present(&a->in[i]) ? &a->in[i] : NULL;
}

static int32_t zero_at(const tide_operand *o, int64_t matrix, int64_t line, int64_t n) {
    return o == NULL ? 0 : (int32_t)tide_data_load_i64(o->dtype, o->data, at_line(o, matrix, line, n));
}

static float scale_at(const tide_operand *o, int64_t matrix, int64_t line, int64_t n) {
    return ((const float *)o->data)[at_line(o, matrix, line, n)];
}

/// One row of one product: sum [n].
static void row_of_sums(const tide_operand *a, int64_t a_row, int32_t a_zero, const tide_operand *b, int64_t b_matrix,
                        const tide_operand *b_zero, const tide_product *p, uint32_t *sum) {
    const bool one_zero = b_zero == NULL || tide_op_numel(&b_zero->shape) == 1;
    const int32_t common = one_zero ? zero_at(b_zero, 0, 0, 1) : 0;
    int32_t total = 0;
    memset(sum, 0, (size_t)p->n * sizeof *sum);
    for (int64_t k = 0; k < p->k; k++) {
        const int32_t v = (int32_t)tide_data_load_i64(a->dtype, a->data, a_row * p->k + k) - a_zero;
        total = (int32_t)((uint32_t)total + (uint32_t)v);
        tide_add_products(b->dtype, sum, tide_data_const_at(b->data, (b_matrix * p->k + k) * p->n, 1), p->n, 1, v,
                          common);
    }
    for (int64_t j = 0; j < p->n && !one_zero; j++)
        sum[j] -= (uint32_t)total * (uint32_t)zero_at(b_zero, b_matrix, j, p->n);
}

static void write_row(const operands *o, const tide_kernel_args *a, const tide_product *p, int64_t a_matrix,
                      int64_t row, int64_t b_matrix, int64_t out_row, const uint32_t *sum) {
    const float y_scale = *(const float *)a->in[o->y_scale].data;
    const float a_scale = scale_at(&a->in[o->a_scale], a_matrix, row, p->m);
    const int32_t zero = zero_at(&a->in[o->y_zero], 0, 0, 1);
    for (int64_t j = 0; j < p->n; j++) {
        const float scale = a_scale * scale_at(&a->in[o->b_scale], b_matrix, j, p->n) / y_scale;
        tide_requantize(a->out[0].dtype, a->out[0].data, out_row * p->n + j, sum[j], scale, zero);
    }
}

/// Which matrix of `in` belongs to matrix `i` of `out`; both are batch extents.
static int64_t matrix_at(const tide_shape *in, const tide_shape *out, int64_t i) {
    int64_t strides[TIDE_MAX_RANK], at = 0;
    tide_op_broadcast_strides(in, out, strides);
    for (int32_t d = out->rank - 1; d >= 0; d--) {
        at += i % out->dims[d] * strides[d];
        i /= out->dims[d];
    }
    return at;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const operands *o = k->def->family;
    const tide_operand *a_zero = input(a, o->a_zero), *b_zero = input(a, o->b_zero);
    tide_product p;
    TIDE_TRY(tide_op_product(k->node, &a->in[o->a].shape, &a->in[o->b].shape, &p, err));
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t i = 0; i < tide_op_numel(&p.out); i++) {
        const int64_t a_matrix = matrix_at(&p.a, &p.out, i), b_matrix = matrix_at(&p.b, &p.out, i);
        for (int64_t r = 0; r < p.m; r++) {
            const int64_t out_row = i * p.m + r;
            uint32_t *sum = o->y_scale >= 0 ? a->workspace : (uint32_t *)a->out[0].data + out_row * p.n;
            row_of_sums(&a->in[o->a], a_matrix * p.m + r, zero_at(a_zero, a_matrix, r, p.m), &a->in[o->b], b_matrix,
                        b_zero, &p, sum);
            if (o->y_scale >= 0) write_row(o, a, &p, a_matrix, r, b_matrix, out_row, sum);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_matmul_integer = {.name = "MatMulInteger",
                                            .domain = "",
                                            .since = 10,
                                            .min_inputs = 2,
                                            .max_inputs = 4,
                                            .min_outputs = 1,
                                            .max_outputs = 1,
                                            .family = &integer_in,
                                            .infer = infer,
                                            .work = work,
                                            .prepare = prepare,
                                            .run = run};
const tide_op_def tide_op_qlinear_matmul = {.name = "QLinearMatMul",
                                            .domain = "",
                                            .since = 10,
                                            .min_inputs = 8,
                                            .max_inputs = 8,
                                            .min_outputs = 1,
                                            .max_outputs = 1,
                                            .family = &linear_in,
                                            .infer = infer,
                                            .work = work,
                                            .prepare = prepare,
                                            .run = run};
