// SPDX-License-Identifier: MIT
//
// What is the same for every moment of a run: its pools, their peaks, and how little each left unused in each interval
// of events. Summed up once, kept with the trace, gone on with when it grows. See holdings_internal.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/holdings_internal.h"

/// Intervals of a run, and the events of the shortest one: to walk through one takes a millisecond.
enum { N_INTERVALS = 4096, MOST_INTERVALS = 4 * N_INTERVALS, LEAST_EVENTS = 64 };

static void forget_pool_sums(tide_trace *t) {
    tide__pool_sums *s = t->pool_sums;
    if (s == NULL) return;
    for (size_t i = 0; i < s->n; i++) {
        tide_host_free(s->pools[i].lows);
        tide_host_free(s->pools[i].intervals);
    }
    tide_host_free(s->pools);
    tide_host_free(s->ends_ns);
    tide_host_free(s);
    t->pool_sums = NULL;
}

// ---- a walk that sums up ----

static tide_status note_pool(const tide__pool *from, int64_t interval, tide__kept_pool *to) {
    to->facts.peak_reserved_bytes = from->facts.peak_reserved_bytes;
    to->facts.peak_active_bytes = from->facts.peak_active_bytes;
    if (from->any_low == UINT64_MAX) return TIDE_OK; // and it held what it held before
    TIDE_TRY(tide_host_grow(&to->lows, &to->cap_lows, (size_t)interval + 1, sizeof *to->lows));
    while (to->n_lows <= (size_t)interval) to->lows[to->n_lows++] = (tide__interval_low){UINT64_MAX, UINT64_MAX};
    tide__interval_low *low = &to->lows[interval]; // a part of it may have been summed up before
    if (from->any_low < low->any) low->any = from->any_low;
    if (from->held_low < low->held) low->held = from->held_low;
    return TIDE_OK;
}

/// What the pool held in an interval, of which a part may have been summed up before.
static tide_status note_interval(tide__pool *from, int64_t interval, tide__kept_pool *to) {
    TIDE_TRY(tide_host_grow(&to->intervals, &to->cap_intervals, (size_t)interval + 1, sizeof *to->intervals));
    if (to->n_intervals == (size_t)interval) to->intervals[to->n_intervals++] = tide_trace_pool_column_none();
    while (to->n_intervals <= (size_t)interval) tide__pool_see_nothing(&to->facts, &to->intervals[to->n_intervals++]);
    tide_trace_pool_column_join(&to->intervals[interval], &from->seen);
    tide__pool_see_now(from, &from->seen);
    to->last = from->seen;
    return TIDE_OK;
}

static tide_status note_end(tide__pool_sums *s, int64_t interval, uint64_t t_ns) {
    TIDE_TRY(tide_host_grow(&s->ends_ns, &s->cap_ends, (size_t)interval + 1, sizeof *s->ends_ns));
    while (s->n_ends <= (size_t)interval) s->ends_ns[s->n_ends++] = t_ns;
    s->ends_ns[interval] = t_ns;
    return TIDE_OK;
}

/// After the last event of an interval, or of those that are there.
static tide_status end_interval(tide__pool_walk *w, int64_t event) {
    tide__pool_sums *s = w->ctx;
    const int64_t interval = event >= s->first_event ? tide__interval_of(s, event) : 0;
    TIDE_TRY(tide_host_grow(&s->pools, &s->cap, w->n, sizeof *s->pools));
    for (; s->n < w->n; s->n++)
        s->pools[s->n] = (tide__kept_pool){.facts = w->pools[s->n].facts, .begin_held = UINT64_MAX};
    for (size_t i = 0; i < w->n; i++) {
        TIDE_TRY(note_pool(&w->pools[i], interval, &s->pools[i]));
        TIDE_TRY(note_interval(&w->pools[i], interval, &s->pools[i]));
        w->pools[i].any_low = w->pools[i].held_low = UINT64_MAX;
    }
    TIDE_TRY(note_end(s, interval, w->now_ns));
    w->interval_end = s->first_event + (interval + 1) * s->interval_events - 1;
    if (w->interval_end <= event) w->interval_end += s->interval_events;
    return TIDE_OK;
}

