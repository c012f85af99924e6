// SPDX-License-Identifier: MIT
//
// A configuration that is right: what is measured, under which keys, with which settings, and which rule holds.
#include "config_case.h"
#include "planner/passes.h"

static const char whole[] = "version = 1\n"
                            "baseline = \"ci/base.json\"\n"
                            "removed = \"warn\"\n"
                            "added = \"report\"\n"
                            "[defaults]\n"
                            "strategy = \"greedy-size\"\n"
                            "node_limit = 5000\n"
                            "align = 64\n"
                            "fuse = false\n"
                            "qdq = false\n"
                            "no_passes = [\"order\", \"parts\"]\n"
                            "recompute = \"10 %\"\n"
                            "bound_limit = \"1MiB\"\n"
                            "seed = 7\n"
                            "run = true\n"
                            "runs = 3\n"
                            "contexts = 2\n"
                            "allocator = \"cpu_caching\"\n"
                            "limit = \"8GiB\"\n"
                            "input_dir = \"in\"\n"
                            "[[model]]\n"
                            "path = \"./m//*.onnx\"\n"
                            "[[model]]\n"
                            "path = \"m/c.json\"\n"
                            "name = \"small\"\n"
                            "strategy = \"search\"\n"
                            "align = \"1KiB\"\n"
                            "passes = [\"views\"]\n"
                            "run = false\n"
                            "shapes = { data = \"1x3x8x8\", mask = \"4\" }\n"
                            "extents = { T = [16, 32], N = 4 }\n";

static const char *first_strategy(void) {
    const tide_strategy *const *all;
    tide_strategies(&all);
    return all[1]->name;
}

/// `whole` with a strategy that there is.
static tide_gate_config *read_whole(const char *path) {
    char text[2048];
    const char *at = strstr(whole, "greedy-size");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, first_strategy(), at + strlen("greedy-size"));
    return config_of(path, text);
}

static void test_models_become_targets(void **state) {
    (void)state;
    put_models();
    tide_gate_config *c = read_whole("tidemark.toml");
    size_t n;
    const tide_gate_target *t = tide_gate_config_targets(c, &n);
    assert_int_equal(n, 5);
    assert_string_equal(t[0].key, "m/B.onnx"); // bytewise, whatever the locale
    assert_string_equal(t[1].key, "m/a.onnx");
    assert_string_equal(t[2].key, "m/b.onnx");
    assert_string_equal(t[2].path, "m/b.onnx");
    assert_string_equal(t[2].origin, "tidemark.toml:21");
    assert_string_equal(t[3].key, "m/c.json [small, T=16]");
    assert_string_equal(t[4].key, "m/c.json [small, T=32]");
    assert_string_equal(t[4].origin, "tidemark.toml:23");
    bool is_wanted = false;
    assert_string_equal(tide_gate_config_baseline(c, &is_wanted), "ci/base.json");
    assert_true(is_wanted);
    assert_int_equal(tide_gate_config_removed(c), TIDE_GATE_WARN);
    assert_int_equal(tide_gate_config_added(c), TIDE_GATE_REPORT);
    assert_string_equal(tide_gate_config_path(c), "tidemark.toml");
    tide_gate_config_destroy(c);
}

