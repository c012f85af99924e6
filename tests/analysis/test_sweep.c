// SPDX-License-Identifier: MIT
//
// The table of a sweep: order, series, parts put together, and the document there and back.
#include "tests/analysis/sweep_fixture.h"

#include "analysis/sweep_tables.h"

static void sorted_into_series(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_open("N");
    static const uint64_t values[] = {10, 9, 100, 1};
    for (size_t i = 0; i < 4; i++) {
        sweep_put(&s, sweep_point("b", "N", values[i], "S=128", "naive", 256));
        sweep_put(&s, sweep_point("b", "N", values[i], "S=64", "naive", 256));
        sweep_put(&s, sweep_point("b", "N", values[i], "S=64", "naive", 64));
        sweep_put(&s, sweep_point("a", "N", values[i], "", "search", 256));
        sweep_put(&s, sweep_point("a", "N", values[i], "", "greedy", 256));
    }
    sweep_put(&s, sweep_point("a", "N", 9, "", "search", 256)); // there already
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    assert_int_equal(s.n, 20);
    assert_int_equal(s.n_series, 5);
    static const struct {
        const char *model, *sizes, *strategy;
        uint64_t align;
    } want[] = {{"a", "", "greedy", 256},
                {"a", "", "search", 256},
                {"b", "S=64", "naive", 64},
                {"b", "S=64", "naive", 256},
                {"b", "S=128", "naive", 256}};
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(s.series[i].model, want[i].model);
        assert_string_equal(s.series[i].sizes, want[i].sizes);
        assert_string_equal(s.series[i].strategy, want[i].strategy);
        assert_int_equal(s.series[i].align_bytes, want[i].align);
        assert_int_equal(s.series[i].from, i * 4);
        assert_int_equal(s.series[i].n, 4);
        size_t found = 99;
        assert_true(tide_sweep_find(&s, want[i].model, want[i].sizes, want[i].strategy, want[i].align, &found));
        assert_int_equal(found, i);
        assert_int_equal(s.points[i * 4].value, 1);
        assert_int_equal(s.points[i * 4 + 3].value, 100);
        assert_ptr_equal(tide_sweep_at(&s, i, 10), &s.points[i * 4 + 2]);
        assert_null(tide_sweep_at(&s, i, 11));
    }
    size_t none;
    assert_false(tide_sweep_find(&s, "a", "S=64", "search", 256, &none));
    assert_null(tide_sweep_at(&s, 5, 10));
    tide_sweep_deinit(&s);
}

/// A point with figures stays where another process has none for it.
static void figures_win_over_errors(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_open("N");
    tide_sweep_point bad = sweep_point("a", "N", 4, "", "search", 256);
    bad.error = tide_host_strdup("no");
    sweep_put(&s, bad);
    sweep_put(&s, sweep_point("a", "N", 4, "", "search", 256));
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    assert_int_equal(s.n, 1);
    assert_null(s.points[0].error);
    tide_sweep_deinit(&s);
}

/// An extent whose name holds blanks and a '=' is taken off all the same.
static void names_with_blanks(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_open("past + 1=x");
    sweep_put(&s, sweep_point("a", "past + 1=x", 4, "b c=2", "search", 256));
    sweep_put(&s, sweep_point("a", "past + 1=x", 5, "b c=2", "search", 256));
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    assert_int_equal(s.n_series, 1);
    assert_string_equal(s.series[0].sizes, "b c=2");
    tide_sweep_deinit(&s);
}

static char *text_of(const tide_sweep *s) {
    tide_text text = {0};
    tide_sweep_write_json(s, true, &text);
    assert_false(text.failed);
    return text.data; // tide_host_free
}

static tide_status read_text(const char *text, tide_sweep *out, tide_error *err) {
    json_error_t at;
    json_t *doc = json_loads(text, 0, &at);
    assert_non_null(doc);
    const tide_status st = tide_sweep_of_json(doc, "old.json", out, err);
    json_decref(doc);
    return st;
}

static tide_sweep everything(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_small();
    tide_sweep_point bad = sweep_point("nets/a.onnx", "N", 16, "", "search", 256);
    bad.error = tide_host_strdup("\"quoted\"\nand broken");
    bad.rank = 3;
    sweep_put(&s, bad);
    tide_sweep_point run = sweep_point("nets/\xC3\xA9.onnx", "N", 16, "x=1x2", "naive", 64);
    run.measured = true;
    run.measured_peak_bytes = 12345;
    run.time_ns = 9;
    sweep_put(&s, run);
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    s.n_ranks = 4;
    sweep_answer(&s, (tide_sweep_answer){.series = 1,
                                         .budget_bytes = 1,
                                         .none_fits = true,
                                         .next_value = 16,
                                         .next_bytes = 99,
                                         .tried = true,
                                         .next_ran = true});
    sweep_answer(&s, (tide_sweep_answer){.series = 0,
                                         .budget_bytes = 1 << 30,
                                         .is_open = true,
                                         .value = 8,
                                         .needs_bytes = 17,
                                         .tried = true,
                                         .ran = true});
    return s;
}

