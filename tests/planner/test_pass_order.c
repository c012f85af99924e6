// SPDX-License-Identifier: MIT
//
// The order pass: against all orders of small programs, on the sample graphs and shared models, on large ones by its
// budget. S23-4: the order is one of the graph's, and the same every time.
#include "order_case.h"
#include "program_case.h"

// ---- small programs by chance, against all orders ----

static void test_best_of_all_orders(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    size_t n_better = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)tide_test_rounds(170, 1500); seed++) {
        tide_rng rng = {seed};
        order_case c;
        case_random(&c, &rng, 3 + (uint32_t)tide_rng_below(&rng, 7));
        uint32_t order[MAX_STEPS], given[MAX_STEPS];
        for (uint32_t i = 0; i < MAX_STEPS; i++) given[i] = i;
        tide__order_report r;
        assert_tide_ok(tide__order_run(&c.f, 0, order, &r, &err), &err);
        const uint64_t given_bytes = peak_by_definition(&c, given), found_bytes = peak_by_definition(&c, order);
        uint64_t best_bytes = UINT64_MAX;
        try_all(&c, 0, 0, &best_bytes);
        if (r.given_bytes != given_bytes || r.best_bytes != found_bytes || found_bytes != best_bytes || !r.exact)
            fail_msg("seed %llu: given %llu (said %llu), found %llu (said %llu), best %llu, exact %d",
                     (unsigned long long)seed, (unsigned long long)given_bytes, (unsigned long long)r.given_bytes,
                     (unsigned long long)found_bytes, (unsigned long long)r.best_bytes, (unsigned long long)best_bytes,
                     r.exact);
        n_better += best_bytes < given_bytes;
        tide__order_facts_deinit(&c.f);
    }
    assert_true(n_better > (size_t)tide_test_rounds(18, 200)); // or nothing was asked
}

/// With no budget to speak of: still an order, still counted rightly, never worse.
static void test_any_budget_is_safe(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t seed = 1; seed <= (uint64_t)tide_test_rounds(50, 400); seed++) {
        tide_rng rng = {seed};
        order_case c;
        case_random(&c, &rng, 9);
        for (uint64_t budget = 1; budget < 3000; budget = budget * 3 + 1) {
            uint32_t order[MAX_STEPS];
            tide__order_report r;
            assert_tide_ok(tide__order_run(&c.f, budget, order, &r, &err), &err);
            assert_int_equal(peak_by_definition(&c, order), r.best_bytes);
            assert_true(r.best_bytes <= r.given_bytes);
            assert_true(r.n_visits <= budget);
        }
        tide__order_facts_deinit(&c.f);
    }
}

// ---- the same every time ----

/// The same facts with their steps in another order that can run, by chance.
static void renumber(const tide__order_facts *f, tide_rng *rng, tide__order_facts *out) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t to[MAX_STEPS];
    uint32_t ran = 0;
    for (uint32_t k = 0; k < f->n_steps; k++) {
        uint32_t ready[MAX_STEPS];
        size_t n = 0;
        for (uint32_t step = 0; step < f->n_steps; step++) {
            if (may_run(f, step, ran)) ready[n++] = step;
        }
        const uint32_t step = ready[tide_rng_below(rng, n)];
        ran |= 1u << step;
        to[step] = k;
    }
    assert_tide_ok(tide__facts_init(out, f->n_steps, &err), &err);
    for (uint32_t step = 0; step < f->n_steps; step++) out->scratch_bytes[to[step]] = f->scratch_bytes[step];
    for (size_t t = 0; t < f->n_tensors; t++) {
        uint32_t same;
        assert_tide_ok(tide__facts_add_tensor(out, to[f->tensors[t].maker], 1, 1, &same, &err), &err);
        out->tensors[same] = f->tensors[t];
        out->tensors[same].maker = to[f->tensors[t].maker];
    }
    const tide__fact_pairs *const from[] = {&f->reads, &f->overwrites, &f->results, &f->after};
    tide__fact_pairs *const into[] = {&out->reads, &out->overwrites, &out->results, &out->after};
    for (size_t list = 0; list < 4; list++) {
        for (size_t i = 0; i < from[list]->n; i++) {
            const tide__fact_pair p = from[list]->list[i];
            const uint32_t other = list == 3 ? to[p.other] : p.other;
            assert_tide_ok(tide__facts_add_pair(into[list], to[p.step], other, &err), &err);
        }
    }
}

