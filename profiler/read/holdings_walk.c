// SPDX-License-Identifier: MIT
//
// What allocators hold, from event to event. See holdings.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/read/holdings_internal.h"

// ---- a walk over events that adds up what each allocator holds ----
//
//     segments  [ block | hole | block |      ]   [        ]     of one pool: (allocator, device, kind)
//     reserved  <--------------------------------------->        active: its blocks; the rest is kept for later
//
// A block belongs to the segment that it was allocated in, found by its address among those that were there before it;
// one that lies in none counts for a pool without segments. So what is held after an event follows from the blocks and
// segments that are there then, and a walk can begin anywhere.

/// What is free and was lost is looked for again at each of so many events.
enum { LOOK_EVENTS = 256 };

typedef tide__pool_walk walk;
typedef tide__pool pool;
typedef tide__place place;

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
    w->pools[w->n] = (pool){.facts = {.allocator = allocator, .device = device, .kind = kind, .tells_segments = tells},
                            .held_low = UINT64_MAX,
                            .any_low = UINT64_MAX};
    tide__pool_see_nothing(&w->pools[w->n].facts, &w->pools[w->n].seen);
    return w->n++;
}

/// The value is `bytes` from `t_ns` on: whatever was higher before it is no low any more.
static void note_low(walk *w, pool *p, uint64_t bytes, uint64_t t_ns) {
    if (tide_host_grow(&p->lows, &p->cap_lows, p->n_lows + 1, sizeof *p->lows) != TIDE_OK) {
        w->st = TIDE_ERR_NOMEM;
        return;
    }
    uint64_t since = t_ns;
    while (p->n_lows > 0 && p->lows[p->n_lows - 1].bytes >= bytes) since = p->lows[--p->n_lows].since_ns;
    p->lows[p->n_lows++] = (tide__low){bytes, since};
}

static void pool_changed(walk *w, size_t i) {
    pool *p = &w->pools[i];
    p->has_changed = w->has_changed = true;
    if (!p->facts.tells_segments) p->reserved = p->active;
}

void tide__pool_see_now(const pool *p, tide_trace_pool_column *out) {
    const uint64_t unused = p->facts.tells_segments ? tide__pool_unused(p) : 0;
    const uint64_t largest = tide__pool_largest_free(p);
    const bool is_known = largest != TIDE_UNKNOWN_BYTES;
    *out = (tide_trace_pool_column){
        .reserved_bytes = p->reserved,
        .active_bytes = p->active,
        .requested_bytes = p->requested,
        .cached_bytes = unused,
        .least_cached_bytes = unused,
        .least_free_bytes = largest,
        .most_free_bytes = is_known ? largest : 0,
        .fragmentation = !is_known || p->reserved == 0 ? -1.0F
                         : unused == 0                 ? 0
                                                       : (float)(1 - (double)largest / (double)unused),
    };
}

