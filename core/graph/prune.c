// SPDX-License-Identifier: MIT
//
// Pruning: nodes that reach no graph output are removed, and constants that no node reads are released. After folding
// this is where most of a model's memory comes free: every folded weight's intermediate steps.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"

static void count_uses(const tide_graph *g, size_t *uses) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tide_node *n = &g->nodes[i];
        for (size_t k = 0; !n->dead && k < n->n_inputs; k++) {
            if (n->inputs[k] != TIDE_NO_VALUE) uses[n->inputs[k]]++;
        }
    }
    for (size_t i = 0; i < g->n_outputs; i++) uses[g->outputs[i]]++;
}

size_t *tide__graph_use_table(const tide_graph *g) {
    size_t *uses = tide_host_calloc(g->n_values, sizeof *uses);
    if (uses != NULL) count_uses(g, uses);
    return uses;
}

typedef struct reach {
    bool *node;      // [n_nodes]
    uint32_t *stack; // [n_nodes]: each node is pushed once
    size_t n;
} reach;

static void reach_producer(const tide_graph *g, reach *r, uint32_t value_i) {
    if (value_i == TIDE_NO_VALUE) return;
    const tide_value *v = &g->values[value_i];
    if (v->constant != NULL || v->producer == TIDE_NO_NODE) return;
    if (r->node[v->producer] || g->nodes[v->producer].dead) return;
    r->node[v->producer] = true;
    TIDE_ASSERT(r->n < g->n_nodes && v->producer < g->n_nodes);
    r->stack[r->n++] = v->producer;
}

tide_status tide_graph_prune(tide_graph *g, size_t *n_killed, tide_error *err) {
    reach r = {.node = tide_host_calloc(g->n_nodes, sizeof *r.node),
               .stack = tide_host_calloc(g->n_nodes, sizeof *r.stack)};
    size_t *uses = tide_host_calloc(g->n_values, sizeof *uses);
    tide_status st = TIDE_OK;
    size_t killed = 0;
    if (r.node == NULL || r.stack == NULL || uses == NULL) {
        st = TIDE_NO_MEMORY(err, "for pruning");
        goto done;
    }
    for (size_t i = 0; i < g->n_outputs; i++) reach_producer(g, &r, g->outputs[i]);
    while (r.n > 0) {
        const tide_node *n = &g->nodes[r.stack[--r.n]];
        for (size_t k = 0; k < n->n_inputs; k++) reach_producer(g, &r, n->inputs[k]);
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].dead || r.node[i]) continue;
        g->nodes[i].dead = true;
        killed++;
    }
    count_uses(g, uses);
    for (size_t i = 0; i < g->n_values; i++) {
        if (uses[i] > 0) continue;
        tide__graph_drop_constant(g, (uint32_t)i);
    }
    TIDE_ASSERT(tide__graph_holds(g));
    if (n_killed != NULL) *n_killed = killed;
done:
    tide_host_free(uses);
    tide_host_free(r.node);
    tide_host_free(r.stack);
    return st;
}
