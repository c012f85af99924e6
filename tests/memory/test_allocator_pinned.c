// SPDX-License-Identifier: MIT
//
// pinned: page-locked where the device has such memory, aligned host memory otherwise (LT_27), and the frees of both
// wait for the streams that copy.
#include "stream_caching_test.h"

static tide_allocator *make_pinned(tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_pinned_create(device, &a, &err), &err);
    return a;
}

static bool is_page_locked(const tide_allocator *a) {
    tide_allocator_props p;
    tide_allocator_get_props(a, &p);
    assert_true(p.stream_aware && p.keeps_freed && p.align_bytes == 512);
    return p.page_locked;
}

/// Host memory of the CPU, for any device that it is pinned for (LT_18).
static void assert_is_host_memory(tide_allocator *a) {
    assert_string_equal(tide_allocator_name(a), "pinned");
    assert_true(tide_device_equal(tide_allocator_device(a), TIDE_CPU));
    const tide_alloc_request req = {.size_bytes = 5000, .align_bytes = 4096, .kind = TIDE_KIND_HOST_PINNED};
    tide_memory mem = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_allocator_alloc(a, &req, &mem, &err), &err);
    assert_true((uintptr_t)mem.data % 4096 == 0);
    memset(mem.data, 7, 5000);
    give_on(a, &mem, 0);
}

static void page_locked_where_the_device_has_it_LT_27(void **state) {
    (void)state;
    fake_setup_with(2, true);
    tide_allocator *a = make_pinned(fake_at(1));
    assert_true(is_page_locked(a));
    assert_is_host_memory(a);
    assert_true(fake_calls(FAKE_PINNED_ALLOC) == 1 && fake_calls(FAKE_MEM_ALLOC) == 0);
    tide_allocator_trim(a);
    assert_true(fake_calls(FAKE_PINNED_FREE) == 1 && stats_of(a).reserved_bytes == 0);
    tide_allocator_unref(a);
    fake_teardown();
}

static void aligned_host_memory_where_it_has_none_LT_27(void **state) {
    (void)state;
    fake_setup_with(1, false);
    const tide_device devices[] = {fake_at(0), TIDE_CPU, {TIDE_DEVICE_CUDA, 0}}; // CUDA is not in this build
    for (size_t i = 0; i < 3; i++) {
        tide_allocator *a = make_pinned(devices[i]);
        assert_false(is_page_locked(a));
        assert_is_host_memory(a);
        tide_allocator_trim(a);
        assert_true(stats_of(a).reserved_bytes == 0);
        tide_allocator_unref(a);
    }
    fake_teardown();
}

static void a_device_that_is_not_there_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    fake_setup_with(1, true);
    assert_tide_status(tide_pinned_create((tide_device){fake.type, 3}, &a, &err), TIDE_ERR_INVALID);
    const tide_device gone = fake_at(0);
    fake_teardown();
    assert_tide_status(tide_pinned_create(gone, &a, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_null(a);
}

/// A copy to the device reads the buffer when its turn comes, long after the host has released it.
static void a_buffer_waits_for_its_copy_LT_26(void **state) {
    (void)state;
    for (int locked = 0; locked < 2; locked++) {
        tide_error err = TIDE_ERROR_INIT;
        fake_setup_with(1, locked == 1);
        const tide_device device = fake_at(0);
        tide_allocator *a = make_pinned(device);
        const tide_stream_id s = stream_on(device);
        void *target = NULL;
        assert_tide_ok(tide_device_mem_alloc(device, 64, 64, &target, &err), &err);
        fake_hold(true);
        const tide_memory buffer = take_on(a, 64, 0);
        memset(buffer.data, 5, 64);
        assert_tide_ok(tide_device_copy(device, s, TIDE_COPY_HOST_TO_DEVICE, target, buffer.data, 64, &err), &err);
        give_on(a, &buffer, s);
        const tide_memory next = take_on(a, 64, 0);
        assert_ptr_not_equal(next.data, buffer.data);
        memset(next.data, 9, 64);
        fake_finish(s);
        unsigned char fives[64];
        memset(fives, 5, sizeof fives);
        assert_true(fake_holds(0, target, fives, sizeof fives));
        const tide_memory again = take_on(a, 64, 0);
        assert_ptr_equal(again.data, buffer.data);
        give_on(a, &next, 0);
        give_on(a, &again, 0);
        tide_device_mem_free(device, target);
        tide_stream_destroy(device, s);
        tide_allocator_unref(a);
        fake_teardown();
    }
}

static void no_page_locked_memory_left(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup_with(1, true);
    tide_allocator *a = make_pinned(fake_at(0));
    fake_fail(FAKE_PINNED_ALLOC, 0, -1);
    const tide_alloc_request req = {.size_bytes = 3 * MIB, .tag = "staging"};
    tide_memory mem = {0};
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "pinned on fake:0: no memory for 'staging': asked 3.00 MiB");
    assert_true(fake_calls(FAKE_PINNED_ALLOC) == 2);
    assert_sound(a);
    tide_allocator_unref(a);
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(page_locked_where_the_device_has_it_LT_27),
        tide_unit_test(aligned_host_memory_where_it_has_none_LT_27),
        tide_unit_test(a_device_that_is_not_there_is_refused),
        tide_unit_test(a_buffer_waits_for_its_copy_LT_26),
        tide_unit_test(no_page_locked_memory_left),
    };
    return cmocka_run_group_tests_name("allocator pinned", tests, NULL, NULL);
}
