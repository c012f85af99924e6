// SPDX-License-Identifier: MIT
//
// torch_stacks: call stacks of a snapshot. While it is read they become a tree that has each frame below its caller
// once. Then, what a stack says of a block in the words of a trace: its scope and its name. Frames become scopes of
// kind frame, from the outermost in; below the innermost lies the operator that asked, where the stack knows one.
// Frames that only take the memory, or the stack itself, are left out:
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

/// What the tree is made with; frames and nodes are the snapshot's.
typedef struct tide__torch_tree {
    const char *path; ///< for errors; borrowed
    size_t cap_frames, cap_nodes;
    tide_index by_frame, by_node;
    tide_map stacks; ///< those that were there, by the hash of their frames: most of a file's are
} tide__torch_tree;

/// Node 0, which is none, is put.
tide_status tide__torch_tree_init(tide__torch_tree *k, tide__torch_snapshot *s, const char *path,
                                  tide_error *err) TIDE_NODISCARD;
/// Number of the frame, the same for the same frame. TIDE_ERR_BAD_INPUT beyond 2^31; TIDE_ERR_NOMEM.
tide_status tide__torch_tree_frame(tide__torch_tree *k, tide__torch_snapshot *s, const tide__torch_frame *f,
                                   uint32_t *out, tide_error *err) TIDE_NODISCARD;
/// Node of a stack, its frames from the innermost on; of none 0. Costs a look at each frame. As above.
tide_status tide__torch_tree_stack(tide__torch_tree *k, tide__torch_snapshot *s, const uint32_t *frames, size_t n,
                                   uint32_t *out, tide_error *err) TIDE_NODISCARD;
/// That it holds, the snapshot's frames and nodes with it.
size_t tide__torch_tree_bytes(const tide__torch_tree *k);
void tide__torch_tree_deinit(tide__torch_tree *k);

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
