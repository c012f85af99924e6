// SPDX-License-Identifier: MIT
//
// What the tests of a context's tensors share: a model of two steps, made ready, and its answers worked out by hand.
#ifndef TIDE_TESTS_CONTEXT_TEST_H
#define TIDE_TESTS_CONTEXT_TEST_H

#include <math.h>

#include "core/runtime/runtime_internal.h"
#include "rt_util.h"

typedef struct set {
    rt_rig rig;
    tide_program *p;
    tide_memory_plan *m;
    tide_inference_plan *ip;
    tide_context *c;
} set;

static const tide_run_mode modes[] = {TIDE_RUN_NAIVE, TIDE_RUN_PLANNED};

static inline void open_set_aliased(set *s, tide_graph *g, tide_run_mode mode, unsigned passes) {
    rt_rig_open(&s->rig);
    s->p = rt_build(g);
    s->m = rt_plan_aliased(s->p, "greedy_by_size", passes, NULL);
    s->ip = rt_inference(&s->rig, s->p, s->m);
    s->c = rt_context(s->ip, mode, TIDE_FILL_POISON);
}

static inline void open_set(set *s, tide_graph *g, tide_run_mode mode) { open_set_aliased(s, g, mode, 0); }

static inline void close_set(set *s) {
    tide_context_destroy(s->c);
    tide_inference_plan_unref(s->ip);
    tide_memory_plan_destroy(s->m);
    tide_program_unref(s->p);
    rt_rig_close(&s->rig);
}

/// x (4x15) -> Tanh -> Sigmoid -> y
static inline tide_graph *two_steps(void) {
    tide_graph *g = rt_graph("two");
    rt_input(g, "x", "4x15");
    rt_node(g, "Tanh", "t", "x", "a");
    rt_node(g, "Sigmoid", "s", "a", "y");
    rt_output(g, "y");
    return g;
}
enum { N = 60 };

static inline void set_x(set *s, tide_tensor *x) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_context_set_inputs(s->c, &x, 1, &err), &err);
}

static inline const float *floats(const tide_tensor *t) {
    tide_error err = TIDE_ERROR_INIT;
    const void *data;
    assert_tide_ok(tide_tensor_read(t, &data, &err), &err);
    return data;
}

static inline void assert_is_two_steps_of(const tide_tensor *y, const float *x) {
    for (size_t i = 0; i < N; i++) assert_float_equal(floats(y)[i], 1.0f / (1.0f + expf(-tanhf(x[i]))), 1e-5);
}

#endif
