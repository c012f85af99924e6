// SPDX-License-Identifier: MIT
//
// Types and shapes of what regions make (region.h). Private to core/graph.
#ifndef TIDE_CORE_GRAPH_INFER_REGION_H
#define TIDE_CORE_GRAPH_INFER_REGION_H

#include "core/graph/bounds.h"
#include "core/graph/region.h"

/// What inference knows: the graph, and contents that are not constants of it.
typedef struct tide__region_view {
    const tide_graph *g;
    tide_tensor *const *known; ///< [n_values] or NULL
    const bool *untaken;       ///< [n_regions + 1] by number: branches that no run takes
    bool *needs_blank;         ///< set where an answer hangs on a constant that was left blank
} tide__region_view;

typedef enum tide__branch { TIDE__BRANCH_UNKNOWN, TIDE__BRANCH_THEN, TIDE__BRANCH_ELSE } tide__branch;

/// Which branch an If takes, as far as its condition is known. TIDE_ERR_BAD_INPUT for a condition that is none.
tide_status tide__region_branch(const tide__region_view *x, const tide_node *open, tide__branch *out,
                                tide_error *err) TIDE_NODISCARD;
/// Whether output `k` of an opening node is known at its closing node alone.
bool tide__region_is_late(const tide_graph *g, const tide_node *open, size_t k);
/**
 * Type and shape of output `k` of the node that opens a region, once what it reads is known; of a late one once its
 * body is.
 *
 * @param out  dtype and shape are set
 * @return TIDE_ERR_UNKNOWN_SIZE where the size is known only while running; TIDE_ERR_BAD_INPUT naming the node
 */
tide_status tide__region_output(const tide__region_view *x, const tide_node *open, size_t k, tide_operand *out,
                                tide_error *err) TIDE_NODISCARD;
/// What is known of the size of output `k` of an opening node where it is known only while running. Of a carried value
/// it is what is handed in: right only if what an iteration hands on fits.
tide__size tide__region_size(const tide__region_view *x, const tide_node *open, size_t k);
/// What an iteration hands to the next has the size of what it got. TIDE_ERR_UNKNOWN_SIZE when it has another one;
/// TIDE_ERR_BAD_INPUT when it has another type.
tide_status tide__region_check_carried(const tide__region_view *x, const tide_region *r, size_t k,
                                       tide_error *err) TIDE_NODISCARD;
/// A Loop that nothing ends before it has gone round too often. TIDE_ERR_BAD_INPUT
tide_status tide__region_check_trips(const tide__region_view *x, const tide_region *r, tide_error *err) TIDE_NODISCARD;
/// What a file that is wrong about the numbers of operands gets to hear, before any shape is asked for.
tide_status tide__region_check_open(const tide_graph *g, const tide_node *open, tide_error *err) TIDE_NODISCARD;

#endif
