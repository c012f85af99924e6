// SPDX-License-Identifier: MIT
//
// Facts of programs by chance, and the peak of an order by its definition: sets of bytes, walked step by step. Shares
// nothing with the model but the facts.
#ifndef TIDE_TESTS_PLANNER_ORDER_CASE_H
#define TIDE_TESTS_PLANNER_ORDER_CASE_H

#include "core/base/text.h"
#include "planner/passes/pass_order.h"
#include "tests/tide_test.h"

enum { MAX_STEPS = 10, MAX_TENSORS = 24, MAX_OWN = 256 };

typedef struct order_case {
    tide__order_facts f;
    uint32_t out0[MAX_STEPS]; ///< tensor; TIDE_NO_INDEX
} order_case;

static inline bool case_reads(const tide__order_facts *f, uint32_t step, uint32_t tensor) {
    for (size_t i = 0; i < f->reads.n; i++) {
        if (f->reads.list[i].step == step && f->reads.list[i].other == tensor) return true;
    }
    return false;
}

static inline void case_read(tide__order_facts *f, uint32_t step, uint32_t tensor) {
    tide_error err = TIDE_ERROR_INIT;
    if (!case_reads(f, step, tensor)) assert_tide_ok(tide__facts_add_read(f, step, tensor, &err), &err);
}

static inline uint32_t case_make(order_case *c, uint32_t step, uint64_t bytes, uint64_t align) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t t;
    assert_tide_ok(tide__facts_add_tensor(&c->f, step, bytes, align, &t, &err), &err);
    if (c->out0[step] == TIDE_NO_INDEX) {
        c->out0[step] = t;
        assert_tide_ok(tide__facts_add_pair(&c->f.results, step, t, &err), &err);
    }
    return t;
}

/// One step: a source, an element-wise operator, a view, slices, a concatenation, or anything; perhaps with scratch.
static inline void case_step(order_case *c, tide_rng *rng, uint32_t step, uint64_t align) {
    tide_error err = TIDE_ERROR_INIT;
    tide__order_facts *f = &c->f;
    const size_t n_old = f->n_tensors;
    const uint64_t kind = n_old == 0 ? 0 : tide_rng_below(rng, 7);
    uint32_t in[3];
    for (size_t k = 0; k < 3 && n_old > 0; k++) {
        // mostly recent tensors, so that chains and diamonds come about
        const uint64_t back = tide_rng_below(rng, 2) == 0 ? tide_rng_below(rng, n_old) : tide_rng_below(rng, 3);
        in[k] = (uint32_t)(back < n_old ? n_old - 1 - back : 0);
    }
    if (tide_rng_below(rng, 4) == 0) f->scratch_bytes[step] = (1 + tide_rng_below(rng, 3)) * align;
    if (kind == 0) { // reads nothing
        case_make(c, step, 1 + tide_rng_below(rng, 8), align);
    } else if (kind <= 2) { // element-wise
        const uint32_t t = case_make(c, step, f->tensors[in[0]].size_bytes, align);
        for (size_t k = 0; k < 1 + tide_rng_below(rng, 3); k++) {
            const bool was_read = case_reads(f, step, in[k]);
            case_read(f, step, in[k]);
            if (was_read || f->tensors[in[k]].size_bytes != f->tensors[t].size_bytes || tide_rng_below(rng, 4) == 0)
                continue;
            assert_tide_ok(tide__facts_add_pair(&f->overwrites, step, in[k], &err), &err);
        }
    } else if (kind == 3) { // view
        const uint32_t t = case_make(c, step, f->tensors[in[0]].size_bytes, align);
        case_read(f, step, in[0]);
        (void)tide__facts_put_inside(f, t, in[0], 0);
    } else if (kind == 4 && f->tensors[in[0]].size_bytes >= 2) { // two slices
        const uint64_t all = f->tensors[in[0]].size_bytes, first = 1 + tide_rng_below(rng, all - 1);
        case_read(f, step, in[0]);
        const uint32_t a = case_make(c, step, first, align), b = case_make(c, step, all - first, align);
        (void)tide__facts_put_inside(f, a, in[0], 0);
        (void)tide__facts_put_inside(f, b, in[0], first);
    } else if (kind == 5) { // concatenation
        uint64_t sum = 0;
        for (size_t k = 0; k < 3; k++) sum += f->tensors[in[k]].size_bytes;
        if (sum > MAX_OWN / 2) sum = 0;
        const uint32_t t = case_make(c, step, sum == 0 ? 4 : sum, align);
        for (size_t k = 0; k < 3; k++) case_read(f, step, in[k]);
        uint64_t at = 0;
        for (size_t k = 0; k < 3 && sum > 0; k++) {
            const uint64_t bytes = f->tensors[in[k]].size_bytes;
            (void)tide__facts_put_inside(f, in[k], t, at);
            at += bytes;
        }
    } else { // anything: no output at all is a step that makes a graph output
        for (size_t k = 0; k < tide_rng_below(rng, 4) && k < 3; k++) case_read(f, step, in[k]);
        const size_t n_out = (size_t)tide_rng_below(rng, 3);
        for (size_t k = 0; k < n_out; k++) case_make(c, step, 1 + tide_rng_below(rng, 8), align);
    }
    if (step > 0 && tide_rng_below(rng, 8) == 0)
        assert_tide_ok(tide__facts_add_pair(&f->after, step, (uint32_t)tide_rng_below(rng, step), &err), &err);
}

static inline void case_random(order_case *c, tide_rng *rng, uint32_t n_steps) {
    tide_error err = TIDE_ERROR_INIT;
    const uint64_t align = tide_rng_below(rng, 3) == 0 ? 4 : 1;
    for (size_t i = 0; i < MAX_STEPS; i++) c->out0[i] = TIDE_NO_INDEX;
    assert_tide_ok(tide__facts_init(&c->f, n_steps, &err), &err);
    for (uint32_t step = 0; step < n_steps; step++) case_step(c, rng, step, align);
    assert_true(c->f.n_tensors <= MAX_TENSORS);
}

