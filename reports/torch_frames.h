// SPDX-License-Identifier: MIT
//
// torch_frames: who allocated a block, as frames of a snapshot of PyTorch: a list of {"name", "filename", "line"}, the
// innermost first. Each frame and each stack is written once, and kept: a million events name them by their numbers.
//
//     frames of the trace's stack      forward @ /home/ann/model.py:199      as they are
//     operators, runs, regions         conv1, step 3                         {"conv1", "step", 3}
//     the block, where the trace has   conv1.out                             {"conv1.out", "Workspace", 0}
//     no stack for it
//
// Private to reports.
#ifndef TIDE_REPORTS_TORCH_FRAMES_H
#define TIDE_REPORTS_TORCH_FRAMES_H

#include "core/base/map.h"
#include "core/base/pickle_out.h"
#include "profiler/query.h"

/// A frame below its caller.
typedef struct tide__torch_out_node {
    uint32_t parent, frame;
    uint32_t number; ///< of the list in the pickle, + 1; 0: not written yet
} tide__torch_out_node;

/// A frame by what it says; its texts are the trace's, each there once.
typedef struct tide__torch_out_frame {
    const char *name, *file; ///< file NULL: it stands in the name, "FUNCTION @ FILE:LINE"
    int64_t line;
    uint32_t number; ///< of the dict, + 1; 0: not written yet
} tide__torch_out_frame;

/// Zero-initialise with `t` and TIDE_MAP(tide__torch_scope_node).
typedef struct tide__torch_frames {
    const tide_trace *t;
    tide__torch_out_node *nodes; ///< [n_nodes]; [0] is no stack; owned
    tide__torch_out_frame *frames;
    size_t n_nodes, cap_nodes, n_frames, cap_frames;
    tide_index by_node, by_frame;
    tide_map by_scope; ///< nodes of scopes, as many as fit
    uint32_t *chain;   ///< [cap_chain] scopes, from the innermost out
    size_t cap_chain;
    tide_pickle_word name, filename, line;
} tide__torch_frames;

typedef struct tide__torch_scope_node {
    uint64_t key; ///< scope
    uint64_t node;
} tide__torch_scope_node;

#define TIDE__TORCH_FRAMES(trace)                                                                                      \
    {                                                                                                                  \
        .t = (trace), .by_scope = TIDE_MAP(tide__torch_scope_node), .name = {"name", 0}, .filename = {"filename", 0},  \
        .line = {                                                                                                      \
            "line",                                                                                                    \
            0                                                                                                          \
        }                                                                                                              \
    }

/// Put the list of frames of what happened in `scope` (0: none). `name`, of the trace too, is that of a block and
/// `kind` where it is shown to lie, or both NULL; it is put where no call stack is known. TIDE_ERR_NOMEM.
tide_status tide__torch_frames_put(tide__torch_frames *f, tide_pickle_out *p, uint32_t scope, const char *name,
                                   const char *kind, tide_error *err) TIDE_NODISCARD;
void tide__torch_frames_deinit(tide__torch_frames *f);

#endif
