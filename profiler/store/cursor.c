// SPDX-License-Identifier: MIT
//
// Rows and chunks merged in order of their ids. See cursor.h.
//
//     event         |r r r r r|             |r r|  (thinned)  |r r r ...
//     event_chunk             |   c   |  c  |
//     batches       [         ][      ][    ][  ]             [      ...   never across a change of form
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/chunk.h"
#include "profiler/store/cursor.h"
#include "profiler/store/event_row.h"
#include "profiler/store/schema.h"

#define POINTER_TYPE "tide cursor"

/// Events that lie together: one row, or one chunk.
typedef struct tide__event_place {
    bool is_chunk;
    int64_t first_id, last_id; ///< 0: there is none
    int64_t begin_ns, end_ns;
} tide__event_place;

/// What a recorder wrote as a chunk it never changes.
static bool is_same_chunk(const tide__event_place *a, const tide__event_place *b) {
    return a->first_id == b->first_id && a->last_id == b->last_id && a->begin_ns == b->begin_ns &&
           a->end_ns == b->end_ns;
}

struct tide__cursor {
    const tide__sql *sql;
    sqlite3_stmt *rows, *chunks;
    int64_t first_event, last_event; ///< what was asked for
    int64_t last_id, last_ns;        ///< of the event given out last
    bool rows_done, chunks_done;     ///< the statement has no more, and is reset
    bool has_pending;                ///< `pending` is a row that was read and not given out
    bool has_chunk;                  ///< `chunks` stands on a chunk that was not given out
    int64_t chunk_first, chunk_last;
    int64_t rows_end;    ///< rows from here on wait for a chunk
    int64_t bad_id;      ///< of the row that stopped reading
    const char *why_bad; ///< NULL: none did
    tide__event pending;
    tide__event_place taken; ///< chunk that `events` are; first_id 0: they are none
    size_t n;
    tide__event events[TIDE__CHUNK_MAX_EVENTS];
};

tide_status tide__cursor_bad(const tide__sql *s, const char *table, int64_t id, const char *why, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %s", s->path, why);
    tide_error_where(err, "table %s, row %" PRId64, table, id);
    tide_error_note(err, "the file is damaged: no recorder writes this");
    return st;
}

// ---- rows ----

/// One row. @return whether reading must stop here
static bool take_row(tide__cursor *c, sqlite3_value **columns) {
    tide__event *e = &c->events[c->n];
    c->taken = (tide__event_place){0};
    if (!tide__event_of_columns(columns, e)) {
        c->bad_id = e->id;
        c->why_bad = "a row that is no event";
    } else if (e->id >= c->rows_end) {
        c->pending = *e;
        c->has_pending = true;
    } else if (e->id <= c->last_id || e->t_ns < c->last_ns) {
        c->bad_id = e->id;
        c->why_bad = e->id <= c->last_id ? "an event is there twice" : "time runs back";
    } else {
        c->last_id = e->id;
        c->last_ns = e->t_ns;
        return ++c->n == TIDE__CHUNK_MAX_EVENTS;
    }
    return true;
}

/// An SQL function of a cursor, bound as a pointer, and the columns of a row: takes the row, and lets through only the
/// one that ends a batch.
static void take_row_function(sqlite3_context *context, int argc, sqlite3_value **argv) {
    tide__cursor *c = argc == TIDE__EVENT_N_COLUMNS + 1 ? sqlite3_value_pointer(argv[0], POINTER_TYPE) : NULL;
    if (c == NULL) {
        sqlite3_result_error(context, "tide_take_row is tidemark's own", -1);
    } else {
        sqlite3_result_int(context, take_row(c, argv + 1));
    }
}

static tide_status prepare_rows(tide__cursor *c, tide_error *err) {
    static const char text[] = "SELECT 1 FROM main.event WHERE id BETWEEN ?1 AND ?2 AND "
                               "tide_take_row(?3, " TIDE__EVENT_COLUMNS ") ORDER BY id";
    sqlite3 *db = c->sql->db;
    // A function that is in use cannot be replaced: it is made when there is none yet.
    if (sqlite3_prepare_v3(db, text, -1, 0, &c->rows, NULL) == SQLITE_OK) return TIDE_OK;
    const int rc =
        sqlite3_create_function_v2(db, "tide_take_row", TIDE__EVENT_N_COLUMNS + 1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                   NULL, take_row_function, NULL, NULL, NULL);
    return rc == SQLITE_OK ? tide__sql_prepare(c->sql, text, &c->rows, err) : tide__sql_fail(c->sql, rc, "read", err);
}

