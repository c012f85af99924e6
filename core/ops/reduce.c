// SPDX-License-Identifier: MIT
//
// The Reduce family: one fold over any set of axes, one line per operator. Float types accumulate in double, integers
// exactly in 64 bits (wrapping).
//
// The axes that stay and the axes that go are two merged loop nests. Where the innermost axis stays, a block of
// neighbouring outputs is folded together so that every read is dense:
//
//     axis goes, inner stays    acc[0..64) += row[0..64)   for each index of the reduced axes
//     inner axis goes           acc[0]     += row[0] + row[1] + …
#include "core/ops/data_util.h"
#include "core/ops/loops.h"
#include "core/ops/op_util.h"

enum { BLOCK = 64 }; ///< outputs folded together

typedef struct exp_sum {
    double max, sum; ///< the sum of exp(v - max) so far
} exp_sum;

typedef union accumulators {
    double f64[BLOCK];
    int64_t i64[BLOCK];
    uint64_t u64[BLOCK];
    exp_sum log_sum_exp[BLOCK];
} accumulators;

typedef struct reduce_row {
    void (*init)(accumulators *acc, int64_t n);
    /// acc[i] takes in[i] for n outputs
    void (*fold_many)(accumulators *acc, const void *in, int64_t n);
    /// acc[0] takes n elements
    void (*fold_one)(accumulators *acc, const void *in, int64_t n, int64_t stride);
    void (*finish)(const accumulators *acc, void *out, int64_t n, int64_t count);
} reduce_row;

typedef struct reduce_family {
    int axes_operand_since; ///< opset in which `axes` became an operand
    reduce_row rows[TIDE_DTYPE_LIMIT];
} reduce_family;

/// The axes to reduce as flags; all of them when none are named, or none when the node says so.
static tide_status read_axes(const reduce_family *f, const tide_infer *x, bool go[TIDE_MAX_RANK], tide_error *err) {
    const int32_t rank = x->in[0].shape.rank;
    int64_t axes[TIDE_MAX_RANK];
    size_t n = 0;
    if (x->node->opset >= f->axes_operand_since) {
        if (tide_op_has_in(x, 1)) TIDE_TRY(tide_op_read_ints(x->node, &x->in[1], "axes", TIDE_MAX_RANK, axes, &n, err));
    } else {
        const int64_t *const list = tide_node_attr_ints(x->node, "axes", &n);
        if (n > TIDE_MAX_RANK) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu axes", n);
        for (size_t i = 0; i < n; i++) axes[i] = list[i];
    }
    const bool all = n == 0 && tide_node_attr_int(x->node, "noop_with_empty_axes", 0) == 0;
    for (int32_t d = 0; d < rank; d++) go[d] = all;
    for (size_t i = 0; i < n; i++) {
        int32_t axis;
        TIDE_TRY(tide_op_axis(x->node, axes[i], rank, &axis, err));
        if (rank != 0) go[axis] = true;
    }
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const reduce_family *const f = x->node->def->family;
    const tide_operand *const in = &x->in[0];
    bool go[TIDE_MAX_RANK];
    if (f->rows[in->dtype].init == NULL) return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(read_axes(f, x, go, err));
    const bool keep = tide_node_attr_int(x->node, "keepdims", 1) != 0;
    int64_t dims[TIDE_MAX_RANK];
    int32_t rank = 0;
    for (int32_t d = 0; d < in->shape.rank; d++) {
        if (!go[d])
            dims[rank++] = in->shape.dims[d];
        else if (keep)
            dims[rank++] = 1;
    }
    return tide_op_set_out(x, 0, in->dtype, rank, dims, err);
}

/// Split the input's axes into the nest that stays (operands: output, input) and the one that goes (input).
/// @return false when there is no output element; *empty when there is nothing to fold
static bool make_nests(const tide_shape *in, const bool *go, tide_loops *stay, tide_loops *fold, bool *empty) {
    int64_t in_strides[TIDE_MAX_RANK];
    int64_t stay_dims[TIDE_MAX_RANK], stay_in[TIDE_MAX_RANK], stay_out[TIDE_MAX_RANK];
    int64_t fold_dims[TIDE_MAX_RANK], fold_in[TIDE_MAX_RANK];
    int32_t n_stay = 0, n_fold = 0;
    tide_shape_strides(in, in_strides);
    for (int32_t d = 0; d < in->rank; d++) {
        int32_t *const n = go[d] ? &n_fold : &n_stay;
        (go[d] ? fold_dims : stay_dims)[*n] = in->dims[d];
        (go[d] ? fold_in : stay_in)[*n] = in_strides[d];
        (*n)++;
    }
    for (int64_t d = n_stay - 1, step = 1; d >= 0; step *= stay_dims[d--]) stay_out[d] = step;
    *empty = !tide_loops_init(fold, n_fold, fold_dims, 1, (const int64_t *const[]){fold_in});
    return tide_loops_init(stay, n_stay, stay_dims, 2, (const int64_t *const[]){stay_out, stay_in});
}

