// SPDX-License-Identifier: MIT
//
// trace: read what was recorded: who recorded, how much memory of each kind was live at most, who held it then.
//
//     tide_trace_open("trace.db", &trace, &err);
//     tide_trace_run_peak(trace, 0, -1, NULL, &bytes, &event, &t_ns, &err);    the peak of the whole trace …
//     tide_trace_live_set_after(trace, event, &set, &err);                     … and every block that was live then
//     tide_live_set_group(&set, TIDE_BY_SCOPE, &groups, &n, &err);             by operator, largest first
//     tide_live_set_deinit(&set);
//     tide_trace_close(trace);
//
// `kind` is a tide_memory_kind or -1 for all, `device` a name as tide_device_format has it or NULL for all;
// TIDE_ERR_NOT_FOUND for a device that the trace does not know. Bytes are requested bytes where nothing else is said.
//
// Where a recorder dropped its oldest events (max_bytes), totals and peaks of the whole trace stay exact; a question
// about events that are gone is TIDE_ERR_NOT_FOUND, with the first event that is left. Every question can fail with
// TIDE_ERR_IO, TIDE_ERR_BAD_INPUT (a damaged file) and TIDE_ERR_NOMEM; the trace can be asked on.
#ifndef TIDEMARK_TRACE_H
#define TIDEMARK_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tidemark/memory.h"
#include "tidemark/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- opening ----

/// An open trace. For one thread at a time.
typedef struct tide_trace tide_trace;

/**
 * Open for reading and check what is there: tables, counts and sums against what the recorder noted (row by row up to a
 * million events, by their ends beyond that).
 *
 * A trace that is being recorded shows what had been committed when it was opened. One that was left unfinished by a
 * killed program, and is not being recorded, is finished first from the feeds beside it, which writes to it; where the
 * folder cannot be written the tables of the end are made in memory, and feeds stay unread: the log says so.
 *
 * @param out  owned: tide_trace_close
 * @return TIDE_ERR_IO; TIDE_ERR_BAD_INPUT for another format, another schema version or a damaged file, with a note;
 *         TIDE_ERR_NOMEM
 */
