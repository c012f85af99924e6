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
    uint64_t max_align_bytes; ///< props.max_align_bytes, which is constant: looked at in every request
};

/// True where core/memory/poison.h's words to AddressSanitizer mean something: on the warm path even a call that does
/// nothing costs a nanosecond.
#if defined(__SANITIZE_ADDRESS__)
#define TIDE__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIDE__ASAN 1
#endif
#endif
#ifndef TIDE__ASAN
#define TIDE__ASAN 0
#endif

/// Of every system block, whatever was asked: a cache line, and the widest vector there is.
enum { TIDE__CPU_ALIGN_BYTES = 64 };

/// The `cpu` allocator of the process, in static memory: never destroyed, costs nothing to have, cannot fail.
/// Borrowed.
tide_allocator *tide__cpu_allocator_shared(void);

/// Memory straight from the system, and back. `align_bytes` is a power of two; NULL when there is none.
void *tide__system_alloc(size_t size_bytes, size_t align_bytes);
void tide__system_free(void *ptr);
/// For tests: the next `n` calls get nothing; 0: plant nothing.
void tide__system_refuse(uint32_t n);

/// An allocator's stats() gets its state as const; the lock in it is the one part that a reader must change.
static inline void *tide__mutable(const void *self) { return (void *)(uintptr_t)self; }

// Counters: the caller holds the allocator's lock.
void tide__count_alloc(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes);
void tide__count_free(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes);
void tide__count_reserve(tide_allocator_stats *s, size_t taken_bytes);
/// What must hold between the numbers of every allocator: TIDE_ERR_RUNTIME naming the first pair that does not fit.
tide_status tide__counters_check(const tide_allocator_stats *s, const char *name, tide_error *err) TIDE_NODISCARD;

#endif
