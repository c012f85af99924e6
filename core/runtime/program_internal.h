// SPDX-License-Identifier: MIT
//
// program (private to core/runtime): what the files of the program share.
#ifndef TIDE_CORE_RUNTIME_PROGRAM_INTERNAL_H
#define TIDE_CORE_RUNTIME_PROGRAM_INTERNAL_H

#include "core/base/map.h"
#include "core/runtime/program.h"

/// Prepare the kernel of `node`: k->def and k->node are set, the sizes of all operands known. On failure there is
/// nothing to destroy.
tide_status tide__program_prepare_kernel(const tide_graph *g, const tide_node *node, tide_kernel *k,
                                         tide_error *err) TIDE_NODISCARD;
/// What prepare made; one that was never prepared has no state.
static inline void tide__program_destroy_kernel(tide_kernel *k) {
    if (k->def->destroy != NULL && k->state != NULL) k->def->destroy(k);
}

/**
 * Bring the program into the order of `nodes`, after adding a second run of each node in `again`. Every step then reads
 * what it reads from the last run before it. Second runs that the order leaves out are dropped: their nodes die.
 *
 * @param nodes  [n] node indices: the nodes of all steps but some second runs, and graph->n_nodes + i for the second
 *               run of again[i]
 * @param again  [n_again] nodes of steps; NULL with 0
 * @return as tide_program_reorder and tide_program_repeat; nothing has changed then
 */
tide_status tide__program_arrange(tide_program *p, const uint32_t *nodes, size_t n, const uint32_t *again,
                                  size_t n_again, tide_error *err) TIDE_NODISCARD;

#define TIDE__NOWHERE SIZE_MAX

/// What tide__program_arrange is about to do.
typedef struct tide__draft {
    tide_program *p;
    const uint32_t *order; ///< [n] node indices
    size_t n;
    const uint32_t *again; ///< [n_again] nodes to copy
    size_t n_again;
    tide_node *nodes;    ///< [n_again] the copies; node index graph->n_nodes + i
    tide_kernel *kernel; ///< [n_again] prepared: n_kernels of them
    size_t n_kernels;
    bool changes;       ///< second runs come or go
    tide_value *values; ///< [n_values] what the copies make; value index graph->n_values + i
    size_t n_values, cap_values;
    tide_strmap value_index;  ///< of all values, old and new
    size_t *place;            ///< [nodes, old and new] position in order; TIDE__NOWHERE: no step
    uint32_t *other;          ///< [values, old and new] first run's value -> second run's and back; TIDE_NO_VALUE
    bool *is_again;           ///< [values, old and new] made by a second run
    uint32_t **inputs;        ///< [n] what each step will read
    tide_program_step *steps; ///< [n] taken over
    uint32_t *order_nodes;    ///< [n] taken over
    tide_program_twin *twins; ///< [n_twins] taken over: those that stay, then those that come
    size_t n_twins;
} tide__draft;

// ---- program_copy.c ----

void tide__node_deinit(tide_node *n);
/// Fill d->nodes, kernel, values, value_index and twins with the second runs of d->again; d->place is there.
tide_status tide__draft_copy_nodes(tide__draft *d, tide_error *err) TIDE_NODISCARD;
/// Whether the node is a second run that the order leaves out.
bool tide__draft_drops(const tide__draft *d, uint32_t node_i);
tide_status tide__draft_no_memory(const tide__draft *d, tide_error *err);

#endif
