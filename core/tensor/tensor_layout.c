// SPDX-License-Identifier: MIT
//
// Layout: shape and strides, and all that follows from them, decided once when they are set (LT-4). See
// tensor_internal.h.
//
//     shape [2x3], strides [5,2], element 4 B
//     | a | . | b | . | c | d | . | e | . | f |
//     |<------------ reach_bytes: 40 B ------>|     size_bytes: 24 B
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/tensor/tensor_internal.h"

// ---- row-major ----

/// An unknown extent is allowed, other negative ones are not; nothing is counted yet.
static tide_status check_unknown(tide_dtype dtype, const tide_shape *shape, tide_error *err) {
    char text[192];
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0 && shape->dims[i] != TIDE_DIM_UNKNOWN)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s has a negative extent at position %" PRId32,
                             tide_shape_format(shape, text, sizeof text), i);
    }
    if (tide_dtype_size(dtype) == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "element type %d is not one of the list", (int)dtype);
    return TIDE_OK;
}

tide_status tide__layout_row_major(tide_dtype dtype, const tide_shape *shape, tide__layout *out, tide_error *err) {
    size_t size_bytes = 0;
    const bool known = shape->rank < 0 || shape->rank > TIDE_MAX_RANK || tide_shape_known(shape);
    if (known)
        TIDE_TRY(tide_shape_bytes(shape, dtype, &size_bytes, err)); // refuses a damaged rank too
    else
        TIDE_TRY(check_unknown(dtype, shape, err));
    *out = (tide__layout){
        .shape = *shape, .size_bytes = size_bytes, .reach_bytes = size_bytes, .known = known, .contiguous = known};
    tide_shape_strides(shape, out->strides);
    return TIDE_OK;
}

// ---- strided ----

/// Elements from the first to behind the farthest one, sum of (extent - 1) * stride, plus 1. False on overflow.
static bool reach_of(const tide_shape *shape, const int64_t *strides, int64_t *out) {
    int64_t reach = 1, part;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (!tide_mul_i64(shape->dims[i] - 1, strides[i], &part) || !tide_add_i64(reach, part, &reach)) return false;
    }
    TIDE_ASSERT(reach >= 1);
    *out = reach;
    return true;
}

/// An extent of 1 is never stepped over, so its stride does not matter.
static bool is_row_major(const tide_shape *shape, const int64_t *strides) {
    int64_t want[TIDE_MAX_RANK];
    tide_shape_strides(shape, want);
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] != 1 && strides[i] != want[i]) return false;
    }
    return true;
}

/// In order of stride, each step must go beyond all that the smaller steps reach. That is enough for elements to have
/// bytes of their own, and holds for whatever slice and permute make of a row-major tensor. It is not necessary: a few
/// layouts of tide_tensor_as_strided interleave without meeting and count as overlapping.
static bool may_overlap(const tide_shape *shape, const int64_t *strides) {
    int64_t spanned = 0; // farthest element of the dimensions already taken
    uint32_t taken = 0;
    for (;;) {
        int32_t next = -1;
        for (int32_t i = 0; i < shape->rank; i++) {
            if ((taken >> i & 1) != 0 || shape->dims[i] == 1) continue;
            if (next < 0 || strides[i] < strides[next]) next = i;
        }
        if (next < 0) return false;
        TIDE_ASSERT(next < shape->rank && (taken >> next & 1) == 0);
        if (strides[next] <= spanned) return true;
        spanned += (shape->dims[next] - 1) * strides[next]; // fits: reach_of did
        taken |= UINT32_C(1) << next;
    }
}

tide_status tide__layout_strided(tide_dtype dtype, const tide_shape *shape, const int64_t *strides, tide__layout *out,
                                 tide_error *err) {
    char text[192];
    size_t size_bytes;
    TIDE_TRY(tide_shape_bytes(shape, dtype, &size_bytes, err));
    tide__layout l = {.shape = *shape, .size_bytes = size_bytes, .known = true, .contiguous = true};
    for (int32_t i = 0; i < shape->rank; i++) {
        if (strides[i] < 0)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "stride %" PRId64 " of shape %s is negative", strides[i],
                             tide_shape_format(shape, text, sizeof text));
        l.strides[i] = strides[i];
    }
    if (size_bytes > 0) { // without elements there is nothing to reach and no gap
        int64_t reach;
        if (!reach_of(shape, strides, &reach) || !tide_mul_i64(reach, (int64_t)tide_dtype_size(dtype), &reach))
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the strides of shape %s reach past 2^63-1 bytes",
                             tide_shape_format(shape, text, sizeof text));
        l.reach_bytes = (size_t)reach;
        l.contiguous = is_row_major(shape, strides);
        l.overlaps = may_overlap(shape, strides);
    }
    TIDE_ASSERT(l.overlaps || l.reach_bytes >= l.size_bytes);
    TIDE_ASSERT(!l.contiguous || (l.reach_bytes == l.size_bytes && !l.overlaps));
    *out = l;
    return TIDE_OK;
}

// ---- room in a storage ----

tide_status tide__layout_check_room(tide_dtype dtype, const tide__layout *layout, const void *base, size_t room_bytes,
                                    size_t offset_bytes, tide_error *err) {
    if (!layout->known) {
        char text[192];
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s has an unknown extent and so no size yet",
                                         tide_shape_format(&layout->shape, text, sizeof text));
        tide_error_hint(err, "set a known shape first");
        return st;
    }
    // By subtraction: offset + reach might wrap around (S28-15).
    if (offset_bytes > room_bytes || layout->reach_bytes > room_bytes - offset_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a tensor of %zu B does not fit at offset %zu of a storage of %zu B",
                         layout->reach_bytes, offset_bytes, room_bytes);
    const size_t elem_bytes = tide_dtype_size(dtype);
    if (layout->size_bytes > 0 && ((uintptr_t)base + offset_bytes) % elem_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "offset %zu gives an address that is no multiple of the %zu B of %s",
                         offset_bytes, elem_bytes, tide_dtype_name(dtype));
    return TIDE_OK;
}

tide_status tide__layout_check_place(tide_dtype dtype, const tide__layout *layout, const tide_storage *storage,
                                     size_t offset_bytes, tide_error *err) {
    return tide__layout_check_room(dtype, layout, tide_storage_data(storage), storage->size_bytes, offset_bytes, err);
}