static void test_same_peak_from_any_order(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        tide_rng rng = {seed};
        order_case c;
        case_random(&c, &rng, 9);
        uint32_t order[MAX_STEPS];
        tide__order_report r;
        assert_tide_ok(tide__order_run(&c.f, 0, order, &r, &err), &err);
        for (int k = 0; k < 5; k++) {
            tide__order_facts other;
            tide__order_report s;
            renumber(&c.f, &rng, &other);
            assert_tide_ok(tide__order_run(&other, 0, order, &s, &err), &err);
            assert_int_equal(s.best_bytes, r.best_bytes);
            tide__order_facts_deinit(&other);
        }
        tide__order_facts_deinit(&c.f);
    }
}

static const tide_pass_options defaults = {.align_bytes = TIDE_DEFAULT_ALIGN};

static void test_same_order_a_hundred_times_S23_4(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const char *const names[] = {"decoder_step", "inception_block"};
    for (size_t i = 0; i < 2; i++) {
        uint32_t first[128], order[128];
        for (int k = 0; k < 100; k++) {
            tide_program *p = case_sizes(names[i]); // a new one, at other addresses
            uint64_t peak;
            assert_true(p->n_steps <= 128);
            assert_tide_ok(tide_pass_order(p, &defaults, k == 0 ? first : order, &peak, &err), &err);
            if (k > 0) assert_memory_equal(order, first, p->n_steps * sizeof *order);
            tide_program_unref(p);
        }
    }
}

// ---- real programs ----

/// A part of a whole counts in whole multiples of the alignment, which the pass does not: what it says is at most one
/// alignment for each alias off the lower bound, and the same where nothing is rounded.
static void expect_counted(const char *name, const tide_program *p, const tide_pass_options *opt, uint64_t said) {
    size_t n_aliases;
    const uint64_t is = case_lower_bound(p, opt, &n_aliases);
    const uint64_t tails = opt->align_bytes == 1 ? 0 : n_aliases * (opt->align_bytes - 1);
    if ((said < is ? is - said : said - is) > tails)
        fail_msg("%s: the order pass counts %llu B, the lower bound is %llu B (%zu aliases)", name,
                 (unsigned long long)said, (unsigned long long)is, n_aliases);
}

static void check_program(const char *name, tide_program *p, uint64_t align) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_pass_options opt = {.align_bytes = align};
    uint32_t *order = tide_host_calloc(p->n_steps, sizeof *order);
    uint64_t peak, given;
    tide__fact_source source;
    tide__order_facts f;
    assert_tide_ok(tide__fact_source_init(&source, p, &opt, &err), &err);
    assert_tide_ok(tide__order_facts_of(&source, NULL, 0, &f, &err), &err);
    assert_tide_ok(tide__order_given_peak(&f, &given, &err), &err);
    expect_counted(name, p, &opt, given);
    assert_tide_ok(tide_pass_order(p, &opt, order, &peak, &err), &err);
    assert_true(peak <= given);
    assert_tide_ok(tide_program_reorder(p, order, &err), &err); // a permutation, and it can run
    expect_counted(name, p, &opt, peak);
    tide__order_facts_deinit(&f);
    tide__fact_source_deinit(&source);
    tide_host_free(order);
}

static void test_counts_as_the_lower_bound_does(void **state) {
    (void)state;
    static const uint64_t aligns[] = {1, 256};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < N_CASE_SAMPLES; i++) {
            tide_program *p = case_sizes(case_samples[i]);
            check_program(case_samples[i], p, aligns[k]);
            tide_program_unref(p);
        }
        for (size_t i = 0; i < N_CASE_MODELS; i++) {
            tide_program *p = case_model(case_models[i]);
            if (p == NULL) continue;
            check_program(case_models[i], p, aligns[k]);
            tide_program_unref(p);
        }
    }
}

/// Each alias pass may be off: then the pass counts without it.
static void test_counts_with_passes_off(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const char *const names[] = {"inception_block", "view_chain", "densenet_block", "split_two_outputs"};
    for (size_t i = 0; i < 4; i++) {
        tide_program *p = case_sizes(names[i]);
        for (int bits = 0; bits < 16; bits++) {
            tide_pass_options opt = {.align_bytes = 1};
            for (int b = 0; b < 4; b++) opt.off[b] = (bits >> b & 1) != 0;
            tide__fact_source source;
            tide__order_facts f;
            uint64_t given;
            assert_tide_ok(tide__fact_source_init(&source, p, &opt, &err), &err);
            assert_tide_ok(tide__order_facts_of(&source, NULL, 0, &f, &err), &err);
            assert_tide_ok(tide__order_given_peak(&f, &given, &err), &err);
            expect_counted(names[i], p, &opt, given);
            tide__order_facts_deinit(&f);
            tide__fact_source_deinit(&source);
        }
        tide_program_unref(p);
    }
}

