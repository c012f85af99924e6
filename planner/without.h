// SPDX-License-Identifier: MIT
//
// without: the plan of a table from which some tensors are gone, never larger than the plan that has them.
//
//     plan of all        +--b--+            its offsets, b gone: a plan of the rest as well, though it may have holes
//                        |--a--|--c--|      where a plan made anew has none: the smaller of both is taken
//
// A strategy is a heuristic: made anew, the plan of fewer tensors can come out larger than that of all. What is left of
// the plan of all is a plan too, so the smaller of both never is.
#ifndef TIDE_PLANNER_WITHOUT_H
#define TIDE_PLANNER_WITHOUT_H

#include "planner/planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Take items out of a table: gone [lt->n]. What lies in one that goes must go too. TIDE_ERR_NOMEM: the table is as it
/// was.
tide_status tide_lifetimes_take_out(tide_lifetimes *lt, const bool *gone, tide_error *err) TIDE_NODISCARD;

/**
 * The plan without them: made anew by `strategy`, or what is left of `plan`, if that is smaller or cannot be made
 * smaller. Verified like any other.
 *
 * @param gone  [plan->lifetimes.n]: what lies in one that goes must go too, and nothing that persists goes
 * @param out   owned; (*out)->bytes <= plan->bytes
 * @return TIDE_ERR_NOMEM; what the verifier says
 */
tide_status tide_plan_without(const tide_memory_plan *plan, const bool *gone, const tide_strategy *strategy,
                              const tide_strategy_options *opt, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
