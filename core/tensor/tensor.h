// SPDX-License-Identifier: MIT
//
// tensor: a logical view (dtype, shape, strides, offset) of a storage.
//
//     tide_tensor*  ->  tensor impl  ->  storage (slice)  ->  block  ->  allocator
//
// A `tide_tensor *` is the handle; references are counted in the object. Data is never copied behind the caller's
// back: ref shares, take moves, clone copies.
#ifndef TIDE_CORE_TENSOR_TENSOR_H
#define TIDE_CORE_TENSOR_TENSOR_H

#include "core/memory/block.h"
#include "core/memory/registry.h"
#include "core/memory/storage.h"
#include "core/tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tensor tide_tensor;

/// How to make a tensor: the one entry for creation; there is no path without a kind (LT-33).
typedef struct tide_tensor_spec {
    tide_dtype dtype;
    tide_shape shape; ///< all extents known
    tide_device device;
    tide_memory_kind kind;
    size_t align_bytes; ///< 0: the rule of (device, kind)
    tide_stream_id stream;
    tide_registry *registry; ///< NULL: the registry of the process
    const char *tag;         ///< copied into the block; may be NULL
} tide_tensor_spec;

/**
 * Make a tensor with memory of its own, row-major, content undefined. The allocation asks for the byte size rounded
 * up to the alignment (so that a plan's arithmetic is the allocator's).
 *
 * @return TIDE_OK; TIDE_ERR_INVALID, TIDE_ERR_OVERFLOW (shape), TIDE_ERR_NOT_FOUND (no allocator), TIDE_ERR_NOMEM
 * 0 elements allocate nothing: data is NULL, device known (LT-10).
 */
tide_status tide_tensor_create(const tide_tensor_spec *spec, tide_tensor **out, tide_error *err) TIDE_NODISCARD;
/// Metadata only: no storage yet, data NULL; to be bound.
tide_status tide_tensor_create_unbound(tide_dtype dtype, const tide_shape *shape, tide_device device, tide_tensor **out,
                                       tide_error *err) TIDE_NODISCARD;
/// A tensor over a slice that is already there; takes its own reference. The bytes must fit: TIDE_ERR_INVALID.
tide_status tide_tensor_create_on(const tide_storage *storage, size_t offset_bytes, tide_dtype dtype,
                                  const tide_shape *shape, tide_tensor **out, tide_error *err) TIDE_NODISCARD;
/// A tensor over memory of somebody else on the CPU, kept alive by the caller.
tide_status tide_tensor_borrow(void *data, size_t size_bytes, tide_dtype dtype, const tide_shape *shape,
                               tide_memory_kind kind, tide_tensor **out, tide_error *err) TIDE_NODISCARD;

tide_tensor *tide_tensor_ref(tide_tensor *t);
/// Takes NULL. The last reference drops the storage.
void tide_tensor_unref(tide_tensor *t);
/// Move: returns *t and sets it to NULL.
tide_tensor *tide_tensor_take(tide_tensor **t);

/// Address of element 0: storage + offset; NULL without a storage or with 0 bytes. The two differ in intent: what
/// is written through tide_tensor_data may one day trigger a copy (copy-on-write), reading never does.
void *tide_tensor_data(tide_tensor *t);
const void *tide_tensor_const_data(const tide_tensor *t);
tide_dtype tide_tensor_dtype(const tide_tensor *t);
const tide_shape *tide_tensor_shape(const tide_tensor *t);
const int64_t *tide_tensor_strides(const tide_tensor *t); ///< elements
tide_device tide_tensor_device(const tide_tensor *t);
tide_memory_kind tide_tensor_kind(const tide_tensor *t); ///< of the block; Default without one
size_t tide_tensor_offset_bytes(const tide_tensor *t);   ///< from the start of the storage's slice
size_t tide_tensor_size_bytes(const tide_tensor *t);     ///< of the present shape
size_t tide_tensor_capacity_bytes(const tide_tensor *t); ///< from element 0 to the end of the slice
bool tide_tensor_is_contiguous(const tide_tensor *t);
bool tide_tensor_is_bound(const tide_tensor *t); ///< has a storage with a block
const tide_storage *tide_tensor_storage(const tide_tensor *t);

/**
 * Let `t` use `storage` from `offset_bytes` on; its device becomes the storage's. Other tensors on the old storage
 * keep it (S28-16).
 *
 * @return TIDE_ERR_INVALID when offset + size is outside the slice, or when the address is no multiple of the element
 *         size; nothing is changed then (S28-15)
 */
tide_status tide_tensor_bind(tide_tensor *t, const tide_storage *storage, size_t offset_bytes,
                             tide_error *err) TIDE_NODISCARD;
/// Drop the storage; shape and dtype stay.
void tide_tensor_unbind(tide_tensor *t);
/// Same elements, other shape, shared storage; contiguous tensors only. Count mismatch: TIDE_ERR_INVALID.
tide_status tide_tensor_view(tide_tensor *t, const tide_shape *shape, tide_tensor **out,
                             tide_error *err) TIDE_NODISCARD;
/// Change shape and row-major strides, never memory; a shape that needs more than the capacity is TIDE_ERR_NO_SPACE.
/// A tensor without a storage takes any shape: whether it fits is asked when one is bound.
tide_status tide_tensor_set_shape(tide_tensor *t, const tide_shape *shape, tide_error *err) TIDE_NODISCARD;
/// A new tensor with a copy of the bytes, allocated by `spec`'s device, kind, alignment, registry and tag.
tide_status tide_tensor_clone(const tide_tensor *t, const tide_tensor_spec *where, tide_tensor **out,
                              tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
