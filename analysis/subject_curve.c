// SPDX-License-Identifier: MIT
//
// Curves of a subject. The live bytes of a trace are asked of the trace, which has leaves for them; every other curve
// is made once and kept. See subject.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"

// ---- bytes that allocators of a trace hold ----
// Where an allocator records the segments that it takes from the system, for a kind on a device, these count. Of every
// other kind and device what its live blocks hold.
//
// The curve is made once, by one pass over the events. Of many changes only four of each stretch are kept, so that no
// peak and no low is lost; in between the curve is as high as at the last of them:
//
//     changes   . . . . . . . . .  of a stretch ->  first, lowest, highest, last, in their order

enum { WHOLE_CHANGES = 1000000, STRETCH = 1024 };

/// One kind on one device.
typedef struct holding {
    tide_memory_kind kind;
    const char *device; // borrowed from the trace
    bool tells_segments;
    uint64_t bytes; // of live blocks, now
} holding;

typedef struct maker {
    int kind;                     // as asked; -1: all
    const char *device;           // NULL: all
    tide_trace_segment *segments; // a copy: the trace's own are gone with the next question
    size_t n_segments;
    tide__step_curve taken; // segments of the key
    size_t taken_at;        // points of it that have happened
    holding *holdings;      // [n]
    size_t n, cap;
    tide__step_curve *out;
    size_t n_changes;
    tide__step_point stretch[4]; // first, lowest, highest, last
    size_t n_stretch;            // changes in it
} maker;

// ---- the curve ----

static tide_status add_point(maker *m, const tide__step_point *p) {
    const tide__step_curve *c = m->out;
    if (c->n > 0 && c->points[c->n - 1].event == p->event && c->points[c->n - 1].t == p->t && p->event != 0) {
        m->out->points[c->n - 1].bytes = p->bytes; // one event that changed several
        return TIDE_OK;
    }
    return tide__step_curve_add(m->out, p->t, p->event, p->bytes);
}

static tide_status end_stretch(maker *m) {
    tide__step_point *s = m->stretch;
    if (m->n_stretch == 0) return TIDE_OK;
    m->n_stretch = 0;
    if (s[1].event > s[2].event) {
        const tide__step_point swap = s[1];
        s[1] = s[2];
        s[2] = swap;
    }
    for (int i = 0; i < 4; i++) TIDE_TRY(add_point(m, &s[i]));
    return TIDE_OK;
}

static tide_status add_change(maker *m, tide__step_point p) {
    if (m->n_changes++ < WHOLE_CHANGES) return add_point(m, &p);
    tide__step_point *s = m->stretch;
    if (m->n_stretch == 0) s[0] = s[1] = s[2] = p;
    if (p.bytes < s[1].bytes) s[1] = p;
    if (p.bytes > s[2].bytes) s[2] = p;
    s[3] = p;
    return ++m->n_stretch == STRETCH ? end_stretch(m) : TIDE_OK;
}

// ---- both sums ----

static uint64_t held_now(const maker *m) {
    uint64_t sum = m->taken_at > 0 ? m->taken.points[m->taken_at - 1].bytes : 0;
    for (size_t i = 0; i < m->n; i++)
        if (!m->holdings[i].tells_segments) sum += m->holdings[i].bytes;
    return sum;
}

/// Segments that were taken or given back up to `event`.
static tide_status take_segments(maker *m, uint64_t event) {
    while (m->taken_at < m->taken.n && m->taken.points[m->taken_at].event <= event) {
        const tide__step_point *p = &m->taken.points[m->taken_at++];
        TIDE_TRY(add_change(m, (tide__step_point){p->t, p->event, held_now(m)}));
    }
    return TIDE_OK;
}

static bool tells(const maker *m, tide_memory_kind kind, const char *device) {
    for (size_t i = 0; i < m->n_segments; i++)
        if (m->segments[i].kind == kind && strcmp(m->segments[i].device, device) == 0) return true;
    return false;
}

static tide_status on_held(void *ctx, const tide_trace_held *h) {
    maker *m = ctx;
    if (!tide_kind_is_among(m->kind, (int)h->kind) || (m->device != NULL && strcmp(m->device, h->device) != 0))
        return TIDE_OK;
    size_t i = 0;
    while (i < m->n && (m->holdings[i].kind != h->kind || strcmp(m->holdings[i].device, h->device) != 0)) i++;
    if (i == m->n) {
        TIDE_TRY(tide_host_grow(&m->holdings, &m->cap, m->n + 1, sizeof *m->holdings));
        m->holdings[m->n++] =
            (holding){.kind = h->kind, .device = h->device, .tells_segments = tells(m, h->kind, h->device)};
    }
    TIDE_TRY(take_segments(m, h->event));
    m->holdings[i].bytes = h->reserved_bytes;
    if (m->holdings[i].tells_segments) return TIDE_OK;
    return add_change(m, (tide__step_point){(int64_t)h->t_ns, h->event, held_now(m)});
}

