// SPDX-License-Identifier: MIT
//
// Pools over time, and requests. See pools.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/pools.h"

#include "analysis/plan_pools.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

static uint64_t not_negative(int64_t t) { return t > 0 ? (uint64_t)t : 0; }

void tide_pool_history_deinit(tide_pool_history *h) {
    tide_host_free(h->columns);
    tide_host_free(h->marks);
    *h = (tide_pool_history){0};
}

// ---- a plan ----

/// Steps can be negative in no plan: the axis begins at 0 or above.
static void fill_plan_pool(const tide__plan_pools *pools, size_t k, const tide_subject_facts *facts, uint64_t t0,
                           uint64_t t1, size_t n, tide_trace_pool_column *out) {
    const tide__pool_stretch *list = tide__plan_pool_stretches(pools, k);
    const size_t n_stretches = pools->pools[k].n;
    for (size_t i = 0; i < n_stretches; i++) {
        const uint64_t from = not_negative(i > 0 ? list[i].step : facts->begin);
        const uint64_t to = not_negative(i + 1 < n_stretches ? list[i + 1].step : facts->end);
        if (from >= to || to <= t0 || from >= t1) continue;
        const size_t first = from <= t0 ? 0 : tide_trace_column_of(t0, t1, n, from);
        const size_t last = to > t1 ? n - 1 : tide_trace_column_of(t0, t1, n, to - 1);
        const tide_trace_pool_column c = tide__pool_stretch_column(pools->pools[k].bytes, &list[i]);
        for (size_t at = first; at <= last; at++) tide_trace_pool_column_join(&out[at], &c);
    }
}

/// Columns of which no moment is known hold nothing.
static void settle_columns(tide_trace_pool_column *columns, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (columns[i].least_cached_bytes > columns[i].cached_bytes) columns[i].least_cached_bytes = 0;
}

static tide_status plan_over(tide_subject *s, uint64_t t0, uint64_t t1, size_t n, tide_pool_history *out,
                             tide_error *err) {
    const tide__plan_pools *pools;
    const size_t n_filled = n < t1 - t0 ? n : (size_t)(t1 - t0);
    if (tide__subject_plan(s) == NULL) return TIDE_OK;
    TIDE_TRY(tide__subject_plan_pools(s, &pools, err));
    TIDE_TRY(TIDE_NEW(&out->columns, (pools->n + 1) * n, err, "for pools over time"));
    for (size_t i = 0; i < pools->n * n_filled; i++) out->columns[i] = tide_trace_pool_column_none();
    for (size_t k = 0; k < pools->n; k++)
        fill_plan_pool(pools, k, &s->facts, t0, t1, n_filled, &out->columns[k * n_filled]);
    settle_columns(out->columns, pools->n * n_filled);
    tide_trace_pool_columns_widen(out->columns, pools->n, n_filled, n);
    out->n_pools = pools->n;
    return TIDE_OK;
}

// ---- a trace ----

enum { SOON = 8, MOST_REASONS = 256 };

