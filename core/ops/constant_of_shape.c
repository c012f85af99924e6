// SPDX-License-Identifier: MIT
//
// ConstantOfShape: a tensor of one repeated value whose extents are an operand.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/strided_copy.h"

/// The one element of attribute `value`, or NULL for the default: float32 zero.
static const tide_tensor *fill_value(const tide_node *node) {
    const tide_attr *const attr = tide_node_attr(node, "value");
    return attr != NULL && attr->type == TIDE_ATTR_TENSOR ? attr->tensor : NULL;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    int64_t dims[TIDE_MAX_RANK];
    size_t rank;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[0], "input", TIDE_MAX_RANK, dims, &rank, err));
    const tide_tensor *const value = fill_value(x->node);
    if (value != NULL && tide_op_numel(tide_tensor_shape(value)) != 1)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "attribute 'value' must have one element");
    const tide_dtype dtype = value != NULL ? tide_tensor_dtype(value) : TIDE_F32;
    return tide_op_set_out(x, 0, dtype, (int32_t)rank, dims, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    const tide_tensor *const value = fill_value(k->node);
    static const float zero = 0;
    const int64_t n = tide_op_numel(&a->out[0].shape);
    const int64_t dense = 1, repeat = 0;
    if (n != 0)
        tide_strided_copy(tide_dtype_size(a->out[0].dtype), 1, &n, a->out[0].data, &dense,
                          value != NULL ? tide_tensor_const_data(value) : &zero, &repeat);
    return TIDE_OK;
}

const tide_op_def tide_op_constant_of_shape = {.name = "ConstantOfShape",
                                               .domain = "",
                                               .since = 9,
                                               .attrs = TIDE_ATTRS(TIDE_ATTR(TENSOR, "value")),
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .min_outputs = 1,
                                               .max_outputs = 1,
                                               .infer = infer,
                                               .run = run};
