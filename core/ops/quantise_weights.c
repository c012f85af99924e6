// SPDX-License-Identifier: MIT
//
// What the pass for quantised tensors does before and after it: which weights are not to be folded to real numbers, and
// what it has gained. See quantised.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/ops/op_list.h"
#include "core/ops/quant_cuts.h"
#include "core/ops/quantised.h"

static bool is_pair(const tide_node *n) {
    return !n->dead && n->quant == NULL && (n->def == &tide_op_dequantize_linear || n->def == &tide_op_quantize_linear);
}

static bool has_pair(const tide_graph *g) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (is_pair(&g->nodes[i])) return true;
    return false;
}

// ---- weights ----

/// What marks values needs to know of them.
typedef struct marks {
    bool *normalised; // [n_values] a BatchNormalization reads it: its numbers go into the weights of the Conv before
    bool *real;       // [n_values] some reader wants real numbers
} marks;

static void mark_readers(const tide_graph *g, marks *m) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        if (!n->dead && n->def == &tide_op_batch_norm) m->normalised[n->inputs[0]] = true;
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        if (n->dead) continue;
        const tide_quant_role role = n->def != NULL ? tide_quant_role_of(n->def) : TIDE_QUANT_NONE;
        const bool folds = n->def == &tide_op_conv && n->outputs[0] != TIDE_NO_VALUE && m->normalised[n->outputs[0]];
        for (size_t k = 0; k < n->n_inputs; k++) {
            if (n->inputs[k] == TIDE_NO_VALUE) continue;
            const bool reads = role == TIDE_QUANT_CUTS || role == TIDE_QUANT_JOINS || (k == 0 && tide_quant_moves(n));
            if (!reads || folds) m->real[n->inputs[k]] = true;
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++) m->real[g->outputs[i]] = true;
}

tide_status tide_ops_hold_weights(tide_graph *g, tide_error *err) {
    if (!has_pair(g)) return TIDE_OK;
    marks m;
    TIDE_TRY(TIDE_NEW(&m.normalised, 2 * g->n_values, err, "for %zu values", g->n_values));
    m.real = m.normalised + g->n_values;
    mark_readers(g, &m);
    for (size_t i = 0; i < g->n_nodes; i++) {
        tide_node *n = &g->nodes[i];
        n->holds_weight = is_pair(n) && n->def == &tide_op_dequantize_linear && n->outputs[0] != TIDE_NO_VALUE &&
                          !m.real[n->outputs[0]];
    }
    tide_host_free(m.normalised);
    return TIDE_OK;
}

// ---- what came of it ----

static int64_t numel_of(const tide_graph *g, uint32_t value_i) {
    const tide_value *v = &g->values[value_i];
    return v->has_shape && tide_shape_known(&v->shape) ? tide_op_numel(&v->shape) : -1;
}

static uint64_t made_bytes(const tide_graph *g) {
    uint64_t sum = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_outputs; k++) {
            const uint32_t v = n->outputs[k];
            if (v == TIDE_NO_VALUE || g->values[v].constant != NULL || numel_of(g, v) < 0) continue;
            sum += (uint64_t)numel_of(g, v) * tide_dtype_size(g->values[v].dtype);
        }
    }
    return sum;
}

static uint64_t saved_weights(const tide_graph *g, bool *is_counted) {
    uint64_t sum = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && n->quant != NULL && k < n->quant->n_inputs; k++) {
            const uint32_t v = n->inputs[k];
            if (n->quant->in[k].scale == TIDE_NO_VALUE || g->values[v].constant == NULL || is_counted[v]) continue;
            is_counted[v] = true;
            sum += (uint64_t)numel_of(g, v) * (sizeof(float) - tide_dtype_size(g->values[v].dtype));
        }
    }
    return sum;
}

tide_status tide_ops_quantise_count(const tide_graph *g, bool is_after, tide_quantise_stats *stats, tide_error *err) {
    if (!is_after) stats->bytes_before = made_bytes(g);
    size_t n_operators = 0, n_nodes = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        n_nodes += is_pair(&g->nodes[i]);
        n_operators += !g->nodes[i].dead && g->nodes[i].quant != NULL;
    }
    if (!is_after) {
        stats->n_nodes = n_nodes;
        return TIDE_OK;
    }
    bool *is_counted;
    TIDE_TRY(TIDE_NEW(&is_counted, g->n_values + 1, err, "for %zu values", g->n_values));
    stats->weights_saved = saved_weights(g, is_counted);
    stats->bytes_after = made_bytes(g);
    stats->n_operators = n_operators + stats->n_moves;
    stats->n_left = n_nodes;
    tide_host_free(is_counted);
    return TIDE_OK;
}
