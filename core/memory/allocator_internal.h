// SPDX-License-Identifier: MIT
//
// The allocator object and the counters that every allocator keeps. Included inside core/memory only.
#ifndef TIDE_CORE_MEMORY_ALLOCATOR_INTERNAL_H
#define TIDE_CORE_MEMORY_ALLOCATOR_INTERNAL_H

#include <stdatomic.h>

#include "core/memory/allocator.h"

struct tide_allocator {
    _Atomic uint32_t refs;
    const tide_allocator_ops *ops;
    void *self; ///< owned: ops->destroy with the last reference
    tide_device device;
};

/// The `cpu` allocator of the process, in static memory: never destroyed, costs nothing to have, cannot fail.
/// Borrowed.
tide_allocator *tide__cpu_allocator_shared(void);

/// Memory straight from the system, and back. `align_bytes` is a power of two; NULL when there is none.
void *tide__system_alloc(size_t size_bytes, size_t align_bytes);
void tide__system_free(void *ptr);

/// An allocator's stats() gets its state as const; the lock in it is the one part that a reader must change.
static inline void *tide__mutable(const void *self) { return (void *)(uintptr_t)self; }

// Counters: the caller holds the allocator's lock.
void tide__count_alloc(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes);
void tide__count_free(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes);
void tide__count_reserve(tide_allocator_stats *s, size_t taken_bytes);
/// What must hold between the numbers of every allocator: TIDE_ERR_RUNTIME naming the first pair that does not fit.
tide_status tide__counters_check(const tide_allocator_stats *s, const char *name, tide_error *err) TIDE_NODISCARD;

#endif
