// SPDX-License-Identifier: MIT
//
// Events of a trace with their names, and the moments that have one. See moments.h.
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

static tide_trace_event named(const tide_trace *t, const tide__event *e) {
    const tide__trace_scope scope = tide__trace_scope_of(t, e->scope_id);
    return (tide_trace_event){.id = (uint64_t)e->id,
                              .t_ns = (uint64_t)e->t_ns,
                              .op = tide__op_name(e->op),
                              // of a pool that is discarded the file has the process's part of a number
                              .block_id = e->op != TIDE_MEM_POOL_DISCARD ? (uint64_t)e->block_id : 0,
                              .requested_bytes = (uint64_t)e->requested_bytes,
                              .reserved_bytes = (uint64_t)e->reserved_bytes,
                              .address = (uint64_t)e->address,
                              .stream = (uint64_t)e->stream,
                              .kind = e->kind < TIDE_N_KINDS ? tide_memory_kind_name((tide_memory_kind)e->kind) : "",
                              .device = tide__trace_device(t, e->device),
                              .allocator = tide__trace_text(t, e->allocator_id),
                              .name = tide__trace_text(t, e->tag_id),
                              .scope = scope.name,
                              .scope_index = scope.step,
                              .run_id = e->run_id,
                              .thread = (uint32_t)e->thread};
}

typedef struct reading {
    const tide_trace *t;
    tide_trace_event *events;
    size_t n;
} reading;

static tide_status take_events(void *ctx, const tide__event *events, size_t n) {
    reading *r = ctx;
    for (size_t i = 0; i < n; i++) r->events[r->n++] = named(r->t, &events[i]);
    return TIDE_OK;
}

tide_status tide_trace_events(tide_trace *t, uint64_t from, tide_trace_event *events, size_t max, size_t *n,
                              tide_error *err) {
    const uint64_t first = from < (uint64_t)t->first_event ? (uint64_t)t->first_event : from;
    *n = 0;
    if (max == 0 || first > (uint64_t)t->last_event) return TIDE_OK;
    const uint64_t left = (uint64_t)t->last_event - first + 1;
    reading r = {.t = t, .events = events};
    TIDE_TRY(tide__trace_each(t, TIDE__READ_ALL, (int64_t)first, (int64_t)(first + (left < max ? left : max) - 1),
                              take_events, &r, err));
    *n = r.n;
    return TIDE_OK;
}

tide_status tide_trace_event_at(tide_trace *t, uint64_t t_ns, uint64_t *event_id, tide_error *err) {
    int64_t id;
    TIDE_TRY(tide__trace_event_at(t, t_ns, &id, err));
    *event_id = (uint64_t)id;
    return TIDE_OK;
}

// ---- marks ----

typedef struct marking {
    tide_trace *t;
    tide_trace_mark *marks; // [n], owned
    size_t n, cap;
} marking;

static tide_status put_mark(marking *m, int64_t id, int64_t t_ns, int64_t tag_id) {
    TIDE_TRY(tide_host_grow(&m->marks, &m->cap, m->n + 1, sizeof *m->marks));
    m->marks[m->n++] =
        (tide_trace_mark){.name = tide__trace_text(m->t, tag_id), .event_id = (uint64_t)id, .t_ns = (uint64_t)t_ns};
    return TIDE_OK;
}

static tide_status take_marks(void *ctx, const tide__event *events, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (events[i].op == TIDE_MEM_SNAPSHOT) TIDE_TRY(put_mark(ctx, events[i].id, events[i].t_ns, events[i].tag_id));
    }
    return TIDE_OK;
}

/// Those that are rows. SQLite looks at the operation alone, and 10 M rows take half a second.
static tide_status marks_in_rows(marking *m, tide_error *err) {
    const tide_trace *t = m->t;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql, "SELECT id, t_ns, tag_id FROM main.event WHERE op = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id", &stmt,
        err));
    sqlite3_bind_int(stmt, 1, TIDE_MEM_SNAPSHOT);
    sqlite3_bind_int64(stmt, 2, t->first_event);
    sqlite3_bind_int64(stmt, 3, t->last_event);
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        uint64_t t_ns;
        st = !tide__sql_u64(stmt, 1, &t_ns)
                 ? TIDE_ERR_BAD_INPUT
                 : put_mark(m, sqlite3_column_int64(stmt, 0), (int64_t)t_ns, sqlite3_column_int64(stmt, 2));
        if (st == TIDE_ERR_NOMEM) tide__trace_no_memory(t, "marks", err);
        if (st == TIDE_ERR_BAD_INPUT) tide__trace_bad_row(t, "event", sqlite3_column_int64(stmt, 0), err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

/// The next chunk behind event `behind`; *last 0: none.
static tide_status next_chunk(const tide_trace *t, sqlite3_stmt *stmt, int64_t behind, int64_t *first, int64_t *last,
                              tide_error *err) {
    bool has_row;
    *last = 0;
    sqlite3_bind_int64(stmt, 1, behind);
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) {
        *first = sqlite3_column_int64(stmt, 0);
        *last = sqlite3_column_int64(stmt, 1);
        if (*last > t->last_event) *last = t->last_event;
        if (*last < *first) *last = 0;
    }
    sqlite3_reset(stmt);
    return st;
}

static tide_status marks_in_chunks(marking *m, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &m->t->sql,
        "SELECT first_event, last_event FROM main.event_chunk WHERE first_event > ? ORDER BY first_event LIMIT 1",
        &stmt, err));
    int64_t first = 0, last = 0;
    tide_status st = next_chunk(m->t, stmt, 0, &first, &last, err);
    while (st == TIDE_OK && last > 0) {
        st = tide__trace_each(m->t, TIDE__READ_ALL, first, last, take_marks, m, err);
        if (st == TIDE_OK) st = next_chunk(m->t, stmt, last, &first, &last, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static int by_event(const void *a, const void *b) {
    const tide_trace_mark *x = a, *y = b;
    return (x->event_id > y->event_id) - (x->event_id < y->event_id);
}

tide_status tide_trace_marks(tide_trace *t, tide_trace_mark **out, size_t *n, tide_error *err) {
    marking m = {.t = t};
    tide_status st = marks_in_rows(&m, err);
    if (st == TIDE_OK) st = marks_in_chunks(&m, err);
    if (st != TIDE_OK) {
        tide_host_free(m.marks);
        return st;
    }
    if (m.n > 1) qsort(m.marks, m.n, sizeof *m.marks, by_event);
    *out = m.marks;
    *n = m.n;
    return TIDE_OK;
}
