// SPDX-License-Identifier: MIT
//
// passes: all of them together over whole programs: what the report says is what the tables say, nothing gets worse,
// each can be switched off, and the same input gives the same answer.
#include "core/base/host_alloc.h"
#include "program_case.h"

static const tide_pass_options all_on = {.align_bytes = TIDE_DEFAULT_ALIGN};

static uint64_t run_passes(tide_program *p, const tide_pass_options *opt, tide_lifetimes *lt,
                           tide_pass_report *report) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t bytes;
    assert_tide_ok(tide_passes_run(p, opt, lt, report, &err), &err);
    assert_tide_ok(tide_lower_bound(lt, &bytes, NULL, &err), &err);
    return bytes;
}

static uint64_t bare_bound(const tide_program *p) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt;
    uint64_t bytes;
    assert_tide_ok(tide_liveness(p, all_on.align_bytes, &lt, &err), &err);
    assert_tide_ok(tide_lower_bound(&lt, &bytes, NULL, &err), &err);
    tide_lifetimes_deinit(&lt);
    return bytes;
}

/// Each pass begins where the one before it ended, and none goes up.
static void check_report(const tide_pass_report *r, const tide_pass_options *opt, uint64_t bytes) {
    uint64_t at = r->given_bytes;
    for (int pass = 0; pass < TIDE_N_PASSES; pass++) {
        const tide_pass_gain *gain = &r->gains[pass];
        const bool on = !opt->off[pass] && (pass != TIDE_PASS_RECOMPUTE || opt->recompute_share > 0);
        assert_int_equal(gain->ran, on);
        if (!on) continue;
        assert_int_equal(gain->before_bytes, at);
        assert_true(gain->after_bytes <= gain->before_bytes);
        at = gain->after_bytes;
    }
    assert_int_equal(r->final_bytes, at);
    assert_int_equal(r->final_bytes, bytes);
}

static void check_program(tide_program *(*make)(const char *), const char *name, const tide_pass_options *opt) {
    tide_program *p = make(name);
    if (p == NULL) return;
    const uint64_t given = bare_bound(p);
    tide_lifetimes lt;
    tide_pass_report report;
    const uint64_t bytes = run_passes(p, opt, &lt, &report);
    assert_int_equal(report.given_bytes, given);
    assert_true(bytes <= given);
    check_report(&report, opt, bytes);
    assert_true(report.work > 0);
    assert_true(report.extra_work <= opt->recompute_share * report.work * 1.000001);
    // Every alias is inside what has the place, and only intermediates are aliases (S23-6).
    for (uint32_t i = 0; i < lt.n; i++) {
        if (lt.items[i].alias == TIDE_ALIAS_NONE) continue;
        uint64_t at;
        const tide_lifetime *root = &lt.items[tide_lifetimes_root(&lt, i, &at)];
        assert_true(at + lt.items[i].size_bytes <= root->size_bytes);
        assert_int_equal(lt.items[i].role, TIDE_ROLE_INTERMEDIATE);
        assert_int_equal(root->role, TIDE_ROLE_INTERMEDIATE);
    }
    tide_lifetimes_deinit(&lt);
    tide_program_unref(p);
}

static void the_report_is_true_and_nothing_gets_worse(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CASE_SAMPLES; i++) {
        check_program(case_sizes, case_samples[i], &all_on);
        tide_pass_options opt = all_on;
        opt.recompute_share = 0.2;
        check_program(case_sizes, case_samples[i], &opt);
        for (int pass = 0; pass < TIDE_N_PASSES; pass++) {
            opt = all_on;
            opt.off[pass] = true;
            check_program(case_sizes, case_samples[i], &opt);
        }
    }
    for (size_t i = 0; i < N_CASE_MODELS; i++) check_program(case_model, case_models[i], &all_on);
}

static void without_passes_nothing_is_touched(void **state) {
    (void)state;
    for (size_t i = 0; i < N_CASE_SAMPLES; i++) {
        tide_program *p = case_sizes(case_samples[i]);
        tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN};
        for (int pass = 0; pass < TIDE_N_PASSES; pass++) opt.off[pass] = true;
        tide_lifetimes lt, bare;
        tide_error err = TIDE_ERROR_INIT;
        run_passes(p, &opt, &lt, NULL);
        assert_tide_ok(tide_liveness(p, opt.align_bytes, &bare, &err), &err);
        assert_int_equal(lt.n, bare.n);
        for (size_t k = 0; k < lt.n; k++) {
            assert_string_equal(lt.items[k].name, bare.items[k].name);
            assert_int_equal(lt.items[k].alias, TIDE_ALIAS_NONE);
            assert_int_equal(lt.items[k].begin_step, bare.items[k].begin_step);
            assert_int_equal(lt.items[k].end_step, bare.items[k].end_step);
        }
        tide_lifetimes_deinit(&lt);
        tide_lifetimes_deinit(&bare);
        tide_program_unref(p);
    }
}

