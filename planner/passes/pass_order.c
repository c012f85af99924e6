// SPDX-License-Identifier: MIT
//
// order: the order of operators with the smallest peak of what is alive. See passes.h; the cost is that of
// pass_order_model.h, so that the order is best after the alias passes.
//
//     steps -> nodes (late steps glued) -> windows, cut at nodes that all others wait for or follow
//     window: exact, best first -> where that is too wide: beam, then exact on short stretches around the peak
//     windows of thousands of nodes are cut anywhere first
//
// Cutting loses nothing: every order has run the same set when it comes to such a node, so what one window does is
// nothing to the next. The peak of the whole is the largest of the windows', which is also why a window need not do
// better than what another one, or a single step, costs anyhow: the floor.
//
// Finding the best order is NP-hard (Sethi 1975, "Complete register allocation problems"); on trees and series-parallel
// graphs it is not (Liu 1987, "An application of generalized tree pebbling to sparse matrix factorization"; Kayaaslan,
// Lambert, Marchal, Ucar 2018, "Scheduling series-parallel task graphs to minimize peak memory"). Search over the
// lattice of downsets is exact on any graph and short on narrow ones (Ahn et al. 2020, "Ordering chaos: memory-aware
// scheduling of irregularly wired neural networks for edge devices"; there level by level, here best first, with safe
// steps). Where the budget ends it, the given order is never made worse.
#include "planner/passes/pass_order.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

typedef struct driver {
    const tide__order_model *m;
    uint32_t *order;              ///< [n_nodes] the best so far
    uint32_t *room;               ///< [n_nodes] of one window
    int32_t *place;               ///< [n_nodes]
    uint64_t *transients, *alive; ///< [n_nodes], [n_nodes + 1] by position: while a node runs, before it runs
    uint64_t floor_bytes;
    uint64_t budget;
    tide__order_report *report;
} driver;

/// Positions [begin, end) of the order.
typedef struct stretch {
    uint32_t begin, end;
} stretch;

// ---- costs along the order ----

/// Transients of [s.begin, s.end), from what is alive before it: outside, a new order of the stretch changes nothing.
static void measure(driver *d, stretch s) {
    const tide__ran ran = {.place = d->place};
    for (uint32_t i = 0; i < d->m->n_nodes; i++) d->place[d->order[i]] = i < s.begin ? TIDE__RAN : TIDE__NOT_RAN;
    for (uint32_t i = s.begin; i < s.end; i++) {
        const tide__effect effect = tide__order_model_effect(d->m, &ran, d->order[i], d->alive[i]);
        d->transients[i] = effect.transient_bytes;
        d->alive[i + 1] = effect.after_bytes;
        d->place[d->order[i]] = TIDE__RAN;
    }
}

static uint64_t peak_of(const driver *d, stretch s) {
    uint64_t peak = 0;
    for (uint32_t i = s.begin; i < s.end; i++) {
        if (d->transients[i] > peak) peak = d->transients[i];
    }
    return peak;
}

// ---- one window ----

static tide__window window_of(driver *d, stretch s, uint64_t bound, uint64_t *budget) {
    for (uint32_t i = 0; i < d->m->n_nodes; i++)
        d->place[d->order[i]] = i < s.begin ? TIDE__RAN : i >= s.end ? TIDE__NOT_RAN : (int32_t)(i - s.begin);
    return (tide__window){.m = d->m,
                          .nodes = d->order + s.begin,
                          .n = s.end - s.begin,
                          .place = d->place,
                          .live_bytes = d->alive[s.begin],
                          .floor_bytes = d->floor_bytes,
                          .bound_bytes = bound,
                          .budget = budget};
}

static void take_result(driver *d, stretch s, const tide__window_result *r) {
    d->report->n_states += r->n_states;
    if (!r->found) return;
    memcpy(d->order + s.begin, d->room, (s.end - s.begin) * sizeof *d->order);
    measure(d, s);
}

/// Uses at most `share` of the budget.
static tide_status try_exact(driver *d, stretch s, uint64_t bound, uint64_t share, tide__window_result *r,
                             tide_error *err) {
    uint64_t budget = share < d->budget ? share : d->budget;
    d->budget -= budget;
    const tide__window w = window_of(d, s, bound, &budget);
    TIDE_TRY(tide__window_exact(&w, d->room, r, err));
    d->budget += budget;
    take_result(d, s, r);
    return TIDE_OK;
}

