// SPDX-License-Identifier: MIT
//
// Which values of XLA's temporary memory must lie together.
//
// The texts do not say which values are one buffer to XLA (an operator in place, what a loop hands on), nor where it
// let a result overwrite an operand. But its plan shows it: such values share bytes although both are needed at once.
// What is bound here is never less than that, so that a plan which keeps it can be run:
//
//   * values at the same place that follow on each other: the next one begins before the step behind the last one ends
//     (an operator in place shows as 3-4 and 5-9 in older versions, as 3-5 and 5-9 in newer ones);
//   * all values at the place of a phi: what a loop or a condition hands on may have a pause;
//   * a value that begins in the step in which another one ends, and lies in it or around it.
//
// Any other two that share bytes and are needed at once contradict each other.
#include <inttypes.h>
#include <stdlib.h>

#include "core/base/block_tree.h"
#include "core/base/host_alloc.h"
#include "planner/formats/texts.h"

/// A value, or several at one place of which each follows on the one before.
typedef struct run {
    uint32_t allocation, value; // the first value
    uint64_t lo, bytes;
    int64_t begin, end; // the last step is one of its
    bool is_phi;
} run;

/// The same by its end.
typedef struct run_end {
    uint32_t allocation, i;
    int64_t begin, end;
} run_end;

typedef struct placer {
    const tide__xla *x;
    const uint32_t *items;
    tide__together *t;
    run *runs; // [n] by allocation and begin
    size_t n;
    run_end *ends;        // [n] by allocation, end and begin
    tide_block_tree live; // of one allocation; ids are runs
    tide_error *err;
} placer;

#define COMPARE(a, b, member)                                                                                          \
    if ((a)->member != (b)->member) return (a)->member < (b)->member ? -1 : 1

static int by_place(const void *p, const void *q) {
    const run *a = p, *b = q;
    COMPARE(a, b, allocation);
    COMPARE(a, b, lo);
    COMPARE(a, b, bytes);
    COMPARE(a, b, begin);
    COMPARE(a, b, value);
    return 0;
}

static int by_begin(const void *p, const void *q) {
    const run *a = p, *b = q;
    COMPARE(a, b, allocation);
    COMPARE(a, b, begin);
    COMPARE(a, b, lo);
    COMPARE(a, b, value);
    return 0;
}

static int by_end(const void *p, const void *q) {
    const run_end *a = p, *b = q;
    COMPARE(a, b, allocation);
    COMPARE(a, b, end);
    COMPARE(a, b, begin);
    COMPARE(a, b, i);
    return 0;
}

static void bind(const placer *p, uint32_t value, uint32_t other) {
    tide__together_bind(p->t, p->items[value], p->items[other]);
}

// ---- values at the same place ----

static bool is_same_place(const run *a, const run *b) {
    return a->allocation == b->allocation && a->lo == b->lo && a->bytes == b->bytes;
}

/// Values [n] of one place, by begin: those that follow on each other become one run, and with a phi all are bound.
/// @return the runs, which stand first
static size_t join_place(const placer *p, run *values, size_t n) {
    size_t n_runs = 0;
    bool has_phi = false;
    for (size_t i = 0; i < n; i++) has_phi = has_phi || values[i].is_phi;
    for (size_t i = 0; i < n; i++) {
        run *last = n_runs > 0 ? &values[n_runs - 1] : NULL;
        const bool follows = last != NULL && values[i].begin - 1 <= last->end;
        if (last != NULL && (follows || has_phi)) bind(p, last->value, values[i].value);
        if (!follows)
            values[n_runs++] = values[i];
        else if (values[i].end > last->end)
            last->end = values[i].end;
    }
    return n_runs;
}

/// All values that take bytes of the table, as runs.
static void find_runs(placer *p) {
    size_t n = 0, n_runs = 0;
    for (size_t i = 0; i < p->x->n_values; i++) {
        const tide__xla_value *v = &p->x->values[i];
        if (p->items[i] == TIDE_NO_INDEX || v->bytes == 0) continue;
        p->runs[n++] = (run){.allocation = v->allocation,
                             .value = (uint32_t)i,
                             .lo = v->offset,
                             .bytes = v->bytes,
                             .begin = v->begin,
                             .end = v->end,
                             .is_phi = v->is_phi};
    }
    if (n > 1) qsort(p->runs, n, sizeof *p->runs, by_place);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && is_same_place(&p->runs[i], &p->runs[k]);) k++;
        const size_t made = join_place(p, &p->runs[i], k - i);
        for (size_t j = 0; j < made; j++) p->runs[n_runs + j] = p->runs[i + j];
        n_runs += made;
    }
    p->n = n_runs;
    if (n_runs > 1) qsort(p->runs, n_runs, sizeof *p->runs, by_begin);
    for (size_t i = 0; i < n_runs; i++)
        p->ends[i] = (run_end){p->runs[i].allocation, (uint32_t)i, p->runs[i].begin, p->runs[i].end};
    if (n_runs > 1) qsort(p->ends, n_runs, sizeof *p->ends, by_end);
}

