// SPDX-License-Identifier: MIT
//
// Capture on a device and on the fake: work is kept, then done as a whole, as often as it is launched; and what is
// forbidden meanwhile, as in CUDA.
#include "tests/device/device_test.h"
#include "tests/device/fake_device.h"

static void add_one(void *arg) {
    int *n = arg;
    ++*n;
}

static void begin(tide_device d, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_capture_begin(d, s, &err), &err);
}

static tide_capture_id end(tide_device d, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    tide_capture_id id = 0;
    assert_tide_ok(tide_capture_end(d, s, &id, &err), &err);
    assert_true(id != 0);
    return id;
}

static void launch(tide_device d, tide_capture_id c, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_capture_launch(d, c, s, &err), &err);
}

static void kept_work_is_done_at_each_launch(tide_device d) {
    const tide_stream_id s = new_stream(d), other = new_stream(d);
    int n = 0;
    begin(d, s);
    for (int i = 0; i < 100; i++) put_call(d, s, add_one, &n);
    int n_other = 0;
    put_call(d, other, add_one, &n_other); // other streams go on
    finish(d, other);
    assert_int_equal(n_other, 1);
    const tide_capture_id c = end(d, s);
    finish(d, s);
    assert_int_equal(n, 0);
    launch(d, c, s);
    launch(d, c, s);
    finish(d, s);
    assert_int_equal(n, 200);
    launch(d, c, other);
    finish(d, other);
    assert_int_equal(n, 300);
    launch(d, c, 0);
    finish(d, 0);
    assert_int_equal(n, 400);
    put_call(d, s, add_one, &n); // the stream is an ordinary one again
    finish(d, s);
    assert_int_equal(n, 401);
    tide_capture_destroy(d, c);
    tide_stream_destroy(d, s);
    tide_stream_destroy(d, other);
}

static void capture_and_replay_on_the_device(void **state) {
    (void)state;
    kept_work_is_done_at_each_launch(subject);
}

static void capture_and_replay_on_the_fake(void **state) {
    (void)state;
    fake_setup(1);
    kept_work_is_done_at_each_launch(fake_at(0));
    fake_teardown();
}

/// Bytes are read and written when the launch runs, not when the work was kept.
static void replay_works_on_what_is_there_then(void **state) {
    (void)state;
    const tide_stream_id s = new_stream(subject);
    char *a = take_shared(8), *b = take_shared(8), *c = take_shared(8);
    memcpy(a, "aaaaaaa", 8);
    begin(subject, s);
    put_copy(subject, s, TIDE_COPY_WITHIN_DEVICE, b, a, 8);
    put_fill(subject, s, a, 'x', 3);
    put_copy(subject, s, TIDE_COPY_WITHIN_DEVICE, c, a, 8);
    const tide_capture_id capture = end(subject, s);
    assert_string_equal(b, "");
    launch(subject, capture, s);
    finish(subject, s);
    assert_string_equal(b, "aaaaaaa");
    assert_string_equal(c, "xxxaaaa");
    memcpy(a, "bbbbbbb", 8);
    launch(subject, capture, s);
    finish(subject, s);
    assert_string_equal(b, "bbbbbbb");
    assert_string_equal(c, "xxxbbbb");
    give_shared(a);
    give_shared(b);
    give_shared(c);
    tide_capture_destroy(subject, capture);
    tide_stream_destroy(subject, s);
}

static void what_is_forbidden_meanwhile(tide_device d) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_stream_id s = new_stream(d), other = new_stream(d);
    const tide_event_id e = new_event(d);
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)s);
    bool done = false;
    tide_capture_id c = 77;
    record(d, e, other);
    begin(d, other);
    const tide_capture_id nothing = end(d, other); // of no work at all
    assert_tide_status(tide_capture_end(d, s, &c, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_capture_begin(d, 0, &err), TIDE_ERR_INVALID);
    begin(d, s);
    assert_tide_status(tide_event_query(d, e, &done, &err), TIDE_ERR_BUSY);
    assert_false(done);
    assert_tide_status(tide_event_record(d, e, s, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, number);
    assert_tide_status(tide_stream_sync(d, s, &err), TIDE_ERR_BUSY);
    assert_tide_status(tide_stream_wait_event(d, s, e, &err), TIDE_ERR_BUSY);
    assert_tide_status(tide_capture_begin(d, s, &err), TIDE_ERR_BUSY);
    assert_tide_status(tide_capture_launch(d, nothing, s, &err), TIDE_ERR_BUSY);
    record(d, e, other); // other streams may
    assert_tide_ok(tide_event_sync(d, e, &err), &err);
    launch(d, nothing, other);
    c = end(d, s);
    assert_true(is_done(d, e));
    assert_tide_status(tide_capture_launch(d, c + 1000, s, &err), TIDE_ERR_INVALID);
    launch(d, c, s);
    finish(d, s);
    tide_capture_destroy(d, nothing);
    tide_capture_destroy(d, nothing);
    assert_tide_status(tide_capture_launch(d, nothing, s, &err), TIDE_ERR_INVALID);
    tide_capture_destroy(d, c);
    tide_event_destroy(d, e);
    tide_stream_destroy(d, s);
    tide_stream_destroy(d, other);
}

static void captures_forbid_the_same_on_device_and_fake(void **state) {
    (void)state;
    what_is_forbidden_meanwhile(subject);
    fake_setup(2);
    what_is_forbidden_meanwhile(fake_at(1));
    fake_teardown();
}

static void a_capture_may_go_before_its_launch_has_run(void **state) {
    (void)state;
    gate door = GATE_INIT;
    int n = 0;
    const tide_stream_id s = new_stream(subject);
    begin(subject, s);
    for (int i = 0; i < 300; i++) put_call(subject, s, add_one, &n); // more than the queue's first size
    const tide_capture_id c = end(subject, s);
    put_call(subject, s, gate_pass, &door);
    launch(subject, c, s);
    tide_capture_destroy(subject, c);
    gate_open(&door);
    finish(subject, s);
    assert_int_equal(n, 300);
    tide_stream_destroy(subject, s);
}

/// The kept work is dropped with the stream, and events can be asked again.
static void a_stream_may_go_while_it_is_captured(void **state) {
    (void)state;
    int n = 0;
    const tide_stream_id s = new_stream(subject);
    const tide_event_id e = new_event(subject);
    begin(subject, s);
    put_call(subject, s, add_one, &n);
    tide_stream_destroy(subject, s);
    assert_int_equal(n, 0);
    assert_true(is_done(subject, e));
    tide_event_destroy(subject, e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(capture_and_replay_on_the_device),
        tide_unit_test(capture_and_replay_on_the_fake),
        tide_unit_test(replay_works_on_what_is_there_then),
        tide_unit_test(captures_forbid_the_same_on_device_and_fake),
        tide_unit_test(a_capture_may_go_before_its_launch_has_run),
        tide_unit_test(a_stream_may_go_while_it_is_captured),
    };
    return run_subject_tests(tests);
}
