// SPDX-License-Identifier: MIT
//
// The explainer of plans: one by hand, and random plans of every strategy where each figure is counted byte by byte or
// comes from a plan in which the tensor is really gone.
#include "analysis/explain.h"
#include "planner/without.h"
#include "tests/analysis/subject_fixture.h"
#include "tests/planner/lifetimes_test.h"

static const tide_curve_key live_key = {TIDE_CURVE_LIVE, -1, NULL}, reserved_key = {TIDE_CURVE_RESERVED, -1, NULL};

static tide_explanation explained(tide_subject *s, int64_t step, size_t n_without) {
    tide_error err = TIDE_ERROR_INIT;
    tide_explanation e;
    assert_tide_ok(tide_explain(s, (tide_moment){.t = step}, n_without, NULL, &e, &err), &err);
    return e;
}

static const tide_without *without(const tide_explanation *e, const char *name) {
    for (size_t i = 0; i < e->n_without; i++) {
        if (strcmp(e->without[i].name, name) == 0) return &e->without[i];
    }
    fail_msg("nothing is said of '%s'", name);
    return NULL;
}

static uint64_t group(const tide_explain_group *g, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(g[i].key, key) == 0) return g[i].bytes;
    }
    return 0;
}

// ---- by hand ----

/// The demo plan (trace_fixture.h): at step 2 a 1024, b 512, c 768, conv2.scratch 256 fill its buffer of 2560, and x
/// 1024, w 512, y 1024 persist.
static void the_demo_plan(void **state) {
    (void)state;
    tide_subject *s = subject_of_plan(demo_plan_make());
    tide_explanation e = explained(s, 2, 20);
    assert_int_equal(e.held_bytes, DEMO_BYTES + 2560);
    assert_int_equal(e.parts[TIDE_PART_LIVE], 1000 + 500 + 700 + 200 + 1000 + 300 + 1000);
    assert_int_equal(e.parts[TIDE_PART_ROUNDING], 24 + 12 + 68 + 56 + 24 + 212 + 24);
    assert_int_equal(e.parts[TIDE_PART_HOLES], 0);
    assert_int_equal(e.parts[TIDE_PART_SLACK], 0);
    assert_int_equal(group(e.by_owner, e.n_by_owner, "conv"), 1024);
    assert_int_equal(group(e.by_owner, e.n_by_owner, "relu"), 512);
    assert_int_equal(group(e.by_owner, e.n_by_owner, "conv2"), 1024);
    assert_int_equal(group(e.by_owner, e.n_by_owner, "(inputs)"), 1024);
    assert_int_equal(group(e.by_owner, e.n_by_owner, "(outputs)"), 1024);
    assert_int_equal(group(e.by_owner, e.n_by_owner, "(weights)"), 512);
    assert_int_equal(group(e.by_kind, e.n_by_kind, "Workspace"), 2560);
    assert_int_equal(group(e.by_kind, e.n_by_kind, "Default"), 2048);
    assert_int_equal(group(e.by_kind, e.n_by_kind, "Persistent"), 512);
    // Without a: 2560 of the persistent and, at step 2, 512 + 768 + 256. Without b: 1024 + 768 + 256 there.
    assert_int_equal(e.n_without, 4);
    assert_int_equal(without(&e, "a")->peak_bytes, 2560 + 1536);
    assert_int_equal(without(&e, "a")->at.t, 2);
    assert_string_equal(without(&e, "a")->step, "conv2");
    assert_int_equal(without(&e, "c")->peak_bytes, 2560 + 1792); // at step 0 as much as at step 2: the first counts
    assert_int_equal(without(&e, "c")->at.t, 0);
    assert_string_equal(without(&e, "c")->step, "conv");
    assert_int_equal(without(&e, "b")->peak_bytes, 2560 + 2048);
    assert_int_equal(without(&e, "conv2.scratch")->peak_bytes, 2560 + 2304);
    assert_int_equal(e.without[0].peak_bytes, 2560 + 1536); // what saves most comes first
    assert_int_equal(e.second_peak_bytes, 2560 + 768);      // conv.scratch, at step 0
    assert_int_equal(e.second_peak.t, 0);
    assert_true(e.knows_ends);
    tide_explanation_deinit(&e);
    e = explained(s, 1, 1);
    assert_int_equal(e.parts[TIDE_PART_HOLES], 0);
    assert_int_equal(e.parts[TIDE_PART_SLACK], DEMO_BYTES - 1536);
    assert_int_equal(e.n_without, 1);
    tide_explanation_deinit(&e);
    // At step 3 b's place below c is empty.
    e = explained(s, 3, 0);
    assert_int_equal(e.parts[TIDE_PART_HOLES], 512);
    assert_int_equal(e.parts[TIDE_PART_SLACK], 256);
    assert_int_equal(e.n_without, 0);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
}

