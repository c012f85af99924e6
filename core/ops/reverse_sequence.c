// SPDX-License-Identifier: MIT
//
// ReverseSequence: of each item of the batch the first so many steps in the opposite order, the others as they are.
// Batch and time are the first two axes, in either order.
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status time_axis_of(const tide_node *node, int64_t *out, tide_error *err) {
    const int64_t batch = tide_node_attr_int(node, "batch_axis", 1);
    *out = tide_node_attr_int(node, "time_axis", 0);
    if ((batch == 0 && *out == 1) || (batch == 1 && *out == 0)) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "batch_axis %lld and time_axis %lld are not 0 and 1",
                        (long long)batch, (long long)*out);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    int64_t time;
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "input", 2, TIDE_MAX_RANK, err));
    TIDE_TRY(time_axis_of(x->node, &time, err));
    const tide_shape lengths = tide_shape_make(1, &x->in[0].shape.dims[1 - time]);
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[1], "sequence_lens", TIDE_I64, err));
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[1], "sequence_lens", &lengths, err));
    return tide_op_infer_same(x, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *in = &a->in[0];
    const size_t step_bytes = (size_t)tide_op_count(&in->shape, 2, in->shape.rank) * tide_dtype_size(in->dtype);
    const int64_t *lengths = a->in[1].data;
    int64_t time;
    TIDE_TRY(time_axis_of(k->node, &time, err));
    const int64_t n_batch = in->shape.dims[1 - time], n_time = in->shape.dims[time];
    const int64_t by_batch = time == 0 ? 1 : n_time, by_time = time == 0 ? n_batch : 1;
    if (step_bytes == 0) return TIDE_OK;
    for (int64_t b = 0; b < n_batch; b++) {
        if (lengths[b] < 0 || lengths[b] > n_time)
            return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "sequence_lens[%lld] is %lld of %lld steps",
                                (long long)b, (long long)lengths[b], (long long)n_time);
        for (int64_t t = 0; t < n_time; t++) {
            const int64_t from = t < lengths[b] ? lengths[b] - 1 - t : t;
            memcpy(tide_data_at(a->out[0].data, b * by_batch + t * by_time, step_bytes),
                   tide_data_const_at(in->data, b * by_batch + from * by_time, step_bytes), step_bytes);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_reverse_sequence = {.name = "ReverseSequence",
                                              .domain = "",
                                              .since = 10,
                                              .attrs =
                                                  TIDE_ATTRS(TIDE_ATTR(INT, "batch_axis"), TIDE_ATTR(INT, "time_axis")),
                                              .min_inputs = 2,
                                              .max_inputs = 2,
                                              .min_outputs = 1,
                                              .max_outputs = 1,
                                              .infer = infer,
                                              .run = run};
