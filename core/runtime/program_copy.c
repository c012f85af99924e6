// SPDX-License-Identifier: MIT
//
// Copies of nodes: the second run of a repeated node is a node of its own, with values and a kernel of its own. See
// program_internal.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/runtime/program_internal.h"

/// NULL stays NULL; `ok` becomes false without memory.
static char *copy_text(const char *text, bool *ok) {
    if (text == NULL) return NULL;
    char *copy = tide_host_strdup(text);
    *ok = *ok && copy != NULL;
    return copy;
}

static void *copy_array(const void *array, size_t n, size_t elem_bytes, bool *ok) {
    if (array == NULL) return NULL;
    void *copy = tide_host_calloc(n, elem_bytes);
    *ok = *ok && copy != NULL;
    if (copy != NULL && n > 0) memcpy(copy, array, n * elem_bytes);
    return copy;
}

static char **copy_strings(char *const *strings, size_t n, bool *ok) {
    if (strings == NULL) return NULL;
    char **copy = tide_host_calloc(n, sizeof *copy);
    *ok = *ok && copy != NULL;
    for (size_t i = 0; copy != NULL && i < n; i++) copy[i] = copy_text(strings[i], ok);
    return copy;
}

static tide_attr copy_attr(const tide_attr *a, bool *ok) {
    return (tide_attr){.name = copy_text(a->name, ok),
                       .type = a->type,
                       .i = a->i,
                       .f = a->f,
                       .s = copy_text(a->s, ok),
                       .n = a->n,
                       .ints = copy_array(a->ints, a->n, sizeof *a->ints, ok),
                       .floats = copy_array(a->floats, a->n, sizeof *a->floats, ok),
                       .strings = copy_strings(a->strings, a->n, ok),
                       .tensor = a->tensor != NULL ? tide_tensor_ref(a->tensor) : NULL};
}

void tide__node_deinit(tide_node *n) {
    for (size_t i = 0; n->attrs != NULL && i < n->n_attrs; i++) tide_attr_deinit(&n->attrs[i]);
    tide_host_free(n->attrs);
    tide_host_free(n->inputs);
    tide_host_free(n->outputs);
    tide_host_free(n->name);
    tide_host_free(n->op_type);
    tide_host_free(n->domain);
    *n = (tide_node){0};
}

static tide_status copy_whole_node(const tide_node *n, const char *name, tide_node *out, tide_error *err) {
    bool ok = true;
    tide_node copy = {.name = copy_text(name, &ok),
                      .op_type = copy_text(n->op_type, &ok),
                      .domain = copy_text(n->domain, &ok),
                      .opset = n->opset,
                      .attrs = tide_host_calloc(n->n_attrs + 1, sizeof *n->attrs),
                      .n_attrs = n->n_attrs,
                      .inputs = copy_array(n->inputs, n->n_inputs, sizeof *n->inputs, &ok),
                      .n_inputs = n->n_inputs,
                      .outputs = copy_array(n->outputs, n->n_outputs, sizeof *n->outputs, &ok),
                      .n_outputs = n->n_outputs,
                      .activation = n->activation,
                      .def = n->def};
    for (size_t i = 0; copy.attrs != NULL && i < n->n_attrs; i++) copy.attrs[i] = copy_attr(&n->attrs[i], &ok);
    if (!ok || copy.attrs == NULL) {
        tide__node_deinit(&copy);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a second '%s'", n->name);
    }
    *out = copy;
    return TIDE_OK;
}

// ---- second runs of a draft ----

tide_status tide__draft_no_memory(const tide__draft *d, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to arrange %zu steps", d->n);
}

bool tide__draft_drops(const tide__draft *d, uint32_t node_i) {
    for (size_t i = 0; i < d->p->n_twins; i++) {
        if (d->p->twins[i].again == node_i) return d->place[node_i] == TIDE__NOWHERE;
    }
    return false;
}

/// "<value>.again" or, where a value has that name, "<value>.again.2", ".3", …: the same for the same repeats.
static tide_status name_value(tide__draft *d, const char *name, tide_value *v, tide_error *err) {
    tide_text text = {0};
    tide_text_addf(&text, "%s.again", name);
    for (unsigned i = 2; !text.failed && tide_strmap_get(&d->value_index, text.data, NULL); i++) {
        text.len = 0;
        tide_text_addf(&text, "%s.again.%u", name, i);
    }
    const size_t value_i = d->p->graph->n_values + d->n_values;
    if (text.failed || tide_strmap_put(&d->value_index, text.data, value_i) != TIDE_OK) {
        tide_text_deinit(&text);
        return tide__draft_no_memory(d, err);
    }
    v->name = text.data;
    return TIDE_OK;
}

