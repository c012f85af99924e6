// SPDX-License-Identifier: MIT
//
// core/runtime/memory_plan: the table of lifetimes and the helpers of a plan.
#include "tests/planner/plan_test.h"

static void add_refuses_what_is_no_lifetime(void **state) {
    (void)state;
    static const struct {
        uint64_t size, align;
        int64_t begin, end;
        const char *words;
    } bad[] = {
        {4, 4, 3, 3, "0 <= begin < end"},   {4, 4, 3, 2, "0 <= begin < end"},
        {4, 4, -1, 2, "0 <= begin < end"},  {4, 0, 0, 1, "power of two"},
        {4, 48, 0, 1, "power of two"},      {UINT64_MAX, 256, 0, 1, "2^63 - 1"},
        {INT64_MAX, 256, 0, 1, "2^63 - 1"}, {4, UINT64_C(1) << 63, 0, 1, "2^63 - 1"},
    };
    tide_lifetimes lt = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        const tide_lifetime item = an_item("conv1", bad[i].size, bad[i].align, bad[i].begin, bad[i].end);
        assert_tide_status(tide_lifetimes_add(&lt, &item, &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, bad[i].words);
        assert_text_has(err.msg, "conv1");
        assert_int_equal(lt.n, 0);
    }
    tide_lifetimes_deinit(&lt);
}

// S23-15: rounding up at the default alignment.
static void sizes_are_rounded_up(void **state) {
    (void)state;
    static const uint64_t want[][2] = {{1, 256}, {256, 256}, {257, 512}, {1000, 1024}, {0, 0}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const tide_lifetime item = an_item("x", want[i][0], TIDE_DEFAULT_ALIGN, 0, 1);
        assert_int_equal(tide_lifetime_aligned_bytes(&item), want[i][1]);
    }
    const tide_lifetime at_16 = an_item("x", 17, 16, 0, 1), at_32 = an_item("x", 17, 32, 0, 1);
    assert_int_equal(tide_lifetime_aligned_bytes(&at_16), 32);
    assert_int_equal(tide_lifetime_aligned_bytes(&at_32), 32);
}

static void a_copy_is_whole_or_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 4, 0, 2);
    put(&lt, "b", 8, 1, 3);
    lt.model = tide_host_strdup("m");
    lt.step_names = tide_host_calloc(3, sizeof *lt.step_names);
    for (size_t i = 0; i < 3; i++) lt.step_names[i] = tide_host_strdup("n");
    lt.n_step_names = 3;
    assert_int_equal(lt.n_steps, 3);

    tide_lifetimes copy = {0};
    tide_status st = TIDE_ERR_NOMEM;
    int n_failed = 0;
    for (; st != TIDE_OK; n_failed++) {
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        tide_host_fail_after(n_failed);
        st = tide_lifetimes_copy(&lt, &copy, NULL);
        tide_host_fail_after(-1);
        tide_host_get_stats(&after);
        if (st == TIDE_OK) break;
        assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_int_equal(after.n_live, before.n_live);
        assert_int_equal(copy.n, 0);
    }
    assert_true(n_failed >= 7);
    assert_int_equal(copy.n, 2);
    assert_string_equal(copy.items[1].name, "b");
    assert_ptr_not_equal(copy.items[1].name, lt.items[1].name);
    assert_string_equal(copy.model, "m");
    assert_int_equal(copy.n_step_names, 3);
    assert_int_equal(copy.n_steps, 3);
    tide_lifetimes_deinit(&copy);
    tide_lifetimes_deinit(&lt);
}

