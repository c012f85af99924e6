// SPDX-License-Identifier: MIT
//
// Real traces of real allocators: random work over a stream_caching allocator (which tells its segments) and the plain
// one (which does not), recorded while it runs.
#ifndef TIDE_TESTS_ALLOCATOR_FIXTURE_H
#define TIDE_TESTS_ALLOCATOR_FIXTURE_H

#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/block.h"
#include "tests/analysis/subject_fixture.h"

enum { N_WORK_SLOTS = 24, WORK_STEP_NS = 10 };

typedef struct working {
    tide_recorder *rec; ///< NULL once closed: later frees are not recorded
    tide_observer to_rec, obs;
    tide_allocator *inner[2], *outer[2];
    tide_block *slots[N_WORK_SLOTS];
    uint64_t now;
} working;

/// Moments are made here, a step for each event, so that every run of the test has the same.
static inline void work_hear(void *self, const tide_memory_event *event) {
    working *w = self;
    if (w->rec == NULL) return;
    tide_memory_event copy = *event;
    copy.t_ns = w->now += WORK_STEP_NS;
    w->to_rec.on_memory(w->to_rec.self, &copy);
}

static inline uint64_t work_now(void *ctx) { return ((const working *)ctx)->now; }

static inline void work_open(working *w, const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    *w = (working){.now = 1000};
    const tide_recorder_options opt = {.now = work_now, .now_ctx = w};
    assert_tide_ok(tide_recorder_open(path, &opt, &w->rec, &err), &err);
    w->to_rec = tide_recorder_observer(w->rec);
    w->obs = (tide_observer){.self = w, .on_memory = work_hear};
    assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &w->inner[0], &err), &err);
    assert_tide_ok(tide_cpu_allocator_create(&w->inner[1], &err), &err);
    for (int i = 0; i < 2; i++) {
        assert_tide_ok(tide_instrumented_create(w->inner[i], &w->obs, &w->outer[i], &err), &err);
    }
}

static inline void work_alloc(working *w, size_t slot, int allocator, size_t bytes, tide_memory_kind kind,
                              const char *tag) {
    tide_error err = TIDE_ERROR_INIT;
    assert_null(w->slots[slot]);
    assert_tide_ok(tide_block_create(w->outer[allocator], bytes, 0, kind, 0, tag, &w->slots[slot], &err), &err);
}

static inline void work_free(working *w, size_t slot) {
    tide_block_unref(w->slots[slot]);
    w->slots[slot] = NULL;
}

/// Small and large ones, kinds mixed, now and then a trim that gives segments back.
static inline void work_at_random(working *w, uint64_t seed, int n_rounds) {
    static const char *const tags[] = {"conv", "relu", "add", "keys"};
    tide_rng rng = {seed};
    for (int i = 0; i < n_rounds; i++) {
        const size_t slot = (size_t)tide_rng_below(&rng, N_WORK_SLOTS);
        if (w->slots[slot] != NULL) {
            work_free(w, slot);
        } else {
            const uint64_t most = tide_rng_below(&rng, 3) == 0 ? 12u << 20 : 5000;
            work_alloc(w, slot, tide_rng_below(&rng, 4) == 0 ? 1 : 0, 1 + (size_t)tide_rng_below(&rng, most),
                       (tide_memory_kind)tide_rng_below(&rng, 3), tags[tide_rng_below(&rng, 4)]);
        }
        if (tide_rng_below(&rng, 25) == 0) tide_allocator_trim(w->inner[0]);
    }
}

/// What is still held leaks as far as the trace can tell.
static inline void work_close(working *w) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_close(w->rec, &err), &err);
    w->rec = NULL;
    for (size_t i = 0; i < N_WORK_SLOTS; i++) tide_block_unref(w->slots[i]);
    for (int i = 0; i < 2; i++) {
        tide_allocator_unref(w->outer[i]);
        tide_allocator_unref(w->inner[i]);
    }
}

#endif
