// SPDX-License-Identifier: MIT
//
// How large what an operator makes can be, where the sizes of its operands have bounds but are not known.
#ifndef TIDE_CORE_OPS_BOUNDS_H
#define TIDE_CORE_OPS_BOUNDS_H

#include "core/graph/op_def.h"

/// The rule of an operator; NULL: it has none. Static.
tide_bound_rule tide_op_bound_rule(const char *domain, const char *name);

#endif
