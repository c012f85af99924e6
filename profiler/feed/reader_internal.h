// SPDX-License-Identifier: MIT
//
// What the reader's files share: reader.c opens and maps, reader_log.c walks the log, reader_find.c looks for feeds and
// for those who use them. Included by profiler/feed/ only.
#ifndef TIDE_PROFILER_FEED_READER_INTERNAL_H
#define TIDE_PROFILER_FEED_READER_INTERNAL_H

#include "profiler/feed/mapped_file.h"
#include "profiler/feed/reader.h"

/// A chunk as it was when it was checked: the file's own table is not asked again.
typedef struct tide__reader_chunk {
    void *data; ///< mapped
    uint64_t offset, bytes;
    uint32_t kind;
} tide__reader_chunk;

enum { TIDE__READER_MAX_ROOMS = 16 }; ///< of a ring: more than one that grows four times each time can have

/// A ring with what it has grown by.
typedef struct tide__reader_ring {
    tide__ring_header *head;
    tide__ring_room rooms[TIDE__READER_MAX_ROOMS]; ///< [n_rooms], one behind the other
    size_t n_rooms;
    uint64_t n_slots; ///< of all of them
    uint64_t n_most;  ///< that it may have at a time
} tide__reader_ring;

struct tide__feed_reader {
    char *path;
    tide__mapped_file file;
    bool look_only;
    tide__feed_header *head;
    tide__reader_chunk *chunks; ///< [n_chunks], owned
    size_t n_chunks, cap_chunks;
    uint64_t ring_slots;      ///< that a ring may grow to; 0: the header has no such number
    tide__reader_ring *rings; ///< [n_rings], owned
    size_t n_rings, cap_rings;
    size_t log_chunk;        ///< number of the chunk whose records are given next
    uint64_t log_used;       ///< of it, already given
    bool log_is_bad;         ///< nothing more of this piece
    tide__log_record record; ///< the one that was given last, as it was when it was checked
};

/// Who holds a byte of the file.
typedef enum tide__lock_state { TIDE__LOCK_FREE, TIDE__LOCK_HELD, TIDE__LOCK_UNKNOWN } tide__lock_state;
tide__lock_state tide__feed_lock_state(int fd, int byte);

#endif
