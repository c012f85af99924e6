// SPDX-License-Identifier: MIT
//
// Recurrent and quantised operators and losses, where ONNX's own cases (tests/cli/conformance.py) do not go: nothing to
// work on, both directions against each other, numbers that do not fit, bad attributes and data.
#include "tests/ops/data_case.h"

#include <math.h>

// ---- RNN, GRU, LSTM ----

enum { SEQ = 3, BATCH = 2, IN = 2, HIDDEN = 2, GATES = 4 };

static float weight(size_t i) { return (float)((int)(i * 7 % 11) - 5) / 8; }

static const float *weights(void) {
    static float w[64];
    for (size_t i = 0; i < 64; i++) w[i] = weight(i);
    return w;
}

/// Inputs X, W, R of an LSTM with `d` directions over a sequence of `seq`.
static op_case lstm(int64_t seq, int64_t batch, int64_t d, const float *x) {
    op_case c = case_begin("LSTM", 14);
    case_in(&c, TIDE_F32, DIMS(seq, batch, IN), x);
    case_in(&c, TIDE_F32, DIMS(d, GATES * HIDDEN, IN), weights());
    case_in(&c, TIDE_F32, DIMS(d, GATES * HIDDEN, HIDDEN), weights() + 16);
    return c;
}

static void test_sequences_of_nothing(void **state) {
    (void)state;
    static const float before[] = {1, 2, 3, 4};
    op_case c = lstm(SEQ, 0, 1, NULL);
    case_want(&c, TIDE_F32, DIMS(SEQ, 1, 0, HIDDEN), NULL);

    // Without a step the state stays what it was.
    c = lstm(0, BATCH, 1, NULL);
    case_omit(&c);
    case_omit(&c);
    case_in(&c, TIDE_F32, DIMS(1, BATCH, HIDDEN), before);
    case_in(&c, TIDE_F32, DIMS(1, BATCH, HIDDEN), before);
    assert_tide_ok(case_try(&c, 3), &c.err);
    for (size_t o = 1; o < 3; o++) assert_memory_equal(tide_tensor_const_data(case_out(&c, o)->constant), before, 16);
    case_end(&c);

    c = lstm(SEQ, BATCH, 1, weights()); // a sequence of length 0 beside one of 2
    case_omit(&c);
    case_in(&c, TIDE_I32, DIMS(BATCH), (const int32_t[]){0, 2});
    assert_tide_ok(case_try(&c, 2), &c.err);
    const float *y = tide_tensor_const_data(case_out(&c, 0)->constant);
    const float *last = tide_tensor_const_data(case_out(&c, 1)->constant);
    for (int t = 0; t < SEQ; t++)
        for (int i = 0; i < HIDDEN; i++) {
            assert_true(y[(t * BATCH + 0) * HIDDEN + i] == 0);
            assert_true((y[(t * BATCH + 1) * HIDDEN + i] == 0) == (t == 2));
        }
    for (int i = 0; i < HIDDEN; i++) {
        assert_true(last[i] == 0);
        assert_true(last[HIDDEN + i] == y[(1 * BATCH + 1) * HIDDEN + i]);
    }
    case_end(&c);
}

/// A bound, or an activation that compares, makes no number of what is none.
static void test_what_is_no_number_stays_so(void **state) {
    (void)state;
    static const char *const names[] = {"Relu", "ThresholdedRelu", "HardSigmoid", "LeakyRelu", "Elu", "Tanh"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int clips = 0; clips < 2; clips++) {
            op_case c = case_begin("RNN", 14);
            case_in(&c, TIDE_F32, DIMS(1, 1, 1), &(float){NAN});
            case_in(&c, TIDE_F32, DIMS(1, 1, 1), &(float){1});
            case_in(&c, TIDE_F32, DIMS(1, 1, 1), &(float){1});
            case_string(&c, "direction", "forward");
            tide_attr *a = case_attr(&c, "activations", TIDE_ATTR_STRINGS);
            a->n = 1;
            a->strings = tide_host_calloc(1, sizeof *a->strings);
            a->strings[0] = tide_host_strdup(names[i]);
            if (clips) case_float(&c, "clip", 0.5f);
            assert_tide_ok(case_try(&c, 1), &c.err);
            if (!isnan(*(const float *)tide_tensor_const_data(case_out(&c, 0)->constant)))
                fail_msg("%s%s hides NaN", names[i], clips ? " with clip" : "");
            case_end(&c);
        }
}

