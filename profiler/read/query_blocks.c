// SPDX-License-Identifier: MIT
//
// The list of blocks of a trace. See query.h.
#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

/// A column that is NULL for none; false: it is neither that nor a number.
static bool optional(sqlite3_stmt *stmt, int i, uint64_t if_none, uint64_t *out) {
    *out = if_none;
    return sqlite3_column_type(stmt, i) == SQLITE_NULL || tide__sql_u64(stmt, i, out);
}

static bool take_numbers(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block *b) {
    uint64_t kind, thread, run_id, free_event;
    if (!tide__sql_u64(stmt, 1, &kind) || kind >= TIDE_N_KINDS || !tide__sql_u64(stmt, 4, &b->requested_bytes) ||
        !tide__sql_u64(stmt, 5, &b->reserved_bytes) || !tide__sql_u64(stmt, 7, &b->alloc_ns) ||
        !tide__sql_u64(stmt, 9, &thread) || thread > UINT32_MAX || !optional(stmt, 12, 0, &run_id) ||
        !optional(stmt, 13, UINT64_MAX, &free_event))
        return false;
    b->id = (uint64_t)sqlite3_column_int64(stmt, 0);
    b->kind = (tide_memory_kind)kind;
    b->thread = (uint32_t)thread;
    b->run_id = (int64_t)run_id;
    // Streams and addresses use all 64 bits: negative numbers in the file are large ones here.
    b->stream = (uint64_t)sqlite3_column_int64(stmt, 3);
    b->address = (uint64_t)sqlite3_column_int64(stmt, 6);
    b->free_ns = UINT64_MAX;
    if (free_event > (uint64_t)t->last_event) return true; // not yet, as far as the trace is seen
    return tide__sql_u64(stmt, 8, &b->free_ns) && b->free_ns >= b->alloc_ns;
}

static tide_status take_block(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block *b, tide_error *err) {
    const tide__trace_scope scope = tide__trace_scope_of(t, sqlite3_column_int64(stmt, 11));
    b->name = tide_host_strdup(tide__trace_text(t, sqlite3_column_int64(stmt, 10)));
    b->scope = tide_host_strdup(scope.name);
    b->scope_index = scope.step;
    if (b->name == NULL || b->scope == NULL) return tide__trace_no_memory(t, "blocks", err);
    if (!take_numbers(t, stmt, b)) return tide__trace_bad_row(t, "block", sqlite3_column_int64(stmt, 0), err);
    tide__trace_copy_text(b->device, sizeof b->device, tide__trace_device(t, sqlite3_column_int64(stmt, 2)));
    return TIDE_OK;
}

static tide_status take_number(void *ctx, const tide__event *events, size_t n) {
    if (n > 0) *(uint64_t *)ctx = (uint64_t)events[0].block_id;
    return TIDE_OK;
}

/// Of two blocks with one number the later one is kept under the number of its event, negative: see who it was.
static tide_status name_doubles(tide_trace *t, tide_trace_block *blocks, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        const int64_t event = -(int64_t)blocks[i].id;
        if (event <= 0) continue;
        blocks[i].id = 0;
        if (event < t->first_event) continue; // its event was dropped
        if (event > t->last_event) return tide__trace_bad_row(t, "block", -event, err);
        TIDE_TRY(tide__trace_each(t, TIDE__READ_ALL, event, event, take_number, &blocks[i].id, err));
    }
    return TIDE_OK;
}

static tide_status read_blocks(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block **blocks, size_t *n,
                               tide_error *err) {
    size_t cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        if (tide_host_grow(blocks, &cap, *n + 1, sizeof **blocks) != TIDE_OK)
            return tide__trace_no_memory(t, "blocks", err);
        (*blocks)[*n] = (tide_trace_block){0};
        TIDE_TRY(take_block(t, stmt, &(*blocks)[(*n)++], err));
    }
    return st;
}

tide_status tide_trace_blocks(tide_trace *t, int64_t run_id, tide_trace_block **out, size_t *n, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(tide__trace_need_tables(t, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql,
        "SELECT id, kind, device, stream, requested_bytes, reserved_bytes, address, alloc_ns, free_ns, thread, tag_id, "
        "scope_id, run_id, free_event FROM block "
        "WHERE alloc_event <= ?2 AND (free_event IS NULL OR free_event >= ?1) ORDER BY alloc_event",
        &stmt, err));
    sqlite3_bind_int64(stmt, 1, span.first_event);
    sqlite3_bind_int64(stmt, 2, span.last_event);
    tide_trace_block *blocks = NULL;
    size_t n_blocks = 0;
    tide_status st = read_blocks(t, stmt, &blocks, &n_blocks, err);
    sqlite3_finalize(stmt);
    if (st == TIDE_OK) st = name_doubles(t, blocks, n_blocks, err);
    if (st != TIDE_OK) {
        tide_trace_blocks_free(blocks, n_blocks);
        return st;
    }
    *out = blocks;
    *n = n_blocks;
    return TIDE_OK;
}

void tide_trace_blocks_free(tide_trace_block *blocks, size_t n) {
    for (size_t i = 0; i < n; i++) {
        tide_host_free(blocks[i].name);
        tide_host_free(blocks[i].scope);
    }
    tide_host_free(blocks);
}
