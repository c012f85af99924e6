// SPDX-License-Identifier: MIT
//
// Arranging a program anew: another order of its steps, second runs of some nodes, and which run each step reads. All
// that can fail is done on a draft; what follows cannot, so that a program is either arranged or as it was.
//
//     draft:    order | place of each node | copies of repeated nodes, their values and kernels | inputs of every step
//     program:  taken over in one go; kernels keep pointers into graph->nodes, which are set anew when that moves
#include <stdatomic.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/graph/region.h"
#include "core/runtime/runtime_internal.h"
#include "core/runtime/value_operand.h"

#define NOWHERE SIZE_MAX

/// What `arrange` is about to do.
typedef struct draft {
    tide_program *p;
    const uint32_t *order; ///< [n] node indices
    size_t n;
    const uint32_t *again; ///< [n_again] nodes to copy
    size_t n_again;
    tide_node *nodes;    ///< [n_again] the copies; node index graph->n_nodes + i
    tide_kernel *kernel; ///< [n_again] prepared: n_kernels of them
    size_t n_kernels;
    bool changes;       ///< second runs come or go
    tide_value *values; ///< [n_values] what the copies make; value index graph->n_values + i
    size_t n_values, cap_values;
    tide_strmap value_index;  ///< of all values, old and new
    size_t *place;            ///< [nodes, old and new] position in order; NOWHERE: no step
    uint32_t *other;          ///< [values, old and new] first run's value -> second run's and back; TIDE_NO_VALUE
    bool *is_again;           ///< [values, old and new] made by a second run
    uint32_t **inputs;        ///< [n] what each step will read
    tide_program_step *steps; ///< [n] taken over
    uint32_t *order_nodes;    ///< [n] taken over
    tide_program_twin *twins; ///< [n_twins] taken over: those that stay, then those that come
    size_t n_twins;
} draft;

// ---- second runs ----
//
// The second run of a repeated node is a node of its own, with values and a kernel of its own.

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

static void node_deinit(tide_node *n) {
    for (size_t i = 0; n->attrs != NULL && i < n->n_attrs; i++) tide_attr_deinit(&n->attrs[i]);
    tide_host_free(n->attrs);
    tide_host_free(n->inputs);
    tide_host_free(n->outputs);
    tide_host_free(n->name);
    tide_host_free(n->op_type);
    tide_host_free(n->domain);
    tide_host_free(n->quant);
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
                      .def = n->def,
                      .narrow = n->narrow,
                      .quant = n->quant != NULL ? tide_quant_copy(n->quant) : NULL};
    for (size_t i = 0; copy.attrs != NULL && i < n->n_attrs; i++) copy.attrs[i] = copy_attr(&n->attrs[i], &ok);
    if (!ok || copy.attrs == NULL || (n->quant != NULL && copy.quant == NULL)) {
        node_deinit(&copy);
        return TIDE_NO_MEMORY(err, "for a second '%s'", n->name);
    }
    *out = copy;
    return TIDE_OK;
}

// ---- second runs of a draft ----

/// Whether the node is a second run that the order leaves out.
static bool drops(const draft *d, uint32_t node_i) {
    for (size_t i = 0; i < d->p->n_twins; i++) {
        if (d->p->twins[i].again == node_i) return d->place[node_i] == NOWHERE;
    }
    return false;
}

/// "<value>.again" or, where a value has that name, "<value>.again.2", ".3", …: the same for the same repeats.
static tide_status name_value(draft *d, const char *name, tide_value *v, tide_error *err) {
    tide_text text = {0};
    tide_text_addf(&text, "%s.again", name);
    for (unsigned i = 2; !text.failed && tide_strmap_get(&d->value_index, text.data, NULL); i++) {
        text.len = 0;
        tide_text_addf(&text, "%s.again.%u", name, i);
    }
    const size_t value_i = d->p->graph->n_values + d->n_values;
    if (text.failed || tide_strmap_put(&d->value_index, text.data, value_i) != TIDE_OK) {
        tide_text_deinit(&text);
        return TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n);
    }
    v->name = text.data;
    return TIDE_OK;
}

