// SPDX-License-Identifier: MIT
//
// record: keep what happens to memory in a trace file (SQLite, docs/trace-format.md). It is looked at with `tidemark
// tui`, `tidemark trace` or `tidemark report`, and read by programs with tidemark/trace.h.
//
//     tide_recorder_open("trace.db", NULL, &recorder, &err);
//     tide_observer to_recorder = tide_recorder_observer(recorder);
//     tide_instrumented_create(allocator, &to_recorder, &recorded, &err);    allocators of tidemark's: their blocks are
//                                                                            heard by themselves (tidemark/memory.h)
//     tide_recorder_alloc(recorder, TIDE_KIND_WORKSPACE, p, bytes, "conv1"); allocators of your own: tell of each block
//     tide_recorder_free(recorder, p);
//     tide_recorder_enter(recorder, &scope); … tide_recorder_leave(…);       who works now: an operator, a request
//     tide_recorder_mark(recorder, "warm");                                  a moment with a name
//     tide_recorder_close(recorder, &err);
//
// An event goes into a ring of its thread, in a mapped file beside the trace: 12 to 25 ns, without a lock, a system
// call or an allocation. A drain, in a thread or a process of its own, writes the trace:
//
//     callback -> ring of the thread -> drain -> trace
//
// What was put into a ring is not lost: when the process is killed, the rings are still there, and the drain, or the
// next program that opens the trace, takes them.
#ifndef TIDEMARK_RECORD_H
#define TIDEMARK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tidemark/memory.h"
#include "tidemark/plan.h"
#include "tidemark/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Records into one trace. Takes calls of several threads; open and close are one thread's, and a child of fork has no
/// part in it: it may close or abandon its copy, and nothing else.
typedef struct tide_recorder tide_recorder;

/// Who writes the trace.
typedef enum tide_record_drain {
    TIDE_RECORD_THREAD,  ///< a thread of this process
    TIDE_RECORD_PROCESS, ///< a collector process, which tide_recorder_open starts: it outlives whatever ends this one
    TIDE_RECORD_ATTACH,  ///< a collector that runs already (`tidemark record`), for several processes; it tells its
                         ///< command the path of the trace in the environment: TIDEMARK_COLLECT
} tide_record_drain;

/// How events are kept in the file.
typedef enum tide_record_form {
    TIDE_RECORD_AUTO,   ///< rows; chunks while a ring is more than half full, turned into rows at the end when they are
                        ///< few
    TIDE_RECORD_ROWS,   ///< one row per event: about 41 bytes, read by every SQLite shell
    TIDE_RECORD_CHUNKS, ///< about 12 bytes per event and a tenth of the time to write; read by tidemark
} tide_record_form;

/// For hold_back_ms: events are written in the order in which they come.
#define TIDE_RECORD_NO_HOLD_BACK (~0u)

/// All zero is the usual: a thread writes all events, a full ring makes its thread wait.
typedef struct tide_recorder_options {
    tide_record_drain drain;
    /// Path of the program that is run as "PROGRAM collect TRACE ..." with TIDE_RECORD_PROCESS: that of `tidemark`.
    /// NULL: this program, which has to have called tide_collector_hook.
    const char *collector;
    tide_record_form form;
    /// Room per thread, in events of 64 bytes; rounded up to a power of two. 0: 65536.
    size_t ring_events;
    /// A full ring drops events, counts them and notes the gap; false: the thread waits.
    bool drop_when_full;
    /// That a thread waits while nothing moves (the collector was stopped, a disk hangs); then events are dropped,
    /// counted and noted as with drop_when_full until it goes on, with a line in the log. Close and flush wait no
    /// longer for a stopped collector either. 0: 30 seconds; UINT64_MAX: without end.
    uint64_t max_wait_ns;
    /// Of the trace file: the oldest events go first, totals stay exact. 0: no limit.
    uint64_t max_bytes;
    /// Per transaction at most; 0: 32768.
    size_t batch_events;
    /// How much later than others an event may come and still be merged by its own time. 0: 2000 once the program gives
    /// an event a time of another clock than the machine's, or a late one; nothing before that. With TIDE_RECORD_ATTACH
    /// the collector's option counts. What it costs: such a trace shows events so much later; they wait in their rings,
    /// at most half a ring of each thread.
    unsigned hold_back_ms;
    /// The observer was attached while blocks were already out: a free whose alloc was not heard is counted in
    /// meta.n_orphan_frees and is no problem.
    bool attached_late;
    /// Which of several processes this is; < 0: as the launcher says in the environment (OMPI_COMM_WORLD_RANK,
    /// PMI_RANK, PMIX_RANK, SLURM_PROCID, RANK), none without. 0 is the default of an all-zero struct and means rank 0
    /// only when has_rank.
    int rank;
    bool has_rank;
    bool quiet; ///< no line in the log when recording ends early
    /// Clock of runs and marks for programs that give their events a time of their own; called with now_ctx.
    uint64_t (*now)(void *ctx);
    void *now_ctx;
} tide_recorder_options;

