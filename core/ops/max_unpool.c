// SPDX-License-Identifier: MIT
//
// MaxUnpool: the elements of X where MaxPool found them, 0 elsewhere. I has the place of each in the tensor that was
// pooled, of the shape that strides, pads and kernel_shape undo; output_shape may name a larger one, then places keep
// their coordinates.
#include <inttypes.h>
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

/// The shape that was pooled: [N, C, …] of X with what each window stands for.
static tide_status pooled_shape(const tide_node *node, const tide_shape *x, tide_shape *out, tide_error *err) {
    int64_t kernel[TIDE_WINDOW_MAX], stride[TIDE_WINDOW_MAX], pads[2 * TIDE_WINDOW_MAX];
    size_t given;
    const size_t n = (size_t)x->rank - 2;
    if (tide_node_attr_ints(node, "kernel_shape", &given) == NULL)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "attribute 'kernel_shape' is missing");
    TIDE_TRY(tide_op_ints_attr(node, "kernel_shape", n, 1, 1, kernel, err));
    TIDE_TRY(tide_op_ints_attr(node, "strides", n, 1, 1, stride, err));
    TIDE_TRY(tide_op_ints_attr(node, "pads", 2 * n, 0, 0, pads, err));
    *out = *x;
    for (size_t i = 0; i < n; i++) {
        const int64_t all[] = {x->dims[i + 2], kernel[i], stride[i], pads[i], pads[i + n]};
        TIDE_TRY(tide_op_window_limits(node, all, 5, (int32_t)i, err));
        out->dims[i + 2] = (x->dims[i + 2] - 1) * stride[i] + kernel[i] - pads[i] - pads[i + n];
    }
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    if (tide_dtype_size(in->dtype) == 0) return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, in, "X", 3, 2 + TIDE_WINDOW_MAX, err));
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[1], "I", TIDE_I64, err));
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[1], "I", &in->shape, err));
    tide_shape pooled;
    TIDE_TRY(pooled_shape(x->node, &in->shape, &pooled, err));
    if (!tide_op_has_in(x, 2)) return tide_op_set_out(x, 0, in->dtype, pooled.rank, pooled.dims, err);
    int64_t dims[TIDE_MAX_RANK];
    size_t n;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[2], "output_shape", TIDE_MAX_RANK, dims, &n, err));
    bool meets = (int32_t)n == pooled.rank;
    for (int32_t d = 0; meets && d < pooled.rank; d++)
        meets = d < 2 ? dims[d] == pooled.dims[d] : dims[d] >= pooled.dims[d];
    if (!meets) {
        char s[192];
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "output_shape does not hold %s, which was pooled",
                            tide_shape_format(&pooled, s, sizeof s));
    }
    return tide_op_set_out(x, 0, in->dtype, pooled.rank, dims, err);
}

/// Where element `i` of `from` lies in a tensor of shape `to`.
static int64_t place_in(const tide_shape *from, const tide_shape *to, int64_t i) {
    int64_t at = 0, step = 1;
    for (int32_t d = from->rank - 1; d >= 0; d--) {
        at += i % from->dims[d] * step;
        step *= to->dims[d];
        i /= from->dims[d];
    }
    return at;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_operand *in = &args->in[0], *out = &args->out[0];
    const int64_t n = tide_op_numel(&in->shape), *indices = args->in[1].data;
    const size_t elem = tide_dtype_size(in->dtype);
    tide_shape pooled;
    TIDE_TRY(pooled_shape(k->node, &in->shape, &pooled, err));
    if (out->size_bytes > 0) memset(out->data, 0, out->size_bytes);
    const int64_t n_pooled = tide_op_numel(&pooled);
    for (int64_t i = 0; i < n; i++) {
        if (indices[i] < 0 || indices[i] >= n_pooled)
            return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "I[%" PRId64 "] is %" PRId64 " of %" PRId64 " elements",
                                i, indices[i], n_pooled);
        memcpy(tide_data_at(out->data, place_in(&pooled, &out->shape, indices[i]), elem),
               tide_data_const_at(in->data, i, elem), elem);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_max_unpool = {
    .name = "MaxUnpool",
    .domain = "",
    .since = 9,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INTS, "kernel_shape"), TIDE_ATTR(INTS, "pads"), TIDE_ATTR(INTS, "strides")),
    .min_inputs = 2,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run};
