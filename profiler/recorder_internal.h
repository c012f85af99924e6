// SPDX-License-Identifier: MIT
//
// What the files of the recorder share. Private to profiler/recorder*.c.
//
//     recorder.c        life of a recorder, the observer; runs, facts and marks
//     recorder_drain.c  who drains its feed: a thread, a collector process, the collector of another program
//     recorder_start.c  a collector process: started, and this program as its own
//     recorder_engine.h what of the drain a recorder calls: where SQLite begins
//     recorder_own.c    what the program tells of memory of its own, by block or by address
#ifndef TIDE_PROFILER_RECORDER_INTERNAL_H
#define TIDE_PROFILER_RECORDER_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "profiler/drain/drain.h"
#include "profiler/feed/feed.h"
#include "profiler/recorder_engine.h"
#include "tidemark/record.h"

/// The live blocks that the program told of by address.
typedef struct tide__own_blocks tide__own_blocks;

struct tide_recorder {
    char *path; ///< absolute: the program may change its folder
    tide_recorder_options opt;
    tide__feed *feed;
    tide__own_blocks *own; ///< has locks of its own
    pid_t owner;           ///< a forked child has no part in the recording

    pthread_mutex_t call_lock; ///< guards the next two
    int64_t run_id, n_runs;    ///< open run, 0: none; numbers that were given

    pthread_mutex_t drain_lock;   ///< guards the next three; taken by threads that wait for room
    const tide__engine *engine;   ///< NULL: not needed yet
    tide__drain_thread *thread;   ///< NULL: another process drains
    pid_t collector;              ///< our child; 0: none, or reaped
    bool created;                 ///< the trace is of our making
    tide__drain_lock_file making; ///< held until the drain is at work
};

/// Make the trace, or have the collector make it that is started for it, or find the one that is there.
tide_status tide__recorder_make_trace(tide_recorder *r, const char *path, tide_error *err) TIDE_NODISCARD;
/// Whether some drain has taken the feed, which is then the trace's.
bool tide__recorder_is_taken(const tide_recorder *r);
/// Start the drain, or wait for it; the feed is there.
tide_status tide__recorder_start_drain(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// As the options say; UINT64_MAX: without end.
uint64_t tide__recorder_max_wait(const tide_recorder *r);
/// Called by the feed when nothing is taken from it any more.
void tide__recorder_drain_stalls(void *self);
/// Since when the drain has been stopped; *since_ns is 0 while it runs, or is not known to be stopped. Called again and
/// again while something waits. @return whether that is longer than may be
bool tide__recorder_is_stopped_too_long(const tide_recorder *r, uint64_t *since_ns);
tide_status tide__recorder_stopped(const tide_recorder *r, const char *what, tide_error *err) TIDE_NODISCARD;
/// The feed's watch: whether a drain is there. Takes the drain over from a collector that died.
bool tide__recorder_drain_lives(void *self);
void tide__recorder_hurry(tide_recorder *r);
/// What ended the recording early; a refused event did not.
tide_status tide__recorder_failure(const tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// The feed has ended: wait until all is in the file, and the file is finished unless other processes record into it.
tide_status tide__recorder_end_drain(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// The drain shall stop where it stands.
void tide__recorder_stop_drain(tide_recorder *r);

/// Owned: tide__own_blocks_destroy.
tide_status tide__own_blocks_create(tide__own_blocks **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__own_blocks_destroy(tide__own_blocks *blocks);

/// Start "PROGRAM collect TRACE ...", which makes the trace, and wait until it takes feeds. What it fails by is ours,
/// with the trace called `path`, as the user called it.
tide_status tide__collector_start(const tide_recorder *r, const char *path, pid_t *pid, tide_error *err) TIDE_NODISCARD;

#endif
