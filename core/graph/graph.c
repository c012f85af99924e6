// SPDX-License-Identifier: MIT
//
// graph: values, nodes and the edges between them. Built by the importers and by tests, rewritten by the passes.
// See graph.h.
#include "core/graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/pages.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"
#include "core/graph/region.h"

// ---- creating and destroying ----

tide_status tide_graph_create(const char *name, const char *source, tide_graph **out, tide_error *err) {
    tide_graph *g;
    TIDE_TRY(TIDE_NEW(&g, 1, err, "for a graph"));
    g->name = tide_host_strdup(name != NULL && name[0] != '\0' ? name : "graph");
    g->source = tide_host_strdup(source != NULL ? source : "");
    if (g->name == NULL || g->source == NULL) {
        tide_graph_destroy(g);
        return TIDE_NO_MEMORY(err, "for a graph");
    }
    *out = g;
    return TIDE_OK;
}

static void dim_names_free(tide_value *v) {
    if (v->dim_names == NULL) return;
    for (int32_t i = 0; i < v->shape.rank; i++) tide_host_free(v->dim_names[i]);
    tide_host_free(v->dim_names);
    v->dim_names = NULL;
}

static void node_deinit(tide_node *n) {
    for (size_t i = 0; i < n->n_attrs; i++) tide_attr_deinit(&n->attrs[i]);
    tide_host_free(n->attrs);
    tide_host_free(n->inputs);
    tide_host_free(n->outputs);
    tide_host_free(n->name);
    tide_host_free(n->op_type);
    tide_host_free(n->domain);
    tide_host_free(n->quant);
}

void tide_graph_destroy(tide_graph *g) {
    if (g == NULL) return;
    for (size_t i = 0; i < g->n_nodes; i++) node_deinit(&g->nodes[i]);
    for (size_t i = 0; i < g->n_values; i++) {
        dim_names_free(&g->values[i]);
        tide_tensor_unref(g->values[i].constant);
        tide_host_free(g->values[i].bound);
        tide_host_free(g->values[i].name);
    }
    tide_strmap_deinit(&g->value_index);
    for (size_t i = 0; i < g->n_files; i++) tide_host_free(g->files[i]);
    tide_host_free(g->files);
    tide_host_free(g->regions);
    tide_host_free(g->nodes);
    tide_host_free(g->values);
    tide_host_free(g->inputs);
    tide_host_free(g->outputs);
    tide_host_free(g->name);
    tide_host_free(g->source);
    tide_host_free(g->comment);
    tide_host_free(g);
}

// ---- values ----

uint32_t tide_graph_find_value(const tide_graph *g, const char *name) {
    uint64_t i;
    return tide_strmap_get(&g->value_index, name, &i) ? (uint32_t)i : TIDE_NO_VALUE;
}

tide_status tide_graph_add_value(tide_graph *g, const char *name, uint32_t *out, tide_error *err) {
    if (name == NULL || name[0] == '\0') return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "a value has no name");
    if (tide_graph_find_value(g, name) != TIDE_NO_VALUE)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "the name '%s' is given to two values", name);
    if (g->n_values >= TIDE_NO_VALUE - 1u) return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "more than 2^32 - 2 values");
    TIDE_TRY(TIDE_GROW(&g->values, &g->cap_values, g->n_values + 1, err, "for %s", name));
    tide_value v = {.name = tide_host_strdup(name), .producer = TIDE_NO_NODE};
    if (v.name == NULL) return TIDE_NO_MEMORY(err, "for %s", name);
    if (tide_strmap_put(&g->value_index, name, g->n_values) != TIDE_OK) {
        tide_host_free(v.name);
        return TIDE_NO_MEMORY(err, "for %s", name);
    }
    TIDE_ASSERT(g->n_values < g->cap_values && v.producer == TIDE_NO_NODE);
    *out = (uint32_t)g->n_values;
    g->values[g->n_values++] = v;
    return TIDE_OK;
}