static tide_status try_beam(driver *d, stretch s, uint32_t width, uint64_t share, tide_error *err) {
    uint64_t budget = share < d->budget ? share : d->budget;
    d->budget -= budget;
    tide__window_result r;
    const tide__window w = window_of(d, s, peak_of(d, s), &budget);
    TIDE_TRY(tide__window_beam(&w, width, d->room, &r, err));
    d->budget += budget;
    take_result(d, s, &r);
    return TIDE_OK;
}

/// A beam of width 1 measures what a beam costs; then one as wide as half of the budget allows.
static tide_status widen(driver *d, stretch s, tide_error *err) {
    enum { MAX_WIDTH = 1024, MAX_WORDS = 1 << 22 };
    const uint64_t before = d->budget;
    TIDE_TRY(try_beam(d, s, 1, d->budget, err));
    const uint64_t cost = before - d->budget + 1;
    uint64_t width = d->budget / 2 / cost;
    const uint64_t words = (s.end - s.begin) / 16 + 1;
    if (width > MAX_WIDTH) width = MAX_WIDTH;
    if (width * words > MAX_WORDS) width = MAX_WORDS / words;
    if (width < 2 || peak_of(d, s) <= d->floor_bytes) return TIDE_OK;
    return try_beam(d, s, (uint32_t)width, d->budget / 2, err);
}

// ---- short stretches around the peak ----

static stretch around(stretch s, uint32_t at, uint32_t n, uint32_t before) {
    const uint32_t begin = at - s.begin > before ? at - before : s.begin;
    return (stretch){begin, s.end - begin > n ? begin + n : s.end};
}

/// The first step at the peak of `s`: look for a better order of `n` steps around it, where it is the last, in the
/// middle, or the first of them.
static tide_status improve_peak(driver *d, stretch s, uint32_t n, bool *improved, tide_error *err) {
    const uint64_t peak = peak_of(d, s);
    uint32_t at = s.begin;
    while (d->transients[at] < peak) at++;
    *improved = false;
    for (uint32_t k = 0; k < 3 && !*improved && d->budget > 0; k++) {
        tide__window_result r;
        const uint32_t before[] = {n / 2, n - 1, 0};
        TIDE_TRY(try_exact(d, around(s, at, n, before[k]), peak, d->budget / 4 + 1, &r, err));
        *improved = r.found;
    }
    return TIDE_OK;
}

static tide_status improve_around_peak(driver *d, stretch s, tide_error *err) {
    enum { SHORTEST = 8, LONGEST = 64 };
    for (uint32_t n = SHORTEST; n <= LONGEST && d->budget > 0 && peak_of(d, s) > d->floor_bytes;) {
        bool improved;
        TIDE_TRY(improve_peak(d, s, n, &improved, err));
        if (!improved) n *= 2;
    }
    return TIDE_OK;
}

/// The best order of a window that can be found for `share` of the budget.
static tide_status solve(driver *d, stretch s, uint64_t share, tide_error *err) {
    const uint64_t peak = peak_of(d, s);
    if (peak <= d->floor_bytes) return TIDE_OK;
    tide__window_result r;
    TIDE_TRY(try_exact(d, s, peak, share / 2, &r, err));
    if (!r.exact) {
        const uint64_t kept = d->budget > share / 2 ? d->budget - share / 2 : 0;
        d->budget -= kept;
        TIDE_TRY(widen(d, s, err));
        TIDE_TRY(improve_around_peak(d, s, err));
        d->budget += kept;
        if (peak_of(d, s) > d->floor_bytes) d->report->exact = false;
    }
    // What this window costs, the whole costs.
    if (peak_of(d, s) > d->floor_bytes) d->floor_bytes = peak_of(d, s);
    return TIDE_OK;
}

// ---- all windows ----

