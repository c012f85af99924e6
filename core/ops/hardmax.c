// SPDX-License-Identifier: MIT
//
// Hardmax: 1 where an element is the first of the largest along the axis, 0 elsewhere. Before opset 13 the axis says
// where the shape is cut into a matrix: everything from it on is one row.
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

typedef struct hardmax_view {
    int64_t outer, n, inner;
} hardmax_view;

static tide_status view_of(const tide_node *node, const tide_shape *s, hardmax_view *v, tide_error *err) {
    const bool flattens = node->opset < 13;
    int32_t axis;
    TIDE_TRY(tide_op_axis(node, tide_node_attr_int(node, "axis", flattens ? 1 : -1), s->rank, &axis, err));
    v->outer = tide_op_count(s, 0, axis);
    v->n = flattens ? tide_op_count(s, axis, s->rank) : s->rank == 0 ? 1 : s->dims[axis];
    v->inner = flattens ? 1 : tide_op_count(s, axis + 1, s->rank);
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    hardmax_view v;
    if (!tide_dtype_is_float(x->in[0].dtype)) return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    TIDE_TRY(view_of(x->node, &x->in[0].shape, &v, err));
    return tide_op_infer_same(x, err);
}

static int64_t first_largest(const tide_operand *in, const hardmax_view *v, int64_t at) {
    int64_t best = 0;
    for (int64_t i = 1; i < v->n; i++)
        if (tide_data_load_f64(in->dtype, in->data, at + i * v->inner) >
            tide_data_load_f64(in->dtype, in->data, at + best * v->inner))
            best = i;
    return best;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *in = &a->in[0], *out = &a->out[0];
    hardmax_view v;
    TIDE_TRY(view_of(k->node, &in->shape, &v, err));
    if (out->size_bytes == 0) return TIDE_OK;
    memset(out->data, 0, out->size_bytes); // which is 0 in every float type
    for (int64_t o = 0; o < v.outer; o++)
        for (int64_t i = 0; i < v.inner; i++) {
            const int64_t at = o * v.n * v.inner + i;
            tide_data_store_f64(out->dtype, out->data, at + first_largest(in, &v, at) * v.inner, 1);
        }
    return TIDE_OK;
}

const tide_op_def tide_op_hardmax = {.name = "Hardmax",
                                     .domain = "",
                                     .since = 1,
                                     .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis")),
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .infer = infer,
                                     .run = run};
