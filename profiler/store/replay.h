// SPDX-License-Identifier: MIT
//
// replay: what events do to memory: which blocks are live, how many bytes per (device, kind), and which events cannot
// be true. The drain runs it as events come, the finish runs it over the file, the query runs it from a snapshot to a
// moment: one definition for all three. Private to profiler/.
//
// What an event looks at is in one table, in groups of 16; the hash of the block's number says which group. A byte for
// each entry tells whether it is taken, and seven bits of the hash: a group is looked through at once and hardly ever
// are two entries read. (As in Abseil's "Swiss tables", CppCon 2017; with linear probing by groups.) The rest of a
// block lies elsewhere, is written once, and read when the live blocks are asked for:
//
//     tags     [ . a3 . 91 | . . c8 . ]     0: never taken; 1: gone, but others were put behind it; 0x80 | hash
//                  |    |        |
//     table    [ . 7  . 9  | . . 8  . ]     number, bytes, series, place
//                  |   /    ___/
//     blocks   [ 9 ][ 7 ][ 8 ][    ]...     freed places are used again, the last one first
//     is_live    1    1    1    0           a bit each
//
#ifndef TIDE_PROFILER_STORE_REPLAY_H
#define TIDE_PROFILER_STORE_REPLAY_H

#include <stddef.h>

#include "core/base/status.h"
#include "profiler/event.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

_Static_assert((int)TIDE_N_KINDS <= (int)TIDE__MAX_KINDS, "series are found by device and kind");

/// A block that is allocated and not gone yet. All but its last field lie as in the event that allocated it, and are
/// copied in one.
typedef struct tide__live_block {
    int64_t alloc_event, alloc_ns;
    int64_t block_id; ///< never 0
    int64_t requested_bytes, reserved_bytes;
    int64_t address, stream;
    int32_t run_id, thread, scope_id, tag_id, allocator_id;
    int16_t device;
    uint8_t zero, kind;
    int64_t free_requested_ns; ///< 0: not requested
} tide__live_block;
_Static_assert(sizeof(tide__live_block) == 88, "live sets are sized by this");
_Static_assert(offsetof(tide__live_block, free_requested_ns) == sizeof(tide__event), "the rest is one");
#define TIDE__SAME_PLACE(of_block, of_event)                                                                           \
    _Static_assert(offsetof(tide__live_block, of_block) == offsetof(tide__event, of_event), "copied in one")
TIDE__SAME_PLACE(alloc_event, id);
TIDE__SAME_PLACE(alloc_ns, t_ns);
TIDE__SAME_PLACE(block_id, block_id);
TIDE__SAME_PLACE(requested_bytes, requested_bytes);
TIDE__SAME_PLACE(reserved_bytes, reserved_bytes);
TIDE__SAME_PLACE(address, address);
TIDE__SAME_PLACE(stream, stream);
TIDE__SAME_PLACE(run_id, run_id);
TIDE__SAME_PLACE(thread, thread);
TIDE__SAME_PLACE(scope_id, scope_id);
TIDE__SAME_PLACE(tag_id, tag_id);
TIDE__SAME_PLACE(allocator_id, allocator_id);
TIDE__SAME_PLACE(device, device);
TIDE__SAME_PLACE(zero, op);
TIDE__SAME_PLACE(kind, kind);
#undef TIDE__SAME_PLACE

/// What the end of a live block looks at.
typedef struct tide__live_entry {
    int64_t block_id, requested_bytes, reserved_bytes;
    uint32_t place; ///< in blocks
    uint32_t series;
} tide__live_entry;
_Static_assert(sizeof(tide__live_entry) == 32, "none lies in two cache lines");

