// SPDX-License-Identifier: MIT
//
// attr_types: what the attributes of ONNX's own operators are. An attribute under another type would pass for one that
// is not there, and its default would be taken in silence.
#ifndef TIDE_CORE_OPS_ATTR_TYPES_H
#define TIDE_CORE_OPS_ATTR_TYPES_H

#include "core/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// TIDE_ERR_BAD_INPUT naming node, attribute and both types where one is of another type than ONNX says. Attributes of
/// other domains and names that no operator here reads are left alone.
tide_status tide_op_check_attrs(const tide_node *n, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