/**
 * Create `path` anew and record into it; an existing file of that name is replaced now. The trace can be read while it
 * grows (tide_trace_open shows what has been committed), and after a kill.
 *
 * @param path  of the trace; with TIDE_RECORD_ATTACH, of the one that the collector writes
 * @param opt   copied, but for its texts and now_ctx, which must outlive the recorder; NULL: all zero
 * @param out   owned: tide_recorder_close or tide_recorder_abandon
 * @return TIDE_ERR_IO with SQLite's or the system's words (also when `path` is a directory, the disk full or
 *         read-only); TIDE_ERR_INVALID for "" and "-": a trace cannot be streamed; and for a program that should be its
 *         own collector and is none: nothing is made or replaced then; TIDE_ERR_BUSY: another process records into it;
 *         TIDE_ERR_NOT_FOUND: no collector to attach to; TIDE_ERR_RUNTIME: a collector could not be started;
 *         TIDE_ERR_NOMEM
 *
 * Costs a file made, and the feed: a mapped file beside the trace, at most ring_events * 64 bytes for each thread.
 * Where a collector drains, the feed is the only file that this process opens.
 */
tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) TIDE_NODISCARD;
/**
 * End an open run, wait until all events are in the file, finish it: one plain file, complete. All callbacks
 * must have returned and none may follow, so blocks that an instrumented allocator still has out are given back before.
 * The recorder is gone afterwards, also on failure: then what was kept until the failure is in the file, which says so
 * (meta.state "cut short").
 *
 * A collector that has been stopped (SIGSTOP) is waited for as long as opt.max_wait_ns says: then TIDE_ERR_BUSY. The
 * feed stays, and what is in it is in the trace once the collector goes on, or a command opens the trace.
 *
 * @return the first error of recording: TIDE_ERR_IO (disk), TIDE_ERR_INVALID (an event that cannot be true of any
 *         program, see the observer), TIDE_ERR_RUNTIME when the file does not hold what was recorded
 *
 * Costs what is left to write, and a pass over the file to finish it.
 */