tide_status tide__pool_walk_init(tide_trace *t, const tide__pool_sums *s, tide__pool_walk *out, tide_error *err) {
    *out = (tide__pool_walk){.t = t};
    TIDE_TRY(tide_trace_segments(t, NULL, &out->segments, &out->n_segments, err)); // they are there by now
    TIDE_TRY(TIDE_GROW(&out->pools, &out->cap, s->n + 1, err, "for the pools of '%s'", t->path));
    for (; out->n < s->n; out->n++) {
        out->pools[out->n] = (tide__pool){.facts = s->pools[out->n].facts,
                                          .held_low = UINT64_MAX,
                                          .any_low = UINT64_MAX,
                                          .seen = tide_trace_pool_column_none()};
    }
    return TIDE_OK;
}

/// Note every pool of the state that the run begins with.
static tide_status note_begin(tide__pool_sums *s, tide__pool_walk *w, tide_error *err) {
    TIDE_TRY(tide__pool_walk_to(w, s->first_event - 1, s->first_event - 1, NULL, err));
    if (end_interval(w, s->first_event - 1) != TIDE_OK) return TIDE_NO_MEMORY(err, "for the pools of '%s'", w->t->path);
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
    w->end_interval = end_interval;
    w->keeps_free = true;
    if (after < s->first_event) TIDE_TRY(note_begin(s, w, err));
    for (size_t i = 0; i < w->n; i++) {
        w->pools[i].facts.peak_reserved_bytes = s->pools[i].facts.peak_reserved_bytes;
        w->pools[i].facts.peak_active_bytes = s->pools[i].facts.peak_active_bytes;
    }
    w->interval_end = s->first_event + tide__interval_of(s, after + 1) * s->interval_events + s->interval_events - 1;
    TIDE_TRY(tide__pool_walk_to(w, after, last, reading, err));
    if (end_interval(w, last) != TIDE_OK) return TIDE_NO_MEMORY(err, "for the pools of '%s'", w->t->path);
    s->last_event = last;
    return TIDE_OK;
}

// ---- what is kept ----

static int64_t interval_events(int64_t n_events) {
    int64_t n = LEAST_EVENTS;
    while (n * N_INTERVALS < n_events) n *= 2;
    return n;
}

static bool can_go_on(const tide__pool_sums *s, int64_t run_id, const tide__span *span) {
    return s != NULL && s->run_id == run_id && s->first_event == span->first_event &&
           s->last_event <= span->last_event &&
           (span->last_event - span->first_event) / s->interval_events < MOST_INTERVALS;
}

tide_status tide__pool_sums_of(tide_trace *t, int64_t run_id, const tide_reading *reading, tide__span *span,
                               tide__pool_sums **out, tide_error *err) {
    const tide_trace_segment *segments;
    size_t n_segments;
    TIDE_TRY(tide__trace_span(t, run_id, span, err));
    TIDE_TRY(tide_trace_segments(t, reading, &segments, &n_segments, err));
    if (!can_go_on(t->pool_sums, run_id, span)) forget_pool_sums(t);
    if (t->pool_sums == NULL) {
        t->forget[TIDE__KEPT_POOLS] = forget_pool_sums;
        t->pool_sums = tide_host_alloc(sizeof *t->pool_sums);
        if (t->pool_sums == NULL) return TIDE_NO_MEMORY(err, "for the pools of '%s'", t->path);
        *t->pool_sums = (tide__pool_sums){.run_id = run_id,
                                          .first_event = span->first_event,
                                          .last_event = span->first_event - 1,
                                          .interval_events = interval_events(span->last_event - span->first_event + 1),
                                          .window_first = -1};
    }
    tide__pool_sums *s = t->pool_sums;
    if (s->last_event < span->last_event || s->n == 0) {
        tide__pool_walk w;
        tide_status st = tide__pool_walk_init(t, s, &w, err);
        if (st == TIDE_OK) st = sum_up(s, &w, span->last_event, reading, err);
        tide__pool_walk_deinit(&w);
        s->window_first = -1;
        if (st != TIDE_OK) {
            forget_pool_sums(t); // half of it is none of it
            return st;
        }
    }
    *out = s;
    return TIDE_OK;
}

