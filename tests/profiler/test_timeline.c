// SPDX-License-Identifier: MIT
//
// The timeline: from a plan, from runs, and its columns against brute force.
#include "profiler/timeline.h"

#include "core/memory/allocator.h"
#include "tests/profiler/trace_fixture.h"

static const tide_timeline_item *item_of(const tide_timeline *tl, const char *name) {
    for (size_t i = 0; i < tl->n_items; i++) {
        if (strcmp(tl->items[i].name, name) == 0) return &tl->items[i];
    }
    fail_msg("no item '%s'", name);
    return NULL;
}

/// What must hold of every timeline.
static void check_timeline(const tide_timeline *tl) {
    assert_true(tl->n_points >= 1);
    assert_int_equal(tl->curve[0].t, tl->begin);
    uint64_t peak = 0;
    for (size_t i = 0; i < tl->n_points; i++) {
        if (i > 0) assert_true(tl->curve[i].t >= tl->curve[i - 1].t);
        assert_true(tl->curve[i].t >= tl->begin && tl->curve[i].t <= tl->end);
        if (tl->curve[i].bytes > peak) peak = tl->curve[i].bytes;
        if (tl->curve[i].bytes == tl->peak_bytes) assert_true(tl->curve[i].t >= tl->peak_t);
    }
    assert_int_equal(tl->peak_bytes, peak);
    for (size_t i = 0; i < tl->n_items; i++) {
        const tide_timeline_item *a = &tl->items[i];
        assert_true(a->begin <= a->end && a->begin >= tl->begin && a->end <= tl->end);
        if (i == 0) continue;
        const tide_timeline_item *p = &tl->items[i - 1];
        assert_true(p->begin < a->begin ||
                    (p->begin == a->begin &&
                     (p->size_bytes > a->size_bytes || (p->size_bytes == a->size_bytes && p->id <= a->id))));
    }
}

// ---- from a plan ----

static void test_from_plan(void **state) {
    (void)state;
    tide_memory_plan *plan = demo_plan_make();
    tide_timeline *tl;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_timeline_from_plan(plan, false, &tl, &err), &err);
    tide_memory_plan_destroy(plan); // copied
    check_timeline(tl);
    assert_int_equal(tl->axis, TIDE_AXIS_STEPS);
    assert_int_equal(tl->begin, 0);
    assert_int_equal(tl->end, N_DEMO_STEPS);
    assert_string_equal(tl->title, "demo: plan, by_hand");
    assert_string_equal(tl->mode, "plan");
    assert_int_equal(tl->n_items, 5);
    const char *const order[] = {"a", "conv.scratch", "b", "c", "conv2.scratch"};
    for (size_t i = 0; i < 5; i++) assert_string_equal(tl->items[i].name, order[i]);
    const tide_timeline_item *c = item_of(tl, "c");
    assert_string_equal(c->owner, "conv2");
    assert_int_equal(c->size_bytes, 768);
    assert_int_equal(c->begin, 2);
    assert_int_equal(c->end, 4);
    assert_int_equal(c->offset_bytes, 1536);
    assert_int_equal(c->pool, TIDE_NO_POOL);
    assert_int_equal(c->id, 5);
    assert_true(c->is_planned);
    assert_false(c->open_ended);
    assert_int_equal(item_of(tl, "conv.scratch")->role, TIDE_ROLE_SCRATCH);
    const tide_timeline_point curve[] = {{0, 1792}, {1, 1536}, {2, 2560}, {3, 1792}, {4, 0}};
    assert_int_equal(tl->n_points, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(tl->curve[i].t, curve[i].t);
        assert_int_equal(tl->curve[i].bytes, curve[i].bytes);
    }
    assert_int_equal(tl->peak_bytes, tl->lower_bound_bytes); // the lower bound is the peak of the lifetimes
    assert_int_equal(tl->peak_t, 2);
    assert_int_equal(tl->n_steps, N_DEMO_STEPS);
    assert_string_equal(tl->step_names[3], "add");
    assert_int_equal(tl->step_begin[3], 3);
    assert_true(tl->has_plan);
    assert_int_equal(tl->plan_bytes, DEMO_BYTES);
    assert_int_equal(tl->naive_bytes, DEMO_NAIVE_BYTES);
    assert_int_equal(tl->plan->lifetimes.n, N_DEMO);
    assert_int_equal(tl->n_kinds, 3);
    assert_int_equal(tl->kinds[2].kind, TIDE_KIND_WORKSPACE);
    assert_int_equal(tl->kinds[2].predicted_bytes, DEMO_BYTES);
    assert_true(tl->kinds[2].peak_bytes == TIDE_UNKNOWN_BYTES); // unknown is not 0
    assert_string_equal(tl->kinds[2].device, "cpu");
    tide_timeline_destroy(tl);
    tide_timeline_destroy(NULL);
}

