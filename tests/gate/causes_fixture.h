// SPDX-License-Identifier: MIT
//
// What the tests of causes share: two cases that are alike, to be changed in one thing.
#ifndef TIDE_TESTS_GATE_CAUSES_FIXTURE_H
#define TIDE_TESTS_GATE_CAUSES_FIXTURE_H

#include "tests/gate/case_fixture.h"

typedef struct pair {
    tide_gate_case a, b;
} pair;

/// Two cases that are alike: conv1 -> relu1 -> conv2 -> add, with 4 tensors.
static inline tide_gate_case chain(void) {
    tide_gate_case c = a_case("chain");
    set(&c, "strategy", "search");
    set(&c, "passes", "views slices in-place parts order");
    put_step(&c, "conv1", "Conv");
    put_step(&c, "relu1", "Relu");
    put_step(&c, "conv2", "Conv");
    put_step(&c, "add", "Add");
    put_tensor(&c, "a", "conv1", 1024, 1024);
    put_tensor(&c, "b", "relu1", 2048, 2048);
    put_tensor(&c, "c", "conv2", 4096, 4096);
    put_tensor(&c, "d", "add", 512, 0);
    give_text(&c.peak_step, "conv2");
    return c;
}

static inline pair alike(void) { return (pair){chain(), chain()}; }

static inline tide_gate_tensor *tensor(tide_gate_case *c, const char *name) {
    for (size_t i = 0; i < c->n_tensors; i++)
        if (strcmp(c->tensors[i].name, name) == 0) return &c->tensors[i];
    fail_msg("no tensor '%s'", name);
    return NULL;
}

/// Its size, and its part of the peak.
static inline void resize(tide_gate_case *c, const char *name, uint64_t bytes, uint64_t at_peak) {
    tide_gate_tensor *t = tensor(c, name);
    c->held_bytes += at_peak - t->at_peak_bytes;
    t->bytes = bytes;
    t->at_peak_bytes = at_peak;
}

static inline void end(pair *p, const char *want) {
    finish_case(&p->a);
    finish_case(&p->b);
    assert_causes(&p->a, &p->b, want);
    tide_gate_case_deinit(&p->a);
    tide_gate_case_deinit(&p->b);
}

static inline void swap_steps(tide_gate_case *c, size_t i, size_t k) {
    const tide_gate_step s = c->steps[i];
    c->steps[i] = c->steps[k];
    c->steps[k] = s;
}

#endif