static int by_event(const void *a, const void *b) {
    const tide_pool_mark *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

static bool is_of(const tide_trace_pool *p, const tide_trace_segment *seg) {
    return p->tells_segments && p->kind == seg->kind && strcmp(p->allocator, seg->allocator) == 0 &&
           strcmp(p->device, seg->device) == 0;
}

/// The first block that is allocated in a segment after it was taken, if that is soon.
static tide_status find_why(tide_trace *trace, const tide_trace_segment *seg, char *out, size_t out_bytes,
                            tide_error *err) {
    tide_trace_event events[SOON];
    size_t n;
    TIDE_TRY(tide_trace_events(trace, seg->begin_event + 1, events, SOON, &n, err));
    for (size_t i = 0; i < n; i++) {
        const bool is_in_it = events[i].address >= seg->address && events[i].address - seg->address < seg->bytes;
        if (strcmp(events[i].op, "alloc") != 0 || !is_in_it) continue;
        size_t len = strlen(events[i].name);
        if (len > out_bytes - 1) len = out_bytes - 1;
        while (len > 0 && ((unsigned char)events[i].name[len] & 0xC0) == 0x80) len--; // not a part of a character
        memcpy(out, events[i].name, len);
        out[len] = 0;
        return TIDE_OK;
    }
    return TIDE_OK;
}

static void add_segment(tide_pool_history *out, size_t pool, uint64_t t1, const tide_trace_segment *seg) {
    const tide_pool_mark mark = {.pool = pool,
                                 .t = (int64_t)seg->begin_ns,
                                 .event = seg->begin_event,
                                 .bytes = seg->bytes,
                                 .is_growth = true,
                                 .spare_since = INT64_MIN};
    out->marks[out->n_marks++] = mark;
    if (seg->end_event == UINT64_MAX || seg->end_ns >= t1) return;
    out->marks[out->n_marks++] =
        (tide_pool_mark){.pool = pool, .t = (int64_t)seg->end_ns, .event = seg->end_event, .bytes = seg->bytes};
}

/// Since when as much as the segment is spare.
static tide_status find_spare(tide_subject *s, const tide_trace_segment *seg, const tide_reading *reading,
                              tide_pool_mark *m, tide_error *err) {
    const tide_trace_spare_question q = {
        .run_id = s->facts.run_id, .pool = m->pool, .at_event = seg->end_event - 1, .bytes = seg->bytes};
    uint64_t since;
    TIDE_TRY(tide_trace_pool_spare_since(s->trace, &q, reading, &since, err));
    m->spare_since = since > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)since > m->t ? (int64_t)since : m->t;
    return TIDE_OK;
}

/// When the segments of the pools were taken, the newest with the reason, and given back. `segments` is a copy: reasons
/// are questions.
static tide_status add_marks(tide_subject *s, const tide_reading *reading, const tide_trace_pool *pools, size_t n_pools,
                             const tide_trace_segment *segments, size_t n, uint64_t t1, tide_pool_history *out,
                             tide_error *err) {
    size_t n_asked = 0;
    TIDE_TRY(TIDE_NEW(&out->marks, 2 * n + 1, err, "for the segments of a trace"));
    for (size_t i = n; i-- > 0;) {
        size_t k = 0;
        while (k < n_pools && !is_of(&pools[k], &segments[i])) k++;
        if (k == n_pools || segments[i].begin_ns >= t1) continue; // of another run, or later
        tide_pool_mark *m = &out->marks[out->n_marks];
        add_segment(out, k, t1, &segments[i]);
        if (n_asked < TIDE_POOL_SPARES) TIDE_TRY(find_spare(s, &segments[i], reading, m, err));
        if (n_asked++ < MOST_REASONS) TIDE_TRY(find_why(s->trace, &segments[i], m->why, sizeof m->why, err));
    }
    if (out->n_marks > 1) qsort(out->marks, out->n_marks, sizeof *out->marks, by_event);
    return TIDE_OK;
}

static tide_status find_marks(tide_subject *s, const tide_reading *reading, uint64_t t1, tide_pool_history *out,
                              tide_error *err) {
    const tide_trace_segment *segments;
    tide_trace_segment *copy;
    tide_trace_pool *pools;
    size_t n_pools, n;
    TIDE_TRY(tide_trace_segments(s->trace, reading, &segments, &n, err));
    TIDE_TRY(TIDE_NEW(&copy, n + 1, err, "for the segments of a trace"));
    if (n > 0) memcpy(copy, segments, n * sizeof *copy);
    tide_status st = tide_trace_pool_list(s->trace, s->facts.run_id, reading, &pools, &n_pools, err);
    if (st == TIDE_OK) {
        st = add_marks(s, reading, pools, n_pools, copy, n, t1, out, err);
        tide_host_free(pools);
    }
    tide_host_free(copy);
    return st;
}

