// SPDX-License-Identifier: MIT
//
// Operators in plain loops, where ONNX's own cases (test_folding) do not go: bad indices, nothing to work on,
// opset variants, what the table says of in-place and views, sizes that depend on data, corner values.
#include "tests/ops/data_case.h"

#include <math.h>

// ---- indices outside (S27: errors name the node) ----

static void test_bad_index_is_named(void **state) {
    (void)state;
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    const int64_t bad[] = {1, 3};
    op_case c = case_begin("Gather", 13);
    case_in(&c, TIDE_F32, DIMS(3, 2), data);
    case_in(&c, TIDE_I64, DIMS(2), bad);
    case_refused(&c, TIDE_ERR_RUNTIME, "index 3");

    const int32_t low[] = {0, -4, 0};
    c = case_begin("GatherElements", 13);
    case_in(&c, TIDE_F32, DIMS(3, 2), data);
    case_in(&c, TIDE_I32, DIMS(3, 1), low);
    case_refused(&c, TIDE_ERR_RUNTIME, "index -4");

    const int64_t pairs[] = {0, 1, 2, 2};
    c = case_begin("GatherND", 13);
    case_in(&c, TIDE_F32, DIMS(3, 2), data);
    case_in(&c, TIDE_I64, DIMS(2, 2), pairs);
    case_refused(&c, TIDE_ERR_RUNTIME, "index 2");

    c = case_begin("ScatterND", 16);
    case_in(&c, TIDE_F32, DIMS(3, 2), data);
    case_in(&c, TIDE_I64, DIMS(2, 2), pairs);
    case_in(&c, TIDE_F32, DIMS(2), data);
    case_refused(&c, TIDE_ERR_RUNTIME, "extent of 2");

    const int64_t huge[] = {INT64_MIN};
    c = case_begin("ScatterElements", 16);
    case_in(&c, TIDE_F32, DIMS(3), data);
    case_in(&c, TIDE_I64, DIMS(1), huge);
    case_in(&c, TIDE_F32, DIMS(1), data);
    case_refused(&c, TIDE_ERR_RUNTIME, "-9223372036854775808");
}

/// The smallest or largest of two, of which one is none: none, whichever it is.
static void test_scattered_numbers_that_are_none(void **state) {
    (void)state;
    static const char *const names[] = {"min", "max"};
    static const float data[] = {NAN, 1, 2}, updates[] = {1, NAN, 2};
    for (int i = 0; i < 2; i++) {
        op_case c = case_begin("ScatterElements", 18);
        case_in(&c, TIDE_F32, DIMS(3), data);
        case_in(&c, TIDE_I64, DIMS(3), (const int64_t[]){0, 1, 2});
        case_in(&c, TIDE_F32, DIMS(3), updates);
        case_string(&c, "reduction", names[i]);
        assert_tide_ok(case_try(&c, 1), &c.err);
        const float *y = tide_tensor_const_data(case_out(&c, 0)->constant);
        assert_true(isnan(y[0]) && isnan(y[1]) && y[2] == 2);
        case_end(&c);
    }
}

static void test_negative_index_counts_from_end(void **state) {
    (void)state;
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    const int64_t at[] = {-1, 0};
    op_case c = case_begin("Gather", 13);
    case_in(&c, TIDE_F32, DIMS(3, 2), data);
    case_in(&c, TIDE_I64, DIMS(2), at);
    case_want(&c, TIDE_F32, DIMS(2, 2), (const float[]){4, 5, 0, 1});

    c = case_begin("Gather", 13); // scalar indices take the axis away
    case_in(&c, TIDE_F32, DIMS(3, 2), data);
    case_in(&c, TIDE_I64, DIMS0, at);
    case_int(&c, "axis", -1);
    case_want(&c, TIDE_F32, DIMS(3), (const float[]){1, 3, 5});
}

// ---- nothing to work on ----

