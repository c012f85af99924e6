// SPDX-License-Identifier: MIT
//
// The cpu allocator: alignment, raw memory and numbers.
#include "core/memory/allocator_internal.h"
#include "memory_test.h"

static tide_allocator *make(size_t min_align_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create_aligned(min_align_bytes, &a, &err), &err);
    return a;
}

// LT-22, PT-15: 64 bytes (or 256), 10,000 sizes, whatever smaller alignment was asked.
static void aligned_to_64_at_10000_sizes(void **state) {
    (void)state;
    static const size_t minimums[] = {64, 256};
    for (int k = 0; k < 2; k++) {
        tide_allocator *a = make(minimums[k]);
        tide_rng rng = {22};
        for (int i = 0; i < 10000; i++) {
            const size_t align = tide_rng_below(&rng, 2) == 0 ? 0 : (size_t)1 << tide_rng_below(&rng, 6);
            const tide_memory mem = take(a, 1 + (size_t)tide_rng_below(&rng, 100000), align);
            assert_true((uintptr_t)mem.data % minimums[k] == 0);
            give(a, &mem);
        }
        tide_allocator_props props;
        tide_allocator_get_props(a, &props);
        assert_int_equal(props.align_bytes, minimums[k]);
        tide_allocator_unref(a);
    }
}

static void other_minimums_are_refused(void **state) {
    (void)state;
    static const size_t wrong[] = {0, 1, 32, 128, 512, 65};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_tide_status(tide_cpu_allocator_create_aligned(wrong[i], &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "65");
    assert_null(a);
}

static void rounding_is_visible(void **state) {
    (void)state;
    tide_allocator *a = make(64);
    const tide_memory small = take(a, 100, 64);
    const tide_memory page = take(a, 5000, 4096);
    tide_allocator_stats s = stats_of(a);
    assert_true(small.reserved_bytes == 128 && page.reserved_bytes == 8192);
    assert_true(s.requested_bytes == 5100 && s.active_bytes == 8320 && s.reserved_bytes == 8320);
    assert_true(s.cached_bytes == 0 && s.largest_free_bytes == 0 && s.n_hits == 0 && s.n_system == 2);
    assert_true(s.headroom_bytes == TIDE_UNKNOWN_BYTES && s.pending_bytes == 0);
    give(a, &page);
    give(a, &small);
    s = stats_of(a);
    assert_true(s.requested_bytes == 0 && s.active_bytes == 0 && s.reserved_bytes == 0);
    assert_true(s.peak_requested_bytes == 5100 && s.peak_active_bytes == 8320 && s.peak_reserved_bytes == 8320);
    tide_allocator_unref(a);
}

// PT-13: the address alone frees raw memory, and it is counted like any other.
static void raw_memory_is_freed_by_its_address(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const size_t minimums[] = {64, 256};
    for (size_t k = 0; k < 2; k++) {
        tide_allocator *a = make(minimums[k]);
        const tide_release_fn release = tide_allocator_raw_release(a);
        assert_non_null(release);
        void *pieces[3];
        static const size_t sizes[3] = {1, 100, 70000};
        for (int i = 0; i < 3; i++) {
            assert_tide_ok(tide_allocator_raw_alloc(a, sizes[i], &pieces[i], &err), &err);
            assert_true((uintptr_t)pieces[i] % minimums[k] == 0);
            memset(pieces[i], 0x11 + i, sizes[i]);
        }
        tide_allocator_stats s = stats_of(a);
        assert_true(s.requested_bytes == 70101 && s.n_allocs == 3 && s.active_bytes == s.reserved_bytes);
        const size_t m = minimums[k];
        assert_int_equal(s.active_bytes, 3 * m + m + (100 + m - 1) / m * m + (70000 + m - 1) / m * m);
        assert_sound(a);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(((unsigned char *)pieces[i])[sizes[i] - 1], 0x11 + i);
            release(pieces[i]);
        }
        s = stats_of(a);
        assert_true(s.active_bytes == 0 && s.reserved_bytes == 0 && s.n_frees == 3 && s.requested_bytes == 0);
        assert_sound(a);
        tide_allocator_unref(a);
    }
}

// PT-13, LT-34: raw memory outlives the last reference to its allocator.
static void raw_memory_outlives_the_allocator(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make(64);
    void *first, *second;
    assert_tide_ok(tide_allocator_raw_alloc(a, 10, &first, &err), &err);
    assert_tide_ok(tide_allocator_raw_alloc(a, 20, &second, &err), &err);
    const tide_release_fn release = tide_allocator_raw_release(a);
    tide_allocator_unref(a);
    memset(first, 1, 10);
    release(first);
    memset(second, 2, 20);
    release(second);
    release(NULL);
}

static void the_systems_refusal_is_an_error(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make(64);
    const tide_alloc_request req = {.size_bytes = 1000, .align_bytes = 128, .tag = "conv1"};
    tide_memory mem = {0};
    void *raw = NULL;
    tide__system_refuse(2);
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "1000 B (alignment 128) for 'conv1'");
    assert_tide_status(tide_allocator_raw_alloc(a, 77, &raw, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "77 B");
    assert_null(mem.data);
    assert_null(raw);
    assert_true(stats_of(a).n_failed == 2 && stats_of(a).active_bytes == 0);
    // Sizes that no rounding may wrap.
    const tide_alloc_request most = {.size_bytes = SIZE_MAX};
    assert_tide_status(tide_allocator_alloc(a, &most, &mem, &err), TIDE_ERR_NOMEM);
    for (size_t less = 0; less < 300; less += 37)
        assert_tide_status(tide_allocator_raw_alloc(a, SIZE_MAX - less, &raw, &err), TIDE_ERR_NOMEM);
    assert_sound(a);
    tide_allocator_unref(a);
}

