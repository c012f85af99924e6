// SPDX-License-Identifier: MIT
//
// Min, Max, Sum and Mean over any number of inputs with numpy's broadcasting.
//
// All inputs of a short run of elements are combined on the stack before the run is written, so that the output may
// overwrite any input that has its bytes, in whatever position and however often that occurs.
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

enum { RUN = 256 }; ///< elements on the stack

/// A run of the calculation type.
typedef union run_buffer {
#define XX(DT, sfx, S, C) C sfx[RUN];
    TIDE_TYPES_NUMERIC(XX)
#undef XX
} run_buffer;

/// acc[0..n) = the first input, or acc combined with another; stride 0 or 1
typedef void (*variadic_take)(void *acc, const void *in, int64_t n, int64_t stride, bool first);
/// Write acc to the output; `count` inputs went in.
typedef void (*variadic_put)(void *out, const void *acc, int64_t n, size_t count);

typedef struct variadic_row {
    variadic_take take;
    variadic_put put;
} variadic_row;
typedef struct variadic_family {
    variadic_row rows[TIDE_DTYPE_LIMIT];
} variadic_family;

static tide_status infer(const tide_infer *x, tide_error *err) {
    const variadic_family *const f = x->node->def->family;
    const tide_dtype dtype = x->in[0].dtype;
    if (f->rows[dtype].take == NULL) return tide_data_no_dtype(x->node, dtype, err);
    tide_shape out = x->in[0].shape;
    for (size_t i = 1; i < x->n_in; i++) {
        TIDE_TRY(tide_data_same_dtype(x, 0, i, err));
        TIDE_TRY(tide_op_broadcast(x->node, &out, &x->in[i].shape, &out, err));
    }
    return tide_op_set_out(x, 0, dtype, out.rank, out.dims, err);
}

/// The walk: rows of the output, each dense; every input finds its own place by the row's outer index.
typedef struct variadic_walk {
    tide_shape shape; ///< of the output; one loop when no input is stretched
    int64_t row;      ///< elements in a row
} variadic_walk;

static variadic_walk walk_of(const tide_kernel_args *a) {
    variadic_walk w = {.shape = a->out[0].shape};
    bool same = true;
    const int64_t n = tide_op_numel(&w.shape);
    for (size_t i = 0; i < a->n_in; i++) same = same && tide_op_numel(&a->in[i].shape) == n;
    if (same || w.shape.rank == 0) w.shape = tide_shape_make(1, &n);
    w.row = w.shape.dims[w.shape.rank - 1];
    return w;
}

/// Offset in `in` of the first element of output row `row_i`, and the stride along the row.
static int64_t input_offset(const variadic_walk *w, const tide_operand *in, int64_t row_i, int64_t *stride) {
    int64_t strides[TIDE_MAX_RANK];
    *stride = 1;
    if (w->shape.rank == 1 && tide_op_numel(&in->shape) == w->row) return 0;
    tide_op_broadcast_strides(&in->shape, &w->shape, strides);
    *stride = strides[w->shape.rank - 1];
    int64_t at = 0;
    for (int32_t d = w->shape.rank - 2; d >= 0; d--) {
        at += row_i % w->shape.dims[d] * strides[d];
        row_i /= w->shape.dims[d];
    }
    return at;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    const variadic_family *const f = k->def->family;
    const variadic_walk w = walk_of(a);
    const int64_t n = tide_op_numel(&w.shape);
    if (n == 0) return TIDE_OK;
    const tide_dtype dtype = a->out[0].dtype;
    const size_t elem = tide_dtype_size(dtype);
    const variadic_row *const row = &f->rows[dtype];
    run_buffer acc;
    for (int64_t r = 0; r < n / w.row; r++)
        for (int64_t c = 0; c < w.row; c += RUN) {
            const int64_t m = w.row - c < RUN ? w.row - c : RUN;
            for (size_t i = 0; i < a->n_in; i++) {
                int64_t stride;
                const int64_t at = input_offset(&w, &a->in[i], r, &stride);
                row->take(&acc, tide_data_const_at(a->in[i].data, at + c * stride, elem), m, stride, i == 0);
            }
            row->put(tide_data_at(a->out[0].data, r * w.row + c, elem), &acc, m, a->n_in);
        }
    return TIDE_OK;
}

