// SPDX-License-Identifier: MIT
//
// replay: what events do to memory: which blocks are live, how many bytes per (device, kind), and which events cannot
// be true. The drain runs it as events come, the finish runs it over the file, the query runs it from a snapshot to a
// moment: one definition for all three. Private to profiler/.
//
// Live blocks lie in one array, found through an index of hashed block numbers:
//
//     index    [ . ][ 7 ][ . ][ 9 ][ . ][ . ][ 8 ][ . ]   hash and place in 8 bytes: a search reads no other block
//                 |       ____/            ___/
//     blocks   [ 9 ][ 7 ][ 8 ][free]...                   freed places are used again, the last one first
//
#ifndef TIDE_PROFILER_DRAIN_REPLAY_H
#define TIDE_PROFILER_DRAIN_REPLAY_H

#include "core/base/status.h"
#include "profiler/event.h"

_Static_assert((int)TIDE_N_KINDS <= (int)TIDE__MAX_KINDS, "series are found by device and kind");

/// A block that is allocated and not gone yet.
typedef struct tide__live_block {
    int64_t block_id; ///< never 0
    int64_t alloc_event, requested_bytes, reserved_bytes;
    int16_t device;
    uint8_t kind, zero;
    int32_t run_id; ///< up to here what its end looks at: side by side
    int64_t alloc_ns;
    int64_t free_requested_ns; ///< 0: not requested
    int64_t address, stream;
    int32_t thread, scope_id, tag_id, allocator_id;
} tide__live_block;
_Static_assert(sizeof(tide__live_block) == 88, "live sets are sized by this");

/// Of one (device, kind): a series of the file. Series 0 is the sum of all.
typedef struct tide__series {
    int16_t device;
    uint8_t kind;
    int64_t live_bytes, live_reserved_bytes;                 ///< now
    int64_t n_allocs, n_frees, requested_bytes, freed_bytes; ///< of the events applied so far; not of series 0
    int64_t last_event;                                      ///< that changed it
} tide__series;

/// Stored in table problem: values are stable.
#define TIDE__PROBLEM_MAP(XX)                                                                                          \
    XX(NONE, 0, "none")                                                                                                \
    XX(ALLOC_TWICE, 1, "allocated while it was live: the older block is taken as freed here")                          \
    XX(FREE_UNKNOWN, 2, "freed without being live")                                                                    \
    XX(REQUESTED_UNKNOWN, 3, "its free was requested without being live")                                              \
    XX(REQUESTED_TWICE, 4, "its free was requested twice")                                                             \
    XX(NO_NUMBER, 5, "a block without a number")                                                                       \
    XX(TOO_LARGE, 6, "the sums pass 2^63 - 1 bytes")                                                                   \
    XX(TOTALS, 7, "what is in the file is not what was heard") /* of the whole trace, noted at its end */
typedef enum tide__problem {
#define XX(name, value, text) TIDE__PROBLEM_##name = (value),
    TIDE__PROBLEM_MAP(XX)
#undef XX
} tide__problem;
const char *tide__problem_text(tide__problem p);

typedef struct tide__replay {
    tide__live_block *blocks; ///< [n_blocks], block_id 0: a free place; owned. See tide__replay_find and _next
    size_t n_blocks, cap_blocks, n_live;
    uint64_t *index;      ///< [n_index] hash of the block number << 32 | place + 1; 0: nothing here; owned
    size_t n_index;       ///< 0 or a power of two
    size_t free_place;    ///< last place given back, + 1; 0: none. A free place holds the next one in alloc_event
    tide__series *series; ///< [n_series], owned; [0] is the sum
    size_t n_series, cap_series;
    int64_t last_event, last_ns;
    int64_t n_problems;
    int64_t looked_for; ///< block that tide__replay_is_early looked for last, until the next event; 0: none
    size_t looked_slot; ///< of the index, where that search ended
    size_t n_changed;   ///< series that the last event changed, the sum not counted
    int16_t series_of[TIDE__MAX_DEVICES][TIDE__MAX_KINDS]; ///< index by [device][kind]; 0: not yet
    /// Called for each block that goes, before it is taken out, with the event that ended it; NULL: nobody asks.
    void (*on_gone)(void *ctx, const tide__live_block *block, const tide__event *end);
    void *ctx;
} tide__replay;