tide_status tide_recorder_close(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// Give up: nothing more is written, the trace and its feed are removed. Takes NULL.
void tide_recorder_abandon(tide_recorder *r);

/**
 * What to hand events to; a value, valid until close. Of NULL one that hears nothing. Thread-safe, takes no lock once a
 * thread has its ring; never fails the caller. Events with t_ns 0 get the time at which they arrive (the observer has
 * no_time set: callers need not read a clock).
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

// ---- telling of memory of your own ----

/// For the compiler: what parameter `i` points to is not looked at, so that it need not be initialised.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11 && !defined(TIDE_RECORD_NO_INLINE)
#define TIDE_READS_NOTHING(i) __attribute__((access(none, i)))
#else
#define TIDE_READS_NOTHING(i)
#endif

//
// For a program whose allocators are its own. `r` may be NULL in all of these: then nothing is recorded, and the call
// costs about a nanosecond, so that it may stand in a program that seldom records. They never fail their caller.
// Memory that ran out for the list of live addresses, and what the observer refuses, is reported by close.

/**
 * `bytes` at `address` belong to the program now; a block from here until tide_recorder_free. Tell of it after the
 * memory was got, and of a free before it is given back: by then another thread may have the address. A realloc is a
 * free and an allocation.
 *
 * @param address  NULL: nothing is recorded, as of an allocation that failed. One that is live already is noted as a
 *                 problem, and the older block as freed here
 * @param tag      what it is for, as traces show it; copied; may be NULL
 *
 * Costs an event, and an entry in a list of the live addresses: two to three times an event, and 64 bytes of memory.
 */
void tide_recorder_alloc(tide_recorder *r, tide_memory_kind kind, const void *address, uint64_t bytes, const char *tag)
    TIDE_READS_NOTHING(3);
/// The block at `address` is given back. NULL: nothing, as with free. An address at which no block is live is noted as
/// a problem: a double free, a free of what was never allocated, or a block that was there before recording began.
void tide_recorder_free(tide_recorder *r, const void *address);
/**
 * The same by block, where the program has a place to keep `e` as long as the block lives, and for all that happens to
 * memory beside blocks: segments, failed attempts, what a device has in use. Sets the operation, the thread, its scope
 * and, for TIDE_MEM_ALLOC and TIDE_MEM_SEGMENT_ALLOC, a new block number. Give the same event back with
 * TIDE_MEM_FREE_REQUESTED, TIDE_MEM_FREE_COMPLETED and TIDE_MEM_SEGMENT_FREE.
 *
 * @param e  filled in as far as the program knows: device, kind, bytes (reserved_bytes 0: as requested), address,
 *           allocator, tag; its time is set to 0, now, before it is told. The observer takes events with a time of
 *           their own
 *
 * Costs an event; takes no lock.
 */
void tide_recorder_tell(tide_recorder *r, tide_memory_op op, tide_memory_event *e);
/// As tide_scope_enter and tide_scope_leave with the observer of `r`; where that is NULL the scope is not entered at
/// all.
void tide_recorder_enter(tide_recorder *r, tide_scope *scope);
/// The other end of it: the same `r` as when it was entered.
void tide_recorder_leave(tide_recorder *r, tide_scope *scope);

/// A moment with a name (copied), between the events: two of them can be compared later. Costs an event. `r` may be
/// NULL.
void tide_recorder_mark(tide_recorder *r, const char *name);
/// Wait until all events, runs and facts before this call are in the file, for other readers of it. @return as
/// tide_recorder_close
tide_status tide_recorder_flush(tide_recorder *r, tide_error *err) TIDE_NODISCARD;

/// What recording has taken so far.
typedef struct tide_recorder_stats {
    uint64_t n_events;   ///< that came, dropped ones too
    uint64_t n_lost;     ///< dropped on full rings
    uint64_t n_refused;  ///< impossible ones, and what there was no room for: close says why the first one was
    uint64_t blocked_ns; ///< that threads waited for room, together
    uint64_t feed_bytes; ///< of the mapped file: the recorder's own memory, outside of what it measures
    size_t n_threads;    ///< that have a ring
} tide_recorder_stats;
/// The numbers as they are now.
void tide_recorder_get_stats(const tide_recorder *r, tide_recorder_stats *out);

/// What a run is called in the trace; copied. Texts may be NULL.
typedef struct tide_run_info {
    const char *model;    ///< name of the graph, or of what runs
    const char *source;   ///< file
    const char *mode;     ///< "naive" or "planned": whether memory lies as a plan says
    const char *strategy; ///< of the plan; NULL in naive mode
    const char *device;   ///< NULL: "cpu"
    uint32_t n_contexts;  ///< that run at the same time, each with a buffer and outputs of its own; 0 means 1
} tide_run_info;

/**
 * Begin a run: events from now on belong to it.
 *
 * @param plan    stored with it, borrowed for the call: also with a naive run, so that its lifetimes can be shown and
 *                its peak be predicted; may be NULL
 * @param run_id  out: number of the run in this process, from 1; may be NULL. In the trace the n-th run of a process is
 *                its n-th row of table run: the same number where one process records
 * @return TIDE_ERR_INVALID while a run is open, and for a plan with a kind or device that there is none of (one that
 * contradicts itself in another way is left out of the trace, whose problems say so); TIDE_ERR_OVERFLOW when a
 * number of it passes 2^63 - 1; TIDE_ERR_NO_SPACE when it takes more than 1 GiB; TIDE_ERR_WRITE: a full disk; after a
 *         failed recording the error of it
 *
 * Costs some 40 bytes of the feed for each lifetime of the plan, and their names; waits for no other process. The rows
 * are in the trace after tide_recorder_flush or tide_recorder_close.
 */
tide_status tide_recorder_begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                                    int64_t *run_id, tide_error *err) TIDE_NODISCARD;
/// End the open run. @return TIDE_ERR_INVALID when none is open; after a failed recording the error of it
tide_status tide_recorder_end_run(tide_recorder *r, tide_error *err) TIDE_NODISCARD;
/// A fact for the table `meta`; copied, overwrites. It is there after tide_recorder_flush or tide_recorder_close.
/// @return TIDE_ERR_INVALID for a key that the recorder writes itself (docs/trace-format.md); TIDE_ERR_WRITE: a full
/// disk; after a failed recording the error of it
tide_status tide_recorder_put_meta(tide_recorder *r, const char *key, const char *value,
                                   tide_error *err) TIDE_NODISCARD;