static tide_status copy_value(draft *d, uint32_t value_i, uint32_t node_i, uint32_t port, uint32_t *out,
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
        return TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n);
    TIDE_TRY(name_value(d, from->name, &v, err));
    *out = (uint32_t)(d->p->graph->n_values + d->n_values);
    d->values[d->n_values++] = v;
    return TIDE_OK;
}

static tide_status check_repeatable(const draft *d, const tide_node *n, const char *again, tide_error *err) {
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

static tide_status copy_node(draft *d, size_t i, const char *name, tide_error *err) {
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

/// Fill d->nodes, kernel, values, value_index and twins with the second runs of d->again; d->place is there.
static tide_status copy_nodes(draft *d, tide_error *err) {
    const tide_graph *g = d->p->graph;
    for (size_t v = 0; d->changes && v < g->n_values; v++) {
        // A name that was dropped, now or before, is free again.
        const uint32_t maker = g->values[v].producer;
        if (tide_graph_find_value(g, g->values[v].name) != v || (maker != TIDE_NO_NODE && drops(d, maker))) continue;
        if (tide_strmap_put(&d->value_index, g->values[v].name, v) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n);
    }
    for (size_t i = 0; i < d->n_again; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s.again", g->nodes[d->again[i]].name);
        const tide_status st =
            name.failed ? TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n) : copy_node(d, i, name.data, err);
        tide_text_deinit(&name);
        TIDE_TRY(st);
        d->twins[d->n_twins++] = (tide_program_twin){d->again[i], (uint32_t)(g->n_nodes + i)};
    }
    return TIDE_OK;
}

static const tide_node *node_of(const draft *d, uint32_t node_i) {
    const tide_graph *g = d->p->graph;
    TIDE_ASSERT(node_i < g->n_nodes + d->n_again);
    return node_i < g->n_nodes ? &g->nodes[node_i] : &d->nodes[node_i - g->n_nodes];
}

/// Also before the copies are made.
static const char *name_of(const draft *d, uint32_t node_i) {
    const tide_graph *g = d->p->graph;
    return g->nodes[node_i < g->n_nodes ? node_i : d->again[node_i - g->n_nodes]].name;
}

static const tide_value *value_of(const draft *d, uint32_t value_i) {
    const tide_graph *g = d->p->graph;
    TIDE_ASSERT(value_i < g->n_values + d->n_values);
    return value_i < g->n_values ? &g->values[value_i] : &d->values[value_i - g->n_values];
}

// ---- the place of each node ----

static tide_status fill_places(draft *d, tide_error *err) {
    const size_t n_nodes = d->p->graph->n_nodes + d->n_again;
    for (size_t i = 0; i < n_nodes; i++) d->place[i] = NOWHERE;
    for (size_t i = 0; i < d->n; i++) {
        if (d->place[d->order[i]] != NOWHERE)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "the order has node '%s' twice: at steps %zu and %zu",
                             name_of(d, d->order[i]), d->place[d->order[i]], i);
        d->place[d->order[i]] = i;
    }
    for (size_t i = 0; i < d->p->n_twins; i++) {
        if (d->place[d->p->twins[i].again] == NOWHERE)
            d->changes = true;
        else
            d->twins[d->n_twins++] = d->p->twins[i];
    }
    for (size_t i = 0; i < d->p->n_steps; i++) {
        const uint32_t node_i = d->p->steps[i].node;
        if (d->place[node_i] == NOWHERE && !drops(d, node_i))
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "the order leaves out node '%s'", node_of(d, node_i)->name);
    }
    for (size_t i = 0; i < d->n_again; i++) {
        if (d->place[d->p->graph->n_nodes + i] == NOWHERE)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "the order leaves out the second run of node '%s'",
                             node_of(d, d->again[i])->name);
    }
    return TIDE_OK;
}

// ---- which run each step reads ----