// ---- pools at a moment ----
//
// What is there then, from the live blocks and segments; what holds for the whole run, from its sums; and of each pool
// since when no less was unused.

typedef struct question {
    tide_trace *t;
    tide__span span;
    int64_t at, window_first, window_last; // events; the window opens after its first
    tide__pool_sums *sums;
    tide__pool_walk walk;
    tide_trace_pool *list; // [n pools] the answer, owned
    tide_error *err;
} question;

static int64_t first_of(const question *q, int64_t interval) {
    return q->sums->first_event + interval * q->sums->interval_events;
}

/// Walk again. Lows are kept where the question is since when.
static tide_status walk(question *q, int64_t after, int64_t last, bool keeps_lows) {
    tide__pool_walk_reset(&q->walk);
    q->walk.keeps_lows = keeps_lows;
    return tide__pool_walk_to(&q->walk, after, last, NULL, q->err);
}

// ---- free intervals ----

typedef struct interval {
    size_t place;
    uint64_t begin, end;
} interval;

static int by_place(const void *a, const void *b) {
    const interval *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void note_free(const tide__pool_walk *w, size_t place_i, uint64_t bytes, tide_trace_pool *pools) {
    tide_trace_pool *p = &pools[w->places[place_i].pool];
    if (p->largest_free_bytes == TIDE_UNKNOWN_BYTES || bytes > p->largest_free_bytes) p->largest_free_bytes = bytes;
}

/// The blocks of one place, by address. False: they lie in one another, or not whole in it.
static bool note_place(const tide__pool_walk *w, size_t at, const interval *list, size_t n, tide_trace_pool *pools) {
    const tide_trace_segment *seg = w->places[at].seg;
    uint64_t end = seg->address;
    for (size_t i = 0; i < n; i++) {
        if (list[i].begin < end || list[i].end - seg->address > seg->bytes) return false;
        if (list[i].begin > end) note_free(w, at, list[i].begin - end, pools);
        end = list[i].end;
    }
    note_free(w, at, seg->bytes - (end - seg->address), pools);
    return true;
}

/// The blocks that take up bytes of a segment that is there, by place and address. *out owned; false: no memory.
static bool list_blocks(const tide__pool_walk *w, const tide__replay *r, interval **out, size_t *n) {
    interval *list = tide_host_alloc((tide__replay_n_live(r) + 1) * sizeof *list);
    if (list == NULL) return false;
    *n = 0;
    const tide__live_block *b;
    for (size_t i = 0; w->n_places > 0 && (b = tide__replay_next(r, &i)) != NULL;) {
        const size_t at = b->reserved_bytes > 0 ? tide__pool_place_of(w, b) : SIZE_MAX;
        if (at == SIZE_MAX) continue;
        list[(*n)++] = (interval){at, (uint64_t)b->address, (uint64_t)b->address + (uint64_t)b->reserved_bytes};
    }
    if (*n > 1) qsort(list, *n, sizeof *list, by_place);
    *out = list;
    return true;
}

/// The largest interval of each pool's segments that no block holds, where that is known; false: no memory.
static bool find_free(const tide__pool_walk *w, const tide__replay *r, tide_trace_pool *pools) {
    interval *list;
    size_t n, first = 0;
    bool *is_open = tide_host_calloc(w->n + 1, sizeof *is_open); // by pool
    if (is_open == NULL || !list_blocks(w, r, &list, &n)) {
        tide_host_free(is_open);
        return false;
    }
    for (size_t at = 0; at < w->n_places; at++) {
        size_t end = first;
        while (end < n && list[end].place == at) end++;
        if (!note_place(w, at, &list[first], end - first, pools)) is_open[w->places[at].pool] = true;
        first = end;
    }
    for (size_t i = 0; i < w->n; i++)
        if (is_open[i]) pools[i].largest_free_bytes = TIDE_UNKNOWN_BYTES;
    tide_host_free(is_open);
    tide_host_free(list);
    return true;
}

// ---- the window ----

static void take_low(uint64_t *low, uint64_t bytes) {
    if (bytes < *low) *low = bytes;
}

/// Events behind `after` up to `last`, with the state after `after`.
static tide_status walk_window(question *q, int64_t after, int64_t last) {
    TIDE_TRY(walk(q, after, last, false));
    for (size_t i = 0; i < q->sums->n; i++) take_low(&q->sums->pools[i].window_low, q->walk.pools[i].held_low);
    return TIDE_OK;
}

/// Whole intervals are known; only where the window begins and ends inside of one, that one is walked through.
static tide_status find_window_lows(question *q) {
    tide__pool_sums *s = q->sums;
    const int64_t first = q->window_first, last = q->window_last;
    if (s->window_first == first && s->window_last == last) return TIDE_OK;
    s->window_first = -1;
    for (size_t i = 0; i < s->n; i++)
        s->pools[i].window_low = first < s->first_event ? s->pools[i].begin_held : UINT64_MAX;
    int64_t from = 0, to = last >= s->first_event ? tide__interval_of(s, last) : -1;
    if (first >= s->first_event) {
        from = tide__interval_of(s, first + 1) + 1;
        TIDE_TRY(walk_window(q, first, last < first_of(q, from) ? last : first_of(q, from) - 1));
    }
    if (to >= from && last < first_of(q, to + 1) - 1 && last < s->last_event) {
        TIDE_TRY(walk_window(q, first_of(q, to) - 1, last));
        to--;
    }
    for (size_t i = 0; i < s->n; i++) {
        tide__kept_pool *p = &s->pools[i];
        for (int64_t k = from; k <= to && (size_t)k < p->n_lows; k++) take_low(&p->window_low, p->lows[k].held);
    }
    s->window_first = first;
    s->window_last = last;
    return TIDE_OK;
}

// ---- since when ----

/// Where the value last rose to `bytes` or more; false: not in what was walked through.
static bool find_rise(const tide__pool *p, uint64_t bytes, uint64_t *since_ns) {
    size_t n = p->n_lows;
    while (n > 0 && p->lows[n - 1].bytes >= bytes) n--;
    if (n == p->n_lows || p->lows[n].since_ns == UINT64_MAX) return false;
    *since_ns = p->lows[n].since_ns;
    return true;
}

/// The last interval before `end` in which there was less than `bytes`; where there was only when the run began, the
/// first in which anything changed. -1: there never was.
static int64_t find_less(const tide__kept_pool *p, uint64_t bytes, int64_t end) {
    int64_t k = (int64_t)p->n_lows < end ? (int64_t)p->n_lows : end;
    while (--k >= 0) {
        if (p->lows[k].any < bytes) return k;
    }
    if (p->begin_unused >= bytes) return -1;
    for (k = 0; k < end && (size_t)k < p->n_lows; k++) {
        if (p->lows[k].any != UINT64_MAX) return k;
    }
    return -1;
}

/// Find since when pool `i` has `bytes` unused: before interval `end`.
static tide_status find_since(question *q, size_t i, uint64_t bytes, int64_t end, uint64_t *since_ns) {
    const tide__kept_pool *p = &q->sums->pools[i];
    *since_ns = q->span.begin_ns;
    for (int64_t k = find_less(p, bytes, end); k >= 0 && k < end; k++) { // it may have risen in a later one
        if ((size_t)k >= p->n_lows || p->lows[k].any == UINT64_MAX) continue;
        TIDE_TRY(walk(q, first_of(q, k) - 1, first_of(q, k + 1) - 1, true));
        if (find_rise(&q->walk.pools[i], bytes, since_ns)) return TIDE_OK;
    }
    return TIDE_OK;
}

// ---- the moment ----

static void note_moment(question *q) {
    for (size_t i = 0; i < q->sums->n; i++) {
        const tide__pool *p = &q->walk.pools[i];
        const tide__kept_pool *kept = &q->sums->pools[i];
        tide_trace_pool *out = &q->list[i];
        *out = kept->facts;
        out->n_segments = p->n_segments;
        out->n_blocks = p->n_blocks;
        out->reserved_bytes = p->reserved;
        out->active_bytes = p->active;
        out->requested_bytes = p->requested;
        out->largest_free_bytes = TIDE_UNKNOWN_BYTES;
        // of one that tells of no segments nothing is ever unused
        out->unused_bytes = out->tells_segments && kept->window_low != UINT64_MAX ? kept->window_low : 0;
        out->unused_since_ns = q->span.begin_ns;
    }
}

/// The state after `at`, and since when, where that lies in the interval of the moment; others are looked for.
static tide_status find_moment(question *q) {
    const int64_t here = q->at >= q->sums->first_event ? tide__interval_of(q->sums, q->at) : 0;
    const tide__replay *r;
    TIDE_TRY(walk(q, first_of(q, here) - 1, q->at, true));
    note_moment(q);
    TIDE_TRY(tide__trace_state_after(q->t, q->at, &r, q->err));
    if (!find_free(&q->walk, r, q->list)) return TIDE_NO_MEMORY(q->err, "for the pools of '%s'", q->t->path);
    bool *is_earlier = tide_host_calloc(q->sums->n + 1, sizeof *is_earlier);
    if (is_earlier == NULL) return TIDE_NO_MEMORY(q->err, "for the pools of '%s'", q->t->path);
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < q->sums->n; i++) {
        tide_trace_pool *p = &q->list[i];
        is_earlier[i] =
            p->tells_segments && !find_rise(&q->walk.pools[i], tide_trace_pool_cached(p), &p->unused_since_ns);
    }
    for (size_t i = 0; st == TIDE_OK && i < q->sums->n; i++) {
        tide_trace_pool *p = &q->list[i];
        if (is_earlier[i]) st = find_since(q, i, tide_trace_pool_cached(p), here, &p->unused_since_ns);
    }
    tide_host_free(is_earlier);
    return st;
}

