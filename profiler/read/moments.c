// SPDX-License-Identifier: MIT
//
// The curve at one event and from change to change, peaks and columns of a window, events. See moments.h.
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

// ---- events by time ----

/// Last event at or before a moment of which the events are gone: known where it lies between two leaves.
static tide_status dropped_event_at(tide_trace *t, int64_t t_ns, int64_t *event_id, tide_error *err) {
    TIDE_TRY(tide__trace_series_load(t, 0, err));
    const tide__trace_series *sum = &t->series[0];
    *event_id = 0;
    for (size_t i = 0; i < sum->n_leaves && sum->leaves[i].begin_ns <= t_ns; i++) {
        if (sum->leaves[i].end_ns > t_ns) return tide__trace_dropped(t, err);
        *event_id = sum->leaves[i].last_event;
    }
    return TIDE_OK;
}

/// One read transaction for the whole search: SQLite takes the file's lock and gives it back once, and not for each of
/// the rows that are looked at, which took most of the time.
static tide_status search_event(tide_trace *t, int64_t t_ns, int64_t *event_id, tide_error *err) {
    if (t->search == NULL) TIDE_TRY(tide__event_search_open(&t->sql, &t->search, err));
    const bool is_own = sqlite3_get_autocommit(t->sql.db) != 0;
    if (is_own) TIDE_TRY(tide__sql_exec(&t->sql, "BEGIN", err));
    const tide_status st = tide__event_search_at(t->search, t_ns, event_id, err);
    if (is_own && sqlite3_get_autocommit(t->sql.db) == 0) sqlite3_exec(t->sql.db, "COMMIT", NULL, NULL, NULL);
    // Where there was no memory for that.
    if (is_own && sqlite3_get_autocommit(t->sql.db) == 0) sqlite3_exec(t->sql.db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

tide_status tide__trace_event_at(tide_trace *t, uint64_t t_ns, int64_t *event_id, tide_error *err) {
    const int64_t at = t_ns > INT64_MAX ? INT64_MAX : (int64_t)t_ns;
    *event_id = t->last_event;
    if (at >= t->end_ns) return TIDE_OK;
    if (t->first_event > 1) {
        const bool has_base = t->n_snapshots > 0 && t->snapshots[0].event_id == t->first_event - 1;
        if (at < t->begin_ns && has_base && at >= t->snapshots[0].t_ns) {
            *event_id = t->snapshots[0].event_id;
            return TIDE_OK;
        }
        if (at < t->begin_ns) return dropped_event_at(t, at, event_id, err);
    }
    TIDE_TRY(search_event(t, at, event_id, err));
    if (*event_id > t->last_event) *event_id = t->last_event;
    return TIDE_OK;
}

tide_status tide__trace_event_before(tide_trace *t, uint64_t t_ns, int64_t *event_id, tide_error *err) {
    *event_id = 0;
    return t_ns > 0 ? tide__trace_event_at(t, t_ns - 1, event_id, err) : TIDE_OK;
}

tide_status tide_trace_get_extent(tide_trace *t, int64_t run_id, tide_trace_extent *out, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    *out = (tide_trace_extent){.first_event = (uint64_t)span.first_event,
                               .last_event = (uint64_t)span.last_event,
                               .begin_ns = span.begin_ns,
                               .end_ns = span.end_ns};
    return TIDE_OK;
}

tide_status tide_trace_run_peak(tide_trace *t, int64_t run_id, int kind, const char *device, uint64_t *bytes,
                                uint64_t *event, uint64_t *t_ns, tide_error *err) {
    tide__span span;
    tide__curve *c;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(tide__trace_curve(t, kind, device, &c, err));
    if (run_id == 0) span.first_event = 1;
    int64_t high, high_event, high_ns = (int64_t)span.begin_ns;
    TIDE_TRY(tide__curve_peak(t, c, span.first_event, span.last_event, &high, &high_event, &high_ns, err));
    *bytes = (uint64_t)high;
    if (event != NULL) *event = (uint64_t)high_event;
    if (t_ns != NULL) *t_ns = (uint64_t)high_ns;
    return TIDE_OK;
}

/// The events around it are gone, and who was live then is known.
static bool is_kept_peak(const tide_trace *t, uint64_t event) {
    return event > 0 && (int64_t)event < t->first_event - 1 && (int64_t)event == t->peak_snapshot.event_id;
}

tide_status tide_trace_bytes_after(tide_trace *t, int kind, const char *device, uint64_t event, uint64_t *bytes,
                                   tide_error *err) {
    tide__curve *c;
    int64_t live;
    TIDE_TRY(tide__trace_curve(t, kind, device, &c, err));
    if (event > (uint64_t)t->last_event)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no event %llu", t->path, (unsigned long long)event);
    if (kind == -1 && device == NULL && is_kept_peak(t, event)) {
        const tide__replay *r;
        TIDE_TRY(tide__trace_state_after(t, (int64_t)event, &r, err));
        live = r->series[0].live_bytes;
    } else {
        TIDE_TRY(tide__curve_value(t, c, (int64_t)event, &live, err));
    }
    *bytes = (uint64_t)live;
    return TIDE_OK;
}

tide_status tide_trace_bytes_at(tide_trace *t, int kind, const char *device, uint64_t t_ns, uint64_t *bytes,
                                tide_error *err) {
    int64_t event;
    TIDE_TRY(tide__trace_event_at(t, t_ns, &event, err));
    return tide_trace_bytes_after(t, kind, device, (uint64_t)event, bytes, err);
}

// ---- from change to change ----

/// The point of leaf `leaf_i` that is next to `event`; false: it has none on that side.
static bool next_point(const tide__curve *c, int64_t event, int dir, tide__point *out) {
    bool found = false;
    for (size_t k = 0; k < c->n_points; k++) {
        const tide__point *p = &c->points[k];
        if (dir > 0 ? p->event <= event : p->event >= event) continue;
        if (found && dir > 0) break;
        *out = *p;
        found = true;
    }
    return found;
}

tide_status tide_trace_next_change(tide_trace *t, uint64_t event, int dir, uint64_t *out_event, uint64_t *out_ns,
                                   tide_error *err) {
    tide__curve *c;
    TIDE_TRY(tide__trace_curve(t, -1, NULL, &c, err));
    const int64_t from = event > INT64_MAX ? INT64_MAX : (int64_t)event;
    size_t i = tide__curve_find(c, dir > 0 && from < INT64_MAX ? from + 1 : from);
    if (dir <= 0 && (i == c->n || c->leaves[i].first_event >= from)) {
        if (i == 0) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "nothing changes before");
        i--;
    }
    // A leaf has a change, but perhaps not on the side that is asked for; then its neighbour has.
    for (int tries = 0; tries < 2 && i < c->n; tries++) {
        tide__point p = {0};
        if (c->leaves[i].last_event < t->first_event) return tide__trace_dropped(t, err);
        TIDE_TRY(tide__curve_points(t, c, i, err));
        if (next_point(c, from, dir, &p)) {
            *out_event = (uint64_t)p.event;
            *out_ns = (uint64_t)p.t_ns;
            return TIDE_OK;
        }
        if (dir <= 0 && i == 0) break;
        i = dir > 0 ? i + 1 : i - 1;
    }
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "nothing changes %s", dir > 0 ? "behind" : "before");
}

