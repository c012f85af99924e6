// SPDX-License-Identifier: MIT
//
// The CPU's table: its memory, what bad arguments get, and that it costs nothing until a stream is made.
#include <dirent.h>

#include "tests/device/device_test.h"

static size_t n_threads(void) {
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    size_t n = 0;
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    return n;
}

static void set_flag(void *arg) { *(bool *)arg = true; }

/// The first test of the program: nothing was made before it.
static void the_cpu_costs_nothing_until_a_stream_is_made(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    const size_t threads_before = n_threads();
    void *ptr = NULL;
    char source[100] = "text";
    bool called = false;
    assert_tide_ok(tide_device_mem_alloc(TIDE_CPU, 100, 64, &ptr, &err), &err);
    put_fill(TIDE_CPU, 0, ptr, 1, 100);
    put_copy(TIDE_CPU, 0, TIDE_COPY_HOST_TO_DEVICE, ptr, source, 100);
    assert_string_equal(ptr, "text"); // done when the call returns
    put_call(TIDE_CPU, 0, set_flag, &called);
    assert_true(called);
    finish(TIDE_CPU, 0);
    tide_device_mem_free(TIDE_CPU, ptr);
    tide_host_get_stats(&after);
    assert_int_equal(after.n_allocs, before.n_allocs);
    assert_int_equal(n_threads(), threads_before);
}

/// PT-1: physical memory, below every allocator.
static void memory_is_aligned_as_asked(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (size_t align = 1; align <= 4096; align *= 2) {
        static const size_t sizes[] = {1, 63, 64, 4097, 1 << 20};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            void *ptr = NULL;
            assert_tide_ok(tide_device_mem_alloc(TIDE_CPU, sizes[i], align, &ptr, &err), &err);
            assert_int_equal((uintptr_t)ptr % align, 0);
            memset(ptr, 0x5a, sizes[i]);
            tide_device_mem_free(TIDE_CPU, ptr);
        }
    }
    tide_device_mem_free(TIDE_CPU, NULL);
}

