// SPDX-License-Identifier: MIT
//
// Operators at the edges of what can be counted: extents and attributes that no model has and any file may hold. What
// is asked of each: an answer in words or the right result, at once, with no number wrapping on the way (which the
// build with sanitizers sees).
#include "tests/ops/data_case.h"

#include <math.h>

static const int64_t far = INT64_C(1) << 40;

// ---- empty tensors of many rows: nothing to do takes no time ----

/// A constant of shape [2^40, 3, 0]: 2^40 turns of a loop would be an hour.
static void case_many_rows_of_nothing(op_case *c) { case_in(c, TIDE_F32, DIMS(far, 3, 0), NULL); }

static void test_many_rows_of_nothing(void **state) {
    (void)state;
    static const float three[3] = {1, 1, 1};
    op_case c = case_begin("BatchNormalization", 9);
    case_many_rows_of_nothing(&c);
    for (int i = 0; i < 4; i++) case_in(&c, TIDE_F32, DIMS(3), three);
    case_want(&c, TIDE_F32, DIMS(far, 3, 0), NULL);

    c = case_begin("LRN", 13);
    case_many_rows_of_nothing(&c);
    case_int(&c, "size", 3);
    case_want(&c, TIDE_F32, DIMS(far, 3, 0), NULL);

    c = case_begin("ArgMax", 13);
    case_many_rows_of_nothing(&c);
    case_int(&c, "axis", 1);
    case_want(&c, TIDE_I64, DIMS(far, 1, 0), NULL);

    c = case_begin("LayerNormalization", 17);
    case_many_rows_of_nothing(&c);
    case_in(&c, TIDE_F32, DIMS(0), NULL);
    case_want(&c, TIDE_F32, DIMS(far, 3, 0), NULL);

    c = case_begin("Unique", 11); // all slices are the same
    case_many_rows_of_nothing(&c);
    case_int(&c, "axis", 0);
    case_want(&c, TIDE_F32, DIMS(1, 3, 0), NULL);

    c = case_begin("BatchNormalization", 9);
    case_in(&c, TIDE_F32, DIMS(far, 0, 5), NULL);
    for (int i = 0; i < 4; i++) case_in(&c, TIDE_F32, DIMS(0), NULL);
    case_want(&c, TIDE_F32, DIMS(far, 0, 5), NULL);
}

/// Mean and InvStdDev of rows without elements are written too: there is none, NaN.
static void test_mean_of_nothing_is_written(void **state) {
    (void)state;
    op_case c = case_begin("LayerNormalization", 17);
    case_in(&c, TIDE_F32, DIMS(3, 0), NULL);
    case_in(&c, TIDE_F32, DIMS(0), NULL);
    assert_tide_ok(case_try(&c, 3), &c.err);
    for (size_t o = 1; o < 3; o++) {
        const float *const y = tide_tensor_const_data(case_out(&c, o)->constant);
        for (int i = 0; i < 3; i++) assert_true(isnan(y[i]));
    }
    case_end(&c);
}

/// An output without elements whose other extents cannot be multiplied: the operator may look at it all the same.
static void test_nothing_that_cannot_be_counted(void **state) {
    (void)state;
    op_case c = case_begin("GridSample", 16);
    case_open(&c, TIDE_F32, DIMS(INT64_C(1) << 31, 1 << 20, 0, 1));
    case_open(&c, TIDE_F32, DIMS(INT64_C(1) << 31, 1 << 28, 0, 2));
    case_refused(&c, TIDE_ERR_OVERFLOW, "output 0");
}

// ---- numbers at the end of 63 bits ----

static void test_split_of_the_longest_axis(void **state) {
    (void)state;
    op_case c = case_begin("Split", 18);
    case_open(&c, TIDE_U8, DIMS(INT64_MAX));
    assert_tide_ok(case_try(&c, 2), &c.err);
    assert_true(case_out(&c, 0)->shape.dims[0] == INT64_MAX / 2 + 1);
    assert_true(case_out(&c, 1)->shape.dims[0] == INT64_MAX / 2);
    case_end(&c);

    c = case_begin("Split", 18); // 5 by 4: parts of 2, the last of nothing
    static const float data[5] = {0};
    case_in(&c, TIDE_F32, DIMS(5), data);
    assert_tide_ok(case_try(&c, 4), &c.err);
    static const int64_t want[4] = {2, 2, 1, 0};
    for (size_t i = 0; i < 4; i++) assert_int_equal(case_out(&c, i)->shape.dims[0], want[i]);
    case_end(&c);
}

/// -2^63 cannot be negated; with 2^63 - 1 at the other end the output would even have a length.
static void test_pads_that_cannot_be_negated(void **state) {
    (void)state;
    static const float data[5] = {0};
    for (int first = 0; first < 2; first++) {
        op_case c = case_begin("Pad", 13);
        case_in(&c, TIDE_F32, DIMS(5), data);
        const int64_t pads[2] = {first ? INT64_MIN : INT64_MAX, first ? INT64_MAX : INT64_MIN};
        case_in(&c, TIDE_I64, DIMS(2), pads);
        case_refused(&c, TIDE_ERR_BAD_INPUT, "cannot be padded by");
    }
}

