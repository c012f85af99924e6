// SPDX-License-Identifier: MIT
//
// Tables of a damaged trace: those that are copied row by row, and those that say something of missing events. See
// recover.h.
#include <inttypes.h>
#include <stdio.h>

#include "core/base/host_alloc.h"
#include "profiler/read/recover.h"
#include "profiler/store/schema.h"
#include "profiler/store/snapshot.h"

/// A table that is copied as it is: numbers that must be in range, and texts.
typedef struct copied {
    tide__damaged *in;
    const tide__sql *out;
    sqlite3_stmt *insert;
    const int64_t (*ranges)[2]; ///< of the first n_numbers columns; the others are texts
    int n_numbers, n_columns;
    int n_required; ///< the first ones must not be NULL
} copied;

static tide_status take_row(void *ctx, sqlite3_stmt *row, tide_error *err) {
    copied *c = ctx;
    for (int i = 0; i < c->n_columns; i++) {
        const int type = sqlite3_column_type(row, i);
        int64_t value;
        const bool good = i < c->n_numbers ? tide__sql_int_or(row, i, c->ranges[i][0], c->ranges[i][1], 0, &value) &&
                                                 (i >= c->n_required || type == SQLITE_INTEGER)
                                           : type == SQLITE_TEXT || type == SQLITE_NULL;
        if (!good) return TIDE_ERR_BAD_INPUT;
        if (type == SQLITE_INTEGER) sqlite3_bind_int64(c->insert, i + 1, value);
        if (type == SQLITE_TEXT) tide__sql_bind_text(c->insert, i + 1, tide__sql_text(row, i));
    }
    return tide__sql_run(c->out, c->insert, err);
}

static tide_status copy_table(copied *c, const char *insert, const char *table, const char *order, const char *columns,
                              bool by_number, tide_error *err) {
    TIDE_TRY(tide__sql_prepare(c->out, insert, &c->insert, err));
    const tide_status st = by_number ? tide__damaged_each(c->in, table, order, columns, take_row, c, err)
                                     : tide__damaged_each_by_key(c->in, table, order, columns, take_row, c, err);
    sqlite3_finalize(c->insert);
    return st;
}

#define ID                                                                                                             \
    { 1, INT32_MAX }
#define COUNT                                                                                                          \
    { 0, INT64_MAX }

tide_status tide__recover_processes(tide__damaged *in, tide__new_trace *out, tide_error *err) {
    static const int64_t processes[][2] = {ID, COUNT, COUNT, COUNT, {0, INT32_MAX}, {INT64_MIN, INT64_MAX}};
    static const int64_t positions[][2] = {ID, {TIDE__POSITION_LOG, INT32_MAX}, COUNT, {0, INT32_MAX}, COUNT};
    static const int64_t samples[][2] = {ID, COUNT, COUNT, COUNT, COUNT, COUNT, COUNT, COUNT};
    static const int64_t totals[][2] = {ID,   {1, TIDE__MAX_DEVICES - 1}, {0, TIDE_N_KINDS - 1}, COUNT, COUNT, COUNT,
                                        COUNT};
    copied c = {.in = in};
    TIDE_TRY(tide__new_trace_sql(out, &c.out, err));
    c.ranges = processes;
    c.n_numbers = 6;
    c.n_columns = 11;
    c.n_required = 3;
    TIDE_TRY(copy_table(&c,
                        "INSERT OR IGNORE INTO process(id, pid, begin_ns, end_ns, rank, wall_ns, command, feed, how, "
                        "label, boot_id) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        "process", "id", "id, pid, begin_ns, end_ns, rank, wall_ns, command, feed, how, label, boot_id",
                        true, err));
    c.ranges = positions;
    c.n_numbers = c.n_columns = c.n_required = 5;
    TIDE_TRY(copy_table(&c,
                        "INSERT OR IGNORE INTO position(process_id, ring, position, thread, n_lost) "
                        "VALUES(?, ?, ?, ?, ?)",
                        "position", "process_id, ring", "process_id, ring, position, thread, n_lost", false, err));
    c.ranges = samples;
    c.n_numbers = c.n_columns = 8;
    c.n_required = 7;
    TIDE_TRY(copy_table(&c,
                        "INSERT OR IGNORE INTO process_memory(process_id, t_ns, resident_bytes, peak_bytes, "
                        "swapped_bytes, minor_faults, major_faults, share_bytes) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                        "process_memory", "process_id, t_ns",
                        "process_id, t_ns, resident_bytes, peak_bytes, swapped_bytes, minor_faults, major_faults, "
                        "share_bytes",
                        false, err));
    c.ranges = totals;
    c.n_numbers = c.n_columns = c.n_required = 7;
    return copy_table(&c,
                      "INSERT OR IGNORE INTO total(process_id, device, kind, n_allocs, n_frees, requested_bytes, "
                      "freed_bytes) VALUES(?, ?, ?, ?, ?, ?, ?)",
                      "total", "process_id, device, kind",
                      "process_id, device, kind, n_allocs, n_frees, requested_bytes, freed_bytes", false, err);
}