// ---- peaks of a window and columns of a timeline ----
//
//     columns   |        |        |        |
//     leaves      [---][----][--][---][----]     a leaf that lies inside a column counts by its min and max; one on an
//     inside                ^^^^                 edge shows in both (fast), or is read event by event (exact)

enum {
    EXACT_LEAVES = 8, // a window of so few is answered exactly in either mode: it costs next to nothing
};

// ---- peaks ----

tide_status tide_trace_peak_between(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1,
                                    uint64_t *bytes, uint64_t *event, uint64_t *t_ns, tide_error *err) {
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    tide__curve *c;
    int64_t before, last, high, high_event, high_ns = t0 > INT64_MAX ? INT64_MAX : (int64_t)t0;
    TIDE_TRY(tide__trace_curve(t, kind, device, &c, err));
    TIDE_TRY(tide__trace_event_before(t, t0, &before, err));
    TIDE_TRY(tide__trace_event_at(t, t1, &last, err));
    TIDE_TRY(tide__curve_peak(t, c, before + 1, last, &high, &high_event, &high_ns, err));
    *bytes = (uint64_t)high;
    if (event != NULL) *event = (uint64_t)high_event;
    if (t_ns != NULL) *t_ns = (uint64_t)high_ns;
    return TIDE_OK;
}

// ---- columns ----

typedef struct columns {
    tide_trace *t;
    tide__curve *c;
    bool is_exact;
    size_t at; // first leaf that ends in the column or behind it
    int64_t low, high;
} columns;

