// SPDX-License-Identifier: MIT
//
// Resize: a shape that may need more memory than there is. See tensor.h.
//
//     need                         nobody else on the block       shared with others
//     no more than the old bytes   shape only                     shape only
//     up to the capacity           shape, new tail zeroed         fresh memory: the rest is not ours to write
//     more                         fresh memory                   fresh memory
//
// A tensor of no elements may stand at any byte: where its first element may not, it takes fresh memory too.
#include "core/tensor/tensor_internal.h"

/// Fresh memory with the old bytes and zeros behind them.
static tide_status take_fresh(const tide_tensor *t, const tide_tensor_spec *where, size_t have_bytes, size_t want_bytes,
                              tide_storage *out, tide_error *err) {
    tide_storage fresh = {.device = t->storage.device};
    if (where != NULL) {
        const tide_storage_spec spec = tide__tensor_storage_spec(where);
        TIDE_TRY(tide_storage_create(&spec, want_bytes, &fresh, err));
    } else {
        TIDE_TRY(tide__tensor_storage_like(t, want_bytes, &fresh, err));
    }
    tide_status st = tide__storage_fill_from(&fresh, &t->storage, t->offset_bytes, have_bytes, err);
    if (st == TIDE_OK) st = tide__storage_zero(&fresh, have_bytes, fresh.size_bytes - have_bytes, err);
    if (st != TIDE_OK) {
        tide_storage_deinit(&fresh);
        return st;
    }
    *out = fresh;
    return TIDE_OK;
}

tide_status tide_tensor_resize(tide_tensor *t, const tide_shape *shape, const tide_tensor_spec *where,
                               tide_error *err) {
    size_t want_bytes;
    tide__layout want;
    TIDE_TRY(tide_shape_bytes(shape, t->dtype, &want_bytes, err)); // refuses unknown extents
    TIDE_TRY(tide__layout_row_major(t->dtype, shape, &want, err));
    if (t->layout.known && !t->layout.contiguous) {
        char text[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a strided view of shape %s cannot be resized",
                         tide_shape_format(&t->layout.shape, text, sizeof text));
    }
    const size_t have_bytes = tide_tensor_is_bound(t) ? t->layout.size_bytes : 0;
    if (want_bytes > have_bytes) {
        if (tide_storage_is_unique(&t->storage) &&
            tide__layout_check_place(t->dtype, &want, &t->storage, t->offset_bytes, NULL) == TIDE_OK) {
            TIDE_TRY(tide__storage_zero(&t->storage, t->offset_bytes + have_bytes, want_bytes - have_bytes, err));
        } else {
            tide_storage fresh;
            TIDE_TRY(take_fresh(t, where, have_bytes, want_bytes, &fresh, err));
            tide_storage_deinit(&t->storage);
            t->storage = fresh;
            t->offset_bytes = 0;
            t->has_storage = true;
        }
    }
    t->layout = want;
    return TIDE_OK;
}
