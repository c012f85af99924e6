// SPDX-License-Identifier: MIT
//
// One event of the file: numbered, replayed, kept for the store, with what follows from it: leaves, a snapshot that is
// due, a line about what cannot be true.
#include "core/base/assert.h"
#include "profiler/drain/drain_internal.h"
#include "profiler/store/snapshot.h"

enum {
    PROBLEM_ROWS = 1 << 16,
    PROBLEM_DAMAGED = 100, ///< of table problem: what is not the program's but the feed's
};

tide_status tide__drain_insert_problem(tide__drain *d, const char *what, tide_error *err) {
    const tide__sql *s = tide__store_sql(d->store);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO problem(event_id, problem, what) VALUES(?, ?, ?)", &stmt, err));
    sqlite3_bind_int64(stmt, 1, d->last_event);
    sqlite3_bind_int(stmt, 2, PROBLEM_DAMAGED);
    tide__sql_bind_text(stmt, 3, what);
    const tide_status st = tide__sql_run(s, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

/// A free without its alloc is no contradiction where events are missing.
static bool is_orphan(const tide__drain *d, const tide__drain_feed *f, tide__problem problem) {
    return (problem == TIDE__PROBLEM_FREE_UNKNOWN || problem == TIDE__PROBLEM_REQUESTED_UNKNOWN) &&
           (d->opt.attached_late || f->loses || f->is_late);
}

static tide_status note_problem(tide__drain *d, const tide__drain_feed *f, const tide__event *e, tide__problem problem,
                                tide_error *err) {
    if (is_orphan(d, f, problem)) {
        d->n_orphans++;
        return TIDE_OK;
    }
    // The first tens of thousands are enough to show that a program does it all the time.
    if (d->replay.n_problems > PROBLEM_ROWS) return TIDE_OK;
    return tide__store_write_problem(d->store, e, problem, err);
}

/// A snapshot is due at the end of an interval of leaves, once enough events have passed.
static tide_status snapshot_if_due(tide__drain *d, tide_error *err) {
    TIDE_ASSERT(d->last_snapshot <= d->last_event);
    if (d->last_event % TIDE__LEAF_EVENTS != 0) return TIDE_OK;
    if (d->last_event - d->last_snapshot < tide__snapshot_distance(d->replay.n_live, d->as_chunks)) return TIDE_OK;
    TIDE_TRY(tide__store_write_snapshot(d->store, &d->replay, err));
    d->last_snapshot = d->last_event;
    return TIDE_OK;
}

tide_status tide__drain_write_events(tide__drain *d, tide_error *err) {
    if (d->n_events == 0) return TIDE_OK;
    TIDE_TRY(tide__store_write_events(d->store, d->events, d->n_events, d->as_chunks, err));
    d->n_events = 0;
    return TIDE_OK;
}

tide_status tide__drain_take(tide__drain *d, const tide__drain_feed *f, tide_error *err) {
    TIDE_ASSERT(d->n_events < TIDE__DRAIN_BUFFER_EVENTS);
    tide__event *e = &d->events[d->n_events];
    if (e->t_ns < d->last_ns) e->t_ns = d->last_ns;
    e->id = d->last_event + 1;
    tide__problem problem;
    size_t series;
    tide_status st = tide__replay_apply(&d->replay, e, &problem, &series);
    if (st == TIDE_OK) st = tide__leaves_add(&d->leaves, &d->replay, e, series);
    if (st != TIDE_OK)
        return TIDE_FAIL(err, st, "cannot record event %lld into '%s': %s", (long long)e->id, d->path,
                         tide_status_text(st));
    TIDE_ASSERT(d->replay.last_event == e->id && e->t_ns >= d->last_ns);
    d->last_event = e->id;
    d->last_ns = e->t_ns;
    d->n_events++;
    if (problem != TIDE__PROBLEM_NONE) TIDE_TRY(note_problem(d, f, e, problem, err));
    TIDE_TRY(snapshot_if_due(d, err));
    return d->n_events == TIDE__DRAIN_BUFFER_EVENTS ? tide__drain_write_events(d, err) : TIDE_OK;
}
