// SPDX-License-Identifier: MIT
//
// Shrink: x + bias below -lambd, x - bias above lambd, 0 between them. Integers are calculated as double
// and cut off, as in numpy and C.
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    if (x->in[0].dtype == TIDE_BOOL) return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    return tide_op_infer_same(x, err);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *in = &a->in[0], *out = &a->out[0];
    const double bias = (double)tide_node_attr_float(k->node, "bias", 0);
    const double lambd = (double)tide_node_attr_float(k->node, "lambd", 0.5f);
    const int64_t n = tide_op_numel(&in->shape);
    (void)err;
    for (int64_t i = 0; i < n; i++) {
        const double x = tide_data_load_f64(in->dtype, in->data, i);
        const double v = x < -lambd ? x + bias : x > lambd ? x - bias : 0;
        tide_data_store_f64(out->dtype, out->data, i, tide_dtype_is_float(out->dtype) ? v : trunc(v));
    }
    return TIDE_OK;
}

const tide_op_def tide_op_shrink = {.name = "Shrink",
                                    .domain = "",
                                    .since = 9,
                                    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "bias"), TIDE_ATTR(FLOAT, "lambd")),
                                    .inplace_inputs = 1u,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .min_outputs = 1,
                                    .max_outputs = 1,
                                    .infer = infer,
                                    .run = run};
