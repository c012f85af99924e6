// SPDX-License-Identifier: MIT
//
// planner/points: tables of one program at several sizes as one (S27-23).
#include "planner/points.h"

#include "tests/planner/lifetimes_test.h"

static void put_steps(tide_lifetimes *lt, const char *const *steps, size_t n) {
    lt->model = tide_host_strdup("m");
    lt->step_names = tide_host_calloc(n, sizeof *lt->step_names);
    for (size_t i = 0; i < n; i++) lt->step_names[i] = tide_host_strdup(steps[i]);
    lt->n_step_names = n;
}

/// A program at batch `b`: a and its view v, c which is larger at small batches, scratch at batches above 1.
static void put_batch(tide_lifetimes *lt, uint64_t b, bool aliases) {
    static const char *const steps[] = {"one", "two", "three"};
    tide_error err = TIDE_ERROR_INIT;
    put(lt, "a", 100 * b, 0, 2);
    put(lt, "v", 100 * b, 1, 3);
    put(lt, "c", 300 - 50 * b, 1, 3);
    if (b > 1) {
        tide_lifetime s = an_item("two.scratch", 7 * b, 1, 1, 2);
        s.role = TIDE_ROLE_SCRATCH;
        assert_tide_ok(tide_lifetimes_add(lt, &s, &err), &err);
    }
    if (aliases) assert_tide_ok(tide_lifetimes_alias(lt, 1, TIDE_ALIAS_VIEW, 0, 0, &err), &err);
    put_steps(lt, steps, 3);
}

static const char *const names[] = {"x=1", "x=2", "x=4"};

// S27-23: sizes at each point are kept, and what is planned is the largest of them.
static void the_largest_of_all_points(void **state) {
    (void)state;
    for (size_t base = 0; base < 3; base++) {
        tide_lifetimes tables[3] = {{0}, {0}, {0}}, merged;
        tide_error err = TIDE_ERROR_INIT;
        static const uint64_t batches[] = {1, 2, 4};
        for (size_t k = 0; k < 3; k++) put_batch(&tables[k], batches[k], k == base);
        assert_tide_ok(tide_lifetimes_merge_points(tables, names, 3, base, &merged, &err), &err);
        assert_int_equal(merged.n_points, 3);
        assert_string_equal(merged.point_names[2], "x=4");
        assert_int_equal(merged.n, 4);
        assert_int_equal(merged.n_step_names, 3);
        static const struct {
            const char *name;
            uint64_t bytes[3], largest;
        } want[] = {{"a", {100, 200, 400}, 400},
                    {"v", {100, 200, 400}, 400},
                    {"c", {250, 200, 100}, 250},
                    {"two.scratch", {0, 14, 28}, 28}};
        for (size_t i = 0; i < 4; i++) {
            const tide_lifetime *item = &merged.items[index_of(&merged, want[i].name)];
            assert_int_equal(item->size_bytes, want[i].largest);
            for (size_t k = 0; k < 3; k++) assert_int_equal(item->point_bytes[k], want[i].bytes[k]);
        }
        // What lies inside what is for the passes to say, of all sizes together.
        assert_int_equal(merged.items[index_of(&merged, "v")].alias, TIDE_ALIAS_NONE);
        // One plan serves every point: no tensor is larger at any of them than where it is planned.
        tide_memory_plan *plan = make_plan(&merged, "greedy_by_size");
        assert_true(plan->verified);
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&merged);
        for (size_t k = 0; k < 3; k++) tide_lifetimes_deinit(&tables[k]);
    }
}

static void programs_that_differ(void **state) {
    (void)state;
    static const char *const other_steps[] = {"one", "zwei", "three"}, *const more_steps[] = {"one", "two", "three",
                                                                                              "4"};
    for (int what = 0; what < 4; what++) {
        static const char *const words[] = {"'zwei' at 'x=2'", "3 steps at 'x=1', 4 at 'x=2'",
                                            "'extra' is there at 'x=2'", "'c' is there at 'x=1'"};
        static const char *const steps[] = {"one", "two", "three"};
        tide_lifetimes tables[2] = {{0}, {0}}, merged = {0};
        tide_error err = TIDE_ERROR_INIT;
        put_batch(&tables[0], 1, false);
        put(&tables[1], "a", 1, 0, 2);
        put(&tables[1], "v", 1, 1, 3);
        if (what != 3) put(&tables[1], "c", 1, 1, 3);
        if (what == 1) put(&tables[1], "d", 1, 1, 4);
        if (what == 2) put(&tables[1], "extra", 1, 1, 3);
        put_steps(&tables[1], what == 0 ? other_steps : what == 1 ? more_steps : steps, what == 1 ? 4 : 3);
        assert_tide_status(tide_lifetimes_merge_points(tables, names, 2, 0, &merged, &err), TIDE_ERR_INCOMPARABLE);
        assert_text_has(err.msg, words[what]);
        assert_text_has(err.msg, "differs between profile points");
        assert_int_equal(merged.n, 0);
        tide_lifetimes_deinit(&tables[0]);
        tide_lifetimes_deinit(&tables[1]);
    }
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes tables[2] = {{0}, {0}};
    put_batch(&tables[0], 2, true);
    put_batch(&tables[1], 4, false);
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_host_stats before, after;
        tide_lifetimes merged = {0};
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        st = tide_lifetimes_merge_points(tables, names, 2, 0, &merged, NULL);
        tide_host_fail_after(-1);
        tide_lifetimes_deinit(&merged);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
    }
    assert_true(n > 10);
    tide_lifetimes_deinit(&tables[0]);
    tide_lifetimes_deinit(&tables[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_largest_of_all_points),
        tide_unit_test(programs_that_differ),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
