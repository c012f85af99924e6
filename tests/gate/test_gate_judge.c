// SPDX-License-Identifier: MIT
//
// The judge: states, verdicts, counts and exit codes of cases, by rules of a configuration.
#include "tests/gate/case_fixture.h"

static const tide_gate_verdict PASS = TIDE_GATE_PASS_VERDICT, WARN = TIDE_GATE_WARN_VERDICT,
                               FAIL = TIDE_GATE_FAIL_VERDICT;

static tide_gate_config *config_of(const char *rules) {
    tide_error err = TIDE_ERROR_INIT;
    char path[256], model[256];
    tide_text t = {0};
    tide_gate_config *config = NULL;
    write_temp("m.json", "{}", model, sizeof model);
    tide_text_addf(&t, "version = 1\nbaseline = \"b.json\"\n%s\n[[model]]\npath = \"m.json\"\n", rules);
    write_temp("tidemark.toml", tide_text_str(&t), path, sizeof path);
    tide_text_deinit(&t);
    assert_tide_ok(tide_gate_config_read(path, &config, &err), &err);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(model), 0);
    return config;
}

static tide_gate_baseline baseline_of(const tide_gate_cases *cases) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_gate_update_info info = {.date = "2026-01-31", .by = "Ann", .reason = "new fusion"};
    bool changed;
    tide_gate_baseline b = {.path = tide_host_strdup("b.json")};
    assert_tide_ok(tide_gate_baseline_update(&b, cases, &info, &changed, &err), &err);
    return b;
}

static tide_gate_result judge(const tide_gate_config *config, const tide_gate_baseline *b,
                              const tide_gate_cases *current) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_result r;
    assert_tide_ok(tide_gate_judge(config, b, current, &r, &err), &err);
    return r;
}

static const tide_gate_judged *of(const tide_gate_result *r, const char *key) {
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->cases[i].key, key) == 0) return &r->cases[i];
    fail_msg("no case '%s'", key);
    return NULL;
}

static void assert_case(const tide_gate_result *r, const char *key, tide_gate_state state, tide_gate_verdict want,
                        const char *reason) {
    const tide_gate_judged *j = of(r, key);
    if (j->state != state || j->verdict != want)
        fail_msg("'%s' is %s, %s", key, tide_gate_state_name(j->state), tide_gate_verdict_name(j->verdict));
    assert_true((j->reason != NULL) == (reason != NULL));
    if (reason != NULL) assert_text_has(j->reason, reason);
}

/// A hundred times the same: nothing is said, whatever the clock said.
static void what_is_alike_passes(void **state) {
    (void)state;
    tide_gate_config *config = config_of("");
    for (uint64_t seed = 1; seed <= 100; seed++) {
        tide_gate_cases was = {0}, is = {0};
        for (int side = 0; side < 2; side++) {
            tide_rng rng = {seed};
            for (int i = 0; i < 3; i++) {
                char key[16];
                snprintf(key, sizeof key, "c%d", i);
                tide_gate_case c = random_case(&rng);
                give_text(&c.key, key);
                know(&c, TIDE_GATE_TIME, 1000 + (uint64_t)side);
                know_share(&c, TIDE_GATE_SAVING, tide_rng_f64(&rng));
                know_kind(&c, TIDE_GATE_KIND_PEAK, TIDE_KIND_WORKSPACE, 5);
                for (int k = 0; k < TIDE_N_KINDS; k++) know_kind(&c, TIDE_GATE_UNEXPLAINED, (tide_memory_kind)k, 0);
                add_case(side == 0 ? &was : &is, c);
            }
        }
        tide_gate_baseline b = baseline_of(&was);
        tide_gate_result r = judge(config, &b, &is);
        assert_int_equal(r.exit_code, 0);
        assert_int_equal(r.verdict, TIDE_GATE_PASS_VERDICT);
        assert_int_equal(r.n, 3);
        assert_int_equal(r.n_pass, 3);
        for (size_t i = 0; i < r.n; i++) {
            assert_int_equal(r.cases[i].state, TIDE_GATE_CASE_UNCHANGED);
            assert_int_equal(r.cases[i].verdict, TIDE_GATE_PASS_VERDICT);
            assert_int_equal(r.cases[i].n_causes + r.cases[i].n_by_kind + r.cases[i].n_by_operator, 0);
            assert_true(r.cases[i].n_rows >= 3);
        }
        tide_gate_result_deinit(&r);
        tide_gate_baseline_deinit(&b);
        tide_gate_cases_deinit(&was);
        tide_gate_cases_deinit(&is);
    }
    tide_gate_config_destroy(config);
}

