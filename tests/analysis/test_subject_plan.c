// SPDX-License-Identifier: MIT
//
// A plan as a subject: its curve is the sum of what it occupies, who is alive sums to it, steps are moments.
#include "tests/analysis/subject_fixture.h"

static const tide_curve_key live_bytes = {TIDE_CURVE_LIVE, -1, NULL};

enum { N_PLANS = 12, N_COLUMNS = 37, MAX_STEPS = 64 };

static const tide_curve_key live_key = {TIDE_CURVE_LIVE, -1, NULL};

static void facts_of_the_demo_plan(void **state) {
    (void)state;
    tide_subject *s = subject_of_plan(demo_plan_make());
    const tide_subject_facts *f = tide_subject_get_facts(s);
    assert_false(f->is_trace);
    assert_int_equal(f->axis, TIDE_AXIS_STEPS);
    assert_int_equal(f->begin, 0);
    assert_int_equal(f->end, N_DEMO_STEPS);
    assert_string_equal(f->title, "demo: plan, by_hand");
    assert_string_equal(f->path, "");
    assert_int_equal(f->n_items, N_DEMO);
    assert_int_equal(f->plan_bytes, DEMO_BYTES);
    assert_true(f->has_plan && f->proven);
    assert_true(f->levels.known);
    assert_int_equal(f->levels.below, 1024 + 512 + 1024); // x, w, y in multiples of 256
    assert_int_equal(f->peak_bytes, DEMO_BYTES + 2560);
    assert_int_equal(f->peak.t, 2);
    assert_int_equal(f->n_steps, N_DEMO_STEPS);
    assert_string_equal(f->step_names[2], "conv2");
    assert_int_equal(f->step_begin[2], 2);
    assert_int_equal(f->n_kinds, 3);
    assert_string_equal(f->kinds[0].device, "cpu");
    assert_true(f->kinds[0].peak_bytes == TIDE_UNKNOWN_BYTES);
    assert_null(tide_subject_trace(s));
    tide_subject_destroy(s);
}

/// What is occupied at each step, added up rectangle by rectangle.
static void add_up(const tide_memory_plan *plan, uint64_t heights[MAX_STEPS]) {
    tide_error err = TIDE_ERROR_INIT;
    tide_occupied *list;
    size_t n;
    assert_true(plan->lifetimes.n_steps < MAX_STEPS);
    memset(heights, 0, MAX_STEPS * sizeof *heights);
    assert_tide_ok(tide_lifetimes_occupied(&plan->lifetimes, &list, &n, &err), &err);
    for (size_t i = 0; i < n; i++)
        for (int64_t t = list[i].begin_step; t < list[i].end_step; t++)
            heights[t] += list[i].hi_bytes - list[i].lo_bytes;
    for (size_t i = 0; i < plan->lifetimes.n; i++) { // memory of their own
        const tide_lifetime *l = &plan->lifetimes.items[i];
        for (int64_t t = l->begin_step; l->persistent && t < l->end_step; t++)
            heights[t] += tide_lifetime_aligned_bytes(l);
    }
    tide_host_free(list);
}

static void plain_columns(const uint64_t *heights, int64_t t0, int64_t t1, size_t n, uint64_t *low, uint64_t *high) {
    for (size_t i = 0; i < n; i++) {
        const int64_t from = t0 + (t1 - t0) * (int64_t)i / (int64_t)n;
        int64_t to = t0 + (t1 - t0) * ((int64_t)i + 1) / (int64_t)n;
        if (to <= from) to = from + 1;
        low[i] = UINT64_MAX;
        high[i] = 0;
        for (int64_t t = from; t < to; t++) {
            if (heights[t] < low[i]) low[i] = heights[t];
            if (heights[t] > high[i]) high[i] = heights[t];
        }
    }
}

/// The first highest from t0 to t1.
static int64_t plain_peak(const uint64_t *heights, int64_t t0, int64_t t1) {
    int64_t best = t0;
    for (int64_t t = t0; t <= t1; t++)
        if (heights[t] > heights[best]) best = t;
    return best;
}

