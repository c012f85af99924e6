// SPDX-License-Identifier: MIT
//
// planner/strategies: what each places, that every plan of every strategy is sound, and that plans do not depend on
// the order in which tensors were listed.
#include "planner/coloring.h"
#include "tests/planner/plan_test.h"

static int32_t pool_of(const tide_memory_plan *p, const char *name) { return p->pools[index_of(&p->lifetimes, name)]; }
static uint64_t offset_of(const tide_memory_plan *p, const char *name) {
    return p->offsets[index_of(&p->lifetimes, name)];
}

// ---- the table ----

static void names_are_found_and_slips_are_told(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    assert_true(n >= 7);
    assert_string_equal(all[0]->name, "naive");
    for (size_t i = 0; i < n; i++) {
        const tide_strategy *found;
        assert_tide_status(tide_strategy_find(all[i]->name, &found, NULL), TIDE_OK);
        assert_ptr_equal(found, all[i]);
        assert_true(all[i]->what[0] != '\0' && all[i]->source[0] != '\0');
    }
    assert_string_equal(tide_strategy_default()->name, "greedy_by_size");

    const tide_strategy *found;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_strategy_find("greedy_colour", &found, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "greedy_colour");
    for (size_t i = 0; i < n; i++) assert_text_has(err.note, all[i]->name);
    assert_text_has(err.hint, "'greedy_color'");
    assert_tide_status(tide_strategy_find("zzzzzzz", &found, &err), TIDE_ERR_INVALID);
    assert_string_equal(err.hint, "");
    char longest[300];
    memset(longest, 'g', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_tide_status(tide_strategy_find(longest, &found, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_strategy_find("", &found, NULL), TIDE_ERR_INVALID);
}

// ---- golden places ----

/*
 *   step    0   1   2   3
 *   a 100   [a  ]
 *   b  50   [b  ]
 *   c  40           [c  ]        first fit: pool 0; best fit: pool 1
 *   d  30           [d  ]        the other one
 */
static void put_two_pairs(tide_lifetimes *lt) {
    put(lt, "a", 100, 0, 2);
    put(lt, "b", 50, 0, 2);
    put(lt, "c", 40, 2, 4);
    put(lt, "d", 30, 2, 4);
}

// S23-12: first fit and best fit differ; both can be chosen by name.
static void first_pool_and_best_pool_differ(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_two_pairs(&lt);
    tide_memory_plan *first = make_plan(&lt, "greedy_color"), *best = make_plan(&lt, "greedy_color_best");
    assert_int_equal(pool_of(first, "a"), 0);
    assert_int_equal(pool_of(first, "b"), 1);
    assert_int_equal(pool_of(first, "c"), 0);
    assert_int_equal(pool_of(first, "d"), 1);
    assert_int_equal(pool_of(best, "c"), 1);
    assert_int_equal(pool_of(best, "d"), 0);
    assert_int_equal(first->n_pools, 2);
    assert_int_equal(first->bytes, 150);
    assert_int_equal(first->pool_list[0].size_bytes, 100);
    assert_int_equal(first->pool_list[1].size_bytes, 50);
    assert_int_equal(first->pool_list[1].offset_bytes, 100);
    assert_int_equal(first->naive_bytes, 220);
    assert_int_equal(first->lower_bound_bytes, 150);
    assert_true(first->proven && first->verified);
    tide_memory_plan_destroy(first);
    tide_memory_plan_destroy(best);
    tide_lifetimes_deinit(&lt);
}

static int by_size_asc(const void *a, const void *b) { return -tide__by_size_desc(a, b); }
static tide_status place_ascending(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    return tide__plan_color(plan, by_size_asc, TIDE_POOL_RULE_FIRST, err);
}

// S23-13: a pool is enlarged when a bigger tensor joins, which only another order than largest-first can show.
static void a_pool_grows_in_ascending_order(void **state) {
    (void)state;
    static const tide_strategy ascending = {.name = "ascending", .form = TIDE_PLAN_POOLS, .place = place_ascending};
    tide_lifetimes lt = {0};
    put_two_pairs(&lt);
    tide_memory_plan *plan;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_make(&lt, &ascending, NULL, &plan, &err), &err);
    // d (30) makes pool 0, c (40) pool 1; b (50) joins pool 0, a (100) pool 1.
    assert_int_equal(pool_of(plan, "b"), pool_of(plan, "d"));
    assert_int_equal(pool_of(plan, "a"), pool_of(plan, "c"));
    assert_int_equal(plan->pool_list[0].size_bytes, 50);
    assert_int_equal(plan->pool_list[1].size_bytes, 100);
    assert_int_equal(plan->bytes, 150);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/*
 * First gap and best gap: x and y die at step 4 and leave holes of 95 and 85 bytes; z (70) comes then.
 *
 *   bytes      0      100     195     285     370    450
 *   steps 0-3  [a    ][x     ][b     ][y     ][p    ]
 *   steps 4-5  [a    ] z?     [b     ] z?     [p    ]
 */
static void first_gap_and_best_gap_differ(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 100, 0, 6);
    put(&lt, "b", 90, 0, 6);
    put(&lt, "p", 80, 0, 6);
    put(&lt, "x", 95, 0, 4); // lies between a and b
    put(&lt, "y", 85, 0, 4); // lies between b and p
    put(&lt, "z", 70, 4, 6);
    tide_memory_plan *first = make_plan(&lt, "greedy_by_size"), *best = make_plan(&lt, "greedy_by_size_best");
    assert_int_equal(offset_of(first, "a"), 0);
    assert_int_equal(offset_of(first, "x"), 100);
    assert_int_equal(offset_of(first, "b"), 195);
    assert_int_equal(offset_of(first, "y"), 285);
    assert_int_equal(offset_of(first, "p"), 370);
    assert_int_equal(offset_of(first, "z"), 100); // the first gap, of 95
    assert_int_equal(offset_of(best, "z"), 285);  // the smallest gap, of 85
    assert_int_equal(first->bytes, 450);
    tide_memory_plan_destroy(first);
    tide_memory_plan_destroy(best);
    tide_lifetimes_deinit(&lt);
}

/*
 * linear_scan: a and b die at step 2, their bytes merge, and c, larger than either, takes both.
 *
 *   bytes 0      10     30    40
 *   step 0-1  [a    ][b    ][k ]
 *   step 2    [c          ][k ]
 */
static void linear_scan_merges_neighbours(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "b", 20, 0, 2);
    put(&lt, "a", 15, 0, 2);
    put(&lt, "k", 10, 0, 4);
    put(&lt, "c", 35, 2, 4);
    tide_memory_plan *plan = make_plan(&lt, "linear_scan");
    assert_int_equal(offset_of(plan, "b"), 0);
    assert_int_equal(offset_of(plan, "a"), 20);
    assert_int_equal(offset_of(plan, "k"), 35);
    assert_int_equal(offset_of(plan, "c"), 0);
    assert_int_equal(plan->bytes, 45);
    assert_true(plan->proven);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// The free block at the end of the buffer is used up before the buffer grows.
static void linear_scan_grows_from_the_free_end(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 20, 0, 3);
    put(&lt, "b", 10, 0, 1);
    put(&lt, "c", 30, 1, 3);
    tide_memory_plan *plan = make_plan(&lt, "linear_scan");
    assert_int_equal(offset_of(plan, "c"), 20);
    assert_int_equal(plan->bytes, 50);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// greedy_by_breadth takes the small tensors of the broad step before the large one of a narrow step.
static void breadth_goes_before_size(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "big", 60, 0, 2);
    put(&lt, "p", 50, 1, 3);
    put(&lt, "q", 40, 2, 4);
    put(&lt, "r", 30, 2, 4);
    put(&lt, "s", 20, 2, 4); // step 2: p q r s = 140; step 1: big p = 110
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_breadth");
    assert_int_equal(offset_of(plan, "p"), 0);
    assert_int_equal(offset_of(plan, "q"), 50);
    assert_int_equal(offset_of(plan, "r"), 90);
    assert_int_equal(offset_of(plan, "s"), 120);
    assert_int_equal(offset_of(plan, "big"), 50);
    assert_int_equal(plan->bytes, 140);
    tide_memory_plan_destroy(plan);
    plan = make_plan(&lt, "greedy_by_size");
    assert_int_equal(offset_of(plan, "big"), 0);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

// ---- every plan is sound ----

static void check_all(const tide_lifetimes *lt) {
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *plan;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_plan_make(lt, all[s], NULL, &plan, &err), &err);
        assert_sound(plan);
        assert_true(plan->verified);
        assert_true(plan->bytes >= plan->lower_bound_bytes);
        assert_int_equal(plan->proven, plan->bytes == plan->lower_bound_bytes);
        assert_int_equal(plan->form, all[s]->form);
        if (s == 0) assert_int_equal(plan->bytes, plan->naive_bytes);
        if (plan->form == TIDE_PLAN_POOLS) { // S23-17: the listed pools add up to the total
            uint64_t sum = 0;
            for (size_t p = 0; p < plan->n_pools; p++) sum += plan->pool_list[p].size_bytes;
            assert_int_equal(sum, plan->bytes);
        }
        tide_memory_plan_destroy(plan);
    }
}

