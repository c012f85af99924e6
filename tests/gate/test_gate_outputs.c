// SPDX-License-Identifier: MIT
//
// What all seven outputs share, and what each promises of its length and its bytes. Whether they are valid is asked of
// others by tests/cli/gate_outputs.py.
#include <jansson.h>

#include "tests/tide_test.h"

#include "gate/out_internal.h"
#include "tests/gate/outputs_sample.h"

static sample *shared;

static int take_sample(void **state) {
    (void)state;
    shared = tide_host_alloc(sizeof *shared);
    return shared == NULL;
}

static int drop_sample(void **state) {
    (void)state;
    tide_host_free(shared);
    return 0;
}

// ---- foreign text ----

static void names_are_shown_on_one_line(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
        size_t max;
    } cases[] = {
        {"plain/größe 張量", "plain/größe 張量", 99},
        {"", "", 99},
        {"two\nlines\r\tx", "two\\nlines\\r\\tx", 99},
        {"\033[31m\x01\x7f\xc2\x85", "\\x1b[31m\\x01\\x7f\\x85", 99},
        {"\xe9\xc0\xaf\xed\xa0\x80\xff", "\\xe9\\xc0\\xaf\\xed\\xa0\\x80\\xff", 99},
        {"\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf", "\\u202e\\u2028\\ufeff", 99},
        {"\xef\xbf\xbe\xf0\x9f\xbf\xbf", "\\ufffe\\U0001ffff", 99},
        {"abcdefghij", "abcdefghij", 10},
        {"abcdefghijk", "abcdefg…(1 more)…ijk", 10},
        {"\n\n\n\n", "\\n\\n…(1 more)…\\n", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_text got = {0};
        tide__gate_clean(&got, cases[i].in, cases[i].max);
        assert_string_equal(tide_text_str(&got), cases[i].out);
        tide_text_deinit(&got);
    }
}

static void for_property(tide_text *out, const char *plain) { tide__gate_for_command(out, plain, true); }
static void for_message(tide_text *out, const char *plain) { tide__gate_for_command(out, plain, false); }

