// SPDX-License-Identifier: MIT
//
// What the tests of whatif share: a small table, its plan, and that plan with edits.
#ifndef TIDE_TESTS_WHATIF_FIXTURE_H
#define TIDE_TESTS_WHATIF_FIXTURE_H

#include "analysis/whatif.h"
#include "tests/planner/lifetimes_test.h"

/// At step 2 it is highest: b, c and d.
///
///     step      0    1    2    3    4
///     a   100   ##########
///     b    60        ##########
///     c    60             ##########
///     d    40   ########################
///     w    30   persistent
///     sum      140  200  160  100   40
static inline void put_small(tide_lifetimes *lt) {
    put(lt, "a", 100, 0, 2);
    put(lt, "b", 60, 1, 3);
    put(lt, "c", 60, 2, 4);
    put(lt, "d", 40, 0, 5);
    put_persistent(lt, "w", 30, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, 5);
}

typedef struct fixture {
    tide_lifetimes lt;
    tide_memory_plan *plan;
} fixture;

static inline fixture small(void) {
    fixture f = {0};
    put_small(&f.lt);
    f.plan = make_plan(&f.lt, "greedy_by_size");
    return f;
}

static inline void end(fixture *f) {
    tide_memory_plan_destroy(f->plan);
    tide_lifetimes_deinit(&f->lt);
}

/// The plan with the edits of `text`, separated by "; ".
static inline tide_status edited(const tide_memory_plan *plan, const char *text, tide_memory_plan **out,
                                 tide_error *err) {
    tide_edit edits[8];
    size_t n = 0;
    for (const char *at = text; at != NULL && *at != '\0'; n++) {
        char one[300];
        const char *next = strstr(at, "; ");
        snprintf(one, sizeof one, "%.*s", (int)(next != NULL ? next - at : (long)strlen(at)), at);
        assert_tide_ok(tide_edit_parse(one, &edits[n], err), err);
        at = next != NULL ? next + 2 : NULL;
    }
    const tide_whatif w = {.plan = plan, .edits = edits, .n = n};
    return tide_whatif_make(&w, out, err);
}

/// The same as a fresh plan of `want`, which goes.
static inline void assert_edits(const tide_memory_plan *plan, const char *text, tide_lifetimes *want, uint64_t bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *got;
    assert_tide_ok(edited(plan, text, &got, &err), &err);
    tide_memory_plan *fresh = make_plan(want, got->strategy);
    assert_same_lifetimes(want, &got->lifetimes);
    assert_int_equal(got->bytes, fresh->bytes);
    assert_int_equal(got->bytes, bytes);
    assert_true(got->verified);
    for (size_t i = 0; i < want->n; i++) assert_int_equal(got->offsets[i], fresh->offsets[i]);
    tide_memory_plan_destroy(got);
    tide_memory_plan_destroy(fresh);
    tide_lifetimes_deinit(want);
}

static inline void assert_refused(const tide_memory_plan *plan, const char *text, tide_status status, const char *why,
                                  const char *hint) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *got = NULL;
    assert_tide_status(edited(plan, text, &got, &err), status);
    assert_text_has(err.msg, why);
    assert_text_has(err.hint, hint);
    assert_null(got);
}

#endif
