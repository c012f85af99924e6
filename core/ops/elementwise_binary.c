// SPDX-License-Identifier: MIT
//
// Binary elementwise operators with numpy's broadcasting: arithmetic, comparisons, logic and PRelu, one line each.
// Before opset 7 only input 1 is stretched, as attributes say. Integers wrap; a division of integers by zero is an
// error of the run. Output 0 may overwrite either input that has its bytes: such an input is walked element by element
// with the output.
#include <math.h>
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/loops.h"
#include "core/ops/op_util.h"

/// One row; a stride is 0 (one value for the row), 1 or anything else.
typedef void (*binary_fn)(void *out, const void *a, const void *b, int64_t n, int64_t a_stride, int64_t b_stride);

typedef struct binary_family {
    binary_fn rows[TIDE_DTYPE_LIMIT];
    bool to_bool;
    bool divides; ///< integers: refuse a zero in input 1
    bool one_way; ///< input 1 broadcasts to input 0 and never the other way round
} binary_family;

static tide_status infer(const tide_infer *x, tide_error *err) {
    const binary_family *const f = x->node->def->family;
    TIDE_TRY(tide_data_same_dtype(x, 0, 1, err));
    const tide_dtype dtype = x->in[0].dtype;
    if (f->rows[dtype] == NULL) return tide_data_no_dtype(x->node, dtype, err);
    tide_shape out, second;
    TIDE_TRY(tide_op_second_shape(x->node, &x->in[0].shape, &x->in[1].shape, &second, err));
    TIDE_TRY(tide_op_broadcast(x->node, &x->in[0].shape, &second, &out, err));
    if (f->one_way && !tide_shape_equal(&out, &x->in[0].shape)) {
        char a[192], b[192];
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "input 1 of shape %s does not broadcast to %s",
                            tide_shape_format(&x->in[1].shape, a, sizeof a),
                            tide_shape_format(&x->in[0].shape, b, sizeof b));
    }
    return tide_op_set_out(x, 0, f->to_bool ? TIDE_BOOL : dtype, out.rank, out.dims, err);
}

static tide_status refuse_zero(const tide_node *node, const tide_operand *o, tide_error *err) {
    const int64_t n = tide_op_numel(&o->shape);
    for (int64_t i = 0; i < n; i++)
        if (tide_data_load_i64(o->dtype, o->data, i) == 0)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_RUNTIME, "integer division by zero (element %lld of input 1)",
                                (long long)i);
    return TIDE_OK;
}

/// Elements between two applications of a fused activation: what was just written is still in the cache.
enum { ACTIVATE_EVERY = 4096 };

static tide_status run_family(const binary_family *f, const tide_kernel *k, const tide_kernel_args *a,
                              tide_error *err) {
    tide_loops l;
    tide_operand second = a->in[1];
    const tide_operand *const inputs[] = {&a->in[0], &second};
    TIDE_TRY(tide_op_second_shape(k->node, &a->in[0].shape, &a->in[1].shape, &second.shape, err));
    if (!tide_loops_init_broadcast(&l, &a->out[0], 2, inputs)) return TIDE_OK;
    const tide_dtype dtype = a->in[0].dtype;
    if (f->divides && !tide_dtype_is_float(dtype)) TIDE_TRY(refuse_zero(k->node, &a->in[1], err));

    const size_t in_bytes = tide_dtype_size(dtype);
    const size_t out_bytes = tide_dtype_size(a->out[0].dtype);
    const binary_fn row = f->rows[dtype];
    const tide_activation *const act = &k->node->activation;
    const bool fused = act->kind != TIDE_ACT_NONE && (k->def->flags & TIDE_OP_FUSES_ACT) != 0;
    const int32_t inner = l.rank - 1;
    const int64_t n = l.dims[inner];
    const int64_t step = fused ? ACTIVATE_EVERY : n;
    const int64_t as = l.strides[1][inner];
    const int64_t bs = l.strides[2][inner];
    tide_loops_pos pos = {0};
    do {
        for (int64_t i = 0; i < n; i += step) {
            const int64_t m = n - i < step ? n - i : step;
            void *const out = tide_data_at(a->out[0].data, pos.at[0] + i, out_bytes);
            row(out, tide_data_const_at(a->in[0].data, pos.at[1] + i * as, in_bytes),
                tide_data_const_at(a->in[1].data, pos.at[2] + i * bs, in_bytes), m, as, bs);
            if (fused) tide_data_activate(act, dtype, out, m);
        }
    } while (tide_loops_next(&l, 1, &pos));
    return TIDE_OK;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    return run_family(k->def->family, k, a, err);
}

