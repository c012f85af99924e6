// SPDX-License-Identifier: MIT
//
// Order of execution (S23-4): golden table, ties, repetition, shuffled insertion, cycles with their nodes named.
#include "tests/graph/graph_fixture.h"

typedef struct row {
    const char *name, *inputs, *outputs;
} row;

// Six nodes with one possible order; "skip" reaches from a to f.
static const row golden[6] = {
    {"a", "x", "va"},  {"b", "va", "vb"},    {"c", "vb,va", "vc"},
    {"d", "vc", "vd"}, {"e", "vd,vb", "ve"}, {"f", "ve,va", "vf"},
};

static tide_graph *build(const row *rows, size_t n, const size_t *permutation) {
    tide_graph *g = new_graph();
    add_input_f32(g, "x", 0, NULL);
    for (size_t i = 0; i < n; i++) {
        const row *r = &rows[permutation != NULL ? permutation[i] : i];
        add_op(g, "Op", r->name, r->inputs, r->outputs);
    }
    return g;
}

static void assert_order(const tide_graph *g, const char *names) {
    tide_error err = TIDE_ERROR_INIT;
    tide_order o = {0};
    tide_text got = {0};
    assert_tide_ok(tide_graph_sort(g, &o, &err), &err);
    for (size_t i = 0; i < o.n; i++) tide_text_add(&got, g->nodes[o.nodes[i]].name);
    assert_string_equal(tide_text_str(&got), names);
    tide_text_deinit(&got);
    tide_order_deinit(&o);
}

static void test_golden_table_S23_4(void **state) {
    (void)state;
    tide_graph *g = build(golden, 6, NULL);
    for (int run = 0; run < 100; run++) assert_order(g, "abcdef");
    tide_graph_destroy(g);
}

static void test_shuffled_insertion_S23_4(void **state) {
    (void)state;
    tide_rng rng = {7};
    for (int run = 0; run < 100; run++) {
        size_t permutation[6] = {0, 1, 2, 3, 4, 5};
        for (size_t i = 5; i > 0; i--) {
            const size_t k = (size_t)tide_rng_below(&rng, i + 1);
            const size_t swap = permutation[i];
            permutation[i] = permutation[k];
            permutation[k] = swap;
        }
        tide_graph *g = build(golden, 6, permutation);
        assert_order(g, "abcdef");
        tide_graph_destroy(g);
    }
}

static void test_ties_go_to_the_lowest_index(void **state) {
    (void)state;
    // Four branches from x and a join; the file is sorted already and keeps its order.
    static const row rows[] = {
        {"a", "x", "va"}, {"b", "x", "vb"}, {"c", "va", "vc"}, {"d", "vb", "vd"}, {"e", "vc,vd", "ve"}};
    tide_graph *g = build(rows, 5, NULL);
    assert_order(g, "abcde");
    tide_graph_destroy(g);
    // "c" stands before its producer: everything else as early as its index allows.
    static const size_t late[] = {2, 1, 0, 3, 4};
    g = build(rows, 5, late);
    assert_order(g, "bacde");
    tide_graph_destroy(g);
}

static void test_repeated_operand_is_one_dependency(void **state) {
    (void)state;
    static const row rows[] = {{"b", "va,va,va", "vb"}, {"a", "x,x", "va"}};
    tide_graph *g = build(rows, 2, NULL);
    assert_order(g, "ab");
    tide_graph_destroy(g);
}

static void test_dead_nodes_and_constants_do_not_count(void **state) {
    (void)state;
    tide_graph *g = build(golden, 6, NULL);
    g->nodes[0].dead = true;
    assert_order(g, "bcdef");
    tide_graph_destroy(g);
}

static void assert_cycle(const row *rows, size_t n, const char *says) {
    tide_error err = TIDE_ERROR_INIT;
    tide_order o = {0};
    tide_graph *g = build(rows, n, NULL);
    assert_tide_status(tide_graph_sort(g, &o, &err), TIDE_ERR_CYCLE);
    assert_text_has(err.msg, says);
    assert_null(o.nodes);
    tide_graph_destroy(g);
}

