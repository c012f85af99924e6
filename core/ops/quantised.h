// SPDX-License-Identifier: MIT
//
// quantised: the row of nodes that read or write quantised tensors, and the pass that makes them out of graphs which
// dequantise before an operator and quantise behind it ("QDQ").
//
//     q -> DequantizeLinear -> x -> Conv -> y -> QuantizeLinear -> r     becomes     q -> Conv, with tide_node.quant ->
//     r
//
// so that x and y, of four times the bytes, are in no plan. What an operator calculates stays what it was: real
// numbers, dequantised and quantised by the same loops, a tile at a time (quantised.c). Operators that only move
// numbers move the quantised ones, and what is quantised as it was before is left alone. Weights stay as the file has
// them.
#ifndef TIDE_CORE_OPS_QUANTISED_H
#define TIDE_CORE_OPS_QUANTISED_H

#include "core/graph/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/// It stands in no file.
#define TIDE_QUANTISED_DOMAIN "tidemark.quantised"

extern const tide_op_def tide_op_quantised;

/// What the pass did.
typedef struct tide_quantise_stats {
    size_t n_nodes;        ///< DequantizeLinear and QuantizeLinear in the graph, less those of weights that were folded
    size_t n_operators;    ///< operators that read or write quantised tensors and did not before
    size_t n_moves;        ///< of these, those that move numbers
    size_t n_left;         ///< DequantizeLinear and QuantizeLinear that are still nodes
    uint64_t bytes_before; ///< of all tensors that nodes make, before …
    uint64_t bytes_after;  ///< … and after
    uint64_t weights_saved; ///< bytes that folding DequantizeLinear would have added to the weights
} tide_quantise_stats;

/// Mark each DequantizeLinear that is not to be folded, should its input be a constant, because its readers may read
/// the quantised one (tide_node.holds_weight). Before shapes are inferred.
tide_status tide_ops_hold_weights(tide_graph *g, tide_error *err) TIDE_NODISCARD;
/**
 * The pass. Shapes are known, what can be fused is fused. What can be folded and pruned afterwards is the caller's:
 * marks of tide_ops_hold_weights are taken back, so that weights whose readers want real numbers are folded.
 *
 * @param order  of the graph's living nodes
 * @param stats  n_moves is set, the rest is tide_ops_quantise_count's
 * @return TIDE_ERR_NOMEM. A graph without DequantizeLinear and QuantizeLinear is left as it is.
 */
tide_status tide_ops_quantise(tide_graph *g, const tide_order *order, tide_quantise_stats *stats,
                              tide_error *err) TIDE_NODISCARD;
/// Fill in what is known before the pass, or once all is folded and pruned. Cost O(graph).
tide_status tide_ops_quantise_count(const tide_graph *g, bool is_after, tide_quantise_stats *stats,
                                    tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
