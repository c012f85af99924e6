// SPDX-License-Identifier: MIT
//
// What the tests of copy-on-write share: blocks of N_BYTES, all of one byte.
#ifndef TIDE_TESTS_COW_TEST_H
#define TIDE_TESTS_COW_TEST_H

#include "mock_allocator.h"

enum { N_BYTES = 100 };

static inline tide_block *make_block(tide_allocator *a, const char *tag) {
    tide_error err = TIDE_ERROR_INIT;
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, N_BYTES, 0, TIDE_KIND_DEFAULT, 0, tag, &b, &err), &err);
    return b;
}

static inline tide_block *lazy_clone(tide_block *b) {
    tide_error err = TIDE_ERROR_INIT;
    tide_block *twin = NULL;
    assert_tide_ok(tide_block_lazy_clone(b, b->last_stream, &twin, &err), &err);
    assert_non_null(twin);
    return twin;
}

static inline void fill_block(tide_block *b, int byte) {
    tide_error err = TIDE_ERROR_INIT;
    void *p = NULL;
    assert_tide_ok(tide_block_write(b, &p, &err), &err);
    memset(p, byte, b->mem.requested_bytes);
}

static inline void assert_filled(const tide_block *b, int byte) {
    tide_error err = TIDE_ERROR_INIT;
    const void *p = NULL;
    unsigned char want[N_BYTES];
    memset(want, byte, sizeof want);
    assert_tide_ok(tide_block_read(b, &p, &err), &err);
    assert_memory_equal(p, want, sizeof want);
}

#endif
