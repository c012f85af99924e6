// SPDX-License-Identifier: MIT
//
// Blocks out of chunks. See block_reader.h.
//
// A block by its number is looked for in a list of the chunks with the lowest and the highest number of each; chunks
// are decoded whole, and those that were needed last are kept, for questions about one block after the other.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/store/block_chunk.h"
#include "profiler/store/block_reader.h"
#include "profiler/store/cursor.h"
#include "profiler/store/schema.h"

enum { KEPT = 8 }; ///< chunks, of 0.5 MB at most

typedef struct kept_chunk {
    int64_t first_event; ///< 0: none
    uint64_t used;       ///< when, in calls
    size_t n;
    tide__block_row rows[TIDE__CHUNK_MAX_EVENTS];
} kept_chunk;

/// Where a block of a number can be.
typedef struct place {
    int64_t first_event, min_id, max_id;
} place;

struct tide__block_reader {
    const tide__sql *sql;
    sqlite3_stmt *chunks, *list, *one;
    tide__block_question question;
    bool is_at_end;
    kept_chunk *kept[KEPT]; ///< owned, made when first used
    uint64_t n_calls;
    place *places; ///< [n_places] by first_event, owned; for questions by number
    size_t n_places, cap_places, place_i;
    bool has_places;
    tide__event *events;    ///< [TIDE__CHUNK_MAX_EVENTS], owned
    tide__block_ends *ends; ///< owned
};

static tide_status bad(const tide__block_reader *r, int64_t first_event, const char *why, tide_error *err) {
    return tide__cursor_bad(r->sql, "block_chunk", first_event, why, err);
}

tide_status tide__blocks_are_packed(const tide__sql *s, bool *out, tide_error *err) {
    const tide__schema_item *table = tide__schema_block_chunk();
    sqlite3_stmt *stmt;
    *out = false;
    TIDE_TRY(tide__sql_prepare(s, "SELECT sql FROM main.sqlite_schema WHERE name = 'block_chunk'", &stmt, err));
    bool has_row, good = true;
    const tide_status st = tide__sql_step(s, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) good = strcmp(tide__sql_text(stmt, 0), table->sql) == 0;
    sqlite3_finalize(stmt);
    if (st != TIDE_OK || !has_row) return st;
    if (!good) return tide__cursor_bad(s, "sqlite_schema", 0, "table block_chunk is not the one of this version", err);
    int64_t has_chunks;
    TIDE_TRY(tide__sql_int(s, "SELECT 1 FROM main.block_chunk LIMIT 1", 0, &has_chunks, err));
    *out = has_chunks != 0;
    return TIDE_OK;
}

// ---- one reader ----

#define COLUMNS                                                                                                        \
    "SELECT b.first_event, b.blocks, b.never_freed, b.min_id, b.max_id, b.data, e.last_event, e.data "                 \
    "FROM main.block_chunk b LEFT JOIN main.event_chunk e USING(first_event) WHERE "

tide_status tide__block_reader_open(const tide__sql *s, tide__block_reader **out, tide_error *err) {
    static const char chunks[] = COLUMNS
        "b.first_event BETWEEN coalesce((SELECT max(first_event) FROM main.block_chunk WHERE first_event <= ?1), ?1) "
        "AND ?2 AND b.never_freed >= ?3 ORDER BY b.first_event";
    tide__block_reader *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to read '%s'", s->path));
    r->sql = s;
    r->is_at_end = true;
    tide_status st = TIDE_NEW(&r->events, TIDE__CHUNK_MAX_EVENTS, err, "to read '%s'", s->path);
    if (st == TIDE_OK) st = TIDE_NEW(&r->ends, 1, err, "to read '%s'", s->path);
    if (st == TIDE_OK) st = tide__sql_prepare(s, chunks, &r->chunks, err);
    if (st == TIDE_OK) st = tide__sql_prepare(s, COLUMNS "b.first_event = ?1", &r->one, err);
    if (st == TIDE_OK)
        st = tide__sql_prepare(s, "SELECT first_event, min_id, max_id FROM main.block_chunk ORDER BY first_event",
                               &r->list, err);
    if (st != TIDE_OK) {
        tide__block_reader_close(r);
        return st;
    }
    *out = r;
    return TIDE_OK;
}

void tide__block_reader_close(tide__block_reader *r) {
    if (r == NULL) return;
    sqlite3_finalize(r->chunks);
    sqlite3_finalize(r->list);
    sqlite3_finalize(r->one);
    for (size_t i = 0; i < KEPT; i++) tide_host_free(r->kept[i]);
    tide_host_free(r->places);
    tide_host_free(r->events);
    tide_host_free(r->ends);
    tide_host_free(r);
}

void tide__block_reader_rest(tide__block_reader *r) {
    sqlite3_reset(r->chunks);
    sqlite3_reset(r->one);
    r->is_at_end = true;
}

// ---- where numbers are ----

static tide_status list_places(tide__block_reader *r, tide_error *err) {
    bool has_row;
    tide_status st;
    r->n_places = 0;
    while ((st = tide__sql_step(r->sql, r->list, &has_row, err)) == TIDE_OK && has_row) {
        TIDE_TRY_OR(done, st,
                    TIDE_GROW(&r->places, &r->cap_places, r->n_places + 1, err, "to read '%s'", r->sql->path));
        r->places[r->n_places++] = (place){sqlite3_column_int64(r->list, 0), sqlite3_column_int64(r->list, 1),
                                           sqlite3_column_int64(r->list, 2)};
    }
done:
    sqlite3_reset(r->list);
    r->has_places = st == TIDE_OK;
    return st;
}

