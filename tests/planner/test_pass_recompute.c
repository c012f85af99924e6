// SPDX-License-Identifier: MIT
//
// Recompute: where it must help, what it costs, that the share is kept, that nothing gets worse and every bit is the
// same.
#include <math.h>

#include "planner/passes/pass_order.h"
#include "planner/passes/pass_recompute.h"
#include "program_case.h"

static tide_pass_options with_share(double share) {
    return (tide_pass_options){.align_bytes = TIDE_DEFAULT_ALIGN, .recompute_share = share};
}

static double work_of(const tide_program *p) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_pass_options opt = with_share(0);
    double work;
    assert_tide_ok(tide__program_work(p, &opt, NULL, &work, &err), &err);
    return work;
}

static bool has_step(const tide_program *p, const char *name) {
    for (size_t i = 0; i < p->n_steps; i++) {
        if (strcmp(p->graph->nodes[p->steps[i].node].name, name) == 0) return true;
    }
    return false;
}

// ---- a skip over a peak ----

/// `a` (16 KiB) is read before and behind a wide middle (48 KiB, made of x alone):
///
///     x -> top -> a -> mean1 -> m1          a 16 KiB
///     x -> wide -> w, + m1 -> v -> mean2    w 48 KiB, v in its place, while a waits
///     a + m2 -> y
static tide_graph *skip_graph(bool chain) {
    tide_graph *g = case_graph("skip", "x", "1x4096");
    if (chain) {
        case_node(g, "Sigmoid", "first", "u", "x", NULL, NULL);
        case_node(g, "Tanh", "top", "a", "u", NULL, NULL);
    } else {
        case_node(g, "Tanh", "top", "a", "x", NULL, NULL);
    }
    case_node(g, "ReduceMean", "mean1", "m1", "a", NULL, NULL);
    case_node(g, "Concat", "wide", "w", "x", "x", "x");
    case_node(g, "Add", "middle", "v", "w", "m1", NULL);
    case_node(g, "ReduceMean", "mean2", "m2", "v", NULL, NULL);
    case_node(g, "Add", "join", "y", "a", "m2", NULL);
    case_output(g, "y");
    return g;
}

enum { KIB = 1024, MEAN = 256 };

