// SPDX-License-Identifier: MIT
//
// ScatterND and ScatterElements (Scatter before opset 11): a copy of `data` with elements or rows replaced, or
// combined by `reduction`. An index outside its axis is an error of the run. Output 0 may overwrite `data` as long as
// neither of the other two lies there.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

typedef enum reduction { REPLACE, ADD, MUL, MIN, MAX } reduction;

static tide_status read_reduction(const tide_node *node, tide_dtype dtype, reduction *out, tide_error *err) {
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *const name = tide_node_attr_string(node, "reduction", "none");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (reduction)i;
            if (i != REPLACE && dtype == TIDE_BOOL) return tide_data_no_dtype(node, dtype, err);
            return TIDE_OK;
        }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "reduction '%s' is not known", name);
}

/// dst[0..n) = dst combined with src; what is no number stays so, on either side.
typedef void (*combine_fn)(void *dst, const void *src, int64_t n, reduction how);
#define DEFINE_COMBINE(sfx, S, C, SUM, PRODUCT, IS_NAN)                                                                \
    static void combine_##sfx(void *dst_base, const void *src_base, int64_t n, reduction how) {                        \
        S *const dst = dst_base;                                                                                       \
        const S *const src = src_base;                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C a = TIDE_LOAD_##sfx(dst[i]), b = TIDE_LOAD_##sfx(src[i]);                                          \
            const bool takes_b = !IS_NAN(a) && (IS_NAN(b) || (how == MIN ? b < a : b > a));                            \
            const C v = (C)(how == ADD ? (SUM) : how == MUL ? (PRODUCT) : takes_b ? b : a);                            \
            dst[i] = TIDE_STORE_##sfx(v);                                                                              \
        }                                                                                                              \
    }
#define XX(DT, sfx, S, C) DEFINE_COMBINE(sfx, S, C, a + b, a * b, isnan)
TIDE_TYPES_FLOAT(XX)
#undef XX
#define NEVER(v) false
#define XX(DT, sfx, S, C)                                                                                              \
    DEFINE_COMBINE(sfx, S, C, (C)((uint64_t)a + (uint64_t)b), (C)((uint64_t)a * (uint64_t)b), NEVER)
TIDE_TYPES_INT(XX)
#undef XX
static const combine_fn combines[TIDE_DTYPE_LIMIT] = {
#define XX(DT, sfx, S, C) [TIDE_##DT] = combine_##sfx,
    TIDE_TYPES_NUMERIC(XX)
#undef XX
};

static void put(tide_dtype dtype, void *dst, const void *src, int64_t n, reduction how) {
    if (how == REPLACE)
        memcpy(dst, src, (size_t)n * tide_dtype_size(dtype));
    else
        combines[dtype](dst, src, n, how);
}

static tide_status check_common(const tide_infer *x, tide_error *err) {
    reduction how;
    TIDE_TRY(tide_data_same_dtype(x, 0, 2, err));
    TIDE_TRY(tide_data_require_indices(x->node, &x->in[1], "indices", err));
    return read_reduction(x->node, x->in[0].dtype, &how, err);
}

static void copy_data(const tide_kernel_args *a) {
    if (a->out[0].size_bytes != 0 && a->out[0].data != a->in[0].data)
        memcpy(a->out[0].data, a->in[0].data, a->out[0].size_bytes);
}

// ---- ScatterND ----

static tide_status scatter_nd_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const data = &x->in[0].shape;
    const tide_shape *const indices = &x->in[1].shape;
    TIDE_TRY(check_common(x, err));
    if (data->rank == 0 || indices->rank == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'data' and 'indices' must not be scalars");
    const int64_t tuple = indices->dims[indices->rank - 1];
    if (tuple < 1 || tuple > data->rank)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "index tuples of %lld for rank %d", (long long)tuple,
                            data->rank);
    if (indices->rank - 1 + data->rank - tuple > TIDE_MAX_RANK)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "updates of more than rank %d", TIDE_MAX_RANK);
    tide_shape want = {.rank = 0};
    for (int32_t d = 0; d < indices->rank - 1; d++) want.dims[want.rank++] = indices->dims[d];
    for (int32_t d = (int32_t)tuple; d < data->rank; d++) want.dims[want.rank++] = data->dims[d];
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[2], "updates", &want, err));
    return tide_op_infer_same(x, err);
}