// ---- segments of the key ----

static tide_status make_taken(maker *m) {
    tide__step_change *changes = tide_host_alloc((m->n_segments + 1) * sizeof *changes);
    size_t n = 0;
    if (changes == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < m->n_segments; i++) {
        const tide_trace_segment *g = &m->segments[i];
        if (!tide_kind_is_among(m->kind, (int)g->kind) || (m->device != NULL && strcmp(g->device, m->device) != 0))
            continue;
        changes[n++] = (tide__step_change){.begin = (int64_t)g->begin_ns,
                                           .end = g->end_ns > INT64_MAX ? INT64_MAX : (int64_t)g->end_ns,
                                           .begin_event = g->begin_event,
                                           .end_event = g->end_event,
                                           .bytes = g->bytes};
    }
    const tide_status st = tide__step_curve_make(changes, n, true, &m->taken);
    tide_host_free(changes);
    return st;
}

static tide_status make_reserved(maker *m, tide_subject *s, tide_error *err) {
    const char *path = s->facts.path;
    const tide_trace_segment *segments;
    TIDE_TRY(tide_trace_segments(s->trace, NULL, &segments, &m->n_segments, err));
    TIDE_TRY(TIDE_NEW(&m->segments, m->n_segments + 1, err, "for the segments of '%s'", path));
    if (m->n_segments > 0) memcpy(m->segments, segments, m->n_segments * sizeof *m->segments);
    tide_status st = make_taken(m);
    if (st != TIDE_OK) return TIDE_FAIL(err, st, "cannot add up the segments of '%s'", path);
    TIDE_TRY(tide_trace_each_held(s->trace, on_held, m, err));
    st = take_segments(m, UINT64_MAX - 1); // those that are never given back stay
    if (st == TIDE_OK) st = end_stretch(m);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for what allocators of '%s' hold", path);
}

/// What allocators of a trace took from the system, or their blocks held.
static tide_status reserved_curve(tide_subject *s, int kind, const char *device, tide__step_curve *out,
                                  tide_error *err) {
    uint64_t known;
    // The curve of live bytes reports a device that the trace does not know.
    if (device != NULL) TIDE_TRY(tide_trace_bytes_after(s->trace, kind, device, 0, &known, err));
    maker m = {.kind = kind, .device = device, .out = out};
    const tide_status st = make_reserved(&m, s, err);
    tide__step_curve_deinit(&m.taken);
    tide_host_free(m.holdings);
    tide_host_free(m.segments);
    return st;
}

void tide__subject_forget_curves(tide_subject *s) {
    for (size_t i = 0; i < s->n_curves; i++) {
        tide__step_curve_deinit(&s->curves[i].curve);
        tide_host_free(s->curves[i].device);
    }
    tide_host_free(s->curves);
    s->curves = NULL;
    s->n_curves = s->cap_curves = 0;
}

// ---- predicted ----
// What the plan says is alive at each step, at the times when the steps ran, in all executions:
//
//     lane 0    __--_     __--_        of each what of its buffer is alive; 0 between two executions
//     lane 1       __--_     __--_
//     curve     the sum, on top of what persists

/// What a plan has alive of one buffer at its steps, and the steps of one lane that were taken.
typedef struct predictor {
    const tide_executions *x;
    const uint64_t *alive; // [n_steps]
    int64_t n_steps;
    size_t *at;        // [n_lanes] execution of the lane that goes on, or the next; owned
    size_t *step;      // [n_lanes] of its steps the next one; owned
    uint64_t *bytes;   // [n_lanes] alive now; owned
    uint64_t *next;    // [n_lanes] event of the next change; UINT64_MAX: none; owned
    uint64_t *next_ns; // [n_lanes] its time; owned
} predictor;

static void predictor_deinit(predictor *p) {
    tide_host_free(p->at);
    tide_host_free(p->step);
    tide_host_free(p->bytes);
    tide_host_free(p->next);
    tide_host_free(p->next_ns);
}

