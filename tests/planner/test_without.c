// SPDX-License-Identifier: MIT
//
// planner/without: the plan without some tensors is sound and never larger than the plan that has them, for every
// strategy, whatever lifetimes have, and also where the strategy makes a larger plan of the smaller problem.
#include "planner/without.h"
#include "tests/planner/lifetimes_test.h"

static const tide_strategy_options few_nodes = {.node_limit = 300, .n_threads = 1};

/// Some roots with all that lie in them.
static void mark(const tide_lifetimes *lt, tide_rng *rng, uint64_t one_in, bool *gone) {
    for (uint32_t i = 0; i < lt->n; i++)
        gone[i] = lt->items[i].alias == TIDE_ALIAS_NONE && !lt->items[i].persistent && tide_rng_below(rng, one_in) == 0;
    for (uint32_t i = 0; i < lt->n; i++) gone[i] = gone[tide_lifetimes_root(lt, i, NULL)];
}

static tide_memory_plan *without(const tide_memory_plan *plan, const tide_strategy *s, const bool *gone) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *rest;
    size_t n = 0, k = 0;
    assert_tide_ok(tide_plan_without(plan, gone, s, &few_nodes, &rest, &err), &err);
    for (size_t i = 0; i < plan->lifetimes.n; i++) n += !gone[i];
    assert_int_equal(rest->lifetimes.n, n);
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        if (!gone[i]) assert_string_equal(rest->lifetimes.items[k++].name, plan->lifetimes.items[i].name);
    }
    assert_tide_ok(tide_plan_verify(rest, NULL, &err), &err);
    assert_true(rest->verified && rest->bytes <= plan->bytes && rest->bytes >= rest->lower_bound_bytes);
    return rest;
}

/// Twice: without some, and then without some more. @return whether a plan made anew is larger
static bool check(const tide_lifetimes *lt, const tide_strategy *s, tide_rng *rng) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan, *anew;
    const tide_status st = tide_plan_make(lt, s, &few_nodes, &plan, &err);
    if (st == TIDE_ERR_NOT_IMPLEMENTED) return false; // given offsets
    assert_tide_ok(st, &err);
    bool gone[100] = {false};
    assert_true(lt->n <= 100);
    mark(lt, rng, 4, gone);
    tide_memory_plan *rest = without(plan, s, gone);
    assert_tide_ok(tide_plan_make(&rest->lifetimes, s, &few_nodes, &anew, &err), &err);
    assert_true(rest->bytes <= anew->bytes);
    const bool is_larger = anew->bytes > plan->bytes;
    mark(&rest->lifetimes, rng, 3, gone);
    tide_memory_plan *less = without(rest, s, gone);
    assert_true(less->bytes <= rest->bytes);
    tide_memory_plan_destroy(less);
    tide_memory_plan_destroy(anew);
    tide_memory_plan_destroy(rest);
    tide_memory_plan_destroy(plan);
    return is_larger;
}

static void never_larger(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    size_t n_larger = 0;
    for (uint64_t seed = 0; seed < (uint64_t)tide_test_rounds(90, 600); seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        if (seed % 2 == 0)
            put_every_feature(&lt, &rng, 5 + tide_rng_below(&rng, 30));
        else
            put_random(&lt, &rng, tide_rng_below(&rng, 60), 1 + (int64_t)tide_rng_below(&rng, 25), 500, seed % 4 == 1);
        for (size_t s = 0; s < n; s++) n_larger += check(&lt, all[s], &rng);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_larger > 0); // it happens: what is left of the plan is needed
}

static void everything_or_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 100, 0, 2);
    put(&lt, "b", 60, 1, 3);
    put_persistent(&lt, "w", 30, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const bool none[3] = {false}, all[3] = {true, true, false};
    tide_memory_plan *rest = without(plan, tide_strategy_default(), none);
    assert_int_equal(rest->bytes, 160);
    tide_memory_plan_destroy(rest);
    rest = without(plan, tide_strategy_default(), all);
    assert_int_equal(rest->bytes, 0);
    assert_int_equal(rest->lifetimes.n, 1);
    assert_true(rest->proven);
    tide_memory_plan_destroy(rest);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {5};
    tide_lifetimes lt = {0};
    put_random(&lt, &rng, 30, 12, 500, true);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    bool gone[30] = {true, false, true};
    gone[0] = gone[2] = false;
    mark(&lt, &rng, 3, gone);
    bool failed = true;
    for (int64_t n = 0; failed; n++) {
        tide_memory_plan *rest = NULL;
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        const tide_status st = tide_plan_without(plan, gone, tide_strategy_default(), &few_nodes, &rest, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) tide_memory_plan_destroy(rest);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        assert_true(n < 3000 && (failed || n > 10));
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(never_larger), tide_unit_test(everything_or_nothing),
                                       tide_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
