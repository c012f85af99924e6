// SPDX-License-Identifier: MIT
//
// cpu_caching's state: the shards, their buckets and their counters. See cpu_caching.c for the whole picture.
#ifndef TIDE_CORE_MEMORY_ALLOCATORS_CPU_CACHING_INTERNAL_H
#define TIDE_CORE_MEMORY_ALLOCATORS_CPU_CACHING_INTERNAL_H

#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/size_classes_internal.h"
#include "core/memory/escrow_internal.h"
#include "core/memory/poison.h"
#include "core/memory/short_lock_internal.h"
#include "core/memory/thread_number_internal.h"

enum { TIDE__N_SHARDS = 8, TIDE__CACHE_LINE_BYTES = 64, TIDE__PAGE_BYTES = 4096 };

/// Lies in the freed memory itself. `bytes` is the block's size in the last bucket, and nothing in the others.
typedef struct tide__free_node {
    struct tide__free_node *next;
    size_t bytes;
} tide__free_node;

/// What one thread (or every eighth) allocates and frees. A block may be freed in another shard than it came from: the
/// bytes of a shard may go below zero, their sum over all shards is what is out.
typedef struct tide__shard {
    tide__lock lock;              // guards everything below
    bool is_used;                 // counted among the first n_used
    tide__part requested, active; // bytes
    uint64_t n_allocs, n_frees;
    _Alignas(TIDE__CACHE_LINE_BYTES) tide__free_node *heads[TIDE__N_CLASSES];
} tide__shard;

typedef struct tide__caching {
    tide_size_classes sizes;
    void *whole; // the host memory that this lies in, aligned
    // Changed with `gate` and the locks of all shards in use held, and read with either.
    _Alignas(TIDE__CACHE_LINE_BYTES) tide__lock gate;
    unsigned n_used; // shards in use are the first n_used
    uint64_t reserved_bytes;
    uint64_t peak_requested_bytes, peak_active_bytes, peak_reserved_bytes;
    uint64_t n_system, n_failed;
    _Alignas(TIDE__CACHE_LINE_BYTES) tide__shard shards[TIDE__N_SHARDS];
} tide__caching;

/// Gate and all shards in use, in this order; whoever has them sees the numbers stand still.
void tide__caching_lock_all(tide__caching *c);
void tide__caching_unlock_all(tide__caching *c);
/// The same, with `s` in use afterwards.
void tide__caching_lock_all_with(tide__caching *c, tide__shard *s);
/// What the shard's own bucket cannot serve within the limits: a block of another shard or of the system. NULL: none.
void *tide__caching_alloc_slow(tide__caching *c, tide__shard *s, const tide_alloc_request *req, tide__size_class class);
/// Give every cached block back to the system. No lock is held.
void tide__caching_drop(tide__caching *c);
/// The numbers; all locks are held.
void tide__caching_sum(const tide__caching *c, tide_allocator_stats *out);
/// Walks all lists; all locks are held.
tide_status tide__caching_check_locked(const tide__caching *c, tide_error *err) TIDE_NODISCARD;

#endif
