// SPDX-License-Identifier: MIT
//
// pairs: exact for problems of any shape, against trying every offset.
#include "planner/search/pairs.h"

#include <string.h>

#include "core/base/host_alloc.h"
#include "tests/planner/plan_test.h"
#include "tests/planner/problem_test.h"

enum { TOP = 200 };

/// Whether item `i` at `at` shares a byte at a tick with one placed before it.
static bool is_barred(const tide_problem *p, const uint64_t *offsets, size_t i, uint64_t at) {
    const tide_item *item = &p->items[i];
    for (size_t k = 0; k < i; k++) {
        const tide_item *other = &p->items[k];
        for (uint32_t r = 0; r < item->n_rects; r++) {
            const tide_rect *x = &tide__rects_of(p, item)[r];
            for (uint32_t s = 0; s < other->n_rects; s++) {
                const tide_rect *y = &tide__rects_of(p, other)[s];
                if (x->begin < y->end && y->begin < x->end && at + x->lo_bytes < offsets[k] + y->hi_bytes &&
                    offsets[k] + y->lo_bytes < at + x->hi_bytes)
                    return true;
            }
        }
    }
    return false;
}

static bool fits_from(const tide_problem *p, uint64_t *offsets, size_t i, uint64_t height) {
    if (i == p->n) return true;
    const tide_item *item = &p->items[i];
    const bool fixed = item->fixed_offset != TIDE_NO_OFFSET;
    for (uint64_t at = fixed ? item->fixed_offset : 0; at + item->size_bytes <= height; at += item->align_bytes) {
        offsets[i] = at;
        if (!is_barred(p, offsets, i, at) && fits_from(p, offsets, i + 1, height)) return true;
        if (fixed) return false;
    }
    return false;
}

static uint64_t smallest_height(const tide_problem *p) {
    uint64_t offsets[8], height = p->proved_bytes;
    while (height < TOP && !fits_from(p, offsets, 0, height)) height++;
    return height;
}

/// Everything on top of each other, after what is fixed: a plan to begin with.
static void stack_up(const tide_problem *p, tide_placement *pl) {
    uint64_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].fixed_offset == TIDE_NO_OFFSET) continue;
        pl->offsets[i] = p->items[i].fixed_offset;
        if (pl->offsets[i] + p->items[i].size_bytes > at) at = pl->offsets[i] + p->items[i].size_bytes;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].fixed_offset != TIDE_NO_OFFSET) continue;
        at = (at + p->items[i].align_bytes - 1) / p->items[i].align_bytes * p->items[i].align_bytes;
        pl->offsets[i] = at;
        at += p->items[i].size_bytes;
    }
    tide__placement_measure(pl, p);
}

static void check_problem(const tide_problem *p, uint64_t seed, size_t *n_raised) {
    tide_error err = TIDE_ERROR_INIT;
    const uint64_t optimum = smallest_height(p);
    tide_placement pl;
    assert_tide_ok(tide__placement_init(&pl, p, &err), &err);
    stack_up(p, &pl);
    uint64_t n_nodes = 0;
    assert_tide_ok(tide__pairs_improve(p, 0, 1000000, 0, &pl, &n_nodes, &err), &err);
    assert_true(tide__placement_is_sound(&pl, p));
    if (pl.bytes != optimum || pl.proved_bytes != optimum)
        fail_msg("seed %" PRIu64 ": %" PRIu64 " bytes, %" PRIu64 " proved; the smallest is %" PRIu64, seed, pl.bytes,
                 pl.proved_bytes, optimum);
    *n_raised += optimum > p->proved_bytes;
    tide__placement_deinit(&pl);

    // The bare question at, below and above the optimum.
    tide_pairs *pairs;
    assert_tide_ok(tide__pairs_create(p, &pairs, &err), &err);
    for (uint64_t capacity = optimum > 3 ? optimum - 3 : 0; capacity < optimum + 3; capacity++) {
        uint64_t offsets[8];
        tide_pairs_answer answer;
        assert_tide_ok(tide__pairs_search(pairs, capacity, 1000000, 0, offsets, &answer, &n_nodes, &err), &err);
        assert_int_equal(answer, capacity < optimum ? TIDE_PAIRS_NONE : TIDE_PAIRS_FOUND);
        for (size_t i = 0; answer == TIDE_PAIRS_FOUND && i < p->n; i++) {
            assert_false(is_barred(p, offsets, i, offsets[i]));
            assert_true(offsets[i] + p->items[i].size_bytes <= capacity);
        }
    }
    tide__pairs_destroy(pairs);
}

static void as_good_as_trying_everything(void **state) {
    (void)state;
    size_t n_checked = 0, n_raised = 0, n_shaped = 0;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random_table(&lt, &rng, 1 + tide_rng_below(&rng, 6), 7, 9, (unsigned)(seed % 32));
        tide_problems all;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide__problems_make(&lt, &all, &err);
        if (st == TIDE_OK) {
            for (size_t b = 0; b < all.n; b++) {
                if (all.list[b].n > 6 || smallest_height(&all.list[b]) >= TOP) continue;
                check_problem(&all.list[b], seed, &n_raised);
                n_checked++;
                n_shaped += !all.list[b].plain;
            }
            tide__problems_deinit(&all);
        }
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_checked > 3000 && n_raised > 100 && n_shaped > 1000); // the draw made what is tested here
}