static void pair_values(draft *d, const tide_program_twin *twin) {
    const tide_node *first = node_of(d, twin->first), *again = node_of(d, twin->again);
    TIDE_ASSERT(first->n_outputs == again->n_outputs && twin->first != twin->again);
    for (size_t port = 0; port < first->n_outputs; port++) {
        if (first->outputs[port] == TIDE_NO_VALUE) continue;
        d->other[first->outputs[port]] = again->outputs[port];
        d->other[again->outputs[port]] = first->outputs[port];
        d->is_again[again->outputs[port]] = true;
    }
}

/// The value that step `at` reads for `value_i`: that of the last run before it.
static tide_status bind_input(const draft *d, size_t at, uint32_t value_i, uint32_t *out, tide_error *err) {
    *out = value_i;
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    const tide_value *v = value_of(d, value_i);
    if (v->constant != NULL || v->producer == TIDE_NO_NODE) return TIDE_OK;
    TIDE_ASSERT(value_i < d->p->graph->n_values + d->n_values);
    const uint32_t other = d->other[value_i];
    const uint32_t first = d->is_again[value_i] ? other : value_i, second = d->is_again[value_i] ? value_i : other;
    if (second != TIDE_NO_VALUE && d->place[value_of(d, second)->producer] < at) {
        *out = second;
        return TIDE_OK;
    }
    *out = first;
    const uint32_t maker = value_of(d, first)->producer;
    if (d->place[maker] < at) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "step %zu, node '%s', reads '%s' before node '%s' makes it", at,
                     node_of(d, d->order[at])->name, value_of(d, first)->name, node_of(d, maker)->name);
}

static tide_status bind_steps(draft *d, tide_error *err) {
    for (size_t at = 0; at < d->n; at++) {
        const tide_node *n = node_of(d, d->order[at]);
        d->inputs[at] = tide_host_calloc(n->n_inputs + 1, sizeof **d->inputs);
        if (d->inputs[at] == NULL) return TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n);
        for (size_t k = 0; k < n->n_inputs; k++) TIDE_TRY(bind_input(d, at, n->inputs[k], &d->inputs[at][k], err));
    }
    return TIDE_OK;
}

static bool makes(const tide_node *n, uint32_t value_i) {
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == value_i && value_i != TIDE_NO_VALUE) return true;
    }
    return false;
}

static bool has_reader(const draft *d, const tide_node *n) {
    for (size_t at = 0; at < d->n; at++) {
        const size_t n_inputs = node_of(d, d->order[at])->n_inputs;
        for (size_t k = 0; k < n_inputs; k++) {
            if (makes(n, d->inputs[at][k])) return true;
        }
    }
    return false;
}

static tide_status check_twins(const draft *d, tide_error *err) {
    for (size_t i = 0; i < d->n_twins; i++) {
        const tide_node *first = node_of(d, d->twins[i].first), *again = node_of(d, d->twins[i].again);
        if (d->place[d->twins[i].again] < d->place[d->twins[i].first])
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s', the second run, would stand before '%s', the first",
                             again->name, first->name);
        if (!has_reader(d, again))
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "no operator would read what '%s' makes", again->name);
    }
    return TIDE_OK;
}

static tide_status bind(draft *d, tide_error *err) {
    const size_t n_values = d->p->graph->n_values + d->n_values;
    d->other = tide_host_calloc(n_values + 1, sizeof *d->other);
    d->is_again = tide_host_calloc(n_values + 1, sizeof *d->is_again);
    if (d->other == NULL || d->is_again == NULL) return TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n);
    for (size_t v = 0; v < n_values; v++) d->other[v] = TIDE_NO_VALUE;
    // Those that go are paired too, so that their readers find the way back to the first run.
    for (size_t i = 0; i < d->p->n_twins; i++) pair_values(d, &d->p->twins[i]);
    for (size_t i = 0; i < d->n_twins; i++) pair_values(d, &d->twins[i]);
    TIDE_TRY(bind_steps(d, err));
    return check_twins(d, err);
}

// ---- applying the draft ----

static void point_kernels(tide_program *p) {
    for (size_t i = 0; i < p->n_steps; i++) p->steps[i].kernel.node = &p->graph->nodes[p->steps[i].node];
}

