// SPDX-License-Identifier: MIT
//
// OneHot: a new axis of `depth` that holds values[1] at the index and values[0] elsewhere. An index outside the depth
// is no error in ONNX: all of its places are off.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/strided_copy.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const indices = &x->in[0].shape;
    TIDE_TRY(tide_op_require_const(x->node, &x->in[1], "depth", err));
    if (tide_op_numel(&x->in[1].shape) != 1 || tide_op_numel(&x->in[2].shape) != 2)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'depth' must have 1 element and 'values' 2");
    if (indices->rank == TIDE_MAX_RANK)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "rank %d; at most %d", TIDE_MAX_RANK + 1,
                            TIDE_MAX_RANK);
    int32_t axis;
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", -1), indices->rank + 1, &axis, err));
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0, from = 0; d <= indices->rank; d++)
        dims[d] = d == axis ? tide_data_load_i64(x->in[1].dtype, x->in[1].data, 0) : indices->dims[from++];
    return tide_op_set_out(x, 0, x->in[2].dtype, indices->rank + 1, dims, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_shape *const out = &a->out[0].shape;
    const size_t elem = tide_dtype_size(a->out[0].dtype);
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", -1), out->rank, &axis, err));
    const int64_t n = tide_op_numel(out), dense = 1, repeat = 0;
    if (n == 0) return TIDE_OK;
    tide_strided_copy(elem, 1, &n, a->out[0].data, &dense, a->in[2].data, &repeat);
    const int64_t depth = out->dims[axis];
    const int64_t inner = tide_op_count(out, axis + 1, out->rank);
    const void *const on = tide_data_const_at(a->in[2].data, 1, elem);
    for (int64_t i = 0; i < n / depth; i++) {
        const int64_t given = tide_data_load_i64(a->in[0].dtype, a->in[0].data, i);
        const int64_t at = given < 0 ? given + depth : given;
        if (at < 0 || at >= depth) continue;
        memcpy(tide_data_at(a->out[0].data, (i / inner * depth + at) * inner + i % inner, elem), on, elem);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_one_hot = {.name = "OneHot",
                                     .domain = "",
                                     .since = 9,
                                     .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),
                                     .min_inputs = 3,
                                     .max_inputs = 3,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .infer = infer,
                                     .run = run};
