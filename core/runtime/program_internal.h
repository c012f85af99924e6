// SPDX-License-Identifier: MIT
//
// program (private to core/runtime): what the files of the program share.
#ifndef TIDE_CORE_RUNTIME_PROGRAM_INTERNAL_H
#define TIDE_CORE_RUNTIME_PROGRAM_INTERNAL_H

#include "core/runtime/program.h"

/// Prepare the kernel of `node`: k->def and k->node are set, the sizes of all operands known. On failure there is
/// nothing to destroy.
tide_status tide__program_prepare_kernel(const tide_graph *g, const tide_node *node, tide_kernel *k,
                                         tide_error *err) TIDE_NODISCARD;
/// What prepare made; one that was never prepared has no state.
static inline void tide__program_destroy_kernel(tide_kernel *k) {
    if (k->def->destroy != NULL && k->state != NULL) k->def->destroy(k);
}

#endif
