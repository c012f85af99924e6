// SPDX-License-Identifier: MIT
//
// data_util: what the operators in plain loops share: the element types as lists (so that one line of an operator
// becomes a loop per type), scalars of any type as double or integer, indices that have to be checked while running,
// and the activations that a fusion may have left with a node.
#ifndef TIDE_CORE_OPS_DATA_UTIL_H
#define TIDE_CORE_OPS_DATA_UTIL_H

#include "core/ops/op_util.h"
#include "core/tensor/half.h"

#ifdef __cplusplus
extern "C" {
#endif

/// dtype suffix, short name, storage type, type to calculate in
#define TIDE_TYPES_FLOAT(XX)                                                                                           \
    XX(F32, f32, float, float)                                                                                         \
    XX(F64, f64, double, double)                                                                                       \
    XX(F16, f16, uint16_t, float)                                                                                      \
    XX(BF16, bf16, uint16_t, float)
#define TIDE_TYPES_SINT(XX)                                                                                            \
    XX(I8, i8, int8_t, int8_t)                                                                                         \
    XX(I16, i16, int16_t, int16_t) XX(I32, i32, int32_t, int32_t) XX(I64, i64, int64_t, int64_t)
#define TIDE_TYPES_UINT(XX)                                                                                            \
    XX(U8, u8, uint8_t, uint8_t)                                                                                       \
    XX(U16, u16, uint16_t, uint16_t) XX(U32, u32, uint32_t, uint32_t) XX(U64, u64, uint64_t, uint64_t)
#define TIDE_TYPES_INT(XX) TIDE_TYPES_SINT(XX) TIDE_TYPES_UINT(XX)
#define TIDE_TYPES_NUMERIC(XX) TIDE_TYPES_FLOAT(XX) TIDE_TYPES_INT(XX)
/// bool is one byte, 0 or 1.
#define TIDE_TYPES_BOOL(XX) XX(BOOL, b, uint8_t, uint8_t)

enum { TIDE_DTYPE_LIMIT = 17 }; ///< tables indexed by dtype have this many entries

// Storage to calculation type and back, by short name.
#define TIDE_LOAD_f32(x) (x)
#define TIDE_LOAD_f64(x) (x)
#define TIDE_LOAD_f16(x) tide_f16_to_f32(x)
#define TIDE_LOAD_bf16(x) tide_bf16_to_f32(x)
#define TIDE_LOAD_i8(x) (x)
#define TIDE_LOAD_i16(x) (x)
#define TIDE_LOAD_i32(x) (x)
#define TIDE_LOAD_i64(x) (x)
#define TIDE_LOAD_u8(x) (x)
#define TIDE_LOAD_u16(x) (x)
#define TIDE_LOAD_u32(x) (x)
#define TIDE_LOAD_u64(x) (x)
#define TIDE_LOAD_b(x) (x)
#define TIDE_STORE_f32(x) (x)
#define TIDE_STORE_f64(x) (x)
#define TIDE_STORE_f16(x) tide_f32_to_f16(x)
#define TIDE_STORE_bf16(x) tide_f32_to_bf16(x)
#define TIDE_STORE_i8(x) ((int8_t)(x))
#define TIDE_STORE_i16(x) ((int16_t)(x))
#define TIDE_STORE_i32(x) ((int32_t)(x))
#define TIDE_STORE_i64(x) ((int64_t)(x))
#define TIDE_STORE_u8(x) ((uint8_t)(x))
#define TIDE_STORE_u16(x) ((uint16_t)(x))
#define TIDE_STORE_u32(x) ((uint32_t)(x))
#define TIDE_STORE_u64(x) ((uint64_t)(x))
#define TIDE_STORE_b(x) ((uint8_t)((x) != 0))

/// Before an elementwise loop whose output may be exactly one of its inputs: no iteration depends on another. clang
/// takes the permission for a demand and warns where it cannot follow (a call of erf, a division of integers).
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define TIDE_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TIDE_IVDEP _Pragma("GCC ivdep")
#else
#define TIDE_IVDEP
#endif

bool tide_dtype_is_float(tide_dtype dtype);

/// Byte `i` elements after `base`.
static inline void *tide_data_at(void *base, int64_t i, size_t elem_bytes) {
    return (char *)base + i * (int64_t)elem_bytes;
}
static inline const void *tide_data_const_at(const void *base, int64_t i, size_t elem_bytes) {
    return (const char *)base + i * (int64_t)elem_bytes;
}

/// Element `i` of any dtype; 64-bit integers may lose their low bits.
double tide_data_load_f64(tide_dtype dtype, const void *base, int64_t i);
/// Element `i` of an integer or bool dtype; floats are truncated and clamped, uint64 wraps.
int64_t tide_data_load_i64(tide_dtype dtype, const void *base, int64_t i);
/// Round and store; integers take the nearest representable value, NaN as 0.
void tide_data_store_f64(tide_dtype dtype, void *base, int64_t i, double v);
/// Truncate towards zero and saturate; NaN becomes 0.
int64_t tide_data_f64_to_i64(double v);

/// TIDE_ERR_NOT_IMPLEMENTED naming dtype, operand and node.
tide_status tide_data_no_dtype(const tide_node *node, tide_dtype dtype, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT when the operands' dtypes differ; `a` and `b` are the names in the ONNX text.
tide_status tide_data_same_dtype(const tide_infer *x, size_t a, size_t b, tide_error *err) TIDE_NODISCARD;

/**
 * Index `i` of an int32 or int64 operand, negative ones counted from the end.
 *
 * @param extent  elements there are to choose from
 * @return TIDE_ERR_RUNTIME naming node, index and extent when it is outside [-extent, extent)
 */
tide_status tide_data_index(const tide_node *node, const tide_operand *indices, int64_t i, int64_t extent, int64_t *out,
                            tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_BAD_INPUT unless the operand is int32 or int64.
tide_status tide_data_require_indices(const tide_node *node, const tide_operand *o, const char *what,
                                      tide_error *err) TIDE_NODISCARD;

/// The activation of a fused node on `n` elements in place. `dtype` float32 is the quick one.
void tide_data_activate(const tide_activation *act, tide_dtype dtype, void *data, int64_t n);

/// Copy output 0 from input 0 unless the plan has made them the same place: the kernel of every view.
tide_status tide_data_run_view(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
