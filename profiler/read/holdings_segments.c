// SPDX-License-Identifier: MIT
//
// Segments of a trace: found once, kept with the trace, extended when it grows. See holdings.h.
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "profiler/read/holdings_internal.h"

static void forget_segments(tide_trace *t) {
    tide__segments *s = t->segments;
    if (s == NULL) return;
    tide_host_free(s->items);
    tide_host_free(s->found);
    tide_host_free(s->open);
    tide_host_free(s);
    t->segments = NULL;
}

uint32_t tide_trace_process_of(uint64_t block_id) { return (uint32_t)(block_id >> TIDE__BLOCK_ID_BITS); }

// ---- finding their events ----

static tide_status put_found(tide__segments *s, const tide__event *e) {
    TIDE_TRY(tide_host_grow(&s->found, &s->cap_found, s->n_found + 1, sizeof *s->found));
    s->found[s->n_found++] = *e;
    return TIDE_OK;
}

static tide_status take_events(void *ctx, const tide__event *events, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const bool is_wanted = events[i].op == TIDE_MEM_SEGMENT_ALLOC || events[i].op == TIDE_MEM_SEGMENT_FREE ||
                               events[i].op == TIDE__OP_PROCESS_END;
        if (is_wanted) TIDE_TRY(put_found(ctx, &events[i]));
    }
    return TIDE_OK;
}

