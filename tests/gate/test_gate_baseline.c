// SPDX-License-Identifier: MIT
//
// The baseline file: its layout byte for byte, there and back for cases by chance, updates, and where none may be made.
#include <stdlib.h>

#include "gate/measured_internal.h"
#include "tests/gate/case_fixture.h"

static char *printed(const tide_gate_baseline *b) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text t = {0};
    assert_tide_ok(tide_gate_baseline_print(b, &t, &err), &err);
    char *text = tide_host_strdup(tide_text_str(&t));
    tide_text_deinit(&t);
    return text;
}

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

static bool update(tide_gate_baseline *b, const tide_gate_cases *cases, const char *reason) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_gate_update_info info = {.date = "2026-01-31", .by = "Ann", .reason = reason};
    bool changed = false;
    assert_tide_ok(tide_gate_baseline_update(b, cases, &info, &changed, &err), &err);
    return changed;
}

// ---- the file ----

static tide_gate_case by_hand(void) {
    tide_gate_case c = a_case("m/net.onnx");
    set(&c, "strategy", "search");
    set(&c, "align", "256");
    put_step(&c, "conv1", "Conv");
    put_step(&c, "relu1", "Relu");
    tide_gate_tensor *t = put_tensor(&c, "a", "conv1", 512, 512);
    t->leaked_bytes = 512;
    t->warm_allocations = 3;
    t = put_tensor(&c, "b", "relu1", 512, 0);
    give_text(&t->inside, "a");
    give_text(&t->alias, "in-place");
    t = put_tensor(&c, "w", "", 1024, 0);
    t->kind = TIDE_KIND_PERSISTENT;
    t->persistent = true;
    put_holes(&c, 256);
    give_text(&c.peak_step, "relu1");
    finish_case(&c);
    know_kind(&c, TIDE_GATE_PREDICTED, TIDE_KIND_DEFAULT, 0);
    know_kind(&c, TIDE_GATE_PREDICTED, TIDE_KIND_PERSISTENT, 1024);
    know_kind(&c, TIDE_GATE_PREDICTED, TIDE_KIND_WORKSPACE, 768);
    for (int k = 0; k < TIDE_N_KINDS; k++) know_kind(&c, TIDE_GATE_UNEXPLAINED, (tide_memory_kind)k, 0);
    know_share(&c, TIDE_GATE_SAVING, 1.0 / 3);
    know(&c, TIDE_GATE_TIME, 12345);
    return c;
}

static const char wanted[] =
    "{\n"
    "  \"schema\": \"tidemark.baseline\",\n"
    "  \"version\": 2,\n"
    "  \"updates\": [\n"
    "    {\"date\": \"2026-01-31\", \"by\": \"Ann\", \"reason\": \"first\", \"changed\": [\"m/a.onnx\", "
    "\"m/net.onnx\"]}\n"
    "  ],\n"
    "  \"cases\": [\n"
    "    {\n"
    "      \"key\": \"m/a.onnx\",\n"
    "      \"model\": \"model\",\n"
    "      \"signature\": \"x float32 -> y float32\",\n"
    "      \"inputs\": \"x 1x4\",\n"
    "      \"settings\": {},\n"
    "      \"figures\": {\n"
    "        \"planned_bytes\": 64,\n"
    "        \"total_bytes\": 64\n"
    "      },\n"
    "      \"peak\": {\n"
    "        \"step\": \"\",\n"
    "        \"held_bytes\": 64,\n"
    "        \"holes_bytes\": 0\n"
    "      },\n"
    "      \"steps\": [\n"
    "        {\"name\": \"relu\", \"op\": \"Relu\"}\n"
    "      ],\n"
    "      \"tensors\": [\n"
    "        {\"name\": \"a\", \"owner\": \"relu\", \"kind\": \"Workspace\", \"bytes\": 64, \"at_peak_bytes\": 64}\n"
    "      ]\n"
    "    },\n"
    "    {\n"
    "      \"key\": \"m/net.onnx\",\n"
    "      \"model\": \"model\",\n"
    "      \"signature\": \"x float32 -> y float32\",\n"
    "      \"inputs\": \"x 1x4\",\n"
    "      \"settings\": {\n"
    "        \"align\": \"256\",\n"
    "        \"strategy\": \"search\"\n"
    "      },\n"
    "      \"figures\": {\n"
    "        \"planned_bytes\": 768,\n"
    "        \"total_bytes\": 768,\n"
    "        \"predicted_bytes\": {\"Persistent\": 1024, \"Workspace\": 768},\n"
    "        \"saving\": 0.333333,\n"
    "        \"unexplained_bytes\": {\"Workspace\": 0}\n"
    "      },\n"
    "      \"peak\": {\n"
    "        \"step\": \"relu1\",\n"
    "        \"held_bytes\": 768,\n"
    "        \"holes_bytes\": 256\n"
    "      },\n"
    "      \"steps\": [\n"
    "        {\"name\": \"conv1\", \"op\": \"Conv\"},\n"
    "        {\"name\": \"relu1\", \"op\": \"Relu\"}\n"
    "      ],\n"
    "      \"tensors\": [\n"
    "        {\"name\": \"a\", \"owner\": \"conv1\", \"kind\": \"Workspace\", \"bytes\": 512, \"at_peak_bytes\": 512, "
    "\"leaked_bytes\": 512, \"warm_allocations\": 3},\n"
    "        {\"name\": \"b\", \"owner\": \"relu1\", \"kind\": \"Workspace\", \"inside\": \"a\", \"alias\": "
    "\"in-place\", \"bytes\": 512},\n"
    "        {\"name\": \"w\", \"kind\": \"Persistent\", \"persistent\": true, \"bytes\": 1024}\n"
    "      ]\n"
    "    }\n"
    "  ]\n"
    "}\n";

