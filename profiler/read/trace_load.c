// SPDX-License-Identifier: MIT
//
// What an open trace keeps in memory, and how it grows with the file. See trace_internal.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"
#include "profiler/store/block_reader.h"
#include "profiler/store/finish.h"
#include "profiler/store/schema.h"
#include "profiler/store/snapshot.h"

/// What the file says now; it takes effect once everything else has been read.
typedef struct extent {
    tide_trace_state state;
    int64_t first_event, last_event, begin_ns, end_ns;
    int64_t leaf_event;
    bool is_packed;
} extent;

static tide_status bad(const tide_trace *t, const char *why, tide_error *err) {
    const tide_status st = tide__trace_damaged(t, err);
    tide_error_note(err, "damaged: %s", why);
    return st;
}

// ---- events ----

/// One row of two numbers, both 0 or more; *found false: no row.
static tide_status read_pair(const tide_trace *t, const char *query, int64_t *a, int64_t *b, bool *found,
                             tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, query, &stmt, err));
    uint64_t x = 0, y = 0;
    tide_status st = tide__sql_step(&t->sql, stmt, found, err);
    if (st == TIDE_OK && *found && (!tide__sql_u64(stmt, 0, &x) || !tide__sql_u64(stmt, 1, &y)))
        st = tide__trace_bad_row(t, "event", sqlite3_column_int64(stmt, 0), err);
    sqlite3_finalize(stmt);
    *a = (int64_t)x;
    *b = (int64_t)y;
    return st;
}

static tide_status read_extent(tide_trace *t, extent *x, tide_error *err) {
    static const char *const firsts[] = {
        "SELECT id, t_ns FROM main.event ORDER BY id LIMIT 1",
        "SELECT first_event, begin_ns FROM main.event_chunk ORDER BY first_event LIMIT 1",
    };
    static const char *const lasts[] = {
        "SELECT id, t_ns FROM main.event ORDER BY id DESC LIMIT 1",
        "SELECT last_event, end_ns FROM main.event_chunk ORDER BY first_event DESC LIMIT 1",
        "SELECT event_id, t_ns FROM main.snapshot ORDER BY event_id DESC LIMIT 1", // all events dropped
    };
    x->first_event = INT64_MAX;
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        int64_t event, t_ns;
        bool found;
        TIDE_TRY(read_pair(t, firsts[i], &event, &t_ns, &found, err));
        if (!found || event >= x->first_event) continue;
        x->first_event = event;
        x->begin_ns = t_ns;
    }
    for (size_t i = 0; i < sizeof lasts / sizeof lasts[0]; i++) {
        int64_t event, t_ns;
        bool found;
        TIDE_TRY(read_pair(t, lasts[i], &event, &t_ns, &found, err));
        if (!found || event <= x->last_event) continue;
        x->last_event = event;
        x->end_ns = t_ns;
    }
    if (x->first_event > x->last_event) {
        x->first_event = x->last_event + 1;
        x->begin_ns = x->end_ns;
    }
    if (x->first_event < 1 || x->last_event > TIDE__MAX_EVENT || x->end_ns < x->begin_ns)
        return bad(t, "numbers of events are out of range", err);
    return TIDE_OK;
}

static tide_status read_state(tide_trace *t, extent *x, tide_error *err) {
    static const struct {
        const char *text;
        tide_trace_state state;
    } all[] = {{TIDE__STATE_COMPLETE, TIDE_TRACE_COMPLETE},
               {TIDE__STATE_CUT_SHORT, TIDE_TRACE_CUT_SHORT},
               {TIDE__STATE_RECORDING, TIDE_TRACE_RECORDING}};
    char text[32];
    const tide_status st = tide_trace_meta(t, "state", text, sizeof text, err);
    if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND) return st;
    for (size_t i = 0; st == TIDE_OK && i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(text, all[i].text) != 0) continue;
        x->state = all[i].state;
        return TIDE_OK;
    }
    return bad(t, "meta does not say whether the recording is complete", err);
}

// ---- snapshots ----

