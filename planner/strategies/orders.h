// SPDX-License-Identifier: MIT
//
// orders: the sequences in which greedy strategies, the portfolio and local search take the items of a problem. Ties
// always end in the item's index: the problem's order is canonical, so plans do not depend on the table's (S23-11).
// Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_ORDERS_H
#define TIDE_PLANNER_STRATEGIES_ORDERS_H

#include "planner/problem.h"

typedef enum tide_item_order {
    TIDE_ORDER_GIVEN,     ///< as the program makes them: by birth, then index
    TIDE_ORDER_BIRTH,     ///< birth, then larger first
    TIDE_ORDER_END,       ///< by death, then index
    TIDE_ORDER_DEATH,     ///< last death first, then larger first
    TIDE_ORDER_ALIGN,     ///< strictest alignment first: laid end to end in this order nothing needs padding
    TIDE_ORDER_SIZE,      ///< largest first
    TIDE_ORDER_SIZE_LONG, ///< largest first, longest first among equals
    TIDE_ORDER_SPAN,      ///< what lives for half of all ticks or more, then the rest, each largest first
    TIDE_ORDER_VOLUME,    ///< largest size x duration^0.3 first: between size and area
    TIDE_ORDER_DURATION,  ///< longest first, then larger first
    TIDE_ORDER_AREA,      ///< bytes x ticks, largest first
    TIDE_ORDER_CONFLICTS, ///< most neighbours first, then larger first
    TIDE_ORDER_BREADTH,   ///< the tick with the most live bytes first, there the largest first
    TIDE_N_ORDERS
} tide_item_order;

/**
 * The items of `problem` in that order.
 *
 * @param out  [problem->n] owned by the caller, tide_host_free
 * @return TIDE_ERR_NOMEM
 * Cost O(n log n).
 */
tide_status tide__order_make(const tide_problem *problem, tide_item_order order, uint32_t **out,
                             tide_error *err) TIDE_NODISCARD;

#endif