/// Two humps that share nothing but `long`, which persists: lowering the first below the second takes more than the
/// first's own tensors.
static void the_second_peak(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "a", 100, 0, 2);
    put(&lt, "b", 50, 1, 3);
    put(&lt, "c", 90, 3, 5);
    put(&lt, "d", 40, 4, 6);
    put_persistent(&lt, "long", 7, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 6);
    tide_subject *s = subject_of_plan(make_plan(&lt, "greedy_by_size"));
    tide_explanation e = explained(s, 1, 20);
    assert_int_equal(e.second_peak_bytes, 137);
    assert_int_equal(e.second_peak.t, 4);
    assert_int_equal(without(&e, "a")->peak_bytes, 137);
    assert_int_equal(without(&e, "a")->at.t, 4);
    assert_int_equal(without(&e, "b")->peak_bytes, 137);
    tide_explanation_deinit(&e);
    e = explained(s, 4, 20);
    assert_int_equal(e.second_peak_bytes, 157);
    assert_int_equal(e.second_peak.t, 1);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
    tide_lifetimes_deinit(&lt);
}

static void pools_have_slack(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put(&lt, "large", 100, 0, 1);
    put(&lt, "small", 30, 1, 3);
    put(&lt, "other", 60, 0, 2);
    tide_memory_plan *plan = make_plan(&lt, "greedy_color");
    assert_int_equal(plan->n_pools, 2);
    const uint64_t small_at = plan->offsets[1], other_at = plan->offsets[2];
    tide_subject *s = subject_of_plan(plan);
    // Step 1: "small" in a pool of 100, "other" in one of 60.
    tide_explanation e = explained(s, 1, 0);
    assert_int_equal(e.held_bytes, 160);
    assert_int_equal(e.parts[TIDE_PART_LIVE], 90);
    assert_int_equal(e.parts[TIDE_PART_SLACK], 70);
    assert_int_equal(e.parts[TIDE_PART_HOLES], 0);
    tide_explanation_deinit(&e);
    // Step 2: the other pool is empty: a hole below, or slack above.
    e = explained(s, 2, 0);
    assert_int_equal(e.parts[TIDE_PART_HOLES], small_at > other_at ? 60 : 0);
    assert_int_equal(e.parts[TIDE_PART_SLACK], small_at > other_at ? 70 : 130);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
    tide_lifetimes_deinit(&lt);
}

static void sentences(void **state) {
    (void)state;
    tide_subject *s = subject_of_plan(demo_plan_make());
    tide_explanation e = explained(s, 2, 20);
    tide_text t = {0};
    tide_explanation_print(&e, s, 3, &t);
    assert_text_has(tide_text_str(&t), "At step 2 (conv2) 5.00 KiB are held: 4.59 KiB live, 420 B rounding.\n");
    assert_text_has(tide_text_str(&t), "x holds 1.00 KiB (20.0 %), for the whole run.\n");
    assert_text_has(tide_text_str(&t), "4 more hold 2.00 KiB (40.0 %).\n");
    assert_text_has(tide_text_str(&t), "By operator: (inputs) 1.00 KiB, (outputs) 1.00 KiB, conv 1.00 KiB, others");
    assert_text_has(tide_text_str(&t), "Without a (1.00 KiB) the peak would be 4.00 KiB, 20.0 % lower, at step 2 "
                                       "(conv2): the next constraint. The plan of the rest takes 1.50 KiB, 40.0 % "
                                       "less.\n");
    tide_text_deinit(&t);
    tide_explanation_deinit(&e);
    e = explained(s, 1, 1);
    tide_explanation_print(&e, s, 3, &t);
    assert_text_has(tide_text_str(&t), "At step 1 (relu)");
    assert_text_has(tide_text_str(&t), "made by conv");
    tide_text_deinit(&t);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
}

