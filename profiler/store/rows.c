// SPDX-License-Identifier: MIT
//
// Arrays in memory as rows of two virtual tables. See rows.h.
//
// The tables are eponymous table-valued functions, so the file says nothing about them. The array comes as a pointer
// that is bound to a statement of ours (sqlite3_bind_pointer), which no SQL text can forge.
#include "profiler/store/rows.h"

#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/schema.h"

enum {
    N_EVENT_COLUMNS = 15,
    N_BLOCK_COLUMNS = 17,
};

/// What is bound to a statement.
typedef struct batch {
    const void *items;
    size_t n;
} batch;

typedef struct kind_of_rows {
    const char *name;    // of the table, and of the pointer's type
    const char *declare; // its columns, the last one hidden
    int hidden_i;
    size_t item_bytes;
} kind_of_rows;

typedef struct rows_table {
    sqlite3_vtab base;
    const kind_of_rows *kind;
} rows_table;

typedef struct rows_cursor {
    sqlite3_vtab_cursor base;
    const char *at, *end;
    size_t item_bytes;
} rows_cursor;

static const kind_of_rows event_rows = {
    .name = "tide_event_rows",
    .declare = "CREATE TABLE x(" TIDE__EVENT_COLUMNS ", batch HIDDEN)",
    .hidden_i = N_EVENT_COLUMNS,
    .item_bytes = sizeof(tide__event),
};
static const kind_of_rows block_rows = {
    .name = "tide_block_rows",
    .declare = "CREATE TABLE x(" TIDE__BLOCK_COLUMNS ", batch HIDDEN)",
    .hidden_i = N_BLOCK_COLUMNS,
    .item_bytes = sizeof(tide__block_row),
};

// ---- the virtual tables ----

static int rows_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **message) {
    (void)argc;
    (void)argv;
    (void)message;
    const kind_of_rows *kind = aux;
    const int rc = sqlite3_declare_vtab(db, kind->declare);
    if (rc != SQLITE_OK) return rc;
    sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
    rows_table *table = tide_host_calloc(1, sizeof *table);
    if (table == NULL) return SQLITE_NOMEM;
    table->kind = kind;
    *out = &table->base;
    return SQLITE_OK;
}

static int rows_disconnect(sqlite3_vtab *table) {
    tide_host_free(table);
    return SQLITE_OK;
}

static int rows_best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
    const int hidden_i = ((const rows_table *)table)->kind->hidden_i;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn != hidden_i || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
        if (!info->aConstraint[i].usable) return SQLITE_CONSTRAINT;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->estimatedCost = 1;
        return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT; // there is no table without an array
}

static int rows_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out) {
    rows_cursor *cursor = tide_host_calloc(1, sizeof *cursor);
    if (cursor == NULL) return SQLITE_NOMEM;
    cursor->item_bytes = ((const rows_table *)table)->kind->item_bytes;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int rows_close(sqlite3_vtab_cursor *cursor) {
    tide_host_free(cursor);
    return SQLITE_OK;
}

static int rows_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv) {
    (void)number;
    (void)text;
    rows_cursor *cursor = (rows_cursor *)base;
    const char *type = ((const rows_table *)base->pVtab)->kind->name;
    const batch *b = argc == 1 ? sqlite3_value_pointer(argv[0], type) : NULL;
    cursor->at = b != NULL ? b->items : NULL;
    cursor->end = b != NULL ? cursor->at + b->n * cursor->item_bytes : NULL;
    return SQLITE_OK;
}

static int rows_next(sqlite3_vtab_cursor *base) {
    rows_cursor *cursor = (rows_cursor *)base;
    cursor->at += cursor->item_bytes;
    return SQLITE_OK;
}

static int rows_eof(sqlite3_vtab_cursor *base) {
    const rows_cursor *cursor = (const rows_cursor *)base;
    return cursor->at == cursor->end;
}

static int rows_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out) {
    memcpy(out, ((const rows_cursor *)base)->at, sizeof *out); // both rows begin with their id
    return SQLITE_OK;
}

