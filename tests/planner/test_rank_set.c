// SPDX-License-Identifier: MIT
//
// planner/rank_set against an array of flags.
#include "core/base/assert.h"
#include "core/base/text.h"
#include "planner/rank_set.h"
#include "tests/tide_test.h"

enum { MAX_N = 10000 };

static void check_neighbours(const tide_rank_set *s, const bool *flags, size_t n, size_t i) {
    size_t below = SIZE_MAX, above = SIZE_MAX;
    for (size_t k = 0; k < i; k++) {
        if (flags[k]) below = k;
    }
    for (size_t k = n; k-- > i + 1;) {
        if (flags[k]) above = k;
    }
    assert_int_equal(tide__rank_set_below(s, i), below);
    assert_int_equal(tide__rank_set_above(s, i), above);
}

static void neighbours_are_found(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 63, 64, 65, 128, 4095, 4096, 4097, MAX_N};
    static bool flags[MAX_N];
    tide_rng rng = {1};
    for (size_t t = 0; t < sizeof sizes / sizeof sizes[0]; t++) {
        const size_t n = sizes[t];
        memset(flags, 0, sizeof flags);
        tide_rank_set s;
        assert_tide_status(tide__rank_set_init(&s, n), TIDE_OK);
        for (int step = 0; step < 400; step++) {
            const size_t i = tide_rng_below(&rng, n);
            // Few members, so that empty words and empty upper words occur.
            if (tide_rng_below(&rng, 3) == 0) {
                tide__rank_set_add(&s, i);
                flags[i] = true;
            } else {
                const size_t member = flags[i] ? i : tide__rank_set_above(&s, i);
                if (member != SIZE_MAX) {
                    tide__rank_set_remove(&s, member);
                    flags[member] = false;
                }
            }
            check_neighbours(&s, flags, n, tide_rng_below(&rng, n));
            check_neighbours(&s, flags, n, 0);
            check_neighbours(&s, flags, n, n - 1);
        }
        tide__rank_set_deinit(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(neighbours_are_found)};
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
