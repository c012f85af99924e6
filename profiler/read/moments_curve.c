// SPDX-License-Identifier: MIT
//
// Curves of live bytes, made of leaves. See moments_internal.h.
//
// The peak of a sum is not the sum of the peaks. So where several series are asked for together, a leaf in which more
// than one of them changed has bounds only, until its events are read:
//
//     A      [2 ... 8]  [8 ... 9]             A + B   [3 ... 9] exact, as B holds 1   [8 ... 14] bounds: both changed
//     B   1             [0 ... 5]
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

// ---- what happened inside of a leaf ----
//
// A free has the size of its block, so the changes follow from the events alone: 0.1 ms
// where a replay from the nearest snapshot takes some. Whether that was right shows at once: the changes must add up to
// what the leaf says. Where they do not (a runtime that frees without telling sizes), or where the recording noted a
// problem, a pool was discarded or a process ended, the interval is replayed.

typedef struct delta {
    int64_t event, t_ns, bytes;
    int32_t series; ///< place in t->series; not the sum
} delta;
/// Changes of all series in events first to last.
typedef struct interval {
    int64_t first, last;
    delta *deltas; ///< [n], owned
    size_t n, cap;
    bool is_replayed; ///< false: taken from the events alone, which is right when it adds up to the leaf
    uint64_t used;    ///< clock of the cache
} interval;

enum { N_KEPT = 512, MAX_PROBLEMS = 1 << 20 };

typedef struct tide__interval_cache {
    interval kept[N_KEPT];
    uint64_t clock;
} interval_cache;

static void forget_intervals(tide_trace *t) {
    if (t->cache == NULL) return;
    for (size_t i = 0; i < N_KEPT; i++) tide_host_free(t->cache->kept[i].deltas);
    tide_host_free(t->cache);
    t->cache = NULL;
}

typedef struct decoder {
    tide_trace *t;
    interval *s;
    int64_t *live; // [t->n_series] by place, of a replay: what was live before the event
    bool is_odd;   // an event whose change is not known from itself
} decoder;

static tide_status add_delta(const decoder *d, const tide__event *e, int64_t bytes, size_t series_i) {
    interval *s = d->s;
    if (series_i == SIZE_MAX) return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide_host_grow(&s->deltas, &s->cap, s->n + 1, sizeof *s->deltas));
    s->deltas[s->n++] = (delta){e->id, e->t_ns, bytes, (int32_t)series_i};
    return TIDE_OK;
}

// ---- from the events alone ----

static tide_status read_events(void *ctx, const tide__event *events, size_t n) {
    decoder *d = ctx;
    for (size_t i = 0; i < n; i++) {
        const tide__event *e = &events[i];
        if (tide__event_is_of_process(e)) d->is_odd = true;
        if (e->op != TIDE_MEM_ALLOC && e->op != TIDE_MEM_FREE_COMPLETED) continue;
        const size_t series_i = tide__trace_series_find(d->t, e->device, e->kind);
        if (series_i == SIZE_MAX) d->is_odd = true;
        if (d->is_odd) continue;
        TIDE_TRY(add_delta(d, e, e->op == TIDE_MEM_ALLOC ? e->requested_bytes : -e->requested_bytes, series_i));
    }
    return TIDE_OK;
}

/// Whether the changes add up to the leaf of the sum that covers the same events.
static bool adds_up(const tide_trace *t, const interval *s) {
    const tide__trace_series *sum = &t->series[0];
    size_t lo = 0, hi = sum->n_leaves;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (sum->leaves[mid].first_event < s->first) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == sum->n_leaves || sum->leaves[lo].first_event != s->first || sum->leaves[lo].last_event != s->last)
        return false;
    const tide__leaf *leaf = &sum->leaves[lo];
    int64_t live = lo > 0 ? leaf[-1].last_bytes : 0, low = INT64_MAX, high = -1, high_event = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (__builtin_add_overflow(live, s->deltas[i].bytes, &live) || live < 0) return false;
        if (live < low) low = live;
        if (live <= high) continue;
        high = live;
        high_event = s->deltas[i].event;
    }
    return live == leaf->last_bytes && low == leaf->min_bytes && high == leaf->max_bytes &&
           high_event == leaf->max_event;
}

// ---- problems ----