/// Rows up to the next chunk.
static tide_status read_rows(tide__cursor *c, tide_error *err) {
    c->n = 0;
    c->rows_end = c->has_chunk ? c->chunk_first : INT64_MAX;
    if (c->has_pending) {
        if (c->pending.id >= c->rows_end) return TIDE_OK;
        c->has_pending = false;
        if (c->pending.id <= c->last_id || c->pending.t_ns < c->last_ns)
            return tide__cursor_bad(c->sql, "event", c->pending.id,
                                    c->pending.id <= c->last_id ? "an event is there twice" : "time runs back", err);
        c->taken = (tide__event_place){0};
        c->events[c->n++] = c->pending;
        c->last_id = c->pending.id;
        c->last_ns = c->pending.t_ns;
    }
    if (c->rows_done) return TIDE_OK;
    bool has_row;
    TIDE_TRY(tide__sql_step(c->sql, c->rows, &has_row, err));
    if (!has_row) {
        c->rows_done = true;
        sqlite3_reset(c->rows); // gives back the lock on the file
    }
    return c->why_bad == NULL ? TIDE_OK : tide__cursor_bad(c->sql, "event", c->bad_id, c->why_bad, err);
}

// ---- chunks ----

/// Stand on the next chunk that reaches into what was asked for.
static tide_status step_chunk(tide__cursor *c, tide_error *err) {
    while (!c->has_chunk && !c->chunks_done) {
        bool has_row;
        TIDE_TRY(tide__sql_step(c->sql, c->chunks, &has_row, err));
        if (!has_row) {
            c->chunks_done = true;
            sqlite3_reset(c->chunks);
            break;
        }
        c->chunk_first = sqlite3_column_int64(c->chunks, 0);
        c->chunk_last = sqlite3_column_int64(c->chunks, 1);
        c->has_chunk = c->chunk_last >= c->first_event;
    }
    return TIDE_OK;
}

static tide_status decode_chunk(tide__cursor *c, const tide__event_place *p, tide_error *err) {
    const void *data = sqlite3_column_blob(c->chunks, 4);
    const size_t n_bytes = (size_t)sqlite3_column_bytes(c->chunks, 4);
    c->taken = (tide__event_place){0};
    if (data == NULL && n_bytes > 0) return tide__sql_fail(c->sql, SQLITE_NOMEM, "read", err);
    size_t n_all;
    if (data == NULL || !tide__chunk_decode(data, n_bytes, c->events, &n_all))
        return tide__cursor_bad(c->sql, "event_chunk", c->chunk_first, "a chunk of events is damaged", err);
    const tide__event *first = &c->events[0], *last = &c->events[n_all - 1];
    if (first->id != p->first_id || last->id != p->last_id || first->t_ns != p->begin_ns || last->t_ns != p->end_ns ||
        last->id > TIDE__MAX_EVENT || last->id - first->id + 1 != (int64_t)n_all)
        return tide__cursor_bad(c->sql, "event_chunk", c->chunk_first,
                                "a chunk of events is not the one its row tells of", err);
    c->taken = *p;
    return TIDE_OK;
}

/// The chunk that the statement stands on, cut to what was asked for; often it is the last one again.
static tide_status read_chunk(tide__cursor *c, const tide__event **events, size_t *n, tide_error *err) {
    const tide__event_place p = {.is_chunk = true,
                                 .first_id = c->chunk_first,
                                 .last_id = c->chunk_last,
                                 .begin_ns = sqlite3_column_int64(c->chunks, 2),
                                 .end_ns = sqlite3_column_int64(c->chunks, 3)};
    if (p.first_id < 1 || !is_same_chunk(&p, &c->taken)) TIDE_TRY(decode_chunk(c, &p, err));
    const tide__event *first = &c->events[0], *last = first + (p.last_id - p.first_id);
    if (first->id <= c->last_id || first->t_ns < c->last_ns)
        return tide__cursor_bad(c->sql, "event_chunk", c->chunk_first,
                                first->id <= c->last_id ? "an event is there twice" : "time runs back", err);
    c->has_chunk = false;
    c->last_id = last->id;
    c->last_ns = last->t_ns;
    if (first->id < c->first_event) first += c->first_event - first->id;
    if (last->id > c->last_event) last -= last->id - c->last_event;
    *events = first;
    *n = (size_t)(last - first + 1);
    return TIDE_OK;
}

