// SPDX-License-Identifier: MIT
//
// Looking at all of a trace. See tide_trace_check in query.h.
//
//     events --> replay --> each block that ends or lives on   = its row of table block
//                      |--> live bytes of each series          = the leaves
//                      \--> live blocks where a snapshot is    = the snapshot, byte by byte
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/read/moments_internal.h"
#include "profiler/store/schema.h"
#include "profiler/store/snapshot.h"

/// A series on its way along its leaves.
typedef struct series_check {
    size_t leaf_i; // in t->series
    tide__leaf seen;
} series_check;

typedef struct checker {
    tide_trace *t;
    tide_error *err;
    tide_status st; // what was wrong first
    tide__replay replay;
    series_check *series; // [t->n_series], owned
    sqlite3_stmt *block;  // NULL: the table is not made yet, or blocks are packed
    int64_t n_blocks;
    uint64_t *sums; // [n_sums] of blocks by where their allocs are, owned; NULL: blocks are not packed
    size_t n_sums;
    struct {
        int64_t begin_ns, end_ns;
    } * intervals; // [n_intervals] of 1024 events, owned
    size_t n_intervals, cap_intervals, first_interval;
    size_t snapshot_i; // next one
    size_t n_ends;     // of processes
    tide_text snapshot;
} checker;

static tide_status wrong(checker *c, const char *table, int64_t id, const char *why) {
    if (c->st != TIDE_OK) return c->st;
    c->st = tide__trace_damaged(c->t, c->err);
    tide_error_where(c->err, "%s: table %s, id %" PRId64, c->t->path, table, id);
    tide_error_note(c->err, "damaged: %s", why);
    return c->st;
}

// ---- SQLite's own check ----

