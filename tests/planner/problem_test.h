// SPDX-License-Identifier: MIT
//
// What the tests of strategies share: tables by chance that use everything a lifetime can have, the problems they make,
// and the plainest way to a place.
#ifndef TIDE_TESTS_PLANNER_PROBLEM_TEST_H
#define TIDE_TESTS_PLANNER_PROBLEM_TEST_H

#include "planner/problem.h"
#include "tests/planner/plan_test.h"

enum {
    RANDOM_ALIGN = 1, ///< alignments differ, and some sizes are no multiples of them
    RANDOM_GAPS = 2,  ///< in time, and in time x bytes
    RANDOM_ALIAS = 4, ///< parts that begin before or end after the whole
    RANDOM_APART = 8,
    RANDOM_FIXED = 16,
    RANDOM_ALL = 31
};

static inline void put_random_aliases(tide_lifetimes *lt, tide_rng *rng) {
    for (size_t i = 1; i < lt->n; i++) {
        const uint32_t of = (uint32_t)tide_rng_below(rng, i);
        const tide_lifetime *whole = &lt->items[of], *part = &lt->items[i];
        if (tide_rng_below(rng, 5) != 0 || part->size_bytes > whole->size_bytes) continue;
        const uint64_t room = (whole->size_bytes - part->size_bytes) / part->align_bytes;
        const uint64_t at = part->align_bytes * tide_rng_below(rng, room + 1);
        // Refused where the target is what an alias may not lie in: then it stays a tensor of its own.
        const tide_status st = tide_lifetimes_alias(lt, (uint32_t)i, TIDE_ALIAS_GIVEN, of, at, NULL);
        (void)st;
    }
}

static inline void put_random_table(tide_lifetimes *lt, tide_rng *rng, size_t n, int64_t n_steps, uint64_t max_bytes,
                                    unsigned what) {
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%zu", i);
        const int64_t begin = (int64_t)tide_rng_below(rng, (uint64_t)n_steps);
        const uint64_t reach = tide_rng_below(rng, 4) == 0 ? (uint64_t)(n_steps - begin) : 3;
        int64_t end = begin + 1 + (int64_t)tide_rng_below(rng, reach);
        if (end > n_steps) end = n_steps;
        tide_lifetime item = an_item(name, 1 + tide_rng_below(rng, max_bytes), 1, begin, end);
        tide_gap gap;
        if (what & RANDOM_ALIGN) {
            item.align_bytes = UINT64_C(1) << tide_rng_below(rng, 5);
            item.unrounded = tide_rng_below(rng, 2) == 0;
        }
        if ((what & RANDOM_GAPS) && end - begin > 2 && tide_rng_below(rng, 3) == 0) {
            gap.begin_step = begin + 1 + (int64_t)tide_rng_below(rng, (uint64_t)(end - begin - 2));
            gap.end_step = gap.begin_step + 1 + (int64_t)tide_rng_below(rng, (uint64_t)(end - gap.begin_step - 1));
            gap.lo_bytes = tide_rng_below(rng, item.size_bytes);
            gap.hi_bytes = gap.lo_bytes + tide_rng_below(rng, item.size_bytes - gap.lo_bytes + 1);
            item.gaps = &gap;
            item.n_gaps = 1;
        }
        if ((what & RANDOM_APART) && tide_rng_below(rng, 4) == 0) item.apart_set = 1 + (uint32_t)tide_rng_below(rng, 3);
        if ((what & RANDOM_FIXED) && i < 3) {
            item.fixed = true; // far enough from each other
            const uint64_t at = tide_rng_below(rng, max_bytes) + i * 3 * (max_bytes + 8);
            item.fixed_offset_bytes = at / item.align_bytes * item.align_bytes;
        }
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
    }
    if (what & RANDOM_ALIAS) put_random_aliases(lt, rng);
    lt->n_steps = n_steps;
}

// ---- the plainest way to a place ----

/// Mark every offset below `top` at which item `i` would share a byte at a tick with item `k` at `k_at`.
static inline void bar_offsets(const tide_problem *p, size_t i, size_t k, uint64_t k_at, bool *barred, uint64_t top) {
    for (uint32_t a = 0; a < p->items[i].n_rects; a++) {
        for (uint32_t b = 0; b < p->items[k].n_rects; b++) {
            const tide_rect *r = &p->rects[p->items[i].first_rect + a], *s = &p->rects[p->items[k].first_rect + b];
            if (r->end <= s->begin || s->end <= r->begin) continue;
            const uint64_t lo = k_at + s->lo_bytes, hi = k_at + s->hi_bytes;
            for (uint64_t at = lo + 1 > r->hi_bytes ? lo + 1 - r->hi_bytes : 0; at + r->lo_bytes < hi && at < top; at++)
                barred[at] = true;
        }
    }
}

/// The place that first fit or best fit means, found by trying every offset up to the highest end. A gap is a stretch
/// of offsets that would all do, alignment aside; it is the smaller the fewer bytes it has beyond the first aligned
/// one.
static inline uint64_t plain_place(const tide_problem *p, const uint64_t *offsets, size_t i, bool best_fit) {
    uint64_t top = 0, best = TIDE_NO_OFFSET, best_slack = UINT64_MAX;
    for (size_t k = 0; k < p->n; k++) {
        if (k != i && offsets[k] != TIDE_NO_OFFSET && offsets[k] + p->items[k].size_bytes > top)
            top = offsets[k] + p->items[k].size_bytes;
    }
    bool *barred = tide_host_calloc(top + 1, sizeof *barred);
    assert_non_null(barred);
    for (size_t k = 0; k < p->n; k++) {
        if (k != i && offsets[k] != TIDE_NO_OFFSET) bar_offsets(p, i, k, offsets[k], barred, top);
    }
    const uint64_t align = p->items[i].align_bytes;
    for (uint64_t at = 0; at <= top + align; at++) {
        if (at % align != 0 || (at < top && barred[at])) continue;
        uint64_t last = at;
        while (last < top && !barred[last + 1]) last++;
        if (last >= top) { // nothing above: the open end
            if (best == TIDE_NO_OFFSET) best = at;
            break;
        }
        if (last - at < best_slack) {
            best = at;
            best_slack = last - at;
        }
        if (!best_fit) break;
        at = last;
    }
    tide_host_free(barred);
    return best;
}

#endif
