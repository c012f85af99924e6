// SPDX-License-Identifier: MIT
//
// tensor: making, dropping, asking, and access to the bytes. See tensor.h; what the other files hold is in
// tensor_internal.h.
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/tensor/tensor_internal.h"

// ---- making and dropping ----

tide_status tide__tensor_new(tide_dtype dtype, const tide__layout *layout, tide_storage *storage, size_t offset_bytes,
                             tide_device device, tide_tensor **out, tide_error *err) {
    tide_tensor *t = tide_host_calloc(1, sizeof *t);
    if (t == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a tensor object");
    t->refs = 1;
    t->dtype = dtype;
    t->layout = *layout;
    t->storage.device = device;
    if (storage != NULL) {
        t->storage = *storage;
        t->has_storage = true;
        t->offset_bytes = offset_bytes;
        *storage = (tide_storage){.device = t->storage.device};
    }
    *out = t;
    return TIDE_OK;
}

tide_storage_spec tide__tensor_storage_spec(const tide_tensor_spec *spec) {
    return (tide_storage_spec){.device = spec->device,
                               .kind = spec->kind,
                               .align_bytes = spec->align_bytes,
                               .stream = spec->stream,
                               .registry = spec->registry,
                               .tag = spec->tag};
}

tide_status tide_tensor_create_unbound(tide_dtype dtype, const tide_shape *shape, tide_device device, tide_tensor **out,
                                       tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(dtype, shape, &layout, err));
    return tide__tensor_new(dtype, &layout, NULL, 0, device, out, err);
}

/// The chain of LT-14: byte count, allocator, storage, strides, object.
static tide_status create(const tide_tensor_spec *spec, tide_tensor **out, tide_error *err) {
    TIDE_TRY(tide_memory_kind_check(spec->kind, spec->device, err));
    size_t size_bytes;
    TIDE_TRY(tide_shape_bytes(&spec->shape, spec->dtype, &size_bytes, err));
    const tide_storage_spec where = tide__tensor_storage_spec(spec);
    tide_storage storage = {.device = spec->device};
    TIDE_TRY(tide_storage_create(&where, size_bytes, &storage, err));
    tide__layout layout;
    tide_status st = tide__layout_row_major(spec->dtype, &spec->shape, &layout, err);
    if (st == TIDE_OK) st = tide__tensor_new(spec->dtype, &layout, &storage, 0, spec->device, out, err);
    tide_storage_deinit(&storage); // empty when it was taken
    return st;
}

tide_status tide_tensor_create(const tide_tensor_spec *spec, tide_tensor **out, tide_error *err) {
    const tide_status st = create(spec, out, err);
    if (st != TIDE_OK && spec->tag != NULL) tide_error_prefix(err, "tensor '%s'", spec->tag);
    return st;
}

tide_status tide_tensor_create_on(const tide_storage *storage, size_t offset_bytes, tide_dtype dtype,
                                  const tide_shape *shape, tide_tensor **out, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(dtype, shape, &layout, err));
    TIDE_TRY(tide__layout_check_place(dtype, &layout, storage, offset_bytes, err));
    tide_storage own = tide_storage_ref(storage);
    const tide_status st = tide__tensor_new(dtype, &layout, &own, offset_bytes, own.device, out, err);
    tide_storage_deinit(&own);
    return st;
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
    __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
    return t;
}

void tide_tensor_unref(tide_tensor *t) {
    if (t == NULL || __atomic_fetch_sub(&t->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
    tide_storage_deinit(&t->storage);
    tide_host_free(t);
}

tide_tensor *tide_tensor_take(tide_tensor **t) {
    tide_tensor *taken = *t;
    *t = NULL;
    return taken;
}

// ---- asking ----

uint32_t tide_tensor_use_count(const tide_tensor *t) { return __atomic_load_n(&t->refs, __ATOMIC_RELAXED); }
tide_dtype tide_tensor_dtype(const tide_tensor *t) { return t->dtype; }
const tide_shape *tide_tensor_shape(const tide_tensor *t) { return &t->layout.shape; }
const int64_t *tide_tensor_strides(const tide_tensor *t) { return t->layout.strides; }
tide_device tide_tensor_device(const tide_tensor *t) { return t->storage.device; }
size_t tide_tensor_offset_bytes(const tide_tensor *t) { return t->offset_bytes; }
size_t tide_tensor_size_bytes(const tide_tensor *t) { return t->layout.size_bytes; }
size_t tide_tensor_capacity_bytes(const tide_tensor *t) { return t->storage.size_bytes - t->offset_bytes; }
bool tide_tensor_is_contiguous(const tide_tensor *t) { return t->layout.contiguous; }
bool tide_tensor_has_known_shape(const tide_tensor *t) { return t->layout.known; }
bool tide_tensor_is_bound(const tide_tensor *t) { return t->storage.block != NULL; }
const tide_storage *tide_tensor_storage(const tide_tensor *t) { return &t->storage; }

tide_memory_kind tide_tensor_kind(const tide_tensor *t) {
    return t->storage.block != NULL ? t->storage.block->kind : TIDE_KIND_DEFAULT;
}

/// The one place where bytes become elements.
int64_t tide_tensor_offset_elements(const tide_tensor *t) {
    return (int64_t)(t->offset_bytes / tide_dtype_size(t->dtype));
}

// ---- access ----

static bool has_bytes(const tide_tensor *t) { return t->layout.size_bytes > 0 && t->storage.block != NULL; }

tide_status tide_tensor_read(const tide_tensor *t, const void **out, tide_error *err) {
    *out = NULL;
    if (!has_bytes(t)) return TIDE_OK;
    const void *base;
    TIDE_TRY(tide_block_read(t->storage.block, &base, err));
    *out = (const char *)base + t->storage.offset_bytes + t->offset_bytes;
    return TIDE_OK;
}

static tide_status refuse_overlap(const tide_tensor *t, tide_error *err) {
    char text[192];
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID, "a view of shape %s whose elements share bytes cannot be written",
                  tide_shape_format(&t->layout.shape, text, sizeof text));
    tide_error_hint(err, "write to a clone of it");
    return st;
}

tide_status tide_tensor_write(tide_tensor *t, void **out, tide_error *err) {
    *out = NULL;
    if (!has_bytes(t)) return TIDE_OK;
    if (t->layout.overlaps) return refuse_overlap(t, err);
    void *base;
    TIDE_TRY(tide_block_write(t->storage.block, &base, err));
    *out = (char *)base + t->storage.offset_bytes + t->offset_bytes;
    return TIDE_OK;
}

static void say_why(const tide_tensor *t, const char *access, const tide_error *err) {
    const char *tag = t->storage.block->tag;
    tide_log(TIDE_LOG_ERROR, "tensor '%s' cannot be %s: %s", tag != NULL ? tag : "?", access, err->msg);
}

void *tide_tensor_data(tide_tensor *t) {
    tide_error err; // filled by whoever fails: clearing it would cost more than the rest of the call
    void *data;
    if (tide_tensor_write(t, &data, &err) != TIDE_OK) say_why(t, "written", &err);
    return data;
}

const void *tide_tensor_const_data(const tide_tensor *t) {
    tide_error err;
    const void *data;
    if (tide_tensor_read(t, &data, &err) != TIDE_OK) say_why(t, "read", &err);
    return data;
}
