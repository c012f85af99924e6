// SPDX-License-Identifier: MIT
//
// Plans with edits: the model's part, what could run, any edits of any table, and no memory.
#include "tests/analysis/whatif_fixture.h"

// ---- through a model ----

typedef struct model {
    size_t n_calls, n_edits;
    bool knows_recompute; // the tensor "d" is made twice by it
    tide_status status;
} model;

static tide_status make_again(void *ctx, const tide_edit *edits, size_t n, tide_lifetimes *out, tide_error *err) {
    model *m = ctx;
    m->n_calls++;
    m->n_edits = n;
    if (m->status != TIDE_OK) return TIDE_FAIL(err, m->status, "nothing to change");
    *out = (tide_lifetimes){0};
    uint64_t batch = 1;
    bool twice = false;
    for (size_t k = 0; k < n; k++) {
        if (edits[k].kind == TIDE_EDIT_BATCH) batch = edits[k].bytes;
        twice = twice || (edits[k].kind == TIDE_EDIT_RECOMPUTE && m->knows_recompute);
    }
    put(out, "a", 100 * batch, 0, 2);
    put(out, "d", 40 * batch, 0, twice ? 1 : 5);
    if (twice) put(out, "d.again", 40 * batch, 4, 5);
    out->step_names = tide_host_calloc(5, sizeof *out->step_names);
    assert_non_null(out->step_names);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "op%d", i);
        out->step_names[out->n_step_names++] = tide_host_strdup(name);
    }
    if (!twice) return TIDE_OK;
    out->recomputed = tide_host_calloc(1, sizeof *out->recomputed);
    assert_non_null(out->recomputed);
    out->recomputed[out->n_recomputed++] = tide_host_strdup("op0");
    return TIDE_OK;
}

static tide_memory_plan *with_model(const tide_memory_plan *plan, model *m, const tide_edit *edits, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_whatif w = {.plan = plan, .retable = make_again, .ctx = m, .edits = edits, .n = n};
    tide_memory_plan *got;
    assert_tide_ok(tide_whatif_make(&w, &got, &err), &err);
    return got;
}

static void what_needs_the_model(void **state) {
    (void)state;
    fixture f = small();
    assert_refused(f.plan, "batch 2", TIDE_ERR_INVALID, "needs the model", "open the model");
    assert_refused(f.plan, "pass -order", TIDE_ERR_INVALID, "needs the model", "");
    assert_refused(f.plan, "extent x=2", TIDE_ERR_INVALID, "needs the model", "");
    model m = {0};
    tide_edit edits[] = {{.kind = TIDE_EDIT_BATCH, .bytes = 3}, {.kind = TIDE_EDIT_HALF, .item = "d"}};
    tide_memory_plan *got = with_model(f.plan, &m, edits, 2);
    assert_int_equal(m.n_calls, 1);
    assert_int_equal(m.n_edits, 2);
    assert_int_equal(got->bytes, 300 + 60);
    tide_memory_plan_destroy(got);
    // What the table can serve alone never asks the model.
    m = (model){0};
    tide_memory_plan_destroy(with_model(f.plan, &m, edits + 1, 1));
    assert_int_equal(m.n_calls, 0);
    m.status = TIDE_ERR_NOT_FOUND;
    const tide_whatif w = {.plan = f.plan, .retable = make_again, .ctx = &m, .edits = edits, .n = 2};
    assert_tide_status(tide_whatif_make(&w, &got, NULL), TIDE_ERR_NOT_FOUND);
    end(&f);
}

static void recompute_with_the_model(void **state) {
    (void)state;
    fixture f = small();
    const tide_edit edits[] = {{.kind = TIDE_EDIT_RECOMPUTE, .item = "d"}, {.kind = TIDE_EDIT_BATCH, .bytes = 2}};
    model knows = {.knows_recompute = true}, does_not = {0};
    tide_memory_plan *got = with_model(f.plan, &knows, edits, 1);
    assert_int_equal(got->bytes, 140);
    assert_true(tide_edit_keeps_meaning(got, &edits[0]));
    assert_int_equal(got->lifetimes.n, 3);
    assert_int_equal(got->lifetimes.items[1].n_gaps, 0);
    tide_memory_plan_destroy(got);
    // The model did something else: the plan's own table with a gap.
    got = with_model(f.plan, &does_not, edits, 1);
    assert_int_equal(does_not.n_calls, 1);
    assert_int_equal(got->lifetimes.n, 5);
    assert_int_equal(got->bytes, 160);
    assert_false(tide_edit_keeps_meaning(got, &edits[0]));
    tide_memory_plan_destroy(got);
    // It is needed all the same: asked again without.
    does_not = (model){0};
    got = with_model(f.plan, &does_not, edits, 2);
    assert_int_equal(does_not.n_calls, 2);
    assert_int_equal(does_not.n_edits, 1);
    assert_int_equal(got->lifetimes.n, 2);
    assert_int_equal(got->lifetimes.items[1].n_gaps, 1);
    tide_memory_plan_destroy(got);
    end(&f);
}

