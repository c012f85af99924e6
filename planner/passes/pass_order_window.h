// SPDX-License-Identifier: MIT
//
// window: the best order of a stretch of nodes, between a set that has run and a set that has not. Private to
// planner/passes.
//
// A state is the set of the window's nodes that have run; its price the smallest peak with which it can be reached. Two
// orders of one set leave the same memory behind, so each state is looked at once.
//
// Safe steps. A node that is ready, does not raise what is alive, and whose transient is no more than the peak that is
// paid already, is run at once, without a choice. Proof: let it be n, in the state S, and take any continuation s1 … sk
// n of S. Let n run first. (1) For every set T between, live(T + n) <= live(T): what n makes is the same from T as from
// S (new(n) does not depend on the state), and what it frees from T it frees from S or more, since in T more readers
// have run. (2) So s_i starts from no more than before; it makes the same; what it may overwrite it still may, since a
// reader more has run. Its transient does not rise. (3) n's own is paid. The peak is no larger, and the set behind is
// the same.
//
// Late nodes (pass_order_model.h) run when a node that waits for them waits for nothing but late nodes, not before.
#ifndef TIDE_PLANNER_PASSES_PASS_ORDER_WINDOW_H
#define TIDE_PLANNER_PASSES_PASS_ORDER_WINDOW_H

#include "planner/passes/pass_order_model.h"

typedef struct tide__window {
    const tide__order_model *m;
    const uint32_t *nodes; ///< [n] in the order that is to be beaten
    uint32_t n;
    const int32_t *place; ///< [m->n_nodes] i for nodes[i]; TIDE__RAN, TIDE__NOT_RAN for the others
    uint64_t live_bytes;  ///< alive before the first of them runs
    uint64_t floor_bytes; ///< the whole order costs this anyhow: peaks below are all the same
    uint64_t bound_bytes; ///< only a smaller peak is of use
    uint64_t *budget;     ///< in/out: tensors that may still be visited
} tide__window;

typedef struct tide__window_result {
    bool found; ///< order and peak are set
    bool exact; ///< no order of the window is better than what was found, or than the bound
    uint64_t peak_bytes;
    uint64_t n_states; ///< looked at
} tide__window_result;

/**
 * Best first: states in the order of their price, and of one price the one that has come farthest. The first complete
 * one is optimal (Dijkstra's algorithm on the lattice of downsets, with the largest step for the sum of steps); where
 * the floor can be reached it goes depth first. Ends without an answer when the budget is spent or 64 MiB are full.
 *
 * @param order  out [n], with result->found
 */
tide_status tide__window_exact(const tide__window *w, uint32_t *order, tide__window_result *result,
                               tide_error *err) TIDE_NODISCARD;
/// Beam: the `width` states with the smallest peak, then the least alive, go on one step at a time.
tide_status tide__window_beam(const tide__window *w, uint32_t width, uint32_t *order, tide__window_result *result,
                              tide_error *err) TIDE_NODISCARD;

#endif
