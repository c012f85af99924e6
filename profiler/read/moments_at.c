// SPDX-License-Identifier: MIT
//
// The curve at one event, and from change to change. See moments.h.
#include "profiler/read/moments_internal.h"

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
    if (kind < 0 && device == NULL && is_kept_peak(t, event)) {
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
