// SPDX-License-Identifier: MIT
//
// planner/strategies/free_runs: against one flag a byte, with lists short enough to be one array and long enough to be
// cut into many chunks.
#include "core/base/assert.h"
#include "planner/strategies/free_runs.h"

#include "core/base/text.h"
#include "tests/tide_test.h"

enum { BYTES = 20000 };

/// First place at or above `from` with `bytes` free ones in a row; beyond the flags everything is free.
static uint64_t plain_next(const bool *taken, uint64_t from, uint64_t bytes) {
    uint64_t n = 0;
    for (uint64_t at = from; at < BYTES; at++) {
        n = taken[at] ? 0 : n + 1;
        if (n == bytes) return at + 1 - bytes;
    }
    uint64_t at = BYTES;
    while (at > from && !taken[at - 1]) at--;
    return at;
}

static uint64_t plain_end(const bool *taken, uint64_t at) {
    while (at < BYTES && !taken[at]) at++;
    return at == BYTES ? UINT64_MAX : at;
}

static void check_reader(const tide_free_runs *list, const bool *taken, tide_rng *rng, uint64_t min_bytes) {
    if (tide__free_runs_untouched(list)) return;
    tide_run_cursor cursor = tide__free_runs_first(list);
    const uint64_t bytes = min_bytes + tide_rng_below(rng, 12);
    for (uint64_t from = tide_rng_below(rng, 200); from < BYTES; from += 1 + tide_rng_below(rng, 900)) {
        uint64_t end;
        const uint64_t at = tide__free_runs_next(&cursor, from, bytes, &end);
        assert_int_equal(at, plain_next(taken, from, bytes));
        assert_int_equal(end, plain_end(taken, at));
    }
}

static void it_finds_what_is_free(void **state) {
    (void)state;
    static bool taken[BYTES];
    for (uint64_t seed = 0; seed < 40; seed++) {
        tide_rng rng = {seed};
        tide_free_runs list = {0};
        tide_run_pool pool = {0};
        const uint64_t min_bytes = 1 + seed % 4, longest = seed % 2 == 0 ? 6 : 60;
        memset(taken, 0, sizeof taken);
        uint32_t most_chunks = 0;
        for (int k = 0; k < 4000; k++) {
            const uint64_t lo = tide_rng_below(&rng, BYTES - 400),
                           hi = lo + 1 + tide_rng_below(&rng, k % 100 == 0 ? 400 : longest);
            assert_true(tide__free_runs_take(&list, lo, hi, min_bytes, &pool));
            memset(taken + lo, 1, hi - lo);
            if (list.n_chunks > most_chunks) most_chunks = list.n_chunks;
            if (k % 40 == 0) check_reader(&list, taken, &rng, min_bytes);
        }
        assert_true(most_chunks > 3);
        assert_true(tide__free_runs_take(&list, 0, BYTES, min_bytes, &pool));
        memset(taken, 1, sizeof taken);
        check_reader(&list, taken, &rng, min_bytes);
        tide__run_pool_deinit(&pool);
    }
}

/// After a reset the pool hands the same memory out again.
static void a_reset_keeps_the_slabs(void **state) {
    (void)state;
    tide_run_pool pool = {0};
    tide_host_stats first, second;
    for (int round = 0; round < 3; round++) {
        for (unsigned size_class = 4; size_class < 19; size_class++) {
            void *array = tide__run_pool_get(&pool, size_class);
            assert_non_null(array);
            memset(array, 0xAA, (size_t)1 << size_class);
            assert_int_equal((uintptr_t)array % 16, 0);
            if (size_class % 2 == 0) tide__run_pool_put(&pool, array, size_class);
        }
        tide_host_get_stats(round == 0 ? &first : &second);
        tide__run_pool_reset(&pool);
    }
    assert_int_equal(first.live_bytes, second.live_bytes);
    tide__run_pool_deinit(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(it_finds_what_is_free),
        tide_unit_test(a_reset_keeps_the_slabs),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