/// A case that holds 100 bytes and had a peak of `peak` when it was run with these instructions (NULL: not known).
static tide_gate_case run_on(const char *instructions, uint64_t peak) {
    tide_gate_case c = simple("c", 100);
    know(&c, TIDE_GATE_PEAK, peak);
    if (instructions != NULL) set(&c, "instructions", instructions);
    return c;
}

static const tide_gate_row *row_of(const tide_gate_judged *j, tide_gate_metric m) {
    for (size_t i = 0; i < j->n_rows; i++)
        if (j->rows[i].metric == m) return &j->rows[i];
    fail_msg("no row of '%s'", tide_gate_metric_get(m)->id);
    return NULL;
}

/// The measured peak holds kernels' scratch: it is judged where a rule asks for it, and on the baseline's machine
/// alone. A case that notes no machine has no scratch.
static void figures_that_depend_on_the_machine(void **state) {
    (void)state;
    static const char run[] = "[defaults]\nrun = true\n";
    static const struct {
        const char *rules, *was, *is;
        tide_gate_verdict verdict;
        bool elsewhere;
    } rows[] = {{"", "avx2", "avx2", TIDE_GATE_PASS_VERDICT, false},
                {"", "avx2", "sse41", TIDE_GATE_PASS_VERDICT, true},
                {"", NULL, NULL, TIDE_GATE_FAIL_VERDICT, false},
                {"[rules]\npeak_bytes = \"fail\"\n", "avx2", "avx2", TIDE_GATE_FAIL_VERDICT, false},
                {"[rules]\npeak_bytes = \"fail\"\n", "avx2", "sse41", TIDE_GATE_PASS_VERDICT, true},
                {"[rules]\npeak_bytes = { max = 100 }\n", "avx2", "avx2", TIDE_GATE_FAIL_VERDICT, false},
                {"[rules]\npeak_bytes = { max = 100 }\n", "avx2", "sse41", TIDE_GATE_PASS_VERDICT, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_text rules = {0};
        tide_text_addf(&rules, "%s%s", run, rows[i].rules);
        tide_gate_config *config = config_of(tide_text_str(&rules));
        tide_text_deinit(&rules);
        tide_gate_cases was = {0}, is = {0};
        add_case(&was, run_on(rows[i].was, 100));
        add_case(&is, run_on(rows[i].is, 101));
        tide_gate_baseline b = baseline_of(&was);
        tide_gate_result r = judge(config, &b, &is);
        const tide_gate_row *row = row_of(of(&r, "c"), TIDE_GATE_PEAK);
        if (row->verdict != rows[i].verdict || row->elsewhere != rows[i].elsewhere)
            fail_msg("row %zu: %s, elsewhere %d", i, tide_gate_verdict_name(row->verdict), row->elsewhere);
        assert_int_equal(r.n_elsewhere, rows[i].elsewhere);
        tide_gate_result_deinit(&r);
        tide_gate_baseline_deinit(&b);
        tide_gate_cases_deinit(&was);
        tide_gate_cases_deinit(&is);
        tide_gate_config_destroy(config);
    }
}

/// Whether the process fits is asked of the machine that asks, whatever the baseline's was; what has no process, a list
/// or a trace, is not over a budget of it.
static void budget_of_the_process(void **state) {
    (void)state;
    tide_gate_config *config = config_of("[rules]\nprocess_bytes = { max = 100 }\n");
    for (int over = 0; over < 2; over++) {
        tide_gate_cases was = {0}, is = {0};
        tide_gate_case before = run_on("avx2", 5), now = run_on("sse41", 5);
        know(&before, TIDE_GATE_PROCESS, 100);
        know(&now, TIDE_GATE_PROCESS, 100 + (uint64_t)over);
        add_case(&was, before);
        add_case(&is, now);
        add_case(&was, simple("list", 500));
        add_case(&is, simple("list", 500));
        tide_gate_baseline b = baseline_of(&was);
        tide_gate_result r = judge(config, &b, &is);
        const tide_gate_row *row = row_of(of(&r, "c"), TIDE_GATE_PROCESS);
        assert_int_equal(row->verdict, over ? TIDE_GATE_FAIL_VERDICT : TIDE_GATE_PASS_VERDICT);
        assert_int_equal(row->over_budget, over);
        assert_case(&r, "list", TIDE_GATE_CASE_UNCHANGED, TIDE_GATE_PASS_VERDICT, NULL);
        tide_gate_result_deinit(&r);
        tide_gate_baseline_deinit(&b);
        tide_gate_cases_deinit(&was);
        tide_gate_cases_deinit(&is);
    }
    tide_gate_config_destroy(config);
}

static void states_of_cases(void **state) {
    (void)state;
    tide_gate_config *config = config_of("");
    tide_gate_cases was = {0}, is = {0};
    add_case(&was, simple("better", 100));
    add_case(&was, simple("failed", 100));
    add_case(&was, simple("gone", 100));
    add_case(&was, simple("other", 100));
    add_case(&was, simple("same", 100));
    add_case(&was, simple("worse", 100));
    add_case(&is, simple("better", 90));
    add_case(&is, simple("fresh", 90));
    add_case(&is, simple("same", 100));
    add_case(&is, simple("worse", 101));
    tide_gate_case c = a_case("failed");
    give_text(&c.error, "no kernel for 'Foo'");
    add_case(&is, c);
    c = a_case("left out");
    give_text(&c.error, "no device");
    c.skipped = true;
    add_case(&is, c);
    c = simple("other", 100);
    give_text(&c.signature, "z int8 -> y int8");
    add_case(&is, c);
    tide_gate_baseline b = baseline_of(&was);
    tide_gate_result r = judge(config, &b, &is);
    assert_case(&r, "better", TIDE_GATE_CASE_CHANGED, TIDE_GATE_WARN_VERDICT, NULL);
    assert_case(&r, "failed", TIDE_GATE_CASE_UNMEASURED, TIDE_GATE_FAIL_VERDICT, "could not be measured: no kernel");
    assert_case(&r, "fresh", TIDE_GATE_CASE_ADDED, TIDE_GATE_WARN_VERDICT, "the baseline has no such case");
    assert_case(&r, "gone", TIDE_GATE_CASE_REMOVED, TIDE_GATE_FAIL_VERDICT, "it is not measured any more");
    assert_case(&r, "left out", TIDE_GATE_CASE_UNMEASURED, TIDE_GATE_FAIL_VERDICT, "was skipped: no device");
    assert_case(&r, "other", TIDE_GATE_CASE_OTHER_MODEL, TIDE_GATE_NOT_COMPARABLE_VERDICT, "z int8 -> y int8");
    assert_case(&r, "same", TIDE_GATE_CASE_UNCHANGED, TIDE_GATE_PASS_VERDICT, NULL);
    assert_case(&r, "worse", TIDE_GATE_CASE_CHANGED, TIDE_GATE_FAIL_VERDICT, NULL);
    assert_int_equal(r.n, 8);
    for (size_t i = 1; i < r.n; i++) assert_true(strcmp(r.cases[i - 1].key, r.cases[i].key) < 0);
    assert_int_equal(r.n_pass, 1);
    assert_int_equal(r.n_warn, 2);
    assert_int_equal(r.n_fail, 4);
    assert_int_equal(r.n_not_comparable, 1);
    assert_int_equal(r.n_added, 1);
    assert_int_equal(r.n_removed, 1);
    assert_int_equal(r.n_unmeasured, 2);
    assert_int_equal(r.verdict, TIDE_GATE_FAIL_VERDICT);
    assert_int_equal(r.exit_code, 1);
    assert_null(r.reason);
    assert_string_equal(r.last_update, "2026-01-31 Ann: new fusion");
    assert_string_equal(r.baseline_path, "b.json");
    assert_text_has(r.config_path, "tidemark.toml");
    const tide_gate_judged *worse = of(&r, "worse");
    assert_int_equal(worse->n_causes, 1);
    assert_string_equal(worse->causes[0].text, "a of relu takes 101 B instead of 100 B");
    assert_int_equal(worse->n_by_operator, 1);
    assert_ptr_equal(worse->baseline, tide_gate_cases_find(&b.cases, "worse"));
    assert_int_equal(of(&r, "other")->n_causes, 0);
    assert_null(of(&r, "gone")->current);
    assert_null(of(&r, "fresh")->baseline);
    tide_gate_result_deinit(&r);
    tide_gate_baseline_deinit(&b);
    tide_gate_cases_deinit(&was);
    tide_gate_cases_deinit(&is);
    tide_gate_config_destroy(config);
}

/// One case on each side, and what becomes of it.
static void assert_judged(const char *rules, tide_gate_case was, tide_gate_case is, tide_gate_verdict want,
                          int exit_code) {
    tide_gate_config *config = config_of(rules);
    tide_gate_cases a = {0}, b = {0};
    add_case(&a, was);
    add_case(&b, is);
    tide_gate_baseline base = baseline_of(&a);
    tide_gate_result r = judge(config, &base, &b);
    if (r.verdict != want || r.exit_code != exit_code)
        fail_msg("%s: %s, exit %d", rules, tide_gate_verdict_name(r.verdict), r.exit_code);
    tide_gate_result_deinit(&r);
    tide_gate_baseline_deinit(&base);
    tide_gate_cases_deinit(&a);
    tide_gate_cases_deinit(&b);
    tide_gate_config_destroy(config);
}

static tide_gate_case of_model(const char *model, const char *signature) {
    tide_gate_case c = simple("k", 100);
    give_text(&c.model, model);
    give_text(&c.signature, signature);
    return c;
}

static void rules_decide(void **state) {
    (void)state;
    assert_judged("", simple("k", 100), simple("k", 101), FAIL, 1);
    assert_judged("gain = \"off\"", simple("k", 100), simple("k", 99), PASS, 0);
    assert_judged("", simple("k", 100), simple("k", 99), WARN, 0);
    assert_judged("[rules]\nplanned_bytes = { fail = \"1KiB\" }\ntotal_bytes = \"off\"", simple("k", 100),
                  simple("k", 1124), PASS, 0);
    assert_judged("[rules]\nplanned_bytes = { fail = \"1KiB\" }\ntotal_bytes = \"off\"", simple("k", 100),
                  simple("k", 1125), FAIL, 1);
    assert_judged("[rules]\ntotal_bytes = { max = 150 }\nplanned_bytes = \"off\"", simple("k", 200), simple("k", 200),
                  FAIL, 1);
}

/// Not comparable is neither a pass nor a regression, and a regression is told first.
static void another_model(void **state) {
    (void)state;
    const tide_gate_verdict not = TIDE_GATE_NOT_COMPARABLE_VERDICT;
    assert_judged("", of_model("m", "x"), of_model("m", "y"), not, 4);
    assert_judged("", of_model("m", "x"), of_model("n", "x"), PASS, 0); // a name is no signature
    assert_judged("", of_model("m", ""), of_model("n", ""), not, 4);    // but where there is none, it is all there is
    assert_judged("", of_model("m", ""), of_model("", ""), PASS, 0);
    assert_judged("", of_model("m", ""), of_model("m", "x"), not, 4);
    assert_judged("[rules]\ntotal_bytes = { max = 50 }", of_model("m", "x"), of_model("m", "y"), FAIL, 1);
}

/// A figure of a kind that was unused before grew from 0.
static void a_kind_that_is_new(void **state) {
    (void)state;
    tide_gate_case a = simple("k", 100), b = simple("k", 100), c = simple("k", 100);
    know_kind(&a, TIDE_GATE_KIND_PEAK, TIDE_KIND_WORKSPACE, 100);
    know_kind(&b, TIDE_GATE_KIND_PEAK, TIDE_KIND_WORKSPACE, 100);
    know_kind(&b, TIDE_GATE_KIND_PEAK, TIDE_KIND_KV_CACHE, 1);
    assert_judged("", a, b, FAIL, 1);
    tide_gate_case d = simple("k", 100);
    know_kind(&d, TIDE_GATE_KIND_PEAK, TIDE_KIND_WORKSPACE, 100);
    assert_judged("", d, c, FAIL, 1); // the case has no such figure any more
}

/// Measured before and not any more: a failure, of which the settings tell why; the other way a change that passes.
static void what_is_not_run_any_more(void **state) {
    (void)state;
    tide_gate_config *config = config_of("");
    tide_gate_cases run = {0}, plan = {0};
    tide_gate_case c = simple("k", 100);
    set(&c, "runs", "3");
    know(&c, TIDE_GATE_PEAK, 100);
    know(&c, TIDE_GATE_LEAKED, 0);
    know_kind(&c, TIDE_GATE_KIND_PEAK, TIDE_KIND_WORKSPACE, 90);
    know_kind(&c, TIDE_GATE_KIND_PEAK, TIDE_KIND_DEFAULT, 10);
    for (int k = 0; k < TIDE_N_KINDS; k++) know_kind(&c, TIDE_GATE_UNEXPLAINED, (tide_memory_kind)k, 0);
    add_case(&run, c);
    add_case(&plan, simple("k", 100));
    tide_gate_baseline b = baseline_of(&run), shorter = baseline_of(&plan);
    tide_gate_result r = judge(config, &b, &plan);
    assert_case(&r, "k", TIDE_GATE_CASE_CHANGED, TIDE_GATE_FAIL_VERDICT, NULL);
    size_t n_failed = 0;
    for (size_t i = 0; i < r.cases->n_rows; i++) n_failed += r.cases->rows[i].verdict == TIDE_GATE_FAIL_VERDICT;
    assert_int_equal(n_failed, 5); // peak, two kinds, leaks, and what was unexplained once, not for each kind
    assert_int_equal(r.cases->n_causes, 1);
    assert_string_equal(r.cases->causes[0].text, "runs is not set instead of 3");
    tide_gate_result_deinit(&r);
    r = judge(config, &shorter, &run); // what is judged now, and was not then, is no pass
    assert_case(&r, "k", TIDE_GATE_CASE_CHANGED, TIDE_GATE_NOT_COMPARABLE_VERDICT,
                "the baseline has no figure of peak_bytes and of 4 more, which are judged");
    assert_int_equal(r.exit_code, 4);
    tide_gate_result_deinit(&r);
    tide_gate_baseline_deinit(&b);
    tide_gate_baseline_deinit(&shorter);
    tide_gate_cases_deinit(&run);
    tide_gate_cases_deinit(&plan);
    tide_gate_config_destroy(config);
}

static void budgets_alone(void **state) {
    (void)state;
    tide_gate_config *config = config_of("[rules]\ntotal_bytes = { max = 150 }");
    tide_gate_cases is = {0};
    add_case(&is, simple("large", 151));
    add_case(&is, simple("small", 150));
    tide_gate_result r = judge(config, NULL, &is);
    assert_case(&r, "large", TIDE_GATE_CASE_ALONE, TIDE_GATE_FAIL_VERDICT, NULL);
    assert_case(&r, "small", TIDE_GATE_CASE_ALONE, TIDE_GATE_PASS_VERDICT, NULL);
    assert_int_equal(r.exit_code, 1);
    assert_string_equal(r.baseline_path, "");
    assert_string_equal(r.last_update, "");
    tide_gate_result_deinit(&r);
    tide_gate_cases_deinit(&is);
    tide_gate_config_destroy(config);
}

static void nothing_in_common(void **state) {
    (void)state;
    tide_gate_config *config = config_of("");
    tide_gate_cases was = {0}, is = {0}, none = {0};
    add_case(&was, simple("b", 1));
    add_case(&was, simple("c", 1));
    add_case(&is, simple("y", 1));
    add_case(&is, simple("z", 1));
    tide_gate_baseline b = baseline_of(&was);
    tide_gate_result r = judge(config, &b, &is);
    assert_int_equal(r.verdict, TIDE_GATE_NOT_COMPARABLE_VERDICT);
    assert_int_equal(r.exit_code, 4);
    assert_string_equal(r.reason, "the baseline 'b.json' is of other cases: it has 2, the first 'b'; here are 2, the "
                                  "first 'y'");
    assert_int_equal(r.n_not_comparable, 4);
    assert_int_equal(r.n_added, 2);
    tide_gate_result_deinit(&r);
    r = judge(config, &b, &none); // nothing was measured: what was there is gone
    assert_int_equal(r.verdict, TIDE_GATE_FAIL_VERDICT);
    assert_string_equal(r.reason, "nothing was measured");
    tide_gate_result_deinit(&r);
    tide_gate_baseline empty = {.path = tide_host_strdup("e.json")};
    r = judge(config, &empty, &is);
    assert_int_equal(r.exit_code, 4);
    assert_string_equal(r.reason, "the baseline 'e.json' has no cases");
    tide_gate_result_deinit(&r);
    r = judge(config, &empty, &none);
    assert_int_equal(r.exit_code, 4);
    tide_gate_result_deinit(&r);
    tide_gate_baseline_deinit(&empty);
    tide_gate_baseline_deinit(&b);
    tide_gate_cases_deinit(&was);
    tide_gate_cases_deinit(&is);
    tide_gate_config_destroy(config);
}

static void nothing_to_compare_with(void **state) {
    (void)state;
    tide_error why = TIDE_ERROR_INIT, err = TIDE_ERROR_INIT;
    tide_gate_baseline b;
    char path[256];
    temp_file("nowhere.json", path, sizeof path);
    assert_tide_status(tide_gate_baseline_read(path, &b, &why), TIDE_ERR_INCOMPARABLE);
    tide_gate_result r;
    assert_tide_ok(tide_gate_nothing(path, NULL, &why, &r, &err), &err);
    assert_int_equal(r.verdict, TIDE_GATE_NOT_COMPARABLE_VERDICT);
    assert_int_equal(r.exit_code, 4);
    assert_text_has(r.reason, "nowhere.json");
    assert_string_equal(r.baseline_path, path);
    assert_string_equal(r.config_path, "");
    assert_string_equal(r.last_update, "");
    assert_int_equal(r.n, 0);
    tide_gate_result_deinit(&r);
}

static void levels_of_added_and_removed(void **state) {
    (void)state;
    static const char *const words[] = {"report", "warn", "fail"};
    static const int codes[] = {0, 0, 1};
    for (size_t i = 0; i < 3; i++) {
        char rules[80];
        snprintf(rules, sizeof rules, "added = \"%s\"\nremoved = \"%s\"", words[i], words[i]);
        tide_gate_config *config = config_of(rules);
        tide_gate_cases was = {0}, more = {0};
        add_case(&was, simple("a", 1));
        add_case(&more, simple("a", 1));
        add_case(&more, simple("b", 1));
        tide_gate_baseline b = baseline_of(&was), larger = baseline_of(&more);
        tide_gate_result added = judge(config, &b, &more), removed = judge(config, &larger, &was);
        assert_int_equal(of(&added, "b")->verdict, i == 0 ? PASS : i == 1 ? WARN : FAIL);
        assert_int_equal(added.exit_code, codes[i]);
        assert_int_equal(of(&removed, "b")->verdict, of(&added, "b")->verdict);
        assert_int_equal(removed.exit_code, codes[i]);
        tide_gate_result_deinit(&added);
        tide_gate_result_deinit(&removed);
        tide_gate_baseline_deinit(&b);
        tide_gate_baseline_deinit(&larger);
        tide_gate_cases_deinit(&was);
        tide_gate_cases_deinit(&more);
        tide_gate_config_destroy(config);
    }
}

static void judged_without_memory(void **state) {
    (void)state;
    tide_gate_config *config = config_of("");
    tide_gate_cases was = {0}, is = {0};
    add_case(&was, simple("a", 1));
    add_case(&was, simple("gone", 1));
    add_case(&is, simple("a", 2));
    add_case(&is, simple("fresh", 2));
    tide_gate_baseline b = baseline_of(&was);
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_gate_result r;
        tide_host_fail_after(n);
        st = tide_gate_judge(config, &b, &is, &r, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
        if (st == TIDE_OK) tide_gate_result_deinit(&r);
    }
    assert_true(n > 15);
    tide_gate_baseline_deinit(&b);
    tide_gate_cases_deinit(&was);
    tide_gate_cases_deinit(&is);
    tide_gate_config_destroy(config);
}

static int remove_folder(void **state) {
    (void)state;
    char dir[128];
    return rmdir(temp_file("", dir, sizeof dir));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_is_alike_passes),
        tide_unit_test(figures_that_depend_on_the_machine),
        tide_unit_test(states_of_cases),
        tide_unit_test(rules_decide),
        tide_unit_test(another_model),
        tide_unit_test(a_kind_that_is_new),
        tide_unit_test(what_is_not_run_any_more),
        tide_unit_test(budgets_alone),
        tide_unit_test(budget_of_the_process),
        tide_unit_test(nothing_in_common),
        tide_unit_test(nothing_to_compare_with),
        tide_unit_test(levels_of_added_and_removed),
        tide_unit_test(judged_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
