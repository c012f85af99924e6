// SPDX-License-Identifier: MIT
//
// Pools: a replay of a run that adds up what each allocator holds. See holdings.h.
//
//     segments  [ block | hole | block |      ]   [        ]     of one pool: (allocator, device, kind)
//     reserved  <--------------------------------------->        active: its blocks; the rest is kept for later
//
// A block belongs to the segment that it was allocated in, found by its address among those that were there before it;
// one that lies in none counts for a pool without segments.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/holdings_internal.h"

enum { SLICE_EVENTS = 1 << 16 };

/// Since when a value never was lower: of all moments so far those that are the lowest up to now.
typedef struct low {
    uint64_t bytes, since_ns;
} low;

typedef struct pool {
    tide_trace_pool facts; // as of the moment once it has passed; peaks and unused go on
    uint64_t n_segments, n_blocks, reserved, active, requested;
    low *lows; // [n_lows] rising, owned
    size_t n_lows, cap_lows;
} pool;

/// A segment that is there, in order of process, device and address.
typedef struct place {
    const tide_trace_segment *seg;
    size_t pool;
} place;

typedef struct walk {
    tide_trace *t;
    const tide_trace_pools_question *q;
    tide__span span;
    const tide_trace_segment *segments; // [n_segments], as they were taken
    size_t n_segments, next_segment;
    pool *pools; // [n], owned
    size_t n, cap;
    place *places; // [n_places], owned
    size_t n_places, cap_places;
    int64_t at, window_first, window_last; // events; the window opens after its first
    bool has_passed;                       // the moment
    bool is_open;                          // the window
    tide_status st;                        // of what a callback without a result could not do
} walk;

// ---- pools ----

static size_t pool_of(walk *w, const char *allocator, const char *device, tide_memory_kind kind, bool tells) {
    for (size_t i = 0; i < w->n; i++) {
        const tide_trace_pool *p = &w->pools[i].facts;
        // texts of one trace are kept once
        if (p->allocator == allocator && p->device == device && p->kind == kind && p->tells_segments == tells) return i;
    }
    if (tide_host_grow(&w->pools, &w->cap, w->n + 1, sizeof *w->pools) != TIDE_OK) {
        w->st = TIDE_ERR_NOMEM;
        return SIZE_MAX;
    }
    w->pools[w->n] = (pool){.facts = {.allocator = allocator,
                                      .device = device,
                                      .kind = kind,
                                      .tells_segments = tells,
                                      .largest_free_bytes = TIDE_UNKNOWN_BYTES,
                                      .unused_bytes = UINT64_MAX,
                                      .unused_since_ns = w->span.begin_ns}};
    return w->n++;
}

static uint64_t unused_of(const pool *p) { return p->reserved - p->active; }

/// The value is `bytes` from `t_ns` on: whatever was higher before it is no low any more.
static void note_low(walk *w, pool *p, uint64_t bytes, uint64_t t_ns) {
    if (tide_host_grow(&p->lows, &p->cap_lows, p->n_lows + 2, sizeof *p->lows) != TIDE_OK) {
        w->st = TIDE_ERR_NOMEM;
        return;
    }
    // Before its first event a pool holds nothing.
    if (p->n_lows == 0 && t_ns > w->span.begin_ns) p->lows[p->n_lows++] = (low){0, w->span.begin_ns};
    uint64_t since = t_ns;
    while (p->n_lows > 0 && p->lows[p->n_lows - 1].bytes >= bytes) since = p->lows[--p->n_lows].since_ns;
    p->lows[p->n_lows++] = (low){bytes, since};
}

/// After a change of pool `i` at `t_ns`.
static void pool_changed(walk *w, size_t i, uint64_t t_ns) {
    pool *p = &w->pools[i];
    if (!p->facts.tells_segments) p->reserved = p->active;
    if (p->reserved > p->facts.peak_reserved_bytes) p->facts.peak_reserved_bytes = p->reserved;
    if (p->active > p->facts.peak_active_bytes) p->facts.peak_active_bytes = p->active;
    if (w->is_open && p->reserved > 0 && unused_of(p) < p->facts.unused_bytes) p->facts.unused_bytes = unused_of(p);
    if (!w->has_passed && p->facts.tells_segments) note_low(w, p, unused_of(p), t_ns);
}

// ---- segments that are there ----

