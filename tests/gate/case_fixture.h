// SPDX-License-Identifier: MIT
//
// What the tests of measuring, baseline, judge and causes share: cases by hand, by chance and of plans.
#ifndef TIDE_TESTS_GATE_CASE_FIXTURE_H
#define TIDE_TESTS_GATE_CASE_FIXTURE_H

#include <unistd.h>

#include "core/base/output.h"
#include "gate/judge.h"
#include "planner/passes.h"
#include "tests/planner/lifetimes_test.h"
#include "tests/planner/program_case.h"

static inline void give_text(char **where, const char *text) {
    tide_host_free(*where);
    *where = tide_host_strdup(text);
    assert_non_null(*where);
}

static inline tide_gate_case a_case(const char *key) {
    tide_gate_case c = {0};
    give_text(&c.key, key);
    give_text(&c.model, "model");
    give_text(&c.signature, "x float32 -> y float32");
    give_text(&c.inputs, "x 1x4");
    give_text(&c.peak_step, "");
    return c;
}

static inline void set(tide_gate_case *c, const char *key, const char *value) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_gate_case_set(c, key, value, &err), &err);
}

static inline void put_step(tide_gate_case *c, const char *name, const char *op) {
    c->steps = tide_host_realloc(c->steps, (c->n_steps + 1) * sizeof *c->steps);
    assert_non_null(c->steps);
    c->steps[c->n_steps] = (tide_gate_step){0};
    give_text(&c->steps[c->n_steps].name, name);
    give_text(&c->steps[c->n_steps++].op, op);
}

/// Names must come in order. `at_peak` counts into what is held. The tensor is there until the next one is put.
static inline tide_gate_tensor *put_tensor(tide_gate_case *c, const char *name, const char *owner, uint64_t bytes,
                                           uint64_t at_peak) {
    c->tensors = tide_host_realloc(c->tensors, (c->n_tensors + 1) * sizeof *c->tensors);
    assert_non_null(c->tensors);
    tide_gate_tensor *t = &c->tensors[c->n_tensors++];
    *t = (tide_gate_tensor){.kind = TIDE_KIND_WORKSPACE, .bytes = bytes, .at_peak_bytes = at_peak};
    give_text(&t->name, name);
    give_text(&t->owner, owner);
    give_text(&t->inside, "");
    give_text(&t->alias, "");
    c->held_bytes += at_peak;
    return t;
}

static inline void put_holes(tide_gate_case *c, uint64_t bytes) {
    c->holes_bytes += bytes;
    c->held_bytes += bytes;
}

static inline void know(tide_gate_case *c, tide_gate_metric m, uint64_t u) {
    c->metrics[m] = (tide_gate_value){.known = true, .u = u};
}

static inline void know_share(tide_gate_case *c, tide_gate_metric m, double real) {
    c->metrics[m] = (tide_gate_value){.known = true, .real = real};
}

static inline void know_kind(tide_gate_case *c, tide_gate_metric m, tide_memory_kind kind, uint64_t u) {
    c->kinds[m][kind] = (tide_gate_value){.known = true, .u = u};
}

/// What a plan tells when that many bytes are held.
static inline void finish_case(tide_gate_case *c) {
    know(c, TIDE_GATE_PLANNED, c->held_bytes);
    know(c, TIDE_GATE_TOTAL, c->held_bytes);
}

static inline void add_case(tide_gate_cases *cases, tide_gate_case c) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_gate_cases_add(cases, &c, &err), &err);
    assert_null(c.key);
}

/// A case that holds `bytes` in one tensor.
static inline tide_gate_case simple(const char *key, uint64_t bytes) {
    tide_gate_case c = a_case(key);
    put_step(&c, "relu", "Relu");
    put_tensor(&c, "a", "relu", bytes, bytes);
    finish_case(&c);
    return c;
}

static inline tide_gate_case case_of(const tide_memory_plan *plan, const char *key) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_case c = {0};
    give_text(&c.key, key);
    assert_tide_ok(tide_gate_case_of_plan(plan, NULL, &c, &err), &err);
    return c;
}

