// SPDX-License-Identifier: MIT
//
// facts: what the order pass and recompute need to know of a program, and nothing else: which step makes and reads
// which tensor, how large tensors are, what lies inside what whatever the order is (views, slices, Concat's parts), and
// which input a step may overwrite. Private to planner/passes; tests make facts by hand.
#ifndef TIDE_PLANNER_PASSES_PASS_ORDER_FACTS_H
#define TIDE_PLANNER_PASSES_PASS_ORDER_FACTS_H

#include "core/runtime/alias_facts.h"
#include "planner/passes.h"

/// A tensor of the Workspace. Graph inputs, graph outputs and weights are none: they live all the time.
typedef struct tide__fact_tensor {
    uint32_t maker;      ///< step
    uint32_t root;       ///< tensor that has the place; itself: it has one of its own
    uint32_t next;       ///< another tensor of the same root: all of them are a ring
    uint64_t at_bytes;   ///< where it begins inside the root
    uint64_t size_bytes; ///< as the shape says
    uint64_t own_bytes;  ///< rounded up: what it takes when it is a root
    uint32_t value;      ///< in the graph; TIDE_NO_INDEX by hand
} tide__fact_tensor;

/// A step and a tensor, or two steps.
typedef struct tide__fact_pair {
    uint32_t step, other;
} tide__fact_pair;

typedef struct tide__fact_pairs {
    tide__fact_pair *list; ///< [n], owned
    size_t n, cap;
} tide__fact_pairs;

typedef struct tide__order_facts {
    size_t n_steps;
    uint64_t *scratch_bytes;    ///< [n_steps], rounded up, owned
    tide__fact_tensor *tensors; ///< [n_tensors], owned
    size_t n_tensors, cap_tensors;
    tide__fact_pairs reads;      ///< step reads tensor; each pair once
    tide__fact_pairs overwrites; ///< output 0 of the step may overwrite the tensor, which it reads
    tide__fact_pairs results;    ///< the step's output 0 is the tensor
    tide__fact_pairs after;      ///< step runs after step `other`, whatever the reason
} tide__order_facts;

/// A program and what its operators say about aliases, asked once.
typedef struct tide__fact_source {
    const tide_program *program;  ///< borrowed
    const tide_pass_options *opt; ///< borrowed
    tide_alias_facts aliases;     ///< owned
} tide__fact_source;
tide_status tide__fact_source_init(tide__fact_source *s, const tide_program *program, const tide_pass_options *opt,
                                   tide_error *err) TIDE_NODISCARD;
void tide__fact_source_deinit(tide__fact_source *s);

/**
 * Facts of a program with the passes that its options leave on: without views, outputs of Reshape are tensors of their
 * own, and so on.
 *
 * @param sequence  [n] steps of the program, in an order that can run; one that comes a second time is run again, and
 *                  later steps read what that makes. NULL: all steps as they stand
 * @return TIDE_ERR_OVERFLOW when all sizes add up to more than 2^63 - 1; TIDE_ERR_UNKNOWN_SIZE; TIDE_ERR_NOMEM
 */
tide_status tide__order_facts_of(const tide__fact_source *s, const uint32_t *sequence, size_t n, tide__order_facts *out,
                                 tide_error *err) TIDE_NODISCARD;
void tide__order_facts_deinit(tide__order_facts *f);

// ---- by hand ----

tide_status tide__facts_init(tide__order_facts *f, size_t n_steps, tide_error *err) TIDE_NODISCARD;
/// A tensor with a place of its own. @param out  may be NULL
tide_status tide__facts_add_tensor(tide__order_facts *f, uint32_t maker, uint64_t size_bytes, uint64_t align_bytes,
                                   uint32_t *out, tide_error *err) TIDE_NODISCARD;
tide_status tide__facts_add_pair(tide__fact_pairs *pairs, uint32_t step, uint32_t other,
                                 tide_error *err) TIDE_NODISCARD;
/// The step reads the tensor, and so runs after its maker.
tide_status tide__facts_add_read(tide__order_facts *f, uint32_t step, uint32_t tensor, tide_error *err) TIDE_NODISCARD;
/// `inner`, which has a place of its own and fills it, and all that lies inside it, go `at_bytes` into `outer`.
/// False, and nothing changed, when `inner` has no such place, does not fit or contains `outer`.
bool tide__facts_put_inside(tide__order_facts *f, uint32_t inner, uint32_t outer, uint64_t at_bytes);

// ---- lists by key ----

/// A stretch of a list.
typedef struct tide__span {
    uint32_t first, n;
} tide__span;

/// Pairs (key, item), each once, dealt out by key: those of key k are items[first[k]] … items[first[k + 1] - 1],
/// rising.
typedef struct tide__table {
    uint32_t *first; ///< [n_keys + 1]
    uint32_t *items;
} tide__table;

/// The key of a pair is its `step`. Pairs of equals are left out unless `loops`. False: no memory; to be
/// deinitialised all the same.
bool tide__table_make(tide__table *t, const tide__fact_pair *pairs, size_t n, size_t n_keys, bool loops);
/// From pairs of steps, or of a step and another number (`other_key` NULL), to nodes. `turned`: key and item are
/// exchanged.
bool tide__table_of_nodes(tide__table *t, const tide__fact_pairs *from, const uint32_t *step_key,
                          const uint32_t *other_key, bool turned, size_t n_keys, bool loops);
void tide__table_deinit(tide__table *t);

static inline tide__span tide__table_span(const tide__table *t, size_t key) {
    return (tide__span){t->first[key], t->first[key + 1] - t->first[key]};
}

#endif