static int order_of(const tide_trace_segment *seg, uint32_t process, const char *device, uint64_t address) {
    if (seg->process != process) return seg->process < process ? -1 : 1;
    if (seg->device != device) return seg->device < device ? -1 : 1;
    return (seg->address > address) - (seg->address < address);
}

/// Number of places at or before that address.
static size_t places_to(const walk *w, uint32_t process, const char *device, uint64_t address) {
    size_t lo = 0, hi = w->n_places;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (order_of(w->places[mid].seg, process, device, address) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/// Place of the segment that a block lies in; SIZE_MAX: in none that was there when it was allocated.
static size_t place_of(const walk *w, const tide__live_block *b) {
    const char *device = tide__trace_device(w->t, b->device);
    const uint64_t address = (uint64_t)b->address;
    const size_t n = places_to(w, tide_trace_process_of((uint64_t)b->block_id), device, address);
    if (n == 0) return SIZE_MAX;
    const tide_trace_segment *seg = w->places[n - 1].seg;
    const bool is_inside = seg->device == device && seg->process == tide_trace_process_of((uint64_t)b->block_id) &&
                           address - seg->address < seg->bytes && seg->begin_event < (uint64_t)b->alloc_event;
    return is_inside ? n - 1 : SIZE_MAX;
}

static size_t pool_of_block(walk *w, const tide__live_block *b) {
    const size_t at = place_of(w, b);
    if (at != SIZE_MAX) return w->places[at].pool;
    return pool_of(w, tide__trace_text(w->t, b->allocator_id), tide__trace_device(w->t, b->device),
                   (tide_memory_kind)b->kind, false);
}

static void add_block(walk *w, size_t i, const tide__live_block *b, uint64_t t_ns) {
    if (i == SIZE_MAX) return;
    pool *p = &w->pools[i];
    p->n_blocks++;
    p->active += (uint64_t)b->reserved_bytes;
    p->requested += (uint64_t)b->requested_bytes;
    pool_changed(w, i, t_ns);
}

static void drop_block(walk *w, size_t i, const tide__live_block *b, uint64_t t_ns) {
    if (i == SIZE_MAX) return;
    pool *p = &w->pools[i];
    p->n_blocks--;
    p->active -= (uint64_t)b->reserved_bytes;
    p->requested -= (uint64_t)b->requested_bytes;
    pool_changed(w, i, t_ns);
}

static void take_segment(walk *w, const tide_trace_segment *seg, uint64_t t_ns) {
    const size_t pool_i = pool_of(w, seg->allocator, seg->device, seg->kind, true);
    if (pool_i == SIZE_MAX ||
        tide_host_grow(&w->places, &w->cap_places, w->n_places + 1, sizeof *w->places) != TIDE_OK) {
        w->st = TIDE_ERR_NOMEM;
        return;
    }
    const size_t at = places_to(w, seg->process, seg->device, seg->address);
    memmove(&w->places[at + 1], &w->places[at], (w->n_places - at) * sizeof *w->places);
    w->places[at] = (place){seg, pool_i};
    w->n_places++;
    w->pools[pool_i].n_segments++;
    w->pools[pool_i].reserved += seg->bytes;
    pool_changed(w, pool_i, t_ns);
}

/// What still lies in it goes to a pool without segments, so that the sums stay what the live blocks are.
static void give_segment(walk *w, const tide__replay *r, uint64_t begin_event, const tide_trace_segment *seg,
                         uint64_t t_ns) {
    size_t at = 0;
    while (at < w->n_places && w->places[at].seg->begin_event != begin_event) at++;
    if (at == w->n_places) return;
    const place gone = w->places[at];
    const tide__live_block *b;
    for (size_t i = 0; w->pools[gone.pool].n_blocks > 0 && (b = tide__replay_next(r, &i)) != NULL;) {
        if (place_of(w, b) != at) continue;
        drop_block(w, gone.pool, b, t_ns);
        add_block(w,
                  pool_of(w, tide__trace_text(w->t, b->allocator_id), tide__trace_device(w->t, b->device),
                          (tide_memory_kind)b->kind, false),
                  b, t_ns);
    }
    w->n_places--;
    memmove(&w->places[at], &w->places[at + 1], (w->n_places - at) * sizeof *w->places);
    w->pools[gone.pool].n_segments--;
    w->pools[gone.pool].reserved -= seg->bytes;
    pool_changed(w, gone.pool, t_ns);
}

// ---- the moment ----

typedef struct stretch {
    size_t place;
    uint64_t begin, end;
} stretch;

static int by_place(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void note_free(walk *w, size_t place_i, uint64_t bytes) {
    tide_trace_pool *p = &w->pools[w->places[place_i].pool].facts;
    if (p->largest_free_bytes == TIDE_UNKNOWN_BYTES || bytes > p->largest_free_bytes) p->largest_free_bytes = bytes;
}

/// The largest stretch of each pool's segments that no block holds.
static void find_free(walk *w, const tide__replay *r) {
    stretch *list = tide_host_alloc((tide__replay_n_live(r) + 1) * sizeof *list);
    if (list == NULL) {
        w->st = TIDE_ERR_NOMEM;
        return;
    }
    size_t n = 0;
    const tide__live_block *b;
    for (size_t i = 0; w->n_places > 0 && (b = tide__replay_next(r, &i)) != NULL;) {
        const size_t at = place_of(w, b);
        if (at == SIZE_MAX) continue;
        list[n++] = (stretch){at, (uint64_t)b->address, (uint64_t)b->address + (uint64_t)b->reserved_bytes};
    }
    if (n > 1) qsort(list, n, sizeof *list, by_place);
    size_t i = 0;
    for (size_t at = 0; at < w->n_places; at++) {
        const tide_trace_segment *seg = w->places[at].seg;
        uint64_t end = seg->address;
        for (; i < n && list[i].place == at; i++) {
            if (list[i].begin > end) note_free(w, at, list[i].begin - end);
            if (list[i].end > end) end = list[i].end;
        }
        note_free(w, at, end < seg->address + seg->bytes ? seg->address + seg->bytes - end : 0);
    }
    tide_host_free(list);
}

static void note_moment(walk *w, const tide__replay *r) {
    for (size_t i = 0; i < w->n; i++) {
        pool *p = &w->pools[i];
        p->facts.n_segments = p->n_segments;
        p->facts.n_blocks = p->n_blocks;
        p->facts.reserved_bytes = p->reserved;
        p->facts.active_bytes = p->active;
        p->facts.requested_bytes = p->requested;
        if (p->n_lows > 0) p->facts.unused_since_ns = p->lows[p->n_lows - 1].since_ns;
    }
    find_free(w, r);
    w->has_passed = true;
}

static void open_window(walk *w) {
    for (size_t i = 0; i < w->n; i++) {
        const pool *p = &w->pools[i];
        w->pools[i].facts.unused_bytes = p->reserved > 0 ? unused_of(p) : UINT64_MAX;
    }
    w->is_open = true;
}

/// What has to be done after event `id`.
static void pass(walk *w, const tide__replay *r, int64_t id) {
    if (id == w->at) note_moment(w, r);
    if (id == w->window_first) open_window(w);
    if (id == w->window_last) w->is_open = false;
}

// ---- events ----

static void on_gone(void *ctx, const tide__live_block *b, const tide__event *end) {
    walk *w = ctx;
    drop_block(w, pool_of_block(w, b), b, (uint64_t)end->t_ns);
}

/// The segments and blocks that were there before the first event.
static tide_status on_begin(void *ctx, const tide__replay *r) {
    walk *w = ctx;
    w->t->at.replay.on_gone = on_gone;
    w->t->at.replay.ctx = w;
    for (; w->next_segment < w->n_segments; w->next_segment++) {
        const tide_trace_segment *seg = &w->segments[w->next_segment];
        if (seg->begin_event >= (uint64_t)w->span.first_event) break;
        if (seg->end_event >= (uint64_t)w->span.first_event) take_segment(w, seg, w->span.begin_ns);
    }
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) add_block(w, pool_of_block(w, b), b, w->span.begin_ns);
    pass(w, r, w->span.first_event - 1);
    return w->st;
}

static void on_segment(walk *w, const tide__replay *r, const tide__event *e) {
    if (e->op == TIDE_MEM_SEGMENT_ALLOC && w->next_segment < w->n_segments &&
        w->segments[w->next_segment].begin_event == (uint64_t)e->id)
        take_segment(w, &w->segments[w->next_segment++], (uint64_t)e->t_ns);
    for (size_t i = 0; e->op == TIDE_MEM_SEGMENT_FREE && i < w->n_places; i++) {
        const tide_trace_segment *seg = w->places[i].seg;
        if (seg->end_event != (uint64_t)e->id) continue;
        give_segment(w, r, seg->begin_event, seg, (uint64_t)e->t_ns);
        break;
    }
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    walk *w = ctx;
    if (e->op == TIDE_MEM_ALLOC && series != 0) {
        const tide__live_block *b = tide__replay_find(r, e->block_id);
        if (b != NULL && b->alloc_event == e->id) add_block(w, pool_of_block(w, b), b, (uint64_t)e->t_ns);
    } else if (e->op == TIDE_MEM_SEGMENT_ALLOC || e->op == TIDE_MEM_SEGMENT_FREE) {
        on_segment(w, r, e);
    }
    pass(w, r, e->id);
    return w->st;
}

static tide_status walk_run(walk *w, const tide_reading *reading, tide_error *err) {
    const int64_t first = w->span.first_event, last = w->span.last_event;
    tide_status st = TIDE_OK;
    for (int64_t from = first; st == TIDE_OK && (from <= last || from == first); from += SLICE_EVENTS) {
        const int64_t to = last - from < SLICE_EVENTS ? last : from + SLICE_EVENTS - 1;
        st = tide__trace_walk(w->t, from, to, from == first ? on_begin : NULL, on_event, w, err);
        if (st == TIDE_OK) st = tide__reading_tell(reading, to - first + 1, last - first + 1, err);
    }
    w->t->at.replay.on_gone = NULL;
    w->t->at.replay.ctx = NULL;
    return st;
}

// ---- the answer ----

static int by_name(const void *a, const void *b) {
    const tide_trace_pool *x = &((const pool *)a)->facts, *y = &((const pool *)b)->facts;
    int c = strcmp(x->allocator, y->allocator);
    if (c == 0) c = strcmp(x->device, y->device);
    if (c == 0) c = (x->kind > y->kind) - (x->kind < y->kind);
    return c != 0 ? c : (int)y->tells_segments - (int)x->tells_segments;
}

static int64_t cut(int64_t event, const tide__span *span) {
    if (event < span->first_event - 1) return span->first_event - 1;
    return event > span->last_event ? span->last_event : event;
}

static tide_status prepare(walk *w, const tide_reading *reading, tide_error *err) {
    const tide_trace_pools_question *q = w->q;
    if (q->t1_ns < q->t0_ns) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a window that ends before it begins");
    TIDE_TRY(tide__trace_span(w->t, q->run_id, &w->span, err));
    TIDE_TRY(tide_trace_segments(w->t, reading, &w->segments, &w->n_segments, err));
    int64_t first = w->span.first_event - 1, last = w->span.last_event;
    if (q->t0_ns >= w->span.begin_ns) TIDE_TRY(tide__trace_event_at(w->t, q->t0_ns, &first, err));
    if (q->t1_ns < w->span.end_ns) TIDE_TRY(tide__trace_event_at(w->t, q->t1_ns, &last, err));
    w->at = cut(q->at_event > INT64_MAX ? INT64_MAX : (int64_t)q->at_event, &w->span);
    w->window_first = cut(first, &w->span);
    w->window_last = cut(last, &w->span);
    return TIDE_OK;
}

tide_status tide_trace_pools(tide_trace *t, const tide_trace_pools_question *q, const tide_reading *reading,
                             tide_trace_pool **out, size_t *n, tide_error *err) {
    walk w = {.t = t, .q = q};
    tide_status st = prepare(&w, reading, err);
    if (st == TIDE_OK) st = walk_run(&w, reading, err);
    tide_trace_pool *list = st == TIDE_OK ? tide_host_alloc((w.n + 1) * sizeof *list) : NULL;
    if (st == TIDE_OK && list == NULL) st = tide__trace_no_memory(t, "pools", err);
    if (st == TIDE_OK && w.n > 1) qsort(w.pools, w.n, sizeof *w.pools, by_name);
    for (size_t i = 0; i < w.n; i++) {
        if (w.pools[i].facts.unused_bytes == UINT64_MAX) w.pools[i].facts.unused_bytes = 0; // it held nothing
        if (st == TIDE_OK) list[i] = w.pools[i].facts;
        tide_host_free(w.pools[i].lows);
    }
    tide_host_free(w.pools);
    tide_host_free(w.places);
    if (st != TIDE_OK) return st;
    *out = list;
    *n = w.n;
    return TIDE_OK;
}