static tide_status read_snapshots(tide_trace *t, const extent *x, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT event_id, t_ns FROM main.snapshot WHERE event_id > ? ORDER BY event_id",
                               &stmt, err));
    size_t n = t->n_snapshots;
    sqlite3_bind_int64(stmt, 1, n > 0 ? t->snapshots[n - 1].event_id : INT64_MIN);
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        uint64_t event = 0, t_ns = 0;
        if (!tide__sql_u64(stmt, 0, &event) || event == 0 || !tide__sql_u64(stmt, 1, &t_ns) ||
            (int64_t)event > x->last_event ||
            (n > 0 && ((int64_t)event <= t->snapshots[n - 1].event_id || (int64_t)t_ns < t->snapshots[n - 1].t_ns))) {
            st = tide__trace_bad_row(t, "snapshot", sqlite3_column_int64(stmt, 0), err);
            break;
        }
        if (tide_host_grow(&t->snapshots, &t->cap_snapshots, n + 1, sizeof *t->snapshots) != TIDE_OK) {
            st = TIDE_NO_MEMORY(err, "for the snapshots of '%s'", t->path);
            break;
        }
        t->snapshots[n++] = (tide__snapshot_place){(int64_t)event, (int64_t)t_ns};
    }
    sqlite3_finalize(stmt);
    if (st == TIDE_OK) t->n_snapshots = n;
    return st;
}

/// Those that were dropped: the first one left is where the kept events begin.
static void forget_snapshots(tide_trace *t, int64_t first_event) {
    size_t n_gone = 0;
    while (n_gone < t->n_snapshots && t->snapshots[n_gone].event_id < first_event - 1) n_gone++;
    t->n_snapshots -= n_gone;
    if (n_gone > 0) memmove(t->snapshots, &t->snapshots[n_gone], t->n_snapshots * sizeof *t->snapshots);
}

/// Thinning keeps one more: of the peak of all, where the events around it are gone.
static tide_status find_peak_snapshot(tide_trace *t, int64_t first_event, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql, "SELECT event_id, t_ns FROM main.snapshot WHERE event_id < ? ORDER BY event_id DESC LIMIT 1", &stmt,
        err));
    sqlite3_bind_int64(stmt, 1, first_event - 1);
    bool has_row;
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    t->peak_snapshot = (tide__snapshot_place){0};
    if (st == TIDE_OK && has_row)
        t->peak_snapshot = (tide__snapshot_place){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)};
    sqlite3_finalize(stmt);
    return st;
}

// ---- ends of processes ----

const tide__process_end *tide__trace_process_end(const tide_trace *t, uint64_t block_id, uint64_t alloc_ns) {
    if (t->ends.n == 0 || block_id == 0 || block_id > INT64_MAX) return NULL;
    const tide__process_end *end = tide__process_ends_find(&t->ends, tide__process_of_block((int64_t)block_id));
    if (end == NULL || end->event == 0 || end->event > t->last_event || (uint64_t)end->t_ns < alloc_ns) return NULL;
    return end;
}

// ---- series and leaves ----

size_t tide__trace_series_find(const tide_trace *t, int16_t device, uint8_t kind) {
    for (size_t i = 1; i < t->n_series; i++)
        if (t->series[i].device == device && t->series[i].kind == kind) return i;
    return SIZE_MAX;
}

static tide_status add_series(tide_trace *t, int64_t id, int16_t device, uint8_t kind, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&t->series, &t->cap_series, t->n_series + 1, err, "for the series of '%s'", t->path));
    t->series[t->n_series++] = (tide__trace_series){.id = id, .device = device, .kind = kind};
    return TIDE_OK;
}

static tide_status take_series(tide_trace *t, sqlite3_stmt *stmt, tide_error *err) {
    const int64_t id = sqlite3_column_int64(stmt, 0);
    if (id == 0) { // the sum, which is always there
        const bool is_sum = sqlite3_column_type(stmt, 1) == SQLITE_NULL && sqlite3_column_type(stmt, 2) == SQLITE_NULL;
        return is_sum ? TIDE_OK : tide__trace_bad_row(t, "series", id, err);
    }
    uint64_t device, kind;
    if (id < 0 || !tide__sql_u64(stmt, 1, &device) || device == 0 || device >= TIDE__MAX_DEVICES ||
        !tide__sql_u64(stmt, 2, &kind) || kind >= TIDE_N_KINDS)
        return tide__trace_bad_row(t, "series", id, err);
    const size_t i = tide__trace_series_find(t, (int16_t)device, (uint8_t)kind);
    if (i == SIZE_MAX) return add_series(t, id, (int16_t)device, (uint8_t)kind, err);
    if (t->series[i].id < 0) t->series[i].id = id; // met in the tail before
    return t->series[i].id == id ? TIDE_OK : tide__trace_bad_row(t, "series", id, err);
}

