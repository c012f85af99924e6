// SPDX-License-Identifier: MIT
//
// Fusion: fewer nodes, fewer values to keep. A value may only vanish when it has one use and is no graph output.
//
//     x -> [Conv] -> y -> [BatchNormalization] -> z -> [Relu] -> r      becomes      x -> [Conv'] -> r
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"
#include "core/graph/sizes.h"

/// Let `producer_i` produce what `node_i` produced; `node_i` dies.
static void take_output(tide_graph *g, uint32_t producer_i, uint32_t node_i) {
    tide_node *producer = &g->nodes[producer_i];
    tide_node *node = &g->nodes[node_i];
    TIDE_ASSERT(producer_i != node_i && !producer->dead && !node->dead);
    TIDE_ASSERT(g->values[producer->outputs[0]].producer == producer_i && !g->values[producer->outputs[0]].is_output);
    TIDE_ASSERT(node->inputs[0] == producer->outputs[0]);
    g->values[producer->outputs[0]].producer = TIDE_NO_NODE;
    producer->outputs[0] = node->outputs[0];
    g->values[node->outputs[0]].producer = producer_i;
    g->values[node->outputs[0]].producer_port = 0;
    node->dead = true;
}

// ---- BatchNormalization into Conv ----
//
// Fusing BatchNormalization into the Conv before it. Per output channel o, with the arithmetic in double:
//
//     s[o]  = scale[o] / sqrt(var[o] + epsilon)
//     w'[o] = w[o] * s[o]            b'[o] = (b[o] - mean[o]) * s[o] + B[o]
//
// The weights are new constants: another node may share the old ones.

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

/// Try to fuse node `node_i` into the producer of its first input; *done says whether.
static tide_status fuse_batch_norm(tide_graph *g, uint32_t node_i, const size_t *uses, bool *done, tide_error *err) {
    bn_fusion f;
    *done = false;
    if (!match(g, node_i, uses, &f)) return TIDE_OK;
    TIDE_ASSERT(f.n_channels > 0 && f.conv->n_inputs >= 2 && uses[f.bn->inputs[0]] == 1);
    const tide_value *old = &g->values[f.conv->inputs[1]];
    const tide_shape bias_shape = tide_shape_make(1, &f.n_channels);
    tide_tensor *weight = NULL, *bias = NULL;
    uint32_t weight_i, bias_i;
    const uint32_t old_i = f.conv->inputs[1];
    tide_status st;
    TIDE_TRY_OR(done, st, make_constant(&f, &old->shape, &weight, err));
    TIDE_TRY_OR(done, st, make_constant(&f, &bias_shape, &bias, err));
    const size_t per_filter = tide_tensor_size_bytes(weight) / sizeof(float) / (size_t)f.n_channels;
    if (!f.is_blank) rewrite(&f, per_filter, tide_tensor_data(weight), tide_tensor_data(bias));
    TIDE_TRY_OR(done, st, make_bias_slot(f.conv, err));
    // Adding values may move them: `old` ends with the first call.
    TIDE_TRY_OR(done, st, add_constant(g, old->name, "bn", weight, &weight_i, err));
    TIDE_TRY_OR(done, st, add_constant(g, f.conv->name, "bn_bias", bias, &bias_i, err));
    TIDE_ASSERT(f.conv->n_inputs >= 3 &&
                per_filter * sizeof(float) * (size_t)f.n_channels == tide_tensor_size_bytes(weight));
    f.conv->inputs[1] = weight_i;
    f.conv->inputs[2] = bias_i;
    if (uses[old_i] == 1) tide__graph_drop_constant(g, old_i); // both for all Convs would be the weights twice
    take_output(g, g->values[f.bn->inputs[0]].producer, node_i);
    *done = true;
done:
    tide_tensor_unref(weight);
    tide_tensor_unref(bias);
    return st;
}

// ---- activations ----
//
// Fusing an activation into the operator that produces its input: which nodes are activations, and with which
// parameters. Float32 only: that is what operators with TIDE_OP_FUSES_ACT promise to honour.

