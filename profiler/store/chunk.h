// SPDX-License-Identifier: MIT
//
// chunk: up to 4096 events as one value of bytes, a fifth of what rows take and ten times as fast to write. What an
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
// An event is a byte for its shape, a byte for its form, and its parts. The shape is what events share: operation,
// kind, device, allocator, run, thread and stream. The form says how long each part is. Both are defined once: in a
// chunk the first 255 shapes, and the first 255 forms, have the numbers 1, 2, ... in order, and the number is all that
// an event says of them. A byte of 0 says that something new follows, which takes the next number, if there is one
// left.
//
// A byte follows each new shape. Its bits say which fields differ from those of the event before (0 for the first
// event):
//
//     bit 0  operation  one byte, as in table op
//     bit 1  kind       one byte; 255: none
//     bit 2  device     varint
//     bit 3  allocator  varint
//     bit 4  run        varint
//     bit 5  thread     varint
//     bit 6  stream     varint
//     bit 7  -          0
//
// and then these, in this order. A varint has seven bits per byte, the lowest first, and bit 7 set in every byte but
// the last. Four bytes follow each new form. They give the numbers of bytes, 0 to 8, of
//
//     bits   part       holds
//     0-3    time       time since the event before, since 0 for the first
//     4-7    reference  with bit 28: how many events back the base is. Without: signed, block number - guess
//     8-11   requested  requested bytes + 1; 0: those of the base
//     12-15  address    signed: (address - address of the base) >> a
//     16-19  tag        signed: tag - tag of the base
//     20-23  reserved   signed: reserved bytes - requested bytes rounded up to a multiple of 2^r
//     24-27  scope      signed: scope - scope of the last event of the thread
//     28     -          1: reference says where the base is
//     29-31  -          0
//
// The parts come in this order, behind the form. A part of no bytes is 0. `signed` numbers are zigzag: 0, -1, 1, -2,
// ... are stored as 0, 1, 2, 3, ...
//
// The base, where reference does not say another, is the last event of the same shape; for a new shape it is the event
// before, or one of zeros where there is none. Operations are of three classes: alloc, free_requested and
// free_completed, and the others. The guess of a block number is the block of the last event of the class and thread;
// of an alloc it is the number behind that. With bit 28, the block number of an alloc is the guess, and that of another
// event is that of its base. Threads whose numbers are equal modulo 64 are one thread here. Where a thread, or a class
// of it, has no event yet, its scope and its block are 0. Sums are modulo 2^64 for addresses, which use all 64 bits;
// the rest stays within 0 and 2^63 - 1 (2^31 - 1 for numbers of threads, scopes, tags, allocators and runs).
//
// So an event of a block that the chunk knows, or an alloc where one was before, takes four or five bytes.
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
/// Read them back into events[TIDE__CHUNK_MAX_EVENTS]. False: the bytes are no chunk (nothing
/// outside is touched).
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
    if (e->op == TIDE_MEM_DEVICE_USAGE) return tide__event_is_true_usage(e);
    if (e->op == TIDE_MEM_SIZED) return tide__event_is_true_size(e);
    return has_kind || e->kind == TIDE__NO_KIND;
}

#endif
