// SPDX-License-Identifier: MIT
//
// planner/advice and peaks: who is alive at the peak, and the smallest change that would make a plan fit.
#include "planner/advice.h"

#include "tests/planner/lifetimes_test.h"

static void put_whole(tide_lifetimes *lt) {
    static const char *const steps[] = {"conv", "relu", "concat", "fc"};
    put(lt, "x", 100, 0, 3);
    put(lt, "whole", 60, 2, 4);
    put(lt, "part0", 20, 1, 3);
    put(lt, "part1", 40, 2, 3);
    put(lt, "late", 10, 3, 4);
    put_persistent(lt, "w", 1000, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 4);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_lifetimes_alias(lt, 2, TIDE_ALIAS_PART, 1, 0, &err), &err);
    assert_tide_ok(tide_lifetimes_alias(lt, 3, TIDE_ALIAS_PART, 1, 20, &err), &err);
    lt->step_names = tide_host_calloc(4, sizeof *lt->step_names);
    for (size_t i = 0; i < 4; i++) lt->step_names[i] = tide_host_strdup(steps[i]);
    lt->n_step_names = 4;
}

static void the_peak(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_peaks peaks;
    tide_error err = TIDE_ERROR_INIT;
    put_whole(&lt);
    assert_tide_ok(tide_peaks_find(&lt, &peaks, &err), &err);
    assert_int_equal(peaks.n, 1);
    const tide_peak *p = &peaks.list[0];
    assert_int_equal(p->step, 2);
    assert_int_equal(p->bytes, 160);
    assert_int_equal(p->n, 4);
    static const struct {
        uint32_t item;
        uint64_t bytes;
        bool inside;
    } want[] = {{0, 100, false}, {1, 60, false}, {2, 20, true}, {3, 40, true}};
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(p->entries[k].item, want[k].item);
        assert_int_equal(p->entries[k].bytes, want[k].bytes);
        assert_int_equal(p->entries[k].inside, want[k].inside);
    }
    tide_text out = {0};
    tide_peaks_print(&peaks, &lt, 0, &out);
    assert_string_equal(tide_text_str(&out), "\nPeak of Workspace on cpu: 160 B at step 2 (concat)\n"
                                             "tensor          bytes  share  made by  last read by\n"
                                             "x                 100  62.5%  conv     concat\n"
                                             "whole              60  37.5%  concat   fc\n"
                                             "  in it: part0     20      -  relu     concat\n"
                                             "  in it: part1     40      -  concat   concat\n");
    tide_text_deinit(&out);
    tide_peaks_deinit(&peaks);
    tide_lifetimes_deinit(&lt);
}

/// Hundreds at the peak: the largest are listed, the rest is summed up.
static void a_long_peak_is_cut(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_peaks peaks;
    tide_error err = TIDE_ERROR_INIT;
    for (int i = 0; i < 63; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%02d", i);
        put(&lt, name, 1000 - (uint64_t)i, 0, 1);
    }
    assert_tide_ok(tide_peaks_find(&lt, &peaks, &err), &err);
    assert_int_equal(peaks.list[0].n, 63);
    tide_text out = {0};
    tide_peaks_print(&peaks, &lt, 0, &out);
    assert_text_has(tide_text_str(&out), "\nt59 ");
    assert_null(strstr(tide_text_str(&out), "t60"));
    assert_text_has(tide_text_str(&out), "\n… and 3 more of 2.75 KiB together (-v --json lists all)\n");
    tide_text_deinit(&out);
    tide_peaks_deinit(&peaks);
    tide_lifetimes_deinit(&lt);
}