// S23-9 for pools, and the same for offsets.
static void every_plan_is_sound(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, tide_rng_below(&rng, 60), 1 + (int64_t)tide_rng_below(&rng, 25), 500, seed % 2 == 1);
        check_all(&lt);
        tide_lifetimes_deinit(&lt);
    }
}

// ---- the algorithms as their sources tell them ----

typedef struct plain_item {
    const tide_lifetime *item;
    uint64_t begin, end; // bytes
    int32_t pool;
} plain_item;

static int by_begin(const void *a, const void *b) {
    const plain_item *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/// The gap for `item`: all that is alive beside it in order of offset, then one look at each gap.
static uint64_t plain_gap(const plain_item *placed, size_t n, const tide_lifetime *item, bool best_fit) {
    plain_item *beside = tide_host_calloc(n + 1, sizeof *beside);
    assert_non_null(beside);
    size_t n_beside = 0;
    for (size_t k = 0; k < n; k++) {
        if (tide_lifetimes_conflict(placed[k].item, item)) beside[n_beside++] = placed[k];
    }
    qsort(beside, n_beside, sizeof *beside, by_begin);
    uint64_t top = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (size_t k = 0; k < n_beside; k++) {
        const uint64_t at = (top + item->align_bytes - 1) / item->align_bytes * item->align_bytes;
        const uint64_t bytes = tide_lifetime_aligned_bytes(item);
        const bool fits = at + bytes <= beside[k].begin && beside[k].begin - at < best_gap;
        if (fits && (best_fit || best == UINT64_MAX)) {
            best = at;
            best_gap = beside[k].begin - at;
        }
        if (beside[k].end > top) top = beside[k].end;
    }
    tide_host_free(beside);
    return best != UINT64_MAX ? best : (top + item->align_bytes - 1) / item->align_bytes * item->align_bytes;
}

/// The lowest pool that holds nothing that is alive beside `item`.
static int32_t plain_pool(const plain_item *placed, size_t n, const tide_lifetime *item) {
    for (int32_t pool = 0;; pool++) {
        bool taken = false;
        for (size_t k = 0; k < n && !taken; k++)
            taken = placed[k].pool == pool && tide_lifetimes_conflict(placed[k].item, item);
        if (!taken) return pool;
    }
}

static void check_against_the_plain_ones(const tide_lifetimes *lt) {
    tide_memory_plan *first = make_plan(lt, "greedy_by_size"), *best = make_plan(lt, "greedy_by_size_best"),
                     *pools = make_plan(lt, "greedy_color");
    tide_worklist work;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__worklist_make(lt, tide__by_size_desc, &work, &err), &err);
    plain_item *a = tide_host_calloc(work.n + 1, sizeof *a), *b = tide_host_calloc(work.n + 1, sizeof *b);
    for (size_t k = 0; k < work.n; k++) {
        const tide_lifetime *item = work.items[k];
        const size_t i = (size_t)(item - lt->items);
        const uint64_t bytes = tide_lifetime_aligned_bytes(item);
        const uint64_t at_first = plain_gap(a, k, item, false), at_best = plain_gap(b, k, item, true);
        assert_int_equal(first->offsets[i], at_first);
        assert_int_equal(best->offsets[i], at_best);
        assert_int_equal(pools->pools[i], plain_pool(a, k, item));
        a[k] = (plain_item){item, at_first, at_first + bytes, pools->pools[i]};
        b[k] = (plain_item){item, at_best, at_best + bytes, 0};
    }
    tide_host_free(a);
    tide_host_free(b);
    tide__worklist_deinit(&work);
    tide_memory_plan_destroy(first);
    tide_memory_plan_destroy(best);
    tide_memory_plan_destroy(pools);
}

