// SPDX-License-Identifier: MIT
//
// The processes of a trace side by side. See lanes.h.
//
// An event changes the blocks of one process alone, so that what it changes of the sum of all is what it changes of
// that process: no list of blocks is kept.
#include "profiler/lanes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"
#include "profiler/read/moments_internal.h"

__extension__ typedef unsigned __int128 u128;

/// What is known of a lane while the trace is replayed.
typedef struct lane_state {
    int64_t bytes;
    int64_t last_ns; ///< up to where `area` reaches
    size_t column;   ///< that it was last seen in
    u128 area;       ///< bytes x ns
} lane_state;

typedef struct walk {
    tide_trace_lanes *lanes;
    lane_state *states;  ///< [lanes->n], owned
    int32_t *of_process; ///< [n_processes + 1] lane by number of the process in the file, -1: none; owned
    size_t n_processes;
    int64_t total; ///< live bytes of all after the event before
} walk;

static size_t column_of(const tide_trace_lanes *l, int64_t t_ns) {
    const uint64_t len = l->end_ns - l->begin_ns + 1, at = (uint64_t)t_ns - l->begin_ns;
    const size_t column = (size_t)((u128)at * l->n_columns / len);
    return column < l->n_columns ? column : l->n_columns - 1;
}

static void note(tide_trace_lane *lane, size_t column, int64_t bytes, int64_t t_ns) {
    const uint64_t had = bytes > 0 ? (uint64_t)bytes : 0;
    if (lane->most[column] != TIDE_UNKNOWN_BYTES && lane->most[column] >= had) return;
    lane->most[column] = had;
    lane->most_ns[column] = (uint64_t)t_ns;
}

/// First moment of a column.
static int64_t begin_of(const tide_trace_lanes *l, size_t column) {
    const uint64_t len = l->end_ns - l->begin_ns + 1;
    return (int64_t)(l->begin_ns + (uint64_t)(((u128)column * len + l->n_columns - 1) / l->n_columns));
}

/// Time has come to `t_ns`: what the lane had until now counts in the columns that it passed.
static void advance(const tide_trace_lanes *l, tide_trace_lane *lane, lane_state *s, int64_t t_ns) {
    const size_t column = column_of(l, t_ns);
    if (!lane->is_there) {
        lane->is_there = true;
        lane->begin_ns = (uint64_t)t_ns;
        s->last_ns = t_ns;
        s->column = column;
    }
    TIDE_ASSERT(t_ns >= s->last_ns && column >= s->column);
    for (; s->column < column; s->column++) note(lane, s->column + 1, s->bytes, begin_of(l, s->column + 1));
    if (s->bytes > 0) s->area += (u128)(uint64_t)s->bytes * (uint64_t)(t_ns - s->last_ns);
    s->last_ns = t_ns;
    lane->end_ns = (uint64_t)t_ns;
}

/// The lane of a process, by a number of one of its blocks; -1: none.
static int32_t lane_of(const walk *w, int64_t block_id) {
    const uint32_t process = tide_trace_process_of((uint64_t)block_id) + 1;
    return process <= w->n_processes ? w->of_process[process] : -1;
}

static bool has_process(const tide__event *e) {
    return tide__event_is_of_process(e) || (e->op <= TIDE_MEM_FREE_COMPLETED && e->block_id > 0);
}

static tide_status on_begin(void *ctx, const tide__replay *r) {
    walk *w = ctx;
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) {
        const int32_t lane = lane_of(w, b->block_id);
        if (lane >= 0) w->states[lane].bytes += b->requested_bytes;
    }
    w->total = r->series[0].live_bytes;
    return TIDE_OK;
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    (void)series;
    walk *w = ctx;
    const int64_t change = r->series[0].live_bytes - w->total;
    w->total = r->series[0].live_bytes;
    const int32_t i = has_process(e) ? lane_of(w, e->block_id) : -1;
    if (i < 0) return TIDE_OK;
    tide_trace_lane *lane = &w->lanes->items[i];
    lane_state *s = &w->states[i];
    const bool is_first = !lane->is_there;
    advance(w->lanes, lane, s, e->t_ns);
    lane->n_blocks += e->op == TIDE_MEM_ALLOC;
    s->bytes += change;
    const uint64_t had = s->bytes > 0 ? (uint64_t)s->bytes : 0;
    if (is_first || had > lane->peak_bytes) {
        lane->peak_bytes = had;
        lane->peak_ns = (uint64_t)e->t_ns;
    }
    note(lane, s->column, s->bytes, e->t_ns);
    return TIDE_OK;
}

// ---- which there are ----

static void name_lane(sqlite3_stmt *row, char *out) {
    const char *label = tide__sql_text(row, 3);
    if (label[0] != '\0')
        tide__trace_copy_text(out, TIDE_LANE_NAME_BYTES, label);
    else if (sqlite3_column_type(row, 2) == SQLITE_INTEGER)
        snprintf(out, TIDE_LANE_NAME_BYTES, "rank %" PRId64, (int64_t)sqlite3_column_int64(row, 2));
    else
        snprintf(out, TIDE_LANE_NAME_BYTES, "%" PRId64, (int64_t)sqlite3_column_int64(row, 1));
}