static void test_from_plan_with_persistent_ones(void **state) {
    (void)state;
    tide_memory_plan *plan = demo_plan_make();
    tide_timeline *tl;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_timeline_from_plan(plan, true, &tl, &err), &err);
    tide_memory_plan_destroy(plan);
    check_timeline(tl);
    assert_int_equal(tl->n_items, N_DEMO);
    assert_int_equal(tl->peak_bytes, 2560 + 1024 + 512 + 1024);
    const tide_timeline_item *w = item_of(tl, "w");
    assert_true(w->persistent);
    assert_int_equal(w->role, TIDE_ROLE_WEIGHT);
    assert_true(w->offset_bytes == TIDE_NO_OFFSET);
    assert_string_equal(w->owner, "");
    tide_timeline_destroy(tl);
}

static void test_from_plan_without_names_or_tensors(void **state) {
    (void)state;
    tide_memory_plan *plan = tide_host_calloc(1, sizeof *plan);
    assert_non_null(plan);
    tide_timeline *tl;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_timeline_from_plan(plan, true, &tl, &err), &err);
    check_timeline(tl);
    assert_string_equal(tl->title, "plan");
    assert_int_equal(tl->n_items, 0);
    assert_int_equal(tl->n_points, 1);
    assert_int_equal(tl->n_steps, 0);
    tide_timeline_destroy(tl);
    char name[] = "late";
    const tide_lifetime item = {.name = name, .size_bytes = 10, .align_bytes = 16, .begin_step = 5, .end_step = 7};
    assert_tide_ok(tide_lifetimes_add(&plan->lifetimes, &item, &err), &err);
    plan->offsets = tide_host_calloc(1, sizeof *plan->offsets);
    plan->pools = tide_host_calloc(1, sizeof *plan->pools);
    assert_tide_ok(tide_timeline_from_plan(plan, false, &tl, &err), &err);
    check_timeline(tl);
    assert_string_equal(tl->items[0].owner, "");
    assert_int_equal(tl->n_points, 3); // 0 at 0, 16 at 5, 0 at 7
    assert_int_equal(tide_timeline_at(tl, 4), 0);
    assert_int_equal(tide_timeline_at(tl, 5), 16);
    assert_int_equal(tide_timeline_at(tl, 6), 16);
    assert_int_equal(tide_timeline_at(tl, 7), 0);
    assert_int_equal(tide_timeline_at(tl, INT64_MAX), 0);
    assert_int_equal(tide_timeline_at(tl, INT64_MIN), 0);
    tide_timeline_destroy(tl);
    tide_memory_plan_destroy(plan);
}

// ---- from a trace ----

static tide_timeline *timeline_of(const char *path, int64_t run_id) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    tide_timeline *tl;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    assert_tide_ok(tide_timeline_from_trace(t, run_id, &tl, &err), &err);
    tide_trace_close(t);
    check_timeline(tl);
    return tl;
}

