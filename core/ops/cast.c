// SPDX-License-Identifier: MIT
//
// Cast and CastLike between all numeric types and bool.
//
// What ONNX leaves open is fixed here: a float outside the range of an integer type takes the nearest end of it and
// NaN becomes 0; integers that do not fit keep their low bits, as in numpy and C.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/tensor/dtype_foreign.h"

typedef void (*cast_fn)(void *out, const void *in, int64_t n);

#define FROM_FLOATS(XX, DT, sfx, S, C)                                                                                 \
    XX(DT, sfx, S, C, F32, f32, float)                                                                                 \
    XX(DT, sfx, S, C, F64, f64, double) XX(DT, sfx, S, C, F16, f16, uint16_t) XX(DT, sfx, S, C, BF16, bf16, uint16_t)
// The tool lays this list out differently each time.
// clang-format off
#define FROM_INTS(XX, DT, sfx, S, C)                                                                                   \
    XX(DT, sfx, S, C, I8, i8, int8_t)                                                                                  \
    XX(DT, sfx, S, C, I16, i16, int16_t)                                                                               \
    XX(DT, sfx, S, C, I32, i32, int32_t)                                                                               \
    XX(DT, sfx, S, C, I64, i64, int64_t)                                                                               \
    XX(DT, sfx, S, C, U8, u8, uint8_t)                                                                                 \
    XX(DT, sfx, S, C, U16, u16, uint16_t)                                                                              \
    XX(DT, sfx, S, C, U32, u32, uint32_t)                                                                              \
    XX(DT, sfx, S, C, U64, u64, uint64_t)                                                                              \
    XX(DT, sfx, S, C, BOOL, b, uint8_t)
// clang-format on

#define DEFINE_CAST(fn, SO, SI, CI, sfx_in, EXPR)                                                                      \
    static void fn(void *out, const void *in, int64_t n) {                                                             \
        SO *const o = out;                                                                                             \
        const SI *const x = in;                                                                                        \
        TIDE_IVDEP                                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const CI v = TIDE_LOAD_##sfx_in(x[i]);                                                                     \
            o[i] = EXPR;                                                                                               \
        }                                                                                                              \
    }

