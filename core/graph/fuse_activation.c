// SPDX-License-Identifier: MIT
//
// Fusing an activation into the operator that produces its input: which nodes are activations, and with which
// parameters. Float32 only: that is what operators with TIDE_OP_FUSES_ACT promise to honour.
#include <float.h>
#include <string.h>

#include "core/graph/graph_internal.h"
#include "core/graph/sizes.h"

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

void tide__fuse_activation(tide_graph *g, uint32_t node_i, const size_t *uses, bool *done) {
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
    tide__fuse_take_output(g, between->producer, node_i);
    *done = true;
}
