// SPDX-License-Identifier: MIT
//
// Other orders of a program's steps, second runs, and both as a plan file names them: every run gives the same bits,
// and what cannot be done leaves the program as it was.
#include "rt_util.h"

static const char *const samples[] = {"diamond",         "early_output", "long_skip",          "split_two_outputs",
                                      "inception_block", "view_chain",   "densenet_block",     "unet",
                                      "decoder_kv",      "lenet5",       "transformer_encoder"};
enum { N_SAMPLES = sizeof samples / sizeof samples[0] };

static tide_graph *graph_nth(size_t i) { return rt_graph_nth(i); }
static tide_graph *sample_nth(size_t i) { return rt_graph_sample(samples[i]); }

// ---- running ----

/// Output bytes of a run with poison in all memory without an owner.
static char *outputs_of(tide_program *p, tide_run_mode mode, unsigned aliases, size_t *n) {
    rt_rig rig;
    rt_rig_open(&rig);
    tide_memory_plan *m = rt_plan_aliased(p, "greedy_by_size", aliases, NULL);
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    tide_context *c = rt_context(ip, mode, TIDE_FILL_POISON);
    rt_feed(c, p, &rig, 42);
    rt_run(c);
    rt_run(c);
    char *bytes = rt_output_bytes(c, n);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    rt_rig_close(&rig);
    return bytes;
}

static void assert_runs_alike(tide_program *p, const char *want, size_t n_want) {
    for (int k = 0; k < 3; k++) {
        size_t n;
        char *got = outputs_of(p, k == 0 ? TIDE_RUN_NAIVE : TIDE_RUN_PLANNED, k == 2 ? RT_ALL_ALIASES : 0, &n);
        assert_int_equal(n, n_want);
        assert_memory_equal(got, want, n);
        tide_host_free(got);
    }
}

// ---- what a program is, in words ----

static void add_values(const tide_graph *g, const uint32_t *values, size_t n, tide_text *out) {
    for (size_t i = 0; i < n; i++)
        tide_text_addf(out, " %s", values[i] == TIDE_NO_VALUE ? "-" : g->values[values[i]].name);
}

static char *describe(const tide_program *p) {
    tide_text out = {0};
    size_t n_live = 0;
    for (size_t i = 0; i < p->graph->n_nodes; i++) n_live += !p->graph->nodes[i].dead;
    assert_int_equal(n_live, p->n_steps);
    assert_int_equal(p->order.n, p->n_steps);
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_node *n = &p->graph->nodes[p->steps[i].node];
        assert_ptr_equal(p->steps[i].kernel.node, n);
        assert_ptr_equal(p->steps[i].kernel.def, n->def);
        assert_int_equal(p->order.nodes[i], p->steps[i].node);
        assert_false(n->dead);
        tide_text_addf(&out, "%s:", n->name);
        add_values(p->graph, n->inputs, n->n_inputs, &out);
        tide_text_add(&out, " ->");
        add_values(p->graph, n->outputs, n->n_outputs, &out);
        tide_text_add(&out, "\n");
        for (size_t k = 0; k < n->n_outputs; k++) {
            if (n->outputs[k] == TIDE_NO_VALUE) continue;
            const tide_value *v = &p->graph->values[n->outputs[k]];
            assert_int_equal(tide_graph_find_value(p->graph, v->name), n->outputs[k]);
            assert_int_equal(v->producer, p->steps[i].node);
        }
    }
    for (size_t i = 0; i < p->n_twins; i++) tide_text_addf(&out, "%s twice\n", p->graph->nodes[p->twins[i].first].name);
    assert_false(out.failed);
    return out.data;
}

static void assert_is(const tide_program *p, const char *want) {
    char *now = describe(p);
    assert_string_equal(now, want);
    tide_host_free(now);
}

// ---- orders by chance ----

static bool reads_from(const tide_program *p, uint32_t step, uint32_t maker) {
    const tide_node *n = &p->graph->nodes[p->steps[step].node], *m = &p->graph->nodes[p->steps[maker].node];
    for (size_t i = 0; i < n->n_inputs; i++) {
        for (size_t k = 0; k < m->n_outputs; k++) {
            if (n->inputs[i] != TIDE_NO_VALUE && n->inputs[i] == m->outputs[k]) return true;
        }
    }
    return false;
}

