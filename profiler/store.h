// SPDX-License-Identifier: MIT
//
// store: the trace file while it is written: created under a temporary name, filled in batches, sealed into a single
// file and renamed. Only the recorder uses it. Private to profiler/.
//
//     trace.db.tmp-PID-N (+ -wal, -shm)  --seal-->  trace.db.tmp-PID-N  --rename-->  trace.db
#ifndef TIDE_PROFILER_STORE_H
#define TIDE_PROFILER_STORE_H

#include "profiler/names.h"
#include "profiler/schema.h"
#include "profiler/sql.h"

typedef struct tide__scope_event_row {
    int64_t id, run_id, t_ns, enter, scope_id, thread;
} tide__scope_event_row;

enum { TIDE__STORE_N_TMP = 4 };

typedef struct tide__store {
    tide__sql sql;                      ///< sql.path is the final name, for errors
    char *path;                         ///< final name; owned
    char *tmp_paths[TIDE__STORE_N_TMP]; ///< the file while it grows, and its companions; owned
    sqlite3_stmt *insert_event, *insert_scope_event, *insert_name, *insert_scope, *insert_device, *put_meta;
} tide__store;

/// One batch: what goes to the file in one transaction.
typedef struct tide__batch {
    const tide__event_row *events; ///< [n_events]
    size_t n_events;
    const tide__scope_event_row *scope_events; ///< [n_scope_events]
    size_t n_scope_events;
    const tide__names *names; ///< what of them is not yet written
} tide__batch;

tide_status tide__store_open(tide__store *s, const char *path, tide_error *err) TIDE_NODISCARD;
tide_status tide__store_put_meta(tide__store *s, const char *key, const char *value, tide_error *err) TIDE_NODISCARD;
tide_status tide__store_put_meta_int(tide__store *s, const char *key, int64_t value, tide_error *err) TIDE_NODISCARD;
/// All or nothing: a failed batch is rolled back.
tide_status tide__store_write(tide__store *s, const tide__batch *batch, tide_error *err) TIDE_NODISCARD;
/// Begin and end a transaction around several writes; end rolls back when `st` is an error, and returns it.
tide_status tide__store_begin(tide__store *s, tide_error *err) TIDE_NODISCARD;
tide_status tide__store_end(tide__store *s, tide_status st, tide_error *err) TIDE_NODISCARD;
/// Fold the write-ahead log in, close, and give the file its name. On failure nothing is left.
tide_status tide__store_seal(tide__store *s, tide_error *err) TIDE_NODISCARD;
/// Close and remove the temporary file. A store that is zero or sealed is left alone but for its memory.
void tide__store_discard(tide__store *s);

#endif
