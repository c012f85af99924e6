// SPDX-License-Identifier: MIT
//
// offset tree: the tree for items that are not plain: alignments that differ, several rectangles, fixed offsets. Items
// are placed one after the other in order of offset, each at the lowest place above all that are there. Private to
// planner/search.
//
// For plain items with any alignments this finds all plans in which no item can be lowered: an exhausted tree is a
// proof. Shapes of several rectangles may also fit into each other where no order of placing puts them: there it is no
// proof.
#ifndef TIDE_PLANNER_SEARCH_OFFSET_TREE_H
#define TIDE_PLANNER_SEARCH_OFFSET_TREE_H

#include "planner/search/skyline.h"

typedef struct tide_offset_shapes tide_offset_shapes;

/// @return TIDE_ERR_NOMEM; TIDE_ERR_NO_SPACE: too many pairs
tide_status tide__offset_shapes_make(const tide_problem *problem, const tide_sky_part *part, tide_offset_shapes **out,
                                     tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__offset_shapes_destroy(tide_offset_shapes *shapes);

/// The tree of a part that has shapes, from an empty stack.
tide_sky_result tide__offset_tree_run(tide_sky_tree *tree);

#endif
