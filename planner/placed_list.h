// SPDX-License-Identifier: MIT
//
// placed list: the tensors an offset strategy has placed so far, by offset; finds the gap where the next one goes.
// Private to the planner.
//
// The tensors that are alive together with the new one, in order of offset, leave gaps between them:
//
//     0        a          b        c
//     |  gap   [####]     [####]gap[####]  open end …
//
// First fit takes the lowest gap that holds the new tensor, best fit the smallest; both fall back to the open end.
#ifndef TIDE_PLANNER_PLACED_LIST_H
#define TIDE_PLANNER_PLACED_LIST_H

#include "core/runtime/memory_plan.h"
#include "planner/worklist.h"

typedef enum tide_gap_rule { TIDE_GAP_RULE_FIRST, TIDE_GAP_RULE_BEST } tide_gap_rule;

typedef struct tide_placed_item {
    uint64_t begin_bytes, end_bytes; ///< half-open
    int64_t begin_step, end_step;
} tide_placed_item;

typedef struct tide_placed_list {
    tide_placed_item *items; ///< [n] by begin_bytes
    size_t n, cap;
} tide_placed_list;

/// Choose an offset for `item` and enter it. O(n).
tide_status tide__placed_list_put(tide_placed_list *list, const tide_lifetime *item, tide_gap_rule rule,
                                  uint64_t *offset, tide_error *err) TIDE_NODISCARD;
void tide__placed_list_deinit(tide_placed_list *list);

/// Place everything on `work` in its order; sets offsets and bytes of `plan`.
tide_status tide__place_in_order(tide_memory_plan *plan, const tide_worklist *work, tide_gap_rule rule,
                                 tide_error *err) TIDE_NODISCARD;

#endif