/// One block of `n` neighbouring outputs whose first element of input is at `in`.
static void reduce_block(const reduce_row *row, const tide_loops *fold, bool empty, const void *in, size_t elem,
                         void *out, int64_t n, int64_t count) {
    accumulators acc;
    row->init(&acc, n);
    tide_loops_pos pos = {0};
    const int32_t inner = fold->rank - 1;
    if (!empty && n == 1) do
            row->fold_one(&acc, tide_data_const_at(in, pos.at[0], elem), fold->dims[inner], fold->strides[0][inner]);
        while (tide_loops_next(fold, 1, &pos));
    else if (!empty)
        do row->fold_many(&acc, tide_data_const_at(in, pos.at[0], elem), n);
        while (tide_loops_next(fold, 0, &pos));
    row->finish(&acc, out, n, count);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const reduce_family *const f = k->def->family;
    const tide_operand *const in = &a->in[0];
    const tide_infer again = {.node = k->node, .in = a->in, .n_in = a->n_in};
    const size_t elem = tide_dtype_size(in->dtype);
    bool go[TIDE_MAX_RANK], empty;
    tide_loops stay, fold;
    TIDE_TRY(read_axes(f, &again, go, err));
    if (!make_nests(&in->shape, go, &stay, &fold, &empty)) return TIDE_OK;
    int64_t count = 1;
    for (int32_t d = 0; d < in->shape.rank; d++) count *= go[d] ? in->shape.dims[d] : 1;

    const reduce_row *const row = &f->rows[in->dtype];
    const int32_t inner = stay.rank - 1;
    const int64_t n = stay.dims[inner];
    const int64_t in_stride = stay.strides[1][inner];
    const int64_t block = in_stride == 1 ? BLOCK : 1;
    tide_loops_pos pos = {0};
    do
        for (int64_t i = 0; i < n; i += block)
            reduce_block(row, &fold, empty, tide_data_const_at(in->data, pos.at[1] + i * in_stride, elem), elem,
                         tide_data_at(a->out[0].data, pos.at[0] + i, elem), n - i < block ? n - i : block, count);
    while (tide_loops_next(&stay, 1, &pos));
    return TIDE_OK;
}

/// One operator on one type: `v` is the element as VT, `a` the accumulator of type AT in member A.
#define DEFINE_REDUCE(fn, S, LOAD, A, AT, VT, INIT, STEP, RESULT)                                                      \
    static void fn##_init(accumulators *acc, int64_t n) {                                                              \
        for (int64_t i = 0; i < n; i++) acc->A[i] = INIT;                                                              \
    }                                                                                                                  \
    static void fn##_many(accumulators *acc, const void *in, int64_t n) {                                              \
        const S *const x = in;                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const AT a = acc->A[i];                                                                                    \
            const VT v = (VT)LOAD(x[i]);                                                                               \
            acc->A[i] = STEP;                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void fn##_one(accumulators *acc, const void *in, int64_t n, int64_t stride) {                               \
        const S *const x = in;                                                                                         \
        AT a = acc->A[0];                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const VT v = (VT)LOAD(x[i * stride]);                                                                      \
            a = STEP;                                                                                                  \
        }                                                                                                              \
        acc->A[0] = a;                                                                                                 \
    }                                                                                                                  \
    static void fn##_finish(const accumulators *acc, void *out, int64_t n, int64_t count) {                            \
        (void)count;                                                                                                   \
        S *const o = out;                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const AT a = acc->A[i];                                                                                    \
            o[i] = RESULT;                                                                                             \
        }                                                                                                              \
    }

// ---- float types, in double; a NaN wins, as in numpy ----

#define MAX_F(a, v) ((v) > (a) || (v) != (v) ? (v) : (a))
#define MIN_F(a, v) ((v) < (a) || (v) != (v) ? (v) : (a))

