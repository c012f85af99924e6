// SPDX-License-Identifier: MIT
//
// Events read in order, and the state after any of them: the nearest snapshot and a replay from there. See
// moments_internal.h.
//
//     snapshot  s -------> s -------> s ------->
//     asked                    ^ x: replayed from the snapshot before it, or from the moment that was asked for last
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/read/moments_internal.h"
#include "profiler/store/chunk.h"
#include "profiler/store/event_row.h"
#include "profiler/store/schema.h"
#include "profiler/store/snapshot.h"

// ---- rows of table event ----
//
// Rows of table event, read at half the price. See tide__trace_each in moments_internal.h.
//
// Fetching a row costs most by its fifteen columns, one call each (330 ns). Here SQLite calls us once per row, with the
// columns that the kind of event is asked for, and the whole range is one step of one statement (150 ns):
//
//     SELECT count(CASE op WHEN <alloc> THEN tide_row(all columns) ELSE tide_row(id, t_ns, op, block_id) END) FROM
//     event
//
// Only where no chunk lies in the range; the cursor reads everything else.

enum {
    BATCH = 512,
    N_BRIEF = 4, // columns of a brief row: id, t_ns, op, block_id
    N_FULL = TIDE__EVENT_N_COLUMNS,
    N_CHANGE = 7,
};
#define BRIEF "tide_row(id, t_ns, op, block_id)"
#define CHANGE "tide_row(id, t_ns, op, block_id, kind, device, requested_bytes)"
#define FULL "tide_row(" TIDE__EVENT_COLUMNS ")"

struct tide__row_reader {
    tide_trace *t;
    sqlite3_stmt *stmts[TIDE__N_READS];
    sqlite3_stmt *chunk;
    // of the question that runs
    int64_t next_id, last_ns;
    tide_status (*on_events)(void *ctx, const tide__event *events, size_t n);
    void *ctx;
    tide_status st; // TIDE_ERR_BAD_INPUT: the row next_id; TIDE_ERR_NOT_FOUND: there is no such row
    size_t n;
    tide__event events[BATCH];
};

/// `n` events were read: calls the reading. TIDE_ERR_CANCELLED when it cancels.
static tide_status report_read(tide_trace *t, size_t n, tide_error *err) {
    enum { EVENTS_UNHEARD = 8192 }; // some milliseconds
    t->n_unheard += n;
    if (t->reading == NULL || t->reading->tell == NULL || t->n_unheard < EVENTS_UNHEARD) return TIDE_OK;
    t->n_unheard = 0;
    if (t->reading->tell(t->reading->ctx, 0)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "reading '%s' was cancelled", t->path);
}

// ---- one row ----

/// A row of which the rest is not asked for.
static bool take_brief(sqlite3_value **v, int n, tide__event *e) {
    const int64_t op = sqlite3_value_int64(v[2]);
    *e = (tide__event){.id = sqlite3_value_int64(v[0]),
                       .t_ns = sqlite3_value_int64(v[1]),
                       .block_id = sqlite3_value_int64(v[3]),
                       .op = (uint8_t)op,
                       .kind = TIDE__NO_KIND};
    if (!tide__column_fits(op, UINT8_MAX) || e->id < 1 || e->t_ns < 0 || e->block_id < 0 ||
        tide__op_name((int)op) == NULL)
        return false;
    if (n < N_CHANGE) return true;
    e->requested_bytes = sqlite3_value_int64(v[6]);
    return e->requested_bytes >= 0 && tide__column_kind(v[4], e) && e->kind < TIDE_N_KINDS &&
           tide__column_device(v[5], e) && e->device > 0;
}

static tide_status give(tide__row_reader *r) {
    const size_t n = r->n;
    r->n = 0;
    if (n == 0) return TIDE_OK;
    TIDE_TRY(r->on_events(r->ctx, r->events, n));
    return report_read(r->t, n, NULL);
}

/// The function tide_row of the statements.
static void on_row(sqlite3_context *context, int n, sqlite3_value **v) {
    tide__row_reader *r = sqlite3_user_data(context);
    tide__event *e = &r->events[r->n];
    if (r->st == TIDE_OK) {
        const bool good = (n == N_FULL ? tide__event_of_columns(v, e) : take_brief(v, n, e)) && e->t_ns >= r->last_ns;
        r->st = good && e->id == r->next_id ? TIDE_OK : TIDE_ERR_BAD_INPUT;
        if (good && e->id > r->next_id) r->st = TIDE_ERR_NOT_FOUND;
    }
    if (r->st == TIDE_OK) {
        r->next_id++;
        r->last_ns = e->t_ns;
        if (++r->n == BATCH) r->st = give(r);
    }
    if (r->st != TIDE_OK) sqlite3_result_error(context, "stopped", -1);
}

// ---- the statements ----

