// SPDX-License-Identifier: MIT
//
// core/base/status: names, sentences and the error that people read.
#include "tests/tide_test.h"

static void names_and_values_are_stable(void **state) {
    (void)state;
    // Scripts and trace files hold these numbers.
    assert_int_equal(TIDE_OK, 0);
    assert_int_equal(TIDE_ERR_INVALID, 1);
    assert_int_equal(TIDE_ERR_NOMEM, 2);
    assert_int_equal(TIDE_ERR_BAD_INPUT, 10);
    assert_int_equal(TIDE_ERR_NO_SPACE, 14);
    assert_int_equal(TIDE_ERR_BUSY, 20);
    assert_string_equal(tide_status_name(TIDE_ERR_NOMEM), "ERR_NOMEM");
    assert_string_equal(tide_status_text(TIDE_ERR_NOMEM), "out of memory");
    assert_string_equal(tide_status_name((tide_status)99), "ERR_?");
    assert_true(strlen(tide_status_text((tide_status)99)) > 0);
}

static void fail_fills_what_and_clears_the_rest(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(TIDE_FAIL(&err, TIDE_ERR_IO, "cannot open '%s'", "a.onnx"), TIDE_ERR_IO);
    tide_error_where(&err, "node %d", 7);
    tide_error_note(&err, "because");
    tide_error_hint(&err, "do this");
    assert_int_equal(err.status, TIDE_ERR_IO);
    assert_string_equal(err.msg, "cannot open 'a.onnx'");
    assert_string_equal(err.where, "node 7");
    assert_string_equal(err.note, "because");
    assert_string_equal(err.hint, "do this");
    assert_true(err.line > 0);
    assert_text_has(err.file, "test_base_status.c");

    // The next failure may quote the last one, whose words must not be overwritten while they are read.
    assert_tide_status(TIDE_FAIL(&err, TIDE_ERR_RUNTIME, "again: %s", err.msg), TIDE_ERR_RUNTIME);
    assert_string_equal(err.msg, "again: cannot open 'a.onnx'");
    assert_string_equal(err.where, "");
    assert_string_equal(err.note, "");
    assert_string_equal(err.hint, "");
    tide_error_clear(&err);
    assert_int_equal(err.status, TIDE_OK);
    assert_string_equal(err.msg, "");
}

static void parts_may_quote_themselves(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    (void)TIDE_FAIL(&err, TIDE_ERR_IO, "x");
    tide_error_where(&err, "inner");
    tide_error_where(&err, "outer: %s", err.where);
    assert_string_equal(err.where, "outer: inner");
}

static void long_texts_are_cut_and_terminated(void **state) {
    (void)state;
    char longer[2000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    tide_error err = TIDE_ERROR_INIT;
    (void)TIDE_FAIL(&err, TIDE_ERR_IO, "%s", longer);
    tide_error_where(&err, "%s", longer);
    tide_error_note(&err, "%s", longer);
    tide_error_hint(&err, "%s", longer);
    tide_error_prefix(&err, "%s", longer);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_int_equal(strlen(err.where), sizeof err.where - 1);
    assert_int_equal(strlen(err.note), sizeof err.note - 1);
    assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
}

static void prefix_comes_before_the_message(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    (void)TIDE_FAIL(&err, TIDE_ERR_IO, "cannot read");
    tide_error_hint(&err, "kept");
    tide_error_prefix(&err, "model '%s'", "m");
    assert_string_equal(err.msg, "model 'm': cannot read");
    assert_string_equal(err.hint, "kept");
}

static void no_error_object_is_fine_everywhere(void **state) {
    (void)state;
    assert_tide_status(TIDE_FAIL(NULL, TIDE_ERR_CYCLE, "nobody reads %s", "this"), TIDE_ERR_CYCLE);
    tide_error_where(NULL, "a");
    tide_error_note(NULL, "a");
    tide_error_hint(NULL, "a");
    tide_error_prefix(NULL, "a");
    tide_error_clear(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_and_values_are_stable),     tide_unit_test(fail_fills_what_and_clears_the_rest),
        tide_unit_test(parts_may_quote_themselves),      tide_unit_test(long_texts_are_cut_and_terminated),
        tide_unit_test(prefix_comes_before_the_message), tide_unit_test(no_error_object_is_fine_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