/// Behind the allocators' columns those of the plan in each context.
static tide_status add_run_columns(tide_subject *s, uint64_t t0, uint64_t t1, size_t n, tide_pool_history *out,
                                   tide_error *err) {
    tide__run_pools r;
    TIDE_TRY(tide__run_pools_of(s, &r, err));
    const size_t n_more = r.n_lanes > 0 ? r.n_lanes * r.pools->n : 0, n_filled = n < t1 - t0 ? n : (size_t)(t1 - t0);
    if (n_more == 0) return TIDE_OK;
    tide_trace_pool_column *all = tide_host_alloc((out->n_pools + n_more) * n * sizeof *all);
    if (all == NULL) return TIDE_NO_MEMORY(err, "for pools over time");
    if (out->n_pools > 0) memcpy(all, out->columns, out->n_pools * n * sizeof *all);
    tide_trace_pool_column *more = all + out->n_pools * n;
    for (size_t i = 0; i < n_more * n; i++) more[i] = tide_trace_pool_column_none();
    for (size_t i = 0; i < n_more; i++)
        tide__run_pools_fill(&r, i / r.pools->n, i % r.pools->n, t0, t1, n_filled, more + i * n_filled);
    settle_columns(more, n_more * n_filled);
    tide_trace_pool_columns_widen(more, n_more, n_filled, n);
    tide_host_free(out->columns);
    out->columns = all;
    out->n_pools += n_more;
    return TIDE_OK;
}

static bool report(void *ctx, double share) {
    const tide_progress *progress = ctx;
    return progress->tell(progress->ctx, share, "adding up pools");
}

static tide_status trace_over(tide_subject *s, uint64_t t0, uint64_t t1, size_t n, const tide_progress *progress,
                              tide_pool_history *out, tide_error *err) {
    tide_progress copy = progress != NULL ? *progress : (tide_progress){0};
    const tide_reading reading = {report, &copy}, *how = progress != NULL ? &reading : NULL;
    const tide_trace_pool_columns_question q = {.run_id = s->facts.run_id, .t0_ns = t0, .t1_ns = t1, .n = n};
    TIDE_TRY(tide_trace_pool_columns(s->trace, &q, how, &out->columns, &out->n_pools, err));
    TIDE_TRY(find_marks(s, how, t1, out, err));
    return add_run_columns(s, t0, t1, n, out, err);
}

tide_status tide_pools_over(tide_subject *s, int64_t t0, int64_t t1, size_t n, const tide_progress *progress,
                            tide_pool_history *out, tide_error *err) {
    *out = (tide_pool_history){.n_columns = n};
    if (t1 <= t0 || t1 <= 0 || n == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that holds no time");
    const uint64_t from = not_negative(t0), to = (uint64_t)t1;
    const tide_status st =
        s->trace != NULL ? trace_over(s, from, to, n, progress, out, err) : plan_over(s, from, to, n, out, err);
    if (st != TIDE_OK) tide_pool_history_deinit(out);
    return st;
}

// ---- requests ----

void tide_pool_request_deinit(tide_pool_request *r) {
    for (size_t i = 0; i < r->n_blockers; i++) {
        tide_host_free(r->blockers[i].name);
        tide_host_free(r->blockers[i].owner);
    }
    tide_host_free(r->blockers);
    *r = (tide_pool_request){0};
}

static tide_status add_blocker(tide_pool_request *r, const char *name, const char *owner, uint64_t id, uint64_t bytes) {
    tide_pool_blocker *b = &r->blockers[r->n_blockers++];
    *b = (tide_pool_blocker){tide_host_strdup(name), tide_host_strdup(owner), id, bytes};
    return b->name != NULL && b->owner != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
}

// ---- of a plan's pool at a step ----

typedef struct room {
    const tide_memory_plan *plan;
    const tide_occupied *occupied; // [n]
    size_t n;
    uint32_t pool;
    int64_t step;
    uint64_t begin; // of the pool in its buffer
} room;

static bool lies_there(const room *r, const tide_occupied *o) {
    return o->begin_step <= r->step && r->step < o->end_step && o->hi_bytes > o->lo_bytes &&
           tide__plan_pool_of(r->plan, o->root) == r->pool;
}

/// Where a rectangle begins and ends in the pool.
static uint64_t low_of(const room *r, const tide_occupied *o) {
    return r->plan->offsets[o->root] - r->begin + o->lo_bytes;
}

static bool is_in_the_way(const room *r, const tide_occupied *o, uint64_t at, uint64_t bytes) {
    const uint64_t lo = low_of(r, o), hi = lo + (o->hi_bytes - o->lo_bytes);
    return lies_there(r, o) && lo < at + bytes && hi > at;
}

static uint64_t bytes_in_the_way(const room *r, uint64_t at, uint64_t bytes, size_t *n) {
    uint64_t sum = 0;
    *n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!is_in_the_way(r, &r->occupied[i], at, bytes)) continue;
        sum += r->occupied[i].hi_bytes - r->occupied[i].lo_bytes;
        ++*n;
    }
    return sum;
}

