// SPDX-License-Identifier: MIT
//
// An unfinished trace, open for writing: its connection, its statements, its transactions. See store.h; what is written
// is in store_write.c, what is read to go on in store_resume.c.
//
// Several connections write to one trace: the drain's, and one of each recorded process for its runs and facts. Each
// write is in a transaction that begins IMMEDIATE, so that nobody finds out at COMMIT that somebody else came first.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/host_alloc.h"
#include "profiler/store/store_internal.h"

enum {
    BUSY_MS = 10000,          // how long another writer is waited for
    MAX_LOG_BYTES = 96 << 20, // a log of that many pages stays as it is: to cut it and let it grow again costs
    CACHE_KIB = 8192,
};

static const char *const texts[TIDE__N_STMTS] = {
#define XX(name, text) [TIDE__STMT_##name] = (text),
    TIDE__STORE_STMT_MAP(XX)
#undef XX
};

tide_status tide__store_ready(tide__store *s, tide__store_stmt which, sqlite3_stmt **out, tide_error *err) {
    if (s->stmts[which] == NULL) TIDE_TRY(tide__sql_prepare(&s->sql, texts[which], &s->stmts[which], err));
    *out = s->stmts[which];
    return TIDE_OK;
}

tide_status tide__store_bad(const tide__store *s, const char *table, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot record into '%s'", s->path);
    tide_error_where(err, "%s: table %s", s->path, table);
    tide_error_note(err, "damaged: it holds what no recorder writes");
    return st;
}

void tide__store_finalize(tide__store *s) {
    for (size_t i = 0; i < TIDE__N_STMTS; i++) {
        sqlite3_finalize(s->stmts[i]);
        s->stmts[i] = NULL;
    }
    tide__rows_close(s->rows);
    s->rows = NULL;
}

const tide__sql *tide__store_sql(const tide__store *s) { return &s->sql; }

// ---- open ----

static tide_status refuse(const tide__store *s, const char *why, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot record into '%s': %s", s->path, why);
    tide_error_where(err, "%s", s->path);
    return st;
}

static tide_status check_head(const tide__store *s, tide_error *err) {
    int64_t id, version;
    TIDE_TRY(tide__sql_int(&s->sql, "PRAGMA application_id", 0, &id, err));
    TIDE_TRY(tide__sql_int(&s->sql, "PRAGMA user_version", 0, &version, err));
    if (id != TIDE__TRACE_APPLICATION_ID) return refuse(s, "it is not a tidemark trace", err);
    if (version == TIDE__TRACE_VERSION) return TIDE_OK;
    char why[64];
    snprintf(why, sizeof why, "it is a trace of version %" PRId64 ", not %d", version, (int)TIDE__TRACE_VERSION);
    return refuse(s, why, err);
}

/// The tables are the very ones of schema.c: no generated column, no trigger of somebody's has a say in what is
/// written.
static tide_status check_tables(const tide__store *s, tide_error *err) {
    const tide__schema_item *tables;
    const size_t n = tide__schema_tables(&tables);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide__sql_bind_text(stmt, 1, tables[i].name);
        bool has_row;
        st = tide__sql_step(&s->sql, stmt, &has_row, err);
        if (st == TIDE_OK && (!has_row || strcmp(tide__sql_text(stmt, 0), tables[i].sql) != 0))
            st = tide__store_bad(s, tables[i].name, err);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status check_state(const tide__store *s, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "SELECT value FROM meta WHERE key = 'state'", &stmt, err));
    bool has_row;
    tide_status st = tide__sql_step(&s->sql, stmt, &has_row, err);
    if (st == TIDE_OK && strcmp(tide__sql_text(stmt, 0), TIDE__STATE_RECORDING) != 0)
        st = refuse(s, has_row ? "that recording has ended" : "it does not say in what state it is", err);
    sqlite3_finalize(stmt);
    return st;
}

/// Also while other connections do the same: in this one step SQLite does not always wait by itself (with six of them,
/// once in some thousand times).
static tide_status enter_wal(const tide__store *s, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "PRAGMA journal_mode = WAL", &stmt, err));
    int rc = sqlite3_step(stmt);
    for (int ms = 0; (rc & 0xff) == SQLITE_BUSY && ms < BUSY_MS; ms++) {
        sqlite3_reset(stmt);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        rc = sqlite3_step(stmt);
    }
    tide_status st = rc == SQLITE_ROW ? TIDE_OK : tide__sql_fail(&s->sql, rc, "record into", err);
    if (st == TIDE_OK && strcmp(tide__sql_text(stmt, 0), "wal") != 0)
        st = TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot record into '%s': no write-ahead log is possible there", s->path);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status connect(tide__store *s, tide_error *err) {
    char *plain = tide__sql_file_name(s->path);
    if (plain == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", s->path);
    const int rc = sqlite3_open_v2(plain, &s->sql.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(plain);
    if (rc != SQLITE_OK) return tide__sql_fail(&s->sql, rc, "record into", err);
    sqlite3_busy_timeout(s->sql.db, BUSY_MS);
    tide__sql_guard(s->sql.db, true);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return TIDE_OK;
}

static tide_status configure(const tide__store *s, tide_error *err) {
    char text[256];
    // What thinning deletes need not be overwritten: it was the user's to begin with.
    snprintf(text, sizeof text,
             "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = %d; PRAGMA journal_size_limit = %d; "
             "PRAGMA cache_size = -%d; PRAGMA cell_size_check = ON; PRAGMA secure_delete = OFF",
             (int)TIDE__STORE_CHECKPOINT_PAGES, (int)MAX_LOG_BYTES, (int)CACHE_KIB);
    return tide__sql_exec(&s->sql, text, err);
}

static tide_status open_it(tide__store *s, tide_error *err) {
    TIDE_TRY(connect(s, err));
    TIDE_TRY(check_head(s, err));
    TIDE_TRY(check_tables(s, err));
    TIDE_TRY(check_state(s, err));
    TIDE_TRY(enter_wal(s, err));
    TIDE_TRY(configure(s, err));
    return tide__rows_open(&s->sql, &s->rows, err);
}

tide_status tide__store_open(const char *path, tide__store **out, tide_error *err) {
    tide__store *s = tide_host_calloc(1, sizeof *s);
    if (s != NULL) s->path = tide_host_strdup(path);
    if (s == NULL || s->path == NULL) {
        tide_host_free(s);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", path);
    }
    s->sql.path = s->path;
    s->n_leaves_since = TIDE__STORE_COUNT_LEAVES;
    const tide_status st = open_it(s, err);
    if (st != TIDE_OK) {
        tide__store_close(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

void tide__store_close(tide__store *s) {
    if (s == NULL) return;
    tide__store_finalize(s);
    sqlite3_close(s->sql.db);
    tide_host_free(s->chunk);
    tide_text_deinit(&s->snapshot);
    tide_host_free(s->path);
    tide_host_free(s);
}

// ---- transactions ----

tide_status tide__store_begin(tide__store *s, tide_error *err) {
    return tide__sql_exec(&s->sql, "BEGIN IMMEDIATE", err);
}

tide_status tide__store_end(tide__store *s, tide_status st, tide_error *err) {
    if (st == TIDE_OK) st = tide__sql_exec(&s->sql, "COMMIT", err);
    if (st == TIDE_OK) return st;
    if (sqlite3_get_autocommit(s->sql.db) == 0) sqlite3_exec(s->sql.db, "ROLLBACK", NULL, NULL, NULL);
    s->n_series = 0;
    s->first_kept = 0;
    return st;
}
