// SPDX-License-Identifier: MIT
//
// What the tests of the KV cache share: a cache of small pages, and short words for work on its sequences.
#ifndef TIDE_TESTS_KV_CACHE_TEST_H
#define TIDE_TESTS_KV_CACHE_TEST_H

#include "core/device/backend.h"
#include "core/memory/kv_cache.h"
#include "memory_test.h"
#include "tests/device/fake_device.h"

enum { TOKEN = 16, PER_PAGE = 4, PAGE = TOKEN * PER_PAGE };

static inline tide_allocator *make_pages_of(tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *backing = NULL, *pages = NULL;
    assert_tide_ok(tide_device_allocator_create(device, &backing, &err), &err);
    assert_tide_ok(tide_paged_create(backing, 256, 8, &pages, &err), &err);
    tide_allocator_unref(backing);
    return pages;
}

static inline tide_kv_cache *make_cache(tide_allocator *pages, tide_stream_id stream) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_kv_cache_options opt = {
        .token_bytes = TOKEN, .tokens_per_page = PER_PAGE, .stream = stream, .tag = "layer0.kv"};
    tide_kv_cache *c = NULL;
    assert_tide_ok(tide_kv_cache_create(pages, &opt, &c, &err), &err);
    return c;
}

static inline tide_kv_sequence add(tide_kv_cache *c) {
    tide_error err = TIDE_ERROR_INIT;
    tide_kv_sequence s = 0;
    assert_tide_ok(tide_kv_cache_add(c, &s, &err), &err);
    return s;
}

static inline tide_kv_sequence fork_of(tide_kv_cache *c, tide_kv_sequence from) {
    tide_error err = TIDE_ERROR_INIT;
    tide_kv_sequence s = 0;
    assert_tide_ok(tide_kv_cache_fork(c, from, &s, &err), &err);
    return s;
}

/// Tokens number `first`, `first` + 1 … : all bytes of a token say which it is.
static inline void append(tide_kv_cache *c, tide_kv_sequence s, unsigned first, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    unsigned char bytes[64 * TOKEN];
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++) memset(bytes + i * TOKEN, (int)(first + i), TOKEN);
    assert_tide_ok(tide_kv_cache_append(c, s, bytes, n, &err), &err);
}

static inline void truncate_to(tide_kv_cache *c, tide_kv_sequence s, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_kv_cache_truncate(c, s, n, &err), &err);
}

static inline void free_sequence(tide_kv_cache *c, tide_kv_sequence s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_kv_cache_free(c, s, &err), &err);
}

static inline tide_kv_cache_stats numbers(const tide_kv_cache *c) {
    tide_kv_cache_stats s;
    tide_kv_cache_get_stats(c, &s);
    return s;
}

static inline void assert_cache_sound(const tide_kv_cache *c) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_kv_cache_check(c, &err), &err);
}

/// The sequence is exactly these tokens, one by one and gathered.
static inline void assert_tokens(const tide_kv_cache *c, tide_kv_sequence s, const unsigned char *tokens, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    static unsigned char got[1024 * TOKEN];
    assert_true(n <= 1024 && tide_kv_cache_n_tokens(c, s) == n);
    assert_tide_ok(tide_kv_cache_gather(c, s, 0, n, got, &err), &err);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < TOKEN; j++) assert_int_equal(got[i * TOKEN + j], tokens[i]);
    }
}

#endif
