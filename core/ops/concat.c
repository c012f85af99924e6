// SPDX-License-Identifier: MIT
//
// Concat and Split: rows of `axis` put together, and taken apart again.
//
//     outer | axis: a a a | b b | c c c c |     one copy per input or output: outer rows of (extent * inner) elements
//
// With one outer row the parts are stretches of the whole without gaps: where they lie in it already, nothing is
// copied.
#include "core/base/assert.h"
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

/// Copy `n` outer rows of `row_bytes` between two strides; a part that lies in its whole is there already.
static void copy_rows(void *dst, size_t dst_stride, const void *src, size_t src_stride, size_t row_bytes, int64_t n) {
    if (dst == src) return;
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)dst + (size_t)i * dst_stride, (const char *)src + (size_t)i * src_stride, row_bytes);
}

/// Outer extent and bytes of one outer row of `o`.
static size_t row_bytes_of(const tide_operand *o, int32_t axis) {
    return (size_t)tide_op_count(&o->shape, axis, o->shape.rank) * tide_dtype_size(o->dtype);
}

static tide_status concat_infer(const tide_infer *x, tide_error *err) {
    tide_shape out = x->in[0].shape;
    int32_t axis;
    if (out.rank == 0) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "scalars cannot be concatenated");
    if (tide_node_attr(x->node, "axis") == NULL)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "attribute 'axis' is missing");
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), out.rank, &axis, err));
    for (size_t i = 1; i < x->n_in; i++) {
        TIDE_TRY(tide_data_same_dtype(x, 0, i, err));
        tide_shape other = x->in[i].shape;
        const int64_t extent = other.rank > axis ? other.dims[axis] : 0;
        if (other.rank == out.rank) other.dims[axis] = out.dims[axis];
        if (!tide_shape_equal(&other, &out)) {
            char a[192], b[192];
            return TIDE_OP_FAIL(
                err, x->node, TIDE_ERR_BAD_INPUT, "input %zu of shape %s does not fit %s on every axis but %d", i,
                tide_shape_format(&x->in[i].shape, a, sizeof a), tide_shape_format(&x->in[0].shape, b, sizeof b), axis);
        }
        if (__builtin_add_overflow(out.dims[axis], extent, &out.dims[axis]))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "the extent of axis %d does not fit", axis);
    }
    return tide_op_set_out(x, 0, x->in[0].dtype, out.rank, out.dims, err);
}

/// Bytes of one outer row of all operands before `in_i`.
static size_t row_bytes_before(const tide_infer *x, size_t in_i, int32_t axis) {
    tide_bytes_before sum = {0};
    if (x->before != NULL && x->before->in_i <= in_i) sum = *x->before;
    for (; sum.in_i < in_i; sum.in_i++) sum.bytes += row_bytes_of(&x->in[sum.in_i], axis);
    TIDE_ASSERT(sum.in_i == in_i);
    if (x->before != NULL) *x->before = sum;
    return sum.bytes;
}

static tide_op_alias concat_alias(const tide_infer *x, size_t in_i, size_t out_i) {
    const tide_shape *const out = &x->out[out_i].shape;
    tide_op_alias a = {TIDE_OP_ALIAS_NONE, 0};
    int32_t axis;
    if (tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), out->rank, &axis, NULL) != TIDE_OK) return a;
    a.offset_bytes = row_bytes_before(x, in_i, axis);
    if (row_bytes_of(&x->in[in_i], axis) == row_bytes_of(&x->out[out_i], axis))
        a.kind = TIDE_OP_ALIAS_VIEW; // the others are empty
    else if (tide_op_count(out, 0, axis) == 1)
        a.kind = TIDE_OP_ALIAS_PART;
    return a;
}

static tide_status concat_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", 0), a->out[0].shape.rank, &axis, err));
    const int64_t outer = tide_op_count(&a->out[0].shape, 0, axis);
    const size_t out_row = row_bytes_of(&a->out[0], axis);
    size_t at = 0;
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (size_t i = 0; i < a->n_in; i++) {
        const size_t row = row_bytes_of(&a->in[i], axis);
        if (row != 0) copy_rows((char *)a->out[0].data + at, out_row, a->in[i].data, row, row, outer);
        at += row;
    }
    return TIDE_OK;
}

const tide_op_def tide_op_concat = {.name = "Concat",
                                    .domain = "",
                                    .since = 4,
                                    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),
                                    .min_inputs = 1,
                                    .max_inputs = 0,
                                    .min_outputs = 1,
                                    .max_outputs = 1,
                                    .infer = concat_infer,
                                    .alias = concat_alias,
                                    .run = concat_run};

// ---- Split ----

enum { MAX_PARTS = 1024 };

/// Extents of the parts as the node gives them: attribute before opset 13, then an operand. *n = 0: not given.
static tide_status given_parts(const tide_infer *x, int64_t *parts, size_t *n, tide_error *err) {
    *n = 0;
    if (x->node->opset >= 13)
        return tide_op_has_in(x, 1) ? tide_op_read_ints(x->node, &x->in[1], "split", MAX_PARTS, parts, n, err)
                                    : TIDE_OK;
    const int64_t *const list = tide_node_attr_ints(x->node, "split", n);
    if (*n > MAX_PARTS)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "%zu parts; at most %d", *n, MAX_PARTS);
    for (size_t i = 0; i < *n; i++) parts[i] = list[i];
    return TIDE_OK;
}

