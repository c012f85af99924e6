// SPDX-License-Identifier: MIT
//
// The trace file while it is written. See store.h.
#include "profiler/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"

// ---- names of files ----

static tide_status check_path(const char *path, tide_error *err) {
    if (path[0] == '\0' || strcmp(path, "-") == 0) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': a trace is not a stream", path);
        tide_error_hint(err, "name a file, for example trace.db");
        return st;
    }
    // The finished file takes the place of whatever has its name: that must not be a device, a pipe or a directory.
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_IO, "cannot record into '%s': it is %s", path,
                     S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
}

/// The temporary file and what SQLite puts beside it. The names are made at the start: removing must not need memory.
static const char *const tmp_endings[TIDE__STORE_N_TMP] = {"", "-wal", "-shm", "-journal"};

static void remove_tmp(const tide__store *s) {
    for (size_t i = 0; i < TIDE__STORE_N_TMP; i++) {
        if (s->tmp_paths[i] != NULL) unlink(s->tmp_paths[i]);
    }
}

static void free_tmp_paths(tide__store *s) {
    for (size_t i = 0; i < TIDE__STORE_N_TMP; i++) {
        tide_host_free(s->tmp_paths[i]);
        s->tmp_paths[i] = NULL;
    }
}

static tide_status name_files(tide__store *s, const char *path, tide_error *err) {
    static atomic_uint n_opened; // two recorders of one process may aim at one name
    const unsigned number = atomic_fetch_add(&n_opened, 1u);
    char *plain = tide__sql_file_name(path);
    s->path = tide_host_strdup(path);
    s->sql.path = s->path;
    bool good = plain != NULL && s->path != NULL;
    for (size_t i = 0; good && i < TIDE__STORE_N_TMP; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s.tmp-%ld-%u%s", plain, (long)getpid(), number, tmp_endings[i]);
        s->tmp_paths[i] = name.data; // NULL or cut when there was no memory
        good = !name.failed;
    }
    tide_host_free(plain);
    if (good) return TIDE_OK;
    free_tmp_paths(s); // a cut name is the name of another file
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", path);
}

// ---- creation ----

static tide_status create_items(tide__store *s, const tide__schema_item *items, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) TIDE_TRY(tide__sql_exec(&s->sql, items[i].sql, err));
    return TIDE_OK;
}

