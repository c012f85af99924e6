// SPDX-License-Identifier: MIT
//
// Trilu: the upper or lower triangle of each matrix, zero elsewhere; k moves the diagonal. Output 0 may overwrite
// input 0.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "input", 2, TIDE_MAX_RANK, err));
    if (tide_op_has_in(x, 1) && (x->in[1].dtype != TIDE_I64 || tide_op_numel(&x->in[1].shape) != 1))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'k' must be one int64");
    return tide_op_infer_same(x, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    const tide_shape *const s = &a->in[0].shape;
    const int64_t rows = s->dims[s->rank - 2], cols = s->dims[s->rank - 1];
    const bool upper = tide_node_attr_int(k->node, "upper", 1) != 0;
    // Beyond the matrix all diagonals are the same: clamped, so that r + diagonal cannot overflow.
    int64_t diagonal = a->n_in > 1 && a->in[1].data != NULL ? *(const int64_t *)a->in[1].data : 0;
    diagonal = diagonal < -rows ? -rows : diagonal > cols ? cols : diagonal;
    const size_t elem = tide_dtype_size(a->in[0].dtype);
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t i = 0; i < tide_op_count(s, 0, s->rank - 1); i++) {
        const int64_t r = i % rows;
        // upper keeps columns [cut, cols), lower [0, cut)
        int64_t cut = r + diagonal + (upper ? 0 : 1);
        cut = cut < 0 ? 0 : cut > cols ? cols : cut;
        char *const out = tide_data_at(a->out[0].data, i * cols, elem);
        const char *const in = tide_data_const_at(a->in[0].data, i * cols, elem);
        const size_t left = (size_t)cut * elem, right = (size_t)(cols - cut) * elem;
        memmove(upper ? out + left : out, upper ? in + left : in, upper ? right : left);
        memset(upper ? out : out + left, 0, upper ? left : right);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_trilu = {.name = "Trilu",
                                   .domain = "",
                                   .since = 14,
                                   .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "upper")),
                                   .inplace_inputs = 1u,
                                   .min_inputs = 1,
                                   .max_inputs = 2,
                                   .min_outputs = 1,
                                   .max_outputs = 1,
                                   .infer = infer,
                                   .run = run};
