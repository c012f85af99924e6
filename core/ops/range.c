// SPDX-License-Identifier: MIT
//
// Range: start, start + delta, … below limit. The number of elements depends on the operands' content, which has to
// be known before the run.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status count_ints(const tide_infer *x, int64_t *n, tide_error *err) {
    const tide_dtype dtype = x->in[0].dtype;
    const int64_t start = tide_data_load_i64(dtype, x->in[0].data, 0);
    const int64_t limit = tide_data_load_i64(dtype, x->in[1].data, 0);
    const int64_t delta = tide_data_load_i64(dtype, x->in[2].data, 0);
    if (delta == 0) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'delta' is 0");
    *n = 0;
    if (delta > 0 ? limit <= start : limit >= start) return TIDE_OK;
    // Distances without sign: limit - start may not fit into 63 bits.
    const uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = delta > 0 ? (uint64_t)delta : 0u - (uint64_t)delta;
    const uint64_t count = (span - 1) / step + 1;
    if (count > INT64_MAX) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "too many elements");
    *n = (int64_t)count;
    return TIDE_OK;
}

static tide_status count_floats(const tide_infer *x, int64_t *n, tide_error *err) {
    const tide_dtype dtype = x->in[0].dtype;
    const double start = tide_data_load_f64(dtype, x->in[0].data, 0);
    const double limit = tide_data_load_f64(dtype, x->in[1].data, 0);
    const double delta = tide_data_load_f64(dtype, x->in[2].data, 0);
    const double count = ceil((limit - start) / delta);
    if (delta == 0 || !isfinite(count))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "no finite number of elements: %g to %g by %g", start,
                            limit, delta);
    *n = count <= 0 ? 0 : tide_data_f64_to_i64(count);
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"start", "limit", "delta"};
    const tide_dtype dtype = x->in[0].dtype;
    if (dtype == TIDE_BOOL || dtype == TIDE_U64) return tide_data_no_dtype(x->node, dtype, err);
    for (size_t i = 0; i < 3; i++) {
        TIDE_TRY(tide_data_same_dtype(x, 0, i, err));
        if (tide_op_numel(&x->in[i].shape) != 1)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'%s' must be a scalar", names[i]);
        TIDE_TRY(tide_op_require_const(x->node, &x->in[i], names[i], err));
    }
    int64_t n;
    TIDE_TRY(tide_dtype_is_float(dtype) ? count_floats(x, &n, err) : count_ints(x, &n, err));
    return tide_op_set_out(x, 0, dtype, 1, &n, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    const tide_dtype dtype = a->out[0].dtype;
    const int64_t n = a->out[0].shape.dims[0];
    switch (dtype) {
#define XX(DT, sfx, S, C)                                                                                              \
    case TIDE_##DT: {                                                                                                  \
        const uint64_t start = (uint64_t) * (const S *)a->in[0].data;                                                  \
        const uint64_t delta = (uint64_t) * (const S *)a->in[2].data;                                                  \
        for (int64_t i = 0; i < n; i++) ((S *)a->out[0].data)[i] = (S)(start + (uint64_t)i * delta);                   \
        return TIDE_OK;                                                                                                \
    }
        TIDE_TYPES_INT(XX)
#undef XX
    default:
        break;
    }
    const double start = tide_data_load_f64(dtype, a->in[0].data, 0);
    const double delta = tide_data_load_f64(dtype, a->in[2].data, 0);
    for (int64_t i = 0; i < n; i++) tide_data_store_f64(dtype, a->out[0].data, i, start + (double)i * delta);
    return TIDE_OK;
}

const tide_op_def tide_op_range = {.name = "Range",
                                   .domain = "",
                                   .since = 11,
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .min_outputs = 1,
                                   .max_outputs = 1,
                                   .infer = infer,
                                   .run = run};