static tide_status read_series(tide_trace *t, tide_error *err) {
    if (t->n_series == 0) TIDE_TRY(add_series(t, 0, 0, TIDE__NO_KIND, err));
    sqlite3_stmt *stmt;
    int64_t last = -1; // numbers rise: a table whose pages lead to themselves has no end
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT id, device, kind FROM main.series ORDER BY id", &stmt, err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const int64_t id = sqlite3_column_int64(stmt, 0);
        st = id > last ? take_series(t, stmt, err) : tide__trace_bad_row(t, "series", id, err);
        if (st != TIDE_OK) break;
        last = id;
    }
    sqlite3_finalize(stmt);
    return st;
}

static bool take_leaf(sqlite3_stmt *stmt, const tide__leaf *before, tide__leaf *l) {
    int64_t *const fields[] = {&l->first_event,        &l->last_event, &l->begin_ns,           &l->end_ns,
                               &l->min_bytes,          &l->max_bytes,  &l->max_event,          &l->max_ns,
                               &l->max_reserved_bytes, &l->last_bytes, &l->last_reserved_bytes};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint64_t value;
        if (!tide__sql_u64(stmt, (int)i, &value)) return false;
        *fields[i] = (int64_t)value;
    }
    return l->first_event > (before != NULL ? before->last_event : 0) && l->last_event >= l->first_event &&
           l->begin_ns >= (before != NULL ? before->end_ns : 0) && l->end_ns >= l->begin_ns &&
           l->min_bytes <= l->last_bytes && l->last_bytes <= l->max_bytes && l->max_event >= l->first_event &&
           l->max_event <= l->last_event && l->max_ns >= l->begin_ns && l->max_ns <= l->end_ns &&
           l->last_reserved_bytes <= l->max_reserved_bytes;
}

/// The leaves of the file behind those that are there already. What the tail had added goes.
static tide_status read_leaves(tide_trace *t, tide__trace_series *s, tide_error *err) {
    s->n_leaves = s->n_fixed;
    if (s->id < 0) return TIDE_OK;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql,
        "SELECT first_event, last_event, begin_ns, end_ns, min_bytes, max_bytes, max_event, max_ns, "
        "max_reserved_bytes, last_bytes, last_reserved_bytes FROM main.leaf WHERE series = ? AND first_event > ? "
        "ORDER BY first_event",
        &stmt, err));
    sqlite3_bind_int64(stmt, 1, s->id);
    sqlite3_bind_int64(stmt, 2, s->n_fixed > 0 ? s->leaves[s->n_fixed - 1].first_event : 0);
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        if (tide_host_grow(&s->leaves, &s->cap_leaves, s->n_fixed + 1, sizeof *s->leaves) != TIDE_OK) {
            st = TIDE_NO_MEMORY(err, "for the leaves of '%s'", t->path);
            break;
        }
        tide__leaf *l = &s->leaves[s->n_fixed];
        *l = (tide__leaf){0};
        if (!take_leaf(stmt, s->n_fixed > 0 ? l - 1 : NULL, l)) {
            st = tide__trace_bad_row(t, "leaf", sqlite3_column_int64(stmt, 0), err);
            break;
        }
        s->n_leaves = ++s->n_fixed;
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status add_leaf(tide_trace *t, tide__trace_series *s, const tide__leaf *l, tide_error *err) {
    TIDE_TRY(TIDE_GROW(&s->leaves, &s->cap_leaves, s->n_leaves + 1, err, "for the leaves of '%s'", t->path));
    s->leaves[s->n_leaves++] = *l;
    return TIDE_OK;
}

/// Leaves of the tail: complete ones that the file does not have yet, and the one that is still open.
static tide_status add_tail_leaves(tide_trace *t, tide__trace_series *s, tide_error *err) {
    const tide__replay *r = &t->tail.replay;
    const tide__leaves *l = &t->tail.leaves;
    size_t place = 0;
    if (s != &t->series[0]) {
        place = (size_t)r->series_of[s->device][s->kind];
        if (place == 0) return TIDE_OK;
    }
    for (size_t i = 0; i < l->n_done; i++)
        if ((size_t)l->done[i].series == place) TIDE_TRY(add_leaf(t, s, &l->done[i], err));
    if (l->first_event == 0 || place >= l->n_open || l->open[place].first_event == 0) return TIDE_OK;
    tide__leaf open = l->open[place];
    open.last_event = l->last_event;
    open.end_ns = l->end_ns;
    return add_leaf(t, s, &open, err);
}

