// SPDX-License-Identifier: MIT
//
// CumSum: running sums along one axis, which is an operand and may change from run to run. `exclusive` leaves the
// element itself out, `reverse` starts at the end. Floats add up in double; integers wrap.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    if (x->in[0].dtype == TIDE_BOOL) return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    TIDE_TRY(tide_data_require_indices(x->node, &x->in[1], "axis", err));
    if (tide_op_numel(&x->in[1].shape) != 1)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'axis' must have one element");
    return tide_op_infer_same(x, err);
}

/// One line of `n` elements, `stride` apart (negative: from the end).
typedef void (*line_fn)(void *out, const void *in, int64_t n, int64_t stride, bool exclusive);

#define DEFINE_LINE(sfx, S, C, SUM_T)                                                                                  \
    static void line_##sfx(void *out, const void *in, int64_t n, int64_t stride, bool exclusive) {                     \
        S *const o = out;                                                                                              \
        const S *const x = in;                                                                                         \
        SUM_T sum = 0;                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const SUM_T before = sum;                                                                                  \
            sum += (SUM_T)TIDE_LOAD_##sfx(x[i * stride]);                                                              \
            o[i * stride] = TIDE_STORE_##sfx((C)(exclusive ? before : sum));                                           \
        }                                                                                                              \
    }
#define XX(DT, sfx, S, C) DEFINE_LINE(sfx, S, C, double)
TIDE_TYPES_FLOAT(XX)
#undef XX
#define XX(DT, sfx, S, C) DEFINE_LINE(sfx, S, C, uint64_t)
TIDE_TYPES_INT(XX)
#undef XX

static const line_fn lines[TIDE_DTYPE_LIMIT] = {
#define XX(DT, sfx, S, C) [TIDE_##DT] = line_##sfx,
    TIDE_TYPES_NUMERIC(XX)
#undef XX
};

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *const in = &a->in[0];
    const size_t elem = tide_dtype_size(in->dtype);
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_data_load_i64(a->in[1].dtype, a->in[1].data, 0), in->shape.rank, &axis, err));
    const bool exclusive = tide_node_attr_int(k->node, "exclusive", 0) != 0;
    const bool reverse = tide_node_attr_int(k->node, "reverse", 0) != 0;
    const int64_t n = in->shape.rank == 0 ? 1 : in->shape.dims[axis];
    const int64_t inner = tide_op_count(&in->shape, axis + 1, in->shape.rank);
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t o = 0; o < tide_op_count(&in->shape, 0, axis); o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t at = o * n * inner + i + (reverse ? (n - 1) * inner : 0);
            lines[in->dtype](tide_data_at(a->out[0].data, at, elem), tide_data_const_at(in->data, at, elem), n,
                             reverse ? -inner : inner, exclusive);
        }
    return TIDE_OK;
}

const tide_op_def tide_op_cum_sum = {.name = "CumSum",
                                     .domain = "",
                                     .since = 11,
                                     .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "exclusive"), TIDE_ATTR(INT, "reverse")),
                                     .inplace_inputs = 1u,
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .infer = infer,
                                     .run = run};