static tide_status load_problems(tide_trace *t, tide_error *err) {
    if (t->has_problem_events) return TIDE_OK;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT event_id FROM main.problem ORDER BY event_id LIMIT ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, MAX_PROBLEMS);
    t->n_problem_events = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = tide_host_grow(&t->problem_events, &t->cap_problem_events, t->n_problem_events + 1,
                            sizeof *t->problem_events);
        if (st != TIDE_OK) {
            TIDE_NO_MEMORY(err, "for the problems of '%s'", t->path);
            break;
        }
        t->problem_events[t->n_problem_events++] = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    t->has_problem_events = st == TIDE_OK;
    return st;
}

static bool has_problem(const tide_trace *t, int64_t first, int64_t last) {
    const size_t n = t->n_problem_events;
    if (n >= MAX_PROBLEMS && last > t->problem_events[n - 1]) return true; // the rest was not counted
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->problem_events[mid] < first) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n && t->problem_events[lo] <= last;
}

// ---- by replay ----

static tide_status begin_replay(void *ctx, const tide__replay *r) {
    const decoder *d = ctx;
    for (size_t i = 1; i < r->n_series; i++) {
        const size_t place = tide__trace_series_find(d->t, r->series[i].device, r->series[i].kind);
        if (place != SIZE_MAX) d->live[place] = r->series[i].live_bytes;
    }
    return TIDE_OK;
}

static tide_status replay_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    const decoder *d = ctx;
    if (series == 0) return TIDE_OK;
    for (size_t i = r->n_changed == 1 ? series : 1; i < r->n_series; i++) {
        const tide__series *s = &r->series[i];
        if (s->last_event == e->id) {
            const size_t place = tide__trace_series_find(d->t, s->device, s->kind);
            TIDE_TRY(add_delta(d, e, place != SIZE_MAX ? s->live_bytes - d->live[place] : 0, place));
            d->live[place] = s->live_bytes;
        }
        if (r->n_changed == 1) break;
    }
    return TIDE_OK;
}

static tide_status replay_interval(decoder *d, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&d->live, d->t->n_series, err, "for the series of '%s'", d->t->path));
    d->s->n = 0;
    const tide_status st = tide__trace_walk(d->t, d->s->first, d->s->last, begin_replay, replay_event, d, err);
    tide_host_free(d->live);
    d->s->is_replayed = st == TIDE_OK;
    return st;
}

// ---- the cache ----

static tide_status decode(tide_trace *t, interval *s, bool replay, tide_error *err) {
    decoder d = {.t = t, .s = s};
    s->n = 0;
    s->is_replayed = false;
    TIDE_TRY(load_problems(t, err));
    if (replay || has_problem(t, s->first, s->last)) return replay_interval(&d, err);
    TIDE_TRY(tide__trace_each(t, TIDE__READ_CHANGES, s->first, s->last, read_events, &d, err));
    return d.is_odd || !adds_up(t, s) ? replay_interval(&d, err) : TIDE_OK;
}

/// The changes within `leaf`. `replay`: by a replay of all live blocks. Valid until the next call.
static tide_status interval_of(tide_trace *t, const tide__leaf *leaf, bool replay, const interval **out,
                               tide_error *err) {
    t->forget[TIDE__KEPT_INTERVALS] = forget_intervals;
    if (t->cache == NULL) TIDE_TRY(TIDE_NEW(&t->cache, 1, err, "for the leaves of '%s'", t->path));
    interval *s = &t->cache->kept[0];
    for (size_t i = 0; i < N_KEPT; i++) {
        interval *kept = &t->cache->kept[i];
        if (kept->first == leaf->first_event && kept->last == leaf->last_event && (kept->is_replayed || !replay)) {
            kept->used = ++t->cache->clock;
            *out = kept;
            return TIDE_OK;
        }
        if (kept->used < s->used) s = kept;
    }
    s->first = leaf->first_event;
    s->last = leaf->last_event;
    const tide_status st = decode(t, s, replay, err);
    if (st != TIDE_OK) {
        s->first = s->last = 0;
        s->used = 0;
        return st;
    }
    s->used = ++t->cache->clock;
    *out = s;
    return TIDE_OK;
}

// ---- curves ----

enum { BOUNDS_ONLY = -1 };

static void curve_destroy(tide__curve *c) {
    tide_host_free(c->members);
    tide_host_free(c->own);
    tide_host_free(c->points);
    tide_host_free(c);
}

static void forget_curves(tide_trace *t) {
    for (size_t i = 0; i < t->n_curves; i++) curve_destroy(t->curves[i]);
    tide_host_free(t->curves);
    t->curves = NULL;
    t->n_curves = t->cap_curves = 0;
}

// ---- several series as one ----

typedef struct merge {
    size_t *at;    // [n_members] next leaf of each
    int64_t *held; // [n_members] value of each before it
} merge;