static void the_file(void **state) {
    (void)state;
    tide_gate_baseline b = {0};
    tide_gate_cases cases = {0};
    add_case(&cases, by_hand());
    add_case(&cases, simple("m/a.onnx", 64));
    assert_true(update(&b, &cases, "first"));
    char *text = printed(&b);
    assert_string_equal(text, wanted);
    tide_gate_baseline again = read_text(text);
    char *text_again = printed(&again);
    assert_string_equal(text_again, wanted);
    const tide_gate_case *c = tide_gate_cases_find(&again.cases, "m/net.onnx");
    assert_false(tide_gate_case_value(c, TIDE_GATE_TIME, -1).known); // timed: never in the file
    assert_int_equal(c->tensors[0].warm_allocations, 3);
    assert_true(c->tensors[2].persistent);
    assert_string_equal(c->tensors[1].alias, "in-place");
    // A kind without any use is known to be 0, though the file leaves it out.
    assert_true(tide__case_value(c, TIDE_GATE_PREDICTED, TIDE_KIND_KV_CACHE).known);
    assert_true(tide__case_value(c, TIDE_GATE_UNEXPLAINED, TIDE_KIND_DEFAULT).known);
    assert_false(tide__case_value(c, TIDE_GATE_KIND_PEAK, TIDE_KIND_DEFAULT).known);
    tide_host_free(text);
    tide_host_free(text_again);
    tide_gate_baseline_deinit(&b);
    tide_gate_baseline_deinit(&again);
    tide_gate_cases_deinit(&cases);
}

/// Whatever is in a case, the file says it, and what is read says the same again.
static void there_and_back(void **state) {
    (void)state;
    tide_rng rng = {7};
    for (int round = 0; round < 60; round++) {
        tide_gate_baseline b = {0};
        tide_gate_cases cases = {0};
        for (int i = 0; i < 3; i++) {
            char key[32];
            snprintf(key, sizeof key, "case %d", i);
            tide_gate_case c = random_case(&rng);
            give_text(&c.key, key);
            know_share(&c, TIDE_GATE_GAP, tide_rng_f64(&rng) * 12345);
            add_case(&cases, c);
        }
        assert_true(update(&b, &cases, "why"));
        char *text = printed(&b);
        tide_gate_baseline again = read_text(text);
        assert_false(update(&again, &cases, "the same cases")); // nothing was lost on the way
        assert_int_equal(again.n_updates, 1);
        char *text_again = printed(&again);
        assert_string_equal(text, text_again);
        tide_host_free(text);
        tide_host_free(text_again);
        tide_gate_baseline_deinit(&b);
        tide_gate_baseline_deinit(&again);
        tide_gate_cases_deinit(&cases);
    }
}