static void test_settings_are_those_of_the_model_over_the_defaults(void **state) {
    (void)state;
    put_models();
    tide_gate_config *c = read_whole("tidemark.toml");
    const tide_gate_plan_settings *a = &target_of(c, "m/a.onnx")->settings;
    assert_string_equal(a->strategy, first_strategy());
    assert_int_equal(a->node_limit, 5000);
    assert_int_equal(a->align_bytes, 64);
    assert_true(a->no_fuse && a->no_qdq);
    assert_int_equal(a->no_passes, 1u << TIDE_PASS_ORDER | 1u << TIDE_PASS_PARTS);
    assert_true(a->recompute_share == 0.1);
    assert_true(a->has_bound_limit && a->bound_limit_bytes == UINT64_C(1) << 20);
    assert_int_equal(a->seed, 7);
    assert_true(a->run);
    assert_int_equal(a->runs, 3);
    assert_int_equal(a->contexts, 2);
    assert_string_equal(a->allocator, "cpu_caching");
    assert_true(a->limit_bytes == UINT64_C(8) << 30);
    assert_string_equal(a->input_dir, "in");
    assert_int_equal(a->n_shapes + a->n_extents, 0);
    const tide_gate_plan_settings *s = &target_of(c, "m/c.json [small, T=32]")->settings;
    assert_string_equal(s->strategy, "search");
    assert_int_equal(s->align_bytes, 1024);
    assert_false(s->run);
    assert_true(s->no_fuse);
    assert_int_equal(s->no_passes, (1u << TIDE_PASS_SLICES) | (1u << TIDE_PASS_IN_PLACE) | (1u << TIDE_PASS_PARTS) |
                                       (1u << TIDE_PASS_ORDER));
    assert_int_equal(s->n_shapes, 2);
    assert_string_equal(s->shapes[0], "data=1x3x8x8");
    assert_string_equal(s->shapes[1], "mask=4");
    assert_int_equal(s->n_extents, 2);
    assert_string_equal(s->extents[0], "N=4");
    assert_string_equal(s->extents[1], "T=32");
    tide_gate_config_destroy(c);
}

static void test_nothing_said_is_the_defaults(void **state) {
    (void)state;
    tide_gate_config *c = config_of("t.toml", "version = 1\n[[model]]\npath = \"gone.onnx\"\n");
    const tide_gate_target *t = target_of(c, "gone.onnx"); // a file that is not there fails when it is measured
    assert_null(t->settings.strategy);
    assert_int_equal(t->settings.node_limit, TIDE_GATE_NODE_LIMIT);
    assert_int_equal(t->settings.align_bytes + t->settings.runs + t->settings.limit_bytes + t->settings.no_passes, 0);
    assert_false(t->settings.run || t->settings.no_fuse || t->settings.no_qdq);
    bool is_wanted = false;
    assert_string_equal(tide_gate_config_baseline(c, &is_wanted), "tidemark-baseline.json");
    assert_true(is_wanted);
    assert_int_equal(tide_gate_config_removed(c), TIDE_GATE_FAIL);
    assert_int_equal(tide_gate_config_added(c), TIDE_GATE_WARN);
    tide_gate_config_destroy(c);
    c = config_of("t.toml", "version = 1\nbaseline = false\n[[model]]\npath = \"gone.onnx\"\nmax_bytes = 9\n");
    assert_null(tide_gate_config_baseline(c, &is_wanted));
    assert_false(is_wanted);
    tide_gate_config_destroy(c);
}

static void test_lists_give_a_case_each(void **state) {
    (void)state;
    char text[512];
    snprintf(text, sizeof text,
             "version = 1\n[[model]]\npath = \"x.onnx\"\nstrategies = [\"search\", \"%s\"]\n"
             "aligns = [64, \"256\"]\nextents = { N = [1] }\n",
             first_strategy());
    tide_gate_config *c = config_of("t.toml", text);
    size_t n;
    const tide_gate_target *t = tide_gate_config_targets(c, &n);
    assert_int_equal(n, 4);
    assert_string_equal(t[0].key, "x.onnx [N=1, strategy=search, align=64]");
    assert_string_equal(t[1].key, "x.onnx [N=1, strategy=search, align=256]");
    assert_int_equal(t[1].settings.align_bytes, 256);
    assert_string_equal(t[1].settings.strategy, "search");
    assert_string_equal(t[2].settings.strategy, first_strategy());
    assert_int_equal(t[2].settings.align_bytes, 64);
    tide_gate_config_destroy(c);
}

// ---- rules ----

