// SPDX-License-Identifier: MIT
//
// What is done to a graph between its file and its execution: order, shapes, folding, fusion.
#ifndef TIDE_CORE_GRAPH_PASSES_H
#define TIDE_CORE_GRAPH_PASSES_H

#include "core/graph/op_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What every graph promises: indices inside the lists, and edges both ways: a value that a living node produces knows
/// it and its port, and graph inputs and outputs are marked as such. For assertions. O(graph).
bool tide__graph_holds(const tide_graph *g);

/// Order of execution: indices of live nodes, each after the producers of its inputs.
typedef struct tide_order {
    uint32_t *nodes; ///< [n], owned
    size_t n;
} tide_order;
void tide_order_deinit(tide_order *o);

/**
 * Sort the live nodes topologically. Among nodes that are ready the one with the lowest index goes first, so that a
 * file that is already sorted keeps its order and the result is the same every time (S23-4).
 *
 * @return TIDE_ERR_CYCLE naming the nodes of one cycle; TIDE_ERR_NOMEM
 * Cost O((nodes + edges) log nodes).
 */
tide_status tide_graph_sort(const tide_graph *g, tide_order *out, tide_error *err) TIDE_NODISCARD;

/// A size for an input that the file leaves open: the value NAME gets `shape`.
typedef struct tide_shape_binding {
    const char *name;
    tide_shape shape;
} tide_shape_binding;

/**
 * Give graph inputs their shapes. Checks rank and every extent the file does fix.
 *
 * @return TIDE_ERR_NOT_FOUND naming the unknown input and listing the known ones; TIDE_ERR_INVALID on a contradiction
 */
tide_status tide_graph_bind_shapes(tide_graph *g, const tide_shape_binding *bindings, size_t n,
                                   tide_error *err) TIDE_NODISCARD;

/**
 * Infer dtype and shape of every value in order, and fold: a node whose inputs are all constants (or that reads only
 * shapes) is run once now, its outputs become constants and the node dies. Node->def must be set (tide_ops_resolve).
 *
 * Folding may take 1 GiB and twice the bytes of the constants that came with the graph, and 2^34 multiply-adds or
 * elements: a small file must not cost much memory or time before anything is planned. A node past that stays a node,
 * with a warning in the log.
 *
 * @param fold  false: infer only what can be inferred without folding nodes away; constants are still evaluated
 *              where a shape depends on them, but every node stays alive
 * @return TIDE_ERR_UNKNOWN_SIZE naming the tensor when a graph input has an open extent (hint: --shape), or an
 *         operator's output size depends on data; what the operator's infer returns, with the node named
 * Where the graph allows dynamic values, a size that hangs on data makes the outputs of its node dynamic instead.
 * Unknown sizes are never guessed (S23-19). Extents whose product passes 2^63-1 are TIDE_ERR_OVERFLOW even beside an
 * extent of 0: operators multiply some of them without the 0.
 */
tide_status tide_graph_infer(tide_graph *g, const tide_order *order, bool fold, tide_error *err) TIDE_NODISCARD;

/// Which rewrites tide_graph_fuse did.
typedef struct tide_fuse_stats {
    size_t n_conv_bn, n_activation;
} tide_fuse_stats;
/**
 * Fuse Conv + BatchNormalization (weights are rewritten) and {operator that honours it} + activation. Only where the
 * value between has one use and is no graph output; the fused node keeps the name of the first node and produces the
 * last one's value. Run after infer: weights must be constants.
 */
tide_status tide_graph_fuse(tide_graph *g, tide_fuse_stats *stats, tide_error *err) TIDE_NODISCARD;

/// Kill nodes whose outputs reach no graph output, and drop constants that are not used any more.
tide_status tide_graph_prune(tide_graph *g, size_t *n_killed, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