/// Curve, columns and peak, whatever aliases and gaps there are.
static void curve_is_what_is_occupied(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t seed = 1; seed <= N_PLANS; seed++) {
        tide_memory_plan *plan = random_plan(seed, 40 + seed * 10, 30);
        uint64_t heights[MAX_STEPS];
        add_up(plan, heights);
        tide_subject *s = subject_of_plan(plan);
        const tide_subject_facts *f = tide_subject_get_facts(s);
        assert_int_equal(f->peak.t, plain_peak(heights, 0, 29));
        assert_int_equal(f->peak_bytes, heights[f->peak.t]);
        assert_string_equal(f->title, "random: plan, greedy_by_size");
        tide_rng rng = {seed};
        for (int k = 0; k < 20; k++) {
            uint64_t low[N_COLUMNS], high[N_COLUMNS], want_low[N_COLUMNS], want_high[N_COLUMNS], bytes;
            const int64_t t0 = (int64_t)tide_rng_below(&rng, 30),
                          t1 = t0 + 1 + (int64_t)tide_rng_below(&rng, 30 - (uint64_t)t0);
            const size_t n = 1 + (size_t)tide_rng_below(&rng, N_COLUMNS);
            assert_tide_ok(tide_subject_columns(s, live_key, t0, t1, n, low, high, &err), &err);
            plain_columns(heights, t0, t1, n, want_low, want_high);
            assert_memory_equal(low, want_low, n * sizeof low[0]);
            assert_memory_equal(high, want_high, n * sizeof high[0]);
            tide_moment at;
            assert_tide_ok(tide_subject_peak_between(s, live_key, t0, t1, &bytes, &at, &err), &err);
            assert_int_equal(at.t, plain_peak(heights, t0, t1));
            assert_int_equal(bytes, heights[at.t]);
            assert_tide_ok(tide_subject_bytes_at(s, live_key, (tide_moment){t1, 0}, &bytes, &err), &err);
            assert_int_equal(bytes, heights[t1]);
        }
        tide_subject_destroy(s);
    }
}

/// Kinds add up to the whole; a device that is not there is said so.
static void kinds_add_up(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *s = subject_of_plan(random_plan(5, 80, 20));
    for (int64_t t = 0; t < 20; t++) {
        uint64_t all, sum = 0;
        assert_tide_ok(tide_subject_bytes_at(s, live_key, (tide_moment){t, 0}, &all, &err), &err);
        for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
            uint64_t bytes;
            const tide_curve_key key = {TIDE_CURVE_LIVE, kind, "cpu"};
            assert_tide_ok(tide_subject_bytes_at(s, key, (tide_moment){t, 0}, &bytes, &err), &err);
            sum += bytes;
        }
        assert_int_equal(sum, all);
        const tide_curve_key predicted = {TIDE_CURVE_PREDICTED, -1, NULL};
        assert_tide_ok(tide_subject_bytes_at(s, predicted, (tide_moment){t, 0}, &sum, &err), &err);
        assert_int_equal(sum, all);
        const tide_subject_facts *f = tide_subject_get_facts(s);
        const tide_curve_key reserved = {TIDE_CURVE_RESERVED, -1, NULL};
        assert_tide_ok(tide_subject_bytes_at(s, reserved, (tide_moment){t, 0}, &sum, &err), &err);
        assert_int_equal(sum, f->levels.below + f->plan_bytes);
    }
    uint64_t bytes;
    const tide_curve_key elsewhere = {TIDE_CURVE_LIVE, -1, "cuda:3"};
    assert_tide_status(tide_subject_bytes_at(s, elsewhere, (tide_moment){0, 0}, &bytes, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "cuda:3");
    tide_subject_destroy(s);
}

