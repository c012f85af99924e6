// SPDX-License-Identifier: MIT
//
// What chunk.c, which writes and reads chunks of format 2, and chunk_v1.c, which reads those of format 1, share.
// Private to profiler/store/.
#ifndef TIDE_PROFILER_STORE_CHUNK_INTERNAL_H
#define TIDE_PROFILER_STORE_CHUNK_INTERNAL_H

#include "profiler/store/chunk.h"
#include "profiler/store/varint.h"

enum {
    TIDE__CHUNK_MAX_ADDRESS_SHIFT = 63,
    TIDE__CHUNK_MAX_RESERVED_SHIFT = 62,
    /// A decoder may look that far ahead while it takes one event: what says how it is written, its parts, eight bytes
    /// behind the last.
    TIDE__CHUNK_LOOK_AHEAD = TIDE__CHUNK_EVENT_BYTES,
};

/// What the head of a chunk says, of either format.
typedef struct tide__chunk_head {
    unsigned format, address_shift, reserved_shift;
    size_t n_events;
    int64_t first_id;
} tide__chunk_head;

static inline uint64_t tide__chunk_rounded_up(uint64_t bytes, unsigned shift) {
    const uint64_t mask = (UINT64_C(1) << shift) - 1;
    return (bytes + mask) & ~mask;
}

/// By number of bytes.
static const uint64_t tide__chunk_byte_mask[9] = {0,
                                                  UINT64_C(0xff),
                                                  UINT64_C(0xffff),
                                                  UINT64_C(0xffffff),
                                                  UINT64_C(0xffffffff),
                                                  UINT64_C(0xffffffffff),
                                                  UINT64_C(0xffffffffffff),
                                                  UINT64_C(0xffffffffffffff),
                                                  UINT64_MAX};

/// The bytes of a chunk behind its head. What lies within TIDE__CHUNK_LOOK_AHEAD bytes of its end is read from a copy
/// with zeros behind it, so that an event may be taken without a look at where the chunk ends.
typedef struct tide__chunk_bytes {
    const uint8_t *at, *end;
    uint8_t tail[2 * TIDE__CHUNK_LOOK_AHEAD];
    bool in_tail;
} tide__chunk_bytes;

static inline void tide__chunk_bytes_look(tide__chunk_bytes *b) {
    if (b->in_tail || b->end - b->at >= TIDE__CHUNK_LOOK_AHEAD) return;
    const size_t n_left = (size_t)(b->end - b->at);
    memset(b->tail, 0, sizeof b->tail);
    memcpy(b->tail, b->at, n_left);
    b->at = b->tail;
    b->end = b->tail + n_left;
    b->in_tail = true;
}

#endif
