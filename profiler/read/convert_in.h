// SPDX-License-Identifier: MIT
//
// convert_in: a trace of any version that is read to be written anew, strictly (the first thing that is wrong is an
// error) or leniently (what cannot be read is skipped and counted). Nothing in it is trusted. Private to profiler/read.
#ifndef TIDE_PROFILER_READ_CONVERT_IN_H
#define TIDE_PROFILER_READ_CONVERT_IN_H

#include "core/base/id_map.h"
#include "profiler/event.h"
#include "profiler/store/names.h"
#include "profiler/store/sql.h"

/// A number of the file that is read, and which one it is in the file that is made.
typedef struct tide__renamed {
    uint64_t id;
    int64_t to;
} tide__renamed;

/// Zero-initialise.
typedef struct tide__in {
    tide__sql sql; ///< its path is what errors name
    char *path;    ///< owned
    int version;
    bool lenient;
    uint64_t file_bytes;   ///< bounds every count of what the file may hold
    uint64_t n_lost_rows;  ///< lenient: rows of all tables but those of events that could not be read
    uint64_t n_lost_spots; ///< lenient: stretches of tables that could not be read
    tide_id_map names, scopes, devices, threads; ///< of tide__renamed
    int64_t next_thread;                         ///< a number for a thread that has none, counted down
    int64_t steps_left;                          ///< of SQLite's machine, before a reading is taken as one without end
} tide__in;

/**
 * Open `file` for reading only: no lock, no log, nothing beside it is touched. Errors name `path`.
 *
 * @return TIDE_ERR_IO; TIDE_ERR_BAD_INPUT when it is no trace
 */
tide_status tide__in_open(tide__in *in, const char *path, const char *file, bool lenient,
                          tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide__in_close(tide__in *in);

/// TIDE_ERR_BAD_INPUT: what is wrong with row `id` of `table`.
tide_status tide__in_bad_row(const tide__in *in, const char *table, int64_t id, tide_error *err);
/// The same of the file as a whole; `note` is a sentence.
tide_status tide__in_damaged(const tide__in *in, tide_error *err, const char *note, ...) TIDE_PRINTF(3, 4);
/// Whether the table is there and one that can be read without harm: a plain table, no view or virtual table, no
/// column that is computed.
tide_status tide__in_has_table(const tide__in *in, const char *table, bool *has, tide_error *err) TIDE_NODISCARD;
/// The same for a column of a table.
tide_status tide__in_has_column(const tide__in *in, const char *table, const char *column, bool *has,
                                tide_error *err) TIDE_NODISCARD;

// ---- rows ----

/// The rows of a table in order of a number that each has. Zero-initialise.
typedef struct tide__walk {
    tide__in *in;
    const char *table; ///< borrowed
    sqlite3_stmt *stmt;
    int64_t next;  ///< smallest number that the next row may have
    bool is_fresh; ///< the statement stands on a row that was not given yet
    bool has_ended;
    uint64_t n_spots; ///< times that something could not be read
} tide__walk;

/// `columns` begin with the number, which is column `key`, indexed. A table that is not there is an error (strict) or
/// empty (lenient).
tide_status tide__walk_open(tide__walk *w, tide__in *in, const char *table, const char *key, const char *columns,
                            tide_error *err) TIDE_NODISCARD;
/// *row: NULL at the end; valid until the next call. Strict: numbers that do not rise are an error.
tide_status tide__walk_next(tide__walk *w, sqlite3_stmt **row, tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide__walk_close(tide__walk *w);

/// What is done with a row; TIDE_ERR_BAD_INPUT ends a strict reading, and is counted by a lenient one.
typedef tide_status (*tide__take_row)(void *ctx, sqlite3_stmt *row, tide_error *err);
/// Walk a whole table.
tide_status tide__in_each(tide__in *in, const char *table, const char *key, const char *columns, tide__take_row take,
                          void *ctx, tide_error *err) TIDE_NODISCARD;
/// The same for a table whose key is `order`: columns of a WITHOUT ROWID table. A lenient reading that meets damage
/// goes on from the other end; what lies between two damaged places is lost.
tide_status tide__in_each_by_key(tide__in *in, const char *table, const char *order, const char *columns,
                                 tide__take_row take, void *ctx, tide_error *err) TIDE_NODISCARD;

// ---- numbers ----

/// A column as an integer within [lo, hi]; NULL is `if_null`, which need not be. Text, blobs and reals are false.
bool tide__in_int(sqlite3_stmt *row, int i, int64_t lo, int64_t hi, int64_t if_null, int64_t *out);
/// The same where NULL is not allowed.
bool tide__in_number(sqlite3_stmt *row, int i, int64_t lo, int64_t hi, int64_t *out);

tide_status tide__in_rename(tide_id_map *map, int64_t id, int64_t to, tide_error *err) TIDE_NODISCARD;
/// 0 when it has no new number.
int64_t tide__in_renamed(const tide_id_map *map, int64_t id);

/// Read name, scope, device and thread tables, as far as the version has them, into `names`, and devices into table
/// device behind `out`.
tide_status tide__in_read_names(tide__in *in, tide__names *names, const tide__sql *out, tide_error *err) TIDE_NODISCARD;

// ---- events ----

enum { TIDE__N_EVENT_COLUMNS = 15 };
/// An event out of its columns (TIDE__EVENT_COLUMNS). False: no recorder wrote that.
bool tide__in_event_of(const int64_t *values, const bool *is_null, tide__event *out);
/// What the columns of a row of table event hold (TIDE__EVENT_COLUMNS), numbers as they are in that file. False: no
/// recorder wrote that.
bool tide__in_event_row(sqlite3_stmt *row, tide__event *out);
/// Whether all numbers of an event are in their ranges; of a row, and of what comes out of a chunk.
bool tide__in_event_is_sound(const tide__event *e);
/// Put in the numbers of the new file. TIDE_ERR_BAD_INPUT (no words): a name, scope, device or thread that is not
/// there; a lenient reading puts in a number all the same, whose name says that it was lost.
tide_status tide__in_rename_event(tide__in *in, tide__names *names, tide__event *e, tide_error *err) TIDE_NODISCARD;

#endif
