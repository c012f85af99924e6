// SPDX-License-Identifier: MIT
//
// Comparing traces: iterations by their number, moments of one trace, a plan with its run.
#include "tests/analysis/compare_fixture.h"

// ---- traces ----

/// "it" is allocated and freed three times; B keeps the second of them and has the third at twice the size.
static void record_iterations(const char *path, bool is_b) {
    feeder f;
    feeder_open(&f, path, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_PERSISTENT, 1000, "w");
    for (uint64_t k = 0; k < 3; k++) {
        const uint64_t bytes = is_b && k == 2 ? 512 : 256, id = (is_b ? 50 : 10) + k;
        feed(&f, 200 + 100 * k, TIDE_MEM_ALLOC, id, TIDE_KIND_WORKSPACE, bytes, "it");
        if (!is_b || k != 1) feed_free(&f, 250 + 100 * k, id, TIDE_KIND_WORKSPACE, bytes, "it");
    }
    if (is_b) feed(&f, 900, TIDE_MEM_ALLOC, 99, TIDE_KIND_WORKSPACE, 64, "");
    feeder_close(&f);
}

static void iterations_by_their_number(void **state) {
    (void)state;
    tmp_dir a_dir, b_dir;
    tide_subject *s[2];
    tmp_dir_make(&a_dir);
    tmp_dir_make(&b_dir);
    record_iterations(a_dir.file, false);
    record_iterations(b_dir.file, true);
    s[0] = subject_of_trace(a_dir.file, 0);
    s[1] = subject_of_trace(b_dir.file, 0);
    load_items(s[0]);
    load_items(s[1]);
    tide_diff x = compared(s[0], NULL, s[1], NULL, false);
    assert_sums(&x);
    assert_int_equal(x.n, 5);
    assert_int_equal(x.n_resized, 1);
    assert_int_equal(x.n_added, 1);
    assert_int_equal(x.n_unchanged, 3);
    assert_int_equal(x.a_plan_bytes, TIDE_UNKNOWN_BYTES);
    // A holds 1256 requested of 1280 at its peak, B 1768 of 1792.
    assert_int_equal(x.a_bytes, 1280);
    assert_int_equal(x.b_bytes, 1792);
    assert_int_equal(step(x.by_owner, x.n_by_owner, "(no operator)", false)->b_bytes, 1768 - 1000);
    assert_int_equal(step(x.by_owner, x.n_by_owner, "rounding", true)->a_bytes, 24);
    for (size_t i = 0; i < x.n; i++) {
        if ((x.rows[i].what & TIDE_DIFF_RESIZED) == 0) continue;
        assert_int_equal(x.rows[i].a_bytes, 256);
        assert_int_equal(x.rows[i].b_bytes, 512);
        assert_int_equal(tide_items_begin(tide_subject_items(s[1]), x.rows[i].b), 400);
    }
    tide_diff back = compared(s[1], NULL, s[0], NULL, false);
    assert_turned(&x, &back);
    tide_diff_deinit(&back);
    tide_diff_deinit(&x);
    tide_subject_destroy(s[0]);
    tide_subject_destroy(s[1]);
    tmp_dir_remove(&a_dir);
    tmp_dir_remove(&b_dir);
}

/// Two moments of one trace, with no items loaded: who came, who went, who stayed.
static void two_moments_of_one_trace(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    record_iterations(d.file, true);
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *s = subject_of_trace(d.file, 0), *again;
    assert_tide_ok(tide_subject_again(s, &again, &err), &err);
    const tide_moment a = {.t = 310}, b = {.t = 410};
    for (int k = 0; k < 2; k++) {
        tide_diff x = compared(s, &a, k == 0 ? s : again, &b, k == 0);
        assert_sums(&x);
        assert_int_equal(x.n, 3);
        assert_int_equal(x.n_unchanged, 2); // w and the one that is kept
        assert_int_equal(x.n_added, 1);
        assert_int_equal(x.rows[0].what, TIDE_DIFF_ADDED);
        assert_int_equal(x.rows[0].b_at_bytes, 512);
        tide_diff_deinit(&x);
    }
    tide_diff x = compared(s, &a, s, &a, true);
    assert_no_change(&x);
    tide_diff_deinit(&x);
    tide_subject_destroy(s);
    tide_subject_destroy(again);
    tmp_dir_remove(&d);
}

