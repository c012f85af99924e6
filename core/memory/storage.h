// SPDX-License-Identifier: MIT
//
// storage: a slice of a block, by value, with the block's reference. What a tensor reads and writes.
//
//     block    |<------------------ requested_bytes ------------------>|
//     storage      |<- offset_bytes ->|<------ size_bytes ------>|
//     tensor                              |<- offset + shape ->|
#ifndef TIDE_CORE_MEMORY_STORAGE_H
#define TIDE_CORE_MEMORY_STORAGE_H

#include "core/memory/block.h"
#include "core/memory/registry.h"

#ifdef __cplusplus
extern "C" {
#endif

/// By value: copying the struct copies no reference, use the calls below.
typedef struct tide_storage {
    tide_block *block;   ///< referenced; NULL: empty
    size_t offset_bytes; ///< from the start of the block
    size_t size_bytes;   ///< length of the slice: the capacity of its user
    tide_device device;  ///< known even when empty (LT-10)
} tide_storage;

/// How memory for a storage is taken, now or when it grows.
typedef struct tide_storage_spec {
    tide_device device;
    tide_memory_kind kind;
    size_t align_bytes;      ///< 0: the rule of (device, kind)
    tide_stream_id stream;   ///< TIDE_STREAM_CURRENT: the registry's current one for the device
    tide_registry *registry; ///< NULL: the registry of the process
    const char *tag;         ///< copied into the block; may be NULL
} tide_storage_spec;

/// The whole of `b`; takes a reference of its own.
tide_storage tide_storage_of_block(tide_block *b);
/**
 * Storage of `size_bytes` rounded up to the alignment, from the registry's allocator for (device, kind), content
 * undefined. 0 bytes: empty, no allocator is asked (LT-10, LT-14).
 *
 * @return TIDE_ERR_INVALID (alignment, illegal kind), TIDE_ERR_OVERFLOW, TIDE_ERR_NOT_FOUND (no allocator),
 * TIDE_ERR_NOMEM
 */
tide_status tide_storage_create(const tide_storage_spec *spec, size_t size_bytes, tide_storage *out,
                                tide_error *err) TIDE_NODISCARD;
/// Storage around memory that is there: *ptr is taken when this succeeds (S28-2, PT-2).
tide_status tide_storage_adopt(tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind, const char *tag,
                               tide_storage *out, tide_error *err) TIDE_NODISCARD;
/**
 * Drop what `s` holds and give it `size_bytes` of zeroed memory of its own; 0 only empties it (S28-3). Other storages
 * of the old block keep it. The new memory is there before the old is dropped.
 *
 * @return as tide_storage_create; `s` is empty then, and its device known (S28-4)
 */
tide_status tide_storage_reset(tide_storage *s, const tide_storage_spec *spec, size_t size_bytes,
                               tide_error *err) TIDE_NODISCARD;
/// The same with memory that is there: set external (S28-2).
tide_status tide_storage_set_external(tide_storage *s, tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind,
                                      const char *tag, tide_error *err) TIDE_NODISCARD;
/**
 * Room for `size_bytes` at the least: nothing happens when it is there; else fresh memory by `spec`, the old bytes
 * copied, the rest zeroed, and the old block is left to its other users (S28-11). `s` may be empty (PT-2).
 *
 * @param spec  NULL: as the block was made; TIDE_ERR_INVALID for memory that no allocator gave (PT-4)
 * @return as tide_storage_create; `s` is as it was then
 */
tide_status tide_storage_resize(tide_storage *s, const tide_storage_spec *spec, size_t size_bytes,
                                tide_error *err) TIDE_NODISCARD;
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

static inline bool tide_storage_is_empty(const tide_storage *s) { return s->size_bytes == 0; }
/// Address of the first byte, without checks; NULL when empty. To read or write, use the two calls below.
void *tide_storage_data(const tide_storage *s);
/// Addresses as of tide_block_read and tide_block_write; NULL when empty.
tide_status tide_storage_read(const tide_storage *s, const void **out, tide_error *err) TIDE_NODISCARD;
tide_status tide_storage_write(const tide_storage *s, void **out, tide_error *err) TIDE_NODISCARD;
/// Work that is queued on the stream that used the memory last (on fresh memory: its owner before) is over when this
/// returns.
void tide_storage_wait(const tide_storage *s);
/// Zero [offset_bytes, offset_bytes + size_bytes), which lies inside, on any device; the bytes are there when this
/// returns. @return as tide_storage_write; what the device says
tide_status tide_storage_zero(const tide_storage *s, size_t offset_bytes, size_t size_bytes,
                              tide_error *err) TIDE_NODISCARD;
/// Blocks' references; 0 when empty. `unique`: this is the only one (PT-3).
uint32_t tide_storage_use_count(const tide_storage *s);
bool tide_storage_is_unique(const tide_storage *s);
/// Both read the same memory: same block or lazy clones, whatever the slices.
bool tide_storage_is_alias(const tide_storage *a, const tide_storage *b);
/// Memory of an allocator, or none yet: it can grow (PT-4).
bool tide_storage_is_resizable(const tide_storage *s);
/**
 * A lazy clone of a storage that is the whole of a simple block (tide_block_lazy_clone).
 *
 * @param out  empty, and *cloned false, when it must be copied instead: slices, arena spans, mappings, fixed buffers
 */
tide_status tide_storage_lazy_clone(const tide_storage *s, tide_stream_id stream, tide_storage *out, bool *cloned,
                                    tide_error *err) TIDE_NODISCARD;
/// One line: device, offset, capacity, then the block's own line (S28-1).
void tide_storage_describe(const tide_storage *s, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
