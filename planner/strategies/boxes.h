// SPDX-License-Identifier: MIT
//
// boxes: a coarser problem in which small items that live at about the same time are stacked into boxes, so that a
// million items become a few hundred thousand, few of them small. Whatever places the boxes places the items. Used by
// the strategy `boxed` and by local search. Private to the planner.
//
//     bytes |  +-----------------+   box: as long as its members together, as high as their sum;
//           |  | [m3       ]     |   what lies between the members is lost
//           |  |     [m2       ] |
//           |  |  [m1         ]  |
//           +--+-----------------+--> ticks
//
// Members of a box lie close together in the plane of births and deaths: the small items are cut into halves along the
// wider of the two axes until the sum of a half is no more than a box (a k-d tree, Bentley 1975). So boxes lose little,
// and what they lose is a part of the small items' share. Boxing small items before large ones is what Buchsbaum et al.
// 2003 ("OPT versus LOAD in dynamic storage allocation") do to come near the bound; their boxes pack, these stack.
#ifndef TIDE_PLANNER_STRATEGIES_BOXES_H
#define TIDE_PLANNER_STRATEGIES_BOXES_H

#include "planner/problem.h"

enum { TIDE_BOX_SHIFT = 14 }; ///< boxes of the lower bound / 2^14 lose about a tenth of a percent (measured)

typedef struct tide_boxes {
    tide_problem problem; ///< items: the boxes, and what stays alone; bounds are those of the problem they are made of
    uint32_t *members;    ///< [parent's n] its items, those of one box together; owned
    uint32_t *first;      ///< [problem.n + 1] into members; owned
    uint64_t *within;     ///< [parent's n] offset of each item in its box; owned
    uint64_t load_bytes;  ///< the boxes' own live sum at its peak: no placement of them is lower
} tide_boxes;

/**
 * Boxes of up to `box_bytes`. Plain items of no more than half of that take part; all others stay as they are.
 *
 * @return TIDE_ERR_NOMEM
 * Cost O(n log^2 n).
 */
tide_status tide__boxes_make(const tide_problem *parent, uint64_t box_bytes, tide_boxes *out,
                             tide_error *err) TIDE_NODISCARD;
void tide__boxes_deinit(tide_boxes *boxes);
/// From places of the boxes to places of the parent's items. @return the height of the highest item
uint64_t tide__boxes_unpack(const tide_boxes *boxes, const tide_problem *parent, const uint64_t *box_offsets,
                            uint64_t *offsets);

#endif
