// SPDX-License-Identifier: MIT
//
// The fake device keeps what its header promises to other tests: held streams, planted failures, a cap on its memory,
// and faults that are seen.
#include "tests/device/device_test.h"
#include "tests/device/fake_device.h"

static void *take(int32_t index, size_t size_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    void *ptr = NULL;
    assert_tide_ok(tide_device_mem_alloc(fake_at(index), size_bytes, 256, &ptr, &err), &err);
    assert_int_equal((uintptr_t)ptr % 256, 0);
    return ptr;
}

static void give(int32_t index, void *ptr) { tide_device_mem_free(fake_at(index), ptr); }

static void held_work_is_done_step_by_step(void **state) {
    (void)state;
    fake_setup(1);
    const tide_device d = fake_at(0);
    const tide_stream_id a = new_stream(d), b = new_stream(d);
    const tide_event_id e = new_event(d);
    char *ptr = take(0, 4);
    put_fill(d, a, ptr, 'a', 4); // not held yet: done at once
    assert_true(fake_holds(0, ptr, "aaaa", 4));
    record(d, e, a);
    assert_true(is_done(d, e));

    fake_hold(true);
    put_fill(d, a, ptr, 'b', 4);
    record(d, e, a);
    wait_for(d, b, e);
    put_fill(d, b, ptr, 'c', 2);
    assert_int_equal(fake_waiting(a), 2);
    assert_int_equal(fake_waiting(b), 2);
    assert_false(fake_step(b)); // it waits for a
    assert_true(fake_step(a));
    assert_true(fake_holds(0, ptr, "bbbb", 4));
    assert_false(is_done(d, e)); // the record is a step of its own
    assert_true(fake_step(a));
    assert_true(is_done(d, e));
    assert_false(fake_step(a));
    assert_true(fake_step(b) && fake_step(b));
    assert_true(fake_holds(0, ptr, "ccbb", 4));

    put_fill(d, a, ptr, 'd', 4);
    record(d, e, a);
    wait_for(d, b, e);
    put_fill(d, b, ptr, 'e', 1);
    fake_finish(b); // and so what it waits for
    assert_true(fake_holds(0, ptr, "eddd", 4));
    put_fill(d, 0, ptr, 'f', 4); // the default stream is held too
    assert_true(fake_holds(0, ptr, "eddd", 4));
    finish(d, 0);
    assert_true(fake_holds(0, ptr, "ffff", 4));
    put_fill(d, 0, ptr, 'g', 4);
    put_fill(d, a, ptr + 1, 'h', 1);
    fake_finish_all();
    assert_true(fake_holds(0, ptr, "ghgg", 4));
    put_fill(d, a, ptr, 'i', 4);
    fake_hold(false); // lets all go
    assert_true(fake_holds(0, ptr, "iiii", 4));
    give(0, ptr);
    tide_event_destroy(d, e);
    tide_stream_destroy(d, a);
    tide_stream_destroy(d, b);
    fake_teardown();
}

static void failures_come_where_they_were_planted(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup_with(1, true);
    const tide_device d = fake_at(0);
    void *ptr = NULL, *self;
    fake_fail(FAKE_MEM_ALLOC, 2, 1);
    void *a = take(0, 1), *b = take(0, 1);
    assert_tide_status(tide_device_mem_alloc(d, 1, 1, &ptr, &err), TIDE_ERR_NOMEM);
    assert_null(ptr);
    void *c = take(0, 1);
    assert_int_equal(fake_calls(FAKE_MEM_ALLOC), 4);
    give(0, a);
    give(0, b);
    give(0, c);
    const tide_event_id e = new_event(d);
    fake_fail(FAKE_EVENT_RECORD, 0, -1);
    for (int i = 0; i < 3; i++) assert_tide_status(tide_event_record(d, e, 0, &err), TIDE_ERR_BACKEND);
    assert_text_has(err.msg, "EVENT_RECORD");
    fake_fail(FAKE_EVENT_RECORD, 0, 0);
    record(d, e, 0);
    tide_event_destroy(d, e);

    const tide_device_ops *ops = tide_device_find(d, &self);
    assert_tide_ok(ops->pinned_alloc(self, 0, 10, 4096, &ptr, &err), &err);
    memset(ptr, 1, 10); // host memory
    ops->pinned_free(self, 0, ptr);
    fake_fail(FAKE_PINNED_ALLOC, 0, 1);
    assert_tide_status(ops->pinned_alloc(self, 0, 10, 1, &ptr, &err), TIDE_ERR_NOMEM);
    fake_teardown();
}

static void its_memory_has_an_end(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    void *ptr = NULL;
    fake_setup(2);
    fake_limit(1000);
    void *a = take(0, 600), *b = take(1, 1000);
    assert_tide_status(tide_device_mem_alloc(fake_at(0), 401, 1, &ptr, &err), TIDE_ERR_NOMEM);
    void *c = take(0, 400);
    assert_int_equal(fake.live_bytes[0], 1000);
    give(0, a);
    assert_int_equal(fake.live_bytes[0], 400);
    assert_int_equal(fake.peak_bytes[0], 1000);
    assert_int_equal(fake.n_live_blocks, 2);
    give(0, c);
    give(1, b);
    fake_teardown();
}

/// Each is a fault: work beyond a block, in a block of the other device, and in one that was given back meanwhile.
static void work_on_wrong_memory_is_a_fault(void **state) {
    (void)state;
    fake_setup(2);
    char *a = take(0, 16), *b = take(1, 16), host[16] = {0};
    put_fill(fake_at(0), 0, a + 8, 1, 8);
    put_copy(fake_at(0), 0, TIDE_COPY_DEVICE_TO_HOST, host, a, 16);
    assert_int_equal(host[15], 1);
    assert_int_equal(fake.n_faults, 0);
    put_fill(fake_at(0), 0, a + 8, 1, 9);
    assert_int_equal(fake.n_faults, 1);
    put_fill(fake_at(0), 0, b, 1, 1);
    assert_int_equal(fake.n_faults, 2);
    put_copy(fake_at(1), 0, TIDE_COPY_WITHIN_DEVICE, b, host, 1);
    assert_int_equal(fake.n_faults, 3);
    fake_hold(true);
    put_fill(fake_at(0), 0, a, 1, 1);
    give(0, a);
    assert_int_equal(fake.n_faults, 3);
    fake_finish(0);
    assert_int_equal(fake.n_faults, 4);
    give(0, a);
    assert_int_equal(fake.n_faults, 5);
    give(1, b);
    assert_text_has(fake.fault, "fake:0, 9 bytes");
    fake.n_faults = 0; // they were wanted
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(held_work_is_done_step_by_step),
        tide_unit_test(failures_come_where_they_were_planted),
        tide_unit_test(its_memory_has_an_end),
        tide_unit_test(work_on_wrong_memory_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
