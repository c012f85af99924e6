// SPDX-License-Identifier: MIT
//
// Table all_blocks: rows and chunks alike, for queries. See block_reader.h.
//
//     WHERE id = 7                 ->  row 7 of table block, then the chunks whose numbers reach from below to above 7
//     WHERE alloc_event >= 5000    ->  rows, then chunks from event 5000 on
//     WHERE free_event IS NULL     ->  rows, then chunks with blocks that were never freed
//
// An eponymous virtual table: nothing about it is in the file. SQLite checks every row again.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/block_reader.h"
#include "profiler/store/cursor.h"
#include "profiler/store/schema.h"

enum {
    COLUMN_ID = 0,
    COLUMN_ALLOC = 2,
    COLUMN_FREE = 3,
    MAX_BOUNDS = 32,
    NEVER_FREED = 1, ///< bit of the plan's number
    SPARE = 4,       ///< readers, with the chunks they keep, that wait for the next question
};

typedef struct block_table {
    sqlite3_vtab base;
    const tide__sql *sql;
    tide__block_reader *spare[SPARE]; ///< [n_spare], owned
    size_t n_spare;
} block_table;

typedef struct block_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *stmt; ///< rows of table block; NULL: no more, or none yet
    tide__block_reader *reader;
    const tide__block_row *rows;
    size_t n, i; ///< n 0 and no statement: the end
} block_cursor;

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                         char **message) {
    (void)argc;
    (void)argv;
    (void)message;
    // With the types of table block: what is compared with them is converted alike.
    const int rc = sqlite3_declare_vtab(
        db, "CREATE TABLE x(id INTEGER, run_id INTEGER, alloc_event INTEGER, free_event INTEGER, alloc_ns INTEGER, "
            "free_requested_ns INTEGER, free_ns INTEGER, kind INTEGER, device INTEGER, stream INTEGER, "
            "requested_bytes INTEGER, reserved_bytes INTEGER, address INTEGER, thread INTEGER, allocator_id INTEGER, "
            "tag_id INTEGER, scope_id INTEGER)");
    if (rc != SQLITE_OK) return rc;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS); // it reads what any SELECT can read
    block_table *table = tide_host_calloc(1, sizeof *table);
    if (table == NULL) return SQLITE_NOMEM;
    table->sql = aux;
    *out = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base) {
    block_table *table = (block_table *)base;
    for (size_t i = 0; i < table->n_spare; i++) tide__block_reader_close(table->spare[i]);
    tide_host_free(table);
    return SQLITE_OK;
}

// ---- bounds ----

/// One letter per bound, in order of the arguments. 0: of no use.
static char letter_of(int column, int op) {
    if (column == COLUMN_ID || column == -1) return op == SQLITE_INDEX_CONSTRAINT_EQ ? 'i' : 0;
    if (column != COLUMN_ALLOC) return 0;
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return 'e';
    case SQLITE_INDEX_CONSTRAINT_GE:
    case SQLITE_INDEX_CONSTRAINT_GT:
        return 'g';
    case SQLITE_INDEX_CONSTRAINT_LE:
    case SQLITE_INDEX_CONSTRAINT_LT:
        return 'l';
    default:
        return 0;
    }
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
    (void)table;
    char letters[MAX_BOUNDS + 1];
    int n = 0;
    double rows = 1e7, cost = 1e7;
    for (int i = 0; i < info->nConstraint && n < MAX_BOUNDS; i++) {
        const int column = info->aConstraint[i].iColumn, op = info->aConstraint[i].op;
        if (!info->aConstraint[i].usable) continue;
        if (column == COLUMN_FREE && op == SQLITE_INDEX_CONSTRAINT_ISNULL) {
            info->idxNum = NEVER_FREED;
            rows /= 8;
            continue;
        }
        const char letter = letter_of(column, op);
        if (letter == 0) continue;
        letters[n++] = letter;
        info->aConstraintUsage[i].argvIndex = n; // bounds that are no integers are left alone
        rows = letter == 'i' || letter == 'e' ? 1 : rows / 8;
        cost = letter == 'i' || letter == 'e' ? 1e3 : cost / 8;
    }
    letters[n] = '\0';
    info->idxStr = sqlite3_mprintf("%s", letters);
    if (info->idxStr == NULL) return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
    info->estimatedCost = 100 + cost;
    return SQLITE_OK;
}

