// SPDX-License-Identifier: MIT
//
// A stream of a device between the call that destroys it and the end of its last work: it takes no more work, and yet
// that work can be waited for, by host and by event. Allocators rely on it (device_ops.h).
#include "tests/device/closing_test.h"

static void a_closing_stream_can_be_waited_for_by_event(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    closing c = CLOSING_INIT;
    const tide_stream_id other = new_stream(subject);
    const tide_event_id e = new_event(subject), behind = new_event(subject);
    begin_closing(&c);
    record(subject, e, c.stream);
    assert_false(is_done(subject, e));
    wait_for(subject, other, e);
    record(subject, behind, other);
    pause_briefly();
    assert_false(is_done(subject, e));
    assert_false(is_done(subject, behind));
    // What would be more work is refused, waiting included.
    assert_tide_status(tide_stream_wait_event(subject, c.stream, behind, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_capture_begin(subject, c.stream, &err), TIDE_ERR_INVALID);
    gate_open(&c.door);
    assert_tide_ok(tide_event_sync(subject, e, &err), &err);
    assert_true(c.door.left);
    finish(subject, other);
    end_closing(&c);
    assert_true(is_done(subject, e));
    assert_tide_status(tide_event_record(subject, e, c.stream, &err), TIDE_ERR_INVALID); // now it is gone
    tide_event_destroy(subject, e);
    tide_event_destroy(subject, behind);
    tide_stream_destroy(subject, other);
}

static void the_host_can_wait_for_a_closing_stream(void **state) {
    (void)state;
    pthread_t opener;
    closing c = CLOSING_INIT;
    begin_closing(&c);
    assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &c.door), 0);
    finish(subject, c.stream);
    assert_true(c.door.left);
    pthread_join(opener, NULL);
    end_closing(&c);
}

/// After each of the two destroy calls returns, the work is done; listeners are called then.
static void destroying_it_twice_waits_twice(void **state) {
    (void)state;
    pthread_t opener;
    closing c = CLOSING_INIT;
    begin_closing(&c);
    assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &c.door), 0);
    tide_stream_destroy(subject, c.stream);
    assert_true(c.door.left);
    pthread_join(opener, NULL);
    end_closing(&c);
}

static void do_nothing(void *arg) { (void)arg; }

/// A capture ends with its stream; what had been put on it before is waited for all the same.
static void a_captured_stream_closes_without_its_capture(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    closing c = CLOSING_INIT;
    const tide_event_id e = new_event(subject);
    open_stream(&c);
    assert_tide_ok(tide_capture_begin(subject, c.stream, &err), &err);
    put_call(subject, c.stream, do_nothing, NULL);
    assert_tide_status(tide_event_record(subject, e, c.stream, &err), TIDE_ERR_BUSY);
    close_stream(&c);
    record(subject, e, c.stream);
    assert_false(is_done(subject, e)); // and nothing is captured any more, or asking were an error
    gate_open(&c.door);
    end_closing(&c);
    // It was recorded behind the work that destroying waits for.
    assert_tide_ok(tide_event_sync(subject, e, &err), &err);
    assert_true(is_done(subject, e));
    tide_event_destroy(subject, e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_closing_stream_can_be_waited_for_by_event),
        tide_unit_test(the_host_can_wait_for_a_closing_stream),
        tide_unit_test(destroying_it_twice_waits_twice),
        tide_unit_test(a_captured_stream_closes_without_its_capture),
    };
    return run_subject_tests(tests);
}
