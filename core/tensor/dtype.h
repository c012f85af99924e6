// SPDX-License-Identifier: MIT
//
// Element types and shapes.
#ifndef TIDE_CORE_TENSOR_DTYPE_H
#define TIDE_CORE_TENSOR_DTYPE_H

#include <stdint.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// enum suffix, ONNX TensorProto.DataType value (stable, stored in files), name, bytes per element
#define TIDE_DTYPE_MAP(XX)                                                                                             \
    XX(F32, 1, "float32", 4)                                                                                           \
    XX(U8, 2, "uint8", 1)                                                                                              \
    XX(I8, 3, "int8", 1)                                                                                               \
    XX(U16, 4, "uint16", 2)                                                                                            \
    XX(I16, 5, "int16", 2)                                                                                             \
    XX(I32, 6, "int32", 4)                                                                                             \
    XX(I64, 7, "int64", 8)                                                                                             \
    XX(BOOL, 9, "bool", 1)                                                                                             \
    XX(F16, 10, "float16", 2)                                                                                          \
    XX(F64, 11, "float64", 8)                                                                                          \
    XX(U32, 12, "uint32", 4)                                                                                           \
    XX(U64, 13, "uint64", 8)                                                                                           \
    XX(BF16, 16, "bfloat16", 2)

typedef enum tide_dtype {
    TIDE_DTYPE_UNDEFINED = 0,
#define XX(name, value, text, bytes) TIDE_##name = (value),
    TIDE_DTYPE_MAP(XX)
#undef XX
} tide_dtype;

/// "float32", …; "undefined" outside the list.
const char *tide_dtype_name(tide_dtype dtype);
/// Bytes per element; 0 outside the list.
size_t tide_dtype_size(tide_dtype dtype);
/// By name. @return TIDE_ERR_INVALID when there is none
tide_status tide_dtype_parse(const char *text, tide_dtype *out, tide_error *err) TIDE_NODISCARD;

enum { TIDE_MAX_RANK = 8 };

/// Extents, outermost first; rank 0 is a scalar with one element. An extent of TIDE_DIM_UNKNOWN is not known yet.
#define TIDE_DIM_UNKNOWN ((int64_t)-1)
typedef struct tide_shape {
    int32_t rank;                ///< 0 … TIDE_MAX_RANK
    int64_t dims[TIDE_MAX_RANK]; ///< elements; unused ones are 0
} tide_shape;

/// From `rank` extents; `rank` above TIDE_MAX_RANK is cut by an assert: importers check first.
tide_shape tide_shape_make(int32_t rank, const int64_t *dims);
bool tide_shape_equal(const tide_shape *a, const tide_shape *b);
/// True when no extent is unknown.
bool tide_shape_known(const tide_shape *s);
/**
 * Number of elements / of bytes.
 *
 * @return TIDE_ERR_INVALID for a negative extent or unknown dtype, TIDE_ERR_OVERFLOW past 2^63-1 (LT-15). Any extent
 *         0 gives 0.
 */
tide_status tide_shape_numel(const tide_shape *s, int64_t *out, tide_error *err) TIDE_NODISCARD;
tide_status tide_shape_bytes(const tide_shape *s, tide_dtype dtype, size_t *out, tide_error *err) TIDE_NODISCARD;
/// As tide_shape_bytes, but where an extent is 0 the others must be within 2^63-1 bytes by themselves: operators
/// multiply some extents and may leave out the one that is 0.
tide_status tide_shape_operand_bytes(const tide_shape *s, tide_dtype dtype, size_t *out,
                                     tide_error *err) TIDE_NODISCARD;
/// Row-major strides in elements.
void tide_shape_strides(const tide_shape *s, int64_t *strides);
/// "[1x3x224x224]", "[]" for a scalar, "?" for unknown extents; returns `buf` (192 bytes suffice).
char *tide_shape_format(const tide_shape *s, char *buf, size_t buf_bytes);
/// "1x3x224x224" or "" for a scalar.
tide_status tide_shape_parse(const char *text, tide_shape *out, tide_error *err) TIDE_NODISCARD;
/// The same with "?" for an extent that is left open (TIDE_DIM_UNKNOWN): "300x?".
tide_status tide_shape_parse_open(const char *text, tide_shape *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
