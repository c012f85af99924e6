// SPDX-License-Identifier: MIT
//
// local search: better plans of large problems by changing the order in which a fast placer takes the items, around
// those that make the peak. For problems too large for the skyline's tree. Private to the planner.
#ifndef TIDE_PLANNER_SEARCH_LOCAL_SEARCH_H
#define TIDE_PLANNER_SEARCH_LOCAL_SEARCH_H

#include "planner/problem.h"

typedef struct tide_local_search_options {
    uint64_t seed;
    uint64_t deadline_ns;  ///< of tide_now_ns(); 0: none
    uint64_t node_limit;   ///< items placed; 0: none. One of the two limits must be there
    uint64_t target_bytes; ///< good enough: stop at or below it
    _Atomic bool *stop;    ///< may be NULL; true: end now
} tide_local_search_options;

/**
 * Improve `best`, which holds a complete plan; it is never made worse. Depends on nothing but problem, start, seed and
 * node limit where no deadline cuts it. *n_nodes (may be NULL): items placed.
 */
tide_status tide__local_search(const tide_problem *problem, const tide_local_search_options *opt, tide_placement *best,
                               uint64_t *n_nodes, tide_error *err) TIDE_NODISCARD;

#endif
