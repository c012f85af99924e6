// SPDX-License-Identifier: MIT
//
// registry: which allocator serves (device, kind). LT calls the object "ExecutionContext"; here that word is kept
// for the per-request context of core/runtime.
#ifndef TIDE_CORE_MEMORY_REGISTRY_H
#define TIDE_CORE_MEMORY_REGISTRY_H

#include "core/memory/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_registry tide_registry;

/// An empty registry. Thread-safe. Owned by the caller.
tide_status tide_registry_create(tide_registry **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL; drops the registry's references, blocks keep theirs.
void tide_registry_destroy(tide_registry *r);
/// The registry of the process: "cpu" for the CPU device and every kind there; in static memory, made on first use,
/// never destroyed, never NULL.
tide_registry *tide_registry_default(void);

/**
 * Let `a` serve (device of `a`, kind). A higher priority replaces a lower one; among equals the later one wins.
 *
 * @return TIDE_OK (also when a higher one stays in place); TIDE_ERR_INVALID for an illegal kind; TIDE_ERR_NOMEM
 */
tide_status tide_registry_add(tide_registry *r, tide_memory_kind kind, tide_allocator *a, int priority,
                              tide_error *err) TIDE_NODISCARD;
/// Registering without a kind: `a` becomes the allocator of its device and serves kind Default there (LT-19, LT-20).
tide_status tide_registry_add_device(tide_registry *r, tide_allocator *a, int priority, tide_error *err) TIDE_NODISCARD;
/// The allocator for (device, kind), borrowed as long as it stays registered; no such entry: TIDE_ERR_NOT_FOUND. A kind
/// without a row of its own is not served by another's: a missing row is an error, never a quiet default.
tide_status tide_registry_get(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator **out,
                              tide_error *err) TIDE_NODISCARD;
/// The same with a reference of the caller's own: for threads beside which the row may be replaced.
tide_status tide_registry_acquire(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator **out,
                                  tide_error *err) TIDE_NODISCARD;
/// The allocator of a device, whatever the kind (tide_registry_add_device), with a reference of the caller's own.
tide_status tide_registry_acquire_device(tide_registry *r, tide_device device, tide_allocator **out,
                                         tide_error *err) TIDE_NODISCARD;
/**
 * Take (device, kind) out; with Default goes what tide_registry_add_device put there, when it is the same allocator.
 *
 * @return TIDE_ERR_NOT_FOUND; TIDE_ERR_BUSY with the number of blocks and bytes while the allocator has memory out and
 *         `even_if_busy` is false: nothing is changed then. With it the row goes, and the allocator lives on until its
 *         last block is given back (LT-34).
 */
tide_status tide_registry_remove(tide_registry *r, tide_device device, tide_memory_kind kind, bool even_if_busy,
                                 tide_error *err) TIDE_NODISCARD;

typedef struct tide_registry_row {
    tide_device device;
    tide_memory_kind kind;
    int priority;
    tide_allocator *allocator; ///< borrowed
} tide_registry_row;
/// Rows in order of device, then kind; `n_max` rows at most into `out`. @return how many there are
size_t tide_registry_rows(tide_registry *r, tide_registry_row *out, size_t n_max);
/// Numbers of the allocator of (device, kind); an allocator that serves several kinds has one set for all of them.
tide_status tide_registry_stats(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator_stats *out,
                                tide_error *err) TIDE_NODISCARD;

// ---- the rest of the process's state (LT-19) ----

/// Asks for the current stream of a device wherever a stream is named.
#define TIDE_STREAM_CURRENT UINT64_MAX
/// The device where none is named: the CPU at first.
void tide_registry_set_default_device(tide_registry *r, tide_device device);
tide_device tide_registry_default_device(tide_registry *r);
/// The stream that TIDE_STREAM_CURRENT stands for on `device`; 0 at first. @return TIDE_ERR_INVALID for
/// TIDE_STREAM_CURRENT itself, TIDE_ERR_NOMEM
tide_status tide_registry_set_current_stream(tide_registry *r, tide_device device, tide_stream_id stream,
                                             tide_error *err) TIDE_NODISCARD;
tide_stream_id tide_registry_current_stream(tide_registry *r, tide_device device);

#ifdef __cplusplus
}
#endif
#endif