static void names_of_all_sorts(void **state) {
    (void)state;
    static const char *const names[] = {"caf\xc3\xa9",
                                        "quote\"back\\slash",
                                        "two\nlines\ttab",
                                        "</script>]]>&<",
                                        "\xe2\x80\xae"
                                        "evil",
                                        "\xff\xfe",
                                        "\xc2\x85 next line",
                                        "%s%n",
                                        ""};
    enum { N = sizeof names / sizeof names[0] };
    tide_gate_cases cases = {0};
    tide_gate_case c = a_case("k\xe2\x80\xaey\n");
    for (size_t i = 0; i < N; i++) {
        put_tensor(&c, names[i], names[N - 1 - i], 1 + i, 0);
        put_step(&c, names[i], names[i]);
    }
    char *huge = tide_host_alloc(10241);
    memset(huge, 'x', 10240);
    huge[10240] = '\0';
    put_tensor(&c, huge, "", 5, 0);
    tide_host_free(huge);
    c.tensors[1].bytes = UINT64_MAX; // beyond what JSON's readers take for an integer
    c.tensors[2].bytes = INT64_MAX;
    add_case(&cases, c);
    tide_gate_baseline b = {0};
    assert_true(update(&b, &cases, "a \"reason\"\nof two lines, \xff"));
    char *text = printed(&b);
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; at++) lines += *at == '\n';
    assert_int_equal(lines, 26 + N + N + 1);   // a name breaks no line
    assert_null(strstr(text, "\xe2\x80\xae")); // nor turns one round
    assert_null(strstr(text, "\xc2\x85"));
    assert_text_has(text, "\\u202eevil");
    assert_text_has(text, "caf\xc3\xa9");
    assert_text_has(text, "\"bytes\": \"18446744073709551615\"");
    tide_gate_baseline again = read_text(text);
    const tide_gate_case *got = &again.cases.items[0], *had = &cases.items[0];
    assert_string_equal(got->key, had->key);
    for (size_t i = 0; i <= N; i++) {
        assert_string_equal(got->tensors[i].name, had->tensors[i].name);
        assert_int_equal(got->tensors[i].bytes, had->tensors[i].bytes);
    }
    for (size_t i = 0; i < N; i++) assert_string_equal(got->steps[i].op, had->steps[i].op);
    assert_false(update(&again, &cases, "again"));
    tide_host_free(text);
    tide_gate_baseline_deinit(&b);
    tide_gate_baseline_deinit(&again);
    tide_gate_cases_deinit(&cases);
}

// ---- updates ----

static void an_update_says_what_changed(void **state) {
    (void)state;
    tide_gate_baseline b = {0};
    tide_gate_cases first = {0}, second = {0};
    add_case(&first, simple("gone", 1));
    add_case(&first, simple("grows", 1));
    add_case(&first, simple("stays", 1));
    add_case(&second, simple("comes", 1));
    add_case(&second, simple("grows", 2));
    tide_gate_case timed = simple("stays", 1);
    know(&timed, TIDE_GATE_TIME, 99); // a time is no change
    add_case(&second, timed);
    assert_true(update(&b, &first, "one"));
    assert_false(update(&b, &first, "nothing"));
    assert_true(update(&b, &second, "two"));
    assert_int_equal(b.n_updates, 2);
    const tide_gate_update *u = &b.updates[1];
    assert_string_equal(u->date, "2026-01-31");
    assert_string_equal(u->by, "Ann");
    assert_string_equal(u->reason, "two");
    assert_int_equal(u->n_changed, 3);
    assert_string_equal(u->changed[0], "comes");
    assert_string_equal(u->changed[1], "gone");
    assert_string_equal(u->changed[2], "grows");
    assert_int_equal(b.cases.n, 3);
    assert_null(tide_gate_cases_find(&b.cases, "gone"));
    assert_int_equal(tide_gate_cases_find(&b.cases, "grows")->held_bytes, 2);
    assert_int_equal(tide_gate_cases_find(&second, "grows")->held_bytes, 2); // the caller's are as they were
    assert_false(tide_gate_case_value(tide_gate_cases_find(&b.cases, "stays"), TIDE_GATE_TIME, -1).known);
    tide_gate_baseline_deinit(&b);
    tide_gate_cases_deinit(&first);
    tide_gate_cases_deinit(&second);
}