static void test_exact_figures_are_held_at_zero_by_default(void **state) {
    (void)state;
    tide_gate_config *c = config_of("t.toml", "version = 1\n[[model]]\npath = \"x.onnx\"\n");
    static const char *const gated[] = {"planned_bytes", "total_bytes",      "predicted_bytes.Workspace",
                                        "peak_bytes",    "reserved_bytes",   "leaked_bytes",
                                        "leaked_blocks", "warm_allocations", "unexplained_bytes.Default"};
    for (size_t i = 0; i < sizeof gated / sizeof gated[0]; i++) {
        const tide_gate_rule r = rule_of(c, "x.onnx", gated[i]);
        assert_limit(&r.fail, "any");
        assert_limit(&r.warn, "-");
        assert_limit(&r.gain_warn, "any");
        assert_limit(&r.gain_fail, "-");
        assert_false(r.off || r.has_max || r.has_warn_max);
        assert_string_equal(r.fail_origin, "the default");
        assert_string_equal(r.gain_warn_origin, "the default");
        assert_string_equal(r.max_origin, "");
    }
    static const char *const told[] = {"time_ns", "plan_time_ns", "saving", "gap", "naive_bytes", "operators"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        const tide_gate_rule r = rule_of(c, "x.onnx", told[i]);
        assert_limit(&r.fail, "-");
        assert_limit(&r.warn, "-");
        assert_limit(&r.gain_warn, "-");
        assert_false(r.off);
    }
    tide_gate_config_destroy(c);
}

static const char layered[] = "version = 1\n"                                                          // 1
                              "gain = \"fail\"\n"                                                      // 2
                              "[defaults]\n"                                                           // 3
                              "run = true\n"                                                           // 4
                              "[rules]\n"                                                              // 5
                              "planned_bytes = { warn = \"0\", fail = \"64KiB and 2 %\" }\n"           // 6
                              "kind_peak_bytes = { warn = 100, fail = \"1MiB\", gain = \"off\" }\n"    // 7
                              "\"kind_peak_bytes.Workspace\" = { max = \"64MiB\" }\n"                  // 8
                              "leaked_bytes = { max = 0 }\n"                                           // 9
                              "gap = \"off\"\n"                                                        // 10
                              "saving = { warn = \"2 points\", min = \"30 %\", warn_min = \"40%\" }\n" // 11
                              "operators = \"warn\"\n"                                                 // 12
                              "[[model]]\n"                                                            // 13
                              "path = \"x.onnx\"\n"                                                    // 14
                              "max_bytes = \"1MB\"\n"                                                  // 15
                              "[model.rules]\n"                                                        // 16
                              "gap = { fail = \"5%\" }\n"                                              // 17
                              "[[model]]\n"                                                            // 18
                              "path = \"big/y [1].onnx\"\n"                                            // 19
                              "[[override]]\n"                                                         // 20
                              "match = \"./b*\"\n"                                                     // 21
                              "max_bytes = 9\n"                                                        // 22
                              "rules.kind_peak_bytes.fail = \"off\"\n"                                 // 23
                              "rules.planned_bytes = \"report\"\n"                                     // 24
                              "[[override]]\n"                                                         // 25
                              "match = \"big/y [1].onnx\"\n"                                           // 26
                              "[override.rules]\n"                                                     // 27
                              "total_bytes = { max = \"2KiB\", gain_warn = \"5 %\" }\n"                // 28
                              "[override.rules.kind_peak_bytes.KVCache]\n"                             // 29
                              "max = 77\n";                                                            // 30

static void test_rules_stand_in_layers(void **state) {
    (void)state;
    assert_int_equal(mkdir("big", 0777), 0);
    put("big/y [1].onnx", "");
    tide_gate_config *c = config_of("t.toml", layered);
    tide_gate_rule r = rule_of(c, "x.onnx", "planned_bytes");
    assert_limit(&r.warn, "any");
    assert_limit(&r.fail, "65536+2%");
    assert_limit(&r.gain_warn, "any"); // the same both ways
    assert_limit(&r.gain_fail, "65536+2%");
    assert_string_equal(r.fail_origin, "t.toml:6");
    assert_string_equal(r.warn_origin, "t.toml:6");
    assert_string_equal(r.gain_warn_origin, "t.toml:2");
    assert_string_equal(r.gain_fail_origin, "t.toml:2");
    r = rule_of(c, "x.onnx", "kind_peak_bytes.Workspace");
    assert_limit(&r.warn, "100");
    assert_limit(&r.fail, "1048576");
    assert_limit(&r.gain_fail, "-");
    assert_true(r.has_max && r.max.known && r.max.u == 64u << 20);
    assert_string_equal(r.fail_origin, "t.toml:7");
    assert_string_equal(r.max_origin, "t.toml:8");
    assert_false(rule_of(c, "x.onnx", "kind_peak_bytes.Default").has_max);
    r = rule_of(c, "x.onnx", "leaked_bytes");
    assert_limit(&r.fail, "any"); // a budget leaves what is inherited
    assert_true(r.has_max && r.max.u == 0);
    r = rule_of(c, "x.onnx", "saving");
    assert_limit(&r.warn, "20000");
    assert_true(r.max.real == 0.3 && r.warn_max.real == 0.4 && r.has_warn_max);
    r = rule_of(c, "x.onnx", "operators");
    assert_limit(&r.warn, "any");
    assert_limit(&r.fail, "-");
    tide_gate_config_destroy(c);
}

