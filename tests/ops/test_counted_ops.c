// SPDX-License-Identifier: MIT
//
// NonZero, Compress, Unique and NonMaxSuppression, whose answers are counted first: nothing to count, all of it,
// numbers that are none, parameters out of their range.
#include "tests/ops/data_case.h"

#include <math.h>

static void test_places_of_nothing(void **state) {
    (void)state;
    op_case c = case_begin("NonZero", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3), (const float[6]){0});
    case_want(&c, TIDE_I64, DIMS(2, 0), NULL);
    c = case_begin("NonZero", 13);
    case_in(&c, TIDE_F32, DIMS(0, 3), NULL);
    case_want(&c, TIDE_I64, DIMS(2, 0), NULL);
    c = case_begin("NonZero", 13); // a scalar has a place without coordinates
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_want(&c, TIDE_I64, DIMS(0, 1), NULL);
    c = case_begin("NonZero", 13); // -0 is 0, NaN is not
    case_in(&c, TIDE_F32, DIMS(4), (const float[]){-0.0f, NAN, 0, -INFINITY});
    case_want(&c, TIDE_I64, DIMS(1, 2), (const int64_t[]){1, 3});
}

static op_case compress(int64_t n, const unsigned char *condition) {
    op_case c = case_begin("Compress", 11);
    case_in(&c, TIDE_F32, DIMS(2, 2), (const float[]){1, 2, 3, 4});
    case_in(&c, TIDE_BOOL, DIMS(n), condition);
    return c;
}

static void test_conditions_of_other_lengths(void **state) {
    (void)state;
    static const unsigned char all[] = {1, 1, 1, 1, 1}, none[] = {0, 0, 0, 0, 0}, last[] = {0, 0, 0, 0, 1};
    op_case c = compress(1, all);
    case_want(&c, TIDE_F32, DIMS(1), (const float[]){1});
    c = compress(0, NULL);
    case_want(&c, TIDE_F32, DIMS(0), NULL);
    c = compress(5, none);
    case_want(&c, TIDE_F32, DIMS(0), NULL);
    c = compress(5, last);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "the condition wants element 4 of 4");
    c = compress(1, all);
    case_int(&c, "axis", -1);
    case_want(&c, TIDE_F32, DIMS(2, 1), (const float[]){1, 3});
    c = compress(1, all);
    case_int(&c, "axis", 2);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "axis");
}

/// One NaN is as the other, behind all numbers; -0 is 0, and the first of equals is kept.
static void test_distinct_ones(void **state) {
    (void)state;
    static const float x[] = {NAN, 0, -0.0f, NAN, -INFINITY};
    op_case c = case_begin("Unique", 11);
    case_in(&c, TIDE_F32, DIMS(5), x);
    assert_tide_ok(case_try(&c, 4), &c.err);
    static const int64_t first[] = {4, 1, 0}, group[] = {2, 1, 1, 2, 0}, counts[] = {1, 2, 2};
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 1)->constant), first, sizeof first);
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 2)->constant), group, sizeof group);
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 3)->constant), counts, sizeof counts);
    case_end(&c);
    c = case_begin("Unique", 11); // rows without elements are all the same
    case_in(&c, TIDE_F32, DIMS(3, 0), NULL);
    case_int(&c, "axis", 0);
    case_want(&c, TIDE_F32, DIMS(1, 0), NULL);
    c = case_begin("Unique", 11);
    case_in(&c, TIDE_U64, DIMS(3), (const uint64_t[]){UINT64_MAX, 1, UINT64_MAX - 1});
    case_want(&c, TIDE_U64, DIMS(3), (const uint64_t[]){1, UINT64_MAX - 1, UINT64_MAX});
}

static op_case suppress(int64_t n, const float *boxes, const float *scores, int64_t most, float overlap) {
    op_case c = case_begin("NonMaxSuppression", 11);
    case_in(&c, TIDE_F32, DIMS(1, n, 4), boxes);
    case_in(&c, TIDE_F32, DIMS(1, 1, n), scores);
    case_in(&c, TIDE_I64, DIMS0, &most);
    case_in(&c, TIDE_F32, DIMS0, &overlap);
    return c;
}

static void test_boxes(void **state) {
    (void)state;
    static const float boxes[] = {0, 0, 1, 1, 1, 1, 0, 0, 2, 2, 3, 3}; // the second is the first from the other corner
    static const float scores[] = {0.5f, 0.75f, NAN};
    op_case c = suppress(3, boxes, scores, 9, 0.5f);
    case_want(&c, TIDE_I64, DIMS(2, 3), (const int64_t[]){0, 0, 1, 0, 0, 2});
    c = suppress(3, boxes, scores, 9, 1);
    case_want(&c, TIDE_I64, DIMS(3, 3), (const int64_t[]){0, 0, 1, 0, 0, 0, 0, 0, 2});
    c = suppress(3, boxes, scores, 0, 0);
    case_want(&c, TIDE_I64, DIMS(0, 3), NULL);
    c = suppress(3, boxes, scores, INT64_MIN, 0);
    case_want(&c, TIDE_I64, DIMS(0, 3), NULL);
    c = suppress(0, NULL, NULL, 9, 0);
    case_want(&c, TIDE_I64, DIMS(0, 3), NULL);
    c = suppress(3, boxes, scores, 9, 0);
    case_int(&c, "center_point_box", 2);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "must be 0 or 1");
    static const float out_of_range[] = {1.5f, -0.1f, NAN};
    for (size_t i = 0; i < 3; i++) {
        c = suppress(3, boxes, scores, 9, out_of_range[i]);
        case_refused(&c, TIDE_ERR_BAD_INPUT, "must be 0 to 1");
    }
}

/// Boxes without area overlap no other one: all are taken, and each is held against all before it.
static void test_boxes_that_take_long_are_no_part_of_a_plan(void **state) {
    (void)state;
    enum { MANY = 6000 };
    float *zeros = tide_host_calloc(MANY, 4 * sizeof *zeros);
    assert_non_null(zeros);
    op_case c = suppress(MANY, zeros, zeros, MANY, 0);
    case_refused(&c, TIDE_ERR_UNKNOWN_SIZE, "6000 boxes are too many to be counted for a plan");
    c = suppress(MANY, zeros, zeros, 100, 0);
    assert_tide_ok(case_try(&c, 1), &c.err);
    assert_int_equal(case_out(&c, 0)->shape.dims[0], 100);
    case_end(&c);
    tide_host_free(zeros);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_places_of_nothing),
        tide_unit_test(test_conditions_of_other_lengths),
        tide_unit_test(test_distinct_ones),
        tide_unit_test(test_boxes),
        tide_unit_test(test_boxes_that_take_long_are_no_part_of_a_plan),
    };
    return cmocka_run_group_tests_name("counted operators", tests, NULL, NULL);
}