// ---- columns ----

unsigned tide__event_columns(int op) {
    enum { ALL = TIDE__HAS_STREAM | TIDE__HAS_REQUESTED | TIDE__HAS_RESERVED | TIDE__HAS_ADDRESS };
    switch (op) {
    case TIDE_MEM_POOL_DISCARD:
        return TIDE__HAS_STREAM | TIDE__HAS_RESERVED | TIDE__HAS_ADDRESS;
    case TIDE_MEM_OOM:
        return TIDE__HAS_STREAM | TIDE__HAS_REQUESTED;
    case TIDE_MEM_DEVICE_USAGE:
        return TIDE__HAS_REQUESTED | TIDE__HAS_RESERVED;
    case TIDE__OP_GAP:
        return TIDE__HAS_REQUESTED;
    case TIDE_MEM_SNAPSHOT:
    case TIDE__OP_SCOPE_ENTER:
    case TIDE__OP_SCOPE_LEAVE:
        return 0;
    default:
        return ALL;
    }
}

/// A number that is NULL for `none`.
#define UNLESS(none, number) (*value = (number), *value != (none))
#define ALWAYS(number) (*value = (number), true)
/// A number that the operation always has, or that is there nevertheless.
#define OF_OP(column, number) (*value = (number), *value != 0 || (tide__event_columns(e->op) & (column)) != 0)

/// False: NULL.
static inline bool event_value(const tide__event *e, int column, int64_t *value) {
    switch (column) {
    case 0:
        return ALWAYS(e->id);
    case 1:
        return UNLESS(0, e->run_id);
    case 2:
        return ALWAYS(e->t_ns);
    case 3:
        return ALWAYS(e->op);
    case 4:
        return UNLESS(0, e->block_id);
    case 5:
        return UNLESS(TIDE__NO_KIND, e->kind);
    case 6:
        return UNLESS(0, e->device);
    case 7:
        return OF_OP(TIDE__HAS_STREAM, e->stream);
    case 8:
        return OF_OP(TIDE__HAS_REQUESTED, e->requested_bytes);
    case 9:
        return OF_OP(TIDE__HAS_RESERVED, e->reserved_bytes);
    case 10:
        return OF_OP(TIDE__HAS_ADDRESS, e->address);
    case 11:
        return ALWAYS(e->thread);
    case 12:
        return UNLESS(0, e->allocator_id);
    case 13:
        return UNLESS(0, e->tag_id);
    case 14:
        return UNLESS(0, e->scope_id);
    default:
        return false;
    }
}

static inline bool block_value(const tide__block_row *b, int column, int64_t *value) {
    switch (column) {
    case 0:
        return ALWAYS(b->id);
    case 1:
        return UNLESS(0, b->run_id);
    case 2:
        return ALWAYS(b->alloc_event);
    case 3:
        return UNLESS(0, b->free_event);
    case 4:
        return ALWAYS(b->alloc_ns);
    case 5:
        return UNLESS(0, b->free_requested_ns);
    case 6:
        return ALWAYS(b->free_ns) && b->free_event != 0;
    case 7:
        return ALWAYS(b->kind);
    case 8:
        return ALWAYS(b->device);
    case 9:
        return ALWAYS(b->stream);
    case 10:
        return ALWAYS(b->requested_bytes);
    case 11:
        return ALWAYS(b->reserved_bytes);
    case 12:
        return ALWAYS(b->address);
    case 13:
        return ALWAYS(b->thread);
    case 14:
        return UNLESS(0, b->allocator_id);
    case 15:
        return UNLESS(0, b->tag_id);
    case 16:
        return UNLESS(0, b->scope_id);
    default:
        return false;
    }
}

void tide__event_result(sqlite3_context *c, const tide__event *e, int column) {
    int64_t value;
    if (event_value(e, column, &value)) sqlite3_result_int64(c, value); // a column without a result is NULL
}

void tide__block_result(sqlite3_context *c, const tide__block_row *b, int column) {
    int64_t value;
    if (block_value(b, column, &value)) sqlite3_result_int64(c, value);
}

