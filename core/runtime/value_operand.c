// SPDX-License-Identifier: MIT
//
// A value of the graph as kernels see it. See value_operand.h.
#include "core/runtime/value_operand.h"

tide_status tide__value_operand(const tide_graph *g, uint32_t value_i, tide_operand *out, tide_error *err) {
    *out = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    const tide_value *v = &g->values[value_i];
    if (v->is_dynamic || v->dtype == TIDE_DTYPE_UNDEFINED || !v->has_shape || !tide_shape_known(&v->shape))
        return TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "the size of tensor '%s' is not known", v->name);
    out->dtype = v->dtype;
    out->shape = v->shape;
    const tide_status st = tide_shape_bytes(&v->shape, v->dtype, &out->size_bytes, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "tensor '%s'", v->name);
        return st;
    }
    if (v->constant == NULL) return TIDE_OK;
    const void *data;
    const tide_status read = tide_tensor_read(v->constant, &data, err);
    if (read != TIDE_OK) {
        tide_error_prefix(err, "constant '%s'", v->name);
        return read;
    }
    out->data = (void *)(uintptr_t)data; // kernels take inputs through the same field as outputs and only read them
    return TIDE_OK;
}

tide_status tide__value_most(const tide_graph *g, uint32_t value_i, tide_operand *out, tide_error *err) {
    if (value_i == TIDE_NO_VALUE || !g->values[value_i].is_bounded) return tide__value_operand(g, value_i, out, err);
    const tide_value *v = &g->values[value_i];
    *out = (tide_operand){.dtype = v->dtype, .shape = v->bound->most};
    return tide_shape_bytes(&out->shape, v->dtype, &out->size_bytes, err);
}

tide_status tide__fix_constant(tide_tensor *constant, const char *name, tide_error *err) {
    tide_block *block = tide_tensor_storage(constant)->block;
    if (block == NULL) return TIDE_OK; // without elements there is nothing to hold
    tide_status st = tide_block_materialize(block, err);
    if (st == TIDE_OK) st = tide_block_fix(block, err);
    if (st != TIDE_OK) tide_error_prefix(err, "constant '%s'", name);
    return st;
}

tide_status tide__value_operands(const tide_graph *g, const uint32_t *values, size_t n, tide_operand *out,
                                 tide_error *err) {
    for (size_t i = 0; i < n; i++) TIDE_TRY(tide__value_operand(g, values[i], &out[i], err));
    return TIDE_OK;
}

static size_t mark(const tide_graph *g, uint32_t value_i, bool *is_weight) {
    if (value_i == TIDE_NO_VALUE || g->values[value_i].constant == NULL || is_weight[value_i]) return 0;
    is_weight[value_i] = true;
    return 1;
}

size_t tide__mark_weights(const tide_graph *g, const tide_order *order, bool *is_weight) {
    size_t n = 0;
    for (size_t i = 0; i < order->n; i++) {
        const tide_node *node = &g->nodes[order->nodes[i]];
        for (size_t k = 0; k < node->n_inputs; k++) n += mark(g, node->inputs[k], is_weight);
    }
    for (size_t i = 0; i < g->n_outputs; i++) n += mark(g, g->outputs[i], is_weight);
    return n;
}
