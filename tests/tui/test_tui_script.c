// SPDX-License-Identifier: MIT
//
// Scripts: every sort of line, errors that say where, expectations that fail.
#include "tests/tui/view_fixture.h"

/// Runs on a fresh small plan; the output is the caller's.
static tide_status run(const char *script, tide_text *out, tide_error *err) {
    tide_subject *a = subject_of_plan(small_plan(262144));
    const tide_tui_session session = {.a = a};
    const tide_tui_options opt = {.glyphs = TIDE_TUI_GLYPHS_ASCII};
    const tide_status st = tide_tui_script(&session, &opt, 80, 24, script, out, err);
    tide_subject_destroy(a);
    return st;
}

static void all_sorts_of_lines(void **state) {
    (void)state;
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(run("# what it holds\n"
                       "\n"
                       "say -- begin\n"
                       "do sort size\n"
                       "key Home Down\n"
                       "keys jj\n"
                       "keys \\\n"
                       "type size>= 64k\n"
                       "key BkspIsNoKey\n",
                       &out, &err) == TIDE_ERR_INVALID
                       ? TIDE_OK
                       : TIDE_ERR_UNKNOWN,
                   &err);
    assert_text_has(err.msg, "BkspIsNoKey");
    assert_string_equal(err.where, "line 9 of the script");
    assert_string_equal(tide_text_str(&out), "-- begin\n");
    tide_text_deinit(&out);

    assert_tide_ok(run("do filter size>=64k\r\n"
                       "mouse press 40 4\n"
                       "mouse drag 50 4 shift ms=12\n"
                       "mouse release 50 4\n"
                       "resize 100x30\n"
                       "expect conv2_out\n"
                       "refuse gemm6_out\n"
                       "dump\n",
                       &out, &err),
                   &err);
    assert_text_has(tide_text_str(&out), "conv2_out");
    size_t n_lines = 0, width = 0;
    for (const char *at = tide_text_str(&out); *at != 0; at += width + 1, n_lines++) {
        width = strcspn(at, "\n");
        assert_int_equal(width, 100);
    }
    assert_int_equal(n_lines, 30);
    tide_text_deinit(&out);
}

static void expectations_fail_with_the_frame(void **state) {
    (void)state;
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(run("keys j\nexpect no such text\nsay never\n", &out, &err), TIDE_ERR_VERIFY);
    assert_string_equal(err.where, "line 2 of the script");
    assert_text_has(err.msg, "no such text");
    assert_text_has(tide_text_str(&out), "smallnet"); // the frame, to look at
    assert_null(strstr(tide_text_str(&out), "never"));
    tide_text_deinit(&out);
    assert_tide_status(run("refuse smallnet", &out, &err), TIDE_ERR_VERIFY);
    tide_text_deinit(&out);
}

static void wrong_lines_are_refused(void **state) {
    (void)state;
    static const char *const lines[] = {"jump",      "mouse jump 1 1", "mouse press 1",    "mouse press 1 1 twice",
                                        "resize 80", "resize 0x5",     "mouse press -1 4", "mouse press 1 1 ms=x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        tide_text out = {0};
        tide_error err = TIDE_ERROR_INIT;
        if (run(lines[i], &out, &err) != TIDE_ERR_INVALID) fail_msg("'%s' was done", lines[i]);
        assert_string_equal(err.where, "line 1 of the script");
        tide_text_deinit(&out);
    }
}

static void quitting_ends_it(void **state) {
    (void)state;
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(run("say one\nkeys qx\nsay two\n", &out, &err), &err);
    assert_string_equal(tide_text_str(&out), "one\n");
    tide_text_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sorts_of_lines),
        cmocka_unit_test(expectations_fail_with_the_frame),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(quitting_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