static void take(columns *k, int64_t bytes) {
    if (bytes < k->low) k->low = bytes;
    if (bytes > k->high) k->high = bytes;
}

/// A leaf by its min and max. Bounds of several series are settled first where they would count: no spike may be made
/// up. Of events that are gone the bounds are all there is.
static tide_status take_leaf(columns *k, size_t leaf_i, tide_error *err) {
    const tide__leaf *l = &k->c->leaves[leaf_i];
    if (l->min_bytes >= k->low && l->max_bytes <= k->high) return TIDE_OK;
    if (k->is_exact || l->first_event >= k->t->first_event) TIDE_TRY(tide__curve_settle(k->t, k->c, leaf_i, err));
    take(k, l->min_bytes);
    take(k, l->max_bytes);
    return TIDE_OK;
}

/// A column of fast mode, [lo, hi): every leaf that meets it, and what held before the first of them.
static tide_status fast_column(columns *k, int64_t lo, int64_t hi, tide_error *err) {
    const tide__curve *c = k->c;
    while (k->at < c->n && c->leaves[k->at].end_ns < lo) k->at++;
    take(k, tide__curve_before(c, k->at));
    for (size_t i = k->at; i < c->n && c->leaves[i].begin_ns < hi; i++) TIDE_TRY(take_leaf(k, i, err));
    return TIDE_OK;
}

/// The points of leaf `leaf_i` within [lo, hi). *carried: what holds when the column begins; a point at `lo` itself
/// takes its place.
static tide_status exact_leaf(columns *k, size_t leaf_i, int64_t lo, int64_t hi, int64_t *carried, bool *is_carried,
                              tide_error *err) {
    TIDE_TRY(tide__curve_points(k->t, k->c, leaf_i, err));
    const tide__point *p = k->c->points;
    size_t first = 0, end = k->c->n_points;
    while (first < end) { // the first at or behind lo
        const size_t mid = first + (end - first) / 2;
        if (p[mid].t_ns < lo) {
            first = mid + 1;
        } else {
            end = mid;
        }
    }
    if (first > 0) *carried = p[first - 1].bytes;
    for (size_t i = first; i < k->c->n_points && p[i].t_ns < hi; i++) {
        if (p[i].t_ns == lo) *is_carried = false;
        take(k, p[i].bytes);
    }
    return TIDE_OK;
}

static tide_status exact_column(columns *k, int64_t lo, int64_t hi, tide_error *err) {
    tide__curve *c = k->c;
    while (k->at < c->n && c->leaves[k->at].end_ns < lo) k->at++;
    int64_t carried = tide__curve_before(c, k->at);
    bool is_carried = true;
    for (size_t i = k->at; i < c->n && c->leaves[i].begin_ns < hi; i++) {
        const tide__leaf *l = &c->leaves[i];
        if (l->begin_ns <= lo || l->end_ns >= hi) {
            TIDE_TRY(exact_leaf(k, i, lo, hi, &carried, &is_carried, err));
            continue;
        }
        TIDE_TRY(take_leaf(k, i, err));
    }
    if (is_carried) take(k, carried);
    return TIDE_OK;
}

/// t0 + part / n of the length, without overflow: both factors of the rest are at most n.
static int64_t column_edge(uint64_t t0, uint64_t len, size_t part, size_t n) {
    const uint64_t at = t0 + (len / n * part + len % n * part / n);
    return at > INT64_MAX ? INT64_MAX : (int64_t)at;
}