static int event_column(sqlite3_vtab_cursor *base, sqlite3_context *c, int column) {
    int64_t value;
    const tide__event *e = (const tide__event *)(const void *)((const rows_cursor *)base)->at;
    if (event_value(e, column, &value)) sqlite3_result_int64(c, value);
    return SQLITE_OK;
}

static int block_column(sqlite3_vtab_cursor *base, sqlite3_context *c, int column) {
    int64_t value;
    const tide__block_row *b = (const tide__block_row *)(const void *)((const rows_cursor *)base)->at;
    if (block_value(b, column, &value)) sqlite3_result_int64(c, value);
    return SQLITE_OK;
}

/// Without xCreate a module is eponymous only: no CREATE VIRTUAL TABLE in a file can name it.
#define ROWS_MODULE(column)                                                                                            \
    {                                                                                                                  \
        .xConnect = rows_connect, .xBestIndex = rows_best_index, .xDisconnect = rows_disconnect, .xOpen = rows_open,   \
        .xClose = rows_close, .xFilter = rows_filter, .xNext = rows_next, .xEof = rows_eof, .xColumn = (column),       \
        .xRowid = rows_rowid                                                                                           \
    }
static const sqlite3_module event_module = ROWS_MODULE(event_column), block_module = ROWS_MODULE(block_column);

// ---- the statements ----

struct tide__rows {
    const tide__sql *sql;
    sqlite3_stmt *insert_events, *append_events, *last_event;
    sqlite3_stmt *insert_blocks[2]; // prepared when first used; [1] into temp.block
    sqlite3_stmt *insert_again[2];  // a block whose number is taken
};

tide_status tide__rows_open(const tide__sql *s, tide__rows **out, tide_error *err) {
    tide__rows *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to write '%s'", s->path));
    r->sql = s;
    // Modules of an earlier call on this connection are replaced; statements that use them go on.
    int rc = sqlite3_create_module(s->db, event_rows.name, &event_module, (void *)(uintptr_t)&event_rows);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module(s->db, block_rows.name, &block_module, (void *)(uintptr_t)&block_rows);
    if (rc != SQLITE_OK) {
        tide_host_free(r);
        return tide__sql_fail(s, rc, "write", err);
    }
    *out = r;
    return TIDE_OK;
}

void tide__rows_close(tide__rows *r) {
    if (r == NULL) return;
    sqlite3_finalize(r->insert_events);
    sqlite3_finalize(r->append_events);
    sqlite3_finalize(r->last_event);
    for (int i = 0; i < 2; i++) {
        sqlite3_finalize(r->insert_blocks[i]);
        sqlite3_finalize(r->insert_again[i]);
    }
    tide_host_free(r);
}

static tide_status ready(tide__rows *r, sqlite3_stmt **stmt, const char *text, tide_error *err) {
    return *stmt != NULL ? TIDE_OK : tide__sql_prepare(r->sql, text, stmt, err);
}

