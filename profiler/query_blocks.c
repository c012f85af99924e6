// SPDX-License-Identifier: MIT
//
// Questions to a trace that concern blocks: the list, the sums per kind, the peak. See query.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/memory/allocator.h"
#include "profiler/query.h"
#include "profiler/sweep.h"

// ---- the list ----

static bool take_numbers(sqlite3_stmt *stmt, tide_trace_block *b) {
    uint64_t kind, step, thread, run_id;
    if (!tide__sql_u64(stmt, 0, &b->id) || !tide__sql_u64(stmt, 1, &kind) || kind >= TIDE_N_KINDS ||
        !tide__sql_u64(stmt, 4, &b->requested_bytes) || !tide__sql_u64(stmt, 5, &b->reserved_bytes) ||
        !tide__sql_u64(stmt, 7, &b->alloc_ns) || !tide__sql_u64(stmt, 9, &thread) || thread > UINT32_MAX)
        return false;
    b->kind = (tide_memory_kind)kind;
    b->thread = (uint32_t)thread;
    // Streams and addresses use all 64 bits: negative numbers in the file are large ones here.
    b->stream = (uint64_t)sqlite3_column_int64(stmt, 3);
    b->address = (uint64_t)sqlite3_column_int64(stmt, 6);
    b->free_ns = UINT64_MAX;
    if (sqlite3_column_type(stmt, 8) != SQLITE_NULL &&
        (!tide__sql_u64(stmt, 8, &b->free_ns) || b->free_ns < b->alloc_ns))
        return false;
    b->scope_index = -1;
    if (sqlite3_column_type(stmt, 12) != SQLITE_NULL) {
        if (!tide__sql_u64(stmt, 12, &step)) return false;
        b->scope_index = (int64_t)step;
    }
    if (sqlite3_column_type(stmt, 13) != SQLITE_NULL) {
        if (!tide__sql_u64(stmt, 13, &run_id)) return false;
        b->run_id = (int64_t)run_id;
    }
    return true;
}