static void test_later_layers_win(void **state) {
    (void)state;
    assert_int_equal(mkdir("big", 0777), 0);
    put("big/y [1].onnx", "");
    tide_gate_config *c = config_of("t.toml", layered);
    assert_true(rule_of(c, "y", "gap").off);
    tide_gate_rule r = rule_of(c, "x.onnx", "gap"); // the model's own rule takes "off" back
    assert_false(r.off);
    assert_limit(&r.fail, "5%");
    assert_string_equal(r.fail_origin, "t.toml:17");
    r = rule_of(c, "x.onnx", "total_bytes");
    assert_true(r.has_max && r.max.u == 1000000);
    assert_string_equal(r.max_origin, "t.toml:15");
    assert_string_equal(r.fail_origin, "the default");
    r = rule_of(c, "big/y [1].onnx", "total_bytes");
    assert_true(r.has_max && r.max.u == 2048);
    assert_string_equal(r.max_origin, "t.toml:28");
    assert_limit(&r.gain_warn, "5%");
    assert_limit(&r.gain_fail, "-");
    assert_string_equal(r.gain_warn_origin, "t.toml:28");
    r = rule_of(c, "big/gone.onnx", "total_bytes"); // no target: a removed case
    assert_true(r.has_max && r.max.u == 9);
    r = rule_of(c, "big/y [1].onnx", "kind_peak_bytes.Workspace");
    assert_limit(&r.fail, "-");
    assert_limit(&r.warn, "100");
    assert_true(r.has_max);
    r = rule_of(c, "big/y [1].onnx", "kind_peak_bytes.KVCache");
    assert_true(r.has_max && r.max.u == 77);
    r = rule_of(c, "big/y [1].onnx", "planned_bytes"); // a word inherits nothing
    assert_limit(&r.fail, "-");
    assert_limit(&r.warn, "-");
    assert_limit(&r.gain_fail, "-");
    assert_false(r.off);
    tide_gate_config_destroy(c);
}

static void test_a_later_word_about_gains_takes_the_place_of_their_limits(void **state) {
    (void)state;
    tide_gate_config *c = config_of(
        "t.toml", "version = 1\n[rules.planned_bytes]\nfail = \"1KiB\"\ngain_warn = \"5 %\"\ngain_fail = \"9 %\"\n"
                  "[[model]]\npath = \"x.onnx\"\n[[model]]\npath = \"xy.onnx\"\n[[model]]\npath = \"z.onnx\"\n"
                  "[[override]]\nmatch = \"x*\"\nrules.planned_bytes.gain = \"fail\"\n"
                  "[[override]]\nmatch = \"xy*\"\nrules.planned_bytes.gain_warn = \"7 %\"\n"
                  "[[override]]\nmatch = \"z*\"\nrules.planned_bytes = { gain_warn = \"off\", gain_fail = \"off\" }\n");
    tide_gate_rule r = rule_of(c, "x.onnx", "planned_bytes");
    assert_limit(&r.gain_warn, "-");
    assert_limit(&r.gain_fail, "1024");
    assert_string_equal(r.gain_fail_origin, "t.toml:14");
    r = rule_of(c, "xy.onnx", "planned_bytes"); // the first limits are gone for good
    assert_limit(&r.gain_warn, "7%");
    assert_limit(&r.gain_fail, "-");
    assert_string_equal(r.gain_warn_origin, "t.toml:17");
    r = rule_of(c, "z.onnx", "planned_bytes");
    assert_limit(&r.gain_warn, "-");
    assert_limit(&r.gain_fail, "-");
    assert_string_equal(r.gain_warn_origin, "");
    assert_string_equal(r.gain_fail_origin, "");
    tide_gate_config_destroy(c);
}

