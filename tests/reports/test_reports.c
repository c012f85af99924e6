// SPDX-License-Identifier: MIT
//
// CSV and JSON reports, and what holds for every format: names of formats, stable bytes, memory that runs out. Goldens
// are recorded anew with TIDE_UPDATE_GOLDEN=1 in the environment.
#include "planner/planner.h"
#include "tests/golden.h"
#include "tests/reports/sample_reports.h"

#include <jansson.h>
#include <locale.h>

static void compare_golden(const char *name, const tide_text *got) {
    char below[128];
    snprintf(below, sizeof below, "tests/reports/golden/%s", name);
    compare_with_golden(below, got);
}

static void goldens(void **state) {
    (void)state;
    static const struct {
        const char *name;
        tide_timeline *(*sample)(void);
        tide_report_format format;
    } cases[] = {
        {"small.csv", sample_small, TIDE_REPORT_CSV},
        {"small.json", sample_small, TIDE_REPORT_JSON},
        {"hostile.csv", sample_hostile_names, TIDE_REPORT_CSV},
        {"hostile.json", sample_hostile_names, TIDE_REPORT_JSON},
        {"empty.csv", sample_empty, TIDE_REPORT_CSV},
        {"empty.json", sample_empty, TIDE_REPORT_JSON},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_timeline *tl = cases[i].sample();
        tide_text got = report_of(tl, cases[i].format);
        compare_golden(cases[i].name, &got);
        tide_text_deinit(&got);
        sample_destroy(tl);
    }
}

// ---- CSV: a reader of its own, after RFC 4180 ----

enum { MAX_CELLS = 32, MAX_CELL_BYTES = 512 };

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

static void csv_reads_back_as_the_timeline(void **state) {
    (void)state;
    tide_timeline *samples[] = {sample_small(), sample_many(3000, 17), sample_one()};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        tide_timeline *tl = samples[s];
        tide_text got = report_of(tl, TIDE_REPORT_CSV);
        static char cells[MAX_CELLS][MAX_CELL_BYTES];
        int n;
        const char *p = got.data;
        assert_true(next_record(&p, cells, &n));
        assert_int_equal(n, 16);
        assert_string_equal(cells[5], "size_bytes");
        assert_string_equal(cells[7], tl->axis == TIDE_AXIS_STEPS ? "begin_step" : "begin_ns");
        size_t i = 0;
        for (; next_record(&p, cells, &n); i++) {
            const tide_timeline_item *item = &tl->items[i];
            assert_int_equal(n, 16);
            assert_int_equal(strtoull(cells[0], NULL, 10), item->id);
            assert_string_equal(cells[1], item->name);
            assert_int_equal(strtoull(cells[5], NULL, 10), item->size_bytes);
            assert_int_equal(strtoll(cells[7], NULL, 10), item->begin);
            assert_int_equal(strtoll(cells[8], NULL, 10), item->end);
            assert_int_equal(cells[12][0] == '\0', item->offset_bytes == TIDE_NO_OFFSET);
        }
        assert_int_equal(i, tl->n_items);
        tide_text_deinit(&got);
        sample_destroy(tl);
    }
}

/// What lies inside another tensor says so in every format: its bytes are not to be added to the other's.
static void aliases_say_in_what_they_lie(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *strategy;
    tide_memory_plan *plan;
    tide_timeline *tl;
    static const char *const names[] = {"a, whole", "half", "b"};
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s", names[i]);
        const tide_lifetime item = {.name = name,
                                    .size_bytes = i == 1 ? 64 : 128,
                                    .align_bytes = 1,
                                    .begin_step = i,
                                    .end_step = 3,
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .device = TIDE_CPU};
        assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    }
    assert_tide_ok(tide_lifetimes_alias(&lt, 1, TIDE_ALIAS_SLICE, 0, 64, &err), &err);
    assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err);
    assert_tide_ok(tide_timeline_from_plan(plan, false, &tl, &err), &err);
    assert_int_equal(tl->peak_bytes, 256);
    tide_text csv = report_of(tl, TIDE_REPORT_CSV), json = report_of(tl, TIDE_REPORT_JSON);
    tide_text html = report_of(tl, TIDE_REPORT_HTML);
    assert_text_has(csv.data, "\r\n0,\"a, whole\",,Workspace,intermediate,128,128,0,3,0,0,,0,1,,\r\n");
    assert_text_has(csv.data, ",64,1,slice,\"a, whole\"\r\n");
    json_t *doc = json_loadb(json.data, json.len, 0, NULL);
    json_t *items = json_object_get(doc, "items");
    assert_true(json_is_null(json_object_get(json_array_get(items, 0), "alias")));
    assert_true(json_is_null(json_object_get(json_array_get(items, 0), "inside")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(items, 1), "alias")), "slice");
    assert_string_equal(json_string_value(json_object_get(json_array_get(items, 1), "inside")), "a, whole");
    assert_text_has(html.data, "<tr><td>half <small>slice in a, whole</small><td>");
    json_decref(doc);
    tide_text_deinit(&csv);
    tide_text_deinit(&json);
    tide_text_deinit(&html);
    tide_timeline_destroy(tl);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