static tide_status put_blockers(const room *r, tide_pool_request *out) {
    size_t n;
    out->blocked_bytes = bytes_in_the_way(r, out->address, out->bytes, &n);
    out->blockers = tide_host_calloc(n + 1, sizeof *out->blockers);
    if (out->blockers == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < r->n; i++) {
        const tide_occupied *o = &r->occupied[i];
        if (is_in_the_way(r, o, out->address, out->bytes))
            TIDE_TRY(add_blocker(out, r->plan->lifetimes.items[o->root].name, "", o->root, o->hi_bytes - o->lo_bytes));
    }
    return TIDE_OK;
}

/// Places at the pool's begin and behind each rectangle: see holdings_request.c.
static tide_status find_room(const room *r, uint64_t pool_bytes, tide_pool_request *out) {
    uint64_t best = UINT64_MAX;
    size_t n;
    out->room_bytes = pool_bytes;
    out->fit = TIDE_FIT_GROW;
    if (out->bytes > pool_bytes) return TIDE_OK;
    best = bytes_in_the_way(r, 0, out->bytes, &n);
    for (size_t i = 0; i < r->n && best > 0; i++) {
        const tide_occupied *o = &r->occupied[i];
        if (!lies_there(r, o)) continue;
        const uint64_t at = low_of(r, o) + (o->hi_bytes - o->lo_bytes);
        if (at > pool_bytes - out->bytes) continue;
        const uint64_t sum = bytes_in_the_way(r, at, out->bytes, &n);
        if (sum < best || (sum == best && at < out->address)) out->address = at;
        if (sum < best) best = sum;
    }
    out->fit = best == 0 ? TIDE_FIT_FREE : TIDE_FIT_BLOCKED;
    return best == 0 ? TIDE_OK : put_blockers(r, out);
}

/// Keep those that lie in the pool at the step.
static void keep_those_there(room *r, tide_occupied *list) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (lies_there(r, &list[i])) list[n++] = list[i];
    r->n = n;
}

static tide_status room_at(const tide__plan_pools *pools, size_t k, int64_t step, tide_pool_request *out,
                           tide_error *err) {
    const tide_memory_plan *plan = pools->plan;
    tide_occupied *occupied;
    room r = {.plan = plan, .pool = (uint32_t)k, .step = step};
    if (plan->n_pools > 0) r.begin = plan->pool_list[k].offset_bytes;
    TIDE_TRY(tide_lifetimes_occupied(&plan->lifetimes, &occupied, &r.n, err));
    keep_those_there(&r, occupied);
    r.occupied = occupied;
    const tide_status st = find_room(&r, pools->pools[k].bytes, out);
    tide_host_free(occupied);
    return st == TIDE_OK ? st : TIDE_NO_MEMORY(err, "for what is in the way of a request");
}