/// Where the lane changes next: a step begins, or the last one ends.
static void look_ahead(predictor *p, uint32_t lane) {
    p->next[lane] = p->next_ns[lane] = UINT64_MAX;
    if (p->at[lane] == SIZE_MAX) return;
    const tide_execution *e = &p->x->items[p->at[lane]];
    if (p->step[lane] < e->n_steps) {
        const tide_execution_step *s = &tide_execution_steps(p->x, e)[p->step[lane]];
        p->next[lane] = e->first_event + s->event;
        p->next_ns[lane] = s->t_ns;
    } else {
        p->next[lane] = e->idle_event < e->last_event ? e->idle_event : e->last_event;
        p->next_ns[lane] = e->idle_event < e->last_event ? e->idle_ns : e->end_ns;
    }
}

/// Take that change.
static void advance(predictor *p, uint32_t lane) {
    const tide_execution *e = &p->x->items[p->at[lane]];
    if (p->step[lane] < e->n_steps) {
        const int64_t step = tide_execution_steps(p->x, e)[p->step[lane]++].step;
        p->bytes[lane] = step < p->n_steps ? p->alive[step] : 0;
    } else {
        p->bytes[lane] = 0;
        p->at[lane] = tide_executions_next(p->x, lane, e->first_event);
        p->step[lane] = 0;
    }
    look_ahead(p, lane);
}

static tide_status predictor_init(predictor *p) {
    const size_t n = p->x->n_lanes + 1;
    p->at = tide_host_calloc(n, sizeof *p->at);
    p->step = tide_host_calloc(n, sizeof *p->step);
    p->bytes = tide_host_calloc(n, sizeof *p->bytes);
    p->next = tide_host_calloc(n, sizeof *p->next);
    p->next_ns = tide_host_calloc(n, sizeof *p->next_ns);
    if (p->at == NULL || p->step == NULL || p->bytes == NULL || p->next == NULL || p->next_ns == NULL)
        return TIDE_ERR_NOMEM;
    for (uint32_t lane = 0; lane < p->x->n_lanes; lane++) {
        p->at[lane] = tide_executions_next(p->x, lane, 0);
        look_ahead(p, lane);
    }
    return TIDE_OK;
}

/// The steps of all lanes in the order of their events.
static tide_status add_executions(const tide_subject *s, predictor *p, uint64_t persistent, maker *m) {
    uint64_t sum = persistent;
    TIDE_TRY(tide__step_curve_add(m->out, s->facts.begin, 0, persistent));
    for (;;) {
        uint32_t first = 0;
        for (uint32_t lane = 1; lane < p->x->n_lanes; lane++)
            if (p->next[lane] < p->next[first]) first = lane;
        if (p->x->n_lanes == 0 || p->next[first] == UINT64_MAX) return end_stretch(m);
        const uint64_t event = p->next[first], t_ns = p->next_ns[first];
        sum -= p->bytes[first];
        advance(p, first);
        sum += p->bytes[first];
        const tide__step_point point = {tide__cut(s->facts.begin, s->facts.end, t_ns), event, sum};
        TIDE_TRY(add_change(m, point));
    }
}

/// What of a kind and device lies in buffers, at each step: [n_steps], owned by the caller.
static tide_status alive_at_steps(const tide_memory_plan *plan, int kind, const char *device, uint64_t persistent,
                                  uint64_t **out, tide_error *err) {
    tide__step_curve steps;
    uint64_t *alive;
    TIDE_TRY(tide__plan_curve(plan, kind, device, &steps, err));
    const tide_status st = TIDE_NEW(&alive, (size_t)plan->lifetimes.n_steps + 1, err, "for the curve of a plan");
    for (int64_t i = 0; st == TIDE_OK && i < plan->lifetimes.n_steps; i++)
        alive[i] = tide__step_curve_at(&steps, i, 0) - persistent;
    tide__step_curve_deinit(&steps);
    *out = alive;
    return st;
}

static tide_status make_predicted(tide_subject *s, int kind, const char *device, tide__step_curve *out,
                                  tide_error *err) {
    const tide_memory_plan *plan = s->run.plan;
    if (plan == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no plan that predicts anything");
    uint64_t persistent = 0, *alive; // no overflow: the curve is as high at every step
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        char text[32];
        if (!l->persistent || !tide_kind_is_among(kind, (int)l->kind)) continue;
        tide_device_format(l->device, text, sizeof text);
        if (device == NULL || strcmp(device, text) == 0) persistent += tide_lifetime_aligned_bytes(l);
    }
    TIDE_TRY(alive_at_steps(plan, kind, device, persistent, &alive, err));
    predictor p = {.alive = alive, .n_steps = plan->lifetimes.n_steps};
    maker m = {.out = out};
    tide_status st = tide_trace_executions(s->trace, s->facts.run_id, &p.x, err);
    if (st == TIDE_OK) {
        st = predictor_init(&p);
        if (st == TIDE_OK) st = add_executions(s, &p, persistent, &m);
        if (st != TIDE_OK) TIDE_NO_MEMORY(err, "for the curve of a plan");
    }
    predictor_deinit(&p);
    tide_host_free(alive);
    return st;
}

