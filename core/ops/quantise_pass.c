// SPDX-License-Identifier: MIT
//
// The pass that takes dequantised tensors out of a graph. See quantised.h.
//
//     1  what only moves numbers moves quantised ones: DequantizeLinear goes behind it …
//     2  … and QuantizeLinear before it, where its input is not dequantised
//     3  QuantizeLinear of what is dequantised: nothing, if scale and zero point are the same, else a table of 256
//     4  operators that can be cut read the quantised tensor of each DequantizeLinear, and write that of a
//        QuantizeLinear which alone reads what they make
//
// A node that goes to another place keeps its slot in the list of nodes where it can: among nodes that are ready the
// order of execution follows that list.
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/region.h"
#include "core/graph/sizes.h"
#include "core/ops/op_list.h"
#include "core/ops/quant_cuts.h"
#include "core/ops/quant_rows.h"
#include "core/ops/quantised.h"

typedef struct pass {
    tide_graph *g;
    const tide_order *order;
    size_t n_values;  // when the tables were made: what is younger is in none
    size_t *uses;     // [n_values] by living nodes, and as graph output
    uint32_t *reader; // [n_values] a node that reads it
    uint32_t *same;   // [n_values] read this value in its place; TIDE_NO_VALUE: itself
    size_t n_moves;
    bool needs_blank; // a scale or zero point has no content: a program for its sizes alone
} pass;

static bool is_dequantize(const tide_node *n) {
    return !n->dead && n->quant == NULL && n->def == &tide_op_dequantize_linear;
}
static bool is_quantize(const tide_node *n) {
    return !n->dead && n->quant == NULL && n->def == &tide_op_quantize_linear;
}

static tide_status count_uses(pass *p, tide_error *err) {
    const tide_graph *g = p->g;
    tide_host_free(p->uses);
    tide_host_free(p->reader);
    p->n_values = g->n_values;
    p->uses = tide_host_calloc(g->n_values + 1, sizeof *p->uses);
    p->reader = tide_host_calloc(g->n_values + 1, sizeof *p->reader);
    if (p->uses == NULL || p->reader == NULL) return TIDE_NO_MEMORY(err, "for %zu values", g->n_values);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            if (n->inputs[k] == TIDE_NO_VALUE) continue;
            p->uses[n->inputs[k]]++;
            p->reader[n->inputs[k]] = i;
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++) p->uses[g->outputs[i]]++;
    return TIDE_OK;
}

// ---- what stands at a value ----

/// A quantised tensor and how it is to be read.
typedef struct quantised {
    uint32_t node;        // the DequantizeLinear or QuantizeLinear
    uint32_t of;          // the quantised value
    uint32_t scale, zero; // zero may be TIDE_NO_VALUE
    int32_t axis;         // -1: one scale for all
    tide_dtype dtype;
} quantised;

static int64_t numel_of(const tide_graph *g, uint32_t value_i) {
    const tide_value *v = &g->values[value_i];
    return v->has_shape && tide_shape_known(&v->shape) ? tide_op_numel(&v->shape) : -1;
}

/// Scale, zero point and axis of a QuantizeLinear or DequantizeLinear whose quantised value is `of`. False: they are
/// what this pass leaves alone.
static bool read_parameters(const tide_graph *g, uint32_t node_i, uint32_t of, quantised *out) {
    const tide_node *n = &g->nodes[node_i];
    const tide_value *v = &g->values[of];
    if (tide_node_is_dynamic(g, n) || !tide_is_quantized_type(v->dtype) || !v->has_shape) return false;
    if (tide_node_attr_int(n, "block_size", 0) != 0) return false;
    const tide_value *scale = &g->values[n->inputs[1]];
    const int64_t n_scales = numel_of(g, n->inputs[1]);
    if (scale->dtype != TIDE_F32 || n_scales < 1 || scale->shape.rank > 1) return false;
    *out = (quantised){node_i, of, n->inputs[1], n->n_inputs > 2 ? n->inputs[2] : TIDE_NO_VALUE, -1, v->dtype};
    if (n_scales == 1) return true;
    return tide_op_axis(n, n->opset >= 13 ? tide_node_attr_int(n, "axis", 1) : 1, v->shape.rank, &out->axis, NULL) ==
           TIDE_OK;
}

