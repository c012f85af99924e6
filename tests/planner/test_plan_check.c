// SPDX-License-Identifier: MIT
//
// tide_plan_check: verdict per figure, causes, and what cannot be compared.
#include "planner/plan_check.h"
#include "tests/planner/plan_test.h"

static tide_memory_plan *plan_of(tide_lifetimes *lt, const char *model, const char *strategy_name) {
    tide_error err = TIDE_ERROR_INIT;
    tide_host_free(lt->model);
    lt->model = tide_host_strdup(model);
    const tide_strategy *strategy = NULL;
    assert_tide_ok(tide_strategy_find(strategy_name, &strategy, &err), &err);
    tide_memory_plan *plan = NULL;
    assert_tide_ok(tide_plan_make(lt, strategy, NULL, &plan, &err), &err);
    tide_lifetimes_deinit(lt);
    return plan;
}

/// a and b live together, c after them; weights of `weight` bytes.
static tide_memory_plan *small_plan(uint64_t a, uint64_t b, uint64_t weight, const char *model, const char *strategy) {
    tide_lifetimes lt = {0};
    put(&lt, "a", a, 0, 2);
    put(&lt, "b", b, 1, 3);
    put(&lt, "c", 8, 3, 4);
    put_persistent(&lt, "w", weight, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 4);
    put_persistent(&lt, "x", 4, TIDE_ROLE_INPUT, TIDE_KIND_DEFAULT, 4);
    return plan_of(&lt, model, strategy);
}

static const tide_check_rule *rule_of(const tide_check_result *r, tide_check_metric m) {
    assert_int_equal(r->rules[m].metric, m);
    return &r->rules[m];
}

static void same_and_better_pass(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_check_result r;
    tide_memory_plan *base = small_plan(100, 50, 30, "m", "greedy_by_size");
    tide_memory_plan *better = small_plan(100, 40, 30, "m", "greedy_by_size");
    assert_tide_ok(tide_plan_check(base, base, &r, &err), &err);
    assert_true(r.pass);
    assert_tide_ok(tide_plan_check(base, better, &r, &err), &err);
    assert_true(r.pass);
    assert_int_equal(rule_of(&r, TIDE_CHECK_BUFFER)->baseline, 150);
    assert_int_equal(rule_of(&r, TIDE_CHECK_BUFFER)->current, 140);
    tide_memory_plan_destroy(base);
    tide_memory_plan_destroy(better);
}

/// A plan that was made in memory may have no model's name.
static void plans_without_a_name(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_check_result r;
    tide_memory_plan *named = small_plan(100, 50, 30, "m", "greedy_by_size");
    tide_memory_plan *plan = small_plan(100, 50, 30, "", "greedy_by_size");
    tide_host_free(plan->lifetimes.model);
    plan->lifetimes.model = NULL;
    assert_tide_ok(tide_plan_check(plan, plan, &r, &err), &err);
    assert_true(r.pass);
    assert_tide_status(tide_plan_check(named, plan, &r, &err), TIDE_ERR_INCOMPARABLE);
    tide_memory_plan_destroy(named);
    tide_memory_plan_destroy(plan);
}

static void one_byte_more_fails_and_names_the_tensor(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_check_result r;
    tide_memory_plan *base = small_plan(100, 50, 30, "m", "greedy_by_size");
    tide_memory_plan *worse = small_plan(100, 51, 30, "m", "greedy_by_size");
    assert_tide_ok(tide_plan_check(base, worse, &r, &err), &err);
    assert_false(r.pass);
    const tide_check_rule *buffer = rule_of(&r, TIDE_CHECK_BUFFER);
    assert_false(buffer->pass);
    assert_int_equal(buffer->n_causes, 1);
    assert_string_equal(buffer->causes[0].name, "b");
    assert_int_equal(buffer->causes[0].baseline_bytes, 50);
    assert_int_equal(buffer->causes[0].current_bytes, 51);
    assert_true(rule_of(&r, TIDE_CHECK_WEIGHTS)->pass);
    assert_true(rule_of(&r, TIDE_CHECK_IO)->pass);
    tide_memory_plan_destroy(base);
    tide_memory_plan_destroy(worse);
}