/// Room in the graph for all that comes; nodes that move take the kernels' pointers along.
static tide_status make_room(draft *d, tide_error *err) {
    tide_graph *g = d->p->graph;
    const tide_status nodes = tide_host_grow(&g->nodes, &g->cap_nodes, g->n_nodes + d->n_again, sizeof *g->nodes);
    point_kernels(d->p);
    if (nodes != TIDE_OK ||
        tide_host_grow(&g->values, &g->cap_values, g->n_values + d->n_values, sizeof *g->values) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n);
    return TIDE_OK;
}

static void take_additions(draft *d) {
    tide_graph *g = d->p->graph;
    if (!d->changes) return;
    TIDE_ASSERT(g->n_nodes + d->n_again <= g->cap_nodes && g->n_values + d->n_values <= g->cap_values);
    TIDE_ASSERT(d->n_kernels == d->n_again);
    for (size_t i = 0; i < d->n_again; i++) g->nodes[g->n_nodes++] = d->nodes[i];
    for (size_t i = 0; i < d->n_values; i++) g->values[g->n_values++] = d->values[i];
    const tide_strmap old = g->value_index;
    g->value_index = d->value_index;
    d->value_index = old;
    tide_program_twin *const old_twins = d->p->twins;
    d->p->twins = d->twins;
    d->p->n_twins = d->n_twins;
    d->twins = old_twins;
    d->n_values = d->n_kernels = 0;
    memset(d->nodes, 0, d->n_again * sizeof *d->nodes);
}

/// A second run that goes: its values stay where they are, and nothing reads them.
static void drop_step(tide_program *p, tide_program_step *step) {
    tide__program_destroy_kernel(&step->kernel);
    p->graph->nodes[step->node].dead = true;
}

static void take_steps(draft *d, size_t n_old_nodes) {
    tide_program *p = d->p;
    for (size_t i = 0; i < p->n_steps; i++) {
        const size_t at = d->place[p->steps[i].node];
        if (at == NOWHERE) {
            drop_step(p, &p->steps[i]);
            continue;
        }
        TIDE_ASSERT(at < d->n && d->steps[at].kernel.def == NULL);
        d->steps[at] = p->steps[i];
    }
    for (size_t i = 0; i < d->n_again; i++) {
        const uint32_t node_i = (uint32_t)(n_old_nodes + i);
        TIDE_ASSERT(d->place[node_i] < d->n);
        d->steps[d->place[node_i]] = (tide_program_step){.node = node_i, .kernel = d->kernel[i]};
    }
    for (size_t at = 0; at < d->n; at++) {
        tide_node *n = &p->graph->nodes[d->order[at]];
        d->order_nodes[at] = d->order[at];
        if (n->n_inputs > 0) memcpy(n->inputs, d->inputs[at], n->n_inputs * sizeof *n->inputs);
    }
    tide_program_step *const old_steps = p->steps;
    uint32_t *const old_order = p->order.nodes;
    p->steps = d->steps;
    p->n_steps = d->n;
    p->order = (tide_order){.nodes = d->order_nodes, .n = d->n};
    d->steps = old_steps;
    d->order_nodes = old_order;
    point_kernels(p);
}

// ---- arrange ----

static tide_status draft_init(draft *d, tide_error *err) {
    const size_t n_nodes = d->p->graph->n_nodes + d->n_again;
    d->nodes = tide_host_calloc(d->n_again + 1, sizeof *d->nodes);
    d->kernel = tide_host_calloc(d->n_again + 1, sizeof *d->kernel);
    d->place = tide_host_calloc(n_nodes + 1, sizeof *d->place);
    d->inputs = tide_host_calloc(d->n + 1, sizeof *d->inputs);
    d->steps = tide_host_calloc(d->n + 1, sizeof *d->steps);
    d->order_nodes = tide_host_calloc(d->n + 1, sizeof *d->order_nodes);
    d->twins = tide_host_calloc(d->p->n_twins + d->n_again + 1, sizeof *d->twins);
    if (d->nodes == NULL || d->kernel == NULL || d->place == NULL || d->inputs == NULL || d->steps == NULL ||
        d->order_nodes == NULL || d->twins == NULL)
        return TIDE_NO_MEMORY(err, "to arrange %zu steps", d->n);
    d->changes = d->n_again > 0;
    return TIDE_OK;
}