static void test_a_skip_is_made_again(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = case_build(skip_graph(false), NULL, 0);
    const tide_pass_options opt = with_share(0.13); // 4096 of 32770 elements are 12.5 %
    size_t n_bytes, n;
    double extra;
    bool cut;
    char *want = case_run(p, NULL, &n_bytes);
    assert_int_equal(work_of(p), 4096 + 1 + 3 * 4096 + 3 * 4096 + 1 + 4096);
    assert_int_equal(case_lower_bound(p, &opt, NULL), 64 * KIB + MEAN);
    assert_tide_ok(tide_pass_recompute(p, &opt, &n, &extra, &cut, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(extra, 4096);
    assert_true(has_step(p, "top.again"));
    assert_int_equal(case_lower_bound(p, &opt, NULL), 48 * KIB + MEAN);
    tide_lifetimes lt;
    assert_tide_ok(tide_passes_run(p, &opt, &lt, NULL, &err), &err); // nothing more to be had
    assert_int_equal(p->n_twins, 1);
    tide_memory_plan *m = case_plan(&lt);
    for (int planned = 0; planned < 2; planned++) {
        size_t n_got;
        char *got = case_run(p, planned ? m : NULL, &n_got);
        assert_int_equal(n_got, n_bytes);
        assert_memory_equal(got, want, n_bytes);
        tide_host_free(got);
    }
    tide_memory_plan_destroy(m);
    tide_lifetimes_deinit(&lt);
    tide_host_free(want);
    tide_program_unref(p);
}

/// An allowance that is exactly what the second run costs is enough; a hair less is not.
static void test_the_whole_allowance_may_be_used(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const double exact = 4096.0 / 32770.0;
    assert_true(exact * 32770.0 == 4096.0 && nextafter(exact, 0) * 32770.0 < 4096.0);
    for (int enough = 0; enough < 2; enough++) {
        tide_program *p = case_build(skip_graph(false), NULL, 0);
        const tide_pass_options opt = with_share(enough ? exact : nextafter(exact, 0));
        size_t n;
        double extra;
        bool cut;
        assert_int_equal(work_of(p), 32770);
        assert_tide_ok(tide_pass_recompute(p, &opt, &n, &extra, &cut, &err), &err);
        assert_int_equal(n, enough);
        assert_int_equal(extra, enough ? 4096 : 0);
        tide_program_unref(p);
    }
}

/// u is dead by then, so both are made again, or nothing.
static void test_a_chain_is_made_again(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const struct {
        double share;
        size_t n;
    } cases[] = {{0.0, 0}, {0.12, 0}, {0.20, 0}, {0.23, 2}, {5.0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_program *p = case_build(skip_graph(true), NULL, 0);
        const tide_pass_options opt = with_share(cases[i].share);
        const uint64_t before = case_lower_bound(p, &opt, NULL);
        size_t n;
        double extra;
        bool cut;
        assert_tide_ok(tide_pass_recompute(p, &opt, &n, &extra, &cut, &err), &err);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(extra, n * 4096);
        assert_int_equal(case_lower_bound(p, &opt, NULL), n > 0 ? before - 16 * KIB : before);
        assert_int_equal(p->n_steps, 7 + n);
        tide_program_unref(p);
    }
}

/// A step that must not run twice, or makes what the caller gets, does not.
static void test_who_may_not_run_twice(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const tide_pass_options opt = with_share(1);
    for (int k = 0; k < 2; k++) {
        tide_graph *g = skip_graph(false);
        if (k == 0) case_output(g, "a"); // a is the caller's, and no Workspace at all
        tide_program *p = case_build(g, NULL, 0);
        tide_op_def stateful = *p->graph->nodes[p->steps[0].node].def;
        stateful.flags |= TIDE_OP_NO_FOLD;
        if (k == 1) p->graph->nodes[p->steps[0].node].def = &stateful;
        size_t n;
        double extra;
        bool cut;
        assert_tide_ok(tide_pass_recompute(p, &opt, &n, &extra, &cut, &err), &err);
        assert_int_equal(n, 0);
        assert_int_equal(p->n_steps, 6);
        tide_program_unref(p);
    }
}

// ---- programs by chance ----

/// A program of means, wide Concats and element-wise operators over skips; element-wise operators want equal widths.
static tide_graph *random_graph(uint64_t seed) {
    enum { N = 16 };
    tide_rng rng = {seed};
    tide_graph *g = case_graph("chance", "v0", "1x512");
    char names[N + 1][8] = {"v0"};
    uint64_t width[N + 1] = {512};
    bool read[N + 1] = {true};
    for (size_t i = 1; i <= N; i++) {
        char node[8];
        const size_t a = i == 1 || tide_rng_below(&rng, 3) > 0 ? i - 1 : tide_rng_below(&rng, i);
        size_t b = tide_rng_below(&rng, i);
        snprintf(names[i], sizeof names[i], "v%zu", i);
        snprintf(node, sizeof node, "n%zu", i);
        const uint64_t op = tide_rng_below(&rng, 5);
        const bool fits = width[a] == width[b] || width[a] == 1 || width[b] == 1;
        width[i] = width[a];
        if (op == 0 && width[a] > 1) {
            case_node(g, "ReduceMean", node, names[i], names[a], NULL, NULL);
            width[i] = 1;
            b = a;
        } else if (op == 1 && width[a] + width[b] <= 4096) {
            case_node(g, "Concat", node, names[i], names[a], names[b], NULL);
            width[i] = width[a] + width[b];
        } else if (op <= 3 && fits) {
            case_node(g, "Add", node, names[i], names[a], names[b], NULL);
            if (width[b] > width[i]) width[i] = width[b];
        } else {
            case_node(g, "Tanh", node, names[i], names[a], NULL, NULL);
            b = a;
        }
        read[a] = read[b] = true;
    }
    for (size_t i = 1; i <= N; i++) {
        if (!read[i]) case_output(g, names[i]);
    }
    return g;
}

/// What the pass itself counts: the lower bound, but for parts that keep the whole from being overwritten.
static uint64_t counted(const tide_program *p, const tide_pass_options *opt) {
    tide_error err = TIDE_ERROR_INIT;
    tide__fact_source source;
    tide__order_facts f;
    uint64_t bytes;
    assert_tide_ok(tide__fact_source_init(&source, p, opt, &err), &err);
    assert_tide_ok(tide__order_facts_of(&source, NULL, 0, &f, &err), &err);
    assert_tide_ok(tide__order_given_peak(&f, &bytes, &err), &err);
    tide__order_facts_deinit(&f);
    tide__fact_source_deinit(&source);
    return bytes;
}

/// Without any one of its second runs the program needs more: none is there for nothing. In the order that the pass has
/// chosen them for: in another one, that is taken afterwards for what it saves, it may be otherwise.
static void check_none_is_idle(tide_graph *(*make)(uint64_t), uint64_t seed, const tide_pass_options *given) {
    tide_pass_options in_order = *given, *opt = &in_order;
    in_order.off[TIDE_PASS_ORDER] = true;
    tide_program *p = case_build(make(seed), NULL, 0);
    tide_lifetimes lt;
    assert_tide_status(tide_passes_run(p, opt, &lt, NULL, NULL), TIDE_OK);
    tide_lifetimes_deinit(&lt);
    const uint64_t bytes = counted(p, opt);
    for (size_t t = 0; t < p->n_twins; t++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_program *q = case_build(make(seed), NULL, 0);
        char *names[64], *twice[64];
        size_t n = 0, n_twice = 0;
        for (size_t i = 0; i < p->n_steps; i++) {
            if (p->steps[i].node != p->twins[t].again) names[n++] = p->graph->nodes[p->steps[i].node].name;
        }
        for (size_t i = 0; i < p->n_twins; i++) {
            if (i != t) twice[n_twice++] = p->graph->nodes[p->twins[i].first].name;
        }
        const tide_status st = tide_program_follow(q, names, n, twice, n_twice, &err);
        if (st == TIDE_OK)
            assert_true(counted(q, opt) > bytes);
        else
            assert_text_has(err.msg, "no operator would read"); // one of a chain
        tide_program_unref(q);
    }
    tide_program_unref(p);
}

static void check_random(uint64_t seed, double share, size_t *n_helped) {
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = case_build(random_graph(seed), NULL, 0);
    const double work = work_of(p);
    tide_pass_options opt = with_share(share);
    opt.align_bytes = seed % 2 == 0 ? 1 : TIDE_DEFAULT_ALIGN;
    size_t n_want, n_got;
    char *want = case_run(p, NULL, &n_want);
    tide_lifetimes lt;
    tide_pass_report r;
    assert_tide_ok(tide_passes_run(p, &opt, &lt, &r, &err), &err);
    const tide_pass_gain *gain = &r.gains[TIDE_PASS_RECOMPUTE];
    assert_true(gain->after_bytes <= gain->before_bytes);
    assert_true((gain->n > 0) == (gain->after_bytes < gain->before_bytes));
    assert_int_equal(gain->n, p->n_twins);
    assert_true(r.extra_work <= share * work);
    assert_true(work_of(p) - work - r.extra_work < 1e-6 && work_of(p) - work - r.extra_work > -1e-6);
    *n_helped += gain->n > 0;
    check_none_is_idle(random_graph, seed, &opt);
    tide_memory_plan *m = case_plan(&lt);
    char *got = case_run(p, m, &n_got);
    assert_int_equal(n_got, n_want);
    assert_memory_equal(got, want, n_want);
    // A fresh program that follows the names is the same one: the plan runs there.
    tide_program *q = case_build(random_graph(seed), NULL, 0);
    char *names[64], *twice[64];
    for (size_t i = 0; i < p->n_steps; i++) names[i] = p->graph->nodes[p->steps[i].node].name;
    for (size_t i = 0; i < p->n_twins; i++) twice[i] = p->graph->nodes[p->twins[i].first].name;
    assert_tide_ok(tide_program_follow(q, names, p->n_steps, twice, p->n_twins, &err), &err);
    tide_host_free(got);
    got = case_run(q, m, &n_got);
    assert_int_equal(n_got, n_want);
    assert_memory_equal(got, want, n_want);
    tide_host_free(got);
    tide_host_free(want);
    tide_memory_plan_destroy(m);
    tide_lifetimes_deinit(&lt);
    tide_program_unref(p);
    tide_program_unref(q);
}

static void test_never_worse_and_bit_by_bit(void **state) {
    (void)state;
    static const double shares[] = {0.05, 0.3, 2.0};
    size_t n_helped = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) check_random(seed, shares[seed % 3], &n_helped);
    assert_true(n_helped > 15);
}

// ---- sample graphs ----

static void test_unet_again(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = case_sample("unet");
    const tide_pass_options opt = with_share(0.1);
    size_t n_want, n_got;
    char *want = case_run(p, NULL, &n_want);
    tide_lifetimes lt;
    tide_pass_report r;
    assert_tide_ok(tide_passes_run(p, &opt, &lt, &r, &err), &err);
    if (r.gains[TIDE_PASS_RECOMPUTE].n == 0)
        print_message("unet: with this processor's scratch nothing is run twice\n");
    tide_memory_plan *m = case_plan(&lt);
    char *got = case_run(p, m, &n_got);
    assert_int_equal(n_got, n_want);
    assert_memory_equal(got, want, n_want);
    tide_host_free(want);
    tide_host_free(got);
    tide_memory_plan_destroy(m);
    tide_lifetimes_deinit(&lt);
    tide_program_unref(p);
}

/// Share 0, none, or not a number: nothing happens.
static void test_no_share(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const double shares[] = {0, -1, NAN};
    for (size_t i = 0; i < 3; i++) {
        tide_program *p = case_build(skip_graph(false), NULL, 0);
        const tide_pass_options opt = with_share(shares[i]);
        size_t n = 7;
        double extra = 7;
        bool cut;
        assert_tide_ok(tide_pass_recompute(p, &opt, &n, &extra, &cut, &err), &err);
        assert_int_equal(n, 0);
        assert_true(extra == 0);
        assert_int_equal(p->n_steps, 6);
        tide_program_unref(p);
    }
}

/// The n-th allocation fails: an error, or the program is as good as with memory.
static void test_no_memory(void **state) {
    (void)state;
    const tide_pass_options opt = with_share(1);
    for (int n_failed = 0;; n_failed++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_program *p = case_build(skip_graph(false), NULL, 0);
        size_t n, n_bytes;
        double extra;
        bool cut;
        tide_host_fail_after(n_failed);
        const tide_status st = tide_pass_recompute(p, &opt, &n, &extra, &cut, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_int_equal(p->n_steps, 6 + p->n_twins);
        tide_host_free(case_run(p, NULL, &n_bytes)); // whatever happened, it runs
        tide_program_unref(p);
        if (st == TIDE_OK) break;
        assert_true(n_failed < 5000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_a_skip_is_made_again),
        tide_unit_test(test_the_whole_allowance_may_be_used),
        tide_unit_test(test_a_chain_is_made_again),
        tide_unit_test(test_who_may_not_run_twice),
        tide_unit_test(test_never_worse_and_bit_by_bit),
        tide_unit_test(test_unet_again),
        tide_unit_test(test_no_share),
        tide_unit_test(test_no_memory),
    };
    // What the process keeps for good (its registry) is made before anything is counted.
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