static void test_empty_tensors(void **state) {
    (void)state;
    static const float row[3] = {1, 2, 3};
    op_case c = case_begin("Add", 14);
    case_in(&c, TIDE_F32, DIMS(0, 3), NULL);
    case_in(&c, TIDE_F32, DIMS(1, 3), row);
    case_want(&c, TIDE_F32, DIMS(0, 3), NULL);

    c = case_begin("Concat", 13);
    case_in(&c, TIDE_F32, DIMS(0, 3), NULL);
    case_in(&c, TIDE_F32, DIMS(1, 3), row);
    case_int(&c, "axis", 0);
    case_want(&c, TIDE_F32, DIMS(1, 3), row);

    c = case_begin("Transpose", 13);
    case_in(&c, TIDE_F32, DIMS(2, 0, 3), NULL);
    case_want(&c, TIDE_F32, DIMS(3, 0, 2), NULL);

    c = case_begin("ReduceSum", 13);
    case_in(&c, TIDE_F32, DIMS(2, 0), NULL);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){1});
    case_want(&c, TIDE_F32, DIMS(2, 1), (const float[]){0, 0});

    c = case_begin("ReduceMax", 18);
    case_in(&c, TIDE_F32, DIMS(2, 0), NULL);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){1});
    case_want(&c, TIDE_F32, DIMS(2, 1), (const float[]){-INFINITY, -INFINITY});

    c = case_begin("Gather", 13); // no index: nothing is read
    case_in(&c, TIDE_F32, DIMS(1, 3), row);
    case_in(&c, TIDE_I64, DIMS(0), NULL);
    case_want(&c, TIDE_F32, DIMS(0, 3), NULL);

    c = case_begin("Pad", 13); // all of the output is padding
    case_in(&c, TIDE_F32, DIMS(0), NULL);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){1, 1});
    case_want(&c, TIDE_F32, DIMS(2), (const float[]){0, 0});

    c = case_begin("Tile", 13);
    case_in(&c, TIDE_F32, DIMS(3), row);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){0});
    case_want(&c, TIDE_F32, DIMS(0), NULL);

    c = case_begin("Reshape", 14);
    case_in(&c, TIDE_F32, DIMS(0, 3), NULL);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){0, 5});
    case_int(&c, "allowzero", 1);
    case_want(&c, TIDE_F32, DIMS(0, 5), NULL);

    c = case_begin("ArgMax", 13);
    case_in(&c, TIDE_F32, DIMS(2, 0), NULL);
    case_int(&c, "axis", 1);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "empty");
}

// ---- opset variants: attributes that became operands ----

static void test_axes_attribute_and_operand(void **state) {
    (void)state;
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    op_case c = case_begin("Squeeze", 11);
    case_in(&c, TIDE_F32, DIMS(1, 6, 1), data);
    case_ints(&c, "axes", DIMS(-1));
    case_want(&c, TIDE_F32, DIMS(1, 6), data);

    c = case_begin("Squeeze", 13);
    case_in(&c, TIDE_F32, DIMS(1, 6, 1), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){0});
    case_want(&c, TIDE_F32, DIMS(6, 1), data);

    c = case_begin("Unsqueeze", 9);
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_ints(&c, "axes", DIMS(0, 2));
    case_want(&c, TIDE_F32, DIMS(1, 6, 1), data);

    c = case_begin("Unsqueeze", 13);
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){-1, 0});
    case_want(&c, TIDE_F32, DIMS(1, 6, 1), data);

    c = case_begin("ReduceSum", 11);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_ints(&c, "axes", DIMS(0));
    case_int(&c, "keepdims", 0);
    case_want(&c, TIDE_F32, DIMS(3), (const float[]){3, 5, 7});

    c = case_begin("ReduceMean", 17);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_ints(&c, "axes", DIMS(1));
    case_want(&c, TIDE_F32, DIMS(2, 1), (const float[]){1, 4});

    c = case_begin("ReduceMean", 18);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){1});
    case_want(&c, TIDE_F32, DIMS(2, 1), (const float[]){1, 4});

    c = case_begin("ReduceSum", 13); // no axes, and the node says that then nothing is reduced
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_int(&c, "noop_with_empty_axes", 1);
    case_want(&c, TIDE_F32, DIMS(2, 3), data);

    c = case_begin("ReduceSum", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_in(&c, TIDE_I64, DIMS(0), NULL);
    case_want(&c, TIDE_F32, DIMS(1, 1), (const float[]){15});
}

static void test_slice_and_pad_variants(void **state) {
    (void)state;
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    op_case c = case_begin("Slice", 9);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_ints(&c, "starts", DIMS(-2));
    case_ints(&c, "ends", DIMS(1000));
    case_ints(&c, "axes", DIMS(1));
    case_want(&c, TIDE_F32, DIMS(2, 2), (const float[]){1, 2, 4, 5});

    c = case_begin("Slice", 13); // walk back over everything: the end before the first is written INT64_MIN
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){-1});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MIN});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){0});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){-2});
    case_want(&c, TIDE_F32, DIMS(3), (const float[]){5, 3, 1});

    c = case_begin("Slice", 13); // from before the first to further before it: ONNX begins at the first
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MIN});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MIN});
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){-1});
    case_want(&c, TIDE_F32, DIMS(1), (const float[]){0});

    c = case_begin("Slice", 13); // steps as large as they get
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){4});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MIN});
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MIN});
    case_want(&c, TIDE_F32, DIMS(1), (const float[]){4});

    c = case_begin("Slice", 13);
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){0});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){3});
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){0});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "step");

    c = case_begin("Pad", 10);
    case_in(&c, TIDE_F32, DIMS(2), data);
    case_ints(&c, "pads", DIMS(1, -1));
    case_float(&c, "value", 7);
    case_want(&c, TIDE_F32, DIMS(2), (const float[]){7, 0});

    c = case_begin("Pad", 18); // axes: the pads are of axis 1 alone
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){1, 0});
    case_in(&c, TIDE_F32, DIMS0, (const float[]){9});
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){-1});
    case_want(&c, TIDE_F32, DIMS(2, 4), (const float[]){9, 0, 1, 2, 9, 3, 4, 5});

    c = case_begin("Pad", 19);
    case_in(&c, TIDE_F32, DIMS(3), data);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){2, 4});
    case_string(&c, "mode", "wrap");
    case_want(&c, TIDE_F32, DIMS(9), (const float[]){1, 2, 0, 1, 2, 0, 1, 2, 0});

    c = case_begin("Pad", 13);
    case_in(&c, TIDE_F32, DIMS(3), data);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){-1, 2});
    case_string(&c, "mode", "reflect");
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "negative pads");
}

