// SPDX-License-Identifier: MIT
//
// Random recordings of planned runs: several contexts, executions that are cut short, operators inside operators, a
// plan with aliases and gaps.
#ifndef TIDE_TESTS_PLANNED_FIXTURE_H
#define TIDE_TESTS_PLANNED_FIXTURE_H

#include "tests/analysis/subject_fixture.h"

enum { MAX_CONTEXTS = 3, N_STEPS = 7, BUFFER_ID = 100 };

/// A thread: where it is in its program.
typedef struct context {
    tide_scope run, region, op, inner;
    int depth; // scopes that are entered
    int step;
    int32_t n_runs;
    bool has_region;
} context;

static inline void enter(feeder *f, context *c, uint64_t t, tide_scope *s, const tide_scope *parent) {
    s->parent = parent;
    feed_scope(f, t, true, s);
    c->depth++;
}

static inline void begin_execution(feeder *f, context *c, uint64_t t, uint64_t block_id, tide_rng *rng) {
    c->run = (tide_scope){.name = "random", .kind = TIDE_SCOPE_RUN, .index = c->n_runs++, .block_id = block_id};
    c->has_region = tide_rng_below(rng, 4) == 0;
    c->region = (tide_scope){.name = "part", .kind = TIDE_SCOPE_REGION, .index = -1};
    c->depth = 0;
    c->step = 0;
    enter(f, c, t, &c->run, NULL);
    if (c->has_region) enter(f, c, t, &c->region, &c->run);
}

static inline void leave_step(feeder *f, context *c, uint64_t t, tide_rng *rng) {
    if (tide_rng_below(rng, 3) == 0) { // an operator inside of it is no step
        c->inner = (tide_scope){.name = "inner", .kind = TIDE_SCOPE_OPERATOR, .index = 1, .parent = &c->op};
        feed_scope(f, t, true, &c->inner);
        feed_scope(f, t, false, &c->inner);
    }
    feed_scope(f, t, false, &c->op);
}

/// The next thing that the thread does; an execution may end anywhere.
static inline void go_on(feeder *f, context *c, uint64_t t, uint64_t block_id, tide_rng *rng) {
    const bool is_between = c->step % 2 == 0;
    if (c->depth == 0) {
        begin_execution(f, c, t, block_id, rng);
    } else if (c->step == 2 * N_STEPS || tide_rng_below(rng, 25) == 0) {
        if (!is_between && tide_rng_below(rng, 2) == 0) feed_scope(f, t, false, &c->op);
        if (tide_rng_below(rng, 6) > 0) feed_scope(f, t, false, &c->run); // else the next one begins inside of it
        c->depth = 0;
    } else if (is_between) {
        static const char *const step_names[N_STEPS] = {"Op_0", "Op_1", "Op_2", "Op_3", "Op_4", "Op_5", "Op_6"};
        c->op = (tide_scope){.name = step_names[c->step / 2],
                             .kind = TIDE_SCOPE_OPERATOR,
                             .index = c->step / 2,
                             .parent = c->has_region ? &c->region : &c->run};
        feed_scope(f, t, true, &c->op);
        c->step++;
    } else {
        leave_step(f, c, t, rng);
        c->step++;
    }
}

static inline void record_random(const char *path, uint64_t seed, const tide_memory_plan *plan) {
    tide_rng rng = {seed};
    feeder f;
    feeder_open(&f, path, 64, false);
    const size_t n_contexts = 1 + tide_rng_below(&rng, MAX_CONTEXTS);
    const bool says = n_contexts > 1 || tide_rng_below(&rng, 3) > 0;
    const tide_run_info info = {.model = "random",
                                .mode = "planned",
                                .strategy = "greedy_by_size",
                                .device = "cpu",
                                .n_contexts = (uint32_t)n_contexts};
    context contexts[MAX_CONTEXTS] = {0};
    uint64_t t = 100, next_id = 1;
    feed_begin_run(&f, t, &info, plan);
    for (size_t i = 0; i < n_contexts; i++)
        feed(&f, ++t, TIDE_MEM_ALLOC, BUFFER_ID + i, TIDE_KIND_WORKSPACE, plan->buffers[0].bytes, "plan buffer");
    const size_t n = 60 + tide_rng_below(&rng, 200);
    for (size_t i = 0; i < n; i++) {
        const size_t k = tide_rng_below(&rng, n_contexts);
        t += tide_rng_below(&rng, 3);
        f.thread = (uint32_t)(1 + k);
        f.scope = NULL;
        if (tide_rng_below(&rng, 8) == 0) {
            if (next_id % 3 == 0) feed(&f, t, TIDE_MEM_SEGMENT_ALLOC, 0, TIDE_KIND_KV_CACHE, 4096, NULL);
            feed(&f, t, TIDE_MEM_ALLOC, next_id++, TIDE_KIND_DEFAULT, 64, "beside");
        } else {
            go_on(&f, &contexts[k], t, says ? BUFFER_ID + k : 0, &rng);
        }
    }
    f.thread = 1;
    for (size_t i = 0; i < n_contexts; i++)
        feed_free(&f, ++t + 1, BUFFER_ID + i, TIDE_KIND_WORKSPACE, plan->buffers[0].bytes, "plan buffer");
    feed_end_run(&f, t + 10);
    feeder_close(&f);
}

#endif
