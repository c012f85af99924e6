// SPDX-License-Identifier: MIT
//
// tensor: dtype, shape, strides and offset over a storage. See tensor.h.
//
// Offsets are bytes everywhere inside; strides are elements.
#include "core/tensor/tensor.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"

struct tide_tensor {
    _Atomic uint32_t refs;
    tide_dtype dtype;
    tide_shape shape;
    int64_t strides[TIDE_MAX_RANK]; ///< elements
    size_t size_bytes;              ///< of the present shape
    size_t offset_bytes;            ///< from the start of the storage's slice
    bool has_storage;               ///< also true for the empty storage of a tensor with 0 elements
    tide_storage storage;           ///< referenced when has_storage; storage.device is the tensor's device always
};

// ---- making and dropping ----

tide_status tide_tensor_create_unbound(tide_dtype dtype, const tide_shape *shape, tide_device device, tide_tensor **out,
                                       tide_error *err) {
    size_t size_bytes;
    TIDE_TRY(tide_shape_bytes(shape, dtype, &size_bytes, err));
    tide_tensor *t = tide_host_calloc(1, sizeof *t);
    if (t == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a tensor object");
    atomic_init(&t->refs, 1);
    t->dtype = dtype;
    t->shape = *shape;
    tide_shape_strides(shape, t->strides);
    t->size_bytes = size_bytes;
    t->storage.device = device;
    *out = t;
    return TIDE_OK;
}

/// Room for `spec` as a storage: from the registry's allocator, or empty for 0 bytes.
static tide_status alloc_storage(const tide_tensor_spec *spec, size_t size_bytes, tide_storage *out, tide_error *err) {
    if (size_bytes == 0) {
        *out = (tide_storage){.device = spec->device};
        return TIDE_OK;
    }
    const size_t align =
        spec->align_bytes != 0 ? spec->align_bytes : tide_memory_kind_alignment(spec->kind, spec->device);
    uint64_t rounded;
    if (!tide_is_pow2(align)) return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment %zu is not a power of two", align);
    if (!tide_align_up(size_bytes, align, &rounded))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu B rounded up to %zu do not fit into 64 bits", size_bytes, align);
    tide_registry *registry = spec->registry != NULL ? spec->registry : tide_registry_default();
    if (registry == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the registry of the process");
    tide_allocator *allocator = NULL;
    TIDE_TRY(tide_registry_acquire(registry, spec->device, spec->kind, &allocator, err));
    tide_block *block = NULL;
    const tide_status st =
        tide_block_create(allocator, (size_t)rounded, align, spec->kind, spec->stream, spec->tag, &block, err);
    tide_allocator_unref(allocator);
    if (st != TIDE_OK) return st;
    *out = tide_storage_of_block(block);
    tide_block_unref(block);
    return TIDE_OK;
}

tide_status tide_tensor_create(const tide_tensor_spec *spec, tide_tensor **out, tide_error *err) {
    TIDE_TRY(tide_memory_kind_check(spec->kind, spec->device, err));
    tide_tensor *t = NULL;
    tide_status st = tide_tensor_create_unbound(spec->dtype, &spec->shape, spec->device, &t, err);
    if (st == TIDE_OK) st = alloc_storage(spec, t->size_bytes, &t->storage, err);
    if (st != TIDE_OK) {
        if (spec->tag != NULL) tide_error_prefix(err, "tensor '%s'", spec->tag);
        tide_tensor_unref(t);
        return st;
    }
    t->has_storage = true;
    *out = t;
    return TIDE_OK;
}

tide_status tide_tensor_create_on(const tide_storage *storage, size_t offset_bytes, tide_dtype dtype,
                                  const tide_shape *shape, tide_tensor **out, tide_error *err) {
    tide_tensor *t = NULL;
    TIDE_TRY(tide_tensor_create_unbound(dtype, shape, storage->device, &t, err));
    const tide_status st = tide_tensor_bind(t, storage, offset_bytes, err);
    if (st != TIDE_OK) {
        tide_tensor_unref(t);
        return st;
    }
    *out = t;
    return TIDE_OK;
}

tide_status tide_tensor_borrow(void *data, size_t size_bytes, tide_dtype dtype, const tide_shape *shape,
                               tide_memory_kind kind, tide_tensor **out, tide_error *err) {
    tide_block *block = NULL;
    TIDE_TRY(tide_block_borrow(data, size_bytes, TIDE_CPU, kind, NULL, NULL, NULL, &block, err));
    tide_storage storage = tide_storage_of_block(block);
    tide_block_unref(block);
    const tide_status st = tide_tensor_create_on(&storage, 0, dtype, shape, out, err);
    tide_storage_deinit(&storage);
    return st;
}

tide_tensor *tide_tensor_ref(tide_tensor *t) {
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void tide_tensor_unref(tide_tensor *t) {
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    tide_storage_deinit(&t->storage);
    tide_host_free(t);
}

tide_tensor *tide_tensor_take(tide_tensor **t) {
    tide_tensor *taken = *t;
    *t = NULL;
    return taken;
}

// ---- asking ----

static char *address_of(const tide_tensor *t) {
    char *base = t->size_bytes > 0 ? tide_storage_data(&t->storage) : NULL;
    return base != NULL ? base + t->offset_bytes : NULL;
}

void *tide_tensor_data(tide_tensor *t) { return address_of(t); }
const void *tide_tensor_const_data(const tide_tensor *t) { return address_of(t); }
tide_dtype tide_tensor_dtype(const tide_tensor *t) { return t->dtype; }
const tide_shape *tide_tensor_shape(const tide_tensor *t) { return &t->shape; }
const int64_t *tide_tensor_strides(const tide_tensor *t) { return t->strides; }
tide_device tide_tensor_device(const tide_tensor *t) { return t->storage.device; }
size_t tide_tensor_offset_bytes(const tide_tensor *t) { return t->offset_bytes; }
size_t tide_tensor_size_bytes(const tide_tensor *t) { return t->size_bytes; }
size_t tide_tensor_capacity_bytes(const tide_tensor *t) { return t->storage.size_bytes - t->offset_bytes; }
bool tide_tensor_is_bound(const tide_tensor *t) { return t->storage.block != NULL; }
const tide_storage *tide_tensor_storage(const tide_tensor *t) { return &t->storage; }

tide_memory_kind tide_tensor_kind(const tide_tensor *t) {
    return t->storage.block != NULL ? t->storage.block->kind : TIDE_KIND_DEFAULT;
}

bool tide_tensor_is_contiguous(const tide_tensor *t) {
    // An extent of 1 is never stepped over, so its stride does not matter.
    int64_t want[TIDE_MAX_RANK];
    tide_shape_strides(&t->shape, want);
    for (int32_t i = 0; i < t->shape.rank; i++) {
        if (t->shape.dims[i] != 1 && t->strides[i] != want[i]) return false;
    }
    return true;
}

// ---- binding ----

/// Would a tensor of this size and type fit at the offset, at an address its elements may have?
static tide_status check_place(const tide_tensor *t, const tide_storage *storage, size_t offset_bytes,
                               tide_error *err) {
    // By subtraction: offset + size might wrap around (S28-15).
    if (offset_bytes > storage->size_bytes || t->size_bytes > storage->size_bytes - offset_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a tensor of %zu B does not fit at offset %zu of a storage of %zu B",
                         t->size_bytes, offset_bytes, storage->size_bytes);
    const uintptr_t base = (uintptr_t)tide_storage_data(storage);
    const size_t elem_bytes = tide_dtype_size(t->dtype);
    if (t->size_bytes > 0 && (base + offset_bytes) % elem_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "offset %zu gives an address that is no multiple of the %zu B of %s",
                         offset_bytes, elem_bytes, tide_dtype_name(t->dtype));
    return TIDE_OK;
}

tide_status tide_tensor_bind(tide_tensor *t, const tide_storage *storage, size_t offset_bytes, tide_error *err) {
    TIDE_TRY(check_place(t, storage, offset_bytes, err));
    // Referenced before the old one is dropped: both may be the same block.
    const tide_storage fresh = tide_storage_ref(storage);
    tide_storage_deinit(&t->storage);
    t->storage = fresh;
    t->offset_bytes = offset_bytes;
    t->has_storage = true;
    tide_shape_strides(&t->shape, t->strides);
    return TIDE_OK;
}

void tide_tensor_unbind(tide_tensor *t) {
    tide_storage_deinit(&t->storage);
    t->offset_bytes = 0;
    t->has_storage = false;
}

// ---- other shapes ----

tide_status tide_tensor_view(tide_tensor *t, const tide_shape *shape, tide_tensor **out, tide_error *err) {
    size_t want_bytes;
    TIDE_TRY(tide_shape_bytes(shape, t->dtype, &want_bytes, err));
    char from[192], to[192];
    if (want_bytes != t->size_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s cannot be viewed as %s: other number of elements",
                         tide_shape_format(&t->shape, from, sizeof from), tide_shape_format(shape, to, sizeof to));
    if (!tide_tensor_is_contiguous(t))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s with gaps cannot be viewed as %s",
                         tide_shape_format(&t->shape, from, sizeof from), tide_shape_format(shape, to, sizeof to));
    if (t->has_storage) return tide_tensor_create_on(&t->storage, t->offset_bytes, t->dtype, shape, out, err);
    return tide_tensor_create_unbound(t->dtype, shape, t->storage.device, out, err);
}

tide_status tide_tensor_set_shape(tide_tensor *t, const tide_shape *shape, tide_error *err) {
    size_t want_bytes;
    TIDE_TRY(tide_shape_bytes(shape, t->dtype, &want_bytes, err));
    // Without a storage there is no capacity yet: whether it fits is asked when one is bound.
    if (t->has_storage && want_bytes > tide_tensor_capacity_bytes(t)) {
        char text[192];
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "shape %s of %s needs %zu B, the tensor has room for %zu B",
                         tide_shape_format(shape, text, sizeof text), tide_dtype_name(t->dtype), want_bytes,
                         tide_tensor_capacity_bytes(t));
    }
    t->shape = *shape;
    t->size_bytes = want_bytes;
    tide_shape_strides(shape, t->strides);
    return TIDE_OK;
}

tide_status tide_tensor_clone(const tide_tensor *t, const tide_tensor_spec *where, tide_tensor **out, tide_error *err) {
    if (t->size_bytes > 0 && address_of(t) == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a tensor without a storage has nothing to clone");
    if (!tide_tensor_is_contiguous(t))
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "only contiguous tensors can be cloned");
    TIDE_TRY(tide_device_require(t->storage.device, err));
    TIDE_TRY(tide_device_require(where->device, err));
    tide_tensor_spec spec = *where;
    spec.dtype = t->dtype;
    spec.shape = t->shape;
    tide_tensor *copy = NULL;
    TIDE_TRY(tide_tensor_create(&spec, &copy, err));
    if (t->size_bytes > 0) memcpy(address_of(copy), address_of(t), t->size_bytes);
    *out = copy;
    return TIDE_OK;
}
