// SPDX-License-Identifier: MIT
//
// placed index: which of the tensors placed so far are alive together with a given one, without a table of all pairs:
// O(n) memory however many conflicts there are. Strategies that take tensors in any order ask it; what it finds are
// the placed neighbours in the interference graph. Private to the planner.
//
// The tensors of a worklist are known beforehand: they are ranked by birth once, and a tree over the ranks holds the
// latest death of those that are placed. Alive together with [begin, end) is who is born before `end` and dies after
// `begin`:
//
//     latest death       9
//                    9       5          born before end: a range of ranks on the left;
//                  3   9   5   -        there the tree leads from one death after begin to the next
//     rank         0   1   2   3
#ifndef TIDE_PLANNER_PLACED_INDEX_H
#define TIDE_PLANNER_PLACED_INDEX_H

#include "planner/worklist.h"

typedef struct tide_placed_rank {
    int64_t begin_step;
    uint32_t work_i; ///< position in the worklist
} tide_placed_rank;

typedef struct tide_placed_index {
    tide_placed_rank *ranks; ///< [n] by birth, owned
    uint32_t *rank_of;       ///< [n] rank of each position in the worklist, owned
    int64_t *latest;         ///< [2 * n_leaves] the tree, root at 1; 0: nobody placed below; owned
    size_t n, n_leaves;
} tide_placed_index;

/// Over the tensors of `work`, none of them placed. @return TIDE_ERR_NOMEM
tide_status tide__placed_index_init(tide_placed_index *index, const tide_worklist *work) TIDE_NODISCARD;
void tide__placed_index_deinit(tide_placed_index *index);
/// The tensor at position `work_i` is placed from now on. O(log n).
void tide__placed_index_add(tide_placed_index *index, const tide_worklist *work, size_t work_i);
/**
 * Positions of the placed tensors that are alive together with `item`, in order of birth.
 *
 * @param out  [max]
 * @return how many were found; with more than `max` the search ends early, and max + 1 is returned
 * Cost O(log n) for each that is found, less where they lie close.
 */
size_t tide__placed_index_find(const tide_placed_index *index, const tide_lifetime *item, uint32_t *out, size_t max);

#endif