/// Sums of one (device, kind): a series of the file. Series 0 is the sum of all.
typedef struct tide__series {
    int16_t device;
    uint8_t kind;
    int64_t live_bytes, live_reserved_bytes;                 ///< now
    int64_t n_allocs, n_frees, requested_bytes, freed_bytes; ///< of the events applied so far; not of series 0
    int64_t left_bytes;                                      ///< the same: of blocks that ended with their process
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
    XX(TOTALS, 7, "what is in the file is not what was heard") /* of the whole trace, noted at its end */              \
    XX(LATE, 8, "came later than others that happened after it: its own time is") /* that time in ns follows */
typedef enum tide__problem {
#define XX(name, value, text) TIDE__PROBLEM_##name = (value),
    TIDE__PROBLEM_MAP(XX)
#undef XX
} tide__problem;
const char *tide__problem_text(tide__problem p);

typedef struct tide__replay {
    tide__live_entry *table;  ///< [n_table]
    uint8_t *tags;            ///< [n_table]
    size_t n_table;           ///< 0 or a power of two, at least two groups
    unsigned shift;           ///< 64 - log2(groups)
    size_t n_live, n_gone;    ///< of the tags
    tide__live_block *blocks; ///< [n_blocks], owned. See tide__replay_find and _next
    uint64_t *is_live;        ///< [cap_blocks / 64], owned
    uint32_t *free_places;    ///< [n_free], room for cap_blocks; owned
    size_t n_blocks, cap_blocks, n_free;
    void *table_memory;   ///< of table and tags, owned
    tide__series *series; ///< [n_series], owned; [0] is the sum
    size_t n_series, cap_series;
    int64_t last_event, last_ns;
    int64_t n_problems;
    int64_t looked_for; ///< block that tide__replay_is_early looked for last, until the next event; 0: none
    size_t looked_slot; ///< of the table, where it is; SIZE_MAX: it is not live
    size_t n_changed;   ///< series that the last event changed, the sum not counted
    int16_t series_of[TIDE__MAX_DEVICES][TIDE__MAX_KINDS]; ///< index by [device][kind]; 0: not yet
    /// Called for each block that goes, before it is taken out, with the event that ended it; NULL: not called.
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
 * [address, address + reserved_bytes); a process_end every live block of its process, which is no free.
 *
 * @param problem  out: what of it cannot be true; the event is taken as far as it makes sense (a block that is too
 * large for the sums is not taken at all)
 * @param series   out: index of the series that changed (the sum changed with it); 0: none. A discard, the end of a
 * process, or a block that is allocated twice, may change several: n_changed says how many, and those have last_event =
 * e->id
 * @return TIDE_OK, TIDE_ERR_NOMEM, TIDE_ERR_INVALID for an alloc whose kind or device is outside the lists (nothing
 * changed)
 */
tide_status tide__replay_apply(tide__replay *r, const tide__event *e, tide__problem *problem,
                               size_t *series) TIDE_NODISCARD;
// ---- the table ----

enum { TIDE__GROUP = 16, TIDE__TAG_NEVER = 0, TIDE__TAG_GONE = 1, TIDE__TAG_TAKEN = 0x80 };

/// Numbers are mostly consecutive: multiplying spreads them (Fibonacci hashing, Knuth vol. 3, 6.4). The upper bits say
/// the group, the seven below them are in the tag.
static inline uint64_t tide__replay_hash(int64_t block_id) { return (uint64_t)block_id * UINT64_C(0x9E3779B97F4A7C15); }
static inline size_t tide__replay_group(const tide__replay *r, uint64_t hash) {
    return (size_t)(hash >> r->shift) * TIDE__GROUP;
}
static inline uint8_t tide__replay_tag(const tide__replay *r, uint64_t hash) {
    return (uint8_t)(TIDE__TAG_TAKEN | (hash >> (r->shift - 7) & 0x7f));
}
/// Which of 16 tags are `tag`, a bit each.
static inline unsigned tide__group_match(const uint8_t *tags, uint8_t tag) {
#if defined(__SSE2__)
    const __m128i group = _mm_loadu_si128((const __m128i *)(const void *)tags);
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(group, _mm_set1_epi8((char)tag)));
#else
    unsigned same = 0;
    for (unsigned i = 0; i < TIDE__GROUP; i++) same |= (unsigned)(tags[i] == tag) << i;
    return same;
#endif
}

/// Have what an event of that block will look at brought near, some events ahead. With many live blocks that is most of
/// the time an event takes; numbers that are not live do no harm. (Always inlined: gcc takes a function that does
/// nothing but fetch for one without effect, and drops its calls.)
__attribute__((always_inline)) static inline void tide__replay_prefetch(const tide__replay *r, int64_t block_id) {
    if (r->n_table == 0) return;
    const uint64_t hash = tide__replay_hash(block_id);
    const size_t group = tide__replay_group(r, hash);
    unsigned at = tide__group_match(&r->tags[group], tide__replay_tag(r, hash));
    if (at == 0) at = tide__group_match(&r->tags[group], TIDE__TAG_NEVER); // one that will be put in
    __builtin_prefetch(&r->table[group + (at != 0 ? (unsigned)__builtin_ctz(at) : 0)], 1);
}
/// The rest of the block, for a replay with on_gone; its entry was fetched a while ago.
void tide__replay_prefetch_block(const tide__replay *r, int64_t block_id);

/// Put in a block as it stood in a snapshot. TIDE_ERR_NOMEM; TIDE_ERR_BAD_INPUT when it is there or the sums overflow.
tide_status tide__replay_put(tide__replay *r, const tide__live_block *block) TIDE_NODISCARD;
/// The live block of that number; NULL: none. Valid until the next event.
const tide__live_block *tide__replay_find(const tide__replay *r, int64_t block_id);
/// All live blocks, in no order: for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) ...
const tide__live_block *tide__replay_next(const tide__replay *r, size_t *i);
/// Room for n blocks more, so that the next n allocs ask for no memory. False: there is none, nothing changed that
/// matters.
bool tide__replay_reserve(tide__replay *r, size_t n);
/// After events that were not applied by tide__replay_apply: what it would have tidied up behind each.
void tide__replay_settle(tide__replay *r);
/// How many there are.
static inline size_t tide__replay_n_live(const tide__replay *r) { return r->n_live; }
/// The index of (device, kind), made when it is new; 0: no memory or out of range (devices are 1 to 1023).
size_t tide__replay_series(tide__replay *r, int16_t device, uint8_t kind);
/// Whether an event of that operation and block would end, or request the end of, a block that is not live: one that
/// came too early from its ring. When it is taken next, its block need not be looked for again.
bool tide__replay_is_early(tide__replay *r, uint8_t op, int64_t block_id);

#endif
