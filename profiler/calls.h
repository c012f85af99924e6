// SPDX-License-Identifier: MIT
//
// calls: the call stacks of a live set as one tree: who called whom, and what each call holds with all that it called.
//
//     [0] all that has a stack            96 MiB
//      +- [1] main @ train.py:9           96 MiB
//          +- [2] forward @ model.py:199  80 MiB
//          |   +- [3] aten::bmm           80 MiB    an operator lies below the innermost frame
//          +- [4] step @ adam.py:84       16 MiB
#ifndef TIDE_PROFILER_CALLS_H
#define TIDE_PROFILER_CALLS_H

#include "profiler/moments.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A call: a frame that was reached in one way, or the operator below it.
typedef struct tide_call {
    const char *name;           ///< "forward @ /home/ann/model.py:199", "aten::bmm"; borrowed from the trace; "" of [0]
    uint32_t name_id, scope_id; ///< numbers of the trace: of the text, of a scope that is this call
    bool is_frame;              ///< false: [0], an operator
    uint32_t parent;            ///< index, smaller than its own; 0 of [0]
    uint32_t first_child, next; ///< children by bytes, the most first; 0: none
    uint32_t depth;             ///< 0 of [0]
    uint64_t own_blocks, own_bytes;
    uint64_t n_blocks, bytes; ///< its own and those of all calls below; requested bytes
} tide_call;
typedef struct tide_calls {
    tide_call *calls; ///< [n], owned; the first is the root, and stands for nothing where no block has a stack
    size_t n;
    uint64_t untold_blocks, untold_bytes; ///< of the set, without a stack
} tide_calls;

/// The tree of a live set: its root and what is untold sum to the set. *out is owned: tide_calls_deinit. The trace may
/// be asked on, and must not be closed before. TIDE_ERR_NOMEM. Costs a look at each block and 0.1 us a call.
tide_status tide_live_set_calls(const tide_live_set *s, tide_calls *out, tide_error *err) TIDE_NODISCARD;
/// Empty then.
void tide_calls_deinit(tide_calls *c);
/// The call after `i` on a walk that sees callers before what they called, heavy before light; 0 behind the last.
uint32_t tide_calls_next(const tide_calls *c, uint32_t i);
/// Function, file and line of a frame in `name`, which is cut in no place: "forward model.py:199"; a name without a
/// file as it is.
void tide_call_say(const tide_call *c, tide_text *out);

/// What a call is to a reader of a Python program, the least first.
typedef enum tide_call_rank {
    TIDE_CALL_OTHER,   ///< an operator, or a function of no file of Python
    TIDE_CALL_LIBRARY, ///< a line of Python of a package, or of Python itself
    TIDE_CALL_PROGRAM, ///< a line of Python of the program
} tide_call_rank;
tide_call_rank tide_call_rank_of(const tide_call *c);

#ifdef __cplusplus
}
#endif
#endif
