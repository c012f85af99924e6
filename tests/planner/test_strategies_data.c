// SPDX-License-Identifier: MIT
//
// Strategies on published instances (MiniMalloc's, where they are at hand): facts of the instances, pools against
// offsets against the lower bound (S23-21), and that a small thing stays fast at ten thousand tensors.
#include "tests/planner/plan_test.h"

/// n, naive sum and lower bound as their documentation states them.
static const struct {
    const char *file;
    size_t n;
    uint64_t naive_bytes, lower_bound_bytes;
} instances[] = {
    {"A.1048576", 154, 15071232, 1048576}, {"C.1048576", 203, 21476352, 1039360}, {"E.1048576", 215, 25556992, 1048576},
    {"G.1048576", 308, 20795392, 1048576}, {"I.1048576", 374, 48854016, 1048576}, {"K.1048576", 454, 79005696, 1048576},
    {"examples/input.12", 5, 20, 12},
};

static bool read_instance(const char *file, tide_lifetimes *lt) {
    char below[64], path[1024], *data;
    size_t len;
    snprintf(below, sizeof below, "data/minimalloc/%s.csv", file);
    if (tide_shared_path(below, path, sizeof path) == NULL) return false;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    assert_tide_ok(tide_lifetimes_from_csv(data, len, path, 1, lt, &err), &err);
    tide_host_free(data);
    return true;
}

/// A plan; searches end by their nodes and not by the clock.
static tide_memory_plan *plan_of(const tide_lifetimes *lt, const char *strategy) {
    static const tide_strategy_options few_nodes = {.node_limit = 50000};
    const tide_strategy *s;
    tide_memory_plan *plan;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_strategy_find(strategy, &s, &err), &err);
    assert_tide_ok(tide_plan_make(lt, s, &few_nodes, &plan, &err), &err);
    return plan;
}

/// Bytes of the strategy's plan, which must be sound.
static uint64_t bytes_of(const tide_lifetimes *lt, const char *strategy) {
    tide_memory_plan *plan = plan_of(lt, strategy);
    assert_sound(plan);
    const uint64_t bytes = plan->bytes;
    tide_memory_plan_destroy(plan);
    return bytes;
}

static void instances_are_read_as_documented(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof instances / sizeof instances[0]; i++) {
        tide_lifetimes lt = {0};
        if (!read_instance(instances[i].file, &lt)) continue;
        assert_int_equal(lt.n, instances[i].n);
        tide_memory_plan *plan = make_plan(&lt, "naive");
        assert_int_equal(plan->naive_bytes, instances[i].naive_bytes);
        assert_int_equal(plan->bytes, instances[i].naive_bytes);
        assert_int_equal(plan->lower_bound_bytes, instances[i].lower_bound_bytes);
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
}

// S23-21: offsets are never larger than pools on these; every strategy's plan is sound.
static void offsets_are_never_larger_than_pools(void **state) {
    (void)state;
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t i = 0; i < sizeof instances / sizeof instances[0]; i++) {
        tide_lifetimes lt = {0};
        if (!read_instance(instances[i].file, &lt)) continue;
        print_message("%-18s", instances[i].file);
        for (size_t s = 0; s < n; s++)
            print_message(" %s %.3f", all[s]->name,
                          (double)bytes_of(&lt, all[s]->name) / (double)instances[i].lower_bound_bytes);
        print_message("\n");
        assert_true(bytes_of(&lt, "greedy_by_size") <= bytes_of(&lt, "greedy_color"));
        assert_true(bytes_of(&lt, "greedy_by_size") <= bytes_of(&lt, "greedy_color_best"));
        assert_true(bytes_of(&lt, "greedy_by_size_best") <= bytes_of(&lt, "greedy_color"));
        assert_true(bytes_of(&lt, "search") <= bytes_of(&lt, "greedy_by_size"));
        tide_lifetimes_deinit(&lt);
    }
}

