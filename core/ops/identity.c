// SPDX-License-Identifier: MIT
//
// Identity and Dropout. Dropout is what it is at inference: output 0 is the input. The optional mask is all true since
// opset 12; what it holds before is not in the text, and ONNX Runtime's zeros are taken.
// A node that asks for training (random) is refused, never run without its noise.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

const tide_op_def tide_op_identity = {.name = "Identity",
                                      .domain = "",
                                      .since = 1,
                                      .flags = TIDE_OP_VIEW,
                                      .inplace_inputs = 1u,
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .min_outputs = 1,
                                      .max_outputs = 1,
                                      .infer = tide_op_infer_same,
                                      .run = tide_data_run_view};

enum { DROPOUT_RATIO = 1, DROPOUT_TRAINING = 2 };
static const float default_ratio = 0.5f;

static double dropout_ratio(const tide_operand *in, size_t n_in) {
    const bool has = n_in > DROPOUT_RATIO && in[DROPOUT_RATIO].data != NULL;
    return has ? tide_data_load_f64(in[DROPOUT_RATIO].dtype, in[DROPOUT_RATIO].data, 0) : (double)default_ratio;
}

static tide_status refuse_training(const tide_node *node, const tide_operand *in, size_t n_in, tide_error *err) {
    if (n_in <= DROPOUT_TRAINING || in[DROPOUT_TRAINING].data == NULL) return TIDE_OK;
    const bool training = tide_data_load_i64(in[DROPOUT_TRAINING].dtype, in[DROPOUT_TRAINING].data, 0) != 0;
    if (!training || dropout_ratio(in, n_in) == 0) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "training_mode is true: only inference is served");
}

static tide_status require_scalars(const tide_infer *x, tide_error *err) {
    for (size_t i = DROPOUT_RATIO; i <= DROPOUT_TRAINING; i++)
        if (tide_op_has_in(x, i) && tide_op_numel(&x->in[i].shape) != 1)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "input %zu must be a scalar", i);
    return TIDE_OK;
}

static tide_status dropout_infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(require_scalars(x, err));
    TIDE_TRY(refuse_training(x->node, x->in, x->n_in, err));
    const tide_operand *const in = &x->in[0];
    TIDE_TRY(tide_op_set_out(x, 0, in->dtype, in->shape.rank, in->shape.dims, err));
    if (!tide_op_has_out(x, 1)) return TIDE_OK;
    const tide_dtype mask = x->node->opset < 10 ? in->dtype : TIDE_BOOL;
    return tide_op_set_out(x, 1, mask, in->shape.rank, in->shape.dims, err);
}

static tide_status dropout_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    TIDE_TRY(refuse_training(k->node, a->in, a->n_in, err));
    TIDE_TRY(tide_data_run_view(k, a, err));
    if (a->n_out < 2 || !tide_operand_present(&a->out[1])) return TIDE_OK;
    // All ones occur for bool only, where an element is a byte.
    if (a->out[1].size_bytes != 0) memset(a->out[1].data, k->node->opset >= 12 ? 1 : 0, a->out[1].size_bytes);
    return TIDE_OK;
}

#define OP_DEF(row_name, since_version, until_version, n_inputs, op_attrs)                                             \
    const tide_op_def tide_op_##row_name = {.name = "Dropout",                                                         \
                                            .domain = "",                                                              \
                                            .since = since_version,                                                    \
                                            .until = until_version,                                                    \
                                            .attrs = op_attrs,                                                         \
                                            .flags = TIDE_OP_VIEW,                                                     \
                                            .inplace_inputs = 1u,                                                      \
                                            .min_inputs = 1,                                                           \
                                            .max_inputs = n_inputs,                                                    \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 2,                                                          \
                                            .infer = dropout_infer,                                                    \
                                            .run = dropout_run};
OP_DEF(dropout_7, 7, 11, 1, TIDE_ATTRS(TIDE_ATTR(FLOAT, "ratio")))
OP_DEF(dropout_12, 12, 0, 3, TIDE_ATTRS(TIDE_ATTR(INT, "seed")))