// ---- runs that share bytes ----

static tide_status contradict(const placer *p, const run *a, const run *b) {
    const tide__xla_value *v = &p->x->values[b->value];
    const tide_status st =
        TIDE_FAIL(p->err, TIDE_ERR_BAD_INPUT,
                  "values '%s' and '%s' share bytes of allocation %" PRIu32 " and are both needed in step %" PRId64,
                  p->x->values[a->value].name, v->name, a->allocation, b->begin);
    return tide__scan_fault(&p->x->of_values, v->line, st);
}

static bool lies_in(const run *inner, const run *outer) {
    return inner->lo >= outer->lo && inner->lo + inner->bytes <= outer->lo + outer->bytes;
}

/// `b` begins, and `a`, which lives, has some of its bytes.
static tide_status meet(const placer *p, const run *a, const run *b) {
    if (a->end != b->begin || a->begin == b->begin || !(lies_in(a, b) || lies_in(b, a))) return contradict(p, a, b);
    bind(p, a->value, b->value);
    return TIDE_OK;
}

static tide_status meet_live(const placer *p, const run *b) {
    tide_block_span s;
    const tide_block_span at = {.begin = b->lo};
    if (tide_block_tree_before(&p->live, at, &s) && s.begin + s.bytes > b->lo) TIDE_TRY(meet(p, &p->runs[s.id], b));
    for (bool has = tide_block_tree_at_least(&p->live, at, &s); has && s.begin < b->lo + b->bytes;) {
        TIDE_TRY(meet(p, &p->runs[s.id], b));
        has = tide_block_tree_at_least(&p->live, (tide_block_span){.begin = s.begin + 1}, &s);
    }
    return TIDE_OK;
}

static tide_block_span span_of(const placer *p, size_t i) {
    return (tide_block_span){.begin = p->runs[i].lo, .bytes = p->runs[i].bytes, .id = (uint32_t)i};
}

/// Take out what has ended before step `end`, or in it if it began before step `begin`.
static void expire(placer *p, size_t *next, size_t stop, int64_t end, int64_t begin) {
    for (; *next < stop; ++*next) {
        const run_end *e = &p->ends[*next];
        if (e->end > end || (e->end == end && e->begin >= begin)) return;
        tide_block_tree_remove(&p->live, span_of(p, e->i));
    }
}

/// Runs [first, stop) of one allocation. What begins in a step meets what lives, then takes its place.
static tide_status sweep(placer *p, size_t first, size_t stop) {
    size_t next_end = first;
    for (size_t i = first, k; i < stop; i = k) {
        const int64_t step = p->runs[i].begin;
        expire(p, &next_end, stop, step - 1, step);
        for (k = i; k < stop && p->runs[k].begin == step; k++) TIDE_TRY(meet_live(p, &p->runs[k]));
        expire(p, &next_end, stop, step, step);
        for (size_t j = i; j < k; j++) {
            TIDE_TRY(meet_live(p, &p->runs[j])); // others that begin here
            if (tide_block_tree_insert(&p->live, span_of(p, j)) != TIDE_OK)
                return TIDE_NO_MEMORY(p->err, "to read '%s'", p->x->of_values.path);
        }
    }
    return TIDE_OK;
}

static tide_status place(placer *p) {
    find_runs(p);
    for (size_t i = 0, k; i < p->n; i = k) {
        for (k = i + 1; k < p->n && p->runs[k].allocation == p->runs[i].allocation;) k++;
        TIDE_TRY(sweep(p, i, k));
        tide_block_tree_deinit(&p->live);
        p->live = (tide_block_tree){0};
    }
    return TIDE_OK;
}

tide_status tide__xla_place(const tide__xla *x, const uint32_t *items, tide__together *t, tide_error *err) {
    placer p = {.x = x, .items = items, .t = t, .err = err};
    tide_status st = TIDE_NEW(&p.runs, x->n_values, err, "to read '%s'", x->of_values.path);
    if (st == TIDE_OK) st = TIDE_NEW(&p.ends, x->n_values, err, "to read '%s'", x->of_values.path);
    if (st == TIDE_OK) st = place(&p);
    tide_block_tree_deinit(&p.live);
    tide_host_free(p.runs);
    tide_host_free(p.ends);
    return st;
}
