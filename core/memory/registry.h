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
/// The registry of the process: "cpu" for every kind of the CPU device; made on first use, never destroyed. NULL
/// when there is no memory for it.
tide_registry *tide_registry_default(void);

/**
 * Let `a` serve (device of `a`, kind). A higher priority replaces a lower one; among equals the later one wins.
 *
 * @return TIDE_OK (also when a higher one stays in place); TIDE_ERR_INVALID for an illegal kind; TIDE_ERR_NOMEM
 */
tide_status tide_registry_add(tide_registry *r, tide_memory_kind kind, tide_allocator *a, int priority,
                              tide_error *err) TIDE_NODISCARD;
/// The allocator for (device, kind), borrowed as long as it stays registered; no such entry: TIDE_ERR_NOT_FOUND.
tide_status tide_registry_get(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator **out,
                              tide_error *err) TIDE_NODISCARD;
/// The same with a reference of the caller's own: for threads beside which the row may be replaced.
tide_status tide_registry_acquire(tide_registry *r, tide_device device, tide_memory_kind kind, tide_allocator **out,
                                  tide_error *err) TIDE_NODISCARD;

typedef struct tide_registry_row {
    tide_device device;
    tide_memory_kind kind;
    int priority;
    tide_allocator *allocator; ///< borrowed
} tide_registry_row;
/// Rows in order of device, then kind; `n_max` rows at most into `out`. @return how many there are
size_t tide_registry_rows(tide_registry *r, tide_registry_row *out, size_t n_max);

#ifdef __cplusplus
}
#endif
#endif
