// SPDX-License-Identifier: MIT
//
// What the files that make a model share. Private to them.
#ifndef TIDE_PLANNER_PASSES_PASS_ORDER_MODEL_INTERNAL_H
#define TIDE_PLANNER_PASSES_PASS_ORDER_MODEL_INTERNAL_H

#include "planner/passes/pass_order_model.h"

// ---- pass_order_table.c ----

/// Pairs (key, item), each once, dealt out by key: those of key k are items[first[k]] … items[first[k + 1] - 1],
/// rising.
typedef struct tide__table {
    uint32_t *first; ///< [n_keys + 1]
    uint32_t *items;
} tide__table;

/// The key of a pair is its `step`. Pairs of a thing with itself are left out unless `loops`. False: no memory; to be
/// deinitialised all the same.
bool tide__table_make(tide__table *t, const tide__fact_pair *pairs, size_t n, size_t n_keys, bool loops);
/// From pairs of steps, or of a step and something else (`other_key` NULL), to nodes. `turned`: key and item change
/// places.
bool tide__table_of_nodes(tide__table *t, const tide__fact_pairs *from, const uint32_t *step_key,
                          const uint32_t *other_key, bool turned, size_t n_keys, bool loops);
void tide__table_deinit(tide__table *t);

static inline tide__span tide__table_span(const tide__table *t, size_t key) {
    return (tide__span){t->first[key], t->first[key + 1] - t->first[key]};
}

// ---- pass_order_glue.c ----

/// node_of[step], [n_steps]: steps that are late and without excess get the node of their only successor. Nodes are
/// numbered in the order of their last steps. False: no memory.
bool tide__model_number(const tide__order_facts *f, bool glue, uint32_t *node_of, size_t *n_nodes);
/// Set `late` of all nodes, which are complete but for that. `reads`: tensors of each node.
void tide__model_mark_late(tide__order_model *m, const tide__table *reads);

// ---- pass_order_atoms.c ----

/// Fill atoms, covers and the atoms of every tensor.
tide_status tide__model_cut(const tide__order_facts *f, tide__order_model *m, tide_error *err) TIDE_NODISCARD;

#endif
