// SPDX-License-Identifier: MIT
//
// What a recording that goes on reads from the file that it left. See store.h.
//
// The last recorder may have been killed at any moment, and the file may come from anybody: every number is checked, so
// that what follows can rely on them.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/cursor.h"
#include "profiler/store/snapshot.h"
#include "profiler/store/store_internal.h"

/// Call `row` for each row of `query`. @return its first failure; TIDE_ERR_BAD_INPUT is reported as one of `table`
static tide_status each_row(const tide__store *s, const char *table, const char *query,
                            tide_status (*row)(sqlite3_stmt *stmt, void *ctx), void *ctx, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, query, &stmt, err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&s->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = row(stmt, ctx);
        if (st == TIDE_OK) continue;
        st =
            st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(err, "to record into '%s'", s->path) : tide__store_bad(s, table, err);
        break;
    }
    sqlite3_finalize(stmt);
    return st;
}

// ---- where it stands ----

typedef struct last_of {
    int64_t event, ns;
} last_of;

/// The later of what is there and this row's event and time.
static tide_status take_last(sqlite3_stmt *stmt, void *ctx) {
    last_of *last = ctx, row;
    if (!tide__sql_number(stmt, 0, 1, TIDE__MAX_EVENT, &row.event) || !tide__sql_number(stmt, 1, 0, INT64_MAX, &row.ns))
        return TIDE_ERR_BAD_INPUT;
    if (row.event > last->event) *last = row;
    return TIDE_OK;
}

static const char last_row[] = "SELECT id, t_ns FROM event ORDER BY id DESC LIMIT 1";
static const char last_chunk[] = "SELECT last_event, end_ns FROM event_chunk ORDER BY first_event DESC LIMIT 1";
static const char last_leaf[] =
    "SELECT last_event, end_ns FROM leaf WHERE series = 0 ORDER BY first_event DESC LIMIT 1";
static const char last_snapshot[] = "SELECT event_id, t_ns FROM snapshot ORDER BY event_id DESC LIMIT 1";

tide_status tide__store_get_state(const tide__store *s, tide__store_state *out, tide_error *err) {
    last_of event = {0}, leaf = {0}, snapshot = {0};
    TIDE_TRY(each_row(s, "event", last_row, take_last, &event, err));
    TIDE_TRY(each_row(s, "event_chunk", last_chunk, take_last, &event, err));
    TIDE_TRY(each_row(s, "leaf", last_leaf, take_last, &leaf, err));
    TIDE_TRY(each_row(s, "snapshot", last_snapshot, take_last, &snapshot, err));
    // A snapshot is taken where an interval ends; that interval may have changed nothing and have no leaf.
    if (leaf.event < snapshot.event) leaf = snapshot;
    if (leaf.event > event.event || leaf.ns > event.ns || snapshot.ns > leaf.ns) return tide__store_bad(s, "leaf", err);
    *out = (tide__store_state){
        .last_event = event.event, .last_ns = event.ns, .snapshot_event = snapshot.event, .leaf_event = leaf.event};
    return tide__sql_int(&s->sql, "SELECT sum(1) FROM problem", 0, &out->n_problems, err);
}

// ---- names ----

static tide_status take_name(sqlite3_stmt *stmt, void *ctx) {
    tide__names *n = ctx;
    int64_t id, got;
    if (!tide__sql_number(stmt, 0, n->n_texts + 1, n->n_texts + 1, &id) || sqlite3_column_type(stmt, 1) != SQLITE_TEXT)
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide__names_text(n, tide__sql_text(stmt, 1), &got));
    return got == id ? TIDE_OK : TIDE_ERR_BAD_INPUT; // a text that is there twice
}

