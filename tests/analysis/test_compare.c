// SPDX-License-Identifier: MIT
//
// Comparing plans: what is the same is the same, what changed is found and named, the waterfall sums to the change.
#include "analysis/whatif.h"
#include "tests/analysis/compare_fixture.h"

// ---- plans ----

static tide_subject *edited(const tide_memory_plan *plan, const char *const *texts, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    tide_edit edits[4];
    tide_memory_plan *got;
    for (size_t i = 0; i < n; i++) assert_tide_ok(tide_edit_parse(texts[i], &edits[i], &err), &err);
    const tide_whatif w = {.plan = plan, .edits = edits, .n = n};
    assert_tide_ok(tide_whatif_make(&w, &got, &err), &err);
    return subject_of_plan(got);
}

/// The demo plan without b: c lies where b did, nothing else changes.
static void a_tensor_less(void **state) {
    (void)state;
    static const char *const edits[] = {"gone b", "strategy greedy_by_size"};
    tide_subject *a = subject_of_plan(demo_plan_make());
    tide_subject *b = edited(tide_subject_get_facts(a)->plan, edits, 2);
    load_items(a);
    load_items(b);
    tide_diff d = compared(a, NULL, b, NULL, false);
    assert_sums(&d);
    assert_int_equal(d.a_bytes, 2560 + 2560);
    assert_int_equal(d.b_bytes, 2560 + 2048);
    assert_int_equal(d.a_peak_bytes, 5120);
    assert_int_equal(d.b_peak_bytes, 4608);
    assert_int_equal(d.a_plan_bytes, 2560);
    assert_int_equal(d.b_plan_bytes, 2048);
    assert_int_equal(d.n, 8);
    assert_int_equal(d.n_removed, 1);
    assert_int_equal(d.n_added + d.n_resized + d.n_retimed, 0);
    assert_int_equal(row(&d, "b")->what, TIDE_DIFF_REMOVED);
    assert_int_equal(row(&d, "b")->a_at_bytes, 512);
    assert_int_equal(row(&d, "b")->b, TIDE_NO_ITEM);
    assert_string_equal(d.rows[0].name, "b"); // the largest change comes first
    assert_string_equal(d.rows[0].owner, "relu");
    assert_int_equal(row(&d, "c")->what, TIDE_DIFF_MOVED);
    assert_int_equal(row(&d, "a")->what, 0);
    assert_string_equal(d.by_owner[0].key, "relu");
    assert_int_equal(d.by_owner[0].a_bytes, 512);
    assert_int_equal(d.by_owner[0].b_bytes, 0);
    assert_int_equal(step(d.by_kind, d.n_by_kind, "Workspace", false)->a_bytes, 2560);
    assert_int_equal(step(d.by_kind, d.n_by_kind, "Workspace", false)->b_bytes, 2048);
    tide_text t = {0};
    tide_diff_print(&d, a, b, 2, &t);
    assert_text_has(tide_text_str(&t), "B holds 512 B less at its peak (4.50 KiB, A 5.00 KiB): relu -512 B.\n");
    assert_text_has(tide_text_str(&t), "By kind: Workspace -512 B.\n");
    assert_text_has(tide_text_str(&t), "Planned buffers: A 2.50 KiB, B 2.00 KiB (-512 B).\n");
    assert_text_has(tide_text_str(&t), "0 added, 1 removed, 0 resized,");
    assert_text_has(tide_text_str(&t), "b: only in A, 500 B; held 512 B in A, 0 B in B (-512 B)\n");
    tide_text_deinit(&t);
    tide_diff_deinit(&d);
    tide_subject_destroy(a);
    tide_subject_destroy(b);
}

