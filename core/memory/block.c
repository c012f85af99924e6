// SPDX-License-Identifier: MIT
//
// block: one allocation with a reference count. See block.h.
//
// One piece of host memory per block; the tag lives behind the fields, so that it is as old as the block and may be
// handed to allocators and observers without a copy:
//
//     | tide_block fields ... , tag --+ | "conv1.out\0" |
//                                     +---^
#include "core/memory/block.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"

static uint64_t next_block_id(void) {
    static _Atomic uint64_t n_blocks;
    return atomic_fetch_add_explicit(&n_blocks, 1, memory_order_relaxed) + 1;
}

/// A block with id, tag and one reference; NULL: no host memory.
static tide_block *new_block(tide_device device, tide_memory_kind kind, const char *tag) {
    const size_t tag_bytes = tag != NULL ? strlen(tag) + 1 : 0;
    size_t total;
    if (!tide_add_size(sizeof(tide_block), tag_bytes, &total)) return NULL;
    tide_block *b = tide_host_calloc(1, total);
    if (b == NULL) return NULL;
    atomic_init(&b->refs, 1);
    b->id = next_block_id();
    b->device = device;
    b->kind = kind;
    if (tag != NULL) {
        b->tag = (char *)(b + 1);
        memcpy(b->tag, tag, tag_bytes);
    }
    return b;
}

tide_status tide_block_create(tide_allocator *owner, size_t size_bytes, size_t align_bytes, tide_memory_kind kind,
                              tide_stream_id stream, const char *tag, tide_block **out, tide_error *err) {
    const char *const name = tag != NULL ? tag : "(no name)";
    if (owner == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': no allocator", name);
    if (size_bytes == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': 0 bytes were asked for", name);
    const tide_device device = tide_allocator_device(owner);
    TIDE_TRY(tide_memory_kind_check(kind, device, err));
    tide_block *b = new_block(device, kind, tag);
    if (b == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the record of block '%s'", name);
    const tide_alloc_request req = {.size_bytes = size_bytes,
                                    .align_bytes =
                                        align_bytes != 0 ? align_bytes : tide_memory_kind_alignment(kind, device),
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

tide_status tide_block_borrow(void *data, size_t size_bytes, tide_device device, tide_memory_kind kind,
                              void (*release)(void *ctx), void *ctx, const char *tag, tide_block **out,
                              tide_error *err) {
    const char *const name = tag != NULL ? tag : "(no name)";
    if (data == NULL && size_bytes > 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "block '%s': borrowed %zu bytes at address NULL", name, size_bytes);
    TIDE_TRY(tide_memory_kind_check(kind, device, err));
    tide_block *b = new_block(device, kind, tag);
    if (b == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the record of block '%s'", name);
    b->mem = (tide_memory){.data = data,
                           .requested_bytes = size_bytes,
                           .reserved_bytes = size_bytes,
                           .kind = kind,
                           .block_id = b->id,
                           .tag = b->tag};
    b->release = release;
    b->release_ctx = ctx;
    *out = b;
    return TIDE_OK;
}

tide_block *tide_block_ref(tide_block *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void tide_block_unref(tide_block *b) {
    if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    if (b->owner != NULL) {
        tide_allocator_release(b->owner, &b->mem, b->last_stream);
        tide_allocator_unref(b->owner);
    } else if (b->release != NULL) {
        b->release(b->release_ctx);
    }
    tide_host_free(b);
}
