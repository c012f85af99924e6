// SPDX-License-Identifier: MIT
//
// The allocator interface: a const table of functions plus a reference-counted object. References, numbers, reset and
// trim are public (tidemark/memory.h).
//
// Every allocator is thread-safe, states its true device, remembers what it needs to free a block, and keeps the
// same five numbers. The object is reference-counted and every block holds a reference, so an allocator outlives
// whatever it has given out (LT-34).
#ifndef TIDE_CORE_MEMORY_ALLOCATOR_H
#define TIDE_CORE_MEMORY_ALLOCATOR_H

#include <stdint.h>

#include "core/memory/data_ptr.h"
#include "core/memory/kind.h"
#include "tidemark/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_ALLOCATOR_ABI = 2 };

/// What is asked of an allocator.
typedef struct tide_alloc_request {
    size_t size_bytes;     ///< > 0
    size_t align_bytes;    ///< power of two; 0: the allocator's own
    tide_memory_kind kind; ///< passed through to observers
    tide_stream_id stream; ///< the stream that will use the memory first
    uint64_t block_id;     ///< of the block that will own the memory
    const char *tag;       ///< what asks for it, borrowed for the call; may be NULL
} tide_alloc_request;

/// What an allocator gives: a value that remembers where it came from, so that release needs no guess.
typedef struct tide_memory {
    void *data;             ///< aligned as asked; device address on a device
    size_t requested_bytes; ///< size_bytes of the request
    size_t reserved_bytes;  ///< >= requested_bytes: what was set aside
    void *context;          ///< the allocator's own; opaque to others; NULL: data says it all (simple)
    tide_memory_kind kind;  ///< as asked
    uint64_t block_id;      ///< as asked
    const char *tag;        ///< as asked; valid as long as the block
} tide_memory;

/// What kind of allocator this is; constant for its life.
typedef struct tide_allocator_props {
    const char *what;         ///< one phrase for tables
    size_t align_bytes;       ///< of every block at the least
    uint64_t max_align_bytes; ///< strictest alignment that is honoured; beyond: TIDE_ERR_INVALID
    uint64_t max_bytes;       ///< largest request that can ever be met; TIDE_UNKNOWN_BYTES: only the system limits it
    bool keeps_freed;         ///< freed memory is kept for reuse: trim gives it back
    bool stream_aware;        ///< a block that another stream uses is freed when that stream is done
    bool page_locked;         ///< host memory that a device can copy from directly
    bool needs_reset;         ///< freed memory serves again after a reset only
} tide_allocator_props;

/// What an allocator tells the one that wraps it. Calls come under the allocator's own lock, so that no address is
/// given out again before it was told as free: they must not call back into it and must not allocate from it.
typedef struct tide_allocator_listener {
    void *self;
    /// Stream-aware allocators: the memory of a released block can serve again. mem->tag is NULL by then.
    void (*on_free_completed)(void *self, const tide_memory *mem, tide_stream_id stream);
    /// Memory was taken from the system (or the device) or given back to it. `id` is the segment's own.
    void (*on_segment)(void *self, bool taken, uint64_t id, const void *address, size_t size_bytes);
} tide_allocator_listener;

/// Optional entries may be NULL.
typedef struct tide_allocator_ops {
    uint32_t abi;     ///< TIDE_ALLOCATOR_ABI, checked when an allocator is made
    const char *name; ///< stable id used in logs, traces and on the command line: "cpu", "arena"
    /// *out comes with the request's words, reserved_bytes = size_bytes, no data and no context; alloc sets data, and
    /// what differs, and nothing when it fails.
    tide_status (*alloc)(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err);
    void (*release)(void *self, const tide_memory *mem, tide_stream_id last_stream);
    void (*stats)(const void *self, tide_allocator_stats *out);
    void (*props)(const void *self, tide_allocator_props *out); ///< *out comes filled with the defaults of a plain one
    void (*destroy)(void *self);                                ///< frees `self` and all it still holds
    tide_status (*reset)(void *self, tide_error *err);          ///< optional; NULL: cannot be reset
    void (*trim)(void *self);                                   ///< optional; gives cached memory back
    tide_status (*check)(const void *self, tide_error *err);    ///< optional; walks all blocks, O(n)
    /// Optional: `stream` uses `mem` too; its memory must outlive the work queued there so far. NULL: not stream-aware.
    void (*record_use)(void *self, const tide_memory *mem, tide_stream_id stream);
    /// Optional, both or none: memory that the address alone suffices to free (PT-13). Counted like any other.
    tide_status (*raw_alloc)(void *self, size_t size_bytes, void **out, tide_error *err);
    void (*raw_free)(void *data);
    /// Optional: the listener from now on; NULL: none. Only before the first allocation and after the last free.
    void (*listen)(void *self, const tide_allocator_listener *listener);
} tide_allocator_ops;

