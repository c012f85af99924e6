// SPDX-License-Identifier: MIT
//
// Every row of the operator registry, once. A row XX(conv) is the object `tide_op_conv` in the operator's file; the
// table, its look-up and the declarations all come from here. One operator: one file (or a family that is one
// algorithm), one line.
#ifndef TIDE_CORE_OPS_OP_LIST_H
#define TIDE_CORE_OPS_OP_LIST_H

#include "core/graph/op_def.h"

/// Operators that run on oneDNN.
#define TIDE_OP_LIST_NN(XX)

/// Operators in plain loops: data movement, shapes, elementwise on any type, reductions.
#define TIDE_OP_LIST_DATA(XX)

#define TIDE_OP_LIST(XX) TIDE_OP_LIST_NN(XX) TIDE_OP_LIST_DATA(XX)

#define XX(name) extern const tide_op_def tide_op_##name;
TIDE_OP_LIST(XX)
#undef XX

#endif
