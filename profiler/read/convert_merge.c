// SPDX-License-Identifier: MIT
//
// Events and scope events of versions 1 and 2 as one list. See convert_merge.h.
//
// The recorder took both under one lock and gave them one clock, so that time orders them. Only which of two came first
// within one nanosecond is not in the file: then the run and the scope that the event names decide.
#include "profiler/read/convert_merge.h"

#include "core/base/host_alloc.h"
#include "profiler/read/convert_stream.h"

typedef struct merge {
    tide__retell *r;
    tide__stream events, scopes;
    tide_id_map innermost;  // of tide__renamed: thread + 1 -> scope it is in, by old numbers
    tide_id_map parents;    // of tide__renamed: scope -> the one around it
    int32_t last_scope_run; // last run that a scope event belonged to
    int64_t last_run;       // strict: of the event told last; runs do not come back
    tide__merged told;
} merge;

// ---- which scope a thread is in ----

static bool set(tide_id_map *map, uint64_t id, int64_t to) {
    tide__renamed *known = tide_id_map_find(map, id);
    if (known != NULL) known->to = to;
    return known != NULL || tide_id_map_put(map, &(tide__renamed){.id = id, .to = to});
}

static tide_status take_parent(void *ctx, sqlite3_stmt *row, tide_error *err) {
    merge *m = ctx;
    int64_t id, parent;
    if (!tide__in_number(row, 0, 1, INT32_MAX, &id) || !tide__in_int(row, 1, 1, INT32_MAX, 0, &parent))
        return TIDE_OK; // said before, when names were read
    if (set(&m->parents, (uint64_t)id, parent)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the scopes of '%s'", m->r->in->path);
}

static int64_t scope_of(const merge *m, int32_t thread) { return tide__in_renamed(&m->innermost, (int64_t)thread + 1); }

static tide_status follow_scope(merge *m, const tide__event *s, tide_error *err) {
    const int64_t now = s->op == TIDE__OP_SCOPE_ENTER ? s->scope_id : tide__in_renamed(&m->parents, s->scope_id);
    if (s->run_id != 0) m->last_scope_run = s->run_id;
    if (set(&m->innermost, (uint64_t)s->thread + 1, now)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the threads of '%s'", m->r->in->path);
}

// ---- which comes first ----

/// Of one nanosecond, and not of the same run.
static bool scope_is_of_earlier_run(const merge *m, const tide__event *e, const tide__event *s) {
    if (e->run_id != 0 && s->run_id != 0) return s->run_id < e->run_id;
    const tide__run_place *run = tide__retell_run(m->r, e->run_id != 0 ? e->run_id : s->run_id);
    if (run == NULL) return s->run_id == 0;
    if (e->run_id == 0) return e->id >= run->first_event; // an event before the run goes first, one behind it last
    // A scope event outside of the event's run is before it, unless it is known to be behind.
    return m->last_scope_run < e->run_id && s->t_ns <= run->begin_ns;
}

static bool scope_goes_first(const merge *m, const tide__event *e, const tide__event *s) {
    if (e->t_ns != s->t_ns) return s->t_ns < e->t_ns;
    if (e->run_id != s->run_id) return scope_is_of_earlier_run(m, e, s);
    // As soon as the event's thread is in the scope that it names: waiting longer could only miss it.
    return scope_of(m, e->thread) != e->scope_id;
}

// ---- telling ----

/// Numbers of each table follow one another: what is missing between two was lost.
static tide_status tell_gap(merge *m, const tide__stream *s, tide_error *err) {
    return tide__retell_gap(m->r, (uint64_t)(s->event.id - s->last_id - 1), s->event.t_ns, false, err);
}

/// Runs follow one another; a file in which they mix was changed.
static tide_status check_run(merge *m, const tide__event *e, const char *table, tide_error *err) {
    if (m->r->in->lenient || e->run_id == 0 || e->run_id == m->last_run) return TIDE_OK;
    if (e->run_id < m->last_run) return tide__in_bad_row(m->r->in, table, e->id, err);
    m->last_run = e->run_id;
    return TIDE_OK;
}

static tide_status tell_event(merge *m, tide_error *err) {
    static const char table[] = "event";
    tide__stream *s = &m->events;
    const tide__event *e = &s->event;
    TIDE_TRY(check_run(m, e, table, err));
    TIDE_TRY(tell_gap(m, s, err));
    tide__retell_pass(m->r, e->id);
    if (!m->r->in->lenient && !tide__retell_run_holds(m->r, e)) return tide__in_bad_row(m->r->in, table, e->id, err);
    TIDE_TRY(tide__retell_event(m->r, e, table, false, err));
    m->told.n_events++;
    m->told.last_event = e->id;
    return tide__stream_next(s, err);
}

static tide_status tell_scope(merge *m, tide_error *err) {
    static const char table[] = "scope_event";
    tide__stream *s = &m->scopes;
    TIDE_TRY(check_run(m, &s->event, table, err));
    TIDE_TRY(tell_gap(m, s, err));
    TIDE_TRY(tide__retell_event(m->r, &s->event, table, false, err));
    TIDE_TRY(follow_scope(m, &s->event, err));
    m->told.n_scope_events++;
    m->told.last_scope_event = s->event.id;
    return tide__stream_next(s, err);
}

static tide_status tell_all(merge *m, tide_error *err) {
    TIDE_TRY(tide__in_each(m->r->in, "scope", "id", "id, parent_id", take_parent, m, err));
    TIDE_TRY(tide__stream_open(&m->events, m->r->in, TIDE__STREAM_EVENTS, err));
    TIDE_TRY(tide__stream_open(&m->scopes, m->r->in, TIDE__STREAM_SCOPES, err));
    while (m->events.has || m->scopes.has) {
        const bool scope = m->scopes.has && (!m->events.has || scope_goes_first(m, &m->events.event, &m->scopes.event));
        TIDE_TRY(scope ? tell_scope(m, err) : tell_event(m, err));
    }
    return TIDE_OK;
}

tide_status tide__convert_merge(tide__retell *r, tide__merged *out, tide_error *err) {
    merge m = {.r = r, .innermost = TIDE_ID_MAP(tide__renamed), .parents = TIDE_ID_MAP(tide__renamed)};
    const tide_status st = tell_all(&m, err);
    *out = m.told;
    tide__stream_close(&m.events);
    tide__stream_close(&m.scopes);
    tide_id_map_deinit(&m.innermost);
    tide_id_map_deinit(&m.parents);
    return st;
}
