// SPDX-License-Identifier: MIT
//
// Reports in every format say the same numbers as the subject, escape every name, and are the same bytes for the same
// input. Goldens are recorded anew with TIDE_UPDATE_GOLDEN=1 in the environment.
#include "tests/golden.h"
#include "tests/reports/sample_subjects.h"

#include <inttypes.h>
#include <jansson.h>

#include "analysis/explain.h"
#include "core/base/utf8.h"

static void compare_golden(const char *name, const tide_text *got) {
    char below[128];
    snprintf(below, sizeof below, "tests/reports/golden/%s", name);
    compare_with_golden(below, got);
}

static void goldens(void **state) {
    (void)state;
    static const struct {
        const char *name;
        tide_subject *(*sample)(void);
        tide_report_format format;
    } cases[] = {
        {"small.csv", sample_small, TIDE_REPORT_CSV},     {"small.json", sample_small, TIDE_REPORT_JSON},
        {"small.md", sample_small, TIDE_REPORT_MARKDOWN}, {"small.txt", sample_small, TIDE_REPORT_TEXT},
        {"hostile.csv", sample_hostile, TIDE_REPORT_CSV}, {"hostile.md", sample_hostile, TIDE_REPORT_MARKDOWN},
        {"empty.csv", sample_empty, TIDE_REPORT_CSV},     {"empty.json", sample_empty, TIDE_REPORT_JSON},
        {"empty.txt", sample_empty, TIDE_REPORT_TEXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_subject *s = cases[i].sample();
        tide_text got = report_of(s, NULL, NULL, cases[i].format);
        compare_golden(cases[i].name, &got);
        tide_text_deinit(&got);
        tide_subject_destroy(s);
    }
}

// ---- CSV: a reader of its own, after RFC 4180 ----

enum { MAX_CELLS = 32, MAX_CELL_BYTES = 12000 };

/// One record; false at the end of the text.
static bool next_record(const char **p, char cells[MAX_CELLS][MAX_CELL_BYTES], int *n) {
    *n = 0;
    if (**p == '\0') return false;
    for (;;) {
        assert_in_range(*n, 0, MAX_CELLS - 1);
        size_t len = 0;
        const bool quoted = **p == '"';
        if (quoted) (*p)++;
        for (;; (*p)++) {
            assert_int_not_equal(**p, '\0');
            if (quoted && **p == '"') {
                if ((*p)[1] != '"') break;
                (*p)++;
            } else if (!quoted && (**p == ',' || **p == '\r')) {
                break;
            }
            assert_true(quoted || (**p != '"' && **p != '\n'));
            assert_true(len + 1 < MAX_CELL_BYTES);
            cells[*n][len++] = **p;
        }
        if (quoted) (*p)++;
        cells[(*n)++][len] = '\0';
        if (**p != ',') break;
        (*p)++;
    }
    assert_memory_equal(*p, "\r\n", 2);
    *p += 2;
    return true;
}

static int column_of(char cells[MAX_CELLS][MAX_CELL_BYTES], int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(cells[i], name) == 0) return i;
    fail_msg("no column %s", name);
    return -1;
}

static void csv_has_every_item_of_the_subject(void **state) {
    (void)state;
    tide_subject *samples[] = {sample_small(), sample_many(3000, 17), sample_one(), sample_hostile()};
    static char cells[MAX_CELLS][MAX_CELL_BYTES];
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        tide_text got = report_of(samples[s], NULL, NULL, TIDE_REPORT_CSV);
        const tide_items *items = tide_subject_items(samples[s]);
        const char *p = got.data;
        int n;
        assert_true(next_record(&p, cells, &n));
        const int width = n, id = column_of(cells, n, "id"), size = column_of(cells, n, "size_bytes");
        const int begin = column_of(cells, n, "begin_step"), end = column_of(cells, n, "end_step");
        const int place = column_of(cells, n, "place");
        uint32_t i = 0;
        for (; next_record(&p, cells, &n); i++) {
            assert_int_equal(n, width);
            assert_true(i < items->n);
            assert_int_equal(strtoull(cells[id], NULL, 10), tide_items_id(items, i));
            assert_int_equal(strtoull(cells[size], NULL, 10), tide_items_shape(items, i)->size_bytes);
            assert_int_equal(strtoll(cells[begin], NULL, 10), tide_items_begin(items, i));
            assert_int_equal(strtoll(cells[end], NULL, 10), tide_items_end(items, i));
            assert_int_equal(cells[place][0] == '\0', items->place[i] == TIDE_NO_OFFSET);
        }
        assert_int_equal(i, items->n);
        tide_text_deinit(&got);
        tide_subject_destroy(samples[s]);
    }
}

