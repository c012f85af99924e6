// SPDX-License-Identifier: MIT
//
// tidemark.Opaque: a node of which only the output sizes are known, so that a graph can be planned before its
// operators exist here. It has no kernel.
//
//     tide_dtypes  ints, one per output: ONNX's element type numbers
//     tide_shapes  ints: for each output its rank, then its extents:  2, 10, 20,  0,  1, 7  ->  [10x20], [], [7]
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    size_t n_dtypes, n;
    const int64_t *const dtypes = tide_node_attr_ints(x->node, "tide_dtypes", &n_dtypes);
    const int64_t *const shapes = tide_node_attr_ints(x->node, "tide_shapes", &n);
    if (n_dtypes != x->n_out)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'tide_dtypes' names %zu types, the node has %zu outputs",
                            n_dtypes, x->n_out);
    size_t at = 0;
    for (size_t i = 0; i < x->n_out; i++) {
        if (at >= n) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'tide_shapes' ends before output %zu", i);
        const int64_t rank = shapes[at++];
        if (rank < 0 || (uint64_t)rank > n - at)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'tide_shapes': output %zu has rank %lld", i,
                                (long long)rank);
        if (rank > TIDE_MAX_RANK)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "output %zu has rank %lld; at most %d", i,
                                (long long)rank, TIDE_MAX_RANK);
        if (dtypes[i] < 0 || dtypes[i] > INT32_MAX || tide_dtype_size((tide_dtype)dtypes[i]) == 0)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'tide_dtypes': output %zu has element type %lld", i,
                                (long long)dtypes[i]);
        TIDE_TRY(tide_op_set_out(x, i, (tide_dtype)dtypes[i], (int32_t)rank, shapes + at, err));
        at += (size_t)rank;
    }
    if (at != n)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "'tide_shapes' goes on after the last output (%zu of %zu)", at, n);
    return TIDE_OK;
}

const tide_op_def tide_op_opaque = {.name = "Opaque",
                                    .domain = "tidemark",
                                    .since = 1,
                                    .attrs = TIDE_ATTRS(TIDE_ATTR(INTS, "tide_dtypes"), TIDE_ATTR(INTS, "tide_shapes")),
                                    .flags = TIDE_OP_PLAN_ONLY,
                                    .min_inputs = 0,
                                    .max_inputs = 0,
                                    .min_outputs = 1,
                                    .max_outputs = 0,
                                    .infer = infer};