static void random_order(const tide_program *p, tide_rng *rng, uint32_t *out) {
    const size_t n = p->n_steps;
    bool done[128] = {false};
    assert_true(n <= 128);
    for (size_t k = 0; k < n; k++) {
        uint32_t ready[128];
        size_t n_ready = 0;
        for (uint32_t i = 0; i < n; i++) {
            bool is_ready = !done[i];
            for (uint32_t j = 0; j < n && is_ready; j++) is_ready = done[j] || !reads_from(p, i, j);
            if (is_ready) ready[n_ready++] = i;
        }
        out[k] = ready[tide_rng_below(rng, n_ready)];
        done[out[k]] = true;
    }
}

static void try_orders(tide_graph *(*make)(size_t), size_t i, int n_orders) {
    tide_program *p = rt_build(make(i));
    size_t n;
    char *want = outputs_of(p, TIDE_RUN_NAIVE, 0, &n);
    tide_rng rng = {i + 1};
    uint32_t order[128];
    for (int k = 0; k < n_orders; k++) {
        tide_error err = TIDE_ERROR_INIT;
        random_order(p, &rng, order);
        assert_tide_ok(tide_program_reorder(p, order, &err), &err);
        assert_runs_alike(p, want, n);
    }
    tide_host_free(want);
    tide_program_unref(p);
}

static void test_any_order_gives_the_same_bytes(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) try_orders(graph_nth, i, tide_test_rounds(2, 12));
    for (size_t i = 0; i < N_SAMPLES; i++) try_orders(sample_nth, i, tide_test_rounds(1, 3));
}

static void expect_bad_order(tide_program *p, const uint32_t *order, const char *a, const char *b) {
    tide_error err = TIDE_ERROR_INIT;
    char *before = describe(p);
    assert_tide_status(tide_program_reorder(p, order, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, a);
    assert_text_has(err.msg, b);
    assert_is(p, before);
    tide_host_free(before);
}

static void test_bad_orders_are_refused(void **state) {
    (void)state;
    tide_program *p = rt_build(rt_graph_diamond());
    expect_bad_order(p, (const uint32_t[]){0, 1, 3, 2}, "join", "right");
    expect_bad_order(p, (const uint32_t[]){1, 0, 2, 3}, "left", "top");
    expect_bad_order(p, (const uint32_t[]){0, 1, 1, 3}, "left", "twice");
    expect_bad_order(p, (const uint32_t[]){0, 1, 2, 4}, "4", "has 4");
    tide_program *held = tide_program_ref(p);
    expect_bad_order(p, (const uint32_t[]){0, 2, 1, 3}, "other hands", "diamond");
    tide_program_unref(held);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_program_reorder(p, (const uint32_t[]){0, 2, 1, 3}, &err), &err);
    assert_string_equal(p->graph->nodes[p->steps[1].node].name, "right");
    tide_program_unref(p);
}

// ---- second runs ----

/// Every step again at every later place: it works and the bits are the same, or nothing has changed.
static size_t try_repeats(tide_graph *(*make)(size_t), size_t i, size_t stride) {
    size_t n_done = 0, n;
    tide_program *p = rt_build(make(i));
    char *want = outputs_of(p, TIDE_RUN_NAIVE, 0, &n), *given = describe(p);
    const uint32_t n_steps = (uint32_t)p->n_steps;
    tide_program_unref(p);
    for (uint32_t k = 0; k < n_steps * (n_steps + 1); k += (uint32_t)stride) {
        tide_error err = TIDE_ERROR_INIT;
        p = rt_build(make(i));
        const tide_status st = tide_program_repeat(p, k / (n_steps + 1), k % (n_steps + 1), &err);
        if (st == TIDE_OK) {
            n_done++;
            assert_int_equal(p->n_steps, n_steps + 1);
            assert_int_equal(p->n_twins, 1);
            assert_runs_alike(p, want, n);
        } else {
            assert_int_equal(st, TIDE_ERR_INVALID);
            assert_is(p, given);
        }
        tide_program_unref(p);
    }
    tide_host_free(want);
    tide_host_free(given);
    return n_done;
}

static void test_second_runs_give_the_same_bytes(void **state) {
    (void)state;
    size_t n_done = 0;
    for (size_t i = 0; i < 4; i++) n_done += try_repeats(graph_nth, i, 1);
    assert_true(n_done > 20);
    assert_true(try_repeats(sample_nth, 7, 13 * tide_test_rounds(3, 1)) > 0);  // unet
    assert_true(try_repeats(sample_nth, 10, 17 * tide_test_rounds(3, 1)) > 0); // transformer_encoder
}