static tide_status scatter_nd_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_shape *const data = &a->in[0].shape;
    const tide_shape *const indices = &a->in[1].shape;
    const tide_dtype dtype = a->in[0].dtype;
    const size_t elem = tide_dtype_size(dtype);
    const int32_t tuple = (int32_t)indices->dims[indices->rank - 1];
    const int64_t n = tide_op_count(indices, 0, indices->rank - 1);
    const int64_t row = tide_op_count(data, tuple, data->rank);
    reduction how;
    TIDE_TRY(read_reduction(k->node, dtype, &how, err));
    copy_data(a);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;
        for (int32_t t = 0; t < tuple; t++) {
            int64_t at;
            TIDE_TRY(tide_data_index(k->node, &a->in[1], i * tuple + t, data->dims[t], &at, err));
            to = to * data->dims[t] + at;
        }
        if (row != 0)
            put(dtype, tide_data_at(a->out[0].data, to * row, elem), tide_data_const_at(a->in[2].data, i * row, elem),
                row, how);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_scatter_nd = {.name = "ScatterND",
                                        .domain = "",
                                        .since = 11,
                                        .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "reduction", .since = 16)),
                                        .inplace_inputs = 1u << 0,
                                        .min_inputs = 3,
                                        .max_inputs = 3,
                                        .min_outputs = 1,
                                        .max_outputs = 1,
                                        .infer = scatter_nd_infer,
                                        .run = scatter_nd_run};

// ---- ScatterElements ----

static tide_status scatter_elements_infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const data = &x->in[0].shape;
    int32_t axis;
    TIDE_TRY(check_common(x, err));
    if (data->rank == 0) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'data' must not be a scalar");
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), data->rank, &axis, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[1], "indices", data->rank, data->rank, err));
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[2], "updates", &x->in[1].shape, err));
    for (int32_t d = 0; d < data->rank; d++)
        if (d != axis && x->in[1].shape.dims[d] > data->dims[d])
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'indices' has %lld on axis %d, 'data' only %lld",
                                (long long)x->in[1].shape.dims[d], d, (long long)data->dims[d]);
    return tide_op_infer_same(x, err);
}

static tide_status scatter_elements_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_shape *const data = &a->in[0].shape;
    const tide_shape *const indices = &a->in[1].shape;
    const tide_dtype dtype = a->in[0].dtype;
    const size_t elem = tide_dtype_size(dtype);
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", 0), data->rank, &axis, err));
    reduction how;
    TIDE_TRY(read_reduction(k->node, dtype, &how, err));
    int64_t strides[TIDE_MAX_RANK];
    tide_shape_strides(data, strides);
    copy_data(a);
    int64_t index[TIDE_MAX_RANK] = {0};
    const int64_t n = tide_op_numel(indices);
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        TIDE_TRY(tide_data_index(k->node, &a->in[1], i, data->dims[axis], &at, err));
        int64_t to = at * strides[axis];
        for (int32_t d = 0; d < data->rank; d++)
            if (d != axis) to += index[d] * strides[d];
        put(dtype, tide_data_at(a->out[0].data, to, elem), tide_data_const_at(a->in[2].data, i, elem), 1, how);
        for (int32_t d = indices->rank - 1; d >= 0 && ++index[d] == indices->dims[d]; d--) index[d] = 0;
    }
    return TIDE_OK;
}

#define OP_DEF(row_name, text, since_version, until_version, own_attr)                                                 \
    const tide_op_def tide_op_##row_name = {                                                                           \
        .name = text,                                                                                                  \
        .domain = "",                                                                                                  \
        .since = since_version,                                                                                        \
        .until = until_version,                                                                                        \
        .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(STRING, own_attr, .since = 16)),                         \
        .inplace_inputs = 1u << 0,                                                                                     \
        .min_inputs = 3,                                                                                               \
        .max_inputs = 3,                                                                                               \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .infer = scatter_elements_infer,                                                                               \
        .run = scatter_elements_run};
OP_DEF(scatter_9, "Scatter", 9, 10, NULL)
OP_DEF(scatter_elements, "ScatterElements", 11, 0, "reduction")