tide_status tide__block_reader_ask(tide__block_reader *r, const tide__block_question *q, tide_error *err) {
    tide__block_reader_rest(r);
    r->question = *q;
    r->is_at_end = q->first_alloc > q->last_alloc;
    r->place_i = 0;
    if (r->is_at_end) return TIDE_OK;
    if (q->has_id) return r->has_places ? TIDE_OK : list_places(r, err);
    sqlite3_bind_int64(r->chunks, 1, q->first_alloc);
    sqlite3_bind_int64(r->chunks, 2, q->last_alloc);
    sqlite3_bind_int64(r->chunks, 3, q->only_never_freed ? 1 : INT64_MIN);
    return TIDE_OK;
}

// ---- chunks ----

/// What the row that `stmt` stands on says of all of its blocks.
static bool is_as_told(sqlite3_stmt *stmt, const tide__block_row *rows, size_t n) {
    int64_t never_freed = 0, min_id = INT64_MAX, max_id = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        never_freed += rows[i].free_event == 0;
        if (rows[i].id < min_id) min_id = rows[i].id;
        if (rows[i].id > max_id) max_id = rows[i].id;
    }
    return sqlite3_column_int64(stmt, 1) == (int64_t)n && sqlite3_column_int64(stmt, 2) == never_freed &&
           sqlite3_column_int64(stmt, 3) == min_id && sqlite3_column_int64(stmt, 4) == max_id;
}

static tide_status decode(tide__block_reader *r, sqlite3_stmt *stmt, kept_chunk *out, tide_error *err) {
    const int64_t first = sqlite3_column_int64(stmt, 0);
    const uint8_t *events = sqlite3_column_blob(stmt, 7), *ends = sqlite3_column_blob(stmt, 5);
    size_t n_events;
    out->first_event = 0;
    if (sqlite3_column_type(stmt, 6) == SQLITE_NULL) return bad(r, first, "a chunk of blocks without its events", err);
    if (events == NULL || !tide__chunk_decode(events, (size_t)sqlite3_column_bytes(stmt, 7), r->events, &n_events) ||
        r->events[0].id != first || r->events[n_events - 1].id != sqlite3_column_int64(stmt, 6) ||
        r->events[n_events - 1].id > TIDE__MAX_EVENT)
        return tide__cursor_bad(r->sql, "event_chunk", first, "a chunk of events is damaged", err);
    if (ends == NULL || !tide__block_chunk_decode(ends, (size_t)sqlite3_column_bytes(stmt, 5), r->ends))
        return bad(r, first, "a chunk of blocks is damaged", err);
    if (!tide__block_chunk_rows(r->ends, r->events, n_events, out->rows))
        return bad(r, first, "a chunk of blocks is not that of its events", err);
    out->n = r->ends->n;
    if (!is_as_told(stmt, out->rows, out->n))
        return bad(r, first, "a chunk of blocks is not the one its row tells of", err);
    out->first_event = first;
    return TIDE_OK;
}

/// One that was kept, or the place for it: that which was used longest ago.
static tide_status look_in_kept(tide__block_reader *r, int64_t first_event, kept_chunk **out, bool *found,
                                tide_error *err) {
    size_t oldest = 0;
    *found = false;
    for (size_t i = 0; i < KEPT; i++) {
        if (r->kept[i] == NULL) {
            TIDE_TRY(TIDE_NEW(&r->kept[i], 1, err, "to read '%s'", r->sql->path));
            oldest = i;
            break;
        }
        if (r->kept[i]->first_event == first_event) {
            oldest = i;
            *found = true;
            break;
        }
        if (r->kept[i]->used < r->kept[oldest]->used) oldest = i;
    }
    *out = r->kept[oldest];
    (*out)->used = ++r->n_calls;
    return TIDE_OK;
}

/// The chunk that begins with `first_event`; *out NULL: it is gone, its blocks have become rows.
static tide_status chunk_at(tide__block_reader *r, int64_t first_event, kept_chunk **out, tide_error *err) {
    bool found, has_row = false;
    TIDE_TRY(look_in_kept(r, first_event, out, &found, err));
    if (found) return TIDE_OK;
    sqlite3_bind_int64(r->one, 1, first_event);
    tide_status st = tide__sql_step(r->sql, r->one, &has_row, err);
    if (st == TIDE_OK && has_row) st = decode(r, r->one, *out, err);
    sqlite3_reset(r->one);
    if (!has_row) *out = NULL;
    return st;
}

static tide_status next_by_id(tide__block_reader *r, const tide__block_row **rows, size_t *n, tide_error *err) {
    const int64_t id = r->question.id;
    while (r->place_i < r->n_places) {
        const place *p = &r->places[r->place_i++];
        kept_chunk *c;
        if (id < p->min_id || id > p->max_id) continue;
        TIDE_TRY(chunk_at(r, p->first_event, &c, err));
        for (size_t i = 0; c != NULL && i < c->n; i++) {
            if (c->rows[i].id != id) continue;
            *rows = &c->rows[i];
            *n = 1;
            return TIDE_OK;
        }
    }
    return TIDE_OK;
}

tide_status tide__block_reader_next(tide__block_reader *r, const tide__block_row **rows, size_t *n, tide_error *err) {
    *n = 0;
    if (r->is_at_end) return TIDE_OK;
    if (r->question.has_id) return next_by_id(r, rows, n, err);
    bool has_row, found;
    kept_chunk *c;
    TIDE_TRY(tide__sql_step(r->sql, r->chunks, &has_row, err));
    if (!has_row) {
        tide__block_reader_rest(r);
        return TIDE_OK;
    }
    TIDE_TRY(look_in_kept(r, sqlite3_column_int64(r->chunks, 0), &c, &found, err));
    if (!found) TIDE_TRY(decode(r, r->chunks, c, err));
    *rows = c->rows;
    *n = c->n;
    return TIDE_OK;
}