tide_status tide_graph_intern_value(tide_graph *g, const char *name, uint32_t *out, tide_error *err) {
    const uint32_t i = tide_graph_find_value(g, name);
    if (i == TIDE_NO_VALUE) return tide_graph_add_value(g, name, out, err);
    *out = i;
    return TIDE_OK;
}

void tide__graph_drop_constant(tide_graph *g, uint32_t value_i) {
    tide_tensor *constant = g->values[value_i].constant;
    if (constant == NULL) return;
    const tide_storage *storage = tide_tensor_storage(constant);
    if (tide_block_is_mapped(storage->block))
        tide_pages_drop(tide_tensor_const_data(constant), tide_tensor_size_bytes(constant));
    tide_tensor_unref(constant);
    g->values[value_i].constant = NULL;
}

void tide_graph_set_constant(tide_graph *g, uint32_t value_i, tide_tensor *tensor) {
    tide_value *v = &g->values[value_i];
    TIDE_ASSERT(value_i < g->n_values);
    tide_tensor *old = v->constant;
    v->constant = tide_tensor_ref(tensor);
    tide_tensor_unref(old);
    dim_names_free(v);
    v->dtype = tide_tensor_dtype(tensor);
    v->shape = *tide_tensor_shape(tensor);
    v->has_shape = true;
}

static tide_status list_add(uint32_t **list, size_t *n, size_t *cap, uint32_t value_i, tide_error *err) {
    if (tide_host_grow(list, cap, *n + 1, sizeof **list) != TIDE_OK) return TIDE_NO_MEMORY(err, "for a graph's ends");
    (*list)[(*n)++] = value_i;
    return TIDE_OK;
}

tide_status tide_graph_add_input(tide_graph *g, uint32_t value_i, tide_error *err) {
    tide_value *v = &g->values[value_i];
    TIDE_ASSERT(value_i < g->n_values);
    if (v->is_input) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is listed twice as a graph input", v->name);
    if (v->producer != TIDE_NO_NODE)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "graph input '%s' is also an output of node '%s'", v->name,
                         g->nodes[v->producer].name);
    TIDE_TRY(list_add(&g->inputs, &g->n_inputs, &g->cap_inputs, value_i, err));
    v->is_input = true;
    return TIDE_OK;
}

tide_status tide_graph_add_output(tide_graph *g, uint32_t value_i, tide_error *err) {
    tide_value *v = &g->values[value_i];
    TIDE_ASSERT(value_i < g->n_values);
    if (v->is_output) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is listed twice as a graph output", v->name);
    TIDE_TRY(list_add(&g->outputs, &g->n_outputs, &g->cap_outputs, value_i, err));
    v->is_output = true;
    return TIDE_OK;
}

// ---- nodes ----

static tide_status check_free(const tide_graph *g, const char *node, uint32_t value_i, tide_error *err) {
    TIDE_ASSERT(value_i < g->n_values);
    const tide_value *v = &g->values[value_i];
    if (v->producer != TIDE_NO_NODE)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "nodes '%s' and '%s' both produce '%s'", g->nodes[v->producer].name,
                         node, v->name);
    if (v->is_input)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "node '%s' produces '%s', which is a graph input", node, v->name);
    if (v->constant != NULL)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "node '%s' produces '%s', which is a constant", node, v->name);
    return TIDE_OK;
}

static tide_status check_outputs(const tide_graph *g, const char *node, const uint32_t *outputs, size_t n,
                                 tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (outputs[i] == TIDE_NO_VALUE) continue;
        TIDE_TRY(check_free(g, node, outputs[i], err));
        for (size_t k = 0; k < i; k++) {
            if (outputs[k] == outputs[i])
                return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "node '%s' produces '%s' twice", node,
                                 g->values[outputs[i]].name);
        }
    }
    return TIDE_OK;
}

static char *node_name(const tide_graph *g, const char *name, const char *op_type) {
    if (name != NULL && name[0] != '\0') return tide_host_strdup(name);
    tide_text made_up = {0};
    tide_text_addf(&made_up, "%s_%zu", op_type, g->n_nodes);
    if (!made_up.failed) return made_up.data;
    tide_text_deinit(&made_up);
    return NULL;
}

