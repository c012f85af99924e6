// SPDX-License-Identifier: MIT
//
// stream_caching while a stream is being destroyed whose last work still runs, on the CPU's real streams: what that
// work touches must neither serve again nor go back to the system before it is done.
#include "tests/device/closing_test.h"

#include "memory_test.h"

enum { BYTES = 3000 };

static tide_allocator *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &a, &err), &err);
    return a;
}

static tide_memory take_on(tide_allocator *a, size_t size_bytes, tide_stream_id stream) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {.size_bytes = size_bytes, .stream = stream, .tag = "block"};
    tide_memory mem = {0};
    assert_tide_ok(tide_allocator_alloc(a, &req, &mem, &err), &err);
    assert_sound(a);
    return mem;
}

/// The stream was declared and nothing more: the allocator hears of it for the first time when it is going already.
static void a_use_declared_of_a_closing_stream_is_waited_for_LT_26(void **state) {
    (void)state;
    tide_allocator *a = make();
    closing c = CLOSING_INIT;
    const tide_stream_id s = new_stream(TIDE_CPU);
    const tide_memory mem = take_on(a, BYTES, s);
    open_stream(&c);
    put_fill(TIDE_CPU, c.stream, mem.data, 1, BYTES);
    tide_allocator_record_use(a, &mem, c.stream);
    close_stream(&c);
    tide_allocator_release(a, &mem, s);
    assert_true(stats_of(a).n_pending == 1);
    const tide_memory other = take_on(a, BYTES, s);
    assert_ptr_not_equal(other.data, mem.data);
    gate_open(&c.door);
    end_closing(&c);
    assert_true(stats_of(a).n_pending == 0);
    tide_allocator_release(a, &other, s);
    assert_sound(a);
    tide_stream_destroy(TIDE_CPU, s);
    tide_allocator_unref(a);
}

static void trim_and_the_end_wait_for_a_closing_stream(void **state) {
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        tide_allocator *a = make();
        pthread_t opener;
        closing c = CLOSING_INIT;
        open_stream(&c);
        const tide_memory mem = take_on(a, BYTES, c.stream);
        put_fill(TIDE_CPU, c.stream, mem.data, 1, BYTES); // behind the gate; for the address sanitizer
        close_stream(&c);
        tide_allocator_release(a, &mem, c.stream);
        assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &c.door), 0);
        if (ends) {
            tide_allocator_unref(a);
        } else {
            tide_allocator_trim(a);
            assert_true(stats_of(a).reserved_bytes == 0);
        }
        assert_true(c.door.left);
        pthread_join(opener, NULL);
        end_closing(&c);
        if (!ends) tide_allocator_unref(a);
    }
}

/// Streams that were destroyed before the first allocation on them hold no memory back.
static void blocks_of_a_stream_long_gone_are_given_back(void **state) {
    (void)state;
    tide_allocator *a = make();
    const tide_stream_id gone = new_stream(TIDE_CPU), s = new_stream(TIDE_CPU);
    tide_stream_destroy(TIDE_CPU, gone);
    const tide_memory mem = take_on(a, BYTES, gone), used = take_on(a, BYTES, s);
    tide_allocator_record_use(a, &used, gone);
    tide_allocator_release(a, &mem, gone);
    tide_allocator_release(a, &used, s);
    assert_true(stats_of(a).n_pending == 0);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 0);
    tide_stream_destroy(TIDE_CPU, s);
    tide_allocator_unref(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_use_declared_of_a_closing_stream_is_waited_for_LT_26),
        tide_unit_test(trim_and_the_end_wait_for_a_closing_stream),
        tide_unit_test(blocks_of_a_stream_long_gone_are_given_back),
    };
    return cmocka_run_group_tests_name("allocator stream_caching closing", tests, NULL, NULL);
}