static void test_from_naive_run(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_timeline *tl = timeline_of(d.file, 1);
    assert_int_equal(tl->axis, TIDE_AXIS_NS);
    assert_int_equal(tl->begin, 1000);
    assert_int_equal(tl->end, 1600);
    assert_string_equal(tl->title, "demo: naive");
    assert_int_equal(tl->n_items, 8); // blocks, nothing planned
    const tide_timeline_item *b = item_of(tl, "b");
    assert_false(b->is_planned);
    assert_int_equal(b->begin, 1210);
    assert_int_equal(b->end, 1380);
    assert_string_equal(b->owner, "relu");
    assert_int_equal(b->id, 6);
    assert_true(b->offset_bytes == TIDE_NO_OFFSET);
    assert_int_equal(item_of(tl, "w")->role, TIDE_ROLE_WEIGHT); // told by the plan that is stored with the run
    assert_true(item_of(tl, "w")->persistent);
    assert_int_equal(item_of(tl, "conv.scratch")->role, TIDE_ROLE_SCRATCH);
    assert_int_equal(tl->peak_bytes, 5120);
    assert_int_equal(tl->peak_t, 1320);
    assert_int_equal(tl->n_points, 1 + 16);
    assert_int_equal(tide_timeline_at(tl, 1009), 0);
    assert_int_equal(tide_timeline_at(tl, 1010), 1024);
    assert_int_equal(tide_timeline_at(tl, 1600), 0);
    assert_int_equal(tl->n_steps, N_DEMO_STEPS);
    assert_int_equal(tl->step_begin[2], 1300);
    assert_true(tl->has_plan);
    assert_int_equal(tl->n_kinds, 3);
    assert_int_equal(tl->kinds[2].peak_bytes, 2560);
    assert_int_equal(tl->kinds[2].predicted_bytes, 2560);
    tide_timeline_destroy(tl);
    tmp_dir_remove(&d);
}

/// The buffer gives way to the tensors inside it, at the times of the first execution; the curve keeps it.
static void test_from_planned_run(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_timeline *tl = timeline_of(d.file, 0); // the last run
    assert_string_equal(tl->title, "demo: planned, by_hand");
    assert_int_equal(tl->begin, 2000);
    assert_int_equal(tl->end, 2900);
    assert_int_equal(tl->n_items, 4 + 5); // x, w, y, kept; a, conv.scratch, b, c, conv2.scratch
    const struct {
        const char *name, *owner;
        int64_t begin, end;
        uint64_t offset;
    } want[] = {
        {"a", "conv", 2100, 2290, 0},     {"conv.scratch", "conv", 2100, 2140, 1024},   {"b", "relu", 2150, 2240, 1024},
        {"c", "conv2", 2200, 2290, 1536}, {"conv2.scratch", "conv2", 2200, 2240, 2304},
    };
    for (size_t i = 0; i < 5; i++) {
        const tide_timeline_item *item = item_of(tl, want[i].name);
        assert_true(item->is_planned);
        assert_int_equal(item->begin, want[i].begin);
        assert_int_equal(item->end, want[i].end);
        assert_int_equal(item->offset_bytes, want[i].offset);
        assert_string_equal(item->owner, want[i].owner);
        assert_int_equal(item->kind, TIDE_KIND_WORKSPACE);
    }
    for (size_t i = 0; i < tl->n_items; i++) assert_string_not_equal(tl->items[i].name, "plan buffer");
    const tide_timeline_item *kept = item_of(tl, "kept");
    assert_true(kept->open_ended);
    assert_int_equal(kept->end, 2900);
    assert_int_equal(kept->reserved_bytes, 64);
    assert_int_equal(tl->peak_bytes, 5160); // with the buffer
    assert_int_equal(tl->peak_t, 2660);
    tide_timeline_destroy(tl);
    tmp_dir_remove(&d);
}