/// Whether the leaves that are in memory are still those of the file: merging the oldest makes them fewer.
static tide_status leaves_stayed(const tide_trace *t, bool *stayed, tide_error *err) {
    const tide__trace_series *sum = &t->series[0];
    *stayed = true;
    if (sum->n_fixed == 0) return TIDE_OK;
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(&t->sql, "SELECT count(*) FROM main.leaf WHERE series = 0 AND first_event <= ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, sum->leaves[sum->n_fixed - 1].first_event);
    bool has_row;
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK) *stayed = sqlite3_column_int64(stmt, 0) == (int64_t)sum->n_fixed;
    sqlite3_finalize(stmt);
    return st;
}

// ---- the tail ----

static void tail_deinit(tide__trace_tail *tail) {
    if (!tail->is_on) return;
    tide__replay_deinit(&tail->replay);
    tide__leaves_deinit(&tail->leaves);
    *tail = (tide__trace_tail){0};
}

typedef struct tail_walk {
    tide__trace_tail *tail;
    int64_t leaves_from; // events behind this one make leaves
} tail_walk;

static tide_status tail_events(void *ctx, const tide__event *events, size_t n) {
    tail_walk *w = ctx;
    for (size_t i = 0; i < n; i++) {
        tide__problem problem;
        size_t series;
        TIDE_TRY(tide__replay_apply(&w->tail->replay, &events[i], &problem, &series));
        if (events[i].id <= w->leaves_from) continue;
        TIDE_TRY(tide__leaves_add(&w->tail->leaves, &w->tail->replay, &events[i], series));
    }
    return TIDE_OK;
}

/// The replay and the leaves of the file must say the same where they meet.
static tide_status check_joint(const tide_trace *t, const tide__replay *r, int64_t leaf_bytes, tide_error *err) {
    return r->series[0].live_bytes == leaf_bytes ? TIDE_OK : bad(t, "leaves and snapshots contradict each other", err);
}

static tide_status tail_begin(tide_trace *t, const extent *x, int64_t leaf_bytes, tide_error *err) {
    tail_deinit(&t->tail);
    if (tide__replay_init(&t->tail.replay) != TIDE_OK) return TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path);
    t->tail.is_on = true;
    TIDE_TRY(tide__trace_read_snapshot(t, x->last_event, &t->tail.replay, err));
    // Between two snapshots behind the last leaf nothing changed.
    if (t->tail.replay.last_event >= x->leaf_event) return check_joint(t, &t->tail.replay, leaf_bytes, err);
    tail_walk w = {&t->tail, x->leaf_event};
    TIDE_TRY(
        tide__trace_each(t, TIDE__READ_REPLAY, t->tail.replay.last_event + 1, x->leaf_event, tail_events, &w, err));
    return check_joint(t, &t->tail.replay, leaf_bytes, err);
}

/// Replay what is behind the last leaf, going on where it stands when that is the shorter way.
static tide_status tail_extend(tide_trace *t, const extent *x, int64_t leaf_bytes, tide_error *err) {
    const int64_t snapshot = t->n_snapshots > 0 ? t->snapshots[t->n_snapshots - 1].event_id : 0;
    const bool goes_on =
        t->tail.is_on && t->tail.replay.last_event == t->last_event && t->tail.replay.last_event >= snapshot;
    if (!goes_on) TIDE_TRY(tail_begin(t, x, leaf_bytes, err));
    tail_walk w = {&t->tail, 0};
    TIDE_TRY(
        tide__trace_each(t, TIDE__READ_REPLAY, t->tail.replay.last_event + 1, x->last_event, tail_events, &w, err));
    tide__leaves *l = &t->tail.leaves;
    size_t n = 0;
    for (size_t i = 0; i < l->n_done; i++)
        if (l->done[i].last_event > x->leaf_event) l->done[n++] = l->done[i];
    l->n_done = n;
    for (size_t i = 1; i < t->tail.replay.n_series; i++) {
        const tide__series *s = &t->tail.replay.series[i];
        if (tide__trace_series_find(t, s->device, s->kind) == SIZE_MAX)
            TIDE_TRY(add_series(t, -1, s->device, s->kind, err));
    }
    return TIDE_OK;
}