static tide_status copy_value(tide__draft *d, uint32_t value_i, uint32_t node_i, uint32_t port, uint32_t *out,
                              tide_error *err) {
    const tide_value *from = &d->p->graph->values[value_i];
    tide_value v = {.dtype = from->dtype,
                    .has_shape = from->has_shape,
                    .shape = from->shape,
                    .producer = node_i,
                    .producer_port = port};
    if (d->p->graph->n_values + d->n_values >= TIDE_NO_VALUE - 1u)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "more than 2^32 - 2 values");
    if (tide_host_grow(&d->values, &d->cap_values, d->n_values + 1, sizeof *d->values) != TIDE_OK)
        return tide__draft_no_memory(d, err);
    TIDE_TRY(name_value(d, from->name, &v, err));
    *out = (uint32_t)(d->p->graph->n_values + d->n_values);
    d->values[d->n_values++] = v;
    return TIDE_OK;
}

static tide_status check_repeatable(const tide__draft *d, const tide_node *n, const char *again, tide_error *err) {
    const tide_graph *g = d->p->graph;
    if (n->def != NULL && (n->def->flags & TIDE_OP_NO_FOLD) != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "node '%s' (%s) cannot run twice: two runs may differ", n->name,
                         n->op_type);
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == TIDE_NO_VALUE || !g->values[n->outputs[i]].is_output) continue;
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "node '%s' cannot run twice: it makes the graph output '%s'", n->name,
                         g->values[n->outputs[i]].name);
    }
    for (size_t i = 0; i < d->p->n_twins; i++) {
        if (n == &g->nodes[d->p->twins[i].first] || n == &g->nodes[d->p->twins[i].again])
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "node '%s' runs twice already", n->name);
    }
    // Plan files name steps: each of the two must be the only one of its name.
    for (size_t i = 0; i < d->p->n_steps; i++) {
        const tide_node *other = &g->nodes[d->p->steps[i].node];
        if (other == n || (strcmp(other->name, n->name) != 0 && strcmp(other->name, again) != 0)) continue;
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "node '%s' cannot run twice: another node is called '%s'", n->name,
                         other->name);
    }
    return TIDE_OK;
}

static tide_status copy_node(tide__draft *d, size_t i, const char *name, tide_error *err) {
    const tide_node *from = &d->p->graph->nodes[d->again[i]];
    TIDE_TRY(check_repeatable(d, from, name, err));
    TIDE_TRY(copy_whole_node(from, name, &d->nodes[i], err));
    const uint32_t node_i = (uint32_t)(d->p->graph->n_nodes + i);
    for (uint32_t port = 0; port < from->n_outputs; port++) {
        if (from->outputs[port] == TIDE_NO_VALUE) continue;
        TIDE_TRY(copy_value(d, from->outputs[port], node_i, port, &d->nodes[i].outputs[port], err));
    }
    // Prepared on the operands of the first run: the second run's have the same sizes and constants.
    d->kernel[i] = (tide_kernel){.def = from->def, .node = from};
    if (!d->p->no_kernels) TIDE_TRY(tide__program_prepare_kernel(d->p->graph, from, &d->kernel[i], err));
    d->n_kernels++;
    return TIDE_OK;
}

tide_status tide__draft_copy_nodes(tide__draft *d, tide_error *err) {
    const tide_graph *g = d->p->graph;
    for (size_t v = 0; d->changes && v < g->n_values; v++) {
        // A name that was dropped, now or before, is free again.
        const uint32_t maker = g->values[v].producer;
        if (tide_graph_find_value(g, g->values[v].name) != v || (maker != TIDE_NO_NODE && tide__draft_drops(d, maker)))
            continue;
        if (tide_strmap_put(&d->value_index, g->values[v].name, v) != TIDE_OK) return tide__draft_no_memory(d, err);
    }
    for (size_t i = 0; i < d->n_again; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s.again", g->nodes[d->again[i]].name);
        const tide_status st = name.failed ? tide__draft_no_memory(d, err) : copy_node(d, i, name.data, err);
        tide_text_deinit(&name);
        TIDE_TRY(st);
        d->twins[d->n_twins++] = (tide_program_twin){d->again[i], (uint32_t)(g->n_nodes + i)};
    }
    return TIDE_OK;
}
