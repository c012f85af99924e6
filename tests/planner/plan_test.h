// SPDX-License-Identifier: MIT
//
// What the planner's tests share: lists of lifetimes made by hand and by chance, and the definition of a sound plan
// written as plainly as can be, against which strategies and verifier are held.
#ifndef TIDE_TESTS_PLANNER_PLAN_TEST_H
#define TIDE_TESTS_PLANNER_PLAN_TEST_H

#include <inttypes.h>

#include "planner/planner.h"
#include "tests/tide_test.h"

static inline tide_lifetime an_item(const char *name, uint64_t size_bytes, uint64_t align_bytes, int64_t begin,
                                    int64_t end) {
    union {
        const char *in;
        char *out; // the table copies the name and never writes it
    } u = {.in = name};
    return (tide_lifetime){.name = u.out,
                           .size_bytes = size_bytes,
                           .align_bytes = align_bytes,
                           .begin_step = begin,
                           .end_step = end,
                           .kind = TIDE_KIND_WORKSPACE,
                           .device = TIDE_CPU,
                           .node = TIDE_NO_INDEX,
                           .port = TIDE_NO_INDEX,
                           .value = TIDE_NO_INDEX};
}

static inline void put_aligned(tide_lifetimes *lt, const char *name, uint64_t size_bytes, uint64_t align_bytes,
                               int64_t begin, int64_t end) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_lifetime item = an_item(name, size_bytes, align_bytes, begin, end);
    assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
}

/// Alignment 1: sizes count as they are.
static inline void put(tide_lifetimes *lt, const char *name, uint64_t size_bytes, int64_t begin, int64_t end) {
    put_aligned(lt, name, size_bytes, 1, begin, end);
}

static inline void put_persistent(tide_lifetimes *lt, const char *name, uint64_t size_bytes, tide_role role,
                                  tide_memory_kind kind, int64_t n_steps) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetime item = an_item(name, size_bytes, 1, 0, n_steps);
    item.persistent = true;
    item.role = role;
    item.kind = kind;
    assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
}

static inline size_t index_of(const tide_lifetimes *lt, const char *name) {
    for (size_t i = 0; i < lt->n; i++) {
        if (strcmp(lt->items[i].name, name) == 0) return i;
    }
    fail_msg("no tensor '%s'", name);
    return 0;
}

/// Lifetimes by chance: mostly short ones, some long, some empty, some persistent, and, with `mixed`, alignments that
/// differ.
static inline void put_random(tide_lifetimes *lt, tide_rng *rng, size_t n, int64_t n_steps, uint64_t max_bytes,
                              bool mixed) {
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%zu", i);
        const int64_t begin = (int64_t)tide_rng_below(rng, (uint64_t)n_steps);
        const uint64_t reach = tide_rng_below(rng, 4) == 0 ? (uint64_t)(n_steps - begin) : 3;
        int64_t end = begin + 1 + (int64_t)tide_rng_below(rng, reach);
        if (end > n_steps) end = n_steps;
        const uint64_t size = tide_rng_below(rng, 20) == 0 ? 0 : 1 + tide_rng_below(rng, max_bytes);
        if (tide_rng_below(rng, 12) == 0) {
            put_persistent(lt, name, size, TIDE_ROLE_WEIGHT, TIDE_KIND_PERSISTENT, n_steps);
        } else {
            put_aligned(lt, name, size, mixed ? UINT64_C(1) << tide_rng_below(rng, 9) : 16, begin, end);
        }
    }
}

static inline tide_memory_plan *make_plan(const tide_lifetimes *lt, const char *strategy) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *s;
    tide_memory_plan *plan;
    assert_tide_ok(tide_strategy_find(strategy, &s, &err), &err);
    assert_tide_ok(tide_plan_make(lt, s, NULL, &plan, &err), &err);
    return plan;
}

/// The definition of a sound plan, O(n^2) and with nothing in common with the planner but the words.
static inline const char *find_fault(const tide_memory_plan *p) {
    const tide_lifetimes *lt = &p->lifetimes;
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *a = &lt->items[i];
        if (a->persistent) {
            if (p->offsets[i] != TIDE_NO_OFFSET || p->pools[i] != TIDE_NO_POOL) return "persistent tensor placed";
            continue;
        }
        const uint64_t a_bytes = (a->size_bytes + a->align_bytes - 1) / a->align_bytes * a->align_bytes;
        if (p->offsets[i] == TIDE_NO_OFFSET) return "no place";
        if (p->offsets[i] % a->align_bytes != 0) return "misaligned";
        if (p->offsets[i] + a_bytes > p->bytes) return "outside the buffer";
        for (size_t j = 0; j < i; j++) {
            const tide_lifetime *b = &lt->items[j];
            const uint64_t b_bytes = (b->size_bytes + b->align_bytes - 1) / b->align_bytes * b->align_bytes;
            if (b->persistent || a_bytes == 0 || b_bytes == 0) continue;
            const int64_t last_birth = a->begin_step > b->begin_step ? a->begin_step : b->begin_step;
            const int64_t first_death = a->end_step < b->end_step ? a->end_step : b->end_step;
            if (last_birth >= first_death) continue; // never alive together
            if (p->offsets[i] < p->offsets[j] + b_bytes && p->offsets[j] < p->offsets[i] + a_bytes) return "overlap";
            if (p->pools[i] != TIDE_NO_POOL && p->pools[i] == p->pools[j]) return "two at once in a pool";
        }
    }
    return NULL;
}

static inline void assert_sound(const tide_memory_plan *p) {
    const char *fault = find_fault(p);
    if (fault != NULL) fail_msg("%s of %zu tensors: %s", p->strategy, p->lifetimes.n, fault);
}

#endif