/// What a refresh that failed took away: the tail as it was.
static tide_status tail_again(tide_trace *t, tide_error *err) {
    const tide__trace_series *sum = &t->series[0];
    const extent x = {.last_event = t->last_event, .leaf_event = t->leaf_event};
    const int64_t leaf_bytes = sum->n_fixed > 0 ? sum->leaves[sum->n_fixed - 1].last_bytes : 0;
    const tide_status st = tail_extend(t, &x, leaf_bytes, err);
    if (st != TIDE_OK) tail_deinit(&t->tail);
    return st;
}

static tide_status load_series(tide_trace *t, size_t place, tide_error *err) {
    tide__trace_series *s = &t->series[place];
    TIDE_TRY(read_leaves(t, s, err));
    // The file may have grown since the trace was loaded; what is behind the known end belongs to the tail.
    while (s->n_fixed > 0 && s->leaves[s->n_fixed - 1].last_event > t->leaf_event) s->n_leaves = --s->n_fixed;
    if (!t->tail.is_on && t->leaf_event < t->last_event) TIDE_TRY(tail_again(t, err));
    s = &t->series[place]; // the tail may have met new ones
    if (t->tail.is_on) TIDE_TRY(add_tail_leaves(t, s, err));
    s->is_loaded = true;
    return TIDE_OK;
}

tide_status tide__trace_series_load(tide_trace *t, size_t place, tide_error *err) {
    if (!t->series[0].is_loaded) TIDE_TRY(load_series(t, 0, err)); // and with it the tail
    return t->series[place].is_loaded ? TIDE_OK : load_series(t, place, err);
}

// ---- all of it ----

static tide_status load_leaves(tide_trace *t, extent *x, tide_error *err) {
    TIDE_TRY(read_series(t, err));
    bool stayed;
    TIDE_TRY(leaves_stayed(t, &stayed, err));
    if (!stayed) {
        for (size_t i = 0; i < t->n_series; i++) t->series[i].n_leaves = t->series[i].n_fixed = 0;
    }
    tide__trace_series *sum = &t->series[0];
    sum->is_loaded = true;
    for (size_t i = 0; i < t->n_series; i++)
        if (t->series[i].is_loaded) TIDE_TRY(read_leaves(t, &t->series[i], err));
    x->leaf_event = sum->n_fixed > 0 ? sum->leaves[sum->n_fixed - 1].last_event : 0;
    if (x->leaf_event > x->last_event) return bad(t, "there are leaves behind the last event", err);
    const int64_t leaf_bytes = sum->n_fixed > 0 ? sum->leaves[sum->n_fixed - 1].last_bytes : 0;
    if (x->leaf_event == x->last_event) {
        tail_deinit(&t->tail);
        return TIDE_OK;
    }
    TIDE_TRY(tail_extend(t, x, leaf_bytes, err));
    for (size_t i = 0; i < t->n_series; i++) {
        tide__trace_series *s = &t->series[i];
        if (s->is_loaded) TIDE_TRY(add_tail_leaves(t, s, err));
    }
    return TIDE_OK;
}

static tide_status load_inside(tide_trace *t, extent *x, tide_error *err) {
    TIDE_TRY(read_state(t, x, err));
    TIDE_TRY(tide__trace_names_load(t, err));
    TIDE_TRY(read_extent(t, x, err));
    TIDE_TRY(tide__process_ends_load(&t->ends, &t->sql, err));
    TIDE_TRY(read_snapshots(t, x, err));
    forget_snapshots(t, x->first_event);
    TIDE_TRY(find_peak_snapshot(t, x->first_event, err));
    if (t->forget[TIDE__KEPT_CURVES] != NULL) t->forget[TIDE__KEPT_CURVES](t);
    TIDE_TRY(tide__blocks_are_packed(&t->sql, &x->is_packed, err));
    if (x->is_packed && !t->has_block_table) {
        TIDE_TRY(tide__block_table_register(&t->sql, err));
        t->has_block_table = true;
    }
    return load_leaves(t, x, err);
}

/// After a failure: leaves and tail are read anew, as far as the trace was known before, by the next question.
static void forget_leaves(tide_trace *t) {
    if (t->forget[TIDE__KEPT_CURVES] != NULL) t->forget[TIDE__KEPT_CURVES](t);
    tail_deinit(&t->tail);
    for (size_t i = 0; i < t->n_series; i++) {
        t->series[i].is_loaded = false;
        t->series[i].n_leaves = t->series[i].n_fixed = 0;
    }
}

