// SPDX-License-Identifier: MIT
//
// What each execution comes to: its peak, and what its own thread did. See executions.h.
//
//     event         1 2 3 4 5 6 7 8 9
//     lane 0          |-----------|         its events are 2 to 7: entered, but not the one that leaves it
//     lane 1              |-----------|     4 to 9
//     allocs            0   1   0   1       each counts for the execution that its own thread is in
//
// Events are counted by their numbers: many can share one time, and executions of several contexts overlap.
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/executions_internal.h"

typedef struct summer {
    const tide_executions *x;
    tide_execution_sum *sums; // [x->n]
    size_t *open;             // [x->n_lanes] the execution that goes on in each lane; SIZE_MAX: none
    size_t next;              // the first that has not begun
    tide_trace_used before;   // what held until now
} summer;

// ---- peaks ----

static void take_higher(tide_execution_sum *sum, const tide_trace_used *used) {
    const bool is_as_high = used->live_bytes == sum->peak.live_bytes;
    if (is_as_high ? used->bytes > sum->peak.bytes : used->live_bytes > sum->peak.live_bytes) sum->peak = *used;
}

/// Executions begin with what held before them.
static void open_until(summer *s, uint64_t event) {
    while (s->next < s->x->n && s->x->items[s->next].first_event <= event) {
        const tide_execution *e = &s->x->items[s->next];
        s->sums[s->next].peak = s->before;
        s->sums[s->next].peak.event = e->first_event - 1;
        s->sums[s->next].peak.t_ns = e->begin_ns;
        s->open[e->lane] = s->next++;
    }
}

static tide_status on_used(void *ctx, const tide_trace_used *used) {
    summer *s = ctx;
    open_until(s, used->event);
    for (size_t lane = 0; lane < s->x->n_lanes; lane++) {
        if (s->open[lane] == SIZE_MAX) continue;
        if (s->x->items[s->open[lane]].last_event <= used->event)
            s->open[lane] = SIZE_MAX;
        else
            take_higher(&s->sums[s->open[lane]], used);
    }
    s->before = *used;
    return TIDE_OK;
}

static tide_status find_peaks(tide_trace *t, summer *s, const tide_trace_extent *span, tide_error *err) {
    for (size_t lane = 0; lane < s->x->n_lanes; lane++) s->open[lane] = SIZE_MAX;
    TIDE_TRY(tide_trace_each_used(t, s->x->run_id, s->x->items[0].first_event, span->last_event, on_used, s, err));
    open_until(s, span->last_event);
    return TIDE_OK;
}

// ---- what threads did ----

static tide_status on_events(void *ctx, const tide__event *events, size_t n) {
    summer *s = ctx;
    for (size_t i = 0; i < n; i++) {
        const tide__event *e = &events[i];
        if (e->op != TIDE_MEM_ALLOC && e->op != TIDE_MEM_SEGMENT_ALLOC) continue;
        const uint32_t lane = tide__executions_lane(s->x, e->thread);
        const size_t at = lane != UINT32_MAX ? tide_executions_at(s->x, lane, (uint64_t)e->id) : SIZE_MAX;
        if (at == SIZE_MAX) continue;
        if (e->op == TIDE_MEM_ALLOC)
            s->sums[at].n_allocs++;
        else
            s->sums[at].taken_bytes += (uint64_t)e->reserved_bytes;
    }
    return TIDE_OK;
}

static tide_status add_up(tide_trace *t, summer *s, const tide_trace_extent *span, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&s->open, s->x->n_lanes, err, "for the executions of '%s'", t->path));
    TIDE_TRY(find_peaks(t, s, span, err));
    return tide__trace_each(t, TIDE__READ_ALL, (int64_t)s->x->items[0].first_event, (int64_t)span->last_event,
                            on_events, s, err);
}

tide_status tide_trace_execution_sums(tide_trace *t, int64_t run_id, tide_execution_sum **out, tide_error *err) {
    summer s = {0};
    tide_trace_extent span;
    *out = NULL;
    TIDE_TRY(tide_trace_executions(t, run_id, &s.x, err));
    TIDE_TRY(tide_trace_get_extent(t, run_id, &span, err));
    TIDE_TRY(TIDE_NEW(&s.sums, s.x->n + 1, err, "for the executions of '%s'", t->path));
    const tide_status st = s.x->n > 0 ? add_up(t, &s, &span, err) : TIDE_OK;
    tide_host_free(s.open);
    if (st == TIDE_OK)
        *out = s.sums;
    else
        tide_host_free(s.sums);
    return st;
}