/// Nodes stand in an order that can run. Node i is a cut when every node before it has a successor up to i, so that all
/// paths from there come to i, and every node behind it a predecessor from i on.
static uint32_t list_windows(const tide__order_model *m, stretch *out, uint32_t *last_before) {
    const uint32_t n = (uint32_t)m->n_nodes;
    // last_before[i]: the smallest, over all nodes behind i, of their largest predecessor + 1; 0: one has none
    uint32_t least = n;
    for (uint32_t i = n; i-- > 0;) {
        last_before[i] = least;
        const tide__span before = m->nodes[i].before;
        const uint32_t last = before.n > 0 ? m->before[before.first + before.n - 1] + 1 : 0;
        if (last < least) least = last;
    }
    uint32_t n_windows = 0, begin = 0,
             first_behind = 0; // the largest, over all nodes before i, of their first successor
    for (uint32_t i = 0; i < n; i++) {
        if (first_behind <= i && last_before[i] > i) {
            if (i > begin) out[n_windows++] = (stretch){begin, i};
            out[n_windows++] = (stretch){i, i + 1};
            begin = i + 1;
        }
        const tide__span behind = m->nodes[i].behind;
        const uint32_t first = behind.n > 0 ? m->behind[behind.first] : UINT32_MAX;
        if (first > first_behind) first_behind = first;
    }
    if (begin < n) out[n_windows++] = (stretch){begin, n};
    return n_windows;
}

/// Windows that are too long for a beam are cut at fixed lengths. The result is then not exact.
static uint32_t split_windows(stretch *windows, uint32_t n, bool *split) {
    enum { LONGEST = 2048 };
    const uint32_t n_whole = n;
    for (uint32_t k = 0; k < n_whole; k++) {
        for (; windows[k].end - windows[k].begin > LONGEST; windows[k].begin += LONGEST) {
            windows[n++] = (stretch){windows[k].begin, windows[k].begin + LONGEST};
            *split = true;
        }
    }
    return n;
}

static int by_length(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    const uint32_t x_len = x->end - x->begin, y_len = y->end - y->begin;
    if (x_len != y_len) return x_len < y_len ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/// Short windows first: budget that they do not use goes to the long ones.
static tide_status solve_all(driver *d, stretch *windows, uint32_t n, tide_error *err) {
    qsort(windows, n, sizeof *windows, by_length);
    uint64_t left = 0;
    for (uint32_t k = 0; k < n; k++) left += windows[k].end - windows[k].begin;
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t len = windows[k].end - windows[k].begin;
        TIDE_TRY(solve(d, windows[k], d->budget / left * len + d->budget % left * len / left, err));
        left -= len;
    }
    return TIDE_OK;
}

/// Windows whose given order costs no more than the whole get it back.
static void keep_given(driver *d, const stretch *windows, uint32_t n, const uint64_t *given_peaks) {
    for (uint32_t k = 0; k < n; k++) {
        if (given_peaks[windows[k].begin] > d->floor_bytes) continue;
        for (uint32_t i = windows[k].begin; i < windows[k].end; i++) d->order[i] = i;
    }
}

/// Improve around the peak across the cuts at fixed lengths.
static tide_status improve_all(driver *d, tide_error *err) {
    const stretch all = {0, (uint32_t)d->m->n_nodes};
    if (peak_of(d, all) <= d->m->floor_bytes) return TIDE_OK;
    d->report->exact = false;
    d->floor_bytes = d->m->floor_bytes;
    return improve_around_peak(d, all, err);
}

static tide_status run(driver *d, tide_error *err) {
    const size_t n = d->m->n_nodes;
    d->order = tide_host_calloc(n + 1, sizeof *d->order);
    d->room = tide_host_calloc(n + 1, sizeof *d->room);
    d->place = tide_host_calloc(n + 1, sizeof *d->place);
    d->transients = tide_host_calloc(n + 1, sizeof *d->transients);
    d->alive = tide_host_calloc(n + 2, sizeof *d->alive);
    stretch *windows = tide_host_calloc(n + 1, 2 * sizeof *windows);
    uint64_t *given_peaks = tide_host_calloc(n + 1, sizeof *given_peaks); // by the window's first position
    tide_status st = TIDE_OK;
    if (d->order == NULL || d->room == NULL || d->place == NULL || d->transients == NULL || d->alive == NULL ||
        windows == NULL || given_peaks == NULL) {
        st = TIDE_NO_MEMORY(err, "for an order of %zu steps", n);
    } else {
        for (uint32_t i = 0; i < n; i++) d->order[i] = i;
        measure(d, (stretch){0, (uint32_t)n});
        bool split = false;
        uint32_t n_windows = list_windows(d->m, windows, d->room);
        d->report->n_windows = n_windows;
        n_windows = split_windows(windows, n_windows, &split);
        for (uint32_t k = 0; k < n_windows; k++) given_peaks[windows[k].begin] = peak_of(d, windows[k]);
        st = solve_all(d, windows, n_windows, err);
        if (st == TIDE_OK && split)
            st = improve_all(d, err);
        else if (st == TIDE_OK)
            keep_given(d, windows, n_windows, given_peaks);
    }
    tide_host_free(windows);
    tide_host_free(given_peaks);
    return st;
}

