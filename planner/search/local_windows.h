// SPDX-License-Identifier: MIT
//
// windows: improves a plan of a large problem part by part: a window of time around a top item, its items placed anew
// among what reaches in from outside (local_window.h), kept unless it is worse. Private to local_search.
#ifndef TIDE_PLANNER_SEARCH_LOCAL_WINDOWS_H
#define TIDE_PLANNER_SEARCH_LOCAL_WINDOWS_H

#include "planner/search/local_climb.h"

/**
 * Improve `offsets` [problem->n], a complete plan, until nothing ends above the target or the budget is over.
 *
 * @param changed  called with every plan that is another one now, no worse than before
 */
tide_status tide__local_windows(const tide_problem *problem, tide_local_budget *budget, uint64_t target_bytes,
                                uint64_t seed, uint64_t *offsets, void (*changed)(void *self, const uint64_t *offsets),
                                void *self, tide_error *err) TIDE_NODISCARD;

#endif
