// SPDX-License-Identifier: MIT
//
// MeanVarianceNormalization, float32: (X - mean) / (deviation + 1e-9), both taken over `axes` together. May work in
// place: what a group of elements has is known before it is written.
#include <math.h>

#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

/// The axes in two groups: those that stay apart, and those that are averaged over.
typedef struct axes {
    bool averaged[TIDE_MAX_RANK];
    int64_t n_groups, n_each;
} axes;

static tide_status read_axes(const tide_node *node, const tide_shape *s, axes *a, tide_error *err) {
    static const int64_t usual[] = {0, 2, 3};
    size_t n = 0;
    const int64_t *list = tide_node_attr_ints(node, "axes", &n);
    *a = (axes){.n_groups = 1, .n_each = 1};
    if (list == NULL) n = 3;
    for (size_t i = 0; i < n; i++) {
        int32_t axis;
        TIDE_TRY(tide_op_axis(node, (list != NULL ? list : usual)[i], s->rank, &axis, err));
        a->averaged[axis] = true;
    }
    for (int32_t d = 0; d < s->rank; d++) *(a->averaged[d] ? &a->n_each : &a->n_groups) *= s->dims[d];
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    axes a;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "X", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "X", 1, TIDE_MAX_RANK, err));
    TIDE_TRY(read_axes(x->node, &x->in[0].shape, &a, err));
    return tide_op_infer_same(x, err);
}

/// Where element `i` lies among those whose axes are `averaged` or not: row-major over these alone.
static int64_t place_of(const tide_shape *s, const axes *a, bool averaged, int64_t i) {
    int64_t at = 0, step = 1;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        if (a->averaged[d] == averaged) {
            at += i % s->dims[d] * step;
            i /= s->dims[d];
        }
        step *= s->dims[d];
    }
    return at;
}

static void normalise(const tide_shape *s, const axes *a, int64_t group, const float *x, float *y) {
    const int64_t first = place_of(s, a, false, group);
    double sum = 0, square = 0;
    for (int64_t i = 0; i < a->n_each; i++) sum += (double)x[first + place_of(s, a, true, i)];
    const double mean = sum / (double)a->n_each;
    for (int64_t i = 0; i < a->n_each; i++) {
        const double d = (double)x[first + place_of(s, a, true, i)] - mean;
        square += d * d;
    }
    const double factor = 1 / (sqrt(square / (double)a->n_each) + 1e-9);
    for (int64_t i = 0; i < a->n_each; i++) {
        const int64_t at = first + place_of(s, a, true, i);
        y[at] = (float)(((double)x[at] - mean) * factor);
    }
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    axes a;
    TIDE_TRY(read_axes(k->node, &args->in[0].shape, &a, err));
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t g = 0; g < a.n_groups; g++) normalise(&args->in[0].shape, &a, g, args->in[0].data, args->out[0].data);
    return TIDE_OK;
}

const tide_op_def tide_op_mean_variance_norm = {.name = "MeanVarianceNormalization",
                                                .domain = "",
                                                .since = 9,
                                                .attrs = TIDE_ATTRS(TIDE_ATTR(INTS, "axes")),
                                                .inplace_inputs = 1u << 0,
                                                .min_inputs = 1,
                                                .max_inputs = 1,
                                                .min_outputs = 1,
                                                .max_outputs = 1,
                                                .infer = infer,
                                                .run = run};
