// SPDX-License-Identifier: MIT
//
// SQLite calls with our errors. See sql.h.
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "profiler/store/sql.h"

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

bool tide__sql_int_or(sqlite3_stmt *stmt, int i, int64_t lo, int64_t hi, int64_t if_null, int64_t *out) {
    const int type = sqlite3_column_type(stmt, i);
    *out = type == SQLITE_INTEGER ? sqlite3_column_int64(stmt, i) : if_null;
    return type == SQLITE_NULL || (type == SQLITE_INTEGER && *out >= lo && *out <= hi);
}

bool tide__sql_number(sqlite3_stmt *stmt, int i, int64_t lo, int64_t hi, int64_t *out) {
    return tide__sql_int_or(stmt, i, lo, hi, lo, out) && sqlite3_column_type(stmt, i) == SQLITE_INTEGER;
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

// ---- a database opened to be read, with what a killed program left beside it ----
//
//     x.db-journal   pages as they were before a transaction that never ended: the file is half written until they are
//                    back in it. SQLite puts them back for a connection that may write, and refuses all others.
//     x.db-wal       committed pages that are not in the file yet. To read them SQLite wants x.db-shm, a small file
//     that
//                    it makes; where none can be made, the same is kept in memory. Without the log the file may hold
//                    pages of two states, when a program was killed while it copied the log into it.
//
// Such files are not trusted more than the database: a planted journal would be written into it.

enum {
    MAX_NAME_BYTES = PATH_MAX + 16,
    MAX_VALUE_BYTES = 1 << 24, // longest text of a trace that is read
    WAIT_MS = 10000            // for a recorder that turns the trace into one plain file, for one who rolls back
};

static void distrust(sqlite3 *db) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL); // of the file; those of the connection stay allowed
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_busy_timeout(db, WAIT_MS);
    sqlite3_exec(db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
}

/// Name of a file that SQLite has beside the database: where that is, whatever links lead to it. Without an allocation:
/// asked at every opening. False: it is longer than any that can be.
static bool name_beside(const char *path, const char *ending, char name[MAX_NAME_BYTES]) {
    char real[PATH_MAX];
    const int n = snprintf(name, MAX_NAME_BYTES, "%s%s", realpath(path, real) != NULL ? real : path, ending);
    return n > 0 && n < MAX_NAME_BYTES;
}

// ---- connections ----

/// How a connection is made.
typedef struct way {
    const char *name; ///< a file's, or an URI
    int flags;
    const char *vfs;      ///< NULL: the usual one
    const char *settings; ///< before the first page is read; NULL: none
} way;

