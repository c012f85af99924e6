// SPDX-License-Identifier: MIT
//
// Advice that only a model can serve: passes that are off, and half the batch.
#include "planner/passes.h"
#include "tests/analysis/advice_fixture.h"

typedef struct open_model {
    uint64_t batch;
    bool off[TIDE_N_PASSES];
    bool refuses; // to report its batch
} open_model;

/// As the command line makes it: the last word on a pass and on the batch counts.
static tide_status retable_open(void *ctx, const tide_edit *edits, size_t n, tide_lifetimes *out, tide_error *err) {
    const open_model *m = ctx;
    tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN, .recompute_share = 0.1};
    uint64_t batch = m->batch;
    memcpy(opt.off, m->off, sizeof opt.off);
    for (size_t k = 0; k < n; k++) {
        if (edits[k].kind == TIDE_EDIT_BATCH) batch = edits[k].bytes;
        if (edits[k].kind != TIDE_EDIT_PASS) continue;
        const bool off = edits[k].text[0] == '-';
        tide_pass pass;
        TIDE_TRY(tide_pass_parse(edits[k].text + off, &pass, err));
        opt.off[pass] = off;
    }
    tide_program *p = skip_program_of(batch);
    const tide_status st = tide_passes_run(p, &opt, out, NULL, err);
    tide_program_unref(p);
    return st;
}

static tide_status batch_of(void *ctx, const tide_edit *edits, size_t n, uint64_t *batch, tide_error *err) {
    const open_model *m = ctx;
    if (m->refuses) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no batch");
    *batch = m->batch;
    for (size_t k = 0; k < n; k++)
        if (edits[k].kind == TIDE_EDIT_BATCH) *batch = edits[k].bytes;
    return TIDE_OK;
}

static size_t count_kind(const tide_edit_advice *list, size_t n, tide_edit_kind kind) {
    size_t count = 0;
    for (size_t k = 0; k < n; k++) count += list[k].edit.kind == kind;
    return count;
}

/// Plans of the model with the edit `text`.
static uint64_t bytes_with(const tide_whatif *w, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_edit edit;
    tide_memory_plan *plan;
    assert_tide_ok(tide_edit_parse(text, &edit, &err), &err);
    tide_whatif with = *w;
    with.edits = &edit;
    with.n = 1;
    assert_tide_ok(tide_whatif_make(&with, &plan, &err), &err);
    const uint64_t bytes = plan->bytes;
    tide_memory_plan_destroy(plan);
    return bytes;
}

/// Where all passes are off, those that help are said, and half the batch; each was planned.
static void what_the_model_can_change(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    open_model m = {.batch = 8};
    tide_lifetimes lt;
    tide_edit_advice list[MAX_ADVICE];
    memset(m.off, true, sizeof m.off);
    assert_tide_ok(retable_open(&m, NULL, 0, &lt, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_whatif w = {.plan = plan, .retable = retable_open, .batch = batch_of, .ctx = &m};
    size_t n = advise(&w, list), n_help = 0;
    for (int pass = 0; pass < TIDE_N_PASSES; pass++) {
        char text[64];
        snprintf(text, sizeof text, "pass %s", tide_pass_name((tide_pass)pass));
        const uint64_t bytes = bytes_with(&w, text);
        n_help += bytes < plan->bytes;
        if (bytes < plan->bytes) assert_entry(list, n, text, bytes);
        if (bytes >= plan->bytes) assert_null(entry(list, n, text));
    }
    assert_true(n_help > 0 && n_help < TIDE_N_PASSES);
    assert_int_equal(count_kind(list, n, TIDE_EDIT_PASS), n_help);
    assert_entry(list, n, "batch 4", bytes_with(&w, "batch 4"));
    assert_reproducible(&w, list, n, plan->bytes);
    // With that done: the next half; where the batch is not known, nothing of it.
    const tide_edit four = {.kind = TIDE_EDIT_BATCH, .bytes = 4};
    const tide_whatif after = {
        .plan = plan, .retable = retable_open, .batch = batch_of, .ctx = &m, .edits = &four, .n = 1};
    n = advise(&after, list);
    assert_non_null(entry(list, n, "batch 2"));
    assert_null(entry(list, n, "batch 4"));
    m.refuses = true;
    n = advise(&w, list);
    assert_int_equal(count_kind(list, n, TIDE_EDIT_BATCH), 0);
    assert_int_equal(count_kind(list, n, TIDE_EDIT_PASS), n_help);
    const tide_whatif no_model = {.plan = plan};
    n = advise(&no_model, list);
    assert_int_equal(count_kind(list, n, TIDE_EDIT_PASS) + count_kind(list, n, TIDE_EDIT_BATCH), 0);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// A batch of one has no half, and what is on already is not said.
static void what_is_done_already(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    open_model m = {.batch = 1};
    tide_lifetimes lt;
    tide_edit_advice list[MAX_ADVICE];
    m.off[TIDE_PASS_RECOMPUTE] = true;
    assert_tide_ok(retable_open(&m, NULL, 0, &lt, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_whatif w = {.plan = plan, .retable = retable_open, .batch = batch_of, .ctx = &m};
    const size_t n = advise(&w, list);
    assert_int_equal(count_kind(list, n, TIDE_EDIT_BATCH), 0);
    for (size_t k = 0; k < n; k++)
        if (list[k].edit.kind == TIDE_EDIT_PASS) assert_string_equal(list[k].edit.text, "recompute");
    assert_reproducible(&w, list, n, plan->bytes);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_the_model_can_change),
        tide_unit_test(what_is_done_already),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
