// SPDX-License-Identifier: MIT
//
// Pools of a trace: what the profiler adds up, as views want it. See pools.h; of plans: pools_plan.c.
#include "analysis/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pools_internal.h"
#include "core/base/host_alloc.h"
#include "profiler/holdings.h"

void tide_pools_deinit(tide_pools *p) {
    for (size_t i = 0; i < p->n; i++) tide_host_free(p->items[i].name);
    tide_host_free(p->items);
    *p = (tide_pools){0};
}

tide_status tide__pools_no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for pools"); }

static int by_reserved(const void *a, const void *b) {
    const tide_pool *x = a, *y = b;
    if (x->reserved_bytes != y->reserved_bytes) return x->reserved_bytes > y->reserved_bytes ? -1 : 1;
    int c = strcmp(x->device, y->device);
    if (c == 0) c = (x->kind > y->kind) - (x->kind < y->kind);
    return c != 0 ? c : strcmp(x->name, y->name);
}

void tide__pools_finish(tide_pools *p) {
    if (p->n > 1) qsort(p->items, p->n, sizeof *p->items, by_reserved);
    for (size_t i = 0; i < p->n; i++) {
        p->reserved_bytes += p->items[i].reserved_bytes;
        p->active_bytes += p->items[i].active_bytes;
        p->requested_bytes += p->items[i].requested_bytes;
        p->cached_bytes += p->items[i].cached_bytes;
    }
}

// ---- of a trace ----

static bool tell(void *ctx, double share) {
    const tide_progress *progress = ctx;
    return progress->tell(progress->ctx, share, "adding up pools");
}

static uint64_t not_negative(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

static tide_status put(tide_pools *out, const tide_trace_pool *from, tide_error *err) {
    tide_pool *p = &out->items[out->n];
    *p = (tide_pool){.name = tide_host_strdup(from->allocator),
                     .kind = from->kind,
                     .tells_segments = from->tells_segments,
                     .n_segments = from->n_segments,
                     .n_blocks = from->n_blocks,
                     .reserved_bytes = from->reserved_bytes,
                     .active_bytes = from->active_bytes,
                     .requested_bytes = from->requested_bytes,
                     .cached_bytes = from->reserved_bytes - from->active_bytes,
                     .largest_free_bytes = from->largest_free_bytes,
                     .peak_reserved_bytes = from->peak_reserved_bytes,
                     .peak_active_bytes = from->peak_active_bytes,
                     .unused_bytes = from->unused_bytes,
                     .unused_since = (int64_t)from->unused_since_ns};
    if (p->name == NULL) return tide__pools_no_memory(err);
    snprintf(p->device, sizeof p->device, "%s", from->device);
    out->n++;
    return TIDE_OK;
}

static tide_status of_trace(tide_subject *s, int64_t t0, int64_t t1, const tide_progress *progress, tide_pools *out,
                            tide_error *err) {
    tide_trace *trace = tide_subject_trace(s);
    tide_trace_pools_question q = {.run_id = tide_subject_get_facts(s)->run_id,
                                   .at_event = out->at.event,
                                   .t0_ns = not_negative(t0),
                                   .t1_ns = not_negative(t1)};
    if (q.at_event == 0) TIDE_TRY(tide_trace_event_at(trace, not_negative(out->at.t), &q.at_event, err));
    tide_progress copy = progress != NULL ? *progress : (tide_progress){0};
    const tide_reading reading = {tell, &copy};
    tide_trace_pool *list;
    size_t n;
    TIDE_TRY(tide_trace_pools(trace, &q, progress != NULL ? &reading : NULL, &list, &n, err));
    out->items = tide_host_calloc(n + 1, sizeof *out->items);
    tide_status st = out->items != NULL ? TIDE_OK : tide__pools_no_memory(err);
    for (size_t i = 0; st == TIDE_OK && i < n; i++) st = put(out, &list[i], err);
    tide_host_free(list);
    return st;
}

tide_status tide_pools_at(tide_subject *s, tide_moment at, int64_t t0, int64_t t1, const tide_progress *progress,
                          tide_pools *out, tide_error *err) {
    *out = (tide_pools){.at = at};
    if (t1 < t0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    const tide_status st = tide_subject_get_facts(s)->is_trace ? of_trace(s, t0, t1, progress, out, err)
                                                               : tide__pools_of_plan(s, t0, t1, out, err);
    if (st == TIDE_OK) {
        tide__pools_finish(out);
    } else {
        tide_pools_deinit(out);
    }
    return st;
}
