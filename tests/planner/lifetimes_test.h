// SPDX-License-Identifier: MIT
//
// Tables of lifetimes that use everything a table can hold, and when two are the same; for the tests of files.
#ifndef TIDE_TESTS_PLANNER_LIFETIMES_TEST_H
#define TIDE_TESTS_PLANNER_LIFETIMES_TEST_H

#include "tests/planner/plan_test.h"

static inline void assert_same_names(char *const *a, size_t n_a, char *const *b, size_t n_b) {
    assert_int_equal(n_a, n_b);
    for (size_t i = 0; i < n_a; i++) assert_string_equal(a[i], b[i]);
}

static inline void assert_same_item(const tide_lifetime *p, const tide_lifetime *q, size_t n_points) {
    assert_string_equal(p->name, q->name);
    assert_int_equal(p->size_bytes, q->size_bytes);
    assert_int_equal(p->align_bytes, q->align_bytes);
    assert_int_equal(p->begin_step, q->begin_step);
    assert_int_equal(p->end_step, q->end_step);
    assert_int_equal(p->kind, q->kind);
    assert_true(tide_device_equal(p->device, q->device));
    assert_int_equal(p->role, q->role);
    assert_int_equal(p->persistent, q->persistent);
    assert_int_equal(p->node, q->node);
    assert_int_equal(p->port, q->port);
    assert_int_equal(p->value, q->value);
    assert_int_equal(p->unrounded, q->unrounded);
    assert_int_equal(p->fixed, q->fixed);
    if (p->fixed) assert_int_equal(p->fixed_offset_bytes, q->fixed_offset_bytes);
    assert_int_equal(p->apart_set, q->apart_set);
    assert_int_equal(p->n_gaps, q->n_gaps);
    for (uint32_t k = 0; k < p->n_gaps; k++) {
        assert_int_equal(p->gaps[k].begin_step, q->gaps[k].begin_step);
        assert_int_equal(p->gaps[k].end_step, q->gaps[k].end_step);
        assert_int_equal(p->gaps[k].lo_bytes, q->gaps[k].lo_bytes);
        assert_int_equal(p->gaps[k].hi_bytes, q->gaps[k].hi_bytes);
    }
    assert_int_equal(p->point_bytes != NULL, q->point_bytes != NULL);
    for (size_t k = 0; p->point_bytes != NULL && k < n_points; k++)
        assert_int_equal(p->point_bytes[k], q->point_bytes[k]);
    assert_int_equal(p->alias, q->alias);
    if (p->alias == TIDE_ALIAS_NONE) return;
    assert_int_equal(p->alias_of, q->alias_of);
    assert_int_equal(p->alias_offset_bytes, q->alias_offset_bytes);
}

/// But for the model's name, which a list takes from its file.
static inline void assert_same_lifetimes(const tide_lifetimes *a, const tide_lifetimes *b) {
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_steps, b->n_steps);
    assert_same_names(a->step_names, a->n_step_names, b->step_names, b->n_step_names);
    assert_same_names(a->recomputed, a->n_recomputed, b->recomputed, b->n_recomputed);
    assert_same_names(a->point_names, a->n_points, b->point_names, b->n_points);
    for (size_t i = 0; i < a->n; i++) assert_same_item(&a->items[i], &b->items[i], a->n_points);
}

static inline void put_gaps(tide_lifetime *item, tide_rng *rng, tide_gap *gaps) {
    int64_t at = item->begin_step;
    item->gaps = gaps;
    while (item->n_gaps < 4) {
        const int64_t begin = at + (int64_t)tide_rng_below(rng, 3);
        const int64_t end = begin + 1 + (int64_t)tide_rng_below(rng, 2);
        if (end >= item->end_step) return; // some step must need it whole
        tide_gap *gap = &gaps[item->n_gaps++];
        *gap = (tide_gap){.begin_step = begin, .end_step = end};
        if (tide_rng_below(rng, 2) == 0) {
            gap->lo_bytes = tide_rng_below(rng, item->size_bytes + 1);
            gap->hi_bytes = gap->lo_bytes + tide_rng_below(rng, item->size_bytes - gap->lo_bytes + 1);
        }
        at = end;
    }
}

/// `n` tensors that use gaps, fixed offsets, sets, aliases, kinds, roundings. Fixed ones do not meet: each has a
/// stretch of addresses of its own.
static inline void put_every_feature(tide_lifetimes *lt, tide_rng *rng, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        char name[32];
        // "t+4" could be taken for a place inside "t".
        snprintf(name, sizeof name, i == 0 ? "t" : i % 5 == 4 ? "t+%zu" : "t%zu", i);
        const int64_t begin = (int64_t)tide_rng_below(rng, 20);
        tide_lifetime item = an_item(name, 1 + tide_rng_below(rng, 4000), UINT64_C(1) << tide_rng_below(rng, 9), begin,
                                     begin + 1 + (int64_t)tide_rng_below(rng, 12));
        tide_gap gaps[4];
        item.unrounded = tide_rng_below(rng, 2) == 0;
        item.persistent = tide_rng_below(rng, 8) == 0;
        item.role = (tide_role)tide_rng_below(rng, 5);
        if (tide_rng_below(rng, 6) == 0) item.kind = TIDE_KIND_KV_CACHE;
        if (tide_rng_below(rng, 9) == 0) item.device = (tide_device){.type = TIDE_DEVICE_CUDA, .index = 1};
        if (!item.persistent && tide_rng_below(rng, 6) == 0) {
            item.fixed = true;
            item.fixed_offset_bytes = i * 8192;
        }
        if (!item.persistent && tide_rng_below(rng, 5) == 0) item.apart_set = 1 + (uint32_t)tide_rng_below(rng, 3);
        if (!item.persistent && tide_rng_below(rng, 3) == 0) put_gaps(&item, rng, gaps);
        assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t of = (uint32_t)tide_rng_below(rng, n);
        const uint64_t room = lt->items[of].size_bytes, need = lt->items[i].size_bytes;
        if (tide_rng_below(rng, 2) == 0 || room < need) continue;
        // What may not lie in another is left as it is.
        const tide_alias_kind kind = (tide_alias_kind)(1 + tide_rng_below(rng, 5));
        if (tide_lifetimes_alias(lt, i, kind, of, tide_rng_below(rng, room - need + 1), NULL) != TIDE_OK) continue;
    }
}

#endif