/**
 * Make an allocator object around a table and its state.
 *
 * @param ops   borrowed, static
 * @param self  taken: ops->destroy(self) is called with the last reference, and when this call fails; not for a table
 *              of another ABI, which this program cannot read
 * @return TIDE_OK with one reference in *out; TIDE_ERR_INVALID for another ABI or a missing entry; TIDE_ERR_NOMEM
 */
tide_status tide_allocator_create(const tide_allocator_ops *ops, void *self, tide_device device, tide_allocator **out,
                                  tide_error *err) TIDE_NODISCARD;

const char *tide_allocator_name(const tide_allocator *a);
tide_device tide_allocator_device(const tide_allocator *a);
/// The state that was given to tide_allocator_create: for the allocator's own file and its tests.
void *tide_allocator_self(const tide_allocator *a);

/// Raw calls, without a block. A size of 0 or an alignment that is no power of two is TIDE_ERR_INVALID. On failure
/// out->data is NULL and the rest of *out means nothing: do not pass a live one.
tide_status tide_allocator_alloc(tide_allocator *a, const tide_alloc_request *req, tide_memory *out,
                                 tide_error *err) TIDE_NODISCARD;
void tide_allocator_release(tide_allocator *a, const tide_memory *mem, tide_stream_id last_stream);
/// TIDE_OK where the allocator has nothing to walk.
tide_status tide_allocator_check(const tide_allocator *a, tide_error *err) TIDE_NODISCARD;
void tide_allocator_get_props(const tide_allocator *a, tide_allocator_props *out);
/// Rule 1 of stream-aware memory: a block belongs to the stream that allocated it; use elsewhere must be declared. Does
/// nothing where the allocator is not stream-aware.
void tide_allocator_record_use(tide_allocator *a, const tide_memory *mem, tide_stream_id stream);
void tide_allocator_listen(tide_allocator *a, const tide_allocator_listener *listener);

// The same memory as a data pointer (PT-13), for owners that know nothing of allocators.

/**
 * Allocate as a data pointer. From an allocator with raw calls it is simple (context == data); from any other the
 * context is a record that keeps memory and allocator together. Either way the allocator lives until the release.
 */
tide_status tide_allocator_alloc_data_ptr(tide_allocator *a, const tide_alloc_request *req, tide_data_ptr *out,
                                          tide_error *err) TIDE_NODISCARD;
/// The function that frees by address alone; NULL where the allocator has none.
tide_release_fn tide_allocator_raw_release(const tide_allocator *a);
/// TIDE_ERR_NOT_IMPLEMENTED without raw calls. A size of 0 is TIDE_ERR_INVALID.
tide_status tide_allocator_raw_alloc(tide_allocator *a, size_t size_bytes, void **out, tide_error *err) TIDE_NODISCARD;
/// Bytes of `a`'s device copied into fresh memory of `a`: *out belongs to the caller.
tide_status tide_allocator_clone(tide_allocator *a, const void *data, size_t size_bytes, tide_data_ptr *out,
                                 tide_error *err) TIDE_NODISCARD;
/// Copy within `a`'s device and wait for it.
tide_status tide_allocator_copy(tide_allocator *a, void *dst, const void *src, size_t size_bytes,
                                tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
