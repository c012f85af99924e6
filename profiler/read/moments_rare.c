// SPDX-License-Identifier: MIT
//
// Events of rare operations, found without a replay: moments that the program named, samples of devices, tensors that
// were sized while running. See tidemark/trace.h, devices.h and sizes.h.
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "profiler/devices.h"
#include "profiler/read/moments_internal.h"
#include "profiler/sizes.h"

typedef struct finding {
    tide_trace *t;
    uint8_t op;
    tide__event *events; // [n], owned
    size_t n, cap;
} finding;

static tide_status put_event(finding *f, const tide__event *e) {
    TIDE_TRY(tide_host_grow(&f->events, &f->cap, f->n + 1, sizeof *f->events));
    f->events[f->n++] = *e;
    return TIDE_OK;
}

static tide_status take_events(void *ctx, const tide__event *events, size_t n) {
    finding *f = ctx;
    for (size_t i = 0; i < n; i++) {
        if (events[i].op == f->op) TIDE_TRY(put_event(f, &events[i]));
    }
    return TIDE_OK;
}

/// Those that are rows. SQLite looks at the operation alone, and 10 M rows take half a second.
static tide_status find_in_rows(finding *f, tide_error *err) {
    tide_trace *t = f->t;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT id FROM main.event WHERE op = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id",
                               &stmt, err));
    sqlite3_bind_int(stmt, 1, f->op);
    sqlite3_bind_int64(stmt, 2, t->first_event);
    sqlite3_bind_int64(stmt, 3, t->last_event);
    tide_status st;
    bool has_row;
    int64_t last = 0;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const int64_t id = sqlite3_column_int64(stmt, 0);
        st = id > last ? tide__trace_each(t, TIDE__READ_ALL, id, id, take_events, f, err)
                       : tide__trace_bad_row(t, "event", id, err);
        if (st != TIDE_OK) break;
        last = id;
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

static tide_status find_in_chunks(finding *f, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &f->t->sql,
        "SELECT first_event, last_event FROM main.event_chunk WHERE first_event > ? ORDER BY first_event LIMIT 1",
        &stmt, err));
    int64_t first = 0, last = 0;
    tide_status st = next_chunk(f->t, stmt, 0, &first, &last, err);
    while (st == TIDE_OK && last > 0) {
        st = tide__trace_each(f->t, TIDE__READ_ALL, first, last, take_events, f, err);
        if (st == TIDE_OK) st = next_chunk(f->t, stmt, last, &first, &last, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static int by_event(const void *a, const void *b) {
    const tide__event *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/// All events of the operation in order, into f->events, which the caller frees, also after a failure.
static tide_status find_all(finding *f, tide_error *err) {
    TIDE_TRY(find_in_rows(f, err));
    TIDE_TRY(find_in_chunks(f, err));
    if (f->n > 1) qsort(f->events, f->n, sizeof *f->events, by_event);
    return TIDE_OK;
}

// ---- marks ----

tide_status tide_trace_marks(tide_trace *t, tide_trace_mark **out, size_t *n, tide_error *err) {
    finding f = {.t = t, .op = TIDE_MEM_SNAPSHOT};
    tide_trace_mark *marks = NULL;
    tide_status st = find_all(&f, err);
    if (st == TIDE_OK && f.n > 0) st = TIDE_NEW(&marks, f.n, err, "for the marks of '%s'", t->path);
    for (size_t i = 0; st == TIDE_OK && i < f.n; i++) {
        const tide__event *e = &f.events[i];
        marks[i] = (tide_trace_mark){
            .name = tide__trace_text(t, e->tag_id), .event_id = (uint64_t)e->id, .t_ns = (uint64_t)e->t_ns};
    }
    tide_host_free(f.events);
    if (st != TIDE_OK) return st;
    *out = marks;
    *n = f.n;
    return TIDE_OK;
}

void tide_trace_marks_free(tide_trace_mark *marks) { tide_host_free(marks); }

// ---- samples of devices ----

tide_status tide_trace_device_usage(tide_trace *t, tide_trace_usage **out, size_t *n, tide_error *err) {
    finding f = {.t = t, .op = TIDE_MEM_DEVICE_USAGE};
    tide_trace_usage *samples = NULL;
    tide_status st = find_all(&f, err);
    if (st == TIDE_OK && f.n > 0) st = TIDE_NEW(&samples, f.n, err, "for the samples of '%s'", t->path);
    for (size_t i = 0; st == TIDE_OK && i < f.n; i++) {
        const tide__event *e = &f.events[i];
        samples[i] = (tide_trace_usage){.event = (uint64_t)e->id,
                                        .t_ns = (uint64_t)e->t_ns,
                                        .device = tide__trace_device(t, e->device),
                                        .used_bytes = (uint64_t)e->requested_bytes,
                                        .total_bytes = (uint64_t)e->reserved_bytes};
    }
    tide_host_free(f.events);
    if (st != TIDE_OK) return st;
    *out = samples;
    *n = f.n;
    return TIDE_OK;
}

// ---- tensors that were sized while running ----

tide_status tide_trace_sizes(tide_trace *t, tide_trace_size **out, size_t *n, tide_error *err) {
    finding f = {.t = t, .op = TIDE_MEM_SIZED};
    tide_trace_size *sizes = NULL;
    tide_status st = find_all(&f, err);
    if (st == TIDE_OK && f.n > 0) st = TIDE_NEW(&sizes, f.n, err, "for the sizes of '%s'", t->path);
    for (size_t i = 0; st == TIDE_OK && i < f.n; i++) {
        const tide__event *e = &f.events[i];
        sizes[i] = (tide_trace_size){.event = (uint64_t)e->id,
                                     .t_ns = (uint64_t)e->t_ns,
                                     .run_id = e->run_id,
                                     .thread = (uint32_t)e->thread,
                                     .tensor = (uint64_t)e->stream,
                                     .block_id = (uint64_t)e->block_id,
                                     .extents = e->tag_id != 0 ? tide__trace_text(t, e->tag_id) : "",
                                     .bytes = (uint64_t)e->requested_bytes};
    }
    tide_host_free(f.events);
    if (st != TIDE_OK) return st;
    *out = sizes;
    *n = f.n;
    return TIDE_OK;
}
