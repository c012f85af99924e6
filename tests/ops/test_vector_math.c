// SPDX-License-Identifier: MIT
//
// exp, sigmoid, tanh and erf of rows against the C library's in double, over the bits of all floats; NaN, the ends, and
// the same bits wherever an element stands.
#include "core/ops/vector_math.h"

#include <math.h>

#include "tests/tide_test.h"

enum { N = 1024 };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

typedef struct row {
    void (*ours)(float *y, const float *x, int64_t n);
    double (*exact)(double x);
    double abs, ulps; ///< either is enough
} row;
static const row rows[] = {{tide_exp_row, exp, 0, 3},
                           {tide_sigmoid_row, sigmoid, 2e-7, 3},
                           {tide_tanh_row, tanh, 0, 3},
                           {tide_erf_row, erf, 2e-7, 3}};

static float from_bits(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void check(const row *r, float x, float y) {
    if (isnan(x)) {
        assert_true(isnan(y));
        return;
    }
    const double exact = r->exact((double)x);
    if (!isfinite((float)exact)) {
        assert_true(y == (float)exact || y > 3.4e38f); // where the exact value rounds to infinity
        return;
    }
    const float size = fabsf((float)exact);
    const double ulp = (double)(nextafterf(size, INFINITY) - size), off = fabs((double)y - exact);
    if (off > r->abs && off > r->ulps * ulp) fail_msg("f(%a) = %a, not %a", (double)x, (double)y, exact);
}

static void test_all_bits(void **state) {
    (void)state;
    float x[N], y[N];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (uint64_t first = 0; first < 1ull << 32; first += (uint64_t)N * 65537) {
            for (uint64_t k = 0; k < N; k++) x[k] = from_bits((uint32_t)(first + k * 65537));
            rows[i].ours(y, x, N);
            for (int k = 0; k < N; k++) check(&rows[i], x[k], y[k]);
        }
}

static void test_ends(void **state) {
    (void)state;
    const float x[] = {INFINITY, -INFINITY, 0.0f, -0.0f, 200.0f, -200.0f};
    const float want[][6] = {
        {INFINITY, 0, 1, 1, INFINITY, 0}, {1, 0, 0.5f, 0.5f, 1, 0}, {1, -1, 0, -0.0f, 1, -1}, {1, -1, 0, -0.0f, 1, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float y[6];
        rows[i].ours(y, x, 6);
        assert_memory_equal(y, want[i], sizeof y);
        rows[i].ours(y, x, 0); // none
    }
}

/// A row of any length, in place, has the bits of the long row.
static void test_same_bits(void **state) {
    (void)state;
    float x[N], y[N], part[N];
    for (int k = 0; k < N; k++) x[k] = (float)(k - N / 2) / 57.0f;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rows[i].ours(y, x, N);
        for (int n = 1; n < 40; n++) {
            memcpy(part, x + n, (size_t)n * sizeof *part);
            rows[i].ours(part, part, n);
            assert_memory_equal(part, y + n, (size_t)n * sizeof *part);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_all_bits),
        tide_unit_test(test_ends),
        tide_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