/// What is known to be gained, in bytes of the lower bound: worse would be a step back.
static void test_known_gains(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t at_most;
    } known[] = {{"inception_block", 986368}, {"decoder_step", 17920}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_program *p = case_sample_without_kernels(known[i].name);
        tide_lifetimes lt;
        tide_pass_report report;
        assert_tide_ok(tide_passes_run(p, &defaults, &lt, &report, &err), &err);
        if (report.final_bytes > known[i].at_most)
            fail_msg("%s: %llu bytes, want at most %llu", known[i].name, (unsigned long long)report.final_bytes,
                     (unsigned long long)known[i].at_most);
        assert_true(report.gains[TIDE_PASS_ORDER].after_bytes < report.gains[TIDE_PASS_ORDER].before_bytes);
        tide_lifetimes_deinit(&lt);
        tide_program_unref(p);
    }
}

/// A part that does not begin at a multiple of 64 bytes is a tensor of its own.
static void test_parts_askew(void **state) {
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        tide_graph *g = case_graph("askew", "x", wide ? "1x32" : "1x20");
        case_node(g, "Tanh", "a", "a", "x", NULL, NULL);
        case_node(g, "Sigmoid", "b", "b", "x", NULL, NULL);
        case_node(g, "Concat", "w", "w", "a", "b", NULL);
        case_node(g, "Tanh", "end", "y", "w", NULL, NULL);
        case_output(g, "y");
        tide_program *p = case_build(g, NULL, 0);
        const tide_pass_options opt = {.align_bytes = 1};
        assert_int_equal(case_lower_bound(p, &opt, NULL), wide ? 256 : 160 + 80);
        check_program("askew", p, 1);
        tide_program_unref(p);
    }
}

/// Steps of one name keep their order, so that a plan file can be followed. Here the best order would turn them round:
/// first what needs much and leaves little.
static void test_namesakes_keep_their_order(void **state) {
    (void)state;
    for (int same = 0; same < 2; same++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_graph *g = case_graph("namesakes", "x", "1x64");
        case_node(g, "Concat", "n", "low", "x", "x", NULL);
        case_node(g, "Concat", same ? "n" : "m", "high", "x", "x", "x");
        case_node(g, "ReduceMean", "mean", "rest", "high", NULL, NULL);
        case_node(g, "Add", "sum", "y", "low", "rest", NULL);
        case_output(g, "y");
        tide_program *p = case_build(g, NULL, 0);
        uint32_t order[4], at[4];
        uint64_t peak;
        assert_tide_ok(tide_pass_order(p, &defaults, order, &peak, &err), &err);
        for (uint32_t k = 0; k < 4; k++) at[order[k]] = k;
        assert_true((at[0] < at[1]) == (same != 0));
        assert_true((peak < case_lower_bound(p, &defaults, NULL)) == (same == 0));
        tide_program_unref(p);
    }
}

// ---- large programs ----

/// `width` chains side by side that now and then read from one another.
static void make_wide(tide__order_facts *f, uint32_t n_steps, uint32_t width, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {seed};
    assert_tide_ok(tide__facts_init(f, n_steps, &err), &err);
    for (uint32_t step = 0; step < n_steps; step++) {
        uint32_t t;
        assert_tide_ok(tide__facts_add_tensor(f, step, 1 + tide_rng_below(&rng, 4096), 256, &t, &err), &err);
        if (step >= width) assert_tide_ok(tide__facts_add_read(f, step, step - width, &err), &err);
        if (step > width && tide_rng_below(&rng, 3) == 0) {
            const uint32_t other = step - 1 - (uint32_t)tide_rng_below(&rng, width - 1);
            assert_tide_ok(tide__facts_add_read(f, step, other, &err), &err);
        }
    }
}