static void names_of_parts(void **state) {
    (void)state;
    assert_string_equal(tide_part_name(TIDE_PART_HOLES), "holes");
    assert_string_equal(tide_part_name((tide_part_kind)99), "part ?");
}

// ---- random plans ----

/// Bytes of a buffer that tensors asked for at a step, byte by byte: what aliases share is one byte.
static uint64_t count_asked(const tide_memory_plan *plan, int64_t step) {
    uint64_t sum = 0;
    for (size_t b = 0; b < plan->n_buffers; b++) {
        char *map = tide_host_calloc(plan->buffers[b].bytes + 1, 1);
        assert_non_null(map);
        for (size_t i = 0; i < plan->lifetimes.n; i++) {
            const tide_lifetime *l = &plan->lifetimes.items[i];
            uint64_t lo = 0, hi = l->size_bytes;
            if (l->persistent || l->kind != plan->buffers[b].kind ||
                !tide_device_equal(l->device, plan->buffers[b].device) || step < l->begin_step || step >= l->end_step)
                continue;
            for (uint32_t g = 0; g < l->n_gaps; g++) {
                if (l->gaps[g].begin_step > step || step >= l->gaps[g].end_step) continue;
                lo = l->gaps[g].lo_bytes;
                hi = l->gaps[g].hi_bytes;
            }
            if (hi > lo) memset(map + plan->offsets[i] + lo, 1, hi - lo);
        }
        for (uint64_t k = 0; k < plan->buffers[b].bytes; k++) sum += (uint64_t)map[k];
        tide_host_free(map);
    }
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        if (l->persistent && l->begin_step <= step && step < l->end_step) sum += l->size_bytes;
    }
    return sum;
}

/// Where the highest live byte of each buffer ends.
static uint64_t count_above(const tide_memory_plan *plan, int64_t step) {
    tide_error err = TIDE_ERROR_INIT;
    tide_occupied *list;
    size_t n;
    uint64_t above = 0;
    assert_tide_ok(tide_lifetimes_occupied(&plan->lifetimes, &list, &n, &err), &err);
    for (size_t b = 0; b < plan->n_buffers; b++) {
        uint64_t top = 0;
        for (size_t i = 0; i < n; i++) {
            const tide_lifetime *l = &plan->lifetimes.items[list[i].root];
            if (l->kind != plan->buffers[b].kind || !tide_device_equal(l->device, plan->buffers[b].device)) continue;
            if (list[i].begin_step > step || step >= list[i].end_step) continue;
            if (plan->offsets[list[i].root] + list[i].hi_bytes > top)
                top = plan->offsets[list[i].root] + list[i].hi_bytes;
        }
        above += plan->buffers[b].bytes - top;
    }
    tide_host_free(list);
    return above;
}

static uint64_t value_at(tide_subject *s, tide_curve_key key, int64_t t) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t bytes;
    assert_tide_ok(tide_subject_bytes_at(s, key, (tide_moment){.t = t}, &bytes, &err), &err);
    return bytes;
}

static void assert_sums(tide_subject *s, const tide_explanation *e, int64_t step) {
    const tide_memory_plan *plan = tide_subject_get_facts(s)->plan;
    uint64_t parts = 0, owners = 0, kinds = 0, counts = 0;
    for (int k = 0; k < TIDE_N_PARTS; k++) parts += e->parts[k];
    for (size_t i = 0; i < e->n_by_owner; i++) owners += e->by_owner[i].bytes;
    for (size_t i = 0; i < e->n_by_kind; i++) kinds += e->by_kind[i].bytes;
    for (size_t i = 0; i < e->live.n; i++) counts += e->live.items[i].counts_bytes;
    assert_int_equal(parts, e->held_bytes);
    // The curve counts what persists at every step; a list may say that it comes and goes.
    uint64_t absent = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        if (l->persistent && (step < l->begin_step || step >= l->end_step)) absent += tide_lifetime_aligned_bytes(l);
    }
    assert_int_equal(e->held_bytes + absent, value_at(s, reserved_key, step));
    assert_int_equal(e->live.bytes, value_at(s, live_key, step));
    assert_int_equal(counts, e->live.bytes);
    assert_int_equal(owners, e->live.bytes);
    assert_int_equal(kinds, e->live.bytes);
    assert_int_equal(e->parts[TIDE_PART_LIVE], count_asked(plan, step));
    assert_int_equal(e->parts[TIDE_PART_LIVE] + e->parts[TIDE_PART_ROUNDING], e->live.bytes);
    if (plan->form == TIDE_PLAN_OFFSETS) assert_int_equal(e->parts[TIDE_PART_SLACK], count_above(plan, step));
    if (plan->form == TIDE_PLAN_POOLS) assert_true(e->parts[TIDE_PART_SLACK] >= count_above(plan, step));
    assert_int_equal(e->parts[TIDE_PART_CACHED] + e->parts[TIDE_PART_UNUSED], 0);
}