static void draft_deinit(draft *d) {
    for (size_t i = 0; i < d->n_kernels; i++) tide__program_destroy_kernel(&d->kernel[i]);
    for (size_t i = 0; d->nodes != NULL && i < d->n_again; i++) node_deinit(&d->nodes[i]);
    for (size_t i = 0; i < d->n_values; i++) tide_host_free(d->values[i].name);
    for (size_t i = 0; d->inputs != NULL && i < d->n; i++) tide_host_free(d->inputs[i]);
    tide_strmap_deinit(&d->value_index);
    tide_host_free(d->nodes);
    tide_host_free(d->kernel);
    tide_host_free(d->values);
    tide_host_free(d->place);
    tide_host_free(d->other);
    tide_host_free(d->is_again);
    tide_host_free(d->inputs);
    tide_host_free(d->steps);
    tide_host_free(d->order_nodes);
    tide_host_free(d->twins);
}

static tide_status prepare_draft(draft *d, tide_error *err) {
    TIDE_TRY(draft_init(d, err));
    TIDE_TRY(fill_places(d, err));
    TIDE_TRY(copy_nodes(d, err));
    TIDE_TRY(bind(d, err));
    return d->n_again > 0 ? make_room(d, err) : TIDE_OK;
}

// A body is a stretch of the order, with places of its own to go on at. So the steps that open and close bodies stay at
// their places, and the others between the same two of them.

/// The stretch of each step's node [n_nodes]; a step that opens or closes a body is one by itself.
static void number_stretches(const tide_program *p, uint32_t *stretch_of) {
    uint32_t stretch = 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        const bool is_control = tide_node_is_control(&p->graph->nodes[p->steps[i].node]);
        stretch += is_control;
        stretch_of[p->steps[i].node] = stretch;
        stretch += is_control;
    }
}

static tide_status check_stretches(const tide_program *p, const uint32_t *nodes, size_t n, tide_error *err) {
    uint32_t *stretch_of;
    TIDE_TRY(TIDE_NEW(&stretch_of, p->graph->n_nodes + 1, err, "to arrange %zu steps", n));
    number_stretches(p, stretch_of);
    size_t i = 0;
    while (i < n && stretch_of[nodes[i]] == stretch_of[p->steps[i].node]) i++;
    tide_host_free(stretch_of);
    if (i == n) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "step %zu, node '%s', would stand in another body, or beyond one", i,
                     p->graph->nodes[nodes[i]].name);
}

static tide_status check_bodies(const tide_program *p, const uint32_t *nodes, size_t n, size_t n_again,
                                tide_error *err) {
    if (p->graph->n_regions == 0) return TIDE_OK;
    if (n_again > 0 || n != p->n_steps)
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "program '%s' has bodies of If, Loop or Scan: each of its steps stands there once",
                         p->graph->name);
    return check_stretches(p, nodes, n, err);
}

/**
 * Bring the program into the order of `nodes`, after adding a second run of each node in `again`. Every step then reads
 * what it reads from the last run before it. Second runs that the order leaves out are dropped: their nodes die.
 *
 * @param nodes  [n] node indices: the nodes of all steps but some second runs, and graph->n_nodes + i for the second
 *               run of again[i]
 * @param again  [n_again] nodes of steps; NULL with 0
 * @return as tide_program_reorder and tide_program_repeat; nothing has changed then
 */
static tide_status arrange(tide_program *p, const uint32_t *nodes, size_t n, const uint32_t *again, size_t n_again,
                           tide_error *err) {
    if (atomic_load_explicit(&p->refs, memory_order_acquire) != 1)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "program '%s' is in other hands too: its steps stay as they are",
                         p->graph->name);
    if (p->graph->n_nodes + n_again >= TIDE_NO_NODE - 1u)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "more than 2^32 - 2 nodes");
    TIDE_TRY(check_bodies(p, nodes, n, n_again, err));
    draft d = {.p = p, .order = nodes, .n = n, .again = again, .n_again = n_again};
    const tide_status st = prepare_draft(&d, err);
    if (st == TIDE_OK) {
        const size_t n_old_nodes = p->graph->n_nodes;
        take_additions(&d);
        take_steps(&d, n_old_nodes);
        TIDE_ASSERT(tide__program_holds(p) && tide__graph_holds(p->graph));
    }
    draft_deinit(&d);
    return st;
}