// ---- reserved bytes of a plan ----

static tide_status make_plan_reserved(const tide_subject *s, int kind, const char *device, tide__step_curve *out,
                                      tide_error *err) {
    uint64_t bytes = 0; // the same sums as those of the plan itself and its curve, which did not overflow
    bool used = device == NULL;
    for (size_t i = 0; i < s->n_devices; i++) used = used || strcmp(s->devices[i], device) == 0;
    if (!used) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the plan has no device '%s'", device);
    for (size_t i = 0; i < s->plan->n_buffers; i++) {
        const tide_plan_buffer *b = &s->plan->buffers[i];
        if (tide_kind_is_among(kind, (int)b->kind) &&
            (device == NULL || strcmp(device, tide__subject_device(s, b->device)) == 0))
            bytes += b->bytes;
    }
    for (size_t i = 0; i < s->plan->lifetimes.n; i++) {
        const tide_lifetime *l = &s->plan->lifetimes.items[i];
        if (l->persistent && tide_kind_is_among(kind, (int)l->kind) &&
            (device == NULL || strcmp(device, tide__subject_device(s, l->device)) == 0))
            bytes += tide_lifetime_aligned_bytes(l);
    }
    const tide_status st = tide__step_curve_add(out, s->facts.begin, 0, bytes);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for the curve of a plan");
}

// ---- the curve that was asked for ----

static tide_status make(tide_subject *s, tide_curve_key key, tide__step_curve *out, tide_error *err) {
    *out = (tide__step_curve){0};
    if (key.of == TIDE_CURVE_RESERVED)
        return s->trace != NULL ? reserved_curve(s, key.kind, key.device, out, err)
                                : make_plan_reserved(s, key.kind, key.device, out, err);
    if (s->trace == NULL) return tide__plan_curve(s->plan, key.kind, key.device, out, err);
    return make_predicted(s, key.kind, key.device, out, err);
}

static bool same_device(const char *a, const char *b) { return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0; }

