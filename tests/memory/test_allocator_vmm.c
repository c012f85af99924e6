// SPDX-License-Identifier: MIT
//
// cuda_vmm: ranges that grow by what is missing, units that go back from any place, one event for each, and what that
// saves where buffers grow a little each time. What it shares with stream_caching is tested there and in the
// conformance suite.
#include "stream_caching_test.h"

enum { SMALL_UNIT = 2 << 20, LARGE_UNIT = 20 << 20 };

static tide_allocator *make_vmm(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    fake_setup_driver(1);
    assert_tide_ok(tide_stream_vmm_create(fake_at(0), NULL, &a, &err), &err);
    return a;
}

static tide_allocator *make_caching(void) {
    fake_setup_driver(1);
    return make_on(fake_at(0));
}

static void end(tide_allocator *a) {
    tide_allocator_unref(a);
    fake_teardown();
}

/// A key-value cache that grows by 2 MiB a step: the new one is taken, then the old one freed. @return reserved bytes
static uint64_t grow_step_by_step(tide_allocator *a) {
    tide_memory last = take_on(a, 12 * MIB, 0);
    for (size_t mib = 14; mib <= 60; mib += 2) {
        const tide_memory next = take_on(a, mib * MIB, 0);
        give_on(a, &last, 0);
        last = next;
    }
    give_on(a, &last, 0);
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.active_bytes == 0 && s.cached_bytes == s.reserved_bytes && s.peak_active_bytes == 118 * MIB);
    return s.reserved_bytes;
}

/// What it is for: stream_caching ends with a segment for every size that there was, here the range has had room for
/// two of the largest and a little more.
static void growing_buffers_need_no_segment_each(void **state) {
    (void)state;
    tide_allocator *a = make_caching();
    const uint64_t caching = grow_step_by_step(a);
    end(a);
    a = make_vmm();
    const uint64_t vmm = grow_step_by_step(a);
    end(a);
    printf("reserved: cuda_caching %llu MiB, cuda_vmm %llu MiB\n", (unsigned long long)(caching / MIB),
           (unsigned long long)(vmm / MIB));
    assert_true(caching == 900 * MIB);
    assert_true(vmm == 180 * MIB);
}

/// The tail grows by the units that the request lacks beside the idle chunk before it, and events tell each.
static void the_tail_grows_by_what_is_missing(void **state) {
    (void)state;
    tide_allocator *a = make_vmm();
    ears e;
    listen_with(a, &e);
    tide_memory mem = take_on(a, 30 * MIB, 0); // two units
    assert_int_equal(e.n_taken, 2);
    assert_int_equal(e.segment_bytes, LARGE_UNIT);
    assert_ptr_equal(e.segment, at_offset(&mem, LARGE_UNIT));
    assert_true(e.segment_ids[0] != e.segment_ids[1]);
    assert_true(stats_of(a).reserved_bytes == 2 * LARGE_UNIT && stats_of(a).cached_bytes == 10 * MIB);
    const tide_memory second = take_on(a, 25 * MIB, 0); // 10 idle, so one unit
    assert_int_equal(e.n_taken, 3);
    assert_ptr_equal(second.data, at_offset(&mem, 30 * MIB));
    assert_true(stats_of(a).reserved_bytes == 3 * LARGE_UNIT);
    give_on(a, &second, 0);
    give_on(a, &mem, 0);
    mem = take_on(a, 60 * MIB, 0); // all of it, nothing new
    assert_int_equal(e.n_taken, 3);
    assert_true(stats_of(a).n_hits == 1 && stats_of(a).n_system == 3);
    give_on(a, &mem, 0);
    assert_int_equal(e.n_given, 0);
    tide_allocator_trim(a);
    assert_int_equal(e.n_given, 3);
    assert_true(stats_of(a).reserved_bytes == 0);
    assert_int_equal(fake.n_ranges, 0);
    end(a);
}