/// The sum of exp(v) with the largest v taken out, in one pass, so that no term overflows.
static exp_sum exp_sum_step(exp_sum a, double v) {
    if (v == a.max) return (exp_sum){a.max, isinf(v) && v < 0 ? 0 : a.sum + 1};
    if (v > a.max) return (exp_sum){v, a.sum * exp(a.max - v) + 1};
    return (exp_sum){a.max, a.sum + exp(v - a.max)};
}
static exp_sum exp_sum_none(void) { return (exp_sum){-INFINITY, 0}; }
static double exp_sum_log(exp_sum a) { return a.max + log(a.sum); }

#define FLOAT_REDUCE(name, sfx, S, C, INIT, STEP, RESULT)                                                              \
    DEFINE_REDUCE(name##_##sfx, S, TIDE_LOAD_##sfx, f64, double, double, INIT, STEP, TIDE_STORE_##sfx((C)(RESULT)))
#define XX(DT, sfx, S, C)                                                                                              \
    FLOAT_REDUCE(sum, sfx, S, C, 0, a + v, a)                                                                          \
    FLOAT_REDUCE(mean, sfx, S, C, 0, a + v, a / (double)count)                                                         \
    FLOAT_REDUCE(max, sfx, S, C, -INFINITY, MAX_F(a, v), a)                                                            \
    FLOAT_REDUCE(min, sfx, S, C, INFINITY, MIN_F(a, v), a)                                                             \
    FLOAT_REDUCE(prod, sfx, S, C, 1, a *v, a)                                                                          \
    FLOAT_REDUCE(sum_square, sfx, S, C, 0, a + v * v, a)                                                               \
    FLOAT_REDUCE(l1, sfx, S, C, 0, a + fabs(v), a)                                                                     \
    FLOAT_REDUCE(l2, sfx, S, C, 0, a + v * v, sqrt(a))                                                                 \
    FLOAT_REDUCE(log_sum, sfx, S, C, 0, a + v, log(a))                                                                 \
    DEFINE_REDUCE(log_sum_exp_##sfx, S, TIDE_LOAD_##sfx, log_sum_exp, exp_sum, double, exp_sum_none(),                 \
                  exp_sum_step(a, v), TIDE_STORE_##sfx((C)exp_sum_log(a)))
TIDE_TYPES_FLOAT(XX)
#undef XX

// ---- integers: sums and products wrap; roots and logarithms go through double and are cut to whole numbers ----

static int64_t add_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t mul_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static int64_t abs_i64(int64_t a) { return a < 0 ? (int64_t)(0u - (uint64_t)a) : a; }
/// The mean of nothing is a number of the reader's choice; here it is 0.
static int64_t mean_i64(int64_t sum, int64_t count) { return count == 0 ? 0 : sum / count; }
static uint64_t mean_u64(uint64_t sum, int64_t count) { return count == 0 ? 0 : sum / (uint64_t)count; }

#define WHOLE(S, v) ((S)tide_data_f64_to_i64(v))
#define DOUBLE_REDUCE(sfx, S)                                                                                          \
    DEFINE_REDUCE(l2_##sfx, S, TIDE_LOAD_##sfx, f64, double, double, 0, a + v * v, WHOLE(S, sqrt(a)))                  \
    DEFINE_REDUCE(log_sum_##sfx, S, TIDE_LOAD_##sfx, f64, double, double, 0, a + v, WHOLE(S, log(a)))                  \
    DEFINE_REDUCE(log_sum_exp_##sfx, S, TIDE_LOAD_##sfx, log_sum_exp, exp_sum, double, exp_sum_none(),                 \
                  exp_sum_step(a, v), WHOLE(S, exp_sum_log(a)))

#define SINT_ONE(name, sfx, S, INIT, STEP, RESULT)                                                                     \
    DEFINE_REDUCE(name##_##sfx, S, TIDE_LOAD_##sfx, i64, int64_t, int64_t, INIT, STEP, (S)(RESULT))
#define SINT_REDUCE(sfx, S, LO, HI)                                                                                    \
    SINT_ONE(sum, sfx, S, 0, add_i64(a, v), a)                                                                         \
    SINT_ONE(mean, sfx, S, 0, add_i64(a, v), mean_i64(a, count))                                                       \
    SINT_ONE(max, sfx, S, LO, v > a ? v : a, a)                                                                        \
    SINT_ONE(min, sfx, S, HI, v < a ? v : a, a)                                                                        \
    SINT_ONE(prod, sfx, S, 1, mul_i64(a, v), a)                                                                        \
    SINT_ONE(sum_square, sfx, S, 0, add_i64(a, mul_i64(v, v)), a)                                                      \
    SINT_ONE(l1, sfx, S, 0, add_i64(a, abs_i64(v)), a)                                                                 \
    DOUBLE_REDUCE(sfx, S)
SINT_REDUCE(i8, int8_t, INT8_MIN, INT8_MAX)
SINT_REDUCE(i16, int16_t, INT16_MIN, INT16_MAX)
SINT_REDUCE(i32, int32_t, INT32_MIN, INT32_MAX)
SINT_REDUCE(i64, int64_t, INT64_MIN, INT64_MAX)

#define UINT_ONE(name, sfx, S, INIT, STEP, RESULT)                                                                     \
    DEFINE_REDUCE(name##_##sfx, S, TIDE_LOAD_##sfx, u64, uint64_t, uint64_t, INIT, STEP, (S)(RESULT))
#define UINT_REDUCE(sfx, S, HI)                                                                                        \
    UINT_ONE(sum, sfx, S, 0, a + v, a)                                                                                 \
    UINT_ONE(mean, sfx, S, 0, a + v, mean_u64(a, count))                                                               \
    UINT_ONE(max, sfx, S, 0, v > a ? v : a, a)                                                                         \
    UINT_ONE(min, sfx, S, HI, v < a ? v : a, a)                                                                        \
    UINT_ONE(prod, sfx, S, 1, a *v, a)                                                                                 \
    UINT_ONE(sum_square, sfx, S, 0, a + v * v, a)                                                                      \
    UINT_ONE(l1, sfx, S, 0, a + v, a)                                                                                  \
    DOUBLE_REDUCE(sfx, S)
UINT_REDUCE(u8, uint8_t, UINT8_MAX)
UINT_REDUCE(u16, uint16_t, UINT16_MAX)
UINT_REDUCE(u32, uint32_t, UINT32_MAX)
UINT_REDUCE(u64, uint64_t, UINT64_MAX)

// ---- the table ----

#define ROW_OF(name, DT, sfx)                                                                                          \
    [TIDE_##DT] = {name##_##sfx##_init, name##_##sfx##_many, name##_##sfx##_one, name##_##sfx##_finish}
#define ROWS_OF(name)                                                                                                  \
    ROW_OF(name, F32, f32), ROW_OF(name, F64, f64), ROW_OF(name, F16, f16), ROW_OF(name, BF16, bf16),                  \
        ROW_OF(name, I8, i8), ROW_OF(name, I16, i16), ROW_OF(name, I32, i32), ROW_OF(name, I64, i64),                  \
        ROW_OF(name, U8, u8), ROW_OF(name, U16, u16), ROW_OF(name, U32, u32), ROW_OF(name, U64, u64)

#define OP_DEF(row_name, text, since_version, until_version, n_inputs, base, attr, attr_type)                          \
    const tide_op_def tide_op_##row_name = {.name = text,                                                              \
                                            .domain = "",                                                              \
                                            .since = since_version,                                                    \
                                            .until = until_version,                                                    \
                                            .attrs =                                                                   \
                                                TIDE_ATTRS(TIDE_ATTR(INT, "keepdims"), TIDE_ATTR(attr_type, attr)),    \
                                            .min_inputs = 1,                                                           \
                                            .max_inputs = n_inputs,                                                    \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 1,                                                          \
                                            .family = &base##_family,                                                  \
                                            .infer = infer,                                                            \
                                            .run = run};
/// One line per operator: kernel, name in ONNX, opset in which `axes` became an operand.
#define REDUCE_OP(name, text, operand_since)                                                                           \
    static const reduce_family name##_family = {.axes_operand_since = operand_since, .rows = {ROWS_OF(name)}};         \
    OP_DEF(reduce_##name##_attr, text, 1, operand_since - 1, 1, name, "axes", INTS)                                    \
    OP_DEF(reduce_##name, text, operand_since, 0, 2, name, "noop_with_empty_axes", INT)

REDUCE_OP(sum, "ReduceSum", 13)
REDUCE_OP(mean, "ReduceMean", 18)
REDUCE_OP(max, "ReduceMax", 18)
REDUCE_OP(min, "ReduceMin", 18)
REDUCE_OP(prod, "ReduceProd", 18)
REDUCE_OP(sum_square, "ReduceSumSquare", 18)
REDUCE_OP(l1, "ReduceL1", 18)
REDUCE_OP(l2, "ReduceL2", 18)
REDUCE_OP(log_sum, "ReduceLogSum", 18)
REDUCE_OP(log_sum_exp, "ReduceLogSumExp", 18)
