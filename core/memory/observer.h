// SPDX-License-Identifier: MIT
//
// Beside the observer, which is public (tidemark/memory.h): names of operations, and two observers as one.
//
// The runtime reports to an observer and does not know what stands behind it. profiler/ is one; a runtime that is not
// ours can feed the same one.
#ifndef TIDE_CORE_MEMORY_OBSERVER_H
#define TIDE_CORE_MEMORY_OBSERVER_H

#include "core/memory/kind.h"
#include "tidemark/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/// "alloc", "free_completed", …; "op ?" outside the list.
const char *tide_memory_op_name(tide_memory_op op);

/// Tells `a`, then `b`; either may be NULL. The struct is the caller's, complete before tide_observer_both is called,
/// and must outlive the returned observer, which wants the time when one of them does.
typedef struct tide_observer_pair {
    const tide_observer *a, *b;
} tide_observer_pair;
tide_observer tide_observer_both(const tide_observer_pair *pair);

#ifdef __cplusplus
}
#endif
#endif
