// SPDX-License-Identifier: MIT
//
// Reshape and Flatten: the same bytes under other extents.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

/// 0 copies the extent of the input (unless allowzero), one -1 takes what is left.
static tide_status reshape_infer(const tide_infer *x, tide_error *err) {
    int64_t dims[TIDE_MAX_RANK];
    size_t rank;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[1], "shape", TIDE_MAX_RANK, dims, &rank, err));
    const tide_shape *const in = &x->in[0].shape;
    const bool allow_zero = tide_node_attr_int(x->node, "allowzero", 0) != 0;
    int64_t known = 1;
    int32_t open = -1;
    for (int32_t d = 0; d < (int32_t)rank; d++) {
        if (dims[d] == -1) {
            if (open >= 0) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "two extents of 'shape' are -1");
            open = d;
            continue;
        }
        if (dims[d] == 0 && !allow_zero) {
            if (d >= in->rank)
                return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                                    "extent %d of 'shape' is 0 (keep), but the input has rank %d", d, in->rank);
            dims[d] = in->dims[d];
        }
        if (dims[d] < 0 || __builtin_mul_overflow(known, dims[d], &known))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "extent %d of 'shape' is %lld", d,
                                (long long)dims[d]);
    }
    const int64_t n = tide_op_numel(in);
    if (open >= 0 && known == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "extent %d of 'shape' is -1 beside one of 0: it could be any number", open);
    if (open >= 0) dims[open] = n / known;
    if (known * (open >= 0 ? dims[open] : 1) != n) {
        char from[192], to[192];
        tide_shape want = tide_shape_make((int32_t)rank, dims);
        if (open >= 0) want.dims[open] = TIDE_DIM_UNKNOWN;
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%s cannot become %s: not the same number of elements",
                            tide_shape_format(in, from, sizeof from), tide_shape_format(&want, to, sizeof to));
    }
    return tide_op_set_out(x, 0, x->in[0].dtype, (int32_t)rank, dims, err);
}

const tide_op_def tide_op_reshape = {.name = "Reshape",
                                     .domain = "",
                                     .since = 5,
                                     .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "allowzero", .since = 14)),
                                     .flags = TIDE_OP_VIEW,
                                     .inplace_inputs = 1u,
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .infer = reshape_infer,
                                     .run = tide_data_run_view};

static tide_status flatten_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    const int64_t axis = tide_node_attr_int(x->node, "axis", 1);
    const int64_t at = axis < 0 ? axis + in->rank : axis;
    if (at < 0 || at > in->rank) // rank itself is allowed: everything before the cut
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %lld is outside rank %d", (long long)axis,
                            in->rank);
    const int64_t dims[2] = {tide_op_count(in, 0, (int32_t)at), tide_op_count(in, (int32_t)at, in->rank)};
    return tide_op_set_out(x, 0, x->in[0].dtype, 2, dims, err);
}

const tide_op_def tide_op_flatten = {.name = "Flatten",
                                     .domain = "",
                                     .since = 1,
                                     .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),
                                     .flags = TIDE_OP_VIEW,
                                     .inplace_inputs = 1u,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .infer = flatten_infer,
                                     .run = tide_data_run_view};
