// SPDX-License-Identifier: MIT
//
// Numbers into constants of any element type: what the importers use to turn a JSON number or a protobuf integer
// into an element. Half precision is rounded to nearest, ties to even (IEEE 754-2019, 4.3.1).
#include <math.h>
#include <string.h>

#include "core/base/pages.h"
#include "core/graph/graph_internal.h"
#include "core/memory/block.h"

/// Constants of so many bytes lie in pages of their own, which become a weight's without a copy (tide_cpu_offer).
enum { LARGE_BYTES = 1 << 20 };

static tide_status create_large(tide_dtype dtype, const tide_shape *shape, size_t size_bytes, const char *tag,
                                tide_tensor **out, tide_error *err) {
    tide_pages *pages = tide_pages_create(size_bytes);
    if (pages == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the system has no %zu B for a constant, '%s'", size_bytes, tag);
    tide_data_ptr ptr = tide_data_ptr_make(pages->data, pages, tide_pages_unref, TIDE_CPU);
    tide_block *block;
    tide_status st = tide_block_adopt(&ptr, size_bytes, TIDE_KIND_HOST_PAGEABLE, tag, &block, err);
    if (st != TIDE_OK) {
        tide_data_ptr_reset(&ptr);
        return st;
    }
    tide_storage storage = tide_storage_of_block(block);
    tide_block_unref(block);
    st = tide_tensor_create_on(&storage, 0, dtype, shape, out, err);
    tide_storage_deinit(&storage);
    return st;
}

tide_status tide__constant_create(tide_dtype dtype, const tide_shape *shape, const char *tag, tide_tensor **out,
                                  tide_error *err) {
    size_t size_bytes;
    TIDE_TRY(tide_shape_bytes(shape, dtype, &size_bytes, err));
    if (size_bytes >= LARGE_BYTES) return create_large(dtype, shape, size_bytes, tag, out, err);
    const tide_tensor_spec spec = {
        .dtype = dtype, .shape = *shape, .device = TIDE_CPU, .kind = TIDE_KIND_HOST_PAGEABLE, .tag = tag};
    return tide_tensor_create(&spec, out, err);
}

static uint16_t bf16_from(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)((bits >> 16) | 0x40u); // NaN stays NaN
    return (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

static uint16_t f16_from(double v) {
    const uint16_t sign = signbit(v) ? 0x8000u : 0;
    const double mag = fabs(v);
    if (isnan(v)) return (uint16_t)(sign | 0x7E00u);
    if (mag >= 65520.0) return (uint16_t)(sign | 0x7C00u); // halfway above the largest half and beyond: infinity
    if (mag < 0x1p-14) return (uint16_t)(sign | (uint16_t)nearbyint(mag * 0x1p24)); // subnormal, in steps of 2^-24
    int exponent;
    const double fraction = frexp(mag, &exponent); // mag = fraction * 2^exponent, fraction in [0.5, 1)
    const uint32_t mantissa = (uint32_t)nearbyint(fraction * 2048.0); // 1024 … 2048
    // A mantissa rounded up to 2048 carries into the exponent by itself: that is how the bits are laid out.
    return (uint16_t)(sign + (((uint32_t)(exponent + 14) << 10) + mantissa - 1024u));
}

/// Closed bounds of the whole-number types below 64 bits; false for any other type.
static bool small_int_bounds(tide_dtype dtype, int64_t *low, int64_t *high) {
    switch (dtype) {
    case TIDE_I8:
        *low = INT8_MIN, *high = INT8_MAX;
        return true;
    case TIDE_U8:
        *low = 0, *high = UINT8_MAX;
        return true;
    case TIDE_I16:
        *low = INT16_MIN, *high = INT16_MAX;
        return true;
    case TIDE_U16:
        *low = 0, *high = UINT16_MAX;
        return true;
    case TIDE_I32:
        *low = INT32_MIN, *high = INT32_MAX;
        return true;
    case TIDE_U32:
        *low = 0, *high = UINT32_MAX;
        return true;
    case TIDE_BOOL:
        *low = 0, *high = 1;
        return true;
    default:
        return false;
    }
}

static bool store_whole(void *array, tide_dtype dtype, size_t i, int64_t v) {
    int64_t low, high;
    if (small_int_bounds(dtype, &low, &high) && (v < low || v > high)) return false;
    if (dtype == TIDE_U64 && v < 0) return false;
    const size_t size = tide_dtype_size(dtype);
    // Little-endian: the low bytes of the 64-bit number are the smaller type's bytes.
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "element bytes are taken from the low end");
    memcpy((char *)array + i * size, &v, size);
    return true;
}

bool tide__number_store_real(void *array, tide_dtype dtype, size_t i, double v) {
    switch (dtype) {
    case TIDE_F32:
        ((float *)array)[i] = (float)v;
        return true;
    case TIDE_F64:
        ((double *)array)[i] = v;
        return true;
    case TIDE_F16:
        ((uint16_t *)array)[i] = f16_from(v);
        return true;
    case TIDE_BF16:
        ((uint16_t *)array)[i] = bf16_from((float)v);
        return true;
    default:
        break;
    }
    if (v != floor(v) || v < -0x1p63 || v >= 0x1p63) return false; // also false for NaN: it equals nothing
    return store_whole(array, dtype, i, (int64_t)v);
}

bool tide__number_store_int(void *array, tide_dtype dtype, size_t i, int64_t v) {
    switch (dtype) {
    case TIDE_F32:
    case TIDE_F64:
    case TIDE_F16:
    case TIDE_BF16:
        return tide__number_store_real(array, dtype, i, (double)v);
    default:
        return store_whole(array, dtype, i, v);
    }
}