static tide_status add_lane(tide_trace_lanes *l, size_t *cap, sqlite3_stmt *row, const tide_trace *t, tide_error *err) {
    const int64_t id = sqlite3_column_int64(row, 0);
    if (id < 1 || id > (INT64_C(1) << (63 - TIDE__BLOCK_ID_BITS))) return tide__trace_bad_row(t, "process", id, err);
    TIDE_TRY(TIDE_GROW(&l->items, cap, l->n + 1, err, "for the processes of '%s'", t->path));
    tide_trace_lane *lane = &l->items[l->n];
    *lane =
        (tide_trace_lane){.process = (uint32_t)(id - 1),
                          .pid = sqlite3_column_int64(row, 1),
                          .rank = sqlite3_column_type(row, 2) == SQLITE_INTEGER ? sqlite3_column_int64(row, 2) : -1};
    name_lane(row, lane->name);
    l->n++;
    TIDE_TRY(TIDE_NEW(&lane->most, l->n_columns, err, "for the processes of '%s'", t->path));
    TIDE_TRY(TIDE_NEW(&lane->most_ns, l->n_columns, err, "for the processes of '%s'", t->path));
    for (size_t i = 0; i < l->n_columns; i++) lane->most[i] = TIDE_UNKNOWN_BYTES;
    return TIDE_OK;
}

#define PROCESSES "SELECT id, pid, rank, label FROM main.process "

static tide_status find_lanes(tide_trace *t, tide_trace_lanes *l, tide_error *err) {
    sqlite3_stmt *stmt;
    size_t cap = 0;
    TIDE_TRY(tide__sql_prepare(&t->sql, PROCESSES "ORDER BY id", &stmt, err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = add_lane(l, &cap, stmt, t, err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_lane_name(const tide_trace *t, uint32_t process, char *buf, tide_error *err) {
    sqlite3_stmt *stmt;
    bool has_row;
    buf[0] = '\0';
    TIDE_TRY(tide__sql_prepare(&t->sql, PROCESSES "WHERE id = ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, (int64_t)process + 1);
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) name_lane(stmt, buf);
    sqlite3_finalize(stmt);
    return st;
}

// ---- the walk ----

static tide_status prepare(tide_trace *t, walk *w, tide_error *err) {
    const tide_trace_lanes *l = w->lanes;
    w->n_processes = l->n > 0 ? l->items[l->n - 1].process + 1 : 0;
    TIDE_TRY(TIDE_NEW(&w->states, l->n + 1, err, "for the processes of '%s'", t->path));
    TIDE_TRY(TIDE_NEW(&w->of_process, w->n_processes + 1, err, "for the processes of '%s'", t->path));
    for (size_t i = 0; i <= w->n_processes; i++) w->of_process[i] = -1;
    for (size_t i = 0; i < l->n; i++) w->of_process[l->items[i].process + 1] = (int32_t)i;
    return TIDE_OK;
}

static void settle(const walk *w) {
    for (size_t i = 0; i < w->lanes->n; i++) {
        tide_trace_lane *lane = &w->lanes->items[i];
        const lane_state *s = &w->states[i];
        const uint64_t ns = lane->end_ns - lane->begin_ns;
        lane->end_bytes = s->bytes > 0 ? (uint64_t)s->bytes : 0;
        lane->mean_bytes = ns > 0 ? (uint64_t)(s->area / ns) : lane->end_bytes;
    }
}

tide_status tide_trace_get_lanes(tide_trace *t, size_t n_columns, tide_trace_lanes *out, tide_error *err) {
    TIDE_ASSERT(n_columns > 0);
    tide_trace_lanes l = {.begin_ns = (uint64_t)t->begin_ns, .end_ns = (uint64_t)t->end_ns, .n_columns = n_columns};
    walk w = {.lanes = &l};
    tide_status st = find_lanes(t, &l, err);
    if (st == TIDE_OK) st = prepare(t, &w, err);
    if (st == TIDE_OK && t->last_event >= t->first_event)
        st = tide__trace_walk(t, t->first_event, t->last_event, on_begin, on_event, &w, err);
    if (st == TIDE_OK) settle(&w);
    tide_host_free(w.states);
    tide_host_free(w.of_process);
    if (st != TIDE_OK) {
        tide_trace_lanes_deinit(&l);
        return st;
    }
    *out = l;
    return TIDE_OK;
}

void tide_trace_lanes_deinit(tide_trace_lanes *l) {
    for (size_t i = 0; i < l->n; i++) {
        tide_host_free(l->items[i].most);
        tide_host_free(l->items[i].most_ns);
    }
    tide_host_free(l->items);
    *l = (tide_trace_lanes){0};
}