static bool keeps(const tide_memory_plan *plan, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_edit edit;
    assert_tide_ok(tide_edit_parse(text, &edit, &err), &err);
    return tide_edit_keeps_meaning(plan, &edit);
}

static void what_could_run(void **state) {
    (void)state;
    fixture f = small();
    f.plan->lifetimes.items[2].role = TIDE_ROLE_SCRATCH;
    static const char *const yes[] = {"in-place c b", "align 64", "align a 8",  "align c 64", "pin c 0",
                                      "unpin c",      "batch 4",  "pass order", "extent x=1", "strategy naive"};
    static const char *const no[] = {"free-earlier a", "half a", "gone a", "recompute d", "align 4", "align c 32"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) assert_true(keeps(f.plan, yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) assert_false(keeps(f.plan, no[i]));
    end(&f);
}

// ---- any edits ----

static tide_edit random_edit(tide_rng *rng, const tide_lifetimes *lt) {
    static const tide_edit_kind kinds[] = {TIDE_EDIT_FREE_EARLIER, TIDE_EDIT_IN_PLACE, TIDE_EDIT_RECOMPUTE,
                                           TIDE_EDIT_ALIGN,        TIDE_EDIT_PIN,      TIDE_EDIT_UNPIN,
                                           TIDE_EDIT_HALF,         TIDE_EDIT_GONE};
    tide_edit e = {.kind = kinds[tide_rng_below(rng, sizeof kinds / sizeof kinds[0])]};
    snprintf(e.item, sizeof e.item, "%s", lt->items[tide_rng_below(rng, lt->n)].name);
    if (e.kind == TIDE_EDIT_IN_PLACE)
        snprintf(e.other, sizeof e.other, "%s", lt->items[tide_rng_below(rng, lt->n)].name);
    if (e.kind == TIDE_EDIT_FREE_EARLIER) e.step = (int64_t)tide_rng_below(rng, 25);
    if (e.kind == TIDE_EDIT_PIN) e.bytes = tide_rng_below(rng, 64) * 512;
    if (e.kind == TIDE_EDIT_ALIGN) e.bytes = UINT64_C(1) << tide_rng_below(rng, 10);
    return e;
}

/// Whatever is done to whatever table, the plan is sound or the edit is refused, with a reason.
static void any_edits_of_any_table(void **state) {
    (void)state;
    tide_rng rng = {21};
    size_t n_made = 0, n_refused = 0;
    for (int round = 0; round < 1500; round++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_lifetimes lt = {0};
        tide_edit edits[4];
        const size_t n = 1 + tide_rng_below(&rng, 3);
        put_every_feature(&lt, &rng, 4 + tide_rng_below(&rng, 20));
        tide_memory_plan *plan = make_plan(&lt, "greedy_by_size"), *got;
        for (size_t k = 0; k < n; k++) edits[k] = random_edit(&rng, &lt);
        const tide_whatif w = {.plan = plan, .edits = edits, .n = n};
        const tide_status st = tide_whatif_make(&w, &got, &err);
        if (st == TIDE_OK) {
            n_made++;
            assert_tide_ok(tide_plan_verify(got, NULL, &err), &err);
            tide_memory_plan *fresh = make_plan(&got->lifetimes, "greedy_by_size");
            assert_int_equal(fresh->bytes, got->bytes);
            tide_memory_plan_destroy(fresh);
            tide_memory_plan_destroy(got);
        } else {
            n_refused++;
            if (st != TIDE_ERR_INVALID && st != TIDE_ERR_NOT_FOUND && st != TIDE_ERR_NOT_IMPLEMENTED)
                fail_msg("round %d: %s: %s", round, tide_status_name(st), err.msg);
            assert_true(err.msg[0] != '\0');
        }
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_made > 300);
    assert_true(n_refused > 300);
}

static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = small();
    model m = {.status = TIDE_ERR_NOT_FOUND};
    const tide_edit edits[] = {{.kind = TIDE_EDIT_GONE, .item = "a"}, {.kind = TIDE_EDIT_RECOMPUTE, .item = "d"}};
    const tide_whatif w = {.plan = f.plan, .retable = make_again, .ctx = &m, .edits = edits, .n = 2};
    bool failed = true;
    for (int64_t n = 0; failed; n++) {
        tide_host_stats before, after;
        tide_memory_plan *got = NULL;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        const tide_status st = tide_whatif_make(&w, &got, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) tide_memory_plan_destroy(got);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        assert_true(n < 1000);
        if (!failed) assert_true(n > 10);
    }
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_needs_the_model), tide_unit_test(recompute_with_the_model),
        tide_unit_test(what_could_run),       tide_unit_test(any_edits_of_any_table),
        tide_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
