// SPDX-License-Identifier: MIT
//
// Baseline files that are refused: each says why, where and how a good one is made, and nothing is kept of them.
#include "tests/gate/case_fixture.h"

static tide_gate_baseline read_text(const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    char path[256];
    tide_gate_baseline b;
    write_temp("baseline.json", text, path, sizeof path);
    assert_tide_ok(tide_gate_baseline_read(path, &b, &err), &err);
    assert_string_equal(b.path, path);
    assert_int_equal(remove(path), 0);
    return b;
}

static void assert_refused_file(const char *text, const char *why, const char *where) {
    tide_error err = TIDE_ERROR_INIT;
    char path[256];
    tide_gate_baseline b;
    write_temp("bad.json", text, path, sizeof path);
    assert_tide_status(tide_gate_baseline_read(path, &b, &err), TIDE_ERR_INCOMPARABLE);
    assert_int_equal(err.status, TIDE_ERR_INCOMPARABLE);
    assert_text_has(err.msg, why);
    assert_text_has(err.msg, path);
    if (where != NULL) assert_text_has(err.where, where);
    assert_text_has(err.hint, "--update-baseline --reason");
    assert_null(b.path);
    assert_int_equal(remove(path), 0);
}

#define HEAD "{\"schema\": \"tidemark.baseline\", \"version\": 2, \"updates\": []"
#define CASE_HEAD "{\"key\": \"k\", \"model\": \"\", \"signature\": \"\", \"inputs\": \"\", \"settings\": {}"
#define PEAK "\"peak\": {\"step\": \"\", \"held_bytes\": 1, \"holes_bytes\": 1}"
#define REST PEAK ", \"steps\": [], \"tensors\": []}"

static void no_baseline(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_baseline b;
    char path[256];
    temp_file("nowhere.json", path, sizeof path);
    assert_tide_status(tide_gate_baseline_read(path, &b, &err), TIDE_ERR_INCOMPARABLE);
    assert_text_has(err.msg, path);
    assert_text_has(err.hint, "--update-baseline --reason");
    assert_refused_file("", "it is empty", NULL);
    assert_refused_file(" \n\t ", "it is empty", NULL);
    assert_refused_file("{\n  \"schema\" 1}", "cannot compare", ":2:");
    assert_refused_file("[1, 2]", "the document is a list: want an object", NULL);
    assert_refused_file("{}", "the key 'schema' is missing", ": schema");
    assert_refused_file("{\"schema\": \"tidemark.plan\", \"version\": 1}", "is a 'tidemark.plan'", ": schema");
    assert_refused_file("{\"schema\": \"tidemark.baseline\"}", "the key 'version' is missing", ": version");
    assert_refused_file("{\"schema\": \"tidemark.baseline\", \"version\": 3}",
                        "version 3 of 'tidemark.baseline' is not known here: want 1 to 2", ": version");
    assert_refused_file("{\"schema\": \"tidemark.baseline\", \"version\": 1}", "the key 'updates' is missing",
                        ": updates");
    assert_refused_file(HEAD "}", "the key 'cases' is missing", ": cases");
    assert_refused_file(HEAD ", \"cases\": [], \"cases\": []}", "duplicate", ":1:");
    assert_refused_file("{\"schema\": \"tidemark.baseline\", \"version\": 1, \"updates\": [{}], \"cases\": []}",
                        "the key 'date' is missing", ": updates[0].date");
    assert_refused_file("{\"schema\": \"tidemark.baseline\", \"version\": 1, \"updates\": [{\"date\": \"d\", "
                        "\"by\": \"b\", \"reason\": \"r\", \"changed\": [1]}], \"cases\": []}",
                        "changed[0] is an integer: want a string", ": updates[0].changed");
}

