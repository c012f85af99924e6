// SPDX-License-Identifier: MIT
//
// torch_stacks: what a stack of PyTorch says of a block, in the words of a trace: its scope and its name. Frames become
// scopes of kind frame, from the outermost in; below the innermost lies the operator that asked, where the stack knows
// one. Frames that only take the memory, or the stack itself, are left out:
//
//     <module> @ train.py:9 > forward @ model.py:199 > ... > at::native::bmm > aten::bmm (operator)
//     name of the block: "forward model.py:199", the innermost line of Python that is not PyTorch's own
//
// Private to profiler/import.
#ifndef TIDE_PROFILER_IMPORT_TORCH_STACKS_H
#define TIDE_PROFILER_IMPORT_TORCH_STACKS_H

#include "core/base/text.h"
#include "profiler/import/torch_snapshot.h"
#include "profiler/store/names.h"

typedef struct tide__torch_stacks {
    const tide__torch_snapshot *s;     ///< borrowed
    tide__names *names;                ///< of the trace; borrowed
    int32_t *scope_of;                 ///< [n_nodes] scope of the frame; 0: not asked for yet; owned
    int32_t *block_scope, *block_name; ///< [n_nodes] what is told of a block whose stack ends there; owned
    tide_text text;
} tide__torch_stacks;

tide_status tide__torch_stacks_init(tide__torch_stacks *k, const tide__torch_snapshot *s, tide__names *names,
                                    tide_error *err) TIDE_NODISCARD;
/// Scope and name of a block that was allocated at `node`; both 0 for node 0.
tide_status tide__torch_stacks_of(tide__torch_stacks *k, uint32_t node, int32_t *scope, int32_t *name,
                                  tide_error *err) TIDE_NODISCARD;
void tide__torch_stacks_deinit(tide__torch_stacks *k);

#endif
