// SPDX-License-Identifier: MIT
//
// placer: places the items of a problem into one buffer in a given order, each into a gap between those placed before
// it. All greedy offset strategies are an order and a gap rule; the portfolio and local search run many orders over one
// placer, which keeps its memory between runs. Private to the planner.
//
// What is alive together with the new item, in order of offset, leaves gaps:
//
//     0        a          b        c
//     |  gap   [####]     [####]gap[####]  open end …
//
// First fit takes the lowest gap that holds the item, best fit the smallest; both fall back to the open end.
#ifndef TIDE_PLANNER_STRATEGIES_PLACER_H
#define TIDE_PLANNER_STRATEGIES_PLACER_H

#include "planner/problem.h"

typedef enum tide_gap_rule { TIDE_GAP_RULE_FIRST, TIDE_GAP_RULE_BEST } tide_gap_rule;

typedef struct tide_placer tide_placer;

/// Over `problem`, which is borrowed. One thread at a time; O(items + rectangles) memory, never a table of pairs.
tide_status tide__placer_create(const tide_problem *problem, tide_placer **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__placer_destroy(tide_placer *placer);
/**
 * Place all items in `order`; fixed ones are there from the start, wherever the order has them.
 *
 * @param order        [problem->n] a permutation of item indices
 * @param limit_bytes  stop as soon as an item would end above this; UINT64_MAX: never
 * @param offsets      out [problem->n]; without meaning when the limit was passed
 * @return the height reached; UINT64_MAX when it passed the limit, or when there was no memory (tide__placer_failed)
 */
uint64_t tide__placer_run(tide_placer *placer, const uint32_t *order, tide_gap_rule rule, uint64_t limit_bytes,
                          uint64_t *offsets);
/// Whether the last run ended for want of memory. The placer may be used again.
bool tide__placer_failed(const tide_placer *placer);

/// When a run may stop before its end, for searches that make many.
typedef struct tide_placer_limits {
    uint64_t limit_bytes;  ///< as above
    uint64_t target_bytes; ///< what ends above it adds to the excess: its end - target_bytes
    uint64_t max_excess;   ///< stop when the excess passes this; UINT64_MAX: never
    uint64_t deadline_ns;  ///< of tide_now_ns(); 0: none
    _Atomic bool *stop;    ///< may be NULL
    size_t n_known;        ///< the first items of the order that lie where `offsets` says already
} tide_placer_limits;

/**
 * The same within limits.
 *
 * @param excess    out, sum over all items that are not fixed; may be NULL
 * @param n_placed  added to: items that were placed; may be NULL
 * @return the height reached; UINT64_MAX when it stopped before the end
 */
uint64_t tide__placer_run_within(tide_placer *placer, const uint32_t *order, tide_gap_rule rule,
                                 const tide_placer_limits *limits, uint64_t *offsets, uint64_t *excess,
                                 uint64_t *n_placed);

#endif