static void cases_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why, *where;
    } bad[] = {
        {"7", "cases[0] is an integer: want an object", "cases[0]"},
        {"{\"model\": \"m\"}", "the key 'key' is missing", "cases[0].key"},
        {"{\"key\": \"\"}", "the key of a case is empty", "cases[0].key"},
        {"{\"key\": 3}", "'key' is not a text", "cases[0].key"},
        {CASE_HEAD "}", "the key 'figures' is missing", "cases[0].figures"},
        {CASE_HEAD ", \"figures\": {\"planed_bytes\": 1}, " REST, "planed_bytes", "cases[0].figures.planed_bytes"},
        {CASE_HEAD ", \"figures\": {\"planned_bytes\": -1}, " REST, "not a whole number", "figures.planned_bytes"},
        {CASE_HEAD ", \"figures\": {\"planned_bytes\": 1.5}, " REST, "not a whole number", "figures.planned_bytes"},
        {CASE_HEAD ", \"figures\": {\"planned_bytes\": \"99999999999999999999\"}, " REST, "not a whole number", NULL},
        {CASE_HEAD ", \"figures\": {\"planned_bytes\": \"1 \"}, " REST, "not a whole number", NULL},
        {CASE_HEAD ", \"figures\": {\"saving\": \"much\"}, " REST, "'saving' is not a number", "figures.saving"},
        {CASE_HEAD ", \"figures\": {\"saving\": 1e300}, " REST, "out of range", "figures.saving"},
        {CASE_HEAD ", \"figures\": {\"kind_peak_bytes\": 5}, " REST, "not an object of kinds", "kind_peak_bytes"},
        {CASE_HEAD ", \"figures\": {\"kind_peak_bytes\": {\"Heap\": 5}}, " REST, "'Heap' is no memory kind", NULL},
        {CASE_HEAD ", \"figures\": {\"kind_peak_bytes.Workspace\": 5}, " REST, "stand inside", NULL},
        {CASE_HEAD ", \"figures\": {}, \"peak\": 4}", "'peak' is not an object", "cases[0].peak"},
        {CASE_HEAD ", \"figures\": {}, " PEAK "}", "the key 'steps' is missing", "cases[0].steps"},
        {CASE_HEAD ", \"figures\": {}, " PEAK ", \"steps\": [4]}", "steps[0] is not an object", "cases[0].steps[0]"},
        {CASE_HEAD ", \"figures\": {}, " PEAK ", \"steps\": [], \"tensors\": [{\"name\": \"a\", \"bytes\": 1}]}",
         "'kind' is missing", "tensors[0].kind"},
        {CASE_HEAD ", \"figures\": {}, " PEAK
                   ", \"steps\": [], \"tensors\": [{\"name\": \"a\", \"bytes\": 1, \"kind\": \"K\"}]}",
         "'K' is no memory kind", "tensors[0].kind"},
        {CASE_HEAD ", \"figures\": {}, " PEAK ", \"steps\": [], \"tensors\": [{\"name\": \"a\", \"bytes\": 1, "
                   "\"kind\": \"Default\", \"persistent\": 1}]}",
         "neither true nor false", "tensors[0].persistent"},
        {CASE_HEAD ", \"figures\": {}, " PEAK ", \"steps\": [], \"tensors\": [{\"name\": \"a\", \"bytes\": 1, "
                   "\"kind\": \"Default\", \"at_peak_bytes\": 1}]}",
         "do not add up", "cases[0].tensors"},
        {CASE_HEAD ", \"error\": \"it failed\", \"figures\": {}, " REST, "'k' was never measured", "cases[0]"},
        {CASE_HEAD ", \"figures\": {}, " REST ", " CASE_HEAD ", \"figures\": {}, " REST, "two cases 'k'", "cases[1]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[2000];
        snprintf(text, sizeof text, HEAD ", \"cases\": [%s]}", bad[i].text);
        assert_refused_file(text, bad[i].why, bad[i].where);
    }
    char text[2000]; // what they have in common is good
    snprintf(text, sizeof text, HEAD ", \"cases\": [%s]}", CASE_HEAD ", \"figures\": {}, " REST);
    tide_gate_baseline b = read_text(text);
    assert_int_equal(b.cases.n, 1);
    tide_gate_baseline_deinit(&b);
}

/// A file that is good, of one case.
static const char sample[] = HEAD
    ",\n \"cases\": [" CASE_HEAD
    ",\n \"figures\": {\"planned_bytes\": 1, \"predicted_bytes\": {\"Workspace\": 1}, \"saving\": 0.5},\n" PEAK
    ", \"steps\": [{\"name\": \"s\", \"op\": \"Relu\"}],\n \"tensors\": [{\"name\": \"t\", \"owner\": \"s\", \"kind\": "
    "\"Workspace\", \"bytes\": 64}]}]}\n";

/// Cut anywhere it is refused, and nothing is kept of it.
static void cut_anywhere(void **state) {
    (void)state;
    for (size_t len = 0; len < sizeof sample - 3; len += 3) {
        char text[sizeof sample];
        snprintf(text, sizeof text, "%.*s", (int)len, sample);
        assert_refused_file(text, "cannot compare", NULL);
    }
}

static void read_without_memory(void **state) {
    (void)state;
    char path[256];
    write_temp("oom.json", sample, path, sizeof path);
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_gate_baseline b;
        tide_host_fail_after(n);
        st = tide_gate_baseline_read(path, &b, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
        if (st == TIDE_OK) tide_gate_baseline_deinit(&b);
    }
    assert_true(n > 10);
    assert_int_equal(remove(path), 0);
}

static int remove_folder(void **state) {
    (void)state;
    char dir[128];
    return rmdir(temp_file("", dir, sizeof dir));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(no_baseline),
        tide_unit_test(cases_that_are_refused),
        tide_unit_test(cut_anywhere),
        tide_unit_test(read_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
