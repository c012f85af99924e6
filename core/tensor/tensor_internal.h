// SPDX-License-Identifier: MIT
//
// What the files of the tensor share: the object, and the layout in it.
#ifndef TIDE_CORE_TENSOR_TENSOR_INTERNAL_H
#define TIDE_CORE_TENSOR_TENSOR_INTERNAL_H

#include "core/tensor/tensor.h"

/// Where elements lie relative to the first one.
typedef struct tide__layout {
    tide_shape shape;
    int64_t strides[TIDE_MAX_RANK]; ///< elements, >= 0
    size_t size_bytes;              ///< elements times element size; 0 while an extent is unknown
    size_t reach_bytes;             ///< to the end of the farthest element; size_bytes when contiguous
    bool known;                     ///< no extent is unknown
    bool contiguous;
    bool overlaps; ///< two elements may share bytes
} tide__layout;

struct tide_tensor {
    uint32_t refs; ///< atomic
    tide_dtype dtype;
    tide__layout layout;
    size_t offset_bytes;  ///< of element 0 from the start of the storage's slice
    bool has_storage;     ///< also true for the empty storage of a tensor with 0 elements
    tide_storage storage; ///< referenced when has_storage; its device is the tensor's always
};

// ---- tensor_layout.c ----

/// Row-major. @return TIDE_ERR_INVALID (rank, a negative extent that is not the unknown one, dtype), TIDE_ERR_OVERFLOW
tide_status tide__layout_row_major(tide_dtype dtype, const tide_shape *shape, tide__layout *out,
                                   tide_error *err) TIDE_NODISCARD;
/// Any strides. @return as above, TIDE_ERR_INVALID also for an unknown extent or a negative stride
tide_status tide__layout_strided(tide_dtype dtype, const tide_shape *shape, const int64_t *strides, tide__layout *out,
                                 tide_error *err) TIDE_NODISCARD;
/// Would elements laid out like that fit at the offset into `room_bytes` at `base`, and at an address they may have?
/// @return TIDE_ERR_INVALID with the numbers
tide_status tide__layout_check_room(tide_dtype dtype, const tide__layout *layout, const void *base, size_t room_bytes,
                                    size_t offset_bytes, tide_error *err) TIDE_NODISCARD;
/// The same for a storage.
tide_status tide__layout_check_place(tide_dtype dtype, const tide__layout *layout, const tide_storage *storage,
                                     size_t offset_bytes, tide_error *err) TIDE_NODISCARD;

// ---- tensor.c ----

/// The object. @param storage  taken when this succeeds; NULL: unbound on `device`
tide_status tide__tensor_new(tide_dtype dtype, const tide__layout *layout, tide_storage *storage, size_t offset_bytes,
                             tide_device device, tide_tensor **out, tide_error *err) TIDE_NODISCARD;
/// What every tensor promises: its elements lie inside its storage, and what is said of their layout agrees. For
/// assertions.
bool tide__tensor_holds(const tide_tensor *t);
tide_storage_spec tide__tensor_storage_spec(const tide_tensor_spec *spec);

#endif
