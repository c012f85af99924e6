// SPDX-License-Identifier: MIT
//
// The allocators of the house, one constructor each. All return one reference, owned by the caller.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_ALLOCATORS_H
#define TIDE_CORE_MEMORY_ALLOCATORS_ALLOCATORS_H

#include "core/memory/allocator.h"
#include "core/memory/observer.h"

#ifdef __cplusplus
extern "C" {
#endif

/// "cpu": aligned host memory straight from the system; at least 64-byte aligned (LT-22).
tide_status tide_cpu_allocator_create(tide_allocator **out, tide_error *err) TIDE_NODISCARD;

/// "cpu_caching": power-of-two buckets that keep freed blocks (LT-23, LT-24).
tide_status tide_cpu_caching_allocator_create(tide_allocator **out, tide_error *err) TIDE_NODISCARD;

/**
 * "arena": one block from `backing`, a cursor that only moves up, reset that rewinds (LT-28).
 *
 * @param backing         borrowed; the arena takes its own reference
 * @param capacity_bytes  taken at once; > 0
 * @param align_bytes     of every block at the least, a power of two; 0: the rule of (device, Workspace)
 * Until reset a released span stays active, so stats.peak_active_bytes is the high-water mark: the capacity needed.
 * A request that does not fit is TIDE_ERR_NO_SPACE and changes nothing. Reset while memory is out is TIDE_ERR_BUSY.
 */
tide_status tide_arena_create(tide_allocator *backing, size_t capacity_bytes, size_t align_bytes, tide_allocator **out,
                              tide_error *err) TIDE_NODISCARD;

/**
 * "instrumented": passes every call to `inner` and tells `obs` of each alloc, free and failed attempt. Reports the
 * inner allocator's name in its events, and its stats as they are.
 *
 * @param inner  borrowed; referenced
 * @param obs    copied; obs->self must outlive the last reference to *out (and so every block of it)
 */
tide_status tide_instrumented_create(tide_allocator *inner, const tide_observer *obs, tide_allocator **out,
                                     tide_error *err) TIDE_NODISCARD;

/// The allocators that can be made by name alone, for the command line: "cpu", "cpu_caching".
tide_status tide_allocator_create_by_name(const char *name, tide_allocator **out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