static void test_split_variants(void **state) {
    (void)state;
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    op_case c = case_begin("Split", 11);
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_ints(&c, "split", DIMS(2, 4));
    assert_tide_ok(case_try(&c, 2), &c.err);
    assert_int_equal(case_out(&c, 1)->shape.dims[0], 4);
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 1)->constant), data + 2, 4 * sizeof(float));
    case_end(&c);

    c = case_begin("Split", 18); // 6 in 4 parts: 2 2 2 0
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_int(&c, "num_outputs", 4);
    assert_tide_ok(case_try(&c, 4), &c.err);
    assert_int_equal(case_out(&c, 2)->shape.dims[0], 2);
    assert_int_equal(case_out(&c, 3)->shape.dims[0], 0);
    case_end(&c);

    c = case_begin("Split", 13); // before 18 the parts must be equal
    case_in(&c, TIDE_F32, DIMS(6), data);
    assert_tide_status(case_try(&c, 4), TIDE_ERR_BAD_INPUT);
    case_end(&c);
}

static void test_dropout_is_identity(void **state) {
    (void)state;
    static const float data[3] = {1, 2, 3};
    op_case c = case_begin("Dropout", 7); // its mask has the type of the data
    case_in(&c, TIDE_F32, DIMS(3), data);
    assert_tide_ok(case_try(&c, 2), &c.err);
    assert_int_equal(case_out(&c, 1)->dtype, TIDE_F32);
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 0)->constant), data, sizeof data);
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 1)->constant), ((const float[3]){0}), sizeof data);
    case_end(&c);

    c = case_begin("Dropout", 12); // its mask is bool, and true
    case_in(&c, TIDE_F32, DIMS(3), data);
    assert_tide_ok(case_try(&c, 2), &c.err);
    assert_int_equal(case_out(&c, 1)->dtype, TIDE_BOOL);
    assert_memory_equal(tide_tensor_const_data(case_out(&c, 1)->constant), ((const uint8_t[3]){1, 1, 1}), 3);
    case_end(&c);

    c = case_begin("Dropout", 13);
    case_in(&c, TIDE_F32, DIMS(3), data);
    case_in(&c, TIDE_F32, DIMS0, (const float[]){0.25f});
    case_in(&c, TIDE_BOOL, DIMS0, (const uint8_t[]){1});
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "training_mode");
}

// ---- sizes that depend on data (S23-19) ----

static void test_unknown_size_is_never_guessed(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c = case_begin("Reshape", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_open(&c, TIDE_I64, DIMS(2));
    case_refused(&c, TIDE_ERR_UNKNOWN_SIZE, "shape");

    c = case_begin("Slice", 13);
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){0});
    case_open(&c, TIDE_I64, DIMS(1));
    case_refused(&c, TIDE_ERR_UNKNOWN_SIZE, "ends");

    c = case_begin("Range", 13);
    case_in(&c, TIDE_I64, DIMS0, (const int64_t[]){0});
    case_open(&c, TIDE_I64, DIMS0);
    case_in(&c, TIDE_I64, DIMS0, (const int64_t[]){1});
    case_refused(&c, TIDE_ERR_UNKNOWN_SIZE, "limit");

    c = case_begin("ReduceSum", 13);
    case_open(&c, TIDE_F32, DIMS(2, 3));
    case_open(&c, TIDE_I64, DIMS(1));
    case_refused(&c, TIDE_ERR_UNKNOWN_SIZE, "axes");
}

static void test_shape_reads_no_data(void **state) {
    (void)state;
    op_case c = case_begin("Shape", 15);
    case_open(&c, TIDE_F32, DIMS(2, 3, 5, 7));
    case_int(&c, "start", -3);
    case_int(&c, "end", -1);
    case_want(&c, TIDE_I64, DIMS(2), (const int64_t[]){3, 5});

    c = case_begin("Size", 13);
    case_open(&c, TIDE_F32, DIMS(2, 3, 5, 7));
    case_want(&c, TIDE_I64, DIMS0, (const int64_t[]){210});
}

// ---- bad input ----