tide_status tide__subject_curve(tide_subject *s, tide_curve_key key, const tide__step_curve **out, tide_error *err) {
    if (key.kind < TIDE_KINDS_BUT_WEIGHTS || key.kind >= TIDE_N_KINDS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no memory kind %d", key.kind);
    if (s->trace == NULL && key.of == TIDE_CURVE_PREDICTED) key.of = TIDE_CURVE_LIVE;
    for (size_t i = 0; i < s->n_curves; i++) {
        const tide__kept_curve *k = &s->curves[i];
        if (k->of != key.of || k->kind != key.kind || !same_device(k->device, key.device)) continue;
        *out = &k->curve;
        return TIDE_OK;
    }
    TIDE_TRY(TIDE_GROW(&s->curves, &s->cap_curves, s->n_curves + 1, err, "for a curve"));
    tide__kept_curve k = {.of = key.of, .kind = key.kind};
    if (key.device != NULL) k.device = tide_host_strdup(key.device);
    tide_status st =
        key.device != NULL && k.device == NULL ? TIDE_NO_MEMORY(err, "for a curve") : make(s, key, &k.curve, err);
    if (st != TIDE_OK) {
        tide__step_curve_deinit(&k.curve);
        tide_host_free(k.device);
        return st;
    }
    s->curves[s->n_curves] = k;
    *out = &s->curves[s->n_curves++].curve;
    return TIDE_OK;
}

// ---- questions ----

static bool asks_trace(const tide_subject *s, tide_curve_key key) {
    return s->trace != NULL && key.of == TIDE_CURVE_LIVE;
}

static uint64_t ns(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

/// All but weights of a trace. These hardly ever change, so that the curve of everything less what they are is the
/// answer for nearly every column; for the others both are read from the events.
static tide_status columns_but_weights(tide_subject *s, tide_curve_key key, int64_t t0, int64_t t1, size_t n,
                                       uint64_t *min_bytes, uint64_t *max_bytes, tide_error *err) {
    uint64_t *low;
    const uint64_t len = t1 > t0 ? (uint64_t)t1 - (uint64_t)t0 : 0;
    TIDE_TRY(TIDE_NEW(&low, 2 * n + 1, err, "for a curve"));
    uint64_t *high = low + n;
    tide_status st =
        tide_trace_columns(s->trace, -1, key.device, ns(t0), ns(t1), n, TIDE_COLUMNS_FAST, min_bytes, max_bytes, err);
    if (st == TIDE_OK)
        st = tide_trace_columns(s->trace, TIDE_KIND_PERSISTENT, key.device, ns(t0), ns(t1), n, TIDE_COLUMNS_FAST, low,
                                high, err);
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        const int64_t lo = tide__column_edge(t0, len, i, n), hi = tide__column_edge(t0, len, i + 1, n);
        if (low[i] == high[i] && low[i] <= min_bytes[i]) {
            min_bytes[i] -= low[i];
            max_bytes[i] -= low[i];
        } else {
            st = tide_trace_columns(s->trace, key.kind, key.device, ns(lo), ns(hi > lo ? hi : lo + 1), 1,
                                    TIDE_COLUMNS_FAST, &min_bytes[i], &max_bytes[i], err);
        }
    }
    tide_host_free(low);
    return st;
}

tide_status tide_subject_columns(tide_subject *s, tide_curve_key key, int64_t t0, int64_t t1, size_t n,
                                 uint64_t *min_bytes, uint64_t *max_bytes, tide_error *err) {
    if (asks_trace(s, key) && key.kind == TIDE_KINDS_BUT_WEIGHTS)
        return columns_but_weights(s, key, t0, t1, n, min_bytes, max_bytes, err);
    if (asks_trace(s, key))
        return tide_trace_columns(s->trace, key.kind, key.device, ns(t0), ns(t1), n, TIDE_COLUMNS_FAST, min_bytes,
                                  max_bytes, err);
    const tide__step_curve *c;
    TIDE_TRY(tide__subject_curve(s, key, &c, err));
    tide__step_curve_columns(c, t0, t1, n, min_bytes, max_bytes);
    return TIDE_OK;
}

/// All but weights of a trace: the whole of a long window is bounded by leaves of several kinds, which would be settled
/// one by one. Its columns say where the peak lies; [*t0, *t1] becomes the first of the highest and the one behind it,
/// into which it may reach.
static tide_status narrow_to_peak(tide_subject *s, tide_curve_key key, int64_t *t0, int64_t *t1, tide_error *err) {
    enum { N = 256 };
    uint64_t low[N], high[N];
    const int64_t begin = *t0, end = *t1 < INT64_MAX ? *t1 + 1 : *t1;
    size_t top = 0;
    if (end - begin < 4 * N) return TIDE_OK;
    TIDE_TRY(columns_but_weights(s, key, begin, end, N, low, high, err));
    for (size_t i = 1; i < N; i++)
        if (high[i] > high[top]) top = i;
    const uint64_t len = (uint64_t)end - (uint64_t)begin;
    *t0 = tide__column_edge(begin, len, top, N);
    *t1 = tide__column_edge(begin, len, top + 2 < N ? top + 2 : N, N) - 1;
    return TIDE_OK;
}

tide_status tide_subject_peak_between(tide_subject *s, tide_curve_key key, int64_t t0, int64_t t1, uint64_t *bytes,
                                      tide_moment *at, tide_error *err) {
    tide_moment m = {.t = t0};
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    if (asks_trace(s, key)) {
        uint64_t t_ns;
        if (key.kind == TIDE_KINDS_BUT_WEIGHTS) TIDE_TRY(narrow_to_peak(s, key, &t0, &t1, err));
        TIDE_TRY(tide_trace_peak_between(s->trace, key.kind, key.device, ns(t0), ns(t1), bytes, &m.event, &t_ns, err));
        m.t = (int64_t)t_ns;
    } else {
        const tide__step_curve *c;
        TIDE_TRY(tide__subject_curve(s, key, &c, err));
        tide__step_curve_peak(c, t0, t1, bytes, &m.t, &m.event);
    }
    if (at != NULL) *at = m;
    return TIDE_OK;
}

tide_status tide_subject_bytes_at(tide_subject *s, tide_curve_key key, tide_moment at, uint64_t *bytes,
                                  tide_error *err) {
    if (asks_trace(s, key))
        return at.event > 0 ? tide_trace_bytes_after(s->trace, key.kind, key.device, at.event, bytes, err)
                            : tide_trace_bytes_at(s->trace, key.kind, key.device, ns(at.t), bytes, err);
    const tide__step_curve *c;
    TIDE_TRY(tide__subject_curve(s, key, &c, err));
    *bytes = tide__step_curve_at(c, at.t, at.event);
    return TIDE_OK;
}
