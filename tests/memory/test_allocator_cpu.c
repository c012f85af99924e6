// SPDX-License-Identifier: MIT
//
// The cpu allocator: alignment and numbers.
#include "memory_test.h"

static tide_allocator *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    return a;
}

// LT-22: 64 bytes, 10,000 sizes, whatever smaller alignment was asked.
static void aligned_to_64_at_10000_sizes(void **state) {
    (void)state;
    tide_allocator *a = make();
    tide_rng rng = {22};
    for (int i = 0; i < 10000; i++) {
        const size_t align = tide_rng_below(&rng, 2) == 0 ? 0 : (size_t)1 << tide_rng_below(&rng, 6);
        const tide_memory mem = take(a, 1 + (size_t)tide_rng_below(&rng, 100000), align);
        assert_true((uintptr_t)mem.data % 64 == 0);
        give(a, &mem);
    }
    tide_allocator_unref(a);
}

static void rounding_is_visible(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_memory small = take(a, 100, 64);
    const tide_memory page = take(a, 5000, 4096);
    tide_allocator_stats s = stats_of(a);
    assert_true(small.reserved_bytes == 128 && page.reserved_bytes == 8192);
    assert_true(s.requested_bytes == 5100 && s.active_bytes == 8320 && s.reserved_bytes == 8320);
    assert_true(s.cached_bytes == 0 && s.largest_free_bytes == 0 && s.n_hits == 0 && s.n_system == 2);
    give(a, &page);
    give(a, &small);
    s = stats_of(a);
    assert_true(s.requested_bytes == 0 && s.active_bytes == 0 && s.reserved_bytes == 0);
    assert_true(s.peak_requested_bytes == 5100 && s.peak_active_bytes == 8320 && s.peak_reserved_bytes == 8320);
    tide_allocator_unref(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(aligned_to_64_at_10000_sizes),
        tide_unit_test(rounding_is_visible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