static const char *text_of(tide__read what) {
    static const char *const texts[TIDE__N_READS] = {
        [TIDE__READ_REPLAY] = "SELECT count(CASE op WHEN 1 THEN " FULL " WHEN 7 THEN " FULL " ELSE " BRIEF " END)",
        [TIDE__READ_CHANGES] = "SELECT count(CASE op WHEN 1 THEN " CHANGE " WHEN 3 THEN " CHANGE " ELSE " BRIEF " END)",
        [TIDE__READ_OPS] = "SELECT count(" BRIEF ")",
        [TIDE__READ_SCOPES] = "SELECT count(CASE WHEN op BETWEEN 16 AND 17 THEN " FULL " ELSE " BRIEF " END)",
    };
    return texts[what];
}

_Static_assert(TIDE_MEM_ALLOC == 1 && TIDE_MEM_FREE_COMPLETED == 3 && TIDE_MEM_POOL_DISCARD == 7 &&
                   TIDE__OP_SCOPE_ENTER == 16 && TIDE__OP_SCOPE_LEAVE == 17,
               "in the statements");

static tide_status prepare(tide_trace *t, tide__row_reader *r, tide__read what, tide_error *err) {
    if (r->stmts[what] != NULL) return TIDE_OK;
    tide_text text = {0};
    tide_text_addf(&text, "%s FROM main.event WHERE id BETWEEN ?1 AND ?2", text_of(what));
    const tide_status st = text.failed ? TIDE_NO_MEMORY(err, "for the events of '%s'", t->path)
                                       : tide__sql_prepare(&t->sql, tide_text_str(&text), &r->stmts[what], err);
    tide_text_deinit(&text);
    return st;
}

static tide_status make_reader(tide_trace *t, tide_error *err) {
    if (t->rows != NULL) return TIDE_OK;
    tide__row_reader *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "for the events of '%s'", t->path));
    r->t = t;
    const int rc = sqlite3_create_function_v2(t->sql.db, "tide_row", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, r, on_row,
                                              NULL, NULL, NULL);
    tide_status st = rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(&t->sql, rc, "query", err);
    if (st == TIDE_OK)
        st = tide__sql_prepare(&t->sql,
                               "SELECT last_event FROM main.event_chunk WHERE first_event <= ? "
                               "ORDER BY first_event DESC LIMIT 1",
                               &r->chunk, err);
    if (st != TIDE_OK) {
        tide_host_free(r);
        return st;
    }
    t->rows = r;
    return TIDE_OK;
}

static void rows_deinit(tide_trace *t) {
    if (t->rows == NULL) return;
    for (size_t i = 0; i < TIDE__N_READS; i++) sqlite3_finalize(t->rows->stmts[i]);
    sqlite3_finalize(t->rows->chunk);
    tide_host_free(t->rows);
    t->rows = NULL;
}

// ---- a range ----

/// Whether a chunk reaches into events `first` to `last`.
static tide_status has_chunk(tide_trace *t, int64_t first, int64_t last, bool *has, tide_error *err) {
    sqlite3_stmt *stmt = t->rows->chunk;
    sqlite3_bind_int64(stmt, 1, last);
    bool has_row;
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    *has = st == TIDE_OK && has_row && sqlite3_column_int64(stmt, 0) >= first;
    sqlite3_reset(stmt);
    return st;
}

static tide_status run(tide_trace *t, sqlite3_stmt *stmt, int64_t last, int64_t *next_id, tide_error *err) {
    tide__row_reader *r = t->rows;
    sqlite3_bind_int64(stmt, 1, r->next_id);
    sqlite3_bind_int64(stmt, 2, last);
    bool has_row;
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, &why);
    sqlite3_reset(stmt);
    if (r->st == TIDE_ERR_NOT_FOUND) { // the caller reads on from there and reports it
        r->st = give(r);
        st = TIDE_OK;
    } else if (r->st == TIDE_OK && st == TIDE_OK) {
        st = r->st = give(r);
    }
    *next_id = r->next_id;
    if (r->st == TIDE_OK) { // nothing of ours: what SQLite says
        if (st != TIDE_OK && err != NULL) *err = why;
        return st;
    }
    if (r->st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    if (r->st == TIDE_ERR_CANCELLED) return TIDE_FAIL(err, r->st, "reading '%s' was cancelled", t->path);
    return tide__trace_bad_row(t, "event", r->next_id, err);
}