// ---- JSON, the command line ----

static void test_json_says_the_same(void **state) {
    (void)state;
    put_models();
    tide_gate_config *c = config_of(
        "t.json", "{\"version\": 1, \"baseline\": \"b.json\", \"defaults\": {\"align\": 64},"
                  "\"rules\": {\"planned_bytes\": {\"warn\": \"0\", \"fail\": \"1KiB\"}},"
                  "\"model\": [{\"path\": \"m/*.onnx\"}, {\"path\": \"m/c.json\", \"extents\": {\"T\": [2, 3], \"N\":"
                  " [1]}, \"rules\": {\"kind_peak_bytes.Workspace\": {\"max\": \"1KiB\"}}, \"run\": true}],"
                  "\"override\": [{\"match\": \"m/c.json*\", \"max_bytes\": 5}]}");
    assert_int_equal(target_of(c, "m/a.onnx")->settings.align_bytes, 64);
    assert_string_equal(target_of(c, "m/a.onnx")->origin, "t.json: model[0]");
    const char *key = "m/c.json [N=1, T=3]"; // by name, though JSON keeps its order
    assert_string_equal(target_of(c, key)->origin, "t.json: model[1]");
    assert_string_equal(rule_of(c, key, "planned_bytes").fail_origin, "t.json: rules.planned_bytes.fail");
    assert_string_equal(rule_of(c, key, "total_bytes").max_origin, "t.json: override[0].max_bytes");
    assert_string_equal(rule_of(c, key, "kind_peak_bytes.Workspace").max_origin,
                        "t.json: model[1].rules.kind_peak_bytes.Workspace.max");
    tide_gate_config_destroy(c);
}

static void test_files_of_the_command_line_have_the_default_rules(void **state) {
    (void)state;
    const char *paths[] = {"./m/a.onnx", "/abs//b.onnx"};
    char shape[] = "data=1x3", strategy[] = "search";
    const char *shapes[] = {shape};
    const tide_gate_plan_settings settings = {.strategy = strategy, .shapes = shapes, .n_shapes = 1, .run = true};
    tide_gate_config *c = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_gate_config_of_files(paths, 2, &settings, &c, &err), &err);
    memset(shape, 'x', sizeof shape - 1); // the configuration has texts of its own
    memset(strategy, 'x', sizeof strategy - 1);
    const tide_gate_target *t = target_of(c, "m/a.onnx");
    assert_string_equal(t->path, "./m/a.onnx");
    assert_string_equal(t->settings.shapes[0], "data=1x3");
    assert_string_equal(t->settings.strategy, "search");
    assert_int_equal(t->settings.node_limit, TIDE_GATE_NODE_LIMIT);
    assert_string_equal(target_of(c, "/abs/b.onnx")->origin, "the command line");
    const tide_gate_rule r = rule_of(c, "m/a.onnx", "planned_bytes");
    assert_limit(&r.fail, "any");
    assert_string_equal(tide_gate_config_path(c), "");
    bool is_wanted = false;
    assert_null(tide_gate_config_baseline(c, &is_wanted));
    assert_true(is_wanted);
    tide_gate_config_destroy(c);
    const char *twice[] = {"m/a.onnx", "./m/a.onnx"};
    assert_tide_status(tide_gate_config_of_files(twice, 2, NULL, &c, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'m/a.onnx' is given twice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        config_test(test_models_become_targets),
        config_test(test_settings_are_those_of_the_model_over_the_defaults),
        config_test(test_nothing_said_is_the_defaults),
        config_test(test_lists_give_a_case_each),
        config_test(test_exact_figures_are_held_at_zero_by_default),
        config_test(test_rules_stand_in_layers),
        config_test(test_later_layers_win),
        config_test(test_a_later_word_about_gains_takes_the_place_of_their_limits),
        config_test(test_json_says_the_same),
        config_test(test_files_of_the_command_line_have_the_default_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