/// 2^28 in each direction, all but 2 of them padding: the average divides by 2^84.
static void test_average_over_padding(void **state) {
    (void)state;
    static const float data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    enum { LONG = 1 << 28 };
    op_case c = case_begin("AveragePool", 11);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 2, 2), data);
    case_ints(&c, "kernel_shape", DIMS(LONG, LONG, LONG));
    case_ints(&c, "pads", DIMS(LONG - 2, LONG - 2, LONG - 2, 0, 0, 0));
    case_int(&c, "count_include_pad", 1);
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 1, 1), (const float[]){0x1p-81f});
}

// ---- what oneDNN counts in int ----

/// Infer from shapes alone, then prepare: what `plan` does.
static tide_status prepare_open(const char *op, const tide_operand *in, size_t n_in, tide_error *err) {
    const tide_op_def *const def = tide_op_find("", op, 13);
    uint32_t outputs[] = {0};
    const tide_node node = {.name = (char[]){"the_node"},
                            .op_type = (char[]){"Op"},
                            .domain = (char[]){""},
                            .opset = 13,
                            .outputs = outputs,
                            .n_outputs = 1,
                            .def = def};
    tide_operand out = {0};
    TIDE_TRY(def->infer(&(tide_infer){.node = &node, .in = in, .n_in = n_in, .out = &out, .n_out = 1}, err));
    tide_kernel k = {.def = def, .node = &node};
    TIDE_TRY(def->prepare(&(tide_prepare){.node = &node, .in = in, .n_in = n_in, .out = &out, .n_out = 1}, &k, err));
    if (def->destroy != NULL) def->destroy(&k);
    return TIDE_OK;
}

static void test_extents_past_int(void **state) {
    (void)state;
    static const struct {
        const char *op;
        tide_shape in[2];
        size_t n_in;
        tide_status want;
    } rows[] = {
        {"MatMul", {{2, {INT64_C(1) << 32, 2}}, {2, {2, 3}}}, 2, TIDE_ERR_NOT_IMPLEMENTED},
        {"MatMul", {{2, {2, INT64_C(1) << 32}}, {2, {INT64_C(1) << 32, 3}}}, 2, TIDE_ERR_NOT_IMPLEMENTED},
        {"MatMul", {{2, {INT32_MAX, 2}}, {2, {2, 3}}}, 2, TIDE_OK},
        {"MatMul", {{3, {65536, 65536, 2}}, {2, {2, 3}}}, 2, TIDE_OK}, // not folded into 2^32 rows
        {"Gemm", {{2, {INT64_C(1) << 32, 2}}, {2, {2, 3}}}, 2, TIDE_ERR_NOT_IMPLEMENTED},
        {"Conv", {{3, {1, INT64_C(1) << 32, 5}}, {3, {6, INT64_C(1) << 32, 3}}}, 2, TIDE_ERR_NOT_IMPLEMENTED},
        {"Softmax", {{2, {INT64_C(1) << 32, 5}}}, 1, TIDE_ERR_NOT_IMPLEMENTED},
        {"Tanh", {{2, {INT64_C(1) << 32, 5}}}, 1, TIDE_OK}, // elementwise: it has one long extent
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_operand in[2] = {{.dtype = TIDE_F32, .shape = rows[i].in[0]}, {.dtype = TIDE_F32, .shape = rows[i].in[1]}};
        const tide_status got = prepare_open(rows[i].op, in, rows[i].n_in, &err);
        if (got != rows[i].want) fail_msg("row %zu, %s: %s: %s", i, rows[i].op, tide_status_name(got), err.msg);
        if (got != TIDE_OK) assert_text_has(err.msg, "past the 2^31-1");
    }
}

// ---- Resize ----

static op_case resize_case(int32_t rank, const int64_t *dims) {
    op_case c = case_begin("Resize", 18);
    case_open(&c, TIDE_F32, rank, dims);
    case_omit(&c);
    return c;
}

static void test_resize_of_long_axes(void **state) {
    (void)state;
    op_case c = resize_case(DIMS(1, 1, 2, 2)); // positions are floats: 2^34 of them would not be
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS(4), (const int64_t[]){1, 1, INT64_C(1) << 34, 2});
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "axis 2 goes from 2 to 17179869184");

    c = resize_case(DIMS(1000, 1)); // the common scale makes 1000 elements past 2^63
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){1000, INT64_MAX});
    case_string(&c, "keep_aspect_ratio_policy", "not_smaller");
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "axis 0 goes from 1000 to");
}

/// An axis that keeps its place is not looked at element by element, nor does it get a table.
static void test_resize_leaves_long_axes_alone(void **state) {
    (void)state;
    static const float scales[] = {1, 1, 2, 2};
    const tide_operand in[] = {
        {.dtype = TIDE_F32, .shape = {4, {INT64_C(1) << 40, 1, 2, 2}}},
        {0},
        {.dtype = TIDE_F32, .shape = {1, {4}}, .size_bytes = sizeof scales, .data = (void *)(uintptr_t)scales}};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(prepare_open("Resize", in, 3, &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_many_rows_of_nothing),
        tide_unit_test(test_nothing_that_cannot_be_counted),
        tide_unit_test(test_mean_of_nothing_is_written),
        tide_unit_test(test_split_of_the_longest_axis),
        tide_unit_test(test_pads_that_cannot_be_negated),
        tide_unit_test(test_average_over_padding),
        tide_unit_test(test_extents_past_int),
        tide_unit_test(test_resize_of_long_axes),
        tide_unit_test(test_resize_leaves_long_axes_alone),
    };
    return cmocka_run_group_tests_name("hostile operators", tests, NULL, NULL);
}
