// SPDX-License-Identifier: MIT
//
// A new, empty trace: made whole under another name and renamed, so that nobody ever sees half of one. See store.h.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "profiler/event.h"
#include "profiler/feed/reader.h"
#include "profiler/store/store.h"

/// What SQLite puts beside a file. A log that is left beside a new file of the same name would be played into it.
static const char *const companions[] = {"-wal", "-shm", "-journal"};
enum { N_COMPANIONS = sizeof companions / sizeof companions[0] };

static tide_status no_memory(const char *path, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", path);
}

// ---- names of files ----

static tide_status check_path(const char *path, tide_error *err) {
    if (path[0] == '\0' || strcmp(path, "-") == 0) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': a trace is not a stream", path);
        tide_error_hint(err, "name a file, for example trace.db");
        return st;
    }
    // The new file takes the place of whatever has its name: that must not be a device, a pipe or a directory.
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_IO, "cannot record into '%s': it is %s", path,
                     S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
}

static void free_paths(char **paths, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(paths[i]);
    tide_host_free(paths);
}

/// TIDE_ERR_BUSY when one of the feeds beside `path` is in use.
static tide_status check_feeds(const char *path, char *const *feeds, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!tide__feed_is_in_use(feeds[i])) continue;
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot record into '%s': somebody records into it", path);
        tide_error_note(err, "its feed '%s' is in use", feeds[i]);
        tide_error_hint(err, "name another file, or wait until that recording has ended");
        return st;
    }
    return TIDE_OK;
}

/// The files of one new trace, named before anything is made: removing must not need memory.
typedef struct new_files {
    char *tmp;                     ///< the file in the making
    char *stale[N_COMPANIONS];     ///< of the trace that has the name now
    char *tmp_stale[N_COMPANIONS]; ///< of `tmp`: of a process that died with our number
} new_files;

static void free_names(new_files *f) {
    tide_host_free(f->tmp);
    for (size_t i = 0; i < N_COMPANIONS; i++) {
        tide_host_free(f->stale[i]);
        tide_host_free(f->tmp_stale[i]);
    }
}

static char *join(const char *a, const char *b) {
    tide_text t = {0};
    tide_text_addf(&t, "%s%s", a, b);
    if (!t.failed) return t.data;
    tide_text_deinit(&t); // a cut name is the name of another file
    return NULL;
}

static bool name_files(const char *path, new_files *f) {
    static atomic_uint n_made; // two recorders of one process may aim at one name
    char number[48];
    snprintf(number, sizeof number, ".tmp-%ld-%u", (long)getpid(), atomic_fetch_add(&n_made, 1u));
    *f = (new_files){0};
    char *plain = tide__sql_file_name(path);
    if (plain != NULL) f->tmp = join(plain, number);
    bool good = f->tmp != NULL;
    for (size_t i = 0; good && i < N_COMPANIONS; i++) {
        f->stale[i] = join(plain, companions[i]);
        f->tmp_stale[i] = join(f->tmp, companions[i]);
        good = f->stale[i] != NULL && f->tmp_stale[i] != NULL;
    }
    tide_host_free(plain);
    if (!good) free_names(f);
    return good;
}

static void remove_tmp(const new_files *f) {
    unlink(f->tmp);
    for (size_t i = 0; i < N_COMPANIONS; i++) unlink(f->tmp_stale[i]);
}

// ---- content ----

static tide_status create_items(const tide__sql *s, const tide__schema_item *items, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) TIDE_TRY(tide__sql_exec(s, items[i].sql, err));
    return TIDE_OK;
}

