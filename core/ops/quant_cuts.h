// SPDX-License-Identifier: MIT
//
// quant_cuts: how an operator is cut into tiles, so that its kernel can run on a part of its operands at a time: a part
// of quantised tensors is dequantised into scratch, the kernel of real numbers runs on it, and what it makes is
// quantised. The scratch is of tiles and never of whole tensors (quantised.c).
//
//     loops      count[0] x count[1] x …, the last one innermost
//     operand    a box of extents `tile` that begins at base + sum of index[l] * step[l] (on axis dim[l]), over all
//     loops
//
// A box may reach past its tensor: what is not there is 0, and of what is written it is dropped.
#ifndef TIDE_CORE_OPS_QUANT_CUTS_H
#define TIDE_CORE_OPS_QUANT_CUTS_H

#include "core/ops/op_util.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_CUT_MAX_INPUTS = 12, TIDE_CUT_MAX_LOOPS = TIDE_MAX_RANK };

/// How one operand is cut.
typedef struct tide_cut_operand {
    bool is_cut;      ///< false: the kernel is handed all of it, as it is
    bool is_reshaped; ///< `shape` is not that of the tensor: its axes have no numbers
    tide_shape shape; ///< as the cut sees it; as many elements as the tensor has
    tide_shape tile;
    int64_t base[TIDE_MAX_RANK];      ///< may be below 0
    int8_t dim[TIDE_CUT_MAX_LOOPS];   ///< -1: the loop does not move it
    int64_t step[TIDE_CUT_MAX_LOOPS]; ///< elements of that axis
} tide_cut_operand;

typedef struct tide_cut {
    bool by_number; ///< each element of output 0 depends on that of input 0 alone
    int32_t n_loops;
    int64_t count[TIDE_CUT_MAX_LOOPS];
    tide_cut_operand in[TIDE_CUT_MAX_INPUTS];
    tide_cut_operand out;
    int64_t group;                     ///< attribute of the operator on a tile; 0: as it is
    size_t n_pads;                     ///< of the attribute pads on a tile; 0: as it is
    int64_t pads[2 * TIDE_WINDOW_MAX]; ///< [n_pads]
} tide_cut;

/// What an operator does to a quantised tensor.
typedef enum tide_quant_role {
    TIDE_QUANT_NONE, ///< it wants real numbers, all at once
    TIDE_QUANT_CUTS, ///< tide_cut_make may cut it
    TIDE_QUANT_MOVES, ///< its outputs 0 … hold elements of input 0 and no others, so it may as well move quantised ones
                      ///< (a Pad: and zeros)
    TIDE_QUANT_JOINS, ///< as above, of all inputs: Concat
} tide_quant_role;

tide_quant_role tide_quant_role_of(const tide_op_def *def);
/// Whether a node whose row MOVES does so with its attributes: a Resize that takes the nearest.
bool tide_quant_moves(const tide_node *node);
/**
 * Cut an operator.
 *
 * @param x    as the operator itself sees it: real numbers, all shapes known; a quantised operand has no data
 * @param out  filled; of operands that are left out nothing is cut
 * @return false: it cannot be cut for these shapes or attributes, or a tile would be no smaller than what it saves
 */
bool tide_cut_make(const tide_op_def *def, const tide_infer *x, tide_cut *out);

#ifdef __cplusplus
}
#endif
#endif
