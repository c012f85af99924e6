// SPDX-License-Identifier: MIT
//
// drain: takes events out of feeds and puts them into the trace: merged by time, in batches, one transaction each with
// the position of every ring in it; ring slots are given back after COMMIT. Runs as a thread of the recorded process,
// as the collector process, and once over what a killed process left. Private to profiler/.
//
//     feeds --heads, log--> merge by time --> events --> replay --> rows | chunks, leaves, snapshots, positions -->
//     COMMIT
#ifndef TIDE_PROFILER_DRAIN_DRAIN_H
#define TIDE_PROFILER_DRAIN_DRAIN_H

#include "profiler/feed/mapped_file.h"
#include "tidemark/record.h"

typedef struct tide__drain tide__drain;

typedef struct tide__drain_options {
    const char *trace_path;
    tide_record_form form;
    uint64_t max_bytes;    ///< of the trace file; 0: no limit
    size_t batch_events;   ///< at most per transaction; 0: 32768
    unsigned batch_ms;     ///< at most between two transactions while events come; 0: 50
    unsigned hold_back_ms; ///< see tide_recorder_options
    unsigned sample_ms;    ///< between two looks at what the system counts of each process; 0: none
    bool attached_late;
    bool quiet;     ///< print nothing to the log
    bool after_all; ///< nothing records any more: when those that were killed ended is not known
} tide__drain_options;

/// Open the unfinished trace at `trace_path` and take up where it stands. Feeds are looked for beside it.
tide_status tide__drain_open(const tide__drain_options *opt, tide__drain **out, tide_error *err) TIDE_NODISCARD;
/**
 * One round: find new feeds, take what is there, write, give back.
 *
 * @param n_events  out: taken in this round
 * @param n_alive   out: feeds whose producer may still write, and one more while a drain before us holds any
 * @return TIDE_OK; the error that ended the recording (kept: the feeds have it in their headers, the log has a line,
 * every later round returns it); a feed that is damaged is left behind with a problem noted and is no error of the
 * round
 */
tide_status tide__drain_round(tide__drain *d, size_t *n_events, size_t *n_alive, tide_error *err) TIDE_NODISCARD;
/// Hold nothing back in the next round.
void tide__drain_release(tide__drain *d);
/// Look for new feeds in the next round, whatever the folder says.
void tide__drain_look_again(tide__drain *d);
/// How long to wait before the next round, 0: it is due; in steps, so that a ring that fills is seen in time. Costs no
/// system call. `n_events`: of the last round, which ended at `since_ns`; *idle: 0 at its end, the caller's.
uint64_t tide__drain_pause_ns(tide__drain *d, size_t n_events, uint64_t since_ns, unsigned *idle);
/// Whether the process of that feed has put its last event in, and all is in the file; also when it was never seen.
bool tide__drain_has_ended(const tide__drain *d, const char *feed_path);
bool tide__drain_has_seen_feed(const tide__drain *d);
/// All feeds have ended: the last round was taken. Make the tables of the end, mark the trace as complete (or as cut
/// short, with the reason), take the feeds' files away.
tide_status tide__drain_finish(tide__drain *d, tide_error *err) TIDE_NODISCARD;
/// Takes NULL. Without tide__drain_finish the trace stays unfinished and the feeds stay where they are.
void tide__drain_close(tide__drain *d);
/// It is finished: whether the file holds what its one process counted. Of several, and of one that was killed, nothing
/// is known. TIDE_ERR_RUNTIME: it does not. Reads the file.
tide_status tide__drain_check(const tide__drain *d, tide_error *err) TIDE_NODISCARD;
/// The same of the trace at `path`, whose process counted so many events, some of them dropped.
tide_status tide__drain_check_file(const char *path, uint64_t n_heard, uint64_t n_dropped,
                                   tide_error *err) TIDE_NODISCARD;

/// A thread of this process that rounds until every feed has ended, then finishes.
typedef struct tide__drain_thread tide__drain_thread;
tide_status tide__drain_thread_start(const tide__drain_options *opt, tide__drain_thread **out,
                                     tide_error *err) TIDE_NODISCARD;
/// Do not wait out the pause between two rounds. Any thread.
void tide__drain_thread_hurry(tide__drain_thread *t);
/// Nor hold back anything in the next one.
void tide__drain_thread_release(tide__drain_thread *t);
/// End when the process of that feed (borrowed until the thread has ended) has, and finish the trace only when no other
/// process records into it.
void tide__drain_thread_leave(tide__drain_thread *t, const char *feed_path);
/// Whether it takes events no more; it is still to be joined. Any thread.
bool tide__drain_thread_has_ended(tide__drain_thread *t);
/// Give up: nothing more is written, the trace stays unfinished, the feeds stay where they are. Takes NULL.
void tide__drain_thread_abandon(tide__drain_thread *t);
/// Wait for its end. @return what ended it
tide_status tide__drain_thread_join(tide__drain_thread *t, tide_error *err) TIDE_NODISCARD;

/// Whether a drain is at work on the trace at `path`.
bool tide__drain_is_locked(const char *path);
/// Whether there is a file to lock, held or not: a drain that was killed leaves it.
bool tide__drain_has_lock(const char *trace_path);
/// A drain is at work, or a process makes the trace and will start one.
bool tide__drain_is_in_use(const char *path);
/// What says that a drain is at work, or will be; gone with the process that holds it. Zero-initialise.
typedef struct tide__drain_lock_file {
    tide__mapped_file file; ///< Open, not mapped; a forked child does not keep it
    char *name;             ///< owned: letting go must not need memory; NULL: not locked
} tide__drain_lock_file;
/// Before a trace is made: until tide__drain_made no process takes it for one that a killed program left.
/// TIDE_ERR_BUSY while another process records into it or makes it.
tide_status tide__drain_lock_making(const char *path, tide__drain_lock_file *lock, tide_error *err) TIDE_NODISCARD;
/// Its drain is at work, or will never be. Takes what is not locked.
void tide__drain_made(tide__drain_lock_file *lock);
/// The trace at `path` is finished: take away what a drain that was killed in its very last step left beside it.
void tide__drain_sweep(const char *path);
/// Whether the trace at `path` is unfinished, and whether it is being recorded now.
tide_status tide__drain_look(const char *path, bool *unfinished, bool *in_use, tide_error *err) TIDE_NODISCARD;
/// The unfinished trace at `path` is not recorded any more (otherwise TIDE_ERR_BUSY): take what the feeds beside
/// it hold and finish it.
tide_status tide__drain_recover(const char *path, tide_error *err) TIDE_NODISCARD;

/// Writing beyond the limit on file sizes (RLIMIT_FSIZE) sends SIGXFSZ, which ends the program: hold it back on this
/// thread while something is written, then drop what came.
typedef struct tide__signal_hold {
    bool was_blocked;
} tide__signal_hold;
void tide__hold_xfsz(tide__signal_hold *h);
void tide__release_xfsz(const tide__signal_hold *h);

#endif
