// SPDX-License-Identifier: MIT
//
// planner/strategies: what holds for every strategy of the table: plans are sound whatever the lifetimes have, do not
// depend on the order of listing, take no table of pairs, and leave nothing when memory runs out.
#include "planner/plan_json.h"
#include "planner/strategies/orders.h"
#include "tests/planner/lifetimes_test.h"
#include "tests/planner/problem_test.h"

/// Searches end after this many nodes, whatever the clock says.
static const tide_strategy_options few_nodes = {.node_limit = 3000, .n_threads = 1};

static tide_memory_plan *plan_of(const tide_lifetimes *lt, const tide_strategy *strategy) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan;
    assert_tide_ok(tide_plan_make(lt, strategy, &few_nodes, &plan, &err), &err);
    return plan;
}

static bool is_simulation(const tide_strategy *s) { return strncmp(s->name, "sim:", 4) == 0; }
static bool keeps_fixed(const tide_strategy *s) { return s->form == TIDE_PLAN_OFFSETS && !is_simulation(s); }

static void check_all(const tide_lifetimes *lt) {
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *plan;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_plan_make(lt, all[s], &few_nodes, &plan, &err), &err);
        assert_sound(plan);
        assert_true(plan->verified);
        assert_true(plan->bytes >= plan->lower_bound_bytes);
        assert_int_equal(plan->proven, plan->bytes == plan->proved_bytes);
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
    for (uint64_t seed = 0; seed < (uint64_t)tide_test_rounds(50, 400); seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, tide_rng_below(&rng, 60), 1 + (int64_t)tide_rng_below(&rng, 25), 500, seed % 2 == 1);
        check_all(&lt);
        tide_lifetimes_deinit(&lt);
    }
}

