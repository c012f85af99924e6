// SPDX-License-Identifier: MIT
//
// How large what an operator makes can be, where the sizes of its operands have bounds but are not known.
#ifndef TIDE_CORE_OPS_BOUNDS_H
#define TIDE_CORE_OPS_BOUNDS_H

#include "core/graph/op_def.h"

/// The rule of the node's operator; where it has none, or nothing follows from it, the types of the results alone.
/// @return false: not even those are known
bool tide_op_bound(tide_bounds *x);

#endif