/// A whole plan too: pools, offsets and lifetimes are the copy's own.
static void a_plans_copy_is_whole_or_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 4, 0, 2);
    put(&lt, "b", 8, 1, 3);
    put_persistent(&lt, "w", 1000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color"), *copy = NULL;
    tide_status st = TIDE_ERR_NOMEM;
    int n_failed = 0;
    for (; st != TIDE_OK; n_failed++) {
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        tide_host_fail_after(n_failed);
        st = tide_memory_plan_copy(plan, &copy, NULL);
        tide_host_fail_after(-1);
        tide_host_get_stats(&after);
        if (st == TIDE_OK) break;
        assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_int_equal(after.n_live, before.n_live);
        assert_null(copy);
    }
    assert_true(n_failed >= 8);
    assert_ptr_not_equal(copy->offsets, plan->offsets);
    assert_ptr_not_equal(copy->lifetimes.items, plan->lifetimes.items);
    assert_memory_equal(copy->offsets, plan->offsets, 3 * sizeof *plan->offsets);
    assert_memory_equal(copy->pools, plan->pools, 3 * sizeof *plan->pools);
    assert_int_equal(copy->n_pools, 2);
    assert_memory_equal(copy->pool_list, plan->pool_list, 2 * sizeof *plan->pool_list);
    assert_string_equal(copy->strategy, "greedy_color");
    tide_memory_plan_destroy(plan);
    assert_tide_status(tide_plan_verify(copy, NULL, NULL), TIDE_OK);
    tide_memory_plan_destroy(copy);
    tide_lifetimes_deinit(&lt);
}

static void roles_have_names(void **state) {
    (void)state;
    for (int r = TIDE_ROLE_INTERMEDIATE; r <= TIDE_ROLE_WEIGHT; r++) {
        tide_role back;
        assert_tide_status(tide_role_parse(tide_role_name((tide_role)r), &back, NULL), TIDE_OK);
        assert_int_equal(back, r);
    }
    tide_role role;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_role_parse("wight", &role, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "wight");
    assert_text_has(err.hint, "weight");
}

// what the plan predicts per kind.
static void predicted_bytes_per_kind(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_persistent(&lt, "in", 100, TIDE_ROLE_INPUT, TIDE_KIND_DEFAULT, 2);
    put_persistent(&lt, "out", 28, TIDE_ROLE_OUTPUT, TIDE_KIND_DEFAULT, 2);
    put_persistent(&lt, "w", 1000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 2);
    put_aligned(&lt, "a", 10, 64, 0, 1);
    put_aligned(&lt, "b", 65, 64, 1, 2);
    lt.items[2].align_bytes = 256; // weights count rounded up
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    assert_int_equal(tide_memory_plan_predicted(plan, TIDE_KIND_WORKSPACE), 128);
    assert_int_equal(tide_memory_plan_predicted(plan, TIDE_KIND_DEFAULT), 128);
    assert_int_equal(tide_memory_plan_predicted(plan, TIDE_KIND_PERSISTENT), 1024);
    assert_int_equal(tide_memory_plan_predicted(plan, TIDE_KIND_KV_CACHE), 0);
    // S27-28: three contexts hold the weights once, and three buffers.
    assert_int_equal(tide_memory_plan_predicted_run(plan, TIDE_KIND_PERSISTENT, false, 3), 1024);
    assert_int_equal(tide_memory_plan_predicted_run(plan, TIDE_KIND_WORKSPACE, false, 3), 3 * 128);
    assert_true(tide_memory_plan_predicted_run(plan, TIDE_KIND_WORKSPACE, true, 1) == plan->lower_bound_bytes);
    assert_true(tide_memory_plan_predicted_run(plan, TIDE_KIND_WORKSPACE, true, 3) == TIDE_UNKNOWN_BYTES);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

// S23-17: saving = 1 - optimised / original.
static void the_seeds_arithmetic(void **state) {
    (void)state;
    tide_memory_plan plan = {.naive_bytes = 5650 * 1024, .bytes = 1536 * 1024};
    const double saving = tide_memory_plan_saving(&plan);
    assert_true(saving > 0.72814 && saving < 0.72815);
    plan.naive_bytes = 0;
    plan.bytes = 0;
    assert_true(tide_memory_plan_saving(&plan) == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(add_refuses_what_is_no_lifetime),
        tide_unit_test(sizes_are_rounded_up),
        tide_unit_test(a_copy_is_whole_or_nothing),
        tide_unit_test(a_plans_copy_is_whole_or_nothing),
        tide_unit_test(roles_have_names),
        tide_unit_test(predicted_bytes_per_kind),
        tide_unit_test(the_seeds_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
