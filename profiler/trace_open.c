// SPDX-License-Identifier: MIT
//
// Opening a trace: is it one, can this version read it, is all of it there. See query.h.
//
// A trace may come from anywhere. Nothing in it is trusted: its tables must be the very ones of schema.c (a view of the
// same name could compute for ever), its views and triggers are never used, and every number is checked where it is
// read.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/host_alloc.h"
#include "profiler/schema.h"
#include "profiler/trace_internal.h"

enum { MAX_VALUE_BYTES = 1 << 24 }; // longest text of a trace that is read

// ---- by content ----

static uint32_t big_endian(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

// Source: https://www.sqlite.org/fileformat2.html, 1.3: text at 0, user version at 60, application id at 68.
static bool is_sqlite(const unsigned char *head, size_t n) {
    return n >= 100 && memcmp(head, "SQLite format 3", 16) == 0;
}

bool tide_trace_recognise(const void *head, size_t n_bytes) {
    const unsigned char *bytes = head;
    return is_sqlite(bytes, n_bytes) && big_endian(bytes + 68) == TIDE__TRACE_APPLICATION_ID;
}

static tide_status not_a_trace(const char *path, const char *why, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is not a tidemark trace", path);
    tide_error_where(err, "%s", path);
    tide_error_note(err, "%s", why);
    return st;
}

static tide_status check_version(const char *path, uint32_t version, tide_error *err) {
    if (version == TIDE__TRACE_VERSION) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': trace version %" PRIu32, path, version);
    tide_error_where(err, "%s", path);
    tide_error_note(err, "this tidemark reads version %d", (int)TIDE__TRACE_VERSION);
    if (version > TIDE__TRACE_VERSION) tide_error_hint(err, "a newer tidemark wrote it: read it with that one");
    return st;
}

static tide_status check_head(const char *path, tide_error *err) {
    struct stat info;
    if (stat(path, &info) != 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': it is a directory", path);
    if (!S_ISREG(info.st_mode)) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': it is not a regular file", path);
    FILE *f = fopen(path, "rb");
    if (f == NULL) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    unsigned char head[TIDE_TRACE_HEAD_BYTES] = {0};
    const size_t n = fread(head, 1, sizeof head, f);
    const bool failed = ferror(f) != 0;
    fclose(f);
    if (failed) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read '%s'", path);
    if (n == 0) return not_a_trace(path, "the file is empty", err);
    if (!is_sqlite(head, n)) return not_a_trace(path, "it is no SQLite database", err);
    if (!tide_trace_recognise(head, n)) return not_a_trace(path, "it is an SQLite database of another program", err);
    return check_version(path, big_endian(head + 60), err);
}

// ---- what is inside ----

static tide_status damaged(const tide_trace *t, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", t->path);
    tide_error_where(err, "%s", t->path);
    return st;
}

static tide_status check_tables(const tide_trace *t, tide_error *err) {
    const tide__schema_item *tables;
    const size_t n = tide__schema_tables(&tables);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide__sql_bind_text(stmt, 1, tables[i].name);
        bool has_row;
        st = tide__sql_step(&t->sql, stmt, &has_row, err);
        if (st == TIDE_OK && (!has_row || strcmp(tide__sql_text(stmt, 0), tables[i].sql) != 0)) {
            st = damaged(t, err);
            tide_error_note(err, "damaged: table %s is %s", tables[i].name,
                            has_row ? "not the one of this version" : "missing");
        }
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

/// A number of table meta; absent or no number: damaged.
static tide_status meta_number(tide_trace *t, const char *key, int64_t *out, tide_error *err) {
    char text[32];
    const tide_status st = tide_trace_meta(t, key, text, sizeof text, err);
    if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) return st;
    char *end = text;
    errno = 0;
    if (st == TIDE_OK) *out = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0) return TIDE_OK;
    damaged(t, err);
    tide_error_note(err, "damaged: meta has no number '%s'", key);
    return TIDE_ERR_BAD_INPUT;
}

static tide_status check_totals(tide_trace *t, tide_error *err) {
    static const struct {
        const char *key, *what, *query;
    } all[] = {
        {"n_events", "events", "SELECT count(*) FROM event"},
        {"n_scope_events", "scope events", "SELECT count(*) FROM scope_event"},
        {"n_blocks", "blocks", "SELECT count(*) FROM block"},
        {"n_runs", "runs", "SELECT count(*) FROM run"},
        {"n_names", "names", "SELECT count(*) FROM name"},
        {"n_scopes", "scopes", "SELECT count(*) FROM scope"},
        {"requested_bytes", "requested bytes", "SELECT sum(requested_bytes) FROM block"},
        {"freed_bytes", "freed bytes", "SELECT sum(requested_bytes) FROM block WHERE free_event IS NOT NULL"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int64_t recorded, found;
        TIDE_TRY(meta_number(t, all[i].key, &recorded, err));
        TIDE_TRY(tide__sql_int(&t->sql, all[i].query, 0, &found, err));
        if (recorded == found) continue;
        const tide_status st = damaged(t, err);
        tide_error_note(err, "damaged: %" PRId64 " %s recorded, %" PRId64 " found", recorded, all[i].what, found);
        return st;
    }
    return TIDE_OK;
}

static tide_status check_content(tide_trace *t, tide_error *err) {
    TIDE_TRY(check_tables(t, err));
    char schema[32];
    const tide_status st = tide_trace_meta(t, "schema", schema, sizeof schema, err);
    if (st == TIDE_ERR_NOT_FOUND || (st == TIDE_OK && strcmp(schema, TIDE__TRACE_SCHEMA) != 0)) {
        damaged(t, err);
        tide_error_note(err, "damaged: meta does not say '%s'", TIDE__TRACE_SCHEMA);
        return TIDE_ERR_BAD_INPUT;
    }
    TIDE_TRY(st);
    return check_totals(t, err);
}

// ---- open ----

static tide_status connect(tide_trace *t, tide_error *err) {
    char *name = tide__sql_file_name(t->path);
    if (name == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to open '%s'", t->path);
    const int rc = sqlite3_open_v2(name, &t->sql.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(name);
    if (rc != SQLITE_OK) return tide__sql_fail(&t->sql, rc, "open", err);
    sqlite3_db_config(t->sql.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(t->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(t->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(t->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_limit(t->sql.db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_exec(t->sql.db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
    return TIDE_OK;
}

tide_status tide_trace_open(const char *path, tide_trace **out, tide_error *err) {
    TIDE_TRY(check_head(path, err));
    tide_trace *t = tide_host_calloc(1, sizeof *t);
    char *copy = tide_host_strdup(path);
    if (t == NULL || copy == NULL) {
        tide_host_free(t);
        tide_host_free(copy);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to open '%s'", path);
    }
    t->path = copy;
    t->sql.path = copy;
    tide_status st = connect(t, err);
    if (st == TIDE_OK) st = check_content(t, err);
    if (st != TIDE_OK) {
        tide_trace_close(t);
        return st;
    }
    *out = t;
    return TIDE_OK;
}

void tide_trace_close(tide_trace *t) {
    if (t == NULL) return;
    sqlite3_close(t->sql.db);
    tide_host_free(t->path);
    tide_host_free(t);
}

tide_status tide_trace_meta(tide_trace *t, const char *key, char *buf, size_t buf_bytes, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT value FROM meta WHERE key = ?", &stmt, err));
    tide__sql_bind_text(stmt, 1, key);
    bool has_row;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) {
        tide__trace_copy_text(buf, buf_bytes, tide__sql_text(stmt, 0));
    } else if (st == TIDE_OK) {
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no meta '%s'", t->path, key);
    }
    sqlite3_finalize(stmt);
    return st;
}