static void resized_and_retimed(void **state) {
    (void)state;
    static const char *const edits[] = {"half c", "free-earlier b 2"};
    tide_subject *a = subject_of_plan(demo_plan_make());
    tide_memory_plan *plan = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_memory_plan_copy(tide_subject_get_facts(a)->plan, &plan, &err), &err);
    tide_host_free(plan->strategy);
    plan->strategy = tide_host_strdup("greedy_by_size");
    tide_subject *b = edited(plan, edits, 2);
    tide_memory_plan_destroy(plan);
    load_items(a);
    load_items(b);
    tide_diff d = compared(a, NULL, b, NULL, false);
    assert_sums(&d);
    assert_true((row(&d, "c")->what & TIDE_DIFF_RESIZED) != 0);
    assert_int_equal(row(&d, "c")->a_bytes, 700);
    assert_int_equal(row(&d, "c")->b_bytes, 350);
    assert_true((row(&d, "b")->what & TIDE_DIFF_RETIMED) != 0);
    assert_int_equal(row(&d, "a")->what & (TIDE_DIFF_RESIZED | TIDE_DIFF_RETIMED), 0);
    assert_int_equal(row(&d, "x")->what, 0); // what persists is not retimed
    assert_int_equal(d.n_resized, 1);
    assert_int_equal(d.n_retimed, 1);
    tide_diff back = compared(b, NULL, a, NULL, false);
    assert_turned(&d, &back);
    tide_diff_deinit(&back);
    tide_diff_deinit(&d);
    tide_subject_destroy(a);
    tide_subject_destroy(b);
}

/// Steps are the same by their names, wherever they stand.
static void steps_by_their_names(void **state) {
    (void)state;
    static const char *const names[2][4] = {{"p", "q", "r", "s"}, {"new", "p", "q", "r"}};
    tide_subject *s[2];
    for (int k = 0; k < 2; k++) {
        tide_lifetimes lt = {0};
        put(&lt, "t", 10, 1 + k, 3 + k); // q to r
        put(&lt, "u", 10, 0, 2);         // p to q, and new to p
        put_persistent(&lt, "w", 10, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 4);
        lt.n_steps = 4;
        lt.step_names = tide_host_calloc(4, sizeof *lt.step_names);
        for (int i = 0; i < 4; i++) lt.step_names[i] = tide_host_strdup(names[k][i]);
        lt.n_step_names = 4;
        s[k] = subject_of_plan(make_plan(&lt, "naive"));
        load_items(s[k]);
        tide_lifetimes_deinit(&lt);
    }
    tide_diff d = compared(s[0], NULL, s[1], NULL, false);
    assert_int_equal(row(&d, "t")->what & TIDE_DIFF_RETIMED, 0);
    assert_int_equal(row(&d, "u")->what & TIDE_DIFF_RETIMED, TIDE_DIFF_RETIMED);
    assert_int_equal(row(&d, "w")->what, 0); // it lives for all steps, whatever they are
    tide_diff_deinit(&d);
    tide_subject_destroy(s[0]);
    tide_subject_destroy(s[1]);
}

static void random_plans(void **state) {
    (void)state;
    const tide_strategy *const *strategies;
    const size_t n = tide_strategies(&strategies);
    for (uint64_t seed = 1; seed < 10; seed++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_memory_plan *plan = random_plan(seed, 50, 20), *other;
        const tide_strategy_options opt = {.node_limit = 300, .n_threads = 1};
        assert_tide_ok(tide_plan_make(&plan->lifetimes, strategies[seed % n], &opt, &other, &err), &err);
        tide_subject *a = subject_of_plan(plan), *b = subject_of_plan(other);
        tide_subject *c = subject_of_plan(random_plan(seed + 100, 60, 25));
        load_items(a);
        load_items(b);
        load_items(c);
        tide_diff d = compared(a, NULL, b, NULL, false); // of one table: nothing but places differ
        assert_sums(&d);
        assert_int_equal(d.n_added + d.n_removed + d.n_resized + d.n_retimed, 0);
        assert_int_equal(d.n, 50);
        tide_diff_deinit(&d);
        for (int rows_at = 0; rows_at < 2; rows_at++) {
            const tide_moment at = {.t = (int64_t)seed};
            d = compared(a, &at, c, NULL, rows_at != 0);
            assert_sums(&d);
            tide_diff back = compared(c, NULL, a, &at, rows_at != 0);
            assert_turned(&d, &back);
            tide_diff_deinit(&back);
            tide_diff_deinit(&d);
        }
        tide_subject_destroy(a);
        tide_subject_destroy(b);
        tide_subject_destroy(c);
    }
}

static void the_same_twice(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *a = subject_of_plan(random_plan(5, 40, 15)), *again;
    assert_tide_ok(tide_subject_again(a, &again, &err), &err);
    load_items(a);
    load_items(again);
    tide_diff d = compared(a, NULL, again, NULL, false);
    assert_sums(&d);
    assert_no_change(&d);
    assert_int_equal(d.n, 40);
    tide_text t = {0};
    tide_diff_print(&d, a, again, 5, &t);
    assert_text_has(tide_text_str(&t), "B holds as much at its peak as A (");
    assert_text_has(tide_text_str(&t), "0 added, 0 removed, 0 resized, 0 moved, 0 retimed, 40 unchanged.\n");
    tide_text_deinit(&t);
    tide_diff_deinit(&d);
    d = compared(a, NULL, a, NULL, false);
    assert_no_change(&d);
    tide_diff_deinit(&d);
    tide_subject_destroy(a);
    tide_subject_destroy(again);
}

