// SPDX-License-Identifier: MIT
//
// escrow: the peak of a sum of parts against a plain count, and how seldom the parts have to meet.
#include "core/memory/escrow.h"

#include "memory_test.h"

enum { N_PARTS = 5 };

typedef struct row {
    uint64_t other; // parts lie inside larger things
    tide__part part;
} row;

static void assert_limits(row *rows, unsigned n, uint64_t peak) {
    int64_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        assert_true(rows[i].part.now <= rows[i].part.limit);
        sum += rows[i].part.limit;
    }
    assert_int_equal(sum, peak);
}

/// Random additions anywhere, random removals anywhere else: parts go below zero, the sum does not.
static void the_peak_is_that_of_a_plain_count(void **state) {
    (void)state;
    for (unsigned n = 1; n <= N_PARTS; n++) {
        row rows[N_PARTS] = {{0}};
        tide_rng rng = {n};
        uint64_t sum = 0, want = 0, peak = 0;
        int n_meetings = 0, n_adds = 0;
        for (int step = 0; step < 20000; step++) {
            const unsigned i = (unsigned)tide_rng_below(&rng, n);
            const uint64_t bytes = 1 + tide_rng_below(&rng, 1000);
            if (sum > 0 && tide_rng_below(&rng, 100) < 52) {
                const uint64_t back = bytes < sum ? bytes : sum;
                rows[i].part.now -= (int64_t)back;
                sum -= back;
                continue;
            }
            n_adds++;
            const bool has_room = tide__part_has_room(&rows[i].part, bytes);
            rows[i].part.now += (int64_t)bytes;
            sum += bytes;
            if (sum > want) want = sum;
            if (!has_room) {
                n_meetings++;
                tide__escrow_settle(&rows[0].part, sizeof rows[0], n, i, &peak);
            }
            assert_int_equal(peak, want);
            assert_int_equal(tide__escrow_sum(&rows[0].part, sizeof rows[0], n), sum);
            if (step > 0) assert_limits(rows, n, peak);
        }
        assert_true(n_meetings < n_adds / 5); // that is what it is for
        tide__escrow_reset(&rows[0].part, sizeof rows[0], n, &peak);
        assert_int_equal(peak, sum);
        assert_limits(rows, n, peak);
    }
}

static void sizes_past_all_bounds_have_no_room(void **state) {
    (void)state;
    const tide__part part = {.now = 10, .limit = 100};
    assert_true(tide__part_has_room(&part, 90));
    assert_false(tide__part_has_room(&part, 91));
    assert_false(tide__part_has_room(&part, INT64_MAX - 10));
    uint64_t peak = 7;
    tide__escrow_reset(NULL, 0, 0, &peak);
    assert_int_equal(peak, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_peak_is_that_of_a_plain_count),
        tide_unit_test(sizes_past_all_bounds_have_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
