// SPDX-License-Identifier: MIT
//
// Column maths of the terminal view, against a plain 128-bit oracle.
#include "tests/tide_test.h"

#include "tui/state/axis.h"

__extension__ typedef __int128 wide;

/// The definition itself, column by column.
static int oracle_column(tide_tui_window w, int n, int64_t t) {
    if (t < w.begin) return -1;
    const wide span = (wide)w.end - w.begin, at = (wide)t - w.begin;
    for (int i = 0; i < n; i++) {
        const wide lo = span * i / n, hi = span * (i + 1) / n;
        if (lo <= at && at < (hi > lo ? hi : lo + 1)) return i;
    }
    return n;
}

static void columns_agree_with_the_oracle(void **state) {
    (void)state;
    tide_rng rng = {7};
    for (int i = 0; i < 20000; i++) {
        const int shift = (int)tide_rng_below(&rng, 52);
        const int64_t begin = (int64_t)tide_rng_below(&rng, 1ULL << 40) - (1LL << 39);
        const tide_tui_window w = {begin, begin + 1 + (int64_t)(tide_rng_u64(&rng) >> (63 - shift))};
        const int n = 1 + (int)tide_rng_below(&rng, 1024);
        const int64_t t = begin - 5 + (int64_t)tide_rng_below(&rng, (uint64_t)(w.end - begin) + 10);
        assert_int_equal(tide_tui_column_of(w, n, t), oracle_column(w, n, t));
    }
}

static void the_widest_windows_do_not_overflow(void **state) {
    (void)state;
    const tide_tui_window w = {INT64_MIN, INT64_MAX};
    for (int n = 1; n <= 1024; n++) {
        assert_int_equal(tide_tui_column_of(w, n, INT64_MIN), 0);
        assert_int_equal(tide_tui_column_of(w, n, INT64_MAX), n);
        assert_int_equal(tide_tui_column_of(w, n, INT64_MAX - 1), n - 1);
        assert_in_range(tide_tui_column_of(w, n, 0), n / 2 - (n > 1), n / 2);
    }
}

static void a_bar_has_at_least_one_cell_inside_the_window(void **state) {
    (void)state;
    tide_rng rng = {11};
    for (int i = 0; i < 20000; i++) {
        const tide_tui_window w = {0, 1 + (int64_t)tide_rng_below(&rng, 100000)};
        const int n = 1 + (int)tide_rng_below(&rng, 300);
        const int64_t begin = (int64_t)tide_rng_below(&rng, 120000) - 10000;
        const int64_t end = begin + 1 + (int64_t)tide_rng_below(&rng, 3000);
        int from, to;
        const int side = tide_tui_columns_of(w, n, begin, end, &from, &to);
        assert_int_equal(side, end <= w.begin ? -1 : begin >= w.end ? 1 : 0);
        if (side != 0) continue;
        assert_true(0 <= from && from < to && to <= n);
        if (begin >= w.begin) assert_int_equal(from, oracle_column(w, n, begin));
        if (to > from + 1) assert_int_equal(to, oracle_column(w, n, end));
    }
}

/// One lifetime that ends where the next begins must not look like a conflict once both are wide enough to see.
static void neighbours_in_time_do_not_share_a_column(void **state) {
    (void)state;
    const tide_tui_window w = {0, 7};
    for (int n = 7; n < 200; n++) {
        for (int64_t t = 1; t < 7; t++) {
            int a_from, a_to, b_from, b_to;
            assert_int_equal(tide_tui_columns_of(w, n, t - 1, t, &a_from, &a_to), 0);
            assert_int_equal(tide_tui_columns_of(w, n, t, t + 1, &b_from, &b_to), 0);
            assert_int_equal(a_to, b_from);
        }
    }
}

static void ticks_are_one_two_five_and_few(void **state) {
    (void)state;
    assert_int_equal(tide_tui_tick_time((tide_tui_window){0, 8}, 4), 5);
    assert_int_equal(tide_tui_tick_time((tide_tui_window){0, 7}, 4), 2);
    assert_int_equal(tide_tui_tick_time((tide_tui_window){0, 3}, 4), 1);
    assert_int_equal(tide_tui_tick_time((tide_tui_window){0, 100}, 6), 20);
    assert_int_equal(tide_tui_tick_time((tide_tui_window){0, 50000000}, 6), 10000000);
    for (int64_t span = 1; span > 0 && span < INT64_MAX / 3; span = span * 3 + 1)
        assert_true(span / tide_tui_tick_time((tide_tui_window){0, span}, 5) < 5);
}

static void sizes_and_times_in_words(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0"},         {999, "999"},           {1000, "0.98K"},    {1536, "1.50K"},       {10240, "10.0K"},
        {102400, "100K"}, {1023 * 1024, "1.00M"}, {1 << 20, "1.00M"}, {UINT64_MAX, "16.0E"}, {1ULL << 40, "1.00T"}};
    char buf[32];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_string_equal(tide_tui_format_short(sizes[i].bytes, buf, sizeof buf), sizes[i].text);
        assert_in_range(strlen(buf), 1, 5);
    }
    tide_subject_facts f = {.axis = TIDE_AXIS_NS, .origin = 1000, .begin = 1000, .end = 2000000};
    assert_string_equal(tide_tui_format_time(&f, 1000, buf, sizeof buf), "0 ns");
    assert_string_equal(tide_tui_format_time(&f, 13300, buf, sizeof buf), "12.3 us");
    assert_string_equal(tide_tui_format_span(&f, 1000, 1501000, buf, sizeof buf), "1.5 ms");
    f.axis = TIDE_AXIS_STEPS;
    assert_string_equal(tide_tui_format_time(&f, 12, buf, sizeof buf), "12");
    assert_string_equal(tide_tui_format_span(&f, 3, 4, buf, sizeof buf), "1 step");
}

static void the_step_at_a_time(void **state) {
    (void)state;
    static const int64_t begins[] = {0, 1, 2, 5, 6};
    const tide_subject_facts f = {.step_begin = begins, .n_steps = 5};
    assert_int_equal(tide_subject_step_at(&f, 2), 2);
    assert_int_equal(tide_subject_step_at(&f, 4), 2);
    assert_int_equal(tide_subject_step_at(&f, 7), 4);
    assert_int_equal(tide_subject_step_at(&f, -1), SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(columns_agree_with_the_oracle),
        tide_unit_test(the_widest_windows_do_not_overflow),
        tide_unit_test(a_bar_has_at_least_one_cell_inside_the_window),
        tide_unit_test(neighbours_in_time_do_not_share_a_column),
        tide_unit_test(ticks_are_one_two_five_and_few),
        tide_unit_test(sizes_and_times_in_words),
        tide_unit_test(the_step_at_a_time),
    };
    return cmocka_run_group_tests_name("tui_axis", tests, NULL, NULL);
}
