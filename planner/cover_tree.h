// SPDX-License-Identifier: MIT
//
// cover tree: which bytes are covered by the live rectangles of alias classes, by whom, and how many. Rectangles of one
// class may overlap each other, so neither a set of neighbours nor a sum of sizes would do. The verifier keeps those of
// classes with several members in one. Private to the verifier.
//
// A segment tree over the byte positions at which some rectangle begins or ends (J. L. Bentley, "Algorithms for Klee's
// rectangle problems", 1977), in which each node also knows whose the covered bytes below it are. n log n in all,
// whatever the rectangles look like.
//
//     positions    0      32      64              96     [0, 32) of class 5, [32, 96) of class 7:
//     leaves       |  0   |   1   |       2       |      node 2 covers 64 bytes of SEVERAL, leaves 1 and 2 are
//                  [5.....][7.....][7.............]      covered whole by class 7
#ifndef TIDE_PLANNER_COVER_TREE_H
#define TIDE_PLANNER_COVER_TREE_H

#include <stdint.h>

#include "core/base/status.h"

#define TIDE_COVER_NONE UINT32_MAX
#define TIDE_COVER_SEVERAL (UINT32_MAX - 1)

typedef struct tide_cover_node {
    uint64_t covered; ///< bytes below this node that some rectangle covers
    uint32_t n_whole; ///< rectangles that cover all of the node and not all of its parent
    uint32_t owner;   ///< class of all covered bytes; NONE, SEVERAL
} tide_cover_node;

typedef struct tide_cover_tree {
    const uint64_t *positions; ///< [n_positions] ascending, distinct; borrowed
    size_t n_positions;
    size_t n_leaves;        ///< a power of two
    tide_cover_node *nodes; ///< [2 * n_leaves] root at 1, children of k at 2k and 2k + 1; owned
} tide_cover_tree;

/// Nothing covered. @return TIDE_ERR_NOMEM
tide_status tide__cover_tree_init(tide_cover_tree *t, const uint64_t *positions, size_t n_positions) TIDE_NODISCARD;
void tide__cover_tree_deinit(tide_cover_tree *t);
/// Whose bytes lie between positions `from` and `to` (indices): a class, NONE or SEVERAL.
uint32_t tide__cover_tree_owner(const tide_cover_tree *t, size_t from, size_t to);
/// The same for any bytes [lo, hi), lo < hi: between two neighbouring positions all bytes are covered or none is.
uint32_t tide__cover_tree_owner_of_bytes(const tide_cover_tree *t, uint64_t lo, uint64_t hi);
/// Cover from position `from` to `to` once more; what is covered there must be `owner`'s or no class's.
void tide__cover_tree_add(tide_cover_tree *t, size_t from, size_t to, uint32_t owner);
/// Undo one add of the same stretch.
void tide__cover_tree_remove(tide_cover_tree *t, size_t from, size_t to);
static inline uint64_t tide__cover_tree_bytes(const tide_cover_tree *t) { return t->nodes[1].covered; }

#endif
