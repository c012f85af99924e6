// SPDX-License-Identifier: MIT
//
// Products of 8-bit numbers where neither ONNX's own cases nor ONNX Runtime go: a zero point for each row of A, for
// each of many matrices; sums of nothing; the ends of the range; parameters that do not fit.
#include "tests/ops/data_case.h"

#include <math.h>

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6};

static void test_a_zero_point_for_each_line(void **state) {
    (void)state;
    op_case c = case_begin("MatMulInteger", 10);
    case_in(&c, TIDE_U8, DIMS(2, 3), bytes);
    case_in(&c, TIDE_I8, DIMS(3, 2), (const int8_t[]){1, -1, 2, -2, 3, -3});
    case_in(&c, TIDE_U8, DIMS(2), (const uint8_t[]){1, 4});
    case_in(&c, TIDE_I8, DIMS(2), (const int8_t[]){0, 1});
    case_want(&c, TIDE_I32, DIMS(2, 2), (const int32_t[]){8, -11, 8, -11});
    c = case_begin("MatMulInteger", 10); // two matrices of one row each, a zero point for each
    case_in(&c, TIDE_U8, DIMS(2, 1, 2), bytes);
    case_in(&c, TIDE_U8, DIMS(2, 1), (const uint8_t[]){1, 10});
    case_in(&c, TIDE_U8, DIMS(2, 1, 1), (const uint8_t[]){1, 3});
    case_want(&c, TIDE_I32, DIMS(2, 1, 1), (const int32_t[]){10, 10});
    c = case_begin("MatMulInteger", 10);
    case_in(&c, TIDE_U8, DIMS(2, 3), bytes);
    case_in(&c, TIDE_U8, DIMS(3, 2), bytes);
    case_in(&c, TIDE_U8, DIMS(3), bytes);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "a_zero_point is [3], must be [2x1]");
    for (int64_t n = 0; n <= 3; n += 3) { // a vector is one column, of nothing too
        c = case_begin("MatMulInteger", 10);
        case_in(&c, TIDE_U8, DIMS(n), bytes);
        case_in(&c, TIDE_U8, DIMS(n), bytes);
        case_omit(&c);
        case_in(&c, TIDE_U8, DIMS(n), bytes);
        case_refused(&c, TIDE_ERR_BAD_INPUT, "must be [1]");
    }
}

static op_case qlinear_matmul(float a_scale, float y_scale, uint8_t y_zero) {
    static const float one = 1;
    static const uint8_t zero = 0;
    op_case c = case_begin("QLinearMatMul", 10);
    case_in(&c, TIDE_U8, DIMS(1, 2), (const uint8_t[]){255, 255});
    case_in(&c, TIDE_F32, DIMS0, &a_scale);
    case_in(&c, TIDE_U8, DIMS0, &zero);
    case_in(&c, TIDE_I8, DIMS(2, 3), (const int8_t[]){127, -128, 1, 127, -128, 0});
    case_in(&c, TIDE_F32, DIMS0, &one);
    case_in(&c, TIDE_I8, DIMS0, &zero);
    case_in(&c, TIDE_F32, DIMS0, &y_scale);
    case_in(&c, TIDE_U8, DIMS0, &y_zero);
    return c;
}

static void test_results_saturate(void **state) {
    (void)state;
    op_case c = qlinear_matmul(1, 1, 100);
    case_want(&c, TIDE_U8, DIMS(1, 3), (const uint8_t[]){255, 0, 255});
    c = qlinear_matmul(1, 510, 128); // 127, -128, half to even
    case_want(&c, TIDE_U8, DIMS(1, 3), (const uint8_t[]){255, 0, 128});
    c = qlinear_matmul(NAN, 1, 7); // NaN: the lowest
    case_want(&c, TIDE_U8, DIMS(1, 3), (const uint8_t[]){0, 0, 0});
}

static void test_sums_of_nothing(void **state) {
    (void)state;
    op_case c = case_begin("MatMulInteger", 10);
    case_in(&c, TIDE_U8, DIMS(2, 0), NULL);
    case_in(&c, TIDE_U8, DIMS(0, 3), NULL);
    case_want(&c, TIDE_I32, DIMS(2, 3), (const int32_t[6]){0});
    c = case_begin("MatMulInteger", 10);
    case_in(&c, TIDE_U8, DIMS(INT64_C(1) << 40, 0), NULL);
    case_in(&c, TIDE_U8, DIMS(0, 0), NULL);
    case_want(&c, TIDE_I32, DIMS(INT64_C(1) << 40, 0), NULL);
    c = case_begin("ConvInteger", 10);
    case_in(&c, TIDE_U8, DIMS(0, 1, 3, 3), NULL);
    case_in(&c, TIDE_U8, DIMS(1, 1, 2, 2), bytes);
    case_want(&c, TIDE_I32, DIMS(0, 1, 2, 2), NULL);
}

static op_case conv(int64_t n_zeros, const uint8_t *zeros) {
    op_case c = case_begin("ConvInteger", 10);
    case_in(&c, TIDE_U8, DIMS(1, 1, 3), bytes);
    case_in(&c, TIDE_U8, DIMS(2, 1, 2), bytes);
    case_in(&c, TIDE_U8, DIMS0, bytes);
    case_in(&c, TIDE_U8, DIMS(n_zeros), zeros);
    return c;
}

/// X less its zero point is 0 1 2 and so is what is padded: 0.
static void test_padding_is_the_zero_point(void **state) {
    (void)state;
    op_case c = conv(2, (const uint8_t[]){0, 3});
    case_ints(&c, "pads", DIMS(1, 1));
    case_want(&c, TIDE_I32, DIMS(1, 2, 4), (const int32_t[]){0, 2, 5, 2, 0, 1, 2, 0});
    c = conv(3, bytes);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "w_zero_point has 3 elements, must have 1, or one for each output channel");
    c = conv(1, bytes);
    case_int(&c, "group", 2);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "group is 2");
    c = conv(1, bytes);
    case_ints(&c, "kernel_shape", DIMS(3));
    case_refused(&c, TIDE_ERR_BAD_INPUT, "kernel_shape");
    c = conv(1, bytes);
    case_ints(&c, "strides", DIMS(0));
    case_refused(&c, TIDE_ERR_BAD_INPUT, "strides");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_a_zero_point_for_each_line),
        tide_unit_test(test_results_saturate),
        tide_unit_test(test_sums_of_nothing),
        tide_unit_test(test_padding_is_the_zero_point),
    };
    return cmocka_run_group_tests_name("integer operators", tests, NULL, NULL);
}