static tide_status take_scope(sqlite3_stmt *stmt, void *ctx) {
    tide__names *n = ctx;
    const int64_t next = (int64_t)n->n_scopes + 1;
    int64_t id, step, got;
    tide__scope_row row = {0};
    if (!tide__sql_number(stmt, 0, next, next, &id) || !tide__names_scope_kind(tide__sql_text(stmt, 2), &row.kind) ||
        !tide__sql_number(stmt, 1, 1, n->n_texts, &row.name_id) ||
        !tide__sql_int_or(stmt, 3, 0, INT32_MAX, -1, &step) ||
        !tide__sql_int_or(stmt, 4, 1, next - 1, 0, &row.parent_id))
        return TIDE_ERR_BAD_INPUT;
    row.step = (int32_t)step;
    TIDE_TRY(tide__names_scope_row(n, &row, &got));
    return got == id ? TIDE_OK : TIDE_ERR_BAD_INPUT;
}

static tide_status take_device(sqlite3_stmt *stmt, void *ctx) {
    tide__names *n = ctx;
    const int64_t next = (int64_t)n->n_devices + 1;
    int64_t id, got;
    tide_device device;
    if (!tide__sql_number(stmt, 0, next, next, &id) ||
        tide_device_parse(tide__sql_text(stmt, 1), &device, NULL) != TIDE_OK)
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide__names_device(n, device, &got));
    return got == id ? TIDE_OK : TIDE_ERR_BAD_INPUT;
}

static tide_status take_thread(sqlite3_stmt *stmt, void *ctx) {
    int64_t id, process_id, number;
    if (!tide__sql_number(stmt, 0, 1, INT32_MAX, &id) || !tide__sql_number(stmt, 1, 1, INT32_MAX, &process_id) ||
        !tide__sql_number(stmt, 2, 1, INT32_MAX, &number))
        return TIDE_ERR_BAD_INPUT;
    return tide__names_put_thread(ctx, id, process_id, number, tide__sql_text(stmt, 3));
}

tide_status tide__store_load_names(const tide__store *s, tide__names *n, tide_error *err) {
    TIDE_TRY(each_row(s, "name", "SELECT id, text FROM name ORDER BY id", take_name, n, err));
    TIDE_TRY(
        each_row(s, "scope", "SELECT id, name_id, kind, step, parent_id FROM scope ORDER BY id", take_scope, n, err));
    TIDE_TRY(each_row(s, "device", "SELECT id, name FROM device ORDER BY id", take_device, n, err));
    TIDE_TRY(each_row(s, "thread", "SELECT id, process_id, number, name FROM thread ORDER BY id", take_thread, n, err));
    tide__names_written(n);
    return TIDE_OK;
}

// ---- live blocks ----

static tide_status take_series(sqlite3_stmt *stmt, void *ctx) {
    tide__replay *r = ctx;
    const int64_t next = (int64_t)r->n_series;
    int64_t id, device, kind;
    if (!tide__sql_number(stmt, 0, next, next, &id) || !tide__sql_number(stmt, 1, 1, INT16_MAX, &device) ||
        !tide__sql_number(stmt, 2, 0, UINT8_MAX, &kind))
        return TIDE_ERR_BAD_INPUT;
    const bool fits = device < TIDE__MAX_DEVICES && kind < TIDE_N_KINDS;
    const size_t got = tide__replay_series(r, (int16_t)device, (uint8_t)kind);
    if (got == (size_t)id) return TIDE_OK;
    return got == 0 && fits ? TIDE_ERR_NOMEM : TIDE_ERR_BAD_INPUT;
}

static tide_status take_snapshot(sqlite3_stmt *stmt, void *ctx) {
    tide__replay *r = ctx;
    int64_t t_ns, blocks, bytes;
    if (!tide__sql_number(stmt, 0, 0, INT64_MAX, &t_ns) || !tide__sql_number(stmt, 1, 0, INT64_MAX, &blocks) ||
        !tide__sql_number(stmt, 2, 0, INT64_MAX, &bytes) || sqlite3_column_type(stmt, 3) != SQLITE_BLOB)
        return TIDE_ERR_BAD_INPUT;
    const void *data = sqlite3_column_blob(stmt, 3);
    TIDE_TRY(tide__snapshot_decode(data, (size_t)sqlite3_column_bytes(stmt, 3), r));
    r->last_ns = t_ns;
    return tide__replay_n_live(r) == (size_t)blocks && r->series[0].live_bytes == bytes ? TIDE_OK : TIDE_ERR_BAD_INPUT;
}

