// SPDX-License-Identifier: MIT
//
// stream_caching's numbers (rule 10), what its listener hears, several devices (LT-25), trim, and idle host memory
// under AddressSanitizer.
#include "core/base/assert.h"
#include "stream_caching_test.h"

static void finish(tide_allocator *a) {
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_10_the_numbers(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory one = take_on(a, 1000, s), two = take_on(a, 100 * KIB, s), three = take_on(a, 2 * MIB, t);
    use(a, &one, t);
    give_on(a, &one, s);
    give_on(a, &three, t);
    const tide_allocator_stats n = stats_of(a);
    assert_true(n.requested_bytes == 100 * KIB);
    assert_true(n.active_bytes == 101 * KIB && n.pending_bytes == 1 * KIB && n.n_pending == 1);
    assert_true(n.reserved_bytes == 22 * MIB && n.cached_bytes == 22 * MIB - 101 * KIB);
    assert_true(n.largest_free_bytes == 20 * MIB);
    assert_true(n.headroom_bytes == TIDE_UNKNOWN_BYTES);
    assert_true(n.peak_requested_bytes == 1000 + 100 * KIB + 2 * MIB && n.peak_active_bytes == 101 * KIB + 2 * MIB);
    assert_true(n.peak_reserved_bytes == 22 * MIB);
    assert_true(n.n_allocs == 3 && n.n_frees == 2 && n.n_failed == 0 && n.n_system == 2 && n.n_hits == 1);
    tide_allocator_props p;
    tide_allocator_get_props(a, &p);
    assert_true(p.align_bytes == 512 && p.max_align_bytes == 2 * MIB);
    assert_true(p.stream_aware && p.keeps_freed && !p.page_locked && !p.needs_reset);
    give_on(a, &two, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void the_listener_receives_segments_and_frees(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    ears e;
    listen_with(a, &e);
    const tide_memory small = take_on(a, 1000, 0), large = take_on(a, 2 * MIB, 0);
    assert_true(e.n_taken == 2 && e.segment_ids[0] != e.segment_ids[1] && e.segment_ids[0] != 0);
    assert_true(e.segment_bytes == 20 * MIB);
    assert_ptr_equal(e.segment, large.data);
    give_on(a, &small, 0); // nothing to wait for: told at once
    assert_true(e.n_completed == 1 && e.last.requested_bytes == 1000 && e.last.reserved_bytes == 1024);
    assert_true(e.last.block_id == small.block_id);
    assert_ptr_equal(e.last.data, small.data);
    tide_allocator_trim(a);
    assert_true(e.n_given == 1 && e.segment_bytes == 2 * MIB);
    give_on(a, &large, 0);
    finish(a);
    assert_true(e.n_completed == 2 && e.n_given == 2);
}

// ---- devices ----

static void two_devices_LT_25(void **state) {
    (void)state;
    fake_setup(2);
    tide_allocator *a[2] = {make_on(fake_at(0)), make_on(fake_at(1))};
    tide_stream_id s[2] = {stream_on(fake_at(0)), stream_on(fake_at(1))};
    static const size_t sizes[] = {100, 3 * MIB, 30 * MIB};
    static const uint64_t sum = 2 * MIB + 20 * MIB + 30 * MIB;
    for (int d = 0; d < 2; d++) {
        tide_memory mem[3];
        for (int i = 0; i < 3; i++) mem[i] = take_on(a[d], sizes[i], s[d]);
        assert_true(fake.live_bytes[d] == sum); // on this device and on no other
        assert_true(fake.live_bytes[1 - d] == (d == 0 ? 0 : sum));
        assert_true(tide_device_equal(tide_allocator_device(a[d]), fake_at(d)));
        for (int i = 0; i < 3; i++) give_on(a[d], &mem[i], s[d]);
        assert_true(stats_of(a[d]).cached_bytes == sum);
    }
    for (int d = 0; d < 2; d++) {
        tide_allocator_trim(a[d]);
        const tide_allocator_stats n = stats_of(a[d]);
        assert_true(n.cached_bytes == 0 && n.reserved_bytes == 0 && fake.live_bytes[d] == 0);
        assert_true(n.peak_reserved_bytes == sum);
        assert_sound(a[d]);
        const tide_memory mem = take_on(a[d], 1000, s[d]); // and left cached: the end gives it back
        give_on(a[d], &mem, s[d]);
    }
    for (int d = 0; d < 2; d++) {
        tide_allocator_unref(a[d]);
        tide_stream_destroy(fake_at(d), s[d]);
    }
    fake_teardown(); // nothing left on either
}

static void trim_waits_for_streams_and_leaves_what_is_out(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory out = take_on(a, 1000, s), idle = take_on(a, 3 * MIB, s), pending = take_on(a, 30 * MIB, s);
    touch(&idle, s);
    use(a, &pending, t);
    give_on(a, &idle, s);
    give_on(a, &pending, s);
    tide_allocator_trim(a); // faults on the fake, if it did not wait
    assert_true(fake_waiting(s) == 0 && fake_waiting(t) == 0);
    const tide_allocator_stats n = stats_of(a);
    assert_true(n.reserved_bytes == 2 * MIB && n.active_bytes == 1024 && n.n_pending == 0);
    assert_sound(a);
    give_on(a, &out, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN
#endif
#endif

#ifdef HAS_ASAN
int __asan_address_is_poisoned(const volatile void *addr);

static void idle_host_memory_is_off_limits(void **state) {
    (void)state;
    tide_allocator *a = make_on(TIDE_CPU);
    const tide_stream_id s = stream_on(TIDE_CPU);
    const tide_memory host = take_on(a, 1000, 0), own = take_on(a, 1000, s);
    memset(host.data, 1, 1000);
    assert_true(__asan_address_is_poisoned(at_offset(&host, 1000))); // rounding
    assert_true(__asan_address_is_poisoned(at_offset(&host, 1024))); // the rest of the segment
    give_on(a, &host, 0);
    assert_true(__asan_address_is_poisoned(host.data));
    // Work of s may still be on its way to this one; when s is gone it is not.
    give_on(a, &own, s);
    assert_false(__asan_address_is_poisoned(own.data));
    tide_stream_destroy(TIDE_CPU, s);
    assert_true(__asan_address_is_poisoned(own.data));
    const tide_memory again = take_on(a, 2000, 0);
    memset(again.data, 1, 2000);
    give_on(a, &again, 0);
    tide_allocator_unref(a); // with all of it usable again: the system's free looks
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(rule_10_the_numbers),
        tide_unit_test(the_listener_receives_segments_and_frees),
        tide_unit_test(two_devices_LT_25),
        tide_unit_test(trim_waits_for_streams_and_leaves_what_is_out),
#ifdef HAS_ASAN
        tide_unit_test(idle_host_memory_is_off_limits),
#endif
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests_name("allocator stream_caching, memory", tests, NULL, NULL);
}
