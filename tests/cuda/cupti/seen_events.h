// SPDX-License-Identifier: MIT
//
// An observer that keeps what it hears, and sums of it by allocator, for the tests of the recorder.
#ifndef TIDE_TESTS_CUDA_CUPTI_SEEN_EVENTS_H
#define TIDE_TESTS_CUDA_CUPTI_SEEN_EVENTS_H

#include <pthread.h>
#include <string.h>

#include "core/device/backend.h"
#include "core/device/cupti_plugin.h"
#include "core/memory/observer.h"

enum { SEEN_MAX = 1 << 17 };

typedef struct seen_event {
    tide_memory_op op;
    uint64_t t_ns, block_id, bytes, address;
    const char *allocator, *tag;
} seen_event;

static seen_event seen[SEEN_MAX];
static size_t n_seen;
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

static void seen_on_memory(void *self, const tide_memory_event *e) {
    (void)self;
    pthread_mutex_lock(&seen_lock);
    if (n_seen < SEEN_MAX)
        seen[n_seen++] =
            (seen_event){e->op, e->t_ns, e->block_id, e->requested_bytes, e->address, e->allocator, e->tag};
    pthread_mutex_unlock(&seen_lock);
}

/// Bytes of an allocator that are live after all that was heard; NULL: of all. Each block must have been announced once
/// before it ends.
static inline uint64_t seen_live(const char *allocator) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n_seen; i++) {
        if (allocator != NULL && (seen[i].allocator == NULL || strcmp(seen[i].allocator, allocator) != 0)) continue;
        if (seen[i].op == TIDE_MEM_ALLOC) sum += seen[i].bytes;
        if (seen[i].op == TIDE_MEM_FREE_COMPLETED) sum -= seen[i].bytes;
    }
    return sum;
}

static inline size_t seen_count(tide_memory_op op, const char *allocator) {
    size_t n = 0;
    for (size_t i = 0; i < n_seen; i++)
        n += seen[i].op == op && seen[i].allocator != NULL && strcmp(seen[i].allocator, allocator) == 0;
    return n;
}

static const tide_observer seen_observer = {.on_memory = seen_on_memory, .no_time = true};
static const tide_cupti_host seen_host = {.abi = TIDE_CUPTI_ABI,
                                          .new_block_id = tide_block_new_id,
                                          .thread_id = tide_thread_id,
                                          .scope = tide_scope_current,
                                          .is_own_call = tide_device_is_own_call};

#endif