/// Where the last byte that is left ends, in each buffer, when nothing is moved: of an offset plan.
static uint64_t end_of_rest(const tide_memory_plan *plan, uint32_t gone) {
    uint64_t sum = 0;
    for (size_t b = 0; b < plan->n_buffers; b++) {
        uint64_t end = 0;
        for (uint32_t i = 0; i < plan->lifetimes.n; i++) {
            const tide_lifetime *l = &plan->lifetimes.items[i];
            if (l->persistent || l->alias != TIDE_ALIAS_NONE || i == gone || l->size_bytes == 0 ||
                l->kind != plan->buffers[b].kind || !tide_device_equal(l->device, plan->buffers[b].device))
                continue;
            const uint64_t to = plan->offsets[i] + tide_lifetime_aligned_bytes(l);
            if (to > end) end = to;
        }
        sum += end;
    }
    return sum;
}

/// The table without what shares bytes with marked ones, written anew item by item; planned as the plan was.
static tide_memory_plan *plan_of_the_others(const tide_memory_plan *plan, const bool *roots) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {0};
    uint32_t now[200];
    assert_true(plan->lifetimes.n <= 200);
    for (uint32_t i = 0; i < plan->lifetimes.n; i++) {
        tide_lifetime item = plan->lifetimes.items[i];
        if (roots[tide_lifetimes_root(&plan->lifetimes, i, NULL)]) continue;
        item.alias = TIDE_ALIAS_NONE;
        now[i] = (uint32_t)lt.n;
        assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    }
    for (uint32_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (roots[tide_lifetimes_root(&plan->lifetimes, i, NULL)] || item->alias == TIDE_ALIAS_NONE) continue;
        assert_tide_ok(
            tide_lifetimes_alias(&lt, now[i], item->alias, now[item->alias_of], item->alias_offset_bytes, &err), &err);
    }
    const tide_strategy *strategy;
    tide_memory_plan *out;
    const tide_strategy_options opt = {.node_limit = 100, .n_threads = 1};
    assert_tide_ok(tide_strategy_find(plan->strategy, &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, strategy, &opt, &out, &err), &err);
    out->lifetimes.n_steps = plan->lifetimes.n_steps;
    tide_lifetimes_deinit(&lt);
    return out;
}