static void assert_same_tables(const tide_lifetimes *a, const tide_lifetimes *b) {
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_step_names, b->n_step_names);
    assert_int_equal(a->n_recomputed, b->n_recomputed);
    for (size_t s = 0; s < a->n_step_names; s++) assert_string_equal(a->step_names[s], b->step_names[s]);
    for (size_t i = 0; i < a->n; i++) {
        const tide_lifetime *x = &a->items[i], *y = &b->items[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->begin_step, y->begin_step);
        assert_int_equal(x->end_step, y->end_step);
        assert_int_equal(x->alias, y->alias);
        if (x->alias == TIDE_ALIAS_NONE) continue;
        assert_int_equal(x->alias_of, y->alias_of);
        assert_int_equal(x->alias_offset_bytes, y->alias_offset_bytes);
    }
}

static void every_time_the_same(void **state) {
    (void)state;
    tide_pass_options opt = all_on;
    opt.recompute_share = 0.1;
    for (size_t i = 0; i < N_CASE_SAMPLES; i++) {
        tide_lifetimes first;
        tide_program *p = case_sample(case_samples[i]);
        run_passes(p, &opt, &first, NULL);
        tide_program_unref(p);
        for (int again = 0; again < 3; again++) { // and without the content of weights
            tide_lifetimes lt;
            p = case_sizes(case_samples[i]);
            run_passes(p, &opt, &lt, NULL);
            assert_same_tables(&first, &lt);
            tide_lifetimes_deinit(&lt);
            tide_program_unref(p);
        }
        tide_lifetimes_deinit(&first);
    }
}

/// A plan says which program it was made for: a fresh one that follows it has the same table (recomputed steps too).
static void a_fresh_program_can_follow_a_plan(void **state) {
    (void)state;
    tide_pass_options opt = all_on;
    opt.recompute_share = 0.2;
    size_t n_again = 0, n_moved = 0;
    for (size_t i = 0; i < N_CASE_SAMPLES; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_program *p = case_sizes(case_samples[i]), *fresh = case_sizes(case_samples[i]);
        tide_lifetimes lt, bare, followed;
        tide_pass_report report;
        run_passes(p, &opt, &lt, &report);
        n_again += lt.n_recomputed;
        n_moved += report.gains[TIDE_PASS_ORDER].n;
        assert_tide_ok(tide_program_follow(fresh, lt.step_names, lt.n_step_names, lt.recomputed, lt.n_recomputed, &err),
                       &err);
        assert_tide_ok(tide_liveness(p, opt.align_bytes, &bare, &err), &err);
        assert_tide_ok(tide_liveness(fresh, opt.align_bytes, &followed, &err), &err);
        assert_same_tables(&bare, &followed);
        tide_lifetimes_deinit(&lt);
        tide_lifetimes_deinit(&bare);
        tide_lifetimes_deinit(&followed);
        tide_program_unref(p);
        tide_program_unref(fresh);
    }
    assert_true(n_again > 0 && n_moved > 0); // there was something to follow
}

static void names_go_both_ways(void **state) {
    (void)state;
    for (int pass = 0; pass < TIDE_N_PASSES; pass++) {
        tide_pass got;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_pass_parse(tide_pass_name((tide_pass)pass), &got, &err), &err);
        assert_int_equal(got, pass);
    }
    tide_pass got;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_pass_parse("inplace", &got, &err), TIDE_ERR_INVALID);
    assert_text_has(err.hint, "in-place");
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void **state) {
    (void)state;
    tide_pass_options opt = all_on;
    opt.recompute_share = 0.2;
    tide_status st = TIDE_ERR_NOMEM;
    for (int64_t n = 0; st != TIDE_OK; n += 1 + n / 40) {
        tide_program *p = case_sizes("inception_block");
        tide_lifetimes lt;
        tide_host_fail_after(n);
        st = tide_passes_run(p, &opt, &lt, NULL, NULL);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) {
            assert_true(n > 20);
            tide_lifetimes_deinit(&lt);
        } else {
            assert_int_equal(st, TIDE_ERR_NOMEM);
        }
        tide_program_unref(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_report_is_true_and_nothing_gets_worse),
        tide_unit_test(without_passes_nothing_is_touched),
        tide_unit_test(every_time_the_same),
        tide_unit_test(a_fresh_program_can_follow_a_plan),
        tide_unit_test(names_go_both_ways),
        tide_unit_test(every_failed_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
