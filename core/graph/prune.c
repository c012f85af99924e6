// SPDX-License-Identifier: MIT
//
// Pruning: nodes that reach no graph output are removed, and constants that no node reads are released. After folding
// this is where most of a model's memory comes free: every folded weight's intermediate steps.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"
#include "core/graph/region.h"

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

typedef struct reached {
    bool *node;      // [n_nodes]
    uint32_t *stack; // [n_nodes]: each node is pushed once
    size_t n;
} reached;

static void reach(const tide_graph *g, reached *r, uint32_t node_i) {
    if (r->node[node_i] || g->nodes[node_i].dead) return;
    r->node[node_i] = true;
    TIDE_ASSERT(r->n < g->n_nodes && node_i < g->n_nodes);
    r->stack[r->n++] = node_i;
}

static void reach_producer(const tide_graph *g, reached *r, uint32_t value_i) {
    if (value_i == TIDE_NO_VALUE) return;
    const tide_value *v = &g->values[value_i];
    if (v->constant != NULL || v->producer == TIDE_NO_NODE) return;
    reach(g, r, v->producer);
}

/// A region is whole: with one of its two ends the other one stays, and the node around the region it lies in.
static void reach_regions(const tide_graph *g, reached *r, const tide_node *n) {
    if (n->region != 0) reach(g, r, tide_region_of(g, n->region)->open);
    for (uint32_t at = n->opens; at != 0;) {
        const tide_region *region = tide_region_of(g, at);
        reach(g, r, region->close);
        at = region->kind == TIDE_REGION_THEN ? region->other : 0;
    }
}

tide_status tide_graph_prune(tide_graph *g, size_t *n_killed, tide_error *err) {
    TIDE_TRY(tide_graph_find_captures(g, err)); // folding has taken some of their readers
    reached r = {.node = tide_host_calloc(g->n_nodes, sizeof *r.node),
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
        reach_regions(g, &r, n);
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