#define DEFINE_TAKE(fn, S, LOAD, C, EXPR)                                                                              \
    static void fn(void *acc_base, const void *in, int64_t n, int64_t stride, bool first) {                            \
        C *const acc = acc_base;                                                                                       \
        const S *const x = in;                                                                                         \
        if (first) {                                                                                                   \
            for (int64_t i = 0; i < n; i++) acc[i] = LOAD(x[i * stride]);                                              \
            return;                                                                                                    \
        }                                                                                                              \
        if (stride == 1) {                                                                                             \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = acc[i], b = LOAD(x[i]);                                                                    \
                acc[i] = (C)(EXPR);                                                                                    \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        const C b = LOAD(x[0]);                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C a = acc[i];                                                                                        \
            acc[i] = (C)(EXPR);                                                                                        \
        }                                                                                                              \
    }

#define XX(DT, sfx, S, C)                                                                                              \
    static void put_##sfx(void *out, const void *acc_base, int64_t n, size_t count) {                                  \
        (void)count;                                                                                                   \
        S *const o = out;                                                                                              \
        const C *const acc = acc_base;                                                                                 \
        for (int64_t i = 0; i < n; i++) o[i] = TIDE_STORE_##sfx(acc[i]);                                               \
    }
TIDE_TYPES_NUMERIC(XX)
#undef XX

#define XX(DT, sfx, S, C)                                                                                              \
    static void put_mean_##sfx(void *out, const void *acc_base, int64_t n, size_t count) {                             \
        S *const o = out;                                                                                              \
        const C *const acc = acc_base;                                                                                 \
        for (int64_t i = 0; i < n; i++) o[i] = TIDE_STORE_##sfx(acc[i] / (C)count);                                    \
    }
TIDE_TYPES_FLOAT(XX)
#undef XX

// A NaN wins, as in numpy.
#define XX(DT, sfx, S, C)                                                                                              \
    DEFINE_TAKE(max_##sfx, S, TIDE_LOAD_##sfx, C, b > a || b != b ? b : a)                                             \
    DEFINE_TAKE(min_##sfx, S, TIDE_LOAD_##sfx, C, b < a || b != b ? b : a)
TIDE_TYPES_FLOAT(XX)
#undef XX
#define XX(DT, sfx, S, C)                                                                                              \
    DEFINE_TAKE(max_##sfx, S, TIDE_LOAD_##sfx, C, b > a ? b : a)                                                       \
    DEFINE_TAKE(min_##sfx, S, TIDE_LOAD_##sfx, C, b < a ? b : a)
TIDE_TYPES_INT(XX)
#undef XX
#define XX(DT, sfx, S, C) DEFINE_TAKE(sum_##sfx, S, TIDE_LOAD_##sfx, C, a + b)
TIDE_TYPES_FLOAT(XX)
#undef XX

#define XX(DT, sfx, S, C) [TIDE_##DT] = {max_##sfx, put_##sfx},
static const variadic_family max_family = {.rows = {TIDE_TYPES_NUMERIC(XX)}};
#undef XX
#define XX(DT, sfx, S, C) [TIDE_##DT] = {min_##sfx, put_##sfx},
static const variadic_family min_family = {.rows = {TIDE_TYPES_NUMERIC(XX)}};
#undef XX
#define XX(DT, sfx, S, C) [TIDE_##DT] = {sum_##sfx, put_##sfx},
static const variadic_family sum_family = {.rows = {TIDE_TYPES_FLOAT(XX)}};
#undef XX
#define XX(DT, sfx, S, C) [TIDE_##DT] = {sum_##sfx, put_mean_##sfx},
static const variadic_family mean_family = {.rows = {TIDE_TYPES_FLOAT(XX)}};
#undef XX

#define OP_DEF(row_name, text)                                                                                         \
    const tide_op_def tide_op_##row_name = {.name = text,                                                              \
                                            .domain = "",                                                              \
                                            .since = 6,                                                                \
                                            .inplace_inputs = UINT32_MAX,                                              \
                                            .min_inputs = 1,                                                           \
                                            .max_inputs = 0,                                                           \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 1,                                                          \
                                            .family = &row_name##_family,                                              \
                                            .infer = infer,                                                            \
                                            .run = run};
OP_DEF(max, "Max")
OP_DEF(min, "Min")
OP_DEF(sum, "Sum")
OP_DEF(mean, "Mean")
