// SPDX-License-Identifier: MIT
//
// SQLite calls with our errors. See sql.h.
#include "profiler/store/sql.h"

#include <string.h>
#include <sys/stat.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"

/// @param writes  what was to be done is writing: that cannot be is the output's trouble, not the input's
static tide_status status_of(int rc, bool writes) {
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return TIDE_ERR_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return TIDE_ERR_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_INTERRUPT: // by the guard
    case SQLITE_ERROR:     // a table or column that is not there, a sum that overflows
        return TIDE_ERR_BAD_INPUT;
    case SQLITE_FULL:
        return TIDE_ERR_WRITE;
    default:
        return writes ? TIDE_ERR_WRITE : TIDE_ERR_IO;
    }
}

tide_status tide__sql_fail(const tide__sql *s, int rc, const char *what, tide_error *err) {
    const char *words =
        s->db != NULL && sqlite3_errcode(s->db) != SQLITE_OK ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
    const bool writes = strcmp(what, "write") == 0 || strcmp(what, "record into") == 0;
    tide_status st = status_of(rc, writes);
    const bool is_kept = st == TIDE_ERR_BUSY && s->only_reads; // the wait is over by now
    if (is_kept) st = TIDE_ERR_IO;
    st = TIDE_FAIL(err, st, "cannot %s '%s': %s", what, s->path, words);
    if (is_kept) tide_error_hint(err, "another process is writing it; try again when it is done");
    if (st == TIDE_ERR_BAD_INPUT) tide_error_note(err, "the file is damaged or is not a tidemark trace");
    if ((rc & 0xff) == SQLITE_INTERRUPT) tide_error_note(err, "damaged: a table has rows without end");
    // SQLite knows the system's reason where a file cannot be opened; it says "readonly" of a file that is gone.
    const int why = s->db != NULL && (rc & 0xff) == SQLITE_CANTOPEN ? sqlite3_system_errno(s->db) : 0;
    if (why != 0) tide_error_note(err, "%s", strerror(why));
    if (s->db != NULL && sqlite3_extended_errcode(s->db) == SQLITE_READONLY_DBMOVED)
        tide_error_note(err, "the file, or its folder, was moved or removed while it was written");
    return st;
}

// ---- files whose pages lead to themselves ----

enum { STEPS_PER_LOOK = 1 << 17, LEAST_LOOKS = 400, STEPS_PER_BYTE = 64 };

static _Thread_local uint64_t n_looks; ///< since the call that is under way on this thread began

/// A file may claim any size: what was written counts, of it and of its log, which both may have grown.
static uint64_t most_looks(sqlite3 *db) {
    const char *name = sqlite3_db_filename(db, "main");
    uint64_t written = 0;
    struct stat info;
    if (name != NULL && stat(name, &info) == 0) written += (uint64_t)info.st_blocks * 512;
    if (name != NULL && stat(sqlite3_filename_wal(name), &info) == 0) written += (uint64_t)info.st_blocks * 512;
    return LEAST_LOOKS + written / STEPS_PER_LOOK * STEPS_PER_BYTE;
}

static int look(void *db) { return ++n_looks > LEAST_LOOKS && n_looks > most_looks(db); }

void tide__sql_guard(sqlite3 *db, bool on) {
    n_looks = 0;
    sqlite3_progress_handler(db, on ? STEPS_PER_LOOK : 0, look, db);
}

// ---- calls ----

tide_status tide__sql_exec(const tide__sql *s, const char *text, tide_error *err) {
    n_looks = 0;
    const int rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(s, rc, "write", err);
}

tide_status tide__sql_prepare(const tide__sql *s, const char *text, sqlite3_stmt **out, tide_error *err) {
    n_looks = 0;
    const int rc = sqlite3_prepare_v2(s->db, text, -1, out, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(s, rc, "query", err);
}

tide_status tide__sql_run(const tide__sql *s, sqlite3_stmt *stmt, tide_error *err) {
    n_looks = 0;
    const int rc = sqlite3_step(stmt);
    const tide_status st = rc == SQLITE_DONE ? TIDE_OK : tide__sql_fail(s, rc, "write", err);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return st;
}

tide_status tide__sql_step(const tide__sql *s, sqlite3_stmt *stmt, bool *has_row, tide_error *err) {
    n_looks = 0;
    const int rc = sqlite3_step(stmt);
    *has_row = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? TIDE_OK : tide__sql_fail(s, rc, "read", err);
}

tide_status tide__sql_int(const tide__sql *s, const char *text, int64_t if_none, int64_t *out, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, text, &stmt, err));
    bool has_row;
    const tide_status st = tide__sql_step(s, stmt, &has_row, err);
    if (st == TIDE_OK)
        *out = has_row && sqlite3_column_type(stmt, 0) == SQLITE_INTEGER ? sqlite3_column_int64(stmt, 0) : if_none;
    sqlite3_finalize(stmt);
    return st;
}

void tide__sql_bind_text(sqlite3_stmt *stmt, int i, const char *text) {
    if (text == NULL) {
        sqlite3_bind_null(stmt, i);
    } else {
        sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
    }
}

void tide__sql_bind_id(sqlite3_stmt *stmt, int i, int64_t id) {
    if (id == 0) {
        sqlite3_bind_null(stmt, i);
    } else {
        sqlite3_bind_int64(stmt, i, id);
    }
}

bool tide__sql_bind_u64(sqlite3_stmt *stmt, int i, uint64_t value) {
    if (value > INT64_MAX) return false;
    sqlite3_bind_int64(stmt, i, (int64_t)value);
    return true;
}

const char *tide__sql_text(sqlite3_stmt *stmt, int i) {
    const unsigned char *text = sqlite3_column_text(stmt, i);
    return text != NULL ? (const char *)text : "";
}

bool tide__sql_u64(sqlite3_stmt *stmt, int i, uint64_t *out) {
    if (sqlite3_column_type(stmt, i) != SQLITE_INTEGER) return false;
    const int64_t value = sqlite3_column_int64(stmt, i);
    if (value < 0) return false;
    *out = (uint64_t)value;
    return true;
}

char *tide__sql_file_name(const char *path) {
    // "file:x", ":memory:" and "" mean something to SQLite; "./file:x" is a file.
    if (path[0] == '/' || path[0] == '.') return tide_host_strdup(path);
    tide_text name = {0};
    tide_text_addf(&name, "./%s", path);
    if (!name.failed) return name.data;
    tide_text_deinit(&name);
    return NULL;
}

char *tide__sql_immutable_name(const char *path) {
    tide_text uri = {0};
    tide_text_add(&uri, path[0] == '/' ? "file:" : "file:./");
    for (const char *p = path; *p != '\0'; p++) {
        if (*p == '%' || *p == '?' || *p == '#') {
            tide_text_addf(&uri, "%%%02X", (unsigned)(unsigned char)*p);
        } else {
            tide_text_add_n(&uri, p, 1);
        }
    }
    tide_text_add(&uri, "?immutable=1");
    if (!uri.failed) return uri.data;
    tide_text_deinit(&uri);
    return NULL;
}
