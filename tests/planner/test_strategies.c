// SPDX-License-Identifier: MIT
//
// planner/strategies: the table of strategies, and golden places that show what each of them does.
#include "planner/strategies/coloring.h"
#include "planner/strategies/orders.h"
#include "tests/planner/problem_test.h"

static int32_t pool_of(const tide_memory_plan *p, const char *name) { return p->pools[index_of(&p->lifetimes, name)]; }
static uint64_t offset_of(const tide_memory_plan *p, const char *name) {
    return p->offsets[index_of(&p->lifetimes, name)];
}

// ---- the table ----

static void names_are_found_and_misspelt_names_are_reported(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    assert_true(n >= 13);
    assert_string_equal(all[0]->name, "naive");
    for (size_t i = 0; i < n; i++) {
        const tide_strategy *found;
        assert_tide_status(tide_strategy_find(all[i]->name, &found, NULL), TIDE_OK);
        assert_ptr_equal(found, all[i]);
        assert_true(all[i]->what[0] != '\0' && all[i]->source[0] != '\0');
    }
    assert_string_equal(tide_strategy_default()->name, "search");

    const tide_strategy *found;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_strategy_find("greedy_colour", &found, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "greedy_colour");
    for (size_t i = 0; i < n; i++) assert_text_has(err.note, all[i]->name);
    assert_text_has(err.hint, "'greedy_color'");
    assert_tide_status(tide_strategy_find("zzzzzzz", &found, &err), TIDE_ERR_INVALID);
    assert_string_equal(err.hint, "");
    char longest[300];
    memset(longest, 'g', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_tide_status(tide_strategy_find(longest, &found, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_strategy_find("", &found, NULL), TIDE_ERR_INVALID);
}

// ---- golden places ----

/*
 *   step    0   1   2   3
 *   a 100   [a  ]
 *   b  50   [b  ]
 *   c  40           [c  ]        first fit: pool 0; best fit: pool 1
 *   d  30           [d  ]        the other one
 */
static void put_two_pairs(tide_lifetimes *lt) {
    put(lt, "a", 100, 0, 2);
    put(lt, "b", 50, 0, 2);
    put(lt, "c", 40, 2, 4);
    put(lt, "d", 30, 2, 4);
}

// S23-12: first fit and best fit differ; both can be chosen by name.
static void first_pool_and_best_pool_differ(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_two_pairs(&lt);
    tide_memory_plan *first = make_plan(&lt, "greedy_color"), *best = make_plan(&lt, "greedy_color_best");
    assert_int_equal(pool_of(first, "a"), 0);
    assert_int_equal(pool_of(first, "b"), 1);
    assert_int_equal(pool_of(first, "c"), 0);
    assert_int_equal(pool_of(first, "d"), 1);
    assert_int_equal(pool_of(best, "c"), 1);
    assert_int_equal(pool_of(best, "d"), 0);
    assert_int_equal(first->n_pools, 2);
    assert_int_equal(first->bytes, 150);
    assert_int_equal(first->pool_list[0].size_bytes, 100);
    assert_int_equal(first->pool_list[1].size_bytes, 50);
    assert_int_equal(first->pool_list[1].offset_bytes, 100);
    assert_int_equal(first->naive_bytes, 220);
    assert_int_equal(first->lower_bound_bytes, 150);
    assert_true(first->proven && first->verified);
    tide_memory_plan_destroy(first);
    tide_memory_plan_destroy(best);
    tide_lifetimes_deinit(&lt);
}

/// Smallest first, which no strategy does.
static tide_status place_ascending(const tide_strategy *self, const tide_problem *problem,
                                   const tide_strategy_options *opt, tide_placement *out, tide_error *err) {
    (void)self;
    (void)opt;
    uint32_t *order;
    TIDE_TRY(tide__order_make(problem, TIDE_ORDER_SIZE, &order, err));
    for (size_t k = 0; k < problem->n / 2; k++) {
        const uint32_t t = order[k];
        order[k] = order[problem->n - 1 - k];
        order[problem->n - 1 - k] = t;
    }
    const tide_status st = tide__color(problem, order, TIDE_POOL_RULE_FIRST, out, err);
    tide_host_free(order);
    return st;
}

// S23-13: a pool is enlarged when a bigger tensor joins, which only another order than largest-first can show.
static void a_pool_grows_in_ascending_order(void **state) {
    (void)state;
    static const tide_strategy ascending = {.name = "ascending", .form = TIDE_PLAN_POOLS, .place = place_ascending};
    tide_lifetimes lt = {0};
    put_two_pairs(&lt);
    tide_memory_plan *plan;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_make(&lt, &ascending, NULL, &plan, &err), &err);
    // d (30) makes pool 0, c (40) pool 1; b (50) joins pool 0, a (100) pool 1.
    assert_int_equal(pool_of(plan, "b"), pool_of(plan, "d"));
    assert_int_equal(pool_of(plan, "a"), pool_of(plan, "c"));
    assert_int_equal(plan->pool_list[0].size_bytes, 50);
    assert_int_equal(plan->pool_list[1].size_bytes, 100);
    assert_int_equal(plan->bytes, 150);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/*
 * First gap and best gap: x and y die at step 4 and leave holes of 95 and 85 bytes; z (70) comes then.
 *
 *   bytes      0      100     195     285     370    450
 *   steps 0-3  [a    ][x     ][b     ][y     ][p    ]
 *   steps 4-5  [a    ] z?     [b     ] z?     [p    ]
 */
static void first_gap_and_best_gap_differ(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 100, 0, 6);
    put(&lt, "b", 90, 0, 6);
    put(&lt, "p", 80, 0, 6);
    put(&lt, "x", 95, 0, 4); // lies between a and b
    put(&lt, "y", 85, 0, 4); // lies between b and p
    put(&lt, "z", 70, 4, 6);
    tide_memory_plan *first = make_plan(&lt, "greedy_by_size"), *best = make_plan(&lt, "greedy_by_size_best");
    assert_int_equal(offset_of(first, "a"), 0);
    assert_int_equal(offset_of(first, "x"), 100);
    assert_int_equal(offset_of(first, "b"), 195);
    assert_int_equal(offset_of(first, "y"), 285);
    assert_int_equal(offset_of(first, "p"), 370);
    assert_int_equal(offset_of(first, "z"), 100); // the first gap, of 95
    assert_int_equal(offset_of(best, "z"), 285);  // the smallest gap, of 85
    assert_int_equal(first->bytes, 450);
    tide_memory_plan_destroy(first);
    tide_memory_plan_destroy(best);
    tide_lifetimes_deinit(&lt);
}

/*
 * linear_scan: a and b die at step 2, their bytes merge, and c, larger than either, takes both.
 *
 *   bytes 0      10     30    40
 *   step 0-1  [a    ][b    ][k ]
 *   step 2    [c          ][k ]
 */
static void linear_scan_merges_neighbours(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "b", 20, 0, 2);
    put(&lt, "a", 15, 0, 2);
    put(&lt, "k", 10, 0, 4);
    put(&lt, "c", 35, 2, 4);
    tide_memory_plan *plan = make_plan(&lt, "linear_scan");
    assert_int_equal(offset_of(plan, "b"), 0);
    assert_int_equal(offset_of(plan, "a"), 20);
    assert_int_equal(offset_of(plan, "k"), 35);
    assert_int_equal(offset_of(plan, "c"), 0);
    assert_int_equal(plan->bytes, 45);
    assert_true(plan->proven);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// The free block at the end of the buffer is used up before the buffer grows.
static void linear_scan_grows_from_the_free_end(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 20, 0, 3);
    put(&lt, "b", 10, 0, 1);
    put(&lt, "c", 30, 1, 3);
    tide_memory_plan *plan = make_plan(&lt, "linear_scan");
    assert_int_equal(offset_of(plan, "c"), 20);
    assert_int_equal(plan->bytes, 50);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// greedy_by_breadth takes the small tensors of the broad step before the large one of a narrow step.
static void breadth_goes_before_size(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "big", 60, 0, 2);
    put(&lt, "p", 50, 1, 3);
    put(&lt, "q", 40, 2, 4);
    put(&lt, "r", 30, 2, 4);
    put(&lt, "s", 20, 2, 4); // step 2: p q r s = 140; step 1: big p = 110
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_breadth");
    assert_int_equal(offset_of(plan, "p"), 0);
    assert_int_equal(offset_of(plan, "q"), 50);
    assert_int_equal(offset_of(plan, "r"), 90);
    assert_int_equal(offset_of(plan, "s"), 120);
    assert_int_equal(offset_of(plan, "big"), 50);
    assert_int_equal(plan->bytes, 140);
    tide_memory_plan_destroy(plan);
    plan = make_plan(&lt, "greedy_by_size");
    assert_int_equal(offset_of(plan, "big"), 0);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/*
 * S23-13 by a strategy of the table: pools in the order in which the program makes the tensors.
 *
 *   step      0  1  2  3
 *   pool 0    [c 5      ]
 *   pool 1       a  b  d         10, then 20, then 40
 */
static void given_order_lets_pools_grow(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "d", 40, 3, 4);
    put(&lt, "c", 5, 0, 4);
    put(&lt, "b", 20, 2, 3);
    put(&lt, "a", 10, 1, 2);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color_given");
    assert_int_equal(pool_of(plan, "c"), 0);
    assert_int_equal(pool_of(plan, "a"), 1);
    assert_int_equal(pool_of(plan, "b"), 1);
    assert_int_equal(pool_of(plan, "d"), 1);
    assert_int_equal(plan->pool_list[1].size_bytes, 40);
    assert_int_equal(plan->bytes, 45);
    tide_memory_plan_destroy(plan);
    plan = make_plan(&lt, "greedy_color");
    assert_int_equal(pool_of(plan, "d"), 0);
    assert_int_equal(pool_of(plan, "c"), 1);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// greedy_by_conflicts takes what has most neighbours first, however small.
static void conflicts_go_before_size(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "long", 5, 0, 6);
    put(&lt, "x", 50, 0, 2);
    put(&lt, "y", 40, 2, 4);
    put(&lt, "z", 30, 4, 6);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_conflicts");
    assert_int_equal(offset_of(plan, "long"), 0);
    assert_int_equal(offset_of(plan, "x"), 5);
    assert_int_equal(offset_of(plan, "z"), 5);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// Offset strategies place around what the user has fixed; pools and simulated allocators say that they cannot.
static void given_offsets_are_kept_or_refused(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    put(&lt, "a", 60, 0, 4);
    put(&lt, "b", 30, 1, 3);
    tide_lifetime item = an_item("fixed", 20, 1, 2, 4);
    item.fixed = true;
    item.fixed_offset_bytes = 40;
    assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    static const char *const keep[] = {
        "naive", "linear_scan", "greedy_by_size", "greedy_by_size_best", "greedy_by_breadth", "greedy_by_conflicts",
        "search"};
    for (size_t k = 0; k < sizeof keep / sizeof *keep; k++) {
        tide_memory_plan *plan = make_plan(&lt, keep[k]);
        assert_int_equal(offset_of(plan, "fixed"), 40);
        tide_memory_plan_destroy(plan);
    }
    static const char *const refuse[] = {"greedy_color", "greedy_color_best", "greedy_color_given",
                                         "sim:caching",  "sim:bfc",           "sim:arena"};
    for (size_t k = 0; k < sizeof refuse / sizeof *refuse; k++) {
        const tide_strategy *s;
        tide_memory_plan *plan = NULL;
        assert_tide_ok(tide_strategy_find(refuse[k], &s, &err), &err);
        assert_tide_status(tide_plan_make(&lt, s, NULL, &plan, &err), TIDE_ERR_NOT_IMPLEMENTED);
        assert_text_has(err.msg, "cannot keep given offsets, and 1 of 3 tensors have one");
        assert_text_has(err.hint, "greedy_by_size");
        assert_null(plan);
    }
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_are_found_and_misspelt_names_are_reported),
        tide_unit_test(first_pool_and_best_pool_differ),
        tide_unit_test(a_pool_grows_in_ascending_order),
        tide_unit_test(given_order_lets_pools_grow),
        tide_unit_test(first_gap_and_best_gap_differ),
        tide_unit_test(linear_scan_merges_neighbours),
        tide_unit_test(linear_scan_grows_from_the_free_end),
        tide_unit_test(breadth_goes_before_size),
        tide_unit_test(conflicts_go_before_size),
        tide_unit_test(given_offsets_are_kept_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
