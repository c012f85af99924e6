// SPDX-License-Identifier: MIT
//
// What is the same for every moment of a run: its pools, their peaks, and how little each left unused in each stretch
// of events. Summed up once, kept with the trace, gone on with when it grows. See holdings_internal.h.
#include "core/base/host_alloc.h"
#include "profiler/read/holdings_internal.h"

/// Stretches of a run, and the events of the shortest one: to walk through one takes a millisecond.
enum { N_STRETCHES = 4096, MOST_STRETCHES = 4 * N_STRETCHES, LEAST_EVENTS = 64 };

void tide__trace_pool_sums_deinit(tide_trace *t) {
    tide__pool_sums *s = t->pool_sums;
    if (s == NULL) return;
    for (size_t i = 0; i < s->n; i++) tide_host_free(s->pools[i].lows);
    tide_host_free(s->pools);
    tide_host_free(s);
    t->pool_sums = NULL;
}

// ---- a walk that sums up ----

static tide_status note_pool(const tide__pool *from, int64_t stretch, tide__kept_pool *to) {
    to->facts.peak_reserved_bytes = from->facts.peak_reserved_bytes;
    to->facts.peak_active_bytes = from->facts.peak_active_bytes;
    if (from->any_low == UINT64_MAX) return TIDE_OK; // and it held what it held before
    TIDE_TRY(tide_host_grow(&to->lows, &to->cap_lows, (size_t)stretch + 1, sizeof *to->lows));
    while (to->n_lows <= (size_t)stretch) to->lows[to->n_lows++] = (tide__stretch_low){UINT64_MAX, UINT64_MAX};
    tide__stretch_low *low = &to->lows[stretch]; // a part of it may have been summed up before
    if (from->any_low < low->any) low->any = from->any_low;
    if (from->held_low < low->held) low->held = from->held_low;
    return TIDE_OK;
}

/// After the last event of a stretch, or of those that are there.
static tide_status end_stretch(tide__pool_walk *w, int64_t event) {
    tide__pool_sums *s = w->ctx;
    const int64_t stretch = event >= s->first_event ? tide__stretch_of(s, event) : 0;
    TIDE_TRY(tide_host_grow(&s->pools, &s->cap, w->n, sizeof *s->pools));
    for (; s->n < w->n; s->n++)
        s->pools[s->n] = (tide__kept_pool){.facts = w->pools[s->n].facts, .begin_held = UINT64_MAX};
    for (size_t i = 0; i < w->n; i++) {
        TIDE_TRY(note_pool(&w->pools[i], stretch, &s->pools[i]));
        w->pools[i].any_low = w->pools[i].held_low = UINT64_MAX;
    }
    w->stretch_end = s->first_event + (stretch + 1) * s->stretch_events - 1;
    if (w->stretch_end <= event) w->stretch_end += s->stretch_events;
    return TIDE_OK;
}

tide_status tide__pool_walk_of(tide_trace *t, const tide__pool_sums *s, tide__pool_walk *out, tide_error *err) {
    *out = (tide__pool_walk){.t = t};
    TIDE_TRY(tide_trace_segments(t, NULL, &out->segments, &out->n_segments, err)); // they are there by now
    if (tide_host_grow(&out->pools, &out->cap, s->n + 1, sizeof *out->pools) != TIDE_OK)
        return tide__trace_no_memory(t, "pools", err);
    for (; out->n < s->n; out->n++) {
        out->pools[out->n] =
            (tide__pool){.facts = s->pools[out->n].facts, .held_low = UINT64_MAX, .any_low = UINT64_MAX};
    }
    return TIDE_OK;
}

/// Of the state that the run begins with: every pool that is there then.
static tide_status note_begin(tide__pool_sums *s, tide__pool_walk *w, tide_error *err) {
    TIDE_TRY(tide__pool_walk_to(w, s->first_event - 1, s->first_event - 1, NULL, err));
    if (end_stretch(w, s->first_event - 1) != TIDE_OK) return tide__trace_no_memory(w->t, "pools", err);
    for (size_t i = 0; i < s->n; i++) {
        const tide__pool *p = &w->pools[i];
        s->pools[i].begin_unused = tide__pool_unused(p);
        if (p->reserved > 0) s->pools[i].begin_held = tide__pool_unused(p);
    }
    tide__pool_walk_reset(w);
    return TIDE_OK;
}

static tide_status sum_up(tide__pool_sums *s, tide__pool_walk *w, int64_t last, const tide_reading *reading,
                          tide_error *err) {
    const int64_t after = s->last_event;
    w->ctx = s;
    w->end_stretch = end_stretch;
    if (after < s->first_event) TIDE_TRY(note_begin(s, w, err));
    for (size_t i = 0; i < w->n; i++) {
        w->pools[i].facts.peak_reserved_bytes = s->pools[i].facts.peak_reserved_bytes;
        w->pools[i].facts.peak_active_bytes = s->pools[i].facts.peak_active_bytes;
    }
    w->stretch_end = s->first_event + tide__stretch_of(s, after + 1) * s->stretch_events + s->stretch_events - 1;
    TIDE_TRY(tide__pool_walk_to(w, after, last, reading, err));
    if (end_stretch(w, last) != TIDE_OK) return tide__trace_no_memory(w->t, "pools", err);
    s->last_event = last;
    return TIDE_OK;
}

// ---- what is kept ----

static int64_t stretch_events(int64_t n_events) {
    int64_t n = LEAST_EVENTS;
    while (n * N_STRETCHES < n_events) n *= 2;
    return n;
}

static bool can_go_on(const tide__pool_sums *s, int64_t run_id, const tide__span *span) {
    return s != NULL && s->run_id == run_id && s->first_event == span->first_event &&
           s->last_event <= span->last_event &&
           (span->last_event - span->first_event) / s->stretch_events < MOST_STRETCHES;
}

tide_status tide__pool_sums_of(tide_trace *t, int64_t run_id, const tide__span *span, const tide_reading *reading,
                               tide__pool_sums **out, tide_error *err) {
    if (!can_go_on(t->pool_sums, run_id, span)) tide__trace_pool_sums_deinit(t);
    if (t->pool_sums == NULL) {
        t->pool_sums = tide_host_alloc(sizeof *t->pool_sums);
        if (t->pool_sums == NULL) return tide__trace_no_memory(t, "pools", err);
        *t->pool_sums = (tide__pool_sums){.run_id = run_id,
                                          .first_event = span->first_event,
                                          .last_event = span->first_event - 1,
                                          .stretch_events = stretch_events(span->last_event - span->first_event + 1),
                                          .window_first = -1};
    }
    tide__pool_sums *s = t->pool_sums;
    if (s->last_event < span->last_event || s->n == 0) {
        tide__pool_walk w;
        tide_status st = tide__pool_walk_of(t, s, &w, err);
        if (st == TIDE_OK) st = sum_up(s, &w, span->last_event, reading, err);
        tide__pool_walk_deinit(&w);
        s->window_first = -1;
        if (st != TIDE_OK) {
            tide__trace_pool_sums_deinit(t); // half of it is none of it
            return st;
        }
    }
    *out = s;
    return TIDE_OK;
}
