// SPDX-License-Identifier: MIT
//
// block: one allocation from an allocator (or memory borrowed from somebody), reference-counted.
// storage: a slice of a block.
#ifndef TIDE_CORE_MEMORY_BLOCK_H
#define TIDE_CORE_MEMORY_BLOCK_H

#include "core/memory/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Reference-counted; the count lives in the object. Fields are read-only outside core/memory.
typedef struct tide_block {
    _Atomic uint32_t refs;
    uint64_t id;     ///< unique in the process, never reused, > 0
    tide_memory mem; ///< data, requested and reserved bytes
    tide_device device;
    tide_memory_kind kind;
    tide_allocator *owner; ///< referenced; NULL: borrowed memory
    tide_stream_id last_stream;
    void (*release)(void *ctx); ///< for borrowed memory: called once with `release_ctx`; may be NULL
    void *release_ctx;
    char *tag; ///< who asked; owned; may be NULL
} tide_block;

/**
 * Allocate `size_bytes` from `owner` as a block with one reference.
 *
 * @param align_bytes  power of two, or 0 for the rule of (device, kind)
 * @param tag          copied; may be NULL
 * @return TIDE_OK; TIDE_ERR_INVALID (size 0, owner NULL, illegal kind for the device); what the allocator returns
 */
tide_status tide_block_create(tide_allocator *owner, size_t size_bytes, size_t align_bytes, tide_memory_kind kind,
                              tide_stream_id stream, const char *tag, tide_block **out, tide_error *err) TIDE_NODISCARD;
/// Wrap memory of somebody else. `release(ctx)` runs once with the last reference; NULL: never freed (LT-12).
tide_status tide_block_borrow(void *data, size_t size_bytes, tide_device device, tide_memory_kind kind,
                              void (*release)(void *ctx), void *ctx, const char *tag, tide_block **out,
                              tide_error *err) TIDE_NODISCARD;
tide_block *tide_block_ref(tide_block *b);
/// Takes NULL. The last reference gives the memory back to its owner, once.
void tide_block_unref(tide_block *b);

/// A slice of a block, by value: copying the struct copies no reference, use the calls below.
typedef struct tide_storage {
    tide_block *block;   ///< referenced; NULL: empty
    size_t offset_bytes; ///< from the start of the block
    size_t size_bytes;   ///< length of the slice: the capacity of whoever uses it
    tide_device device;  ///< known even when empty (LT-10)
} tide_storage;

/// The whole of `b`; takes a reference of its own.
tide_storage tide_storage_of_block(tide_block *b);
/**
 * A part of a storage; shares the block.
 *
 * @return TIDE_ERR_INVALID when offset + size is outside `base` (checked without wrap-around, LT-36); *out untouched
 */
tide_status tide_storage_slice(const tide_storage *base, size_t offset_bytes, size_t size_bytes, tide_storage *out,
                               tide_error *err) TIDE_NODISCARD;
tide_storage tide_storage_ref(const tide_storage *s);
/// Drops the reference and empties the struct; its device stays known.
void tide_storage_deinit(tide_storage *s);
/// Address of the first byte; NULL when empty.
void *tide_storage_data(const tide_storage *s);

#ifdef __cplusplus
}
#endif
#endif