/// Readers from there on read the second run, those before it the first.
static void test_who_reads_which_run(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(rt_graph_long());
    assert_tide_ok(tide_program_repeat(p, 0, 6, &err), &err); // s0 makes t0, which s1, s2 and s6 read
    char *now = describe(p);
    assert_text_has(now, "s1: t0 -> t1\n");
    assert_text_has(now, "s2: t0 t1 -> t2\n");
    assert_text_has(now, "s5: t4 -> t5\ns0.again: x z -> t0.again\ns6: t1 t0.again -> t6\n");
    assert_text_has(now, "s0 twice");
    tide_host_free(now);
    // A chain: s1 again reads s0 again, because that runs before it.
    assert_tide_ok(tide_program_repeat(p, 1, 7, &err), &err);
    now = describe(p);
    assert_text_has(now, "s0.again: x z -> t0.again\ns1.again: t0.again -> t1.again\ns6: t1.again t0.again -> t6\n");
    tide_host_free(now);
    // In another order the readers change over: s6 may not run before both first runs, but before both second ones.
    const uint32_t order[] = {0, 1, 2, 3, 4, 5, 6, 8, 7, 9, 10, 11, 12, 13};
    char *before = describe(p);
    assert_tide_status(tide_program_reorder(p, order, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "no operator would read what 's1.again' makes");
    assert_is(p, before);
    tide_host_free(before);
    tide_program_unref(p);
}

static void expect_no_repeat(tide_program *p, uint32_t step, uint32_t before, const char *why) {
    tide_error err = TIDE_ERROR_INIT;
    char *was = describe(p);
    assert_tide_status(tide_program_repeat(p, step, before, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, why);
    assert_is(p, was);
    tide_host_free(was);
}

static void test_bad_repeats_are_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(rt_graph_long());
    expect_no_repeat(p, 11, 12, "graph output 'y'");
    expect_no_repeat(p, 3, 3, "no second run");
    expect_no_repeat(p, 3, 2, "no second run");
    expect_no_repeat(p, 12, 13, "12 steps");
    expect_no_repeat(p, 3, 13, "12 steps");
    expect_no_repeat(p, 3, 5, "no operator would read what 's3.again' makes");
    expect_no_repeat(p, 3, 12, "no operator would read");
    assert_tide_ok(tide_program_repeat(p, 0, 6, &err), &err);
    expect_no_repeat(p, 0, 6, "twice already");
    expect_no_repeat(p, 6, 7, "twice already");
    tide_program *held = tide_program_ref(p);
    expect_no_repeat(p, 1, 7, "other hands");
    tide_program_unref(held);
    tide_program_unref(p);
    // A name that plan files could not tell apart.
    tide_graph *g = rt_graph("names");
    rt_input(g, "x", "4x4");
    rt_node(g, "Tanh", "a", "x", "u");
    rt_node(g, "Sigmoid", "a.again", "u", "v");
    rt_node(g, "Add", "b", "u,v", "w");
    rt_node(g, "Softmax", "b", "w", "y");
    rt_output(g, "y");
    p = rt_build(g);
    expect_no_repeat(p, 0, 2, "another node is called 'a.again'");
    expect_no_repeat(p, 2, 3, "another node is called 'b'");
    tide_program_unref(p);
}

/// Values keep apart from those that have the name already.
static void test_names_that_are_taken(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = rt_graph("taken");
    rt_input(g, "x", "4x4");
    rt_node(g, "Tanh", "a", "x", "u");
    rt_node(g, "Sigmoid", "b", "u", "u.again");
    rt_node(g, "Add", "c", "u,u.again", "y");
    rt_output(g, "y");
    tide_program *p = rt_build(g);
    assert_tide_ok(tide_program_repeat(p, 0, 2, &err), &err);
    assert_is(p, "a: x -> u\nb: u -> u.again\na.again: x -> u.again.2\nc: u.again.2 u.again -> y\na twice\n");
    tide_program_unref(p);
}

// ---- as a plan file says ----

/// Some repeats and another order, by chance.
static tide_program *disordered(tide_graph *g, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(g);
    tide_rng rng = {seed};
    for (int k = 0; k < 12; k++) {
        const uint64_t n = p->n_steps;
        const tide_status st =
            tide_program_repeat(p, (uint32_t)tide_rng_below(&rng, n), (uint32_t)tide_rng_below(&rng, n + 1), &err);
        assert_true(st == TIDE_OK || st == TIDE_ERR_INVALID);
        uint32_t order[128];
        random_order(p, &rng, order);
        const tide_status moved = tide_program_reorder(p, order, &err);
        assert_true(moved == TIDE_OK || moved == TIDE_ERR_INVALID); // a second run may lose its readers
    }
    return p;
}

typedef struct names {
    char *steps[128], *twice[128];
    size_t n, n_twice;
} names;

static names names_of(const tide_program *p) {
    names s = {.n = p->n_steps, .n_twice = p->n_twins};
    for (size_t i = 0; i < s.n; i++) s.steps[i] = p->graph->nodes[p->steps[i].node].name;
    for (size_t i = 0; i < s.n_twice; i++) s.twice[i] = p->graph->nodes[p->twins[i].first].name;
    return s;
}

/// A fresh program becomes what the other one is: its plan runs there. And back again.
static void test_follow(void **state) {
    (void)state;
    size_t n_twins = 0;
    for (size_t i = 0; i < 4 + N_SAMPLES; i += i < 4 ? 1 : (size_t)tide_test_rounds(2, 1)) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *(*make)(size_t) = i < 4 ? graph_nth : sample_nth;
        const size_t nth = i < 4 ? i : i - 4;
        tide_program *p = disordered(make(nth), i + 7), *q = rt_build(make(nth));
        char *want = describe(p), *fresh = describe(q);
        size_t n;
        char *bytes = outputs_of(q, TIDE_RUN_NAIVE, 0, &n);
        const names s = names_of(p), own = names_of(q);
        n_twins += s.n_twice;
        assert_tide_ok(tide_program_follow(q, s.steps, s.n, s.twice, s.n_twice, &err), &err);
        assert_is(q, want);
        assert_runs_alike(q, bytes, n);
        assert_tide_ok(tide_program_follow(q, s.steps, s.n, s.twice, s.n_twice, &err), &err); // it is there already
        assert_is(q, want);
        assert_tide_ok(tide_program_follow(q, own.steps, own.n, NULL, 0, &err), &err);
        assert_is(q, fresh);
        assert_runs_alike(q, bytes, n);
        assert_tide_ok(tide_program_follow(q, s.steps, s.n, s.twice, s.n_twice, &err), &err);
        assert_is(q, want); // under the same names as the first time
        if (i % 4 == 0 || tide_test_rounds(0, 1) == 1) assert_runs_alike(q, bytes, n);
        tide_host_free(want);
        tide_host_free(fresh);
        tide_host_free(bytes);
        tide_program_unref(p);
        tide_program_unref(q);
    }
    assert_true(n_twins > (size_t)tide_test_rounds(7, 15));
}