/// The peak of a plan of which the tensor is really gone, and what that plan takes.
static void assert_without(tide_subject *s, const tide_explanation *e, const tide_without *w) {
    const tide_memory_plan *plan = tide_subject_get_facts(s)->plan;
    bool roots[200] = {false};
    uint64_t n_inside = 0, bytes = 0;
    roots[w->storage] = true;
    assert_string_equal(w->name, plan->lifetimes.items[w->storage].name);
    for (uint32_t i = 0; i < plan->lifetimes.n; i++)
        n_inside += i != w->storage && tide_lifetimes_root(&plan->lifetimes, i, NULL) == w->storage;
    for (size_t i = 0; i < e->live.n; i++) {
        const tide_live_item *x = &e->live.items[i];
        if (tide_lifetimes_root(&plan->lifetimes, (uint32_t)x->id, NULL) == w->storage) bytes += x->counts_bytes;
    }
    assert_int_equal(w->n_inside, n_inside);
    assert_int_equal(w->bytes, bytes);
    tide_memory_plan *gone = plan_of_the_others(plan, roots);
    assert_true(w->has_plan);
    assert_int_equal(w->was_bytes, plan->bytes);
    assert_true(w->plan_bytes <= gone->bytes && w->plan_bytes <= plan->bytes &&
                w->plan_bytes >= gone->lower_bound_bytes);
    if (w->plan_bytes < gone->bytes && plan->form == TIDE_PLAN_OFFSETS)
        assert_int_equal(w->plan_bytes, end_of_rest(plan, w->storage));
    tide_subject *rest = subject_of_plan(gone);
    const tide_subject_facts *f = tide_subject_get_facts(rest);
    assert_int_equal(w->peak_bytes, f->peak_bytes);
    assert_int_equal(w->at.t, f->peak.t);
    assert_true(w->peak_bytes <= tide_subject_get_facts(s)->peak_bytes);
    if (plan->lifetimes.n_step_names > 0) assert_string_equal(w->step, plan->lifetimes.step_names[w->at.t]);
    tide_subject_destroy(rest);
}

static void assert_second(tide_subject *s, const tide_explanation *e) {
    const tide_subject_facts *f = tide_subject_get_facts(s);
    bool roots[200] = {false};
    for (size_t i = 0; i < e->live.n; i++) {
        const tide_live_item *x = &e->live.items[i];
        if (!x->shape.persistent && x->counts_bytes > 0)
            roots[tide_lifetimes_root(&f->plan->lifetimes, (uint32_t)x->id, NULL)] = true;
    }
    tide_memory_plan *gone = plan_of_the_others(f->plan, roots);
    const uint64_t plan_bytes = gone->bytes;
    tide_subject *rest = subject_of_plan(gone);
    assert_int_equal(e->second_peak_bytes, tide_subject_get_facts(rest)->peak_bytes);
    assert_int_equal(e->second_peak.t, tide_subject_get_facts(rest)->peak.t);
    tide_subject_destroy(rest);
    // More never saves less.
    assert_int_equal(e->has_second_plan, e->n_without > 0);
    if (e->has_second_plan) assert_true(e->second_plan_bytes <= plan_bytes);
    for (size_t i = 0; i < e->n_without; i++) {
        assert_true(e->second_peak_bytes <= e->without[i].peak_bytes);
        assert_true(e->second_plan_bytes <= e->without[i].plan_bytes);
    }
}

static void assert_explained(tide_memory_plan *plan) {
    tide_subject *s = subject_of_plan(plan);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    tide_subject_set_model(s, &(tide_whatif){.options = {.node_limit = 100, .n_threads = 1}});
    for (int64_t step = f->begin; step < f->end; step++) {
        tide_explanation e = explained(s, step, step == f->peak.t ? 100 : 0);
        assert_sums(s, &e, step);
        if (step == f->peak.t) assert_second(s, &e);
        for (size_t i = 0; i < e.n_without; i++) assert_without(s, &e, &e.without[i]);
        for (size_t i = 1; i < e.n_without; i++) assert_true(e.without[i - 1].plan_bytes <= e.without[i].plan_bytes);
        tide_explanation_deinit(&e);
    }
    tide_subject_destroy(s);
}

static void random_plans_of_every_strategy(void **state) {
    (void)state;
    const tide_strategy *const *strategies;
    const size_t n = tide_strategies(&strategies);
    size_t n_made = 0;
    tide_rng rng = {41};
    for (size_t k = 0; k < n; k++) {
        for (int round = 0; round < tide_test_rounds(2, 3); round++) {
            tide_lifetimes lt = {0};
            tide_error err = TIDE_ERROR_INIT;
            tide_memory_plan *plan;
            const tide_strategy_options opt = {.node_limit = 500, .n_threads = 1};
            if (round == 0)
                put_random(&lt, &rng, 30, 12, 500, true);
            else
                put_every_feature(&lt, &rng, 8 + tide_rng_below(&rng, 16));
            const tide_status st = tide_plan_make(&lt, strategies[k], &opt, &plan, &err);
            tide_lifetimes_deinit(&lt);
            if (st == TIDE_ERR_NOT_IMPLEMENTED) continue; // given offsets, for one
            assert_tide_ok(st, &err);
            assert_explained(plan);
            n_made++;
        }
    }
    assert_true(n_made > (size_t)tide_test_rounds(1, 2) * n);
}

