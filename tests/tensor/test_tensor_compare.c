// SPDX-License-Identifier: MIT
//
// tide_tensor_compare: both tolerances, special values, what is refused.
#include "tests/tide_test.h"

#include <math.h>

#include "core/tensor/compare.h"

/// A borrowed one-dimensional tensor over `data`.
static tide_tensor *over(void *data, tide_dtype dtype, int64_t n) {
    const tide_shape shape = {.rank = 1, .dims = {n}};
    tide_tensor *t = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(
        tide_tensor_borrow(data, (size_t)n * tide_dtype_size(dtype), dtype, &shape, TIDE_KIND_HOST_PAGEABLE, &t, &err),
        &err);
    return t;
}

static tide_tensor_diff diff_of(void *a, void *b, tide_dtype dtype, int64_t n, double rtol, double atol) {
    tide_tensor *got = over(a, dtype, n), *want = over(b, dtype, n);
    tide_tensor_diff d;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tensor_compare(got, want, rtol, atol, &d, &err), &err);
    tide_tensor_unref(got);
    tide_tensor_unref(want);
    return d;
}

static void equal_bits(void **state) {
    (void)state;
    float a[] = {1.0f, NAN, INFINITY, -0.0f}, b[4];
    memcpy(b, a, sizeof a);
    const tide_tensor_diff d = diff_of(a, b, TIDE_F32, 4, 0.0, 0.0);
    assert_true(d.bitwise_equal);
    assert_true(d.pass);
    assert_true(d.max_abs == 0.0);
    assert_int_equal(d.first_failed, -1);
}

static void both_tolerances(void **state) {
    (void)state;
    float want[] = {100.0f, 0.0f, -100.0f}, got[] = {100.5f, 0.25f, -100.5f};
    // 100.5 is within 1 % of 100; 0.25 has only the absolute tolerance.
    assert_true(diff_of(got, want, TIDE_F32, 3, 0.01, 0.25).pass);
    const tide_tensor_diff d = diff_of(got, want, TIDE_F32, 3, 0.01, 0.2);
    assert_false(d.pass);
    assert_int_equal(d.n_failed, 1);
    assert_int_equal(d.first_failed, 1);
    assert_true(d.max_abs == 0.5);
    assert_true(fabs(d.max_rel - 0.005) < 1e-12);
    assert_int_equal(diff_of(got, want, TIDE_F32, 3, 0.0, 0.2).n_failed, 3);
}

static void special_values(void **state) {
    (void)state;
    float want[] = {NAN, INFINITY, 1.0f}, got[] = {NAN, INFINITY, 1.0f};
    got[0] = -got[0]; // another bit pattern, a NaN all the same
    const tide_tensor_diff d = diff_of(got, want, TIDE_F32, 3, 0.0, 0.0);
    assert_false(d.bitwise_equal);
    assert_true(d.pass);
    got[1] = -INFINITY;
    assert_int_equal(diff_of(got, want, TIDE_F32, 3, 1.0, 1e30).n_failed, 1);
    got[1] = INFINITY;
    got[2] = NAN;
    assert_int_equal(diff_of(got, want, TIDE_F32, 3, 1.0, 1e30).first_failed, 2);
}

static void every_number_type(void **state) {
    (void)state;
    static const tide_dtype types[] = {TIDE_F32, TIDE_F64, TIDE_I8,  TIDE_U8,  TIDE_BOOL, TIDE_I16,
                                       TIDE_U16, TIDE_I32, TIDE_U32, TIDE_I64, TIDE_U64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        _Alignas(8) unsigned char a[16] = {0}, b[16] = {0};
        b[tide_dtype_size(types[i])] = types[i] == TIDE_F32 || types[i] == TIDE_F64 ? 0 : 1; // low byte of element 1
        if (types[i] == TIDE_F32) memcpy(b + 4, &(float){1.0f}, 4);
        if (types[i] == TIDE_F64) memcpy(b + 8, &(double){1.0}, 8);
        const tide_tensor_diff d = diff_of(a, b, types[i], 2, 0.0, 0.5);
        assert_false(d.pass);
        assert_int_equal(d.first_failed, 1);
        assert_true(d.max_abs == 1.0);
    }
}

static void refusals(void **state) {
    (void)state;
    float a[4] = {0};
    tide_tensor *f4 = over(a, TIDE_F32, 4), *f2 = over(a, TIDE_F32, 2), *i4 = over(a, TIDE_I32, 4),
                *empty = over(a, TIDE_F32, 0);
    tide_tensor_diff d;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_tensor_compare(f4, f2, 0, 0, &d, &err), TIDE_ERR_INCOMPARABLE);
    assert_text_has(err.msg, "[4]");
    assert_text_has(err.msg, "[2]");
    assert_tide_status(tide_tensor_compare(f4, i4, 0, 0, &d, &err), TIDE_ERR_INCOMPARABLE);
    assert_tide_ok(tide_tensor_compare(empty, empty, 0, 0, &d, &err), &err);
    assert_true(d.pass);
    tide_block_set_guard(tide_tensor_storage(f2)->block, TIDE_BLOCK_FAIL_ACCESS, 0);
    assert_tide_status(tide_tensor_compare(f2, f2, 0, 0, &d, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "a guard forbids all access");
    tide_tensor_unref(f4);
    tide_tensor_unref(f2);
    tide_tensor_unref(i4);
    tide_tensor_unref(empty);
}

/// 16-bit floats, by their numbers: 1 and 1 + 2^-7 are neighbours of bfloat16, 1 and 1 + 2^-10 of float16.
static void half_precision(void **state) {
    (void)state;
    uint16_t bf_a[2] = {0x3F80, 0x7FC0}, bf_b[2] = {0x3F81, 0x7FC1}, f_a[2] = {0x3C00, 0xFC00},
             f_b[2] = {0x3C01, 0xFC00};
    tide_tensor_diff d = diff_of(bf_a, bf_b, TIDE_BF16, 2, 0.0, 0.005);
    assert_false(d.pass);
    assert_int_equal(d.first_failed, 0);
    assert_int_equal(d.n_failed, 1); // two sorts of NaN are equal
    assert_true(d.max_abs == 0.0078125);
    d = diff_of(f_a, f_b, TIDE_F16, 2, 1e-3, 0.0);
    assert_true(d.pass && !d.bitwise_equal && d.max_abs == 0.0009765625);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(equal_bits),        tide_unit_test(both_tolerances), tide_unit_test(special_values),
        tide_unit_test(every_number_type), tide_unit_test(refusals),        tide_unit_test(half_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