/// TIDE_OK, TIDE_ERR_NOMEM (then nothing needs deinit).
tide_status tide__replay_init(tide__replay *r) TIDE_NODISCARD;
void tide__replay_deinit(tide__replay *r);
/// As after tide__replay_init, but the memory stays for the next use.
void tide__replay_reset(tide__replay *r);

/**
 * Take the next event. A block is live until its free_completed; a pool_discard ends every live block of its process
 * (block numbers say whose they are; a discard has the process's part of one) and device whose address lies in
 * [address, address + reserved_bytes).
 *
 * @param problem  out: what of it cannot be true; the event is taken as far as it makes sense (a block that is too
 * large for the sums is not taken at all)
 * @param series   out: index of the series that changed (the sum changed with it); 0: none. A discard, or a block that
 * is allocated twice, may change several: n_changed says how many, and those have last_event = e->id
 * @return TIDE_OK, TIDE_ERR_NOMEM, TIDE_ERR_INVALID for an alloc whose kind or device is outside the lists (nothing
 * changed)
 */
tide_status tide__replay_apply(tide__replay *r, const tide__event *e, tide__problem *problem,
                               size_t *series) TIDE_NODISCARD;
/// What the index has of a block number. The upper half has the process: mixed in, so that the n-th blocks of many
/// processes do not meet.
static inline uint32_t tide__replay_key(int64_t block_id) {
    const uint64_t id = (uint64_t)block_id;
    return (uint32_t)id ^ (uint32_t)(id >> 32) * UINT32_C(0x9E3779B1);
}

/// Where the search for a key begins. Numbers are mostly consecutive: multiplying spreads them (Fibonacci hashing,
/// Knuth vol. 3, 6.4). Left side by side, runs of long-lived ones would stand in the way of all that come to lie on
/// them.
static inline size_t tide__replay_home(const tide__replay *r, uint32_t key) {
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (r->n_index - 1);
}

/// Have what the events of two blocks will touch brought near: of `soon` in a few events, of `later` in about twice as
/// many. With many live blocks that is most of the time an event takes; numbers that are not live do no harm.
static inline void tide__replay_prefetch(const tide__replay *r, int64_t soon, int64_t later) {
    if (r->n_live == 0) return;
    const uint32_t key = tide__replay_key(soon);
    const uint64_t at = r->index[tide__replay_home(r, key)]; // was fetched when it was `later`
    if (at >> 32 == key && at != 0) {
        const char *block = (const char *)&r->blocks[(uint32_t)at - 1];
        __builtin_prefetch(block, 1);
        __builtin_prefetch(block + sizeof(tide__live_block) - 1, 1);
    }
    __builtin_prefetch(&r->index[tide__replay_home(r, tide__replay_key(later))], 1);
}
/// Put in a block as it stood in a snapshot. TIDE_ERR_NOMEM; TIDE_ERR_BAD_INPUT when it is there or the sums overflow.
tide_status tide__replay_put(tide__replay *r, const tide__live_block *block) TIDE_NODISCARD;
/// The live block of that number; NULL: none. Valid until the next event.
const tide__live_block *tide__replay_find(const tide__replay *r, int64_t block_id);
/// All live blocks, in no order: for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) ...
const tide__live_block *tide__replay_next(const tide__replay *r, size_t *i);
/// How many there are.
static inline size_t tide__replay_n_live(const tide__replay *r) { return r->n_live; }
/// The index of (device, kind), made when it is new; 0: no memory or out of range (devices are 1 to 1023).
size_t tide__replay_series(tide__replay *r, int16_t device, uint8_t kind);
/// Whether an event of that operation and block would end, or request the end of, a block that is not live: one that
/// came too early from its ring. When it is taken next, its block need not be looked for again.
bool tide__replay_is_early(tide__replay *r, uint8_t op, int64_t block_id);

#endif
