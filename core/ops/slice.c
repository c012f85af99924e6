// SPDX-License-Identifier: MIT
//
// Slice: a window with steps over any axes; a negative step walks back. Bounds are attributes before opset 10, then
// operands. A window without gaps is a stretch of the input: where the output lies there already, nothing is copied.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/strided_copy.h"

/// Per axis of the input: first element, step, number of elements.
typedef struct window {
    int64_t start[TIDE_MAX_RANK];
    int64_t step[TIDE_MAX_RANK];
    int64_t count[TIDE_MAX_RANK];
} window;

typedef struct bounds {
    int64_t starts[TIDE_MAX_RANK], ends[TIDE_MAX_RANK], axes[TIDE_MAX_RANK], steps[TIDE_MAX_RANK];
    size_t n;
} bounds;

static tide_status list_attr(const tide_node *node, const char *name, int64_t *out, size_t *n, tide_error *err) {
    const int64_t *const list = tide_node_attr_ints(node, name, n);
    if (*n > TIDE_MAX_RANK)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "'%s' has %zu elements; at most %d", name, *n,
                            TIDE_MAX_RANK);
    for (size_t i = 0; i < *n; i++) out[i] = list[i];
    return TIDE_OK;
}

static tide_status read_bounds(const tide_infer *x, bounds *b, tide_error *err) {
    size_t n_ends, n_axes = 0, n_steps = 0;
    if (x->node->opset < 10) {
        TIDE_TRY(list_attr(x->node, "starts", b->starts, &b->n, err));
        TIDE_TRY(list_attr(x->node, "ends", b->ends, &n_ends, err));
        TIDE_TRY(list_attr(x->node, "axes", b->axes, &n_axes, err));
    } else {
        TIDE_TRY(tide_op_read_ints(x->node, &x->in[1], "starts", TIDE_MAX_RANK, b->starts, &b->n, err));
        TIDE_TRY(tide_op_read_ints(x->node, &x->in[2], "ends", TIDE_MAX_RANK, b->ends, &n_ends, err));
        if (tide_op_has_in(x, 3))
            TIDE_TRY(tide_op_read_ints(x->node, &x->in[3], "axes", TIDE_MAX_RANK, b->axes, &n_axes, err));
        if (tide_op_has_in(x, 4))
            TIDE_TRY(tide_op_read_ints(x->node, &x->in[4], "steps", TIDE_MAX_RANK, b->steps, &n_steps, err));
    }
    if (n_ends != b->n || (n_axes != 0 && n_axes != b->n) || (n_steps != 0 && n_steps != b->n))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "%zu starts, %zu ends, %zu axes and %zu steps do not belong together", b->n, n_ends, n_axes,
                            n_steps);
    for (size_t i = 0; i < b->n && n_axes == 0; i++) b->axes[i] = (int64_t)i;
    for (size_t i = 0; i < b->n && n_steps == 0; i++) b->steps[i] = 1;
    return TIDE_OK;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

/// Ends are clamped to the axis: [0, extent] walking forwards, [-1, extent - 1] walking back (-1: before the first). So
/// are starts, but walking back begins at an element in any case: there ONNX's text and ONNX Runtime leave Python's
/// rule.
static int64_t count_of(int64_t start, int64_t end, int64_t step, int64_t extent, int64_t *first) {
    if (start < 0) start += extent;
    if (end < 0) end += extent;
    if (step > 0) {
        start = clamp(start, 0, extent);
        end = clamp(end, 0, extent);
        *first = start;
        return end <= start ? 0 : (end - start - 1) / step + 1;
    }
    start = clamp(start, extent > 0 ? 0 : -1, extent - 1);
    end = clamp(end, -1, extent - 1);
    *first = start;
    if (start <= end) return 0;
    // -(step + 1) + 1 without negating the lowest number
    const uint64_t back = (uint64_t)(-(step + 1)) + 1;
    return (int64_t)((uint64_t)(start - end - 1) / back) + 1;
}

