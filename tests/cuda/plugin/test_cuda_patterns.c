// SPDX-License-Identifier: MIT
//
// The kernels of the plug-in against a plain reference: fill and check at sizes and addresses that are no multiples of
// anything, through the table on the simulated driver, which runs the host's build of the same source.
#include "core/base/text.h"
#include "tests/cuda/plugin/cuda_test.h"

/// Byte `i` of the pattern, written down once more from what kernels.cu says of it.
static unsigned char reference(uint64_t seed, uint64_t i) {
    uint64_t x = seed + (i / 4 + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return (unsigned char)(x >> (8 * (i % 4)));
}

enum { MOST = 5 * 1024 * 1024 };

static uint64_t *counter;
static char *memory, *bytes;

static void make(void) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(ops->mem_alloc(self, 0, MOST + 64, 256, (void **)&memory, &err), &err);
    assert_tide_ok(ops->pinned_alloc(self, 0, sizeof *counter, 64, (void **)&counter, &err), &err);
    bytes = malloc(MOST + 64);
    assert_non_null(bytes);
}

static void unmake(void) {
    ops->mem_free(self, 0, memory);
    ops->pinned_free(self, 0, counter);
    free(bytes);
}

static uint64_t count_wrong(const char *at, size_t n, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    *counter = 0;
    assert_tide_ok(ops->pattern_check(self, 0, 0, at, n, seed, counter, &err), &err);
    assert_tide_ok(ops->stream_sync(self, 0, 0, &err), &err);
    return *counter;
}

/// All of the memory, on the host.
static void read_back(void) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(ops->copy(self, 0, 0, TIDE_COPY_DEVICE_TO_HOST, bytes, memory, MOST + 64, &err), &err);
    assert_tide_ok(ops->stream_sync(self, 0, 0, &err), &err);
}

static void fill_and_look(size_t offset, size_t n, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(ops->fill(self, 0, 0, memory, 0x5A, MOST + 64, &err), &err);
    assert_tide_ok(ops->pattern_fill(self, 0, 0, memory + offset, n, seed, &err), &err);
    read_back();
    for (size_t i = 0; i<MOST + 64; i += i> offset + n + 64 ? 4093 : 1) {
        const bool inside = i >= offset && i < offset + n;
        const unsigned char want = inside ? reference(seed, i - offset) : 0x5A;
        if ((unsigned char)bytes[i] != want) fail_msg("byte %zu of %zu at %zu: %02x", i - offset, n, offset, bytes[i]);
    }
    assert_int_equal(count_wrong(memory + offset, n, seed), 0);
}

static void every_size_and_address(void **state) {
    (void)state;
    make();
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 1023, 1024, 1025, 4096, 100003};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) fill_and_look(i % 5, sizes[i], 1000 + i);
    fill_and_look(1, MOST, 7); // more than the grid has threads
    unmake();
}

static void every_byte_that_differs_is_counted(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {.state = 5};
    make();
    const size_t n = 100003;
    assert_tide_ok(ops->pattern_fill(self, 0, 0, memory + 2, n, 42, &err), &err);
    uint64_t n_wrong = 0;
    for (int i = 0; i < 200; i++) {
        const size_t at = i == 0 ? 0 : i == 1 ? n - 1 : tide_rng_below(&rng, n);
        char byte;
        assert_tide_ok(ops->copy(self, 0, 0, TIDE_COPY_DEVICE_TO_HOST, &byte, memory + 2 + at, 1, &err), &err);
        assert_tide_ok(ops->stream_sync(self, 0, 0, &err), &err);
        n_wrong += (unsigned char)byte == reference(42, at);
        byte = (char)(reference(42, at) ^ 0x10);
        assert_tide_ok(ops->copy(self, 0, 0, TIDE_COPY_HOST_TO_DEVICE, memory + 2 + at, &byte, 1, &err), &err);
        assert_tide_ok(ops->stream_sync(self, 0, 0, &err), &err);
    }
    assert_int_equal(count_wrong(memory + 2, n, 42), n_wrong);
    assert_true(count_wrong(memory + 2, n, 43) > n * 9 / 10); // another seed is another pattern
    assert_int_equal(count_wrong(memory, 0, 1), 0);
    unmake();
}

static void checks_add_up_and_keep_the_order_of_streams(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_stream_id s;
    make();
    assert_tide_ok(ops->stream_create(self, 0, &s, &err), &err);
    *counter = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_tide_ok(ops->pattern_fill(self, 0, s, memory, 1000, seed, &err), &err);
        assert_tide_ok(ops->pattern_check(self, 0, s, memory, 1000, seed, counter, &err), &err);
    }
    assert_tide_ok(ops->fill(self, 0, s, memory, reference(3, 0) ^ 1, 1, &err), &err);
    for (int i = 0; i < 3; i++) assert_tide_ok(ops->pattern_check(self, 0, s, memory, 1, 3, counter, &err), &err);
    assert_tide_ok(ops->stream_sync(self, 0, s, &err), &err);
    assert_int_equal(*counter, 3);
    ops->stream_destroy(self, 0, s);
    assert_tide_status(ops->pattern_check(self, 0, 0, memory, 8, 0, NULL, &err), TIDE_ERR_INVALID);
    assert_tide_status(ops->pattern_check(self, 0, 0, memory, 8, 0, (uint64_t *)((char *)counter + 1), &err),
                       TIDE_ERR_INVALID);
    assert_tide_status(ops->pattern_fill(self, 0, 0, NULL, 8, 0, &err), TIDE_ERR_INVALID);
    unmake();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cuda_unit_test(every_size_and_address),
        cuda_unit_test(every_byte_that_differs_is_counted),
        cuda_unit_test(checks_add_up_and_keep_the_order_of_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