/// Step `stmt` over `b`. @return SQLite's code
static int insert_batch(sqlite3_stmt *stmt, const kind_of_rows *kind, batch *b) {
    sqlite3_bind_pointer(stmt, 1, b, kind->name, NULL);
    const int rc = sqlite3_step(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void release(sqlite3_stmt *stmt) {
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

static tide_status insert_events(tide__rows *r, sqlite3_stmt **stmt, const char *text, const tide__event *events,
                                 size_t n, tide_error *err) {
    TIDE_TRY(ready(r, stmt, text, err));
    batch b = {events, n};
    const int rc = insert_batch(*stmt, &event_rows, &b);
    const tide_status st = rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(r->sql, rc, "write", err);
    release(*stmt);
    return st;
}

/// With ids of their own, whatever they are.
static tide_status insert_with_ids(tide__rows *r, const tide__event *events, size_t n, tide_error *err) {
    return insert_events(r, &r->insert_events,
                         "INSERT INTO event SELECT " TIDE__EVENT_COLUMNS " FROM tide_event_rows(?1)", events, n, err);
}

/// Behind the last row SQLite numbers rows itself, one by one: then it looks for no place and for no row of that number
/// (a sixth of the time). `events` are numbered from the last id + 1 on.
static tide_status append(tide__rows *r, const tide__event *events, size_t n, tide_error *err) {
    TIDE_TRY(insert_events(r, &r->append_events,
                           "INSERT INTO event(" TIDE__EVENT_COLUMNS_BEHIND_ID ") SELECT " TIDE__EVENT_COLUMNS_BEHIND_ID
                           " FROM tide_event_rows(?1)",
                           events, n, err));
    const int64_t last = sqlite3_last_insert_rowid(r->sql->db);
    if (last == events[n - 1].id) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot write '%s': event %lld came to be row %lld", r->sql->path,
                     (long long)events[n - 1].id, (long long)last);
}

static tide_status last_row(tide__rows *r, int64_t *id, tide_error *err) {
    TIDE_TRY(ready(r, &r->last_event, "SELECT max(id) FROM event", err));
    bool has_row;
    const tide_status st = tide__sql_step(r->sql, r->last_event, &has_row, err);
    *id = has_row ? sqlite3_column_int64(r->last_event, 0) : 0; // 0 for NULL: no row at all
    sqlite3_reset(r->last_event);
    return st;
}

tide_status tide__rows_insert_events(tide__rows *r, const tide__event *events, size_t n, tide_error *err) {
    if (n == 0) return TIDE_OK;
    int64_t last;
    TIDE_TRY(last_row(r, &last, err));
    if (events[n - 1].id - events[0].id != (int64_t)n - 1 || events[0].id <= last)
        return insert_with_ids(r, events, n, err);
    if (events[0].id == last + 1) return append(r, events, n, err);
    // Events between lie in chunks, or the oldest are gone.
    TIDE_TRY(insert_with_ids(r, events, 1, err));
    return n > 1 ? append(r, events + 1, n - 1, err) : TIDE_OK;
}

/// One after the other: a number that is taken is found, whether it was there before or came with this batch.
static tide_status insert_again(tide__rows *r, bool temp, const tide__block_row *blocks, size_t n, tide_error *err) {
    sqlite3_stmt **stmt = &r->insert_again[temp];
#define INSERT_AGAIN(table)                                                                                            \
    "INSERT INTO " table " SELECT iif(EXISTS(SELECT 1 FROM " table                                                     \
    " b WHERE b.id = r.id), -r.alloc_event, r.id), " TIDE__BLOCK_COLUMNS_BEHIND_ID " FROM tide_block_rows(?1) r"
    const char *text = temp ? INSERT_AGAIN("temp.block") : INSERT_AGAIN("main.block");
    TIDE_TRY(ready(r, stmt, text, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        batch b = {&blocks[i], 1};
        const int rc = insert_batch(*stmt, &block_rows, &b);
        if (rc != SQLITE_OK) st = tide__sql_fail(r->sql, rc, "write", err);
        release(*stmt);
    }
    return st;
}

tide_status tide__rows_insert_blocks(tide__rows *r, bool temp, const tide__block_row *blocks, size_t n,
                                     tide_error *err) {
    if (n == 0) return TIDE_OK;
    sqlite3_stmt **stmt = &r->insert_blocks[temp];
    TIDE_TRY(ready(r, stmt,
                   temp ? "INSERT INTO temp.block SELECT " TIDE__BLOCK_COLUMNS " FROM tide_block_rows(?1)"
                        : "INSERT INTO main.block SELECT " TIDE__BLOCK_COLUMNS " FROM tide_block_rows(?1)",
                   err));
    batch b = {blocks, n};
    const int rc = insert_batch(*stmt, &block_rows, &b);
    const tide_status st =
        rc == SQLITE_OK || rc == SQLITE_CONSTRAINT ? TIDE_OK : tide__sql_fail(r->sql, rc, "write", err);
    release(*stmt);
    return rc == SQLITE_CONSTRAINT ? insert_again(r, temp, blocks, n, err) : st;
}