static void test_bad_shapes_are_refused(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c = case_begin("Reshape", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){4, -1});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "[2x3] cannot become [4x?]");

    c = case_begin("Reshape", 13); // 0 rows of any length
    case_in(&c, TIDE_F32, DIMS(0, 3), NULL);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){0, -1});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "beside one of 0");

    c = case_begin("Reshape", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){INT64_MAX, INT64_MAX});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "extent 1");

    c = case_begin("Add", 14);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_in(&c, TIDE_F32, DIMS(2), data);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "broadcast");

    c = case_begin("Add", 14);
    case_in(&c, TIDE_F32, DIMS(1), data);
    case_in(&c, TIDE_I32, DIMS(1), data);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "int32");

    c = case_begin("PRelu", 16); // the slope broadcasts one way only
    case_in(&c, TIDE_F32, DIMS(3), data);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "broadcast");

    c = case_begin("Concat", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_in(&c, TIDE_F32, DIMS(2, 2), data);
    case_int(&c, "axis", 0);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "input 1");

    c = case_begin("Transpose", 13);
    case_in(&c, TIDE_F32, DIMS(2, 3), data);
    case_ints(&c, "perm", DIMS(1, 1));
    case_refused(&c, TIDE_ERR_BAD_INPUT, "permutation");

    c = case_begin("Expand", 13);
    case_in(&c, TIDE_F32, DIMS(1), data);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){INT64_MAX / 2, 8});
    case_refused(&c, TIDE_ERR_OVERFLOW, "");

    c = case_begin("Tile", 13);
    case_in(&c, TIDE_F32, DIMS(6), data);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MAX});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "axis 0");

    c = case_begin("ConstantOfShape", 9);
    case_in(&c, TIDE_I64, DIMS(1), (const int64_t[]){-3});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "-3");
}

// ---- numbers ----

static void test_integer_division(void **state) {
    (void)state;
    op_case c = case_begin("Div", 14);
    case_in(&c, TIDE_I32, DIMS(3), (const int32_t[]){1, 2, 3});
    case_in(&c, TIDE_I32, DIMS(3), (const int32_t[]){1, 0, 1});
    case_refused(&c, TIDE_ERR_RUNTIME, "division by zero (element 1");

    c = case_begin("Div", 14);
    case_in(&c, TIDE_I64, DIMS(3), (const int64_t[]){INT64_MIN, -7, 7});
    case_in(&c, TIDE_I64, DIMS(3), (const int64_t[]){-1, 2, -2});
    case_want(&c, TIDE_I64, DIMS(3), (const int64_t[]){INT64_MIN, -3, -3});

    c = case_begin("Mod", 13);
    case_in(&c, TIDE_I64, DIMS(3), (const int64_t[]){INT64_MIN, -7, 7});
    case_in(&c, TIDE_I64, DIMS(3), (const int64_t[]){-1, 2, -2});
    case_want(&c, TIDE_I64, DIMS(3), (const int64_t[]){0, 1, -1});

    c = case_begin("Mod", 13);
    case_in(&c, TIDE_U8, DIMS(1), (const uint8_t[]){1});
    case_in(&c, TIDE_U8, DIMS(1), (const uint8_t[]){0});
    case_refused(&c, TIDE_ERR_RUNTIME, "division by zero");
}

static void test_integers_wrap(void **state) {
    (void)state;
    op_case c = case_begin("Mul", 14);
    case_in(&c, TIDE_I32, DIMS(2), (const int32_t[]){INT32_MAX, -3});
    case_in(&c, TIDE_I32, DIMS(2), (const int32_t[]){2, 5});
    case_want(&c, TIDE_I32, DIMS(2), (const int32_t[]){-2, -15});

    c = case_begin("Mul", 14);
    case_in(&c, TIDE_U16, DIMS(1), (const uint16_t[]){65535});
    case_in(&c, TIDE_U16, DIMS(1), (const uint16_t[]){65535});
    case_want(&c, TIDE_U16, DIMS(1), (const uint16_t[]){1});

    c = case_begin("Abs", 13);
    case_in(&c, TIDE_I8, DIMS(2), (const int8_t[]){-128, -5});
    case_want(&c, TIDE_I8, DIMS(2), (const int8_t[]){-128, 5});

    c = case_begin("ReduceSum", 13);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){INT64_MAX, 1});
    case_want(&c, TIDE_I64, DIMS(1), (const int64_t[]){INT64_MIN});
}

