// SPDX-License-Identifier: MIT
//
// kill stream: the events of one thread, made from a seed. The victim of the kill test sends them to a recorder, the
// checker makes them again and holds the trace against them: every event, every field, in order.
//
// All that a recorder can hear occurs: blocks that are freed with and without a request before, blocks that the other
// thread frees, pools that are discarded at once, nested scopes, texts that come up for the first time at any moment
// and lie in a buffer that holds another text the next moment, requests of no bytes and of terabytes.
//
//     n % 16 == 5       block i = n / 16 is allocated for the other thread
//     n % 16 == 13      block i - KILL_LAG of the other thread is freed: wait until it was allocated
//     n % 32 == 20      a scope is entered or left
//     n % 1024 == 710   a pool of four blocks: alloc, alloc, alloc, alloc; at 302 of the next 1024 it is discarded
//     n % 4096 == 80    out of memory, segment alloc, segment free, snapshot mark
//     else              one of KILL_SLOTS places is filled, its free requested, or emptied
#ifndef TIDE_TESTS_KILL_STREAM_H
#define TIDE_TESTS_KILL_STREAM_H

#include <stdatomic.h>

#include "core/base/text.h"
#include "core/memory/observer.h"

enum {
    KILL_MAX_THREADS = 4,
    KILL_SLOTS = 512,
    KILL_LAG = 512, ///< blocks that one thread may be ahead of the other
    KILL_DEPTH = 3,
    KILL_SCOPE_ENTER = 16, ///< ops of the trace that are no memory operations
    KILL_SCOPE_LEAVE = 17,
};

typedef struct kill_block {
    uint64_t id; ///< 0: the place is empty
    uint64_t requested_bytes, reserved_bytes, address, stream;
    uint8_t kind, device;
    bool is_requested; ///< its free
} kill_block;

typedef struct kill_scope {
    char name[24];
    tide_scope_kind kind;
    int32_t index;
} kill_scope;

/// One event as the trace must show it.
typedef struct kill_step {
    uint8_t op;
    kill_block block; ///< of scope events empty
    char tag[32];
    const char *allocator; ///< "" for scope events
    kill_scope scope;      ///< innermost scope; of a scope event the one that is entered or left; "": none
    uint64_t wait_for;     ///< events of the peer that must have been sent before; 0: none
} kill_step;

typedef struct kill_stream {
    uint64_t seed, n;      ///< number of the next step
    uint32_t thread, peer; ///< 0, 1, ...
    uint64_t n_blocks;
    tide_rng rng;
    kill_block slots[KILL_SLOTS];
    kill_scope scopes[KILL_DEPTH];
    int depth;
} kill_stream;

/// The stream of thread `thread` of `n_threads`; each hands blocks to the next one.
void kill_stream_init(kill_stream *s, uint64_t seed, uint32_t thread, uint32_t n_threads);
void kill_stream_next(kill_stream *s, kill_step *out);
tide_device kill_device(uint8_t device);

/// What a thread did to each kind, by its own count: what the recorder's totals must say.
typedef struct kill_total {
    uint64_t n_allocs, n_frees, requested_bytes, freed_bytes;
} kill_total;
static inline void kill_total_add(kill_total *t, const kill_step *step) {
    if (step->op == TIDE_MEM_ALLOC) {
        t->n_allocs++;
        t->requested_bytes += step->block.requested_bytes;
    } else if (step->op == TIDE_MEM_FREE_COMPLETED) {
        t->n_frees++;
        t->freed_bytes += step->block.requested_bytes;
    }
}

/// The page that a victim shares with its parent.
typedef enum kill_phase { KILL_STARTS, KILL_RECORDS, KILL_CLOSES, KILL_CLOSED } kill_phase;
typedef struct kill_shadow_thread {
    _Atomic uint64_t n_events; ///< whose callback has returned
    _Atomic uint64_t number;   ///< tide_thread_id of it; 0: has not begun
    char pad[112];
} kill_shadow_thread;
typedef struct kill_shadow {
    _Atomic uint32_t phase;
    _Atomic uint32_t status;                        ///< tide_status of close + 1; 0: not closed
    _Atomic uint64_t n_lost, n_refused, blocked_ns; ///< by tide_recorder_get_stats before close
    _Atomic uint32_t no_more_programs;              ///< a shared collector: no further program will attach
    char pad[92];
    kill_shadow_thread threads[KILL_MAX_THREADS];
} kill_shadow;

#endif