static tide_status check_pages(const tide_trace *t, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "PRAGMA main.integrity_check(1)", &stmt, err));
    bool has_row;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && (!has_row || strcmp(tide__sql_text(stmt, 0), "ok") != 0)) {
        st = tide__trace_damaged(t, err);
        tide_error_note(err, "damaged: %s", tide__sql_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    return st;
}

// ---- blocks ----

static bool holds(sqlite3_stmt *stmt, int i, int64_t value) {
    return sqlite3_column_type(stmt, i) == SQLITE_INTEGER && sqlite3_column_int64(stmt, i) == value;
}

/// NULL stands for none, which is 0 in memory.
static bool holds_id(sqlite3_stmt *stmt, int i, int64_t value) {
    return value != 0 ? holds(stmt, i, value) : sqlite3_column_type(stmt, i) == SQLITE_NULL;
}

static bool is_row_of(sqlite3_stmt *stmt, const tide__live_block *b, const tide__event *end) {
    return holds_id(stmt, 0, b->run_id) && holds(stmt, 1, b->alloc_event) &&
           holds_id(stmt, 2, end != NULL ? end->id : 0) && holds(stmt, 3, b->alloc_ns) &&
           holds_id(stmt, 4, b->free_requested_ns) &&
           (end != NULL ? holds(stmt, 5, end->t_ns) : sqlite3_column_type(stmt, 5) == SQLITE_NULL) &&
           holds(stmt, 6, b->kind) && holds(stmt, 7, b->device) && holds(stmt, 8, b->stream) &&
           holds(stmt, 9, b->requested_bytes) && holds(stmt, 10, b->reserved_bytes) && holds(stmt, 11, b->address) &&
           holds(stmt, 12, b->thread) && holds_id(stmt, 13, b->allocator_id) && holds_id(stmt, 14, b->tag_id) &&
           holds_id(stmt, 15, b->scope_id);
}

// ---- blocks that are packed ----
//
// To look up each would take a chunk for each. Instead what the events say and what the chunks say is added up, by
// where the allocs are: a sum of hashes, so that the order does not matter.

enum { SUM_EVENTS = 4096 };

/// Blocks of before the first event are in sum 0.
static size_t sum_of(const checker *c, int64_t alloc_event) {
    const int64_t first = c->t->first_event;
    if (alloc_event < first) return 0;
    const size_t i = (size_t)((alloc_event - first) / SUM_EVENTS) + 1;
    return i < c->n_sums ? i : 0;
}

static uint64_t hash_of(const int64_t *values, size_t n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (uint64_t)values[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

static uint64_t hash_of_block(const tide__live_block *b, const tide__event *end) {
    const int64_t values[] = {b->block_id,
                              b->run_id,
                              b->alloc_event,
                              end != NULL ? end->id : 0,
                              b->alloc_ns,
                              b->free_requested_ns,
                              end != NULL ? end->t_ns : 0,
                              b->kind,
                              b->device,
                              b->stream,
                              b->requested_bytes,
                              b->reserved_bytes,
                              b->address,
                              b->thread,
                              b->allocator_id,
                              b->tag_id,
                              b->scope_id};
    return hash_of(values, sizeof values / sizeof values[0]);
}

static tide_status take_id(void *ctx, const tide__event *events, size_t n) {
    if (n > 0) *(int64_t *)ctx = events[0].block_id;
    return TIDE_OK;
}

/// Take a row, with the columns of table block, out of its sum.
static tide_status take_out(checker *c, sqlite3_stmt *row) {
    int64_t values[17];
    for (int i = 0; i < 17; i++) values[i] = sqlite3_column_int64(row, i); // NULL: 0, none
    const int64_t id = values[0], alloc = values[2];
    if (id < 0) { // the second block of one number
        if (id != -alloc || alloc < c->t->first_event || alloc > c->t->last_event)
            return wrong(c, "block", id, "the block is not what its events say");
        TIDE_TRY(tide__trace_each(c->t, TIDE__READ_ALL, alloc, alloc, take_id, &values[0], c->err));
    }
    c->sums[sum_of(c, alloc)] -= hash_of(values, 17);
    c->n_blocks--;
    return TIDE_OK;
}

static tide_status check_packed(checker *c) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__trace_ask_blocks(c->t, TIDE__BLOCK_COLUMNS, "", &stmt, c->err));
    bool has_row;
    tide_status st;
    while ((st = tide__sql_step(&c->t->sql, stmt, &has_row, c->err)) == TIDE_OK && has_row) {
        st = take_out(c, stmt);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    TIDE_TRY(st);
    for (size_t i = 0; i < c->n_sums; i++) {
        const int64_t first = c->t->first_event + ((int64_t)i - 1) * SUM_EVENTS;
        if (c->sums[i] != 0)
            return wrong(c, "block_chunk", first, "blocks of the 4096 events from here on are not what these say");
    }
    return c->n_blocks == 0 ? TIDE_OK : wrong(c, "block_chunk", c->n_blocks, "there are more or fewer blocks");
}

// ---- each block ----

/// `b` has ended with `end` (NULL: it was never freed). Of two blocks with one number the later has that of its event,
/// negative.
static void check_block(checker *c, const tide__live_block *b, const tide__event *end) {
    if (c->sums != NULL) {
        c->sums[sum_of(c, b->alloc_event)] += hash_of_block(b, end);
        c->n_blocks++;
    }
    if (c->block == NULL || c->st != TIDE_OK) return;
    const int64_t ids[] = {b->block_id, -b->alloc_event};
    bool found = false;
    for (size_t i = 0; !found && i < 2; i++) {
        bool has_row;
        sqlite3_bind_int64(c->block, 1, ids[i]);
        const tide_status st = tide__sql_step(&c->t->sql, c->block, &has_row, c->err);
        if (st != TIDE_OK) c->st = st;
        found = st != TIDE_OK || (has_row && is_row_of(c->block, b, end));
        sqlite3_reset(c->block);
    }
    if (!found) (void)!wrong(c, "block", b->block_id, "the block is not what its events say");
    c->n_blocks++;
}

static void check_gone(void *ctx, const tide__live_block *b, const tide__event *end) {
    check_block(ctx, b, end->op != TIDE__OP_PROCESS_END ? end : NULL);
}

static tide_status check_live_blocks(checker *c) {
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(&c->replay, &i)) != NULL;) check_block(c, b, NULL);
    TIDE_TRY(c->st);
    if (c->sums != NULL) return check_packed(c);
    if (c->block == NULL) return TIDE_OK;
    int64_t n;
    TIDE_TRY(tide__sql_int(&c->t->sql, "SELECT sum(1) FROM main.block", 0, &n, c->err));
    return n == c->n_blocks ? TIDE_OK : wrong(c, "block", n, "there are rows that no event tells of");
}

