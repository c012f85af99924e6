// SPDX-License-Identifier: MIT
//
// Unary elementwise operators: one line each. Float types calculate in float (float64 in double); integers wrap.
// Output 0 may overwrite input 0: element i is read only once, before it is written.
#include <math.h>
#include <tgmath.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/vector_math.h"

/// Attributes as numbers; what they mean is the operator's business.
typedef struct unary_args {
    double alpha;
    double beta;
} unary_args;

typedef void (*unary_fn)(void *out, const void *in, int64_t n, unary_args args);
typedef struct unary_family {
    unary_fn rows[TIDE_DTYPE_LIMIT];
    bool to_bool;
    const char *alpha_name;
    double alpha; ///< when absent
    const char *beta_name;
    double beta;
} unary_family;

static tide_status infer(const tide_infer *x, tide_error *err) {
    const unary_family *const f = x->node->def->family;
    const tide_dtype dtype = x->in[0].dtype;
    if (f->rows[dtype] == NULL) return tide_data_no_dtype(x->node, dtype, err);
    return tide_op_set_out(x, 0, f->to_bool ? TIDE_BOOL : dtype, x->in[0].shape.rank, x->in[0].shape.dims, err);
}

static double attr_number(const tide_node *node, const char *name, double absent) {
    return name != NULL ? (double)tide_node_attr_float(node, name, (float)absent) : absent;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    const unary_family *const f = k->def->family;
    const int64_t n = tide_op_numel(&a->in[0].shape);
    const unary_args args = {attr_number(k->node, f->alpha_name, f->alpha),
                             attr_number(k->node, f->beta_name, f->beta)};
    if (n != 0) f->rows[a->in[0].dtype](a->out[0].data, a->in[0].data, n, args);
    return TIDE_OK;
}

/// One loop: name, types in and out, expression in `v` (calculation type C), alpha and beta.
#define DEFINE_LOOP(fn, SI, LOAD, SO, STORE, C, EXPR)                                                                  \
    static void fn(void *out, const void *in, int64_t n, unary_args args) {                                            \
        SO *const o = out;                                                                                             \
        const SI *const x = in;                                                                                        \
        const C alpha = (C)args.alpha;                                                                                 \
        const C beta = (C)args.beta;                                                                                   \
        (void)alpha, (void)beta;                                                                                       \
        TIDE_IVDEP                                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C v = LOAD(x[i]);                                                                                    \
            o[i] = STORE(EXPR);                                                                                        \
        }                                                                                                              \
    }

// ---- float types only ----

/// name, operator, since, expression of v
#define FLOAT_OPS(XX)                                                                                                  \
    XX(log, "Log", 6, log(v))                                                                                          \
    XX(sqrt, "Sqrt", 6, sqrt(v))                                                                                       \
    XX(reciprocal, "Reciprocal", 6, 1 / v)                                                                             \
    XX(floor, "Floor", 6, floor(v))                                                                                    \
    XX(ceil, "Ceil", 6, ceil(v))                                                                                       \
    XX(round, "Round", 11, rint(v)) /* half to even: the rounding direction of the process is never changed */         \
    XX(sin, "Sin", 7, sin(v))                                                                                          \
    XX(cos, "Cos", 7, cos(v))                                                                                          \
    XX(tan, "Tan", 7, tan(v))                                                                                          \
    XX(asin, "Asin", 7, asin(v))                                                                                       \
    XX(acos, "Acos", 7, acos(v))                                                                                       \
    XX(atan, "Atan", 7, atan(v))                                                                                       \
    XX(sinh, "Sinh", 9, sinh(v))                                                                                       \
    XX(cosh, "Cosh", 9, cosh(v))                                                                                       \
    XX(asinh, "Asinh", 9, asinh(v))                                                                                    \
    XX(acosh, "Acosh", 9, acosh(v))                                                                                    \
    XX(atanh, "Atanh", 9, atanh(v))                                                                                    \
    XX(softsign, "Softsign", 1, v / (1 + fabs(v)))

/// name, operator, since, expression of v, alpha, beta; attribute names and defaults
#define FLOAT_ATTR_OPS(XX)                                                                                             \
    XX(thresholded_relu, "ThresholdedRelu", 10, v > alpha ? v : 0, "alpha", 1.0, NULL, 0)                              \
    XX(selu, "Selu", 6, v > 0 ? beta * v : beta * (alpha * exp(v) - alpha), "alpha", 1.67326319217681884765625,        \
       "gamma", 1.05070102214813232421875)                                                                             \
    XX(celu, "Celu", 12, fmax(v, 0) + fmin(0, alpha * expm1(v / alpha)), "alpha", 1.0, NULL, 0)

