// SPDX-License-Identifier: MIT
//
// Fusion: fewer nodes, fewer values to keep. The rules of each rewrite are in fuse_conv_bn.c and fuse_activation.c;
// what they share is here: a value may only vanish when it has one use and is no graph output.
//
//     x -> [Conv] -> y -> [BatchNormalization] -> z -> [Relu] -> r      becomes      x -> [Conv'] -> r
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"

void tide__fuse_take_output(tide_graph *g, uint32_t producer_i, uint32_t node_i) {
    tide_node *producer = &g->nodes[producer_i];
    tide_node *node = &g->nodes[node_i];
    g->values[producer->outputs[0]].producer = TIDE_NO_NODE;
    producer->outputs[0] = node->outputs[0];
    g->values[node->outputs[0]].producer = producer_i;
    g->values[node->outputs[0]].producer_port = 0;
    node->dead = true;
}

tide_status tide_graph_fuse(tide_graph *g, tide_fuse_stats *stats, tide_error *err) {
    tide_fuse_stats done = {0};
    // A rewrite removes one value and leaves the uses of all others as they were: one table serves all rewrites.
    // Values made on the way (new weights) have an index past the table and are never looked up in it.
    size_t *uses = tide__graph_use_table(g);
    if (uses == NULL) return TIDE_NO_MEMORY(err, "for fusion");
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < g->n_nodes; i++) {
        bool fused = false;
        st = tide__fuse_batch_norm(g, (uint32_t)i, uses, &fused, err);
        done.n_conv_bn += fused;
    }
    // Afterwards, so that an activation behind a BatchNormalization finds the Conv.
    for (size_t i = 0; st == TIDE_OK && i < g->n_nodes; i++) {
        bool fused = false;
        tide__fuse_activation(g, (uint32_t)i, uses, &fused);
        done.n_activation += fused;
    }
    tide_host_free(uses);
    if (stats != NULL) *stats = done;
    return st;
}
