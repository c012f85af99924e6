// SPDX-License-Identifier: MIT
//
// Edits on a table: each held against a table written by hand, and refusals with their reasons.
#include "tests/analysis/whatif_fixture.h"

// ---- each edit ----

static void nothing_changed(void **state) {
    (void)state;
    fixture f = small();
    tide_lifetimes want = {0};
    put_small(&want);
    assert_edits(f.plan, "", &want, 200);
    end(&f);
}

static void free_earlier(void **state) {
    (void)state;
    fixture f = small();
    tide_lifetimes want = {0};
    put(&want, "a", 100, 0, 2);
    put(&want, "b", 60, 1, 3);
    put(&want, "c", 60, 2, 4);
    put(&want, "d", 40, 0, 1);
    put_persistent(&want, "w", 30, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 5);
    assert_edits(f.plan, "free-earlier d", &want, 160);
    put(&want, "a", 100, 0, 1);
    put(&want, "b", 60, 1, 3);
    put(&want, "c", 60, 2, 4);
    put(&want, "d", 40, 0, 3);
    put_persistent(&want, "w", 30, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 5);
    assert_edits(f.plan, "free-earlier a 1; free-earlier d 3", &want, 160);
    assert_refused(f.plan, "free-earlier d 5", TIDE_ERR_INVALID, "dies at step 5", "");
    assert_refused(f.plan, "free-earlier c 2", TIDE_ERR_INVALID, "made at step 2", "");
    assert_refused(f.plan, "free-earlier w 2", TIDE_ERR_INVALID, "cannot free-earlier 'w'", "");
    assert_refused(f.plan, "free-earlier a 1; free-earlier a", TIDE_ERR_INVALID, "dies at step 1", "");
    end(&f);
}

static void free_earlier_cuts_gaps(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    tide_gap gaps[] = {{1, 3, 0, 0}, {4, 6, 0, 10}};
    tide_lifetime item = an_item("g", 50, 1, 0, 8);
    item.gaps = gaps;
    item.n_gaps = 2;
    assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    tide_lifetimes want = {0};
    gaps[1].end_step = item.end_step = 5;
    assert_tide_ok(tide_lifetimes_add(&want, &item, &err), &err);
    want.n_steps = 8;
    assert_edits(plan, "free-earlier g 5", &want, 50);
    item.end_step = 4;
    item.n_gaps = 1;
    assert_tide_ok(tide_lifetimes_add(&want, &item, &err), &err);
    want.n_steps = 8;
    assert_edits(plan, "free-earlier g 4", &want, 50);
    tide_memory_plan_destroy(plan);
    // Whose only whole step lies behind its gap.
    tide_lifetimes late = {0};
    gaps[0] = (tide_gap){0, 3, 0, 0};
    item.end_step = 5;
    assert_tide_ok(tide_lifetimes_add(&late, &item, &err), &err);
    plan = make_plan(&late, "greedy_by_size");
    assert_refused(plan, "free-earlier g 2", TIDE_ERR_INVALID, "no step before 2", "");
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&late);
    tide_lifetimes_deinit(&lt);
}

static void recompute_without_a_model(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = small();
    tide_lifetimes want = {0};
    put(&want, "a", 100, 0, 2);
    put(&want, "b", 60, 1, 3);
    put(&want, "c", 60, 2, 4);
    tide_gap gap = {1, 4, 0, 0};
    tide_lifetime d = an_item("d", 40, 1, 0, 5);
    d.gaps = &gap;
    d.n_gaps = 1;
    assert_tide_ok(tide_lifetimes_add(&want, &d, &err), &err);
    put_persistent(&want, "w", 30, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 5);
    assert_edits(f.plan, "recompute d", &want, 160);
    assert_refused(f.plan, "recompute a", TIDE_ERR_INVALID, "right after it was made", "");
    assert_refused(f.plan, "recompute w", TIDE_ERR_INVALID, "memory of its own", "");
    end(&f);
}

