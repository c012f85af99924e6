// SPDX-License-Identifier: MIT
//
// Names of ONNX's other element types. See dtype_foreign.h.
#include "core/tensor/dtype_foreign.h"

#include <stddef.h>

const char *tide_dtype_foreign_name(int64_t number) {
    static const struct {
        int64_t number;
        const char *name;
    } known[] = {{8, "string"},          {14, "complex64"},  {15, "complex128"},     {17, "float8e4m3fn"},
                 {18, "float8e4m3fnuz"}, {19, "float8e5m2"}, {20, "float8e5m2fnuz"}, {21, "uint4"},
                 {22, "int4"},           {23, "float4e2m1"}, {24, "float8e8m0"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].number == number) return known[i].name;
    return NULL;
}