/// A plan without all that are alive, made anew or left of the whole one: with no look at the plans without one.
static uint64_t without_all(tide_subject *s, const tide_explanation *e) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_memory_plan *plan = tide_subject_get_facts(s)->plan;
    const tide_strategy *strategy;
    tide_memory_plan *rest;
    bool gone[200] = {false};
    for (size_t i = 0; i < e->live.n; i++) gone[e->live.items[i].id] = true;
    assert_tide_ok(tide_strategy_find(plan->strategy, &strategy, &err), &err);
    assert_tide_ok(tide_plan_without(plan, gone, strategy, NULL, &rest, &err), &err);
    const uint64_t bytes = rest->bytes;
    tide_memory_plan_destroy(rest);
    return bytes;
}

/// A greedy strategy happens to make a larger plan without all than without one of them: the smaller one holds.
static void more_never_saves_less(void **state) {
    (void)state;
    size_t n_worse = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        static const char *const strategies[] = {"greedy_by_size", "linear_scan", "greedy_color_given"};
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, 14, 12, 300, false);
        tide_subject *s = subject_of_plan(make_plan(&lt, strategies[seed % 3]));
        const tide_subject_facts *f = tide_subject_get_facts(s);
        tide_explanation e = explained(s, f->begin + (int64_t)tide_rng_below(&rng, (uint64_t)(f->end - f->begin)), 100);
        for (size_t i = 0; i < e.n_without; i++) {
            assert_true(e.second_plan_bytes <= e.without[i].plan_bytes);
            assert_true(e.without[i].plan_bytes <= f->plan_bytes);
            assert_true(e.second_peak_bytes <= e.without[i].peak_bytes);
        }
        if (e.n_without > 0) n_worse += without_all(s, &e) > e.without[0].plan_bytes;
        tide_explanation_deinit(&e);
        tide_subject_destroy(s);
        tide_lifetimes_deinit(&lt);
    }
    assert_true(n_worse > 0); // it happens
}

static void plans_with_aliases(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 8; seed++) assert_explained(random_plan(seed, 40, 15));
}

static void a_plan_of_nothing(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    put_persistent(&lt, "w", 10, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 3);
    tide_subject *s = subject_of_plan(make_plan(&lt, "greedy_by_size"));
    tide_explanation e = explained(s, 1, 5);
    assert_int_equal(e.held_bytes, 10);
    assert_int_equal(e.n_without, 0);
    assert_int_equal(e.second_peak_bytes, 10); // no tensor can go, so none is alive at any moment
    tide_text t = {0};
    tide_explanation_print(&e, s, 5, &t);
    assert_text_has(tide_text_str(&t), "10 B are held: 10 B live.\n");
    tide_text_deinit(&t);
    tide_explanation_deinit(&e);
    tide_subject_destroy(s);
    tide_lifetimes_deinit(&lt);
}

static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    bool failed = true;
    for (int64_t n = 0; failed; n++) {
        tide_subject *s = subject_of_plan(random_plan(3, 20, 10));
        tide_host_stats before, after;
        tide_explanation e;
        tide_host_get_stats(&before);
        tide_host_fail_after(n);
        const tide_status st = tide_explain(s, tide_subject_get_facts(s)->peak, 3, NULL, &e, &err);
        tide_host_fail_after(-1);
        failed = st != TIDE_OK;
        if (failed) assert_tide_status(st, TIDE_ERR_NOMEM);
        if (!failed) tide_explanation_deinit(&e);
        tide_subject_destroy(s);
        tide_host_get_stats(&after);
        assert_true(after.n_live < before.n_live); // the subject went, and all that it was given
        assert_true(n < 4000);
        assert_true(failed || n > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_demo_plan),         tide_unit_test(the_second_peak),
        tide_unit_test(pools_have_slack),      tide_unit_test(sentences),
        tide_unit_test(names_of_parts),        tide_unit_test(random_plans_of_every_strategy),
        tide_unit_test(more_never_saves_less), tide_unit_test(plans_with_aliases),
        tide_unit_test(a_plan_of_nothing),     tide_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