/// Who is alive sums to the curve, each tensor that is alive is there once, and no alias counts what its root has.
static void live_sums_to_the_curve(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t seed = 1; seed <= N_PLANS; seed++) {
        tide_memory_plan *plan = random_plan(seed + 100, 120, 25);
        tide_subject *s = subject_of_plan(plan);
        const tide_items *items = load_items(s);
        for (int64_t t = 0; t < 25; t++) {
            tide_live_items l;
            uint64_t curve, sum = 0;
            size_t n = 0;
            assert_tide_ok(tide_subject_live(s, (tide_moment){t, 0}, &l, &err), &err);
            assert_tide_ok(tide_subject_bytes_at(s, live_key, (tide_moment){t, 0}, &curve, &err), &err);
            assert_int_equal(l.bytes, curve);
            for (size_t i = 0; i < plan->lifetimes.n; i++)
                n += plan->lifetimes.items[i].begin_step <= t && t < plan->lifetimes.items[i].end_step;
            assert_int_equal(l.n, n);
            for (size_t i = 0; i < l.n; i++) {
                sum += l.items[i].counts_bytes;
                if (i > 0) assert_true(l.items[i - 1].counts_bytes >= l.items[i].counts_bytes);
                assert_true(l.items[i].item < items->n);
                assert_int_equal(tide_items_id(items, l.items[i].item), l.items[i].id);
                assert_true(tide_items_alive_at(items, l.items[i].item, t));
                const tide_lifetime *lt = &plan->lifetimes.items[l.items[i].id];
                const bool root_lives =
                    lt->alias != TIDE_ALIAS_NONE &&
                    plan->lifetimes.items[tide_lifetimes_root(&plan->lifetimes, (uint32_t)l.items[i].id, NULL)]
                            .end_step > t &&
                    plan->lifetimes.items[tide_lifetimes_root(&plan->lifetimes, (uint32_t)l.items[i].id, NULL)]
                            .begin_step <= t &&
                    plan->lifetimes.items[tide_lifetimes_root(&plan->lifetimes, (uint32_t)l.items[i].id, NULL)]
                            .n_gaps == 0;
                if (root_lives) assert_int_equal(l.items[i].counts_bytes, 0);
            }
            assert_int_equal(sum, curve);
            tide_live_items_deinit(&l);
        }
        tide_subject_destroy(s);
    }
}

/// From change to change every step at which something begins or ends is met, in both directions.
static void changes_are_met(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = random_plan(7, 12, 60);
    bool want[61] = {0};
    for (size_t i = 0; i < plan->lifetimes.n; i++)
        want[plan->lifetimes.items[i].begin_step] = want[plan->lifetimes.items[i].end_step] = true;
    want[60] = false; // behind the axis
    tide_subject *s = subject_of_plan(plan);
    for (int dir = -1; dir <= 1; dir += 2) {
        tide_moment at = {dir > 0 ? -1 : 60, 0}, next;
        for (int64_t t = dir > 0 ? 0 : 59; t >= 0 && t < 60; t += dir) {
            if (!want[t]) continue;
            assert_tide_ok(tide_subject_next_change(s, at, dir, &next, &err), &err);
            assert_int_equal(next.t, t);
            at = next;
        }
        assert_tide_ok(tide_subject_next_change(s, at, dir, &next, &err), &err);
        assert_int_equal(next.t, at.t);
    }
    tide_subject_destroy(s);
}

