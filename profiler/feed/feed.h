// SPDX-License-Identifier: MIT
//
// feed: the producer's side of a feed file (format.h): made beside the trace, one ring per recording thread, events put
// in without a lock, a system call or an allocation. Private to profiler/.
#ifndef TIDE_PROFILER_FEED_FEED_H
#define TIDE_PROFILER_FEED_FEED_H

#include "core/memory/observer.h"
#include "profiler/feed/format.h"

typedef struct tide__feed tide__feed;

typedef struct tide__feed_options {
    const char *trace_path; ///< the feed lies beside it
    const char *command;    ///< command line of the process; NULL: not known
    int32_t rank;           ///< -1: none
    size_t ring_slots;      ///< per thread, rounded up to a power of two; 0: TIDE__FEED_DEFAULT_SLOTS
    bool drop_when_full;    ///< false: wait for room
    uint64_t max_wait_ns;   ///< while nothing moves; then drop until something does; 0: without end
    bool by_address;        ///< see tide__by_address
    bool is_late;           ///< by address: the process has blocks that the feed does not know
} tide__feed_options;

/// The trace's path should be absolute: the feed is removed by its path, too. TIDE_ERR_IO (with the system's words: a
/// full disk, a read-only one, a size limit), TIDE_ERR_NOMEM. A limit on file sizes sends no signal to the program
/// (SIGXFSZ is held back).
tide_status tide__feed_create(const tide__feed_options *opt, tide__feed **out, tide_error *err) TIDE_NODISCARD;
const char *tide__feed_path(const tide__feed *f);
tide__feed_header *tide__feed_head(tide__feed *f);
/// Whether this process was forked from the one that made the feed: the mapped file, its name and its drain are the
/// parent's, and end and destroy leave them alone.
bool tide__feed_is_child(const tide__feed *f);

/// Put an event in. Any thread, any time between create and close. An event with t_ns 0 gets the time of now. What
/// cannot be true of any event (no such kind or operation, a size beyond 2^63 - 1, a block number beyond 2^48, more
/// than 32 devices or 255 allocators, no memory for a new name, no disk for a thread's ring) is refused and counted;
/// the first refusal is kept for tide__feed_error. After TIDE__DRAIN_FAILED, and in a forked child, nothing is put in.
void tide__feed_memory(tide__feed *f, const tide_memory_event *e);
void tide__feed_scope(tide__feed *f, const tide_scope_event *e);
/// Put a run or a fact (registration.h) into the log: for the drain, which makes rows of it. Any thread. @return
/// TIDE_ERR_WRITE with the system's words: a full disk; TIDE_ERR_NO_SPACE: larger than TIDE__FEED_MAX_RECORD
tide_status tide__feed_register(tide__feed *f, tide__log_type type, const void *payload, size_t bytes,
                                tide_error *err) TIDE_NODISCARD;
/// Runs and facts that were put in. Any thread.
uint64_t tide__feed_n_registered(const tide__feed *f);
/// A run, by its number in this process, begins or ends for every event that is put in after this returned, on whatever
/// thread. `t_ns` 0: now. A begin is refused where the drain does not move. One thread at a time.
void tide__feed_run(tide__feed *f, bool begin, int64_t run_id, uint64_t t_ns);

/// Something cannot be put in: counted, and the first one is kept with its reason for tide__feed_error. Any thread.
void tide__feed_refuse(tide__feed *f, tide_status st, const char *what);

/// Called when a ring is full and nothing moves, and by tide__feed_check: whether a drain is still there. Returns false
/// when it is known to be gone for good. Set before the first event; NULL: believed.
void tide__feed_set_watch(tide__feed *f, bool (*drain_lives)(void *ctx), void *ctx);
/// Called, by one thread, each time that the drain has not moved for max_wait_ns: from now on events are dropped.
void tide__feed_on_stall(tide__feed *f, void (*stalls)(void *ctx), void *ctx);
/// Ask the watch now; when the drain is gone, producers go quiet as after TIDE__DRAIN_FAILED.
void tide__feed_check(tide__feed *f);

/// The first refusal, or the drain's failure; TIDE_OK when there is none.
tide_status tide__feed_error(const tide__feed *f, tide_error *err);

typedef struct tide__feed_stats {
    uint64_t n_events, n_lost, n_refused, blocked_ns; ///< over all threads
    uint64_t file_bytes;                              ///< of the feed
    size_t n_rings;
} tide__feed_stats;
void tide__feed_get_stats(const tide__feed *f, tide__feed_stats *out);

/// Heads of all rings as they are now, by ring: *n of them, owned by the caller (tide_host_free). TIDE_ERR_NOMEM. Any
/// thread.
tide_status tide__feed_heads(const tide__feed *f, uint64_t **heads, size_t *n, tide_error *err) TIDE_NODISCARD;
/// Whether all events before these heads are in the trace. Any thread.
bool tide__feed_has_given(const tide__feed *f, const uint64_t *heads, size_t n);

/// The process ends, or another program takes its place, or that came to nothing: say so in the file, with the time.
/// Any thread, also in a signal handler.
void tide__feed_say_ending(tide__feed *f, tide__feed_ending ending);
/// No event follows: say so in the file, and note what was dropped last (a second without a reader, and only the ring's
/// header says it). The file stays for the drain.
void tide__feed_end(tide__feed *f);
/// Unmap and forget, after tide__feed_end; `remove`: take the file away too. Takes NULL.
void tide__feed_destroy(tide__feed *f, bool remove);

#endif