/// As tide__trace_each where all events of the range are rows; else nothing happens. *next_id: first event that was not
/// given.
static tide_status tide__trace_rows(tide_trace *t, tide__read what, int64_t first, int64_t last,
                                    tide_status (*on_events)(void *ctx, const tide__event *events, size_t n), void *ctx,
                                    int64_t *next_id, tide_error *err) {
    bool chunks;
    *next_id = first;
    if (what == TIDE__READ_ALL || (t->rows != NULL && t->rows->on_events != NULL)) return TIDE_OK; // no use, or in use
    TIDE_TRY(make_reader(t, err));
    TIDE_TRY(has_chunk(t, first, last, &chunks, err));
    if (chunks) return TIDE_OK;
    TIDE_TRY(prepare(t, t->rows, what, err));
    tide__row_reader *r = t->rows;
    r->next_id = first;
    r->last_ns = 0;
    r->on_events = on_events;
    r->ctx = ctx;
    r->st = TIDE_OK;
    r->n = 0;
    const tide_status st = run(t, r->stmts[what], last, next_id, err);
    r->on_events = NULL;
    return st;
}

// ---- events ----

void tide_trace_hear(tide_trace *t, const tide_reading *reading) {
    t->reading = reading;
    t->n_unheard = 0;
}

/// Events `event` and behind are not there: dropped since the trace was opened, or never there.
static tide_status missing(const tide_trace *t, int64_t event, tide_error *err) {
    if (t->first_event > event || t->state == TIDE_TRACE_RECORDING) return tide__trace_dropped(t, err);
    return tide__trace_bad_row(t, "event", event, err);
}

static tide_status each(tide_trace *t, int64_t first, int64_t last,
                        tide_status (*on_events)(void *ctx, const tide__event *events, size_t n), void *ctx,
                        tide_error *err) {
    const tide__event *events;
    size_t n;
    for (int64_t next = first; next <= last; next += (int64_t)n) {
        TIDE_TRY(tide__cursor_next(t->cursor, &events, &n, err));
        if (n == 0 || events[0].id != next) return missing(t, next, err);
        const tide_status st = on_events(ctx, events, n);
        if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
        if (st != TIDE_OK) return tide__trace_bad_row(t, "event", next, err);
        TIDE_TRY(report_read(t, n, err));
    }
    return TIDE_OK;
}

tide_status tide__trace_each(tide_trace *t, tide__read what, int64_t first, int64_t last,
                             tide_status (*on_events)(void *ctx, const tide__event *events, size_t n), void *ctx,
                             tide_error *err) {
    if (last < first) return TIDE_OK;
    int64_t next;
    TIDE_TRY(tide__trace_rows(t, what, first, last, on_events, ctx, &next, err));
    if (next > last) return TIDE_OK;
    if (t->cursor == NULL) {
        TIDE_TRY(tide__cursor_open(&t->sql, next, last, &t->cursor, err));
    } else {
        TIDE_TRY(tide__cursor_seek(t->cursor, next, last, err));
    }
    const tide_status st = each(t, next, last, on_events, ctx, err);
    const tide_status rest = tide__cursor_seek(t->cursor, 1, 0, NULL); // no statement stays open
    return st != TIDE_OK ? st : rest;
}

// ---- snapshots ----

