// SPDX-License-Identifier: MIT
//
// Squeeze and Unsqueeze: extents of 1 taken out or put in. Axes are an attribute before opset 13, then an operand.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

/// The axes as flags. *given is false when the node names none.
static tide_status read_axes(const tide_infer *x, int32_t rank, bool flags[TIDE_MAX_RANK], size_t *n, bool *given,
                             tide_error *err) {
    int64_t axes[TIDE_MAX_RANK];
    *given = true;
    *n = 0;
    if (x->node->opset >= 13) {
        *given = tide_op_has_in(x, 1);
        if (*given) TIDE_TRY(tide_op_read_ints(x->node, &x->in[1], "axes", TIDE_MAX_RANK, axes, n, err));
    } else {
        const int64_t *const list = tide_node_attr_ints(x->node, "axes", n);
        *given = list != NULL;
        if (*n > TIDE_MAX_RANK)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu axes; at most %d", *n, TIDE_MAX_RANK);
        for (size_t i = 0; i < *n; i++) axes[i] = list[i];
    }
    memset(flags, 0, TIDE_MAX_RANK * sizeof *flags);
    for (size_t i = 0; i < *n; i++) {
        if (rank < 0) return TIDE_OK; // the caller needs only their number
        int32_t axis;
        TIDE_TRY(tide_op_axis(x->node, axes[i], rank, &axis, err));
        if (flags[axis]) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d is named twice", axis);
        flags[axis] = true;
    }
    return TIDE_OK;
}

static tide_status squeeze_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    bool flags[TIDE_MAX_RANK];
    size_t n;
    bool given;
    TIDE_TRY(read_axes(x, in->rank, flags, &n, &given, err));
    int64_t dims[TIDE_MAX_RANK];
    int32_t rank = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        const bool drop = given ? flags[d] : in->dims[d] == 1;
        if (drop && in->dims[d] != 1)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d has extent %lld, only 1 can go", d,
                                (long long)in->dims[d]);
        if (!drop) dims[rank++] = in->dims[d];
    }
    return tide_op_set_out(x, 0, x->in[0].dtype, rank, dims, err);
}

static tide_status unsqueeze_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    bool flags[TIDE_MAX_RANK];
    size_t n;
    bool given;
    TIDE_TRY(read_axes(x, -1, flags, &n, &given, err));
    if (!given) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'axes' is missing");
    const int32_t rank = in->rank + (int32_t)n;
    if (rank > TIDE_MAX_RANK)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "rank %d; at most %d", rank, TIDE_MAX_RANK);
    TIDE_TRY(read_axes(x, rank, flags, &n, &given, err));
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0, from = 0; d < rank; d++) dims[d] = flags[d] ? 1 : in->dims[from++];
    return tide_op_set_out(x, 0, x->in[0].dtype, rank, dims, err);
}

#define OP_DEF(row_name, text, since_version, until_version, n_inputs, infer_fn, attr)                                 \
    const tide_op_def tide_op_##row_name = {.name = text,                                                              \
                                            .domain = "",                                                              \
                                            .since = since_version,                                                    \
                                            .until = until_version,                                                    \
                                            .attrs = TIDE_ATTRS(TIDE_ATTR(INTS, attr)),                                \
                                            .flags = TIDE_OP_VIEW,                                                     \
                                            .inplace_inputs = 1u,                                                      \
                                            .min_inputs = 1,                                                           \
                                            .max_inputs = n_inputs,                                                    \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 1,                                                          \
                                            .infer = infer_fn,                                                         \
                                            .run = tide_data_run_view};
OP_DEF(squeeze_1, "Squeeze", 1, 12, 1, squeeze_infer, "axes")
OP_DEF(squeeze_13, "Squeeze", 13, 0, 2, squeeze_infer, NULL)
OP_DEF(unsqueeze_1, "Unsqueeze", 1, 12, 1, unsqueeze_infer, "axes")
OP_DEF(unsqueeze_13, "Unsqueeze", 13, 0, 2, unsqueeze_infer, NULL)