static void impossible_memory_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    void *ptr = &err;
    assert_tide_status(tide_device_mem_alloc(TIDE_CPU, 0, 64, &ptr, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_device_mem_alloc(TIDE_CPU, 64, 0, &ptr, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_device_mem_alloc(TIDE_CPU, 64, 48, &ptr, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "48");
    assert_tide_status(tide_device_mem_alloc(TIDE_CPU, SIZE_MAX, 64, &ptr, &err), TIDE_ERR_NOMEM);
    assert_tide_status(tide_device_mem_alloc(TIDE_CPU, (size_t)PTRDIFF_MAX + 1, 1, &ptr, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "9223372036854775808");
    assert_ptr_equal(ptr, &err);
}

static void bad_work_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char a[4] = "abc", b[4] = "";
    const tide_stream_id streams[] = {0, new_stream(TIDE_CPU)};
    for (size_t i = 0; i < 2; i++) {
        const tide_stream_id s = streams[i];
        assert_tide_status(tide_device_copy(TIDE_CPU, s, (tide_copy_direction)3, b, a, 4, &err), TIDE_ERR_INVALID);
        assert_tide_status(tide_device_copy(TIDE_CPU, s, TIDE_COPY_WITHIN_DEVICE, NULL, a, 4, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, "destination");
        assert_tide_status(tide_device_copy(TIDE_CPU, s, TIDE_COPY_WITHIN_DEVICE, b, NULL, 4, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, "source");
        assert_tide_status(tide_device_fill(TIDE_CPU, s, NULL, 0, 4, &err), TIDE_ERR_INVALID);
        assert_tide_status(tide_device_call(TIDE_CPU, s, NULL, a, &err), TIDE_ERR_INVALID);
        put_copy(TIDE_CPU, s, TIDE_COPY_WITHIN_DEVICE, NULL, NULL, 0); // nothing to do is no fault
        put_fill(TIDE_CPU, s, NULL, 1, 0);
        finish(TIDE_CPU, s);
        assert_string_equal(b, "");
        put_copy(TIDE_CPU, s, TIDE_COPY_WITHIN_DEVICE, a + 1, a, 2); // may overlap
        finish(TIDE_CPU, s);
        assert_memory_equal(a, i == 0 ? "aab" : "aaa", 4);
    }
    tide_stream_destroy(TIDE_CPU, streams[1]);
}

/// Every call with an unknown id: the number is in the message, no memory is written, no call crashes.
static void unknown_ids_are_refused(void **state) {
    (void)state;
    const tide_stream_id live = new_stream(TIDE_CPU);
    const tide_event_id event = new_event(TIDE_CPU);
    const tide_stream_id gone = new_stream(TIDE_CPU);
    tide_stream_destroy(TIDE_CPU, gone);
    const uint64_t bad[] = {gone, event, 999999999, UINT64_MAX}; // an event is no stream
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        char number[24], byte = 7;
        const char seven = 7;
        bool done = true;
        uint64_t id = 5;
        snprintf(number, sizeof number, "stream %llu", (unsigned long long)bad[i]);
#define REFUSED(expr)                                                                                                  \
    do {                                                                                                               \
        assert_tide_status(expr, TIDE_ERR_INVALID);                                                                    \
        assert_text_has(err.msg, number);                                                                              \
    } while (0)
        REFUSED(tide_device_copy(TIDE_CPU, bad[i], TIDE_COPY_WITHIN_DEVICE, &byte, &seven, 1, &err));
        REFUSED(tide_device_copy(TIDE_CPU, bad[i], TIDE_COPY_WITHIN_DEVICE, NULL, NULL, 0, &err));
        REFUSED(tide_device_fill(TIDE_CPU, bad[i], &byte, 1, 1, &err));
        REFUSED(tide_device_call(TIDE_CPU, bad[i], set_flag, &done, &err));
        REFUSED(tide_stream_sync(TIDE_CPU, bad[i], &err));
        REFUSED(tide_stream_wait_event(TIDE_CPU, bad[i], event, &err));
        REFUSED(tide_event_record(TIDE_CPU, event, bad[i], &err));
        REFUSED(tide_capture_begin(TIDE_CPU, bad[i], &err));
        REFUSED(tide_capture_end(TIDE_CPU, bad[i], &id, &err));
        tide_stream_destroy(TIDE_CPU, bad[i]);
        snprintf(number, sizeof number, "event %llu", (unsigned long long)(bad[i] == event ? live : bad[i]));
        const tide_event_id no_event = bad[i] == event ? live : bad[i];
        REFUSED(tide_event_record(TIDE_CPU, no_event, live, &err));
        REFUSED(tide_event_query(TIDE_CPU, no_event, &done, &err));
        REFUSED(tide_event_sync(TIDE_CPU, no_event, &err));
        REFUSED(tide_stream_wait_event(TIDE_CPU, live, no_event, &err));
        REFUSED(tide_stream_wait_event(TIDE_CPU, 0, no_event, &err));
        tide_event_destroy(TIDE_CPU, no_event);
        snprintf(number, sizeof number, "capture %llu", (unsigned long long)bad[i]);
        REFUSED(tide_capture_launch(TIDE_CPU, bad[i], live, &err));
        tide_capture_destroy(TIDE_CPU, bad[i]);
#undef REFUSED
        assert_true(done && byte == 7 && id == 5);
    }
    assert_true(is_done(TIDE_CPU, event)); // valid ids still work
    finish(TIDE_CPU, live);
    tide_event_destroy(TIDE_CPU, 0);
    tide_event_destroy(TIDE_CPU, event);
    tide_stream_destroy(TIDE_CPU, live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_cpu_costs_nothing_until_a_stream_is_made),
        tide_unit_test(memory_is_aligned_as_asked),
        tide_unit_test(impossible_memory_is_refused),
        tide_unit_test(bad_work_is_refused),
        tide_unit_test(unknown_ids_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
