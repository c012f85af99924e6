// SPDX-License-Identifier: MIT
//
// block chunk: how the blocks of one chunk of events ended, as one value of bytes. Everything else of a block is in the
// event that allocated it, and that is in the chunk of events of the same number. Private to profiler/.
//
//     event_chunk   | alloc a | free a | alloc b | alloc c | ... |          block = its alloc event
//     block_chunk       a: 1 on           b: 9000 on  c: never              + how it ended
//
// Layout; all numbers are little-endian, unsigned unless said:
//
//     byte 0       format of the chunk: 1
//     byte 1       0
//     bytes 2-3    number of events in the chunk of events, 1 to 4096
//     bytes 4-7    number of blocks, 1 to 4096
//     bytes 8-15   id of the first event
//     bytes 16-19  checksum, as that of a chunk of events
//     bytes 20-    a bit for each event, the lowest of a byte first: it made a block; bits behind the last are 0
//     then         the blocks in the order of these bits, nothing behind the last
//
// A block is a varint (seven bits per byte, the lowest first, and bit 7 set in every byte but the last):
//
//     0            it was never freed
//     1            a byte of flags follows, then what they say, in this order:
//                    bit 0  its number is minus its alloc event: an earlier block has the one of the event
//                    bit 1  varint: free requested so many ns behind the alloc
//                    bit 2  it was freed: varint, as below
//     2 + 2 d      freed by the event d + 1 behind its alloc, which lies in the chunk and says when
//     3 + 2 d      freed by an event behind the chunk. d is signed: that event - the base's. A signed varint follows:
//                  the time of that event - the base's. (Signed numbers are zigzag: 0, -1, 1, ... are 0, 1, 2, ...)
//
// The base is the event that freed the block before which was freed behind the chunk; the last event of the chunk for
// the first such block. So a block that lives for a short time takes one or two bytes, and blocks that are freed in the
// order in which they were made, however late, three or four.
#ifndef TIDE_PROFILER_STORE_BLOCK_CHUNK_H
#define TIDE_PROFILER_STORE_BLOCK_CHUNK_H

#include "profiler/store/chunk.h"
#include "profiler/store/rows.h"

/// How a block ended.
typedef struct tide__block_end {
    int64_t distance;     ///< events from its alloc to its free; 0: never freed
    int64_t behind_ns;    ///< ns from the last event of the chunk to its free, where that lies behind it; else 0
    int64_t requested_ns; ///< ns from its alloc to the request of its free; -1: not requested
    uint16_t at;          ///< its alloc event: so many behind the first of the chunk
    bool is_second;       ///< an earlier block has its number
} tide__block_end;

/// The blocks of one chunk of events.
typedef struct tide__block_ends {
    int64_t first_event;
    uint32_t n_events, n;
    tide__block_end items[TIDE__CHUNK_MAX_EVENTS]; ///< [n], by `at`
} tide__block_ends;

enum {
    TIDE__BLOCK_END_BYTES = 48, ///< no block takes more
    TIDE__BLOCK_CHUNK_MAX_BYTES = 64 + TIDE__CHUNK_MAX_EVENTS / 8 + TIDE__CHUNK_MAX_EVENTS * TIDE__BLOCK_END_BYTES
};

/// Write 1 or more blocks into `out`, which has room for TIDE__BLOCK_CHUNK_MAX_BYTES. @return bytes written
size_t tide__block_chunk_encode(const tide__block_ends *b, uint8_t *out);
/// Read them back. False: the bytes are no chunk of blocks.
bool tide__block_chunk_decode(const uint8_t *bytes, size_t n_bytes, tide__block_ends *out);
/// The rows of table block that `b` stands for, with `events` [n_events] of the chunk of events. False: it does not
/// belong to these events.
bool tide__block_chunk_rows(const tide__block_ends *b, const tide__event *events, size_t n_events,
                            tide__block_row *rows);

#endif