/// First in main of a program that records with TIDE_RECORD_PROCESS and is its own collector: it is started again as
/// "PROGRAM collect TRACE ...", and then this collects, and ends the process. Without it a recorder that would start
/// the program itself is refused: it might do anything, twice. With argc 0 it only says that main knows what to do.
void tide_collector_hook(int argc, char **argv);

// ---- where nothing is recorded ----

// With gcc the calls that take a recorder of NULL look at it in the program itself, and call the library for another
// one: a program that does not record pays a comparison. (clang takes two names of one symbol for one function.) The
// functions are those above; TIDE_RECORD_NO_INLINE leaves it to them.
#if defined(__GNUC__) && !defined(__clang__) && defined(__ELF__) && !defined(TIDE_RECORD_NO_INLINE)
#define TIDE_UNLESS_NULL(name, attribute, parameters, arguments)                                                       \
    void name##_called parameters __asm__(#name) attribute;                                                            \
    extern inline __attribute__((gnu_inline, always_inline)) void name parameters {                                    \
        if (r != NULL) name##_called arguments;                                                                        \
    }
TIDE_UNLESS_NULL(tide_recorder_alloc, TIDE_READS_NOTHING(3),
                 (tide_recorder * r, tide_memory_kind kind, const void *address, uint64_t bytes, const char *tag),
                 (r, kind, address, bytes, tag))
TIDE_UNLESS_NULL(tide_recorder_free, , (tide_recorder * r, const void *address), (r, address))
TIDE_UNLESS_NULL(tide_recorder_tell, , (tide_recorder * r, tide_memory_op op, tide_memory_event *e), (r, op, e))
TIDE_UNLESS_NULL(tide_recorder_enter, , (tide_recorder * r, tide_scope *scope), (r, scope))
TIDE_UNLESS_NULL(tide_recorder_leave, , (tide_recorder * r, tide_scope *scope), (r, scope))
TIDE_UNLESS_NULL(tide_recorder_mark, , (tide_recorder * r, const char *name), (r, name))
#undef TIDE_UNLESS_NULL
#endif

#ifdef __cplusplus
}
#endif
#endif
