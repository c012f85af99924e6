// SPDX-License-Identifier: MIT
//
// A configuration that is wrong: each mistake is told with its place, and with what was meant or is in its way.
#include "config_case.h"

#define TOP "version = 1\n"
#define MODEL "[[model]]\npath = \"x.onnx\"\n"

static void test_unknown_keys_are_named_with_the_nearest(void **state) {
    (void)state;
    assert_bad(TOP "basline = \"b\"\n" MODEL, "t.toml:2", "no key 'basline'", "did you mean 'baseline'?");
    assert_bad(TOP "[rulez]\n" MODEL, "t.toml:2", "no key 'rulez'", "'rules'");
    assert_bad(TOP "[defaults]\nalgin = 64\n" MODEL, "t.toml:3", "[defaults] has no key 'algin'", "'align'");
    assert_bad(TOP MODEL "strategie = \"search\"\n", "t.toml:4", "a model has no key 'strategie'", "'strategies'");
    assert_bad(TOP "[rules]\nplaned_bytes = \"off\"\n" MODEL, "t.toml:3", "no metric 'planed_bytes'",
               "'planned_bytes'");
    assert_bad(TOP "[rules]\n\"kind_peak_bytes.Worspace\" = \"off\"\n" MODEL, "t.toml:3", "no memory kind 'Worspace'",
               "'kind_peak_bytes.Workspace'");
    assert_bad(TOP "[rules.kind_peak_bytes.Worspace]\nmax = 1\n" MODEL, "t.toml:2", "no key 'Worspace'", "'Workspace'");
    assert_bad(TOP "[rules]\npeak_bytes = { fial = \"0\" }\n" MODEL, "t.toml:3",
               "a rule of peak_bytes has no key "
               "'fial'",
               "'fail'");
    assert_bad(TOP "[rules]\nsaving = { max = \"3%\" }\n" MODEL, "t.toml:3", "no key 'max'", "min");
    assert_bad(TOP MODEL "[[override]]\nmatch = \"x*\"\nrule = {}\n", "t.toml:6", "no key 'rule'", "'rules'");
    assert_bad(TOP "zzzzzzzzzz = 1\n" MODEL, "t.toml:2", "no key 'zzzzzzzzzz'", "keys are version, baseline");
    assert_bad_json("{\"version\": 1, \"model\": [{\"path\": \"a.onnx\"}, {\"path\": \"b.onnx\", \"rules\": "
                    "{\"planned_bytes\": {\"mx\": 3}}}]}",
                    "t.json: model[1].rules.planned_bytes.mx", "no key 'mx'", "'max'");
}

/// Every pattern may take a bounded time only, whatever it is for.
static void test_patterns_are_checked(void **state) {
    (void)state;
#define STARS "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a"
    assert_bad(TOP "[[model]]\npath = \"m/**/x.onnx\"\n", "t.toml:3", "'**' is not known here", "models/*/*.onnx");
    assert_bad(TOP "[[model]]\npath = \"" STARS "\"\n", "t.toml:3", "too long for a pattern", NULL);
    assert_bad(TOP MODEL "[[override]]\nmatch = \"**\"\nmax_bytes = 1\n", "t.toml:5", "'**' is not known here", NULL);
    assert_bad(TOP MODEL "exclude = \"m/**/y.onnx\"\n", "t.toml:4", "'**' is not known here", NULL);
    assert_bad(TOP MODEL "exclude = [\"z\", \"" STARS "\"]\n", "t.toml:4", "too long for a pattern", NULL);
#undef STARS
}

