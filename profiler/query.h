// SPDX-License-Identifier: MIT
//
// query: the read side of a trace file. TUI, reports and the gate use only this and never SQL of their own. Opening,
// what was recorded, runs, kinds, marks, blocks, live sets and peaks are public (tidemark/trace.h).
#ifndef TIDE_PROFILER_QUERY_H
#define TIDE_PROFILER_QUERY_H

#include "core/base/text.h"
#include "core/memory/observer.h"
#include "core/runtime/memory_plan.h"
#include "tidemark/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/// First bytes of a file that tide_trace_recognise wants to see.
enum { TIDE_TRACE_HEAD_BYTES = 100 };
/// Version of the trace format (docs/trace-format.md).
enum {
    TIDE_TRACE_VERSION = 1,
    TIDE_TRACE_VERSION_PACKED = 2, ///< of a trace that has blocks in chunks
};
/// Whether a file that begins with `head` is a trace, of whatever version: by content, not by name.
bool tide_trace_recognise(const void *head, size_t n_bytes);

/// A trace that is being recorded: take in what was committed since; *grew (may be NULL): something was. Everything
/// got from the trace before stays the caller's; names borrowed from it stay valid until close. Costs a replay of what
/// is new, or of what follows the last snapshot, whichever is less. After a failure the trace is as it was.
tide_status tide_trace_refresh(tide_trace *t, bool *grew, tide_error *err) TIDE_NODISCARD;
/// What several open traces of one finished file may have in common: names, scopes, and the executions that were asked
/// for. It never changes, so that each may belong to another thread.
typedef struct tide_trace_shared tide_trace_shared;
/// Take it, in the thread that `t` belongs to; `t` may be closed before it. *out NULL: the trace is still being
/// recorded. TIDE_ERR_NOMEM.
tide_status tide_trace_share(const tide_trace *t, tide_trace_shared **out, tide_error *err) TIDE_NODISCARD;
/// As tide_trace_open; what is shared is not read again. `shared` (borrowed) may be NULL, or of another file, as where
/// one took the place of the other: then everything is read.
tide_status tide_trace_open_shared(const char *path, const tide_trace_shared *shared, tide_trace **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_trace_shared_drop(tide_trace_shared *s);
/// For who asks a few questions and closes: from the next refresh on nothing of what the trace shows goes away, also
/// where the recording drops its oldest events. Its log (docs/trace-format.md) grows meanwhile.
void tide_trace_hold(tide_trace *t);
/// All rows, all sums, every chunk, SQLite's own integrity check. TIDE_ERR_BAD_INPUT with what is wrong and where.
tide_status tide_trace_check(tide_trace *t, tide_error *err) TIDE_NODISCARD;
/// Copy what can be read of a damaged trace at `path` into a new one at `out_path`,
/// whose meta says what is missing ("recovered_from", "recovered_lost"). *n_lost: events that could not be read, as far
/// as that is known.
tide_status tide_trace_recover(const char *path, const char *out_path, uint64_t *n_lost,
                               tide_error *err) TIDE_NODISCARD;
/// Turn the chunks of the trace at `path` into rows, which every SQLite shell reads; in place. TIDE_ERR_BAD_INPUT,
/// TIDE_ERR_IO, also while it is being recorded.
tide_status tide_trace_expand(const char *path, tide_error *err) TIDE_NODISCARD;
/// Run one SELECT of the user's (or a PRAGMA that tells of tables), read-only; rows as text with the names of the
/// columns first, cells separated by `separator`, NULL as empty, bytes as x'..', a tab or line end in a text as '?'.
/// Stops after max_rows (0: all). TIDE_ERR_INVALID for what SQLite refuses, with its words.
///
/// The views are those of this program, whatever the file brings along. `event` holds all events, whether they are rows
/// or lie in chunks, and so do the views over it; of an unfinished trace `block` and `step` are made for the query.
tide_status tide_trace_sql(tide_trace *t, const char *query, const char *separator, size_t max_rows, tide_text *out,
                           tide_error *err) TIDE_NODISCARD;
/// Append the values of table meta whose keys begin with `prefix` to `out`, by key, a line for each.
tide_status tide_trace_meta_lines(const tide_trace *t, const char *prefix, tide_text *out,
                                  tide_error *err) TIDE_NODISCARD;
/// Called now and then while events are read, with the share of 1 that is done; false cancels (TIDE_ERR_CANCELLED).
typedef struct tide_reading {
    bool (*tell)(void *ctx, double share);
    void *ctx;
} tide_reading;
/// Let `reading` (borrowed; NULL: none) be called in every question from here on: each few thousand events that
/// any of them reads, with a share of 0, since it is not known how many more there are. Where it returns false the
/// question fails with TIDE_ERR_CANCELLED, and the trace can be asked on.
void tide_trace_hear(tide_trace *t, const tide_reading *reading);

/// The run that is shown when none is asked for: the last one; 0, the whole trace, where there is none, where several
/// processes recorded, and where the first events of the run were dropped (its peak may have been among them).
tide_status tide_trace_shown_run(tide_trace *t, int64_t *run_id, tide_error *err) TIDE_NODISCARD;

/// The part of a trace that a run covers.
typedef struct tide_trace_extent {
    uint64_t first_event, last_event; ///< last < first: nothing happened
    uint64_t begin_ns, end_ns;
} tide_trace_extent;
/// run_id 0: all events that are kept. A run whose beginning was dropped begins with the first event that is left.
/// TIDE_ERR_NOT_FOUND for a run that is not there.
tide_status tide_trace_get_extent(tide_trace *t, int64_t run_id, tide_trace_extent *out,
                                  tide_error *err) TIDE_NODISCARD;

/// A thread that recorded, with what is known of its process.
typedef struct tide_trace_thread {
    uint32_t number;             ///< as events have it
    uint32_t process;            ///< from 0, as events have it
    char name[64], command[256]; ///< "" where it is not known; cut
    int64_t pid, rank;           ///< of the process; -1: not known, none
} tide_trace_thread;
/// All of them by process and number. *out [*n] is owned: tide_host_free; NULL when there are none. Costs a query.
tide_status tide_trace_threads(tide_trace *t, tide_trace_thread **out, size_t *n, tide_error *err) TIDE_NODISCARD;

/// A block as numbers alone, for reading millions: texts go by numbers of the file (tide_trace_text_of, …).
typedef struct tide_trace_block_row {
    uint64_t id;
    uint64_t alloc_ns;
    uint64_t free_ns; ///< UINT64_MAX: never freed in the trace
    uint64_t end_ns;  ///< free_ns, or when its process ended; UINT64_MAX: it lives on
    uint64_t requested_bytes, reserved_bytes, address;
    uint32_t name, scope, allocator, device; ///< 0: none
    tide_memory_kind kind;
} tide_trace_block_row;
/// Some blocks; anything but TIDE_OK ends the reading and is returned by it.
typedef tide_status (*tide_trace_block_fn)(void *ctx, const tide_trace_block_row *rows, size_t n);
/// The blocks of tide_trace_blocks in order of the file, which is nearly by number (those that are packed in the order
/// of their allocs): no array is made of them. 0.3 us each.
tide_status tide_trace_each_block(tide_trace *t, int64_t run_id, tide_trace_block_fn fn, void *ctx,
                                  tide_error *err) TIDE_NODISCARD;
/// One of them by its number. TIDE_ERR_NOT_FOUND.
tide_status tide_trace_find_block(tide_trace *t, uint64_t id, tide_trace_block_row *out,
                                  tide_error *err) TIDE_NODISCARD;
/// What a number of a row stands for: "" for none; borrowed until close. *step as tide_trace_block.scope_index.
const char *tide_trace_text_of(const tide_trace *t, uint32_t name);
const char *tide_trace_scope_of(const tide_trace *t, uint32_t scope, int64_t *step);
const char *tide_trace_device_of(const tide_trace *t, uint32_t device);
/// A scope and what it lies in.
typedef struct tide_trace_scope {
    const char *name; ///< "" for number 0 and one that is not there; borrowed until close
    int64_t step;     ///< -1: none
    uint32_t parent;  ///< 0: it is the outermost. A walk outwards ends
    bool is_frame;    ///< of a call stack
    bool is_operator; ///< or lies in one
} tide_trace_scope;
tide_trace_scope tide_trace_scope_at(const tide_trace *t, uint32_t scope);

/// Requested bytes of `kind` (or of all: -1) alive just after time `t_ns`: what happened at `t_ns` has happened.
/// TIDE_ERR_NOT_FOUND for a moment whose events were dropped.
tide_status tide_trace_live_at(tide_trace *t, int kind, uint64_t t_ns, uint64_t *bytes, tide_error *err) TIDE_NODISCARD;
/// Highest live requested bytes of one run (0: all) and the first moment they were reached; its begin when that was
/// before. `kind` -1: of all kinds together. `t_ns` may be NULL.
tide_status tide_trace_peak(tide_trace *t, int64_t run_id, int kind, uint64_t *bytes, uint64_t *t_ns,
                            tide_error *err) TIDE_NODISCARD;
/// The plan stored with a run, as a memory plan; TIDE_ERR_NOT_FOUND when it has none. One that is marked as verified
/// has passed the verifier again: TIDE_ERR_BAD_INPUT otherwise.
tide_status tide_trace_plan(tide_trace *t, int64_t run_id, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_step {
    int64_t index;
    char *name;                ///< owned by the array
    uint64_t begin_ns, end_ns; ///< of its first execution in the run, on the thread that began the run's first operator
                               ///< when it executed the step at all; an operator that was not left ends with the run
} tide_trace_step;
/// Steps that were executed in the run, by index; operators without an index are left out.
tide_status tide_trace_steps(tide_trace *t, int64_t run_id, tide_trace_step **out, size_t *n,
                             tide_error *err) TIDE_NODISCARD;
void tide_trace_steps_free(tide_trace_step *steps, size_t n);

#ifdef __cplusplus
}
#endif
#endif
