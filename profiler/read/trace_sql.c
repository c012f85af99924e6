// SPDX-License-Identifier: MIT
//
// A query of the user's; values of meta as lines. See tide_trace_sql and tide_trace_meta_lines in query.h.
//
// A query runs on a connection of its own, which may only read. The views are those of this program and not those of
// the file: TEMP ones, made anew for each query, so that a trace of unknown origin cannot bring its own. Where events
// or blocks lie in chunks, `event` or `block` is a view over both:
//
//     file        meta  name  block ...  event  event_chunk
//     temp        views          event = all_events, block = all_blocks (when there are chunks)
//                                block, step (when it is unfinished)
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/read/moments_internal.h"
#include "profiler/store/block_reader.h"
#include "profiler/store/finish.h"
#include "profiler/store/schema.h"

// ---- what may run ----

static int only_reading(void *ctx, int action, const char *a, const char *b, const char *database,
                        const char *trigger) {
    static const char *const pragmas[] = {"table_info",    "table_xinfo",   "table_list", "index_list", "index_info",
                                          "database_list", "function_list", "page_count", "page_size",  "user_version"};
    (void)ctx;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return b != NULL && sqlite3_stricmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
        for (size_t i = 0; i < sizeof pragmas / sizeof pragmas[0]; i++)
            if (sqlite3_stricmp(a, pragmas[i]) == 0) return SQLITE_OK;
        return SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/// What SQLite says of the user's text is the user's error; of the file it is the file's.
static tide_status refuse(const tide__sql *s, int rc, tide_error *err) {
    const int code = rc & 0xff;
    if (code != SQLITE_ERROR && code != SQLITE_AUTH && code != SQLITE_MISUSE && code != SQLITE_RANGE &&
        code != SQLITE_TOOBIG && code != SQLITE_MISMATCH)
        return tide__sql_fail(s, rc, "query", err);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot query '%s': %s", s->path, sqlite3_errmsg(s->db));
    if (code == SQLITE_AUTH) tide_error_note(err, "a trace can be read, not changed: one SELECT");
    return st;
}

// ---- the views ----

/// `view` with TEMP put in. The one that only looks for the ends of the table looks at the table, which has an order.
static void add_view(const tide__schema_item *view, bool has_chunks, tide_text *out) {
    static const char create[] = "CREATE ", from[] = "FROM event ";
    tide_text_add(out, "CREATE TEMP ");
    const char *rest = view->sql + strlen(create);
    if (has_chunks && strcmp(view->name, "span") == 0) {
        for (const char *at; (at = strstr(rest, from)) != NULL; rest = at + strlen(from)) {
            tide_text_add_n(out, rest, (size_t)(at - rest));
            tide_text_add(out, "FROM main.event ");
        }
    }
    tide_text_add(out, rest);
    tide_text_add(out, ";\n");
}

static tide_status make_views(const tide__sql *s, bool is_packed, tide_error *err) {
    const tide__schema_item *views;
    const size_t n = tide__schema_views(&views);
    int64_t n_chunks;
    tide_text all = {0};
    TIDE_TRY(tide__sql_int(s, "SELECT sum(1) FROM main.event_chunk", 0, &n_chunks, err));
    for (size_t i = 0; i < n; i++) add_view(&views[i], n_chunks > 0, &all);
    if (n_chunks > 0)
        tide_text_add(&all, "CREATE TEMP VIEW event AS SELECT " TIDE__EVENT_COLUMNS " FROM all_events;\n");
    if (is_packed) tide_text_add(&all, "CREATE TEMP VIEW block AS SELECT " TIDE__BLOCK_COLUMNS " FROM all_blocks;\n");
    const tide_status st =
        all.failed ? TIDE_NO_MEMORY(err, "to query '%s'", s->path) : tide__sql_exec(s, tide_text_str(&all), err);
    tide_text_deinit(&all);
    return st;
}

// ---- rows as text ----

/// What would end a row or a column becomes '?': a row stays a line.
static void add_words(const char *text, tide_text *out) {
    while (*text != '\0') {
        const size_t n = strcspn(text, "\t\n\r");
        tide_text_add_n(out, text, n);
        text += n;
        if (*text != '\0') tide_text_add(out, "?"), text++;
    }
}

static void add_cell(sqlite3_stmt *stmt, int i, tide_text *out) {
    if (sqlite3_column_type(stmt, i) != SQLITE_BLOB) {
        const char *text = (const char *)sqlite3_column_text(stmt, i);
        if (text != NULL) add_words(text, out);
        return;
    }
    const unsigned char *bytes = sqlite3_column_blob(stmt, i);
    const int n = sqlite3_column_bytes(stmt, i);
    tide_text_add(out, "x'");
    for (int k = 0; k < n; k++) {
        static const char digits[] = "0123456789abcdef";
        const char pair[2] = {digits[bytes[k] >> 4], digits[bytes[k] & 15]};
        tide_text_add_n(out, pair, 2);
    }
    tide_text_add(out, "'");
}

static tide_status print_rows(const tide__sql *s, sqlite3_stmt *stmt, const char *separator, size_t max_rows,
                              tide_text *out, tide_error *err) {
    const int n_columns = sqlite3_column_count(stmt);
    for (int i = 0; i < n_columns; i++) {
        if (i > 0) tide_text_add(out, separator);
        tide_text_add(out, sqlite3_column_name(stmt, i));
    }
    tide_text_add(out, "\n");
    for (size_t row = 0; max_rows == 0 || row < max_rows; row++) {
        const int rc = sqlite3_step(stmt);
        if (rc == SQLITE_DONE) break;
        if (rc != SQLITE_ROW) return refuse(s, rc, err);
        for (int i = 0; i < n_columns; i++) {
            if (i > 0) tide_text_add(out, separator);
            add_cell(stmt, i, out);
        }
        tide_text_add(out, "\n");
        if (out->failed) break;
    }
    return out->failed ? TIDE_NO_MEMORY(err, "for the rows of '%s'", s->path) : TIDE_OK;
}

// ---- the query ----

/// One statement, which reads and returns rows.
static tide_status prepare(const tide__sql *s, const char *query, sqlite3_stmt **out, tide_error *err) {
    const char *rest = query;
    *out = NULL;
    while (*out == NULL && *rest != '\0') { // comments and empty statements come before
        const int rc = sqlite3_prepare_v2(s->db, rest, -1, out, &rest);
        if (rc != SQLITE_OK) return refuse(s, rc, err);
    }
    if (*out == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot query '%s': the query is empty", s->path);
    while (*rest != '\0') {
        sqlite3_stmt *second = NULL;
        const int rc = sqlite3_prepare_v2(s->db, rest, -1, &second, &rest);
        sqlite3_finalize(second);
        if (rc != SQLITE_OK || second != NULL)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot query '%s': more than one statement", s->path);
    }
    if (sqlite3_stmt_readonly(*out) && sqlite3_column_count(*out) > 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot query '%s': only a SELECT has an answer", s->path);
}

static tide_status run(const tide_trace *t, const tide__sql *s, const char *query, const char *separator,
                       size_t max_rows, tide_text *out, tide_error *err) {
    TIDE_TRY(tide__cursor_register(s, err));
    TIDE_TRY(tide__block_table_register(s, err));
    if (t->state == TIDE_TRACE_RECORDING) TIDE_TRY(tide__finish_tables(s, true, err));
    bool is_packed = false;
    if (t->state != TIDE_TRACE_RECORDING) TIDE_TRY(tide__blocks_are_packed(s, &is_packed, err));
    TIDE_TRY(make_views(s, is_packed, err));
    // Connected: the authorizer would refuse that.
    TIDE_TRY(tide__sql_exec(s, "SELECT 1 FROM all_events LIMIT 0; SELECT 1 FROM all_blocks LIMIT 0", err));
    sqlite3_set_authorizer(s->db, only_reading, NULL);
    tide__sql_guard(s->db, false); // it may take as long as it likes
    sqlite3_stmt *stmt;
    tide_status st = prepare(s, query, &stmt, err);
    if (st == TIDE_OK) st = print_rows(s, stmt, separator, max_rows, out, err);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_sql(tide_trace *t, const char *query, const char *separator, size_t max_rows, tide_text *out,
                           tide_error *err) {
    tide__sql s = {.path = t->path};
    TIDE_TRY(tide__trace_connect(t->path, &s.db, err));
    const tide_status st = run(t, &s, query, separator, max_rows, out, err);
    sqlite3_close(s.db);
    return st;
}

// ---- values of meta ----

tide_status tide_trace_meta_lines(const tide_trace *t, const char *prefix, tide_text *out, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql, "SELECT value FROM main.meta WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key", &stmt, err));
    tide__sql_bind_text(stmt, 1, prefix);
    bool has_row = true;
    tide_status st;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        add_words(tide__sql_text(stmt, 0), out);
        tide_text_add(out, "\n");
    }
    sqlite3_finalize(stmt);
    if (st == TIDE_OK && out->failed) st = TIDE_NO_MEMORY(err, "for what '%s' says", t->path);
    return st;
}