// ---- both ----

static void rewind_to(tide__cursor *c, int64_t first_event, int64_t last_event) {
    sqlite3_reset(c->rows);
    sqlite3_reset(c->chunks);
    c->first_event = first_event > 1 ? first_event : 1;
    c->last_event = last_event;
    c->last_id = 0;
    c->last_ns = 0;
    c->has_pending = c->has_chunk = false;
    c->why_bad = NULL;
    c->rows_done = c->chunks_done = c->last_event < c->first_event;
    sqlite3_bind_int64(c->rows, 1, c->first_event);
    sqlite3_bind_int64(c->rows, 2, c->last_event);
    sqlite3_bind_pointer(c->rows, 3, c, POINTER_TYPE, NULL);
    sqlite3_bind_int64(c->chunks, 1, c->first_event);
    sqlite3_bind_int64(c->chunks, 2, c->last_event);
}

tide_status tide__cursor_open(const tide__sql *s, int64_t first_event, int64_t last_event, tide__cursor **out,
                              tide_error *err) {
    tide__cursor *c = tide_host_alloc(sizeof *c);
    if (c == NULL) return TIDE_NO_MEMORY(err, "to read '%s'", s->path);
    memset(c, 0, offsetof(tide__cursor, events)); // most of it are events, and most cursors read few
    c->sql = s;
    tide_status st = prepare_rows(c, err);
    // The chunk that the first event lies in begins before it.
    if (st == TIDE_OK)
        st = tide__sql_prepare(
            s,
            "SELECT first_event, last_event, begin_ns, end_ns, data FROM main.event_chunk WHERE first_event BETWEEN "
            "coalesce((SELECT max(first_event) FROM main.event_chunk WHERE first_event <= ?1), ?1) AND ?2 "
            "ORDER BY first_event",
            &c->chunks, err);
    if (st != TIDE_OK) {
        tide__cursor_close(c);
        return st;
    }
    rewind_to(c, first_event, last_event);
    *out = c;
    return TIDE_OK;
}

tide_status tide__cursor_seek(tide__cursor *c, int64_t first_event, int64_t last_event, tide_error *err) {
    (void)err;
    rewind_to(c, first_event, last_event);
    return TIDE_OK;
}

tide_status tide__cursor_next(tide__cursor *c, const tide__event **events, size_t *n, tide_error *err) {
    TIDE_TRY(step_chunk(c, err));
    TIDE_TRY(read_rows(c, err));
    *events = c->events;
    *n = c->n;
    if (c->n > 0 || !c->has_chunk) return TIDE_OK;
    return read_chunk(c, events, n, err);
}

bool tide__cursor_chunk(const tide__cursor *c, const tide__event **events, size_t *n) {
    if (c->taken.first_id == 0) return false;
    *events = c->events;
    *n = (size_t)(c->taken.last_id - c->taken.first_id + 1);
    return true;
}

void tide__cursor_close(tide__cursor *c) {
    if (c == NULL) return;
    sqlite3_finalize(c->rows);
    sqlite3_finalize(c->chunks);
    tide_host_free(c);
}

// ---- the event at a moment ----
//
// Time never decreases from event to event, so the ids are an index on it. A search between the
// first and the last event, by interpolation (programs allocate at an even pace more often than not) and by halves in
// turn, so that no pace makes it slow.

typedef tide__event_place place;
typedef tide__event_search search;

struct tide__event_search {
    const tide__sql *sql;
    sqlite3_stmt *row, *chunk;             ///< the last one that begins at or before an id
    sqlite3_stmt *first_row, *first_chunk; ///< number of the first event of each
    sqlite3_stmt *data;                    ///< of a chunk
    bool has_rows, has_chunks;             ///< traces mostly have one of them only
    place taken;                           ///< chunk that `events` are; first_id 0: they are none
    tide__event *events;                   ///< [TIDE__CHUNK_MAX_EVENTS] of which n; owned; NULL: none was looked into
    size_t n;
};

