// SPDX-License-Identifier: MIT
//
// Expand and Tile: repetition, by broadcasting and by counts. Where nothing is repeated the output is a view.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/strided_copy.h"

static tide_op_alias alias(const tide_infer *x, size_t in_i, size_t out_i) {
    const bool once = tide_op_numel(&x->in[0].shape) == tide_op_numel(&x->out[0].shape);
    return (tide_op_alias){in_i == 0 && out_i == 0 && once ? TIDE_OP_ALIAS_VIEW : TIDE_OP_ALIAS_NONE, 0};
}

/// The broadcast goes both ways: extents of 1 in 'shape' keep what the input has.
static tide_status expand_infer(const tide_infer *x, tide_error *err) {
    int64_t dims[TIDE_MAX_RANK];
    size_t rank;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[1], "shape", TIDE_MAX_RANK, dims, &rank, err));
    for (size_t d = 0; d < rank; d++)
        if (dims[d] < 0)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "extent %zu of 'shape' is %lld", d,
                                (long long)dims[d]);
    const tide_shape want = tide_shape_make((int32_t)rank, dims);
    tide_shape out;
    TIDE_TRY(tide_op_broadcast(x->node, &x->in[0].shape, &want, &out, err));
    return tide_op_set_out(x, 0, x->in[0].dtype, out.rank, out.dims, err);
}

static tide_status expand_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    const tide_shape *const out = &a->out[0].shape;
    if (a->out[0].data == a->in[0].data) return TIDE_OK; // a view of it
    int64_t src[TIDE_MAX_RANK], dst[TIDE_MAX_RANK];
    tide_op_broadcast_strides(&a->in[0].shape, out, src);
    tide_shape_strides(out, dst);
    tide_strided_copy(tide_dtype_size(a->out[0].dtype), out->rank, out->dims, a->out[0].data, dst, a->in[0].data, src);
    return TIDE_OK;
}

const tide_op_def tide_op_expand = {.name = "Expand",
                                    .domain = "",
                                    .since = 8,
                                    .min_inputs = 2,
                                    .max_inputs = 2,
                                    .min_outputs = 1,
                                    .max_outputs = 1,
                                    .infer = expand_infer,
                                    .alias = alias,
                                    .run = expand_run};

static tide_status tile_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    int64_t dims[TIDE_MAX_RANK];
    size_t n;
    TIDE_TRY(tide_op_read_ints(x->node, &x->in[1], "repeats", TIDE_MAX_RANK, dims, &n, err));
    if (n != (size_t)in->rank)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu repeats for rank %d", n, in->rank);
    for (int32_t d = 0; d < in->rank; d++)
        if (dims[d] < 0 || __builtin_mul_overflow(dims[d], in->dims[d], &dims[d]))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d cannot be repeated %lld times", d,
                                (long long)dims[d]);
    return tide_op_set_out(x, 0, x->in[0].dtype, in->rank, dims, err);
}

/// Each axis becomes two loops: the repeats, which stand still in the source, and the extent.
static tide_status tile_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    const tide_shape *const in = &a->in[0].shape;
    const tide_shape *const out = &a->out[0].shape;
    if (tide_op_numel(out) == 0 || a->out[0].data == a->in[0].data) return TIDE_OK; // empty, or a view of it
    int64_t in_strides[TIDE_MAX_RANK], out_strides[TIDE_MAX_RANK];
    tide_shape_strides(in, in_strides);
    tide_shape_strides(out, out_strides);
    int64_t dims[TIDE_LOOPS_MAX_RANK], src[TIDE_LOOPS_MAX_RANK], dst[TIDE_LOOPS_MAX_RANK];
    for (int32_t d = 0; d < in->rank; d++) {
        dims[2 * d] = out->dims[d] / in->dims[d];
        dims[2 * d + 1] = in->dims[d];
        src[2 * d] = 0;
        src[2 * d + 1] = in_strides[d];
        dst[2 * d] = out_strides[d] * in->dims[d];
        dst[2 * d + 1] = out_strides[d];
    }
    tide_strided_copy(tide_dtype_size(a->out[0].dtype), 2 * in->rank, dims, a->out[0].data, dst, a->in[0].data, src);
    return TIDE_OK;
}

const tide_op_def tide_op_tile = {.name = "Tile",
                                  .domain = "",
                                  .since = 6,
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .min_outputs = 1,
                                  .max_outputs = 1,
                                  .infer = tile_infer,
                                  .alias = alias,
                                  .run = tile_run};
