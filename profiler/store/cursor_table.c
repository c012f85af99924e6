// SPDX-License-Identifier: MIT
//
// Table all_events: rows and chunks alike, for queries of a user. See cursor.h.
//
//     WHERE id >= 5 AND t_ns < 900   ->   events 5 to event_at(899)   ->   cursor
//
// An eponymous virtual table: nothing about it is in the file.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/cursor.h"
#include "profiler/store/rows.h"

enum { COLUMN_ID = 0, COLUMN_T_NS = 2, MAX_BOUNDS = 32 };

typedef struct event_table {
    sqlite3_vtab base;
    const tide__sql *sql;
} event_table;

typedef struct event_cursor {
    sqlite3_vtab_cursor base;
    tide__cursor *cursor; ///< NULL: no event fits
    const tide__event *events;
    size_t n, i;
} event_cursor;

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                         char **message) {
    (void)argc;
    (void)argv;
    (void)message;
    // With the types of table event: what is compared with them is converted alike.
    const int rc = sqlite3_declare_vtab(
        db, "CREATE TABLE x(id INTEGER, run_id INTEGER, t_ns INTEGER, op INTEGER, block_id INTEGER, kind INTEGER, "
            "device INTEGER, stream INTEGER, requested_bytes INTEGER, reserved_bytes INTEGER, address INTEGER, "
            "thread INTEGER, allocator_id INTEGER, tag_id INTEGER, scope_id INTEGER)");
    if (rc != SQLITE_OK) return rc;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS); // it reads what any SELECT can read
    event_table *table = tide_host_calloc(1, sizeof *table);
    if (table == NULL) return SQLITE_NOMEM;
    table->sql = aux;
    *out = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table) {
    tide_host_free(table);
    return SQLITE_OK;
}

// ---- bounds ----

/// One letter per bound, in order of the arguments: column, then operation.
static char letter_of(int column, int op) {
    const bool id = column == COLUMN_ID;
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return id ? 'e' : 'E';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return id ? 'g' : 'G';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return id ? 'h' : 'H';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return id ? 'l' : 'L';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return id ? 'k' : 'K';
    default:
        return 0;
    }
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
    (void)table;
    char letters[MAX_BOUNDS + 1];
    int n = 0;
    double rows = 1e7;
    for (int i = 0; i < info->nConstraint && n < MAX_BOUNDS; i++) {
        const int column = info->aConstraint[i].iColumn;
        if (!info->aConstraint[i].usable || (column > COLUMN_ID && column != COLUMN_T_NS)) continue;
        const char letter = letter_of(column == COLUMN_T_NS ? COLUMN_T_NS : COLUMN_ID, info->aConstraint[i].op);
        if (letter == 0) continue;
        letters[n++] = letter;
        info->aConstraintUsage[i].argvIndex = n; // checked again by SQLite: bounds that are no integers are left alone
        rows = letter == 'e' ? 1 : rows / 8;
    }
    letters[n] = '\0';
    info->idxStr = sqlite3_mprintf("%s", letters);
    if (info->idxStr == NULL) return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
    info->estimatedCost = 100 + rows / 10;
    const int by = info->nOrderBy == 1 && !info->aOrderBy[0].desc ? info->aOrderBy[0].iColumn : -2;
    info->orderByConsumed = by == -1 || by == COLUMN_ID || by == COLUMN_T_NS; // both rise together
    return SQLITE_OK;
}

/// Narrow [*first, *last] by one bound.
static tide_status narrow(const tide__sql *s, char letter, int64_t v, int64_t *first, int64_t *last, tide_error *err) {
    const bool by_time = letter < 'a';
    const char op = by_time ? (char)(letter + 'a' - 'A') : letter;
    int64_t lo = INT64_MIN, hi = INT64_MAX;
    if (op == 'e' || op == 'g') lo = v;
    if (op == 'h') lo = v < INT64_MAX ? v + 1 : INT64_MAX;
    if (op == 'e' || op == 'l') hi = v;
    if (op == 'k') hi = v > INT64_MIN ? v - 1 : INT64_MIN;
    if (by_time) {
        int64_t id;
        if (lo > 0) {
            TIDE_TRY(tide__cursor_event_at(s, lo - 1, &id, err));
            lo = id + 1;
        }
        if (hi < INT64_MAX) {
            TIDE_TRY(tide__cursor_event_at(s, hi, &id, err));
            hi = id;
        }
    }
    if (*first < lo) *first = lo;
    if (*last > hi) *last = hi;
    return TIDE_OK;
}

// ---- the scan ----

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out) {
    (void)table;
    event_cursor *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return SQLITE_NOMEM;
    *out = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    event_cursor *c = (event_cursor *)base;
    tide__cursor_close(c->cursor);
    tide_host_free(c);
    return SQLITE_OK;
}

static int next_batch(event_cursor *c) {
    tide_error err = TIDE_ERROR_INIT;
    c->i = 0;
    const tide_status st = tide__cursor_next(c->cursor, &c->events, &c->n, &err);
    if (st == TIDE_OK) return SQLITE_OK;
    c->n = 0;
    return tide__sql_table_failed(c->base.pVtab, st, &err);
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *letters, int argc, sqlite3_value **argv) {
    (void)number;
    event_cursor *c = (event_cursor *)base;
    const tide__sql *s = ((const event_table *)base->pVtab)->sql;
    tide_error err = TIDE_ERROR_INIT;
    int64_t first = 1, last = INT64_MAX;
    tide_status st = TIDE_OK;
    for (int i = 0; st == TIDE_OK && i < argc; i++)
        if (sqlite3_value_type(argv[i]) == SQLITE_INTEGER)
            st = narrow(s, letters[i], sqlite3_value_int64(argv[i]), &first, &last, &err);
    if (st == TIDE_OK)
        st = c->cursor == NULL ? tide__cursor_open(s, first, last, &c->cursor, &err)
                               : tide__cursor_seek(c->cursor, first, last, &err);
    return st == TIDE_OK ? next_batch(c) : tide__sql_table_failed(base->pVtab, st, &err);
}

static int next_row(sqlite3_vtab_cursor *base) {
    event_cursor *c = (event_cursor *)base;
    return ++c->i < c->n ? SQLITE_OK : next_batch(c);
}

static int at_end(sqlite3_vtab_cursor *base) { return ((const event_cursor *)base)->n == 0; }

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *out) {
    const event_cursor *c = (const event_cursor *)base;
    *out = c->events[c->i].id;
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column_i) {
    const event_cursor *c = (const event_cursor *)base;
    tide__event_result(context, &c->events[c->i], column_i);
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = connect_table,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next_row,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = row_id,
};

tide_status tide__cursor_register(const tide__sql *s, tide_error *err) {
    return tide__sql_register_table(s, "all_events", &module, err);
}
