// SPDX-License-Identifier: MIT
//
// The caching allocator: hits, buckets, what caching costs.
#include "core/base/assert.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/poison.h"
#include "memory_test.h"
#include "survives.h"

static tide_allocator *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&a, &err), &err);
    return a;
}

static tide_allocator *make_steps(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create_sized(TIDE_SIZES_STEPS, &a, &err), &err);
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

// LT-24: finer steps above 1 MiB: what is asked, what is taken, and a hit all the same.
static void steps_cost_less(void **state) {
    (void)state;
    tide_allocator *pow2 = make(), *steps = make_steps();
    static const struct {
        size_t size, pow2, steps;
    } rows[] = {{100, 128, 128},
                {(1 << 20) + 1, 2 << 20, (1 << 20) + (1 << 17)},
                {(5 << 20) + 5, 8 << 20, (5 << 20) + (1 << 19)},
                {(65 << 20), 128 << 20, 66 << 20}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_memory p = take(pow2, rows[i].size, 64), s = take(steps, rows[i].size, 64);
        assert_int_equal(p.reserved_bytes, rows[i].pow2);
        assert_int_equal(s.reserved_bytes, rows[i].steps);
        assert_int_equal(stats_of(steps).active_bytes, rows[i].steps);
        give(pow2, &p);
        give(steps, &s);
        assert_sound(steps);
        const tide_memory again = take(steps, rows[i].steps, 64);
        assert_ptr_equal(again.data, s.data);
        give(steps, &again);
        assert_int_equal(stats_of(steps).n_hits, i + 1);
    }
    assert_true(stats_of(steps).cached_bytes < stats_of(pow2).cached_bytes * 6 / 10);
    tide_allocator_unref(pow2);
    tide_allocator_unref(steps);
}

/// Blocks above 64 MiB share a bucket: each is found by its exact size, in any order, and check() walks them.
static void huge_blocks_are_found_by_size(void **state) {
    (void)state;
    tide_allocator *a = make_steps();
    const size_t mib = (size_t)1 << 20;
    tide_memory huge[4];
    for (size_t i = 0; i < 4; i++) huge[i] = take(a, (66 + 2 * i) * mib, 64);
    assert_int_equal(stats_of(a).active_bytes, (66 + 68 + 70 + 72) * mib);
    for (size_t i = 0; i < 4; i++) give(a, &huge[(i + 2) % 4]);
    assert_sound(a);
    assert_int_equal(stats_of(a).largest_free_bytes, 72 * mib);
    for (size_t i = 0; i < 4; i++) {
        const tide_memory again = take(a, (65 + 2 * i) * mib, 64);
        assert_ptr_equal(again.data, huge[i].data);
        huge[i] = again;
        assert_sound(a);
    }
    assert_true(stats_of(a).n_hits == 4 && stats_of(a).cached_bytes == 0 && stats_of(a).largest_free_bytes == 0);
    for (size_t i = 0; i < 4; i++) give(a, &huge[i]);
    tide_allocator_unref(a);
}

/// The system refuses once: everything cached is given back, and the request is met after all.
static void a_refusal_is_tried_again(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make();
    tide_memory kept = take(a, 100, 64), some[5];
    for (int i = 0; i < 5; i++) some[i] = take(a, (size_t)1000 << i, 64);
    for (int i = 0; i < 5; i++) give(a, &some[i]);
    assert_true(stats_of(a).cached_bytes == 31 * 1024);
    tide__system_refuse(1);
    const tide_memory large = take(a, 1 << 20, 64);
    tide_allocator_stats s = stats_of(a);
    assert_true(s.cached_bytes == 0 && s.n_failed == 0 && s.reserved_bytes == 128 + (1 << 20));
    assert_sound(a);
    tide__system_refuse(2);
    tide_memory mem = {0};
    const tide_alloc_request more = {.size_bytes = 3000, .align_bytes = 64, .tag = "conv1"};
    assert_tide_status(tide_allocator_alloc(a, &more, &mem, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "3000 B (alignment 64) of 'conv1'");
    assert_null(mem.data);
    assert_true(stats_of(a).n_failed == 1 && stats_of(a).active_bytes == s.active_bytes);
    assert_sound(a);
    give(a, &kept);
    give(a, &large);
    assert_sound(a);
    tide_allocator_unref(a);
}

static void sizes_past_every_class_are_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, (size_t)1 << 63, ((size_t)1 << 62) + 1};
    for (int k = 0; k < 2; k++) {
        tide_allocator *a = k == 0 ? make() : make_steps();
        const tide_memory small = take(a, 10, 0);
        give(a, &small); // the first bucket is not empty: it must not be taken for theirs
        for (size_t i = 0; i < 4; i++) {
            tide_memory mem = {0};
            const tide_alloc_request req = {.size_bytes = sizes[i]};
            assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOMEM);
            assert_null(mem.data);
            assert_sound(a);
        }
        assert_true(stats_of(a).n_failed == 4 && stats_of(a).requested_bytes == 0);
        tide_allocator_unref(a);
    }
    tide_allocator *a = NULL;
    assert_tide_status(tide_cpu_caching_allocator_create_sized((tide_size_classes)7, &a, &err), TIDE_ERR_INVALID);
    tide_host_fail_after(0);
    assert_tide_status(tide_cpu_caching_allocator_create(&a, &err), TIDE_ERR_NOMEM);
    assert_null(a);
}

/// A cached block is off limits where a sanitizer can see it, and usable to its last byte when it is out again.
static void freed_blocks_are_off_limits(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_memory mem = take(a, 1000, 64);
    unsigned char *bytes = mem.data;
    memset(bytes, 1, 1024);
    assert_true(survives_reading(&bytes[999]));
    give(a, &mem);
    assert_int_equal(survives_reading(&bytes[16]), !tide_asan_active());
    assert_int_equal(survives_reading(&bytes[999]), !tide_asan_active());
    const tide_memory again = take(a, 600, 64);
    assert_ptr_equal(again.data, bytes);
    memset(bytes, 2, 1024);
    assert_true(survives_reading(&bytes[1023]));
    give(a, &again);
    tide_allocator_trim(a); // gives the memory back as it came
    tide_allocator_unref(a);
}

// LT-39: what it says of itself.
static void props_are_right(void **state) {
    (void)state;
    tide_allocator *a = make();
    tide_allocator_props p;
    tide_allocator_get_props(a, &p);
    assert_true(p.align_bytes == 64 && p.keeps_freed && !p.stream_aware && !p.page_locked && !p.needs_reset);
    assert_non_null(strstr(p.what, "power of two"));
    assert_null(tide_allocator_raw_release(a)); // the address alone does not tell a block's size
    tide_allocator_unref(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(second_of_a_size_is_a_hit),
        tide_unit_test(rounded_up_to_a_power_of_two),
        tide_unit_test(the_cost_of_caching_is_visible),
        tide_unit_test(last_freed_comes_first),
        tide_unit_test(rare_alignments_are_kept_to),
        tide_unit_test(cache_is_given_back_before_failing),
        tide_unit_test(check_finds_a_damaged_list),
        tide_unit_test(steps_cost_less),
        tide_unit_test(huge_blocks_are_found_by_size),
        tide_unit_test(a_refusal_is_tried_again),
        tide_unit_test(sizes_past_every_class_are_refused),
        tide_unit_test(freed_blocks_are_off_limits),
        tide_unit_test(props_are_right),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
