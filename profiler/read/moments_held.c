// SPDX-License-Identifier: MIT
//
// What blocks hold, change by change. See tide_trace_each_held in moments.h.
#include "profiler/read/moments_internal.h"

typedef struct telling {
    const tide_trace *t;
    tide_status (*fn)(void *ctx, const tide_trace_held *held);
    void *ctx;
} telling;

static tide_status tell(const telling *w, const tide__series *s, int64_t event, int64_t t_ns) {
    const tide_trace_held held = {.event = (uint64_t)event,
                                  .t_ns = (uint64_t)t_ns,
                                  .kind = (tide_memory_kind)s->kind,
                                  .device = tide__trace_device(w->t, s->device),
                                  .reserved_bytes = (uint64_t)s->live_reserved_bytes};
    return w->fn(w->ctx, &held);
}

static tide_status begin_all(void *ctx, const tide__replay *r) {
    const telling *w = ctx;
    for (size_t i = 1; i < r->n_series; i++) TIDE_TRY(tell(w, &r->series[i], w->t->first_event - 1, w->t->begin_ns));
    return TIDE_OK;
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    const telling *w = ctx;
    if (series == 0) return TIDE_OK;
    if (r->n_changed == 1) return tell(w, &r->series[series], e->id, e->t_ns);
    for (size_t i = 1; i < r->n_series; i++)
        if (r->series[i].last_event == e->id) TIDE_TRY(tell(w, &r->series[i], e->id, e->t_ns));
    return TIDE_OK;
}

tide_status tide_trace_each_held(tide_trace *t, tide_status (*fn)(void *ctx, const tide_trace_held *held), void *ctx,
                                 tide_error *err) {
    telling w = {t, fn, ctx};
    return tide__trace_walk(t, t->first_event, t->last_event, begin_all, on_event, &w, err);
}