/// Sums of a case are what they must be.
static inline void assert_adds_up(const tide_gate_case *c) {
    uint64_t sum = c->holes_bytes;
    for (size_t i = 0; i < c->n_tensors; i++) sum += c->tensors[i].at_peak_bytes;
    assert_int_equal(sum, c->held_bytes);
}

/// A case by chance out of few names, so that two of them have much in common.
static inline tide_gate_case random_case(tide_rng *rng) {
    static const char *const aliases[] = {"in-place", "view", "part"};
    tide_gate_case c = a_case("case");
    char name[32], owner[32];
    const char *const strategies[] = {"search", "greedy_by_size"};
    set(&c, "strategy", strategies[tide_rng_below(rng, 2)]);
    if (tide_rng_below(rng, 2) == 0) set(&c, "align", "64");
    for (size_t i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "op%d", (int)tide_rng_below(rng, 9));
        if (tide_rng_below(rng, 3) > 0) put_step(&c, name, tide_rng_below(rng, 2) == 0 ? "Relu" : "Conv");
    }
    for (size_t i = 0; i < 26; i++) {
        if (tide_rng_below(rng, 4) == 0) continue;
        snprintf(name, sizeof name, "t%02zu", i / 2 * 2); // some are there twice
        snprintf(owner, sizeof owner, "op%d", (int)(i / 2 % 9));
        const uint64_t bytes = 64 * tide_rng_below(rng, 9);
        const bool at_peak = tide_rng_below(rng, 2) == 0;
        tide_gate_tensor *t =
            put_tensor(&c, name, tide_rng_below(rng, 9) == 0 ? "" : owner, bytes, at_peak ? bytes : 0);
        t->kind = (tide_memory_kind)tide_rng_below(rng, 3);
        t->persistent = tide_rng_below(rng, 6) == 0;
        t->leaked_bytes = tide_rng_below(rng, 8) == 0 ? bytes : 0;
        t->warm_allocations = tide_rng_below(rng, 8) == 0 ? 2 : 0;
        if (tide_rng_below(rng, 5) > 0) continue;
        give_text(&t->inside, "t00");
        give_text(&t->alias, aliases[tide_rng_below(rng, 3)]);
    }
    put_holes(&c, tide_rng_below(rng, 200));
    give_text(&c.peak_step, tide_rng_below(rng, 2) == 0 ? "op1" : "op2");
    finish_case(&c);
    if (tide_rng_below(rng, 2) == 0) know(&c, TIDE_GATE_LEAKED, tide_rng_below(rng, 3));
    if (tide_rng_below(rng, 2) == 0) know(&c, TIDE_GATE_WARM, tide_rng_below(rng, 3));
    return c;
}

/// The causes of a change as lines "kind: sentence"; owned.
static inline char *causes_text(const tide_gate_case *a, const tide_gate_case *b) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_result r = {.n = 1};
    r.cases = tide_host_calloc(1, sizeof *r.cases);
    assert_tide_ok(tide_gate_causes(a, b, r.cases, &err), &err);
    tide_text t = {0};
    for (size_t i = 0; i < r.cases->n_causes; i++)
        tide_text_addf(&t, "%s: %s\n", tide_gate_cause_name(r.cases->causes[i].kind), r.cases->causes[i].text);
    char *text = tide_host_strdup(tide_text_str(&t));
    tide_text_deinit(&t);
    tide_gate_result_deinit(&r);
    return text;
}

static inline void assert_causes(const tide_gate_case *a, const tide_gate_case *b, const char *want) {
    char *got = causes_text(a, b);
    if (strcmp(got, want) != 0) fail_msg("--- causes\n%s--- wanted\n%s", got, want);
    tide_host_free(got);
}

/// A folder of this test's own, and a file in it.
static inline const char *temp_file(const char *name, char *buf, size_t buf_bytes) {
    static char dir[64];
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "/tmp/tide_gate_XXXXXX");
        assert_non_null(mkdtemp(dir));
    }
    snprintf(buf, buf_bytes, "%s%s%s", dir, name[0] != '\0' ? "/" : "", name);
    return buf;
}

static inline const char *write_temp(const char *name, const char *text, char *buf, size_t buf_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    temp_file(name, buf, buf_bytes);
    assert_tide_ok(tide_write_file(buf, text, strlen(text), &err), &err);
    return buf;
}

#endif