/// The first output of an LSTM in one direction, over X as it is or turned round.
static void one_way(const char *direction, bool turned, float *out) {
    float x[SEQ * BATCH * IN];
    for (int t = 0; t < SEQ; t++)
        memcpy(x + t * BATCH * IN, weights() + 40 + (turned ? SEQ - 1 - t : t) * BATCH * IN, BATCH * IN * sizeof *x);
    op_case c = lstm(SEQ, BATCH, 1, x);
    case_string(&c, "direction", direction);
    assert_tide_ok(case_try(&c, 1), &c.err);
    memcpy(out, tide_tensor_const_data(case_out(&c, 0)->constant), SEQ * BATCH * HIDDEN * sizeof *out);
    case_end(&c);
}

static void test_a_reversed_sequence_backwards(void **state) {
    (void)state;
    enum { ROW = BATCH * HIDDEN };
    float forward[SEQ * ROW], backward[SEQ * ROW];
    one_way("forward", false, forward);
    one_way("reverse", true, backward);
    for (int t = 0; t < SEQ; t++) assert_memory_equal(forward + t * ROW, backward + (SEQ - 1 - t) * ROW, ROW * 4);
    assert_true(memcmp(forward, forward + ROW, ROW * 4) != 0);
}

static void test_layouts_say_the_same(void **state) {
    (void)state;
    float by_step[SEQ * BATCH * HIDDEN], x[SEQ * BATCH * IN];
    one_way("forward", false, by_step);
    for (int t = 0; t < SEQ; t++)
        for (int b = 0; b < BATCH; b++)
            memcpy(x + (b * SEQ + t) * IN, weights() + 40 + (t * BATCH + b) * IN, IN * sizeof *x);
    op_case c = case_begin("LSTM", 14);
    case_in(&c, TIDE_F32, DIMS(BATCH, SEQ, IN), x);
    case_in(&c, TIDE_F32, DIMS(1, GATES * HIDDEN, IN), weights());
    case_in(&c, TIDE_F32, DIMS(1, GATES * HIDDEN, HIDDEN), weights() + 16);
    case_int(&c, "layout", 1);
    assert_tide_ok(case_try(&c, 1), &c.err);
    const float *y = tide_tensor_const_data(case_out(&c, 0)->constant);
    for (int t = 0; t < SEQ; t++)
        for (int b = 0; b < BATCH; b++)
            assert_memory_equal(y + (b * SEQ + t) * HIDDEN, by_step + (t * BATCH + b) * HIDDEN, HIDDEN * 4);
    case_end(&c);
}

static void test_what_no_recurrent_node_may_say(void **state) {
    (void)state;
    op_case c = lstm(SEQ, BATCH, 1, weights());
    case_int(&c, "hidden_size", 3);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "hidden_size is 3, R has 2");
    c = lstm(SEQ, BATCH, 1, weights());
    case_string(&c, "direction", "sideways");
    case_refused(&c, TIDE_ERR_BAD_INPUT, "sideways");
    c = lstm(SEQ, BATCH, 1, weights());
    case_string(&c, "direction", "bidirectional");
    case_refused(&c, TIDE_ERR_BAD_INPUT, "[2x8x2]");
    c = lstm(SEQ, BATCH, 1, weights());
    case_omit(&c);
    case_in(&c, TIDE_I32, DIMS(BATCH), (const int32_t[]){1, SEQ + 1});
    case_refused(&c, TIDE_ERR_RUNTIME, "sequence_lens[1] is 4");
    c = lstm(SEQ, BATCH, 1, weights());
    case_omit(&c);
    case_in(&c, TIDE_I32, DIMS(BATCH), (const int32_t[]){-1, 0});
    case_refused(&c, TIDE_ERR_RUNTIME, "sequence_lens[0] is -1");
    for (int i = 0; i < 3; i++) {
        c = lstm(SEQ, BATCH, 1, weights());
        case_float(&c, "clip", (const float[]){0, -1, NAN}[i]);
        case_refused(&c, TIDE_ERR_BAD_INPUT, "must be above 0");
    }
    c = case_begin("GRU", 7);
    case_in(&c, TIDE_F32, DIMS(SEQ, IN), weights());
    case_in(&c, TIDE_F32, DIMS(1, 6, IN), weights());
    case_in(&c, TIDE_F32, DIMS(1, 6, HIDDEN), weights());
    case_refused(&c, TIDE_ERR_BAD_INPUT, "X");
}

// ---- quantised numbers ----