/// The DequantizeLinear that makes a value.
static bool dequantized(const tide_graph *g, uint32_t value_i, quantised *out) {
    if (value_i == TIDE_NO_VALUE) return false;
    const tide_value *v = &g->values[value_i];
    if (v->constant != NULL || v->producer == TIDE_NO_NODE || v->dtype != TIDE_F32) return false;
    const tide_node *n = &g->nodes[v->producer];
    return is_dequantize(n) && read_parameters(g, v->producer, n->inputs[0], out);
}

/// The QuantizeLinear that alone reads a value, in the region of the node that makes it, with one scale for all.
static bool quantized(const pass *p, uint32_t value_i, uint32_t region, quantised *out) {
    const tide_graph *g = p->g;
    if (value_i >= p->n_values || p->uses[value_i] != 1 || g->values[value_i].is_output) return false;
    const uint32_t node_i = p->reader[value_i];
    const tide_node *n = &g->nodes[node_i];
    if (!is_quantize(n) || n->region != region || n->inputs[0] != value_i || g->values[value_i].dtype != TIDE_F32)
        return false;
    return read_parameters(g, node_i, n->outputs[0], out) && out->axis < 0;
}

static const void *constant_data(pass *p, uint32_t value_i) {
    const void *data;
    const tide_tensor *t = p->g->values[value_i].constant;
    if (t != NULL && tide_constant_is_blank(t)) p->needs_blank = true;
    if (t == NULL || !tide_tensor_is_bound(t) || tide_tensor_read(t, &data, NULL) != TIDE_OK) return NULL;
    return data;
}

/// One number for all that is known, and such that dequantised numbers are finite and in the order of the quantised
/// ones. Quantising them again then gives what was there.
static bool is_plain(pass *p, const quantised *q) {
    const float *scale = q->axis < 0 ? constant_data(p, q->scale) : NULL;
    return scale != NULL && *scale >= FLT_MIN && *scale <= FLT_MAX / 0x1p18f;
}

static bool zero_of(pass *p, const quantised *q, int64_t *out) {
    *out = 0;
    if (q->zero == TIDE_NO_VALUE) return true;
    const void *data = constant_data(p, q->zero);
    if (data != NULL) *out = tide_data_load_i64(p->g->values[q->zero].dtype, data, 0);
    return data != NULL;
}

/// Both stand for the same numbers by the same bytes.
static bool is_same(pass *p, const quantised *a, const quantised *b) {
    int64_t za, zb;
    if (a->dtype != b->dtype || !is_plain(p, a) || !is_plain(p, b)) return false;
    if (!zero_of(p, a, &za) || !zero_of(p, b, &zb)) return false;
    return za == zb && memcmp(constant_data(p, a->scale), constant_data(p, b->scale), sizeof(float)) == 0;
}

// ---- changing the graph ----

/// Output `k` of node `node_i` is `value_i` from now on.
static void set_output(tide_graph *g, uint32_t node_i, size_t k, uint32_t value_i) {
    tide_node *n = &g->nodes[node_i];
    const uint32_t old = n->outputs[k];
    if (old != TIDE_NO_VALUE && g->values[old].producer == node_i && g->values[old].producer_port == k)
        g->values[old].producer = TIDE_NO_NODE;
    n->outputs[k] = value_i;
    g->values[value_i].producer = node_i;
    g->values[value_i].producer_port = (uint32_t)k;
}

