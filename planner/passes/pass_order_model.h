// SPDX-License-Identifier: MIT
//
// model: the cost of an order, ready for looking at millions of steps. Private to planner/passes.
//
// What tensors may share is cut into atoms: stretches of bytes that the same tensors cover. An atom takes its bytes
// while one of its tensors is alive: made, and with a reader that has not run. So bytes that aliases share count once:
//
//     whole  |---------------|        atoms  | 0  | 1  | 2  |     a and b lie inside the whole: when the step that
//     a      |----|                   of       a    b    whole    makes it runs, only atom 2 is new
//     b           |----|                       whole whole
//
// For a set S of steps that have run, live(S) is what is alive then, in whatever order they ran. A step n costs, while
// it runs,
//
//     transient(n | S) = live(S) + new(n) + scratch(n) - what it may overwrite because it dies here
//
// where new(n), the atoms it makes that none of its inputs covers, does not depend on S: of two tensors that cover one
// atom, one is made out of the other, directly or not, and what a step reads is alive until it has run. The peak of an
// order is the largest transient.
//
// The alias passes decide once the order is known, and so may do better or worse in two cases, both rare: a part that
// is read again behind a step that could overwrite the whole (here it stays inside and forbids that; there it may get a
// place of its own), and a tensor that goes into two Concats (here into the first, there perhaps into both). And
// rounding: what lies inside another tensor, or takes over its place, is not rounded up there. The caller compares
// lower bounds.
//
// Late nodes. A step that reads no tensor may as well run right before the first step that waits for it, if what it
// needs beyond what it leaves behind is no more than what that one needs beyond what it finds. Proof: moving it there
// takes its bytes from all steps that it passes, and they lose no input to overwrite, for it reads none. What it costs
// itself, at its new place, is alive(before it) + left + excess; the step behind it costs alive(before it) + left +
// what it needs, or more. A late step that has no excess and one successor is glued to that: so a node of the model is
// one step, or several.
#ifndef TIDE_PLANNER_PASSES_PASS_ORDER_MODEL_H
#define TIDE_PLANNER_PASSES_PASS_ORDER_MODEL_H

#include "planner/passes/pass_order_facts.h"

/// An input that output 0 may overwrite where it dies.
typedef struct tide__model_over {
    uint32_t tensor;
    uint64_t bytes; ///< that it saves
} tide__model_over;

typedef struct tide__model_node {
    tide__span steps;          ///< in order of execution
    tide__span overs;          ///< of model.overs
    tide__span touch;          ///< atoms of all it reads and makes: all alive while it runs
    tide__span before, behind; ///< nodes that must run before it, and behind it
    uint64_t scratch_bytes, new_bytes;
    uint64_t least_bytes; ///< transient in the best of cases: what it touches and scratch, less what it may overwrite
    uint32_t cost;        ///< of looking at it once, in tensors visited
    bool late;            ///< see above
} tide__model_node;

typedef struct tide__model_tensor {
    uint32_t maker;     ///< node
    tide__span readers; ///< nodes
    tide__span atoms;   ///< numbers of atoms, one after the other
} tide__model_tensor;

typedef struct tide__model_atom {
    uint64_t bytes;
    tide__span covers; ///< tensors
} tide__model_atom;

typedef struct tide__order_model {
    tide__model_node *nodes;
    size_t n_nodes;
    tide__model_tensor *tensors;
    size_t n_tensors;
    tide__model_atom *atoms;
    size_t n_atoms;
    tide__model_over *overs;
    uint32_t *steps, *touch, *before, *behind, *readers, *covers; ///< what the spans are of, owned
    size_t n_steps;
    uint64_t floor_bytes; ///< no order has a smaller peak: the largest least_bytes
} tide__order_model;

/// @param glue  false: one node for each step, of the same number
tide_status tide__order_model_make(const tide__order_facts *f, bool glue, tide__order_model *out,
                                   tide_error *err) TIDE_NODISCARD;
void tide__order_model_deinit(tide__order_model *m);

/// A set of nodes that have run: bits for those that are in question, a fixed answer for the others.
typedef struct tide__ran {
    const uint64_t *bits;
    const int32_t *place; ///< [n_nodes] the node's bit; TIDE__RAN, TIDE__NOT_RAN
} tide__ran;
enum { TIDE__RAN = -1, TIDE__NOT_RAN = -2 };

static inline bool tide__has_ran(const tide__ran *r, uint32_t node) {
    const int32_t bit = r->place[node];
    return bit >= 0 ? (r->bits[bit / 64] >> (bit % 64) & 1u) != 0 : bit == TIDE__RAN;
}

/// What a node does to memory when it runs next.
typedef struct tide__effect {
    uint64_t transient_bytes; ///< while it runs
    uint64_t after_bytes;     ///< alive when it has run
} tide__effect;
tide__effect tide__order_model_effect(const tide__order_model *m, const tide__ran *ran, uint32_t node,
                                      uint64_t live_bytes);

/**
 * Peak of an order of all nodes.
 *
 * @param order       [n_nodes] each node behind those that must run before it
 * @param transients  out, may be NULL: [n_nodes] of each position
 */
tide_status tide__order_model_peak(const tide__order_model *m, const uint32_t *order, uint64_t *transients,
                                   uint64_t *peak_bytes, tide_error *err) TIDE_NODISCARD;

#endif
