// SPDX-License-Identifier: MIT
//
// store: a trace file while it is written. Made whole but empty in a folder of its own, renamed, then filled in WAL
// mode under its own name, so that it can be read while it grows and after a kill. Private to profiler/.
//
//     create -> [ begin, write ..., positions, end ]* -> finish (tables of the end, one plain file)
//                    killed anywhere: resume -> ...
#ifndef TIDE_PROFILER_STORE_STORE_H
#define TIDE_PROFILER_STORE_STORE_H

#include "core/base/text.h"
#include "profiler/feed/format.h"
#include "profiler/store/leaf.h"
#include "profiler/store/names.h"
#include "profiler/store/schema.h"
#include "profiler/store/sql.h"
#include "tidemark/record.h"

typedef struct tide__store tide__store;

/// Make an empty, unfinished trace at `path`; what is there is replaced (its -wal, -shm and feeds go first).
/// TIDE_ERR_INVALID for "" and "-"; TIDE_ERR_WRITE for a directory or a device, with SQLite's or the system's words;
/// TIDE_ERR_BUSY while another process records into it.
tide_status tide__store_create(const char *path, tide_error *err) TIDE_NODISCARD;
/// The same where no file is yet, in a folder that is ours alone; errors call it `label`.
tide_status tide__store_fill(const char *file, const char *label, tide_error *err) TIDE_NODISCARD;
/// Take away what processes that are gone left beside `path`: feeds in the making.
void tide__store_remove_strays(const char *path);
/// Open the unfinished trace at `path` for writing. TIDE_ERR_BAD_INPUT: not one, or finished.
tide_status tide__store_open(const char *path, tide__store **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL. An open transaction is rolled back.
void tide__store_close(tide__store *s);
const tide__sql *tide__store_sql(const tide__store *s);

/// Where a resumed recording stands; all 0 and empty for a new trace.
typedef struct tide__store_state {
    int64_t last_event, last_ns;
    int64_t snapshot_event; ///< the last snapshot not behind the last leaf; 0: none
    int64_t leaf_event;     ///< last event of the last complete interval
    int64_t n_problems;
} tide__store_state;
tide_status tide__store_get_state(const tide__store *s, tide__store_state *out, tide_error *err) TIDE_NODISCARD;
/// Names, scopes, devices, threads as they are in the file.
tide_status tide__store_load_names(const tide__store *s, tide__names *n, tide_error *err) TIDE_NODISCARD;
/// Series into `r`, and the live blocks after the last snapshot; r is empty.
tide_status tide__store_load_replay(const tide__store *s, const tide__store_state *state, tide__replay *r,
                                    tide_error *err) TIDE_NODISCARD;

/// Apply the events of the file behind r->last_event up to `last` to `r`. `leaves` (may be NULL) get those behind event
/// `leaf_event`.
tide_status tide__store_replay(const tide__store *s, int64_t last, tide__replay *r, tide__leaves *leaves,
                               int64_t leaf_event, tide_error *err) TIDE_NODISCARD;

/// Begin and end a transaction around several writes; end rolls back when `st` is an error, and returns it. Begin waits
/// up to 10 s for another writer.
tide_status tide__store_begin(tide__store *s, tide_error *err) TIDE_NODISCARD;
tide_status tide__store_end(tide__store *s, tide_status st, tide_error *err) TIDE_NODISCARD;

/// Inside a transaction:
tide_status tide__store_put_meta(tide__store *s, const char *key, const char *value, tide_error *err) TIDE_NODISCARD;
tide_status tide__store_put_meta_int(tide__store *s, const char *key, int64_t value, tide_error *err) TIDE_NODISCARD;
/// What of `n` is not yet written (tide__names_written is the caller's, after the transaction has ended well).
tide_status tide__store_write_names(tide__store *s, const tide__names *n, tide_error *err) TIDE_NODISCARD;
/// Consecutive events, as rows or as chunks.
tide_status tide__store_write_events(tide__store *s, const tide__event *events, size_t n, bool as_chunks,
                                     tide_error *err) TIDE_NODISCARD;
/// Series are written with their first leaf.
tide_status tide__store_write_leaves(tide__store *s, const tide__replay *r, const tide__leaf *leaves, size_t n,
                                     tide_error *err) TIDE_NODISCARD;
tide_status tide__store_write_snapshot(tide__store *s, const tide__replay *r, tide_error *err) TIDE_NODISCARD;
tide_status tide__store_write_problem(tide__store *s, const tide__event *e, tide__problem problem,
                                      tide_error *err) TIDE_NODISCARD;
/// The event was given a time by its program, or its clock, that lies before that of an event in front of it: it stands
/// with that one's time, and here is its own.
tide_status tide__store_write_late(tide__store *s, const tide__event *e, int64_t own_ns,
                                   tide_error *err) TIDE_NODISCARD;
/// Next position of a ring that is not in the file, and the thread and run that its events belong to there.
typedef struct tide__position {
    int64_t process_id, ring, position, thread, n_lost;
} tide__position;
/// As ring: the log of the process's feed; its position counts the runs and facts that are in the file.
enum { TIDE__POSITION_LOG = -1 };
tide_status tide__store_write_position(tide__store *s, const tide__position *p, tide_error *err) TIDE_NODISCARD;
/// What the system counted of a process at a moment.
typedef struct tide__process_memory {
    int64_t process_id, t_ns;
    int64_t resident_bytes, peak_bytes, swapped_bytes; ///< peak: the most that was ever resident
    int64_t share_bytes;                               ///< PSS; -1: was not asked
    int64_t minor_faults, major_faults;                ///< since it began
} tide__process_memory;
tide_status tide__store_write_process_memory(tide__store *s, const tide__process_memory *m,
                                             tide_error *err) TIDE_NODISCARD;
tide_status tide__store_load_positions(const tide__store *s, tide__position **out, size_t *n,
                                       tide_error *err) TIDE_NODISCARD;
/// Counts that process `process_id` made itself of (device, kind); replaces.
tide_status tide__store_write_total(tide__store *s, int64_t process_id, int16_t device, uint8_t kind,
                                    const tide__ring_total *total, tide_error *err) TIDE_NODISCARD;
/// Run `run_id` of table run begins with the event behind `last_event`, or has ended with `last_event`, at `t_ns`.
/// TIDE_ERR_NOT_FOUND when the table has no such run. An end is never before the begin: a process that is killed behind
/// that has no later event.
tide_status tide__store_run(tide__store *s, bool begin, int64_t run_id, int64_t last_event, int64_t t_ns,
                            tide_error *err) TIDE_NODISCARD;
/// What is known of a process when it begins to record. Texts are borrowed, NULL: not known.
typedef struct tide__process_row {
    int64_t pid, begin_ns;
    int32_t rank; ///< < 0: none
    const char *command;
    const char *feed;    ///< file name of its feed
    const char *label;   ///< what people call it
    const char *boot_id; ///< of the machine whose CLOCK_MONOTONIC its times are
    bool has_wall;
    int64_t wall_ns; ///< with has_wall: its times and this are ns since 1970
} tide__process_row;
/// Add it to table process: *process_id counts from 1 in the file.
tide_status tide__store_add_process(tide__store *s, const tide__process_row *row, int64_t *process_id,
                                    tide_error *err) TIDE_NODISCARD;
/// Rows of a run that shall begin, with its plan (may be NULL): *run_id counts from 1 in the file.
tide_status tide__store_add_run(tide__store *s, int64_t process_id, const tide_run_info *info,
                                const tide_memory_plan *plan, int64_t begin_ns, int64_t *run_id,
                                tide_error *err) TIDE_NODISCARD;
/// How process `process_id` ended: "closed", "killed"; NULL: still records.
tide_status tide__store_end_process(tide__store *s, int64_t process_id, const char *how, int64_t t_ns,
                                    tide_error *err) TIDE_NODISCARD;

/**
 * Keep the file below `max_bytes`: drop the oldest events up to a snapshot, then older snapshots, and merge the oldest
 * leaves; what is dropped is counted in meta. 0: no limit, only leaves are merged. In a transaction of its own.
 * *kept_from: first event that is still there.
 * Totals, leaves, problems and runs are never dropped.
 */
tide_status tide__store_thin(tide__store *s, uint64_t max_bytes, int64_t *kept_from, tide_error *err) TIDE_NODISCARD;
/// Bytes the file takes by its pages in use, and of the write-ahead log.
tide_status tide__store_bytes(const tide__store *s, uint64_t *file, uint64_t *wal, tide_error *err) TIDE_NODISCARD;

#endif