/// A value of type `dtype` and the shape of `like`, called after it.
static tide_status add_value(tide_graph *g, uint32_t like, tide_dtype dtype, uint32_t *out, tide_error *err) {
    tide_text name = {0};
    for (int i = 1; i == 1 || (!name.failed && tide_graph_find_value(g, name.data) != TIDE_NO_VALUE); i++) {
        name.len = 0;
        tide_text_addf(&name, i == 1 ? "%s.quantised" : "%s.quantised.%d", g->values[like].name, i);
    }
    tide_status st =
        name.failed ? TIDE_NO_MEMORY(err, "for a quantised value") : tide_graph_add_value(g, name.data, out, err);
    tide_text_deinit(&name);
    TIDE_TRY(st);
    g->values[*out].dtype = dtype;
    g->values[*out].shape = g->values[like].shape;
    g->values[*out].has_shape = true;
    return TIDE_OK;
}

/// A second node with the row, attributes and parameters of `like`, from `from` to `to`.
static tide_status add_like(tide_graph *g, uint32_t like, uint32_t region, uint32_t from, uint32_t to,
                            tide_error *err) {
    const tide_node *n = &g->nodes[like];
    const uint32_t inputs[3] = {from, n->inputs[1], n->n_inputs > 2 ? n->inputs[2] : TIDE_NO_VALUE};
    uint32_t node_i;
    tide_text name = {0};
    tide_text_addf(&name, "%s.of.%s", n->name, g->values[from].name);
    tide_status st = name.failed ? TIDE_NO_MEMORY(err, "for a node")
                                 : tide_graph_add_node(g, name.data, n->op_type, n->domain, n->opset, inputs,
                                                       inputs[2] != TIDE_NO_VALUE ? 3 : 2, &to, 1, &node_i, err);
    tide_text_deinit(&name);
    TIDE_TRY(st);
    g->nodes[node_i].def = g->nodes[like].def;
    g->nodes[node_i].region = region;
    return TIDE_OK;
}

/// What a Pad puts around: 0, which is the zero point of what is quantised. False: it puts something else.
static bool pads_with_zero(pass *p, const tide_node *n) {
    if (n->n_inputs < 3 || n->inputs[2] == TIDE_NO_VALUE) return true;
    if (numel_of(p->g, n->inputs[2]) != 1) return false;
    const float *with = constant_data(p, n->inputs[2]);
    return with != NULL && *with == 0.0f;
}

/// The inputs of a Pad from now on, of one more than it has, its zero being that of `q`.
static void pad_with(const quantised *q, uint32_t *inputs, size_t *n_inputs) {
    while (*n_inputs < 3) inputs[(*n_inputs)++] = TIDE_NO_VALUE;
    inputs[2] = q->zero;
    if (q->zero == TIDE_NO_VALUE && *n_inputs == 3) *n_inputs = 2;
}

/// Whether an operator takes these values as its inputs; `node` is as it will be.
static tide_status takes(pass *p, const tide_node *node, bool *yes, tide_error *err) {
    const tide_graph *g = p->g;
    tide_operand *all;
    TIDE_TRY(TIDE_NEW(&all, node->n_inputs + node->n_outputs, err, "for the operands of '%s'", node->name));
    for (size_t k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] == TIDE_NO_VALUE) continue;
        const tide_value *v = &g->values[node->inputs[k]];
        all[k] = (tide_operand){.dtype = v->dtype, .shape = v->shape};
        const void *data;
        if (v->constant != NULL && tide_tensor_is_bound(v->constant) &&
            tide_tensor_read(v->constant, &data, NULL) == TIDE_OK)
            all[k].data = (void *)(uintptr_t)data;
    }
    const tide_infer x = {
        .node = node, .in = all, .n_in = node->n_inputs, .out = all + node->n_inputs, .n_out = node->n_outputs};
    *yes = node->def->infer(&x, NULL) == TIDE_OK;
    tide_host_free(all);
    return TIDE_OK;
}

// ---- 1: DequantizeLinear behind what moves ----

/// Whether all outputs that the node has are float32, and it does nothing but move.
static bool only_moves(const tide_graph *g, const tide_node *n) {
    if (n->dead || n->quant != NULL || n->n_inputs == 0 || n->activation.kind != TIDE_ACT_NONE) return false;
    if (tide_node_is_control(n) || tide_node_is_dynamic(g, n)) return false;
    if (!tide_quant_moves(n) && tide_quant_role_of(n->def) != TIDE_QUANT_JOINS) return false;
    size_t n_made = 0;
    for (size_t k = 0; k < n->n_outputs; k++) {
        if (n->outputs[k] == TIDE_NO_VALUE) continue;
        if (g->values[n->outputs[k]].dtype != TIDE_F32) return false; // the mask of a Dropout
        n_made++;
    }
    return n_made > 0;
}

