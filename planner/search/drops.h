// SPDX-License-Identifier: MIT
//
// drops: the skyline's tree for items that are not plain: alignments that differ, several rectangles, fixed offsets.
// Items are dropped one after the other, each to the lowest place above all that are there, in order of offset. Private
// to planner/search.
//
// For plain items with any alignments all plans in which nothing can drop are found so: an exhausted tree is a proof.
// Shapes of several rectangles may also fit into each other where no order of dropping puts them: there it is none.
#ifndef TIDE_PLANNER_SEARCH_DROPS_H
#define TIDE_PLANNER_SEARCH_DROPS_H

#include "planner/search/skyline.h"

/// One item above another: at least `delta` grains higher.
typedef struct tide_drop_pair {
    uint32_t other;
    int64_t delta;
} tide_drop_pair;

/// Offsets that an item cannot have because of one with a fixed offset: lo < offset < hi.
typedef struct tide_drop_ban {
    int64_t lo, hi;
} tide_drop_ban;

/// What a tree of drops needs to know of a part, in grains.
typedef struct tide_drop_shapes {
    uint32_t *first_pair; ///< [n + 1]
    tide_drop_pair *pairs;
    uint32_t *first_ban;  ///< [n + 1]
    tide_drop_ban *bans;  ///< of one item together, by lo
    uint32_t *first_rect; ///< [n + 1]
    tide_rect *rects;     ///< ticks from the part's first one; grains
    uint32_t *align;      ///< [n] grains
    uint32_t *fixed;      ///< [n] grains; UINT32_MAX: anywhere
    bool *is_twin;        ///< [n] the same as the item before
    uint32_t n_ticks;
    bool plain;
} tide_drop_shapes;

/// @return TIDE_ERR_NOMEM; TIDE_ERR_NO_SPACE: too many pairs
tide_status tide__drop_shapes_make(const tide_problem *problem, const tide_sky_part *part, tide_drop_shapes **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__drop_shapes_destroy(tide_drop_shapes *shapes);

#endif
