// SPDX-License-Identifier: MIT
//
// new_trace: a trace that is written in one go: what recovery makes out of a damaged one, and import out of another
// tool's file. Events are added one after the other; what follows from them (leaves, snapshots, problems, blocks) is
// made here. The file gets its name when it is whole. Private to profiler/.
//
//     create -> names, rows, events ... -> finish (renamed) | close (unfinished, for a drain) -> replace (renamed)
//                                       \-> discard
#ifndef TIDE_PROFILER_STORE_NEW_TRACE_H
#define TIDE_PROFILER_STORE_NEW_TRACE_H

#include "core/base/output.h"
#include "profiler/store/store.h"

/// Zero-initialise.
typedef struct tide__new_trace {
    char *path; ///< the name that the file gets
    tide_output *output;
    const char *tmp_path; ///< where it is made, in a folder beside it that is ours alone; NULL once it has its name
    tide__store *store;   ///< NULL once it is finished
    tide__names names;
    tide__replay replay;
    tide__leaves leaves;
    tide__event *batch; ///< [n_batch] not yet written, consecutive
    size_t n_batch;
    bool batch_is_chunk;
    bool in_transaction;
    size_t n_in_transaction;
    int64_t last_event, last_ns;
    int64_t first_ns; ///< time of the first event
    int64_t snapshot_event;
    bool forgive;           ///< an end of a block that is not live is counted and is no problem: its alloc is missing
    int64_t n_orphan_frees; ///< so counted
} tide__new_trace;

/// TIDE_ERR_INVALID for "" and "-"; TIDE_ERR_WRITE when `path` is there and no regular file, or cannot be made;
/// TIDE_ERR_BUSY while it is being recorded.
tide_status tide__new_trace_create(tide__new_trace *o, const char *path, tide_error *err) TIDE_NODISCARD;
/// The connection, inside a transaction: for rows that are copied as they are.
tide_status tide__new_trace_sql(tide__new_trace *o, const tide__sql **s, tide_error *err) TIDE_NODISCARD;
/// Whether a key of another trace's meta is none to be copied: it is counted anew, or follows from how this file is
/// written.
bool tide__new_trace_makes(const char *key);
tide_status tide__new_trace_meta(tide__new_trace *o, const char *key, const char *value,
                                 tide_error *err) TIDE_NODISCARD;
tide_status tide__new_trace_meta_int(tide__new_trace *o, const char *key, int64_t value,
                                     tide_error *err) TIDE_NODISCARD;

/// Numbers go on behind `last_event`, where `blocks` (an empty replay when nothing was live) were live. Before the
/// first event; `blocks` is taken.
tide_status tide__new_trace_begin_at(tide__new_trace *o, int64_t last_event, int64_t last_ns, tide__replay *blocks,
                                     tide_error *err) TIDE_NODISCARD;
/// The blocks that were live at a moment before that, which is known though its events are not: the peak.
tide_status tide__new_trace_past_moment(tide__new_trace *o, int64_t event, int64_t t_ns, tide__replay *blocks,
                                        tide_error *err) TIDE_NODISCARD;
/// The next event: gets the next number, and at least the time of the one before. Its other numbers are of this file.
tide_status tide__new_trace_event(tide__new_trace *o, const tide__event *e, bool as_chunk,
                                  tide_error *err) TIDE_NODISCARD;

/// Everything is in: make the tables of the end and give the file its name. `reason`: NULL, or why the recording was
/// cut short.
tide_status tide__new_trace_finish(tide__new_trace *o, const char *reason, tide_error *err) TIDE_NODISCARD;
/// Write what there is and close the file at tmp_path, unfinished, as a killed drain would have left it.
tide_status tide__new_trace_close(tide__new_trace *o, tide_error *err) TIDE_NODISCARD;
/// Give the closed file its name.
tide_status tide__new_trace_replace(tide__new_trace *o, tide_error *err) TIDE_NODISCARD;
/// Give back all memory; what has not got its name is removed. Takes an all-zero struct.
void tide__new_trace_deinit(tide__new_trace *o);

/// Remove a database with the files that SQLite and recorders put beside it.
void tide__new_trace_remove(const char *path);

#endif
