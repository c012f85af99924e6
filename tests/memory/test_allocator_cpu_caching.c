// SPDX-License-Identifier: MIT
//
// The caching allocator: hits, buckets, what caching costs.
#include "memory_test.h"

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static tide_allocator *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&a, &err), &err);
    return a;
}

// LT-23: the second allocation of a size is a hit with the same pointer.
static void second_of_a_size_is_a_hit(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_memory first = take(a, 1000, 64);
    give(a, &first);
    const tide_memory second = take(a, 1000, 64);
    assert_ptr_equal(second.data, first.data);
    assert_true(stats_of(a).n_hits == 1 && stats_of(a).n_system == 1);
    // Another size of the same bucket hits too, one of the next bucket does not.
    give(a, &second);
    const tide_memory third = take(a, 513, 64);
    assert_ptr_equal(third.data, first.data);
    const tide_memory fourth = take(a, 1025, 64);
    assert_true(stats_of(a).n_hits == 2 && stats_of(a).n_system == 2);
    give(a, &third);
    give(a, &fourth);
    tide_allocator_unref(a);
}

static void rounded_up_to_a_power_of_two(void **state) {
    (void)state;
    tide_allocator *a = make();
    static const struct {
        size_t size, align, want;
    } rows[] = {{1, 0, 64},       {64, 0, 64},      {65, 0, 128},      {1000, 64, 1024},
                {1024, 64, 1024}, {1025, 64, 2048}, {100, 4096, 4096}, {(8 << 20) + 1, 256, 16 << 20}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_memory mem = take(a, rows[i].size, rows[i].align);
        assert_true(mem.reserved_bytes == rows[i].want);
        give(a, &mem);
    }
    tide_allocator_unref(a);
}

// LT-24: cached and free counts, reserved above active, and the price of rounding, by hand.
static void the_cost_of_caching_is_visible(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_memory x = take(a, 1000, 64);  // 1024
    const tide_memory y = take(a, 5000, 64);  // 8192
    const tide_memory z = take(a, 70000, 64); // 131072
    give(a, &y);
    give(a, &z);
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == 1000);
    assert_true(s.active_bytes == 1024); // internal fragmentation: 24
    assert_true(s.cached_bytes == 8192 + 131072);
    assert_true(s.reserved_bytes == 1024 + 8192 + 131072);
    assert_true(s.largest_free_bytes == 131072);
    assert_true(s.n_allocs == 3 && s.n_frees == 2);
    assert_sound(a);
    tide_allocator_trim(a);
    assert_true(stats_of(a).cached_bytes == 0 && stats_of(a).reserved_bytes == 1024);
    assert_true(stats_of(a).largest_free_bytes == 0);
    assert_true(stats_of(a).peak_reserved_bytes == 1024 + 8192 + 131072);
    assert_sound(a);
    give(a, &x);
    tide_allocator_unref(a); // what is cached goes with the allocator
}

static void last_freed_comes_first(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_memory x = take(a, 200, 64), y = take(a, 200, 64);
    give(a, &x);
    give(a, &y);
    const tide_memory again = take(a, 200, 64); // still warm in the processor's cache
    assert_ptr_equal(again.data, y.data);
    give(a, &again);
    tide_allocator_unref(a);
}

/// More alignment than a page: only a block that happens to fit may be handed out again.
static void rare_alignments_are_kept_to(void **state) {
    (void)state;
    tide_allocator *a = make();
    const size_t align = (size_t)1 << 16;
    tide_memory plain[8];
    for (int i = 0; i < 8; i++) plain[i] = take(a, align, 64);
    for (int i = 0; i < 8; i++) give(a, &plain[i]);
    for (int i = 0; i < 8; i++) {
        plain[i] = take(a, 100, align);
        assert_true((uintptr_t)plain[i].data % align == 0);
        assert_sound(a);
    }
    for (int i = 0; i < 8; i++) give(a, &plain[i]);
    assert_sound(a);
    tide_allocator_unref(a);
}

/// When the system refuses, what is cached is given back before the request fails.
static void cache_is_given_back_before_failing(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_memory x = take(a, 100000, 64);
    give(a, &x);
    assert_true(stats_of(a).cached_bytes == 131072);
    const tide_alloc_request greedy = {.size_bytes = (size_t)1 << 47, .tag = "greedy"};
    tide_memory mem;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_allocator_alloc(a, &greedy, &mem, &err), TIDE_ERR_NOMEM);
    assert_true(stats_of(a).cached_bytes == 0 && stats_of(a).reserved_bytes == 0 && stats_of(a).n_failed == 1);
    assert_sound(a);
    tide_allocator_unref(a);
}

/// A write after free spoils the list that lies in the freed memory: check() says so. The chance write is put back.
static void check_finds_a_damaged_list(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_memory x = take(a, 300, 64), y = take(a, 300, 64);
    give(a, &x);
    give(a, &y);
    assert_sound(a);
    void *kept;
    void *const itself = y.data;
    memcpy(&kept, y.data, sizeof kept);
    memcpy(y.data, &itself, sizeof itself); // a ring
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_allocator_check(a, &err), TIDE_ERR_RUNTIME);
    assert_text_has(err.msg, "512");
    memset(y.data, 0, sizeof kept); // cut short
    assert_tide_status(tide_allocator_check(a, &err), TIDE_ERR_RUNTIME);
    memcpy(y.data, &kept, sizeof kept);
    assert_sound(a);
    tide_allocator_unref(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(second_of_a_size_is_a_hit),      tide_unit_test(rounded_up_to_a_power_of_two),
        tide_unit_test(the_cost_of_caching_is_visible), tide_unit_test(last_freed_comes_first),
        tide_unit_test(rare_alignments_are_kept_to),    tide_unit_test(cache_is_given_back_before_failing),
        tide_unit_test(check_finds_a_damaged_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