static void test_numbers_that_do_not_fit_saturate(void **state) {
    (void)state;
    static const float x[] = {NAN, INFINITY, -INFINITY, 2.5f, 3.5f, -2.5f, 1e30f, 254.4f};
    op_case c = case_begin("QuantizeLinear", 13);
    case_in(&c, TIDE_F32, DIMS(8), x);
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_want(&c, TIDE_U8, DIMS(8), (const uint8_t[]){0, 255, 0, 2, 4, 0, 255, 254});
    c = case_begin("QuantizeLinear", 13);
    case_in(&c, TIDE_F32, DIMS(8), x);
    case_in(&c, TIDE_F32, DIMS(1), &(float){1});
    case_in(&c, TIDE_I8, DIMS0, &(int8_t){1});
    case_want(&c, TIDE_I8, DIMS(8), (const int8_t[]){-128, 127, -128, 3, 5, -1, 127, 127});
    c = case_begin("DequantizeLinear", 13); // no float is 2^31 - 1
    case_in(&c, TIDE_I32, DIMS(2), (const int32_t[]){INT32_MAX, INT32_MIN});
    case_in(&c, TIDE_F32, DIMS0, &(float){0.5f});
    case_in(&c, TIDE_I32, DIMS0, &(int32_t){INT32_MAX});
    case_want(&c, TIDE_F32, DIMS(2), (const float[]){0, -2147483647.5f});
}

static void test_one_scale_for_each_index(void **state) {
    (void)state;
    static const int8_t q[] = {1, 2, 3, 4, 5, 6};
    op_case c = case_begin("DequantizeLinear", 13);
    case_in(&c, TIDE_I8, DIMS(2, 3), q);
    case_in(&c, TIDE_F32, DIMS(3), (const float[]){1, 10, 100});
    case_in(&c, TIDE_I8, DIMS(3), (const int8_t[]){0, 1, 2});
    case_int(&c, "axis", -1);
    case_want(&c, TIDE_F32, DIMS(2, 3), (const float[]){1, 10, 100, 4, 40, 400});
    c = case_begin("DequantizeLinear", 13);
    case_in(&c, TIDE_I8, DIMS(2, 3), q);
    case_in(&c, TIDE_F32, DIMS(2), (const float[]){1, 10});
    case_int(&c, "axis", 0);
    case_want(&c, TIDE_F32, DIMS(2, 3), (const float[]){1, 2, 3, 40, 50, 60});
    c = case_begin("DequantizeLinear", 13);
    case_in(&c, TIDE_I8, DIMS(2, 3), q);
    case_in(&c, TIDE_F32, DIMS(2), (const float[]){1, 10});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "'scale' has 2 elements, axis 1 has 3");
    c = case_begin("DequantizeLinear", 10);
    case_in(&c, TIDE_I8, DIMS(0, 3), NULL);
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_want(&c, TIDE_F32, DIMS(0, 3), NULL);
}

static op_case of_opset(const char *op, int opset, tide_dtype dtype, const void *x) {
    op_case c = case_begin(op, opset);
    case_in(&c, dtype, DIMS(2, 3), x);
    return c;
}