static tide_status fill_ops(const tide__sql *s, tide_error *err) {
    static const struct {
        int id;
        const char *name;
    } ops[] = {
#define XX(name, value, text) {value, text},
        TIDE_MEMORY_OP_MAP(XX) TIDE__TRACE_OP_MAP(XX)
#undef XX
    };
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO op VALUES(?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < sizeof ops / sizeof ops[0]; i++) {
        sqlite3_bind_int(stmt, 1, ops[i].id);
        tide__sql_bind_text(stmt, 2, ops[i].name);
        st = tide__sql_run(s, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status fill_kinds(const tide__sql *s, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO kind VALUES(?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (int kind = 0; st == TIDE_OK && kind < TIDE_N_KINDS; kind++) {
        sqlite3_bind_int(stmt, 1, kind);
        tide__sql_bind_text(stmt, 2, tide_memory_kind_name((tide_memory_kind)kind));
        tide__sql_bind_text(stmt, 3, tide_memory_kind_purpose((tide_memory_kind)kind));
        st = tide__sql_run(s, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status fill_meta(const tide__sql *s, tide_error *err) {
    char now[32] = "", version[16];
    const time_t t = time(NULL);
    struct tm utc;
    if (gmtime_r(&t, &utc) != NULL) strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(version, sizeof version, "%d", (int)TIDE__TRACE_VERSION);
    const char *const all[][2] = {
        {"schema", TIDE__TRACE_SCHEMA},   {"version", version},
        {"created_by", "tidemark"},       {"created_utc", now},
        {"clock", "CLOCK_MONOTONIC, ns"}, {"state", TIDE__STATE_RECORDING},
    };
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO meta(key, value) VALUES(?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < sizeof all / sizeof all[0]; i++) {
        tide__sql_bind_text(stmt, 1, all[i][0]);
        tide__sql_bind_text(stmt, 2, all[i][1]);
        st = tide__sql_run(s, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status fill(const tide__sql *s, tide_error *err) {
    char head[160];
    // The page size counts only before the first page is written; the ids only inside the database. What fails is
    // removed, so that no journal is needed.
    snprintf(head, sizeof head,
             "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA application_id = %d; "
             "PRAGMA user_version = %d; BEGIN",
             (int)TIDE__TRACE_APPLICATION_ID, (int)TIDE__TRACE_VERSION);
    TIDE_TRY(tide__sql_exec(s, head, err));
    const tide__schema_item *tables, *views;
    const size_t n_tables = tide__schema_tables(&tables), n_views = tide__schema_views(&views);
    TIDE_TRY(create_items(s, tables, n_tables, err));
    TIDE_TRY(create_items(s, views, n_views, err));
    TIDE_TRY(fill_ops(s, err));
    TIDE_TRY(fill_kinds(s, err));
    TIDE_TRY(fill_meta(s, err));
    return tide__sql_exec(s, "INSERT INTO series(id) VALUES(0); COMMIT", err);
}

static tide_status make_tmp(const char *path, const new_files *f, tide_error *err) {
    tide__sql s = {.path = path};
    // SQLite tries a second way when the first is refused, and then knows only the second way's reason.
    const int fd = open(f->tmp, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot record into '%s': %s", path, strerror(errno));
    close(fd);
    int rc = sqlite3_open_v2(f->tmp, &s.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_status st = rc == SQLITE_OK ? fill(&s, err) : tide__sql_fail(&s, rc, "record into", err);
    rc = sqlite3_close(s.db);
    if (st == TIDE_OK && rc != SQLITE_OK)
        st = TIDE_FAIL(err, TIDE_ERR_IO, "cannot record into '%s': %s", path, sqlite3_errstr(rc));
    return st;
}

/// Give the new file its name. What belonged to the old one goes first.
static tide_status put_in_place(const char *path, const new_files *f, char *const *feeds, size_t n_feeds,
                                tide_error *err) {
    const char *failed = NULL;
    for (size_t i = 0; i < N_COMPANIONS && failed == NULL; i++) {
        if (unlink(f->stale[i]) != 0 && errno != ENOENT) failed = f->stale[i];
    }
    for (size_t i = 0; i < n_feeds && failed == NULL; i++) {
        if (unlink(feeds[i]) != 0 && errno != ENOENT) failed = feeds[i];
    }
    if (failed != NULL) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_IO, "cannot record into '%s': %s", path, strerror(errno));
        tide_error_note(err, "'%s' of an older recording is in the way", failed);
        return st;
    }
    if (rename(f->tmp, path) == 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_IO, "cannot record into '%s': %s", path, strerror(errno));
}

tide_status tide__store_create(const char *path, tide_error *err) {
    TIDE_TRY(check_path(path, err));
    char **feeds = NULL;
    size_t n_feeds = 0;
    TIDE_TRY(tide__feed_list(path, &feeds, &n_feeds, err));
    tide_status st = check_feeds(path, feeds, n_feeds, err);
    new_files f;
    if (st == TIDE_OK && !name_files(path, &f)) st = no_memory(path, err);
    if (st == TIDE_OK) {
        tide__store_remove_strays(path);
        remove_tmp(&f);
        st = make_tmp(path, &f, err);
        if (st == TIDE_OK) st = put_in_place(path, &f, feeds, n_feeds, err);
        if (st != TIDE_OK) remove_tmp(&f);
        free_names(&f);
    }
    free_paths(feeds, n_feeds);
    return st;
}