#define DEFINE_ROW(fn, S, LOAD, SO, STORE, C, EXPR)                                                                    \
    static void fn(void *out, const void *in_a, const void *in_b, int64_t n, int64_t as, int64_t bs) {                 \
        SO *const o = out;                                                                                             \
        const S *const pa = in_a;                                                                                      \
        const S *const pb = in_b;                                                                                      \
        if (as == 1 && bs == 1) {                                                                                      \
            TIDE_IVDEP                                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = LOAD(pa[i]), b = LOAD(pb[i]);                                                              \
                o[i] = STORE(EXPR);                                                                                    \
            }                                                                                                          \
        } else if (as == 1 && bs == 0) {                                                                               \
            const C b = LOAD(pb[0]);                                                                                   \
            TIDE_IVDEP                                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = LOAD(pa[i]);                                                                               \
                o[i] = STORE(EXPR);                                                                                    \
            }                                                                                                          \
        } else if (as == 0 && bs == 1) {                                                                               \
            const C a = LOAD(pa[0]);                                                                                   \
            TIDE_IVDEP                                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C b = LOAD(pb[i]);                                                                               \
                o[i] = STORE(EXPR);                                                                                    \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = LOAD(pa[i * as]), b = LOAD(pb[i * bs]);                                                    \
                o[i] = STORE(EXPR);                                                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }

/// How two operands met before opset 7.
static const tide_attr_def old_broadcast[] = {
    TIDE_ATTR(INT, "axis", .until = 6), TIDE_ATTR(INT, "broadcast", .until = 6), {0}};

#define OP_DEF(row_name, text, since_version, until_version, op_family, op_flags, inplace, op_attrs)                   \
    const tide_op_def tide_op_##row_name = {.name = text,                                                              \
                                            .domain = "",                                                              \
                                            .since = since_version,                                                    \
                                            .until = until_version,                                                    \
                                            .attrs = op_attrs,                                                         \
                                            .flags = op_flags,                                                         \
                                            .inplace_inputs = inplace,                                                 \
                                            .min_inputs = 2,                                                           \
                                            .max_inputs = 2,                                                           \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 1,                                                          \
                                            .family = &op_family,                                                      \
                                            .infer = infer,                                                            \
                                            .run = run};

// ---- arithmetic ----

/// Integers wrap like numpy's: calculated without sign in 64 bits, of which the lower ones are kept.
#define WRAP(a, op, b) ((uint64_t)(a)op(uint64_t)(b))
/// The lowest number divided by -1 wraps; it must not trap.
#define DIV_SIGNED(a, b) ((b) == -1 ? (int64_t)(0u - (uint64_t)(a)) : (int64_t)((a) / (b)))
#define PRELU(a, b) ((a) < 0 ? (a) * (b) : (a))

/// name, float expression, signed, unsigned
#define ARITHMETIC(XX)                                                                                                 \
    XX(add, a + b, WRAP(a, +, b), WRAP(a, +, b))                                                                       \
    XX(sub, a - b, WRAP(a, -, b), WRAP(a, -, b))                                                                       \
    XX(mul, a *b, WRAP(a, *, b), WRAP(a, *, b))                                                                        \
    XX(div, a / b, DIV_SIGNED(a, b), a / b)                                                                            \
    XX(prelu, PRELU(a, b), (a < 0 ? WRAP(a, *, b) : (uint64_t)a), ((void)b, a))

