// SPDX-License-Identifier: MIT
//
// Which events a damaged trace still gives, and which are missing. See recover.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/recover.h"
#include "profiler/store/chunk.h"
#include "profiler/store/schema.h"

enum { MAX_TWICE = 1 << 16 }; ///< events that may wait to be seen as found before

// ---- events of one table ----

static bool read_chunk(tide__event_stream *s, sqlite3_stmt *row) {
    int64_t first, last;
    s->n_chunk = s->next_in_chunk = 0;
    if (!tide__sql_number(row, 0, 1, TIDE__MAX_EVENT - TIDE__CHUNK_MAX_EVENTS, &first) ||
        !tide__sql_number(row, 1, first, first + TIDE__CHUNK_MAX_EVENTS - 1, &last) ||
        sqlite3_column_type(row, 2) != SQLITE_BLOB)
        return false;
    size_t n;
    const void *bytes = sqlite3_column_blob(row, 2);
    if (bytes == NULL || !tide__chunk_decode(bytes, (size_t)sqlite3_column_bytes(row, 2), s->chunk, &n)) return false;
    if (n == 0 || s->chunk[0].id != first || last != first + (int64_t)n - 1) return false;
    s->n_chunk = n;
    return true;
}

/// The next event of the table as it is there, sound in itself; *has is false at the end.
static tide_status fetch(tide__event_stream *s, tide__event *out, bool *has, tide_error *err) {
    while (true) {
        *has = s->next_in_chunk < s->n_chunk;
        if (*has) {
            *out = s->chunk[s->next_in_chunk++];
            if (tide__damaged_event_is_sound(out)) return TIDE_OK;
            continue;
        }
        sqlite3_stmt *row;
        TIDE_TRY(tide__walk_next(&s->walk, &row, err));
        if (row == NULL) return TIDE_OK;
        if (s->is_chunks) {
            (void)read_chunk(s, row); // of one that is damaged no event is taken
        } else if (tide__damaged_event_row(row, out)) {
            *has = true;
            return TIDE_OK;
        }
    }
}

/// A number that jumps further than a file of this size can have lost events is a wrong number.
static bool id_follows(const tide__event_stream *s, int64_t last_id, const tide__event *e) {
    return e->id > last_id && (last_id == 0 || (uint64_t)(e->id - last_id) <= s->in->file_bytes);
}

/// The next event whose number follows `last_id`.
static tide_status fetch_following(tide__event_stream *s, int64_t last_id, tide__event *out, bool *has,
                                   tide_error *err) {
    do TIDE_TRY(fetch(s, out, has, err));
    while (*has && !id_follows(s, last_id, out));
    return TIDE_OK;
}

/// Stand on the next event; `has` is false at the end. An event that no recorder wrote is left out, as if missing.
static tide_status stream_next(tide__event_stream *s, tide_error *err) {
    if (s->has) {
        s->last_id = s->event.id;
        s->last_ns = s->event.t_ns;
    }
    while (true) {
        if (s->has_ahead) {
            s->event = s->ahead;
            s->has = true;
            s->has_ahead = false;
        } else {
            TIDE_TRY(fetch_following(s, s->last_id, &s->event, &s->has, err));
        }
        if (!s->has) return TIDE_OK;
        TIDE_TRY(fetch_following(s, s->event.id, &s->ahead, &s->has_ahead, err));
        // A time beyond the next one's, which itself is in order, is wrong: the event is left out. The new trace
        // corrects one that is too early.
        if (!s->has_ahead || s->ahead.t_ns >= s->event.t_ns || s->ahead.t_ns < s->last_ns) return TIDE_OK;
    }
}

/// Stand on the first event.
static tide_status stream_open(tide__event_stream *s, tide__damaged *in, bool is_chunks, tide_error *err) {
    *s = (tide__event_stream){.in = in, .is_chunks = is_chunks};
    if (!is_chunks) {
        TIDE_TRY(tide__walk_open(&s->walk, in, "event", "id", TIDE__EVENT_COLUMNS, err));
        return stream_next(s, err);
    }
    TIDE_TRY(TIDE_NEW(&s->chunk, TIDE__CHUNK_MAX_EVENTS, err, "to read '%s'", in->path));
    TIDE_TRY(tide__walk_open(&s->walk, in, "event_chunk", "first_event", "first_event, last_event, data", err));
    return stream_next(s, err);
}

static void stream_close(tide__event_stream *s) {
    tide__walk_close(&s->walk);
    tide_host_free(s->chunk);
    *s = (tide__event_stream){0};
}

// ---- rows and chunks ----

/// An event is a row or in a chunk. One that is both (a program that turned chunks into rows was killed) counts once.
static void choose(tide__event_reader *s) {
    s->is_chunk = s->chunks.has && (!s->rows.has || s->chunks.event.id < s->rows.event.id);
    s->has = s->chunks.has || s->rows.has;
    if (s->has) s->event = s->is_chunk ? s->chunks.event : s->rows.event;
}