// ---- orders by name ----
//
// Another order for the steps of a program, second runs of its nodes, and both as a plan file names them.

static const char *step_name(const tide_program *p, size_t step) { return p->graph->nodes[p->steps[step].node].name; }

tide_status tide_program_reorder(tide_program *p, const uint32_t *order, tide_error *err) {
    uint32_t *nodes = tide_host_calloc(p->n_steps + 1, sizeof *nodes);
    if (nodes == NULL) return TIDE_NO_MEMORY(err, "for an order of %zu steps", p->n_steps);
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < p->n_steps && st == TIDE_OK; i++) {
        if (order[i] < p->n_steps)
            nodes[i] = p->steps[order[i]].node;
        else
            st = TIDE_FAIL(err, TIDE_ERR_INVALID, "the order names step %u; the program has %zu", order[i], p->n_steps);
    }
    if (st == TIDE_OK) st = arrange(p, nodes, p->n_steps, NULL, 0, err);
    tide_host_free(nodes);
    return st;
}

tide_status tide_program_repeat(tide_program *p, uint32_t step, uint32_t before, tide_error *err) {
    if (step >= p->n_steps || before > p->n_steps)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "step %u again before step %u; the program has %zu steps", step, before,
                         p->n_steps);
    if (before <= step)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "node '%s' runs at step %u: before step %u it would be no second run",
                         step_name(p, step), step, before);
    uint32_t *nodes = tide_host_calloc(p->n_steps + 1, sizeof *nodes);
    if (nodes == NULL) return TIDE_NO_MEMORY(err, "for an order of %zu steps", p->n_steps + 1);
    for (size_t i = 0; i < p->n_steps; i++) nodes[i + (i >= before)] = p->steps[i].node;
    nodes[before] = (uint32_t)p->graph->n_nodes;
    const tide_status st = arrange(p, nodes, p->n_steps + 1, &p->steps[step].node, 1, err);
    tide_host_free(nodes);
    return st;
}

// ---- the order in a plan file ----

#define NO_STEP UINT32_MAX

/// From names to nodes. Steps may share a name: those are taken in the order in which they stand.
typedef struct follower {
    const tide_program *p;
    tide_strmap by_name; ///< name -> the first of its steps that is not taken; NO_STEP: none is left
    uint32_t *next;      ///< [n_steps] the next step of the same name; NO_STEP
    tide_strmap second;  ///< "<node>.again" -> index into again
    uint32_t *again;     ///< [n_again] nodes
    size_t n_again;
    uint32_t *nodes; ///< [n] the order
} follower;

static tide_status index_steps(follower *f, tide_error *err) {
    for (size_t i = f->p->n_steps; i-- > 0;) {
        uint64_t later = NO_STEP;
        tide_strmap_get(&f->by_name, step_name(f->p, i), &later);
        f->next[i] = (uint32_t)later;
        if (tide_strmap_put(&f->by_name, step_name(f->p, i), i) != TIDE_OK)
            return TIDE_NO_MEMORY(err, "for an order of %zu steps", f->p->n_steps);
    }
    return TIDE_OK;
}

static bool is_twin(const tide_program *p, uint32_t node_i) {
    for (size_t i = 0; i < p->n_twins; i++) {
        if (p->twins[i].first == node_i) return true;
    }
    return false;
}