#define FLOAT_ROWS(name, EXPR)                                                                                         \
    DEFINE_ROW(name##_f32, float, TIDE_LOAD_f32, float, TIDE_STORE_f32, float, EXPR)                                   \
    DEFINE_ROW(name##_f64, double, TIDE_LOAD_f64, double, TIDE_STORE_f64, double, EXPR)                                \
    DEFINE_ROW(name##_f16, uint16_t, TIDE_LOAD_f16, uint16_t, TIDE_STORE_f16, float, EXPR)                             \
    DEFINE_ROW(name##_bf16, uint16_t, TIDE_LOAD_bf16, uint16_t, TIDE_STORE_bf16, float, EXPR)
#define INT_ROWS(name, S_EXPR, U_EXPR)                                                                                 \
    DEFINE_ROW(name##_i8, int8_t, TIDE_LOAD_i8, int8_t, TIDE_STORE_i8, int8_t, S_EXPR)                                 \
    DEFINE_ROW(name##_i16, int16_t, TIDE_LOAD_i16, int16_t, TIDE_STORE_i16, int16_t, S_EXPR)                           \
    DEFINE_ROW(name##_i32, int32_t, TIDE_LOAD_i32, int32_t, TIDE_STORE_i32, int32_t, S_EXPR)                           \
    DEFINE_ROW(name##_i64, int64_t, TIDE_LOAD_i64, int64_t, TIDE_STORE_i64, int64_t, S_EXPR)                           \
    DEFINE_ROW(name##_u8, uint8_t, TIDE_LOAD_u8, uint8_t, TIDE_STORE_u8, uint8_t, U_EXPR)                              \
    DEFINE_ROW(name##_u16, uint16_t, TIDE_LOAD_u16, uint16_t, TIDE_STORE_u16, uint16_t, U_EXPR)                        \
    DEFINE_ROW(name##_u32, uint32_t, TIDE_LOAD_u32, uint32_t, TIDE_STORE_u32, uint32_t, U_EXPR)                        \
    DEFINE_ROW(name##_u64, uint64_t, TIDE_LOAD_u64, uint64_t, TIDE_STORE_u64, uint64_t, U_EXPR)
#define NUMERIC_TABLE(name)                                                                                            \
    [TIDE_F32] = name##_f32, [TIDE_F64] = name##_f64, [TIDE_F16] = name##_f16, [TIDE_BF16] = name##_bf16,              \
    [TIDE_I8] = name##_i8, [TIDE_I16] = name##_i16, [TIDE_I32] = name##_i32, [TIDE_I64] = name##_i64,                  \
    [TIDE_U8] = name##_u8, [TIDE_U16] = name##_u16, [TIDE_U32] = name##_u32, [TIDE_U64] = name##_u64

#define XX(name, F_EXPR, S_EXPR, U_EXPR)                                                                               \
    FLOAT_ROWS(name, F_EXPR)                                                                                           \
    INT_ROWS(name, S_EXPR, U_EXPR)
ARITHMETIC(XX)
#undef XX

static const binary_family add_family = {.rows = {NUMERIC_TABLE(add)}};
static const binary_family sub_family = {.rows = {NUMERIC_TABLE(sub)}};
static const binary_family mul_family = {.rows = {NUMERIC_TABLE(mul)}};
static const binary_family div_family = {.rows = {NUMERIC_TABLE(div)}, .divides = true};
static const binary_family prelu_family = {.rows = {NUMERIC_TABLE(prelu)}, .one_way = true};

OP_DEF(add, "Add", 1, 0, add_family, TIDE_OP_FUSES_ACT, 3u, old_broadcast)
OP_DEF(sub, "Sub", 1, 0, sub_family, 0, 3u, old_broadcast)
OP_DEF(mul, "Mul", 1, 0, mul_family, 0, 3u, old_broadcast)
OP_DEF(div, "Div", 1, 0, div_family, 0, 3u, old_broadcast)
OP_DEF(prelu, "PRelu", 1, 0, prelu_family, 0, 3u, NULL)

// ---- comparisons ----

#define COMPARISONS(XX)                                                                                                \
    XX(equal, "Equal", 1, old_broadcast, ==)                                                                           \
    XX(greater, "Greater", 1, old_broadcast, >)                                                                        \
    XX(greater_or_equal, "GreaterOrEqual", 12, NULL, >=)                                                               \
    XX(less, "Less", 1, old_broadcast, <)                                                                              \
    XX(less_or_equal, "LessOrEqual", 12, NULL, <=)

#define COMPARE_ROWS(name, op)                                                                                         \
    DEFINE_ROW(name##_f32, float, TIDE_LOAD_f32, uint8_t, TIDE_STORE_b, float, a op b)                                 \
    DEFINE_ROW(name##_f64, double, TIDE_LOAD_f64, uint8_t, TIDE_STORE_b, double, a op b)                               \
    DEFINE_ROW(name##_f16, uint16_t, TIDE_LOAD_f16, uint8_t, TIDE_STORE_b, float, a op b)                              \
    DEFINE_ROW(name##_bf16, uint16_t, TIDE_LOAD_bf16, uint8_t, TIDE_STORE_b, float, a op b)                            \
    DEFINE_ROW(name##_i8, int8_t, TIDE_LOAD_i8, uint8_t, TIDE_STORE_b, int8_t, a op b)                                 \
    DEFINE_ROW(name##_i16, int16_t, TIDE_LOAD_i16, uint8_t, TIDE_STORE_b, int16_t, a op b)                             \
    DEFINE_ROW(name##_i32, int32_t, TIDE_LOAD_i32, uint8_t, TIDE_STORE_b, int32_t, a op b)                             \
    DEFINE_ROW(name##_i64, int64_t, TIDE_LOAD_i64, uint8_t, TIDE_STORE_b, int64_t, a op b)                             \
    DEFINE_ROW(name##_u8, uint8_t, TIDE_LOAD_u8, uint8_t, TIDE_STORE_b, uint8_t, a op b)                               \
    DEFINE_ROW(name##_u16, uint16_t, TIDE_LOAD_u16, uint8_t, TIDE_STORE_b, uint16_t, a op b)                           \
    DEFINE_ROW(name##_u32, uint32_t, TIDE_LOAD_u32, uint8_t, TIDE_STORE_b, uint32_t, a op b)                           \
    DEFINE_ROW(name##_u64, uint64_t, TIDE_LOAD_u64, uint8_t, TIDE_STORE_b, uint64_t, a op b)

DEFINE_ROW(equal_b, uint8_t, TIDE_LOAD_b, uint8_t, TIDE_STORE_b, uint8_t, (a != 0) == (b != 0))

#define COMPARE_EXTRA_equal [TIDE_BOOL] = equal_b,
#define COMPARE_EXTRA_greater
#define COMPARE_EXTRA_greater_or_equal
#define COMPARE_EXTRA_less
#define COMPARE_EXTRA_less_or_equal
#define XX(name, text, since, op_attrs, op)                                                                            \
    COMPARE_ROWS(name, op)                                                                                             \
    static const binary_family name##_family = {.rows = {COMPARE_EXTRA_##name NUMERIC_TABLE(name)}, .to_bool = true};  \
    OP_DEF(name, text, since, 0, name##_family, 0, 3u, op_attrs)
COMPARISONS(XX)
#undef XX

// ---- logic ----

#define LOGIC(XX)                                                                                                      \
    XX(logical_and, "And", a != 0 && b != 0)                                                                           \
    XX(logical_or, "Or", a != 0 || b != 0)                                                                             \
    XX(logical_xor, "Xor", (a != 0) != (b != 0))
#define XX(name, text, EXPR)                                                                                           \
    DEFINE_ROW(name##_b, uint8_t, TIDE_LOAD_b, uint8_t, TIDE_STORE_b, uint8_t, EXPR)                                   \
    static const binary_family name##_family = {.rows = {[TIDE_BOOL] = name##_b}, .to_bool = true};                    \
    OP_DEF(name, text, 1, 0, name##_family, 0, 3u, old_broadcast)
LOGIC(XX)
#undef XX

// ---- bits ----

#define BITS(XX)                                                                                                       \
    XX(bitwise_and, "BitwiseAnd", a &b)                                                                                \
    XX(bitwise_or, "BitwiseOr", a | b)                                                                                 \
    XX(bitwise_xor, "BitwiseXor", a ^ b)
/// A sign is a bit like others, so that one loop serves both types of a width.
#define XX(name, text, EXPR)                                                                                           \
    DEFINE_ROW(name##_8, uint8_t, TIDE_LOAD_u8, uint8_t, TIDE_STORE_u8, uint8_t, EXPR)                                 \
    DEFINE_ROW(name##_16, uint16_t, TIDE_LOAD_u16, uint16_t, TIDE_STORE_u16, uint16_t, EXPR)                           \
    DEFINE_ROW(name##_32, uint32_t, TIDE_LOAD_u32, uint32_t, TIDE_STORE_u32, uint32_t, EXPR)                           \
    DEFINE_ROW(name##_64, uint64_t, TIDE_LOAD_u64, uint64_t, TIDE_STORE_u64, uint64_t, EXPR)                           \
    static const binary_family name##_family = {.rows = {[TIDE_I8] = name##_8,                                         \
                                                         [TIDE_I16] = name##_16,                                       \
                                                         [TIDE_I32] = name##_32,                                       \
                                                         [TIDE_I64] = name##_64,                                       \
                                                         [TIDE_U8] = name##_8,                                         \
                                                         [TIDE_U16] = name##_16,                                       \
                                                         [TIDE_U32] = name##_32,                                       \
                                                         [TIDE_U64] = name##_64}};                                     \
    OP_DEF(name, text, 18, 0, name##_family, 0, 3u, NULL)
BITS(XX)
#undef XX

// ---- shifts ----

/// By as many bits as the type has or more, nothing is left.
#define SHIFTS(XX)                                                                                                     \
    XX(shift_left, b < 8 * sizeof a ? (uint64_t)a << b : 0)                                                            \
    XX(shift_right, b < 8 * sizeof a ? (uint64_t)a >> b : 0)
#define XX(name, EXPR)                                                                                                 \
    DEFINE_ROW(name##_u8, uint8_t, TIDE_LOAD_u8, uint8_t, TIDE_STORE_u8, uint8_t, EXPR)                                \
    DEFINE_ROW(name##_u16, uint16_t, TIDE_LOAD_u16, uint16_t, TIDE_STORE_u16, uint16_t, EXPR)                          \
    DEFINE_ROW(name##_u32, uint32_t, TIDE_LOAD_u32, uint32_t, TIDE_STORE_u32, uint32_t, EXPR)                          \
    DEFINE_ROW(name##_u64, uint64_t, TIDE_LOAD_u64, uint64_t, TIDE_STORE_u64, uint64_t, EXPR)                          \
    static const binary_family name##_family = {                                                                       \
        .rows = {[TIDE_U8] = name##_u8, [TIDE_U16] = name##_u16, [TIDE_U32] = name##_u32, [TIDE_U64] = name##_u64}};
SHIFTS(XX)
#undef XX

static tide_status shift_of(const tide_node *node, const binary_family **out, tide_error *err) {
    const char *direction = tide_node_attr_string(node, "direction", "");
    *out = strcmp(direction, "LEFT") == 0 ? &shift_left_family : &shift_right_family;
    if (*out == &shift_left_family || strcmp(direction, "RIGHT") == 0) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "direction '%s' is neither LEFT nor RIGHT", direction);
}

static tide_status infer_shift(const tide_infer *x, tide_error *err) {
    const binary_family *f;
    TIDE_TRY(shift_of(x->node, &f, err));
    return infer(x, err);
}

static tide_status run_shift(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const binary_family *f;
    TIDE_TRY(shift_of(k->node, &f, err));
    return run_family(f, k, a, err);
}

const tide_op_def tide_op_bit_shift = {.name = "BitShift",
                                       .domain = "",
                                       .since = 11,
                                       .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "direction")),
                                       .inplace_inputs = 3u,
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .min_outputs = 1,
                                       .max_outputs = 1,
                                       .family = &shift_left_family, // both take the same types
                                       .infer = infer_shift,
                                       .run = run_shift};