// ---- JSON ----

static json_int_t int_of(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v)) fail_msg("'%s' is no integer", key);
    return json_integer_value(v);
}

static void json_reads_back_as_the_timeline(void **state) {
    (void)state;
    tide_timeline *samples[] = {sample_small(), sample_many(3000, 17), sample_one(), sample_empty()};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        tide_timeline *tl = samples[s];
        tide_text got = report_of(tl, TIDE_REPORT_JSON);
        assert_memory_equal(got.data, "{\n  \"schema\": \"tidemark.report\",\n  \"version\": 1,\n", 49);
        assert_int_equal(got.data[got.len - 1], '\n');
        json_error_t where;
        json_t *doc = json_loadb(got.data, got.len, 0, &where);
        if (doc == NULL) fail_msg("line %d: %s", where.line, where.text);
        assert_int_equal(int_of(json_object_get(doc, "peak"), "bytes"), tl->peak_bytes);
        assert_int_equal(int_of(json_object_get(doc, "peak"), "t"), tl->peak_t);
        assert_int_equal(json_is_null(json_object_get(doc, "plan")), !tl->has_plan);
        const json_t *items = json_object_get(doc, "items"), *curve = json_object_get(doc, "curve");
        assert_int_equal(json_array_size(items), tl->n_items);
        assert_int_equal(json_array_size(curve), tl->n_points);
        for (size_t i = 0; i < tl->n_items; i++) {
            const json_t *item = json_array_get(items, i);
            assert_string_equal(json_string_value(json_object_get(item, "name")), tl->items[i].name);
            assert_int_equal(int_of(item, "size_bytes"), tl->items[i].size_bytes);
            assert_int_equal(int_of(item, "begin"), tl->items[i].begin);
            assert_int_equal(int_of(item, "end"), tl->items[i].end);
        }
        for (size_t i = 0; i < tl->n_points; i++)
            assert_int_equal(int_of(json_array_get(curve, i), "bytes"), tl->curve[i].bytes);
        json_decref(doc);
        tide_text_deinit(&got);
        sample_destroy(tl);
    }
}

static void unknown_is_null_and_never_zero(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tide_text got = report_of(tl, TIDE_REPORT_JSON);
    json_t *doc = json_loadb(got.data, got.len, 0, NULL);
    const json_t *kinds = json_object_get(doc, "kinds");
    assert_true(json_is_null(json_object_get(json_array_get(kinds, 0), "measured_bytes")));
    assert_true(json_is_null(json_object_get(json_array_get(kinds, 0), "difference_bytes")));
    assert_int_equal(int_of(json_array_get(kinds, 0), "predicted_bytes"), 4096);
    assert_int_equal(int_of(json_array_get(kinds, 1), "difference_bytes"), 0);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(doc, "items"), 9), "offset_bytes")));
    json_decref(doc);
    tide_text_deinit(&got);
    sample_destroy(tl);
}

static void pools_are_in_the_json(void **state) {
    (void)state;
    tide_timeline *tl = sample_pools();
    tide_text got = report_of(tl, TIDE_REPORT_JSON);
    json_t *doc = json_loadb(got.data, got.len, 0, NULL);
    const json_t *pools = json_object_get(doc, "pools");
    assert_int_equal(json_array_size(pools), 3);
    assert_int_equal(int_of(json_array_get(pools, 1), "size_bytes"), 262144);
    assert_int_equal(int_of(json_array_get(pools, 1), "n_members"), 3);
    json_decref(doc);
    tide_text_deinit(&got);
    sample_pools_destroy(tl);
}

