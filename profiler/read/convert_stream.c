// SPDX-License-Identifier: MIT
//
// Events of one table, in order, checked. See convert_stream.h.
#include "profiler/read/convert_stream.h"

#include "core/base/host_alloc.h"
#include "profiler/store/chunk.h"
#include "profiler/store/schema.h"

static const char *const tables[] = {
    [TIDE__STREAM_EVENTS] = "event", [TIDE__STREAM_SCOPES] = "scope_event", [TIDE__STREAM_CHUNKS] = "event_chunk"};

// ---- one row ----

static bool read_scope_event(sqlite3_stmt *row, tide__event *out) {
    int64_t id, run, t_ns, enter, scope, thread;
    bool good = tide__in_number(row, 0, 1, INT64_MAX - 1, &id);
    good = tide__in_int(row, 1, 1, INT32_MAX, 0, &run) && good;
    good = tide__in_number(row, 2, 0, INT64_MAX, &t_ns) && good;
    good = tide__in_number(row, 3, 0, 1, &enter) && good;
    good = tide__in_number(row, 4, 1, INT32_MAX, &scope) && good;
    good = tide__in_number(row, 5, 0, INT32_MAX, &thread) && good;
    if (!good) return false;
    *out = (tide__event){.id = id,
                         .t_ns = t_ns,
                         .run_id = (int32_t)run,
                         .thread = (int32_t)thread,
                         .scope_id = (int32_t)scope,
                         .op = enter != 0 ? TIDE__OP_SCOPE_ENTER : TIDE__OP_SCOPE_LEAVE,
                         .kind = TIDE__NO_KIND};
    return true;
}

/// Versions 1 and 2 had memory events up to "oom" in table event, and what each column is for said so.
static bool is_of_version(const tide__in *in, const tide__event *e) {
    if (in->version >= 3) return true;
    return e->op <= TIDE_MEM_OOM && e->kind != TIDE__NO_KIND && e->device != 0;
}

static bool read_chunk(tide__stream *s, sqlite3_stmt *row) {
    int64_t first, last;
    s->n_chunk = s->next_in_chunk = 0;
    if (!tide__in_number(row, 0, 1, INT64_MAX - TIDE__CHUNK_MAX_EVENTS, &first) ||
        !tide__in_number(row, 1, first, first + TIDE__CHUNK_MAX_EVENTS - 1, &last) ||
        sqlite3_column_type(row, 2) != SQLITE_BLOB)
        return false;
    size_t n;
    const void *bytes = sqlite3_column_blob(row, 2);
    if (bytes == NULL || !tide__chunk_decode(bytes, (size_t)sqlite3_column_bytes(row, 2), s->chunk, &n)) return false;
    if (n == 0 || s->chunk[0].id != first || last != first + (int64_t)n - 1) return false;
    s->n_chunk = n;
    return true;
}

// ---- one event ----

static tide_status bad(tide__stream *s, int64_t id, tide_error *err) {
    if (!s->in->lenient) return tide__in_bad_row(s->in, tables[s->table], id, err);
    s->n_bad++;
    return TIDE_OK;
}

/// The next event of the table as it is there, sound in itself; *has is false at the end.
static tide_status fetch(tide__stream *s, tide__event *out, bool *has, tide_error *err) {
    while (true) {
        *has = s->next_in_chunk < s->n_chunk;
        if (*has) {
            *out = s->chunk[s->next_in_chunk++];
            if (tide__in_event_is_sound(out)) return TIDE_OK;
            TIDE_TRY(bad(s, out->id, err));
            continue;
        }
        sqlite3_stmt *row;
        TIDE_TRY(tide__walk_next(&s->walk, &row, err));
        if (row == NULL) return TIDE_OK;
        bool good = false;
        switch (s->table) {
        case TIDE__STREAM_EVENTS:
            good = *has = tide__in_event_row(row, out) && is_of_version(s->in, out);
            break;
        case TIDE__STREAM_SCOPES:
            good = *has = read_scope_event(row, out);
            break;
        case TIDE__STREAM_CHUNKS:
            good = read_chunk(s, row);
            break;
        }
        if (!good) TIDE_TRY(bad(s, sqlite3_column_int64(row, 0), err));
        if (*has) return TIDE_OK;
    }
}

/// A number that jumps further than a file of this size can have lost events is a wrong number.
static bool id_follows(const tide__stream *s, int64_t last_id, const tide__event *e) {
    if (!s->in->lenient) return s->in->version >= 3 ? e->id > last_id : e->id == last_id + 1;
    return e->id > last_id && (last_id == 0 || (uint64_t)(e->id - last_id) <= s->in->file_bytes);
}

/// The next event whose number follows `last_id`.
static tide_status fetch_following(tide__stream *s, int64_t last_id, tide__event *out, bool *has, tide_error *err) {
    while (true) {
        TIDE_TRY(fetch(s, out, has, err));
        if (!*has || id_follows(s, last_id, out)) return TIDE_OK;
        TIDE_TRY(bad(s, out->id, err));
    }
}

tide_status tide__stream_next(tide__stream *s, tide_error *err) {
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
        if (!s->in->lenient && s->event.t_ns >= s->last_ns) return TIDE_OK;
        if (s->in->lenient) {
            TIDE_TRY(fetch_following(s, s->event.id, &s->ahead, &s->has_ahead, err));
            // A time beyond the next one's, which itself is in order, is wrong. One that is too early is put right by
            // whoever writes it.
            if (!s->has_ahead || s->ahead.t_ns >= s->event.t_ns || s->ahead.t_ns < s->last_ns) return TIDE_OK;
        }
        TIDE_TRY(bad(s, s->event.id, err));
    }
}

tide_status tide__stream_open(tide__stream *s, tide__in *in, tide__stream_table table, tide_error *err) {
    static const char *const columns[] = {[TIDE__STREAM_EVENTS] = TIDE__EVENT_COLUMNS,
                                          [TIDE__STREAM_SCOPES] = "id, run_id, t_ns, enter, scope_id, thread",
                                          [TIDE__STREAM_CHUNKS] = "first_event, last_event, data"};
    *s = (tide__stream){.in = in, .table = table};
    if (table == TIDE__STREAM_CHUNKS) {
        s->chunk = tide_host_calloc(TIDE__CHUNK_MAX_EVENTS, sizeof *s->chunk);
        if (s->chunk == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to read '%s'", in->path);
    }
    TIDE_TRY(tide__walk_open(&s->walk, in, tables[table], table == TIDE__STREAM_CHUNKS ? "first_event" : "id",
                             columns[table], err));
    return tide__stream_next(s, err);
}

void tide__stream_close(tide__stream *s) {
    tide__walk_close(&s->walk);
    tide_host_free(s->chunk);
    *s = (tide__stream){0};
}
