// SPDX-License-Identifier: MIT
//
// chunk: up to 4096 events as one value of bytes, a third of what rows take and ten times as fast to write. What an
// event has in common with an earlier one is left out, the rest takes as many bytes as it needs. Private to profiler/.
//
// Layout; all numbers are little-endian, unsigned unless said:
//
//     byte 0       format of the chunk: 1
//     byte 1       address shift a, at most 63: all addresses of the chunk are multiples of 2^a
//     byte 2       reserved shift r, at most 62: reserved bytes are mostly multiples of 2^r
//     byte 3       0
//     bytes 4-7    number of events, 1 to 4096
//     bytes 8-15   id of the first event; the others follow one by one
//     bytes 16-19  checksum of everything else, see below
//     bytes 20-    the events, one after the other, nothing behind the last
//
// An event is a head of four bytes that says how long each part is, then the parts:
//
//     bits    part      holds
//     0-4     -         operation, as in table op; operations below 16 are one class, the others another
//     5       -         1: the byte `others` follows behind the last part
//     6-7     base      how many events back the base is. Without the part: the event before of the same class
//     8-10    time      time since the event before
//     11-13   block     signed: block number - predicted. With the part base, the block of the base is predicted;
//                       without it, of an alloc the block of the alloc before it in the chunk + 1, of a
//                       free_requested or free_completed the block of the alloc before it in the chunk, of other
//                       operations the block of the base
//     14-16   requested requested bytes; without the part, those of the base
//     17-19   reserved  signed: reserved bytes - requested bytes rounded up to a multiple of 2^r
//     20-22   address   signed: (address - address of the base) >> a
//     23-24   tag       signed: tag - tag of the base
//     25-26   scope     signed: scope - scope of the event before
//     27-28   thread    signed: thread - thread of the event before
//     29-31   -         0
//
// The parts come in this order. Three bits give a length of 0, 1, 2, 3, 4, 5, 6 or 8 bytes, two bits one of 0, 1, 2 or
// 4 bytes. A part that is not there is 0, if nothing else is said. `signed` numbers are zigzag: 0, -1, 1, -2, ... are
// stored as 0, 1, 2, 3, ... `others` is a byte that says what of the following is there, in this order:
//
//     bit 0     kind       one byte
//     bit 1     device     two bytes
//     bit 2     run        four bytes
//     bits 3-4  allocator  signed: allocator - allocator of the base, length as above
//     bits 5-7  stream     signed: stream - stream of the base, length as above
//
// Kind, device, allocator and stream that are not there are those of the base, the run is that of the event before.
// Where there is no event before, and no alloc before, everything is 0, but the kind of the upper class is 255. Sums
// are modulo 2^64 for addresses and streams, which use all 64 bits; the rest stays within 0 and 2^63 - 1 (2^31 - 1 for
// numbers of threads, scopes, tags, allocators and runs).
//
// Checksum: mix(h, w) is x ^ (x >> 32) with x = (h ^ w) * 0x9e3779b97f4a7c15 modulo 2^64. a = mix(0xcbf29ce484222325,
// bytes 0-7), b = mix(number of bytes of the whole chunk, bytes 8-15). For each 16 bytes from byte 20 on, the last
// group filled up with zeros and there even when it is empty: a = mix(a, the first eight of them), b = mix(b, the
// others). The lower half of mix(a, b) is stored.
#ifndef TIDE_PROFILER_STORE_CHUNK_H
#define TIDE_PROFILER_STORE_CHUNK_H

#include "core/base/status.h"
#include "profiler/event.h"

enum {
    TIDE__CHUNK_MAX_EVENTS = 4096,
    TIDE__CHUNK_EVENT_BYTES = 128, ///< no event takes more
    TIDE__CHUNK_MAX_BYTES = 64 + TIDE__CHUNK_MAX_EVENTS * TIDE__CHUNK_EVENT_BYTES
};

/// Write 1 to 4096 events with consecutive ids, times that do not decrease and values that tide__event_is_sane holds
/// for into `out`, which has room for TIDE__CHUNK_MAX_BYTES. @return bytes written
size_t tide__chunk_encode(const tide__event *events, size_t n, uint8_t *out);
/// Read them back into events[TIDE__CHUNK_MAX_EVENTS]. False: the bytes are no chunk (nothing outside is touched).
bool tide__chunk_decode(const uint8_t *bytes, size_t n_bytes, tide__event *events, size_t *n);
/// The checksum that belongs into `bytes` [n_bytes >= TIDE__CHUNK_HEAD_BYTES].
uint32_t tide__chunk_checksum(const uint8_t *bytes, size_t n_bytes);

enum { TIDE__CHUNK_HEAD_BYTES = 20 }; ///< of a chunk; of a snapshot too

/// Whether every value is one that an event can have: what any reader of events asks of a row or chunk.
static inline bool tide__event_is_sane(const tide__event *e) {
#define XX(name, value, text) | UINT32_C(1) << (value)
    const uint32_t ops = 0 TIDE_MEMORY_OP_MAP(XX) TIDE__TRACE_OP_MAP(XX);
#undef XX
    const uint32_t of_block = 1u << TIDE_MEM_ALLOC | 1u << TIDE_MEM_FREE_REQUESTED | 1u << TIDE_MEM_FREE_COMPLETED;
    const int64_t signs = (e->id - 1) | e->t_ns | e->block_id | e->requested_bytes | e->reserved_bytes;
    const int32_t small_signs = e->run_id | e->thread | e->scope_id | e->tag_id | e->allocator_id | e->device;
    if (signs < 0 || small_signs < 0 || e->device >= TIDE__MAX_DEVICES || e->op >= 32 || (ops >> e->op & 1) == 0)
        return false;
    const bool has_kind = e->kind < TIDE_N_KINDS;
    if (of_block >> e->op & 1) return has_kind && e->device > 0;
    return has_kind || e->kind == TIDE__NO_KIND;
}

#endif
