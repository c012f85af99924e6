// SPDX-License-Identifier: MIT
//
// Det: determinants of square matrices [..., n, n], by elimination with the largest of each column, in double. The
// determinant of a matrix without rows is 1.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    if (!tide_dtype_is_float(in->dtype)) return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, in, "X", 2, TIDE_MAX_RANK, err));
    const int64_t *dims = in->shape.dims;
    if (dims[in->shape.rank - 1] != dims[in->shape.rank - 2])
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "matrices of %lld by %lld have no determinant",
                            (long long)dims[in->shape.rank - 2], (long long)dims[in->shape.rank - 1]);
    return tide_op_set_out(x, 0, in->dtype, in->shape.rank - 2, dims, err);
}

/// One matrix in double.
static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    const tide_shape *s = &x->in[0].shape;
    const int64_t n = s->dims[s->rank - 1];
    if (n > TIDE_WINDOW_LIMIT)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "%lld rows are too many", (long long)n);
    k->workspace_bytes = tide_op_numel(s) == 0 ? 0 : (size_t)(n * n) * sizeof(double);
    return TIDE_OK;
}

static double work(const tide_infer *x) {
    const tide_shape *s = &x->in[0].shape;
    return (double)tide_op_numel(s) * (double)s->dims[s->rank - 1] / 3;
}

/// Destroys `m` [n, n].
static double determinant(double *m, int64_t n) {
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(m[r * n + c]) > fabs(m[pivot * n + c])) pivot = r;
        if (m[pivot * n + c] == 0) return 0;
        for (int64_t i = c; pivot != c && i < n; i++) {
            const double t = m[c * n + i];
            m[c * n + i] = m[pivot * n + i];
            m[pivot * n + i] = t;
        }
        det *= pivot != c ? -m[c * n + c] : m[c * n + c];
        for (int64_t r = c + 1; r < n; r++) {
            const double f = m[r * n + c] / m[c * n + c];
            for (int64_t i = c + 1; i < n; i++) m[r * n + i] -= f * m[c * n + i];
        }
    }
    return det;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *in = &a->in[0], *out = &a->out[0];
    const int64_t n = in->shape.dims[in->shape.rank - 1], n_out = tide_op_numel(&out->shape);
    double *m = a->workspace;
    (void)k;
    (void)err;
    for (int64_t o = 0; o < n_out; o++) {
        for (int64_t i = 0; i < n * n; i++) m[i] = tide_data_load_f64(in->dtype, in->data, o * n * n + i);
        tide_data_store_f64(out->dtype, out->data, o, determinant(m, n));
    }
    return TIDE_OK;
}

const tide_op_def tide_op_det = {.name = "Det",
                                 .domain = "",
                                 .since = 11,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .min_outputs = 1,
                                 .max_outputs = 1,
                                 .infer = infer,
                                 .work = work,
                                 .prepare = prepare,
                                 .run = run};
