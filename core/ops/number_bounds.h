// SPDX-License-Identifier: MIT
//
// number_bounds: numbers that shapes are made of, where they are calculated while running: between which they lie, and
// how large what is made by them can be.
#ifndef TIDE_CORE_OPS_NUMBER_BOUNDS_H
#define TIDE_CORE_OPS_NUMBER_BOUNDS_H

#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Fill x->out_numbers for output 0, whose shape is known. It stays as it is where the operator has no rule.
void tide_op_number_bounds(tide_bounds *x);

/// Sizes that rise with the numbers of an operand (ConstantOfShape, Tile, Pad, Resize by sizes): what infer() says of
/// the largest and the smallest of them. @return false: nothing follows
bool tide_bound_by_numbers(tide_bounds *x);
/// Range between integers.
bool tide_bound_range(tide_bounds *x);
/// Expand to a calculated shape.
bool tide_bound_expand(tide_bounds *x);

#ifdef __cplusplus
}
#endif
#endif