static tide_status add_second(follower *f, const char *name, tide_error *err) {
    uint64_t step;
    if (!tide_strmap_get(&f->by_name, name, &step))
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "node '%s' is to run twice, and the program '%s' has none", name,
                         f->p->graph->name);
    TIDE_ASSERT(step < f->p->n_steps);
    const uint32_t node_i = f->p->steps[step].node;
    if (is_twin(f->p, node_i)) return TIDE_OK;
    tide_text again = {0};
    tide_text_addf(&again, "%s.again", name);
    tide_status st = TIDE_OK;
    if (!again.failed && tide_strmap_get(&f->second, again.data, NULL))
        st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "node '%s' is to run a third time", name);
    else if (again.failed || tide_strmap_put(&f->second, again.data, f->n_again) != TIDE_OK)
        st = TIDE_NO_MEMORY(err, "for an order of %zu steps", f->p->n_steps);
    tide_text_deinit(&again);
    if (st == TIDE_OK) f->again[f->n_again++] = node_i;
    return st;
}

static tide_status find_step(follower *f, size_t at, const char *name, tide_error *err) {
    uint64_t i;
    if (tide_strmap_get(&f->second, name, &i)) {
        f->nodes[at] = (uint32_t)(f->p->graph->n_nodes + i);
        return TIDE_OK;
    }
    if (!tide_strmap_get(&f->by_name, name, &i))
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "step %zu is '%s', and the program '%s' has no such node", at,
                         name, f->p->graph->name);
    if (i == NO_STEP)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "step %zu is '%s', which the program '%s' has fewer times", at,
                         name, f->p->graph->name);
    TIDE_ASSERT(i < f->p->n_steps);
    f->nodes[at] = f->p->steps[i].node;
    // Overwriting what is there takes no memory.
    return tide_strmap_put(&f->by_name, name, f->next[i]) == TIDE_OK
               ? TIDE_OK
               : TIDE_NO_MEMORY(err, "for an order of %zu steps", f->p->n_steps);
}

/// A second run that the program has already is a step of the order too.
static tide_status check_named(const follower *f, const char *name, tide_error *err) {
    tide_text again = {0};
    uint64_t step = NO_STEP;
    tide_text_addf(&again, "%s.again", name);
    tide_status st = again.failed ? TIDE_NO_MEMORY(err, "for an order of %zu steps", f->p->n_steps) : TIDE_OK;
    if (st == TIDE_OK && tide_strmap_get(&f->by_name, again.data, &step) && step != NO_STEP)
        st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "node '%s' is to run twice, and the order has it once", name);
    tide_text_deinit(&again);
    return st;
}

static tide_status read_names(follower *f, char *const *names, size_t n, char *const *recomputed, size_t n_recomputed,
                              tide_error *err) {
    f->next = tide_host_calloc(f->p->n_steps + 1, sizeof *f->next);
    f->again = tide_host_calloc(n_recomputed + 1, sizeof *f->again);
    f->nodes = tide_host_calloc(n + 1, sizeof *f->nodes);
    if (f->next == NULL || f->again == NULL || f->nodes == NULL)
        return TIDE_NO_MEMORY(err, "for an order of %zu steps", n);
    TIDE_TRY(index_steps(f, err));
    for (size_t i = 0; i < n_recomputed; i++) TIDE_TRY(add_second(f, recomputed[i], err));
    for (size_t i = 0; i < n; i++) TIDE_TRY(find_step(f, i, names[i], err));
    for (size_t i = 0; i < n_recomputed; i++) TIDE_TRY(check_named(f, recomputed[i], err));
    return TIDE_OK;
}

tide_status tide_program_follow(tide_program *p, char *const *names, size_t n, char *const *recomputed,
                                size_t n_recomputed, tide_error *err) {
    follower f = {.p = p};
    tide_status st = read_names(&f, names, n, recomputed, n_recomputed, err);
    if (st == TIDE_OK) {
        st = arrange(p, f.nodes, n, f.again, f.n_again, err);
        // What cannot be done to this program was done to the one that the names come from.
        if (st == TIDE_ERR_INVALID) {
            st = TIDE_ERR_INCOMPARABLE;
            if (err != NULL) err->status = st;
        }
    }
    tide_strmap_deinit(&f.by_name);
    tide_strmap_deinit(&f.second);
    tide_host_free(f.next);
    tide_host_free(f.again);
    tide_host_free(f.nodes);
    return st;
}