static void test_each_type_is_checked(void **state) {
    (void)state;
    assert_bad("version = \"1\"\n" MODEL, "t.toml:1", "'version' is text: want an integer", NULL);
    assert_bad("version = 1.0\n" MODEL, "t.toml:1", "'version' is a number with a fraction", NULL);
    assert_bad(TOP "baseline = 1979-05-27\n" MODEL, "t.toml:2", "'baseline' is a date or time: want text", NULL);
    assert_bad(TOP "baseline = true\n" MODEL, "t.toml:2", "is false where budgets alone are wanted", NULL);
    assert_bad(TOP "baseline = \"\"\n" MODEL, "t.toml:2", "'baseline' is empty", NULL);
    assert_bad(TOP "baseline = \"a\\u0000b\"\n" MODEL, "t.toml:2", "NUL", NULL);
    assert_bad(TOP "[defaults]\nrun = \"yes\"\n" MODEL, "t.toml:3", "want true or false", NULL);
    assert_bad(TOP "[defaults]\nruns = 07:32:00\n" MODEL, "t.toml:3", "'runs' is a date or time", NULL);
    assert_bad(TOP "[defaults]\nruns = 3.0\n" MODEL, "t.toml:3", "'runs' is a number with a fraction", NULL);
    assert_bad(TOP "defaults = 3\n" MODEL, "t.toml:2", "'defaults' is an integer: want a table", NULL);
    assert_bad(TOP "rules = []\n" MODEL, "t.toml:2", "'rules' is a list: want a table", NULL);
    assert_bad(TOP "[model]\npath = \"x\"\n", "t.toml:2", "'model' is a table: want a list", NULL);
    assert_bad(TOP "model = [1]\n", "t.toml:2", "value 1 of 'model' is an integer: want a table", NULL);
    assert_bad(TOP MODEL "aligns = 64\n", "t.toml:4", "'aligns' is an integer: want a list", NULL);
    assert_bad(TOP MODEL "extents = { N = [1, \"2\"] }\n", "t.toml:4", "value 2 of 'N' is text", NULL);
    assert_bad(TOP MODEL "extents = { N = 1.5 }\n", "t.toml:4", "'N' is a number with a fraction", NULL);
    assert_bad(TOP MODEL "max_bytes = 1.5\n", "t.toml:4", "'max_bytes' is a number with a fraction", NULL);
    assert_bad(TOP MODEL "max_bytes = inf\n", "t.toml:4", "a number with a fraction", NULL);
    assert_bad(TOP MODEL "shapes = { data = [1, 3] }\n", "t.toml:4", "'data' is a list: want text", NULL);
    assert_bad(TOP "[rules]\npeak_bytes = 3\n" MODEL, "t.toml:3", "neither a table nor a word", "\"off\"");
    assert_bad(TOP "[rules]\npeak_bytes = {}\n" MODEL, "t.toml:3", "says nothing", NULL);
    assert_bad(TOP "[rules]\npeak_bytes = { fail = 0.5 }\n" MODEL, "t.toml:3", "'fail' is a number with a fraction",
               NULL);
    assert_bad_json("[]", "t.json", "the document is a list: want a table", NULL);
    assert_bad_json("{\"version\": 1, \"baseline\": null, \"model\": []}", "t.json: baseline", "'baseline' is null",
                    NULL);
}

static void test_numbers_have_a_range(void **state) {
    (void)state;
    assert_bad("version = 2\n" MODEL, "t.toml:1", "version 2 is not known here", NULL);
    assert_bad(MODEL, "t.toml", "does not say its version", "version = 1");
    assert_bad(TOP "[defaults]\nalign = 48\n" MODEL, "t.toml:3", "power of two", NULL);
    assert_bad(TOP "[defaults]\nalign = 0\n" MODEL, "t.toml:3", "power of two", NULL);
    assert_bad(TOP "[defaults]\nalign = -64\n" MODEL, "t.toml:3", "is -64", NULL);
    assert_bad(TOP "[defaults]\nruns = 0\n" MODEL, "t.toml:3", "want 1 to", NULL);
    assert_bad(TOP "[defaults]\ncontexts = 1025\n" MODEL, "t.toml:3", "want 1 to 1024", NULL);
    assert_bad(TOP "[defaults]\nnode_limit = 0\n" MODEL, "t.toml:3", "want 1 to", NULL);
    assert_bad(TOP "[defaults]\nlimit = 0\n" MODEL, "t.toml:3", "0 bytes", NULL);
    assert_bad(TOP "[defaults]\nlimit = \"8 apples\"\n" MODEL, "t.toml:3", "'8 apples' is not a size", "64KiB");
    assert_bad(TOP "[defaults]\nseed = -1\n" MODEL, "t.toml:3", "is -1", NULL);
    assert_bad(TOP "[defaults]\nseed = 99999999999999999999\n" MODEL, "t.toml:3:28", "not representable in 64 bits",
               NULL);
    assert_bad(TOP "[defaults]\nrecompute = -1\n" MODEL, "t.toml:3", "no percentage", NULL);
    assert_bad(TOP "[defaults]\nrecompute = nan\n" MODEL, "t.toml:3", "no percentage", NULL);
    assert_bad(TOP "[defaults]\nrecompute = \"ten\"\n" MODEL, "t.toml:3", "no percentage", NULL);
    assert_bad(TOP MODEL "extents = { N = 0 }\n", "t.toml:4", "'N' is 0", NULL);
    assert_bad(TOP MODEL "extents = { N = [] }\n", "t.toml:4", "'N' lists nothing", NULL);
    assert_bad(TOP MODEL "shapes = { data = \"1x\" }\n", "t.toml:4", "'1x' is not a shape", "1x3x224x224");
    assert_bad(TOP MODEL "[model.rules]\nsaving = { min = \"101 %\" }\n", "t.toml:5", "never above 100", NULL);
    assert_bad(TOP MODEL "max_bytes = \"99999999999TB\"\n", "t.toml:4", "no limit of total_bytes", NULL);
}

