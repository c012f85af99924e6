// SPDX-License-Identifier: MIT
//
// chunk v1: chunks of format 1, which traces of version 3 hold, and those that were begun as such. They are read, and
// not written any more. Private to profiler/store/.
//
// Layout; all numbers are little-endian, unsigned unless said:
//
//     byte 0       format of the chunk: 1
//     byte 1       address shift a, at most 63: all addresses of the chunk are multiples of 2^a
//     byte 2       reserved shift r, at most 62: reserved bytes are mostly multiples of 2^r
//     byte 3       0
//     bytes 4-7    number of events, 1 to 4096
//     bytes 8-15   id of the first event; the others follow one by one
//     bytes 16-19  checksum of everything else, as in format 2
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
#ifndef TIDE_PROFILER_STORE_CHUNK_V1_H
#define TIDE_PROFILER_STORE_CHUNK_V1_H

#include "profiler/store/chunk_internal.h"

/// The events of a chunk of format 1 whose head and checksum are right. False: they are no events.
bool tide__chunk_v1_decode(const tide__chunk_head *head, const uint8_t *bytes, size_t n_bytes, tide__event *events);

#endif