/// Node `node_i` reads quantised values already, and its outputs are to be quantised like `q`: new values, and a
/// DequantizeLinear behind each. That of `q` is used again where nothing else reads what it makes.
static tide_status dequantize_behind(pass *p, uint32_t node_i, const quantised *q, bool is_free, tide_error *err) {
    tide_graph *g = p->g;
    const uint32_t region = g->nodes[node_i].region;
    for (size_t k = 0; k < g->nodes[node_i].n_outputs; k++) {
        const uint32_t old = g->nodes[node_i].outputs[k];
        uint32_t made;
        if (old == TIDE_NO_VALUE) continue;
        TIDE_TRY(add_value(g, old, q->dtype, &made, err));
        set_output(g, node_i, k, made);
        if (!is_free) {
            TIDE_TRY(add_like(g, q->node, region, made, old, err));
            continue;
        }
        is_free = false;
        g->nodes[q->node].inputs[0] = made;
        g->nodes[q->node].region = region;
        set_output(g, q->node, 0, old);
    }
    return TIDE_OK;
}

static tide_status move_behind(pass *p, uint32_t node_i, tide_error *err) {
    tide_graph *g = p->g;
    tide_node *n = &g->nodes[node_i];
    quantised q, other;
    if (!only_moves(g, n) || !dequantized(g, n->inputs[0], &q) || q.axis >= 0) return TIDE_OK;
    if (n->def == &tide_op_max_pool && !is_plain(p, &q)) return TIDE_OK; // the largest is to stay the largest
    if (n->def == &tide_op_pad_11 && !pads_with_zero(p, n)) return TIDE_OK;
    const bool joins = tide_quant_role_of(n->def) == TIDE_QUANT_JOINS;
    for (size_t k = 1; joins && k < n->n_inputs; k++)
        if (!dequantized(g, n->inputs[k], &other) || other.axis >= 0 || !is_same(p, &q, &other)) return TIDE_OK;
    uint32_t *inputs;
    size_t n_inputs = n->n_inputs;
    TIDE_TRY(TIDE_NEW(&inputs, n->n_inputs + 3, err, "for the inputs of '%s'", n->name));
    memcpy(inputs, n->inputs, n->n_inputs * sizeof *inputs);
    for (size_t k = 0; k < (joins ? n->n_inputs : 1); k++)
        inputs[k] = dequantized(g, n->inputs[k], &other) ? other.of : n->inputs[k];
    if (n->def == &tide_op_pad_11) pad_with(&q, inputs, &n_inputs);
    tide_node as = *n;
    as.inputs = inputs;
    as.n_inputs = n_inputs;
    bool yes;
    const tide_status st = takes(p, &as, &yes, err);
    if (st != TIDE_OK || !yes) {
        tide_host_free(inputs);
        return st;
    }
    const uint32_t real = n->inputs[0];
    const bool is_free = real < p->n_values && p->uses[real] == 1 && !g->values[real].is_output;
    tide_host_free(n->inputs);
    n->inputs = inputs;
    n->n_inputs = n_inputs;
    p->n_moves++;
    return dequantize_behind(p, node_i, &q, is_free, err);
}

// ---- 2: QuantizeLinear before what moves ----

/// Input `k` of what joins, or the one input of what moves, is to be quantised like `q`. *out is the quantised value.
static tide_status quantize_input(pass *p, uint32_t real, uint32_t region, const quantised *q, bool *is_free,
                                  uint32_t *out, tide_error *err) {
    tide_graph *g = p->g;
    quantised before;
    if (dequantized(g, real, &before) && is_same(p, &before, q)) {
        *out = before.of;
        return TIDE_OK;
    }
    TIDE_TRY(add_value(g, real, q->dtype, out, err));
    const bool is_alone = real < p->n_values && p->uses[real] == 1;
    if (is_alone) p->reader[real] = *is_free ? q->node : (uint32_t)g->n_nodes;
    if (!*is_free) return add_like(g, q->node, region, real, *out, err);
    *is_free = false;
    g->nodes[q->node].inputs[0] = real;
    set_output(g, q->node, 0, *out);
    return TIDE_OK;
}

