// SPDX-License-Identifier: MIT
//
// dtype_foreign: element types that ONNX numbers and that no tensor here has; messages name them.
#ifndef TIDE_CORE_TENSOR_DTYPE_FOREIGN_H
#define TIDE_CORE_TENSOR_DTYPE_FOREIGN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// "string" for 8, "float8e4m3fn" for 17 …; NULL for a number that is no type, or one of tide_dtype.
const char *tide_dtype_foreign_name(int64_t number);

#ifdef __cplusplus
}
#endif
#endif
