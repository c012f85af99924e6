// SPDX-License-Identifier: MIT
//
// block: one allocation with a reference count: making, dropping and looking at it. See block.h.
//
// One piece of host memory per block; the tag lives behind the fields, so that it is as old as the block and may be
// handed to allocators and observers without a copy:
//
//     | tide_block fields ... , tag --+ | "conv1.out\0" |
//                                     +---^
#include "core/memory/block.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/block_internal.h"

uint64_t tide__block_next_id(void) {
    static uint64_t n_blocks;
    return __atomic_add_fetch(&n_blocks, 1, __ATOMIC_RELAXED);
}

tide_block *tide__block_new(tide_device device, tide_memory_kind kind, const char *tag) {
    const size_t tag_bytes = tag != NULL ? strlen(tag) + 1 : 0;
    size_t total;
    if (!tide_add_size(sizeof(tide_block), tag_bytes, &total)) return NULL;
    tide_block *b = tide_host_calloc(1, total);
    if (b == NULL) return NULL;
    b->refs = 1;
    b->device = device;
    b->kind = kind;
    b->foreign.device = device;
    if (tag != NULL) {
        b->tag = (char *)(b + 1);
        memcpy(b->tag, tag, tag_bytes);
    }
    return b;
}

// ---- memory of an allocator ----

tide_status tide_block_create(tide_allocator *owner, size_t size_bytes, size_t align_bytes, tide_memory_kind kind,
                              tide_stream_id stream, const char *tag, tide_block **out, tide_error *err) {
    const char *const name = tag != NULL ? tag : "(no name)";
    if (owner == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': no allocator", name);
    if (size_bytes == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': 0 bytes were asked for", name);
    const tide_device device = tide_allocator_device(owner);
    TIDE_TRY(tide_memory_kind_check(kind, device, err));
    tide_block *b = tide__block_new(device, kind, tag);
    if (b == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the record of block '%s'", name);
    b->id = tide__block_next_id();
    b->align_bytes = align_bytes != 0 ? align_bytes : tide_memory_kind_alignment(kind, device);
    const tide_alloc_request req = {.size_bytes = size_bytes,
                                    .align_bytes = b->align_bytes,
                                    .kind = kind,
                                    .stream = stream,
                                    .block_id = b->id,
                                    .tag = b->tag};
    const tide_status st = tide_allocator_alloc(owner, &req, &b->mem, err);
    if (st != TIDE_OK) {
        tide_host_free(b);
        return st;
    }
    b->owner = tide_allocator_ref(owner);
    b->last_stream = stream;
    *out = b;
    return TIDE_OK;
}

// ---- memory of somebody else ----

/// Bytes in blocks over foreign memory, per kind.
static uint64_t external_bytes[TIDE_N_KINDS];

uint64_t tide_block_external_bytes(tide_memory_kind kind) {
    if ((int)kind < 0 || (int)kind >= TIDE_N_KINDS) return 0;
    return __atomic_load_n(&external_bytes[kind], __ATOMIC_RELAXED);
}

static tide_status check_foreign(const tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind, const char *tag,
                                 tide_error *err) {
    const char *const name = tag != NULL ? tag : "(no name)";
    if (ptr->data == NULL && size_bytes > 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': borrowed %zu bytes at address NULL", name, size_bytes);
    if (size_bytes > UINTPTR_MAX - (uintptr_t)ptr->data)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': %zu bytes at %p go past the end of memory", name,
                         size_bytes, ptr->data);
    return tide_memory_kind_check(kind, ptr->device, err);
}

tide_status tide_block_adopt(tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind, const char *tag,
                             tide_block **out, tide_error *err) {
    TIDE_TRY(check_foreign(ptr, size_bytes, kind, tag, err));
    tide_block *b = tide__block_new(ptr->device, kind, tag);
    if (b == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the record of block '%s'",
                         tag != NULL ? tag : "(no name)");
    b->id = tide__block_next_id();
    if (tide_data_ptr_is_read_only(ptr)) b->flags = TIDE_BLOCK_READ_ONLY;
    b->foreign = tide_data_ptr_take(ptr);
    b->mem = (tide_memory){.data = b->foreign.data,
                           .requested_bytes = size_bytes,
                           .reserved_bytes = size_bytes,
                           .context = b->foreign.context,
                           .kind = kind,
                           .block_id = b->id,
                           .tag = b->tag};
    __atomic_fetch_add(&external_bytes[kind], size_bytes, __ATOMIC_RELAXED);
    *out = b;
    return TIDE_OK;
}

tide_status tide_block_borrow(void *data, size_t size_bytes, tide_device device, tide_memory_kind kind,
                              void (*release)(void *ctx), void *ctx, const char *tag, tide_block **out,
                              tide_error *err) {
    // When adopting fails nothing is released: the memory stays the caller's.
    tide_data_ptr ptr = tide_data_ptr_make(data, ctx, release, device);
    return tide_block_adopt(&ptr, size_bytes, kind, tag, out, err);
}

tide_status tide_block_map_file(const char *path, uint64_t offset_bytes, size_t size_bytes, tide_memory_kind kind,
                                tide_block **out, tide_error *err) {
    tide_data_ptr ptr = TIDE_DATA_PTR_INIT;
    size_t mapped_bytes = 0;
    TIDE_TRY(tide_data_ptr_map_file(path, offset_bytes, size_bytes, &ptr, &mapped_bytes, err));
    const tide_status st = tide_block_adopt(&ptr, mapped_bytes, kind, path, out, err);
    tide_data_ptr_reset(&ptr); // empty when it was taken
    return st;
}

// ---- references ----

tide_block *tide_block_ref(tide_block *b) {
    __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

void tide_block_unref(tide_block *b) {
    if (b == NULL || __atomic_fetch_sub(&b->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
    if (b->owner == NULL) {
        __atomic_fetch_sub(&external_bytes[b->kind], b->mem.requested_bytes, __ATOMIC_RELAXED);
        tide_data_ptr_reset(&b->foreign);
    } else if (b->cow != NULL) {
        tide__cow_leave(b);
    } else {
        tide_allocator_release(b->owner, &b->mem, b->last_stream);
    }
    tide_allocator_unref(b->owner);
    tide_host_free(b);
}

uint32_t tide_block_use_count(const tide_block *b) { return __atomic_load_n(&b->refs, __ATOMIC_RELAXED); }

// ---- looking ----

void tide_block_describe(const tide_block *b, tide_text *out) {
    char device[32];
    tide_text_addf(out,
                   "block %" PRIu64
                   " at %p: requested %zu B, reserved %zu B, %s, kind %s, owner %s, last stream %" PRIu64 ", %" PRIu32
                   " references, %s",
                   b->id, b->mem.data, b->mem.requested_bytes, b->mem.reserved_bytes,
                   tide_device_format(b->device, device, sizeof device), tide_memory_kind_name(b->kind),
                   b->owner != NULL ? tide_allocator_name(b->owner) : "(external)",
                   __atomic_load_n(&b->last_stream, __ATOMIC_RELAXED), tide_block_use_count(b),
                   tide_block_state_name(tide_block_get_state(b)));
    if (b->tag != NULL) tide_text_addf(out, ", '%s'", b->tag);
}