/// Idle units go from the middle; what lies in units that a live block touches stays; the hole is filled again.
static void units_go_from_any_place(void **state) {
    (void)state;
    tide_allocator *a = make_vmm();
    ears e;
    const tide_memory first = take_on(a, 30 * MIB, 0), middle = take_on(a, 60 * MIB, 0), last = take_on(a, 10 * MIB, 0);
    assert_true(stats_of(a).reserved_bytes == 5 * LARGE_UNIT);
    touch(&first, 0);
    touch(&last, 0);
    give_on(a, &middle, 0);
    listen_with(a, &e);
    tide_allocator_trim(a);
    // middle is 30 … 90 MiB: the units 40 … 60 and 60 … 80 are whole.
    assert_int_equal(e.n_given, 2);
    assert_true(stats_of(a).reserved_bytes == 3 * LARGE_UNIT && stats_of(a).cached_bytes == 20 * MIB);
    assert_int_equal(fake.n_mappings, 3);
    assert_sound(a);
    touch(&first, 0);
    touch(&last, 0);
    const tide_memory again = take_on(a, 60 * MIB, 0); // 10 idle, 40 bare, 10 idle
    assert_ptr_equal(again.data, middle.data);
    assert_int_equal(e.n_taken, 2);
    assert_true(stats_of(a).reserved_bytes == 5 * LARGE_UNIT && stats_of(a).cached_bytes == 0);
    touch(&again, 0);
    give_on(a, &first, 0);
    give_on(a, &again, 0);
    give_on(a, &last, 0);
    end(a);
}