/// From opset 21 on the node may say itself what comes out, and scales may be shared by a few indices of an axis.
static void test_types_and_blocks_of_opset_21(void **state) {
    (void)state;
    static const float x[] = {-300, -1, 0, 1, 2, 300};
    static const int8_t q[] = {1, 2, 3, 4, 5, 6};
    op_case c = of_opset("QuantizeLinear", 21, TIDE_F32, x);
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_int(&c, "output_dtype", TIDE_I8);
    case_want(&c, TIDE_I8, DIMS(2, 3), (const int8_t[]){-128, -1, 0, 1, 2, 127});
    c = of_opset("QuantizeLinear", 21, TIDE_F32, x);
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_in(&c, TIDE_U8, DIMS0, &(uint8_t){1});
    case_int(&c, "output_dtype", TIDE_I8);
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "output_dtype is 3");
    c = of_opset("QuantizeLinear", 21, TIDE_F32, x);
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_int(&c, "output_dtype", TIDE_U16);
    case_want(&c, TIDE_U16, DIMS(2, 3), (const uint16_t[]){0, 0, 0, 1, 2, 300});
    c = of_opset("QuantizeLinear", 21, TIDE_F32, x);
    case_in(&c, TIDE_F32, DIMS0, &(float){0.005f});
    case_in(&c, TIDE_I16, DIMS0, &(int16_t){-7});
    case_want(&c, TIDE_I16, DIMS(2, 3), (const int16_t[]){-32768, -207, -7, 193, 393, 32767});
    c = of_opset("DequantizeLinear", 21, TIDE_U16, (const uint16_t[]){0, 1, 255, 256, 65534, 65535});
    case_in(&c, TIDE_F32, DIMS0, &(float){2});
    case_in(&c, TIDE_U16, DIMS0, &(uint16_t){65535});
    case_want(&c, TIDE_F32, DIMS(2, 3), (const float[]){-131070, -131068, -130560, -130558, -2, 0});
    c = of_opset("QuantizeLinear", 21, TIDE_F32, x);
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_int(&c, "output_dtype", 21); // uint4
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "output_dtype is 21");
    c = of_opset("DequantizeLinear", 23, TIDE_I8, q);
    case_in(&c, TIDE_F32, DIMS0, &(float){1});
    case_int(&c, "output_dtype", TIDE_F16);
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "output_dtype is 10");
    for (int axis = 0; axis < 2; axis++) { // columns by two: the last block is shorter
        c = of_opset("DequantizeLinear", 21, TIDE_I8, q);
        case_in(&c, TIDE_F32, DIMS(axis == 0 ? 1 : 2, axis == 0 ? 3 : 2), (const float[]){1, 10, 100, 1000});
        case_in(&c, TIDE_I8, DIMS(axis == 0 ? 1 : 2, axis == 0 ? 3 : 2), (const int8_t[]){0, 1, 0, 1});
        case_int(&c, "axis", axis);
        case_int(&c, "block_size", 2);
        if (axis == 0) case_want(&c, TIDE_F32, DIMS(2, 3), (const float[]){1, 10, 300, 4, 40, 600});
        if (axis == 1) case_want(&c, TIDE_F32, DIMS(2, 3), (const float[]){1, 2, 20, 400, 500, 5000});
    }
    c = of_opset("DequantizeLinear", 21, TIDE_I8, q);
    case_in(&c, TIDE_F32, DIMS(2, 3), (const float[6]){0});
    case_int(&c, "block_size", 2);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "scale is [2x3], must be [2x2]");
    c = of_opset("DequantizeLinear", 21, TIDE_I8, q);
    case_in(&c, TIDE_F32, DIMS(1), (const float[6]){0}); // one scale, of which it would not matter
    case_int(&c, "block_size", INT64_MIN);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "block_size is -9223372036854775808");
}

static void test_a_range_without_extent(void **state) {
    (void)state;
    static const float zeros[3] = {0};
    for (int64_t n = 0; n <= 3; n += 3) {
        op_case c = case_begin("DynamicQuantizeLinear", 11);
        case_in(&c, TIDE_F32, DIMS(n), zeros);
        assert_tide_ok(case_try(&c, 3), &c.err);
        assert_true(*(const float *)tide_tensor_const_data(case_out(&c, 1)->constant) == 1);
        assert_true(*(const uint8_t *)tide_tensor_const_data(case_out(&c, 2)->constant) == 0);
        case_end(&c);
    }
}

// ---- losses ----

static op_case loss_of(const char *op, int64_t n, const float *x, const int64_t *target, const char *reduction) {
    op_case c = case_begin(op, 13);
    case_in(&c, TIDE_F32, DIMS(n, 2), x);
    case_in(&c, TIDE_I64, DIMS(n), target);
    case_string(&c, "reduction", reduction);
    return c;
}

static void test_losses_of_no_class(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4};
    op_case c = loss_of("NegativeLogLikelihoodLoss", 2, x, (const int64_t[]){0, 2}, "sum");
    case_refused(&c, TIDE_ERR_RUNTIME, "target 2 is outside of 2 classes");
    c = loss_of("SoftmaxCrossEntropyLoss", 2, x, (const int64_t[]){0, -1}, "none");
    case_refused(&c, TIDE_ERR_RUNTIME, "target -1 is outside of 2 classes");
    c = loss_of("NegativeLogLikelihoodLoss", 2, x, (const int64_t[]){0, 1}, "median");
    case_refused(&c, TIDE_ERR_BAD_INPUT, "median");
    c = loss_of("NegativeLogLikelihoodLoss", 2, x, (const int64_t[]){7, 1}, "sum");
    case_int(&c, "ignore_index", 7);
    case_want(&c, TIDE_F32, DIMS0, &(float){-4});
    c = loss_of("NegativeLogLikelihoodLoss", 0, NULL, NULL, "sum");
    case_want(&c, TIDE_F32, DIMS0, &(float){0});
    c = loss_of("NegativeLogLikelihoodLoss", 2, x, (const int64_t[]){7, 7}, "mean"); // the mean of nothing
    case_int(&c, "ignore_index", 7);
    assert_tide_ok(case_try(&c, 1), &c.err);
    assert_true(isnan(*(const float *)tide_tensor_const_data(case_out(&c, 0)->constant)));
    case_end(&c);
}

