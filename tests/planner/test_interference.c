// SPDX-License-Identifier: MIT
//
// planner/interference: which tensors conflict (S23-7) and the graph of it (S23-8), with all that a table can hold.
#include "core/base/assert.h"
#include "tests/planner/verify_test.h"

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
    b.device.index = 1;
    assert_false(tide_lifetimes_conflict(&a, &b));
    b.device.index = 0;
    b.kind = TIDE_KIND_KV_CACHE;
    assert_false(tide_lifetimes_conflict(&a, &b));
    b.kind = a.kind;
    tide_gap gap = {1, 2, 0, 0}; // all of the other's life
    a.gaps = &gap;
    a.n_gaps = 1;
    assert_false(tide_lifetimes_conflict(&a, &b));
    gap.hi_bytes = 1;
    assert_true(tide_lifetimes_conflict(&a, &b));
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

// ---- gaps, aliases, apart sets ----

/// Steps at which some byte is needed.
static bool def_is_needed(const tide_lifetime *item, int64_t step) {
    for (uint64_t x = 0; x < item->size_bytes; x++) {
        if (def_needs(item, step, x)) return true;
    }
    return false;
}

static bool def_may_not_share(const tide_lifetimes *lt, size_t a, size_t b) {
    const tide_lifetime *x = &lt->items[a], *y = &lt->items[b];
    uint64_t inside;
    const size_t a_root = def_root(lt, a, &inside), b_root = def_root(lt, b, &inside);
    if (x->persistent || y->persistent || x->size_bytes == 0 || y->size_bytes == 0) return false;
    if (a_root == b_root || x->kind != y->kind || x->device.type != y->device.type) return false;
    const uint32_t set = lt->items[a_root].apart_set;
    if (set != 0 && set == lt->items[b_root].apart_set) return true;
    for (int64_t step = 0; step < lt->n_steps; step++) {
        if (def_is_needed(x, step) && def_is_needed(y, step)) return true;
    }
    return false;
}

// S23-7, S23-8: an edge where two tensors may not share bytes, and nowhere else.
static void the_graph_knows_gaps_aliases_and_apart_sets(void **state) {
    (void)state;
    size_t n_edges = 0, n_pairs = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_all_features(&lt, &rng, 1 + tide_rng_below(&rng, 30), 9, 12);
        tide_interference *g;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_interference_build(&lt, &g, &err), &err);
        size_t n_ends = 0;
        for (size_t a = 0; a < lt.n; a++) {
            for (size_t b = 0; b < lt.n; b++) {
                const bool want = def_may_not_share(&lt, a, b);
                if (tide_interference_has_edge(g, a, b) != want || tide_lifetimes_may_not_share(&lt, a, b) != want)
                    fail_msg("seed %" PRIu64 ": '%s' and '%s' %s", seed, lt.items[a].name, lt.items[b].name,
                             want ? "may not share" : "may share");
                n_ends += want;
                n_pairs++;
            }
        }
        // Each edge once, though two with gaps may meet many times.
        assert_int_equal(tide_interference_n_edges(g) * 2, n_ends);
        n_edges += n_ends / 2;
        tide_interference_destroy(g);
        tide_lifetimes_deinit(&lt);
    }
    print_message("%zu pairs, %zu edges\n", n_pairs, n_edges);
    assert_true(n_edges > 10000 && n_edges * 4 < n_pairs);
}

/// What has no edge may lie in one place, and what has one may not: the verifier says so too.
static void no_edge_means_one_place(void **state) {
    (void)state;
    size_t n_shared = 0;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_featured(&lt, &rng, 0, 9, 12);
        put_featured(&lt, &rng, 1, 9, 12);
        for (size_t i = 0; i < 2; i++) {
            lt.items[i].fixed = false;
            for (uint32_t k = 0; k < lt.items[i].n_gaps; k++) { // nothing or everything: no halves
                tide_gap *gap = &lt.items[i].gaps[k];
                gap->hi_bytes = gap->lo_bytes == 0 ? lt.items[i].size_bytes : gap->lo_bytes;
                if (gap->hi_bytes != gap->lo_bytes) gap->lo_bytes = 0;
            }
            if (!def_ever_needs(&lt.items[i])) lt.items[i].n_gaps = 0;
        }
        tide_memory_plan *p = bare_plan(&lt, "one place", TIDE_PLAN_OFFSETS);
        for (size_t i = 0; i < 2; i++) {
            if (!lt.items[i].persistent) p->offsets[i] = 0;
        }
        settle(p);
        const bool same = def_buffer_of(p, 0) == def_buffer_of(p, 1);
        const bool sound = tide_plan_verify(p, NULL, NULL) == TIDE_OK;
        assert_int_equal(sound, !tide_lifetimes_may_not_share(&lt, 0, 1));
        n_shared += sound && same;
        tide_memory_plan_destroy(p);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_shared > 200);
}

static void many_aliases_of_one_tensor_have_no_edges(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "whole", 8, 0, 4);
    tide_error err = TIDE_ERROR_INIT;
    for (uint32_t i = 1; i < 1000; i++) { // a chain
        char name[16];
        snprintf(name, sizeof name, "v%u", i);
        put(&lt, name, 8, 0, 4);
        assert_tide_ok(tide_lifetimes_alias(&lt, i, TIDE_ALIAS_VIEW, i - 1, 0, &err), &err);
    }
    put(&lt, "other", 8, 3, 4);
    tide_interference *g;
    assert_tide_ok(tide_interference_build(&lt, &g, &err), &err);
    assert_int_equal(tide_interference_n_edges(g), 1000);
    const uint32_t *neighbours;
    assert_int_equal(tide_interference_neighbours(g, 1000, &neighbours), 1000);
    assert_int_equal(tide_interference_neighbours(g, 500, &neighbours), 1);
    assert_int_equal(neighbours[0], 1000);
    tide_interference_destroy(g);
    tide_lifetimes_deinit(&lt);
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
        tide_unit_test(the_graph_knows_gaps_aliases_and_apart_sets),
        tide_unit_test(no_edge_means_one_place),
        tide_unit_test(many_aliases_of_one_tensor_have_no_edges),
        tide_unit_test(out_of_range_has_no_edges),
        tide_unit_test(ten_thousand_tensors),
        tide_unit_test(too_many_edges_are_refused),
        tide_unit_test(no_memory_leaves_nothing),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
