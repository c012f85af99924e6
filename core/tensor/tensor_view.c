// SPDX-License-Identifier: MIT
//
// Views: other layouts of the same storage. Each is a tensor of its own; none copies a byte. See tensor.h.
//
//     base   [3x4]     | 00 01 02 03 | 10 11 12 13 | 20 21 22 23 |
//     slice  rows 1-2                | 10 11 12 13 | 20 21 22 23 |     offset 4, strides [4,1]
//     slice  columns 0,2  00    02     10    12      20    22          offset 0, strides [4,2]
//     permute          [4x3]                                           offset 0, strides [1,4]
#include <inttypes.h>

#include "core/base/checked.h"
#include "core/tensor/tensor_internal.h"

// ---- the one way to make a view ----

static tide_status make_view(const tide_tensor *t, const tide_shape *shape, const int64_t *strides, size_t offset_bytes,
                             tide_tensor **out, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_strided(t->dtype, shape, strides, &layout, err));
    TIDE_TRY(tide__layout_check_place(t->dtype, &layout, &t->storage, offset_bytes, err));
    tide_storage own = tide_storage_ref(&t->storage);
    const tide_status st = tide__tensor_new(t->dtype, &layout, &own, offset_bytes, own.device, out, err);
    tide_storage_deinit(&own);
    return st;
}

static tide_status need_storage(const tide_tensor *t, const char *verb, tide_error *err) {
    if (t->has_storage) return TIDE_OK;
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "a tensor of shape %s without a storage cannot be %s",
                     tide_shape_format(&t->layout.shape, text, sizeof text), verb);
}

static tide_status need_dim(const tide_tensor *t, int32_t dim, tide_error *err) {
    if (dim >= 0 && dim < t->layout.shape.rank) return TIDE_OK;
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s has no dimension %" PRId32,
                     tide_shape_format(&t->layout.shape, text, sizeof text), dim);
}

// ---- reshape ----

tide_status tide_tensor_view(tide_tensor *t, const tide_shape *shape, tide_tensor **out, tide_error *err) {
    tide__layout layout;
    char from[192], to[192];
    TIDE_TRY(tide__layout_row_major(t->dtype, shape, &layout, err));
    if (!layout.known || !t->layout.known || layout.size_bytes != t->layout.size_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s cannot be viewed as %s: %s number of elements",
                         tide_shape_format(&t->layout.shape, from, sizeof from),
                         tide_shape_format(shape, to, sizeof to),
                         layout.known && t->layout.known ? "other" : "unknown");
    if (!t->layout.contiguous)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s with gaps cannot be viewed as %s",
                         tide_shape_format(&t->layout.shape, from, sizeof from),
                         tide_shape_format(shape, to, sizeof to));
    if (t->has_storage) return tide_tensor_create_on(&t->storage, t->offset_bytes, t->dtype, shape, out, err);
    return tide__tensor_new(t->dtype, &layout, NULL, 0, t->storage.device, out, err);
}

// ---- slice ----

tide_status tide_tensor_slice(tide_tensor *t, int32_t dim, int64_t begin, int64_t end, int64_t step, tide_tensor **out,
                              tide_error *err) {
    TIDE_TRY(need_storage(t, "sliced", err));
    TIDE_TRY(need_dim(t, dim, err));
    tide_shape shape = t->layout.shape;
    if (begin < 0 || end < begin || end > shape.dims[dim] || step < 1) {
        char text[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "elements %" PRId64 " to %" PRId64 " in steps of %" PRId64
                         " are no slice of dimension %" PRId32 " of shape %s",
                         begin, end, step, dim, tide_shape_format(&t->layout.shape, text, sizeof text));
    }
    int64_t strides[TIDE_MAX_RANK];
    for (int32_t i = 0; i < shape.rank; i++) strides[i] = t->layout.strides[i];
    shape.dims[dim] = end > begin ? 1 + (end - begin - 1) / step : 0;
    // A view without elements begins where its base does (its first element might lie behind the end) and its strides
    // mean nothing. Of others nothing overflows: with two elements or more, all that is counted lies inside the base.
    const bool has_elements = t->layout.size_bytes > 0 && shape.dims[dim] > 0;
    if (has_elements && shape.dims[dim] > 1) strides[dim] *= step;
    const size_t skipped =
        has_elements ? (size_t)(begin * t->layout.strides[dim]) * tide_dtype_size(t->dtype) : (size_t)0;
    return make_view(t, &shape, strides, t->offset_bytes + skipped, out, err);
}

// ---- permute ----

tide_status tide_tensor_permute(tide_tensor *t, const int32_t *order, tide_tensor **out, tide_error *err) {
    TIDE_TRY(need_storage(t, "permuted", err));
    tide_shape shape = {.rank = t->layout.shape.rank};
    int64_t strides[TIDE_MAX_RANK] = {0};
    uint32_t seen = 0;
    for (int32_t i = 0; i < shape.rank; i++) {
        TIDE_TRY(need_dim(t, order[i], err));
        if ((seen >> order[i] & 1) != 0)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "dimension %" PRId32 " stands twice in an order of dimensions",
                             order[i]);
        seen |= UINT32_C(1) << order[i];
        shape.dims[i] = t->layout.shape.dims[order[i]];
        strides[i] = t->layout.strides[order[i]];
    }
    return make_view(t, &shape, strides, t->offset_bytes, out, err);
}

// ---- expand ----

tide_status tide_tensor_expand(tide_tensor *t, const tide_shape *shape, tide_tensor **out, tide_error *err) {
    TIDE_TRY(need_storage(t, "expanded", err));
    const tide_shape *from = &t->layout.shape;
    const int32_t added = shape->rank - from->rank; // new outermost dimensions, all repeated
    int64_t strides[TIDE_MAX_RANK] = {0};
    bool agree = added >= 0 && shape->rank <= TIDE_MAX_RANK;
    for (int32_t i = 0; agree && i < from->rank; i++) {
        const int64_t have = from->dims[i], want = shape->dims[i + added];
        if (have == want)
            strides[i + added] = t->layout.strides[i];
        else
            agree = have == 1;
    }
    if (!agree) {
        char a[192], b[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s cannot be expanded to %s",
                         tide_shape_format(from, a, sizeof a), tide_shape_format(shape, b, sizeof b));
    }
    return make_view(t, shape, strides, t->offset_bytes, out, err);
}

// ---- any layout ----

tide_status tide_tensor_as_strided(tide_tensor *t, const tide_shape *shape, const int64_t *strides,
                                   int64_t offset_elements, tide_tensor **out, tide_error *err) {
    TIDE_TRY(need_storage(t, "seen with other strides", err));
    int64_t offset_bytes;
    if (offset_elements < 0 || !tide_mul_i64(offset_elements, (int64_t)tide_dtype_size(t->dtype), &offset_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "offset of %" PRId64 " elements of %s", offset_elements,
                         tide_dtype_name(t->dtype));
    return make_view(t, shape, strides, (size_t)offset_bytes, out, err);
}
