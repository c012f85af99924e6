// SPDX-License-Identifier: MIT
//
// The allocator interface: a const table of functions plus a reference-counted object.
//
// Every allocator is thread-safe, states its true device, remembers what it needs to free a block, and keeps the
// same five numbers. The object is reference-counted and every block holds a reference, so an allocator outlives
// whatever it has given out (LT-34).
#ifndef TIDE_CORE_MEMORY_ALLOCATOR_H
#define TIDE_CORE_MEMORY_ALLOCATOR_H

#include <stdint.h>

#include "core/memory/kind.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_ALLOCATOR_ABI = 1 };

typedef struct tide_allocator tide_allocator;

/// What is asked of an allocator.
typedef struct tide_alloc_request {
    size_t size_bytes;     ///< > 0
    size_t align_bytes;    ///< power of two; 0: the allocator's own
    tide_memory_kind kind; ///< passed through to whoever observes
    tide_stream_id stream; ///< the stream that will use the memory first
    uint64_t block_id;     ///< of the block that will own the memory
    const char *tag;       ///< who asks, borrowed for the call; may be NULL
} tide_alloc_request;

/// What an allocator gives: a value that remembers where it came from, so that release needs no guess.
typedef struct tide_memory {
    void *data;             ///< aligned as asked; device address on a device
    size_t requested_bytes; ///< size_bytes of the request
    size_t reserved_bytes;  ///< >= requested_bytes: what was set aside
    void *context;          ///< the allocator's own; opaque to everybody else
    tide_memory_kind kind;  ///< as asked
    uint64_t block_id;      ///< as asked
    const char *tag;        ///< as asked; valid as long as the block
} tide_memory;

/// Bytes, all of them; unknown is TIDE_UNKNOWN_BYTES and never 0.
#define TIDE_UNKNOWN_BYTES UINT64_MAX
typedef struct tide_allocator_stats {
    uint64_t requested_bytes;    ///< asked for and not yet freed
    uint64_t active_bytes;       ///< held by blocks, rounding included; internal fragmentation = active - requested
    uint64_t cached_bytes;       ///< kept for reuse
    uint64_t reserved_bytes;     ///< taken from the system; >= active + cached
    uint64_t largest_free_bytes; ///< largest block that could be given without asking the system
    uint64_t peak_requested_bytes, peak_active_bytes, peak_reserved_bytes;
    uint64_t n_allocs; ///< successful allocations so far
    uint64_t n_frees;
    uint64_t n_failed; ///< requests that could not be met
    uint64_t n_system; ///< calls to the system or the backing allocator that took memory
    uint64_t n_hits;   ///< allocations served from the cache
} tide_allocator_stats;

typedef struct tide_allocator_ops {
    uint32_t abi;     ///< TIDE_ALLOCATOR_ABI, checked when an allocator is made
    const char *name; ///< stable id used in logs, traces and on the command line: "cpu", "arena"
    tide_status (*alloc)(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err);
    void (*release)(void *self, const tide_memory *mem, tide_stream_id last_stream);
    void (*stats)(const void *self, tide_allocator_stats *out);
    void (*destroy)(void *self);                             ///< frees `self` and all it still holds
    tide_status (*reset)(void *self, tide_error *err);       ///< optional; NULL: cannot be reset
    void (*trim)(void *self);                                ///< optional; gives cached memory back; NULL: holds none
    tide_status (*check)(const void *self, tide_error *err); ///< optional; walks all blocks, O(n)
} tide_allocator_ops;

/**
 * Make an allocator object around a table and its state.
 *
 * @param ops   borrowed, static
 * @param self  taken: ops->destroy(self) is called with the last reference (also when this call fails)
 * @return TIDE_OK with one reference in *out; TIDE_ERR_INVALID for another ABI or a missing entry; TIDE_ERR_NOMEM
 */
tide_status tide_allocator_create(const tide_allocator_ops *ops, void *self, tide_device device, tide_allocator **out,
                                  tide_error *err) TIDE_NODISCARD;
tide_allocator *tide_allocator_ref(tide_allocator *a);
/// Takes NULL. The last reference destroys.
void tide_allocator_unref(tide_allocator *a);

const char *tide_allocator_name(const tide_allocator *a);
tide_device tide_allocator_device(const tide_allocator *a);
/// The state that was given to tide_allocator_create: for the allocator's own file and its tests.
void *tide_allocator_self(const tide_allocator *a);

/// Raw calls, without a block. A size of 0 or an alignment that is no power of two is TIDE_ERR_INVALID.
tide_status tide_allocator_alloc(tide_allocator *a, const tide_alloc_request *req, tide_memory *out,
                                 tide_error *err) TIDE_NODISCARD;
void tide_allocator_release(tide_allocator *a, const tide_memory *mem, tide_stream_id last_stream);
void tide_allocator_get_stats(const tide_allocator *a, tide_allocator_stats *out);
/// TIDE_ERR_NOT_IMPLEMENTED where the allocator cannot be reset.
tide_status tide_allocator_reset(tide_allocator *a, tide_error *err) TIDE_NODISCARD;
void tide_allocator_trim(tide_allocator *a);
/// TIDE_OK where the allocator has nothing to walk.
tide_status tide_allocator_check(const tide_allocator *a, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