tide_status tide_trace_open(const char *path, tide_trace **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL. Texts that were borrowed from the trace end with it.
void tide_trace_close(tide_trace *t);

// ---- what was recorded ----

/// How far a trace is.
typedef enum tide_trace_state {
    TIDE_TRACE_COMPLETE,  ///< closed by its recorder, or finished from what a killed program left
    TIDE_TRACE_CUT_SHORT, ///< recording ended before the program did: disk full, ...; `reason`
    TIDE_TRACE_RECORDING, ///< it is being recorded, or could not be finished
} tide_trace_state;

/// A trace as a whole.
typedef struct tide_trace_info {
    tide_trace_state state;
    char reason[256];
    uint64_t n_events;         ///< recorded, dropped detail included
    uint64_t n_rows, n_chunks; ///< how they are kept: events as rows, number of chunks
    uint64_t first_kept_event; ///< 1, or what thinning left
    uint64_t begin_ns, end_ns; ///< begin_ns is the origin: every time that people are shown counts from there, whatever
                               ///< part of the trace is looked at; of the first event, dropped or not, or of the first
                               ///< run if that began before
    uint64_t n_lost;           ///< dropped on full rings
    uint64_t n_problems;       ///< events that contradict each other
    uint64_t n_late;           ///< events that stand with a later time than their own (view late)
    uint64_t n_blocks, n_leaked;
    uint64_t file_bytes;
    uint32_t n_processes, n_threads, n_runs;
} tide_trace_info;

/// What the file says of itself; while it is being recorded, n_blocks and n_leaked are 0.
tide_status tide_trace_get_info(tide_trace *t, tide_trace_info *out, tide_error *err) TIDE_NODISCARD;
/// A value of table meta, of the recorder or of tide_recorder_put_meta, cut to fit into `buf`. @return
/// TIDE_ERR_NOT_FOUND for a key that is not there
tide_status tide_trace_meta(tide_trace *t, const char *key, char *buf, size_t buf_bytes,
                            tide_error *err) TIDE_NODISCARD;

/// One execution inside a trace, from tide_recorder_begin_run to tide_recorder_end_run.
typedef struct tide_trace_run {
    int64_t id;
    char model[256], source[256], mode[16], strategy[64], device[16];
    uint64_t begin_ns, end_ns; ///< on the clock of the events, CLOCK_MONOTONIC
    uint64_t n_contexts;       ///< that ran at the same time; at least 1
    bool has_plan;
    uint64_t plan_bytes, plan_naive_bytes, plan_lower_bound_bytes; ///< meaningful with has_plan
} tide_trace_run;

/// Runs in order of id; one that has not ended ends with the trace. *out [*n] is owned: tide_trace_runs_free; NULL when
/// there are none.
tide_status tide_trace_runs(tide_trace *t, tide_trace_run **out, size_t *n, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_trace_runs_free(tide_trace_run *runs);

/// A moment that was named by tide_recorder_mark.
typedef struct tide_trace_mark {
    const char *name; ///< borrowed from the trace
    uint64_t event_id, t_ns;
} tide_trace_mark;

/// Marks in order. *out [*n] is owned: tide_trace_marks_free; NULL when there are none. Looks at every event: 0.05 us
/// each.
tide_status tide_trace_marks(tide_trace *t, tide_trace_mark **out, size_t *n, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_trace_marks_free(tide_trace_mark *marks);

// ---- how much, and of what ----

/// What a run took of one kind on one device.
typedef struct tide_trace_kind {
    tide_memory_kind kind;
    char device[16];
    uint64_t requested_bytes; ///< sum of all requests made in the run
    uint64_t peak_bytes;      ///< highest live requested bytes: the "measured"
    uint64_t peak_reserved_bytes;
    uint64_t predicted_bytes; ///< by the run's plan; TIDE_UNKNOWN_BYTES without one and on other devices than the run's
    uint64_t n_allocs, n_frees; ///< in the run
    uint64_t live_at_end_bytes;
} tide_trace_kind;

/**
 * Per kind and device for one run, in that order; blocks that were already alive when it began count. run_id 0: the
 * whole trace, without predictions. Kinds that nothing was allocated from and nothing was predicted for are left out.
 *
 * Where the oldest events were dropped, the answers about the whole trace are still complete, by the counts that the
 * recorded threads made; a run whose beginning was dropped begins with the first event that is left (so in
 * tide_trace_blocks and tide_trace_run_peak).
 *
 * Predicted is what the plan stored with the run says; but a naive run has no buffer and frees each tensor at its last
 * use, so that its Workspace peaks at the plan's naive_peak_bytes, and is not known of several contexts.
 *
 * @param out  [*n], owned: tide_trace_kinds_free; NULL when there are none
 * @return TIDE_ERR_NOT_FOUND for a run that is not there
 *
 * Costs a replay of the run's events, 0.1 us each in chunks and 0.3 us in rows, of those that came since when the same
 * run is asked for again; of the whole trace next to nothing.
 */
tide_status tide_trace_kinds(tide_trace *t, int64_t run_id, tide_trace_kind **out, size_t *n,
                             tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_trace_kinds_free(tide_trace_kind *kinds);
/**
 * Highest live bytes of one run (0: the whole trace), and the first event and moment that reached them.
 *
 * @param event  out: the last one before the run (0: none) when it was as high before; may be NULL
 * @param t_ns   out: the run's begin then; may be NULL
 * @return TIDE_ERR_NOT_FOUND for a run or a device that is not there
 *
 * Costs milliseconds for ten million events, from an index; a kind on all of several devices, and all kinds on one of
 * them, are read from the events where it matters.
 */
tide_status tide_trace_run_peak(tide_trace *t, int64_t run_id, int kind, const char *device, uint64_t *bytes,
                                uint64_t *event, uint64_t *t_ns, tide_error *err) TIDE_NODISCARD;

/// Highest live requested bytes within [t0, t1] and the first event and moment that reached them; what was live when t0
/// came counts (then *event is the last one before, 0 for none, and *t_ns is t0). `event` and `t_ns` may be NULL.
/// TIDE_ERR_INVALID when t1 < t0.
tide_status tide_trace_peak_between(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1,
                                    uint64_t *bytes, uint64_t *event, uint64_t *t_ns, tide_error *err) TIDE_NODISCARD;

/// How exact columns are.
typedef enum tide_columns_mode {
    TIDE_COLUMNS_FAST,  ///< a spike may also show in the next columns: edges fall on leaves (1024 events). A window of
                        ///< up to 8 leaves is answered exactly
    TIDE_COLUMNS_EXACT, ///< as a replay of every event would say; reads the events of leaves that lie on an edge
} tide_columns_mode;
/// Smallest and largest live requested bytes in each of `n` equal columns of [t0, t1); no spike is lost, and none is
/// made up. Column i is [t0 + i * len / n, t0 + (i + 1) * len / n), at least 1 ns wide; what holds when it begins
/// counts unless an event lies right there.
tide_status tide_trace_columns(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1, size_t n,
                               tide_columns_mode mode, uint64_t *min_bytes, uint64_t *max_bytes,
                               tide_error *err) TIDE_NODISCARD;

// ---- blocks ----

/// One block from its allocation to its free.
typedef struct tide_trace_block {
    uint64_t id;
    char *name;          ///< tag of the block, or "" ; owned by the array, like `scope`
    char *scope;         ///< innermost scope it was allocated in (operator, run or region), or ""
    int64_t scope_index; ///< step of that operator, number of that run; -1: none
    tide_memory_kind kind;
    char device[16];
    uint64_t stream;
    uint64_t requested_bytes, reserved_bytes, address;
    uint64_t alloc_ns;
    uint64_t free_ns; ///< when the free was complete; UINT64_MAX: never freed in the trace
    uint64_t end_ns;  ///< when it was gone: free_ns, or when its process ended; UINT64_MAX: it lives on
    uint32_t thread;  ///< that allocated it
    int64_t run_id;   ///< run it was allocated in; 0: outside of all runs
} tide_trace_block;

/// Every block of the trace that lived during the run, by time of allocation. run_id 0: all. *out [*n] is owned:
/// tide_trace_blocks_free. Costs 0.3 us and some 200 bytes of memory each.
tide_status tide_trace_blocks(tide_trace *t, int64_t run_id, tide_trace_block **out, size_t *n,
                              tide_error *err) TIDE_NODISCARD;
/// Takes NULL. `n` as it came with them.
void tide_trace_blocks_free(tide_trace_block *blocks, size_t n);

/// A block that is live at a moment.
typedef struct tide_live {
    uint64_t block_id;
    const char *name;    ///< tag, or "" ; borrowed from the trace, like all texts here
    const char *scope;   ///< innermost scope it was allocated in, or ""
    int64_t scope_index; ///< step of that operator, number of that run; -1: none
    uint32_t scope_id;   ///< its number in the trace; 0: none
    const char *device, *allocator;
    tide_memory_kind kind;
    uint32_t thread;
    int64_t run_id; ///< 0: outside all runs
    uint64_t requested_bytes, reserved_bytes, address, stream;
    uint64_t alloc_event, alloc_ns;
    // After tide_trace_expand_buffers: what lies in a plan's buffer.
    bool in_buffer;      ///< a planned tensor, or the bytes of the buffer that no tensor uses
    bool is_unused;      ///< the latter
    uint32_t tensor;     ///< index in the plan; meaningful with in_buffer && !is_unused
    uint64_t execution;  ///< which of the run's executions, from 0; the same
    int64_t plan_run_id; ///< the run whose plan it is; meaningful with in_buffer
    bool free_requested; ///< given up by its owner, still held (another stream); of a window: when it begins
} tide_live;
/// All of them, and their sums.
typedef struct tide_live_set {
    const tide_trace *trace; ///< that it is of; borrowed
    uint64_t t_ns, event_id; ///< the last event that counts
    tide_live *items;        ///< [n] by block number; owned
    size_t n;
    uint64_t requested_bytes, reserved_bytes; ///< sums
} tide_live_set;

/// Blocks alive just after `t_ns`: what happened at `t_ns` has happened. *out is owned: tide_live_set_deinit. A replay
/// from the snapshot before, or from the moment that was asked for last when that is nearer: milliseconds in
/// ten million events.
tide_status tide_trace_live_set(tide_trace *t, uint64_t t_ns, tide_live_set *out, tide_error *err) TIDE_NODISCARD;
/// The same after event number `event_id` (a peak is an event, and many can share a nanosecond).
tide_status tide_trace_live_set_after(tide_trace *t, uint64_t event_id, tide_live_set *out,
                                      tide_error *err) TIDE_NODISCARD;
/// Free its items; it is empty then. Its texts are the trace's.
void tide_live_set_deinit(tide_live_set *s);
/**
 * In place of each plan's buffer that is among the blocks of `set`: the tensors that lie in it at that moment, and one
 * item for the bytes that no tensor uses (is_unused; there are none: 0 bytes), so that the sums stay what they were. A
 * tensor's requested bytes are what it alone keeps: aliases count once. Its block, allocator, device and thread are the
 * buffer's, its alloc_event and alloc_ns those of its first step in this execution. A buffer stays one block where it
 * is not known which execution works in it: several contexts, recorded by a program whose runs do not say
 * (tide_scope.block_id).
 *
 * @return TIDE_ERR_NOMEM, and the errors of reading a trace; `set` is as it was then
 */
tide_status tide_trace_expand_buffers(tide_trace *t, tide_live_set *set, tide_error *err) TIDE_NODISCARD;

// ---- groups, and what changed ----

/// What blocks that are live may have in common.
typedef enum tide_group_by {
    TIDE_BY_KIND,
    TIDE_BY_DEVICE,
    TIDE_BY_SCOPE, ///< name and step of the innermost scope
    TIDE_BY_NAME,
    TIDE_BY_ALLOCATOR,
    TIDE_BY_SIZE, ///< powers of two: "[1 KiB, 2 KiB)"
    TIDE_BY_AGE,  ///< decades up to the set's moment: "< 1 us", "[1 us, 10 us)", ...
    TIDE_BY_THREAD,
    TIDE_BY_RUN,
    TIDE_BY_PROCESS, ///< label, "rank 3", or its number in the system: as `tidemark trace --lanes` calls it
    // By the call stack, where the trace has one; innermost line of Python that is no library's, or else the innermost.
    TIDE_BY_MODULE,   ///< the innermost region, where a program tells of regions: "layer1.0.conv1, forward"; else the
                      ///< calls of forward() that lead there: "model.py:292 > 244 > 199"
    TIDE_BY_FUNCTION, ///< "forward model.py"
    TIDE_BY_FILE,
    TIDE_BY_LIBRARY,  ///< the package of that file, "the program" for a file of none
    TIDE_BY_STACK,    ///< lines of Python of the program, outermost first, and the operator:
                      ///< "main train.py:9; forward model.py:199; aten::bmm"
    TIDE_BY_CATEGORY, ///< what the stack suggests: weights, activations, gradients, optimizer, workspace, other
} tide_group_by;
/// Some of them.
typedef struct tide_group {
    char *key; ///< owned by the array
    uint64_t n_blocks, requested_bytes, reserved_bytes;
    /// By module, function, file and library: of the blocks whose stack has it anywhere, be it that it allocated them
    /// itself or what it called did; a block counts once, however often its stack has it. 0 of other groups.
    uint64_t with_blocks, with_bytes;
} tide_group;
/// Groups of a live set, largest first (sizes and ages in their order), those that hold nothing but what they called
/// last. Their sums are the set's. Keys are for people: "conv1 #3", "(outside all scopes)", "(no name)", "thread 2",
/// "run 1", "(outside all runs)", "(no stack)".
tide_status tide_live_set_group(const tide_live_set *s, tide_group_by by, tide_group **out, size_t *n,
                                tide_error *err) TIDE_NODISCARD;
/// Takes NULL. `n` as it came with them.
void tide_groups_free(tide_group *groups, size_t n);
/// A group in two sets.
typedef struct tide_group_change {
    char *key;                                     ///< owned by the array
    uint64_t a_blocks, b_blocks, a_bytes, b_bytes; ///< requested
} tide_group_change;
/// Two sets, of one trace or of two, by the same grouping; largest change first, unchanged groups included. The changes
/// sum to the change of the sums.
tide_status tide_live_set_compare(const tide_live_set *a, const tide_live_set *b, tide_group_by by,
                                  tide_group_change **out, size_t *n, tide_error *err) TIDE_NODISCARD;
/// Takes NULL. `n` as it came with them.
void tide_group_changes_free(tide_group_change *changes, size_t n);

#ifdef __cplusplus
}
#endif
#endif
