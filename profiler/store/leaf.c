// SPDX-License-Identifier: MIT
//
// Smallest and largest live bytes over intervals of events. See leaf.h.
#include "profiler/store/leaf.h"

#include <string.h>

#include "core/base/host_alloc.h"

/// Series without an open leaf, up to the newest, get an untouched one.
static tide_status make_series(tide__leaves *l, size_t n_series) {
    TIDE_TRY(tide_host_grow(&l->open, &l->cap_open, n_series, sizeof *l->open));
    memset(&l->open[l->n_open], 0, (n_series - l->n_open) * sizeof *l->open);
    l->n_open = n_series;
    return TIDE_OK;
}

void tide__leaf_begin(tide__leaves *l, const tide__series *s, size_t series_i, const tide__event *e) {
    l->open[series_i] = (tide__leaf){.series = (int32_t)series_i,
                                     .first_event = l->first_event,
                                     .begin_ns = l->begin_ns,
                                     .min_bytes = s->live_bytes,
                                     .max_bytes = s->live_bytes,
                                     .max_event = e->id,
                                     .max_ns = e->t_ns,
                                     .max_reserved_bytes = s->live_reserved_bytes};
}

static inline void touch(tide__leaves *l, const tide__series *s, size_t series_i, const tide__event *e) {
    tide__leaf_touch(l, s, series_i, e);
    tide__leaf_change(&l->open[series_i], s, e->id, e->t_ns, true, true);
}

tide_status tide__leaves_end(tide__leaves *l) {
    if (l->first_event == 0) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&l->done, &l->cap_done, l->n_done + l->n_open, sizeof *l->done));
    for (size_t i = 0; i < l->n_open; i++) {
        if (l->open[i].first_event == 0) continue;
        tide__leaf *leaf = &l->done[l->n_done++];
        *leaf = l->open[i];
        leaf->last_event = l->last_event;
        leaf->end_ns = l->end_ns;
        l->open[i].first_event = 0;
    }
    l->first_event = l->plain_until = 0;
    return TIDE_OK;
}

tide_status tide__leaves_add_any(tide__leaves *l, const tide__replay *r, const tide__event *e, size_t series) {
    if (l->first_event != 0 && e->id > l->until) TIDE_TRY(tide__leaves_end(l));
    if (r->n_series > l->n_open) TIDE_TRY(make_series(l, r->n_series));
    if (l->first_event == 0) {
        l->first_event = e->id;
        l->begin_ns = e->t_ns;
        // At the end of all numbers it wraps round: intervals of one event; no trace is that long.
        l->until = (int64_t)((uint64_t)e->id + (uint64_t)(TIDE__LEAF_EVENTS - 1 - (e->id - 1) % TIDE__LEAF_EVENTS));
        l->plain_until = l->until;
    }
    l->last_event = e->id;
    l->end_ns = e->t_ns;
    if (series != 0) {
        touch(l, &r->series[0], 0, e);
        if (r->n_changed == 1) {
            touch(l, &r->series[series], series, e);
        } else {
            for (size_t i = 1; i < r->n_series; i++)
                if (r->series[i].last_event == e->id) touch(l, &r->series[i], i, e);
        }
    }
    return e->id == l->until ? tide__leaves_end(l) : TIDE_OK;
}

void tide__leaves_deinit(tide__leaves *l) {
    tide_host_free(l->open);
    tide_host_free(l->done);
    *l = (tide__leaves){0};
}