static uint32_t *copy_indices(const uint32_t *list, size_t n) {
    uint32_t *copy = tide_host_calloc(n, sizeof *copy);
    if (copy != NULL && n > 0) memcpy(copy, list, n * sizeof *copy);
    return copy;
}

tide_status tide_graph_add_node(tide_graph *g, const char *name, const char *op_type, const char *domain, int opset,
                                const uint32_t *inputs, size_t n_inputs, const uint32_t *outputs, size_t n_outputs,
                                uint32_t *out, tide_error *err) {
    if (g->n_nodes >= TIDE_NO_NODE - 1u) return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "more than 2^32 - 2 nodes");
    tide_node n = {.opset = opset, .n_inputs = n_inputs, .n_outputs = n_outputs};
    n.name = node_name(g, name, op_type);
    if (n.name == NULL) return TIDE_NO_MEMORY(err, "for a node");
    tide_status st = check_outputs(g, n.name, outputs, n_outputs, err);
    if (st != TIDE_OK) goto fail;
    n.op_type = tide_host_strdup(op_type);
    n.domain = tide_host_strdup(domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain);
    n.inputs = copy_indices(inputs, n_inputs);
    n.outputs = copy_indices(outputs, n_outputs);
    if (n.op_type == NULL || n.domain == NULL || n.inputs == NULL || n.outputs == NULL ||
        tide_host_grow(&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes) != TIDE_OK) {
        st = TIDE_NO_MEMORY(err, "for %s", n.name);
        goto fail;
    }
    TIDE_ASSERT(g->n_nodes < g->cap_nodes);
    const uint32_t node_i = (uint32_t)g->n_nodes;
    g->nodes[g->n_nodes++] = n;
    for (size_t i = 0; i < n_outputs; i++) {
        if (outputs[i] == TIDE_NO_VALUE) continue;
        g->values[outputs[i]].producer = node_i;
        g->values[outputs[i]].producer_port = (uint32_t)i;
    }
    if (out != NULL) *out = node_i;
    return TIDE_OK;
fail:
    node_deinit(&n);
    return st;
}

// ---- what holds ----

static bool node_holds(const tide_graph *g, uint32_t node_i) {
    const tide_node *n = &g->nodes[node_i];
    for (size_t k = 0; k < n->n_inputs; k++) {
        if (n->inputs[k] != TIDE_NO_VALUE && n->inputs[k] >= g->n_values) return false;
    }
    for (size_t k = 0; k < n->n_outputs; k++) {
        if (n->outputs[k] == TIDE_NO_VALUE) continue;
        if (n->outputs[k] >= g->n_values) return false;
        const tide_value *v = &g->values[n->outputs[k]];
        if (!n->dead && (v->producer != node_i || v->producer_port != k || v->is_input)) return false;
    }
    return true;
}

static bool value_holds(const tide_graph *g, uint32_t value_i) {
    const tide_value *v = &g->values[value_i];
    if (v->producer == TIDE_NO_NODE) return true;
    if (v->producer >= g->n_nodes) return false;
    const tide_node *n = &g->nodes[v->producer];
    return v->producer_port < n->n_outputs && n->outputs[v->producer_port] == value_i;
}

static bool ends_hold(const tide_graph *g) {
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (g->inputs[i] >= g->n_values || !g->values[g->inputs[i]].is_input) return false;
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (g->outputs[i] >= g->n_values || !g->values[g->outputs[i]].is_output) return false;
    }
    return true;
}

/// A region lies in one that was there before; the nodes at its ends know it, as long as they live.
static bool region_holds(const tide_graph *g, uint32_t number) {
    const tide_region *r = tide_region_of(g, number);
    if (r->parent >= number || r->other > g->n_regions || r->open >= g->n_nodes) return false;
    if (r->close == TIDE_NO_NODE) return true; // is being read
    if (r->close >= g->n_nodes || g->nodes[r->close].closes != number) return false;
    return g->nodes[r->close].dead || (!g->nodes[r->open].dead && g->nodes[r->open].opens != 0);
}