/// The short cuts (an index by time where few are alive together, a walk where many are) change no place.
static void short_cuts_change_no_place(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        // From a few neighbours each to some hundred.
        put_random(&lt, &rng, 500, 4 + 40 * (int64_t)(seed % 4), 4000, seed % 2 == 1);
        check_against_the_plain_ones(&lt);
        tide_lifetimes_deinit(&lt);
    }
}

/// 8,000 tensors that are all alive at once have 32 million conflicts: no strategy keeps a table of them.
static void many_conflicts_take_little_memory(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    for (int i = 0; i < 8000; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        put(&lt, name, (uint64_t)(1 + i % 1000), 0, 1);
    }
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_host_stats before, after;
        tide_host_reset_peak();
        tide_host_get_stats(&before);
        const uint64_t t0 = tide_now_ns();
        tide_memory_plan *plan = make_plan(&lt, all[s]->name);
        tide_host_get_stats(&after);
        print_message("%-20s %8.1f ms, %.1f MB\n", all[s]->name, (double)(tide_now_ns() - t0) / 1e6,
                      (double)(after.peak_bytes - before.live_bytes) / 1e6);
        assert_int_equal(plan->bytes, plan->naive_bytes);
        assert_true(after.peak_bytes - before.live_bytes < 8000 * 1000); // 1000 bytes a tensor
        tide_memory_plan_destroy(plan);
    }
    tide_lifetimes_deinit(&lt);
}

