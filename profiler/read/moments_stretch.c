// SPDX-License-Identifier: MIT
//
// What happened inside of a leaf. See moments_internal.h.
//
// A free tells the size of its block, so the changes can be read off the events without knowing who is live: 0.1 ms
// where a replay from the nearest snapshot takes some. Whether that was right shows at once: the changes must add up to
// what the leaf says. Where they do not (a runtime that frees without telling sizes), or where the recording noted a
// problem, or a pool was discarded, the stretch is replayed.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/moments_internal.h"

enum { N_KEPT = 64, MAX_PROBLEMS = 1 << 20 };

typedef struct tide__stretch_cache {
    tide__stretch kept[N_KEPT];
    uint64_t clock;
} stretch_cache;

void tide__trace_stretch_deinit(tide_trace *t) {
    if (t->cache == NULL) return;
    for (size_t i = 0; i < N_KEPT; i++) tide_host_free(t->cache->kept[i].deltas);
    tide_host_free(t->cache);
    t->cache = NULL;
}

typedef struct decoder {
    tide_trace *t;
    tide__stretch *s;
    int64_t *live; // [t->n_series] by place, of a replay: what was live before the event
    bool is_odd;   // an event that does not tell what it changes
} decoder;

static tide_status add_delta(const decoder *d, const tide__event *e, int64_t bytes, size_t series_i) {
    tide__stretch *s = d->s;
    if (series_i == SIZE_MAX) return TIDE_ERR_BAD_INPUT;
    TIDE_TRY(tide_host_grow(&s->deltas, &s->cap, s->n + 1, sizeof *s->deltas));
    s->deltas[s->n++] = (tide__delta){e->id, e->t_ns, bytes, (int32_t)series_i};
    return TIDE_OK;
}

// ---- from the events alone ----

static tide_status read_events(void *ctx, const tide__event *events, size_t n) {
    decoder *d = ctx;
    for (size_t i = 0; i < n; i++) {
        const tide__event *e = &events[i];
        if (e->op == TIDE_MEM_POOL_DISCARD) d->is_odd = true;
        if (e->op != TIDE_MEM_ALLOC && e->op != TIDE_MEM_FREE_COMPLETED) continue;
        const size_t series_i = tide__trace_series_find(d->t, e->device, e->kind);
        if (series_i == SIZE_MAX) d->is_odd = true;
        if (d->is_odd) continue;
        TIDE_TRY(add_delta(d, e, e->op == TIDE_MEM_ALLOC ? e->requested_bytes : -e->requested_bytes, series_i));
    }
    return TIDE_OK;
}

/// Whether the changes add up to the leaf of the sum that covers the same events.
static bool adds_up(const tide_trace *t, const tide__stretch *s) {
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
            tide__trace_no_memory(t, "problems", err);
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
    if (n >= MAX_PROBLEMS && last > t->problem_events[n - 1]) return true; // nobody counted the rest
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

static tide_status replay_stretch(decoder *d, tide_error *err) {
    d->live = tide_host_calloc(d->t->n_series, sizeof *d->live);
    if (d->live == NULL) return tide__trace_no_memory(d->t, "series", err);
    d->s->n = 0;
    const tide_status st = tide__trace_walk(d->t, d->s->first, d->s->last, begin_replay, replay_event, d, err);
    tide_host_free(d->live);
    d->s->is_replayed = st == TIDE_OK;
    return st;
}

// ---- the cache ----

static tide_status decode(tide_trace *t, tide__stretch *s, bool replay, tide_error *err) {
    decoder d = {.t = t, .s = s};
    s->n = 0;
    s->is_replayed = false;
    TIDE_TRY(load_problems(t, err));
    if (replay || has_problem(t, s->first, s->last)) return replay_stretch(&d, err);
    TIDE_TRY(tide__trace_each(t, TIDE__READ_CHANGES, s->first, s->last, read_events, &d, err));
    return d.is_odd || !adds_up(t, s) ? replay_stretch(&d, err) : TIDE_OK;
}

tide_status tide__trace_stretch(tide_trace *t, const tide__leaf *leaf, bool replay, const tide__stretch **out,
                                tide_error *err) {
    if (t->cache == NULL) t->cache = tide_host_calloc(1, sizeof *t->cache);
    if (t->cache == NULL) return tide__trace_no_memory(t, "leaves", err);
    tide__stretch *s = &t->cache->kept[0];
    for (size_t i = 0; i < N_KEPT; i++) {
        tide__stretch *kept = &t->cache->kept[i];
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