static void test_cast_corners(void **state) {
    (void)state;
    const float odd[] = {NAN, 300, -300, 1e30f, -1e30f, 2.9f, -2.9f};
    op_case c = case_begin("Cast", 13);
    case_in(&c, TIDE_F32, DIMS(7), odd);
    case_int(&c, "to", TIDE_I8);
    case_want(&c, TIDE_I8, DIMS(7), (const int8_t[]){0, 127, -128, 127, -128, 2, -2});

    c = case_begin("Cast", 13);
    case_in(&c, TIDE_F32, DIMS(7), odd);
    case_int(&c, "to", TIDE_I64);
    case_want(&c, TIDE_I64, DIMS(7), (const int64_t[]){0, 300, -300, INT64_MAX, INT64_MIN, 2, -2});

    c = case_begin("Cast", 13);
    case_in(&c, TIDE_F32, DIMS(7), odd);
    case_int(&c, "to", TIDE_BOOL);
    case_want(&c, TIDE_BOOL, DIMS(7), (const uint8_t[]){1, 1, 1, 1, 1, 1, 1});

    c = case_begin("Cast", 13); // 2^-25 + a little rounds up to the smallest float16; in two steps it would be lost
    case_in(&c, TIDE_F64, DIMS(4), (const double[]){0x1.0000000000001p-25, 0x1p-25, 65519.999, 65520});
    case_int(&c, "to", TIDE_F16);
    case_want(&c, TIDE_F16, DIMS(4), (const uint16_t[]){1, 0, 0x7bff, 0x7c00});

    c = case_begin("Cast", 13); // to bfloat16 rounds to nearest even, a NaN stays one
    case_in(&c, TIDE_F32, DIMS(4), (const float[]){1.00390625f, 1.01171875f, 0.48f, NAN});
    case_int(&c, "to", TIDE_BF16);
    case_want(&c, TIDE_BF16, DIMS(4), (const uint16_t[]){0x3f80, 0x3f82, 0x3ef6, 0x7fc0});
}

/// Every float16 survives the way through float32, and rounding is to the nearest for values in between.
static void test_half_round_trip(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = tide_f16_to_f32((uint16_t)h);
        if (isnan(f)) {
            assert_true(isnan(tide_f16_to_f32(tide_f32_to_f16(f))));
            continue;
        }
        assert_int_equal(tide_f32_to_f16(f), h);
        if ((h & 0x7fffu) >= 0x7bffu) continue;
        const float up = tide_f16_to_f32((uint16_t)(h + 1));
        const uint32_t even = h & 1 ? h + 1 : h;
        assert_int_equal(tide_f32_to_f16((f + up) / 2), even);
    }
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = tide_bf16_to_f32((uint16_t)h);
        if (!isnan(f)) assert_int_equal(tide_f32_to_bf16(f), h);
    }
}

static void test_nan_wins_in_max(void **state) {
    (void)state;
    op_case c = case_begin("Max", 13);
    case_in(&c, TIDE_F32, DIMS(3), (const float[]){NAN, 1, 2});
    case_in(&c, TIDE_F32, DIMS(3), (const float[]){1, NAN, 3});
    assert_tide_ok(case_try(&c, 1), &c.err);
    const float *const out = tide_tensor_const_data(case_out(&c, 0)->constant);
    assert_true(isnan(out[0]) && isnan(out[1]) && out[2] == 3);
    case_end(&c);

    c = case_begin("ReduceLogSumExp", 18); // neither the large nor the infinitely small may spoil it
    case_in(&c, TIDE_F32, DIMS(4), (const float[]){-INFINITY, 1000, 1000, -INFINITY});
    case_want(&c, TIDE_F32, DIMS(1), (const float[]){(float)(1000 + log(2))});
}

// ---- Add with a fused activation ----

static void test_add_fuses_activation(void **state) {
    (void)state;
    static const struct {
        tide_activation act;
        float want[3];
    } rows[] = {
        {{TIDE_ACT_RELU, 0, 0}, {0, 0, 3}},
        {{TIDE_ACT_CLIP, -1, 2}, {-1, 0, 2}},
        {{TIDE_ACT_LEAKY_RELU, 0.5f, 0}, {-1.5f, 0, 3}},
    };
    const tide_dtype dtypes[] = {TIDE_F32, TIDE_F16};
    const tide_op_def *const def = tide_op_find("", "Add", 14);
    assert_true((def->flags & TIDE_OP_FUSES_ACT) != 0);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t t = 0; t < 2; t++) {
            double in_a[3], in_b[1], out[3]; // room for any dtype
            const tide_node node = {.activation = rows[r].act};
            const tide_kernel k = {.def = def, .node = &node};
            for (int i = 0; i < 3; i++) tide_data_store_f64(dtypes[t], in_a, i, 3 * (i - 1) - 1);
            tide_data_store_f64(dtypes[t], in_b, 0, 1);
            const int64_t three = 3, one = 1;
            const tide_operand in[] = {{.dtype = dtypes[t], .shape = tide_shape_make(1, &three), .data = in_a},
                                       {.dtype = dtypes[t], .shape = tide_shape_make(1, &one), .data = in_b}};
            const tide_operand to = {.dtype = dtypes[t], .shape = tide_shape_make(1, &three), .data = out};
            const tide_kernel_args args = {.in = in, .n_in = 2, .out = &to, .n_out = 1};
            assert_tide_status(def->run(&k, &args, NULL), TIDE_OK);
            for (int i = 0; i < 3; i++) assert_true(tide_data_load_f64(dtypes[t], out, i) == (double)rows[r].want[i]);
        }
}

// ---- Resize ----