/// The next leaf of the sum: all leaves of the members that meet. False: none is left.
static bool next_group(const tide_trace *t, const tide__curve *c, const merge *m, int64_t *first, int64_t *last) {
    *first = INT64_MAX;
    for (size_t i = 0; i < c->n_members; i++) {
        const tide__trace_series *s = &t->series[c->members[i]];
        if (m->at[i] < s->n_leaves && s->leaves[m->at[i]].first_event < *first) {
            *first = s->leaves[m->at[i]].first_event;
            *last = s->leaves[m->at[i]].last_event;
        }
    }
    if (*first == INT64_MAX) return false;
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < c->n_members; i++) {
            const tide__trace_series *s = &t->series[c->members[i]];
            for (size_t k = m->at[i]; k < s->n_leaves && s->leaves[k].first_event <= *last; k++) {
                if (s->leaves[k].last_event <= *last) continue;
                *last = s->leaves[k].last_event;
                grew = true;
            }
        }
    }
    return true;
}

typedef struct member_sum {
    int64_t low, high, last; // bounds and end of one member within a group
    const tide__leaf *only;  // its leaf when there is one
    size_t n;
} member_sum;

static member_sum take_member(const tide__trace_series *s, merge *m, size_t i, int64_t last, tide__leaf *out) {
    member_sum sum = {.low = m->held[i], .high = m->held[i], .last = m->held[i]};
    for (; m->at[i] < s->n_leaves && s->leaves[m->at[i]].first_event <= last; m->at[i]++) {
        const tide__leaf *l = &s->leaves[m->at[i]];
        if (l->min_bytes < sum.low) sum.low = l->min_bytes;
        if (l->max_bytes > sum.high) sum.high = l->max_bytes;
        if (l->begin_ns < out->begin_ns) out->begin_ns = l->begin_ns;
        if (l->end_ns > out->end_ns) out->end_ns = l->end_ns;
        sum.last = l->last_bytes;
        sum.only = l;
        sum.n++;
    }
    m->held[i] = sum.last;
    return sum;
}

/// One leaf of the sum. False: the sums pass the largest number.
static bool add_group(const tide_trace *t, tide__curve *c, merge *m, int64_t first, int64_t last) {
    tide__leaf *out = &c->own[c->n];
    *out = (tide__leaf){
        .series = BOUNDS_ONLY, .first_event = first, .last_event = last, .begin_ns = INT64_MAX, .max_event = first};
    size_t n_changed = 0;
    const tide__leaf *only = NULL;
    int64_t others = 0; // of those that did not change
    for (size_t i = 0; i < c->n_members; i++) {
        const member_sum sum = take_member(&t->series[c->members[i]], m, i, last, out);
        if (!tide_add_i64(out->min_bytes, sum.low, &out->min_bytes) ||
            !tide_add_i64(out->max_bytes, sum.high, &out->max_bytes) ||
            !tide_add_i64(out->last_bytes, sum.last, &out->last_bytes))
            return false;
        if (sum.n == 0) others += sum.last;
        if (sum.n > 0) n_changed += sum.n;
        if (sum.n > 0) only = sum.only;
    }
    if (n_changed == 1) {
        out->series = 0;
        out->min_bytes = only->min_bytes + others;
        out->max_bytes = only->max_bytes + others;
        out->max_event = only->max_event;
        out->max_ns = only->max_ns;
    }
    c->leaves = c->own;
    c->n++;
    return true;
}

static tide_status merge_members(tide_trace *t, tide__curve *c, merge *m, tide_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_members; i++) n += t->series[c->members[i]].n_leaves;
    m->at = tide_host_calloc(c->n_members, sizeof *m->at);
    m->held = tide_host_calloc(c->n_members, sizeof *m->held);
    c->own = tide_host_calloc(n, sizeof *c->own);
    if (m->at == NULL || m->held == NULL || c->own == NULL)
        return TIDE_NO_MEMORY(err, "for the leaves of '%s'", t->path);
    int64_t first, last;
    while (next_group(t, c, m, &first, &last))
        if (!add_group(t, c, m, first, last)) return tide__trace_bad_row(t, "leaf", first, err);
    return TIDE_OK;
}

// ---- the curve that was asked for ----