/// Roots at the peak add up to the lower bound, whatever the table.
static void peaks_add_up_to_the_bound(void **state) {
    (void)state;
    size_t n_buffers = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        tide_peaks peaks;
        tide_error err = TIDE_ERROR_INIT;
        uint64_t bound, sum = 0;
        put_every_feature(&lt, &rng, 1 + tide_rng_below(&rng, 30));
        assert_tide_ok(tide_lower_bound(&lt, &bound, NULL, &err), &err);
        assert_tide_ok(tide_peaks_find(&lt, &peaks, &err), &err);
        n_buffers += peaks.n;
        for (size_t b = 0; b < peaks.n; b++) {
            uint64_t here = 0;
            for (size_t k = 0; k < peaks.list[b].n; k++) {
                const tide_peak_entry *e = &peaks.list[b].entries[k];
                const tide_lifetime *item = &lt.items[e->item];
                assert_int_equal(e->inside, item->alias != TIDE_ALIAS_NONE);
                if (e->inside)
                    assert_true(item->begin_step <= peaks.list[b].step && peaks.list[b].step < item->end_step);
                here += e->inside ? 0 : e->bytes;
            }
            assert_int_equal(here, peaks.list[b].bytes);
            sum += here;
        }
        assert_int_equal(sum, bound);
        tide_peaks_deinit(&peaks);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_buffers > 250);
}

// ---- advice ----

/// Answers as if there were a program behind the table.
typedef struct fake_maker {
    const tide_lifetimes *lt;
    tide_status st;
    int n_asked[TIDE_N_CHANGES];
} fake_maker;

/// PASS makes late tensors smaller by 30, RECOMPUTE by 10 for each 10 %, ALIGN changes nothing, EXTENTS fails.
static tide_status remake(void *ctx, const tide_change *change, tide_lifetimes *out, char **what, tide_error *err) {
    fake_maker *m = ctx;
    m->n_asked[change->kind]++;
    if (m->st != TIDE_OK) return TIDE_FAIL(err, m->st, "as asked");
    if (change->kind == TIDE_CHANGE_EXTENTS) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no open extents");
    TIDE_TRY(tide_lifetimes_copy(m->lt, out, err));
    if (change->kind == TIDE_CHANGE_PASS) out->items[0].size_bytes -= 30;
    if (change->kind == TIDE_CHANGE_RECOMPUTE)
        out->items[0].size_bytes -= (uint64_t)(100 * change->recompute_share + 0.5);
    if (change->kind == TIDE_CHANGE_FUSE) {
        out->items[0].size_bytes -= 1;
        *what = tide_host_strdup("in other words");
    }
    return TIDE_OK;
}

static tide_advice advise(const tide_lifetimes *lt, uint64_t budget, fake_maker *m) {
    const tide_strategy *s;
    tide_error err = TIDE_ERROR_INIT;
    tide_advice a;
    tide_memory_plan *plan = make_plan(lt, "greedy_by_size");
    assert_tide_ok(tide_strategy_find("greedy_by_size", &s, &err), &err);
    tide_advice_question q = {.plan = plan, .budget_bytes = budget, .strategy = s};
    q.passes.align_bytes = 256;
    q.passes.off[TIDE_PASS_PARTS] = true;
    q.passes.recompute_share = 0.10;
    q.no_fuse = true;
    if (m != NULL) {
        q.remake = remake;
        q.ctx = m;
    }
    assert_tide_ok(tide_advice_make(&q, &a, &err), &err);
    tide_memory_plan_destroy(plan);
    return a;
}

static const tide_advice_row *row_of(const tide_advice *a, tide_change_kind kind) {
    for (size_t k = 0; k < a->n; k++) {
        if (a->rows[k].change.kind == kind) return &a->rows[k];
    }
    return NULL;
}

static void assert_row(const tide_advice_row *row, const char *what, uint64_t need, uint64_t saves, bool fits) {
    assert_non_null(row);
    assert_string_equal(row->what, what);
    assert_int_equal(row->need_bytes, need);
    assert_int_equal(row->saves_bytes, saves);
    assert_int_equal(row->fits, fits);
}