static void there_and_back(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = everything(), back;
    char *text = text_of(&s);
    assert_tide_ok(read_text(text, &back, &err), &err);
    char *again = text_of(&back);
    assert_string_equal(text, again);
    assert_int_equal(back.n, 6);
    assert_int_equal(back.n_answers, 3);
    assert_int_equal(back.n_ranks, 4);
    assert_true(back.answers[1].tried && back.answers[1].ran && !back.answers[1].next_ran);
    assert_true(back.answers[2].tried && back.answers[2].next_ran);
    assert_false(back.answers[0].tried);
    assert_string_equal(back.points[4].error, "\"quoted\"\nand broken");
    assert_int_equal(back.points[5].measured_peak_bytes, 12345);
    tide_host_free(text);
    tide_host_free(again);
    tide_sweep_deinit(&s);
    tide_sweep_deinit(&back);
}

/// A document of the small sweep with `from` replaced: the message has `says`, and the place is `place`.
static void refused(const char *from, const char *to, const char *says, const char *place) {
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_small(), back;
    char *text = text_of(&s);
    char *at = strstr(text, from);
    if (at == NULL) fail_msg("no '%s' in the document", from);
    tide_text changed = {0};
    tide_text_add_n(&changed, text, (size_t)(at - text));
    tide_text_add(&changed, to);
    tide_text_add(&changed, at + strlen(from));
    if (read_text(changed.data, &back, &err) != TIDE_ERR_BAD_INPUT) fail_msg("'%s' was taken", to);
    if (strstr(err.msg, says) == NULL) fail_msg("'%s' does not say '%s'", err.msg, says);
    if (strcmp(err.where, place) != 0) fail_msg("'%s' is at '%s', not '%s'", to, err.where, place);
    tide_text_deinit(&changed);
    tide_host_free(text);
    tide_sweep_deinit(&s);
}