static void in_place(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = small();
    tide_lifetimes want = {0};
    put_small(&want);
    assert_tide_ok(tide_lifetimes_alias(&want, 2, TIDE_ALIAS_IN_PLACE, 1, 0, &err), &err);
    assert_edits(f.plan, "in-place c b", &want, 200);
    put_small(&want);
    assert_tide_ok(tide_lifetimes_alias(&want, 2, TIDE_ALIAS_IN_PLACE, 1, 0, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&want, 1, TIDE_ALIAS_IN_PLACE, 0, 0, &err), &err);
    assert_edits(f.plan, "in-place c b; in-place b a", &want, 140);
    assert_refused(f.plan, "in-place c d", TIDE_ERR_INVALID, "read until step 4", "");
    assert_refused(f.plan, "in-place c a", TIDE_ERR_INVALID, "not there to be read at step 2", "");
    assert_refused(f.plan, "in-place a b", TIDE_ERR_INVALID, "not there to be read", "");
    assert_refused(f.plan, "in-place a a", TIDE_ERR_INVALID, "itself", "");
    assert_refused(f.plan, "in-place c w", TIDE_ERR_INVALID, "", "");
    assert_refused(f.plan, "in-place w b", TIDE_ERR_INVALID, "", "");
    assert_refused(f.plan, "in-place c b; in-place c b", TIDE_ERR_INVALID, "lies inside 'b'", "");
    assert_refused(f.plan, "in-place c bb", TIDE_ERR_NOT_FOUND, "no tensor 'bb'", "did you mean 'b'?");
    assert_refused(f.plan, "half b; in-place c b", TIDE_ERR_INVALID, "end outside", "");
    end(&f);
}

