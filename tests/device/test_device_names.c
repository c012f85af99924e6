// SPDX-License-Identifier: MIT
//
// core/device: names of devices, and never a quiet fallback.
#include "core/device/device.h"

#include "tests/tide_test.h"

static void names_round_trip(void **state) {
    (void)state;
    static const struct {
        const char *text;
        tide_device device;
        const char *formatted;
    } rows[] = {{"cpu", {TIDE_DEVICE_CPU, 0}, "cpu"},
                {"cuda", {TIDE_DEVICE_CUDA, 0}, "cuda:0"},
                {"cuda:0", {TIDE_DEVICE_CUDA, 0}, "cuda:0"},
                {"cuda:17", {TIDE_DEVICE_CUDA, 17}, "cuda:17"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_device device = {TIDE_DEVICE_CPU, 9};
        char buf[16];
        assert_tide_ok(tide_device_parse(rows[i].text, &device, &err), &err);
        assert_true(tide_device_equal(device, rows[i].device));
        assert_string_equal(tide_device_format(device, buf, sizeof buf), rows[i].formatted);
    }
}

static void other_words_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",        "cpu0",  "CPU",       "cuda:", "cuda:-1", "cuda:x",
                                      "cuda:1x", "cuda1", "cuda:1000", "gpu",   "cuda: 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_device device = {TIDE_DEVICE_CUDA, 5};
        if (tide_device_parse(bad[i], &device, &err) != TIDE_ERR_INVALID) fail_msg("'%s' is a device", bad[i]);
        assert_int_equal(device.index, 5);
        assert_text_has(err.hint, "cuda:1");
    }
}

// S27-4: a device that this build cannot run on is an error that says so.
static void no_quiet_fallback(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_require(TIDE_CPU, &err), &err);
    assert_tide_status(tide_device_require((tide_device){TIDE_DEVICE_CUDA, 1}, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, "cuda:1");
    assert_text_has(err.hint, "cpu");
    assert_tide_status(tide_device_require((tide_device){TIDE_DEVICE_CPU, 1}, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_device_require((tide_device){(tide_device_type)7, 0}, &err), TIDE_ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_round_trip),
        tide_unit_test(other_words_are_refused),
        tide_unit_test(no_quiet_fallback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