static void weights_are_a_rule_of_their_own(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_check_result r;
    tide_memory_plan *base = small_plan(100, 50, 30, "m", "greedy_by_size");
    tide_memory_plan *worse = small_plan(100, 50, 31, "m", "greedy_by_size");
    assert_tide_ok(tide_plan_check(base, worse, &r, &err), &err);
    assert_false(r.pass);
    assert_true(rule_of(&r, TIDE_CHECK_BUFFER)->pass);
    assert_false(rule_of(&r, TIDE_CHECK_WEIGHTS)->pass);
    assert_string_equal(rule_of(&r, TIDE_CHECK_WEIGHTS)->causes[0].name, "w");
    tide_memory_plan_destroy(base);
    tide_memory_plan_destroy(worse);
}

/// A tensor that lay inside another one and has memory of its own now is a cause; one that still does is none.
static void a_lost_alias_is_a_cause(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_check_result r;
    tide_memory_plan *plans[2];
    for (int k = 0; k < 2; k++) {
        tide_lifetimes lt = {0};
        put(&lt, "x", 100, 0, 3);
        put(&lt, "view", 100, 1, 3);
        put(&lt, "other", 60, 1, 3);
        if (k == 0) assert_tide_ok(tide_lifetimes_alias(&lt, 1, TIDE_ALIAS_VIEW, 0, 0, &err), &err);
        plans[k] = plan_of(&lt, "m", "greedy_by_size");
    }
    assert_tide_ok(tide_plan_check(plans[0], plans[1], &r, &err), &err);
    const tide_check_rule *buffer = rule_of(&r, TIDE_CHECK_BUFFER);
    assert_int_equal(buffer->baseline, 160);
    assert_int_equal(buffer->current, 260);
    assert_int_equal(buffer->n_causes, 1);
    assert_string_equal(buffer->causes[0].name, "view");
    assert_false(buffer->causes[0].is_new);
    assert_int_equal(buffer->causes[0].baseline_bytes, 0);
    tide_memory_plan_destroy(plans[0]);
    tide_memory_plan_destroy(plans[1]);
}

/// More grown tensors than there is room for: the largest stay, largest first; a new one counts from 0.
static void largest_causes_first(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes before = {0}, after = {0};
    for (uint64_t i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%d", (int)i);
        put(&before, name, 100, 0, 1);
        put(&after, name, 100 + (i * 3) % 8, 0, 1); // growths 0 3 6 1 4 7 2 5
    }
    put(&after, "new", 50, 0, 1);
    tide_memory_plan *a = plan_of(&before, "m", "naive"), *b = plan_of(&after, "m", "naive");
    tide_check_result r;
    assert_tide_ok(tide_plan_check(a, b, &r, &err), &err);
    const tide_check_rule *buffer = rule_of(&r, TIDE_CHECK_BUFFER);
    assert_int_equal(buffer->n_causes, TIDE_CHECK_MAX_CAUSES);
    static const char *const want[] = {"new", "t5", "t2", "t7", "t4"};
    for (size_t i = 0; i < TIDE_CHECK_MAX_CAUSES; i++) {
        assert_string_equal(buffer->causes[i].name, want[i]);
        assert_int_equal(buffer->causes[i].is_new, i == 0);
    }
    tide_memory_plan_destroy(a);
    tide_memory_plan_destroy(b);
}

static void others_are_not_comparable(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_check_result r;
    tide_memory_plan *base = small_plan(100, 50, 30, "m", "greedy_by_size");
    tide_memory_plan *model = small_plan(100, 50, 30, "other", "greedy_by_size");
    tide_memory_plan *strategy = small_plan(100, 50, 30, "m", "naive");
    assert_tide_status(tide_plan_check(base, model, &r, &err), TIDE_ERR_INCOMPARABLE);
    assert_text_has(err.msg, "other");
    assert_tide_status(tide_plan_check(base, strategy, &r, &err), TIDE_ERR_INCOMPARABLE);
    assert_text_has(err.msg, "naive");
    for (int64_t n = 0; n < 5; n++) { // every allocation fails once; nothing leaks
        tide_host_fail_after(n);
        const tide_status st = tide_plan_check(base, base, &r, &err);
        tide_host_fail_after(-1);
        assert_true(st == TIDE_OK || st == TIDE_ERR_NOMEM);
        if (n == 0) assert_int_equal(st, TIDE_ERR_NOMEM);
    }
    tide_memory_plan_destroy(base);
    tide_memory_plan_destroy(model);
    tide_memory_plan_destroy(strategy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(same_and_better_pass),
        tide_unit_test(plans_without_a_name),
        tide_unit_test(one_byte_more_fails_and_names_the_tensor),
        tide_unit_test(weights_are_a_rule_of_their_own),
        tide_unit_test(a_lost_alias_is_a_cause),
        tide_unit_test(largest_causes_first),
        tide_unit_test(others_are_not_comparable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
