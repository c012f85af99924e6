// SPDX-License-Identifier: MIT
//
// Pad: elements put around the input (or, by a negative number, cut off it): a constant, the nearest edge, the
// reflection, or the other end (wrap). Amounts are an attribute before opset 11, then operands.
//
//     input  a b c d     reflect 2, 2:  c b | a b c d | c b      edge:  a a | a b c d | d d
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/strided_copy.h"

typedef enum pad_mode { CONSTANT, REFLECT, EDGE, WRAP } pad_mode;

typedef struct pad_spec {
    pad_mode mode;
    int64_t begin[TIDE_MAX_RANK]; ///< elements; negative: cut off
    int64_t end[TIDE_MAX_RANK];
} pad_spec;

enum { PADS = 1, VALUE = 2, AXES = 3 };

static tide_status read_mode(const tide_node *node, pad_mode *out, tide_error *err) {
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *const name = tide_node_attr_string(node, "mode", "constant");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (pad_mode)i;
            return TIDE_OK;
        }
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "mode '%s' is not known", name);
}

/// All amounts as the node lists them: begins, then ends.
static tide_status read_amounts(const tide_infer *x, int64_t pads[2 * TIDE_MAX_RANK], size_t *n, tide_error *err) {
    if (x->node->opset >= 11) return tide_op_read_ints(x->node, &x->in[PADS], "pads", 2 * TIDE_MAX_RANK, pads, n, err);
    const int64_t *const list = tide_node_attr_ints(x->node, "pads", n);
    if (*n > 2 * TIDE_MAX_RANK) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu pads", *n);
    for (size_t i = 0; i < *n; i++) pads[i] = list[i];
    return TIDE_OK;
}

/// No tensor is longer; and amounts within the limit can be negated and added up.
static bool countable(int64_t amount) { return amount >= -(INT64_MAX / 4) && amount <= INT64_MAX / 4; }

static tide_status read_spec(const tide_infer *x, pad_spec *spec, tide_error *err) {
    const int32_t rank = x->in[0].shape.rank;
    int64_t pads[2 * TIDE_MAX_RANK], axes[TIDE_MAX_RANK];
    size_t n, n_axes = (size_t)rank;
    TIDE_TRY(read_mode(x->node, &spec->mode, err));
    TIDE_TRY(read_amounts(x, pads, &n, err));
    for (int32_t d = 0; d < rank; d++) {
        axes[d] = d;
        spec->begin[d] = spec->end[d] = 0;
    }
    if (tide_op_has_in(x, AXES))
        TIDE_TRY(tide_op_read_ints(x->node, &x->in[AXES], "axes", TIDE_MAX_RANK, axes, &n_axes, err));
    if (n != 2 * n_axes)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%zu pads for %zu axes: two each expected", n, n_axes);
    for (size_t i = 0; i < n_axes; i++) {
        int32_t axis;
        TIDE_TRY(tide_op_axis(x->node, axes[i], rank, &axis, err));
        spec->begin[axis] = pads[i];
        spec->end[axis] = pads[n_axes + i];
        if (!countable(pads[i]) || !countable(pads[n_axes + i]))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d cannot be padded by %lld and %lld", axis,
                                (long long)pads[i], (long long)pads[n_axes + i]);
    }
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    pad_spec spec;
    TIDE_TRY(read_spec(x, &spec, err));
    if (tide_op_has_in(x, VALUE)) {
        TIDE_TRY(tide_data_same_dtype(x, 0, VALUE, err));
        if (tide_op_numel(&x->in[VALUE].shape) != 1)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "'constant_value' must be a scalar");
    }
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0; d < in->rank; d++) {
        if (spec.mode != CONSTANT && (spec.begin[d] < 0 || spec.end[d] < 0))
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED,
                                "axis %d: negative pads are served in constant mode only", d);
        if (__builtin_add_overflow(in->dims[d], spec.begin[d], &dims[d]) ||
            __builtin_add_overflow(dims[d], spec.end[d], &dims[d]) || dims[d] < 0)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d of %lld cannot be padded by %lld and %lld",
                                d, (long long)in->dims[d], (long long)spec.begin[d], (long long)spec.end[d]);
        if (spec.mode != CONSTANT && in->dims[d] == 0 && dims[d] != 0)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d is empty: nothing to repeat", d);
    }
    return tide_op_set_out(x, 0, x->in[0].dtype, in->rank, dims, err);
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/// Fill all, then put what is left of the input in its place.
static void run_constant(const tide_kernel *k, const tide_kernel_args *a, const pad_spec *spec) {
    const tide_operand *const in = &a->in[0];
    const tide_operand *const out = &a->out[0];
    const size_t elem = tide_dtype_size(in->dtype);
    uint64_t value = 0;
    if (a->n_in > VALUE && a->in[VALUE].data != NULL)
        memcpy(&value, a->in[VALUE].data, elem);
    else
        tide_data_store_f64(in->dtype, &value, 0, (double)tide_node_attr_float(k->node, "value", 0));
    const int64_t n = tide_op_numel(&out->shape), dense = 1, repeat = 0;
    tide_strided_copy(elem, 1, &n, out->data, &dense, &value, &repeat);

    int64_t src[TIDE_MAX_RANK], dst[TIDE_MAX_RANK], count[TIDE_MAX_RANK];
    int64_t from = 0, to = 0;
    tide_shape_strides(&in->shape, src);
    tide_shape_strides(&out->shape, dst);
    for (int32_t d = 0; d < in->shape.rank; d++) {
        const int64_t skip = greater(0, -spec->begin[d]);
        count[d] = in->shape.dims[d] - skip - greater(0, -spec->end[d]);
        if (count[d] <= 0) return;
        from += skip * src[d];
        to += greater(0, spec->begin[d]) * dst[d];
    }
    tide_strided_copy(elem, in->shape.rank, count, tide_data_at(out->data, to, elem), dst,
                      tide_data_const_at(in->data, from, elem), src);
}

