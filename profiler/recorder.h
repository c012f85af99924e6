// SPDX-License-Identifier: MIT
//
// recorder: an observer that keeps events in a trace file (SQLite, docs/trace-format.md).
//
//     callback -> ring of the thread, in a mapped file (12-25 ns) -> drain, in a process or a thread of its own ->
//     trace
//
// What was put into a ring is not lost: when the process is killed, the rings are still there, and the drain, or
// the next program that opens the trace, takes them.
#ifndef TIDE_PROFILER_RECORDER_H
#define TIDE_PROFILER_RECORDER_H

#include "core/memory/observer.h"
#include "core/runtime/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_recorder tide_recorder;

typedef enum tide_record_drain {
    TIDE_RECORD_THREAD,  ///< a thread of this process writes the trace
    TIDE_RECORD_PROCESS, ///< a collector process, started by tide_recorder_open, writes it
    TIDE_RECORD_ATTACH,  ///< a collector that runs already (tidemark record) writes what several processes send it
} tide_record_drain;

#define TIDE_RECORD_NO_HOLD_BACK (~0u)

/// How events are kept in the file.
typedef enum tide_record_form {
    TIDE_RECORD_AUTO,   ///< rows; chunks while a ring is more than half full, turned into rows at the end when they are
                        ///< few
    TIDE_RECORD_ROWS,   ///< one row per event: about 41 bytes, read by every SQLite shell
    TIDE_RECORD_CHUNKS, ///< about 12 bytes per event and a tenth of the time to write; read by tidemark
} tide_record_form;

typedef struct tide_recorder_options {
    tide_record_drain drain;
    const char *collector; ///< program that is run as "PROGRAM collect TRACE ..."; NULL: this one, which has to have
                           ///< called tide_collector_hook (collector.h)
    tide_record_form form;
    size_t ring_events;   ///< room per thread, in events of 64 bytes; rounded up to a power of two; 0: 65536
    bool drop_when_full;  ///< a full ring drops events, counts them and notes the gap; false: the thread waits
    uint64_t max_wait_ns; ///< that a thread waits while nothing moves (the collector was stopped, a disk hangs); then
                          ///< events are dropped, counted and noted as with drop_when_full until it goes on, with a
                          ///< line in the log. Close and flush wait no longer for a stopped collector either. 0: 30
                          ///< seconds; UINT64_MAX: without end
    uint64_t max_bytes;   ///< of the trace file: the oldest events go first, totals stay exact; 0: no limit
    size_t batch_events;  ///< per transaction at most; 0: 32768
    unsigned
        hold_back_ms;   ///< how much later than others an event may come and still be merged by its own time. 0: 2000
                        ///< once the program gives an event a time of another clock than the machine's, or a late
                        ///< one; nothing before that; TIDE_RECORD_NO_HOLD_BACK.
                        ///< With TIDE_RECORD_ATTACH the collector's option counts. What it costs: such a trace shows
                        ///< events so much later; they wait in their rings, at most half a ring of each thread
    bool attached_late; ///< the observer was attached while blocks were already out: a free whose alloc was not heard
                        ///< is counted in meta.n_orphan_frees and is no problem
    int rank;           ///< of several processes; < 0: as the launcher says in the environment (OMPI_COMM_WORLD_RANK,
              ///< PMI_RANK, PMIX_RANK, SLURM_PROCID, RANK), none without; 0 is the default of an all-zero struct
              ///< and means rank 0 only when has_rank
    bool has_rank;
    bool quiet; ///< no line in the log when recording ends early
    uint64_t (*now)(
        void *ctx); ///< clock of begin_run and end_run for programs that give their events a time of their own
    void *now_ctx;
} tide_recorder_options;

/**
 * Create `path` anew and record into it; an existing file of that name is replaced now. The trace can be read while it
 * grows (tide_trace_open shows what has been committed), and after a kill.
 *
 * @param opt  NULL: all defaults
 * @return TIDE_ERR_IO with SQLite's or the system's words (also when `path` is a directory, the disk full or
 * read-only); TIDE_ERR_INVALID for "" and "-": a trace cannot be streamed; and for a program that should be its own
 *         collector and is none: nothing is made or replaced then; TIDE_ERR_BUSY: another process records into it;
 *         TIDE_ERR_NOT_FOUND: no collector to attach to; TIDE_ERR_NOMEM
 */
tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) TIDE_NODISCARD;
/**
 * End an open run, wait until all events are in the file, finish it: one plain file, complete. All callbacks
 * must have returned and none may follow. The recorder is gone afterwards, also on failure: then what was kept until
 * the failure is in the file, which says so (meta.state "cut short").
 *
 * A collector that has been stopped (SIGSTOP) is waited for as long as opt.max_wait_ns says: then TIDE_ERR_BUSY. The
 * feed stays, and what is in it is in the trace once the collector goes on, or a command opens the trace.
 *
 * @return the first error of recording: TIDE_ERR_IO (disk), TIDE_ERR_INVALID (an event that cannot be true of any
 * program, see the observer), TIDE_ERR_RUNTIME when the file does not hold what was recorded
 */
tide_status tide_recorder_close(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// Give up: nothing more is written, the trace and its feed are removed. Takes NULL.
void tide_recorder_abandon(tide_recorder *r);

/**
 * Valid until close. Thread-safe, takes no lock once a thread has its ring; never fails the caller. Events with t_ns 0
 * get the time at which they arrive (the observer has no_time set: callers need not read a clock).
 *
 * Impossible events (a kind or operation outside the list, a number beyond 2^63 - 1, a block number beyond 2^48) are
 * refused and reported by close. Events that contradict each other (a block allocated twice, freed twice, freed without
 * having been allocated) are what a profiler is there to show: they are kept, and noted in table problem.
 *
 * After the recording has failed (disk full, trace removed) events are only counted; the recorded program is unharmed,
 * and the log has one line.
 *
 * A block is live until free_completed; free_requested is noted beside it. Events of one thread keep their order;
 * events of several threads are ordered by time, and an event never stands before one that it follows from. An event
 * that comes with a time before that of one which is in the file already (see hold_back_ms), or which its own thread
 * put in before, stands behind that one, with its time; its own is kept beside it (view late), and it is counted.
 */
tide_observer tide_recorder_observer(tide_recorder *r);

/// A moment with a name, between the events: two of them can be compared later (op "snapshot").
void tide_recorder_mark(tide_recorder *r, const char *name);
/// Wait until all events before this call are in the file, for other readers of it.
tide_status tide_recorder_flush(tide_recorder *r, tide_error *err) TIDE_NODISCARD;

typedef struct tide_recorder_stats {
    uint64_t n_events;   ///< that came, dropped ones too
    uint64_t n_lost;     ///< dropped on full rings
    uint64_t n_refused;  ///< impossible ones, and what there was no room for: close says why the first one was
    uint64_t blocked_ns; ///< that threads waited for room, together
    uint64_t feed_bytes; ///< of the mapped file: the recorder's own memory, outside of what it measures
    size_t n_threads;    ///< that have a ring
} tide_recorder_stats;
void tide_recorder_get_stats(const tide_recorder *r, tide_recorder_stats *out);

typedef struct tide_run_info {
    const char *model;    ///< name of the graph
    const char *source;   ///< file; may be NULL
    const char *mode;     ///< "naive" or "planned"
    const char *strategy; ///< of the plan; NULL in naive mode
    const char *device;   ///< "cpu"
    uint32_t n_contexts;  ///< that run at the same time, each with a buffer and outputs of its own; 0 means 1
} tide_run_info;

/// Begin a run: events from now on belong to it. *run_id counts from 1. `plan` (may be NULL) is stored with it: also
/// with a naive run, so that its lifetimes can be shown and its peak be predicted. TIDE_ERR_INVALID while a run is
/// open.
tide_status tide_recorder_begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                                    int64_t *run_id, tide_error *err) TIDE_NODISCARD;
/// TIDE_ERR_INVALID when no run is open. After a failed recording this and begin_run return the error of it.
tide_status tide_recorder_end_run(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// A fact for the table `meta`; overwrites. The keys that the recorder writes itself (docs/trace-format.md) are
/// refused: TIDE_ERR_INVALID.
tide_status tide_recorder_put_meta(tide_recorder *r, const char *key, const char *value,
                                   tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