static void expect_incomparable(tide_program *p, const char *const *steps, size_t n, const char *twice,
                                const char *why) {
    tide_error err = TIDE_ERROR_INIT;
    char *was = describe(p), *copies[16], *again = NULL;
    for (size_t i = 0; i < n; i++) copies[i] = tide_host_strdup(steps[i]);
    if (twice != NULL) again = tide_host_strdup(twice);
    assert_tide_status(tide_program_follow(p, copies, n, &again, twice != NULL, &err), TIDE_ERR_INCOMPARABLE);
    assert_int_equal(err.status, TIDE_ERR_INCOMPARABLE);
    assert_text_has(err.msg, why);
    assert_is(p, was);
    for (size_t i = 0; i < n; i++) tide_host_free(copies[i]);
    tide_host_free(again);
    tide_host_free(was);
}

static void test_other_programs_cannot_be_followed(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = rt_build(rt_graph_diamond());
    expect_incomparable(p, (const char *[]){"top", "left", "right"}, 3, NULL, "leaves out node 'join'");
    expect_incomparable(p, (const char *[]){"top", "left", "right", "joint"}, 4, NULL, "'joint'");
    expect_incomparable(p, (const char *[]){"top", "left", "left", "join"}, 4, NULL, "'left'");
    expect_incomparable(p, (const char *[]){"top", "left", "join", "right"}, 4, NULL, "'join'");
    expect_incomparable(p, (const char *[]){"top", "left", "right", "join"}, 4, "nobody", "'nobody'");
    expect_incomparable(p, (const char *[]){"top", "left", "right", "join"}, 4, "top", "second run of node 'top'");
    expect_incomparable(p, (const char *[]){"top", "left", "right", "top.again", "join"}, 5, "top",
                        "no operator would read");
    expect_incomparable(p, (const char *[]){"top", "left", "top.again", "right", "join"}, 5, NULL, "'top.again'");
    char *ok[] = {tide_host_strdup("top"), tide_host_strdup("left"), tide_host_strdup("top.again"),
                  tide_host_strdup("right"), tide_host_strdup("join")};
    assert_tide_ok(tide_program_follow(p, ok, 5, ok, 1, &err), &err);
    expect_incomparable(p, (const char *[]){"top", "left", "right", "join"}, 4, "top", "the order has it once");
    for (size_t i = 0; i < 5; i++) tide_host_free(ok[i]);
    tide_program_unref(p);
}