static void test_cycles_are_named_S23_4(void **state) {
    (void)state;
    static const row two[] = {{"pre", "x", "p"}, {"a", "p,vb", "va"}, {"b", "va", "vb"}, {"after", "vb", "q"}};
    assert_cycle(two, 4, "cycle: a -> b -> a");
    static const row self[] = {{"s", "x,vs", "vs"}};
    assert_cycle(self, 1, "cycle: s -> s");
    // The walk starts at "tail", which hangs behind the cycle and is not of it.
    static const row behind[] = {{"tail", "vc", "vt"}, {"a", "vc", "va"}, {"b", "va", "vb"}, {"c", "vb", "vc"}};
    assert_cycle(behind, 4, "cycle: a -> b -> c -> a");
}

static void test_long_cycle_is_cut(void **state) {
    (void)state;
    tide_graph *g = new_graph();
    for (int i = 0; i < 40; i++) {
        char name[16], in[16], out[16];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(in, sizeof in, "v%d", (i + 39) % 40);
        snprintf(out, sizeof out, "v%d", i);
        add_op(g, "Op", name, in, out);
    }
    tide_error err = TIDE_ERROR_INIT;
    tide_order o = {0};
    assert_tide_status(tide_graph_sort(g, &o, &err), TIDE_ERR_CYCLE);
    assert_text_has(err.msg, "n0 -> n1 -> n2");
    assert_text_has(err.msg, "(32 more) -> n0");
    tide_graph_destroy(g);
}

/// Random graphs against the definition: every producer before its consumers, and at each step no node with a lower
/// index was ready.
static void test_random_graphs_against_the_definition(void **state) {
    (void)state;
    tide_rng rng = {42};
    for (int run = 0; run < 200; run++) {
        enum { N = 24 };
        tide_graph *g = new_graph();
        uint32_t in[2], out[1], value[N];
        tide_error err = TIDE_ERROR_INIT;
        for (size_t i = 0; i < N; i++) {
            char name[16];
            snprintf(name, sizeof name, "v%zu", i);
            value[i] = value_of(g, name);
        }
        size_t rank[N]; // a hidden order that makes the graph acyclic
        for (size_t i = 0; i < N; i++) rank[i] = (i * 7 + (size_t)run) % N;
        for (size_t i = 0; i < N; i++) {
            size_t n_in = 0;
            for (int tries = 0; tries < 4 && n_in < 2; tries++) {
                const size_t from = (size_t)tide_rng_below(&rng, N);
                if (rank[from] < rank[i]) in[n_in++] = value[from];
            }
            out[0] = value[i];
            assert_tide_ok(tide_graph_add_node(g, NULL, "Op", "", 13, in, n_in, out, 1, NULL, &err), &err);
        }
        tide_order o = {0};
        assert_tide_ok(tide_graph_sort(g, &o, &err), &err);
        assert_int_equal(o.n, N);
        bool placed[N] = {false};
        for (size_t step = 0; step < N; step++) {
            uint32_t first_ready = TIDE_NO_NODE;
            for (uint32_t i = 0; i < N && first_ready == TIDE_NO_NODE; i++) {
                bool ready = !placed[i];
                for (size_t k = 0; k < g->nodes[i].n_inputs; k++)
                    ready = ready && placed[g->values[g->nodes[i].inputs[k]].producer];
                if (ready) first_ready = i;
            }
            assert_int_equal(o.nodes[step], first_ready);
            placed[first_ready] = true;
        }
        tide_order_deinit(&o);
        tide_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_golden_table_S23_4),
        tide_unit_test(test_shuffled_insertion_S23_4),
        tide_unit_test(test_ties_go_to_the_lowest_index),
        tide_unit_test(test_repeated_operand_is_one_dependency),
        tide_unit_test(test_dead_nodes_and_constants_do_not_count),
        tide_unit_test(test_cycles_are_named_S23_4),
        tide_unit_test(test_long_cycle_is_cut),
        tide_unit_test(test_random_graphs_against_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