/// The same with everything a lifetime can have: gaps, aliases, apart sets, alignments, given offsets. The placement is
/// held against the definition, before the verifier sees it.
static void every_placement_of_shapes_is_sound(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (uint64_t seed = 0; seed < (uint64_t)tide_test_rounds(90, 640); seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        const unsigned what = (unsigned)seed % (RANDOM_ALL + 1);
        put_random_table(&lt, &rng, 1 + tide_rng_below(&rng, 40), 1 + (int64_t)tide_rng_below(&rng, 25), 60, what);
        tide_problems problems;
        assert_tide_ok(tide__problems_make(&lt, &problems, &err), &err);
        for (size_t s = 0; s < n; s++) {
            if ((what & RANDOM_FIXED) && !keeps_fixed(all[s])) continue;
            tide_placement pl;
            assert_int_equal(problems.n, 1);
            assert_tide_ok(tide__placement_init(&pl, &problems.list[0], &err), &err);
            assert_tide_ok(all[s]->place(all[s], &problems.list[0], &few_nodes, &pl, &err), &err);
            if (!tide__placement_is_sound(&pl, &problems.list[0])) fail_msg("%s, seed %d", all[s]->name, (int)seed);
            assert_true(pl.bytes >= problems.list[0].lower_bound_bytes);
            tide__placement_deinit(&pl);
            tide_memory_plan_destroy(plan_of(&lt, all[s]));
        }
        tide__problems_deinit(&problems);
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
        tide_memory_plan *plan = plan_of(&lt, all[s]);
        tide_host_get_stats(&after);
        print_message("%-20s %8.1f ms, %.1f MB\n", all[s]->name, (double)(tide_now_ns() - t0) / 1e6,
                      (double)(after.peak_bytes - before.live_bytes) / 1e6);
        if (!is_simulation(all[s])) assert_int_equal(plan->bytes, plan->naive_bytes);
        assert_true(after.peak_bytes - before.live_bytes < 8000 * 1500); // 1500 bytes a tensor
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
    tide_lifetimes_deinit(&lt);
}

/// Five bytes, 2^62 apart: no strategy may look for the fifth place for ever.
static void offsets_that_cannot_be_written_are_refused(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetime item = an_item("far", 1, UINT64_C(1) << 62, 0, 2);
    item.unrounded = true;
    for (size_t i = 0; i < 5; i++) assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *plan = NULL;
        assert_tide_status(tide_plan_make(&lt, all[s], NULL, &plan, &err), TIDE_ERR_OVERFLOW);
        assert_text_has(err.msg, "'far'");
        assert_null(plan);
    }
    tide_lifetimes_deinit(&lt);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_rng rng = {4};
    put_random_table(&lt, &rng, 14, 8, 100, RANDOM_ALL & ~RANDOM_FIXED);
    const tide_strategy *const *all;
    const size_t n_strategies = tide_strategies(&all);
    for (size_t s = 0; s < n_strategies; s++) {
        tide_status st = TIDE_ERR_NOMEM;
        for (int64_t n = 0; st != TIDE_OK; n++) {
            tide_host_stats before, after;
            tide_memory_plan *plan = NULL;
            tide_host_get_stats(&before);
            tide_host_fail_after(n);
            st = tide_plan_make(&lt, all[s], &few_nodes, &plan, NULL);
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

/// List the tensors in another order; aliases and sets go with them, the sets under other numbers.
static void shuffle(tide_lifetimes *lt, tide_rng *rng) {
    uint32_t *now_at = tide_host_calloc(lt->n, 2 * sizeof *now_at), *was_at = now_at + lt->n;
    for (uint32_t i = 0; i < lt->n; i++) was_at[i] = i;
    for (size_t i = lt->n; i > 1; i--) {
        const size_t j = tide_rng_below(rng, i);
        const tide_lifetime t = lt->items[i - 1];
        const uint32_t w = was_at[i - 1];
        lt->items[i - 1] = lt->items[j];
        lt->items[j] = t;
        was_at[i - 1] = was_at[j];
        was_at[j] = w;
    }
    for (uint32_t i = 0; i < lt->n; i++) now_at[was_at[i]] = i;
    for (uint32_t i = 0; i < lt->n; i++) {
        tide_lifetime *item = &lt->items[i];
        if (item->alias != TIDE_ALIAS_NONE) item->alias_of = now_at[item->alias_of];
        if (item->apart_set != 0) item->apart_set = 9 - item->apart_set;
    }
    tide_host_free(now_at);
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

/// All of the plan but how long it took, as text.
static tide_text text_of(tide_memory_plan *plan) {
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    plan->time_ns = 0;
    assert_tide_ok(tide_plan_to_json((const tide_memory_plan *const *)&plan, 1, NULL, &out, &err), &err);
    return out;
}

static void assert_same_bytes(tide_memory_plan *a, tide_memory_plan *b) {
    tide_text x = text_of(a), y = text_of(b);
    assert_string_equal(x.data, y.data);
    tide_text_deinit(&x);
    tide_text_deinit(&y);
}

static void assert_same_places(const tide_memory_plan *plan, const tide_memory_plan *want) {
    assert_int_equal(plan->bytes, want->bytes);
    assert_int_equal(plan->proved_bytes, want->proved_bytes);
    assert_int_equal(plan->n_pools, want->n_pools);
    for (size_t i = 0; i < want->lifetimes.n; i++) {
        const size_t k = index_of(&plan->lifetimes, want->lifetimes.items[i].name);
        assert_int_equal(plan->offsets[k], want->offsets[i]);
        assert_int_equal(plan->pools[k], want->pools[i]);
    }
}

/// 100 runs: every other one of the very same table, on one thread or two, the rest with the tensors in another order.
static void run_a_hundred_times(const tide_lifetimes *lt, const tide_strategy *strategy, tide_rng *rng) {
    tide_memory_plan *want = plan_of(lt, strategy), *plan;
    for (uint32_t run = 0; run < 100; run++) {
        const tide_strategy_options opt = {.node_limit = few_nodes.node_limit, .n_threads = 1 + run / 2 % 2};
        tide_lifetimes other;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_lifetimes_copy(lt, &other, &err), &err);
        if (run % 2 != 0) shuffle(&other, rng);
        assert_tide_ok(tide_plan_make(&other, strategy, &opt, &plan, &err), &err);
        if (run % 2 == 0) assert_same_bytes(plan, want);
        assert_same_places(plan, want);
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&other);
    }
    tide_memory_plan_destroy(want);
}

// S23-11: for every strategy, on a table in which ties decide, and on one of everything a lifetime can have, in several
// buffers: the same plan byte for byte, and, however the tensors are listed, the same place for every name.
static void the_order_of_listing_changes_nothing(void **state) {
    (void)state;
    tide_rng rng = {11};
    tide_lifetimes ties = {0}, features = {0};
    put_ties(&ties, &rng);
    put_every_feature(&features, &rng, 40);
    for (size_t i = 0; i < features.n; i++) features.items[i].fixed = false; // not every strategy keeps these
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        run_a_hundred_times(&ties, all[s], &rng);
        run_a_hundred_times(&features, all[s], &rng);
    }
    tide_lifetimes_deinit(&ties);
    tide_lifetimes_deinit(&features);
}

// ---- pools as offsets ----

// a pool plan of every strategy that makes them, laid end to end, passes the same checker and has the same bytes.
static void a_pool_plan_becomes_an_offset_plan(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    size_t n_flat = 0;
    for (uint64_t seed = 0; seed < 70 * n; seed++) {
        if (all[seed % n]->form != TIDE_PLAN_POOLS) continue;
        n_flat++;
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, 40, 15, 300, seed / n % 2 == 1);
        tide_memory_plan *pools = plan_of(&lt, all[seed % n]), *flat;
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
    assert_int_equal(n_flat, 3 * 70); // greedy_color, …_best, …_given
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_plan_is_sound),
        tide_unit_test(every_placement_of_shapes_is_sound),
        tide_unit_test(many_conflicts_take_little_memory),
        tide_unit_test(nothing_to_place),
        tide_unit_test(sizes_that_do_not_add_up_are_refused),
        tide_unit_test(offsets_that_cannot_be_written_are_refused),
        tide_unit_test(no_memory_leaves_nothing),
        tide_unit_test(the_order_of_listing_changes_nothing),
        tide_unit_test(a_pool_plan_becomes_an_offset_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