static tide_status take_block(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_block *b, tide_error *err) {
    if (!take_numbers(stmt, b)) return tide__trace_bad_row(t, "block", sqlite3_column_int64(stmt, 0), err);
    tide__trace_copy_text(b->device, sizeof b->device, tide__sql_text(stmt, 2));
    b->name = tide_host_strdup(tide__sql_text(stmt, 10));
    b->scope = tide_host_strdup(tide__sql_text(stmt, 11));
    if (b->name == NULL || b->scope == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the blocks of '%s'", t->path);
    return TIDE_OK;
}

tide_status tide_trace_blocks(tide_trace *t, int64_t run_id, tide_trace_block **out, size_t *n, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql,
        "SELECT b.id, b.kind, d.name, b.stream, b.requested_bytes, b.reserved_bytes, b.address, b.alloc_ns, b.free_ns, "
        "b.thread, t.text, n.text, s.step, b.run_id "
        "FROM block b LEFT JOIN device d ON d.id = b.device LEFT JOIN name t ON t.id = b.tag_id "
        "LEFT JOIN scope s ON s.id = b.scope_id LEFT JOIN name n ON n.id = s.name_id "
        "WHERE b.alloc_event <= ?2 AND (b.free_event IS NULL OR b.free_event >= ?1) ORDER BY b.alloc_event",
        &stmt, err));
    sqlite3_bind_int64(stmt, 1, span.first_event);
    sqlite3_bind_int64(stmt, 2, span.last_event);
    tide_trace_block *blocks = NULL;
    size_t n_blocks = 0, cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = tide_host_grow(&blocks, &cap, n_blocks + 1, sizeof *blocks);
        if (st != TIDE_OK) {
            TIDE_FAIL(err, st, "no memory for the blocks of '%s'", t->path);
            break;
        }
        blocks[n_blocks] = (tide_trace_block){0};
        st = take_block(t, stmt, &blocks[n_blocks++], err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
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

// ---- the peak ----

tide_status tide_trace_peak(tide_trace *t, int64_t run_id, int kind, uint64_t *bytes, uint64_t *t_ns, tide_error *err) {
    tide__sweep s;
    TIDE_TRY(tide__sweep_make(t, run_id, &s, err));
    uint64_t live = 0, peak = 0, moment = s.span.begin_ns;
    for (size_t i = 0; i < s.n; i++) {
        const tide__change *c = &s.changes[i];
        if (kind >= 0 && c->kind != kind) continue;
        live = c->is_alloc ? live + c->requested_bytes : live - c->requested_bytes;
        if (live <= peak) continue;
        peak = live;
        moment = i < s.n_before ? s.span.begin_ns : c->t_ns;
    }
    *bytes = peak;
    if (t_ns != NULL) *t_ns = moment;
    tide__sweep_deinit(&s);
    return TIDE_OK;
}

// ---- per kind ----

typedef struct kind_table {
    tide_trace_kind *rows; // [n], owned
    uint16_t *devices;     // [n] ids, owned
    uint64_t *reserved;    // [n] live reserved bytes, owned
    size_t n, cap, cap_devices, cap_reserved;
} kind_table;

static void table_deinit(kind_table *k) {
    tide_host_free(k->rows);
    tide_host_free(k->devices);
    tide_host_free(k->reserved);
}

/// The row of (kind, device), put in its order when it is new; SIZE_MAX without memory.
static size_t table_row(kind_table *k, tide_memory_kind kind, uint16_t device) {
    size_t i = 0;
    while (i < k->n && (k->rows[i].kind < kind || (k->rows[i].kind == kind && k->devices[i] < device))) i++;
    if (i < k->n && k->rows[i].kind == kind && k->devices[i] == device) return i;
    if (tide_host_grow(&k->rows, &k->cap, k->n + 1, sizeof *k->rows) != TIDE_OK ||
        tide_host_grow(&k->devices, &k->cap_devices, k->n + 1, sizeof *k->devices) != TIDE_OK ||
        tide_host_grow(&k->reserved, &k->cap_reserved, k->n + 1, sizeof *k->reserved) != TIDE_OK)
        return SIZE_MAX;
    memmove(&k->rows[i + 1], &k->rows[i], (k->n - i) * sizeof *k->rows);
    memmove(&k->devices[i + 1], &k->devices[i], (k->n - i) * sizeof *k->devices);
    memmove(&k->reserved[i + 1], &k->reserved[i], (k->n - i) * sizeof *k->reserved);
    k->rows[i] = (tide_trace_kind){.kind = kind, .predicted_bytes = TIDE_UNKNOWN_BYTES};
    k->devices[i] = device;
    k->reserved[i] = 0;
    k->n++;
    return i;
}

static void count_change(tide_trace_kind *row, uint64_t *reserved, const tide__change *c, bool is_before) {
    if (c->is_alloc) {
        row->live_at_end_bytes += c->requested_bytes;
        *reserved += c->reserved_bytes;
        if (row->peak_bytes < row->live_at_end_bytes) row->peak_bytes = row->live_at_end_bytes;
        if (row->peak_reserved_bytes < *reserved) row->peak_reserved_bytes = *reserved;
        if (is_before) return;
        row->n_allocs++;
        row->requested_bytes += c->requested_bytes;
    } else {
        row->live_at_end_bytes -= c->requested_bytes;
        *reserved -= c->reserved_bytes;
        row->n_frees++;
    }
}

static tide_status count_changes(const tide_trace *t, const tide__sweep *s, kind_table *k, tide_error *err) {
    for (size_t i = 0; i < s->n; i++) {
        const size_t row_i = table_row(k, (tide_memory_kind)s->changes[i].kind, s->changes[i].device);
        if (row_i == SIZE_MAX) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the kinds of '%s'", t->path);
        count_change(&k->rows[row_i], &k->reserved[row_i], &s->changes[i], i < s->n_before);
    }
    return TIDE_OK;
}

static tide_status name_devices(const tide_trace *t, kind_table *k, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT name FROM device WHERE id = ?", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < k->n; i++) {
        sqlite3_bind_int64(stmt, 1, k->devices[i]);
        bool has_row;
        st = tide__sql_step(&t->sql, stmt, &has_row, err);
        if (st == TIDE_OK) tide__trace_copy_text(k->rows[i].device, sizeof k->rows[i].device, tide__sql_text(stmt, 0));
        if (st == TIDE_OK && !has_row) st = tide__trace_bad_row(t, "device", k->devices[i], err);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status fill_predicted(const tide_trace *t, const tide_memory_plan *plan, const char *device, bool is_naive,
                                  uint64_t n_contexts, kind_table *k, tide_error *err) {
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        const uint64_t bytes = tide_memory_plan_predicted_run(plan, (tide_memory_kind)kind, is_naive, n_contexts);
        bool found = false;
        for (size_t i = 0; i < k->n; i++) {
            if ((int)k->rows[i].kind != kind || strcmp(k->rows[i].device, device) != 0) continue;
            k->rows[i].predicted_bytes = bytes;
            found = true;
        }
        if (found || bytes == 0) continue;
        // Predicted and never allocated: a row with nothing measured. Device number 0 comes before all others.
        const size_t row_i = table_row(k, (tide_memory_kind)kind, 0);
        if (row_i == SIZE_MAX) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the kinds of '%s'", t->path);
        k->rows[row_i].predicted_bytes = bytes;
        tide__trace_copy_text(k->rows[row_i].device, sizeof k->rows[row_i].device, device);
    }
    return TIDE_OK;
}

static tide_status add_predictions(tide_trace *t, int64_t run_id, kind_table *k, tide_error *err) {
    tide_memory_plan *plan;
    TIDE_TRY(tide__trace_plan_or_null(t, run_id, &plan, err));
    if (plan == NULL) return TIDE_OK;
    sqlite3_stmt *stmt = NULL;
    char device[16] = "", mode[16] = "";
    bool has_row;
    tide_status st = tide__sql_prepare(&t->sql, "SELECT device, mode, contexts FROM run WHERE id = ?", &stmt, err);
    if (st == TIDE_OK) sqlite3_bind_int64(stmt, 1, run_id);
    if (st == TIDE_OK) st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK) {
        tide__trace_copy_text(device, sizeof device, tide__sql_text(stmt, 0));
        tide__trace_copy_text(mode, sizeof mode, tide__sql_text(stmt, 1));
        uint64_t n_contexts;
        st = tide__sql_u64(stmt, 2, &n_contexts) && n_contexts > 0
                 ? fill_predicted(t, plan, device, strcmp(mode, "naive") == 0, n_contexts, k, err)
                 : tide__trace_bad_row(t, "run", run_id, err);
    }
    sqlite3_finalize(stmt);
    tide_memory_plan_destroy(plan);
    return st;
}

tide_status tide_trace_kinds(tide_trace *t, int64_t run_id, tide_trace_kind **out, size_t *n, tide_error *err) {
    tide__sweep s;
    TIDE_TRY(tide__sweep_make(t, run_id, &s, err));
    kind_table k = {0};
    tide_status st = count_changes(t, &s, &k, err);
    if (st == TIDE_OK) st = name_devices(t, &k, err);
    if (st == TIDE_OK && run_id != 0) st = add_predictions(t, run_id, &k, err);
    if (st == TIDE_OK) {
        *out = k.rows;
        *n = k.n;
        k.rows = NULL;
    }
    table_deinit(&k);
    tide__sweep_deinit(&s);
    return st;
}
