// SPDX-License-Identifier: MIT
//
// Intervals of whole numbers, by type and by content. See intervals.h.
#include "core/graph/intervals.h"

#include <string.h>

static bool ends_of(tide_dtype dtype, int64_t *least, int64_t *most) {
    *least = 0;
    switch (dtype) {
    case TIDE_BOOL:
        *most = 1;
        return true;
    case TIDE_U8:
        *most = UINT8_MAX;
        return true;
    case TIDE_U16:
        *most = UINT16_MAX;
        return true;
    case TIDE_U32:
        *most = UINT32_MAX;
        return true;
    case TIDE_I8:
        *least = INT8_MIN;
        *most = INT8_MAX;
        return true;
    case TIDE_I16:
        *least = INT16_MIN;
        *most = INT16_MAX;
        return true;
    case TIDE_I32:
        *least = INT32_MIN;
        *most = INT32_MAX;
        return true;
    case TIDE_I64:
        *least = INT64_MIN;
        *most = INT64_MAX;
        return true;
    default:
        return false;
    }
}

tide_intervals tide_intervals_any(tide_dtype dtype, int64_t n) {
    tide_intervals out = {.n = 0};
    int64_t least, most;
    if (n < 1 || n > TIDE_INTERVALS_MAX || !ends_of(dtype, &least, &most)) return out;
    out.n = (size_t)n;
    for (size_t i = 0; i < out.n; i++) {
        out.least[i] = least;
        out.most[i] = most;
    }
    return out;
}

static int64_t element(tide_dtype dtype, const void *data, size_t i) {
    switch (dtype) {
#define AS(DT, type)                                                                                                   \
    case TIDE_##DT: {                                                                                                  \
        type v;                                                                                                        \
        memcpy(&v, (const char *)data + i * sizeof v, sizeof v);                                                       \
        return (int64_t)v;                                                                                             \
    }
        AS(U8, uint8_t)
        AS(U16, uint16_t)
        AS(U32, uint32_t)
        AS(I8, int8_t)
        AS(I16, int16_t)
        AS(I32, int32_t)
        AS(I64, int64_t)
#undef AS
    default: // bool
        return ((const unsigned char *)data)[i] != 0;
    }
}

tide_intervals tide_intervals_of(tide_dtype dtype, const void *data, int64_t n) {
    tide_intervals out = tide_intervals_any(dtype, n);
    for (size_t i = 0; i < out.n; i++) out.least[i] = out.most[i] = element(dtype, data, i);
    return out;
}
