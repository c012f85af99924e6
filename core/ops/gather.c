// SPDX-License-Identifier: MIT
//
// Gather, GatherElements and GatherND: elements or rows picked by index. An index outside its axis is an error of the
// run that names it; nothing outside the input is read.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status read_axis(const tide_node *node, int32_t rank, int32_t *axis, tide_error *err) {
    if (rank == 0) return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "a scalar has no axis to gather from");
    return tide_op_axis(node, tide_node_attr_int(node, "axis", 0), rank, axis, err);
}

// ---- Gather: out[outer, indices…, inner] = data[outer, index, inner] ----

static tide_status gather_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const data = &x->in[0].shape;
    const tide_shape *const indices = &x->in[1].shape;
    int32_t axis;
    TIDE_TRY(tide_data_require_indices(x->node, &x->in[1], "indices", err));
    TIDE_TRY(read_axis(x->node, data->rank, &axis, err));
    int64_t dims[2 * TIDE_MAX_RANK];
    int32_t rank = 0;
    for (int32_t d = 0; d < axis; d++) dims[rank++] = data->dims[d];
    for (int32_t d = 0; d < indices->rank; d++) dims[rank++] = indices->dims[d];
    for (int32_t d = axis + 1; d < data->rank; d++) dims[rank++] = data->dims[d];
    return tide_op_set_out(x, 0, x->in[0].dtype, rank, dims, err);
}

/// One outer row, and constant indices that count upwards one by one: a stretch of the data.
static tide_op_alias gather_alias(const tide_infer *x, size_t in_i, size_t out_i) {
    const tide_op_alias none = {TIDE_OP_ALIAS_NONE, 0};
    const tide_operand *const data = &x->in[0], *const indices = &x->in[1];
    int32_t axis;
    if (in_i != 0 || out_i != 0 || indices->data == NULL) return none;
    if (read_axis(x->node, data->shape.rank, &axis, NULL) != TIDE_OK || tide_op_count(&data->shape, 0, axis) != 1)
        return none;
    const int64_t extent = data->shape.dims[axis], n = tide_op_numel(&indices->shape);
    int64_t first = 0, at;
    for (int64_t i = 0; i < n; i++) {
        if (tide_data_index(x->node, indices, i, extent, &at, NULL) != TIDE_OK) return none;
        if (i == 0) first = at;
        if (at != first + i) return none;
    }
    const uint64_t row =
        (uint64_t)tide_op_count(&data->shape, axis + 1, data->shape.rank) * tide_dtype_size(data->dtype);
    return (tide_op_alias){n == extent ? TIDE_OP_ALIAS_VIEW : TIDE_OP_ALIAS_SLICE, (uint64_t)first * row};
}

static tide_status gather_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *const data = &a->in[0];
    int32_t axis;
    TIDE_TRY(read_axis(k->node, data->shape.rank, &axis, err));
    const int64_t extent = data->shape.dims[axis];
    const int64_t outer = tide_op_count(&data->shape, 0, axis);
    const int64_t n = tide_op_numel(&a->in[1].shape);
    const size_t row = (size_t)tide_op_count(&data->shape, axis + 1, data->shape.rank) * tide_dtype_size(data->dtype);
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++) {
            int64_t at;
            TIDE_TRY(tide_data_index(k->node, &a->in[1], i, extent, &at, err));
            void *const to = tide_data_at(a->out[0].data, o * n + i, row);
            const void *const from = tide_data_const_at(data->data, o * extent + at, row);
            if (to != from) memcpy(to, from, row); // the plan may have put the output there
        }
    return TIDE_OK;
}

const tide_op_def tide_op_gather = {.name = "Gather",
                                    .domain = "",
                                    .since = 1,
                                    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),
                                    .min_inputs = 2,
                                    .max_inputs = 2,
                                    .min_outputs = 1,
                                    .max_outputs = 1,
                                    .infer = gather_infer,
                                    .alias = gather_alias,
                                    .run = gather_run};

// ---- GatherElements: out[i, j, k] = data[i, indices[i, j, k], k] ----

static tide_status gather_elements_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const data = &x->in[0].shape;
    const tide_shape *const indices = &x->in[1].shape;
    int32_t axis;
    TIDE_TRY(tide_data_require_indices(x->node, &x->in[1], "indices", err));
    TIDE_TRY(read_axis(x->node, data->rank, &axis, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[1], "indices", data->rank, data->rank, err));
    for (int32_t d = 0; d < data->rank; d++)
        if (d != axis && indices->dims[d] > data->dims[d])
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'indices' has %lld on axis %d, 'data' only %lld",
                                (long long)indices->dims[d], d, (long long)data->dims[d]);
    return tide_op_set_out(x, 0, x->in[0].dtype, indices->rank, indices->dims, err);
}