// ---- the definition ----

typedef struct byte_set {
    bool of[MAX_TENSORS][MAX_OWN]; ///< [root][byte]
} byte_set;

static inline void cover(const tide__order_facts *f, uint32_t t, byte_set *s) {
    const tide__fact_tensor *x = &f->tensors[t];
    const uint64_t end = x->root == t ? x->own_bytes : x->at_bytes + x->size_bytes;
    assert_true(end <= MAX_OWN);
    for (uint64_t b = x->at_bytes; b < end; b++) s->of[x->root][b] = true;
}

static inline uint64_t count(const tide__order_facts *f, const byte_set *s) {
    uint64_t n = 0;
    for (uint32_t t = 0; t < f->n_tensors; t++) {
        if (f->tensors[t].root != t) continue; // sets are of roots
        for (size_t b = 0; b < MAX_OWN; b++) n += s->of[t][b];
    }
    return n;
}

/// Whether `t` is made, and read by a step that is still to come.
static inline bool is_wanted(const tide__order_facts *f, uint32_t t, uint32_t made, uint32_t ran) {
    if ((made >> f->tensors[t].maker & 1u) == 0) return false;
    for (size_t i = 0; i < f->reads.n; i++) {
        if (f->reads.list[i].other == t && (ran >> f->reads.list[i].step & 1u) == 0) return true;
    }
    return false;
}

static inline bool overlap(const tide__order_facts *f, uint32_t a, uint32_t b) {
    static byte_set x, y;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    cover(f, a, &x);
    cover(f, b, &y);
    for (size_t i = 0; i < sizeof x.of; i++) {
        if (((const bool *)x.of)[i] && ((const bool *)y.of)[i]) return true;
    }
    return false;
}

static inline bool is_overwritable(const tide__order_facts *f, uint32_t step, uint32_t t) {
    for (size_t i = 0; i < f->overwrites.n; i++) {
        if (f->overwrites.list[i].step == step && f->overwrites.list[i].other == t) return true;
    }
    return false;
}

static inline bool fills(const tide__order_facts *f, uint32_t t) {
    const tide__fact_tensor *x = &f->tensors[t];
    return x->at_bytes == 0 && x->size_bytes == f->tensors[x->root].size_bytes;
}

/// Bytes that `step` saves by overwriting `t`. 0 when a later step still needs a byte of `t`, when an input that lies
/// there forbids it, or when neither of the two fills its root.
static inline uint64_t saved_by(const order_case *c, uint32_t step, uint32_t t, uint32_t ran) {
    const tide__order_facts *f = &c->f;
    const uint32_t out = c->out0[step];
    if (out == TIDE_NO_INDEX || !is_overwritable(f, step, t) || overlap(f, t, out)) return 0;
    if (!fills(f, t) && !fills(f, out)) return 0;
    const uint32_t after = ran | 1u << step;
    for (uint32_t other = 0; other < f->n_tensors; other++) {
        if (!overlap(f, t, other)) continue;
        if (is_wanted(f, other, after, after)) return 0;
        if (case_reads(f, step, other) && !is_overwritable(f, step, other)) return 0;
    }
    static byte_set x, y;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    cover(f, t, &x);
    cover(f, out, &y);
    const uint64_t a = count(f, &x), b = count(f, &y);
    return a < b ? a : b;
}

/// Bytes in use while `step` runs: tensors that are still needed, its results and its scratch, less what it overwrites.
static inline uint64_t transient_of(const order_case *c, uint32_t step, uint32_t ran) {
    const tide__order_facts *f = &c->f;
    static byte_set s;
    memset(&s, 0, sizeof s);
    for (uint32_t t = 0; t < f->n_tensors; t++) {
        if (f->tensors[t].maker == step || is_wanted(f, t, ran, ran)) cover(f, t, &s);
    }
    uint64_t saved = 0;
    for (uint32_t t = 0; t < f->n_tensors; t++) {
        const uint64_t bytes = saved_by(c, step, t, ran);
        if (bytes > saved) saved = bytes;
    }
    return count(f, &s) + f->scratch_bytes[step] - saved;
}

static inline bool may_run(const tide__order_facts *f, uint32_t step, uint32_t ran) {
    if ((ran >> step & 1u) != 0) return false;
    for (size_t i = 0; i < f->after.n; i++) {
        if (f->after.list[i].step == step && (ran >> f->after.list[i].other & 1u) == 0) return false;
    }
    return true;
}

static inline uint64_t peak_by_definition(const order_case *c, const uint32_t *order) {
    uint64_t peak = 0;
    uint32_t ran = 0;
    for (size_t i = 0; i < c->f.n_steps; i++) {
        assert_true(may_run(&c->f, order[i], ran));
        const uint64_t transient = transient_of(c, order[i], ran);
        if (transient > peak) peak = transient;
        ran |= 1u << order[i];
    }
    return peak;
}

/// The smallest peak over all orders, without any memory of sets or rule of what is safe: only worse ones are cut off.
static inline void try_all(const order_case *c, uint32_t ran, uint64_t peak, uint64_t *best) {
    if (peak >= *best) return;
    if (ran == (1u << c->f.n_steps) - 1) {
        *best = peak;
        return;
    }
    for (uint32_t step = 0; step < c->f.n_steps; step++) {
        if (!may_run(&c->f, step, ran)) continue;
        const uint64_t transient = transient_of(c, step, ran);
        try_all(c, ran | 1u << step, transient > peak ? transient : peak, best);
    }
}

#endif
