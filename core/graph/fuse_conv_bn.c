// SPDX-License-Identifier: MIT
//
// Fusing BatchNormalization into the Conv before it. Per output channel o, with the arithmetic in double:
//
//     s[o]  = scale[o] / sqrt(var[o] + epsilon)
//     w'[o] = w[o] * s[o]            b'[o] = (b[o] - mean[o]) * s[o] + B[o]
//
// The weights are new constants: another node may share the old ones.
#include <math.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/sizes.h"

typedef struct bn_fusion {
    tide_node *conv;
    tide_node *bn;
    int64_t n_channels;
    bool is_blank;              // one of these has no content: nor will the new weights
    const float *weight, *bias; // of the Conv; bias NULL: none, or blank
    const float *scale, *shift, *mean, *variance;
    double epsilon;
} bn_fusion;

/// Content of a constant float32 input that has elements; false when it is anything else.
static bool constant_f32(const tide_graph *g, const tide_node *n, size_t k, bn_fusion *f, const float **data) {
    if (k >= n->n_inputs || n->inputs[k] == TIDE_NO_VALUE) return false;
    const tide_value *v = &g->values[n->inputs[k]];
    if (v->constant == NULL || v->dtype != TIDE_F32 || !tide_tensor_is_contiguous(v->constant)) return false;
    const bool is_blank = tide_constant_is_blank(v->constant);
    *data = is_blank ? NULL : tide_tensor_const_data(v->constant);
    f->is_blank = f->is_blank || is_blank;
    return is_blank || *data != NULL;
}

static bool per_channel(const tide_graph *g, const tide_node *n, size_t k, bn_fusion *f, const float **data) {
    if (!constant_f32(g, n, k, f, data)) return false;
    const tide_shape *shape = &g->values[n->inputs[k]].shape;
    return shape->rank == 1 && shape->dims[0] == f->n_channels;
}

/// Inference form: one output, statistics given, per channel (`spatial` was an attribute up to opset 8).
static bool is_inference_bn(const tide_node *n) {
    if (n->domain[0] != '\0' || strcmp(n->op_type, "BatchNormalization") != 0) return false;
    if (n->activation.kind != TIDE_ACT_NONE) return false;
    if (n->opset < 7 || n->n_inputs != 5 || n->n_outputs < 1 || n->outputs[0] == TIDE_NO_VALUE) return false;
    for (size_t k = 1; k < n->n_outputs; k++) {
        if (n->outputs[k] != TIDE_NO_VALUE) return false;
    }
    return tide_node_attr_int(n, "training_mode", 0) == 0 && tide_node_attr_int(n, "spatial", 1) == 1;
}

static bool match(tide_graph *g, uint32_t node_i, const size_t *uses, bn_fusion *f) {
    *f = (bn_fusion){.bn = &g->nodes[node_i]};
    if (f->bn->dead || !is_inference_bn(f->bn) || f->bn->inputs[0] == TIDE_NO_VALUE) return false;
    const tide_value *between = &g->values[f->bn->inputs[0]];
    // A graph output counts as a use.
    if (between->producer == TIDE_NO_NODE || uses[f->bn->inputs[0]] != 1) return false;
    f->conv = &g->nodes[between->producer];
    if (f->conv->dead || f->conv->domain[0] != '\0' || strcmp(f->conv->op_type, "Conv") != 0) return false;
    if (f->conv->activation.kind != TIDE_ACT_NONE || f->conv->n_outputs != 1 || f->conv->n_inputs < 2) return false;
    if (!constant_f32(g, f->conv, 1, f, &f->weight) || g->values[f->conv->inputs[1]].shape.rank < 3) return false;
    f->n_channels = g->values[f->conv->inputs[1]].shape.dims[0];
    if (f->conv->n_inputs > 2 && f->conv->inputs[2] != TIDE_NO_VALUE) {
        if (!per_channel(g, f->conv, 2, f, &f->bias)) return false;
    }
    f->epsilon = tide_node_attr_float(f->bn, "epsilon", 1e-5f);
    return per_channel(g, f->bn, 1, f, &f->scale) && per_channel(g, f->bn, 2, f, &f->shift) &&
           per_channel(g, f->bn, 3, f, &f->mean) && per_channel(g, f->bn, 4, f, &f->variance);
}

