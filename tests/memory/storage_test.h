// SPDX-License-Identifier: MIT
//
// What the tests of storages share.
#ifndef TIDE_TESTS_STORAGE_TEST_H
#define TIDE_TESTS_STORAGE_TEST_H

#include "core/memory/storage.h"
#include "mock_allocator.h"

static const tide_device cuda1 = {TIDE_DEVICE_CUDA, 1};

static inline tide_storage_spec spec_for(tide_registry *r, tide_device device, const char *tag) {
    return (tide_storage_spec){.device = device, .kind = TIDE_KIND_DEFAULT, .registry = r, .tag = tag};
}

static inline tide_storage create(tide_registry *r, size_t size_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_storage s;
    const tide_storage_spec spec = spec_for(r, TIDE_CPU, "w");
    assert_tide_ok(tide_storage_create(&spec, size_bytes, &s, &err), &err);
    return s;
}

static inline void fill(const tide_storage *s, int byte) {
    tide_error err = TIDE_ERROR_INIT;
    void *p = NULL;
    assert_tide_ok(tide_storage_write(s, &p, &err), &err);
    memset(p, byte, s->size_bytes);
}

static inline void assert_bytes(const tide_storage *s, size_t from, size_t to, int byte) {
    tide_error err = TIDE_ERROR_INIT;
    const void *p = NULL;
    assert_tide_ok(tide_storage_read(s, &p, &err), &err);
    for (size_t i = from; i < to; i++) assert_int_equal(((const unsigned char *)p)[i], byte);
}

static inline void count_release(void *ctx) { ++*(int *)ctx; }

#endif
