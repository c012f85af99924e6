// SPDX-License-Identifier: MIT
//
// planner/search/skyline: finds a plan at every capacity that has one, says of every other that it has none, under
// every rule and order; where alignments differ as well. Claims nothing where shapes are not plain.
#include "planner/search/skyline.h"

#include "core/base/text.h"
#include "tests/planner/problem_test.h"
#include "tests/planner/search_case.h"

typedef struct fixture {
    tide_problem problem;
    tide_sky_part part;
    tide_sky_tree *tree;
    uint32_t *items, *offsets;
} fixture;

/// Takes the problem.
static void open_case(fixture *f, tide_problem problem) {
    tide_error err = TIDE_ERROR_INIT;
    *f = (fixture){.problem = problem};
    f->items = tide_host_calloc(problem.n, sizeof *f->items);
    f->offsets = tide_host_calloc(problem.n, sizeof *f->offsets);
    for (uint32_t i = 0; i < problem.n; i++) f->items[i] = i;
    assert_tide_ok(tide__sky_part_make(&f->problem, f->items, problem.n, &f->part, &err), &err);
    assert_tide_ok(tide__sky_tree_create(&f->part, &f->tree, &err), &err);
}

static void close_case(fixture *f) {
    tide__sky_tree_destroy(f->tree);
    tide__sky_part_deinit(&f->part);
    tide__problem_deinit(&f->problem);
    tide_host_free(f->items);
    tide_host_free(f->offsets);
}

static tide_sky_probe draw_probe(tide_rng *rng, uint32_t capacity) {
    tide_sky_probe probe = {.capacity = capacity, .node_limit = UINT64_MAX, .seed = tide_rng_u64(rng)};
    probe.rule = (tide_sky_rule)tide_rng_below(rng, TIDE_SKY_N_RULES);
    probe.fit = (tide_sky_fit)tide_rng_below(rng, TIDE_SKY_N_FITS);
    for (int k = 0; k < TIDE_SKY_KEY_LENGTH; k++) {
        probe.key[k] = (tide_sky_trait)tide_rng_below(rng, TIDE_SKY_N_TRAITS);
    }
    return probe;
}

static void assert_is_plan(const fixture *f, uint64_t capacity_bytes) {
    tide_placement pl;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__placement_init(&pl, &f->problem, &err), &err);
    for (size_t i = 0; i < f->problem.n; i++) pl.offsets[i] = f->offsets[i] * f->part.grain_bytes;
    tide__placement_measure(&pl, &f->problem);
    assert_true(pl.bytes <= capacity_bytes);
    assert_true(tide__placement_is_sound(&pl, &f->problem));
    tide__placement_deinit(&pl);
}

/// Capacities around the optimum: found from it on, exhausted below. @return whether the optimum is above the bound
static bool try_around(tide_problem problem, tide_rng *rng, int n_probes) {
    const uint64_t optimum = brute_optimum(&problem);
    fixture f;
    open_case(&f, problem);
    assert_true(f.part.exact);
    assert_int_equal(optimum % f.part.grain_bytes, 0);
    const uint64_t at = optimum / f.part.grain_bytes;
    for (int k = 0; k < n_probes; k++) {
        const uint64_t above = tide_rng_below(rng, 3), below = tide_rng_below(rng, 3);
        const uint64_t capacity = above > 0 ? at + above - 1 : (at > below ? at - 1 - below : 0);
        const tide_sky_probe probe = draw_probe(rng, (uint32_t)capacity);
        uint64_t n_nodes;
        const tide_sky_result got = tide__sky_tree_run(f.tree, &probe, f.offsets, &n_nodes);
        assert_int_equal(got, capacity >= at ? TIDE_SKY_FOUND : TIDE_SKY_EXHAUSTED);
        if (got == TIDE_SKY_FOUND) assert_is_plan(&f, capacity * f.part.grain_bytes);
    }
    const bool is_above = at > f.part.bound;
    close_case(&f);
    return is_above;
}

static void agrees_with_every_order(void **state) {
    (void)state;
    tide_rng rng = {1};
    for (int k = 0; k < tide_test_rounds(700, 6000); k++) try_around(tight_problem(&rng, 8, false), &rng, 6);
    for (int k = 0; k < tide_test_rounds(170, 1500); k++) try_around(tight_problem(&rng, 9, false), &rng, 6);
}