bool tide__graph_holds(const tide_graph *g) {
    for (uint32_t r = 1; r <= g->n_regions; r++) {
        if (!region_holds(g, r)) return false;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (!node_holds(g, i)) return false;
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (!value_holds(g, i)) return false;
    }
    return ends_hold(g);
}

// ---- look-ups ----

tide_quant *tide_quant_copy(const tide_quant *q) {
    const size_t size_bytes = sizeof *q + q->n_inputs * sizeof *q->in;
    tide_quant *copy = tide_host_alloc(size_bytes);
    if (copy != NULL) memcpy(copy, q, size_bytes);
    return copy;
}

/// True when something gives the value its content: the caller, a file, a pass, or a node that still lives.
static bool value_exists(const tide_graph *g, uint32_t value_i) {
    TIDE_ASSERT(value_i < g->n_values);
    const tide_value *v = &g->values[value_i];
    if (v->is_input || v->constant != NULL) return true;
    return v->producer != TIDE_NO_NODE && !g->nodes[v->producer].dead;
}

tide_status tide_graph_validate(const tide_graph *g, tide_error *err) {
    TIDE_ASSERT(tide__graph_holds(g));
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            if (n->inputs[k] == TIDE_NO_VALUE || value_exists(g, n->inputs[k])) continue;
            const tide_status st =
                TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "input %zu of node '%s' (%s) is '%s', which nothing produces", k,
                          n->name, n->op_type, g->values[n->inputs[k]].name);
            tide_error_where(err, "%s: node '%s'", g->source, n->name);
            return st;
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (value_exists(g, g->outputs[i])) continue;
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "nothing produces the graph output '%s'", g->values[g->outputs[i]].name);
        tide_error_where(err, "%s: output %zu", g->source, i);
        return st;
    }
    return TIDE_OK;
}

static bool has_dynamic(const tide_graph *g, const uint32_t *values, size_t n) {
    for (size_t k = 0; k < n; k++) {
        if (values[k] != TIDE_NO_VALUE && g->values[values[k]].is_dynamic) return true;
    }
    return false;
}

bool tide_node_is_dynamic(const tide_graph *g, const tide_node *n) {
    return has_dynamic(g, n->inputs, n->n_inputs) || has_dynamic(g, n->outputs, n->n_outputs);
}

size_t tide_graph_count_uses(const tide_graph *g, uint32_t value_i) {
    size_t n_uses = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].dead) continue;
        for (size_t k = 0; k < g->nodes[i].n_inputs; k++) n_uses += g->nodes[i].inputs[k] == value_i;
    }
    return n_uses;
}

// ---- made-up names that must not clash ----

char *tide__value_name_unique(const tide_graph *g, const char *base) {
    tide_text name = {0};
    tide_text_add(&name, base);
    for (unsigned i = 2; !name.failed && tide_graph_find_value(g, name.data) != TIDE_NO_VALUE; i++) {
        name.len = 0;
        tide_text_addf(&name, "%s_%u", base, i);
    }
    if (!name.failed) return name.data;
    tide_text_deinit(&name);
    return NULL;
}

tide_status tide__node_name_make(const char *op_type, size_t node_i, tide_strmap *taken, tide_text *out,
                                 tide_error *err) {
    tide_text_addf(out, "%s_%zu", op_type, node_i);
    const size_t len = out->len;
    for (unsigned k = 2; !out->failed && tide_strmap_get(taken, out->data, NULL); k++) {
        out->len = len;
        tide_text_addf(out, "_%u", k);
    }
    if (out->failed || tide_strmap_put(taken, out->data, 0) != TIDE_OK) return TIDE_NO_MEMORY(err, "for node names");
    return TIDE_OK;
}

const char *tide__path_leaf(const char *path) {
    if (path == NULL || path[0] == '\0' || strcmp(path, "-") == 0) return "graph";
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}
