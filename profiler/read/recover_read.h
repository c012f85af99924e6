// SPDX-License-Identifier: MIT
//
// recover_read: reads a damaged trace row by row. What cannot be read is skipped and counted. Nothing in the file is
// trusted. Private to profiler/read.
#ifndef TIDE_PROFILER_READ_RECOVER_READ_H
#define TIDE_PROFILER_READ_RECOVER_READ_H

#include "core/base/map.h"
#include "profiler/event.h"
#include "profiler/store/names.h"
#include "profiler/store/sql.h"

/// A number of the damaged file, and the number that replaces it in the new one.
typedef struct tide__renamed {
    uint64_t id;
    int64_t to;
} tide__renamed;

/// A damaged trace, open for reading. Zero-initialise.
typedef struct tide__damaged {
    tide__sql sql;                            ///< its path is what errors name
    char *path;                               ///< owned
    uint64_t file_bytes;                      ///< bounds every count of what the file may hold
    uint64_t n_lost_rows;                     ///< rows that could not be read, of all tables but those of events
    uint64_t n_lost_spots;                    ///< places of tables that could not be read
    tide_map names, scopes, devices, threads; ///< of tide__renamed
    int64_t next_thread;                      ///< a number for a thread that has none, counted down
    int64_t steps_left;                       ///< of SQLite's machine, before a query is taken as endless
} tide__damaged;

/**
 * Open `file` for reading only: no lock, no log, nothing beside it is touched. Errors name `path`.
 *
 * @return TIDE_ERR_IO; TIDE_ERR_BAD_INPUT when it is no trace of this version
 */
tide_status tide__damaged_open(tide__damaged *in, const char *path, const char *file, tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide__damaged_close(tide__damaged *in);

/// Whether the table is there and can be read without harm: a plain table, no view or virtual table, no computed
/// column.
tide_status tide__damaged_has_table(const tide__damaged *in, const char *table, bool *has,
                                    tide_error *err) TIDE_NODISCARD;

// ---- rows ----

/// The rows of a table in order of a number that each has. Zero-initialise.
typedef struct tide__walk {
    tide__damaged *in;
    const char *table; ///< borrowed
    sqlite3_stmt *stmt;
    int64_t next; ///< smallest number that the next row may have
    bool has_ended;
    uint64_t n_spots; ///< times that something could not be read
} tide__walk;

/// `columns` begin with the number, which is column `key`, indexed. A table that is not there is empty.
tide_status tide__walk_open(tide__walk *w, tide__damaged *in, const char *table, const char *key, const char *columns,
                            tide_error *err) TIDE_NODISCARD;
/// *row: NULL at the end; valid until the next call.
tide_status tide__walk_next(tide__walk *w, sqlite3_stmt **row, tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide__walk_close(tide__walk *w);

/// Called for each row. TIDE_ERR_BAD_INPUT: the row is counted as lost. Any other error ends the reading.
typedef tide_status (*tide__take_row)(void *ctx, sqlite3_stmt *row, tide_error *err);
/// Walk a whole table.
tide_status tide__damaged_each(tide__damaged *in, const char *table, const char *key, const char *columns,
                               tide__take_row take, void *ctx, tide_error *err) TIDE_NODISCARD;
/// The same for a table whose key is `order`: columns of a WITHOUT ROWID table. Damage in the middle: reading goes on
/// from the other end; what lies between two damaged places is lost.
tide_status tide__damaged_each_by_key(tide__damaged *in, const char *table, const char *order, const char *columns,
                                      tide__take_row take, void *ctx, tide_error *err) TIDE_NODISCARD;

/// A number of table meta; *has is false without one.
tide_status tide__damaged_meta_int(tide__damaged *in, const char *key, int64_t *value, bool *has,
                                   tide_error *err) TIDE_NODISCARD;
/// Text of table meta, cut to fit into `buf`; "" when there is none or it cannot be read.
void tide__damaged_meta_text(const tide__damaged *in, const char *key, char *buf, size_t buf_bytes);

// ---- numbers of the new file ----

/// TIDE_ERR_BAD_INPUT for a number that has one already; TIDE_ERR_NOMEM.
tide_status tide__damaged_rename(tide_map *map, int64_t id, int64_t to, tide_error *err) TIDE_NODISCARD;
/// 0 when it has no new number.
int64_t tide__damaged_renamed(const tide_map *map, int64_t id);

/// Read the tables of names, scopes, devices and threads into `names`, and devices into table device behind `out`.
tide_status tide__damaged_read_names(tide__damaged *in, tide__names *names, const tide__sql *out,
                                     tide_error *err) TIDE_NODISCARD;

// ---- events ----

enum { TIDE__N_EVENT_COLUMNS = 15 };
/// An event out of its columns (TIDE__EVENT_COLUMNS). False: no recorder wrote that.
bool tide__damaged_event_of(const int64_t *values, const bool *is_null, tide__event *out);
/// The same out of a row of table event; numbers as they are in that file.
bool tide__damaged_event_row(sqlite3_stmt *row, tide__event *out);
/// Whether all numbers of an event are in their ranges; of a row, and of what comes out of a chunk.
bool tide__damaged_event_is_sound(const tide__event *e);
/// Put in the numbers of the new file. A name, scope, device or thread without a row gets a new one, whose name says
/// that it was lost.
tide_status tide__damaged_rename_event(tide__damaged *in, tide__names *names, tide__event *e,
                                       tide_error *err) TIDE_NODISCARD;

#endif
