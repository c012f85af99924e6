// SPDX-License-Identifier: MIT
//
// recover: the parts of recovering a damaged trace. Private to profiler/read.
//
//     recover_file    which file is read: the trace, or a private copy with its log applied and its first pages
//     repaired recover_read    rows of tables, past what cannot be read; recover_names: names and events with their new
//     numbers recover_events  which events the tables still hold, and which are missing recover_pages   events in pages
//     that no table leads to any more recover_tables  what blocks and snapshots say of missing events; the tables that
//     are copied recover_runs    copies events and finds where each run begins and ends among the new numbers
//     store/new_trace the trace that is made
//     recover         the steps in order; feeds beside the trace
#ifndef TIDE_PROFILER_READ_RECOVER_H
#define TIDE_PROFILER_READ_RECOVER_H

#include "profiler/read/recover_read.h"
#include "profiler/store/new_trace.h"

// ---- events, rows and chunks as one list ----

/// The events of one table in order of their numbers, checked. The current event is `event` while `has`; numbers of
/// names are those of the damaged file.
typedef struct tide__event_stream {
    tide__damaged *in;
    bool is_chunks; ///< table event_chunk, of up to 4096 events each; otherwise table event, one row each
    tide__walk walk;
    tide__event event;
    bool has;
    int64_t last_id, last_ns; ///< of the event before, 0 at first
    tide__event ahead;        ///< read already: the event behind says which of two times is wrong
    bool has_ahead;
    tide__event *chunk; ///< [TIDE__CHUNK_MAX_EVENTS], of table event_chunk
    size_t n_chunk, next_in_chunk;
} tide__event_stream;

/// Zero-initialise. The current event is `event` while `has`.
typedef struct tide__event_reader {
    tide__event_stream rows, chunks;
    tide__event event;
    bool has, is_chunk;
} tide__event_reader;