/// The number of an optional scalar input; `absent` where it is left out. False when it is not a constant float.
static bool scalar_input(const tide_graph *g, const tide_node *n, size_t k, float absent, float *out) {
    *out = absent;
    if (k >= n->n_inputs || n->inputs[k] == TIDE_NO_VALUE) return true;
    const tide_value *v = &g->values[n->inputs[k]];
    if (v->constant == NULL || v->dtype != TIDE_F32 || tide_tensor_size_bytes(v->constant) != sizeof *out) return false;
    // A blank one is fused all the same: it will not run.
    if (!tide_constant_is_blank(v->constant)) memcpy(out, tide_tensor_const_data(v->constant), sizeof *out);
    return true;
}

/// Clip's bounds are attributes up to opset 10, inputs from 11 on.
static bool clip_bounds(const tide_graph *g, const tide_node *n, tide_activation *act) {
    if (n->opset < 11) {
        act->alpha = tide_node_attr_float(n, "min", -FLT_MAX);
        act->beta = tide_node_attr_float(n, "max", FLT_MAX);
        return true;
    }
    return scalar_input(g, n, 1, -FLT_MAX, &act->alpha) && scalar_input(g, n, 2, FLT_MAX, &act->beta);
}

static bool activation_of(const tide_graph *g, const tide_node *n, tide_activation *act) {
    *act = (tide_activation){0};
    if (n->domain[0] != '\0') return false;
    if (strcmp(n->op_type, "Relu") == 0) {
        act->kind = TIDE_ACT_RELU;
    } else if (strcmp(n->op_type, "Sigmoid") == 0) {
        act->kind = TIDE_ACT_SIGMOID;
    } else if (strcmp(n->op_type, "Tanh") == 0) {
        act->kind = TIDE_ACT_TANH;
    } else if (strcmp(n->op_type, "LeakyRelu") == 0) {
        act->kind = TIDE_ACT_LEAKY_RELU;
        act->alpha = tide_node_attr_float(n, "alpha", 0.01f);
    } else if (strcmp(n->op_type, "Clip") == 0) {
        act->kind = TIDE_ACT_CLIP;
        return clip_bounds(g, n, act);
    }
    return act->kind != TIDE_ACT_NONE;
}

static bool honours_activation(const tide_node *n) {
    return n->def != NULL && (n->def->flags & TIDE_OP_FUSES_ACT) != 0 && n->activation.kind == TIDE_ACT_NONE &&
           n->n_outputs == 1;
}

static void fuse_activation(tide_graph *g, uint32_t node_i, const size_t *uses, bool *done) {
    const tide_node *n = &g->nodes[node_i];
    *done = false;
    if (n->dead || n->n_inputs < 1 || n->inputs[0] == TIDE_NO_VALUE) return;
    if (n->n_outputs != 1 || n->outputs[0] == TIDE_NO_VALUE || n->activation.kind != TIDE_ACT_NONE) return;
    const tide_value *between = &g->values[n->inputs[0]];
    if (between->producer == TIDE_NO_NODE || between->dtype != TIDE_F32) return;
    if (uses[n->inputs[0]] != 1) return; // a graph output counts as a use
    tide_node *producer = &g->nodes[between->producer];
    tide_activation act;
    if (producer->dead || !honours_activation(producer) || !activation_of(g, n, &act)) return;
    producer->activation = act;
    take_output(g, between->producer, node_i);
    *done = true;
}

// ---- the pass ----

tide_status tide_graph_fuse(tide_graph *g, tide_fuse_stats *stats, tide_error *err) {
    tide_fuse_stats done = {0};
    // A rewrite removes one value and leaves the uses of all others as they were: one table serves all rewrites.
    // Values made on the way (new weights) have an index past the table and are never looked up in it.
    size_t *uses = tide__graph_use_table(g);
    if (uses == NULL) return TIDE_NO_MEMORY(err, "for fusion");
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < g->n_nodes; i++) {
        bool fused = false;
        st = fuse_batch_norm(g, (uint32_t)i, uses, &fused, err);
        done.n_conv_bn += fused;
    }
    // Afterwards, so that an activation behind a BatchNormalization finds the Conv.
    for (size_t i = 0; st == TIDE_OK && i < g->n_nodes; i++) {
        bool fused = false;
        fuse_activation(g, (uint32_t)i, uses, &fused);
        done.n_activation += fused;
    }
    TIDE_ASSERT(tide__graph_holds(g));
    tide_host_free(uses);
    if (stats != NULL) *stats = done;
    return st;
}