/// x 100 and whole 60 make the peak of 160; 1000 bytes of weights lie beside.
static void a_bare_table(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_whole(&lt);
    tide_advice a = advise(&lt, 1130, NULL);
    assert_int_equal(a.need_bytes, 1160);
    assert_int_equal(a.persistent_bytes, 1000);
    assert_int_equal(a.n, 3);
    // The smallest tensor that is enough: `whole` and its parts at half are 30 less, and so is nothing smaller.
    assert_row(&a.rows[0], "'whole' and the 2 in it at half their size (16-bit)", 1130, 30, true);
    assert_row(&a.rows[1], "without 'whole' and the 2 in it", 1120 - 20, 60, true);
    assert_row(&a.rows[2], "weights at half their size (16-bit)", 660, 500, true);
    tide_advice_deinit(&a);

    // Nothing is enough: what saves most.
    a = advise(&lt, 100, NULL);
    assert_int_equal(a.n, 3);
    for (size_t k = 0; k < a.n; k++) assert_false(a.rows[k].fits);
    assert_row(&a.rows[0], "weights at half their size (16-bit)", 660, 500, false);
    assert_row(&a.rows[1], "without 'x'", 1070, 90, false);
    assert_row(&a.rows[2], "'x' at half its size (16-bit)", 1110, 50, false);
    tide_text out = {0};
    tide_advice_print(&a, &out);
    assert_text_has(tide_text_str(&out), "These alone exceed the budget");
    assert_text_has(tide_text_str(&out), "not enough");
    tide_text_deinit(&out);
    tide_advice_deinit(&a);
    tide_lifetimes_deinit(&lt);
}

/// A tensor that is made smaller is so at every profile point too: else no plan of the changed table is sound.
static void a_table_of_several_sizes(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_whole(&lt);
    lt.point_names = tide_host_calloc(2, sizeof *lt.point_names);
    for (size_t k = 0; k < 2; k++) lt.point_names[k] = tide_host_strdup(k == 0 ? "batch=1" : "batch=4");
    lt.n_points = 2;
    for (size_t i = 0; i < lt.n; i++) {
        lt.items[i].point_bytes = tide_host_calloc(2, sizeof *lt.items[i].point_bytes);
        lt.items[i].point_bytes[0] = lt.items[i].size_bytes / 4;
        lt.items[i].point_bytes[1] = lt.items[i].size_bytes;
    }
    tide_advice a = advise(&lt, 1130, NULL);
    assert_row(&a.rows[0], "'whole' and the 2 in it at half their size (16-bit)", 1130, 30, true);
    assert_row(&a.rows[1], "without 'whole' and the 2 in it", 1120 - 20, 60, true);
    assert_row(&a.rows[2], "weights at half their size (16-bit)", 660, 500, true);
    tide_advice_deinit(&a);
    tide_lifetimes_deinit(&lt);
}

/// What changes least comes first among those that fit, whatever it saves.
static void changes_to_a_program(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_whole(&lt);
    fake_maker m = {.lt = &lt};
    tide_advice a = advise(&lt, 1140, &m);
    assert_int_equal(m.n_asked[TIDE_CHANGE_PASS], 1); // only the one that was off
    assert_int_equal(m.n_asked[TIDE_CHANGE_FUSE], 1);
    assert_int_equal(m.n_asked[TIDE_CHANGE_ALIGN], 2);
    assert_int_equal(m.n_asked[TIDE_CHANGE_RECOMPUTE], 2); // 10 % is allowed already
    assert_int_equal(m.n_asked[TIDE_CHANGE_EXTENTS], 1);
    assert_row(&a.rows[0], "turn the pass 'parts' on", 1130, 30, true);
    assert_row(&a.rows[1], "--allow-recompute 25%", 1135, 25, true);
    assert_row(&a.rows[2], "--allow-recompute 50%", 1110, 50, true);
    assert_int_equal(a.rows[3].change.kind, TIDE_CHANGE_HALF);
    assert_row(row_of(&a, TIDE_CHANGE_FUSE), "in other words", 1159, 1, false);
    assert_null(row_of(&a, TIDE_CHANGE_ALIGN)); // saves nothing
    assert_null(row_of(&a, TIDE_CHANGE_EXTENTS));
    assert_null(row_of(&a, TIDE_CHANGE_SEARCH)); // the plan is at its bound
    tide_advice_deinit(&a);

    // Changes that cannot be made are no advice, and no failure.
    m.st = TIDE_ERR_UNKNOWN_SIZE;
    a = advise(&lt, 1140, &m);
    assert_null(row_of(&a, TIDE_CHANGE_PASS));
    assert_int_equal(a.rows[0].change.kind, TIDE_CHANGE_HALF);
    tide_advice_deinit(&a);
    tide_lifetimes_deinit(&lt);
}