// ---- the answer ----

static int by_name(const void *a, const void *b) {
    const tide_trace_pool *x = &(*(const tide__kept_pool *const *)a)->facts,
                          *y = &(*(const tide__kept_pool *const *)b)->facts;
    int c = strcmp(x->allocator, y->allocator);
    if (c == 0) c = strcmp(x->device, y->device);
    if (c == 0) c = (x->kind > y->kind) - (x->kind < y->kind);
    return c != 0 ? c : (int)y->tells_segments - (int)x->tells_segments;
}

tide_status tide__pool_order(const tide__pool_sums *s, size_t **out, tide_error *err) {
    const tide__kept_pool **list;
    *out = NULL;
    TIDE_TRY(TIDE_NEW(&list, s->n + 1, err, "for the order of pools"));
    for (size_t i = 0; i < s->n; i++) list[i] = &s->pools[i];
    if (s->n > 1) qsort(list, s->n, sizeof *list, by_name);
    const tide_status st = TIDE_NEW(out, s->n + 1, err, "for the order of pools");
    for (size_t i = 0; st == TIDE_OK && i < s->n; i++) (*out)[i] = (size_t)(list[i] - s->pools);
    tide_host_free(list);
    return st;
}

int64_t tide__cut_to_span(int64_t event, const tide__span *span) {
    if (event < span->first_event - 1) return span->first_event - 1;
    return event > span->last_event ? span->last_event : event;
}