/// Under pressure idle units of one stream serve another, which stream_caching's whole segments would keep: each holds
/// a small live block.
static void idle_units_serve_others_when_memory_ends(void **state) {
    (void)state;
    tide_allocator *a = make_vmm();
    fake_limit(100 * MIB);
    const tide_stream_id s = new_stream();
    const tide_memory big = take_on(a, 60 * MIB, s), held = take_on(a, 5 * MIB, s);
    assert_true(stats_of(a).reserved_bytes == 4 * LARGE_UNIT);
    touch(&big, s);
    give_on(a, &big, s);
    const tide_memory other = take_on(a, 70 * MIB, 0); // 80 must go into it: 60 idle and 20 new
    assert_true(stats_of(a).reserved_bytes == 100 * MIB);
    touch(&other, 0);
    touch(&held, s);
    tide_error err = TIDE_ERROR_INIT;
    tide_memory none = {0};
    const tide_alloc_request req = {.size_bytes = 40 * MIB, .tag = "too much"};
    assert_tide_status(tide_allocator_alloc(a, &req, &none, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "cuda_vmm on fake:0: no memory for 'too much'");
    assert_sound(a);
    give_on(a, &other, 0);
    give_on(a, &held, s);
    end_stream(s);
    end(a);
}

/// A map that fails in the middle is undone, and the numbers are as before.
static void a_map_that_fails_is_undone(void **state) {
    (void)state;
    tide_allocator *a = make_vmm();
    const tide_memory first = take_on(a, 5 * MIB, 0);
    const tide_allocator_stats before = stats_of(a);
    for (int n = 0; n < 3; n++) {
        tide_memory mem = {0};
        const tide_alloc_request req = {.size_bytes = 70 * MIB, .tag = "unlucky"};
        fake_fail(FAKE_VM_MAP, n, -1);
        assert_tide_status(tide_allocator_alloc(a, &req, &mem, NULL), TIDE_ERR_NOMEM);
        fake_fail(FAKE_VM_MAP, 0, 0);
        const tide_allocator_stats after = stats_of(a);
        assert_true(after.reserved_bytes == before.reserved_bytes && after.cached_bytes == before.cached_bytes);
        assert_int_equal(fake.n_mappings, 1);
        assert_sound(a);
    }
    fake_fail(FAKE_VM_RESERVE, 0, -1); // small requests have no range yet
    const tide_alloc_request small = {.size_bytes = 100, .tag = "small"};
    tide_memory mem = {0};
    assert_tide_status(tide_allocator_alloc(a, &small, &mem, NULL), TIDE_ERR_NOMEM);
    fake_fail(FAKE_VM_RESERVE, 0, 0);
    mem = take_on(a, 100, 0);
    assert_true(stats_of(a).reserved_bytes == LARGE_UNIT + SMALL_UNIT);
    give_on(a, &mem, 0);
    give_on(a, &first, 0);
    end(a);
}

/// A device that is full: the range that was made for the request goes again, and the request fails. Once the allocator
/// took the new addresses for new memory, and tried without end.
static void a_full_device_ends_the_request(void **state) {
    (void)state;
    tide_allocator *a = make_vmm();
    fake_limit(1 * MIB);
    tide_memory mem = {0};
    const tide_alloc_request large = {.size_bytes = 5 * MIB, .tag = "large"}, small = {.size_bytes = 1, .tag = "small"};
    assert_tide_status(tide_allocator_alloc(a, &large, &mem, NULL), TIDE_ERR_NOMEM);
    assert_tide_status(tide_allocator_alloc(a, &small, &mem, NULL), TIDE_ERR_NOMEM);
    assert_true(stats_of(a).reserved_bytes == 0 && stats_of(a).n_failed == 2);
    assert_sound(a);
    end(a);
}

/// Units under a chunk that work of its stream may still touch do not go before the host has waited for it.
static void units_wait_for_their_stream(void **state) {
    (void)state;
    tide_allocator *a = make_vmm();
    const tide_stream_id s = new_stream();
    const tide_memory mem = take_on(a, 20 * MIB, s);
    fake_hold(true);
    touch(&mem, s);
    give_on(a, &mem, s);
    assert_int_equal(fake_waiting(s), 1);
    tide_allocator_trim(a); // waits; else the fill would meet what is not mapped: a fault
    assert_int_equal(fake_waiting(s), 0);
    assert_true(stats_of(a).reserved_bytes == 0);
    fake_hold(false);
    end_stream(s);
    end(a);
}

/// A stream that goes leaves its ranges to the next one: one-shot streams strand nothing.
static void ranges_outlive_streams(void **state) {
    (void)state;
    tide_allocator *a = make_vmm();
    for (int i = 0; i < 20; i++) {
        const tide_stream_id s = new_stream();
        const tide_memory mem = take_on(a, (size_t)(10 + i) * MIB, s);
        touch(&mem, s);
        give_on(a, &mem, s);
        end_stream(s);
        assert_sound(a);
        assert_int_equal(fake.n_ranges, 1);
    }
    assert_true(stats_of(a).reserved_bytes == 2 * LARGE_UNIT);
    end(a);
}

/// Captured work has ranges of its own, and they serve all when the pool is released.
static void pools_have_ranges_of_their_own(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_vmm();
    const tide_stream_id s = new_stream();
    uint64_t pool = 0;
    const tide_memory before = take_on(a, 5 * MIB, s);
    assert_tide_ok(tide_stream_caching_begin_pool(a, s, &pool, &err), &err);
    const tide_memory inside = take_on(a, 5 * MIB, s);
    assert_int_equal(fake.n_ranges, 2);
    give_on(a, &inside, s);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 2 * LARGE_UNIT); // the pool's stays
    assert_tide_ok(tide_stream_caching_end_pool(a, pool, &err), &err);
    assert_tide_ok(tide_stream_caching_release_pool(a, pool, &err), &err);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == LARGE_UNIT);
    assert_int_equal(fake.n_ranges, 1);
    give_on(a, &before, s);
    end_stream(s);
    end(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(growing_buffers_need_no_segment_each),
        tide_unit_test(the_tail_grows_by_what_is_missing),
        tide_unit_test(units_go_from_any_place),
        tide_unit_test(idle_units_serve_others_when_memory_ends),
        tide_unit_test(a_map_that_fails_is_undone),
        tide_unit_test(a_full_device_ends_the_request),
        tide_unit_test(units_wait_for_their_stream),
        tide_unit_test(ranges_outlive_streams),
        tide_unit_test(pools_have_ranges_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
