// SPDX-License-Identifier: MIT
//
// Einsum beside ONNX's own cases: every letter, diagonals, axes that broadcast, nothing to add, integers that wrap,
// equations that say nothing.
#include "tests/ops/data_case.h"

static op_case einsum(const char *equation) {
    op_case c = case_begin("Einsum", 12);
    if (equation != NULL) case_string(&c, "equation", equation);
    return c;
}

static const float six[] = {1, 2, 3, 4, 5, 6};

static void test_labels(void **state) {
    (void)state;
    op_case c = einsum("ba"); // without an arrow: in the order of the alphabet
    case_in(&c, TIDE_F32, DIMS(2, 3), six);
    case_want(&c, TIDE_F32, DIMS(3, 2), (const float[]){1, 4, 2, 5, 3, 6});
    c = einsum("aB");
    case_in(&c, TIDE_F32, DIMS(2, 3), six);
    case_want(&c, TIDE_F32, DIMS(3, 2), (const float[]){1, 4, 2, 5, 3, 6});
    c = einsum(" ii -> ");
    case_in(&c, TIDE_F32, DIMS(2, 2), six);
    case_want(&c, TIDE_F32, DIMS0, (const float[]){5});
    c = einsum("i,i,i->i");
    for (int k = 0; k < 3; k++) case_in(&c, TIDE_F32, DIMS(3), six);
    case_want(&c, TIDE_F32, DIMS(3), (const float[]){1, 8, 27});
    c = einsum(",i->i"); // a scalar has no label
    case_in(&c, TIDE_F32, DIMS0, six + 1);
    case_in(&c, TIDE_F32, DIMS(3), six);
    case_want(&c, TIDE_F32, DIMS(3), (const float[]){2, 4, 6});
}

static void test_axes_without_names(void **state) {
    (void)state;
    op_case c = einsum("...i,...i->..."); // [2x1x3] and [3]: what is unnamed broadcasts
    case_in(&c, TIDE_F32, DIMS(2, 1, 3), six);
    case_in(&c, TIDE_F32, DIMS(3), six);
    case_want(&c, TIDE_F32, DIMS(2, 1), (const float[]){14, 32});
    c = einsum("i...->...i");
    case_in(&c, TIDE_F32, DIMS(2, 3), six);
    case_want(&c, TIDE_F32, DIMS(3, 2), (const float[]){1, 4, 2, 5, 3, 6});
    c = einsum("...i,i");
    case_in(&c, TIDE_F32, DIMS(2, 3), six);
    case_in(&c, TIDE_F32, DIMS(1), (const float[]){2}); // and a label of 1 too
    case_want(&c, TIDE_F32, DIMS(2), (const float[]){12, 30});
}

static void test_integers_wrap(void **state) {
    (void)state;
    op_case c = einsum("i,i->");
    case_in(&c, TIDE_I8, DIMS(2), (const int8_t[]){100, 100});
    case_in(&c, TIDE_I8, DIMS(2), (const int8_t[]){2, -1});
    case_want(&c, TIDE_I8, DIMS0, (const int8_t[]){100});
    c = einsum("i,i->");
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MAX});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){2});
    case_want(&c, TIDE_I64, DIMS0, (const int64_t[]){-2});
}

static void test_nothing_to_add(void **state) {
    (void)state;
    const int64_t far = INT64_C(1) << 40; // no turn of a loop for each of them
    op_case c = einsum("ij,jk->ik");
    case_in(&c, TIDE_F32, DIMS(2, 0), NULL);
    case_in(&c, TIDE_F32, DIMS(0, 3), NULL);
    case_want(&c, TIDE_F32, DIMS(2, 3), (const float[6]){0});
    c = einsum("ij->");
    case_in(&c, TIDE_F32, DIMS(far, 0), NULL);
    case_want(&c, TIDE_F32, DIMS0, (const float[]){0});
    c = einsum("ij->ij");
    case_in(&c, TIDE_F32, DIMS(far, 0), NULL);
    case_want(&c, TIDE_F32, DIMS(far, 0), NULL);
}

static void test_equations_that_say_nothing(void **state) {
    (void)state;
    static const struct {
        const char *equation, *words;
    } rows[] = {
        {NULL, "'equation' is missing"},
        {"ij->ijj", "twice"},
        {"ij->ik", "no operand has"},
        {"i", "1 labels, its operand rank 2"},
        {"ijk", "3 labels, its operand rank 2"},
        {"ij,jk->ik", "fewer operands"},
        {"ij->i->j", "more than one output"},
        {"i-j", "'-' without '>'"},
        {"i1", "letters"},
        {"......", "letters"},
        {"i...->i", "no '...'"},
        {"ii", "both 2 and 3"},
        {"abcdefghijk", "too many labels"},
        {"ij->abcdefghijk", "too many labels"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        op_case c = einsum(rows[i].equation);
        case_in(&c, TIDE_F32, DIMS(2, 3), six);
        case_refused(&c, TIDE_ERR_BAD_INPUT, rows[i].words);
    }
    op_case c = einsum("i,j"); // operands of two types, and too large a result
    case_in(&c, TIDE_F32, DIMS(3), six);
    case_in(&c, TIDE_F64, DIMS(0), NULL);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "must be the same");
    c = einsum("i,j");
    case_open(&c, TIDE_F32, DIMS(INT64_C(1) << 40));
    case_open(&c, TIDE_F32, DIMS(INT64_C(1) << 40));
    case_refused(&c, TIDE_ERR_OVERFLOW, "output 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_labels),
        tide_unit_test(test_axes_without_names),
        tide_unit_test(test_integers_wrap),
        tide_unit_test(test_nothing_to_add),
        tide_unit_test(test_equations_that_say_nothing),
    };
    return cmocka_run_group_tests_name("einsum", tests, NULL, NULL);
}