static tide_status prepare(question *q, const tide_trace_pools_question *of, const tide_reading *reading) {
    if (of->t1_ns < of->t0_ns) return TIDE_FAIL(q->err, TIDE_ERR_INVALID, "a window that ends before it begins");
    TIDE_TRY(tide__pool_sums_of(q->t, of->run_id, reading, &q->span, &q->sums, q->err));
    int64_t first = q->span.first_event - 1, last = q->span.last_event;
    if (of->t0_ns >= q->span.begin_ns) TIDE_TRY(tide__trace_event_at(q->t, of->t0_ns, &first, q->err));
    if (of->t1_ns < q->span.end_ns) TIDE_TRY(tide__trace_event_at(q->t, of->t1_ns, &last, q->err));
    q->at = tide__cut_to_span(of->at_event > INT64_MAX ? INT64_MAX : (int64_t)of->at_event, &q->span);
    q->window_first = tide__cut_to_span(first, &q->span);
    q->window_last = tide__cut_to_span(last, &q->span);
    TIDE_TRY(tide__pool_walk_init(q->t, q->sums, &q->walk, q->err));
    q->list = tide_host_alloc((q->sums->n + 1) * sizeof *q->list);
    return q->list != NULL ? TIDE_OK : TIDE_NO_MEMORY(q->err, "for the pools of '%s'", q->t->path);
}