/// Where the bound leaves room nothing need change but the search; scratch has no narrower type.
static void room_and_scratch(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 20, 0, 2);
    put(&lt, "b", 10, 1, 3);
    put(&lt, "c", 10, 2, 4);
    lt.items[1].role = TIDE_ROLE_SCRATCH;
    tide_memory_plan *plan = make_plan(&lt, "naive");
    const tide_advice_question q = {.plan = plan, .budget_bytes = 35};
    tide_advice a;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_advice_make(&q, &a, &err), &err);
    assert_int_equal(row_of(&a, TIDE_CHANGE_SEARCH)->need_bytes, 30);
    assert_false(row_of(&a, TIDE_CHANGE_SEARCH)->fits);
    assert_text_has(row_of(&a, TIDE_CHANGE_HALF)->what, "'a'");
    tide_advice_deinit(&a);
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

/// Every figure is what the changed table gives: made by hand, it gives the same.
static void figures_are_those_of_the_changed_table(void **state) {
    (void)state;
    size_t n_checked = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, 2 + tide_rng_below(&rng, 20), 8, 3000, true);
        tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
        tide_advice a = advise(&lt, 1, NULL); // nothing fits into one byte: rows are bounds
        const tide_advice_row *gone = row_of(&a, TIDE_CHANGE_GONE);
        if (gone != NULL) {
            lt.items[gone->change.item].size_bytes = 0;
            tide_memory_plan *without = make_plan(&lt, "greedy_by_size");
            assert_int_equal(gone->need_bytes, without->proved_bytes + a.persistent_bytes);
            // Bound against bound: what today's plan has above its own is not the change's to save.
            assert_true(gone->saves_bytes == plan->proved_bytes + a.persistent_bytes - gone->need_bytes);
            tide_memory_plan_destroy(without);
            n_checked++;
        }
        tide_advice_deinit(&a);
        tide_memory_plan_destroy(plan);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_checked > 30);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_whole(&lt);
    tide_memory_plan *plan = make_plan(&lt, "greedy_by_size");
    const tide_strategy *s;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_strategy_find("greedy_by_size", &s, &err), &err);
    fake_maker m = {.lt = &lt};
    tide_advice_question q = {.plan = plan, .budget_bytes = 1130, .strategy = s, .remake = remake, .ctx = &m};
    q.passes.align_bytes = 16;
    bool failed = true;
    for (int64_t n = 0; failed; n++) {
        tide_host_stats before, after;
        tide_advice a;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        const tide_status st = tide_advice_make(&q, &a, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) tide_advice_deinit(&a);
        tide_host_get_stats(&after);
        assert_int_equal(before.n_live, after.n_live);
        assert_true(n < 2000);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_peak),
        tide_unit_test(a_long_peak_is_cut),
        tide_unit_test(peaks_add_up_to_the_bound),
        tide_unit_test(a_bare_table),
        tide_unit_test(a_table_of_several_sizes),
        tide_unit_test(changes_to_a_program),
        tide_unit_test(room_and_scratch),
        tide_unit_test(figures_are_those_of_the_changed_table),
        tide_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
