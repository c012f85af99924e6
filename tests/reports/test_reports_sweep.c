// SPDX-License-Identifier: MIT
//
// A sweep in every format: the sentences, the same numbers everywhere, names that are not what they seem.
#include "reports/sweep.h"

#include "tests/analysis/sweep_fixture.h"

static tide_text written(const tide_sweep *s, tide_report_format format, const tide_sweep_paper *paper) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    assert_tide_ok(tide_report_sweep(s, format, paper, &text, &err), &err);
    assert_non_null(text.data);
    return text;
}

static void says(const tide_sweep *s, const tide_sweep_answer *a, const char *want) {
    tide_text text = {0};
    tide_sweep_sentence(s, a, &text);
    assert_string_equal(tide_text_str(&text), want);
    tide_text_deinit(&text);
}

static void sentences(void **state) {
    (void)state;
    tide_sweep s = sweep_small();
    says(&s, &s.answers[0], "a.onnx: the largest N that fits 8 MiB is 4 (7.00 MiB); 8 needs 11.01 MiB");
    tide_sweep_answer a = s.answers[0];
    a.tried = a.ran = a.next_ran = true;
    says(&s, &a,
         "a.onnx: the largest N that fits 8 MiB is 4 (7.00 MiB); 8 needs 11.01 MiB. Run within the budget: 4 went "
         "through, 8 ran out of memory");
    a.ran = a.next_ran = false;
    says(&s, &a,
         "a.onnx: the largest N that fits 8 MiB is 4 (7.00 MiB); 8 needs 11.01 MiB. Run within the budget: 4 "
         "FAILED, 8 did NOT run out of memory");
    a = (tide_sweep_answer){.budget_bytes = 1 << 20, .none_fits = true, .next_value = 1, .next_bytes = 5 << 20};
    says(&s, &a, "a.onnx: no N of those asked for fits 1 MiB; 1 needs 5.00 MiB");
    a = (tide_sweep_answer){.budget_bytes = 8ULL << 30, .is_open = true, .value = 8, .needs_bytes = 5 << 20};
    says(&s, &a, "a.onnx: 8, the largest N asked for, fits 8 GiB (5.00 MiB); more may");
    // What looks like the budget when rounded.
    a = (tide_sweep_answer){.budget_bytes = 8ULL << 30,
                            .value = 4,
                            .needs_bytes = (8ULL << 30) - 4096,
                            .next_value = 5,
                            .next_bytes = (8ULL << 30) + 1};
    says(&s, &a,
         "a.onnx: the largest N that fits 8 GiB is 4 (8.00 GiB, 4 KiB to spare); 5 needs 8.00 GiB, 1 B too much");
    a.needs_bytes = 8ULL << 30;
    says(&s, &a, "a.onnx: the largest N that fits 8 GiB is 4 (8.00 GiB); 5 needs 8.00 GiB, 1 B too much");
    tide_sweep_deinit(&s);
}

/// Each series by what tells it from the others of its model, each model by what tells it from the others.
static void names_that_tell_apart(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_open("N");
    sweep_put(&s, sweep_point("x/vit/model.onnx", "N", 1, "", "search", 256));
    sweep_put(&s, sweep_point("x/vit/model.onnx", "N", 1, "", "naive", 64));
    sweep_put(&s, sweep_point("a/net.onnx", "N", 1, "S=2", "naive", 64));
    sweep_put(&s, sweep_point("b/net.onnx", "N", 1, "", "naive", 64));
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    static const char *const want[] = {"a/net.onnx (S=2, naive): ", "b/net.onnx: ",
                                       "vit/model.onnx (naive, align 64): ", "vit/model.onnx (search, align 256): "};
    for (size_t i = 0; i < 4; i++) {
        const tide_sweep_answer a = {
            .series = i, .budget_bytes = 5, .none_fits = true, .next_value = 1, .next_bytes = 9};
        tide_text text = {0}, all = {0};
        tide_sweep_sentence(&s, &a, &text);
        tide_text_addf(&all, "%sno N of those asked for fits 5 B; 1 needs 9 B", want[i]);
        assert_string_equal(text.data, all.data);
        tide_text_deinit(&text);
        tide_text_deinit(&all);
    }
    tide_sweep_deinit(&s);
}

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what)) n++;
    return n;
}

