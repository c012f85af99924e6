// SPDX-License-Identifier: MIT
//
// Shape and Size: extents as data. They read their input's shape and never its content.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

/// Shape's window [start, end) of axes (opset 15; the whole before): negative counts from the end, then clamped.
static void axis_window(const tide_node *node, int32_t rank, int64_t *start, int64_t *end) {
    *start = tide_node_attr_int(node, "start", 0);
    *end = tide_node_attr_int(node, "end", rank);
    int64_t *const both[] = {start, end};
    for (int i = 0; i < 2; i++) {
        if (*both[i] < 0) *both[i] += rank;
        *both[i] = *both[i] < 0 ? 0 : *both[i] > rank ? rank : *both[i];
    }
    if (*end < *start) *end = *start;
}

static tide_status shape_infer(const tide_infer *x, tide_error *err) {
    int64_t start, end;
    axis_window(x->node, x->in[0].shape.rank, &start, &end);
    const int64_t n = end - start;
    return tide_op_set_out(x, 0, TIDE_I64, 1, &n, err);
}

static tide_status shape_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    int64_t start, end;
    axis_window(k->node, a->in[0].shape.rank, &start, &end);
    int64_t *const out = a->out[0].data;
    for (int64_t d = start; d < end; d++) out[d - start] = a->in[0].shape.dims[d];
    return TIDE_OK;
}

const tide_op_def tide_op_shape = {
    .name = "Shape",
    .domain = "",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "end", .since = 15), TIDE_ATTR(INT, "start", .since = 15)),
    .flags = TIDE_OP_SHAPE_ONLY,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = shape_infer,
    .run = shape_run};

static tide_status size_infer(const tide_infer *x, tide_error *err) {
    return tide_op_set_out(x, 0, TIDE_I64, 0, NULL, err);
}

static tide_status size_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    *(int64_t *)a->out[0].data = tide_op_numel(&a->in[0].shape);
    return TIDE_OK;
}

const tide_op_def tide_op_size = {.name = "Size",
                                  .domain = "",
                                  .since = 1,
                                  .flags = TIDE_OP_SHAPE_ONLY,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .min_outputs = 1,
                                  .max_outputs = 1,
                                  .infer = size_infer,
                                  .run = size_run};