/// name, operator, since, expression of v; float32 has a function for a row
#define ROW_OPS(XX)                                                                                                    \
    XX(exp, "Exp", 6, exp(v))                                                                                          \
    XX(erf, "Erf", 9, erf(v))

// ---- all numbers ----

/// Negation and absolute value of integers wrap: the lowest number stays what it is, as in numpy.
#define WRAP_NEG(v) (0u - (uint64_t)(v))
/// name, operator, since, expression for floats, signed, unsigned
#define NUMERIC_OPS(XX)                                                                                                \
    XX(abs, "Abs", 6, fabs(v), (v < 0 ? WRAP_NEG(v) : (uint64_t)v), v)                                                 \
    XX(neg, "Neg", 6, -v, WRAP_NEG(v), WRAP_NEG(v))                                                                    \
    XX(sign, "Sign", 9, (float)((v > 0) - (v < 0)), (v > 0) - (v < 0), v != 0)

#define OP_DEF(op, text, since_version, inplace, op_attrs)                                                             \
    const tide_op_def tide_op_##op = {.name = text,                                                                    \
                                      .domain = "",                                                                    \
                                      .since = since_version,                                                          \
                                      .attrs = op_attrs,                                                               \
                                      .inplace_inputs = inplace,                                                       \
                                      .min_inputs = 1,                                                                 \
                                      .max_inputs = 1,                                                                 \
                                      .min_outputs = 1,                                                                \
                                      .max_outputs = 1,                                                                \
                                      .family = &op##_family,                                                          \
                                      .infer = infer,                                                                  \
                                      .run = run};

