// SPDX-License-Identifier: MIT
//
// The event at a moment: time never decreases from event to event, so the ids are an index on it. A search between the
// first and the last event, by interpolation (programs allocate at an even pace more often than not) and by halves in
// turn, so that no pace makes it slow. See cursor.h.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "profiler/store/chunk.h"
#include "profiler/store/cursor.h"

/// Events that lie together: one row, or one chunk.
typedef struct place {
    bool is_chunk;
    int64_t first_id, last_id; ///< 0: there is none
    int64_t begin_ns, end_ns;
} place;

typedef struct search {
    const tide__sql *sql;
    sqlite3_stmt *row, *chunk; ///< the last one that begins at or before an id
    bool has_rows, has_chunks; ///< traces mostly have one of them only
} search;

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
    const bool good = out->first_id >= 1 && out->last_id >= out->first_id && out->begin_ns >= 0;
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

static tide_status search_open(const tide__sql *sql, search *s, tide_error *err) {
    *s = (search){.sql = sql};
    tide_status st = tide__sql_prepare(
        sql, "SELECT id, id, t_ns, t_ns FROM main.event WHERE id <= ? ORDER BY id DESC LIMIT 1", &s->row, err);
    if (st == TIDE_OK)
        st = tide__sql_prepare(sql,
                               "SELECT first_event, last_event, begin_ns, end_ns FROM main.event_chunk "
                               "WHERE first_event <= ? ORDER BY first_event DESC LIMIT 1",
                               &s->chunk, err);
    return st;
}

static void search_close(search *s) {
    sqlite3_finalize(s->row);
    sqlite3_finalize(s->chunk);
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

/// The last event of a chunk with t_ns <= `t_ns`; its first has.
static tide_status search_chunk(const search *s, const place *p, int64_t t_ns, int64_t *event_id, tide_error *err) {
    tide__event *events = tide_host_alloc(TIDE__CHUNK_MAX_EVENTS * sizeof *events);
    if (events == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to read '%s'", s->sql->path);
    sqlite3_stmt *stmt = NULL;
    tide_status st = tide__sql_prepare(s->sql, "SELECT data FROM main.event_chunk WHERE first_event = ?", &stmt, err);
    bool has_row = false;
    size_t n = 0;
    if (st == TIDE_OK) sqlite3_bind_int64(stmt, 1, p->first_id);
    if (st == TIDE_OK) st = tide__sql_step(s->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) {
        const void *data = sqlite3_column_blob(stmt, 0);
        const size_t n_bytes = (size_t)sqlite3_column_bytes(stmt, 0);
        if (data == NULL || !tide__chunk_decode(data, n_bytes, events, &n) || events[0].t_ns > t_ns)
            st = tide__cursor_bad(s->sql, "event_chunk", p->first_id, "a chunk of events is damaged", err);
    }
    if (st == TIDE_OK && n > 0) *event_id = last_until(events, n, t_ns);
    sqlite3_finalize(stmt);
    tide_host_free(events);
    return st;
}

static tide_status first_event(const search *s, int64_t *id, tide_error *err) {
    int64_t chunk;
    *id = chunk = INT64_MAX;
    if (s->has_rows) TIDE_TRY(tide__sql_int(s->sql, "SELECT min(id) FROM main.event", INT64_MAX, id, err));
    if (s->has_chunks)
        TIDE_TRY(tide__sql_int(s->sql, "SELECT min(first_event) FROM main.event_chunk", INT64_MAX, &chunk, err));
    if (*id > chunk) *id = chunk;
    return TIDE_OK;
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
            floor_id = id; // an empty stretch
        } else if (mid.begin_ns <= t_ns) {
            *lo = mid;
            floor_id = mid.last_id;
        } else {
            *hi = mid;
        }
    }
    return TIDE_OK;
}

static tide_status search_events(search *s, int64_t t_ns, int64_t *event_id, tide_error *err) {
    place lo, hi, last_row;
    int64_t first;
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
    search all;
    *event_id = 0;
    tide_status st = search_open(s, &all, err);
    if (st == TIDE_OK) st = search_events(&all, t_ns, event_id, err);
    search_close(&all);
    return st;
}
