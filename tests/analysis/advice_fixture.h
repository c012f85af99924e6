// SPDX-License-Identifier: MIT
//
// What the tests of advice share: asking, holding each entry against what comes out when it is done, and a small
// program in which something waits.
#ifndef TIDE_TESTS_ADVICE_FIXTURE_H
#define TIDE_TESTS_ADVICE_FIXTURE_H

#include "analysis/whatif.h"
#include "tests/planner/lifetimes_test.h"
#include "tests/planner/program_case.h"

enum { MAX_ADVICE = 64 };

static inline size_t advise(const tide_whatif *w, tide_edit_advice *out) {
    tide_error err = TIDE_ERROR_INIT;
    size_t n = 99;
    assert_tide_ok(tide_whatif_advise(w, out, MAX_ADVICE, &n, &err), &err);
    return n;
}

static inline const tide_edit_advice *entry(const tide_edit_advice *list, size_t n, const char *text) {
    for (size_t k = 0; k < n; k++) {
        tide_text t = {0};
        tide_edit_print(&list[k].edit, &t);
        const bool found = strcmp(tide_text_str(&t), text) == 0;
        tide_text_deinit(&t);
        if (found) return &list[k];
    }
    return NULL;
}

static inline void assert_entry(const tide_edit_advice *list, size_t n, const char *text, uint64_t bytes) {
    const tide_edit_advice *a = entry(list, n, text);
    if (a == NULL) fail_msg("no '%s' among %zu", text, n);
    assert_int_equal(a->bytes, bytes);
    assert_true(a->bound_bytes <= a->bytes);
}

/// Each one, done: as many bytes. And the order is the best first.
static inline void assert_reproducible(const tide_whatif *w, const tide_edit_advice *list, size_t n,
                                       uint64_t now_bytes) {
    tide_edit edits[8];
    assert_true(w->n < 8);
    for (size_t k = 0; k < w->n; k++) edits[k] = w->edits[k];
    for (size_t k = 0; k < n; k++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_memory_plan *plan;
        edits[w->n] = list[k].edit;
        tide_whatif with = *w;
        with.edits = edits;
        with.n = w->n + 1;
        assert_tide_ok(tide_whatif_make(&with, &plan, &err), &err);
        assert_int_equal(plan->bytes, list[k].bytes);
        assert_int_equal(plan->lower_bound_bytes, list[k].bound_bytes);
        tide_memory_plan_destroy(plan);
        assert_true(list[k].bytes < now_bytes);
        if (k > 0) assert_true(list[k - 1].bytes <= list[k].bytes);
    }
}

enum { KIB = 1024, MEAN = 256 };

/// `a` (16 KiB) is read before and behind a wide middle (48 KiB, made of x alone):
///
///     x -> top -> a -> mean1 -> m1
///     x -> wide -> w, + m1 -> v -> mean2      while a waits
///     a + m2 -> y
static inline tide_program *skip_program_of(uint64_t batch) {
    char shape[32];
    snprintf(shape, sizeof shape, "%dx4096", (int)batch);
    tide_graph *g = case_graph("skip", "x", shape);
    case_node(g, "Tanh", "top", "a", "x", NULL, NULL);
    case_node(g, "ReduceMean", "mean1", "m1", "a", NULL, NULL);
    case_node(g, "Concat", "wide", "w", "x", "x", "x");
    case_node(g, "Add", "middle", "v", "w", "m1", NULL);
    case_node(g, "ReduceMean", "mean2", "m2", "v", NULL, NULL);
    case_node(g, "Add", "join", "y", "a", "m2", NULL);
    case_output(g, "y");
    return case_build(g, NULL, 0);
}

#endif
