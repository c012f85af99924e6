// SPDX-License-Identifier: MIT
//
// planner/strategies/orders: each order on one small problem, worked out by hand.
#include "planner/strategies/orders.h"

#include <math.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "tests/tide_test.h"

/*
 *   tick      0  1  2  3  4  5  6  7
 *   0   8 B   [a            ]              duration 5, area 40, meets 1 2 3
 *   1  10 B   [b  ]                        duration 2, area 20, meets 0
 *   2   4 B         [c      ]              duration 3, area 12, meets 0 3
 *   3  10 B            [d         ]        duration 4, area 40, meets 0 2 4
 *   4   6 B                  [e      ]     duration 3, area 18, meets 3 5
 *   5   1 B                        [f]     duration 1, area 1, meets 4; alignment 8
 *
 *   alive     18 18 12 22 22 16 16 7
 */
static const tide_item items[] = {
    {.size_bytes = 8, .align_bytes = 1, .fixed_offset = TIDE_NO_OFFSET, .begin = 0, .end = 5},
    {.size_bytes = 10, .align_bytes = 1, .fixed_offset = TIDE_NO_OFFSET, .begin = 0, .end = 2},
    {.size_bytes = 4, .align_bytes = 1, .fixed_offset = TIDE_NO_OFFSET, .begin = 2, .end = 5},
    {.size_bytes = 10, .align_bytes = 1, .fixed_offset = TIDE_NO_OFFSET, .begin = 3, .end = 7},
    {.size_bytes = 6, .align_bytes = 1, .fixed_offset = TIDE_NO_OFFSET, .begin = 5, .end = 8},
    {.size_bytes = 1, .align_bytes = 8, .fixed_offset = TIDE_NO_OFFSET, .begin = 7, .end = 8},
};
enum { N = sizeof items / sizeof *items };

static const struct {
    tide_item_order order;
    uint32_t want[N];
} cases[] = {
    {TIDE_ORDER_GIVEN, {0, 1, 2, 3, 4, 5}},
    {TIDE_ORDER_BIRTH, {1, 0, 2, 3, 4, 5}},
    {TIDE_ORDER_END, {1, 0, 2, 3, 4, 5}},
    {TIDE_ORDER_DEATH, {4, 5, 3, 0, 2, 1}},
    {TIDE_ORDER_ALIGN, {5, 0, 1, 2, 3, 4}},
    {TIDE_ORDER_SIZE, {1, 3, 0, 4, 2, 5}},
    {TIDE_ORDER_SIZE_LONG, {3, 1, 0, 4, 2, 5}},
    {TIDE_ORDER_SPAN, {3, 0, 1, 4, 2, 5}},      // half of 8 ticks or more: 0 and 3
    {TIDE_ORDER_VOLUME, {3, 0, 1, 4, 2, 5}},    // 10 * 4^0.3 = 15.2, 8 * 5^0.3 = 13.0, 10 * 2^0.3 = 12.3, 8.3, 5.6, 1
    {TIDE_ORDER_DURATION, {0, 3, 4, 2, 1, 5}},  // 5, 4, 3 of 6 B, 3 of 4 B, 2, 1
    {TIDE_ORDER_AREA, {3, 0, 1, 4, 2, 5}},      // 40 of 10 B, 40 of 8 B, 20, 18, 12, 1
    {TIDE_ORDER_CONFLICTS, {3, 0, 4, 2, 1, 5}}, // 3 of 10 B, 3 of 8 B, 2 of 6 B, 2 of 4 B, 1, 1
    {TIDE_ORDER_BREADTH, {3, 0, 2, 1, 4, 5}},   // tick 3: 3 0 2; tick 0: 1; tick 5: 4; tick 7: 5
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void orders_are_those_worked_out_by_hand(void **state) {
    (void)state;
    assert_int_equal(N_CASES, TIDE_N_ORDERS);
    tide_problem p;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__problem_of_items(items, N, &p, &err), &err);
    for (size_t k = 0; k < N_CASES; k++) {
        uint32_t *order;
        assert_tide_ok(tide__order_make(&p, cases[k].order, &order, &err), &err);
        for (size_t i = 0; i < N; i++) {
            if (order[i] != cases[k].want[i]) fail_msg("order %d: item %u at %zu", cases[k].order, order[i], i);
        }
        tide_host_free(order);
    }
    tide__problem_deinit(&p);
}

/// size x duration^0.3 is ranked in whole numbers; the C library's logarithms agree but for what 16 binary digits
/// leave.
static void volumes_fall(void **state) {
    (void)state;
    enum { MANY = 500 };
    static tide_item many[MANY];
    tide_rng rng = {3};
    for (size_t i = 0; i < MANY; i++) {
        const uint32_t begin = (uint32_t)tide_rng_below(&rng, 900);
        many[i] = (tide_item){.size_bytes = 1 + (tide_rng_u64(&rng) >> (12 + tide_rng_below(&rng, 51))),
                              .align_bytes = 1,
                              .fixed_offset = TIDE_NO_OFFSET,
                              .begin = begin,
                              .end = begin + 1 + (uint32_t)tide_rng_below(&rng, 1000)};
    }
    tide_problem p;
    tide_error err = TIDE_ERROR_INIT;
    uint32_t *order;
    assert_tide_ok(tide__problem_of_items(many, MANY, &p, &err), &err);
    assert_tide_ok(tide__order_make(&p, TIDE_ORDER_VOLUME, &order, &err), &err);
    double last = 1e9;
    for (size_t k = 0; k < MANY; k++) {
        const tide_item *item = &many[order[k]];
        const double volume = 10 * log2((double)item->size_bytes) + 3 * log2((double)(item->end - item->begin));
        assert_true(volume < last + 0.0005);
        last = volume;
    }
    tide_host_free(order);
    tide__problem_deinit(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(orders_are_those_worked_out_by_hand),
        tide_unit_test(volumes_fall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
