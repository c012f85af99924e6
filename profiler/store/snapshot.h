// SPDX-License-Identifier: MIT
//
// snapshot: all live blocks after one event, as one value of bytes: where a replay begins that wants to know who was
// live at some moment. Private to profiler/.
//
// Taken where a leaf ends, and not before max(TIDE__SNAPSHOT_EVENTS, factor x live blocks) events have passed: they
// take a bounded part of the file however many blocks live. Between chunks they are twice as far apart as between rows:
// a reader takes an event out of a chunk in less than half the time, and the file grows by half as much per event.
//
// Layout, with checksum and zigzag as in chunk.h; a `varint` has seven bits per byte, the lowest first, and bit 7 set
// in every byte but the last (LEB128), a `signed` is a zigzag one:
//
//     byte 0       format of the snapshot: 1
//     byte 1       address shift a: all addresses are multiples of 2^a
//     bytes 2-7    0
//     bytes 8-15   number of blocks
//     bytes 16-19  checksum
//     bytes 20-    the blocks by rising number; the base of each is the one before it, all zero for the first
//
// A block is a head of two bytes, then:
//
//     always         varint  block number - that of the base, >= 1
//     always         signed  event of its alloc - that of the base
//     always         signed  time of its alloc - that of the base
//     head bit 0     signed  time at which its free was requested - time of its alloc; otherwise it was not
//     head bit 1     varint  requested bytes; otherwise those of the base
//     head bit 2     signed  reserved - requested bytes; otherwise they are the same
//     head bit 3     signed  (address - address of the base) >> a
//     head bits 4-11 signed  differences to the base of 4 stream, 5 run, 6 thread, 7 scope, 8 tag, 9 allocator,
//                            10 device, 11 kind; bits 12 to 15 are 0
#ifndef TIDE_PROFILER_STORE_SNAPSHOT_H
#define TIDE_PROFILER_STORE_SNAPSHOT_H

#include "core/base/text.h"
#include "profiler/store/replay.h"

enum { TIDE__SNAPSHOT_EVENTS = 16384, TIDE__SNAPSHOT_FACTOR = 4, TIDE__SNAPSHOT_CHUNK_FACTOR = 8 };

/// How many events pass between two snapshots, at least.
static inline int64_t tide__snapshot_distance(size_t n_live, bool in_chunks) {
    const int64_t by_live =
        (int64_t)n_live * (in_chunks ? (int64_t)TIDE__SNAPSHOT_CHUNK_FACTOR : (int64_t)TIDE__SNAPSHOT_FACTOR);
    return by_live > TIDE__SNAPSHOT_EVENTS ? by_live : TIDE__SNAPSHOT_EVENTS;
}

/// Append the live blocks of `r` to `out`, by block number, all fields. TIDE_ERR_NOMEM.
tide_status tide__snapshot_encode(const tide__replay *r, tide_text *out) TIDE_NODISCARD;
/// Put them into an empty replay. TIDE_ERR_BAD_INPUT: the bytes are no snapshot; TIDE_ERR_NOMEM. After either the
/// replay holds a part of them.
tide_status tide__snapshot_decode(const void *bytes, size_t n_bytes, tide__replay *r) TIDE_NODISCARD;

#endif
