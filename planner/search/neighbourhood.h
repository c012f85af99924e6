// SPDX-License-Identifier: MIT
//
// neighbourhood: improves a plan of a large problem part by part, as large neighbourhood search does (Shaw 1998). A
// neighbourhood is a stretch of ticks around an item that ends too high. Items that live within it are placed anew by a
// few climbs (local_climb.h); all others that reach into it are obstacles where they lie. The new places are kept
// unless they are worse. So local search need not place a million items to move a few. Private to local_search.
//
//     bytes |      top item          |  obstacles are cut at the edges of the stretch
//           |    +--######--+        |
//           | ===|==  ###   |        |  =  reaches out: stays
//           |    | ###   ## |        |  #  lies within: may move
//           |    |==========|====    |
//           +----+----------+--------+--> ticks
#ifndef TIDE_PLANNER_SEARCH_NEIGHBOURHOOD_H
#define TIDE_PLANNER_SEARCH_NEIGHBOURHOOD_H

#include "planner/search/local_climb.h"

typedef struct tide_neighbourhood {
    tide_problem problem; ///< the movable items first, in the parent's order, then obstacles as fixed items
    uint32_t *items;      ///< [n_free] which of the parent's they are; owned
    size_t n_free;
} tide_neighbourhood;

/// Ticks [begin, end) of `parent`, whose items lie at `offsets`. Cost O(parent's items). @return TIDE_ERR_NOMEM
tide_status tide__neighbourhood_make(const tide_problem *parent, const uint64_t *offsets, uint32_t begin, uint32_t end,
                                     tide_neighbourhood *out, tide_error *err) TIDE_NODISCARD;
void tide__neighbourhood_deinit(tide_neighbourhood *w);

/**
 * Improve `offsets` [problem->n], a complete plan, until nothing ends above the target or the budget is over.
 *
 * @param changed  called with every plan that is another one now, no worse than before
 */
tide_status tide__improve_by_neighbourhoods(const tide_problem *problem, tide_local_budget *budget,
                                            uint64_t target_bytes, uint64_t seed, uint64_t *offsets,
                                            void (*changed)(void *self, const uint64_t *offsets), void *self,
                                            tide_error *err) TIDE_NODISCARD;

#endif
