// SPDX-License-Identifier: MIT
//
// core/base/checked: sums, products and the round-up formula at their borders.
#include "core/base/checked.h"

#include "core/base/text.h"
#include "tests/tide_test.h"

static void sums_and_products_at_the_border(void **state) {
    (void)state;
    size_t s;
    uint64_t u;
    int64_t i;
    assert_true(tide_add_size(SIZE_MAX - 1, 1, &s));
    assert_true(s == SIZE_MAX);
    assert_false(tide_add_size(SIZE_MAX, 1, &s));
    assert_false(tide_mul_size(SIZE_MAX / 2 + 1, 2, &s));
    assert_true(tide_mul_size(SIZE_MAX, 0, &s));
    assert_true(s == 0);
    assert_false(tide_mul_u64(UINT64_C(1) << 33, UINT64_C(1) << 33, &u)); // wraps to 0 when unchecked (S28-22)
    assert_false(tide_add_u64(UINT64_MAX, 1, &u));
    assert_true(tide_mul_i64(INT64_C(1) << 31, INT64_C(1) << 31, &i));
    assert_true(i == INT64_C(1) << 62);
    assert_false(tide_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &i));
    assert_false(tide_add_i64(INT64_MIN, -1, &i));
}

static void powers_of_two(void **state) {
    (void)state;
    assert_false(tide_is_pow2(0));
    for (int bit = 0; bit < 64; bit++) assert_true(tide_is_pow2(UINT64_C(1) << bit));
    assert_false(tide_is_pow2(3));
    assert_false(tide_is_pow2(UINT64_MAX));
}

// S28-18: the examples of the text, plus 0, 1 and the largest value.
static void round_up_examples(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes, want;
    } rows[] = {{0, 0}, {1, 256}, {255, 256}, {256, 256}, {257, 512}, {1000, 1024}};
    for (size_t row_i = 0; row_i < sizeof rows / sizeof rows[0]; row_i++) {
        uint64_t got = 77;
        assert_true(tide_align_up(rows[row_i].bytes, 256, &got));
        assert_int_equal(got, rows[row_i].want);
    }
    uint64_t untouched = 77;
    assert_false(tide_align_up(UINT64_MAX, 256, &untouched));
    assert_false(tide_align_up(UINT64_MAX - 254, 256, &untouched));
    assert_false(tide_align_up(10, 0, &untouched));
    assert_false(tide_align_up(10, 3, &untouched));
    assert_int_equal(untouched, 77);
    assert_true(tide_align_up(UINT64_MAX - 255, 256, &untouched));
    assert_true(untouched == UINT64_MAX - 255);
    assert_true(tide_align_up(UINT64_MAX, 1, &untouched));
    assert_true(untouched == UINT64_MAX);
}

static void round_up_against_division(void **state) {
    (void)state;
    tide_rng rng = {20240711};
    for (int round = 0; round < 20000; round++) {
        const uint64_t bytes = tide_rng_u64(&rng) >> (8 + tide_rng_below(&rng, 50));
        const uint64_t align = UINT64_C(1) << tide_rng_below(&rng, 20);
        uint64_t got;
        assert_true(tide_align_up(bytes, align, &got));
        assert_true(got == (bytes / align + (bytes % align != 0)) * align);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(sums_and_products_at_the_border),
        tide_unit_test(powers_of_two),
        tide_unit_test(round_up_examples),
        tide_unit_test(round_up_against_division),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