/// Beside an infinite number no class has a probability, nor where all are none.
static void test_losses_of_infinite_numbers(void **state) {
    (void)state;
    static const float rows[][2] = {{INFINITY, 1}, {-INFINITY, -INFINITY}, {NAN, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        op_case c = loss_of("SoftmaxCrossEntropyLoss", 1, rows[i], (const int64_t[]){1}, "none");
        assert_tide_ok(case_try(&c, 2), &c.err);
        const float *logs = tide_tensor_const_data(case_out(&c, 1)->constant);
        assert_true(isnan(*(const float *)tide_tensor_const_data(case_out(&c, 0)->constant)));
        assert_true(isnan(logs[0]) && isnan(logs[1]));
        case_end(&c);
    }
}

// ---- small ones ----

static op_case one_of(const char *op, int opset, int32_t rank, const int64_t *dims, const float *x) {
    op_case c = case_begin(op, opset);
    case_in(&c, TIDE_F32, rank, dims, x);
    return c;
}

static void test_matrices_without_much_in_them(void **state) {
    (void)state;
    op_case c = one_of("Det", 11, DIMS(2, 0, 0), NULL);
    case_want(&c, TIDE_F32, DIMS(2), (const float[]){1, 1});
    c = one_of("Det", 11, DIMS(0, 2, 2), NULL);
    case_want(&c, TIDE_F32, DIMS(0), NULL);
    c = one_of("Det", 11, DIMS(3, 3), (const float[]){0, 1, 2, 3, 4, 5, 6, 7, 8}); // singular, with a 0 in front
    case_want(&c, TIDE_F32, DIMS0, &(float){0});
    c = one_of("Det", 11, DIMS(2, 2), (const float[]){0, 2, 3, 0}); // rows change places
    case_want(&c, TIDE_F32, DIMS0, &(float){-6});
    c = one_of("Det", 11, DIMS(2, 3), (const float[]){0, 1, 2, 3, 4, 5});
    case_refused(&c, TIDE_ERR_BAD_INPUT, "2 by 3");
    for (int i = 0; i < 4; i++) {
        static const int64_t far_away[] = {INT64_MIN, INT64_MAX, -2, 3};
        c = one_of("EyeLike", 9, DIMS(2, 3), NULL);
        case_int(&c, "k", far_away[i]);
        case_want(&c, TIDE_F32, DIMS(2, 3), (const float[6]){0});
    }
    c = one_of("EyeLike", 9, DIMS(2, 3), NULL);
    case_int(&c, "k", -1);
    case_int(&c, "dtype", TIDE_I64);
    case_want(&c, TIDE_I64, DIMS(2, 3), (const int64_t[]){0, 0, 0, 1, 0, 0});
    c = one_of("EyeLike", 9, DIMS(2, 3), NULL);
    case_int(&c, "dtype", 8); // strings
    case_refused(&c, TIDE_ERR_NOT_IMPLEMENTED, "dtype 8");
}

static void test_rows_without_much_in_them(void **state) {
    (void)state;
    op_case c = one_of("Hardmax", 13, DIMS(2, 0), NULL);
    case_want(&c, TIDE_F32, DIMS(2, 0), NULL);
    c = one_of("Hardmax", 13, DIMS(2, 3), (const float[]){1, 3, 3, 0, 0, 0}); // the first of equals
    case_want(&c, TIDE_F32, DIMS(2, 3), (const float[]){0, 1, 0, 1, 0, 0});
    c = one_of("Hardmax", 11, DIMS(1, 2, 2), (const float[]){1, 3, 5, 0}); // before opset 13: one row of four
    case_want(&c, TIDE_F32, DIMS(1, 2, 2), (const float[]){0, 0, 1, 0});
    c = one_of("ReverseSequence", 10, DIMS(3, 2), (const float[]){0, 1, 2, 3, 4, 5});
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){0, 3});
    case_want(&c, TIDE_F32, DIMS(3, 2), (const float[]){0, 5, 2, 3, 4, 1});
    c = one_of("ReverseSequence", 10, DIMS(3, 2), (const float[]){0, 1, 2, 3, 4, 5});
    case_in(&c, TIDE_I64, DIMS(2), (const int64_t[]){1, 4});
    case_refused(&c, TIDE_ERR_RUNTIME, "sequence_lens[1] is 4");
    c = one_of("Shrink", 9, DIMS(5), (const float[]){-2, -1, 0, 1, 2});
    case_float(&c, "lambd", 1);
    case_float(&c, "bias", 0.5f);
    case_want(&c, TIDE_F32, DIMS(5), (const float[]){-1.5f, 0, 0, 0, 1.5f});
    c = case_begin("Shrink", 9); // 2.9, -2.9 and what is more than a byte: cut off
    case_in(&c, TIDE_I8, DIMS(4), (const int8_t[]){3, -3, 0, -128});
    case_float(&c, "bias", 0.1f);
    case_want(&c, TIDE_I8, DIMS(4), (const int8_t[]){2, -2, 0, -127});
}