/// Each execution allocates its own: equal ones are unchanged, one that has grown is resized, one more is added.
static void two_executions_of_one_trace(void **state) {
    (void)state;
    tmp_dir d;
    feeder f;
    tmp_dir_make(&d);
    feeder_open(&f, d.file, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_PERSISTENT, 1000, "w");
    for (uint64_t k = 0; k < 3; k++) {
        const uint64_t t = 1000 + 100 * k, id = 10 * (k + 1);
        for (uint64_t i = 0; i < 3; i++) feed(&f, t + i, TIDE_MEM_ALLOC, id + i, TIDE_KIND_WORKSPACE, 256, "out");
        feed(&f, t + 3, TIDE_MEM_ALLOC, id + 3, TIDE_KIND_WORKSPACE, k == 2 ? 512 : 64, "scratch");
        if (k == 2) feed(&f, t + 4, TIDE_MEM_ALLOC, id + 4, TIDE_KIND_WORKSPACE, 256, "out");
        for (uint64_t i = 0; i < 3; i++) feed_free(&f, t + 50 + 2 * i, id + i, TIDE_KIND_WORKSPACE, 256, "out");
        feed_free(&f, t + 60, id + 3, TIDE_KIND_WORKSPACE, k == 2 ? 512 : 64, "scratch");
    }
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_moment at[] = {{.t = 1010}, {.t = 1110}, {.t = 1210}};
    tide_diff x = compared(s, &at[0], s, &at[1], true);
    assert_no_change(&x);
    assert_int_equal(x.n_unchanged, 5);
    tide_diff_deinit(&x);
    x = compared(s, &at[0], s, &at[2], true);
    assert_sums(&x);
    assert_int_equal(x.n_unchanged, 4);
    assert_int_equal(x.n_resized, 1);
    assert_int_equal(x.n_added, 1);
    assert_int_equal(x.n_removed, 0);
    tide_diff back = compared(s, &at[2], s, &at[0], true);
    assert_turned(&x, &back);
    tide_diff_deinit(&back);
    tide_diff_deinit(&x);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

static tide_subject *random_work(const char *path, uint64_t seed) {
    working w;
    work_open(&w, path);
    work_at_random(&w, seed, 250);
    work_close(&w);
    return subject_of_trace(path, 0);
}

static void real_traces(void **state) {
    (void)state;
    tmp_dir a_dir, b_dir;
    tide_subject *s[2];
    tmp_dir_make(&a_dir);
    tmp_dir_make(&b_dir);
    s[0] = random_work(a_dir.file, 70);
    s[1] = random_work(b_dir.file, 71);
    for (int loaded = 0; loaded < 2; loaded++) {
        if (loaded) load_items(s[0]);
        if (loaded) load_items(s[1]);
        tide_diff x = compared(s[0], NULL, s[1], NULL, loaded == 0), y = compared(s[1], NULL, s[0], NULL, loaded == 0);
        assert_sums(&x);
        assert_turned(&x, &y);
        tide_diff_deinit(&x);
        tide_diff_deinit(&y);
        const tide_subject_facts *f = tide_subject_get_facts(s[0]);
        const tide_moment half = {.t = f->begin + (f->end - f->begin) / 2};
        x = compared(s[0], &half, s[0], NULL, true);
        assert_sums(&x);
        tide_diff_deinit(&x);
    }
    tide_subject_destroy(s[0]);
    tide_subject_destroy(s[1]);
    tmp_dir_remove(&a_dir);
    tmp_dir_remove(&b_dir);
}

/// A plan and the planned run that followed it: the tensors find each other by name.
static void a_plan_and_its_run(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *plan = subject_of_plan(demo_plan_make()), *run = subject_of_trace(d.file, 2);
    load_items(plan);
    load_items(run);
    const tide_moment at = {.t = 2160}, one = {.t = 1};
    tide_diff x = compared(plan, &one, run, &at, false);
    assert_sums(&x);
    assert_int_equal(row(&x, "a")->a_at_bytes, 1024);
    assert_int_equal(row(&x, "a")->b_at_bytes, 1024);
    assert_int_equal(row(&x, "a")->what, 0); // same place, same steps
    assert_int_equal(row(&x, "kept")->what, TIDE_DIFF_ADDED);
    assert_int_equal(step(x.by_owner, x.n_by_owner, "slack", true)->a_bytes, 1024);
    assert_int_equal(step(x.by_owner, x.n_by_owner, "unused in the buffer", true)->b_bytes, 1024);
    tide_diff_deinit(&x);
    tide_subject_destroy(plan);
    tide_subject_destroy(run);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(iterations_by_their_number),  tide_unit_test(two_moments_of_one_trace),
        tide_unit_test(two_executions_of_one_trace), tide_unit_test(real_traces),
        tide_unit_test(a_plan_and_its_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