static tide_status last_of(const search *s, sqlite3_stmt *stmt, int64_t id, place *out, tide_error *err) {
    *out = (place){.is_chunk = stmt == s->chunk};
    sqlite3_bind_int64(stmt, 1, id);
    bool has_row;
    const tide_status st = tide__sql_step(s->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) {
        out->first_id = sqlite3_column_int64(stmt, 0);
        out->last_id = sqlite3_column_int64(stmt, 1);
        out->begin_ns = sqlite3_column_int64(stmt, 2);
        out->end_ns = sqlite3_column_int64(stmt, 3);
    }
    sqlite3_reset(stmt);
    if (st != TIDE_OK || !has_row) return st;
    const bool good =
        out->first_id >= 1 && out->last_id >= out->first_id && out->last_id <= TIDE__MAX_EVENT && out->begin_ns >= 0;
    return good && out->end_ns >= out->begin_ns
               ? TIDE_OK
               : tide__cursor_bad(s->sql, out->is_chunk ? "event_chunk" : "event", out->first_id, "no event", err);
}

/// Where the last event lies whose row or chunk begins at or before `id`.
static tide_status place_at(const search *s, int64_t id, place *out, tide_error *err) {
    *out = (place){0};
    if (s->has_chunks) TIDE_TRY(last_of(s, s->chunk, id, out, err));
    if (!s->has_rows || (out->first_id != 0 && out->last_id >= id)) return TIDE_OK;
    place row;
    TIDE_TRY(last_of(s, s->row, id, &row, err));
    if (row.first_id > out->first_id) *out = row;
    return TIDE_OK;
}