static void driver_deinit(driver *d) {
    tide_host_free(d->order);
    tide_host_free(d->room);
    tide_host_free(d->place);
    tide_host_free(d->transients);
    tide_host_free(d->alive);
}

// ---- steps ----

static void list_steps(const tide__order_model *m, const uint32_t *nodes, uint32_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_nodes; i++) {
        const tide__span steps = m->nodes[nodes[i]].steps;
        for (uint32_t k = 0; k < steps.n; k++) out[n++] = m->steps[steps.first + k];
    }
    TIDE_ASSERT(n == m->n_steps);
}

/// `order` holds the given order, and keeps it unless there is a better one.
static tide_status improve(const tide__order_facts *f, const tide__order_model *plain, uint64_t budget, uint32_t *order,
                           tide__order_report *report, tide_error *err) {
    tide__order_model m;
    TIDE_TRY(tide__order_model_make(f, true, &m, err));
    report->n_nodes = m.n_nodes;
    driver d = {.m = &m, .floor_bytes = m.floor_bytes, .budget = budget, .report = report};
    uint32_t *steps = tide_host_calloc(f->n_steps + 1, sizeof *steps);
    tide_status st = steps != NULL ? run(&d, err) : TIDE_NO_MEMORY(err, "for an order of %zu steps", f->n_steps);
    uint64_t peak = report->given_bytes;
    if (st == TIDE_OK) {
        list_steps(&m, d.order, steps);
        st = tide__order_model_peak(plain, steps, NULL, &peak, err);
    }
    if (st == TIDE_OK && peak < report->given_bytes) {
        memcpy(order, steps, f->n_steps * sizeof *order);
        report->best_bytes = peak;
    }
    report->n_visits = budget - d.budget;
    tide_host_free(steps);
    driver_deinit(&d);
    tide__order_model_deinit(&m);
    return st;
}

tide_status tide__order_run(const tide__order_facts *f, uint64_t budget, uint32_t *order, tide__order_report *report,
                            tide_error *err) {
    tide__order_model plain;
    TIDE_TRY(tide__order_model_make(f, false, &plain, err));
    *report = (tide__order_report){.exact = true, .n_nodes = f->n_steps};
    for (uint32_t i = 0; i < f->n_steps; i++) order[i] = i;
    tide_status st = tide__order_model_peak(&plain, order, NULL, &report->given_bytes, err);
    report->best_bytes = report->given_bytes;
    if (st == TIDE_OK && report->given_bytes > plain.floor_bytes)
        st = improve(f, &plain, budget != 0 ? budget : TIDE__ORDER_BUDGET, order, report, err);
    TIDE_ASSERT(st != TIDE_OK || report->best_bytes <= report->given_bytes);
    TIDE_ASSERT(st != TIDE_OK || plain.floor_bytes <= report->best_bytes);
    tide__order_model_deinit(&plain);
    return st;
}

tide_status tide__order_given_peak(const tide__order_facts *f, uint64_t *bytes, tide_error *err) {
    tide__order_model plain;
    TIDE_TRY(tide__order_model_make(f, false, &plain, err));
    uint32_t *order = tide_host_calloc(f->n_steps + 1, sizeof *order);
    tide_status st = order != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for an order of %zu steps", f->n_steps);
    for (uint32_t i = 0; st == TIDE_OK && i < f->n_steps; i++) order[i] = i;
    if (st == TIDE_OK) st = tide__order_model_peak(&plain, order, NULL, bytes, err);
    tide_host_free(order);
    tide__order_model_deinit(&plain);
    return st;
}

tide_status tide_pass_order(const tide_program *program, const tide_pass_options *opt, uint32_t *out,
                            uint64_t *peak_bytes, tide_error *err) {
    tide__fact_source source;
    tide__order_facts f;
    tide__order_report report;
    TIDE_TRY(tide__fact_source_init(&source, program, opt, err));
    tide_status st = tide__order_facts_of(&source, NULL, 0, &f, err);
    tide__fact_source_deinit(&source);
    TIDE_TRY(st);
    st = tide__order_run(&f, opt->order_states, out, &report, err);
    if (st == TIDE_OK) *peak_bytes = report.best_bytes;
    tide__order_facts_deinit(&f);
    return st;
}