static tide_status add_member(tide_trace *t, tide__curve *c, size_t *cap, size_t place, tide_error *err) {
    TIDE_TRY(tide__trace_series_load(t, place, err));
    if (tide_host_grow(&c->members, cap, c->n_members + 1, sizeof *c->members) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the leaves of '%s'", t->path);
    c->members[c->n_members++] = (int32_t)place;
    return TIDE_OK;
}

static tide_status find_members(tide_trace *t, tide__curve *c, tide_error *err) {
    size_t cap = 0, n_match = 0;
    for (size_t i = 1; i < t->n_series; i++)
        n_match +=
            tide_kind_is_among(c->kind, t->series[i].kind) && (c->device < 0 || t->series[i].device == c->device);
    if (n_match == t->n_series - 1) return add_member(t, c, &cap, 0, err);
    for (size_t i = 1; i < t->n_series; i++) {
        if (tide_kind_is_among(c->kind, t->series[i].kind) && (c->device < 0 || t->series[i].device == c->device))
            TIDE_TRY(add_member(t, c, &cap, i, err));
    }
    return TIDE_OK;
}

static tide_status fill(tide_trace *t, tide__curve *c, tide_error *err) {
    TIDE_TRY(find_members(t, c, err));
    if (c->n_members == 1) {
        c->leaves = t->series[c->members[0]].leaves;
        c->n = t->series[c->members[0]].n_leaves;
    }
    if (c->n_members < 2) return TIDE_OK;
    merge m = {0};
    const tide_status st = merge_members(t, c, &m, err);
    tide_host_free(m.at);
    tide_host_free(m.held);
    return st;
}

/// The same by the number of the device; -1: all.
static tide_status curve_of(tide_trace *t, int kind, int64_t device, tide__curve **out, tide_error *err) {
    for (size_t i = 0; i < t->n_curves; i++) {
        if (t->curves[i]->kind != kind || t->curves[i]->device != device) continue;
        *out = t->curves[i];
        return TIDE_OK;
    }
    t->forget[TIDE__KEPT_CURVES] = forget_curves;
    if (tide_host_grow(&t->curves, &t->cap_curves, t->n_curves + 1, sizeof(tide__curve *)) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "for the leaves of '%s'", t->path);
    tide__curve *c;
    TIDE_TRY(TIDE_NEW(&c, 1, err, "for the leaves of '%s'", t->path));
    *c = (tide__curve){.kind = kind, .device = device, .points_of = SIZE_MAX};
    const tide_status st = fill(t, c, err);
    if (st != TIDE_OK) {
        curve_destroy(c);
        return st;
    }
    t->curves[t->n_curves++] = c;
    *out = c;
    return TIDE_OK;
}

tide_status tide__trace_curve(tide_trace *t, int kind, const char *device, tide__curve **out, tide_error *err) {
    int64_t number = -1;
    if (kind >= TIDE_N_KINDS || kind < TIDE_KINDS_BUT_WEIGHTS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no memory kind %d", kind);
    if (device != NULL) number = tide__trace_device_find(t, device);
    if (number == 0) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no device '%s'", t->path, device);
    return curve_of(t, kind, number, out, err);
}

// ---- inside of a leaf ----

static bool is_member(const tide__curve *c, int32_t place) {
    if (c->members[0] == 0) return true; // the sum
    for (size_t i = 0; i < c->n_members; i++)
        if (c->members[i] == place) return true;
    return false;
}

static tide_status make_points(const tide_trace *t, tide__curve *c, size_t leaf_i, const interval *s, tide_error *err) {
    int64_t live = tide__curve_before(c, leaf_i);
    c->points_of = SIZE_MAX;
    c->n_points = 0;
    TIDE_TRY(TIDE_GROW(&c->points, &c->cap_points, s->n + 1, err, "for the leaves of '%s'", t->path));
    for (size_t i = 0; i < s->n; i++) {
        const delta *d = &s->deltas[i];
        if (!is_member(c, d->series)) continue;
        if (!tide_add_i64(live, d->bytes, &live)) return tide__trace_bad_row(t, "event", d->event, err);
        if (c->n_points > 0 && c->points[c->n_points - 1].event == d->event) c->n_points--; // of several series
        c->points[c->n_points++] = (tide__point){d->event, d->t_ns, live};
    }
    return TIDE_OK;
}

/// Whether the points say what the leaf says. Where the leaf has bounds only, they are made exact.
static bool points_fit(tide__curve *c, size_t leaf_i) {
    const tide__leaf *leaf = &c->leaves[leaf_i];
    int64_t low = INT64_MAX;
    const tide__point *high = NULL;
    for (size_t i = 0; i < c->n_points; i++) {
        if (c->points[i].bytes < low) low = c->points[i].bytes;
        if (high == NULL || c->points[i].bytes > high->bytes) high = &c->points[i];
    }
    if (high == NULL || low < 0 || c->points[c->n_points - 1].bytes != leaf->last_bytes) return false;
    if (tide__curve_is_settled(c, leaf_i))
        return low == leaf->min_bytes && high->bytes == leaf->max_bytes && high->event == leaf->max_event;
    if (low < leaf->min_bytes || high->bytes > leaf->max_bytes) return false;
    tide__leaf *own = &c->own[leaf_i];
    own->series = 0;
    own->min_bytes = low;
    own->max_bytes = high->bytes;
    own->max_event = high->event;
    own->max_ns = high->t_ns;
    return true;
}

tide_status tide__curve_points(tide_trace *t, tide__curve *c, size_t leaf_i, tide_error *err) {
    if (c->points_of == leaf_i) return TIDE_OK;
    const interval *s;
    for (bool replay = false;; replay = true) {
        TIDE_TRY(interval_of(t, &c->leaves[leaf_i], replay, &s, err));
        TIDE_TRY(make_points(t, c, leaf_i, s, err));
        if (points_fit(c, leaf_i)) break;
        if (s->is_replayed) return tide__trace_bad_row(t, "leaf", c->leaves[leaf_i].first_event, err);
    }
    c->points_of = leaf_i;
    return TIDE_OK;
}

tide_status tide__curve_settle(tide_trace *t, tide__curve *c, size_t leaf_i, tide_error *err) {
    return tide__curve_is_settled(c, leaf_i) ? TIDE_OK : tide__curve_points(t, c, leaf_i, err);
}

// ---- by event ----

size_t tide__curve_find(const tide__curve *c, int64_t event) {
    size_t lo = 0, hi = c->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (c->leaves[mid].last_event < event) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

tide_status tide__curve_value(tide_trace *t, tide__curve *c, int64_t event, int64_t *bytes, tide_error *err) {
    const size_t i = tide__curve_find(c, event);
    *bytes = tide__curve_before(c, i);
    if (i == c->n || c->leaves[i].first_event > event) return TIDE_OK;
    if (c->leaves[i].last_event == event) {
        *bytes = c->leaves[i].last_bytes;
        return TIDE_OK;
    }
    TIDE_TRY(tide__curve_points(t, c, i, err));
    for (size_t k = 0; k < c->n_points && c->points[k].event <= event; k++) *bytes = c->points[k].bytes;
    return TIDE_OK;
}

typedef struct best {
    int64_t bytes, event, t_ns;
} best;

/// Leaf `leaf_i`, of which events first to last count.
static tide_status look_into(tide_trace *t, tide__curve *c, size_t leaf_i, int64_t first, int64_t last, best *b,
                             tide_error *err) {
    const tide__leaf *l = &c->leaves[leaf_i];
    if (l->max_bytes <= b->bytes) return TIDE_OK;
    if (l->first_event >= first && l->last_event <= last) {
        TIDE_TRY(tide__curve_settle(t, c, leaf_i, err));
        if (l->max_bytes > b->bytes) *b = (best){l->max_bytes, l->max_event, l->max_ns};
        return TIDE_OK;
    }
    TIDE_TRY(tide__curve_points(t, c, leaf_i, err));
    for (size_t k = 0; k < c->n_points; k++) {
        const tide__point *p = &c->points[k];
        if (p->event >= first && p->event <= last && p->bytes > b->bytes) *b = (best){p->bytes, p->event, p->t_ns};
    }
    return TIDE_OK;
}

tide_status tide__curve_peak(tide_trace *t, tide__curve *c, int64_t first, int64_t last, int64_t *bytes, int64_t *event,
                             int64_t *t_ns, tide_error *err) {
    best b = {.event = first - 1};
    TIDE_TRY(tide__curve_value(t, c, first - 1, &b.bytes, err));
    // What is reached for certain: leaves with bounds below it need not be settled.
    int64_t floor_bytes = b.bytes;
    const size_t begin = tide__curve_find(c, first);
    for (size_t i = begin; i < c->n && c->leaves[i].last_event <= last; i++) {
        const tide__leaf *l = &c->leaves[i];
        if (l->first_event < first) continue;
        const int64_t reached = tide__curve_is_settled(c, i) ? l->max_bytes : l->last_bytes;
        if (reached > floor_bytes) floor_bytes = reached;
    }
    for (size_t i = begin; i < c->n && c->leaves[i].first_event <= last; i++)
        if (c->leaves[i].max_bytes >= floor_bytes) TIDE_TRY(look_into(t, c, i, first, last, &b, err));
    *bytes = b.bytes;
    *event = b.event;
    if (b.event >= first && t_ns != NULL) *t_ns = b.t_ns;
    return TIDE_OK;
}