/// Those that are rows: SQLite looks at the operation alone.
static tide_status find_in_rows(tide_trace *t, int64_t first, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql, "SELECT id FROM main.event WHERE op IN (?1, ?2, ?5) AND id BETWEEN ?3 AND ?4 ORDER BY id", &stmt,
        err));
    sqlite3_bind_int(stmt, 1, TIDE_MEM_SEGMENT_ALLOC);
    sqlite3_bind_int(stmt, 2, TIDE_MEM_SEGMENT_FREE);
    sqlite3_bind_int64(stmt, 3, first);
    sqlite3_bind_int64(stmt, 4, t->last_event);
    sqlite3_bind_int(stmt, 5, TIDE__OP_PROCESS_END);
    tide_status st;
    bool has_row;
    int64_t last = 0;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const int64_t id = sqlite3_column_int64(stmt, 0);
        st = id > last ? tide__trace_each(t, TIDE__READ_ALL, id, id, take_events, t->segments, err)
                       : tide__trace_bad_row(t, "event", id, err);
        if (st != TIDE_OK) break;
        last = id;
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__holdings_progress(const tide_reading *reading, int64_t done, int64_t all, tide_error *err) {
    if (reading == NULL || reading->tell == NULL) return TIDE_OK;
    if (reading->tell(reading->ctx, all > 0 ? (double)done / (double)all : 1)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
}

/// Reads chunks behind `first` in turn. A search by where they begin: looking at the end of each would read them all,
/// once for each.
static tide_status find_in_chunks(tide_trace *t, int64_t first, const tide_reading *reading, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT first_event, last_event FROM main.event_chunk WHERE last_event >= ?1 AND "
                               "first_event >= coalesce((SELECT max(first_event) FROM main.event_chunk WHERE "
                               "first_event <= ?1), ?1) ORDER BY first_event LIMIT 1",
                               &stmt, err));
    tide_status st = TIDE_OK;
    for (int64_t from = first; st == TIDE_OK && from <= t->last_event;) {
        bool has_row;
        sqlite3_bind_int64(stmt, 1, from);
        st = tide__sql_step(&t->sql, stmt, &has_row, err);
        if (st != TIDE_OK || !has_row) break;
        const int64_t begin = sqlite3_column_int64(stmt, 0), end = sqlite3_column_int64(stmt, 1);
        sqlite3_reset(stmt);
        if (begin > t->last_event) break;
        if (begin > from) from = begin;
        const int64_t last = end < t->last_event ? end : t->last_event;
        st = tide__trace_each(t, TIDE__READ_ALL, from, last, take_events, t->segments, err);
        from = last + 1;
        if (st == TIDE_OK) st = tide__holdings_progress(reading, from - first, t->last_event - first + 1, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

// ---- from events to segments ----

static int by_id(const void *a, const void *b) {
    const tide__event *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static tide_status begin_segment(const tide_trace *t, tide__segments *s, const tide__event *e) {
    TIDE_TRY(tide_host_grow(&s->items, &s->cap, s->n + 1, sizeof *s->items));
    TIDE_TRY(tide_host_grow(&s->open, &s->cap_open, s->n_open + 1, sizeof *s->open));
    s->open[s->n_open++] = s->n;
    s->items[s->n++] = (tide_trace_segment){
        .allocator = tide__trace_text(t, e->allocator_id),
        .device = tide__trace_device(t, e->device),
        .kind = e->kind < TIDE_N_KINDS ? (tide_memory_kind)e->kind : TIDE_KIND_DEFAULT,
        .process = tide_trace_process_of((uint64_t)e->block_id),
        .address = (uint64_t)e->address,
        .bytes = (uint64_t)e->reserved_bytes,
        .begin_event = (uint64_t)e->id,
        .end_event = UINT64_MAX,
        .begin_ns = (uint64_t)e->t_ns,
        .end_ns = UINT64_MAX,
    };
    return TIDE_OK;
}

/// The youngest open one at that address; a segment whose events are gone is not known.
static void end_segment(const tide_trace *t, tide__segments *s, const tide__event *e) {
    const char *device = tide__trace_device(t, e->device);
    for (size_t k = s->n_open; k-- > 0;) {
        tide_trace_segment *seg = &s->items[s->open[k]];
        if (seg->address != (uint64_t)e->address || seg->device != device ||
            seg->process != tide_trace_process_of((uint64_t)e->block_id))
            continue;
        seg->end_event = (uint64_t)e->id;
        seg->end_ns = (uint64_t)e->t_ns;
        s->open[k] = s->open[--s->n_open];
        return;
    }
}

/// All that its process still had.
static void end_segments(tide__segments *s, const tide__event *e) {
    size_t n = 0;
    for (size_t k = 0; k < s->n_open; k++) {
        tide_trace_segment *seg = &s->items[s->open[k]];
        if (seg->process != tide_trace_process_of((uint64_t)e->block_id)) {
            s->open[n++] = s->open[k];
            continue;
        }
        seg->end_event = (uint64_t)e->id;
        seg->end_ns = (uint64_t)e->t_ns;
    }
    s->n_open = n;
}

static tide_status pair_up(const tide_trace *t, tide__segments *s) {
    if (s->n_found > 1) qsort(s->found, s->n_found, sizeof *s->found, by_id);
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < s->n_found; i++) {
        if (s->found[i].op == TIDE_MEM_SEGMENT_ALLOC)
            st = begin_segment(t, s, &s->found[i]);
        else if (s->found[i].op == TIDE_MEM_SEGMENT_FREE)
            end_segment(t, s, &s->found[i]);
        else
            end_segments(s, &s->found[i]);
    }
    return st;
}

tide_status tide_trace_segments(tide_trace *t, const tide_reading *reading, const tide_trace_segment **out, size_t *n,
                                tide_error *err) {
    t->forget[TIDE__KEPT_SEGMENTS] = forget_segments;
    if (t->segments == NULL) TIDE_TRY(TIDE_NEW(&t->segments, 1, err, "for the segments of '%s'", t->path));
    tide__segments *s = t->segments;
    if (s->last_event < t->last_event) {
        const int64_t first = s->last_event + 1 > t->first_event ? s->last_event + 1 : t->first_event;
        s->n_found = 0;
        tide_status st = find_in_rows(t, first, err);
        if (st == TIDE_OK) st = find_in_chunks(t, first, reading, err);
        if (st == TIDE_OK && pair_up(t, s) != TIDE_OK) st = TIDE_NO_MEMORY(err, "for the segments of '%s'", t->path);
        if (st != TIDE_OK) {
            forget_segments(t); // half of it is none of it
            return st;
        }
        s->last_event = t->last_event;
    }
    *out = s->items;
    *n = s->n;
    return TIDE_OK;
}
