// SPDX-License-Identifier: MIT
//
// Binding: which storage a tensor uses. A tensor holds a slice of its own, so that binding one never moves another that
// used the same storage (S28-16). See tensor.h.
#include "core/tensor/tensor_internal.h"

/// Row-major over `fresh`, whose reference moves into the tensor.
static void settle(tide_tensor *t, tide_storage fresh, size_t offset_bytes, const tide__layout *layout) {
    tide_storage_deinit(&t->storage);
    t->storage = fresh;
    t->offset_bytes = offset_bytes;
    t->has_storage = true;
    t->layout = *layout;
}

tide_status tide_tensor_bind(tide_tensor *t, const tide_storage *storage, size_t offset_bytes, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(t->dtype, &t->layout.shape, &layout, err));
    TIDE_TRY(tide__layout_check_place(t->dtype, &layout, storage, offset_bytes, err));
    // Referenced before the old one is dropped: both may be the same block.
    settle(t, tide_storage_ref(storage), offset_bytes, &layout);
    return TIDE_OK;
}

tide_status tide_tensor_bind_external(tide_tensor *t, tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind,
                                      const char *tag, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(t->dtype, &t->layout.shape, &layout, err));
    TIDE_TRY(tide__layout_check_room(t->dtype, &layout, ptr->data, size_bytes, 0, err));
    tide_storage fresh = {.device = ptr->device};
    TIDE_TRY(tide_storage_adopt(ptr, size_bytes, kind, tag, &fresh, err));
    settle(t, fresh, 0, &layout);
    return TIDE_OK;
}

void tide_tensor_unbind(tide_tensor *t) {
    tide_storage_deinit(&t->storage);
    t->offset_bytes = 0;
    t->has_storage = false;
    // Strides over nothing mean nothing. A shape that was counted once can be counted again.
    tide__layout layout;
    if (tide__layout_row_major(t->dtype, &t->layout.shape, &layout, NULL) == TIDE_OK) t->layout = layout;
}

void tide_tensor_reset(tide_tensor *t) {
    t->layout.shape = (tide_shape){.rank = 1};
    tide_tensor_unbind(t);
}
