// SPDX-License-Identifier: MIT
//
// tensor: a logical view (dtype, shape, strides, offset) of a storage.
//
//     tide_tensor*  ->  tensor impl  ->  storage (slice)  ->  block  ->  allocator
//
// A `tide_tensor *` is the handle; references are counted in the object. Data is never copied behind the caller's
// back: ref shares, take moves, clone copies, and a lazy clone copies when one of the two is first written.
//
// Offsets are bytes inside; calls that count in elements say so in their name. Strides are elements, never
// negative; 0 repeats an element (expand).
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
/// Metadata only: no storage yet, data NULL; to be bound. Extents may be unknown (TIDE_DIM_UNKNOWN): such a tensor has
/// 0 bytes, and cannot be bound until tide_tensor_set_shape gave it a known shape (PT-5).
tide_status tide_tensor_create_unbound(tide_dtype dtype, const tide_shape *shape, tide_device device, tide_tensor **out,
                                       tide_error *err) TIDE_NODISCARD;
/// A tensor over a slice that is already there; takes its own reference. The bytes must fit: TIDE_ERR_INVALID.
tide_status tide_tensor_create_on(const tide_storage *storage, size_t offset_bytes, tide_dtype dtype,
                                  const tide_shape *shape, tide_tensor **out, tide_error *err) TIDE_NODISCARD;
/// A tensor over memory of the caller's on the CPU, which the caller keeps alive.
tide_status tide_tensor_borrow(void *data, size_t size_bytes, tide_dtype dtype, const tide_shape *shape,
                               tide_memory_kind kind, tide_tensor **out, tide_error *err) TIDE_NODISCARD;

tide_tensor *tide_tensor_ref(tide_tensor *t);
/// Takes NULL. The last reference drops the storage.
void tide_tensor_unref(tide_tensor *t);
/// Move: returns *t and sets it to NULL.
tide_tensor *tide_tensor_take(tide_tensor **t);

uint32_t tide_tensor_use_count(const tide_tensor *t);
/// A handle is defined when it points to a tensor (LT-2).
static inline bool tide_tensor_is_defined(const tide_tensor *t) { return t != NULL; }

/// Address of element 0 for reading / for writing (tide_block_read, tide_block_write); NULL without a storage or with 0
/// bytes. Reading never copies, writing may (PT-6): an address is good until the next write through another handle.
/// Writing is TIDE_ERR_INVALID where elements may share bytes (expanded views, windows of tide_tensor_as_strided).
tide_status tide_tensor_read(const tide_tensor *t, const void **out, tide_error *err) TIDE_NODISCARD;
tide_status tide_tensor_write(tide_tensor *t, void **out, tide_error *err) TIDE_NODISCARD;
/// The same for callers that know that it cannot fail; if it does, the reason is logged and NULL returned.
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
bool tide_tensor_is_contiguous(const tide_tensor *t);    ///< row-major without gaps; decided when made (LT-4)
bool tide_tensor_has_known_shape(const tide_tensor *t);
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
/// Bind memory of the caller's from its first byte on; *ptr is taken when this succeeds, and released after the last
/// tensor over it (S28-14).
tide_status tide_tensor_bind_external(tide_tensor *t, tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind,
                                      const char *tag, tide_error *err) TIDE_NODISCARD;
/// Drop the storage; shape and dtype stay.
void tide_tensor_unbind(tide_tensor *t);
/// Same elements, other shape, shared storage; contiguous tensors only. Count mismatch: TIDE_ERR_INVALID.
tide_status tide_tensor_view(tide_tensor *t, const tide_shape *shape, tide_tensor **out,
                             tide_error *err) TIDE_NODISCARD;
