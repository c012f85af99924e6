// SPDX-License-Identifier: MIT
//
// What the two encoders of chunks share: chunk.c, for every processor, and chunk_wide.c, which packs an event at once
// where the processor can. Both make the same bytes. Private to profiler/store/.
#ifndef TIDE_PROFILER_STORE_CHUNK_INTERNAL_H
#define TIDE_PROFILER_STORE_CHUNK_INTERNAL_H

#include "profiler/store/chunk.h"
#include "profiler/store/varint.h"

enum {
    TIDE__CHUNK_HAS_OTHERS = 1 << 5,
    TIDE__CHUNK_BASE_AT = 6,
    TIDE__CHUNK_TIME_AT = 8,
    TIDE__CHUNK_BLOCK_AT = 11,
    TIDE__CHUNK_REQUESTED_AT = 14,
    TIDE__CHUNK_RESERVED_AT = 17,
    TIDE__CHUNK_ADDRESS_AT = 20,
    TIDE__CHUNK_TAG_AT = 23,
    TIDE__CHUNK_SCOPE_AT = 25,
    TIDE__CHUNK_THREAD_AT = 27,
    TIDE__CHUNK_UNUSED_AT = 29,

    TIDE__CHUNK_OTHER_KIND = 1,

    /// Blocks seen in the chunk are found by the low bits of their numbers.
    TIDE__CHUNK_SEEN_BITS = 12,
};

typedef struct tide__chunk_encoder {
    uint64_t last_alloc;
    unsigned address_shift, reserved_shift;
    const tide__event *before;      ///< the event before
    const tide__event *of_class[2]; ///< the event before of each class
} tide__chunk_encoder;

static inline size_t tide__chunk_class(unsigned op) { return op >= TIDE__OP_SCOPE_ENTER; }

/// What the block number is counted from; `last_alloc` is the block of the last alloc in the chunk.
static inline uint64_t tide__chunk_predicted(unsigned op, bool has_base, const tide__event *base, uint64_t last_alloc) {
    const uint32_t by_alloc = 1u << TIDE_MEM_ALLOC | 1u << TIDE_MEM_FREE_REQUESTED | 1u << TIDE_MEM_FREE_COMPLETED;
    const bool of_base = has_base || (by_alloc >> op & 1) == 0;
    return of_base ? (uint64_t)base->block_id : last_alloc + (op == TIDE_MEM_ALLOC);
}

static inline uint64_t tide__chunk_rounded_up(uint64_t bytes, unsigned shift) {
    const uint64_t mask = (UINT64_C(1) << shift) - 1;
    return (bytes + mask) & ~mask;
}

/// How far back the event is that `events[i]` is told by, an earlier one of the same block; 0: there is none that is
/// known. Notes events[i] in `seen` [1 << TIDE__CHUNK_SEEN_BITS], which is zero at first.
static inline size_t tide__chunk_back(const tide__event *events, size_t i, uint16_t *seen) {
    const tide__event *e = &events[i];
    uint16_t *at = &seen[(uint64_t)e->block_id & ((1 << TIDE__CHUNK_SEEN_BITS) - 1)];
    const size_t back = i + 1 - *at; // to an event of the chunk, or to its first when there is none
    const bool same = (*at != 0) & (events[i - (*at != 0 ? back : 0)].block_id == e->block_id) & (e->block_id != 0);
    *at = (uint16_t)(i + 1);
    return same ? back : 0;
}

/// What is left to tell where device, stream, allocator or run have changed: the byte `others` and its parts.
uint8_t *tide__chunk_put_others(uint8_t *p, const tide__event *e, const tide__event *base, const tide__event *before);

/// Whether this processor has what tide__chunk_put_wide takes.
bool tide__chunk_can_wide(void);
/// tide__chunk_encode with the one (`wide`, which asks for a processor that can) or the other of what follows.
size_t tide__chunk_encode_by(bool wide, const tide__event *events, size_t n, uint8_t *out);
/// All events of a chunk, behind its head. @return behind the last byte
uint8_t *tide__chunk_put_wide(tide__chunk_encoder *c, uint8_t *p, const tide__event *events, size_t n);
/// The same for every processor.
uint8_t *tide__chunk_put_plain(tide__chunk_encoder *c, uint8_t *p, const tide__event *events, size_t n);

#endif
