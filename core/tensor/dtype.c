// SPDX-License-Identifier: MIT
//
// Element types: names and sizes. See dtype.h.
#include "core/tensor/dtype.h"

#include <string.h>

static const struct {
    tide_dtype dtype;
    const char *name;
    size_t bytes;
} dtypes[] = {
#define XX(name, value, text, bytes) {TIDE_##name, text, bytes},
    TIDE_DTYPE_MAP(XX)
#undef XX
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *tide_dtype_name(tide_dtype dtype) {
    for (size_t i = 0; i < N_DTYPES; i++) {
        if (dtypes[i].dtype == dtype) return dtypes[i].name;
    }
    return "undefined";
}

size_t tide_dtype_size(tide_dtype dtype) {
    for (size_t i = 0; i < N_DTYPES; i++) {
        if (dtypes[i].dtype == dtype) return dtypes[i].bytes;
    }
    return 0;
}

tide_status tide_dtype_parse(const char *text, tide_dtype *out, tide_error *err) {
    for (size_t i = 0; i < N_DTYPES; i++) {
        if (strcmp(dtypes[i].name, text) != 0) continue;
        *out = dtypes[i].dtype;
        return TIDE_OK;
    }
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not an element type", text);
    tide_error_hint(err, "types: "
#define XX(name, value, dtype_text, bytes) dtype_text " "
                    TIDE_DTYPE_MAP(XX)
#undef XX
    );
    return st;
}