// ---- every format ----

static void the_ending_says_the_format(void **state) {
    (void)state;
    static const struct {
        const char *path;
        tide_status status;
        tide_report_format format;
    } cases[] = {
        {"a.html", TIDE_OK, TIDE_REPORT_HTML},
        {"dir.csv/a.HTM", TIDE_OK, TIDE_REPORT_HTML},
        {"/x/y.b.csv", TIDE_OK, TIDE_REPORT_CSV},
        {"a.json", TIDE_OK, TIDE_REPORT_JSON},
        {"a.pdf", TIDE_ERR_INVALID, TIDE_REPORT_HTML},
        {"html", TIDE_ERR_INVALID, TIDE_REPORT_HTML},
        {"a.html/b", TIDE_ERR_INVALID, TIDE_REPORT_HTML},
        {"", TIDE_ERR_INVALID, TIDE_REPORT_HTML},
        {"a.", TIDE_ERR_INVALID, TIDE_REPORT_HTML},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_report_format format = TIDE_REPORT_HTML;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_report_format_of_path(cases[i].path, &format, &err), cases[i].status);
        assert_int_equal(format, cases[i].format);
        if (cases[i].status != TIDE_OK) assert_text_has(err.hint, ".html, .htm, .csv or .json");
    }
}

static void equal_input_gives_equal_bytes(void **state) {
    (void)state;
    tide_timeline *a = sample_many(2500, 6), *b = sample_many(2500, 6);
    for (int format = TIDE_REPORT_HTML; format <= TIDE_REPORT_JSON; format++) {
        tide_text one = report_of(a, (tide_report_format)format), two = report_of(b, (tide_report_format)format);
        assert_int_equal(one.len, two.len);
        assert_memory_equal(one.data, two.data, one.len);
        tide_text_deinit(&one);
        tide_text_deinit(&two);
    }
    sample_destroy(a);
    sample_destroy(b);
}

/// A country with a decimal comma must not change a byte. Skipped where the system has no such locale.
static void the_locale_does_not_matter(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tide_text before = report_of(tl, TIDE_REPORT_HTML);
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    const char *set = NULL;
    for (size_t i = 0; set == NULL && i < sizeof locales / sizeof locales[0]; i++) set = setlocale(LC_ALL, locales[i]);
    if (set == NULL) print_message("[  SKIPPED ] no locale with a decimal comma is here\n");
    tide_text after = report_of(tl, TIDE_REPORT_HTML);
    setlocale(LC_ALL, "C");
    assert_string_equal(before.data, after.data);
    tide_text_deinit(&before);
    tide_text_deinit(&after);
    sample_destroy(tl);
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    tide_timeline *tl = sample_pools();
    for (int format = TIDE_REPORT_HTML; format <= TIDE_REPORT_JSON; format++) {
        tide_status st = TIDE_ERR_NOMEM;
        int n = 0;
        for (; st != TIDE_OK && n < 1000; n++) {
            tide_text got = {0};
            tide_error err = TIDE_ERROR_INIT;
            tide_host_fail_after(n);
            st = tide_report_render(tl, (tide_report_format)format, &got, &err);
            tide_host_fail_after(-1);
            tide_text_deinit(&got);
            assert_true(st == TIDE_OK || st == TIDE_ERR_NOMEM);
            if (st != TIDE_OK) assert_text_has(err.msg, "no memory");
        }
        assert_in_range(n, 3, 999);
    }
    sample_pools_destroy(tl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens), // a difference leaks its texts, no more
        tide_unit_test(csv_reads_back_as_the_timeline),
        tide_unit_test(aliases_say_in_what_they_lie),
        tide_unit_test(json_reads_back_as_the_timeline),
        tide_unit_test(unknown_is_null_and_never_zero),
        tide_unit_test(pools_are_in_the_json),
        tide_unit_test(the_ending_says_the_format),
        tide_unit_test(equal_input_gives_equal_bytes),
        tide_unit_test(the_locale_does_not_matter),
        tide_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