tide_status tide_trace_pool_list(tide_trace *t, int64_t run_id, const tide_reading *reading, tide_trace_pool **out,
                                 size_t *n, tide_error *err) {
    tide__pool_sums *s;
    tide__span span;
    size_t *order;
    TIDE_TRY(tide__pool_sums_of(t, run_id, reading, &span, &s, err));
    TIDE_TRY(tide__pool_order(s, &order, err));
    const tide_status st = TIDE_NEW(out, s->n + 1, err, "for the pools of '%s'", t->path);
    for (size_t i = 0; st == TIDE_OK && i < s->n; i++) (*out)[i] = s->pools[order[i]].facts;
    tide_host_free(order);
    *n = st == TIDE_OK ? s->n : 0;
    return st;
}

tide_status tide_trace_pools(tide_trace *t, const tide_trace_pools_question *of, const tide_reading *reading,
                             tide_trace_pool **out, size_t *n, tide_error *err) {
    question q = {.t = t, .err = err};
    tide_status st = prepare(&q, of, reading);
    if (st == TIDE_OK) st = find_window_lows(&q);
    if (st == TIDE_OK) st = find_moment(&q);
    tide__pool_walk_deinit(&q.walk);
    if (st != TIDE_OK) {
        tide_host_free(q.list);
        return st;
    }
    *out = tide_host_alloc((q.sums->n + 1) * sizeof **out);
    size_t *order = NULL;
    st = *out != NULL ? tide__pool_order(q.sums, &order, err) : TIDE_NO_MEMORY(err, "for the pools of '%s'", t->path);
    for (size_t i = 0; st == TIDE_OK && i < q.sums->n; i++) (*out)[i] = q.list[order[i]];
    tide_host_free(order);
    tide_host_free(q.list);
    if (st != TIDE_OK) tide_host_free(*out);
    *n = st == TIDE_OK ? q.sums->n : 0;
    return st;
}

// ---- as much as that, since when ----

static tide_status find_spare(question *q, size_t i, uint64_t bytes, uint64_t *since_ns) {
    const int64_t here = q->at >= q->sums->first_event ? tide__interval_of(q->sums, q->at) : 0;
    TIDE_TRY(walk(q, first_of(q, here) - 1, q->at, true));
    const tide__pool *p = &q->walk.pools[i];
    if (!q->sums->pools[i].facts.tells_segments || tide__pool_unused(p) < bytes) return TIDE_OK;
    if (find_rise(p, bytes, since_ns)) return TIDE_OK;
    return find_since(q, i, bytes, here, since_ns);
}

tide_status tide_trace_pool_spare_since(tide_trace *t, const tide_trace_spare_question *of, const tide_reading *reading,
                                        uint64_t *since_ns, tide_error *err) {
    const tide_trace_pools_question pools = {.run_id = of->run_id, .at_event = of->at_event, .t1_ns = UINT64_MAX};
    question q = {.t = t, .err = err};
    size_t *order = NULL;
    *since_ns = UINT64_MAX;
    tide_status st = prepare(&q, &pools, reading);
    if (st == TIDE_OK) st = tide__pool_order(q.sums, &order, err);
    if (st == TIDE_OK && of->pool >= q.sums->n)
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no pool %zu", t->path, of->pool);
    if (st == TIDE_OK) st = find_spare(&q, order[of->pool], of->bytes, since_ns);
    tide_host_free(order);
    tide_host_free(q.list);
    tide__pool_walk_deinit(&q.walk);
    return st;
}
