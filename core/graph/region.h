// SPDX-License-Identifier: MIT
//
// region: the body of an If, a Loop or a Scan, as a stretch of the one order of nodes.
//
//     If      | If | then: nodes … Merge | else: nodes … Merge |
//     Loop    | Loop | body: nodes … NextIteration |            Scan is the same
//
// A graph stays flat: nodes of a body are nodes of the graph that know their region, and values have unique names. The
// node that opens a region and the one that closes it say where a run goes on (core/runtime/context_region.c). So one
// list of steps serves for liveness, plans, traces and views: both branches of an If are in it, and as only one of them
// runs, what one branch makes may lie where the other one's tensors lie.
//
// The operands of the two nodes; what stands in [ ] is read for its lifetime alone:
//
//     If             in  condition                          out  results …
//     Merge          in  results of the branch … [results of the If …]
//     Loop           in  trips?, condition?, carried …      out  carried …, collected …, iteration, condition
//     NextIteration  in  condition, carried …, collected …, [what the Loop makes …, trips?, captures …]
//     Scan           in  carried …, sequences …             out  carried …, collected …, items …, iteration
//     NextIteration  in  carried …, collected …, [what the Scan makes …, sequences …, captures …]
//
// A carried value is one value: what the body reads as its input, and after the last iteration the result. A capture is
// a value from outside that the body reads: each iteration needs it, so it lives until the last one.
#ifndef TIDE_CORE_GRAPH_REGION_H
#define TIDE_CORE_GRAPH_REGION_H

#include "core/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Operators of regions that stand in no file.
#define TIDE_REGION_DOMAIN "tidemark.region"

enum { TIDE_REGION_MAX_DEPTH = 64 }; ///< of regions in regions; models of the field have up to 4

typedef enum tide_region_kind {
    TIDE_REGION_THEN,
    TIDE_REGION_ELSE,
    TIDE_REGION_LOOP,
    TIDE_REGION_SCAN
} tide_region_kind;

struct tide_region {
    tide_region_kind kind;
    uint32_t parent; ///< number of the region around it; 0: none
    uint32_t depth;  ///< 1: there is none around it
    uint32_t open;   ///< node index
    uint32_t close;  ///< node index
    uint32_t other;  ///< number of the other branch; 0: of a Loop, a Scan, or an If of which one branch is gone
    size_t n_carried, n_collected, n_items; ///< of an If n_carried are its results
};

static inline const tide_region *tide_region_of(const tide_graph *g, uint32_t number) {
    return &g->regions[number - 1];
}
static inline bool tide_region_repeats(const tide_region *r) {
    return r->kind == TIDE_REGION_LOOP || r->kind == TIDE_REGION_SCAN;
}
static inline bool tide_node_is_control(const tide_node *n) { return n->opens != 0 || n->closes != 0; }

/// Where the operands of a Loop or Scan and of its NextIteration begin (see above).
static inline size_t tide_region_first_init(const tide_region *r) { return r->kind == TIDE_REGION_LOOP ? 2 : 0; }
static inline size_t tide_region_first_next(const tide_region *r) { return r->kind == TIDE_REGION_LOOP ? 1 : 0; }
/// Which output of the opening node is the number of the iteration.
static inline size_t tide_region_iteration(const tide_region *r) { return r->n_carried + r->n_collected + r->n_items; }
/// Operands of the closing node that are read for more than their lifetime.
static inline size_t tide_region_n_results(const tide_region *r) {
    return tide_region_first_next(r) + r->n_carried + (tide_region_repeats(r) ? r->n_collected : 0);
}

/// Along which axis of a tensor of `rank` extents item `k` of a Scan goes: `attr` is scan_input_axes or
/// scan_output_axes. -1: the node names one that the tensor does not have.
int32_t tide_region_axis(const tide_node *open, const char *attr, size_t k, int32_t rank);
/// Add a region; nodes that are added to it set node->region to its number. `r` without close; its depth is set here.
/// @return TIDE_ERR_NOT_IMPLEMENTED past TIDE_REGION_MAX_DEPTH; TIDE_ERR_NOMEM
tide_status tide_graph_add_region(tide_graph *g, const tide_region *r, uint32_t *number,
                                  tide_error *err) TIDE_NODISCARD;
/// Add the node that closes region `number`: `results` [n_results] as above, what else it reads is found here, but for
/// captures.
tide_status tide_graph_close_region(tide_graph *g, uint32_t number, const uint32_t *results, size_t n_results,
                                    tide_error *err) TIDE_NODISCARD;
/// Find the captures of all regions that repeat, anew. Cost O(nodes * depth).
tide_status tide_graph_find_captures(tide_graph *g, tide_error *err) TIDE_NODISCARD;
/// Whether a node belongs to region `number`, or to one inside of it.
bool tide_region_holds(const tide_graph *g, uint32_t number, const tide_node *n);
/// More trips than this, with nothing that could end the Loop before, are refused: days of work for no operator at all.
#define TIDE_REGION_MAX_TRIPS ((int64_t)1 << 40)
/// Whether the body of a Loop hands on the condition that it was given, or one that always holds.
bool tide_region_hands_on(const tide_graph *g, const tide_region *r);
/// Whether it depends on a condition that the node runs at all.
bool tide_node_is_conditional(const tide_graph *g, const tide_node *n);
/// The nodes of a branch that is never taken, and of regions in it, are dead from now on.
void tide_region_kill(tide_graph *g, uint32_t number);
/// The If of this branch, which is always taken, goes: its results are those of the branch from now on, but for graph
/// outputs. The nodes of the branch belong to the region around it, where no such output is left.
void tide_region_dissolve(tide_graph *g, uint32_t number);

#ifdef __cplusplus
}
#endif
#endif