/// Whether the window is small enough to be read event by event.
static bool is_small(const tide_trace *t, const tide__curve *c, uint64_t t0, uint64_t t1) {
    size_t n = 0, lo = 0, hi = c->n;
    while (lo < hi) { // the first leaf that ends at or behind t0
        const size_t mid = lo + (hi - lo) / 2;
        if ((uint64_t)c->leaves[mid].end_ns < t0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    for (size_t i = lo; i < c->n && (uint64_t)c->leaves[i].begin_ns < t1; i++) {
        const tide__leaf *l = &c->leaves[i];
        if (l->first_event < t->first_event || l->last_event - l->first_event >= TIDE__LEAF_EVENTS) return false;
        if (++n > EXACT_LEAVES) return false;
    }
    return true;
}

tide_status tide_trace_columns(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1, size_t n,
                               tide_columns_mode mode, uint64_t *min_bytes, uint64_t *max_bytes, tide_error *err) {
    columns k = {.t = t, .is_exact = mode == TIDE_COLUMNS_EXACT};
    TIDE_TRY(tide__trace_curve(t, kind, device, &k.c, err));
    if (!k.is_exact) k.is_exact = is_small(t, k.c, t0, t1);
    const uint64_t len = t1 > t0 ? t1 - t0 : 0;
    int64_t before = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const int64_t lo = column_edge(t0, len, i, n);
        int64_t hi = column_edge(t0, len, i + 1, n);
        if (hi <= lo) hi = lo < INT64_MAX ? lo + 1 : lo;
        if (i > 0 && lo == before) { // narrower than the unit
            min_bytes[i] = min_bytes[i - 1];
            max_bytes[i] = max_bytes[i - 1];
            continue;
        }
        before = lo;
        k.low = INT64_MAX;
        k.high = -1;
        TIDE_TRY(k.is_exact ? exact_column(&k, lo, hi, err) : fast_column(&k, lo, hi, err));
        min_bytes[i] = (uint64_t)k.low;
        max_bytes[i] = (uint64_t)k.high;
    }
    return TIDE_OK;
}

// ---- events with their names, and the moments that have one ----

_Static_assert((int)TIDE_TRACE_SCOPE_ENTER == (int)TIDE__OP_SCOPE_ENTER &&
                   (int)TIDE_TRACE_SCOPE_LEAVE == (int)TIDE__OP_SCOPE_LEAVE &&
                   (int)TIDE_TRACE_GAP == (int)TIDE__OP_GAP && (int)TIDE_TRACE_PROCESS_END == (int)TIDE__OP_PROCESS_END,
               "codes are those of the file");

static tide_trace_event named(const tide_trace *t, const tide__event *e) {
    const tide__trace_scope scope = tide__trace_scope_of(t, e->scope_id);
    return (tide_trace_event){.id = (uint64_t)e->id,
                              .t_ns = (uint64_t)e->t_ns,
                              .code = e->op,
                              .op = tide__op_name(e->op),
                              // some have the process's part of a number
                              .block_id = tide__event_is_of_process(e) ? 0 : (uint64_t)e->block_id,
                              .requested_bytes = (uint64_t)e->requested_bytes,
                              .reserved_bytes = (uint64_t)e->reserved_bytes,
                              .address = (uint64_t)e->address,
                              .stream = (uint64_t)e->stream,
                              .kind = e->kind < TIDE_N_KINDS ? tide_memory_kind_name((tide_memory_kind)e->kind) : "",
                              .device = tide__trace_device(t, e->device),
                              .allocator = tide__trace_text(t, e->allocator_id),
                              .name = tide__trace_text(t, e->tag_id),
                              .scope = scope.name,
                              .scope_index = scope.step,
                              .scope_id = (uint32_t)e->scope_id,
                              .run_id = e->run_id,
                              .thread = (uint32_t)e->thread,
                              .process = (uint32_t)((uint64_t)e->block_id >> 48)};
}

typedef struct reading {
    const tide_trace *t;
    tide_trace_event *events;
    size_t n;
} reading;

static tide_status take_events(void *ctx, const tide__event *events, size_t n) {
    reading *r = ctx;
    for (size_t i = 0; i < n; i++) r->events[r->n++] = named(r->t, &events[i]);
    return TIDE_OK;
}

tide_status tide_trace_events(tide_trace *t, uint64_t from, tide_trace_event *events, size_t max, size_t *n,
                              tide_error *err) {
    const uint64_t first = from < (uint64_t)t->first_event ? (uint64_t)t->first_event : from;
    *n = 0;
    if (max == 0 || first > (uint64_t)t->last_event) return TIDE_OK;
    const uint64_t left = (uint64_t)t->last_event - first + 1;
    reading r = {.t = t, .events = events};
    TIDE_TRY(tide__trace_each(t, TIDE__READ_ALL, (int64_t)first, (int64_t)(first + (left < max ? left : max) - 1),
                              take_events, &r, err));
    *n = r.n;
    return TIDE_OK;
}

tide_status tide_trace_event_at(tide_trace *t, uint64_t t_ns, uint64_t *event_id, tide_error *err) {
    int64_t id;
    TIDE_TRY(tide__trace_event_at(t, t_ns, &id, err));
    *event_id = (uint64_t)id;
    return TIDE_OK;
}
