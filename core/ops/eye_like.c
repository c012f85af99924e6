// SPDX-License-Identifier: MIT
//
// EyeLike: a matrix of the input's shape with 1 on a diagonal (`k` above the main one, negative: below), 0 elsewhere.
// Reads the shape alone.
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    const int64_t dtype = tide_node_attr_int(x->node, "dtype", x->in[0].dtype); // numbers are ONNX's
    if (dtype <= 0 || dtype >= TIDE_DTYPE_LIMIT || tide_dtype_size((tide_dtype)dtype) == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "dtype %lld is not served", (long long)dtype);
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "input", 2, 2, err));
    return tide_op_set_out(x, 0, (tide_dtype)dtype, 2, x->in[0].shape.dims, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *out = &a->out[0];
    const int64_t rows = out->shape.dims[0], columns = out->shape.dims[1];
    const int64_t diagonal = tide_node_attr_int(k->node, "k", 0);
    (void)err;
    if (out->size_bytes == 0 || diagonal >= columns || diagonal <= -rows) {
        if (out->size_bytes != 0) memset(out->data, 0, out->size_bytes);
        return TIDE_OK;
    }
    memset(out->data, 0, out->size_bytes); // which is 0 in every type
    for (int64_t row = diagonal < 0 ? -diagonal : 0; row < rows && row + diagonal < columns; row++)
        tide_data_store_f64(out->dtype, out->data, row * columns + row + diagonal, 1);
    return TIDE_OK;
}

const tide_op_def tide_op_eye_like = {.name = "EyeLike",
                                      .domain = "",
                                      .since = 9,
                                      .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "dtype"), TIDE_ATTR(INT, "k")),
                                      .flags = TIDE_OP_SHAPE_ONLY,
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .min_outputs = 1,
                                      .max_outputs = 1,
                                      .infer = infer,
                                      .run = run};