/// A run that stops in its first step: only tensors whose steps ran are drawn.
static void test_from_run_that_stopped(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_memory_plan *plan = demo_plan_make();
    const tide_run_info info = {.model = "demo", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    feed(&f, 5, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 100, "before");
    feed_begin_run(&f, 10, &info, plan);
    tide_memory_plan_destroy(plan);
    feed(&f, 20, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed(&f, 21, TIDE_MEM_ALLOC, 3, TIDE_KIND_WORKSPACE, DEMO_BYTES, "buffer of another context");
    const tide_scope op = {.name = "conv", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
    feed_scope(&f, 30, true, &op);
    feed_end_run(&f, 40);
    feeder_close(&f);
    tide_timeline *tl = timeline_of(d.file, 1);
    assert_int_equal(tl->n_items, 4); // before, the other buffer, a, conv.scratch
    assert_int_equal(item_of(tl, "before")->begin, 10);
    assert_int_equal(item_of(tl, "a")->begin, 30);
    assert_int_equal(item_of(tl, "a")->end, 40);
    assert_int_equal(item_of(tl, "buffer of another context")->begin, 21);
    assert_int_equal(tl->curve[0].bytes, 100); // alive before the run began
    assert_int_equal(tl->peak_bytes, 100 + 2 * DEMO_BYTES);
    tide_timeline_destroy(tl);
    tmp_dir_remove(&d);
}

/// Things that take no time: points and items without width are kept, and the spike is the peak.
static void test_events_of_one_moment(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 50, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 10, "long");
    feed(&f, 50, TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 1000, "spike");
    feed_free(&f, 50, 2, TIDE_KIND_DEFAULT, 1000, "spike");
    feed_free(&f, 60, 1, TIDE_KIND_DEFAULT, 10, "long");
    feeder_close(&f);
    tide_timeline *tl = timeline_of(d.file, 0); // no runs: the whole trace
    assert_string_equal(tl->title, "");
    assert_int_equal(tl->begin, 50);
    assert_int_equal(tl->end, 60);
    assert_int_equal(tl->peak_bytes, 1010);
    assert_int_equal(tl->peak_t, 50);
    assert_int_equal(tide_timeline_at(tl, 50), 10);
    assert_int_equal(item_of(tl, "spike")->end, 50);
    uint64_t low[5], high[5];
    tide_timeline_columns(tl, 50, 60, 5, low, high);
    assert_int_equal(high[0], 1010);
    assert_int_equal(high[1], 10);
    tide_timeline_destroy(tl);
    tmp_dir_remove(&d);
}

static void test_run_that_is_not_there(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feeder_close(&f);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    tide_timeline *tl;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    assert_tide_status(tide_timeline_from_trace(t, 5, &tl, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_ok(tide_timeline_from_trace(t, 0, &tl, &err), &err); // a trace of nothing
    check_timeline(tl);
    assert_int_equal(tl->end, tl->begin + 1);
    tide_timeline_destroy(tl);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

// ---- columns ----

static uint64_t brute_at(const tide_timeline *tl, int64_t t) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < tl->n_points && tl->curve[i].t <= t; i++) bytes = tl->curve[i].bytes;
    return bytes;
}

/// Every unit of the axis looked at by itself, and every point.
static void brute_column(const tide_timeline *tl, int64_t lo, int64_t hi, uint64_t *low, uint64_t *high) {
    *low = UINT64_MAX;
    *high = 0;
    for (int64_t t = lo; t < hi; t++) {
        const uint64_t v = brute_at(tl, t);
        if (v < *low) *low = v;
        if (v > *high) *high = v;
    }
    for (size_t i = 0; i < tl->n_points; i++) {
        if (tl->curve[i].t < lo || tl->curve[i].t >= hi) continue;
        if (tl->curve[i].bytes < *low) *low = tl->curve[i].bytes;
        if (tl->curve[i].bytes > *high) *high = tl->curve[i].bytes;
    }
}

static void test_columns_against_brute_force(void **state) {
    (void)state;
    tide_timeline_point points[60];
    tide_timeline tl = {.axis = TIDE_AXIS_NS, .curve = points};
    uint64_t low[150], high[150];
    tide_rng rng = {7};
    for (int round = 0; round < 400; round++) {
        tl.n_points = (size_t)tide_rng_below(&rng, 60);
        int64_t t = (int64_t)tide_rng_below(&rng, 40) - 20;
        for (size_t i = 0; i < tl.n_points; i++) {
            points[i] = (tide_timeline_point){t, tide_rng_below(&rng, 1000)};
            t += (int64_t)tide_rng_below(&rng, 4); // often the same moment again
        }
        const int64_t begin = (int64_t)tide_rng_below(&rng, 60) - 30;
        const int64_t end = begin + (int64_t)tide_rng_below(&rng, 120);
        const size_t n = 1 + (size_t)tide_rng_below(&rng, 150);
        tide_timeline_columns(&tl, begin, end, n, low, high);
        for (size_t i = 0; i < n; i++) {
            const int64_t lo = begin + (end - begin) * (int64_t)i / (int64_t)n;
            int64_t hi = begin + (end - begin) * ((int64_t)i + 1) / (int64_t)n;
            if (hi <= lo) hi = lo + 1;
            uint64_t want_low, want_high;
            brute_column(&tl, lo, hi, &want_low, &want_high);
            if (low[i] != want_low || high[i] != want_high)
                fail_msg("round %d, column %zu of %zu over [%lld, %lld): got %llu … %llu, want %llu … %llu", round, i,
                         n, (long long)begin, (long long)end, (unsigned long long)low[i], (unsigned long long)high[i],
                         (unsigned long long)want_low, (unsigned long long)want_high);
        }
        for (int64_t at = begin - 2; at < end + 2; at++) assert_int_equal(tide_timeline_at(&tl, at), brute_at(&tl, at));
    }
}

/// The widest axis there is: no overflow, and the ends meet.
static void test_columns_of_the_widest_axis(void **state) {
    (void)state;
    tide_timeline_point points[] = {{INT64_MIN, 1}, {0, 2}, {INT64_MAX - 1, 3}};
    const tide_timeline tl = {.curve = points, .n_points = 3};
    uint64_t low[3], high[3];
    tide_timeline_columns(&tl, INT64_MIN, INT64_MAX, 3, low, high);
    assert_int_equal(low[0], 1);
    assert_int_equal(high[0], 1);
    assert_int_equal(low[1], 1);
    assert_int_equal(high[1], 2);
    assert_int_equal(low[2], 2);
    assert_int_equal(high[2], 3);
    tide_timeline_columns(&tl, INT64_MAX, INT64_MAX, 1, low, high); // an axis without length
    assert_int_equal(low[0], 3);
}

/// Every allocation fails once.
static void test_out_of_memory_everywhere(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_memory_plan *plan = demo_plan_make();
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    bool done = false;
    int64_t after = 0;
    for (; !done && after < 1000; after++) {
        tide_timeline *a = NULL, *b = NULL;
        tide_host_fail_after(after);
        tide_status st = tide_timeline_from_plan(plan, true, &a, &err);
        if (st == TIDE_OK) st = tide_timeline_from_trace(t, 2, &b, &err);
        tide_host_fail_after(-1);
        done = st == TIDE_OK;
        if (!done) assert_tide_status(st, TIDE_ERR_NOMEM);
        tide_timeline_destroy(a);
        tide_timeline_destroy(b);
    }
    assert_true(done);
    assert_true(after > 100);
    tide_trace_close(t);
    tide_memory_plan_destroy(plan);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_from_plan),
        tide_unit_test(test_from_plan_with_persistent_ones),
        tide_unit_test(test_from_plan_without_names_or_tensors),
        tide_unit_test(test_from_naive_run),
        tide_unit_test(test_from_planned_run),
        tide_unit_test(test_from_run_that_stopped),
        tide_unit_test(test_events_of_one_moment),
        tide_unit_test(test_run_that_is_not_there),
        tide_unit_test(test_columns_against_brute_force),
        tide_unit_test(test_columns_of_the_widest_axis),
        tide_unit_test(test_out_of_memory_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
