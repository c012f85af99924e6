// SPDX-License-Identifier: MIT
//
// Arranging a program anew: another order of its steps, second runs of some nodes, and who reads which run. All that
// can fail is done on a draft; what follows cannot, so that a program is either arranged or as it was.
//
//     draft:    order | place of each node | copies of repeated nodes, their values and kernels | inputs of every step
//     program:  taken over in one go; kernels keep pointers into graph->nodes, which are set anew when that moves
#include <stdatomic.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/runtime/program_internal.h"
#include "core/runtime/value_operand.h"

static const tide_node *node_of(const tide__draft *d, uint32_t node_i) {
    const tide_graph *g = d->p->graph;
    return node_i < g->n_nodes ? &g->nodes[node_i] : &d->nodes[node_i - g->n_nodes];
}

/// Also before the copies are made.
static const char *name_of(const tide__draft *d, uint32_t node_i) {
    const tide_graph *g = d->p->graph;
    return g->nodes[node_i < g->n_nodes ? node_i : d->again[node_i - g->n_nodes]].name;
}

static const tide_value *value_of(const tide__draft *d, uint32_t value_i) {
    const tide_graph *g = d->p->graph;
    return value_i < g->n_values ? &g->values[value_i] : &d->values[value_i - g->n_values];
}

// ---- where each node goes ----

static tide_status fill_places(tide__draft *d, tide_error *err) {
    const size_t n_nodes = d->p->graph->n_nodes + d->n_again;
    for (size_t i = 0; i < n_nodes; i++) d->place[i] = TIDE__NOWHERE;
    for (size_t i = 0; i < d->n; i++) {
        if (d->place[d->order[i]] != TIDE__NOWHERE)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "the order has node '%s' twice: at steps %zu and %zu",
                             name_of(d, d->order[i]), d->place[d->order[i]], i);
        d->place[d->order[i]] = i;
    }
    for (size_t i = 0; i < d->p->n_twins; i++) {
        if (d->place[d->p->twins[i].again] == TIDE__NOWHERE)
            d->changes = true;
        else
            d->twins[d->n_twins++] = d->p->twins[i];
    }
    for (size_t i = 0; i < d->p->n_steps; i++) {
        const uint32_t node_i = d->p->steps[i].node;
        if (d->place[node_i] == TIDE__NOWHERE && !tide__draft_drops(d, node_i))
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "the order leaves out node '%s'", node_of(d, node_i)->name);
    }
    for (size_t i = 0; i < d->n_again; i++) {
        if (d->place[d->p->graph->n_nodes + i] == TIDE__NOWHERE)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "the order leaves out the second run of node '%s'",
                             node_of(d, d->again[i])->name);
    }
    return TIDE_OK;
}

// ---- who reads which run ----

static void pair_values(tide__draft *d, const tide_program_twin *twin) {
    const tide_node *first = node_of(d, twin->first), *again = node_of(d, twin->again);
    for (size_t port = 0; port < first->n_outputs; port++) {
        if (first->outputs[port] == TIDE_NO_VALUE) continue;
        d->other[first->outputs[port]] = again->outputs[port];
        d->other[again->outputs[port]] = first->outputs[port];
        d->is_again[again->outputs[port]] = true;
    }
}