// ---- leaves ----

/// Leaves begin and end where intervals do; the last one with the trace.
static bool is_cut_right(const checker *c, const tide__leaf *l) {
    const bool ends = l->last_event % TIDE__LEAF_EVENTS == 0 || l->last_event == c->t->last_event;
    const size_t first = (size_t)((l->first_event - 1) / TIDE__LEAF_EVENTS) - c->first_interval;
    const size_t last = (size_t)((l->last_event - 1) / TIDE__LEAF_EVENTS) - c->first_interval;
    return ends && l->first_event % TIDE__LEAF_EVENTS == 1 && last < c->n_intervals &&
           c->intervals[first].begin_ns == l->begin_ns && c->intervals[last].end_ns == l->end_ns;
}

static bool leaf_is(const tide__leaf *seen, const tide__leaf *l) {
    return seen->min_bytes == l->min_bytes && seen->max_bytes == l->max_bytes && seen->max_event == l->max_event &&
           seen->max_ns == l->max_ns && seen->max_reserved_bytes == l->max_reserved_bytes &&
           seen->last_bytes == l->last_bytes && seen->last_reserved_bytes == l->last_reserved_bytes;
}

/// The leaf that a series stands on is over: nothing of it follows before `event`.
static tide_status end_leaf(checker *c, size_t place, int64_t event) {
    series_check *k = &c->series[place];
    const tide__trace_series *s = &c->t->series[place];
    while (k->leaf_i < s->n_leaves && s->leaves[k->leaf_i].last_event < event) {
        const tide__leaf *l = &s->leaves[k->leaf_i];
        // Events of a leaf that begins before the first one that is left cannot all be seen.
        if (l->first_event >= c->t->first_event &&
            (k->seen.first_event == 0 || !leaf_is(&k->seen, l) || !is_cut_right(c, l)))
            return wrong(c, "leaf", l->first_event, "the leaf is not what its events say");
        k->seen = (tide__leaf){0};
        k->leaf_i++;
    }
    return TIDE_OK;
}

static tide_status see_change(checker *c, size_t place, const tide__series *s, const tide__event *e) {
    TIDE_TRY(end_leaf(c, place, e->id));
    series_check *k = &c->series[place];
    const tide__trace_series *in_file = &c->t->series[place];
    if (k->leaf_i == in_file->n_leaves || in_file->leaves[k->leaf_i].first_event > e->id)
        return wrong(c, "leaf", e->id, "an event lies in no leaf");
    tide__leaf *l = &k->seen;
    if (l->first_event == 0) *l = (tide__leaf){.first_event = e->id, .min_bytes = INT64_MAX, .max_bytes = -1};
    if (s->live_bytes < l->min_bytes) l->min_bytes = s->live_bytes;
    if (s->live_bytes > l->max_bytes) {
        l->max_bytes = s->live_bytes;
        l->max_event = e->id;
        l->max_ns = e->t_ns;
    }
    if (s->live_reserved_bytes > l->max_reserved_bytes) l->max_reserved_bytes = s->live_reserved_bytes;
    l->last_bytes = s->live_bytes;
    l->last_reserved_bytes = s->live_reserved_bytes;
    return TIDE_OK;
}