// ---- what others refer to ----

static tide_status insert_lost_devices(tide__damaged *in, const tide__sql *s, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT OR IGNORE INTO device(id, name) VALUES(?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (int64_t id = 1; st == TIDE_OK && id < TIDE__MAX_DEVICES; id++) {
        if (tide__damaged_renamed(&in->devices, id) == 0) continue;
        char name[32];
        snprintf(name, sizeof name, "cuda:%" PRId64,
                 1000 + id); // no machine has so many: the number shows that it is lost
        sqlite3_bind_int64(stmt, 1, id);
        tide__sql_bind_text(stmt, 2, name);
        st = tide__sql_run(s, stmt, err);
        if (sqlite3_changes(s->db) > 0) in->n_lost_rows++;
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__recover_lost_rows(tide__damaged *in, tide__new_trace *out, tide_error *err) {
    const tide__sql *s;
    TIDE_TRY(tide__new_trace_sql(out, &s, err));
    TIDE_TRY(insert_lost_devices(in, s, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s,
                               "INSERT OR IGNORE INTO process(id, pid, begin_ns, end_ns, how) "
                               "SELECT id, 0, ?1, ?2, 'killed' FROM (SELECT 1 AS id UNION SELECT process_id FROM run "
                               "UNION SELECT process_id FROM thread UNION SELECT process_id FROM position "
                               "UNION SELECT process_id FROM total UNION SELECT process_id FROM process_memory)",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, out->first_ns);
    sqlite3_bind_int64(stmt, 2, out->last_ns);
    const tide_status st = tide__sql_run(s, stmt, err);
    if (sqlite3_changes(s->db) > 0) in->n_lost_rows += (uint64_t)sqlite3_changes(s->db);
    sqlite3_finalize(stmt);
    return st;
}

// ---- what is not there any more ----

typedef struct series_reader {
    const tide__damaged *in;
    tide__replay *replay;
    tide_map *numbers; ///< of tide__renamed: number in the file that is read -> index; NULL: not needed
} series_reader;

static tide_status take_series(void *ctx, sqlite3_stmt *row, tide_error *err) {
    series_reader *r = ctx;
    int64_t id, device, kind;
    if (!tide__sql_number(row, 0, 0, INT32_MAX, &id)) return TIDE_ERR_BAD_INPUT;
    if (id == 0) return TIDE_OK;
    if (!tide__sql_number(row, 1, 1, TIDE__MAX_DEVICES - 1, &device) ||
        !tide__sql_number(row, 2, 0, TIDE_N_KINDS - 1, &kind))
        return TIDE_ERR_BAD_INPUT;
    const size_t series = tide__replay_series(r->replay, (int16_t)device, (uint8_t)kind);
    if (series == 0) return TIDE_NO_MEMORY(err, "to recover '%s'", r->in->path);
    return r->numbers != NULL ? tide__damaged_rename(r->numbers, id, (int64_t)series, err) : TIDE_OK;
}

/// Series get the numbers that they have in the file that is read, as far as it says.
static tide_status read_series(tide__damaged *in, tide__replay *replay, tide_map *numbers, tide_error *err) {
    series_reader r = {.in = in, .replay = replay, .numbers = numbers};
    return tide__damaged_each(in, "series", "id", "id, device, kind", take_series, &r, err);
}

typedef struct snapshot_reader {
    tide__damaged *in;
    tide__names *names;
    int64_t hi;
    tide__replay *out; ///< of the last one that is good
    int64_t event_id, t_ns;
} snapshot_reader;

/// The blocks of `from`, with names of the new file. TIDE_ERR_BAD_INPUT when one makes no sense.
static tide_status rename_blocks(const snapshot_reader *r, const tide__replay *from, tide__replay *to,
                                 tide_error *err) {
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(from, &i)) != NULL;) {
        tide__live_block block = *b;
        tide__event e = {.op = TIDE_MEM_ALLOC,
                         .thread = b->thread,
                         .scope_id = b->scope_id,
                         .tag_id = b->tag_id,
                         .allocator_id = b->allocator_id,
                         .device = b->device,
                         .kind = b->kind};
        TIDE_TRY(tide__damaged_rename_event(r->in, r->names, &e, err));
        block.thread = e.thread;
        block.scope_id = e.scope_id;
        block.tag_id = e.tag_id;
        block.allocator_id = e.allocator_id;
        TIDE_TRY(tide__replay_put(to, &block));
    }
    return TIDE_OK;
}

static tide_status take_snapshot(void *ctx, sqlite3_stmt *row, tide_error *err) {
    snapshot_reader *r = ctx;
    int64_t id, t_ns;
    if (!tide__sql_number(row, 0, 1, TIDE__MAX_EVENT, &id) || !tide__sql_number(row, 1, 0, INT64_MAX, &t_ns) ||
        sqlite3_column_type(row, 2) != SQLITE_BLOB)
        return TIDE_ERR_BAD_INPUT;
    if (id > r->hi) return TIDE_OK;
    tide__replay *both;
    TIDE_TRY(TIDE_NEW(&both, 2, err, "to recover '%s'", r->in->path));
    tide__replay *from = &both[0], *to = &both[1];
    tide_status st = tide__replay_init(from);
    if (st == TIDE_OK) st = tide__replay_init(to);
    const void *data = sqlite3_column_blob(row, 2);
    if (st == TIDE_OK) st = tide__snapshot_decode(data, (size_t)sqlite3_column_bytes(row, 2), from);
    if (st == TIDE_OK) st = read_series(r->in, to, NULL, err);
    if (st == TIDE_OK) st = rename_blocks(r, from, to, err);
    if (st == TIDE_OK) {
        const tide__replay old = *r->out;
        *r->out = *to;
        *to = old;
        r->event_id = id;
        r->t_ns = t_ns;
    }
    tide__replay_deinit(from);
    tide__replay_deinit(to);
    tide_host_free(both);
    return st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(err, "to recover '%s'", r->in->path) : st;
}

tide_status tide__recover_snapshot(tide__damaged *in, tide__names *names, int64_t lo, int64_t hi, tide__replay *out,
                                   int64_t *event_id, int64_t *t_ns, tide_error *err) {
    snapshot_reader r = {.in = in, .names = names, .hi = hi, .out = out};
    if (tide__replay_init(out) != TIDE_OK) return TIDE_NO_MEMORY(err, "to recover '%s'", in->path);
    const tide__damaged before = *in; // snapshots are made anew
    tide_status st = tide__damaged_each(in, "snapshot", "event_id", "event_id, t_ns, data", take_snapshot, &r, err);
    in->n_lost_rows = before.n_lost_rows;
    in->n_lost_spots = before.n_lost_spots;
    *event_id = r.event_id >= lo ? r.event_id : 0;
    *t_ns = r.t_ns;
    return st;
}

// ---- leaves ----

typedef struct leaf_reader {
    tide__damaged *in;
    tide__new_trace *out;
    int64_t last_event;
    tide_map series; ///< of tide__renamed: number in the file that is read -> index in the replay
} leaf_reader;

static tide_status take_leaf(void *ctx, sqlite3_stmt *row, tide_error *err) {
    leaf_reader *r = ctx;
    int64_t v[12];
    for (int i = 0; i < 12; i++)
        if (!tide__sql_number(row, i, 0, INT64_MAX, &v[i])) return TIDE_ERR_BAD_INPUT;
    if (v[2] > r->last_event) return TIDE_OK;
    const int64_t series = v[0] == 0 ? 0 : tide__damaged_renamed(&r->series, v[0]);
    const bool good = (v[0] == 0 || series > 0) && v[1] >= 1 && v[2] >= v[1] && v[4] >= v[3] && v[5] <= v[6] &&
                      v[7] >= v[1] && v[7] <= v[2] && v[8] >= v[3] && v[8] <= v[4] && v[10] >= v[5] && v[10] <= v[6] &&
                      v[11] <= v[9];
    if (!good) return TIDE_ERR_BAD_INPUT;
    const tide__leaf leaf = {.series = (int32_t)series,
                             .first_event = v[1],
                             .last_event = v[2],
                             .begin_ns = v[3],
                             .end_ns = v[4],
                             .min_bytes = v[5],
                             .max_bytes = v[6],
                             .max_event = v[7],
                             .max_ns = v[8],
                             .max_reserved_bytes = v[9],
                             .last_bytes = v[10],
                             .last_reserved_bytes = v[11]};
    const tide__sql *s;
    TIDE_TRY(tide__new_trace_sql(r->out, &s, err));
    return tide__store_write_leaves(r->out->store, &r->out->replay, &leaf, 1, err);
}

tide_status tide__recover_past(tide__damaged *in, tide__new_trace *out, int64_t last_event, tide_error *err) {
    leaf_reader r = {.in = in, .out = out, .last_event = last_event, .series = TIDE_MAP(tide__renamed)};
    tide_status st = read_series(in, &out->replay, &r.series, err);
    if (st == TIDE_OK)
        st = tide__damaged_each_by_key(
            in, "leaf", "series, first_event",
            "series, first_event, last_event, begin_ns, end_ns, min_bytes, max_bytes, max_event, "
            "max_ns, max_reserved_bytes, last_bytes, last_reserved_bytes",
            take_leaf, &r, err);
    tide_map_deinit(&r.series);
    return st;
}

// ---- problems ----

enum { PROBLEM_OF_FEED = 100 }; ///< problems of table problem from here on are not those of an event

typedef struct problem_reader {
    tide__damaged *in;
    tide__new_trace *out;
    int64_t last_event; ///< of those that are not there any more
    sqlite3_stmt *insert;
} problem_reader;

static tide_status take_problem(void *ctx, sqlite3_stmt *row, tide_error *err) {
    problem_reader *r = ctx;
    int64_t event, problem;
    if (!tide__sql_number(row, 1, 0, INT64_MAX, &event) || !tide__sql_number(row, 2, 1, INT32_MAX, &problem) ||
        sqlite3_column_type(row, 3) != SQLITE_TEXT)
        return TIDE_ERR_BAD_INPUT;
    const bool is_found = problem < PROBLEM_OF_FEED && problem != TIDE__PROBLEM_LATE;
    if (event > r->last_event && is_found) return TIDE_OK; // found again when the event was copied
    sqlite3_bind_int64(r->insert, 1, event < r->out->last_event ? event : r->out->last_event);
    sqlite3_bind_int64(r->insert, 2, problem);
    tide__sql_bind_text(r->insert, 3, tide__sql_text(row, 3));
    return tide__sql_run(tide__store_sql(r->out->store), r->insert, err);
}

tide_status tide__recover_problems(tide__damaged *in, tide__new_trace *out, int64_t last_event, tide_error *err) {
    problem_reader r = {.in = in, .out = out, .last_event = last_event};
    const tide__sql *s;
    TIDE_TRY(tide__new_trace_sql(out, &s, err));
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO problem(event_id, problem, what) VALUES(?, ?, ?)", &r.insert, err));
    const tide_status st =
        tide__damaged_each(in, "problem", "id", "id, event_id, problem, what", take_problem, &r, err);
    sqlite3_finalize(r.insert);
    return st;
}

// ---- missing events ----
//
// Table block has the alloc and the free of each block with their numbers and times, a snapshot the alloc of each block
// that was live then. Of a request to free only the time is known. Scopes, moments and segments are in neither, nor the
// thread and scope of a free.

typedef struct block_reader {
    tide__holes *h;
    const tide__copier *runs;
} block_reader;

/// The run of a free is the one of its block, while that lasts.
static int32_t run_at(const block_reader *r, int32_t run_id, int64_t event) {
    const tide__run_place *run = run_id != 0 ? tide__copier_run(r->runs, run_id) : NULL;
    if (run == NULL || run->first_event == 0 || event < run->first_event) return 0;
    return run->last_event < 0 || event <= run->last_event ? run_id : 0;
}

/// Columns as in TIDE__BLOCK_COLUMNS.
static tide_status take_block(void *ctx, sqlite3_stmt *row, tide_error *err) {
    block_reader *r = ctx;
    int64_t id, run, alloc, freed, alloc_ns, requested_ns, free_ns, kind, device, thread, allocator, tag, scope;
    bool good = tide__sql_number(row, 0, INT64_MIN, INT64_MAX, &id);
    good = tide__sql_int_or(row, 1, 1, INT32_MAX, 0, &run) && good;
    good = tide__sql_number(row, 2, 1, TIDE__MAX_EVENT, &alloc) && good;
    good = tide__sql_int_or(row, 3, alloc + 1, TIDE__MAX_EVENT, 0, &freed) && good;
    good = tide__sql_number(row, 4, 0, INT64_MAX, &alloc_ns) && good;
    good = tide__sql_int_or(row, 5, alloc_ns, INT64_MAX, -1, &requested_ns) && good;
    good = tide__sql_int_or(row, 6, alloc_ns, INT64_MAX, 0, &free_ns) && good;
    good = tide__sql_number(row, 7, 0, TIDE_N_KINDS - 1, &kind) && good;
    good = tide__sql_number(row, 8, 1, TIDE__MAX_DEVICES - 1, &device) && good;
    good = tide__sql_number(row, 13, 0, INT32_MAX, &thread) && good;
    good = tide__sql_int_or(row, 14, 1, INT32_MAX, 0, &allocator) && good;
    good = tide__sql_int_or(row, 15, 1, INT32_MAX, 0, &tag) && good;
    good = tide__sql_int_or(row, 16, 1, INT32_MAX, 0, &scope) && good;
    tide__event e = {.id = alloc,
                     .t_ns = alloc_ns,
                     .block_id = id,
                     .run_id = (int32_t)run,
                     .thread = (int32_t)thread,
                     .scope_id = (int32_t)scope,
                     .tag_id = (int32_t)tag,
                     .allocator_id = (int32_t)allocator,
                     .device = (int16_t)device,
                     .op = TIDE_MEM_ALLOC,
                     .kind = (uint8_t)kind};
    good = tide__sql_number(row, 9, INT64_MIN, INT64_MAX, &e.stream) && good;
    good = tide__sql_number(row, 10, 0, INT64_MAX, &e.requested_bytes) && good;
    good = tide__sql_number(row, 11, 0, INT64_MAX, &e.reserved_bytes) && good;
    good = tide__sql_number(row, 12, INT64_MIN, INT64_MAX, &e.address) && good;
    if (!good) return TIDE_ERR_BAD_INPUT;
    if (id <= 0) return TIDE_OK; // the second block of one number: which it was is not said
    TIDE_TRY(tide__holes_offer(r->h, &e, err));
    e.scope_id = 0;
    if (requested_ns >= 0) {
        e.id = 0;
        e.t_ns = requested_ns;
        e.op = TIDE_MEM_FREE_REQUESTED;
        e.run_id = freed != 0 ? run_at(r, (int32_t)run, freed) : 0;
        TIDE_TRY(tide__holes_offer_loose(r->h, &e, err));
    }
    if (freed == 0) return TIDE_OK;
    e.id = freed;
    e.t_ns = free_ns;
    e.op = TIDE_MEM_FREE_COMPLETED;
    e.run_id = run_at(r, (int32_t)run, freed);
    return tide__holes_offer(r->h, &e, err);
}

static tide_status offer_snapshot(void *ctx, sqlite3_stmt *row, tide_error *err) {
    block_reader *r = ctx;
    tide__replay live;
    if (sqlite3_column_type(row, 1) != SQLITE_BLOB) return TIDE_ERR_BAD_INPUT;
    if (tide__replay_init(&live) != TIDE_OK) return TIDE_NO_MEMORY(err, "to recover '%s'", r->h->in->path);
    const void *data = sqlite3_column_blob(row, 1);
    tide_status st = tide__snapshot_decode(data, (size_t)sqlite3_column_bytes(row, 1), &live);
    if (st == TIDE_ERR_NOMEM) TIDE_NO_MEMORY(err, "to recover '%s'", r->h->in->path);
    const tide__live_block *b;
    for (size_t i = 0; st == TIDE_OK && (b = tide__replay_next(&live, &i)) != NULL;) {
        const tide__event e = {.id = b->alloc_event,
                               .t_ns = b->alloc_ns,
                               .block_id = b->block_id,
                               .requested_bytes = b->requested_bytes,
                               .reserved_bytes = b->reserved_bytes,
                               .address = b->address,
                               .stream = b->stream,
                               .run_id = b->run_id,
                               .thread = b->thread,
                               .scope_id = b->scope_id,
                               .tag_id = b->tag_id,
                               .allocator_id = b->allocator_id,
                               .device = b->device,
                               .op = TIDE_MEM_ALLOC,
                               .kind = b->kind};
        st = tide__holes_offer(r->h, &e, err);
    }
    tide__replay_deinit(&live);
    return st;
}

tide_status tide__recover_blocks(tide__holes *h, const tide__copier *runs, tide_error *err) {
    if (h->n_missing == 0) return TIDE_OK;
    block_reader r = {.h = h, .runs = runs};
    const tide__damaged before = *h->in; // both are made anew: nothing is lost with them
    tide_status st = tide__damaged_each(h->in, "block", "id", TIDE__BLOCK_COLUMNS, take_block, &r, err);
    if (st == TIDE_OK)
        st = tide__damaged_each(h->in, "snapshot", "event_id", "event_id, data", offer_snapshot, &r, err);
    h->in->n_lost_rows = before.n_lost_rows;
    h->in->n_lost_spots = before.n_lost_spots;
    return st;
}