/// Change shape and row-major strides, never memory; a shape that needs more than the capacity is TIDE_ERR_NO_SPACE.
/// A tensor without a storage takes any shape: whether it fits is asked when one is bound.
tide_status tide_tensor_set_shape(tide_tensor *t, const tide_shape *shape, tide_error *err) TIDE_NODISCARD;
/// The same for the element type: another interpretation of the same bytes. TIDE_ERR_NO_SPACE past the capacity,
/// TIDE_ERR_INVALID at an address its elements may not have. Shape and strides stay: they count elements.
tide_status tide_tensor_set_dtype(tide_tensor *t, tide_dtype dtype, tide_error *err) TIDE_NODISCARD;
/**
 * Change the shape and see to memory for it (S28-11). A shape that needs no more bytes than the present one is only
 * set. More bytes come from the capacity when no other tensor uses the storage, and nothing moves; past it, or when the
 * storage is shared, fresh memory is taken, the old bytes copied, and the others keep theirs. The new tail is zero
 * either way.
 *
 * @param where  how to take memory; dtype and shape in it are ignored; NULL: as the present block was made
 * @return TIDE_ERR_INVALID (a strided view; memory that no allocator gave and `where` NULL), TIDE_ERR_BUSY (a guard, or
 * a mapping with room left), as tide_tensor_create; `t` is unchanged then
 */
tide_status tide_tensor_resize(tide_tensor *t, const tide_shape *shape, const struct tide_tensor_spec *where,
                               tide_error *err) TIDE_NODISCARD;
/// Drop the storage and become a tensor of shape [0].
void tide_tensor_reset(tide_tensor *t);

// ---- strided views: all share the storage; out-of-bounds is TIDE_ERR_INVALID and nothing is made ----

/// Elements begin … end-1 of one dimension, every `step`-th (>= 1).
tide_status tide_tensor_slice(tide_tensor *t, int32_t dim, int64_t begin, int64_t end, int64_t step, tide_tensor **out,
                              tide_error *err) TIDE_NODISCARD;
/// Dimensions in another order; `order` is a permutation of 0 … rank-1.
tide_status tide_tensor_permute(tide_tensor *t, const int32_t *order, tide_tensor **out,
                                tide_error *err) TIDE_NODISCARD;
/// Extents of 1 repeated to `shape` without memory (stride 0); other extents must agree. Cannot be written through
/// tide_tensor_write: one element would stand for many.
tide_status tide_tensor_expand(tide_tensor *t, const tide_shape *shape, tide_tensor **out,
                               tide_error *err) TIDE_NODISCARD;
/// Any layout over the storage of `t`: strides and offset in elements from the start of its storage.
tide_status tide_tensor_as_strided(tide_tensor *t, const tide_shape *shape, const int64_t *strides,
                                   int64_t offset_elements, tide_tensor **out, tide_error *err) TIDE_NODISCARD;
int64_t tide_tensor_offset_elements(const tide_tensor *t);

// ---- copies ----

/// A new, contiguous tensor with a copy of the elements, allocated by `where`'s device, kind, alignment, registry and
/// tag; across devices too (S28-21). NULL `where`: as the present block was made; memory that no allocator gave is
/// copied by the registry of the process, on its device, with its kind. Waits for both blocks' last streams and for the
/// copy. TIDE_ERR_NOT_IMPLEMENTED for strided elements on a device that is not the CPU.
tide_status tide_tensor_clone(const tide_tensor *t, const tide_tensor_spec *where, tide_tensor **out,
                              tide_error *err) TIDE_NODISCARD;
/// `t` itself (with a reference more) when it is contiguous, else a contiguous clone of it as its block was made.
tide_status tide_tensor_contiguous(tide_tensor *t, tide_tensor **out, tide_error *err) TIDE_NODISCARD;
/**
 * A copy that is made when one of the two is first written (PT-17, PT-18). Where the storage is not simple (planned
 * slice, arena span, mapping, foreign memory: PT-21, X-6), or `where` asks for another device or kind, or for a
 * stricter alignment than there is, it is copied now. A lazy clone of a view is the same view of a clone of its
 * storage.
 *
 * @param where   as for tide_tensor_clone
 * @param copied  out: bytes were copied now; may be NULL
 * @return as tide_tensor_clone; TIDE_ERR_INVALID for a stream that is not the block's own (PT-22)
 */
tide_status tide_tensor_lazy_clone(tide_tensor *t, const tide_tensor_spec *where, tide_tensor **out, bool *copied,
                                   tide_error *err) TIDE_NODISCARD;
bool tide_tensor_is_cow(const tide_tensor *t);
/// Both read the same memory (PT-3).
bool tide_tensor_is_alias(const tide_tensor *a, const tide_tensor *b);

/// Two lines: dtype, shape, strides, offset, contiguity; then the storage's (S28-1).
void tide_tensor_describe(const tide_tensor *t, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
