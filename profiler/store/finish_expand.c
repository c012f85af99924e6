// SPDX-License-Identifier: MIT
//
// Chunks become rows. See finish.h.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "profiler/store/chunk.h"
#include "profiler/store/cursor.h"
#include "profiler/store/finish.h"
#include "profiler/store/rows.h"

enum { PER_TRANSACTION = 1 << 20, BUSY_MS = 10000 };

typedef struct expansion {
    tide__sql sql;
    tide__rows *rows;
    sqlite3_stmt *next, *drop;
    tide__event events[TIDE__CHUNK_MAX_EVENTS];
} expansion;

/// The oldest chunk becomes rows. *n 0: there is none.
static tide_status expand_one(expansion *x, size_t *n, tide_error *err) {
    *n = 0;
    bool has_row;
    int64_t first = 0;
    tide_status st = tide__sql_step(&x->sql, x->next, &has_row, err);
    if (st == TIDE_OK && has_row) {
        first = sqlite3_column_int64(x->next, 0);
        const void *data = sqlite3_column_blob(x->next, 1);
        if (!tide__chunk_decode(data, (size_t)sqlite3_column_bytes(x->next, 1), x->events, n) ||
            x->events[0].id != first)
            st = tide__cursor_bad(&x->sql, "event_chunk", first, "a chunk of events is damaged", err);
    }
    sqlite3_reset(x->next);
    if (st != TIDE_OK || *n == 0) return st;
    // First away with it: its pages serve the rows.
    sqlite3_bind_int64(x->drop, 1, first);
    TIDE_TRY(tide__sql_run(&x->sql, x->drop, err));
    return tide__rows_insert_events(x->rows, x->events, *n, err);
}

/// One transaction. *n 0: nothing was left to do.
static tide_status expand_some(expansion *x, size_t *n_done, tide_error *err) {
    *n_done = 0;
    TIDE_TRY(tide__sql_exec(&x->sql, "BEGIN IMMEDIATE", err));
    tide_status st = TIDE_OK;
    size_t n = 1;
    while (st == TIDE_OK && n > 0 && *n_done < PER_TRANSACTION) {
        st = expand_one(x, &n, err);
        *n_done += n;
    }
    if (st == TIDE_OK) st = tide__sql_exec(&x->sql, "COMMIT", err);
    if (st != TIDE_OK && sqlite3_get_autocommit(x->sql.db) == 0) sqlite3_exec(x->sql.db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

static tide_status expansion_open(expansion *x, tide_error *err) {
    char *plain = tide__sql_file_name(x->sql.path);
    if (plain == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to expand '%s'", x->sql.path);
    const int rc = sqlite3_open_v2(plain, &x->sql.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(plain);
    if (rc != SQLITE_OK) return tide__sql_fail(&x->sql, rc, "open", err);
    sqlite3_busy_timeout(x->sql.db, BUSY_MS);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(x->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    TIDE_TRY(tide__sql_exec(&x->sql, "PRAGMA cache_size = -8192; PRAGMA secure_delete = OFF", err));
    TIDE_TRY(tide__rows_open(&x->sql, &x->rows, err));
    TIDE_TRY(tide__sql_prepare(&x->sql, "SELECT first_event, data FROM main.event_chunk ORDER BY first_event LIMIT 1",
                               &x->next, err));
    return tide__sql_prepare(&x->sql, "DELETE FROM main.event_chunk WHERE first_event = ?", &x->drop, err);
}

static void expansion_close(expansion *x) {
    sqlite3_finalize(x->next);
    sqlite3_finalize(x->drop);
    tide__rows_close(x->rows);
    sqlite3_close(x->sql.db);
    tide_host_free(x);
}

tide_status tide__finish_expand(const char *path, tide_error *err) {
    expansion *x = tide_host_calloc(1, sizeof *x);
    if (x == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to expand '%s'", path);
    x->sql.path = path;
    tide_status st = expansion_open(x, err);
    for (size_t n = 1; st == TIDE_OK && n > 0;) st = expand_some(x, &n, err);
    expansion_close(x);
    return st;
}