static void *raw_for_ever(void *a) {
    for (int i = 0; i < 3000; i++) {
        void *p;
        if (tide_allocator_raw_alloc(a, 1 + (size_t)i % 500, &p, NULL) != TIDE_OK) return a;
        memset(p, i, 1 + (size_t)i % 500);
        tide_allocator_raw_release(a)(p);
    }
    return NULL;
}

// LT-39: raw calls of several threads.
static void raw_calls_of_8_threads(void **state) {
    (void)state;
    tide_allocator *a = make(64);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, raw_for_ever, a), 0);
    for (int i = 0; i < 8; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_true(stats_of(a).n_allocs == 24000 && stats_of(a).n_frees == 24000 && stats_of(a).reserved_bytes == 0);
    assert_sound(a);
    tide_allocator_unref(a);
}

/// Pages on offer become the next block of just their size, bytes and all; a request for anything else gets memory
/// of the system, and there is no offer after any request. They go with the last of their owners.
static void pages_change_hands(void **state) {
    (void)state;
    enum { SIZE = 3 * 4096 + 100 };
    static const struct {
        size_t size, align;
        bool takes;
    } rows[] = {
        {3 * 4096 + 128, 64, true},   {3 * 4096 + 256, 256, true}, {4 * 4096, 4096, true}, {SIZE, 1, true},
        {3 * 4096 + 128, 256, false}, {3 * 4096, 64, false},       {64, 64, false},        {4 * 4096 + 128, 64, false},
        {3 * 4096 + 384, 128, false}};
    tide_allocator *a = make(64);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_pages *pages = tide_pages_create(SIZE);
        assert_non_null(pages);
        for (size_t k = 0; k < SIZE; k++) pages->data[k] = (char)k;
        tide_cpu_offer(pages);
        tide_memory mem = take(a, rows[i].size, rows[i].align), other = take(a, rows[i].size, rows[i].align);
        if ((mem.data == pages->data) != rows[i].takes) fail_msg("row %zu", i);
        assert_true(other.data != pages->data);
        tide_pages_unref(pages);
        for (size_t k = 0; rows[i].takes && k < SIZE; k++) assert_int_equal(((char *)mem.data)[k], (char)k);
        memset(mem.data, 7, mem.reserved_bytes < SIZE ? mem.reserved_bytes : SIZE);
        assert_int_equal(stats_of(a).active_bytes, mem.reserved_bytes + other.reserved_bytes);
        give(a, &mem);
        give(a, &other);
        assert_sound(a);
    }
    assert_int_equal(stats_of(a).reserved_bytes, 0);
    // An offer that is taken back, and one of another thread, are none.
    tide_pages *pages = tide_pages_create(4096);
    tide_cpu_offer(pages);
    tide_cpu_offer(NULL);
    tide_memory mem = take(a, 4096, 64);
    assert_true(mem.data != pages->data);
    give(a, &mem);
    tide_pages_unref(pages);
    tide_allocator_unref(a);
}

/// By chance they begin at a multiple of more than a page, and end at none.
static void an_offer_ends_where_its_pages_end(void **state) {
    (void)state;
    enum { PAGE = 4096, N = 16 };
    tide_pages *pages[N];
    tide_allocator *a = make(64);
    for (size_t i = 0; i < N; i++) {
        pages[i] = tide_pages_create((size_t)3 * PAGE);
        assert_non_null(pages[i]);
        tide_cpu_offer(pages[i]);
        tide_memory mem = take(a, (size_t)4 * PAGE, (size_t)2 * PAGE);
        assert_true(mem.data != pages[i]->data);
        give(a, &mem);
    }
    for (size_t i = 0; i < N; i++) tide_pages_unref(pages[i]);
    tide_allocator_unref(a);
}

/// A wrapper that puts red zones around a block asks for more than what is on offer: it gets other memory, and paints
/// nothing over the bytes.
static void wrapped_allocators_leave_the_offer(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *poison;
    tide_allocator *inner = make(64);
    assert_tide_ok(tide_poison_create(inner, &poison, &err), &err);
    tide_pages *pages = tide_pages_create(8192);
    pages->data[8191] = 5;
    tide_cpu_offer(pages);
    tide_memory mem = take(poison, 8192, 64);
    tide_cpu_offer(NULL);
    assert_true(((char *)mem.data + 8192 <= pages->data) || ((char *)mem.data >= pages->data + 8192));
    assert_int_equal(pages->data[8191], 5);
    give(poison, &mem);
    tide_pages_unref(pages);
    tide_allocator_unref(poison);
    tide_allocator_unref(inner);
}

static void host_memory_may_end(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    for (int n = 0; n < 2; n++) {
        tide_host_fail_after(n);
        assert_tide_status(tide_cpu_allocator_create(&a, &err), TIDE_ERR_NOMEM);
    }
    tide_host_fail_after(-1);
    assert_null(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(aligned_to_64_at_10000_sizes),
        tide_unit_test(other_minimums_are_refused),
        tide_unit_test(rounding_is_visible),
        tide_unit_test(raw_memory_is_freed_by_its_address),
        tide_unit_test(raw_memory_outlives_the_allocator),
        tide_unit_test(the_systems_refusal_is_an_error),
        tide_unit_test(raw_calls_of_8_threads),
        tide_unit_test(pages_change_hands),
        tide_unit_test(an_offer_ends_where_its_pages_end),
        tide_unit_test(wrapped_allocators_leave_the_offer),
        tide_unit_test(host_memory_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