/// The element of an axis of `n` that stands at position `i` outside or inside of it.
static int64_t source_index(pad_mode mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n) return i;
    if (mode == EDGE || n == 1) return greater(0, lesser(i, n - 1));
    const int64_t period = mode == WRAP ? n : 2 * (n - 1);
    const int64_t m = (i % period + period) % period;
    return m < n ? m : period - m;
}

static void run_mapped(const tide_kernel_args *a, const pad_spec *spec) {
    const tide_operand *const in = &a->in[0];
    const tide_shape *const out = &a->out[0].shape;
    const size_t elem = tide_dtype_size(in->dtype);
    const int32_t last = out->rank - 1;
    const int64_t row = out->dims[last];
    const int64_t whole = in->shape.dims[last];
    int64_t strides[TIDE_MAX_RANK];
    tide_shape_strides(&in->shape, strides);
    int64_t index[TIDE_MAX_RANK] = {0};
    for (int64_t r = 0; r < tide_op_count(out, 0, last); r++) {
        int64_t from = 0;
        for (int32_t d = 0; d < last; d++)
            from += source_index(spec->mode, index[d] - spec->begin[d], in->shape.dims[d]) * strides[d];
        char *const o = tide_data_at(a->out[0].data, r * row, elem);
        const char *const x = tide_data_const_at(in->data, from, elem);
        memcpy(o + (size_t)spec->begin[last] * elem, x, (size_t)whole * elem);
        for (int64_t i = 0; i < row; i++) {
            if (i == spec->begin[last]) i += whole;
            if (i >= row) break;
            memcpy(o + (size_t)i * elem, x + (size_t)source_index(spec->mode, i - spec->begin[last], whole) * elem,
                   elem);
        }
        for (int32_t d = last - 1; d >= 0 && ++index[d] == out->dims[d]; d--) index[d] = 0;
    }
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_infer again = {.node = k->node, .in = a->in, .n_in = a->n_in};
    pad_spec spec;
    TIDE_TRY(read_spec(&again, &spec, err));
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    if (spec.mode == CONSTANT || a->out[0].shape.rank == 0)
        run_constant(k, a, &spec);
    else
        run_mapped(a, &spec);
    return TIDE_OK;
}

const tide_op_def tide_op_pad_2 = {
    .name = "Pad",
    .domain = "",
    .since = 2,
    .until = 10,
    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "mode"), TIDE_ATTR(FLOAT, "value"), TIDE_ATTR(INTS, "pads")),
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run};
const tide_op_def tide_op_pad_11 = {.name = "Pad",
                                    .domain = "",
                                    .since = 11,
                                    .attrs = TIDE_ATTRS(TIDE_ATTR(STRING, "mode")),
                                    .min_inputs = 2,
                                    .max_inputs = 4,
                                    .min_outputs = 1,
                                    .max_outputs = 1,
                                    .infer = infer,
                                    .run = run};