static void test_shifts_past_the_last_bit(void **state) {
    (void)state;
    static const char *const ways[] = {"LEFT", "RIGHT", "UP"};
    static const uint8_t want[2][4] = {{0x81, 2, 0, 0}, {0x81, 0x40, 1, 0}};
    for (int i = 0; i < 3; i++) {
        op_case c = case_begin("BitShift", 11);
        case_in(&c, TIDE_U8, DIMS(4), (const uint8_t[]){0x81, 0x81, 0x81, 0x81});
        case_in(&c, TIDE_U8, DIMS(4), i == 0 ? (const uint8_t[]){0, 1, 8, 255} : (const uint8_t[]){0, 1, 7, 255});
        case_string(&c, "direction", ways[i]);
        if (i < 2)
            case_want(&c, TIDE_U8, DIMS(4), want[i]);
        else
            case_refused(&c, TIDE_ERR_BAD_INPUT, "'UP' is neither");
    }
}

/// Before opset 7 the second operand has extents of the first that follow each other.
static void test_broadcasting_of_old(void **state) {
    (void)state;
    static const float x[] = {0, 1, 2, 3, 4, 5}, two[] = {10, 20};
    op_case c = one_of("Add", 6, DIMS(2, 3), x);
    case_in(&c, TIDE_F32, DIMS(2), two);
    case_int(&c, "broadcast", 1);
    case_int(&c, "axis", 0);
    case_want(&c, TIDE_F32, DIMS(2, 3), (const float[]){10, 11, 12, 23, 24, 25});
    c = one_of("Sub", 6, DIMS(3, 2), x); // the last axes without one
    case_in(&c, TIDE_F32, DIMS(2), two);
    case_int(&c, "broadcast", 1);
    case_want(&c, TIDE_F32, DIMS(3, 2), (const float[]){-10, -19, -8, -17, -6, -15});
    c = one_of("Mul", 6, DIMS(3, 2), x);
    case_in(&c, TIDE_F32, DIMS(2), two);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "broadcast 0");
    c = one_of("Mul", 6, DIMS(2, 3), x);
    case_in(&c, TIDE_F32, DIMS(2), two);
    case_int(&c, "broadcast", 1);
    case_int(&c, "axis", -5);
    case_refused(&c, TIDE_ERR_BAD_INPUT, "axis -5");
    c = one_of("PRelu", 6, DIMS(1, 2, 3), (const float[]){-1, -1, 1, -1, -1, 1}); // a slope for each channel
    case_in(&c, TIDE_F32, DIMS(2), two);
    case_want(&c, TIDE_F32, DIMS(1, 2, 3), (const float[]){-10, -10, 1, -20, -20, 1});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_sequences_of_nothing),
        tide_unit_test(test_what_is_no_number_stays_so),
        tide_unit_test(test_a_reversed_sequence_backwards),
        tide_unit_test(test_layouts_say_the_same),
        tide_unit_test(test_what_no_recurrent_node_may_say),
        tide_unit_test(test_numbers_that_do_not_fit_saturate),
        tide_unit_test(test_one_scale_for_each_index),
        tide_unit_test(test_types_and_blocks_of_opset_21),
        tide_unit_test(test_a_range_without_extent),
        tide_unit_test(test_losses_of_no_class),
        tide_unit_test(test_losses_of_infinite_numbers),
        tide_unit_test(test_matrices_without_much_in_them),
        tide_unit_test(test_rows_without_much_in_them),
        tide_unit_test(test_shifts_past_the_last_bit),
        tide_unit_test(test_broadcasting_of_old),
    };
    return cmocka_run_group_tests_name("operators of models", tests, NULL, NULL);
}
