// SPDX-License-Identifier: MIT
//
// A new, empty trace: made whole in a folder of its own and renamed, so that half of one is never seen. See store.h.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "profiler/event.h"
#include "profiler/feed/format.h"
#include "profiler/feed/reader.h"
#include "profiler/store/store.h"
#include "tidemark/version.h"

/// What SQLite puts beside a file. A log that is left beside a new file of the same name would be played into it.
static const char *const companions[] = {"-wal", "-shm", "-journal"};
enum { N_COMPANIONS = sizeof companions / sizeof companions[0] };

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
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot record into '%s': it is %s", path,
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
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot record into '%s': another process records into it", path);
        tide_error_note(err, "its feed '%s' is in use", feeds[i]);
        tide_error_hint(err, "name another file, or wait until that recording has ended");
        return st;
    }
    return TIDE_OK;
}

static char *join(const char *a, const char *b) {
    tide_text t = {0};
    tide_text_addf(&t, "%s%s", a, b);
    if (!t.failed) return t.data;
    tide_text_deinit(&t); // a cut name is the name of another file
    return NULL;
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
        {"schema", TIDE__TRACE_SCHEMA},   {"version", version}, {"created_by", "tidemark"},
        {"tool_version", TIDE_VERSION},   {"created_utc", now}, {"clock", "CLOCK_MONOTONIC, ns"},
        {"state", TIDE__STATE_RECORDING},
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
    char head[192];
    // The page size counts only before the first page is written; the ids only inside the database. What fails is
    // removed, so that no journal is needed, and what is complete is synced before it is renamed.
    snprintf(head, sizeof head,
             "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
             "PRAGMA application_id = %d; PRAGMA user_version = %d; BEGIN",
             (int)TIDE__TRACE_APPLICATION_ID, (int)TIDE__TRACE_VERSION);
    TIDE_TRY(tide__sql_exec(s, head, err));
    const tide__schema_item *tables, *views;
    const size_t n_tables = tide__schema_tables(&tables), n_views = tide__schema_views(&views);
    TIDE_TRY(create_items(s, tables, n_tables, err));
    TIDE_TRY(create_items(s, views, n_views, err));
    TIDE_TRY(fill_ops(s, err));
    TIDE_TRY(fill_kinds(s, err));
    TIDE_TRY(fill_meta(s, err));
    TIDE_TRY(tide__sql_exec(s, "INSERT INTO series(id) VALUES(0); COMMIT", err));
    // Here this is one write; of the file that has its name it would take a journal, synced. Where no log is possible
    // the store says so.
    return tide__sql_exec(s, "PRAGMA journal_mode = WAL", err);
}

tide_status tide__store_fill(const char *file, const char *label, tide_error *err) {
    tide__sql s = {.path = label};
    char *plain = tide__sql_file_name(file);
    if (plain == NULL) return TIDE_NO_MEMORY(err, "to record into '%s'", label);
    int rc = sqlite3_open_v2(plain, &s.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(plain);
    tide_status st = rc == SQLITE_OK ? fill(&s, err) : tide__sql_fail(&s, rc, "record into", err);
    rc = sqlite3_close(s.db);
    if (st == TIDE_OK && rc != SQLITE_OK) {
        s.db = NULL;
        st = tide__sql_fail(&s, rc, "record into", err);
    }
    return st;
}

static tide_status remove_old(const char *path, const char *name, tide_error *err) {
    if (unlink(name) == 0 || errno == ENOENT) return TIDE_OK;
    const tide_status st = tide_output_failed("record into", path, errno, err);
    tide_error_note(err, "'%s' of an older recording is in the way", name);
    return st;
}

/// What belongs to the trace that has the name now.
static tide_status remove_beside(const char *path, char *const *feeds, size_t n_feeds, tide_error *err) {
    char *plain = tide__sql_file_name(path);
    tide_status st = plain != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "to record into '%s'", path);
    for (size_t i = 0; i < N_COMPANIONS && st == TIDE_OK; i++) {
        char *name = join(plain, companions[i]);
        st = name != NULL ? remove_old(path, name, err) : TIDE_NO_MEMORY(err, "to record into '%s'", path);
        tide_host_free(name);
    }
    tide_host_free(plain);
    for (size_t i = 0; i < n_feeds && st == TIDE_OK; i++) st = remove_old(path, feeds[i], err);
    return st;
}

/// Fill the file of `o`, and let nothing of an older trace stay beside its place.
static tide_status make(const tide_output *o, const char *path, tide_error *err) {
    const char *target = tide_output_target(o);
    char **feeds = NULL;
    size_t n_feeds = 0;
    TIDE_TRY(tide__feed_list(target, &feeds, &n_feeds, err));
    tide_status st = check_feeds(path, feeds, n_feeds, err);
    tide__store_remove_strays(target);
    if (st == TIDE_OK) st = tide__store_fill(tide_output_file(o), path, err);
    if (st == TIDE_OK) st = remove_beside(target, feeds, n_feeds, err);
    free_paths(feeds, n_feeds);
    return st;
}

tide_status tide__store_create(const char *path, tide_error *err) {
    TIDE_TRY(check_path(path, err));
    tide_output *o;
    TIDE_TRY(tide_output_begin(path, &o, err));
    const tide_status st = make(o, path, err);
    if (st == TIDE_OK) return tide_output_end(o, err);
    tide_output_drop(o);
    return st;
}

// ---- feeds that were never finished ----
//
// A program that is killed while it begins to record leaves a feed without its final name: <trace>.feed-<pid>-<n>.new.
// (core/base/output removes a trace that was never finished.)

/// Behind "<pid>-<n>" in `text`, and the pid; NULL: it does not begin so.
static const char *take_numbers(const char *text, long *pid) {
    const size_t n_pid = strspn(text, "0123456789");
    if (n_pid == 0 || n_pid > 9 || text[n_pid] != '-') return NULL;
    *pid = strtol(text, NULL, 10);
    const char *rest = text + n_pid + 1;
    const size_t n = strspn(rest, "0123456789");
    return n > 0 ? rest + n : NULL;
}

/// Whether `name` is a feed in the making of the trace `base`; of which process.
static bool is_stray(const char *name, const char *base, long *pid) {
    const size_t n = strlen(base), n_feed = strlen(TIDE__FEED_INFIX);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, TIDE__FEED_INFIX, n_feed) != 0) return false;
    const char *rest = take_numbers(name + n + n_feed, pid);
    return rest != NULL && strcmp(rest, ".new") == 0;
}

void tide__store_remove_strays(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const int len = slash != NULL ? (int)(slash - path) + 1 : 1;
    if (len >= (int)sizeof folder) return;
    snprintf(folder, sizeof folder, "%.*s", len, slash != NULL ? path : ".");
    DIR *dir = opendir(folder);
    if (dir == NULL) return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        long pid = 0;
        if (!is_stray(e->d_name, base, &pid) || pid <= 0) continue;
        if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
}
