// SPDX-License-Identifier: MIT
//
// The one place where tensor memory comes from the operating system.
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/memory/allocator_internal.h"

static _Atomic uint32_t n_refusals; // planted by tests

static bool refused(void) {
    uint32_t n = atomic_load_explicit(&n_refusals, memory_order_relaxed);
    while (n > 0) {
        if (atomic_compare_exchange_weak_explicit(&n_refusals, &n, n - 1, memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    return false;
}

void *tide__system_alloc(size_t size_bytes, size_t align_bytes) {
    // C17 7.22.3.1 wanted the size to be a multiple of the alignment until DR 460; rounding keeps to both.
    uint64_t rounded;
    if (!tide_align_up(size_bytes, align_bytes, &rounded) || rounded > PTRDIFF_MAX || refused()) return NULL;
    return aligned_alloc(align_bytes, (size_t)rounded);
}

void tide__system_free(void *ptr) { free(ptr); }

void tide__system_refuse(uint32_t n) { atomic_store(&n_refusals, n); }