static void test_names_of_things_are_checked(void **state) {
    (void)state;
    assert_bad(TOP "[defaults]\nstrategy = \"serach\"\n" MODEL, "t.toml:3", "no strategy 'serach'", "'search'");
    assert_bad(TOP MODEL "strategies = [\"search\", \"naiv\"]\n", "t.toml:4", "no strategy 'naiv'", "'naive'");
    assert_bad(TOP "[defaults]\nallocator = \"cpu_cachin\"\n" MODEL, "t.toml:3", "no allocator", "'cpu_caching'");
    assert_bad(TOP "[defaults]\nno_passes = [\"oder\"]\n" MODEL, "t.toml:3", "'oder' is not known", "'order'");
    assert_bad(TOP "[defaults]\npasses = [\"recompute\"]\n" MODEL, "t.toml:3", "'recompute' is not known", "views");
    assert_bad(TOP "[defaults]\npasses = [\"views\", \"views\"]\n" MODEL, "t.toml:3", "named twice", NULL);
    assert_bad(TOP "removed = \"error\"\n" MODEL, "t.toml:2", "'error' is not known", "report, warn, fail");
    assert_bad(TOP "gain = \"wran\"\n" MODEL, "t.toml:2", "'wran' is not known", "'warn'");
    assert_bad(TOP "[rules]\npeak_bytes = \"offf\"\n" MODEL, "t.toml:3", "'offf' is not known", "'off'");
    assert_bad(TOP "[rules]\npeak_bytes = \"2%\"\n" MODEL, "t.toml:3", "'2%' is not known", "{ fail = \"2%\" }");
}

static void test_amounts_are_of_the_metric(void **state) {
    (void)state;
    assert_bad(TOP "[rules]\nleaked_blocks = { fail = \"64KiB\" }\n" MODEL, "t.toml:3",
               "'64KiB' is a size, and leaked_blocks is a count", "\"3\"");
    assert_bad(TOP "[rules]\nsaving = { fail = \"64KiB\" }\n" MODEL, "t.toml:3",
               "'64KiB' is a size, and saving is a "
               "share",
               "\"2 points\"");
    assert_bad(TOP "[rules]\nsaving = { fail = 3 }\n" MODEL, "t.toml:3", "needs its unit", "\"2 points\"");
    assert_bad(TOP "[rules]\npeak_bytes = { fail = \"2 points\" }\n" MODEL, "t.toml:3", "is an amount of a share",
               "\"64KiB\"");
    assert_bad(TOP "[rules]\npeak_bytes = { max = \"2 %\" }\n" MODEL, "t.toml:3", "a budget of peak_bytes is an amount",
               "fail = \"2 %\"");
    assert_bad(TOP "[rules]\nwarm_allocations = { max = \"1KiB\" }\n" MODEL, "t.toml:3", "is a size", "3");
    static const char *const no_limits[] = {
        "",    "-5",   "2 % and 3 %",       "1KiB and 2KiB", "1KiB, 2 %", "1KiB and ", "and 2 %", "2 %%",
        "1e3", "0x10", "1KiB or 2%",        "1 and 2 and",   "nan %",     ".5 %",      "5. %",    "9999999 %",
        "%",   " ",    "1234567890123456 %"};
    for (size_t i = 0; i < sizeof no_limits / sizeof no_limits[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, TOP "[rules]\npeak_bytes = { fail = \"%s\" }\n" MODEL, no_limits[i]);
        assert_bad(text, "t.toml:3", "'fail'", NULL);
    }
}