void tide__pool_see_nothing(const tide_trace_pool *facts, tide_trace_pool_column *out) {
    const pool p = {.facts = *facts};
    tide__pool_see_now(&p, out);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

void tide_trace_pool_column_join(tide_trace_pool_column *into, const tide_trace_pool_column *from) {
    into->reserved_bytes = most(into->reserved_bytes, from->reserved_bytes);
    into->active_bytes = most(into->active_bytes, from->active_bytes);
    into->requested_bytes = most(into->requested_bytes, from->requested_bytes);
    into->cached_bytes = most(into->cached_bytes, from->cached_bytes);
    into->least_cached_bytes = least(into->least_cached_bytes, from->least_cached_bytes);
    into->least_free_bytes = least(into->least_free_bytes, from->least_free_bytes);
    into->most_free_bytes = most(into->most_free_bytes, from->most_free_bytes);
    if (from->fragmentation > into->fragmentation) into->fragmentation = from->fragmentation;
}

/// When all that an event changes of a pool is changed. One that tells of no segments leaves nothing unused.
static void settle_pool(walk *w, pool *p, uint64_t t_ns) {
    if (p->reserved > p->facts.peak_reserved_bytes) p->facts.peak_reserved_bytes = p->reserved;
    if (p->active > p->facts.peak_active_bytes) p->facts.peak_active_bytes = p->active;
    if (!w->has_begun) return;
    if (w->keeps_free) {
        tide_trace_pool_column now;
        tide__pool_see_now(p, &now);
        tide_trace_pool_column_join(&p->seen, &now);
    }
    if (!p->facts.tells_segments) return;
    const uint64_t unused = tide__pool_unused(p);
    if (unused < p->any_low) p->any_low = unused;
    if (p->reserved > 0 && unused < p->held_low) p->held_low = unused;
    if (w->keeps_lows) note_low(w, p, unused, t_ns);
}

static tide_status settle(walk *w) {
    if (!w->has_changed) return w->st;
    for (size_t i = 0; i < w->n; i++)
        if (w->pools[i].has_changed) settle_pool(w, &w->pools[i], w->now_ns);
    if (w->st == TIDE_OK && w->has_begun && w->on_change != NULL) w->st = w->on_change(w);
    for (size_t i = 0; i < w->n; i++) w->pools[i].has_changed = false;
    w->has_changed = false;
    return w->st;
}

// ---- what is free ----
//
//     segments of a pool   0x7000 [ block | free ]     0x2000 [ free | block ]      of any process
//     addresses in `free`       0 [ block | free ]        101 [ free | block ]      in the order in which they were
//     taken

static void lose_free(walk *w, pool *p) {
    tide_block_tree_deinit(&p->free);
    p->is_free_lost = w->is_free_lost = true;
}

static void note_free_result(walk *w, pool *p, tide_status st) {
    if (st == TIDE_ERR_NOT_FOUND)
        lose_free(w, p);
    else if (st != TIDE_OK)
        w->st = st;
}

/// `b` lies in place `at`; it takes its bytes, or gives them back.
static void change_free(walk *w, size_t at, const tide__live_block *b, bool takes) {
    const place *in = &w->places[at];
    pool *p = &w->pools[in->pool];
    if (!w->keeps_free || p->is_free_lost || b->reserved_bytes == 0) return;
    const uint64_t offset = (uint64_t)b->address - in->seg->address, bytes = (uint64_t)b->reserved_bytes;
    tide_status st = TIDE_ERR_NOT_FOUND;
    if (bytes <= in->seg->bytes - offset) {
        const tide_block_span span = {in->begin + offset, bytes, 0};
        st = takes ? tide_block_tree_take(&p->free, span) : tide_block_tree_give(&p->free, span);
    }
    note_free_result(w, p, st);
}

/// A segment that is taken is free; it touches no other one.
static void add_free(walk *w, place *at) {
    pool *p = &w->pools[at->pool];
    if (!w->keeps_free || p->is_free_lost || at->seg->bytes == 0) return;
    uint64_t end;
    if (!tide_add_u64(p->end, at->seg->bytes, &end) || end == UINT64_MAX) {
        lose_free(w, p);
        return;
    }
    at->begin = p->end;
    p->end = end + 1;
    note_free_result(w, p, tide_block_tree_give(&p->free, (tide_block_span){at->begin, at->seg->bytes, 0}));
}

static void drop_free(walk *w, const place *at) {
    pool *p = &w->pools[at->pool];
    tide_block_span span;
    while (w->keeps_free && !p->is_free_lost &&
           tide_block_tree_at_least(&p->free, (tide_block_span){.begin = at->begin}, &span) &&
           span.begin - at->begin < at->seg->bytes)
        tide_block_tree_remove(&p->free, span);
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

/// The same, as if the segment at place `but` (SIZE_MAX: none) were not there. Where segments lie in one another, the
/// block is in the one whose begin is nearest before it.
static size_t place_of(const walk *w, const tide__live_block *b, size_t but) {
    const char *device = tide__trace_device(w->t, b->device);
    const uint64_t address = (uint64_t)b->address;
    const uint32_t process = tide_trace_process_of((uint64_t)b->block_id);
    for (size_t i = places_to(w, process, device, address); i-- > 0;) {
        const tide_trace_segment *seg = w->places[i].seg;
        if (seg->device != device || seg->process != process) break;
        const bool is_inside = address - seg->address < seg->bytes && seg->begin_event < (uint64_t)b->alloc_event;
        if (is_inside && i != but) return i;
        if (!w->overlaps) break;
    }
    return SIZE_MAX;
}

size_t tide__pool_place_of(const walk *w, const tide__live_block *b) { return place_of(w, b, SIZE_MAX); }

/// The pool of a block that lies in place `at`; SIZE_MAX: in none.
static size_t pool_in(walk *w, const tide__live_block *b, size_t at) {
    if (at != SIZE_MAX) return w->places[at].pool;
    return pool_of(w, tide__trace_text(w->t, b->allocator_id), tide__trace_device(w->t, b->device),
                   (tide_memory_kind)b->kind, false);
}

static void add_block(walk *w, size_t at, const tide__live_block *b) {
    const size_t i = pool_in(w, b, at);
    if (i == SIZE_MAX) return;
    pool *p = &w->pools[i];
    p->n_blocks++;
    p->active += (uint64_t)b->reserved_bytes;
    p->requested += (uint64_t)b->requested_bytes;
    pool_changed(w, i);
    if (at != SIZE_MAX) change_free(w, at, b, true);
}

static void drop_block(walk *w, size_t at, const tide__live_block *b) {
    const size_t i = pool_in(w, b, at);
    if (i == SIZE_MAX) return;
    pool *p = &w->pools[i];
    p->n_blocks--;
    p->active -= (uint64_t)b->reserved_bytes;
    p->requested -= (uint64_t)b->requested_bytes;
    pool_changed(w, i);
    if (at != SIZE_MAX) change_free(w, at, b, false);
}

/// `a` begins at or before `b`, in this order of places.
static bool do_overlap(const tide_trace_segment *a, const tide_trace_segment *b) {
    return a->process == b->process && a->device == b->device && b->address - a->address < a->bytes;
}

static void take_segment(walk *w, const tide_trace_segment *seg) {
    const size_t pool_i = pool_of(w, seg->allocator, seg->device, seg->kind, true);
    if (pool_i == SIZE_MAX ||
        tide_host_grow(&w->places, &w->cap_places, w->n_places + 1, sizeof *w->places) != TIDE_OK) {
        w->st = TIDE_ERR_NOMEM;
        return;
    }
    const size_t at = places_to(w, seg->process, seg->device, seg->address);
    memmove(&w->places[at + 1], &w->places[at], (w->n_places - at) * sizeof *w->places);
    w->places[at] = (place){.seg = seg, .pool = pool_i};
    w->n_places++;
    add_free(w, &w->places[at]);
    w->overlaps = w->overlaps || (at > 0 && do_overlap(w->places[at - 1].seg, seg)) ||
                  (at + 1 < w->n_places && do_overlap(seg, w->places[at + 1].seg));
    w->pools[pool_i].n_segments++;
    w->pools[pool_i].reserved += seg->bytes;
    pool_changed(w, pool_i);
}

/// What still lies in it goes to the segment around it, or to a pool without segments, so that the sums stay what the
/// live blocks are.
static void give_segment(walk *w, const tide__replay *r, uint64_t begin_event, const tide_trace_segment *seg) {
    size_t at = 0;
    while (at < w->n_places && w->places[at].seg->begin_event != begin_event) at++;
    if (at == w->n_places) return;
    const place gone = w->places[at];
    const tide__live_block *b;
    for (size_t i = 0; w->pools[gone.pool].n_blocks > 0 && (b = tide__replay_next(r, &i)) != NULL;) {
        if (tide__pool_place_of(w, b) != at) continue;
        drop_block(w, at, b);
        add_block(w, place_of(w, b, at), b);
    }
    drop_free(w, &gone);
    w->n_places--;
    memmove(&w->places[at], &w->places[at + 1], (w->n_places - at) * sizeof *w->places);
    w->pools[gone.pool].n_segments--;
    w->pools[gone.pool].reserved -= seg->bytes;
    pool_changed(w, gone.pool);
}

/// The walk has lost what is free of a pool: look at all that is there, unless that has been in vain too often.
static void find_free_again(walk *w, const tide__replay *r, size_t i) {
    pool *p = &w->pools[i];
    if (++p->n_looks < p->next_look) return;
    p->next_look = 2 * p->n_looks;
    p->is_free_lost = false;
    p->end = 0;
    for (size_t at = 0; at < w->n_places; at++)
        if (w->places[at].pool == i) add_free(w, &w->places[at]);
    const tide__live_block *b;
    for (size_t k = 0; !p->is_free_lost && (b = tide__replay_next(r, &k)) != NULL;) {
        const size_t at = tide__pool_place_of(w, b);
        if (at != SIZE_MAX && w->places[at].pool == i) change_free(w, at, b, true);
    }
    if (!p->is_free_lost) p->n_looks = p->next_look = 0;
}

static void look_again(walk *w, const tide__replay *r) {
    w->is_free_lost = false;
    for (size_t i = 0; i < w->n; i++) {
        if (w->pools[i].is_free_lost) find_free_again(w, r, i);
        w->is_free_lost = w->is_free_lost || w->pools[i].is_free_lost;
    }
}

// ---- events ----

static void on_gone(void *ctx, const tide__live_block *b, const tide__event *end) {
    (void)end;
    drop_block(ctx, place_of(ctx, b, SIZE_MAX), b);
}

/// What the changes of events are held against.
static void begin_lows(walk *w) {
    for (size_t i = 0; i < w->n; i++) {
        pool *p = &w->pools[i];
        p->any_low = UINT64_MAX;
        p->held_low = p->reserved > 0 ? tide__pool_unused(p) : UINT64_MAX;
        if (w->keeps_lows) note_low(w, p, tide__pool_unused(p), UINT64_MAX);
        if (w->keeps_free) tide__pool_see_now(p, &p->seen);
        p->has_changed = true;
    }
    w->has_begun = true;
    if (w->st == TIDE_OK && w->on_change != NULL) w->st = w->on_change(w);
    for (size_t i = 0; i < w->n; i++) w->pools[i].has_changed = false;
}

/// The segments and blocks that are there before the first event.
static tide_status on_begin(void *ctx, const tide__replay *r) {
    walk *w = ctx;
    w->t->at.replay.on_gone = on_gone;
    w->t->at.replay.ctx = w;
    for (; w->next_segment < w->n_segments; w->next_segment++) {
        const tide_trace_segment *seg = &w->segments[w->next_segment];
        if (seg->begin_event > (uint64_t)w->after) break;
        if (seg->end_event > (uint64_t)w->after) take_segment(w, seg);
    }
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) add_block(w, place_of(w, b, SIZE_MAX), b);
    TIDE_TRY(settle(w));
    begin_lows(w);
    return w->st;
}

static void on_segment(walk *w, const tide__replay *r, const tide__event *e) {
    if (e->op == TIDE_MEM_SEGMENT_ALLOC && w->next_segment < w->n_segments &&
        w->segments[w->next_segment].begin_event == (uint64_t)e->id)
        take_segment(w, &w->segments[w->next_segment++]);
    for (size_t i = 0; e->op != TIDE_MEM_SEGMENT_ALLOC && i < w->n_places;) {
        const tide_trace_segment *seg = w->places[i].seg;
        if (seg->end_event == (uint64_t)e->id)
            give_segment(w, r, seg->begin_event, seg); // others lie there now
        else
            i++;
    }
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    walk *w = ctx;
    w->now_event = (uint64_t)e->id;
    w->now_ns = (uint64_t)e->t_ns;
    if (e->op == TIDE_MEM_ALLOC && series != 0) {
        const tide__live_block *b = tide__replay_find(r, e->block_id);
        if (b != NULL && b->alloc_event == e->id) add_block(w, place_of(w, b, SIZE_MAX), b);
    } else if (e->op == TIDE_MEM_SEGMENT_ALLOC || e->op == TIDE_MEM_SEGMENT_FREE || e->op == TIDE__OP_PROCESS_END) {
        on_segment(w, r, e);
    }
    TIDE_TRY(settle(w));
    if (w->is_free_lost && e->id % LOOK_EVENTS == 0) look_again(w, r);
    if (w->st == TIDE_OK && e->id == w->interval_end) w->st = w->end_interval(w, e->id);
    return w->st;
}

// ---- the walk ----

tide_status tide__pool_walk_to(walk *w, int64_t after, int64_t last, const tide_reading *reading, tide_error *err) {
    enum { SLICE_EVENTS = 1 << 15 };
    tide_status st = TIDE_OK;
    w->after = after;
    for (int64_t from = after + 1; st == TIDE_OK && (from <= last || from == after + 1); from += SLICE_EVENTS) {
        const int64_t to = last - from < SLICE_EVENTS ? last : from + SLICE_EVENTS - 1;
        st = tide__trace_walk(w->t, from, to, from == after + 1 ? on_begin : NULL, on_event, w, err);
        if (st == TIDE_OK) st = tide__holdings_progress(reading, to - after, last - after, err);
    }
    w->t->at.replay.on_gone = NULL;
    w->t->at.replay.ctx = NULL;
    return st;
}

void tide__pool_walk_reset(walk *w) {
    for (size_t i = 0; i < w->n; i++) {
        pool *p = &w->pools[i];
        p->facts.peak_reserved_bytes = p->facts.peak_active_bytes = 0;
        p->n_segments = p->n_blocks = p->reserved = p->active = p->requested = 0;
        p->n_lows = 0;
        tide_block_tree_deinit(&p->free);
        p->end = p->n_looks = p->next_look = 0;
        p->is_free_lost = p->has_changed = false;
    }
    w->n_places = w->next_segment = 0;
    w->has_begun = w->overlaps = w->has_changed = w->is_free_lost = false;
    w->now_event = w->now_ns = 0;
}

void tide__pool_walk_deinit(walk *w) {
    for (size_t i = 0; i < w->n; i++) {
        tide_host_free(w->pools[i].lows);
        tide_block_tree_deinit(&w->pools[i].free);
    }
    tide_host_free(w->pools);
    tide_host_free(w->places);
    *w = (walk){0};
}
