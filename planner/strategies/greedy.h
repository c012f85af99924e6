// SPDX-License-Identifier: MIT
//
// greedy: strategies that are an order and a rule. Items are taken in a fixed order, and each goes where a rule says;
// strategies.c has a row for each pair. Private to the planner.
//
//     stack    above the item before it: nothing is reused
//     pools    into a pool without a conflicting member (coloring.h)
//     offsets  into a gap between the items placed before it, in one buffer (placer.h); items with given offsets first
//     boxes    the same, after small items that live at about the same time are stacked into boxes (boxes.h). A box is
//              no higher than a 2^14th of the lower bound: where many are alive at once that costs about a tenth of a
//              percent and is several times faster
//
// Sources: Pisarchyk & Lee 2020, Greedy by Size and Greedy by Breadth. Their walk over the operators is turned round:
// an item's turn comes with the broadest of the ticks it lives in. Conflicts: the order of TVM's USMP
// greedy_by_conflicts, but with the gaps used that it leaves. Boxes after Buchsbaum, Karloff, Kenyon, Reingold & Thorup
// 2003. Pools: greedy colouring of the interference graph; the smallest pool that is large enough is a "shared object"
// of Pisarchyk & Lee (S23-11, S23-12, S23-13).
#ifndef TIDE_PLANNER_STRATEGIES_GREEDY_H
#define TIDE_PLANNER_STRATEGIES_GREEDY_H

#include "planner/planner.h"
#include "planner/strategies/coloring.h"
#include "planner/strategies/orders.h"
#include "planner/strategies/placer.h"

/// What tide_strategy.rule points to in the rows that use the functions below.
typedef struct tide_greedy_rule {
    tide_item_order order;
    tide_gap_rule gap;   ///< of offsets and boxes
    tide_pool_rule pool; ///< of pools
} tide_greedy_rule;

/// Each is a tide_strategy.place; `opt` is not used and may be NULL.
tide_status tide__greedy_stack(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) TIDE_NODISCARD;
tide_status tide__greedy_pools(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) TIDE_NODISCARD;
tide_status tide__greedy_offsets(const tide_strategy *self, const tide_problem *problem,
                                 const tide_strategy_options *opt, tide_placement *out, tide_error *err) TIDE_NODISCARD;
tide_status tide__greedy_boxes(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) TIDE_NODISCARD;

/// What the last of them does, for searches that need a first plan of very many items.
tide_status tide__place_in_boxes(const tide_problem *problem, const tide_greedy_rule *rule, tide_placement *out,
                                 tide_error *err) TIDE_NODISCARD;

#endif