static void nothing_to_place(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    check_all(&lt);
    put_persistent(&lt, "w", 10, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 1);
    put(&lt, "empty", 0, 0, 1);
    check_all(&lt);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    assert_int_equal(plan->bytes, 0);
    assert_int_equal(plan->n_pools, 0);
    assert_int_equal(plan->offsets[1], 0);
    assert_true(plan->proven);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void sizes_that_do_not_add_up_are_refused(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", INT64_MAX - 10, 0, 1);
    put(&lt, "b", 11, 1, 2);
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *plan = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_plan_make(&lt, all[s], NULL, &plan, &err), TIDE_ERR_OVERFLOW);
        assert_text_has(err.msg, "'b'");
        assert_null(plan);
    }
    lt.items[1].size_bytes = 10;
    check_all(&lt);
    tide_lifetimes_deinit(&lt);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_rng rng = {4};
    put_random(&lt, &rng, 12, 8, 100, false);
    const tide_strategy *const *all;
    const size_t n_strategies = tide_strategies(&all);
    for (size_t s = 0; s < n_strategies; s++) {
        tide_status st = TIDE_ERR_NOMEM;
        for (int64_t n = 0; st != TIDE_OK; n++) {
            tide_host_stats before, after;
            tide_memory_plan *plan = NULL;
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            st = tide_plan_make(&lt, all[s], NULL, &plan, NULL);
            tide_host_fail_after(-1);
            tide_memory_plan_destroy(plan);
            tide_host_get_stats(&after);
            assert_int_equal(before.n_live, after.n_live);
            if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
        }
    }
    tide_lifetimes_deinit(&lt);
}

