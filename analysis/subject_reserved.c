// SPDX-License-Identifier: MIT
//
// Bytes that allocators of a trace hold. Where an allocator tells of the segments that it takes from the system, for a
// kind on a device, these count; of every other kind and device what its live blocks hold. See subject.h.
//
// The curve is made once, by one pass over the events. Of many changes only four of each stretch are kept, so that no
// peak and no low is lost; in between the curve is as high as at the last of them:
//
//     changes   . . . . . . . . .  of a stretch ->  first, lowest, highest, last, in their order
#include <string.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"

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
    if ((m->kind >= 0 && (int)h->kind != m->kind) || (m->device != NULL && strcmp(m->device, h->device) != 0))
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
        if ((m->kind >= 0 && (int)g->kind != m->kind) || (m->device != NULL && strcmp(g->device, m->device) != 0))
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

static tide_status make(maker *m, tide_subject *s, tide_error *err) {
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

tide_status tide__trace_reserved_curve(tide_subject *s, int kind, const char *device, tide__step_curve *out,
                                       tide_error *err) {
    uint64_t known;
    // A device that the trace does not know is said so by the curve of live bytes.
    if (device != NULL) TIDE_TRY(tide_trace_bytes_after(s->trace, kind, device, 0, &known, err));
    maker m = {.kind = kind, .device = device, .out = out};
    const tide_status st = make(&m, s, err);
    tide__step_curve_deinit(&m.taken);
    tide_host_free(m.holdings);
    tide_host_free(m.segments);
    return st;
}