static tide_status read_window(const tide_infer *x, window *w, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    bounds b = {.n = 0};
    TIDE_TRY(read_bounds(x, &b, err));
    bool seen[TIDE_MAX_RANK] = {false};
    for (int32_t d = 0; d < in->rank; d++) {
        w->start[d] = 0;
        w->step[d] = 1;
        w->count[d] = in->dims[d];
    }
    for (size_t i = 0; i < b.n; i++) {
        int32_t axis;
        TIDE_TRY(tide_op_axis(x->node, b.axes[i], in->rank, &axis, err));
        if (b.steps[i] == 0) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "the step of axis %d is 0", axis);
        if (in->rank == 0 || seen[axis])
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d is not there or named twice", axis);
        seen[axis] = true;
        w->step[axis] = b.steps[i];
        w->count[axis] = count_of(b.starts[i], b.ends[i], b.steps[i], in->dims[axis], &w->start[axis]);
        if (w->count[axis] <= 1) w->step[axis] = 1; // never taken: keeps huge steps out of the strides
    }
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    window w;
    TIDE_TRY(read_window(x, &w, err));
    return tide_op_set_out(x, 0, x->in[0].dtype, x->in[0].shape.rank, w.count, err);
}

/// First element of the window, counted in the input.
static int64_t first_of(const window *w, const tide_shape *in, const int64_t *strides) {
    int64_t first = 0;
    for (int32_t d = 0; d < in->rank; d++) first += w->start[d] * strides[d];
    return first;
}

/// No gaps: from the last axis on whole ones, then one that is cut, then a single turn of each that is left.
static bool is_dense(const window *w, const tide_shape *in) {
    int32_t d = in->rank - 1;
    while (d >= 0 && w->step[d] == 1 && w->count[d] == in->dims[d]) d--;
    if (d >= 0 && w->step[d] == 1) d--;
    while (d >= 0 && w->count[d] == 1) d--;
    return d < 0;
}

static tide_op_alias alias(const tide_infer *x, size_t in_i, size_t out_i) {
    const tide_shape *const in = &x->in[0].shape;
    tide_op_alias a = {TIDE_OP_ALIAS_NONE, 0};
    window w;
    if (in_i != 0 || out_i != 0 || read_window(x, &w, NULL) != TIDE_OK || !is_dense(&w, in)) return a;
    int64_t strides[TIDE_MAX_RANK];
    tide_shape_strides(in, strides);
    a.offset_bytes = (uint64_t)first_of(&w, in, strides) * tide_dtype_size(x->in[0].dtype);
    a.kind = tide_op_numel(in) == tide_op_numel(&x->out[0].shape) ? TIDE_OP_ALIAS_VIEW : TIDE_OP_ALIAS_SLICE;
    return a;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *const in = &a->in[0];
    const tide_infer again = {.node = k->node, .in = a->in, .n_in = a->n_in};
    window w;
    TIDE_TRY(read_window(&again, &w, err));
    if (tide_op_numel(&a->out[0].shape) == 0) return TIDE_OK;
    const size_t elem = tide_dtype_size(in->dtype);
    int64_t src[TIDE_MAX_RANK], dst[TIDE_MAX_RANK];
    tide_shape_strides(&in->shape, src);
    tide_shape_strides(&a->out[0].shape, dst);
    const void *const first = tide_data_const_at(in->data, first_of(&w, &in->shape, src), elem);
    if (a->out[0].data == first) return TIDE_OK; // the plan has put it there: then the window is dense
    for (int32_t d = 0; d < in->shape.rank; d++) src[d] *= w.step[d];
    tide_strided_copy(elem, in->shape.rank, w.count, a->out[0].data, dst, first, src);
    return TIDE_OK;
}

const tide_op_def tide_op_slice_1 = {
    .name = "Slice",
    .domain = "",
    .since = 1,
    .until = 9,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INTS, "axes"), TIDE_ATTR(INTS, "ends"), TIDE_ATTR(INTS, "starts")),
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .alias = alias,
    .run = run};
const tide_op_def tide_op_slice_10 = {.name = "Slice",
                                      .domain = "",
                                      .since = 10,
                                      .min_inputs = 3,
                                      .max_inputs = 5,
                                      .min_outputs = 1,
                                      .max_outputs = 1,
                                      .infer = infer,
                                      .alias = alias,
                                      .run = run};