/// What is overwritten must be in use no more: neither another view's nor that of a part made later.
static void in_place_of_a_view(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    put(&lt, "whole", 100, 0, 4);
    put(&lt, "lower", 40, 1, 3);
    put(&lt, "upper", 60, 1, 3);
    put(&lt, "next", 40, 2, 5);
    put(&lt, "parts", 100, 3, 5);
    put(&lt, "part", 50, 0, 5);
    assert_tide_ok(tide_lifetimes_alias(&lt, 1, TIDE_ALIAS_SLICE, 0, 0, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&lt, 2, TIDE_ALIAS_SLICE, 0, 40, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&lt, 5, TIDE_ALIAS_PART, 4, 50, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    assert_refused(plan, "in-place next lower", TIDE_ERR_INVALID, "'whole' shares bytes with 'lower'", "");
    assert_refused(plan, "in-place parts whole", TIDE_ERR_INVALID, "'part' lies in it", "");
    tide_memory_plan *got;
    assert_tide_ok(edited(plan, "free-earlier whole 2; in-place next lower", &got, &err), &err);
    assert_int_equal(got->lifetimes.items[3].alias_of, 1);
    assert_int_equal(got->offsets[3], got->offsets[0]);
    // The upper half is free.
    assert_refused(plan, "free-earlier whole 2; in-place next upper; in-place part next", TIDE_ERR_INVALID, "", "");
    tide_memory_plan_destroy(got);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void alignment(void **state) {
    (void)state;
    tide_lifetimes lt = {0}, want = {0};
    put_aligned(&lt, "a", 100, 256, 0, 2);
    put_aligned(&lt, "b", 60, 256, 1, 3);
    put_aligned(&lt, "s", 10, 256, 1, 2);
    lt.items[2].role = TIDE_ROLE_SCRATCH;
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    put_aligned(&want, "a", 100, 4, 0, 2);
    put_aligned(&want, "b", 60, 4, 1, 3);
    put_aligned(&want, "s", 10, 64, 1, 2);
    want.items[2].role = TIDE_ROLE_SCRATCH;
    tide_memory_plan *fresh = make_plan(&want, "greedy_by_size");
    const uint64_t bytes = fresh->bytes;
    tide_memory_plan_destroy(fresh);
    assert_true(bytes < plan->bytes);
    assert_edits(plan, "align 4", &want, bytes);
    put_aligned(&want, "a", 100, 256, 0, 2);
    put_aligned(&want, "b", 60, 1024, 1, 3);
    put_aligned(&want, "s", 10, 256, 1, 2);
    want.items[2].role = TIDE_ROLE_SCRATCH;
    assert_edits(plan, "align b 1024", &want, 1024 + 256 + 256);
    assert_refused(plan, "align 4611686018427387904", TIDE_ERR_OVERFLOW, "", "");
    assert_refused(plan, "pin a 256; align a 512", TIDE_ERR_INVALID, "fixed at 256", "");
    assert_refused(plan, "pin a 256; align 512", TIDE_ERR_INVALID, "fixed at 256", "");
    static const uint64_t wrong[] = {0, 3, UINT64_C(1) << 63};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const tide_edit edit = {.kind = TIDE_EDIT_ALIGN, .bytes = wrong[i]};
        const tide_whatif w = {.plan = plan, .edits = &edit, .n = 1};
        tide_memory_plan *got;
        assert_tide_status(tide_whatif_make(&w, &got, NULL), TIDE_ERR_INVALID);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void pins(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = small();
    tide_memory_plan *got;
    assert_tide_ok(edited(f.plan, "pin c 1000", &got, &err), &err);
    assert_int_equal(got->offsets[2], 1000);
    assert_int_equal(got->bytes, 1060);
    tide_lifetimes want = {0};
    put_small(&want);
    assert_edits(got, "unpin c", &want, 200);
    tide_memory_plan_destroy(got);
    assert_refused(f.plan, "unpin c", TIDE_ERR_INVALID, "no offset is given", "");
    assert_refused(f.plan, "pin w 0", TIDE_ERR_INVALID, "memory of its own", "");
    assert_refused(f.plan, "align c 64; pin c 100", TIDE_ERR_INVALID, "no multiple of its alignment", "");
    assert_refused(f.plan, "pin c 9223372036854775807", TIDE_ERR_INVALID, "2^63", "");
    assert_refused(f.plan, "pin b 0; pin c 10", TIDE_ERR_INVALID, "", "");
    assert_refused(f.plan, "pin c 0; strategy greedy_color", TIDE_ERR_NOT_IMPLEMENTED, "", "greedy_by_size");
    end(&f);
}

static void sizes(void **state) {
    (void)state;
    fixture f = small();
    tide_lifetimes want = {0};
    put(&want, "a", 50, 0, 2);
    put(&want, "b", 60, 1, 3);
    put(&want, "c", 60, 2, 4);
    put(&want, "d", 40, 0, 5);
    put_persistent(&want, "w", 30, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 5);
    assert_edits(f.plan, "half a", &want, 160);
    put(&want, "a", 100, 0, 2);
    put(&want, "c", 60, 2, 4);
    put(&want, "d", 40, 0, 5);
    put_persistent(&want, "w", 15, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 5);
    assert_edits(f.plan, "gone b; half w", &want, 140);
    assert_refused(f.plan, "gone b; gone b", TIDE_ERR_NOT_FOUND, "no tensor 'b'", "");
    end(&f);
}

/// What lies in a tensor goes with it, or is halved with it; what does not stays where it points.
static void sizes_of_a_class(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0}, want = {0};
    put(&lt, "before", 8, 0, 3);
    put(&lt, "inside", 11, 1, 4);
    put(&lt, "root", 33, 0, 4);
    put(&lt, "other", 40, 0, 4);
    put(&lt, "deep", 5, 2, 4);
    put(&lt, "elsewhere", 7, 2, 4);
    assert_tide_ok(tide_lifetimes_alias(&lt, 1, TIDE_ALIAS_SLICE, 2, 21, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&lt, 4, TIDE_ALIAS_SLICE, 1, 5, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&lt, 5, TIDE_ALIAS_SLICE, 3, 1, &err), &err);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    put(&want, "before", 8, 0, 3);
    put(&want, "inside", 5, 1, 4);
    put(&want, "root", 17, 0, 4);
    put(&want, "other", 40, 0, 4);
    put(&want, "deep", 2, 2, 4);
    put(&want, "elsewhere", 7, 2, 4);
    assert_tide_ok(tide_lifetimes_alias(&want, 1, TIDE_ALIAS_SLICE, 2, 10, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&want, 4, TIDE_ALIAS_SLICE, 1, 2, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(&want, 5, TIDE_ALIAS_SLICE, 3, 1, &err), &err);
    assert_edits(plan, "half root", &want, 8 + 17 + 40);
    put(&want, "before", 8, 0, 3);
    put(&want, "root", 33, 0, 4);
    put(&want, "other", 40, 0, 4);
    put(&want, "elsewhere", 7, 2, 4);
    assert_tide_ok(tide_lifetimes_alias(&want, 3, TIDE_ALIAS_SLICE, 2, 1, &err), &err);
    assert_edits(plan, "gone inside", &want, 8 + 33 + 40);
    put(&want, "before", 8, 0, 3);
    put(&want, "other", 40, 0, 4);
    put(&want, "elsewhere", 7, 2, 4);
    assert_tide_ok(tide_lifetimes_alias(&want, 2, TIDE_ALIAS_SLICE, 1, 1, &err), &err);
    assert_edits(plan, "gone root", &want, 8 + 40);
    assert_refused(plan, "pin deep 0", TIDE_ERR_INVALID, "lies inside 'inside'", "");
    assert_refused(plan, "align deep 64", TIDE_ERR_INVALID, "lies inside 'inside'", "");
    assert_refused(plan, "recompute deep", TIDE_ERR_INVALID, "lies inside 'inside'", "");
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

static void strategies(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = small();
    tide_memory_plan *got;
    assert_tide_ok(edited(f.plan, "strategy naive; strategy greedy_color", &got, &err), &err);
    assert_string_equal(got->strategy, "greedy_color");
    tide_memory_plan *fresh = make_plan(&f.lt, "greedy_color");
    assert_int_equal(got->bytes, fresh->bytes);
    tide_memory_plan_destroy(got);
    tide_memory_plan_destroy(fresh);
    // A plan of an unknown strategy is planned anew with the default.
    char *own = f.plan->strategy;
    f.plan->strategy = tide_host_strdup("unknown_strategy");
    assert_tide_ok(edited(f.plan, "", &got, &err), &err);
    assert_string_equal(got->strategy, tide_strategy_default()->name);
    tide_memory_plan_destroy(got);
    tide_host_free(f.plan->strategy);
    f.plan->strategy = own;
    end(&f);
}

static void a_wrong_name_names_the_nearest(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "conv1_out", 10, 0, 2);
    put(&lt, "conv2_out", 10, 1, 3);
    put(&lt, "softmax", 10, 1, 3);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    assert_refused(plan, "gone conv2out", TIDE_ERR_NOT_FOUND, "no tensor 'conv2out'", "did you mean 'conv2_out'?");
    assert_refused(plan, "half sotfmax", TIDE_ERR_NOT_FOUND, "", "did you mean 'softmax'?");
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *got;
    assert_tide_status(edited(plan, "half x", &got, &err), TIDE_ERR_NOT_FOUND);
    assert_string_equal(err.hint, "");
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(nothing_changed),
        tide_unit_test(free_earlier),
        tide_unit_test(free_earlier_cuts_gaps),
        tide_unit_test(recompute_without_a_model),
        tide_unit_test(in_place),
        tide_unit_test(in_place_of_a_view),
        tide_unit_test(alignment),
        tide_unit_test(pins),
        tide_unit_test(sizes),
        tide_unit_test(sizes_of_a_class),
        tide_unit_test(strategies),
        tide_unit_test(a_wrong_name_names_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