static void formulas_are_guarded_unless_names_are_to_be_exact(void **state) {
    (void)state;
    tide_subject *s = sample_hostile();
    tide_text guarded = report_of(s, NULL, NULL, TIDE_REPORT_CSV);
    const tide_report_options opt = {.exact_names = true};
    tide_text plain = report_of(s, NULL, &opt, TIDE_REPORT_CSV);
    assert_text_has(plain.data, ",\"=cmd|' /C calc'!A0\",");
    assert_text_has(guarded.data, "'=cmd|' /C calc'!A0");
    assert_text_has(guarded.data, "'@sum(1)");
    assert_null(strstr(guarded.data, ",=cmd"));
    assert_null(strstr(guarded.data, ",\"=cmd"));
    tide_text_deinit(&plain);
    tide_text_deinit(&guarded);
    tide_subject_destroy(s);
}

static void an_unknown_table_lists_those_there_are(void **state) {
    (void)state;
    tide_subject *s = sample_small();
    tide_error err = TIDE_ERROR_INIT;
    tide_text out = {0};
    const tide_report_options opt = {.table = "itmes"};
    assert_int_equal(tide_report_render(s, NULL, &opt, TIDE_REPORT_CSV, &out, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "itmes");
    assert_text_has(err.hint, "items");
    assert_text_has(err.hint, "peak_parts");
    tide_text_deinit(&out);
    tide_subject_destroy(s);
}

// ---- JSON ----

static json_int_t int_of(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v)) fail_msg("'%s' is no integer", key);
    return json_integer_value(v);
}

static json_int_t sum_of(const json_t *rows, const char *key) {
    json_int_t sum = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) sum += int_of(json_array_get(rows, i), key);
    return sum;
}

static json_t *json_of(tide_subject *a, tide_subject *b) {
    tide_text got = report_of(a, b, NULL, TIDE_REPORT_JSON);
    json_error_t where;
    json_t *doc = json_loadb(got.data, got.len, JSON_REJECT_DUPLICATES, &where);
    if (doc == NULL) fail_msg("line %d: %s", where.line, where.text);
    assert_int_equal(got.data[got.len - 1], '\n');
    assert_memory_equal(got.data, "{\n  \"schema\": \"tidemark.report\",\n  \"version\": 2,\n", 49);
    tide_text_deinit(&got);
    return doc;
}

/// Partition, operators and live items of the peak each sum to the same; so do items and curve.
static void json_sums_hold(void **state) {
    (void)state;
    tide_subject *samples[] = {sample_small(), sample_many(3000, 17), sample_one(), sample_hostile()};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        json_t *doc = json_of(samples[s], NULL);
        const json_t *side = json_array_get(json_object_get(doc, "sides"), 0);
        const json_t *peak = json_object_get(side, "peak");
        const tide_subject_facts *f = tide_subject_get_facts(samples[s]);
        assert_int_equal(int_of(peak, "bytes"), f->peak_bytes);
        assert_int_equal(sum_of(json_object_get(side, "peak_parts"), "bytes"), int_of(peak, "held_bytes"));
        assert_int_equal(sum_of(json_object_get(side, "peak_items"), "bytes"), f->peak_bytes);
        assert_int_equal(sum_of(json_object_get(side, "peak_by_operator"), "bytes"), f->peak_bytes);
        assert_int_equal(json_array_size(json_object_get(side, "items")), f->n_items);
        const json_t *curve = json_object_get(json_object_get(side, "curve"), "bytes");
        json_int_t highest = 0;
        for (size_t i = 0; i < json_array_size(curve); i++) {
            const json_int_t v = json_integer_value(json_array_get(curve, i));
            if (v > highest) highest = v;
        }
        assert_int_equal(highest, f->peak_bytes);
        assert_string_equal(json_string_value(json_object_get(side, "source")), "sample.json");
        json_decref(doc);
        tide_subject_destroy(samples[s]);
    }
}

static void unknown_is_null_and_never_zero(void **state) {
    (void)state;
    tide_subject *s = sample_small();
    json_t *doc = json_of(s, NULL);
    const json_t *side = json_array_get(json_object_get(doc, "sides"), 0);
    const json_t *kind = json_array_get(json_object_get(side, "kinds"), 0);
    assert_true(json_is_null(json_object_get(kind, "measured_bytes")));
    assert_true(json_is_null(json_object_get(kind, "difference_bytes")));
    assert_int_equal(int_of(kind, "predicted_bytes"), 3136 + 64);
    assert_true(json_is_null(json_object_get(side, "run")));
    assert_true(json_is_null(json_object_get(side, "fit")));
    assert_true(json_is_null(json_object_get(doc, "comparison")));
    json_decref(doc);
    tide_subject_destroy(s);
}

