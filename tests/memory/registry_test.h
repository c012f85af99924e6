// SPDX-License-Identifier: MIT
//
// What the tests of the registry share: something to register.
#ifndef TIDE_TESTS_MEMORY_REGISTRY_TEST_H
#define TIDE_TESTS_MEMORY_REGISTRY_TEST_H

#include "core/memory/registry.h"
#include "memory_test.h"

static inline tide_registry *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = NULL;
    assert_tide_ok(tide_registry_create(&r, &err), &err);
    return r;
}

/// An allocator that only has a device.
static inline tide_status no_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    (void)self;
    (void)req;
    (void)out;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "has nothing");
}
static inline void no_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)self;
    (void)mem;
    (void)last_stream;
}
static inline void no_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    *out = (tide_allocator_stats){0};
}
static inline void count_destroy(void *self) { ++*(int *)self; }

static const tide_allocator_ops named_only = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "named_only",
                                              .alloc = no_alloc,
                                              .release = no_release,
                                              .stats = no_stats,
                                              .destroy = count_destroy};

#endif