/// The whole must hang over the hole in its first part, one hundred bytes above the floor: no order of lowest places
/// that begins with it gets there.
static void a_whole_over_a_hole(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "whole", 8, 6, 8);
    put(&lt, "first", 2, 5, 7);
    put(&lt, "rest", 6, 1, 7);
    put(&lt, "short", 3, 3, 5);
    put(&lt, "late", 1, 4, 5);
    assert_int_equal(tide_lifetimes_alias(&lt, 1, TIDE_ALIAS_PART, 0, 0, NULL), TIDE_OK);
    assert_int_equal(tide_lifetimes_alias(&lt, 2, TIDE_ALIAS_PART, 0, 2, NULL), TIDE_OK);
    tide_problems all;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__problems_make(&lt, &all, &err), &err);
    assert_int_equal(all.list[0].lower_bound_bytes, 10);
    tide_placement pl;
    assert_tide_ok(tide__placement_init(&pl, &all.list[0], &err), &err);
    stack_up(&all.list[0], &pl);
    uint64_t n_nodes = 0;
    assert_tide_ok(tide__pairs_improve(&all.list[0], 0, 1000, 0, &pl, &n_nodes, &err), &err);
    assert_int_equal(pl.bytes, 10);
    tide__placement_deinit(&pl);
    tide__problems_deinit(&all);
    tide_lifetimes_deinit(&lt);
}

/// Thirty items of odd sizes: too much for ten nodes, and no answer is made up.
static void limits_end_it(void **state) {
    (void)state;
    tide_rng rng = {7};
    tide_item items[30];
    for (size_t i = 0; i < 30; i++) {
        const uint32_t begin = (uint32_t)tide_rng_below(&rng, 20);
        items[i] = (tide_item){.size_bytes = 100 + tide_rng_below(&rng, 1000),
                               .align_bytes = 1,
                               .fixed_offset = TIDE_NO_OFFSET,
                               .begin = begin,
                               .end = begin + 1 + (uint32_t)tide_rng_below(&rng, 10)};
    }
    tide_problem p;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__problem_of_items(items, 30, &p, &err), &err);
    tide_pairs *pairs;
    assert_tide_ok(tide__pairs_create(&p, &pairs, &err), &err);
    uint64_t offsets[30], n_nodes = 0;
    tide_pairs_answer answer;
    assert_tide_ok(tide__pairs_search(pairs, p.proved_bytes, 10, 0, offsets, &answer, &n_nodes, &err), &err);
    assert_int_equal(answer, TIDE_PAIRS_LIMIT);
    assert_in_range(n_nodes, 10, 40);
    // A deadline that is over lets the first look through at most.
    n_nodes = 0;
    assert_tide_ok(tide__pairs_search(pairs, p.proved_bytes, UINT64_MAX, 1, offsets, &answer, &n_nodes, &err), &err);
    assert_int_equal(answer, TIDE_PAIRS_LIMIT);
    assert_int_equal(n_nodes, 0);
    tide__pairs_destroy(pairs);
    tide__problem_deinit(&p);
}

/// Distances have 62 bits: of a plan that is higher nothing is said, least of all that there is none.
static void what_is_too_high_proves_nothing(void **state) {
    (void)state;
    const uint64_t bytes = UINT64_C(1) << 62;
    const tide_item item = {
        .size_bytes = bytes, .align_bytes = 1, .fixed_offset = TIDE_NO_OFFSET, .begin = 0, .end = 1};
    tide_problem p;
    tide_error err = TIDE_ERROR_INIT;
    tide_pairs *pairs;
    uint64_t offset, n_nodes = 0;
    tide_pairs_answer answer;
    assert_tide_ok(tide__problem_of_items(&item, 1, &p, &err), &err);
    assert_tide_ok(tide__pairs_create(&p, &pairs, &err), &err);
    assert_tide_ok(tide__pairs_search(pairs, bytes, 10, 0, &offset, &answer, &n_nodes, &err), &err);
    assert_int_equal(answer, TIDE_PAIRS_LIMIT);
    tide__pairs_destroy(pairs);
    tide__problem_deinit(&p);
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void **state) {
    (void)state;
    tide_rng rng = {3};
    tide_lifetimes lt = {0};
    put_random_table(&lt, &rng, 6, 7, 9, 31);
    tide_problems all;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__problems_make(&lt, &all, &err), &err);
    tide_status st = TIDE_ERR_NOMEM;
    for (int64_t n = 0; st != TIDE_OK; n++) {
        assert_true(n < 500);
        tide_placement pl;
        uint64_t n_nodes = 0;
        assert_tide_ok(tide__placement_init(&pl, &all.list[0], &err), &err);
        stack_up(&all.list[0], &pl);
        tide_host_fail_after(n);
        st = tide__pairs_improve(&all.list[0], 0, 1000, 0, &pl, &n_nodes, NULL);
        tide_host_fail_after(-1);
        assert_true(st == TIDE_OK || st == TIDE_ERR_NOMEM);
        assert_true(tide__placement_is_sound(&pl, &all.list[0]));
        tide__placement_deinit(&pl);
    }
    tide__problems_deinit(&all);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(as_good_as_trying_everything),
        tide_unit_test(a_whole_over_a_hole),
        tide_unit_test(limits_end_it),
        tide_unit_test(what_is_too_high_proves_nothing),
        tide_unit_test(every_failed_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