/// One item is higher than half the bound: then it happens now and then that no plan meets it.
static tide_problem top_heavy_problem(tide_rng *rng) {
    for (;;) {
        tide_problem p = tight_problem(rng, 12, false);
        uint64_t highest = 0;
        for (size_t i = 0; i < p.n; i++) highest = p.items[i].size_bytes > highest ? p.items[i].size_bytes : highest;
        if (p.n >= 8 && highest * 2 > p.lower_bound_bytes && p.lower_bound_bytes > 12) return p;
        tide__problem_deinit(&p);
    }
}

static void proves_where_the_bound_is_out_of_reach(void **state) {
    (void)state;
    tide_rng rng = {2};
    size_t n_above = 0;
    const int n = tide_test_rounds(500, 4000);
    for (int k = 0; k < n; k++) n_above += try_around(top_heavy_problem(&rng), &rng, 4);
    assert_true(n_above > 0);
    print_message("%zu of %d have no plan at the bound\n", n_above, n);
}

static void agrees_where_alignments_differ(void **state) {
    (void)state;
    tide_rng rng = {3};
    size_t n_above = 0;
    const int n = tide_test_rounds(500, 4000);
    for (int k = 0; k < n; k++) n_above += try_around(tight_problem(&rng, 7, true), &rng, 4);
    assert_true(n_above > (size_t)n / 10);
}

/// See carried_problem: their best plans leave bytes free, and none of that height does without.
static void some_bytes_must_be_left_free(void **state) {
    (void)state;
    tide_rng rng = {10};
    for (int which = 0; which < 2; which++) {
        fixture f;
        open_case(&f, carried_problem(which, 1, 0));
        const uint32_t optimum = CARRIED_OPTIMUM[which];
        for (int turn = 0; turn < 100; turn++) {
            const tide_sky_probe probe = draw_probe(&rng, optimum - (turn % 2 != 0));
            const tide_sky_result got = tide__sky_tree_run(f.tree, &probe, f.offsets, NULL);
            assert_int_equal(got, turn % 2 != 0 ? TIDE_SKY_EXHAUSTED : TIDE_SKY_FOUND);
            if (got == TIDE_SKY_FOUND) assert_is_plan(&f, optimum);
        }
        close_case(&f);
    }
}

/// Larger than every order could be tried of: but whichever section each node takes, the answers are the same.
static void rules_agree_with_each_other(void **state) {
    (void)state;
    tide_rng rng = {9};
    size_t n_found = 0, n_exhausted = 0;
    const int n = tide_test_rounds(170, 1500);
    for (int k = 0; k < n; k++) {
        fixture f;
        open_case(&f, loose_problem(&rng, 9 + tide_rng_below(&rng, 9)));
        for (uint32_t capacity = f.part.bound; capacity < f.part.bound + 3; capacity++) {
            bool is_found = false, is_exhausted = false;
            for (int turn = 0; turn < 6; turn++) {
                tide_sky_probe probe = draw_probe(&rng, capacity);
                probe.rule = (tide_sky_rule)(turn % TIDE_SKY_N_RULES);
                probe.node_limit = 3000;
                const tide_sky_result got = tide__sky_tree_run(f.tree, &probe, f.offsets, NULL);
                is_found = is_found || got == TIDE_SKY_FOUND;
                is_exhausted = is_exhausted || got == TIDE_SKY_EXHAUSTED;
            }
            assert_false(is_found && is_exhausted);
            n_found += is_found;
            n_exhausted += is_exhausted;
            if (is_found) break;
        }
        close_case(&f);
    }
    print_message("%zu found, %zu exhausted\n", n_found, n_exhausted);
    assert_true(n_found > (size_t)n * 2 / 3 && n_exhausted > (size_t)n / 30);
}

static void cut_rectangles_are_found(void **state) {
    (void)state;
    tide_rng rng = {4};
    size_t n_found = 0;
    for (int k = 0; k < 20; k++) {
        fixture f;
        open_case(&f, cut_problem(&rng, 60 + 4 * (size_t)k, 500));
        assert_int_equal(f.part.bound * f.part.grain_bytes, 1 << 20);
        tide_sky_probe probe = draw_probe(&rng, f.part.bound);
        probe.rule = TIDE_SKY_WEIGHTED;
        probe.node_limit = 20000;
        const tide_sky_result got = tide__sky_tree_run(f.tree, &probe, f.offsets, NULL);
        assert_int_not_equal(got, TIDE_SKY_EXHAUSTED);
        if (got == TIDE_SKY_FOUND) {
            assert_is_plan(&f, 1 << 20);
            n_found++;
        }
        close_case(&f);
    }
    assert_true(n_found >= 15);
}