static tide_status fill_lists(tide__store *s, tide_error *err) {
    static const struct {
        int id;
        const char *name;
    } ops[] = {
#define XX(name, value, text) {value, text},
        TIDE_MEMORY_OP_MAP(XX)
#undef XX
    };
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "INSERT INTO op VALUES(?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < sizeof ops / sizeof ops[0]; i++) {
        sqlite3_bind_int(stmt, 1, ops[i].id);
        tide__sql_bind_text(stmt, 2, ops[i].name);
        st = tide__sql_run(&s->sql, stmt, err);
    }
    sqlite3_finalize(stmt);
    if (st != TIDE_OK) return st;

    TIDE_TRY(tide__sql_prepare(&s->sql, "INSERT INTO kind VALUES(?, ?, ?)", &stmt, err));
    for (int kind = 0; st == TIDE_OK && kind < TIDE_N_KINDS; kind++) {
        sqlite3_bind_int(stmt, 1, kind);
        tide__sql_bind_text(stmt, 2, tide_memory_kind_name((tide_memory_kind)kind));
        tide__sql_bind_text(stmt, 3, tide_memory_kind_purpose((tide_memory_kind)kind));
        st = tide__sql_run(&s->sql, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status put_first_meta(tide__store *s, tide_error *err) {
    char now[32] = "";
    const time_t t = time(NULL);
    struct tm utc;
    if (gmtime_r(&t, &utc) != NULL) strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc);
    TIDE_TRY(tide__store_put_meta(s, "schema", TIDE__TRACE_SCHEMA, err));
    TIDE_TRY(tide__store_put_meta_int(s, "version", TIDE__TRACE_VERSION, err));
    TIDE_TRY(tide__store_put_meta(s, "created_by", "tidemark", err));
    TIDE_TRY(tide__store_put_meta(s, "created_utc", now, err));
    return tide__store_put_meta(s, "clock", "CLOCK_MONOTONIC, ns", err);
}

static tide_status prepare_all(tide__store *s, tide_error *err) {
    const struct {
        const char *text;
        sqlite3_stmt **stmt;
    } all[] = {
        {tide__schema_insert_event, &s->insert_event},
        {"INSERT INTO scope_event(id, run_id, t_ns, enter, scope_id, thread) VALUES(?, ?, ?, ?, ?, ?)",
         &s->insert_scope_event},
        {"INSERT INTO name(id, text) VALUES(?, ?)", &s->insert_name},
        {"INSERT INTO scope(id, name_id, kind, step, parent_id) VALUES(?, ?, ?, ?, ?)", &s->insert_scope},
        {"INSERT INTO device(id, name) VALUES(?, ?)", &s->insert_device},
        {"INSERT INTO meta(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
         &s->put_meta},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        TIDE_TRY(tide__sql_prepare(&s->sql, all[i].text, all[i].stmt, err));
    return TIDE_OK;
}

static tide_status create_schema(tide__store *s, tide_error *err) {
    tide_text head = {0};
    // The page size counts only before the first page is written; the ids only inside the database.
    tide_text_addf(&head, "PRAGMA page_size = 8192; PRAGMA application_id = %d; PRAGMA user_version = %d;",
                   (int)TIDE__TRACE_APPLICATION_ID, (int)TIDE__TRACE_VERSION);
    tide_text_add(&head, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 10000");
    tide_status st = head.failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", s->path)
                                 : tide__sql_exec(&s->sql, head.data, err);
    tide_text_deinit(&head);
    if (st != TIDE_OK) return st;

    const tide__schema_item *tables, *views;
    const size_t n_tables = tide__schema_tables(&tables), n_views = tide__schema_views(&views);
    TIDE_TRY(tide__store_begin(s, err));
    st = create_items(s, tables, n_tables, err);
    if (st == TIDE_OK) st = create_items(s, views, n_views, err);
    if (st == TIDE_OK) st = prepare_all(s, err);
    if (st == TIDE_OK) st = fill_lists(s, err);
    if (st == TIDE_OK) st = put_first_meta(s, err);
    return tide__store_end(s, st, err);
}

tide_status tide__store_open(tide__store *s, const char *path, tide_error *err) {
    *s = (tide__store){0};
    TIDE_TRY(check_path(path, err));
    tide_status st = name_files(s, path, err);
    if (st == TIDE_OK) {
        remove_tmp(s); // of a process that died with our number
        const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
        const int rc = sqlite3_open_v2(s->tmp_paths[0], &s->sql.db, flags, NULL);
        if (rc != SQLITE_OK) st = tide__sql_fail(&s->sql, rc, "record into", err);
    }
    if (st == TIDE_OK) st = create_schema(s, err);
    if (st != TIDE_OK) tide__store_discard(s);
    return st;
}

// ---- writing ----

tide_status tide__store_put_meta(tide__store *s, const char *key, const char *value, tide_error *err) {
    tide__sql_bind_text(s->put_meta, 1, key);
    tide__sql_bind_text(s->put_meta, 2, value);
    return tide__sql_run(&s->sql, s->put_meta, err);
}

tide_status tide__store_put_meta_int(tide__store *s, const char *key, int64_t value, tide_error *err) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return tide__store_put_meta(s, key, text, err);
}

tide_status tide__store_begin(tide__store *s, tide_error *err) { return tide__sql_exec(&s->sql, "BEGIN", err); }

tide_status tide__store_end(tide__store *s, tide_status st, tide_error *err) {
    if (st == TIDE_OK) st = tide__sql_exec(&s->sql, "COMMIT", err);
    if (st != TIDE_OK && sqlite3_get_autocommit(s->sql.db) == 0) sqlite3_exec(s->sql.db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

static tide_status write_names(tide__store *s, const tide__names *n, tide_error *err) {
    for (size_t i = 0; i < n->n_fresh; i++) {
        sqlite3_bind_int64(s->insert_name, 1, n->n_texts - (int64_t)(n->n_fresh - i) + 1);
        tide__sql_bind_text(s->insert_name, 2, n->fresh[i]);
        TIDE_TRY(tide__sql_run(&s->sql, s->insert_name, err));
    }
    static const char *const kinds[] = {
        [TIDE_SCOPE_REGION] = "region", [TIDE_SCOPE_RUN] = "run", [TIDE_SCOPE_OPERATOR] = "operator"};
    for (size_t i = n->n_scopes_written; i < n->n_scopes; i++) {
        const tide__scope_row *row = &n->scopes[i];
        sqlite3_bind_int64(s->insert_scope, 1, (int64_t)i + 1);
        sqlite3_bind_int64(s->insert_scope, 2, row->name_id);
        tide__sql_bind_text(s->insert_scope, 3, row->kind >= 0 && row->kind <= 2 ? kinds[row->kind] : "region");
        if (row->step >= 0) sqlite3_bind_int(s->insert_scope, 4, row->step);
        tide__sql_bind_id(s->insert_scope, 5, row->parent_id);
        TIDE_TRY(tide__sql_run(&s->sql, s->insert_scope, err));
    }
    for (size_t i = n->n_devices_written; i < n->n_devices; i++) {
        char text[32];
        sqlite3_bind_int64(s->insert_device, 1, (int64_t)i + 1);
        tide__sql_bind_text(s->insert_device, 2, tide_device_format(n->devices[i], text, sizeof text));
        TIDE_TRY(tide__sql_run(&s->sql, s->insert_device, err));
    }
    return TIDE_OK;
}

static tide_status write_event(tide__store *s, const tide__event_row *row, tide_error *err) {
    sqlite3_stmt *stmt = s->insert_event;
    int i = 1;
    sqlite3_bind_int64(stmt, i++, row->id);
#define REQUIRED(column) sqlite3_bind_int64(stmt, i++, row->column);
#define OPTIONAL(column) tide__sql_bind_id(stmt, i++, row->column);
    TIDE__EVENT_COLUMNS(REQUIRED, OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
    return tide__sql_run(&s->sql, stmt, err);
}

static tide_status write_scope_event(tide__store *s, const tide__scope_event_row *row, tide_error *err) {
    sqlite3_stmt *stmt = s->insert_scope_event;
    sqlite3_bind_int64(stmt, 1, row->id);
    tide__sql_bind_id(stmt, 2, row->run_id);
    sqlite3_bind_int64(stmt, 3, row->t_ns);
    sqlite3_bind_int64(stmt, 4, row->enter);
    sqlite3_bind_int64(stmt, 5, row->scope_id);
    sqlite3_bind_int64(stmt, 6, row->thread);
    return tide__sql_run(&s->sql, stmt, err);
}

tide_status tide__store_write(tide__store *s, const tide__batch *batch, tide_error *err) {
    TIDE_TRY(tide__store_begin(s, err));
    tide_status st = write_names(s, batch->names, err);
    for (size_t i = 0; st == TIDE_OK && i < batch->n_events; i++) st = write_event(s, &batch->events[i], err);
    for (size_t i = 0; st == TIDE_OK && i < batch->n_scope_events; i++)
        st = write_scope_event(s, &batch->scope_events[i], err);
    return tide__store_end(s, st, err);
}

// ---- the end ----

static void finalize_all(tide__store *s) {
    sqlite3_stmt **const all[] = {&s->insert_event, &s->insert_scope_event, &s->insert_name,
                                  &s->insert_scope, &s->insert_device,      &s->put_meta};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        sqlite3_finalize(*all[i]);
        *all[i] = NULL;
    }
}

/// Fold the write-ahead log in and leave WAL mode, so that one file remains. A reader that holds the file open would
/// leave it in WAL mode without an error: look at the mode that SQLite reports.
static tide_status leave_wal(tide__store *s, tide_error *err) {
    int rc = sqlite3_wal_checkpoint_v2(s->sql.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc != SQLITE_OK) return tide__sql_fail(&s->sql, rc, "write", err);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "PRAGMA journal_mode = DELETE", &stmt, err));
    rc = sqlite3_step(stmt);
    tide_status st = rc == SQLITE_ROW ? TIDE_OK : tide__sql_fail(&s->sql, rc, "write", err);
    if (st == TIDE_OK && strcmp(tide__sql_text(stmt, 0), "delete") != 0)
        st = TIDE_FAIL(err, TIDE_ERR_IO, "cannot write '%s': its write-ahead log is in use", s->path);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__store_seal(tide__store *s, tide_error *err) {
    finalize_all(s);
    tide_status st = leave_wal(s, err);
    if (st == TIDE_OK) {
        const int rc = sqlite3_close(s->sql.db);
        if (rc == SQLITE_OK) {
            s->sql.db = NULL;
        } else {
            st = tide__sql_fail(&s->sql, rc, "close", err);
        }
    }
    if (st == TIDE_OK && rename(s->tmp_paths[0], s->path) != 0)
        st = TIDE_FAIL(err, TIDE_ERR_IO, "cannot write '%s': %s", s->path, strerror(errno));
    if (st == TIDE_OK) free_tmp_paths(s); // nothing of these names is ours any more
    tide__store_discard(s);
    return st;
}

void tide__store_discard(tide__store *s) {
    finalize_all(s);
    sqlite3_close(s->sql.db);
    remove_tmp(s);
    free_tmp_paths(s);
    tide_host_free(s->path);
    *s = (tide__store){0};
}
