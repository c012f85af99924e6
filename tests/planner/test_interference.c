// SPDX-License-Identifier: MIT
//
// planner/interference: which tensors conflict (S23-7) and the graph of it (S23-8).
#include "tests/planner/plan_test.h"

/// Whether some step sees both alive: the brute-force timeline.
static bool meet_on_timeline(const tide_lifetime *a, const tide_lifetime *b, int64_t n_steps) {
    for (int64_t step = 0; step < n_steps; step++) {
        // The seed's closed intervals: birth and death are both steps in which the tensor is there.
        const bool a_there = a->begin_step <= step && step <= a->end_step - 1;
        const bool b_there = b->begin_step <= step && step <= b->end_step - 1;
        if (a_there && b_there) return true;
    }
    return false;
}

// S23-7: 100,000 random pairs against the timeline.
static void conflict_is_meeting_on_the_timeline(void **state) {
    (void)state;
    tide_rng rng = {23};
    const int64_t n_steps = 24;
    size_t n_conflicts = 0, n_touching = 0;
    for (int i = 0; i < 100000; i++) {
        const int64_t a0 = (int64_t)tide_rng_below(&rng, 20), b0 = (int64_t)tide_rng_below(&rng, 20);
        const tide_lifetime a = an_item("a", 1, 1, a0, a0 + 1 + (int64_t)tide_rng_below(&rng, 4));
        const tide_lifetime b = an_item("b", 1, 1, b0, b0 + 1 + (int64_t)tide_rng_below(&rng, 4));
        const bool meet = meet_on_timeline(&a, &b, n_steps);
        assert_int_equal(tide_lifetimes_conflict(&a, &b), meet);
        assert_int_equal(tide_lifetimes_conflict(&b, &a), meet);
        n_conflicts += meet;
        // S23-7 in the seed's words: closed ends that touch do conflict.
        if (a.end_step - 1 == b.begin_step) {
            assert_true(tide_lifetimes_conflict(&a, &b));
            n_touching++;
        }
    }
    assert_true(n_conflicts > 10000 && n_touching > 1000);
}

static void no_conflict_with_the_persistent_the_empty_and_oneself(void **state) {
    (void)state;
    tide_lifetime a = an_item("a", 4, 1, 0, 4), b = an_item("b", 4, 1, 1, 2);
    assert_true(tide_lifetimes_conflict(&a, &b));
    assert_false(tide_lifetimes_conflict(&a, &a));
    b.persistent = true;
    assert_false(tide_lifetimes_conflict(&a, &b));
    b.persistent = false;
    b.size_bytes = 0;
    assert_false(tide_lifetimes_conflict(&a, &b));
}

// S23-8: the graph is the relation, symmetric, without self edges, neighbours ascending.
static void the_graph_is_the_relation(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, 60, 20, 1000, false);
        tide_interference *g;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_interference_build(&lt, &g, &err), &err);
        size_t n_ends = 0;
        for (size_t a = 0; a < lt.n; a++) {
            assert_false(tide_interference_has_edge(g, a, a));
            for (size_t b = 0; b < lt.n; b++) {
                const bool want = tide_lifetimes_conflict(&lt.items[a], &lt.items[b]);
                assert_int_equal(tide_interference_has_edge(g, a, b), want);
                n_ends += want;
            }
            const uint32_t *neighbours;
            const size_t n = tide_interference_neighbours(g, a, &neighbours);
            for (size_t k = 0; k < n; k++) {
                assert_true(tide_interference_has_edge(g, a, neighbours[k]));
                assert_true(k == 0 || neighbours[k - 1] < neighbours[k]);
            }
        }
        assert_int_equal(tide_interference_n_edges(g) * 2, n_ends);
        tide_interference_destroy(g);
        tide_lifetimes_deinit(&lt);
    }
}

static void out_of_range_has_no_edges(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_interference *g;
    assert_tide_status(tide_interference_build(&lt, &g, NULL), TIDE_OK);
    const uint32_t *neighbours;
    assert_int_equal(tide_interference_neighbours(g, 0, &neighbours), 0);
    assert_false(tide_interference_has_edge(g, 0, 1));
    assert_int_equal(tide_interference_n_edges(g), 0);
    tide_interference_destroy(g);
}

// S23-8: 10,000 tensors; the time is printed, not judged.
static void ten_thousand_tensors(void **state) {
    (void)state;
    tide_rng rng = {8};
    tide_lifetimes lt = {0};
    for (int i = 0; i < 10000; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        put(&lt, name, 1, i, i + 1 + (int64_t)tide_rng_below(&rng, 200));
    }
    tide_interference *g;
    const uint64_t t0 = tide_now_ns();
    assert_tide_status(tide_interference_build(&lt, &g, NULL), TIDE_OK);
    print_message("10,000 tensors, %zu conflicts: %.1f ms\n", tide_interference_n_edges(g),
                  (double)(tide_now_ns() - t0) / 1e6);
    assert_true(tide_interference_n_edges(g) > 900000);
    for (size_t a = 0; a < 9999; a++)
        assert_int_equal(tide_interference_has_edge(g, a, a + 1), lt.items[a].end_step > (int64_t)a + 1);
    tide_interference_destroy(g);
    tide_lifetimes_deinit(&lt);
}

/// All alive at once, the edges are every pair: past the limit nothing is built, and no memory is asked for.
static void too_many_edges_are_refused(void **state) {
    (void)state;
    enum { N = 11600 }; // 67,274,200 pairs
    assert_true((uint64_t)N * (N - 1) / 2 > TIDE_INTERFERENCE_MAX_EDGES);
    tide_lifetimes lt = {0};
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        put(&lt, name, 1, i, N + i);
    }
    tide_host_stats before, after;
    tide_host_reset_peak();
    tide_host_get_stats(&before);
    tide_interference *g = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_interference_build(&lt, &g, &err), TIDE_ERR_NO_SPACE);
    assert_text_has(err.msg, "67274200 edges");
    assert_null(g);
    tide_host_get_stats(&after);
    assert_true(after.peak_bytes - before.live_bytes < 1 << 20);
    tide_lifetimes_deinit(&lt);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 1, 0, 2);
    put(&lt, "b", 1, 1, 2);
    tide_status st = TIDE_ERR_NOMEM;
    int64_t n = 0;
    for (; st != TIDE_OK; n++) {
        tide_host_stats before, after;
        tide_interference *g = NULL;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        st = tide_interference_build(&lt, &g, NULL);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) tide_interference_destroy(g);
        tide_host_get_stats(&after);
        assert_int_equal(after.n_live, before.n_live);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_NOMEM);
    }
    assert_true(n > 4);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(conflict_is_meeting_on_the_timeline),
        tide_unit_test(no_conflict_with_the_persistent_the_empty_and_oneself),
        tide_unit_test(the_graph_is_the_relation),
        tide_unit_test(out_of_range_has_no_edges),
        tide_unit_test(ten_thousand_tensors),
        tide_unit_test(too_many_edges_are_refused),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
