// SPDX-License-Identifier: MIT
//
// What an observer of memory events is told.
//
// The runtime reports to this interface and does not know what stands behind it. profiler/ is one observer; a runtime
// that is not ours can feed the same interface.
#ifndef TIDE_CORE_MEMORY_OBSERVER_H
#define TIDE_CORE_MEMORY_OBSERVER_H

#include <stdint.h>

#include "core/memory/kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Values are stable: trace files hold them.
#define TIDE_MEMORY_OP_MAP(XX)                                                                                         \
    XX(ALLOC, 1, "alloc")                                                                                              \
    XX(FREE_REQUESTED, 2, "free_requested")                                                                            \
    XX(FREE_COMPLETED, 3, "free_completed")                                                                            \
    XX(SEGMENT_ALLOC, 4, "segment_alloc")                                                                              \
    XX(SEGMENT_FREE, 5, "segment_free")                                                                                \
    XX(OOM, 6, "oom")                                                                                                  \
    XX(POOL_DISCARD, 7, "pool_discard") /* all blocks in [address, address + reserved_bytes) go at once */             \
    XX(SNAPSHOT, 8, "snapshot")         /* a moment with a name (tag); no block, no bytes */

typedef enum tide_memory_op {
#define XX(name, value, text) TIDE_MEM_##name = (value),
    TIDE_MEMORY_OP_MAP(XX)
#undef XX
} tide_memory_op;

const char *tide_memory_op_name(tide_memory_op op);

typedef enum tide_scope_kind { TIDE_SCOPE_REGION, TIDE_SCOPE_RUN, TIDE_SCOPE_OPERATOR } tide_scope_kind;

/// A named section of work. Scopes nest per thread; the innermost one owns what is allocated inside it. The struct
/// belongs to the caller that enters the scope and must live until it is left; `name` must outlive the observer's call.
typedef struct tide_scope {
    const char *name;
    tide_scope_kind kind;
    int32_t index;                   ///< step of an operator, number of a run; -1: none
    const struct tide_scope *parent; ///< set by tide_scope_enter
    uint64_t entry;                  ///< set by tide_scope_enter: number of this entering on its thread, never 0; an
                                     ///< observer knows a scope again by it. 0: made by hand, compare all fields
} tide_scope;

struct tide_observer;
/// Push / pop on the calling thread's stack; `obs` (may be NULL) is told of both. Allocate nothing.
void tide_scope_enter(tide_scope *scope, const struct tide_observer *obs);
void tide_scope_leave(tide_scope *scope, const struct tide_observer *obs);
/// The calling thread's innermost scope; NULL outside every scope.
const tide_scope *tide_scope_current(void);
/// A small number that names the calling thread for as long as the process lives; the first caller is 1.
uint32_t tide_thread_id(void);

typedef struct tide_memory_event {
    tide_memory_op op;
    uint64_t t_ns;     ///< CLOCK_MONOTONIC; 0 when no observer asked for the time
    uint64_t block_id; ///< unique within the process, never reused, below 2^48; 0 for oom, pool_discard and snapshot
    tide_device device;
    tide_memory_kind kind;
    tide_stream_id stream;
    uint64_t requested_bytes; ///< what the caller asked for
    uint64_t reserved_bytes;  ///< what the allocator set aside for it
    uint64_t address;         ///< 0 for oom
    uint32_t thread;
    const char *allocator;   ///< name of the allocator that owns the block
    const char *tag;         ///< what asked for it: tensor or buffer name; may be NULL
    const tide_scope *scope; ///< innermost scope of the thread; NULL: none
    /// Numbers of the allocator at an oom, read before any clean-up; NULL for other events.
    const struct tide_allocator_stats *stats;
    uint64_t align_bytes; ///< asked for, at an oom; else 0
} tide_memory_event;

typedef struct tide_scope_event {
    bool enter;
    uint64_t t_ns;
    uint32_t thread;
    const tide_scope *scope;
} tide_scope_event;

/// Callbacks may come from several threads at once; they must not allocate from an observed allocator, and what
/// the event points to is borrowed until they return.
typedef struct tide_observer {
    void *self;
    void (*on_memory)(void *self, const tide_memory_event *event);
    void (*on_scope)(void *self, const tide_scope_event *event); ///< optional; NULL: not interested
    bool no_time; ///< the observer does not look at t_ns: reading the clock would cost more than all the rest
} tide_observer;

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
