// SPDX-License-Identifier: MIT
//
// window: a part of a placed problem around what makes its peak, as a problem of its own: items that live within a
// stretch of ticks may move, all others that reach into it are obstacles where they lie. So that local search need not
// place a million items to move a few. Private to local_search.
//
//     bytes |      top item          |  obstacles are cut at the window's edges
//           |    +--######--+        |
//           | ===|==  ###   |        |  =  reaches out of the window: stays
//           |    | ###   ## |        |  #  lies within: may move
//           |    |==========|====    |
//           +----+----------+--------+--> ticks
#ifndef TIDE_PLANNER_SEARCH_LOCAL_WINDOW_H
#define TIDE_PLANNER_SEARCH_LOCAL_WINDOW_H

#include "planner/problem.h"

typedef struct tide_window {
    tide_problem problem; ///< the movable items first, in the parent's order, then obstacles as fixed items
    uint32_t *items;      ///< [n_free] which of the parent's they are; owned
    size_t n_free;
} tide_window;

/// Ticks [begin, end) of `parent`, whose items lie at `offsets`. Cost O(parent's items). @return TIDE_ERR_NOMEM
tide_status tide__window_make(const tide_problem *parent, const uint64_t *offsets, uint32_t begin, uint32_t end,
                              tide_window *out, tide_error *err) TIDE_NODISCARD;
void tide__window_deinit(tide_window *w);

#endif
