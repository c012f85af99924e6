// SPDX-License-Identifier: MIT
//
// stacks: who called, as a number. Asked for by `tidemark record --stacks N`; without it nothing here costs anything.
//
//     event   calls [7f01 5601 5602]  -> table of stacks:  their hash -> frame 12        no lock
//                                        not there: the log of the feed gets what it lacks, with the feed's lock
//     log     MODULE 1 "c4f1... /usr/bin/sort"      FRAME 11 {in 0, module 1, 5602}     FRAME 12 {in 11, module 1,
//     5601}
//
// The number of a stack is that of its innermost frame. Addresses are those of the file that they lie in, so that names
// are found for them after the run.
#ifndef TIDE_PRELOAD_STACKS_H
#define TIDE_PRELOAD_STACKS_H

#include "preload/preload.h"
#include "preload/unwind.h"

/// Calls of a stack at most; 0: none are wanted, -1: the environment was not there yet.
extern _Atomic int preload_stack_depth __attribute__((visibility("hidden")));
/// The same, and not -1.
int preload_find_stack_depth(void);
/// Whether they are wanted. Every event asks.
static inline bool preload_wants_stacks(void) {
    const int depth = atomic_load_explicit(&preload_stack_depth, memory_order_acquire);
    return __builtin_expect(depth != 0, 0) && (depth > 0 || preload_find_stack_depth() > 0);
}
/// Take the stack of what called this library. Any thread, any time, also in a signal handler. `is_inside`: the thread
/// is inside of this library already, in a signal handler: nothing that takes a lock is done.
void preload_stack_take(bool is_inside, preload_stack *out);
/// Its number in the feed; 0: there is no room for it, which is counted. Where there is a feed. `is_inside`: only a
/// number that is known already can be given.
uint32_t preload_stack_number(const preload_stack *s, bool is_inside);

/// Before there is a feed: keep it; 0: there is no room, which is counted. With the lock on what waits.
uint32_t preload_stack_keep(const preload_stack *s);
/// What was kept under that number; NULL: none.
const preload_stack *preload_stack_kept(uint32_t number);
/// Those are in the feed now, or are of no use any more.
void preload_stack_drop_kept(void);

/// Something is freed: if the loader does it, libraries may be gone.
void preload_stack_see_free(void);
/// In a child of fork: nothing of what was is in its feed.
void preload_stack_forget(void);

#endif