static void small_instances(void **state) {
    (void)state;
    static const struct {
        const char *file;
        uint64_t lower_bound_bytes;
    } small[] = {{"a.6", 6}, {"b.6", 6}, {"c.8", 8}, {"d.9", 9}, {"e.12", 12}, {"f.14", 14}, {"g.7", 7}};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        char file[32];
        snprintf(file, sizeof file, "small/%s", small[i].file);
        tide_lifetimes lt = {0};
        if (!read_instance(file, &lt)) continue;
        uint64_t bytes;
        assert_tide_status(tide_lower_bound(&lt, &bytes, NULL, NULL), TIDE_OK);
        assert_int_equal(bytes, small[i].lower_bound_bytes);
        assert_true(bytes_of(&lt, "greedy_by_size") <= bytes_of(&lt, "greedy_color"));
        tide_lifetimes_deinit(&lt);
    }
}

/*
 * S23-21 on five shapes of graph that need no file: chain, long skip, diamond rows, U-net, dense block.
 * Sizes are KiB-like numbers of feature maps.
 */
static void put_named(tide_lifetimes *lt, int i, uint64_t bytes, int64_t begin, int64_t end) {
    char name[16];
    snprintf(name, sizeof name, "t%02d", i);
    put_aligned(lt, name, bytes, 256, begin, end);
}
static void chain(tide_lifetimes *lt) {
    for (int i = 0; i < 20; i++) put_named(lt, i, 50000u >> (i / 3), i, i + 2);
}
static void long_skip(tide_lifetimes *lt) {
    for (int i = 0; i < 20; i++) put_named(lt, i, 20000 + 300u * (unsigned)(i % 7), i, i == 4 ? 16 : i + 2);
}
static void diamonds(tide_lifetimes *lt) {
    for (int i = 0; i < 10; i++) {
        put_named(lt, 3 * i, 30000, 3 * i, 3 * i + 3);
        put_named(lt, 3 * i + 1, 20000 + 1000u * (unsigned)i, 3 * i + 1, 3 * i + 4);
        put_named(lt, 3 * i + 2, 10000, 3 * i + 2, 3 * i + 4);
    }
}
static void u_net(tide_lifetimes *lt) {
    for (int i = 0; i < 8; i++) put_named(lt, i, 90000u >> i, i, 16 - i);
    for (int i = 8; i < 16; i++) put_named(lt, i, 90000u >> (15 - i), i, i + 2);
}
static void dense(tide_lifetimes *lt) {
    for (int i = 0; i < 12; i++) put_named(lt, i, 8000 + 4000u * (unsigned)i, i, i % 3 == 0 ? 13 : i + 2);
}

static void offsets_on_shapes_of_graphs(void **state) {
    (void)state;
    static void (*const shapes[])(tide_lifetimes *) = {chain, long_skip, diamonds, u_net, dense};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        tide_lifetimes lt = {0};
        shapes[i](&lt);
        const uint64_t pools = bytes_of(&lt, "greedy_color"), offsets = bytes_of(&lt, "greedy_by_size");
        uint64_t bound;
        assert_tide_status(tide_lower_bound(&lt, &bound, NULL, NULL), TIDE_OK);
        print_message("shape %zu: pools %.3f, offsets %.3f of the lower bound\n", i, (double)pools / (double)bound,
                      (double)offsets / (double)bound);
        assert_true(offsets <= pools);
        assert_true(bound <= offsets);
        tide_lifetimes_deinit(&lt);
    }
}

/// Times are printed, not judged.
static void ten_thousand_tensors(void **state) {
    (void)state;
    tide_rng rng = {10000};
    tide_lifetimes lt = {0};
    for (int i = 0; i < 10000; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        put_aligned(&lt, name, 1 + tide_rng_below(&rng, 1 << 20), 256, i, i + 1 + (int64_t)tide_rng_below(&rng, 30));
    }
    const tide_strategy *const *all;
    const size_t n = tide_strategies(&all);
    for (size_t s = 0; s < n; s++) {
        tide_memory_plan *plan = plan_of(&lt, all[s]->name);
        print_message("10,000 tensors, %s: %.1f ms, %.3f of the lower bound\n", all[s]->name,
                      (double)plan->time_ns / 1e6, (double)plan->bytes / (double)plan->lower_bound_bytes);
        tide_memory_plan_destroy(plan);
    }
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(instances_are_read_as_documented),
        tide_unit_test(offsets_are_never_larger_than_pools),
        tide_unit_test(small_instances),
        tide_unit_test(offsets_on_shapes_of_graphs),
        tide_unit_test(ten_thousand_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
