// SPDX-License-Identifier: MIT
//
// placer: see placer.h. A greedy run asks the space for each item's place and takes it; see space.h for how.
#include "planner/strategies/placer.h"

#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/cancel.h"
#include "planner/strategies/space.h"

enum { PLACED_PER_LOOK = 256 }; // at clock and stop flag

struct tide_placer {
    const tide_problem *problem;
    tide_space *space;
    tide_space_window *windows; // [rectangles of the item that has most]
    uint64_t min_bytes;         // height of the lowest rectangle
    bool failed;
};

static size_t most_rects(const tide_problem *p) {
    size_t most = 1;
    for (size_t i = 0; i < p->n; i++) most = p->items[i].n_rects > most ? p->items[i].n_rects : most;
    return most;
}

static uint64_t lowest_rect(const tide_problem *p) {
    uint64_t lowest = UINT64_MAX;
    for (size_t r = 0; r < p->n_rects; r++) {
        const uint64_t bytes = p->rects[r].hi_bytes - p->rects[r].lo_bytes;
        if (bytes < lowest) lowest = bytes;
    }
    return lowest;
}

tide_status tide__placer_create(const tide_problem *problem, tide_placer **out, tide_error *err) {
    tide_placer *placer = tide_host_calloc(1, sizeof *placer);
    tide_status st = placer == NULL ? TIDE_ERR_NOMEM : TIDE_OK;
    if (st == TIDE_OK) {
        placer->problem = problem;
        placer->min_bytes = lowest_rect(problem);
        placer->windows = tide_host_calloc(most_rects(problem), sizeof *placer->windows);
        if (placer->windows == NULL) st = TIDE_ERR_NOMEM;
    }
    if (st == TIDE_OK)
        st = tide__space_create(problem->rects, problem->n_rects, problem->n_ticks, TIDE_SPACE_BLOCK_EVENTS,
                                &placer->space);
    if (st != TIDE_OK) {
        tide__placer_destroy(placer);
        return TIDE_FAIL(err, st, "no memory to place %zu tensors", problem->n);
    }
    *out = placer;
    return TIDE_OK;
}

void tide__placer_destroy(tide_placer *placer) {
    if (placer == NULL) return;
    tide__space_destroy(placer->space);
    tide_host_free(placer->windows);
    tide_host_free(placer);
}

/// The lowest aligned place at or above `from` that is free for all rectangles of the item; *last is the highest place
/// in the same gap.
static uint64_t next_place(tide_placer *placer, const tide_item *item, uint64_t from, uint64_t *last) {
    const tide_rect *rects = tide__rects_of(placer->problem, item);
    uint64_t at = from;
    uint32_t n_agree = 0;
    for (uint32_t r = 0; n_agree < item->n_rects; r = r + 1 < item->n_rects ? r + 1 : 0) {
        uint64_t run_end, to = (at + item->align_bytes - 1) & ~(item->align_bytes - 1);
        to = tide__space_next(&placer->windows[r], to + rects[r].lo_bytes, last != NULL ? &run_end : NULL) -
             rects[r].lo_bytes;
        if (to != at) {
            at = to;
            if (last != NULL) *last = UINT64_MAX;
            n_agree = 0;
        }
        if (at & (item->align_bytes - 1)) continue;
        n_agree++;
        if (last != NULL && run_end != UINT64_MAX && run_end - rects[r].hi_bytes < *last)
            *last = run_end - rects[r].hi_bytes;
    }
    TIDE_ASSERT(at >= from && at <= INT64_MAX && (last == NULL || *last >= at)); // the problem has no room above
    return at;
}

static uint64_t find_place(tide_placer *placer, const tide_item *item, tide_gap_rule rule) {
    const tide_rect *rects = tide__rects_of(placer->problem, item);
    for (uint32_t r = 0; r < item->n_rects; r++)
        tide__space_open(placer->space, rects[r].begin, rects[r].end, rects[r].hi_bytes - rects[r].lo_bytes,
                         &placer->windows[r]);
    if (rule == TIDE_GAP_RULE_FIRST) return next_place(placer, item, 0, NULL);
    uint64_t last = UINT64_MAX, at = next_place(placer, item, 0, &last);
    uint64_t best = TIDE_NO_OFFSET, best_slack = UINT64_MAX;
    while (last != UINT64_MAX) {
        if (last - at < best_slack) {
            best = at;
            best_slack = last - at;
            if (best_slack == 0) break;
        }
        const uint64_t from = last + 1;
        last = UINT64_MAX;
        at = next_place(placer, item, from, &last);
    }
    TIDE_ASSERT(best == TIDE_NO_OFFSET || best_slack < UINT64_MAX);
    return best != TIDE_NO_OFFSET ? best : at;
}