/// Connect and read the first page. @return SQLite's code, of the longer kind; the connection stays open for its
/// message
static int connect_by(tide__sql *s, const way *w) {
    int rc = sqlite3_open_v2(w->name, &s->db, w->flags | SQLITE_OPEN_NOMUTEX, w->vfs);
    if (rc != SQLITE_OK) return rc;
    distrust(s->db);
    tide__sql_guard(s->db, true);
    if (w->settings != NULL) rc = sqlite3_exec(s->db, w->settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_exec(s->db, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
    return rc == SQLITE_OK ? rc : sqlite3_extended_errcode(s->db);
}

static void disconnect(tide__sql *s) {
    sqlite3_close(s->db);
    s->db = NULL;
}

static int read_plainly(tide__sql *s, const char *name) {
    return connect_by(s, &(way){.name = name, .flags = SQLITE_OPEN_READONLY});
}

// ---- a journal ----

static bool open_journal(const char *path, int *fd, struct stat *info) {
    char name[MAX_NAME_BYTES];
    *fd = name_beside(path, "-journal", name) ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
    if (*fd < 0) return false;
    if (fstat(*fd, info) == 0 && S_ISREG(info->st_mode)) return true;
    close(*fd);
    return false;
}

/// Whether a journal that means something is of another user than the one who reads, the file's owner or root. To be
/// asked before SQLite looks at it: run by root, SQLite gives it to the owner of the file.
static bool has_strange_journal(const char *path) {
    int fd;
    unsigned char first = 0;
    struct stat journal, file;
    if (!open_journal(path, &fd, &journal)) return false;
    const bool is_void = pread(fd, &first, 1, 0) == 1 && first == 0;
    close(fd);
    if (is_void || journal.st_size == 0 || journal.st_uid == geteuid() || journal.st_uid == 0) return false;
    return stat(path, &file) != 0 || file.st_uid != journal.st_uid;
}

/// Source: https://www.sqlite.org/fileformat2.html, 3: eight bytes begin a journal, and end one that is part of a
/// transaction over several files; before those at the end is the name.
static bool ends_with_name(int fd, off_t bytes) {
    static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[sizeof magic];
    return bytes >= (off_t)sizeof end && pread(fd, end, sizeof end, bytes - (off_t)sizeof end) == sizeof end &&
           memcmp(end, magic, sizeof magic) == 0;
}

bool tide__sql_journal_names_file(const char *path) {
    int fd;
    struct stat info;
    if (!open_journal(path, &fd, &info)) return false;
    const bool names = ends_with_name(fd, info.st_size);
    close(fd);
    return names;
}

static tide_status refuse_journal(const tide__sql *s, tide_status st, const char *why, tide_error *err) {
    st = TIDE_FAIL(err, st, "cannot read '%s': it is half written until its journal is rolled back", s->path);
    tide_error_where(err, "%s-journal", s->path);
    tide_error_note(err, "%s", why);
    return st;
}

static tide_status refuse_strange(const tide__sql *s, tide_error *err) {
    const tide_status st = refuse_journal(
        s, TIDE_ERR_BAD_INPUT, "the journal is of another user, who may have put it there to change the file", err);
    tide_error_hint(err, "if you trust it, make it yours: chown \"$USER\" %s-journal", s->path);
    return st;
}

static tide_status cannot_roll_back(const tide__sql *s, const char *why, tide_error *err) {
    const tide_status st = refuse_journal(s, TIDE_ERR_IO, why, err);
    tide_error_hint(err,
                    "open it once as a user who may write there, or copy both files to where you may and read the "
                    "copy: cp %s %s-journal FOLDER/",
                    s->path, s->path);
    return st;
}

static tide_status check_journal(const tide__sql *s, tide_error *err) {
    int fd;
    struct stat info;
    if (!open_journal(s->path, &fd, &info)) return cannot_roll_back(s, "the journal cannot be read", err);
    const bool names = ends_with_name(fd, info.st_size);
    close(fd);
    if (!names) return TIDE_OK;
    const tide_status st =
        refuse_journal(s, TIDE_ERR_BAD_INPUT, "the journal names a further file, as no recorder's does", err);
    tide_error_hint(err, "tidemark trace %s --recover -o NEW.db reads what is there without it", s->path);
    return st;
}

/// Let SQLite put back what the journal holds. In a folder where no name can be taken away, the journal is only made
/// void: that is what an exclusive connection does.
static tide_status roll_back(tide__sql *s, const char *name, tide_error *err) {
    static const char *const settings[] = {NULL, "PRAGMA locking_mode = EXCLUSIVE"};
    TIDE_TRY(check_journal(s, err));
    int rc = SQLITE_ERROR;
    for (size_t i = 0; rc != SQLITE_OK && i < sizeof settings / sizeof settings[0]; i++) {
        disconnect(s);
        rc = connect_by(s, &(way){.name = name, .flags = SQLITE_OPEN_READWRITE, .settings = settings[i]});
    }
    tide_status st = TIDE_OK;
    if (rc != SQLITE_OK) {
        st = tide__sql_fail(s, rc, "open", err);
        if (st == TIDE_ERR_IO && (rc & 0xff) != SQLITE_BUSY) st = cannot_roll_back(s, sqlite3_errmsg(s->db), err);
    }
    disconnect(s);
    if (st == TIDE_OK)
        tide_log(TIDE_LOG_INFO, "took back what a program that was stopped had half written into '%s'", s->path);
    return st;
}

// ---- a log ----

/// Whether the file says that it has a write-ahead log, and whether there is one, and its index.
typedef struct log_files {
    bool uses_log, has_log, has_index;
} log_files;

static bool is_beside(const char *path, const char *ending, bool or_empty) {
    char name[MAX_NAME_BYTES];
    struct stat info;
    return name_beside(path, ending, name) && stat(name, &info) == 0 && (or_empty || info.st_size > 0);
}

/// Source: https://www.sqlite.org/fileformat2.html, 1.3: byte 19 is 2 for a file with a write-ahead log. Read by
/// SQLite's own handle: who opens and closes a file loses all locks that the process holds on it.
static bool says_log(const tide__sql *s) {
    sqlite3_file *f = NULL;
    unsigned char mode = 0;
    return sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &f) == SQLITE_OK && f != NULL &&
           f->pMethods != NULL && f->pMethods->xRead(f, &mode, 1, 19) == SQLITE_OK && mode == 2;
}

static log_files look_for_log(const tide__sql *s) {
    return (log_files){.uses_log = says_log(s),
                       .has_log = is_beside(s->path, "-wal", false),
                       .has_index = is_beside(s->path, "-shm", true)};
}

/// A log that cannot have its index beside it is read with the index in memory, which SQLite does for an exclusive
/// connection; without locks, since an exclusive one wants to write. There is no writer: it would have an index there.
static int read_log_alone(tide__sql *s, const char *name) {
    return connect_by(s, &(way){.name = name,
                                .flags = SQLITE_OPEN_READONLY,
                                .vfs = "unix-none",
                                .settings = "PRAGMA locking_mode = EXCLUSIVE"});
}

/// No log is there: all is in the file, and no process writes it.
static int read_without_log(tide__sql *s) {
    char *uri = tide__sql_immutable_name(s->path);
    if (uri == NULL) return SQLITE_NOMEM;
    const int rc = connect_by(s, &(way){.name = uri, .flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI});
    tide_host_free(uri);
    return rc;
}

// ---- both ----

/// Another way, where SQLite could not open it in the usual one for want of a file beside it. @return its code
static int read_otherwise(tide__sql *s, const char *name, int rc) {
    const int kind = rc & 0xff;
    if (kind != SQLITE_CANTOPEN && kind != SQLITE_READONLY && kind != SQLITE_IOERR) return rc;
    const log_files found = look_for_log(s);
    if (!found.uses_log || (found.has_log && found.has_index)) return rc;
    disconnect(s);
    return found.has_log ? read_log_alone(s, name) : read_without_log(s);
}

static tide_status open_to_read(tide__sql *s, const char *name, tide_error *err) {
    if (has_strange_journal(s->path)) return refuse_strange(s, err);
    int rc = read_plainly(s, name);
    if (rc == SQLITE_READONLY_ROLLBACK) {
        TIDE_TRY(roll_back(s, name, err));
        rc = read_plainly(s, name);
    }
    if (rc != SQLITE_OK) rc = read_otherwise(s, name, rc);
    return rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(s, rc, "open", err);
}

int tide__sql_open_foreign(const char *path, sqlite3 **db) {
    const int rc = sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) return rc;
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    tide__sql_guard(*db, true);
    return SQLITE_OK;
}

