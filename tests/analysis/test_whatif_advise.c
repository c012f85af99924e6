// SPDX-License-Identifier: MIT
//
// Advice: what it must find, that each entry is what comes out when it is done, and a tensor of a real program that is
// made twice.
#include "tests/analysis/advice_fixture.h"

/// The peak is step 2: x is read last there, y made there, z waits.
///
///     step      0    1    2    3    4
///     x    96   ##############
///     y    96             #########
///     z    64        ##################
///     sum       96  160  256  160   64
static void a_small_table(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_aligned(&lt, "x", 96, 32, 0, 3);
    put_aligned(&lt, "y", 90, 32, 2, 4);
    put_aligned(&lt, "z", 64, 32, 1, 5);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    assert_int_equal(plan->bytes, 256);
    const tide_whatif w = {.plan = plan};
    tide_edit_advice list[MAX_ADVICE];
    const size_t n = advise(&w, list);
    assert_entry(list, n, "in-place y x", 160);
    assert_entry(list, n, "recompute z", 192);
    assert_entry(list, n, "half x", 224);
    assert_entry(list, n, "half y", 224);
    assert_entry(list, n, "half z", 224);
    // It is as good as making z again, which says more; nothing is aligned at 64; the plan meets its bound.
    assert_null(entry(list, n, "free-earlier z 2"));
    assert_null(entry(list, n, "align 64"));
    assert_int_equal(n, 5);
    assert_string_equal(list[0].edit.item, "y");
    assert_reproducible(&w, list, n, 256);
    size_t two = 0;
    assert_tide_ok(tide_whatif_advise(&w, list, 2, &two, NULL), &(tide_error)TIDE_ERROR_INIT);
    assert_int_equal(two, 2);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// With an edit done, advice is about what is left.
static void after_an_edit(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "x", 96, 0, 3);
    put(&lt, "y", 90, 2, 4);
    put(&lt, "z", 64, 1, 5);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_edit done = {.kind = TIDE_EDIT_IN_PLACE, .item = "y", .other = "x"};
    const tide_whatif w = {.plan = plan, .edits = &done, .n = 1};
    tide_edit_advice list[MAX_ADVICE];
    const size_t n = advise(&w, list);
    assert_null(entry(list, n, "in-place y x"));
    assert_entry(list, n, "half x", 48 + 64);
    assert_reproducible(&w, list, n, 160);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void alignment_and_strategies(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_rng rng = {3};
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        const int64_t begin = (int64_t)tide_rng_below(&rng, 20);
        put_aligned(&lt, name, 1 + tide_rng_below(&rng, 700), 256, begin, begin + 1 + (int64_t)tide_rng_below(&rng, 9));
    }
    tide_memory_plan *plan = make_plan(&lt, "naive");
    const tide_whatif w = {.plan = plan};
    tide_edit_advice list[MAX_ADVICE];
    const size_t n = advise(&w, list);
    assert_non_null(entry(list, n, "strategy greedy_by_size"));
    assert_non_null(entry(list, n, "align 64"));
    assert_non_null(entry(list, n, "align 16"));
    assert_reproducible(&w, list, n, plan->bytes);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// Any table, any strategy: what is said is what comes out.
static void any_table(void **state) {
    (void)state;
    static const char *const strategies[] = {"greedy_by_size", "greedy_color", "linear_scan", "search"};
    tide_rng rng = {31};
    size_t n_entries = 0;
    for (int round = 0; round < 60; round++) {
        tide_lifetimes lt = {0};
        tide_error err = TIDE_ERROR_INIT;
        const tide_strategy *s;
        tide_memory_plan *plan;
        const bool every = round % 2 == 0;
        if (every)
            put_every_feature(&lt, &rng, 5 + tide_rng_below(&rng, 25));
        else
            put_random(&lt, &rng, 10 + tide_rng_below(&rng, 60), 20, 3000, true);
        const tide_strategy_options limited = {.node_limit = 500, .n_threads = 1};
        assert_tide_ok(tide_strategy_find(every ? "greedy_by_size" : strategies[round / 2 % 4], &s, &err), &err);
        assert_tide_ok(tide_plan_make(&lt, s, &limited, &plan, &err), &err);
        const tide_whatif w = {.plan = plan, .options = limited};
        tide_edit_advice list[MAX_ADVICE];
        const size_t n = advise(&w, list);
        assert_reproducible(&w, list, n, plan->bytes);
        n_entries += n;
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_entries > 200);
}

static void nothing_to_say(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_edit_advice list[1];
    put_persistent(&lt, "w", 10, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_whatif w = {.plan = plan};
    assert_int_equal(advise(&w, list), 0);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// Names that no edit can hold are passed over.
static void long_names(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_edit_advice list[MAX_ADVICE];
    char name[300];
    memset(name, 'n', 256);
    name[256] = '\0';
    put(&lt, name, 100, 0, 3);
    put(&lt, "b", 50, 0, 3);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_whatif w = {.plan = plan};
    const size_t n = advise(&w, list);
    assert_int_equal(n, 1);
    assert_entry(list, n, "half b", 125);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    put_aligned(&lt, "x", 96, 256, 0, 3);
    put_aligned(&lt, "y", 90, 256, 2, 4);
    put_aligned(&lt, "z", 64, 256, 1, 5);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_edit done = {.kind = TIDE_EDIT_HALF, .item = "x"};
    const tide_whatif w = {.plan = plan, .edits = &done, .n = 1};
    bool failed = true;
    for (int64_t n = 0; failed; n++) {
        tide_host_stats before, after;
        tide_edit_advice list[MAX_ADVICE];
        size_t n_found;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        const tide_status st = tide_whatif_advise(&w, list, MAX_ADVICE, &n_found, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (failed) assert_int_equal(n_found, 0);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        assert_true(n < 5000);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

// ---- a tensor of a program is made twice ----

static tide_program *skip_program(void) { return skip_program_of(1); }

typedef struct skip_model {
    tide_program *program; // the last one made
    tide_status status;    // of the last repeat
} skip_model;

/// As the command line makes it: the program anew, the passes, and the tensor made twice.
static tide_status retable(void *ctx, const tide_edit *edits, size_t n, tide_lifetimes *out, tide_error *err) {
    skip_model *m = ctx;
    const tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN};
    tide_program_unref(m->program);
    m->program = skip_program();
    TIDE_TRY(tide_passes_run(m->program, &opt, out, NULL, err));
    m->status = TIDE_OK;
    for (size_t k = 0; k < n && m->status == TIDE_OK; k++) {
        if (edits[k].kind == TIDE_EDIT_RECOMPUTE)
            m->status = tide_whatif_repeat(m->program, &opt, edits[k].item, out, err);
    }
    if (m->status != TIDE_OK) tide_lifetimes_deinit(out);
    return m->status;
}

static void a_tensor_is_made_twice(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    skip_model m = {0};
    tide_lifetimes lt;
    tide_edit_advice list[MAX_ADVICE];
    assert_tide_ok(retable(&m, NULL, 0, &lt, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size"), *got;
    assert_int_equal(plan->bytes, 64 * KIB + MEAN);
    const tide_edit edit = {.kind = TIDE_EDIT_RECOMPUTE, .item = "a"};
    const tide_whatif w = {.plan = plan, .retable = retable, .ctx = &m, .edits = &edit, .n = 1};
    assert_tide_ok(tide_whatif_make(&w, &got, &err), &err);
    assert_int_equal(got->bytes, 48 * KIB + MEAN);
    assert_true(tide_edit_keeps_meaning(got, &edit));
    assert_false(tide_edit_keeps_meaning(plan, &edit));
    assert_int_equal(got->lifetimes.n_recomputed, 1);
    assert_string_equal(got->lifetimes.recomputed[0], "top");
    // It runs, and every bit is the same.
    tide_program *once = skip_program();
    size_t n_want, n_have;
    char *want = case_run(once, NULL, &n_want), *have = case_run(m.program, got, &n_have);
    assert_int_equal(n_want, n_have);
    assert_memory_equal(want, have, n_want);
    tide_host_free(want);
    tide_host_free(have);
    tide_program_unref(once);
    tide_memory_plan_destroy(got);
    // Advice finds it, through the model.
    const tide_whatif none = {.plan = plan, .retable = retable, .ctx = &m};
    const size_t n = advise(&none, list);
    assert_entry(list, n, "recompute a", 48 * KIB + MEAN);
    assert_reproducible(&none, list, n, plan->bytes);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
    tide_program_unref(m.program);
}

static void what_cannot_be_made_twice(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    skip_model m = {0};
    tide_lifetimes lt;
    const tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN};
    assert_tide_ok(retable(&m, NULL, 0, &lt, &err), &err);
    const size_t n_steps = m.program->n_steps, n = lt.n;
    assert_tide_status(tide_whatif_repeat(m.program, &opt, "x", &lt, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "no intermediate");
    assert_tide_status(tide_whatif_repeat(m.program, &opt, "w", &lt, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "every step uses it");
    assert_tide_status(tide_whatif_repeat(m.program, &opt, "aa", &lt, &err), TIDE_ERR_NOT_FOUND);
    assert_int_equal(m.program->n_steps, n_steps);
    assert_int_equal(lt.n, n);
    tide_lifetimes_deinit(&lt);
    tide_program_unref(m.program);
}

static size_t step_of(const tide_program *p, const char *name) {
    for (size_t i = 0; i < p->n_steps; i++) {
        if (strcmp(p->graph->nodes[p->steps[i].node].name, name) == 0) return i;
    }
    fail_msg("no step '%s'", name);
    return 0;
}

/// `a` waits across the peak from mean1 to join, and then, longer, from join to last: the first wait is what counts.
static void the_wait_at_the_peak_goes(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g = case_graph("waits", "x", "1x4096");
    case_node(g, "Tanh", "top", "a", "x", NULL, NULL);
    case_node(g, "ReduceMean", "mean1", "m1", "a", NULL, NULL);
    case_node(g, "Concat", "wide", "w", "x", "x", "x");
    case_node(g, "Add", "middle", "v", "w", "m1", NULL);
    case_node(g, "ReduceMean", "mean2", "m2", "v", NULL, NULL);
    case_node(g, "Add", "join", "b", "a", "m2", NULL);
    case_node(g, "ReduceMean", "t1", "c1", "b", NULL, NULL);
    case_node(g, "Relu", "t2", "c2", "c1", NULL, NULL);
    case_node(g, "Sigmoid", "t3", "c3", "c2", NULL, NULL);
    case_node(g, "Tanh", "t4", "c4", "c3", NULL, NULL);
    case_node(g, "Exp", "t5", "c5", "c4", NULL, NULL);
    case_node(g, "Neg", "t6", "c6", "c5", NULL, NULL);
    case_node(g, "Abs", "t7", "c7", "c6", NULL, NULL);
    case_node(g, "Add", "last", "y", "a", "c7", NULL);
    case_output(g, "y");
    tide_program *p = case_build(g, NULL, 0);
    tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN};
    opt.off[TIDE_PASS_ORDER] = true;
    tide_lifetimes lt;
    assert_tide_ok(tide_passes_run(p, &opt, &lt, NULL, &err), &err);
    assert_tide_ok(tide_whatif_repeat(p, &opt, "a", &lt, &err), &err);
    assert_int_equal(step_of(p, "top.again") + 1, step_of(p, "join"));
    tide_lifetimes_deinit(&lt);
    tide_program_unref(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_small_table),
        tide_unit_test(after_an_edit),
        tide_unit_test(alignment_and_strategies),
        tide_unit_test(any_table),
        tide_unit_test(nothing_to_say),
        tide_unit_test(long_names),
        tide_unit_test(out_of_memory),
        tide_unit_test(a_tensor_is_made_twice),
        tide_unit_test(what_cannot_be_made_twice),
        tide_unit_test(the_wait_at_the_peak_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
