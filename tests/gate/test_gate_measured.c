// SPDX-License-Identifier: MIT
//
// Cases: lists of them, what a plan tells, and JSON there and back.
#include "gate/measured_internal.h"
#include "tests/gate/case_fixture.h"

// ---- settings and lists ----

static void settings_are_by_key(void **state) {
    (void)state;
    tide_gate_case c = {0};
    set(&c, "strategy", "search");
    set(&c, "align", "64");
    set(&c, "passes", "views");
    set(&c, "align", "256");
    assert_int_equal(c.n_settings, 3);
    assert_string_equal(c.settings[0].key, "align");
    assert_string_equal(c.settings[1].key, "passes");
    assert_string_equal(tide_gate_case_setting(&c, "align"), "256");
    assert_string_equal(tide_gate_case_setting(&c, "strategy"), "search");
    assert_null(tide_gate_case_setting(&c, "fuse"));
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%02d", (i * 7) % 40);
        set(&c, key, key);
    }
    assert_int_equal(c.n_settings, 43);
    for (size_t i = 1; i < c.n_settings; i++) assert_true(strcmp(c.settings[i - 1].key, c.settings[i].key) < 0);
    tide_gate_case_deinit(&c);
}

static void cases_are_by_key(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_cases cases = {0};
    static const char *const keys[] = {"m", "b", "z", "a", "q"};
    for (size_t i = 0; i < 5; i++) add_case(&cases, simple(keys[i], 100 + i));
    assert_int_equal(cases.n, 5);
    for (size_t i = 1; i < cases.n; i++) assert_true(strcmp(cases.items[i - 1].key, cases.items[i].key) < 0);
    for (size_t i = 0; i < 5; i++) {
        const tide_gate_case *c = tide_gate_cases_find(&cases, keys[i]);
        assert_non_null(c);
        assert_int_equal(c->held_bytes, 100 + i);
    }
    assert_null(tide_gate_cases_find(&cases, "aa"));
    tide_gate_case twice = simple("q", 1);
    assert_tide_status(tide_gate_cases_add(&cases, &twice, &err), TIDE_ERR_EXISTS);
    assert_text_has(err.msg, "'q'");
    assert_null(twice.key); // taken also on failure
    tide_gate_case nameless = simple("", 1);
    assert_tide_status(tide_gate_cases_add(&cases, &nameless, &err), TIDE_ERR_INVALID);
    tide_gate_case uneven = simple("u", 1);
    uneven.held_bytes++;
    assert_tide_status(tide_gate_cases_add(&cases, &uneven, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "do not add up");
    assert_text_has(err.note, "they are 1 bytes, held are 2");
    assert_int_equal(cases.n, 5);
    tide_gate_cases_deinit(&cases);
    assert_null(tide_gate_cases_find(&cases, "m"));
}

/// Names that are no UTF-8 become text when a case is taken, and stay apart; tensors come into their order.
static void names_become_text(void **state) {
    (void)state;
    tide_gate_cases cases = {0};
    tide_gate_case c = a_case("k");
    put_tensor(&c, "z\xff", "op", 1, 1);
    put_tensor(&c, "z\xfe", "op", 2, 2);
    put_tensor(&c, "caf\xc3\xa9", "op\x80", 4, 4);
    tide_host_free(c.tensors[0].alias);
    c.tensors[0].alias = NULL;
    add_case(&cases, c);
    const tide_gate_case *got = tide_gate_cases_find(&cases, "k");
    assert_string_equal(got->tensors[0].name, "caf\xc3\xa9");
    assert_string_equal(got->tensors[0].owner, "op\\x80");
    assert_string_equal(got->tensors[1].name, "z\\xfe");
    assert_string_equal(got->tensors[2].name, "z\\xff");
    assert_string_equal(got->tensors[2].alias, "");
    tide_gate_cases_deinit(&cases);
}

// ---- plans ----

/// At step 1 a and b are alive, 128 + 32 as they are rounded up; c comes into a's place.
static void a_plan_by_hand(void **state) {
    (void)state;
    tide_lifetimes lt = {.model = tide_host_strdup("hand")};
    put_aligned(&lt, "a", 100, 32, 0, 2);
    put_aligned(&lt, "b", 32, 32, 1, 3);
    put_aligned(&lt, "c", 40, 32, 2, 3);
    put_persistent(&lt, "w", 70, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    put_persistent(&lt, "x", 10, TIDE_ROLE_INPUT, TIDE_KIND_DEFAULT, 3);
    static const char *const names[] = {"conv", "relu", "add"};
    lt.step_names = tide_host_calloc(3, sizeof *lt.step_names);
    for (size_t i = 0; i < 3; i++) lt.step_names[i] = tide_host_strdup(names[i]);
    lt.n_step_names = 3;
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    tide_error err = TIDE_ERROR_INIT;
    static const char *const ops[] = {"Conv", "Relu", "Add"};
    tide_gate_case c = {.key = tide_host_strdup("hand.json")};
    assert_tide_ok(tide_gate_case_of_plan(plan, ops, &c, &err), &err);
    assert_string_equal(c.key, "hand.json");
    assert_string_equal(c.model, "hand");
    assert_string_equal(c.peak_step, "relu");
    assert_int_equal(c.held_bytes, plan->bytes);
    assert_int_equal(c.held_bytes, 160);
    assert_int_equal(c.holes_bytes, 0);
    assert_int_equal(c.n_steps, 3);
    assert_string_equal(c.steps[2].name, "add");
    assert_string_equal(c.steps[2].op, "Add");
    assert_int_equal(c.n_tensors, 5);
    assert_string_equal(c.tensors[0].name, "a");
    assert_string_equal(c.tensors[0].owner, "conv");
    assert_int_equal(c.tensors[0].bytes, 128); // rounded up
    assert_int_equal(c.tensors[0].at_peak_bytes, 128);
    assert_int_equal(c.tensors[1].at_peak_bytes, 32);
    assert_string_equal(c.tensors[2].owner, "add");
    assert_int_equal(c.tensors[2].at_peak_bytes, 0);
    assert_string_equal(c.tensors[3].name, "w");
    assert_string_equal(c.tensors[3].owner, "");
    assert_true(c.tensors[3].persistent);
    assert_int_equal(c.tensors[3].kind, TIDE_KIND_PERSISTENT);
    assert_int_equal(c.tensors[3].at_peak_bytes, 0); // outside of the buffers
    assert_int_equal(tide_gate_case_value(&c, TIDE_GATE_PLANNED, -1).u, 160);
    assert_int_equal(tide_gate_case_value(&c, TIDE_GATE_TOTAL, -1).u, 160 + 70 + 10);
    assert_int_equal(tide_gate_case_value(&c, TIDE_GATE_PREDICTED, TIDE_KIND_PERSISTENT).u, 70);
    assert_int_equal(tide_gate_case_value(&c, TIDE_GATE_PREDICTED, TIDE_KIND_WORKSPACE).u, 160);
    assert_true(tide_gate_case_value(&c, TIDE_GATE_PREDICTED, TIDE_KIND_KV_CACHE).known);
    assert_false(tide_gate_case_value(&c, TIDE_GATE_PREDICTED, -1).known);
    assert_int_equal(tide_gate_case_value(&c, TIDE_GATE_LOWER_BOUND, -1).u, 160);
    assert_int_equal(tide_gate_case_value(&c, TIDE_GATE_NAIVE, -1).u, 128 + 32 + 64);
    assert_int_equal(tide__case_millionths(tide_gate_case_value(&c, TIDE_GATE_SAVING, -1).real), 285714);
    assert_int_equal(tide__case_millionths(tide_gate_case_value(&c, TIDE_GATE_GAP, -1).real), 0);
    assert_int_equal(tide_gate_case_value(&c, TIDE_GATE_OPERATORS, -1).u, 3);
    assert_false(tide_gate_case_value(&c, TIDE_GATE_PEAK, -1).known); // nothing ran
    assert_string_equal(tide_gate_case_setting(&c, "strategy"), "greedy_by_size");
    assert_string_equal(tide_gate_case_setting(&c, "align"), "32");
    tide_gate_case_deinit(&c);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// A share beyond all measure, of a plan that says so, is kept as the largest one that a baseline takes.
static void a_gap_beyond_measure(void **state) {
    (void)state;
    tide_lifetimes lt = {.model = tide_host_strdup("huge")};
    put_aligned(&lt, "a", (uint64_t)1 << 50, 64, 0, 1);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    plan->proved_bytes = 1;
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_case c = {.key = tide_host_strdup("k")}, again;
    assert_tide_ok(tide_gate_case_of_plan(plan, NULL, &c, &err), &err);
    json_t *doc = tide__case_to_json(&c);
    tide_json_reader r = {.path = "k", .err = &err};
    assert_tide_ok(tide__case_of_json(&r, doc, &again), &err);
    assert_true(tide_gate_case_value(&again, TIDE_GATE_GAP, -1).real > 9e11);
    assert_true(tide__case_same_value(TIDE_GATE_SHARE, tide_gate_case_value(&c, TIDE_GATE_GAP, -1),
                                      tide_gate_case_value(&again, TIDE_GATE_GAP, -1)));
    json_decref(doc);
    tide_gate_case_deinit(&again);
    tide_gate_case_deinit(&c);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// In a plan with one buffer, the tensors at the peak sum to its lower bound. Bytes that an alias shares count once.
static void assert_plan_case(const tide_memory_plan *plan) {
    tide_gate_case c = case_of(plan, "k");
    assert_adds_up(&c);
    assert_int_equal(c.held_bytes, plan->bytes);
    assert_int_equal(c.n_tensors, plan->lifetimes.n);
    const uint64_t tensors = c.held_bytes - c.holes_bytes;
    assert_true(tensors <= plan->lower_bound_bytes);
    if (plan->n_buffers == 1) assert_int_equal(tensors, plan->lower_bound_bytes);
    for (size_t b = 0; b < plan->n_buffers; b++) assert_true(tensors >= plan->buffers[b].lower_bound_bytes);
    for (size_t i = 0; i < c.n_tensors; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[index_of(&plan->lifetimes, c.tensors[i].name)];
        assert_int_equal(c.tensors[i].bytes, tide_lifetime_aligned_bytes(l));
        if (l->persistent) assert_int_equal(c.tensors[i].at_peak_bytes, 0);
        assert_true((c.tensors[i].inside[0] != '\0') == (l->alias != TIDE_ALIAS_NONE));
        if (i > 0) assert_true(tide__case_compare_tensors(&c.tensors[i - 1], &c.tensors[i]) <= 0);
    }
    tide_gate_case_deinit(&c);
}

static void random_plans_add_up(void **state) {
    (void)state;
    const tide_strategy *const *strategies;
    const size_t n = tide_strategies(&strategies);
    size_t n_made = 0, n_several = 0, n_pools = 0, n_aliases = 0;
    tide_rng rng = {43};
    for (size_t k = 0; k < n; k++) {
        for (int round = 0; round < 8; round++) {
            tide_lifetimes lt = {0};
            tide_error err = TIDE_ERROR_INIT;
            tide_memory_plan *plan;
            const tide_strategy_options opt = {.node_limit = 500, .n_threads = 1};
            if (round % 2 == 0)
                put_random(&lt, &rng, 30, 12, 500, true);
            else
                put_every_feature(&lt, &rng, 8 + tide_rng_below(&rng, 16));
            if (tide_plan_make(&lt, strategies[k], &opt, &plan, &err) == TIDE_OK) { // some serve no such tables
                assert_plan_case(plan);
                n_made++;
                n_several += plan->n_buffers > 1;
                n_pools += plan->form == TIDE_PLAN_POOLS && plan->n_pools > 1;
                for (size_t i = 0; i < plan->lifetimes.n; i++) n_aliases += plan->lifetimes.items[i].alias != 0;
                tide_memory_plan_destroy(plan);
            }
            tide_lifetimes_deinit(&lt);
        }
    }
    assert_true(n_made > 40 && n_several > 10 && n_pools > 3 && n_aliases > 20); // or nothing was asked
}

static void sample_graphs_add_up(void **state) {
    (void)state;
    static const char *const samples[] = {"unet", "mobilenet_v2", "view_chain", "inception_block"};
    for (size_t i = 0; i < 4; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_program *p = case_sample(samples[i]);
        const tide_pass_options opt = {.align_bytes = 256};
        tide_lifetimes lt;
        assert_tide_ok(tide_passes_run(p, &opt, &lt, NULL, &err), &err);
        tide_memory_plan *plan = case_plan(&lt);
        assert_plan_case(plan);
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
        tide_program_unref(p);
    }
}

static void a_plan_of_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {.n_steps = 1};
    put_persistent(&lt, "w", 8, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 1);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    tide_gate_case c = case_of(plan, "k");
    assert_int_equal(c.held_bytes, 0);
    assert_int_equal(c.n_steps, 0);
    assert_string_equal(c.peak_step, "step 0");
    assert_false(tide_gate_case_value(&c, TIDE_GATE_OPERATORS, -1).known);
    assert_true(tide_gate_case_value(&c, TIDE_GATE_GAP, -1).known);
    tide_gate_case_deinit(&c);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// When several steps use equally many bytes, the first of them is the peak.
static void the_first_of_equal_peaks(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "small", 10, 0, 1);
    put(&lt, "first", 100, 1, 2);
    put(&lt, "second", 100, 3, 4);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    tide_gate_case c = case_of(plan, "k");
    assert_string_equal(c.peak_step, "step 1");
    assert_string_equal(c.tensors[0].name, "first");
    assert_int_equal(c.tensors[0].at_peak_bytes, 100);
    assert_int_equal(c.tensors[1].at_peak_bytes + c.tensors[2].at_peak_bytes, 0);
    tide_gate_case_deinit(&c);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void no_memory_for_a_plan(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 100, 0, 2);
    put(&lt, "b", 32, 1, 3);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_gate_case c = {0};
        tide_host_fail_after(n);
        st = tide_gate_case_of_plan(plan, NULL, &c, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
        tide_gate_case_deinit(&c);
    }
    assert_true(n > 20);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(settings_are_by_key),      tide_unit_test(cases_are_by_key),
        tide_unit_test(names_become_text),        tide_unit_test(a_plan_by_hand),
        tide_unit_test(a_gap_beyond_measure),     tide_unit_test(random_plans_add_up),
        tide_unit_test(sample_graphs_add_up),     tide_unit_test(a_plan_of_nothing),
        tide_unit_test(the_first_of_equal_peaks), tide_unit_test(no_memory_for_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
