// SPDX-License-Identifier: MIT
//
// planner/strategies/placer: every place it chooses against a search that tries every offset.
#include "planner/strategies/placer.h"

#include "planner/strategies/orders.h"
#include "tests/planner/problem_test.h"

static void shuffle_order(uint32_t *order, size_t n, tide_rng *rng) {
    for (size_t i = n; i > 1; i--) {
        const size_t j = tide_rng_below(rng, i);
        const uint32_t t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

static void check_run(const tide_problem *p, tide_placer *placer, const uint32_t *order, tide_gap_rule rule) {
    uint64_t *got = tide_host_calloc(p->n, sizeof *got), *want = tide_host_calloc(p->n, sizeof *want), top = 0;
    assert_non_null(got);
    assert_non_null(want);
    for (size_t i = 0; i < p->n; i++) want[i] = p->items[i].fixed_offset;
    for (size_t k = 0; k < p->n; k++) {
        if (want[order[k]] == TIDE_NO_OFFSET)
            want[order[k]] = plain_place(p, want, order[k], rule == TIDE_GAP_RULE_BEST);
    }
    const uint64_t height = tide__placer_run(placer, order, rule, UINT64_MAX, got);
    for (size_t k = 0; k < p->n; k++) {
        assert_int_equal(got[order[k]], want[order[k]]);
        if (got[k] + p->items[k].size_bytes > top) top = got[k] + p->items[k].size_bytes;
    }
    assert_int_equal(height, top);
    // A limit that holds changes nothing; one below the height stops the run.
    assert_int_equal(tide__placer_run(placer, order, rule, height, got), height);
    for (size_t i = 0; i < p->n; i++) assert_int_equal(got[i], want[i]);
    if (height > 0) assert_int_equal(tide__placer_run(placer, order, rule, height - 1, got), UINT64_MAX);
    tide_host_free(got);
    tide_host_free(want);
}

static void check_table(const tide_lifetimes *lt, tide_rng *rng) {
    tide_error err = TIDE_ERROR_INIT;
    tide_problems problems;
    assert_tide_ok(tide__problems_make(lt, &problems, &err), &err);
    for (size_t q = 0; q < problems.n; q++) {
        const tide_problem *p = &problems.list[q];
        tide_placer *placer;
        uint32_t *order;
        assert_tide_ok(tide__placer_create(p, &placer, &err), &err);
        assert_tide_ok(tide__order_make(p, (tide_item_order)tide_rng_below(rng, TIDE_N_ORDERS), &order, &err), &err);
        check_run(p, placer, order, TIDE_GAP_RULE_FIRST);
        check_run(p, placer, order, TIDE_GAP_RULE_BEST);
        shuffle_order(order, p->n, rng);
        check_run(p, placer, order, TIDE_GAP_RULE_BEST);
        check_run(p, placer, order, TIDE_GAP_RULE_FIRST);
        tide_host_free(order);
        tide__placer_destroy(placer);
    }
    tide__problems_deinit(&problems);
}

static void places_are_those_of_the_plain_search(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random_table(&lt, &rng, 1 + tide_rng_below(&rng, 14), 1 + (int64_t)tide_rng_below(&rng, 12), 24,
                         (unsigned)seed % (RANDOM_ALL + 1));
        check_table(&lt, &rng);
        tide_lifetimes_deinit(&lt);
    }
}

/// Enough items that time has many blocks and lists many chunks.
static void places_of_many_items(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random_table(&lt, &rng, 1500, 4 + 200 * (int64_t)seed, 50, seed % 2 == 0 ? 0 : RANDOM_ALL);
        check_table(&lt, &rng);
        tide_lifetimes_deinit(&lt);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(places_are_those_of_the_plain_search),
        tide_unit_test(places_of_many_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