/// ONNX's own case of opset 10: the floor where an axis grows, the ceiling where it shrinks.
static void test_resize_of_opset_10(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    op_case c = case_begin("Resize", 10);
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 4), x);
    case_in(&c, TIDE_F32, DIMS(4), (const float[]){1, 1, 0.6f, 0.6f});
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 2), (const float[]){1, 3});
    c = case_begin("Resize", 10);
    case_in(&c, TIDE_F32, DIMS(1, 1, 1, 2), x);
    case_in(&c, TIDE_F32, DIMS(4), (const float[]){1, 1, 1, 1.5f});
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 3), (const float[]){1, 1, 2});
}

static void test_resize_align_corners(void **state) {
    (void)state;
    op_case c = case_begin("Resize", 13); // both corners stay where they are, also when scale * 4 is 2.4
    case_in(&c, TIDE_F32, DIMS(1, 1, 2, 4), (const float[]){1, 2, 3, 4, 5, 6, 7, 8});
    case_omit(&c);
    case_in(&c, TIDE_F32, DIMS(4), (const float[]){1, 1, 0.6f, 0.6f});
    case_string(&c, "mode", "linear");
    case_string(&c, "coordinate_transformation_mode", "align_corners");
    case_want(&c, TIDE_F32, DIMS(1, 1, 1, 2), (const float[]){1, 4});
}

static void test_resize_all_axes(void **state) {
    (void)state;
    op_case c = case_begin("Resize", 13); // three passes through the workspace, any dtype
    case_in(&c, TIDE_I8, DIMS(2, 1, 2), (const int8_t[]){1, 2, 3, 4});
    case_omit(&c);
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS(3), (const int64_t[]){1, 2, 4});
    case_string(&c, "coordinate_transformation_mode", "asymmetric");
    case_string(&c, "nearest_mode", "floor");
    case_want(&c, TIDE_I8, DIMS(1, 2, 4), (const int8_t[]){1, 1, 2, 2, 1, 1, 2, 2});

    c = case_begin("Resize", 18);
    case_in(&c, TIDE_F32, DIMS(2, 2), (const float[]){1, 2, 3, 4});
    case_omit(&c);
    case_omit(&c);
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){4, 6});
    case_string(&c, "keep_aspect_ratio_policy", "not_larger");
    case_string(&c, "coordinate_transformation_mode", "asymmetric");
    case_string(&c, "nearest_mode", "floor");
    case_want(&c, TIDE_F32, DIMS(4, 4), (const float[]){1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});

    c = case_begin("Upsample", 7);
    case_in(&c, TIDE_F32, DIMS(2), (const float[]){1, 2});
    tide_attr *const scales = case_attr(&c, "scales", TIDE_ATTR_FLOATS);
    scales->n = 1;
    scales->floats = tide_host_calloc(1, sizeof(float));
    assert_non_null(scales->floats);
    scales->floats[0] = 2;
    case_string(&c, "mode", "linear");
    case_want(&c, TIDE_F32, DIMS(4), (const float[]){1, 1.5f, 2, 2});

    c = case_begin("Resize", 18);
    case_in(&c, TIDE_F32, DIMS(4), (const float[]){1, 2, 3, 4});
    case_omit(&c);
    case_in(&c, TIDE_F32, DIMS(1), (const float[]){0.5f});
    case_int(&c, "antialias", 1);
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "antialias");
}

/// Preparation without memory: an error that names the node, nothing kept, and the next attempt works.
static void test_resize_without_memory(void **state) {
    (void)state;
    const tide_op_def *const def = tide_op_find("", "Resize", 13);
    const float data[2] = {1, 2}, scales[1] = {2};
    const int64_t two = 2, one = 1, four = 4;
    float room[4];
    const tide_node node = {.name = (char[]){"up"}, .op_type = (char[]){"Resize"}, .opset = 13};
    const tide_operand in[] = {
        {.dtype = TIDE_F32, .shape = tide_shape_make(1, &two), .data = memcpy(room, data, sizeof data)},
        {.dtype = TIDE_DTYPE_UNDEFINED},
        {.dtype = TIDE_F32, .shape = tide_shape_make(1, &one), .data = memcpy(room + 2, scales, sizeof scales)}};
    const tide_operand out = {.dtype = TIDE_F32, .shape = tide_shape_make(1, &four)};
    const tide_prepare x = {.node = &node, .in = in, .n_in = 3, .out = &out, .n_out = 1};
    tide_kernel k = {.def = def, .node = &node};
    tide_error err = TIDE_ERROR_INIT;
    tide_host_fail_after(0);
    const tide_status st = def->prepare(&x, &k, &err);
    tide_host_fail_after(-1);
    assert_int_equal(st, TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "'up'");
    assert_null(k.state);
    assert_tide_ok(def->prepare(&x, &k, &err), &err);
    def->destroy(&k);
}

// ---- tidemark.Opaque ----

