// SPDX-License-Identifier: MIT
//
// planner/report, table and dump: golden texts.
#include "planner/plan_json.h"
#include "tests/planner/plan_test.h"

#define KB UINT64_C(1024)

/// A chain whose plan has the seed's own numbers: 5650 KiB become pools of 1024 and 512 KiB.
static void put_seed_chain(tide_lifetimes *lt) {
    static const struct {
        const char *name;
        uint64_t kb;
    } chain[] = {{"conv1_output", 1024}, {"relu1_output", 512}, {"pool1_output", 1024}, {"conv2_output", 512},
                 {"relu2_output", 1024}, {"pool2_output", 512}, {"fc1_output", 1024},   {"fc2_output", 18}};
    for (int i = 0; i < 8; i++) put_aligned(lt, chain[i].name, chain[i].kb * KB, TIDE_DEFAULT_ALIGN, i, i + 2);
}

// S23-16, S23-17: layout and arithmetic of the seed.
static void the_seeds_report(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_seed_chain(&lt);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    tide_text out = {0};
    tide_plan_report(plan, &out);
    static const char want[] = "╔════════════════════════════════════════════════════════════════════╗\n"
                               "║                   Static Memory Planning Result                    ║\n"
                               "╚════════════════════════════════════════════════════════════════════╝\n"
                               "\n"
                               "Memory Pools: 2\n"
                               "----------------------------------------\n"
                               "Pool 0: 1024.00 KiB\n"
                               "  Tensors (4):\n"
                               "    - conv1_output\n"
                               "    - pool1_output\n"
                               "    - relu2_output\n"
                               "    - fc1_output\n"
                               "\n"
                               "Pool 1: 512.00 KiB\n"
                               "  Tensors (4):\n"
                               "    - relu1_output\n"
                               "    - conv2_output\n"
                               "    - pool2_output\n"
                               "    - fc2_output\n"
                               "\n"
                               "----------------------------------------\n"
                               "Original Memory: 5650.00 KiB\n"
                               "Optimized Memory: 1536.00 KiB\n"
                               "Memory Saving: 72.81%\n"
                               "Lower Bound: 1536.00 KiB (reached: no plan is smaller)\n";
    assert_string_equal(tide_text_str(&out), want);
    tide_text_deinit(&out);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// Names come from files: none steers the terminal or breaks a line, and a long one is printed to its end.
static void names_are_made_fit_to_be_shown(void **state) {
    (void)state;
    char longest[701];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    tide_lifetimes lt = {0};
    put(&lt, "red\x1b[31m", 4, 0, 2);
    put(&lt, "two\nlines", 4, 1, 2);
    put(&lt, "no utf8 \xff", 4, 1, 2);
    put(&lt, "größe", 4, 1, 2);
    put(&lt, longest, 4, 0, 2);
    static const char *const strategies[] = {"greedy_color", "greedy_by_size"};
    for (size_t s = 0; s < 2; s++) {
        tide_memory_plan *plan = make_plan(&lt, strategies[s]);
        tide_text out = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_plan_report(plan, &out);
        for (int stage = 0; stage <= (int)TIDE_STAGE_PLAN; stage++)
            assert_tide_ok(tide_plan_dump_stage(plan, (tide_stage)stage, &out, &err), &err);
        const char *text = tide_text_str(&out);
        assert_null(strchr(text, '\x1b'));
        assert_null(strchr(text, '\xff'));
        assert_null(strstr(text, "two\nlines"));
        assert_text_has(text, "red\xEF\xBF\xBD[31m");
        assert_text_has(text, "two\xEF\xBF\xBDlines");
        assert_text_has(text, "größe");
        assert_text_has(text, longest);
        tide_text_deinit(&out);
        tide_memory_plan_destroy(plan);
    }
    tide_lifetimes_deinit(&lt);
}

// S23-10: what there is to gain still, as the gap to the largest live sum.
static void an_offset_plans_report(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_aligned(&lt, "a", 1000, 256, 0, 2);
    put_aligned(&lt, "b", 1500, 256, 1, 3);
    put_aligned(&lt, "c", 300, 256, 2, 4);
    put_persistent(&lt, "w", 5000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 4);
    tide_memory_plan *plan = make_plan(&lt, "naive");
    tide_text out = {0};
    tide_plan_report(plan, &out);
    const char *body = strstr(tide_text_str(&out), "Memory Buffer");
    assert_non_null(body);
    assert_string_equal(body, "Memory Buffer: 3.00 KiB\n"
                              "----------------------------------------\n"
                              "  Tensors (3):\n"
                              "    - a: offset 0, 1.00 KiB, steps 0 to 1\n"
                              "    - b: offset 1024, 1.50 KiB, steps 1 to 2\n"
                              "    - c: offset 2560, 0.50 KiB, steps 2 to 3\n"
                              "\n"
                              "----------------------------------------\n"
                              "Original Memory: 3.00 KiB\n"
                              "Optimized Memory: 3.00 KiB\n"
                              "Memory Saving: 0.00%\n"
                              "Lower Bound: 2.50 KiB (gap 20.00%)\n");
    tide_text_deinit(&out);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void the_table_of_plans(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_seed_chain(&lt);
    tide_memory_plan *plans[3] = {make_plan(&lt, "naive"), make_plan(&lt, "greedy_color"),
                                  make_plan(&lt, "greedy_by_size")};
    for (int i = 0; i < 3; i++) plans[i]->time_ns = 1234567u * (unsigned)i;
    tide_text out = {0};
    tide_plan_table((const tide_memory_plan *const *)plans, 3, &out);
    assert_string_equal(tide_text_str(&out), //
                        "strategy        form       bytes       gap  saving  pools      time\n"
                        "naive           offsets  5785600  +267.84%   0.00%      -  0.000 ms\n"
                        "greedy_color    pools    1572864    proven  72.81%      2  1.235 ms\n"
                        "greedy_by_size  offsets  1572864    proven  72.81%      -  2.469 ms\n");
    tide_text_deinit(&out);
    for (int i = 0; i < 3; i++) tide_memory_plan_destroy(plans[i]);
    tide_lifetimes_deinit(&lt);
}

/// What the seed's report has no line for stands below it: several buffers, aliases, a bound that is proved otherwise.
static void lines_below_the_report(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    put_aligned(&lt, "a", 1024, 256, 0, 2);
    put_aligned(&lt, "b", 1024, 256, 2, 3);
    put_aligned(&lt, "part", 512, 256, 1, 2);
    tide_lifetime kv = an_item("kv", 2048, 256, 0, 3);
    kv.kind = TIDE_KIND_KV_CACHE;
    assert_tide_ok(tide_lifetimes_add(&lt, &kv, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&lt, 2, TIDE_ALIAS_SLICE, 0, 512, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    plan->bytes = 4096; // a plan at some distance from its bounds
    plan->buffers[0].bytes = 2048;
    plan->buffers[0].proved_bytes = 1280;
    plan->buffers[0].proof = TIDE_PROOF_SEARCH;
    plan->proved_bytes = 3328;
    plan->proven = false;
    tide_text out = {0};
    tide_plan_report(plan, &out);
    const char *text = tide_text_str(&out);
    assert_text_has(text, "    - part: offset 512, 0.50 KiB, steps 1 to 1, slice in a\n");
    assert_text_has(text, "Lower Bound: 3.00 KiB (gap 33.33%)\n"
                          "Proved Bound: 3.25 KiB, by search (gap 23.08%)\n"
                          "Buffer cpu Workspace: 2.00 KiB (lower bound 1.00 KiB)\n"
                          "Buffer cpu KVCache: 2.00 KiB (lower bound 2.00 KiB)\n");
    tide_text_deinit(&out);
    plan->proved_bytes = plan->bytes;
    plan->proven = true;
    tide_plan_report(plan, &out);
    assert_text_has(tide_text_str(&out), "Proved Bound: 4.00 KiB, by search (reached: no plan is smaller)\n");
    tide_text_deinit(&out);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// Places count from the start of a buffer: each buffer lists its own tensors, and each pool the aliases in its
/// members.
static void tensors_stand_where_they_lie(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetime kv = an_item("kv", 2048, 256, 0, 3);
    kv.kind = TIDE_KIND_KV_CACHE;
    put_aligned(&lt, "view", 512, 256, 1, 2);
    put_aligned(&lt, "a", 1024, 256, 0, 2);
    assert_tide_ok(tide_lifetimes_add(&lt, &kv, &err), &err);
    put_aligned(&lt, "b", 1024, 256, 2, 3);
    assert_tide_ok(tide_lifetimes_alias(&lt, 0, TIDE_ALIAS_VIEW, 1, 512, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    tide_text out = {0};
    tide_plan_report(plan, &out);
    assert_text_has(tide_text_str(&out), "Memory Buffers: 2, 3.00 KiB\n"
                                         "----------------------------------------\n"
                                         "Buffer cpu Workspace: 1.00 KiB\n"
                                         "  Tensors (3):\n"
                                         "    - a: offset 0, 1.00 KiB, steps 0 to 1\n"
                                         "    - b: offset 0, 1.00 KiB, steps 2 to 2\n"
                                         "    - view: offset 512, 0.50 KiB, steps 1 to 1, view in a\n"
                                         "\n"
                                         "Buffer cpu KVCache: 2.00 KiB\n"
                                         "  Tensors (1):\n"
                                         "    - kv: offset 0, 2.00 KiB, steps 0 to 2\n"
                                         "\n");
    tide_text_deinit(&out);
    tide_memory_plan_destroy(plan);
    plan = make_plan(&lt, "greedy_color");
    tide_plan_report(plan, &out);
    assert_text_has(tide_text_str(&out), "Memory Pools: 2\n"
                                         "----------------------------------------\n"
                                         "Pool 0: 1.00 KiB of cpu Workspace\n"
                                         "  Tensors (3):\n"
                                         "    - a\n"
                                         "    - view, view in a\n"
                                         "    - b\n"
                                         "\n"
                                         "Pool 1: 2.00 KiB of cpu KVCache\n"
                                         "  Tensors (1):\n"
                                         "    - kv\n"
                                         "\n");
    tide_text_deinit(&out);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// A list of thousands is no help: it is cut, and says how much is not there.
static void long_lists_are_cut(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    for (int i = 0; i < 203; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%03d", i);
        put(&lt, name, 4, i, i + 1);
    }
    static const char *const strategies[] = {"greedy_by_size", "greedy_color"};
    for (size_t s = 0; s < 2; s++) {
        tide_memory_plan *plan = make_plan(&lt, strategies[s]);
        tide_text out = {0};
        tide_plan_report(plan, &out);
        const char *text = tide_text_str(&out);
        assert_text_has(text, "  Tensors (203):\n");
        assert_text_has(text, "    - t199");
        assert_text_has(text, "    … and 3 more (--dump-stage plan lists all)\n\n");
        assert_null(strstr(text, "t200"));
        tide_text_deinit(&out);
        tide_memory_plan_destroy(plan);
    }
    tide_lifetimes_deinit(&lt);
}

static void what_the_passes_gained(void **state) {
    (void)state;
    tide_pass_report r = {
        .given_bytes = 4096, .final_bytes = 2048, .work = 200, .extra_work = 30, .allowed_share = 0.25};
    tide_text out = {0};
    tide_pass_report_print(&r, &out);
    assert_string_equal(tide_text_str(&out), ""); // none ran
    r.gains[TIDE_PASS_VIEWS] = (tide_pass_gain){.ran = true, .before_bytes = 4096, .after_bytes = 3072, .n = 3};
    r.gains[TIDE_PASS_RECOMPUTE] = (tide_pass_gain){.ran = true, .before_bytes = 3072, .after_bytes = 2048, .n = 1};
    tide_pass_report_print(&r, &out);
    assert_string_equal(
        tide_text_str(&out),
        "\nPasses: lower bound 4.00 KiB -> 2.00 KiB\n"
        "pass       bound before     after\n"
        "views          4.00 KiB  3.00 KiB  -25.00%  tensors: 3\n"
        "recompute      3.00 KiB  2.00 KiB  -33.33%  nodes run twice: 1, +15.00% work of 25.00% allowed\n");
    tide_text_deinit(&out);
}

/// A strategy that cannot serve the table has a row that says why.
static void refused_strategies_have_a_row(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_seed_chain(&lt);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    plan->time_ns = 1000000;
    char why[] = "pools have no fixed places";
    const tide_plan_refusal refused = {"greedy_color", why};
    const tide_plan_extras extras = {.refused = &refused, .n_refused = 1};
    tide_text out = {0};
    tide_plan_table_with((const tide_memory_plan *const *)&plan, 1, &extras, &out);
    assert_string_equal(
        tide_text_str(&out),
        "strategy        form       bytes     gap  saving  pools      time\n"
        "greedy_by_size  offsets  1572864  proven  72.81%      -  1.000 ms\n"
        "greedy_color    -              -       -       -      -         -  pools have no fixed places\n");
    tide_text_deinit(&out);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

// S23-2: the four stages, each alone.
static void the_four_stages(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_aligned(&lt, "a", 1000, 256, 0, 2);
    put_aligned(&lt, "b", 1500, 256, 1, 3);
    put_aligned(&lt, "c", 300, 256, 2, 3);
    put_persistent(&lt, "w", 5000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    lt.model = tide_host_strdup("tiny");
    lt.step_names = tide_host_calloc(3, sizeof *lt.step_names);
    static const char *const steps[] = {"conv", "relu", "fc"};
    for (size_t i = 0; i < 3; i++) lt.step_names[i] = tide_host_strdup(steps[i]);
    lt.n_step_names = 3;
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    static const struct {
        tide_stage stage;
        const char *text;
    } want[] = {
        {TIDE_STAGE_LIVENESS,
         "1 liveness: tiny, 4 tensors, 3 steps; birth and death are steps, both included\n"
         "tensor  bytes  aligned  birth  death  kind        role          device  persistent  made by\n"
         "a        1000     1024      0      1  Workspace   intermediate  cpu     no          conv\n"
         "b        1500     1536      1      2  Workspace   intermediate  cpu     no          relu\n"
         "c         300      512      2      2  Workspace   intermediate  cpu     no          fc\n"
         "w        5000     5000      0      2  Persistent  weight        cpu     yes\n"},
        {TIDE_STAGE_GRAPH, "2 interference graph: 3 tensors that can share memory, 2 conflicts\n"
                           "a: b\n"
                           "b: a c\n"
                           "c: b\n"},
        {TIDE_STAGE_COLOUR, "3 colouring by greedy_color: 2 pools\n"
                            "tensor  aligned  birth  death  pool\n"
                            "a          1024      0      1     1\n"
                            "b          1536      1      2     0\n"
                            "c           512      2      2     1\n"},
        {TIDE_STAGE_PLAN, "4 plan by greedy_color: 2560 bytes (naive 3072, lower bound 2560), verified\n"
                          "tensor  offset   end  birth  death  pool\n"
                          "a         1536  2560      0      1     1\n"
                          "b            0  1536      1      2     0\n"
                          "c         1536  2048      2      2     1\n"},
    };
    for (size_t i = 0; i < 4; i++) {
        tide_text out = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_plan_dump_stage(plan, want[i].stage, &out, &err), &err);
        assert_string_equal(tide_text_str(&out), want[i].text);
        tide_text_deinit(&out);
    }
    tide_memory_plan_destroy(plan);

    // An offset plan has no colours; the stage shows what colouring would do and says so.
    plan = make_plan(&lt, "greedy_by_size");
    tide_text out = {0};
    assert_tide_status(tide_plan_dump_stage(plan, TIDE_STAGE_COLOUR, &out, NULL), TIDE_OK);
    assert_text_has(tide_text_str(&out), "greedy_by_size places by offset");
    assert_text_has(tide_text_str(&out), want[2].text);
    tide_text_deinit(&out);
    assert_tide_status(tide_plan_dump_stage(plan, (tide_stage)9, &out, NULL), TIDE_ERR_INVALID);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_seed_chain(&lt);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_memory_plan *const plans[] = {plan};
    for (int what = 0; what < 6; what++) {
        bool failed = true;
        for (int64_t n = 0; failed; n++) {
            tide_host_stats before, after;
            tide_text out = {0};
            tide_status st = TIDE_OK;
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            if (what < 4) st = tide_plan_dump_stage(plan, (tide_stage)what, &out, NULL);
            if (what == 4) tide_plan_report(plan, &out);
            if (what == 5) tide_plan_table(plans, 1, &out);
            tide_host_fail_after(-1);
            failed = out.failed || st != TIDE_OK;
            if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
            tide_text_deinit(&out);
            tide_host_get_stats(&after);
            assert_int_equal(before.n_live, after.n_live);
            assert_true(n > 0 || failed);
        }
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_seeds_report),
        tide_unit_test(an_offset_plans_report),
        tide_unit_test(names_are_made_fit_to_be_shown),
        tide_unit_test(the_table_of_plans),
        tide_unit_test(lines_below_the_report),
        tide_unit_test(tensors_stand_where_they_lie),
        tide_unit_test(long_lists_are_cut),
        tide_unit_test(what_the_passes_gained),
        tide_unit_test(refused_strategies_have_a_row),
        tide_unit_test(the_four_stages),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
