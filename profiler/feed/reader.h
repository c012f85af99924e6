// SPDX-License-Identifier: MIT
//
// reader: the other side of a feed file: a drain, or a program that finds it left behind. Trusts nothing in it. Private
// to profiler/.
#ifndef TIDE_PROFILER_FEED_READER_H
#define TIDE_PROFILER_FEED_READER_H

#include "core/base/status.h"
#include "profiler/feed/format.h"

typedef struct tide__feed_reader tide__feed_reader;

/// Feed files of a trace, by name, owned (free each, then the array, with tide_host_free). None is no error.
tide_status tide__feed_list(const char *trace_path, char ***paths, size_t *n, tide_error *err) TIDE_NODISCARD;

/// Map a feed for draining and take the drain's lock on it. TIDE_ERR_BUSY: another process drains it;
/// TIDE_ERR_BAD_INPUT: no feed, another version, sizes that cannot be; TIDE_ERR_IO. `look_only`: neither lock nor
/// write.
tide_status tide__feed_reader_open(const char *path, bool look_only, tide__feed_reader **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Unmap, let go of the lock; `remove`: the file is no longer needed. Takes NULL.
void tide__feed_reader_close(tide__feed_reader *r, bool remove);
const char *tide__feed_reader_path(const tide__feed_reader *r);
tide__feed_header *tide__feed_reader_head(tide__feed_reader *r);

/// Whether events may still come: the producer lives (its lock is held and its pid is the same process) and has not
/// closed.
bool tide__feed_reader_producer_lives(const tide__feed_reader *r);
/// The folder /proc/PID of the producer, open; -1: it is not in this process's view of pids, or has gone. The caller
/// closes it.
int tide__feed_reader_open_process(const tide__feed_reader *r);
/// Whether its process has ended, or another program has taken its place, though a child may hold a lock for it.
bool tide__feed_reader_producer_has_gone(const tide__feed_reader *r);
/// With that: whether the process is there all the same, so that it was exec.
bool tide__feed_reader_process_lives_on(const tide__feed_reader *r);
/// Whether a process drains the file or records into it; the caller does not have it open.
bool tide__feed_is_in_use(const char *path);

/// Map chunks that were added since. TIDE_ERR_BAD_INPUT when they cannot be.
tide_status tide__feed_reader_refresh(tide__feed_reader *r, tide_error *err) TIDE_NODISCARD;
size_t tide__feed_reader_n_rings(const tide__feed_reader *r);
tide__ring_header *tide__feed_reader_ring(tide__feed_reader *r, size_t ring);
/// Number of slots that the ring may grow to.
uint64_t tide__feed_reader_n_slots(const tide__feed_reader *r, size_t ring);
/// Number of slots that it is full by: the same, or what it has where it could not grow. The feed says so, and no check
/// may go by it.
uint64_t tide__feed_reader_n_full(const tide__feed_reader *r, size_t ring);

/// Slots of the positions from `begin` on, n of them; that of `position` is slots[position & mask].
typedef struct tide__ring_room {
    uint64_t begin, n; ///< of the last room: to the end of all numbers
    const tide__slot *slots;
    uint64_t mask;
} tide__ring_room;
/// Where a position below tide__feed_reader_end is, which knows all rooms before it.
tide__ring_room tide__feed_reader_room(const tide__feed_reader *r, size_t ring, uint64_t position);

/// First position behind what is published. `all`: the producer is gone, also count slots whose sequence was stored
/// and whose head was not. Never more past `tail` than the ring has room for.
uint64_t tide__feed_reader_end(tide__feed_reader *r, size_t ring, uint64_t tail, bool all);
/// The slot at `position`, below tide__feed_reader_end; NULL when its sequence is not the one of that position (torn or
/// hostile).
const tide__slot *tide__feed_reader_slot(const tide__feed_reader *r, size_t ring, uint64_t position);

/// Records of the log that were not yet given, in order; NULL: no more at present. *bad: the log is damaged there, and
/// nothing of this chunk follows. The payload follows the record, payload_bytes long, within the file.
const tide__log_record *tide__feed_reader_next_record(tide__feed_reader *r, bool *bad);
/// The head of the record that was given last, as it was when it was checked: in the file it may be another one by now.
const tide__log_record *tide__feed_reader_record(const tide__feed_reader *r);

#endif
