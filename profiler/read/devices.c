// SPDX-License-Identifier: MIT
//
// What blocks and segments took of devices, in order of events. See devices.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/devices.h"
#include "profiler/read/moments_internal.h"

bool tide_allocator_is_driver(const char *name) {
    return (strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z') || strcmp(name, "module") == 0;
}

static bool is_device(const char *name) { return name[0] != '\0' && strcmp(name, "cpu") != 0; }

bool tide_trace_has_devices(const tide_trace *t) {
    for (int64_t id = 1; id < TIDE__MAX_DEVICES; id++) {
        if (is_device(tide__trace_device(t, id))) return true;
    }
    return false;
}

uint64_t tide_trace_first_kept(const tide_trace *t) { return (uint64_t)t->first_event; }

// ---- takes ----

typedef struct takes {
    tide_trace *t;
    tide_trace_taken *list; // [n], owned
    size_t n, cap;
    const tide_trace_segment *segments; // [n_segments], the trace's
    size_t n_segments;
} takes;

/// One of the two ends of something that was taken.
static tide_status put(takes *k, tide_trace_taken what, uint64_t event, uint64_t t_ns, bool is_back, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&k->list, &k->cap, k->n + 1, err, "for the devices of '%s'", k->t->path));
    what.event = event;
    what.t_ns = t_ns;
    what.is_back = is_back;
    k->list[k->n++] = what;
    return TIDE_OK;
}

static tide_status add_segments(takes *k, tide_error *err) {
    for (size_t i = 0; i < k->n_segments; i++) {
        const tide_trace_segment *s = &k->segments[i];
        if (!is_device(s->device)) continue;
        const tide_trace_taken what = {
            .device = s->device, .allocator = s->allocator, .tag = "", .bytes = s->bytes, .is_segment = true};
        TIDE_TRY(put(k, what, s->begin_event, s->begin_ns, false, err));
        if (s->end_event != UINT64_MAX) TIDE_TRY(put(k, what, s->end_event, s->end_ns, true, err));
    }
    return TIDE_OK;
}

/// Whether blocks of that allocator lie in segments of it. The segments' texts are the trace's own.
static bool tells_segments(const takes *k, const char *allocator, const char *device) {
    for (size_t i = 0; i < k->n_segments; i++) {
        if (k->segments[i].allocator == allocator && k->segments[i].device == device) return true;
    }
    return false;
}

/// What was found out of the allocator and device of the block before.
typedef struct last_owner {
    const char *allocator, *device;
    bool is_left_out;
} last_owner;

static bool is_left_out(const takes *k, last_owner *last, const char *allocator, const char *device) {
    if (last->allocator != allocator || last->device != device)
        *last = (last_owner){allocator, device,
                             !tide_allocator_is_driver(allocator) && tells_segments(k, allocator, device)};
    return last->is_left_out;
}

/// Columns: alloc_event, alloc_ns, free_event, free_ns, device, allocator_id, tag_id, reserved_bytes, id.
static tide_status add_block(takes *k, sqlite3_stmt *row, last_owner *last, tide_error *err) {
    uint64_t v[8];
    for (int i = 0; i < 8; i++) {
        if (sqlite3_column_type(row, i) == SQLITE_NULL) {
            v[i] = 0;
        } else if (!tide__sql_u64(row, i, &v[i])) {
            return tide__trace_bad_row(k->t, "block", sqlite3_column_int64(row, 0), err);
        }
    }
    if (v[0] == 0 || v[0] > (uint64_t)k->t->last_event || (v[2] != 0 && v[2] < v[0]))
        return v[0] > (uint64_t)k->t->last_event ? TIDE_OK : tide__trace_bad_row(k->t, "block", (int64_t)v[0], err);
    const tide_trace_taken what = {.device = tide__trace_device(k->t, (int64_t)v[4]),
                                   .allocator = tide__trace_text(k->t, (int64_t)v[5]),
                                   .tag = tide__trace_text(k->t, (int64_t)v[6]),
                                   .bytes = v[7]};
    if (is_left_out(k, last, what.allocator, what.device)) return TIDE_OK;
    TIDE_TRY(put(k, what, v[0], v[1], false, err));
    const tide__process_end *end =
        v[2] == 0 ? tide__trace_process_end(k->t, (uint64_t)sqlite3_column_int64(row, 8), v[1]) : NULL;
    if (end != NULL) return put(k, what, (uint64_t)end->event, (uint64_t)end->t_ns, true, err);
    return v[2] != 0 && v[2] <= (uint64_t)k->t->last_event ? put(k, what, v[2], v[3], true, err) : TIDE_OK;
}

static tide_status add_blocks(takes *k, tide_error *err) {
    sqlite3_stmt *stmt;
    bool has_row;
    last_owner last = {0};
    TIDE_TRY(tide__trace_ask_blocks(
        k->t, "alloc_event, alloc_ns, free_event, free_ns, device, allocator_id, tag_id, reserved_bytes, id",
        "WHERE device IN (SELECT id FROM main.device WHERE name <> 'cpu')", &stmt, err));
    tide_status st;
    while ((st = tide__sql_step(&k->t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = add_block(k, stmt, &last, err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

/// Of one event (a range of blocks that went at once) by who took it, so that the order is always the same.
static int in_order(const void *a, const void *b) {
    const tide_trace_taken *x = a, *y = b;
    if (x->event != y->event) return x->event < y->event ? -1 : 1;
    const int by_name = strcmp(x->tag, y->tag);
    return by_name != 0 ? by_name : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

tide_status tide_trace_device_takes(tide_trace *t, const tide_reading *reading, tide_trace_taken **out, size_t *n,
                                    tide_error *err) {
    takes k = {.t = t};
    tide_status st = tide_trace_segments(t, reading, &k.segments, &k.n_segments, err);
    if (st == TIDE_OK) st = add_segments(&k, err);
    if (st == TIDE_OK) st = add_blocks(&k, err);
    if (st != TIDE_OK) {
        tide_host_free(k.list);
        return st;
    }
    if (k.n > 1) qsort(k.list, k.n, sizeof *k.list, in_order);
    *out = k.list;
    *n = k.n;
    return TIDE_OK;
}