static void narrow(tide__block_question *q, char letter, int64_t v) {
    if (letter == 'i') {
        q->has_id = true;
        q->id = v;
    }
    if ((letter == 'e' || letter == 'g') && q->first_alloc < v) q->first_alloc = v;
    if ((letter == 'e' || letter == 'l') && q->last_alloc > v) q->last_alloc = v;
}

// ---- the scan ----

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out) {
    block_table *table = (block_table *)base;
    block_cursor *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return SQLITE_NOMEM;
    if (table->n_spare > 0) c->reader = table->spare[--table->n_spare];
    *out = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    block_cursor *c = (block_cursor *)base;
    block_table *table = (block_table *)base->pVtab;
    sqlite3_finalize(c->stmt);
    if (c->reader != NULL) {
        tide__block_reader_rest(c->reader);
        if (table->n_spare < SPARE) {
            table->spare[table->n_spare++] = c->reader;
        } else {
            tide__block_reader_close(c->reader);
        }
    }
    tide_host_free(c);
    return SQLITE_OK;
}

static int next_chunk(block_cursor *c) {
    tide_error err = TIDE_ERROR_INIT;
    c->i = 0;
    const tide_status st = tide__block_reader_next(c->reader, &c->rows, &c->n, &err);
    if (st == TIDE_OK) return SQLITE_OK;
    c->n = 0;
    return tide__sql_table_failed(c->base.pVtab, st, &err);
}

/// The next row of table block, or the first block of a chunk.
static int step_rows(block_cursor *c) {
    const int rc = sqlite3_step(c->stmt);
    if (rc == SQLITE_ROW) return SQLITE_OK;
    sqlite3_finalize(c->stmt);
    c->stmt = NULL;
    return rc == SQLITE_DONE ? next_chunk(c) : rc;
}

static tide_status ask(block_cursor *c, const tide__sql *s, const tide__block_question *q, tide_error *err) {
    sqlite3_finalize(c->stmt);
    c->stmt = NULL;
    c->n = c->i = 0;
    if (c->reader == NULL) TIDE_TRY(tide__block_reader_open(s, &c->reader, err));
    TIDE_TRY(tide__block_reader_ask(c->reader, q, err));
    TIDE_TRY(tide__sql_prepare(s,
                               q->has_id ? "SELECT " TIDE__BLOCK_COLUMNS " FROM main.block WHERE id = ?1"
                                         : "SELECT " TIDE__BLOCK_COLUMNS " FROM main.block ORDER BY id",
                               &c->stmt, err));
    if (q->has_id) sqlite3_bind_int64(c->stmt, 1, q->id);
    return TIDE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *letters, int argc, sqlite3_value **argv) {
    block_cursor *c = (block_cursor *)base;
    tide_error err = TIDE_ERROR_INIT;
    tide__block_question q = tide__all_blocks();
    q.only_never_freed = (number & NEVER_FREED) != 0;
    for (int i = 0; i < argc; i++)
        if (sqlite3_value_type(argv[i]) == SQLITE_INTEGER) narrow(&q, letters[i], sqlite3_value_int64(argv[i]));
    const tide_status st = ask(c, ((const block_table *)base->pVtab)->sql, &q, &err);
    return st == TIDE_OK ? step_rows(c) : tide__sql_table_failed(base->pVtab, st, &err);
}

static int next_row(sqlite3_vtab_cursor *base) {
    block_cursor *c = (block_cursor *)base;
    if (c->stmt != NULL) return step_rows(c);
    return ++c->i < c->n ? SQLITE_OK : next_chunk(c);
}

static int at_end(sqlite3_vtab_cursor *base) {
    const block_cursor *c = (const block_cursor *)base;
    return c->stmt == NULL && c->n == 0;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *out) {
    const block_cursor *c = (const block_cursor *)base;
    *out = c->stmt != NULL ? sqlite3_column_int64(c->stmt, COLUMN_ID) : c->rows[c->i].id;
    return SQLITE_OK;
}

/// A row of the file is given as it is, also where it is no block: the one who asks looks at it.
static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column_i) {
    const block_cursor *c = (const block_cursor *)base;
    if (c->stmt != NULL) {
        sqlite3_result_value(context, sqlite3_column_value(c->stmt, column_i));
    } else {
        tide__block_result(context, &c->rows[c->i], column_i);
    }
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

tide_status tide__block_table_register(const tide__sql *s, tide_error *err) {
    return tide__sql_register_table(s, "all_blocks", &module, err);
}
