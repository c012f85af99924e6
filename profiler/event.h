// SPDX-License-Identifier: MIT
//
// event: one event of a trace as everybody inside profiler/ passes it on: the drain makes it of a slot, the store keeps
// it as a row or in a chunk, the cursor gives it back, the replay learns from it. Private to profiler/.
#ifndef TIDE_PROFILER_EVENT_H
#define TIDE_PROFILER_EVENT_H

#include "core/memory/observer.h"

/// What a trace holds beside the memory operations. Values are stable: trace files hold them.
#define TIDE__TRACE_OP_MAP(XX)                                                                                         \
    XX(SCOPE_ENTER, 16, "scope_enter")                                                                                 \
    XX(SCOPE_LEAVE, 17, "scope_leave")                                                                                 \
    XX(GAP, 18, "gap") /* events of a thread that were dropped on a full ring: requested_bytes says how many */        \
    XX(PROCESS_END, 19, "process_end") /* with its process all its blocks and segments go, none of them freed */
enum {
#define XX(name, value, text) TIDE__OP_##name = (value),
    TIDE__TRACE_OP_MAP(XX)
#undef XX
};
/// Name of an operation of either list; NULL for a number in neither.
const char *tide__op_name(int op);

enum {
    TIDE__NO_KIND = 255, ///< of scope events and gaps
    /// Numbers of devices and kinds stay below.
    TIDE__MAX_DEVICES = 1024,
    TIDE__MAX_KINDS = 16,
    /// Block numbers of the recorded process are below; those of process p (1, 2, ...) are shifted by (p - 1) times
    /// this in the file, so that the first process keeps its own.
    TIDE__BLOCK_ID_BITS = 48,
};

/// The largest number of an event that is read: no recording comes near it, and what counts on from there passes no
/// 2^63 - 1.
#define TIDE__MAX_EVENT (INT64_C(1) << 60)

/// Numbers of names, scopes, threads and devices are those of the file (tables name, scope, thread, device); 0: none.
typedef struct tide__event {
    int64_t id;       ///< 1, 2, ... in order of the file
    int64_t t_ns;     ///< CLOCK_MONOTONIC; never decreases with id
    int64_t block_id; ///< in the file; 0: none
    int64_t requested_bytes, reserved_bytes;
    int64_t address, stream; ///< all 64 bits: a negative number is a large unsigned one
    int32_t run_id, thread, scope_id, tag_id, allocator_id;
    int16_t device;
    uint8_t op, kind; ///< tide_memory_op or TIDE__OP_...; tide_memory_kind or TIDE__NO_KIND
} tide__event;

_Static_assert(sizeof(tide__event) == 80, "batches and queues of events are sized by this");

/// Number of the process, from 1, whose block number that is, or what its blocks are counted from.
static inline int64_t tide__process_of_block(int64_t block_id) { return (block_id >> TIDE__BLOCK_ID_BITS) + 1; }

/// Whether an event without a block has its process's part of a block number instead.
static inline bool tide__event_is_of_process(const tide__event *e) {
    return e->op == TIDE_MEM_POOL_DISCARD || e->op == TIDE__OP_PROCESS_END;
}

/// Whether the event is one of the allocators', about a kind of memory on a device.
static inline bool tide__event_is_memory(const tide__event *e) { return e->op < TIDE__OP_SCOPE_ENTER; }

/// Whether a sample of a device says what can be: of no block, and no more bytes in use than there are.
static inline bool tide__event_is_true_usage(const tide__event *e) {
    return e->device > 0 && e->kind == TIDE_KIND_DEFAULT && e->block_id == 0 && e->requested_bytes <= e->reserved_bytes;
}

/// Whether a tensor that was sized while running says what can be: no more bytes than there is room for.
static inline bool tide__event_is_true_size(const tide__event *e) {
    return e->device > 0 && e->kind < TIDE_N_KINDS && e->requested_bytes <= e->reserved_bytes;
}

#endif
