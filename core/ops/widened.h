// SPDX-License-Identifier: MIT
//
// widened: operators on 16-bit floats whose kernels know float32 alone. Tensors stay as wide as the file has them;
// what a kernel reads is converted into its scratch, and what it makes is converted back: rounded once, to nearest.
//
//     x float16 -> | scratch: x float32 -> kernel -> y float32 | -> y float16
//
// An operator that can be cut into tiles (quant_cuts.h) is run tile by tile, so that the scratch stays small (the loops
// of tidemark.Quantised); any other one has its operands in the scratch as a whole.
#ifndef TIDE_CORE_OPS_WIDENED_H
#define TIDE_CORE_OPS_WIDENED_H

#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Set node->def to the row of such a node, and node->narrow to that of its operator, where its typed operand
/// (tide_op_note) is of `dtype` and the operator takes float32 and not that. The rule of registry.c for every node.
void tide_op_widen(tide_node *node, const tide_graph *g);

#ifdef __cplusplus
}
#endif
#endif
