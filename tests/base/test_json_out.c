// SPDX-License-Identifier: MIT
//
// The streaming writer of JSON: layouts, values, memory.
#include "tests/tide_test.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>

#include "core/base/host_alloc.h"
#include "core/base/json_out.h"

static void write_sample(tide_json_out *j) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "name", "a\"b\xff");
    tide_json_text_or_null(j, "none", "");
    tide_json_open(j, "empty", '[');
    tide_json_close(j, ']');
    tide_json_open_flat(j, "line", '{');
    tide_json_u64(j, "most", UINT64_MAX);
    tide_json_open(j, "list", '[');
    tide_json_i64(j, NULL, INT64_MIN);
    tide_json_null(j, NULL);
    tide_json_close(j, ']');
    tide_json_open_lines(j, "lines", '[');
    tide_json_open_flat(j, NULL, '{');
    tide_json_bool(j, "b", true);
    tide_json_close(j, '}');
    tide_json_bool(j, NULL, false);
    tide_json_close(j, ']');
    tide_json_raw(j, "raw", "[1]");
    tide_json_close(j, '}');
    tide_json_bytes(j, "unknown", UINT64_MAX);
    tide_json_u64_if(j, "known", true, 7);
    tide_json_close(j, '}');
}

static void documents_have_lines_or_none(void **state) {
    (void)state;
    tide_text out = {0};
    tide_json_out lines = {.out = &out, .indent = true}, line = {.out = &out};
    write_sample(&lines);
    assert_string_equal(tide_text_str(&out), "{\n"
                                             "  \"name\": \"a\\\"b\xef\xbf\xbd\",\n"
                                             "  \"none\": null,\n"
                                             "  \"empty\": [],\n"
                                             "  \"line\": {\"most\": 18446744073709551615, "
                                             "\"list\": [-9223372036854775808, null], \"lines\": [\n"
                                             "    {\"b\": true},\n"
                                             "    false\n"
                                             "  ], \"raw\": [1]},\n"
                                             "  \"unknown\": null,\n"
                                             "  \"known\": 7\n"
                                             "}");
    tide_text_deinit(&out);
    write_sample(&line);
    assert_null(strpbrk(tide_text_str(&out), "\n "));
    json_t *doc = json_loads(tide_text_str(&out), JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
    assert_int_equal(json_object_size(doc), 6);
    json_decref(doc);
    tide_text_deinit(&out);
}

static void numbers_have_their_digits(void **state) {
    (void)state;
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {{0.5, 12, "0.5"},
                 {2.0, 12, "2.0"},
                 {0.0, 12, "0.0"},
                 {-1e-9, 12, "-1e-9"},
                 {1e300, 12, "1e300"},
                 {1.8446744073709552e19, 12, "1.84467440737e19"},
                 {0.333333, 15, "0.333333"},
                 {2.0 / 3.0, 6, "0.666667"},
                 {1e5, 3, "1e5"},
                 {(double)NAN, 12, "null"},
                 {(double)INFINITY, 12, "null"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_text out = {0};
        tide_json_out j = {.out = &out};
        tide_json_number(&j, NULL, cases[i].value, cases[i].digits);
        assert_string_equal(tide_text_str(&out), cases[i].text);
        tide_text_deinit(&out);
    }
    tide_text out = {0};
    tide_json_out j = {.out = &out};
    tide_json_open(&j, NULL, '[');
    tide_json_real(&j, NULL, 0.25);
    tide_json_real(&j, NULL, (double)NAN);
    tide_json_close(&j, ']');
    assert_string_equal(tide_text_str(&out), "[0.250000,null]");
    tide_text_deinit(&out);
}

/// A program that writes a comma into its own numbers still gets JSON.
static void the_locale_changes_no_number(void **state) {
    (void)state;
    char folder[] = "/tmp/tide-locale-XXXXXX", command[128];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f ISO-8859-1 %s/de_DE >/dev/null 2>&1", folder);
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    const bool has_comma = setlocale(LC_NUMERIC, "de_DE") != NULL;
    char comma[16];
    tide_text out = {0};
    tide_json_out j = {.out = &out};
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    tide_json_open(&j, NULL, '[');
    tide_json_real(&j, NULL, -0.25);
    tide_json_real(&j, NULL, 1e300);
    tide_json_number(&j, NULL, 2.0 / 3.0, 6);
    tide_json_number(&j, NULL, 1.5e-30, 6);
    tide_json_number(&j, NULL, 2.0, 6);
    tide_json_close(&j, ']');
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    char want[400];
    snprintf(want, sizeof want, "[-0.250000,%.6f,0.666667,1.5e-30,2.0]", 1e300);
    assert_string_equal(tide_text_str(&out), want);
    tide_text_deinit(&out);
    if (!has_comma) skip(); // no such locale can be made here
    assert_string_equal(comma, "0,5");
}

static void without_memory_the_text_has_failed(void **state) {
    (void)state;
    tide_text out = {0};
    tide_json_out j = {.out = &out, .indent = true};
    tide_host_fail_after(0);
    write_sample(&j);
    tide_host_fail_after(-1);
    assert_true(out.failed);
    tide_text_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(documents_have_lines_or_none),
        tide_unit_test(numbers_have_their_digits),
        tide_unit_test(the_locale_changes_no_number),
        tide_unit_test(without_memory_the_text_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