static void a_comparison_sums_to_the_change(void **state) {
    (void)state;
    tide_subject *a = sample_small(), *b = sample_changed();
    json_t *doc = json_of(a, b);
    const json_t *c = json_object_get(doc, "comparison");
    const json_int_t change = int_of(c, "change_bytes");
    assert_int_equal(change, int_of(c, "b_held_bytes") - int_of(c, "a_held_bytes"));
    assert_int_equal(sum_of(json_object_get(c, "change_by_operator"), "change_bytes"), change);
    assert_int_equal(sum_of(json_object_get(c, "change_by_kind"), "change_bytes"), change);
    assert_int_equal(int_of(c, "added"), 1);
    assert_int_equal(int_of(c, "removed"), 1);
    assert_int_equal(int_of(c, "resized"), 1);
    assert_int_equal(json_array_size(json_object_get(doc, "sides")), 2);
    json_decref(doc);
    tide_subject_destroy(a);
    tide_subject_destroy(b);
}

// ---- all formats ----

static bool is_utf8(const char *text) {
    for (const char *p = text; *p != '\0';) {
        uint32_t c;
        const size_t n = tide_utf8_decode(p, &c);
        if (n == 0) return false;
        p += n;
    }
    return true;
}

static void every_format_is_stable_and_utf8(void **state) {
    (void)state;
    tide_subject *(*const samples[])(void) = {sample_small, sample_hostile, sample_empty, sample_one};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        for (int f = 0; f < TIDE_N_REPORT_FORMATS; f++) {
            tide_subject *a = samples[s](), *b = samples[s]();
            tide_text one = report_of(a, NULL, NULL, (tide_report_format)f);
            tide_text two = report_of(b, NULL, NULL, (tide_report_format)f);
            assert_true(one.len > 0 && one.len == two.len);
            assert_memory_equal(one.data, two.data, one.len);
            assert_true(is_utf8(one.data));
            assert_null(strstr(one.data, "/some/where")); // no path of this machine
            if (f != TIDE_REPORT_CSV) assert_null(strchr(one.data, '\033'));
            tide_text_deinit(&one);
            tide_text_deinit(&two);
            tide_subject_destroy(a);
            tide_subject_destroy(b);
        }
    }
}

static void a_capacity_is_answered(void **state) {
    (void)state;
    tide_subject *s = sample_small();
    const tide_report_options enough = {.capacity_bytes = 1 << 20}, little = {.capacity_bytes = 1024};
    tide_text yes = report_of(s, NULL, &enough, TIDE_REPORT_TEXT), no = report_of(s, NULL, &little, TIDE_REPORT_TEXT);
    assert_text_has(yes.data, "Will it fit            yes");
    assert_text_has(no.data, "Will it fit            no");
    tide_text_deinit(&yes);
    tide_text_deinit(&no);
    tide_subject_destroy(s);
}

static void formats_are_told_by_the_ending(void **state) {
    (void)state;
    static const struct {
        const char *path;
        tide_report_format format;
    } known[] = {{"a.html", TIDE_REPORT_HTML}, {"b/c.d/a.HTM", TIDE_REPORT_HTML}, {"x.csv", TIDE_REPORT_CSV},
                 {"x.json", TIDE_REPORT_JSON}, {"x.md", TIDE_REPORT_MARKDOWN},    {"x.markdown", TIDE_REPORT_MARKDOWN},
                 {"x.svg", TIDE_REPORT_SVG},   {"x.txt", TIDE_REPORT_TEXT}};
    tide_report_format got;
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_tide_ok(tide_report_format_of_path(known[i].path, &got, &err), &err);
        assert_int_equal(got, known[i].format);
    }
    static const char *const unknown[] = {"x.docx", "html", "dir.html/file", ""};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_int_equal(tide_report_format_of_path(unknown[i], &got, &err), TIDE_ERR_INVALID);
        assert_text_has(err.hint, ".html .csv .json .md .svg .txt");
        tide_error_clear(&err);
    }
}

/// Whatever allocation fails, the report says so and nothing leaks.
static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    for (int f = 0; f < TIDE_N_REPORT_FORMATS; f++) {
        for (int64_t n = 0;; n += 1 + n / 16) {
            tide_subject *a = sample_small(), *b = sample_changed();
            tide_error err = TIDE_ERROR_INIT;
            tide_text out = {0};
            tide_host_fail_after(n);
            const tide_status st = tide_report_render(a, b, NULL, (tide_report_format)f, &out, &err);
            tide_host_fail_after(-1);
            tide_text_deinit(&out);
            tide_subject_destroy(a);
            tide_subject_destroy(b);
            if (st == TIDE_OK) break;
            assert_int_equal(st, TIDE_ERR_NOMEM);
            assert_true(n < 100000);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens),
        cmocka_unit_test(csv_has_every_item_of_the_subject),
        cmocka_unit_test(formulas_are_guarded_unless_names_are_to_be_exact),
        cmocka_unit_test(an_unknown_table_lists_those_there_are),
        cmocka_unit_test(json_sums_hold),
        cmocka_unit_test(unknown_is_null_and_never_zero),
        cmocka_unit_test(a_comparison_sums_to_the_change),
        cmocka_unit_test(every_format_is_stable_and_utf8),
        cmocka_unit_test(a_capacity_is_answered),
        cmocka_unit_test(formats_are_told_by_the_ending),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
