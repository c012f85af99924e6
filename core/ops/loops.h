// SPDX-License-Identifier: MIT
//
// loops: a nest of loops over several strided operands, merged to as few loops as the strides allow. Elementwise
// operators walk the outer loops with it and write their own innermost one; strided_copy.h builds on it.
//
//     for each position of the outer loops:  row(at[0], at[1], …, n = dims[rank - 1], strides[op][rank - 1])
#ifndef TIDE_CORE_OPS_LOOPS_H
#define TIDE_CORE_OPS_LOOPS_H

#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TIDE_LOOPS_MAX_RANK = 2 * TIDE_MAX_RANK, ///< Tile and DepthToSpace split each axis in two
    TIDE_LOOPS_MAX_OPERANDS = 4,
};

typedef struct tide_loops {
    int32_t rank; ///< 1 or more
    int32_t n_operands;
    int64_t dims[TIDE_LOOPS_MAX_RANK];                             ///< outermost first; elements
    int64_t strides[TIDE_LOOPS_MAX_OPERANDS][TIDE_LOOPS_MAX_RANK]; ///< elements; 0 repeats, negative walks back
} tide_loops;

/// Where a walk through the outer loops stands. Zero-initialise.
typedef struct tide_loops_pos {
    int64_t index[TIDE_LOOPS_MAX_RANK];
    int64_t at[TIDE_LOOPS_MAX_OPERANDS]; ///< offset of the row's first element in each operand
} tide_loops_pos;

/**
 * Set up a nest: drops loops of one turn and merges neighbours that all operands walk as one.
 *
 * @param strides  [n_operands] arrays of [rank] element strides
 * @return false when an extent is 0: there is nothing to walk
 */
bool tide_loops_init(tide_loops *l, int32_t rank, const int64_t *dims, int32_t n_operands,
                     const int64_t *const *strides);
/// The nest of an elementwise operator: operand 0 is `out`, dense; the others broadcast to it.
bool tide_loops_init_broadcast(tide_loops *l, const tide_operand *out, int32_t n_inputs,
                               const tide_operand *const *inputs);
/// Step the innermost but `n_inner` loops. @return false past the last position
bool tide_loops_next(const tide_loops *l, int32_t n_inner, tide_loops_pos *pos);

#ifdef __cplusplus
}
#endif
#endif
