// SPDX-License-Identifier: MIT
//
// timeline: births and deaths of a problem's items in the order in which a run would see them, for strategies that act
// as allocators do. At each tick what has died gives its bytes back first, for lifetimes are half-open. An item is
// held from its first rectangle to its last, gaps included; members of apart sets, whose last rectangle lies behind all
// ticks, are never given back. Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_TIMELINE_H
#define TIDE_PLANNER_STRATEGIES_TIMELINE_H

#include "planner/strategies/orders.h"

typedef tide_status tide_timeline_fn(void *self, uint32_t item_i, tide_error *err);

/**
 * Call `born` and `died` for each item once: births of a tick in `order` (TIDE_ORDER_GIVEN: by index;
 * TIDE_ORDER_BIRTH: larger first), deaths by tick, then index. Stops at the first error and returns it.
 */
tide_status tide__timeline_walk(const tide_problem *problem, tide_item_order order, tide_timeline_fn *born,
                                tide_timeline_fn *died, void *self, tide_error *err) TIDE_NODISCARD;

#endif
