// SPDX-License-Identifier: MIT
//
// A database opened to be read, with what a killed program left beside it. See sql.h.
//
//     x.db-journal   pages as they were before a transaction that never ended: the file is half written until they are
//                    back in it. SQLite puts them back for a connection that may write, and refuses all others.
//     x.db-wal       committed pages that are not in the file yet. To read them SQLite wants x.db-shm, a small file
//     that
//                    it makes; where none can be made, the same is kept in memory. Without the log the file may hold
//                    pages of two states, when a program was killed while it copied the log into it.
//
// Such files are not trusted more than the database: a planted journal would be written into it.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "profiler/store/sql.h"

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

/// Connect and read the first page. @return SQLite's code, of the longer kind; the connection stays open for its words
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

static tide_status no_memory(const tide__sql *s, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to open '%s'", s->path);
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

tide_status tide__sql_open_to_read(tide__sql *s, tide_error *err) {
    s->db = NULL;
    s->only_reads = true;
    char *name = tide__sql_file_name(s->path);
    if (name == NULL) return no_memory(s, err);
    const tide_status st = open_to_read(s, name, err);
    tide_host_free(name);
    if (st != TIDE_OK) disconnect(s);
    return st;
}

void tide__sql_make_plain(const char *path) {
    if (!is_beside(path, "-wal", true) && !is_beside(path, "-shm", true) && !is_beside(path, "-journal", true)) return;
    char *name = tide__sql_file_name(path);
    sqlite3 *db = NULL;
    if (name != NULL && sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) {
        distrust(db);
        sqlite3_busy_timeout(db, 0);
        // A journal of a transaction that had written nothing yet stays when it is left alone; SQLite takes it away,
        // with a lock that keeps writers out, on the way from one mode to another.
        sqlite3_exec(db, "PRAGMA journal_mode = TRUNCATE; PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    }
    sqlite3_close(db);
    tide_host_free(name);
}
