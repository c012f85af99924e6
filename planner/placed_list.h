// SPDX-License-Identifier: MIT
//
// placed list: places tensors one after the other into one buffer, each into a gap between those placed before it.
// What the offset strategies share: they differ in order and gap rule. Private to the planner.
//
// The tensors that are alive together with the new one, in order of offset, leave gaps between them:
//
//     0        a          b        c
//     |  gap   [####]     [####]gap[####]  open end …
//
// First fit takes the lowest gap that holds the new tensor, best fit the smallest; both fall back to the open end.
#ifndef TIDE_PLANNER_PLACED_LIST_H
#define TIDE_PLANNER_PLACED_LIST_H

#include "planner/worklist.h"

typedef enum tide_gap_rule { TIDE_GAP_RULE_FIRST, TIDE_GAP_RULE_BEST } tide_gap_rule;

/**
 * Place everything on `work` in its order; sets offsets and bytes of `plan`.
 *
 * Cost for each tensor: with k placed ones alive beside it O(k log n) while k is small against n, O(n) otherwise.
 */
tide_status tide__place_in_order(tide_memory_plan *plan, const tide_worklist *work, tide_gap_rule rule,
                                 tide_error *err) TIDE_NODISCARD;

#endif