static void each_format_has_its_escapes(void **state) {
    (void)state;
    static const struct {
        void (*escape)(tide_text *, const char *);
        const char *in, *out;
    } cases[] = {
        {tide__gate_for_log, "##[x] ###vso # #", "#\\x23[x] #\\x23#vso # #"},
        {tide__gate_for_xml, "<a b=\"c\" d='e'>&]]>", "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;]]&gt;"},
        {tide__gate_for_code, "a|b`c```", "a\\x7cb\\x60c\\x60\\x60\\x60"},
        {for_property, "5%: a,b\r\n##", "5%25%3A a%2Cb%0D%0A#\\x23"},
        {for_message, "5%: a,b\r\n##", "5%25: a,b%0D%0A#\\x23"},
        {tide__gate_for_sarif, "[a](b) [c] (d)", "[a]\\x28b) [c] (d)"},
        {tide__gate_for_uri, "a b/c:d%e\xc3\xa9\xff", "a%20b/c%3Ad%25e%C3%A9%FF"},
        {tide__gate_for_uri, "/abs/x.toml", "file:///abs/x.toml"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_text got = {0};
        cases[i].escape(&got, cases[i].in);
        assert_string_equal(tide_text_str(&got), cases[i].out);
        tide_text_deinit(&got);
    }
}

// ---- words ----

static void assert_verdict(const char *want) {
    tide_text got = {0};
    tide__gate_say_verdict(&got, &shared->r);
    assert_string_equal(tide_text_str(&got), want);
    tide_text_deinit(&got);
}

static void the_verdict_stands_first_with_its_counts(void **state) {
    (void)state;
    sample_clean(shared, "net");
    assert_verdict("pass: all 3 cases pass");
    sample_worse(shared, "net");
    assert_verdict("FAIL: of 2 cases 1 failed, 1 passes");
    shared->r.n = 1, shared->r.n_pass = 0;
    assert_verdict("FAIL: the one case failed");
    sample_mixed(shared, "net");
    assert_verdict(
        "FAIL: of 10 cases 4 failed, 1 cannot be compared, 2 warned, 3 pass; not measured: 1 case; added: 1 case; "
        "removed: 2 cases");
    sample_nothing(shared, "net");
    assert_verdict("NOT COMPARABLE: nothing was compared");
}

static void assert_command(const char *config, const char *baseline, const char *want) {
    sample_worse(shared, "net");
    shared->r.config_path = config;
    shared->r.baseline_path = baseline;
    tide_text got = {0};
    tide__gate_say_command(&got, &shared->r);
    assert_string_equal(tide_text_str(&got), want);
    tide_text_deinit(&got);
}

static void the_command_to_accept_can_be_pasted(void **state) {
    (void)state;
    assert_command("tidemark.toml", "b.json", "tidemark check --update-baseline --reason \"…\"");
    assert_command("ci/gate.toml", "b.json", "tidemark check --config ci/gate.toml --update-baseline --reason \"…\"");
    assert_command("it's a.toml", "", "tidemark check --config 'it'\\''s a.toml' --update-baseline --reason \"…\"");
    assert_command("$(x).toml", "", "tidemark check --config '$(x).toml' --update-baseline --reason \"…\"");
    assert_command("-x", "", "tidemark check --config ./'-x' --update-baseline --reason \"…\"");
    assert_command("", "b.json", "tidemark check FILE… --baseline b.json --update-baseline --reason \"…\"");
}

static void advice_is_what_can_be_done(void **state) {
    (void)state;
    sample_worse(shared, "net");
    tide__gate_advice a = tide__gate_advise(&shared->r);
    assert_true(a.accept && !a.make && !a.budget && !a.unmeasured);
    shared->rows[0][0].over_budget = true;
    a = tide__gate_advise(&shared->r);
    assert_true(!a.accept && a.budget);
    sample_mixed(shared, "net"); // one case could not be measured: an update would be refused
    a = tide__gate_advise(&shared->r);
    assert_true(!a.accept && a.budget && a.unmeasured);
    sample_nothing(shared, "net");
    a = tide__gate_advise(&shared->r);
    assert_true(a.make && !a.accept);
    sample_clean(shared, "net");
    a = tide__gate_advise(&shared->r);
    assert_true(!a.accept && !a.make && !a.budget && !a.unmeasured);
}

static void a_finding_points_at_its_file(void **state) {
    (void)state;
    unsigned line;
    sample_worse(shared, "net");
    tide_gate_judged *c = &shared->cases[0];
    c->path = "models/net.onnx";
    c->origin = "net.toml:12";
    assert_string_equal(tide__gate_place(&shared->r, c, &line), "models/net.onnx");
    assert_int_equal(line, 0);
    c->path = NULL; // it is gone: its entry says that it was wanted
    assert_string_equal(tide__gate_place(&shared->r, c, &line), "net.toml");
    assert_int_equal(line, 12);
    c->origin = "net.toml:99999999999";
    tide__gate_place(&shared->r, c, &line);
    assert_int_equal(line, 0);
    c->origin = NULL;
    assert_string_equal(tide__gate_place(&shared->r, c, &line), "net.toml");
    shared->r.config_path = "";
    assert_string_equal(tide__gate_place(&shared->r, NULL, &line), "net.json");
}

// ---- text ----

static void assert_text(const tide_gate_output_options *opt, const char *has, const char *has_not) {
    tide_text got = {0};
    tide_gate_print_text(&shared->r, opt, &got);
    assert_text_has(tide_text_str(&got), has);
    if (has_not != NULL && strstr(tide_text_str(&got), has_not) != NULL)
        fail_msg("'%s' contains '%s'", tide_text_str(&got), has_not);
    tide_text_deinit(&got);
}

static void text_lists_what_changed_and_counts_the_rest(void **state) {
    (void)state;
    sample_worse(shared, "net");
    assert_text(NULL, "as before or within budget: 1 case\n", "models/net same");
    assert_text(NULL, "limit: any growth (net.toml:12)", "time_ns");
    assert_text(NULL, "  also: kind_peak_bytes.Workspace +2.00 KiB (+66.7 %)\n", "by kind");
    assert_text(NULL, "  - 2 more causes", NULL);
    assert_text(NULL, "  - peak +2.00 KiB by operator: net +3.00 KiB, net -1.00 KiB\n", "holes");
    assert_text(NULL, "\nto accept: tidemark check --config net.toml --update-baseline --reason \"…\"\n", NULL);
    assert_text(&(tide_gate_output_options){.verbose = true}, "pass  models/net same", "as before");
    assert_text(&(tide_gate_output_options){.verbose = true}, "time_ns", NULL);
    assert_text(&(tide_gate_output_options){.max_causes = 1}, "  - 6 more causes", NULL);
    assert_text(&(tide_gate_output_options){.max_causes = 1}, "by operator: net +3.00 KiB, 1 more -1.00 KiB\n", NULL);
    sample_many(shared, "net", 5, 2);
    assert_text(&(tide_gate_output_options){.max_rows = 3}, "\n4 more cases", "net-03");
    sample_mixed(shared, "net");
    assert_text(NULL, "WARN  models/net added  (added)\n  planned_bytes: 7.00 KiB (7168)\n", "time_ns");
    sample_clean(shared, "net");
    assert_text(NULL, "pass: all 3 cases pass\n", "to accept");
}

// ---- Markdown ----

/// One growth that several figures see is told once; another amount, limit or verdict is another line.
static void figures_that_grew_by_as_much_share_a_line(void **state) {
    (void)state;
    sample *s = calloc(1, sizeof *s);
    assert_non_null(s);
    sample_init(s, "m");
    tide_gate_judged *c = sample_case(s, "m", "", TIDE_GATE_CASE_CHANGED, TIDE_GATE_FAIL_VERDICT);
    sample_row(c, TIDE_GATE_PLANNED, -1, 3072, 5120, TIDE_GATE_FAIL_VERDICT, "any growth");
    sample_row(c, TIDE_GATE_TOTAL, -1, 13072, 15120, TIDE_GATE_FAIL_VERDICT, "any growth");
    sample_row(c, TIDE_GATE_PEAK, -1, 13072, 15121, TIDE_GATE_FAIL_VERDICT, "any growth");
    sample_row(c, TIDE_GATE_RESERVED, -1, 13072, 15120, TIDE_GATE_FAIL_VERDICT, "1 KiB (m.toml:3)");
    tide_text text = {0};
    tide_gate_print_text(&s->r, NULL, &text);
    const char *told = tide_text_str(&text);
    assert_non_null(strstr(told, "\n  planned_bytes: 3.00 KiB"));
    assert_non_null(strstr(told, "\n  by as much: total_bytes\n"));
    assert_null(strstr(told, "\n  total_bytes:"));
    assert_non_null(strstr(told, "\n  peak_bytes: "));
    assert_non_null(strstr(told, "\n  reserved_bytes: "));
    text.len = 0;
    tide_gate_print_text(&s->r, &(tide_gate_output_options){.verbose = true}, &text);
    assert_non_null(strstr(tide_text_str(&text), "\n  total_bytes: "));
    assert_null(strstr(tide_text_str(&text), "by as much"));
    tide_text_deinit(&text);
    free(s);
}

#define HEADING "# somebody else's\n" // text that stands before the output

static void markdown_keeps_to_its_bytes(void **state) {
    (void)state;
    sample_many(shared, "net", 12, 4);
    tide_text full = {0};
    tide_gate_print_markdown(&shared->r, &(tide_gate_output_options){.max_bytes = 1000000}, &full);
    assert_null(strstr(full.data, "Left out"));
    size_t n_cut = 0;
    for (size_t max = 1200; max < full.len + 400; max += 37) {
        tide_text got = {0};
        tide_text_add(&got, HEADING);
        tide_gate_print_markdown(&shared->r, &(tide_gate_output_options){.max_bytes = max}, &got);
        assert_true(got.len - strlen(HEADING) <= max);
        assert_int_equal(got.data[got.len - 1], '\n');
        assert_text_has(got.data, HEADING "### tidemark check: FAIL");
        assert_text_has(got.data, "to accept: ");
        n_cut += strstr(got.data, "\nLeft out here: ") != NULL;
        assert_int_equal(strstr(got.data, "\nLeft out here: ") != NULL, got.len - strlen(HEADING) != full.len);
        tide_text_deinit(&got);
    }
    assert_true(n_cut > 10);
    tide_text_deinit(&full);
}

static void markdown_of_few_rows_says_so(void **state) {
    (void)state;
    sample_many(shared, "net", 5, 0);
    tide_text got = {0};
    tide_gate_print_markdown(&shared->r, &(tide_gate_output_options){.max_rows = 2}, &got);
    assert_text_has(got.data, "Left out here: 6 of 10 rows, the causes of 3 of 5 cases.");
    assert_null(strstr(got.data, "net-02"));
    tide_text_deinit(&got);
}

// ---- JSON and SARIF ----

static json_t *parse(void (*print)(const tide_gate_result *, tide_text *)) {
    tide_text text = {0};
    print(&shared->r, &text);
    json_t *doc = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    tide_text_deinit(&text);
    return doc;
}

static void numbers_beyond_jansson_stay_numbers(void **state) {
    (void)state;
    sample_worse(shared, "net");
    shared->rows[0][0].baseline.u = 1;
    shared->rows[0][0].current.u = UINT64_MAX;
    json_t *doc = parse(tide_gate_print_json);
    json_t *row = json_array_get(json_object_get(json_array_get(json_object_get(doc, "cases"), 0), "rows"), 0);
    assert_true(json_real_value(json_object_get(row, "current")) > 1.8e19);
    assert_true(json_real_value(json_object_get(row, "change")) > 1.8e19);
    assert_int_equal(json_integer_value(json_object_get(row, "baseline")), 1);
    json_decref(doc);
}

static const char *fingerprint(void) {
    static char out[64];
    json_t *doc = parse(tide_gate_print_sarif);
    json_t *result = json_array_get(json_object_get(json_array_get(json_object_get(doc, "runs"), 0), "results"), 0);
    const char *hash =
        json_string_value(json_object_get(json_object_get(result, "partialFingerprints"), "primaryLocationLineHash"));
    assert_non_null(hash);
    snprintf(out, sizeof out, "%s", hash);
    json_decref(doc);
    return out;
}

static void a_finding_is_the_same_tomorrow(void **state) {
    (void)state;
    char first[64];
    sample_worse(shared, "net");
    snprintf(first, sizeof first, "%s", fingerprint());
    shared->rows[0][0].current.u += 4096; // worse still, for another reason, at another line
    shared->cases[0].n_causes = 1;
    snprintf(shared->rows[0][0].limit, 160, "1 KiB (net.toml:99)");
    assert_string_equal(fingerprint(), first);
    shared->rows[0][0].metric = TIDE_GATE_TOTAL;
    assert_string_not_equal(fingerprint(), first);
    sample_worse(shared, "other");
    assert_string_not_equal(fingerprint(), first);
}

// ---- memory ----

enum { N_OUTPUTS = 7 };

static void print_all(tide_text out[N_OUTPUTS]) {
    tide_gate_print_text(&shared->r, NULL, &out[0]);
    tide_gate_print_markdown(&shared->r, NULL, &out[1]);
    tide_gate_print_junit(&shared->r, &out[2]);
    tide_gate_print_annotations(&shared->r, &out[3]);
    tide_gate_print_json(&shared->r, &out[4]);
    tide_gate_print_sarif(&shared->r, &out[5]);
    tide_gate_print_html(&shared->r, NULL, &out[6]);
}

/// Whatever allocation fails, the output that needed it says so, and the others are whole.
static void an_output_without_memory_says_so(void **state) {
    (void)state;
    sample_mixed(shared, "net");
    tide_text whole[N_OUTPUTS] = {{0}};
    print_all(whole);
    size_t n_failed = 0;
    for (int64_t after = 0;; after += 1 + after / 200) {
        tide_text out[N_OUTPUTS] = {{0}};
        tide_host_fail_after(after);
        print_all(out);
        tide_host_fail_after(-1);
        size_t n = 0;
        for (int i = 0; i < N_OUTPUTS; i++) {
            n += out[i].failed;
            if (!out[i].failed) assert_string_equal(tide_text_str(&out[i]), tide_text_str(&whole[i]));
            tide_text_deinit(&out[i]);
        }
        if (n == 0) break;
        n_failed++;
    }
    assert_true(n_failed > 400);
    for (int i = 0; i < N_OUTPUTS; i++) tide_text_deinit(&whole[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_are_shown_on_one_line),
        tide_unit_test(each_format_has_its_escapes),
        tide_unit_test(the_verdict_stands_first_with_its_counts),
        tide_unit_test(the_command_to_accept_can_be_pasted),
        tide_unit_test(advice_is_what_can_be_done),
        tide_unit_test(a_finding_points_at_its_file),
        tide_unit_test(text_lists_what_changed_and_counts_the_rest),
        tide_unit_test(figures_that_grew_by_as_much_share_a_line),
        tide_unit_test(markdown_keeps_to_its_bytes),
        tide_unit_test(markdown_of_few_rows_says_so),
        tide_unit_test(numbers_beyond_jansson_stay_numbers),
        tide_unit_test(a_finding_is_the_same_tomorrow),
        tide_unit_test(an_output_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, take_sample, drop_sample);
}
