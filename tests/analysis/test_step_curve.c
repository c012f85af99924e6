// SPDX-License-Identifier: MIT
//
// Step curves: columns, values and peaks against every unit of the axis looked at by itself.
#include "analysis/step_curve.h"
#include "tests/tide_test.h"

#include "core/base/text.h"

static uint64_t brute_at(const tide__step_curve *c, int64_t t) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n && c->points[i].t <= t; i++) bytes = c->points[i].bytes;
    return bytes;
}

/// Every unit of the axis, and every point.
static void brute_column(const tide__step_curve *c, int64_t lo, int64_t hi, uint64_t *low, uint64_t *high) {
    *low = UINT64_MAX;
    *high = 0;
    for (int64_t t = lo; t < hi; t++) {
        const uint64_t v = brute_at(c, t);
        if (v < *low) *low = v;
        if (v > *high) *high = v;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (c->points[i].t < lo || c->points[i].t >= hi) continue;
        if (c->points[i].bytes < *low) *low = c->points[i].bytes;
        if (c->points[i].bytes > *high) *high = c->points[i].bytes;
    }
}

static void columns_against_brute_force(void **state) {
    (void)state;
    tide__step_point points[60];
    tide__step_curve c = {.points = points};
    uint64_t low[150], high[150];
    tide_rng rng = {7};
    for (int round = 0; round < 400; round++) {
        c.n = (size_t)tide_rng_below(&rng, 60);
        int64_t t = (int64_t)tide_rng_below(&rng, 40) - 20;
        for (size_t i = 0; i < c.n; i++) {
            points[i] = (tide__step_point){.t = t, .bytes = tide_rng_below(&rng, 1000)};
            t += (int64_t)tide_rng_below(&rng, 4); // often the same moment again
        }
        const int64_t begin = (int64_t)tide_rng_below(&rng, 60) - 30;
        const int64_t end = begin + (int64_t)tide_rng_below(&rng, 120);
        const size_t n = 1 + (size_t)tide_rng_below(&rng, 150);
        tide__step_curve_columns(&c, begin, end, n, low, high);
        for (size_t i = 0; i < n; i++) {
            const int64_t lo = begin + (end - begin) * (int64_t)i / (int64_t)n;
            int64_t hi = begin + (end - begin) * ((int64_t)i + 1) / (int64_t)n;
            if (hi <= lo) hi = lo + 1;
            uint64_t want_low, want_high;
            brute_column(&c, lo, hi, &want_low, &want_high);
            if (low[i] != want_low || high[i] != want_high)
                fail_msg("round %d, column %zu of %zu over [%lld, %lld): got %llu … %llu, want %llu … %llu", round, i,
                         n, (long long)begin, (long long)end, (unsigned long long)low[i], (unsigned long long)high[i],
                         (unsigned long long)want_low, (unsigned long long)want_high);
        }
        for (int64_t at = begin - 2; at < end + 2; at++)
            assert_int_equal(tide__step_curve_at(&c, at, 0), brute_at(&c, at));
    }
}

/// The widest axis there is: no overflow, and the ends meet.
static void columns_of_the_widest_axis(void **state) {
    (void)state;
    tide__step_point points[] = {{INT64_MIN, 0, 1}, {0, 0, 2}, {INT64_MAX - 1, 0, 3}};
    const tide__step_curve c = {.points = points, .n = 3};
    uint64_t low[3], high[3];
    tide__step_curve_columns(&c, INT64_MIN, INT64_MAX, 3, low, high);
    assert_int_equal(low[0], 1);
    assert_int_equal(high[0], 1);
    assert_int_equal(low[1], 1);
    assert_int_equal(high[1], 2);
    assert_int_equal(low[2], 2);
    assert_int_equal(high[2], 3);
    tide__step_curve_columns(&c, INT64_MAX, INT64_MAX, 1, low, high); // an axis without length
    assert_int_equal(low[0], 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(columns_against_brute_force),
        tide_unit_test(columns_of_the_widest_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