/// Steps 1 and 3 of the demo plan: b is gone, c has come.
static void two_steps_of_one_plan(void **state) {
    (void)state;
    tide_subject *s = subject_of_plan(demo_plan_make());
    const tide_moment one = {.t = 1}, three = {.t = 3};
    tide_diff d = compared(s, &one, s, &three, true);
    assert_sums(&d);
    assert_int_equal(d.a_bytes, 5120); // the buffer is there at all steps
    assert_int_equal(d.b_bytes, 5120);
    assert_int_equal(d.n_added, 1);
    assert_int_equal(d.n_removed, 1);
    assert_int_equal(d.n_unchanged, 4);
    assert_int_equal(row(&d, "b")->what, TIDE_DIFF_REMOVED);
    assert_int_equal(row(&d, "c")->what, TIDE_DIFF_ADDED);
    assert_int_equal(step(d.by_owner, d.n_by_owner, "slack", true)->a_bytes, 1024);
    assert_int_equal(step(d.by_owner, d.n_by_owner, "slack", true)->b_bytes, 256);
    assert_int_equal(step(d.by_owner, d.n_by_owner, "holes", true)->b_bytes, 512);
    tide_text t = {0};
    tide_diff_print(&d, s, s, 10, &t);
    assert_text_has(tide_text_str(&t), "B holds as much at its moment as A (5.00 KiB): conv2 +768 B, slack -768 B");
    tide_text_deinit(&t);
    tide_diff_deinit(&d);
    tide_subject_destroy(s);
}

// ---- refusals ----

typedef struct impatience {
    int left;
    double last;
} impatience;

static bool tell(void *ctx, double share, const char *what) {
    impatience *p = ctx;
    assert_non_null(what);
    assert_true(share >= p->last && share <= 1);
    p->last = share;
    return p->left-- > 0;
}

static void cancelled(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *a = subject_of_plan(random_plan(5, 40, 15)), *b = subject_of_plan(random_plan(6, 40, 15));
    tide_status st = TIDE_ERR_CANCELLED;
    int n = 0;
    for (; st != TIDE_OK; n++) {
        impatience p = {.left = n};
        const tide_progress progress = {.tell = tell, .ctx = &p};
        tide_diff d;
        st = tide_compare(a, NULL, b, NULL, true, &progress, &d, &err);
        if (st == TIDE_OK) tide_diff_deinit(&d);
        if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_CANCELLED);
        assert_true(n < 50);
    }
    assert_true(n > 4);
    tide_subject_destroy(a);
    tide_subject_destroy(b);
}

static void items_are_needed(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_diff d;
    tide_subject *a = subject_of_plan(random_plan(5, 40, 15)), *b = subject_of_plan(random_plan(6, 40, 15));
    load_items(a);
    assert_tide_status(tide_compare(a, NULL, b, NULL, false, NULL, &d, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "not loaded");
    tide_subject_destroy(a);
    tide_subject_destroy(b);
}

static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    bool failed = true;
    for (int64_t n = 0; failed; n++) {
        tide_host_stats before, after;
        tide_diff d;
        tide_host_get_stats(&before);
        tide_subject *a = subject_of_plan(random_plan(5, 12, 6)), *b = subject_of_plan(random_plan(6, 12, 6));
        load_items(a);
        load_items(b);
        tide_host_fail_after(n);
        const tide_status st = tide_compare(a, NULL, b, NULL, false, NULL, &d, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) tide_diff_deinit(&d);
        tide_subject_destroy(a);
        tide_subject_destroy(b);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        assert_true(n < 3000);
        assert_true(failed || n > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_tensor_less), tide_unit_test(resized_and_retimed), tide_unit_test(steps_by_their_names),
        tide_unit_test(random_plans),  tide_unit_test(the_same_twice),      tide_unit_test(two_steps_of_one_plan),
        tide_unit_test(cancelled),     tide_unit_test(items_are_needed),    tide_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
