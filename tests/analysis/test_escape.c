// SPDX-License-Identifier: MIT
//
// Foreign names in each format: what goes in, what comes out.
#include "tests/tide_test.h"

#include "analysis/html_text.h"
#include "analysis/table.h"

#include <jansson.h>

#include "core/base/utf8.h"

#define BAD "\xEF\xBF\xBD"

static const struct {
    const char *in, *html, *csv, *utf8;
} names[] = {
    {"plain_0", "plain_0", "plain_0", "plain_0"},
    {"", "", "", ""},
    {"a \"b\" 'c'", "a &quot;b&quot; &#39;c&#39;", "\"a \"\"b\"\" 'c'\"", "a \"b\" 'c'"},
    {"</script><script>x", "&lt;/script&gt;&lt;script&gt;x", "</script><script>x", "</script><script>x"},
    {"<!--<script>", "&lt;!--&lt;script&gt;", "<!--<script>", "<!--<script>"},
    {"]]>&amp;", "]]&gt;&amp;amp;", "]]>&amp;", "]]>&amp;"},
    {"two\nlines\r\n", "two" BAD "lines" BAD BAD, "\"two\nlines\r\n\"", "two\nlines\r\n"},
    {"tab\there", "tab" BAD "here", "\"tab\there\"", "tab\there"},
    {"a,b", "a,b", "\"a,b\"", "a,b"},
    {"=cmd|' /C calc'!A0", "=cmd|&#39; /C calc&#39;!A0", "\"=cmd|' /C calc'!A0\"", "=cmd|' /C calc'!A0"},
    {"@sum", "@sum", "\"@sum\"", "@sum"},
    {" led by a space", " led by a space", "\" led by a space\"", " led by a space"},
    {"esc\033[31m", "esc" BAD "[31m", "esc" BAD "[31m", "esc\033[31m"},
    {"del\x7f c1\xc2\x85", "del" BAD " c1" BAD, "del" BAD " c1" BAD, "del\x7f c1\xc2\x85"},
    {"latin1 \xe9\xe8", "latin1 " BAD BAD, "latin1 " BAD BAD, "latin1 " BAD BAD},
    {"overlong \xc0\xaf\xe0\x80\xaf", "overlong " BAD BAD BAD BAD BAD, "overlong " BAD BAD BAD BAD BAD,
     "overlong " BAD BAD BAD BAD BAD},
    {"surrogate \xed\xa0\x80", "surrogate " BAD BAD BAD, "surrogate " BAD BAD BAD, "surrogate " BAD BAD BAD},
    {"beyond \xf4\x90\x80\x80\xff", "beyond " BAD BAD BAD BAD BAD, "beyond " BAD BAD BAD BAD BAD,
     "beyond " BAD BAD BAD BAD BAD},
    {"cut \xe2\x82", "cut " BAD BAD, "cut " BAD BAD, "cut " BAD BAD},
    {"größe 張量 \xf0\x9f\x92\xbe", "größe 張量 \xf0\x9f\x92\xbe", "größe 張量 \xf0\x9f\x92\xbe",
     "größe 張量 \xf0\x9f\x92\xbe"},
};

static void names_are_escaped_for_each_format(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tide_text html = {0}, csv = {0}, utf8 = {0};
        tide_html_add(&html, names[i].in);
        tide_csv_add(&csv, names[i].in);
        tide_text_add(&utf8, "\"");
        tide_utf8_add_json(&utf8, names[i].in);
        tide_text_add(&utf8, "\"");
        json_t *value = json_loads(tide_text_str(&utf8), JSON_DECODE_ANY, NULL); // a parser gets the exact name
        assert_non_null(value);
        assert_string_equal(tide_text_str(&html), names[i].html);
        assert_string_equal(tide_text_str(&csv), names[i].csv);
        assert_string_equal(json_string_value(value), names[i].utf8);
        json_decref(value);
        tide_text_deinit(&html);
        tide_text_deinit(&csv);
        tide_text_deinit(&utf8);
    }
}

static void long_names_lose_their_middle(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
        size_t max;
    } cases[] = {
        {"abcdefghij", "abcdefghij", 10}, {"abcdefghij", "abcd…hij", 8},        {"<<<<<<", "&lt;&lt;…&lt;", 4},
        {"größengröße", "gr…ße", 5},      {"\xff\xff\xff\xff", BAD "…" BAD, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_text got = {0};
        tide_html_add_cut(&got, cases[i].in, cases[i].max);
        assert_string_equal(tide_text_str(&got), cases[i].out);
        tide_text_deinit(&got);
    }
}

static void json_inside_html_cannot_end_its_element(void **state) {
    (void)state;
    static const char json[] = "[\"</script><!--<script>&amp;]]>\"]";
    tide_text got = {0};
    tide_html_add_json(&got, json, sizeof json - 1);
    assert_null(strpbrk(got.data, "<>&"));
    assert_text_has(got.data, "\\u003c/script\\u003e\\u003c!--");
    tide_text_deinit(&got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_are_escaped_for_each_format),
        tide_unit_test(long_names_lose_their_middle),
        tide_unit_test(json_inside_html_cannot_end_its_element),
    };
    return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