tide_status tide__event_reader_next(tide__event_reader *s, tide_error *err) {
    const int64_t id = s->event.id;
    while (s->rows.has && s->rows.event.id <= id) TIDE_TRY(stream_next(&s->rows, err));
    while (s->chunks.has && s->chunks.event.id <= id) TIDE_TRY(stream_next(&s->chunks, err));
    choose(s);
    return TIDE_OK;
}

tide_status tide__event_reader_open(tide__event_reader *s, tide__damaged *in, tide_error *err) {
    *s = (tide__event_reader){0};
    TIDE_TRY(stream_open(&s->rows, in, false, err));
    TIDE_TRY(stream_open(&s->chunks, in, true, err));
    choose(s);
    return TIDE_OK;
}

void tide__event_reader_close(tide__event_reader *s) {
    stream_close(&s->rows);
    stream_close(&s->chunks);
    *s = (tide__event_reader){0};
}

// ---- holes ----

static tide_status add_hole(tide__holes *h, int64_t first, int64_t last, int64_t begin_ns, int64_t end_ns,
                            tide_error *err) {
    if (last < first) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&h->holes, &h->cap_holes, h->n_holes + 1, err, "to recover '%s'", h->in->path));
    h->holes[h->n_holes++] = (tide__hole){first, last, begin_ns, end_ns};
    h->n_missing += (uint64_t)(last - first) + 1;
    return TIDE_OK;
}

/// The largest event number that a table speaks of, as far as it can be read.
static tide_status largest(tide__damaged *in, const char *table, const char *query, int64_t *id, tide_error *err) {
    bool has;
    int64_t found = 0;
    TIDE_TRY(tide__damaged_has_table(in, table, &has, err));
    if (!has) return TIDE_OK;
    tide_error own = TIDE_ERROR_INIT;
    const tide_status st = tide__sql_int(&in->sql, query, 0, &found, &own);
    if (st == TIDE_ERR_NOMEM && err != NULL) *err = own;
    if (st == TIDE_ERR_NOMEM) return st;
    if (st == TIDE_OK && found > *id) *id = found;
    return TIDE_OK;
}

/// How far the trace went, by what was counted and by its leaves: where both say so, the lower one. More than a file of
/// this size can have lost is not believed.
static tide_status last_known(tide__holes *h, int64_t *last, tide_error *err) {
    int64_t id = 0, n_events;
    bool has;
    TIDE_TRY(largest(h->in, "leaf", "SELECT max(last_event) FROM leaf WHERE series = 0", &id, err));
    TIDE_TRY(largest(h->in, "snapshot", "SELECT max(event_id) FROM snapshot", &id, err));
    TIDE_TRY(tide__damaged_meta_int(h->in, "n_events", &n_events, &has, err));
    if (has && (id == 0 || n_events < id)) id = n_events;
    const int64_t before = h->last_event > 0 ? h->last_event : h->first_kept - 1;
    *last = id > before && id <= TIDE__MAX_EVENT && (uint64_t)(id - before) <= h->in->file_bytes ? id : before;
    return TIDE_OK;
}

static tide_status find_first_kept(tide__holes *h, int64_t first_event, tide_error *err) {
    bool has;
    TIDE_TRY(tide__damaged_meta_int(h->in, "first_kept_event", &h->first_kept, &has, err));
    if (!has || h->first_kept < 1 || h->first_kept > TIDE__MAX_EVENT) h->first_kept = 1;
    if (first_event == 0) return TIDE_OK;
    if (h->first_kept > first_event) h->first_kept = first_event;
    // So many cannot have been in the file: they were dropped.
    if ((uint64_t)(first_event - h->first_kept) > h->in->file_bytes) h->first_kept = first_event;
    return TIDE_OK;
}

static tide_status look_through(tide__holes *h, tide__event_reader *s, tide_error *err) {
    int64_t last_ns = 0;
    TIDE_TRY(find_first_kept(h, s->has ? s->event.id : 0, err));
    h->last_event = 0;
    while (s->has) {
        const tide__event *e = &s->event;
        const int64_t next = h->last_event > 0 ? h->last_event + 1 : h->first_kept;
        // Rows and chunks each follow themselves; between them nothing may jump further than the file allows.
        if ((uint64_t)(e->id - next) <= h->in->file_bytes) {
            TIDE_TRY(add_hole(h, next, e->id - 1, last_ns, e->t_ns, err));
            if (h->first_event == 0) h->first_event = e->id;
            h->last_event = e->id;
            if (e->t_ns > last_ns) last_ns = e->t_ns;
        }
        TIDE_TRY(tide__event_reader_next(s, err));
    }
    int64_t last;
    TIDE_TRY(last_known(h, &last, err));
    return add_hole(h, h->last_event > 0 ? h->last_event + 1 : h->first_kept, last, last_ns, INT64_MAX, err);
}

tide_status tide__holes_find(tide__holes *h, tide__damaged *in, tide_error *err) {
    *h = (tide__holes){.in = in};
    tide__event_reader s;
    tide_status st = tide__event_reader_open(&s, in, err);
    if (st == TIDE_OK) st = look_through(h, &s, err);
    tide__event_reader_close(&s);
    return st;
}

