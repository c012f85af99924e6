// SPDX-License-Identifier: MIT
//
// storage: a slice of a block, by value. See storage.h.
//
//     block    |<------------------ requested_bytes ------------------>|
//     storage      |<- offset_bytes ->|<------ size_bytes ------>|
//     tensor                              |<- offset + shape ->|
#include "core/memory/storage.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"

/// What it holds lies in its block.
static bool storage_holds(const tide_storage *s) {
    if (s->block == NULL) return s->size_bytes == 0 && s->offset_bytes == 0;
    const size_t bytes = s->block->mem.requested_bytes;
    return s->offset_bytes <= bytes && s->size_bytes <= bytes - s->offset_bytes &&
           tide_device_equal(s->device, s->block->device);
}

// ---- creating ----

tide_storage tide_storage_of_block(tide_block *b) {
    return (tide_storage){.block = tide_block_ref(b), .size_bytes = b->mem.requested_bytes, .device = b->device};
}

/// The same with the caller's own reference.
static tide_storage take_block(tide_block *b) {
    return (tide_storage){.block = b, .size_bytes = b->mem.requested_bytes, .device = b->device};
}

static tide_status round_up(size_t size_bytes, size_t align_bytes, size_t *out, tide_error *err) {
    uint64_t rounded;
    if (!tide_is_pow2(align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment %zu is not a power of two", align_bytes);
    if (!tide_align_up(size_bytes, align_bytes, &rounded) || rounded > SIZE_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu B rounded up to %zu do not fit into the address space",
                         size_bytes, align_bytes);
    *out = (size_t)rounded;
    return TIDE_OK;
}

static tide_status make_storage(const tide_block_request *req, tide_storage *out, tide_error *err) {
    tide_block_request rounded = *req;
    TIDE_TRY(round_up(req->size_bytes, req->align_bytes, &rounded.size_bytes, err));
    tide_block *b = NULL;
    TIDE_TRY(tide_block_make(&rounded, &b, err));
    TIDE_ASSERT(b->mem.requested_bytes >= req->size_bytes);
    *out = take_block(b);
    return TIDE_OK;
}

tide_status tide_storage_create(const tide_storage_spec *spec, size_t size_bytes, tide_storage *out, tide_error *err) {
    TIDE_TRY(tide_memory_kind_check(spec->kind, spec->device, err));
    if (spec->align_bytes != 0 && !tide_is_pow2(spec->align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment %zu is not a power of two", spec->align_bytes);
    if (size_bytes == 0) {
        *out = (tide_storage){.device = spec->device};
        return TIDE_OK;
    }
    tide_registry *registry = spec->registry != NULL ? spec->registry : tide_registry_default();
    if (registry == NULL) return TIDE_NO_MEMORY(err, "for the registry of the process");
    tide_block_request req = {.size_bytes = size_bytes,
                              .align_bytes = spec->align_bytes != 0
                                                 ? spec->align_bytes
                                                 : tide_memory_kind_alignment(spec->kind, spec->device),
                              .kind = spec->kind,
                              .stream = spec->stream,
                              .tag = spec->tag};
    if (req.stream == TIDE_STREAM_CURRENT) req.stream = tide_registry_current_stream(registry, spec->device);
    TIDE_TRY(tide_registry_acquire(registry, spec->device, spec->kind, &req.owner, err));
    const tide_status st = make_storage(&req, out, err);
    tide_allocator_unref(req.owner);
    return st;
}

tide_status tide_storage_adopt(tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind, const char *tag,
                               tide_storage *out, tide_error *err) {
    tide_block *b = NULL;
    TIDE_TRY(tide_block_adopt(ptr, size_bytes, kind, tag, &b, err));
    *out = take_block(b);
    return TIDE_OK;
}

// ---- bytes ----

void tide_storage_wait(const tide_storage *s) {
    if (s->block == NULL) return;
    const tide_stream_id stream = __atomic_load_n(&s->block->last_stream, __ATOMIC_RELAXED);
    if (s->device.type == TIDE_DEVICE_CPU && stream == 0) return; // work of the calling thread: done
    // A stream that is gone has no work left; a failure that matters comes back from what is done with the bytes next.
    const tide_status st = tide_stream_sync(s->device, stream, NULL);
    (void)st;
}

tide_status tide_storage_zero(const tide_storage *s, size_t offset_bytes, size_t size_bytes, tide_error *err) {
    TIDE_ASSERT(offset_bytes <= s->size_bytes && size_bytes <= s->size_bytes - offset_bytes);
    if (size_bytes == 0) return TIDE_OK;
    void *data;
    TIDE_TRY(tide_storage_write(s, &data, err));
    if (s->device.type == TIDE_DEVICE_CPU) {
        tide_storage_wait(s);
        memset((char *)data + offset_bytes, 0, size_bytes);
        return TIDE_OK;
    }
    const tide_stream_id stream = s->block->last_stream;
    TIDE_TRY(tide_device_fill(s->device, stream, (char *)data + offset_bytes, 0, size_bytes, err));
    return tide_stream_sync(s->device, stream, err);
}

/// All of `from` to the start of `to`, across devices too; it is there when this returns.
static tide_status copy_all(const tide_storage *to, const tide_storage *from, tide_error *err) {
    TIDE_ASSERT(from->size_bytes <= to->size_bytes && storage_holds(to) && storage_holds(from));
    const void *src = NULL;
    TIDE_TRY(tide_storage_read(from, &src, err));
    if (from->size_bytes == 0) return TIDE_OK;
    void *const dst = tide_storage_data(to);
    tide_storage_wait(from);
    tide_storage_wait(to);
    if (to->device.type == TIDE_DEVICE_CPU && from->device.type == TIDE_DEVICE_CPU) {
        memcpy(dst, src, from->size_bytes);
        return TIDE_OK;
    }
    const tide_stream_id stream =
        from->device.type == TIDE_DEVICE_CPU ? to->block->last_stream : from->block->last_stream;
    if (!tide_device_equal(to->device, from->device))
        return tide_device_transfer(to->device, dst, from->device, src, from->size_bytes, stream, err);
    TIDE_TRY(tide_device_copy(to->device, stream, TIDE_COPY_WITHIN_DEVICE, dst, src, from->size_bytes, err));
    return tide_stream_sync(to->device, stream, err);
}

// ---- changing what a storage holds ----

static void replace(tide_storage *s, const tide_storage *fresh) {
    TIDE_ASSERT(storage_holds(fresh));
    const tide_storage old = *s;
    *s = *fresh;
    tide_block_unref(old.block);
}

/// After a failure: nothing is held, the device is known (S28-4).
static tide_status leave_empty(tide_storage *s, tide_device device, tide_status st) {
    const tide_storage empty = {.device = device};
    replace(s, &empty);
    return st;
}

tide_status tide_storage_reset(tide_storage *s, const tide_storage_spec *spec, size_t size_bytes, tide_error *err) {
    tide_storage fresh = {.device = spec->device};
    tide_status st = tide_storage_create(spec, size_bytes, &fresh, err);
    if (st == TIDE_OK) {
        st = tide_storage_zero(&fresh, 0, fresh.size_bytes, err);
        if (st != TIDE_OK) tide_storage_deinit(&fresh);
    }
    if (st != TIDE_OK) return leave_empty(s, spec->device, st);
    replace(s, &fresh);
    return TIDE_OK;
}

tide_status tide_storage_set_external(tide_storage *s, tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind,
                                      const char *tag, tide_error *err) {
    tide_storage fresh;
    const tide_status st = tide_storage_adopt(ptr, size_bytes, kind, tag, &fresh, err);
    if (st != TIDE_OK) return leave_empty(s, ptr->device, st);
    replace(s, &fresh);
    return TIDE_OK;
}

/// Fresh memory as `spec` says, or as the block of `s` was made.
static tide_status create_like(const tide_storage *s, const tide_storage_spec *spec, size_t size_bytes,
                               tide_storage *out, tide_error *err) {
    if (spec != NULL) return tide_storage_create(spec, size_bytes, out, err);
    const tide_block *b = s->block;
    if (b == NULL || b->owner == NULL) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "storage of %zu B%s%s cannot grow to %zu B by itself", s->size_bytes,
                      b != NULL && b->tag != NULL ? " in " : "", b != NULL && b->tag != NULL ? b->tag : "", size_bytes);
        tide_error_note(err, "no allocator gave its memory");
        tide_error_hint(err, "say device and kind of the memory to take");
        return st;
    }
    const tide_block_request req = {.owner = b->owner,
                                    .size_bytes = size_bytes,
                                    .align_bytes = b->align_bytes,
                                    .kind = b->kind,
                                    .stream = b->last_stream,
                                    .tag = b->tag};
    return make_storage(&req, out, err);
}

tide_status tide_storage_resize(tide_storage *s, const tide_storage_spec *spec, size_t size_bytes, tide_error *err) {
    if (size_bytes <= s->size_bytes) return TIDE_OK;
    tide_storage fresh = {.device = s->device};
    TIDE_TRY(create_like(s, spec, size_bytes, &fresh, err));
    tide_status st = copy_all(&fresh, s, err);
    if (st == TIDE_OK) st = tide_storage_zero(&fresh, s->size_bytes, fresh.size_bytes - s->size_bytes, err);
    if (st != TIDE_OK) {
        tide_storage_deinit(&fresh);
        return st;
    }
    replace(s, &fresh);
    return TIDE_OK;
}

// ---- parts and references ----

tide_status tide_storage_slice(const tide_storage *base, size_t offset_bytes, size_t size_bytes, tide_storage *out,
                               tide_error *err) {
    // Compared by subtraction: offset + size might wrap around.
    if (offset_bytes > base->size_bytes || size_bytes > base->size_bytes - offset_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "slice of %zu B at %zu is outside its storage of %zu B%s%s", size_bytes,
                         offset_bytes, base->size_bytes, base->block != NULL && base->block->tag != NULL ? " in " : "",
                         base->block != NULL && base->block->tag != NULL ? base->block->tag : "");
    tide_storage slice = tide_storage_ref(base);
    slice.offset_bytes += offset_bytes;
    slice.size_bytes = size_bytes;
    TIDE_ASSERT(storage_holds(&slice));
    *out = slice;
    return TIDE_OK;
}

tide_storage tide_storage_ref(const tide_storage *s) {
    if (s->block != NULL) tide_block_ref(s->block);
    return *s;
}

void tide_storage_deinit(tide_storage *s) {
    tide_block_unref(s->block);
    *s = (tide_storage){.device = s->device};
}

tide_status tide_storage_lazy_clone(const tide_storage *s, tide_stream_id stream, tide_storage *out, bool *cloned,
                                    tide_error *err) {
    tide_block *b = s->block, *twin = NULL;
    if (b != NULL && s->offset_bytes == 0 && s->size_bytes == b->mem.requested_bytes)
        TIDE_TRY(tide_block_lazy_clone(b, stream, &twin, err));
    *cloned = twin != NULL;
    *out = twin != NULL ? take_block(twin) : (tide_storage){.device = s->device};
    return TIDE_OK;
}

// ---- access and state ----

void *tide_storage_data(const tide_storage *s) {
    if (s->size_bytes == 0 || s->block == NULL || s->block->mem.data == NULL) return NULL;
    return (char *)s->block->mem.data + s->offset_bytes;
}

tide_status tide_storage_read(const tide_storage *s, const void **out, tide_error *err) {
    const void *base = NULL;
    if (s->size_bytes > 0) TIDE_TRY(tide_block_read(s->block, &base, err));
    *out = base != NULL ? (const char *)base + s->offset_bytes : NULL;
    return TIDE_OK;
}

tide_status tide_storage_write(const tide_storage *s, void **out, tide_error *err) {
    void *base = NULL;
    if (s->size_bytes > 0) TIDE_TRY(tide_block_write(s->block, &base, err));
    *out = base != NULL ? (char *)base + s->offset_bytes : NULL;
    return TIDE_OK;
}

uint32_t tide_storage_use_count(const tide_storage *s) { return s->block != NULL ? tide_block_use_count(s->block) : 0; }
bool tide_storage_is_unique(const tide_storage *s) { return tide_storage_use_count(s) == 1; }
bool tide_storage_is_alias(const tide_storage *a, const tide_storage *b) {
    return tide_block_is_alias(a->block, b->block);
}
bool tide_storage_is_resizable(const tide_storage *s) { return s->block == NULL || s->block->owner != NULL; }

void tide_storage_describe(const tide_storage *s, tide_text *out) {
    char device[32];
    tide_text_addf(out, "storage on %s: offset %zu B, capacity %zu B%s",
                   tide_device_format(s->device, device, sizeof device), s->offset_bytes, s->size_bytes,
                   s->block != NULL ? ", " : ", empty");
    if (s->block != NULL) tide_block_describe(s->block, out);
}
