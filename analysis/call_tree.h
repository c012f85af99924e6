// SPDX-License-Identifier: MIT
//
// call tree: the call stacks of what is alive at a moment of a subject, as rows that fold. Calls without a branch
// between them are one row:
//
//     v <module> train.py:9 > main train.py:80    96 MiB
//       v forward model.py:199                    80 MiB
//           aten::bmm                             60 MiB
//       > step adam.py:84                         16 MiB
#ifndef TIDE_ANALYSIS_CALL_TREE_H
#define TIDE_ANALYSIS_CALL_TREE_H

#include "analysis/subject.h"
#include "profiler/calls.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_call_tree {
    tide_moment at;
    tide_calls calls; ///< its names are the tree's; of a plan, and where no block has a stack, the root alone
    uint64_t *keys;   ///< [calls.n] of each call the same at every moment: its names from the root on; never 0
    char *text;       ///< where the names lie
    uint64_t bytes;   ///< all that is alive, without a stack too
} tide_call_tree;

/// *out is owned: tide_call_tree_deinit; it borrows nothing. TIDE_ERR_NOMEM, and the errors of reading a trace.
tide_status tide_subject_call_tree(tide_subject *s, tide_moment at, tide_call_tree *out,
                                   tide_error *err) TIDE_NODISCARD;
void tide_call_tree_deinit(tide_call_tree *t);

/// The last call of the row that begins with `head`: it allocated something itself, or called none or several.
uint32_t tide_call_tree_tail(const tide_call_tree *t, uint32_t head);
/// The first call of the row that `call` is in.
uint32_t tide_call_tree_head(const tide_call_tree *t, uint32_t call);
/// The row from `head` on in words, the outermost first, with `arrow` between: its lines of Python that are no
/// library's, or else its lines of Python, or else all; and the operator. *n_hidden (may be NULL): calls not named.
void tide_call_tree_say(const tide_call_tree *t, uint32_t head, const char *arrow, tide_text *out, size_t *n_hidden);

#ifdef __cplusplus
}
#endif
#endif
