// SPDX-License-Identifier: MIT
//
// offset tree: the skyline's tree for items that are not plain: alignments that differ, several rectangles, fixed
// offsets. Items are dropped one after the other, each to the lowest place above all that are there, in order of
// offset. Private to planner/search.
//
// For plain items with any alignments all plans in which nothing can drop are found so: an exhausted tree is a proof.
// Shapes of several rectangles may also fit into each other where no order of dropping puts them: there it is none.
#ifndef TIDE_PLANNER_SEARCH_OFFSET_TREE_H
#define TIDE_PLANNER_SEARCH_OFFSET_TREE_H

#include "planner/search/skyline.h"

typedef struct tide_drop_shapes tide_drop_shapes;

/// @return TIDE_ERR_NOMEM; TIDE_ERR_NO_SPACE: too many pairs
tide_status tide__drop_shapes_make(const tide_problem *problem, const tide_sky_part *part, tide_drop_shapes **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__drop_shapes_destroy(tide_drop_shapes *shapes);

/// The tree of a part that has shapes, from an empty stack.
tide_sky_result tide__sky_drop(tide_sky_tree *tree);

#endif