static tide_status prepare_search(search *s, tide_error *err) {
    const struct {
        sqlite3_stmt **stmt;
        const char *text;
    } all[] = {
        {&s->row, "SELECT id, id, t_ns, t_ns FROM main.event WHERE id <= ? ORDER BY id DESC LIMIT 1"},
        {&s->chunk, "SELECT first_event, last_event, begin_ns, end_ns FROM main.event_chunk "
                    "WHERE first_event <= ? ORDER BY first_event DESC LIMIT 1"},
        {&s->first_row, "SELECT min(id) FROM main.event"},
        {&s->first_chunk, "SELECT min(first_event) FROM main.event_chunk"},
        {&s->data, "SELECT data FROM main.event_chunk WHERE first_event = ?"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        TIDE_TRY(tide__sql_prepare(s->sql, all[i].text, all[i].stmt, err));
    return TIDE_OK;
}

tide_status tide__event_search_open(const tide__sql *sql, tide__event_search **out, tide_error *err) {
    search *s;
    TIDE_TRY(TIDE_NEW(&s, 1, err, "to read '%s'", sql->path));
    s->sql = sql;
    const tide_status st = prepare_search(s, err);
    if (st != TIDE_OK) {
        tide__event_search_close(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

void tide__event_search_close(tide__event_search *s) {
    if (s == NULL) return;
    sqlite3_stmt *const all[] = {s->row, s->chunk, s->first_row, s->first_chunk, s->data};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) sqlite3_finalize(all[i]);
    tide_host_free(s->events);
    tide_host_free(s);
}

/// Number of the last event of [n > 0] with t_ns <= `t_ns`; the first has.
static int64_t last_until(const tide__event *events, size_t n, int64_t t_ns) {
    size_t lo = 1; // events before lo are not later, those from n on are
    while (lo < n) {
        const size_t mid = lo + (n - lo) / 2;
        if (events[mid].t_ns <= t_ns) {
            lo = mid + 1;
        } else {
            n = mid;
        }
    }
    return events[lo - 1].id;
}

static tide_status decode_for_search(search *s, const place *p, tide_error *err) {
    s->taken = (place){0};
    if (s->events == NULL) TIDE_TRY(TIDE_NEW(&s->events, TIDE__CHUNK_MAX_EVENTS, err, "to read '%s'", s->sql->path));
    bool has_row;
    sqlite3_bind_int64(s->data, 1, p->first_id);
    tide_status st = tide__sql_step(s->sql, s->data, &has_row, err);
    s->n = 0;
    if (st == TIDE_OK && has_row) {
        const void *data = sqlite3_column_blob(s->data, 0);
        const size_t n_bytes = (size_t)sqlite3_column_bytes(s->data, 0);
        if (data == NULL || !tide__chunk_decode(data, n_bytes, s->events, &s->n))
            st = tide__cursor_bad(s->sql, "event_chunk", p->first_id, "a chunk of events is damaged", err);
    }
    sqlite3_reset(s->data);
    if (st == TIDE_OK && s->n > 0) s->taken = *p;
    return st;
}

/// The last event of a chunk with t_ns <= `t_ns`; its first has.
static tide_status search_chunk(search *s, const place *p, int64_t t_ns, int64_t *event_id, tide_error *err) {
    if (!is_same_chunk(p, &s->taken)) TIDE_TRY(decode_for_search(s, p, err));
    if (s->taken.first_id == 0) return TIDE_OK; // it is gone
    if (s->events[0].t_ns > t_ns)
        return tide__cursor_bad(s->sql, "event_chunk", p->first_id, "a chunk of events is damaged", err);
    *event_id = last_until(s->events, s->n, t_ns);
    return TIDE_OK;
}

static tide_status first_of(const search *s, sqlite3_stmt *stmt, int64_t *id, tide_error *err) {
    bool has_row;
    const tide_status st = tide__sql_step(s->sql, stmt, &has_row, err);
    const bool has_id = st == TIDE_OK && has_row && sqlite3_column_type(stmt, 0) == SQLITE_INTEGER;
    if (has_id && sqlite3_column_int64(stmt, 0) < *id) *id = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return st;
}

static tide_status first_event(const search *s, int64_t *id, tide_error *err) {
    *id = INT64_MAX;
    if (s->has_rows) TIDE_TRY(first_of(s, s->first_row, id, err));
    return s->has_chunks ? first_of(s, s->first_chunk, id, err) : TIDE_OK;
}

/// Which id to look at next: nothing that begins between lo and `floor_id` is not lo, hi is later than t_ns.
static int64_t guess(const place *lo, int64_t floor_id, const place *hi, int64_t t_ns, bool by_half) {
    const int64_t n = hi->first_id - floor_id;
    if (by_half) return floor_id + n / 2;
    double part = ((double)t_ns - (double)lo->end_ns) / ((double)hi->begin_ns - (double)lo->end_ns + 1);
    if (!(part > 0)) part = 0;
    if (part > 1) part = 1;
    int64_t ahead = (int64_t)(part * (double)n);
    if (ahead < 1) ahead = 1;
    if (ahead > n - 1) ahead = n - 1;
    return floor_id + ahead;
}

/// `lo` begins at or before the moment, `hi` behind it. Afterwards nothing lies between them.
static tide_status close_in(const search *s, int64_t t_ns, place *lo, place *hi, tide_error *err) {
    int64_t floor_id = lo->last_id;
    for (int turn = 0; lo->end_ns <= t_ns && hi->first_id - floor_id > 1; turn++) {
        const int64_t id = guess(lo, floor_id, hi, t_ns, turn % 2 == 1);
        place mid;
        TIDE_TRY(place_at(s, id, &mid, err));
        if (mid.first_id <= lo->first_id) {
            floor_id = id; // an empty interval
        } else if (mid.begin_ns <= t_ns) {
            *lo = mid;
            floor_id = mid.last_id;
        } else {
            *hi = mid;
        }
    }
    return TIDE_OK;
}

tide_status tide__event_search_at(tide__event_search *s, int64_t t_ns, int64_t *event_id, tide_error *err) {
    place lo, hi, last_row;
    int64_t first;
    *event_id = 0;
    TIDE_TRY(last_of(s, s->row, INT64_MAX, &last_row, err));
    TIDE_TRY(last_of(s, s->chunk, INT64_MAX, &hi, err));
    s->has_rows = last_row.first_id != 0;
    s->has_chunks = hi.first_id != 0;
    if (last_row.first_id > hi.first_id) hi = last_row;
    if (hi.first_id == 0) return TIDE_OK; // no events
    if (hi.begin_ns <= t_ns) {
        lo = hi;
    } else {
        TIDE_TRY(first_event(s, &first, err));
        TIDE_TRY(place_at(s, first, &lo, err));
        if (lo.begin_ns > t_ns) return TIDE_OK;
        TIDE_TRY(close_in(s, t_ns, &lo, &hi, err));
    }
    if (lo.end_ns > t_ns) return search_chunk(s, &lo, t_ns, event_id, err);
    *event_id = lo.last_id;
    return TIDE_OK;
}

tide_status tide__cursor_event_at(const tide__sql *s, int64_t t_ns, int64_t *event_id, tide_error *err) {
    search *once;
    TIDE_TRY(tide__event_search_open(s, &once, err));
    const tide_status st = tide__event_search_at(once, t_ns, event_id, err);
    tide__event_search_close(once);
    return st;
}