/// Number of snapshots at or before `event_id`.
static size_t snapshots_to(const tide_trace *t, int64_t event_id) {
    size_t lo = 0, hi = t->n_snapshots;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->snapshots[mid].event_id <= event_id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/// The bytes of a snapshot, without the copies of a statement.
static tide_status read_bytes(tide_trace *t, int64_t event_id, tide_error *err) {
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(t->sql.db, "main", "snapshot", "data", event_id, 0, &blob);
    const int n = rc == SQLITE_OK ? sqlite3_blob_bytes(blob) : 0;
    t->snapshot.len = 0;
    tide_status st = TIDE_OK;
    if (rc == SQLITE_OK && (size_t)n + 1 > t->snapshot.cap &&
        tide_host_grow(&t->snapshot.data, &t->snapshot.cap, (size_t)n + 1, 1) != TIDE_OK)
        st = TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    if (rc == SQLITE_OK && st == TIDE_OK) rc = sqlite3_blob_read(blob, t->snapshot.data, n, 0);
    if (rc == SQLITE_OK) t->snapshot.len = (size_t)n;
    if (rc != SQLITE_OK) st = tide__sql_fail(&t->sql, rc, "read", err);
    sqlite3_blob_close(blob);
    return st;
}

static tide_status take_snapshot(tide_trace *t, sqlite3_stmt *stmt, const tide__snapshot_place *place, tide__replay *r,
                                 tide_error *err) {
    TIDE_TRY(read_bytes(t, place->event_id, err));
    const tide_status st = tide__snapshot_decode(t->snapshot.data, t->snapshot.len, r);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    const bool fits = st == TIDE_OK && sqlite3_column_int64(stmt, 0) == (int64_t)tide__replay_n_live(r) &&
                      sqlite3_column_int64(stmt, 1) == r->series[0].live_bytes;
    if (!fits) return tide__trace_bad_row(t, "snapshot", place->event_id, err);
    r->last_event = place->event_id;
    r->last_ns = place->t_ns;
    return TIDE_OK;
}

static tide_status read_snapshot(tide_trace *t, const tide__snapshot_place *place, tide__replay *r, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(&t->sql, "SELECT blocks, requested_bytes FROM main.snapshot WHERE event_id = ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, place->event_id);
    bool has_row;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK) st = has_row ? take_snapshot(t, stmt, place, r, err) : tide__trace_dropped(t, err);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__trace_read_snapshot(tide_trace *t, int64_t event_id, tide__replay *r, tide_error *err) {
    const size_t n = snapshots_to(t, event_id);
    // When the first events are gone, reading them says so.
    return n > 0 ? read_snapshot(t, &t->snapshots[n - 1], r, err) : TIDE_OK;
}

// ---- the state after an event ----

static void leave(tide_trace *t) { t->at.is_on = false; }

void tide__trace_walk_deinit(tide_trace *t) {
    if (t->at.has_memory) tide__replay_deinit(&t->at.replay);
    t->at.has_memory = t->at.is_on = false;
    tide_text_deinit(&t->snapshot);
    rows_deinit(t);
    tide__cursor_close(t->cursor);
    tide__event_search_close(t->search);
    t->cursor = NULL;
    t->search = NULL;
}

static tide_status apply_all(void *ctx, const tide__event *events, size_t n) {
    tide__replay *r = ctx;
    for (size_t i = 0; i < n; i++) {
        tide__problem problem;
        size_t series;
        TIDE_TRY(tide__replay_apply(r, &events[i], &problem, &series));
    }
    return TIDE_OK;
}

static tide_status begin_near(tide_trace *t, int64_t event_id, tide_error *err) {
    if (t->at.has_memory) {
        tide__replay_reset(&t->at.replay);
    } else if (tide__replay_init(&t->at.replay) != TIDE_OK) {
        return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    }
    t->at.has_memory = t->at.is_on = true;
    return tide__trace_read_snapshot(t, event_id, &t->at.replay, err);
}

/// The peak of all was kept where its events were not.
static tide_status go_to_peak(tide_trace *t, tide_error *err) {
    tide_status st = begin_near(t, 0, err);
    if (st == TIDE_OK) st = read_snapshot(t, &t->peak_snapshot, &t->at.replay, err);
    if (st != TIDE_OK) leave(t);
    return st;
}

/// Bring t->at to `event_id`; on failure there is none.
static tide_status go_to(tide_trace *t, int64_t event_id, tide_error *err) {
    const size_t n = snapshots_to(t, event_id);
    const int64_t snapshot = n > 0 ? t->snapshots[n - 1].event_id : 0;
    const int64_t at = t->at.is_on ? t->at.replay.last_event : -1;
    tide_status st = at >= snapshot && at <= event_id ? TIDE_OK : begin_near(t, event_id, err);
    if (st == TIDE_OK)
        st = tide__trace_each(t, TIDE__READ_REPLAY, t->at.replay.last_event + 1, event_id, apply_all, &t->at.replay,
                              err);
    if (st != TIDE_OK) leave(t);
    return st;
}

tide_status tide__trace_state_after(tide_trace *t, int64_t event_id, const tide__replay **out, tide_error *err) {
    if (t->tail.is_on && t->tail.replay.last_event == event_id) {
        *out = &t->tail.replay;
        return TIDE_OK;
    }
    const bool is_peak = event_id > 0 && event_id < t->first_event - 1 && event_id == t->peak_snapshot.event_id;
    TIDE_TRY(is_peak ? go_to_peak(t, err) : go_to(t, event_id, err));
    *out = &t->at.replay;
    return TIDE_OK;
}

typedef struct walk {
    tide__replay *replay;
    tide__walk_fn on_event;
    void *ctx;
} walk;

static tide_status walk_events(void *ctx, const tide__event *events, size_t n) {
    const walk *w = ctx;
    for (size_t i = 0; i < n; i++) {
        tide__problem problem;
        size_t series;
        TIDE_TRY(tide__replay_apply(w->replay, &events[i], &problem, &series));
        TIDE_TRY(w->on_event(w->ctx, w->replay, &events[i], series));
    }
    return TIDE_OK;
}

tide_status tide__trace_walk(tide_trace *t, int64_t first, int64_t last,
                             tide_status (*begin)(void *ctx, const tide__replay *r), tide__walk_fn on_event, void *ctx,
                             tide_error *err) {
    TIDE_TRY(go_to(t, first - 1, err));
    if (begin != NULL && begin(ctx, &t->at.replay) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    walk w = {&t->at.replay, on_event, ctx};
    const tide_status st = tide__trace_each(t, TIDE__READ_REPLAY, first, last, walk_events, &w, err);
    if (st != TIDE_OK) leave(t);
    return st;
}