static void test_times_take_no_limit(void **state) {
    (void)state;
    static const char *const rules[] = {
        "{ fail = \"10 %\" }", "{ warn = \"0\" }",     "\"fail\"", "\"warn\"", "{ max = 5 }",
        "{ gain = \"warn\" }", "{ gain_fail = \"0\" }"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, TOP "[defaults]\nrun = true\n[rules]\ntime_ns = %s\n" MODEL, rules[i]);
        assert_bad(text, "t.toml:5", "time_ns is a time, and a time is not the same twice", "time_ns = \"report\"");
    }
    put("x.onnx", "");
    tide_gate_config_destroy(config_of("t.toml", TOP "[rules]\ntime_ns = \"report\"\nplan_time_ns = \"off\"\n" MODEL));
}

// ---- contradictions ----

static void test_limits_that_exclude_each_other_are_reported_with_both_places(void **state) {
    (void)state;
    assert_bad(TOP "[rules]\npeak_bytes = { warn = \"2%\", fail = \"1%\" }\n[defaults]\nrun = true\n" MODEL, "t.toml:3",
               "peak_bytes of x.onnx: the warn limit is not below the fail limit",
               "warn is from t.toml:3, fail from t.toml:3");
    assert_bad(TOP "[rules]\nplanned_bytes = { warn = \"1%\" }\n" MODEL, "t.toml:3", "planned_bytes of x.onnx",
               "fail from the default");
    assert_bad(TOP "[rules]\nplanned_bytes = { warn = \"1KiB\", fail = \"2KiB\" }\n" MODEL
                   "[[override]]\nmatch = \"x*\"\n[override.rules.planned_bytes]\nfail = \"1KiB\"\n",
               "t.toml:3", "not below", "warn is from t.toml:3, fail from t.toml:9");
    assert_bad(TOP MODEL "[model.rules.total_bytes]\nmax = \"1MiB\"\nwarn_max = \"1MiB\"\n", "t.toml:6",
               "warn_max is not below max", "warn is from t.toml:6, fail from t.toml:5");
    assert_bad(TOP "[rules]\nsaving = { min = \"30%\", warn_min = \"20%\" }\n" MODEL, "t.toml:3",
               "warn_min is not above min", NULL);
    assert_bad(TOP "[rules]\ngap = { max = \"5%\", warn_max = \"5%\" }\n" MODEL, "t.toml:3", "warn_max is not below",
               NULL);
    assert_bad(TOP "[rules.planned_bytes]\ngain_warn = \"5%\"\ngain_fail = \"2%\"\n" MODEL, "t.toml:3",
               "not below the fail limit", "fail from t.toml:4");
    // Where neither is above the other there is nothing to say.
    tide_gate_config_destroy(
        config_of("t.toml", TOP "[rules]\nplanned_bytes = { warn = \"64KiB\", fail = \"1KiB and 2%\" }\n" MODEL));
}

