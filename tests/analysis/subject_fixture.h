// SPDX-License-Identifier: MIT
//
// What the tests of subjects share: random plans with aliases, gaps and several devices, and the demo trace.
#ifndef TIDE_TESTS_SUBJECT_FIXTURE_H
#define TIDE_TESTS_SUBJECT_FIXTURE_H

#include "analysis/subject.h"
#include "planner/planner.h"
#include "tests/profiler/trace_fixture.h"

static inline tide_subject *subject_of_plan(tide_memory_plan *plan) {
    tide_subject *s = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_subject_of_plan(plan, NULL, &s, &err), &err);
    return s;
}

static inline tide_subject *subject_of_trace(const char *path, int64_t run_id) {
    tide_subject *s = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_subject_of_trace(path, run_id, &s, &err), &err);
    return s;
}

static inline const tide_items *load_items(tide_subject *s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_subject_load(s, NULL, &err), &err);
    return tide_subject_items(s);
}

/// `n` tensors over `n_steps` steps: a tenth persistent, some with a gap, a fifth inside another one.
static inline tide_memory_plan *random_plan(uint64_t seed, size_t n, int64_t n_steps) {
    tide_rng rng = {seed};
    tide_lifetimes lt = {.model = tide_host_strdup("random"), .n_steps = n_steps};
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%zu", i);
        const bool persistent = tide_rng_below(&rng, 10) == 0;
        const int64_t begin = persistent ? 0 : (int64_t)tide_rng_below(&rng, (uint64_t)n_steps);
        const int64_t len = 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(n_steps - begin < 9 ? n_steps - begin : 9));
        tide_gap gap = {.begin_step = begin + 1, .end_step = begin + len - 1, .lo_bytes = 0, .hi_bytes = 32};
        tide_lifetime item = {.name = name,
                              .size_bytes = 64 * (1 + tide_rng_below(&rng, 80)) - 3,
                              .align_bytes = 64,
                              .begin_step = begin,
                              .end_step = persistent ? n_steps : begin + len,
                              .kind = persistent ? TIDE_KIND_PERSISTENT : TIDE_KIND_WORKSPACE,
                              .device = TIDE_CPU,
                              .role = persistent
                                          ? TIDE_ROLE_WEIGHT
                                          : (tide_rng_below(&rng, 4) == 0 ? TIDE_ROLE_SCRATCH : TIDE_ROLE_INTERMEDIATE),
                              .persistent = persistent,
                              .node = TIDE_NO_INDEX,
                              .port = TIDE_NO_INDEX,
                              .value = TIDE_NO_INDEX};
        if (!persistent && len > 2 && tide_rng_below(&rng, 6) == 0) {
            item.gaps = &gap;
            item.n_gaps = 1;
        }
        assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    }
    for (uint32_t i = 0; i < n; i++) { // what cannot be an alias is refused and stays as it is
        const uint32_t of = (uint32_t)tide_rng_below(&rng, n);
        const uint64_t room = lt.items[of].size_bytes;
        if (tide_rng_below(&rng, 3) != 0 || lt.items[i].size_bytes > room) continue;
        const uint64_t at = tide_rng_below(&rng, room - lt.items[i].size_bytes + 1);
        const tide_status st = tide_lifetimes_alias(&lt, i, TIDE_ALIAS_GIVEN, of, at, NULL);
        assert_true(st == TIDE_OK || st == TIDE_ERR_INVALID);
    }
    lt.step_names = tide_host_calloc((size_t)n_steps, sizeof *lt.step_names);
    for (int64_t i = 0; i < n_steps; i++) {
        char name[32];
        snprintf(name, sizeof name, "Op_%d", (int)i);
        lt.step_names[i] = tide_host_strdup(name);
    }
    lt.n_step_names = (size_t)n_steps;
    const tide_strategy *strategy = NULL;
    tide_memory_plan *plan = NULL;
    assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err);
    tide_lifetimes_deinit(&lt);
    return plan;
}

#endif