static void bad_documents(void **state) {
    (void)state;
    static const char *const cases[][4] = {
        {"\"tidemark.sweep\"", "\"tidemark.plan\"", "is a 'tidemark.plan': want 'tidemark.sweep'", "old.json: schema"},
        {"\"version\": 1", "\"version\": 2", "want 1", "old.json: version"},
        {"\"version\": 1", "\"version\": \"1\"", "'version' is a string: want an integer", "old.json: version"},
        {"\"n_ranks\": 1", "\"n_ranks\": 0", "'n_ranks' is 0", "old.json: n_ranks"},
        {"\"n_ranks\": 1", "\"n_ranks\": 4294967296", "want at most 4294967295", "old.json: n_ranks"},
        {"\"extent\": \"N\"", "\"extend\": \"N\"", "the unknown key 'extend'", "old.json"},
        {"\"extent\": \"N\"", "\"extent\": 5", "'extent' is an integer: want a string", "old.json: extent"},
        {"\"extent\": \"N\"", "\"extent\": \"M\"", "'sizes' does not begin with 'M=1'", "old.json: points[0].sizes"},
        {"\"value\": 1,", "\"value\": null,", "'value' is null: want an integer", "old.json: points[0].value"},
        {"\"value\": 1,", "\"value\": -1,", "'value' is -1: want 0 or more", "old.json: points[0].value"},
        {"\"value\": 1,", "\"value\": 1.5,", "'value' is a number with a fraction", "old.json: points[0].value"},
        {"\"value\": 1,", "", "the key 'value' is missing", "old.json: points[0].value"},
        {"\"planned_bytes\": 1048576", "\"planned_bytes\": 1048577", "is not the sum",
         "old.json: points[0].total_bytes"},
        {"\"planned_bytes\": 1048576", "\"planned_byte\": 1048576", "points[0] has the unknown key 'planned_byte'",
         "old.json: points[0]"},
        {"\"proved_bytes\": 1048576", "\"proved_bytes\": 1", "'proven' contradicts", "old.json: points[0].proven"},
        {"\"proven\": true", "\"proven\": 1", "'proven' is an integer: want true or false",
         "old.json: points[0].proven"},
        {"\"align_bytes\": 256", "\"align_bytes\": 257", "no power of two", "old.json: points[0].align_bytes"},
        {"\"error\": null", "\"error\": \"no\"", "'total_bytes' is an integer: want null",
         "old.json: points[0].total_bytes"},
        {"\"error\": null", "\"error\": 1", "'error' is an integer: want a string", "old.json: points[0].error"},
        {"\"time_ns\": null", "\"time_ns\": 4", "'time_ns' is an integer: want null", "old.json: points[0].time_ns"},
        {"\"rank\": 0", "\"rank\": 4294967296", "want at most 4294967295", "old.json: points[0].rank"},
        {"\"sizes\": \"N=1\"", "\"sizes\": \"N=11\"", "does not begin with 'N=1'", "old.json: points[0].sizes"},
        {"\"points\": [", "\"points\": [7,", "points[0] is an integer: want an object", "old.json: points[0]"},
        {"\"from\": 0", "\"from\": 1", "series[0] is not what", "old.json: series[0]"},
        {"\"n\": 4", "\"n\": 3", "series[0] is not what", "old.json: series[0]"},
        {"\"series\": 0", "\"series\": 1", "there are 1", "old.json: answers[0].series"},
        {"\"none_fits\": false", "\"none_fits\": null", "'none_fits' is null: want true or false",
         "old.json: answers[0].none_fits"},
        {"\"is_open\": false", "\"is_open\": true", "'next_value' is an integer: want null",
         "old.json: answers[0].next_value"},
        {"\"process_bytes\": null", "\"process_bytes\": 5", "less than total_bytes",
         "old.json: points[0].process_bytes"},
        {"\"budget_bytes\": 8388608", "\"budget_bytes\": 1", "does not fit", "old.json: answers[0].needs_bytes"},
        {"\"budget_bytes\": 8388608", "\"budget_bytes\": 83886080", "fits", "old.json: answers[0].next_bytes"},
        {"\"sizes\": \"N=1\",", "\"sizes\": \"N=1\",\"sizes2\": 1,", "the unknown key 'sizes2'", "old.json: points[0]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
    // The same point twice.
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_small(), back;
    char *text = text_of(&s);
    json_t *doc = json_loads(text, 0, NULL), *points = json_object_get(doc, "points");
    json_array_append(points, json_array_get(points, 0));
    assert_tide_status(tide_sweep_of_json(doc, "old.json", &back, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "there twice");
    json_decref(doc);
    tide_host_free(text);
    tide_sweep_deinit(&s);
}

static void parts_make_the_whole(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep whole = everything(), parts[3], got;
    whole.n_ranks = 3;
    for (int k = 0; k < 3; k++) {
        parts[k] = sweep_open("N");
        for (size_t i = (size_t)k; i < whole.n; i += 3) {
            tide_sweep_point p = whole.points[i];
            p.model = tide_host_strdup(p.model);
            p.sizes = tide_host_strdup(p.sizes);
            p.strategy = tide_host_strdup(p.strategy);
            p.error = p.error != NULL ? tide_host_strdup(p.error) : NULL;
            sweep_put(&parts[k], p);
        }
        assert_tide_ok(tide_sweep_sort(&parts[k], &err), &err);
    }
    // Part 2 holds points 2 and 5, so both series; part 0 has the first alone.
    sweep_answer(&parts[0], whole.answers[0]);
    sweep_answer(&parts[2], whole.answers[2]);
    sweep_answer(&parts[2], whole.answers[1]);
    assert_tide_ok(tide_sweep_merge(parts, 3, &got, &err), &err);
    char *want = text_of(&whole), *is = text_of(&got);
    assert_string_equal(want, is);
    tide_host_free(want);
    tide_host_free(is);
    for (int k = 0; k < 3; k++) assert_null(parts[k].points);
    tide_sweep_deinit(&whole);
    tide_sweep_deinit(&got);
}

static void parts_of_other_sweeps(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep parts[2] = {sweep_small(), sweep_open("M")}, got;
    assert_tide_status(tide_sweep_merge(parts, 2, &got, &err), TIDE_ERR_INCOMPARABLE);
    assert_null(parts[0].points);
    assert_null(got.points);
}

static void nothing_at_all(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_open(""), back;
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    char *text = text_of(&s);
    assert_tide_ok(read_text(text, &back, &err), &err);
    assert_int_equal(back.n + back.n_series + back.n_answers, 0);
    tide_host_free(text);
    tide_sweep_deinit(&s);
    tide_sweep_deinit(&back);
}

/// Whichever allocation fails, nothing is lost and nothing crashes.
static void without_memory(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 0; n < 400 && !done; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_sweep s = everything(), back = {0}, got = {0};
        char *text = text_of(&s);
        tide_host_fail_after(n);
        tide_status st = read_text(text, &back, &err);
        if (st == TIDE_OK) st = tide_sweep_merge(&back, 1, &got, &err);
        tide_host_fail_after(-1);
        done = st == TIDE_OK;
        if (!done) assert_int_equal(st, TIDE_ERR_NOMEM);
        tide_host_free(text);
        tide_sweep_deinit(&s);
        if (back.points != NULL) tide_sweep_deinit(&back);
        tide_sweep_deinit(&got);
    }
    assert_true(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted_into_series),    cmocka_unit_test(figures_win_over_errors),
        cmocka_unit_test(names_with_blanks),     cmocka_unit_test(there_and_back),
        cmocka_unit_test(bad_documents),         cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(parts_of_other_sweeps), cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests_name("sweep", tests, tide_leak_setup, tide_leak_teardown);
}