/// Peaks of 1, 3, 3, 2, 4, 1, 5: at steps 1 (a plateau, once), 4 and 6.
static void peaks_are_met(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    static const uint64_t heights[] = {1, 3, 3, 2, 4, 1, 5};
    tide_lifetimes lt = {.model = tide_host_strdup("peaks"), .n_steps = 7};
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        const tide_lifetime item = {.name = name,
                                    .size_bytes = heights[i] * 64,
                                    .align_bytes = 64,
                                    .begin_step = i,
                                    .end_step = i + 1,
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .device = TIDE_CPU,
                                    .node = TIDE_NO_INDEX,
                                    .port = TIDE_NO_INDEX,
                                    .value = TIDE_NO_INDEX};
        assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    }
    const tide_strategy *strategy = NULL;
    tide_memory_plan *plan = NULL;
    assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err);
    tide_lifetimes_deinit(&lt);
    tide_subject *s = subject_of_plan(plan);
    static const int64_t rising[] = {1, 4, 6}, falling[] = {6, 4, 1};
    tide_moment at = {-1, 0};
    for (int i = 0; i < 3; i++) {
        assert_tide_ok(tide_subject_next_peak(s, live_bytes, at.t, 1, 0, 7, 7, &at, &err), &err);
        assert_int_equal(at.t, rising[i]);
    }
    assert_tide_status(tide_subject_next_peak(s, live_bytes, at.t, 1, 0, 7, 7, &at, &err), TIDE_ERR_NOT_FOUND);
    at.t = 7;
    for (int i = 0; i < 3; i++) {
        assert_tide_ok(tide_subject_next_peak(s, live_bytes, at.t, -1, 0, 7, 7, &at, &err), &err);
        assert_int_equal(at.t, falling[i]);
    }
    // A window that ends on the way up has no peak at its edge.
    assert_tide_status(tide_subject_next_peak(s, live_bytes, 2, 1, 2, 4, 2, &at, &err), TIDE_ERR_NOT_FOUND);
    tide_subject_destroy(s);
}

static void without_names_or_tensors(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = tide_host_calloc(1, sizeof *plan);
    char name[] = "late";
    const tide_lifetime item = {.name = name, .size_bytes = 10, .align_bytes = 16, .begin_step = 5, .end_step = 7};
    tide_subject *s = subject_of_plan(plan);
    assert_string_equal(tide_subject_get_facts(s)->title, "plan");
    assert_int_equal(tide_subject_get_facts(s)->peak_bytes, 0);
    assert_int_equal(tide_subject_get_facts(s)->n_steps, 0);
    assert_int_equal(load_items(s)->n, 0);
    tide_subject_destroy(s);
    plan = tide_host_calloc(1, sizeof *plan);
    assert_tide_ok(tide_lifetimes_add(&plan->lifetimes, &item, &err), &err);
    plan->lifetimes.n_steps = 9;
    plan->offsets = tide_host_calloc(1, sizeof *plan->offsets);
    plan->pools = tide_host_calloc(1, sizeof *plan->pools);
    s = subject_of_plan(plan);
    assert_string_equal(tide_items_site(load_items(s), 0)->owner, "");
    static const struct {
        int64_t t;
        uint64_t bytes;
    } want[] = {{INT64_MIN, 0}, {0, 0}, {4, 0}, {5, 16}, {6, 16}, {7, 0}, {INT64_MAX, 0}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        uint64_t bytes;
        assert_tide_ok(tide_subject_bytes_at(s, live_key, (tide_moment){want[i].t, 0}, &bytes, &err), &err);
        assert_int_equal(bytes, want[i].bytes);
    }
    tide_subject_destroy(s);
}

static void another_one_is_alike(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *a = subject_of_plan(random_plan(3, 50, 10)), *b = NULL;
    assert_tide_ok(tide_subject_again(a, &b, &err), &err);
    load_items(b);
    assert_null(tide_subject_items(a));
    tide_subject_take_items(a, b);
    assert_null(tide_subject_items(b));
    const tide_items *items = tide_subject_items(a);
    assert_int_equal(items->n, 50);
    tide_subject_destroy(b);
    assert_true(items->sites[0].name[0] == 't'); // its texts are its own
    bool grew = true;
    assert_tide_ok(tide_subject_refresh(a, &grew, &err), &err);
    assert_false(grew);
    tide_subject_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_the_demo_plan), cmocka_unit_test(curve_is_what_is_occupied),
        cmocka_unit_test(kinds_add_up),           cmocka_unit_test(live_sums_to_the_curve),
        cmocka_unit_test(changes_are_met),        cmocka_unit_test(peaks_are_met),
        cmocka_unit_test(another_one_is_alike),   cmocka_unit_test(without_names_or_tensors),
    };
    return cmocka_run_group_tests_name("subject_plan", tests, NULL, NULL);
}