static void test_opaque_is_planned_only(void **state) {
    (void)state;
    op_case c = case_begin("Opaque", 1);
    c.domain = "tidemark";
    case_open(&c, TIDE_F32, DIMS(2));
    case_ints(&c, "tide_dtypes", DIMS(TIDE_F32, TIDE_I64, TIDE_BOOL));
    case_ints(&c, "tide_shapes", DIMS(2, 10, 20, 0, 1, 7));
    assert_tide_ok(case_try(&c, 3), &c.err);
    char text[192];
    assert_string_equal(tide_shape_format(&case_out(&c, 0)->shape, text, sizeof text), "[10x20]");
    assert_string_equal(tide_shape_format(&case_out(&c, 1)->shape, text, sizeof text), "[]");
    assert_string_equal(tide_shape_format(&case_out(&c, 2)->shape, text, sizeof text), "[7]");
    assert_int_equal(case_out(&c, 2)->dtype, TIDE_BOOL);
    assert_null(case_out(&c, 0)->constant);
    case_end(&c);

    static const int64_t bad_shapes[][4] = {{2, 10, 20, 3}, {3, 1, 2, 3}, {9, 0, 0, 0}, {1, -5, 0, 0}};
    for (size_t i = 0; i < sizeof bad_shapes / sizeof *bad_shapes; i++) {
        c = case_begin("Opaque", 1);
        c.domain = "tidemark";
        case_ints(&c, "tide_dtypes", DIMS(TIDE_F32, TIDE_F32));
        case_ints(&c, "tide_shapes", 4, bad_shapes[i]);
        assert_int_not_equal(case_try(&c, 2), TIDE_OK);
        assert_text_has(c.err.msg, "the_node");
        case_end(&c);
    }
    c = case_begin("Opaque", 1);
    c.domain = "tidemark";
    case_ints(&c, "tide_dtypes", DIMS(8)); // string
    case_ints(&c, "tide_shapes", DIMS(0));
    case_refused(&c, TIDE_ERR_BAD_INPUT, "element type 8");
}

// ---- what the table says of every operator ----

enum { ROWS = 3, COLS = 5, N = ROWS * COLS };

/// Operands of one dtype with room for any: [3x5] each, small positive numbers.
typedef struct trial {
    double bytes[4][N]; ///< three inputs, one output
    tide_operand in[3];
    tide_operand out[2];
    tide_node node;
    uint32_t outputs[2];
} trial;

static void trial_init(trial *t, const tide_op_def *def, tide_dtype dtype) {
    const int64_t dims[] = {ROWS, COLS};
    memset(t, 0, sizeof *t);
    t->outputs[1] = TIDE_NO_VALUE;
    t->node = (tide_node){
        .name = (char[]){"n"}, .op_type = (char[]){"o"}, .opset = def->since, .def = def, .outputs = t->outputs};
    for (int k = 0; k < 3; k++) {
        t->in[k] = (tide_operand){.dtype = dtype,
                                  .shape = tide_shape_make(2, dims),
                                  .data = t->bytes[k],
                                  .size_bytes = N * tide_dtype_size(dtype)};
        for (int i = 0; i < N; i++) tide_data_store_f64(dtype, t->bytes[k], i, 1 + (i * 7 + k * 3) % 5);
    }
}

/// Run `def` with output 0 in `where`. @return false when it does not serve these operands
static bool trial_run(trial *t, const tide_op_def *def, size_t n_in, void *where) {
    const tide_infer x = {.node = &t->node, .in = t->in, .n_in = n_in, .out = t->out, .n_out = 1};
    if (def->prepare != NULL || def->infer(&x, NULL) != TIDE_OK) return false;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_shape_bytes(&t->out[0].shape, t->out[0].dtype, &t->out[0].size_bytes, &err), &err);
    t->out[0].data = where;
    const tide_kernel k = {.def = def, .node = &t->node};
    const tide_kernel_args args = {.in = t->in, .n_in = n_in, .out = t->out, .n_out = 1};
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    assert_tide_ok(def->run(&k, &args, &err), &err);
    tide_host_get_stats(&after);
    assert_int_equal(before.n_allocs, after.n_allocs); // LT-31: kernels never allocate
    return true;
}

/// Operators that say "output 0 may overwrite input i" give the same bytes when it does.
static void test_inplace_flags_are_true(void **state) {
    (void)state;
    static const tide_dtype dtypes[] = {TIDE_F32, TIDE_F64, TIDE_F16, TIDE_I8, TIDE_I32, TIDE_I64, TIDE_U8, TIDE_BOOL};
    const tide_op_def *const *table;
    const size_t n_rows = tide_op_table(&table);
    static trial plain, placed;
    int n_tried = 0;
    for (size_t r = 0; r < n_rows; r++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            const tide_op_def *const def = table[r];
            const size_t n_in = def->max_inputs == 0 || def->max_inputs > 3 ? 3 : def->max_inputs;
            if (def->inplace_inputs == 0 || def->run == NULL || n_in > 3) continue;
            if (strncmp(def->name, "Scatter", 7) == 0) continue; // wants indices: see test_inplace
            for (size_t i = 0; i < n_in; i++) {
                if ((def->inplace_inputs >> i & 1u) == 0) continue;
                trial_init(&plain, def, dtypes[d]);
                trial_init(&placed, def, dtypes[d]);
                if (strcmp(def->name, "Where") == 0) plain.in[0].dtype = placed.in[0].dtype = TIDE_BOOL;
                if (!trial_run(&plain, def, n_in, plain.bytes[3])) continue;
                if (plain.out[0].size_bytes != tide_dtype_size(plain.in[i].dtype) * N) continue;
                assert_true(trial_run(&placed, def, n_in, placed.bytes[i]));
                if (memcmp(plain.bytes[3], placed.bytes[i], plain.out[0].size_bytes) != 0)
                    fail_msg("%s on %s: in place of input %zu the result differs", def->name,
                             tide_dtype_name(dtypes[d]), i);
                n_tried++;
            }
        }
    assert_true(n_tried > 150);
}