void tide__holes_deinit(tide__holes *h) {
    tide_host_free(h->holes);
    tide_host_free(h->found);
    tide_host_free(h->loose);
    *h = (tide__holes){0};
}

/// The first hole that does not end before `id`; NULL: none.
static const tide__hole *hole_from(const tide__holes *h, int64_t id) {
    size_t lo = 0, hi = h->n_holes;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (h->holes[mid].last < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < h->n_holes ? &h->holes[lo] : NULL;
}

bool tide__holes_meet(const tide__holes *h, int64_t first, int64_t last) {
    const tide__hole *hole = hole_from(h, first);
    return hole != NULL && hole->first <= last;
}

// ---- what is found elsewhere ----

static bool is_found(const tide__holes *h, int64_t id) {
    size_t lo = 0, hi = h->n_sorted;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (h->found[mid].id < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < h->n_sorted && h->found[lo].id == id;
}

tide_status tide__holes_offer(tide__holes *h, const tide__event *e, tide_error *err) {
    const tide__hole *hole = hole_from(h, e->id);
    if (hole == NULL || e->id < hole->first || !tide__damaged_event_is_sound(e) || e->t_ns < hole->begin_ns ||
        e->t_ns > hole->end_ns || is_found(h, e->id))
        return TIDE_OK;
    if (h->n_found >= h->n_missing && h->n_found - h->n_missing > MAX_TWICE) tide__holes_sort(h);
    TIDE_TRY(TIDE_GROW(&h->found, &h->cap_found, h->n_found + 1, err, "to recover '%s'", h->in->path));
    h->found[h->n_found++] = *e;
    return TIDE_OK;
}

/// The last hole that begins before `t_ns`, when it ends behind it.
static const tide__hole *hole_around(const tide__holes *h, int64_t t_ns) {
    size_t lo = 0, hi = h->n_holes;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (h->holes[mid].begin_ns < t_ns) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo > 0 && t_ns < h->holes[lo - 1].end_ns ? &h->holes[lo - 1] : NULL;
}

tide_status tide__holes_offer_loose(tide__holes *h, const tide__event *e, tide_error *err) {
    if (hole_around(h, e->t_ns) == NULL) return TIDE_OK;
    TIDE_TRY(TIDE_GROW(&h->loose, &h->cap_loose, h->n_loose + 1, err, "to recover '%s'", h->in->path));
    h->loose[h->n_loose++] = *e;
    return TIDE_OK;
}

// ---- order ----

static int by_id(const void *a, const void *b) {
    const tide__event *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_time(const void *a, const void *b) {
    const tide__event *x = a, *y = b;
    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    return (x->block_id > y->block_id) - (x->block_id < y->block_id);
}

/// In place: all events of a trace may have been found.
void tide__holes_sort(tide__holes *h) {
    if (h->n_found == h->n_sorted) return;
    qsort(h->found, h->n_found, sizeof *h->found, by_id);
    size_t n = 0;
    for (size_t i = 0; i < h->n_found; i++)
        if (n == 0 || h->found[n - 1].id != h->found[i].id) h->found[n++] = h->found[i];
    h->n_found = h->n_sorted = n;
}

/// Give loose events the free numbers between two events of a hole, as long as time allows. @return how many got one
static size_t number_loose(tide__event *loose, size_t n, int64_t before, int64_t next, int64_t next_ns) {
    size_t i = 0;
    for (; i < n && loose[i].t_ns <= next_ns && before + 1 < next; i++) loose[i].id = ++before;
    return i;
}

/// Go through holes and what was found in them, and number what is loose.
static void place_loose(tide__holes *h) {
    size_t found = 0, loose = 0;
    for (size_t i = 0; i < h->n_holes && loose < h->n_loose; i++) {
        const tide__hole *hole = &h->holes[i];
        int64_t before = hole->first - 1;
        while (loose < h->n_loose && h->loose[loose].t_ns <= hole->begin_ns) loose++;
        for (bool inside = true; inside;) {
            inside = found < h->n_found && h->found[found].id <= hole->last;
            const int64_t next = inside ? h->found[found].id : hole->last + 1;
            const int64_t next_ns = inside ? h->found[found].t_ns : hole->end_ns - 1;
            loose += number_loose(h->loose + loose, h->n_loose - loose, before, next, next_ns);
            // No number is left for what happened before that.
            while (loose < h->n_loose && h->loose[loose].t_ns < next_ns) loose++;
            before = next;
            found += inside;
        }
    }
}

tide_status tide__holes_place_loose(tide__holes *h, tide_error *err) {
    tide__holes_sort(h);
    if (h->n_loose > 1) qsort(h->loose, h->n_loose, sizeof *h->loose, by_time);
    place_loose(h);
    for (size_t i = 0; i < h->n_loose; i++)
        if (h->loose[i].id > 0) TIDE_TRY(tide__holes_offer(h, &h->loose[i], err));
    tide__holes_sort(h);
    return TIDE_OK;
}
