// SPDX-License-Identifier: MIT
//
// From moment to moment: the next change, the next peak. See subject.h.
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

// ---- changes ----

static tide_status change_of_plan(tide_subject *s, tide_moment from, int dir, tide_moment *out, tide_error *err) {
    const tide__plan_live *l;
    TIDE_TRY(tide__subject_plan_live(s, &l, err));
    size_t lo = 0, hi = l->n_changes;
    while (lo < hi) { // the first at or behind from
        const size_t mid = lo + (hi - lo) / 2;
        if (l->changes[mid] < from.t) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (dir > 0 && lo < l->n_changes && l->changes[lo] == from.t) lo++;
    if (dir > 0 && lo < l->n_changes) out->t = l->changes[lo];
    if (dir <= 0 && lo > 0) out->t = l->changes[lo - 1];
    return TIDE_OK;
}

tide_status tide_subject_next_change(tide_subject *s, tide_moment from, int dir, tide_moment *out, tide_error *err) {
    *out = from;
    if (s->trace == NULL) return change_of_plan(s, from, dir, out, err);
    uint64_t event = from.event, t_ns;
    if (event == 0) TIDE_TRY(tide_trace_event_at(s->trace, from.t > 0 ? (uint64_t)from.t : 0, &event, err));
    // By time the moment is just behind its last event: going back, that one is the first.
    const uint64_t back_from = from.event == 0 && event < UINT64_MAX ? event + 1 : event;
    tide_error own = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_next_change(s->trace, dir > 0 ? event : back_from, dir, &event, &t_ns, &own);
    if (st == TIDE_ERR_NOT_FOUND) return TIDE_OK;
    if (st != TIDE_OK) {
        if (err != NULL) *err = own;
        return st;
    }
    if ((int64_t)t_ns >= s->facts.begin && (int64_t)t_ns < s->facts.end) *out = (tide_moment){(int64_t)t_ns, event};
    return TIDE_OK;
}

// ---- peaks ----

typedef struct peaks {
    tide_subject *s;
    tide_curve_key key;
    int64_t t0, t1;
    size_t n;
    uint64_t *low, *high; // [n + 2]: what is left of the window, its columns, what is right of it
} peaks;

/// Outside of the axis there is nothing; outside of the window one column more.
static tide_status read_columns(peaks *p, tide_error *err) {
    const int64_t width = (p->t1 - p->t0) / (int64_t)p->n + 1;
    const tide_subject_facts *f = &p->s->facts;
    TIDE_TRY(tide_subject_columns(p->s, p->key, p->t0, p->t1, p->n, p->low + 1, p->high + 1, err));
    p->high[0] = p->high[p->n + 1] = 0;
    if (p->t0 > f->begin) {
        const int64_t from = p->t0 - f->begin > width ? p->t0 - width : f->begin;
        TIDE_TRY(tide_subject_columns(p->s, p->key, from, p->t0, 1, p->low, p->high, err));
    }
    if (p->t1 < f->end) {
        const int64_t to = f->end - p->t1 > width ? p->t1 + width : f->end;
        TIDE_TRY(tide_subject_columns(p->s, p->key, p->t1, to, 1, p->low + p->n + 1, p->high + p->n + 1, err));
    }
    return TIDE_OK;
}

/// The moment of the plateau of columns first to last (from 1), when it lies on the asked side of `from`.
static tide_status moment_of(const peaks *p, size_t first, size_t last, int64_t from, int dir, tide_moment *out,
                             bool *found, tide_error *err) {
    const uint64_t len = (uint64_t)p->t1 - (uint64_t)p->t0;
    const int64_t lo = tide__column_edge(p->t0, len, first - 1, p->n);
    int64_t hi = tide__column_edge(p->t0, len, last, p->n) - 1;
    if (hi < lo) hi = lo;
    uint64_t bytes;
    tide_moment m;
    if (dir > 0 ? hi <= from : lo >= from) return TIDE_OK;
    TIDE_TRY(tide_subject_peak_between(p->s, p->key, lo, hi, &bytes, &m, err));
    *found = dir > 0 ? m.t > from : m.t < from;
    if (*found) *out = m;
    return TIDE_OK;
}

static tide_status find(const peaks *p, int64_t from, int dir, tide_moment *out, bool *found, tide_error *err) {
    *found = false;
    for (size_t i = dir > 0 ? 1 : p->n; i >= 1 && i <= p->n;) {
        size_t first = i, last = i;
        while (first > 1 && p->high[first - 1] == p->high[i]) first--;
        while (last < p->n && p->high[last + 1] == p->high[i]) last++;
        const bool is_peak = p->high[first - 1] < p->high[i] && p->high[last + 1] < p->high[i];
        if (is_peak) TIDE_TRY(moment_of(p, first, last, from, dir, out, found, err));
        if (*found) return TIDE_OK;
        i = dir > 0 ? last + 1 : first - 1;
    }
    return TIDE_OK;
}

tide_status tide_subject_next_peak(tide_subject *s, int64_t from, int dir, int64_t t0, int64_t t1, size_t n,
                                   tide_moment *out, tide_error *err) {
    if (t1 <= t0 || n == 0 || n > INT32_MAX) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window without columns");
    peaks p = {.s = s, .key = {TIDE_CURVE_LIVE, -1, NULL}, .t0 = t0, .t1 = t1, .n = n};
    p.low = tide_host_alloc((n + 2) * sizeof *p.low);
    p.high = tide_host_alloc((n + 2) * sizeof *p.high);
    bool found = false;
    tide_status st = p.low != NULL && p.high != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for peaks");
    if (st == TIDE_OK) st = read_columns(&p, err);
    if (st == TIDE_OK) st = find(&p, from, dir, out, &found, err);
    tide_host_free(p.low);
    tide_host_free(p.high);
    if (st == TIDE_OK && !found)
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no %s peak", dir > 0 ? "further" : "earlier");
    return st;
}