static void rewrite(const bn_fusion *f, size_t per_filter, float *weight, float *bias) {
    for (int64_t o = 0; o < f->n_channels; o++) {
        const double s = f->scale[o] / sqrt(f->variance[o] + f->epsilon);
        const double b = f->bias != NULL ? f->bias[o] : 0.0;
        bias[o] = (float)((b - f->mean[o]) * s + f->shift[o]);
        const size_t first = (size_t)o * per_filter;
        for (size_t i = 0; i < per_filter; i++) weight[first + i] = (float)(f->weight[first + i] * s);
    }
}

static tide_status make_constant(const bn_fusion *f, const tide_shape *shape, tide_tensor **out, tide_error *err) {
    if (f->is_blank) return tide_tensor_create_unbound(TIDE_F32, shape, TIDE_CPU, out, err);
    return tide__constant_create(TIDE_F32, shape, f->conv->name, out, err);
}

/// A new constant value called `base`.`suffix`; the graph takes a reference of `tensor`.
static tide_status add_constant(tide_graph *g, const char *base, const char *suffix, tide_tensor *tensor, uint32_t *out,
                                tide_error *err) {
    tide_text wanted = {0};
    tide_text_addf(&wanted, "%s.%s", base, suffix);
    char *name = wanted.failed ? NULL : tide__value_name_unique(g, wanted.data);
    tide_text_deinit(&wanted);
    if (name == NULL) return TIDE_NO_MEMORY(err, "for fused weights");
    const tide_status st = tide_graph_add_value(g, name, out, err);
    if (st == TIDE_OK) tide_graph_set_constant(g, *out, tensor);
    tide_host_free(name);
    return st;
}

/// Room for a bias input; the Conv may have come with two.
static tide_status make_bias_slot(tide_node *conv, tide_error *err) {
    if (conv->n_inputs > 2) return TIDE_OK;
    uint32_t *inputs = tide_host_realloc(conv->inputs, 3 * sizeof *inputs);
    if (inputs == NULL) return TIDE_NO_MEMORY(err, "for fused weights");
    inputs[2] = TIDE_NO_VALUE;
    conv->inputs = inputs;
    conv->n_inputs = 3;
    return TIDE_OK;
}

tide_status tide__fuse_batch_norm(tide_graph *g, uint32_t node_i, const size_t *uses, bool *done, tide_error *err) {
    bn_fusion f;
    *done = false;
    if (!match(g, node_i, uses, &f)) return TIDE_OK;
    const tide_value *old = &g->values[f.conv->inputs[1]];
    const tide_shape bias_shape = tide_shape_make(1, &f.n_channels);
    tide_tensor *weight = NULL, *bias = NULL;
    uint32_t weight_i, bias_i;
    tide_status st;
    TIDE_TRY_OR(done, st, make_constant(&f, &old->shape, &weight, err));
    TIDE_TRY_OR(done, st, make_constant(&f, &bias_shape, &bias, err));
    const size_t per_filter = tide_tensor_size_bytes(weight) / sizeof(float) / (size_t)f.n_channels;
    if (!f.is_blank) rewrite(&f, per_filter, tide_tensor_data(weight), tide_tensor_data(bias));
    TIDE_TRY_OR(done, st, make_bias_slot(f.conv, err));
    // Adding values may move them: `old` ends with the first call.
    TIDE_TRY_OR(done, st, add_constant(g, old->name, "bn", weight, &weight_i, err));
    TIDE_TRY_OR(done, st, add_constant(g, f.conv->name, "bn_bias", bias, &bias_i, err));
    f.conv->inputs[1] = weight_i;
    f.conv->inputs[2] = bias_i;
    tide__fuse_take_output(g, g->values[f.bn->inputs[0]].producer, node_i);
    *done = true;
done:
    tide_tensor_unref(weight);
    tide_tensor_unref(bias);
    return st;
}