/// The dead ends that a probe met at least for a plan as high as the one in f->offsets.
static uint64_t least_dead_ends(const fixture *f, const tide_sky_probe *probe) {
    const uint32_t step = f->part.bound / 512 + 1;
    uint32_t height = probe->capacity;
    for (uint32_t i = 0; i < f->part.n; i++) {
        const uint32_t end = f->offsets[i] + f->part.size[i];
        height = end > height ? end : height;
    }
    return (uint64_t)((height - probe->capacity + step - 1) / step) * probe->relax_after;
}

/// Where the capacity may rise, one descent ends in a plan, and what it has not tried proves nothing. Each rise takes
/// as many dead ends as the first.
static void a_capacity_that_rises_ends_in_a_plan(void **state) {
    (void)state;
    tide_rng rng = {8};
    size_t n_risen = 0;
    for (int k = 0; k < 60; k++) {
        fixture f;
        open_case(&f, cut_problem(&rng, 40 + 5 * (size_t)k, 500));
        tide_sky_probe probe = draw_probe(&rng, f.part.bound);
        probe.max_capacity = 4 * f.part.bound;
        probe.relax_after = 1 + (uint32_t)tide_rng_below(&rng, 8);
        uint64_t n_nodes;
        assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, &n_nodes), TIDE_SKY_FOUND);
        assert_true(n_nodes >= least_dead_ends(&f, &probe));
        assert_is_plan(&f, (uint64_t)probe.max_capacity * f.part.grain_bytes);
        for (uint32_t i = 0; i < f.part.n; i++) n_risen += f.offsets[i] + f.part.size[i] > probe.capacity;
        probe.max_capacity = f.part.bound + 1; // no room to rise
        probe.node_limit = 5000;
        assert_int_not_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, NULL), TIDE_SKY_EXHAUSTED);
        close_case(&f);
    }
    assert_true(n_risen > 0);
}

/// What a probe costs is counted, and can be what ends it.
static void work_ends_a_probe(void **state) {
    (void)state;
    tide_rng rng = {9};
    fixture f;
    open_case(&f, cut_problem(&rng, 300, 60));
    tide_sky_probe probe = draw_probe(&rng, f.part.bound);
    probe.work_limit = 20000;
    assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, NULL), TIDE_SKY_LIMIT);
    const uint64_t work = tide__sky_tree_work(f.tree);
    assert_true(work >= 20000 && work < 20000 + 4 * ((uint64_t)f.part.n + f.part.n_sections));
    assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, NULL), TIDE_SKY_LIMIT);
    assert_int_equal(tide__sky_tree_work(f.tree), work);
    close_case(&f);
}

static void limits_end_a_probe(void **state) {
    (void)state;
    tide_rng rng = {5};
    fixture f;
    open_case(&f, cut_problem(&rng, 300, 60));
    tide_sky_probe probe = draw_probe(&rng, f.part.bound);
    uint64_t n_nodes;
    probe.node_limit = 100;
    assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, &n_nodes), TIDE_SKY_LIMIT);
    assert_int_equal(n_nodes, 100);
    atomic_bool stop;
    atomic_init(&stop, true);
    probe.node_limit = UINT64_MAX;
    probe.stop = &stop;
    assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, &n_nodes), TIDE_SKY_LIMIT);
    assert_int_equal(n_nodes, 0);
    probe.stop = NULL;
    probe.deadline_ns = 1;
    assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, &n_nodes), TIDE_SKY_LIMIT);
    probe.capacity = f.part.bound - 1;
    assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, &n_nodes), TIDE_SKY_EXHAUSTED);
    close_case(&f);
}

static void the_same_again(void **state) {
    (void)state;
    tide_rng rng = {6};
    fixture f;
    open_case(&f, cut_problem(&rng, 120, 200));
    for (int k = 0; k < 10; k++) {
        tide_sky_probe probe = draw_probe(&rng, f.part.bound + f.part.bound / 10);
        probe.node_limit = 3000;
        uint64_t first_nodes, again_nodes;
        uint32_t first[CASE_MAX_ITEMS];
        const tide_sky_result got = tide__sky_tree_run(f.tree, &probe, f.offsets, &first_nodes);
        memcpy(first, f.offsets, f.part.n * sizeof *first);
        assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, &again_nodes), got);
        assert_int_equal(first_nodes, again_nodes);
        if (got == TIDE_SKY_FOUND) assert_memory_equal(first, f.offsets, f.part.n * sizeof *first);
    }
    close_case(&f);
}