static void the_same_in_every_format(void **state) {
    (void)state;
    tide_sweep s = sweep_small();
    static const char sentence[] = "the largest N that fits 8 MiB is 4";
    for (int f = 0; f < TIDE_N_REPORT_FORMATS; f++) {
        tide_text text = written(&s, (tide_report_format)f, NULL), again = written(&s, (tide_report_format)f, NULL);
        assert_string_equal(text.data, again.data); // byte-stable
        if (f == TIDE_REPORT_HTML || f == TIDE_REPORT_MARKDOWN || f == TIDE_REPORT_TEXT)
            assert_text_has(text.data, sentence);
        tide_text_deinit(&text);
        tide_text_deinit(&again);
    }
    tide_text csv = written(&s, TIDE_REPORT_CSV, NULL);
    assert_text_has(
        csv.data,
        "model,sizes,strategy,align_bytes,value,total_bytes,process_bytes,planned_bytes,weights_bytes,io_bytes,"
        "other_bytes,naive_bytes,lower_bound_bytes,proved_bytes,proven,measured_peak_bytes,"
        "plan_time_ns,time_ns,error,rank\r\n");
    assert_text_has(csv.data,
                    "nets/a.onnx,N=4,search,256,4,7344128,,4194304,3145728,4096,0,8388608,2097152,4194304,1,,1004,,,0"
                    "\r\n");
    assert_int_equal(count(csv.data, "\r\n"), 5);
    tide_text svg = written(&s, TIDE_REPORT_SVG, NULL), html = written(&s, TIDE_REPORT_HTML, NULL);
    for (int k = 0; k < 2; k++) {
        const char *picture = k == 0 ? svg.data : html.data;
        assert_int_equal(count(picture, "class=\"ring\""), 1);
        assert_text_has(picture, ">4</text></g>");
        assert_text_has(picture, ">budget 8 MiB</text>");
        assert_int_equal(count(picture, "<circle class=\"dot\""), 4 + 1); // and the legend's
        assert_int_equal(count(picture, "<path class=\"low\""), 1 + 1);
    }
    assert_text_has(html.data, "<td title=\"7344128 B\">7.00 MiB</td>");
    assert_text_has(html.data, "<html lang=\"en\">");
    assert_null(strstr(html.data, "<script"));
    assert_null(strstr(html.data, "href="));
    assert_null(strstr(html.data, "url(http"));
    tide_text_deinit(&csv);
    tide_text_deinit(&svg);
    tide_text_deinit(&html);
    tide_sweep_deinit(&s);
}

static void curve_in_characters(void **state) {
    (void)state;
    tide_sweep s = sweep_small();
    const tide_sweep_paper ascii = {.width = 50, .ascii = true}, blocks = {.width = 50};
    tide_text text = written(&s, TIDE_REPORT_TEXT, &ascii), wide = written(&s, TIDE_REPORT_TEXT, &blocks);
    for (const char *c = text.data; *c != '\0'; c++) assert_true((unsigned char)*c < 0x80);
    assert_memory_equal(text.data, "a.onnx: total bytes by N\n", 25);
    assert_text_has(text.data, "\n     8 MiB |------------------------------------\n");
    assert_text_has(text.data, "\n 11.01 MiB |");
    assert_text_has(text.data, "^4\n");
    assert_text_has(text.data, "8 N\n");
    assert_text_has(wide.data, "\xE2\x96\x88");
    assert_text_has(wide.data, "\xE2\x94\x80\xE2\x94\x80");
    // The column of a value is filled as high as its total: the upper half of the first one is empty.
    const char *line = strstr(text.data, "  5.50 MiB |");
    assert_non_null(line);
    assert_int_equal(line[12], ' ');
    const char *end = strchr(line, '\n');
    assert_int_equal(end[-1], '#');
    // From row to row more of it is below the curve; the last column is full.
    size_t above = 0, rows = 0;
    for (const char *row = strchr(text.data, '\n') + 1; strchr(row, '+') != row + 11; row = strchr(row, '\n') + 1) {
        size_t filled = 0;
        for (const char *c = row; *c != '\n'; c++) filled += *c == '#' || *c == '.';
        filled -= 1 * (row[6] == '.') + 1 * (row[2] == '.'); // the label's
        assert_true(strchr(row, '\n')[-1] == '#' || strchr(row, '\n')[-1] == '-' || rows == 0);
        if (strstr(row, "|--") == row + 11) continue; // the budget
        assert_true(filled >= above);
        above = filled;
        rows++;
    }
    assert_int_equal(rows, 13);
    tide_text_deinit(&text);
    tide_text_deinit(&wide);
    tide_sweep_deinit(&s);
}