static tide_status gather_elements_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *const data = &a->in[0];
    const tide_shape *const out = &a->out[0].shape;
    const size_t elem = tide_dtype_size(data->dtype);
    int32_t axis;
    TIDE_TRY(read_axis(k->node, data->shape.rank, &axis, err));
    int64_t strides[TIDE_MAX_RANK];
    tide_shape_strides(&data->shape, strides);
    const int64_t n = tide_op_numel(out);
    int64_t index[TIDE_MAX_RANK] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        TIDE_TRY(tide_data_index(k->node, &a->in[1], i, data->shape.dims[axis], &at, err));
        int64_t from = at * strides[axis];
        for (int32_t d = 0; d < out->rank; d++)
            if (d != axis) from += index[d] * strides[d];
        memcpy(tide_data_at(a->out[0].data, i, elem), tide_data_const_at(data->data, from, elem), elem);
        for (int32_t d = out->rank - 1; d >= 0 && ++index[d] == out->dims[d]; d--) index[d] = 0;
    }
    return TIDE_OK;
}

const tide_op_def tide_op_gather_elements = {.name = "GatherElements",
                                             .domain = "",
                                             .since = 11,
                                             .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),
                                             .min_inputs = 2,
                                             .max_inputs = 2,
                                             .min_outputs = 1,
                                             .max_outputs = 1,
                                             .infer = gather_elements_infer,
                                             .run = gather_elements_run};

// ---- GatherND: the last axis of indices holds coordinates of rows; batch_dims leading axes go in step ----

static tide_status gather_nd_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const data = &x->in[0].shape;
    const tide_shape *const indices = &x->in[1].shape;
    const int64_t batch = x->node->opset >= 12 ? tide_node_attr_int(x->node, "batch_dims", 0) : 0;
    if (x->in[1].dtype != TIDE_I64)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'indices' is %s, int64 expected",
                            tide_dtype_name(x->in[1].dtype));
    if (data->rank == 0 || indices->rank == 0 || batch < 0 || batch >= indices->rank || batch >= data->rank)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "batch_dims %lld with ranks %d and %d", (long long)batch,
                            data->rank, indices->rank);
    const int64_t tuple = indices->dims[indices->rank - 1];
    if (tuple < 1 || tuple > data->rank - batch)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "index tuples of %lld for %lld axes", (long long)tuple,
                            (long long)(data->rank - batch));
    for (int32_t d = 0; d < batch; d++)
        if (data->dims[d] != indices->dims[d])
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "batch axis %d has %lld and %lld", d,
                                (long long)data->dims[d], (long long)indices->dims[d]);
    int64_t dims[2 * TIDE_MAX_RANK];
    int32_t rank = 0;
    for (int32_t d = 0; d < indices->rank - 1; d++) dims[rank++] = indices->dims[d];
    for (int32_t d = (int32_t)(batch + tuple); d < data->rank; d++) dims[rank++] = data->dims[d];
    return tide_op_set_out(x, 0, x->in[0].dtype, rank, dims, err);
}

static tide_status gather_nd_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_shape *const data = &a->in[0].shape;
    const tide_shape *const indices = &a->in[1].shape;
    const int32_t batch = k->node->opset >= 12 ? (int32_t)tide_node_attr_int(k->node, "batch_dims", 0) : 0;
    const int32_t tuple = (int32_t)indices->dims[indices->rank - 1];
    const int64_t n_batches = tide_op_count(data, 0, batch);
    const int64_t n_tuples = tide_op_count(indices, batch, indices->rank - 1);
    const int64_t batch_rows = tide_op_count(data, batch, batch + tuple);
    const size_t row = (size_t)tide_op_count(data, batch + tuple, data->rank) * tide_dtype_size(a->in[0].dtype);
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t i = 0; i < n_batches * n_tuples; i++) {
        int64_t from = 0;
        for (int32_t t = 0; t < tuple; t++) {
            int64_t at;
            const int64_t extent = data->dims[batch + t];
            TIDE_TRY(tide_data_index(k->node, &a->in[1], i * tuple + t, extent, &at, err));
            from = from * extent + at;
        }
        from += i / n_tuples * batch_rows;
        memcpy(tide_data_at(a->out[0].data, i, row), tide_data_const_at(a->in[0].data, from, row), row);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_gather_nd = {.name = "GatherND",
                                       .domain = "",
                                       .since = 11,
                                       .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "batch_dims", .since = 12)),
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .min_outputs = 1,
                                       .max_outputs = 1,
                                       .infer = gather_nd_infer,
                                       .run = gather_nd_run};