static tide_status move_before(pass *p, uint32_t node_i, tide_error *err) {
    tide_graph *g = p->g;
    tide_node *n = &g->nodes[node_i];
    quantised q, unused;
    const bool joins = tide_quant_role_of(n->def) == TIDE_QUANT_JOINS;
    if (!only_moves(g, n) || n->n_outputs != 1 || n->def == &tide_op_max_pool || n->def == &tide_op_pad_11)
        return TIDE_OK; // of NaN the first makes another
    if (!quantized(p, n->outputs[0], n->region, &q)) return TIDE_OK;
    if (!joins && dequantized(g, n->inputs[0], &unused)) return TIDE_OK; // 1 has left it
    const size_t n_real = joins ? n->n_inputs : 1;
    for (size_t k = 0; k < n_real; k++)
        if (n->inputs[k] == TIDE_NO_VALUE || g->values[n->inputs[k]].constant != NULL) return TIDE_OK;
    // The shapes are those of an operator that was inferred already; the type is one that all of these take.
    const uint32_t to = q.of;
    bool is_free = true;
    for (size_t k = 0; k < n_real; k++) {
        uint32_t made;
        TIDE_TRY(quantize_input(p, g->nodes[node_i].inputs[k], g->nodes[node_i].region, &q, &is_free, &made, err));
        g->nodes[node_i].inputs[k] = made;
    }
    if (is_free) g->nodes[q.node].dead = true;
    set_output(g, node_i, 0, to);
    p->n_moves++;
    return TIDE_OK;
}

// ---- nodes with quantised operands ----

/// The inputs of a node with quantised operands as they are put together.
typedef struct draft {
    tide_quant *quant;
    uint32_t *inputs; // owned
    size_t n_inputs;
} draft;

static uint32_t draft_input(draft *d, uint32_t value_i) {
    if (value_i == TIDE_NO_VALUE) return TIDE_NO_VALUE;
    for (size_t k = d->quant->n_inputs; k < d->n_inputs; k++)
        if (d->inputs[k] == value_i) return (uint32_t)k;
    d->inputs[d->n_inputs] = value_i;
    return (uint32_t)d->n_inputs++;
}

static tide_quant_operand draft_operand(draft *d, const quantised *q) {
    if (q == NULL) return (tide_quant_operand){TIDE_NO_VALUE, TIDE_NO_VALUE, -1};
    const uint32_t scale = draft_input(d, q->scale);
    return (tide_quant_operand){scale, draft_input(d, q->zero), q->axis};
}

/// Node `node_i` becomes operator `def` with `n_in` inputs; in[k] is how input k is quantised, NULL: it is not.
static tide_status make_quantised(tide_graph *g, uint32_t node_i, const tide_op_def *def, size_t n_in,
                                  const quantised *const *in, const quantised *out, tide_error *err) {
    tide_node *n = &g->nodes[node_i];
    draft d = {.quant = tide_host_calloc(1, sizeof *d.quant + n_in * sizeof *d.quant->in),
               .inputs = tide_host_calloc(3 * n_in + 2, sizeof *d.inputs),
               .n_inputs = n_in};
    if (d.quant == NULL || d.inputs == NULL) {
        tide_host_free(d.quant);
        tide_host_free(d.inputs);
        return TIDE_NO_MEMORY(err, "for the quantised operands of '%s'", n->name);
    }
    d.quant->def = def;
    d.quant->n_inputs = n_in;
    for (size_t k = 0; k < n_in; k++) d.inputs[k] = in[k] != NULL ? in[k]->of : n->inputs[k];
    for (size_t k = 0; k < n_in; k++) d.quant->in[k] = draft_operand(&d, in[k]);
    d.quant->out = draft_operand(&d, out);
    d.quant->out_dtype = out != NULL ? out->dtype : TIDE_F32;
    tide_host_free(n->inputs);
    n->inputs = d.inputs;
    n->n_inputs = d.n_inputs;
    n->quant = d.quant;
    n->def = &tide_op_quantised;
    return TIDE_OK;
}

