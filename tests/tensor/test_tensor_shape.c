// SPDX-License-Identifier: MIT
//
// core/tensor: element types and shapes.
#include "core/base/text.h"
#include "core/tensor/dtype.h"
#include "tests/tide_test.h"

// S28-22: the table of types; the numbers are ONNX's.
static void types_have_names_and_sizes(void **state) {
    (void)state;
    static const struct {
        tide_dtype dtype;
        int value;
        const char *name;
        size_t bytes;
    } rows[] = {{TIDE_F32, 1, "float32", 4},  {TIDE_U8, 2, "uint8", 1},     {TIDE_I8, 3, "int8", 1},
                {TIDE_I32, 6, "int32", 4},    {TIDE_I64, 7, "int64", 8},    {TIDE_BOOL, 9, "bool", 1},
                {TIDE_F16, 10, "float16", 2}, {TIDE_F64, 11, "float64", 8}, {TIDE_BF16, 16, "bfloat16", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_dtype back = TIDE_DTYPE_UNDEFINED;
        assert_int_equal(rows[i].dtype, rows[i].value);
        assert_string_equal(tide_dtype_name(rows[i].dtype), rows[i].name);
        assert_int_equal(tide_dtype_size(rows[i].dtype), rows[i].bytes);
        assert_tide_status(tide_dtype_parse(rows[i].name, &back, NULL), TIDE_OK);
        assert_int_equal(back, rows[i].dtype);
    }
    assert_string_equal(tide_dtype_name(TIDE_DTYPE_UNDEFINED), "undefined");
    assert_int_equal(tide_dtype_size(TIDE_DTYPE_UNDEFINED), 0);
    assert_int_equal(tide_dtype_size((tide_dtype)8), 0); // ONNX strings have no fixed size
    tide_error err = TIDE_ERROR_INIT;
    tide_dtype kept = TIDE_I8;
    assert_tide_status(tide_dtype_parse("float", &kept, &err), TIDE_ERR_INVALID);
    assert_int_equal(kept, TIDE_I8);
    assert_text_has(err.hint, "float32");
}

static const int64_t BIG = INT64_C(1) << 33;
static const int64_t TOP = INT64_MAX;

// LT-15, S28-22: border shapes. Negative refused, any 0 gives 0, overflow refused.
static void border_shapes(void **state) {
    (void)state;
    const struct {
        int32_t rank;
        int64_t dims[TIDE_MAX_RANK];
        tide_status numel_status, bytes_status;
        int64_t numel;
    } rows[] = {
        {0, {0}, TIDE_OK, TIDE_OK, 1},
        {1, {0}, TIDE_OK, TIDE_OK, 0},
        {1, {1}, TIDE_OK, TIDE_OK, 1},
        {2, {0, 3}, TIDE_OK, TIDE_OK, 0},
        {1, {-1}, TIDE_ERR_INVALID, TIDE_ERR_INVALID, 0},
        {1, {-5}, TIDE_ERR_INVALID, TIDE_ERR_INVALID, 0},
        {2, {0, -1}, TIDE_ERR_INVALID, TIDE_ERR_INVALID, 0},
        {2, {-1, -1}, TIDE_ERR_INVALID, TIDE_ERR_INVALID, 0}, // the product would be 1
        {3, {INT64_MIN, 2, 2}, TIDE_ERR_INVALID, TIDE_ERR_INVALID, 0},
        {1, {TOP}, TIDE_OK, TIDE_ERR_OVERFLOW, TOP},
        {2, {TOP, 2}, TIDE_ERR_OVERFLOW, TIDE_ERR_OVERFLOW, 0},
        {2, {BIG, BIG}, TIDE_ERR_OVERFLOW, TIDE_ERR_OVERFLOW, 0}, // 0 when it wraps
        {3, {BIG, BIG, 0}, TIDE_OK, TIDE_OK, 0},
        {1, {TOP / 4}, TIDE_OK, TIDE_OK, TOP / 4},
        {1, {TOP / 4 + 1}, TIDE_OK, TIDE_ERR_OVERFLOW, TOP / 4 + 1},
        {8, {2, 2, 2, 2, 2, 2, 2, 2}, TIDE_OK, TIDE_OK, 256},
        {4, {1, 3, 224, 224}, TIDE_OK, TIDE_OK, 150528},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_shape s = tide_shape_make(rows[i].rank, rows[i].dims);
        tide_error err = TIDE_ERROR_INIT;
        int64_t numel = -7;
        size_t bytes = 7;
        assert_int_equal(tide_shape_numel(&s, &numel, &err), rows[i].numel_status);
        assert_true(numel == (rows[i].numel_status == TIDE_OK ? rows[i].numel : -7));
        assert_int_equal(tide_shape_bytes(&s, TIDE_F32, &bytes, &err), rows[i].bytes_status);
        assert_true(bytes == (rows[i].bytes_status == TIDE_OK ? 4 * (size_t)rows[i].numel : 7));
        char text[192];
        if (rows[i].bytes_status != TIDE_OK) assert_text_has(err.msg, tide_shape_format(&s, text, sizeof text));
    }
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape one = {0};
    const tide_shape damaged = {.rank = 9};
    size_t bytes = 7;
    int64_t numel;
    assert_tide_status(tide_shape_bytes(&one, TIDE_DTYPE_UNDEFINED, &bytes, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_shape_numel(&damaged, &numel, &err), TIDE_ERR_INVALID);
    assert_int_equal(bytes, 7);
}

static void strides_are_row_major(void **state) {
    (void)state;
    static const struct {
        int32_t rank;
        int64_t dims[TIDE_MAX_RANK], strides[TIDE_MAX_RANK];
    } rows[] = {{0, {0}, {0}},
                {1, {5}, {1}},
                {2, {3, 4}, {4, 1}},
                {3, {2, 3, 4}, {12, 4, 1}},
                {4, {1, 3, 224, 224}, {150528, 50176, 224, 1}},
                {3, {2, 1, 4}, {4, 4, 1}},
                {3, {2, 0, 4}, {4, 4, 1}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_shape s = tide_shape_make(rows[i].rank, rows[i].dims);
        int64_t strides[TIDE_MAX_RANK] = {0};
        tide_shape_strides(&s, strides);
        assert_memory_equal(strides, rows[i].strides, sizeof strides);
    }
    // Extents that do not fit together are legal beside a 0: no arithmetic may overflow.
    const int64_t wild[] = {0, INT64_MAX, INT64_MAX};
    const tide_shape s = tide_shape_make(3, wild);
    int64_t strides[TIDE_MAX_RANK];
    tide_shape_strides(&s, strides);
    assert_int_equal(strides[2], 1);
}

static void text_round_trips(void **state) {
    (void)state;
    static const struct {
        const char *text, *formatted;
    } rows[] = {{"", "[]"},
                {"7", "[7]"},
                {"1x3x224x224", "[1x3x224x224]"},
                {"?x3", "[?x3]"},
                {"0x5", "[0x5]"},
                {"9223372036854775807", "[9223372036854775807]"},
                {"1x2x3x4x5x6x7x8", "[1x2x3x4x5x6x7x8]"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_shape s;
        char buf[192];
        assert_tide_ok(tide_shape_parse(rows[i].text, &s, &err), &err);
        assert_string_equal(tide_shape_format(&s, buf, sizeof buf), rows[i].formatted);
        assert_true(tide_shape_known(&s) == (strchr(rows[i].text, '?') == NULL));
    }
    static const char *const bad[] = {"x",
                                      "1x",
                                      "x1",
                                      "1xx2",
                                      "-1",
                                      "1x-2",
                                      "a",
                                      "1 x 2",
                                      "1X2",
                                      "[1x2]",
                                      "1,2",
                                      "1x2.5",
                                      "9223372036854775808",
                                      "99999999999999999999",
                                      "1x2x3x4x5x6x7x8x9",
                                      "??",
                                      "1?"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_shape kept = {.rank = 5};
        if (tide_shape_parse(bad[i], &kept, &err) != TIDE_ERR_INVALID) fail_msg("'%s' was read as a shape", bad[i]);
        assert_int_equal(kept.rank, 5);
        assert_text_has(err.msg, bad[i]);
    }
}

/// The longest shape fits 192 bytes; any smaller buffer is filled and terminated, not overrun.
static void formatting_stays_in_its_buffer(void **state) {
    (void)state;
    int64_t dims[TIDE_MAX_RANK];
    for (int i = 0; i < TIDE_MAX_RANK; i++) dims[i] = INT64_MIN;
    const tide_shape s = tide_shape_make(TIDE_MAX_RANK, dims);
    char whole[192];
    assert_true(strlen(tide_shape_format(&s, whole, sizeof whole)) < sizeof whole - 1);
    assert_int_equal(whole[strlen(whole) - 1], ']');
    for (size_t room = 1; room < sizeof whole; room++) {
        char buf[193];
        memset(buf, '#', sizeof buf);
        tide_shape_format(&s, buf, room);
        assert_true(strlen(buf) < room);
        assert_memory_equal(buf, whole, strlen(buf));
        assert_int_equal(buf[room], '#');
    }
}

static void equality_looks_at_used_extents_only(void **state) {
    (void)state;
    tide_shape a = {.rank = 2, .dims = {3, 4, 99}}, b = {.rank = 2, .dims = {3, 4}};
    assert_true(tide_shape_equal(&a, &b));
    b.dims[1] = 5;
    assert_false(tide_shape_equal(&a, &b));
    b = (tide_shape){.rank = 3, .dims = {3, 4, 99}};
    assert_false(tide_shape_equal(&a, &b));
    const tide_shape unknown = {.rank = 2, .dims = {TIDE_DIM_UNKNOWN, 4}};
    assert_false(tide_shape_known(&unknown));
    assert_true(tide_shape_known(&a));
}

/// Counts against plain arithmetic in a wider type.
static void counts_against_wide_arithmetic(void **state) {
    (void)state;
    tide_rng rng = {15};
    int n_overflows = 0;
    for (int round = 0; round < 20000; round++) {
        tide_shape s = {.rank = (int32_t)tide_rng_below(&rng, TIDE_MAX_RANK + 1)};
        bool has_zero = false;
        for (int32_t i = 0; i < s.rank; i++) {
            s.dims[i] = (int64_t)(tide_rng_u64(&rng) >> (1 + tide_rng_below(&rng, 62)));
            has_zero |= s.dims[i] == 0;
        }
        // One step past 2^63-1 fits into 128 bits; from there on it stays where it is.
        unsigned __int128 want = has_zero ? 0 : 1;
        for (int32_t i = 0; i < s.rank && want <= INT64_MAX; i++) want *= (unsigned __int128)s.dims[i];
        int64_t numel = 0;
        const tide_status st = tide_shape_numel(&s, &numel, NULL);
        if (want > INT64_MAX) {
            assert_int_equal(st, TIDE_ERR_OVERFLOW);
            n_overflows++;
        } else {
            assert_int_equal(st, TIDE_OK);
            assert_true((unsigned __int128)numel == want);
        }
    }
    assert_true(n_overflows > 1000 && n_overflows < 19000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(types_have_names_and_sizes),     tide_unit_test(border_shapes),
        tide_unit_test(strides_are_row_major),          tide_unit_test(text_round_trips),
        tide_unit_test(formatting_stays_in_its_buffer), tide_unit_test(equality_looks_at_used_extents_only),
        tide_unit_test(counts_against_wide_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
