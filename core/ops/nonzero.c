// SPDX-License-Identifier: MIT
//
// NonZero and Compress: how many elements come out hangs on what goes in, so that shape inference counts them.
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

// ---- NonZero: the places of all elements that are not 0, one column for each ----

static bool is_nonzero(const tide_operand *o, int64_t i) {
    if (tide_dtype_is_float(o->dtype)) return tide_data_load_f64(o->dtype, o->data, i) != 0; // NaN is not 0
    return tide_data_load_i64(o->dtype, o->data, i) != 0;
}

static tide_status infer_nonzero(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    if (tide_dtype_size(in->dtype) == 0) return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(tide_op_require_const(x->node, in, "X", err));
    const int64_t n = tide_op_numel(&in->shape);
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) found += is_nonzero(in, i);
    return tide_op_set_out(x, 0, TIDE_I64, 2, (int64_t[]){in->shape.rank, found}, err);
}

static tide_status run_nonzero(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *in = &a->in[0];
    const int64_t n = tide_op_numel(&in->shape), columns = a->out[0].shape.dims[1];
    int64_t *out = a->out[0].data, column = 0;
    (void)k, (void)err;
    for (int64_t i = 0; i < n; i++) {
        if (!is_nonzero(in, i)) continue;
        int64_t left = i;
        for (int32_t d = in->shape.rank; d-- > 0;) {
            out[d * columns + column] = left % in->shape.dims[d];
            left /= in->shape.dims[d];
        }
        column++;
    }
    return TIDE_OK;
}

const tide_op_def tide_op_nonzero = {.name = "NonZero",
                                     .domain = "",
                                     .since = 9,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .infer = infer_nonzero,
                                     .run = run_nonzero};

// ---- Compress: the slices along an axis, or the elements, whose condition holds ----

/// What there is to choose from: `extent` slices; `inner` elements of each lie side by side, `outer` times.
typedef struct choice {
    int64_t outer, extent, inner;
    int32_t axis; ///< -1: elements
} choice;

static tide_status read_choice(const tide_node *node, const tide_shape *shape, choice *out, tide_error *err) {
    *out = (choice){1, tide_op_numel(shape), 1, -1};
    if (tide_node_attr(node, "axis") == NULL) return TIDE_OK;
    TIDE_TRY(tide_op_axis(node, tide_node_attr_int(node, "axis", 0), shape->rank, &out->axis, err));
    if (shape->rank == 0) return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "a scalar has no axis");
    out->outer = tide_op_count(shape, 0, out->axis);
    out->extent = shape->dims[out->axis];
    out->inner = tide_op_count(shape, out->axis + 1, shape->rank);
    return TIDE_OK;
}

static tide_status infer_compress(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0], *condition = &x->in[1];
    choice c;
    TIDE_TRY(tide_op_require_dtype(x->node, condition, "condition", TIDE_BOOL, err));
    TIDE_TRY(tide_op_require_rank(x->node, condition, "condition", 1, 1, err));
    TIDE_TRY(read_choice(x->node, &in->shape, &c, err));
    TIDE_TRY(tide_op_require_const(x->node, condition, "condition", err));
    const unsigned char *holds = condition->data;
    int64_t n = 0;
    for (int64_t i = 0; i < condition->shape.dims[0]; i++) {
        n += holds[i] != 0;
        if (holds[i] != 0 && i >= c.extent)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "the condition wants element %lld of %lld",
                                (long long)i, (long long)c.extent);
    }
    if (c.axis < 0) return tide_op_set_out(x, 0, in->dtype, 1, &n, err);
    tide_shape out = in->shape;
    out.dims[c.axis] = n;
    return tide_op_set_out(x, 0, in->dtype, out.rank, out.dims, err);
}

static tide_status run_compress(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const unsigned char *holds = a->in[1].data;
    choice c;
    TIDE_TRY(read_choice(k->node, &a->in[0].shape, &c, err));
    const size_t bytes = (size_t)c.inner * tide_dtype_size(a->in[0].dtype);
    const int64_t n = a->in[1].shape.dims[0] < c.extent ? a->in[1].shape.dims[0] : c.extent;
    char *out = a->out[0].data;
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t o = 0; o < c.outer; o++) {
        for (int64_t i = 0; i < n; i++) {
            if (holds[i] == 0) continue;
            memcpy(out, (const char *)a->in[0].data + (size_t)(o * c.extent + i) * bytes, bytes);
            out += bytes;
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_compress = {.name = "Compress",
                                      .domain = "",
                                      .since = 9,
                                      .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),
                                      .min_inputs = 2,
                                      .max_inputs = 2,
                                      .min_outputs = 1,
                                      .max_outputs = 1,
                                      .infer = infer_compress,
                                      .run = run_compress};
