// SPDX-License-Identifier: MIT
//
// Ticks to nanoseconds: on the line, far from it, with numbers that cannot be; and the clocks of this machine.
#include "core/base/text.h"
#include "profiler/clock.h"
#include "tests/tide_test.h"

static uint64_t at(uint64_t t0, uint64_t n0, uint64_t t1, uint64_t n1, uint64_t ticks) {
    const tide__tick_pair a = {.ticks = t0, .ns = n0}, b = {.ticks = t1, .ns = n1};
    return tide__clock_ns(&a, &b, ticks);
}

static void a_line_through_two_pairs(void **state) {
    (void)state;
    assert_int_equal(at(100, 1000, 200, 1050, 100), 1000);
    assert_int_equal(at(100, 1000, 200, 1050, 200), 1050);
    assert_int_equal(at(100, 1000, 200, 1050, 150), 1025);
    assert_int_equal(at(100, 1000, 200, 1050, 151), 1025); // rounded down
    assert_int_equal(at(100, 1000, 200, 1050, 300), 1100); // behind
    assert_int_equal(at(100, 1000, 200, 1050, 0), 950);    // before
}

static void the_line_ends_where_times_end(void **state) {
    (void)state;
    assert_true(at(1000, 10, 2000, 1010, 0) == 0); // before time began
    assert_true(at(1000, 10, 2000, 1010, 989) == 0);
    assert_true(at(1000, 10, 2000, 1010, 991) == 1);
    assert_true(at(0, 0, 1, 1, UINT64_MAX) == INT64_MAX);
    assert_true(at(0, 5, 1, UINT64_MAX, UINT64_MAX) == INT64_MAX); // no product of 128 bits overflows
    assert_true(at(0, UINT64_MAX, 5, 6, 3) == INT64_MAX);          // a time that cannot be
    // Beyond 64 bits on the way, within them at the end: 2^62 ticks at a third of a nanosecond each.
    assert_true(at(0, 0, 3000000000, 1000000000, UINT64_C(1) << 62) == (UINT64_C(1) << 62) / 3);
}

static void pairs_that_make_no_line(void **state) {
    (void)state;
    assert_int_equal(at(100, 1000, 100, 2000, 500), 1000); // no tick between them
    assert_int_equal(at(200, 1000, 100, 2000, 500), 1000); // backwards
    assert_int_equal(at(100, 1000, 200, 1000, 500), 1000);
    assert_int_equal(at(100, 1000, 200, 900, 500), 1000);
}

/// A later tick is never earlier, wherever the pairs lie.
static void time_does_not_go_back(void **state) {
    (void)state;
    tide_rng rng = {.state = 1};
    for (int i = 0; i < 200000; i++) {
        const uint64_t t0 = tide_rng_u64(&rng) >> tide_rng_below(&rng, 60), n0 = tide_rng_u64(&rng) >> 20;
        const uint64_t t1 = t0 + (tide_rng_u64(&rng) >> tide_rng_below(&rng, 64)), n1 = n0 + (tide_rng_u64(&rng) >> 30);
        uint64_t x = tide_rng_u64(&rng) >> tide_rng_below(&rng, 60), y = tide_rng_u64(&rng) >> tide_rng_below(&rng, 60);
        if (x > y) {
            const uint64_t was = x;
            x = y;
            y = was;
        }
        assert_true(at(t0, n0, t1, n1, x) <= at(t0, n0, t1, n1, y));
    }
}

/// What the clocks of this machine say between two readings of CLOCK_MONOTONIC lies between them, but for the width of
/// a reading: no time is asked for here, only order.
static void pairs_are_both_clocks(void **state) {
    (void)state;
    tide__tick_pair a, b;
    const uint64_t before = tide_now_ns();
    tide__clock_two_pairs(&a, &b);
    const uint64_t after = tide_now_ns();
    assert_true(before <= a.ns && a.ns < b.ns && b.ns <= after);
    assert_true(a.ticks < b.ticks);
    assert_int_equal(tide__clock_ns(&a, &b, a.ticks), a.ns);
    assert_int_equal(tide__clock_ns(&a, &b, b.ticks), b.ns);
}

/// TIDE_NO_TICKS tells producers to record no ticks. Reading both clocks works with and without it.
static void ticks_can_be_refused(void **state) {
    (void)state;
    const bool has_ticks = tide__clock_has_ticks();
    tide__tick_pair a, b;
    assert_int_equal(setenv("TIDE_NO_TICKS", "1", 1), 0);
    assert_false(tide__clock_has_ticks());
    tide__clock_pair(&a);
    assert_int_equal(setenv("TIDE_NO_TICKS", "0", 1), 0);
    assert_int_equal(tide__clock_has_ticks(), has_ticks);
    tide__clock_pair(&b);
    assert_true(a.ns <= b.ns && a.ticks <= b.ticks);
    if (a.ticks != a.ns) assert_true(b.ticks <= tide__ticks()); // the counter itself
    if (a.ticks == a.ns) print_message("[  SKIPPED ] ticks: this machine has no counter that runs at one rate\n");
    if (!has_ticks) print_message("[  SKIPPED ] ticks: this machine's kernel does not keep its clock by the counter\n");
    unsetenv("TIDE_NO_TICKS");
}

/// Readings of cores in turn, 100 us apart at 3 ticks a ns: all on one line, and what takes one of them off it.
static void cores_that_agree(void **state) {
    (void)state;
    enum { N = 9 };
    tide__tick_pair pairs[N];
    for (size_t i = 0; i < N; i++)
        pairs[i] = (tide__tick_pair){.ticks = 7000000 + 300000 * i, .ns = 1000 + 100000 * i + i % 3 * 20};
    assert_true(tide__clock_cores_agree(pairs, N));
    for (size_t few = 0; few < 3; few++) assert_false(tide__clock_cores_agree(pairs, few));
    for (size_t i = 1; i + 1 < N; i++) {
        const tide__tick_pair was = pairs[i];
        pairs[i].ticks += 1500; // 500 ns
        assert_false(tide__clock_cores_agree(pairs, N));
        pairs[i].ticks = was.ticks - 1500;
        assert_false(tide__clock_cores_agree(pairs, N));
        pairs[i] = was;
    }
    assert_true(tide__clock_cores_agree(pairs, N));
    pairs[N - 1].ticks = pairs[0].ticks; // no line
    assert_false(tide__clock_cores_agree(pairs, N));
    pairs[N - 1] = (tide__tick_pair){.ticks = UINT64_MAX, .ns = 1000};
    assert_false(tide__clock_cores_agree(pairs, N));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_line_through_two_pairs), tide_unit_test(the_line_ends_where_times_end),
        tide_unit_test(pairs_that_make_no_line),  tide_unit_test(time_does_not_go_back),
        tide_unit_test(pairs_are_both_clocks),    tide_unit_test(ticks_can_be_refused),
        tide_unit_test(cores_that_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