static void test_wide_programs_end_by_their_budget(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide__order_facts f;
    make_wide(&f, 2000, 50, 11);
    uint32_t *order = tide_host_calloc(f.n_steps, sizeof *order), *same = tide_host_calloc(f.n_steps, sizeof *same);
    tide__order_report r, s;
    assert_tide_ok(tide__order_run(&f, 0, order, &r, &err), &err);
    assert_true(r.n_visits <= TIDE__ORDER_BUDGET);
    assert_false(r.exact);
    assert_true(r.best_bytes < r.given_bytes);
    assert_tide_ok(tide__order_run(&f, 0, same, &s, &err), &err);
    assert_memory_equal(order, same, f.n_steps * sizeof *order);
    assert_tide_ok(tide__order_run(&f, 10000, same, &s, &err), &err);
    assert_true(s.n_visits <= 10000);
    assert_true(s.best_bytes <= s.given_bytes && s.best_bytes >= r.best_bytes);
    tide_host_free(order);
    tide_host_free(same);
    tide__order_facts_deinit(&f);
}

/// Longer than what is searched as a whole: still an order that can run, better than the given one.
static void test_long_programs(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide__order_facts f;
    make_wide(&f, 7000, 20, 5);
    uint32_t *order = tide_host_calloc(f.n_steps, sizeof *order), *at = tide_host_calloc(f.n_steps, sizeof *at);
    tide__order_report r;
    assert_tide_ok(tide__order_run(&f, 0, order, &r, &err), &err);
    assert_true(r.best_bytes < r.given_bytes);
    assert_true(r.n_visits <= TIDE__ORDER_BUDGET);
    for (uint32_t k = 0; k < f.n_steps; k++) {
        assert_true(order[k] < f.n_steps && at[order[k]] == 0);
        at[order[k]] = k + 1;
    }
    for (size_t i = 0; i < f.after.n; i++) assert_true(at[f.after.list[i].step] > at[f.after.list[i].other]);
    tide_host_free(order);
    tide_host_free(at);
    tide__order_facts_deinit(&f);
}

static void test_no_memory(void **state) {
    (void)state;
    for (int n_failed = 0;; n_failed++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_program *p = case_sizes("inception_block");
        uint32_t order[16];
        uint64_t peak;
        tide_host_fail_after(n_failed);
        const tide_status st = tide_pass_order(p, &defaults, order, &peak, &err);
        tide_host_fail_after(-1);
        tide_program_unref(p);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_true(n_failed < 2000);
    }
}

static void test_wrong_alignment(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p = case_sample("diamond");
    uint32_t order[8];
    uint64_t peak;
    const tide_pass_options opt = {.align_bytes = 3};
    assert_tide_status(tide_pass_order(p, &opt, order, &peak, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "alignment of 3");
    tide_program_unref(p);
}

/// Steps that leave what is alive as it is are run at once: they are no choices, so they cost no states.
static void safe_steps_cost_no_states(void **state) {
    (void)state;
    enum { N_SAFE = 14, N_STEPS = N_SAFE + 4 };
    tide_error err = TIDE_ERROR_INIT;
    tide__order_facts f;
    tide__order_report report;
    uint32_t order[N_STEPS], a, b;
    assert_tide_ok(tide__facts_init(&f, N_STEPS, &err), &err);
    assert_tide_ok(tide__facts_add_tensor(&f, N_SAFE, 4096, 64, &a, &err), &err);
    assert_tide_ok(tide__facts_add_tensor(&f, N_SAFE + 1, 4096, 64, &b, &err), &err);
    assert_tide_ok(tide__facts_add_read(&f, N_SAFE + 2, a, &err), &err);
    assert_tide_ok(tide__facts_add_read(&f, N_SAFE + 3, b, &err), &err);
    assert_tide_ok(tide__order_run(&f, 0, order, &report, &err), &err);
    assert_int_equal(report.given_bytes, 8192);
    assert_int_equal(report.best_bytes, 4096);
    assert_true(report.exact && report.n_states < 20);
    tide__order_facts_deinit(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(safe_steps_cost_no_states),
        tide_unit_test(test_best_of_all_orders),
        tide_unit_test(test_any_budget_is_safe),
        tide_unit_test(test_same_peak_from_any_order),
        tide_unit_test(test_same_order_a_hundred_times_S23_4),
        tide_unit_test(test_counts_as_the_lower_bound_does),
        tide_unit_test(test_counts_with_passes_off),
        tide_unit_test(test_known_gains),
        tide_unit_test(test_parts_askew),
        tide_unit_test(test_namesakes_keep_their_order),
        tide_unit_test(test_wide_programs_end_by_their_budget),
        tide_unit_test(test_long_programs),
        tide_unit_test(test_no_memory),
        tide_unit_test(test_wrong_alignment),
    };
    // What the process keeps for good (its registry) is made before anything is counted.
    return tide_registry_default() == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
