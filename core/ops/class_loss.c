// SPDX-License-Identifier: MIT
//
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: input [N, C, d1 …], a class for each [N, d1 …], a weight for
// each class where there are some.
//
//     loss[n, d] = -w[class] * p[n, class, d]       p: the input, or its log-softmax over C; 0 where the class is
//     ignored none | sum | mean: the sum of the losses by that of the weights, NaN where these are 0
//
// Everything is added up in double.
#include <math.h>
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

enum { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN, N_REDUCTIONS };

static tide_status reduction_of(const tide_node *node, int *out, tide_error *err) {
    static const char *const names[N_REDUCTIONS] = {"none", "sum", "mean"};
    const char *name = tide_node_attr_string(node, "reduction", "mean");
    for (*out = 0; *out < N_REDUCTIONS; (*out)++)
        if (strcmp(name, names[*out]) == 0) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "reduction '%s' is none of none, sum, mean", name);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    int reduction;
    if (!tide_dtype_is_float(in->dtype)) return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(tide_op_require_rank(x->node, in, "input", 2, TIDE_MAX_RANK, err));
    TIDE_TRY(tide_data_require_indices(x->node, &x->in[1], "target", err));
    tide_shape target = in->shape;
    for (int32_t i = 1; i + 1 < in->shape.rank; i++) target.dims[i] = in->shape.dims[i + 1];
    target.rank--;
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[1], "target", &target, err));
    if (tide_op_has_in(x, 2)) {
        const tide_shape classes = tide_shape_make(1, &in->shape.dims[1]);
        TIDE_TRY(tide_data_same_dtype(x, 0, 2, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[2], "weight", &classes, err));
    }
    TIDE_TRY(reduction_of(x->node, &reduction, err));
    if (tide_op_has_out(x, 1)) TIDE_TRY(tide_op_set_out(x, 1, in->dtype, in->shape.rank, in->shape.dims, err));
    return tide_op_set_out(x, 0, in->dtype, reduction == REDUCE_NONE ? target.rank : 0, target.dims, err);
}

typedef struct loss {
    const tide_kernel *k;
    const tide_kernel_args *a;
    bool is_softmax, has_ignored;
    int64_t ignored, n_classes, inner;
    const tide_operand *weight; // NULL: 1 each
} loss;

/// Element [n, c, d] of the input.
static double input_at(const loss *l, int64_t n, int64_t c, int64_t d) {
    return tide_data_load_f64(l->a->in[0].dtype, l->a->in[0].data, (n * l->n_classes + c) * l->inner + d);
}

/// The logarithm of the sum of exp over the classes: what log-softmax takes away from each. Without a finite number
/// among them there is none, NaN, nor beside an infinite one.
static double log_sum(const loss *l, int64_t n, int64_t d) {
    double most = -INFINITY, sum = 0;
    for (int64_t c = 0; c < l->n_classes; c++) most = fmax(most, input_at(l, n, c, d));
    if (isinf(most)) return (double)NAN;
    for (int64_t c = 0; c < l->n_classes; c++) sum += exp(input_at(l, n, c, d) - most);
    return most + log(sum);
}

/// Of one target: its loss and weight; log-softmax of all classes where that is asked for.
static tide_status one(const loss *l, int64_t n, int64_t d, double *out, double *weight, tide_error *err) {
    const tide_operand *target = &l->a->in[1], *logs = l->a->n_out > 1 ? &l->a->out[1] : NULL;
    const int64_t class = tide_data_load_i64(target->dtype, target->data, n * l->inner + d);
    const double from = l->is_softmax ? log_sum(l, n, d) : 0;
    for (int64_t c = 0; logs != NULL && tide_operand_present(logs) && c < l->n_classes; c++)
        tide_data_store_f64(logs->dtype, logs->data, (n * l->n_classes + c) * l->inner + d,
                            input_at(l, n, c, d) - from);
    *out = *weight = 0;
    if (l->has_ignored && class == l->ignored) return TIDE_OK;
    if (class < 0 || class >= l->n_classes)
        return TIDE_OP_FAIL(err, l->k->node, TIDE_ERR_RUNTIME, "target %lld is outside of %lld classes",
                            (long long)class, (long long)l->n_classes);
    *weight = l->weight != NULL ? tide_data_load_f64(l->weight->dtype, l->weight->data, class) : 1;
    *out = -*weight * (input_at(l, n, class, d) - from);
    return TIDE_OK;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_shape *in = &a->in[0].shape;
    const tide_operand *out = &a->out[0];
    const loss l = {.k = k,
                    .a = a,
                    .is_softmax = k->def->name[0] == 'S',
                    .has_ignored = tide_node_attr(k->node, "ignore_index") != NULL,
                    .ignored = tide_node_attr_int(k->node, "ignore_index", 0),
                    .n_classes = in->dims[1],
                    .inner = tide_op_count(in, 2, in->rank),
                    .weight = a->n_in > 2 && tide_operand_present(&a->in[2]) ? &a->in[2] : NULL};
    int reduction;
    double sum = 0, weights = 0, value, weight;
    TIDE_TRY(reduction_of(k->node, &reduction, err));
    const int64_t n_outer = l.inner > 0 ? in->dims[0] : 0;
    for (int64_t n = 0; n < n_outer; n++)
        for (int64_t d = 0; d < l.inner; d++) {
            TIDE_TRY(one(&l, n, d, &value, &weight, err));
            if (reduction == REDUCE_NONE) tide_data_store_f64(out->dtype, out->data, n * l.inner + d, value);
            sum += value;
            weights += weight;
        }
    if (reduction == REDUCE_NONE) return TIDE_OK;
    tide_data_store_f64(out->dtype, out->data, 0, reduction == REDUCE_SUM ? sum : sum / weights);
    return TIDE_OK;
}

const tide_op_def tide_op_nll_loss = {.name = "NegativeLogLikelihoodLoss",
                                      .domain = "",
                                      .since = 12,
                                      .attrs =
                                          TIDE_ATTRS(TIDE_ATTR(INT, "ignore_index"), TIDE_ATTR(STRING, "reduction")),
                                      .min_inputs = 2,
                                      .max_inputs = 3,
                                      .min_outputs = 1,
                                      .max_outputs = 1,
                                      .infer = infer,
                                      .run = run};
const tide_op_def tide_op_softmax_loss = {
    .name = "SoftmaxCrossEntropyLoss",
    .domain = "",
    .since = 12,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "ignore_index"), TIDE_ATTR(STRING, "reduction")),
    .min_inputs = 2,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 2,
    .infer = infer,
    .run = run};