/// Equal parts; since opset 18 the last one may be smaller.
static tide_status equal_parts(const tide_infer *x, int64_t extent, int64_t *parts, tide_error *err) {
    const int64_t n = (int64_t)x->n_out;
    if (x->node->opset >= 18 && tide_node_attr_int(x->node, "num_outputs", n) != n)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "num_outputs is %lld, the node has %lld outputs",
                            (long long)tide_node_attr_int(x->node, "num_outputs", n), (long long)n);
    if (x->node->opset < 18 && extent % n != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%lld elements do not split into %lld equal parts",
                            (long long)extent, (long long)n);
    const int64_t part = extent / n + (extent % n != 0); // rounded up without leaving 63 bits
    int64_t left = extent;
    for (int64_t i = 0; i < n; i++) {
        parts[i] = left < part ? left : part;
        left -= parts[i];
    }
    return TIDE_OK;
}

/// The axis and the extents of all parts: n_out of them, adding up to the axis.
static tide_status split_parts(const tide_infer *x, int32_t *axis, int64_t parts[MAX_PARTS], tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    if (in->rank == 0) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "a scalar cannot be split");
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), in->rank, axis, err));
    if (x->n_out > MAX_PARTS)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "%zu parts; at most %d", x->n_out, MAX_PARTS);
    size_t n;
    TIDE_TRY(given_parts(x, parts, &n, err));
    if (n != 0 && n != x->n_out)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'split' names %zu parts, the node has %zu outputs", n,
                            x->n_out);
    if (n == 0) TIDE_TRY(equal_parts(x, in->dims[*axis], parts, err));
    int64_t sum = 0;
    for (size_t i = 0; i < x->n_out; i++)
        if (parts[i] < 0 || __builtin_add_overflow(sum, parts[i], &sum))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "part %zu has extent %lld", i, (long long)parts[i]);
    if (sum != in->dims[*axis])
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "the parts add up to %lld, axis %d has %lld",
                            (long long)sum, *axis, (long long)in->dims[*axis]);
    return TIDE_OK;
}

static tide_status split_infer(const tide_infer *x, tide_error *err) {
    int64_t parts[MAX_PARTS];
    int32_t axis;
    TIDE_TRY(split_parts(x, &axis, parts, err));
    tide_shape out = x->in[0].shape;
    for (size_t i = 0; i < x->n_out; i++) {
        out.dims[axis] = parts[i];
        TIDE_TRY(tide_op_set_out(x, i, x->in[0].dtype, out.rank, out.dims, err));
    }
    return TIDE_OK;
}

static tide_op_alias split_alias(const tide_infer *x, size_t in_i, size_t out_i) {
    const tide_shape *const in = &x->in[0].shape;
    tide_op_alias a = {TIDE_OP_ALIAS_NONE, 0};
    int64_t parts[MAX_PARTS];
    int32_t axis;
    if (in_i != 0 || split_parts(x, &axis, parts, NULL) != TIDE_OK) return a;
    const size_t step = (size_t)tide_op_count(in, axis + 1, in->rank) * tide_dtype_size(x->in[0].dtype);
    for (size_t i = 0; i < out_i; i++) a.offset_bytes += (size_t)parts[i] * step;
    if (parts[out_i] == in->dims[axis])
        a.kind = TIDE_OP_ALIAS_VIEW; // the others are empty
    else if (tide_op_count(in, 0, axis) == 1)
        a.kind = TIDE_OP_ALIAS_SLICE;
    return a;
}

/// An omitted output still has its place in the input: the parts are worked out again from the node.
static tide_status split_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    int64_t parts[MAX_PARTS];
    int32_t axis;
    const tide_operand *const in = &a->in[0];
    const tide_infer again = {.node = k->node, .in = a->in, .n_in = a->n_in, .n_out = a->n_out};
    TIDE_TRY(split_parts(&again, &axis, parts, err));
    const int64_t outer = tide_op_count(&in->shape, 0, axis);
    const size_t in_row = row_bytes_of(in, axis);
    const size_t step = (size_t)tide_op_count(&in->shape, axis + 1, in->shape.rank) * tide_dtype_size(in->dtype);
    size_t at = 0;
    if (in->size_bytes == 0) return TIDE_OK;
    for (size_t i = 0; i < a->n_out; i++) {
        const size_t row = (size_t)parts[i] * step;
        if (row != 0 && tide_operand_present(&a->out[i]))
            copy_rows(a->out[i].data, row, (const char *)in->data + at, in_row, row, outer);
        at += row;
    }
    return TIDE_OK;
}

#define OP_DEF(row_name, since_version, until_version, n_inputs, ...)                                                  \
    const tide_op_def tide_op_##row_name = {.name = "Split",                                                           \
                                            .domain = "",                                                              \
                                            .since = since_version,                                                    \
                                            .until = until_version,                                                    \
                                            .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), __VA_ARGS__),                  \
                                            .min_inputs = 1,                                                           \
                                            .max_inputs = n_inputs,                                                    \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 0,                                                          \
                                            .infer = split_infer,                                                      \
                                            .alias = split_alias,                                                      \
                                            .run = split_run};
OP_DEF(split_2, 2, 12, 1, TIDE_ATTR(INTS, "split"))
OP_DEF(split_13, 13, 0, 2, TIDE_ATTR(INT, "num_outputs", .since = 18))