tide_status tide__store_load_replay(const tide__store *s, const tide__store_state *state, tide__replay *r,
                                    tide_error *err) {
    TIDE_TRY(
        each_row(s, "series", "SELECT id, device, kind FROM series WHERE id <> 0 ORDER BY id", take_series, r, err));
    if (state->snapshot_event == 0) return TIDE_OK;
    const size_t n_series = r->n_series;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "SELECT t_ns, blocks, requested_bytes, data FROM snapshot WHERE event_id = ?",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, state->snapshot_event);
    bool has_row;
    tide_status st = tide__sql_step(&s->sql, stmt, &has_row, err);
    if (st == TIDE_OK) {
        st = has_row ? take_snapshot(stmt, r) : TIDE_ERR_BAD_INPUT;
        if (st == TIDE_OK && r->n_series != n_series) st = TIDE_ERR_BAD_INPUT; // a block of a series without a row
        if (st == TIDE_ERR_NOMEM) st = TIDE_NO_MEMORY(err, "to record into '%s'", s->path);
        if (st == TIDE_ERR_BAD_INPUT) st = tide__store_bad(s, "snapshot", err);
    }
    sqlite3_finalize(stmt);
    if (st == TIDE_OK) r->last_event = state->snapshot_event;
    return st;
}

static tide_status apply(tide__replay *r, tide__leaves *leaves, const tide__event *e) {
    tide__problem problem;
    size_t series;
    TIDE_TRY(tide__replay_apply(r, e, &problem, &series));
    return leaves != NULL ? tide__leaves_add(leaves, r, e, series) : TIDE_OK;
}

tide_status tide__store_replay(const tide__store *s, int64_t last, tide__replay *r, tide__leaves *leaves,
                               int64_t leaf_event, tide_error *err) {
    if (last <= r->last_event) return TIDE_OK;
    tide__cursor *c;
    TIDE_TRY(tide__cursor_open(&s->sql, r->last_event + 1, last, &c, err));
    tide_status st = TIDE_OK;
    const tide__event *events;
    for (size_t n = 1; st == TIDE_OK && n > 0;) {
        st = tide__cursor_next(c, &events, &n, err);
        for (size_t i = 0; st == TIDE_OK && i < n; i++) {
            st = apply(r, events[i].id > leaf_event ? leaves : NULL, &events[i]);
            if (st != TIDE_OK)
                TIDE_FAIL(err, st, "cannot go on recording into '%s' behind event %" PRId64 ": %s", s->path,
                          events[i].id - 1, tide_status_text(st));
        }
    }
    tide__cursor_close(c);
    return st;
}

// ---- positions ----

typedef struct position_list {
    tide__position *items;
    size_t n, cap;
} position_list;

static tide_status take_position(sqlite3_stmt *stmt, void *ctx) {
    position_list *l = ctx;
    tide__position p;
    if (!tide__sql_number(stmt, 0, 1, INT32_MAX, &p.process_id) ||
        !tide__sql_number(stmt, 1, TIDE__POSITION_LOG, INT32_MAX, &p.ring) ||
        !tide__sql_number(stmt, 2, 0, INT64_MAX, &p.position) || !tide__sql_number(stmt, 3, 0, INT32_MAX, &p.thread) ||
        !tide__sql_number(stmt, 4, 0, INT64_MAX, &p.n_lost))
        return TIDE_ERR_BAD_INPUT;
    const tide__position *last = l->n > 0 ? &l->items[l->n - 1] : NULL;
    if (last != NULL && (p.process_id < last->process_id || (p.process_id == last->process_id && p.ring <= last->ring)))
        return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide_host_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items));
    l->items[l->n++] = p;
    return TIDE_OK;
}

tide_status tide__store_load_positions(const tide__store *s, tide__position **out, size_t *n, tide_error *err) {
    position_list l = {0};
    const tide_status st = each_row(
        s, "position", "SELECT process_id, ring, position, thread, n_lost FROM position ORDER BY process_id, ring",
        take_position, &l, err);
    if (st != TIDE_OK) {
        tide_host_free(l.items);
        return st;
    }
    *out = l.items;
    *n = l.n;
    return TIDE_OK;
}
