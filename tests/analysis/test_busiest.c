// SPDX-License-Identifier: MIT
//
// The peak as a moment: of a planned run that at which most of its buffer is used, found here by walking all moments of
// the plan's own curve.
#include "tests/analysis/subject_fixture.h"

static uint64_t bytes_at(tide_subject *s, tide_curve_of of, int64_t t) {
    uint64_t bytes;
    tide_error err = TIDE_ERROR_INIT;
    const tide_curve_key key = {.of = of, .kind = -1};
    assert_tide_ok(tide_subject_bytes_at(s, key, (tide_moment){t, 0}, &bytes, &err), &err);
    return bytes;
}

/// A run that takes its buffer at 1040 and executes its steps from 1100 to 1290.
static void record_planned(const char *path) {
    feeder f;
    feeder_open(&f, path, 64, false);
    tide_memory_plan *plan = demo_plan_make();
    const tide_run_info info = {
        .model = "demo", .source = "demo.json", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    assert_int_equal(feed_begin_run(&f, 1000, &info, plan), 1);
    feed(&f, 1010, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 1024, "x");
    feed(&f, 1040, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    const tide_scope run = {.name = "demo", .kind = TIDE_SCOPE_RUN, .index = 0};
    feed_scope(&f, 1090, true, &run);
    for (int i = 0; i < N_DEMO_STEPS; i++) {
        const tide_scope op = {.name = demo_steps[i], .kind = TIDE_SCOPE_OPERATOR, .index = i, .parent = &run};
        feed_scope(&f, 1100 + 50 * (uint64_t)i, true, &op);
        feed_scope(&f, 1140 + 50 * (uint64_t)i, false, &op);
    }
    feed_scope(&f, 1295, false, &run);
    feed_free(&f, 1400, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed_free(&f, 1410, 1, TIDE_KIND_DEFAULT, 1024, "x");
    feed_end_run(&f, 1500);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
}

static void of_a_planned_run_most_of_the_buffer_is_used(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    record_planned(dir.file);
    tide_subject *s = subject_of_trace(dir.file, 1);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    const tide_moment at = tide_subject_get_facts(s)->peak;
    uint64_t most = 0;
    for (int64_t t = f->begin; t < f->end; t++) {
        const uint64_t bytes = bytes_at(s, TIDE_CURVE_PREDICTED, t);
        if (bytes > most) most = bytes;
    }
    assert_int_equal(bytes_at(s, TIDE_CURVE_PREDICTED, at.t), most);
    assert_int_equal(bytes_at(s, TIDE_CURVE_LIVE, at.t), f->peak_bytes); // and it is a peak
    assert_in_range(at.t, 1100, 1290);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

/// What is taken later, beside the buffer, makes another moment higher: that one is the peak.
static void a_higher_moment_comes_first(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    demo_record(dir.file, 64);
    tide_subject *s = subject_of_trace(dir.file, 2);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    const tide_moment at = tide_subject_get_facts(s)->peak;
    assert_int_equal(at.t, 2660);
    assert_true(at.event > 0);
    assert_int_equal(bytes_at(s, TIDE_CURVE_LIVE, at.t), f->peak_bytes);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(of_a_planned_run_most_of_the_buffer_is_used),
        tide_unit_test(a_higher_moment_comes_first),
    };
    return cmocka_run_group_tests_name("busiest", tests, NULL, NULL);
}