tide_status tide__sql_open_to_read(tide__sql *s, tide_error *err) {
    s->db = NULL;
    s->only_reads = true;
    char *name = tide__sql_file_name(s->path);
    if (name == NULL) return TIDE_NO_MEMORY(err, "to open '%s'", s->path);
    const tide_status st = open_to_read(s, name, err);
    tide_host_free(name);
    if (st != TIDE_OK) disconnect(s);
    return st;
}

static bool has_companions(const char *path) {
    return is_beside(path, "-wal", true) || is_beside(path, "-shm", true) || is_beside(path, "-journal", true);
}

/// A connection that opened the file when it still had a log, but looked for the log after it was gone, has made an
/// empty one. SQLite uses none in this mode and leaves it. Under the lock no other connection is inside the file.
static void remove_unused_log(sqlite3 *db, const char *path) {
    char log[MAX_NAME_BYTES], index[MAX_NAME_BYTES];
    if (!is_beside(path, "-wal", true) || is_beside(path, "-wal", false)) return;
    if (!name_beside(path, "-wal", log) || !name_beside(path, "-shm", index)) return;
    if (sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK) return;
    if (!is_beside(path, "-wal", false)) {
        unlink(log);
        unlink(index);
    }
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

static int says_delete(void *is_so, int n, char **values, char **names) {
    (void)names;
    *(bool *)is_so = n == 1 && values[0] != NULL && strcmp(values[0], "delete") == 0;
    return 0;
}

static void try_to_make_plain(const char *path, const char *name) {
    bool has_no_log = false;
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) {
        distrust(db);
        sqlite3_busy_timeout(db, 0);
        // A journal of a transaction that had written nothing yet stays when it is left alone; SQLite takes it away,
        // with a lock that keeps writers out, on the way from one mode to another.
        sqlite3_exec(db, "PRAGMA journal_mode = TRUNCATE; PRAGMA journal_mode = DELETE", says_delete, &has_no_log,
                     NULL);
        if (has_no_log) remove_unused_log(db, path);
    }
    sqlite3_close(db);
}

void tide__sql_make_plain(const char *path) {
    enum { TRIES = 3, PAUSE_NS = 3000000 };
    char *name = tide__sql_file_name(path);
    // Two that try at the same moment are in each other's way.
    for (int i = 0; name != NULL && i < TRIES && has_companions(path); i++) {
        if (i > 0) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        try_to_make_plain(path, name);
    }
    tide_host_free(name);
}

// ---- virtual tables ----

/// Copied for the life of the connection.
typedef struct table_data {
    tide__sql sql;
    char path[];
} table_data;

tide_status tide__sql_register_table(const tide__sql *s, const char *name, const sqlite3_module *module,
                                     tide_error *err) {
    const size_t n = strlen(s->path) + 1;
    table_data *data = tide_host_alloc(sizeof *data + n);
    if (data == NULL) return TIDE_NO_MEMORY(err, "to read '%s'", s->path);
    memcpy(data->path, s->path, n);
    data->sql = (tide__sql){.db = s->db, .path = data->path};
    _Static_assert(offsetof(table_data, sql) == 0, "the table is given the first member");
    // On failure SQLite calls the destructor too.
    const int rc = sqlite3_create_module_v2(s->db, name, module, data, tide_host_free);
    return rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(s, rc, "query", err);
}

int tide__sql_table_failed(sqlite3_vtab *table, tide_status st, const tide_error *err) {
    if (st == TIDE_ERR_NOMEM) return SQLITE_NOMEM;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg =
        err->where[0] != '\0' ? sqlite3_mprintf("%s (%s)", err->msg, err->where) : sqlite3_mprintf("%s", err->msg);
    return SQLITE_ERROR;
}