static tide_status plan_request(tide_subject *s, tide_moment at, size_t pool, tide_pool_request *out, tide_error *err) {
    const tide__plan_pools *pools;
    if (tide__subject_plan(s) == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no plan");
    TIDE_TRY(tide__subject_plan_pools(s, &pools, err));
    if (pool >= pools->n)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no pool %zu: the plan has %zu", pool, pools->n);
    TIDE_TRY(room_at(pools, pool, at.t, out, err));
    const tide__pool_stretch *list = tide__plan_pool_stretches(pools, pool);
    for (size_t i = 1; out->fit != TIDE_FIT_FREE && !out->has_next && i < pools->pools[pool].n; i++) {
        const bool fits = list[i].largest_free != TIDE_UNKNOWN_BYTES && list[i].largest_free >= out->bytes;
        if (!fits || list[i].step <= at.t || list[i].step >= s->facts.end) continue;
        out->has_next = true;
        out->next = (tide_moment){.t = list[i].step};
    }
    return TIDE_OK;
}

// ---- of an allocator at a moment ----

static tide_status name_blocks(tide_subject *s, uint64_t event, const tide_trace_request *r, tide_pool_request *out,
                               tide_error *err) {
    tide_live_set set;
    TIDE_TRY(TIDE_NEW(&out->blockers, r->n_blocks + 1, err, "for what is in the way of a request"));
    TIDE_TRY(tide_trace_live_set_after(s->trace, event, &set, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < r->n_blocks; i++) {
        for (size_t k = 0; k < set.n; k++) {
            const tide_live *l = &set.items[k];
            if (l->block_id != r->blocks[i]) continue;
            st = add_blocker(out, l->name, l->scope, l->block_id, l->reserved_bytes);
            break;
        }
    }
    tide_live_set_deinit(&set);
    return st == TIDE_OK ? st : TIDE_NO_MEMORY(err, "for what is in the way of a request");
}

static tide_status allocator_request(tide_subject *s, uint64_t event, size_t pool, const tide_reading *reading,
                                     tide_pool_request *out, tide_error *err) {
    const tide_trace_request_question q = {
        .run_id = s->facts.run_id, .pool = pool, .at_event = event, .bytes = out->bytes};
    tide_trace_request r;
    TIDE_TRY(tide_trace_pool_request(s->trace, &q, reading, &r, err));
    out->fit = r.fit;
    out->address = r.address;
    out->room_bytes = r.segment_bytes;
    out->blocked_bytes = r.blocked_bytes;
    out->has_next = r.fit != TIDE_FIT_FREE && r.next_event != UINT64_MAX;
    if (out->has_next) out->next = (tide_moment){.t = (int64_t)r.next_ns, .event = r.next_event};
    const tide_status st = name_blocks(s, event, &r, out, err);
    tide_trace_request_deinit(&r);
    return st;
}

static tide_status trace_request(tide_subject *s, tide_moment at, size_t pool, const tide_progress *progress,
                                 tide_pool_request *out, tide_error *err) {
    tide_progress copy = progress != NULL ? *progress : (tide_progress){0};
    const tide_reading reading = {report, &copy}, *how = progress != NULL ? &reading : NULL;
    uint64_t event = at.event;
    tide_trace_pool *pools;
    size_t n;
    tide__run_pools r;
    if (event == 0) TIDE_TRY(tide_trace_event_at(s->trace, not_negative(at.t), &event, err));
    TIDE_TRY(tide_trace_pool_list(s->trace, s->facts.run_id, how, &pools, &n, err));
    tide_host_free(pools);
    if (pool < n) return allocator_request(s, event, pool, how, out, err);
    TIDE_TRY(tide__run_pools_of(s, &r, err));
    if (r.n_lanes == 0 || pool - n >= r.n_lanes * r.pools->n)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "there is no pool %zu", pool);
    const size_t lane = (pool - n) / r.pools->n, k = (pool - n) % r.pools->n;
    TIDE_TRY(room_at(r.pools, k, tide__run_pools_step(&r, lane, at), out, err));
    if (out->fit != TIDE_FIT_FREE) out->has_next = tide__run_pools_next(&r, lane, k, at, out->bytes, &out->next);
    return TIDE_OK;
}

tide_status tide_pools_request(tide_subject *s, tide_moment at, size_t pool, uint64_t bytes,
                               const tide_progress *progress, tide_pool_request *out, tide_error *err) {
    *out = (tide_pool_request){.bytes = bytes};
    if (bytes == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a request of no bytes");
    const tide_status st =
        s->trace != NULL ? trace_request(s, at, pool, progress, out, err) : plan_request(s, at, pool, out, err);
    if (st != TIDE_OK) tide_pool_request_deinit(out);
    return st;
}
