// SPDX-License-Identifier: MIT
//
// All planning is over before the first run (S23-1): the planner is not entered while running, and the plan that the
// contexts follow stays as it was, byte for byte.
#include "planner/passes.h"
#include "planner/plan_json.h"
#include "rt_util.h"

enum { N_RUNS = 1000 };

static tide_memory_plan *plan_with_passes(tide_program *p) {
    const tide_pass_options opt = {.align_bytes = TIDE_DEFAULT_ALIGN};
    tide_lifetimes lt;
    tide_memory_plan *m = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_passes_run(p, &opt, &lt, NULL, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, tide_strategy_default(), NULL, &m, &err), &err);
    tide_lifetimes_deinit(&lt);
    return m;
}

/// All there is in the plan, as text; tide_text_deinit.
static tide_text text_of(const tide_memory_plan *m) {
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_to_json(&m, 1, NULL, &out, &err), &err);
    return out;
}

static void run_graph(tide_graph *g) {
    rt_rig rig;
    rt_rig_open(&rig);
    tide_program *p = rt_build(g);
    const uint64_t entries_before = tide_planner_entries();
    tide_memory_plan *m = plan_with_passes(p);
    const uint64_t entries = tide_planner_entries();
    assert_true(entries >= entries_before + 2); // the counter counts: liveness and a plan at least
    tide_inference_plan *ip = rt_inference(&rig, p, m);
    const uint64_t hash = tide_inference_plan_hash(ip);
    tide_text before = text_of(tide_inference_plan_memory(ip));
    for (int mode = TIDE_RUN_NAIVE; mode <= TIDE_RUN_PLANNED; mode++) {
        tide_context *c = rt_context(ip, (tide_run_mode)mode, TIDE_FILL_ZERO);
        rt_feed(c, p, &rig, 1);
        for (int i = 0; i < N_RUNS; i++) rt_run(c);
        tide_context_destroy(c);
    }
    assert_int_equal(tide_planner_entries(), entries);
    assert_true(tide_inference_plan_hash(ip) == hash);
    tide_text after = text_of(tide_inference_plan_memory(ip));
    assert_string_equal(after.data, before.data);
    tide_text_deinit(&before);
    tide_text_deinit(&after);
    tide_inference_plan_unref(ip);
    tide_memory_plan_destroy(m);
    tide_program_unref(p);
    rt_rig_close(&rig);
}

static void a_thousand_runs_do_no_planning_S23_1(void **state) {
    (void)state;
    tide_graph *g;
    for (size_t i = 0; (g = rt_graph_nth(i)) != NULL; i++) run_graph(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(a_thousand_runs_do_no_planning_S23_1)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
