// SPDX-License-Identifier: MIT
//
// Copies between devices: every pair, sizes around the staging buffer, in the order of the stream, and every way to
// fail.
#include "core/base/text.h"
#include "tests/device/device_test.h"
#include "tests/device/fake_device.h"

enum { STAGING = 1 << 20, MOST = 3 * STAGING + 5 };

static void *take(tide_device d, size_t size_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    void *ptr = NULL;
    assert_tide_ok(tide_device_mem_alloc(d, size_bytes, 64, &ptr, &err), &err);
    return ptr;
}

static void transfer(tide_device to, void *dst, tide_device from, const void *src, size_t n, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_transfer(to, dst, from, src, n, s, &err), &err);
}

/// LT-25: two devices, each with memory of its own. PT-25: they work after registering one table.
static void bytes_survive_the_round(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4097, STAGING - 1, STAGING, STAGING + 1, 2 * STAGING, MOST};
    fake_setup(2);
    const bool fakes = subject_is_cpu();
    const tide_device second = {subject.type, 1};
    // With one device of its kind both ends of a copy are that one.
    const bool has_second = tide_device_require(second, NULL) == TIDE_OK;
    const tide_device d0 = fakes ? fake_at(0) : subject, d1 = fakes ? fake_at(1) : has_second ? second : subject;
    char *out = take(TIDE_CPU, MOST), *in = take(TIDE_CPU, MOST);
    void *a = take(d0, MOST), *b = take(d1, MOST), *c = take(d1, MOST);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t n = sizes[i];
        tide_rng rng = {.state = n};
        for (size_t k = 0; k < n; k++) out[k] = (char)tide_rng_u64(&rng);
        memset(in, 0, MOST);
        transfer(d0, a, TIDE_CPU, out, n, 0);
        transfer(d1, b, d0, a, n, 0);
        transfer(d1, c, d1, b, n, 0);
        transfer(TIDE_CPU, in, d1, c, n, 0);
        assert_memory_equal(in, out, n);
        for (size_t k = n; k < MOST; k++) assert_int_equal(in[k], 0);
    }
    memset(in, 0, MOST);
    transfer(TIDE_CPU, in, TIDE_CPU, out, MOST, 0);
    assert_memory_equal(in, out, MOST);
    tide_device_mem_free(d0, a);
    tide_device_mem_free(d1, b);
    tide_device_mem_free(d1, c);
    tide_device_mem_free(TIDE_CPU, out);
    tide_device_mem_free(TIDE_CPU, in);
    fake_teardown();
}

/// Work that waits in the stream comes before the copy, and the copy is there when the call returns.
static void a_transfer_takes_its_place_in_the_stream(void **state) {
    (void)state;
    fake_setup(2);
    const tide_stream_id s = new_stream(fake_at(0));
    void *a = take(fake_at(0), 32), *b = take(fake_at(1), 32);
    char bytes[32] = {0}, nines[32];
    memset(nines, 9, sizeof nines);
    fake_hold(true);
    put_fill(fake_at(0), s, a, 7, sizeof bytes);
    transfer(TIDE_CPU, bytes, fake_at(0), a, sizeof bytes, s);
    for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], 7);
    put_fill(fake_at(0), s, a, 9, sizeof bytes);
    transfer(fake_at(1), b, fake_at(0), a, sizeof bytes, s); // a stream of the device it comes from
    assert_true(fake_holds(1, b, nines, sizeof nines));
    tide_stream_destroy(fake_at(0), s);
    tide_device_mem_free(fake_at(0), a);
    tide_device_mem_free(fake_at(1), b);
    fake_teardown();
}

static void on_a_stream_of_the_cpu_too(void **state) {
    (void)state;
    gate door = GATE_INIT;
    pthread_t opener;
    const tide_stream_id s = new_stream(TIDE_CPU);
    char a[16] = {0}, b[16] = {0};
    put_call(TIDE_CPU, s, gate_pass, &door);
    put_fill(TIDE_CPU, s, a, 4, sizeof a);
    assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &door), 0);
    transfer(TIDE_CPU, b, TIDE_CPU, a, sizeof a, s);
    for (size_t i = 0; i < sizeof b; i++) assert_int_equal(b[i], 4);
    pthread_join(opener, NULL);
    tide_stream_destroy(TIDE_CPU, s);
}

static void every_way_to_fail(void **state) {
    (void)state;
    only_on_the_cpu(); // here there is no backend of CUDA
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device d0 = fake_at(0), d1 = fake_at(1), none = {TIDE_DEVICE_CUDA, 0};
    const size_t n = STAGING + 1; // two pieces
    char *host = take(TIDE_CPU, n);
    memset(host, 1, n);
    void *a = take(d0, n), *b = take(d1, n);
    transfer(d0, a, TIDE_CPU, host, n, 0);
    assert_tide_status(tide_device_transfer(d1, b, d0, a, n, 12345678, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "12345678");
    assert_tide_status(tide_device_transfer(none, b, d0, a, n, 0, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_tide_status(tide_device_transfer(d0, a, none, b, n, 0, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_tide_status(tide_device_transfer((tide_device){TIDE_DEVICE_CPU, 3}, host, d0, a, n, 0, &err),
                       TIDE_ERR_INVALID);
    assert_tide_status(tide_device_transfer(d0, a, (tide_device){TIDE_DEVICE_CPU, 3}, host, n, 0, &err),
                       TIDE_ERR_INVALID);
    tide_host_fail_after(0);
    assert_tide_status(tide_device_transfer(d1, b, d0, a, n, 0, &err), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    for (int64_t at = 0; at < 4; at++) { // out 0, in 0, out 1, in 1
        fake_fail(FAKE_COPY, at, 1);
        assert_tide_status(tide_device_transfer(d1, b, d0, a, n, 0, &err), TIDE_ERR_BACKEND);
    }
    for (int64_t at = 0; at < 5; at++) {
        fake_fail(FAKE_STREAM_SYNC, at, 1);
        assert_tide_status(tide_device_transfer(d1, b, d0, a, n, 0, &err), TIDE_ERR_BACKEND);
    }
    transfer(d1, b, d0, a, n, 0);
    assert_true(fake_holds(1, b, host, n));
    tide_device_mem_free(d0, a);
    tide_device_mem_free(d1, b);
    tide_device_mem_free(TIDE_CPU, host);
    fake_teardown();
}

/// A captured stream cannot be waited for, so nothing is put on it either: not even into the capture.
static void a_captured_stream_is_refused_before_it_is_touched(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const tide_stream_id s = new_stream(TIDE_CPU);
    tide_capture_id c;
    char a[4] = "abc", b[4] = "";
    assert_tide_ok(tide_capture_begin(TIDE_CPU, s, &err), &err);
    assert_tide_status(tide_device_transfer(TIDE_CPU, b, TIDE_CPU, a, sizeof a, s, &err), TIDE_ERR_BUSY);
    assert_tide_ok(tide_capture_end(TIDE_CPU, s, &c, &err), &err);
    assert_tide_ok(tide_capture_launch(TIDE_CPU, c, s, &err), &err);
    finish(TIDE_CPU, s);
    assert_string_equal(b, "");
    tide_capture_destroy(TIDE_CPU, c);
    tide_stream_destroy(TIDE_CPU, s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(bytes_survive_the_round),
        tide_unit_test(a_transfer_takes_its_place_in_the_stream),
        tide_unit_test(on_a_stream_of_the_cpu_too),
        tide_unit_test(every_way_to_fail),
        tide_unit_test(a_captured_stream_is_refused_before_it_is_touched),
    };
    return run_subject_tests(tests);
}