/// Gaps, parts, fixed offsets: what is found is a plan, and what is not is no proof.
static void other_shapes_prove_nothing(void **state) {
    (void)state;
    size_t n_found = 0, n_shaped = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        tide_problems problems;
        tide_error err = TIDE_ERROR_INIT;
        put_random_table(&lt, &rng, 2 + tide_rng_below(&rng, 12), 12, 40, (unsigned)seed % (RANDOM_ALL + 1));
        assert_tide_ok(tide__problems_make(&lt, &problems, &err), &err);
        tide_lifetimes_deinit(&lt);
        fixture f;
        open_case(&f, problems.list[0]);
        assert_true(f.part.exact == f.problem.plain);
        n_shaped += !f.problem.plain;
        tide_sky_probe probe = draw_probe(&rng, (uint32_t)(f.problem.proved_bytes / f.part.grain_bytes) * 3 / 2);
        probe.node_limit = 2000;
        if (tide__sky_tree_run(f.tree, &probe, f.offsets, NULL) == TIDE_SKY_FOUND) {
            assert_is_plan(&f, probe.capacity * f.part.grain_bytes);
            n_found++;
        }
        problems.list[0] = (tide_problem){0};
        close_case(&f);
        tide__problems_deinit(&problems);
    }
    assert_true(n_found > 200 && n_shaped > 200);
}

/// A way down of long-lived items holds as much as all of them have sections: it ends before that takes the machine.
static void a_path_has_an_end(void **state) {
    (void)state;
    enum { N = 12000, LONG = N / 2, MOST_BYTES = 200 << 20 };
    tide_item *items = tide_host_calloc(N, sizeof *items);
    for (uint32_t i = 0; i < N; i++) items[i] = case_item(i, i + LONG, 256);
    fixture f;
    open_case(&f, case_problem(items, N));
    tide_host_free(items);
    const tide_sky_probe probe = {
        .capacity = f.part.bound, .max_capacity = 4 * f.part.bound, .relax_after = 1, .node_limit = UINT64_MAX};
    uint64_t n_nodes;
    tide_host_stats stats;
    assert_int_equal(tide__sky_tree_run(f.tree, &probe, f.offsets, &n_nodes), TIDE_SKY_LIMIT);
    tide_host_get_stats(&stats);
    print_message("%llu nodes, %llu bytes\n", (unsigned long long)n_nodes, (unsigned long long)stats.live_bytes);
    assert_true(n_nodes > 100 && n_nodes < N && stats.live_bytes < MOST_BYTES);
    close_case(&f);
}

static void out_of_memory_leaks_nothing(void **state) {
    (void)state;
    tide_rng rng = {7};
    for (int aligned = 0; aligned < 2; aligned++) {
        tide_problem p = tight_problem(&rng, 9, aligned != 0);
        uint32_t items[CASE_MAX_ITEMS], offsets[CASE_MAX_ITEMS];
        for (uint32_t i = 0; i < p.n; i++) items[i] = i;
        tide_status st = TIDE_ERR_NOMEM;
        int64_t n = 0;
        for (; st != TIDE_OK; n++) {
            tide_sky_part part;
            tide_sky_tree *tree;
            tide_host_fail_after(n);
            st = tide__sky_part_make(&p, items, p.n, &part, NULL);
            if (st != TIDE_OK) continue;
            st = tide__sky_tree_create(&part, &tree, NULL);
            if (st == TIDE_OK) {
                const tide_sky_probe probe = draw_probe(&rng, UINT32_MAX - 1);
                const tide_sky_result got = tide__sky_tree_run(tree, &probe, offsets, NULL);
                if (got == TIDE_SKY_NOMEM) st = TIDE_ERR_NOMEM;
                tide__sky_tree_destroy(tree);
            }
            tide__sky_part_deinit(&part);
        }
        tide_host_fail_after(-1);
        assert_true(n > 8);
        tide__problem_deinit(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(agrees_with_every_order),
        tide_unit_test(proves_where_the_bound_is_out_of_reach),
        tide_unit_test(agrees_where_alignments_differ),
        tide_unit_test(some_bytes_must_be_left_free),
        tide_unit_test(rules_agree_with_each_other),
        tide_unit_test(cut_rectangles_are_found),
        tide_unit_test(a_capacity_that_rises_ends_in_a_plan),
        tide_unit_test(work_ends_a_probe),
        tide_unit_test(limits_end_a_probe),
        tide_unit_test(the_same_again),
        tide_unit_test(other_shapes_prove_nothing),
        tide_unit_test(a_path_has_an_end),
        tide_unit_test(out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