// anything -> float types. 64-bit integers go through double and are rounded to odd on the way to 16 bits.
#define AS_f32(v) ((float)(v))
#define AS_f64(v) ((double)(v))
#define AS_f16(v) tide_f32_to_f16(tide_f64_to_f32_odd((double)(v)))
#define AS_bf16(v) tide_f32_to_bf16(tide_f64_to_f32_odd((double)(v)))
#define XX(DTI, sfx_in, SI, CI, DTO, sfx_out, SO)                                                                      \
    DEFINE_CAST(sfx_in##_to_##sfx_out, SO, SI, CI, sfx_in, AS_##sfx_out(v))
#define ROWS_TO_FLOAT(DT, sfx, S, C) FROM_FLOATS(XX, DT, sfx, S, C)
TIDE_TYPES_NUMERIC(ROWS_TO_FLOAT)
TIDE_TYPES_BOOL(ROWS_TO_FLOAT)
#undef XX
#undef ROWS_TO_FLOAT

// integers and bool -> integers and bool
#define INT_AS_b(v) ((uint8_t)((v) != 0))
#define INT_AS_i8(v) ((int8_t)(v))
#define INT_AS_i16(v) ((int16_t)(v))
#define INT_AS_i32(v) ((int32_t)(v))
#define INT_AS_i64(v) ((int64_t)(v))
#define INT_AS_u8(v) ((uint8_t)(v))
#define INT_AS_u16(v) ((uint16_t)(v))
#define INT_AS_u32(v) ((uint32_t)(v))
#define INT_AS_u64(v) ((uint64_t)(v))
#define XX(DTI, sfx_in, SI, CI, DTO, sfx_out, SO)                                                                      \
    DEFINE_CAST(sfx_in##_to_##sfx_out, SO, SI, CI, sfx_in, INT_AS_##sfx_out(v))
#define ROWS_TO_INT(DT, sfx, S, C) FROM_INTS(XX, DT, sfx, S, C)
TIDE_TYPES_INT(ROWS_TO_INT)
TIDE_TYPES_BOOL(ROWS_TO_INT)
#undef XX
#undef ROWS_TO_INT

// float types -> integers and bool. `lo` and `end` (one past the highest) are exact in double.
#define CLAMPED(T, v, lo, end, max) ((v) != (v) ? (T)0 : (v) <= (lo) ? (T)(lo) : (v) >= (end) ? (T)(max) : (T)(v))
#define FLOAT_AS_b(v) ((uint8_t)((v) != 0))
#define FLOAT_AS_i8(v) CLAMPED(int8_t, v, -128.0, 128.0, INT8_MAX)
#define FLOAT_AS_i16(v) CLAMPED(int16_t, v, -32768.0, 32768.0, INT16_MAX)
#define FLOAT_AS_i32(v) CLAMPED(int32_t, v, -0x1p31, 0x1p31, INT32_MAX)
#define FLOAT_AS_i64(v) CLAMPED(int64_t, v, -0x1p63, 0x1p63, INT64_MAX)
#define FLOAT_AS_u8(v) CLAMPED(uint8_t, v, 0.0, 256.0, UINT8_MAX)
#define FLOAT_AS_u16(v) CLAMPED(uint16_t, v, 0.0, 65536.0, UINT16_MAX)
#define FLOAT_AS_u32(v) CLAMPED(uint32_t, v, 0.0, 0x1p32, UINT32_MAX)
#define FLOAT_AS_u64(v) CLAMPED(uint64_t, v, 0.0, 0x1p64, UINT64_MAX)
#define XX(DTI, sfx_in, SI, CI, DTO, sfx_out, SO)                                                                      \
    DEFINE_CAST(sfx_in##_to_##sfx_out, SO, SI, CI, sfx_in, FLOAT_AS_##sfx_out(v))
#define ROWS_TO_INT(DT, sfx, S, C) FROM_INTS(XX, DT, sfx, S, C)
TIDE_TYPES_FLOAT(ROWS_TO_INT)
#undef XX
#undef ROWS_TO_INT

static const cast_fn casts[TIDE_DTYPE_LIMIT][TIDE_DTYPE_LIMIT] = {
#define XX(DTI, sfx_in, SI, CI, DTO, sfx_out, SO) [TIDE_##DTO] = sfx_in##_to_##sfx_out,
#define ROW(DT, sfx, S, C) [TIDE_##DT] = {FROM_FLOATS(XX, DT, sfx, S, C) FROM_INTS(XX, DT, sfx, S, C)},
    TIDE_TYPES_NUMERIC(ROW) TIDE_TYPES_BOOL(ROW)
#undef ROW
#undef XX
};

static tide_status cast_to(const tide_infer *x, int64_t to, tide_error *err) {
    const char *const foreign = tide_dtype_foreign_name(to);
    if (foreign != NULL)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "no conversion to the element type %s", foreign);
    if (to <= 0 || to >= TIDE_DTYPE_LIMIT || casts[x->in[0].dtype][to] == NULL)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "no conversion from %s to element type %lld (%s)",
                            tide_dtype_name(x->in[0].dtype), (long long)to, tide_dtype_name((tide_dtype)to));
    return tide_op_set_out(x, 0, (tide_dtype)to, x->in[0].shape.rank, x->in[0].shape.dims, err);
}

static tide_status cast_infer(const tide_infer *x, tide_error *err) {
    if (tide_node_attr(x->node, "to") == NULL)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "attribute 'to' is missing");
    return cast_to(x, tide_node_attr_int(x->node, "to", 0), err);
}

static tide_status cast_like_infer(const tide_infer *x, tide_error *err) { return cast_to(x, x->in[1].dtype, err); }

/// To the same type: the bytes stay what they are.
static tide_op_alias alias(const tide_infer *x, size_t in_i, size_t out_i) {
    const bool same = in_i == 0 && out_i == 0 && x->in[0].dtype == x->out[0].dtype;
    return (tide_op_alias){same ? TIDE_OP_ALIAS_VIEW : TIDE_OP_ALIAS_NONE, 0};
}

static tide_status cast_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    const int64_t n = tide_op_numel(&a->in[0].shape);
    if (n == 0) return TIDE_OK;
    if (a->in[0].dtype == a->out[0].dtype) return tide_data_run_view(k, a, err);
    casts[a->in[0].dtype][a->out[0].dtype](a->out[0].data, a->in[0].data, n);
    return TIDE_OK;
}

const tide_op_def tide_op_cast = {.name = "Cast",
                                  .domain = "",
                                  .since = 6,
                                  .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "to"), TIDE_ATTR(INT, "saturate", .since = 19),
                                                      TIDE_ATTR(STRING, "round_mode", .since = 24)),
                                  .inplace_inputs = 1u,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .min_outputs = 1,
                                  .max_outputs = 1,
                                  .infer = cast_infer,
                                  .alias = alias,
                                  .run = cast_run};
const tide_op_def tide_op_cast_like = {
    .name = "CastLike",
    .domain = "",
    .since = 15,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "saturate", .since = 19), TIDE_ATTR(STRING, "round_mode", .since = 24)),
    .inplace_inputs = 1u,
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = cast_like_infer,
    .alias = alias,
    .run = cast_run};