// ---- 3: QuantizeLinear of what is dequantised ----

/// A Cast of a quantised tensor to the type that it has: exporters put them between QuantizeLinear and
/// DequantizeLinear.
static tide_status pass_over_cast(pass *p, uint32_t node_i, tide_error *err) {
    (void)err;
    const tide_graph *g = p->g;
    const tide_node *n = &g->nodes[node_i];
    if (n->dead || n->def != &tide_op_cast || tide_node_is_dynamic(g, n)) return TIDE_OK;
    const tide_value *from = &g->values[n->inputs[0]], *to = &g->values[n->outputs[0]];
    if (tide_is_quantized_type(from->dtype) && to->dtype == from->dtype && !to->is_output)
        p->same[n->outputs[0]] = n->inputs[0];
    return TIDE_OK;
}

static tide_status quantize_again(pass *p, uint32_t node_i, tide_error *err) {
    tide_graph *g = p->g;
    tide_node *n = &g->nodes[node_i];
    quantised from, to;
    if (!is_quantize(n) || !dequantized(g, n->inputs[0], &from) || from.axis >= 0) return TIDE_OK;
    if (!read_parameters(g, node_i, n->outputs[0], &to) || to.axis >= 0) return TIDE_OK;
    if (numel_of(g, from.of) < 1) return TIDE_OK;
    if (is_same(p, &from, &to) && !g->values[to.of].is_output && to.of < p->n_values) {
        p->same[to.of] = from.of;
        return TIDE_OK; // without a reader it is pruned
    }
    const quantised *const in[] = {&from};
    return make_quantised(g, node_i, &tide_op_identity, 1, in, &to, err);
}

/// Readers of a value that is the same as another one read that.
static void read_same(pass *p) {
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        tide_node *n = &p->g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            while (n->inputs[k] != TIDE_NO_VALUE && n->inputs[k] < p->n_values &&
                   p->same[n->inputs[k]] != TIDE_NO_VALUE)
                n->inputs[k] = p->same[n->inputs[k]];
        }
    }
}

// ---- 4: operators ----

/// The operands of `n` as real numbers. False: one has no known size.
static bool real_operands(const tide_graph *g, const tide_node *n, size_t n_in, tide_operand *in, tide_operand *out) {
    for (size_t k = 0; k <= n_in; k++) {
        const uint32_t value_i = k < n_in ? n->inputs[k] : n->outputs[0];
        tide_operand *o = k < n_in ? &in[k] : out;
        *o = (tide_operand){0};
        if (value_i == TIDE_NO_VALUE) continue;
        if (numel_of(g, value_i) < 0) return false;
        *o = (tide_operand){.dtype = g->values[value_i].dtype, .shape = g->values[value_i].shape};
    }
    return true;
}

static size_t n_used_inputs(const tide_node *n) {
    size_t k = n->n_inputs;
    while (k > 0 && n->inputs[k - 1] == TIDE_NO_VALUE) k--;
    return k;
}