/// Stand on the first event.
tide_status tide__event_reader_open(tide__event_reader *s, tide__damaged *in, tide_error *err) TIDE_NODISCARD;
/// Stand on the next one; `has` is false at the end. An event that no recorder wrote is left out, as if missing.
tide_status tide__event_reader_next(tide__event_reader *s, tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide__event_reader_close(tide__event_reader *s);

// ---- holes ----

/// Numbers of events that no table gives.
typedef struct tide__hole {
    int64_t first, last;
    int64_t begin_ns, end_ns; ///< times of the events around it
} tide__hole;

/// Zero-initialise.
typedef struct tide__holes {
    tide__damaged *in;
    tide__hole *holes; ///< [n_holes] by number, disjoint; owned
    size_t n_holes, cap_holes;
    tide__event *found; ///< [n_found] that lie in holes; the first n_sorted by number, each once; owned
    size_t n_found, cap_found, n_sorted;
    tide__event *loose; ///< [n_loose] whose number is not known, only that their time lies inside a hole; owned
    size_t n_loose, cap_loose;
    int64_t first_event, last_event; ///< that tables give; 0: none
    int64_t first_kept;              ///< the first that the trace had: what lies before was dropped to keep it small
    uint64_t n_missing;              ///< in holes
    bool one_is_enough;              ///< stop at the first event that is found
} tide__holes;

/// Look through all events once.
tide_status tide__holes_find(tide__holes *h, tide__damaged *in, tide_error *err) TIDE_NODISCARD;
void tide__holes_deinit(tide__holes *h);
/// Whether some number of [first, last] is missing.
bool tide__holes_meet(const tide__holes *h, int64_t first, int64_t last);
/// Keep an event that lies in a hole, at a time that fits there; others are passed over.
tide_status tide__holes_offer(tide__holes *h, const tide__event *e, tide_error *err) TIDE_NODISCARD;
/// Keep an event of no known number whose time is that of no event outside of a hole.
tide_status tide__holes_offer_loose(tide__holes *h, const tide__event *e, tide_error *err) TIDE_NODISCARD;
/// All that was found by number, each once: what was sorted before goes before what was not.
void tide__holes_sort(tide__holes *h);
/// Loose events get numbers that are free at their time, and are among those that were found. Once, at the end.
tide_status tide__holes_place_loose(tide__holes *h, tide_error *err) TIDE_NODISCARD;

// ---- copying events, and the runs that they belong to ----

typedef struct tide__run_place {
    int64_t id;
    int64_t first_event, last_event; ///< as the row says; 0: it had not begun; last_event -1: it had not ended
    int64_t begin_ns, end_ns;        ///< end_ns -1: not ended
    int64_t place_first, place_last; ///< new numbers of these two, as other events show them; 0: not passed
    int64_t new_first, new_last;     ///< of its own events; 0: none
    bool has_row;
    bool contradicts; ///< it has events outside of what its row says
} tide__run_place;

/// Zero-initialise.
typedef struct tide__copier {
    tide__damaged *in;
    tide__new_trace *out;
    tide__run_place *runs; ///< [n_runs] by id
    size_t n_runs, cap_runs;
    int64_t *begins, *ends;      ///< [n_rows] ids of the runs that have a row, by first_event, by last_event
    size_t n_rows;               ///< runs that come later have none
    size_t next_begin, next_end; ///< those before it were passed
    int64_t passed;              ///< new number of the last event that was passed
    int64_t unchanged;           ///< numbers up to this one are the same in both files
    size_t last_run;             ///< index of the run of the event before
    uint64_t n_lost;             ///< events in gaps
} tide__copier;

/// Read which runs there are.
tide_status tide__copier_begin(tide__copier *r, tide__damaged *in, tide__new_trace *out,
                               tide_error *err) TIDE_NODISCARD;
void tide__copier_deinit(tide__copier *r);

/// NULL: no such run.
const tide__run_place *tide__copier_run(const tide__copier *r, int64_t id);
/// The event with number `old_event` in the damaged file is copied next.
void tide__copier_pass(tide__copier *r, int64_t old_event);
/// Copy `e`, whose names have the numbers of the damaged file.
tide_status tide__copier_event(tide__copier *r, const tide__event *e, bool as_chunk, tide_error *err) TIDE_NODISCARD;
/// Write a gap: `n` events are missing here, at `t_ns`.
tide_status tide__copier_gap(tide__copier *r, uint64_t n, int64_t t_ns, bool as_chunk, tide_error *err) TIDE_NODISCARD;
/// After all events: write runs and plans.
tide_status tide__copier_write_runs(tide__copier *r, tide_error *err) TIDE_NODISCARD;

// ---- tables ----

/// Offer what the pages of `file` hold, whether a table leads to them or not.
tide_status tide__recover_pages(tide__holes *h, const char *file, tide_error *err) TIDE_NODISCARD;
/// Offer the events that table block and the snapshots know.
tide_status tide__recover_blocks(tide__holes *h, const tide__copier *runs, tide_error *err) TIDE_NODISCARD;
/// Processes, positions of rings, totals of the recorded threads.
tide_status tide__recover_processes(tide__damaged *in, tide__new_trace *out, tide_error *err) TIDE_NODISCARD;
/// Rows for processes and devices that others refer to and that were lost. After all events.
tide_status tide__recover_lost_rows(tide__damaged *in, tide__new_trace *out, tide_error *err) TIDE_NODISCARD;

/// The blocks that were live behind the last snapshot in [lo, hi], names renamed; *event_id 0: none can be read. The
/// replay is the caller's, also then.
tide_status tide__recover_snapshot(tide__damaged *in, tide__names *names, int64_t lo, int64_t hi, tide__replay *out,
                                   int64_t *event_id, int64_t *t_ns, tide_error *err) TIDE_NODISCARD;
/// Leaves of events up to `last_event`, which are not there any more. Before the first event.
tide_status tide__recover_past(tide__damaged *in, tide__new_trace *out, int64_t last_event,
                               tide_error *err) TIDE_NODISCARD;
/// Problems of those events, and those that are of no event. After all events.
tide_status tide__recover_problems(tide__damaged *in, tide__new_trace *out, int64_t last_event,
                                   tide_error *err) TIDE_NODISCARD;

// ---- files ----

/// The file that a damaged trace is read from. Zero-initialise.
typedef struct tide__readable {
    char *file;   ///< the trace itself, or the copy; owned
    bool is_copy; ///< removed at the end
} tide__readable;

/// Choose the file to read for the trace at `path`. A log beside it is applied to a copy. Copies are made beside
/// `beside`, an unfinished file in a folder that is ours alone.
tide_status tide__readable_open(tide__readable *p, const char *path, const char *beside,
                                tide_error *err) TIDE_NODISCARD;
/// Replace the pages that list the tables: they are the same in every trace of this version.
tide_status tide__readable_repair(tide__readable *p, const char *path, const char *beside,
                                  tide_error *err) TIDE_NODISCARD;
void tide__readable_close(tide__readable *p);
/// Copy a file, holes as holes; nothing has the name `to`. TIDE_ERR_IO, TIDE_ERR_WRITE with the system's words.
tide_status tide__copy_file(const char *from, const char *to, tide_error *err) TIDE_NODISCARD;

#endif
