// SPDX-License-Identifier: MIT
//
// Changes of live memory in order. See sweep.h.
#include "profiler/sweep.h"

#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"

static int by_event(const void *a, const void *b) {
    const tide__change *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

static bool take_block(sqlite3_stmt *stmt, tide__change *alloc, tide__change *free_, bool *has_free) {
    uint64_t kind, device, event;
    if (!tide__sql_u64(stmt, 0, &alloc->block_id) || !tide__sql_u64(stmt, 1, &kind) || kind >= TIDE_N_KINDS ||
        !tide__sql_u64(stmt, 2, &device) || device == 0 || device > UINT16_MAX ||
        !tide__sql_u64(stmt, 3, &alloc->requested_bytes) || !tide__sql_u64(stmt, 4, &alloc->reserved_bytes) ||
        !tide__sql_u64(stmt, 5, &event) || event == 0 || !tide__sql_u64(stmt, 6, &alloc->t_ns))
        return false;
    alloc->event = (int64_t)event;
    alloc->kind = (uint8_t)kind;
    alloc->device = (uint16_t)device;
    alloc->is_alloc = true;
    *has_free = sqlite3_column_type(stmt, 7) != SQLITE_NULL;
    if (!*has_free) return true;
    *free_ = *alloc;
    free_->is_alloc = false;
    if (!tide__sql_u64(stmt, 7, &event) || !tide__sql_u64(stmt, 8, &free_->t_ns)) return false;
    free_->event = (int64_t)event;
    return free_->event > alloc->event && free_->t_ns >= alloc->t_ns;
}

static tide_status read_changes(const tide_trace *t, sqlite3_stmt *stmt, tide__sweep *s, tide_error *err) {
    size_t cap = 0;
    uint64_t requested_bytes = 0, reserved_bytes = 0; // of all: no partial sum passes them
    bool has_row;
    while (true) {
        TIDE_TRY(tide__sql_step(&t->sql, stmt, &has_row, err));
        if (!has_row) return TIDE_OK;
        if (tide_host_grow(&s->changes, &cap, s->n + 2, sizeof *s->changes) != TIDE_OK)
            return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the blocks of '%s'", t->path);
        tide__change alloc = {0}, free_ = {0};
        bool has_free;
        if (!take_block(stmt, &alloc, &free_, &has_free) ||
            !tide_add_u64(requested_bytes, alloc.requested_bytes, &requested_bytes) ||
            !tide_add_u64(reserved_bytes, alloc.reserved_bytes, &reserved_bytes))
            return tide__trace_bad_row(t, "block", sqlite3_column_int64(stmt, 0), err);
        if (alloc.event < s->span.first_event) s->n_before++;
        s->changes[s->n++] = alloc;
        if (has_free && free_.event <= s->span.last_event) s->changes[s->n++] = free_;
    }
}

/// Time runs with the events, or no search by time would be right.
static tide_status check_times(const tide_trace *t, const tide__sweep *s, tide_error *err) {
    for (size_t i = 0; i < s->n; i++) {
        const tide__change *c = &s->changes[i];
        const bool is_behind = i > 0 && c->t_ns < s->changes[i - 1].t_ns;
        const bool is_outside = i >= s->n_before && (c->t_ns < s->span.begin_ns || c->t_ns > s->span.end_ns);
        if (is_behind || is_outside) return tide__trace_bad_row(t, "block", (int64_t)c->block_id, err);
    }
    return TIDE_OK;
}

tide_status tide__sweep_make(const tide_trace *t, int64_t run_id, tide__sweep *out, tide_error *err) {
    tide__sweep s = {0};
    TIDE_TRY(tide__trace_span(t, run_id, &s.span, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT id, kind, device, requested_bytes, reserved_bytes, alloc_event, alloc_ns, "
                               "free_event, free_ns FROM block "
                               "WHERE alloc_event <= ?2 AND (free_event IS NULL OR free_event >= ?1)",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, s.span.first_event);
    sqlite3_bind_int64(stmt, 2, s.span.last_event);
    tide_status st = read_changes(t, stmt, &s, err);
    sqlite3_finalize(stmt);
    if (st == TIDE_OK && s.n > 1) qsort(s.changes, s.n, sizeof *s.changes, by_event);
    if (st == TIDE_OK) st = check_times(t, &s, err);
    if (st != TIDE_OK) {
        tide__sweep_deinit(&s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

void tide__sweep_deinit(tide__sweep *s) {
    tide_host_free(s->changes);
    *s = (tide__sweep){0};
}
