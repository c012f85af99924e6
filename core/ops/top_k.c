// SPDX-License-Identifier: MIT
//
// TopK: the k largest (or smallest) elements along an axis, the best first; of equal ones the first. NaN is larger than
// all. The scratch is a heap of k places whose worst element is on top, so that most elements are compared once.
#include <inttypes.h>
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

/// Whether element a goes before element b, a != b, of a line whose elements lie `step` apart.
typedef struct line {
    const void *x;
    int64_t step;
    bool largest;
} line;
typedef bool (*before_fn)(const line *l, int64_t a, int64_t b);

#define XX(DT, s, T, C)                                                                                                \
    static bool before_##s(const line *l, int64_t a, int64_t b) {                                                      \
        const C x = TIDE_LOAD_##s(((const T *)l->x)[a * l->step]), y = TIDE_LOAD_##s(((const T *)l->x)[b * l->step]);  \
        const bool x_is_nan = x != x, y_is_nan = y != y;                                                               \
        if (x_is_nan || y_is_nan) return x_is_nan == y_is_nan ? a < b : x_is_nan == l->largest;                        \
        if (x == y) return a < b;                                                                                      \
        return (x > y) == l->largest;                                                                                  \
    }
TIDE_TYPES_NUMERIC(XX)
#undef XX

static const before_fn befores[TIDE_DTYPE_LIMIT] = {
#define XX(DT, s, T, C) [TIDE_##DT] = before_##s,
    TIDE_TYPES_NUMERIC(XX)
#undef XX
};

static tide_status read_k(const tide_infer *x, int64_t *k, tide_error *err) {
    size_t n = 0;
    if (x->node->opset < 10) {
        *k = tide_node_attr_int(x->node, "k", -1);
    } else {
        TIDE_TRY(tide_op_read_ints(x->node, &x->in[1], "K", 1, k, &n, err));
        if (n != 1) return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "K has no element, must have one");
    }
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    int32_t axis;
    int64_t k;
    if ((size_t)in->dtype >= TIDE_DTYPE_LIMIT || befores[in->dtype] == NULL)
        return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, in, "X", 1, TIDE_MAX_RANK, err));
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", -1), in->shape.rank, &axis, err));
    TIDE_TRY(read_k(x, &k, err));
    if (k < 0 || k > in->shape.dims[axis])
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "K is %" PRId64 " of the %" PRId64 " elements of axis %d",
                            k, in->shape.dims[axis], (int)axis);
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0; d < in->shape.rank; d++) dims[d] = d == axis ? k : in->shape.dims[d];
    if (tide_op_has_out(x, 0)) TIDE_TRY(tide_op_set_out(x, 0, in->dtype, in->shape.rank, dims, err));
    return tide_op_has_out(x, 1) ? tide_op_set_out(x, 1, TIDE_I64, in->shape.rank, dims, err) : TIDE_OK;
}

static const tide_shape *shape_of_outputs(const tide_operand *out) {
    return tide_operand_present(&out[0]) ? &out[0].shape : &out[1].shape;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    int32_t axis;
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", -1), x->in[0].shape.rank, &axis, err));
    const tide_shape *s = shape_of_outputs(x->out);
    if (tide_op_numel(s) > 0) k->workspace_bytes = (size_t)s->dims[axis] * sizeof(int64_t);
    return TIDE_OK;
}

static double work(const tide_infer *x) { return 4 * (double)tide_op_numel(&x->in[0].shape); }

/// heap[n] is one but for its top, which sinks: no element goes before those below it.
static void sink(const line *l, before_fn before, int64_t *heap, int64_t n, int64_t top) {
    const int64_t moving = heap[top];
    for (int64_t child; (child = 2 * top + 1) < n; top = child) {
        if (child + 1 < n && before(l, heap[child], heap[child + 1])) child++;
        if (before(l, heap[child], moving)) break;
        heap[top] = heap[child];
    }
    heap[top] = moving;
}

/// best[k] = the first k of n elements, in their order.
static void select_best(const line *l, before_fn before, int64_t n, int64_t k, int64_t *best) {
    for (int64_t i = 0; i < k; i++) best[i] = i;
    for (int64_t top = k / 2; top-- > 0;) sink(l, before, best, k, top);
    for (int64_t i = k; i < n; i++) {
        if (before(l, best[0], i)) continue;
        best[0] = i;
        sink(l, before, best, k, 0);
    }
    for (int64_t left = k; left > 1; left--) { // the worst of those left goes to their end
        const int64_t worst = best[0];
        best[0] = best[left - 1];
        best[left - 1] = worst;
        sink(l, before, best, left - 1, 0);
    }
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_operand *in = &args->in[0];
    const bool has_values = tide_operand_present(&args->out[0]);
    int64_t *indices = args->n_out > 1 && tide_operand_present(&args->out[1]) ? args->out[1].data : NULL;
    const size_t elem = tide_dtype_size(in->dtype);
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", -1), in->shape.rank, &axis, err));
    const tide_shape *s = shape_of_outputs(args->out);
    if (tide_op_numel(s) == 0) return TIDE_OK;
    const int64_t n = in->shape.dims[axis], most = s->dims[axis], inner = tide_op_count(&in->shape, axis + 1, s->rank);
    const int64_t outer = tide_op_count(&in->shape, 0, axis);
    int64_t *best = args->workspace;
    line l = {.step = inner, .largest = tide_node_attr_int(k->node, "largest", 1) != 0};
    for (int64_t at = 0; at < outer * inner; at++) {
        const int64_t from = at / inner * n * inner + at % inner, to = at / inner * most * inner + at % inner;
        l.x = tide_data_const_at(in->data, from, elem);
        select_best(&l, befores[in->dtype], n, most, best);
        for (int64_t i = 0; i < most; i++) {
            if (has_values)
                memcpy(tide_data_at(args->out[0].data, to + i * inner, elem),
                       tide_data_const_at(l.x, best[i] * inner, elem), elem);
            if (indices != NULL) indices[to + i * inner] = best[i];
        }
    }
    return TIDE_OK;
}

#define ROW(row, since_, until_, n_in, ...)                                                                            \
    const tide_op_def tide_op_##row = {.name = "TopK",                                                                 \
                                       .domain = "",                                                                   \
                                       .since = since_,                                                                \
                                       .until = until_,                                                                \
                                       .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), __VA_ARGS__),                       \
                                       .min_inputs = n_in,                                                             \
                                       .max_inputs = n_in,                                                             \
                                       .min_outputs = 1,                                                               \
                                       .max_outputs = 2,                                                               \
                                       .infer = infer,                                                                 \
                                       .work = work,                                                                   \
                                       .prepare = prepare,                                                             \
                                       .run = run};
ROW(top_k_1, 1, 9, 1, TIDE_ATTR(INT, "k"))
ROW(top_k_10, 10, 0, 2, TIDE_ATTR(INT, "largest", .since = 11), TIDE_ATTR(INT, "sorted", .since = 11))