/// The same value at several inputs, and all of it overwritten.
static void test_inplace_with_repeated_input(void **state) {
    (void)state;
    static const char *const names[] = {"Sum", "Max", "Mean", "Add", "Mul"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tide_op_def *const def = tide_op_find("", names[i], 13);
        static trial plain, placed;
        const size_t n_in = def->max_inputs == 0 ? 3 : 2;
        trial_init(&plain, def, TIDE_F32);
        trial_init(&placed, def, TIDE_F32);
        plain.in[n_in - 1].data = plain.bytes[0];
        placed.in[n_in - 1].data = placed.bytes[0];
        assert_true(trial_run(&plain, def, n_in, plain.bytes[3]));
        assert_true(trial_run(&placed, def, n_in, placed.bytes[0]));
        assert_memory_equal(plain.bytes[3], placed.bytes[0], N * sizeof(float));
    }
}

static void test_views_leave_bytes_alone(void **state) {
    (void)state;
    static const char *const names[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int opset = 7; opset <= 21; opset++) {
            const tide_op_def *const def = tide_op_find("", names[i], opset);
            assert_non_null(def);
            assert_true((def->flags & TIDE_OP_VIEW) != 0);
            float data[4] = {1, 2, 3, 4}, copy[4] = {0};
            const int64_t n = 4;
            tide_node node = {.name = (char[]){"n"}, .op_type = (char[]){"o"}, .opset = opset};
            const tide_operand in = {
                .dtype = TIDE_F32, .shape = tide_shape_make(1, &n), .data = data, .size_bytes = sizeof data};
            tide_operand out = in;
            const tide_kernel k = {.def = def, .node = &node};
            const tide_kernel_args args = {.in = &in, .n_in = 1, .out = &out, .n_out = 1};
            assert_tide_status(def->run(&k, &args, NULL), TIDE_OK); // as an alias
            out.data = copy;
            assert_tide_status(def->run(&k, &args, NULL), TIDE_OK); // with a place of its own
            assert_memory_equal(copy, data, sizeof data);
        }
}

/// Every operator of this list is served at every opset from 7 (or its first) to 21, by exactly one row.
static void test_opsets_have_one_row(void **state) {
    (void)state;
    const tide_op_def *const *table;
    const size_t n_rows = tide_op_table(&table);
    for (size_t r = 0; r < n_rows; r++)
        for (int opset = 7; opset <= 21; opset++) {
            int n = 0;
            for (size_t o = 0; o < n_rows; o++)
                n += strcmp(table[r]->name, table[o]->name) == 0 && strcmp(table[r]->domain, table[o]->domain) == 0 &&
                     table[o]->since <= opset && (table[o]->until == 0 || opset <= table[o]->until);
            if (n > 1) fail_msg("%s: %d rows serve opset %d", table[r]->name, n, opset);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_bad_index_is_named),
        tide_unit_test(test_scattered_numbers_that_are_none),
        tide_unit_test(test_negative_index_counts_from_end),
        tide_unit_test(test_empty_tensors),
        tide_unit_test(test_axes_attribute_and_operand),
        tide_unit_test(test_slice_and_pad_variants),
        tide_unit_test(test_split_variants),
        tide_unit_test(test_dropout_is_identity),
        tide_unit_test(test_unknown_size_is_never_guessed),
        tide_unit_test(test_shape_reads_no_data),
        tide_unit_test(test_bad_shapes_are_refused),
        tide_unit_test(test_integer_division),
        tide_unit_test(test_integers_wrap),
        tide_unit_test(test_cast_corners),
        tide_unit_test(test_half_round_trip),
        tide_unit_test(test_nan_wins_in_max),
        tide_unit_test(test_add_fuses_activation),
        tide_unit_test(test_resize_of_opset_10),
        tide_unit_test(test_resize_align_corners),
        tide_unit_test(test_resize_all_axes),
        tide_unit_test(test_resize_without_memory),
        tide_unit_test(test_opaque_is_planned_only),
        tide_unit_test(test_inplace_flags_are_true),
        tide_unit_test(test_inplace_with_repeated_input),
        tide_unit_test(test_views_leave_bytes_alone),
        tide_unit_test(test_opsets_have_one_row),
    };
    return cmocka_run_group_tests_name("data_ops", tests, NULL, NULL);
}