static void test_keys_that_exclude_each_other_are_reported_with_both_places(void **state) {
    (void)state;
    assert_bad(TOP "[defaults]\npasses = []\nno_passes = []\n" MODEL, "t.toml:4", "keep one of them", "at t.toml:3");
    assert_bad(TOP "[defaults]\nrun = false\nruns = 3\n" MODEL, "t.toml:4", "'runs' is about runs", "at t.toml:3");
    assert_bad(TOP MODEL "strategy = \"search\"\nstrategies = [\"search\"]\n", "t.toml:5", "'strategies' and",
               "at t.toml:4");
    assert_bad(TOP MODEL "align = 64\naligns = [64]\n", "t.toml:5", "'aligns' and 'align'", "at t.toml:4");
    assert_bad(TOP MODEL "max_bytes = 5\n[model.rules]\ntotal_bytes = { max = 6 }\n", "t.toml:4", "'max_bytes'",
               "at t.toml:6");
    assert_bad(TOP MODEL "max_bytes = 5\n[model.rules]\ntotal_bytes = \"off\"\n", "t.toml:4", "'max_bytes'",
               "at t.toml:6");
    assert_bad(TOP
               "[rules]\n\"kind_peak_bytes.Workspace\" = \"off\"\n[rules.kind_peak_bytes.Workspace]\nmax = 5\n" MODEL,
               "t.toml:3", "two rules of kind_peak_bytes.Workspace", "at t.toml:4");
    assert_bad(TOP "[rules.peak_bytes]\ngain = \"off\"\ngain_warn = \"1%\"\n" MODEL, "t.toml:3", "'gain' says",
               "at t.toml:4");
    assert_bad(TOP MODEL "[[model]]\nalign = 64\npath = \"./x.onnx\"\n", "t.toml:4",
               "two entries give the case "
               "'x.onnx'",
               "at t.toml:2");
    assert_bad(TOP MODEL "extents = { N = [1, 1] }\n", "t.toml:2", "'x.onnx [N=1]'", "exclude");
    // Two names keep them apart.
    tide_gate_config_destroy(
        config_of("t.toml", TOP MODEL "[[model]]\npath = \"x.onnx\"\nname = \"aligned\"\nalign = 64\n"));
}

static void test_rules_without_effect_are_reported(void **state) {
    (void)state;
    tide_gate_config *c =
        config_of("t.toml", TOP MODEL "[[override]]\nmatch = \"y*\"\n[override.rules]\npeak_bytes = { max = 5 }\n");
    assert_empty_target(c, "y*", "override matches no case", "t.toml:5"); // and all others are judged
    tide_gate_config_destroy(c);
    assert_bad(TOP "[rules]\nleaked_bytes = { max = 0 }\n" MODEL, "t.toml:3", "leaked_bytes is measured by a run",
               "run = true");
    assert_bad(TOP "[[model]]\npath = \"y.onnx\"\nrun = true\n" MODEL "[model.rules]\npeak_bytes = \"fail\"\n",
               "t.toml:8", "peak_bytes is measured by a run", NULL);
    // A trace was recorded in a run, so the rule may stand there.
    tide_gate_config_destroy(
        config_of("t.toml", TOP "[rules]\nleaked_bytes = { max = 0 }\n[[model]]\npath = \"trace.db\"\n"));
    assert_bad(TOP "baseline = false\n[rules]\npeak_bytes = { max = \"off\" }\n" MODEL, "t.toml:2",
               "nothing would be "
               "judged",
               "max_bytes");
    tide_gate_config_destroy(config_of("t.toml", TOP "baseline = false\n" MODEL "[[override]]\nmatch = \"x*\"\n"
                                                     "rules.gap = { warn_max = \"5 %\" }\n"));
    assert_bad(TOP, "t.toml", "names no model", "[[model]]");
    assert_bad(TOP "model = []\n", "t.toml:2", "names no model", NULL);
    assert_bad(TOP "[[model]]\nname = \"a\"\n", "t.toml:2", "without 'path'", NULL);
    assert_bad(TOP MODEL "[[override]]\nmax_bytes = 4\n", "t.toml:4", "without 'match'", NULL);
    assert_bad(TOP MODEL "[[override]]\nmatch = \"x*\"\n", "t.toml:4", "without 'rules'", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        config_test(test_unknown_keys_are_named_with_the_nearest),
        config_test(test_patterns_are_checked),
        config_test(test_each_type_is_checked),
        config_test(test_numbers_have_a_range),
        config_test(test_names_of_things_are_checked),
        config_test(test_amounts_are_of_the_metric),
        config_test(test_times_take_no_limit),
        config_test(test_limits_that_exclude_each_other_are_reported_with_both_places),
        config_test(test_keys_that_exclude_each_other_are_reported_with_both_places),
        config_test(test_rules_without_effect_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