/// The tables of an unfinished trace are those of its events so far.
static tide_status drop_temp_tables(tide_trace *t, tide_error *err) {
    if (!t->has_temp_tables) return TIDE_OK;
    t->has_temp_tables = false;
    return tide__sql_exec(&t->sql, "DROP TABLE IF EXISTS temp.block; DROP TABLE IF EXISTS temp.step", err);
}

/// The one that was held, or that of a load. It has only read; SQLite may have ended it in an error.
static void end_transaction(tide_trace *t) {
    if (sqlite3_get_autocommit(t->sql.db) == 0) sqlite3_exec(t->sql.db, "COMMIT", NULL, NULL, NULL);
}

tide_status tide__trace_load(tide_trace *t, bool *grew, tide_error *err) {
    end_transaction(t);
    TIDE_TRY(tide__sql_exec(&t->sql, "BEGIN", err));
    extent x = {0};
    tide_status st = load_inside(t, &x, err);
    if (!t->holds || st != TIDE_OK || x.state != TIDE_TRACE_RECORDING) end_transaction(t);
    const bool changed = x.last_event != t->last_event || x.state != t->state;
    if (st == TIDE_OK && changed) st = drop_temp_tables(t, err);
    if (st != TIDE_OK) {
        forget_leaves(t);
        return st;
    }
    if (grew != NULL) *grew = changed;
    if (changed) t->has_problem_events = false;
    t->state = x.state;
    t->first_event = x.first_event;
    t->last_event = x.last_event;
    t->begin_ns = x.begin_ns;
    t->end_ns = x.end_ns;
    t->leaf_event = x.leaf_event;
    t->is_packed = x.is_packed;
    return TIDE_OK;
}

/// The reading to call, and whether it has cancelled.
typedef struct hearer {
    const tide_reading *reading;
    bool has_refused;
} hearer;

static int refuses(void *ctx) {
    hearer *h = ctx;
    if (!h->has_refused) h->has_refused = !h->reading->tell(h->reading->ctx, 0);
    return h->has_refused;
}

/// Tables of millions of events take as many seconds, most of them inside of SQLite.
static tide_status make_tables(tide_trace *t, tide_error *err) {
    enum { STEPS_UNHEARD = 1 << 16 };
    hearer h = {.reading = t->reading};
    if (h.reading == NULL || h.reading->tell == NULL) return tide__finish_tables(&t->sql, true, err);
    sqlite3_progress_handler(t->sql.db, STEPS_UNHEARD, refuses, &h);
    const tide_status st = tide__finish_tables(&t->sql, true, err);
    tide__sql_guard(t->sql.db, true);
    if (!h.has_refused) return st;
    return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "reading '%s' was cancelled", t->path);
}

tide_status tide__trace_need_tables(tide_trace *t, tide_error *err) {
    if (t->state != TIDE_TRACE_RECORDING || t->has_temp_tables) return TIDE_OK;
    TIDE_TRY(make_tables(t, err));
    t->has_temp_tables = true;
    return TIDE_OK;
}

tide_status tide__trace_ask_blocks(tide_trace *t, const char *columns, const char *rest, sqlite3_stmt **out,
                                   tide_error *err) {
    TIDE_TRY(tide__trace_need_tables(t, err));
    tide_text text = {0};
    const bool is_packed = t->is_packed && t->state != TIDE_TRACE_RECORDING;
    tide_text_addf(&text, "SELECT %s FROM %s %s", columns, is_packed ? "all_blocks" : "block", rest);
    const tide_status st = text.failed ? TIDE_NO_MEMORY(err, "for the blocks of '%s'", t->path)
                                       : tide__sql_prepare(&t->sql, tide_text_str(&text), out, err);
    tide_text_deinit(&text);
    return st;
}

void tide__trace_unload(tide_trace *t) {
    tide__trace_walk_deinit(t);
    for (size_t i = 0; i < TIDE__N_KEPT; i++)
        if (t->forget[i] != NULL) t->forget[i](t);
    tail_deinit(&t->tail);
    for (size_t i = 0; i < t->n_series; i++) tide_host_free(t->series[i].leaves);
    tide_host_free(t->series);
    tide_host_free(t->snapshots);
    tide_host_free(t->problem_events);
    tide__process_ends_deinit(&t->ends);
    tide__trace_names_deinit(&t->names);
}
