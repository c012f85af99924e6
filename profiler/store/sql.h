// SPDX-License-Identifier: MIT
//
// sql: the few SQLite calls that the recorder and the query side share, with SQLite's result codes turned into ours.
// Private to profiler/.
#ifndef TIDE_PROFILER_SQL_H
#define TIDE_PROFILER_SQL_H

#include <sqlite3.h>
#include <stdint.h>

#include "core/base/status.h"

/// A database with the name that errors print.
typedef struct tide__sql {
    sqlite3 *db;
    const char *path; ///< borrowed
    bool only_reads;  ///< set by tide__sql_open_to_read: who keeps the file is no reason to try again
} tide__sql;

/// For a connection to a file that may come from anybody: a call that takes far more steps than the file has bytes is
/// ended as one of TIDE_ERR_BAD_INPUT. Pages of such a file may lead to themselves, and by them a table has rows
/// without end. SQLite cannot be stopped while it counts pages: "SELECT count(*) FROM x" of such a file must be sum(1).
/// False: no longer.
void tide__sql_guard(sqlite3 *db, bool on);

/// Open an SQLite file of another tool that may come from anybody, to read it: nothing of it is run for longer than it
/// is long. A code of SQLite; *db is to be closed in any case.
int tide__sql_open_foreign(const char *path, sqlite3 **db);
/// Open the database at `s->path`, which may come from anybody, to read it. What a killed program left beside it
/// counts: a journal is rolled back, for which the file is written; a write-ahead log is read, also where nothing can
/// be written. TIDE_ERR_IO, with what can be done, when there is a journal and this user may not roll it back. On
/// failure s->db is NULL.
tide_status tide__sql_open_to_read(tide__sql *s, tide_error *err) TIDE_NODISCARD;
/// Whether the journal beside the database `path` names a further file, which SQLite would take away when it rolls the
/// journal back. No recorder writes such a journal.
bool tide__sql_journal_names_file(const char *path);
/// One plain file of a finished trace: a log or a journal that is left beside it goes. Does nothing while another
/// connection uses it, or where this user may not write; asks again twice, after 3 ms each.
void tide__sql_make_plain(const char *path);

/// The virtual table `name` for the connection. Its xConnect gets a `const tide__sql *` that lives as long.
tide_status tide__sql_register_table(const tide__sql *s, const char *name, const sqlite3_module *module,
                                     tide_error *err) TIDE_NODISCARD;
/// What a virtual table's function returns to SQLite for a failure, whose words the query then has.
int tide__sql_table_failed(sqlite3_vtab *table, tide_status st, const tide_error *err);

/// Fill `err` from the connection's last error: "cannot <what> '<path>': <SQLite's words>".
tide_status tide__sql_fail(const tide__sql *s, int rc, const char *what, tide_error *err);
/// Run statements that return nothing.
tide_status tide__sql_exec(const tide__sql *s, const char *text, tide_error *err) TIDE_NODISCARD;
tide_status tide__sql_prepare(const tide__sql *s, const char *text, sqlite3_stmt **out, tide_error *err) TIDE_NODISCARD;
/// Run a bound statement that returns no row, then reset it and clear its bindings.
tide_status tide__sql_run(const tide__sql *s, sqlite3_stmt *stmt, tide_error *err) TIDE_NODISCARD;
/// Step a query. *has_row is false at the end.
tide_status tide__sql_step(const tide__sql *s, sqlite3_stmt *stmt, bool *has_row, tide_error *err) TIDE_NODISCARD;
/// One integer out of a query of one row and one column; NULL there and no row at all: `if_none`.
tide_status tide__sql_int(const tide__sql *s, const char *text, int64_t if_none, int64_t *out,
                          tide_error *err) TIDE_NODISCARD;

/// Bind `text`, NULL as NULL; the text must live until the statement has run.
void tide__sql_bind_text(sqlite3_stmt *stmt, int i, const char *text);
/// Bind an id; 0 stands for none and becomes NULL.
void tide__sql_bind_id(sqlite3_stmt *stmt, int i, int64_t id);
/// Bind a size; false when it does not fit into SQLite's integers.
bool tide__sql_bind_u64(sqlite3_stmt *stmt, int i, uint64_t value);

/// A column as text, never NULL ("" for NULL); borrowed until the next step.
const char *tide__sql_text(sqlite3_stmt *stmt, int i);
/// A column as an integer within [lo, hi]; NULL is `if_null`, which need not be. Text, blobs and reals are false.
bool tide__sql_int_or(sqlite3_stmt *stmt, int i, int64_t lo, int64_t hi, int64_t if_null, int64_t *out);
/// The same where NULL is not allowed.
bool tide__sql_number(sqlite3_stmt *stmt, int i, int64_t lo, int64_t hi, int64_t *out);
/// A column as a size: false for NULL, text and negative numbers.
bool tide__sql_u64(sqlite3_stmt *stmt, int i, uint64_t *out);
/// Name of a database file as SQLite shall open it: never taken for an URI or one of its special names. Owned by the
/// caller; NULL without memory.
char *tide__sql_file_name(const char *path);
/// "file:NAME?immutable=1": opened by that URI SQLite takes no lock, looks for no log and makes no file beside it.
/// Owned by the caller; NULL without memory.
char *tide__sql_immutable_name(const char *path);

#endif