#define FLOAT_LOOPS_BUT_F32(name, EXPR)                                                                                \
    DEFINE_LOOP(name##_f64, double, TIDE_LOAD_f64, double, TIDE_STORE_f64, double, EXPR)                               \
    DEFINE_LOOP(name##_f16, uint16_t, TIDE_LOAD_f16, uint16_t, TIDE_STORE_f16, float, EXPR)                            \
    DEFINE_LOOP(name##_bf16, uint16_t, TIDE_LOAD_bf16, uint16_t, TIDE_STORE_bf16, float, EXPR)
#define FLOAT_LOOPS(name, EXPR)                                                                                        \
    DEFINE_LOOP(name##_f32, float, TIDE_LOAD_f32, float, TIDE_STORE_f32, float, EXPR)                                  \
    FLOAT_LOOPS_BUT_F32(name, EXPR)
#define FLOAT_ROWS(name)                                                                                               \
    [TIDE_F32] = name##_f32, [TIDE_F64] = name##_f64, [TIDE_F16] = name##_f16, [TIDE_BF16] = name##_bf16

#define XX(name, text, since, EXPR)                                                                                    \
    FLOAT_LOOPS(name, EXPR)                                                                                            \
    static const unary_family name##_family = {.rows = {FLOAT_ROWS(name)}};                                            \
    OP_DEF(name, text, since, 1u, NULL)
FLOAT_OPS(XX)
#undef XX

#define XX(name, text, since, EXPR)                                                                                    \
    FLOAT_LOOPS_BUT_F32(name, EXPR)                                                                                    \
    static void name##_f32(void *out, const void *in, int64_t n, unary_args args) {                                    \
        (void)args;                                                                                                    \
        tide_##name##_row(out, in, n);                                                                                 \
    }                                                                                                                  \
    static const unary_family name##_family = {.rows = {FLOAT_ROWS(name)}};                                            \
    OP_DEF(name, text, since, 1u, NULL)
ROW_OPS(XX)
#undef XX

#define XX(name, text, since, EXPR, a_name, a_value, b_name, b_value)                                                  \
    FLOAT_LOOPS(name, EXPR)                                                                                            \
    static const unary_family name##_family = {                                                                        \
        .rows = {FLOAT_ROWS(name)}, .alpha_name = a_name, .alpha = a_value, .beta_name = b_name, .beta = b_value};     \
    OP_DEF(name, text, since, 1u, TIDE_ATTRS(TIDE_ATTR(FLOAT, a_name), TIDE_ATTR(FLOAT, b_name)))
FLOAT_ATTR_OPS(XX)
#undef XX

#define INT_LOOPS(name, S_EXPR, U_EXPR)                                                                                \
    DEFINE_LOOP(name##_i8, int8_t, TIDE_LOAD_i8, int8_t, TIDE_STORE_i8, int8_t, S_EXPR)                                \
    DEFINE_LOOP(name##_i16, int16_t, TIDE_LOAD_i16, int16_t, TIDE_STORE_i16, int16_t, S_EXPR)                          \
    DEFINE_LOOP(name##_i32, int32_t, TIDE_LOAD_i32, int32_t, TIDE_STORE_i32, int32_t, S_EXPR)                          \
    DEFINE_LOOP(name##_i64, int64_t, TIDE_LOAD_i64, int64_t, TIDE_STORE_i64, int64_t, S_EXPR)                          \
    DEFINE_LOOP(name##_u8, uint8_t, TIDE_LOAD_u8, uint8_t, TIDE_STORE_u8, uint8_t, U_EXPR)                             \
    DEFINE_LOOP(name##_u16, uint16_t, TIDE_LOAD_u16, uint16_t, TIDE_STORE_u16, uint16_t, U_EXPR)                       \
    DEFINE_LOOP(name##_u32, uint32_t, TIDE_LOAD_u32, uint32_t, TIDE_STORE_u32, uint32_t, U_EXPR)                       \
    DEFINE_LOOP(name##_u64, uint64_t, TIDE_LOAD_u64, uint64_t, TIDE_STORE_u64, uint64_t, U_EXPR)
#define INT_ROWS(name)                                                                                                 \
    [TIDE_I8] = name##_i8, [TIDE_I16] = name##_i16, [TIDE_I32] = name##_i32, [TIDE_I64] = name##_i64,                  \
    [TIDE_U8] = name##_u8, [TIDE_U16] = name##_u16, [TIDE_U32] = name##_u32, [TIDE_U64] = name##_u64

#define XX(name, text, since, F_EXPR, S_EXPR, U_EXPR)                                                                  \
    FLOAT_LOOPS(name, F_EXPR)                                                                                          \
    INT_LOOPS(name, S_EXPR, U_EXPR)                                                                                    \
    static const unary_family name##_family = {.rows = {FLOAT_ROWS(name), INT_ROWS(name)}};                            \
    OP_DEF(name, text, since, 1u, NULL)
NUMERIC_OPS(XX)
#undef XX

INT_LOOPS(bitwise_not, ~(uint64_t)v, ~(uint64_t)v)
static const unary_family bitwise_not_family = {.rows = {INT_ROWS(bitwise_not)}};
OP_DEF(bitwise_not, "BitwiseNot", 18, 1u, NULL)

// ---- to bool: from floats the elements shrink, so that nothing is written in place ----

DEFINE_LOOP(logical_not_b, uint8_t, TIDE_LOAD_b, uint8_t, TIDE_STORE_b, uint8_t, v == 0)
static const unary_family logical_not_family = {.rows = {[TIDE_BOOL] = logical_not_b}, .to_bool = true};
OP_DEF(logical_not, "Not", 1, 1u, NULL)

/// name, operator, since, expression; attributes (integers used as switches)
#define TEST_OPS(XX)                                                                                                   \
    XX(is_nan, "IsNaN", 9, v != v, NULL, NULL)                                                                         \
    XX(is_inf, "IsInf", 10, isinf(v) && (v > 0 ? beta != 0 : alpha != 0), "detect_negative", "detect_positive")
#define XX(name, text, since, EXPR, a_name, b_name)                                                                    \
    DEFINE_LOOP(name##_f32, float, TIDE_LOAD_f32, uint8_t, TIDE_STORE_b, float, EXPR)                                  \
    DEFINE_LOOP(name##_f64, double, TIDE_LOAD_f64, uint8_t, TIDE_STORE_b, double, EXPR)                                \
    DEFINE_LOOP(name##_f16, uint16_t, TIDE_LOAD_f16, uint8_t, TIDE_STORE_b, float, EXPR)                               \
    DEFINE_LOOP(name##_bf16, uint16_t, TIDE_LOAD_bf16, uint8_t, TIDE_STORE_b, float, EXPR)                             \
    static const unary_family name##_family = {.rows = {FLOAT_ROWS(name)},                                             \
                                               .to_bool = true,                                                        \
                                               .alpha_name = a_name,                                                   \
                                               .alpha = 1,                                                             \
                                               .beta_name = b_name,                                                    \
                                               .beta = 1};                                                             \
    OP_DEF(name, text, since, 0u, TIDE_ATTRS(TIDE_ATTR(INT, a_name), TIDE_ATTR(INT, b_name)))
TEST_OPS(XX)
#undef XX