static tide_status take_in(pass *p, uint32_t node_i, tide_error *err) {
    tide_graph *g = p->g;
    tide_node *n = &g->nodes[node_i];
    const size_t n_in = n_used_inputs(n);
    if (n->dead || n->quant != NULL || tide_node_is_control(n) || tide_node_is_dynamic(g, n)) return TIDE_OK;
    if (tide_quant_role_of(n->def) != TIDE_QUANT_CUTS || n_in == 0 || n_in > TIDE_CUT_MAX_INPUTS) return TIDE_OK;
    for (size_t k = 1; k < n->n_outputs; k++)
        if (n->outputs[k] != TIDE_NO_VALUE) return TIDE_OK;
    if (g->values[n->outputs[0]].dtype != TIDE_F32) return TIDE_OK;
    tide_operand in[TIDE_CUT_MAX_INPUTS], out;
    if (!real_operands(g, n, n_in, in, &out)) return TIDE_OK;
    tide_cut cut;
    const tide_infer x = {.node = n, .in = in, .n_in = n_in, .out = &out, .n_out = 1};
    if (!tide_cut_make(n->def, &x, &cut)) return TIDE_OK;
    quantised q[TIDE_CUT_MAX_INPUTS], to;
    const quantised *from[TIDE_CUT_MAX_INPUTS] = {0};
    size_t n_taken = 0;
    for (size_t k = 0; k < n_in; k++) {
        if (!cut.in[k].is_cut || !dequantized(g, n->inputs[k], &q[k])) continue;
        if (q[k].axis >= 0 && cut.in[k].is_reshaped) continue;
        from[k] = &q[k];
        n_taken++;
    }
    const bool writes = quantized(p, n->outputs[0], n->region, &to);
    if (n_taken == 0 && !writes) return TIDE_OK;
    TIDE_TRY(make_quantised(g, node_i, n->def, n_in, from, writes ? &to : NULL, err));
    g->nodes[node_i].n_outputs = 1;
    if (!writes) return TIDE_OK;
    g->nodes[to.node].dead = true;
    set_output(g, node_i, 0, to.of);
    return TIDE_OK;
}

// ---- the pass ----

static bool has_quantised(const tide_graph *g) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (is_dequantize(&g->nodes[i]) || is_quantize(&g->nodes[i])) return true;
    return false;
}

typedef tide_status (*pass_step)(pass *p, uint32_t node_i, tide_error *err);

/// The nodes that were there when the pass began, in their order.
static tide_status walk_order(pass *p, bool backwards, pass_step step, tide_error *err) {
    TIDE_TRY(count_uses(p, err));
    for (size_t i = 0; i < p->order->n; i++)
        TIDE_TRY(step(p, p->order->nodes[backwards ? p->order->n - 1 - i : i], err));
    TIDE_ASSERT(tide__graph_holds(p->g));
    return TIDE_OK;
}

/// All nodes.
static tide_status walk(pass *p, pass_step step, tide_error *err) {
    TIDE_TRY(count_uses(p, err));
    for (uint32_t i = 0; i < p->g->n_nodes; i++) TIDE_TRY(step(p, i, err));
    TIDE_ASSERT(tide__graph_holds(p->g));
    return TIDE_OK;
}

static tide_status walk_same(pass *p, pass_step step, tide_error *err) {
    tide_host_free(p->same);
    TIDE_TRY(TIDE_NEW(&p->same, p->g->n_values, err, "for %zu values", p->g->n_values));
    for (size_t v = 0; v < p->g->n_values; v++) p->same[v] = TIDE_NO_VALUE;
    TIDE_TRY(walk(p, step, err));
    read_same(p);
    return TIDE_OK;
}

static tide_status run_pass(pass *p, tide_error *err) {
    TIDE_TRY(walk_same(p, pass_over_cast, err));
    TIDE_TRY(walk_order(p, false, move_behind, err));
    TIDE_TRY(walk_order(p, true, move_before, err));
    TIDE_TRY(walk_same(p, quantize_again, err));
    TIDE_TRY(walk(p, take_in, err));
    return p->needs_blank ? TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "a scale or zero point has no content") : TIDE_OK;
}

tide_status tide_ops_quantise(tide_graph *g, const tide_order *order, tide_quantise_stats *stats, tide_error *err) {
    pass p = {.g = g, .order = order};
    for (size_t i = 0; i < g->n_nodes; i++) g->nodes[i].holds_weight = false;
    if (!has_quantised(g)) return TIDE_OK;
    const tide_status st = run_pass(&p, err);
    stats->n_moves = p.n_moves;
    tide_host_free(p.uses);
    tide_host_free(p.reader);
    tide_host_free(p.same);
    return st;
}