/// Nodes of one name are taken in the order in which they stand.
static void test_follow_namesakes(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = rt_graph("namesakes");
    rt_input(g, "x", "4x4");
    rt_node(g, "Tanh", "n", "x", "a");
    rt_node(g, "Sigmoid", "m", "x", "b");
    rt_node(g, "Sigmoid", "n", "a", "c");
    rt_node(g, "Add", "sum", "b,c", "y");
    rt_output(g, "y");
    tide_program *p = rt_build(g);
    char *n = tide_host_strdup("n"), *m = tide_host_strdup("m"), *sum = tide_host_strdup("sum");
    assert_tide_ok(tide_program_follow(p, (char *[]){m, n, n, sum}, 4, NULL, 0, &err), &err);
    assert_is(p, "m: x -> b\nn: x -> a\nn: a -> c\nsum: b c -> y\n");
    assert_tide_status(tide_program_follow(p, (char *[]){n, n, n, sum}, 4, NULL, 0, &err), TIDE_ERR_INCOMPARABLE);
    assert_text_has(err.msg, "fewer times");
    tide_host_free(n);
    tide_host_free(m);
    tide_host_free(sum);
    tide_program_unref(p);
}

// ---- without memory ----

static tide_status change(tide_program *p, int which, const names *s, tide_error *err) {
    static const uint32_t order[] = {0, 1, 6, 2, 3, 4, 5, 7, 9, 8, 10, 11};
    if (which == 0) return tide_program_reorder(p, order, err);
    if (which == 1) return tide_program_repeat(p, 0, 6, err);
    return tide_program_follow(p, s->steps, s->n, s->twice, s->n_twice, err);
}

/// The n-th allocation fails, for every n: the program is as it was, and can be changed the next time.
static void test_no_memory_changes_nothing(void **state) {
    (void)state;
    tide_program *other = disordered(rt_graph_long(), 3);
    assert_true(other->n_twins >= 2);
    const names s = names_of(other);
    for (int which = 0; which < 3; which++) {
        size_t n;
        tide_program *p = rt_build(rt_graph_long());
        char *was = describe(p), *bytes = outputs_of(p, TIDE_RUN_NAIVE, 0, &n);
        p->graph->cap_nodes = p->graph->n_nodes; // both must grow: the nodes have moved when the values cannot
        p->graph->cap_values = p->graph->n_values;
        tide_status st = TIDE_ERR_NOMEM;
        int n_failed = 0;
        for (; st == TIDE_ERR_NOMEM; n_failed++) {
            tide_error err = TIDE_ERROR_INIT;
            tide_host_fail_after(n_failed);
            st = change(p, which, &s, &err);
            tide_host_fail_after(-1);
            if (st == TIDE_ERR_NOMEM) assert_is(p, was);
        }
        assert_int_equal(st, TIDE_OK);
        assert_true(n_failed > 5);
        assert_runs_alike(p, bytes, n);
        tide_host_free(was);
        tide_host_free(bytes);
        tide_program_unref(p);
    }
    tide_program_unref(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_any_order_gives_the_same_bytes),
        tide_unit_test(test_bad_orders_are_refused),
        tide_unit_test(test_second_runs_give_the_same_bytes),
        tide_unit_test(test_who_reads_which_run),
        tide_unit_test(test_bad_repeats_are_refused),
        tide_unit_test(test_names_that_are_taken),
        tide_unit_test(test_follow),
        tide_unit_test(test_other_programs_cannot_be_followed),
        tide_unit_test(test_follow_namesakes),
        tide_unit_test(test_no_memory_changes_nothing),
    };
    // What the process keeps for good (its registry) is made before anything is counted.
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
