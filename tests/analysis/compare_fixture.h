// SPDX-License-Identifier: MIT
//
// What the tests of compare share: what must hold of any comparison, and of one turned around.
#ifndef TIDE_TESTS_COMPARE_FIXTURE_H
#define TIDE_TESTS_COMPARE_FIXTURE_H

#include "analysis/compare.h"
#include "analysis/whatif.h"
#include "tests/analysis/allocator_fixture.h"
#include "tests/planner/lifetimes_test.h"

static inline tide_diff compared(tide_subject *a, const tide_moment *a_at, tide_subject *b, const tide_moment *b_at,
                                 bool rows_at) {
    tide_error err = TIDE_ERROR_INIT;
    tide_diff d;
    assert_tide_ok(tide_compare(a, a_at, b, b_at, rows_at, NULL, &d, &err), &err);
    return d;
}

static inline int64_t change_of(const tide_diff_step *list, size_t n) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += (int64_t)list[i].b_bytes - (int64_t)list[i].a_bytes;
    return sum;
}

static inline uint64_t magnitude(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/// What must hold of any comparison.
static inline void assert_sums(const tide_diff *d) {
    const int64_t change = (int64_t)d->b_bytes - (int64_t)d->a_bytes;
    uint64_t a_parts = 0, b_parts = 0, a_rows = 0, b_rows = 0;
    assert_int_equal(change_of(d->by_owner, d->n_by_owner), change);
    assert_int_equal(change_of(d->by_kind, d->n_by_kind), change);
    for (size_t i = 0; i < d->n_by_owner; i++) {
        const tide_diff_step *s = &d->by_owner[i];
        a_parts += s->is_part ? s->a_bytes : 0;
        b_parts += s->is_part ? s->b_bytes : 0;
        if (i > 0) assert_true(magnitude(s[-1].a_bytes, s[-1].b_bytes) >= magnitude(s->a_bytes, s->b_bytes));
    }
    size_t counts[6] = {0};
    for (size_t i = 0; i < d->n; i++) {
        const tide_diff_row *r = &d->rows[i];
        a_rows += r->a_at_bytes;
        b_rows += r->b_at_bytes;
        counts[0] += (r->what & TIDE_DIFF_ADDED) != 0;
        counts[1] += (r->what & TIDE_DIFF_REMOVED) != 0;
        counts[2] += (r->what & TIDE_DIFF_RESIZED) != 0;
        counts[3] += (r->what & TIDE_DIFF_MOVED) != 0;
        counts[4] += (r->what & TIDE_DIFF_RETIMED) != 0;
        counts[5] += r->what == 0;
        if (i > 0)
            assert_true(magnitude(r[-1].a_at_bytes, r[-1].b_at_bytes) >= magnitude(r->a_at_bytes, r->b_at_bytes));
    }
    // Rows hold all bytes that are no part's.
    assert_int_equal(a_rows, d->a_bytes - a_parts);
    assert_int_equal(b_rows, d->b_bytes - b_parts);
    assert_int_equal(counts[0], d->n_added);
    assert_int_equal(counts[1], d->n_removed);
    assert_int_equal(counts[2], d->n_resized);
    assert_int_equal(counts[3], d->n_moved);
    assert_int_equal(counts[4], d->n_retimed);
    assert_int_equal(counts[5], d->n_unchanged);
}

static inline void assert_no_change(const tide_diff *d) {
    assert_int_equal(d->n_unchanged, d->n);
    assert_int_equal(d->a_bytes, d->b_bytes);
    for (size_t i = 0; i < d->n; i++) assert_int_equal(d->rows[i].a_at_bytes, d->rows[i].b_at_bytes);
    for (size_t i = 0; i < d->n_by_owner; i++) assert_int_equal(d->by_owner[i].a_bytes, d->by_owner[i].b_bytes);
}

static inline const tide_diff_row *row(const tide_diff *d, const char *name) {
    for (size_t i = 0; i < d->n; i++) {
        if (strcmp(d->rows[i].name, name) == 0) return &d->rows[i];
    }
    fail_msg("no row of '%s'", name);
    return NULL;
}

static inline const tide_diff_step *step(const tide_diff_step *list, size_t n, const char *key, bool is_part) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].key, key) == 0 && list[i].is_part == is_part) return &list[i];
    }
    fail_msg("no step '%s'", key);
    return NULL;
}

/// Turned around: the same rows with their sides exchanged.
static inline void assert_turned(const tide_diff *ab, const tide_diff *ba) {
    assert_int_equal(ab->n, ba->n);
    assert_int_equal(ab->a_bytes, ba->b_bytes);
    assert_int_equal(ab->b_bytes, ba->a_bytes);
    assert_int_equal(ab->n_added, ba->n_removed);
    assert_int_equal(ab->n_removed, ba->n_added);
    assert_int_equal(ab->n_resized, ba->n_resized);
    assert_int_equal(ab->n_moved, ba->n_moved);
    assert_int_equal(ab->n_retimed, ba->n_retimed);
    assert_int_equal(ab->n_by_owner, ba->n_by_owner);
    for (size_t i = 0; i < ab->n_by_owner; i++) {
        assert_string_equal(ab->by_owner[i].key, ba->by_owner[i].key);
        assert_int_equal(ab->by_owner[i].a_bytes, ba->by_owner[i].b_bytes);
        assert_int_equal(ab->by_owner[i].b_bytes, ba->by_owner[i].a_bytes);
    }
    for (size_t i = 0; i < ab->n; i++) {
        const tide_diff_row *x = &ab->rows[i], *y = &ba->rows[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->a_at_bytes, y->b_at_bytes);
        assert_int_equal(x->b_at_bytes, y->a_at_bytes);
        assert_int_equal(x->a_bytes, y->b_bytes);
        const unsigned both = TIDE_DIFF_RESIZED | TIDE_DIFF_MOVED | TIDE_DIFF_RETIMED;
        assert_int_equal(x->what & both, y->what & both);
        assert_int_equal((x->what & TIDE_DIFF_ADDED) != 0, (y->what & TIDE_DIFF_REMOVED) != 0);
    }
}

#endif
