// SPDX-License-Identifier: MIT
//
// attr_check: a node has no attribute but those that its row declares, each of the declared type. One that is mistyped,
// of another type or of another version would pass for one that is not there, and its default be taken in silence.
#ifndef TIDE_CORE_OPS_ATTR_CHECK_H
#define TIDE_CORE_OPS_ATTR_CHECK_H

#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Hold the attributes of `n` against `def`, the row that serves it. Two sorts of attributes every node may have: names
 * that begin with two underscores, which ONNX's own checker passes over as internal, and `consumed_inputs` of nodes
 * before opset 6, which only told what may be overwritten.
 *
 * @param rows  [n_rows] all that there are: another one of the operator may have the attribute, in other versions
 * @return TIDE_ERR_BAD_INPUT naming node and attribute, and why: unknown (the hint has the nearest one), of a later or
 *         earlier opset, of another type
 */
tide_status tide_op_check_attrs(const tide_node *n, const tide_op_def *def, const tide_op_def *const *rows,
                                size_t n_rows, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