static tide_status see_changes(checker *c, const tide__event *e) {
    const tide__replay *r = &c->replay;
    TIDE_TRY(see_change(c, 0, &r->series[0], e));
    for (size_t i = 1; i < r->n_series; i++) {
        if (r->series[i].last_event != e->id) continue;
        const size_t place = tide__trace_series_find(c->t, r->series[i].device, r->series[i].kind);
        if (place == SIZE_MAX) return wrong(c, "series", e->id, "an event belongs to no series");
        TIDE_TRY(see_change(c, place, &r->series[i], e));
    }
    return TIDE_OK;
}

// ---- snapshots ----

static tide_status check_snapshot(checker *c) {
    tide_trace *t = c->t;
    c->snapshot.len = 0;
    if (tide__snapshot_encode(&c->replay, &c->snapshot) != TIDE_OK || c->snapshot.failed)
        return c->st = TIDE_NO_MEMORY(c->err, "for the snapshots of '%s'", t->path);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT data FROM main.snapshot WHERE event_id = ?1 AND t_ns = ?2 "
                               "AND blocks = ?3 AND requested_bytes = ?4",
                               &stmt, c->err));
    sqlite3_bind_int64(stmt, 1, c->replay.last_event);
    sqlite3_bind_int64(stmt, 2, c->replay.last_ns);
    sqlite3_bind_int64(stmt, 3, (int64_t)tide__replay_n_live(&c->replay));
    sqlite3_bind_int64(stmt, 4, c->replay.series[0].live_bytes);
    bool has_row;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, c->err);
    if (st == TIDE_OK) {
        const void *data = has_row ? sqlite3_column_blob(stmt, 0) : NULL;
        const bool same =
            has_row && (size_t)sqlite3_column_bytes(stmt, 0) == c->snapshot.len &&
            (c->snapshot.len == 0 || (data != NULL && memcmp(data, c->snapshot.data, c->snapshot.len) == 0));
        if (!same) st = wrong(c, "snapshot", c->replay.last_event, "the snapshot is not what the events say");
    }
    sqlite3_finalize(stmt);
    return st;
}

// ---- events ----

/// Table meta says which event it is.
static tide_status check_process_end(checker *c, const tide__event *e) {
    const tide__process_end *end = tide__process_ends_find(&c->t->ends, tide__process_of_block(e->block_id));
    if (end == NULL || end->event < e->id || (end->event == e->id && end->t_ns != e->t_ns))
        return wrong(c, "event", e->id, "table meta does not tell of the end of that process");
    c->n_ends += end->event == e->id;
    return TIDE_OK;
}

/// Every end that table meta tells of is an event, but for those that were dropped.
static tide_status check_ends(checker *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->t->ends.n; i++) n += c->t->ends.items[i].event >= c->t->first_event;
    return n == c->n_ends ? TIDE_OK : wrong(c, "meta", (int64_t)n, "it tells of an end of a process that is no event");
}

static tide_status check_event(checker *c, const tide__event *e) {
    const tide__trace_names *n = &c->t->names;
    if ((size_t)e->tag_id >= n->n_texts + (e->tag_id == 0) ||
        (size_t)e->allocator_id >= n->n_texts + (e->allocator_id == 0) ||
        (size_t)e->scope_id >= n->n_scopes + (e->scope_id == 0) || (size_t)e->device >= n->n_devices + (e->device == 0))
        return wrong(c, "event", e->id, "it refers to a name that is not there");
    const size_t interval = (size_t)((e->id - 1) / TIDE__LEAF_EVENTS) - c->first_interval;
    if (tide_host_grow(&c->intervals, &c->cap_intervals, interval + 1, sizeof *c->intervals) != TIDE_OK)
        return c->st = TIDE_NO_MEMORY(c->err, "for the leaves of '%s'", c->t->path);
    if (interval == c->n_intervals) c->intervals[c->n_intervals++].begin_ns = e->t_ns;
    c->intervals[interval].end_ns = e->t_ns;
    if (e->op == TIDE__OP_PROCESS_END) TIDE_TRY(check_process_end(c, e));
    tide__problem problem;
    size_t series;
    if (tide__replay_apply(&c->replay, e, &problem, &series) != TIDE_OK)
        return c->st = TIDE_NO_MEMORY(c->err, "for the blocks of '%s'", c->t->path);
    if (series != 0) TIDE_TRY(see_changes(c, e));
    if (c->snapshot_i < c->t->n_snapshots && c->t->snapshots[c->snapshot_i].event_id == e->id) {
        c->snapshot_i++;
        TIDE_TRY(check_snapshot(c));
    }
    return c->st;
}