static void an_update_that_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_baseline b = {0};
    tide_gate_cases good = {0}, bad = {0};
    add_case(&good, simple("a", 1));
    assert_true(update(&b, &good, "first"));
    char *before = printed(&b);
    static const char *const reasons[] = {NULL, "", "  \t\n"};
    bool changed = true;
    for (size_t i = 0; i < 3; i++) {
        const tide_gate_update_info info = {.date = "d", .by = "b", .reason = reasons[i]};
        assert_tide_status(tide_gate_baseline_update(&b, &good, &info, &changed, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, "without a reason");
        assert_text_has(err.hint, "--reason");
    }
    tide_gate_case failed = a_case("b");
    give_text(&failed.error, "no kernel for 'Foo'");
    add_case(&bad, simple("a", 2));
    add_case(&bad, failed);
    const tide_gate_update_info info = {.date = "d", .by = "b", .reason = "r"};
    assert_tide_status(tide_gate_baseline_update(&b, &bad, &info, &changed, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'b' was not measured");
    assert_text_has(err.note, "no kernel");
    char *after = printed(&b);
    assert_string_equal(before, after);
    tide_host_free(before);
    tide_host_free(after);
    tide_gate_baseline_deinit(&b);
    tide_gate_cases_deinit(&good);
    tide_gate_cases_deinit(&bad);
}

static tide_gate_case on_machine(const char *key, const char *instructions) {
    tide_gate_case c = simple(key, 1);
    set(&c, "instructions", instructions);
    return c;
}

static void an_update_without_memory(void **state) {
    (void)state;
    tide_gate_cases first = {0}, second = {0};
    add_case(&first, simple("a", 1));
    add_case(&second, simple("a", 2));
    add_case(&second, simple("b", 2));
    add_case(&first, simple("0 same", 3));
    add_case(&second, simple("0 same", 3));
    add_case(&first, on_machine("0 same elsewhere", "AVX2"));
    add_case(&second, on_machine("0 same elsewhere", "AVX512"));
    tide_gate_baseline b = {0};
    assert_true(update(&b, &first, "first"));
    char *before = printed(&b);
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_error err = TIDE_ERROR_INIT;
        bool changed;
        const tide_gate_update_info info = {.date = "d", .by = "b", .reason = "r"};
        tide_host_fail_after(n);
        st = tide_gate_baseline_update(&b, &second, &info, &changed, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        char *after = printed(&b);
        assert_string_equal(before, after); // on failure it is as it was
        tide_host_free(after);
    }
    assert_true(n > 10);
    assert_int_equal(b.cases.n, 4);
    assert_int_equal(b.updates[1].n_changed, 2); // a comparison that had no memory is no change
    tide_host_free(before);
    tide_gate_baseline_deinit(&b);
    tide_gate_cases_deinit(&first);
    tide_gate_cases_deinit(&second);
}

// ---- CI ----

static void ci_is_known_by_its_variables(void **state) {
    (void)state;
    static const char *const names[] = {"CI",          "GITHUB_ACTIONS", "GITLAB_CI",       "BUILDKITE",
                                        "JENKINS_URL", "TF_BUILD",       "TEAMCITY_VERSION"};
    for (size_t i = 0; i < 7; i++) unsetenv(names[i]);
    assert_null(tide_gate_ci_name());
    for (size_t i = 0; i < 7; i++) {
        setenv(names[i], "1", 1);
        assert_string_equal(tide_gate_ci_name(), names[i]);
        setenv(names[i], "", 1);
        assert_null(tide_gate_ci_name());
        unsetenv(names[i]);
    }
    static const char *const no[] = {"0", "false", "False"};
    for (size_t i = 0; i < 3; i++) {
        setenv("CI", no[i], 1);
        assert_null(tide_gate_ci_name());
    }
    setenv("GITLAB_CI", "true", 1); // beside a CI that says no
    assert_string_equal(tide_gate_ci_name(), "GITLAB_CI");
    unsetenv("GITLAB_CI");
    unsetenv("CI");
}

static int remove_folder(void **state) {
    (void)state;
    char dir[128];
    return rmdir(temp_file("", dir, sizeof dir));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_file),
        tide_unit_test(there_and_back),
        tide_unit_test(names_of_all_sorts),
        tide_unit_test(an_update_says_what_changed),
        tide_unit_test(an_update_that_is_refused),
        tide_unit_test(an_update_without_memory),
        tide_unit_test(ci_is_known_by_its_variables),
    };
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