// ---- determinism ----

static void shuffle(tide_lifetimes *lt, tide_rng *rng) {
    for (size_t i = lt->n; i > 1; i--) {
        const size_t j = tide_rng_below(rng, i);
        const tide_lifetime t = lt->items[i - 1];
        lt->items[i - 1] = lt->items[j];
        lt->items[j] = t;
    }
}

/// Many equal sizes, so that ties decide.
static void put_ties(tide_lifetimes *lt, tide_rng *rng) {
    for (int i = 0; i < 60; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        const int64_t begin = (int64_t)tide_rng_below(rng, 20);
        put(lt, name, 100 * (1 + tide_rng_below(rng, 3)), begin, begin + 1 + (int64_t)tide_rng_below(rng, 4));
    }
}

// S23-11: 100 runs, each with the tensors listed in another order: the same place for every name.
static void the_order_of_listing_changes_nothing(void **state) {
    (void)state;
    tide_rng rng = {11};
    tide_lifetimes lt = {0};
    put_ties(&lt, &rng);
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *want = make_plan(&lt, all[s]->name);
        for (int run = 0; run < 100; run++) {
            tide_lifetimes other;
            assert_tide_status(tide_lifetimes_copy(&lt, &other, NULL), TIDE_OK);
            if (run > 0) shuffle(&other, &rng);
            tide_memory_plan *plan = make_plan(&other, all[s]->name);
            assert_int_equal(plan->bytes, want->bytes);
            assert_int_equal(plan->n_pools, want->n_pools);
            for (size_t i = 0; i < lt.n; i++) {
                assert_int_equal(offset_of(plan, lt.items[i].name), want->offsets[i]);
                assert_int_equal(pool_of(plan, lt.items[i].name), want->pools[i]);
            }
            tide_memory_plan_destroy(plan);
            tide_lifetimes_deinit(&other);
        }
        tide_memory_plan_destroy(want);
    }
    tide_lifetimes_deinit(&lt);
}

// ---- pools as offsets ----

// a pool plan laid end to end passes the same checker and has the same bytes.
static void a_pool_plan_becomes_an_offset_plan(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, 40, 15, 300, seed % 2 == 1);
        tide_memory_plan *pools = make_plan(&lt, "greedy_color"), *flat;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_plan_pools_to_offsets(pools, &flat, &err), &err);
        assert_int_equal(flat->form, TIDE_PLAN_OFFSETS);
        assert_int_equal(flat->bytes, pools->bytes);
        assert_int_equal(flat->n_pools, 0);
        assert_true(flat->verified);
        assert_sound(flat);
        for (size_t i = 0; i < lt.n; i++) {
            assert_int_equal(flat->offsets[i], pools->offsets[i]);
            assert_int_equal(flat->pools[i], TIDE_NO_POOL);
        }
        tide_memory_plan_destroy(flat);
        tide_memory_plan_destroy(pools);
        tide_lifetimes_deinit(&lt);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_are_found_and_slips_are_told),
        tide_unit_test(first_pool_and_best_pool_differ),
        tide_unit_test(a_pool_grows_in_ascending_order),
        tide_unit_test(first_gap_and_best_gap_differ),
        tide_unit_test(linear_scan_merges_neighbours),
        tide_unit_test(linear_scan_grows_from_the_free_end),
        tide_unit_test(breadth_goes_before_size),
        tide_unit_test(every_plan_is_sound),
        tide_unit_test(short_cuts_change_no_place),
        tide_unit_test(many_conflicts_take_little_memory),
        tide_unit_test(nothing_to_place),
        tide_unit_test(sizes_that_do_not_add_up_are_refused),
        tide_unit_test(no_memory_leaves_nothing),
        tide_unit_test(the_order_of_listing_changes_nothing),
        tide_unit_test(a_pool_plan_becomes_an_offset_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
