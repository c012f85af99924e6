// SPDX-License-Identifier: MIT
//
// pairs: exact search for problems of any shape, by deciding for two items that meet in time which lies above. The
// skyline is far faster and wants plain rectangles whose sizes suit their alignment; this one takes stiff shapes of
// many rectangles, any alignments and given offsets, and its "none" is a proof. For small problems. Private to the
// planner.
#ifndef TIDE_PLANNER_SEARCH_PAIRS_H
#define TIDE_PLANNER_SEARCH_PAIRS_H

#include "planner/problem.h"

typedef enum tide_pairs_answer {
    TIDE_PAIRS_FOUND, ///< offsets of a plan of at most the capacity
    TIDE_PAIRS_NONE,  ///< there is none: every branch was ruled out
    TIDE_PAIRS_LIMIT, ///< nodes or time ran out
} tide_pairs_answer;

typedef struct tide_pairs tide_pairs;

enum { TIDE_PAIRS_MAX_ITEMS = 256 };

/// List the pairs of `problem`, which is borrowed. @return TIDE_ERR_NO_SPACE for more than TIDE_PAIRS_MAX_ITEMS items
tide_status tide__pairs_create(const tide_problem *problem, tide_pairs **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__pairs_destroy(tide_pairs *pairs);
/**
 * Is there a plan of at most `capacity_bytes`?
 *
 * @param capacity_bytes  of 2^61 and more: the answer is LIMIT
 * @param max_nodes    decisions that may be tried
 * @param deadline_ns  of tide_now_ns(); 0: none
 * @param offsets      out [problem->n], filled when the answer is FOUND
 * @param n_nodes      in and out, counted up
 * The answer depends on nothing but problem, capacity and max_nodes where no deadline cuts it.
 */
tide_status tide__pairs_search(tide_pairs *pairs, uint64_t capacity_bytes, uint64_t max_nodes, uint64_t deadline_ns,
                               uint64_t *offsets, tide_pairs_answer *answer, uint64_t *n_nodes,
                               tide_error *err) TIDE_NODISCARD;

/**
 * Improve `best`, which holds a complete plan, and raise what is proved: probes at the proved bound, then below the
 * best plan, until they meet or `max_nodes` or the deadline ends it. With a capacity (0: none) it is enough to know
 * whether there is a plan of at most that.
 *
 * @param n_nodes  in and out, counted up
 */
tide_status tide__pairs_improve(const tide_problem *problem, uint64_t capacity_bytes, uint64_t max_nodes,
                                uint64_t deadline_ns, tide_placement *best, uint64_t *n_nodes,
                                tide_error *err) TIDE_NODISCARD;

#endif
