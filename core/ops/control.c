// SPDX-License-Identifier: MIT
//
// If, Loop and Scan, and the nodes that close their bodies: rows without kernels. A graph has the bodies as regions
// (core/graph/region.h), inference knows what they make (core/graph/infer_region.c), and the runtime where a run goes
// on (core/runtime/context_region.c).
#include "core/graph/region.h"
#include "core/ops/op_util.h"

/// Asked only of a node that has no region: a graph that was not read from a file with bodies.
static tide_status infer(const tide_infer *x, tide_error *err) {
    return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "it has no %s",
                        x->node->op_type[0] == 'I' ? "branches" : "body");
}

const tide_op_def tide_op_if = {.name = "If",
                                .domain = "",
                                .since = 1,
                                .flags = TIDE_OP_CONTROL | TIDE_OP_NO_FOLD,
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .infer = infer};
const tide_op_def tide_op_loop = {
    .name = "Loop", .domain = "", .since = 1, .flags = TIDE_OP_CONTROL | TIDE_OP_NO_FOLD, .infer = infer};
const tide_op_def tide_op_scan = {
    .name = "Scan",
    .domain = "",
    .since = 9,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "num_scan_inputs"), TIDE_ATTR(INTS, "scan_input_axes"),
                        TIDE_ATTR(INTS, "scan_input_directions"), TIDE_ATTR(INTS, "scan_output_axes"),
                        TIDE_ATTR(INTS, "scan_output_directions")),
    .flags = TIDE_OP_CONTROL | TIDE_OP_NO_FOLD,
    .min_inputs = 1,
    .infer = infer};
const tide_op_def tide_op_merge = {.name = "Merge",
                                   .domain = TIDE_REGION_DOMAIN,
                                   .since = 1,
                                   .flags = TIDE_OP_CONTROL | TIDE_OP_NO_FOLD,
                                   .infer = infer};
const tide_op_def tide_op_next_iteration = {.name = "NextIteration",
                                            .domain = TIDE_REGION_DOMAIN,
                                            .since = 1,
                                            .flags = TIDE_OP_CONTROL | TIDE_OP_NO_FOLD,
                                            .infer = infer};
