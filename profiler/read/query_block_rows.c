// SPDX-License-Identifier: MIT
//
// Blocks of a trace as numbers, in one pass without an array. See tide_trace_each_block in query.h.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

enum { BATCH = 1024 };

#define COLUMNS                                                                                                        \
    "SELECT id, kind, device, requested_bytes, reserved_bytes, address, alloc_ns, free_ns, free_event, allocator_id, " \
    "tag_id, scope_id FROM block "

static bool number(sqlite3_stmt *stmt, int i, uint32_t *out) {
    const int64_t v = sqlite3_column_int64(stmt, i); // NULL: 0
    *out = (uint32_t)v;
    return v >= 0 && v <= UINT32_MAX;
}

static bool bytes(sqlite3_stmt *stmt, int i, uint64_t *out) {
    const int64_t v = sqlite3_column_int64(stmt, i);
    *out = (uint64_t)v;
    return v >= 0 && sqlite3_column_type(stmt, i) == SQLITE_INTEGER;
}

static bool take_row(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block_row *b) {
    uint32_t kind;
    b->id = (uint64_t)sqlite3_column_int64(stmt, 0);
    b->address = (uint64_t)sqlite3_column_int64(stmt, 5); // all 64 bits: a negative number is a large one
    b->free_ns = UINT64_MAX;
    if (!number(stmt, 1, &kind) || kind >= TIDE_N_KINDS || !number(stmt, 2, &b->device) ||
        !bytes(stmt, 3, &b->requested_bytes) || !bytes(stmt, 4, &b->reserved_bytes) || !bytes(stmt, 6, &b->alloc_ns) ||
        !number(stmt, 9, &b->allocator) || !number(stmt, 10, &b->name) || !number(stmt, 11, &b->scope))
        return false;
    b->kind = (tide_memory_kind)kind;
    const int64_t free_event = sqlite3_column_int64(stmt, 8); // NULL: never freed
    if (free_event < 0) return false;
    if (free_event == 0 || free_event > t->last_event) return true; // not yet, as far as the trace is seen
    return bytes(stmt, 7, &b->free_ns) && b->free_ns >= b->alloc_ns;
}

static tide_status take_number(void *ctx, const tide__event *events, size_t n) {
    if (n > 0) *(uint64_t *)ctx = (uint64_t)events[0].block_id;
    return TIDE_OK;
}

/// Of two blocks with one number the later one is kept under the number of its event, negative: see who it was.
static tide_status name_doubles(tide_trace *t, tide_trace_block_row *rows, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        const int64_t event = -(int64_t)rows[i].id;
        if (event <= 0) continue;
        rows[i].id = 0;
        if (event < t->first_event) continue; // its event was dropped
        if (event > t->last_event) return tide__trace_bad_row(t, "block", -event, err);
        TIDE_TRY(tide__trace_each(t, TIDE__READ_ALL, event, event, take_number, &rows[i].id, err));
    }
    return TIDE_OK;
}

static tide_status give(tide_trace *t, tide_trace_block_row *rows, size_t n, tide_trace_block_fn fn, void *ctx,
                        tide_error *err) {
    if (n == 0) return TIDE_OK;
    TIDE_TRY(name_doubles(t, rows, n, err));
    const tide_status st = fn(ctx, rows, n);
    if (st == TIDE_ERR_NOMEM) return tide__trace_no_memory(t, "blocks", err);
    if (st == TIDE_ERR_CANCELLED) return TIDE_FAIL(err, st, "reading '%s' was cancelled", t->path);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "cannot read the blocks of '%s'", t->path);
}

static tide_status read_rows(tide_trace *t, sqlite3_stmt *stmt, tide_trace_block_fn fn, void *ctx, tide_error *err) {
    tide_trace_block_row *rows = tide_host_alloc(BATCH * sizeof *rows);
    if (rows == NULL) return tide__trace_no_memory(t, "blocks", err);
    size_t n = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        if (!take_row(t, stmt, &rows[n++])) {
            st = tide__trace_bad_row(t, "block", sqlite3_column_int64(stmt, 0), err);
            break;
        }
        if (n < BATCH) continue;
        st = give(t, rows, n, fn, ctx, err);
        n = 0;
        if (st != TIDE_OK) break;
    }
    if (st == TIDE_OK) st = give(t, rows, n, fn, ctx, err);
    tide_host_free(rows);
    return st;
}

tide_status tide_trace_each_block(tide_trace *t, int64_t run_id, tide_trace_block_fn fn, void *ctx, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(tide__trace_need_tables(t, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql, COLUMNS "WHERE alloc_event <= ?2 AND (free_event IS NULL OR free_event >= ?1) ORDER BY id", &stmt,
        err));
    sqlite3_bind_int64(stmt, 1, span.first_event);
    sqlite3_bind_int64(stmt, 2, span.last_event);
    const tide_status st = read_rows(t, stmt, fn, ctx, err);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_find_block(tide_trace *t, uint64_t id, tide_trace_block_row *out, tide_error *err) {
    TIDE_TRY(tide__trace_need_tables(t, err));
    sqlite3_stmt *stmt;
    bool has_row;
    TIDE_TRY(tide__sql_prepare(&t->sql, COLUMNS "WHERE id = ?1", &stmt, err));
    sqlite3_bind_int64(stmt, 1, (int64_t)id);
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && (!has_row || id == 0 || id > INT64_MAX))
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no block %" PRIu64, t->path, id);
    if (st == TIDE_OK && !take_row(t, stmt, out)) st = tide__trace_bad_row(t, "block", (int64_t)id, err);
    sqlite3_finalize(stmt);
    return st;
}

const char *tide_trace_text_of(const tide_trace *t, uint32_t name) { return tide__trace_text(t, name); }

const char *tide_trace_scope_of(const tide_trace *t, uint32_t scope, int64_t *step) {
    const tide__trace_scope s = tide__trace_scope_of(t, scope);
    *step = s.step;
    return s.name;
}

const char *tide_trace_device_of(const tide_trace *t, uint32_t device) { return tide__trace_device(t, device); }
