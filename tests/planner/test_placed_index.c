// SPDX-License-Identifier: MIT
//
// planner/placed_index: held against the definition of a conflict, pair by pair.
#include "planner/placed_index.h"
#include "tests/planner/plan_test.h"

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/// After each tensor that is placed, ask for the neighbours of one by chance.
static void check_list(const tide_lifetimes *lt, tide_rng *rng) {
    tide_worklist work;
    tide_placed_index index;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__worklist_make(lt, tide__by_size_desc, &work, &err), &err);
    assert_tide_status(tide__placed_index_init(&index, &work), TIDE_OK);
    uint32_t *found = tide_host_calloc(work.n, sizeof *found);
    assert_non_null(found);
    for (size_t n_placed = 0; n_placed <= work.n; n_placed++) {
        if (n_placed > 0) tide__placed_index_add(&index, &work, n_placed - 1);
        if (n_placed == work.n) break;
        const tide_lifetime *item = work.items[tide_rng_below(rng, work.n)];
        size_t n_want = 0;
        for (size_t k = 0; k < n_placed; k++)
            n_want += work.items[k] == item || tide_lifetimes_conflict(item, work.items[k]);
        const size_t n = tide__placed_index_find(&index, item, found, work.n);
        assert_int_equal(n, n_want);
        for (size_t k = 1; k < n; k++)
            assert_true(work.items[found[k - 1]]->begin_step <= work.items[found[k]]->begin_step);
        qsort(found, n, sizeof *found, compare_u32);
        for (size_t k = 0; k < n; k++) {
            assert_true(found[k] < n_placed && (k == 0 || found[k - 1] < found[k]));
            const tide_lifetime *other = work.items[found[k]];
            assert_true(other == item || tide_lifetimes_conflict(item, other));
        }
        // A search that may find fewer than there are says so and keeps to its room.
        if (n_want > 0) assert_int_equal(tide__placed_index_find(&index, item, found, n_want - 1), n_want);
    }
    tide_host_free(found);
    tide__placed_index_deinit(&index);
    tide__worklist_deinit(&work);
}

static void it_finds_what_conflicts(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, 1 + tide_rng_below(&rng, 130), 1 + (int64_t)tide_rng_below(&rng, 40), 100, false);
        check_list(&lt, &rng);
        tide_lifetimes_deinit(&lt);
    }
}

static void none_and_one(void **state) {
    (void)state;
    tide_rng rng = {1};
    tide_lifetimes lt = {0};
    check_list(&lt, &rng);
    put(&lt, "a", 1, INT64_MAX - 2, INT64_MAX);
    check_list(&lt, &rng);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(it_finds_what_conflicts),
        tide_unit_test(none_and_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