static tide_sweep hostile(void) {
    tide_error err = TIDE_ERROR_INIT;
    static const char *const models[] = {"</script><b>\"'&",
                                         "a,b\nc\"d",
                                         "]]>|pipe`*_#",
                                         "bad\xFF\xC3"
                                         "byte",
                                         "\xE2\x80\xAE"
                                         "rtl",
                                         "=1+1"};
    tide_sweep s = sweep_open("N\"><i>|");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        sweep_put(&s, sweep_point(models[i], "N\"><i>|", 1, "x</style>=2", "search", 256));
        tide_sweep_point bad = sweep_point(models[i], "N\"><i>|", 2, "x</style>=2", "search", 256);
        bad.error = tide_host_strdup("<img src=x onerror=alert(1)>\r\n|");
        sweep_put(&s, bad);
    }
    char *longest = tide_host_calloc(10001, 1);
    memset(longest, 'x', 10000);
    sweep_put(&s, sweep_point(longest, "N\"><i>|", 1, "", "search", 256));
    tide_host_free(longest);
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    for (size_t i = 0; i < s.n_series; i++)
        sweep_answer(&s, (tide_sweep_answer){.series = i,
                                             .budget_bytes = 5 << 20,
                                             .value = 1,
                                             .needs_bytes = 4 << 20,
                                             .next_value = 2,
                                             .next_bytes = 9 << 20});
    return s;
}

static void is_utf8(const char *text) {
    json_t *value = json_string(text); // refuses what is none
    assert_non_null(value);
    json_decref(value);
}

static void hostile_names(void **state) {
    (void)state;
    tide_sweep s = hostile();
    for (int f = 0; f < TIDE_N_REPORT_FORMATS; f++) {
        tide_text text = written(&s, (tide_report_format)f, NULL);
        is_utf8(text.data);
        // Data keep what stands there, pages do not let it turn the text that follows.
        if (f != TIDE_REPORT_CSV && f != TIDE_REPORT_JSON) assert_null(strstr(text.data, "\xE2\x80\xAE"));
        if (f == TIDE_REPORT_HTML || f == TIDE_REPORT_SVG) {
            assert_null(strstr(text.data, "<b>"));
            assert_null(strstr(text.data, "<i>"));
            assert_null(strstr(text.data, "<img"));
            assert_null(strstr(text.data, "</script>"));
            assert_int_equal(count(text.data, "</style>"), 1);
        }
        if (f == TIDE_REPORT_MARKDOWN) {
            assert_null(strstr(text.data, "| ]]>|"));
            assert_text_has(text.data, "| \\]\\]\\>\\|pipe\\`\\*\\_\\# ");
        }
        if (f == TIDE_REPORT_MARKDOWN || f == TIDE_REPORT_TEXT) assert_null(strchr(text.data, '\r'));
        tide_text_deinit(&text);
    }
    tide_sweep_deinit(&s);
}

/// One point, no point, no extent, only errors: something sensible in each format.
static void little_or_nothing(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep sweeps[4] = {sweep_open("N"), sweep_open("N"), sweep_open(""), sweep_open("N")};
    sweep_put(&sweeps[1], sweep_point("a", "N", 7, "", "search", 256));
    sweep_put(&sweeps[2], sweep_point("a", "", 0, "x=1x2", "search", 256));
    sweep_put(&sweeps[2], sweep_point("b", "", 0, "x=1x2", "search", 256));
    tide_sweep_point bad = sweep_point("a", "N", 7, "", "search", 256);
    bad.error = tide_host_strdup("no");
    sweep_put(&sweeps[3], bad);
    for (int i = 0; i < 4; i++) {
        assert_tide_ok(tide_sweep_sort(&sweeps[i], &err), &err);
        for (int f = 0; f < TIDE_N_REPORT_FORMATS; f++) {
            tide_text text = written(&sweeps[i], (tide_report_format)f, NULL);
            tide_text_deinit(&text);
        }
        tide_sweep_deinit(&sweeps[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences),
        cmocka_unit_test(names_that_tell_apart),
        cmocka_unit_test(the_same_in_every_format),
        cmocka_unit_test(curve_in_characters),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(little_or_nothing),
    };
    return cmocka_run_group_tests_name("reports_sweep", tests, tide_leak_setup, tide_leak_teardown);
}