static tide_status check_events(void *ctx, const tide__event *events, size_t n) {
    checker *c = ctx;
    for (size_t i = 0; i < n; i++) {
        const tide_status st = check_event(c, &events[i]);
        if (st != TIDE_OK) {
            if (c->st == TIDE_OK) c->st = st;
            return st;
        }
    }
    return TIDE_OK;
}

static tide_status check_begin(checker *c) {
    tide_trace *t = c->t;
    if (tide__replay_init(&c->replay) != TIDE_OK) return TIDE_NO_MEMORY(c->err, "for the blocks of '%s'", t->path);
    c->series = tide_host_calloc(t->n_series, sizeof *c->series);
    if (c->series == NULL) return TIDE_NO_MEMORY(c->err, "for the series of '%s'", t->path);
    for (size_t i = 0; i < t->n_series; i++) TIDE_TRY(tide__trace_series_load(t, i, c->err));
    TIDE_TRY(tide__trace_read_snapshot(t, t->first_event - 1, &c->replay, c->err));
    while (c->snapshot_i < t->n_snapshots && t->snapshots[c->snapshot_i].event_id < t->first_event) c->snapshot_i++;
    c->first_interval = (size_t)((t->first_event - 1) / TIDE__LEAF_EVENTS);
    c->replay.on_gone = check_gone;
    c->replay.ctx = c;
    if (t->state == TIDE_TRACE_RECORDING) return TIDE_OK;
    if (t->is_packed) {
        c->n_sums = (size_t)((t->last_event - t->first_event + 1) / SUM_EVENTS) + 2;
        return TIDE_NEW(&c->sums, c->n_sums, c->err, "for the blocks of '%s'", t->path);
    }
    return tide__sql_prepare(&t->sql, "SELECT " TIDE__BLOCK_COLUMNS_BEHIND_ID " FROM main.block WHERE id = ?",
                             &c->block, c->err);
}

static tide_status check_all(checker *c) {
    tide_trace *t = c->t;
    TIDE_TRY(check_begin(c));
    tide_error why = TIDE_ERROR_INIT; // of the reading; what a check found says more
    const tide_status st = tide__trace_each(t, TIDE__READ_ALL, t->first_event, t->last_event, check_events, c, &why);
    if (c->st != TIDE_OK) return c->st;
    if (st != TIDE_OK) {
        if (c->err != NULL) *c->err = why;
        return st;
    }
    for (size_t i = 0; i < t->n_series; i++) TIDE_TRY(end_leaf(c, i, INT64_MAX));
    TIDE_TRY(check_ends(c));
    return check_live_blocks(c);
}

tide_status tide_trace_check(tide_trace *t, tide_error *err) {
    TIDE_TRY(check_pages(t, err));
    TIDE_TRY(tide__trace_check_tables(t, err));
    TIDE_TRY(tide__trace_check_content(t, true, err));
    checker c = {.t = t, .err = err};
    const tide_status st = check_all(&c);
    sqlite3_finalize(c.block);
    tide__replay_deinit(&c.replay);
    tide_host_free(c.series);
    tide_host_free(c.intervals);
    tide_host_free(c.sums);
    tide_text_deinit(&c.snapshot);
    return st;
}