/// The value that step `at` reads for `value_i`: that of the last run before it.
static tide_status bind_input(const tide__draft *d, size_t at, uint32_t value_i, uint32_t *out, tide_error *err) {
    *out = value_i;
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    const tide_value *v = value_of(d, value_i);
    if (v->constant != NULL || v->producer == TIDE_NO_NODE) return TIDE_OK;
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

static tide_status bind_steps(tide__draft *d, tide_error *err) {
    for (size_t at = 0; at < d->n; at++) {
        const tide_node *n = node_of(d, d->order[at]);
        d->inputs[at] = tide_host_calloc(n->n_inputs + 1, sizeof **d->inputs);
        if (d->inputs[at] == NULL) return tide__draft_no_memory(d, err);
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

static bool has_reader(const tide__draft *d, const tide_node *n) {
    for (size_t at = 0; at < d->n; at++) {
        const size_t n_inputs = node_of(d, d->order[at])->n_inputs;
        for (size_t k = 0; k < n_inputs; k++) {
            if (makes(n, d->inputs[at][k])) return true;
        }
    }
    return false;
}

static tide_status check_twins(const tide__draft *d, tide_error *err) {
    for (size_t i = 0; i < d->n_twins; i++) {
        const tide_node *first = node_of(d, d->twins[i].first), *again = node_of(d, d->twins[i].again);
        if (d->place[d->twins[i].again] < d->place[d->twins[i].first])
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s', the second run, would stand before '%s', the first",
                             again->name, first->name);
        if (!has_reader(d, again))
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "nobody would read what '%s' makes", again->name);
    }
    return TIDE_OK;
}

static tide_status bind(tide__draft *d, tide_error *err) {
    const size_t n_values = d->p->graph->n_values + d->n_values;
    d->other = tide_host_calloc(n_values + 1, sizeof *d->other);
    d->is_again = tide_host_calloc(n_values + 1, sizeof *d->is_again);
    if (d->other == NULL || d->is_again == NULL) return tide__draft_no_memory(d, err);
    for (size_t v = 0; v < n_values; v++) d->other[v] = TIDE_NO_VALUE;
    // Those that go are paired too, so that their readers find the way back to the first run.
    for (size_t i = 0; i < d->p->n_twins; i++) pair_values(d, &d->p->twins[i]);
    for (size_t i = 0; i < d->n_twins; i++) pair_values(d, &d->twins[i]);
    TIDE_TRY(bind_steps(d, err));
    return check_twins(d, err);
}

// ---- taking it over ----

static void point_kernels(tide_program *p) {
    for (size_t i = 0; i < p->n_steps; i++) p->steps[i].kernel.node = &p->graph->nodes[p->steps[i].node];
}

/// Room in the graph for all that comes; nodes that move take the kernels' pointers along.
static tide_status make_room(tide__draft *d, tide_error *err) {
    tide_graph *g = d->p->graph;
    const tide_status nodes = tide_host_grow(&g->nodes, &g->cap_nodes, g->n_nodes + d->n_again, sizeof *g->nodes);
    point_kernels(d->p);
    if (nodes != TIDE_OK ||
        tide_host_grow(&g->values, &g->cap_values, g->n_values + d->n_values, sizeof *g->values) != TIDE_OK)
        return tide__draft_no_memory(d, err);
    return TIDE_OK;
}

static void take_additions(tide__draft *d) {
    tide_graph *g = d->p->graph;
    if (!d->changes) return;
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

static void take_steps(tide__draft *d, size_t n_old_nodes) {
    tide_program *p = d->p;
    for (size_t i = 0; i < p->n_steps; i++) {
        const size_t at = d->place[p->steps[i].node];
        if (at == TIDE__NOWHERE)
            drop_step(p, &p->steps[i]);
        else
            d->steps[at] = p->steps[i];
    }
    for (size_t i = 0; i < d->n_again; i++) {
        const uint32_t node_i = (uint32_t)(n_old_nodes + i);
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

// ---- the whole ----

static tide_status draft_init(tide__draft *d, tide_error *err) {
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
        return tide__draft_no_memory(d, err);
    d->changes = d->n_again > 0;
    return TIDE_OK;
}

static void draft_deinit(tide__draft *d) {
    for (size_t i = 0; i < d->n_kernels; i++) tide__program_destroy_kernel(&d->kernel[i]);
    for (size_t i = 0; d->nodes != NULL && i < d->n_again; i++) tide__node_deinit(&d->nodes[i]);
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

static tide_status prepare_draft(tide__draft *d, tide_error *err) {
    TIDE_TRY(draft_init(d, err));
    TIDE_TRY(fill_places(d, err));
    TIDE_TRY(tide__draft_copy_nodes(d, err));
    TIDE_TRY(bind(d, err));
    return d->n_again > 0 ? make_room(d, err) : TIDE_OK;
}

tide_status tide__program_arrange(tide_program *p, const uint32_t *nodes, size_t n, const uint32_t *again,
                                  size_t n_again, tide_error *err) {
    if (atomic_load_explicit(&p->refs, memory_order_acquire) != 1)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "program '%s' is in other hands too: its steps stay as they are",
                         p->graph->name);
    if (p->graph->n_nodes + n_again >= TIDE_NO_NODE - 1u)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "more than 2^32 - 2 nodes");
    tide__draft d = {.p = p, .order = nodes, .n = n, .again = again, .n_again = n_again};
    const tide_status st = prepare_draft(&d, err);
    if (st == TIDE_OK) {
        const size_t n_old_nodes = p->graph->n_nodes;
        take_additions(&d);
        take_steps(&d, n_old_nodes);
    }
    draft_deinit(&d);
    return st;
}