static bool put(tide_placer *placer, const tide_item *item, uint64_t at) {
    TIDE_ASSERT(at <= INT64_MAX - item->size_bytes);
    const tide_rect *rects = tide__rects_of(placer->problem, item);
    for (uint32_t r = 0; r < item->n_rects; r++) {
        if (!tide__space_take(placer->space, rects[r].begin, rects[r].end, at + rects[r].lo_bytes,
                              at + rects[r].hi_bytes))
            return false;
    }
    return true;
}

/// Fixed items are there from the start. @return their height; UINT64_MAX: no memory
static uint64_t put_fixed(tide_placer *placer, uint64_t *offsets) {
    const tide_problem *p = placer->problem;
    uint64_t height = 0;
    for (size_t i = 0; p->has_fixed && i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (item->fixed_offset == TIDE_NO_OFFSET) continue;
        offsets[i] = item->fixed_offset;
        if (!put(placer, item, offsets[i])) return UINT64_MAX;
        if (offsets[i] + item->size_bytes > height) height = offsets[i] + item->size_bytes;
    }
    return height;
}

static bool is_over(const tide_placer_limits *limits, size_t k) {
    if (k % PLACED_PER_LOOK != 0) return false;
    if (limits->stop != NULL && atomic_load_explicit(limits->stop, memory_order_relaxed)) return true;
    return tide__is_late(limits->deadline_ns);
}

uint64_t tide__placer_run_within(tide_placer *placer, const uint32_t *order, tide_gap_rule rule,
                                 const tide_placer_limits *limits, uint64_t *offsets, uint64_t *excess,
                                 uint64_t *n_placed) {
    const tide_problem *p = placer->problem;
    placer->failed = false;
    tide__space_reset(placer->space, placer->min_bytes);
    uint64_t height = put_fixed(placer, offsets), sum = 0;
    placer->failed = height == UINT64_MAX;
    size_t k = 0;
    for (; k < p->n && height <= limits->limit_bytes && sum <= limits->max_excess && !placer->failed; k++) {
        TIDE_ASSERT(order[k] < p->n);
        const tide_item *item = &p->items[order[k]];
        if (item->fixed_offset != TIDE_NO_OFFSET) continue;
        if (is_over(limits, k)) break;
        const uint64_t at = k < limits->n_known ? offsets[order[k]] : find_place(placer, item, rule);
        const uint64_t end = at + item->size_bytes;
        TIDE_ASSERT(at % item->align_bytes == 0 && end >= at);
        offsets[order[k]] = at;
        if (end > height) height = end;
        if (end > limits->target_bytes && !tide_add_u64(sum, end - limits->target_bytes, &sum)) sum = UINT64_MAX;
        placer->failed = !put(placer, item, at);
    }
    TIDE_ASSERT(k <= p->n && (k < p->n || placer->failed || height >= p->lower_bound_bytes));
    if (excess != NULL) *excess = sum;
    if (n_placed != NULL) *n_placed += k;
    const bool whole = k == p->n && height <= limits->limit_bytes && sum <= limits->max_excess && !placer->failed;
    return whole ? height : UINT64_MAX;
}

uint64_t tide__placer_run(tide_placer *placer, const uint32_t *order, tide_gap_rule rule, uint64_t limit_bytes,
                          uint64_t *offsets) {
    const tide_placer_limits limits = {
        .limit_bytes = limit_bytes, .target_bytes = UINT64_MAX, .max_excess = UINT64_MAX};
    return tide__placer_run_within(placer, order, rule, &limits, offsets, NULL, NULL);
}

bool tide__placer_failed(const tide_placer *placer) { return placer->failed; }
